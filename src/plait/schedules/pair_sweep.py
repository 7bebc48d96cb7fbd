"""One pair from border to alignment: the values at the border, the sweep, the end cell, the walk back."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.schedules.antidiagonal import Edges, Region, sweep_region
from plait.schedules.choice_walk import Costs, StripeBits, close_at_border, walk
from plait.schedules.pair_scores import part
from plait.schedules.sweep_rules import keeps

__all__ = ["FreeEnds", "PairList", "PairMemory", "PairResults", "align_pair", "find_end", "set_border"]


class FreeEnds(NamedTuple):
    """What an alignment may leave out at no cost.

    Attributes
    ----------
    query_start, query_end, target_start, target_end
        Residues at that end of that sequence.
    local
        Both ends of both, wherever the value is best: 1 local alignment, 0 not.
    anywhere
        Whether the alignment may end in any cell: local alignment and extension.
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
    """Fill the edges with the values at the border of the matrix.

    Parameters
    ----------
    free
        `FreeEnds`.
    gap_open, gap_extend
        Costs, not negative.
    edges
        `Edges` of the whole matrix; changed in place.
    """
    opening = 0 if free.local else gap_open
    _fill_border(free.local or free.target_start, opening, gap_extend, edges.row_h, edges.row_f)
    _fill_border(free.local or free.query_start, opening, gap_extend, edges.column_h, edges.column_e)


@shared
def _offer(best: Any, value: int, row: int, column: int) -> None:
    ahead = row < best[1] or (row == best[1] and column < best[2])
    if value > best[0] or (value == best[0] and ahead):
        best[0] = value
        best[1] = row
        best[2] = column


@shared
def find_end(free: Any, gap_open: int, gap_extend: int, edges: Any, best: Any) -> None:
    """Set `best` to value, row and column of the end, from the bottom and right edge of the whole matrix.

    Of equal values the one with the earlier row counts, then the one with the earlier column.

    Parameters
    ----------
    free
        `FreeEnds`.
    gap_open, gap_extend
        Costs, not negative.
    edges
        Bottom and right edge.
    best
        int64, shape (3,); holds the best cell already where alignments may end anywhere.
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
        _offer(best, above, -1, columns - 1)
        for row in range(rows):
            _offer(best, edges.column_h[row], row, columns - 1)
    if free.target_end:
        beside = 0 if free.query_start else -_gap_cost(gap_open, gap_extend, rows)
        _offer(best, beside, rows - 1, -1)
        for column in range(columns):
            _offer(best, edges.row_h[column], rows - 1, column)


class PairList(NamedTuple):
    """Pairs to align: codes one after the other, and where each begins.

    Attributes
    ----------
    query, target
        Codes, uint8.
    query_starts, target_starts
        Where the sequences of pair p begin and, at p + 1, end; int64, shape (pairs + 1,).
    matrix
        Scores, int32, shape (codes, codes).
    gap_open, gap_extend
        Costs, not negative.
    free
        `FreeEnds`.
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
    """What is found, changed in place.

    Attributes
    ----------
    scores
        int64, shape (pairs,).
    ends
        Query start and end, target start and end, int64, shape (pairs, 4); starts only with `KeepChoices`.
    runs
        (operation, length) of all alignments one after the other, int64, shape (enough, 2).
    run_counts
        Runs of each pair, int64, shape (pairs,).
    """

    scores: Any
    ends: Any
    runs: Any
    run_counts: Any


class PairMemory(NamedTuple):
    """Memory of one thread.

    Attributes
    ----------
    edges
        `Edges` for the longest query and target.
    scratch
        `StripeScratch`.
    bits
        For `KeepChoices`, as for `sweep_region`.
    runs
        int64, shape (residues of the longest pair + 2, 2).
    cursor, best
        int64, shapes (5,) and (3,).
    """

    edges: Any
    scratch: Any
    bits: Any
    runs: Any
    cursor: Any
    best: Any


@shared
def _sweep(lanes: Any, gap: Any, algebra: Any, rules: Any, region: Any, task: Any, memory: Any) -> None:
    best = memory.best
    best[0] = 0
    best[1] = 1 << 60
    best[2] = 1 << 60
    rows, columns = region.row_end, region.column_end
    whole = memory.edges
    edges = Edges(whole.row_h[:columns], whole.row_f[:columns], whole.column_h[:rows], whole.column_e[:rows])
    set_border(task.free, task.gap_open, task.gap_extend, edges)
    sweep_region(lanes, gap, algebra, rules, region, edges, memory.scratch, memory.bits, best)
    find_end(task.free, task.gap_open, task.gap_extend, edges, best)


@shared
def _trace(lanes: Any, region: Any, task: Any, query: Any, target: Any, memory: Any) -> None:
    """Walk back from the best cell; the runs stand in ``memory.runs``, the last first."""
    cursor = memory.cursor
    cursor[0] = memory.best[1]
    cursor[1] = memory.best[2]
    cursor[2] = 0
    cursor[3] = memory.best[0]
    cursor[4] = 0
    free = task.free
    costs = Costs(query, target, task.matrix, task.gap_open, task.gap_extend, free.local)
    walk(StripeBits(0, 0, region.stretch, lanes.width), memory.bits, costs, cursor, memory.runs)
    close_at_border(free.query_start or free.local, free.target_start or free.local, cursor, memory.runs)


@shared
def align_pair(
    lanes: Any,
    gap: Any,
    algebra: Any,
    rules: Any,
    limits: Any,
    task: Any,
    pair: int,
    memory: Any,
    results: Any,
    written: int,
) -> int:
    """Align one pair of sequences that are not empty; returns the runs in ``results.runs`` after it.

    Parameters
    ----------
    lanes, gap, algebra, rules
        As for `plait.schedules.antidiagonal.sweep_region`, with the score source of all pairs.
    limits
        A `Region` of which stretch, offset, limits and floor are used.
    task
        `PairList`.
    pair
        Number of the pair.
    memory
        `PairMemory` of this thread.
    results
        `PairResults`.
    written
        Runs in ``results.runs`` so far.
    """
    q0, q1 = task.query_starts[pair], task.query_starts[pair + 1]
    t0, t1 = task.target_starts[pair], task.target_starts[pair + 1]
    source, ends, keep = rules
    own = (part(source, lanes, q0, q1, t0, t1), ends, keep)
    region = Region(
        0, q1 - q0, 0, t1 - t0, 0, limits.stretch, limits.offset, limits.low, limits.high, limits.floor
    )
    _sweep(lanes, gap, algebra, own, region, task, memory)
    best = memory.best
    results.scores[pair] = best[0]
    results.ends[pair, 1] = best[1] + 1
    results.ends[pair, 3] = best[2] + 1
    if not keeps(keep):
        return 0
    _trace(lanes, region, task, task.query[q0:q1], task.target[t0:t1], memory)
    cursor = memory.cursor
    results.ends[pair, 0] = cursor[0] + 1
    results.ends[pair, 2] = cursor[1] + 1
    count = int(cursor[4])
    results.run_counts[pair] = count
    for k in range(count):
        results.runs[written + k, 0] = memory.runs[count - 1 - k, 0]
        results.runs[written + k, 1] = memory.runs[count - 1 - k, 1]
    return written + count
