"""32-bit scores of a query with many targets on a GPU: any scoring, any mode, any length."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.dp.pairs.gaps import AffineGap, LinearGap, cell, gaps
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.lang.algebras import MaxPlus, choice
from plait.lang.compile import shared
from plait.lang.warps import lane_index, shuffle, shuffle_up, shuffle_xor, synchronize_warp

#: Rows of a lane, rows of a warp, warps of a block of threads.
ROWS = 8
STRIPE = 32 * ROWS
WARPS = 4
#: Letters of a query at the most, and one more for the rows behind its end.
LETTERS = 32
#: Places of a row of scores: an odd number, so that lanes seldom read from the same bank.
WIDTH = 33
_TABLE = (LETTERS + 1) * WIDTH

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
    gap, alg = step
    if stripe > 0:
        return memory.h[warp, column], memory.f[warp, column]
    h = query.top[min(column + 1, query.top.size - 1)]
    return h, np.int32(gaps(gap, alg, h, alg.zero, alg.zero)[1])


@shared
def eight_cells(step: Any, table: Any, code: Any, states: Any, diagonal: Any, f: Any, best: Any) -> Any:
    """The rows of a lane in a column: what it hands down, and the best value."""
    gap, alg = step
    letters, h_column, e_column = states
    h = alg.zero
    for r in range(ROWS):
        h = np.int32(cell(gap, alg, diagonal, e_column[r], f, table[np.uint32(letters[r] + code)]))
        diagonal = h_column[r]
        h_column[r] = h
        e, f = gaps(gap, alg, h, e_column[r], f)
        e_column[r] = e
        f = np.int32(f)
        best = choice(alg, best, h)
    return h, f, best


@shared
def sweep_stripe(
    step: Any, query: Any, text: Any, table: Any, states: Any, memory: Any, place: Any, best: Any
) -> Any:
    """The columns of a target in one stripe of the query; the best value so far."""
    alg = step[1]
    codes, start, columns = text
    lane, warp, stripe = place
    row = np.int32(stripe * STRIPE + lane * ROWS)
    more = (stripe + 1) * STRIPE < query.letters.size
    diagonal_in = query.left_h[row]
    # Handed on from lane to lane, and 32 columns of what lane 0 is handed.
    h, f, code = np.int32(0), np.int32(0), np.int32(0)
    next_h, next_f, next_code = np.int32(0), np.int32(0), np.int32(0)
    for number in range(columns + 31):
        turn = np.int32(number & 31)
        if turn == 0 and number + lane < columns:
            next_code = np.int32(codes[start + number + lane])
            next_h, next_f = above(step, query, memory, warp, stripe, np.int32(number + lane))
        h, f, code = shuffle_up(h, 1), shuffle_up(f, 1), shuffle_up(code, 1)
        first_h, first_f, first_code = shuffle(next_h, turn), shuffle(next_f, turn), shuffle(next_code, turn)
        if lane == 0:
            h, f, code = first_h, first_f, first_code
        column = np.int32(number - lane)
        if column >= 0 and column < columns:
            diagonal = diagonal_in
            diagonal_in = h
            h, f, highest = eight_cells(step, table, code, states, diagonal, f, best)
            last = column == columns - 1
            if query.ends & _EVERYWHERE:
                best = highest
            elif last or query.ends & _LAST_ROW:
                for r in range(ROWS):
                    best = end_of(query, alg, best, states[1][r], row + r, last)
            if more and lane == 31:
                memory.h[warp, column] = h
                memory.f[warp, column] = f
    return best


@cuda_kernel()
def wide_scores(gap, alg, query, texts, chosen, memory, out):  # type: ignore[no-untyped-def]
    """Best scores of a query with chosen targets; ``out[k]`` is that of target ``chosen[k]``.

    Launched with up to `WARPS` warps a block and no more warps than `memory` has rows for. Targets are taken
    in the order of `chosen` by whatever warp is free, so the longest had better come first.
    """
    table = cuda.shared.array(_TABLE, np.int32)
    thread = np.int32(cuda.threadIdx.x)
    for k in range(thread, _TABLE, cuda.blockDim.x):
        table[k] = query.table[k]
    cuda.syncthreads()
    lane = np.int32(lane_index())
    warp = np.int32(cuda.blockIdx.x * WARPS + thread // 32)
    letters = cuda.local.array(ROWS, np.int32)
    h_column = cuda.local.array(ROWS, np.int32)
    e_column = cuda.local.array(ROWS, np.int32)
    states = (letters, h_column, e_column)
    item = np.int32(0)
    while item < chosen.size:
        if lane == 0:
            item = np.int32(cuda.atomic.add(memory.next, 0, 1))
        item = np.int32(shuffle(item, 0))
        if item < chosen.size:
            own = chosen[item]
            start = texts.starts[own]
            text = (texts.codes, start, np.int32(texts.starts[own + 1] - start))
            best = alg.zero
            for stripe in range(np.int32(query.letters.size // STRIPE)):
                for r in range(ROWS):
                    row = stripe * STRIPE + lane * ROWS + r
                    letters[r] = query.letters[row]
                    h_column[r] = query.left_h[row + 1]
                    e_column[r] = query.left_e[row]
                place = (lane, warp, stripe)
                best = sweep_stripe((gap, alg), query, text, table, states, memory, place, best)
                synchronize_warp()
            for distance in (16, 8, 4, 2, 1):
                best = choice(alg, best, shuffle_xor(best, distance))
            if lane == 0:
                out[item] = best


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
        self.algebra = MaxPlus(number(zero), number(0))
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
