"""The kernel for one very long pair: stripes of rows, each on a warp, that follow one another.

The rows of a stripe lie side by side in the registers of a warp, `ROWS` neighbouring ones in each thread. In
step ``t`` thread ``k`` visits column ``t - k`` of its rows; what it needs from above, thread ``k - 1`` had
one step before. The last row of a stripe goes through memory: ``row`` holds ``h`` and ``f`` of every column,
each stripe reads what the stripe above has written, and writes its own in its place. So the stripes of all
warps of a device run at the same time, one a little behind the other, without flags or barriers: every word
is marked with the stripe that wrote it, and is read until it has the mark that is waited for. Warps take
stripes in order from a counter, so that the stripe above always is under way or done, however few there are.

Values are 32-bit; the host has made sure that they fit (`plait.schedules.pair_setup.make_setup`). At the
columns and rows where tiles begin the values are kept, and for every tile its best value is found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import shared
from plait.algebras import MaxPlus, SaturatingMaxPlus
from plait.lanes.warps import ballot, lane_index, shuffle, shuffle_up, synchronize_warp
from plait.recurrences.gaps import AffineGap, LinearGap, cell, gaps
from plait.schedules.sweep_rules import Anywhere, AtEdges, watch
from plait.schedules.warp_stripes import (
    NarrowScores,
    Ragged,
    Whole,
    WideScores,
    all_bits_if_equal,
    blend,
    has_mark,
    high,
    is_last,
    last_lane,
    low,
    own_costs,
    pack,
    scores_in_word,
    to_send,
    two_scores,
    with_mark,
    without_mark,
)
from plait.targets.cuda import cuda, cuda_kernel
from plait.targets.cuda_long_words import read_word, write_word

__all__ = ["BLOCK", "ROWS", "Kept", "Shape", "Sides", "Task", "profile_bytes", "sweep_stripes"]

#: Neighbouring rows in each thread; an even number.
ROWS = 16
#: Columns after which a warp hands on what it has; a power of two, at least 32.
BLOCK = 32
_LETTERS = 2 * BLOCK
_BELOW = BLOCK + 32
_NOTHING = np.int32(-(2**31))
_LONG = np.dtype(np.int64)


class Task(NamedTuple):
    """What is aligned.

    Attributes
    ----------
    query
        Codes, uint8, padded to whole stripes with a code of its own.
    target
        Codes, uint8, with `BLOCK` more before them and after them.
    scores
        Scores of the target's codes with those of the query, int32.
    """

    query: Any
    target: Any
    scores: Any


class Sides(NamedTuple):
    """Values at the sides of the region: two numbers of 32 bits in each of 64, ``h`` the lower one.

    Attributes
    ----------
    row
        ``h`` and ``f`` above, marked with -1 (`plait.schedules.warp_stripes.with_mark`); changed to those
        of the last row, marked with the last stripe.
    left, right
        ``h`` and ``e`` at the left, padded as the query is, and at the right.
    """

    row: Any
    left: Any
    right: Any


class Kept(NamedTuple):
    """What is kept for the tiles.

    Attributes
    ----------
    rows
        ``h`` and ``f`` below the tiles, shape (tiles down - 1 or 0, columns).
    columns
        ``h`` and ``e`` right of the tiles, shape (tiles across - 1 or 0, rows).
    best
        Best value of every tile, int32, shape (tiles down, tiles across).
    """

    rows: Any
    columns: Any
    best: Any


class Shape(NamedTuple):
    """Numbers, int32.

    Attributes
    ----------
    rows, columns
        Of the region.
    tile_stripes, tile_columns
        Size of a tile.
    corner
        ``h`` above and left of the region.
    """

    rows: Any
    columns: Any
    tile_stripes: Any
    tile_columns: Any
    corner: Any


def profile_bytes(kind: Any, letters: int) -> int:
    """Bytes of dynamic shared memory for so many letters of the target."""
    return 8 * 32 * letters * _words(scores_in_word(kind))


@shared
def _words(per_word: int) -> int:
    return (ROWS + per_word - 1) // per_word


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

    `state` is h and e of the rows, and the best value; `entering` the column, diag of the first row, and f.
    """
    gap, algebras, ends, kind = step
    h, e, best = state
    column, diag, f = entering
    send_h, send_f = diag, f
    for k in range(ROWS // 2):
        s0, s1 = two_scores(kind, memory[0], place, k)
        e0, e1 = e[2 * k], e[2 * k + 1]
        h0 = cell(gap, algebras[0], diag, e0, f, s0)
        e0, f = gaps(gap, algebras[1], h0, e0, f)
        if is_last(extent, 2 * k):
            send_h, send_f = h0, f
        h1 = cell(gap, algebras[0], h[2 * k], e1, f, s1)
        e1, f = gaps(gap, algebras[1], h1, e1, f)
        if is_last(extent, 2 * k + 1):
            send_h, send_f = h1, f
        best, _ = watch(ends, best, column, h0, column)
        best, _ = watch(ends, best, column, h1, column)
        diag = h[2 * k + 1]
        h[2 * k], h[2 * k + 1] = h0, h1
        e[2 * k], e[2 * k + 1] = e0, e1
    return best, f, to_send(extent, (h[ROWS - 1], f), (send_h, send_f))


@shared
def _fetch(step: Any, task: Any, sides: Any, memory: Any, place: Any, mark: Any, ahead: Any) -> Any:
    """Bring the letter of a column, and what comes from above as soon as it is there, into shared memory.

    `ahead` is what was above the column a block ago; returns the same for the next block.
    """
    at, end, lane = place
    _, letters, above, _ = memory
    letter = np.int32(task.target[np.uint32(at + BLOCK)])
    letters[np.uint32(at) % np.uint32(_LETTERS)] = letter * np.int32(32 * _words(scores_in_word(step[3])))
    # All lanes wait together: those that leave a loop one by one would go on one by one, column after column.
    while ballot(at < end and not has_mark(ahead, mark)) != 0:
        ahead = read_word(sides.row, min(at, sides.row.size - 1))
    above[np.uint32(lane)] = without_mark(ahead)
    synchronize_warp()
    return read_word(sides.row, min(at + BLOCK, sides.row.size - 1))


@shared
def _hand_down(sides: Any, kept: Any, row: Any, below: Any, place: Any, mark: Any) -> None:
    """Write the last row of a column that the last thread has visited in this block."""
    start, j, columns = place
    synchronize_warp()
    if j >= 0 and j < columns:
        two = below[np.uint32(j) % np.uint32(BLOCK)]
        write_word(sides.row, start + j, with_mark(two, mark))
        if row >= 0:
            kept.rows[row, np.uint32(start + j)] = two
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
            best, out_f, sent = _visit_rows(extent, step, memory, words, (h, e, best), (at, above, f))
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
    for across in range(kept.best.shape[1]):
        start = np.int32(across * shape.tile_columns)
        columns: Any = np.int32(min(shape.tile_columns, shape.columns - start))
        state = (_NOTHING, above, out_h, out_f)
        ahead = read_word(sides.row, min(start + lane, sides.row.size - 1))
        for block in range(0, columns + 31, BLOCK):
            place = (np.int32(start + block + lane), np.int32(start + columns), lane)
            ahead = _fetch(step, task, sides, memory, place, stripe - 1, ahead)
            state = _visit_block(extent, step, memory, (start, columns, block), h, e, state, lane)
            place = (start, np.int32(block - own + lane), columns)
            _hand_down(sides, kept, row, memory[3], place, stripe)
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


def _examples() -> list[tuple[Any, ...]]:
    one = np.int32(1)
    bytes_, ints, longs = (np.zeros(1, kind) for kind in (np.uint8, np.int32, np.int64))
    task = Task(bytes_, bytes_, np.zeros((1, 1), np.int32))
    sides = Sides(longs, longs, longs)
    kept = Kept(np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int32))
    free = SaturatingMaxPlus(one, one)
    rest = (task, sides, kept, ints, Shape(one, one, one, one, one))
    local = (MaxPlus(one, one), free)
    affine, linear = AffineGap(ints, ints), LinearGap(ints)
    return [
        (affine, local, Anywhere(), WideScores(), *rest),
        (affine, (free, free), AtEdges(), NarrowScores(), *rest),
        (linear, (free, free), Anywhere(), WideScores(), *rest),
        (linear, local, AtEdges(), NarrowScores(), *rest),
    ]


@cuda_kernel(_examples)
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
    """Visit a region; any number of blocks of one warp.

    Parameters
    ----------
    gap
        `AffineGap` or `LinearGap`, of arrays with the cost for each lane, int32.
    algebras
        That of cells and that of gaps: for local alignment `MaxPlus` and `SaturatingMaxPlus`, otherwise twice
        the latter. What a gap hands on need not be held at 0, since no cell falls below it.
    ends
        `AtEdges`, or `Anywhere` for the best values of tiles.
    kind
        `WideScores` or `NarrowScores`.
    task, sides, kept, shape
        See there.
    following
        The next stripe that a warp takes: one number, int32.
    """
    profile = cuda.shared.array(0, _LONG)
    letters = cuda.shared.array(_LETTERS, np.int32)
    entering = cuda.shared.array(BLOCK, np.int64)
    below = cuda.shared.array(_BELOW, np.int64)
    memory = (profile, letters, entering, below)
    lane = np.int32(lane_index())
    step = (own_costs(gap, lane), algebras, ends, kind)
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
