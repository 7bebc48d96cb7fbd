"""The laws of the algebras: recurrences and schedules rely on nothing else."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.lang import algebras
from plait.lang.algebras import (
    BIG_COUNT,
    COUNT,
    EXACTNESS,
    MAX_PRODUCT,
    PROBABILITY,
    SATURATING_COUNT,
    WEIGHTED_SUM,
    MaxPlus,
    SaturatingCount,
    SaturatingMaxPlus,
    algebra_in_lanes,
    choice,
    extend,
    over_lanes,
    repeat,
    with_zero,
)
from plait.lang.lanes import LANES, lanes_of, load

pytestmark = pytest.mark.interpreted(alone=True)

SMALL_LIMIT = SaturatingCount(0, 1, 50)
COUNTS = st.integers(0, 60)
#: Values whose products and sums are exact in float64.
WEIGHTS = st.integers(-8, 0).map(lambda power: 2.0**power) | st.just(0.0)
CASES = {
    "count": (COUNT, COUNTS.map(np.int64)),
    "big": (BIG_COUNT, st.integers(0, 10**30)),
    "saturating": (SATURATING_COUNT, COUNTS.map(np.int64)),
    "small limit": (SMALL_LIMIT, st.integers(0, 50)),
    "probability": (PROBABILITY, WEIGHTS),
    "max product": (MAX_PRODUCT, WEIGHTS),
    "max plus": (MaxPlus(-math.inf, 0.0), st.integers(-40, 40).map(float) | st.just(-math.inf)),
    "weighted sum": (WEIGHTED_SUM, st.tuples(WEIGHTS, WEIGHTS)),
}


def triples(name: str) -> st.SearchStrategy[tuple[Any, Any, Any, Any]]:
    algebra, values = CASES[name]
    return st.tuples(st.just(algebra), values, values, values)


ANY = st.sampled_from(sorted(CASES)).flatmap(triples)
REPEATABLE = [name for name in sorted(CASES) if hasattr(CASES[name][0], "repeat")]
REPEATING = st.sampled_from(REPEATABLE).flatmap(triples)


@given(ANY)
def test_choice_is_commutative_and_associative(drawn: tuple[Any, Any, Any, Any]) -> None:
    alg, a, b, c = drawn
    assert choice(alg, a, b) == choice(alg, b, a)
    assert choice(alg, a, choice(alg, b, c)) == choice(alg, choice(alg, a, b), c)


@given(ANY)
def test_extend_is_associative_and_distributes(drawn: tuple[Any, Any, Any, Any]) -> None:
    alg, a, b, c = drawn
    assert extend(alg, a, extend(alg, b, c)) == extend(alg, extend(alg, a, b), c)
    assert extend(alg, a, choice(alg, b, c)) == choice(alg, extend(alg, a, b), extend(alg, a, c))
    assert extend(alg, choice(alg, a, b), c) == choice(alg, extend(alg, a, c), extend(alg, b, c))


@given(ANY)
def test_neutral_elements(drawn: tuple[Any, Any, Any, Any]) -> None:
    alg, a, *_ = drawn
    assert choice(alg, a, alg.zero) == a
    assert choice(alg, alg.zero, a) == a
    assert extend(alg, a, alg.one) == a
    assert extend(alg, alg.one, a) == a
    assert extend(alg, a, alg.zero) == alg.zero
    assert extend(alg, alg.zero, a) == alg.zero


@given(REPEATING, st.integers(1, 9))
def test_repeat_is_the_choice_between_equals(drawn: tuple[Any, Any, Any, Any], times: int) -> None:
    alg, a, *_ = drawn
    assert repeat(alg, a, alg.one * times) == functools.reduce(functools.partial(choice, alg), [a] * times)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 60))
def test_saturation_is_the_smaller_of_count_and_limit(a: int, b: int, limit: int) -> None:
    alg = SaturatingCount(0, 1, limit)
    a, b = min(a, limit), min(b, limit)
    assert choice(alg, a, b) == min(a + b, limit)
    assert extend(alg, a, b) == min(a * b, limit)


def test_saturation_at_64_bits_never_wraps() -> None:
    limit = SATURATING_COUNT.limit
    assert limit == 2**63 - 1
    half = np.int64(2**62)
    with np.errstate(over="raise"):
        assert choice(SATURATING_COUNT, half, half) == limit
        assert choice(SATURATING_COUNT, half, half - 1) == limit
        assert choice(SATURATING_COUNT, half, half - 2) == limit - 1
        assert extend(SATURATING_COUNT, np.int64(2**31), np.int64(2**32)) == limit
        assert extend(SATURATING_COUNT, limit, np.int64(1)) == limit
        assert extend(SATURATING_COUNT, limit, np.int64(0)) == 0
        assert extend(SATURATING_COUNT, np.int64(7), np.int64(1317624576693539401)) == limit


GROUPED = ("count", "probability", "max product")


@pytest.mark.parametrize("name", GROUPED)
@given(data=st.data())
def test_groups_of_lanes_are_lanes(name: str, data: st.DataObject) -> None:
    alg, values = CASES[name]
    a, b = (np.array(data.draw(st.lists(values, min_size=4, max_size=4))) for _ in range(2))
    times = np.full(4, alg.one * 3)
    for found, one in (
        (choice(alg, a, b), [choice(alg, x, y) for x, y in zip(a, b, strict=True)]),
        (extend(alg, a, b), [extend(alg, x, y) for x, y in zip(a, b, strict=True)]),
        (repeat(alg, a, times), [repeat(alg, x, alg.one * 3) for x in a]),
    ):
        assert found.tolist() == one


#: 8-bit algebras of scores: the smallest number, or 0, is where nothing goes below.
NARROW = {
    "saturating": SaturatingMaxPlus(np.int8(-128), np.int8(0)),
    "saturating by hand": MaxPlus(np.int8(-128), np.int8(0)),
    "never negative": MaxPlus(np.int8(0), np.int8(0)),
}
SCORES = st.integers(-128, 127) | st.sampled_from([-128, -127, 126, 127])


@pytest.mark.parametrize("name", NARROW)
@given(a=SCORES, b=SCORES, c=SCORES)
def test_laws_that_limits_leave(name: str, a: int, b: int, c: int) -> None:
    alg = NARROW[name]
    x, y, z = (choice(alg, np.int8(value), alg.zero) for value in (a, b, c))
    assert choice(alg, x, y) == choice(alg, y, x)
    assert choice(alg, x, choice(alg, y, z)) == choice(alg, choice(alg, x, y), z)
    assert extend(alg, x, choice(alg, y, z)) == choice(alg, extend(alg, x, y), extend(alg, x, z))
    assert extend(alg, x, y) == extend(alg, y, x) >= alg.zero
    assert choice(alg, x, alg.zero) == extend(alg, x, alg.one) == x
    assert extend(alg, x, y).dtype == choice(alg, x, y).dtype == np.int8


@pytest.mark.parametrize("name", NARROW)
@given(start=SCORES, steps=st.lists(st.tuples(st.booleans(), SCORES), max_size=8))
def test_narrow_scores_are_exact_until_one_reaches_the_limit(
    name: str, start: int, steps: list[tuple[bool, int]]
) -> None:
    alg = NARROW[name]
    whole = MaxPlus(int(alg.zero), 0)
    narrow, wide = choice(alg, np.int8(start), alg.zero), max(start, whole.zero)
    for extending, value in steps:
        operation = extend if extending else choice
        narrow, wide = operation(alg, narrow, np.int8(value)), operation(whole, wide, value)
        if wide >= 127:
            assert narrow == 127
            break
        assert narrow == wide


@pytest.mark.parametrize("width", [1, 2, 16])
@pytest.mark.parametrize("name", NARROW)
@given(data=st.data())
def test_groups_of_scores_are_lanes(name: str, width: int, data: st.DataObject) -> None:
    alg = NARROW[name]
    grouped = algebra_in_lanes(alg, lanes_of(width))
    assert type(grouped) is type(alg)
    a, b = (data.draw(st.lists(SCORES, min_size=width, max_size=width)) for _ in range(2))
    for operation in (choice, extend):
        found = operation(grouped, np.array(a, np.int8), np.array(b, np.int8))
        assert found.dtype == np.int8
        assert found.tolist() == [operation(alg, np.int8(x), np.int8(y)) for x, y in zip(a, b, strict=True)]


def test_another_zero() -> None:
    assert with_zero(MaxPlus(-9, 0), 3) == MaxPlus(3, 0)
    # Where saturation is what holds the limit, there is no choice.
    assert with_zero(NARROW["saturating"], 3) == NARROW["saturating"]


@pytest.mark.parametrize("width", sorted(LANES))
@given(values=st.lists(st.integers(0, 99), min_size=8, max_size=8))
def test_choice_over_the_lanes_of_a_group(width: int, values: list[int]) -> None:
    rows = np.array([values], float)
    for alg, whole in ((PROBABILITY, sum), (MAX_PRODUCT, max)):
        assert over_lanes(alg, load(LANES[width], rows, 0, 0)) == whole(values[:width])


def test_every_algebra_states_its_exactness() -> None:
    classes = [x for x in vars(algebras).values() if isinstance(x, type) and hasattr(x, "choice")]
    assert set(EXACTNESS) == set(classes)
    assert set(EXACTNESS.values()) <= {"bitwise", "ulp"}
