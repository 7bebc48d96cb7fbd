"""Reads by their J: where a J is sure, a short end of a V left of it is enough.

A V that begins at its conserved Cys, as in reads of the CDR3 alone, has a dozen bases: too few to be told
from chance in a whole read, and enough beside a J, if the Cys is among them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.targets.protocol import Target
from plait.vdj.annotation.allele_paths import find_paths
from plait.vdj.annotation.answers import Answers, join_answers
from plait.vdj.annotation.candidates import LEAST_J, Items, find_candidates
from plait.vdj.annotation.germline_index import GermlineIndex, SegmentIndex
from plait.vdj.annotation.j_calls import JCalls, Places, best_of_set, j_calls, j_found, ties_by_row
from plait.vdj.annotation.oriented_reads import Texts
from plait.vdj.annotation.segment_matches import Found, nothing_found
from plait.vdj.annotation.v_calls import Limits, answers_by_all_v, best_of_read

__all__ = ["answers_by_j"]

#: Bases left of a J in which a V and the end of one is looked for, and by which they may reach into the J.
_V_REACH, _REACH, _OVERLAP = 450, 150, 10
#: Bases of a read in which a J is looked for.
_LONGEST: Final = 4096
#: Least score of a V, and of the end of one.
_LEAST_V, _LEAST = 16, 10
#: Chance alignments as good as the V, and as the J, that may be expected.
_MAX_EVALUE, _MAX_J_EVALUE = 0.05, 1e-3
#: And as good as a J behind a V that is better than the one beside the best J.
_SURE_EVALUE: Final = 1e-6


def _sure_j(target: Target, index: GermlineIndex, texts: Texts) -> tuple[Items, JCalls, Found]:
    """Items with a J that is sure, in each germline set that has it."""
    items, pairs = find_candidates(index.j, texts, least=LEAST_J)
    keys = pairs.items * index.sets + index.j.sets[pairs.alleles]
    distinct, first, where = np.unique(keys, return_index=True, return_inverse=True)
    lasts = np.zeros(distinct.size, np.int64)
    np.maximum.at(lasts, where, pairs.lasts)
    firsts = np.full(distinct.size, np.iinfo(np.int64).max)
    np.minimum.at(firsts, where, pairs.firsts)
    places = Places(pairs.items[first], distinct % index.sets, firsts, np.minimum(lasts, firsts + _LONGEST))
    calls = j_calls(target, index, items, places, _MAX_J_EVALUE, 2 * index.sets)
    sure = np.flatnonzero(calls.scores > 0)
    return items, calls, j_found(target, index, items, calls, sure)


def answers_by_j(target: Target, index: GermlineIndex, texts: Texts, max_evalue: float) -> Answers:
    """Find reads with a sure J, and the V, or the end of one, left of it.

    Reads without such a V are answered too if chance explains not even their J.

    Parameters
    ----------
    target
        Where to compute.
    index
        The alleles.
    texts
        The reads.
    max_evalue
        Chance alignments as good as the V and the J together, or a J alone, that may be expected.
    """
    items, calls, j = _sure_j(target, index, texts)
    sure = calls.places.take(np.flatnonzero(calls.scores > 0))
    starts = items.own.starts[sure.items]
    lasts = np.minimum(starts + j.read_start + _OVERLAP, items.own.starts[sure.items + 1])
    found = []
    for alleles, reach, least in ((index.v, _V_REACH, _LEAST_V), (index.ends, _REACH, _LEAST)):
        places = sure._replace(firsts=np.maximum(starts, lasts - reach), lasts=lasts)
        scores, _, ties = best_of_set(target, index.sets, alleles, items, places)
        rows = np.flatnonzero(scores >= least)
        own = places.take(rows)
        v = _v_found(target, index, alleles, items, own, scores[rows], ties[rows])
        likely = (v.support <= _MAX_EVALUE) & (v.support * j.support[rows] <= max_evalue)
        if alleles is index.ends:
            first = v.alleles[v.starts[:-1]] + alleles.offsets[own.sets]
            likely &= index.holds_cys(first, v.paths.germline_start, v.paths.germline_end)
        chosen = best_of_read(items, own.items, own.sets, scores[rows] + j.scores[rows], likely)
        mirrored = items.mirrored[own.items[chosen]]
        found.append(Answers(mirrored, own.sets[chosen], v.take(chosen), j.take(rows[chosen])))
    whole, ends = found
    beside = join_answers([whole, ends.only(~np.isin(ends.reads, whole.reads))])
    other = _better_v(target, index, items, beside, max_evalue)
    answers = join_answers([beside.only(~np.isin(beside.reads, other.reads)), other])
    good = (j.support <= max_evalue) & ~np.isin(j.reads, answers.reads)
    chosen = best_of_read(items, sure.items, sure.sets, j.scores, good)
    mirrored = items.mirrored[sure.items[chosen]]
    alone = Answers(mirrored, sure.sets[chosen], nothing_found(j.reads[chosen]), j.take(chosen))
    return join_answers([answers, alone])


def _better_v(
    target: Target, index: GermlineIndex, items: Items, beside: Answers, max_evalue: float
) -> Answers:
    """Answers with a V that is better than the one beside the best J, and has another sure J right of it.

    They are for reads with several rearrangements, one behind the other.
    """
    numbers = np.flatnonzero(np.isin(items.reads, beside.reads))
    found = answers_by_all_v(target, index, items, numbers, Limits(max_evalue, _SURE_EVALUE))
    found = found.only(np.isin(found.reads, found.j.reads))
    first = found.v.alleles[found.v.starts[:-1]] + index.v.offsets[found.sets]
    better = index.holds_cys(first, found.v.paths.germline_start, found.v.paths.germline_end)
    better &= found.j.read_start + _OVERLAP >= found.v.read_end
    better &= found.v.scores > beside.v.scores[np.searchsorted(beside.reads, found.reads)]
    return found.only(better)


def _v_found(
    target: Target,
    index: GermlineIndex,
    v: SegmentIndex,
    items: Items,
    places: Places,
    scores: NDArray[np.int64],
    ties: NDArray[np.bool_],
) -> Found:
    """How alleles, or ends of them, are aligned."""
    alleles, starts = ties_by_row(ties)
    parts = places.parts(items)
    # Of equal ones the V that is nearest to the J.
    first = alleles[starts[:-1]] + v.offsets[places.sets]
    paths = find_paths(target, v, parts, first, scores, last=True)
    shift = places.firsts - items.own.starts[places.items]
    if v is index.ends:
        support = index.end_support(places.sets, scores, paths.read_start + shift, parts.sizes)
    else:
        support = v.scoring.support(scores, 1.0 * parts.sizes * v.bases[places.sets])
    return Found(items.reads[places.items], scores, support, shift, paths, alleles, starts)
