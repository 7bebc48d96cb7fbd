"""Occurrences of a text inside fragments, as bits: the match automaton.

One bit per fragment position; several fragments share a word, with an empty position between two of them.
A bit of the state says that the text read so far equals the fragment from that position on. One step keeps
the starts whose next fragment symbol matches the next text symbol. It is the automaton of the published
bit-wise path-counting programs, with the bits left in place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import by_type

__all__ = ["Occurrences", "keep", "start"]


class Occurrences(NamedTuple):
    """Occurrences inside fragments of at most 62 positions in all.

    Attributes
    ----------
    starts
        Bits of the positions from which an occurrence may start.
    """

    starts: Any

    @staticmethod
    def start(p: Occurrences) -> Any:
        return p.starts

    @staticmethod
    def keep(p: Occurrences, starts: Any, places: Any, read: Any) -> Any:
        return starts & (places >> read)


@by_type
def start(p: Any) -> Any:
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
