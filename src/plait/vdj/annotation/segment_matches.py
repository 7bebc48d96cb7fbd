"""What is found for some reads, and arrays with an entry for every read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.vdj.annotation.allele_paths import Paths, join_paths, no_paths
from plait.vdj.annotation.matches import SegmentMatches
from plait.vdj.annotation.ragged import edges_of, join_edges, take_groups

__all__ = ["Found", "join_found", "nothing_found", "segment_matches"]


class Found(NamedTuple):
    """What was found, for some reads.

    Attributes
    ----------
    reads
        Number of each read.
    scores, support
        As in `SegmentMatches`.
    shift
        What is to be added to the coordinates in the read.
    paths
        How they are aligned.
    alleles, starts
        Alleles that tie, and where those of each read begin.
    """

    reads: NDArray[np.int64]
    scores: NDArray[np.int64]
    support: NDArray[np.float64]
    shift: NDArray[np.int64]
    paths: Paths
    alleles: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def read_start(self) -> NDArray[np.int64]:
        """Where the alignments begin in the reads."""
        return self.paths.read_start + self.shift

    @property
    def read_end(self) -> NDArray[np.int64]:
        """Where the alignments end in the reads."""
        return self.paths.read_end + self.shift

    def take(self, which: NDArray[np.int64]) -> Found:
        """What was found for some of them."""
        alleles, starts = take_groups(self.starts, which)
        return Found(
            self.reads[which],
            self.scores[which],
            self.support[which],
            self.shift[which],
            self.paths.take(which),
            self.alleles[alleles],
            starts,
        )


def join_found(parts: Sequence[Found]) -> Found:
    """What was found in several ways, one behind the other."""
    reads, scores, support, shift, paths, alleles, starts = zip(*parts, strict=True)
    return Found(
        np.concatenate(reads),
        np.concatenate(scores),
        np.concatenate(support),
        np.concatenate(shift),
        join_paths(paths),
        np.concatenate(alleles),
        join_edges(starts),
    )


def nothing_found(reads: NDArray[np.int64]) -> Found:
    """No allele for some reads: score 0, and no alignment.

    Parameters
    ----------
    reads
        Number of each read.
    """
    zeros = np.zeros(reads.size, np.int64)
    starts = np.zeros(reads.size + 1, np.int64)
    return Found(reads, zeros, np.zeros(reads.size), zeros, no_paths(reads.size), zeros[:0], starts)


def segment_matches(count: int, found: Found) -> SegmentMatches:
    """Lay out what was found.

    Parameters
    ----------
    count
        Number of reads.
    found
        What was found for some of them, in order.
    """

    def spread(values: NDArray[np.int64]) -> NDArray[np.int32]:
        out = np.zeros(count, np.int32)
        out[found.reads] = values
        return out

    def edges(starts: NDArray[np.int64]) -> NDArray[np.int64]:
        sizes = np.zeros(count, np.int64)
        sizes[found.reads] = np.diff(starts)
        return edges_of(sizes)

    support = np.zeros(count)
    support[found.reads] = found.support
    return SegmentMatches(
        score=spread(found.scores),
        support=support,
        alleles=found.alleles.astype(np.int32),
        allele_starts=edges(found.starts),
        read_start=spread(found.read_start),
        read_end=spread(found.read_end),
        germline_start=spread(found.paths.germline_start),
        germline_end=spread(found.paths.germline_end),
        runs=found.paths.runs,
        run_starts=edges(found.paths.run_starts),
        matches=spread(found.paths.matches),
        mismatches=spread(found.paths.mismatches),
    )
