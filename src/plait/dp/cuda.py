"""The CUDA target: schedules on NVIDIA GPUs, and on the CPU what a GPU does not gain from.

======================================= ==============================================================
on the GPU                              module
======================================= ==============================================================
path counts (dp1, dp2 with regions)     `plait.dp.chain.gpu_count_launch`
exhaustive enumeration                  `plait.dp.chain.gpu_enumerate_launch`
generation probabilities                `plait.dp.chain.gpu_weigh_launch`
scores of a query with many targets     `plait.dp.pairs.gpu_search`
one very long pair                      `plait.dp.pairs.gpu_long`
======================================= ==============================================================

Lists of short pairs, global alignments of a query with many targets (those of the best hits of a search
among them), counts that overflow 64 bits, and other sums in floating point run on the CPU. Results are those
of the CPU, bit for bit, or as near as their algebra states, so nobody needs to know where something ran.

Where a GPU was not asked for by name and fails, or lacks memory, the CPU does what it was to do.

Modules with kernels are imported when they are first needed, and with them the compiler.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.driver import probe, usable
from plait.devices.progress import Told
from plait.devices.trials import failed, has_left, leave
from plait.dp.chain.tables import ChainOutput, ChainTables, Texts
from plait.dp.chain.texts import GraphParts, WeightedTexts
from plait.dp.chain.weigh import WeightedChain
from plait.dp.cpu import CpuTarget
from plait.dp.pairs.blocks import SweepShape, TargetBlocks, cuda_shape
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.lists import PairList, PairResults, PairSetup
from plait.dp.pairs.tiles import Grid, LongPair, ManyTiles, Tile, TileSteps, Visit
from plait.dp.protocol import Target
from plait.errors import DeviceFailure, DeviceMemoryError, PlaitError
from plait.types import Availability

T = TypeVar("T")

#: Texts, cells of matrices, and strings of an enumeration that are worth the start of a device which was not
#: asked for by name.
_LEAST_TEXTS = 20_000
_LEAST_CELLS = 2_000_000_000
_LEAST_STRINGS = 1_000_000_000


class CudaTarget:
    """NVIDIA GPUs of this machine, by number.

    Batches are shared out over them, and results do not depend on how. `threads` are for what runs on the
    CPU. `sparing` leaves to the CPU small batches, which it has done before a GPU has started, and those with
    which a GPU fails: nobody asked for it by name.
    """

    def __init__(
        self, devices: Sequence[int] = (0,), threads: int | None = None, *, sparing: bool = False
    ) -> None:
        self.devices = tuple(devices)
        self.host = CpuTarget(threads)
        self.sparing = sparing

    @property
    def name(self) -> str:
        """Such as ``cuda:0``, or ``cuda:0,1``."""
        return "cuda:" + ",".join(map(str, self.devices))

    @property
    def description(self) -> str:
        """The name with those of the devices, for provenance."""
        names = {device.number: device.name for device in probe().devices}
        found = [names[number] for number in self.devices if number in names]
        told = f"{self.name} ({', '.join(dict.fromkeys(found))})" if found else self.name
        return f"{told} and cpu" if self.sparing and has_left(self.devices) else told

    def available(self) -> Availability:
        """Whether kernels can run, and if not, why."""
        return usable()

    def successor(self, error: PlaitError) -> Target | None:
        """The CPU, after an error of GPUs that nobody asked for by name; it is said once that they fail."""
        if not self.sparing or not isinstance(error, DeviceFailure | DeviceMemoryError):
            return None
        leave(self.devices, error)
        return self.host

    def run_chain(self, kind: Any, alg: Any, tables: ChainTables, texts: Texts, out: ChainOutput) -> None:
        """Fill `out`, on the GPU where that serves the model and the algebra."""

        def on_gpu() -> bool:
            from plait.dp.chain import gpu_count_launch as cuda_chain

            if not cuda_chain.serves(kind, alg, tables):
                return False
            cuda_chain.run_chain(self.devices, kind, alg, tables, texts, out, self.host)
            return True

        if not self._on_gpu(texts.start.size >= _LEAST_TEXTS, on_gpu):
            self.host.run_chain(kind, alg, tables, texts, out)

    def run_enumeration(self, tables: ChainTables, texts: Texts, most: int, out: Any) -> None:
        """Enumerate on the GPU, up to the number of insertions that it serves."""

        def on_gpu() -> bool:
            from plait.dp.chain import gpu_enumerate_launch as cuda_enumeration
            from plait.dp.chain.gpu_enumerate import MOST

            if most > MOST:
                return False
            cuda_enumeration.run_enumeration(self.devices, tables, texts, most, out)
            return True

        if not self._on_gpu(texts.start.size * 4**most >= _LEAST_STRINGS, on_gpu):
            self.host.run_enumeration(tables, texts, most, out)

    def run_weighted(
        self,
        chain: WeightedChain,
        parts: GraphParts,
        texts: WeightedTexts,
        plain: bool,
        out: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Weigh texts on the GPU, into `out`; returns those that are left to the CPU, which may be all.

        See `plait.dp.chain.gpu_weigh_launch.run_weighted`.
        """

        def on_gpu() -> NDArray[np.int64]:
            from plait.dp.chain import gpu_weigh_launch as cuda_weighted

            return cuda_weighted.run_weighted(self.devices, chain, parts, texts, plain, out)

        left = self._on_gpu(texts.start.size >= _LEAST_TEXTS, on_gpu)
        return np.arange(texts.start.size) if left is None else left

    def run_pairs(self, setup: PairSetup, task: PairList) -> PairResults:
        """Align the pairs of a list on the CPU."""
        return self.host.run_pairs(setup, task)

    def run_blocks(
        self, query: BlockQuery, blocks: TargetBlocks, progress: Callable[[int], None]
    ) -> NDArray[np.int64]:
        """Score a query against blocks of targets on the GPU."""
        cells = query.rows.size * int(blocks.lengths.sum(dtype=np.int64))
        told = Told(progress)

        def on_gpu() -> NDArray[np.int64]:
            from plait.dp.pairs import gpu_search as cuda_search

            return cuda_search.run_blocks(self.devices, query, blocks, told)

        found = self._on_gpu(cells >= _LEAST_CELLS, on_gpu)
        return self.host.run_blocks(query, blocks, told.again()) if found is None else found

    def sweep_shape(self) -> SweepShape:
        """Large tasks, several for each GPU, so that one computes while others are copied."""
        return cuda_shape(len(self.devices))

    def sweep_blocks(self, queries: Sequence[BlockQuery], blocks: TargetBlocks) -> list[NDArray[np.int64]]:
        """Score queries against blocks of targets, on whatever GPU is free."""
        rows = sum(query.rows.size for query in queries)

        def on_gpu() -> list[NDArray[np.int64]]:
            from plait.dp.pairs import gpu_search as cuda_search

            return cuda_search.sweep_blocks(self.devices, queries, blocks, lambda cells: None)

        found = self._on_gpu(rows * int(blocks.lengths.sum(dtype=np.int64)) >= _LEAST_CELLS, on_gpu)
        return self.host.sweep_blocks(queries, blocks) if found is None else found

    def trace_targets(self, query: BlockQuery, task: PairList) -> PairResults:
        """Align a query with many targets in global mode on the CPU."""
        return self.host.trace_targets(query, task)

    def tile_steps(self) -> TileSteps:
        """Steps for one long pair: the GPU sweeps it, the CPU the tiles on the way of the alignment."""
        return self.host.tile_steps()._replace(many=_LongTiles(self.devices, self.sparing))

    def _on_gpu(self, large: bool, run: Callable[[], T]) -> T | None:
        """Run on the GPU; nothing if the CPU is to do it, being faster or all that works."""
        if self.sparing and (not large or failed(self.devices)):
            return None
        try:
            return run()
        except (DeviceFailure, DeviceMemoryError) as error:
            if self.successor(error) is None:
                raise
            return None


class _LongTiles:
    """`plait.dp.pairs.gpu_long.GpuTiles`, made when there is a region for it."""

    def __init__(self, devices: tuple[int, ...], sparing: bool) -> None:
        self._devices = devices
        self._sparing = sparing

    @functools.cached_property
    def _tiles(self) -> ManyTiles:
        from plait.dp.pairs import gpu_long as cuda_long

        return cuda_long.many_tiles(self._devices)

    @property
    def visits(self) -> int:
        """Visits at a time, of all devices."""
        return self._tiles.visits

    def serves(self, pair: LongPair, region: Tile) -> bool:
        """Whether it can, and is worth its start for a region."""
        cells = pair.costs.query.size * pair.costs.target.size
        if self._sparing and (cells < _LEAST_CELLS or failed(self._devices)):
            return False
        return self._tiles.serves(pair, region)

    def grid(self, region: Tile, checkpoint_limit: int) -> Grid:
        """Cut a region into tiles."""
        return self._tiles.grid(region, checkpoint_limit)

    def sweep(self, pair: LongPair, visit: Visit) -> NDArray[np.int64]:
        """Sweep tiles; returns their best values."""
        return self._tiles.sweep(pair, visit)
