"""Random (N) nucleotides at a junction, and occurrences of D: the recurrences of the V(D)J chain."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.algebras import choice, extend
from plait.lang.compile import by_type


class Insertion(NamedTuple):
    """Insertions of up to ``levels - 1`` nucleotides; `levels` counts from no insertion."""

    levels: Any

    @staticmethod
    def insert(p: Insertion, alg: Any, entered: Any, shorter: Any, weight: Any) -> Any:
        return choice(alg, entered, extend(alg, shorter, weight))


@by_type
def insert(p: Any, alg: Any, entered: Any, shorter: Any, weight: Any) -> Any:
    """Value of a level at a position: of arriving here without an insertion, or from the level below.

    `entered` is the weight of arriving here, at this level, with no insertion; `shorter` the level below at
    the neighbouring position, zero for level 0; `weight` that of the nucleotide between the two positions
    (its multiplicity, when counting).
    """


class Occurrences(NamedTuple):
    """Occurrences inside D genes of at most 62 positions in all; `starts` has a bit for each start."""

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

    `starts` is the state after `read` symbols; `places` has the bits of the D gene positions that match the
    next one.
    """
