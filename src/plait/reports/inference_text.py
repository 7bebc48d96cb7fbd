"""What came of an inference, as text."""

from __future__ import annotations

from pathlib import Path

from plait.reports.plain_text import aligned, paragraph, percent
from plait.vdj.model.evidence_rows import EVIDENCE_STATUSES
from plait.vdj.model.inference_answers import selection_warning
from plait.vdj.model.inference_files import InferredFiles

__all__ = ["inference_text"]


def inference_text(made: InferredFiles, *, seconds: float, page: Path | None) -> str:
    """What came of an inference, in lines that fit a terminal.

    Parameters
    ----------
    made
        The run.
    seconds
        How long it took.
    page
        Its report, if there is one.
    """
    facts = made.facts
    rows = facts["rows"]
    rate = f", {rows / seconds:,.0f} rows/s" if rows and seconds > 0 else ""
    files = f"{len(facts['inputs']):,} file{'' if len(facts['inputs']) == 1 else 's'}"
    lines = [f"{rows:,} rows of {files} in {seconds:.1f} s{rate}", ""]
    table = [["rows", "share", "status", ""]]
    used = rows - sum(facts["left_out"].values())
    for status, n in [("ok", used), *facts["left_out"].items()]:
        table.append([f"{n:,}", percent(n, rows), status, EVIDENCE_STATUSES[status]])
    lines += [*aligned(table, ">><<"), ""]
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
