"""The alleles of several germline sets side by side, as the arrays that compiled code reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_MASK, MASK_SIZE, encode
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.lists import FreeEnds
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.columns import edges_of

#: Local alignment: both ends of both sequences may be left out.
LOCAL: Final = FreeEnds(False, False, False, False, True, True)
#: Bases of the words of V and of J alleles.
_V_WORD, _J_WORD = 11, 9
#: Bases before the conserved Cys that belong to the end of a V.
_BEFORE_CYS: Final = 30
#: Bases of a V at which an alignment over the Cys can begin, about; and those of a read that are its start.
_BEGINNINGS, _AT_START = 20, 4
_SETS: Final = 16


class WordIndex(NamedTuple):
    """The words of some references, and what segments are scored with.

    `size`: letters of a word, k. `table`, int32 (4^k / 32, 2), at least one row: for 32 words each, which of
    them occur, one bit a word, and how many words occur before. `starts` (int32) are offsets of the words
    that occur into `entries`, int32 (occurrences, 2): reference and position.

    `letters` (uint8) has all references as sets, a bit for each of four letters; `bounds` (int64) are their
    offsets. `numbers`, int8 (16,): 0 to 3 for a set of one letter, else -1. `mirror`, uint8 (16,): the set of
    the partners. `scores`, int32 (16, 16): of a set of the text and one of a reference.
    """

    size: Any
    table: Any
    starts: Any
    entries: Any
    letters: Any
    bounds: Any
    numbers: Any
    mirror: Any
    scores: Any


class SegmentScoring(NamedTuple):
    """How reads are scored with the alleles of a segment, and how chance alignments score.

    A pair in which an ambiguous letter may stand for the other scores 0. `gap_open` and `gap_extend` are
    costs of the first and of each further base of a gap. `lambda_` and `k` are those of Karlin and Altschul
    (PNAS 87:2264, 1990) for bases that are equally frequent.
    """

    match: int
    mismatch: int
    gap_open: int
    gap_extend: int
    lambda_: float
    k: float

    @property
    def scores(self) -> NDArray[np.int32]:
        """Scores of two sets of bases, shape (16, 16)."""
        sets = np.arange(_SETS)
        meet = (sets[:, None] & sets) != 0
        single = (MASK_SIZE[:, None] == 1) & (MASK_SIZE == 1)
        return np.where(meet, np.where(single, self.match, 0), self.mismatch).astype(np.int32)

    def support(self, score: NDArray[np.int64], space: NDArray[np.floating]) -> NDArray[np.float64]:
        """Expected number of chance alignments of a score or more, where so many pairs of bases are tried."""
        return np.asarray(self.k * space * np.exp(-self.lambda_ * score))


#: Gaps as blastn's 4 + 1 for this match and mismatch, with the parameters that NCBI gives for them.
V_SCORING: Final = SegmentScoring(1, -1, 5, 1, 1.08, 0.28)
#: Gaps as blastn's 4 + 2; so costly that the parameters are those without gaps.
J_SCORING: Final = SegmentScoring(1, -2, 6, 2, 1.33, 0.62)


class SegmentIndex(NamedTuple):
    """The alleles of one segment of all germline sets, in order; all arrays int64.

    `words` holds their bases as sets, too; `queries` are for the lanes, None for an empty allele. `offsets`
    are (sets + 1,); `sets` has the germline set of each allele, `bases` the bases of the alleles of each set.
    `cuts` bases are cut off at the start of each allele; `anchors` are the first bases of the conserved
    codons, -1 where not known.
    """

    scoring: SegmentScoring
    words: WordIndex
    queries: tuple[BlockQuery | None, ...]
    offsets: NDArray[np.int64]
    sets: NDArray[np.int64]
    bases: NDArray[np.int64]
    cuts: NDArray[np.int64]
    anchors: NDArray[np.int64]

    def of_set(self, number: int) -> slice:
        """The alleles of a germline set."""
        return slice(int(self.offsets[number]), int(self.offsets[number + 1]))


class GermlineIndex(NamedTuple):
    """All alleles of some germline sets.

    `ends` are those of the V alleles, from some bases before the conserved Cys, in the order of `v`; `kinds`
    (int64) counts the different ones in each set, from the conserved Cys on.
    """

    sets: int
    v: SegmentIndex
    j: SegmentIndex
    ends: SegmentIndex
    kinds: NDArray[np.int64]

    def end_support(
        self,
        sets: NDArray[np.int64],
        scores: NDArray[np.int64],
        read_start: NDArray[np.int64],
        room: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Expected number of chance alignments over the conserved Cys of a V.

        Half of what is expected is granted to alignments that begin with the read, where the read cuts the V,
        and half to all others: such an alignment is far more likely to be true. `room`: bases of the read in
        which it was looked for.
        """
        places = 2.0 * np.where(read_start < _AT_START, _AT_START, np.maximum(room, 1))
        return self.ends.scoring.support(scores, places * self.kinds[sets] * _BEGINNINGS)

    def holds_cys(
        self, alleles: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether alignments of V alleles, between such germline positions, go over the conserved Cys."""
        anchors = self.v.anchors[alleles]
        return np.asarray((anchors >= 0) & (starts <= anchors) & (ends >= anchors + 3))


def _words(codes: NDArray[np.int8], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Words of a sequence of numbers, and where they lie; those over a -1 are left out."""
    count = codes.size - size + 1
    if count <= 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(codes, size)
    positions = np.flatnonzero((windows >= 0).all(axis=1))
    return windows[positions].astype(np.int64) @ (4 ** np.arange(size - 1, -1, -1)), positions


def _word_index(sequences: Sequence[NDArray[np.uint8]], size: int, scores: NDArray[np.int32]) -> WordIndex:
    numbers = np.full(_SETS, -1, np.int8)
    for number, single in enumerate((1, 4, 8, 2)):
        numbers[single] = number
    found = [_words(numbers[own], size) for own in sequences]
    words = np.concatenate([np.zeros(0, np.int64), *(own for own, _ in found)])
    alleles = np.repeat(np.arange(len(found)), [own.size for own, _ in found])
    places = np.concatenate([np.zeros(0, np.int64), *(own for _, own in found)])
    order = np.argsort(words, kind="stable")
    distinct, starts = np.unique(words[order], return_index=True)
    table = np.zeros((4**size // 32, 2), np.uint32)
    np.bitwise_or.at(table[:, 0], distinct >> 5, np.uint32(1) << (distinct & 31).astype(np.uint32))
    table[:, 1] = np.searchsorted(distinct, 32 * np.arange(table.shape[0]))
    letters = np.concatenate([np.zeros(0, np.uint8), *sequences])
    return WordIndex(
        size=size,
        table=table.view(np.int32),
        starts=np.append(starts, words.size).astype(np.int32),
        entries=np.stack([alleles[order], places[order]], axis=1).astype(np.int32),
        letters=letters,
        bounds=edges_of(np.array([own.size for own in sequences], np.int64)),
        numbers=numbers,
        mirror=COMPLEMENT_MASK.copy(),
        scores=scores,
    )


def _query(codes: NDArray[np.uint8], scoring: SegmentScoring) -> BlockQuery | None:
    if not codes.size:
        return None
    letters, rows = np.unique(codes, return_inverse=True)
    scores = scoring.scores[letters]
    return BlockQuery(rows.astype(np.int64), scores, scoring.gap_open, scoring.gap_extend, LOCAL)


def _segment_index(
    alleles: Sequence[Sequence[Allele]], scoring: SegmentScoring, word: int, *, ends: bool = False
) -> SegmentIndex:
    every = [allele for own in alleles for allele in own]
    counts = [len(own) for own in alleles]
    anchors = [-1 if allele.anchor is None else allele.anchor for allele in every]
    cuts = [max(anchor - _BEFORE_CYS, 0) if ends and anchor >= 0 else 0 for anchor in anchors]
    sequences = [encode(allele.sequence)[cut:] for allele, cut in zip(every, cuts, strict=True)]
    offsets = edges_of(np.array(counts, np.int64))
    sizes = edges_of(np.array([own.size for own in sequences], np.int64))
    return SegmentIndex(
        scoring=scoring,
        words=_word_index(sequences, word, scoring.scores),
        queries=tuple(_query(codes, scoring) for codes in sequences),
        offsets=offsets,
        sets=np.repeat(np.arange(len(alleles)), counts),
        bases=np.diff(sizes[offsets]),
        cuts=np.array(cuts, np.int64),
        anchors=np.array(anchors, np.int64),
    )


def germline_index(germlines: Sequence[GermlineSet]) -> GermlineIndex:
    """Prepare the V and J alleles of germline sets."""
    v = [own.v for own in germlines]
    return GermlineIndex(
        len(germlines),
        _segment_index(v, V_SCORING, _V_WORD),
        _segment_index([own.j for own in germlines], J_SCORING, _J_WORD),
        _segment_index(v, V_SCORING, _J_WORD, ends=True),
        np.array([len({allele.cdr3_end for allele in own}) for own in v], np.int64),
    )
