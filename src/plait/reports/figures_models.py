"""Figures of the sweep, counts under every path-counting model, and of Pgen beside path counts."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from plait.reports.figure import (
    FILE_WIDTH,
    LEAST_IN_A_POINT,
    LEVELS,
    Spec,
    StudyFigure,
    absent,
    axis,
    number_text,
    spec_of,
    tooltips,
)
from plait.reports.study_inputs import Study, StudyTable

_NO_SWEEP = "The study has no counts of other models: it was run without a sweep, or without path counts."


def sweep_figures(study: Study) -> list[StudyFigure]:
    """Median counts and shares of zero counts, one panel for every pi."""
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
    """Small multiples of marks and encodings, one for every pi."""
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


_MEASURES: Final = {"spearman": "Spearman's rho", "auc": "ROC curve area"}
_SCOPES: Final = {"all": "all clonotypes", "above_zero": "neither is 0"}
_NUMBERS: Final = (
    *("path_count", "pgen", "difference", "low", "high", "subjects_low", "subjects_high", "n"),
    *("pi", "nu"),
)


def pgen_figures(study: Study) -> list[StudyFigure]:
    """How much better Pgen goes with sharing than path counts do; none where there is no Pgen."""
    table = study.table("pgen_comparison")
    if table is None:
        return []
    name, title = "pgen_less_path_count", "Does Pgen or path count go better with sharing?"
    rows = _rows(table)
    values = []
    for measure, told in _MEASURES.items():
        of_measure = [row for row in rows if row["measure"] == measure]
        for scope, what in _SCOPES.items():
            values += [_value(row, told, what) for row in of_measure if row["scope"] == scope]
        of_sweep = [row for row in of_measure if row["scope"] == "sweep"]
        if of_sweep:
            best = max(of_sweep, key=lambda row: row["path_count"])
            where = f"sweep, pi {best['pi']:g}, nu {best['nu']:g}"
            values.append(_value(best, told, where))
    if not values:
        why = "There are too few clonotypes with a path count and Pgen, or none are shared."
        return [absent(name, "drivers", title, why)]
    n = max(value["n"] for value in values)
    caption = (
        "How much higher a measure of Pgen with the number of subjects is than the same measure of the path "
        "count, on the same clonotypes: right of 0 Pgen goes better with sharing, left of it path counts. "
        "Thick: 95 % intervals that take clonotypes as independent; thin: those that take subjects as the "
        "units, every one left out once. Of the sweep, the best model was chosen with these data, which "
        f"flatters path counts. n = {number_text(n)} clonotypes."
    )
    told = "; ".join(
        f"{v['measure']}, {v['what']}: Pgen {v['pgen']:.3f}, path count {v['path_count']:.3f}, difference "
        f"{v['difference']:.3f}"
        for v in values
    )
    alt = f"Measures of Pgen less those of path counts: {told}."
    spec = spec_of(values, _body(len(values), any(v["subjects_low"] is not None for v in values)), alt)
    return [StudyFigure(name, "drivers", title, caption, alt, spec)]


def _rows(table: StudyTable) -> list[dict[str, Any]]:
    """Rows about sharing over all clonotypes that have a difference."""
    texts = ("stratum_kind", "y", "scope", "measure")
    columns = [*(table.texts(name) for name in texts), *(table.numbers(name) for name in _NUMBERS)]
    rows = [dict(zip((*texts, *_NUMBERS), cells, strict=True)) for cells in zip(*columns, strict=True)]
    return [
        row
        for row in rows
        if row["stratum_kind"] == "all" and row["y"] == "subjects" and row["difference"] is not None
    ]


def _value(row: dict[str, Any], measure: str, what: str) -> dict[str, Any]:
    return {
        "label": f"{measure},|{what}",
        "measure": measure,
        "what": what,
        **{name: row[name] for name in _NUMBERS[:8]},
    }


def _body(rows: int, over_subjects: bool) -> Spec:
    x: Spec = {"type": "quantitative", "axis": axis("measure of Pgen less that of the path count", grid=True)}
    shown = tooltips(
        measure="measure", what="of", pgen__f="Pgen", path_count__f="path count", difference__f="difference"
    )
    shown += tooltips(low__f="from", high__f="to", n__i="clonotypes")
    if over_subjects:
        shown += tooltips(subjects_low__f="over subjects from", subjects_high__f="to")
    layers: list[Spec] = [
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": "$line", "strokeWidth": 1.5},
            "encoding": {
                "x": {"field": "zero", **x},
                "y": {"value": 0},
                "y2": {"value": {"expr": "height"}},
            },
        }
    ]
    ends = [("low", "high", 5.0, 0.45)]
    if over_subjects:
        ends.append(("subjects_low", "subjects_high", 1.5, 1.0))
    for low, high, width, opacity in ends:
        layers.append(
            {
                "mark": {"type": "rule", "strokeWidth": width, "opacity": opacity, "color": "$pgen"},
                "encoding": {"x": {"field": low, **x}, "x2": {"field": high}},
            }
        )
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 80, "color": "$pgen", "opacity": 1},
            "encoding": {"x": {"field": "difference", **x}},
        }
    )
    return {
        "width": FILE_WIDTH,
        "height": 38 * rows + 10,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "encoding": {
            "y": {
                "field": "label",
                "type": "nominal",
                "sort": None,
                "axis": {"title": None, "labelLimit": 150, "labelExpr": "split(datum.label, '|')"},
            },
            "tooltip": shown,
        },
        "layer": layers,
    }


def pgen_sweep_figures(study: Study) -> list[StudyFigure]:
    """How well path counts of every model tell shared clonotypes, and Pgen; none where there is no Pgen."""
    table = study.table("pgen_comparison")
    if table is None:
        return []
    rows = [row for row in _rows(table) if row["scope"] == "sweep" and row["measure"] == "auc"]
    name, title = "sweep_and_pgen", "Path counts of each model, and Pgen: how well they tell what is shared"
    if not rows:
        return [absent(name, "sweep", title, "The study was run without a sweep, or nothing is shared.")]
    values = [{key: row[key] for key in ("pi", "nu", "path_count", "pgen", "low", "high")} for row in rows]
    best = max(values, key=lambda value: value["path_count"])
    caption = (
        "Area under the ROC curve of shared against other clonotypes, for the path count under every model "
        "(dots) and for Pgen (line), on the same clonotypes and both in bins. One panel for every longest "
        "palindromic extension (pi, nt), along it the most N nucleotides at a junction (nu, nt)."
    )
    alt = (
        f"Area under the ROC curve: at most {best['path_count']:.3f}, with pi {best['pi']:g} and "
        f"nu {best['nu']:g}; of Pgen {best['pgen']:.3f}."
    )
    shown = tooltips(pi__i="pi (nt)", nu__i="nu (nt)", path_count__f="area, path count")
    shown += tooltips(pgen__f="area, Pgen", low__f="Pgen less path count from", high__f="to")
    x: Spec = {"field": "nu", "type": "quantitative", "axis": axis("nu (nt)", tickCount=5)}
    y: Spec = {"type": "quantitative", "axis": axis("area under the ROC curve"), "scale": {"zero": False}}
    dots = {"type": "line", "point": {"size": 26, "color": "$count"}, "strokeWidth": 1.5, "color": "$count"}
    body = panels_by_pi(
        {
            "encoding": {"x": x, "tooltip": shown},
            "layer": [
                {
                    "mark": {"type": "line", "color": "$pgen", "strokeWidth": 2.5},
                    "encoding": {"y": {"field": "pgen", **y}},
                },
                {"mark": dots, "encoding": {"y": {"field": "path_count", **y}}},
            ],
        }
    )
    spec = spec_of(values, body, alt)
    return [StudyFigure(name, "sweep", title, caption, alt, spec, cell=(92, 5))]
