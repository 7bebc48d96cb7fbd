"""One very long pair on warps: stripes of rows that follow one another through the matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.devices.cuda import SIMULATED, cuda, cuda_kernel
from plait.dp.pairs.gaps import AffineGap, LinearGap, cell, gaps
from plait.lang import compile as _jit
from plait.lang.algebras import choice
from plait.lang.compile import by_type, by_type_of, shared
from plait.lang.lanes import maximum
from plait.lang.warps import ballot, lane_index, shuffle, shuffle_up, synchronize_warp

#: Costs up to which marks leave room for what goes on in a gap.
MOST_COST = 1 << 15


@shared
def pack(lower: Any, upper: Any) -> Any:
    """Two numbers of 32 bits in one of 64."""
    return (np.int64(upper) << np.int64(32)) | (np.int64(lower) & np.int64(0xFFFFFFFF))


@shared
def low(two: Any) -> Any:
    """The lower number."""
    return np.int32((two << np.int64(32)) >> np.int64(32))


@shared
def high(two: Any) -> Any:
    """The upper number."""
    return np.int32(two >> np.int64(32))


@shared
def with_mark(two: Any, mark: Any) -> Any:
    """``h`` and ``f`` with the mark of a stripe.

    What goes on in a gap is at most ``h``, and less by no more than two gaps cost. So 18 bits hold the
    difference (`MOST_COST`), and the other 14 bits the number of the stripe. All stripes that are under way
    at a time must have different marks, lest one takes what an earlier one wrote for what it waits for.
    """
    h = low(two)
    return pack(h, np.int32(np.int32(np.int32(high(two) - h) & 0x3FFFF) | (np.int32(mark & 0x3FFF) << 18)))


@shared
def without_mark(marked: Any) -> Any:
    """``h`` and ``f``."""
    h = low(marked)
    return pack(h, np.int32(h + np.int32((marked << np.int64(14)) >> np.int64(46))))


@shared
def has_mark(marked: Any, mark: Any) -> Any:
    """Whether the mark is that of a stripe."""
    return ((marked >> np.int64(50)) ^ np.int64(mark)) & np.int64(0x3FFF) == 0


@shared
def all_bits_if_equal(a: Any, b: Any) -> Any:
    """-1 if two numbers from 0 to 31 are equal, else 0; see `blend`."""
    return np.int32(np.int32((np.int32(a) ^ np.int32(b)) - np.int32(1)) >> np.int32(31))


@shared
def blend(mask: Any, a: Any, b: Any) -> Any:
    """`a` where all bits of the mask are set, `b` where none is.

    For threads of a warp that do different things in a loop: with a condition the compiler makes two loops of
    it, one for each of its values, and the warp runs one after the other.
    """
    return np.int32((a & mask) | (b & ~mask))


class AtEdges(NamedTuple):
    """An alignment ends at the edge of the matrix, where its value is found in the edges."""

    @staticmethod
    def watch(ends: AtEdges, best: Any, h: Any) -> Any:
        return best


class Anywhere(NamedTuple):
    """An alignment may end in any cell: keep the best value."""

    @staticmethod
    def watch(ends: Anywhere, best: Any, h: Any) -> Any:
        return maximum(best, h)


@by_type
def watch(ends: Any, best: Any, h: Any) -> Any:
    """The best value of a tile, after a cell."""


class WideScores(NamedTuple):
    """Scores of 32 bits, two in a word: nothing to do but to load them."""

    @staticmethod
    def scores_in_word(kind: WideScores) -> Any:
        return 2

    @staticmethod
    def two_scores(kind: WideScores, words: Any, place: Any, k: Any) -> Any:
        word = words[place + np.uint32(32 * k)]
        return low(word), high(word)


class NarrowScores(NamedTuple):
    """Scores of 8 bits, eight in a word, for alphabets of many letters."""

    @staticmethod
    def scores_in_word(kind: NarrowScores) -> Any:
        return 8

    @staticmethod
    def two_scores(kind: NarrowScores, words: Any, place: Any, k: Any) -> Any:
        word = words[place + np.uint32(32 * (k // 4))]
        first = np.int64(56 - 16 * (k % 4))
        one = np.int32((word << first) >> np.int64(56))
        return one, np.int32((word << (first - np.int64(8))) >> np.int64(56))


@by_type
def scores_in_word(kind: Any) -> Any:
    """Scores of neighbouring rows in a word of 64 bits."""


@by_type
def two_scores(kind: Any, words: Any, place: Any, k: Any) -> Any:
    """Scores of rows 2 k and 2 k + 1 of the thread and letter whose words begin at `place`."""


class Whole(NamedTuple):
    """A stripe of which all rows exist."""

    @staticmethod
    def is_last(extent: Whole, r: Any) -> Any:
        return False

    @staticmethod
    def to_send(extent: Whole, last: Any, other: Any) -> Any:
        return last

    @staticmethod
    def last_lane(extent: Whole) -> Any:
        return np.int32(31)


class Ragged(NamedTuple):
    """A stripe that ends in row `row` of thread `lane`."""

    lane: Any
    row: Any

    @staticmethod
    def is_last(extent: Ragged, r: Any) -> Any:
        return r == extent.row

    @staticmethod
    def to_send(extent: Ragged, last: Any, other: Any) -> Any:
        return other

    @staticmethod
    def last_lane(extent: Ragged) -> Any:
        return extent.lane


@by_type
def is_last(extent: Any, r: Any) -> Any:
    """Whether a row of the last thread is the stripe's last one, other than its own last row."""


@by_type
def to_send(extent: Any, last: Any, other: Any) -> Any:
    """What is handed down: of the thread's own last row, or of the row that `is_last` named."""


@by_type
def last_lane(extent: Any) -> Any:
    """The thread with the stripe's last row."""


@shared
def _affine_down(gap: Any) -> Any:
    return AffineGap(gap.open, maximum(gap.open, gap.prolong))


@shared
def _linear_down(gap: Any) -> Any:
    return AffineGap(gap.prolong, gap.prolong)


#: The costs of gaps that go down, see `visit_cell`.
costs_down = by_type_of({AffineGap: _affine_down, LinearGap: _linear_down})


@shared
def visit_cell(costs: Any, algebras: Any, diag: Any, e: Any, f: Any, score: Any) -> Any:
    """``h`` of a cell, and what goes on to the right and down.

    `costs` are those of gaps, and `costs_down` of them; `algebras` one whose zero no cell falls below, and
    that of sums. To open a gap from ``f`` is no better than to go on with it at the lesser cost. So what goes
    down comes of ``f`` and of the cell without it, and the cell below waits for one operation, not for three.
    """
    gap, down = costs
    floor, sums = algebras
    other = cell(gap, sums, diag, e, e, score)
    h = choice(sums, choice(sums, other, f), floor.zero)
    return h, gaps(gap, sums, h, e, f)[0], gaps(down, sums, other, f, f)[1]


@shared
def _affine(gap: Any, lane: Any) -> Any:
    return AffineGap(gap.open[np.uint32(lane)], gap.prolong[np.uint32(lane)])


@shared
def _linear(gap: Any, lane: Any) -> Any:
    return LinearGap(gap.prolong[np.uint32(lane)])


#: The costs of this lane. All are the same, but if the compiler knew, it would add them in the unit that also
#: finds maxima, which is the busy one.
own_costs = by_type_of({AffineGap: _affine, LinearGap: _linear})


def read_word(words: Any, at: Any) -> Any:
    """A word of an array, int64, as it is in memory now."""
    return words[at]


def write_word(words: Any, at: Any, value: Any) -> None:
    """Change a word of an array, int64."""
    words[at] = value


def write_far(words: Any, at: Any, value: Any) -> None:
    """The same, where another device reads it."""
    words[at] = value


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    return builder.ptrtoint(builder.gep(view.data, [at]), _jit.ir.IntType(64))


def _loading() -> Any:
    word = _jit.ir.IntType(64)

    def load(typing_context: Any, words: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], *args)
            kind = _jit.ir.FunctionType(word, [word])
            return builder.asm(kind, "ld.relaxed.sys.b64 $0,[$1];", "=l,l", [address], True)

        return _jit.types.int64(words, _jit.types.int64), generate

    return _jit.intrinsic(load)


def _storing(scope: str) -> Any:
    word = _jit.ir.IntType(64)

    def store(typing_context: Any, words: Any, at: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], *args[:2])
            kind = _jit.ir.FunctionType(_jit.ir.VoidType(), [word, word])
            builder.asm(kind, f"st.relaxed.{scope}.b64 [$0],$1;", "l,l", [address, args[2]], True)
            return context.get_dummy_value()

        return _jit.types.void(words, _jit.types.int64, _jit.types.int64), generate

    return _jit.intrinsic(store)


if not SIMULATED:
    _load, _store, _store_far = _loading(), _storing("gpu"), _storing("sys")
    _jit.specialise(read_word, lambda words, at: lambda words, at: _load(words, at), target="cuda")
    _jit.specialise(
        write_word, lambda words, at, value: lambda words, at, value: _store(words, at, value), target="cuda"
    )
    _jit.specialise(
        write_far,
        lambda words, at, value: lambda words, at, value: _store_far(words, at, value),
        target="cuda",
    )


#: Neighbouring rows in each thread; an even number. With more of them a column is prepared for more cells.
ROWS = 24
#: Columns after which a warp hands on what it has; a power of two, at least 32.
BLOCK = 32
_LETTERS = 2 * BLOCK
_BELOW = BLOCK + 32
_RING_WORDS = _LETTERS + BLOCK + _BELOW
_NOTHING = np.int32(-(2**31))
_LONG = np.dtype(np.int64)


class Task(NamedTuple):
    """What is aligned: uint8 codes, int32 scores of the target's codes with those of the query.

    `query` is padded to whole stripes with a code of its own, `target` has `BLOCK` codes more before and
    after.
    """

    query: Any
    target: Any
    scores: Any


class Sides(NamedTuple):
    """Values at the sides of the region: two numbers of 32 bits in each of 64, ``h`` the lower one.

    `above` is ``h`` and ``f`` above, marked with -1 (`with_mark`) as soon as they are there. `row` is for
    those between stripes, all marked with -1 before, and becomes that of the last row, marked with the last
    stripe; the same as `above` if that is there from the beginning. `below` is the last row again, marked
    with -1 for another launch, or empty. `left` and `right` are ``h`` and ``e``; `left` is padded as the
    query is.
    """

    above: Any
    row: Any
    below: Any
    left: Any
    right: Any


class Kept(NamedTuple):
    """What is kept for the tiles.

    `rows` is ``h`` and ``f`` below them, (tiles down - 1 or 0, columns); `columns` ``h`` and ``e`` right of
    them, (tiles across - 1 or 0, rows); `best` the best value of each, int32, (tiles down, tiles across).
    """

    rows: Any
    columns: Any
    best: Any


class Shape(NamedTuple):
    """Size of the region and of a tile, int32; `corner` is ``h`` above and left of the region."""

    rows: Any
    columns: Any
    tile_stripes: Any
    tile_columns: Any
    corner: Any


def warp_bytes(kind: Any, letters: int) -> int:
    """Bytes of dynamic shared memory of a warp for so many letters of the target."""
    return 8 * (int(_profile_words(kind, letters)) + _RING_WORDS)


@shared
def _words(per_word: int) -> int:
    return (ROWS + per_word - 1) // per_word


@shared
def _profile_words(kind: Any, letters: Any) -> Any:
    return 32 * letters * _words(scores_in_word(kind))


@shared
def _fill_profile(kind: Any, task: Any, stripe: Any, lane: Any, profile: Any) -> None:
    """Scores of each letter of the target with the rows of this thread, several in a word."""
    first = (stripe * 32 + lane) * ROWS
    per_word = scores_in_word(kind)
    words, bits = _words(per_word), 64 // per_word
    for letter in range(task.scores.shape[0]):
        for k in range(words):
            word = np.int64(0)
            for r in range(min(per_word, ROWS)):
                score = np.int64(task.scores[letter, task.query[first + k * per_word + r]])
                kept = score & ((np.int64(1) << np.int64(bits)) - np.int64(1))
                word |= kept << np.int64(bits * r)
            profile[(letter * words + k) * 32 + lane] = word


@shared
def _visit_rows(extent: Any, step: Any, memory: Any, place: Any, state: Any, entering: Any) -> Any:
    """Visit a column in the rows of this thread, from top to bottom.

    `state` is h and e of the rows, and the best value; `entering` diag of the first row, and f.
    """
    costs, algebras, ends, kind = step
    h, e, best = state
    diag, f = entering
    send_h, send_f = diag, f
    for k in range(ROWS // 2):
        s0, s1 = two_scores(kind, memory[0], place, k)
        h0, e0, f = visit_cell(costs, algebras, diag, e[2 * k], f, s0)
        if is_last(extent, 2 * k):
            send_h, send_f = h0, f
        h1, e1, f = visit_cell(costs, algebras, h[2 * k], e[2 * k + 1], f, s1)
        if is_last(extent, 2 * k + 1):
            send_h, send_f = h1, f
        best = watch(ends, watch(ends, best, h0), h1)
        diag = h[2 * k + 1]
        h[2 * k], h[2 * k + 1] = h0, h1
        e[2 * k], e[2 * k + 1] = e0, e1
    return best, f, to_send(extent, (h[ROWS - 1], f), (send_h, send_f))


@shared
def _fetch(step: Any, task: Any, row: Any, memory: Any, place: Any, mark: Any, ahead: Any) -> Any:
    """Bring the letter of a column, and what comes from above as soon as it is there, into shared memory.

    `ahead` is what was above the column a block ago; returns the same for the next block.
    """
    at, end, lane = place
    _, letters, above, _ = memory
    letter = np.int32(task.target[np.uint32(at + BLOCK)])
    letters[np.uint32(at) % np.uint32(_LETTERS)] = np.int64(letter * 32 * _words(scores_in_word(step[3])))
    # All lanes wait together: those that leave a loop one by one would go on one by one, column after column.
    while ballot(at < end and not has_mark(ahead, mark)) != 0:
        ahead = read_word(row, min(at, row.size - 1))
    above[np.uint32(lane)] = without_mark(ahead)
    synchronize_warp()
    return read_word(row, min(at + BLOCK, row.size - 1))


@shared
def _hand_down(sides: Any, kept: Any, rows: Any, below: Any, place: Any, mark: Any) -> None:
    """Write the last row of a column that the last thread has visited in this block.

    `rows` is which of those that are kept it is, or -1, and whether it is the last of all.
    """
    start, j, columns = place
    row, last = rows
    synchronize_warp()
    if j >= 0 and j < columns:
        two = below[np.uint32(j) % np.uint32(BLOCK)]
        write_word(sides.row, start + j, with_mark(two, mark))
        if row >= 0:
            kept.rows[row, np.uint32(start + j)] = two
        if last and start + j < sides.below.size:
            write_far(sides.below, start + j, with_mark(two, -1))
    synchronize_warp()


@shared
def _visit_block(
    extent: Any, step: Any, memory: Any, place: Any, h: Any, e: Any, state: Any, lane: Any
) -> Any:
    """`BLOCK` steps; only threads of which the column is in the tile do anything.

    `state` is the best value, the ``h`` above, and ``h`` and ``f`` of the thread's last row.
    """
    start, columns, block = place
    best, above, out_h, out_f = state
    top = all_bits_if_equal(lane, 0)
    own = all_bits_if_equal(lane, last_lane(extent))
    u = np.int32(0)
    while u < BLOCK:
        two = memory[2][np.uint32(u)]
        up = blend(top, low(two), shuffle_up(out_h, 1))
        f = blend(top, high(two), shuffle_up(out_f, 1))
        j = np.int32(block + u - lane)
        u = np.int32(u + 1)
        if np.uint32(j) < np.uint32(columns):
            at = np.uint32(start + j)
            words = np.uint32(memory[1][at % np.uint32(_LETTERS)] + lane)
            best, out_f, sent = _visit_rows(extent, step, memory, words, (h, e, best), (above, f))
            above = up
            out_h = h[ROWS - 1]
            # Only the last thread's is read; the others write elsewhere, since that needs no branch.
            slot = blend(own, np.int32(j & np.int32(BLOCK - 1)), np.int32(lane + BLOCK))
            memory[3][np.uint32(slot)] = pack(sent[0], sent[1])
    return best, above, out_h, out_f


@shared
def _march(
    extent: Any, step: Any, task: Any, sides: Any, kept: Any, shape: Any, stripe: Any, memory: Any
) -> None:
    """Visit all columns of a stripe, tile by tile; in between all threads have the same column."""
    lane = np.int32(lane_index())
    first = np.int32((stripe * 32 + lane) * ROWS)
    h = cuda.local.array(ROWS, np.int32)
    e = cuda.local.array(ROWS, np.int32)
    for r in range(ROWS):
        two = sides.left[np.uint32(first + r)]
        h[r], e[r] = low(two), high(two)
    above = np.int32(shape.corner) if first == 0 else low(sides.left[np.uint32(first - 1)])
    out_h, out_f = np.int32(0), np.int32(0)
    own = last_lane(extent)
    down = np.int32(stripe // shape.tile_stripes)
    row = np.int32(-1)
    if (stripe + 1) % shape.tile_stripes == 0 and down < kept.rows.shape[0]:
        row = down
    rows = (row, np.int32((stripe + 1) * 32 * ROWS) >= shape.rows)
    source = sides.above if stripe == 0 else sides.row
    for across in range(kept.best.shape[1]):
        start = np.int32(across * shape.tile_columns)
        columns: Any = np.int32(min(shape.tile_columns, shape.columns - start))
        state = (_NOTHING, above, out_h, out_f)
        ahead = read_word(source, min(start + lane, source.size - 1))
        for block in range(0, columns + 31, BLOCK):
            place = (np.int32(start + block + lane), np.int32(start + columns), lane)
            ahead = _fetch(step, task, source, memory, place, stripe - 1, ahead)
            state = _visit_block(extent, step, memory, (start, columns, block), h, e, state, lane)
            place = (start, np.int32(block - own + lane), columns)
            _hand_down(sides, kept, rows, memory[3], place, stripe)
        best, above, out_h, out_f = state
        cuda.atomic.max(kept.best, (down, np.int32(across)), best)
        if across < kept.columns.shape[0]:
            for r in range(ROWS):
                kept.columns[across, np.uint32(first + r)] = pack(h[r], e[r])
    for r in range(ROWS):
        sides.right[np.uint32(first + r)] = pack(h[r], e[r])


@shared
def _take(following: Any, lane: Any) -> Any:
    stripe = np.int32(0)
    if lane == 0:
        stripe = np.int32(cuda.atomic.add(following, 0, np.int32(1)))
    return np.int32(shuffle(stripe, 0))


@cuda_kernel()
def sweep_stripes(
    gap: Any,
    algebras: Any,
    ends: Any,
    kind: Any,
    task: Any,
    sides: Any,
    kept: Any,
    following: Any,
    shape: Any,
) -> None:
    """Visit a region; any number of blocks of any number of warps, with `warp_bytes` of shared memory each.

    `gap` has arrays with the cost for each lane, int32. `algebras` are as for `visit_cell`: what a gap hands
    on need not be held at the zero, since no cell falls below it. `ends` is `AtEdges`, or `Anywhere` for the
    best values of tiles; `kind` `WideScores` or `NarrowScores`; `following` one int32, the next stripe that a
    warp takes.
    """
    words = cuda.shared.array(0, _LONG)
    size = _profile_words(kind, task.scores.shape[0])
    letters = np.int32(cuda.threadIdx.x) // np.int32(32) * (size + _RING_WORDS) + size
    entering, below = letters + _LETTERS, letters + _LETTERS + BLOCK
    profile = words[letters - size : letters]
    memory = (profile, words[letters:entering], words[entering:below], words[below : below + _BELOW])
    lane = np.int32(lane_index())
    own = own_costs(gap, lane)
    step = ((own, costs_down(own)), algebras, ends, kind)
    height = np.int32(ROWS * 32)
    stripe = _take(following, lane)
    while stripe * height < shape.rows:
        _fill_profile(kind, task, stripe, lane, profile)
        synchronize_warp()
        rows = np.int32(shape.rows - stripe * height)
        if rows >= height:
            _march(Whole(), step, task, sides, kept, shape, stripe, memory)
        else:
            extent = Ragged(np.int32((rows - 1) // ROWS), np.int32((rows - 1) % ROWS))
            _march(extent, step, task, sides, kept, shape, stripe, memory)
        stripe = _take(following, lane)
