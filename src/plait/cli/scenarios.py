"""``plait vdj scenarios``."""

from __future__ import annotations

import time
from pathlib import Path

from plait.cli.console import RowProgress, say_if_compiling
from plait.cli.options import LayoutOption, OutputOption, WholeNumber
from plait.cli.recombination_model import CallsOption, model_named

__all__ = ["scenarios"]


def scenarios(
    *inputs: Path,
    model: str,
    output: OutputOption,
    best: WholeNumber = 10,
    calls: CallsOption = "both",
    layout: LayoutOption = "airr",
    threads: WholeNumber | None = None,
) -> None:
    """List the most probable ways in which every row of one or more tables was made.

    Parameters
    ----------
    inputs
        Tables with junctions: TSV (plain, .gz or .zst) or Parquet.
    model
        A model: a JSON file of plait, a folder of IGoR or OLGA, or the name of a bundled model.
    output
        The table to write, one row per scenario: .parquet, .tsv, .tsv.gz or .tsv.zst.
    best
        Most scenarios of a row.
    calls
        Which calls of a row are taken for what it was made of; all functional genes are tried otherwise.
    layout
        Column names of the inputs.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.vdj.model.scenario_files import scenario_files

    found = model_named(model)
    say_if_compiling("weighted_kernels")
    start = time.perf_counter()
    with RowProgress("explaining") as progress:
        made = scenario_files(
            inputs, output, found, best=best, calls=calls, layout=layout, threads=threads, progress=progress
        )
    seconds = time.perf_counter() - start
    print(f"{made.rows:,} rows in {seconds:.1f} s, {made.explained:,} with {made.scenarios:,} scenarios")
    print(f"table    {made.output}")
