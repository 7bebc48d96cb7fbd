"""``plait vdj report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

__all__ = ["report"]


def report(
    folder: Path,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    figures: bool = True,
) -> None:
    """Write the report of a study: one HTML file that needs no network, and its figures.

    Parameters
    ----------
    folder
        The output folder of plait vdj study.
    output
        The page to write; report.html in the folder by default.
    figures
        Write every figure to the folder figures too, as PNG and SVG.
    """
    from plait.reports.study_report import write_study_report
    from plait.reports.study_report_text import report_text

    print(report_text(write_study_report(folder, output, figures=figures)), end="")
