"""Algebras: what *choose between* and *extend by* mean.

An algebra is a NamedTuple: its fields are the neutral elements, its static methods the two operations.
Every recurrence is written with ``choice`` and ``extend`` alone, so that the same body counts, sums
probabilities or finds the best scenario; ``repeat`` is the choice between equal alternatives. The
operations also take groups of lanes (`plait.lanes`), where the class says so.

``exactness`` is ``"bitwise"`` when results are equal on every target, split and lane width, and
``"ulp"`` when they are equal up to the rounding stated in the class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import by_type
from plait.lanes import maximum

__all__ = [
    "BIG_COUNT",
    "COUNT",
    "MAX_PRODUCT",
    "PROBABILITY",
    "SATURATING_COUNT",
    "Count",
    "MaxProduct",
    "Probability",
    "SaturatingCount",
    "choice",
    "extend",
    "repeat",
]


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
    def extend(alg: MaxProduct, a: Any, b: Any) -> Any:
        return a * b

    @staticmethod
    def repeat(alg: MaxProduct, a: Any, times: Any) -> Any:
        return a


#: How far results may differ between targets and splits.
EXACTNESS = {Count: "bitwise", SaturatingCount: "bitwise", Probability: "ulp", MaxProduct: "bitwise"}

COUNT = Count(np.int64(0), np.int64(1))
SATURATING_COUNT = SaturatingCount(np.int64(0), np.int64(1), np.int64(2**63 - 1))
PROBABILITY = Probability(0.0, 1.0)
MAX_PRODUCT = MaxProduct(0.0, 1.0)
#: Python integers: counts of any size, for the interpreted target only.
BIG_COUNT = Count(0, 1)


@by_type
def choice(alg: Any, a: Any, b: Any) -> Any:
    """The algebra's choice between two alternatives."""


@by_type
def extend(alg: Any, a: Any, b: Any) -> Any:
    """The algebra's extension of a value by a step."""


@by_type
def repeat(alg: Any, a: Any, times: Any) -> Any:
    """The choice between `times` >= 1 equal alternatives; `times` is a value of the algebra's type."""
