"""The report of a study: one HTML file, and every figure as PNG and SVG beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from plait._version import __version__
from plait.formats.atomic import AtomicFile, output_errors
from plait.reports.drawing import check_report_drawing, drawn_with, figure_files
from plait.reports.figure import SECTIONS, StudyFigure
from plait.reports.figures_models import pgen_figures, pgen_sweep_figures, sweep_figures
from plait.reports.figures_regression import penalty_figures, prediction_figures, regression_figures
from plait.reports.figures_repertoires import repertoire_figures
from plait.reports.figures_sharing import correlation_figures, distribution_figures, driver_figures
from plait.reports.page import (
    answer_card,
    as_given,
    as_read,
    html_page,
    page_tables,
    table_heading,
    when_text,
)
from plait.reports.study_inputs import Study, read_study

_LEADS: Final[Mapping[str, str]] = {
    "drivers": (
        "Convergent recombination says that what can be made in more ways is found in more subjects. The "
        "figures of shares have one scale, so that they can be compared."
    ),
    "distributions": "Whole distributions, because medians that differ little can hide much, and the other "
    "way round.",
    "regression": (
        "Logistic regression of shared (1) on unshared (0) clonotypes, all predictors standardised, with an "
        "adaptive LASSO. What is called held out was predicted by models that had not seen it."
    ),
    "correlations": "Rank correlations take each predictor alone: what goes together with it is not held "
    "still.",
    "sweep": "The same clonotypes counted under every model of the sweep.",
    "repertoires": "What the repertoires are made of, to judge whether the comparison is fair.",
}
_MOST_INPUTS: Final = 500
#: Numbers of answers whose names are not plain words.
_NAMES: Final[Mapping[str, str]] = {
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "published_spearman": "published rho",
    "cv_deviance_all": "held-out deviance",
    "auc_counts_only": "AUC, path counts alone",
    "auc_n2_only": "AUC, N2 alone",
    "auc_counts_and_n2": "AUC, path counts and N2",
    "auc_all": "AUC, all",
    "auc_all_without_counts": "AUC, all but path counts",
    "auc_all_without_n2": "AUC, all but N2",
    "auc_pgen_only": "AUC, Pgen alone",
    "auc_counts_and_pgen": "AUC, path counts and Pgen",
    "auc_all_without_pgen": "AUC, all but Pgen",
    "spearman_pgen": "rho, Pgen",
    "spearman_path_count": "rho, path count",
    "spearman_difference": "difference of rho",
    "spearman_difference_over_subjects": "the same, over subjects",
    "auc_pgen": "AUC, Pgen",
    "auc_path_count": "AUC, path count",
    "auc_difference": "difference of AUC",
    "auc_difference_over_subjects": "the same, over subjects",
    "spearman_pgen_above_zero": "rho, Pgen, neither is 0",
    "spearman_path_count_above_zero": "rho, path count, neither is 0",
    "spearman_difference_above_zero": "difference of rho, neither is 0",
    "auc_pgen_above_zero": "AUC, Pgen, neither is 0",
    "auc_path_count_above_zero": "AUC, path count, neither is 0",
    "auc_difference_above_zero": "difference of AUC, neither is 0",
    "deviance_pgen_only_less_counts_only": "held-out deviance, Pgen less path counts",
    "deviance_counts_and_pgen_less_counts_only": "held-out deviance, both less path counts",
    "deviance_counts_and_pgen_less_pgen_only": "held-out deviance, both less Pgen",
}


def study_page(study: Study, figures: Sequence[StudyFigure]) -> str:
    """The whole page as HTML; figures are those of `study_figures`."""
    tables = page_tables(study)
    content = {
        **_words(study),
        "sections": _sections(study, figures),
        "contents": _contents(figures),
        "tables": [table_heading(name, table) for name, table in tables.items()],
    }
    return html_page(content, figures, tables)


def _contents(figures: Sequence[StudyFigure]) -> list[tuple[str, str]]:
    short = {
        "answers": "Answers",
        "drivers": "Sharing",
        "distributions": "Distributions",
        "regression": "Regression",
        "correlations": "Correlations",
        "sweep": "Models",
        "repertoires": "Repertoires",
        "tables": "Tables",
        "methods": "Methods",
    }
    there = {figure.section for figure in figures} | {"answers", "tables", "methods"}
    return [(anchor, name) for anchor, name in short.items() if anchor in there]


def _sections(study: Study, figures: Sequence[StudyFigure]) -> list[dict[str, Any]]:
    sections = []
    for anchor, title in SECTIONS.items():
        mine = [figure for figure in figures if figure.section == anchor]
        if mine:
            told = study.entries("regression").get("warnings") if anchor == "regression" else None
            warnings = [str(text) for text in told] if isinstance(told, list) else []
            lead = _LEADS[anchor]
            sections.append(
                {
                    "anchor": anchor,
                    "title": title,
                    "lead": lead,
                    "figures": _merged(mine),
                    "warnings": warnings,
                }
            )
    return sections


def _merged(figures: list[StudyFigure]) -> list[StudyFigure]:
    """One card in place of all figures of a section that are missing for one reason."""
    reasons = {figure.caption for figure in figures if figure.spec is None}
    if len(figures) < 2 or len(reasons) > 1 or any(figure.spec is not None for figure in figures):
        return figures
    first, *others = figures
    title = "; ".join([first.title, *(figure.title[0].lower() + figure.title[1:] for figure in others)])
    return [replace(first, title=title, half=False)]


def _words(study: Study) -> dict[str, Any]:
    clonotypes, subjects = study.number("clonotypes"), study.number("subjects")
    rows, shared = study.number("rows"), study.number("shared_clonotypes")
    left_out = study.entries("left_out")
    left = sum(int(study.decimal(left_out, reason)) for reason in left_out)
    several = f"{subjects:,} subject{'' if subjects == 1 else 's'}"
    facts = [("subjects", f"{subjects:,}"), ("rows", f"{rows:,}"), ("clonotypes", f"{clonotypes:,}")]
    if subjects > 1:
        share = f" ({shared / clonotypes:.1%})" if clonotypes else ""
        facts.append((f"in {study.shared_by} or more subjects", f"{shared:,}{share}"))
    facts.append(("rows left out", f"{left:,}"))
    created = study.description.get("created")
    return {
        "title": f"Convergent recombination in {several}",
        "under": (
            "Are clonotypes that V(D)J recombination can make in more ways found in more subjects, or do N2 "
            "length and composition tell more? A clonotype is a junction with its V and J gene."
        ),
        "created": when_text(created) if created else "",
        "facts": facts,
        "answers": [answer_card(answer, _NAMES) for answer in study.items("answers")],
        "tables_lead": (
            "They hold what the figures are drawn from; the files of the same names lie in the folder "
            "tables of the study."
        ),
        "methods": _methods(study),
        "methods_lead": "What it takes to make the study again.",
        "made_from": f"the study in the folder {study.folder.resolve().name}",
        "command": "plait vdj study",
        "no_answers": "The study gives no answers: they need path counts and at least two subjects.",
        "without_script": (
            "Figures and tables of this page are drawn by a script, which is turned off here. The same "
            "figures lie in the folder figures beside this page, the same tables in the folder tables."
        ),
        "holds": "sums over clonotypes and the most shared clonotypes, not the rows of the inputs",
    }


def _methods(study: Study) -> list[dict[str, Any]]:
    described = study.description
    parts: list[dict[str, Any]] = []
    for key, title in (("parameters", "Parameters"), ("provenance", "Versions and provenance")):
        rows = [[name.replace("_", " "), as_given(value)] for name, value in study.entries(key).items()]
        if key == "provenance":
            made = [["study made by plait", as_given(described.get("version", "unknown"))]]
            rows = [*made, ["report made by plait", __version__], ["figures drawn with", drawn_with()], *rows]
        parts.append({"title": title, "rows": rows})
    inputs = [
        [
            str(item.get("file", "")),
            ", ".join(f"{k}: {as_given(v)}" for k, v in item.items() if k != "file"),
        ]
        for item in study.items("inputs")
    ]
    parts.append({"title": f"Inputs ({len(inputs):,})", "rows": inputs[:_MOST_INPUTS]})
    if len(inputs) > _MOST_INPUTS:
        parts[-1]["rows"].append([f"{len(inputs) - _MOST_INPUTS:,} more", "in study.json"])
    left = [[name.replace("_", " "), f"{as_given(n)} rows"] for name, n in study.entries("left_out").items()]
    parts.append({"title": "Rows left out", "rows": left or [["none", ""]]})
    regression = [
        [k.replace("_", " "), as_read(v)] for k, v in study.entries("regression").items() if k != "warnings"
    ]
    if regression:
        parts.append({"title": "Regression", "rows": regression})
    timings = [[k.replace("_", " "), f"{as_read(v)} s"] for k, v in study.entries("timings").items()]
    if timings:
        parts.append({"title": "Time taken", "rows": timings})
    return parts


@dataclass(frozen=True, slots=True)
class StudyReport:
    """What was written: the page, its bytes, PNG and SVG of each figure.

    `missing`: titles of figures that the study has no data for.
    """

    page: Path
    page_bytes: int
    figures: tuple[Path, ...]
    missing: tuple[str, ...]


def study_figures(study: Study) -> list[StudyFigure]:
    """All figures, in the order of the page; FormatError if a table is not what it should be."""
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
    """Write the report of a finished study: a page, by default ``report.html`` in its folder, and figures.

    Reads only ``study.json`` and ``tables``; writes figures to ``figures`` there. `progress` gets each
    figure's name before it is drawn. TargetUnavailable if what draws is not installed; InvalidInput if it is
    no finished study, or the output cannot have its name; FormatError if the study is damaged, or the page
    cannot be written.
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
