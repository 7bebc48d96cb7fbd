"""Which alleles are worth aligning with which reads, on which strand: those with the most words in common.

Texts are reads as sets of bases, references alleles; the mirror of a text is its reverse complement.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_LETTER, COMPLEMENT_MASK, IUPAC_MASK
from plait.formats.fastq import ReadBlock
from plait.lang.compile import kernel, shared
from plait.lang.lanes import population
from plait.vdj.reads.allele_alignment import Parts, SegmentIndex
from plait.vdj.reads.columns import edges_of

#: Base changes that may cost a candidate words that the best one has.
_CHANGES: Final = 3
#: How much lower than the best its score may be: without a mate, and with one, which may count for more.
_SCORE_BELOW, _SCORE_BELOW_WITH_MATE = 4, 16
#: Least score of a V without gaps.
_LEAST: Final = 16
#: Least score of a J without gaps.
LEAST_J: Final = 14
#: Longer reads are aligned in windows: so many bases more than the allele on both sides of the diagonal.
_LONG: Final = 1024
_MARGIN: Final = 256
#: Candidates of a call, at least.
_ROOM: Final = 1 << 16
_COMPLEMENT = COMPLEMENT_LETTER.copy()
_SAME = np.arange(256, dtype=np.uint8)
_MIRROR = COMPLEMENT_MASK.copy()


class VoteLimits(NamedTuple):
    """What makes a candidate.

    A reference may have `votes_below` votes fewer than the best to be scored, a candidate a score
    `score_below` less than the best; a text whose best score is below `least_score` has none. `gap` is the
    least cost of a gap.
    """

    votes_below: Any
    score_below: Any
    least_score: Any
    gap: Any


class VoteScratch(NamedTuple):
    """Memory of one thread, from the caller; each int64, shape (references,).

    `votes` are zero between texts; `diagonals` lead by `leads`; `touched` are the references with votes, and
    `scores` are defined for those only.
    """

    votes: Any
    diagonals: Any
    leads: Any
    touched: Any
    scores: Any


class Candidates(NamedTuple):
    """Candidates of all texts, changed in place: int64, shape (enough,) each.

    `mirrored` is 1 if the text is read as its mirror; a diagonal is the position in the reference less that
    in the text as it is read.
    """

    texts: Any
    mirrored: Any
    references: Any
    diagonals: Any


@shared
def oriented(index: Any, letters: Any, first: int, last: int, mirrored: int, position: int) -> int:
    """The set at a position of a text, or of its mirror."""
    if mirrored:
        return int(index.mirror[letters[last - 1 - position]])
    return int(letters[first + position])


@shared
def find_word(index: Any, word: int) -> int:
    """Number of a word among those that occur, -1 for others."""
    bits = int(index.table[word >> 5, 0])
    bit = word & 31
    if ((bits >> bit) & 1) == 0:
        return -1
    return int(index.table[word >> 5, 1]) + population(bits & ((1 << bit) - 1))


@shared
def _count(index: Any, number: int, position: int, scratch: Any, touched: int) -> int:
    """Votes of one word; returns the number of references with votes."""
    for k in range(index.starts[number], index.starts[number + 1]):
        reference = index.entries[k, 0]
        diagonal = index.entries[k, 1] - position
        votes = scratch.votes[reference]
        if votes == 0:
            scratch.touched[touched] = reference
            touched += 1
            scratch.leads[reference] = 0
        scratch.votes[reference] = votes + 1
        lead = scratch.leads[reference]
        if lead == 0:
            scratch.diagonals[reference] = diagonal
            scratch.leads[reference] = 1
        elif scratch.diagonals[reference] == diagonal:
            scratch.leads[reference] = lead + 1
        else:
            scratch.leads[reference] = lead - 1
    return touched


@shared
def _count_words(index: Any, letters: Any, first: int, last: int, mirrored: int, scratch: Any) -> int:
    """Votes of all words of a text; returns the number of references with votes."""
    size = index.size
    mask = (1 << (2 * size)) - 1
    word = 0
    whole = 0
    touched = 0
    for position in range(last - first):
        number = int(index.numbers[oriented(index, letters, first, last, mirrored, position)])
        word = ((word << 2) | (number & 3)) & mask
        whole = whole + 1 if number >= 0 else 0
        if whole >= size:
            found = find_word(index, word)
            if found >= 0:
                touched = _count(index, found, position - size + 1, scratch, touched)
    return touched


@shared
def segment_score(
    index: Any, letters: Any, first: int, last: int, mirrored: int, reference: int, diagonal: int
) -> int:
    """Best score of a segment without gaps on a diagonal; 0 if none is positive."""
    start = index.bounds[reference]
    length = index.bounds[reference + 1] - start
    best = 0
    score = 0
    for position in range(max(0, -diagonal), min(last - first, length - diagonal)):
        own = oriented(index, letters, first, last, mirrored, position)
        score += index.scores[own, index.letters[start + position + diagonal]]
        score = max(score, 0)
        best = max(best, score)
    return best


@shared
def _near(limits: Any, scratch: Any, reference: int, best: int, size: int) -> bool:
    """Whether a reference may have the best score, with or without gaps."""
    score = scratch.scores[reference]
    if score + limits.score_below >= best:
        return True
    # Votes for other diagonals hint at a gap; each may be a letter more, words over an edge some more.
    off = scratch.votes[reference] - scratch.leads[reference]
    return bool(off > 0 and score + off + 2 * size - limits.gap >= best)


@shared
def vote_text(
    index: Any,
    letters: Any,
    first: int,
    last: int,
    text: int,
    mirrored: int,
    limits: Any,
    scratch: Any,
    out: Any,
    at: int,
) -> int:
    """Find the candidates of a text in one orientation; returns where the next one goes.

    The text is ``letters[first:last]``; `mirrored` is 1 to read it as its mirror. `scratch` and `out` are
    changed in place; from `at` on, `out` has room for all references.
    """
    touched = _count_words(index, letters, first, last, mirrored, scratch)
    most = 0
    for k in range(touched):
        most = max(most, scratch.votes[scratch.touched[k]])
    best = 0
    for k in range(touched):
        reference = scratch.touched[k]
        scratch.scores[reference] = -1
        if scratch.votes[reference] + limits.votes_below >= most:
            diagonal = scratch.diagonals[reference]
            score = segment_score(index, letters, first, last, mirrored, reference, diagonal)
            scratch.scores[reference] = score
            best = max(best, score)
    for k in range(touched):
        reference = scratch.touched[k]
        near = scratch.scores[reference] >= 0 and _near(limits, scratch, reference, best, index.size)
        if near and best >= limits.least_score:
            out.texts[at] = text
            out.mirrored[at] = mirrored
            out.references[at] = reference
            out.diagonals[at] = scratch.diagonals[reference]
            at += 1
    for k in range(touched):
        scratch.votes[scratch.touched[k]] = 0
    return at


@shared
def copy_text(mirror: Any, letters: Any, first: int, last: int, mirrored: int, out: Any, at: int) -> None:
    """Copy ``letters[first:last]``, or its mirror where `mirrored` is 1, to `out` from `at` on."""
    if mirrored:
        for k in range(last - first):
            out[at + k] = mirror[letters[last - 1 - k]]
    else:
        for k in range(last - first):
            out[at + k] = letters[first + k]


@kernel
def votes_kernel(
    index: Any, letters: Any, starts: Any, text: int, limits: Any, scratch: Any, out: Any
) -> Any:
    """Candidates of texts in both orientations, see `vote_text`.

    Begins with `text` and ends where `out` is full; returns the next text and the number of candidates.
    """
    at = 0
    references = scratch.votes.size
    while text < starts.size - 1 and at + 2 * references <= out.texts.size:
        first, last = starts[text], starts[text + 1]
        for mirrored in range(2):
            at = vote_text(index, letters, first, last, text, mirrored, limits, scratch, out, at)
        text += 1
    return text, at


@kernel
def copy_kernel(
    mirror: Any, letters: Any, starts: Any, texts: Any, mirrored: Any, out: Any, out_starts: Any
) -> None:
    """Copies of texts or their mirrors, see `copy_text`."""
    for k in range(texts.size):
        text = texts[k]
        copy_text(mirror, letters, starts[text], starts[text + 1], mirrored[k], out, out_starts[k])


class Texts(NamedTuple):
    """Sequences as sets of bases: `codes`, uint8, with int64 (n + 1,) offsets `starts`."""

    codes: NDArray[np.uint8]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bases of each."""
        return np.diff(self.starts)

    def take(self, which: NDArray[np.int64], mirrored: NDArray[np.int64] | None = None) -> Texts:
        """Some of them, as their reverse complement where `mirrored` is 1."""
        turned = np.zeros(which.size, np.int64) if mirrored is None else mirrored
        return Texts(*_copies(_MIRROR, self.codes, self.starts, which, turned))


def texts_of(reads: ReadBlock) -> Texts:
    """Reads as sets of bases."""
    return Texts(IUPAC_MASK[reads.letters], np.array(reads.starts, np.int64))


def join_texts(first: Texts, second: Texts) -> Texts:
    """Sequences and others behind them."""
    starts = np.concatenate([first.starts, first.starts[-1] + second.starts[1:]])
    return Texts(np.concatenate([first.codes, second.codes]), starts)


def _copies(
    mirror: NDArray[np.uint8],
    letters: NDArray[np.uint8],
    starts: NDArray[np.int64],
    which: NDArray[np.int64],
    mirrored: NDArray[np.int64],
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    out_starts = edges_of(np.diff(starts)[which])
    out = np.empty(int(out_starts[-1]), np.uint8)
    copy_kernel(mirror, letters, starts, which, mirrored, out, out_starts)
    return out, out_starts


def merged_reads(
    reads: ReadBlock,
    backwards: NDArray[np.bool_],
    others: ReadBlock | None = None,
    swapped: NDArray[np.bool_] | None = None,
) -> ReadBlock:
    """The reads, reverse-complemented where `backwards`; where `swapped`, their mates from `others`."""
    swap = others is not None and swapped is not None and bool(swapped.any())
    if not swap and not backwards.any():
        return reads
    count = len(reads)
    which, starts = np.arange(count), np.array(reads.starts, np.int64)
    blocks = [reads]
    if swap:
        assert others is not None and swapped is not None
        blocks.append(others)
        which = which + count * swapped
        starts = np.concatenate([starts, starts[-1] + np.array(others.starts[1:], np.int64)])
    mirrored = backwards.astype(np.int64)
    letters = np.concatenate([block.letters for block in blocks])
    turned, edges = _copies(_COMPLEMENT, letters, starts, which, mirrored)
    qualities = None
    scores = [block.qualities for block in blocks if block.qualities is not None]
    if len(scores) == len(blocks):
        qualities, _ = _copies(_SAME, np.concatenate(scores), starts, which, mirrored)
    return ReadBlock(reads.names, turned, edges, qualities)


class Items(NamedTuple):
    """Reads on a strand on which they have candidates, by number (int64, not falling).

    `mirrored` is 1 where the read is turned, int64; `own` and `mates` are the reads and their mates as
    turned.
    """

    reads: NDArray[np.int64]
    mirrored: NDArray[np.int64]
    own: Texts
    mates: Texts | None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bases of each item and its mate."""
        return self.own.sizes if self.mates is None else self.own.sizes + self.mates.sizes

    def mate_parts(self, items: NDArray[np.int64]) -> Parts:
        """The mates of some items; what lies far behind the start of long ones is left out."""
        assert self.mates is not None
        firsts = self.mates.starts[items]
        return Parts(self.mates.codes, firsts, np.minimum(self.mates.starts[items + 1], firsts + _LONG))


class Pairs(NamedTuple):
    """Items and alleles to be aligned, ordered by item and then by allele; int64 each.

    `diagonals`: position in the allele less that in the part of the item, where most words agree. `firsts`
    and `lasts` bound the part of the item's bases in which to align.
    """

    items: NDArray[np.int64]
    alleles: NDArray[np.int64]
    diagonals: NDArray[np.int64]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]


def _votes(index: SegmentIndex, texts: Texts, below: int, least: int) -> list[NDArray[np.int64]]:
    """Texts, strands, alleles, diagonals of all candidates."""
    alleles = len(index.queries)
    limits = VoteLimits(_CHANGES * index.words.size, below, least, index.scoring.gap_open)
    scratch = VoteScratch(*np.zeros((5, alleles), np.int64))
    room = Candidates(*np.empty((4, max(_ROOM, 2 * alleles)), np.int64))
    found: list[NDArray[np.int64]] = [np.zeros((4, 0), np.int64)]
    text = 0
    while text < texts.starts.size - 1:
        text, used = votes_kernel(index.words, texts.codes, texts.starts, text, limits, scratch, room)
        found.append(np.stack([column[:used] for column in room]))
    return list(np.concatenate(found, axis=1))


def shares_words(index: SegmentIndex, texts: Texts, least: int) -> NDArray[np.bool_]:
    """Whether each sequence has a candidate on either strand that scores `least` or more without gaps."""
    found = np.zeros(texts.sizes.size, np.bool_)
    found[_votes(index, texts, 0, least)[0]] = True
    return found


def find_candidates(
    index: SegmentIndex, texts: Texts, mates: Texts | None = None, *, least: int = _LEAST
) -> tuple[Items, Pairs]:
    """Find the alleles that share words with reads or their mates (one for each, on the same strand).

    `least` is the least score without gaps of the best candidate.
    """
    below = _SCORE_BELOW if mates is None else _SCORE_BELOW_WITH_MATE
    reads, mirrored, alleles, diagonals = _votes(index, texts, below, least)
    own = np.ones(reads.size, np.bool_)
    if mates is not None:
        more = _votes(index, mates, below, least)
        own = np.concatenate([own, np.zeros(more[0].size, np.bool_)])
        reads, mirrored, alleles, diagonals = (
            np.concatenate(both) for both in zip((reads, mirrored, alleles, diagonals), more, strict=True)
        )
    keys = reads * 2 + mirrored
    # The first of equal pairs is that of the read, if it has one.
    order = np.lexsort((~own, alleles, keys))
    new = np.diff(alleles[order], prepend=-1) != 0
    order = order[new | (np.diff(keys[order], prepend=-1) != 0)]
    strands, numbers = np.unique(keys[order], return_inverse=True)
    which, turned = strands // 2, strands % 2
    items = Items(
        which, turned, texts.take(which, turned), None if mates is None else mates.take(which, turned)
    )
    return items, _windows(index, items, numbers, alleles[order], diagonals[order], own[order])


def _windows(
    index: SegmentIndex,
    items: Items,
    numbers: NDArray[np.int64],
    alleles: NDArray[np.int64],
    diagonals: NDArray[np.int64],
    own: NDArray[np.bool_],
) -> Pairs:
    """Pairs with the parts in which to align them: long reads only near the diagonal."""
    firsts, lasts = items.own.starts[numbers], items.own.starts[numbers + 1]
    sizes = lasts - firsts
    lengths = np.diff(index.words.bounds)[alleles]
    long = sizes > _LONG
    low = np.where(long & own, np.maximum(-diagonals - _MARGIN, 0), 0)
    high = np.where(long, np.where(own, lengths - diagonals + _MARGIN, _LONG), sizes)
    return Pairs(numbers, alleles, diagonals + low, firsts + low, np.minimum(firsts + high, lasts))
