"""``plait vdj count`` and ``explain``: path counts, and where one comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import (
    AmbiguousOption,
    ChainOption,
    DeviceOption,
    Flag,
    ModelParameters,
    OverflowOption,
    PartParameters,
    PathLimits,
    RowProgress,
    RunParameters,
    SheetSource,
    TableOutput,
    germline_named,
    tables_of,
    words_of,
)
from plait.lang.compiling import work_time


def count(
    *inputs: Path,
    germline: str,
    output: TableOutput,
    anchors: Path | None = None,
    parameters: ModelParameters = ModelParameters(),
    chain: ChainOption = "auto",
    ambiguous: AmbiguousOption = "first",
    overflow: OverflowOption = "null",
    source: SheetSource = SheetSource(),
    long: Flag = False,
    columns: str | None = None,
    min_v_identity: float | None = None,
    device: DeviceOption = "auto",
    run: RunParameters = RunParameters(),
    parts: PartParameters = PartParameters(),
) -> None:
    """Count the recombination paths of every row of one or more tables.

    Parameters
    ----------
    inputs
        Tables with junctions and V and J calls: TSV or CSV (plain, .gz or .zst), Parquet, or archives of
        IMGT/HighV-QUEST; - is standard input.
    germline
        Name of a bundled germline set (see plait germline list), or a file or folder.
    output
        The table to write: .parquet, .tsv, .tsv.gz or .tsv.zst; or a folder of Parquet parts: NAME/.
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
    source
        What the inputs are.
    long
        Write one row per input row, D allele and model in the place of lists.
    columns
        The columns to write, with commas between, as junction,v_call,path_count; otherwise all of the inputs
        and of the result. What is left out is not read, and takes no time. With a sweep there is
        path_count_sweep besides: the totals of every model.
    min_v_identity
        Rows whose column v_identity is lower are not counted: their status is mutated. Left out, 0.98 for
        immunoglobulins and 0 for T cell receptors; 0 counts all.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    run
        How the work is done.
    parts
        How a folder of parts is cut.
    """
    run.ask_driver(device)
    from plait.reports.count_text import count_text
    from plait.vdj.count_files import count_files
    from plait.vdj.counting import PathCounter

    alleles = germline_named(germline, anchors=anchors)
    counter = PathCounter(
        alleles,
        parameters.model_of(alleles.locus),
        chain=chain,
        ambiguous=ambiguous,
        overflow=overflow,
        device=device,
        threads=1,
    )
    start = work_time()
    with (
        tables_of(source.files(inputs), run.resume) as tables,
        run.open() as executor,
        RowProgress("counting") as progress,
    ):
        counted = count_files(
            tables,
            output,
            counter,
            layout=source.choice,
            long=long,
            columns=words_of(columns),
            min_v_identity=min_v_identity,
            executor=executor,
            resume=run.resume,
            progress=progress,
            parts=parts.settings,
        )
    print(count_text(counted, seconds=work_time() - start), end="")


def explain(
    junction: str,
    *,
    v_call: Annotated[str, Parameter(name=["--v", "--v-call"])],
    j_call: Annotated[str, Parameter(name=["--j", "--j-call"])],
    germline: str | None = None,
    anchors: Path | None = None,
    limits: PathLimits = PathLimits(),
    chain: ChainOption = "auto",
    format: Literal["text", "json"] = "text",
) -> None:
    """Show where one path count comes from, and which limit holds it down (model dp2).

    Parameters
    ----------
    junction
        Nucleotides from the conserved Cys to the conserved Phe or Trp codon, both included.
    v_call
        V gene or allele.
    j_call
        J gene or allele.
    germline
        Name of a bundled germline set (see plait germline list), or a file or folder; left out, the one
        bundled set that has both calls.
    anchors
        CSV table gene,anchor_index[,function] of anchors that replace those of the germline set.
    limits
        Limits of the model, which is dp2.
    chain
        What is joined; auto takes what the germline set implies.
    format
        What to print; positions in json are counted from 0.
    """
    from plait.reports.count_text import explanation_text
    from plait.vdj.explanation import explain as explain_count
    from plait.vdj.germline import load_germline
    from plait.vdj.germline.bundled import guess_germline

    alleles = load_germline(germline or guess_germline(v_call, j_call), anchors=anchors)
    told = explain_count(
        junction,
        v_call,
        j_call,
        germline=alleles,
        model=limits.model_of(alleles.locus),
        chain=chain,
    )
    if format == "json":
        print(json.dumps(told.as_dict(), indent=2))
    else:
        print(explanation_text(told, guessed=germline is None), end="")
