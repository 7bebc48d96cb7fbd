"""Reads by their V: the best V alleles first, then the J right of them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.targets.protocol import Target
from plait.vdj.annotation.allele_paths import NOWHERE, find_paths
from plait.vdj.annotation.allele_scores import Parts, score_pairs
from plait.vdj.annotation.answers import Answers, join_answers
from plait.vdj.annotation.candidates import Items, Pairs, find_candidates
from plait.vdj.annotation.germline_index import GermlineIndex
from plait.vdj.annotation.j_calls import JCalls, Places, j_calls, j_found
from plait.vdj.annotation.oriented_reads import Texts
from plait.vdj.annotation.ragged import take_groups
from plait.vdj.annotation.segment_matches import Found

__all__ = ["Limits", "answers_by_all_v", "answers_by_v", "best_of_read"]

#: Bases by which a V may reach into a J.
_OVERLAP: Final = 25
#: Bases right of a V in which a J is looked for first; bases right, or left, of it in which it is looked for.
_NEAR, _REACH = 225, 2048
#: Expected number of chance alignments as good as a J that is looked no further for.
_SURE: Final = 1e-4
#: Least score of a V in a read whose mate tells which V it is.
_LEAST_WITH_MATE: Final = 10
#: Where a J should not be, left of the V, chance must explain it so much less.
_LEFT: Final = 0.01
#: A V is doubtful with more than one error in so many columns, or if its score is low and it leaves more
#: bases to its left unexplained, which both the read and the allele have.
_DOUBTFUL_COLUMNS, _MOST_UNEXPLAINED, _LONG_SCORE = 20, 12, 60
#: Bases of a read in which a short V is looked for.
_LONGEST: Final = 4096
#: Reads that are aligned with all alleles at a time.
_AGAIN: Final = 1024


class _Calls(NamedTuple):
    """Possible V calls: one for each item and germline set with the best score of the item."""

    items: NDArray[np.int64]
    sets: NDArray[np.int64]
    #: Scores of the read alone, and of the read and its mate.
    scores: NDArray[np.int64]
    totals: NDArray[np.int64]
    #: Diagonal of the first allele, and the part of the item in which it is aligned.
    diagonals: NDArray[np.int64]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    #: Alleles that tie, and where those of each call begin.
    alleles: NDArray[np.int64]
    starts: NDArray[np.int64]

    def take(self, which: NDArray[np.int64]) -> _Calls:
        """Some of the calls."""
        alleles, starts = take_groups(self.starts, which)
        return _Calls(
            self.items[which],
            self.sets[which],
            self.scores[which],
            self.totals[which],
            self.diagonals[which],
            self.firsts[which],
            self.lasts[which],
            self.alleles[alleles],
            starts,
        )


class Limits(NamedTuple):
    """What chance may explain.

    Attributes
    ----------
    max_evalue, max_j_evalue
        As for `plait.vdj.annotation.alignment.GermlineAligner`.
    """

    max_evalue: float
    max_j_evalue: float


def best_of_read(
    items: Items,
    numbers: NDArray[np.int64],
    sets: NDArray[np.int64],
    totals: NDArray[np.int64],
    good: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """The good call of each read with the largest total.

    Of equal ones that on the strand given counts, then that of the first germline set.

    Parameters
    ----------
    items
        Reads on strands.
    numbers, sets, totals
        Item, germline set and total of each call.
    good
        Which calls count.

    Returns
    -------
    NDArray[np.int64]
        Numbers of calls, in the order of their reads.
    """
    rows = np.flatnonzero(good)
    reads, mirrored = items.reads[numbers[rows]], items.mirrored[numbers[rows]]
    order = np.lexsort((sets[rows], mirrored, -totals[rows], reads))
    return rows[order[np.flatnonzero(np.diff(reads[order], prepend=-1))]]


def _best_calls(target: Target, index: GermlineIndex, items: Items, pairs: Pairs) -> _Calls:
    """The best alleles of each item, for each germline set that has some of them."""
    parts = Parts(items.own.codes, pairs.firsts, pairs.lasts)
    scores = totals = score_pairs(target, index.v, parts, pairs.alleles)
    least = 1
    if items.mates is not None:
        totals = scores + score_pairs(target, index.v, items.mate_parts(pairs.items), pairs.alleles)
        least = _LEAST_WITH_MATE
    best = np.zeros(items.reads.size, np.int64)
    np.maximum.at(best, pairs.items, totals)
    tied = np.flatnonzero((totals == best[pairs.items]) & (scores >= least))
    sets = index.v.sets[pairs.alleles[tied]]
    first = np.flatnonzero(np.diff(pairs.items[tied] * index.sets + sets, prepend=-1))
    lead = tied[first]
    return _Calls(
        pairs.items[lead],
        sets[first],
        scores[lead],
        totals[lead],
        pairs.diagonals[lead],
        pairs.firsts[lead],
        pairs.lasts[lead],
        pairs.alleles[tied],
        np.append(first, tied.size),
    )


def _v_found(target: Target, index: GermlineIndex, items: Items, calls: _Calls) -> Found:
    """How each call is aligned."""
    paths = find_paths(
        target,
        index.v,
        Parts(items.own.codes, calls.firsts, calls.lasts),
        calls.alleles[calls.starts[:-1]],
        calls.scores,
        calls.diagonals,
    )
    space = 2.0 * items.sizes[calls.items] * float(index.v.bases.sum())
    return Found(
        items.reads[calls.items],
        calls.scores,
        index.v.scoring.support(calls.totals, space),
        calls.firsts - items.own.starts[calls.items],
        paths,
        calls.alleles - np.repeat(index.v.offsets[calls.sets], np.diff(calls.starts)),
        calls.starts,
    )


def _j_beside(
    target: Target, index: GermlineIndex, items: Items, calls: _Calls, v: Found, max_evalue: float
) -> JCalls:
    """The best J right of each V; where there is none, left of it."""
    starts, ends = items.own.starts[calls.items], items.own.starts[calls.items + 1]
    firsts = starts + np.maximum(v.read_end - _OVERLAP, 0)
    places = Places(calls.items, calls.sets, firsts, np.minimum(ends, firsts + _NEAR))
    found = j_calls(target, index, items, places, max_evalue)
    far = np.flatnonzero((places.lasts < ends) & ((found.scores == 0) | (found.support > _SURE)))
    if far.size:
        places = places.take(far)._replace(lasts=np.minimum(ends, firsts + _REACH)[far])
        found = found.replaced(far, j_calls(target, index, items, places, max_evalue))
    missing = np.flatnonzero((found.scores == 0) & (v.read_start > 0))
    if not missing.size:
        return found
    lasts = np.minimum(starts + v.read_start + _OVERLAP, ends)[missing]
    firsts = np.maximum(starts[missing], lasts - _REACH)
    places = Places(calls.items[missing], calls.sets[missing], firsts, lasts)
    return found.replaced(missing, j_calls(target, index, items, places, max_evalue * _LEFT))


def _answers(
    target: Target, index: GermlineIndex, items: Items, calls: _Calls, limits: Limits
) -> tuple[Answers, _Calls]:
    """The best call of each read that has a good one, and these calls."""
    v = _v_found(target, index, items, calls)
    found = _j_beside(target, index, items, calls, v, limits.max_j_evalue)
    first = calls.alleles[calls.starts[:-1]]
    holds = index.holds_cys(first, v.paths.germline_start, v.paths.germline_end)
    beside = index.end_support(calls.sets, calls.totals, v.read_start, items.sizes[calls.items])
    both = np.where(found.scores > 0, np.where(holds, beside, v.support) * found.support, np.inf)
    good = np.minimum(v.support, both) <= limits.max_evalue
    chosen = best_of_read(items, calls.items, calls.sets, calls.totals + found.totals, good)
    j = j_found(target, index, items, found, chosen[found.scores[chosen] > 0])
    answers = Answers(items.mirrored[calls.items[chosen]], calls.sets[chosen], v.take(chosen), j)
    return answers, calls.take(chosen)


def _doubtful(answers: Answers) -> NDArray[np.bool_]:
    """Whether another allele may be better, which shares fewer words with the read."""
    paths = answers.v.paths
    columns = paths.matches + paths.mismatches
    both = np.minimum(paths.read_end - paths.read_start, paths.germline_end - paths.germline_start)
    either = paths.read_end - paths.read_start + paths.germline_end - paths.germline_start - both
    errors = paths.mismatches + either - columns
    unexplained = np.minimum(answers.v.read_start, paths.germline_start)
    short = (unexplained > _MOST_UNEXPLAINED) & (answers.v.scores < _LONG_SCORE)
    return np.asarray((_DOUBTFUL_COLUMNS * errors > columns) | short)


def answers_by_v(
    target: Target, index: GermlineIndex, texts: Texts, mates: Texts | None, limits: Limits
) -> Answers:
    """Find reads with a V.

    Parameters
    ----------
    target
        Where to compute.
    index
        The alleles.
    texts
        The reads.
    mates
        Their mates on the same strand, one for each.
    limits
        What chance may explain.
    """
    items, pairs = find_candidates(index.v, texts, mates)
    answers, calls = _answers(target, index, items, _best_calls(target, index, items, pairs), limits)
    doubtful = _doubtful(answers)
    if not doubtful.any():
        return answers
    rows = np.flatnonzero(doubtful)
    better = []
    for first in range(0, rows.size, _AGAIN):
        own = calls.take(rows[first : first + _AGAIN])
        again = _all_pairs(index, own.items, *_around(items, own))
        better.append(_answers(target, index, items, _best_calls(target, index, items, again), limits)[0])
    kept = ~np.isin(answers.reads, np.concatenate([own.reads for own in better]))
    return join_answers([answers.only(kept), *better])


def answers_by_all_v(
    target: Target, index: GermlineIndex, items: Items, numbers: NDArray[np.int64], limits: Limits
) -> Answers:
    """Find a V in reads by aligning them with all alleles.

    Parameters
    ----------
    target
        Where to compute.
    index
        The alleles.
    items
        Reads on strands.
    numbers
        Which of them to look at.
    limits
        What chance may explain.
    """
    firsts = items.own.starts[numbers]
    pairs = _all_pairs(index, numbers, firsts, np.minimum(items.own.starts[numbers + 1], firsts + _LONGEST))
    return _answers(target, index, items, _best_calls(target, index, items, pairs), limits)[0]


def _around(items: Items, calls: _Calls) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The parts in which calls were looked for; the whole read where a short one may be elsewhere as well."""
    starts = items.own.starts[calls.items]
    short = calls.scores < _LONG_SCORE
    ends = np.minimum(items.own.starts[calls.items + 1], starts + _LONGEST)
    return np.where(short, starts, calls.firsts), np.where(short, ends, calls.lasts)


def _all_pairs(
    index: GermlineIndex, items: NDArray[np.int64], firsts: NDArray[np.int64], lasts: NDArray[np.int64]
) -> Pairs:
    """Items with all alleles, in a part of each."""
    alleles = len(index.v.queries)
    return Pairs(
        items.repeat(alleles),
        np.tile(np.arange(alleles), items.size),
        np.full(items.size * alleles, NOWHERE),
        firsts.repeat(alleles),
        lasts.repeat(alleles),
    )
