"""Random (N) nucleotides at a junction, as a recurrence over positions and levels.

Level ``k`` of position ``i`` is fed by level ``k - 1`` of the neighbouring position, extended by the weight
of the one nucleotide between them, and by what enters at ``i`` without an insertion. What enters decides
what a level means:

- the same weight at every level: level k holds *at most k* insertions, so that all limits 0..k come out of
  one pass (DP-2);
- a weight at level 0 only: level k holds *exactly k* insertions (DP-1);
- weights p[K], p[K-1], .. p[0]: the last level is a length distribution p over insertions (Horner's rule).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import by_type
from plait.algebras import choice, extend

__all__ = ["Insertion", "insert"]


class Insertion(NamedTuple):
    """Insertions of up to ``levels - 1`` nucleotides.

    Attributes
    ----------
    levels
        Number of levels, counted from no insertion.
    """

    levels: Any

    @staticmethod
    def insert(p: Insertion, alg: Any, entered: Any, shorter: Any, weight: Any) -> Any:
        return choice(alg, entered, extend(alg, shorter, weight))


@by_type
def insert(p: Any, alg: Any, entered: Any, shorter: Any, weight: Any) -> Any:
    """Value of a level at a position.

    Parameters
    ----------
    p
        The recurrence.
    alg
        The algebra.
    entered
        Weight of arriving here, at this level, with no insertion.
    shorter
        The level below at the neighbouring position; zero for level 0.
    weight
        Weight of the nucleotide between the two positions (its multiplicity, when counting).
    """
