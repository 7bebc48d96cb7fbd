"""Figures of what goes with sharing: the share of shared clonotypes by path count and by N2 length."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from plait.reports.study_figure import (
    FILE_WIDTH,
    LEAST_IN_A_POINT,
    Spec,
    StudyFigure,
    absent,
    axis,
    number_text,
    spec_of,
    tooltips,
    wilson_interval,
)
from plait.reports.study_inputs import Study
from plait.reports.study_measures import Bin, Measure, bin_middle, drawn_measures, measure_bins

__all__ = ["driver_figures"]

_TOO_FEW: Final = f"There are too few clonotypes: no bin has {LEAST_IN_A_POINT}."
#: Powers of ten, or nucleotides, between two points that are joined.
_WIDEST_GAP: Final = 2.0
_ONE_SUBJECT: Final = "There is one subject only, so nothing can be shared, and there is nothing to compare."


def driver_figures(study: Study) -> list[StudyFigure]:
    """The share of shared clonotypes by path count, N2 length and, where there is one, Pgen, on one scale.

    Parameters
    ----------
    study
        What to draw.
    """
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
