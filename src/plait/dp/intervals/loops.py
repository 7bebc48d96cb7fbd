"""What loops weigh: tables of values of an algebra, and what is read from them by position."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.lang.algebras import extend
from plait.lang.compile import shared

#: Letters: N, A, C, G, U, and what is beyond the ends of a sequence.
LETTERS, BEYOND = 6, 5
#: Pair types 1 to 6: CG, GC, GU, UG, AU, UA; 0 is none.
TYPES = 7
#: The most unpaired bases of a bulge or an interior loop, and the fewest of a hairpin.
LARGEST_LOOP, SMALLEST_HAIRPIN = 30, 3
#: Type of the pair (b, a) for that of (a, b).
REVERSED = np.array([0, 2, 1, 4, 3, 6, 5], np.int8)
#: Columns of `LoopWeights.inward` and of `outward`.
GENERIC, ONE_SIDED, TWO_THREE, BULGE, HAIRPIN, CLOSING = range(6)
STEM, EXTERIOR = 4, 5


class LoopWeights(NamedTuple):
    """Weights of loops, values of one algebra; `pair_types`, int8 (36,), by the codes of two letters.

    By the number of unpaired bases: `hairpin` (most + 1,), `bulge` and `interior` (31,); `asymmetry` (31,) by
    the difference of the sides. By pair types, outer and inner seen from within, and letters within: `stack`
    (7, 7), `one_one` (7, 7, 5, 5), `one_two` (7, 7, 5, 5, 5), `two_two` (7, 7, 5, 5, 5, 5). `inward`
    (7 * 36, 6): what a pair adds to the loop that it closes, by its type and the letters right of its left
    and left of its right base. `outward` (7 * 36, 6): what it adds to the loop around it, by the letters left
    and right of it. `special` (hairpins + 1,): weights of hairpins with a weight of their own.
    """

    pair_types: Any
    hairpin: Any
    bulge: Any
    interior: Any
    asymmetry: Any
    stack: Any
    one_one: Any
    one_two: Any
    two_two: Any
    inward: Any
    outward: Any
    special: Any


class Strands(NamedTuple):
    """Sequences of up to n bases, `group` of them side by side: base k of the g-th stands at k * group + g.

    `codes`, int8 ((n + 2) * group,), with one letter beyond either end: base k is at (k + 1) * group + g.
    `special`, int16 (3, n * group): the hairpin of 3, 4, 6 unpaired bases that begins at a base, or 0.
    `partners`, int32 (2, n * group): the lowest and the highest base that each may pair with.
    `stacked`, (n * group,): what a stack weighs besides for this base and the next one.
    `paired`, (2, n * group) or (2, 0): what a base weighs besides if it is paired, and the inverse of that.
    """

    codes: Any
    special: Any
    partners: Any
    stacked: Any
    paired: Any
    group: Any
    longest: Any


@shared
def letter(strands: Any, k: Any, g: Any) -> Any:
    """Code of base k of the g-th sequence, from -1 on."""
    return np.int64(strands.codes[(k + 1) * strands.group + g])


@shared
def pair_type(weights: Any, strands: Any, i: Any, j: Any, g: Any) -> Any:
    """Type of a pair, whether or not it is allowed."""
    return np.int64(weights.pair_types[letter(strands, i, g) * LETTERS + letter(strands, j, g)])


@shared
def allowed(strands: Any, i: Any, j: Any, g: Any) -> bool:
    """Whether constraints let i < j pair."""
    at, to = i * strands.group + g, j * strands.group + g
    partners = strands.partners
    return bool(partners[0, at] <= j <= partners[1, at] and partners[0, to] <= i <= partners[1, to])


@shared
def times_paired(strands: Any, alg: Any, row: Any, value: Any, i: Any, j: Any, g: Any) -> Any:
    """A value with what both bases of a pair weigh besides (row 0 of `paired`), or without (row 1)."""
    if strands.paired.shape[1] == 0:
        return value
    group = strands.group
    return extend(
        alg, extend(alg, value, strands.paired[row, i * group + g]), strands.paired[row, j * group + g]
    )


@shared
def inward_row(strands: Any, kind: Any, i: Any, j: Any, g: Any) -> Any:
    """Row of `inward` of a pair of a type."""
    return (kind * LETTERS + letter(strands, i + 1, g)) * LETTERS + letter(strands, j - 1, g)


@shared
def outward_row(strands: Any, kind: Any, i: Any, j: Any, g: Any) -> Any:
    """Row of `outward` of a pair of a type."""
    return (kind * LETTERS + letter(strands, i - 1, g)) * LETTERS + letter(strands, j + 1, g)


@shared
def hairpin_weight(weights: Any, strands: Any, alg: Any, row: Any, i: Any, j: Any, g: Any) -> Any:
    """Weight of the hairpin that a pair closes, of which the row of `inward` is given."""
    size = j - i - 1
    if size <= 6 and size != 5:
        found = strands.special[size // 2 - 1, i * strands.group + g]
        if found != 0:
            return weights.special[found]
    return extend(
        alg, weights.hairpin[size], weights.inward[row, BULGE if size == SMALLEST_HAIRPIN else HAIRPIN]
    )


@shared
def loop_weight(weights: Any, strands: Any, alg: Any, i: Any, j: Any, p: Any, q: Any, g: Any) -> Any:
    """Weight of the loop between an outer pair (i, j) and an inner one (p, q), both of which can pair."""
    outer, inner = pair_type(weights, strands, i, j, g), pair_type(weights, strands, q, p, g)
    left, right = p - i - 1, j - q - 1
    if (left <= 2 and right <= 2 and left * right != 0) or left + right <= 1:
        return small_loop(weights, strands, alg, outer, inner, i, j, p, q, g)
    size = left + right
    within, around = (
        inward_row(strands, outer, i, j, g),
        outward_row(strands, pair_type(weights, strands, p, q, g), p, q, g),
    )
    if left == 0 or right == 0:
        ends = extend(alg, weights.inward[within, BULGE], weights.outward[around, BULGE])
        return extend(alg, weights.bulge[size], ends)
    column = ONE_SIDED if left == 1 or right == 1 else TWO_THREE if size == 5 else GENERIC
    ends = extend(alg, weights.inward[within, column], weights.outward[around, column])
    difference = left - right if left > right else right - left
    return extend(alg, extend(alg, weights.interior[size], weights.asymmetry[difference]), ends)


@shared
def small_loop(
    weights: Any, strands: Any, alg: Any, outer: Any, inner: Any, i: Any, j: Any, p: Any, q: Any, g: Any
) -> Any:
    """Weight of a stack, a bulge of one base, or an interior loop of one or two bases on either side."""
    left, right = p - i - 1, j - q - 1
    if left == 0 and right == 0:
        group = strands.group
        soft = extend(alg, strands.stacked[i * group + g], strands.stacked[q * group + g])
        return extend(alg, weights.stack[outer, inner], soft)
    if left == 0 or right == 0:
        return extend(alg, weights.stack[outer, inner], weights.bulge[1])
    a, b = letter(strands, i + 1, g), letter(strands, j - 1, g)
    c, d = letter(strands, p - 1, g), letter(strands, q + 1, g)
    if left == 1 and right == 1:
        return weights.one_one[outer, inner, a, b]
    if left == 1:
        return weights.one_two[outer, inner, a, d, b]
    if right == 1:
        return weights.one_two[inner, outer, d, a, c]
    return weights.two_two[outer, inner, a, c, d, b]
