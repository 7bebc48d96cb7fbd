"""``plait vdj scenarios``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from plait.cli.console import RowProgress
from plait.cli.options import (
    CallsOption,
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


def scenarios(
    *inputs: Path,
    model: str,
    repair_anchors: RepairOption = False,
    output: OutputOption,
    best: WholeNumber = 10,
    posteriors: Annotated[bool, Parameter(negative="")] = False,
    calls: CallsOption = "ignore",
    layout: JunctionLayoutOption = "airr",
    threads: WholeNumber | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    place: ExecutorParameters = _HERE,
) -> None:
    """List the most probable ways in which every row of one or more tables was made.

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
        The table to write, one row per scenario: .parquet, .tsv, .tsv.gz or .tsv.zst. Its summary stands
        beside.
    best
        Most scenarios of a row.
    posteriors
        Write what all scenarios of a row say together in the place of the best ones: the input rows with the
        most probable V, D and J, mean deletions and insertions, and the entropy of the scenarios in bits.
    calls
        ignore tries all functional genes of the model; use only the V and J genes or alleles that each row
        names; v and j those of V or of J alone.
    layout
        Column names of the inputs. lines: text without a header line, a junction in every line, behind it,
        after tabs, V and J calls.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use. With
        workers that are started: threads of each, otherwise 1.
    resume
        Take over what a stopped run of the same command had found.
    place
        Where rows are worked on.
    """
    from plait.reports.model_text import pgen_text, scenario_text
    from plait.vdj.model.pgen import posterior_files
    from plait.vdj.model.scenarios import scenario_files

    found = model_named(model, repair_anchors=repair_anchors)
    start = work_time()
    with (
        tables_of(inputs, resume) as tables,
        place.open(threads) as executor,
        RowProgress("explaining") as progress,
    ):
        options: dict[str, Any] = {
            "calls": calls,
            "layout": layout,
            "executor": executor,
            "resume": resume,
            "progress": progress,
        }
        if posteriors:
            told = posterior_files(tables, output, found, **options)
            text = pgen_text(told, calls=calls, seconds=work_time() - start)
        else:
            made = scenario_files(tables, output, found, best=best, **options)
            text = scenario_text(made, calls=calls, seconds=work_time() - start)
    print(text, end="")
