"""What a sweep along anti-diagonals notes on its way: choices for walking back, and the best cell."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import by_type, shared
from plait.lanes import greater, mask_bits, maximum, select
from plait.recurrences.gaps import choices

__all__ = ["Anywhere", "AtEdges", "KeepChoices", "ScoresOnly", "keeps", "note", "record", "watch"]


class ScoresOnly(NamedTuple):
    """Nothing."""

    @staticmethod
    def note(keep: ScoresOnly, step: Any, bits: Any, at: Any, v: Any, state: Any) -> Any:
        return 0

    @staticmethod
    def keeps(keep: ScoresOnly) -> Any:
        return False


class KeepChoices(NamedTuple):
    """What was best in each cell: ``bits[step, v, choice]``, bit k for lane k."""

    @staticmethod
    def note(keep: KeepChoices, step: Any, bits: Any, at: Any, v: Any, state: Any) -> Any:
        p, alg = step
        diag, e, s, h, e_next, f_next = state
        by_diag, by_e, e_opened, f_opened = choices(p, alg, diag, e, s, h, e_next, f_next)
        bits[at, v, 0] = mask_bits(by_diag)
        bits[at, v, 1] = mask_bits(by_e)
        bits[at, v, 2] = mask_bits(e_opened)
        bits[at, v, 3] = mask_bits(f_opened)
        return 0

    @staticmethod
    def keeps(keep: KeepChoices) -> Any:
        return True


@by_type
def keeps(keep: Any) -> Any:
    """Whether choices are noted."""


@by_type
def note(keep: Any, step: Any, bits: Any, at: Any, v: Any, state: Any) -> Any:
    """Note the choices of row `v` of every lane, if they are wanted."""


@shared
def _record_best(scratch: Any, base: int, stripe: Any, best: Any) -> None:
    """Keep the better cell: the higher value, then the earlier row, then the earlier column."""
    row, rows, first, _ = stripe
    for r in range(rows):
        value = int(scratch.groups[9 + r % 4, r // 4]) + base
        i = row + r
        j = first + int(scratch.groups[13 + r % 4, r // 4]) - r // 4
        ahead = i < best[1] or (i == best[1] and j < best[2])
        if value > best[0] or (value == best[0] and ahead):
            best[0] = value
            best[1] = i
            best[2] = j


class AtEdges(NamedTuple):
    """An alignment ends at the edge of the matrix, where its value is found in the edges."""

    @staticmethod
    def watch(ends: AtEdges, best: Any, where: Any, h: Any, number: Any) -> Any:
        return best, where

    @staticmethod
    def record(ends: AtEdges, scratch: Any, base: Any, stripe: Any, best: Any) -> Any:
        return 0


class Anywhere(NamedTuple):
    """An alignment may end in any cell: keep the best value of each row, and the step when it first came."""

    @staticmethod
    def watch(ends: Anywhere, best: Any, where: Any, h: Any, number: Any) -> Any:
        return maximum(best, h), select(greater(h, best), number, where)

    @staticmethod
    def record(ends: Anywhere, scratch: Any, base: Any, stripe: Any, best: Any) -> Any:
        return _record_best(scratch, base, stripe, best)


@by_type
def watch(ends: Any, best: Any, where: Any, h: Any, number: Any) -> Any:
    """The best value of a row in every lane and its step, after a step."""


@by_type
def record(ends: Any, scratch: Any, base: Any, stripe: Any, best: Any) -> Any:
    """Take the best cell of a stretch over into that of the region."""
