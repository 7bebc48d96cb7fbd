"""What was best in each cell, kept for the traceback or not, as the type of `keep` says."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.pairs.gaps import choices
from plait.lang.compile import by_type_of
from plait.lang.lanes import mask_bits


class ScoresOnly(NamedTuple):
    """Keep nothing but scores."""


class KeepChoices(NamedTuple):
    """What was best in each cell: ``bits[at, row, choice]``, bit k for lane k."""


def _note_nothing(keep: Any, step: Any, bits: Any, at: Any, row: Any, state: Any) -> None:
    return


def _note_choices(keep: Any, step: Any, bits: Any, at: Any, row: Any, state: Any) -> None:
    p, alg = step
    diag, e, s, h, e_next, f_next = state
    by_diag, by_e, e_opened, f_opened = choices(p, alg, diag, e, s, h, e_next, f_next)
    bits[at, row, 0] = mask_bits(by_diag)
    bits[at, row, 1] = mask_bits(by_e)
    bits[at, row, 2] = mask_bits(e_opened)
    bits[at, row, 3] = mask_bits(f_opened)


def _never(keep: Any) -> bool:
    return False


def _always(keep: Any) -> bool:
    return True


#: Whether choices are kept.
keeps = by_type_of({ScoresOnly: _never, KeepChoices: _always})

#: Note the choices of a row of every lane in step or column `at`, if they are wanted.
note = by_type_of({ScoresOnly: _note_nothing, KeepChoices: _note_choices})
