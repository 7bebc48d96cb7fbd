"""Occurrences of a text inside a fragment, as bits: the match automaton.

Bit ``s`` of the state says that the text read so far equals the fragment from position ``s`` on. One
step keeps the starts whose next fragment symbol matches the next text symbol. It is the
shift-and automaton of the published bit-wise path-counting programs, with the bits left in place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import by_type

__all__ = ["Occurrences", "every_start", "keep"]


class Occurrences(NamedTuple):
    """Occurrences inside a fragment of at most 62 symbols.

    Attributes
    ----------
    length
        Number of symbols of the fragment.
    """

    length: Any

    @staticmethod
    def every_start(p: Occurrences) -> Any:
        return (1 << p.length) - 1

    @staticmethod
    def keep(p: Occurrences, starts: Any, places: Any, read: Any) -> Any:
        return starts & (places >> read)


@by_type
def every_start(p: Any) -> Any:
    """State before anything is read: every position is a start."""


@by_type
def keep(p: Any, starts: Any, places: Any, read: Any) -> Any:
    """State after one more symbol.

    Parameters
    ----------
    p
        The automaton.
    starts
        State after `read` symbols.
    places
        Bits of the fragment positions that match the next symbol.
    read
        Number of symbols read before this one.
    """
