"""Two sequences that overlap end to end: the shift that explains them best, and their consensus.

The second sequence is laid along the first one, `shift` places from its start, for every shift that lets
enough places overlap; what of the second lies before the start of the first, and what of the first lies
behind the end of the second, belongs to neither. Most shifts are passed over by counting the places that
differ, a group of lanes at a time; of the others the logarithm of their odds is added up place by place, from
tables by the qualities of both letters.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from plait._jit import shared
from plait.lanes import equal, load, mask_bits, population

__all__ = [
    "AMBIGUOUS",
    "APART",
    "MERGED",
    "ConsensusTables",
    "OverlapRules",
    "OverlapScratch",
    "PairsOut",
    "SequencePairs",
    "count_other",
    "find_overlap",
    "lay_out",
    "merge_pair",
]

#: What became of a pair: no overlap, one consensus, or several overlaps that explain it about as well.
APART, MERGED, AMBIGUOUS = 0, 1, 2


class OverlapRules(NamedTuple):
    """Which overlaps are believed.

    Attributes
    ----------
    shortest
        Fewest places.
    most_other
        Largest share of places that differ.
    most_chance
        Largest number of overlaps as good that unrelated sequences may be expected to have.
    most_doubt
        Largest logarithm of the odds of another overlap, as a share of that of the best one.
    """

    shortest: int
    most_other: float
    most_chance: float
    most_doubt: float


class ConsensusTables(NamedTuple):
    """What letters and qualities mean. Tables by two qualities have shape (qualities, qualities).

    Attributes
    ----------
    bits
        Letters that a byte may stand for, as bits; uint8, shape (256,).
    mirror
        The letter on the opposite strand; uint8, shape (256,).
    gain_same, gain_other
        Logarithm of the odds of an overlap, from a place where the letters agree and one where they do not;
        float64.
    quality_same, quality_other
        Quality of the consensus in either case; uint8.
    unknown
        Byte of the letter that stands for all.
    tie_unknown
        Whether two different letters of equal quality give `unknown`, not the first one.
    """

    bits: Any
    mirror: Any
    gain_same: Any
    gain_other: Any
    quality_same: Any
    quality_other: Any
    unknown: int
    tie_unknown: bool


class SequencePairs(NamedTuple):
    """Pairs of sequences, the second ones on the opposite strand.

    Attributes
    ----------
    first, second
        Letters, one sequence after the other; uint8.
    first_starts, second_starts
        Where each begins, and the end of the last; int64, shape (n + 1,).
    first_qualities, second_qualities
        Qualities, below the size of the tables; uint8.
    """

    first: Any
    first_starts: Any
    first_qualities: Any
    second: Any
    second_starts: Any
    second_qualities: Any


class OverlapScratch(NamedTuple):
    """A pair on one strand; row 0 is the first sequence, row 1 the second.

    Attributes
    ----------
    bits
        Letters as bits, then ones as far as groups of lanes may reach; uint8.
    letters, qualities
        As they were given; uint8.
    trust
        Qualities, 0 where a letter stands for several; uint8.
    """

    bits: Any
    letters: Any
    qualities: Any
    trust: Any


class PairsOut(NamedTuple):
    """What is written.

    Attributes
    ----------
    letters, qualities, starts
        Consensus, or the first sequence.
    other_letters, other_qualities, other_starts
        Nothing, or the second sequence on the strand of the first.
    fates
        `MERGED`, `APART` or `AMBIGUOUS`; uint8, shape (n,).
    places, differing
        Overlapping places, and those of them that differ; int32, shape (n,).
    """

    letters: Any
    qualities: Any
    starts: Any
    other_letters: Any
    other_qualities: Any
    other_starts: Any
    fates: Any
    places: Any
    differing: Any


@shared
def lay_out(lanes: Any, tables: Any, pairs: Any, pair: int, scratch: Any) -> Any:
    """Copy a pair to scratch, the second sequence from its other strand; returns both lengths."""
    begin = pairs.first_starts[pair]
    first = pairs.first_starts[pair + 1] - begin
    for i in range(first):
        put(tables, pairs.first[begin + i], pairs.first_qualities[begin + i], scratch, 0, i)
    end = pairs.second_starts[pair + 1]
    second = end - pairs.second_starts[pair]
    for i in range(second):
        letter = tables.mirror[pairs.second[end - 1 - i]]
        put(tables, letter, pairs.second_qualities[end - 1 - i], scratch, 1, i)
    for i in range(lanes.width):
        scratch.bits[0, first + i] = 255
        scratch.bits[1, second + i] = 255
    return first, second


@shared
def put(tables: Any, letter: int, quality: int, scratch: Any, row: int, i: int) -> None:
    """Write one letter to scratch."""
    bits = tables.bits[letter]
    scratch.bits[row, i] = bits
    scratch.letters[row, i] = letter
    scratch.qualities[row, i] = quality
    scratch.trust[row, i] = 0 if bits & (bits - 1) else quality


@shared
def count_other(lanes: Any, bits: Any, x: int, y: int, size: int, most: int) -> int:
    """How many of `size` places differ, from x in the first and y in the second; stops past `most`."""
    none = load(lanes, bits, 2, 0)
    found = 0
    for k in range(0, size, lanes.width):
        both = load(lanes, bits, 0, x + k) & load(lanes, bits, 1, y + k)
        found += population(mask_bits(equal(both, none)))
        if found > most:
            break
    return found


@shared
def overlap_gain(tables: Any, scratch: Any, x: int, y: int, size: int) -> float:
    """Logarithm of the odds that the sequences overlap like this, against chance."""
    gain = 0.0
    for k in range(size):
        same = scratch.bits[0, x + k] & scratch.bits[1, y + k]
        p = scratch.trust[0, x + k]
        q = scratch.trust[1, y + k]
        gain += tables.gain_same[p, q] if same else tables.gain_other[p, q]
    return gain


@shared
def find_overlap(lanes: Any, rules: Any, tables: Any, first: int, second: int, scratch: Any) -> Any:
    """The best shift of a pair that was laid out, its differing places, and what that makes of the pair."""
    best = 0.0
    runner_up = 0.0
    shift = 0
    differing = 0
    for d in range(rules.shortest - second, first - rules.shortest + 1):
        x = max(0, d)
        size = min(first, d + second) - x
        most = int(rules.most_other * size)
        if size < rules.shortest:
            continue
        other = count_other(lanes, scratch.bits, x, x - d, size, most)
        if other > most:
            continue
        gain = overlap_gain(tables, scratch, x, x - d, size)
        if gain > best:
            runner_up = best
            best = gain
            shift = d
            differing = other
        elif gain > runner_up:
            runner_up = gain
    shifts = max(first + second - 2 * rules.shortest + 1, 1)
    if best < math.log(shifts / rules.most_chance):
        return APART, 0, 0
    return AMBIGUOUS if runner_up > rules.most_doubt * best else MERGED, shift, differing


@shared
def write_consensus(tables: Any, scratch: Any, x: int, y: int, size: int, out: Any, at: int) -> None:
    """Letters and qualities of `size` overlapping places."""
    for k in range(size):
        a = scratch.letters[0, x + k]
        b = scratch.letters[1, y + k]
        p = scratch.trust[0, x + k]
        q = scratch.trust[1, y + k]
        # Of two letters that agree, the one that stands for fewer says more.
        if scratch.bits[0, x + k] & scratch.bits[1, y + k]:
            out.letters[at + k] = a if scratch.bits[0, x + k] <= scratch.bits[1, y + k] else b
            out.qualities[at + k] = tables.quality_same[p, q]
        else:
            out.letters[at + k] = a if p > q else b if q > p else tables.unknown if tables.tie_unknown else a
            out.qualities[at + k] = tables.quality_other[p, q]


@shared
def copy_row(scratch: Any, row: int, begin: int, end: int, letters: Any, qualities: Any, at: int) -> int:
    """Copy letters `begin` to `end` of a row; returns where the next ones go."""
    for k in range(begin, end):
        letters[at + k - begin] = scratch.letters[row, k]
        qualities[at + k - begin] = scratch.qualities[row, k]
    return at + max(end - begin, 0)


@shared
def merge_pair(lanes: Any, rules: Any, tables: Any, pairs: Any, pair: int, scratch: Any, out: Any) -> None:
    """Write what becomes of a pair, behind what the pairs before it became."""
    first, second = lay_out(lanes, tables, pairs, pair, scratch)
    fate, shift, differing = find_overlap(lanes, rules, tables, first, second, scratch)
    at = out.starts[pair]
    other_at = out.other_starts[pair]
    out.fates[pair] = fate
    out.places[pair] = 0
    out.differing[pair] = 0
    if fate == MERGED:
        x = max(0, shift)
        size = min(first, shift + second) - x
        at = copy_row(scratch, 0, 0, x, out.letters, out.qualities, at)
        write_consensus(tables, scratch, x, x - shift, size, out, at)
        at = copy_row(scratch, 1, x - shift + size, second, out.letters, out.qualities, at + size)
        out.places[pair] = size
        out.differing[pair] = differing
    else:
        at = copy_row(scratch, 0, 0, first, out.letters, out.qualities, at)
        other_at = copy_row(scratch, 1, 0, second, out.other_letters, out.other_qualities, other_at)
    out.starts[pair + 1] = at
    out.other_starts[pair + 1] = other_at
