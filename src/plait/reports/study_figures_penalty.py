"""Figures along the penalty of the adaptive LASSO: coefficients and held-out error."""

from __future__ import annotations

import math
from typing import Any, Final

from plait.reports.study_figure import (
    FILE_WIDTH,
    Spec,
    StudyFigure,
    absent,
    axis,
    number_text,
    spec_of,
    tooltips,
)
from plait.reports.study_inputs import Study, StudyTable
from plait.reports.study_predictor_groups import group_colour, predictor_groups

__all__ = ["penalty_figures"]

#: Ways of choosing a penalty, as the tables name them and as people do.
_CHOICES: Final = {"cv_min": "least error", "cv_1se": "1 SE", "bic": "BIC"}
_WHY_NOT: Final = "The study has no regression: it was left out, or there was nothing to tell apart."
_TITLES: Final = {
    "coefficient_path": "Coefficients along the penalty",
    "held_out_error": "Held-out error along the penalty",
}
_NAMED_LINES = 8
#: Least distance of two names at the ends of lines, as a share of the height.
_NAME_STEP = 0.048
#: Columns of lambda_path.tsv that are no predictors.
_NOT_PREDICTORS: Final = frozenset(
    ("index", "lambda", "nonzero", "deviance_explained", "bic", "cv_deviance", "cv_se", "chosen")
)


def penalty_figures(study: Study) -> list[StudyFigure]:
    """Coefficients and held-out error along the penalty.

    Parameters
    ----------
    study
        What to draw.
    """
    table = study.table("lambda_path")
    if table is None:
        return [absent(name, "regression", title, _WHY_NOT, half=True) for name, title in _TITLES.items()]
    return [_path(study, table), _error(table)]


def _figure(name: str, caption: str, alt: str, values: list[dict[str, Any]], body: Spec) -> StudyFigure:
    body = {"width": FILE_WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}} | body
    return StudyFigure(name, "regression", _TITLES[name], caption, alt, spec_of(values, body, alt), half=True)


def _penalties(table: StudyTable) -> list[tuple[int, float]]:
    """Rows with a penalty above 0 and its logarithm to base 10."""
    return [(at, math.log10(x)) for at, x in enumerate(table.numbers("lambda")) if x is not None and x > 0]


def _choice_values(table: StudyTable) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = []
    for at, x in _penalties(table):
        names = [_CHOICES.get(name, name) for name in table.texts("chosen")[at].split(",") if name]
        for name in names:
            # One below the other, so that near ones can be read.
            line = 7 + 14 * len(values)
            values.append({"penalty": x, "choice": name, "kept": table.integers("nonzero")[at], "line": line})
    return values


def _choice_layers() -> list[Spec]:
    place: Spec = {"tooltip": tooltips(choice="chosen by", kept__i="predictors kept")}
    filtered = [{"filter": "isValid(datum.choice)"}]
    words = {"y": {"field": "line", "type": "quantitative", "scale": None}, "text": {"field": "choice"}}
    return [
        {
            "transform": filtered,
            "mark": {"type": "rule", "color": "$ink", "strokeWidth": 1.2, "strokeDash": [4, 3]},
            "encoding": place,
        },
        # Twice, so that lines below do not run through the words.
        *(
            {
                "transform": filtered,
                "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11, "fontWeight": 600} | drawn,
                "encoding": place | words,
            }
            for drawn in ({"stroke": "$paper", "strokeWidth": 4, "strokeJoin": "round"}, {})
        ),
    ]


def _penalty_axis(domain: list[float]) -> Spec:
    return {
        "field": "penalty",
        "type": "quantitative",
        "scale": {"domain": domain, "nice": False, "reverse": True},
        "axis": axis(
            "penalty lambda (weaker to the right)",
            labelExpr="format(pow(10, datum.value), '.2~g')",
        ),
    }


def _path(study: Study, table: StudyTable) -> StudyFigure:
    groups = predictor_groups(study)
    predictors = [name for name in table.columns if name not in _NOT_PREDICTORS]
    penalties = _penalties(table)
    values: list[dict[str, Any]] = []
    ends = {}
    for predictor in predictors:
        betas = table.numbers(predictor)
        if not any(betas):
            continue
        name = predictor.replace("_", " ")
        group = groups.get(predictor, "other")
        values += [
            {"penalty": x, "predictor": name, "group": group, "beta": betas[at]} for at, x in penalties
        ]
        ends[name] = (betas[penalties[-1][0]] or 0.0, group)
    if not values:
        why = "No predictor is in any model of the path."
        return absent("coefficient_path", "regression", _TITLES["coefficient_path"], why, half=True)
    low, high = penalties[-1][1], penalties[0][1]
    named = sorted(ends, key=lambda name: -abs(ends[name][0]))[:_NAMED_LINES]
    values += [
        {"end": low, "at": at, "name": name, "group": ends[name][1]}
        for name, at in _spread({name: ends[name][0] for name in named}, values).items()
    ]
    values += _choice_values(table)
    caption = (
        "Adaptive LASSO: standardised coefficients of all predictors as the penalty gets weaker, from left "
        "to right. Dashed: the penalty of least held-out error, the strongest within one standard error "
        f"(SE) of it, and that of BIC. Names: the {len(named)} largest coefficients at the weakest penalty."
    )
    alt = f"Paths of {len(ends)} coefficients. Largest at the weakest penalty: " + "; ".join(
        f"{name} {number_text(ends[name][0])}" for name in named[:5]
    )
    body = _path_body([low, high], [group for _, group in ends.values()])
    return _figure("coefficient_path", caption, alt + ".", values, body)


def _path_body(domain: list[float], groups: list[str]) -> Spec:
    colour = group_colour(groups)
    y: Spec = {"type": "quantitative", "axis": axis("standardised coefficient")}
    shown = tooltips(predictor="predictor", group="group", beta__f="coefficient")
    return {
        "height": 380,
        "encoding": {"x": _penalty_axis(domain)},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.predictor)"}],
                "mark": {"type": "line", "strokeWidth": 1.8},
                "encoding": {
                    "y": {"field": "beta", **y},
                    "color": colour,
                    "detail": {"field": "predictor"},
                    "tooltip": shown,
                },
            },
            *_choice_layers(),
            {
                "transform": [{"filter": "isValid(datum.name)"}],
                "mark": {"type": "text", "align": "left", "dx": 5, "fontSize": 11},
                "encoding": {
                    "x": {"field": "end", "type": "quantitative"},
                    "y": {"field": "at", **y},
                    "text": {"field": "name"},
                    "color": colour,
                },
            },
        ],
    }


def _spread(ends: dict[str, float], values: list[dict[str, Any]]) -> dict[str, float]:
    """Places of names beside the ends of their lines, far enough from each other to be read."""
    betas = [value["beta"] or 0.0 for value in values]
    step = _NAME_STEP * (max(betas) - min(betas) or 1.0)
    ranked = sorted(ends, key=lambda name: (ends[name], name))
    places = [ends[name] for name in ranked]
    for _ in range(100):
        moved = False
        for k in range(1, len(places)):
            lack = step - (places[k] - places[k - 1])
            if lack > 1e-9:
                places[k - 1] -= lack / 2
                places[k] += lack / 2
                moved = True
        if not moved:
            break
    return dict(zip(ranked, places, strict=True))


def _error(table: StudyTable) -> StudyFigure:
    deviances = table.numbers("cv_deviance")
    errors = table.numbers("cv_se") if "cv_se" in table else [None] * len(deviances)
    kept = table.integers("nonzero")
    values: list[dict[str, Any]] = [
        {
            "penalty": x,
            "deviance": deviance,
            "low": deviance - (errors[at] or 0.0),
            "high": deviance + (errors[at] or 0.0),
            "kept": kept[at],
        }
        for at, x in _penalties(table)
        if (deviance := deviances[at]) is not None
    ]
    if not values:
        why = "No held-out error was computed."
        return absent("held_out_error", "regression", _TITLES["held_out_error"], why, half=True)
    least = min(values, key=lambda value: value["deviance"])
    domain = [min(value["penalty"] for value in values), max(value["penalty"] for value in values)]
    values += _choice_values(table)
    caption = (
        "Deviance per clonotype that was held out, mean over folds; the band is one standard error to both "
        f"sides. It is least, {least['deviance']:.4f}, with {least['kept']} predictors."
    )
    alt = f"Curve of held-out deviance against penalty. {caption}"
    y: Spec = {
        "type": "quantitative",
        "axis": axis("held-out deviance per clonotype"),
        "scale": {"zero": False},
    }
    shown = tooltips(deviance__f="deviance", low__f="from", high__f="to", kept__i="predictors kept")
    body: Spec = {
        "height": 380,
        "encoding": {"x": _penalty_axis(domain)},
        "layer": [
            {
                "transform": [{"filter": "isValid(datum.deviance)"}],
                "mark": {"type": "area", "color": "$count", "opacity": 0.2},
                "encoding": {"y": {"field": "low", **y}, "y2": {"field": "high"}},
            },
            {
                "transform": [{"filter": "isValid(datum.deviance)"}],
                "mark": {
                    "type": "line",
                    "color": "$count",
                    "strokeWidth": 2,
                    "point": {"size": 20, "color": "$count"},
                },
                "encoding": {"y": {"field": "deviance", **y}, "tooltip": shown},
            },
            *_choice_layers(),
        ],
    }
    return _figure("held_out_error", caption, alt, values, body)
