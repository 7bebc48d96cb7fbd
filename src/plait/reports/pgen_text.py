"""What came of a run of generation probabilities, as text."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from plait.reports.count_text import MEANINGS
from plait.reports.plain_text import aligned, paragraph, percent
from plait.vdj.model.pgen_files import PgenFiles

__all__ = ["PGEN_MEANINGS", "pgen_text"]

#: Every status in plain words.
PGEN_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        **MEANINGS,
        "ok": "has a probability above zero",
        "invalid_symbol": "the junction holds something that is no code",
        "unknown_v_call": "the model has no such V gene or allele",
        "unknown_j_call": "the model has no such J gene or allele",
        "v_never_chosen": "zero: the model never chooses these V genes",
        "j_never_chosen": "zero: the model never chooses these J genes",
        "genes_never_together": "zero: the model never chooses these V and J genes together",
        "v_not_matching": "zero: the junction does not begin like any of these V genes",
        "j_not_matching": "zero: the junction does not end like any of these J genes",
        "too_many_insertions": "zero: more insertions would be needed than the model makes",
        "no_scenario": "zero: nothing that the model can do makes this junction",
    }
)


def pgen_text(made: PgenFiles, *, seconds: float) -> str:
    """What came of a run, in lines that fit a terminal.

    Parameters
    ----------
    made
        The run.
    seconds
        How long it took.
    """
    rate = f", {made.rows / seconds:,.0f} rows/s" if made.rows and seconds > 0 else ""
    lines = [f"{made.rows:,} rows in {seconds:.1f} s{rate}", ""]
    for column, found in made.statuses.items():
        rows = [["rows", "share", column, ""]]
        for status, n in found.items():
            rows.append([f"{n:,}", percent(n, made.rows), status, PGEN_MEANINGS[status]])
        lines += [*aligned(rows, ">><<"), ""]
    for name, new in made.renamed.items():
        lines += paragraph(f"The input column {name} is now {new}: {name} is a result.")
    return "\n".join([*lines, f"table    {made.output}"]) + "\n"
