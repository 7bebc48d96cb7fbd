"""Figures of the regression: coefficients along the penalty, models compared, held-out predictions."""

from __future__ import annotations

import math
from typing import Any, Final

from plait.reports.figure import (
    FILE_WIDTH,
    GROUP_COLOURS,
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

_WHY_NOT: Final = "The study has no regression: it was left out, or there was nothing to tell apart."
_PREDICTION_TITLES: Final = {
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
    """Calibration and ROC curves of held-out predictions."""
    figures = []
    for name, draw in (("calibration", _calibration), ("roc", _roc)):
        table = study.table(name)
        if table is None:
            figures.append(absent(name, "regression", _PREDICTION_TITLES[name], _WHY_NOT, half=True))
        else:
            figures.append(draw(study, table))
    return figures


def _prediction_figure(
    name: str, caption: str, alt: str, values: list[dict[str, Any]], body: Spec
) -> StudyFigure:
    body = {"width": FILE_WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}} | body
    return StudyFigure(
        name, "regression", _PREDICTION_TITLES[name], caption, alt, spec_of(values, body, alt), half=True
    )


def _calibration(study: Study, table: StudyTable) -> StudyFigure:
    names = [name for name in ("predicted", "observed", "low", "high", "n") if name in table]
    values = [dict(zip(names, cells, strict=True)) for cells in zip(*map(table.numbers, names), strict=True)]
    values = [value for value in values if value["predicted"] is not None and value["observed"] is not None]
    if not values:
        why = "No prediction was held out."
        return absent("calibration", "regression", _PREDICTION_TITLES["calibration"], why, half=True)
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
    return _prediction_figure("calibration", caption, alt, values, body)


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
    return _prediction_figure("roc", caption, alt, values, body)


def _areas(study: Study) -> dict[str, float]:
    table = study.table("group_comparison")
    if table is None or "auc" not in table:
        return {}
    return {
        MODELS.get(model, model): auc
        for model, auc in zip(table.texts("model"), table.numbers("auc"), strict=True)
        if auc is not None
    }


_GROUPS: Final = {
    "path_count": "path counts",
    "pgen": "Pgen",
    "n2": "N2",
    "n1": "N1",
    "ndn": "V-J gap",
    "region": "regions",
    "v_family": "V family",
    "j_family": "J family",
}


def predictor_groups(study: Study) -> dict[str, str]:
    """Names of groups by predictor."""
    table = study.table("predictors")
    found = table.rows("predictor", "group") if table else ()
    return {predictor: _GROUPS.get(group, group) for predictor, group in found}


def group_colour(groups: list[str]) -> Spec:
    """The colour channel of marks that have a field ``group``, of all groups that are drawn."""
    colours = {_GROUPS.get(group, group): colour for group, colour in GROUP_COLOURS.items()}
    names = [group for group in colours if group in groups]
    names += sorted(set(groups) - set(names))
    return {
        "field": "group",
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": [colours.get(name, "$ink") for name in names]},
        "legend": {"symbolOpacity": 1},
    }


def predictor_meanings(study: Study) -> dict[str, str]:
    """What predictors mean, by name; empty without predictors."""
    table = study.table("predictors")
    if table is None or "meaning" not in table:
        return {}
    return dict(zip(table.texts("predictor"), table.texts("meaning"), strict=True))


#: Ways of choosing a penalty, as the tables name them and as people do.
_CHOICES: Final = {"cv_min": "least error", "cv_1se": "1 SE", "bic": "BIC"}
_PENALTY_TITLES: Final = {
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
    """Coefficients and held-out error along the penalty."""
    table = study.table("lambda_path")
    if table is None:
        return [
            absent(name, "regression", title, _WHY_NOT, half=True) for name, title in _PENALTY_TITLES.items()
        ]
    return [_path(study, table), _error(table)]


def _penalty_figure(
    name: str, caption: str, alt: str, values: list[dict[str, Any]], body: Spec
) -> StudyFigure:
    body = {"width": FILE_WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}} | body
    return StudyFigure(
        name, "regression", _PENALTY_TITLES[name], caption, alt, spec_of(values, body, alt), half=True
    )


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
        return absent("coefficient_path", "regression", _PENALTY_TITLES["coefficient_path"], why, half=True)
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
    return _penalty_figure("coefficient_path", caption, alt + ".", values, body)


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
        return absent("held_out_error", "regression", _PENALTY_TITLES["held_out_error"], why, half=True)
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
    return _penalty_figure("held_out_error", caption, alt, values, body)


_REGRESSION_TITLES: Final = {
    "group_comparison": "Path counts or N2? Models beside each other",
    "coefficients": "Standardised coefficients",
}


def regression_figures(study: Study) -> list[StudyFigure]:
    """Models of predictor groups beside each other, and coefficients."""
    drawn = {
        "group_comparison": ("group_comparison", _comparison),
        "coefficients": ("coefficients", _coefficients),
    }
    figures = []
    for name, (source, draw) in drawn.items():
        table = study.table(source)
        if table is None:
            figures.append(absent(name, "regression", _REGRESSION_TITLES[name], _WHY_NOT))
        else:
            figures.append(draw(study, table))
    return figures


def _regression_figure(
    name: str, caption: str, alt: str, values: list[dict[str, Any]], body: Spec
) -> StudyFigure:
    body = {"width": FILE_WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}} | body
    spec = spec_of(values, body, alt)
    return StudyFigure(name, "regression", _REGRESSION_TITLES[name], caption, alt, spec)


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
    return _regression_figure("group_comparison", caption, alt, values, body)


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
    return _regression_figure("coefficients", caption, alt, values, _coefficient_body(values))


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
