"""What came of a search for scenarios, as text."""

from __future__ import annotations

from plait.reports.pgen_text import CALLS_WORDS, PGEN_MEANINGS, run_lines, status_lines
from plait.reports.plain_text import paragraph
from plait.vdj.model.scenario_files import ScenarioFiles

__all__ = ["scenario_text"]

_MEANINGS = {
    **PGEN_MEANINGS,
    "ok": "has scenarios",
    "invalid_symbol": "the junction holds something else than A, C, G and T",
}


def scenario_text(made: ScenarioFiles, *, seconds: float) -> str:
    """What came of a run, in lines that fit a terminal.

    Parameters
    ----------
    made
        The run.
    seconds
        How long it took.
    """
    summary = made.summary
    rate = f", {made.rows / seconds:,.0f} rows/s" if made.rows and seconds > 0 else ""
    lines = [f"{made.rows:,} rows in {seconds:.1f} s{rate}"]
    if made.rows:
        lines += ["", f"Scenarios {CALLS_WORDS[made.calls]}:".replace("summed over", "among")]
        lines += status_lines("status", _MEANINGS, summary.statuses, summary.blamed)
    else:
        lines += paragraph("The input has no rows; nor has the output.")
    n = summary.explained
    if n:
        best, listed = summary.best_share / n, summary.listed_share / n
        lines += paragraph(
            f"{summary.scenarios:,} scenarios. Of the generation probability of a row the best one has "
            f"{100 * best:.1f} % on average, all that are listed {100 * listed:.1f} %."
        )
    lines += ["", *run_lines({}, made.blank_lines, made.resumed_blocks)]
    return "\n".join([*lines, f"table    {made.output}", f"summary  {made.summary_path}"]) + "\n"
