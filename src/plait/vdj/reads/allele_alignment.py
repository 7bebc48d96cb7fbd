"""V and J matches of reads: local alignments of parts of reads with alleles, affine gaps, and what was found.

The alleles of several germline sets stand side by side, with how they are scored and what chance gives
(E-values). In the kernels, texts are parts of reads, references alleles; segments have no gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_MASK, MASK_SIZE, encode
from plait.devices.target import Target
from plait.dp.pairs.blocks import BlockBatch, pack_texts, pack_texts_by_group
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.launches import BLOCK_SCORES, PAIR_LIST
from plait.dp.pairs.lists import FreeEnds, ListBatch, PairList, make_setup
from plait.formats.fastq import ReadBlock
from plait.lang.compile import kernel, shared
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.columns import Groups, Rows, edges_of

#: Local alignment: both ends of both sequences may be left out.
LOCAL: Final = FreeEnds(False, False, False, False, True, True)
#: Bases of the words of V and of J alleles, and of those that settle which J it is.
_V_WORD, _J_WORD, _NEAR_WORD = 11, 9, 7
#: Bases before the conserved Cys that belong to the end of a V.
_BEFORE_CYS: Final = 30
#: Bases of a V at which an alignment over the Cys can begin, about; and those of a read that are its start.
_BEGINNINGS, _AT_START = 20, 4
_SETS: Final = 16
#: Bits of the ends of words that are looked up first.
_FEWEST_END_BITS, _MOST_END_BITS = 10, 18
#: Sequences share a frame if they overlap by this share, and differ in no more bases of any window.
_LEAST_ALIKE, _FRAME_WINDOW, _MOST_UNLIKE = 0.75, 32, 12


class WordIndex(NamedTuple):
    """The words of some references, and what segments are scored with.

    `size`: letters of a word, k. `table`, int32 (4^k / 32, 2), at least one row: for 32 words each, which of
    them occur, one bit a word, and how many words occur before. `ends`, int32 (a power of 2,), has a bit for
    each end of a word, its lowest bits: whether some word that occurs has it. `words`, int32 (words that
    occur, 2): word by word as they begin one after the other in the references, whose order numbers them, and
    the numbers of the words in ascending order. `starts` (int32) are their offsets into `entries`, int32
    (occurrences, 2): frame and position in it.

    References that are alike without gaps share a frame: `members` are those of frame after frame, with
    offsets `frame_starts`, `longest` the length of the longest of each; position p of a reference is
    ``p + shifts[reference]`` of its frame; int64. `planes`, int64 (words, 2), have 32 letters a word, the
    high and the low bits of their `numbers`, those of a reference from `plane_starts` on; `plain` (uint8)
    says whether all its letters have a number.

    `letters` (uint8) has all references as sets, a bit for each of four letters; `bounds` (int64) are their
    offsets. `numbers`, int8 (16,): 0 to 3 for a set of one letter, else -1. `mirror`, uint8 (16,): the set of
    the partners. `scores`, int32 (16, 16): of a set of the text and one of a reference.
    """

    size: Any
    table: Any
    ends: Any
    words: Any
    starts: Any
    entries: Any
    members: Any
    frame_starts: Any
    longest: Any
    shifts: Any
    planes: Any
    plane_starts: Any
    plain: Any
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

    `words` holds their bases as sets, too, and `near` the same with the words that settle; `queries` are for
    the lanes, None for an empty allele. `offsets` are (sets + 1,); `sets` has the germline set of each
    allele, `bases` the bases of the alleles of each set.
    `cuts` bases are cut off at the start of each allele; `anchors` are the first bases of the conserved
    codons, -1 where not known.
    """

    scoring: SegmentScoring
    words: WordIndex
    near: WordIndex
    queries: tuple[BlockQuery | None, ...]
    offsets: NDArray[np.int64]
    sets: NDArray[np.int64]
    bases: NDArray[np.int64]
    cuts: NDArray[np.int64]
    anchors: NDArray[np.int64]

    @property
    def frames(self) -> NDArray[np.int64]:
        """Frame of each allele."""
        sizes = np.diff(self.words.frame_starts)
        return np.repeat(np.arange(sizes.size), sizes)[np.argsort(self.words.members)]

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


def _frames(
    sequences: Sequence[NDArray[np.uint8]], anchors: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Frame of each sequence, and its shift there; those that differ little anywhere share one."""
    frames, shifts = np.zeros((2, len(sequences)), np.int64)
    heads: list[int] = []
    for k, own in enumerate(sequences):
        frames[k] = len(heads)
        for number, head in enumerate(heads):
            shift, other = int(anchors[head] - anchors[k]), sequences[head]
            first, last = max(0, -shift), min(own.size, other.size - shift)
            if last - first < _LEAST_ALIKE * max(own.size, other.size):
                continue
            unlike = own[first:last] != other[first + shift : last + shift]
            windows = np.add.reduceat(unlike, np.arange(0, unlike.size, _FRAME_WINDOW), dtype=np.int64)
            if windows.max() <= _MOST_UNLIKE:
                frames[k], shifts[k] = number, shift
                break
        else:
            heads.append(k)
    return frames, shifts


def _planes(numbers: Sequence[NDArray[np.int8]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Planes of a `WordIndex`, with a word of nothing before and two behind, and their starts."""
    starts = 1 + edges_of(np.array([-(-own.size // 32) for own in numbers], np.int64))
    planes = np.zeros((int(starts[-1]) + 2, 2), np.int64)
    for own, first in zip(numbers, starts.tolist(), strict=False):
        at = np.arange(own.size)
        for plane in range(2):
            bits = (np.maximum(own, 0).astype(np.int64) >> (1 - plane)) & 1
            np.bitwise_or.at(planes[:, plane], first + at // 32, bits << (at % 32))
    return planes, starts


def _ends(words: NDArray[np.int64], size: int) -> NDArray[np.int32]:
    """`WordIndex.ends`: so many that few occur, and no more than the nearest memory holds."""
    bits = min(max((32 * words.size).bit_length(), _FEWEST_END_BITS), _MOST_END_BITS, 2 * size)
    found = np.zeros((1 << bits) // 32, np.uint32)
    own = words & ((1 << bits) - 1)
    np.bitwise_or.at(found, own >> 5, np.uint32(1) << (own & 31).astype(np.uint32))
    return found.view(np.int32)


def _vocabulary(
    numbers: Sequence[NDArray[np.int8]], frames: NDArray[np.int64], shifts: NDArray[np.int64], size: int
) -> dict[str, Any]:
    """The fields of a `WordIndex` that depend on the size of its words."""
    found = [_words(own, size) for own in numbers]
    counts = [own.size for own, _ in found]
    words = np.concatenate([np.zeros(0, np.int64), *(own for own, _ in found)])
    places = np.concatenate([np.zeros(0, np.int64), *(own for _, own in found)]) + np.repeat(shifts, counts)
    distinct, firsts, own = np.unique(words, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    numbered = np.argsort(order)
    entries = np.stack([numbered[own], np.repeat(frames, counts), places], axis=1)
    entries = entries[np.lexsort(entries.T[::-1])]
    entries = entries[np.diff(entries, axis=0, prepend=-1).any(axis=1)]
    starts = np.searchsorted(entries[:, 0], np.arange(distinct.size + 1))
    table = np.zeros((4**size // 32, 2), np.uint32)
    np.bitwise_or.at(table[:, 0], distinct >> 5, np.uint32(1) << (distinct & 31).astype(np.uint32))
    table[:, 1] = np.searchsorted(distinct, 32 * np.arange(table.shape[0]))
    return {
        "size": size,
        "table": table.view(np.int32),
        "ends": _ends(distinct, size),
        "words": np.stack([distinct[order], numbered], axis=1).astype(np.int32),
        "starts": starts.astype(np.int32),
        "entries": entries[:, 1:].astype(np.int32),
    }


def _word_index(
    sequences: Sequence[NDArray[np.uint8]],
    anchors: NDArray[np.int64],
    sizes: tuple[int, int],
    scores: NDArray[np.int32],
) -> tuple[WordIndex, WordIndex]:
    """Words of two sizes of the same sequences."""
    numbers = np.full(_SETS, -1, np.int8)
    for number, single in enumerate((1, 4, 8, 2)):
        numbers[single] = number
    frames, shifts = _frames(sequences, anchors)
    every = [numbers[own] for own in sequences]
    planes, plane_starts = _planes(every)
    longest = np.zeros(int(frames.max(initial=-1)) + 1, np.int64)
    np.maximum.at(longest, frames, [own.size for own in every])
    words = WordIndex(
        **_vocabulary(every, frames, shifts, sizes[0]),
        members=np.argsort(frames, kind="stable"),
        frame_starts=edges_of(np.bincount(frames)),
        longest=longest,
        shifts=shifts,
        planes=planes,
        plane_starts=plane_starts,
        plain=np.array([(own >= 0).all() for own in every], np.uint8),
        letters=np.concatenate([np.zeros(0, np.uint8), *sequences]),
        bounds=edges_of(np.array([own.size for own in sequences], np.int64)),
        numbers=numbers,
        mirror=COMPLEMENT_MASK.copy(),
        scores=scores,
    )
    if sizes[1] == sizes[0]:
        return words, words
    return words, words._replace(**_vocabulary(every, frames, shifts, sizes[1]))


def _queries(sequences: Sequence[NDArray[np.uint8]], scoring: SegmentScoring) -> Iterator[BlockQuery | None]:
    """Of those that are not empty; all have the same scores, so that they can be swept in one go."""
    letters = np.unique(np.concatenate([np.empty(0, np.uint8), *sequences]))
    for codes in sequences:
        query = np.searchsorted(letters, codes), scoring.scores[letters]
        yield BlockQuery(*query, scoring.gap_open, scoring.gap_extend, LOCAL) if codes.size else None


def _segment_index(
    alleles: Sequence[Sequence[Allele]], scoring: SegmentScoring, *sizes: int, ends: bool = False
) -> SegmentIndex:
    every = [allele for own in alleles for allele in own]
    counts = [len(own) for own in alleles]
    anchors = np.array([-1 if allele.anchor is None else allele.anchor for allele in every], np.int64)
    cuts = np.where(anchors >= 0, np.maximum(anchors - _BEFORE_CYS, 0), 0) * ends
    sequences = [encode(allele.sequence)[cut:] for allele, cut in zip(every, cuts.tolist(), strict=True)]
    offsets = edges_of(np.array(counts, np.int64))
    starts = edges_of(np.array([own.size for own in sequences], np.int64))
    words, near = _word_index(sequences, anchors - cuts, (sizes[0], sizes[-1]), scoring.scores)
    return SegmentIndex(
        scoring=scoring,
        words=words,
        near=near,
        queries=tuple(_queries(sequences, scoring)),
        offsets=offsets,
        sets=np.repeat(np.arange(len(alleles)), counts),
        bases=np.diff(starts[offsets]),
        cuts=cuts,
        anchors=anchors,
    )


def germline_index(germlines: Sequence[GermlineSet]) -> GermlineIndex:
    """Prepare the V and J alleles of germline sets."""
    v = [own.v for own in germlines]
    return GermlineIndex(
        len(germlines),
        _segment_index(v, V_SCORING, _V_WORD),
        _segment_index([own.j for own in germlines], J_SCORING, _J_WORD, _NEAR_WORD),
        _segment_index(v, V_SCORING, _J_WORD, ends=True),
        np.array([len({allele.cdr3_end for allele in own}) for own in v], np.int64),
    )


#: A diagonal on which nothing lies.
NOWHERE: Final = 1 << 40


class Segments(NamedTuple):
    """Pairs and the segments found, changed in place; int64, shape (pairs,) each.

    The text is `firsts` to `lasts` in the letters of all. `wanted` is the score that its segment must have,
    positive; `diagonals` (position in the reference less that in the text) are looked at first. `starts` and
    `ends` count from the start of the text, -1 where no segment has this score.
    """

    firsts: Any
    lasts: Any
    references: Any
    wanted: Any
    diagonals: Any
    starts: Any
    ends: Any


@shared
def segment_on(index: Any, letters: Any, pair: int, diagonal: int, out: Any) -> bool:
    """Look on a diagonal for the first segment of the wanted score, the shortest of those with its end."""
    low, text, other = on_diagonal(index, letters, pair, diagonal, out)
    score = 0
    begin = 0
    for position in range(text.size):
        if score == 0:
            begin = position
        score = max(score + index.scores[text[position], other[position]], 0)
        if score == out.wanted[pair]:
            out.starts[pair] = low + begin
            out.ends[pair] = low + position + 1
            out.diagonals[pair] = diagonal
            return True
    return False


@shared
def on_diagonal(index: Any, letters: Any, pair: int, diagonal: int, out: Any) -> Any:
    """Where a diagonal enters the text of a pair, and the letters of text and reference on it."""
    start = index.bounds[out.references[pair]]
    length = index.bounds[out.references[pair] + 1] - start
    low = max(0, -diagonal)
    high = max(min(out.lasts[pair] - out.firsts[pair], length - diagonal), low)
    text = letters[out.firsts[pair] + low : out.firsts[pair] + high]
    return low, text, index.letters[start + low + diagonal : start + high + diagonal]


@shared
def _alike(index: Any, letters: Any, pair: int, diagonal: int, out: Any) -> int:
    """How many letters of a diagonal can be alike."""
    _, text, other = on_diagonal(index, letters, pair, diagonal, out)
    alike = 0
    for position in range(text.size):
        alike += 1 if text[position] & other[position] != 0 else 0
    return alike


@shared
def find_segment(index: Any, letters: Any, pair: int, match: int, backwards: int, out: Any) -> None:
    """Find a segment of the wanted score: on the given diagonal, else on that nearest the text's start.

    `match` is the largest score of two letters; `backwards` is 0 to look from the start of the text on, 1
    from its end. `out`, the `Segments`, is changed in place.
    """
    out.starts[pair] = -1
    out.ends[pair] = -1
    if segment_on(index, letters, pair, out.diagonals[pair], out):
        return
    reference = out.references[pair]
    length = index.bounds[reference + 1] - index.bounds[reference]
    size = out.lasts[pair] - out.firsts[pair]
    for k in range(size + length - 1):
        diagonal = 1 - size + k if backwards else length - 1 - k
        room = min(size, length - diagonal) - max(0, -diagonal)
        if room * match < out.wanted[pair]:
            continue
        if _alike(index, letters, pair, diagonal, out) * match < out.wanted[pair]:
            continue
        if segment_on(index, letters, pair, diagonal, out):
            return


@shared
def count_alike(
    index: Any, letters: Any, first: int, reference: int, start: int, runs: Any, run: int, last_run: int
) -> Any:
    """Pairs of equal letters along the runs of an alignment, and other pairs.

    The alignment starts at `first` in `letters` and at `start` in the reference. `runs`, int32, are operation
    (0 pairs, 1 letters of the reference alone, 2 of the text alone) and length; `run` to `last_run` of them
    count.
    """
    position = first
    other = index.bounds[reference] + start
    alike = 0
    unlike = 0
    for k in range(run, last_run):
        length = runs[k, 1]
        if runs[k, 0] == 0:
            text = letters[position : position + length]
            allele = index.letters[other : other + length]
            for step in range(text.size):
                own = text[step]
                same = own == allele[step] and index.numbers[own] >= 0
                alike += 1 if same else 0
                unlike += 0 if same else 1
        position += 0 if runs[k, 0] == 1 else length
        other += 0 if runs[k, 0] == 2 else length
    return alike, unlike


@kernel
def segments_kernel(index: Any, letters: Any, match: int, backwards: int, out: Any) -> None:
    """Segments of all pairs, see `find_segment`."""
    for pair in range(out.wanted.size):
        find_segment(index, letters, pair, match, backwards, out)


@kernel
def alike_kernel(
    index: Any,
    letters: Any,
    firsts: Any,
    references: Any,
    starts: Any,
    runs: Any,
    run_starts: Any,
    alike: Any,
    unlike: Any,
) -> None:
    """Equal and other pairs of alignments, see `count_alike`."""
    for pair in range(firsts.size):
        first, last = run_starts[pair], run_starts[pair + 1]
        alike[pair], unlike[pair] = count_alike(
            index, letters, firsts[pair], references[pair], starts[pair], runs, first, last
        )


class Parts(NamedTuple):
    """Parts of reads: `codes` are the bases of all reads as sets, a part is `firsts` to `lasts` in it."""

    codes: NDArray[np.uint8]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bases of each part."""
        return self.lasts - self.firsts

    def take(self, which: NDArray[np.int64]) -> Parts:
        """Some of the parts."""
        return Parts(self.codes, self.firsts[which], self.lasts[which])


def _joined(
    codes: NDArray[np.uint8], firsts: NDArray[np.int64], lasts: NDArray[np.int64]
) -> NDArray[np.uint8]:
    pieces = [codes[first:last] for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]
    return np.concatenate(pieces)


def pair_task(index: SegmentIndex, parts: Parts, alleles: NDArray[np.int64]) -> PairList:
    """Parts and their alleles as pairs, one by one; at least one, and none empty."""
    bounds = index.words.bounds
    scoring = index.scoring
    return PairList(
        _joined(*parts),
        edges_of(parts.sizes),
        _joined(index.words.letters, bounds[alleles], bounds[alleles + 1]),
        edges_of(bounds[alleles + 1] - bounds[alleles]),
        scoring.scores,
        scoring.gap_open,
        scoring.gap_extend,
        LOCAL,
    )


def score_all(target: Target, index: SegmentIndex, number: int, parts: Parts) -> NDArray[np.int64]:
    """Scores of all alleles of germline set `number` with all parts, shape (parts, alleles of the set)."""
    own = index.of_set(number)
    queries = index.queries[own]
    count = parts.firsts.size
    scores = np.zeros((count, len(queries)), np.int64)
    present = [k for k, query in enumerate(queries) if query is not None]
    blocks, order = pack_texts(parts.codes, parts.firsts, parts.sizes)
    ranges = np.tile((0, len(blocks.lengths)), (len(present), 1))
    batch = BlockBatch([query for query in queries if query is not None], blocks, ranges=ranges)
    swept = target.launch(BLOCK_SCORES, batch)
    for k, best in zip(present, swept, strict=True):
        scores[order, k] = best.ravel()[: order.size]
    return scores


def score_pairs(
    target: Target, index: SegmentIndex, parts: Parts, alleles: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Score of each part with its allele, shape (parts,)."""
    scores = np.zeros(alleles.size, np.int64)
    known = np.array([query is not None for query in index.queries])
    own = np.flatnonzero(known[alleles] & (parts.sizes > 0))
    if own.size:
        present, groups = np.unique(alleles[own], return_inverse=True)
        blocks, lanes, ranges = pack_texts_by_group(parts.codes, parts.firsts[own], parts.sizes[own], groups)
        queries = [query for k in present if (query := index.queries[k]) is not None]
        found = target.launch(BLOCK_SCORES, BlockBatch(queries, blocks, ranges=ranges))
        scores[own] = np.concatenate([one.ravel() for one in found])[lanes]
    return scores


@dataclass(frozen=True, slots=True, eq=False)
class Paths(Rows):
    """Alignments of n parts with alleles.

    Starts and ends are half-open, in the part and in the allele; `matches` count pairs of equal bases,
    `mismatches` other pairs; int64, shape (n,). `runs`, int32 (r, 2), are kind (0 pairs of bases, 1 bases of
    the germline alone, that the read lacks, 2 bases of the read alone, inserted ones) and length.
    """

    read_start: NDArray[np.int64]
    read_end: NDArray[np.int64]
    germline_start: NDArray[np.int64]
    germline_end: NDArray[np.int64]
    matches: NDArray[np.int64]
    mismatches: NDArray[np.int64]
    runs: Groups


def _with_gaps(
    target: Target, index: SegmentIndex, parts: Parts, alleles: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """Ends (of the part, then of the allele) and runs of alignments that the traceback finds."""
    task = pair_task(index, parts, alleles)
    found = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
    return found.ends, np.split(found.runs, np.cumsum(found.run_counts)[:-1])


def find_paths(
    target: Target,
    index: SegmentIndex,
    parts: Parts,
    alleles: NDArray[np.int64],
    scores: NDArray[np.int64],
    diagonals: NDArray[np.int64] | None = None,
    *,
    last: bool = False,
) -> Paths:
    """An alignment of the known score for each part and its allele.

    `scores` are the best local scores, positive. `diagonals` (position in the allele less that in the part)
    say where to look first. Of several alignments the first in the part is taken, with `last` the last one.
    """
    count = alleles.size
    own = np.full(count, NOWHERE) if diagonals is None else diagonals.copy()
    starts, ends = np.empty((2, count), np.int64)
    segments = Segments(parts.firsts, parts.lasts, alleles, scores, own, starts, ends)
    segments_kernel(index.words, parts.codes, index.scoring.match, int(last), segments)
    germline_starts, germline_ends = starts + own, ends + own
    run_counts = np.ones(count, np.int64)
    gapped = np.flatnonzero(starts < 0)
    pieces: list[NDArray[np.int64]] = []
    if gapped.size:
        found, pieces = _with_gaps(target, index, parts.take(gapped), alleles[gapped])
        starts[gapped], ends[gapped] = found[:, 0], found[:, 1]
        germline_starts[gapped], germline_ends[gapped] = found[:, 2], found[:, 3]
        run_counts[gapped] = [len(piece) for piece in pieces]
    run_starts = edges_of(run_counts)
    runs = np.zeros((int(run_starts[-1]), 2), np.int32)
    runs[run_starts[:-1], 1] = ends - starts
    for pair, piece in zip(gapped.tolist(), pieces, strict=True):
        runs[run_starts[pair] : run_starts[pair + 1]] = piece
    alike, unlike = np.zeros((2, count), np.int64)
    firsts = parts.firsts + starts
    alike_kernel(index.words, parts.codes, firsts, alleles, germline_starts, runs, run_starts, alike, unlike)
    cuts = index.cuts[alleles]
    return Paths(
        starts, ends, germline_starts + cuts, germline_ends + cuts, alike, unlike, Groups(runs, run_starts)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Found(Rows):
    """The best local alignments of the reads of these numbers with the alleles of one segment.

    Coordinates are 0-based and half-open; `shift` is to be added to those of the paths in the read. `support`
    is the expected number of alignments as good by chance, for the read and all alleles. `alleles` are those
    that have the best score, in the order of the germline set; the path is that of the first. Where nothing
    is found, score and coordinates are 0, and there is no allele and no run.
    """

    reads: NDArray[np.int64]
    scores: NDArray[np.int64]
    support: NDArray[np.float64]
    shift: NDArray[np.int64]
    paths: Paths
    alleles: Groups

    @property
    def read_start(self) -> NDArray[np.int64]:
        """Where the alignments begin in the reads."""
        return self.paths.read_start + self.shift

    @property
    def read_end(self) -> NDArray[np.int64]:
        """Where the alignments end in the reads."""
        return self.paths.read_end + self.shift


@dataclass(frozen=True, slots=True, eq=False)
class GermlineMatches:
    """Reads in the orientation of the genes, and what of the germline they match.

    Where `reversed`, (n,), the read as given is the other strand and `reads` has its reverse complement, with
    its qualities. `germline`, (n,), is the index of the set that matches best, -1 where none does; the
    alleles of `v` and `j`, of all reads in order, are indices into ``v`` and ``j`` of this set. `swapped`,
    (n,), says whether the mate took the place of the read, because J, or V alone, lies in it: `reads` then
    holds the mate, and `reversed` counts from it; None where no read has a mate.
    """

    reads: ReadBlock
    reversed: NDArray[np.bool_]
    germline: NDArray[np.int8]
    v: Found
    j: Found
    swapped: NDArray[np.bool_] | None = None


def nothing_found(reads: NDArray[np.int64]) -> Found:
    """No allele for some reads: score 0, and no alignment."""
    zeros = np.zeros(reads.size, np.int64)
    empty = np.zeros(reads.size + 1, np.int64)
    runs = Groups(np.zeros((0, 2), np.int32), empty)
    paths = Paths(zeros, zeros, zeros, zeros, zeros, zeros, runs)
    return Found(reads, zeros, np.zeros(reads.size), zeros, paths, Groups(zeros[:0], empty))


def found_in_order(parts: Sequence[Found]) -> Found:
    """What was found for different reads, in the order of the reads."""
    found = Found.join(parts)
    return found.take(np.argsort(found.reads, kind="stable"))


def found_in_all(count: int, found: Found) -> Found:
    """What was found in all of `count` reads, from what was found in some."""
    return found_in_order([found, nothing_found(np.setdiff1d(np.arange(count), found.reads, True))])


@dataclass(frozen=True, slots=True, eq=False)
class Answers(Rows):
    """The V and J of some reads, in their order; score 0 where there is no V, or no J.

    `mirrored` (int64) is 1 where the read is turned, `sets` the germline set.
    """

    mirrored: NDArray[np.int64]
    sets: NDArray[np.int64]
    v: Found
    j: Found

    @property
    def reads(self) -> NDArray[np.int64]:
        """Numbers of the reads."""
        return self.v.reads

    @property
    def completeness(self) -> NDArray[np.int64]:
        """3 for V and J, 2 for V alone, 1 for J alone."""
        return 2 * (self.v.scores > 0) + (self.j.scores > 0)

    def renumbered(self, numbers: NDArray[np.int64]) -> Answers:
        """The answers, with other numbers of reads in the same order."""
        v, j = (replace(own, reads=numbers[own.reads]) for own in (self.v, self.j))
        return replace(self, v=v, j=j)


def join_answers(parts: Sequence[Answers]) -> Answers:
    """Answers for different reads as one list, in the order of the reads."""
    answers = Answers.join(parts)
    return answers.take(np.argsort(answers.reads, kind="stable"))
