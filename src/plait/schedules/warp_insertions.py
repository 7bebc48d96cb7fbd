"""The part of `plait.schedules.warp_chain` where lanes count insertions.

An occurrence from a to b starts at the fewest insertions that reach it. From there on the number of ways
rises by one per insertion, until an end has no more to give: two running sums over four corners. These are
the two look-ups per row of the published program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plait._jit import shared
from plait.algebras import choice
from plait.lanes import population
from plait.lanes.warps import WARP, add_to, at, lane_index, shuffle, shuffle_up, synchronize_warp, warp_size
from plait.schedules.warp_models import write_model

__all__ = [
    "add_found_insertions",
    "mirrored_starts_insertions",
    "nothing_insertions",
    "prepare_insertions",
    "sum_empty_insertions",
    "sum_none_insertions",
    "write_fragment_insertions",
    "write_none_insertions",
]


@shared
def prepare_insertions(rows: Any, tables: Any, span: Any, models: Any, memory: Any) -> None:
    """`prepare` where lanes count insertions: nothing."""


@shared
def mirrored_starts_insertions(rows: Any, tables: Any, span: Any, a: Any, f: Any, memory: Any) -> Any:
    """`mirrored_starts` where lanes count insertions: ends mirror their own gene only."""
    return tables.starts.dtype.type(0)


@shared
def sum_empty_insertions(rows: Any, alg: Any, tables: Any, span: Any, models: Any, memory: Any) -> Any:
    """`sum_empty` where lanes count insertions: into ``memory.rising``."""
    lane = lane_index()
    clear_corners(tables, memory)
    a: Any = lane
    while a < np.int32(span.length + 1):
        turn_corners(tables, span, a, a, np.int32(1), memory)
        a = np.int32(a + warp_size())
    synchronize_warp()
    carried = alg.zero, alg.zero
    n: Any = lane
    while n < whole_warps(tables.levels):
        carried = rise(alg, tables, n, carried, memory)
        if n < tables.levels:
            memory.rising[at(n)] = carried[1]
        n = np.int32(n + warp_size())
    synchronize_warp()
    return np.int64(alg.zero), np.int64(alg.zero)


@shared
def sum_none_insertions(rows: Any, alg: Any, tables: Any, span: Any, models: Any, memory: Any) -> Any:
    """`sum_none` where lanes count insertions: found when it is written."""
    return np.int64(alg.zero), np.int64(alg.zero)


@shared
def add_found_insertions(
    rows: Any, alg: Any, tables: Any, span: Any, models: Any,
    f: Any, x: Any, read: Any, found: Any, total: Any, memory: Any,
) -> Any:  # fmt: skip
    """`add_found` where lanes count insertions: every lane adds its own position."""
    if found != 0:
        a = np.int32(x + lane_index())
        turn_corners(tables, span, a, np.int32(a + read), np.int32(population(found)), memory)
    return total


@shared
def clear_corners(tables: Any, memory: Any) -> None:
    """Begin a sum of occurrences."""
    n: Any = lane_index()
    while n < tables.levels:
        memory.corners[at(n)] = 0
        n = np.int32(n + warp_size())
    synchronize_warp()


@shared
def turn_corners(tables: Any, span: Any, a: Any, b: Any, times: Any, memory: Any) -> None:
    """Add a fragment from a to b: the ways to share n insertions rise from the fewest that reach it on.

    They stop rising where the shortest prefix or suffix is reached, and fall where both are.
    """
    levels = tables.levels
    kept_before = min(a, span.m_prefix)
    kept_after = min(np.int32(span.length - b), span.m_suffix)
    least = np.int32(np.int32(a - kept_before) + np.int32(span.length - b) - kept_after)
    if least < levels:
        add_to(memory.corners, at(least), times)
        before = np.int32(least + kept_before + 1)
        after = np.int32(least + kept_after + 1)
        if min(before, after) < levels:
            if before < levels:
                add_to(memory.corners, at(before), np.int32(-times))
            if after < levels:
                add_to(memory.corners, at(after), np.int32(-times))
            both = np.int32(before + kept_after + 1)
            if both < levels:
                add_to(memory.corners, at(both), times)


@shared
def whole_warps(levels: Any) -> Any:
    """A number of levels, rounded up to what a whole number of warps has lanes for."""
    return np.int32((levels + WARP - 1) // WARP * WARP)


@shared
def rise(alg: Any, tables: Any, n: Any, carried: Any, memory: Any) -> Any:
    """Two running sums over the corners, a warp at a time: the slope and the counts at n insertions."""
    slope = np.int64(memory.corners[at(n)]) if n < tables.levels else np.int64(alg.zero)
    last = WARP - 1
    slope = choice(alg, running_sum(alg, slope), shuffle(carried[0], last))
    counts = choice(alg, running_sum(alg, slope), shuffle(carried[1], last))
    return slope, counts


@shared
def running_sum(alg: Any, value: Any) -> Any:
    """Sum of the values of all lanes up to this one."""
    lane = lane_index()
    for k in range(5):
        below = shuffle_up(value, 1 << k)
        value = choice(alg, value, below if lane >= 1 << k else alg.zero)
    return value


@shared
def nothing_insertions(rows: Any, alg: Any, tables: Any, memory: Any) -> Any:
    """`nothing` where lanes count insertions."""
    clear_corners(tables, memory)
    return np.int64(alg.zero), np.int64(alg.zero)


@shared
def write_none_insertions(
    rows: Any, alg: Any, tables: Any, span: Any, item: Any, models: Any, none: Any, out: Any
) -> None:
    """`write_none` where lanes count insertions: between the ends, what is not kept is inserted."""
    if out.none.shape[1] == 0:
        return
    n: Any = lane_index()
    while n < tables.levels:
        most = min(span.m_prefix, span.length - n)
        least = max(0, span.length - span.m_suffix - n)
        out.none[at(item), at(n)] = max(0, most - least + 1)
        n = np.int32(n + warp_size())


@shared
def write_fragment_insertions(
    rows: Any, alg: Any, tables: Any, item: Any, models: Any,
    f: Any, allowed: bool, total: Any, empty: Any, memory: Any, out: Any,
) -> None:  # fmt: skip
    """`write_fragment` where lanes count insertions."""
    synchronize_warp()
    carried = alg.zero, alg.zero
    n: Any = lane_index()
    while n < whole_warps(tables.levels):
        carried = rise(alg, tables, n, carried, memory)
        if n < tables.levels:
            write_model(alg, tables, item, n, f, allowed, carried[1], memory.rising[at(n)], out)
        n = np.int32(n + warp_size())
    synchronize_warp()
