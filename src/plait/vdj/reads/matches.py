"""V and J matches of reads: what a search finds for some of them, and the arrays for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.formats.fastq import ReadBlock
from plait.vdj.reads.allele_alignment import Paths, join_paths, no_paths
from plait.vdj.reads.columns import edges_of, join_edges, take_groups


@dataclass(frozen=True, slots=True, eq=False)
class SegmentMatches:
    """The best local alignments of n reads with the alleles of one segment.

    Coordinates are 0-based and half-open; those of a read count in the orientation of `GermlineMatches`.
    Where a read matches no allele, its score and its coordinates are 0 and it has no allele and no run.

    `support` is the expected number of alignments as good by chance, for this read and all alleles. `alleles`
    are the indices of those that have the best score, in the order of the germline set, with offsets
    `allele_starts` (n + 1,); coordinates, runs, `matches` (pairs of equal bases) and `mismatches`
    (other pairs) are those of the first. `runs`, shape (runs, 2), are kind (0 pairs of bases, 1 bases of the
    germline alone, that the read lacks, 2 bases of the read alone, inserted ones) and length, with offsets
    `run_starts` (n + 1,). All others have shape (n,).
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
    """Reads in the orientation of the genes, and what of the germline they match.

    Where `reversed`, (n,), the read as given is the other strand and `reads` has its reverse complement, with
    its qualities. `germline`, (n,), is the index of the set that matches best, -1 where none does; the
    alleles of `v` and `j` are indices into ``v`` and ``j`` of this set. `swapped`, (n,), says whether the
    mate took the place of the read, because J, or V alone, lies in it: `reads` then holds the mate, and
    `reversed` counts from it; None where no read has a mate.
    """

    reads: ReadBlock
    reversed: NDArray[np.bool_]
    germline: NDArray[np.int8]
    v: SegmentMatches
    j: SegmentMatches
    swapped: NDArray[np.bool_] | None = None


class Found(NamedTuple):
    """What was found for the reads of these numbers.

    `shift` is to be added to the coordinates in the read; `starts` are offsets into `alleles`, which tie.
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
    """No allele for some reads: score 0, and no alignment."""
    zeros = np.zeros(reads.size, np.int64)
    starts = np.zeros(reads.size + 1, np.int64)
    return Found(reads, zeros, np.zeros(reads.size), zeros, no_paths(reads.size), zeros[:0], starts)


def segment_matches(count: int, found: Found) -> SegmentMatches:
    """Lay out what was found for some of `count` reads, in order."""

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


class Answers(NamedTuple):
    """The V and J of some reads, in their order.

    `mirrored` (int64) is 1 where the read is turned, `sets` the germline set. `v.reads` are the reads that
    have an answer, with score 0 where there is no V; `j` is of those that have one.
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
