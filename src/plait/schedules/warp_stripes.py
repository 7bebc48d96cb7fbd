"""One pair on warps: how a stripe of rows gets its scores, where it ends, and what threads exchange.

Pieces of `plait.targets.cuda_long_kernel`, in which each thread of a warp has some neighbouring rows of a
stripe.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import by_type, by_type_of, shared
from plait.recurrences.gaps import AffineGap, LinearGap

__all__ = [
    "MARKS",
    "MOST_COST",
    "NarrowScores",
    "Ragged",
    "Whole",
    "WideScores",
    "all_bits_if_equal",
    "blend",
    "has_mark",
    "high",
    "is_last",
    "last_lane",
    "low",
    "own_costs",
    "pack",
    "scores_in_word",
    "to_send",
    "two_scores",
    "with_mark",
    "without_mark",
]

#: Costs up to which marks leave room for what goes on in a gap, and stripes that have different marks.
MOST_COST = 1 << 16
MARKS = 1 << 14


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

    What goes on in a gap is at most ``h``, and less by no more than a gap costs. So 18 bits hold the
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
def _affine(gap: Any, lane: Any) -> Any:
    return AffineGap(gap.open[np.uint32(lane)], gap.prolong[np.uint32(lane)])


@shared
def _linear(gap: Any, lane: Any) -> Any:
    return LinearGap(gap.prolong[np.uint32(lane)])


#: The costs of this lane. All are the same, but if the compiler knew, it would add them in the unit that also
#: finds maxima, which is the busy one.
own_costs = by_type_of({AffineGap: _affine, LinearGap: _linear})
