"""Anti-diagonal order: one pair, the lanes side by side on a stripe of neighbouring rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.pairs.choices import note
from plait.dp.pairs.gaps import AffineGap, GapDifferences, differences, in_lanes
from plait.dp.pairs.scores import enter, prepare, scores
from plait.lang.algebras import adds_scores, algebra_in_lanes, choice, extend, with_zero
from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import (
    OneLane,
    add_saturating,
    greater,
    last_lane,
    load,
    mask_bits,
    maximum,
    select,
    shift_in,
    splat,
    store,
    subtract_saturating,
)


@shared
def _record_best(scratch: Any, base: int, stripe: Any, best: Any) -> None:
    """Keep the better cell: the higher value, then the earlier row, then the earlier column."""
    row, rows, first, _ = stripe
    for r in range(rows):
        value = int(scratch.groups[9 + r % 4, r // 4]) + base
        i = row + r
        j = first + int(scratch.groups[13 + r % 4, r // 4]) - r // 4
        ahead = i < best[1] or (i == best[1] and j < best[2])
        if value > best[0] or (value == best[0] and ahead):
            best[0] = value
            best[1] = i
            best[2] = j


class Edges(NamedTuple):
    """Values handed from region to region: upper and left edge, changed in place to the lower and right one.

    All int32. `row_h` is ``h`` above and `row_f` the ``f`` handed down to each column, (columns,); `column_h`
    is ``h`` left of and `column_e` the ``e`` handed to each row, (rows,).
    """

    row_h: Any
    row_f: Any
    column_h: Any
    column_e: Any


class Region(NamedTuple):
    """Rows ``row`` to ``row_end`` and columns ``column`` to ``column_end``, cut into stretches of columns.

    `corner` is ``h`` of the cell above and left of the first one; `offset` what the corner of a stretch
    becomes in lanes, or more; `low` and `high` the least and largest number of the lanes; `floor` what no
    value falls below: 0 for local alignment, less than any score for others.
    """

    row: Any
    row_end: Any
    column: Any
    column_end: Any
    corner: Any
    stretch: Any
    offset: Any
    low: Any
    high: Any
    floor: Any


class StripeScratch(NamedTuple):
    """Memory of one thread.

    In the type of the scores: `groups` (17, lanes), values on their way between memory and lanes; `above` and
    `below` (2, stretch + lanes), ``h`` and ``f`` above and below a stretch; for differences (2, columns + 2 *
    lanes), above and below all columns, and (2, ROWS * lanes), of the rows of a stripe. `exists` is int8
    (ROWS, lanes), 1 for the rows that exist; `score` the memory of the score source.
    """

    groups: Any
    above: Any
    below: Any
    exists: Any
    score: Any


@shared
def _visit(step: Any, keep: Any, bits: Any, at: int, v: int, diag: Any, e: Any, f: Any, s: Any) -> Any:
    """A row of every lane; `step` has what a gap that comes down costs at the least from row to row.

    A gap opened where another one comes down costs no less than going on with that, so that what a row hands
    down need not wait for its value.
    """
    p, alg, onward = step
    before = choice(alg, extend(alg, diag, s), e)
    h = choice(alg, before, f)
    e_next = maximum(add_saturating(e, p.prolong), add_saturating(h, p.open))
    f_next = maximum(add_saturating(f, onward), add_saturating(before, p.open))
    note(keep, (p, alg), bits, at, v, (diag, e, s, h, e_next, f_next))
    return h, e_next, f_next


@shared
def _rows_of_lanes(step: Any, keep: Any, bits: Any, at: int, state: Any, above: Any, s: Any) -> Any:
    """One step: the rows of every lane from top to bottom.

    `state` is h and e of the rows, the f of the last row, and the h above the first row one step ago.
    """
    h, e, _, diag = state
    h0, e0, f0 = _visit(step, keep, bits, at, 0, diag, e[0], above[1], s[0])
    h1, e1, f1 = _visit(step, keep, bits, at, 1, h[0], e[1], f0, s[1])
    h2, e2, f2 = _visit(step, keep, bits, at, 2, h[1], e[2], f1, s[2])
    h3, e3, f3 = _visit(step, keep, bits, at, 3, h[2], e[3], f2, s[3])
    return (h0, h1, h2, h3), (e0, e1, e2, e3), (f0, f1, f2, f3)


@shared
def _four_where(masks: Any, a: Any, b: Any) -> Any:
    return (
        select(masks[0], a[0], b[0]),
        select(masks[1], a[1], b[1]),
        select(masks[2], a[2], b[2]),
        select(masks[3], a[3], b[3]),
    )


@shared
def _four_inside(inside: Any, a: Any, b: Any) -> Any:
    begun, going = inside
    some = _four_where((going, going, going, going), a, b)
    return _four_where((begun, begun, begun, begun), some, b)


@shared
def _lanes_inside(lanes: Any, score: Any, t: int, columns: int) -> Any:
    """Masks of the lanes that have come to the stretch in step `t`, and of those that have not left it."""
    numbers = load(lanes, score.numbers, 0, 0)
    single = OneLane(1)
    begun = greater(splat(lanes, load(single, score.counts, 0, min(t + 2, 127))), numbers)
    left = min(max(t - columns, -1), 126)
    return begun, greater(numbers, splat(lanes, load(single, score.counts, 0, left + 1)))


@shared
def _inside(lanes: Any, score: Any, t: int, columns: int, before: Any, after: Any, least: Any) -> Any:
    """The state in step `t`: `after` in the lanes that are inside the stretch, `before` in the others."""
    inside = _lanes_inside(lanes, score, t, columns)
    h, e = _four_inside(inside, after[0], before[0]), _four_inside(inside, after[1], before[1])
    seen = _four_inside(inside, after[0], (least, least, least, least))
    return (h, e, after[2], after[3]), seen


@shared
def _watch_row(lanes: Any, groups: Any, row: int, h: Any, number: Any) -> Any:
    best = load(lanes, groups, 9 + row, 0)
    store(lanes, groups, 9 + row, 0, maximum(best, h))
    where = load(lanes, groups, 13 + row, 0)
    store(lanes, groups, 13 + row, 0, select(greater(h, best), number, where))
    return maximum(best, h)


@shared
def _watch_rows(lanes: Any, groups: Any, limit: Any, h: Any, t: int) -> Any:
    """Note the best value of each row in every lane and the step when it first came, if one is above `limit`.

    Returns the limit from then on.
    """
    most = maximum(maximum(h[0], h[1]), maximum(h[2], h[3]))
    if mask_bits(greater(most, limit)) == 0:
        return limit
    groups[8, 0] = t
    single = OneLane(1)
    number, one = splat(lanes, load(single, groups, 8, 0)), splat(lanes, load(single, groups, 8, 1))
    b0, b1 = _watch_row(lanes, groups, 0, h[0], number), _watch_row(lanes, groups, 1, h[1], number)
    b2, b3 = _watch_row(lanes, groups, 2, h[2], number), _watch_row(lanes, groups, 3, h[3], number)
    # An equal value in an earlier row would be better.
    return maximum(limit, subtract_saturating(maximum(maximum(b0, b1), maximum(b2, b3)), one))


@shared
def _four_scores(source: Any, lanes: Any, like: Any, scratch: Any, letters: Any, step: int) -> Any:
    return (
        scores(source, lanes, like, scratch, letters, step, 0),
        scores(source, lanes, like, scratch, letters, step, 1),
        scores(source, lanes, like, scratch, letters, step, 2),
        scores(source, lanes, like, scratch, letters, step, 3),
    )


@shared
def _load_rows(lanes: Any, rows: Any, first: int) -> Any:
    return (
        load(lanes, rows, first, 0),
        load(lanes, rows, first + 1, 0),
        load(lanes, rows, first + 2, 0),
        load(lanes, rows, first + 3, 0),
    )


@shared
def _store_rows(lanes: Any, rows: Any, first: int, values: Any) -> None:
    store(lanes, rows, first, 0, values[0])
    store(lanes, rows, first + 1, 0, values[1])
    store(lanes, rows, first + 2, 0, values[2])
    store(lanes, rows, first + 3, 0, values[3])


@shared
def _narrow(values: Any, base: int, low: int, high: int, out: Any) -> None:
    for at in range(values.size):
        out[at] = min(max(int(values[at]) - base, low), high)


@shared
def _to_full(values: Any, base: int, out: Any) -> None:
    for at in range(out.size):
        out[at] = int(values[at]) + base


@shared
def _enter_stretch(lanes: Any, region: Any, edges: Any, scratch: Any, stripe: Any, base: int) -> None:
    """Bring the upper and left edge into the type of the scores."""
    row, rows, first, last = stripe
    low, high = region.low, region.high
    _narrow(edges.row_h[first:last], base, low, high, scratch.above[0])
    _narrow(edges.row_f[first:last], base, low, high, scratch.above[1])
    groups = scratch.groups
    for k in range(lanes.width):
        for v in range(4):
            at = row + min(4 * k + v, rows - 1)
            groups[v, k] = min(max(int(edges.column_h[at]) - base, low), high)
            groups[4 + v, k] = min(max(int(edges.column_e[at]) - base, low), high)
            scratch.exists[v, k] = 1 if 4 * k + v < rows else 0


@shared
def _leave_stretch(lanes: Any, edges: Any, scratch: Any, stripe: Any, base: int) -> None:
    """Bring the lower and right edge back."""
    row, rows, first, last = stripe
    behind = lanes.width - 1
    _to_full(scratch.below[0, behind:], base, edges.row_h[first:last])
    _to_full(scratch.below[1, behind:], base, edges.row_f[first:last])
    for r in range(rows):
        edges.column_h[row + r] = int(scratch.groups[r % 4, r // 4]) + base
        edges.column_e[row + r] = int(scratch.groups[4 + r % 4, r // 4]) + base


@shared
def _existing(exist: Any, above: Any, h: Any, f: Any) -> Any:
    """Rows that do not exist pass on what comes from above: the last one has the last row of the stripe."""
    h0, f0 = select(exist[0], h[0], above[0]), select(exist[0], f[0], above[1])
    h1, f1 = select(exist[1], h[1], h0), select(exist[1], f[1], f0)
    h2, f2 = select(exist[2], h[2], h1), select(exist[2], f[2], f1)
    h3, f3 = select(exist[3], h[3], h2), select(exist[3], f[3], f2)
    return (h0, h1, h2, h3), (f0, f1, f2, f3)


@shared
def _sweep_stretch(lanes: Any, step: Any, rules: Any, scratch: Any, bits: Any, stripe: Any) -> None:
    """Visit the rows of a stripe in a stretch of columns."""
    source, anywhere, keep = rules
    score, groups, width = scratch.score, scratch.groups, lanes.width
    _, rows, first, last = stripe
    columns, single, least = last - first, OneLane(1), step[1].zero
    one = splat(lanes, load(single, groups, 8, 1))
    none = splat(lanes, load(single, score.counts, 0, 1))
    exist = (
        greater(load(lanes, scratch.exists, 0, 0), none),
        greater(load(lanes, scratch.exists, 1, 0), none),
        greater(load(lanes, scratch.exists, 2, 0), none),
        greater(load(lanes, scratch.exists, 3, 0), none),
    )
    complete = rows == 4 * width
    # Lanes that have not begun look scores up, too.
    rows_of_letters = load(lanes, score.letters, 0, 0)
    letters = rows_of_letters - rows_of_letters
    h = _load_rows(lanes, groups, 0)
    state = (h, _load_rows(lanes, groups, 4), h[0], load(lanes, groups, 8, 0))
    limit, start = splat(lanes, load(single, groups, 8, 2)), one - one
    _store_rows(lanes, groups, 9, (limit, limit, limit, limit))
    _store_rows(lanes, groups, 13, (start, start, start, start))
    for t in range(columns + width - 1):
        letters = enter(source, letters, first + t)
        s = _four_scores(source, lanes, one, score, letters, t)
        up = shift_in(state[0][3], load(single, scratch.above, 0, t))
        above = up, shift_in(state[2], load(single, scratch.above, 1, t))
        h, e, f = _rows_of_lanes(step, keep, bits, t, state, above, s)
        if not complete:
            h, f = _existing(exist, above, h, f)
        after = h, e, f[3], up
        if t >= width - 1 and t < columns:
            state, seen = after, after[0]
        else:
            state, seen = _inside(lanes, score, t, columns, state, after, least)
        store(single, scratch.below, 0, t, last_lane(h[3]))
        store(single, scratch.below, 1, t, last_lane(f[3]))
        if anywhere:
            limit = _watch_rows(lanes, groups, limit, seen, t)
    _store_rows(lanes, groups, 0, state[0])
    _store_rows(lanes, groups, 4, state[1])


@shared
def _visit_octets(step: Any, keep: Any, bits: Any, at: int, v: int, left: Any, above: Any, s: Any) -> Any:
    h, right, down, onward, e, f = differences(step[0], above[0], left[0], left[1], above[1], s)
    note(keep, step, bits, at, v, (right, right, s, h, e, f))
    return onward, e, (down, f)


@shared
def _octets_of_lanes(
    step: Any, rules: Any, lanes: Any, scratch: Any, bits: Any, first: int, t: int, state: Any
) -> Any:
    """One step: letters, ``v`` and ``e`` of the rows of every lane, and what each row hands down."""
    letters, v, e, down = state
    (source, _, keep), edge = rules, scratch.above
    letters = enter(source, letters, first + t)
    s = _four_scores(source, lanes, v[0], scratch.score, letters, t)
    # What comes from above is in the last lane of these; what is handed down has been written before them.
    above = load(lanes, edge, 0, first + t), load(lanes, edge, 1, first + t)
    above = shift_in(down[0], above[0]), shift_in(down[1], above[1])
    v0, e0, one = _visit_octets(step, keep, bits, t, 0, (v[0], e[0]), above, s[0])
    v1, e1, two = _visit_octets(step, keep, bits, t, 1, (v[1], e[1]), one, s[1])
    v2, e2, three = _visit_octets(step, keep, bits, t, 2, (v[2], e[2]), two, s[2])
    v3, e3, four = _visit_octets(step, keep, bits, t, 3, (v[3], e[3]), three, s[3])
    each = (one[0], two[0], three[0], four[0]), (one[1], two[1], three[1], four[1])
    return letters, (v0, v1, v2, v3), (e0, e1, e2, e3), each


@shared
def _hand_down(lanes: Any, scratch: Any, stripe: Any, t: int, each: Any) -> None:
    """Write what the last row of a stripe hands down, whichever that is, in place of what came from above."""
    edge, groups, last = scratch.above, scratch.groups, stripe[1] - 1
    lane, at = last // 4, stripe[2] + t + lanes.width - 1 - last // 4
    if lane <= t and t < stripe[3] - stripe[2] + lane:
        _store_rows(lanes, groups, 9, each[0])
        _store_rows(lanes, groups, 13, each[1])
        edge[0, at], edge[1, at] = groups[9 + last % 4, lane], groups[13 + last % 4, lane]


@shared
def _sweep_octets(lanes: Any, step: Any, rules: Any, scratch: Any, bits: Any, stripe: Any) -> None:
    """Visit the rows of a stripe in a stretch of columns, by differences."""
    groups, edge, start, columns = scratch.groups, scratch.above, stripe[2], stripe[3] - stripe[2]
    letters, single, none = load(lanes, scratch.score.letters, 0, 0), OneLane(1), step[1].zero
    state = letters - letters, _load_rows(lanes, groups, 0), _load_rows(lanes, groups, 4), (none, none)
    # Steps in which all lanes are inside, if the last one has the last row.
    first, last = lanes.width - 1, max(columns, lanes.width - 1)
    if stripe[1] < 4 * lanes.width:
        first = last
    for part in range(2):
        for t in range(last if part else 0, columns + lanes.width - 1 if part else first):
            letters, v, e, each = _octets_of_lanes(step, rules, lanes, scratch, bits, start, t, state)
            inside = _lanes_inside(lanes, scratch.score, t, columns)
            v, e = _four_inside(inside, v, state[1]), _four_inside(inside, e, state[2])
            state = letters, v, e, (each[0][3], each[1][3])
            _hand_down(lanes, scratch, stripe, t, each)
        for t in range(first, first if part else last):
            letters, v, e, each = _octets_of_lanes(step, rules, lanes, scratch, bits, start, t, state)
            state = letters, v, e, (each[0][3], each[1][3])
            store(single, edge, 0, start + t, last_lane(each[0][3]))
            store(single, edge, 1, start + t, last_lane(each[1][3]))
    _store_rows(lanes, groups, 0, state[1])
    _store_rows(lanes, groups, 4, state[2])


@shared
def _to_octets(values: Any, handed: Any, before: int, opened: int, out: Any) -> None:
    for k in range(values.size):
        value = int(values[k])
        out[0, k] = value - before + opened
        out[1, k] = int(handed[k]) - value + opened
        before = value


@shared
def _from_octets(octets: Any, value: int, opened: int, values: Any, handed: Any) -> None:
    for k in range(values.size):
        value += int(octets[0, k]) - opened
        values[k] = value
        handed[k] = value + int(octets[1, k]) - opened


@shared
def _sweep_differences(
    gap: Any, lanes: Any, algebra: Any, rules: Any, region: Any, edges: Any, memory: Any
) -> None:
    scratch, bits, _ = memory
    groups, opened, height = scratch.groups, region.offset, 4 * lanes.width
    groups[8, 0] = 0
    # What the compiler knew to be 0 it would compare in two instructions.
    step = in_lanes(gap, lanes), algebra_in_lanes(with_zero(algebra, groups[8, 0]), lanes)
    columns = slice(region.column, region.column_end)
    row_h, row_f = edges.row_h[columns], edges.row_f[columns]
    across, down = scratch.above[:, lanes.width - 1 + region.column :], scratch.below
    left, right = region.corner, int(row_h[row_h.size - 1])
    _to_octets(row_h, row_f, left, opened, across)
    for row in range(region.row, region.row_end, height):
        rows = min(height, region.row_end - row)
        column_h, column_e = edges.column_h[row : row + rows], edges.column_e[row : row + rows]
        _to_octets(column_h, column_e, left, opened, down)
        left = int(column_h[rows - 1])
        for r in range(height):
            groups[r % 4, r // 4] = down[0, min(r, rows - 1)]
            groups[4 + r % 4, r // 4] = down[1, min(r, rows - 1)]
        for first in range(region.column, region.column_end, region.stretch):
            stripe = (row, rows, first, min(first + region.stretch, region.column_end))
            here = bits[(row - region.row) // height, (first - region.column) // region.stretch]
            prepare(rules[0], lanes, scratch.score, stripe)
            _sweep_octets(lanes, step, rules, scratch, here, stripe)
        for r in range(rows):
            down[0, r] = groups[r % 4, r // 4]
            down[1, r] = groups[4 + r % 4, r // 4]
        _from_octets(down, right, opened, column_h, column_e)
        right = int(column_h[rows - 1])
    _from_octets(across, left, opened, row_h, row_f)


@shared
def _sweep_values(
    gap: Any, lanes: Any, algebra: Any, rules: Any, region: Any, edges: Any, memory: Any
) -> None:
    scratch, bits, best = memory
    p, alg = in_lanes(gap, lanes), algebra_in_lanes(algebra, lanes)
    height = 4 * lanes.width
    corner = region.corner
    groups = scratch.groups
    for row in range(region.row, region.row_end, height):
        rows = min(height, region.row_end - row)
        left = corner
        corner = int(edges.column_h[row + rows - 1])
        for first in range(region.column, region.column_end, region.stretch):
            last = min(first + region.stretch, region.column_end)
            # What no value falls below is the least number of the lanes, or lies below it.
            base = max(left - region.offset, region.floor - region.low)
            groups[8, 0] = left - base
            left = int(edges.row_h[last - 1])
            groups[8, 1] = 1
            groups[8, 2] = min(max(best[0] - 1 - base, region.low), region.high)
            stripe = (row, rows, first, last)
            here = bits[(row - region.row) // height, (first - region.column) // region.stretch]
            prepare(rules[0], lanes, scratch.score, stripe)
            _enter_stretch(lanes, region, edges, scratch, stripe, base)
            _sweep_stretch(lanes, (p, alg, maximum(p.open, p.prolong)), rules, scratch, here, stripe)
            _leave_stretch(lanes, edges, scratch, stripe, base)
            if rules[1]:
                _record_best(scratch, base, stripe, best)


_sweep_by = by_type_of({AffineGap: _sweep_values, GapDifferences: _sweep_differences})


@shared
def sweep_region(
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
    """Visit a region stripe by stripe (`ROWS` times `lanes` rows), each in stretches of columns.

    Numbers of `gap` and `algebra` have the type of the scores, of which ``zero`` of `SaturatingMaxPlus` is
    the least. With `GapDifferences`, octets, and `MaxPlus`, whose zero is made from memory, no alignment ends
    inside, and ``region.offset`` is what opening a gap costs. `rules` are score source, whether an alignment
    may end in any cell, and what is kept. Changed in place: `edges`; `bits`,
    where choices are kept, unsigned (stripes, stretches, stretch + lanes - 1, ROWS, 4);
    `best`, for ends in any cell, int64: best value, its row and its column. `scratch` is this thread's.
    """
    adds_scores(algebra)
    _sweep_by(gap, lanes, algebra, rules, region, edges, (scratch, bits, best))
