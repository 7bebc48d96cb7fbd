"""The reference target: the schedules as plain Python. Slow, and the definition of every other target.

It also serves counts too large for 64 bits, by running the same bodies on Python integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.dp.chain.count import chain_item, enumerate_item
from plait.dp.chain.tables import ChainOutput, ChainTables, Texts, make_scratch
from plait.dp.pairs.blocks import CPU_SHAPE, SweepShape, TargetBlocks, run_blocks, trace_targets
from plait.dp.pairs.diagonals import sweep_region
from plait.dp.pairs.inter_sequence import BlockQuery, score_some_blocks, trace_some_targets
from plait.dp.pairs.lists import (
    PairList,
    PairResults,
    PairSetup,
    align_pair,
    find_end,
    run_pair_list,
    set_border,
)
from plait.dp.pairs.tiles import TileSteps
from plait.dp.pairs.traceback import close_at_border, walk
from plait.errors import PlaitError
from plait.types import Availability


def longest_text(texts: Texts) -> int:
    """Symbols in the longest text of a batch."""
    return int(texts.length.max(initial=0))


class ReferenceTarget:
    """Interpreted Python."""

    name = "reference"
    description = "reference"

    def available(self) -> Availability:
        """Always available."""
        return Availability(True)

    def successor(self, error: PlaitError) -> None:
        """None: there is no device that could fail."""

    def run_chain(self, kind: Any, alg: Any, tables: ChainTables, texts: Texts, out: ChainOutput) -> None:
        """Fill `out` one text after the other."""
        scratch = make_scratch(alg, tables, longest_text(texts))
        for item in range(texts.start.size):
            chain_item(kind, alg, tables, texts, item, scratch, out)

    def run_enumeration(self, tables: ChainTables, texts: Texts, most: int, out: Any) -> None:
        """Enumerate one text after the other."""
        for item in range(texts.start.size):
            enumerate_item(tables, texts, item, most, np.zeros(max(most, 1), np.int64), out)

    def run_pairs(self, setup: PairSetup, task: PairList) -> PairResults:
        """Align the pairs of a list one after the other."""
        return run_pair_list(_align_pairs, setup, task, 1)

    def run_blocks(
        self, query: BlockQuery, blocks: TargetBlocks, progress: Callable[[int], None]
    ) -> NDArray[np.int64]:
        """Score a query against blocks of targets one after the other."""
        return run_blocks(score_some_blocks, query, blocks, 1, progress)

    def sweep_shape(self) -> SweepShape:
        """Small tasks, one for each thread."""
        return CPU_SHAPE

    def sweep_blocks(self, queries: Sequence[BlockQuery], blocks: TargetBlocks) -> list[NDArray[np.int64]]:
        """Score queries against blocks of targets, one after the other."""
        return [run_blocks(score_some_blocks, query, blocks, 1, lambda cells: None) for query in queries]

    def trace_targets(self, query: BlockQuery, task: PairList) -> PairResults:
        """Align a query with many targets in global mode, one group after the other."""
        return trace_targets(trace_some_targets, query, task, 1)

    def tile_steps(self) -> TileSteps:
        """Steps for one long pair."""
        return TileSteps(set_border, sweep_region, find_end, walk, close_at_border, 1)


def _align_pairs(*arguments: Any) -> int:
    lanes, gap, algebra, rules, limits, task, first, last, memory, results = arguments
    written = 0
    for pair in range(first, last):
        written = align_pair(lanes, gap, algebra, rules, limits, task, pair, memory, results, written)
    return written
