"""Row schedule: one pair, cell by cell, the rows of the query one after the other.

It is the plainest order there is. Its answers define those of the schedules with lanes, and it serves what
they do not: bands and X-drop.

Vertices are (i, j), 0 <= i <= m and 0 <= j <= n: the query up to residue i and the target up to residue j. A
*band* leaves only the vertices with ``low <= j - i <= high``; an alignment passes through no other. With
*X-drop* a vertex of row i is dropped when its ``h`` is more than ``x_drop`` below the best ``h`` of all rows
before row i (row 0: below 0, the ``h`` of its first vertex). A dropped vertex hands on nothing, neither to
the diagonal nor into a gap, and is no end. The sweep stops after a row without a vertex that is kept. What
is dropped does not depend on the order in which the vertices of one row are visited.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._jit import by_type_of, shared
from plait.algebras import extend, is_better
from plait.lanes import equal, mask_bits
from plait.recurrences.gaps import cell, choices, gaps

__all__ = [
    "BY_DIAGONAL",
    "BY_TARGET_GAP",
    "QUERY_GAP_OPENED",
    "START",
    "TARGET_GAP_OPENED",
    "Borders",
    "Directions",
    "Drop",
    "Ends",
    "NoDirections",
    "NoDrop",
    "Pair",
    "Rows",
    "Windows",
    "borders",
    "direction_offsets",
    "row_windows",
    "sweep_rows",
]

#: Bits of a direction. The main state was reached by the diagonal; else by a gap over target residues if the
#: second bit is set, else by one over query residues. The gap handed on to the right, or down, was opened
#: here. The value is that from which an alignment may start anew.
BY_DIAGONAL, BY_TARGET_GAP, TARGET_GAP_OPENED, QUERY_GAP_OPENED, START = 1, 2, 4, 8, 16


class Pair(NamedTuple):
    """Two sequences of codes, and the score of each pair of codes.

    Attributes
    ----------
    query, target
        Shapes (m,) and (n,), unsigned or int64.
    scores
        Shape (K, K): query code, target code.
    """

    query: Any
    target: Any
    scores: Any


class Borders(NamedTuple):
    """Values before the first residues, and whether an alignment may start there.

    Attributes
    ----------
    top, left
        ``h`` of row 0, shape (n + 1,), and of column 0, shape (m + 1,).
    top_free, left_free
        Whether an alignment may start at any vertex of row 0, of column 0; else only at (0, 0).
    """

    top: Any
    left: Any
    top_free: Any
    left_free: Any


class Ends(NamedTuple):
    """Where an alignment may end: at (m, n), and where one of these is true.

    Attributes
    ----------
    every
        At every vertex. The best of nothing is ``one``, at the first vertex of the windows.
    last_row, last_column
        In row m, in column n.
    """

    every: Any
    last_row: Any
    last_column: Any


class Windows(NamedTuple):
    """First and last column of each row, both included, shape (m + 1,).

    A row of which the last is before the first has none. Neither ever gets smaller from row to row. X-drop
    narrows them in place to what was visited.
    """

    first: Any
    last: Any


class Rows(NamedTuple):
    """Memory: ``h`` of the row above and ``f`` handed down, shape (n + 1,)."""

    h: Any
    f: Any


# --- what is noted in each cell -------------------------------------------------------------------------


class NoDirections(NamedTuple):
    """Nothing."""


class Directions(NamedTuple):
    """A byte a cell: cell (i, j) is ``cells[offsets[i] + j]``; see `direction_offsets`."""

    cells: Any
    offsets: Any


def _note_nothing(keep: Any, step: Any, at: Any, state: Any) -> None:
    return


def _note_directions(keep: Any, step: Any, at: Any, state: Any) -> None:
    p, alg = step
    i, j = at
    diag, e, s, h, e_next, f_next = state
    by_diag, by_e, e_opened, f_opened = choices(p, alg, diag, e, s, h, e_next, f_next)
    bits = mask_bits(by_diag) | (mask_bits(by_e) << 1) | (mask_bits(e_opened) << 2)
    bits = bits | (mask_bits(f_opened) << 3) | (mask_bits(equal(h, alg.zero)) << 4)
    keep.cells[keep.offsets[i] + j] = bits


#: Note the choices of cell `at`, if they are wanted.
note = by_type_of({NoDirections: _note_nothing, Directions: _note_directions})


# --- X-drop ---------------------------------------------------------------------------------------------


class NoDrop(NamedTuple):
    """Every vertex of the windows is kept."""


class Drop(NamedTuple):
    """X-drop; the best value extended by `most` is the least that is kept."""

    most: Any


def _lowest(drop: Any, alg: Any, best: Any) -> Any:
    return alg.zero


def _best_less_drop(drop: Any, alg: Any, best: Any) -> Any:
    return extend(alg, best, drop.most)


def _keep_windows(drop: Any, windows: Any, i: Any, first: Any, last: Any) -> None:
    return


def _narrow_windows(drop: Any, windows: Any, i: Any, first: Any, last: Any) -> None:
    windows.first[i] = first
    windows.last[i] = last


def _never(drop: Any, first: Any, last: Any) -> Any:
    return False


def _nothing_kept(drop: Any, first: Any, last: Any) -> Any:
    return last < first


#: The least value that is kept, when `best` is the best of the rows before.
floor_of = by_type_of({NoDrop: _lowest, Drop: _best_less_drop})

#: Note the columns of row i that were visited, where they may be less than the whole window.
narrow = by_type_of({NoDrop: _keep_windows, Drop: _narrow_windows})

#: Whether the sweep stops after a row of which the columns `first` to `last` are kept.
is_over = by_type_of({NoDrop: _never, Drop: _nothing_kept})


# --- before the sweep -----------------------------------------------------------------------------------


def borders(
    m: int,
    n: int,
    gap_open: int,
    gap_extend: int,
    *,
    top_free: bool,
    left_free: bool,
    dtype: Any = np.float64,
) -> Borders:
    """Values before the first residues: nothing where starts are free, else those of a gap.

    Parameters
    ----------
    m, n
        Residues of the query and the target.
    gap_open, gap_extend
        Costs of the first and of each further residue of a gap.
    top_free, left_free
        Whether residues of the target, of the query, may be left out in front of an alignment.
    dtype
        Type of the values; ``object`` for Python integers.
    """

    def along(size: int, free: bool) -> NDArray[Any]:
        values = np.zeros(size + 1, np.int64)
        if not free:
            values[1:] = -(gap_open + gap_extend * np.arange(size))
        return values.astype(dtype)

    return Borders(along(n, top_free), along(m, left_free), top_free, left_free)


def row_windows(m: int, n: int, band: tuple[int, int] | None = None) -> Windows:
    """The columns of each row that lie in a band, or all of them.

    Parameters
    ----------
    m, n
        Residues of the query and the target.
    band
        Least and largest j - i.
    """
    low, high = (-m, n) if band is None else band
    rows = np.arange(m + 1)
    return Windows(np.clip(rows + low, 0, n + 1), np.clip(rows + high, -1, n))


def direction_offsets(windows: Windows) -> tuple[NDArray[np.int64], int]:
    """Where the directions of each row begin, less its first column, shape (m + 1,); and their number.

    Row 0 and column 0 have no directions.
    """
    first = np.maximum(windows.first, 1)
    cells = np.maximum(windows.last - first + 1, 0)
    cells[0] = 0
    ends = np.cumsum(cells)
    return ends - cells - first, int(ends[-1])


# --- the sweep ------------------------------------------------------------------------------------------


@shared
def top_row(p: Any, alg: Any, border: Any, windows: Any, drop: Any, rows: Any) -> Any:
    """Row 0; returns the first and last column that are kept."""
    h, f = rows
    for j in range(h.size):
        h[j] = alg.zero
        f[j] = alg.zero
    first = windows.first[0]
    last = first - 1
    floor = floor_of(drop, alg, alg.one)
    for j in range(first, windows.last[0] + 1):
        value = border.top[j]
        if is_better(alg, floor, value):
            break
        h[j] = value
        f[j] = gaps(p, alg, value, alg.zero, alg.zero)[1]
        last = j
    narrow(drop, windows, 0, first, last)
    return first, last


@shared
def inner_row(
    p: Any, alg: Any, keep: Any, pair: Any, i: Any, span: Any, left: Any, floor: Any, best: Any, rows: Any
) -> Any:
    """Row i over the columns ``span[0]`` to ``span[1]``, of which the row above feeds those to ``span[2]``.

    Returns the last column visited, the best value of those better than ``best[1]``, or else that, and its
    column; ``best[0]`` says whether that is asked for.
    """
    first, last, fed = span
    every, bar = best
    e = alg.zero
    diag = rows.h[max(first - 1, 0)]
    if first == 0:
        value = alg.zero if is_better(alg, floor, left) else left
        e = gaps(p, alg, value, alg.zero, alg.zero)[0]
        rows.h[0] = value
    start = max(first, 1)
    # Indices that count from 0 are known not to be negative, which saves a test in each access.
    h = rows.h[start:]
    f = rows.f[start:]
    target = pair.target[start - 1 :]
    scores = pair.scores[pair.query[i - 1]]
    best_column = -1
    stop = start
    for k in range(last + 1 - start):
        stop = start + k
        s = scores[target[k]]
        x = cell(p, alg, diag, e, f[k], s)
        if is_better(alg, floor, x):
            diag = h[k]
            h[k] = alg.zero
            f[k] = alg.zero
            e = alg.zero
            if stop >= fed:
                break
        else:
            e_next, f_next = gaps(p, alg, x, e, f[k])
            note(keep, (p, alg), (i, stop), (diag, e, s, x, e_next, f_next))
            diag = h[k]
            h[k] = x
            f[k] = f_next
            e = e_next
            if every and is_better(alg, x, bar):
                bar = x
                best_column = stop
    return stop, bar, best_column


@shared
def best_end(alg: Any, ends: Any, i: Any, query_size: Any, first: Any, last: Any, h: Any, end: Any) -> Any:
    """The better of an end found before and those of row i that lie on the edges, of columns first..last."""
    score, end_i, end_j = end
    column = h.size - 1
    if i == query_size and ends.last_row:
        for j in range(first, last + 1):
            if is_better(alg, h[j], score):
                score = h[j]
                end_i = i
                end_j = j
    elif (
        first <= column
        and last == column
        and (i == query_size or ends.last_column)
        and is_better(alg, h[column], score)
    ):
        score = h[column]
        end_i = i
        end_j = column
    return score, end_i, end_j


@shared
def sweep_rows(
    p: Any, alg: Any, keep: Any, pair: Any, border: Any, ends: Any, windows: Any, drop: Any, rows: Any
) -> Any:
    """Score and end (i, j) of the best alignment: with the least i, then the least j, of those equally good.

    With an end of -1 there is none, because no alignment fits into the windows. X-drop, and a ``zero`` that a
    sum of scores may reach, need ``ends.every``.
    """
    m = pair.query.size
    h = rows.h
    first, last = top_row(p, alg, border, windows, drop, rows)
    i = 0
    while i < m and windows.last[i] < windows.first[i]:
        i += 1
    inside = (alg.one, i, windows.first[i])
    bar = alg.one
    edge = best_end(alg, ends, 0, m, first, last, h, (alg.zero, -1, -1))
    for i in range(1, m + 1):
        floor = floor_of(drop, alg, bar)
        start = max(windows.first[i], first)
        span = (start, windows.last[i], last + 1)
        stop, bar, column = inner_row(
            p, alg, keep, pair, i, span, border.left[i], floor, (ends.every, bar), rows
        )
        if column >= 0:
            inside = (bar, i, column)
        first = start
        last = min(stop, windows.last[i])
        narrow(drop, windows, i, first, last)
        while first <= last and is_better(alg, floor, h[first]):
            first += 1
        while first <= last and is_better(alg, floor, h[last]):
            last -= 1
        if is_over(drop, first, last):
            break
        edge = best_end(alg, ends, i, m, first, last, h, edge)
    return inside if ends.every else edge
