"""Intervals on GPUs, by their spans: the recurrence of `plait.dp.intervals.rows`, diagonal by diagonal.

Cells of a span depend on shorter ones alone, so all of them are worked out at once; threads side by side
have first bases side by side. What a cell is made of is shared out over the warps of a block: the first adds
up the shares. A block has a sequence of its own, or all blocks have one and wait for each other.

A module of its own: with what launches them, kernels would be longer than a file may be.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from plait.devices.cuda import cuda, cuda_kernel
from plait.dp.intervals.loops import (
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
    ONE_SIDED,
    SMALLEST_HAIRPIN,
    STEM,
    TWO_THREE,
    LoopWeights,
    Strands,
    allowed,
    as_stem,
    entry,
    hairpin_weight,
    inward,
    outward,
    own_loop,
    own_loops,
    pair_type,
    small_loop,
    times_paired,
)
from plait.dp.intervals.nearest_neighbor import NearestNeighbor, close, leave, lengthen, widen
from plait.dp.intervals.rows import Intervals, Walk
from plait.dp.intervals.walk import walk_sequence
from plait.lang.algebras import PROBABILITY, Probability, SaturatingMaxPlus, choice, extend, is_better
from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import OneLane, load, store
from plait.lang.warps import WARP, shuffle_xor

#: Shortest span that pairs.
FIRST: Final = SMALLEST_HAIRPIN + 1
#: Rows of memory: loops by size, M2, R and M by spans, and then rings of C as in `plait.dp.intervals.rows`.
_SUMS, _TWO, _SINGLE, _MULTI, _ENDS = 0, 64, 68, 72, 76
#: Small loops.
_SMALL: Final = 7
#: Spans of a ring, a power of two: a loop reaches back half as far, and others may be ahead.
_RING: Final = 64
#: Rows of a block.
ROWS: Final = _ENDS + ENDS * _RING
#: Shares of two values that a block has room for, each of 32 cells, and rows of values of all its warps.
_SHARES: Final = 32
_SHARES_OF_BLOCK: Final = (2 * _SHARES + 4, WARP)


class SpanCells(NamedTuple):
    """Sequences one behind the other, (sequences, ...): C, s, M and X.

    `listed`, int32, are the spans of those stems from each first base on that are better than all else, and
    in the first row how many there are. The cell from i on of a span stands at ``(span + 1) * step + i``; as
    in `Intervals`, from `starts` on.
    """

    closed: Any
    stems: Any
    multi: Any
    listed: Any
    exterior: Any
    starts: Any
    step: Any


class SpanDerivatives(NamedTuple):
    """Derivatives by C, by S, and by X, laid out as `SpanCells`; of one element each if nobody wants them."""

    closed: Any
    split: Any
    exterior: Any


class Spans(NamedTuple):
    """What kernels are given: sequences, `by` for derivatives, memory `rows` (blocks or 1, rows * step).

    `alone`: all blocks have one sequence, and wait for each other by `counter`, int64 (1,), zero at first.
    """

    rule: Any
    alg: Any
    weights: Any
    texts: Any
    lengths: Any
    cells: Any
    by: Any
    rows: Any
    counter: Any
    alone: Any


class SpanWork(NamedTuple):
    """A sequence for the warps of a block: this one is number `part` of `parts`, and works on `lane`.

    It is the b-th one, of n bases, and its base k is that of the sequence `g` of `Strands` of one sequence.
    `rows` and `shares`, (2 * _SHARES + 4, 32), are the block's; so many `tiles` of cells have shares at a
    time. `ones` are the warps to which a hairpin, a multiloop, and loops of two and three fall.
    """

    rule: Any
    alg: Any
    weights: Any
    strands: Any
    cells: Any
    by: Any
    rows: Any
    shares: Any
    b: Any
    g: Any
    n: Any
    part: Any
    parts: Any
    lane: Any
    tiles: Any
    ones: Any


@shared
def own_work(given: Any, b: Any) -> Any:
    """The b-th sequence as work of this thread."""
    rows = given.rows[0 if given.alone else cuda.blockIdx.x]
    shares, texts = cuda.shared.array(_SHARES_OF_BLOCK, np.float64), given.texts
    # One as a constant: nothing is multiplied by it.
    texts = Strands(texts.codes, texts.partners, texts.stacked, texts.paired, 1, texts.longest)
    thread, warps = cuda.threadIdx.x, cuda.blockDim.x // WARP
    known = given.rule, given.alg, given.weights, texts, given.cells, given.by
    where = rows, shares, b, b * texts.longest, given.lengths[b], thread // WARP, warps, thread % WARP
    # Divisions take as long as a loop of all sizes does: none of them stands behind this line.
    return SpanWork(*(known + where + (_SHARES // warps, (7 % warps, 8 % warps, 9 % warps))))


@shared
def place(cells: Any, span: Any, i: Any) -> Any:
    """Where a cell stands; a product of numbers of 32 bits takes one instruction."""
    return np.int32(span + 1) * np.int32(cells.step) + i


@shared
def row_at(work: Any, row: Any, i: Any) -> Any:
    """A value of a row of a block."""
    return work.rows[np.uint32(np.int32(row) * np.int32(work.cells.step) + i)]


@shared
def set_row(work: Any, row: Any, i: Any, value: Any) -> None:
    """Write it."""
    work.rows[np.uint32(np.int32(row) * np.int32(work.cells.step) + i)] = value


@shared
def ring(work: Any, kind: Any, span: Any) -> Any:
    """The row of C with the ends of a kind of loops, of a span."""
    return _ENDS + kind * _RING + (span & (_RING - 1))


@shared
def keep_ends(work: Any, row: Any, span: Any, i: Any, value: Any) -> None:
    """Keep C of a cell with each of the ends of loops, of a row of `inward` or `outward`."""
    for kind in range(ENDS):
        end = entry(work.weights, row + kind)
        set_row(work, ring(work, kind, span), i, extend(work.alg, value, end))


@shared
def clear(work: Any, first: Any, blocks: Any) -> None:
    """Make zero what is read of spans that are too short to pair."""
    one, zero, step = OneLane(1), work.alg.zero, work.cells.step
    for tile in range(first * work.parts + work.part, -(-step // WARP), blocks * work.parts):
        i = tile * WARP + work.lane
        if i < step:
            for row in range(min(FIRST, step) + 1):
                store(one, work.cells.closed, work.b, row * step + i, zero)
                store(one, work.cells.multi, work.b, row * step + i, zero)
            for row in range(_TWO, _ENDS):
                set_row(work, row, i, zero)
            if work.cells.listed.shape[1] > 1:
                store(one, work.cells.listed, work.b, i, 0)


@shared
def add_by_size(work: Any, span: Any, i: Any, way: Any) -> Any:
    """Interior loops by size, as far as they are this warp's, which keeps them; `way` as in `sum_generic`."""
    rule, alg, weights, j = work.rule, work.alg, work.weights, i + span
    # A loop of u bases takes the place of that of u - 2 within (or around) it.
    middle = i + (span >> 1)
    largest = min(LARGEST_LOOP, span - SMALLEST_HAIRPIN - 3 if way > 0 else work.n - span - 3)
    found, u = alg.zero, 4 + work.part
    while u <= largest:
        row, here = ring(work, GENERIC, span - (2 + u) * way), by_size_row(span, u, way)
        left = beyond(work, row, i, j, 3, u - 1, way)
        right = beyond(work, row, i, j, u - 1, 3, way) if u > 4 else alg.zero
        within = alg.zero
        if u > 5 and (way > 0 or (i > 0 and j + 1 < work.n)):
            within = row_at(work, here, middle)
        value = widen(rule, alg, within, left, right, entry(weights, BY_DIFFERENCE + u - 4))
        set_row(work, here, middle, value)
        if u > 5:
            found = close(rule, alg, found, value, entry(weights, BY_SIZE + u))
        u += work.parts
    z, count = work.part, own_loops(weights)
    while z < count:
        left, right, loop = own_loop(weights, z)
        if left + right <= largest:
            row = ring(work, GENERIC, span - (2 + left + right) * way)
            found = close(rule, alg, found, beyond(work, row, i, j, left + 1, right + 1, way), loop)
        z += work.parts
    return found


@shared
def by_size_row(span: Any, u: Any, way: Any) -> Any:
    """The row of loops of u bases, of the spans of their other pair."""
    return _SUMS + (span & 1) * 32 + ((span - u * way) & 31)


@shared
def beyond(work: Any, row: Any, i: Any, j: Any, left: Any, right: Any, way: Any) -> Any:
    """A value of memory of the cell so many bases within or around a cell, or zero where there is none."""
    if way > 0 or (i >= left and j + right < work.n):
        return row_at(work, row, i + left * way)
    return work.alg.zero


@shared
def one_side(work: Any, span: Any, i: Any, way: Any, largest: Any, kind: Any, table: Any, least: Any) -> Any:
    """Loops of a kind: of the `least` bases, one or none, on a side, and at least two more on the other."""
    found, k, j = work.alg.zero, 2 + least + work.part, i + span
    while k + least <= largest:
        at, step = ring(work, kind, span - (2 + least + k) * way), entry(work.weights, table + least + k)
        left = beyond(work, at, i, j, 1 + least, k + 1, way)
        right = beyond(work, at, i, j, k + 1, 1 + least, way)
        found = close(work.rule, work.alg, found, choice(work.alg, left, right), step)
        k += work.parts
    return found


@shared
def add_beside(work: Any, span: Any, i: Any, row: Any, total: Any, way: Any) -> Any:
    """Besides, interior loops of one base on one side, of two and three, and longer bulges."""
    rule, alg, weights, j = work.rule, work.alg, work.weights, i + span
    largest = min(LARGEST_LOOP, span - SMALLEST_HAIRPIN - 3) if way > 0 else LARGEST_LOOP
    found = one_side(work, span, i, way, largest, ONE_SIDED, BY_ONE_SIDED, 1)
    total = close(rule, alg, total, found, entry(weights, row + ONE_SIDED))
    found = one_side(work, span, i, way, largest, BULGE, BY_BULGE, 0)
    total = close(rule, alg, total, found, entry(weights, row + BULGE))
    if work.part == work.ones[2] and largest >= 5:
        at = ring(work, TWO_THREE, span - 7 * way)
        left, right = beyond(work, at, i, j, 3, 4, way), beyond(work, at, i, j, 4, 3, way)
        loop = extend(alg, entry(weights, BY_SIZE + 5), entry(weights, BY_DIFFERENCE + 1))
        found = close(rule, alg, alg.zero, choice(alg, left, right), loop)
        total = close(rule, alg, total, found, entry(weights, row + TWO_THREE))
    return total


@shared
def add_loops(work: Any, span: Any, i: Any) -> Any:
    """C of a cell, as far as it is this warp's; loops by size are kept whether or not it pairs."""
    rule, alg, weights, strands = work.rule, work.alg, work.weights, work.strands
    j, generic = i + span, add_by_size(work, span, i, 1)
    kind = pair_type(weights, strands, i, j, work.g)
    if not ((kind != 0) & allowed(strands, i, j, work.g)):
        return alg.zero
    row = inward(strands, kind, i, j, work.g)
    total = add_beside(work, span, i, row, extend(alg, generic, entry(weights, row + GENERIC)), 1)
    total = add_small(work, work.cells.closed, span, i, total, 1)
    # Small loops are the first warps'.
    if work.part == work.ones[0]:
        total = choice(alg, total, hairpin_weight(weights, strands, alg, row, i, j, work.g))
    if work.part == work.ones[1]:
        behind = row_at(work, _TWO + ((span - 2) & 3), i + 1)
        total = close(rule, alg, total, behind, entry(weights, row + CLOSING))
    return total


@shared
def add_small(work: Any, table: Any, span: Any, i: Any, total: Any, way: Any) -> Any:
    """Besides, small loops within a pair, or around it: up to two bases on a side, but not none and two."""
    alg, weights, strands, g = work.alg, work.weights, work.strands, work.g
    j, t = i + span, work.part
    while t < _SMALL:
        left = (t + 1) * 11 >> 5
        p, q = i + (1 + left) * way, j - (1 + t - 2 * left) * way
        t += work.parts
        if q - p >= FIRST and p >= 0 and q < work.n:
            value = load(OneLane(1), table, work.b, place(work.cells, q - p, p))
            a, b, c, d = (i, j, p, q) if way > 0 else (p, q, i, j)
            outer, inner = pair_type(weights, strands, a, b, g), pair_type(weights, strands, d, c, g)
            loop = small_loop(weights, strands, alg, outer, inner, a, b, c, d, g)
            total = close(work.rule, alg, total, value, loop)
    return total


def _add_listed(alg: Any, work: Any, span: Any, i: Any) -> Any:
    one, cells = OneLane(1), work.cells
    total, z, count = alg.zero, 1 + work.part, load(one, cells.listed, work.b, i)
    while z <= count:
        m = np.int64(load(one, cells.listed, work.b, z * cells.step + i))
        if m < span - FIRST:
            stem = load(one, cells.stems, work.b, place(cells, m, i))
            rest = load(one, cells.multi, work.b, place(cells, span - m - 1, i + m + 1))
            total = close(work.rule, alg, total, stem, rest)
        z += work.parts
    return total


def _add_all(alg: Any, work: Any, span: Any, i: Any) -> Any:
    cells, m = work.cells, FIRST + work.part
    stems_from = cells.stems, place(cells, m, i), cells.step
    behind = cells.multi, place(cells, span - m - 1, i + m + 1), 1 - cells.step
    return sum_products(work, stems_from, behind, m, span - FIRST)


@shared
def sum_products(work: Any, left: Any, right: Any, m: Any, end: Any) -> Any:
    """The choice between products from number m on, of each `parts`-th: tables, first places, and steps."""
    one, rule, alg, at, parts = OneLane(1), work.rule, work.alg, work.b, work.parts
    (a, x, dx), (b, y, dy) = left, right
    dx, dy = dx * parts, dy * parts
    total, other = alg.zero, alg.zero
    # Eight loads are under way at a time.
    while m + 3 * parts < end:
        a0, b0 = load(one, a, at, x), load(one, b, at, y)
        a1, b1 = load(one, a, at, x + dx), load(one, b, at, y + dy)
        a2, b2 = load(one, a, at, x + 2 * dx), load(one, b, at, y + 2 * dy)
        a3, b3 = load(one, a, at, x + 3 * dx), load(one, b, at, y + 3 * dy)
        total = close(rule, alg, close(rule, alg, total, a0, b0), a1, b1)
        other = close(rule, alg, close(rule, alg, other, a2, b2), a3, b3)
        x, y, m = x + 4 * dx, y + 4 * dy, m + 4 * parts
    while m < end:
        total = close(rule, alg, total, load(one, a, at, x), load(one, b, at, y))
        x, y, m = x + dx, y + dy, m + parts
    return choice(alg, total, other)


def _list_if_better(alg: Any, work: Any, span: Any, i: Any, stem: Any, others: Any) -> None:
    cells = work.cells
    if is_better(alg, stem, others):
        count = load(OneLane(1), cells.listed, work.b, i) + 1
        store(OneLane(1), cells.listed, work.b, count * cells.step + i, span)
        store(OneLane(1), cells.listed, work.b, i, count)


def _list_nothing(alg: Any, work: Any, *what: Any) -> None:
    pass


#: S of a cell, as far as it is this warp's: of stems that are better than all else where a choice is one of
#: the alternatives, and of all stems in sums.
add_splits = by_type_of({SaturatingMaxPlus: _add_listed, Probability: _add_all})
list_stem = by_type_of({SaturatingMaxPlus: _list_if_better, Probability: _list_nothing})


def _finish_cell(way: Any, work: Any, span: Any, i: Any, share: Any) -> None:
    """Add the shares up, from a number on, and keep what longer spans need."""
    rule, alg, weights, strands = work.rule, work.alg, work.weights, work.strands
    one, cells, j = OneLane(1), work.cells, i + span
    row = outward(strands, pair_type(weights, strands, i, j, work.g), i, j, work.g)
    value, split = added_up(work, share), added_up(work, _SHARES + share)
    value = times_paired(strands, alg, 0, value, i, j, work.g)
    stem = extend(alg, value, entry(weights, row + STEM))
    store(one, cells.closed, work.b, place(cells, span, i), value)
    store(one, cells.stems, work.b, place(cells, span, i), stem)
    keep_ends(work, row, span, i, value)
    below = row_at(work, _TWO + ((span - 1) & 3), i + 1)
    set_row(work, _TWO + (span & 3), i, lengthen(rule, alg, below, split))
    shorter = row_at(work, _SINGLE + ((span - 1) & 3), i)
    single = lengthen(rule, alg, shorter, stem)
    set_row(work, _SINGLE + (span & 3), i, single)
    below = load(one, cells.multi, work.b, place(cells, span - 1, i + 1))
    value = lengthen(rule, alg, below, split)
    store(one, cells.multi, work.b, place(cells, span, i), choice(alg, value, single))
    list_stem(alg, work, span, i, stem, choice(alg, value, extend(alg, shorter, rule.unpaired)))


@shared
def added_up(work: Any, share: Any) -> Any:
    """The choice between the shares of all warps."""
    found = work.shares[share, work.lane]
    for part in range(1, work.parts):
        found = choice(work.alg, found, work.shares[share + part, work.lane])
    return found


@shared
def over_warp(alg: Any, value: Any) -> Any:
    """The choice between the values of all lanes."""
    for step in (16, 8, 4, 2, 1):
        value = choice(alg, value, shuffle_xor(value, step))
    return value


@shared
def add_end(work: Any, table: Any, bases: Any, way: Any, warps: Any) -> None:
    """X of the last so many bases, or the derivative by X behind the first ones (by X[0] one).

    By one warp, or by all `warps` of a block, which meet.
    """
    one, rule, alg, cells, n = OneLane(1), work.rule, work.alg, work.cells, work.n
    number = work.part if warps > 1 else 0
    found, span = alg.zero, FIRST + number * WARP + work.lane
    while span < bases:
        i = n - bases if way > 0 else bases - 1 - span
        value = load(one, cells.closed, work.b, place(cells, span, i))
        other = load(one, table, work.b, i + span + 1 if way > 0 else i)
        end = as_stem(work.weights, work.strands, EXTERIOR, i, i + span, work.g)
        found = close(rule, alg, found, value, extend(alg, end, other))
        span += warps * WARP
    found = over_warp(alg, found)
    if warps > 1:
        # What other warps read of the last span is in the other row.
        row = 2 * _SHARES + (bases & 1) + 1 + way
        if work.lane == 0:
            work.shares[row, number] = found
        cuda.syncthreads()
        found = over_warp(alg, work.shares[row, work.lane] if work.lane < warps else alg.zero)
    if number == 0 and work.lane == 0:
        here = n - bases if way > 0 else bases
        total = alg.one
        if bases > 0:
            total = choice(alg, leave(rule, alg, load(one, table, work.b, here + way)), found)
        store(one, table, work.b, here, total)


@shared
def add_around(work: Any, span: Any, i: Any) -> Any:
    """The derivative by C of a cell, as far as it is this warp's; loops by size are kept in any case."""
    rule, alg, weights, strands = work.rule, work.alg, work.weights, work.strands
    one, cells, n, j = OneLane(1), work.cells, work.n, i + span
    generic = add_by_size(work, span, i, -1)
    if load(one, cells.closed, work.b, place(cells, span, i)) == alg.zero:
        return alg.zero
    row = outward(strands, pair_type(weights, strands, i, j, work.g), i, j, work.g)
    total = add_beside(work, span, i, row, extend(alg, generic, entry(weights, row + GENERIC)), -1)
    total = add_small(work, work.by.closed, span, i, total, -1)
    m = FIRST + work.part
    splits = work.by.split, place(cells, span + 1 + m, i), cells.step
    after = cells.multi, place(cells, m, j + 1), cells.step
    behind = sum_products(work, splits, after, m, n - 1 - j)
    total = close(rule, alg, total, behind, entry(weights, row + STEM))
    if work.part == work.ones[0]:
        before = extend(alg, load(one, work.by.exterior, work.b, i), entry(weights, row + EXTERIOR))
        total = close(rule, alg, total, before, load(one, cells.exterior, work.b, j + 1))
    return total


@shared
def add_before(work: Any, span: Any, i: Any) -> Any:
    """The derivative by M of a cell, as far as it comes from S and is this warp's."""
    cells, m = work.cells, FIRST + work.part
    before = cells.stems, place(cells, m, i - 1 - m), cells.step - 1
    splits = work.by.split, place(cells, span + 1 + m, i - 1 - m), cells.step - 1
    return sum_products(work, before, splits, m, i)


def _finish_around(way: Any, work: Any, span: Any, i: Any, share: Any) -> None:
    """Add the shares up, from a number on, and keep what is needed; weights of pairs take the place of C."""
    rule, alg, weights, strands = work.rule, work.alg, work.weights, work.strands
    one, cells, n, j = OneLane(1), work.cells, work.n, i + span
    total, by_multi = added_up(work, share), added_up(work, _SHARES + share)
    here, after = span & 3, (span + 1) & 3
    by_two = alg.zero
    if i > 0:
        by_multi = close(rule, alg, by_multi, row_at(work, _MULTI + after, i - 1), rule.unpaired)
        by_two = extend(alg, row_at(work, _TWO + after, i - 1), rule.unpaired)
        if j + 1 < n:
            kind = pair_type(weights, strands, i - 1, j + 1, work.g)
            closing = entry(weights, inward(strands, kind, i - 1, j + 1, work.g) + CLOSING)
            around = load(one, work.by.closed, work.b, place(cells, span + 2, i - 1))
            by_two = close(rule, alg, by_two, around, closing)
    longer = row_at(work, _SINGLE + after, i) if j + 1 < n else alg.zero
    single = lengthen(rule, alg, longer, by_multi)
    set_row(work, _MULTI + here, i, by_multi)
    set_row(work, _TWO + here, i, by_two)
    set_row(work, _SINGLE + here, i, single)
    store(one, work.by.split, work.b, place(cells, span, i), choice(alg, by_multi, by_two))
    value = load(one, cells.closed, work.b, place(cells, span, i))
    if value != alg.zero:
        total = close(rule, alg, total, single, as_stem(weights, strands, STEM, i, j, work.g))
    store(one, cells.closed, work.b, place(cells, span, i), extend(alg, value, total))
    total = times_paired(strands, alg, 0, total, i, j, work.g)
    store(one, work.by.closed, work.b, place(cells, span, i), total)
    kind = pair_type(weights, strands, i, j, work.g)
    keep_ends(work, inward(strands, kind, i, j, work.g), span, i, total)


class Inside(NamedTuple):
    """Cells from shorter to longer spans."""


class Around(NamedTuple):
    """Derivatives from longer to shorter spans."""


def _of_cell(way: Any, work: Any, span: Any, i: Any) -> Any:
    return add_loops(work, span, i), add_splits(work.alg, work, span, i)


def _of_derivative(way: Any, work: Any, span: Any, i: Any) -> Any:
    return add_around(work, span, i), add_before(work, span, i)


#: What a warp finds of a cell, and what is made of all shares.
shares_of = by_type_of({Inside: _of_cell, Around: _of_derivative})
finish = by_type_of({Inside: _finish_cell, Around: _finish_around})


@shared
def do_span(way: Any, work: Any, span: Any, first: Any, blocks: Any) -> None:
    """All cells of a span: those of every so many-th tile, beginning with `first`, are this block's."""
    end, some = work.n - span, first
    while some * WARP < end:
        tile, i, step = 0, some * WARP + work.lane, blocks * WARP
        while tile < work.tiles and i - work.lane < end:
            if i < end:
                share = tile * work.parts + work.part
                found, other = shares_of(way, work, span, i)
                work.shares[share, work.lane] = found
                work.shares[_SHARES + share, work.lane] = other
            tile, i = tile + 1, i + step
        cuda.syncthreads()
        tile, i = work.part, (some + work.part * blocks) * WARP + work.lane
        while tile < work.tiles and i - work.lane < end:
            if i < end:
                finish(way, work, span, i, tile * work.parts)
            tile, i = tile + work.parts, i + work.parts * step
        cuda.syncthreads()
        some += blocks * work.tiles


@shared
def wait_for_blocks(counter: Any, blocks: Any) -> None:
    """Wait until all blocks are here, and see what they have written; all of them are under way at once."""
    if blocks > 1:
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.threadfence()
            arrived = cuda.atomic.add(counter, 0, 1)
            wanted = (arrived // blocks + 1) * blocks
            while cuda.atomic.add(counter, 0, 0) < wanted:
                pass
            cuda.threadfence()
        cuda.syncthreads()


def _examples() -> list[tuple[Any, ...]]:
    """Arguments for scores and for sums."""
    found = []
    for zero, alg in (
        (np.float32(0), SaturatingMaxPlus(np.float32(-np.inf), np.float32(0))),
        (np.float64(0), PROBABILITY._replace(zero=np.float64(0), one=np.float64(1))),
    ):
        table, one, long = np.full((1, 1), zero), np.int64(1), np.zeros(1, np.int64)
        octets, words = np.zeros((1, 36), np.int8), np.zeros((2, 1), np.int32)
        weights = LoopWeights(octets, table, one, words)
        texts = Strands(octets, words, table, table, one, one)
        cells = SpanCells(table, table, table, words, table, long, one)
        by = SpanDerivatives(table, table, table)
        rows = np.full((1, 1), zero)
        rule = NearestNeighbor(zero, zero)
        found.append((Spans(rule, alg, weights, texts, long, cells, by, rows, long, one),))
    return found


@cuda_kernel(_examples, max_registers=80)
def fill_spans(given: Any) -> None:
    """C, M and X of sequences, each by a block, or of one by all blocks."""
    block, blocks = cuda.blockIdx.x, cuda.gridDim.x
    first, each = (block, blocks) if given.alone else (0, 1)
    for b in range(0 if given.alone else block, given.lengths.size, blocks):
        work = own_work(given, b)
        clear(work, first, each)
        cuda.syncthreads()
        # Of several blocks, the last has no cells; of a long sequence, all its warps work out what ends.
        others, warps = max(each - 1, 1), work.parts if given.alone else 1
        for span in range(work.n + 1):
            wait_for_blocks(given.counter, each)
            # It takes shorter spans alone.
            if first == each - 1:
                if warps > 1 or work.part == 0:
                    add_end(work, work.cells.exterior, span, 1, warps)
                if (warps > 1 or work.part == work.parts - 1) and work.by.closed.shape[1] > 1:
                    add_end(work, work.by.exterior, span, -1, warps)
            if FIRST <= span < work.n and first < others:
                do_span(Inside(), work, span, first, others)
        cuda.syncthreads()


@cuda_kernel(lambda: _examples()[1:], max_registers=128)
def derive_spans(given: Any) -> None:
    """Derivatives, and weights of pairs in place of C, of what `fill_spans` has worked out."""
    block, blocks = cuda.blockIdx.x, cuda.gridDim.x
    first, each = (block, blocks) if given.alone else (0, 1)
    for b in range(0 if given.alone else block, given.lengths.size, blocks):
        work = own_work(given, b)
        for span in range(work.n - 1, FIRST - 1, -1):
            wait_for_blocks(given.counter, each)
            do_span(Around(), work, span, first, each)


def _list_examples() -> list[tuple[Any, ...]]:
    counts = np.zeros((1, 1, 1), np.int32)
    return [(_examples()[1][0], 0.0, True, counts, counts[0], np.zeros(1))]


#: Spans of which pairs are listed by a thread.
LISTED: Final = 64


@cuda_kernel(_list_examples)
def list_pairs(given: Any, least: Any, counting: Any, ends: Any, pairs: Any, probabilities: Any) -> None:
    """Pairs that are not less probable, by first bases and then by spans, of weights in the place of C.

    `ends`, int32 (sequences, step, parts): where those of each base and of some spans begin; if they are only
    counted, how many there are.
    """
    one, cells, x = OneLane(1), given.cells, cuda.grid(1)
    rest, i = x // cells.step, x % cells.step
    b, part = rest // ends.shape[2], rest % ends.shape[2]
    if b < given.lengths.size:
        total, at = load(one, cells.exterior, b, 0), 0 if counting else ends[b, i, part]
        for span in range(max(FIRST, part * LISTED), min(given.lengths[b] - i, (part + 1) * LISTED)):
            value = load(one, cells.closed, b, place(cells, span, i))
            # What is no number, where sums do not fit, is kept to be noticed.
            if not value <= least * total:
                if not counting:
                    pairs[at, 0], pairs[at, 1], probabilities[at] = i, i + span, value / total
                at += 1
        if counting:
            ends[b, i, part] = at


def _walk_examples() -> list[tuple[Any, ...]]:
    shares, left = np.zeros((1, 1), np.float32), np.zeros((1, 3, 1), np.int32)
    return [(*_examples()[0], shares, left, np.zeros((1, 1), np.uint8))]


@cuda_kernel(_walk_examples, max_registers=64)
def walk_sequences(given: Any, shares: Any, left: Any, signs: Any) -> None:
    """A best structure of each sequence, by a thread; `left`, int32 (sequences, 3, n + 2)."""
    b, texts, cells = cuda.grid(1), given.texts, given.cells
    if b < given.lengths.size:
        closed, multi, exterior = cells.closed[b : b + 1], cells.multi[b : b + 1], cells.exterior[b : b + 1]
        kept = Intervals(closed, multi, exterior, cells.starts, cells.step)
        known = given.rule, given.alg, given.weights, texts, kept, b * texts.longest, 0
        walk_sequence(Walk(*known), given.lengths[b], shares, left[b], signs[b : b + 1])
