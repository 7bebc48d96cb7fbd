"""What loops weigh: tables of values of an algebra, and what is read from them by position."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from plait.lang.algebras import extend
from plait.lang.compile import kernel, shared
from plait.lang.lanes import OneLane, held, load

#: Letters: N, A, C, G, U, and what is beyond the ends of a sequence.
LETTERS, BEYOND = 6, 5
#: Pair types 1 to 6: CG, GC, GU, UG, AU, UA; 0 is none.
TYPES = 7
#: The most unpaired bases of a bulge or an interior loop, and the fewest of a hairpin.
LARGEST_LOOP, SMALLEST_HAIRPIN = 30, 3
#: Type of the pair (b, a) for that of (a, b).
REVERSED = np.array([0, 2, 1, 4, 3, 6, 5], np.int8)
#: Columns of `LoopTables.inward` and of `outward`.
GENERIC, ONE_SIDED, BULGE, TWO_THREE, HAIRPIN, CLOSING = range(6)
STEM, EXTERIOR = 4, 5
#: The first columns of both are of loops with two ends.
ENDS = 4
#: Interior loops that may weigh by themselves; both sides of one are one number, the left times so many.
OWN, SIDE = 19, 32


class LoopTables(NamedTuple):
    """Weights of loops, values of one algebra; `pair_types`, int8 (36,), by the codes of two letters.

    By the number of unpaired bases: `hairpin` (most + 1,), `bulge`, `one_sided`, of interior loops with one
    base on a side, and `interior` (31,); `asymmetry` (31,) by the difference of the sides. `own` (19,): of
    interior loops that weigh by themselves, for which the last two have zero. By pair types, outer and inner
    seen from within, and letters within: `stack` (7, 7), `none_one` (7, 7, 5), `one_one` (7, 7, 5, 5),
    `one_two` (7, 7, 5, 5, 5), `two_two` (7, 7, 5, 5, 5, 5). `inward` (7 * 36, 6): what a pair adds to the
    loop that it closes, by its type and the letters right of its left and left of its right base. `outward`
    (7 * 36, 6): what it adds to the loop around it, by the letters left and right of it. `special`
    (hairpins + 1,): weights of hairpins with a weight of their own.
    """

    pair_types: Any
    hairpin: Any
    bulge: Any
    one_sided: Any
    interior: Any
    asymmetry: Any
    own: Any
    stack: Any
    none_one: Any
    one_one: Any
    one_two: Any
    two_two: Any
    inward: Any
    outward: Any
    special: Any

    def packed(
        self, hairpins: Sequence[Sequence[int]] = (), own: Sequence[tuple[int, int]] = ()
    ) -> LoopWeights:
        """The same in one row; codes of hairpins, and sides of interior loops, that weigh by themselves."""
        tables = [*self[2:], self.hairpin]
        values = np.concatenate([np.reshape(table, -1) for table in tables])
        hairpin = np.int64(values.size - len(self.hairpin))
        keys = np.zeros((2, 1 + max(len(hairpins), len(own))), np.int32)
        keys[0, 1 : 1 + len(hairpins)] = [reduce(lambda key, code: 8 * key + code, h, 1) for h in hairpins]
        keys[1, 0] = len(own)
        keys[1, 1 : 1 + len(own)] = [SIDE * left + right for left, right in own]
        types = np.reshape(self.pair_types, (1, -1))
        return LoopWeights(types, values.reshape(1, -1), hairpin, keys)


#: Where tables begin in a row: those by a number of bases, and then those by pairs and letters.
BY_BULGE, BY_ONE_SIDED, BY_SIZE, BY_DIFFERENCE = 0, 31, 62, 93
_OWN, _STACK, _NONE_ONE, _ONE_ONE, _ONE_TWO, _TWO_TWO, _INWARD, _OUTWARD, _SPECIAL = accumulate(
    (4 * 31, OWN, *(TYPES**2 * 5**letters for letters in range(5)), *(TYPES * LETTERS**2 * 6,) * 2)
)


class LoopWeights(NamedTuple):
    """`LoopTables` in one row, `values` (1, ...); that of `hairpin` begins at a place.

    `keys`, int32 (2, ...): from 1 on letters of each special hairpin, three bits each behind a one; 0 is
    none. In the second row how many interior loops weigh by themselves, and their sides.
    A kernel has so few arrays to be told of, and the places in them need no check.
    """

    pair_types: Any
    values: Any
    hairpin: Any
    keys: Any


class Strands(NamedTuple):
    """Sequences of up to n bases, `group` of them side by side: base k of the g-th stands at k * group + g.

    `codes`, int8 (1, (n + 4) * group), with letters beyond either end: base k is at (k + 1) * group + g.
    `partners`, int32 (2, (n + 4) * group): the lowest and the highest base that each may pair with.
    `stacked`, (1, (n + 4) * group): what a stack weighs besides for this base and the next one.
    `paired`, (2, (n + 4) * group): what a base weighs besides if it is paired, and its inverse.
    The last three have no columns where nothing is known, or one on a GPU.
    """

    codes: Any
    partners: Any
    stacked: Any
    paired: Any
    group: Any
    longest: Any


@shared
def entry(weights: Any, at: Any) -> Any:
    """A weight."""
    return load(OneLane(1), weights.values, 0, at)


@shared
def own_loops(weights: Any) -> Any:
    """How many interior loops weigh by themselves."""
    return load(OneLane(1), weights.keys, 1, 0)


@shared
def own_loop(weights: Any, z: Any) -> Any:
    """Sides of one of them, and what it weighs but for its ends."""
    sides = np.int64(load(OneLane(1), weights.keys, 1, z + 1))
    return sides // SIDE, sides % SIDE, entry(weights, _OWN + z)


@shared
def letter(strands: Any, k: Any, g: Any) -> Any:
    """Code of base k of the g-th sequence, from -1 on."""
    return np.int64(load(OneLane(1), strands.codes, 0, (k + 1) * strands.group + g))


@shared
def pair_type(weights: Any, strands: Any, i: Any, j: Any, g: Any) -> Any:
    """Type of a pair, whether or not it is allowed."""
    at = letter(strands, i, g) * LETTERS + letter(strands, j, g)
    return np.int64(load(OneLane(1), weights.pair_types, 0, at))


@shared
def allowed(strands: Any, i: Any, j: Any, g: Any) -> bool:
    """Whether constraints let i < j pair."""
    if strands.partners.shape[1] <= 1:
        return True
    one, partners = OneLane(1), strands.partners
    at, to = i * strands.group + g, j * strands.group + g
    after = (load(one, partners, 0, at) <= j) & (j <= load(one, partners, 1, at))
    return bool(after & (load(one, partners, 0, to) <= i) & (i <= load(one, partners, 1, to)))


@shared
def times_paired(strands: Any, alg: Any, row: Any, value: Any, i: Any, j: Any, g: Any) -> Any:
    """A value with what both bases of a pair weigh besides (row 0 of `paired`), or without (row 1)."""
    if strands.paired.shape[1] <= 1:
        return value
    one, group = OneLane(1), strands.group
    first, last = load(one, strands.paired, row, i * group + g), load(one, strands.paired, row, j * group + g)
    return extend(alg, extend(alg, value, first), last)


@shared
def inward(strands: Any, kind: Any, i: Any, j: Any, g: Any) -> Any:
    """Where the row begins of what a pair of a type adds to the loop that it closes."""
    row = (kind * LETTERS + letter(strands, i + 1, g)) * LETTERS + letter(strands, j - 1, g)
    return _INWARD + row * 6


@shared
def outward(strands: Any, kind: Any, i: Any, j: Any, g: Any) -> Any:
    """The same for the loop around it."""
    row = (kind * LETTERS + letter(strands, i - 1, g)) * LETTERS + letter(strands, j + 1, g)
    return _OUTWARD + row * 6


@shared
def as_stem(weights: Any, strands: Any, column: Any, i: Any, j: Any, g: Any) -> Any:
    """What a pair adds to the loop around it, by its column: `STEM` of a multiloop, for one."""
    return entry(weights, outward(strands, pair_type(weights, strands, i, j, g), i, j, g) + column)


@shared
def hairpin_weight(weights: Any, strands: Any, alg: Any, row: Any, i: Any, j: Any, g: Any) -> Any:
    """Weight of the hairpin that a pair closes; `row` is from `inward`."""
    size = j - i - 1
    if size <= 6 and size != 5:
        key, found = 1, 0
        for k in range(i, j + 1):
            key = 8 * key + letter(strands, k, g)
        for z in range(1, weights.keys.shape[1]):
            if load(OneLane(1), weights.keys, 0, z) == key:
                found = z
        if found != 0:
            return entry(weights, _SPECIAL + found)
    ends = entry(weights, row + (BULGE if size == SMALLEST_HAIRPIN else HAIRPIN))
    return extend(alg, entry(weights, weights.hairpin + size), ends)


@shared
def loop_weight(weights: Any, strands: Any, alg: Any, i: Any, j: Any, p: Any, q: Any, g: Any) -> Any:
    """Weight of the loop between an outer pair (i, j) and an inner one (p, q), both of which can pair."""
    outer, inner = pair_type(weights, strands, i, j, g), pair_type(weights, strands, q, p, g)
    left, right = p - i - 1, j - q - 1
    if (left <= 2 and right <= 2 and left * right != 0) or left + right <= 1:
        return small_loop(weights, strands, alg, outer, inner, i, j, p, q, g)
    size, least = min(left + right, LARGEST_LOOP), min(left, right)
    column = BULGE if least == 0 else ONE_SIDED if least == 1 else TWO_THREE if size == 5 else GENERIC
    within = entry(weights, inward(strands, outer, i, j, g) + column)
    ends = extend(alg, within, as_stem(weights, strands, column, p, q, g))
    if least <= 1:
        return extend(alg, entry(weights, (BY_BULGE if least == 0 else BY_ONE_SIDED) + size), ends)
    if left == right:
        left = right = min(left, LARGEST_LOOP // 2)
    for z in range(own_loops(weights)):
        own = own_loop(weights, z)
        if own[0] == left and own[1] == right:
            return extend(alg, own[2], ends)
    by_difference = entry(weights, BY_DIFFERENCE + min(max(left, right) - least, LARGEST_LOOP))
    return extend(alg, extend(alg, entry(weights, BY_SIZE + size), by_difference), ends)


@shared
def loop_score(
    weights: Any, strands: Any, rule: Any, alg: Any, partners: Any, b: Any, i: Any, j: Any, g: Any
) -> Any:
    """Score of the loop within a pair of a structure, `partners[b]`, or of what is in none, from -1 to n."""
    closed, inner, p, k = i >= 0, 0, 0, i + 1
    total, q = alg.one, np.int64(0)
    while k < j:
        if partners[b, k] > k:
            inner, p, q = inner + 1, k, np.int64(partners[b, k])
            total = extend(alg, total, as_stem(weights, strands, STEM if closed else EXTERIOR, p, q, g))
            k = q
        else:
            total = extend(alg, total, rule.unpaired if closed else rule.outside)
        k += 1
    if not closed:
        return total
    row = inward(strands, pair_type(weights, strands, i, j, g), i, j, g)
    if inner == 0:
        return hairpin_weight(weights, strands, alg, row, i, j, g)
    if inner > 1:
        return extend(alg, total, entry(weights, row + CLOSING))
    total, size = loop_weight(weights, strands, alg, i, j, p, q, g), p - i + j - q - 2
    if size > LARGEST_LOOP:
        # Recurrences have no such loops; they cost as much more as longer hairpins do.
        largest = entry(weights, weights.hairpin + LARGEST_LOOP)
        total = extend(alg, total, entry(weights, weights.hairpin + size) - largest)
    return total


@kernel
def score_kernel(
    rule: Any, alg: Any, weights: Any, strands: Any, lengths: Any, partners: Any, scores: Any
) -> None:
    """Scores, float64 (sequences,), of a structure of each of some sequences that are laid out apart."""
    # As folding has them, so that what it calls, too, is compiled once.
    loops, laid_out = held(weights), held(strands)
    for b in range(lengths.size):
        g, n = b * strands.longest, lengths[b]
        total = loop_score(loops, laid_out, rule, alg, partners, b, -1, n, g)
        for i in range(n):
            if partners[b, i] > i:
                j = np.int64(partners[b, i])
                total = extend(alg, total, loop_score(loops, laid_out, rule, alg, partners, b, i, j, g))
        scores[b] = total


@shared
def small_loop(
    weights: Any, strands: Any, alg: Any, outer: Any, inner: Any, i: Any, j: Any, p: Any, q: Any, g: Any
) -> Any:
    """Weight of a stack, a bulge of one base, or an interior loop of one or two bases on either side."""
    left, right = p - i - 1, j - q - 1
    both = outer * TYPES + inner
    if left == 0 and right == 0:
        stack, one, group = entry(weights, _STACK + both), OneLane(1), strands.group
        if strands.stacked.shape[1] <= 1:
            return stack
        soft = load(one, strands.stacked, 0, i * group + g), load(one, strands.stacked, 0, q * group + g)
        return extend(alg, stack, extend(alg, soft[0], soft[1]))
    a, b = letter(strands, i + 1, g), letter(strands, j - 1, g)
    if right == 0:
        return entry(weights, _NONE_ONE + both * 5 + a)
    if left == 0:
        return entry(weights, _NONE_ONE + (inner * TYPES + outer) * 5 + b)
    c, d = letter(strands, p - 1, g), letter(strands, q + 1, g)
    if left == 1 and right == 1:
        return entry(weights, _ONE_ONE + (both * 5 + a) * 5 + b)
    if left == 1:
        return entry(weights, _ONE_TWO + ((both * 5 + a) * 5 + d) * 5 + b)
    if right == 1:
        return entry(weights, _ONE_TWO + (((inner * TYPES + outer) * 5 + d) * 5 + a) * 5 + c)
    return entry(weights, _TWO_TWO + (((both * 5 + a) * 5 + c) * 5 + d) * 5 + b)
