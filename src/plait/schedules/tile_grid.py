"""How a matrix is cut into tiles, and what is kept of them.

A grid is a region with the rows and columns at which its tiles begin. Tiles are visited one by one, or many
at a time where a target can sweep many together (`ManyTiles`): then a visit is a rectangle of tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.schedules.antidiagonal import Edges
from plait.schedules.choice_walk import Costs
from plait.schedules.pair_setup import PairSetup
from plait.schedules.pair_sweep import FreeEnds

__all__ = [
    "Checkpoints",
    "Grid",
    "LongPair",
    "ManyTiles",
    "Tile",
    "TileSteps",
    "Visit",
    "cuts",
    "edges_of",
    "tile_grid",
]

_LEAST_TILE = 1024
_LARGEST_TILE = 16384
#: Tiles along each side of a matrix, for each thread.
_TILES_PER_THREAD = 6


class Tile(NamedTuple):
    """Rows and columns of a tile in the whole matrix.

    Attributes
    ----------
    row, row_end, column, column_end
        Limits.
    """

    row: int
    row_end: int
    column: int
    column_end: int

    @property
    def cells(self) -> int:
        """Number of its cells."""
        return (self.row_end - self.row) * (self.column_end - self.column)

    def within(self, region: Tile) -> tuple[slice, slice]:
        """Its rows and columns, counted from the first ones of a region."""
        rows = slice(self.row - region.row, self.row_end - region.row)
        return rows, slice(self.column - region.column, self.column_end - region.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongPair:
    """A pair, and how it is swept.

    Attributes
    ----------
    setup
        Lanes, recurrence, algebra and rules without choices.
    costs
        Sequences and costs.
    free
        Free ends.
    choice_limit
        Bytes of choices that a tile may take.
    checkpoint_limit
        Bytes that the edges of the tiles may take.
    progress
        Called with the number of cells done, often.
    """

    setup: PairSetup
    costs: Costs
    free: FreeEnds
    choice_limit: int
    checkpoint_limit: int
    progress: Callable[[int], None]


class Checkpoints(NamedTuple):
    """Upper and left edges of all tiles of a region, int32.

    Attributes
    ----------
    rows
        ``h`` above and the ``f`` handed down, shape (tiles down, columns, 2).
    columns
        ``h`` left and the ``e`` handed on, shape (tiles across, rows, 2).
    """

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]


class Grid(NamedTuple):
    """A region cut into tiles.

    Attributes
    ----------
    region
        The region.
    rows, columns
        Where tiles begin, and the end of the last one.
    visit_rows, visit_columns
        Numbers of the tiles at which visits begin, and one behind the last tile.
    """

    region: Tile
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    visit_rows: NDArray[np.int64]
    visit_columns: NDArray[np.int64]

    def tile(self, i: int, j: int) -> Tile:
        """A tile."""
        return Tile(int(self.rows[i]), int(self.rows[i + 1]), int(self.columns[j]), int(self.columns[j + 1]))

    def visit(self, i: int, j: int) -> Tile:
        """All tiles of a visit together."""
        rows, columns = self.rows[self.visit_rows[i : i + 2]], self.columns[self.visit_columns[j : j + 2]]
        return Tile(int(rows[0]), int(rows[1]), int(columns[0]), int(columns[1]))

    def place(self, row: int, column: int) -> tuple[int, int]:
        """The tile with a cell."""
        i = int(np.searchsorted(self.rows, row, "right")) - 1
        return i, int(np.searchsorted(self.columns, column, "right")) - 1


class Visit(NamedTuple):
    """Tiles that are swept together.

    Attributes
    ----------
    rows, columns
        Where tiles begin, and the end of the last one, in the whole matrix.
    edges
        Upper and left edge, to be changed to the lower and right one.
    corner
        ``h`` above and left.
    kept
        Where the edges of the tiles go, those of the first ones too, or None.
    watched
        Whether the best values of the tiles are wanted.
    copies
        Where a target puts what still copies to `kept` when the tiles are swept; their sweep waits for it.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    edges: Edges
    corner: int
    kept: Checkpoints | None
    watched: bool
    copies: list[Future[None]]


class ManyTiles(Protocol):
    """A target that sweeps many tiles together. It finds the best value of each, but not its place."""

    @property
    def visits(self) -> int:
        """Visits at a time."""
        ...

    def serves(self, pair: LongPair, region: Tile) -> bool:
        """Whether it can, and is worth its start for a region."""
        ...

    def grid(self, region: Tile, checkpoint_limit: int) -> Grid:
        """Cut a region into tiles, as `tile_grid` does."""
        ...

    def sweep(self, pair: LongPair, visit: Visit) -> NDArray[np.int64]:
        """Sweep tiles; returns their best values, shape (tiles down, tiles across)."""
        ...


class TileSteps(NamedTuple):
    """The steps of a target, see `plait.targets.pair_kernels`.

    Attributes
    ----------
    border, sweep, end, walk, close
        Functions.
    threads
        Tiles that run at a time.
    many
        For a target that sweeps many tiles together. Those that the alignment passes through are swept again
        by `sweep`.
    """

    border: Callable[..., Any]
    sweep: Callable[..., Any]
    end: Callable[..., Any]
    walk: Callable[..., Any]
    close: Callable[..., Any]
    threads: int
    many: ManyTiles | None = None


def cuts(first: int, last: int, size: int) -> NDArray[np.int64]:
    """Where pieces of a size begin, and the end of the last one."""
    return np.append(np.arange(first, last, size, dtype=np.int64), last)


def edges_of(edges: Edges, tile: Tile, region: Tile) -> Edges:
    """The part of a region's edges that belongs to a tile; not a copy."""
    rows, columns = tile.within(region)
    return Edges(edges.row_h[columns], edges.row_f[columns], edges.column_h[rows], edges.column_e[rows])


def tile_grid(region: Tile, threads: int, stripe: int, checkpoint_limit: int) -> Grid:
    """Cut a region into tiles.

    Parameters
    ----------
    region
        What to cut.
    threads
        Tiles that are to run side by side.
    stripe
        Rows of a stripe; the height of a tile is a multiple.
    checkpoint_limit
        Bytes that the edges of all tiles may take; 0 if they are not kept.
    """
    rows, columns = region.row_end - region.row, region.column_end - region.column
    size = _LARGEST_TILE
    if threads > 1:
        size = min(max(max(rows, columns) // (_TILES_PER_THREAD * threads), _LEAST_TILE), _LARGEST_TILE)
    if checkpoint_limit:
        # The edges of a tile are 8 bytes for each of its rows and columns.
        size = max(size, 16 * rows * columns // checkpoint_limit)
    size = -(-size // stripe) * stripe
    if checkpoint_limit:
        # A region that is cut to be walked through must come out in smaller pieces.
        size = min(size, max(stripe, -(-max(rows, columns) // 2 // stripe) * stripe))
    starts = cuts(region.row, region.row_end, size), cuts(region.column, region.column_end, size)
    return Grid(region, *starts, np.arange(starts[0].size), np.arange(starts[1].size))
