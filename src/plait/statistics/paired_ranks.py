"""Which of two variables goes better with a third one: differences of rank measures on the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.statistics.contingency import Pairs
from plait.statistics.quantiles import student_quantile
from plait.statistics.rank_correlation import FEWEST_OTHERS, Projection, projection

__all__ = ["PAIRED_MEASURES", "PairedDifference", "Triples", "paired_differences", "triples_of"]

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

#: What is compared: two rank correlations with y, and the area under the ROC curve of y at a threshold.
PAIRED_MEASURES: Final = ("spearman", "kendall", "auc")
_NAN: Final = float("nan")


class Triples(NamedTuple):
    """Counted triples of values.

    Attributes
    ----------
    x, z
        int64 (m,): places of the values of two variables among their distinct ones.
    y
        (m,): the third variable.
    counts
        int64 (m,): rows with this triple, above 0.
    """

    x: _Ints
    z: _Ints
    y: NDArray[Any]
    counts: _Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """A measure of z with y less the same of x with y, on the same rows.

    Attributes
    ----------
    measure
        Of `PAIRED_MEASURES`.
    x, z
        The measure of each; NaN where there is none.
    difference
        That of z less that of x.
    low, high
        Limits of the interval; NaN where there is none.
    standard_error
        Of the difference.
    n
        Rows.
    reason
        Why there is no difference or no interval; empty otherwise.
    """

    measure: str
    x: float
    z: float
    difference: float
    low: float
    high: float
    standard_error: float
    n: int
    reason: str = ""


def triples_of(x: NDArray[Any], z: NDArray[Any], y: NDArray[Any], counts: _Ints) -> Triples:
    """Triples from values.

    Parameters
    ----------
    x, z, y, counts
        (m,): values, and rows with them; those with none are left out.
    """
    kept = counts > 0
    return Triples(
        np.unique(x[kept], return_inverse=True)[1].astype(np.int64),
        np.unique(z[kept], return_inverse=True)[1].astype(np.int64),
        y[kept],
        counts[kept],
    )


def paired_differences(
    measures: Sequence[str], triples: Triples, *, threshold: float = 1.0, confidence: float = 0.95
) -> list[PairedDifference]:
    r"""How much better z goes with y than x does, by one or more measures.

    Parameters
    ----------
    measures
        Of `PAIRED_MEASURES`: Spearman's rho, Kendall's tau-b, or ``"auc"``: the probability that a row with
        y of `threshold` or more has the larger x (or z) of two, ties counted half.
    triples
        The rows.
    threshold
        From which y on a row is an event; of ``"auc"`` alone.
    confidence
        Of the interval.

    Notes
    -----
    Each measure is a function of V-statistics, so that its error is that of the mean of its projections
    :math:`\psi` on single rows (Hoeffding 1948); see `plait.statistics.rank_correlation`. The error of a
    difference of two on the same rows is that of the mean of :math:`\psi_z - \psi_x`: whatever ties x and z
    to each other, and whatever the ties within each. For areas this is the error of DeLong and others (1988).
    The interval is symmetric, with Student's t at the degrees of freedom of the variance estimate
    (Satterthwaite 1946).
    """
    n = int(triples.counts.sum())
    if n == 0:
        return [_unknown(measure, 0, "no rows") for measure in measures]
    ranked = any(measure != "auc" for measure in measures)
    tables = [_table(values, triples) for values in (triples.x, triples.z)] if ranked else []
    event = triples.y >= threshold
    found = []
    for measure in measures:
        if measure == "auc":
            both = [_area(values, event, triples.counts) for values in (triples.x, triples.z)]
        else:
            both = [_projected(measure, *table) for table in tables]
        found.append(_compared(measure, both[0], both[1], triples, confidence))
    return found


def _compared(
    measure: str, of_x: Projection | str, of_z: Projection | str, triples: Triples, confidence: float
) -> PairedDifference:
    n = int(triples.counts.sum())
    if isinstance(of_x, str) or isinstance(of_z, str):
        return _unknown(measure, n, of_x if isinstance(of_x, str) else str(of_z))
    share = triples.counts / n
    difference = of_z.estimate - of_x.estimate
    told: dict[str, Any] = {"measure": measure, "x": of_x.estimate, "z": of_z.estimate, "n": n}
    told["difference"] = difference
    none: dict[str, Any] = {"low": _NAN, "high": _NAN, "standard_error": _NAN}
    if min(of_x.others, of_z.others) < FEWEST_OTHERS:
        reason = f"fewer than {FEWEST_OTHERS} rows differ from the most common value"
        return PairedDifference(**told, **none, reason=reason)
    influence = of_z.influence - of_x.influence
    square = influence * influence
    variance = float(np.sum(share * square))
    if variance < 1e-24:
        return PairedDifference(**told, **none, reason="x and z order the rows alike")
    excess = float(np.sum(share * square * square)) / variance**2 - 1
    freedom = max(2 * n / max(excess, 1e-300), 1.0)
    error = math.sqrt(variance / n)
    reach = student_quantile((1 + confidence) / 2, freedom) * error
    return PairedDifference(**told, low=difference - reach, high=difference + reach, standard_error=error)


def _unknown(measure: str, n: int, reason: str) -> PairedDifference:
    return PairedDifference(
        measure=measure,
        x=_NAN,
        z=_NAN,
        difference=_NAN,
        low=_NAN,
        high=_NAN,
        standard_error=_NAN,
        n=n,
        reason=reason,
    )


def _table(values: _Ints, triples: Triples) -> tuple[Pairs, NDArray[np.intp]]:
    """Counted pairs of one variable and y, and which of them each triple is."""
    places = np.unique(triples.y, return_inverse=True)[1].astype(np.int64)
    keys, cell = np.unique(values * (int(places.max()) + 1) + places, return_inverse=True)
    counts = np.bincount(cell, triples.counts, keys.size).astype(np.int64)
    return Pairs(*np.divmod(keys, int(places.max()) + 1), counts), cell


def _projected(measure: str, pairs: Pairs, cell: NDArray[np.intp]) -> Projection | str:
    """The measure of one variable, and the influence of each triple on it."""
    found = projection(measure, pairs)
    return found if isinstance(found, str) else found._replace(influence=found.influence[cell])


def _area(values: _Ints, event: NDArray[np.bool_], counts: _Ints) -> Projection | str:
    """Area under the ROC curve, with its components for events and others (DeLong and others 1988)."""
    size = int(values.max()) + 1
    weight = counts.astype(np.float64)
    having = np.bincount(values, np.where(event, weight, 0.0), size)
    without = np.bincount(values, np.where(event, 0.0, weight), size)
    positives, negatives = float(having.sum()), float(without.sum())
    if not (positives and negatives):
        return "y does not vary about the threshold"
    below = (np.cumsum(without) - 0.5 * without) / negatives
    above = 1.0 - (np.cumsum(having) - 0.5 * having) / positives
    area = float(np.sum(having * below)) / positives
    n = positives + negatives
    part = np.where(event, (below[values] - area) * (n / positives), (above[values] - area) * (n / negatives))
    rows = int((having + without).max())
    return Projection(area, part, weight / n, int(min(positives, negatives, n - rows)), int(n))
