"""How a query is swept against blocks of targets: type of the scores, lanes, border, memory for a thread.

Local alignment counts scores from the least number of the lanes, so that saturation is its floor and eight
bits hold scores up to 254; a result at the largest number may be larger, and is found again in wider lanes.
The other modes need lanes that hold the score of every cell, which is known beforehand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.algebras import SaturatingMaxPlus
from plait.lanes import host_lanes
from plait.recurrences.gaps import AffineGap, LinearGap
from plait.schedules.inter_sequence import COLUMNS, PAD, BlockScratch, ColumnEnds, EveryCell, RowEnds
from plait.schedules.pair_sweep import FreeEnds

__all__ = ["LANE_TYPES", "BlockBorder", "BlockQuery", "BlockSetup", "block_memory", "block_setup"]

#: Types of scores, narrowest first.
LANE_TYPES: tuple[Any, ...] = (np.int8, np.int16, np.int32)


class BlockQuery(NamedTuple):
    """A query and what it is scored with.

    Attributes
    ----------
    rows
        Row of `scores` of each residue, int64, shape (m,), m > 0.
    scores
        Scores of the query's letters with the codes of the targets, shape (letters, codes); codes are below
        `PAD`.
    gap_open, gap_extend
        Costs, not negative.
    free
        Free ends.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.integer[Any]]
    gap_open: int
    gap_extend: int
    free: FreeEnds


class BlockBorder(NamedTuple):
    """Values at the border, in the type of the scores.

    Attributes
    ----------
    top
        ``h`` above the first row, before the first column and at each one.
    left_h, left_e
        ``h`` left of each row, and the ``e`` handed to it.
    units
        -1, 0 and 1.
    """

    top: Any
    left_h: Any
    left_e: Any
    units: Any


class BlockSetup(NamedTuple):
    """Arguments of `plait.schedules.inter_sequence.block_scores` that all blocks share.

    Attributes
    ----------
    lanes, gap, algebra, ends, query, table
        Arguments of that name.
    border
        Values at the border.
    zero
        What stands for a score of 0.
    ceiling
        A result that may be too small; none is, if it is out of reach.
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
    if max(-low, high, query.gap_open) > info.max:
        return False
    if query.free.local:
        return kind != np.int32 or high * min(query.rows.size, longest) < info.max
    rows = query.rows.size
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


def block_setup(
    query: BlockQuery, longest: int, kind: Any, *, lanes: Any = None, linear: bool | None = None
) -> BlockSetup | None:
    """How to sweep a query against blocks in lanes of a type; None if the type cannot hold what is needed.

    Parameters
    ----------
    query
        The query.
    longest
        Residues of the longest target.
    kind
        One of `LANE_TYPES`.
    lanes
        Width; by default what suits this processor.
    linear
        Whether to use the recurrence for linear gaps; by default if the costs allow it.
    """
    if not _fits(query, longest, kind):
        return None
    number = np.dtype(kind).type
    info = np.iinfo(kind)
    low = int(info.min)
    if linear is None:
        linear = query.gap_open == query.gap_extend
    gap: Any = AffineGap(number(-query.gap_open), number(-query.gap_extend))
    if linear:
        gap = LinearGap(number(-query.gap_open))
    octets = query.scores.size == 0 or (query.scores.min() >= -128 and query.scores.max() <= 127)
    cells = np.int8 if octets else np.dtype(kind)
    table = np.full((query.scores.shape[0], PAD + 1), np.iinfo(cells).min, cells)
    table[:, : query.scores.shape[1]] = query.scores
    local = bool(query.free.local)
    zero = low if local else 0
    columns = -(-longest // COLUMNS) * COLUMNS
    return BlockSetup(
        host_lanes(8 * np.dtype(kind).itemsize) if lanes is None else lanes,
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
    """Memory of one thread.

    Parameters
    ----------
    setup
        How blocks are swept.
    """
    width = setup.lanes.width
    kind = setup.border.top.dtype
    rows = setup.query.size
    return BlockScratch(
        np.zeros((rows, width), kind),
        np.zeros((rows, width), kind),
        np.zeros((setup.table.shape[0] * COLUMNS, width), kind),
    )
