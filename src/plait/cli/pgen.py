"""``plait vdj pgen``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from plait.cli.console import RowProgress
from plait.cli.options import (
    CallsOption,
    DeviceOption,
    ExecutorParameters,
    JunctionLayoutOption,
    OutputOption,
    RepairOption,
    WholeNumber,
    model_named,
    tables_of,
)
from plait.lang.compiling import work_time

_HERE = ExecutorParameters()


def pgen(
    *inputs: Path,
    model: str,
    repair_anchors: RepairOption = False,
    output: OutputOption,
    of: Literal["auto", "nt", "aa", "nt,aa", "motif"] = "auto",
    calls: CallsOption = "ignore",
    log10: Annotated[bool, Parameter(negative="")] = False,
    layout: JunctionLayoutOption = "airr",
    threads: WholeNumber | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    device: DeviceOption = "auto",
    place: ExecutorParameters = _HERE,
) -> None:
    """Compute the generation probability of every row of one or more tables.

    Parameters
    ----------
    inputs
        Tables with junctions: TSV (plain, .gz or .zst) or Parquet; - is standard input.
    model
        The recombination model: human_TRB, which comes with plait, a JSON file of plait, or a folder of
        IGoR or OLGA.
    repair_anchors
        Mend genes of the model whose conserved codon is not where the model says, where there is one way to
        do so; each is named, and recorded in the provenance.
    output
        The table to write: .parquet, .tsv, .tsv.gz or .tsv.zst. Its summary stands beside.
    of
        Of the nucleotides (nt), of the amino acids (aa, which are translated where the table lacks them), of
        both (nt,aa), or of motifs of amino acids in the column of amino acids (motif: [..] is one of several,
        . any). auto takes what the table has columns for.
    calls
        ignore sums over all functional genes of the model; use takes only the V and J genes or alleles that
        each row names; v and j those of V or of J alone.
    log10
        Add the common logarithms as columns.
    layout
        Column names of the inputs. lines: text without a header line, a junction in every line, behind it,
        after tabs, V and J calls; with --of nt,aa nucleotides, amino acids, V and J.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use. With
        workers that are started: threads of each, otherwise 1.
    resume
        Take over what a stopped run of the same command had computed.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    place
        Where rows are worked on.
    """
    from plait.reports.model_text import pgen_text
    from plait.vdj.model.pgen import pgen_files

    found = model_named(model, repair_anchors=repair_anchors)
    start = work_time()
    with (
        tables_of(inputs, resume) as tables,
        place.open(threads) as executor,
        RowProgress("computing") as progress,
    ):
        made = pgen_files(
            tables,
            output,
            found,
            of=of,
            calls=calls,
            log10=log10,
            layout=layout,
            device=device,
            executor=executor,
            resume=resume,
            progress=progress,
        )
    print(pgen_text(made, calls=calls, seconds=work_time() - start), end="")
