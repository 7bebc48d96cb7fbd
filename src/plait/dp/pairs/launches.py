"""What pairs of sequences launch on each device.

GPUs score queries against many targets and sweep one very long pair. Lists of short pairs and the alignments
of a query with many targets (those of the best hits of a search among them) run on the CPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted
from plait.dp.pairs.blocks import TargetBlocks, run_blocks, trace_targets
from plait.dp.pairs.inter_sequence import BlockQuery, score_blocks_kernel, trace_targets_kernel
from plait.dp.pairs.lists import (
    FreeEnds,
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
from plait.dp.pairs.tiles import LongPair, Tile, TileSteps, align_long, score_long
from plait.dp.pairs.traceback import Costs

R = TypeVar("R")

#: Cells of matrices that are worth the start of a GPU which was not asked for by name.
_LEAST_CELLS = 2_000_000_000
#: Bytes of choices of a tile of a long pair, and of the edges that are kept.
CHOICES_OF_A_TILE = 1 << 28
_CHECKPOINTS = 1 << 30
#: Where many tiles are swept together: choices of a tile, most bytes of checkpoints, and the share of the
#: free memory that they may take.
_CHOICES_BESIDE_MANY = 1 << 20
_MOST_CHECKPOINTS = 1 << 34
_SHARE_OF_MEMORY = 4


#: Where nothing is known.
_PERHAPS = 4 << 30
_GROUP = Path("/sys/fs/cgroup")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def free_bytes() -> int:
    """Bytes of memory that are free, within the limit of this process's control group if it has one."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        free = _PERHAPS
    most, taken = _number(_GROUP / "memory.max"), _number(_GROUP / "memory.current")
    if most is not None and taken is not None:
        free = min(free, most - taken)
    return max(free, 0)


class ListBatch(NamedTuple):
    """Pairs of a list, none empty, and how they are swept."""

    setup: PairSetup
    pairs: PairList


class BlockBatch(NamedTuple):
    """Queries, none empty, with the targets of blocks; on the CPU with `threads`, by default the caller's."""

    queries: Sequence[BlockQuery]
    blocks: TargetBlocks
    progress: Callable[[int], None] = lambda cells: None
    threads: int = 1

    @property
    def cells(self) -> int:
        """Cells of all matrices."""
        return sum(query.rows.size for query in self.queries) * int(self.blocks.lengths.sum(dtype=np.int64))


class TraceBatch(NamedTuple):
    """A query with many targets, none empty, in global mode, see `plait.dp.pairs.blocks.trace_targets`."""

    query: BlockQuery
    pairs: PairList


class LongBatch(NamedTuple):
    """One long pair of which no sequence is empty; `setup` is without choices."""

    setup: PairSetup
    costs: Costs
    free: FreeEnds
    progress: Callable[[int], None]


def _run_list(call: Any, batch: ListBatch, target: Target) -> PairResults:
    return run_pair_list(call, *batch, target.threads)


def _run_blocks(call: Any, batch: BlockBatch, target: Target) -> list[NDArray[np.int64]]:
    queries, blocks, progress, threads = batch
    return [run_blocks(call, query, blocks, threads, progress) for query in queries]


def _trace(call: Any, batch: TraceBatch, target: Target) -> PairResults:
    return trace_targets(call, *batch, target.threads)


def cpu_steps(threads: int) -> TileSteps:
    """The compiled steps of a long pair."""
    return TileSteps(border_kernel, sweep_kernel, end_kernel, walk_kernel, close_kernel, threads)


def reference_steps() -> TileSteps:
    """Their definitions."""
    border, sweep, end, walk, close, *_ = map(interpreted, cpu_steps(1))
    return TileSteps(border, sweep, end, walk, close, 1)


def on_long_pair(find: Callable[[LongPair, TileSteps], R], steps: TileSteps, batch: LongBatch) -> R:
    """What `find` finds of a pair."""
    setup, costs, free, progress = batch
    pair = LongPair(
        setup=setup,
        costs=costs,
        free=free,
        choice_limit=CHOICES_OF_A_TILE,
        checkpoint_limit=_CHECKPOINTS,
        progress=progress,
    )
    if steps.many is not None and steps.many.serves(pair, Tile(0, costs.query.size, 0, costs.target.size)):
        # Sweeping again costs less there than choices here, and less of it is needed with more checkpoints.
        checkpoints = min(max(free_bytes() // _SHARE_OF_MEMORY, _CHECKPOINTS), _MOST_CHECKPOINTS)
        pair = replace(pair, choice_limit=_CHOICES_BESIDE_MANY, checkpoint_limit=checkpoints)
    return find(pair, steps)


def _long(find: Callable[[LongPair, TileSteps], R], cuda: str) -> Problem[LongBatch, R]:
    return Problem(
        "a long pair",
        cpu=lambda batch, target: on_long_pair(find, cpu_steps(target.threads), batch),
        reference=lambda batch, target: on_long_pair(find, reference_steps(), batch),
        cuda=cuda,
        worth=lambda batch: batch.costs.query.size * batch.costs.target.size >= _LEAST_CELLS,
    )


#: Alignments of the pairs of a list.
PAIR_LIST: Final[Problem[ListBatch, PairResults]] = Problem(
    "a list of pairs",
    cpu=partial(_run_list, align_pairs_kernel),
    reference=partial(_run_list, interpreted(align_pairs_kernel)),
)
#: Best scores of queries with the targets of blocks.
BLOCK_SCORES: Final[Problem[BlockBatch, list[NDArray[np.int64]]]] = Problem(
    "scores of blocks",
    cpu=partial(_run_blocks, score_blocks_kernel),
    reference=partial(_run_blocks, interpreted(score_blocks_kernel)),
    cuda="plait.dp.pairs.gpu_search:score_batch",
    worth=lambda batch: batch.cells >= _LEAST_CELLS,
)
#: Alignments of a query with many targets.
BLOCK_TRACES: Final[Problem[TraceBatch, PairResults]] = Problem(
    "alignments with targets",
    cpu=partial(_trace, trace_targets_kernel),
    reference=partial(_trace, interpreted(trace_targets_kernel)),
)
#: The end of a best alignment of a long pair, see `plait.dp.pairs.tiles.score_long`.
LONG_SCORE: Final = _long(score_long, "plait.dp.pairs.gpu_long:score_batch")
#: A best alignment of a long pair, see `plait.dp.pairs.tiles.align_long`.
LONG_ALIGNMENT: Final = _long(align_long, "plait.dp.pairs.gpu_long:align_batch")
