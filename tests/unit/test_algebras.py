"""The laws of the algebras: recurrences and schedules rely on nothing else."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait import algebras
from plait.algebras import (
    BIG_COUNT,
    COUNT,
    EXACTNESS,
    MAX_PRODUCT,
    PROBABILITY,
    SATURATING_COUNT,
    SaturatingCount,
    choice,
    extend,
    repeat,
)

pytestmark = pytest.mark.interpreted

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
}


def triples(name: str) -> st.SearchStrategy[tuple[Any, Any, Any, Any]]:
    algebra, values = CASES[name]
    return st.tuples(st.just(algebra), values, values, values)


ANY = st.sampled_from(sorted(CASES)).flatmap(triples)


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


@given(ANY, st.integers(1, 9))
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


def test_every_algebra_states_its_exactness() -> None:
    classes = [x for x in vars(algebras).values() if isinstance(x, type) and hasattr(x, "choice")]
    assert set(EXACTNESS) == set(classes)
    assert set(EXACTNESS.values()) <= {"bitwise", "ulp"}
