"""Path counts on GPUs: batches cut into pieces, copied, counted and copied back, several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import POOL, SLOTS, Plan, Slot, kept, over_devices, plan_for, uploaded
from plait.devices.cuda_target import CudaTarget
from plait.dp.chain.gpu_count import WarpMemory, chain_of_warp, models_of
from plait.dp.chain.gpu_tables import WarpTables, own_symbols, warp_serves, warp_tables
from plait.dp.chain.launches import PATH_COUNTS, CountBatch
from plait.dp.chain.rows import Kind, PerModel
from plait.dp.chain.tables import ChainOutput, ChainTables, Junctions
from plait.lang.warps import WARP, lane_index

_WORDS, _HALVES, _OCTETS = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint8)


class DeviceJunctions(NamedTuple):
    """`plait.dp.chain.tables.Junctions` in fewer bytes.

    `symbols` uint8 (total,), `start` int32 (n,); `length`, `v` and `j` uint16 (n,).
    """

    symbols: Any
    start: Any
    length: Any
    v: Any
    j: Any


class DeviceCounts(NamedTuple):
    """The arrays of `plait.dp.chain.tables.ChainOutput` that a chain of one D gene has."""

    full: Any
    empty: Any
    none: Any
    regions: Any
    bound: Any


class ChainRoom(NamedTuple):
    """Elements of each array of `plait.dp.chain.gpu_count.WarpMemory`, for one warp.

    `places` and `rising` of 64 bits, `window` (there are two) and `corners` of 32; `masks` and `arms` are
    bytes.
    """

    places: Any
    rising: Any
    window: Any
    corners: Any
    masks: Any
    arms: Any

    @property
    def bytes(self) -> int:
        """Bytes for a warp."""
        return int(
            8 * (self.places + self.rising) + 4 * (2 * self.window + self.corners) + self.masks + self.arms
        )


def room_of(levels: int, patterns: int, by_model: bool, longest: int) -> ChainRoom:
    """Shared memory of a warp for texts of up to `longest` symbols.

    `levels` is one more than the most insertions; `by_model`: whether a row is one value per model.
    """
    symbols = (longest + WARP) // WARP * WARP
    window = (levels + longest + 1) * patterns
    return ChainRoom(
        places=np.int32(symbols + 2 * WARP),
        rising=np.int32(0 if by_model else levels),
        window=np.int32(window if by_model else 0),
        corners=np.int32(0 if by_model else levels),
        masks=np.int32(symbols),
        arms=np.int32(symbols if by_model else 0),
    )


@cuda_kernel(max_registers=64)
def count_texts(rows: Any, alg: Any, tables: Any, texts: Any, out: Any, room: Any, step: Any) -> None:
    """Count all texts; `step` models at a time."""
    warps = cuda.blockDim.x // WARP
    warp = cuda.threadIdx.x // WARP
    words = cuda.shared.array(0, _WORDS)
    halves = cuda.shared.array(0, _HALVES)
    octets = cuda.shared.array(0, _OCTETS)
    place = warp * (room.places + room.rising)
    half = 2 * warps * (room.places + room.rising) + warp * (2 * room.window + room.corners)
    octet = (
        warps * (8 * (room.places + room.rising) + 4 * (2 * room.window + room.corners))
        + warp * (room.masks + room.arms)
    )  # fmt: skip
    memory = WarpMemory(
        masks=octets[octet : octet + room.masks],
        arms=octets[octet + room.masks : octet + room.masks + room.arms],
        places=words[place : place + room.places],
        left=halves[half : half + room.window],
        right=halves[half + room.window : half + 2 * room.window],
        corners=halves[half + 2 * room.window : half + 2 * room.window + room.corners],
        rising=words[place + room.places : place + room.places + room.rising],
    )
    for model in range(0, tables.out_lane.size, step):
        models = models_of(tables, model, lane_index())
        for item in range(cuda.blockIdx.x * warps + warp, texts.start.size, cuda.gridDim.x * warps):
            chain_of_warp(rows, alg, tables, texts, item, models, memory, out)


#: Bytes of results of a piece: enough to keep a device busy, few enough for several to be on their way.
_PIECE: Final = 64 << 20
#: Fewest texts worth a piece, and a thread, of their own.
_LEAST: Final = 1 << 16
#: Warps of a block.
_WARPS: Final = 4
#: Most blocks of a launch: enough for every device to have several waves of them.
_BLOCKS: Final = 1 << 14
#: Longest text that the GPU counts; hardly any junction is longer.
_LONGEST: Final = 128
#: Most bytes of shared memory of a block: what every device has without being asked for more.
_SHARED: Final = 48 << 10
#: Most V ends or J ends that `DeviceJunctions` can tell apart.
_ENDS: Final = 1 << 16


def serves(kind: Kind, alg: Any, tables: ChainTables) -> bool:
    """Whether the GPU counts this; the CPU has to where it does not.

    It does not where two D genes are joined, where counts stick at a limit or are no integers, and where
    limits are so large that weights leave 32 bits, or running sums shared memory.
    """
    if not warp_serves(kind, alg, tables):
        return False
    by_model = isinstance(kind.rows, PerModel)
    room = room_of(int(kind.insertion.levels), int(tables.level_step) if by_model else 1, by_model, _LONGEST)
    ends = max(tables.v_length.size, tables.j_length.size)
    return _WARPS * room.bytes <= _SHARED and ends <= _ENDS


class ChainLaunch:
    """A chain on a device, ready to be run on texts that are there; for the device that is current."""

    def __init__(self, kind: Kind, alg: Any, tables: ChainTables) -> None:
        self.kind = kind
        self.alg = alg
        self.by_model = isinstance(kind.rows, PerModel)
        self.tables: WarpTables = uploaded(warp_tables(kind, tables))
        patterns, models = int(self.tables.patterns), int(tables.out_lane.size)
        self._step = np.int32(2 * (WARP // patterns * patterns) if self.by_model else models)

    def launch(self, texts: DeviceJunctions, out: DeviceCounts, longest: int, stream: Any = 0) -> None:
        """Count texts of the device, at least one, none longer than `longest`.

        `out` is overwritten; the bound of what is left to the CPU is NaN.
        """
        room = room_of(int(self.tables.levels), int(self.tables.patterns), self.by_model, longest)
        blocks = min(-(-int(texts.start.size) // _WARPS), _BLOCKS)
        count_texts.launch(
            blocks, _WARPS * WARP, self.kind.rows, self.alg, self.tables, texts, out, room, self._step,
            stream=stream, shared=_WARPS * room.bytes,
        )  # fmt: skip


def count_batch(batch: CountBatch, target: CudaTarget) -> ChainOutput | None:
    """Fill ``batch.out``, pieces of the batch in parallel on devices; None where this module does not serve.

    The target's host counts the texts that the kernel leaves.
    """
    kind, alg, tables, texts, out = batch
    if not serves(kind, alg, tables):
        return None
    if not texts.start.size:
        return out
    cut = _plan(target.devices, texts, out)

    def run(device: int, piece: tuple[int, int]) -> None:
        launch = kept(device, tables, lambda: ChainLaunch(kind, alg, tables))
        with POOL.slot([device]) as slot:
            _count(slot, launch, texts, out, *piece)

    over_devices(target.devices * cut.slots, cut.pieces, run)
    left = np.flatnonzero(np.isnan(out.bound) | (texts.length > _LONGEST))
    if left.size:
        own = ChainOutput(*(np.empty((left.size, *field.shape[1:]), field.dtype) for field in out))
        counted = target.host.launch(PATH_COUNTS, batch._replace(texts=texts.take(left), out=own))
        for whole, values in zip(out, counted, strict=True):
            whole[left] = values
    return out


def _plan(devices: Sequence[int], texts: Junctions, out: ChainOutput) -> Plan:
    """Pieces of a batch, several of which fit the memory of each device."""
    count = texts.start.size
    results = sum(getattr(out, name)[:1].nbytes for name in DeviceCounts._fields)
    # Symbols may be shared, and texts between those of a piece: `_piece_of` keeps to twice the mean.
    each = results + 10 + 2 * -(-int(np.minimum(texts.length, _LONGEST).sum()) // count)
    return plan_for(devices, count, each, max(1, _PIECE // results), _LEAST, SLOTS)


def _count(
    slot: Slot, launch: ChainLaunch, texts: Junctions, out: ChainOutput, first: int, last: int
) -> None:
    """Count a piece, and wait for it."""
    part = _piece_of(texts, first, last)
    ends = slot.upload("ends", np.stack([part.length, part.v, part.j]).astype(np.uint16))
    start = slot.upload("start", part.start.astype(np.int32))
    symbols = slot.upload("symbols", part.symbols if part.symbols.size else np.zeros(1, np.uint8))
    names = [name for name in DeviceCounts._fields if name != "bound"]
    wanted = [getattr(out, name)[first:last] for name in names]
    # All integers are copied back at once: threads that wait for each other at every call copy little.
    edges = list(accumulate((values.size for values in wanted), initial=0))
    counts, bound = slot.room("counts", edges[-1], np.int64), slot.room("bound", last - first, np.float64)
    found = [
        counts[a:b].reshape(values.shape) if a < b else cuda.device_array(values.shape, np.int64)
        for values, (a, b) in zip(wanted, pairwise(edges), strict=True)
    ]
    there = DeviceJunctions(symbols, start, ends[0], ends[1], ends[2])
    counted = DeviceCounts(**dict(zip(names, found, strict=True)), bound=bound)
    launch.launch(there, counted, int(part.length.max(initial=0)), slot.stream)
    here, bounds = slot.download("counts", counts), slot.download("bound", bound)
    slot.wait()
    for values, (a, b) in zip(wanted, pairwise(edges), strict=True):
        np.copyto(values, here[a:b].reshape(values.shape))
    out.bound[first:last] = bounds


def _piece_of(texts: Junctions, first: int, last: int) -> Junctions:
    """Some texts with their symbols alone; those that are too long are empty."""
    start, length, *ends = (field[first:last] for field in texts[1:])
    length = np.where(length > _LONGEST, 0, length)
    symbols, start = own_symbols(texts.symbols, start, length)
    return Junctions(symbols, start, length, *ends)
