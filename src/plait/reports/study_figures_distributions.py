"""Figures of distributions: path count and N2 length, one histogram for every number of subjects."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from plait.reports.study_figure import (
    FILE_WIDTH,
    Spec,
    StudyFigure,
    absent,
    axis,
    grouped_levels,
    number_text,
    spec_of,
    tooltips,
)
from plait.reports.study_inputs import Study
from plait.reports.study_measures import COUNT, Bin, Measure, bin_middle, drawn_measures, measure_bins

__all__ = ["distribution_figures"]

_MOST_ROWS = 8
_ROW_HEIGHT = 58
#: Clonotypes at each end of a distribution for which no room is made.
_OUTERMOST = 0.002


def distribution_figures(study: Study) -> list[StudyFigure]:
    """Distributions of path count, N2 length and, where there is one, Pgen: one for every number of subjects.

    Parameters
    ----------
    study
        What to draw.
    """
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
