"""What was best in each cell, kept for the traceback or not, as `keep` says."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.pairs.gaps import choices
from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import mask_bits, store


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
