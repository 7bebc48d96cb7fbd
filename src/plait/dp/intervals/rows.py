"""Interval rows: the first base from the last to the first, rows as vectors over the last base.

No term of a row needs another value S or M of the row, so it is worked out for all its columns at once.
Interior loops cost about as many vector steps as they may have bases: those of u bases follow from those of
u - 2 in the row below. Either there is one sequence, and lanes are its columns; or there is a sequence in
each lane, and a step to the next column is one to the next group of lanes.

Where a choice is one of the two alternatives, a stem at the left end is extended by what follows only if it
is better than all else that reads the same bases; so few are that a row costs a few vector steps.
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
    allowed,
    hairpin_weight,
    inward_row,
    outward_row,
    pair_type,
    small_loop,
    times_paired,
)
from plait.dp.intervals.nearest_neighbor import (
    NearestNeighbor,
    beside,
    close,
    leave,
    one_stem,
    stems,
    two_stems,
    widen,
)
from plait.lang.algebras import choice, extend, is_better
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import load, splat, store, width_of

#: Rows that a loop may reach back, a power of two.
RING = 32
#: Columns before the first base of a row that can be read, all of them zero.
BEFORE = 40
#: Vectors that are worked out side by side.
BESIDE = 2


class OneSequence(NamedTuple):
    """Lanes are columns of one sequence."""


class SequenceALane(NamedTuple):
    """Each lane has a sequence of its own."""


class Candidates(NamedTuple):
    """Only stems that are better than what there is are extended: choices are one of the alternatives."""


class EveryStem(NamedTuple):
    """All stems are extended."""


class Intervals(NamedTuple):
    """What is kept: C and M, one row of an array, and X.

    Row i has columns i - `BEFORE` to n - 1; that of column j and the g-th sequence is at
    ``starts[i] + j * group + g``. `starts` is int64 (n + 2,), `exterior` (1, (n + 1) * group).
    """

    closed: Any
    multi: Any
    exterior: Any
    starts: Any


class RowMemory(NamedTuple):
    """Working memory; columns as in `Intervals` from column -`RING` on, with room for whole vectors behind.

    By the last rows: C as within interior loops, `generic`, `one_sided`, `two_three`, and within bulges,
    `bulge`, (RING, ...). `sums`, (2 * RING, ...): generic interior loops by size, of this row and the last.
    `found`, (4, ...): loops by kind, without what the outer pair adds. `split`, (2, ...): M2 of this row and
    the last. `stem` and `stem_at` (1, ...): s of this row, and int64 the columns where it is not zero.
    """

    generic: Any
    one_sided: Any
    two_three: Any
    bulge: Any
    sums: Any
    found: Any
    split: Any
    stem: Any
    stem_at: Any


class Sweep(NamedTuple):
    """What a row is worked out from; `lane_rule` is `rule` with its parameters in every lane."""

    lanes: Any
    layout: Any
    choose: Any
    rule: Any
    lane_rule: Any
    alg: Any
    weights: Any
    strands: Any
    kept: Any
    memory: Any


@kernel
def fill_kernel(
    lanes: Any,
    layout: Any,
    choose: Any,
    rule: Any,
    alg: Any,
    weights: Any,
    strands: Any,
    kept: Any,
    memory: Any,
) -> None:
    """Work out C, M and X of one sequence, or of one in each lane."""
    in_lanes = NearestNeighbor(splat(lanes, rule.unpaired), splat(lanes, rule.outside))
    sweep = Sweep(lanes, layout, choose, rule, in_lanes, alg, weights, strands, kept, memory)
    n, group = strands.longest, strands.group
    for g in range(group):
        kept.exterior[0, n * group + g] = alg.one
    for i in range(n - 1, -1, -1):
        clear_row(sweep, i)
        sum_generic(sweep, i)
        sum_beside(sweep, i)
        for g in range(group):
            kept.exterior[0, i * group + g] = leave(rule, alg, kept.exterior[0, (i + 1) * group + g])
        for j in range(i + SMALLEST_HAIRPIN + 1, n):
            for g in range(group):
                pair_cell(sweep, i, j, g)
        multi_row(choose, sweep, i)


@shared
def column(group: Any, j: Any) -> Any:
    """Where a column begins in working memory."""
    return (j + RING) * group


@shared
def clear_row(sweep: Any, i: Any) -> None:
    """Make a row zero wherever it will be read."""
    alg, kept, memory, group = sweep.alg, sweep.kept, sweep.memory, sweep.strands.group
    at = kept.starts[i]
    for x in range(
        at + (i - BEFORE) * group, at + min(i + SMALLEST_HAIRPIN + 1, sweep.strands.longest) * group
    ):
        kept.closed[0, x] = alg.zero
        kept.multi[0, x] = alg.zero
    clear_rings(sweep.lanes, alg, memory, i & (RING - 1))


@shared
def clear_rings(lanes: Any, alg: Any, memory: Any, here: Any) -> None:
    """Make rows of the rings zero."""
    zero = splat(lanes, alg.zero)
    width = width_of(lanes)
    for x in range(0, memory.generic.shape[1] - width + 1, width):
        store(lanes, memory.generic, here, x, zero)
        store(lanes, memory.one_sided, here, x, zero)
        store(lanes, memory.two_three, here, x, zero)
        store(lanes, memory.bulge, here, x, zero)


@shared
def sum_generic(sweep: Any, i: Any) -> None:
    """Interior loops with two unpaired bases or more on both sides, but for those of four and of five."""
    lanes, rule, alg, weights, memory = sweep.lanes, sweep.lane_rule, sweep.alg, sweep.weights, sweep.memory
    n, group = sweep.strands.longest, sweep.strands.group
    width = width_of(lanes)
    here, last = (i & 1) * RING, (1 - (i & 1)) * RING
    near = (i + 3) & (RING - 1)
    rows = memory.generic
    largest = min(LARGEST_LOOP, n - 1 - i)
    for x in range(column(group, i + SMALLEST_HAIRPIN + 1), column(group, n), width * BESIDE):
        y = x + width
        first = splat(lanes, alg.zero)
        second = first
        even = splat(lanes, weights.asymmetry[0])
        odd = splat(lanes, weights.asymmetry[1])
        r, s = near, (i + 4) & (RING - 1)
        store(lanes, memory.sums, here + 4, x, extend(alg, load(lanes, rows, r, x - 3 * group), even))
        store(lanes, memory.sums, here + 4, y, extend(alg, load(lanes, rows, r, y - 3 * group), even))
        value = choice(alg, load(lanes, rows, r, x - 4 * group), load(lanes, rows, s, x - 3 * group))
        store(lanes, memory.sums, here + 5, x, extend(alg, value, odd))
        value = choice(alg, load(lanes, rows, r, y - 4 * group), load(lanes, rows, s, y - 3 * group))
        store(lanes, memory.sums, here + 5, y, extend(alg, value, odd))
        for u in range(6, largest + 1):
            asymmetry, loop = splat(lanes, weights.asymmetry[u - 4]), splat(lanes, weights.interior[u])
            far = (i + u - 1) & (RING - 1)
            left, right = load(lanes, rows, near, x - (u - 1) * group), load(lanes, rows, far, x - 3 * group)
            value = widen(
                rule, alg, load(lanes, memory.sums, last + u - 2, x - group), left, right, asymmetry
            )
            store(lanes, memory.sums, here + u, x, value)
            first = close(rule, alg, first, value, loop)
            left, right = load(lanes, rows, near, y - (u - 1) * group), load(lanes, rows, far, y - 3 * group)
            value = widen(
                rule, alg, load(lanes, memory.sums, last + u - 2, y - group), left, right, asymmetry
            )
            store(lanes, memory.sums, here + u, y, value)
            second = close(rule, alg, second, value, loop)
        store(lanes, memory.found, GENERIC, x, first)
        store(lanes, memory.found, GENERIC, y, second)


@shared
def sum_beside(sweep: Any, i: Any) -> None:
    """Interior loops of one base on one side and three or more, of two and three, and longer bulges."""
    lanes, rule, alg, weights, memory = sweep.lanes, sweep.lane_rule, sweep.alg, sweep.weights, sweep.memory
    n, group = sweep.strands.longest, sweep.strands.group
    width = width_of(lanes)
    ring = RING - 1
    largest = min(LARGEST_LOOP, n - 1 - i)
    zero = splat(lanes, alg.zero)
    loop = splat(lanes, extend(alg, weights.interior[5], weights.asymmetry[1]))
    for x in range(column(group, i + SMALLEST_HAIRPIN + 1), column(group, n), width * BESIDE):
        y = x + width
        rows, near = memory.one_sided, (i + 2) & ring
        first, second = zero, zero
        for k in range(3, largest):
            step = splat(lanes, extend(alg, weights.interior[k + 1], weights.asymmetry[k - 1]))
            far, back = (i + 1 + k) & ring, (k + 1) * group
            left, right = load(lanes, rows, near, x - back), load(lanes, rows, far, x - 2 * group)
            first = beside(rule, alg, first, left, right, step)
            left, right = load(lanes, rows, near, y - back), load(lanes, rows, far, y - 2 * group)
            second = beside(rule, alg, second, left, right, step)
        store(lanes, memory.found, ONE_SIDED, x, first)
        store(lanes, memory.found, ONE_SIDED, y, second)
        rows, near = memory.bulge, (i + 1) & ring
        first, second = zero, zero
        for k in range(2, largest + 1):
            step = splat(lanes, weights.bulge[k])
            far, back = (i + 1 + k) & ring, (k + 1) * group
            left, right = load(lanes, rows, near, x - back), load(lanes, rows, far, x - group)
            first = beside(rule, alg, first, left, right, step)
            left, right = load(lanes, rows, near, y - back), load(lanes, rows, far, y - group)
            second = beside(rule, alg, second, left, right, step)
        store(lanes, memory.found, BULGE, x, first)
        store(lanes, memory.found, BULGE, y, second)
        rows, near, far = memory.two_three, (i + 3) & ring, (i + 4) & ring
        left, right = load(lanes, rows, near, x - 4 * group), load(lanes, rows, far, x - 3 * group)
        store(lanes, memory.found, TWO_THREE, x, beside(rule, alg, zero, left, right, loop))
        left, right = load(lanes, rows, near, y - 4 * group), load(lanes, rows, far, y - 3 * group)
        store(lanes, memory.found, TWO_THREE, y, beside(rule, alg, zero, left, right, loop))


@shared
def pair_cell(sweep: Any, i: Any, j: Any, g: Any) -> None:
    """C of a cell, and what else the row and the rows above need of it."""
    alg, kept, memory, weights, strands = sweep.alg, sweep.kept, sweep.memory, sweep.weights, sweep.strands
    group = strands.group
    at = kept.starts[i] + j * group + g
    kind = pair_type(weights, strands, i, j, g)
    if kind == 0 or not allowed(strands, i, j, g):
        kept.closed[0, at] = alg.zero
        memory.stem[0, j * group + g] = alg.zero
        return
    value = choice(alg, closed_by_table(sweep, kind, i, j, g), closed_by_sums(sweep, kind, i, j, g))
    value = times_paired(strands, alg, 0, value, i, j, g)
    row = outward_row(strands, kind, i, j, g)
    kept.closed[0, at] = value
    memory.stem[0, j * group + g] = extend(alg, value, weights.outward[row, STEM])
    here, x = i & (RING - 1), column(group, j) + g
    memory.generic[here, x] = extend(alg, value, weights.outward[row, GENERIC])
    memory.one_sided[here, x] = extend(alg, value, weights.outward[row, ONE_SIDED])
    memory.two_three[here, x] = extend(alg, value, weights.outward[row, TWO_THREE])
    memory.bulge[here, x] = extend(alg, value, weights.outward[row, BULGE])
    behind = extend(alg, weights.outward[row, EXTERIOR], kept.exterior[0, (j + 1) * group + g])
    first = kept.exterior[0, i * group + g]
    kept.exterior[0, i * group + g] = close(sweep.rule, alg, first, value, behind)


@shared
def closed_by_sums(sweep: Any, kind: Any, i: Any, j: Any, g: Any) -> Any:
    """What vectors have found, closed by a pair: longer loops, and multiloops."""
    rule, alg, memory, weights, group = (
        sweep.rule,
        sweep.alg,
        sweep.memory,
        sweep.weights,
        sweep.strands.group,
    )
    row, x = inward_row(sweep.strands, kind, i, j, g), column(group, j) + g
    value = extend(alg, memory.found[GENERIC, x], weights.inward[row, GENERIC])
    value = close(rule, alg, value, memory.found[ONE_SIDED, x], weights.inward[row, ONE_SIDED])
    value = close(rule, alg, value, memory.found[BULGE, x], weights.inward[row, BULGE])
    value = close(rule, alg, value, memory.found[TWO_THREE, x], weights.inward[row, TWO_THREE])
    stems_within = memory.split[1 - (i & 1), column(group, j - 1) + g]
    return close(rule, alg, value, stems_within, weights.inward[row, CLOSING])


@shared
def closed_by_table(sweep: Any, kind: Any, i: Any, j: Any, g: Any) -> Any:
    """Hairpins and small loops of a pair."""
    rule, alg, kept, weights, strands = sweep.rule, sweep.alg, sweep.kept, sweep.weights, sweep.strands
    value = hairpin_weight(weights, strands, alg, inward_row(strands, kind, i, j, g), i, j, g)
    if j - i <= SMALLEST_HAIRPIN + 2:
        return value
    for left in range(3):
        for right in range(3):
            p, q = i + 1 + left, j - 1 - right
            inner = kept.closed[0, kept.starts[p] + q * strands.group + g]
            if inner != alg.zero:
                within = pair_type(weights, strands, q, p, g)
                if left + right != 2 or left == right:
                    loop = small_loop(weights, strands, alg, kind, within, i, j, p, q, g)
                    value = close(rule, alg, value, inner, loop)
    return value


@shared
def clear_split(sweep: Any, i: Any) -> None:
    """Make S of a row zero."""
    lanes, group = sweep.lanes, sweep.strands.group
    zero = splat(lanes, sweep.alg.zero)
    for x in range(column(group, i), column(group, sweep.strands.longest), width_of(lanes)):
        store(lanes, sweep.memory.split, i & 1, x, zero)


@shared
def add_below(sweep: Any, i: Any) -> None:
    """M2 of a row: add what the row below has to S."""
    lanes, alg, rows, group = sweep.lanes, sweep.alg, sweep.memory.split, sweep.strands.group
    here, last = i & 1, 1 - (i & 1)
    for x in range(
        column(group, i + SMALLEST_HAIRPIN + 1), column(group, sweep.strands.longest), width_of(lanes)
    ):
        value = two_stems(sweep.lane_rule, alg, load(lanes, rows, last, x), load(lanes, rows, here, x))
        store(lanes, rows, here, x, value)


def _one_factor(layout: Any, lanes: Any, memory: Any, at: Any) -> Any:
    return splat(lanes, memory.stem[0, at])


def _factor_a_lane(layout: Any, lanes: Any, memory: Any, at: Any) -> Any:
    return load(lanes, memory.stem, 0, at)


#: s of this row at a place, as often as there are columns in a group of lanes.
factor = by_type_of({OneSequence: _one_factor, SequenceALane: _factor_a_lane})


@shared
def add_stem(sweep: Any, here: Any, k: Any) -> None:
    """Add to S what begins with the stem up to k."""
    lanes, alg, memory, strands = sweep.lanes, sweep.alg, sweep.memory, sweep.strands
    group, rows = strands.group, sweep.kept.multi
    at = sweep.kept.starts[k + 1] - RING * group
    stem = factor(sweep.layout, lanes, memory, k * group)
    for x in range(column(group, k + SMALLEST_HAIRPIN + 2), column(group, strands.longest), width_of(lanes)):
        value = close(
            sweep.lane_rule, alg, load(lanes, memory.split, here, x), load(lanes, rows, 0, at + x), stem
        )
        store(lanes, memory.split, here, x, value)


@shared
def add_four_stems(sweep: Any, here: Any, z: Any) -> None:
    """Add to S what begins with four stems, from number z on, whose ends are near each other."""
    lanes, alg, memory, rule = sweep.lanes, sweep.alg, sweep.memory, sweep.lane_rule
    group, rows, starts = sweep.strands.group, sweep.kept.multi, sweep.kept.starts
    k0, k1 = memory.stem_at[0, z], memory.stem_at[0, z + 1]
    k2, k3 = memory.stem_at[0, z + 2], memory.stem_at[0, z + 3]
    at0, at1 = starts[k0 + 1] - RING * group, starts[k1 + 1] - RING * group
    at2, at3 = starts[k2 + 1] - RING * group, starts[k3 + 1] - RING * group
    stem0, stem1 = (
        factor(sweep.layout, lanes, memory, k0 * group),
        factor(sweep.layout, lanes, memory, k1 * group),
    )
    stem2, stem3 = (
        factor(sweep.layout, lanes, memory, k2 * group),
        factor(sweep.layout, lanes, memory, k3 * group),
    )
    end = column(group, sweep.strands.longest)
    for x in range(column(group, k0 + SMALLEST_HAIRPIN + 2), end, width_of(lanes)):
        value = load(lanes, memory.split, here, x)
        value = close(rule, alg, value, load(lanes, rows, 0, at0 + x), stem0)
        value = close(rule, alg, value, load(lanes, rows, 0, at1 + x), stem1)
        value = close(rule, alg, value, load(lanes, rows, 0, at2 + x), stem2)
        value = close(rule, alg, value, load(lanes, rows, 0, at3 + x), stem3)
        store(lanes, memory.split, here, x, value)


@shared
def add_stems(sweep: Any, here: Any, count: Any) -> None:
    """S of a row: everything that begins with one of its stems."""
    memory, z = sweep.memory, 0
    # Rows are zero so far before their first base that four begin together.
    while z < count:
        if z + 4 <= count and memory.stem_at[0, z + 3] - memory.stem_at[0, z] < BEFORE - SMALLEST_HAIRPIN:
            add_four_stems(sweep, here, z)
            z += 4
        else:
            add_stem(sweep, here, memory.stem_at[0, z])
            z += 1


def _best_stems(choose: Any, sweep: Any, i: Any) -> None:
    rule, alg, kept, memory = sweep.rule, sweep.alg, sweep.kept, sweep.memory
    n, group, here = sweep.strands.longest, sweep.strands.group, i & 1
    clear_split(sweep, i)
    # Choosing twice from the same changes nothing: M2 of this row serves for S.
    add_below(sweep, i)
    at, below = kept.starts[i], kept.starts[i + 1]
    for k in range(i + SMALLEST_HAIRPIN + 1, n):
        some = False
        for g in range(group):
            x = k * group + g
            # What ends one base earlier has a stem or more, and this base unpaired.
            single = extend(alg, kept.multi[0, at + x - group], rule.unpaired)
            value = stems(
                rule, alg, kept.multi[0, below + x], memory.split[here, column(group, k) + g], single
            )
            if is_better(alg, memory.stem[0, x], value):
                value = memory.stem[0, x]
                some = True
            else:
                memory.stem[0, x] = alg.zero
            kept.multi[0, at + x] = value
        if some:
            add_stem(sweep, here, k)


def _every_stem(choose: Any, sweep: Any, i: Any) -> None:
    rule, alg, kept, memory = sweep.rule, sweep.alg, sweep.kept, sweep.memory
    n, group, here = sweep.strands.longest, sweep.strands.group, i & 1
    clear_split(sweep, i)
    count = 0
    for k in range(i + SMALLEST_HAIRPIN + 1, n):
        some = False
        for g in range(group):
            some = some or memory.stem[0, k * group + g] != alg.zero
        if some:
            memory.stem_at[0, count] = k
            count += 1
    add_stems(sweep, here, count)
    at, below = kept.starts[i], kept.starts[i + 1]
    for g in range(group):
        single = alg.zero
        for k in range(i + SMALLEST_HAIRPIN + 1, n):
            x = k * group + g
            single = one_stem(rule, alg, single, memory.stem[0, x])
            split = memory.split[here, column(group, k) + g]
            kept.multi[0, at + x] = stems(rule, alg, kept.multi[0, below + x], split, single)
    add_below(sweep, i)


#: M and M2 of a row.
multi_row = by_type_of({Candidates: _best_stems, EveryStem: _every_stem})
