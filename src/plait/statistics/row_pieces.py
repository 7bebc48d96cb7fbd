"""Sums over all rows that are equal bit for bit, however the work is split.

Rows are cut into pieces of a fixed number. What the pieces give is added in a binary tree over their numbers;
a batch of neighbouring pieces, as many as a power of two, adds up its part of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from plait.executors.protocol import Executor

__all__ = ["MOST_PIECE_ROWS", "PieceWork", "TreeSum", "Values", "batch_rows", "piece_rows", "sum_pieces"]

#: What a piece gives: arrays, that are added one by one.
Values: TypeAlias = tuple[NDArray[Any], ...]
PieceWork: TypeAlias = Callable[[int, int], Values]

MOST_PIECE_ROWS: Final = 16384
_FEWEST_PIECE_ROWS: Final = 512
_PIECE_VALUES: Final = 1 << 21
#: Batches are made larger where there would be more than this many.
_MANY_BATCHES: Final = 512


def piece_rows(predictors: int) -> int:
    """Rows of a piece: a power of two, fewer the more predictors there are."""
    rows = MOST_PIECE_ROWS
    while rows > _FEWEST_PIECE_ROWS and rows * predictors > _PIECE_VALUES:
        rows //= 2
    return rows


def batch_rows(total: int, rows: int) -> int:
    """Rows of a batch: a piece, or as many pieces as a power of two where there are very many.

    Parameters
    ----------
    total
        All rows.
    rows
        Rows of a piece.
    """
    step = rows
    while -(-total // step) > _MANY_BATCHES:
        step *= 2
    return step


class TreeSum:
    """Adds values in a binary tree over their numbers, as they come."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Values]] = []

    def add(self, level: int, values: Values) -> None:
        """Add the sum of the next ``2 ** level`` pieces, or of the last few.

        Parameters
        ----------
        level
            Height of the sum in the tree.
        values
            The sum.
        """
        while self._waiting and self._waiting[-1][0] == level:
            values = _added(self._waiting.pop()[1], values)
            level += 1
        self._waiting.append((level, values))

    def parts(self) -> list[tuple[int, Values]]:
        """Complete trees, the largest first, each with its level."""
        return self._waiting

    def total(self) -> Values:
        """The sum of everything; empty if there was nothing."""
        if not self._waiting:
            return ()
        values = self._waiting[-1][1]
        for _, larger in reversed(self._waiting[:-1]):
            values = _added(larger, values)
        return values


def _added(a: Values, b: Values) -> Values:
    return tuple(x + y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True, slots=True)
class _Batch:
    """Adds up neighbouring pieces; picklable if its work is."""

    work: PieceWork
    rows: int

    def __call__(self, span: tuple[int, int]) -> list[tuple[int, Values]]:
        tree = TreeSum()
        for start in range(span[0], span[1], self.rows):
            tree.add(0, self.work(start, min(start + self.rows, span[1])))
        return tree.parts()


def sum_pieces(
    executor: Executor, work: PieceWork, total: int, rows: int, told: Callable[[int], None]
) -> Values:
    """Do the work on all pieces and add up what they give.

    Parameters
    ----------
    executor
        Where pieces are worked on.
    work
        Called with the first row of a piece and the row behind its last.
    total
        All rows.
    rows
        Rows of a piece.
    told
        Called with the number of rows that are done.

    Returns
    -------
    tuple
        The sum; empty if there are no rows.
    """
    tree = TreeSum()
    step = batch_rows(total, rows)
    spans: Iterable[tuple[int, int]] = ((at, min(at + step, total)) for at in range(0, total, step))
    done = 0
    with closing(executor.map(_Batch(work, rows), spans, named=_named)) as results:
        for parts in results:
            for level, values in parts:
                tree.add(level, values)
            done = min(done + step, total)
            told(done)
    return tree.total()


def _named(span: tuple[int, int]) -> str:
    return f"rows {span[0]} to {span[1] - 1} of the design"
