"""``plait vdj diversity``: how many clonotypes repertoires have, and how evenly."""

from __future__ import annotations

from pathlib import Path

from plait.cli.options import OutputOption, SheetSource, WholeNumber

_SOURCE = SheetSource()


def diversity(
    *inputs: Path,
    output: OutputOption,
    rarefaction: Path | None = None,
    spectratypes: Path | None = None,
    usage: Path | None = None,
    differences: Path | None = None,
    condition: str | None = None,
    downsample: WholeNumber | None = None,
    seed: WholeNumber = 0,
    replicates: WholeNumber = 50,
    knots: WholeNumber = 20,
    subject: str | None = None,
    source: SheetSource = _SOURCE,
    threads: WholeNumber | None = None,
) -> None:
    """Diversity of repertoires: Hill numbers, rarefaction, lengths of junctions, usage of genes.

    Parameters
    ----------
    inputs
        Tables as for plait vdj count: TSV (plain, .gz or .zst) or Parquet.
    output
        The table to write, one row per subject: .parquet, .tsv, .tsv.gz or .tsv.zst.
    rarefaction
        Another table: Hill numbers of order 0, 1 and 2 and coverage, by sample size, with intervals.
    spectratypes
        Another table: clonotypes and copies by V gene and length of the junction.
    usage
        Another table: clonotypes and copies by V gene, by J gene, and by both.
    differences
        Another table: usage under two conditions, with p-values and q-values.
    condition
        Column of the inputs or of the sheet with the condition of each row's subject.
    downsample
        Draw so many copies of every subject, without replacement; subjects with fewer are left out.
    seed
        What draws depend on.
    replicates
        Repertoires drawn anew for standard errors and intervals.
    knots
        Sample sizes of a rarefaction curve.
    subject
        Column that tells subjects apart; by default subject_id, or what the layout has for it. Where a file
        has none, its name is its subject.
    source
        What the inputs are.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.reports.repertoire_text import diversity_text
    from plait.run.executor import LocalExecutor
    from plait.vdj.repertoires.diversity import DiversitySettings, diversity_files

    outputs = {
        "diversity": output,
        "rarefaction": rarefaction,
        "spectratypes": spectratypes,
        "usage": usage,
        "differences": differences,
    }
    settings = DiversitySettings(
        downsample=downsample, seed=seed, replicates=replicates, knots=knots, condition=condition
    )
    found = diversity_files(
        source.files(inputs),
        outputs,
        settings=settings,
        subject=subject,
        layout=source.choice,
        executor=LocalExecutor(threads),
    )
    print(diversity_text(found, outputs), end="")
