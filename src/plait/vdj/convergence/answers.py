"""What a study says, in sentences that never claim more than the intervals allow.

Beside `study`, its one importer: words for readers, which know tables alone. Which predicts sharing better,
path counts or generation probability (Pgen)? is told in words of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    interval_text,
    number,
    percent,
    strength,
    verdict,
    whole,
)
from plait.vdj.convergence.pgen_tables import FEWEST_SUBJECTS, FREQUENCIES, SHARING
from plait.vdj.convergence.public_clonotypes import public_answers

_Row = Mapping[str, Any]

_PGEN: Final = "generation probability"
_PATH_COUNTS: Final = "path counts"
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
_MEASURES: Final = {"spearman": "rank correlation", "auc": "area under the ROC curve"}


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
        _model(study, parameters),
        *(_measured(compared, measure) for measure in _MEASURES),
        _above_zero(compared),
        _pgen_strata(rows),
        _sweep(rows),
        *_held_out(groups),
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
    return answer("pgen_comparison", headline, text, _pgen_figures(compared, groups))


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
    better, worse = (_PGEN, _PATH_COUNTS) if found is Verdict.ABOVE else (_PATH_COUNTS, _PGEN)
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
        told += f", by {_MEASURES[measure]} alone"
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


def _pgen_strata(rows: Sequence[_Row]) -> str:
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


def _pgen_alone(groups: Sequence[_Row]) -> tuple[Estimate, Estimate]:
    """Pgen alone less path counts alone, held out: deviance, of which less is better, and area."""
    row = next((row for row in groups if (row["model"], row["other"]) == _ALONE), {})
    return (
        estimate_of(row, "deviance_less", "deviance_low", "deviance_high"),
        estimate_of(row, "auc_more", "auc_low", "auc_high"),
    )


def _held_out_verdict(groups: Sequence[_Row]) -> Verdict:
    """Above: Pgen alone predicts better, by deviance and not against the area; below: path counts do."""
    less, area = (verdict(one) for one in _pgen_alone(groups))
    found = {Verdict.BELOW: Verdict.ABOVE, Verdict.ABOVE: Verdict.BELOW}.get(less, less)
    against = {Verdict.ABOVE: Verdict.BELOW, Verdict.BELOW: Verdict.ABOVE}.get(found)
    return Verdict.AROUND if against is not None and area is against else found


def _held_out_clause(groups: Sequence[_Row], signs: Mapping[tuple[str, str], Verdict]) -> str:
    """What held-out predictions say where it is not what ranks say."""
    found = _held_out_verdict(groups)
    ranks = [signs.get(("all", measure)) for measure in _MEASURES]
    if found not in (Verdict.ABOVE, Verdict.BELOW) or found in ranks:
        return ""
    better = _PGEN if found is Verdict.ABOVE else _PATH_COUNTS
    return f"; held out, a regression on {better} alone predicts better"


def _held_out(groups: Sequence[_Row]) -> list[str]:
    less, area = _pgen_alone(groups)
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


def _pgen_figures(compared: Mapping[tuple[str, str], _Row], groups: Sequence[_Row]) -> dict[str, Any]:
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


#: Spearman's rank correlation of path count and frequency in the published study, for which no interval was
#: given.
PUBLISHED_CORRELATION: Final = -0.056

_MORE: Final = {
    "path_count": "more recombination paths",
    "pgen_nt": "a higher generation probability",
    "n2_length": "a longer N2 region",
    "n2_at": "an N2 region richer in A and T",
}
_X: Final = {
    "path_count": "path count",
    "pgen_nt": "generation probability",
    "n2_length": "N2 length",
    "n2_at": "share of A and T in N2",
}
_KINDS: Final = {"subject": "subject", "v_gene": "V gene", "j_gene": "J gene", "vj": "V and J pair"}
_BY_ROWS: Final = "Frequency is the number of rows: no file has numbers of reads or molecules."
_ORDER: Final = (
    ("path_count", "sharing"),
    ("path_count", "frequency"),
    ("pgen_nt", "sharing"),
    ("pgen_nt", "frequency"),
    ("n2_length", "sharing"),
    ("n2_at", "sharing"),
)


def correlation_answers(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One answer for each x and y that matter: path count and Pgen with both, N2 with sharing.

    `rows` are those of correlations.tsv.
    """
    by_pair = {(x, y): [row for row in rows if row["x"] == x and _kind(row["y"]) == y] for x, y in _ORDER}
    return [correlation_answer(x, y, of_pair) for (x, y), of_pair in by_pair.items() if of_pair]


def correlation_answer(x: str, y: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What can be said of one x and one y, from their rows of correlations.tsv: all strata, both methods.

    x: ``"path_count"``, ``"pgen_nt"``, ``"n2_length"`` or ``"n2_at"``; y: ``"sharing"`` or ``"frequency"``.
    """
    unit = "clonotypes" if y == "sharing" else "clonotypes in a subject"
    spearman, kendall = (_overall(rows, method) for method in ("spearman", "kendall"))
    if spearman.value is None:
        n = "" if spearman.n is None else f", n = {whole(spearman.n)} {unit}"
        sentences = [f"Spearman's rho cannot be estimated: too few rows, or no variation{n}."]
    else:
        sentences = [f"Spearman's rho is {interval_text(spearman, unit)}."]
    if kendall.value is not None:
        sentences.append(f"Kendall's tau-b is {interval_text(kendall)}.")
    figures: dict[str, Any] = {
        **spearman.named("spearman"),
        **kendall.named("kendall"),
        "n": spearman.n,
    }
    sentences += _strata(rows)
    if any(row["stratum_kind"] in _KINDS and _estimate(row).known for row in rows):
        sentences.append(
            "Where there is no association, one interval in twenty lies to one side of zero by chance."
        )
    if any(row["y"] == "rows" for row in rows):
        sentences.append(_BY_ROWS)
    if (x, y) == ("path_count", "frequency"):
        sentences.append(published_comparison(spearman))
        figures["published_spearman"] = PUBLISHED_CORRELATION
    return answer(f"{x}_and_{y}", _statement(x, y, spearman), sentences, figures)


def published_comparison(spearman: Estimate) -> str:
    """Spearman's rho of path count and frequency beside the published one."""
    published = f"Published, on other data and without an interval: {as_text(PUBLISHED_CORRELATION)}"
    if not spearman.known:
        return f"{published}; there is no interval here to compare it with."
    assert spearman.low is not None and spearman.high is not None
    if spearman.high < PUBLISHED_CORRELATION:
        return f"{published}, which is above this interval."
    if spearman.low > PUBLISHED_CORRELATION:
        return f"{published}, which is below this interval."
    return f"{published}, which is within this interval."


def _statement(x: str, y: str, spearman: Estimate) -> str:
    """The one sentence that the interval allows."""
    found = verdict(spearman)
    what = "number of subjects" if y == "sharing" else "frequency within a subject"
    if found is Verdict.UNKNOWN:
        return f"No association of {_X[x]} and {what} could be estimated with an interval"
    if found is Verdict.AROUND:
        return f"No association of {_X[x]} and {what} can be told from these data"
    above = found is Verdict.ABOVE
    if y == "sharing":
        tail = f"shared by {'more' if above else 'fewer'} subjects"
    else:
        tail = f"{'more' if above else 'less'} frequent within a subject"
    text = f"Clonotypes with {_MORE[x]} tend to be {tail}"
    word = strength(spearman)
    return f"{text} (a {word} association)" if word else text


def _strata(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """In how many strata the interval lies where."""
    kinds = {row["stratum_kind"] for row in rows} & set(_KINDS)
    if kinds and not any(row["stratum_kind"] in _KINDS and _estimate(row).known for row in rows):
        words = [word for kind, word in _KINDS.items() if kind in kinds]
        return [f"There is no interval for any {', '.join(words)}: too few rows or too little variation."]
    found = []
    for kind, word in _KINDS.items():
        of_kind = [
            verdict(_estimate(row))
            for row in rows
            if row["stratum_kind"] == kind and row["method"] == "spearman"
        ]
        if not of_kind:
            continue
        count = {state: sum(one is state for one in of_kind) for state in Verdict}
        named = f"{len(of_kind):,} {word}{'' if len(of_kind) == 1 else 's'}"
        if count[Verdict.UNKNOWN] == len(of_kind):
            found.append(f"There is no interval for any of {named}: too few rows or too little variation.")
            continue
        text = (
            f"Of {named}, rho is above zero in {count[Verdict.ABOVE]:,}, below in "
            f"{count[Verdict.BELOW]:,}, and of no sign that can be told in {count[Verdict.AROUND]:,}"
        )
        if count[Verdict.UNKNOWN]:
            text += f"; {count[Verdict.UNKNOWN]:,} have too few rows or too little variation"
        found.append(f"{text}.")
    return found


def _overall(rows: Sequence[Mapping[str, Any]], method: str) -> Estimate:
    for row in rows:
        if row["stratum_kind"] == "all" and row["method"] == method:
            return _estimate(row)
    return Estimate(None, None, None)


def _estimate(row: Mapping[str, Any]) -> Estimate:
    return estimate_of(row, "estimate", "low", "high")


def _kind(y: str) -> str:
    if y == SHARING:
        return "sharing"
    return "frequency" if y in FREQUENCIES else y


#: The published result, for its place beside ours.
PUBLISHED_DRIVERS: Final = (
    "Published: an adaptive LASSO over some 30 predictors chose N2 length and A- and T-rich N2 as what "
    "drives sharing, not path counts."
)
_NO_REGRESSION: Final = (
    "There is no regression in this study, or it could not be done. The two go together, so how each of them "
    "goes with sharing does not tell them apart."
)
#: Share of the random halves below which a choice is called unstable.
_STABLE: Final = 0.8
_COUNTS: Final = "path_count"
_NAMES: Final = {_COUNTS: "path counts", "n2": "the N2 region", "n1": "the inserted nucleotides"}
_CLAUSES: Final = {
    Verdict.ABOVE: "{names} {verb} to {what}",
    Verdict.AROUND: "whether {names} {verb} to {what} cannot be told",
    # Not more than that: predictors of no use make held-out predictions surely worse in one sample of four or
    # so, and useful ones do where events are few.
    Verdict.BELOW: "that {names} {verb} to {what} is not shown",
    Verdict.UNKNOWN: "what {names} would add to {what} is not known",
}
_MEANT: Final = {
    Verdict.AROUND: ", a change of no certain sign.",
    Verdict.BELOW: ": predictors of little use often do that, and where events are few others do. That they "
    "have no effect does not follow.",
}
_CAUTION: Final = (
    "A gain in prediction is an association, not a cause. Path counts and inserted nucleotides are computed "
    "from the same junction, and its length and those of its regions, which are among the other predictors, "
    "carry part of both."
)
_PGEN_TOO: Final = "Generation probability is among the other predictors here, and holds much of both."
_LONGEST: Final = 5
#: Share of the deviance below which a gain is called little.
_LITTLE: Final = 0.01


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What leaving groups of predictors out does to held-out deviance, and which group is better alone.

    `group` of the inserted nucleotides: ``"n2"`` or ``"n1"``. `counts` and `inserted`: what is lost without
    them, above zero if they add something; `alone`: path counts alone less `group` alone, above zero if path
    counts are the worse; `deviance` of the model of all; `aucs` by model.
    """

    group: str
    counts: Estimate
    inserted: Estimate
    alone: Estimate
    deviance: float | None
    aucs: Mapping[str, Estimate]


def driver_answer(groups: Sequence[Mapping[str, Any]], study: Mapping[str, Any]) -> dict[str, Any]:
    """The headline: what adds to the prediction of sharing, and what predicts it better alone.

    `groups` are rows of group_comparison.tsv, none without a regression; `study` has the numbers
    ``shared_by``, ``clonotypes`` and ``shared_clonotypes``.
    """
    found = _comparison(groups)
    states = [verdict(one) for one in (found.counts, found.inserted, found.alone)]
    if all(state is Verdict.UNKNOWN for state in states):
        headline = "Path counts and N2 were not compared as predictors of sharing"
        return answer("drivers", headline, (_NO_REGRESSION, PUBLISHED_DRIVERS), {})
    few = few_text(number(study.get("shared_clonotypes")), number(study.get("clonotypes")))
    headline = f"{_added(found)}; {_alone(states[2], found.group)}{f' ({few})' if few else ''}"
    sentences = [
        _loss(_COUNTS, found.counts, found.deviance),
        _loss(found.group, found.inserted, found.deviance),
        _missed_more(found),
        _alone_figures(found),
        f"{PUBLISHED_DRIVERS} {_beside_published(states[0], states[1], found.group)}",
        _CAUTION,
        _PGEN_TOO if "pgen_only" in found.aucs else "",
        few_sentence(few),
    ]
    return answer("drivers", headline[0].upper() + headline[1:], sentences, _figures(found))


def chosen_answer(coefficients: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the adaptive LASSO chose; None where no model was chosen.

    Takes rows of coefficients.tsv with the column ``group`` of predictors.tsv.
    """
    known = [row for row in coefficients if number(row.get("cv_1se")) is not None]
    if not known:
        return None
    kept = sorted(
        (row for row in known if number(row["cv_1se"])),
        key=lambda row: (-abs(number(row["cv_1se"]) or 0.0), str(row["predictor"])),
    )
    # Without a D gene, N1 is what is inserted.
    inserted = next((group for group in ("n2", "n1") if any(_group(row) == group for row in known)), "n2")
    groups = {group: [row for row in known if _group(row) == group] for group in (_COUNTS, inserted)}
    text = [
        f"The adaptive LASSO (one-standard-error rule) keeps {len(kept)} of {len(known)} predictors.",
        f"The largest standardised coefficients: {_listed(kept[:_LONGEST])}." if kept else "",
    ]
    for group, label in ((_COUNTS, "Path counts"), (inserted, inserted.upper())):
        mine = [row for row in kept if _group(row) == group]
        if groups[group]:
            text.append(
                f"{label}: {len(mine)} of {len(groups[group])} kept"
                + (f" ({_listed(mine)})." if mine else ".")
            )
    if len([row for row in kept if _group(row) == _COUNTS]) > 1:
        text.append("Path counts of different models go together; the sign of a single one means little.")
    text += ["What a LASSO leaves out is not shown to have no effect.", PUBLISHED_DRIVERS]
    figures = {
        "kept": len(kept),
        "predictors": len(known),
        "path_counts_kept": sum(_group(row) == _COUNTS for row in kept),
        f"{inserted}_kept": sum(_group(row) == inserted for row in kept),
    }
    return answer("chosen_predictors", _chosen_headline(kept, groups, inserted), text, figures)


def _comparison(groups: Sequence[Mapping[str, Any]]) -> _Comparison:
    rows = {row["model"]: row for row in groups}
    group = "n1" if "n1_only" in rows or "all_without_n1" in rows else "n2"

    def delta(model: str) -> Estimate:
        return estimate_of(rows.get(model, {}), "delta_vs_all", "delta_low", "delta_high")

    return _Comparison(
        group,
        delta("all_without_counts"),
        delta(f"all_without_{group}"),
        delta("counts_only").less(delta(f"{group}_only")),
        number(rows.get("all", {}).get("cv_deviance")),
        {model: estimate_of(row, "auc", "auc_low", "auc_high") for model, row in rows.items()},
    )


def _added(found: _Comparison) -> str:
    """Which of the two adds to the prediction, in a few clauses."""
    lost = {_COUNTS: found.counts, found.group: found.inserted}
    states = {group: verdict(one) for group, one in lost.items()}
    what = "what the other predictors tell of sharing"
    if all(state is Verdict.ABOVE for state in states.values()):
        little = " a little" if all(_is_little(one, found.deviance) for one in lost.values()) else ""
        return f"{_NAMES[_COUNTS]} and {_NAMES[found.group]} each add{little} to {what}"
    clauses = []
    for state in (Verdict.ABOVE, Verdict.AROUND, Verdict.BELOW, Verdict.UNKNOWN):
        these = [group for group, one in states.items() if one is state]
        if these:
            names = " or ".join(_NAMES[one] for one in these)
            verb = "adds" if these == ["n2"] else "add"
            if state is Verdict.ABOVE and _is_little(lost[these[0]], found.deviance):
                verb += " a little"
            clauses.append(_CLAUSES[state].format(names=names, verb=verb, what=what))
            what = "it"
    return "; ".join(clauses)


def _is_little(lost: Estimate, deviance: float | None) -> bool:
    """Whether even the upper end of a loss is a small share of the deviance."""
    return bool(deviance) and lost.high is not None and lost.high < _LITTLE * (deviance or 0.0)


def _alone(state: Verdict, group: str) -> str:
    name = _NAMES[group]
    if state is Verdict.ABOVE:
        return f"alone, {name} {'predicts' if group == 'n2' else 'predict'} sharing better than path counts"
    if state is Verdict.BELOW:
        return f"alone, path counts predict sharing better than {name}"
    told = "cannot be told" if state is Verdict.AROUND else "is not known"
    return f"which of the two predicts sharing better alone {told}"


def _missed_more(found: _Comparison) -> str:
    """Without which of the two more is lost."""
    state = verdict(found.inserted.less(found.counts))
    name = _NAMES[found.group]
    if state is Verdict.ABOVE:
        return f"Leaving out {name} costs more than leaving out path counts."
    if state is Verdict.BELOW:
        return f"Leaving out path counts costs more than leaving out {name}."
    return "Which of the two costs more when left out cannot be told." if state is Verdict.AROUND else ""


def _loss(group: str, lost: Estimate, deviance: float | None) -> str:
    """What held-out deviance does without some predictors."""
    name = _NAMES[group]
    if not lost.known:
        return f"What is lost without {name} is not known."
    assert lost.value is not None and lost.low is not None and lost.high is not None
    state = verdict(lost)
    values = [lost.value, lost.low, lost.high]
    if state is Verdict.BELOW:
        values = [-lost.value, -lost.high, -lost.low]
    if deviance:
        value, low, high = (percent(one / deviance) for one in values)
    else:
        value, low, high = (as_text(one) for one in values)
    does = {Verdict.ABOVE: "rises", Verdict.BELOW: "falls"}.get(state, "changes")
    text = f"Without {name}, all other predictors kept, held-out deviance {does} by {value} ({low} to {high})"
    return text + _MEANT.get(state, ".")


def _alone_figures(found: _Comparison) -> str:
    texts = []
    name = _NAMES[found.group]
    for model, what in (
        ("counts_only", "path counts alone"),
        (f"{found.group}_only", f"{name} alone"),
        ("all", "all"),
    ):
        auc = found.aucs.get(model)
        if auc is not None and auc.value is not None:
            texts.append(f"{what} {ends_text(auc)}")
    return f"Area under the ROC curve, held out: {', '.join(texts)}." if texts else ""


def _beside_published(counts: Verdict, inserted: Verdict, group: str) -> str:
    if group != "n2":
        return "That was a chain with a D gene; this one has none."
    if counts is Verdict.ABOVE and inserted is Verdict.ABOVE:
        return "Here, too, the N2 region adds, but so do path counts."
    if counts is Verdict.ABOVE:
        return "Here path counts do add."
    if inserted is Verdict.ABOVE and counts is not Verdict.UNKNOWN:
        return "Here, too, the N2 region adds; that path counts add nothing is not excluded, but not shown."
    return "These data do not decide it."


def _figures(found: _Comparison) -> dict[str, Any]:
    figures: dict[str, Any] = {"cv_deviance_all": found.deviance, "n": found.counts.n or found.inserted.n}
    for name, one in (
        ("lost_without_counts", found.counts),
        (f"lost_without_{found.group}", found.inserted),
        (f"counts_alone_less_{found.group}_alone", found.alone),
    ):
        figures |= one.named(name)
    for model, auc in found.aucs.items():
        figures[f"auc_{model}"] = auc.value
    return figures


def _group(row: Mapping[str, Any]) -> str:
    given = str(row.get("group") or "")
    if given:
        return given
    name = str(row["predictor"])
    if "path_count" in name:
        return _COUNTS
    return name[:2] if name.startswith(("n1_", "n2_")) else ""


def _listed(rows: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(_coefficient(row) for row in rows)


def _coefficient(row: Mapping[str, Any]) -> str:
    text = f"{row['predictor']} {number(row['cv_1se']) or 0.0:+.2g}"
    stability = number(row.get("stability"))
    if stability is not None and stability < _STABLE:
        text += f" (in only {percent(stability)} of random halves)"
    return text


def _chosen_headline(
    kept: Sequence[Mapping[str, Any]], groups: Mapping[str, Sequence[Mapping[str, Any]]], inserted: str
) -> str:
    if not kept:
        return "The adaptive LASSO keeps no predictor of sharing"
    of = {group: any(_group(row) == group for row in kept) for group in groups}
    name = inserted.upper()
    if of[_COUNTS] and of[inserted]:
        return f"The adaptive LASSO keeps both path counts and {name} predictors"
    if of[inserted]:
        return f"The adaptive LASSO keeps {name} predictors{' and no path count' if groups[_COUNTS] else ''}"
    if of[_COUNTS]:
        return (
            f"The adaptive LASSO keeps path counts{f' and no {name} predictor' if groups[inserted] else ''}"
        )
    return f"The adaptive LASSO keeps neither path counts nor {name} predictors"


#: Subjects below which sharing has too few levels to say much.
_FEW_SUBJECTS: Final = 5
_INDEPENDENT: Final = (
    "{} take clonotypes as drawn independently of each other, and these subjects as given: they do not say "
    "what other subjects would show."
)
_CAUTIONS: Final = (
    "A clonotype that several subjects have enters the correlations with frequency once for each of them, "
    "and similar clonotypes are not independent, so that these intervals are too narrow rather than too "
    "wide.",
    "Sharing depends on how deeply each subject was sequenced.",
)


def answers(
    study: Mapping[str, Any],
    correlations: Sequence[Mapping[str, Any]],
    *,
    groups: Sequence[Mapping[str, Any]] = (),
    coefficients: Sequence[Mapping[str, Any]] = (),
    pgen: Sequence[Mapping[str, Any]] = (),
    pgen_groups: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Answers of a study, the headline first: id, headline, text, figures, as study.json holds them.

    First, where subjects were compared, ``public_clonotypes``, and with a model ``expected_sharing`` and
    ``beyond_expectation``; ``drivers``, then ``pgen_comparison`` where there is Pgen, the correlations,
    ``chosen_predictors`` where there is a regression, and ``limits``. `study` is study.json; the others are
    rows of
    correlations.tsv, group_comparison.tsv, coefficients.tsv, pgen_comparison.tsv and pgen_groups.tsv. A
    missing value is None, NaN or an empty text.

    >>> from plait.vdj.convergence.answers import answers
    >>> row = {"stratum_kind": "all", "stratum": "", "x": "path_count", "y": "subjects"}
    >>> row |= {"method": "spearman", "estimate": 0.02, "low": -0.01, "high": 0.05, "n": 4000}
    >>> for found in answers({"subjects": 3, "shared_by": 2}, [row])[:2]:
    ...     print(found["headline"])
    Path counts and N2 were not compared as predictors of sharing
    No association of path count and number of subjects can be told from these data
    """
    found = [
        *public_answers(study),
        driver_answer(groups, study),
        pgen_answer(study, pgen, correlations, pgen_groups),
        *correlation_answers(correlations),
        chosen_answer(coefficients),
        _limits(study),
    ]
    return [one for one in found if one is not None]


def _limits(study: Mapping[str, Any]) -> dict[str, Any]:
    """What none of the figures can say."""
    subjects, shared_by = number(study.get("subjects")), number(study.get("shared_by"))
    which = "All intervals, but those over subjects," if study.get("pgen") else "All intervals"
    text = [_INDEPENDENT.format(which), *_CAUTIONS]
    if subjects is not None and subjects < 2:
        text.append("With one subject nothing can be shared.")
    elif subjects is not None and shared_by is not None and subjects < shared_by:
        text.append(f"With {whole(subjects)} subjects nothing can be shared by {whole(shared_by)}.")
    elif subjects is not None and subjects < _FEW_SUBJECTS:
        text.append(f"With only {whole(subjects)} subjects, sharing has few levels.")
    if shared_by is not None:
        text.append(f"Shared means: found in {whole(shared_by)} subjects or more.")
    names = ("subjects", "shared_by", "clonotypes", "shared_clonotypes")
    known = {name: number(study.get(name)) for name in names}
    figures = {name: None if value is None else int(value) for name, value in known.items()}
    return answer("limits", "What these figures cannot say", text, figures)
