"""Figures of held-out predictions: calibration and ROC."""

from __future__ import annotations

from typing import Any, Final

from plait.reports.study_figure import (
    FILE_WIDTH,
    MODELS,
    Spec,
    StudyFigure,
    absent,
    axis,
    number_text,
    spec_of,
    tooltips,
)
from plait.reports.study_inputs import Study, StudyTable

__all__ = ["prediction_figures"]

_WHY_NOT: Final = "The study has no regression: it was left out, or there was nothing to tell apart."
_TITLES: Final = {
    "calibration": "Calibration of held-out predictions",
    "roc": "ROC of held-out predictions",
}
#: Models whose curves are drawn; more could not be told from each other.
_ROC_COLOURS: Final = {
    "counts_only": "$count",
    "n2_only": "$n2",
    "counts_and_n2": "$n1",
    "pgen_only": "$pgen",
    "all": "$ink",
}


def prediction_figures(study: Study) -> list[StudyFigure]:
    """Calibration and ROC.

    Parameters
    ----------
    study
        What to draw.
    """
    figures = []
    for name, draw in (("calibration", _calibration), ("roc", _roc)):
        table = study.table(name)
        if table is None:
            figures.append(absent(name, "regression", _TITLES[name], _WHY_NOT, half=True))
        else:
            figures.append(draw(study, table))
    return figures


def _figure(name: str, caption: str, alt: str, values: list[dict[str, Any]], body: Spec) -> StudyFigure:
    body = {"width": FILE_WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}} | body
    return StudyFigure(name, "regression", _TITLES[name], caption, alt, spec_of(values, body, alt), half=True)


def _calibration(study: Study, table: StudyTable) -> StudyFigure:
    names = [name for name in ("predicted", "observed", "low", "high", "n") if name in table]
    values = [dict(zip(names, cells, strict=True)) for cells in zip(*map(table.numbers, names), strict=True)]
    values = [value for value in values if value["predicted"] is not None and value["observed"] is not None]
    if not values:
        why = "No prediction was held out."
        return absent("calibration", "regression", _TITLES["calibration"], why, half=True)
    n = sum(value.get("n") or 0 for value in values)
    top = max(max(v["predicted"] or 0, v["observed"] or 0, v.get("high") or 0) for v in values)
    caption = (
        "Clonotypes in bins of the predicted probability of being shared, against the share that is; bars: "
        f"95 % intervals; on the line both are equal. n = {number_text(n)} clonotypes."
    )
    far = max(abs((value["predicted"] or 0) - (value["observed"] or 0)) for value in values)
    alt = f"Observed against predicted share in {len(values)} bins; the largest difference is {far:.3f}."
    scale: Spec = {"domain": [0, top * 1.03], "nice": False}
    x: Spec = {"type": "quantitative", "scale": scale, "axis": axis("predicted probability", grid=True)}
    y: Spec = {"type": "quantitative", "scale": scale, "axis": axis("observed share")}
    shown = tooltips(
        predicted__f="predicted", observed__f="observed", low__f="from", high__f="to", n__i="clonotypes"
    )
    place: Spec = {"x": {"field": "predicted", **x}, "tooltip": shown}
    body: Spec = {
        "height": 340,
        "layer": [
            _diagonal(top * 1.03, x, y),
            {
                "mark": {"type": "rule", "color": "$n2", "strokeWidth": 2},
                "encoding": {**place, "y": {"field": "low", **y}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 75, "color": "$n2", "opacity": 1},
                "encoding": {**place, "y": {"field": "observed", **y}},
            },
        ],
    }
    return _figure("calibration", caption, alt, values, body)


def _diagonal(top: float, x: Spec, y: Spec) -> Spec:
    return {
        "data": {"values": [{"a": 0, "b": 0}, {"a": top, "b": top}]},
        "mark": {"type": "line", "color": "$line", "strokeDash": [4, 4], "strokeWidth": 1.5},
        "encoding": {"x": {"field": "a", **x}, "y": {"field": "b", **y}},
    }


def _roc(study: Study, table: StudyTable) -> StudyFigure:
    present = set(table.texts("model"))
    drawn = [model for model in _ROC_COLOURS if model in present] or sorted(present)[: len(_ROC_COLOURS)]
    values = [
        {"model": MODELS.get(model, model), "false": false, "true": true}
        for model, false, true in zip(
            table.texts("model"),
            table.numbers("false_positive_rate"),
            table.numbers("true_positive_rate"),
            strict=True,
        )
        if model in drawn and false is not None and true is not None
    ]
    models = [MODELS.get(model, model) for model in drawn]
    areas = _areas(study)
    caption = "Held-out clonotypes ranked by predicted probability; the dashed line is what guessing gives."
    told = ", ".join(f"{model} {areas[model]:.3f}" for model in models if model in areas)
    if told:
        caption += f" Area under the curve: {told}."
    if len(present) > len(drawn):
        caption += " Other models are in the table."
    alt = f"ROC curves of {', '.join(models)}. Area under the curve: {told or 'not known'}."
    x: Spec = {
        "type": "quantitative",
        "axis": axis("false positive rate", grid=True),
        "scale": {"domain": [0, 1]},
    }
    y: Spec = {"type": "quantitative", "axis": axis("true positive rate"), "scale": {"domain": [0, 1]}}
    # The models that are known have colours of their own.
    others = list(_ROC_COLOURS.values())
    colours = [_ROC_COLOURS.get(model, others[at]) for at, model in enumerate(drawn)]
    colour: Spec = {
        "field": "model",
        "title": None,
        "scale": {"domain": models, "range": colours},
    }
    body: Spec = {
        "height": 340,
        "layer": [
            _diagonal(1.0, x, y),
            {
                "mark": {"type": "line", "strokeWidth": 2.2},
                "encoding": {
                    "x": {"field": "false", **x},
                    "y": {"field": "true", **y},
                    "order": {"field": "false"},
                    "color": colour,
                    "strokeDash": {"field": "model", "title": None, "scale": {"domain": models}},
                },
            },
        ],
    }
    return _figure("roc", caption, alt, values, body)


def _areas(study: Study) -> dict[str, float]:
    table = study.table("group_comparison")
    if table is None or "auc" not in table:
        return {}
    return {
        MODELS.get(model, model): auc
        for model, auc in zip(table.texts("model"), table.numbers("auc"), strict=True)
        if auc is not None
    }
