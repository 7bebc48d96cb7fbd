"""Merging of mates: two reads of one molecule, from its two ends, become one where they overlap."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_LETTER, IUPAC_MASK
from plait.errors import InvalidInput, whole
from plait.formats.fastq import ReadBlock
from plait.lang.compile import kernel, shared
from plait.lang.lanes import equal, lanes_of, load, mask_bits, population

#: What became of a pair: no overlap, one consensus, or several overlaps that explain it about as well.
APART, MERGED, AMBIGUOUS = 0, 1, 2


class OverlapRules(NamedTuple):
    """Which overlaps are believed.

    `shortest`: fewest places. `most_other`: largest share of places that differ. `most_chance`: largest
    expected number of overlaps as good between unrelated sequences. `most_doubt`: largest log odds of another
    overlap, as a share of that of the best one.
    """

    shortest: int
    most_other: float
    most_chance: float
    most_doubt: float


class ConsensusTables(NamedTuple):
    """What letters and qualities mean.

    `bits`, uint8 (256,): letters that a byte may stand for; `mirror`, uint8 (256,): the letter on the
    opposite strand. Tables by two qualities have shape (qualities, qualities): `gain_same` and `gain_other`,
    float64, are the log odds of an overlap from a place where the letters agree and one where they do not,
    `quality_same` and `quality_other`, uint8, the quality of the consensus. `unknown` is the byte of the
    letter that stands for all; `tie_unknown` says whether two different letters of equal quality give it, not
    the first one.
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

    Letters and qualities (below the size of the tables) are uint8, starts int64 (n + 1,) offsets.
    """

    first: Any
    first_starts: Any
    first_qualities: Any
    second: Any
    second_starts: Any
    second_qualities: Any


class OverlapScratch(NamedTuple):
    """A pair on one strand, uint8 each; row 0 is the first sequence, row 1 the second.

    `bits` has letters as bits, then ones as far as groups of lanes may reach; `letters` and `qualities` are
    as given; `trust` has qualities, 0 where a letter stands for several.
    """

    bits: Any
    letters: Any
    qualities: Any
    trust: Any


class PairsOut(NamedTuple):
    """What is written: the consensus, or the first sequence and, as other, the second on its strand.

    `fates`, uint8 (n,), are `MERGED`, `APART` or `AMBIGUOUS`; `places` and `differing`, int32 (n,), count
    overlapping places, and those of them that differ.
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


@kernel
def merge_pairs_kernel(
    lanes: Any, rules: Any, tables: Any, pairs: Any, count: int, scratch: Any, out: Any
) -> None:
    """All pairs in turn, see `plait.vdj.reads.mates.merge_pair`."""
    for pair in range(count):
        merge_pair(lanes, rules, tables, pairs, pair, scratch, out)


#: Phred score of the bases of a file without qualities.
FIXED_QUALITY: Final = 30
#: Best Phred score of a merged base, unless one of the two is better: errors of before the sequencing remain.
_BEST_QUALITY: Final = 41
#: False overlaps to be expected in a pair of unrelated reads, at most.
_MOST_CHANCE: Final = 1e-4
#: Score of another overlap of the same pair, as a share of the best one's, at most.
_MOST_DOUBT: Final = 0.5
_QUALITIES: Final = 94
#: Groups of 64 letters: one word of mask bits each.
_LANES: Final = lanes_of(64)


@dataclass(frozen=True, slots=True, eq=False)
class MergedReads:
    """Pairs of n mates, merged where they overlap; all on the strand of the first mates.

    `reads` has the merged sequence, or the first mate; `others` the second mate, reverse-complemented,
    without bases where the pair was merged. `ambiguous`: not merged because it overlaps in several ways that
    are about as good. `overlap`: bases that both mates of a merged pair have, else 0; `disagreements`: those
    on which they disagree. Arrays have shape (n,).
    """

    reads: ReadBlock
    others: ReadBlock
    merged: NDArray[np.bool_]
    ambiguous: NDArray[np.bool_]
    overlap: NDArray[np.int32]
    disagreements: NDArray[np.int32]


def merge_mates(
    reads: ReadBlock, mates: ReadBlock, *, min_overlap: int = 12, max_mismatch: float = 0.2
) -> MergedReads:
    """Merge mates, both as sequenced, by the consensus of their overlap; one entry for each pair, in order.

    The ends of the merged sequence are the starts of both mates. Where the molecule is shorter than a mate,
    what the mate reads beyond its end (adapters) is left out. Where the mates disagree the better base is
    taken, with the quality that is left to it; at equal quality that of the first mate, or N if neither file
    has qualities. Pairs that overlap in several ways (repeats) or too little are not merged: an overlap has
    at least `min_overlap` bases, of which at most the share `max_mismatch` disagree.

    InvalidInput if the numbers of mates differ, or a limit is out of its range.
    """
    if len(reads) != len(mates):
        raise InvalidInput(
            "mates", found=f"{len(mates)} for {len(reads)} reads", expected="one for each read"
        )
    whole("min_overlap", min_overlap, 1)
    if not 0 <= max_mismatch < 1:
        raise InvalidInput("max_mismatch", found=max_mismatch, expected="a share from 0 to below 1")
    no_qualities = reads.qualities is None and mates.qualities is None
    longest = max(int(reads.lengths.max(initial=0)), int(mates.lengths.max(initial=0)))
    out = _room(len(reads), reads.letters.size + mates.letters.size, mates.letters.size)
    merge_pairs_kernel(
        _LANES,
        OverlapRules(min_overlap, float(max_mismatch), _MOST_CHANCE, _MOST_DOUBT),
        _tables(no_qualities),
        SequencePairs(*_arrays(reads), *_arrays(mates)),
        len(reads),
        _scratch(longest),
        out,
    )
    used, other_used = int(out.starts[-1]), int(out.other_starts[-1])
    qualities, other_qualities = out.qualities[:used], out.other_qualities[:other_used]
    return MergedReads(
        ReadBlock(reads.names, out.letters[:used], out.starts, None if no_qualities else qualities),
        ReadBlock(
            reads.names,
            out.other_letters[:other_used],
            out.other_starts,
            None if no_qualities else other_qualities,
        ),
        out.fates == MERGED,
        out.fates == AMBIGUOUS,
        out.places,
        out.differing,
    )


def _arrays(reads: ReadBlock) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
    """Letters, starts and qualities, all to be read only, so that one compiled kernel serves all."""
    qualities = reads.qualities
    if qualities is None:
        qualities = np.full(reads.letters.size, FIXED_QUALITY, np.uint8)
    return _read_only(reads.letters), _read_only(reads.starts), _read_only(qualities)


def _read_only(values: Any) -> Any:
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def _room(pairs: int, letters: int, other_letters: int) -> PairsOut:
    first, second = (
        (np.empty(size, np.uint8), np.empty(size, np.uint8), np.zeros(pairs + 1, np.int64))
        for size in (letters, other_letters)
    )
    counts = np.empty((2, pairs), np.int32)
    return PairsOut(*first, *second, np.empty(pairs, np.uint8), counts[0], counts[1])


def _scratch(longest: int) -> OverlapScratch:
    width = longest + 2 * _LANES.width
    return OverlapScratch(*(np.zeros((rows, width), np.uint8) for rows in (3, 2, 2, 2)))


@functools.cache
def _tables(tie_unknown: bool) -> ConsensusTables:
    scores = np.arange(_QUALITIES)
    error = np.minimum(10 ** (-scores / 10), 0.75)
    p, q = error[:, None], error[None, :]
    agree = (1 - p) * (1 - q) + p * q / 3
    differ = p + q - 4 * p * q / 3
    better = np.minimum(p, q)
    worse = np.maximum(p, q)
    best = np.maximum(np.maximum.outer(scores, scores), _BEST_QUALITY)
    # A, C, G, T from the lowest bit on: of letters that agree, the smaller one is taken.
    bits = IUPAC_MASK & 1 | (IUPAC_MASK & 12) >> 1 | (IUPAC_MASK & 2) << 2
    return ConsensusTables(
        bits,
        COMPLEMENT_LETTER.copy(),
        # Unrelated bases differ with 3/4, three ways alike.
        np.log(4 * agree),
        np.log(4 * differ / 3),
        _phred(p * q / 3 / agree, best),
        _phred(better * (1 - worse / 3) / differ, best),
        ord("N"),
        tie_unknown,
    )


def _phred(error: NDArray[np.float64], best: NDArray[np.int64]) -> NDArray[np.uint8]:
    scores: NDArray[np.float64] = np.minimum(np.rint(-10 * np.log10(error)), best)
    return scores.astype(np.uint8)
