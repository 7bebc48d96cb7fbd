"""What came of generation probabilities, scenarios and an inference, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from plait.reports.plain_text import (
    aligned,
    blamed_lines,
    paragraph,
    plural,
    rate_text,
    run_text,
    share_table,
)
from plait.run.rows import FinishedRun
from plait.vdj.calls import MEANINGS, STATUS_MEANINGS, RowTotals
from plait.vdj.model.evidence import EVIDENCE_STATUSES
from plait.vdj.model.inference import InferredFiles
from plait.vdj.model.inference_tables import selection_warning
from plait.vdj.model.pgen import QUANTILES, PgenSummary, PgenTotals
from plait.vdj.model.scenarios import ScenarioSummary

#: Every status in plain words.
PGEN_MEANINGS: Mapping[str, str] = {**STATUS_MEANINGS, **MEANINGS["pgen"], **MEANINGS["pgen_zeros"]}
#: What was summed over, for every choice of calls.
_CALLS = MEANINGS["calls_used"]
_KINDS = {"nt": "of the nucleotides", "aa": "of the amino acids", "motif": "of the motif"}
#: What may be wrong where all rows hold something that is no code.
_HINTS = {
    "nt": "Are these amino acids (--of aa), or is this another column?",
    "aa": "Are these motifs (--of motif), or is this another column?",
    "motif": "In a motif stand letters, [..] for one of several, and . for any.",
}


def pgen_text(made: FinishedRun[PgenTotals], *, calls: str, seconds: float) -> str:
    """What came of a run of generation probabilities, in lines that fit a terminal."""
    lines = [] if made.rows else paragraph("The input has no rows; nor has the output.")
    for kind, summary in made.summary.items() if made.rows else ():
        lines += ["", *_kind_lines(kind, calls, summary, made.remarks[kind])]
    return run_text(made, lines, seconds=seconds)


def status_lines(column: str, meanings: Mapping[str, str], totals: RowTotals) -> list[str]:
    """How many rows have each status of a column, and the calls that are to blame.

    `meanings`: every status in plain words.
    """
    told = RowTotals.as_dict(totals)
    table = share_table(("rows", column), told["statuses"].items(), meanings, totals.rows)
    return table + blamed_lines(told["blamed_calls"])


def _kind_lines(kind: str, calls: str, summary: PgenSummary, remarks: Sequence[str]) -> list[str]:
    lines = [f"pgen_{kind}: {_KINDS[kind]}, {_CALLS[calls]}"]
    lines += status_lines(f"pgen_{kind}_status", PGEN_MEANINGS, summary)
    if summary.statuses["invalid_symbol"] == summary.rows:
        lines += paragraph(_HINTS[kind], indent=2)
    for remark in remarks:
        lines += paragraph(remark, indent=2)
    quantiles = summary.log10_quantiles()
    if quantiles is not None:
        shares = " ".join(f"{f'{100 * share:.0f} %':>7}" for share in QUANTILES)
        values = " ".join(f"{10**value:>7.0e}" for value in quantiles)
        lines += [f"  quantiles of those above zero {shares}", f"{'':31} {values}"]
    return lines


_MEANINGS = {
    **PGEN_MEANINGS,
    "ok": "has scenarios",
    "invalid_symbol": "the junction holds something else than A, C, G and T",
}


def scenario_text(made: FinishedRun[ScenarioSummary], *, calls: str, seconds: float) -> str:
    """What came of a search for scenarios, in lines that fit a terminal."""
    summary = made.summary
    if made.rows:
        lines = ["", f"Scenarios {_CALLS[calls]}:".replace("summed over", "among")]
        lines += status_lines("status", _MEANINGS, summary)
    else:
        lines = paragraph("The input has no rows; nor has the output.")
    n = summary.explained
    if n:
        best, listed = summary.best_share / n, summary.listed_share / n
        lines += paragraph(
            f"{summary.scenarios:,} scenarios. Of the generation probability of a row the best one has "
            f"{100 * best:.1f} % on average, all that are listed {100 * listed:.1f} %."
        )
    return run_text(made, lines, seconds=seconds)


def inference_text(made: InferredFiles, *, seconds: float, page: Path | None) -> str:
    """What came of an inference, in lines that fit a terminal; `page` is its report, if there is one."""
    facts = made.facts
    rows = facts["rows"]
    lines = [f"{rows:,} rows of {plural(len(facts['inputs']), 'file')} {rate_text(rows, seconds)}", ""]
    statuses = [("ok", rows - sum(facts["left_out"].values())), *facts["left_out"].items()]
    lines += [*share_table(("rows", "status"), statuses, EVIDENCE_STATUSES, rows), ""]
    warning = selection_warning(facts)
    if warning:
        lines += [*paragraph(f"Take care: {warning}."), ""]
    for answer in facts["answers"]:
        lines += [*paragraph(answer["headline"]), *paragraph(answer["text"], indent=2), ""]
    bits = [["bits", "share", "choice"]]
    total = facts["entropies"]["total"]
    for name, value in facts["entropies"].items():
        share = f"{value / total:.1%}" if total else ""
        bits.append([f"{value:.2f}", share.replace("%", " %"), name])
    lines += [*aligned(bits, ">><"), ""]
    places = {"model": made.folder / "model.json", "IGoR": made.folder / "model"}
    places |= {"tables": made.folder / "tables"} | ({"report": page} if page else {})
    lines += [f"{name:<8} {path}" for name, path in places.items()]
    return "\n".join(lines) + "\n"
