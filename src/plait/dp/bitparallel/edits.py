"""Unit costs: edit distances of pairs, 64 rows of a column in each word, and their alignments.

Lanes are words of neighbouring rows, each a column behind the one above it, and words hold where a distance
is one more or one less than its neighbour (Myers, J ACM 46:395, 1999; Hyyro's form). A matrix is swept stripe
by stripe. Rows that fill the first stripe stand above the query, so that the last row is always the last of
its stripe. Of two fixed ends only the diagonals are swept that alignments within a limit pass through, and
the limit grows until it holds (Ukkonen, Inf Control 64:100, 1985). Where lanes hold all words of so many
diagonals, they slide down the matrix instead.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.bitparallel.recurrences import EditColumns, column
from plait.dp.pairs.lists import PairList, lane_rows, offer
from plait.dp.pairs.traceback import close_at_border, copy_runs, write_run
from plait.errors import InvalidInput
from plait.lang.compile import by_type, kernel, shared
from plait.lang.lanes import (
    OneLane,
    SixteenLanes,
    SixtyFourLanes,
    ThirtyTwoLanes,
    equal,
    host_lanes,
    last_lane,
    load,
    mask_bits,
    population,
    select,
    shift_in,
    splat,
    store,
    widen,
    width_of,
)

#: Letters are told apart by so many bits.
LETTER_BITS: Final = 5
MOST_LETTERS: Final = 1 << LETTER_BITS
#: Rows of ``planes`` of a stripe: those of the letters' bits, the rows that exist, those that always match.
PLANES: Final = LETTER_BITS + 2
#: Codes that stand before the first query: 64 rows are looked at together.
AHEAD: Final = 64
#: Distance that is tried first.
_FIRST_LIMIT: Final = 128
#: Most words that slide, and most of those of choices that are kept of them, twice.
_SLIDING: Final = 32
_MOST_KEPT: Final = 1 << 22
#: Rows of ``slide``: steps down and up, more and less to the right below, and `PLANES` more.
_UP, _DOWN, _MORE, _LESS, _PLANES = range(5)


class EditScale(NamedTuple):
    """What distances mean: ``2 score = both * residues of both - unit * distance``."""

    both: int
    unit: int


#: Codes that are numbered together.
_NUMBERED: Final = 1 << 14


@shared
def _number_four(codes: Any, place: Any, numbers: Any) -> bool:
    """Number codes by the four that have numbers; False if there is another one."""
    own = (np.uint8(0), np.uint8(0), np.uint8(0), np.uint8(0))
    for code in range(256):
        x = np.uint8(code)
        number = place[code]
        own = (
            x if number == 0 else own[0],
            x if number == 1 else own[1],
            x if number == 2 else own[2],
            x if number == 3 else own[3],
        )
    other = np.uint8(0)
    for k in range(codes.size):
        x = codes[k]
        low = np.uint8(np.uint8(x == own[1]) | np.uint8(x == own[3]))
        high = np.uint8(np.uint8(x == own[2]) | np.uint8(x == own[3]))
        numbers[k] = np.uint8(low + high + high)
        other = np.uint8(other | np.uint8(np.uint8(low | high | np.uint8(x == own[0])) == 0))
    return bool(other == 0)


@shared
def number_codes(codes: Any, place: Any, count: int, numbers: Any) -> int:
    """Number codes as they come, from `count` on; `place`, int16 (256,), is -1 for those without a number."""
    for first in range(0, codes.size, _NUMBERED):
        last = min(first + _NUMBERED, codes.size)
        if count == 4 and _number_four(codes[first:last], place, numbers[first:last]):
            continue
        for k in range(first, last):
            number = int(place[codes[k]])
            if number < 0:
                number = count
                place[codes[k]] = number
                count += 1
            numbers[k] = number
    return count


def _numbered(
    *sequences: NDArray[np.uint8], interpreted: bool
) -> tuple[list[NDArray[np.uint8]], NDArray[np.int16], int]:
    """Sequences in numbers of their codes from 0 on, the number of each code, and how many there are.

    There is room for `AHEAD` codes before each.
    """
    place, count = np.full(256, -1, np.int16), 0
    numbers = [np.empty(AHEAD + codes.size, np.uint8)[AHEAD:] for codes in sequences]
    for codes, own in zip(sequences, numbers, strict=True):
        count = int((number_codes if interpreted else number_kernel)(codes, place, count, own))
    return numbers, place, count


def codes_of(codes: NDArray[np.uint8], *, interpreted: bool = False) -> NDArray[np.int64]:
    """The codes that occur, rising."""
    return np.flatnonzero(_numbered(codes, interpreted=interpreted)[1] >= 0)


def _most_code(task: PairList) -> int:
    return max(int(task.query.max(initial=0)), int(task.target.max(initial=0)))


def unit_costs(
    task: PairList, known: dict[int, EditScale | None] | None = None, *, interpreted: bool = False
) -> EditScale | None:
    """How distances of these pairs become scores; None if the costs are others, or letters too many.

    A score of equal letters other than 0 is shared out to the residues, which all of a global alignment has.
    `known` is what was found for the same costs if all codes up to one occur.
    """
    free, gap = task.free, int(task.gap_open)
    if free.anywhere or task.gap_extend != gap or gap == 0:
        return None
    # Often all letters up to the last one have such scores.
    most, known = _most_code(task) + 1, {} if known is None else known
    if most <= MOST_LETTERS and most not in known:
        known[most] = _scale_of(task, *2 * (np.arange(most),))
    own = (codes_of(codes, interpreted=interpreted) for codes in (task.query, task.target))
    return known.get(most) or _scale_of(task, *own)


def _scale_of(task: PairList, own: NDArray[np.int64], other: NDArray[np.int64]) -> EditScale | None:
    """The scale of pairs with some letters."""
    scores = task.matrix[np.ix_(own, other)]
    same = own[:, None] == other
    both = int(scores[same][0]) if same.any() and not any(task.free) else 0
    unit = 2 * int(task.gap_open) + both
    if np.union1d(own, other).size > MOST_LETTERS:
        return None
    # A mismatch takes away what both residues have, and costs as much as either gap.
    if unit <= 0 or (scores[same] != both).any() or (2 * scores[~same] != 2 * both - unit).any():
        return None
    return EditScale(both, unit)


class EditPairs(NamedTuple):
    """Pairs: codes below `MOST_LETTERS`, uint8, one after the other, and where each begins, int64 (n + 1,).

    Codes of a side are (1, codes), behind `AHEAD` others, from which they are counted.
    `limits` int64 (n,) are distances above which a pair is left; `free` says what may be left out; `kind` is
    `TwoBits` or `FiveBits`, and `bits` are as many.
    """

    query: Any
    query_starts: Any
    target: Any
    target_starts: Any
    limits: Any
    free: Any
    kind: Any
    bits: Any


class EditMemory(NamedTuple):
    """Memory of one thread, for the longest query and target.

    `planes` int64 (stripes * `PLANES`, lanes): words of the rows, see `fill_word`.
    `letters` int8 (bits, columns + lanes): bits of those of the columns, all ones or zeros. `state` int64
    (2 * lanes + 2, lanes): where rows begin with a step down, numbers of the lanes, and steps down and up
    behind the last column, two rows for each lane. `across` int8 (stripes + 1, columns + lanes): steps to the
    right above the columns of stripes. `spans` int64 (stripes + 1, 3): first column of a stripe, the one
    behind its last, and the distance above and left of its first cell. `edge` int8 (columns + lanes,) is the
    lower edge of the stripe at hand. `bits` int64 (2 * steps, lanes): where the diagonal is not best, and
    steps to the right. `slide` int64 (4 + `PLANES`, enough) is what lanes that slide hold, `reverse` int8
    (bits, columns + 2 * `_SLIDING`) has `letters`, the last first, behind as many others, and `kept` int64
    (2, enough) is the same as `bits`. The others are as in `plait.dp.pairs.lists.PairMemory`.
    """

    planes: Any
    letters: Any
    state: Any
    across: Any
    spans: Any
    edge: Any
    bits: Any
    slide: Any
    reverse: Any
    kept: Any
    runs: Any
    cursor: Any
    best: Any


class EditPair(NamedTuple):
    """A pair at hand: codes, what may be left out, and how letters are told apart.

    `query` are those of all queries, see `fill_word`, from `place` on so many `rows`.
    """

    query: Any
    place: Any
    rows: Any
    target: Any
    free: Any
    kind: Any


@shared
def fill_word(planes: Any, base: int, lane: int, query: Any, place: int, first: int, how: Any) -> None:
    """Bits of the letters of the rows `first` to ``first + 63``, which may lie above those of the query.

    `query` are all codes behind `AHEAD` others, (1, codes), of which row 0 is at `place`. `planes` gets, from
    row `base` on in a lane: a word for each bit, the rows that exist, and those that match all letters.
    `how` is the number of bits, and whether rows that do not exist match.
    """
    bits, match = how
    rows = -1 << max(-first, 0) if first > -64 else 0
    if rows != 0:
        octets = SixtyFourLanes(64)
        own = load(octets, query, 0, AHEAD + place + first)
        for b in range(bits):
            bit = splat(octets, np.uint8(1 << b))
            planes[base + b, lane] = mask_bits(equal(own & bit, bit)) & rows
    planes[base + LETTER_BITS, lane] = rows
    planes[base + LETTER_BITS + 1, lane] = -1 - rows if match else 0


class TwoBits(NamedTuple):
    """Up to four letters: a word of all ones or zeros for each bit of those that the lanes are at."""

    @staticmethod
    def none(kind: TwoBits, zero: Any) -> Any:
        return zero, zero

    @staticmethod
    def spread(kind: TwoBits, lanes: Any, p: Any, planes: Any, at: int) -> Any:
        base, left = at // 64 * PLANES, splat(lanes, 63 - at % 64)
        one, two = load(lanes, planes, base, 0), load(lanes, planes, base + 1, 0)
        return (one << left) >> p.last, (two << left) >> p.last

    @staticmethod
    def letters_at(kind: TwoBits, lanes: Any, like: Any, rows: Any, at: int) -> Any:
        return widen(like, load(lanes, rows, 0, at)), widen(like, load(lanes, rows, 1, at))

    @staticmethod
    def enter(kind: TwoBits, letters: Any, rows: Any, at: int) -> Any:
        one = OneLane(1)
        return (
            shift_in(letters[0], int(load(one, rows, 0, at))),
            shift_in(letters[1], int(load(one, rows, 1, at))),
        )

    @staticmethod
    def differ(kind: TwoBits, lanes: Any, planes: Any, base: int, letters: Any) -> Any:
        a, b = load(lanes, planes, base, 0) ^ letters[0], load(lanes, planes, base + 1, 0) ^ letters[1]
        return a | b


class FiveBits(NamedTuple):
    """Up to 32 letters."""

    @staticmethod
    def none(kind: FiveBits, zero: Any) -> Any:
        return zero, zero, zero, zero, zero

    @staticmethod
    def spread(kind: FiveBits, lanes: Any, p: Any, planes: Any, at: int) -> Any:
        base, left = at // 64 * PLANES, splat(lanes, 63 - at % 64)
        return (
            *spread(TwoBits(), lanes, p, planes, at),
            (load(lanes, planes, base + 2, 0) << left) >> p.last,
            (load(lanes, planes, base + 3, 0) << left) >> p.last,
            (load(lanes, planes, base + 4, 0) << left) >> p.last,
        )

    @staticmethod
    def letters_at(kind: FiveBits, lanes: Any, like: Any, rows: Any, at: int) -> Any:
        return (
            *letters_at(TwoBits(), lanes, like, rows, at),
            widen(like, load(lanes, rows, 2, at)),
            widen(like, load(lanes, rows, 3, at)),
            widen(like, load(lanes, rows, 4, at)),
        )

    @staticmethod
    def enter(kind: FiveBits, letters: Any, rows: Any, at: int) -> Any:
        one = OneLane(1)
        return (
            *enter(TwoBits(), letters, rows, at),
            shift_in(letters[2], int(load(one, rows, 2, at))),
            shift_in(letters[3], int(load(one, rows, 3, at))),
            shift_in(letters[4], int(load(one, rows, 4, at))),
        )

    @staticmethod
    def differ(kind: FiveBits, lanes: Any, planes: Any, base: int, letters: Any) -> Any:
        some = differ(TwoBits(), lanes, planes, base, letters)
        some = some | (load(lanes, planes, base + 2, 0) ^ letters[2])
        some = some | (load(lanes, planes, base + 3, 0) ^ letters[3])
        return some | (load(lanes, planes, base + 4, 0) ^ letters[4])


@by_type
def none(kind: Any, zero: Any) -> Any:
    """No letters yet."""


@by_type
def spread(kind: Any, lanes: Any, p: Any, planes: Any, at: int) -> Any:
    """The letters of the lanes at a place of `planes`, see `fill_word`; `p` are `EditColumns`."""


@by_type
def letters_at(kind: Any, lanes: Any, like: Any, rows: Any, at: int) -> Any:
    """The letters of the lanes, whose bits stand in `rows` from a place on; of the type of `like`."""


@by_type
def enter(kind: Any, letters: Any, rows: Any, at: int) -> Any:
    """The letters one lane further, and the next one of the columns in the first lane."""


@by_type
def differ(kind: Any, lanes: Any, planes: Any, base: int, letters: Any) -> Any:
    """Where the letters of the rows are others."""


@shared
def _fill_columns(letters: Any, target: Any, bits: int) -> None:
    """Bits of the letters of the columns, all ones or zeros."""
    for b in range(bits):
        for j in range(target.size):
            letters[b, j] = -((int(target[j]) >> b) & 1)


@shared
def _sweep_stripe(lanes: Any, pair: Any, memory: Any, stripe: int, first: int, last: int, keep: bool) -> None:
    """Visit the columns `first` to before `last` of a stripe; ``memory.state`` has how its rows begin."""
    width = width_of(lanes)
    one, kind = OneLane(1), pair.kind
    p = EditColumns(splat(lanes, 1), splat(lanes, 63), splat(lanes, -1))
    zero = p.unit - p.unit
    state, bits = memory.state, memory.bits
    base = stripe * PLANES
    missing = load(lanes, memory.planes, base + LETTER_BITS, 0) ^ p.full
    others = load(lanes, memory.planes, base + LETTER_BITS + 1, 0) ^ p.full
    begin = load(lanes, state, 0, 0)
    up, down, more, less, letters = begin, zero, zero, zero, none(kind, zero)
    columns = last - first
    offset = first - memory.spans[stripe, 0]
    for t in range(columns + width - 1):
        step = int(load(one, memory.across, stripe, offset + t))
        more = shift_in(more, -step >> 63)
        less = shift_in(less, step >> 63)
        letters = enter(kind, letters, memory.letters, first + t)
        if t < width:
            begun = equal(load(lanes, state, 1, 0), splat(lanes, t))
            up = select(begun, begin, up)
            down = select(begun, zero, down)
        apart = (differ(kind, lanes, memory.planes, base, letters) | missing) & others
        up, down, more, less, aside, right = column(p, up, down, apart, more, less)
        if keep:
            store(lanes, bits, 2 * t, 0, aside)
            store(lanes, bits, 2 * t + 1, 0, right)
        memory.edge[t] = last_lane(less - more)
        if t >= columns - 1:
            store(lanes, state, 2 + 2 * (t - columns + 1), 0, up)
            store(lanes, state, 3 + 2 * (t - columns + 1), 0, down)


@shared
def diagonals(free: Any, rows: int, columns: int, limit: int) -> Any:
    """Lowest and highest diagonal, column minus row, that alignments within a limit pass through."""
    beyond = columns - rows
    starts_free = free.query_start or free.target_start
    ends_free = free.query_end or free.target_end
    if starts_free and ends_free:
        return -rows, columns
    if starts_free:
        return beyond - limit, beyond + limit
    if ends_free:
        return -limit, limit
    return -((limit - beyond) // 2), (limit + beyond) // 2


@shared
def _enter(lanes: Any, pair: Any, memory: Any, stripe: int, above: int, band: Any) -> bool:
    """Set the columns of a stripe, the steps above them, and the distance before them; whether it has any.

    `band` is the lowest and the highest diagonal, and the first stripe that has columns.
    """
    height = 64 * width_of(lanes)
    columns = pair.target.size
    row = stripe * height - above
    first = max(0, row + band[0])
    last = min(columns, row + height + band[1])
    if first >= last:
        return False
    spans, steps = memory.spans, memory.across[stripe]
    if stripe == band[2] > 0:
        # The rows above are left out.
        corner = first
        for c in range(first, last):
            steps[c - first] = 1
    elif stripe == 0:
        corner = 0 if pair.free.target_start else first
        for c in range(first, last):
            steps[c - first] = 0 if pair.free.target_start else 1
    else:
        before, end = spans[stripe - 1, 0], spans[stripe - 1, 1]
        corner = spans[stripe, 2]
        lower = memory.edge[width_of(lanes) - 1 :]
        for c in range(before, first):
            corner += int(lower[c - before])
        for c in range(first, last):
            steps[c - first] = lower[c - before] if c < end else 1
    spans[stripe, 0] = first
    spans[stripe, 1] = last
    spans[stripe, 2] = corner
    return True


@shared
def _begin_rows(lanes: Any, pair: Any, memory: Any, stripe: int, first: int) -> None:
    """Set how the rows of a stripe begin left of a column: with distances that rise, but at a free start."""
    rises = first > 0 or not pair.free.query_start
    for lane in range(width_of(lanes)):
        inside = memory.planes[stripe * PLANES + LETTER_BITS, lane]
        memory.state[0, lane] = inside if rises else 0
        memory.state[1, lane] = lane


@shared
def _leave(lanes: Any, pair: Any, memory: Any, stripe: int, above: int, best: Any) -> int:
    """Take what a stripe has of the last column or row; returns the least distance that an alignment has."""
    width = width_of(lanes)
    rows, columns = pair.rows, pair.target.size
    spans, free = memory.spans, pair.free
    first, last, corner = spans[stripe, 0], spans[stripe, 1], spans[stripe, 2]
    row = stripe * 64 * width - above
    end = row + 64 * width
    if last == columns and free.query_end:
        value = corner
        for c in range(last - first):
            value += int(memory.across[stripe, c])
        for r in range(max(-row, 0), 64 * width):
            at = 2 + 2 * (r // 64)
            value += (memory.state[at, r // 64] >> (r % 64)) & 1
            value -= (memory.state[at + 1, r // 64] >> (r % 64)) & 1
            offer(best, -value, row + r, columns - 1)
    value = corner + (end - max(row, 0) if first > 0 or not free.query_start else 0)
    spans[stripe + 1, 2] = value
    bound = not (free.query_end or free.target_end)
    least = value + (abs((columns - first) - (rows - end)) if bound else 0)
    for c in range(first, last):
        value += int(memory.edge[c - first + width - 1])
        least = min(least, value + (abs((columns - c - 1) - (rows - end)) if bound else 0))
        if end == rows and free.target_end:
            offer(best, -value, rows - 1, c)
    if end == rows and last == columns:
        offer(best, -value, rows - 1, columns - 1)
    return int(least)


@shared
def _within(lanes: Any, pair: Any, memory: Any, stripes: int, limit: int, keep: bool) -> int:
    """Sweep what alignments within a limit pass through.

    Returns 0, or a larger limit to try; ``memory.best`` is minus the distance, and where the alignment ends.
    """
    rows, columns = pair.rows, pair.target.size
    height = 64 * width_of(lanes)
    above = stripes * height - rows
    low, high = diagonals(pair.free, rows, columns, limit)
    best, free = memory.best, pair.free
    best[0] = -(rows + columns + 1)
    best[1] = rows
    best[2] = columns
    if free.query_end:
        offer(best, 0 if free.target_start else -columns, -1, columns - 1)
    if free.target_end:
        offer(best, 0 if free.query_start else -rows, rows - 1, -1)
    begin = 0
    for stripe in range(stripes):
        if not _enter(lanes, pair, memory, stripe, above, (low, high, begin)):
            if stripe == begin and free.query_start:
                begin += 1
            elif not free.query_end:
                return 2 * limit + 1
            continue
        first = memory.spans[stripe, 0]
        _begin_rows(lanes, pair, memory, stripe, first)
        _sweep_stripe(lanes, pair, memory, stripe, first, memory.spans[stripe, 1], keep)
        least = _leave(lanes, pair, memory, stripe, above, best)
        if least > limit and -best[0] > limit:
            # The rows so far say what all of them will need.
            done = (stripe + 1) * height - above
            return int(max(2 * limit + 1, 1, least * rows // done * 9 // 8))
    return 0 if -best[0] <= limit else 2 * limit + 1


class StripeWords(NamedTuple):
    """Choices of a stripe, of which `row` is the first row and `column` the first column kept."""

    row: Any
    column: Any

    @staticmethod
    def word_of(place: StripeWords, row: Any, column: Any) -> Any:
        lane = (row - place.row) // 64
        return 2 * (column - place.column + lane), lane


@by_type
def word_of(place: Any, row: Any, column: Any) -> Any:
    """Row and lane of the word with whether the diagonal is not best in a cell; the next has the steps."""


@shared
def walk_words(place: Any, bits: Any, top: int, first: int, cursor: Any, runs: Any) -> None:
    """Walk back through the rows from `top` and the columns from `first` on."""
    i, j = int(cursor[0]), int(cursor[1])
    length = 0
    while i >= top and j >= first:
        at, lane = word_of(place, i, j)
        bit = (i - place.row) % 64
        if not (bits[at, lane] >> bit) & 1:
            length += 1
            i -= 1
            j -= 1
            continue
        if length:
            write_run(runs, cursor, 0, length)
            length = 0
        if (bits[at + 1, lane] >> bit) & 1:
            write_run(runs, cursor, 1, 1)
            j -= 1
        else:
            write_run(runs, cursor, 2, 1)
            i -= 1
    if length:
        write_run(runs, cursor, 0, length)
    cursor[0] = i
    cursor[1] = j


@shared
def begin_walk(best: Any, cursor: Any) -> None:
    """Set the cursor of a walk to where an alignment ends."""
    cursor[0] = best[1]
    cursor[1] = best[2]
    cursor[2] = 0
    cursor[4] = 0


@shared
def _trace(lanes: Any, pair: Any, memory: Any, stripes: int, kept: bool) -> None:
    """Walk back from the end, stripe by stripe, each swept again unless its choices are `kept`."""
    height = 64 * width_of(lanes)
    above = stripes * height - pair.rows
    cursor, best, spans = memory.cursor, memory.best, memory.spans
    begin_walk(best, cursor)
    while cursor[0] >= 0 and cursor[1] >= 0:
        stripe = (cursor[0] + above) // height
        first, last = spans[stripe, 0], cursor[1] + 1
        if not kept:
            # No more columns than rows and distance together lie on the way up.
            first = max(first, last - height + best[0])
            _begin_rows(lanes, pair, memory, stripe, first)
            _sweep_stripe(lanes, pair, memory, stripe, first, last, True)
        place = StripeWords(stripe * height - above, first)
        walk_words(place, memory.bits, max(place.row, 0), first, cursor, memory.runs)
    close_at_border(pair.free.query_start, pair.free.target_start, cursor, memory.runs)


class SlidingWords(NamedTuple):
    """Choices of lanes that slide: the first of the `blocks` begins `before` its columns, at `row`."""

    row: Any
    before: Any
    blocks: Any
    width: Any

    @staticmethod
    def word_of(place: SlidingWords, row: Any, column: Any) -> Any:
        block = (row - place.row) // 64
        step = column + block
        latest = min((step + place.before) // 65, step, place.blocks - 1)
        return 0, step * place.width + block - max(latest + 1 - place.width, 0)


@shared
def _slide(lanes: Any, pair: Any, memory: Any, steps: Any, head: int, keep: bool) -> None:
    """Visit the columns ``step - head`` in the first lane, and one column less in every further one."""
    slide, kind, columns = memory.slide, pair.kind, pair.target.size
    width = width_of(lanes)
    p = EditColumns(splat(lanes, 1), splat(lanes, 63), splat(lanes, -1))
    up, down = load(lanes, slide, _UP, 0), load(lanes, slide, _DOWN, 0)
    more, less = load(lanes, slide, _MORE, 0), load(lanes, slide, _LESS, 0)
    missing = load(lanes, slide, _PLANES + LETTER_BITS, 0) ^ p.full
    for step in range(steps[0], steps[1]):
        letters = letters_at(kind, lanes, up, memory.reverse, _SLIDING + columns - 1 - step + head)
        apart = differ(kind, lanes, slide, _PLANES, letters) | missing
        more, less = shift_in(more, -1), shift_in(less, 0)
        up, down, more, less, aside, right = column(p, up, down, apart, more, less)
        if keep:
            store(lanes, memory.kept, 0, width * step, aside)
            store(lanes, memory.kept, 1, width * step, right)
    store(lanes, slide, _UP, 0, up)
    store(lanes, slide, _DOWN, 0, down)
    store(lanes, slide, _MORE, 0, more)
    store(lanes, slide, _LESS, 0, less)


@shared
def _begin_lane(lanes: Any, pair: Any, memory: Any, block: int, first: int) -> None:
    """Let the lane behind those that have begun begin with a row, or all slide and the last one begin."""
    slide, width = memory.slide, width_of(lanes)
    lane = min(block, width)
    fill_word(slide, _PLANES, lane, pair.query, pair.place, first, (memory.letters.shape[0], False))
    slide[_UP, lane] = slide[_PLANES + LETTER_BITS, lane]
    slide[_DOWN, lane] = slide[_MORE, lane] = slide[_LESS, lane] = 0
    if block >= width:
        for row in range(_PLANES + PLANES):
            store(lanes, slide, row, 0, load(lanes, slide, row, 1))


@shared
def _rise(slide: Any, lane: int) -> int:
    """How much larger the distance is below a lane than above it."""
    return int(population(slide[_UP, lane]) - population(slide[_DOWN, lane]))


@shared
def _look(slide: Any, lanes: int, top: int) -> Any:
    """The distance below the last of some lanes, and the least in any; it is `top` above the first."""
    value = least = top
    for lane in range(lanes):
        if value - population(slide[_DOWN, lane]) < least:
            inside = value
            for r in range(64):
                inside += ((slide[_UP, lane] >> r) & 1) - ((slide[_DOWN, lane] >> r) & 1)
                least = min(least, inside)
        value += _rise(slide, lane)
        if lane < lanes - 1:
            # The next lane is a column behind.
            value += slide[_MORE, lane] - slide[_LESS, lane]
    return int(value), int(least)


@shared
def _limit_of(width: int) -> int:
    """Distance up to which alignments with fixed ends pass through the diagonals that so many lanes hold."""
    return 65 * width - 64


@shared
def _slide_down(lanes: Any, pair: Any, most: int, keep: bool, memory: Any) -> int:
    """The distance of a pair with fixed ends if it is within `most` and `_limit_of` these lanes.

    Else more than the lower of them: what it is at the most, or about if that is seen on the way. With `keep`
    the alignment is walked along, too.
    """
    width = width_of(lanes)
    rows, columns, limit = pair.rows, pair.target.size, min(most, _limit_of(width))
    blocks = (rows - 1) // 64 + 1
    above = 64 * blocks - rows
    before = above - diagonals(pair.free, rows, columns, _limit_of(width))[0]
    step = top = 0
    for block in range(blocks):
        begin = max(block, 65 * block - before)
        _slide(lanes, pair, memory, (step, begin), max(block - width, 0), keep)
        top += begin - step
        step = begin
        # After as many rows as lanes hold, and then twice as many each time.
        if block >= width and block & (block - 1) == 0:
            least = _look(memory.slide, width, top)[1]
            likely = least * blocks // (block - width // 2)
            # An alignment may pass between two lanes, a column before.
            if least - 1 > limit or (limit < most and likely * 15 // 16 > limit):
                return int(max(limit + 1, likely * 9 // 8))
        if block >= width:
            # What was below the first lane is above the next one, which is a column behind.
            top += _rise(memory.slide, 0) + memory.slide[_MORE, 0] - memory.slide[_LESS, 0]
        _begin_lane(lanes, pair, memory, block, 64 * block - above)
    _slide(lanes, pair, memory, (step, columns + blocks - 1), max(blocks - width, 0), keep)
    top += columns + blocks - 1 - step
    distance = int(_look(memory.slide, min(blocks, width), top)[0])
    memory.best[0] = -distance
    memory.best[1] = rows - 1
    memory.best[2] = columns - 1
    if distance <= limit and keep:
        begin_walk(memory.best, memory.cursor)
        place = SlidingWords(-above, before, blocks, width)
        walk_words(place, memory.kept, 0, 0, memory.cursor, memory.runs)
        close_at_border(False, False, memory.cursor, memory.runs)
    return distance


@shared
def _by_sliding(pair: Any, most: int, keep: bool, memory: Any) -> Any:
    """Whether the distance of a pair is known, and it; else a limit to try."""
    rows, columns, free = pair.rows, pair.target.size, pair.free
    found = abs(columns - rows)
    fixed = not (free.query_start or free.query_end or free.target_start or free.target_end)
    words = columns + (rows - 1) // 64
    room = memory.kept.shape[1] if keep else 1 << 60
    if fixed and 16 * words <= room:
        for b in range(memory.letters.shape[0]):
            for j in range(columns):
                memory.reverse[b, _SLIDING + j] = -((int(pair.target[columns - 1 - j]) >> b) & 1)
        if found <= _limit_of(16):
            found = _slide_down(SixteenLanes(16), pair, most, keep, memory)
            if found <= most and found <= _limit_of(16):
                return True, found
            if most <= _limit_of(16):
                return True, -1
        if found <= _limit_of(32) and 32 * words <= room:
            found = _slide_down(ThirtyTwoLanes(32), pair, most, keep, memory)
            if found <= most and found <= _limit_of(32):
                return True, found
            if most <= _limit_of(32):
                return True, -1
        return False, found
    return False, found + _FIRST_LIMIT


@shared
def _edit_pair(lanes: Any, pair: Any, most: int, keep: bool, memory: Any) -> int:
    """The distance of a pair that is not empty, -1 if it is above `most`; its alignment with `keep`."""
    width = width_of(lanes)
    rows, columns = pair.rows, pair.target.size
    stripes = (rows - 1) // (64 * width) + 1
    known, limit = False, rows + columns
    if stripes > 1:
        known, limit = _by_sliding(pair, most, keep, memory)
    if known:
        return int(limit)
    bits = memory.letters.shape[0]
    for k in range(stripes * width):
        base, first = k // width * PLANES, 64 * (k - stripes * width) + rows
        how = bits, bool(pair.free.target_start)
        fill_word(memory.planes, base, k % width, pair.query, pair.place, first, how)
    _fill_columns(memory.letters, pair.target, bits)
    whole = stripes == 1 and 2 * (columns + width) <= memory.bits.shape[0]
    again = 1
    while again:
        limit = min(limit, most)
        again = _within(lanes, pair, memory, stripes, limit, keep and whole)
        if again and limit >= most:
            return -1
        limit = again
    if keep:
        _trace(lanes, pair, memory, stripes, whole)
    return -int(memory.best[0])


@shared
def edit_pairs(
    lanes: Any, task: Any, order: Any, first: int, last: int, keep: bool, memory: Any, results: Any
) -> int:
    """Distances of the pairs ``order[first:last]``, none empty, into ``results.scores``, and where they end.

    -1 where the distance is above the limit. With `keep` alignments too; returns the number of their runs.
    """
    written = 0
    for number in range(first, last):
        k = order[number]
        q0, q1 = task.query_starts[k], task.query_starts[k + 1]
        t0, t1 = task.target_starts[k], task.target_starts[k + 1]
        target = task.target[0, AHEAD + t0 : AHEAD + t1]
        pair = EditPair(task.query, q0, q1 - q0, target, task.free, task.kind)
        distance = _edit_pair(lanes, pair, task.limits[k], keep, memory)
        written += put_pair(k, distance, keep, memory, written, results)
    return written


@shared
def put_pair(pair: int, distance: int, keep: bool, memory: Any, written: int, results: Any) -> int:
    """Write what was found of a pair; returns the number of its runs."""
    best, cursor = memory.best, memory.cursor
    results.scores[pair] = distance
    results.ends[pair, 1] = best[1] + 1
    results.ends[pair, 3] = best[2] + 1
    if not keep or distance < 0:
        return 0
    results.ends[pair, 0] = cursor[0] + 1
    results.ends[pair, 2] = cursor[1] + 1
    results.run_counts[pair] = copy_runs(cursor, memory.runs, written, results.runs)
    return int(results.run_counts[pair])


class EditBatch(NamedTuple):
    """Pairs, none empty, and whether their alignments are wanted."""

    pairs: EditPairs
    keep: bool


def edit_bytes(rows: Any, columns: Any) -> Any:
    """Bytes that pairs of so many residues of query and target need at most."""
    width = host_lanes().width
    sliding = np.minimum(16 * _SLIDING * (columns + rows // 64 + 1), 16 * _MOST_KEPT)
    return (rows // (64 * width) + 2) * (columns + 1) + 16 * width * (columns + 2 * width) + sliding


def edit_batch(
    task: PairList, keep: bool, limits: NDArray[np.int64] | None = None, *, interpreted: bool = False
) -> EditBatch:
    """Pairs of `unit_costs`; `limits` are distances above which a pair is left, (n,)."""
    sides, size = [task.query, task.target], _most_code(task) + 1
    padded: list[Any] = []
    if size > 4:
        numbers, _, present = _numbered(*sides, interpreted=interpreted)
        if present > MOST_LETTERS:
            expected = f"{MOST_LETTERS} at the most"
            raise InvalidInput("texts", found=f"{present} different letters", expected=expected)
        if present <= 4 or size > MOST_LETTERS:
            padded, size = [own.base for own in numbers], present
    if limits is None:
        limits = np.diff(task.query_starts) + np.diff(task.target_starts)
    how = (TwoBits(), 2) if size <= 4 else (FiveBits(), LETTER_BITS)
    query, target = padded or [np.concatenate([np.zeros(AHEAD, np.uint8), own]) for own in sides]
    starts = task.query_starts, task.target_starts
    return EditBatch(
        EditPairs(query[None], starts[0], target[None], starts[1], limits, task.free, *how), keep
    )


def edit_memory(width: int, rows: int, columns: int, bits: int, keep: bool) -> EditMemory:
    """Memory for pairs of up to so many residues, in so many lanes and bits of letters."""
    stripes = (rows - 1) // (64 * width) + 1
    steps = 2 * (columns + width) if keep else 0
    # What is not used of it takes no memory.
    kept = min(_SLIDING * (columns + rows // 64 + 1), _MOST_KEPT) if keep and stripes > 1 else 0
    return EditMemory(
        lane_rows(stripes * PLANES, width, np.int64),
        np.zeros((bits, columns + width), np.int8),
        lane_rows(2 * width + 2, width, np.int64),
        np.empty((stripes + 1, columns + width), np.int8),
        np.zeros((stripes + 1, 3), np.int64),
        np.empty(columns + width, np.int8),
        lane_rows(steps, width, np.int64),
        lane_rows(_PLANES + PLANES, _SLIDING + 8, np.int64),
        np.zeros((bits, columns + 2 * _SLIDING), np.int8),
        lane_rows(kept // 4, 8, np.int64).reshape(2, kept),
        np.zeros((rows + columns + 2 if keep else 0, 2), np.int64),
        np.zeros(5, np.int64),
        np.zeros(3, np.int64),
    )


edit_pairs_kernel, number_kernel = kernel(edit_pairs), kernel(number_codes)
