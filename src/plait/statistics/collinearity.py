"""Predictors that say the same: which are dropped, and how much the rest inflate each other's variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Collinearity", "find_collinearity"]

#: A predictor of which less than this share of the variance is left, given those before it, depends on them.
_DEPENDENT: Final = 1e-9
#: Shares in another predictor below this, in units of standard deviations, are not named.
_NAMED: Final = 1e-6
_MOST_NAMED: Final = 6
_LARGE_VIF: Final = 10.0
_LARGE_CONDITION: Final = 30.0


class Collinearity(NamedTuple):
    """Which predictors are kept, and how they hang together.

    Attributes
    ----------
    kept
        Their numbers, rising; int64.
    notes
        Why others were dropped, by name.
    vif
        Variance inflation factor, 1 / (1 - R^2) of a predictor given the other kept ones; NaN for the others;
        float64, shape (predictors,).
    condition_number
        Square root of the ratio of the largest to the smallest eigenvalue of the correlation matrix of the
        kept predictors; NaN without any.
    warnings
        What the reader has to know.
    """

    kept: NDArray[np.int64]
    notes: dict[str, str]
    vif: NDArray[np.float64]
    condition_number: float
    warnings: tuple[str, ...]


def find_collinearity(correlation: NDArray[np.float64], names: Sequence[str]) -> Collinearity:
    """Drop predictors that do not vary or depend exactly on earlier ones, and judge the rest.

    Parameters
    ----------
    correlation
        Of all predictors, with 0 on the diagonal for those that do not vary; shape (predictors, predictors).
    names
        Of the predictors.
    """
    kept: list[int] = []
    notes: dict[str, str] = {}
    for j, name in enumerate(names):
        if correlation[j, j] == 0.0:
            notes[name] = "dropped: the same value in all rows"
            continue
        shares = np.linalg.solve(correlation[np.ix_(kept, kept)], correlation[kept, j])
        if 1.0 - shares @ correlation[kept, j] > _DEPENDENT:
            kept.append(j)
            continue
        others = [names[kept[k]] for k in np.argsort(-np.abs(shares)) if abs(shares[k]) > _NAMED]
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        notes[name] = f"dropped: a linear combination of {', '.join(others[:_MOST_NAMED])}{more}"
    vif = np.full(len(names), np.nan)
    condition = np.nan
    if kept:
        values, vectors = np.linalg.eigh(correlation[np.ix_(kept, kept)])
        values = np.maximum(values, _DEPENDENT * 1e-3)
        vif[kept] = (vectors * vectors / values).sum(axis=1)
        condition = float(np.sqrt(values[-1] / values[0]))
    return Collinearity(
        np.array(kept, np.int64), notes, vif, condition, tuple(_warnings(names, notes, vif, condition))
    )


def _warnings(
    names: Sequence[str], notes: dict[str, str], vif: NDArray[np.float64], condition: float
) -> list[str]:
    found = []
    if notes:
        found.append(f"{len(notes)} of {len(names)} predictors were dropped: {', '.join(notes)}")
    large = [f"{names[j]} ({vif[j]:.3g})" for j in np.argsort(-np.nan_to_num(vif)) if vif[j] > _LARGE_VIF]
    if large:
        more = f" and {len(large) - _MOST_NAMED} more" if len(large) > _MOST_NAMED else ""
        found.append(
            f"variance inflation factors above {_LARGE_VIF:g}: {', '.join(large[:_MOST_NAMED])}{more}; which "
            "of such predictors is chosen is partly chance"
        )
    if condition > _LARGE_CONDITION:
        found.append(
            f"condition number {condition:.3g} of the correlation matrix, above {_LARGE_CONDITION:g}: some "
            "coefficients can be told apart only poorly"
        )
    return found
