"""Answers: what is called for some reads, found in one way or another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.vdj.annotation.segment_matches import Found, join_found

__all__ = ["Answers", "join_answers"]


class Answers(NamedTuple):
    """The V and J of some reads, in their order.

    Attributes
    ----------
    mirrored
        1 where the read is turned, int64.
    sets
        Germline set, int64.
    v
        The V of each, with score 0 where there is none; its `reads` are the reads that have an answer.
    j
        The J of those that have one.
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
        return 2 * (self.v.scores > 0) + np.isin(self.reads, self.j.reads)

    def only(self, wanted: NDArray[np.bool_]) -> Answers:
        """Some of the answers."""
        rows = np.flatnonzero(wanted)
        kept = np.flatnonzero(np.isin(self.j.reads, self.reads[rows]))
        return Answers(self.mirrored[rows], self.sets[rows], self.v.take(rows), self.j.take(kept))

    def renumbered(self, numbers: NDArray[np.int64]) -> Answers:
        """The answers, with other numbers of reads in the same order."""
        v, j = (own._replace(reads=numbers[own.reads]) for own in (self.v, self.j))
        return Answers(self.mirrored, self.sets, v, j)


def join_answers(parts: Sequence[Answers]) -> Answers:
    """Answers for different reads as one list, in the order of the reads."""
    v, j = join_found([part.v for part in parts]), join_found([part.j for part in parts])
    order = np.argsort(v.reads, kind="stable")
    return Answers(
        np.concatenate([part.mirrored for part in parts])[order],
        np.concatenate([part.sets for part in parts])[order],
        v.take(order),
        j.take(np.argsort(j.reads, kind="stable")),
    )
