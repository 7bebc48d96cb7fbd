"""Sums of mismatches, columns of unit edit distances and levels of errors, one bit of each value a word.

Values are words of `plait.lang.algebras.Bits`: bit l of each belongs to lane l. A number is a tuple of words,
its lowest bits first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.algebras import choice, extend, opposite
from plait.lang.compile import by_type
from plait.lang.lanes import majority, parity

#: A sum of mismatches begins at this number less the limit, and has passed it if there are more.
LARGEST_SUM = 31
#: The same of a sum for limits below 8.
LARGEST_FEW = 7


class FewMismatches(NamedTuple):
    """Whether there are more mismatches than a limit below 8, by carry-save addition.

    A sum has words for its bits of 1, 2 and 4, and one for where it has passed 7.
    """

    @staticmethod
    def begin_sum(p: FewMismatches, alg: Any, start: Any) -> Any:
        return (
            alg.one if start & 1 else alg.zero,
            alg.one if start & 2 else alg.zero,
            alg.one if start & 4 else alg.zero,
            alg.zero,
        )

    @staticmethod
    def add_four(p: FewMismatches, alg: Any, total: Any, x: Any) -> Any:
        ones, twos, fours, passed = total
        first = majority(ones, x[0], x[1])
        ones = parity(ones, x[0], x[1])
        second = majority(ones, x[2], x[3])
        four = majority(twos, first, second)
        return (
            parity(ones, x[2], x[3]),
            parity(twos, first, second),
            fours ^ four,
            choice(alg, passed, extend(alg, fours, four)),
        )


class MismatchSum(NamedTuple):
    """Whether there are more mismatches than a limit below 32, by carry-save addition.

    A sum has words for its bits of 1, 2, 4, 8 and 16, and one for where it has passed 31.
    """

    @staticmethod
    def begin_sum(p: MismatchSum, alg: Any, start: Any) -> Any:
        ones, twos, fours, none = begin_sum(FewMismatches(), alg, start)
        return ones, twos, fours, alg.one if start & 8 else none, alg.one if start & 16 else none, none

    @staticmethod
    def add_four(p: MismatchSum, alg: Any, total: Any, x: Any) -> Any:
        ones, twos, fours, eights, sixteens, passed = total
        ones, twos, fours, eight = add_four(FewMismatches(), alg, (ones, twos, fours, alg.zero), x)
        sixteen = extend(alg, eights, eight)
        passed = choice(alg, passed, extend(alg, sixteens, sixteen))
        return ones, twos, fours, eights ^ eight, sixteens ^ sixteen, passed

    @staticmethod
    def add_eight(p: MismatchSum, alg: Any, total: Any, x: Any) -> Any:
        ones, twos, fours, eights, sixteens, passed = total
        first = majority(ones, x[0], x[1])
        ones = parity(ones, x[0], x[1])
        second = majority(ones, x[2], x[3])
        ones = parity(ones, x[2], x[3])
        four = majority(twos, first, second)
        twos = parity(twos, first, second)
        first = majority(ones, x[4], x[5])
        ones = parity(ones, x[4], x[5])
        second = majority(ones, x[6], x[7])
        ones = parity(ones, x[6], x[7])
        other = majority(twos, first, second)
        twos = parity(twos, first, second)
        eight = majority(fours, four, other)
        sixteen = extend(alg, eights, eight)
        passed = choice(alg, passed, extend(alg, sixteens, sixteen))
        return ones, twos, parity(fours, four, other), eights ^ eight, sixteens ^ sixteen, passed


@by_type
def begin_sum(p: Any, alg: Any, start: Any) -> Any:
    """A sum that begins at a number."""


@by_type
def add_four(p: Any, alg: Any, total: Any, x: Any) -> Any:
    """The sum after four more words of mismatches."""


@by_type
def add_eight(p: Any, alg: Any, total: Any, x: Any) -> Any:
    """The sum after eight more words of mismatches."""


class UnitEdits(NamedTuple):
    """Differences of neighbouring unit edit distances, after Myers and Hyyro.

    In a row of the pattern, ``up`` and ``down`` are where the distance is one more or one less than in the
    row above; ``right`` and ``left`` where it is one more or one less than in the column before.
    """

    @staticmethod
    def cell(p: UnitEdits, alg: Any, up: Any, down: Any, right: Any, left: Any, mismatch: Any) -> Any:
        # Where the diagonal has an error; complements are part of the instruction that they are extended by.
        error = extend(alg, extend(alg, mismatch, opposite(alg, left)), opposite(alg, down))
        right_next = choice(alg, down, extend(alg, error, opposite(alg, up)))
        left_next = extend(alg, up, opposite(alg, error))
        up_next = choice(alg, left, extend(alg, error, opposite(alg, right)))
        return up_next, extend(alg, right, opposite(alg, error)), right_next, left_next

    @staticmethod
    def count_bit(p: UnitEdits, alg: Any, bit: Any, more: Any, less: Any) -> Any:
        changed = bit ^ choice(alg, more, less)
        return changed, extend(alg, more, bit), extend(alg, less, opposite(alg, bit))


@by_type
def cell(p: Any, alg: Any, up: Any, down: Any, right: Any, left: Any, mismatch: Any) -> Any:
    """The differences up, down, right and left of a cell, from those of its neighbours."""


@by_type
def count_bit(p: Any, alg: Any, bit: Any, more: Any, less: Any) -> Any:
    """A bit of a number after adding or subtracting 1 at it, and what is carried: to add, to subtract."""


class ErrorLevels(NamedTuple):
    """Whether there is an alignment within numbers of mismatches, extra letters and missing ones."""

    @staticmethod
    def reached(p: ErrorLevels, alg: Any, diagonal: Any, mismatch: Any, others: Any) -> Any:
        return choice(alg, extend(alg, diagonal, opposite(alg, mismatch)), others)

    @staticmethod
    def few_levels(p: ErrorLevels, alg: Any, old: Any, less: Any, mismatch: Any) -> Any:
        none = reached(p, alg, old[0], mismatch[0], less[0])
        missing = reached(p, alg, old[1], mismatch[1], choice(alg, less[1], old[0]))
        extra = reached(p, alg, old[2], mismatch[2], choice(alg, less[2], none))
        others = choice(alg, choice(alg, less[3], old[2]), missing)
        return none, missing, extra, reached(p, alg, old[3], mismatch[0], others)


@by_type
def few_levels(p: Any, alg: Any, old: Any, less: Any, mismatch: Any) -> Any:
    """New levels of a number of mismatches without bulges, with a letter missing, an extra one, and both.

    `old` and `less` are those before with as many mismatches, and with one less; `mismatch` is that of the
    letter beside, of the one before and of the one behind.
    """


@by_type
def reached(p: Any, alg: Any, diagonal: Any, mismatch: Any, others: Any) -> Any:
    """Where a level is reached: by a match from the diagonal, or from `others` with an error less."""


class EditColumns(NamedTuple):
    """Unit edit distances along a column, a row in each bit of a word: the lowest bit is the first row.

    After Myers (J ACM 46:395, 1999), as Hyyro has it. In the lanes of the words, `unit` is 1, `last` 63 and
    `full` all ones.
    """

    unit: Any
    last: Any
    full: Any

    @staticmethod
    def column(p: EditColumns, up: Any, down: Any, apart: Any, more: Any, less: Any) -> Any:
        # Complements are part of the instruction that follows, where there is one for them.
        mismatch = apart & ((less & p.unit) ^ p.full)
        error = mismatch & ((((mismatch ^ p.full) & up) + up ^ up) ^ p.full) & (down ^ p.full)
        right = down | (error & (up ^ p.full))
        left = up & (error ^ p.full)
        entered = right + right - more
        up_next = (left + left - less) | (error & (entered ^ p.full))
        down_next = entered & (error ^ p.full)
        return up_next, down_next, right >> p.last, left >> p.last, apart & (error ^ p.full), right


@by_type
def column(p: Any, up: Any, down: Any, same: Any, more: Any, less: Any) -> Any:
    """The next column of words, from steps down and up in this one, and where letters are `apart`.

    `more` and `less` are all ones where the distance above the word is one more or one less than a column
    before. Returns up, down, both at the word's last row, where the diagonal is not best, and the steps to
    the right.
    """
