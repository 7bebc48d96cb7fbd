"""Pairwise alignment with gaps, in three states that tell alignments apart.

The state of a vertex (i, j) is what the last column holds: a pair of residues, a residue of the target alone,
or one of the query alone. Every alignment, as a string of columns, is exactly one path through the states, so
that algebras which add alternatives up count each alignment once; a gap in one sequence may follow a gap in
the other, in either order. In `plait.recurrences.gaps` one alignment has several paths, which does not
matter where only the best one is asked for.

See Durbin, Eddy, Krogh and Mitchison (1998), Biological sequence analysis, chapters 2 and 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import by_type
from plait.algebras import choice, extend

__all__ = ["GapStates", "onward", "step"]


class GapStates(NamedTuple):
    """A gap costs ``open`` for its first residue and ``prolong`` for each further one.

    Both are values to extend by: negative scores, or weights below one.
    """

    open: Any
    prolong: Any

    @staticmethod
    def onward(p: GapStates, alg: Any, begin: Any, state: Any) -> Any:
        return choice(alg, begin, choice(alg, state[0], choice(alg, state[1], state[2])))

    @staticmethod
    def step(p: GapStates, alg: Any, diag: Any, left: Any, up: Any, s: Any) -> Any:
        target_gap = extend(alg, choice(alg, left[0], left[2]), p.open)
        query_gap = extend(alg, choice(alg, up[0], up[1]), p.open)
        return (
            extend(alg, diag, s),
            choice(alg, target_gap, extend(alg, left[1], p.prolong)),
            choice(alg, query_gap, extend(alg, up[2], p.prolong)),
        )


@by_type
def onward(p: Any, alg: Any, begin: Any, state: Any) -> Any:
    """What a vertex hands to the pair that follows it, where `begin` is the value of starting there."""


@by_type
def step(p: Any, alg: Any, diag: Any, left: Any, up: Any, s: Any) -> Any:
    """The three states of a vertex: a pair of score `s`, a residue of the target, one of the query.

    `diag` is what the vertex before the pair hands on, `left` and `up` are the states of the vertices before
    the gaps.
    """
