"""One query aligned from end to end with many targets, a target in each lane."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.block_setup import BlockQuery, BlockSetup, block_memory, block_setup
from plait.schedules.inter_sequence import COLUMNS, PAD
from plait.schedules.pair_sweep import PairList, PairResults
from plait.targets.block_kernels import TraceMemory

__all__ = ["trace_bytes", "trace_targets"]

#: Types of scores that hold global scores, narrowest first.
_KINDS = (np.int16, np.int32)
_SHARES_PER_THREAD = 4


def _setup(query: BlockQuery, longest: int) -> BlockSetup | None:
    found = (block_setup(query, longest, kind) for kind in _KINDS)
    return next((setup for setup in found if setup is not None), None)


def trace_bytes(query: BlockQuery, longest: int) -> int | None:
    """Bytes of the choices of a group of targets; None if no type of lanes holds the scores.

    Parameters
    ----------
    query
        The query.
    longest
        Residues of the longest target.
    """
    setup = _setup(query, longest)
    if setup is None:
        return None
    columns = -(-longest // COLUMNS) * COLUMNS
    return int(columns * query.rows.size * 4 * _word(setup).itemsize)


def _word(setup: BlockSetup) -> Any:
    return np.dtype(f"u{max(setup.lanes.width, 8) // 8}")


class _Share(NamedTuple):
    """Targets of one thread, the longest first."""

    targets: NDArray[np.int64]
    results: PairResults


def _run_share(
    call: Callable[..., Any], setup: BlockSetup, task: PairList, targets: NDArray[np.int64]
) -> _Share:
    """Align the targets of a share."""
    width = setup.lanes.width
    kind = setup.border.top.dtype
    rows = setup.query.size
    lengths = np.diff(task.target_starts)[targets]
    columns = -(-int(lengths.max()) // COLUMNS) * COLUMNS
    memory = TraceMemory(
        np.empty((columns, width), np.uint8),
        np.zeros((1, width), kind),
        np.zeros((1, width), kind),
        block_memory(setup),
        np.empty((columns, rows, 4), _word(setup)),
        np.zeros((rows + columns + 2, 2), np.int64),
        np.zeros(5, np.int64),
    )
    results = PairResults(
        np.zeros(targets.size, np.int64),
        np.zeros((0, 4), np.int64),
        np.empty((int((lengths + rows + 2).sum()), 2), np.int64),
        np.zeros(targets.size, np.int64),
    )
    used = call(setup, task, targets, memory, results, PAD)
    return _Share(targets, results._replace(runs=results.runs[:used]))


def trace_targets(call: Callable[..., Any], query: BlockQuery, task: PairList, threads: int) -> PairResults:
    """Align a query with many targets in global mode.

    Parameters
    ----------
    call
        `plait.targets.block_kernels.trace_targets_kernel`, or its definition in Python.
    query
        The query; its score columns are the codes of the targets.
    task
        The query once, and the targets; none is empty. Codes are below `PAD`.
    threads
        Shares of targets that run at a time.

    Returns
    -------
    PairResults
        In the order of the targets.

    Raises
    ------
    ValueError
        If no type of lanes holds the scores; see `trace_bytes`.
    """
    lengths = np.diff(task.target_starts)
    setup = _setup(query, int(lengths.max()))
    if setup is None:
        raise ValueError("these scores fit no lanes")
    order = np.argsort(-lengths, kind="stable")
    shares = max(1, min(_SHARES_PER_THREAD * threads, -(-order.size // setup.lanes.width)))
    if threads == 1:
        shares = 1
    size = -(-order.size // (shares * setup.lanes.width)) * setup.lanes.width
    parts = [order[k : k + size] for k in range(0, order.size, size)]
    if threads == 1 or len(parts) == 1:
        found = [_run_share(call, setup, task, part) for part in parts]
    else:
        with ThreadPoolExecutor(threads, thread_name_prefix="plait") as pool:
            found = list(pool.map(lambda part: _run_share(call, setup, task, part), parts))
    return _in_order(found, task, int(query.rows.size))


def _in_order(found: list[_Share], task: PairList, rows: int) -> PairResults:
    targets = np.concatenate([share.targets for share in found])
    counts = np.concatenate([share.results.run_counts for share in found])
    runs = np.concatenate([share.results.runs for share in found])
    starts = np.cumsum(counts) - counts
    place = np.empty(targets.size, np.int64)
    place[targets] = np.arange(targets.size)
    counts, starts = counts[place], starts[place]
    scores = np.concatenate([share.results.scores for share in found])[place]
    offsets = np.cumsum(counts) - counts
    rows_of_runs = np.repeat(starts - offsets, counts) + np.arange(int(counts.sum()))
    ends = np.zeros((targets.size, 4), np.int64)
    ends[:, 1] = rows
    ends[:, 3] = np.diff(task.target_starts)
    return PairResults(scores, ends, runs[rows_of_runs], counts)
