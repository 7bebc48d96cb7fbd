"""``plait vdj sharing``."""

from __future__ import annotations

from pathlib import Path

from plait.cli.options import ExecutorParameters, LayoutOption, OutputOption

_HERE = ExecutorParameters()


def sharing(
    *inputs: Path,
    output: OutputOption,
    subject: str | None = None,
    by_subject: Path | None = None,
    layout: LayoutOption = "airr",
    place: ExecutorParameters = _HERE,
) -> None:
    """Count in how many individuals each clonotype (junction, V gene, J gene) occurs.

    Parameters
    ----------
    inputs
        Tables as for plait vdj count, or its outputs, whose path counts are carried over.
    output
        The table to write, one row per clonotype: .parquet, .tsv, .tsv.gz or .tsv.zst.
    subject
        Column that tells individuals apart; by default that of the layout (subject_id, or Sample).
    by_subject
        A second table to write, one row per clonotype and individual.
    layout
        Column names of the inputs.
    place
        Where rows are grouped.
    """
    from plait.reports.repertoire_text import sharing_text
    from plait.vdj.sharing_table import share_files

    with place.open(None) as executor:
        found = share_files(
            inputs, output, by_subject=by_subject, subject=subject, layout=layout, executor=executor
        )
    print(sharing_text(found, output), end="")
