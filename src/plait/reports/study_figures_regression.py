"""Figures of the regression: models beside each other, and coefficients."""

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
from plait.reports.study_predictor_groups import group_colour, predictor_groups, predictor_meanings

__all__ = ["regression_figures"]

_WHY_NOT: Final = "The study has no regression: it was left out, or there was nothing to tell apart."
_TITLES: Final = {
    "group_comparison": "Path counts or N2? Models beside each other",
    "coefficients": "Standardised coefficients",
}


def regression_figures(study: Study) -> list[StudyFigure]:
    """Models of predictor groups beside each other, and coefficients.

    Parameters
    ----------
    study
        What to draw.
    """
    drawn = {
        "group_comparison": ("group_comparison", _comparison),
        "coefficients": ("coefficients", _coefficients),
    }
    figures = []
    for name, (source, draw) in drawn.items():
        table = study.table(source)
        if table is None:
            figures.append(absent(name, "regression", _TITLES[name], _WHY_NOT))
        else:
            figures.append(draw(study, table))
    return figures


def _figure(name: str, caption: str, alt: str, values: list[dict[str, Any]], body: Spec) -> StudyFigure:
    body = {"width": FILE_WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}} | body
    spec = spec_of(values, body, alt)
    return StudyFigure(name, "regression", _TITLES[name], caption, alt, spec)


def _comparison(study: Study, table: StudyTable) -> StudyFigure:
    values: list[dict[str, Any]] = []
    for at, model in enumerate(table.texts("model")):
        cells = {
            name: table.numbers(name)[at] if name in table else None
            for name in (
                "delta_vs_all",
                "delta_low",
                "delta_high",
                "auc",
                "auc_low",
                "auc_high",
                "predictors",
                "n",
            )
        }
        if cells["delta_vs_all"] is None:
            continue
        auc = "" if cells["auc"] is None else f"AUC {cells['auc']:.3f}"
        values.append({"model": MODELS.get(model, model), "told": auc, **cells})
    values.sort(key=lambda value: value["delta_vs_all"])
    n = max((value["n"] or 0 for value in values), default=0)
    caption = (
        "How much worse each set of predictors foretells held-out clonotypes than all predictors do: mean "
        "difference of deviance per clonotype, with 95 % intervals of paired differences. Left is better; 0 "
        f"is the model with all predictors. AUC: area under the ROC curve, held out. n = {number_text(n)} "
        "clonotypes."
    )
    told = "; ".join(f"{value['model']} {value['delta_vs_all']:.4f} ({value['told']})" for value in values)
    alt = f"Differences of held-out deviance from the model with all predictors: {told}."
    x: Spec = {
        "type": "quantitative",
        "axis": axis("difference of held-out deviance per clonotype", grid=True),
        # Room for a dot at 0, beside the names.
        "scale": {"padding": 9},
    }
    shown = tooltips(model="model", delta_vs_all__f="difference", delta_low__f="from", delta_high__f="to")
    shown += tooltips(auc__f="AUC", auc_low__f="AUC from", auc_high__f="AUC to", predictors__i="predictors")
    body: Spec = {
        "height": 44 * len(values) + 10,
        "encoding": {
            "y": {"field": "model", "type": "nominal", "sort": None, "axis": {"title": None}},
            "tooltip": shown,
        },
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "color": "$count"},
                "encoding": {"x": {"field": "delta_low", **x}, "x2": {"field": "delta_high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 110, "color": "$count", "opacity": 1},
                "encoding": {"x": {"field": "delta_vs_all", **x}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 10, "color": "$quiet"},
                "encoding": {"x": {"value": {"expr": "width"}}, "text": {"field": "told"}},
            },
        ],
    }
    return _figure("group_comparison", caption, alt, values, body)


def _coefficients(study: Study, table: StudyTable) -> StudyFigure:
    groups, meanings = predictor_groups(study), predictor_meanings(study)
    chosen = "cv_1se"
    names = [
        name
        for name in ("mle", "mle_low", "mle_high", chosen, "stability", "odds_ratio_per_sd")
        if name in table
    ]
    columns = {name: table.numbers(name) for name in names}
    values: list[dict[str, Any]] = []
    for at, predictor in enumerate(table.texts("predictor")):
        cells = {name: columns[name][at] if name in columns else None for name in names}
        stability = cells.get("stability")
        values.append(
            {
                "predictor": predictor.replace("_", " "),
                "group": groups.get(predictor, "other"),
                "meaning": meanings.get(predictor, ""),
                "told": "" if stability is None else f"{stability:.0%}",
                "chosen": cells.get(chosen),
                **{
                    name: cells.get(name)
                    for name in ("mle", "mle_low", "mle_high", "stability", "odds_ratio_per_sd")
                },
            }
        )
    values.sort(key=lambda value: -abs(value["chosen"] or 0.0) - 1e-6 * abs(value["mle"] or 0.0))
    kept = sum(1 for value in values if value["chosen"])
    caption = (
        "Change of the log odds of being shared by one standard deviation of a predictor, as two estimators "
        "have it. Diamonds: adaptive LASSO, penalty one standard error from the least held-out error "
        f"({kept} of {len(values)} predictors kept; hollow, at 0: left out). It has no intervals: it draws "
        "coefficients towards 0 and leaves predictors out, and what is kept takes over their part. Per "
        "cent: in how many bootstrap halves it was kept. Dots, below: without a penalty, with their own "
        "95 % intervals, which are none of the LASSO's."
    )
    strongest = "; ".join(f"{v['predictor']} {number_text(v['chosen'])}" for v in values[:5] if v["chosen"])
    alt = f"Standardised coefficients, strongest first: {strongest or 'none kept'}."
    return _figure("coefficients", caption, alt, values, _coefficient_body(values))


def _coefficient_body(values: list[dict[str, Any]]) -> Spec:
    x: Spec = {
        "type": "quantitative",
        "axis": axis("standardised coefficient (log odds per SD)", grid=True),
    }
    colour = group_colour([value["group"] for value in values])
    shown = tooltips(
        predictor="predictor", group="group", chosen__f="adaptive LASSO", mle__f="without penalty"
    )
    shown += tooltips(
        mle_low__f="from", mle_high__f="to", odds_ratio_per_sd__f="odds ratio per SD", stability__p="kept in"
    )
    # Each estimator has a line of its own: the interval of the one says nothing of the other.
    lasso: Spec = {"type": "point", "shape": "diamond", "size": 75, "strokeWidth": 1.6, "yOffset": -5}
    plain: Spec = {"yOffset": 6, "opacity": 0.7}
    return {
        "height": 30 * len(values) + 10,
        "encoding": {
            "y": {"field": "predictor", "type": "nominal", "sort": None, "axis": {"title": None}},
            "tooltip": shown,
        },
        "layer": [
            {
                "data": {"values": [{"zero": 0}]},
                "mark": {"type": "rule", "color": "$line", "strokeWidth": 1.5},
                "encoding": {
                    "x": {"field": "zero", **x},
                    "y": {"value": 0},
                    "y2": {"value": {"expr": "height"}},
                },
            },
            {
                "mark": {"type": "rule", "strokeWidth": 2} | plain,
                "encoding": {"x": {"field": "mle_low", **x}, "x2": {"field": "mle_high"}, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 26} | plain,
                "encoding": {"x": {"field": "mle", **x}, "color": colour},
            },
            {
                "transform": [{"filter": "datum.chosen"}],
                "mark": lasso | {"filled": True, "opacity": 1},
                "encoding": {"x": {"field": "chosen", **x}, "color": colour},
            },
            {
                "transform": [{"filter": "datum.chosen === 0"}],
                "mark": lasso | {"filled": False, "fill": "$paper", "opacity": 1},
                "encoding": {"x": {"field": "chosen", **x}, "color": colour},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "color": "$quiet", "fontSize": 11},
                "encoding": {"x": {"value": {"expr": "width"}}, "text": {"field": "told"}},
            },
        ],
    }
