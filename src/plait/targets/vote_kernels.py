"""Compiled entry points for texts and the references that they share words with."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.diagonals import copy_text, count_alike, find_segment
from plait.schedules.word_votes import vote_text

__all__ = ["alike_kernel", "copy_kernel", "segments_kernel", "votes_kernel"]


@kernel
def votes_kernel(
    index: Any, letters: Any, starts: Any, text: int, limits: Any, scratch: Any, out: Any
) -> Any:
    """Candidates of texts in both orientations, see `plait.schedules.word_votes.vote_text`.

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
    """Segments of all pairs, see `plait.schedules.diagonals.find_segment`."""
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
    """Equal and other pairs of alignments, see `plait.schedules.diagonals.count_alike`."""
    for pair in range(firsts.size):
        first, last = run_starts[pair], run_starts[pair + 1]
        alike[pair], unlike[pair] = count_alike(
            index, letters, firsts[pair], references[pair], starts[pair], runs, first, last
        )


@kernel
def copy_kernel(
    mirror: Any, letters: Any, starts: Any, texts: Any, mirrored: Any, out: Any, out_starts: Any
) -> None:
    """Copies of texts or their mirrors, see `plait.schedules.diagonals.copy_text`."""
    for k in range(texts.size):
        text = texts[k]
        copy_text(mirror, letters, starts[text], starts[text + 1], mirrored[k], out, out_starts[k])
