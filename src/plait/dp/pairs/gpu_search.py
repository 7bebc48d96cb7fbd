"""Scores of queries with many targets on GPUs: what a device holds at a time, and what it does with it."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import SIMULATED, cuda, cuda_kernel
from plait.devices.cuda_devices import SlotArrays, SlotPool, current_device, free_memory, on_device
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import over_threads
from plait.dp.pairs.blocks import (
    BestBatch,
    BestLanes,
    BlockBatch,
    TargetBlocks,
    best_lanes,
    best_of_scores,
    joined,
    offer_border,
    raised,
)
from plait.dp.pairs.gpu_packed import (
    PackedQuery,
    PackedTargets,
    multiprocessors,
    packed_bytes,
    packed_scores,
)
from plait.dp.pairs.gpu_wide import (
    BLOCKS,
    SHARED,
    WARPS,
    DeviceTexts,
    WideMemory,
    WideQuery,
    WideSetup,
    wide_scores,
    wide_serves,
)
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.launches import BLOCK_SCORES
from plait.errors import DeviceMemoryError
from plait.lang.packed import PACKED_LIMIT
from plait.settings import thread_count

#: Lanes of a block of a database, and columns of a tile.
LANES = 64
TILE = 64

_Result = TypeVar("_Result")
_DEVICE = "cuda"
_FIX = "close other programs that use the device, or use device='cpu'"

#: Parts of a database that a device holds at a time: one is computed with, while others come and go.
_SLOTS = 3
#: Share of the free memory that is used: the rest is for kernels and what the driver needs.
_USED = 0.8
#: Bytes of a part that are sent at a time; there is room for two.
_PIECE = 1 << 23
#: Bytes of an array that stays on a device when the targets are gone.
_SMALL = 1 << 18
#: Residues of a part at the most: enough to keep a device busy, and the host is done with it soon.
_RESIDUES = 1 << 26
#: Residues of the first part, which a device is busy with until the next one is there, and those that are
#: worth a device of their own.
_FIRST_RESIDUES = 1 << 24
_LEAST_RESIDUES = 1 << 20
#: Residues of all queries from which on kernels take longer than to send the targets.
_BUSY_ROWS = 1 << 11
#: Bytes that a residue which is there takes, with what is found of it.
_KEPT_BYTES = 4
#: Bytes for each target besides its residues: start, length, number, scores.
_TARGET_BYTES = 8 + 4 + 4 + 4 * 64
#: Bytes for each column of a warp that keeps the last row of a stripe.
_COLUMN_BYTES = 8


class SearchPlan(NamedTuple):
    """What each of several parts of a database may take of a device.

    `slots` parts at a time, `bytes` for one of them, `piece` bytes sent at a time, at most `residues` in one.
    """

    slots: int
    bytes: int
    piece: int
    residues: int


def plan_search(free: int) -> SearchPlan:
    """Parts for a device with so many free bytes; `DeviceMemoryError` if they are too few for anything."""
    piece = min(_PIECE, 1 << max(free // 64, 1).bit_length() - 1)
    own = int(free * _USED) // _SLOTS - 2 * piece
    if own < 1 << 16:
        raise DeviceMemoryError(_DEVICE, needed=None, free=free, fix=_FIX)
    return SearchPlan(_SLOTS, own, piece, min(_RESIDUES, own // 4))


def shares_of(
    lengths: NDArray[np.integer],
    plan: SearchPlan,
    needs: Callable[[int, int], int],
    devices: int = 0,
    before: int = 0,
) -> list[tuple[int, int]]:
    """Shares of neighbouring blocks of targets that fit into a slot: (first block, one after the last).

    `lengths` is (blocks, lanes). ``needs(targets, residues)`` is what a kernel needs in bytes beyond the
    residues themselves. With `devices`, every one of them gets as many shares as the others, of like sizes,
    the first ones small, but for `before` that were cut already, so that it computes while the next ones are
    on their way. `DeviceMemoryError` if one block is too large on its own.
    """
    residues = np.concatenate([[0], np.cumsum(lengths.sum(axis=1, dtype=np.int64))])
    targets = np.concatenate([[0], np.cumsum((lengths > 0).sum(axis=1, dtype=np.int64))])

    def size(first: int, last: int) -> int:
        count, total = int(targets[last] - targets[first]), int(residues[last] - residues[first])
        return 2 * total + _TARGET_BYTES * count + needs(count, total)

    shares: list[tuple[int, int]] = []
    first, most = 0, plan.residues
    while first < len(lengths):
        if devices and len(shares) % devices == 0:
            own = int(residues[-1] - residues[first]) // devices
            # Blocks are not cut, so shares come out a little smaller.
            own = max(own + own // 64 + 1, _LEAST_RESIDUES)
            most = min(plan.residues, own, _FIRST_RESIDUES << (before + len(shares)) // devices)
        last = int(np.searchsorted(residues, residues[first] + most, "right")) - 1
        last = max(last, first + 1)
        while last > first + 1 and size(first, last) > plan.bytes:
            last = first + (last - first) // 2
        if size(first, last) > plan.bytes:
            raise DeviceMemoryError(_DEVICE, needed=size(first, last), free=plan.bytes, fix=_FIX)
        shares.append((first, last))
        first = last
    return shares


def shares_in_turn(
    lengths: NDArray[np.integer], plan: SearchPlan, needs: Callable[[int, int], int], devices: int
) -> list[tuple[int, int]]:
    """The same for so many devices, in the order in which they are best sent.

    The longest targets, which come first, are too few to keep a device busy: small shares are of the middle.
    """
    residues = np.append(0, np.cumsum(lengths.sum(axis=1, dtype=np.int64)))
    if residues[-1] <= 2 * devices * _FIRST_RESIDUES:
        return shares_of(lengths, plan, needs, devices)
    first = int(np.searchsorted(residues, residues[-1] // 2, "right")) - 1
    shares = [(first + one, first + other) for one, other in shares_of(lengths[first:], plan, needs, devices)]
    shares = shares[:devices]
    for begin, end in ((0, first), (shares[-1][1], len(lengths))):
        own = shares_of(lengths[begin:end], plan, needs, devices, len(shares))
        shares += [(begin + one, begin + other) for one, other in own]
    return shares


def wide_warps(multiprocessors: int, chosen: int, columns: int, stripes: int, most: int) -> int:
    """Warps for the kernel of 32-bit scores: each needs memory for a row if there are several stripes.

    `chosen` is the number of targets, at least 1, `columns` the residues of the longest; rows may take `most`
    bytes. `DeviceMemoryError` if there is no room for any.
    """
    warps = min(multiprocessors * BLOCKS * WARPS, chosen)
    if stripes > 1:
        room = most // (_COLUMN_BYTES * columns)
        if not room:
            raise DeviceMemoryError(_DEVICE, needed=_COLUMN_BYTES * columns, free=most, fix=_FIX)
        warps = min(warps, room)
    # Whole blocks of threads, since all of their warps take targets.
    return warps if warps < WARPS else warps // WARPS * WARPS


class Tiles(NamedTuple):
    """Stretches of up to `TILE` columns of a block, in order; int64, with one entry more for the end.

    `rows` is the first row of each in the packed columns, `columns` its first column within its block.
    """

    rows: NDArray[np.int64]
    blocks: NDArray[np.int64]
    columns: NDArray[np.int64]


def tiles_of(first_columns: NDArray[np.int64]) -> Tiles:
    """The tiles of blocks, of which `first_columns`, (blocks + 1,), are the offsets."""
    widths = np.diff(first_columns)
    counts = -(-widths // TILE)
    blocks = np.repeat(np.arange(widths.size), counts)
    within = np.arange(blocks.size) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = within * TILE
    rows = np.append(first_columns[blocks] + columns, first_columns[-1])
    return Tiles(rows, np.append(blocks, widths.size), np.append(columns, 0))


#: Threads that work on a tile.
THREADS = 256
_WORDS = LANES // 4
#: Bytes of a row of a tile in shared memory: an odd number of words keeps the threads of a warp apart.
_ROW = LANES + 4
_SHARED = TILE * _ROW // 4


@cuda_kernel()
def untangle(words, tiles, starts, codes):  # type: ignore[no-untyped-def]
    """Write the residues of tiles to where each target has them; a block of 256 threads for each tile.

    `words` are packed columns, four lanes a word, from the first tile on; `tiles` the fields of `Tiles`;
    `starts` where the target of each lane of each block starts in `codes`, and the end of the last; `codes`,
    written to, all targets in one array.
    """
    shared = cuda.shared.array(_SHARED, np.uint32)
    thread = np.int32(cuda.threadIdx.x)
    tile = cuda.blockIdx.x
    size = np.int32(tiles[0, tile + 1] - tiles[0, tile])
    row = (tiles[0, tile] - tiles[0, 0]) * _WORDS
    for k in range(thread, size * _WORDS, THREADS):
        shared[k // _WORDS * (_ROW // 4) + k % _WORDS] = words[row + k]
    cuda.syncthreads()
    block = tiles[1, tile] * LANES
    column = tiles[2, tile]
    for k in range(thread, LANES * TILE, THREADS):
        lane, at = np.int32(k // TILE), np.int32(k % TILE)
        place = starts[block + lane] + column + at
        if at < size and place < starts[block + lane + 1]:
            word = shared[at * (_ROW // 4) + lane // 4]
            codes[place] = np.uint8(word >> np.uint32(8 * (lane % 4)) & np.uint32(255))


#: Threads of a block that looks for the best.
FINDERS = 512
_BINS = PACKED_LIMIT + 1


@cuda_kernel()
def find_best(out, least, most, counters, places, scores):  # type: ignore[no-untyped-def]
    """Targets of each query that may be among its `most` best, in no order; a block for each.

    They score no less than the last of these, and `least`, (queries,), which is at most `PACKED_LIMIT`. The
    second row of `counters` says how many they are, and `places` and `scores`, (queries, room), which, as far
    as there is room.
    """
    bins = cuda.shared.array(_BINS, np.int32)
    row = cuda.blockIdx.x
    for k in range(cuda.threadIdx.x, _BINS, FINDERS):
        bins[k] = 0
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, out.shape[1], FINDERS):
        cuda.atomic.add(bins, min(out[row, k], PACKED_LIMIT), 1)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        score = np.int32(PACKED_LIMIT)
        above = bins[score]
        while score > least[row] and above < most:
            score -= 1
            above += bins[score]
        bins[0] = score
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, out.shape[1], FINDERS):
        if out[row, k] >= bins[0]:
            place = cuda.atomic.add(counters, (1, row), 1)
            if place < places.shape[1]:
                places[row, place] = k
                scores[row, place] = out[row, k]


#: Residues of queries whose packed form is kept, as it takes a while to make.
_KEPT_RESIDUES: Final = 1 << 20
#: Queries whose scores with all targets come to the host at a time, and that are launched together where
#: only those of the best come. Of these, room for so many that are equal.
_DENSE: Final = 4
_TOGETHER: Final = 64
_TIED: Final = 1 << 10
#: Of the memory of a slot, the share that rows between stripes may take.
_ROWS_SHARE: Final = 4


class QueryForms:
    """A query in the forms that kernels take; `served`: the GPU can hold its scores.

    `longest` is the longest target's residues.
    """

    def __init__(self, query: BlockQuery, longest: int) -> None:
        self.query, self._longest = query, longest
        self.served = wide_serves(query, longest)
        #: For packed lanes, or None.
        self.packed: PackedQuery | None = None
        if self.served and query.free.local:
            form = PackedQuery(query.rows.astype(np.uint8), query.scores, query.gap_open, query.gap_extend)
            self.packed = form if form.possible else None

    @functools.cached_property
    def wide(self) -> WideSetup:
        """For 32 bits; to be asked for only if it is `served`."""
        return WideSetup(self.query, self._longest)


def _alike(forms: Sequence[QueryForms], most: int) -> Iterator[list[QueryForms]]:
    """Up to so many neighbouring queries at a time that all are for packed lanes, or none of them."""
    for _, own in groupby(forms, lambda form: form.packed is None):
        alike = list(own)
        yield from (alike[first : first + most] for first in range(0, len(alike), most))


class _Forms:
    """Forms of the queries that were used last: they serve all parts of a database."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int], QueryForms] = OrderedDict()
        self._residues = 0
        self._lock = threading.Lock()

    def of(self, queries: Sequence[BlockQuery], longest: int) -> list[QueryForms]:
        with self._lock:
            return [self._of(query, longest) for query in queries]

    def _of(self, query: BlockQuery, longest: int) -> QueryForms:
        # No local score is of more pairs than the query has residues. What is kept has the query, so that no
        # other can have its number.
        key = id(query), query.rows.size if query.free.local else longest
        if key not in self._kept:
            self._kept[key] = QueryForms(query, key[1])
            self._residues += query.rows.size
        self._kept.move_to_end(key)
        while self._residues > _KEPT_RESIDUES and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._residues -= oldest.query.rows.size
        return self._kept[key]


_FORMS: Final = _Forms()
_NOTHING: Final = BestLanes(*np.zeros((3, 0), np.int64))
#: Who sends a part to each device.
_TURNS: Final[defaultdict[int, threading.Lock]] = defaultdict(threading.Lock)


class OnDevice(NamedTuple):
    """Targets on a device.

    `texts` are codes and the place of each lane, those without a target too; `offsets` int64 on the host, one
    more than targets; `used` the lanes with a target; `layout` that of the packed kernel, once it was needed.
    """

    texts: DeviceTexts
    offsets: NDArray[np.int64]
    used: NDArray[np.int64]
    layout: list[Any]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Residues of each target."""
        lengths: NDArray[np.int64] = np.diff(self.offsets)
        return lengths


class _Started(NamedTuple):
    """Scores of queries on their way to the host, those of packed lanes, or none of them.

    Of the best, `found` are counters, places and scores (`find_best`), `first` is the number of the first
    query, and all scores stay on the device.
    """

    forms: Sequence[QueryForms]
    found: Any
    done: Any
    first: int = 0
    scores: Any = None


def one_behind(
    starts: Iterator[_Started], finish: Callable[[_Started], Iterator[_Result]]
) -> Iterator[_Result]:
    """What was started, each finished when the next is started, too."""
    before: _Started | None = None
    for started in starts:
        if before is not None:
            yield from finish(before)
        before = started
    if before is not None:
        yield from finish(before)


class SearchSlot(SlotArrays):
    """Memory of a device for one part, and a stream; for one thread at a time, which has the device."""

    #: The packed columns of which it has a part, as long as they are there and nobody may write to them.
    columns: Callable[[], NDArray[np.uint8] | None] = staticmethod(lambda: None)
    _held: tuple[list[bytes], OnDevice]

    def holds(self, part: TargetBlocks) -> bool:
        """Whether its targets are these, from before."""
        return self.columns() is part.packed and self._held[0] == [own.tobytes() for own in part[1:]]

    def send(self, part: TargetBlocks, used: NDArray[np.int64], piece: int) -> OnDevice:
        """Bring targets to the device, unless they are there, `piece` bytes at a time.

        `used` are the lanes with a target.
        """
        if self.holds(part):
            return self._held[1]
        self.columns = lambda: None
        packed, first_columns, lengths = part
        starts = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths.ravel(), out=starts[1:])
        where = self.upload("starts", starts)
        if packed.shape[1] != LANES:
            texts = DeviceTexts(self.upload("codes", _in_line(part)), where)
            return OnDevice(texts, np.append(starts[used], starts[-1]), used, [])
        texts = DeviceTexts(self.room("codes", int(starts[-1]), np.uint8), where)
        tiles = tiles_of(first_columns)
        sent = self.upload("tiles", np.concatenate(tiles)).reshape(len(tiles), tiles.rows.size)
        columns = packed[first_columns[0] : first_columns[-1]].reshape(-1)
        words = self.room("columns", columns.size, np.uint8)
        for number, first in enumerate(range(0, columns.size, piece)):
            self.stage(columns[first : first + piece], words[first : first + piece], number)
        rest = (sent, texts.starts, texts.codes)
        untangle.launch(tiles.rows.size - 1, THREADS, words.view(np.uint32), *rest, stream=self.stream)
        there = OnDevice(texts, np.append(starts[used], starts[-1]), used, [])
        if not packed.flags.writeable:
            self.columns = weakref.ref(packed, partial(self._forget, current_device()))
            self._held = [own.tobytes() for own in part[1:]], there
        return there

    def _forget(self, device: int, _: object) -> None:
        """Give back the memory of targets that are gone."""
        if not sys.is_finalizing():
            with on_device(device):
                # To give back, and to ask for, many small arrays takes longer than to send a part.
                for name in [name for name, (own, _) in self._on_device.items() if own.nbytes > _SMALL]:
                    del self._on_device[name]
                del self._held
                free_memory()

    def dense(self, forms: Sequence[QueryForms], targets: OnDevice) -> Iterator[_Started]:
        """Start scores with all of the targets, of some of the queries at a time."""
        for number, some in enumerate(_alike(forms, _DENSE)):
            yield self._start(some, targets, number % 2)

    def _packed(self, forms: Sequence[QueryForms], targets: OnDevice, out: Any) -> Any:
        """Start the packed kernels."""
        if not targets.layout:
            targets.layout.append(PackedTargets(targets.texts.codes, targets.offsets, self))
        queries = [form.packed for form in forms if form.packed is not None]
        return packed_scores(queries, targets.layout[0], out)

    def _start(self, forms: Sequence[QueryForms], targets: OnDevice, half: int) -> _Started:
        shape = len(forms), targets.used.size
        if forms[0].packed is None:
            return _Started(forms, np.full(shape, PACKED_LIMIT, np.int32), None)
        out = self.room(f"packed scores {half}", shape, np.int32)
        self._packed(forms, targets, out)
        return _Started(forms, *self.fetch(f"packed scores {half}", out))

    def scores(self, started: _Started, targets: OnDevice, most: int) -> Iterator[NDArray[np.integer]]:
        """Those of each query, to be copied before the next are asked for; a kernel may need `most` bytes."""
        if started.done is not None:
            started.done.synchronize()
        for form, found in zip(started.forms, started.found, strict=True):
            self._exact(form, targets, found, None, most)
            yield found

    def _exact(
        self,
        form: QueryForms,
        targets: OnDevice,
        scores: NDArray[np.integer],
        which: NDArray[Any] | None,
        most: int,
    ) -> None:
        """Change the scores of some or all targets that packed lanes could not hold to those of 32 bits."""
        again = np.flatnonzero(scores >= PACKED_LIMIT)
        if again.size:
            scores[again] = self._wide(form, targets, again if which is None else which[again], most)

    def starts(self, forms: Sequence[QueryForms], targets: OnDevice, batch: BestBatch) -> Iterator[_Started]:
        """Start looking for the targets that may be among the best, of some of the queries at a time."""
        # Of one size: while others compute, what few queries have found would be taken over too late.
        step = -(-len(forms) // -(-len(forms) // _TOGETHER))
        for first in range(0, len(forms), step):
            some, half = forms[first : first + step], first // step % 2
            shape = len(some), targets.used.size
            out = self.room(f"packed scores {half}", shape, np.int32)
            counters = self._packed(some, targets, out)
            room = min(shape[1], 2 * batch.most + _TIED)
            places, scores = (self.room(name, (shape[0], room), np.int32) for name in ("places", "best"))
            floors = self.upload("floors", np.array(batch.least[first : first + step], np.int32))
            given = floors, np.int32(batch.most), counters, places, scores
            find_best.launch(shape[0], FINDERS, out, *given, stream=self.stream)
            names = zip(("counters", "places", "best"), (counters, places, scores), strict=True)
            found, done = zip(*(self.fetch(f"{name} {half}", array) for name, array in names), strict=True)
            yield _Started(some, found, done[-1], first, out)

    def best(self, started: _Started, targets: OnDevice, batch: BestBatch, most: int) -> Iterator[BestLanes]:
        """What was found; lanes are numbers of targets."""
        forms, (counted, place, score), done, first, out = started
        done.synchronize()
        counts = counted[1]
        everywhere = np.flatnonzero(counts > place.shape[1])
        here = np.where(counts > place.shape[1], 0, counts)[:, np.newaxis] > np.arange(place.shape[1])
        queries = np.nonzero(here)[0]
        some = BestLanes(queries + first, place[here].astype(np.int64), score[here].astype(np.int64))
        for k in sorted({*queries[some.scores >= PACKED_LIMIT].tolist()}):
            own = slice(*np.searchsorted(queries, (k, k + 1)))
            self._exact(forms[k], targets, some.scores[own], some.lanes[own], most)
        yield some
        for k in everywhere.tolist():
            # Too many are equal: all of them come. What is not exact is equal, too.
            everything = self.download("all scores", out[k])
            self.wait()
            known = np.minimum(everything, PACKED_LIMIT).astype(np.int64)
            best = best_lanes(first + k, np.arange(out.shape[1]), known, batch)
            self._exact(forms[k], targets, best.scores, best.lanes, most)
            yield best

    def _wide(
        self, form: QueryForms, targets: OnDevice, which: NDArray[np.int64], most: int
    ) -> NDArray[np.int64]:
        """32-bit scores of some targets, the longest of which go first."""
        setup = form.wide
        lengths = targets.lengths[which]
        order = np.argsort(-lengths, kind="stable")
        chosen = self.upload("chosen", targets.used[which[order]].astype(np.int32))
        columns = int(lengths.max())
        rows = most // _ROWS_SHARE
        warps = wide_warps(multiprocessors(), which.size, columns, setup.stripes, rows)
        kept = (warps, columns) if setup.stripes > 1 else (1, 1)
        memory = WideMemory(
            self.room("row h", kept, np.int32),
            self.room("row f", kept, np.int32),
            self.upload("next", np.zeros(1, np.int32)),
        )
        query = WideQuery(
            *(
                self.upload(f"query {k}", values) if isinstance(values, np.ndarray) else values
                for k, values in enumerate(setup.query)
            )
        )
        out = self.room("wide scores", which.size, np.int32)
        blocks, threads = -(-warps // WARPS), 32 * min(warps, WARPS)
        arguments = (setup.gap, setup.algebras, query, targets.texts, chosen, memory, out)
        wide_scores.launch(blocks, threads, *arguments, stream=self.stream, shared=SHARED)
        found, done = self.fetch("wide scores", out)
        done.synchronize()
        scores = np.empty(which.size, np.int64)
        scores[order] = found
        return scores


def _in_line(part: TargetBlocks) -> NDArray[np.uint8]:
    """All residues one target behind the other, for blocks of another number of lanes."""
    packed, first_columns, lengths = part
    if packed.shape[1] == 1 and np.array_equal(np.diff(first_columns), lengths[:, 0]):
        return packed[first_columns[0] : first_columns[-1], 0]
    pieces = [
        packed[start : start + size, lane]
        for start, row in zip(first_columns[:-1].tolist(), lengths.tolist(), strict=True)
        for lane, size in enumerate(row)
    ]
    return np.concatenate([np.zeros(0, np.uint8), *pieces])


class Slots(SlotPool[SearchSlot]):
    """All slots of this process."""

    def __init__(self) -> None:
        # The simulator runs one kernel at a time.
        super().__init__(SearchSlot, 1 if SIMULATED else _SLOTS)
        self._plans: dict[int, SearchPlan] = {}

    def plan(self, devices: Sequence[int]) -> SearchPlan:
        """What every one of these devices can hold."""
        with self._changed:
            for device in devices:
                if device not in self._plans:
                    with on_device(device):
                        self._plans[device] = plan_search(free_memory())._replace(slots=self._most)
            return min((self._plans[device] for device in devices), key=lambda plan: plan.bytes)

    def _choose(self, devices: Sequence[int], what: TargetBlocks) -> tuple[int, SearchSlot | None]:
        """One that holds these targets, or one of the device that has the fewest in use, if any is free.

        None of several devices gets more because of what it holds. What may be wanted again is spared while
        it takes about as much memory as one part may.
        """
        device = min(devices, key=lambda number: self._used[number])
        near = [number for number in devices if self._used[number] < self._most - (len(devices) > 1)]
        for number, slot in [(n, slot) for n in near for slot in self._free[n] if slot.holds(what)]:
            self._free[number].remove(slot)
            return number, slot
        free, plan = self._free[device], self.plan(devices)
        kept = [slot.columns() is not None for slot in free]
        if all(kept) and len(kept) < plan.bytes // (_KEPT_BYTES * plan.residues):
            return device, None
        # One that holds nothing any more, or the one that was used least of late.
        return device, free.pop(kept.index(min(kept)))


#: Those of this process.
SLOTS: Final = Slots()


def score_batch(batch: BlockBatch, target: CudaTarget) -> list[NDArray[np.int64]]:
    """Best scores of queries with the targets of blocks.

    Shape of ``blocks.lengths``; lanes without a target hold any value. Blocks have 64 lanes, or one for a
    target on its own; `progress` is told the cells of each part. `Unsupported` if scores could reach 2^31 or
    a target is too long for a device, `DeviceMemoryError` if memory does not suffice.
    """
    queries, blocks, progress, *_, ranges = batch
    if ranges is not None and np.any(ranges != (0, len(blocks.lengths))):
        ones = zip(queries, map(blocks.between, *ranges.T.tolist()), strict=True)
        return [score_batch(BlockBatch([query], part), target)[0] for query, part in ones]
    devices = target.devices
    longest = int(blocks.lengths.max(initial=0))
    forms = _FORMS.of(queries, longest)
    scores = [np.zeros(blocks.lengths.shape, np.int64) for _ in queries]
    served = [k for k, form in enumerate(forms) if form.served]
    for k in sorted({*range(len(forms))} - {*served}):
        (scores[k],) = target.host.launch(
            BLOCK_SCORES, BlockBatch([queries[k]], blocks, progress, thread_count())
        )
    if not served or not longest:
        return scores
    plan = SLOTS.plan(devices)
    sizes = [queries[k].rows.size for k in served]
    # With few rows devices wait for parts, which several threads send faster than one.
    in_turn = sum(sizes) >= _BUSY_ROWS

    def on_slot(slot: SearchSlot, part: TargetBlocks, first: int) -> None:
        used = np.flatnonzero(part.lengths)
        if used.size:
            start = partial(slot.dense, [forms[k] for k in served])
            targets, begun = _begun(slot, part, used, plan.piece, start, in_turn)
            found = one_behind(begun, lambda started: slot.scores(started, targets, plan.bytes))
            # As a slice, where lanes without a target stand last: that is ten times as fast.
            place: Any = slice(used.size) if used[-1] < used.size else used
            for k, own in zip(served, found, strict=True):
                scores[k][first : first + len(part.lengths)].ravel()[place] = own

    def run(share: tuple[int, int]) -> None:
        _with_memory(devices, on_slot, blocks.between(*share), share[0])
        residues = int(blocks.lengths[slice(*share)].sum(dtype=np.int64))
        progress(residues * sum(sizes))

    needs = partial(packed_bytes, m=max(sizes), longest=longest)
    shares = shares_in_turn(blocks.lengths, plan, needs, len(devices))
    over_threads(min(len(shares), plan.slots * len(devices)), shares, run)
    for k in served:
        # Local scores are 0 at the least as they are.
        if not queries[k].free.local:
            offer_border(queries[k], blocks.lengths, scores[k])
    return scores


def best_batch(batch: BestBatch, target: CudaTarget) -> BestLanes:
    """See `plait.dp.pairs.launches`. All targets go to one device, if they fit: others have other batches."""
    queries, blocks, least, most = batch
    longest = int(blocks.lengths.max(initial=0))
    forms = _FORMS.of(queries, longest)
    packed = all(form.served and form.query.free.local for form in forms)
    if not packed or blocks.packed.shape[1] != LANES:
        return best_of_scores(score_batch(BlockBatch(queries, blocks), target), batch)
    found = [_NOTHING]
    plan = SLOTS.plan(target.devices)
    # As far as packed lanes can tell.
    held = batch._replace(least=np.clip(least, 0, PACKED_LIMIT).tolist())

    def on_slot(slot: SearchSlot, part: TargetBlocks, first: int) -> None:
        used = np.flatnonzero(part.lengths)
        if used.size:
            start = partial(slot.starts, forms, batch=held)
            targets, begun = _begun(slot, part, used, plan.piece, start)
            best = one_behind(begun, lambda started: slot.best(started, targets, held, plan.bytes))
            numbers, which, scores = joined([_NOTHING, *best])
            found.append(BestLanes(numbers, first * LANES + used[which], scores))

    needs = partial(packed_bytes, m=max(query.rows.size for query in queries), longest=longest)
    for share in shares_of(blocks.lengths, plan, needs):
        _with_memory(target.devices, on_slot, blocks.between(*share), share[0])
    # Of all parts, and with those that packed lanes could not hold.
    every = joined(found)
    best = every.scores >= raised(every.queries, every.scores, np.array(least), most)[every.queries]
    return BestLanes(*(column[best] for column in every))


def _begun(
    slot: SearchSlot,
    part: TargetBlocks,
    used: NDArray[np.int64],
    piece: int,
    start: Callable[[OnDevice], Iterator[_Started]],
    in_turn: bool = True,
) -> tuple[OnDevice, Iterator[_Started]]:
    """Send targets, and begin; `in_turn`: the next are sent when there is something to do for the device."""
    with _TURNS[current_device()] if in_turn else contextlib.nullcontext():
        targets = slot.send(part, used, piece)
        starts = start(targets)
        return targets, chain([next(starts)], starts)


def _with_memory(devices: Sequence[int], run: Callable[..., None], part: TargetBlocks, first: int) -> None:
    """Do something with a part, from its first block on, with half of it at a time where memory is short."""
    try:
        with SLOTS.slot(devices, part) as slot:
            run(slot, part, first)
        return
    except DeviceMemoryError:
        SLOTS.release()
        if len(part.lengths) == 1:
            raise
    half = len(part.lengths) // 2
    _with_memory(devices, run, part.between(0, half), first)
    _with_memory(devices, run, part.between(half, len(part.lengths)), first + half)
