"""Compiled entry points for pairs of sequences."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.antidiagonal import sweep_region
from plait.schedules.choice_walk import close_at_border, walk
from plait.schedules.pair_sweep import align_pair, find_end, set_border
from plait.schedules.path_columns import describe_paths

__all__ = [
    "align_pairs_kernel",
    "border_kernel",
    "close_kernel",
    "describe_kernel",
    "end_kernel",
    "sweep_kernel",
    "walk_kernel",
]


@kernel
def align_pairs_kernel(
    lanes: Any,
    gap: Any,
    algebra: Any,
    rules: Any,
    limits: Any,
    task: Any,
    first: int,
    last: int,
    memory: Any,
    results: Any,
) -> int:
    """Pairs `first` to `last`, see `plait.schedules.pair_sweep.align_pair`; returns the number of runs."""
    written = 0
    for pair in range(first, last):
        written = align_pair(lanes, gap, algebra, rules, limits, task, pair, memory, results, written)
    return written


@kernel
def sweep_kernel(
    lanes: Any,
    gap: Any,
    algebra: Any,
    rules: Any,
    region: Any,
    edges: Any,
    scratch: Any,
    bits: Any,
    best: Any,
) -> None:
    """See `plait.schedules.antidiagonal.sweep_region`."""
    sweep_region(lanes, gap, algebra, rules, region, edges, scratch, bits, best)


@kernel
def border_kernel(free: Any, gap_open: int, gap_extend: int, edges: Any) -> None:
    """See `plait.schedules.pair_sweep.set_border`."""
    set_border(free, gap_open, gap_extend, edges)


@kernel
def end_kernel(free: Any, gap_open: int, gap_extend: int, edges: Any, best: Any) -> None:
    """See `plait.schedules.pair_sweep.find_end`."""
    find_end(free, gap_open, gap_extend, edges, best)


@kernel
def walk_kernel(place: Any, bits: Any, costs: Any, cursor: Any, runs: Any) -> None:
    """See `plait.schedules.choice_walk.walk`."""
    walk(place, bits, costs, cursor, runs)


@kernel
def describe_kernel(paths: Any, out: Any) -> int:
    """See `plait.schedules.path_columns.describe_paths`."""
    return describe_paths(paths, out)


@kernel
def close_kernel(free_query: bool, free_target: bool, cursor: Any, runs: Any) -> None:
    """See `plait.schedules.choice_walk.close_at_border`."""
    close_at_border(free_query, free_target, cursor, runs)
