"""Which references share words with a text, read forwards or as its mirror: votes, and segments without gaps.

A word is a number of k letters, two bits for each; a letter that stands for several breaks the words over it.
Every word that a text shares with a reference is a vote for it, and for the diagonal on which both lie. The
references with about the most votes are scored on the diagonal that most of them name; those that come near
the best such score are candidates.

A mirror is the text backwards with each letter replaced by its partner, whose number is 3 less its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.lanes import population

__all__ = [
    "Candidates",
    "VoteLimits",
    "VoteScratch",
    "WordIndex",
    "find_word",
    "oriented",
    "segment_score",
    "vote_text",
]


class WordIndex(NamedTuple):
    """The words of some references, and what segments are scored with.

    Attributes
    ----------
    size
        Letters of a word, k.
    table
        For 32 words each: which of them occur, one bit a word, and how many words occur before; int32, shape
        (4^k / 32, 2), or one row if that is less.
    starts
        Where the entries of each word that occurs begin, and the end of the last; int32.
    entries
        Reference and position of each occurrence, int32, shape (occurrences, 2).
    letters
        Letters of all references as sets: a bit for each of four letters; uint8.
    bounds
        Where each reference begins in `letters`, and the end of the last; int64.
    numbers
        Number of each set: 0 to 3 where it holds one letter, else -1; int8, shape (16,).
    mirror
        The set of the partners of each set, uint8, shape (16,).
    scores
        Score of a set of the text and one of a reference, int32, shape (16, 16).
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


class VoteLimits(NamedTuple):
    """What makes a candidate.

    Attributes
    ----------
    votes_below
        How many votes fewer than the best a reference may have to be scored.
    score_below
        How much less than the best a candidate's score may be.
    least_score
        Least best score of a text: with less it has no candidate.
    gap
        Least cost of a gap.
    """

    votes_below: Any
    score_below: Any
    least_score: Any
    gap: Any


class VoteScratch(NamedTuple):
    """Memory of one thread; each int64, shape (references,).

    Attributes
    ----------
    votes
        Votes of each reference, zero between texts.
    diagonals, leads
        The diagonal that leads, and by how much.
    touched
        References with votes.
    scores
        Best scores of those, and of others no value.
    """

    votes: Any
    diagonals: Any
    leads: Any
    touched: Any
    scores: Any


class Candidates(NamedTuple):
    """Candidates of all texts, changed in place.

    Attributes
    ----------
    texts, mirrored, references, diagonals
        Text, 1 if it is read as its mirror, reference, diagonal (position in the reference less that in the
        text as it is read); int64, shape (enough,).
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

    Parameters
    ----------
    index
        `WordIndex`.
    letters
        Sets of all texts, uint8.
    first, last
        Where in them the text lies.
    text
        Its number.
    mirrored
        1 to read it as its mirror.
    limits
        `VoteLimits`.
    scratch
        `VoteScratch`; changed in place.
    out
        `Candidates`; changed in place.
    at
        Where the first candidate goes; there is room for all references.
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
