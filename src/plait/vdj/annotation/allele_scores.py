"""Exact local scores of parts of reads with alleles: an allele against 64 parts, one in each lane."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.pair_setup import make_setup
from plait.schedules.pair_sweep import PairList
from plait.targets.lane_blocks import pack_texts
from plait.targets.protocol import Target
from plait.vdj.annotation.germline_index import LOCAL, SegmentIndex
from plait.vdj.annotation.ragged import edges_of

__all__ = ["Parts", "pair_task", "score_all", "score_pairs"]

#: Parts from which an allele is worth a sweep in lanes.
_FEWEST: Final = 12


class Parts(NamedTuple):
    """Parts of reads.

    Attributes
    ----------
    codes
        Bases of all reads as sets, uint8.
    firsts, lasts
        Where in it each part begins and ends, int64.
    """

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
    """Parts and their alleles as pairs, one by one; at least one, and none empty.

    Parameters
    ----------
    index
        The alleles.
    parts
        The parts.
    alleles
        Allele of each part.
    """
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
        scores[filled] = target.run_pairs(make_setup(task, keep=True), task).scores
    return scores


def score_all(target: Target, index: SegmentIndex, number: int, parts: Parts) -> NDArray[np.int64]:
    """Scores of all alleles of a germline set with all parts.

    Parameters
    ----------
    target
        Where to compute.
    index
        The alleles.
    number
        The germline set.
    parts
        The parts.

    Returns
    -------
    NDArray[np.int64]
        Shape (parts, alleles of the set).
    """
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
    swept = target.sweep_blocks([query for query in queries if query is not None], blocks)
    for k, best in zip(present, swept, strict=True):
        scores[order, k] = best.ravel()[: order.size]
    return scores


def score_pairs(
    target: Target, index: SegmentIndex, parts: Parts, alleles: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Score of each part with its allele.

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

    Returns
    -------
    NDArray[np.int64]
        Shape (parts,).
    """
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
            scores[own[place]] = target.sweep_blocks([query], blocks)[0].ravel()[: place.size]
    return scores
