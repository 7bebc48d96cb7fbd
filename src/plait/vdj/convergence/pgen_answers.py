"""Which predicts sharing better, path counts or generation probability? The comparison in words.

A module of its own: with `answers` it would fill a file, and Pgen is told of in words of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from plait.vdj.convergence.claims import (
    Estimate,
    Verdict,
    answer,
    as_text,
    ends_text,
    estimate_of,
    few_sentence,
    few_text,
    number,
    percent,
    verdict,
    whole,
)
from plait.vdj.convergence.pgen_tables import FEWEST_SUBJECTS

_Row = Mapping[str, Any]

_PGEN: Final = "generation probability"
_COUNTS: Final = "path counts"
_UNKNOWN_SOURCE: Final = (
    "If the model was inferred from these repertoires, or from others of the same individuals, it has seen "
    "what it predicts; a model of other data is the better judge."
)
_SELECTION: Final = (
    "Both tell what recombination makes, while sharing is seen after selection, and depends on how deeply "
    "each subject was sequenced. What predicts better is not for that a cause."
)
_WITH_CALLS: Final = (
    "It holds how often the V and J gene of a clonotype are chosen, which path counts do not; within a pair "
    "of genes that is constant."
)
_WITHOUT_CALLS: Final = (
    "It is summed over all genes of the model, and holds how often these are chosen; path counts are of the "
    "genes that are called."
)
#: The models of `PGEN_PAIRS` that have one group of predictors each.
_ALONE: Final = ("pgen_only", "counts_only")
#: Share of clonotypes without Pgen from which the headline tells it.
_MANY_WITHOUT: Final = 0.1
_NAMES: Final = {"spearman": "rank correlation", "auc": "area under the ROC curve"}


def pgen_answer(
    study: Mapping[str, Any],
    rows: Sequence[_Row],
    correlations: Sequence[_Row],
    groups: Sequence[_Row] = (),
) -> dict[str, Any] | None:
    """The answer, or None where the study has no generation probabilities.

    `study` is study.json as far as it is known: ``pgen``, ``parameters``, ``clonotypes``,
    ``shared_clonotypes``, ``subjects``. The others are rows of pgen_comparison.tsv, correlations.tsv and
    pgen_groups.tsv (none without a regression).
    """
    if not rows:
        return None
    compared = {
        (row["scope"], row["measure"]): row
        for row in rows
        if row["stratum_kind"] == "all" and row["y"] == "subjects" and row["scope"] != "sweep"
    }
    enough = (number(study.get("subjects")) or 0.0) >= FEWEST_SUBJECTS
    signs = {key: _sign(row, over_subjects=enough and key[0] == "all") for key, row in compared.items()}
    parameters = study.get("parameters", {})
    few = _few(study)
    text = [
        *(_measured(compared, measure) for measure in _NAMES),
        _above_zero(compared),
        _strata(rows),
        _sweep(rows),
        *_held_out(groups),
        _model(study, parameters),
        _WITH_CALLS if parameters.get("model_calls") != "ignore" else _WITHOUT_CALLS,
        str(parameters.get("model_note") or _UNKNOWN_SOURCE),
        _SELECTION,
        few_sentence(few),
    ]
    headline = (
        _headline(signs, correlations, rows, parameters)
        + _held_out_clause(groups, signs)
        + _without_clause(study)
    )
    headline += f" ({few})" if few else ""
    return answer("pgen_comparison", headline, text, _figures(compared, groups))


def _difference(row: _Row) -> Estimate:
    return estimate_of(row, "difference", "low", "high")


def _over_subjects(row: _Row) -> Estimate:
    return estimate_of(row, "difference", "subjects_low", "subjects_high")


def _sign(row: _Row, *, over_subjects: bool) -> Verdict:
    """Where both intervals lie: that over clonotypes, and that over subjects if there has to be one."""
    found = verdict(_difference(row))
    over = _over_subjects(row)
    if (over_subjects or over.known) and verdict(over) is not found and found is not Verdict.UNKNOWN:
        return Verdict.AROUND
    return found


def _headline(
    signs: Mapping[tuple[str, str], Verdict],
    correlations: Sequence[_Row],
    rows: Sequence[_Row],
    parameters: Mapping[str, Any],
) -> str:
    rank, area = (signs.get(("all", measure), Verdict.UNKNOWN) for measure in ("spearman", "auc"))
    if rank is Verdict.UNKNOWN and area is Verdict.UNKNOWN:
        return "Path counts and generation probability were not compared as predictors of sharing"
    sure = {one for one in (rank, area) if one in (Verdict.ABOVE, Verdict.BELOW)}
    if len(sure) == 2:
        return "Which predicts sharing better, generation probability or path counts, depends on the measure"
    cannot = "Whether generation probability or path counts predict sharing better cannot be told by ranks"
    if not sure:
        return cannot
    found = sure.pop()
    better, worse = (_PGEN, _COUNTS) if found is Verdict.ABOVE else (_COUNTS, _PGEN)
    if not _rises("pgen_nt" if found is Verdict.ABOVE else "path_count", correlations):
        # The one that goes less against sharing does not predict it.
        return cannot
    verb = "predicts" if better == _PGEN else "predict"
    rival = _rival(rows) if found is Verdict.ABOVE else None
    if rival is not None and "nu" in parameters:
        worse += f" with {_limits_text(parameters)} nucleotides"
    told = f"{better[0].upper()}{better[1:]} {verb} sharing better than {worse}"
    if rank is not area:
        measure = "spearman" if rank is found else "auc"
        told += f", by {_NAMES[measure]} alone"
    if signs.get(("above_zero", "spearman")) is not found and signs.get(("above_zero", "auc")) is not found:
        told += ", but not surely among clonotypes that both can make"
    if rival is not None:
        told += f", but not surely better than those with {_limits_text(rival)} nucleotides"
    return told


def _limits_text(model: Mapping[str, Any]) -> str:
    return f"at most {model['pi']} P and {model['nu']} N"


def _best_of_sweep(rows: Sequence[_Row], measure: str) -> _Row | None:
    """The model of the sweep whose path counts go best with sharing."""
    of_sweep = [row for row in rows if row["scope"] == "sweep" and row["measure"] == measure]
    known = [row for row in of_sweep if number(row["path_count"]) is not None]
    return max(known, key=lambda row: number(row["path_count"]) or 0.0) if known else None


def _rival(rows: Sequence[_Row]) -> _Row | None:
    """The best model of the sweep, if Pgen is not surely better than that."""
    for measure in ("auc", "spearman"):
        best = _best_of_sweep(rows, measure)
        if best is not None and verdict(_difference(best)) is not Verdict.ABOVE:
            return best
    return None


def _rises(x: str, correlations: Sequence[_Row]) -> bool:
    """Whether clonotypes with more of it are surely shared by more."""
    return any(
        verdict(estimate_of(row, "estimate", "low", "high")) is Verdict.ABOVE
        for row in correlations
        if (row["x"], row["y"], row["stratum_kind"], row["method"]) == (x, "subjects", "all", "spearman")
    )


def _measured(compared: Mapping[tuple[str, str], _Row], measure: str) -> str:
    row = compared.get(("all", measure))
    if row is None or number(row["difference"]) is None:
        return ""
    name = (
        "Spearman's rho with the number of subjects" if measure == "spearman" else "Area under the ROC curve"
    )
    pgen, counts, n = (number(row[key]) or 0.0 for key in ("pgen", "path_count", "n"))
    text = f"{name}: Pgen {as_text(pgen)}, path count {as_text(counts)}"
    return f"{text}; difference {_interval(row)}{f', n = {whole(n)}' if measure == 'spearman' else ''}."


def _interval(row: _Row) -> str:
    found, over = _difference(row), _over_subjects(row)
    if found.value is None:
        return "not known"
    if not found.known:
        return f"{as_text(found.value)}, without an interval"
    text = ends_text(found)
    if over.low is not None and over.high is not None:
        text = f"{text[:-1]}; over subjects {as_text(over.low)} to {as_text(over.high)})"
    return text


def _above_zero(compared: Mapping[tuple[str, str], _Row]) -> str:
    one, other = compared.get(("above_zero", "spearman")), compared.get(("all", "spearman"))
    if one is None or other is None or number(one["difference"]) is None:
        return ""
    zeros = (number(other["n"]) or 0.0) - (number(one["n"]) or 0.0)
    if not zeros:
        return ""
    return (
        f"{whole(zeros)} clonotypes have a Pgen or a path count of 0, the lowest rank; without them the "
        f"difference of rho is {_interval(one)}."
    )


def _strata(rows: Sequence[_Row]) -> str:
    found = [
        verdict(_difference(row))
        for row in rows
        if (row["stratum_kind"], row["y"], row["measure"]) == ("vj", "subjects", "spearman")
    ]
    known = [one for one in found if one is not Verdict.UNKNOWN]
    if not known:
        return ""
    above, below = (sum(one is state for one in known) for state in (Verdict.ABOVE, Verdict.BELOW))
    return (
        f"Within pairs of V and J gene, rho of Pgen is surely the higher one in {above:,} of {len(known):,}, "
        f"the lower one in {below:,}."
    )


def _sweep(rows: Sequence[_Row]) -> str:
    texts = []
    for measure, name in (("auc", "area under the ROC curve"), ("spearman", "rho")):
        best = _best_of_sweep(rows, measure)
        if best is not None:
            texts.append(
                f"by {name} with {_limits_text(best)} nucleotides "
                f"({as_text(number(best['path_count']) or 0.0)}; Pgen less that {_interval(best)})"
            )
    if not texts:
        return ""
    return (
        f"Of all models of the sweep path counts do best {' and '.join(texts)}. To choose the best with "
        "these data flatters it, and rho makes allowance for ties, which counts with few N nucleotides are "
        "full of."
    )


def _alone(groups: Sequence[_Row]) -> tuple[Estimate, Estimate]:
    """Pgen alone less path counts alone, held out: deviance, of which less is better, and area."""
    row = next((row for row in groups if (row["model"], row["other"]) == _ALONE), {})
    return (
        estimate_of(row, "deviance_less", "deviance_low", "deviance_high"),
        estimate_of(row, "auc_more", "auc_low", "auc_high"),
    )


def _held_out_verdict(groups: Sequence[_Row]) -> Verdict:
    """Above: Pgen alone predicts better, by deviance and not against the area; below: path counts do."""
    less, area = (verdict(one) for one in _alone(groups))
    found = {Verdict.BELOW: Verdict.ABOVE, Verdict.ABOVE: Verdict.BELOW}.get(less, less)
    against = {Verdict.ABOVE: Verdict.BELOW, Verdict.BELOW: Verdict.ABOVE}.get(found)
    return Verdict.AROUND if against is not None and area is against else found


def _held_out_clause(groups: Sequence[_Row], signs: Mapping[tuple[str, str], Verdict]) -> str:
    """What held-out predictions say where it is not what ranks say."""
    found = _held_out_verdict(groups)
    ranks = [signs.get(("all", measure)) for measure in _NAMES]
    if found not in (Verdict.ABOVE, Verdict.BELOW) or found in ranks:
        return ""
    better = _PGEN if found is Verdict.ABOVE else _COUNTS
    return f"; held out, a regression on {better} alone predicts better"


def _held_out(groups: Sequence[_Row]) -> list[str]:
    less, area = _alone(groups)
    if not (less.known and area.known):
        return []
    told = {
        Verdict.ABOVE: "Pgen alone predicts better than path counts alone",
        Verdict.BELOW: "path counts alone predict better than Pgen alone",
    }.get(_held_out_verdict(groups), "which predicts better alone cannot be told")
    texts = [
        f"Held out, in logistic regressions, {told}: deviance of Pgen less that of path counts "
        f"{ends_text(less)} a clonotype, area under the ROC curve of Pgen less that of path counts "
        f"{ends_text(area)}."
    ]
    if verdict(less) is verdict(area) and verdict(less) in (Verdict.ABOVE, Verdict.BELOW):
        texts.append(
            "The two do not agree: the one orders clonotypes better, the chances of the other, linear in the "
            "logarithm, are nearer the truth."
        )
    found = {(row["model"], row["other"]): row for row in groups}
    for text, pair in (
        ("Adding path counts to Pgen", ("counts_and_pgen", "pgen_only")),
        ("Adding Pgen to path counts", ("counts_and_pgen", "counts_only")),
    ):
        gain = estimate_of(found.get(pair, {}), "deviance_less", "deviance_low", "deviance_high")
        if gain.known:
            texts.append(f"{text} {_gained(gain)}.")
    return texts


def _gained(gain: Estimate) -> str:
    assert gain.value is not None and gain.low is not None and gain.high is not None
    state = verdict(gain)
    if state is Verdict.BELOW:
        return f"surely lowers the deviance, by {ends_text(Estimate(-gain.value, -gain.high, -gain.low))}"
    if state is Verdict.ABOVE:
        return f"raises the deviance, by {ends_text(gain)}"
    return f"changes the deviance by {ends_text(gain)}, a change of no certain sign"


def _model(study: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    pgen = study.get("pgen", {})
    text = f"Pgen is that of the junction under the model {parameters.get('recombination_model')}"
    n = number(study.get("clonotypes")) or 0.0
    parts = []
    for name, what in (("zero", "is 0 for"), ("without", "is not known for")):
        clonotypes = number(pgen.get(name)) or 0.0
        if clonotypes and n:
            parts.append(f"{what} {whole(clonotypes)} clonotypes ({percent(clonotypes / n)})")
    return f"{text}; it {' and '.join(parts)}, see pgen_statuses.tsv." if parts else f"{text}."


def _without_clause(study: Mapping[str, Any]) -> str:
    """Which part of the clonotypes nothing is said of, if that is not a small one."""
    n, without = number(study.get("clonotypes")), number(study.get("pgen", {}).get("without"))
    if not n or without is None or without < _MANY_WITHOUT * n:
        return ""
    return f"; {percent(without / n)} of the clonotypes have no Pgen"


def _few(study: Mapping[str, Any]) -> str:
    pgen = study.get("pgen", {})
    shared, every = number(study.get("shared_clonotypes")), number(study.get("clonotypes"))
    what = ""
    if number(pgen.get("shared")) is not None and number(pgen.get("without")):
        # Only what has a Pgen is compared.
        shared, what = number(pgen["shared"]), " with Pgen"
        every = None if every is None else every - pgen["without"]
    return few_text(shared, every, what)


def _figures(compared: Mapping[tuple[str, str], _Row], groups: Sequence[_Row]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for scope, end in (("all", ""), ("above_zero", "_above_zero")):
        for measure in ("spearman", "auc"):
            row = compared.get((scope, measure))
            if row is None:
                continue
            for key in ("pgen", "path_count"):
                figures[f"{measure}_{key}{end}"] = number(row[key])
            figures |= _difference(row).named(f"{measure}_difference{end}")
            if scope == "all" and number(row["subjects_low"]) is not None:
                # The same difference, with the other interval.
                figures |= _over_subjects(row).named(f"{measure}_difference_over_subjects")
    for row in groups:
        less = estimate_of(row, "deviance_less", "deviance_low", "deviance_high")
        figures |= less.named(f"deviance_{row['model']}_less_{row['other']}")
    return figures
