"""Where the scores of a pair's anti-diagonals come from: a small table, or the query's profile."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.lang.compile import by_type, shared
from plait.lang.lanes import (
    OneLane,
    equal,
    greater,
    load,
    lookup,
    select,
    shift_in,
    splat,
    store,
    store_turned,
    widen,
)

#: Neighbouring rows in each lane.
ROWS = 4


class ScoreScratch(NamedTuple):
    """Memory of one thread, for the rows of a stripe and the columns of a stretch.

    `letters` are those of the rows in the type of the source's: for `PairTable` what each contributes, (ROWS,
    lanes), for `SkewedProfile` (1, ROWS * lanes). For `SkewedProfile` alone: `profile`, scores of each letter
    with the rows, (letters, ROWS * lanes), and `skewed`, scores of each step, of shape
    (stretch + 2 * lanes + 4, ROWS * lanes). `numbers`, int8 (1, ROWS * lanes), is the number of each lane,
    ROWS times; `counts`, int8 (1, 128), is -1 to 126.
    """

    letters: Any
    profile: Any
    skewed: Any
    numbers: Any
    counts: Any


@shared
def _letters_of_rows(source: Any, lanes: Any, scratch: Any, stripe: Any) -> int:
    row, rows, _, _ = stripe
    for k in range(lanes.width):
        for v in range(4):
            scratch.letters[v, k] = source.query[row + min(4 * k + v, rows - 1)]
    return 0


@shared
def _next_letter(source: Any, letters: Any, at: Any) -> Any:
    return shift_in(letters, source.target[at])


class PairTable(NamedTuple):
    """Scores from one table of 32 entries, (1, 32): few letters, as in DNA.

    `query` is where in it the row of each residue begins, uint8 or uint16, (rows,); `target` what each
    residue adds to that, in the same type, (columns + lanes,), any values after the last column.
    """

    query: Any
    target: Any
    table: Any

    @staticmethod
    def part(source: PairTable, lanes: Any, q0: Any, q1: Any, t0: Any, t1: Any) -> Any:
        return PairTable(source.query[q0:q1], source.target[t0 : t1 + lanes.width], source.table)

    prepare, enter = staticmethod(_letters_of_rows), staticmethod(_next_letter)  # type: ignore[misc]

    @staticmethod
    def scores(
        source: PairTable, lanes: Any, like: Any, scratch: Any, letters: Any, step: Any, v: Any
    ) -> Any:
        index = letters + load(lanes, scratch.letters, v, 0)
        return widen(like, lookup(lanes, source.table, 0, index))

    @staticmethod
    def look_up(source: PairTable, lanes: Any, scratch: Any, rows: Any, at: Any, place: Any) -> Any:
        return load(lanes, scratch.target, at, 0)

    @staticmethod
    def beside(source: PairTable, lanes: Any, scratch: Any, row: Any, column: Any) -> Any:
        return lookup(lanes, source.table, 0, load(lanes, scratch.query, row, 0) + column)


class Matches(NamedTuple):
    """One score of equal letters and one of all others, in octets.

    `query` and `target` are the letters, uint8, with those of a group of lanes, any, behind the last one of
    `target`; `table` is (1, 2), the score of others first.
    """

    query: Any
    target: Any
    table: Any

    @staticmethod
    def part(source: Matches, lanes: Any, q0: Any, q1: Any, t0: Any, t1: Any) -> Any:
        return Matches(source.query[q0:q1], source.target[t0 : t1 + lanes.width], source.table)

    prepare, enter = staticmethod(_letters_of_rows), staticmethod(_next_letter)  # type: ignore[misc]

    @staticmethod
    def scores(source: Matches, lanes: Any, like: Any, scratch: Any, letters: Any, step: Any, v: Any) -> Any:
        others, equals = splat(lanes, source.table[0, 0]), splat(lanes, source.table[0, 1])
        return select(equal(load(lanes, scratch.letters, v, 0), letters), equals, others)

    @staticmethod
    def look_up(source: Matches, lanes: Any, scratch: Any, rows: Any, at: Any, place: Any) -> Any:
        others, equals = splat(lanes, source.table[0, 0]), splat(lanes, source.table[0, 1])
        return load(lanes, scratch.target, at, 0), others, equals

    @staticmethod
    def beside(source: Matches, lanes: Any, scratch: Any, row: Any, column: Any) -> Any:
        return select(equal(load(lanes, scratch.query, row, 0), column[0]), column[2], column[1])


class QueryTable(NamedTuple):
    """Scores of a query that all pairs have, for pairs beside each other.

    `query` is the row of `table`, (letters, 32), of each residue, uint8, `target` the column, integers.
    """

    query: Any
    target: Any
    table: Any

    @staticmethod
    def look_up(source: QueryTable, lanes: Any, scratch: Any, rows: Any, at: Any, place: Any) -> Any:
        residues = load(lanes, scratch.target, at, 0)
        for letter in range(source.table.shape[0]):
            store(lanes, scratch.found, letter, place, lookup(lanes, source.table, letter, residues))
        return place

    @staticmethod
    def beside(source: QueryTable, lanes: Any, scratch: Any, row: Any, column: Any) -> Any:
        return load(lanes, scratch.found, int(source.query[row]), column)


@shared
def _make_profiles(source: Any, lanes: Any, scratch: Any, rows: int) -> None:
    """A row of letters for each lane, and behind it one of scores for each row of the table."""
    profile, letters = scratch.profile, source.table.shape[0]
    for lane in range(lanes.width):
        own = lane * (letters + 1)
        for row in range(rows):
            profile[own, row] = scratch.query[row, lane]
        for first in range(0, rows, lanes.width):
            residues = load(lanes, profile, own, first)
            for letter in range(letters):
                store(lanes, profile, own + 1 + letter, first, lookup(lanes, source.table, letter, residues))


class LaneProfiles(NamedTuple):
    """Scores of a query of each lane's own with any letters, for pairs beside each other.

    `query` is the column of `table`, (letters, 32), of each residue, uint8, `target` the row, integers.
    """

    query: Any
    target: Any
    table: Any

    @staticmethod
    def look_up(source: LaneProfiles, lanes: Any, scratch: Any, rows: Any, at: Any, place: Any) -> Any:
        if at == 0:
            _make_profiles(source, lanes, scratch, rows)
        for lane in range(lanes.width):
            own = lane * (source.table.shape[0] + 1)
            scratch.picked[lane] = own + 1 + int(scratch.target[at, lane])
        for first in range(0, rows, lanes.width):
            store_turned(lanes, scratch.profile, scratch.picked, first, scratch.found, first, place)
        return place

    @staticmethod
    def beside(source: LaneProfiles, lanes: Any, scratch: Any, row: Any, column: Any) -> Any:
        return load(lanes, scratch.found, row, column)


@shared
def _has(wide: Any, scratch: Any, bit: int, lane: int) -> Any:
    """Mask of the lanes whose number has a bit."""
    number = load(wide, scratch.numbers, 0, lane)
    return greater(number & splat(wide, load(OneLane(1), scratch.counts, 0, bit + 1)), number - number)


@shared
def _copy_columns(wide: Any, scratch: Any, target: Any, first: int, lane: int) -> None:
    """The profile of each column, moved down by the last two bits of the lane's number."""
    once, twice = _has(wide, scratch, 1, lane), _has(wide, scratch, 2, lane)
    here = load(wide, scratch.profile, 0, lane)
    one, two, three = here, here, here
    for at in range(target.size + 3):
        here = load(wide, scratch.profile, target[min(at, target.size - 1)], lane)
        moved = select(twice, select(once, three, two), select(once, one, here))
        store(wide, scratch.skewed, first + at, lane, moved)
        three, two, one = two, one, here


@shared
def _move_two_bits(wide: Any, scratch: Any, bit: int, first: int, last: int, lane: int) -> None:
    """Move lanes down by this bit and the next of their number."""
    skewed = scratch.skewed
    once, twice = _has(wide, scratch, bit, lane), _has(wide, scratch, 2 * bit, lane)
    for to in range(last, first - 1, -1):
        near = select(once, load(wide, skewed, to - bit, lane), load(wide, skewed, to, lane))
        far = select(once, load(wide, skewed, to - 3 * bit, lane), load(wide, skewed, to - 2 * bit, lane))
        store(wide, skewed, to, lane, select(twice, far, near))


@shared
def _move_one_bit(wide: Any, scratch: Any, bit: int, first: int, last: int, lane: int) -> None:
    """Move lanes down by one bit of their number."""
    skewed = scratch.skewed
    moves = _has(wide, scratch, bit, lane)
    for to in range(last, first - 1, -1):
        moved = select(moves, load(wide, skewed, to - bit, lane), load(wide, skewed, to, lane))
        store(wide, skewed, to, lane, moved)


class SkewedProfile(NamedTuple):
    """Scores from the query's profile, slanted so that the columns of one step are one row.

    Lane k of step t has to be the profile of column t - k. For each bit of k the lanes in which it is set
    move down by that many steps, so the work is the logarithm of the number of lanes. `query` is the column
    of `table` of each residue, uint8 (rows,), `target` the row, int64 (columns,); `table` is (letters, 32),
    targets' letters with those of the queries. `wide` lanes move together: those of one or more rows.
    """

    query: Any
    target: Any
    table: Any
    wide: Any

    @staticmethod
    def part(source: SkewedProfile, lanes: Any, q0: Any, q1: Any, t0: Any, t1: Any) -> Any:
        return SkewedProfile(source.query[q0:q1], source.target[t0:t1], source.table, source.wide)

    @staticmethod
    def prepare(source: SkewedProfile, lanes: Any, scratch: Any, stripe: Any) -> Any:
        row, rows, first, last = stripe
        width, wide = lanes.width, source.wide
        for k in range(width):
            for v in range(4):
                scratch.letters[0, v * width + k] = source.query[row + min(4 * k + v, rows - 1)]
        target = source.target[first:last]
        end = target.size + 2 * width - 1
        for lane in range(0, 4 * width, wide.width):
            letters = load(wide, scratch.letters, 0, lane)
            for letter in range(source.table.shape[0]):
                store(wide, scratch.profile, letter, lane, lookup(wide, source.table, letter, letters))
            _copy_columns(wide, scratch, target, width, lane)
            bit = 4
            while bit < width:
                if 2 * bit < width:
                    _move_two_bits(wide, scratch, bit, width, end, lane)
                else:
                    _move_one_bit(wide, scratch, bit, width, end, lane)
                bit *= 4
        return 0

    @staticmethod
    def enter(source: SkewedProfile, letters: Any, at: Any) -> Any:
        return letters

    @staticmethod
    def scores(
        source: SkewedProfile, lanes: Any, like: Any, scratch: Any, letters: Any, step: Any, v: Any
    ) -> Any:
        return widen(like, load(lanes, scratch.skewed, step + lanes.width, v * lanes.width))


class Barred(NamedTuple):
    """Scores of another source, but for pairs of residues that must not be aligned.

    `rows` and `columns`, int64 (pairs,), are those of the pairs, in the part that is swept; `marks`, int32
    (steps of a stretch, ROWS * lanes), is memory.
    """

    source: Any
    rows: Any
    columns: Any
    marks: Any

    @staticmethod
    def part(source: Barred, lanes: Any, q0: Any, q1: Any, t0: Any, t1: Any) -> Any:
        own = part(source.source, lanes, q0, q1, t0, t1)
        return Barred(own, source.rows, source.columns, source.marks)

    @staticmethod
    def prepare(source: Barred, lanes: Any, scratch: Any, stripe: Any) -> Any:
        row, rows, first, last = stripe
        marks = source.marks
        for step in range(last - first + lanes.width - 1):
            for lane in range(4 * lanes.width):
                marks[step, lane] = 0
        for pair in range(source.rows.size):
            r = source.rows[pair] - row
            c = source.columns[pair] - first
            if r >= 0 and r < rows and c >= 0 and c < last - first:
                # No alignment goes through it, and values below 2^29 can be added.
                marks[c + r // 4, r % 4 * lanes.width + r // 4] = -(1 << 30)
        return prepare(source.source, lanes, scratch, stripe)

    @staticmethod
    def enter(source: Barred, letters: Any, at: Any) -> Any:
        return enter(source.source, letters, at)

    @staticmethod
    def scores(source: Barred, lanes: Any, like: Any, scratch: Any, letters: Any, step: Any, v: Any) -> Any:
        own = scores(source.source, lanes, like, scratch, letters, step, v)
        return own + load(lanes, source.marks, step, v * lanes.width)


def pads_of(source: PairTable) -> tuple[int, int] | None:
    """Numbers of a query's and a target's residue that nothing gains by, in a table that may have none."""
    low = np.append(source.table[0] <= 0, np.zeros(32, bool))
    rows, columns = (np.flatnonzero(np.bincount(own)) for own in (source.query, source.target))
    either = [[k for k in range(32) if low[k + own].all()] for own in (columns, rows)]
    return next(((row, column) for row in either[0] for column in either[1] if low[row + column]), None)


def matches_of(task: Any) -> tuple[Matches, tuple[int, int]] | None:
    """Scores of letters that are equal and others, which are not above 0, if that is all; pads, as above."""
    letters = np.arange(max(int(task.query.max(initial=0)), int(task.target.max(initial=0))) + 1)
    scores, same = task.matrix[np.ix_(letters, letters)], np.eye(letters.size, dtype=bool)
    table = np.array([[scores[~same].min(initial=0), scores[same].max()]])
    if (scores != table[0][same.astype(np.int64)]).any():
        return None
    return Matches(task.query, task.target, table), (254, 255)


@by_type
def part(source: Any, lanes: Any, q0: Any, q1: Any, t0: Any, t1: Any) -> Any:
    """The source of some rows and columns."""


@by_type
def prepare(source: Any, lanes: Any, scratch: Any, stripe: Any) -> Any:
    """Get ready for a stripe: its first row, number of rows, first column and column after the last."""


@by_type
def enter(source: Any, letters: Any, at: Any) -> Any:
    """The letters of the lanes' columns, one step on, when column `at` enters."""


@by_type
def scores(source: Any, lanes: Any, like: Any, scratch: Any, letters: Any, step: Any, v: Any) -> Any:
    """The scores of row `v` of every lane in a step."""


@by_type
def look_up(source: Any, lanes: Any, scratch: Any, rows: Any, at: Any, place: Any) -> Any:
    """What `beside` has to know of column `at`; `place` says where in `scratch` it may keep more.

    `scratch` is that of `plait.dp.pairs.lists.sweep_beside`.
    """


@by_type
def beside(source: Any, lanes: Any, scratch: Any, row: Any, column: Any) -> Any:
    """The scores of a row of pairs beside each other in a column, as `look_up` has told it."""
