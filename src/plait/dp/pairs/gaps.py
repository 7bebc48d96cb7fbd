"""Pairwise alignment with gaps: which neighbours feed a cell, in which states, and what ends there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.lang.algebras import choice, extend
from plait.lang.compile import by_type
from plait.lang.lanes import (
    equal,
    greater,
    load,
    maximum,
    minimum,
    narrow,
    select,
    splat,
    store,
    subtract_saturating,
    widen,
)


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


class EdgeEnds(NamedTuple):
    """Alignments end in the last row or column, where `plait.dp.pairs.lists.find_end` looks.

    `marks`, uint8, is what `plait.dp.pairs.lists.sweep_beside` asks for.
    """

    marks: Any

    @staticmethod
    def at_top(ends: EdgeEnds, lanes: Any) -> Any:
        return 0

    @staticmethod
    def with_floor(ends: EdgeEnds, lanes: Any, seen: Any, u: Any, s: Any) -> Any:
        return s

    @staticmethod
    def see(ends: EdgeEnds, lanes: Any, seen: Any, row: Any, v: Any, u: Any) -> Any:
        return seen

    @staticmethod
    def keep_best(ends: EdgeEnds, lanes: Any, kept: Any, seen: Any, at: Any) -> Any:
        return 0


class LocalEnds(NamedTuple):
    """Alignments begin and end in any cell; a gap's first residue costs `opened`, uint8; `marks` as before.

    Of two columns is known, in 16 bits: the value of the first one's cell, the best value of a row in them,
    and twice the earliest such row, with 1 more if it is not the first column's.
    """

    marks: Any
    opened: Any

    @staticmethod
    def at_top(ends: LocalEnds, lanes: Any) -> Any:
        none = splat(lanes, np.int16(0))
        return none, none, none

    @staticmethod
    def with_floor(ends: LocalEnds, lanes: Any, seen: Any, u: Any, s: Any) -> Any:
        # From 255 on a value lies so far above what a cell can lie below it that there is no floor.
        value, opened = narrow(u, seen[0]), splat(lanes, ends.opened)
        first, second = subtract_saturating(opened + u, value), subtract_saturating(opened + opened, value)
        return maximum(s[0], first), maximum(s[1], second)

    @staticmethod
    def see(ends: LocalEnds, lanes: Any, seen: Any, row: Any, v: Any, u: Any) -> Any:
        value, best, found = seen
        opened = splat(lanes, ends.opened)
        value = value + (widen(value, v) - widen(value, opened))
        more = widen(value, subtract_saturating(u, opened))
        here = splat(lanes, np.int16(2 * row)) + minimum(more, splat(lanes, np.int16(1)))
        better = greater(value + more, best)
        return value, maximum(best, value + more), select(better, here, found)

    @staticmethod
    def keep_best(ends: LocalEnds, lanes: Any, kept: Any, seen: Any, at: Any) -> Any:
        _, best, found = seen
        before, before_row, unit = load(lanes, kept, 0, 0), load(lanes, kept, 1, 0), splat(lanes, np.int16(1))
        row, column = found >> unit, splat(lanes, np.int16(at)) + (found & unit)
        # Of equal values the earlier row counts, and then what was seen before.
        ahead = select(equal(best, before), before_row - row, best - before)
        better = greater(ahead, before - before)
        store(lanes, kept, 0, 0, maximum(best, before))
        store(lanes, kept, 1, 0, select(better, row, before_row))
        store(lanes, kept, 2, 0, select(better, column, load(lanes, kept, 2, 0)))
        return 0


@by_type
def at_top(ends: Any, lanes: Any) -> Any:
    """What is seen of two columns before their first row."""


@by_type
def with_floor(ends: Any, lanes: Any, seen: Any, u: Any, s: Any) -> Any:
    """The scores `s` of the next row's two cells, or the least that they must lie above their diagonals.

    `u` is that of the first column's cell before.
    """


@by_type
def see(ends: Any, lanes: Any, seen: Any, row: Any, v: Any, u: Any) -> Any:
    """What is seen after `row`, with `v` of its first cell and `u` of its second."""


@by_type
def keep_best(ends: Any, lanes: Any, kept: Any, seen: Any, at: Any) -> Any:
    """Keep the best cell, if it is in the columns `at` and the next."""
