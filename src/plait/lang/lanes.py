"""Primitive operations that mean the same for interpreted Python and for every compiled target.

Each operation is defined by plain Python; compiled targets replace the definition by an instruction.

A group of lanes is read and written within one row of a two-dimensional array of C order: ``lane + width``
never exceeds the length of the row, so whoever allocates the array pads its rows. The definitions raise
`IndexError` where that does not hold. Compiled code does not look at positions, so every schedule is tested
interpreted.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from plait.lang.compile import host_vector_bits, specialise
from plait.lang.compile import implemented_in as _implemented_in

#: Rows of 64-bit lanes are padded to a multiple of this many.
PADDING = 8


class OneLane(NamedTuple):
    """Groups of one lane: plain numbers."""

    width: int = 1


class TwoLanes(NamedTuple):
    """Groups of two lanes."""

    width: int = 2


class FourLanes(NamedTuple):
    """Groups of four lanes."""

    width: int = 4


class EightLanes(NamedTuple):
    """Groups of eight lanes: 512 bits of 64-bit lanes."""

    width: int = 8


class SixteenLanes(NamedTuple):
    """Groups of sixteen lanes: 128 bits of 8-bit lanes, 512 bits of 32-bit lanes."""

    width: int = 16


class ThirtyTwoLanes(NamedTuple):
    """Groups of 32 lanes: 256 bits of 8-bit lanes, 512 bits of 16-bit lanes."""

    width: int = 32


class SixtyFourLanes(NamedTuple):
    """Groups of 64 lanes: 512 bits of 8-bit lanes."""

    width: int = 64


_WIDTHS: dict[int, Any] = {
    kind().width: kind()
    for kind in (OneLane, TwoLanes, FourLanes, EightLanes, SixteenLanes, ThirtyTwoLanes, SixtyFourLanes)
}

#: The widths for 64-bit lanes: up to one register of 512 bits.
LANES: dict[int, Any] = {width: kind for width, kind in _WIDTHS.items() if width <= PADDING}


def lanes_of(width: int) -> Any:
    """The groups of `width` lanes: 1, 2, 4, 8, 16, 32 or 64.

    >>> lanes_of(32)
    ThirtyTwoLanes(width=32)
    """
    return _WIDTHS[width]


def width_of(lanes: Any) -> int:
    """``lanes.width``, which compiled code takes for a constant: what divides by it does not divide.

    >>> width_of(lanes_of(8))
    8
    """
    width: int = lanes.width
    return width


def _constant(width: int) -> Any:
    return lambda lanes: width


specialise(width_of, lambda lanes: _constant(lanes.instance_class().width))


def host_lanes(bits: int = 64) -> Any:
    """The width that fills a register of this processor with lanes of `bits` bits (8, 16, 32 or 64)."""
    return _WIDTHS[host_vector_bits() // bits]


def padded(lanes: int) -> int:
    """`lanes` rounded up to a multiple of `PADDING`.

    >>> padded(11)
    16
    """
    return -(-lanes // PADDING) * PADDING


def _checked(lanes: Any, rows: Any, row: int, lane: int) -> None:
    if rows.ndim != 2 or not rows.flags.c_contiguous:
        raise IndexError(f"an array {rows.shape} with strides {rows.strides}; rows of C order are needed")
    if not (0 <= row < rows.shape[0] and lane >= 0 and lane + lanes.width <= rows.shape[1]):
        raise IndexError(f"lanes {lane} to {lane + lanes.width} of row {row} in an array {rows.shape}")


def held(fields: Any) -> Any:
    """The same tuple, of which compiled functions are told the address alone, and so of those in it.

    A tuple of arrays has a hundred numbers and more: to hand them on, and to name them, is what compilation
    takes its time for. Everything is one body in the end, which knows no addresses.
    """
    return fields


def load(lanes: Any, rows: Any, row: int, lane: int) -> Any:
    """The group of ``rows[row]`` that starts at `lane`."""
    _checked(lanes, rows, row, lane)
    return rows[row, lane] if lanes.width == 1 else rows[row, lane : lane + lanes.width].copy()


def store(lanes: Any, rows: Any, row: int, lane: int, value: Any) -> None:
    """Write a group to ``rows[row]``, starting at `lane`."""
    _checked(lanes, rows, row, lane)
    if lanes.width == 1:
        rows[row, lane] = value
    else:
        rows[row, lane : lane + lanes.width] = value


def stream(lanes: Any, rows: Any, row: int, lane: int, value: Any) -> None:
    """As `store`, past the caches, for what would not stay there; groups begin at multiples of their size."""
    store(lanes, rows, row, lane, value)


def prefetch(rows: Any, row: int) -> None:
    """Bring the beginning of ``rows[row]`` near, and do not wait for it; in Python there is nothing to do."""
    if rows.ndim > 2 or not rows.flags.c_contiguous or not 0 <= row < len(rows):
        raise IndexError(f"row {row} of an array {rows.shape} with strides {rows.strides}")


def splat(lanes: Any, value: Any) -> Any:
    """A group with the same value in all lanes."""
    return value if lanes.width == 1 else np.full(lanes.width, value)


def maximum(a: Any, b: Any) -> Any:
    """The larger value, lane by lane."""
    if isinstance(a, np.ndarray):
        return np.where(a > b, a, b)
    if isinstance(a, tuple):
        # Lanes of another meaning (`plait.lang.packed`) have their own maximum, and their own `+`.
        return a.maximum(b)  # type: ignore[attr-defined]
    return a if a > b else b


def minimum(a: Any, b: Any) -> Any:
    """The smaller value, lane by lane."""
    if isinstance(a, np.ndarray):
        return np.where(a < b, a, b)
    return a if a < b else b


def quotient(a: Any, b: Any) -> Any:
    """The whole part of ``a / b``, of 64-bit lanes: `a` from 0, `b` from 1, together at most ``2**53``.

    So much a floating-point number holds: no quotient below a whole number is rounded up to it.
    """
    return a // b


def ratio(a: Any, b: Any) -> Any:
    """``a / b`` of floating-point numbers, of which b is not 0; compiled code does not look for zeros."""
    return a / b


def product(a: Any, b: Any) -> Any:
    """``a * b`` of floating-point numbers, rounded before anything is added to it, on every device."""
    return a * b


def _held(operation: Any, a: Any, b: Any) -> Any:
    """``operation(a, b)``, held at the limits of the type of `a` if that has any."""
    if not (isinstance(a, np.ndarray | np.generic) and np.issubdtype(a.dtype, np.integer)):
        return operation(a, b)
    limits = np.iinfo(a.dtype)
    if not isinstance(a, np.ndarray):
        return a.dtype.type(min(max(operation(int(a), int(b)), limits.min), limits.max))
    # 64 bits hold the results of narrower lanes, and Python's integers those of all.
    wide = np.int64 if a.itemsize < 8 else object
    return np.clip(operation(a.astype(wide), b.astype(wide)), limits.min, limits.max).astype(a.dtype)


def add_saturating(a: Any, b: Any) -> Any:
    """The sum, held at the limits of the lane type. Python integers and floats have no limits."""
    return _held(operator.add, a, b)


def subtract_saturating(a: Any, b: Any) -> Any:
    """The difference, held at the limits of the lane type. Python integers and floats have no limits."""
    return _held(operator.sub, a, b)


def parity(a: Any, b: Any, c: Any) -> Any:
    """Bits that are set in one or in all of three: the sum bit of a full adder."""
    return a ^ b ^ c


def majority(a: Any, b: Any, c: Any) -> Any:
    """Bits that are set in two or all of three: the carry of a full adder."""
    return (a & b) | (c & (a ^ b))


def equal(a: Any, b: Any) -> Any:
    """Mask of the lanes in which both are the same."""
    return a == b


def greater(a: Any, b: Any) -> Any:
    """Mask of the lanes in which the first is larger."""
    return a > b


def select(mask: Any, a: Any, b: Any) -> Any:
    """`a` in the lanes of the mask, `b` in the others."""
    if isinstance(mask, np.ndarray):
        return np.where(mask, a, b)
    return a if mask else b


def mask_bits(mask: Any) -> Any:
    """A mask as a 64-bit word: bit k is lane k."""
    if isinstance(mask, np.ndarray):
        bits = np.zeros(64, bool)
        bits[: mask.size] = mask
        return np.packbits(bits, bitorder="little").view(np.int64)[0]
    return np.int64(1) if mask else np.int64(0)


def any_bits(a: Any) -> Any:
    """The bits that are set in any lane of a group of integers."""
    return np.bitwise_or.reduce(a) if isinstance(a, np.ndarray) else a


def largest_lane(a: Any) -> Any:
    """The largest value of any lane, none of which is NaN."""
    return a.max() if isinstance(a, np.ndarray) else a


def last_lane(a: Any) -> Any:
    """The value of the last lane."""
    return a[-1] if isinstance(a, np.ndarray) else a


def lower_half(a: Any) -> Any:
    """The first half of the lanes of a group, which has more than one."""
    return a[0] if a.size == 2 else a[: a.size // 2]


def upper_half(a: Any) -> Any:
    """The second half of the lanes of a group, which has more than one."""
    return a[1] if a.size == 2 else a[a.size // 2 :]


def shift_in(a: Any, first: Any) -> Any:
    """Every lane moved up by one: lane k takes the value of lane k - 1, and lane 0 takes `first`.

    Of a group, `first` is the last lane: that is fewer instructions than a number.
    """
    if not isinstance(a, np.ndarray):
        return first
    moved = np.empty_like(a)
    moved[0] = last_lane(first)
    moved[1:] = a[:-1]
    return moved


def lookup(lanes: Any, table: Any, row: int, index: Any) -> Any:
    """``table[row, index]``, lane by lane, in a table of 32 columns, whose element type the result has.

    `index` is a group of unsigned lanes of 8 or 16 bits, below 32.
    """
    if table.ndim != 2 or not table.flags.c_contiguous or table.shape[1] != 32:
        raise IndexError(f"a table {table.shape} with strides {table.strides}; rows of 32 are needed")
    if not 0 <= row < table.shape[0]:
        raise IndexError(f"row {row} of a table {table.shape}")
    return table[row, index]


def widen(like: Any, value: Any) -> Any:
    """Integers in the signed lane type of `like`, which is at least as wide."""
    return value.astype(like.dtype) if isinstance(value, np.ndarray) else like.dtype.type(value)


def narrow(like: Any, value: Any) -> Any:
    """Signed integers in the lane type of `like`, which has fewer bits, held at its limits."""
    limits = np.iinfo(like.dtype)
    return np.clip(value, limits.min, limits.max).astype(like.dtype)


def store_turned(lanes: Any, rows: Any, picked: Any, lane: int, found: Any, row: int, place: int) -> None:
    """Write a square of lanes: lane j of the k-th row from `row` on is lane k of the row that j picked.

    The groups start at `lane` of the `picked` rows, an integer for each lane, and at `place` of `found`.
    """
    for j in range(lanes.width):
        _checked(lanes, rows, int(picked[j]), lane)
        _checked(lanes, found, row + j, place)
    square = rows[picked[: lanes.width], lane : lane + lanes.width]
    found[row : row + lanes.width, place : place + lanes.width] = square.T


def product_even(a: Any, b: Any) -> Any:
    """64-bit products of the lanes 0, 2, 4, ... of groups of 32-bit integers; of numbers, their product."""
    return a[::2].astype(np.int64) * b[::2] if isinstance(a, np.ndarray) else np.int64(a) * np.int64(b)


def product_odd(a: Any, b: Any) -> Any:
    """64-bit products of the lanes 1, 3, 5, ... of groups of 32-bit integers; 0 of numbers."""
    return a[1::2].astype(np.int64) * b[1::2] if isinstance(a, np.ndarray) else np.int64(0)


def interleaved(even: Any, odd: Any, shift: Any) -> Any:
    """Groups of 64-bit integers, one for lanes 0, 2, 4, ..., shifted to the right; 32 bits have room for it.

    `shift` is a group of 32-bit lanes, each from 0 to 31; of numbers, `even` is shifted.
    """
    if not isinstance(even, np.ndarray):
        return even >> shift
    found = np.empty_like(shift)
    found[::2], found[1::2] = even >> shift[::2], odd >> shift[1::2]
    return found


def highest_bit(word: int) -> int:
    """Index of the highest set bit of a word that is not zero.

    >>> highest_bit(0b10100)
    4
    """
    return (int(word) & 0xFFFFFFFFFFFFFFFF).bit_length() - 1


def lowest_bit(word: int) -> int:
    """Index of the lowest set bit of a word that is not zero.

    >>> lowest_bit(0b10100)
    2
    """
    value = int(word)
    return (value & -value).bit_length() - 1


def without_lowest(word: Any) -> Any:
    """A 64-bit word that is not zero without its lowest set bit.

    >>> without_lowest(0b10100)
    16
    """
    value = int(word) & 0xFFFFFFFFFFFFFFFF
    rest = value & (value - 1)
    return rest - (rest >> 63 << 64)


def population(word: int) -> int:
    """Number of set bits.

    >>> population(0b10100)
    2
    """
    return (int(word) & 0xFFFFFFFFFFFFFFFF).bit_count()


_implemented_in("plait.lang.instructions")
_implemented_in("plait.lang.shuffles")
