"""The CPU target: compiled schedules, texts shared out over threads.

Every thread works on its own stretch of texts with its own scratch memory and writes its own rows, so
neither the number of threads nor their order can change a bit of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.dp.chain.count import chain_item, enumerate_item
from plait.dp.chain.tables import ChainOutput, ChainTables, Texts, make_scratch
from plait.dp.pairs.blocks import CPU_SHAPE, SweepShape, TargetBlocks, run_blocks, trace_targets
from plait.dp.pairs.inter_sequence import BlockQuery, score_blocks_kernel, trace_targets_kernel
from plait.dp.pairs.lists import (
    PairList,
    PairResults,
    PairSetup,
    align_pairs_kernel,
    border_kernel,
    close_kernel,
    end_kernel,
    run_pair_list,
    sweep_kernel,
    walk_kernel,
)
from plait.dp.pairs.tiles import TileSteps
from plait.dp.reference import longest_text
from plait.errors import PlaitError
from plait.lang.compile import kernel
from plait.settings import thread_count
from plait.types import Availability

#: Fewest texts worth a thread of their own.
_STRETCH = 512


class CpuTarget:
    """Compiled CPU code; `threads` per batch, by default the processors this process may use."""

    name = "cpu"
    description = "cpu"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count() if threads is None else threads

    def available(self) -> Availability:
        """Always available."""
        return Availability(True)

    def successor(self, error: PlaitError) -> None:
        """None: there is no device that could fail."""

    def run_chain(self, kind: Any, alg: Any, tables: ChainTables, texts: Texts, out: ChainOutput) -> None:
        """Fill `out`, stretches of texts in parallel."""
        longest = longest_text(texts)

        def run(first: int, last: int) -> None:
            scratch = make_scratch(alg, tables, longest)
            _run_chain(kind, alg, tables, texts, first, last, scratch, out)

        self._share_out(texts.prefix.size, _STRETCH, run)

    def run_enumeration(self, tables: ChainTables, texts: Texts, most: int, out: Any) -> None:
        """Enumerate, a few texts per thread at a time."""

        def run(first: int, last: int) -> None:
            _run_enumeration(tables, texts, most, first, last, np.zeros(max(most, 1), np.int64), out)

        self._share_out(texts.prefix.size, 1, run)

    def run_pairs(self, setup: PairSetup, task: PairList) -> PairResults:
        """Align the pairs of a list, shares of it in parallel."""
        return run_pair_list(align_pairs_kernel, setup, task, self.threads)

    def run_blocks(
        self, query: BlockQuery, blocks: TargetBlocks, progress: Callable[[int], None]
    ) -> NDArray[np.int64]:
        """Score a query against blocks of targets, blocks in parallel."""
        return run_blocks(score_blocks_kernel, query, blocks, self.threads, progress)

    def sweep_shape(self) -> SweepShape:
        """Small tasks, one for each thread."""
        return CPU_SHAPE

    def sweep_blocks(self, queries: Sequence[BlockQuery], blocks: TargetBlocks) -> list[NDArray[np.int64]]:
        """Score queries against blocks of targets, on the calling thread."""
        return [run_blocks(score_blocks_kernel, query, blocks, 1, lambda cells: None) for query in queries]

    def trace_targets(self, query: BlockQuery, task: PairList) -> PairResults:
        """Align a query with many targets in global mode, shares of them in parallel."""
        return trace_targets(trace_targets_kernel, query, task, self.threads)

    def tile_steps(self) -> TileSteps:
        """Steps for one long pair."""
        return TileSteps(border_kernel, sweep_kernel, end_kernel, walk_kernel, close_kernel, self.threads)

    def _share_out(self, items: int, least: int, run: Callable[[int, int], None]) -> None:
        stretches = max(1, min(4 * self.threads, items // least))
        if self.threads == 1 or stretches == 1:
            run(0, items)
            return
        edges = [items * k // stretches for k in range(stretches + 1)]
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(run, edges[:-1], edges[1:]))


@kernel
def _run_chain(
    kind: Any, alg: Any, tables: Any, texts: Any, first: int, last: int, scratch: Any, out: Any
) -> None:
    for item in range(first, last):
        chain_item(kind, alg, tables, texts, item, scratch, out)


@kernel
def _run_enumeration(
    tables: Any, texts: Any, most: int, first: int, last: int, letters: Any, out: Any
) -> None:
    for item in range(first, last):
        enumerate_item(tables, texts, item, most, letters, out)
