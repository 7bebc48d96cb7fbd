"""What pairs of sequences launch on each device.

GPUs score queries against many targets and sweep one very long pair. Lists of short pairs, of one query (with
the best hits of a search) or of many, run on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, free_bytes, interpreted
from plait.dp.pairs.blocks import (
    BestBatch,
    BestLanes,
    BlockBatch,
    best_blocks,
    score_blocks,
)
from plait.dp.pairs.inter_sequence import score_blocks_kernel
from plait.dp.pairs.kbest import BestPath, KBest, k_best, sweep_tiles_kernel
from plait.dp.pairs.lists import (
    ListBatch,
    PairResults,
    align_beside,
    align_beside_kernel,
    align_pairs,
    align_pairs_compiled,
    border_kernel,
    close_kernel,
    end_kernel,
    run_pair_list,
    walk_kernel,
)
from plait.dp.pairs.tiles import LongPair, Tile, TileSteps, align_long, score_long

R = TypeVar("R")

#: Cells of matrices that are worth the start of a GPU which was not asked for by name.
_LEAST_CELLS = 2_000_000_000
#: Where many tiles are swept together: choices of a tile, most bytes of checkpoints, and the share of the
#: free memory that they may take.
_CHOICES_BESIDE_MANY = 1 << 21
_MOST_CHECKPOINTS = 1 << 34
_SHARE_OF_MEMORY = 4


def cpu_steps(threads: int) -> TileSteps:
    """The compiled steps of a long pair."""
    return TileSteps(
        *(border_kernel, align_pairs_compiled, end_kernel, walk_kernel, close_kernel),
        *(sweep_tiles_kernel, threads),
    )


def reference_steps() -> TileSteps:
    """Their definitions."""
    border, _, end, walk, close, tiles, *_ = map(interpreted, cpu_steps(1))
    return TileSteps(border, align_pairs, end, walk, close, tiles, 1)


def on_long_pair(find: Callable[[LongPair, TileSteps], R], steps: TileSteps, pair: LongPair) -> R:
    """What `find` finds of a pair."""
    whole = Tile(0, pair.costs.query.size, 0, pair.costs.target.size)
    if steps.many is not None and steps.many.serves(pair, whole):
        # Sweeping again costs less there than choices here, and less of it is needed with more checkpoints.
        checkpoints = min(max(free_bytes() // _SHARE_OF_MEMORY, pair.checkpoint_limit), _MOST_CHECKPOINTS)
        pair = pair._replace(choice_limit=_CHOICES_BESIDE_MANY, checkpoint_limit=checkpoints)
    return find(pair, steps)


def _worth(pair: LongPair) -> bool:
    return bool(pair.costs.query.size * pair.costs.target.size >= _LEAST_CELLS)


def _long(find: Callable[[LongPair, TileSteps], R], cuda: str) -> Problem[LongPair, R]:
    return Problem(
        "a long pair",
        cpu=lambda batch, target: on_long_pair(find, cpu_steps(target.threads), batch),
        reference=lambda batch, target: on_long_pair(find, reference_steps(), batch),
        cuda=cuda,
        worth=_worth,
    )


#: Alignments of the pairs of a list.
PAIR_LIST: Final[Problem[ListBatch, PairResults]] = Problem(
    "a list of pairs",
    cpu=partial(run_pair_list, align_pairs_compiled, align_beside_kernel),
    reference=partial(run_pair_list, align_pairs, align_beside),
)
#: Best scores of queries with the targets of blocks.
BLOCK_SCORES: Final[Problem[BlockBatch, list[NDArray[np.int64]]]] = Problem(
    "scores of blocks",
    cpu=partial(score_blocks, score_blocks_kernel),
    reference=partial(score_blocks, interpreted(score_blocks_kernel)),
    cuda="plait.dp.pairs.gpu_search:score_batch",
    worth=lambda batch: batch.cells >= _LEAST_CELLS,
)
#: The best targets of queries.
BEST_TARGETS: Final[Problem[BestBatch, BestLanes]] = Problem(
    "the best targets of blocks",
    cpu=partial(best_blocks, score_blocks_kernel),
    reference=partial(best_blocks, interpreted(score_blocks_kernel)),
    cuda="plait.dp.pairs.gpu_search:best_batch",
    worth=lambda batch: BlockBatch(batch.queries, batch.blocks).cells >= _LEAST_CELLS,
)
#: The end of a best alignment of a long pair, see `plait.dp.pairs.tiles.score_long`.
LONG_SCORE: Final = _long(score_long, "plait.dp.pairs.gpu_long:score_batch")
#: A best alignment of a long pair, see `plait.dp.pairs.tiles.align_long`.
LONG_ALIGNMENT: Final = _long(align_long, "plait.dp.pairs.gpu_long:align_batch")
#: The k best local alignments of a pair, see `plait.dp.pairs.kbest`.
K_BEST: Final[Problem[KBest, list[BestPath]]] = Problem(
    "the best alignments of a pair",
    cpu=lambda batch, target: on_long_pair(partial(k_best, batch), cpu_steps(target.threads), batch.pair),
    reference=lambda batch, target: on_long_pair(partial(k_best, batch), reference_steps(), batch.pair),
    cuda="plait.dp.pairs.gpu_long:k_best_batch",
    worth=lambda batch: batch.apart > 0 and _worth(batch.pair),
)
