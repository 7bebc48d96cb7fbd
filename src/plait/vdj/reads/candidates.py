"""Which alleles are worth aligning with which reads, on which strand."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.vdj.reads.allele_alignment import Parts
from plait.vdj.reads.germline_index import SegmentIndex
from plait.vdj.reads.oriented_reads import Texts
from plait.vdj.reads.votes import Candidates, VoteLimits, VoteScratch, votes_kernel

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
