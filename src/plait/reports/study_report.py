"""The report of a study: one HTML file, and every figure as PNG and SVG beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.formats.atomic import AtomicFile, output_errors
from plait.reports.study_drawing import check_report_drawing, figure_files
from plait.reports.study_figure import StudyFigure
from plait.reports.study_figures_correlations import correlation_figures
from plait.reports.study_figures_distributions import distribution_figures
from plait.reports.study_figures_drivers import driver_figures
from plait.reports.study_figures_penalty import penalty_figures
from plait.reports.study_figures_pgen import pgen_figures, pgen_sweep_figures
from plait.reports.study_figures_predictions import prediction_figures
from plait.reports.study_figures_regression import regression_figures
from plait.reports.study_figures_repertoires import repertoire_figures
from plait.reports.study_figures_sweep import sweep_figures
from plait.reports.study_inputs import Study, read_study
from plait.reports.study_page import study_page

__all__ = ["StudyReport", "study_figures", "write_study_report"]


@dataclass(frozen=True, slots=True)
class StudyReport:
    """What was written.

    Attributes
    ----------
    page : Path
        The HTML file.
    page_bytes : int
        Its size.
    figures : tuple of Path
        Files of figures; PNG and SVG of each.
    missing : tuple of str
        Titles of figures that the study has no data for.
    """

    page: Path
    page_bytes: int
    figures: tuple[Path, ...]
    missing: tuple[str, ...]


def study_figures(study: Study) -> list[StudyFigure]:
    """All figures, in the order of the page.

    Parameters
    ----------
    study
        What to draw.

    Raises
    ------
    FormatError
        If a table is not what it should be.
    """
    return [
        *driver_figures(study),
        *pgen_figures(study),
        *distribution_figures(study),
        *regression_figures(study),
        *penalty_figures(study),
        *prediction_figures(study),
        *correlation_figures(study),
        *sweep_figures(study),
        *pgen_sweep_figures(study),
        *repertoire_figures(study),
    ]


def write_study_report(
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    figures: bool = True,
    progress: Callable[[str], None] | None = None,
) -> StudyReport:
    """Write the report of a finished study.

    Parameters
    ----------
    folder
        What ``plait vdj study`` wrote; only ``study.json`` and ``tables`` are read.
    output
        The page to write; ``report.html`` in the folder by default.
    figures
        Whether to write every figure to ``figures`` in the folder, too.
    progress
        Called with the name of each figure before it is drawn.

    Returns
    -------
    StudyReport
        What was written.

    Raises
    ------
    TargetUnavailable
        If what draws figures is not installed.
    InvalidInput
        If the folder is no finished study, or the output cannot be named so.
    FormatError
        If the study is not what it should be, or the disk does not take the report.
    """
    check_report_drawing()
    study = read_study(folder)
    page = Path(output) if output is not None else study.folder / "report.html"
    drawn = study_figures(study)
    with AtomicFile(page) as file, output_errors(page):
        content = study_page(study, drawn).encode("utf-8")
        file.stream.write(content)
        written = _write_figures(drawn, study.folder / "figures", progress) if figures else []
    missing = tuple(figure.title for figure in drawn if figure.spec is None)
    return StudyReport(page, len(content), tuple(written), missing)


def _write_figures(
    figures: Sequence[StudyFigure], folder: Path, progress: Callable[[str], None] | None
) -> list[Path]:
    with output_errors(folder):
        folder.mkdir(exist_ok=True)
    written = []
    for figure in figures:
        # A figure of an earlier run, of which this one has none, would tell what is not so any more.
        paths = [folder / f"{figure.name}.{kind}" for kind in ("png", "svg")]
        if figure.spec is None:
            with output_errors(folder):
                for path in paths:
                    path.unlink(missing_ok=True)
            continue
        if progress is not None:
            progress(figure.name)
        for path, content in zip(paths, figure_files(figure), strict=True):
            with AtomicFile(path, durable=False) as file, output_errors(path):
                file.stream.write(content)
            written.append(path)
    return written
