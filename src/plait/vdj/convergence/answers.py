"""What a study says, in sentences that never claim more than its intervals allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from plait.vdj.convergence.claims import whole
from plait.vdj.convergence.correlation_answers import correlation_answers
from plait.vdj.convergence.driver_answers import chosen_answer, driver_answer
from plait.vdj.convergence.pgen_answers import pgen_answer
from plait.vdj.convergence.table_text import number

__all__ = ["answers"]

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
    """Answers of a study, the headline first.

    Parameters
    ----------
    study
        Numbers ``subjects``, ``shared_by``, ``clonotypes`` and ``shared_clonotypes``, as in study.json.
    correlations
        Rows of correlations.tsv. Here as in the others, a missing value is None, NaN or an empty text.
    groups
        Rows of group_comparison.tsv; none without a regression.
    coefficients
        Rows of coefficients.tsv, which may have the column ``group`` of predictors.tsv.
    pgen, pgen_groups
        Rows of pgen_comparison.tsv and pgen_groups.tsv; none without generation probabilities.

    Returns
    -------
    list of dict
        id, headline, text, figures: what study.json holds under ``answers``. First ``drivers``, then
        ``pgen_comparison`` where there are generation probabilities, the correlations, ``chosen_predictors``
        where there is a regression, and ``limits``.

    Examples
    --------
    >>> from plait.vdj.convergence.answers import answers
    >>> row = {"stratum_kind": "all", "stratum": "", "x": "path_count", "y": "subjects"}
    >>> row |= {"method": "spearman", "estimate": 0.02, "low": -0.01, "high": 0.05, "n": 4000}
    >>> for answer in answers({"subjects": 3, "shared_by": 2}, [row])[:2]:
    ...     print(answer["headline"])
    Path counts and N2 were not compared as predictors of sharing
    No association of path count and number of subjects can be told from these data
    """
    found = [driver_answer(groups, study)]
    compared = pgen_answer(study, pgen, correlations, pgen_groups)
    if compared is not None:
        found.append(compared)
    found += correlation_answers(correlations)
    chosen = chosen_answer(coefficients)
    if chosen is not None:
        found.append(chosen)
    return [*found, _limits(study)]


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
    figures = {"subjects": subjects, "shared_by": shared_by}
    for name in ("clonotypes", "shared_clonotypes"):
        figures[name] = number(study.get(name))
    return {
        "id": "limits",
        "headline": "What these figures cannot say",
        "text": " ".join(text),
        "figures": {name: None if value is None else int(value) for name, value in figures.items()},
    }
