"""One pass over the tiles of a region, several at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from math import isqrt
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.schedules.antidiagonal import Edges
from plait.schedules.pair_scores import ROWS, part
from plait.schedules.pair_setup import make_memory
from plait.schedules.sweep_rules import KeepChoices, ScoresOnly
from plait.schedules.tile_grid import (
    Checkpoints,
    Grid,
    LongPair,
    ManyTiles,
    Tile,
    TileSteps,
    Visit,
    edges_of,
    tile_grid,
)

__all__ = ["Sweep", "bytes_to_seek", "sweep_tile"]

_NOWHERE = 1 << 60
_TAKING = Lock()
#: Cells of a tile in which one thread looks for the end of an alignment.
_SOUGHT_CELLS = 1 << 24


def bytes_to_seek(cells: int, limit: int) -> int:
    """Bytes of edges that are kept where the end of an alignment is all that is wanted.

    Those of tiles as long as an eighth of the matrix, one of which is swept again.

    Parameters
    ----------
    cells
        Of the matrix.
    limit
        No more than these.
    """
    return min(limit, 16 * 8 * isqrt(cells))


class Sweep:
    """One pass over a grid of tiles.

    Parameters
    ----------
    pair, steps, region
        What to sweep, and how.
    edges
        Upper and left edge of the region; changed to the lower and right one.
    corner
        ``h`` above and left of the region.
    limit
        Bytes for the edges of the tiles; 0 if they are not kept.
    ending
        Whether the end of the alignment is wanted, if it may be in any cell.
    """

    def __init__(
        self,
        pair: LongPair,
        steps: TileSteps,
        region: Tile,
        edges: Edges,
        corner: int,
        limit: int,
        ending: bool,
    ) -> None:
        self.pair, self.steps, self.edges, self.ending = pair, steps, edges, ending
        self.many: ManyTiles | None = steps.many
        if self.many is not None and self.many.serves(pair, region):
            self.grid: Grid = self.many.grid(region, limit)
        else:
            self.many = None
            self.grid = tile_grid(region, steps.threads, ROWS * pair.setup.lanes.width, limit)
        rows, columns = self.grid.rows[self.grid.visit_rows], self.grid.columns[self.grid.visit_columns]
        self.shape = (rows.size - 1, columns.size - 1)
        self.best = np.array([0, _NOWHERE, _NOWHERE], np.int64)
        self.corners = np.zeros((rows.size, columns.size), np.int64)
        self.corners[0, 0] = corner
        self.corners[0, 1:] = edges.row_h[columns[1:] - 1 - region.column]
        self.corners[1:, 0] = edges.column_h[rows[1:] - 1 - region.row]
        tiles = (self.grid.rows.size - 1, self.grid.columns.size - 1)
        self.values = np.zeros(tiles, np.int64)
        self.kept: Checkpoints | None = None
        self.copies: list[Future[None]] = []
        if limit:
            self.kept = Checkpoints(
                np.empty((tiles[0], edges.row_h.size, 2), np.int32),
                np.empty((tiles[1], edges.column_h.size, 2), np.int32),
            )

    def run(self) -> None:
        """Visit all tiles, several at a time."""
        waiting = np.full(self.shape, 2)
        waiting[0, :] -= 1
        waiting[:, 0] -= 1
        running: dict[Future[tuple[int, int]], None] = {}
        threads = self.steps.threads if self.many is None else self.many.visits
        pool = ThreadPoolExecutor(threads, thread_name_prefix="plait")
        try:
            running[pool.submit(self._visit, 0, 0)] = None
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    i, j = future.result()
                    self.pair.progress(self.grid.visit(i, j).cells)
                    for k, m in self._after(i, j, waiting):
                        running[pool.submit(self._visit, k, m)] = None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            wait(self.copies)
        for copy in self.copies:
            copy.result()
        if self.many is not None and self.ending:
            self._find_end()

    def _after(self, i: int, j: int, waiting: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        for k, m in ((i, j + 1), (i + 1, j)):
            if k < self.shape[0] and m < self.shape[1]:
                waiting[k, m] -= 1
                if waiting[k, m] == 0:
                    yield k, m

    def _take(self, best: NDArray[np.int64]) -> None:
        with _TAKING:
            if (best[0], -best[1], -best[2]) > (self.best[0], -self.best[1], -self.best[2]):
                self.best = best

    def _visit(self, i: int, j: int) -> tuple[int, int]:
        grid, region = self.grid, self.grid.region
        all_tiles = grid.visit(i, j)
        edges = edges_of(self.edges, all_tiles, region)
        down, across = (
            slice(*starts[k : k + 2]) for starts, k in ((grid.visit_rows, i), (grid.visit_columns, j))
        )
        kept = None
        if self.kept is not None:
            rows, columns = all_tiles.within(region)
            kept = Checkpoints(self.kept.rows[down, columns], self.kept.columns[across, rows])
            kept.rows[0, :, 0], kept.rows[0, :, 1] = edges.row_h, edges.row_f
            kept.columns[0, :, 0], kept.columns[0, :, 1] = edges.column_h, edges.column_e
        corner = int(self.corners[i, j])
        if self.many is None:
            self._take(sweep_tile(self.pair, self.steps, all_tiles, edges, corner, False)[0])
        else:
            starts = grid.rows[down.start : down.stop + 1], grid.columns[across.start : across.stop + 1]
            visit = Visit(*starts, edges, corner, kept, self.ending, self.copies)
            self.values[down, across] = self.many.sweep(self.pair, visit)
        if i + 1 < self.shape[0] and j + 1 < self.shape[1]:
            self.corners[i + 1, j + 1] = edges.row_h[-1]
        return i, j

    def _find_end(self) -> None:
        """The place of the best value: in the first row of tiles that has it."""
        value = self.values.max()
        if value <= 0:
            return
        i = int(np.flatnonzero((self.values == value).any(axis=1))[0])
        for j in np.flatnonzero(self.values[i] == value).tolist():
            tile = self.grid.tile(i, j)
            edges, corner = self.tile_edges(i, j)
            if tile.cells <= _SOUGHT_CELLS:
                best, _ = sweep_tile(self.pair, self.steps, tile, edges, corner, False)
            else:
                limit = bytes_to_seek(tile.cells, self.pair.checkpoint_limit)
                part_of = Sweep(self.pair, self.steps, tile, edges, corner, limit, True)
                part_of.run()
                best = part_of.best
            self._take(best)

    def tile_edges(self, i: int, j: int) -> tuple[Edges, int]:
        """Copies of the upper and left edge of a tile, and the ``h`` of its corner."""
        kept = self.kept
        assert kept is not None
        tile = self.grid.tile(i, j)
        rows, columns = tile.within(self.grid.region)
        corner = int(self.corners[0, 0])
        if j > 0:
            corner = int(kept.rows[i, columns.start - 1, 0])
        elif i > 0:
            corner = int(kept.columns[0, rows.start - 1, 0])
        above, left = kept.rows[i, columns], kept.columns[j, rows]
        values = above[:, 0], above[:, 1], left[:, 0], left[:, 1]
        return Edges(*(value.copy() for value in values)), corner


def sweep_tile(
    pair: LongPair, steps: TileSteps, tile: Tile, edges: Edges, corner: int, keep: bool
) -> tuple[NDArray[np.int64], Any]:
    """Sweep a tile; returns its best cell and, if asked for, its choices.

    Parameters
    ----------
    pair, steps
        What to sweep, and how.
    tile
        Rows and columns.
    edges
        Upper and left edge; changed to the lower and right one.
    corner
        ``h`` above and left.
    keep
        Whether choices are kept.
    """
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
