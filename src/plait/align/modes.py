"""Modes of alignment: which ends of which sequence may be left out at no cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from plait.errors import InvalidInput
from plait.schedules.pair_sweep import FreeEnds

__all__ = ["END_NAMES", "FreeEnd", "Mode", "free_ends_of"]

#: How much of the sequences has to be aligned.
Mode = Literal["global", "local", "semiglobal", "overlap", "extension"]
#: An end of a sequence.
FreeEnd = Literal["query_start", "query_end", "target_start", "target_end"]
END_NAMES: tuple[str, ...] = get_args(FreeEnd)
_MODES: tuple[str, ...] = get_args(Mode)
_DEFAULT_FREE = ("target_start", "target_end")


def free_ends_of(mode: Mode, free_ends: Iterable[FreeEnd] | None = None) -> FreeEnds:
    """What an alignment may leave out.

    Parameters
    ----------
    mode
        ``"global"``: nothing. ``"local"``: anything outside the best stretch of both. ``"semiglobal"``: what
        `free_ends` says. ``"overlap"``: both ends of both, so that ends may overlap or one may lie within the
        other. ``"extension"``: both begin at their starts, and anything after the best cell is left out.
    free_ends
        For ``"semiglobal"``: any of query_start, query_end, target_start, target_end. By default the ends of
        the target: the query is found within it.

    Raises
    ------
    InvalidInput
        If a word is unknown, or `free_ends` is given for another mode.
    """
    if mode not in _MODES:
        raise InvalidInput("mode", found=repr(mode), expected=f"one of {', '.join(_MODES)}")
    if mode != "semiglobal":
        if free_ends is not None:
            hint = "mode='semiglobal' takes them"
            raise InvalidInput("free_ends", found=f"mode {mode!r}", expected="no free ends", hint=hint)
        free = mode == "overlap"
        local = mode == "local"
        return FreeEnds(free, free, free, free, local, local or mode == "extension")
    names = _DEFAULT_FREE if free_ends is None else tuple(free_ends)
    for name in names:
        if name not in END_NAMES:
            raise InvalidInput("free_ends", found=repr(name), expected=f"any of {', '.join(END_NAMES)}")
    query_start, query_end, target_start, target_end = (name in names for name in END_NAMES)
    return FreeEnds(query_start, query_end, target_start, target_end, False, False)
