"""Many places of a text side by side, one in each bit of a register: mismatches, edits, and errors by kind.

A chunk of text is cut into as many segments as there are bits: bit l of column w is the letter ``width * l +
w``, so the letter i of a pattern that begins in column w is looked up in column ``w + i`` of all segments at
once, without shifts or carries between lanes. Sites (places beside a PAM) are taken in groups of as many as
there are bits, each with columns of its own. A column has a plane of mismatches for each set of letters of
the patterns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.bitparallel.recurrences import (
    LARGEST_FEW,
    LARGEST_SUM,
    ErrorLevels,
    FewMismatches,
    MismatchSum,
    UnitEdits,
    add_four,
    begin_sum,
    cell,
    count_bit,
    few_levels,
    reached,
)
from plait.lang.algebras import algebra_in_lanes, choice, opposite
from plait.lang.compile import kernel, shared
from plait.lang.lanes import (
    any_bits,
    equal,
    greater,
    load,
    lookup,
    lowest_bit,
    majority,
    mask_bits,
    parity,
    population,
    select,
    splat,
    store,
    width_of,
    without_lowest,
)

#: Columns after which a thread looks for hits.
PIECE = 64
#: Columns of edit distances that are found together, and rows of a stage but the first.
COLUMNS = 4
_STAGE = 8
#: Sites of 64 places that are written whether there are so many or not, and room for them.
SITES_BESIDE = 8


class Planes(NamedTuple):
    """Mismatches of letters of a text with sets of letters.

    `words` has a row for each column and set, int64, (columns * sets, words of a group of lanes); `sets` is
    their number. A column is `step` rows from the next one that is looked at; there are `width` of those.
    Lane l of column w is the place ``l * by_lane + w * by_column``.
    """

    words: Any
    sets: Any
    step: Any
    width: Any
    by_lane: Any
    by_column: Any


class PatternRows(NamedTuple):
    """Patterns as the sets of their letters, by number; int64.

    `sets` (patterns, letters); pattern g has `lengths` [g] letters, a multiple of 4 where mismatches are
    summed up; `limits` (patterns,) are the errors, or mismatches, that it may have.
    """

    sets: Any
    lengths: Any
    limits: Any


class Found(NamedTuple):
    """Where hits go: `hits` int64 (enough,), as ``pattern * span + place``; memory of one thread.

    `piece` int64 (PIECE, words of a group of lanes).
    """

    hits: Any
    span: Any
    piece: Any


@shared
def _write_piece(planes: Any, pattern: int, first: int, last: int, found: Any, hits: int) -> int:
    """Append the places that are set in columns `first` to `last` of a piece; returns all hits so far."""
    for w in range(first, last):
        for word in range(found.piece.shape[1]):
            bits = found.piece[w - first, word]
            while bits != 0:
                lane = word * 64 + lowest_bit(bits)
                bits = without_lowest(bits)
                if hits < found.hits.size:
                    place = lane * planes.by_lane + w * planes.by_column
                    found.hits[hits] = pattern * found.span + place
                hits += 1
    return hits


@shared
def _add_letters(p: Any, lanes: Any, alg: Any, sums: Any, words: Any, at: Any, rows: Any) -> Any:
    """The sums after letters of a pattern, a multiple of 4, with their rows at two places of the planes."""
    one, other = at
    for i in range(0, rows.size, 4):
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        x = (
            load(lanes, words, 0, one + a),
            load(lanes, words, 0, one + b),
            load(lanes, words, 0, one + c),
            load(lanes, words, 0, one + d),
        )
        y = (
            load(lanes, words, 0, other + a),
            load(lanes, words, 0, other + b),
            load(lanes, words, 0, other + c),
            load(lanes, words, 0, other + d),
        )
        sums = add_four(p, alg, sums[0], x), add_four(p, alg, sums[1], y)
    return sums


@shared
def _find_mismatches(
    p: Any, lanes: Any, alg: Any, begin: Any, planes: Any, g: int, rows: Any, rest: Any, found: Any, hits: int
) -> int:
    """Append the places of pattern g, whose sums begin at `begin`; returns all hits so far.

    Where no sum is within the limit after the letters of `rows`, those of `rest` are not added.
    """
    width, words = width_of(lanes), planes.words
    # Two columns at a time, which have the rows of the letters in common; the last one may be both.
    for w in range(0, planes.width, 2):
        other = min(w + 1, planes.width - 1)
        at = (w * planes.step * width, other * planes.step * width)
        sums = _add_letters(p, lanes, alg, (begin, begin), words, at, rows)
        good, also = opposite(alg, sums[0][-1]), opposite(alg, sums[1][-1])
        if any_bits(choice(alg, good, also)) == 0:
            continue
        sums = _add_letters(p, lanes, alg, sums, words, at, rest)
        good, also = opposite(alg, sums[0][-1]), opposite(alg, sums[1][-1])
        if any_bits(choice(alg, good, also)) != 0:
            store(lanes, found.piece, 0, 0, good)
            store(lanes, found.piece, 1, 0, also)
            hits = _write_piece(planes, g, w, other + 1, found, hits)
    return hits


@shared
def find_mismatches(lanes: Any, algebra: Any, planes: Any, patterns: Any, rows: Any, found: Any) -> int:
    """Places where patterns begin with at most as many mismatches as they may have; returns their number.

    The words of `planes` are in one row here, so that a place is found without multiplying. `rows` int64
    (letters of the longest pattern,) is memory. Hits beyond the room for them are not written.
    """
    alg = algebra_in_lanes(algebra, lanes)
    hits = 0
    for g in range(patterns.lengths.size):
        length, limit = patterns.lengths[g], patterns.limits[g]
        for i in range(length):
            rows[i] = (i * planes.sets + patterns.sets[g, i]) * width_of(lanes)
        # Of letters that match a quarter of the text, so many are hardly ever within the limit.
        lead = min((2 * limit + 11) & -4, length)
        first, rest = rows[:lead], rows[lead:length]
        if limit <= LARGEST_FEW:
            few = FewMismatches()
            begin = begin_sum(few, alg, LARGEST_FEW - limit)
            hits = _find_mismatches(few, lanes, alg, begin, planes, g, first, rest, found, hits)
        else:
            many = MismatchSum()
            more = begin_sum(many, alg, LARGEST_SUM - limit)
            hits = _find_mismatches(many, lanes, alg, more, planes, g, first, rest, found, hits)
    return hits


class Stages(NamedTuple):
    """Rows of a pattern, in stages of which all but the first are visited only behind a row within the limit.

    Memory of one thread, int64: `plan` (stages, 3) has the row before which each ends, the bits of its score,
    and the column from which it need not be visited. `rows` (letters of the longest pattern,) are places of
    the letters' planes. `state` (2 * the longest pattern, words) and `score` (stages * 16, words) are a group
    of lanes wide: a score is the distance in the last row of a stage, with ``2^p - 1 - limit`` added, so that
    its highest bit says that it is above the limit; it is kept twice, before and after four columns.
    """

    plan: Any
    rows: Any
    state: Any
    score: Any


@shared
def _four_columns(lanes: Any, alg: Any, words: Any, at: Any, ahead: Any, rows: Any, steps: Any) -> Any:
    """Four columns of a stage, with differences to right and left above it; those in its last row.

    `rows` are the letters' places beside the column at `at`, `ahead` the state: of the column before the
    four, and then of the last one.
    """
    p = UnitEdits()
    a, b, c, d = steps
    one, two, three, four = at
    for i in range(rows.size):
        up, down, row = load(lanes, ahead, 2 * i, 0), load(lanes, ahead, 2 * i + 1, 0), rows[i]
        up, down, right, left = cell(p, alg, up, down, a[0], a[1], load(lanes, words, 0, one + row))
        a = (right, left)
        up, down, right, left = cell(p, alg, up, down, b[0], b[1], load(lanes, words, 0, two + row))
        b = (right, left)
        up, down, right, left = cell(p, alg, up, down, c[0], c[1], load(lanes, words, 0, three + row))
        c = (right, left)
        up, down, right, left = cell(p, alg, up, down, d[0], d[1], load(lanes, words, 0, four + row))
        d = (right, left)
        store(lanes, ahead, 2 * i, 0, up)
        store(lanes, ahead, 2 * i + 1, 0, down)
    return a, b, c, d


@shared
def _count_four(lanes: Any, alg: Any, score: Any, old: int, new: int, bits: int, steps: Any) -> Any:
    """Add the differences of four columns to the score at `old`, into `new`: its highest bit in each."""
    p = UnitEdits()
    a, b, c, d = steps
    first = alg.zero
    second = alg.zero
    third = alg.zero
    last = alg.zero
    for k in range(bits):
        last = load(lanes, score, old + k, 0)
        first, more, less = count_bit(p, alg, last, a[0], a[1])
        a = (more, less)
        second, more, less = count_bit(p, alg, first, b[0], b[1])
        b = (more, less)
        third, more, less = count_bit(p, alg, second, c[0], c[1])
        c = (more, less)
        last, more, less = count_bit(p, alg, third, d[0], d[1])
        d = (more, less)
        store(lanes, score, new + k, 0, last)
    return first, second, third, last


@shared
def _plan_stages(length: int, limit: int, plan: Any) -> int:
    """Where stages end, and the bits of their scores; returns how many there are."""
    stages = end = 0
    while end < length:
        # Few texts have a beginning of so many letters within the limit.
        end = 3 * limit + 7 + _STAGE * stages
        if end + 2 >= length:
            end = length
        half = bits = 1
        while half < end - limit or half <= limit:
            half *= 2
            bits += 1
        plan[stages, 0], plan[stages, 1], plan[stages, 2] = end, bits, 0
        stages += 1
    return stages


@shared
def _begin_stage(lanes: Any, alg: Any, stages: Any, stage: int, limit: int, old: int) -> None:
    """The column before the next: below the row above the stage, each row has one edit more."""
    plan, state, score = stages.plan, stages.state, stages.score
    first = plan[stage - 1, 0] if stage else 0
    for i in range(first, plan[stage, 0]):
        store(lanes, state, 2 * i, 0, alg.one)
        store(lanes, state, 2 * i + 1, 0, alg.zero)
    bits, above = plan[stage, 1], plan[stage - 1, 1] if stage else 0
    more = plan[stage, 0] - first + (1 << (bits - 1)) - (1 << (above - 1) if stage else 1 + limit)
    carry = alg.zero
    for k in range(bits):
        x = load(lanes, score, 16 * (stage - 1) + old + k, 0) if k < above else alg.zero
        y = alg.one if (more >> k) & 1 else alg.zero
        store(lanes, score, 16 * stage + old + k, 0, parity(x, y, carry))
        carry = majority(x, y, carry)


@shared
def _edit_columns(lanes: Any, alg: Any, planes: Any, at: int, limit: int, stages: Any, count: int) -> Any:
    """Four columns from `at` on, as far down as needed: where the distance is within the limit."""
    plan, width = stages.plan, width_of(lanes)
    nothing = (alg.zero, alg.zero)
    steps = (nothing, nothing, nothing, nothing)
    step, begin = planes.step * width, at * planes.step * width
    four = (begin, begin + step, begin + 2 * step, begin + 3 * step)
    old, first = 2 * at & 8, 0
    above = (alg.one, alg.one, alg.one, alg.one)
    for stage in range(count):
        last = plan[stage, 0]
        if stage:
            if any_bits(opposite(alg, above[0] & above[1] & above[2] & above[3])) != 0:
                if plan[stage, 2] <= at:
                    _begin_stage(lanes, alg, stages, stage, limit, old)
                # Later, an alignment that leaves the row above now is beyond the limit. Until then it needs
                # the stages above, too.
                until = at + COLUMNS + last - first + limit
                for k in range(1, stage + 1):
                    plan[k, 2] = max(plan[k, 2], until)
            if plan[stage, 2] <= at:
                return alg.zero, alg.zero, alg.zero, alg.zero
        ahead = stages.state[2 * first : 2 * last]
        steps = _four_columns(lanes, alg, planes.words, four, ahead, stages.rows[first:last], steps)
        row = 16 * stage
        above = _count_four(lanes, alg, stages.score, row + old, row + 8 - old, plan[stage, 1], steps)
        first = last
    a, b, c, d = above
    return opposite(alg, a), opposite(alg, b), opposite(alg, c), opposite(alg, d)


@shared
def find_edits(
    lanes: Any, algebra: Any, planes: Any, patterns: Any, warm: int, stages: Any, found: Any
) -> int:
    """Places where patterns end within as many edits as they may have; returns their number.

    The words of `planes` are in one row here. The first `warm` columns, as many as the longest pattern and
    its edits, only lead in: places are counted from there. `planes.width` is that of all columns, both
    multiples of 4.
    """
    alg = algebra_in_lanes(algebra, lanes)
    hits = 0
    for g in range(patterns.lengths.size):
        length, limit = patterns.lengths[g], patterns.limits[g]
        for i in range(length):
            stages.rows[i] = patterns.sets[g, i] * width_of(lanes)
        count = _plan_stages(length, limit, stages.plan)
        _begin_stage(lanes, alg, stages, 0, limit, 0)
        for w in range(0, planes.width, COLUMNS):
            a, b, c, d = _edit_columns(lanes, alg, planes, w, limit, stages, count)
            if w >= warm and any_bits(choice(alg, choice(alg, a, b), choice(alg, c, d))) != 0:
                store(lanes, found.piece, 0, 0, a)
                store(lanes, found.piece, 1, 0, b)
                store(lanes, found.piece, 2, 0, c)
                store(lanes, found.piece, 3, 0, d)
                hits = _write_piece(planes, g, w - warm, w - warm + COLUMNS, found, hits)
    return hits


class ErrorLimits(NamedTuple):
    """Most extra letters of the text (DNA bulges), missing ones (RNA bulges), and errors of all kinds."""

    extra: Any
    missing: Any
    errors: Any


@shared
def _begin_levels(lanes: Any, alg: Any, limits: Any, levels: int, state: Any) -> None:
    """Before the first letter of the pattern: only extra letters may have come. The last row is nothing."""
    at = 0
    for _ in range(limits.extra + 1):
        for missing in range(limits.missing + 1):
            for k in range(at, at + levels):
                store(lanes, state, k, 0, alg.one if missing == 0 else alg.zero)
            at += levels
    store(lanes, state, at, 0, alg.zero)


@shared
def _next_levels(lanes: Any, alg: Any, planes: Any, row: int, limits: Any, levels: int, state: Any) -> None:
    """Levels after one more letter of the pattern, which is compared with the planes from row `row` on.

    In the place of those before it: an extra letter comes after it (levels that are new), a missing one is
    the letter itself (levels that are old), so these go downwards and those upwards.
    """
    p = ErrorLevels()
    across = limits.missing + 1
    nothing = (limits.extra + 1) * across * levels
    for extra in range(limits.extra + 1):
        for backwards in range(across):
            missing = limits.missing - backwards
            at = (extra * across + missing) * levels
            by_missing = at - levels if missing > 0 else nothing
            by_extra = at - across * levels if extra > 0 else nothing
            step_missing = 1 if missing > 0 else 0
            step_extra = 1 if extra > 0 else 0
            mismatch = load(lanes, planes.words, max(row + (extra - missing) * planes.sets, 0), 0)
            diagonal = load(lanes, state, at + levels - 1, 0)
            for k in range(levels - 1, 0, -1):
                before = load(lanes, state, at + k - 1, 0)
                others = choice(alg, before, load(lanes, state, by_missing + k * step_missing, 0))
                others = choice(alg, others, load(lanes, state, by_extra + k * step_extra, 0))
                store(lanes, state, at + k, 0, reached(p, alg, diagonal, mismatch, others))
                diagonal = before
            others = choice(alg, load(lanes, state, by_missing, 0), load(lanes, state, by_extra, 0))
            store(lanes, state, at, 0, reached(p, alg, diagonal, mismatch, others))


@shared
def _letter(lanes: Any, planes: Any, row: int) -> Any:
    """Mismatches of a letter of the pattern with that of the text beside it, the one before, and behind."""
    return (
        load(lanes, planes.words, row, 0),
        load(lanes, planes.words, max(row - planes.sets, 0), 0),
        load(lanes, planes.words, row + planes.sets, 0),
    )


@shared
def _level(lanes: Any, alg: Any, levels: int, k: int, state: Any) -> Any:
    """Where k mismatches are reached without bulges, with a letter missing, an extra one, and both."""
    if k < 0:
        return alg.zero, alg.zero, alg.zero, alg.zero
    return (
        load(lanes, state, k, 0),
        load(lanes, state, levels + k, 0),
        load(lanes, state, 2 * levels + k, 0),
        load(lanes, state, 3 * levels + k, 0),
    )


@shared
def _store_level(lanes: Any, levels: int, k: int, state: Any, new: Any) -> None:
    store(lanes, state, k, 0, new[0])
    store(lanes, state, levels + k, 0, new[1])
    store(lanes, state, 2 * levels + k, 0, new[2])
    store(lanes, state, 3 * levels + k, 0, new[3])


@shared
def _next_few_levels(lanes: Any, alg: Any, planes: Any, row: int, levels: int, span: Any, state: Any) -> None:
    """The same for at most one extra and one missing letter: what they share stays in registers.

    Levels from ``span[0]`` to ``span[1]`` alone are new.
    """
    p = ErrorLevels()
    letter = _letter(lanes, planes, row)
    old = _level(lanes, alg, levels, span[1], state)
    for k in range(span[1], span[0] - 1, -1):
        less = _level(lanes, alg, levels, k - 1, state)
        _store_level(lanes, levels, k, state, few_levels(p, alg, old, less, letter))
        old = less


@shared
def _two_few_levels(
    lanes: Any, alg: Any, planes: Any, row: int, after: int, levels: int, span: Any, state: Any
) -> None:
    """The same for two letters, from rows `row` and `after` on, in one pass over the levels."""
    p = ErrorLevels()
    letter, following = _letter(lanes, planes, row), _letter(lanes, planes, after)
    low, high = span
    less = _level(lanes, alg, levels, high - 1, state)
    new = few_levels(p, alg, _level(lanes, alg, levels, high, state), less, letter)
    for k in range(high, low, -1):
        old = less
        less = _level(lanes, alg, levels, k - 2, state)
        fewer = few_levels(p, alg, old, less, letter)
        _store_level(lanes, levels, k, state, few_levels(p, alg, new, fewer, following))
        new = fewer
    nothing = (alg.zero, alg.zero, alg.zero, alg.zero)
    if low > 0:
        nothing = few_levels(p, alg, less, _level(lanes, alg, levels, low - 2, state), letter)
    _store_level(lanes, levels, low, state, few_levels(p, alg, new, nothing, following))


@shared
def _all_few_levels(
    lanes: Any, alg: Any, planes: Any, at: int, sets: Any, length: int, levels: int, least: int, state: Any
) -> None:
    """Levels from `least` on after all letters of a pattern that begins at row `at`, two at a time.

    After i letters there are at most i mismatches, and all that are still to come count at most one each.
    """
    for i in range(0, length - 1, 2):
        row, after = at + i * planes.sets + sets[i], at + (i + 1) * planes.sets + sets[i + 1]
        span = max(least + 2 - length + i, 0), min(i + 1, levels - 1)
        _two_few_levels(lanes, alg, planes, row, after, levels, span, state)
    if length & 1:
        last = length - 1
        row = at + last * planes.sets + sets[last]
        _next_few_levels(lanes, alg, planes, row, levels, (least, levels - 1), state)


@shared
def _within(lanes: Any, alg: Any, limits: Any, across: int, mismatches: int, state: Any) -> Any:
    """Where some level within all limits has been reached."""
    good = alg.zero
    for extra in range(limits.extra + 1):
        for missing in range(limits.missing + 1):
            most = min(mismatches, limits.errors - extra - missing)
            if most >= 0:
                at = (extra * across + missing) * (mismatches + 1) + most
                good = choice(alg, good, load(lanes, state, at, 0))
    return good


@shared
def find_levels(
    lanes: Any, algebra: Any, planes: Any, patterns: Any, limits: Any, state: Any, found: Any
) -> int:
    """Sites at which patterns begin within limits of mismatches and of bulges; returns their number.

    `patterns.limits` are mismatches; `state` int64 (levels of all kinds of errors, at least one extra and one
    missing letter, and 1, words) is memory. Behind the patterns is a column for each extra letter, or one.
    """
    alg = algebra_in_lanes(algebra, lanes)
    few = limits.extra <= 1 and limits.missing <= 1
    own = ErrorLimits(max(limits.extra, 1), max(limits.missing, 1), limits.errors)
    hits = 0
    for g in range(patterns.lengths.size):
        levels = patterns.limits[g] + 1
        least = max(min(levels - 1, limits.errors - limits.extra - limits.missing), 0)
        for first in range(0, planes.width, 64):
            last = min(first + 64, planes.width)
            seen = alg.zero
            for w in range(first, last):
                _begin_levels(lanes, alg, own, levels, state)
                at = w * planes.step
                if few:
                    _all_few_levels(
                        lanes, alg, planes, at, patterns.sets[g], patterns.lengths[g], levels, least, state
                    )
                else:
                    for i in range(patterns.lengths[g]):
                        row = at + i * planes.sets + patterns.sets[g, i]
                        _next_levels(lanes, alg, planes, row, own, levels, state)
                good = _within(lanes, alg, limits, own.missing + 1, levels - 1, state)
                store(lanes, found.piece, w - first, 0, good)
                seen = choice(alg, seen, good)
            if any_bits(seen) != 0:
                hits = _write_piece(planes, g, first, last, found, hits)
    return hits


@shared
def encode(octets: Any, letters: Any, table: Any, codes: Any) -> None:
    """Codes of letters, by their lowest five bits, uint8 (rows, 64) both; bytes below 64 are nothing.

    `octets` are groups of 64 lanes of 8 bits; `table` is uint8 (2, 32): codes, and the numbers 31, 63 and the
    code of nothing.
    """
    for row in range(letters.shape[0]):
        own = load(octets, letters, row, 0)
        code = lookup(octets, table, 0, own & splat(octets, table[1, 0]))
        is_letter = greater(own, splat(octets, table[1, 1]))
        store(octets, codes, row, 0, select(is_letter, code, splat(octets, table[1, 2])))


@shared
def _swap_blocks(lanes: Any, tile: Any, first: int, rows: int, size: int) -> None:
    """A step of a transposition of so many words: blocks of some bits beside the diagonal change places."""
    low = (1 << size) - 1
    mask = low
    for shift in range(2 * size, 64, 2 * size):
        mask |= low << shift
    kept = splat(lanes, mask)
    by = splat(lanes, size)
    for begin in range(first, first + rows, 2 * size):
        for row in range(begin, begin + size):
            upper = load(lanes, tile, row, 0)
            lower = load(lanes, tile, row + size, 0)
            differ = ((upper >> by) ^ lower) & kept
            store(lanes, tile, row, 0, upper ^ (differ << by))
            store(lanes, tile, row + size, 0, lower ^ differ)


@shared
def _transpose(lanes: Any, tile: Any, first: int, columns: int, onward: int) -> int:
    """Transpose 64 words from row `first` on, as far as the first or last `columns` ask; where they begin."""
    _swap_blocks(lanes, tile, first, 64, 32)
    rows = 64
    if columns <= 32:
        rows = 32
        first += 0 if onward == 1 else 32
    _swap_blocks(lanes, tile, first, rows, 16)
    _swap_blocks(lanes, tile, first, rows, 8)
    _swap_blocks(lanes, tile, first, rows, 4)
    _swap_blocks(lanes, tile, first, rows, 2)
    _swap_blocks(lanes, tile, first, rows, 1)
    return first if onward == 1 else first + rows - 1


@shared
def _masks(octets: Any, codes: Any, starts: Any, shift: int, sets: Any, tile: Any) -> None:
    """Mismatches of the 64 codes from each of `starts` (lanes,) + `shift` on: a word a set and lane."""
    some = splat(octets, sets[0])
    nothing = some ^ some
    for word in range(tile.shape[1]):
        for lane in range(64):
            own = load(octets, codes, 0, starts[word * 64 + lane] + shift)
            for k in range(sets.size):
                tile[k * 64 + lane, word] = mask_bits(equal(own & splat(octets, sets[k]), nothing))


@shared
def stripe(
    octets: Any,
    lanes: Any,
    codes: Any,
    starts: Any,
    onward: int,
    columns: int,
    sets: Any,
    tile: Any,
    words: Any,
) -> None:
    """Planes of the text from each of `starts` on, (groups, lanes) int64, group by group in `words`.

    `octets` are groups of 64 lanes of 8 bits, `lanes` of 64 bits; `codes` uint8 (1, codes), sets of letters
    as bits; `onward` is 1, or -1 to go backwards, for so many `columns`; up to a multiple of 64 there must be
    codes. `sets` is uint8 (sets,); `tile` int64 (64 * sets, lanes / 64) memory of one thread; `words` int64
    (groups * columns * sets, lanes / 64), changed in place.
    """
    for group in range(starts.shape[0]):
        row = group * columns * sets.size
        for begin in range(0, columns, 64):
            # Backwards, the last of 64 letters is the first column.
            shift = begin if onward == 1 else -begin - 63
            _masks(octets, codes, starts[group], shift, sets, tile)
            for k in range(sets.size):
                own = min(64, columns - begin)
                at = _transpose(lanes, tile, k * 64, own, onward)
                for c in range(own):
                    bits = load(lanes, tile, at + onward * c, 0)
                    store(lanes, words, row + (begin + c) * sets.size + k, 0, bits)


@shared
def find_sites(
    octets: Any, codes: Any, first: int, last: int, pam: Any, numbers: Any, behind: int, sites: Any
) -> int:
    """Sites `behind` the places from `first` to before `last` at which a PAM begins; returns their number.

    `octets` are groups of 64 lanes of 8 bits; `codes` uint8 (1, codes) with 64 behind `last` and the PAM;
    `pam` uint8 sets of letters; `numbers` uint8 (2,) are 1 and the mismatches allowed; `sites` int64, as many
    as places and `SITES_BESIDE` more.
    """
    count = 0
    one = splat(octets, numbers[0])
    nothing = one ^ one
    most = splat(octets, numbers[1])
    for place in range(first, last, 64):
        bad = nothing
        for j in range(pam.size):
            own = load(octets, codes, 0, place + j) & splat(octets, pam[j])
            bad = bad + select(equal(own, nothing), one, nothing)
        bits = ~mask_bits(greater(bad, most))
        if last - place < 64:
            bits &= ~(-1 << (last - place))
        found = population(bits)
        # Mostly there are a few, and to write eight whether there are or not is faster than to ask at each.
        for k in range(SITES_BESIDE):
            sites[count + k] = place + behind + lowest_bit(bits)
            bits = without_lowest(bits)
        for k in range(SITES_BESIDE, found):
            sites[count + k] = place + behind + lowest_bit(bits)
            bits = without_lowest(bits)
        count += found
    return count


encode_kernel, sites_kernel = kernel(encode), kernel(find_sites)
stripe_kernel = kernel(stripe)
mismatches_kernel = kernel(find_mismatches)
edits_kernel = kernel(find_edits)
levels_kernel = kernel(find_levels)
