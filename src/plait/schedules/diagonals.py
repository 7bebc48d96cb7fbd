"""Segments without gaps of a text and a reference, of a known score; letters along an alignment."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared

__all__ = ["Segments", "copy_text", "count_alike", "find_segment", "segment_on"]


class Segments(NamedTuple):
    """Pairs and the segments found, changed in place.

    Attributes
    ----------
    firsts, lasts
        Where in the letters of the texts each text lies; int64, shape (pairs,).
    references
        Reference of each; int64.
    wanted
        Score that its segment must have, positive; int64.
    diagonals
        Diagonal to look at first: position in the reference less that in the text; int64.
    starts, ends
        Part of the text, counted from its start; -1 where no segment has this score; int64.
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

    Parameters
    ----------
    index
        `plait.schedules.word_votes.WordIndex`, of which letters, bounds and scores are used.
    letters
        Sets of all texts, uint8.
    pair
        Number of the pair.
    match
        Largest score of two letters.
    backwards
        0 to look from the start of the text on, 1 from its end.
    out
        `Segments`; changed in place.
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

    Parameters
    ----------
    index
        As for `find_segment`.
    letters
        Sets of all texts, uint8.
    first
        Where the alignment starts in `letters`.
    reference
        The reference.
    start
        Where the alignment starts in it.
    runs
        Operation (0 pairs, 1 letters of the reference alone, 2 of the text alone) and length, int32.
    run, last_run
        Which of them.
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
    """Copy a text, or its mirror.

    Parameters
    ----------
    mirror
        Partner of each letter, uint8.
    letters
        Letters of all texts, uint8.
    first, last
        Where in them the text lies.
    mirrored
        1 to copy its mirror.
    out
        Changed in place, uint8.
    at
        Where the copy begins.
    """
    if mirrored:
        for k in range(last - first):
            out[at + k] = mirror[letters[last - 1 - k]]
    else:
        for k in range(last - first):
            out[at + k] = letters[first + k]
