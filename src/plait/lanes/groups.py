"""Operations on groups of lanes: one name for one lane, for a vector register and for interpreted Python.

These are the definitions. In Python a group of one lane is a number and a wider one a NumPy array, whose
type is the type of its lanes; compiled, it is a number or a vector register
(`plait.lanes.instructions`). Arithmetic that wraps is written ``a + b``, ``a - b`` and ``a * b``, bit
operations ``a & b``, ``a | b``, ``a << b`` and ``a >> b`` (by less than the bits of a lane); the rest are
functions. Both operands of an operation have the same lane type.

One lane is held to its type by the functions, but not by the operators: ``+ - * & | << >>`` of two numbers
are those of Numba, with a result of 64 bits that wraps when it is stored. Results of operators on one lane
narrower than that must be stored, or widened, before a function takes them.

Memory contract: see `plait.lanes`. Arrays of another order or number of dimensions are refused when a kernel
is compiled; positions are not looked at.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

__all__ = [
    "add_saturating",
    "any_bits",
    "equal",
    "greater",
    "largest_lane",
    "last_lane",
    "load",
    "lookup",
    "lower_half",
    "mask_bits",
    "maximum",
    "minimum",
    "select",
    "shift_in",
    "splat",
    "store",
    "subtract_saturating",
    "upper_half",
    "widen",
]


def _checked(lanes: Any, rows: Any, row: int, lane: int) -> None:
    if rows.ndim != 2 or not rows.flags.c_contiguous:
        raise IndexError(f"an array {rows.shape} with strides {rows.strides}; rows of C order are needed")
    if not (0 <= row < rows.shape[0] and lane >= 0 and lane + lanes.width <= rows.shape[1]):
        raise IndexError(f"lanes {lane} to {lane + lanes.width} of row {row} in an array {rows.shape}")


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


def splat(lanes: Any, value: Any) -> Any:
    """A group with the same value in all lanes."""
    return value if lanes.width == 1 else np.full(lanes.width, value)


def maximum(a: Any, b: Any) -> Any:
    """The larger value, lane by lane."""
    if isinstance(a, np.ndarray):
        return np.where(a > b, a, b)
    if isinstance(a, tuple):
        # Lanes of another meaning (`plait.lanes.packed`) have their own maximum, and their own `+`.
        return a.maximum(b)  # type: ignore[attr-defined]
    return a if a > b else b


def minimum(a: Any, b: Any) -> Any:
    """The smaller value, lane by lane."""
    if isinstance(a, np.ndarray):
        return np.where(a < b, a, b)
    return a if a < b else b


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
    """Every lane moved up by one: lane k takes the value of lane k - 1, and lane 0 takes `first`."""
    if not isinstance(a, np.ndarray):
        return first
    moved = np.empty_like(a)
    moved[0] = first
    moved[1:] = a[:-1]
    return moved


def lookup(lanes: Any, table: Any, row: int, index: Any) -> Any:
    """``table[row, index]``, lane by lane.

    Parameters
    ----------
    lanes
        Width of `index`.
    table
        Array of 32 columns; its element type is that of the result.
    row
        Row of the table.
    index
        Group of unsigned lanes of 8 or 16 bits, below 32.
    """
    if table.ndim != 2 or not table.flags.c_contiguous or table.shape[1] != 32:
        raise IndexError(f"a table {table.shape} with strides {table.strides}; rows of 32 are needed")
    if not 0 <= row < table.shape[0]:
        raise IndexError(f"row {row} of a table {table.shape}")
    return table[row, index]


def widen(like: Any, value: Any) -> Any:
    """Integers in the signed lane type of `like`, which is at least as wide."""
    return value.astype(like.dtype) if isinstance(value, np.ndarray) else like.dtype.type(value)
