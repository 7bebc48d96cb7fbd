"""Local alignment of parts of reads with alleles, affine gaps: scores, coordinates and runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Target
from plait.dp.pairs.blocks import pack_texts
from plait.dp.pairs.launches import BLOCK_SCORES, PAIR_LIST, BlockBatch, ListBatch
from plait.dp.pairs.lists import PairList, make_setup
from plait.vdj.reads.columns import edges_of, join_edges, take_groups
from plait.vdj.reads.germline_index import LOCAL, SegmentIndex
from plait.vdj.reads.votes import Segments, alike_kernel, segments_kernel

#: Parts from which an allele is worth a sweep in lanes.
_FEWEST: Final = 12


class Parts(NamedTuple):
    """Parts of reads: `codes` are the bases of all reads as sets, a part is `firsts` to `lasts` in it."""

    codes: NDArray[np.uint8]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bases of each part."""
        return self.lasts - self.firsts

    def take(self, which: NDArray[np.int64]) -> Parts:
        """Some of the parts."""
        return Parts(self.codes, self.firsts[which], self.lasts[which])


def _joined(
    codes: NDArray[np.uint8], firsts: NDArray[np.int64], lasts: NDArray[np.int64]
) -> NDArray[np.uint8]:
    pieces = [codes[first:last] for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]
    return np.concatenate(pieces)


def pair_task(index: SegmentIndex, parts: Parts, alleles: NDArray[np.int64]) -> PairList:
    """Parts and their alleles as pairs, one by one; at least one, and none empty."""
    bounds = index.words.bounds
    scoring = index.scoring
    return PairList(
        _joined(*parts),
        edges_of(parts.sizes),
        _joined(index.words.letters, bounds[alleles], bounds[alleles + 1]),
        edges_of(bounds[alleles + 1] - bounds[alleles]),
        scoring.scores,
        scoring.gap_open,
        scoring.gap_extend,
        LOCAL,
    )


def _one_by_one(
    target: Target, index: SegmentIndex, parts: Parts, alleles: NDArray[np.int64]
) -> NDArray[np.int64]:
    scores = np.zeros(alleles.size, np.int64)
    filled = np.flatnonzero((parts.sizes > 0) & (np.diff(index.words.bounds)[alleles] > 0))
    if filled.size:
        task = pair_task(index, parts.take(filled), alleles[filled])
        # What keeps choices is compiled for the traceback anyway.
        scores[filled] = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task)).scores
    return scores


def score_all(target: Target, index: SegmentIndex, number: int, parts: Parts) -> NDArray[np.int64]:
    """Scores of all alleles of germline set `number` with all parts, shape (parts, alleles of the set)."""
    own = index.of_set(number)
    queries = index.queries[own]
    count = parts.firsts.size
    if count * len(queries) < _FEWEST * _FEWEST:
        rows, alleles = np.divmod(np.arange(count * len(queries)), max(len(queries), 1))
        found = _one_by_one(target, index, parts.take(rows), alleles + own.start)
        return found.reshape(count, len(queries))
    scores = np.zeros((count, len(queries)), np.int64)
    present = [k for k, query in enumerate(queries) if query is not None]
    blocks, order = pack_texts(parts.codes, parts.firsts, parts.sizes)
    batch = BlockBatch([query for query in queries if query is not None], blocks)
    swept = target.launch(BLOCK_SCORES, batch)
    for k, best in zip(present, swept, strict=True):
        scores[order, k] = best.ravel()[: order.size]
    return scores


def score_pairs(
    target: Target, index: SegmentIndex, parts: Parts, alleles: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Score of each part with its allele, shape (parts,)."""
    scores = np.zeros(alleles.size, np.int64)
    order = np.argsort(alleles, kind="stable")
    edges = edges_of(np.bincount(alleles, minlength=len(index.queries)))
    few = np.diff(edges) < _FEWEST
    rare = np.flatnonzero(few[alleles])
    scores[rare] = _one_by_one(target, index, parts.take(rare), alleles[rare])
    for allele in np.flatnonzero(~few).tolist():
        query = index.queries[allele]
        if query is not None:
            own = order[edges[allele] : edges[allele + 1]]
            blocks, place = pack_texts(parts.codes, parts.firsts[own], parts.sizes[own])
            (found,) = target.launch(BLOCK_SCORES, BlockBatch([query], blocks))
            scores[own[place]] = found.ravel()[: place.size]
    return scores


#: A diagonal on which nothing lies.
NOWHERE: Final = 1 << 40


class Paths(NamedTuple):
    """Alignments of n parts with alleles.

    Starts and ends are half-open, in the part and in the allele; `matches` count pairs of equal bases,
    `mismatches` other pairs; int64, shape (n,). `runs` are as in `plait.vdj.reads.matches.SegmentMatches`;
    `run_starts`, (n + 1,), are offsets into them.
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
    """Alignments without columns."""
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
    found = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
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

    `scores` are the best local scores, positive. `diagonals` (position in the allele less that in the part)
    say where to look first. Of several alignments the first in the part is taken, with `last` the last one.
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
