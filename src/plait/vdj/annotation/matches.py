"""What the alignment of reads with germline alleles gives: arrays, one entry a read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.formats.read_block import ReadBlock

__all__ = ["GermlineMatches", "SegmentMatches"]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentMatches:
    """The best local alignments of n reads with the alleles of one segment.

    Coordinates are 0-based and half-open; those of a read count in the orientation of `GermlineMatches`.
    Where a read matches no allele, its score is 0, its coordinates are 0 and it has no allele and no run.

    Attributes
    ----------
    score
        Score of the best alignment; int32, shape (n,).
    support
        Expected number of alignments as good by chance, for this read and all alleles; float64, shape (n,).
    alleles
        Indices of the alleles that have this score, in the order of the germline set; int32.
    allele_starts
        Where those of each read begin in `alleles`, and the end of the last; int64, shape (n + 1,).
    read_start, read_end
        Aligned part of the read, for its first allele; int32, shape (n,).
    germline_start, germline_end
        Aligned part of that allele; int32, shape (n,).
    runs
        Runs of that alignment from its start: kind (0 pairs of bases, 1 bases of the germline alone, that the
        read lacks, 2 bases of the read alone, inserted ones) and length; int32, shape (runs, 2).
    run_starts
        Where those of each read begin in `runs`, and the end of the last; int64, shape (n + 1,).
    matches
        Pairs of equal bases; int32, shape (n,).
    mismatches
        Other pairs; int32, shape (n,).
    """

    score: NDArray[np.int32]
    support: NDArray[np.float64]
    alleles: NDArray[np.int32]
    allele_starts: NDArray[np.int64]
    read_start: NDArray[np.int32]
    read_end: NDArray[np.int32]
    germline_start: NDArray[np.int32]
    germline_end: NDArray[np.int32]
    runs: NDArray[np.int32]
    run_starts: NDArray[np.int64]
    matches: NDArray[np.int32]
    mismatches: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class GermlineMatches:
    """Reads as they are oriented, and what of the germline they match.

    Attributes
    ----------
    reads
        The reads in the orientation of the genes: those of `reversed` are reverse-complemented, with their
        qualities.
    reversed
        Whether the read as given is the other strand; bool, shape (n,).
    germline
        Index of the germline set that matches best, -1 where none does; int8, shape (n,). The alleles of `v`
        and `j` are indices into ``v`` and ``j`` of this set.
    v, j
        Best matches with the V and with the J alleles.
    swapped
        Whether the mate took the place of the read, because J, or V alone, lies in it: `reads` then holds the
        mate, and `reversed` counts from it; bool, shape (n,). None where no read has a mate.
    """

    reads: ReadBlock
    reversed: NDArray[np.bool_]
    germline: NDArray[np.int8]
    v: SegmentMatches
    j: SegmentMatches
    swapped: NDArray[np.bool_] | None = None
