"""How a group of threads goes through the columns of two targets, in packed lanes.

Every thread has some rows of the query. It is one column behind the thread above it, from which it is handed
what its first row needs. What a row will need of its neighbours in the next column, the diagonal value with
the score added, is computed as soon as this column has it (``next_u``): so no value is moved from one
register to another, and loads of scores have time.

Additions of scores wait for nobody, so the assembler would leave them all to the end of a column, where
threads stand in line for the unit that adds while the other one idles. `costs_after` keeps them in their
places: the costs of gaps that the next rows use are computed from a sum of the rows before, times zero.

Scores of the query stand in shared memory as half-precision numbers, for each letter in chunks of eight rows
for every thread of a group: whatever letters they look up, neighbouring threads read from different banks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import by_type, shared
from plait.algebras import SaturatingMaxPlus, choice, extend
from plait.lanes.packed import AddedBefore, HalfPair, HighScores, IntegerStep, LowScores
from plait.lanes.warps import shuffle_up
from plait.recurrences.gaps import AffineGap, cell, gaps
from plait.targets.cuda_packed_instructions import WORD, four_words, shared_place, two_letters

__all__ = ["LETTERS", "PADDING_LETTER", "ROWS", "Costs", "Edge", "NoEdge", "sweep"]

#: The letter of padding, the one after those of sequences.
PADDING_LETTER = 32
#: Letters of the profile, padding included.
LETTERS = 33
#: Most rows of a thread, for which there are registers.
ROWS = 44


class Costs(NamedTuple):
    """The recurrence, and a zero of which the compiler does not know that it is one."""

    gaps: Any
    nothing: Any


class NoEdge(NamedTuple):
    """Nothing lies above the first row and below the last."""

    @staticmethod
    def above(edge: NoEdge, thread: Any, column: Any) -> Any:
        """Values of no alignment."""
        return np.int32(0), np.int32(0)

    @staticmethod
    def hand_down(edge: NoEdge, thread: Any, column: Any, h: Any, f: Any) -> None:
        """Nobody wants them."""
        return None


class Edge(NamedTuple):
    """Values of the row above a stripe of the query, which those of its last row replace.

    ``words`` has h and f of every column, those of four pairs side by side, from ``first`` on; the stripe
    before wrote ``columns`` of them.
    """

    words: Any
    first: Any
    columns: Any
    last_thread: Any

    @staticmethod
    def above(edge: Edge, thread: Any, column: Any) -> Any:
        """Read what the stripe before has left."""
        h, f = np.int32(0), np.int32(0)
        if thread == 0 and column < edge.columns:
            place = np.uint32(edge.first + np.uint32(8 * column))
            h, f = edge.words[place], edge.words[np.uint32(place + np.uint32(1))]
        return h, f

    @staticmethod
    def hand_down(edge: Edge, thread: Any, column: Any, h: Any, f: Any) -> None:
        """Leave them to the next stripe."""
        if thread == edge.last_thread and column >= 0:
            place = np.uint32(edge.first + np.uint32(8 * column))
            edge.words[place] = h
            edge.words[np.uint32(place + np.uint32(1))] = f


@by_type
def above(edge: Any, thread: Any, column: Any) -> Any:
    """What the first row of all needs, h and f of the row above, as far as this thread has that row."""


@by_type
def hand_down(edge: Any, thread: Any, column: Any, h: Any, f: Any) -> Any:
    """Keep h and f of the last row, where this thread has that row."""


@shared
def costs_after(costs: Any, done: Any) -> Any:
    """The costs of gaps, known once `done` is."""
    prolong = np.int32(costs.gaps.prolong.bits + done * costs.nothing)
    return AffineGap(costs.gaps.open, IntegerStep(prolong))


@shared
def two_rows(p: Any, alg: Any, states: Any, row: Any, words: Any, diag: Any, f: Any, best: Any) -> Any:
    """Two rows of a column: h and f for the row below, and the best value."""
    next_u, next_e = states
    e = HalfPair(next_e[row])
    h = cell(p, alg, HalfPair(next_u[row]), e, f, AddedBefore())
    next_u[row] = extend(alg, diag, LowScores(words[0], words[1])).bits
    e, f = gaps(p, alg, h, e, f)
    next_e[row] = e.bits
    e = HalfPair(next_e[row + 1])
    last = cell(p, alg, HalfPair(next_u[row + 1]), e, f, AddedBefore())
    next_u[row + 1] = extend(alg, h, HighScores(words[0], words[1])).bits
    e, f = gaps(p, alg, last, e, f)
    next_e[row + 1] = e.bits
    return last, f, choice(alg, choice(alg, best, h), last)


@shared
def eight_rows(costs: Any, alg: Any, profile: Any, places: Any, states: Any, rows: Any, handed: Any) -> Any:
    """Eight rows of a column, or the four that are left: h and f for the row below, and the best value."""
    first, last_row, chunk = rows
    diag, f, best = handed
    a = four_words(profile, np.uint32(places[0] + chunk))
    b = four_words(profile, np.uint32(places[1] + chunk))
    p = costs.gaps if first == 0 else costs_after(costs, states[0][first - 1])
    diag, f, best = two_rows(p, alg, states, first, (a[0], b[0]), diag, f, best)
    diag, f, best = two_rows(p, alg, states, first + 2, (a[1], b[1]), diag, f, best)
    if first + 4 < last_row:
        p = costs_after(costs, states[0][first + 3])
        diag, f, best = two_rows(p, alg, states, first + 4, (a[2], b[2]), diag, f, best)
        diag, f, best = two_rows(p, alg, states, first + 6, (a[3], b[3]), diag, f, best)
    return diag, f, best


@shared
def column(costs: Any, alg: Any, profile: Any, places: Any, states: Any, shape: Any, handed: Any) -> Any:
    """All rows of a column that a thread has.

    One call for every eight rows, because a loop over them would not be unrolled.
    """
    threads, rows = shape
    chunk = np.uint32(4 * threads * WORD)
    handed = eight_rows(costs, alg, profile, places, states, (0, rows, np.uint32(0)), handed)
    if rows > 8:
        handed = eight_rows(costs, alg, profile, places, states, (8, rows, chunk), handed)
    if rows > 16:
        handed = eight_rows(costs, alg, profile, places, states, (16, rows, np.uint32(2 * chunk)), handed)
    if rows > 24:
        handed = eight_rows(costs, alg, profile, places, states, (24, rows, np.uint32(3 * chunk)), handed)
    if rows > 32:
        handed = eight_rows(costs, alg, profile, places, states, (32, rows, np.uint32(4 * chunk)), handed)
    if rows > 40:
        handed = eight_rows(costs, alg, profile, places, states, (40, rows, np.uint32(5 * chunk)), handed)
    return handed


@shared
def sweep(
    costs: Any, targets: Any, profile: Any, states: Any, shape: Any, thread: Any, edge: Any, best: Any
) -> Any:
    """All columns of one piece of the targets; the best value so far.

    Parameters
    ----------
    costs
        The recurrence.
    targets
        Letters, the place of this thread's first one, and the number of columns.
    profile
        Scores, in shared memory.
    states
        int32 arrays: for every row, diagonal value with score and gap value of the next column.
    shape
        Threads of the group, and rows of each.
    thread
        Place in the group.
    edge
        Where the rows above and below are.
    best
        Of the stripes before.
    """
    threads, rows = shape
    letters, place, columns = targets
    zero = HalfPair(np.int32(0))
    alg = SaturatingMaxPlus(zero, zero)
    for row in range(rows):
        states[0][row] = 0
        states[1][row] = 0
    stride = np.uint32((rows + 7) // 8 * 4 * threads * WORD)
    own = np.uint32(shared_place(profile) + np.uint32(4 * WORD) * np.uint32(thread))
    last, f = zero, zero
    ahead = np.int32(0), np.int32(0)
    letter = two_letters(letters, place)
    steps = np.int32(columns + threads)
    step = np.int32(-steps)
    while step < 0:
        place = np.uint32(place + np.uint32(4))
        next_letter = two_letters(letters, place)
        places = np.uint32((letter & 255) * stride + own), np.uint32((letter >> 8) * stride + own)
        letter = next_letter
        last, f = HalfPair(shuffle_up(last.bits, 1)), HalfPair(shuffle_up(f.bits, 1))
        if thread == 0:
            last, f = HalfPair(ahead[0]), HalfPair(ahead[1])
        ahead = above(edge, thread, np.int32(steps + step))
        last, f, best = column(costs, alg, profile, places, states, shape, (last, f, best))
        hand_down(edge, thread, np.int32(columns + step), last.bits, f.bits)
        step = np.int32(step + 1)
    return best
