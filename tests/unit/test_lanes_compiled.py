"""Compiled lanes give what the definitions give: every operation, lane type and width, one lane included.

Widths are those that fill a register of the processor at hand, and all others. `test_lanes_processors` runs
these tests once more for other processors.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.examples import often

from plait.dp.pairs.lists import lane_rows
from plait.lang.compile import kernel, shared
from plait.lang.lanes import (
    add_saturating,
    any_bits,
    equal,
    greater,
    held,
    host_lanes,
    interleaved,
    lanes_of,
    largest_lane,
    last_lane,
    load,
    lookup,
    majority,
    mask_bits,
    maximum,
    minimum,
    narrow,
    parity,
    product_even,
    product_odd,
    quotient,
    select,
    shift_in,
    splat,
    store,
    store_turned,
    stream,
    subtract_saturating,
    widen,
)

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")

#: Lanes of the operands, and where they begin: a group may start at any lane.
SIZE = 512
START = 3
#: Rows of results: those that are written, and more to see that nothing else is.
ROWS = 26
LARGEST = 13


@shared
def on_numbers(lanes: Any, at: int, a: Any, b: Any, codes: Any, table: Any, best: Any, out: Any) -> Any:
    p = load(lanes, a, 1, at)
    q = load(lanes, b, 1, at)
    store(lanes, out, 0, at, p + q)
    store(lanes, out, 1, at, p - q)
    store(lanes, out, 2, at, p * q)
    store(lanes, out, 3, at, maximum(p, q))
    store(lanes, out, 4, at, minimum(p, q))
    more = add_saturating(p, q)
    less = subtract_saturating(p, q)
    store(lanes, out, 5, at, more)
    store(lanes, out, 6, at, less)
    # A result of one lane must be as narrow as its operands: held at the same limits a second time.
    store(lanes, out, 7, at, add_saturating(maximum(more, q), minimum(less, p)))
    store(lanes, out, 8, at, select(greater(p, q), less, more))
    store(lanes, out, 9, at, subtract_saturating(select(equal(p, q), p, q), splat(lanes, b[1, at])))
    store(lanes, out, 10, at, add_saturating(shift_in(p, b[1, at]), p))
    store(lanes, out, 11, at, lookup(lanes, table, 1, load(lanes, codes[0], 1, at)))
    store(lanes, out, 12, at, add_saturating(lookup(lanes, table, 0, load(lanes, codes[1], 1, at)), p))
    out[13, at] = largest_lane(p)
    out[14, at] = last_lane(p)
    return add_saturating(maximum(best, p), minimum(best, q))


@shared
def on_masks(lanes: Any, at: int, a: Any, b: Any, words: Any) -> None:
    p = load(lanes, a, 1, at)
    q = load(lanes, b, 1, at)
    words[0, at] = mask_bits(greater(p, q))
    words[1, at] = mask_bits(equal(p, q))


@shared
def on_bits(lanes: Any, at: int, a: Any, b: Any, out: Any) -> None:
    p = load(lanes, a, 1, at)
    q = load(lanes, b, 1, at)
    store(lanes, out, 15, at, p & q)
    store(lanes, out, 16, at, p | q)
    store(lanes, out, 17, at, p >> load(lanes, b, 0, at))
    out[18, at] = any_bits(p)
    r = load(lanes, a, 0, at)
    store(lanes, out, 22, at, parity(p, q, r))
    store(lanes, out, 23, at, majority(p, q, r))


@shared
def on_bytes(lanes: Any, at: int, a: Any, codes: Any, narrow: Any, out: Any) -> None:
    p = load(lanes, a, 1, at)
    index = load(lanes, codes[0], 1, at)
    store(lanes, out, 19, at, add_saturating(p, widen(p, lookup(lanes, narrow, 0, index))))
    store(lanes, out, 20, at, widen(p, lookup(lanes, narrow, 1, load(lanes, codes[1], 1, at))))


def signed(lanes: Any, a: Any, b: Any, codes: Any, table: Any, narrow: Any, out: Any, words: Any) -> None:
    best = splat(lanes, a[1, 3])
    for at in range(3, 3 + 512, lanes.width):
        best = on_numbers(lanes, at, a, b, codes, table, best, out)
        on_masks(lanes, at, a, b, words)
        on_bits(lanes, at, a, b, out)
        on_bytes(lanes, at, a, codes, narrow, out)
        store(lanes, out, 21, at, best)


def unsigned(lanes: Any, a: Any, b: Any, codes: Any, table: Any, narrow: Any, out: Any, words: Any) -> None:
    best = splat(lanes, a[1, 3])
    for at in range(3, 3 + 512, lanes.width):
        best = on_numbers(lanes, at, a, b, codes, table, best, out)
        on_masks(lanes, at, a, b, words)
        on_bits(lanes, at, a, b, out)
        store(lanes, out, 21, at, best)


def floating(lanes: Any, a: Any, b: Any, codes: Any, table: Any, narrow: Any, out: Any, words: Any) -> None:
    best = splat(lanes, a[1, 3])
    for at in range(3, 3 + 512, lanes.width):
        best = on_numbers(lanes, at, a, b, codes, table, best, out)
        on_masks(lanes, at, a, b, words)
        store(lanes, out, 21, at, best)


DEFINITIONS = (
    dict.fromkeys(SIGNED, signed) | dict.fromkeys(UNSIGNED, unsigned) | dict.fromkeys(FLOATS, floating)
)
FULL = {dtype: host_lanes(8 * np.dtype(dtype).itemsize).width for dtype in DEFINITIONS}
#: Every width of the types that scores, counts and probabilities have; of others every second one, by turns.
KINDS = [
    (dtype, width)
    for number, dtype in enumerate((*SIGNED, *UNSIGNED, *FLOATS))
    for place, width in enumerate(WIDTHS)
    if dtype in (*SIGNED, "float64") or width in (1, FULL[dtype]) or (place + number) % 2
]
#: Those of every run: a full register of most types, and widths that fill none for one type by turns. The
#: rest is compiled for the same operations and takes seconds each.
OFTEN = [
    (dtype, width)
    for dtype, full in FULL.items()
    for place, width in enumerate(WIDTHS)
    if (width == full and dtype not in SIGNED[1:3])
    or (width not in FULL.values() and dtype == SIGNED[place % 4])
]
COMPILED = {function: kernel(function) for function in (signed, unsigned, floating)}


def special(dtype: Any) -> list[Any]:
    """Limits of a type, their neighbours, and numbers around zero and half-way."""
    if np.issubdtype(dtype, np.floating):
        limits = np.finfo(dtype)
        return [
            0.0,
            -0.0,
            1.0,
            -1.5,
            limits.max,
            limits.min,
            limits.tiny,
            np.inf,
            -np.inf,
            limits.eps,
            3.0,
            1e10,
        ]
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    middle = (low + high) // 2
    return sorted(
        {low, low + 1, low // 2, middle, middle + 1, 0, 1, 2, high // 2 + 1, high - 1, high, high // 3}
    )


def operands(dtype: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """All pairs of special numbers, in changing lanes, then drawn ones."""
    pairs = list(itertools.product(special(dtype), repeat=2))
    rng.shuffle(pairs)
    firsts, seconds = (np.array(numbers, dtype) for numbers in zip(*pairs, strict=True))
    rest = SIZE - firsts.size
    if np.issubdtype(dtype, np.floating):
        drawn = [rng.standard_normal(rest).astype(dtype) for _ in range(2)]
    else:
        limits = np.iinfo(dtype)
        drawn = [rng.integers(limits.min, limits.max, rest, dtype, endpoint=True) for _ in range(2)]
        # Equal, and small ones: neither saturates.
        drawn[1][:40] = drawn[0][:40]
        drawn[0][-80:] >>= dtype.itemsize * 8 // 2
        drawn[1][-80:] >>= dtype.itemsize * 8 // 2
    return np.concatenate([firsts, drawn[0]]), np.concatenate([seconds, drawn[1]])


def inputs(dtype: Any, seed: int) -> tuple[Any, ...]:
    """Two operands, codes below 32 in 8 and in 16 bits, a table of the operands' type, one of bytes."""
    rng = np.random.default_rng(seed)
    shape = (2, START + SIZE + 2)
    a, b = np.zeros(shape, dtype), np.zeros(shape, dtype)
    a[1, START:-2], b[1, START:-2] = operands(dtype, rng)
    if np.issubdtype(dtype, np.integer):
        # The first row is a third operand of bits.
        limits = np.iinfo(dtype)
        a[0] = rng.integers(limits.min, limits.max, shape[1], dtype, endpoint=True)
    # The first row of the second operand is what the first is shifted by.
    b[0] = rng.integers(0, dtype.itemsize * 8, shape[1])
    codes = tuple(rng.integers(0, 32, shape).astype(kind) for kind in (np.uint8, np.uint16))
    numbers = rng.integers(-(2**62), 2**62, (2, 32))
    return a, b, codes, numbers.astype(dtype), rng.integers(-128, 128, (2, 32)).astype(np.int8)


def results(function: Any, width: int, drawn: tuple[Any, ...]) -> tuple[Any, Any]:
    a = drawn[0]
    # What is not written must stay as it is.
    out, words = np.full((ROWS, a.shape[1]), 77, a.dtype), np.full((2, a.shape[1]), 77, np.int64)
    # NumPy warns of numbers that wrap, and of infinities, when there is one lane.
    with np.errstate(all="ignore"):
        function(lanes_of(width), *drawn, out, words)
    return out, words


@pytest.mark.parametrize(
    ("dtype", "width"),
    [pytest.param(*kind, marks=[] if kind in OFTEN else [pytest.mark.slow]) for kind in KINDS],
)
def test_compiled_operations_are_the_definitions(dtype: str, width: int) -> None:
    definition = DEFINITIONS[dtype]
    drawn = inputs(np.dtype(dtype), width)
    out, words = results(COMPILED[definition], width, drawn)
    wanted_out, wanted_words = results(definition, width, drawn)
    for row in range(ROWS):
        same = out[row] == wanted_out[row]
        if definition is floating:
            # Zeros have a sign, except in the largest lane; a NaN may have any bits.
            same &= (np.signbit(out[row]) == np.signbit(wanted_out[row])) | (row == LARGEST)
            same |= np.isnan(out[row]) & np.isnan(wanted_out[row])
        assert same.all(), (row, np.flatnonzero(~same)[:5])
    assert np.array_equal(words, wanted_words)


def test_every_run_has_every_type_and_width() -> None:
    some = set(OFTEN) & set(KINDS)
    assert {dtype for dtype, _ in some} == set(DEFINITIONS)
    assert {width for _, width in some} == set(WIDTHS)


def quotients(lanes: Any, a: Any, b: Any, out: Any) -> None:
    for at in range(0, 512, lanes.width):
        store(lanes, out, 0, at, quotient(load(lanes, a, 0, at), load(lanes, b, 0, at)))


@pytest.mark.parametrize("width", often(1, sorted({1, 2, host_lanes().width}, reverse=True)))
def test_whole_parts_of_quotients(width: int) -> None:
    rng = np.random.default_rng(width)
    a, b, out = np.zeros((1, 512), np.int64), np.ones((1, 512), np.int64), np.zeros((1, 512), np.int64)
    a[0, :256] = rng.integers(0, 1 << rng.integers(1, 53, 256))
    b[0, :256] = rng.integers(1, 1 << rng.integers(1, 53, 256))
    # One below a multiple, which is what rounding would get wrong, as near the limit as it may be.
    b[0, 256:] = rng.integers(3, 1 << rng.integers(2, 26, 256), endpoint=True)
    a[0, 256:] = ((1 << 53) - b[0, 256:]) // b[0, 256:] * b[0, 256:] - 1
    for function in (quotients, kernel(quotients)):
        function(lanes_of(width), a, b, out)
        np.testing.assert_array_equal(out, a // b)


def high_products(lanes: Any, a: Any, b: Any, places: Any, out: Any) -> None:
    for at in range(0, 512, lanes.width):
        p, q = load(lanes, a, 0, at), load(lanes, b, 0, at)
        found = interleaved(product_even(p, q), product_odd(p, q), load(lanes, places, 0, at))
        store(lanes, out, 0, at, found)


@pytest.mark.parametrize("width", often(1, sorted({1, 4, host_lanes(32).width}, reverse=True)))
def test_products_of_64_bits(width: int) -> None:
    rng = np.random.default_rng(width)
    places = rng.integers(0, 32, (1, 512), np.int32)
    limits = np.int64(1) << places
    a = rng.integers(-(1 << 31), (1 << 31) - 1, (1, 512), np.int32, endpoint=True)
    # Shifted, a product has 32 bits.
    b = rng.integers(-limits, limits - 1, endpoint=True).astype(np.int32)
    a[0, :4], b[0, :4], places[0, :4] = -(1 << 31), [-(1 << 30), 1 << 30, 1, -1], [31, 31, 0, 1]
    for function in (high_products, kernel(high_products)):
        out = np.zeros((1, 512), np.int32)
        function(lanes_of(width), a, b, places, out)
        np.testing.assert_array_equal(out, (a.astype(np.int64) * b) >> places)


def turned_and_narrowed(lanes: Any, rows: Any, picked: Any, wide: Any, found: Any, out: Any) -> None:
    store_turned(lanes, rows, picked, 2, found, 1, 0)
    store(lanes, out, 0, 0, narrow(load(lanes, out, 0, 0), load(lanes, wide, 0, 0)))


@pytest.mark.parametrize("width", sorted({1, 8, host_lanes(8).width}))
def test_squares_are_turned_and_lanes_narrowed(width: int) -> None:
    rng = np.random.default_rng(width)
    rows, picked = rng.integers(0, 256, (5, width + 3)).astype(np.uint8), rng.integers(0, 5, width)
    wide = rng.integers(-600, 600, (1, width)).astype(np.int16)
    found = [[np.zeros(shape, np.uint8) for shape in ((width + 2, width), (1, width))] for _ in range(2)]
    for function, own in zip((kernel(turned_and_narrowed), turned_and_narrowed), found, strict=True):
        function(lanes_of(width), rows, picked, wide, *own)
    assert all(map(np.array_equal, *found))


def streamed(lanes: Any, rows: Any, out: Any) -> None:
    stream(lanes, out, 1, 0, load(lanes, rows, 0, 0))


@pytest.mark.parametrize("width", sorted({1, 8, host_lanes(8).width, 64}))
def test_groups_go_past_the_caches(width: int) -> None:
    rows = np.arange(1, width + 1, dtype=np.uint8)[None]
    for function in (kernel(streamed), streamed):
        out = lane_rows(3, width, np.uint8)
        out[:] = 99
        function(lanes_of(width), rows, out)
        assert np.array_equal(out[1], rows[0]) and (out[::2] == 99).all()


class Inner(NamedTuple):
    """A table and its step."""

    table: Any
    step: Any


class Outer(NamedTuple):
    """Tuples within a tuple: one with an array, and one without."""

    inner: Any
    numbers: Any
    out: Any


@shared
def added(outer: Any, k: int) -> Any:
    return outer.inner.table[k] * outer.inner.step + outer.numbers.width


@shared
def all_added(outer: Any) -> None:
    for k in range(outer.inner.table.size):
        outer.out[k] = added(outer, k)


@kernel
def held_kernel(outer: Any, other: Any, numbers: Any) -> int:
    all_added(held(outer))
    # One is at another place than the other.
    all_added(held(other))
    width: int = held(numbers).width
    return width


def test_what_is_held_is_the_tuple() -> None:
    given, numbers = [], lanes_of(4)
    for seed in range(2):
        table = np.random.default_rng(seed).integers(0, 100, 9)
        given.append(Outer(Inner(table, np.int64(seed + 2)), numbers, np.zeros(9, np.int64)))
    assert held(given[0]) is given[0]
    assert held_kernel(*given, numbers) == 4
    for one in given:
        assert one.out.tolist() == (one.inner.table * one.inner.step + 4).tolist()
