"""The report of a study: one HTML file, every figure as PNG and SVG beside it, and what a terminal is told.

Here are the figures of the repertoires, too: gene usage, CDR3 lengths and N nucleotides; and those of the
regression: coefficients along the penalty, models compared, held-out predictions.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from plait._version import __version__
from plait.formats.atomic import AtomicFile, output_errors
from plait.reports.figure import (
    GROUP_COLOURS,
    LEAST_IN_A_POINT,
    DrawnFigure,
    Spec,
    StudyFigure,
    absent,
    check_report_drawing,
    drawing,
    drawn,
    drawn_with,
    gene_order,
    number_text,
    short_names,
)
from plait.reports.figures_repertoires import public_figures, subject_figures
from plait.reports.figures_sharing import (
    correlation_figures,
    distribution_figures,
    driver_figures,
    pgen_figures,
    pgen_sweep_figures,
    sweep_figures,
)
from plait.reports.page import Results, StudyTable, as_given, as_read, listed, read_study, report_page
from plait.reports.plain_text import aligned, large_number, paragraph, percent, plural, rate_text
from plait.vdj.convergence.claims import as_text, number, read_table
from plait.vdj.convergence.study import Study

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


_MOST_GENES = 70
_MOST_SUBJECTS = 24
_SPANS: Final = {"n1": "N1 (V-D)", "n2": "N2 (D-J)", "ndn": "V-J gap (N1, D, N2)"}


def gene_figures(study: Results) -> list[StudyFigure]:
    """Heat maps of V and J genes: clonotypes, and the share of shared ones."""
    table = study.table("vj_usage")
    if table is None:
        why = "The study has no clonotypes with a V and a J gene."
        return [absent(name, why) for name in ("vj_usage", "vj_shared")]
    values, left = _gene_values(table)
    v = sorted({value["v"] for value in values}, key=gene_order)
    j = sorted({value["j"] for value in values}, key=gene_order)
    most = max(values, key=lambda value: value["clonotypes"])
    n = sum(table.integers("clonotypes"))
    rest = f" Genes with fewest clonotypes are left out: {left}." if left else ""
    usage = f"Colour: clonotypes of all subjects together, log scale; n = {n:,}.{rest}"
    alt = (
        f"Heat map of {len(v)} V genes by {len(j)} J genes. Most clonotypes have {most['v']} with "
        f"{most['j']}: {most['clonotypes']:,}."
    )
    places = {("v", gene): at for at, gene in enumerate(v)} | {("j", gene): at for at, gene in enumerate(j)}
    for value in values:
        value |= {"row": places["v", value["v"]], "column": places["j", value["j"]]}
    figures = [_heat_map("vj_usage", usage, alt, values, "clonotypes")]
    enough = [value for value in values if value["clonotypes"] >= LEAST_IN_A_POINT]
    if study.number("subjects") < 2 or not enough:
        why = "There is one subject only." if enough else "No pair of genes has enough clonotypes."
        return [*figures, absent("vj_shared", why)]
    share = (
        f"Colour: share of clonotypes found in {study.shared_by} or more subjects, for pairs of at least "
        f"{LEAST_IN_A_POINT} clonotypes.{rest}"
    )
    top = max(enough, key=lambda value: value["share"])
    alt = (
        f"Heat map of the share of shared clonotypes by V and J gene. It is largest for {top['v']} with "
        f"{top['j']}: {top['share']:.1%} of {top['clonotypes']:,}."
    )
    return [*figures, _heat_map("vj_shared", share, alt, enough, "share")]


def _gene_values(table: StudyTable) -> tuple[list[dict[str, Any]], int]:
    """One value for every pair of genes; with the number of genes left out."""
    columns = ("v_gene", "j_gene", "clonotypes:i", "shared_clonotypes:i", "rows:i")
    pairs = list(table.rows(*columns))
    kept, left = [], 0
    for names in ([pair[0] for pair in pairs], [pair[1] for pair in pairs]):
        sizes: dict[str, int] = defaultdict(int)
        for name, pair in zip(names, pairs, strict=True):
            sizes[name] += pair[2]
        ranked = sorted(sizes, key=lambda gene: (-sizes[gene], gene))
        kept.append(set(ranked[:_MOST_GENES]))
        left += max(0, len(ranked) - _MOST_GENES)
    values = [
        {"v": v or "none", "j": j or "none", "clonotypes": n, "shared": k, "rows": rows, "share": k / n}
        for v, j, n, k, rows in pairs
        if v in kept[0] and j in kept[1] and n
    ]
    return values, left


def _heat_map(name: str, caption: str, alt: str, values: list[dict[str, Any]], field: str) -> StudyFigure:
    counts = field == "clonotypes"
    most = max(value[field] for value in values)
    legend: dict[str, Any] = {"title": field if counts else "shared"}
    scale: dict[str, Any] = {"zero": True}
    if counts and most > 1:
        scale = {"type": "log", "nice": False, "domain": [min(value[field] for value in values), most]}
        powers = [10**k for k in range(len(str(most)))]
        legend["values"] = [power for power in powers if 2.5 * power < most] + [most]
    legend["format"] = ".3~s" if counts else "~p"
    height = max(120, 17 * len({value["v"] for value in values}))
    return drawn(name, caption, alt, values, field=field, scale=scale, legend=legend, height=height)


def repertoire_figures(study: Results) -> list[StudyFigure]:
    """Gene usage, rarefaction, CDR3 lengths and N composition."""
    figures = [*gene_figures(study), *subject_figures(study)]
    return [*figures, _length_figure(study), _composition_figure(study)]


def _length_figure(study: Results) -> StudyFigure:
    table = study.table("cdr3_lengths")
    if table is None:
        return absent("cdr3_lengths", "The study has no junction lengths.")
    spectra: dict[str, dict[int, int]] = defaultdict(dict)
    for subject, length, n in table.rows("subject", "junction_length:i", "clonotypes:i"):
        spectra[subject][length] = spectra[subject].get(length, 0) + n
    sizes = {subject: sum(spectrum.values()) for subject, spectrum in spectra.items()}
    ranked = sorted(sizes, key=lambda subject: (-sizes[subject], subject))[:_MOST_SUBJECTS]
    everything = sum(sizes.values())
    together: dict[int, int] = defaultdict(int)
    for spectrum in spectra.values():
        for length, n in spectrum.items():
            together[length] += n
    names = short_names(ranked)
    values = [
        {
            # Beside the name, so that a panel tells how many it is drawn from.
            "panel": f"{names[subject]} (n = {sizes[subject]:,})",
            "length": length,
            "from": length - 0.45,
            "to": length + 0.45,
            "share": spectra[subject].get(length, 0) / max(sizes[subject], 1),
            "all": together[length] / max(everything, 1),
            "clonotypes": spectra[subject].get(length, 0),
            "frame": "in frame" if length % 3 == 0 else "out of frame",
            "order": order,
            "subject": subject,
        }
        for order, subject in enumerate(sorted(ranked, key=gene_order))
        for length in sorted(together)
    ]
    left = len(sizes) - len(ranked)
    inside = sum(n for length, n in together.items() if length % 3 == 0) / max(everything, 1)
    peak = max(together, key=lambda length: (together[length], -length))
    caption = (
        "Share of each subject's clonotypes by length of the junction (CDR3 with both conserved codons); "
        f"the dots are all subjects together. {inside:.1%} are in frame."
    )
    if left:
        caption += (
            f" The {_MOST_SUBJECTS} subjects with most clonotypes are drawn; {left} others are in the table."
        )
    alt = (
        f"Histograms of junction lengths, one for each of {len(ranked)} subjects. The commonest length of "
        f"all together is {peak} nt; {inside:.1%} of clonotypes are in frame."
    )
    return drawn("cdr3_lengths", caption, alt, values)


def _composition_figure(study: Results) -> StudyFigure:
    table = study.table("n_composition")
    if table is None:
        return absent("n_composition", "The study has no N nucleotides: no regions were called.")
    columns = ("span", "base", "shared", "share:f", "low:f", "high:f", "nucleotides:i")
    values = [
        {
            "span": _SPANS.get(span, span),
            "base": base.upper(),
            "group": "shared" if shared in ("T", "true", "True", "1") else "unshared",
            "share": share,
            "low": low,
            "high": high,
            "n": n,
        }
        for span, base, shared, share, low, high, n in table.rows(*columns)
        if share is not None
    ]
    if not values:
        return absent("n_composition", "The study has no N nucleotides.")
    rich = {
        group: sum(
            x["n"] for x in values if x["group"] == group and x["base"] in "AT" and "N2 (" in x["span"]
        )
        / max(1, sum(x["n"] for x in values if x["group"] == group and "N2 (" in x["span"]))
        for group in ("shared", "unshared")
    }
    caption = (
        "Share of each nucleotide among the N nucleotides of a junction, with 95 % intervals. "
        f"A and T together in N2: {rich['shared']:.1%} shared, {rich['unshared']:.1%} unshared. "
        f"n = {sum(x['n'] for x in values):,} nucleotides in all panels."
    )
    alt = (
        "Shares of A, C, G and T in N1, N2 and the whole V-J gap for shared and unshared clonotypes. A and "
        f"T make up {rich['shared']:.1%} of N2 nucleotides where shared and {rich['unshared']:.1%} where not."
    )
    spans = [span for span in _SPANS.values() if any(x["span"] == span for x in values)]
    return drawn("n_composition", caption, alt, values, spans=spans)


_MOST_INPUTS: Final = 500


def study_page(study: Results, figures: Sequence[StudyFigure]) -> str:
    """The whole page as HTML; figures are those of `study_figures`."""
    clonotypes, subjects = study.number("clonotypes"), study.number("subjects")
    rows, shared = study.number("rows"), study.number("shared_clonotypes")
    left_out = study.entries("left_out")
    left = sum(int(study.decimal(left_out, reason)) for reason in left_out)
    facts = [("subjects", f"{subjects:,}"), ("rows", f"{rows:,}"), ("clonotypes", f"{clonotypes:,}")]
    if subjects > 1:
        share = f" ({shared / clonotypes:.1%})" if clonotypes else ""
        facts.append((f"in {study.shared_by} or more subjects", f"{shared:,}{share}"))
    facts.append(("rows left out", f"{left:,}"))
    told = study.entries("regression").get("warnings")
    return report_page(
        "study",
        study,
        figures,
        title=f"Convergent recombination in {subjects:,} subject{'' if subjects == 1 else 's'}",
        facts=facts,
        methods=_methods(study),
        warnings={"regression": [str(text) for text in told] if isinstance(told, list) else []},
    )


def _methods(study: Results) -> list[dict[str, Any]]:
    described = study.description
    parts: list[dict[str, Any]] = []
    for key, title in (("parameters", "Parameters"), ("provenance", "Versions and provenance")):
        rows = listed(study.entries(key))
        if key == "provenance":
            made = [["study made by plait", as_given(described.get("version", "unknown"))]]
            rows = [*made, ["report made by plait", __version__], ["figures drawn with", drawn_with()], *rows]
        parts.append({"title": title, "rows": rows})
    inputs = [
        [
            str(item.get("file", "")),
            ", ".join(f"{k}: {as_given(v)}" for k, v in item.items() if k != "file"),
        ]
        for item in study.items("inputs")
    ]
    parts.append({"title": f"Inputs ({len(inputs):,})", "rows": inputs[:_MOST_INPUTS]})
    if len(inputs) > _MOST_INPUTS:
        parts[-1]["rows"].append([f"{len(inputs) - _MOST_INPUTS:,} more", "in study.json"])
    left = listed(study.entries("left_out"), lambda n: f"{as_given(n)} rows")
    parts.append({"title": "Rows left out", "rows": left or [["none", ""]]})
    regression = {name: value for name, value in study.entries("regression").items() if name != "warnings"}
    timings = listed(study.entries("timings"), lambda seconds: f"{as_read(seconds)} s")
    others = (("Regression", listed(regression, as_read)), ("Time taken", timings))
    return [*parts, *({"title": title, "rows": rows} for title, rows in others if rows)]


@dataclass(frozen=True, slots=True)
class StudyReport:
    """What was written: the page, its bytes, PNG and SVG of each figure.

    `missing`: titles of figures that the study has no data for.
    """

    page: Path
    page_bytes: int
    figures: tuple[Path, ...]
    missing: tuple[str, ...]


def study_figures(study: Results) -> list[StudyFigure]:
    """All figures, in the order of the page; FormatError if a table is not what it should be."""
    return [
        *public_figures(study),
        *driver_figures(study),
        *pgen_figures(study),
        *distribution_figures(study),
        *regression_figures(study),
        *correlation_figures(study),
        *sweep_figures(study),
        *pgen_sweep_figures(study),
        *repertoire_figures(study),
    ]


def write_study_report(
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    figures: bool = True,
    progress: Callable[[str], None] | None = None,
) -> StudyReport:
    """Write the report of a finished study: a page, by default ``report.html`` in its folder, and figures.

    Reads only ``study.json`` and ``tables``; writes figures to ``figures`` there. `progress` gets each
    figure's name before it is drawn. TargetUnavailable if what draws is not installed; InvalidInput if it is
    no finished study, or the output cannot have its name; FormatError if the study is damaged, or the page
    cannot be written.
    """
    check_report_drawing()
    study = read_study(folder)
    page = Path(output) if output is not None else study.folder / "report.html"
    shown = study_figures(study)
    with drawing(shown if figures else ()) as finish, AtomicFile(page) as file, output_errors(page):
        content = study_page(study, shown).encode("utf-8")
        file.stream.write(content)
        written = write_figures(shown, study.folder / "figures", finish, progress) if figures else []
    missing = tuple(figure.title for figure in shown if figure.spec is None)
    return StudyReport(page, len(content), tuple(written), missing)


def write_figures(
    figures: Sequence[StudyFigure],
    folder: Path,
    drawn: Callable[[], Iterator[DrawnFigure]],
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Write figures to a folder as PNG and SVG, as they are `drawn`; `progress` gets each name."""
    written = []
    with output_errors(folder):
        folder.mkdir(exist_ok=True)
        # A figure of an earlier run, of which this one has none, would tell what is not so any more.
        for figure in figures:
            for kind in ("png", "svg") if figure.spec is None else ():
                (folder / f"{figure.name}.{kind}").unlink(missing_ok=True)
    for figure, contents in drawn():
        if progress is not None:
            progress(figure.name)
        for kind, content in zip(("png", "svg"), contents, strict=True):
            path = folder / f"{figure.name}.{kind}"
            with AtomicFile(path, durable=False) as file, output_errors(path):
                file.stream.write(content)
            written.append(path)
    return written


#: Sharing levels that are shown; the others are in the table.
_MOST_LEVELS = 10


def study_text(found: Study, *, seconds: float) -> str:
    """The study in lines that fit a terminal."""
    facts = found.facts
    reused = sum(entry["counts_reused"] for entry in facts["inputs"])
    lines = [
        f"{facts['rows']:,} rows of {plural(len(facts['inputs']), 'file')}, "
        f"{plural(facts['subjects'], 'subject')} {rate_text(facts['rows'], seconds)}",
        f"{plural(facts['clonotypes'], 'clonotype')}, {facts['shared_clonotypes']:,} of them shared by "
        f"{facts['shared_by']} subjects or more",
    ]
    if reused:
        lines += paragraph(f"Path counts of {plural(reused, 'file')} were there already.")
    lines += _left_out_lines(found)
    for note in facts["notes"]:
        lines += paragraph(f"Note: {note}")
    if facts["clonotypes"]:
        lines += ["", *_level_lines(found)]
    for answer in facts["answers"]:
        lines += ["", *paragraph(answer["headline"]), *paragraph(_short(answer), indent=2)]
    for warning in facts["regression"].get("warnings", ()):
        lines += ["", *paragraph(f"Regression: {warning}")]
    lines += ["", f"tables   {found.folder / 'tables'}", f"answers  {found.folder / 'study.json'}"]
    lines += [f"report   plait vdj report {found.folder}"]
    return "\n".join(lines) + "\n"


def _short(answer: Mapping[str, Any]) -> str:
    """The text of an answer; of a correlation its figures over all alone."""
    figures = answer["figures"]
    if figures.get("spearman") is None:
        return str(answer["text"])
    rho, low, high = (figures[f"spearman{end}"] for end in ("", "_low", "_high"))
    interval = "" if low is None or high is None else f" ({as_text(low)} to {as_text(high)})"
    return f"Spearman's rho {as_text(rho)}{interval}, n = {figures['n']:,}"


def _left_out_lines(found: Study) -> list[str]:
    facts = found.facts
    lines = []
    for reason, rows in sorted(facts["left_out"].items()):
        share = percent(rows, facts["rows"])
        are = f"{plural(rows, 'row')} ({share}) {'is' if rows == 1 else 'are'}"
        lines += paragraph(f"{are} in no clonotype: {reason.replace('_', ' ', 1)}.")
    uncounted = facts["clonotypes"] - facts["counted_clonotypes"]
    if uncounted:
        share = percent(uncounted, facts["clonotypes"])
        have = f"{plural(uncounted, 'clonotype')} ({share}) {'has' if uncounted == 1 else 'have'}"
        lines += paragraph(f"{have} no path count; statuses.tsv says why{_most_often(found)}.")
    return lines


def _most_often(found: Study) -> str:
    """The most frequent reason for which rows were not counted."""
    statuses = [row for row in read_table(found.tables["statuses"]) if row["status"] != "ok"]
    if not statuses:
        return ""
    most = max(statuses, key=lambda row: int(row["rows"]))
    return f"; most often: {most['meaning']} ({plural(int(most['rows']), 'row')})"


def _level_lines(found: Study) -> list[str]:
    levels = read_table(found.tables["sharing_levels"])
    rows = [["subjects", "clonotypes", "median count", "middle half of counts", "mean N2"]]
    for level in levels[:_MOST_LEVELS]:
        ends = [large_number(number(level[f"path_count_q{q}"])) for q in (25, 75)]
        middle = "-" if ends == ["-", "-"] else " - ".join(ends)
        length = number(level.get("n2_length_mean"))
        rows.append(
            [
                level["subjects"],
                f"{int(level['clonotypes']):,}",
                large_number(number(level["path_count_q50"])),
                middle,
                "-" if length is None else f"{length:.2f}",
            ]
        )
    lines = aligned(rows, ">>>>>")
    if len(levels) > _MOST_LEVELS:
        lines += [f"  and {len(levels) - _MOST_LEVELS} more, in sharing_levels.tsv"]
    return lines


def report_text(written: StudyReport) -> str:
    """Where figures and page are; the page last, so that a script finds it."""
    lines = []
    if written.missing:
        missing = "; ".join(written.missing)
        lines += paragraph(f"{len(written.missing)} figures have no data in this study: {missing}.")
    if written.figures:
        number = len(written.figures) // 2
        lines.append(f"figures  {written.figures[0].parent} ({number} as PNG and SVG)")
    lines.append(f"page     {written.page} ({written.page_bytes / 1e6:.1f} MB)")
    return "\n".join(lines) + "\n"
