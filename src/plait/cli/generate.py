"""``plait vdj generate``."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from plait.cli.console import Bar
from plait.cli.options import ExecutorParameters, OutputOption, RepairOption, WholeNumber, model_named
from plait.lang.compiling import work_time

_HERE = ExecutorParameters()


def generate(
    *,
    model: str,
    repair_anchors: RepairOption = False,
    output: OutputOption,
    count: Annotated[WholeNumber, Parameter(name=["--count", "-n"], allow_leading_hyphen=True)],
    seed: Annotated[WholeNumber, Parameter(allow_leading_hyphen=True)] = 0,
    keep: Literal["productive", "all"] = "productive",
    threads: WholeNumber | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    place: ExecutorParameters = _HERE,
) -> None:
    """Draw junctions from a recombination model, with how each of them was made.

    Parameters
    ----------
    model
        The recombination model: human_TRB, which comes with plait, a JSON file of plait, or a folder of
        IGoR or OLGA.
    repair_anchors
        Mend genes of the model whose conserved codon is not where the model says, where there is one way to
        do so; each is named, and recorded in the provenance.
    output
        The table to write: .parquet, .tsv, .tsv.gz or .tsv.zst.
    count
        Number of junctions.
    seed
        What the draws depend on; nothing else does, threads least of all.
    keep
        Junctions in frame, without stop codon, from Cys to Phe or Trp; or all.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use. With
        workers that are started: threads of each, otherwise 1.
    resume
        Take over what a stopped run of the same command had drawn.
    place
        Where junctions are drawn.
    """
    from plait.vdj.model.sampling import generate_file

    found = model_named(model, repair_anchors=repair_anchors)
    start = work_time()
    with place.open(threads) as executor, Bar("drawing", "{task.fields[done]:,} rows") as bar:
        made = generate_file(
            found,
            output,
            count,
            seed=seed,
            productive=keep == "productive",
            executor=executor,
            resume=resume,
            progress=lambda rows: bar.show(rows, "{:,.0f}/s", rows, count),
        )
    seconds = work_time() - start
    rate = f", {made.rows / seconds:,.0f} rows/s" if made.rows else ""
    print(f"{made.rows:,} rows of {made.drawn:,} draws in {seconds:.1f} s{rate}")
    if made.resumed_blocks:
        print(f"{made.resumed_blocks:,} blocks were taken over from the stopped run.")
    print(f"table    {made.output}")
