"""Launching the row schedule: the alignment of one pair, compiled or interpreted.

Compiled code holds scores in float64, in which whole numbers up to 2^53 are exact. The maximum of two is one
instruction there, while that of two integers may become a branch that is mispredicted half of the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._jit import kernel
from plait.algebras import MaxPlus
from plait.errors import InvalidInput
from plait.recurrences.gaps import AffineGap, LinearGap
from plait.schedules.row_sweep import (
    Borders,
    Directions,
    Drop,
    Ends,
    NoDirections,
    NoDrop,
    Pair,
    Rows,
    Windows,
    borders,
    direction_offsets,
    row_windows,
    sweep_rows,
)
from plait.schedules.row_traceback import walk_back

__all__ = ["FREE_ENDS", "MODES", "RowEnd", "RowPath", "RowSweep", "row_sweep"]

MODES = ("global", "local", "semiglobal", "overlap", "extension")
FREE_ENDS = ("query_start", "query_end", "target_start", "target_end")
#: Whole numbers below it are exact in float64.
_EXACT = 1 << 53


class RowEnd(NamedTuple):
    """Score of the best alignment, and where it ends (0-based, exclusive)."""

    score: int
    query_end: int
    target_end: int


class RowPath(NamedTuple):
    """The best alignment. Coordinates are 0-based and half-open.

    Attributes
    ----------
    score
        Its score.
    query_start, query_end, target_start, target_end
        What it aligns.
    runs
        int64 (r, 2): operation (0 a pair of residues, 1 a residue of the target, 2 one of the query) and
        number of columns, in the order of the sequences; neighbours differ.
    """

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    runs: NDArray[np.int64]


class RowSweep(NamedTuple):
    """One pair and how it is to be aligned; see `row_sweep`."""

    gap: Any
    algebra: Any
    pair: Pair
    border: Borders
    ends: Ends
    windows: Windows
    drop: Any
    interpreted: bool

    def score(self) -> RowEnd:
        """Score and end. Memory is proportional to the lengths."""
        return self._sweep(NoDirections(), self.pair)

    def direction_bytes(self) -> int:
        """Bytes that `align` needs for directions; with X-drop, an upper limit."""
        return direction_offsets(self.windows)[1]

    def align(self) -> RowPath:
        """Score and path, with a byte for each cell of the band.

        With X-drop the pair is swept twice: for the cells that are kept, then for the directions in them.
        """
        pair = self.pair
        if isinstance(self.drop, Drop):
            pair = pair._replace(query=pair.query[: self.score().query_end])
        used = Windows(*(columns[: pair.query.size + 1] for columns in self.windows))
        offsets, cells = direction_offsets(used)
        keep = Directions(np.empty(cells, np.uint8), offsets)
        end = self._sweep(keep, pair)
        runs = np.empty((end.query_end + end.target_end, 2), np.int64)
        walk = walk_back if self.interpreted else _walk_back
        anew = bool(self.algebra.zero == 0)
        first, i, j = walk(keep, self.border, anew, end.query_end, end.target_end, runs)
        return RowPath(end.score, int(i), end.query_end, int(j), end.target_end, runs[first:].copy())

    def _sweep(self, keep: Any, pair: Pair) -> RowEnd:
        columns = pair.target.size + 1
        kind = self.border.top.dtype
        rows = Rows(np.empty(columns, kind), np.empty(columns, kind))
        sweep = sweep_rows if self.interpreted else _sweep_rows
        found = sweep(
            self.gap, self.algebra, keep, pair, self.border, self.ends, self.windows, self.drop, rows
        )
        return RowEnd(*map(int, found))


def row_sweep(
    query: NDArray[Any],
    target: NDArray[Any],
    scores: NDArray[Any],
    *,
    gap_open: int,
    gap_extend: int,
    mode: str = "global",
    free_ends: Iterable[str] = ("target_start", "target_end"),
    band: tuple[int, int] | None = None,
    x_drop: int | None = None,
    interpreted: bool = False,
) -> RowSweep:
    """Prepare the alignment of one pair.

    Parameters
    ----------
    query, target
        Codes, unsigned or int64, shapes (m,) and (n,).
    scores
        Whole numbers (K, K): score of a query code and a target code.
    gap_open, gap_extend
        Costs of the first and of each further residue of a gap, not negative.
    mode
        One of `MODES`.
    free_ends
        For ``"semiglobal"``: which of `FREE_ENDS` may be left unaligned at no cost.
    band
        Least and largest difference of a target and a query index that are aligned.
    x_drop
        For ``"extension"``: how far below the best of all rows before it a vertex may be; see
        `plait.schedules.row_sweep`.
    interpreted
        Whether to run plain Python, with Python integers, instead of compiled code.

    Raises
    ------
    InvalidInput
        If an argument is wrong, the band holds no alignment, or a score might reach 2^53.
    """
    m, n = query.size, target.size
    if mode not in MODES:
        raise InvalidInput("mode", found=repr(mode), expected=f"one of {', '.join(MODES)}")
    if x_drop is not None and (mode != "extension" or x_drop < 0):
        found = f"{x_drop} in mode {mode!r}"
        raise InvalidInput("x_drop", found=found, expected="0 or more, in mode 'extension'")
    free = _free_ends(mode, free_ends)
    ends = Ends(mode in ("local", "extension"), "target_end" in free, "query_end" in free)
    local = mode == "local"
    largest = max(gap_open, int(np.abs(scores.astype(np.float64)).max(initial=0)))
    if (m + n) * largest >= _EXACT:
        found = f"up to {largest} for {m + n} residues"
        raise InvalidInput("scores", found=found, expected="scores of alignments below 2^53")
    kind = object if interpreted else np.float64
    border = borders(
        m, n, gap_open, gap_extend,
        top_free=local or "target_start" in free, left_free=local or "query_start" in free, dtype=kind,
    )  # fmt: skip
    if band is not None:
        _check_band(band, m, n, border, ends)
    number: Any = int if interpreted else float
    algebra = MaxPlus(number(0) if local else -math.inf, number(0))
    gap: Any = AffineGap(number(-gap_open), number(-gap_extend))
    if gap_open == gap_extend:
        gap = LinearGap(number(-gap_open))
    drop = NoDrop() if x_drop is None else Drop(number(-x_drop))
    # Read-only arrays are a type of their own, for which everything would be compiled once more.
    query, target = (np.require(codes, requirements=["C", "W"]) for codes in (query, target))
    pair = Pair(query, target, scores.astype(kind))
    return RowSweep(gap, algebra, pair, border, ends, row_windows(m, n, band), drop, interpreted)


def _free_ends(mode: str, named: Iterable[str]) -> set[str]:
    free = set(named) if mode == "semiglobal" else set(FREE_ENDS) if mode == "overlap" else set()
    if free - set(FREE_ENDS):
        found = ", ".join(map(repr, sorted(free)))
        raise InvalidInput("free_ends", found=found, expected=f"some of {', '.join(FREE_ENDS)}")
    return free


def _check_band(band: tuple[int, int], m: int, n: int, border: Borders, ends: Ends) -> None:
    """Refuse a band without a vertex at which an alignment may start, or without one at which it may end."""
    low, high = band
    shortest, longest = -m, n
    if not ends.every or not border.top_free:
        starts = (-m if border.left_free else 0, n if border.top_free else 0)
        corner = n - m
        stops = (-m if ends.last_row else corner, n if ends.last_column else corner)
        if ends.every:
            stops = (-m, n)
        for least, most, place in ((*starts, "start"), (*stops, "end")):
            if high < max(low, least) or low > most:
                expected = f"a band that holds the {place} of an alignment"
                if least == most:
                    expected += f": one with {least} between its limits"
                raise InvalidInput("band", found=f"{low} to {high}", expected=expected)
    elif high < max(low, shortest) or low > longest:
        raise InvalidInput(
            "band", found=f"{low} to {high}", expected=f"limits between {-m} and {n}, the lower first"
        )


@kernel
def _sweep_rows(
    p: Any, alg: Any, keep: Any, pair: Any, border: Any, ends: Any, windows: Any, drop: Any, rows: Any
) -> Any:
    return sweep_rows(p, alg, keep, pair, border, ends, windows, drop, rows)


@kernel
def _walk_back(keep: Any, border: Any, anew: bool, i: int, j: int, runs: Any) -> Any:
    return walk_back(keep, border, anew, i, j, runs)
