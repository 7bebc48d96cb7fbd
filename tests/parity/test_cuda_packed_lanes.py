"""Packed lanes, interpreted: half-precision numbers and integers that share their bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.dp.pairs.gaps import AffineGap, cell, gaps
from plait.lang.algebras import SaturatingMaxPlus, choice, extend
from plait.lang.lanes import add_saturating, maximum
from plait.lang.packed import (
    PACKED_LIMIT,
    AddedBefore,
    HalfPair,
    HighScores,
    IntegerStep,
    LowScores,
    half_bits,
    pack,
    unpack,
)

pytestmark = pytest.mark.interpreted(alone=True)

VALUES = st.integers(0, PACKED_LIMIT - 1)
STEPS = st.integers(1 - PACKED_LIMIT, PACKED_LIMIT)
PAIRS = st.tuples(VALUES, VALUES)


def pair(values: tuple[int, int]) -> HalfPair:
    return HalfPair(pack(*values))


def halves(low: int, high: int) -> Any:
    return pack(half_bits(low), half_bits(high))


def clipped(value: int) -> int:
    """What is read of a value: negative ones are as good as 0, and inexact ones are held at the limit."""
    return min(max(value, 0), PACKED_LIMIT)


def read(found: HalfPair) -> list[int]:
    return [clipped(value) for value in unpack(found.bits)]


def test_integers_and_numbers_share_their_bits() -> None:
    values = np.arange(PACKED_LIMIT + 1)
    assert np.array_equal(half_bits(values), values)


@given(PAIRS, st.integers(-PACKED_LIMIT, 0), st.integers(-PACKED_LIMIT, 0))
def test_integer_steps(values: tuple[int, int], first: int, second: int) -> None:
    found = add_saturating(pair(values), IntegerStep(pack(first, second)))
    assert unpack(found.bits) == (values[0] + first, values[1] + second)


@given(PAIRS, st.tuples(STEPS, STEPS), st.tuples(STEPS, STEPS))
def test_scores_of_two_words(values: tuple[int, int], a: tuple[int, int], b: tuple[int, int]) -> None:
    words = halves(*a), halves(*b)
    low = add_saturating(pair(values), LowScores(*words))
    assert read(low) == [clipped(values[0] + a[0]), clipped(values[1] + b[0])]
    high = add_saturating(pair(values), HighScores(*words))
    assert read(high) == [clipped(values[0] + a[1]), clipped(values[1] + b[1])]


@given(PAIRS, PAIRS, STEPS)
def test_the_maximum_is_never_negative(a: tuple[int, int], b: tuple[int, int], step: int) -> None:
    assert read(maximum(pair(a), pair(b))) == [max(a[0], b[0]), max(a[1], b[1])]
    lowered = add_saturating(pair(a), LowScores(halves(step, 0), halves(step, 0)))
    assert read(maximum(lowered, pair((0, 0)))) == [clipped(a[0] + step), clipped(a[1] + step)]


@given(PAIRS, PAIRS, PAIRS, STEPS, STEPS, st.integers(0, 2047), st.integers(0, 2047))
def test_a_cell_of_the_shared_recurrence(
    diag: tuple[int, int],
    e: tuple[int, int],
    f: tuple[int, int],
    first: int,
    second: int,
    opening: int,
    further: int,
) -> None:
    zero = pair((0, 0))
    alg = SaturatingMaxPlus(zero, zero)
    p = AffineGap(IntegerStep(pack(-opening, -opening)), IntegerStep(pack(-further, -further)))
    scores = LowScores(halves(first, 0), halves(second, 0))
    h = cell(p, alg, pair(diag), pair(e), pair(f), scores)
    want = [max(d + s, x, y, 0) for d, s, x, y in zip(diag, (first, second), e, f, strict=True)]
    assert read(h) == [clipped(value) for value in want]
    assert choice(alg, extend(alg, h, AddedBefore()), zero) == choice(alg, h, zero)
    if max(want) < PACKED_LIMIT:
        right, down = gaps(p, alg, h, pair(e), pair(f))
        assert read(right) == [max(x - further, v - opening, 0) for x, v in zip(e, want, strict=True)]
        assert read(down) == [max(y - further, v - opening, 0) for y, v in zip(f, want, strict=True)]


@pytest.mark.parametrize("score", range(1, PACKED_LIMIT + 1, 13))
def test_sums_from_the_limit_on_are_not_taken_for_exact(score: int) -> None:
    values = np.arange(PACKED_LIMIT - score, PACKED_LIMIT)
    sums = (half_bits(values).view(np.float16) + half_bits(score).view(np.float16)).view(np.int16)
    assert (sums >= PACKED_LIMIT).all()
