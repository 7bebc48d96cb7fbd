"""One long pair, tile by tile, in memory that grows with the sum of the lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from math import isqrt
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.dp.pairs.choices import of_kind
from plait.dp.pairs.diagonals import Edges
from plait.dp.pairs.lists import (
    FreeEnds,
    PairList,
    PairResults,
    PairSetup,
    choice_bytes,
    make_memory,
    read_only,
)
from plait.dp.pairs.scores import ROWS, Barred
from plait.dp.pairs.traceback import DONE, Costs, StripeBits

_LEAST_TILE = 1024
_LARGEST_TILE = 16384
#: Tiles along each side of a matrix, for each thread.
_TILES_PER_THREAD = 6


class Tile(NamedTuple):
    """Rows ``row`` to ``row_end`` and columns ``column`` to ``column_end`` of the whole matrix."""

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


#: Bytes of choices of a tile of a long pair.
CHOICES_OF_A_TILE = 1 << 28


class LongPair(NamedTuple):
    """A pair of which no sequence is empty, and how it is swept.

    `setup` is without choices. `choice_limit` is bytes of choices of a tile, `checkpoint_limit` bytes of the
    edges of all tiles; `progress` is told the number of cells done, often. `barred`, where it is given, has
    rows and columns, (pairs,) each, of pairs of residues that must not be aligned; lanes are of 32 bits then.
    """

    setup: PairSetup
    costs: Costs
    free: FreeEnds
    progress: Callable[[int], None]
    choice_limit: int = CHOICES_OF_A_TILE
    checkpoint_limit: int = 1 << 30
    barred: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None


class Checkpoints(NamedTuple):
    """Upper and left edges of all tiles of a region, int32.

    `rows` is ``h`` above and the ``f`` handed down, (tiles down, columns, 2); `columns` ``h`` left and the
    ``e`` handed on, (tiles across, rows, 2).
    """

    rows: NDArray[np.int32]
    columns: NDArray[np.int32]


class Grid(NamedTuple):
    """A region cut into tiles.

    `rows` and `columns` are where tiles begin, and the end of the last; `visit_rows` and `visit_columns` the
    numbers of the tiles at which visits begin, and one behind the last tile.
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


class Below:
    """The visit below another one, which a target may begin while it sweeps that one.

    It calls `begin` with what that visit needs of the lower edge (`edge`), whose own edges are changed only
    when the one above is `over`.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self.edge: Any = None
        self.begun = False
        self.over = Event()
        self._tell = tell

    def begin(self, edge: Any) -> None:
        """Let the visit begin."""
        self.edge, self.begun = edge, True
        self._tell()


class Visit(NamedTuple):
    """Tiles that are swept together.

    `rows` and `columns` are where tiles begin, and the end of the last, in the whole matrix. `edges` are
    upper and left, to be changed to lower and right; `corner` is ``h`` above and left. `kept` is where the
    edges of the tiles go, those of the first ones too, or None; `watched`: their best values are wanted, and
    `sought`: no other edges than those of the best tiles of the first row with such. In `copies` a target
    puts what still copies to `kept` when the tiles are swept; the sweep waits for it.
    `above` is what the visit above has begun this one with, if it has; `below` None in the last row.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    edges: Edges
    corner: int
    kept: Checkpoints | None
    watched: bool
    sought: bool
    copies: list[Future[None]]
    above: Below | None
    below: Below | None


class ManyTiles(Protocol):
    """A target that sweeps many tiles together. It finds the best value of each, but not its place."""

    @property
    def visits(self) -> int:
        """Visits at a time."""
        ...

    def serves(self, pair: LongPair, region: Tile) -> bool:
        """Whether it can, and is worth its start for a region."""
        ...

    def grid(self, region: Tile, checkpoint_limit: int, wanted: int) -> Grid:
        """Cut a region into tiles, as `tile_grid` does, of which so many are likely to be swept again."""
        ...

    def sweep(self, pair: LongPair, visit: Visit) -> NDArray[np.int64]:
        """Sweep tiles; returns their best values, shape (tiles down, tiles across)."""
        ...


class TileSteps(NamedTuple):
    """The steps of a target, see `plait.dp.pairs.lists`; `threads` tiles run at a time.

    `many` is for a target that sweeps many tiles together; those that the alignment passes through are swept
    again by `sweep`.
    """

    border: Callable[..., Any]
    sweep: Callable[..., Any]
    end: Callable[..., Any]
    walk: Callable[..., Any]
    close: Callable[..., Any]
    tiles: Callable[..., Any]
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
    """Cut a region into tiles, of which `threads` are to run side by side.

    The height of a tile is a multiple of `stripe` rows. `checkpoint_limit` is the bytes that the edges of all
    tiles may take, 0 if they are not kept.
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


_NOWHERE = 1 << 60
_TAKING = Lock()
#: Of a tile, which has edges instead.
_NO_RESULTS = PairResults(*(np.zeros(size, np.int64) for size in (0, (0, 4), (0, 2), 0)))
#: Bytes of choices that are kept for other walks.
_KEPT_CHOICES: Final = 1 << 28
#: Cells of a tile in which one thread looks for the end of an alignment.
_SOUGHT_CELLS = 1 << 24


def bytes_to_seek(cells: int, limit: int) -> int:
    """Bytes of edges, at most `limit`, where only the end of an alignment is wanted.

    Those of tiles as long as a fortieth of the matrix of so many cells, one of which is swept again.
    """
    return min(limit, 16 * 40 * isqrt(cells))


class Sweep:
    """One pass over a grid of tiles.

    `edges` are the upper and left ones of the region, changed to the lower and right ones; `corner` is ``h``
    above and left of it; `limit` the bytes for the edges of the tiles, 0 if they are not kept. `ending`: the
    end of the alignment is wanted, if it may be in any cell, and `seeking`: nothing else. `wanted` tiles are
    likely to be swept again; 0 if nobody knows.
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
        wanted: int = 0,
        *,
        seeking: bool = False,
    ) -> None:
        self.pair, self.steps, self.edges, self.ending, self.seeking = pair, steps, edges, ending, seeking
        self.many: ManyTiles | None = steps.many
        if self.many is not None and self.many.serves(pair, region):
            self.grid: Grid = self.many.grid(region, limit, wanted)
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
        self._below: dict[tuple[int, int], Below] = {}
        #: Visits that are done, and places of those that may begin.
        self._news: SimpleQueue[Future[tuple[int, int, bool]] | tuple[int, int]] = SimpleQueue()
        if limit:
            self.kept = Checkpoints(
                np.empty((tiles[0], edges.row_h.size, 2), np.int32),
                np.empty((tiles[1], edges.column_h.size, 2), np.int32),
            )
            self._keep_row(0, slice(None))

    def run(self) -> None:
        """Visit all tiles, several at a time."""
        threads = self.steps.threads if self.many is None else self.many.visits
        if threads == 1:
            try:
                for place in np.ndindex(*self.shape):
                    self.pair.progress(self.grid.visit(*self._visit(*place)[:2]).cells)
            finally:
                self._end_copies()
            return
        pool = ThreadPoolExecutor(threads, thread_name_prefix="plait")
        try:
            self._run(lambda *place: pool.submit(self._visit, *place).add_done_callback(self._news.put))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            self._end_copies()

    def _run(self, start: Callable[[int, int], None]) -> None:
        """Start visits when those on the left are done, and those above are done or have begun them."""
        waiting = np.full(self.shape, 2)
        waiting[0, :] -= 1
        waiting[:, 0] -= 1
        start(0, 0)
        running = 1
        while running:
            told = self._news.get()
            after = [told] if isinstance(told, tuple) else []
            if isinstance(told, Future):
                i, j, begun = told.result()
                running -= 1
                self.pair.progress(self.grid.visit(i, j).cells)
                after = [(i, j + 1), (i + 1, j)][: 1 if begun else 2]
            for k, m in after:
                if k < self.shape[0] and m < self.shape[1]:
                    waiting[k, m] -= 1
                    if waiting[k, m] == 0:
                        start(k, m)
                        running += 1

    def _end_copies(self) -> None:
        wait(self.copies)
        for copy in self.copies:
            copy.result()

    def _take(self, best: NDArray[np.int64]) -> None:
        with _TAKING:
            if (best[0], -best[1], -best[2]) > (self.best[0], -self.best[1], -self.best[2]):
                self.best = best

    def _keep_row(self, row: int, columns: slice) -> None:
        """Keep what is above a row of tiles."""
        if self.kept is not None and row < len(self.kept.rows):
            values = self.edges.row_h[columns], self.edges.row_f[columns]
            self.kept.rows[row, columns, 0], self.kept.rows[row, columns, 1] = values

    def _visit(self, i: int, j: int) -> tuple[int, int, bool]:
        """Visit some tiles; returns their place, and whether the visit below has begun."""
        grid, region = self.grid, self.grid.region
        all_tiles = grid.visit(i, j)
        edges = edges_of(self.edges, all_tiles, region)
        down, across = (
            slice(*starts[k : k + 2]) for starts, k in ((grid.visit_rows, i), (grid.visit_columns, j))
        )
        kept = None
        rows, columns = all_tiles.within(region)
        if self.kept is not None:
            kept = Checkpoints(self.kept.rows[down, columns], self.kept.columns[across, rows])
            kept.columns[0, :, 0], kept.columns[0, :, 1] = edges.column_h, edges.column_e
        corner = int(self.corners[i, j])
        if self.many is None:
            self._take(sweep_tile(self.pair, self.steps, all_tiles, edges, corner, False)[0])
            self._end_visit(i, j, columns)
            return i, j, False
        above, below = self._below.pop((i - 1, j), None), Below(partial(self._news.put, (i + 1, j)))
        self._below[i, j] = below
        starts = grid.rows[down.start : down.stop + 1], grid.columns[across.start : across.stop + 1]
        last = i + 1 == self.shape[0]
        visit = Visit(
            *(*starts, edges, corner, kept),
            *(self.ending, self.seeking, self.copies, above, None if last else below),
        )
        try:
            self.values[down, across] = self.many.sweep(self.pair, visit)
            self._end_visit(i, j, columns)
        finally:
            below.over.set()
        return i, j, below.begun

    def _end_visit(self, i: int, j: int, columns: slice) -> None:
        """Take over the lower edge of a visit: the next one may change it."""
        self._keep_row(int(self.grid.visit_rows[i + 1]), columns)
        if i + 1 < self.shape[0] and j + 1 < self.shape[1]:
            self.corners[i + 1, j + 1] = self.edges.row_h[columns.stop - 1]

    def find_end(self) -> None:
        """Find the place of the best value where it is not known: in the first row of tiles that has it."""
        if self.many is None or not self.ending:
            return
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
                part_of = Sweep(self.pair, self.steps, tile, edges, corner, limit, True, seeking=True)
                part_of.run()
                part_of.find_end()
                best = part_of.best
            self._take(best)

    def tile_edges(self, i: int, j: int) -> tuple[Edges, int]:
        """Copies of the upper and left edge of a tile, and the ``h`` of its corner."""
        kept = self.kept
        assert kept is not None
        tile = self.grid.tile(i, j)
        rows, columns = tile.within(self.grid.region)
        corner = int(self.corners[0, 0])
        if i not in self.grid.visit_rows:
            # What was kept of its own visit, perhaps of no other.
            corner = int(kept.columns[j, rows.start - 1, 0])
        elif j > 0:
            corner = int(kept.rows[i, columns.start - 1, 0])
        elif i > 0:
            corner = int(kept.columns[0, rows.start - 1, 0])
        above, left = kept.rows[i, columns], kept.columns[j, rows]
        values = above[:, 0], above[:, 1], left[:, 0], left[:, 1]
        return Edges(*(value.copy() for value in values)), corner


def sweep_tile(
    pair: LongPair, steps: TileSteps, tile: Tile, edges: Edges, corner: int, keep: bool
) -> tuple[NDArray[np.int64], Any]:
    """Sweep a tile; returns its best cell and, if `keep` asks for them, its choices.

    `edges`, upper and left, are changed to the lower and right ones; `corner` is ``h`` above and left.
    """
    costs, (source, anywhere, kind) = pair.costs, pair.setup.rules
    setup = pair.setup._replace(
        rules=(source, anywhere, of_kind(kind, keep)), limits=pair.setup.limits._replace(corner=corner)
    )
    memory = make_memory(setup, tile.row_end - tile.row, tile.column_end - tile.column, edges=False)
    if pair.barred is not None:
        setup = setup._replace(rules=(_barred(setup, pair.barred, tile), *setup.rules[1:]))
    rows, columns = np.array([tile.row, tile.row_end]), np.array([tile.column, tile.column_end])
    task = PairList(costs.query, rows, costs.target, columns, *costs[2:5], pair.free)
    args = read_only(task), 0, 1, memory._replace(edges=edges), _NO_RESULTS
    steps.sweep(setup, *args)
    best = memory.best
    if best[1] < _NOWHERE:
        best[1] += tile.row
        best[2] += tile.column
    return best, memory.bits


def _barred(setup: PairSetup, barred: Sequence[NDArray[np.int64]], tile: Tile) -> Barred:
    """The scores of a tile without those of the pairs in it that must not be aligned."""
    rows, columns = barred
    inside = (rows >= tile.row) & (rows < tile.row_end)
    inside &= (columns >= tile.column) & (columns < tile.column_end)
    width, steps = setup.lanes.width, min(setup.limits.stretch, tile.column_end - tile.column)
    marks = np.empty((steps + width - 1, ROWS * width), np.int32)
    return Barred(setup.rules[0], rows[inside] - tile.row, columns[inside] - tile.column, marks)


#: Tiles that are made ready ahead: more take the interpreter longer than they save. Those that are cut take
#: it less.
_AHEAD = 3
_CUT_AHEAD = 8


class _Ready(NamedTuple):
    """A tile with its choices, or cut into tiles of which the edges are kept, with a walk that may be met."""

    tile: Tile
    bits: Any
    sweep: Sweep | None
    seen: KeptTiles | None = None


class _Over(Exception):
    """The walk is over, and nobody wants what was looked ahead for."""


class _Pool:
    """Threads that look so many tiles ahead, and whether they are to stop."""

    def __init__(self, threads: int, ahead: int) -> None:
        self.threads, self.ahead = ThreadPoolExecutor(min(threads, ahead), "plait-ahead"), ahead
        self.over = Event()

    def for_a_while(self, pair: LongPair) -> LongPair:
        """A pair of which sweeps stop after a tile or two once the walk is over."""

        def progress(cells: int) -> None:
            if self.over.is_set():
                raise _Over
            pair.progress(cells)

        return pair._replace(progress=progress)

    def close(self) -> None:
        """Stop what is not wanted any more, and wait: nothing works on when the walk is over."""
        self.over.set()
        self.threads.shutdown(wait=True, cancel_futures=True)


class KeptTiles:
    """Tiles that several walks pass through: the second time all of their choices are made, and kept.

    `walks` are those that have come into a tile at some place, in some state: others that come there follow
    them.
    """

    def __init__(self) -> None:
        self.walks: dict[tuple[int, ...], tuple[Walk, tuple[int, int]]] = {}
        self._passed: set[tuple[Sweep, int, int]] = set()
        self._ready: dict[tuple[Sweep, int, int], _Ready] = {}
        self._bytes = 0

    def take(
        self, sweep: Sweep, place: tuple[int, int], part_of: Callable[[], _Ready], whole: Callable[[], _Ready]
    ) -> _Ready:
        """A tile of a region, or the part of it that this walk may pass through."""
        key = (sweep, *place)
        if key not in self._passed:
            self._passed.add(key)
            return part_of()
        found = self._ready.pop(key, None)
        if found is None:
            found = whole()
            self._bytes += _choices_of(found)
        self._ready[key] = found
        while self._bytes > _KEPT_CHOICES and len(self._ready) > 1:
            self._bytes -= _choices_of(self._ready.pop(next(iter(self._ready))))
        return found


def _fits(pair: LongPair, tile: Tile) -> bool:
    """Whether the choices of a tile can be kept."""
    setup = pair.setup
    rows, columns = tile.row_end - tile.row, tile.column_end - tile.column
    keeping = setup._replace(rules=(*setup.rules[:2], of_kind(setup.rules[2], True)))
    smallest = max(rows, columns) <= ROWS * setup.lanes.width
    return smallest or choice_bytes(keeping, rows, columns) <= pair.choice_limit


def _choices_of(ready: _Ready) -> int:
    return 0 if ready.bits is None else int(ready.bits.nbytes)


class _Ahead:
    """Tiles of a region, made ready before the traceback comes to them.

    `sweep` has the region, with the edges of its tiles; without a pool nothing is made ready ahead.
    """

    def __init__(
        self, pair: LongPair, steps: TileSteps, sweep: Sweep, pool: _Pool | None, kept: KeptTiles | None
    ) -> None:
        self.pair, self.steps, self.sweep, self.pool, self.kept = pair, steps, sweep, pool, kept
        self.pair_ahead = pair if pool is None else pool.for_a_while(pair)
        self.waiting: dict[tuple[int, int], Future[_Ready]] = {}

    def take(self, row: int, column: int) -> _Ready:
        """The tile with a cell, ready for a walk that comes from there."""
        grid = self.sweep.grid
        i, j = grid.place(row, column)
        found = self.waiting.pop((i, j), None)
        if self.pool is not None:
            self._look_ahead(self.pool, row, column)
        if found is not None:
            return found.result()
        tile = grid.tile(i, j)
        part_of = partial(self._make, self.pair, i, j, tile._replace(row_end=row + 1, column_end=column + 1))
        if self.kept is None:
            return part_of()
        return self.kept.take(self.sweep, (i, j), part_of, partial(self._make, self.pair, i, j, tile))

    def _look_ahead(self, pool: _Pool, row: int, column: int) -> None:
        """Make the tiles ready that the walk comes to if it stays on its diagonal."""
        grid, wanted = self.sweep.grid, {}
        for _ in range(pool.ahead):
            tile = grid.tile(*grid.place(row, column))
            step = min(row - tile.row, column - tile.column) + 1
            row, column = row - step, column - step
            if row < grid.region.row or column < grid.region.column:
                break
            wanted[grid.place(row, column)] = row, column
        for place in set(self.waiting) - set(wanted):
            self.waiting.pop(place).cancel()
        for place, entry in wanted.items():
            if place not in self.waiting:
                tile = grid.tile(*place)
                self.waiting[place] = pool.threads.submit(self._make, self.pair_ahead, *place, tile, entry)

    def _make(
        self, pair: LongPair, i: int, j: int, tile: Tile, entry: tuple[int, int] | None = None
    ) -> _Ready:
        """Make a tile ready, or its part that begins at the same cell; a walk may come in at `entry`."""
        whole, corner = self.sweep.tile_edges(i, j)
        rows, columns = tile.row_end - tile.row, tile.column_end - tile.column
        edges = Edges(
            whole.row_h[:columns], whole.row_f[:columns], whole.column_h[:rows], whole.column_e[:rows]
        )
        if _fits(pair, tile):
            return _Ready(tile, sweep_tile(pair, self.steps, tile, edges, corner, True)[1], None)
        sweep = Sweep(pair, self.steps, tile, edges, corner, pair.checkpoint_limit, False)
        sweep.run()
        return _Ready(tile, None, sweep, entry and self._foreseen(sweep, *entry))

    def _foreseen(self, sweep: Sweep, row: int, column: int) -> KeptTiles:
        """A walk from a cell of a region's lower or right edge; the one that comes by soon meets it."""
        region, edges = sweep.grid.region, sweep.edges
        lowest = row + 1 == region.row_end
        value = edges.row_h[column - region.column] if lowest else edges.column_h[row - region.row]
        walk = Walk(sweep.pair, self.steps._replace(threads=1), np.array([value, row, column], np.int64))
        seen = KeptTiles()
        walk.back(sweep, seen)
        walk.tell(seen)
        return seen


class Walk:
    """The traceback through a region, from the best cell to the border.

    `best` is value, row and column of the end; `kept` has tiles for several walks; for `cursor` and `runs`
    see `plait.dp.pairs.traceback.walk`.
    """

    def __init__(
        self, pair: LongPair, steps: TileSteps, best: NDArray[np.int64], kept: KeptTiles | None = None
    ) -> None:
        self.pair, self.steps, self.kept = pair, steps, kept
        self.cursor = np.array([best[1], best[2], 0, best[0], 0], np.int64)
        self.runs = np.zeros((1024, 2), np.int64)
        #: Where the walk came into tiles: how many runs there were, and columns of the last one.
        self.entries: dict[tuple[int, ...], tuple[int, int]] = {}

    def back(self, sweep: Sweep, seen: KeptTiles | None = None) -> None:
        """Walk through the tiles of a region whose edges were kept; `seen` has walks that may be met."""
        region = sweep.grid.region
        cursor = self.cursor
        known = self.kept if seen is None else seen
        # Where a walk is soon met there is little to look ahead for.
        with self._pool(sweep if seen is None else None) as pool:
            ahead = _Ahead(self.pair, self.steps, sweep, pool, self.kept)
            while cursor[2] != DONE and cursor[0] >= region.row and cursor[1] >= region.column:
                if known is not None and self._follow(known):
                    continue
                ready = ahead.take(int(cursor[0]), int(cursor[1]))
                if ready.sweep is None:
                    self._through(ready)
                else:
                    self.back(ready.sweep, ready.seen)

    def _follow(self, kept: KeptTiles) -> bool:
        """Go on as a walk before that came to the same place, which ends as that one did; note the place."""
        place = tuple(self.cursor[:3].tolist())
        known = kept.walks.get(place)
        count = int(self.cursor[4])
        if known is None:
            self.entries[place] = count, int(self.runs[count - 1, 1]) if count else 0
            return False
        before, (first, length) = known
        rest = before.runs[max(first - 1, 0) : int(before.cursor[4])].copy()
        if first:
            rest[0, 1] -= length
        rest = rest[rest[:, 1] > 0]
        if count and len(rest) and rest[0, 0] == self.runs[count - 1, 0]:
            self.runs[count - 1, 1] += rest[0, 1]
            rest = rest[1:]
        self._make_room(len(rest))
        self.runs[count : count + len(rest)] = rest
        self.cursor[:] = before.cursor
        self.cursor[4] = count + len(rest)
        return True

    def _make_room(self, more: int) -> None:
        """Room for so many runs more, and those that close the walk; all are copied now and then only."""
        needed = int(self.cursor[4]) + more + 3
        if needed > len(self.runs):
            grown = np.zeros((2 * needed, 2), np.int64)
            grown[: len(self.runs)] = self.runs
            self.runs = grown

    @contextmanager
    def _pool(self, sweep: Sweep | None) -> Iterator[_Pool | None]:
        """Threads that look ahead in a region, where there are some to spare."""
        # Where a region is swept tile by tile, its threads are busy with the tiles of one cut.
        if sweep is None or self.steps.many is None or self.steps.threads < 2:
            yield None
            return
        pool = _Pool(self.steps.threads, _AHEAD if _fits(self.pair, sweep.grid.tile(0, 0)) else _CUT_AHEAD)
        try:
            yield pool
        finally:
            pool.close()

    def _through(self, ready: _Ready) -> None:
        tile = ready.tile
        self._make_room(tile.row_end - tile.row + tile.column_end - tile.column)
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
        if self.kept is not None:
            self.tell(self.kept)

    def tell(self, kept: KeptTiles) -> None:
        """Let others that come to the same places go on as this one did."""
        kept.walks |= {place: (self, entry) for place, entry in self.entries.items()}


def whole_matrix(pair: LongPair, steps: TileSteps) -> tuple[Tile, Edges]:
    """All rows and columns of a pair, with the edges at the border."""
    rows, columns = pair.costs.query.size, pair.costs.target.size
    edges = Edges(*(np.zeros(size, np.int32) for size in (columns, columns, rows, rows)))
    steps.border(pair.free, pair.costs.gap_open, pair.costs.gap_extend, edges)
    return Tile(0, rows, 0, columns), edges


def _first_pass(pair: LongPair, steps: TileSteps, checkpoint_limit: int, *, seeking: bool = False) -> Sweep:
    region, edges = whole_matrix(pair, steps)
    sweep = Sweep(pair, steps, region, edges, 0, checkpoint_limit, bool(pair.free.anywhere), seeking=seeking)
    sweep.run()
    sweep.find_end()
    steps.end(pair.free, pair.costs.gap_open, pair.costs.gap_extend, edges, sweep.best)
    return sweep


def score_long(pair: LongPair, steps: TileSteps) -> NDArray[np.int64]:
    """Value, row and column of the end of a best alignment of two sequences that are not empty."""
    limit = 0
    if steps.many is not None and pair.free.anywhere:
        whole = Tile(0, pair.costs.query.size, 0, pair.costs.target.size)
        if steps.many.serves(pair, whole):
            # Where many tiles are swept together, the end in any cell is found from their edges.
            limit = bytes_to_seek(whole.cells, pair.checkpoint_limit)
    return _first_pass(pair, steps, limit, seeking=True).best


def align_long(
    pair: LongPair, steps: TileSteps
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """A best alignment of two sequences that are not empty.

    Returns value, row and column of the end; row and column before the start; and runs (operation, length)
    from the first to the last, (runs, 2).
    """
    sweep = _first_pass(pair, steps, pair.checkpoint_limit)
    walk = Walk(pair, steps, sweep.best)
    if walk.cursor[0] >= 0 and walk.cursor[1] >= 0:
        walk.back(sweep)
    walk.finish()
    return sweep.best, walk.cursor[:2], walk.runs[: walk.cursor[4]][::-1]
