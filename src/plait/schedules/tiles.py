"""One long pair, tile by tile, in memory that grows with the sum of the lengths.

The matrix is cut into tiles that hand their edges on. A tile can run when the tiles above and left of it are
done, so tiles of one anti-diagonal run side by side. For the alignment itself the edges of all tiles are kept
(`Checkpoints`); then only the tiles that the alignment passes through are swept again, with their choices,
and a tile whose choices would not fit is cut in the same way. The path is that of the whole matrix, to the
last tie.

The steps that cost time are given by the target, as `TileSteps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.antidiagonal import Edges
from plait.schedules.choice_walk import DONE, Costs, StripeBits
from plait.schedules.pair_scores import ROWS, part
from plait.schedules.pair_setup import PairSetup, choice_bytes, make_memory
from plait.schedules.pair_sweep import FreeEnds
from plait.schedules.sweep_rules import KeepChoices, ScoresOnly

__all__ = ["LongPair", "Tile", "TileSteps", "align_long", "score_long", "tile_grid"]

_NOWHERE = 1 << 60
_LEAST_TILE = 1024
_LARGEST_TILE = 16384
#: Tiles along each side of a matrix, for each thread.
_TILES_PER_THREAD = 6


class TileSteps(NamedTuple):
    """The steps of a target, see `plait.targets.pair_kernels`.

    Attributes
    ----------
    border, sweep, end, walk, close
        Functions.
    threads
        Tiles that run at a time.
    """

    border: Callable[..., Any]
    sweep: Callable[..., Any]
    end: Callable[..., Any]
    walk: Callable[..., Any]
    close: Callable[..., Any]
    threads: int


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


class _Checkpoints(NamedTuple):
    """Upper and left edges of all tiles of a region, and their corners."""

    row_h: NDArray[np.int32]
    row_f: NDArray[np.int32]
    column_h: NDArray[np.int32]
    column_e: NDArray[np.int32]


class _Grid(NamedTuple):
    region: Tile
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]

    def tile(self, i: int, j: int) -> Tile:
        return Tile(int(self.rows[i]), int(self.rows[i + 1]), int(self.columns[j]), int(self.columns[j + 1]))

    def place(self, row: int, column: int) -> tuple[int, int]:
        i = int(np.searchsorted(self.rows, row, "right")) - 1
        return i, int(np.searchsorted(self.columns, column, "right")) - 1


def _cuts(first: int, last: int, size: int) -> NDArray[np.int64]:
    return np.append(np.arange(first, last, size, dtype=np.int64), last)


def tile_grid(region: Tile, threads: int, stripe: int, checkpoint_limit: int) -> _Grid:
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
    return _Grid(
        region,
        _cuts(region.row, region.row_end, size),
        _cuts(region.column, region.column_end, size),
    )


class _Sweep:
    """One pass over a grid of tiles."""

    def __init__(
        self, pair: LongPair, steps: TileSteps, grid: _Grid, edges: Edges, corner: int, keep: bool
    ) -> None:
        self.pair, self.steps, self.grid, self.edges = pair, steps, grid, edges
        region, rows, columns = grid
        self.shape = (rows.size - 1, columns.size - 1)
        self.best = np.array([0, _NOWHERE, _NOWHERE], np.int64)
        self.corners = np.zeros((rows.size, columns.size), np.int64)
        self.corners[0, 0] = corner
        self.corners[0, 1:] = edges.row_h[columns[1:] - 1 - region.column]
        self.corners[1:, 0] = edges.column_h[rows[1:] - 1 - region.row]
        self.checkpoints: _Checkpoints | None = None
        if keep:
            self.checkpoints = _Checkpoints(
                *(np.empty((self.shape[0], edges.row_h.size), np.int32) for _ in range(2)),
                *(np.empty((self.shape[1], edges.column_h.size), np.int32) for _ in range(2)),
            )

    def run(self) -> None:
        """Visit all tiles, several at a time."""
        waiting = np.full(self.shape, 2)
        waiting[0, :] -= 1
        waiting[:, 0] -= 1
        running: dict[Future[tuple[int, int, NDArray[np.int64]]], None] = {}
        pool = ThreadPoolExecutor(self.steps.threads, thread_name_prefix="plait")
        try:
            running[pool.submit(self._visit, 0, 0)] = None
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    i, j, best = future.result()
                    self._take(i, j, best)
                    for k, m in self._after(i, j, waiting):
                        running[pool.submit(self._visit, k, m)] = None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _after(self, i: int, j: int, waiting: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        for k, m in ((i, j + 1), (i + 1, j)):
            if k < self.shape[0] and m < self.shape[1]:
                waiting[k, m] -= 1
                if waiting[k, m] == 0:
                    yield k, m

    def _take(self, i: int, j: int, best: NDArray[np.int64]) -> None:
        tile = self.grid.tile(i, j)
        if (best[0], -best[1], -best[2]) > (self.best[0], -self.best[1], -self.best[2]):
            self.best = best
        self.pair.progress((tile.row_end - tile.row) * (tile.column_end - tile.column))

    def _own_edges(self, tile: Tile) -> Edges:
        region = self.grid.region
        rows = slice(tile.row - region.row, tile.row_end - region.row)
        columns = slice(tile.column - region.column, tile.column_end - region.column)
        edges = self.edges
        return Edges(edges.row_h[columns], edges.row_f[columns], edges.column_h[rows], edges.column_e[rows])

    def _visit(self, i: int, j: int) -> tuple[int, int, NDArray[np.int64]]:
        tile = self.grid.tile(i, j)
        edges = self._own_edges(tile)
        if self.checkpoints is not None:
            region = self.grid.region
            columns = slice(tile.column - region.column, tile.column_end - region.column)
            rows = slice(tile.row - region.row, tile.row_end - region.row)
            self.checkpoints.row_h[i, columns] = edges.row_h
            self.checkpoints.row_f[i, columns] = edges.row_f
            self.checkpoints.column_h[j, rows] = edges.column_h
            self.checkpoints.column_e[j, rows] = edges.column_e
        best, _ = _sweep_tile(self.pair, self.steps, tile, edges, int(self.corners[i, j]), False)
        if i + 1 < self.shape[0] and j + 1 < self.shape[1]:
            self.corners[i + 1, j + 1] = edges.row_h[-1]
        return i, j, best

    def tile_edges(self, i: int, j: int, tile: Tile) -> Edges:
        """Copies of the upper and left edge of a tile, cut to `tile`."""
        kept = self.checkpoints
        assert kept is not None
        region = self.grid.region
        columns = slice(tile.column - region.column, tile.column_end - region.column)
        rows = slice(tile.row - region.row, tile.row_end - region.row)
        return Edges(
            kept.row_h[i, columns].copy(),
            kept.row_f[i, columns].copy(),
            kept.column_h[j, rows].copy(),
            kept.column_e[j, rows].copy(),
        )


def _sweep_tile(
    pair: LongPair, steps: TileSteps, tile: Tile, edges: Edges, corner: int, keep: bool
) -> tuple[NDArray[np.int64], Any]:
    """Sweep a tile; returns its best cell and, if asked for, its choices."""
    setup = pair.setup
    source, ends, _ = setup.rules
    own = part(source, setup.lanes, tile.row, tile.row_end, tile.column, tile.column_end)
    rules = (own, ends, KeepChoices() if keep else ScoresOnly())
    rows, columns = tile.row_end - tile.row, tile.column_end - tile.column
    memory = make_memory(setup._replace(rules=rules), rows, columns, edges=False)
    region = setup.limits._replace(row_end=rows, column_end=columns, corner=corner)
    best = np.array([0, _NOWHERE, _NOWHERE], np.int64)
    steps.sweep(
        setup.lanes, setup.gap, setup.algebra, rules, region, edges, memory.scratch, memory.bits, best
    )
    if best[1] < _NOWHERE:
        best[1] += tile.row
        best[2] += tile.column
    return best, memory.bits


class _Walk:
    """The way back through a region, from the cursor to the border."""

    def __init__(self, pair: LongPair, steps: TileSteps, best: NDArray[np.int64]) -> None:
        self.pair, self.steps = pair, steps
        self.cursor = np.array([best[1], best[2], 0, best[0], 0], np.int64)
        self.runs = np.zeros((1024, 2), np.int64)

    def through(self, region: Tile, edges: Edges, corner: int) -> None:
        """Walk until the region is left; `edges` are its upper and left edges."""
        region = region._replace(row_end=int(self.cursor[0]) + 1, column_end=int(self.cursor[1]) + 1)
        rows, columns = region.row_end - region.row, region.column_end - region.column
        edges = Edges(
            edges.row_h[:columns], edges.row_f[:columns], edges.column_h[:rows], edges.column_e[:rows]
        )
        setup = self.pair.setup
        keeping = setup._replace(rules=(*setup.rules[:2], KeepChoices()))
        stripe = ROWS * setup.lanes.width
        smallest = max(rows, columns) <= stripe
        if smallest or choice_bytes(keeping, rows, columns) <= self.pair.choice_limit:
            self._through_tile(region, edges, corner)
            return
        grid = tile_grid(region, self.steps.threads, stripe, self.pair.checkpoint_limit)
        sweep = _Sweep(self.pair, self.steps, grid, edges, corner, True)
        sweep.run()
        self.back(sweep)

    def back(self, sweep: _Sweep) -> None:
        """Walk through the tiles of a region whose edges were kept."""
        region = sweep.grid.region
        cursor = self.cursor
        while cursor[2] != DONE and cursor[0] >= region.row and cursor[1] >= region.column:
            i, j = sweep.grid.place(int(cursor[0]), int(cursor[1]))
            tile = sweep.grid.tile(i, j)
            self.through(tile, sweep.tile_edges(i, j, tile), int(sweep.corners[i, j]))

    def _through_tile(self, tile: Tile, edges: Edges, corner: int) -> None:
        _, bits = _sweep_tile(self.pair, self.steps, tile, edges, corner, True)
        needed = int(self.cursor[4]) + tile.row_end - tile.row + tile.column_end - tile.column + 3
        if needed > len(self.runs):
            grown = np.zeros((2 * needed, 2), np.int64)
            grown[: len(self.runs)] = self.runs
            self.runs = grown
        setup = self.pair.setup
        place = StripeBits(tile.row, tile.column, setup.limits.stretch, setup.lanes.width)
        self.steps.walk(place, bits, self.pair.costs, self.cursor, self.runs)

    def finish(self) -> None:
        """Close the walk at the border of the matrix."""
        free = self.pair.free
        self.steps.close(
            bool(free.query_start or free.local),
            bool(free.target_start or free.local),
            self.cursor,
            self.runs,
        )


def _whole(pair: LongPair, steps: TileSteps) -> tuple[Tile, Edges]:
    rows, columns = pair.costs.query.size, pair.costs.target.size
    edges = Edges(*(np.zeros(size, np.int32) for size in (columns, columns, rows, rows)))
    steps.border(pair.free, pair.costs.gap_open, pair.costs.gap_extend, edges)
    return Tile(0, rows, 0, columns), edges


def _first_pass(pair: LongPair, steps: TileSteps, checkpoint_limit: int) -> _Sweep:
    region, edges = _whole(pair, steps)
    grid = tile_grid(region, steps.threads, ROWS * pair.setup.lanes.width, checkpoint_limit)
    sweep = _Sweep(pair, steps, grid, edges, 0, bool(checkpoint_limit))
    sweep.run()
    steps.end(pair.free, pair.costs.gap_open, pair.costs.gap_extend, edges, sweep.best)
    return sweep


def score_long(pair: LongPair, steps: TileSteps) -> NDArray[np.int64]:
    """Value, row and column of the end of a best alignment.

    Parameters
    ----------
    pair
        Two sequences that are not empty.
    steps
        Of the target.
    """
    return _first_pass(pair, steps, 0).best


def align_long(
    pair: LongPair, steps: TileSteps
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """A best alignment.

    Parameters
    ----------
    pair
        Two sequences that are not empty.
    steps
        Of the target.

    Returns
    -------
    tuple
        Value, row and column of the end; row and column before the start; runs (operation, length) from the
        first to the last, shape (runs, 2).
    """
    sweep = _first_pass(pair, steps, pair.checkpoint_limit)
    walk = _Walk(pair, steps, sweep.best)
    if walk.cursor[0] >= 0 and walk.cursor[1] >= 0:
        walk.back(sweep)
    walk.finish()
    return sweep.best, walk.cursor[:2], walk.runs[: walk.cursor[4]][::-1]
