"""What was best in each cell, kept for the traceback or not, as `keep` says; and which cell is the best."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.dp.pairs.gaps import choices
from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import (
    add_saturating,
    equal,
    greater,
    load,
    mask_bits,
    maximum,
    minimum,
    narrow,
    select,
    splat,
    store,
    stream,
    subtract_saturating,
    widen,
)


class ScoresOnly(NamedTuple):
    """Keep nothing but scores."""


class KeepChoices(NamedTuple):
    """What was best in each cell: ``bits[at, row, choice]``, bit k for lane k."""


class AsAsked(NamedTuple):
    """Either of them, as the bool `kept` says: one kernel for both."""

    kept: Any


class KeepValues(NamedTuple):
    """The value of each cell above that of ``zero``: ``bits[at, row, lane]``, of the type of the scores."""

    lanes: Any


def of_kind(keep: Any, kept: bool) -> Any:
    """The same kind of `keep`, for scores and choices if `kept`, else for scores alone."""
    if isinstance(keep, KeepValues):
        return keep
    if isinstance(keep, AsAsked):
        return AsAsked(kept)
    return KeepChoices() if kept else ScoresOnly()


def _never(keep: Any) -> bool:
    return False


def _always(keep: Any) -> bool:
    return True


def _as_asked(keep: Any) -> bool:
    return keep.kept  # type: ignore[no-any-return]


def _note_nothing(keep: Any, step: Any, bits: Any, at: Any, row: Any, state: Any) -> None:
    return


@shared
def _note_choices(keep: Any, step: Any, bits: Any, at: Any, row: Any, state: Any) -> None:
    p, alg = step
    diag, e, s, h, e_next, f_next = state
    by_diag, by_e, e_opened, f_opened = choices(p, alg, diag, e, s, h, e_next, f_next)
    bits[at, row, 0] = mask_bits(by_diag)
    bits[at, row, 1] = mask_bits(by_e)
    bits[at, row, 2] = mask_bits(e_opened)
    bits[at, row, 3] = mask_bits(f_opened)


def _note_if_asked(keep: Any, step: Any, bits: Any, at: Any, row: Any, state: Any) -> None:
    if keep.kept:
        _note_choices(keep, step, bits, at, row, state)


def _note_values(keep: Any, step: Any, bits: Any, at: Any, row: Any, state: Any) -> None:
    store(keep.lanes, bits[at], row, 0, state[3] - step[1].zero)


#: Whether choices are kept.
keeps = by_type_of({ScoresOnly: _never, KeepChoices: _always, AsAsked: _as_asked, KeepValues: _never})

#: Note the choices of a row of every lane in step or column `at`, if they are wanted.
note = by_type_of(
    {ScoresOnly: _note_nothing, KeepChoices: _note_choices, AsAsked: _note_if_asked, KeepValues: _note_values}
)


#: Bytes of choices that may stay in the caches until they are read.
_CACHED = 1 << 23


@shared
def note_octet(lanes: Any, size: Any, bits: Any, row: Any, marks: Any, cells: Any) -> None:
    """Note the choices of two cells, as `OctetBits` reads them: ``e`` where it is not the diagonal.

    `size` is the bytes of all choices. `marks` are 1, 2, 4, ... and 0. A compiler that knew them would load
    each by its address each time, and compare what was subtracted instead of what is 0. `cells` are what
    `differences` gives of both, and their scores. A sum of what is chosen is one operation with AVX-512.
    """
    one, two, s = cells
    zero, none = marks[8], marks[8] ^ marks[8]
    noted = select(equal(one[0], s[0]), marks[0], select(equal(one[0], one[1]), marks[1], none))
    noted = noted + select(equal(two[0], s[1]), marks[4], select(equal(two[0], two[1]), marks[5], none))
    noted = noted + select(equal(one[4], zero), marks[2], none)
    noted = noted + select(equal(one[5], zero), marks[3], none)
    noted = noted + select(equal(two[4], zero), marks[6], none)
    noted = noted + select(equal(two[5], zero), marks[7], none)
    if size > _CACHED:
        stream(lanes, bits, row, 0, noted)
    else:
        store(lanes, bits, row, 0, noted)


class EdgeEnds(NamedTuple):
    """Alignments end in the last row or column, where `plait.dp.pairs.lists.find_end` looks.

    `marks`, uint8, is what `plait.dp.pairs.lists.sweep_beside` asks for.
    """

    marks: Any


class LocalEnds(NamedTuple):
    """Alignments begin and end in any cell; a gap's first residue costs `opened`, uint8; `marks` as before.

    Of two columns is known, in 16 bits: the value of the first one's cell, the best value of a row in them,
    and twice the earliest such row, with 1 more if it is not the first column's.
    """

    marks: Any
    opened: Any


def _local_at_top(ends: Any, lanes: Any) -> Any:
    none = splat(lanes, np.int16(0))
    return none, splat(lanes, np.uint8(0)), none, none


def _local_with_floor(ends: Any, lanes: Any, seen: Any, u: Any, s: Any) -> Any:
    # From 255 on a value lies so far above what a cell can lie below it that there is no floor.
    value, opened = seen[1], splat(lanes, ends.opened)
    first, second = subtract_saturating(opened + u, value), subtract_saturating(opened + opened, value)
    return maximum(s[0], first), maximum(s[1], second)


def _local_see(ends: Any, lanes: Any, seen: Any, row: Any, v: Any, u: Any) -> Any:
    value, octet, best, found = seen
    opened = splat(lanes, ends.opened)
    octet = subtract_saturating(add_saturating(narrow(u, value), v), opened)
    value = value + (widen(value, v) - widen(value, opened))
    more = widen(value, subtract_saturating(u, opened))
    # A compiler that knew this number would make masks of it.
    here = splat(lanes, np.int16(2 * row)) + minimum(more, splat(lanes, np.int16(ends.marks[6])))
    better = greater(value + more, best)
    return value, octet, maximum(best, value + more), select(better, here, found)


def _local_keep_best(ends: Any, lanes: Any, kept: Any, seen: Any, at: Any) -> Any:
    _, _, best, found = seen
    before, before_row, unit = load(lanes, kept, 0, 0), load(lanes, kept, 1, 0), splat(lanes, np.int16(1))
    row, column = found >> unit, splat(lanes, np.int16(at)) + (found & unit)
    # Of equal values the earlier row counts, and then what was seen before.
    ahead = select(equal(best, before), before_row - row, best - before)
    better = greater(ahead, before - before)
    store(lanes, kept, 0, 0, maximum(best, before))
    store(lanes, kept, 1, 0, select(better, row, before_row))
    store(lanes, kept, 2, 0, select(better, column, load(lanes, kept, 2, 0)))
    return 0


def _nothing(ends: Any, lanes: Any) -> Any:
    return 0


def _same_scores(ends: Any, lanes: Any, seen: Any, u: Any, s: Any) -> Any:
    return s


def _see_nothing(ends: Any, lanes: Any, seen: Any, row: Any, v: Any, u: Any) -> Any:
    return seen


def _keep_nothing(ends: Any, lanes: Any, kept: Any, seen: Any, at: Any) -> Any:
    return 0


#: What is seen of two columns before their first row.
at_top = by_type_of({EdgeEnds: _nothing, LocalEnds: _local_at_top})

#: The scores of the next row's cells, or the least that they must lie above their diagonals; `u` is that of
#: the first column's cell before.
with_floor = by_type_of({EdgeEnds: _same_scores, LocalEnds: _local_with_floor})

#: What is seen after `row`, with `v` of its first cell and `u` of its second.
see = by_type_of({EdgeEnds: _see_nothing, LocalEnds: _local_see})

#: Keep the best cell, if it is in the columns `at` and the next.
keep_best = by_type_of({EdgeEnds: _keep_nothing, LocalEnds: _local_keep_best})
