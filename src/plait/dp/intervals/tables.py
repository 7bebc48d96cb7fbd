"""Memory of interval rows, and sequences laid out for them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.dp.intervals.loops import BEYOND, SMALLEST_HAIRPIN, Strands
from plait.dp.intervals.outside import Outside
from plait.dp.intervals.rows import (
    BASES,
    BEFORE,
    BESIDE,
    EDGE,
    RING,
    ROWS,
    Intervals,
    OneSequence,
    Part,
    RowMemory,
    SequenceALane,
    Sweep,
)

T = TypeVar("T")

#: Bytes of a line of the cache.
_LINE = 64


class Strand(NamedTuple):
    """A sequence: `codes`, int8 (n,), and as in `Strands` what is known of it; None stands for nothing."""

    codes: NDArray[np.int8]
    partners: NDArray[np.int32] | None = None
    stacked: NDArray[Any] | None = None
    paired: NDArray[Any] | None = None


def beside_letters(sequences: Sequence[Strand]) -> list[tuple[int, Strand]]:
    """Numbers of sequences of which more than their letters is known, and these."""
    found = enumerate(sequences)
    return [(g, s) for g, s in found if not s.partners is s.stacked is s.paired is None]


def strands_of(sequences: Sequence[Strand], group: int, one: Any, *, apart: bool = False) -> Strands:
    """Lay out up to `group` sequences side by side, or each by itself (`apart`); `one` weighs nothing.

    A sequence by itself begins where `longest` bases of each before it end.
    """
    sizes = [strand.codes.size for strand in sequences]
    longest = max(sizes, default=0)
    # A small loop around is looked for up to three bases behind the last.
    size = longest + 4
    told = beside_letters(sequences)

    def laid_out(field: int, rows: int, nothing: Any) -> NDArray[Any]:
        known: list[tuple[int, Any]] = [(g, one[field]) for g, one in told if one[field] is not None]
        table = filled((rows, group, size if known else 0), nothing)
        for g, values in known:
            table[:, g, : values.shape[-1]] = values
        return (table if apart else table.swapaxes(1, 2)).reshape(rows, -1)

    codes = np.full((1, group * size), BEYOND, np.int8)
    if apart:
        inside = np.arange(size - 1) < np.array(sizes)[:, None]
        letters = b"".join([strand.codes for strand in sequences])  # type: ignore[misc]  # arrays are buffers
        codes.reshape(group, size)[:, 1:][inside] = np.frombuffer(letters, np.int8)
    else:
        lay_codes(codes, sequences, group)
    anything = np.array([[[0]], [[longest]]], np.int32)
    known = laid_out(1, 2, anything), laid_out(2, 1, one), laid_out(3, 2, one)
    return Strands(codes, *known, 1 if apart else group, size if apart else longest)


def lay_codes(codes: NDArray[np.int8], sequences: Sequence[Strand], group: int) -> None:
    """Write letters of sequences as those of `Strands`, so many side by side."""
    codes[...] = BEYOND
    for row, one in zip(codes.reshape(-1, group).T, sequences, strict=False):
        row[1 : 1 + one.codes.size] = one.codes


def filled(shape: tuple[int, ...], value: Any) -> NDArray[Any]:
    """An array of a value of any algebra, a tuple included."""
    if isinstance(value, np.generic | np.ndarray):
        return np.full(shape, value)
    found = np.empty(shape, object)
    for at in np.ndindex(*shape):
        found[at] = value
    return found


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
        self._made: tuple[Any, Any] = (None, None)

    def again(self, key: Any, make: Callable[[], T]) -> T:
        """What was made last if it was for the same, since what is made next may be the same memory."""
        if key is None or self._made[0] != key:
            self._made = None, None
            self._made = key, make()
        found: T = self._made[1]
        return found

    def taken(self, name: str, shape: tuple[int, ...], value: Any) -> NDArray[Any]:
        """An array of values of any algebra, with anything in it; the next one may be the same memory."""
        size = math.prod(shape)
        found = self._arrays.get(name)
        if found is None or found.size < size or not isinstance(value, found.dtype.type):
            room = (size + _LINE,)
            found = np.empty(room, type(value)) if isinstance(value, np.generic) else filled(room, value)
            # Lanes that begin where a line of the cache does are loaded at once.
            first = -found.ctypes.data % _LINE // found.itemsize
            found = self._arrays[name] = found[first : first + size]
        return found[:size].reshape(shape)

    def intervals(self, longest: int, group: int, width: int, zero: Any) -> Intervals:
        """Where C, M and X are kept."""
        cells = cells_kept(longest, group, width)
        exterior = self.taken("exterior", (1, (longest + 1) * group), zero)
        closed, multi = (self.taken(name, (1, cells), zero) for name in ("closed", "multi"))
        starts = row_starts(longest, group)
        # What is no number is new every time.
        if isinstance(zero, np.generic):
            exterior[...] = zero
            # What is behind the last base is read, and written by none.
            for table in (closed, multi):
                table[0, starts[longest] + (longest - BEFORE) * group :] = zero
        return Intervals(closed, multi, exterior, starts, group)

    def outside(self, kept: Intervals, zero: Any) -> Outside:
        """Derivatives by C, M and X, to be made zero."""
        names = zip(("by closed", "by multi", "by exterior"), kept, strict=False)
        return Outside(*(self.taken(name, table.shape, zero) for name, table in names))

    def sweep(self, lanes: Any, choose: Any, batch: Any, strands: Sequence[Strand], group: int) -> Sweep:
        """What up to `group` sequences of a batch are worked out from."""
        rule, alg = batch.rule, batch.algebra
        laid_out = strands_of(strands, group, alg.one)
        layout = OneSequence() if group == 1 else SequenceALane()
        kept = self.intervals(laid_out.longest, group, lanes.width, alg.zero)
        memory = self.memory(laid_out.longest, group, lanes.width, alg.zero)
        (part,) = self.parts(laid_out.longest, 1, alg.zero)
        return Sweep(lanes, layout, choose, rule, rule, alg, batch.loops, laid_out, kept, (), memory, part)

    def parts(self, n: int, count: int, zero: Any) -> list[Part]:
        """Columns in so many parts of about as many cells each."""
        # The last part has X besides, which counts where rows are short.
        ends = [round(n * (k / count) ** (0.45 if n < 5000 else 0.5)) for k in range(count + 1)]
        edges = self.taken("edges", (count, n, EDGE) if count > 1 else (1, 1, 1), zero)
        return [Part(a, b, b, 0, k, edges) for k, (a, b) in enumerate(pairwise(ends))]

    def memory(self, longest: int, group: int, width: int, zero: Any) -> RowMemory:
        """Working memory of rows, with anything in it."""
        columns = (longest + 2 * RING + SMALLEST_HAIRPIN) * group + 2 * BESIDE * width
        places = self.taken("places", (2, (longest + 1) * group), np.int64(0))
        bits = self.taken("bits", (2 * BASES, (longest * group >> 6) + 1), np.int64(0))
        return RowMemory(self.taken("rows", (ROWS, columns), zero), places, bits)
