"""How parts of reads and alleles with known scores are aligned: coordinates and runs.

An alignment without gaps comes before those with gaps: on the diagonal that the words name, else on the one
that begins first in the read. Else it is the one that the traceback of the aligner finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.diagonals import Segments
from plait.schedules.pair_setup import make_setup
from plait.targets.protocol import Target
from plait.targets.vote_kernels import alike_kernel, segments_kernel
from plait.vdj.annotation.allele_scores import Parts, pair_task
from plait.vdj.annotation.germline_index import SegmentIndex
from plait.vdj.annotation.ragged import edges_of, join_edges, take_groups

__all__ = ["NOWHERE", "Paths", "find_paths", "join_paths", "no_paths"]

#: A diagonal on which nothing lies.
NOWHERE: Final = 1 << 40


class Paths(NamedTuple):
    """Alignments of n parts with alleles.

    Attributes
    ----------
    read_start, read_end
        Aligned part of the part, counted from its start; int64, shape (n,).
    germline_start, germline_end
        Aligned part of the allele; int64, shape (n,).
    matches, mismatches
        Pairs of equal bases, other pairs; int64, shape (n,).
    runs
        As in `plait.vdj.annotation.matches.SegmentMatches`.
    run_starts
        Where those of each begin, and the end of the last; int64, shape (n + 1,).
    """

    read_start: NDArray[np.int64]
    read_end: NDArray[np.int64]
    germline_start: NDArray[np.int64]
    germline_end: NDArray[np.int64]
    matches: NDArray[np.int64]
    mismatches: NDArray[np.int64]
    runs: NDArray[np.int32]
    run_starts: NDArray[np.int64]

    def take(self, which: NDArray[np.int64]) -> Paths:
        """Some of them."""
        runs, run_starts = take_groups(self.run_starts, which)
        return Paths(
            self.read_start[which],
            self.read_end[which],
            self.germline_start[which],
            self.germline_end[which],
            self.matches[which],
            self.mismatches[which],
            self.runs[runs],
            run_starts,
        )


def no_paths(count: int) -> Paths:
    """Alignments without columns.

    Parameters
    ----------
    count
        How many.
    """
    zeros = np.zeros(count, np.int64)
    return Paths(
        zeros, zeros, zeros, zeros, zeros, zeros, np.zeros((0, 2), np.int32), np.zeros(count + 1, np.int64)
    )


def join_paths(parts: Sequence[Paths]) -> Paths:
    """Lists of alignments, one behind the other."""
    starts, ends, germline_starts, germline_ends, matches, mismatches, runs, edges = zip(*parts, strict=True)
    return Paths(
        np.concatenate(starts),
        np.concatenate(ends),
        np.concatenate(germline_starts),
        np.concatenate(germline_ends),
        np.concatenate(matches),
        np.concatenate(mismatches),
        np.concatenate(runs),
        join_edges(edges),
    )


def _with_gaps(
    target: Target, index: SegmentIndex, parts: Parts, alleles: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """Ends (of the part, then of the allele) and runs of alignments that the traceback finds."""
    task = pair_task(index, parts, alleles)
    found = target.run_pairs(make_setup(task, keep=True), task)
    return found.ends, np.split(found.runs, np.cumsum(found.run_counts)[:-1])


def find_paths(
    target: Target,
    index: SegmentIndex,
    parts: Parts,
    alleles: NDArray[np.int64],
    scores: NDArray[np.int64],
    diagonals: NDArray[np.int64] | None = None,
    *,
    last: bool = False,
) -> Paths:
    """An alignment of the known score for each part and its allele.

    Parameters
    ----------
    target
        Where to compute.
    index
        The alleles.
    parts
        The parts.
    alleles
        Allele of each part.
    scores
        Best local score of each, positive.
    diagonals
        Where to look first: position in the allele less that in the part; None if that is not known.
    last
        Whether of several alignments the last one in the part is wanted, not the first.
    """
    count = alleles.size
    own = np.full(count, NOWHERE) if diagonals is None else diagonals.copy()
    starts, ends = np.empty((2, count), np.int64)
    segments = Segments(parts.firsts, parts.lasts, alleles, scores, own, starts, ends)
    segments_kernel(index.words, parts.codes, index.scoring.match, int(last), segments)
    germline_starts, germline_ends = starts + own, ends + own
    run_counts = np.ones(count, np.int64)
    gapped = np.flatnonzero(starts < 0)
    pieces: list[NDArray[np.int64]] = []
    if gapped.size:
        found, pieces = _with_gaps(target, index, parts.take(gapped), alleles[gapped])
        starts[gapped], ends[gapped] = found[:, 0], found[:, 1]
        germline_starts[gapped], germline_ends[gapped] = found[:, 2], found[:, 3]
        run_counts[gapped] = [len(piece) for piece in pieces]
    run_starts = edges_of(run_counts)
    runs = np.zeros((int(run_starts[-1]), 2), np.int32)
    runs[run_starts[:-1], 1] = ends - starts
    for pair, piece in zip(gapped.tolist(), pieces, strict=True):
        runs[run_starts[pair] : run_starts[pair + 1]] = piece
    alike, unlike = np.zeros((2, count), np.int64)
    firsts = parts.firsts + starts
    alike_kernel(index.words, parts.codes, firsts, alleles, germline_starts, runs, run_starts, alike, unlike)
    cuts = index.cuts[alleles]
    return Paths(starts, ends, germline_starts + cuts, germline_ends + cuts, alike, unlike, runs, run_starts)
