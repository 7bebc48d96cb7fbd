"""Compiled entry points for one query against blocks of targets."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import kernel, shared
from plait.lanes import splat, store
from plait.schedules.choice_walk import Costs, LaneBits, close_at_border, walk
from plait.schedules.inter_sequence import Block, Forget, Keep, block_scores

__all__ = [
    "TraceMemory",
    "score_blocks_kernel",
    "score_some_blocks",
    "trace_some_targets",
    "trace_targets_kernel",
]


@shared
def _sweep_group(
    setup: Any,
    keep: Any,
    packed: Any,
    first: int,
    last: int,
    lane: int,
    lengths: Any,
    scratch: Any,
    bits: Any,
) -> Any:
    lanes, gap, algebra, ends, query, table, border, _, _ = setup
    for row in range(query.size):
        store(lanes, scratch.h, row, 0, splat(lanes, border.left_h[row]))
        store(lanes, scratch.e, row, 0, splat(lanes, border.left_e[row]))
    block = Block(packed, first, last, lane, lengths, border.top, border.units)
    return block_scores(lanes, gap, algebra, ends, keep, query, table, block, scratch, bits)


@shared
def score_some_blocks(
    setup: Any, packed: Any, columns: Any, lengths: Any, blocks: Any, scratch: Any, bits: Any, out: Any
) -> None:
    """Scores of some blocks.

    Parameters
    ----------
    setup
        `plait.schedules.block_setup.BlockSetup`.
    packed
        Codes of all blocks, uint8, shape (columns, lanes of a block).
    columns
        First column of each block, and the end of the last; int64.
    lengths
        Lengths of the targets in the type of the scores, shape (blocks, lanes of a block).
    blocks
        Which blocks, int64.
    scratch
        Memory of this thread.
    bits
        Not used; unsigned, shape (1, 1, 4).
    out
        Scores in their type, shape (number of `blocks`, lanes of a block); changed in place.
    """
    lanes = setup.lanes
    for k in range(blocks.size):
        b = blocks[k]
        for lane in range(0, packed.shape[1], lanes.width):
            own = lengths[b : b + 1]
            found = _sweep_group(
                setup, Forget(), packed, columns[b], columns[b + 1], lane, own, scratch, bits
            )
            store(lanes, out, k, lane, found)


@kernel
def score_blocks_kernel(
    setup: Any, packed: Any, columns: Any, lengths: Any, blocks: Any, scratch: Any, bits: Any, out: Any
) -> None:
    """See `score_some_blocks`."""
    score_some_blocks(setup, packed, columns, lengths, blocks, scratch, bits, out)


class TraceMemory(NamedTuple):
    """Memory of one thread, for the longest of its targets.

    Attributes
    ----------
    packed
        Codes of a group, uint8, shape (columns, lanes).
    lengths, out
        Lengths and scores of a group, in the type of the scores, shape (1, lanes).
    scratch
        `plait.schedules.inter_sequence.BlockScratch`.
    bits
        Choices, unsigned with a bit for each lane, shape (columns, query length, 4).
    runs, cursor
        Of a walk: int64, shapes (residues of query and target + 2, 2) and (5,).
    """

    packed: Any
    lengths: Any
    out: Any
    scratch: Any
    bits: Any
    runs: Any
    cursor: Any


@shared
def _pack_group(task: Any, targets: Any, memory: Any, pad: int) -> int:
    """Put targets side by side, the longest first; returns the number of columns."""
    longest = task.target_starts[targets[0] + 1] - task.target_starts[targets[0]]
    columns = (longest + 3) // 4 * 4
    memory.packed[:columns] = pad
    memory.lengths[:] = 0
    for lane in range(targets.size):
        start = task.target_starts[targets[lane]]
        codes = task.target[start : task.target_starts[targets[lane] + 1]]
        memory.lengths[0, lane] = codes.size
        for column in range(codes.size):
            memory.packed[column, lane] = codes[column]
    return int(columns)


@shared
def _walk_lane(task: Any, target: Any, lane: int, score: int, memory: Any) -> int:
    """Walk back through the choices of one lane; returns the number of runs, the last of them first."""
    cursor = memory.cursor
    costs = Costs(task.query, target, task.matrix, task.gap_open, task.gap_extend, False)
    cursor[0] = task.query.size - 1
    cursor[1] = target.size - 1
    cursor[2] = 0
    cursor[3] = score
    cursor[4] = 0
    walk(LaneBits(0, 0, lane), memory.bits, costs, cursor, memory.runs)
    close_at_border(False, False, cursor, memory.runs)
    return int(cursor[4])


@shared
def trace_some_targets(setup: Any, task: Any, targets: Any, memory: Any, results: Any, pad: int) -> int:
    """Align a query, from end to end, with targets, a group of lanes at a time; returns the number of runs.

    Parameters
    ----------
    setup
        `plait.schedules.block_setup.BlockSetup`, in which the ends of no sequence are free.
    task
        `plait.schedules.pair_sweep.PairList`: the query once, and all targets.
    targets
        Which targets, the longest first, int64.
    memory
        `TraceMemory`; changed in place.
    results
        `plait.schedules.pair_sweep.PairResults` of these targets; changed in place.
    pad
        Code behind the end of a target.
    """
    lanes = setup.lanes
    written = 0
    for first in range(0, targets.size, lanes.width):
        group = targets[first : first + lanes.width]
        columns = _pack_group(task, group, memory, pad)
        found = _sweep_group(
            setup, Keep(), memory.packed, 0, columns, 0, memory.lengths, memory.scratch, memory.bits
        )
        store(lanes, memory.out, 0, 0, found)
        for lane in range(group.size):
            start = task.target_starts[group[lane]]
            target = task.target[start : task.target_starts[group[lane] + 1]]
            score = memory.out[0, lane] - setup.zero
            count = _walk_lane(task, target, lane, score, memory)
            results.scores[first + lane] = score
            results.run_counts[first + lane] = count
            for k in range(count):
                results.runs[written + k, 0] = memory.runs[count - 1 - k, 0]
                results.runs[written + k, 1] = memory.runs[count - 1 - k, 1]
            written += count
    return written


@kernel
def trace_targets_kernel(setup: Any, task: Any, targets: Any, memory: Any, results: Any, pad: int) -> int:
    """See `trace_some_targets`."""
    return trace_some_targets(setup, task, targets, memory, results, pad)
