"""The k best local alignments of one pair: with ends that lie apart, or without a common pair of residues."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import count
from math import cbrt
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.dp.pairs.choices import KeepValues
from plait.dp.pairs.diagonals import Edges, Region, sweep_region
from plait.dp.pairs.lists import PairList, PairSetup, make_memory, make_setup
from plait.dp.pairs.scores import ROWS, part
from plait.dp.pairs.tiles import (
    Checkpoints,
    Grid,
    KeptTiles,
    LongPair,
    ManyTiles,
    Sweep,
    Tile,
    TileSteps,
    Visit,
    Walk,
    cuts,
    sweep_tile,
    whole_matrix,
)
from plait.dp.pairs.traceback import DONE
from plait.errors import Unsupported
from plait.lang.compile import kernel, shared

R = TypeVar("R")

#: Tiles of which the best values are kept have a multiple of so many rows, and so many columns or more. To
#: keep a value of an edge takes the time in which so many cells are swept.
_TILE_ROWS: Final = 128
_TILE_COLUMNS: Final = 2048
_SWEPT_PER_KEPT: Final = 16
#: Parts of a region whose tiles are cut again that are likely to be looked into.
_FEW: Final = 4
#: Rows and columns of what one call of a thread sweeps.
_VISITED_SIDE: Final = 1 << 14
#: Cells of a tile of which all values are looked at, and of one that is swept again without some pairs.
_SEEN_CELLS: Final = 1 << 20
_BARRED_CELLS: Final = 1 << 24
#: Scores stay below it where pairs are barred.
_LARGEST: Final = 1 << 29


class Ranks(Protocol):
    """Several processes, as `plait.run.mpi.MpiExecutor` has them."""

    @property
    def size(self) -> int:
        """How many."""
        ...

    def lead(self, function: Callable[[Any], Any], task: Callable[[Callable[[Any], Any]], R]) -> R:
        """The result of ``task(call)``; ``call(batch)`` is ``function(batch)`` in a process that is idle."""
        ...


class KBest(NamedTuple):
    """A pair, of local alignment and none empty, and which of its alignments are asked for.

    The `most` best of those that score `least` or more. `apart`: an alignment counts if no better one ends
    less than so many rows and less than so many columns away; of equal scores the end with the earlier column
    comes first, then the one with the earlier row. 0: the best alignment, then the best of those that align
    no pair of residues that one before has aligned, and so on. `wide` is `wide_setup`'s. `ranks`, if any, are
    processes that all have this task and share its matrix.
    """

    pair: LongPair
    wide: PairSetup
    most: int
    least: int
    apart: int
    ranks: Ranks | None = None


class BestPath(NamedTuple):
    """Value, row and column of the last cell of an alignment; its runs, (r, 2), first to last."""

    score: int
    row: int
    column: int
    runs: NDArray[np.int64]


def wide_setup(task: PairList) -> PairSetup:
    """Lanes of 32 bits, of sums from the corner; `Unsupported` if scores could be too high."""
    setup = make_setup(task, keep=False, dtype=np.int32)
    shorter = min(task.query.size, task.target.size)
    if shorter * int(task.matrix.max(initial=0)) >= _LARGEST:
        why = f"scores of {shorter:,} pairs of residues could reach 2^29; scale scores and gap costs down"
        raise Unsupported("several alignments of this pair with these scores", why=why)
    return setup._replace(limits=setup.limits._replace(offset=0))


@shared
def _keep_edges(kept: Any, h: Any, handed: Any) -> None:
    for k in range(h.size):
        kept[k, 0] = h[k]
        kept[k, 1] = handed[k]


@shared
def sweep_tiles(
    lanes: Any,
    gap: Any,
    algebra: Any,
    rules: Any,
    limits: Any,
    places: Any,
    edges: Any,
    kept: Any,
    memory: Any,
    values: Any,
) -> None:
    """Sweep the tiles of a visit, see `plait.dp.pairs.tiles.Visit`; `values` gets the best value of each.

    `places` are where tiles begin, rows and columns; ``limits.corner`` is ``h`` above and left. Edges of the
    first row and column of tiles have been kept before.
    """
    source, anywhere, keep = rules
    rows, columns = places
    scratch, bits, best = memory
    below = limits.corner
    for i in range(rows.size - 1):
        r0, r1 = rows[i] - rows[0], rows[i + 1] - rows[0]
        corner = below
        below = int(edges.column_h[r1 - 1])
        for j in range(columns.size - 1):
            c0, c1 = columns[j] - columns[0], columns[j + 1] - columns[0]
            here = Edges(edges.row_h[c0:c1], edges.row_f[c0:c1], edges.column_h[r0:r1], edges.column_e[r0:r1])
            if i > 0:
                _keep_edges(kept.rows[i, c0:c1], here.row_h, here.row_f)
            if j > 0:
                _keep_edges(kept.columns[j, r0:r1], here.column_h, here.column_e)
            right = int(edges.row_h[c1 - 1])
            own = (part(source, lanes, rows[i], rows[i + 1], columns[j], columns[j + 1]), anywhere, keep)
            region = Region(
                0, r1 - r0, 0, c1 - c0, corner,
                limits.stretch, limits.offset, limits.low, limits.high, limits.floor,
            )  # fmt: skip
            best[0] = 0
            sweep_region(lanes, gap, algebra, own, region, here, scratch, bits, best)
            values[i, j] = best[0]
            corner = right


class CpuTiles:
    """`plait.dp.pairs.tiles.ManyTiles` on the CPU: small tiles, many of them in one call of a thread."""

    def __init__(self, steps: TileSteps) -> None:
        self._call = steps.tiles
        self.visits = steps.threads

    def serves(self, pair: LongPair, region: Tile) -> bool:
        """Any pair and region."""
        return True

    def grid(self, region: Tile, checkpoint_limit: int, wanted: int) -> Grid:
        """Cut a region so that keeping edges, and sweeping the wanted tiles again, take the least time."""
        rows, columns = region.row_end - region.row, region.column_end - region.column
        side = max(cbrt(_SWEPT_PER_KEPT * region.cells / wanted), 16 * region.cells / checkpoint_limit)
        width = min(max(int(side), _TILE_COLUMNS), columns)
        height = min((int(side**2 / width) // _TILE_ROWS + 1) * _TILE_ROWS, rows)
        if height * width == region.cells > _SEEN_CELLS:
            # A region that is cut to be looked into must come out in smaller pieces.
            height, width = max(height // 2, 1), max(width // 2, 1)
        tall = _VISITED_SIDE
        if self.visits > 1:
            tall = min(tall, max(rows, columns) // (6 * self.visits))
        down = max(min(tall, rows) // height, 1)
        across = max(tall, _VISITED_SIDE**2 // (down * height) if self.visits == 1 else 0) // width
        starts = cuts(region.row, region.row_end, height), cuts(region.column, region.column_end, width)
        tiles = (start.size - 1 for start in starts)
        visits = (cuts(0, size, max(step, 1)) for size, step in zip(tiles, (down, across), strict=True))
        return Grid(region, *starts, *visits)

    def sweep(self, pair: LongPair, visit: Visit) -> NDArray[np.int64]:
        """Sweep tiles; returns their best values."""
        setup, kept = pair.setup, visit.kept
        assert kept is not None
        # Parts of the kept edges are no arrays that kernels take.
        own = Checkpoints(np.empty(kept.rows.shape, np.int32), np.empty(kept.columns.shape, np.int32))
        tallest, widest = (int(np.diff(starts).max()) for starts in (visit.rows, visit.columns))
        memory = make_memory(setup, tallest, widest, edges=False)
        values = np.zeros((visit.rows.size - 1, visit.columns.size - 1), np.int64)
        limits = setup.limits._replace(corner=visit.corner)
        self._call(
            *(setup.lanes, setup.gap, setup.algebra, setup.rules, limits),
            *((visit.rows, visit.columns), visit.edges, own),
            *((memory.scratch, memory.bits, memory.best), values),
        )
        kept.rows[1:], kept.columns[1:] = own.rows[1:], own.columns[1:]
        return values


def _swept(pair: LongPair, steps: TileSteps, tile: Tile, edges: Edges, corner: int, wanted: int) -> Sweep:
    """A region whose tiles have their best values, and their edges kept."""
    if isinstance(steps.many, _RankTiles) and tile.cells < _SHARED_CELLS:
        steps = steps._replace(many=steps.many.alone)
    if steps.many is None or not steps.many.serves(pair, tile):
        steps = steps._replace(many=CpuTiles(steps))
    sweep = Sweep(pair, steps, tile, edges, corner, pair.checkpoint_limit, True, wanted)
    sweep.run()
    return sweep


class _Cut:
    """A region cut into tiles; `sweep` is None if it has to be swept again to look at its tiles."""

    def __init__(self, sweep: Sweep, parent: _Cut | None, place: tuple[int, int]) -> None:
        self.sweep: Sweep | None = sweep
        self.parent, self.place = parent, place
        self.grid: Grid = sweep.grid


class _Cells:
    """Cells of a tile of `cut`, the best first, of those that no alignment found so far is near."""

    def __init__(self, cut: _Cut, cells: NDArray[np.int64]) -> None:
        self.cut, self.cells, self.seen = cut, cells, 0

    def without_near(self, found: list[BestPath], apart: int) -> bool:
        """Forget what lies near what was found since; returns whether anything is left."""
        _, rows, columns = self.cells
        least = rows.min(initial=1 << 60) - apart, columns.min(initial=1 << 60) - apart
        most = rows.max(initial=-1) + apart, columns.max(initial=-1) + apart
        for end in found[self.seen :]:
            # Few ends are near any of the cells.
            if least[0] < end.row < most[0] and least[1] < end.column < most[1]:
                apart_by = np.abs(self.cells[1] - end.row), np.abs(self.cells[2] - end.column)
                self.cells = self.cells[:, np.maximum(*apart_by) >= apart]
        self.seen = len(found)
        return self.cells.size > 0


class _Apart:
    """Alignments of which the ends lie apart.

    Tiles wait with the best end that they could have; the first is looked into until a cell comes first.
    """

    def __init__(self, task: KBest, steps: TileSteps) -> None:
        self.task, self.steps = task, steps
        self.alone = steps._replace(many=None)
        lanes = task.wide.lanes
        wide = task.wide._replace(rules=(*task.wide.rules[:2], KeepValues(lanes)))
        self.wide = task.pair._replace(setup=wide)
        self.floor = task.least
        self.kept = KeptTiles()
        self.found: list[BestPath] = []
        self.waiting: list[tuple[int, int, int, int, Any]] = []
        self.numbers = count()
        #: Regions that are swept, the one that was asked for longest ago first, and bytes of their edges.
        self.swept: dict[_Cut, int] = {}

    def run(self) -> Iterator[BestPath]:
        """The alignments, best first."""
        region, edges = whole_matrix(self.task.pair, self.steps)
        sweep = _swept(self.task.pair, self.steps, region, edges, 0, self.task.most)
        self.floor = self._least_of_best(sweep)
        self._wait_for_tiles(_Cut(sweep, None, (0, 0)), sweep)
        while self.waiting and len(self.found) < self.task.most:
            *key, _, item = heapq.heappop(self.waiting)
            if isinstance(item, _Cells):
                if not item.without_near(self.found, self.task.apart):
                    continue
                score, row, column = item.cells[:, 0].tolist()
                if [-score, column, row] == key:
                    self.found.append(self._path(item.cut, score, row, column))
                    yield self.found[-1]
                self._wait_for(item)
            else:
                self._look_into(*item)

    def _least_of_best(self, sweep: Sweep) -> int:
        """A score below which none of those that are asked for can lie.

        Best cells of tiles between which another tile lies are apart. An alignment is near at most four
        cells that are apart from each other, so 4 k - 3 of them leave one to each of the k first.
        """
        needed, least = 4 * self.task.most - 3, self.task.least
        sides = (int(starts[1] - starts[0]) for starts in (sweep.grid.rows, sweep.grid.columns))
        if min(sides) < self.task.apart:
            return least
        for first in np.ndindex(2, 2):
            values = sweep.values[first[0] :: 2, first[1] :: 2].ravel()
            if values.size >= needed:
                least = max(least, int(np.partition(values, -needed)[-needed]))
        return least

    def _wait_for_tiles(self, cut: _Cut, sweep: Sweep) -> None:
        for i, j in np.argwhere(sweep.values >= self.floor).tolist():
            tile = sweep.grid.tile(i, j)
            key = -int(sweep.values[i, j]), tile.column, tile.row
            heapq.heappush(self.waiting, (*key, next(self.numbers), (cut, i, j, tile)))

    def _wait_for(self, cells: _Cells) -> None:
        if cells.without_near(self.found, self.task.apart):
            score, row, column = cells.cells[:, 0].tolist()
            heapq.heappush(self.waiting, (-score, column, row, next(self.numbers), cells))

    def _look_into(self, cut: _Cut, i: int, j: int, tile: Tile) -> None:
        """Cut a tile into smaller ones, or find its cells."""
        apart = self.task.apart
        if max(tile.row_end - tile.row, tile.column_end - tile.column) < 2 * apart:
            for end in self.found:
                down = max(end.row - tile.row, tile.row_end - 1 - end.row)
                if max(down, end.column - tile.column, tile.column_end - 1 - end.column) < apart:
                    return
        edges, corner = self._sweep_of(cut).tile_edges(i, j)
        if tile.cells <= _SEEN_CELLS or tile == cut.grid.region:
            # Of so many cells, either all are near the alignments that are asked for, or one is not.
            most = self.task.most * (2 * apart - 1) ** 2
            cells = _cells(self.wide, self.alone, tile, edges, corner, self.floor, most)
            self._wait_for(_Cells(cut, cells))
        else:
            sweep = _swept(self.task.pair, self.steps, tile, edges, corner, _FEW)
            inner = _Cut(sweep, cut, (i, j))
            self._hold(inner, sweep)
            self._wait_for_tiles(inner, sweep)

    def _hold(self, cut: _Cut, sweep: Sweep) -> None:
        """Keep a region's edges, and forget others where they take too much memory."""
        assert sweep.kept is not None
        self.swept[cut] = sum(edges.nbytes for edges in sweep.kept)
        while sum(self.swept.values()) > self.task.pair.checkpoint_limit and len(self.swept) > 1:
            oldest = next(iter(self.swept))
            del self.swept[oldest]
            oldest.sweep = None

    def _sweep_of(self, cut: _Cut) -> Sweep:
        """The edges of a region's tiles."""
        if cut.sweep is None:
            assert cut.parent is not None
            edges, corner = self._sweep_of(cut.parent).tile_edges(*cut.place)
            cut.sweep = _swept(self.task.pair, self.steps, cut.grid.region, edges, corner, _FEW)
        if cut.parent is not None:
            self.swept.pop(cut, None)
            self._hold(cut, cut.sweep)
        return cut.sweep

    def _path(self, cut: _Cut, score: int, row: int, column: int) -> BestPath:
        walk = Walk(self.task.pair, self.alone, np.array([score, row, column], np.int64), self.kept)
        region: _Cut | None = cut
        while region is not None and walk.cursor[2] != DONE:
            walk.back(self._sweep_of(region))
            region = region.parent
        return _finished(walk, score, row, column)


def _finished(walk: Walk, score: int, row: int, column: int) -> BestPath:
    walk.finish()
    return BestPath(score, row, column, walk.runs[: walk.cursor[4]][::-1].copy())


def _cells(
    pair: LongPair, steps: TileSteps, tile: Tile, edges: Edges, corner: int, least: int, most: int
) -> NDArray[np.int64]:
    """Value, row and column, (3, cells), of the `most` best cells of a tile with `least` or more."""
    setup = pair.setup
    _, values = sweep_tile(pair, steps, tile, edges, corner, False)
    found = np.flatnonzero(values.ravel() >= least)
    stripe, stretch, step, within, lane = np.unravel_index(found, values.shape)
    row = tile.row + (stripe * setup.lanes.width + lane) * ROWS + within
    beside = step - lane
    column = tile.column + stretch * setup.limits.stretch + beside
    inside = (
        (beside >= 0) & (beside < setup.limits.stretch) & (row < tile.row_end) & (column < tile.column_end)
    )
    cells = np.stack([values.ravel()[found].astype(np.int64), row, column])[:, inside]
    if cells.shape[1] > most:
        cells = cells[:, cells[0] >= np.partition(cells[0], -most)[-most]]
    return cells[:, np.lexsort((cells[1], cells[2], -cells[0]))[:most]]


class _Disjoint:
    """Alignments without a pair of residues in common (Waterman and Eggert, J Mol Biol 197:723, 1987).

    What an alignment has changed is swept again, tile by tile, as far as edges come out different.
    """

    def __init__(self, task: KBest, steps: TileSteps) -> None:
        self.task, self.alone = task, steps._replace(many=None)
        none = np.zeros(0, np.int64)
        self.wide = task.pair._replace(setup=task.wide, barred=(none, none))
        region, edges = whole_matrix(task.pair, steps)
        self.sweep = _swept(task.pair, steps, region, edges, 0, task.most)
        tile = self.sweep.grid.tile(0, 0)
        if tile.cells > _BARRED_CELLS:
            why = f"the edges of tiles need more than {task.pair.checkpoint_limit:,} bytes of memory"
            raise Unsupported("alignments of so long a pair without common pairs of residues", why=why)
        #: Best value, row and column of tiles that are known, by place.
        self.places: dict[tuple[int, int], NDArray[np.int64]] = {}

    def run(self) -> Iterator[BestPath]:
        """The alignments, best first."""
        for _ in range(self.task.most):
            best = self._best_cell()
            if best is None:
                return
            walk = Walk(self.wide, self.alone, best)
            walk.back(self.sweep)
            path = _finished(walk, *best.tolist())
            yield path
            self._bar(*aligned_pairs(path))

    def _best_cell(self) -> NDArray[np.int64] | None:
        value = self.sweep.values.max()
        if value < self.task.least:
            return None
        i = int(np.flatnonzero((self.sweep.values == value).any(axis=1))[0])
        places = [self._place(i, j) for j in np.flatnonzero(self.sweep.values[i] == value).tolist()]
        return min(places, key=lambda place: place[1:].tolist())

    def _place(self, i: int, j: int) -> NDArray[np.int64]:
        if (i, j) not in self.places:
            edges, corner = self.sweep.tile_edges(i, j)
            self.places[i, j] = self._again(self.sweep.grid.tile(i, j), edges, corner)
        return self.places[i, j]

    def _again(self, tile: Tile, edges: Edges, corner: int) -> NDArray[np.int64]:
        """Sweep a tile again: its best cell."""
        assert self.wide.barred is not None
        rows, columns = self.wide.barred
        barred = (rows >= tile.row) & (rows < tile.row_end)
        barred &= (columns >= tile.column) & (columns < tile.column_end)
        pair = self.wide if barred.any() else self.task.pair
        return sweep_tile(pair, self.alone, tile, edges, corner, False)[0]

    def _bar(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
        """Let no alignment go through these pairs of residues any more."""
        assert self.wide.barred is not None
        before = self.wide.barred
        barred = np.concatenate([before[0], rows]), np.concatenate([before[1], columns])
        self.wide = self.wide._replace(barred=barred)
        waiting = sorted(set(map(self.sweep.grid.place, rows.tolist(), columns.tolist())))
        done = (-1, -1)
        while waiting:
            place = heapq.heappop(waiting)
            if place != done:
                done = place
                for other in self._repair(*place):
                    heapq.heappush(waiting, other)

    def _repair(self, i: int, j: int) -> Iterator[tuple[int, int]]:
        """Sweep a tile again; the tiles behind it of which an edge has changed."""
        sweep = self.sweep
        assert sweep.kept is not None
        tile = sweep.grid.tile(i, j)
        edges, corner = sweep.tile_edges(i, j)
        self.places[i, j] = self._again(tile, edges, corner)
        sweep.values[i, j] = max(self.places[i, j][0], 0)
        self.task.pair.progress(tile.cells)
        rows, columns = tile.within(sweep.grid.region)
        below, beside = i + 1 < sweep.values.shape[0], j + 1 < sweep.values.shape[1]
        if below:
            kept = sweep.kept.rows[i + 1, columns]
            corner_changed = kept[-1, 0] != edges.row_h[-1]
            if _replaced(kept, edges.row_h, edges.row_f):
                yield i + 1, j
            if beside and corner_changed:
                yield i + 1, j + 1
        if beside and _replaced(sweep.kept.columns[j + 1, rows], edges.column_h, edges.column_e):
            yield i, j + 1


def _replaced(kept: NDArray[np.int32], h: NDArray[np.int32], handed: NDArray[np.int32]) -> bool:
    """Keep another edge; whether it differs."""
    same = np.array_equal(kept[:, 0], h) and np.array_equal(kept[:, 1], handed)
    kept[:, 0], kept[:, 1] = h, handed
    return not same


def aligned_pairs(path: BestPath) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of the pairs of residues of an alignment, rising."""
    operations = np.repeat(*path.runs.T)
    rows, columns = np.cumsum(operations != 1), np.cumsum(operations != 2)
    paired = operations == 0
    return (path.row + rows - rows[-1])[paired], (path.column + columns - columns[-1])[paired]


#: What visits are cut into for each rank, across; while the first ones are swept, ranks wait.
_VISITS_A_RANK: Final = 3
#: Cells of a region that is shared out, at least: a tenth of a second of one processor.
_SHARED_CELLS: Final = 1 << 28

#: Where tiles begin, edges, corner, whether edges are to be kept, and ``watched`` of a visit.
_Piece = tuple[NDArray[np.int64], NDArray[np.int64], Edges, int, bool, bool]
#: Best values, edges and kept edges behind it.
_Swept = tuple[NDArray[np.int64], Edges, Checkpoints | None]


def _sweep_piece(pair: LongPair, many: ManyTiles, piece: _Piece) -> _Swept:
    """Sweep a visit of another process."""
    rows, columns, edges, corner, keeps, watched = piece
    kept = None
    if keeps:
        shape = (rows.size - 1, edges.row_h.size, 2), (columns.size - 1, edges.column_h.size, 2)
        kept = Checkpoints(np.empty(shape[0], np.int32), np.empty(shape[1], np.int32))
    copies: list[Future[None]] = []
    values = many.sweep(pair, Visit(rows, columns, edges, corner, kept, watched, False, copies, None, None))
    for copy in copies:
        copy.result()
    return values, edges, kept


class _RankTiles:
    """`plait.dp.pairs.tiles.ManyTiles` on several processes, each with its own and a visit at a time.

    `alone` is what one process has for a region that is not worth sharing.
    """

    def __init__(
        self, own: ManyTiles, alone: ManyTiles | None, visits: int, call: Callable[[_Piece], _Swept]
    ) -> None:
        self.own, self.alone, self.visits, self._call = own, alone, visits, call

    def serves(self, pair: LongPair, region: Tile) -> bool:
        """As in each of them."""
        return self.own.serves(pair, region)

    def grid(self, region: Tile, checkpoint_limit: int, wanted: int) -> Grid:
        """Cut as in each of them, in visits enough for all."""
        grid = self.own.grid(region, checkpoint_limit, wanted)
        parts = _VISITS_A_RANK * self.visits
        if grid.visit_columns.size > parts:
            return grid
        tiles = grid.columns.size - 1
        return grid._replace(visit_columns=np.unique(np.arange(parts + 1, dtype=np.int64) * tiles // parts))

    def sweep(self, pair: LongPair, visit: Visit) -> NDArray[np.int64]:
        """Sweep tiles in a process that is idle."""
        edges, kept = Edges(*(np.ascontiguousarray(edge) for edge in visit.edges)), visit.kept
        piece = visit.rows, visit.columns, edges, visit.corner, kept is not None, visit.watched
        values, changed, swept = self._call(piece)
        for here, there in zip(visit.edges, changed, strict=True):
            here[:] = there
        if kept is not None and swept is not None:
            kept.rows[1:], kept.columns[1:] = swept.rows[1:], swept.columns[1:]
        return values


def k_best(task: KBest, pair: LongPair, steps: TileSteps) -> list[BestPath]:
    """The alignments that are asked for, best first; `pair` has the limits of the device."""
    task, ranks = task._replace(pair=pair), task.ranks
    find = _Apart if task.apart else _Disjoint
    if ranks is None:
        return list(find(task, steps).run())
    # Larger pieces than for threads: their edges are sent.
    own = steps.many or CpuTiles(steps._replace(threads=max(ranks.size // 2, 2)))

    def over_ranks(call: Callable[[_Piece], _Swept]) -> list[BestPath]:
        shared = _RankTiles(own, steps.many, ranks.size, call)
        return list(find(task, steps._replace(many=shared)).run())

    return ranks.lead(partial(_sweep_piece, pair, own), over_ranks)


sweep_tiles_kernel = kernel(sweep_tiles)
