"""The ways in which what interval rows have kept came about, and the way back by them.

Every value is a choice between few ways, gone through in a fixed order. A structure follows one at every
step: the first with which they make a share of the value together. With all of it as the share, and a choice
that is one of the alternatives, that is a best way; with a random share, and sums, each has the probability
of its part.

All structures whose score is at most so far below the best one are found by the same ways, depth first: only
those are followed whose best completion is good enough, so none is in vain, and what is held is one structure
and the way to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.dp.intervals.loops import (
    CLOSING,
    EXTERIOR,
    LARGEST_LOOP,
    SMALLEST_HAIRPIN,
    STEM,
    as_stem,
    entry,
    hairpin_weight,
    inward,
    loop_weight,
    pair_type,
    times_paired,
)
from plait.dp.intervals.nearest_neighbor import leave
from plait.dp.intervals.rows import Walk, fill
from plait.lang.algebras import choice, extend
from plait.lang.compile import kernel, shared
from plait.lang.lanes import held

#: Signs of bases: unpaired, the first of a pair, and the last.
UNPAIRED, OPENING, CLOSED = 46, 40, 41
#: What a value is of: a pair, bases with a stem of a multiloop or more, and bases from one on, in no loop.
PAIR, STEMS, OUTSIDE = 0, 1, 2
#: Ways of a pair: a hairpin first, then loops with one pair within, then multiloops. Behind all is none.
_LOOPS, _MULTILOOPS, NONE = 1, 2, -1


@kernel
def walk_kernel(filled: Any, lengths: Any, shares: Any, left: Any, signs: Any) -> None:
    """Structures of all sequences, in brackets: `signs`, uint8 (group, n)."""
    walk_all(held(filled), lengths, shares, left, signs)


@kernel
def fold_kernel(given: Any, lengths: Any, shares: Any, left: Any, signs: Any) -> None:
    """Best structures of a `Sweep`, there and back: of short ones, calls take as long as the work.

    Without `lengths`, a part is worked out; with them, the way back follows.
    """
    sweep = held(given)
    fill(sweep)
    if lengths.size > 0:
        walk_all(sweep, lengths, shares, left, signs)


@shared
def walk_all(filled: Any, lengths: Any, shares: Any, left: Any, signs: Any) -> None:
    """As `walk_kernel`."""
    rule, alg, weights, strands, kept = filled.rule, filled.alg, filled.weights, filled.strands, filled.kept
    for g in range(strands.group):
        walk_sequence(Walk(rule, alg, weights, strands, kept, g, g), lengths[g], shares, left, signs)


@shared
def walk_sequence(walk: Any, n: Any, shares: Any, left: Any, signs: Any) -> None:
    """The structure of a sequence of n bases: `shares` (1, steps), what is `left`, int (3, n + 2)."""
    alg = walk.alg
    for k in range(n):
        signs[walk.lane, k] = UNPAIRED
    top, step = push(left, 0, OUTSIDE, 0, n), 0
    while top > 0:
        top -= 1
        kind, i, j = left[0, top], np.int64(left[1, top]), np.int64(left[2, top])
        if kind == PAIR:
            signs[walk.lane, i], signs[walk.lane, j] = OPENING, CLOSED
        asked = extend(alg, value_of(walk, kind, i, j), shares[0, step])
        step += 1
        total, stem, rest = alg.zero, (-1, -1), (STEMS, -1, -1)
        at, done = (0, 0, 0, alg.one), False
        # Sums in another order can fall short by their rounding: the last way that there is.
        while not done:
            at, value, first, behind = next_way(walk, kind, i, j, at, alg.zero)
            done = at[0] == NONE
            if not done:
                total, stem, rest = choice(alg, total, value), first, behind
                done = total >= asked
        top = push(left, push(left, top, *rest), PAIR, *stem)


@shared
def push(left: Any, top: Any, kind: Any, i: Any, j: Any) -> Any:
    """One more to go back from, if there are any bases of it, and how many there are."""
    if i < 0 or i >= j:
        return top
    left[0, top], left[1, top], left[2, top] = kind, i, j
    return top + 1


@shared
def closed_at(walk: Any, i: Any, j: Any) -> Any:
    """C of a cell."""
    return walk.kept.closed[0, walk.kept.starts[i] + j * walk.kept.step + walk.lane]


@shared
def multi_at(walk: Any, i: Any, j: Any) -> Any:
    """M of a cell, of which the first base is at most one behind the last."""
    return walk.kept.multi[0, walk.kept.starts[i] + j * walk.kept.step + walk.lane]


@shared
def exterior_at(walk: Any, i: Any) -> Any:
    """X of a base."""
    return walk.kept.exterior[0, i * walk.strands.group + walk.lane]


@shared
def value_of(walk: Any, kind: Any, i: Any, j: Any) -> Any:
    """What the ways of something make together."""
    if kind == PAIR:
        return times_paired(walk.strands, walk.alg, 1, closed_at(walk, i, j), i, j, walk.g)
    return multi_at(walk, i, j) if kind == STEMS else exterior_at(walk, i)


@shared
def next_way(walk: Any, kind: Any, i: Any, j: Any, at: Any, enough: Any) -> Any:
    """The next way that is not worse than `enough`, behind another one: zeros and one at first.

    Where it stands (number or `NONE`, two bases, and what is before a stem), its value, the pair, and what
    else is to be gone back from, -1 if nothing.
    """
    if kind == PAIR:
        return way_of_pair(walk, i, j, at, enough)
    return way_of_stems(walk, i, j, at, enough) if kind == STEMS else way_outside(walk, i, j, at, enough)


@shared
def way_outside(walk: Any, i: Any, n: Any, at: Any, enough: Any) -> Any:
    """Outside of all loops, base i is unpaired, or a stem begins there."""
    alg, first, one = walk.alg, at[1], walk.alg.one
    if at[0] == 0:
        first, value = i + SMALLEST_HAIRPIN + 1, leave(walk.rule, alg, exterior_at(walk, i + 1))
        if value >= enough:
            return (1, first, 0, one), value, (-1, -1), (OUTSIDE, i + 1, n)
    for k in range(first, n):
        value = closed_at(walk, i, k)
        if value != alg.zero:
            end = as_stem(walk.weights, walk.strands, EXTERIOR, i, k, walk.g)
            value = extend(alg, value, extend(alg, end, exterior_at(walk, k + 1)))
            if value >= enough:
                return (1, k + 1, 0, one), value, (i, k), (OUTSIDE, k + 1, n)
    return (NONE, 0, 0, one), alg.zero, (-1, -1), (OUTSIDE, -1, n)


@shared
def way_of_stems(walk: Any, i: Any, j: Any, at: Any, enough: Any) -> Any:
    """Within a multiloop, base i is unpaired, or a stem begins there, alone or followed by others."""
    alg, unpaired = walk.alg, walk.rule.unpaired
    number, k, _, after = at
    if number == 0:
        number, k, value = 1, j, extend(alg, multi_at(walk, i + 1, j), unpaired)
        if value >= enough:
            return (1, k, 0, after), value, (-1, -1), (STEMS, i + 1, j)
    while k > i + SMALLEST_HAIRPIN:
        value = closed_at(walk, i, k)
        if value != alg.zero:
            stem = extend(alg, value, as_stem(walk.weights, walk.strands, STEM, i, k, walk.g))
            value = extend(alg, stem, after)
            if number == 1 and value >= enough:
                return (2, k, 0, after), value, (i, k), (STEMS, -1, -1)
            value, rest = extend(alg, stem, multi_at(walk, k + 1, j)), multi_at(walk, k + 1, j)
            if rest != alg.zero and value >= enough:
                return (1, k - 1, 0, extend(alg, after, unpaired)), value, (i, k), (STEMS, k + 1, j)
        number, k, after = 1, k - 1, extend(alg, after, unpaired)
    return (NONE, 0, 0, after), alg.zero, (-1, -1), (STEMS, -1, -1)


@shared
def way_of_pair(walk: Any, i: Any, j: Any, at: Any, enough: Any) -> Any:
    """A pair closes a hairpin, a loop with another pair, or the leftmost stem of several and what follows."""
    alg, weights, strands, g = walk.alg, walk.weights, walk.strands, walk.g
    number, p, q, before = at
    row = inward(strands, pair_type(weights, strands, i, j, g), i, j, g)
    if number == 0:
        number, p, q, value = _LOOPS, i + 1, j - 1, hairpin_weight(weights, strands, alg, row, i, j, g)
        if value >= enough:
            return (number, p, q, before), value, (-1, -1), (STEMS, -1, -1)
    while number == _LOOPS and p < min(i + LARGEST_LOOP + 2, j - SMALLEST_HAIRPIN - 1):
        while q > max(p + SMALLEST_HAIRPIN, j - LARGEST_LOOP - 2 + p - i - 1):
            value, q = closed_at(walk, p, q), q - 1
            if value != alg.zero:
                value = extend(alg, value, loop_weight(weights, strands, alg, i, j, p, q + 1, g))
                if value >= enough:
                    return (number, p, q, before), value, (p, q + 1), (STEMS, -1, -1)
        p, q = p + 1, j - 1
    if number == _LOOPS:
        number, p, q, before = _MULTILOOPS, i + 1, 0, extend(alg, entry(weights, row + CLOSING), alg.one)
    # M has the best of all stems from a base on.
    while p < j - 2 * SMALLEST_HAIRPIN - 2 and extend(alg, before, multi_at(walk, p, j - 1)) >= enough:
        for k in range(max(q, p + SMALLEST_HAIRPIN + 1), j - SMALLEST_HAIRPIN - 1):
            value, rest = closed_at(walk, p, k), multi_at(walk, k + 1, j - 1)
            if value != alg.zero and rest != alg.zero:
                stem = extend(alg, value, as_stem(weights, strands, STEM, p, k, g))
                value = extend(alg, extend(alg, stem, before), rest)
                if value >= enough:
                    return (number, p, k + 1, before), value, (p, k), (STEMS, k + 1, j - 1)
        p, q, before = p + 1, 0, extend(alg, before, walk.rule.unpaired)
    return (NONE, 0, 0, before), alg.zero, (-1, -1), (STEMS, -1, -1)


class Search(NamedTuple):
    """What is gone through, by the ways of `walk`.

    `nodes`, int64 (4, ...): what is to be completed, kind, first and last base, and the next one, or -1.
    `levels`, int64 (5, ...): at every step the node that is completed, the way and two bases of where it
    stands, and how many nodes there were; `before`, what is before a stem there. `reached`, float64: best
    scores of completions at every step. `depth`, int64 (1,): the step that comes next, -1 when all is done.
    """

    walk: Any
    nodes: Any
    levels: Any
    before: Any
    reached: Any
    depth: Any


@kernel
def suboptimal_kernel(search: Any, least: Any, signs: Any, structures: Any, scores: Any) -> int:
    """Find more structures of at least a score, up to as many as there is room for; how many.

    `structures`, uint8 (most, n), as brackets, and `scores`, float64 (most,), are written; `signs`, uint8
    (n,), is the structure so far. It goes on where it stopped.
    """
    walk, nodes, levels, before, reached, depth = search
    count = 0
    while depth[0] >= 0 and count < scores.size:
        level = depth[0]
        node = levels[0, level]
        if node < 0:
            if reached[level] >= least:
                for k in range(signs.size):
                    structures[count, k] = signs[k]
                scores[count] = reached[level]
                count += 1
            depth[0] = level - 1
            continue
        kind, i, j = nodes[0, node], nodes[1, node], nodes[2, node]
        if kind == PAIR:
            signs[i], signs[j] = OPENING, CLOSED
        others = reached[level] - value_of(walk, kind, i, j)
        at = levels[1, level], levels[2, level], levels[3, level], before[level]
        at, value, stem, rest = next_way(walk, kind, i, j, at, least - others)
        if at[0] != NONE:
            levels[1, level], levels[2, level], levels[3, level], before[level] = at
            go_on(search, level, others + value, stem, rest)
        else:
            if kind == PAIR:
                signs[i], signs[j] = UNPAIRED, UNPAIRED
            depth[0] = level - 1
    return count


@shared
def go_on(search: Any, level: Any, score: Any, stem: Any, rest: Any) -> None:
    """One level on: a pair and something behind it are to be completed, each if there are any bases of it."""
    walk, nodes, levels, before, reached, depth = search
    last, count = nodes[3, levels[0, level]], levels[4, level]
    for kind, i, j in (rest, (PAIR, stem[0], stem[1])):
        if 0 <= i < j:
            nodes[0, count], nodes[1, count], nodes[2, count], nodes[3, count] = kind, i, j, last
            last, count = count, count + 1
    after = level + 1
    levels[0, after], levels[1, after], levels[2, after], levels[3, after] = last, 0, 0, 0
    levels[4, after], before[after], reached[after] = count, walk.alg.one, score
    depth[0] = after
