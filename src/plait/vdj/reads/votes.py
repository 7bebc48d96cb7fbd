"""Kernels that vote for alleles by the words that reads share with them, and segments without gaps.

Texts are reads, references alleles; the mirror of a text is its reverse complement.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.compile import kernel, shared
from plait.lang.lanes import population


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
    first = out.firsts[pair]
    start = index.bounds[out.references[pair]]
    length = index.bounds[out.references[pair] + 1] - start
    score = 0
    begin = 0
    for position in range(max(0, -diagonal), min(out.lasts[pair] - first, length - diagonal)):
        if score == 0:
            begin = position
        score += index.scores[letters[first + position], index.letters[start + position + diagonal]]
        score = max(score, 0)
        if score == out.wanted[pair]:
            out.starts[pair] = begin
            out.ends[pair] = position + 1
            out.diagonals[pair] = diagonal
            return True
    return False


@shared
def _alike(index: Any, letters: Any, pair: int, diagonal: int, out: Any) -> int:
    """How many letters of a diagonal can be alike."""
    first = out.firsts[pair]
    start = index.bounds[out.references[pair]]
    length = index.bounds[out.references[pair] + 1] - start
    alike = 0
    for position in range(max(0, -diagonal), min(out.lasts[pair] - first, length - diagonal)):
        alike += (letters[first + position] & index.letters[start + position + diagonal]) != 0
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
            for step in range(length):
                own = letters[position + step]
                same = own == index.letters[other + step] and index.numbers[own] >= 0
                alike += 1 if same else 0
                unlike += 0 if same else 1
        position += 0 if runs[k, 0] == 1 else length
        other += 0 if runs[k, 0] == 2 else length
    return alike, unlike


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
    """Candidates of texts in both orientations, see `plait.vdj.reads.votes.vote_text`.

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
def segments_kernel(index: Any, letters: Any, match: int, backwards: int, out: Any) -> None:
    """Segments of all pairs, see `plait.vdj.reads.votes.find_segment`."""
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
    """Equal and other pairs of alignments, see `plait.vdj.reads.votes.count_alike`."""
    for pair in range(firsts.size):
        first, last = run_starts[pair], run_starts[pair + 1]
        alike[pair], unlike[pair] = count_alike(
            index, letters, firsts[pair], references[pair], starts[pair], runs, first, last
        )


@kernel
def copy_kernel(
    mirror: Any, letters: Any, starts: Any, texts: Any, mirrored: Any, out: Any, out_starts: Any
) -> None:
    """Copies of texts or their mirrors, see `plait.vdj.reads.votes.copy_text`."""
    for k in range(texts.size):
        text = texts[k]
        copy_text(mirror, letters, starts[text], starts[text + 1], mirrored[k], out, out_starts[k])
