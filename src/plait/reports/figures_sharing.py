"""Figures of what goes with sharing: rank correlations, distributions, shares by path count and N2 length."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from plait.reports.figure import (
    FILE_WIDTH,
    LEAST_IN_A_POINT,
    Spec,
    StudyFigure,
    absent,
    axis,
    grouped_levels,
    number_text,
    spec_of,
    tooltips,
    wilson_interval,
)
from plait.reports.figures_repertoires import gene_order
from plait.reports.study_inputs import (
    COUNT,
    Bin,
    Measure,
    Study,
    StudyTable,
    bin_middle,
    drawn_measures,
    measure_bins,
)

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
    """Spearman's rank correlations with intervals, by subject and by gene."""
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


_MOST_ROWS = 8
_ROW_HEIGHT = 58
#: Clonotypes at each end of a distribution for which no room is made.
_OUTERMOST = 0.002


def distribution_figures(study: Study) -> list[StudyFigure]:
    """Distributions of path count, N2 length and, if computed, Pgen: one for every number of subjects."""
    figures = []
    for measure in drawn_measures(study):
        name = f"{measure.name.lower().replace(' ', '_')}_distributions"
        title = f"{measure.name[0].upper()}{measure.name[1:]} by number of subjects"
        bins = measure_bins(study.table(measure.table), measure)
        if not any(bin_.low is not None for bin_ in bins):
            figures.append(absent(name, "distributions", title, measure.why_not, half=True))
            continue
        figures.append(_ridge_figure(name, title, measure, bins))
    return figures


class _Row(NamedTuple):
    """One distribution, as heights of bins and quartiles."""

    label: str
    n: int
    zeros: int
    heights: list[tuple[float, float, float]]
    quartiles: tuple[float, float, float]


def _ridge_figure(name: str, title: str, measure: Measure, bins: list[Bin]) -> StudyFigure:
    totals: dict[int, int] = defaultdict(int)
    for bin_ in bins:
        for level, n in bin_.levels.items():
            totals[level] += n
    rows = []
    for label, levels in grouped_levels(totals, _MOST_ROWS):
        row = _row(label, levels, measure, bins)
        if row is not None:
            rows.append(row)
    caption = (
        f"Histograms of {measure.name} for clonotypes found in so many subjects, each as high as its own "
        "highest bin; the bar below spans the middle half, the dot is the median. Beside it: clonotypes "
        f"that have {measure.aside}, which are in no histogram."
    )
    if measure.high:
        caption += " Medians are taken from bins of a quarter of a power of ten."
    medians = "; ".join(
        f"{row.label}: median {number_text(_shown(measure, row.quartiles[1]))}, n = {row.n:,}" for row in rows
    )
    alt = f"Distributions of {measure.name} by number of subjects. {medians}."
    spec = spec_of(_ridge_values(rows, measure), _ridge_body(rows, measure), alt)
    return StudyFigure(name, "distributions", title, caption, alt, spec, half=True)


def _shown(measure: Measure, value: float) -> float:
    return float(f"{10**value:.3g}") if measure.high else round(value, 1)


def _row(label: str, levels: range, measure: Measure, bins: list[Bin]) -> _Row | None:
    heights, zeros = [], 0
    for bin_ in bins:
        n = sum(bin_.levels.get(level, 0) for level in levels)
        if bin_.low is None:
            zeros += n
        else:
            middle = bin_middle(measure, bin_)
            half = ((bin_.high or 0.0) - bin_.low) / 2
            heights.append((middle - half, middle + half, float(n)))
    total = sum(height for _, _, height in heights)
    if not total:
        return None
    quartiles = [_quantile(heights, share * total, whole=not measure.high) for share in (0.25, 0.5, 0.75)]
    return _Row(label, round(total) + zeros, zeros, heights, (quartiles[0], quartiles[1], quartiles[2]))


def _quantile(heights: list[tuple[float, float, float]], wanted: float, *, whole: bool) -> float:
    below = 0.0
    for low, high, n in heights:
        if below + n >= wanted and n:
            return (low + high) / 2 if whole else low + (high - low) * (wanted - below) / n
        below += n
    return heights[-1][1]


def _ridge_values(rows: list[_Row], measure: Measure) -> list[dict[str, object]]:
    values: list[dict[str, object]] = []
    for at, row in enumerate(rows):
        most = max(height for _, _, height in row.heights)
        total = sum(height for _, _, height in row.heights)
        for low, high, height in row.heights:
            values.append(
                {
                    "row": at,
                    "low": low,
                    "high": high,
                    "base": -at,
                    "top": -at + 0.8 * height / most,
                    "share": height / total,
                    "clonotypes": round(height),
                    "level": row.label,
                    "from": _shown(measure, low) if measure.high else (low + high) / 2,
                }
            )
        q25, q50, q75 = row.quartiles
        shown = {f"shown{k}": _shown(measure, q) for k, q in enumerate(row.quartiles)}
        values.append(
            {"row": at, "q25": q25, "q50": q50, "q75": q75, "bar": -at - 0.09, "level": row.label, **shown}
        )
        if row.zeros:
            what = "count 0" if measure is COUNT else "Pgen 0" if measure.high else "no D"
            values.append({"row": at, "note": f"{what}: {row.zeros / row.n:.1%}", "at": -at + 0.22})
    return values


def _ridge_domain(rows: list[_Row], measure: Measure) -> list[float]:
    """From the lowest to the highest bin that is more than the outermost clonotypes of a row."""
    lows: list[float] = []
    highs: list[float] = []
    for row in rows:
        total = sum(n for _, _, n in row.heights)
        for ends, at in ((lows, 0), (highs, 1)):
            below = 0.0
            for bin_ in row.heights if at == 0 else reversed(row.heights):
                below += bin_[2]
                if below > _OUTERMOST * total:
                    ends.append(bin_[at])
                    break
    return [min(lows) - (0.35 if measure.high else 0.0), max(highs)]


def _ridge_body(rows: list[_Row], measure: Measure) -> Spec:
    x_axis = axis(measure.title, grid=True) | measure.powers
    scale = {"domain": _ridge_domain(rows, measure), "nice": False}
    y = _row_axis(rows)
    return {
        "width": FILE_WIDTH,
        "height": _ROW_HEIGHT * len(rows) + 20,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "encoding": {"x": {"type": "quantitative", "axis": x_axis, "scale": scale}},
        "layer": [_histogram_layer(measure, y), *_quartile_layers(measure, y), _note_layer(measure, y)],
    }


def _row_axis(rows: list[_Row]) -> Spec:
    # Labels are made of whole numbers alone, so that they can stand in an expression.
    labels = ", ".join(
        f"['{row.label} subject{'' if row.label == '1' else 's'}', 'n = {row.n:,}']" for row in rows
    )
    y_axis = {
        "title": None,
        "values": [-at for at in range(len(rows))],
        "labelExpr": f"[{labels}][-datum.value]",
        "labelBaseline": "bottom",
        "labelLineHeight": 14,
        "labelOffset": -2,
        "grid": True,
    }
    scale = {"domain": [0.35 - len(rows), 1.0], "nice": False}
    return {"type": "quantitative", "axis": y_axis, "scale": scale}


def _histogram_layer(measure: Measure, y: Spec) -> Spec:
    unit = f"{measure.name} from" if measure.high else "N2 length (nt)"
    shown = tooltips(level="subjects", from__f=unit, share__p="share", clonotypes__i="clonotypes")
    return {
        "transform": [{"filter": "isValid(datum.top) && datum.clonotypes > 0"}],
        "mark": {"type": "rect", "color": measure.colour, "opacity": 0.55, "clip": True},
        "encoding": {
            "x": {"field": "low"},
            "x2": {"field": "high"},
            "y": {"field": "base", **y},
            "y2": {"field": "top"},
            "tooltip": shown,
        },
    }


def _quartile_layers(measure: Measure, y: Spec) -> list[Spec]:
    shown = tooltips(
        level="subjects", shown0__f="lower quartile", shown1__f="median", shown2__f="upper quartile"
    )
    place: Spec = {"y": {"field": "bar", **y}, "tooltip": shown}
    dot = {"filled": True, "size": 70, "fill": "$ink", "stroke": "$paper", "opacity": 1}
    return [
        {
            "transform": [{"filter": "isValid(datum.q50)"}],
            "mark": {"type": "rule", "strokeWidth": 5, "color": measure.colour, "strokeCap": "butt"},
            "encoding": {**place, "x": {"field": "q25"}, "x2": {"field": "q75"}},
        },
        {
            "transform": [{"filter": "isValid(datum.q50)"}],
            "mark": {"type": "point", **dot},
            "encoding": {**place, "x": {"field": "q50"}},
        },
    ]


def _note_layer(measure: Measure, y: Spec) -> Spec:
    # On the side where the tail of the histograms is thin.
    side = {"align": "left", "dx": 3} if measure.high else {"align": "right", "dx": -3}
    return {
        "transform": [{"filter": "isValid(datum.note)"}],
        "mark": {"type": "text", "color": "$quiet", "fontSize": 11, **side},
        "encoding": {
            "x": {"value": 0 if measure.high else {"expr": "width"}},
            "y": {"field": "at", **y},
            "text": {"field": "note"},
        },
    }


_TOO_FEW: Final = f"There are too few clonotypes: no bin has {LEAST_IN_A_POINT}."
#: Powers of ten, or nucleotides, between two points that are joined.
_WIDEST_GAP: Final = 2.0
_ONE_SUBJECT: Final = "There is one subject only, so nothing can be shared, and there is nothing to compare."


def driver_figures(study: Study) -> list[StudyFigure]:
    """The share of shared clonotypes by path count, N2 length and, where there is one, Pgen, on one scale."""
    several = study.number("subjects") > 1
    measures = drawn_measures(study)
    found = {measure.name: measure_bins(study.table(measure.table), measure) for measure in measures}
    tops = [
        max((p["high"] for p in _share_points(bins, study.shared_by)), default=0.0) for bins in found.values()
    ]
    figures = []
    for measure in measures:
        bins = found[measure.name]
        name = f"sharing_by_{measure.name.lower().replace(' ', '_')}"
        title = f"Shared clonotypes by {measure.name}"
        if not several or not _share_points(bins, study.shared_by):
            why = (measure.why_not if not bins else _TOO_FEW) if several else _ONE_SUBJECT
            figures.append(absent(name, "drivers", title, why, half=True))
            continue
        figures.append(_share_figure(name, title, measure, bins, study, max(tops)))
    return figures


def _shared(levels: Mapping[int, int], shared_by: int) -> int:
    return sum(n for level, n in levels.items() if level >= shared_by)


def _share_points(bins: list[Bin], shared_by: int) -> list[dict[str, float]]:
    points = []
    for bin_ in bins:
        n = sum(bin_.levels.values())
        if bin_.low is None or n < LEAST_IN_A_POINT:
            continue
        k = _shared(bin_.levels, shared_by)
        low, high = wilson_interval(k, n)
        points.append({"share": k / n, "low": low, "high": high, "n": n, "shared": k})
    return points


def _share_figure(
    name: str, title: str, measure: Measure, bins: list[Bin], study: Study, top: float
) -> StudyFigure:
    enough = [b for b in bins if b.low is not None and sum(b.levels.values()) >= LEAST_IN_A_POINT]
    values = _share_points(bins, study.shared_by)
    piece, end = 0, -math.inf
    for point, bin_ in zip(values, enough, strict=True):
        point["x"] = bin_middle(measure, bin_)
        # Nothing is drawn across bins that say nothing.
        piece += point["x"] - end > _WIDEST_GAP
        point["piece"], end = piece, point["x"]
        if measure.high:
            point["from"], point["to"] = 10 ** (bin_.low or 0.0), 10 ** (bin_.high or 0.0)
    n = sum(sum(bin_.levels.values()) for bin_ in bins)
    aside = sum(sum(bin_.levels.values()) for bin_ in bins if bin_.low is None)
    scarce = n - aside - sum(int(point["n"]) for point in values)
    caption = (
        f"Share of clonotypes found in {study.shared_by} or more of {study.number('subjects')} subjects, "
        f"with 95 % intervals (Wilson); n = {number_text(n)} clonotypes. Not drawn: {number_text(aside)} "
        f"with {measure.aside}, {number_text(scarce)} in bins of fewer than {LEAST_IN_A_POINT}. All figures "
        "of shares have one scale."
    )
    first, last = values[0], values[-1]
    alt = (
        f"Share of shared clonotypes against {measure.name}: {first['share']:.1%} at the lowest bin drawn, "
        f"{last['share']:.1%} at the highest, and {max(p['share'] for p in values):.1%} at most."
    )
    spec = spec_of(values, _share_body(measure, top), alt)
    return StudyFigure(name, "drivers", title, caption, alt, spec, half=True)


def _share_body(measure: Measure, top: float) -> Spec:
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "axis": axis(measure.title),
        "scale": {"zero": False, "nice": False, "padding": 10},
    }
    if measure.high:
        x["axis"] |= measure.powers
        shown = tooltips(from__f=f"{measure.name} from", to__f="to")
    else:
        shown = tooltips(x__i="N2 length (nt)")
    shown += tooltips(share__p="shared", low__p="interval from", high__p="to", n__i="clonotypes")
    y: Spec = {"type": "quantitative", "axis": axis("shared clonotypes", format="~p", tickCount=6)}
    y["scale"] = {"domain": [0, min(1.0, max(top, 0.01))], "nice": True}
    return {
        "width": FILE_WIDTH,
        "height": 260,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "encoding": {"x": x, "tooltip": shown},
        "layer": [
            {
                "mark": {"type": "area", "color": measure.colour, "opacity": 0.16},
                "encoding": {
                    "y": {"field": "low", **y},
                    "y2": {"field": "high"},
                    "detail": {"field": "piece"},
                },
            },
            {
                "mark": {"type": "line", "color": measure.colour, "strokeWidth": 2},
                "encoding": {"y": {"field": "share", **y}, "detail": {"field": "piece"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 55, "color": measure.colour, "opacity": 1},
                "encoding": {"y": {"field": "share", **y}},
            },
        ],
    }
