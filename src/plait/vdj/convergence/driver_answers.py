"""Do path counts, or N2 length and composition, go with sharing? The regression in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plait.vdj.convergence.claims import (
    Estimate,
    Verdict,
    as_text,
    estimate_of,
    percent,
    verdict,
    whole,
)
from plait.vdj.convergence.table_text import number

__all__ = ["PUBLISHED_DRIVERS", "chosen_answer", "driver_answer"]

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
#: Clonotypes, shared and not shared, below which the headline says that they are few.
_ENOUGH: Final = 100


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What leaving groups of predictors out does to held-out deviance, and which group is better alone.

    Attributes: `group` of the inserted nucleotides, ``"n2"`` or ``"n1"``; `counts` and `inserted`: what is
    lost without them, above zero if they add something; `alone`: path counts alone less `group` alone, above
    zero if path counts are the worse; `deviance` of the model of all; `aucs` by model.
    """

    group: str
    counts: Estimate
    inserted: Estimate
    alone: Estimate
    deviance: float | None
    aucs: Mapping[str, Estimate]


def driver_answer(groups: Sequence[Mapping[str, Any]], study: Mapping[str, Any]) -> dict[str, Any]:
    """The headline: what adds to the prediction of sharing, and what predicts it better alone.

    Parameters
    ----------
    groups
        Rows of group_comparison.tsv; none without a regression.
    study
        Numbers ``shared_by``, ``clonotypes`` and ``shared_clonotypes``.
    """
    found = _comparison(groups)
    states = [verdict(one) for one in (found.counts, found.inserted, found.alone)]
    if all(state is Verdict.UNKNOWN for state in states):
        return {
            "id": "drivers",
            "headline": "Path counts and N2 were not compared as predictors of sharing",
            "text": f"{_NO_REGRESSION} {PUBLISHED_DRIVERS}",
            "figures": {},
        }
    few = _few(study)
    headline = f"{_added(found)}; {_alone(states[2], found.group)}{f' ({few})' if few else ''}"
    sentences = [
        _loss(_COUNTS, found.counts, found.deviance),
        _loss(found.group, found.inserted, found.deviance),
        _missed_more(found),
        _alone_figures(found),
        f"{PUBLISHED_DRIVERS} {_beside_published(states[0], states[1], found.group)}",
        _CAUTION,
        _PGEN_TOO if "pgen_only" in found.aucs else "",
        f"{few[0].upper()}{few[1:]}, too few to lean on these figures." if few else "",
    ]
    return {
        "id": "drivers",
        "headline": headline[0].upper() + headline[1:],
        "text": " ".join(sentence for sentence in sentences if sentence),
        "figures": _figures(found),
    }


def chosen_answer(coefficients: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What the adaptive LASSO chose.

    Parameters
    ----------
    coefficients
        Rows of coefficients.tsv with the column ``group`` of predictors.tsv.

    Returns
    -------
    dict
        None where no model was chosen.
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
        f"The adaptive LASSO (one-standard-error rule) keeps {len(kept)} of {len(known)} predictors"
        + (f"; the largest standardised coefficients: {_listed(kept[:_LONGEST])}." if kept else "."),
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
    text.append(
        "What a LASSO leaves out is not shown to have no effect. " + PUBLISHED_DRIVERS,
    )
    return {
        "id": "chosen_predictors",
        "headline": _chosen_headline(kept, groups, inserted),
        "text": " ".join(text),
        "figures": {
            "kept": len(kept),
            "predictors": len(known),
            "path_counts_kept": sum(_group(row) == _COUNTS for row in kept),
            f"{inserted}_kept": sum(_group(row) == inserted for row in kept),
        },
    }


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
            texts.append(f"{what} {_auc(auc)}")
    return f"Area under the ROC curve, held out: {', '.join(texts)}." if texts else ""


def _auc(auc: Estimate) -> str:
    if not auc.known:
        return as_text(auc.value or 0.0)
    assert auc.value is not None and auc.low is not None and auc.high is not None
    return f"{as_text(auc.value)} ({as_text(auc.low)} to {as_text(auc.high)})"


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


def _few(study: Mapping[str, Any]) -> str:
    """Of which kind there are few clonotypes, and how many; empty if there are enough."""
    shared, all_ones = number(study.get("shared_clonotypes")), number(study.get("clonotypes"))
    if shared is None or all_ones is None:
        return ""
    fewer = min(shared, all_ones - shared)
    if fewer >= _ENOUGH:
        return ""
    kind = "shared" if shared == fewer else "not shared"
    return f"only {whole(fewer)} clonotype{' is' if fewer == 1 else 's are'} {kind}"


def _figures(found: _Comparison) -> dict[str, Any]:
    figures: dict[str, Any] = {"cv_deviance_all": found.deviance, "n": found.counts.n or found.inserted.n}
    for name, one in (
        ("lost_without_counts", found.counts),
        (f"lost_without_{found.group}", found.inserted),
        (f"counts_alone_less_{found.group}_alone", found.alone),
    ):
        figures |= {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}
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
