"""Figures of the regression: coefficients along the penalty, models compared, held-out predictions.

A module of its own: with `study_report` and `figures_sharing` it would be too long a file.
"""

from __future__ import annotations

import math
from typing import Any, Final

from plait.reports.figure import GROUP_COLOURS, Spec, StudyFigure, absent, drawn, number_text
from plait.reports.page import Results, StudyTable

_WHY_NOT: Final = "The study has no regression: it was left out, or there was nothing to tell apart."
#: Models of predictor groups, as tables name them and as people do.
_MODELS: Final = {
    "counts_only": "path counts only",
    "n2_only": "N2 only",
    "counts_and_n2": "path counts and N2",
    "all": "all predictors",
    "all_without_counts": "all but path counts",
    "all_without_n2": "all but N2",
    "pgen_only": "Pgen only",
    "counts_and_pgen": "path counts and Pgen",
    "all_without_pgen": "all but Pgen",
}
#: Models whose curves are drawn; more could not be told from each other.
_ROC_COLOURS: Final = {
    "counts_only": "$count",
    "n2_only": "$n2",
    "counts_and_n2": "$n1",
    "pgen_only": "$pgen",
    "all": "$ink",
}


def regression_figures(study: Results) -> list[StudyFigure]:
    """Models of predictor groups beside each other, coefficients, penalties, and held-out predictions."""
    figures = []
    for name, source, draw in (
        ("group_comparison", "group_comparison", _comparison),
        ("coefficients", "coefficients", _coefficients),
        ("coefficient_path", "lambda_path", _path),
        ("held_out_error", "lambda_path", _error),
        ("calibration", "calibration", _calibration),
        ("roc", "roc", _roc),
    ):
        table = study.table(source)
        figures.append(absent(name, _WHY_NOT) if table is None else draw(study, table))
    return figures


def _calibration(study: Results, table: StudyTable) -> StudyFigure:
    names = [name for name in ("predicted", "observed", "low", "high", "n") if name in table]
    values = table.records(*(f"{name}:f" for name in names))
    values = [value for value in values if value["predicted"] is not None and value["observed"] is not None]
    if not values:
        return absent("calibration", "No prediction was held out.")
    n = sum(value.get("n") or 0 for value in values)
    top = max(max(v["predicted"] or 0, v["observed"] or 0, v.get("high") or 0) for v in values)
    caption = (
        "Clonotypes in bins of the predicted probability of being shared, against the share that is; bars: "
        f"95 % intervals; on the line both are equal. n = {number_text(n)} clonotypes."
    )
    far = max(abs((value["predicted"] or 0) - (value["observed"] or 0)) for value in values)
    alt = f"Observed against predicted share in {len(values)} bins; the largest difference is {far:.3f}."
    return drawn("calibration", caption, alt, values, top=top * 1.03)


def _roc(study: Results, table: StudyTable) -> StudyFigure:
    present = set(table.texts("model"))
    shown = [model for model in _ROC_COLOURS if model in present] or sorted(present)[: len(_ROC_COLOURS)]
    values = [
        {"model": _MODELS.get(model, model), "false": false, "true": true}
        for model, false, true in table.rows("model", "false_positive_rate:f", "true_positive_rate:f")
        if model in shown and false is not None and true is not None
    ]
    models = [_MODELS.get(model, model) for model in shown]
    areas = _areas(study)
    caption = "Held-out clonotypes ranked by predicted probability; the dashed line is what guessing gives."
    told = ", ".join(f"{model} {areas[model]:.3f}" for model in models if model in areas)
    if told:
        caption += f" Area under the curve: {told}."
    if len(present) > len(shown):
        caption += " Other models are in the table."
    alt = f"ROC curves of {', '.join(models)}. Area under the curve: {told or 'not known'}."
    # The models that are known have colours of their own.
    others = list(_ROC_COLOURS.values())
    colours = [_ROC_COLOURS.get(model, others[at]) for at, model in enumerate(shown)]
    return drawn("roc", caption, alt, values, models=models, colours=colours)


def _areas(study: Results) -> dict[str, float]:
    table = study.table("group_comparison")
    if table is None or "auc" not in table:
        return {}
    return {_MODELS.get(model, model): auc for model, auc in table.rows("model", "auc:f") if auc is not None}


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


def _predictor_groups(study: Results) -> dict[str, str]:
    """Names of groups by predictor."""
    table = study.table("predictors")
    found = table.rows("predictor", "group") if table else ()
    return {predictor: _GROUPS.get(group, group) for predictor, group in found}


def _group_colour(groups: list[str]) -> Spec:
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


#: Ways of choosing a penalty, as the tables name them and as people do.
_CHOICES: Final = {"cv_min": "least error", "cv_1se": "1 SE", "bic": "BIC"}
_NAMED_LINES = 8
#: Least distance of two names at the ends of lines, as a share of the height.
_NAME_STEP = 0.048
#: Columns of lambda_path.tsv that are no predictors.
_NOT_PREDICTORS: Final = frozenset(
    ("index", "lambda", "nonzero", "deviance_explained", "bic", "cv_deviance", "cv_se", "chosen")
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


def _path(study: Results, table: StudyTable) -> StudyFigure:
    groups = _predictor_groups(study)
    penalties = _penalties(table)
    values: list[dict[str, Any]] = []
    ends = {}
    for predictor in table.columns:
        betas = [] if predictor in _NOT_PREDICTORS else table.numbers(predictor)
        if not any(betas):
            continue
        name = predictor.replace("_", " ")
        group = groups.get(predictor, "other")
        values += [
            {"penalty": x, "predictor": name, "group": group, "beta": betas[at]} for at, x in penalties
        ]
        ends[name] = (betas[penalties[-1][0]] or 0.0, group)
    if not values:
        return absent("coefficient_path", "No predictor is in any model of the path.")
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
    colour = _group_colour([group for _, group in ends.values()])
    return drawn("coefficient_path", caption, alt + ".", values, domain=[low, high], group=colour)


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


def _error(study: Results, table: StudyTable) -> StudyFigure:
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
        return absent("held_out_error", "No held-out error was computed.")
    least = min(values, key=lambda value: value["deviance"])
    penalties = [value["penalty"] for value in values]
    caption = (
        "Deviance per clonotype that was held out, mean over folds; the band is one standard error to both "
        f"sides. It is least, {least['deviance']:.4f}, with {least['kept']} predictors."
    )
    alt = f"Curve of held-out deviance against penalty. {caption}"
    values += _choice_values(table)
    return drawn("held_out_error", caption, alt, values, domain=[min(penalties), max(penalties)])


def _comparison(study: Results, table: StudyTable) -> StudyFigure:
    names = ("delta_vs_all", "delta_low", "delta_high", "auc", "auc_low", "auc_high", "predictors", "n")
    columns = {name: table.numbers(name) if name in table else None for name in names}
    values: list[dict[str, Any]] = []
    for at, model in enumerate(table.texts("model")):
        cells = {name: None if column is None else column[at] for name, column in columns.items()}
        if cells["delta_vs_all"] is None:
            continue
        auc = "" if cells["auc"] is None else f"AUC {cells['auc']:.3f}"
        values.append({"model": _MODELS.get(model, model), "told": auc, **cells})
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
    return drawn("group_comparison", caption, alt, values, height=44 * len(values) + 10)


def _coefficients(study: Results, table: StudyTable) -> StudyFigure:
    groups = _predictor_groups(study)
    predictors = study.table("predictors")
    told = predictors.rows("predictor", "meaning") if predictors and "meaning" in predictors else ()
    meanings = dict(told)
    names = ("cv_1se", "mle", "mle_low", "mle_high", "stability", "odds_ratio_per_sd")
    columns = {name: table.numbers(name) for name in names if name in table}
    values: list[dict[str, Any]] = []
    for at, predictor in enumerate(table.texts("predictor")):
        chosen, *cells = (columns[name][at] if name in columns else None for name in names)
        value = dict(zip(names[1:], cells, strict=True))
        stability = value["stability"]
        values.append(
            {
                "predictor": predictor.replace("_", " "),
                "group": groups.get(predictor, "other"),
                "meaning": meanings.get(predictor, ""),
                "told": "" if stability is None else f"{stability:.0%}",
                "chosen": chosen,
                **value,
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
    given = {"height": 30 * len(values) + 10, "group": _group_colour([value["group"] for value in values])}
    return drawn("coefficients", caption, alt, values, **given)
