"""Algebras (semirings): what *choose between* and *extend by* mean.

An algebra is a NamedTuple: its fields are the neutral elements, its static methods the two operations. Every
recurrence is written with ``choice`` and ``extend`` alone, so that the same body counts, sums probabilities
or finds the best scenario; ``repeat`` is the choice between equal alternatives. The operations also take
groups of lanes (`plait.lang.lanes`), where the class says so.

Some schedules ask for more, and refuse an algebra that does not state it. ``is_better`` is stated where a
choice is one of the two alternatives: so bodies find the best end without knowing whether high or low is
good. ``adds_scores`` is stated where steps add and the highest value is best, which lanes that count scores
from a base rely on. ``exactness`` is ``"bitwise"`` when results are equal on every target, split and lane
width, and ``"ulp"`` when they are equal up to the rounding stated in the class.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from plait.lang.compile import by_type, specialise
from plait.lang.lanes import add_saturating, lower_half, maximum, splat, upper_half


class Count(NamedTuple):
    """Number of ways: add alternatives, multiply steps. Exact as long as nothing overflows."""

    zero: Any
    one: Any

    @staticmethod
    def choice(alg: Count, a: Any, b: Any) -> Any:
        return a + b

    @staticmethod
    def extend(alg: Count, a: Any, b: Any) -> Any:
        return a * b

    @staticmethod
    def repeat(alg: Count, a: Any, times: Any) -> Any:
        return a * times


class SaturatingCount(NamedTuple):
    """Counts that stick at ``limit`` instead of wrapping: a result below it is exact.

    Counts are never negative and both operations are monotone, so a value reaches ``limit`` if and
    only if the true count is at least that large.
    """

    zero: Any
    one: Any
    limit: Any

    @staticmethod
    def choice(alg: SaturatingCount, a: Any, b: Any) -> Any:
        return alg.limit if a > alg.limit - b else a + b

    @staticmethod
    def extend(alg: SaturatingCount, a: Any, b: Any) -> Any:
        if a == alg.zero or b == alg.zero:
            return alg.zero
        return alg.limit if a > alg.limit // b else a * b

    @staticmethod
    def repeat(alg: SaturatingCount, a: Any, times: Any) -> Any:
        return extend(alg, a, times)


class Probability(NamedTuple):
    """Sum over alternatives, product over steps, in float64.

    Each operation rounds once, by at most half an ulp; no cancellation can occur because all values
    are non-negative, so a result of n operations is within n/2 ulp relative error.
    """

    zero: Any
    one: Any

    @staticmethod
    def choice(alg: Probability, a: Any, b: Any) -> Any:
        return a + b

    @staticmethod
    def extend(alg: Probability, a: Any, b: Any) -> Any:
        return a * b

    @staticmethod
    def repeat(alg: Probability, a: Any, times: Any) -> Any:
        return a * times


class MaxProduct(NamedTuple):
    """Weight of the best alternative; one rounding per product, none per choice."""

    zero: Any
    one: Any

    @staticmethod
    def choice(alg: MaxProduct, a: Any, b: Any) -> Any:
        return maximum(a, b)

    @staticmethod
    def is_better(alg: MaxProduct, a: Any, b: Any) -> Any:
        return a > b

    @staticmethod
    def extend(alg: MaxProduct, a: Any, b: Any) -> Any:
        return a * b

    @staticmethod
    def repeat(alg: MaxProduct, a: Any, times: Any) -> Any:
        return a


class MaxPlus(NamedTuple):
    """Best sum of scores. Nothing falls below ``zero``: minus infinity, or the score from which anew is free.

    With ``zero = 0`` a step that would go below it starts again, which makes a global recurrence a local one.
    """

    zero: Any
    one: Any

    @staticmethod
    def algebra_in_lanes(alg: MaxPlus, lanes: Any) -> Any:
        return MaxPlus(splat(lanes, alg.zero), splat(lanes, alg.one))

    @staticmethod
    def with_zero(alg: MaxPlus, zero: Any) -> Any:
        return MaxPlus(zero, alg.one)

    @staticmethod
    def adds_scores(alg: MaxPlus) -> Any:
        return True

    @staticmethod
    def is_better(alg: MaxPlus, a: Any, b: Any) -> Any:
        return a > b

    @staticmethod
    def choice(alg: MaxPlus, a: Any, b: Any) -> Any:
        return maximum(a, b)

    @staticmethod
    def extend(alg: MaxPlus, a: Any, b: Any) -> Any:
        return maximum(add_saturating(a, b), alg.zero)


class SaturatingMaxPlus(NamedTuple):
    """`MaxPlus` on lanes whose smallest number is ``zero``: saturation holds that limit at no cost.

    Values are those of `MaxPlus` as long as none has reached the largest number of the lanes.
    """

    zero: Any
    one: Any

    @staticmethod
    def algebra_in_lanes(alg: SaturatingMaxPlus, lanes: Any) -> Any:
        return SaturatingMaxPlus(splat(lanes, alg.zero), splat(lanes, alg.one))

    @staticmethod
    def with_zero(alg: SaturatingMaxPlus, zero: Any) -> Any:
        return alg

    @staticmethod
    def adds_scores(alg: SaturatingMaxPlus) -> Any:
        return True

    @staticmethod
    def is_better(alg: SaturatingMaxPlus, a: Any, b: Any) -> Any:
        return a > b

    @staticmethod
    def choice(alg: SaturatingMaxPlus, a: Any, b: Any) -> Any:
        return maximum(a, b)

    @staticmethod
    def extend(alg: SaturatingMaxPlus, a: Any, b: Any) -> Any:
        return add_saturating(a, b)


class LogSum(NamedTuple):
    """Sum over alternatives, product over steps, of values of which the logarithms are kept, in float64.

    With u = 2^-52, a choice is within ``2.5 u * max(1, |result|)`` and an extension within half an ulp, where
    exp and log1p are within one ulp. A choice never makes the errors of its operands larger, so a result d
    operations deep is within 2.5 d u * max(1, the largest magnitude on the way). ``zero`` is minus infinity.
    """

    zero: Any
    one: Any

    @staticmethod
    def choice(alg: LogSum, a: Any, b: Any) -> Any:
        high = a if a > b else b
        low = b if a > b else a
        # Two zeros would be subtracted to what is no number.
        return high if low == alg.zero else high + math.log1p(math.exp(low - high))

    @staticmethod
    def extend(alg: LogSum, a: Any, b: Any) -> Any:
        return a + b


class Optimal(NamedTuple):
    """A value and, of the alternatives that reach it, what another algebra makes of them: pairs of both.

    With `MaxPlus` and `Count`: the best score, and how many have it. Exact as the two algebras are.
    """

    zero: Any
    one: Any
    best: Any
    among: Any

    @staticmethod
    def choice(alg: Optimal, a: Any, b: Any) -> Any:
        if is_better(alg.best, a[0], b[0]):
            return a
        if is_better(alg.best, b[0], a[0]):
            return b
        return a[0], choice(alg.among, a[1], b[1])

    @staticmethod
    def extend(alg: Optimal, a: Any, b: Any) -> Any:
        return extend(alg.best, a[0], b[0]), extend(alg.among, a[1], b[1])


class Bits(NamedTuple):
    """Whether something holds, in as many lanes as a word has bits: ``zero`` nowhere, ``one`` everywhere.

    The Boolean semiring: a choice holds where one of the alternatives does, an extension where both steps do.
    It has complements, so `opposite` is stated. Words are signed integers, or groups of them.
    """

    zero: Any
    one: Any

    @staticmethod
    def algebra_in_lanes(alg: Bits, lanes: Any) -> Any:
        # Not of the argument alone: constants, so that a complement is part of the next instruction.
        return Bits(splat(lanes, alg.zero & 0), splat(lanes, alg.one | -1))

    @staticmethod
    def choice(alg: Bits, a: Any, b: Any) -> Any:
        return a | b

    @staticmethod
    def extend(alg: Bits, a: Any, b: Any) -> Any:
        return a & b

    @staticmethod
    def opposite(alg: Bits, a: Any) -> Any:
        return a ^ alg.one


class WeightedSum(NamedTuple):
    """Pairs (w, s) for sums over ways: of their weights, and of their weights times an amount.

    The amount of a way is the sum of those of its steps: a step of weight p and amount a is (p, p a), and
    s / w is the mean amount. Values are tuples, for the interpreted target; what it finds in a pass forwards,
    `plait.dp.chain.adjoint` finds for all steps at once in a pass backwards.
    """

    zero: Any
    one: Any

    @staticmethod
    def choice(alg: WeightedSum, a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1]

    @staticmethod
    def extend(alg: WeightedSum, a: Any, b: Any) -> Any:
        return a[0] * b[0], a[0] * b[1] + a[1] * b[0]


#: How far results may differ between targets and splits.
EXACTNESS = {
    Count: "bitwise",
    SaturatingCount: "bitwise",
    Probability: "ulp",
    MaxProduct: "bitwise",
    MaxPlus: "bitwise",
    SaturatingMaxPlus: "bitwise",
    LogSum: "ulp",
    Optimal: "bitwise",
    Bits: "bitwise",
    WeightedSum: "ulp",
}

COUNT = Count(np.int64(0), np.int64(1))
SATURATING_COUNT = SaturatingCount(np.int64(0), np.int64(1), np.int64(2**63 - 1))
PROBABILITY = Probability(0.0, 1.0)
MAX_PRODUCT = MaxProduct(0.0, 1.0)
LOG_SUM = LogSum(-math.inf, 0.0)
WEIGHTED_SUM = WeightedSum((0.0, 0.0), (1.0, 0.0))
#: 64 lanes in a word, and 32 of them on a GPU.
BITS = Bits(np.int64(0), np.int64(-1))
HALF_BITS = Bits(np.int32(0), np.int32(-1))
#: Python integers: counts of any size, for the interpreted target only.
BIG_COUNT = Count(0, 1)


@by_type
def algebra_in_lanes(alg: Any, lanes: Any) -> Any:
    """The algebra with its neutral elements in every lane."""


@by_type
def with_zero(alg: Any, zero: Any) -> Any:
    """The algebra with another ``zero``, where that can be chosen."""


@by_type
def adds_scores(alg: Any) -> Any:
    """True: steps add, and the highest value is best."""


@by_type
def is_better(alg: Any, a: Any, b: Any) -> Any:
    """Whether the first of two values is better, where a choice is one of the two."""


@by_type
def choice(alg: Any, a: Any, b: Any) -> Any:
    """The algebra's choice between two alternatives."""


@by_type
def extend(alg: Any, a: Any, b: Any) -> Any:
    """The algebra's extension of a value by a step."""


@by_type
def opposite(alg: Any, a: Any) -> Any:
    """The complement of a value, where the algebra has any."""


@by_type
def repeat(alg: Any, a: Any, times: Any) -> Any:
    """The choice between `times` >= 1 equal alternatives; `times` is a value of the algebra's type."""


def over_lanes(alg: Any, a: Any) -> Any:
    """The choice between all lanes of a group, by halves; a number is itself."""
    while isinstance(a, np.ndarray):
        a = choice(alg, lower_half(a), upper_half(a))
    return a


def _over_group(alg: Any, a: Any) -> Any:
    return over_lanes(alg, choice(alg, lower_half(a), upper_half(a)))


def _over_number(alg: Any, a: Any) -> Any:
    return a


# Compiled, a group knows its width; a number has none.
specialise(over_lanes, lambda alg, a: _over_group if hasattr(a, "width") else _over_number)
