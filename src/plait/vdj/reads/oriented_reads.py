"""Reads and their mates as sets of bases, and reads turned to the strand of the genes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_MASK, IUPAC_MASK, MASK_SYMBOL
from plait.formats.fastq import ReadBlock
from plait.vdj.reads.columns import edges_of
from plait.vdj.reads.votes import copy_kernel

_COMPLEMENT = np.frombuffer(MASK_SYMBOL.encode(), np.uint8)[COMPLEMENT_MASK[IUPAC_MASK]].copy()
_SAME = np.arange(256, dtype=np.uint8)
_MIRROR = COMPLEMENT_MASK.copy()


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
