"""How a search with packed lanes is shared out over the threads of a GPU: plain numbers, no device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.targets.cuda_packed_kernels import BLOCK, BLOCKS
from plait.targets.cuda_packed_sweep import LETTERS, ROWS

__all__ = ["Shape", "longest_span", "pieces_of", "shape_of", "shared_bytes", "warps_of"]

#: Threads per pair of targets, and rows per thread, for which kernels are made.
_THREADS = (8, 16, 32)
_ROWS = tuple(range(4, ROWS + 1, 4))
#: Instructions of a column beside those of its rows, and of the values above and below a stripe.
_PER_ROW, _PER_COLUMN, _PER_EDGE = 7, 22, 20


class Shape(NamedTuple):
    """How the query is spread over threads.

    Attributes
    ----------
    threads
        That work on a pair of targets.
    rows
        Of the query, for every thread.
    stripes
        Into which the query is cut.
    """

    threads: int
    rows: int
    stripes: int

    @property
    def pairs(self) -> int:
        """Pairs of targets that a warp works on."""
        return 32 // self.threads


def _cost(shape: Shape, columns: float) -> float:
    """Instructions that a warp issues for a pair of targets."""
    per_column = _PER_ROW * shape.rows + _PER_COLUMN + (_PER_EDGE if shape.stripes > 1 else 0)
    return shape.stripes * per_column * (columns + shape.threads) / shape.pairs


def shape_of(
    query: int, targets: int, residues: int, warps: int, longest: int = 0, span: int | None = None
) -> Shape:
    """The shape that takes the fewest instructions.

    Parameters
    ----------
    query
        Its length.
    targets, residues
        How many there are.
    warps
        That the device runs at a time: a few targets are spread over more threads, so that all have work.
    longest
        Length of the longest target: one that takes a warp longer than all others take is spread over more.
    span
        Columns over which a best alignment reaches at most: with a query of one stripe, targets are cut.
    """
    columns = residues / max(targets, 1)
    cut = longest if span is None else min(longest, 3 * span)

    def time(shape: Shape) -> float:
        units = -(-targets // (2 * shape.pairs))
        alone = _cost(shape, max(columns, cut if shape.stripes == 1 else longest))
        return shape.pairs * max(_cost(shape, columns) * units / warps, alone)

    shapes = [Shape(threads, rows, 1) for threads in _THREADS for rows in _ROWS if threads * rows >= query]
    shapes += [
        Shape(threads, rows, -(-query // (threads * rows)))
        for threads in _THREADS
        for rows in _ROWS
        if threads * rows < query
    ]
    return min(shapes, key=lambda shape: (time(shape), shape.threads))


def shared_bytes(shape: Shape) -> int:
    """Shared memory of a block: the profile of a stripe."""
    return LETTERS * -(-shape.rows // 8) * 16 * shape.threads


def warps_of(multiprocessors: int) -> int:
    """Warps that a device runs at a time."""
    return multiprocessors * BLOCKS * BLOCK // 32


def longest_span(query: int, gain: int, gap_open: int, gap_extend: int) -> int | None:
    """Most residues of a target that a best local alignment can have; None without a limit.

    Its score is positive, so gaps cost less than `gain`, the sum of the best scores of all rows. A gap of k
    residues costs at least k times the lesser of the two costs.
    """
    least = min(gap_open, gap_extend)
    return query + max(gain - 1, 0) // least if least > 0 else None


def pieces_of(lengths: Any, span: int | None, warps: int, least: int = 1024) -> tuple[Any, int]:
    """Cut long units into pieces that overlap, so that no warp works on when the others are done.

    Parameters
    ----------
    lengths : array
        Columns of the units, longest first.
    span
        Columns over which a best alignment reaches at most.
    warps
        That work at a time.
    least
        Shorter pieces are not made.

    Returns
    -------
    pieces : array of int32, shape (n, 3)
        Unit, first column and columns of each piece, longest first.
    whole : int
        Units from here on are not cut.
    """
    none = np.zeros((0, 3), np.int32)
    if span is None or lengths.size == 0:
        return none, 0
    share = int(lengths.sum()) // warps
    # Half of a piece at most is overlap, which is work done twice.
    piece = max(share // 4, 2 * span, least)
    whole = int(np.searchsorted(-lengths, -(piece + piece // 2), side="left"))
    rows = []
    for unit, length in enumerate(lengths[:whole].tolist()):
        count = -(-(length - span) // (piece - span))
        step = -(-(length - span) // count)
        rows += [(unit, k * step, min(step + span, length - k * step)) for k in range(count)]
    if not rows:
        return none, 0
    pieces = np.array(rows, np.int32)
    return pieces[np.argsort(-pieces[:, 2], kind="stable")], whole
