"""Rows of lanes of the chain: what a row means, how it is filled, and how rows are brought together.

A row is either one value per model (`PerModel`) or one value per total number of insertions
(`PerInsertions`): the coefficients of a polynomial, which an inserted base shifts by one lane. The
two differ in how the part before a D is joined to the part after it: model by model from stored
rows, or by carrying the polynomial on towards the V.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.chain.insertions import insert
from plait.lang.algebras import choice, extend, repeat
from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import load, splat, store


class PerModel(NamedTuple):
    """Lane x is model x."""

    models: Any


class PerInsertions(NamedTuple):
    """Lane n is n insertions; `models` counts the lanes."""

    models: Any


class PerPosition(NamedTuple):
    """There is one model; lane x is position x of the junction."""


class Kind(NamedTuple):
    """Everything about a chain run that is fixed when it is compiled.

    `insertion` is the recurrence of the junctions, `rows` is `PerModel`, `PerInsertions` or `PerPosition`,
    `lanes` the width of lane groups.
    """

    insertion: Any
    rows: Any
    lanes: Any


class Span(NamedTuple):
    """Where a junction matches its ends.

    `m_v` and `m_j` are the bases of each that match; `first` is the leftmost position at which a
    D may end, `last` the rightmost at which one may start.
    """

    v: Any
    j: Any
    m_v: Any
    m_j: Any
    length: Any
    first: Any
    last: Any


class PositionRows(NamedTuple):
    """A row of lanes for every position, that of b from ``[b * row_step, lead + b * column_step]`` on.

    Either every position has a row of its own, or neighbouring positions share a row, one column apart.
    """

    rows: Any
    lead: Any
    row_step: Any
    column_step: Any


@shared
def load_at(lanes: Any, after: Any, b: int, x: int) -> Any:
    """A group of the lanes of position b."""
    return load(lanes, after.rows, b * after.row_step, after.lead + b * after.column_step + x)


@shared
def clear_row(kind: Any, alg: Any, rows: Any, row: int) -> None:
    """Set a row to zero."""
    for x in range(0, rows.shape[1], kind.lanes.width):
        store(kind.lanes, rows, row, x, splat(kind.lanes, alg.zero))


@shared
def fill_ends_models(
    rows: Any, kind: Any, alg: Any, tables: Any, span: Any, plain: bool, scratch: Any
) -> Any:
    """`fill_ends` with a row per position.

    Both sides in turn: a row reads, some columns off, what was stored for the one before, and would wait.
    """
    clear_row(kind, alg, scratch.right_levels, span.length + 1)
    for step in range(max(span.last, span.length - span.first) + 1):
        if step <= span.last:
            fill_left_row(kind, alg, tables, span, scratch, step)
        if step <= span.length - span.first:
            fill_right_row(kind, alg, tables, span, scratch, span.length - step)
    return PositionRows(scratch.right, scratch.lead, 1, 0)


@shared
def fill_left_row(kind: Any, alg: Any, tables: Any, span: Any, scratch: Any, a: int) -> None:
    """Row a + 1 of `left` and `single`."""
    row = tables.v_row[span.v, a] if a <= span.m_v else 0
    weight = scratch.weight[a - 1] if a > 0 else alg.one
    fill_levels(kind, alg, tables, row, scratch.left_levels, scratch.lead, a, a + 1, weight)
    copy_lanes(scratch.left_levels, scratch.lead, tables.left_lane, scratch.left, a + 1)
    copy_lanes(scratch.left_levels, scratch.lead, tables.single_lane, scratch.single, a + 1)


@shared
def fill_right_row(kind: Any, alg: Any, tables: Any, span: Any, scratch: Any, b: int) -> None:
    """Row b of `right`."""
    kept = span.length - b
    row = tables.j_row[span.j, kept] if kept <= span.m_j else 0
    fill_levels(kind, alg, tables, row, scratch.right_levels, scratch.lead, b + 1, b, scratch.weight[b])
    copy_lanes(scratch.right_levels, scratch.lead, tables.right_lane, scratch.right, b)


@shared
def fill_ends_insertions(
    rows: Any, kind: Any, alg: Any, tables: Any, span: Any, plain: bool, scratch: Any
) -> Any:
    """`fill_ends` where lanes count insertions: what comes before needs nothing.

    Lane n at position b is what enters at b + n, times the weights of the n bases between. Where all
    weights are one, one row of what enters at every position serves all: lane n at b is its column b + n.
    """
    if not plain:
        clear_row(kind, alg, scratch.right_levels, span.length + 1)
        for b in range(span.length, span.first - 1, -1):
            fill_right_row(kind, alg, tables, span, scratch, b)
        return PositionRows(scratch.right, scratch.lead, 1, 0)
    entering = scratch.entering
    for b in range(span.first, span.length + 1):
        kept = span.length - b
        row = tables.j_row[span.j, kept] if kept <= span.m_j else 0
        entering[0, b] = tables.level_weights[row, 0]
    for x in range(0, scratch.total.shape[1], kind.lanes.width):
        store(kind.lanes, entering, 0, span.length + 1 + x, splat(kind.lanes, alg.zero))
    return PositionRows(entering, 0, 0, 1)


@shared
def fill_levels(
    kind: Any, alg: Any, tables: Any, row: int, levels: Any, lead: int, source: int, place: int, weight: Any
) -> None:
    """One position of the insertion recurrence, all levels; the columns before `lead` stay zero."""
    lanes = kind.lanes
    factor = splat(lanes, weight)
    for x in range(0, tables.level_weights.shape[1], lanes.width):
        entered = load(lanes, tables.level_weights, row, x)
        shorter = load(lanes, levels, source, lead + x - tables.level_step)
        store(lanes, levels, place, lead + x, insert(kind.insertion, alg, entered, shorter, factor))


@shared
def copy_lanes(levels: Any, lead: int, lanes: Any, rows: Any, row: int) -> None:
    """Pick the level that each model reads; no lanes are given where every model is its own level."""
    for x in range(lanes.size):
        rows[row, lead + x] = levels[row, lead + lanes[x]]


@shared
def add_match(
    kind: Any, alg: Any, weights: Any, row: int, times: int, after: Any, b: int, found: bool, inner: Any
) -> None:
    """Add ``weights[row]`` times the lanes of b to ``inner[0]``, `times` times; the first overwrites."""
    lanes = kind.lanes
    for x in range(0, inner.shape[1], lanes.width):
        value = extend(alg, load(lanes, weights, row, x), load_at(lanes, after, b, x))
        if times > 1:
            value = repeat(alg, value, splat(lanes, alg.one * times))
        if found:
            value = choice(alg, load(lanes, inner, 0, x), value)
        store(lanes, inner, 0, x, value)


@shared
def collect_models(
    rows: Any, kind: Any, alg: Any, tables: Any, span: Any, scratch: Any,
    a: int, after: Any, b: int, found: bool, t: int,
) -> None:  # fmt: skip
    """`collect` lane by lane: what comes before is in ``left``."""
    if found:
        lanes = kind.lanes
        total = scratch.total
        for x in range(0, total.shape[1], lanes.width):
            before = load(lanes, scratch.left, a + 1, scratch.lead + x)
            product = extend(alg, before, load_at(lanes, after, b, x))
            store(lanes, total, t, x, choice(alg, load(lanes, total, t, x), product))


@shared
def collect_insertions(
    rows: Any, kind: Any, alg: Any, tables: Any, span: Any, scratch: Any,
    a: int, after: Any, b: int, found: bool, t: int,
) -> None:  # fmt: skip
    """`collect` where lanes count insertions: those before a are inserted on the way to smaller a.

    Lane n at position a stands in column a + n of ``carry[t]``. One insertion takes lane n at a to lane
    n + 1 at a - 1, which is the same column: unless the base has a weight, nothing moves.
    """
    lanes = kind.lanes
    total = scratch.total
    carry = scratch.carry
    if scratch.weight[a] != alg.one:
        weight = splat(lanes, scratch.weight[a])
        for x in range(0, total.shape[1], lanes.width):
            store(lanes, carry, t, a + 1 + x, extend(alg, load(lanes, carry, t, a + 1 + x), weight))
    if found:
        for x in range(0, total.shape[1], lanes.width):
            value = choice(alg, load(lanes, carry, t, a + x), load_at(lanes, after, b, x))
            store(lanes, carry, t, a + x, value)
    if a <= span.m_v:
        row = tables.v_row[span.v, a]
        for x in range(0, total.shape[1], lanes.width):
            value = extend(alg, load(lanes, carry, t, a + x), load(lanes, tables.end_weights, row, x))
            store(lanes, total, t, x, choice(alg, load(lanes, total, t, x), value))


@shared
def first_end_models(rows: Any, span: Any, levels: int, a: int) -> Any:
    """`first_end` where each junction has its own limit."""
    return span.first


@shared
def first_end_insertions(rows: Any, span: Any, levels: int, a: int) -> Any:
    """`first_end` where insertions before the D leave fewer for after it."""
    before = max(0, a - span.m_v)
    return max(0, span.length - span.m_j - (levels - 1 - before))


@shared
def clear_carry_models(rows: Any, kind: Any, alg: Any, span: Any, scratch: Any, t: int) -> None:
    """`clear_carry` of rows that carry nothing."""


@shared
def clear_carry_insertions(rows: Any, kind: Any, alg: Any, span: Any, scratch: Any, t: int) -> None:
    """`clear_carry` of all columns that positions up to the last one reach."""
    for x in range(0, span.last + 1 + scratch.total.shape[1], kind.lanes.width):
        store(kind.lanes, scratch.carry, t, x, splat(kind.lanes, alg.zero))


@shared
def sum_vj_models(
    rows: Any, kind: Any, alg: Any, tables: Any, span: Any, after: Any, scratch: Any, t: int
) -> None:
    """`sum_vj` from the rows left of each J."""
    lanes = kind.lanes
    total = scratch.total
    for a in range(max(0, span.length - span.m_j), span.last + 1):
        row = tables.j_row[span.j, span.length - a]
        for x in range(0, total.shape[1], lanes.width):
            before = load(lanes, scratch.single, a + 1, scratch.lead + x)
            paths = extend(alg, before, load(lanes, tables.end_weights, row, x))
            store(lanes, total, t, x, choice(alg, load(lanes, total, t, x), paths))


@shared
def sum_vj_insertions(
    rows: Any, kind: Any, alg: Any, tables: Any, span: Any, after: Any, scratch: Any, t: int
) -> None:
    """`sum_vj` from the rows right of each V, which hold all insertions already."""
    lanes = kind.lanes
    total = scratch.total
    for a in range(span.first, span.m_v + 1):
        row = tables.v_row[span.v, a]
        for x in range(0, total.shape[1], lanes.width):
            behind = load_at(lanes, after, a, x)
            paths = extend(alg, behind, load(lanes, tables.end_weights, row, x))
            store(lanes, total, t, x, choice(alg, load(lanes, total, t, x), paths))


@shared
def insert_middle_models(rows: Any, kind: Any, alg: Any, tables: Any, span: Any, scratch: Any) -> None:
    """`insert_middle` where every model has its own limit."""
    limit = tables.middle_limit
    middle = scratch.middle
    behind = scratch.behind
    lead = scratch.lead
    for b in range(span.length + 1):
        for x in range(limit.size):
            behind[b, lead + x] = middle[b, x]
        product = alg.one
        for k in range(1, min(span.length - b, kind.insertion.levels - 1) + 1):
            product = extend(alg, product, scratch.weight[b + k - 1])
            for x in range(limit.size):
                if k <= limit[x]:
                    longer = extend(alg, product, middle[b + k, x])
                    behind[b, lead + x] = choice(alg, behind[b, lead + x], longer)


@shared
def insert_middle_insertions(rows: Any, kind: Any, alg: Any, tables: Any, span: Any, scratch: Any) -> None:
    """`insert_middle` where lanes count insertions."""
    behind = scratch.behind
    lead = scratch.lead
    for b in range(span.length, -1, -1):
        for x in range(kind.rows.models):
            value = scratch.middle[b, x]
            if x > 0 and b < span.length:
                value = choice(alg, value, extend(alg, behind[b + 1, lead + x - 1], scratch.weight[b]))
            behind[b, lead + x] = value


#: Rows of `left` and `single`, row a + 1 for position a: all that comes before a D that starts there; returns
#: all that comes after a D that ends at a position length..first, as `PositionRows`. `plain` says that all
#: bases weigh one.
fill_ends = by_type_of({PerModel: fill_ends_models, PerInsertions: fill_ends_insertions})

#: Extend the lanes of b by all that may come before position a, and add them to ``total[t]``. To be called
#: for every a from the last to 0, with `found` false where nothing starts; ``total[t]`` is cleared first, and
#: `clear_carry` called.
collect = by_type_of({PerModel: collect_models, PerInsertions: collect_insertions})

#: Leftmost end of a D that starts at position a and can still be reached from the J.
first_end = by_type_of({PerModel: first_end_models, PerInsertions: first_end_insertions})

#: Prepare `collect` for row t.
clear_carry = by_type_of({PerModel: clear_carry_models, PerInsertions: clear_carry_insertions})

#: Add to ``total[t]`` the paths with one insertion between V and J.
sum_vj = by_type_of({PerModel: sum_vj_models, PerInsertions: sum_vj_insertions})

#: Insertions between two D genes: ``behind[b]`` from ``middle[b:]``.
insert_middle = by_type_of({PerModel: insert_middle_models, PerInsertions: insert_middle_insertions})
