"""Figures of the sweep: path counts and counts of 0 under every model."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from plait.reports.study_figure import (
    LEAST_IN_A_POINT,
    Spec,
    StudyFigure,
    absent,
    axis,
    number_text,
    spec_of,
    tooltips,
)
from plait.reports.study_inputs import Study
from plait.reports.study_palette import LEVELS

__all__ = ["panels_by_pi", "sweep_figures"]

_NO_SWEEP = "The study has no counts of other models: it was run without a sweep, or without path counts."


def sweep_figures(study: Study) -> list[StudyFigure]:
    """Median counts and shares of zero counts, one panel for every pi.

    Parameters
    ----------
    study
        What to draw.
    """
    titles = {"sweep_medians": "Median path count of each model", "sweep_zeros": "Counts of 0 in each model"}
    table = study.table("sweep")
    if table is None:
        return [absent(name, "sweep", title, _NO_SWEEP) for name, title in titles.items()]
    points = [
        {"pi": pi, "nu": nu, "subjects": level, "counted": n, "zeros": zeros, "median": median}
        for pi, nu, level, n, zeros, median in zip(
            *(table.integers(name) for name in ("pi", "nu", "subjects", "counted", "zero_counts")),
            table.numbers("path_count_q50"),
            strict=True,
        )
    ]
    levels = _drawn_levels(points)
    return [
        _sweep_medians(titles["sweep_medians"], points, levels),
        _sweep_zeros(titles["sweep_zeros"], points, levels),
    ]


def _drawn_levels(points: list[dict[str, Any]]) -> list[int]:
    sizes: dict[int, int] = defaultdict(int)
    for point in points:
        sizes[point["subjects"]] = max(sizes[point["subjects"]], point["counted"])
    enough = sorted(level for level, n in sizes.items() if n >= LEAST_IN_A_POINT) or sorted(sizes)
    if len(enough) <= len(LEVELS):
        return enough
    # One and two, and from there on evenly to the last.
    step = (len(enough) - 2) / (len(LEVELS) - 2)
    return [enough[0], *(enough[1 + round(k * step)] for k in range(len(LEVELS) - 1))]


def _sweep_medians(title: str, points: list[dict[str, Any]], levels: list[int]) -> StudyFigure:
    values = [p for p in points if p["subjects"] in levels and p["median"]]
    if not values:
        return absent("sweep_medians", "sweep", title, "All medians of path counts are 0.")
    caption = (
        "One panel for every longest palindromic extension (pi, nt), along it the most N nucleotides at a "
        "junction (nu, nt). Lines: median path count of clonotypes found in so many subjects. Medians of 0 "
        f"are not drawn (log scale). {_levels_text(points, levels)}"
    )
    most = max(values, key=lambda p: (p["pi"], p["nu"], -p["subjects"]))
    alt = (
        "Small multiples by pi of the median path count against nu, one line for every number of subjects. "
        f"With pi {most['pi']} and nu {most['nu']} the median is {number_text(most['median'])} for "
        f"clonotypes in {most['subjects']} subject(s)."
    )
    y: Spec = {
        "field": "median",
        "type": "quantitative",
        "scale": {"type": "log"},
        "axis": axis("median path count", format="~s", tickCount=5),
    }
    return _sweep_figure("sweep_medians", title, caption, alt, values, levels, y)


def _sweep_zeros(title: str, points: list[dict[str, Any]], levels: list[int]) -> StudyFigure:
    values = [
        p | {"share": p["zeros"] / p["counted"]} for p in points if p["subjects"] in levels and p["counted"]
    ]
    if not values:
        return absent("sweep_zeros", "sweep", title, "No clonotype was counted.")
    caption = (
        "Share of clonotypes that a model cannot make at all: its limits on palindromes (pi) and N "
        f"nucleotides (nu) are too narrow for them. {_levels_text(points, levels)}"
    )
    least, most = min(p["share"] for p in values), max(p["share"] for p in values)
    alt = (
        "Small multiples by pi of the share of clonotypes with count 0 against nu, one line for every "
        f"number of subjects; shares are between {least:.1%} and {most:.1%}."
    )
    y: Spec = {"field": "share", "type": "quantitative", "axis": axis("clonotypes with count 0", format="~p")}
    return _sweep_figure("sweep_zeros", title, caption, alt, values, levels, y)


def _levels_text(points: list[dict[str, Any]], levels: list[int]) -> str:
    sizes = {p["subjects"]: p["counted"] for p in points}
    told = ", ".join(f"{level}: n = {sizes[level]:,}" for level in levels)
    left = len(sizes) - len(levels)
    return f"Subjects: {told}." + (
        f" {left} other numbers of subjects are in the table only." if left else ""
    )


def panels_by_pi(spec: Spec) -> Spec:
    """Small multiples, one for every pi.

    Parameters
    ----------
    spec
        Marks and encodings of each.
    """
    return {
        "facet": {
            "field": "pi",
            "type": "ordinal",
            "title": None,
            "header": {"labelExpr": "'pi = ' + datum.value"},
        },
        "columns": 5,
        "spacing": {"column": 14, "row": 24},
        "spec": {"width": 118, "height": 170, **spec},
    }


def _sweep_figure(
    name: str, title: str, caption: str, alt: str, values: list[dict[str, Any]], levels: list[int], y: Spec
) -> StudyFigure:
    colour: Spec = {
        "field": "subjects",
        "type": "ordinal",
        "title": "subjects",
        "scale": {"domain": levels, "range": list(LEVELS[: len(levels)])},
    }
    shown = tooltips(pi__i="pi (nt)", nu__i="nu (nt)", subjects__i="subjects", counted__i="clonotypes")
    shown += tooltips(zeros__i="with count 0", median__f="median path count")
    body = panels_by_pi(
        {
            "mark": {"type": "line", "point": {"size": 26}, "strokeWidth": 2},
            "encoding": {
                "x": {"field": "nu", "type": "quantitative", "axis": axis("nu (nt)", tickCount=5)},
                "y": y,
                "color": colour,
                "tooltip": shown,
            },
        }
    )
    return StudyFigure(name, "sweep", title, caption, alt, spec_of(values, body, alt), cell=(92, 5))
