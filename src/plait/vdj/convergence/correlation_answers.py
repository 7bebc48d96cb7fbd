"""Rank correlations in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from plait.vdj.convergence.claims import (
    Estimate,
    Verdict,
    as_text,
    estimate_of,
    interval_text,
    strength,
    verdict,
    whole,
)
from plait.vdj.convergence.correlations import FREQUENCIES, SHARING

__all__ = ["PUBLISHED_CORRELATION", "correlation_answer", "correlation_answers", "published_comparison"]

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

    Parameters
    ----------
    rows
        Rows of correlations.tsv.
    """
    found = []
    for x, y in _ORDER:
        of_pair = [row for row in rows if row["x"] == x and _kind(row["y"]) == y]
        if of_pair:
            found.append(correlation_answer(x, y, of_pair))
    return found


def correlation_answer(x: str, y: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What can be said of one x and one y.

    Parameters
    ----------
    x
        ``"path_count"``, ``"pgen_nt"``, ``"n2_length"`` or ``"n2_at"``.
    y
        ``"sharing"`` or ``"frequency"``.
    rows
        Their rows of correlations.tsv: all strata, both methods.
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
        **_figures("spearman", spearman),
        **_figures("kendall", kendall),
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
    return {
        "id": f"{x}_and_{y}",
        "headline": _statement(x, y, spearman),
        "text": " ".join(sentences),
        "figures": figures,
    }


def published_comparison(spearman: Estimate) -> str:
    """Spearman's rho of path count and frequency beside the published one.

    Parameters
    ----------
    spearman
        That of the study.
    """
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


def _figures(name: str, estimate: Estimate) -> dict[str, Any]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _kind(y: str) -> str:
    if y == SHARING:
        return "sharing"
    return "frequency" if y in FREQUENCIES else y
