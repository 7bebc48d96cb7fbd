"""Row order: one pair, cell by cell, the rows of the query one after the other, and the traceback."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.pairs.gaps import AffineGap, LinearGap, cell, choices, gaps
from plait.dp.pairs.lists import FreeEnds
from plait.dp.pairs.paths import COUNTS, PathColumns, Paths, describe_paths
from plait.errors import InvalidInput
from plait.lang.algebras import MaxPlus, extend, is_better
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import equal, mask_bits

#: Bits of a direction. The main state was reached by the diagonal; else by a gap over target residues if the
#: second bit is set, else by one over query residues. The gap handed on to the right, or down, was opened
#: here. The value is that from which an alignment may start anew.
BY_DIAGONAL, BY_TARGET_GAP, TARGET_GAP_OPENED, QUERY_GAP_OPENED, START = 1, 2, 4, 8, 16


class Pair(NamedTuple):
    """Two sequences of codes, (m,) and (n,), unsigned or int64, and the score of each pair of codes, (K, K).

    Rows of `scores` are query codes, columns target codes.
    """

    query: Any
    target: Any
    scores: Any


class Borders(NamedTuple):
    """Values before the first residues, and whether an alignment may start there.

    `top` and `left` are ``h`` of row 0, (n + 1,), and of column 0, (m + 1,). `top_free`, `left_free`: it may
    start at any vertex of row 0, of column 0; else only at (0, 0).
    """

    top: Any
    left: Any
    top_free: Any
    left_free: Any


class Ends(NamedTuple):
    """Where an alignment may end: at (m, n), and where one of these is true.

    `every`: at every vertex; the best of nothing is ``one``, at the first vertex of the windows. `last_row`,
    `last_column`: in row m, in column n.
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
    """Keep no directions: scores only."""


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

    `m` and `n` are residues of query and target; `top_free`, `left_free`: residues of the target, of the
    query, may be left out in front of an alignment. `dtype` is ``object`` for Python integers.
    """

    def along(size: int, free: bool) -> NDArray[Any]:
        values = np.zeros(size + 1, np.int64)
        if not free:
            values[1:] = -(gap_open + gap_extend * np.arange(size))
        return values.astype(dtype)

    return Borders(along(n, top_free), along(m, left_free), top_free, left_free)


def row_windows(m: int, n: int, band: tuple[int, int] | None = None) -> Windows:
    """The columns of each row that lie in a band, or all of them; `band` is the least and largest j - i."""
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


#: Columns of an alignment: two residues, one of the target, one of the query.
BOTH, TARGET_ONLY, QUERY_ONLY = 0, 1, 2


@shared
def add_run(runs: Any, at: Any, operation: Any, length: Any) -> Any:
    """Put columns before the runs from `at` on; returns where they begin now."""
    if at < runs.shape[0] and runs[at, 0] == operation:
        runs[at, 1] += length
    else:
        at -= 1
        runs[at, 0] = operation
        runs[at, 1] = length
    return at


@shared
def target_gap(keep: Any, i: Any, j: Any) -> Any:
    """How many target residues the gap that ends in cell (i, j) has."""
    length = 1
    while length < j and (keep.cells[keep.offsets[i] + j - length] & TARGET_GAP_OPENED) == 0:
        length += 1
    return length


@shared
def query_gap(keep: Any, i: Any, j: Any) -> Any:
    """How many query residues the gap that ends in cell (i, j) has."""
    length = 1
    while length < i and (keep.cells[keep.offsets[i - length] + j] & QUERY_GAP_OPENED) == 0:
        length += 1
    return length


@shared
def walk_back(keep: Any, border: Any, anew: bool, i: Any, j: Any, runs: Any) -> Any:
    """Trace back the path that ends in cell (i, j): (first run, i, j) of its start.

    `anew`: the path begins where the value is that from which an alignment may start anew. `runs`, of shape
    (at least i + j, 2), is filled from behind with operation and number of columns.
    """
    at = runs.shape[0]
    while i > 0 and j > 0:
        bits = keep.cells[keep.offsets[i] + j]
        if anew and (bits & START) != 0:
            break
        if (bits & BY_DIAGONAL) != 0:
            at = add_run(runs, at, BOTH, 1)
            i -= 1
            j -= 1
        elif (bits & BY_TARGET_GAP) != 0:
            length = target_gap(keep, i, j)
            at = add_run(runs, at, TARGET_ONLY, length)
            j -= length
        else:
            length = query_gap(keep, i, j)
            at = add_run(runs, at, QUERY_ONLY, length)
            i -= length
    if i == 0 and j > 0 and not border.top_free:
        at = add_run(runs, at, TARGET_ONLY, j)
        j = 0
    elif j == 0 and i > 0 and not border.left_free:
        at = add_run(runs, at, QUERY_ONLY, i)
        i = 0
    return at, i, j


class ShortMemory(NamedTuple):
    """Memory for short pairs, one at a time: few arrays, since to pass one takes as long as many cells.

    `octets`, uint8, begins with the letters of the query and behind them those of the target; `numbers`,
    int64, with how many there are of each, neither 0, then score, query end and target end. `counts`, int64
    (1, 7), are those of `plait.dp.pairs.paths.COUNTS`. `values`, float64, and `runs`, int64 (residues, 2),
    and what follows in the others are for the sweep and the walk; `residues` is the most there may be.
    """

    octets: Any
    numbers: Any
    counts: Any
    values: Any
    runs: Any
    residues: Any


#: Where in the numbers the result begins, and its size.
SHORT_RESULT = slice(2, 5)
_NUMBERS = 10


@shared
def align_short(p: Any, alg: Any, ends: Any, free: Any, table: Any, matrix: Any, memory: Any) -> int:
    """Align the pair in `memory`; returns the length of its CIGAR, or less than 0 for a letter without code.

    That is -1 for the first one, and so on. `free`: whether starts of the target and of the query are.
    `table` has the code of each byte, 255 where there is none; `matrix` is in the type of the scores, (codes,
    codes). The CIGAR lies behind the places of all letters and all codes.
    """
    octets, numbers, values, most = memory.octets, memory.numbers, memory.values, memory.residues
    m, n = numbers[0], numbers[1]
    codes = octets[most : 2 * most]
    for k in range(m + n):
        code = table[octets[k]]
        if code == 255:
            return -1 - k
        codes[k] = code
    firsts, lasts = numbers[_NUMBERS:], numbers[_NUMBERS + most + 1 :]
    offsets = numbers[_NUMBERS + 2 * (most + 1) :]
    top, left = values[: n + 1], values[most + 1 : most + m + 2]
    rows = Rows(values[2 * (most + 1) :][: n + 1], values[3 * (most + 1) :][: n + 1])
    for j in range(n + 1):
        top[j] = alg.one if free[0] or j == 0 else p.open + p.prolong * (j - 1)
    for i in range(m + 1):
        left[i] = alg.one if free[1] or i == 0 else p.open + p.prolong * (i - 1)
        firsts[i] = 0
        lasts[i] = n
        offsets[i] = (i - 1) * n - 1
    query, target = codes[:m], codes[m : m + n]
    keep, border = Directions(octets[4 * most + 2 :], offsets), Borders(top, left, free[0], free[1])
    windows = Windows(firsts, lasts)
    score, i, j = sweep_rows(p, alg, keep, Pair(query, target, matrix), border, ends, windows, NoDrop(), rows)
    numbers[2] = int(score)
    numbers[3] = i
    numbers[4] = j
    runs = memory.runs[: i + j]
    first = walk_back(keep, border, alg.zero == 0, i, j, runs)[0]
    numbers[5:_NUMBERS] = 0
    numbers[7] = i + j - first
    memory.counts[:] = 0
    none = numbers[5:6]
    path = Paths(query, target, none, none, numbers[3:4], numbers[4:5], matrix, runs[first:], numbers[6:8])
    describe_paths(path, PathColumns(memory.counts, octets[2 * most :], numbers[8:10]))
    return int(numbers[9])


def short_memory(residues: int, cells: int) -> ShortMemory:
    """Memory for pairs of up to so many residues, and cells of their matrices."""
    # A CIGAR has a digit and a letter for each column at the most.
    octets = np.zeros(4 * residues + 2 + cells, np.uint8)
    return ShortMemory(
        octets,
        np.zeros(_NUMBERS + 3 * (residues + 1), np.int64),
        np.zeros((1, len(COUNTS)), np.int64),
        np.zeros(4 * (residues + 1)),
        np.zeros((residues, 2), np.int64),
        residues,
    )


_GLOBAL = FreeEnds(False, False, False, False, False, False)
#: Whole numbers below it are exact in float64.
_EXACT = 1 << 53


class RowEnd(NamedTuple):
    """Score of the best alignment, and where it ends (0-based, exclusive)."""

    score: int
    query_end: int
    target_end: int


class RowPath(NamedTuple):
    """The best alignment. Coordinates are 0-based and half-open.

    `runs` is int64 (r, 2): operation (0 a pair of residues, 1 a residue of the target, 2 one of the query)
    and number of columns, in the order of the sequences; neighbours differ.
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
    free: FreeEnds = _GLOBAL,
    band: tuple[int, int] | None = None,
    x_drop: int | None = None,
    interpreted: bool = False,
) -> RowSweep:
    """Prepare the alignment of one pair of code sequences, unsigned or int64, (m,) and (n,).

    `scores` are whole numbers (K, K), query code and target code; costs are not negative; `free` says what
    may be left unaligned at no cost. `band` is the least and largest target index minus query index that are
    aligned; where an alignment begins at the starts and may end anywhere, `x_drop` is how far below the best
    of all rows before it a vertex may be, 0 or more. `interpreted` runs plain Python with Python integers.
    `InvalidInput` if the band holds no alignment, or a score might reach 2^53.
    """
    m, n = query.size, target.size
    ends = Ends(bool(free.anywhere), bool(free.target_end), bool(free.query_end))
    local = bool(free.local)
    largest = max(gap_open, int(np.abs(scores.astype(np.float64)).max(initial=0)))
    if (m + n) * largest >= _EXACT:
        found = f"up to {largest} for {m + n} residues"
        raise InvalidInput("scores", found=found, expected="scores of alignments below 2^53")
    kind = object if interpreted else np.float64
    border = borders(
        m, n, gap_open, gap_extend,
        top_free=local or bool(free.target_start), left_free=local or bool(free.query_start), dtype=kind,
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


_sweep_rows, _walk_back = kernel(sweep_rows), kernel(walk_back)
align_short_kernel = kernel(align_short)
