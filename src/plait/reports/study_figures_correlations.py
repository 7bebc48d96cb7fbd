"""Figures of rank correlations, of everything together and by subject and gene."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from plait.reports.study_figure import Spec, StudyFigure, absent, axis, spec_of, tooltips
from plait.reports.study_figures_genes import gene_order
from plait.reports.study_inputs import Study, StudyTable

__all__ = ["correlation_figures"]

_X: Final = {
    "path_count": "path count",
    "pgen_nt": "Pgen",
    "n2_length": "N2 length",
    "n2_at": "A and T share of N2",
}
_Y: Final = {"subjects": "with number of subjects", "duplicate_count": "with frequency", "rows": "with rows"}
_KINDS: Final = {"all": 0, "subject": 1, "v_gene": 2, "j_gene": 3}
#: Path count against frequency, in the study that first asked.
_PUBLISHED: Final = -0.056
_MOST_STRATA = 48


def correlation_figures(study: Study) -> list[StudyFigure]:
    """Spearman's rank correlations with intervals, by subject and by gene.

    Parameters
    ----------
    study
        What to draw.
    """
    titles = {
        "correlations_by_subject": "Rank correlations, all together and by subject",
        "correlations_by_gene": "Rank correlations by V and J gene",
    }
    table = study.table("correlations")
    if table is None:
        why = "The study has no correlations: there were too few clonotypes, or nothing that varies."
        return [absent(name, "correlations", title, why) for name, title in titles.items()]
    caption = (
        "Spearman's rank correlations with 95 % intervals. Each clonotype counts once for its number of "
        "subjects, and once in every subject for its frequency there. "
    )
    figures = []
    for name, kinds in (
        ("correlations_by_subject", ("all", "subject")),
        ("correlations_by_gene", ("v_gene", "j_gene")),
    ):
        values, left = _values(table, kinds)
        if not values:
            why = "No such stratum has enough clonotypes."
            figures.append(absent(name, "correlations", titles[name], why))
            continue
        more = (
            "Dotted: the published correlation of path count and frequency, -0.056. "
            if "all" in kinds
            else ""
        )
        if any(value["low"] is None for value in values):
            more += "Hollow: too few clonotypes, or too little variation, for an interval. "
        if left:
            more += f"{left} strata with fewest clonotypes are in the table only."
        figures.append(
            _figure(name, titles[name], (caption + more).strip(), values, published="all" in kinds)
        )
    return figures


def _values(table: StudyTable, kinds: tuple[str, ...]) -> tuple[list[dict[str, Any]], int]:
    columns = [table.texts(name) for name in ("stratum_kind", "stratum", "x", "y", "method")]
    numbers = [table.numbers(name) for name in ("estimate", "low", "high", "n")]
    values = [
        {
            "kind": kind,
            "stratum": "all together" if kind == "all" else stratum or "no name",
            "x": _X[x],
            "y": _Y[y],
            "estimate": estimate,
            "low": low,
            "high": high,
            "n": n,
        }
        for kind, stratum, x, y, method, estimate, low, high, n in zip(*columns, *numbers, strict=True)
        if kind in kinds and method == "spearman" and x in _X and y in _Y and estimate is not None
    ]
    sizes: dict[tuple[str, str], float] = {}
    for value in values:
        key = (value["kind"], value["stratum"])
        sizes[key] = max(sizes.get(key, 0.0), value["n"] or 0.0)
    ranked = sorted(sizes, key=lambda key: (key[0] != "all", -sizes[key], key))
    kept = set(ranked[:_MOST_STRATA])
    values = [value for value in values if (value["kind"], value["stratum"]) in kept]
    values.sort(key=lambda value: (_KINDS[value["kind"]], gene_order(value["stratum"])))
    return values, len(ranked) - len(kept)


def _figure(
    name: str, title: str, caption: str, values: list[dict[str, Any]], *, published: bool
) -> StudyFigure:
    strata = {stratum: at for at, stratum in enumerate(dict.fromkeys(value["stratum"] for value in values))}
    for value in values:
        value["order"] = strata[value["stratum"]]
    told = [value for value in values if value["kind"] == "all"] or values[:4]
    alt = "Spearman's rank correlations: " + "; ".join(
        f"{v['stratum']}, {v['x']} {v['y']}: {v['estimate']:.3f}"
        + ("" if v["low"] is None or v["high"] is None else f" ({v['low']:.3f} to {v['high']:.3f})")
        for v in told
    )
    panels = [x for x in _X.values() if any(value["x"] == x for value in values)]
    measures = [y for y in _Y.values() if any(value["y"] == y for value in values)]
    bare = {value["low"] is None for value in values}
    published = published and _X["path_count"] in panels
    body = _body(panels, measures, _Layers(published=published, intervals=False in bare, hollow=True in bare))
    if published:
        values = [
            *values,
            {"x": _X["path_count"], "published": _PUBLISHED, "stratum": values[0]["stratum"], "order": 0},
        ]
    return StudyFigure(
        name, "correlations", title, caption, alt + ".", spec_of(values, body, alt), cell=(150, 3)
    )


class _Layers(NamedTuple):
    """Which layers there is something for; Vega warns of a scale without data."""

    published: bool
    intervals: bool
    hollow: bool


def _body(panels: list[str], measures: list[str], there: _Layers) -> Spec:
    several = len(measures) > 1
    return {
        "facet": {"field": "x", "type": "nominal", "title": None, "sort": panels},
        "columns": 3,
        "spacing": {"column": 18, "row": 24},
        "spec": {
            "width": 190,
            "height": {"step": 9 if several else 18},
            "layer": _layers(measures, there),
        },
    }


def _layers(measures: list[str], there: _Layers) -> list[Spec]:
    x: Spec = {"type": "quantitative", "axis": axis("rank correlation", grid=True, tickCount=5)}
    y: Spec = {
        "field": "stratum",
        "type": "nominal",
        "sort": {"field": "order", "op": "min"},
        "axis": {"title": None, "labelLimit": 130},
    }
    place: Spec = {"y": y, "tooltip": _tooltips()}
    if len(measures) > 1:
        place["yOffset"] = {"field": "y", "sort": measures}
    place["color"] = {
        "field": "y",
        "title": None,
        "scale": {"domain": measures, "range": ["$shared", "$count", "$region"][: len(measures)]},
    }
    real = [{"filter": "isValid(datum.estimate)"}]
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "color": "$line"},
            "encoding": {"x": {"datum": 0, **x}},
        },
        {
            "transform": real,
            "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
            "encoding": {**place, "x": {"field": "estimate", **x}},
        },
    ]
    if there.intervals:
        # Below the dots.
        layers.insert(
            1,
            {
                "transform": real,
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {**place, "x": {"field": "low", **x}, "x2": {"field": "high"}},
            },
        )
    if there.hollow:
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.estimate) && !isValid(datum.low)"}],
                "mark": {"type": "point", "filled": True, "size": 12, "color": "$paper", "opacity": 1},
                "encoding": {**_without_colour(place), "x": {"field": "estimate", **x}},
            }
        )
    if there.published:
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.published)"}],
                "mark": {"type": "rule", "color": "$ink", "strokeDash": [2, 3], "strokeWidth": 1.5},
                "encoding": {"x": {"field": "published", **x}},
            }
        )
    return layers


def _without_colour(place: Spec) -> Spec:
    return {channel: encoding for channel, encoding in place.items() if channel != "color"}


def _tooltips() -> list[Spec]:
    return tooltips(
        stratum="stratum",
        x="correlation of",
        y="with",
        estimate__f="Spearman",
        low__f="from",
        high__f="to",
        n__i="n",
    )
