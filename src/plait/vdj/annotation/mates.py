"""Merging of mates: two reads of one molecule, from its two ends, become one where they overlap.

The model is that of independent base calls. With error probabilities p and q (from the Phred scores; 3/4
where a letter stands for several bases), two calls of one base agree with probability
``(1 - p) (1 - q) + p q / 3`` and disagree with ``p + q - 4 p q / 3``; unrelated bases agree with 1/4. The sum
of the logarithms of these ratios is the score of an overlap. By Markov's inequality an overlap that scores s
arises by chance in at most ``exp(-s)`` of unrelated pairs at one shift, so s and the number of shifts bound
the expected number of false overlaps. That says nothing of repeats, which overlap in many ways: a pair of
which another overlap scores more than half as much as the best one is not merged.

The quality of a merged base is the posterior one of Edgar and Flyvbjerg (2015), Error filtering, pair
assembly and error correction for next-generation sequencing reads, Bioinformatics 31:3476-3482.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.read_block import ReadBlock
from plait.lanes import lanes_of
from plait.schedules.overlaps import (
    AMBIGUOUS,
    MERGED,
    ConsensusTables,
    OverlapRules,
    OverlapScratch,
    PairsOut,
    SequencePairs,
)
from plait.targets.overlap_kernels import merge_pairs_kernel

__all__ = ["FIXED_QUALITY", "MergedReads", "merge_mates"]

#: Phred score of the bases of a file without qualities.
FIXED_QUALITY: Final = 30
#: Best Phred score of a merged base, unless one of the two is better: errors of before the sequencing remain.
_BEST_QUALITY: Final = 41
#: False overlaps to be expected in a pair of unrelated reads, at most.
_MOST_CHANCE: Final = 1e-4
#: Score of another overlap of the same pair, as a share of the best one's, at most.
_MOST_DOUBT: Final = 0.5
_QUALITIES: Final = 94
_BASES: Final = {"A": "T", "C": "G", "G": "C", "T": "A"}
_SETS: Final = {
    **{base: base for base in _BASES},
    **{"R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC"},
    **{"B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT"},
}
#: Groups of 64 letters: one word of mask bits each.
_LANES: Final = lanes_of(64)


@dataclass(frozen=True, slots=True, eq=False)
class MergedReads:
    """Pairs of n mates, merged where they overlap; all on the strand of the first mates.

    Attributes
    ----------
    reads
        The merged sequence, or the first mate.
    others
        The second mate, reverse-complemented; without bases where the pair was merged.
    merged
        Whether the pair was merged; bool, shape (n,).
    ambiguous
        Whether it was not because it overlaps in several ways that are about as good; bool, shape (n,).
    overlap
        Bases that both mates of a merged pair have, else 0; int32, shape (n,).
    disagreements
        Those of them on which they disagree; int32, shape (n,).
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
    """Merge mates by the consensus of their overlap.

    The ends of the merged sequence are the starts of both mates. Where the molecule is shorter than a mate,
    what the mate reads beyond its end (adapters) is left out. Where the mates disagree the better base is
    taken, with the quality that is left to it; at equal quality that of the first mate, or N if neither file
    has qualities. Pairs that overlap in several ways (repeats) or too little are not merged.

    Parameters
    ----------
    reads, mates
        First and second mates, as sequenced; as many of the one as of the other.
    min_overlap
        Fewest bases of an overlap.
    max_mismatch
        Largest share of them on which the mates may disagree.

    Returns
    -------
    MergedReads
        One entry for each pair, in order.

    Raises
    ------
    InvalidInput
        If the numbers of mates differ, or a limit is out of its range.
    """
    if len(reads) != len(mates):
        raise InvalidInput(
            "mates", found=f"{len(mates)} for {len(reads)} reads", expected="one for each read"
        )
    if min_overlap < 1:
        raise InvalidInput("min_overlap", found=min_overlap, expected="at least 1")
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
    return PairsOut(
        np.empty(letters, np.uint8),
        np.empty(letters, np.uint8),
        np.zeros(pairs + 1, np.int64),
        np.empty(other_letters, np.uint8),
        np.empty(other_letters, np.uint8),
        np.zeros(pairs + 1, np.int64),
        np.empty(pairs, np.uint8),
        np.empty(pairs, np.int32),
        np.empty(pairs, np.int32),
    )


def _scratch(longest: int) -> OverlapScratch:
    width = longest + 2 * _LANES.width
    return OverlapScratch(
        np.zeros((3, width), np.uint8),
        np.zeros((2, width), np.uint8),
        np.zeros((2, width), np.uint8),
        np.zeros((2, width), np.uint8),
    )


@functools.cache
def _tables(tie_unknown: bool) -> ConsensusTables:
    bits, mirror = np.zeros(256, np.uint8), np.zeros(256, np.uint8)
    of_set = {frozenset(bases): letter for letter, bases in _SETS.items()}
    for letter, bases in _SETS.items():
        bits[ord(letter)] = sum(1 << "ACGT".index(base) for base in bases)
        mirror[ord(letter)] = ord(of_set[frozenset(_BASES[base] for base in bases)])
    scores = np.arange(_QUALITIES)
    error = np.minimum(10 ** (-scores / 10), 0.75)
    p, q = error[:, None], error[None, :]
    agree = (1 - p) * (1 - q) + p * q / 3
    differ = p + q - 4 * p * q / 3
    better = np.minimum(p, q)
    worse = np.maximum(p, q)
    best = np.maximum(np.maximum.outer(scores, scores), _BEST_QUALITY)
    return ConsensusTables(
        bits,
        mirror,
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
