"""Lanes: every operation means the same for one lane, a group in plain Python, and a vector register."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import often

from plait.lang.compile import kernel
from plait.lang.lanes import (
    LANES,
    PADDING,
    any_bits,
    host_lanes,
    load,
    lowest_bit,
    maximum,
    padded,
    population,
    prefetch,
    product,
    ratio,
    splat,
    store,
)

pytestmark = pytest.mark.interpreted

SIZE = 16
WORDS = st.integers(-(2**63), 2**63 - 1)


def arithmetic(lanes: Any, a: Any, b: Any, out: Any) -> None:
    """Every operation on numbers, group by group, one result row each."""
    for x in range(0, a.shape[1], lanes.width):
        first = load(lanes, a, 0, x)
        second = load(lanes, b, 0, x)
        store(lanes, out, 0, x, first + second)
        store(lanes, out, 1, x, first * second)
        store(lanes, out, 2, x, maximum(first, second))
        store(lanes, out, 3, x, first + splat(lanes, b[0, 0]))


def bit_operations(lanes: Any, a: Any, b: Any, out: Any) -> None:
    """Every operation on bits, and the bits that are set in any lane."""
    for x in range(0, a.shape[1], lanes.width):
        first = load(lanes, a, 0, x)
        second = load(lanes, b, 0, x)
        store(lanes, out, 0, x, first & second)
        store(lanes, out, 1, x, first | second)
        store(lanes, out, 2, x, first >> splat(lanes, 3))
        out[3, x] = any_bits(first)


def counts_of_bits(words: Any, out: Any) -> None:
    for x in range(words.size):
        out[0, x] = population(words[x])
        out[1, x] = lowest_bit(words[x])


compiled_arithmetic = kernel(arithmetic)
compiled_bit_operations = kernel(bit_operations)
compiled_counts = kernel(counts_of_bits)

#: Widths that are compiled here; each one takes a moment.
COMPILED = often(1, sorted({1, 2, host_lanes().width}, reverse=True))


def drawn_rows(dtype: Any, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype == np.float64:
        return tuple(rng.standard_normal((1, SIZE)) for _ in range(2))  # type: ignore[return-value]
    return tuple(rng.integers(-(2**31), 2**31, (1, SIZE)) for _ in range(2))  # type: ignore[return-value]


def results(function: Any, width: int, a: Any, b: Any) -> Any:
    out = np.zeros((4, SIZE), a.dtype)
    function(LANES[width], a, b, out)
    return out


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("width", LANES)
def test_arithmetic_is_that_of_numpy(width: int, dtype: Any) -> None:
    a, b = drawn_rows(dtype, width)
    wanted = np.concatenate([a + b, a * b, np.maximum(a, b), a + b[0, 0]])
    assert np.array_equal(results(arithmetic, width, a, b), wanted)


@pytest.mark.parametrize("width", LANES)
def test_bit_operations_are_those_of_numpy(width: int) -> None:
    a, b = drawn_rows(np.int64, width)
    found = results(bit_operations, width, a, b)
    assert np.array_equal(found[:3], np.concatenate([a & b, a | b, a >> 3]))
    groups = np.bitwise_or.reduce(a.reshape(-1, width), axis=1)
    assert np.array_equal(found[3, ::width], groups)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("width", COMPILED)
def test_compiled_arithmetic(width: int, dtype: Any) -> None:
    a, b = drawn_rows(dtype, 100 + width)
    found, wanted = (results(f, width, a, b) for f in (compiled_arithmetic, arithmetic))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("width", COMPILED)
def test_compiled_bit_operations(width: int) -> None:
    a, b = drawn_rows(np.int64, 200 + width)
    found, wanted = (results(f, width, a, b) for f in (compiled_bit_operations, bit_operations))
    assert np.array_equal(found, wanted)


@given(WORDS)
def test_population(word: int) -> None:
    assert population(word) == sum((word >> k) & 1 for k in range(64))


@given(WORDS.filter(bool))
def test_lowest_bit(word: int) -> None:
    k = lowest_bit(word)
    assert (word >> k) & 1
    assert word & ((1 << k) - 1) == 0


def test_compiled_counts_of_bits() -> None:
    words = np.array([1, 2, 3, 0b10100, 2**62, -1, -(2**63), 2**63 - 1, -2], np.int64)
    out = np.zeros((2, words.size), np.int64)
    compiled_counts(words, out)
    assert out[0].tolist() == [population(int(w)) for w in words]
    assert out[1].tolist() == [lowest_bit(int(w)) for w in words]


@given(st.integers(0, 1000))
def test_padding(lanes: int) -> None:
    assert padded(lanes) % PADDING == 0
    assert 0 <= padded(lanes) - lanes < PADDING
    assert all(PADDING % width == 0 for width in LANES)


def test_a_group_is_a_copy() -> None:
    rows = np.arange(8).reshape(1, 8)
    group = load(LANES[4], rows, 0, 2)
    rows[0, 2] = 99
    assert group.tolist() == [2, 3, 4, 5]


def test_a_store_touches_its_group_only() -> None:
    rows = np.zeros((2, 8), np.int64)
    store(LANES[2], rows, 1, 3, np.array([7, 8]))
    store(LANES[1], rows, 0, 0, 5)
    assert rows.tolist() == [[5, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 7, 8, 0, 0, 0]]


def test_lanes_of_python_integers() -> None:
    huge = splat(LANES[4], 10**30)
    assert (huge + huge).tolist() == [2 * 10**30] * 4


def test_the_host_has_a_width() -> None:
    assert host_lanes() in LANES.values()


@kernel
def fractions(lanes: Any, a: Any, out: Any) -> None:
    """Ratios and products of two rows."""
    for x in range(0, a.shape[1], lanes.width):
        prefetch(a, 1)
        first, second = load(lanes, a, 0, x), load(lanes, a, 1, x)
        store(lanes, out, 0, x, ratio(first, second))
        store(lanes, out, 1, x, product(first, second))


@pytest.mark.parametrize("width", often(1, [4, 1]))
def test_ratios_and_products(width: int) -> None:
    a = np.random.default_rng(1).normal(size=(2, 8))
    out, plain = np.zeros((2, 8)), np.zeros((2, 8))
    fractions(LANES[width], a, out)
    getattr(fractions, "py_func", fractions)(LANES[width], a, plain)
    np.testing.assert_array_equal(out, [a[0] / a[1], a[0] * a[1]])
    np.testing.assert_array_equal(out, plain)


def test_nothing_is_brought_near_from_elsewhere() -> None:
    for rows, row in ((np.zeros((2, 8)), 2), (np.zeros((2, 8)).T, 0), (np.zeros(3), -1)):
        with pytest.raises(IndexError, match=f"row {row} of an array"):
            prefetch(rows, row)
