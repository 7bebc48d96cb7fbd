"""Rank correlations of counted pairs, and differences of rank measures of two variables with a third one.

All are functions of V-statistics, so the standard error is the root of ``sum(psi^2) / n^2``, psi the
influence (projection) of single rows (Hoeffding 1948, *Annals of Mathematical Statistics* 19: 293-325),
whatever the ties. For a table of few values it is that of Brown and Benedetti (1977, *Journal of the American
Statistical Association* 72: 309-315), for areas that of DeLong and others (1988).

Intervals are symmetric, those of correlations after the transformation artanh, so that they stay within -1
and 1. Their reach is that of Student's t with the degrees of freedom of the variance, 2n / (k - 1), k the
kurtosis of psi (Satterthwaite 1946, *Biometrics Bulletin* 2: 110-114): where nearly all rows are tied, few of
them decide, however large n is. There is no interval where fewer than `FEWEST_OTHERS` rows differ from the
most common x or y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.stats.contingency import Pairs, student_quantile

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

#: Rows that must differ from the most common x, and from the most common y, for an interval to be given: with
#: fewer, simulated intervals of 95 % miss in up to 20 % of all cases.
FEWEST_OTHERS: Final = 10
_TOO_ALIKE: Final = f"fewer than {FEWEST_OTHERS} rows differ from the most common value"
_NAN: Final = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """A correlation, ``"spearman"`` or ``"kendall"``, with interval; NaN and a `reason` if there is none."""

    method: str
    estimate: float = _NAN
    low: float = _NAN
    high: float = _NAN
    standard_error: float = _NAN
    n: int
    confidence: float
    reason: str = ""


class Projection(NamedTuple):
    """A coefficient with the influence of every row on it.

    `influence` (m,) is that of a row with each pair; the square of the standard error is its mean square over
    n. `share` (m,) of the rows with each pair; `others`: rows that differ from the most common x or y,
    whichever are fewer.
    """

    estimate: float
    influence: _Floats
    share: _Floats
    others: int
    n: int


def spearman(pairs: Pairs, *, confidence: float = 0.95) -> Correlation:
    """Spearman's rho with mid-ranks, and an interval for its population value; none where x or y is constant.

    With u = (#{X < x} + #{X = x} / 2) / n the mid-distribution value of x, v that of y, and p, q the shares
    of rows with this x, this y, the estimate is C / sqrt(AB): C = mean(uv) - 1/4, A = (1 - sum p^3) / 12 over
    distinct x, and B the same of y. These are V-statistics of degree 3, with the influence

        c(x, y) = uv + E[s(X, x) v(Y)] + E[s(Y, y) u(X)] - 3 mean(uv)
        a(x) = -(p(x)^2 - sum p^3) / 4, b(y) the same of q
        psi = c / sqrt(AB) - rho (a / A + b / B) / 2

    where s(X, x) is 1 where X > x, 1/2 where X = x, and 0 elsewhere. Interval: see the module.
    """
    return _correlation("spearman", pairs, confidence)


def kendall(pairs: Pairs, *, confidence: float = 0.95) -> Correlation:
    """Kendall's tau-b, and an interval for its population value; none where x or y is constant.

    With d(x, y) the rows concordant with (x, y) less those discordant, over n, and p, q the shares of rows
    with this x, this y, the estimate is P / sqrt(AB): P = mean(d), A = 1 - sum p^2, B = 1 - sum q^2. These
    are V-statistics of degree 2, with the influence

        psi = 2 (d - P) / sqrt(AB) - tau ((1 - p - A) / A + (1 - q - B) / B)

    Takes O(m log k) for m distinct pairs and k distinct values of x or y, whichever has fewer.
    """
    return _correlation("kendall", pairs, confidence)


def projection(method: str, pairs: Pairs) -> Projection | str:
    """Coefficient (``"spearman"`` or ``"kendall"``) and influence of each pair; or why there is none."""
    margins = _margins(pairs)
    if isinstance(margins, str):
        return margins
    x, y, weight, n = margins
    estimate, influence = (_spearman if method == "spearman" else _kendall)(x, y, weight, n)
    return Projection(estimate, influence, weight / n, min(x.others(), y.others()), n)


def _spearman(x: _Axis, y: _Axis, weight: _Ints, n: int) -> tuple[float, _Floats]:
    u, v = x.middle(n) - 0.5, y.middle(n) - 0.5
    share = weight / n
    product = _mean(share, u * v)
    spread_x, spread_y = x.cubes(n), y.cubes(n)
    scale = math.sqrt(spread_x * spread_y)
    estimate = min(max(product / scale, -1.0), 1.0)
    # u and v are centred, so E[s(X, x) v] is the sum of v over the rows above, and ties count half.
    c = u * v + x.above(share * v) + y.above(share * u) - 3 * product
    a, b = ((axis.squares(n) / spread) for axis, spread in ((x, spread_x), (y, spread_y)))
    return estimate, c / scale - estimate / 2 * (a + b)


def _kendall(x: _Axis, y: _Axis, weight: _Ints, n: int) -> tuple[float, _Floats]:
    share = weight / n
    d = _concordance(x, y, weight) / n
    spread_x, spread_y = x.differing(n), y.differing(n)
    scale = math.sqrt(spread_x * spread_y)
    mean = _mean(share, d)
    estimate = min(max(mean / scale, -1.0), 1.0)
    a, b = ((1 - axis.share(n) - spread) / spread for axis, spread in ((x, spread_x), (y, spread_y)))
    return estimate, 2 * (d - mean) / scale - estimate * (a + b)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One of the two variables, by the places of its distinct values.

    `place` (m,) of each pair among the distinct values, `rows` (k,) of each of these, and `order` (m,) of the
    pairs by this variable, then by the other one.
    """

    place: NDArray[np.intp]
    rows: _Ints
    order: NDArray[np.intp]

    def below(self) -> _Ints:
        """Rows with a smaller value, for each distinct one."""
        return np.cumsum(self.rows) - self.rows

    def others(self) -> int:
        """Rows with another value than the most common one."""
        return int(self.rows.sum() - self.rows.max())

    def share(self, n: int) -> _Floats:
        """Share of the rows with each pair's value."""
        return (self.rows / n)[self.place]

    def middle(self, n: int) -> _Floats:
        """Mid-distribution value of each pair."""
        return ((2 * self.below() + self.rows) / (2 * n))[self.place]

    def cubes(self, n: int) -> float:
        """Variance of the mid-distribution values."""
        share = self.rows / n
        return (1 - float(np.sum(share * share * share))) / 12

    def squares(self, n: int) -> _Floats:
        """Influence of each pair on `cubes`."""
        share = self.rows / n
        square = share * share
        return ((float(np.sum(square * share)) - square) / 4)[self.place]

    def differing(self, n: int) -> float:
        """Share of the pairs of rows that differ."""
        return 1 - float(np.sum((self.rows / n) ** 2))

    def above(self, amounts: _Floats) -> _Floats:
        """For each pair, the sum of amounts of those with larger values, and half of those with the same."""
        sums = np.bincount(self.place, amounts, len(self.rows))
        return (sums[::-1].cumsum()[::-1] - sums / 2)[self.place]


def _margins(pairs: Pairs) -> tuple[_Axis, _Axis, _Ints, int] | str:
    """The two variables, the rows of each pair, and all rows; or why there is no correlation."""
    weight = np.asarray(pairs.counts, np.int64)
    n = int(weight.sum())
    if n == 0:
        return "no rows"
    # Pairs are in order of x, then y: a stable sort by y leaves those with the same y in order of x.
    x = _axis(np.asarray(pairs.x), np.arange(len(weight)), weight)
    y = _axis(np.asarray(pairs.y), _stable_order(np.asarray(pairs.y)), weight)
    for name, axis in (("x", x), ("y", y)):
        if len(axis.rows) < 2:
            return f"{name} does not vary"
    return x, y, weight, n


def _axis(values: NDArray[Any], order: NDArray[np.intp], weight: _Ints) -> _Axis:
    ordered = values[order]
    new = np.zeros(len(values), np.intp)
    new[1:] = ordered[1:] != ordered[:-1]
    place = np.empty(len(values), np.intp)
    place[order] = np.cumsum(new)
    first = np.flatnonzero(np.concatenate(([True], new[1:] > 0)))
    return _Axis(place, np.add.reduceat(weight[order], first), order)


def _stable_order(values: NDArray[Any]) -> NDArray[np.intp]:
    """Order of values, equal ones as they stand; few whole numbers are sorted in linear time."""
    if values.dtype.kind in "iu":
        least = values.min()
        if int(values.max()) - int(least) < 1 << 16:
            return np.argsort((values - least).astype(np.uint16), kind="stable")
    return np.argsort(values, kind="stable")


def _concordance(x: _Axis, y: _Axis, weight: _Ints) -> _Ints:
    """Rows concordant with each pair less those discordant with it."""
    if len(x.rows) < len(y.rows):
        x, y = y, x
    n = int(weight.sum())
    lower_left = _dominated(x, y, weight)
    same_x, same_y = x.rows[x.place], y.rows[y.place]
    below_x, below_y = x.below()[x.place], y.below()[y.place]
    # Of the rows with the same x, those with a smaller y; and the other way round.
    under, left = _beside(x, y, weight), _beside(y, x, weight)
    upper_left = below_x - lower_left - left
    lower_right = below_y - lower_left - under
    upper_right = n - below_x - same_x - lower_right - (same_y - left - weight)
    balance: _Ints = lower_left + upper_right - upper_left - lower_right
    return balance


def _beside(x: _Axis, y: _Axis, weight: _Ints) -> _Ints:
    """For each pair, the rows with the same x and a smaller y."""
    ordered = weight[x.order]
    before = np.cumsum(ordered) - ordered
    found = np.empty_like(weight)
    found[x.order] = before - x.below()[x.place[x.order]]
    return found


def _dominated(x: _Axis, y: _Axis, weight: _Ints) -> _Ints:
    """For each pair, the rows with a smaller x and a smaller y.

    Pairs are kept in groups whose places on y agree in the leading bits; within a group they are in order of
    x, of equal x the largest y first. Two rows differ in y first at one bit: there, the one with bit 0 is
    counted for the ones with bit 1 that come after it. Then each group is split by this bit. So every bit
    takes time in proportion to the pairs.
    """
    m = len(weight)
    ends = np.cumsum(np.bincount(x.place))[x.place[x.order]]
    starts = ends - np.bincount(x.place)[x.place[x.order]]
    order = x.order[starts + ends - 1 - np.arange(m)]
    place, rows = y.place[order], weight[order]
    found = np.zeros(m, np.int64)
    # First position of the group of every place, once the pairs are sorted by it.
    pairs_of = np.bincount(place, minlength=len(y.rows))
    ends = np.zeros(len(pairs_of) + 1, np.int64)
    np.cumsum(pairs_of, out=ends[1:])
    for bit in reversed(range((len(y.rows) - 1).bit_length())):
        high = (place >> bit) & 1 == 1
        sums = np.zeros(m + 1, np.int64)
        np.cumsum(np.where(high, 0, rows), out=sums[1:])
        zeros = np.zeros(m + 1, np.int64)
        np.cumsum(~high, out=zeros[1:])
        first = ends[(place >> (bit + 1)) << (bit + 1)]
        found[order] += np.where(high, sums[:-1] - sums[first], 0)
        before = zeros[:-1] - zeros[first]
        start = ends[(place >> bit) << bit]
        target = start + np.where(high, np.arange(m) - first - before, before)
        moved = np.empty((3, m), np.int64)
        for row, column in zip(moved, (order, place, rows), strict=True):
            row[target] = column
        order, place, rows = moved
    return found


def _mean(share: _Floats, values: _Floats) -> float:
    """Weighted mean. Not by the dot product, whose last bits depend on the number of threads."""
    return float(np.sum(share * values))


def _correlation(method: str, pairs: Pairs, confidence: float) -> Correlation:
    found = projection(method, pairs)
    told: dict[str, Any] = {"method": method, "confidence": confidence}
    if isinstance(found, str):
        return Correlation(**told, n=int(np.sum(pairs.counts)), reason=found)
    told |= {"estimate": found.estimate, "n": found.n}
    if found.others < FEWEST_OTHERS:
        return Correlation(**told, reason=_TOO_ALIKE)
    error, reach = _error_and_reach(found.influence, found.share, found.n, confidence)
    if abs(found.estimate) >= 1 - 1e-12 or error == 0:
        return Correlation(**told, reason="the rows leave no spread to judge it by")
    middle = math.atanh(found.estimate)
    half = reach * error / (1 - found.estimate**2)
    low, high = math.tanh(middle - half), math.tanh(middle + half)
    return Correlation(**told, low=low, high=high, standard_error=error)


def _error_and_reach(influence: _Floats, share: _Floats, n: int, confidence: float) -> tuple[float, float]:
    """Standard error (0 where there is no spread), and how many of them an interval reaches."""
    square = influence * influence
    variance = _mean(share, square)
    if variance < 1e-24:
        return 0.0, 0.0
    excess = _mean(share, square * square) / variance**2 - 1
    freedom = max(2 * n / max(excess, 1e-300), 1.0)
    return math.sqrt(variance / n), student_quantile((1 + confidence) / 2, freedom)


#: What is compared: two rank correlations with y, and the area under the ROC curve of y at a threshold.
PAIRED_MEASURES: Final = ("spearman", "kendall", "auc")


class Triples(NamedTuple):
    """Counted triples of values; columns are (m,), and counts are above 0.

    `x` and `z` are places of the values of two variables among their distinct ones; `y` is the third
    variable.
    """

    x: _Ints
    z: _Ints
    y: NDArray[Any]
    counts: _Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """A measure of z with y less the same of x with y, on the same rows.

    NaN where there is none; `reason` says why there is no difference or no interval.
    """

    measure: str
    x: float = _NAN
    z: float = _NAN
    difference: float = _NAN
    low: float = _NAN
    high: float = _NAN
    standard_error: float = _NAN
    n: int
    reason: str = ""


def triples_of(x: NDArray[Any], z: NDArray[Any], y: NDArray[Any], counts: _Ints) -> Triples:
    """Triples from values (m,) and the rows with them; those with no rows are left out."""
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
    """How much better z goes with y than x does, by one or more of `PAIRED_MEASURES`.

    ``"auc"`` is the probability that a row with y of `threshold` or more has the larger x (or z) of two, ties
    counted half. The error of a difference is that of the mean of psi_z - psi_x (see the module), whatever
    ties x and z to each other, and whatever the ties within each.
    """
    n = int(triples.counts.sum())
    if n == 0:
        return [PairedDifference(measure=measure, n=0, reason="no rows") for measure in measures]
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
        return PairedDifference(measure=measure, n=n, reason=of_x if isinstance(of_x, str) else str(of_z))
    difference = of_z.estimate - of_x.estimate
    told: dict[str, Any] = {"measure": measure, "x": of_x.estimate, "z": of_z.estimate, "n": n}
    told["difference"] = difference
    if min(of_x.others, of_z.others) < FEWEST_OTHERS:
        return PairedDifference(**told, reason=_TOO_ALIKE)
    influence = of_z.influence - of_x.influence
    error, reach = _error_and_reach(influence, triples.counts / n, n, confidence)
    if error == 0:
        return PairedDifference(**told, reason="x and z order the rows alike")
    half = reach * error
    return PairedDifference(**told, low=difference - half, high=difference + half, standard_error=error)


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
