"""Lists of pairs on a target of this machine: shares of pairs, each with memory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from plait.schedules.pair_setup import PairSetup, make_memory
from plait.schedules.pair_sweep import PairList, PairResults

__all__ = ["run_pair_list"]

#: Residues of a share: bounds the memory for its runs.
_SHARE = 1 << 21
#: Cells that need little memory.
_SMALL = 1 << 22


def _shares(task: PairList, threads: int) -> Iterator[tuple[int, int]]:
    """Stretches of pairs with about the same number of cells."""
    rows, columns = np.diff(task.query_starts), np.diff(task.target_starts)
    pairs = rows.size
    cells = np.concatenate([[0], np.cumsum(rows * columns)])
    residues = np.concatenate([[0], np.cumsum(rows + columns)])
    least = int(cells[-1]) // (4 * threads) + 1
    first = 0
    while first < pairs:
        last = int(np.searchsorted(cells, cells[first] + least, "left"))
        last = min(last, int(np.searchsorted(residues, residues[first] + _SHARE, "right")) - 1)
        last = min(max(last, first + 1), pairs)
        # Memory is made for the longest query and the longest target of a share.
        tallest = np.maximum.accumulate(rows[first:last])
        widest = np.maximum.accumulate(columns[first:last])
        largest = np.maximum(np.maximum.accumulate(rows[first:last] * columns[first:last]), _SMALL)
        wasteful = np.flatnonzero(tallest * widest > 4 * largest)
        last = first + int(wasteful[0]) if wasteful.size else last
        yield first, last
        first = last


def run_pair_list(call: Callable[..., Any], setup: PairSetup, task: PairList, threads: int) -> PairResults:
    """Align the pairs of a list, shares of it side by side.

    Parameters
    ----------
    call
        `plait.targets.pair_kernels.align_pairs_kernel`, or its definition in Python.
    setup
        How the pairs are swept.
    task
        The pairs; none is empty.
    threads
        Shares that run at a time.

    Returns
    -------
    PairResults
        In the order of the list; no rows in ``runs`` beyond those used.
    """
    rows, columns = np.diff(task.query_starts), np.diff(task.target_starts)
    pairs = rows.size
    scores, counts = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64)
    ends = np.zeros((pairs, 4), np.int64)

    def run(share: tuple[int, int]) -> Any:
        first, last = share
        memory = make_memory(setup, int(rows[first:last].max()), int(columns[first:last].max()))
        size = int((rows[first:last] + columns[first:last] + 2).sum())
        results = PairResults(scores, ends, np.empty((size, 2), np.int64), counts)
        used = call(*setup, task, first, last, memory, results)
        return results.runs[:used].copy()

    shares = list(_shares(task, threads))
    if threads == 1 or len(shares) == 1:
        parts = [run(share) for share in shares]
    else:
        with ThreadPoolExecutor(threads, thread_name_prefix="plait") as pool:
            parts = list(pool.map(run, shares))
    runs = np.concatenate(parts) if parts else np.zeros((0, 2), np.int64)
    return PairResults(scores, ends, runs, counts)
