"""V and J alleles of reads: candidates by shared words, decided by local alignment with affine gaps.

Reads with a V are found by it, and the J is looked for beside it. Of the others, those with a sure J may have
the short end of a V left of it; a sure J is called without a V, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.read_block import ReadBlock
from plait.targets.devices import resolve
from plait.vdj.annotation.answers import Answers, join_answers
from plait.vdj.annotation.candidates import LEAST_J, shares_words
from plait.vdj.annotation.germline_index import germline_index
from plait.vdj.annotation.matches import GermlineMatches
from plait.vdj.annotation.oriented_reads import Texts, join_texts, merged_reads, texts_of
from plait.vdj.annotation.segment_matches import segment_matches
from plait.vdj.annotation.v_calls import Limits, answers_by_v
from plait.vdj.annotation.v_ends import answers_by_j
from plait.vdj.germline import GermlineSet

__all__ = ["GermlineAligner"]

#: Their numbers are 8-bit.
_MOST_SETS: Final = 127


class GermlineAligner:
    """Aligns reads with the V and J alleles of germline sets.

    Parameters
    ----------
    germlines
        The sets; a read is called with the one that matches best, the first of equal ones.
    device
        As for `plait.targets.devices.resolve`.
    threads
        Threads for one block of reads; blocks may be aligned side by side in threads of the caller.
    max_evalue
        Expected number of chance alignments as good as that of a V, at most. Beside a J, a V with a larger
        one is called if the product of both is no larger; if it holds the conserved Cys, only alignments
        that hold one are counted.
    max_j_evalue
        Expected number of chance alignments as good as that of a J, in the part of the read right of the V.

    Raises
    ------
    InvalidInput
        If there is no germline set, too many, or one without V or J alleles, or a number is not positive.
    TargetUnavailable
        If the device cannot be used.
    """

    def __init__(
        self,
        germlines: Sequence[GermlineSet],
        *,
        device: str = "auto",
        threads: int = 1,
        max_evalue: float = 1e-6,
        max_j_evalue: float = 1e-2,
    ) -> None:
        if not 0 < len(germlines) <= _MOST_SETS:
            expected = f"1 to {_MOST_SETS} germline sets"
            raise InvalidInput("germlines", found=str(len(germlines)), expected=expected)
        for own in germlines:
            if not (own.v and own.j):
                found = f"no {'V' if own.j else 'J'} allele"
                raise InvalidInput(f"germline set {own.name!r}", found=found, expected="V and J alleles")
        for what, value in (("max_evalue", max_evalue), ("max_j_evalue", max_j_evalue)):
            if not value > 0:
                raise InvalidInput(what, found=repr(value), expected="a positive number")
        self.germlines = tuple(germlines)
        self.max_evalue = max_evalue
        self.max_j_evalue = max_j_evalue
        self._target = resolve(device, threads)
        self._index = germline_index(self.germlines)

    def align(self, reads: ReadBlock, others: ReadBlock | None = None) -> GermlineMatches:
        """Find the best V and J of each read.

        Parameters
        ----------
        reads
            The reads.
        others
            Mates that were not merged, on the strand of `reads`, one for each; empty where there is none.
            Their scores count when alleles are chosen. Where the mate has a J with its V, and the read has
            none or shares few words with one, the two change places.

        Returns
        -------
        GermlineMatches
            One entry for each read.

        Raises
        ------
        InvalidInput
            If `others` are not as many as `reads`.
        """
        if others is not None and len(others) != len(reads):
            expected = f"{len(reads)} mates, one for each read"
            raise InvalidInput("others", found=str(len(others)), expected=expected)
        count = len(reads)
        texts = texts_of(reads)
        swapped = np.zeros(count, np.bool_)
        if others is None:
            answers = self._answers(texts, None)
        else:
            answers, swapped = self._answers_of_mates(texts, texts_of(others))
        backwards, germline = np.zeros(count, np.bool_), np.full(count, -1, np.int8)
        backwards[answers.reads] = answers.mirrored != 0
        germline[answers.reads] = answers.sets
        return GermlineMatches(
            merged_reads(reads, backwards, others, swapped),
            backwards,
            germline,
            segment_matches(count, answers.v),
            segment_matches(count, answers.j),
            None if others is None else swapped,
        )

    def _answers_of_mates(self, texts: Texts, mates: Texts) -> tuple[Answers, NDArray[np.bool_]]:
        """Answers for the reads that have one, and whether each read changed places with its mate."""
        count = texts.sizes.size
        single, paired = (np.flatnonzero(own) for own in (mates.sizes == 0, mates.sizes > 0))
        pool = join_texts(texts, mates)

        def turn(which: NDArray[np.int64], swap: NDArray[np.bool_]) -> Answers:
            first, second = (pool.take(which + count * own[which]) for own in (swap, ~swap))
            return self._answers(first, second).renumbered(which)

        # What words tell of a J saves most of the second look.
        swap = shares_words(self._index.j, mates, LEAST_J) & ~shares_words(self._index.j, texts, LEAST_J)
        found = turn(paired, swap)
        own = np.zeros(count, np.int64)
        own[found.reads] = found.completeness
        other = turn(paired[own[paired] < 3], ~swap)
        # Of equal answers that of the reads as they are given.
        other = other.only(2 * other.completeness + swap[other.reads] > 2 * own[other.reads])
        found = found.only(~np.isin(found.reads, other.reads))
        swapped = np.zeros(count, np.bool_)
        swapped[found.reads], swapped[other.reads] = swap[found.reads], ~swap[other.reads]
        alone = self._answers(texts.take(single), None).renumbered(single)
        return join_answers([alone, found, other]), swapped

    def _answers(self, texts: Texts, mates: Texts | None) -> Answers:
        """Answers for the reads that have one."""
        limits = Limits(self.max_evalue, self.max_j_evalue)
        found = answers_by_v(self._target, self._index, texts, mates, limits)
        rest: NDArray[np.int64] = np.setdiff1d(np.arange(texts.sizes.size), found.reads)
        if not rest.size:
            return found
        more = answers_by_j(self._target, self._index, texts.take(rest), self.max_evalue)
        return join_answers([found, more.renumbered(rest)])
