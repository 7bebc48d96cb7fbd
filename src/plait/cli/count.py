"""``plait vdj count`` and ``plait vdj sharing``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plait.cli.console import RowProgress
from plait.cli.options import (
    AmbiguousOption,
    ChainOption,
    DeviceOption,
    ExecutorParameters,
    LayoutOption,
    ModelParameters,
    OutputOption,
    OverflowOption,
    WholeNumber,
    germline_named,
)
from plait.lang.compiling import work_time

_DEFAULT = ModelParameters()
_HERE = ExecutorParameters()


def count(
    *inputs: Path,
    germline: str,
    output: OutputOption,
    anchors: Path | None = None,
    parameters: ModelParameters = _DEFAULT,
    chain: ChainOption = "auto",
    ambiguous: AmbiguousOption = "first",
    overflow: OverflowOption = "null",
    layout: LayoutOption = "airr",
    long: Annotated[bool, Parameter(negative="")] = False,
    threads: WholeNumber | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    device: DeviceOption = "auto",
    place: ExecutorParameters = _HERE,
) -> None:
    """Count the recombination paths of every row of one or more tables.

    Parameters
    ----------
    inputs
        Tables with junctions and V and J calls: TSV (plain, .gz or .zst) or Parquet.
    germline
        Name of a bundled germline set (see plait germline list), or a file or folder.
    output
        The table to write: .parquet, .tsv, .tsv.gz or .tsv.zst.
    anchors
        CSV table gene,anchor_index[,function] of anchors that replace those of the germline set.
    parameters
        The path-counting model.
    chain
        What is joined; auto takes what the germline set implies.
    ambiguous
        What a list of calls means: its first one, the sum over all, or a status.
    overflow
        Counts of 2^63 and more: a status (null), all counts as floating-point numbers (float), or as
        decimal numbers of up to 76 digits (wide).
    layout
        Column names of the inputs.
    long
        Write one row per input row, D allele and model in the place of lists.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use. With
        workers that are started: threads of each, otherwise 1.
    resume
        Take over what a stopped run of the same command had counted.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    place
        Where rows are counted.
    """
    from plait.reports.count_text import count_text
    from plait.vdj.count_files import count_files
    from plait.vdj.counting import PathCounter

    alleles = germline_named(germline, anchors=anchors)
    counter = PathCounter(
        alleles,
        parameters.model_of(),
        chain=chain,
        ambiguous=ambiguous,
        overflow=overflow,
        device=device,
        threads=1,
    )
    start = work_time()
    with place.open(threads) as executor, RowProgress("counting") as progress:
        counted = count_files(
            inputs,
            output,
            counter,
            layout=layout,
            long=long,
            executor=executor,
            resume=resume,
            progress=progress,
        )
    print(count_text(counted, seconds=work_time() - start), end="")


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
