"""32-bit scores of a query with many targets on a GPU: any scoring, any mode, any length."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.dp.pairs.gaps import AffineGap, LinearGap, gaps
from plait.dp.pairs.gpu_packed import WORD, WORD_TYPE, four_words, shared_place
from plait.dp.pairs.gpu_stripes import all_bits_if_equal, blend, costs_down, visit_cell
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.lang.algebras import MaxPlus, SaturatingMaxPlus, choice
from plait.lang.compile import shared
from plait.lang.warps import lane_index, shuffle_up, shuffle_xor, synchronize_warp

#: Rows of a lane, a multiple of four, rows of a warp, warps of a block, and blocks of a multiprocessor.
ROWS = 12
STRIPE = 32 * ROWS
WARPS = 8
BLOCKS = 3
#: Letters of a query at the most, and one more for the rows behind its end.
LETTERS = 32
#: Places of a row of scores: an odd number, so that lanes seldom read from the same bank.
WIDTH = 33
#: Bytes of dynamic shared memory of a block: scores of each code of a target with the rows of a stripe.
SHARED = 4 * WIDTH * STRIPE

# Where alignments end.
_EVERYWHERE, _LAST_COLUMN, _LAST_ROW = 1, 2, 4


class DeviceTexts(NamedTuple):
    """Targets on a device: uint8 `codes` in one array, int64 `starts` of each and the end of the last."""

    codes: Any
    starts: Any


class WideQuery(NamedTuple):
    """A query on a device; all int32.

    `letters` is where in `table` the row of each residue begins, up to the end of a stripe that of the last
    row. `table` has `LETTERS` + 1 rows of `WIDTH` scores, of query letters with codes of targets; those of
    the last row are so low that nothing goes on there. `top` is ``h`` above the first row, before the first
    column and at each one, or one number for all; `left_h` ``h`` before the first column, above the first row
    and at each one, one more than `letters`; `left_e` the ``e`` handed to it in each row; `last` the number
    of the last row. `ends` is where alignments may end besides the last cell: 1 in any; else the sum of 2,
    any row of the last column, and 4, any column of the last row.
    """

    letters: Any
    table: Any
    top: Any
    left_h: Any
    left_e: Any
    last: Any
    ends: Any


class WideMemory(NamedTuple):
    """Device memory of a launch, int32.

    `h` and `f` are the last row of a stripe and what it hands down, (warps, columns); `next`, (1,), is the
    number of the next target to take.
    """

    h: Any
    f: Any
    next: Any


@shared
def end_of(query: Any, alg: Any, best: Any, h: Any, row: Any, last_column: Any) -> Any:
    """The best end after a cell, for modes in which alignments do not end anywhere."""
    counts = row <= query.last and last_column and query.ends & _LAST_COLUMN
    counts = counts or (row == query.last and (last_column or query.ends & _LAST_ROW))
    return choice(alg, best, h) if counts else best


@shared
def above(step: Any, query: Any, memory: Any, warp: Any, stripe: Any, column: Any) -> Any:
    """``h`` and ``f`` of the row above a stripe: of the border, or of the last row of the stripe before."""
    (gap, _), (_, alg) = step
    if stripe > 0:
        return memory.h[np.uint32(warp), np.uint32(column)], memory.f[np.uint32(warp), np.uint32(column)]
    h = query.top[np.uint32(column + 1 if query.top.size > 1 else 0)]
    return h, np.int32(gaps(gap, alg, h, alg.zero, alg.zero)[1])


@shared
def cells_of(step: Any, profile: Any, place: Any, states: Any, diagonal: Any, f: Any, best: Any) -> Any:
    """The rows of a lane in a column: what it hands down, and the best value."""
    costs, algebras = step
    h_column, e_column = states
    h = diagonal
    for group in range(ROWS // 4):
        scores = four_words(profile, np.uint32(place + np.uint32(128 * WORD * group)))
        for k in range(4):
            r = 4 * group + k
            h, e, f = visit_cell(costs, algebras, diagonal, e_column[r], f, scores[k])
            h, f = np.int32(h), np.int32(f)
            diagonal = h_column[r]
            h_column[r] = h
            e_column[r] = e
            best = choice(algebras[1], best, h)
    return h, f, best


@shared
def fill_profile(query: Any, stripe: Any, profile: Any) -> None:
    """Scores of each code of a target with the rows of a stripe, four rows of each lane side by side."""
    cuda.syncthreads()
    for k in range(np.int32(cuda.threadIdx.x), WIDTH * STRIPE, cuda.blockDim.x):
        code, rest = k // STRIPE, k % STRIPE
        row = rest // 4 % 32 * ROWS + rest // 128 * 4 + rest % 4
        profile[k] = query.table[query.letters[stripe * STRIPE + row] + code]
    cuda.syncthreads()


@shared
def sweep_stripe(
    step: Any, query: Any, text: Any, profile: Any, states: Any, memory: Any, place: Any, best: Any
) -> Any:
    """The columns of a target in one stripe of the query; the best value so far."""
    codes, start, columns = text
    lane, warp, stripe = place
    row = np.int32(stripe * STRIPE + lane * ROWS)
    more = (stripe + 1) * STRIPE < query.letters.size
    # Else there is the same above all columns.
    changing = stripe > 0 or query.top.size > 1
    own = np.uint32(shared_place(profile) + np.uint32(4 * WORD) * np.uint32(lane))
    diagonal_in = query.left_h[row]
    h, f = np.int32(0), np.int32(0)
    top = all_bits_if_equal(lane, 0)
    # Of the next column: what lane 0 is handed, and the code.
    ahead = above(step, query, memory, warp, stripe, np.int32(0))
    code = np.uint32(codes[np.uint64(start)])
    column = np.int32(-lane)
    for _ in range(columns + 31):
        h, f = blend(top, ahead[0], shuffle_up(h, 1)), blend(top, ahead[1], shuffle_up(f, 1))
        here = np.uint32(own + code * np.uint32(STRIPE * WORD))
        following = np.int32(column + 1)
        if np.uint32(following) < np.uint32(columns):
            code = np.uint32(codes[np.uint64(start + following)])
            if changing:
                ahead = above(step, query, memory, warp, stripe, following)
        if np.uint32(column) < np.uint32(columns):
            diagonal = diagonal_in
            diagonal_in = h
            h, f, highest = cells_of(step, profile, here, states, diagonal, f, best)
            last = following == columns
            if query.ends & _EVERYWHERE:
                best = highest
            elif last or query.ends & _LAST_ROW:
                for r in range(ROWS):
                    best = end_of(query, step[1][1], best, states[0][r], row + r, last)
            if more and lane == 31:
                memory.h[np.uint32(warp), np.uint32(column)] = h
                memory.f[np.uint32(warp), np.uint32(column)] = f
        column = following
    return best


@shared
def take_batch(memory: Any, taken: Any) -> Any:
    """The next targets, for all warps of a block."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        taken[0] = cuda.atomic.add(memory.next, 0, 1)
    cuda.syncthreads()
    return np.int32(taken[0])


@cuda_kernel(launch_bounds=(32 * WARPS, BLOCKS))
def wide_scores(gap, algebras, query, texts, chosen, memory, out):  # type: ignore[no-untyped-def]
    """Best scores of a query with chosen targets; ``out[k]`` is that of target ``chosen[k]``.

    `algebras` are as for `plait.dp.pairs.gpu_stripes.visit_cell`. Launched with up to `WARPS` warps a block
    and no more warps than `memory` has rows for. Blocks take as many targets as they have warps, in the order
    of `chosen`, so the longest had better come first, and go through the stripes of the query together.
    """
    profile = cuda.shared.array(0, WORD_TYPE)
    taken = cuda.shared.array(1, np.int32)
    lane = np.int32(lane_index())
    warps = np.int32(cuda.blockDim.x // 32)
    own = np.int32(cuda.threadIdx.x // 32)
    states = (cuda.local.array(ROWS, np.int32), cuda.local.array(ROWS, np.int32))
    step = ((gap, costs_down(gap)), algebras)
    filled = np.int32(-1)
    batch = take_batch(memory, taken)
    while batch * warps < chosen.size:
        item = np.int32(batch * warps + own)
        best = algebras[1].zero
        for stripe in range(np.int32(query.letters.size // STRIPE)):
            if stripe != filled:
                fill_profile(query, stripe, profile)
                filled = np.int32(stripe)
            if item < chosen.size:
                target = chosen[item]
                start = texts.starts[target]
                text = (texts.codes, start, np.int32(texts.starts[target + 1] - start))
                for r in range(ROWS):
                    row = stripe * STRIPE + lane * ROWS + r
                    states[0][r] = query.left_h[row + 1]
                    states[1][r] = query.left_e[row]
                place = (lane, np.int32(cuda.blockIdx.x * WARPS + own), stripe)
                best = sweep_stripe(step, query, text, profile, states, memory, place, best)
                synchronize_warp()
        for distance in (16, 8, 4, 2, 1):
            best = choice(algebras[1], best, shuffle_xor(best, distance))
        if lane == 0 and item < chosen.size:
            out[item] = best
        batch = take_batch(memory, taken)


#: Scores that nothing comes back from. Two of them can be added.
_LOW: Final = -(1 << 30)


class WideSetup:
    """Arguments of the kernel that do not depend on the targets, for targets of up to `longest` residues.

    Arrays of `query` are the host's; `stripes` are those of the query.
    """

    def __init__(self, query: BlockQuery, longest: int) -> None:
        number = np.int32
        free, rows = query.free, query.rows.size
        self.gap: Any = AffineGap(number(-query.gap_open), number(-query.gap_extend))
        if query.gap_open == query.gap_extend:
            self.gap = LinearGap(number(-query.gap_open))
        zero = 0 if free.local else _LOW
        # What a gap hands on need not be held at 0, since no cell falls below it.
        free_gaps = SaturatingMaxPlus(number(zero), number(0))
        self.algebras: Any = (MaxPlus(number(zero), number(0)) if free.local else free_gaps, free_gaps)
        self.stripes = -(-rows // STRIPE)
        padded = self.stripes * STRIPE
        letters = np.full(padded, LETTERS * WIDTH, np.int32)
        letters[:rows] = query.rows * WIDTH
        table = np.full((LETTERS + 1, WIDTH), _LOW, np.int32)
        table[: query.scores.shape[0], : query.scores.shape[1]] = query.scores
        left = np.full(padded + 1, zero, np.int64)
        left[0] = 0
        left[1 : rows + 1] = _side(query, rows, bool(free.query_start))
        top = np.zeros(1, np.int64)
        if not (free.local or free.target_start):
            top = np.concatenate([top, _side(query, longest, False)])
        opened = np.maximum(left[1:] - query.gap_open, zero)
        ends = 1 if free.anywhere else (2 if free.query_end else 0) + (4 if free.target_end else 0)
        self.query = WideQuery(
            letters,
            table.ravel(),
            top.astype(np.int32),
            left.astype(np.int32),
            opened.astype(np.int32),
            number(rows - 1),
            number(ends),
        )


def _side(query: BlockQuery, size: int, is_free: bool) -> NDArray[np.int64]:
    if is_free or query.free.local:
        return np.zeros(size, np.int64)
    return -(query.gap_open + query.gap_extend * np.arange(size, dtype=np.int64))


def wide_serves(query: BlockQuery, longest: int) -> bool:
    """Whether the numbers of the kernel of 32-bit scores can hold what is needed.

    `longest` is the longest target's residues.
    """
    letters, codes = query.scores.shape
    low, high = int(query.scores.min(initial=0)), int(query.scores.max(initial=0))
    rows = query.rows.size
    if letters > LETTERS or codes > WIDTH or max(-low, high, query.gap_open, query.gap_extend) >= -_LOW:
        return False
    if high * min(rows, longest) >= np.iinfo(np.int32).max:
        return False
    least = -(3 * query.gap_open + query.gap_extend * (rows + longest)) + low
    return bool(query.free.local) or least > _LOW
