"""``plait vdj generate``."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from cyclopts import Parameter

from plait.cli.console import Bar, say_if_compiling
from plait.cli.options import OutputOption, WholeNumber
from plait.cli.recombination_model import model_named

__all__ = ["generate"]


def generate(
    *,
    model: str,
    output: OutputOption,
    count: Annotated[WholeNumber, Parameter(name=["--count", "-n"])],
    seed: WholeNumber = 0,
    keep: Literal["productive", "all"] = "productive",
    threads: WholeNumber | None = None,
) -> None:
    """Draw junctions from a recombination model.

    Parameters
    ----------
    model
        A model: a JSON file of plait, a folder of IGoR or OLGA, or the name of a bundled model.
    output
        The table to write: .parquet, .tsv, .tsv.gz or .tsv.zst.
    count
        Number of junctions.
    seed
        What the draws depend on; nothing else does, threads least of all.
    keep
        Junctions in frame, without stop codon, from Cys to Phe or Trp; or all.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.vdj.model.generation_files import generate_file

    found = model_named(model)
    say_if_compiling("sampling_kernels", 5)
    start = time.perf_counter()
    with Bar("drawing", "{task.fields[done]:,} rows") as bar:
        made = generate_file(
            found,
            output,
            count,
            seed=seed,
            productive=keep == "productive",
            threads=threads,
            progress=lambda rows: bar.show(rows, "{:,.0f}/s", rows, count),
        )
    seconds = time.perf_counter() - start
    rate = f", {made.rows / seconds:,.0f} rows/s" if made.rows else ""
    print(f"{made.rows:,} rows of {made.drawn:,} draws in {seconds:.1f} s{rate}")
    print(f"table    {made.output}")
