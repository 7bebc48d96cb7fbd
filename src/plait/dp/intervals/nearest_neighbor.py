"""The nearest-neighbour recurrence of RNA structures: every structure without pseudoknots, derived once.

Of bases i to j, C holds structures whose ends pair, M those of one stem or more within a multiloop, M2 those
of two or more, S those of which the leftmost stem begins at i and is not the only one; X holds structures of
i to the end of the sequence. The leftmost stem decides, so that no structure is derived twice.

    C[i,j]  = hairpin + sum_{p,q} loop C[p,q] + closing M2[i+1,j-1]
    S[i,j]  = sum_{k<j} s[i,k] M[k+1,j],                  s[i,k] = C[i,k] as a stem of a multiloop
    M2[i,j] = b M2[i+1,j] + S[i,j]
    M [i,j] = b M [i+1,j] + S[i,j] + R[i,j],              R[i,j] = b R[i,j-1] + s[i,j]
    X[i]    = x X[i+1] + sum_k e[i,k] X[k+1],             e[i,k] = C[i,k] as a stem outside of all loops

Interior loops with two or more unpaired bases on both sides weigh by how many there are, by the difference
between the sides, and by either pair: a loop of u bases is one of u - 2 within, and one base more on both
sides, or has two on one side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.algebras import choice, extend
from plait.lang.compile import by_type


class NearestNeighbor(NamedTuple):
    """`unpaired` is the weight b of an unpaired base of a multiloop, `outside` that of one in no loop."""

    unpaired: Any
    outside: Any

    @staticmethod
    def widen(p: NearestNeighbor, alg: Any, within: Any, left: Any, right: Any, asymmetry: Any) -> Any:
        return choice(alg, within, extend(alg, choice(alg, left, right), asymmetry))

    @staticmethod
    def close(p: NearestNeighbor, alg: Any, so_far: Any, inner: Any, loop: Any) -> Any:
        return choice(alg, so_far, extend(alg, inner, loop))

    @staticmethod
    def lengthen(p: NearestNeighbor, alg: Any, shorter: Any, others: Any) -> Any:
        return choice(alg, extend(alg, shorter, p.unpaired), others)

    @staticmethod
    def leave(p: NearestNeighbor, alg: Any, behind: Any) -> Any:
        return extend(alg, behind, p.outside)


@by_type
def widen(p: Any, alg: Any, within: Any, left: Any, right: Any, asymmetry: Any) -> Any:
    """Loops of u bases: those of u - 2 within, and those with two bases on the left or on the right."""


@by_type
def close(p: Any, alg: Any, so_far: Any, inner: Any, loop: Any) -> Any:
    """Besides, what is within a loop, closed by it."""


@by_type
def lengthen(p: Any, alg: Any, shorter: Any, others: Any) -> Any:
    """M2, M or R: with one more unpaired base of a multiloop, and what else there is of these bases."""


@by_type
def leave(p: Any, alg: Any, behind: Any) -> Any:
    """X with one more unpaired base before it."""
