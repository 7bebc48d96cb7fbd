"""The definitions of the operations on lanes: lane by lane as Python's numbers, and never past a row."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.lang.compile import kernel
from plait.lang.lanes import (
    add_saturating,
    any_bits,
    equal,
    greater,
    lanes_of,
    largest_lane,
    last_lane,
    load,
    lookup,
    lower_half,
    majority,
    mask_bits,
    maximum,
    minimum,
    narrow,
    parity,
    select,
    shift_in,
    splat,
    store,
    store_turned,
    subtract_saturating,
    upper_half,
    widen,
    width_of,
)

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
INTEGERS = [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]


def wrapped(value: int, dtype: Any) -> int:
    """A number of any size in the bits of a type."""
    bits = dtype.itemsize * 8
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if dtype.kind == "i" and low >> (bits - 1) else low


def held(value: int, dtype: Any) -> int:
    limits = np.iinfo(dtype)
    return min(max(value, int(limits.min)), int(limits.max))


def lanes_of_type(dtype: Any, width: int) -> st.SearchStrategy[Any]:
    limits = np.iinfo(dtype)
    near = st.sampled_from([limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max])
    numbers = st.integers(int(limits.min), int(limits.max)) | near.map(int)
    return st.lists(numbers, min_size=width, max_size=width)


@st.composite
def pairs(draw: Callable[..., Any]) -> tuple[int, Any, list[int], list[int]]:
    """Width, lane type and two groups, as lists of numbers."""
    width, dtype = draw(st.sampled_from(WIDTHS)), draw(st.sampled_from(INTEGERS))
    first = draw(lanes_of_type(dtype, width))
    others = draw(lanes_of_type(dtype, width))
    # Lanes are often equal: else hardly a pair of 64-bit numbers would be.
    second = [draw(st.sampled_from([x, y])) for x, y in zip(first, others, strict=True)]
    return width, dtype, first, second


def group(width: int, dtype: Any, numbers: list[int]) -> Any:
    rows = np.array([numbers], object).astype(dtype)
    return load(lanes_of(width), rows, 0, 0)


def listed(value: Any) -> list[Any]:
    return value.tolist() if isinstance(value, np.ndarray) else [value.item()]


BY_LANE: dict[Callable[..., Any], Callable[[int, int, Any], int]] = {
    operator.add: lambda x, y, dtype: wrapped(x + y, dtype),
    operator.sub: lambda x, y, dtype: wrapped(x - y, dtype),
    operator.mul: lambda x, y, dtype: wrapped(x * y, dtype),
    operator.and_: lambda x, y, dtype: x & y,
    operator.or_: lambda x, y, dtype: x | y,
    add_saturating: lambda x, y, dtype: held(x + y, dtype),
    subtract_saturating: lambda x, y, dtype: held(x - y, dtype),
    maximum: lambda x, y, dtype: max(x, y),
    minimum: lambda x, y, dtype: min(x, y),
}


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("operation", BY_LANE, ids=lambda operation: operation.__name__)
@given(drawn=pairs())
def test_two_groups_give_a_group_of_their_type(
    operation: Callable[..., Any], drawn: tuple[int, Any, list[int], list[int]]
) -> None:
    width, dtype, first, second = drawn
    with np.errstate(over="ignore"):
        found = operation(group(width, dtype, first), group(width, dtype, second))
    assert found.dtype == dtype
    assert listed(found) == [BY_LANE[operation](x, y, dtype) for x, y in zip(first, second, strict=True)]


@pytest.mark.interpreted(alone=True)
@given(drawn=pairs(), data=st.data())
def test_shifts_to_the_right(drawn: tuple[int, Any, list[int], list[int]], data: st.DataObject) -> None:
    width, dtype, first, _ = drawn
    by = data.draw(st.lists(st.integers(0, dtype.itemsize * 8 - 1), min_size=width, max_size=width))
    found = group(width, dtype, first) >> group(width, dtype, by)
    assert listed(found) == [x >> k for x, k in zip(first, by, strict=True)]


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("width", [1, 4])
def test_bits_of_three_by_their_truth_tables(width: int) -> None:
    three = [group(width, np.uint8, [value] * width) for value in (0b11110000, 0b11001100, 0b10101010)]
    assert listed(parity(*three)) == [0b10010110] * width
    assert listed(majority(*three)) == [0b11101000] * width


@pytest.mark.interpreted(alone=True)
@given(drawn=pairs())
def test_masks(drawn: tuple[int, Any, list[int], list[int]]) -> None:
    width, dtype, first, second = drawn
    a, b = group(width, dtype, first), group(width, dtype, second)
    for operation, by_lane in ((equal, operator.eq), (greater, operator.gt)):
        mask = operation(a, b)
        wanted = [by_lane(x, y) for x, y in zip(first, second, strict=True)]
        word = int(mask_bits(mask)) & (2**64 - 1)
        assert word == sum(1 << k for k, holds in enumerate(wanted) if holds)
        picked = select(mask, a, b)
        assert picked.dtype == dtype
        assert listed(picked) == [
            x if holds else y for x, y, holds in zip(first, second, wanted, strict=True)
        ]


@pytest.mark.interpreted(alone=True)
@given(drawn=pairs())
def test_across_lanes(drawn: tuple[int, Any, list[int], list[int]]) -> None:
    width, dtype, first, second = drawn
    a = group(width, dtype, first)
    bits = 0
    for number in first:
        bits |= number
    assert (any_bits(a), largest_lane(a), last_lane(a)) == (bits, max(first), first[-1])
    entering = group(1, dtype, second[:1])
    assert listed(shift_in(a, entering)) == [second[0], *first[:-1]]
    assert listed(splat(lanes_of(width), entering)) == [second[0]] * width
    assert width_of(lanes_of(width)) == width
    if width > 1:
        low, high = lower_half(a), upper_half(a)
        assert (listed(low), listed(high)) == (first[: width // 2], first[width // 2 :])
        assert low.dtype == high.dtype == dtype
    for value in (any_bits(a), largest_lane(a), last_lane(a), shift_in(a, entering)):
        assert value.dtype == dtype


@pytest.mark.interpreted(alone=True)
@given(data=st.data(), width=st.sampled_from(WIDTHS))
def test_looking_up_and_widening(data: st.DataObject, width: int) -> None:
    narrow, wide = data.draw(
        st.sampled_from([(n, w) for n in INTEGERS[:4] for w in INTEGERS[:4] if w.itemsize >= n.itemsize])
    )
    rows = data.draw(st.lists(lanes_of_type(narrow, 32), min_size=2, max_size=2))
    codes = data.draw(st.lists(st.integers(0, 31), min_size=width, max_size=width))
    index = group(width, np.dtype(data.draw(st.sampled_from(["uint8", "uint16"]))), codes)
    found = lookup(lanes_of(width), np.array(rows, narrow), 1, index)
    assert found.dtype == narrow
    assert listed(found) == [rows[1][code] for code in codes]
    widened = widen(group(width, wide, [0] * width), found)
    assert widened.dtype == wide
    assert listed(widened) == listed(found)


@pytest.mark.interpreted(alone=True)
@given(data=st.data(), width=st.sampled_from(WIDTHS))
def test_narrowing(data: st.DataObject, width: int) -> None:
    signed = [kind for kind in INTEGERS if kind.kind == "i"]
    kinds = [(n, w) for n in INTEGERS for w in signed if w.itemsize > n.itemsize]
    like, wide = data.draw(st.sampled_from(kinds))
    value = data.draw(lanes_of_type(wide, width))
    found = narrow(group(width, like, [0] * width), group(width, wide, value))
    assert found.dtype == like and listed(found) == [held(number, like) for number in value]


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("width", WIDTHS)
def test_squares_are_turned(width: int) -> None:
    rows, found = np.arange(5 * (width + 3)).reshape(5, width + 3), np.zeros((width + 1, width + 2), np.int64)
    picked = np.arange(width) % 5
    store_turned(lanes_of(width), rows, picked, 2, found, 1, 2)
    assert np.array_equal(found[1:, 2:], rows[picked, 2 : width + 2].T)
    assert not found[0].any() and not found[:, :2].any()
    for lane, row, place in ((4, 1, 2), (2, 2, 2), (2, 1, 3)):
        with pytest.raises(IndexError, match="lanes"):
            store_turned(lanes_of(width), rows, picked, lane, found, row, place)


@pytest.mark.interpreted(alone=True)
def test_floats_and_python_numbers_have_no_limits() -> None:
    assert add_saturating(10**30, 1) == 10**30 + 1
    assert subtract_saturating(0.25, 1.0) == -0.75
    large = np.array([1e300, -1e300])
    assert add_saturating(large, large).tolist() == [2e300, -2e300]


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("width", [1, 4])
def test_the_second_of_two_is_the_larger_when_one_is_no_number(width: int) -> None:
    lanes = lanes_of(width)
    one, none = splat(lanes, np.float64(1)), splat(lanes, np.float64(np.nan))
    for operation in (maximum, minimum):
        assert np.isnan(operation(one, none)).all()
        assert np.all(operation(none, one) == 1)
    assert mask_bits(greater(one, none)) == mask_bits(equal(none, none)) == 0


# --- memory contract ------------------------------------------------------------------------------------

OUTSIDE = [(-1, 0), (2, 0), (0, -1), (0, 65), (1, 70), (0, 2**40)]


def whole(width: int) -> Any:
    return np.zeros((2, width + 64), np.int16)


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("row", "lane"), OUTSIDE)
def test_no_group_leaves_its_row(width: int, row: int, lane: int) -> None:
    lanes, rows = lanes_of(width), whole(width)
    value = splat(lanes, np.int16(1))
    for action in (lambda: load(lanes, rows, row, lane), lambda: store(lanes, rows, row, lane, value)):
        with pytest.raises(IndexError, match=f"lanes {lane} to {lane + width} of row {row}"):
            action()
    assert not rows.any()


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_last_group_of_the_last_row_is_inside(width: int) -> None:
    lanes, rows = lanes_of(width), whole(width)
    store(lanes, rows, 1, 64, splat(lanes, np.int16(1)))
    assert rows.sum() == rows[1, 64:].sum() == width
    assert largest_lane(load(lanes, rows, 1, 64)) == 1


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(
    "rows",
    [np.zeros(64), np.zeros((2, 2, 64)), np.zeros((64, 64)).T[:, :9], np.zeros((64, 64))[:, ::2]],
    ids=["one dimension", "three", "columns first", "gaps"],
)
def test_rows_lie_one_after_the_other(width: int, rows: Any) -> None:
    lanes = lanes_of(width)
    with pytest.raises(IndexError, match="rows of C order"):
        load(lanes, rows, 0, 0)
    with pytest.raises(IndexError, match="rows of C order"):
        store(lanes, rows, 0, 0, splat(lanes, 0.0))


@pytest.mark.interpreted(alone=True)
def test_tables_have_rows_of_32() -> None:
    index = np.array([0, 31], np.uint8)
    for table in (np.zeros((2, 31)), np.zeros((2, 33)), np.zeros(32), np.zeros((32, 2)).T):
        with pytest.raises(IndexError, match="rows of 32"):
            lookup(lanes_of(2), table, 0, index)
    for row in (-1, 2):
        with pytest.raises(IndexError, match=f"row {row} of a table"):
            lookup(lanes_of(2), np.zeros((2, 32)), row, index)
    with pytest.raises(IndexError):
        lookup(lanes_of(2), np.zeros((2, 32)), 0, index + 1)


# --- what is refused when it is compiled ----------------------------------------------------------------


def double(lanes: Any, rows: Any, others: Any) -> None:
    group = load(lanes, rows, 0, 0)
    store(lanes, others, 0, 0, add_saturating(group, group))


def mixed(lanes: Any, rows: Any, others: Any) -> None:
    store(lanes, rows, 0, 0, add_saturating(load(lanes, rows, 0, 0), load(lanes, others, 0, 0)))


def looked_up(lanes: Any, rows: Any, others: Any) -> None:
    store(lanes, rows, 0, 0, lookup(lanes, rows, 0, load(lanes, others, 0, 0)))


ROWS = np.zeros((2, 32), np.int16)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(
    ("body", "rows", "others"),
    [
        (double, ROWS.reshape(32, 2).T, ROWS.copy()),
        (double, ROWS, ROWS[0].copy()),
        (double, ROWS, np.frombuffer(ROWS.tobytes(), np.int16).reshape(2, 32)),
        (mixed, ROWS, ROWS.astype(np.int32)),
    ],
    ids=["columns first", "one dimension", "read-only", "mixed"],
)
def test_the_compiler_refuses_what_breaks_the_contract(width: int, body: Any, rows: Any, others: Any) -> None:
    refusal = importlib.import_module("numba").TypingError
    with pytest.raises(refusal):
        kernel(body)(lanes_of(width), rows, others)


@pytest.mark.parametrize(("body", "others"), [(double, ROWS.astype(np.int32)), (looked_up, ROWS)])
def test_the_compiler_refuses_groups_of_another_type(body: Any, others: Any) -> None:
    refusal = importlib.import_module("numba").TypingError
    with pytest.raises(refusal):
        kernel(body)(lanes_of(4), ROWS.copy(), others.copy())


def test_rows_may_lie_at_any_byte() -> None:
    space = np.zeros(2 * ROWS.nbytes + 1, np.uint8)
    rows = np.frombuffer(space, np.int16, ROWS.size, 1).reshape(ROWS.shape)
    rows[0] = np.arange(32) * 1000
    out = np.zeros_like(rows)
    compiled = kernel(double)
    for width in (1, 16):
        compiled(lanes_of(width), rows, out)
        wanted = np.zeros_like(out)
        double(lanes_of(width), rows, wanted)
        assert np.array_equal(out, wanted)
