"""Inter-sequence schedule: one query against a block of targets, one target in each lane.

All lanes visit the same cells in step, four columns of targets at a time, so that a cell's neighbours stay
in registers (Rognes 2011, BMC Bioinformatics 12:221; GPU Computing Gems, chapter 11, version III turned into
lanes). Blocks hold targets of about the same length, residue by residue: ``packed[column, lane]``.

What the score of a cell is made of lies in the algebra and in the values at the border. For local
alignment all border values are the algebra's ``zero``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import by_type, shared
from plait.algebras import algebra_in_lanes, choice
from plait.lanes import equal, greater, load, lookup, mask_bits, select, splat, store, widen
from plait.recurrences.gaps import cell, choices, gaps, in_lanes

__all__ = [
    "COLUMNS",
    "PAD",
    "Block",
    "BlockScratch",
    "ColumnEnds",
    "EveryCell",
    "Forget",
    "Keep",
    "RowEnds",
    "begin",
    "block_scores",
    "column",
    "keep_choices",
    "seen",
]

#: Columns of targets visited together.
COLUMNS = 4
#: Code of the residues that fill a block up.
PAD = 31


class Block(NamedTuple):
    """Targets side by side, and the border they share.

    Attributes
    ----------
    packed
        uint8 codes, shape (columns, lanes of the block); `PAD` after the end of a target.
    first, last
        Columns of this block; their number is a multiple of `COLUMNS`.
    lane
        First lane of the group that is worked on.
    lengths
        Length of the target in each lane of the block, in the type of the scores, shape (1, lanes).
    top
        Border above the first row: ``h`` before the first column, then of each column, in the type of the
        scores; padded with any values to the columns of the block.
    units
        The numbers -1, 0 and 1 in the type of the scores.
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

    Attributes
    ----------
    h, e
        A column of ``h`` and of the ``e`` handed to the right, shape (query length, lanes). They hold the
        left border when a block begins.
    scores
        Scores of each letter of the query with `COLUMNS` columns, shape (letters * COLUMNS, lanes).
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


class Forget(NamedTuple):
    """Scores only."""

    @staticmethod
    def keep_choices(keep: Forget, step: Any, bits: Any, at: Any, row: Any, state: Any) -> Any:
        return 0


class Keep(NamedTuple):
    """What was best in each cell, one bit a lane: ``bits[column, row, choice]``."""

    @staticmethod
    def keep_choices(keep: Keep, step: Any, bits: Any, at: Any, row: Any, state: Any) -> Any:
        p, alg = step
        diag, e, s, h, e_next, f_next = state
        by_diag, by_e, e_opened, f_opened = choices(p, alg, diag, e, s, h, e_next, f_next)
        bits[at, row, 0] = mask_bits(by_diag)
        bits[at, row, 1] = mask_bits(by_e)
        bits[at, row, 2] = mask_bits(e_opened)
        bits[at, row, 3] = mask_bits(f_opened)
        return 0


@by_type
def keep_choices(keep: Any, step: Any, bits: Any, at: Any, row: Any, state: Any) -> Any:
    """Note the choices of a cell, if they are wanted."""


@shared
def _visit(step: Any, keep: Any, bits: Any, at: int, row: int, diag: Any, e: Any, f: Any, s: Any) -> Any:
    p, alg = step
    h = cell(p, alg, diag, e, f, s)
    e_next, f_next = gaps(p, alg, h, e, f)
    keep_choices(keep, step, bits, at, row, (diag, e, s, h, e_next, f_next))
    return h, e_next, f_next


@shared
def _score_columns(lanes: Any, zero: Any, table: Any, block: Any, at: int, scores: Any) -> None:
    for c in range(4):
        residues = load(lanes, block.packed, block.first + at + c, block.lane)
        for letter in range(table.shape[0]):
            store(lanes, scores, letter * 4 + c, 0, widen(zero, lookup(lanes, table, letter, residues)))


@shared
def _four_columns(
    lanes: Any,
    step: Any,
    ends: Any,
    keep: Any,
    query: Any,
    scratch: Any,
    bits: Any,
    at: int,
    top: Any,
    best: Any,
) -> Any:
    """Visit four columns from the top border down; returns their last row and the best cells seen."""
    p, alg = step
    h, e_column, scores = scratch
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
        letter = query[row] * 4
        left = load(lanes, h, row, 0)
        e = load(lanes, e_column, row, 0)
        y0, e, f0 = _visit(step, keep, bits, at, row, d0, e, f0, load(lanes, scores, letter, 0))
        y1, e, f1 = _visit(step, keep, bits, at + 1, row, d1, e, f1, load(lanes, scores, letter + 1, 0))
        y2, e, f2 = _visit(step, keep, bits, at + 2, row, d2, e, f2, load(lanes, scores, letter + 2, 0))
        y3, e, f3 = _visit(step, keep, bits, at + 3, row, d3, e, f3, load(lanes, scores, letter + 3, 0))
        best = seen(ends, alg, best, (y0, y1, y2, y3))
        store(lanes, h, row, 0, y3)
        store(lanes, e_column, row, 0, e)
        d0 = left
        d1 = y0
        d2 = y1
        d3 = y2
    return (d1, d2, d3, y3), best


@shared
def block_scores(
    lanes: Any,
    gap: Any,
    algebra: Any,
    ends: Any,
    keep: Any,
    query: Any,
    table: Any,
    block: Any,
    scratch: Any,
    bits: Any,
) -> Any:
    """Best scores of a query with the targets of one group of lanes.

    Parameters
    ----------
    lanes
        Width of the group.
    gap
        Recurrence, with parameters in the type of the scores.
    algebra
        `SaturatingMaxPlus` or `MaxPlus`, with numbers in the type of the scores.
    ends
        Where alignments may end: `EveryCell`, `RowEnds`, `ColumnEnds`.
    keep
        `Forget`, or `Keep` to fill `bits`.
    query
        Rows of `table`, one for each residue, int64, shape (m,), m > 0.
    table
        Scores of the query's letters with the codes of the targets, shape (letters, 32).
    block
        The targets.
    scratch
        Memory of this thread.
    bits
        Choices, shape (columns of the block, m, 4), one bit a lane, for `Keep`.
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
    result = zero
    columns = block.last - block.first
    for at in range(0, columns, 4):
        _score_columns(lanes, zero, table, block, at, scratch.scores)
        best = begin(ends, result, zero)
        x, best = _four_columns(lanes, (p, alg), ends, keep, query, scratch, bits, at, block.top, best)
        for c in range(4):
            remaining = remaining - units[2]
            result = column(ends, alg, result, best[c], x[c], remaining, units)
    return result
