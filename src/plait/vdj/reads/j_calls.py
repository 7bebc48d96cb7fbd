"""The J of reads on a strand, in a part of each.

A module of its own, as the calls of V, D and J stand in one each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Target
from plait.vdj.reads.allele_alignment import Found, Parts, Paths, find_paths, found_in_order, score_all
from plait.vdj.reads.candidates import Items
from plait.vdj.reads.columns import Groups, Rows, edges_of
from plait.vdj.reads.germline_index import GermlineIndex, SegmentIndex

#: What bases left of a gap in the junction must score beyond its cost; fewer are equal by chance.
_LEAST_GAIN: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Places(Rows):
    """Where alleles of a germline set are looked for: item, set and part of the item's bases; int64 each."""

    items: NDArray[np.int64]
    sets: NDArray[np.int64]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]

    def parts(self, items: Items) -> Parts:
        """The parts of the items."""
        return Parts(items.own.codes, self.firsts, self.lasts)


@dataclass(frozen=True, slots=True, eq=False)
class JCalls(Rows):
    """The best alleles in some places.

    `scores` (int64) are 0 where nothing is called, `totals` the same with that of the mate; `support` is the
    expected number of chance alignments. `ties`, bool (places, most alleles of a set): whether an allele has
    the best total.
    """

    places: Places
    scores: NDArray[np.int64]
    totals: NDArray[np.int64]
    support: NDArray[np.float64]
    ties: NDArray[np.bool_]


def ties_by_row(ties: NDArray[np.bool_]) -> Groups:
    """The columns that tie in each row."""
    return Groups(np.nonzero(ties)[1], edges_of(ties.sum(axis=1)))


def best_of_set(
    target: Target, sets: int, index: SegmentIndex, items: Items, places: Places
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Score and total of the best allele of the set in each place, and which alleles tie."""
    count = places.items.size
    most = max(int(np.diff(index.offsets).max()), 1)
    own = np.zeros((count, most), np.int64)
    totals = np.full((count, most), -1, np.int64)
    for number in range(sets):
        rows = np.flatnonzero(places.sets == number)
        found = score_all(target, index, number, places.take(rows).parts(items))
        width = found.shape[1]
        own[rows, :width] = totals[rows, :width] = found
        if items.mates is not None:
            mates = items.mate_parts(places.items[rows])
            totals[rows, :width] += score_all(target, index, number, mates)
    best = totals.max(axis=1)
    ties = (totals == best[:, None]) & (own > 0)
    scores = np.where(ties.any(axis=1), own[np.arange(count), ties.argmax(axis=1)], 0)
    return scores, best, ties


def j_calls(
    target: Target, index: GermlineIndex, items: Items, places: Places, max_evalue: float, strands: int = 1
) -> JCalls:
    """Find the best J in each place.

    `max_evalue` is the expected number of chance alignments, at most, on `strands` strands.
    """
    scores, totals, ties = best_of_set(target, index.sets, index.j, items, places)
    space = np.maximum(places.lasts - places.firsts, 1) * index.j.bases[places.sets] * float(strands)
    support = index.j.scoring.support(scores, space)
    absent = (support > max_evalue) | (scores == 0)
    scores[absent], totals[absent], ties[absent], support[absent] = 0, 0, False, 0.0
    return JCalls(places, scores, totals, support, ties)


def j_found(
    target: Target, index: GermlineIndex, items: Items, calls: JCalls, rows: NDArray[np.int64]
) -> Found:
    """How the J of the calls `rows` is aligned; all of them have one."""
    own = calls.take(rows)
    places, alleles = own.places, ties_by_row(own.ties)
    first = alleles.first + index.j.offsets[places.sets]
    parts = places.parts(items)
    paths = find_paths(target, index.j, parts, first, own.scores)
    shift = places.firsts - items.own.starts[places.items]
    found = Found(items.reads[places.items], own.scores, own.support, shift, paths, alleles)
    cuts = _settle_gaps(index.j, parts, first, paths)
    if not cuts.any():
        return found
    again = np.flatnonzero(cuts)
    # No gap can pay for itself in what is left of the part there.
    firsts = places.firsts[again] + np.maximum(cuts[again] - _LEAST_GAIN + 1, 0)
    anew = j_calls(target, index, items, replace(places.take(again), firsts=firsts), np.inf)
    return found_in_order([found.take(cuts == 0), j_found(target, index, items, anew, np.arange(again.size))])


def _settle_gaps(
    index: SegmentIndex, parts: Parts, alleles: NDArray[np.int64], paths: Paths
) -> NDArray[np.int64]:
    """Move gaps to the last place that scores the same, so that the junction keeps what it can.

    Returns the place in the part behind the last gap in the junction that does not pay for itself, or 0.
    """
    scoring, cuts = index.scoring, np.zeros(alleles.size, np.int64)
    for row in np.flatnonzero(paths.runs.sizes > 1).tolist():
        anchor, score = int(index.anchors[alleles[row]]), 0
        read = parts.codes[parts.firsts[row] + paths.read_start[row] : parts.lasts[row]]
        germline = index.words.letters[slice(*index.words.bounds[alleles[row] : alleles[row] + 2])]
        p, q = 0, int(paths.germline_start[row])
        runs = paths.runs.values[slice(*paths.runs.starts[row : row + 2])]
        for k, (kind, length) in enumerate(runs.tolist()):
            before = p, q
            p += 0 if kind == 1 else length
            q += 0 if kind == 2 else length
            if kind == 0:
                score += int(scoring.scores[read[before[0] : p], germline[before[1] : q]].sum())
                continue
            score -= scoring.gap_open + (length - 1) * scoring.gap_extend
            letters, at = (germline, before[1]) if kind == 1 else (read, before[0])
            moved, room = 0, runs[k + 1, 1] - 1 if runs[k - 1, 0] == runs[k + 1, 0] == 0 else 0
            while moved < room and letters[at + moved] == letters[at + length + moved]:
                moved += 1
            runs[k - 1 : k + 2 : 2, 1] += moved, -moved
            if q + moved <= anchor and score < _LEAST_GAIN:
                cuts[row] = paths.read_start[row] + p
    return cuts
