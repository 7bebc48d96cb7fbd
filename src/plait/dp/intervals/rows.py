"""Interval rows: the first base from the last to the first, rows as vectors over the last base.

No term of a row needs another value S or M of the row, so it is worked out for all its columns at once.
Interior loops cost about as many vector steps as they may have bases: those of u bases follow from those of
u - 2 in the row below. Either there is one sequence, and lanes are its columns; or there is a sequence in
each lane, and a step to the next column is one to the next group of lanes.

Where a choice is one of the two alternatives, a stem at the left end is extended by what follows only if it
is better than all else that reads the same bases; so few are that a row costs a few vector steps.

In reverse, from the first row to the last, derivatives of X[0] are worked out by every cell. That by C is how
much everything outside of a pair weighs; times C it is the weight of all structures with the pair.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.dp.intervals.loops import (
    BEYOND,
    BULGE,
    BY_BULGE,
    BY_DIFFERENCE,
    BY_ONE_SIDED,
    BY_SIZE,
    CLOSING,
    ENDS,
    EXTERIOR,
    GENERIC,
    LARGEST_LOOP,
    LETTERS,
    ONE_SIDED,
    SMALLEST_HAIRPIN,
    STEM,
    TWO_THREE,
    allowed,
    as_stem,
    entry,
    hairpin_weight,
    inward,
    letter,
    outward,
    own_loop,
    own_loops,
    pair_type,
    small_loop,
    times_paired,
)
from plait.dp.intervals.nearest_neighbor import NearestNeighbor, close, leave, lengthen, widen
from plait.lang.algebras import choice, extend, over_lanes
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import (
    OneLane,
    equal,
    held,
    load,
    lowest_bit,
    mask_bits,
    splat,
    store,
    width_of,
    without_lowest,
)

#: Rows that a loop may reach back, and one of two and three: powers of two.
RING, NEAR = 32, 8
#: Columns before the first base of a row that is kept that can be read, all of them zero.
BEFORE = 24
#: Vectors that are worked out side by side.
BESIDE = 4


class Candidates(NamedTuple):
    """Only stems that are better than what there is are extended: choices are one of the alternatives."""


class EveryStem(NamedTuple):
    """All stems are extended."""


class Intervals(NamedTuple):
    """What is kept: C and M, one row of an array, zero behind the last base, and X, zero at first.

    Row i has columns i - `BEFORE` to n - 1; that of column j and the g-th sequence is at
    ``starts[i] + j * step + g``, where `step` is how many there are. `starts` is int64 (n + 2,), `exterior`
    (1, (n + 1) * step).
    """

    closed: Any
    multi: Any
    exterior: Any
    starts: Any
    step: Any


#: Rows of `RowMemory.rows`: of the last rows, C with each of the ends of loops (`ring_row`). Generic interior
#: loops by size (`sums_row`).
SUMS = TWO_THREE * RING + NEAR
#: Loops by kind, without what the outer pair adds.
FOUND = SUMS + RING
#: M2 of this row and the last, and s of this row.
SPLIT = FOUND + 7
STEMS = SPLIT + 2
ROWS = STEMS + 1
#: Letters that pair: codes from 1 on.
BASES = 4


class RowMemory(NamedTuple):
    """Working memory; `rows` (ROWS, ...) have the columns of `Intervals` from -`RING` on, and room behind.

    `places`, int64 (2, ...): column and sequence of each pair of this row. `bits`, int64 (2 * BASES, ...), by
    letters: at j * group + g, whether it pairs with base j of the g-th sequence; below, in one word, whether
    it is the first base of this row.
    """

    rows: Any
    places: Any
    bits: Any


#: Values of a row that pass to the columns behind: the last ones of the rings, loops by size, and M2.
EDGE = (ENDS + 1) * RING + 1


class Part(NamedTuple):
    """Columns from `begin` to `end`, and of these, rows from `top` - 1 down to `bottom`.

    Of several parts there are only where a choice is one of the alternatives.
    What passes from the columns before to those behind is in `edges`, (parts, n, EDGE): from this part in
    number `at`, for it in the one before.
    """

    begin: Any
    end: Any
    top: Any
    bottom: Any
    at: Any
    edges: Any


class Walk(NamedTuple):
    """What has been worked out, and from what; the g-th sequence, the lane-th of what is kept."""

    rule: Any
    alg: Any
    weights: Any
    strands: Any
    kept: Any
    g: Any = 0
    lane: Any = 0


class Sweep(NamedTuple):
    """What a row is worked out from.

    `outside` is nothing until derivatives are worked out; then the rows `SPLIT` of `memory` are those by M2.
    """

    lanes: Any
    choose: Any
    rule: Any
    alg: Any
    weights: Any
    strands: Any
    kept: Any
    outside: Any
    memory: Any
    part: Any

    @property
    def filled(self) -> Walk:
        """What is asked on the way back."""
        return Walk(self.rule, self.alg, self.weights, self.strands, self.kept)


@shared
def rule_in(lanes: Any, rule: Any) -> Any:
    """A rule with its parameters in every lane."""
    return NearestNeighbor(splat(lanes, rule.unpaired), splat(lanes, rule.outside))


@kernel
def fill_kernel(given: Any, back: bool) -> None:
    """Work out C, M and X of a sequence, or of one a lane, of a `Sweep`; or derivatives, going `back`.

    One kernel for both, since they have much in common.
    """
    sweep = held(given)
    if back:
        derive(sweep)
    else:
        fill(sweep)


@shared
def fill(sweep: Any) -> None:
    """C, M and X, or a part of it."""
    lanes, alg, memory, part, strands = sweep.lanes, sweep.alg, sweep.memory, sweep.part, sweep.strands
    n, group = strands.longest, strands.group
    if part.top == part.end:
        # What is read before it has been written: loops by size, and the row behind the last.
        clear_rows(lanes, alg, memory.rows, SUMS, FOUND)
        clear_rings(sweep, part.end, 0, memory.rows.shape[1])
        list_mates(sweep)
        if part.end == n:
            for g in range(group):
                sweep.kept.exterior[0, n * group + g] = alg.one
    for i in range(part.top - 1, part.bottom - 1, -1):
        clear_row(sweep, i)
        clear_kept(sweep, i)
        sum_generic(sweep, i, 1)
        sum_own(sweep, i, 1)
        sum_beside(sweep, i, 1)
        if part.end == n:
            leave_base(sweep, i)
        if i < part.begin:
            pass_edge(sweep, i, part.begin, part.at - 1, True)
            stems_before(sweep, i)
        count = pairs_of_row(sweep, i, first_column(sweep, i), part.end)
        for z in range(count):
            pair_cell(sweep, i, memory.places[0, z], memory.places[1, z])
        multi_row(sweep.choose, sweep, i, count)
        if part.end < n:
            pass_edge(sweep, i, part.end, part.at, False)


@shared
def first_column(sweep: Any, i: Any) -> Any:
    """The first column of a row that is this part's and can be the last of a pair."""
    return max(i + SMALLEST_HAIRPIN + 1, sweep.part.begin)


@shared
def stems_before(sweep: Any, i: Any) -> None:
    """X and S of a row, of what begins with a stem in the columns before, if it is as good as all else."""
    part, group, one = sweep.part, sweep.strands.group, OneLane(1)
    places, rows, at = sweep.memory.places, sweep.memory.rows, sweep.kept.starts[i]
    for z in range(stems_of_row(sweep, i, i + SMALLEST_HAIRPIN + 1, part.begin)):
        k = places[0, z]
        if part.end == sweep.strands.longest:
            leave_stem(sweep, i, k, places[1, z])
        if load(one, rows, STEMS, column(group, k)) == load(one, sweep.kept.multi, 0, at + k * group):
            add_stem(sweep, SPLIT + (i & 1), k)


@shared
def pass_edge(sweep: Any, i: Any, end: Any, at: Any, bring: bool) -> None:
    """Keep what columns from `end` on read of a row of those before; or bring it into working memory."""
    rows, edge, one = sweep.memory.rows, sweep.part.edges[at], OneLane(1)
    x = column(sweep.strands.group, end)
    for z in range(EDGE):
        row, place = SPLIT + (i & 1), x - 1
        if z < ENDS * RING:
            row, place = ring_row(z // RING, i), x - RING + z % RING
        elif z < EDGE - 1:
            row = SUMS + z - ENDS * RING
        if bring:
            store(one, rows, row, place, edge[i, z])
        else:
            edge[i, z] = load(one, rows, row, place)


@shared
def leave_base(sweep: Any, i: Any) -> None:
    """X of a row, of what leaves its first base unpaired."""
    alg, strands, exterior, group = sweep.alg, sweep.strands, sweep.kept.exterior, sweep.strands.group
    for g in range(group):
        behind = leave(sweep.rule, alg, exterior[0, (i + 1) * group + g])
        # Behind the last base of a sequence that is shorter than others there is nothing.
        exterior[0, i * group + g] = alg.one if letter(strands, i, g) == BEYOND else behind


@shared
def leave_stem(sweep: Any, i: Any, j: Any, g: Any) -> None:
    """X of a row, of what begins with a pair, besides."""
    alg, kept, strands, group, one = sweep.alg, sweep.kept, sweep.strands, sweep.strands.group, OneLane(1)
    value = load(one, kept.closed, 0, kept.starts[i] + j * group + g)
    behind = load(one, kept.exterior, 0, (j + 1) * group + g)
    behind = extend(alg, as_stem(sweep.weights, strands, EXTERIOR, i, j, g), behind)
    first = load(one, kept.exterior, 0, i * group + g)
    store(one, kept.exterior, 0, i * group + g, close(sweep.rule, alg, first, value, behind))


@shared
def column(group: Any, j: Any) -> Any:
    """Where a column begins in working memory."""
    return (j + RING) * group


@shared
def clear_row(sweep: Any, i: Any) -> None:
    """Make working memory of a row zero wherever it will be read."""
    lanes, rows, group, part = sweep.lanes, sweep.memory.rows, sweep.strands.group, sweep.part
    zero = splat(lanes, sweep.alg.zero)
    first, end = column(group, max(i, part.begin - RING)), column(group, part.end)
    for x in range(first, end, width_of(lanes)):
        store(lanes, rows, STEMS, x, zero)
        store(lanes, rows, SPLIT + (i & 1), x, zero)
    # Of one sequence all sizes of loops are looked for; of several, those that fit.
    before = RING if group == 1 else NEAR * group
    clear_rings(sweep, i, first - before, end + BESIDE * width_of(lanes))


@shared
def clear_kept(sweep: Any, i: Any) -> None:
    """Make zero what is kept of a row, as far as it is this part's; M but for what is written."""
    lanes, part, group, kept = sweep.lanes, sweep.part, sweep.strands.group, sweep.kept
    zero, first = splat(lanes, sweep.alg.zero), part.begin if i < part.begin else i - BEFORE
    at = kept.starts[i]
    for x in range(at + first * group, at + part.end * group, width_of(lanes)):
        store(lanes, kept.closed, 0, x, zero)
    for x in range(at + first * group, at + (i + SMALLEST_HAIRPIN + 1) * group, width_of(lanes)):
        store(lanes, kept.multi, 0, x, zero)


@shared
def clear_rows(lanes: Any, alg: Any, rows: Any, first: Any, end: Any) -> None:
    """Make some rows of working memory zero."""
    zero, width = splat(lanes, alg.zero), width_of(lanes)
    for row in range(first, end):
        for x in range(0, rows.shape[1] - width + 1, width):
            store(lanes, rows, row, x, zero)


@shared
def ring_row(kind: Any, i: Any) -> Any:
    """The row of C with the ends of a kind of loops, of first base i."""
    return kind * RING + (i & ((NEAR if kind == TWO_THREE else RING) - 1))


@shared
def clear_rings(sweep: Any, i: Any, first: Any, end: Any) -> None:
    """Make a row of the rings zero from a place to another."""
    lanes, rows, width = sweep.lanes, sweep.memory.rows, width_of(sweep.lanes)
    for x in range(max(first, 0), end - width + 1, width):
        for kind in range(ENDS):
            store(lanes, rows, ring_row(kind, i), x, splat(lanes, sweep.alg.zero))


@shared
def sum_generic(sweep: Any, i: Any, way: Any) -> None:
    """Interior loops with two unpaired bases or more on both sides, but for those of four and of five.

    `way` is 1 for loops within pairs of a row, and -1 for those around them.
    """
    lanes, alg, weights, rows = sweep.lanes, sweep.alg, sweep.weights, sweep.memory.rows
    group, width = sweep.strands.group, width_of(lanes)
    side, first, wide = way * group, column(group, first_column(sweep, i)), width * BESIDE
    near, second = ring_row(GENERIC, i + 3 * way), ring_row(GENERIC, i + 4 * way)
    even, odd = splat(lanes, entry(weights, BY_DIFFERENCE)), splat(lanes, entry(weights, BY_DIFFERENCE + 1))
    count = (column(group, sweep.part.end) - first + wide - 1) // wide
    for k in range(count):
        # What the row before has in a place is read before this row writes there.
        x = first + (count - 1 - k if way > 0 else k) * wide
        z, on = (x + wide - width, -width) if way > 0 else (x, width)
        one = two = three = four = splat(lanes, alg.zero)
        for u in range(6, largest_loop(sweep, i, x, way) + 1):
            step = splat(lanes, entry(weights, BY_DIFFERENCE + u - 4))
            loop = splat(lanes, entry(weights, BY_SIZE + u))
            at = sums_row(i, u, way), near, (u - 1) * side, ring_row(GENERIC, i + (u - 1) * way), side
            one = add_wider(sweep, at, step, loop, z, one)
            two = add_wider(sweep, at, step, loop, z + on, two)
            three = add_wider(sweep, at, step, loop, z + 2 * on, three)
            four = add_wider(sweep, at, step, loop, z + 3 * on, four)
        store_four(sweep, FOUND + GENERIC, z, on, one, two, three, four)
        for z in range(x, x + wide, width):
            value = extend(alg, load(lanes, rows, near, z - 3 * side), even)
            store(lanes, rows, sums_row(i, 4, way), z, value)
            left, right = load(lanes, rows, near, z - 4 * side), load(lanes, rows, second, z - 3 * side)
            store(lanes, rows, sums_row(i, 5, way), z, extend(alg, choice(alg, left, right), odd))


@shared
def sums_row(i: Any, u: Any, way: Any) -> Any:
    """The row of interior loops of u bases by size: that of u - 2 in the row before, one place on."""
    return SUMS + ((u + 2 * way * i) & (RING - 1))


@shared
def add_wider(sweep: Any, at: Any, step: Any, loop: Any, x: Any, so_far: Any) -> Any:
    """Besides, interior loops of a size, from those with two bases less."""
    lanes, rule, alg, rows = sweep.lanes, sweep.rule, sweep.alg, sweep.memory.rows
    row, near, back, far, side = at
    left, right = load(lanes, rows, near, x - back), load(lanes, rows, far, x - 3 * side)
    value = widen(rule, alg, load(lanes, rows, row, x - side), left, right, step)
    store(lanes, rows, row, x, value)
    return close(rule, alg, so_far, value, loop)


@shared
def store_four(sweep: Any, row: Any, x: Any, on: Any, one: Any, two: Any, three: Any, four: Any) -> None:
    """Write vectors side by side."""
    lanes, rows = sweep.lanes, sweep.memory.rows
    store(lanes, rows, row, x, one)
    store(lanes, rows, row, x + on, two)
    store(lanes, rows, row, x + 2 * on, three)
    store(lanes, rows, row, x + 3 * on, four)


@shared
def sum_own(sweep: Any, i: Any, way: Any) -> None:
    """Besides, those that weigh by themselves, if there are any."""
    lanes, rows, group, weights = sweep.lanes, sweep.memory.rows, sweep.strands.group, sweep.weights
    count, found = own_loops(weights), FOUND + GENERIC
    end = column(group, sweep.part.end) if count > 0 else 0
    for x in range(column(group, first_column(sweep, i)), end, width_of(lanes)):
        value = load(lanes, rows, found, x)
        largest = largest_loop(sweep, i, x, way)
        for k in range(count):
            left, right, loop = own_loop(weights, k)
            if left + right <= largest:
                row, back = ring_row(GENERIC, i + (left + 1) * way), (right + 1) * way * group
                inner = load(lanes, rows, row, x - back)
                value = close(sweep.rule, sweep.alg, value, inner, splat(lanes, loop))
        store(lanes, rows, found, x, value)


@shared
def largest_loop(sweep: Any, i: Any, x: Any, way: Any) -> Any:
    """The most unpaired bases of a loop within or around a pair of a row and the columns of a place."""
    end, group = sweep.part.end, sweep.strands.group
    if group == 1:
        return min(LARGEST_LOOP, end - 1 - i) if way > 0 else LARGEST_LOOP
    # A hairpin and its pair are within: no loop is larger in these columns, nor is one looked for; but one
    # more, so that what earlier rows have left in `sums_row`, where this row does not write, is zero.
    j = x // group - RING
    return min(LARGEST_LOOP, j + BESIDE - i - SMALLEST_HAIRPIN - 3 if way > 0 else end - 1 - j + i - 1)


@shared
def sum_beside(sweep: Any, i: Any, way: Any) -> None:
    """Interior loops of one base on one side and three or more, of two and three, and longer bulges."""
    lanes, rule, alg, weights = sweep.lanes, sweep.rule, sweep.alg, sweep.weights
    rows, group, width = sweep.memory.rows, sweep.strands.group, width_of(sweep.lanes)
    side = way * group
    near, far = ring_row(TWO_THREE, i + 3 * way), ring_row(TWO_THREE, i + 4 * way)
    loop = splat(lanes, extend(alg, entry(weights, BY_SIZE + 5), entry(weights, BY_DIFFERENCE + 1)))
    for x in range(column(group, first_column(sweep, i)), column(group, sweep.part.end), width * BESIDE):
        largest = largest_loop(sweep, i, x, way)
        sum_one_side(sweep, i, way, x, largest, ONE_SIDED, BY_ONE_SIDED, 1)
        sum_one_side(sweep, i, way, x, largest, BULGE, BY_BULGE, 0)
        for z in range(x, x + width * BESIDE, width):
            left, right = load(lanes, rows, near, z - 4 * side), load(lanes, rows, far, z - 3 * side)
            inner = choice(alg, left, right)
            store(lanes, rows, FOUND + TWO_THREE, z, close(rule, alg, splat(lanes, alg.zero), inner, loop))


@shared
def sum_one_side(sweep: Any, i: Any, way: Any, x: Any, most: Any, kind: Any, table: Any, least: Any) -> None:
    """Loops of a kind: of the `least` bases, one or none, on a side, and at least two more on the other."""
    group, width = sweep.strands.group, width_of(sweep.lanes)
    near, short = ring_row(kind, i + (1 + least) * way), (1 + least) * way * group
    one = two = three = four = splat(sweep.lanes, sweep.alg.zero)
    for k in range(2 + least, most + 1 - least):
        step = splat(sweep.lanes, entry(sweep.weights, table + least + k))
        at = near, ring_row(kind, i + (1 + k) * way), (1 + k) * way * group, short
        one = add_longer(sweep, at, step, x, one)
        two = add_longer(sweep, at, step, x + width, two)
        three = add_longer(sweep, at, step, x + 2 * width, three)
        four = add_longer(sweep, at, step, x + 3 * width, four)
    store_four(sweep, FOUND + kind, x, width, one, two, three, four)


@shared
def add_longer(sweep: Any, at: Any, step: Any, x: Any, so_far: Any) -> Any:
    """Besides, loops of a size on one side."""
    lanes, alg, rows = sweep.lanes, sweep.alg, sweep.memory.rows
    left, right = load(lanes, rows, at[0], x - at[2]), load(lanes, rows, at[1], x - at[3])
    return close(sweep.rule, alg, so_far, choice(alg, left, right), step)


@shared
def list_mates(sweep: Any) -> None:
    """With which letters each base of each sequence pairs."""
    strands, bits, types = sweep.strands, sweep.memory.bits, sweep.weights.pair_types
    count = strands.longest * strands.group
    for z in range(bits.shape[1]):
        for base in range(BASES):
            found = np.int64(0)
            for k in range(min(64, count - 64 * z)):
                code = int(load(OneLane(1), strands.codes, 0, 64 * z + k + strands.group))
                pairs = load(OneLane(1), types, 0, (base + 1) * LETTERS + code) != 0
                found |= np.int64(pairs) << k
            bits[base, z] = found


@shared
def pairs_of_row(sweep: Any, i: Any, begin: Any, end: Any) -> Any:
    """List the cells of a row that can pair, from a column to another, and count them."""
    strands, places, bits = sweep.strands, sweep.memory.places, sweep.memory.bits
    group, count = strands.group, 0
    # One, or a power of two: to divide by it would take longer.
    bits_of_group = lowest_bit(group)
    for base in range(BASES):
        bits[BASES + base, 0] = 0
    for g in range(group):
        base = letter(strands, i, g) - 1
        for k in range(g, 64 if 0 <= base < BASES else 0, group):
            bits[BASES + base, 0] |= np.int64(1) << k
    first, behind = begin * group, end * group
    for z in range(first >> 6, (behind + 63) >> 6):
        word: Any = np.int64(0)
        for base in range(BASES):
            word |= bits[BASES + base, 0] & bits[base, z]
        if 64 * z < first:
            word &= np.int64(-1) << (first - 64 * z)
        if 64 * z + 64 > behind:
            word &= ~(np.int64(-1) << (behind - 64 * z))
        while word != 0:
            x = 64 * z + lowest_bit(word)
            word = without_lowest(word)
            j, g = x >> bits_of_group, x & (group - 1)
            places[0, count], places[1, count] = j, g
            count += int(allowed(strands, i, j, g))
    return count


@shared
def stems_of_row(sweep: Any, i: Any, begin: Any, end: Any) -> Any:
    """Stems of a row from a column to another, of pairs that can be: these are listed and counted."""
    alg, weights, strands, places = sweep.alg, sweep.weights, sweep.strands, sweep.memory.places
    group, one, kept, count = strands.group, OneLane(1), sweep.kept, 0
    for z in range(pairs_of_row(sweep, i, begin, end)):
        j, g = places[0, z], places[1, z]
        value = load(one, kept.closed, 0, kept.starts[i] + j * group + g)
        stem = extend(alg, value, as_stem(weights, strands, STEM, i, j, g))
        store(one, sweep.memory.rows, STEMS, column(group, j) + g, stem)
        places[0, count], places[1, count] = j, g
        count += int(value != alg.zero)
    return count


@shared
def pair_cell(sweep: Any, i: Any, j: Any, g: Any) -> None:
    """C of a cell, and what else the row and the rows above need of it."""
    alg, kept, rows, weights, strands = sweep.alg, sweep.kept, sweep.memory.rows, sweep.weights, sweep.strands
    one, group = OneLane(1), strands.group
    x = column(group, j) + g
    kind = pair_type(weights, strands, i, j, g)
    value = hairpin_weight(weights, strands, alg, inward(strands, kind, i, j, g), i, j, g)
    value = add_small_loops(sweep, kept.closed, kind, i, j, g, 1, value)
    value = choice(alg, value, closed_by_sums(sweep, kind, i, j, g))
    value = times_paired(strands, alg, 0, value, i, j, g)
    row = outward(strands, kind, i, j, g)
    store(one, kept.closed, 0, kept.starts[i] + j * group + g, value)
    store(one, rows, STEMS, x, extend(alg, value, entry(weights, row + STEM)))
    keep_ends(sweep, row, i, x, value)
    if sweep.part.end == strands.longest:
        leave_stem(sweep, i, j, g)


@shared
def keep_ends(sweep: Any, row: Any, i: Any, x: Any, value: Any) -> None:
    """Keep a value of a row with each of the ends of loops, of a row of `inward` or `outward`."""
    for kind in range(ENDS):
        ended = extend(sweep.alg, value, entry(sweep.weights, row + kind))
        store(OneLane(1), sweep.memory.rows, ring_row(kind, i), x, ended)


@shared
def closed_by_sums(sweep: Any, kind: Any, i: Any, j: Any, g: Any) -> Any:
    """What vectors have found, closed by a pair: longer loops, and multiloops."""
    rule, alg, rows, weights = sweep.rule, sweep.alg, sweep.memory.rows, sweep.weights
    group = sweep.strands.group
    row, x = inward(sweep.strands, kind, i, j, g), column(group, j) + g
    value = add_found(sweep, row, x, alg.zero)
    stems_within = load(OneLane(1), rows, SPLIT + 1 - (i & 1), column(group, j - 1) + g)
    return close(rule, alg, value, stems_within, entry(weights, row + CLOSING))


@shared
def add_found(sweep: Any, row: Any, x: Any, value: Any) -> Any:
    """Besides, what vectors have found at a place, with the ends of a row of `inward` or `outward`."""
    for kind in range(ENDS):
        found = load(OneLane(1), sweep.memory.rows, FOUND + kind, x)
        value = close(sweep.rule, sweep.alg, value, found, entry(sweep.weights, row + kind))
    return value


@shared
def add_small_loop(
    s: Any, table: Any, kind: Any, i: Any, j: Any, g: Any, way: Any, left: Any, right: Any, so_far: Any
) -> Any:
    """Besides, a loop of so many bases on its sides; zeros, as behind the last base, are not left out."""
    p, q = i + (1 + left) * way, j - (1 + right) * way
    if way < 0 and p < 0:
        return so_far
    value = load(OneLane(1), table, 0, s.kept.starts[p] + q * s.strands.group + g)
    a, b, c, d = (i, j, p, q) if way > 0 else (p, q, i, j)
    outer = kind if way > 0 else pair_type(s.weights, s.strands, a, b, g)
    inner = pair_type(s.weights, s.strands, d, c, g)
    loop = small_loop(s.weights, s.strands, s.alg, outer, inner, a, b, c, d, g)
    if way < 0:
        value = times_paired(s.strands, s.alg, 0, value, a, b, g)
    return close(s.rule, s.alg, so_far, value, loop)


@shared
def add_small_loops(sweep: Any, table: Any, kind: Any, i: Any, j: Any, g: Any, way: Any, value: Any) -> Any:
    """Besides, small loops with pairs within a pair of a kind, or around it: C, or derivatives by it."""
    value = add_small_loop(sweep, table, kind, i, j, g, way, 0, 0, value)
    value = add_small_loop(sweep, table, kind, i, j, g, way, 0, 1, value)
    value = add_small_loop(sweep, table, kind, i, j, g, way, 1, 0, value)
    value = add_small_loop(sweep, table, kind, i, j, g, way, 1, 1, value)
    value = add_small_loop(sweep, table, kind, i, j, g, way, 1, 2, value)
    value = add_small_loop(sweep, table, kind, i, j, g, way, 2, 1, value)
    return add_small_loop(sweep, table, kind, i, j, g, way, 2, 2, value)


@shared
def add_below(sweep: Any, i: Any) -> None:
    """M2 of a row: add what the row below has to S."""
    lanes, alg, rows, group = sweep.lanes, sweep.alg, sweep.memory.rows, sweep.strands.group
    here, last, rule = SPLIT + (i & 1), SPLIT + 1 - (i & 1), rule_in(lanes, sweep.rule)
    for x in range(column(group, first_column(sweep, i)), column(group, sweep.part.end), width_of(lanes)):
        value = lengthen(rule, alg, load(lanes, rows, last, x), load(lanes, rows, here, x))
        store(lanes, rows, here, x, value)


@shared
def factor(sweep: Any, k: Any) -> Any:
    """The stem of this row up to k, in all lanes."""
    lanes, rows, x = sweep.lanes, sweep.memory.rows, column(sweep.strands.group, k)
    if sweep.strands.group == 1:
        return splat(lanes, load(OneLane(1), rows, STEMS, x))
    return load(lanes, rows, STEMS, x)


@shared
def stem_up_to(sweep: Any, k: Any) -> Any:
    """A stem of this row, and where M of what follows it stands."""
    return factor(sweep, k), sweep.kept.starts[k + 1] - RING * sweep.strands.group


@shared
def followed(sweep: Any, value: Any, stem: Any, x: Any) -> Any:
    """Besides, a stem with what follows it up to some columns."""
    behind = load(sweep.lanes, sweep.kept.multi, 0, stem[1] + x)
    return close(sweep.rule, sweep.alg, value, behind, stem[0])


@shared
def add_stem(sweep: Any, here: Any, k: Any) -> None:
    """Add to S what begins with the stem up to k."""
    lanes, rows, group, part = sweep.lanes, sweep.memory.rows, sweep.strands.group, sweep.part
    stem, first = stem_up_to(sweep, k), max(k + SMALLEST_HAIRPIN + 2, part.begin)
    for x in range(column(group, first), column(group, part.end), width_of(lanes)):
        store(lanes, rows, here, x, followed(sweep, load(lanes, rows, here, x), stem, x))


@shared
def add_four_stems(sweep: Any, here: Any, z: Any) -> None:
    """Add to S what begins with four stems, from number z on, whose ends are near each other."""
    lanes, rows, group, places = sweep.lanes, sweep.memory.rows, sweep.strands.group, sweep.memory.places
    one, two = stem_up_to(sweep, places[0, z]), stem_up_to(sweep, places[0, z + 1])
    three, four = stem_up_to(sweep, places[0, z + 2]), stem_up_to(sweep, places[0, z + 3])
    first, end = places[0, z] + SMALLEST_HAIRPIN + 2, column(group, sweep.strands.longest)
    for x in range(column(group, first), end, width_of(lanes)):
        value = followed(sweep, load(lanes, rows, here, x), one, x)
        value = followed(sweep, followed(sweep, value, two, x), three, x)
        store(lanes, rows, here, x, followed(sweep, value, four, x))


@shared
def add_stems(sweep: Any, here: Any, count: Any) -> None:
    """S of a row: everything that begins with one of its stems."""
    places, z = sweep.memory.places, 0
    # Rows are zero so far before their first base that four begin together.
    while z < count:
        if z + 4 <= count and places[0, z + 3] - places[0, z] < BEFORE - SMALLEST_HAIRPIN:
            add_four_stems(sweep, here, z)
            z += 4
        else:
            add_stem(sweep, here, places[0, z])
            z += 1


def _best_stems(choose: Any, sweep: Any, i: Any, count: Any) -> None:
    # Choosing twice from the same changes nothing: M2 of this row serves for S, and so does a stem that is
    # no better.
    add_below(sweep, i)
    if sweep.strands.group == 1:
        best_columns(OneLane(1), sweep, i)
    else:
        best_columns(sweep.lanes, sweep, i)


@shared
def best_columns(mine: Any, sweep: Any, i: Any) -> None:
    """M of a row, and S where a stem is better than what there is, by column of one sequence or several."""
    alg, multi, rows = sweep.alg, sweep.kept.multi, sweep.memory.rows
    group, here, rule = sweep.strands.group, SPLIT + (i & 1), rule_in(mine, sweep.rule)
    at, below = sweep.kept.starts[i], sweep.kept.starts[i + 1]
    first, best = first_column(sweep, i), splat(mine, alg.zero)
    if first > i + SMALLEST_HAIRPIN + 1:
        best = load(mine, multi, 0, at + (first - 1) * group)
    for k in range(first, sweep.part.end):
        # What ends one base earlier has a stem or more, and this base unpaired.
        single = extend(alg, best, rule.unpaired)
        under, x = load(mine, multi, 0, below + k * group), column(group, k)
        value = choice(alg, lengthen(rule, alg, under, load(mine, rows, here, x)), single)
        best = choice(alg, value, load(mine, rows, STEMS, x))
        store(mine, multi, 0, at + k * group, best)
        if mask_bits(equal(best, value)) != mask_bits(equal(value, value)):
            add_stem(sweep, here, k)


def _every_stem(choose: Any, sweep: Any, i: Any, count: Any) -> None:
    places, columns = sweep.memory.places, 0
    for z in range(count):
        # Of several sequences, each may pair in the same column.
        if columns == 0 or places[0, columns - 1] != places[0, z]:
            places[0, columns] = places[0, z]
            columns += 1
    add_stems(sweep, SPLIT + (i & 1), columns)
    if sweep.strands.group == 1:
        sum_columns(OneLane(1), sweep, i)
    else:
        sum_columns(sweep.lanes, sweep, i)
    add_below(sweep, i)


@shared
def sum_columns(mine: Any, sweep: Any, i: Any) -> None:
    """M of a row by column, of one sequence or of several."""
    alg, multi, rows, group = sweep.alg, sweep.kept.multi, sweep.memory.rows, sweep.strands.group
    here, rule = SPLIT + (i & 1), rule_in(mine, sweep.rule)
    at, below, single = sweep.kept.starts[i], sweep.kept.starts[i + 1], splat(mine, alg.zero)
    for k in range(i + SMALLEST_HAIRPIN + 1, sweep.strands.longest):
        x = column(group, k)
        single = lengthen(rule, alg, single, load(mine, rows, STEMS, x))
        under = load(mine, multi, 0, below + k * group)
        value = choice(alg, lengthen(rule, alg, under, load(mine, rows, here, x)), single)
        store(mine, multi, 0, at + k * group, value)


#: M and M2 of a row.
multi_row = by_type_of({Candidates: _best_stems, EveryStem: _every_stem})


#: Rows of `RowMemory.rows`: derivatives by S and by R of this row, and what M behind a stem adds.
_BY_SPLIT, _BY_SINGLE, _BEHIND = FOUND + 4, FOUND + 5, FOUND + 6


class Outside(NamedTuple):
    """Derivatives by C and by M, laid out as these are, and by X, (1, (n + 1) * group); all zero at first."""

    closed: Any
    multi: Any
    exterior: Any


@shared
def derive(reverse: Any) -> None:
    """Derivatives of all cells, behind `fill`; those by X[0], in `outside.exterior`, are the caller's."""
    lanes, rule, alg, memory = reverse.lanes, reverse.rule, reverse.alg, reverse.memory
    strands, outside = reverse.strands, reverse.outside
    n, group = strands.longest, strands.group
    clear_rows(lanes, alg, memory.rows, 0, ROWS)
    for p in range(n):
        clear_rings(reverse, p, column(group, p), memory.rows.shape[1])
        sum_generic(reverse, p, -1)
        sum_own(reverse, p, -1)
        sum_beside(reverse, p, -1)
        if group == 1:
            multi_rows(OneLane(1), reverse, p)
        else:
            multi_rows(lanes, reverse, p)
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
                pass_behind(reverse, q)
        for z in range(count):
            around_cell(reverse, p, memory.places[0, z], memory.places[1, z])


@shared
def multi_rows(mine: Any, reverse: Any, p: Any) -> None:
    """Derivatives by S and R of a row, and by M and M2 of the next row through those of this row."""
    alg, rows, strands, by_rows = reverse.alg, reverse.memory.rows, reverse.strands, reverse.outside.multi
    rule, single = rule_in(mine, reverse.rule), splat(mine, alg.zero)
    n, group, starts = strands.longest, strands.group, reverse.kept.starts
    here, after = SPLIT + (p & 1), SPLIT + 1 - (p & 1)
    for j in range(n - 1, p - 1, -1):
        x = column(group, j)
        by_multi = load(mine, by_rows, 0, starts[p] + j * group)
        by_two = load(mine, rows, here, x)
        single = lengthen(rule, alg, single, by_multi)
        store(mine, rows, _BY_SINGLE, x, single)
        store(mine, rows, _BY_SPLIT, x, choice(alg, by_multi, by_two))
        if j > p:
            below = starts[p + 1] + j * group
            value = close(rule, alg, load(mine, by_rows, 0, below), by_multi, rule.unpaired)
            store(mine, by_rows, 0, below, value)
            store(mine, rows, after, x, extend(alg, by_two, rule.unpaired))


@shared
def pass_behind(reverse: Any, q: Any) -> None:
    """What M behind a stem that ends at q adds to its derivative, and the stem to that by M."""
    lanes, alg, rule, rows = reverse.lanes, reverse.alg, reverse.rule, reverse.memory.rows
    strands = reverse.strands
    group, multi, by_rows = strands.group, reverse.kept.multi, reverse.outside.multi
    at = reverse.kept.starts[q + 1] - RING * group
    stem, total = factor(reverse, q), splat(lanes, alg.zero)
    for x in range(column(group, q + SMALLEST_HAIRPIN + 2), column(group, strands.longest), width_of(lanes)):
        by_split = load(lanes, rows, _BY_SPLIT, x)
        total = close(rule, alg, total, by_split, load(lanes, multi, 0, at + x))
        store(lanes, by_rows, 0, at + x, close(rule, alg, load(lanes, by_rows, 0, at + x), by_split, stem))
    if group == 1:
        store(OneLane(1), rows, _BEHIND, column(group, q), over_lanes(alg, total))
    else:
        store(lanes, rows, _BEHIND, column(group, q), total)


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
    total = add_small_loops(reverse, outside.closed, kind, p, q, g, -1, total)
    store(one, outside.closed, 0, kept.starts[p] + at, total)
    total = times_paired(strands, alg, 0, total, p, q, g)
    row = inward(strands, kind, p, q, g)
    keep_ends(reverse, row, p, x, total)
    within, last = SPLIT + 1 - (p & 1), column(group, q - 1) + g
    closing = load(one, rows, within, last)
    store(one, rows, within, last, close(rule, alg, closing, total, entry(weights, row + CLOSING)))


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
                # Written in any case: whether it stays cannot be foretold.
                if at < values.size:
                    pairs[at, 0], pairs[at, 1], values[at] = i, j, value
                at += int(not value <= least)
        ends[g] = at
    return at
