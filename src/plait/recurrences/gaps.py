"""Pairwise alignment with gaps: which neighbours feed a cell.

A cell (i, j) stands for the query up to residue i and the target up to residue j. It has three values: ``h``
of all alignments that end there, and ``e`` and ``f`` of those that end in a gap, in which a residue of the
target (e) or of the query (f) has no partner. A cell is fed by ``diag``, the ``h`` of (i-1, j-1), by ``e``
and ``f`` as its left and upper neighbour hand them on, and by the score ``s`` of its two residues.

Whether the alignment is global or local, and what a score means, is up to the algebra and to the values at
the border; see Gotoh (1982), J Mol Biol 162:705, and GPU Computing Gems, chapter 11.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import by_type
from plait.algebras import choice, extend
from plait.lanes import equal, splat

__all__ = ["AffineGap", "LinearGap", "cell", "choices", "gaps", "in_lanes"]


class AffineGap(NamedTuple):
    """A gap costs ``open`` for its first residue and ``prolong`` for each further one.

    Both are values to extend by: negative scores, or weights below one.
    """

    open: Any
    prolong: Any

    @staticmethod
    def in_lanes(p: AffineGap, lanes: Any) -> Any:
        return AffineGap(splat(lanes, p.open), splat(lanes, p.prolong))

    @staticmethod
    def cell(p: AffineGap, alg: Any, diag: Any, e: Any, f: Any, s: Any) -> Any:
        return choice(alg, choice(alg, extend(alg, diag, s), f), e)

    @staticmethod
    def gaps(p: AffineGap, alg: Any, h: Any, e: Any, f: Any) -> Any:
        opened = extend(alg, h, p.open)
        return choice(alg, extend(alg, e, p.prolong), opened), choice(alg, extend(alg, f, p.prolong), opened)

    @staticmethod
    def choices(p: AffineGap, alg: Any, diag: Any, e: Any, s: Any, h: Any, e_next: Any, f_next: Any) -> Any:
        opened = extend(alg, h, p.open)
        return equal(h, extend(alg, diag, s)), equal(h, e), equal(e_next, opened), equal(f_next, opened)


class LinearGap(NamedTuple):
    """Every residue in a gap costs ``prolong``: gaps have no memory."""

    prolong: Any

    @staticmethod
    def in_lanes(p: LinearGap, lanes: Any) -> Any:
        return LinearGap(splat(lanes, p.prolong))

    @staticmethod
    def cell(p: LinearGap, alg: Any, diag: Any, e: Any, f: Any, s: Any) -> Any:
        return choice(alg, choice(alg, extend(alg, diag, s), f), e)

    @staticmethod
    def gaps(p: LinearGap, alg: Any, h: Any, e: Any, f: Any) -> Any:
        opened = extend(alg, h, p.prolong)
        return opened, opened

    @staticmethod
    def choices(p: LinearGap, alg: Any, diag: Any, e: Any, s: Any, h: Any, e_next: Any, f_next: Any) -> Any:
        return equal(h, extend(alg, diag, s)), equal(h, e), equal(h, h), equal(h, h)


@by_type
def in_lanes(p: Any, lanes: Any) -> Any:
    """The recurrence with its parameters in every lane."""


@by_type
def cell(p: Any, alg: Any, diag: Any, e: Any, f: Any, s: Any) -> Any:
    """The value ``h`` of a cell."""


@by_type
def gaps(p: Any, alg: Any, h: Any, e: Any, f: Any) -> Any:
    """What a cell hands on: ``e`` to the right, ``f`` down."""


@by_type
def choices(p: Any, alg: Any, diag: Any, e: Any, s: Any, h: Any, e_next: Any, f_next: Any) -> Any:
    """Masks of what was best: the diagonal or else ``e`` for ``h``; opening for ``e`` and ``f`` handed on."""
