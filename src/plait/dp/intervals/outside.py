"""Interval rows in reverse: how much everything outside of a pair weighs, for all pairs, in one pass.

It is the derivative of X[0] by C of every cell, worked out from the first row to the last, as
`plait.dp.intervals.rows` has worked out the cells from the last row to the first; times C it is the weight of
all structures with the pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.intervals.loops import (
    BULGE,
    CLOSING,
    EXTERIOR,
    GENERIC,
    LARGEST_LOOP,
    ONE_SIDED,
    SMALLEST_HAIRPIN,
    STEM,
    TWO_THREE,
    inward_row,
    outward_row,
    pair_type,
    small_loop,
    times_paired,
)
from plait.dp.intervals.nearest_neighbor import NearestNeighbor, beside, close, one_stem, widen
from plait.dp.intervals.rows import RING, OneSequence, SequenceALane, clear_rings, column, factor
from plait.lang.algebras import choice, extend, over_lanes
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import load, splat, store, width_of

#: Rows of `RowMemory.found`: derivatives by S and by R of this row, and what M behind a stem adds.
_BY_SPLIT, _BY_SINGLE, _BEHIND = 4, 5, 6


class Outside(NamedTuple):
    """Derivatives by C and by M, laid out as these are, and by X, (1, (n + 1) * group); all zero at first."""

    closed: Any
    multi: Any
    exterior: Any


class Reverse(NamedTuple):
    """What a row is worked out from; `memory` as in `Sweep`, with `split` for derivatives by M2."""

    lanes: Any
    layout: Any
    rule: Any
    lane_rule: Any
    alg: Any
    weights: Any
    strands: Any
    kept: Any
    outside: Any
    memory: Any


@kernel
def outside_kernel(
    lanes: Any,
    layout: Any,
    rule: Any,
    alg: Any,
    weights: Any,
    strands: Any,
    kept: Any,
    outside: Any,
    memory: Any,
) -> None:
    """Derivatives of all cells; those by X[0], in `outside.exterior`, are the caller's."""
    in_lanes = NearestNeighbor(splat(lanes, rule.unpaired), splat(lanes, rule.outside))
    reverse = Reverse(lanes, layout, rule, in_lanes, alg, weights, strands, kept, outside, memory)
    n, group = strands.longest, strands.group
    for p in range(n):
        clear_rings(lanes, alg, memory, p & (RING - 1))
        sum_generic_around(reverse, p)
        sum_beside_around(reverse, p)
        multi_rows(reverse, p)
        for g in range(group):
            at = p * group + g
            value = extend(alg, outside.exterior[0, at], rule.outside)
            outside.exterior[0, at + group] = choice(alg, outside.exterior[0, at + group], value)
        for q in range(p + SMALLEST_HAIRPIN + 1, n):
            if stem_cells(reverse, p, q):
                behind_stem(layout, reverse, q)
        for q in range(p + SMALLEST_HAIRPIN + 1, n):
            for g in range(group):
                around_cell(reverse, p, q, g)


@shared
def sum_generic_around(reverse: Any, p: Any) -> None:
    """Interior loops around, with two unpaired bases or more on both sides, of more than five."""
    lanes, rule, alg, weights, memory = (
        reverse.lanes,
        reverse.lane_rule,
        reverse.alg,
        reverse.weights,
        reverse.memory,
    )
    n, group = reverse.strands.longest, reverse.strands.group
    here, last = (p & 1) * RING, (1 - (p & 1)) * RING
    rows, near, next_near = memory.generic, (p - 3) & (RING - 1), (p - 4) & (RING - 1)
    even, odd = splat(lanes, weights.asymmetry[0]), splat(lanes, weights.asymmetry[1])
    for x in range(column(group, p + SMALLEST_HAIRPIN + 1), column(group, n), width_of(lanes)):
        found = splat(lanes, alg.zero)
        store(lanes, memory.sums, here + 4, x, extend(alg, load(lanes, rows, near, x + 3 * group), even))
        value = choice(
            alg, load(lanes, rows, near, x + 4 * group), load(lanes, rows, next_near, x + 3 * group)
        )
        store(lanes, memory.sums, here + 5, x, extend(alg, value, odd))
        for u in range(6, LARGEST_LOOP + 1):
            far = (p - u + 1) & (RING - 1)
            left, right = (
                load(lanes, rows, near, x + (u - 1) * group),
                load(lanes, rows, far, x + 3 * group),
            )
            around = load(lanes, memory.sums, last + u - 2, x + group)
            value = widen(rule, alg, around, left, right, splat(lanes, weights.asymmetry[u - 4]))
            store(lanes, memory.sums, here + u, x, value)
            found = close(rule, alg, found, value, splat(lanes, weights.interior[u]))
        store(lanes, memory.found, GENERIC, x, found)


@shared
def sum_beside_around(reverse: Any, p: Any) -> None:
    """Interior loops around of one base on one side, of two and three, and longer bulges."""
    lanes, rule, alg, weights, memory = (
        reverse.lanes,
        reverse.lane_rule,
        reverse.alg,
        reverse.weights,
        reverse.memory,
    )
    n, group = reverse.strands.longest, reverse.strands.group
    ring = RING - 1
    zero = splat(lanes, alg.zero)
    loop = splat(lanes, extend(alg, weights.interior[5], weights.asymmetry[1]))
    for x in range(column(group, p + SMALLEST_HAIRPIN + 1), column(group, n), width_of(lanes)):
        found, near = zero, (p - 2) & ring
        for k in range(3, LARGEST_LOOP):
            step = splat(lanes, extend(alg, weights.interior[k + 1], weights.asymmetry[k - 1]))
            left = load(lanes, memory.one_sided, near, x + (k + 1) * group)
            right = load(lanes, memory.one_sided, (p - 1 - k) & ring, x + 2 * group)
            found = beside(rule, alg, found, left, right, step)
        store(lanes, memory.found, ONE_SIDED, x, found)
        found, near = zero, (p - 1) & ring
        for k in range(2, LARGEST_LOOP + 1):
            left = load(lanes, memory.bulge, near, x + (k + 1) * group)
            right = load(lanes, memory.bulge, (p - 1 - k) & ring, x + group)
            found = beside(rule, alg, found, left, right, splat(lanes, weights.bulge[k]))
        store(lanes, memory.found, BULGE, x, found)
        left = load(lanes, memory.two_three, (p - 3) & ring, x + 4 * group)
        right = load(lanes, memory.two_three, (p - 4) & ring, x + 3 * group)
        store(lanes, memory.found, TWO_THREE, x, beside(rule, alg, zero, left, right, loop))


@shared
def multi_rows(reverse: Any, p: Any) -> None:
    """Derivatives by S and R of a row, and by M and M2 of the next row through those of this row."""
    alg, rule, memory, strands = reverse.alg, reverse.rule, reverse.memory, reverse.strands
    n, group = strands.longest, strands.group
    here, after = p & 1, 1 - (p & 1)
    rows, starts = reverse.outside.multi, reverse.kept.starts
    for g in range(group):
        single = alg.zero
        for j in range(n - 1, p - 1, -1):
            at, x = j * group + g, column(group, j) + g
            by_multi = rows[0, starts[p] + at]
            by_two = memory.split[here, x]
            single = one_stem(rule, alg, single, by_multi)
            memory.found[_BY_SINGLE, x] = single
            memory.found[_BY_SPLIT, x] = choice(alg, by_multi, by_two)
            if j > p:
                below = rows[0, starts[p + 1] + at]
                rows[0, starts[p + 1] + at] = close(rule, alg, below, by_multi, rule.unpaired)
                memory.split[after, x] = extend(alg, by_two, rule.unpaired)


@shared
def stem_cells(reverse: Any, p: Any, q: Any) -> bool:
    """S of the cells of a column; whether any can pair."""
    alg, weights, strands, memory, kept = (
        reverse.alg,
        reverse.weights,
        reverse.strands,
        reverse.memory,
        reverse.kept,
    )
    some = False
    for g in range(strands.group):
        at = q * strands.group + g
        value = kept.closed[0, kept.starts[p] + at]
        if value != alg.zero:
            some = True
            row = outward_row(strands, pair_type(weights, strands, p, q, g), p, q, g)
            value = extend(alg, value, weights.outward[row, STEM])
        memory.stem[0, at] = value
    return some


def _behind_one(layout: Any, reverse: Any, q: Any) -> None:
    total = over_lanes(reverse.alg, pass_behind(reverse, q))
    reverse.memory.found[_BEHIND, column(reverse.strands.group, q)] = total


def _behind_each(layout: Any, reverse: Any, q: Any) -> None:
    at = column(reverse.strands.group, q)
    store(reverse.lanes, reverse.memory.found, _BEHIND, at, pass_behind(reverse, q))


#: What M behind a stem that ends at q adds to its derivative, and the stem to that by M.
behind_stem = by_type_of({OneSequence: _behind_one, SequenceALane: _behind_each})


@shared
def pass_behind(reverse: Any, q: Any) -> Any:
    """The sum of M behind q, times derivatives by S; in each lane."""
    lanes, alg, rule, memory, strands = (
        reverse.lanes,
        reverse.alg,
        reverse.lane_rule,
        reverse.memory,
        reverse.strands,
    )
    group, rows, by_rows = strands.group, reverse.kept.multi, reverse.outside.multi
    at = reverse.kept.starts[q + 1] - RING * group
    stem = factor(reverse.layout, lanes, memory, q * group)
    total = splat(lanes, alg.zero)
    for x in range(column(group, q + SMALLEST_HAIRPIN + 2), column(group, strands.longest), width_of(lanes)):
        by_split = load(lanes, memory.found, _BY_SPLIT, x)
        total = close(rule, alg, total, by_split, load(lanes, rows, 0, at + x))
        store(lanes, by_rows, 0, at + x, close(rule, alg, load(lanes, by_rows, 0, at + x), by_split, stem))
    return total


@shared
def around_cell(reverse: Any, p: Any, q: Any, g: Any) -> None:
    """The derivative by C of a cell, and what it adds to others."""
    alg, weights, strands, memory, kept = (
        reverse.alg,
        reverse.weights,
        reverse.strands,
        reverse.memory,
        reverse.kept,
    )
    rule, outside, group = reverse.rule, reverse.outside, strands.group
    at, x = q * group + g, column(group, q) + g
    value = kept.closed[0, kept.starts[p] + at]
    if value == alg.zero:
        return
    kind = pair_type(weights, strands, p, q, g)
    row = outward_row(strands, kind, p, q, g)
    before = extend(alg, outside.exterior[0, p * group + g], weights.outward[row, EXTERIOR])
    after = outside.exterior[0, at + group]
    outside.exterior[0, at + group] = close(rule, alg, after, before, value)
    total = extend(alg, before, kept.exterior[0, at + group])
    stem = choice(alg, memory.found[_BY_SINGLE, x], memory.found[_BEHIND, x])
    total = close(rule, alg, total, stem, weights.outward[row, STEM])
    total = close(rule, alg, total, memory.found[GENERIC, x], weights.outward[row, GENERIC])
    total = close(rule, alg, total, memory.found[ONE_SIDED, x], weights.outward[row, ONE_SIDED])
    total = close(rule, alg, total, memory.found[BULGE, x], weights.outward[row, BULGE])
    total = close(rule, alg, total, memory.found[TWO_THREE, x], weights.outward[row, TWO_THREE])
    total = small_loops_around(reverse, kind, p, q, g, total)
    outside.closed[0, kept.starts[p] + at] = total
    total = times_paired(strands, alg, 0, total, p, q, g)
    row, here = inward_row(strands, kind, p, q, g), p & (RING - 1)
    memory.generic[here, x] = extend(alg, total, weights.inward[row, GENERIC])
    memory.one_sided[here, x] = extend(alg, total, weights.inward[row, ONE_SIDED])
    memory.two_three[here, x] = extend(alg, total, weights.inward[row, TWO_THREE])
    memory.bulge[here, x] = extend(alg, total, weights.inward[row, BULGE])
    within, last = 1 - (p & 1), column(group, q - 1) + g
    closing = memory.split[within, last]
    memory.split[within, last] = close(rule, alg, closing, total, weights.inward[row, CLOSING])


@shared
def small_loops_around(reverse: Any, kind: Any, p: Any, q: Any, g: Any, total: Any) -> Any:
    """Stacks, bulges of one base and small interior loops around a pair, besides `total`."""
    alg, weights, strands, kept = reverse.alg, reverse.weights, reverse.strands, reverse.kept
    inner = pair_type(weights, strands, q, p, g)
    for left in range(min(3, p)):
        for right in range(min(3, strands.longest - 1 - q)):
            i, j = p - 1 - left, q + 1 + right
            around = reverse.outside.closed[0, kept.starts[i] + j * strands.group + g]
            if around != alg.zero and (left + right != 2 or left == right):
                outer = pair_type(weights, strands, i, j, g)
                loop = small_loop(weights, strands, alg, outer, inner, i, j, p, q, g)
                around = times_paired(strands, alg, 0, around, i, j, g)
                total = close(reverse.rule, alg, total, around, loop)
    return total
