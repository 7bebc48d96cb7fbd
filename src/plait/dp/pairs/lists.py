"""Lists of pairs, each swept from border to traceback in lanes chosen for it, shared out over threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Target, over_threads
from plait.dp.pairs.choices import (
    AsAsked,
    EdgeEnds,
    KeepValues,
    LocalEnds,
    ScoresOnly,
    at_top,
    keep_best,
    keeps,
    note_octet,
    of_kind,
    see,
    with_floor,
)
from plait.dp.pairs.diagonals import Edges, Region, StripeScratch, sweep_region
from plait.dp.pairs.gaps import AffineGap, GapDifferences, differences, in_lanes
from plait.dp.pairs.paths import describe_paths
from plait.dp.pairs.scores import (
    ROWS,
    LaneProfiles,
    Matches,
    PairTable,
    QueryTable,
    ScoreScratch,
    SkewedProfile,
    beside,
    look_up,
    matches_of,
    pads_of,
    part,
)
from plait.dp.pairs.traceback import (
    Costs,
    OctetBits,
    StripeBits,
    close_at_border,
    copy_runs,
    walk,
    walk_whole,
)
from plait.errors import Unsupported
from plait.lang.algebras import MaxPlus, SaturatingMaxPlus
from plait.lang.compile import by_type_of, host_features, kernel, shared
from plait.lang.lanes import host_lanes, lanes_of, load, splat, store, width_of


class FreeEnds(NamedTuple):
    """What an alignment may leave out at no cost: residues at that end of that sequence.

    `local`: both ends of both, wherever the value is best; 1 for local alignment, else 0. `anywhere`: it may
    end in any cell (local alignment and extension).
    """

    query_start: Any
    query_end: Any
    target_start: Any
    target_end: Any
    local: Any
    anywhere: Any


@shared
def _gap_cost(gap_open: int, gap_extend: int, residues: int) -> int:
    return gap_open + (residues - 1) * gap_extend if residues > 0 else 0


@shared
def _fill_border(is_free: bool, opening: int, gap_extend: int, values: Any, handed: Any) -> None:
    first = 0 if is_free else -opening
    step = 0 if is_free else -gap_extend
    for k in range(values.size):
        values[k] = first + step * k
        handed[k] = first + step * k - opening


@shared
def set_border(free: Any, gap_open: int, gap_extend: int, edges: Any) -> None:
    """Fill the edges of the whole matrix with the values at its border; costs are not negative."""
    opening = 0 if free.local else gap_open
    _fill_border(free.local or free.target_start, opening, gap_extend, edges.row_h, edges.row_f)
    _fill_border(free.local or free.query_start, opening, gap_extend, edges.column_h, edges.column_e)


@shared
def offer(best: Any, value: int, row: int, column: int) -> None:
    """Keep the better end: the higher value, then the earlier row, then the earlier column."""
    ahead = row < best[1] or (row == best[1] and column < best[2])
    if value > best[0] or (value == best[0] and ahead):
        best[0] = value
        best[1] = row
        best[2] = column


@shared
def find_end(free: Any, gap_open: int, gap_extend: int, edges: Any, best: Any) -> None:
    """Set `best` to value, row and column of the end, from the bottom and right edge of the whole matrix.

    Of equal values the one with the earlier row counts, then the one with the earlier column. Costs are not
    negative. `best`, int64 (3,), holds the best cell already where alignments may end anywhere.
    """
    rows, columns = edges.column_h.size, edges.row_h.size
    if free.anywhere:
        if best[0] <= 0:
            best[0] = 0
            best[1] = -1
            best[2] = -1
        return
    best[0] = edges.row_h[columns - 1]
    best[1] = rows - 1
    best[2] = columns - 1
    if free.query_end:
        above = 0 if free.target_start else -_gap_cost(gap_open, gap_extend, columns)
        offer(best, above, -1, columns - 1)
        for row in range(rows):
            offer(best, edges.column_h[row], row, columns - 1)
    if free.target_end:
        beside = 0 if free.query_start else -_gap_cost(gap_open, gap_extend, rows)
        offer(best, beside, rows - 1, -1)
        for column in range(columns):
            offer(best, edges.row_h[column], rows - 1, column)


class PairList(NamedTuple):
    """Pairs to align: codes one after the other, and where each begins.

    Codes are uint8; the `starts` are (pairs + 1,) int64 offsets into them; `matrix` is int32, (codes, codes);
    costs are not negative.
    """

    query: Any
    query_starts: Any
    target: Any
    target_starts: Any
    matrix: Any
    gap_open: Any
    gap_extend: Any
    free: Any


class PairResults(NamedTuple):
    """What is found, int64, changed in place.

    `ends` (pairs, 4): query start and end, target start and end, the starts only with choices. `runs`
    (enough, 2): operation and length, all alignments one after the other; `run_counts` (pairs,) of each.
    """

    scores: Any
    ends: Any
    runs: Any
    run_counts: Any


class PairMemory(NamedTuple):
    """Memory of one thread, for the longest query and target.

    `bits` is for choices, as for `sweep_region`; `runs` (residues of the longest pair + 2, 2), `cursor`
    (5,) and `best` (3,) are int64.
    """

    edges: Any
    scratch: Any
    bits: Any
    runs: Any
    cursor: Any
    best: Any


@shared
def _trace(place: Any, task: Any, pair: int, memory: Any, results: Any, written: int) -> int:
    """Walk back from the best cell and write the runs behind those `written`; returns their number then."""
    free = task.free
    query = task.query[task.query_starts[pair] : task.query_starts[pair + 1]]
    target = task.target[task.target_starts[pair] : task.target_starts[pair + 1]]
    costs = Costs(query, target, task.matrix, task.gap_open, task.gap_extend, free.local)
    free_query, free_target = free.query_start or free.local, free.target_start or free.local
    cursor, runs = memory.cursor, memory.runs
    walk_whole(place, memory.bits, costs, memory.best, free_query, free_target, cursor, runs)
    results.ends[pair, 0] = cursor[0] + 1
    results.ends[pair, 2] = cursor[1] + 1
    count = copy_runs(cursor, runs, written, results.runs)
    results.run_counts[pair] = count
    return written + count


@shared
def _write_end(best: Any, pair: int, results: Any) -> None:
    results.scores[pair] = best[0]
    results.ends[pair, 1] = best[1] + 1
    results.ends[pair, 3] = best[2] + 1


@shared
def align_pair(setup: Any, task: Any, pair: int, memory: Any, results: Any, written: int) -> int:
    """Align one pair of sequences that are not empty; returns the runs in ``results.runs`` after it.

    `setup`, `PairSetup`, has the score source of all pairs, and of its limits stretch, offset, low, high and
    floor are used; `memory` is this thread's; `written` is the number of runs in ``results.runs`` so far.
    Without results this is a region of a pair, with ``limits.corner``: what is asked for are its edges,
    ``memory.edges``, its best cell and its choices, see `sweep_region`.
    """
    lanes, gap, algebra, rules, limits = setup
    q0, q1 = task.query_starts[pair], task.query_starts[pair + 1]
    t0, t1 = task.target_starts[pair], task.target_starts[pair + 1]
    source, anywhere, keep = rules
    own = (part(source, lanes, q0, q1, t0, t1), anywhere, keep)
    rows, columns, whole = q1 - q0, t1 - t0, results.scores.size > 0
    region, best, given = Region(0, rows, 0, columns, *limits[4:]), memory.best, memory.edges
    best[0] = 0
    best[1] = 1 << 60
    best[2] = 1 << 60
    edges = Edges(given.row_h[:columns], given.row_f[:columns], given.column_h[:rows], given.column_e[:rows])
    if whole:
        set_border(task.free, task.gap_open, task.gap_extend, edges)
    sweep_region(lanes, gap, algebra, own, region, edges, memory.scratch, memory.bits, best)
    if not whole:
        return 0
    find_end(task.free, task.gap_open, task.gap_extend, edges, best)
    _write_end(best, pair, results)
    if not keeps(keep):
        return 0
    return _trace(StripeBits(0, 0, limits.stretch, lanes.width), task, pair, memory, results, written)


@shared
def align_pairs(setup: Any, task: Any, first: int, last: int, memory: Any, results: Any) -> int:
    """Pairs `first` to `last`, see `align_pair`; returns the number of runs."""
    written = 0
    for pair in range(first, last):
        written = align_pair(setup, task, pair, memory, results, written)
    return written


@shared
def align_octets(setup: Any, task: Any, first: int, last: int, memory: Any, results: Any) -> int:
    """`align_pairs` by differences: a kernel of its own, because it has ways of its own to scores."""
    return align_pairs(setup, task, first, last, memory, results)


class BesideScratch(NamedTuple):
    """Memory of one thread for pairs beside each other, each in a lane of the last axis; octets but for two.

    `query` and `target` are the residues' numbers in the source, (rows or columns, lanes); `v` and `e` those
    of the column before, (rows, lanes); `below` has `u` of rows that end a query, (rows, columns, lanes),
    `right` `v` of columns that end a target, (columns, rows, lanes). `found` and `profile` are for `look_up`,
    as is `picked`, int64; `ends`, int16 (3, lanes), has value, row and column of best cells.
    """

    query: Any
    target: Any
    v: Any
    e: Any
    below: Any
    right: Any
    found: Any
    profile: Any
    picked: Any
    ends: Any


class _Inside(NamedTuple):
    """Cells in which no pair ends."""


class _AtEdges(NamedTuple):
    """Cells in rows or columns that end pairs, from those on that all pairs have."""

    rows: Any
    columns: Any


def _leave(edges: Any, lanes: Any, scratch: Any, row: int, at: int, v: Any, u: Any) -> None:
    return


def _keep_edges(edges: Any, lanes: Any, scratch: Any, row: int, at: int, v: Any, u: Any) -> None:
    for k in range(2):
        if at + k + 1 >= edges.columns:
            store(lanes, scratch.right[at + k + 1 - edges.columns], row, 0, v[k])
        if row + 1 >= edges.rows:
            store(lanes, scratch.below[row + 1 - edges.rows], at + k, 0, u[k])


_see_edges = by_type_of({_Inside: _leave, _AtEdges: _keep_edges})


@shared
def _two_columns(
    ends: Any, edges: Any, lanes: Any, rules: Any, rows: Any, columns: Any, state: Any, memory: Any
) -> Any:
    """Visit some rows of two columns, the first and what was looked up; `state` is what they hand down."""
    (p, source, keep), (at, found), (scratch, bits) = rules, columns, memory
    own, first = bits[at // 2 if keep else 0], ends.marks
    low = splat(lanes, first[6]), splat(lanes, first[7]), splat(lanes, first[8]), splat(lanes, first[9])
    high = splat(lanes, first[10]), splat(lanes, first[11]), splat(lanes, first[12]), splat(lanes, first[13])
    marks = low + high + (splat(lanes, first[14]),)
    u0, u1, f0, f1, seen = state
    for row in range(rows[0], rows[1]):
        s0, s1 = beside(source, lanes, scratch, row, found[0]), beside(source, lanes, scratch, row, found[1])
        s0, s1 = with_floor(ends, lanes, seen, u0, (s0, s1))
        v, e = load(lanes, scratch.v, row, 0), load(lanes, scratch.e, row, 0)
        one = differences(p, u0, v, e, f0, s0)
        _, _, u0, v, e, f0 = one
        two = differences(p, u1, v, e, f1, s1)
        _, _, u1, v2, e, f1 = two
        seen = see(ends, lanes, seen, row, v, u1)
        if keep:
            note_octet(lanes, bits.size, own, row, marks, (one, two, (s0, s1)))
        store(lanes, scratch.v, row, 0, v2)
        store(lanes, scratch.e, row, 0, e)
        _see_edges(edges, lanes, scratch, row, at, (v, v2), (u0, u1))
    return u0, u1, f0, f1, seen


def _all_seen(
    ends: Any, edges: Any, lanes: Any, rules: Any, rows: Any, columns: Any, state: Any, memory: Any
) -> Any:
    return state


_last_rows = by_type_of({EdgeEnds: _two_columns, LocalEnds: _all_seen})


@shared
def sweep_beside(
    lanes: Any, gap: Any, source: Any, ends: Any, keep: bool, sizes: Any, scratch: Any, bits: Any
) -> None:
    """Visit pairs beside each other, two columns at a time.

    `gap` is `GapDifferences` of octets, `source` is `Matches`, `PairTable`, `QueryTable` or `LaneProfiles`,
    `ends` is `EdgeEnds` or `LocalEnds`. ``ends.marks`` are ``u`` at the border above the first column and the
    others, then ``v`` left of the first row and the others; the numbers in the source of what follows the
    shorter queries and targets; and those of `note_octet`. `sizes` are the most rows and columns of a pair,
    and the rows and columns that all have.
    """
    none, borders = splat(lanes, np.uint8(0)), ends.marks
    rows, columns, all_rows, all_columns = sizes
    rules, edges = (in_lanes(gap, lanes), source, keep), _AtEdges(all_rows, all_columns)
    for row in range(rows):
        store(lanes, scratch.v, row, 0, splat(lanes, borders[2 if row == 0 else 3]))
        store(lanes, scratch.e, row, 0, none)
    for at in range(0, columns, 2):
        t0 = look_up(source, lanes, scratch, rows, at, 0)
        t1 = look_up(source, lanes, scratch, rows, at + 1, width_of(lanes))
        above = splat(lanes, borders[0 if at == 0 else 1])
        state = above, splat(lanes, borders[1]), none, none, at_top(ends, lanes)
        inside = min(all_rows - 1, rows) if at + 2 < all_columns else 0
        both, memory = (at, (t0, t1)), (scratch, bits)
        state = _two_columns(ends, _Inside(), lanes, rules, (0, inside), both, state, memory)
        state = _last_rows(ends, edges, lanes, rules, (inside, rows), both, state, memory)
        keep_best(ends, lanes, scratch.ends, state[4], at)


@shared
def _lay_beside(source: Any, marks: Any, task: Any, pairs: Any, scratch: Any) -> Any:
    """Put pairs into lanes; returns the `sizes` of `sweep_beside`."""
    rows, columns, all_rows, all_columns = 0, 0, 1 << 60, 1 << 60
    for lane in range(pairs.size):
        m = task.query_starts[pairs[lane] + 1] - task.query_starts[pairs[lane]]
        n = task.target_starts[pairs[lane] + 1] - task.target_starts[pairs[lane]]
        rows, columns = max(rows, m), max(columns, n)
        all_rows, all_columns = min(all_rows, m), min(all_columns, n)
    for lane in range(pairs.size):
        q0, q1 = task.query_starts[pairs[lane]], task.query_starts[pairs[lane] + 1]
        t0, t1 = task.target_starts[pairs[lane]], task.target_starts[pairs[lane] + 1]
        for row in range(rows):
            scratch.query[row, lane] = source.query[q0 + row] if row < q1 - q0 else marks[4]
        for column in range(columns + columns % 2):
            scratch.target[column, lane] = source.target[t0 + column] if column < t1 - t0 else marks[5]
    if task.free.local:
        scratch.ends[:] = 0
        return rows, columns, 1 << 60, 1 << 60
    return rows, columns, all_rows, all_columns


@shared
def _edges_beside(task: Any, sizes: Any, lane: int, m: int, n: int, memory: Any) -> Any:
    """Values in the last row and column of the pair in a lane."""
    whole, scratch, opened = memory.edges, memory.scratch, task.gap_open
    edges = Edges(whole.row_h[:n], whole.row_f[:n], whole.column_h[:m], whole.column_e[:m])
    if task.free.local:
        return edges
    set_border(task.free, opened, task.gap_extend, edges)
    value, above = edges.column_h[m - 1], edges.row_h[n - 1]
    for column in range(n):
        value += int(scratch.below[m - sizes[2], column, lane]) - opened
        edges.row_h[column] = value
    for row in range(m):
        above += int(scratch.right[n - sizes[3], row, lane]) - opened
        edges.column_h[row] = above
    return edges


@shared
def align_beside(
    lanes: Any,
    gap: Any,
    source: Any,
    ends: Any,
    keep: bool,
    task: Any,
    order: Any,
    memory: Any,
    results: Any,
) -> int:
    """Align pairs, neighbours in `order` beside each other; returns the number of runs, 0 without `keep`."""
    written, best = 0, memory.best
    for first in range(0, order.size, lanes.width):
        pairs = order[first : first + lanes.width]
        sizes = _lay_beside(source, ends.marks, task, pairs, memory.scratch)
        sweep_beside(lanes, gap, source, ends, keep, sizes, memory.scratch, memory.bits)
        for lane in range(pairs.size):
            pair = pairs[lane]
            m = task.query_starts[pair + 1] - task.query_starts[pair]
            n = task.target_starts[pair + 1] - task.target_starts[pair]
            edges = _edges_beside(task, sizes, lane, m, n, memory)
            for k in range(3):
                best[k] = memory.scratch.ends[k, lane]
            find_end(task.free, task.gap_open, task.gap_extend, edges, best)
            _write_end(best, pair, results)
            if keep:
                written = _trace(OctetBits(0, 0, lane), task, pair, memory, results, written)
    return written


_LONGEST_STRETCH = 4096
_SHORTEST_STRETCH = 64
_MARGIN = 64
#: Lower than any score.
_NO_FLOOR = -(1 << 40)
#: Scores at the edges of regions are 32-bit, and those of lanes lie near them.
_LARGEST = 2**31 - 2**20


class PairSetup(NamedTuple):
    """Everything but the pairs: how `align_pair` sweeps them."""

    lanes: Any
    gap: Any
    algebra: Any
    rules: Any
    limits: Any


def stretch_limits(
    dtype: Any, width: int, largest_score: int, gap_open: int, gap_extend: int, columns: int
) -> Region | None:
    """Stretch and offset for which numbers of a signed type are exact; None if there is none.

    `width` is in lanes; `columns` are those of the longest target, and a stretch is no longer; costs are not
    negative.
    """
    info = np.iinfo(dtype)
    rows = ROWS * width
    step = max(largest_score, 0) + 2 * gap_extend
    room = int(info.max) - int(info.min) - 5 * gap_open - 2 * _MARGIN
    longest = min(_LONGEST_STRETCH, room // max(step, 1) - rows)
    needed = max(1, min(columns, _SHORTEST_STRETCH))
    if longest < needed:
        return None
    stretch = min(longest, max(columns, 1))
    offset = int(info.min) + 3 * gap_open + gap_extend * (rows + stretch) + _MARGIN
    return Region(0, 0, 0, 0, 0, stretch, offset, int(info.min), int(info.max), 0)


def few_letters(codes: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The codes that occur, and the place of every code among them."""
    every = bytes(range(256))
    absent = every.translate(None, codes.tobytes())
    present = np.frombuffer(every.translate(None, absent), np.uint8).astype(np.int64)
    place = np.zeros(256, np.uint8)
    place[present] = np.arange(present.size)
    return present, place


def looked_up(codes: NDArray[np.uint8], table: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``table[codes]``, for which NumPy makes a number of 64 bits of every code."""
    own = bytearray(np.ascontiguousarray(codes, np.uint8))
    return np.frombuffer(own.translate(table.tobytes()), np.uint8)


def _source(task: PairList, width: int, number: Any) -> Any:
    """Scores for lanes of a type: a table of few letters, or a profile; None if 16 bits have neither.

    Numbers of 32 bits are seldom needed: one form of scores serves all that ask for them.
    """
    nothing, matches = np.zeros(width, np.uint8), matches_of(task) if number == np.uint8 else None
    if matches is not None:
        return matches[0]._replace(target=np.append(task.target, nothing))
    own, own_place = few_letters(task.query)
    other, other_place = few_letters(task.target)
    scores = task.matrix[np.ix_(own, other)]
    narrow = scores.size == 0 or (scores.min() >= -128 and scores.max() <= 127)
    # A look-up of 16-bit scores by 16-bit numbers is one instruction where there is AVX-512.
    words = number == np.int16 and bool(host_features().get("avx512bw"))
    if number != np.int32 and scores.size <= 32 and (narrow or words):
        letter, entry = (np.uint16, np.int16) if words else (np.uint8, np.int8)
        table = np.zeros((1, 32), entry)
        table[0, : scores.size] = scores.ravel()
        first = looked_up(task.query, own_place * np.uint8(other.size))
        last = np.append(looked_up(task.target, other_place), nothing)
        return PairTable(first.astype(letter), last.astype(letter), table)
    if number != np.int32 and not narrow:
        return None
    table = np.zeros((other.size, 32), np.int16 if number == np.int32 else np.int8)
    table[:, : own.size] = scores.T
    wide = lanes_of(min(64, ROWS * width))
    target = looked_up(task.target, other_place).astype(np.int64)
    return SkewedProfile(looked_up(task.query, own_place), target, table, wide)


def sweep_rules(source: Any, number: Any, anywhere: bool, keep: bool) -> tuple[Any, bool, Any]:
    """Rules of `sweep_region`; one kernel for scores and choices, but for profiles in 16 bits."""
    # To ask in each cell costs these a tenth of their time, and tables nothing.
    own = number == np.uint8 or (number == np.int16 and isinstance(source, SkewedProfile))
    return source, anywhere, of_kind(ScoresOnly() if own else AsAsked(keep), keep)


def make_setup(task: PairList, *, keep: bool, lanes: Any = None, dtype: Any = None) -> PairSetup:
    """How to sweep the pairs of a list, none empty; `Unsupported` if scores could reach 2^31.

    `keep` asks for choices, for the traceback; by default lanes and type are exact and suit this processor.
    """
    rows = int(np.diff(task.query_starts).max(initial=1))
    columns = int(np.diff(task.target_starts).max(initial=1))
    largest = int(task.matrix.max(initial=0))
    # No best alignment is worse than two gaps, and none has more pairs than the shorter sequence residues.
    lowest = (rows + columns) * task.gap_extend + 3 * task.gap_open
    if max(lowest, min(rows, columns) * largest) >= _LARGEST:
        why = f"scores of {rows:,} by {columns:,} residues could reach 2^31; scale scores and gap costs down"
        raise Unsupported("this pair with these scores", why=why)
    # Two registers need not wait for each other; below four stripes profiles take as long as they save.
    wide = lanes_of(min(2 * host_lanes(8).width, 64)) if lanes is None else lanes
    asked = dtype == np.uint8 or (dtype is None and rows >= 4 * ROWS * wide.width)
    if lanes is None and dtype is None and not (asked or task.free.anywhere):
        asked = prod(int(own.max(initial=0)) + 1 for own in (task.query, task.target)) <= 32
    if asked and (octets := _octet_setup(task, columns, keep, wide)) is not None:
        return octets
    for kind in (np.int16, np.int32) if dtype is None else (dtype,):
        width = host_lanes(8 * np.dtype(kind).itemsize) if lanes is None else lanes
        source = _source(task, width.width, kind)
        two = host_lanes(8) if isinstance(source, PairTable) and source.query.dtype == np.uint8 else width
        if lanes is None and rows >= 4 * ROWS * two.width:
            # The scores of two registers are looked up in one.
            width, source = two, _source(task, two.width, kind)
        limits = stretch_limits(kind, width.width, largest, task.gap_open, task.gap_extend, columns)
        if limits is not None and (source is not None or dtype is not None):
            break
    else:
        raise Unsupported("these scores", why=f"they do not fit lanes of type {np.dtype(kind)}")
    number = np.dtype(kind).type
    gap = AffineGap(number(-task.gap_open), number(-task.gap_extend))
    free = task.free
    algebra = SaturatingMaxPlus(number(limits.low), number(0))
    if not free.local:
        limits = limits._replace(floor=_NO_FLOOR)
    rules = sweep_rules(source, kind, bool(free.anywhere), keep)
    return PairSetup(width, gap, algebra, rules, limits)


def _fit_octets(task: PairList, table: NDArray[Any]) -> bool:
    """Whether octets hold the differences of neighbouring cells, see `GapDifferences`."""
    # A cell lies two gaps below the one on its diagonal or less, and a score and a gap above it or less, or
    # a gap above it where all scores are negative.
    opened, least, gaps = int(task.gap_open), int(table.min()), 4 if task.free.local else 3
    high = int(table.max(initial=0)) + gaps * opened
    return task.gap_extend <= opened and least >= -2 * opened and high <= np.iinfo(np.uint8).max


def _biased(task: PairList, source: Any) -> Any:
    """A source of scores as `GapDifferences` has them."""
    return source._replace(table=(source.table.astype(np.int64) + 2 * task.gap_open).astype(np.uint8))


def _octet_setup(task: PairList, columns: int, keep: bool, lanes: Any) -> PairSetup | None:
    """How to sweep by differences; None where octets do not hold them."""
    source = None if task.free.anywhere else _source(task, lanes.width, np.uint8)
    if source is None or not _fit_octets(task, source.table):
        return None
    gap = GapDifferences(np.uint8(task.gap_open - task.gap_extend))
    limits = Region(0, 0, 0, 0, 0, min(_LONGEST_STRETCH, columns), task.gap_open, 0, 255, 0)
    rules = sweep_rules(_biased(task, source), np.uint8, False, keep)
    return PairSetup(lanes, gap, MaxPlus(np.uint8(0), np.uint8(0)), rules, limits)


def choice_bytes(setup: PairSetup, rows: int, columns: int) -> int:
    """Bytes of the choices of a pair; `rows` and `columns` are residues of query and target."""
    entries = int(np.prod(_choice_shape(setup, rows, columns), dtype=np.int64))
    return entries * int(choice_type(setup.lanes).itemsize)


def choice_type(lanes: Any) -> Any:
    """The type of words that have a bit for each lane."""
    return np.dtype(f"u{max(lanes.width, 8) // 8}")


def _choice_shape(setup: PairSetup, rows: int, columns: int) -> tuple[int, ...]:
    stripes = -(-rows // (ROWS * setup.lanes.width))
    stretches = -(-columns // setup.limits.stretch)
    steps = min(setup.limits.stretch, columns) + setup.lanes.width - 1
    if isinstance(setup.rules[2], KeepValues):
        return (stripes, stretches, steps, ROWS, setup.lanes.width)
    if not keeps(setup.rules[2]):
        return (stripes, stretches, 1, 1, 1)
    return (stripes, stretches, steps, ROWS, 4)


def lane_rows(rows: int, width: int, kind: Any) -> NDArray[Any]:
    """Rows of lanes, of any values, none of which lies in more lines of the cache than it must."""
    size = np.dtype(kind).itemsize
    room = np.empty(rows * width + _LINE // size, kind)
    first = -room.ctypes.data % _LINE // size
    return room[first : first + rows * width].reshape(rows, width)


def make_memory(setup: PairSetup, rows: int, columns: int, *, edges: bool = True) -> PairMemory:
    """Memory of one thread for pairs of up to so many residues of query and target.

    `edges`: whether memory for edges and runs is needed.
    """
    width = setup.lanes.width
    kind = type(setup.gap[0])
    source = setup.rules[0]
    stretch = min(setup.limits.stretch, columns)
    few, octets = not isinstance(source, SkewedProfile), isinstance(setup.gap, GapDifferences)
    numbers = np.int8 if few else source.table.dtype
    profile = 1 if few else source.table.shape[0]
    skewed = 1 if few else stretch + 2 * width + 4
    score = ScoreScratch(
        np.zeros((ROWS, width) if few else (1, ROWS * width), source.query.dtype),
        np.zeros((profile, ROWS * width), numbers),
        np.zeros((skewed, ROWS * width), numbers),
        np.tile(np.arange(width, dtype=np.int8), ROWS)[None],
        np.arange(-1, 127, dtype=np.int8)[None],
    )
    scratch = StripeScratch(
        np.zeros((17, width), kind),
        np.zeros((2, columns + 2 * width if octets else stretch + width), kind),
        np.zeros((2, ROWS * width if octets else stretch + width), kind),
        np.zeros((ROWS, width), np.int8),
        score,
    )
    sizes = (columns, columns, rows, rows) if edges else (0, 0, 0, 0)
    kept = kind if isinstance(setup.rules[2], KeepValues) else choice_type(setup.lanes)
    return PairMemory(
        Edges(*(np.zeros(size, np.int32) for size in sizes)),
        scratch,
        np.empty(_choice_shape(setup, rows, columns), kept),
        np.zeros((rows + columns + 2 if edges else 0, 2), np.int64),
        np.zeros(5, np.int64),
        np.zeros(3, np.int64),
    )


#: Bytes of a line of the cache.
_LINE = 64
#: Residues of a share: bounds the memory for its runs.
_SHARE = 1 << 21
#: Cells that need little memory.
_SMALL = 1 << 22


def shares(rows: NDArray[np.int64], columns: NDArray[np.int64], threads: int) -> Iterator[tuple[int, int]]:
    """Stretches of pairs with about the same number of cells; the residues of each are given."""
    pairs = rows.size
    cells = np.concatenate([[0], np.cumsum(rows * columns)])
    residues = np.concatenate([[0], np.cumsum(rows + columns)])
    least = int(cells[-1]) // (4 * threads if threads > 1 else 1) + 1
    first = 0
    while first < pairs:
        last = int(np.searchsorted(cells, cells[first] + least, "left"))
        last = min(last, int(np.searchsorted(residues, residues[first] + _SHARE, "right")) - 1)
        last = min(max(last, first + 1), pairs)
        # Memory is made for the longest query and the longest target of a share.
        tallest = np.maximum.accumulate(rows[first:last])
        widest = np.maximum.accumulate(columns[first:last])
        largest = np.maximum(np.maximum.accumulate(rows[first:last] * columns[first:last]), _SMALL)
        wasteful = np.flatnonzero(tallest * widest > 4 * largest)
        last = first + int(wasteful[0]) if wasteful.size else last
        yield first, last
        first = last


T = TypeVar("T", bound=tuple[Any, ...])


def read_only(values: T) -> T:
    """The same with arrays that cannot be written to: whoever made them, kernels see one type."""
    kept = [value.view() if isinstance(value, np.ndarray) else value for value in values]
    for value in kept:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    made: Any = type(values)
    return cast(T, made(*kept))


class ListBatch(NamedTuple):
    """Pairs of a list, none empty, and how they are swept; `beside` are lanes of octets if those may do."""

    setup: PairSetup
    pairs: PairList
    beside: Any = None


#: Bytes kept of pairs beside others, how many lanes of octets take as long as a pair does without, and the
#: longest sequences.
_MOST_BESIDE = 1 << 27
_LANES_FOR_ONE = 3
_LONGEST_BESIDE = 1 << 13


def _octet_source(source: Any, task: PairList) -> tuple[Any, tuple[int, int] | None]:
    """Where octets have scores from; and what no local alignment ends in, None if nothing is so."""
    if not isinstance(source, SkewedProfile):
        return matches_of(task) or (source, pads_of(source) if task.free.local else (0, 0))
    letters, size = len(source.table), int(task.query_starts[1])
    # No letter has the last number, and the row behind the others.
    pads = (31, letters) if max(letters, int(source.query.max()) + 1) < 32 else None
    table = np.vstack([source.table, np.zeros((1, 32), source.table.dtype)])
    if (np.diff(task.query_starts) != size).any() or (
        source.query.reshape(-1, size) != source.query[:size]
    ).any():
        return LaneProfiles(source.query, source.target, table), pads
    own = np.zeros((int(source.query.max()) + 1, 32), table.dtype)
    own[:, : len(table)] = table.T[: len(own)]
    return QueryTable(source.query, source.target, own), pads


def _octets(batch: ListBatch) -> tuple[Any, GapDifferences, Any, Any, bool] | None:
    """Arguments of `align_beside`: lanes to `keep`; None if octets do not hold the differences."""
    (source, _, keep), task, free = batch.setup.rules, batch.pairs, batch.pairs.free
    opened, over = int(task.gap_open), int(task.gap_open - task.gap_extend)
    if batch.beside is None or (free.anywhere and not free.local):
        return None
    biased = isinstance(batch.setup.gap, GapDifferences)
    source, pads = _octet_source(source, task)
    if pads is None or not (biased or _fit_octets(task, batch.setup.rules[0].table)):
        return None
    if not biased or isinstance(source, Matches):
        source = _biased(task, source)
    starts = free.target_start or free.local, free.query_start or free.local
    borders = [opened if own else cost for own in starts for cost in (0, over)]
    ends: Any = EdgeEnds(np.array([*borders, *pads, *(1 << np.arange(8)), 0], np.uint8))
    if free.local:
        ends = LocalEnds(ends.marks, np.uint8(opened))
    return batch.beside, GapDifferences(np.uint8(over)), read_only(source), ends, keeps(keep)


def _run_beside(
    call: Callable[..., Any], batch: ListBatch, task: PairList, found: PairResults, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of the pairs that are best swept beside each other, and which these are, the rest in `found`."""
    octets = _octets(batch)
    rows, columns = np.diff(task.query_starts), np.diff(task.target_starts)
    if octets is None or not rows.size:
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    width, order = octets[0].width, np.lexsort((columns, rows))
    firsts = np.arange(0, order.size, width)
    most = [np.maximum.reduceat(sizes[order], firsts) for sizes in (rows, columns)]
    more = [m - np.minimum.reduceat(s[order], firsts) for m, s in zip(most, (rows, columns), strict=True)]
    cells = width * most[0] * most[1]
    # Of pairs that end before others of their group more is kept, in memory that is seldom in the cache.
    ends = width * ((more[0] + 1) * most[1] + (more[1] + 1) * most[0])
    worth = cells + 2 * ends <= _LANES_FOR_ONE * np.add.reduceat((rows * columns)[order], firsts)
    worth &= octets[4] * cells // 2 + ends <= _MOST_BESIDE
    # Memory is as long as the longest query and the longest target of several groups.
    worth &= np.maximum(*most) <= _LONGEST_BESIDE
    if task.free.local:
        worth &= np.minimum(*most) * max(int(task.matrix.max()), 0) <= np.iinfo(np.int16).max
    order = order[np.repeat(worth, width)[: order.size]]
    most, more = ([sizes[worth] for sizes in both] for both in (most, more))

    def run(share: tuple[int, int]) -> Any:
        m, n, more_m, more_n = (int(sizes[slice(*share)].max()) for sizes in (*most, *more))
        n += n % 2
        letters, each = len(octets[2].table), isinstance(octets[2], LaneProfiles)
        padded = -(-m // width) * width if each else 1
        shapes = [(m, width), (n, width), (m, width), (m, width)]
        shapes += [(max(padded, letters), 2 * width), ((letters + 1) * width if each else 1, padded)]
        query, target, v, e, scores, profile = (lane_rows(*shape, np.uint8) for shape in shapes)
        query[:] = target[:] = profile[:] = 0  # Lanes of no pair are looked up, too.
        below = lane_rows((more_m + 1) * n, width, np.uint8).reshape(-1, n, width)
        right = lane_rows((more_n + 2) * m, width, np.uint8).reshape(-1, m, width)
        ends, picked = np.zeros((3, width), np.int16), np.zeros(width, np.int64)
        scratch = BesideScratch(query, target, v, e, below, right, scores, profile, picked, ends)
        edges = Edges(*(np.zeros(size, np.int32) for size in (n, n, m, m)))
        runs, own = np.zeros((m + n + 2, 2), np.int64), order[share[0] * width : share[1] * width]
        bits = lane_rows(n // 2 * m if octets[4] else m, width, np.uint8).reshape(-1, m, width)
        memory = PairMemory(edges, scratch, bits, runs, np.zeros(5, np.int64), np.zeros(3, np.int64))
        results = found._replace(runs=np.empty((int((rows + columns + 2)[own].sum()), 2), np.int64))
        return results.runs[: call(*octets, task, own, memory, results)].copy()

    parts = over_threads(threads, list(shares(width * most[0], most[1], threads)), run)
    return np.concatenate([found.runs, *parts]), order


def run_pair_list(
    call: Callable[..., Any], call_beside: Callable[..., Any], batch: ListBatch, target: Target
) -> PairResults:
    """Align the pairs of a list, shares of it side by side; results are in its order.

    `call` and `call_beside` are `align_pairs_compiled` and `align_beside_kernel` or their definitions.
    ``runs`` has no rows beyond those used.
    """
    setup, task, threads = batch.setup, read_only(batch.pairs), target.threads
    rows, columns = np.diff(task.query_starts), np.diff(task.target_starts)
    none = np.zeros((0, 2), np.int64)
    found = PairResults(np.zeros_like(rows), np.zeros((rows.size, 4), np.int64), none, np.zeros_like(rows))
    before, done = _run_beside(call_beside, batch, task, found, threads)
    rest = np.delete(np.arange(rows.size), done)

    def run(share: tuple[int, int]) -> Any:
        own = rest[slice(*share)]
        memory = make_memory(setup, int(rows[own].max()), int(columns[own].max()))
        runs, used = np.empty((int((rows + columns + 2)[own].sum()), 2), np.int64), 0
        for some in np.split(own, np.flatnonzero(np.diff(own) > 1) + 1):
            results = found._replace(runs=runs[used:])
            used += call(setup, task, int(some[0]), int(some[-1]) + 1, memory, results)
        return runs[:used].copy()

    parts = over_threads(threads, list(shares(rows[rest], columns[rest], threads)), run)
    runs, order = np.concatenate([before, *parts]), np.concatenate([done, rest])
    if done.size:
        back, ends = np.argsort(order), np.cumsum(found.run_counts[order])
        own = found.run_counts
        places = np.repeat(ends[back] - np.cumsum(own), own) + np.arange(len(runs))
        runs = runs.take(places, axis=0)
    return found._replace(runs=runs)


align_pairs_kernel, align_octets_kernel = kernel(align_pairs), kernel(align_octets)
align_beside_kernel = kernel(align_beside)
#: Steps of a long pair, see `plait.dp.pairs.tiles`.
border_kernel, end_kernel = kernel(set_border), kernel(find_end)
walk_kernel, close_kernel = kernel(walk), kernel(close_at_border)
describe_kernel = kernel(describe_paths)


def align_kernel_of(setup: PairSetup) -> Any:
    """`align_pairs`, compiled."""
    return align_octets_kernel if isinstance(setup.gap, GapDifferences) else align_pairs_kernel


def align_pairs_compiled(setup: PairSetup, *args: Any) -> Any:
    """The same, called."""
    return align_kernel_of(setup)(setup, *args)
