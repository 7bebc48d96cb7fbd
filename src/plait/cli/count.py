"""``plait vdj count``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plait.cli.console import RowProgress, say, say_if_compiling
from plait.cli.options import (
    AmbiguousOption,
    ChainOption,
    DeviceOption,
    EmptyDOption,
    LayoutOption,
    ModelOption,
    OutputOption,
    OverflowOption,
    StrandsOption,
    WholeNumber,
    values_of,
)

__all__ = ["count"]


def count(
    *inputs: Path,
    germline: str,
    output: OutputOption,
    anchors: Path | None = None,
    model: ModelOption = "dp2",
    strands: StrandsOption = 1,
    pi: WholeNumber = 4,
    nu: WholeNumber = 10,
    nu_vd: WholeNumber | None = None,
    nu_dj: WholeNumber | None = None,
    sweep_pi: str | None = None,
    sweep_nu: str | None = None,
    max_n: WholeNumber | None = None,
    empty_d: EmptyDOption = "positions",
    chain: ChainOption = "auto",
    ambiguous: AmbiguousOption = "first",
    overflow: OverflowOption = "null",
    layout: LayoutOption = "airr",
    long: Annotated[bool, Parameter(negative="")] = False,
    threads: WholeNumber | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    device: DeviceOption = "auto",
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
    model
        dp2: extension and erosion at every end; dp1: counts by the total number of N nucleotides;
        exhaustive: the same by enumeration.
    strands
        dp2: hairpins opened on one strand, or on either one of two.
    pi
        Longest palindromic (P) extension of a gene end.
    nu
        dp2: most random (N) nucleotides at a junction.
    nu_vd
        dp2: another limit between V and D.
    nu_dj
        dp2: another limit between D and J.
    sweep_pi
        dp2: values of pi to count with besides, as 0:4 (both ends included) or 0,2,4.
    sweep_nu
        dp2: values of nu to count with besides; every combination is counted.
    max_n
        dp1, exhaustive: largest total number of N nucleotides; otherwise 10, and 4 for exhaustive.
    empty_d
        dp1, exhaustive: ways in which D can vanish: once for every position in it, once, or none.
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
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    resume
        Take over what a stopped run of the same command had counted.
    device
        auto and cpu run compiled code, reference plain Python.
    """
    from plait.reports.count_text import count_text
    from plait.vdj.count_files import count_files
    from plait.vdj.counting import PathCounter
    from plait.vdj.germline import load_germline
    from plait.vdj.models import PathModel

    chosen = PathModel(
        name=model,
        strands=strands,
        pi=pi,
        nu=nu,
        nu_vd=nu_vd,
        nu_dj=nu_dj,
        sweep_pi=values_of("--sweep-pi", sweep_pi),
        sweep_nu=values_of("--sweep-nu", sweep_nu),
        empty_d=empty_d,
        **({} if max_n is None else {"max_n": max_n}),
    )
    alleles = load_germline(germline, anchors=anchors)
    for note in alleles.notes:
        say(f"germline set {alleles.name}: {note}")
    counter = PathCounter(
        alleles, chosen, chain=chain, ambiguous=ambiguous, overflow=overflow, device=device, threads=1
    )
    if device != "reference":
        say_if_compiling()
    start = time.perf_counter()
    with RowProgress("counting") as progress:
        counted = count_files(
            inputs,
            output,
            counter,
            layout=layout,
            long=long,
            threads=threads,
            resume=resume,
            progress=progress,
        )
    print(count_text(counted, seconds=time.perf_counter() - start), end="")
