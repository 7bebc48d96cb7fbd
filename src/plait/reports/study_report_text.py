"""What ``plait vdj report`` says when it is done."""

from __future__ import annotations

from plait.reports.plain_text import paragraph
from plait.reports.study_report import StudyReport

__all__ = ["report_text"]


def report_text(written: StudyReport) -> str:
    """Where figures and page are; the page last, so that a script finds it.

    Parameters
    ----------
    written
        What to tell.
    """
    lines = []
    if written.missing:
        missing = "; ".join(written.missing)
        lines += paragraph(f"{len(written.missing)} figures have no data in this study: {missing}.")
    if written.figures:
        number = len(written.figures) // 2
        lines.append(f"figures  {written.figures[0].parent} ({number} as PNG and SVG)")
    lines.append(f"page     {written.page} ({written.page_bytes / 1e6:.1f} MB)")
    return "\n".join(lines) + "\n"
