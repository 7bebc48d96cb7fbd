"""Interval rows in reverse: how much everything outside of a pair weighs, for all pairs, in one pass.

It is the derivative of X[0] by C of every cell, worked out from the first row to the last, as
`plait.dp.intervals.rows` has worked out the cells from the last row to the first; times C it is the weight of
all structures with the pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.intervals.loops import (
    CLOSING,
    EXTERIOR,
    SMALLEST_HAIRPIN,
    STEM,
    entry,
    inward,
    outward,
    pair_type,
    small_loop,
    times_paired,
)
from plait.dp.intervals.nearest_neighbor import close, lengthen
from plait.dp.intervals.rows import (
    FOUND,
    RING,
    ROWS,
    SPLIT,
    STEMS,
    OneSequence,
    SequenceALane,
    add_found,
    by_column,
    clear_rings,
    clear_rows,
    column,
    factor,
    in_lanes,
    keep_ends,
    list_mates,
    rule_in,
    stems_of_row,
    sum_beside,
    sum_generic,
    sum_own,
)
from plait.lang.algebras import choice, extend, over_lanes
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import OneLane, load, splat, store, width_of

#: Rows of `RowMemory.rows`: derivatives by S and by R of this row, and what M behind a stem adds.
_BY_SPLIT, _BY_SINGLE, _BEHIND = FOUND + 4, FOUND + 5, FOUND + 6


class Outside(NamedTuple):
    """Derivatives by C and by M, laid out as these are, and by X, (1, (n + 1) * group); all zero at first."""

    closed: Any
    multi: Any
    exterior: Any


@kernel
def outside_kernel(given: Any) -> None:
    """Derivatives of all cells, of a `Sweep`; those by X[0], in `outside.exterior`, are the caller's."""
    reverse = in_lanes(given)
    lanes, rule, alg, memory = reverse.lanes, reverse.rule, reverse.alg, reverse.memory
    strands, outside = reverse.strands, reverse.outside
    n, group = strands.longest, strands.group
    clear_rows(lanes, alg, memory.rows, 0, ROWS)
    list_mates(reverse)
    for p in range(n):
        clear_rings(reverse, p & (RING - 1), 0)
        sum_generic(reverse, p, -1)
        sum_own(reverse, p, -1)
        sum_beside(reverse, p, -1)
        multi_rows(reverse, p)
        for g in range(group):
            at = p * group + g
            value = extend(alg, outside.exterior[0, at], rule.outside)
            outside.exterior[0, at + group] = choice(alg, outside.exterior[0, at + group], value)
        for x in range(column(group, p), column(group, n), width_of(lanes)):
            store(lanes, memory.rows, STEMS, x, splat(lanes, alg.zero))
        count = stems_of_row(reverse, p, p + SMALLEST_HAIRPIN + 1, n)
        for z in range(count):
            q = memory.places[0, z]
            if z == 0 or memory.places[0, z - 1] != q:
                behind_stem(reverse.layout, reverse, q)
        for z in range(count):
            around_cell(reverse, p, memory.places[0, z], memory.places[1, z])


@shared
def multi_rows(reverse: Any, p: Any) -> None:
    """Derivatives by S and R of a row, and by M and M2 of the next row through those of this row."""
    alg, rows, strands, by_rows = reverse.alg, reverse.memory.rows, reverse.strands, reverse.outside.multi
    mine = by_column(reverse.layout, reverse.lanes)
    rule = rule_in(mine, reverse.rule)
    n, group, starts = strands.longest, strands.group, reverse.kept.starts
    here, after = SPLIT + (p & 1), SPLIT + 1 - (p & 1)
    single = splat(mine, alg.zero)
    for j in range(n - 1, p - 1, -1):
        x = column(group, j)
        by_multi = load(mine, by_rows, 0, starts[p] + j * group)
        by_two = load(mine, rows, here, x)
        single = lengthen(rule, alg, single, by_multi)
        store(mine, rows, _BY_SINGLE, x, single)
        store(mine, rows, _BY_SPLIT, x, choice(alg, by_multi, by_two))
        if j > p:
            below = load(mine, by_rows, 0, starts[p + 1] + j * group)
            store(
                mine, by_rows, 0, starts[p + 1] + j * group, close(rule, alg, below, by_multi, rule.unpaired)
            )
            store(mine, rows, after, x, extend(alg, by_two, rule.unpaired))


def _behind_one(layout: Any, reverse: Any, q: Any) -> None:
    total = over_lanes(reverse.alg, pass_behind(reverse, q))
    store(OneLane(1), reverse.memory.rows, _BEHIND, column(reverse.strands.group, q), total)


def _behind_each(layout: Any, reverse: Any, q: Any) -> None:
    at = column(reverse.strands.group, q)
    store(reverse.lanes, reverse.memory.rows, _BEHIND, at, pass_behind(reverse, q))


#: What M behind a stem that ends at q adds to its derivative, and the stem to that by M.
behind_stem = by_type_of({OneSequence: _behind_one, SequenceALane: _behind_each})


@shared
def pass_behind(reverse: Any, q: Any) -> Any:
    """The sum of M behind q, times derivatives by S; in each lane."""
    lanes, alg, rule, rows = reverse.lanes, reverse.alg, reverse.lane_rule, reverse.memory.rows
    strands = reverse.strands
    group, multi, by_rows = strands.group, reverse.kept.multi, reverse.outside.multi
    at = reverse.kept.starts[q + 1] - RING * group
    stem = factor(reverse.layout, lanes, rows, column(group, q))
    total = splat(lanes, alg.zero)
    for x in range(column(group, q + SMALLEST_HAIRPIN + 2), column(group, strands.longest), width_of(lanes)):
        by_split = load(lanes, rows, _BY_SPLIT, x)
        total = close(rule, alg, total, by_split, load(lanes, multi, 0, at + x))
        store(lanes, by_rows, 0, at + x, close(rule, alg, load(lanes, by_rows, 0, at + x), by_split, stem))
    return total


@shared
def around_cell(reverse: Any, p: Any, q: Any, g: Any) -> None:
    """The derivative by C of a cell, and what it adds to others."""
    alg, weights, strands, rows = reverse.alg, reverse.weights, reverse.strands, reverse.memory.rows
    kept = reverse.kept
    rule, outside, group, one = reverse.rule, reverse.outside, strands.group, OneLane(1)
    at, x = q * group + g, column(group, q) + g
    value = load(one, kept.closed, 0, kept.starts[p] + at)
    kind = pair_type(weights, strands, p, q, g)
    row = outward(strands, kind, p, q, g)
    before = extend(alg, load(one, outside.exterior, 0, p * group + g), entry(weights, row + EXTERIOR))
    after = load(one, outside.exterior, 0, at + group)
    store(one, outside.exterior, 0, at + group, close(rule, alg, after, before, value))
    total = extend(alg, before, load(one, kept.exterior, 0, at + group))
    stem = choice(alg, load(one, rows, _BY_SINGLE, x), load(one, rows, _BEHIND, x))
    total = close(rule, alg, total, stem, entry(weights, row + STEM))
    total = add_found(reverse, row, x, total)
    total = small_loops_around(reverse, p, q, g, total)
    store(one, outside.closed, 0, kept.starts[p] + at, total)
    total = times_paired(strands, alg, 0, total, p, q, g)
    row = inward(strands, kind, p, q, g)
    keep_ends(reverse, row, p, x, total)
    within, last = SPLIT + 1 - (p & 1), column(group, q - 1) + g
    closing = load(one, rows, within, last)
    store(one, rows, within, last, close(rule, alg, closing, total, entry(weights, row + CLOSING)))


@shared
def small_loops_around(reverse: Any, p: Any, q: Any, g: Any, total: Any) -> Any:
    """Stacks, bulges of one base and small interior loops around a pair, besides `total`."""
    if p > 0:
        total = around_small_loop(reverse, total, p - 1, q + 1, p, q, g)
        total = around_small_loop(reverse, total, p - 1, q + 2, p, q, g)
    if p > 1:
        total = around_small_loop(reverse, total, p - 2, q + 1, p, q, g)
        total = around_small_loop(reverse, total, p - 2, q + 2, p, q, g)
        total = around_small_loop(reverse, total, p - 2, q + 3, p, q, g)
    if p > 2:
        total = around_small_loop(reverse, total, p - 3, q + 2, p, q, g)
        total = around_small_loop(reverse, total, p - 3, q + 3, p, q, g)
    return total


@shared
def around_small_loop(reverse: Any, so_far: Any, i: Any, j: Any, p: Any, q: Any, g: Any) -> Any:
    """Besides, a small loop; what is zero, which a cell behind the last base is too, is not left out."""
    weights, strands = reverse.weights, reverse.strands
    around = load(OneLane(1), reverse.outside.closed, 0, reverse.kept.starts[i] + j * strands.group + g)
    outer, inner = pair_type(weights, strands, i, j, g), pair_type(weights, strands, q, p, g)
    loop = small_loop(weights, strands, reverse.alg, outer, inner, i, j, p, q, g)
    around = times_paired(strands, reverse.alg, 0, around, i, j, g)
    return close(reverse.rule, reverse.alg, so_far, around, loop)


@kernel
def pairs_kernel(alg: Any, kept: Any, outside: Any, least: Any, ends: Any, pairs: Any, values: Any) -> int:
    """List weights of pairs above `least`, or no numbers, by sequence and row, while there is room; how many.

    `ends`, int64 (group,): where those of each end.
    """
    n, at = kept.starts.size - 2, 0
    for g in range(kept.step):
        for i in range(n):
            for j in range(i + SMALLEST_HAIRPIN + 1, n):
                x = kept.starts[i] + j * kept.step + g
                value = extend(alg, kept.closed[0, x], outside.closed[0, x])
                if not value <= least:
                    if at < values.size:
                        pairs[at, 0], pairs[at, 1], values[at] = i, j, value
                    at += 1
        ends[g] = at
    return at
