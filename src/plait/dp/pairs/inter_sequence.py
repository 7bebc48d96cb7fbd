"""Inter-sequence order: one query against a block of targets, one target in each lane."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.pairs.gaps import AffineGap, GapDifferences, LinearGap, cell, differences, gaps, in_lanes
from plait.dp.pairs.lists import FreeEnds, lane_rows
from plait.lang.algebras import SaturatingMaxPlus, algebra_in_lanes, choice
from plait.lang.compile import by_type, by_type_of, kernel, shared
from plait.lang.lanes import equal, greater, host_lanes, load, lookup, select, splat, store, widen, width_of

#: Columns of targets visited together.
COLUMNS = 4
#: Code of the residues that fill a block up.
PAD = 31


class Block(NamedTuple):
    """Targets side by side, and the border they share.

    `packed` has uint8 codes, (columns, lanes of the block), `PAD` after the end of a target; the block is its
    columns `first` to before `last`, a multiple of `COLUMNS`; `lane` is the first lane of the group that is
    worked on. In the type of the scores: `lengths` (1, lanes), the length of each target; `top`, ``h`` above
    the first row, before the first column and at each one, padded with any values to the columns of the
    block; `units`, the numbers -1, 0 and 1. For `GapDifferences`, octets: `top` is the cost of opening a gap,
    and ``u`` above the first row at each column.
    """

    packed: Any
    first: Any
    last: Any
    lane: Any
    lengths: Any
    top: Any
    units: Any


class BlockScratch(NamedTuple):
    """Memory of one thread.

    `h`, or ``v``, and `e` (handed to the right) are a column, (query length, lanes), and hold the left border
    when a block begins. `scores` are those of each letter of the query with `COLUMNS` columns, (letters *
    COLUMNS, lanes).
    """

    h: Any
    e: Any
    scores: Any


class EveryCell(NamedTuple):
    """An alignment may end in any cell: local alignment, and extension."""

    @staticmethod
    def begin(ends: EveryCell, result: Any, zero: Any) -> Any:
        return result, zero, zero, zero

    @staticmethod
    def seen(ends: EveryCell, alg: Any, best: Any, x: Any) -> Any:
        whole = choice(alg, choice(alg, x[0], x[1]), choice(alg, x[2], x[3]))
        return choice(alg, best[0], whole), best[1], best[2], best[3]

    @staticmethod
    def column(ends: EveryCell, alg: Any, result: Any, best: Any, x: Any, remaining: Any, units: Any) -> Any:
        return choice(alg, result, best)


class RowEnds(NamedTuple):
    """An alignment ends in the last row: in the last column, or anywhere if the target's end is free."""

    free_target: Any

    @staticmethod
    def begin(ends: RowEnds, result: Any, zero: Any) -> Any:
        return zero, zero, zero, zero

    @staticmethod
    def seen(ends: RowEnds, alg: Any, best: Any, x: Any) -> Any:
        return best

    @staticmethod
    def column(ends: RowEnds, alg: Any, result: Any, best: Any, x: Any, remaining: Any, units: Any) -> Any:
        if ends.free_target:
            return select(greater(remaining, units[0]), choice(alg, result, x), result)
        return select(equal(remaining, units[1]), x, result)


class ColumnEnds(NamedTuple):
    """As `RowEnds`, and also anywhere in the last column: the end of the query is free."""

    free_target: Any

    @staticmethod
    def begin(ends: ColumnEnds, result: Any, zero: Any) -> Any:
        return zero, zero, zero, zero

    @staticmethod
    def seen(ends: ColumnEnds, alg: Any, best: Any, x: Any) -> Any:
        return (
            choice(alg, best[0], x[0]),
            choice(alg, best[1], x[1]),
            choice(alg, best[2], x[2]),
            choice(alg, best[3], x[3]),
        )

    @staticmethod
    def column(ends: ColumnEnds, alg: Any, result: Any, best: Any, x: Any, remaining: Any, units: Any) -> Any:
        reached = select(equal(remaining, units[1]), choice(alg, result, best), result)
        if ends.free_target:
            return select(greater(remaining, units[0]), choice(alg, reached, x), reached)
        return reached


@by_type
def begin(ends: Any, result: Any, zero: Any) -> Any:
    """The best cells seen of four columns, before any is."""


@by_type
def seen(ends: Any, alg: Any, best: Any, x: Any) -> Any:
    """The best cells seen, after the four cells `x` of one more row."""


@by_type
def column(ends: Any, alg: Any, result: Any, best: Any, x: Any, remaining: Any, units: Any) -> Any:
    """The result after a column: its best cell, its last cell, and how many residues each target has left."""


@shared
def _visit(step: Any, diag: Any, e: Any, f: Any, s: Any) -> Any:
    p, alg = step
    h = cell(p, alg, diag, e, f, s)
    return h, *gaps(p, alg, h, e, f)


@shared
def _score_columns(lanes: Any, table: Any, block: Any, at: int, scores: Any) -> None:
    like = load(lanes, scores, 0, 0)
    for c in range(4):
        residues = load(lanes, block.packed, block.first + at + c, block.lane)
        for letter in range(table.shape[0]):
            found = widen(like, lookup(lanes, table, letter, residues))
            store(lanes, scores, letter, c * width_of(lanes), found)


@shared
def _four_columns(
    p: Any, lanes: Any, alg: Any, ends: Any, query: Any, scratch: Any, at: int, top: Any, seen_before: Any
) -> Any:
    _, best = seen_before
    h, e_column, scores = scratch
    width, step = width_of(lanes), (p, alg)
    d0 = splat(lanes, top[at])
    d1 = splat(lanes, top[at + 1])
    d2 = splat(lanes, top[at + 2])
    d3 = splat(lanes, top[at + 3])
    y3 = splat(lanes, top[at + 4])
    zero = alg.zero
    f0 = gaps(p, alg, d1, zero, zero)[1]
    f1 = gaps(p, alg, d2, zero, zero)[1]
    f2 = gaps(p, alg, d3, zero, zero)[1]
    f3 = gaps(p, alg, y3, zero, zero)[1]
    for row in range(query.size):
        letter = query[row]
        left = load(lanes, h, row, 0)
        e = load(lanes, e_column, row, 0)
        y0, e, f0 = _visit(step, d0, e, f0, load(lanes, scores, letter, 0))
        y1, e, f1 = _visit(step, d1, e, f1, load(lanes, scores, letter, width))
        y2, e, f2 = _visit(step, d2, e, f2, load(lanes, scores, letter, 2 * width))
        y3, e, f3 = _visit(step, d3, e, f3, load(lanes, scores, letter, 3 * width))
        best = seen(ends, alg, best, (y0, y1, y2, y3))
        store(lanes, h, row, 0, y3)
        store(lanes, e_column, row, 0, e)
        d0 = left
        d1 = y0
        d2 = y1
        d3 = y2
    return (d1, d2, d3, y3), best


@shared
def _four_differences(
    p: Any, lanes: Any, alg: Any, ends: Any, query: Any, scratch: Any, at: int, top: Any, seen_before: Any
) -> Any:
    last, best = seen_before
    width, none = width_of(lanes), splat(lanes, np.uint8(0))
    u0, u1 = splat(lanes, top[at + 1]), splat(lanes, top[at + 2])
    u2, u3 = splat(lanes, top[at + 3]), splat(lanes, top[at + 4])
    f0, f1, f2, f3 = none, none, none, none
    for row in range(query.size):
        letter = query[row]
        v, e = load(lanes, scratch.h, row, 0), load(lanes, scratch.e, row, 0)
        _, _, u0, v, e, f0 = differences(p, u0, v, e, f0, load(lanes, scratch.scores, letter, 0))
        _, _, u1, v, e, f1 = differences(p, u1, v, e, f1, load(lanes, scratch.scores, letter, width))
        _, _, u2, v, e, f2 = differences(p, u2, v, e, f2, load(lanes, scratch.scores, letter, 2 * width))
        _, _, u3, v, e, f3 = differences(p, u3, v, e, f3, load(lanes, scratch.scores, letter, 3 * width))
        store(lanes, scratch.h, row, 0, v)
        store(lanes, scratch.e, row, 0, e)
    opened = widen(last, splat(lanes, top[0]))
    x0 = last + (widen(last, u0) - opened)
    x1 = x0 + (widen(last, u1) - opened)
    x2 = x1 + (widen(last, u2) - opened)
    return (x0, x1, x2, x2 + (widen(last, u3) - opened)), best


#: Visit four columns from the top border down: their last row and the best cells seen, which come with the
#: last value of the row so far.
_visit_columns = by_type_of(
    {AffineGap: _four_columns, LinearGap: _four_columns, GapDifferences: _four_differences}
)


@shared
def block_scores(
    lanes: Any,
    gap: Any,
    algebra: Any,
    ends: Any,
    query: Any,
    table: Any,
    block: Any,
    scratch: Any,
) -> Any:
    """Best scores of a query with the targets of one group of lanes.

    `gap` and `algebra` (`SaturatingMaxPlus` or `MaxPlus`) have numbers in the type of the scores; `ends` is
    where alignments may end: `EveryCell`, `RowEnds`, `ColumnEnds`. With a `gap` of octets, `GapDifferences`,
    it is `RowEnds`, and scores are counted from the value left of the last row. `query` has the row of
    `table` of each residue, int64, (m,), m > 0; `table` the scores of its letters with the targets' codes,
    (letters, 32). `scratch` is this thread's.
    """
    p = in_lanes(gap, lanes)
    alg = algebra_in_lanes(algebra, lanes)
    zero = alg.zero
    units = (
        splat(lanes, block.units[0]),
        splat(lanes, block.units[1]),
        splat(lanes, block.units[2]),
    )
    remaining = load(lanes, block.lengths, 0, block.lane)
    result, last = zero, units[1]
    columns = block.last - block.first
    for at in range(0, columns, 4):
        _score_columns(lanes, table, block, at, scratch.scores)
        best = last, begin(ends, result, zero)
        x, best = _visit_columns(p, lanes, alg, ends, query, scratch, at, block.top, best)
        last = x[3]
        for c in range(4):
            remaining = remaining - units[2]
            result = column(ends, alg, result, best[c], x[c], remaining, units)
    return result


#: Types of scores, narrowest first; octets without a sign are of `GapDifferences`, counted up in 32 bits.
LANE_TYPES: tuple[Any, ...] = (np.int8, np.uint8, np.int16, np.int32)
_LOWEST = np.int32(np.iinfo(np.int32).min)


class BlockQuery(NamedTuple):
    """A query and what it is scored with; gap costs are not negative.

    `rows` is the row of `scores` of each residue, int64, (m,), m > 0; `scores` are those of the query's
    letters with the codes of the targets, (letters, codes); codes are below `PAD`.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.integer[Any]]
    gap_open: int
    gap_extend: int
    free: FreeEnds


class BlockBorder(NamedTuple):
    """Values at the border, in the type of the scores.

    `top` is that of `Block`; `left_h` ``h``, or ``v``, left of each row, `left_e` the ``e`` handed to it;
    `units` are -1, 0 and 1.
    """

    top: Any
    left_h: Any
    left_e: Any
    units: Any


class BlockSetup(NamedTuple):
    """Arguments of `block_scores` that all blocks share.

    `zero` stands for a score of 0. A result of `ceiling` may be too small; none is, if it is out of reach.
    """

    lanes: Any
    gap: Any
    algebra: Any
    ends: Any
    query: Any
    table: Any
    border: BlockBorder
    zero: int
    ceiling: int


def _fits(query: BlockQuery, longest: int, kind: Any) -> bool:
    info = np.iinfo(kind)
    low, high = int(query.scores.min(initial=0)), int(query.scores.max(initial=0))
    # Scores of more than 8 bits are seldom: lanes of 32 serve them, and all of those with one kernel.
    if max(-low, high, query.gap_open) > info.max or (kind != np.int32 and max(-low - 1, high) > 127):
        return False
    rows, free = query.rows.size, query.free
    if kind == np.uint8:
        # As for pairs beside each other, see `plait.dp.pairs.lists`.
        held = low >= -2 * query.gap_open and high + 3 * query.gap_open <= info.max
        held &= query.gap_extend <= query.gap_open and not (free.anywhere or free.query_end)
        return held and (high + query.gap_extend) * (rows + longest) < 1 << 30
    if free.local:
        return kind != np.int32 or high * min(rows, longest) < info.max
    least = -(3 * query.gap_open + query.gap_extend * (rows + longest)) + low
    return least > info.min and high * min(rows, longest) < info.max and longest + COLUMNS < info.max


def _ends(free: FreeEnds) -> Any:
    if free.anywhere:
        return EveryCell()
    return ColumnEnds(bool(free.target_end)) if free.query_end else RowEnds(bool(free.target_end))


def _border(query: BlockQuery, columns: int, kind: Any, zero: int) -> BlockBorder:
    free = query.free

    def side(size: int, is_free: bool) -> NDArray[np.int64]:
        cost = query.gap_open + query.gap_extend * np.arange(size, dtype=np.int64)
        return np.zeros(size, np.int64) if is_free or free.local else -cost

    info = np.iinfo(kind)
    top = np.concatenate([np.zeros(1, np.int64), side(columns, bool(free.target_start))])
    left = side(query.rows.size, bool(free.query_start))
    opened = left - query.gap_open

    def narrow(values: NDArray[np.int64]) -> Any:
        return np.clip(values + zero, info.min, info.max).astype(kind)

    return BlockBorder(narrow(top), narrow(left), narrow(opened), np.array([-1, 0, 1], kind))


def _differences_setup(query: BlockQuery, columns: int) -> BlockSetup:
    number, free, opened = np.uint8, query.free, query.gap_open
    over, table = opened - query.gap_extend, np.zeros((len(query.scores), PAD + 1), np.uint8)
    table[:, : query.scores.shape[1]] = query.scores + 2 * opened

    def side(size: int, is_free: bool) -> NDArray[np.uint8]:
        return np.append(opened if is_free else 0, np.full(size, opened if is_free else over)).astype(number)

    # One more than there are of each: none may be empty.
    top = np.append(number(opened), side(columns, bool(free.target_start)))
    left = side(query.rows.size, bool(free.query_start))
    border = BlockBorder(top, left, np.zeros_like(left), np.array([-1, 0, 1], np.int32))
    gap, algebra = GapDifferences(number(over)), SaturatingMaxPlus(_LOWEST, np.int32(0))
    before = 0 if free.query_start else opened + (query.rows.size - 1) * query.gap_extend
    return BlockSetup(host_lanes(8), gap, algebra, _ends(free), query.rows, table, border, before, 1 << 31)


def block_setup(query: BlockQuery, longest: int, kind: Any) -> BlockSetup | None:
    """How to sweep a query against blocks in lanes of a type; None if the type cannot hold what is needed.

    `longest` is the longest target's residues, `kind` one of `LANE_TYPES`.
    """
    if not _fits(query, longest, kind):
        return None
    columns = -(-longest // COLUMNS) * COLUMNS
    if kind == np.uint8:
        return _differences_setup(query, columns)
    number, info = np.dtype(kind).type, np.iinfo(kind)
    low = int(info.min)
    gap: Any = AffineGap(number(-query.gap_open), number(-query.gap_extend))
    if query.gap_open == query.gap_extend and kind != np.int32:
        gap = LinearGap(number(-query.gap_open))
    cells = np.int32 if kind == np.int32 else np.int8
    table = np.full((query.scores.shape[0], PAD + 1), np.iinfo(cells).min, cells)
    table[:, : query.scores.shape[1]] = query.scores
    local = bool(query.free.local)
    zero = low if local else 0
    return BlockSetup(
        host_lanes(8 * np.dtype(kind).itemsize),
        gap,
        SaturatingMaxPlus(number(low), number(0)),
        _ends(query.free),
        query.rows,
        table,
        _border(query, columns, kind, zero),
        zero,
        int(info.max) if local else int(info.max) + 1,
    )


def block_memory(setup: BlockSetup) -> BlockScratch:
    """Memory of one thread."""
    width, kind, rows = setup.lanes.width, setup.border.top.dtype, setup.query.size
    h, e = (lane_rows(rows, width, kind) for _ in range(2))
    return BlockScratch(h, e, lane_rows(setup.table.shape[0], COLUMNS * width, kind))


@shared
def _sweep_group(
    setup: Any, packed: Any, first: int, last: int, lane: int, lengths: Any, scratch: Any
) -> Any:
    lanes, gap, algebra, ends, query, table, border, _, _ = setup
    for row in range(query.size):
        store(lanes, scratch.h, row, 0, splat(lanes, border.left_h[row]))
        store(lanes, scratch.e, row, 0, splat(lanes, border.left_e[row]))
    block = Block(packed, first, last, lane, lengths, border.top, border.units)
    return block_scores(lanes, gap, algebra, ends, query, table, block, scratch)


@shared
def score_some_blocks(
    setup: Any, packed: Any, columns: Any, lengths: Any, blocks: Any, scratch: Any, out: Any
) -> None:
    """Scores of some blocks into `out`, in their type, (number of `blocks`, lanes of a block).

    `packed` has the uint8 codes of all blocks, (columns, lanes of a block), `columns` int64 offsets of the
    blocks and the end of the last; `lengths` are in the type of the scores, (blocks, lanes of a block);
    `blocks` says which, int64. `scratch` is this thread's.
    """
    lanes = setup.lanes
    for k in range(blocks.size):
        b = blocks[k]
        for lane in range(0, packed.shape[1], lanes.width):
            own = lengths[b : b + 1]
            found = _sweep_group(setup, packed, columns[b], columns[b + 1], lane, own, scratch)
            store(lanes, out, k, lane, found)


score_blocks_kernel = kernel(score_some_blocks)
