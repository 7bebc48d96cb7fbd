"""Pairwise alignment with gaps: which neighbours feed a cell, and in which states."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.algebras import choice, extend
from plait.lang.compile import by_type
from plait.lang.lanes import equal, maximum, splat, subtract_saturating


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


class GapDifferences(NamedTuple):
    """`AffineGap` as differences between neighbouring cells, in numbers without a sign.

    ``h`` of a cell is how much it lies above that on its diagonal, and twice the cost of opening; `u` and `v`
    are how much it lies above the cells left of it and over it, `e` and `f` how much what it hands on lies
    above itself, and the cost of opening each. Scores have twice that cost added. `over` is what opening
    costs more than prolonging, which is not negative.
    """

    over: Any

    @staticmethod
    def in_lanes(p: GapDifferences, lanes: Any) -> Any:
        return GapDifferences(splat(lanes, p.over))

    @staticmethod
    def differences(p: GapDifferences, u: Any, v: Any, e: Any, f: Any, s: Any) -> Any:
        right, down = e + v, f + u
        h = maximum(maximum(s, right), down)
        handed = subtract_saturating(right + p.over, h), subtract_saturating(down + p.over, h)
        return h, right, h - v, h - u, handed[0], handed[1]

    @staticmethod
    def choices(
        p: GapDifferences, alg: Any, diag: Any, right: Any, s: Any, h: Any, e_next: Any, f_next: Any
    ) -> Any:
        return equal(h, s), equal(h, right), equal(e_next, alg.zero), equal(f_next, alg.zero)


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
def differences(p: Any, u: Any, v: Any, e: Any, f: Any, s: Any) -> Any:
    """``h`` of a cell and of coming to it by ``e``, its `u` and `v`, what it hands to the right and down.

    `u` is that of the cell above, `v` that of the cell on the left, `e` and `f` are what they hand on.
    """


@by_type
def choices(p: Any, alg: Any, diag: Any, e: Any, s: Any, h: Any, e_next: Any, f_next: Any) -> Any:
    """Masks of what was best: the diagonal or else ``e`` for ``h``; opening for ``e`` and ``f`` handed on."""


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
