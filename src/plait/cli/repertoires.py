"""``plait vdj cells``, ``diversity`` and ``neighbours``: chains of cells, and what clonotypes there are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from plait.cli.options import (
    Flag,
    FurtherTable,
    RowProgress,
    Several,
    SheetSource,
    Source,
    TableOutput,
    WholeNumber,
    model_named,
    tables_of,
)
from plait.errors import InvalidInput


def cells(*inputs: Path, output: TableOutput, source: SheetSource = SheetSource()) -> None:
    """Pair the chains of every cell.

    Parameters
    ----------
    inputs
        Tables with a cell_id: those of plait vdj annotate --cell, AIRR tables, or contig annotations of 10x.
    output
        The table to write, one row per cell: .parquet, .tsv, .tsv.gz or .tsv.zst.
    source
        What the inputs are. Cells of different repertoire_id are different cells; a file without one is a
        repertoire.
    """
    from plait.reports.repertoire_text import cells_text
    from plait.vdj.repertoires.cells import pair_cells

    files = source.files(inputs)
    if not files:
        raise InvalidInput("inputs", found="no file", expected="tables with a cell_id")
    with tables_of(files) as tables, RowProgress("reading") as progress:
        found = pair_cells(tables, output, layout=source.choice, progress=progress)
    print(cells_text(found, output), end="")


def diversity(
    *inputs: Path,
    output: TableOutput,
    rarefaction: FurtherTable = None,
    spectratypes: FurtherTable = None,
    usage: FurtherTable = None,
    differences: FurtherTable = None,
    figures: Path | None = None,
    condition: str | None = None,
    downsample: WholeNumber | None = None,
    seed: WholeNumber = 0,
    replicates: WholeNumber = 50,
    knots: WholeNumber = 20,
    subject: str | None = None,
    source: SheetSource = SheetSource(),
    threads: WholeNumber | None = None,
) -> None:
    """Diversity of repertoires: Hill numbers, rarefaction, lengths of junctions, usage of genes.

    Parameters
    ----------
    inputs
        Tables of all kinds that plait vdj count takes; - is standard input.
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
    figures
        Folder for figures, as PNG and SVG: clonotypes seen and estimated, by depth, and V genes by subject.
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
    from plait.reports.figure import check_report_drawing, drawing
    from plait.reports.figures_repertoires import diversity_figures
    from plait.reports.repertoire_text import diversity_text
    from plait.reports.study_report import write_figures
    from plait.run.executor import LocalExecutor
    from plait.vdj.repertoires.diversity import DiversitySettings, diversity_files

    outputs = {
        "diversity": output,
        "rarefaction": rarefaction,
        "spectratypes": spectratypes,
        "usage": usage,
        "differences": differences,
    }
    if figures is not None:
        check_report_drawing()
    settings = DiversitySettings(
        downsample=downsample, seed=seed, replicates=replicates, knots=knots, condition=condition
    )
    how: Any = {"settings": settings, "subject": subject, "layout": source.choice}
    with tables_of(source.files(inputs)) as files:
        found = diversity_files(files, outputs, **how, executor=LocalExecutor(threads))
    if figures is not None:
        shown = diversity_figures(found)
        with drawing(shown) as finish:
            write_figures(shown, figures, finish)
    print(diversity_text(found, outputs | {"figures": figures}), end="")


def neighbours(
    queries: Path,
    *inputs: Path,
    output: TableOutput,
    model: str | None = None,
    repair_anchors: Flag = False,
    control: Annotated[tuple[Path, ...], Several, Parameter(consume_multiple=True)] = (),
    key: str = "cdr3aa+v+j",
    mismatches: WholeNumber | None = None,
    edits: WholeNumber | None = None,
    draws: WholeNumber = 1_000_000,
    seed: WholeNumber = 0,
    subject: str | None = None,
    source: Source = Source(),
    threads: WholeNumber | None = None,
) -> None:
    """Count the clonotypes near receptors of known specificity, and tell which are more than by chance.

    Parameters
    ----------
    queries
        Table of receptors: junction_aa, v_call and j_call, and any other columns, which are kept.
    inputs
        Repertoires: tables of all kinds that plait vdj count takes.
    output
        The table to write, one row per receptor: .parquet, .tsv, .tsv.gz or .tsv.zst.
    model
        Background: junctions drawn from a recombination model, by name or path (see plait vdj pgen).
    repair_anchors
        Mend genes of the model whose conserved codon is not where the model says, where there is one way to
        do so.
    control
        Background: tables of control repertoires, in the place of a model.
    key
        What is compared: cdr3aa or cdr3nt, behind it +v and +j for genes that have to be the same.
    mismatches
        Most mismatches between junctions of the same length; 1 if there is no --edits.
    edits
        Most insertions, deletions and substitutions, in the place of mismatches.
    draws
        Productive junctions drawn from the model.
    seed
        What the draws depend on.
    subject
        Column that tells subjects apart; by default subject_id, or what the layout has for it. Where a file
        has none, its name is its subject.
    source
        What the tables are.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.reports.repertoire_text import specificity_text
    from plait.run.executor import LocalExecutor
    from plait.vdj.repertoires.specificity import NeighbourSettings, specificity_file

    if (model is None) == (not control):
        found = "none" if model is None else "both"
        raise InvalidInput("--model, --control", found=found, expected="one of them, as the background")
    settings = NeighbourSettings(key=key, mismatches=mismatches, edits=edits, draws=draws, seed=seed)
    background = control if model is None else model_named(model, repair_anchors=repair_anchors)
    how: Any = {"settings": settings, "subject": subject, "layout": source.choice}
    with tables_of([queries, *inputs]) as (asked, *tables):
        told = specificity_file(asked, tables, output, background, **how, executor=LocalExecutor(threads))
    print(specificity_text(told, output), end="")
