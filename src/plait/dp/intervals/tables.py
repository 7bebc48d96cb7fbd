"""Memory of interval rows, and sequences laid out for them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.intervals.loops import BEYOND, SMALLEST_HAIRPIN, Strands
from plait.dp.intervals.outside import Outside
from plait.dp.intervals.rows import BEFORE, BESIDE, RING, ROWS, Intervals, RowMemory

#: Unpaired bases of hairpins that may have a weight of their own.
SPECIAL_SIZES = (3, 4, 6)


class Strand(NamedTuple):
    """A sequence: `codes`, int8 (n,), and as in `Strands` what is special of it; None stands for nothing."""

    codes: NDArray[np.int8]
    special: NDArray[np.int16] | None = None
    partners: NDArray[np.int32] | None = None
    stacked: NDArray[Any] | None = None
    paired: NDArray[Any] | None = None


def strands_of(sequences: Sequence[Strand], group: int, one: Any) -> Strands:
    """Lay out up to `group` sequences side by side; `one` weighs nothing."""
    longest = max((strand.codes.size for strand in sequences), default=0)
    codes = np.full((longest + 4, group), BEYOND, np.int8)
    special = np.zeros((3, longest, group), np.int16)
    partners = np.zeros((2, longest, group), np.int32)
    partners[1] = longest
    stacked = filled((longest, group), one)
    some = any(strand.paired is not None for strand in sequences)
    # A small loop around is looked for up to three bases behind the last.
    paired = filled((2, longest + 3 if some else 0, group), one)
    for g, strand in enumerate(sequences):
        n = strand.codes.size
        codes[1 : n + 1, g] = strand.codes
        if strand.special is not None:
            special[:, :n, g] = strand.special
        if strand.partners is not None:
            partners[:, :n, g] = strand.partners
        if strand.stacked is not None:
            stacked[:n, g] = strand.stacked
        if strand.paired is not None:
            paired[:, :n, g] = strand.paired
    return Strands(
        codes.reshape(1, -1),
        special.reshape(3, -1),
        partners.reshape(2, -1),
        stacked.reshape(1, -1),
        paired.reshape(2, -1),
        group,
        longest,
    )


def filled(shape: tuple[int, ...], value: Any) -> NDArray[Any]:
    """An array of a value of any algebra, a tuple included."""
    if not isinstance(value, np.generic):
        found = np.empty(shape, object)
        for at in np.ndindex(*shape):
            found[at] = value
        return found
    return np.full(shape, value)


@functools.lru_cache(maxsize=16)
def row_starts(longest: int, group: int) -> NDArray[np.int64]:
    """Where column 0 of every row would stand, and that of the end."""
    rows = np.arange(longest + 2, dtype=np.int64)
    before = rows * (longest + BEFORE) - rows * (rows - 1) // 2
    starts: NDArray[np.int64] = (before - rows + BEFORE) * group
    return starts


def cells_kept(longest: int, group: int, width: int) -> int:
    """Elements of an array of all rows."""
    return int(row_starts(longest, group)[-1] + (longest + 1) * group + 4 * BESIDE * width)


class Room:
    """Arrays in which sequences are worked out one after the other; new memory would cost as much time."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def filled(self, name: str, shape: tuple[int, ...], value: Any) -> NDArray[Any]:
        """An array of a value of any algebra; the next one of that name may be the same memory."""
        size = math.prod(shape)
        found = self._arrays.get(name)
        if found is None or found.size < size or not isinstance(value, found.dtype.type):
            found = self._arrays[name] = filled((size,), value)
        else:
            found[:size] = value
        return found[:size].reshape(shape)

    def intervals(self, longest: int, group: int, width: int, zero: Any) -> Intervals:
        """Where C, M and X are kept."""
        cells = cells_kept(longest, group, width)
        exterior = self.filled("exterior", (1, (longest + 1) * group), zero)
        closed, multi = (self.filled(name, (1, cells), zero) for name in ("closed", "multi"))
        return Intervals(closed, multi, exterior, row_starts(longest, group), group)

    def outside(self, kept: Intervals, zero: Any) -> Outside:
        """Derivatives by C, M and X."""
        names = zip(("by closed", "by multi", "by exterior"), kept, strict=False)
        return Outside(*(self.filled(name, table.shape, zero) for name, table in names))

    def memory(self, longest: int, group: int, width: int, zero: Any) -> RowMemory:
        """Working memory of rows, all zero."""
        columns = (longest + 2 * RING + SMALLEST_HAIRPIN) * group + 2 * BESIDE * width
        places = self.filled("places", (2, (longest + 1) * group), np.int64(0))
        return RowMemory(self.filled("rows", (ROWS, columns), zero), places)
