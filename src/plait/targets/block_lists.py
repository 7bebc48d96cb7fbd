"""Blocks of targets on a target of this machine: narrow lanes first, wider ones for what did not fit."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import Unsupported
from plait.schedules.block_setup import LANE_TYPES, BlockQuery, BlockSetup, block_memory, block_setup
from plait.schedules.inter_sequence import COLUMNS, PAD

__all__ = ["TargetBlocks", "offer_border", "run_blocks"]

_NO_BITS = np.zeros((1, 1, 4), np.uint32)
#: Blocks for a thread at a time.
_SHARE_CELLS = 1 << 28


class TargetBlocks(NamedTuple):
    """Targets side by side, see `plait.align.packing.SequenceDatabase`.

    Attributes
    ----------
    packed
        Codes, uint8, shape (columns, lanes of a block).
    first_columns
        First column of each block, and the end of the last; int64.
    lengths
        Residues of each target, 0 in lanes without one; shape (blocks, lanes of a block).
    """

    packed: NDArray[np.uint8]
    first_columns: NDArray[np.int64]
    lengths: NDArray[np.int32]


def _gap_cost(query: BlockQuery, residues: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(residues > 0, query.gap_open + (residues - 1) * query.gap_extend, 0)


def offer_border(query: BlockQuery, lengths: NDArray[np.int32], scores: NDArray[np.int64]) -> None:
    """Offer the alignments without a pair of residues, which end at the border.

    Parameters
    ----------
    query
        The query.
    lengths
        Residues of each target.
    scores
        Best score of any other alignment; changed in place. Any value where the target is empty.
    """
    free = query.free
    columns = lengths.astype(np.int64)
    if free.anywhere:
        np.maximum(scores, 0, out=scores)
        return
    query_gap = _gap_cost(query, np.array(query.rows.size))
    target_gap = _gap_cost(query, columns)
    if free.query_end:
        np.maximum(scores, 0 * target_gap if free.target_start else -target_gap, out=scores)
    if free.target_end:
        np.maximum(scores, 0 if free.query_start else -int(query_gap), out=scores)
    empty = columns == 0
    scores[empty] = 0 if free.query_start or free.query_end else -int(query_gap)


def _repacked(blocks: TargetBlocks, where: NDArray[np.int64]) -> TargetBlocks:
    """Some targets, by block and lane, in blocks of their own."""
    lanes = blocks.packed.shape[1]
    count = -(-len(where) // lanes)
    lengths = np.zeros((count, lanes), np.int32)
    lengths.ravel()[: len(where)] = blocks.lengths[where[:, 0], where[:, 1]]
    widths = -(-lengths.max(axis=1).astype(np.int64) // COLUMNS) * COLUMNS
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
    packed = np.full((int(first[-1]), lanes), PAD, np.uint8)
    for k, (block, lane) in enumerate(where):
        size = blocks.lengths[block, lane]
        start = blocks.first_columns[block]
        to = first[k // lanes]
        packed[to : to + size, k % lanes] = blocks.packed[start : start + size, lane]
    return TargetBlocks(packed, first, lengths)


def _score(
    call: Callable[..., Any],
    setup: BlockSetup,
    blocks: TargetBlocks,
    threads: int,
    progress: Callable[[int], None],
) -> NDArray[np.int64]:
    kind = setup.border.top.dtype
    info = np.iinfo(kind)
    lengths = np.minimum(blocks.lengths, info.max).astype(kind)
    widths = np.diff(blocks.first_columns)
    out = np.zeros(blocks.lengths.shape, kind)
    work = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)]) * (
        blocks.packed.shape[1] * setup.query.size
    )
    share = _SHARE_CELLS if threads == 1 else min(max(int(work[-1]) // (4 * threads), 1), _SHARE_CELLS)
    edges = np.append(np.searchsorted(work, np.arange(0, max(int(work[-1]), 1), share)), len(widths))
    edges = edges[np.diff(edges, prepend=-1) > 0]

    def run(first: int, last: int) -> None:
        chosen = np.arange(first, last)
        call(
            setup,
            blocks.packed,
            blocks.first_columns,
            lengths,
            chosen,
            block_memory(setup),
            _NO_BITS,
            out[first:last],
        )
        progress(int(blocks.lengths[first:last].sum(dtype=np.int64)) * setup.query.size)

    pairs = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    if threads == 1 or len(pairs) <= 1:
        for first, last in pairs:
            run(first, last)
    else:
        with ThreadPoolExecutor(threads, thread_name_prefix="plait") as pool:
            list(pool.map(run, *zip(*pairs, strict=True)))
    return out.astype(np.int64)


def run_blocks(
    call: Callable[..., Any],
    query: BlockQuery,
    blocks: TargetBlocks,
    threads: int,
    progress: Callable[[int], None],
    kinds: tuple[Any, ...] = LANE_TYPES,
) -> NDArray[np.int64]:
    """Best score of a query with every target.

    Parameters
    ----------
    call
        `plait.targets.block_kernels.score_blocks_kernel`, or its definition in Python.
    query
        The query; not empty.
    blocks
        The targets.
    threads
        Shares of blocks that run at a time.
    progress
        Called with the number of cells of each share.
    kinds
        Types of lanes to try, narrowest first.

    Returns
    -------
    NDArray[np.int64]
        Shape of ``blocks.lengths``; lanes without a target hold any value.
    """
    # A block may be wider than its longest target: the border has to be as wide.
    longest = max(int(blocks.lengths.max(initial=0)), int(np.diff(blocks.first_columns).max(initial=0)))
    setups = (block_setup(query, longest, kind) for kind in kinds)
    setup = next((own for own in setups if own is not None), None)
    if setup is None:
        why = "they could reach 2^31; scale scores and gap costs down"
        raise Unsupported("these scores", why=why)
    raw = _score(call, setup, blocks, threads, progress)
    scores = raw - setup.zero
    over = np.argwhere(raw >= setup.ceiling)
    if over.size:
        again = _repacked(blocks, over)
        wider = tuple(k for k in kinds if np.iinfo(k).max > np.iinfo(setup.border.top.dtype).max)
        found = run_blocks(call, query, again, threads, lambda cells: None, wider)
        scores[over[:, 0], over[:, 1]] = found.ravel()[: len(over)]
    offer_border(query, blocks.lengths, scores)
    return scores
