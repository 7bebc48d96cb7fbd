"""The way back through what interval rows have kept: a best structure, or one drawn at random.

At every step the ways in which a value came about are gone through in a fixed order, until what they make
together reaches a share of the value. With all of it as the share, and a choice that is one of the
alternatives, that is a best way; with a random share, and sums, each way has the probability of its part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.intervals.loops import (
    CLOSING,
    EXTERIOR,
    LARGEST_LOOP,
    SMALLEST_HAIRPIN,
    STEM,
    hairpin_weight,
    inward,
    inward_row,
    loop_weight,
    outward,
    outward_row,
    pair_type,
    times_paired,
)
from plait.dp.intervals.nearest_neighbor import close, leave
from plait.dp.intervals.rows import fill
from plait.lang.algebras import extend
from plait.lang.compile import kernel, shared

#: Signs of bases: unpaired, the first of a pair, and the last.
UNPAIRED, OPENING, CLOSED = 46, 40, 41
#: What is still to be gone back from: structures whose ends pair, and those of a stem or more.
_CLOSED, _MULTI = 0, 1


class Walk(NamedTuple):
    """The g-th sequence, the lane-th of what is kept; `shares` (1, steps), what is `left`, int (3, n + 2)."""

    rule: Any
    alg: Any
    weights: Any
    strands: Any
    kept: Any
    shares: Any
    left: Any
    g: Any
    lane: Any


@kernel
def walk_kernel(filled: Any, lengths: Any, shares: Any, left: Any, signs: Any) -> None:
    """Structures of all sequences, in brackets: `signs`, uint8 (group, n)."""
    walk_all(filled, lengths, shares, left, signs)


@kernel
def fold_kernel(given: Any, lengths: Any, shares: Any, left: Any, signs: Any) -> None:
    """Best structures of a `Sweep`, there and back: of short ones, calls take as long as the work.

    Without `lengths`, a part is worked out; with them, the way back follows.
    """
    fill(given)
    if lengths.size > 0:
        walk_all(given, lengths, shares, left, signs)


@shared
def walk_all(filled: Any, lengths: Any, shares: Any, left: Any, signs: Any) -> None:
    """As `walk_kernel`."""
    rule, alg, weights, strands, kept = filled.rule, filled.alg, filled.weights, filled.strands, filled.kept
    for g in range(strands.group):
        walk_sequence(Walk(rule, alg, weights, strands, kept, shares, left, g, g), lengths[g], signs)


@shared
def walk_sequence(walk: Any, n: Any, signs: Any) -> None:
    """The structure of one sequence of n bases."""
    left = walk.left
    for k in range(n):
        signs[walk.lane, k] = UNPAIRED
    step = 0
    i = 0
    while i < n:
        k = exterior_stem(walk, i, n, step)
        step += 1
        if k < 0:
            i += 1
            continue
        left[0, 0], left[1, 0], left[2, 0] = _CLOSED, i, k
        step = walk_back(walk, signs, step)
        i = k + 1


@shared
def walk_back(walk: Any, signs: Any, step: Any) -> Any:
    """Go back from the pair that is left, and give the number of the next step."""
    left, top = walk.left, 1
    while top > 0:
        top -= 1
        kind, i, j = left[0, top], left[1, top], left[2, top]
        if kind == _CLOSED:
            signs[walk.lane, i], signs[walk.lane, j] = OPENING, CLOSED
            top = from_closed(walk, i, j, step, top)
        else:
            top = from_multi(walk, i, j, step, top)
        step += 1
    return step


@shared
def closed_at(walk: Any, i: Any, j: Any) -> Any:
    """C of a cell."""
    return walk.kept.closed[0, walk.kept.starts[i] + j * walk.kept.step + walk.lane]


@shared
def multi_at(walk: Any, i: Any, j: Any) -> Any:
    """M of a cell, of which the first base is at most one behind the last."""
    return walk.kept.multi[0, walk.kept.starts[i] + j * walk.kept.step + walk.lane]


@shared
def around(walk: Any, i: Any, j: Any, column: Any) -> Any:
    """What a pair adds to the loop around it."""
    row = outward_row(walk.strands, pair_type(walk.weights, walk.strands, i, j, walk.g), i, j, walk.g)
    return outward(walk.weights, row, column)


@shared
def exterior_stem(walk: Any, i: Any, n: Any, step: Any) -> Any:
    """Last base of a stem that begins at i outside of all loops; -1 if i is unpaired."""
    alg, group, rows = walk.alg, walk.strands.group, walk.kept.exterior
    asked = extend(alg, rows[0, i * group + walk.lane], walk.shares[0, step])
    total = leave(walk.rule, alg, rows[0, (i + 1) * group + walk.lane])
    found = -1
    if total >= asked:
        return found
    for k in range(i + SMALLEST_HAIRPIN + 1, n):
        value = closed_at(walk, i, k)
        if value != alg.zero:
            found = k
            behind = extend(alg, around(walk, i, k, EXTERIOR), rows[0, (k + 1) * group + walk.lane])
            total = close(walk.rule, alg, total, value, behind)
            if total >= asked:
                break
    return found


@shared
def push(left: Any, top: Any, kind: Any, i: Any, j: Any) -> Any:
    """One more to go back from."""
    left[0, top], left[1, top], left[2, top] = kind, i, j
    return top + 1


@shared
def from_closed(walk: Any, i: Any, j: Any, step: Any, top: Any) -> Any:
    """What a pair closes; how much is left then."""
    alg, weights, strands, g = walk.alg, walk.weights, walk.strands, walk.g
    asked = extend(alg, closed_at(walk, i, j), walk.shares[0, step])
    asked = times_paired(strands, alg, 1, asked, i, j, g)
    row = inward_row(strands, pair_type(weights, strands, i, j, g), i, j, g)
    total = hairpin_weight(weights, strands, alg, row, i, j, g)
    if total >= asked:
        return top
    a, b = -1, -1
    for p in range(i + 1, min(i + LARGEST_LOOP + 2, j - SMALLEST_HAIRPIN - 1)):
        for q in range(j - 1, max(p + SMALLEST_HAIRPIN, j - LARGEST_LOOP - 2 + p - i - 1), -1):
            value = closed_at(walk, p, q)
            if value != alg.zero:
                a, b = p, q
                total = close(walk.rule, alg, total, value, loop_weight(weights, strands, alg, i, j, p, q, g))
                if total >= asked:
                    return push(walk.left, top, _CLOSED, a, b)
    return from_multiloop(
        walk, i, j, (total, asked), (a, b), extend(alg, inward(weights, row, CLOSING), alg.one), top
    )


@shared
def from_multiloop(walk: Any, i: Any, j: Any, so_far: Any, found: Any, before: Any, top: Any) -> Any:
    """The leftmost stem within a pair and the stems behind it; `found` is the last loop of two pairs."""
    alg, rule = walk.alg, walk.rule
    total, asked = so_far
    a, b = found
    behind = False
    for p in range(i + 1, j - 2 * SMALLEST_HAIRPIN - 2):
        for k in range(p + SMALLEST_HAIRPIN + 1, j - SMALLEST_HAIRPIN - 1):
            value = closed_at(walk, p, k)
            rest = multi_at(walk, k + 1, j - 1)
            if value != alg.zero and rest != alg.zero:
                a, b, behind = p, k, True
                stem = extend(alg, extend(alg, value, around(walk, p, k, STEM)), before)
                total = close(rule, alg, total, stem, rest)
                if total >= asked:
                    return push(walk.left, push(walk.left, top, _MULTI, k + 1, j - 1), _CLOSED, p, k)
        before = extend(alg, before, rule.unpaired)
    # Sums in another order can fall short by their rounding: the last way there was, or a hairpin.
    if behind:
        top = push(walk.left, top, _MULTI, b + 1, j - 1)
    return push(walk.left, top, _CLOSED, a, b) if a >= 0 else top


@shared
def from_multi(walk: Any, i: Any, j: Any, step: Any, top: Any) -> Any:
    """The leftmost of a stem or more, and what is behind it."""
    alg, rule = walk.alg, walk.rule
    asked = extend(alg, multi_at(walk, i, j), walk.shares[0, step])
    total = extend(alg, multi_at(walk, i + 1, j), rule.unpaired)
    if total >= asked:
        return push(walk.left, top, _MULTI, i + 1, j)
    after = alg.one
    a, behind = -1, False
    for k in range(j, i + SMALLEST_HAIRPIN, -1):
        value = closed_at(walk, i, k)
        if value != alg.zero:
            stem = extend(alg, value, around(walk, i, k, STEM))
            a, behind = k, False
            total = close(rule, alg, total, stem, after)
            if total >= asked:
                break
            rest = multi_at(walk, k + 1, j)
            if rest != alg.zero:
                behind = True
                total = close(rule, alg, total, stem, rest)
                if total >= asked:
                    break
        after = extend(alg, after, rule.unpaired)
    if a < 0:
        return push(walk.left, top, _MULTI, i + 1, j)
    if behind:
        top = push(walk.left, top, _MULTI, a + 1, j)
    return push(walk.left, top, _CLOSED, i, a)
