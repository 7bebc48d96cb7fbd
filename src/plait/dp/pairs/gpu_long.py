"""One very long pair on GPUs: how it is cut and shared out, and what the host does."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import SIMULATED, cuda
from plait.devices.cuda_devices import SlotArrays, device_facts, least_free_memory, on_device
from plait.devices.cuda_target import CudaTarget
from plait.devices.driver import DriverDevice
from plait.dp.pairs import gpu_stripes as kernel
from plait.dp.pairs.gaps import AffineGap, LinearGap
from plait.dp.pairs.gpu_stripes import MOST_COST, Anywhere, AtEdges, NarrowScores, WideScores
from plait.dp.pairs.kbest import BestPath, KBest, k_best
from plait.dp.pairs.launches import cpu_steps, on_long_pair
from plait.dp.pairs.lists import few_letters, looked_up
from plait.dp.pairs.tiles import Below, Grid, LongPair, Tile, TileSteps, Visit, align_long, cuts, score_long
from plait.dp.pairs.traceback import Costs
from plait.lang.algebras import MaxPlus, SaturatingMaxPlus

R = TypeVar("R")

#: Sides of tiles that the path is followed through, and columns of a launch, at least.
LEAST_TILE = 1536
LEAST_COLUMNS = 1 << 16
#: Bytes that the edges of tiles of that size may take; where they take more, tiles are larger by far.
_FEW_BYTES = 1 << 28
#: Side of a larger tile, by the square root of rows and columns together. Copying edges takes time in
#: proportion to the area over the side, and sweeping tiles on the way of the alignment again in proportion to
#: the lengths times the side.
_SIDE_BY_ROOT = 32
#: Tiles for each alignment that is asked for: of every fourth, four have no near neighbour.
_TILES_A_WANTED = 20
#: Cells of a launch for each multiprocessor: three to four seconds, so that a run can be stopped.
CELLS_OF_A_LAUNCH = 1 << 36


class Capacity(NamedTuple):
    """What the devices, which are alike, can do.

    `warps` are stripes that run at the same time on one device; `memory` bytes that a launch may use on each
    device; `height` rows of a stripe.
    """

    devices: int
    multiprocessors: int
    warps: int
    memory: int
    height: int

    def launches_down(self, rows: int) -> int:
        """Launches below one another: every device has as many of a diagonal as the others."""
        return _round_up(-(-rows // (self.warps * self.height)), self.devices)


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _even_parts(tiles: int, most: int, least_parts: int = 1) -> NDArray[np.int64]:
    """Where parts of at most so many tiles begin that are as even as can be, and so many at least."""
    parts = max(-(-tiles // max(most, 1)), min(least_parts, tiles))
    return (np.arange(parts + 1, dtype=np.int64) * tiles) // parts


def _side_of_launches(rows: int, side: int, capacity: Capacity) -> int:
    """Rows of tiles, at least `side`, of which launches of all warps are made up without a rest."""
    most = capacity.warps * capacity.height
    if rows <= most or side > most:
        return side
    tiles = capacity.launches_down(rows) * (most // side)
    return max(side, _round_up(-(-rows // tiles), capacity.height))


def _launch_size(rows: int, side: int, kept: int, capacity: Capacity) -> tuple[int, int]:
    """Most rows and columns of a launch; `kept` is bytes of each column of an edge of tiles."""
    height = capacity.height
    most_rows = max(capacity.warps * height // side * side, side)
    down = min(rows, most_rows)
    across = CELLS_OF_A_LAUNCH * capacity.multiprocessors // down
    # Edges of the launch, and those of tiles, twice.
    across = min(across, max(capacity.memory - 64 * down, 0) // (2 * kept * down // side + 64))
    return most_rows, max(across, LEAST_COLUMNS)


def plan_grid(region: Tile, checkpoint_limit: int, capacity: Capacity, wanted: int = 0) -> Grid:
    """Cut a region into tiles, and these into launches.

    `checkpoint_limit` is the bytes that the edges of all tiles may take; 0 if they are not kept, and a launch
    is one tile. With `wanted` alignments, tiles are so many that their best values tell how low the last one
    can be.
    """
    rows, columns = region.row_end - region.row, region.column_end - region.column
    height = capacity.height
    side = height
    if checkpoint_limit:
        side = LEAST_TILE
        if 16 * rows * columns // side > _FEW_BYTES:
            side = max(side, _SIDE_BY_ROOT * math.isqrt(rows + columns))
        if wanted:
            side = max(min(side, math.isqrt(rows * columns // (_TILES_A_WANTED * wanted))), LEAST_TILE)
        side = _round_up(max(side, -(-16 * rows * columns // checkpoint_limit)), height)
        side = _side_of_launches(rows, side, capacity)
        # A region that is cut to be walked through must come out in smaller pieces.
        side = min(side, max(height, _round_up(-(-max(rows, columns) // 2), height)))
    most_rows, most_columns = _launch_size(rows, side, 8 if checkpoint_limit else 0, capacity)
    tile_rows = cuts(region.row, region.row_end, side)
    tile_columns = cuts(region.column, region.column_end, side)
    down = capacity.launches_down(rows) if rows > most_rows else 1
    visit_rows = _even_parts(tile_rows.size - 1, most_rows // side, down)
    visit_columns = _even_parts(tile_columns.size - 1, most_columns // side)
    if not checkpoint_limit:
        tile_rows, tile_columns = tile_rows[visit_rows], tile_columns[visit_columns]
        visit_rows, visit_columns = np.arange(tile_rows.size), np.arange(tile_columns.size)
    return Grid(region, tile_rows, tile_columns, visit_rows, visit_columns)


#: Score of residues that do not exist: what goes on from them is less than what it came from.
_NEVER = -128
#: What a column takes, in proportion, by stripes of a multiprocessor: 3 or 4 for each of its four schedulers
#: (measured on an H200, design/0004); registers leave room for no more.
_COLUMN_TIMES: Final = {12: 45, 16: 58}
#: Where scores of 32 bits leave room for fewer stripes in so much shared memory, narrow ones are taken.
_FEW_STRIPES = 10
_SHARED = 200 << 10
#: Bytes of shared memory of a warp, at most.
_MOST_SHARED = 48 << 10
#: Launches under way on a device: those of tiles on the way of an alignment are small. One of more stripes
#: than this many for each multiprocessor is the only one of its kind. The simulator runs one at a time.
_FEW_FOR_ALL = 6
_LAUNCHES = 1 if SIMULATED else 4
#: Seconds between looks at what a launch has done.
_PAUSE = 0.0005
#: Least cells of a region that is worth a launch.
_LEAST_CELLS = 1 << 22


def _together(low: NDArray[np.int32], high: NDArray[np.int32]) -> NDArray[np.int64]:
    """Pairs of numbers, each as one of 64 bits."""
    both = np.empty((low.size, 2), np.int32)
    both[:, 0], both[:, 1] = low, high
    return both.view(np.int64)[:, 0]


def _marked(h: NDArray[np.int32], f: NDArray[np.int32]) -> NDArray[np.int64]:
    """``h`` and ``f`` as no stripe wrote them, see `plait.dp.pairs.gpu_stripes.with_mark`."""
    return _together(h, ((f - h) & 0x3FFFF) | np.int32(-1 << 18))


class _Coded:
    """A pair with its letters numbered from 0, as the kernel takes it."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        (own, own_place), (other, other_place) = few_letters(costs.query), few_letters(costs.target)
        self.query, self.target = looked_up(costs.query, own_place), looked_up(costs.target, other_place)
        self.nobody = own.size
        self.scores = np.full((other.size, own.size + 1), _NEVER, np.int32)
        self.scores[:, :-1] = np.asarray(costs.matrix)[np.ix_(own, other)].T

    @property
    def kind(self) -> Any:
        """How scores are stored: wide, unless that leaves room for few stripes; None if neither serves."""
        if max(self.costs.gap_open, self.costs.gap_extend) > MOST_COST:
            return None
        wide = kernel.warp_bytes(WideScores(), len(self.scores))
        fits = self.scores.min() >= -128 and self.scores.max() <= 127
        if fits and _FEW_STRIPES * wide > _SHARED:
            return NarrowScores()
        return WideScores() if wide <= _MOST_SHARED else None

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory of a warp."""
        return kernel.warp_bytes(self.kind, len(self.scores))

    def most_warps(self, facts: DriverDevice) -> int:
        """Warps of a block, at most."""
        return min(facts.shared_per_block // self.shared, max(_COLUMN_TIMES))

    def part(self, tile: Tile) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Letters of rows and columns, padded as the kernel wants them."""
        height, block = 32 * kernel.ROWS, kernel.BLOCK
        query = np.full(-(-(tile.row_end - tile.row) // height) * height, self.nobody, np.uint8)
        query[: tile.row_end - tile.row] = self.query[tile.row : tile.row_end]
        target = np.zeros(tile.column_end - tile.column + 4 * block, np.uint8)
        target[block : block + tile.column_end - tile.column] = self.target[tile.column : tile.column_end]
        return query, target


class _Device:
    """A place for one launch on a device: arrays and streams, and the copy of what is kept that is under way.

    Arrays are those of the launch before, unless they are too small: to give memory back, the driver would
    wait for all kernels of the device.
    """

    def __init__(self, number: int) -> None:
        self.facts = device_facts(number)
        with on_device(number):
            self.arrays, self.copying = SlotArrays(), cuda.stream()
        self.stream = self.arrays.stream
        #: Which of two arrays what is kept goes to, while the other one is copied.
        self.turn = 0
        self._copier = ThreadPoolExecutor(1, thread_name_prefix="plait-kept")
        self._copy: Future[None] | None = None

    def keep(self, memory: _Memory, best: NDArray[np.int64]) -> Future[None]:
        """Copy what is kept while the next launch runs; what comes of it is for those who want it."""
        if self._copy is not None:
            # Of another launch, perhaps of another pair: its memory is given back first.
            wait([self._copy])
        self._copy = self._copier.submit(self._fetch, memory, best)
        self.turn = 1 - self.turn
        return self._copy

    def _fetch(self, memory: _Memory, best: NDArray[np.int64]) -> None:
        with on_device(self.facts.number):
            memory.fetch_kept(self.copying, best)


def _kept(device: _Device, name: str, count: int, size: int) -> Any:
    """Room for edges that are kept."""
    if not count:
        return cuda.device_array((0, size), np.int64)
    return device.arrays.room(f"kept {name} {device.turn}", (count, size), np.int64)


def _mapped(edge: NDArray[np.int64] | None, else_row: Any) -> Any:
    """Pinned memory of the host as the current device sees it; no part of a row if there is none."""
    if edge is None or SIMULATED:
        return else_row[:0] if edge is None else edge
    facts = {"shape": edge.shape, "strides": None, "typestr": edge.dtype.str, "version": 3}
    return cuda.from_cuda_array_interface(facts | {"data": (edge.ctypes.data, False)}, owner=edge)


class _Memory:
    """What a launch has on the device.

    `below`, pinned memory, is for the lower edge: it is marked column by column, for the visit below. `asked`
    says whether anybody asks for the last row of the matrix, other than for its corner.
    """

    def __init__(self, coded: _Coded, visit: Visit, device: _Device, below: Any, asked: bool) -> None:
        self.visit, self.stream, self.below = visit, device.stream, below
        upload, room = device.arrays.upload, device.arrays.room
        tile = Tile(int(visit.rows[0]), int(visit.rows[-1]), int(visit.columns[0]), int(visit.columns[-1]))
        rows, columns = tile.row_end - tile.row, tile.column_end - tile.column
        query, target = coded.part(tile)
        edges = visit.edges
        tiles = (visit.rows.size - 1, visit.columns.size - 1)
        kept = (0, 0) if visit.kept is None else (tiles[0] - 1, tiles[1] - 1)
        left = np.zeros(query.size, np.int64)
        left[:rows] = _together(edges.column_h, edges.column_e)
        height = 32 * kernel.ROWS
        self.stripes = query.size // height
        self.task = kernel.Task(
            upload("query", query), upload("target", target), upload("scores", coded.scores)
        )
        if visit.above is None:
            row = above = upload("row", _marked(edges.row_h, edges.row_f))
        else:
            row, above = device.arrays.all_ones("row", columns), _mapped(visit.above.edge, None)
        self.sides = kernel.Sides(
            above,
            row,
            _mapped(below, row),
            upload("left", left),
            room("right", query.size, np.int64),
        )
        self.kept = kernel.Kept(
            _kept(device, "rows", kept[0], columns),
            _kept(device, "columns", kept[1], query.size),
            upload("best", np.full(tiles, -(2**31), np.int32)),
        )
        self.following = upload("following", np.zeros(1, np.int32))
        side = int(visit.rows[1] - visit.rows[0]), int(visit.columns[1] - visit.columns[0])
        self.whole = tile.row_end == coded.query.size and not asked
        if self.whole:
            # The last stripe, for which all wait at the end, is then as whole and as fast as the others.
            rows = query.size
        self.shape = kernel.Shape(
            *map(np.int32, (rows, columns, -(-side[0] // height), side[1], visit.corner))
        )

    def _from(self, values: Any) -> Any:
        found = values.copy_to_host(stream=self.stream)
        self.stream.synchronize()
        return found

    def fetch_edges(self) -> None:
        """Change upper and left edge to lower and right edge; first waits for the launch."""
        edges = self.visit.edges
        row = self._from(self.sides.row).view(np.int32).reshape(-1, 2)
        if self.visit.above is not None:
            self.visit.above.over.wait()
        right = self._from(self.sides.right).view(np.int32).reshape(-1, 2)[: edges.column_h.size]
        edges.row_h[:], edges.row_f[:] = row[:, 0], row[:, 0] + ((row[:, 1] << 14) >> 14)
        edges.column_h[:], edges.column_e[:] = right[:, 0], right[:, 1]
        if self.whole:
            edges.row_h[-1] = edges.column_h[-1]

    def fetch_best(self) -> NDArray[np.int64]:
        """Best values of the tiles."""
        found: NDArray[np.int64] = self._from(self.kept.best).astype(np.int64)
        return found

    def fetch_kept(self, stream: Any, best: NDArray[np.int64]) -> None:
        """Copy the edges between tiles, of which these are the best values, to where they are kept."""
        visit = self.visit
        assert visit.kept is not None
        pairs = (self.kept.rows, visit.kept.rows), (self.kept.columns, visit.kept.columns)
        if visit.sought:
            i = int(np.argmax(best.max(axis=1)))
            for j in np.flatnonzero(best[i] == best.max()).tolist():
                places = (i, j, visit.columns - visit.columns[0]), (j, i, visit.rows - visit.rows[0])
                for (there, here), (k, m, starts) in zip(pairs, places, strict=True):
                    if k:
                        # With the corner.
                        own = slice(max(int(starts[m]) - 1, 0), int(starts[m + 1]))
                        there[k - 1, own].copy_to_host(here[k].reshape(-1).view(np.int64)[own], stream=stream)
            stream.synchronize()
            return
        for there, here in pairs:
            inner = here[1:]
            if inner.flags.c_contiguous and 0 < inner.size == 2 * there.size:
                # Those of a whole region, with one copy.
                there.copy_to_host(inner.view(np.int64).reshape(there.shape), stream=stream)
                continue
            for k in range(there.shape[0]):
                place = here[k + 1].reshape(-1).view(np.int64)
                there[k, : place.size].copy_to_host(place, stream=stream)
        stream.synchronize()


class GpuTiles:
    """`plait.dp.pairs.tiles.ManyTiles` on one or more GPUs, given by their numbers."""

    def __init__(self, devices: Sequence[int]) -> None:
        self._devices = [_Device(number) for _ in range(_LAUNCHES) for number in devices]
        self.visits = len(self._devices)
        self._free: SimpleQueue[_Device] = SimpleQueue()
        self._large = {number: threading.Lock() for number in devices}
        for device in self._devices:
            self._free.put(device)
        self._lock = threading.Lock()
        self._last: _Coded | None = None
        self._edges: SimpleQueue[NDArray[np.int64]] = SimpleQueue()

    def serves(self, pair: LongPair, region: Tile) -> bool:
        """Whether the kernel can hold the scores, and a region has cells enough."""
        return region.cells >= _LEAST_CELLS and self._code(pair.costs).kind is not None

    def grid(self, region: Tile, checkpoint_limit: int, wanted: int) -> Grid:
        """Cut a region into tiles and launches."""
        facts = [device.facts for device in self._devices]
        processors = min(one.multiprocessors for one in facts)
        # What is kept of one launch is copied while the next one runs, and other programs need memory too.
        free, _ = least_free_memory([one.number for one in facts], tidy=False)
        memory = free // (3 * _LAUNCHES)
        height, devices = 32 * kernel.ROWS, len(facts) // _LAUNCHES
        assert self._last is not None
        most = self._last.most_warps(facts[0])
        sizes = [
            Capacity(devices, processors, processors * min(stripes, most), memory, height)
            for stripes in _COLUMN_TIMES
        ]
        rows = region.row_end - region.row
        times = [
            size.launches_down(rows) * time for size, time in zip(sizes, _COLUMN_TIMES.values(), strict=True)
        ]
        return plan_grid(region, checkpoint_limit, sizes[int(np.argmin(times))], wanted)

    def sweep(self, pair: LongPair, visit: Visit) -> NDArray[np.int64]:
        """Sweep tiles on the next free device; returns their best values."""
        coded = self._code(pair.costs)
        device = self._free.get()
        try:
            with on_device(device.facts.number):
                asked = bool(pair.free.target_end) and not visit.watched
                memory = _Memory(coded, visit, device, self._edge(visit), asked)
                large = _is_large(memory.stripes, device.facts.multiprocessors)
                # What a launch waits for is of one that runs already.
                with self._large[device.facts.number] if large else contextlib.nullcontext():
                    found = _sweep(pair, coded, memory, device)
                if visit.above is not None:
                    edge, visit.above.edge = visit.above.edge, None
                    self._edges.put(edge)
                return found
        except BaseException:
            if visit.below is not None and visit.below.edge is not None:
                # The launch below must not wait for ever.
                visit.below.edge[:] = -1
            raise
        finally:
            self._free.put(device)

    def _edge(self, visit: Visit) -> NDArray[np.int64] | None:
        """Memory for the lower edge of a visit that is not of the last row; nothing in it is marked."""
        if visit.below is None:
            return None
        edge, columns = np.zeros(0, np.int64), int(visit.columns[-1] - visit.columns[0])
        with contextlib.suppress(Empty):
            edge = self._edges.get_nowait()
        if edge.size < columns:
            edge = cuda.pinned_array(columns, np.int64)
        edge[:] = 0
        return edge

    def _code(self, costs: Costs) -> _Coded:
        with self._lock:
            if self._last is None or self._last.costs is not costs:
                self._last = _Coded(costs)
            return self._last


def _is_large(stripes: int, multiprocessors: int) -> bool:
    return stripes > _FEW_FOR_ALL * multiprocessors


def _sweep(pair: LongPair, coded: _Coded, memory: _Memory, device: _Device) -> NDArray[np.int64]:
    """Sweep tiles on the current device."""
    visit = memory.visit
    if visit.above is not None:
        _wait_for(visit.above)
    _launch(pair, coded, memory, device)
    if visit.below is not None:
        visit.below.begin(memory.below)
    memory.fetch_edges()
    best = memory.fetch_best()
    if visit.kept is not None:
        visit.copies.append(device.keep(memory, best))
    return best


def _wait_for(above: Below) -> None:
    """Wait for the first columns from above: the launch above has its place on its device then.

    Launches wait for each other without the host, so what is waited for must be running.
    """
    while above.edge[0] >> 50 != -1:
        time.sleep(_PAUSE)


def _launch(pair: LongPair, coded: _Coded, memory: _Memory, device: _Device) -> None:
    costs, stream = pair.costs, device.stream
    opening, prolong = (
        device.arrays.upload(name, np.full(32, -cost, np.int32))
        for name, cost in (("opening", costs.gap_open), ("prolong", costs.gap_extend))
    )
    gap: Any = AffineGap(opening, prolong)
    if costs.gap_open == costs.gap_extend:
        gap = LinearGap(prolong)
    algebras = (
        MaxPlus(np.int32(0 if costs.local else np.iinfo(np.int32).min), np.int32(0)),
        SaturatingMaxPlus(np.int32(0), np.int32(0)),
    )
    visit = memory.visit
    ends = Anywhere() if visit.watched else AtEdges()
    # A block has the stripes of a multiprocessor, so that its schedulers have as many as each other, and no
    # multiprocessor has two of a large launch.
    facts = device.facts
    warps = min(-(-memory.stripes // facts.multiprocessors), coded.most_warps(facts))
    shared = warps * coded.shared
    large = _is_large(memory.stripes, facts.multiprocessors)
    if large:
        shared = max(shared, facts.shared_per_block // 2 + 1024)
    rest = (coded.kind, memory.task, memory.sides, memory.kept, memory.following, memory.shape)
    blocks = min(-(-memory.stripes // warps), facts.multiprocessors)
    arguments = (gap, algebras, ends, *rest)
    kernel.sweep_stripes.launch(blocks, 32 * warps, *arguments, stream=stream, shared=shared)
    if large and visit.watched and not visit.sought:
        # On the way back tiles are swept for their edges, by what it may take seconds to compile.
        threading.Thread(target=_prepare, args=(facts.number, (gap, algebras, AtEdges(), *rest))).start()


def _prepare(device: int, arguments: tuple[Any, ...]) -> None:
    # What is wrong is told when it is wanted.
    with contextlib.suppress(Exception), on_device(device):
        kernel.sweep_stripes.prepare(*arguments)


@functools.cache
def many_tiles(devices: tuple[int, ...]) -> GpuTiles:
    """What sweeps tiles on these devices (numbers), for `plait.dp.pairs.tiles.TileSteps.many`."""
    return GpuTiles(devices)


def _find(find: Callable[[LongPair, TileSteps], R], pair: LongPair, target: CudaTarget) -> R:
    """The GPU sweeps a pair, the CPU the tiles on the way of the alignment."""
    return on_long_pair(find, cpu_steps(target.threads)._replace(many=many_tiles(target.devices)), pair)


#: See `plait.dp.pairs.launches`.
score_batch: Final = partial(_find, score_long)
align_batch: Final = partial(_find, align_long)


def k_best_batch(batch: KBest, target: CudaTarget) -> list[BestPath]:
    """See `plait.dp.pairs.launches`."""
    return _find(partial(k_best, batch), batch.pair, target)
