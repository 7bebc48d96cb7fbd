"""The way back through tiles: which are swept again, and the walk along their choices.

A tile that is needed again is made ready: swept with its choices, or, where they would not fit, cut into
tiles of which the edges are kept. All tiles have their edges, so those that the alignment will probably pass
through are made ready ahead, by other threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.antidiagonal import Edges
from plait.schedules.choice_walk import DONE, StripeBits
from plait.schedules.pair_scores import ROWS
from plait.schedules.pair_setup import choice_bytes
from plait.schedules.sweep_rules import KeepChoices
from plait.schedules.tile_grid import LongPair, Tile, TileSteps
from plait.schedules.tile_sweep import Sweep, sweep_tile

__all__ = ["Walk"]

#: Tiles along the diagonal that are made ready ahead: those with choices, and those that are cut.
_AHEAD_WITH_CHOICES = 4
_AHEAD_CUT = 1


class _Ready(NamedTuple):
    """A tile with its choices, or cut into tiles of which the edges are kept."""

    tile: Tile
    bits: Any
    sweep: Sweep | None


class _Over(Exception):
    """The walk is over, and nobody wants what was looked ahead for."""


class _Pool:
    """Threads that look ahead, and whether they are to stop."""

    def __init__(self, threads: int) -> None:
        self.threads = ThreadPoolExecutor(threads, "plait-ahead")
        self.over = Event()

    def for_a_while(self, pair: LongPair) -> LongPair:
        """A pair of which sweeps stop after a tile or two once the walk is over."""

        def progress(cells: int) -> None:
            if self.over.is_set():
                raise _Over
            pair.progress(cells)

        return replace(pair, progress=progress)

    def close(self) -> None:
        """Stop what is not wanted any more, and wait: nothing works on when the walk is over."""
        self.over.set()
        self.threads.shutdown(wait=True, cancel_futures=True)


class _Ahead:
    """Tiles of a region, made ready before the walk comes to them.

    Parameters
    ----------
    pair, steps
        What to sweep, and how.
    sweep
        The region, with the edges of its tiles.
    pool
        Threads, or None if nothing is made ready ahead.
    """

    def __init__(self, pair: LongPair, steps: TileSteps, sweep: Sweep, pool: _Pool | None) -> None:
        self.pair, self.steps, self.sweep, self.pool = pair, steps, sweep, pool
        self.pair_ahead = pair if pool is None else pool.for_a_while(pair)
        self.waiting: dict[tuple[int, int], Future[_Ready]] = {}

    def take(self, row: int, column: int) -> _Ready:
        """The tile with a cell, ready for a walk that comes from there."""
        grid = self.sweep.grid
        i, j = grid.place(row, column)
        found = self.waiting.pop((i, j), None)
        if self.pool is not None:
            self._look_ahead(i, j)
        if found is not None:
            return found.result()
        tile = grid.tile(i, j)
        return self._make(self.pair, i, j, tile._replace(row_end=row + 1, column_end=column + 1))

    def _look_ahead(self, i: int, j: int) -> None:
        assert self.pool is not None
        most = _AHEAD_WITH_CHOICES if self._fits(self.sweep.grid.tile(i, j)) else _AHEAD_CUT
        wanted = [(i - d - a, j - d - b) for d in range(most) for a, b in ((1, 1), (1, 0), (0, 1))]
        for place in set(self.waiting) - set(wanted):
            self.waiting.pop(place).cancel()
        for place in wanted:
            if min(place) >= 0 and place not in self.waiting:
                tile = self.sweep.grid.tile(*place)
                self.waiting[place] = self.pool.threads.submit(self._make, self.pair_ahead, *place, tile)

    def _fits(self, tile: Tile) -> bool:
        """Whether the choices of a tile can be kept."""
        setup = self.pair.setup
        rows, columns = tile.row_end - tile.row, tile.column_end - tile.column
        keeping = setup._replace(rules=(*setup.rules[:2], KeepChoices()))
        smallest = max(rows, columns) <= ROWS * setup.lanes.width
        return smallest or choice_bytes(keeping, rows, columns) <= self.pair.choice_limit

    def _make(self, pair: LongPair, i: int, j: int, tile: Tile) -> _Ready:
        """Make a tile ready, or its part that begins at the same cell."""
        whole, corner = self.sweep.tile_edges(i, j)
        rows, columns = tile.row_end - tile.row, tile.column_end - tile.column
        edges = Edges(
            whole.row_h[:columns], whole.row_f[:columns], whole.column_h[:rows], whole.column_e[:rows]
        )
        if self._fits(tile):
            return _Ready(tile, sweep_tile(pair, self.steps, tile, edges, corner, True)[1], None)
        sweep = Sweep(pair, self.steps, tile, edges, corner, pair.checkpoint_limit, False)
        sweep.run()
        return _Ready(tile, None, sweep)


class Walk:
    """The way back through a region, from the best cell to the border.

    Parameters
    ----------
    pair, steps
        What was swept, and how.
    best
        Value, row and column of the end.

    Attributes
    ----------
    cursor, runs
        See `plait.schedules.choice_walk.walk`.
    """

    def __init__(self, pair: LongPair, steps: TileSteps, best: NDArray[np.int64]) -> None:
        self.pair, self.steps = pair, steps
        self.cursor = np.array([best[1], best[2], 0, best[0], 0], np.int64)
        self.runs = np.zeros((1024, 2), np.int64)

    def back(self, sweep: Sweep) -> None:
        """Walk through the tiles of a region whose edges were kept."""
        region = sweep.grid.region
        cursor = self.cursor
        with self._pool() as pool:
            ahead = _Ahead(self.pair, self.steps, sweep, pool)
            while cursor[2] != DONE and cursor[0] >= region.row and cursor[1] >= region.column:
                ready = ahead.take(int(cursor[0]), int(cursor[1]))
                if ready.sweep is None:
                    self._through(ready)
                else:
                    self.back(ready.sweep)

    @contextmanager
    def _pool(self) -> Iterator[_Pool | None]:
        """Threads that look ahead, where there are some to spare."""
        # Where a region is swept tile by tile, its threads are busy with the tiles of one cut.
        if self.steps.many is None or self.steps.threads < 2:
            yield None
            return
        pool = _Pool(min(self.steps.threads, 3 * _AHEAD_WITH_CHOICES))
        try:
            yield pool
        finally:
            pool.close()

    def _through(self, ready: _Ready) -> None:
        tile = ready.tile
        needed = int(self.cursor[4]) + tile.row_end - tile.row + tile.column_end - tile.column + 3
        if needed > len(self.runs):
            grown = np.zeros((2 * needed, 2), np.int64)
            grown[: len(self.runs)] = self.runs
            self.runs = grown
        setup = self.pair.setup
        place = StripeBits(tile.row, tile.column, setup.limits.stretch, setup.lanes.width)
        self.steps.walk(place, ready.bits, self.pair.costs, self.cursor, self.runs)

    def finish(self) -> None:
        """Close the walk at the border of the matrix."""
        free = self.pair.free
        self.steps.close(
            bool(free.query_start or free.local),
            bool(free.target_start or free.local),
            self.cursor,
            self.runs,
        )
