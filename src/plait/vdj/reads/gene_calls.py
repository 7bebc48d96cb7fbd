"""The genes of reads: V and J with their alignments, D as its longest exact match between them.

A V is found by shared words, by alignment with all alleles, or left of a sure J, where a short end of it is
enough. A V that begins at its conserved Cys, as in reads of the CDR3 alone, has a dozen bases: too few to be
told from chance in a whole read, and enough beside a J, if the Cys is among them. All D alleles of a germline
set are looked for at once: they are packed into words, a bit for each base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.alphabets import MASK_SIZE
from plait.devices.target import Target
from plait.dp.chain.insertions import Occurrences, keep, start
from plait.dp.chain.tables import D_BITS
from plait.lang.compile import shared
from plait.lang.lanes import lowest_bit
from plait.vdj.chain import d_allele_words
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.allele_alignment import (
    NOWHERE,
    Answers,
    Found,
    GermlineIndex,
    Parts,
    Paths,
    SegmentIndex,
    find_paths,
    found_in_order,
    join_answers,
    nothing_found,
    score_all,
    score_pairs,
)
from plait.vdj.reads.candidates import LEAST_J, Items, Pairs, Texts, find_candidates, settled_texts
from plait.vdj.reads.columns import Groups, Rows, edges_of

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
    the best total. `diagonals` (int64, position in the first of them less that in the part): where to look
    for it first.
    """

    places: Places
    scores: NDArray[np.int64]
    totals: NDArray[np.int64]
    support: NDArray[np.float64]
    ties: NDArray[np.bool_]
    diagonals: NDArray[np.int64]


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
    scores, ties, diagonals = _settled_j(index, items, places)
    totals, rest = scores.copy(), np.flatnonzero(scores == 0)
    if rest.size:
        found = best_of_set(target, index.sets, index.j, items, places.take(rest))
        scores[rest], totals[rest], ties[rest] = found
    space = np.maximum(places.lasts - places.firsts, 1) * index.j.bases[places.sets] * float(strands)
    support = index.j.scoring.support(scores, space)
    absent = (support > max_evalue) | (scores == 0)
    scores[absent], totals[absent], ties[absent], support[absent] = 0, 0, False, 0.0
    return JCalls(places, scores, totals, support, ties, diagonals)


def _settled_j(
    index: GermlineIndex, items: Items, places: Places
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Score, ties and diagonal where words tell the best J; the score is 0 elsewhere, and with mates."""
    count = places.items.size
    scores, diagonals = np.zeros(count, np.int64), np.full(count, NOWHERE)
    ties = np.zeros((count, max(int(np.diff(index.j.offsets).max()), 1)), np.bool_)
    for number in range(index.sets if items.mates is None else 0):
        rows = np.flatnonzero(places.sets == number)
        found = settled_texts(index.j, number, places.take(rows).parts(items))
        scores[rows], ties[rows, : found.ties.shape[1]] = found.scores, found.ties
        diagonals[rows] = np.where(found.scores > 0, found.diagonals, NOWHERE)
    return scores, ties, diagonals


def j_found(
    target: Target, index: GermlineIndex, items: Items, calls: JCalls, rows: NDArray[np.int64]
) -> Found:
    """How the J of the calls `rows` is aligned; all of them have one."""
    own = calls.take(rows)
    places, alleles = own.places, ties_by_row(own.ties)
    first = alleles.first + index.j.offsets[places.sets]
    parts = places.parts(items)
    paths = find_paths(target, index.j, parts, first, own.scores, own.diagonals)
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
#: A V is doubtful with more than one error in so many columns, if it is short or has gaps, or if its score is
#: low and it leaves more bases to its left unexplained, which both the read and the allele have.
_DOUBTFUL_COLUMNS, _MOST_UNEXPLAINED, _LONG_SCORE, _SHORT_SCORE = 20, 12, 60, 40
#: Bases of a read in which a short V is looked for.
_LONGEST: Final = 4096
#: Reads that are aligned with all alleles at a time.
_AGAIN: Final = 1024


@dataclass(frozen=True, slots=True, eq=False)
class _Calls(Rows):
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
    #: Alleles that tie.
    alleles: Groups


class Limits(NamedTuple):
    """Expected numbers of chance alignments, as for `plait.vdj.reads.annotator.GermlineAligner`."""

    max_evalue: float
    max_j_evalue: float


def best_of_read(
    items: Items,
    numbers: NDArray[np.int64],
    sets: NDArray[np.int64],
    totals: NDArray[np.int64],
    good: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """The good call of each read with the largest total, by number, in the order of their reads.

    Of equal ones that on the strand given counts, then that of the first germline set. `numbers` are the
    items of the calls.
    """
    rows = np.flatnonzero(good)
    reads, mirrored = items.reads[numbers[rows]], items.mirrored[numbers[rows]]
    order = np.lexsort((sets[rows], mirrored, -totals[rows], reads))
    return rows[order[np.flatnonzero(np.diff(reads[order], prepend=-1))]]


def _scores(target: Target, index: SegmentIndex, parts: Parts, pairs: Pairs) -> NDArray[np.int64]:
    """Score of each pair; the best one of an item and frame tells whether gaps pay in the others, too."""
    scores, rows = pairs.scores.copy(), np.flatnonzero(pairs.open)
    frames = index.frames[pairs.alleles[rows]]
    keys = pairs.items[rows] * len(index.queries) + frames
    order = np.lexsort((-scores[rows], keys))
    first = np.diff(keys[order], prepend=-1) != 0
    leads = rows[order[first]]
    scores[leads] = score_pairs(target, index, parts.take(leads), pairs.alleles[leads])
    better = (scores[leads] > pairs.scores[leads])[np.cumsum(first) - 1]
    rest = rows[order[better & ~first]]
    scores[rest] = score_pairs(target, index, parts.take(rest), pairs.alleles[rest])
    return scores


def _best_calls(target: Target, index: GermlineIndex, items: Items, pairs: Pairs) -> _Calls:
    """The best alleles of each item, for each germline set that has some of them."""
    parts = Parts(items.own.codes, pairs.firsts, pairs.lasts)
    least = 1
    if items.mates is None:
        scores = totals = _scores(target, index.v, parts, pairs)
    else:
        scores = score_pairs(target, index.v, parts, pairs.alleles)
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
        Groups(pairs.alleles[tied], np.append(first, tied.size)),
    )


def _v_found(target: Target, index: GermlineIndex, items: Items, calls: _Calls) -> Found:
    """How each call is aligned."""
    paths = find_paths(
        target,
        index.v,
        Parts(items.own.codes, calls.firsts, calls.lasts),
        calls.alleles.first,
        calls.scores,
        calls.diagonals,
    )
    ties = calls.alleles.sizes
    return Found(
        items.reads[calls.items],
        calls.scores,
        index.v.scoring.support(calls.totals, _space(index, items, calls)),
        calls.firsts - items.own.starts[calls.items],
        paths,
        replace(calls.alleles, values=calls.alleles.values - np.repeat(index.v.offsets[calls.sets], ties)),
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
        places = replace(places.take(far), lasts=np.minimum(ends, firsts + _REACH)[far])
        found = found.replaced(far, j_calls(target, index, items, places, max_evalue))
    missing = np.flatnonzero((found.scores == 0) & (v.read_start > 0))
    if not missing.size:
        return found
    lasts = np.minimum(starts + v.read_start + _OVERLAP, ends)[missing]
    firsts = np.maximum(starts[missing], lasts - _REACH)
    places = Places(calls.items[missing], calls.sets[missing], firsts, lasts)
    return found.replaced(missing, j_calls(target, index, items, places, max_evalue * _LEFT))


def _hopeful(index: GermlineIndex, items: Items, calls: _Calls, max_evalue: float) -> NDArray[np.bool_]:
    """Calls that the best J could make as good as the best V of their read that is good without any."""
    reads = items.reads[calls.items]
    best = np.zeros(reads.max(initial=0) + 1, np.int64)
    sure = index.v.scoring.support(calls.totals, _space(index, items, calls)) <= max_evalue
    np.maximum.at(best, reads[sure], calls.totals[sure])
    return np.asarray(calls.totals + np.diff(index.j.words.bounds).max() >= best[reads])


def _space(index: GermlineIndex, items: Items, calls: _Calls) -> NDArray[np.floating]:
    """Pairs of bases in which a V was looked for."""
    return 2.0 * items.sizes[calls.items] * float(index.v.bases.sum())


def _answers(
    target: Target, index: GermlineIndex, items: Items, calls: _Calls, limits: Limits
) -> tuple[Answers, _Calls]:
    """The best call of each read that has a good one, and these calls."""
    calls = calls.take(_hopeful(index, items, calls, limits.max_evalue))
    v = _v_found(target, index, items, calls)
    found = _j_beside(target, index, items, calls, v, limits.max_j_evalue)
    holds = index.holds_cys(calls.alleles.first, v.paths.germline_start, v.paths.germline_end)
    beside = index.end_support(calls.sets, calls.totals, v.read_start, items.sizes[calls.items])
    both = np.where(found.scores > 0, np.where(holds, beside, v.support) * found.support, np.inf)
    good = np.minimum(v.support, both) <= limits.max_evalue
    chosen = best_of_read(items, calls.items, calls.sets, calls.totals + found.totals, good)
    j = j_found(target, index, items, found, chosen[found.scores[chosen] > 0])
    reads = items.reads[calls.items[chosen]]
    none = nothing_found(np.setdiff1d(reads, j.reads, True))
    mirrored = items.mirrored[calls.items[chosen]]
    answers = Answers(mirrored, calls.sets[chosen], v.take(chosen), found_in_order([j, none]))
    return answers, calls.take(chosen)


def _doubtful(answers: Answers) -> NDArray[np.bool_]:
    """Whether another allele may be better, which shares fewer words with the read."""
    paths = answers.v.paths
    columns = paths.matches + paths.mismatches
    both = np.minimum(paths.read_end - paths.read_start, paths.germline_end - paths.germline_start)
    either = paths.read_end - paths.read_start + paths.germline_end - paths.germline_start - both
    errors = paths.mismatches + either - columns
    unexplained = np.minimum(answers.v.read_start, paths.germline_start)
    low = (unexplained > _MOST_UNEXPLAINED) & (answers.v.scores < _LONG_SCORE)
    # What is long and without gaps shares words with every allele that is like it.
    short = (answers.v.scores < _SHORT_SCORE) | (paths.runs.sizes > 1)
    return np.asarray((_DOUBTFUL_COLUMNS * errors > columns) & short | low)


def answers_by_v(
    target: Target, index: GermlineIndex, texts: Texts, mates: Texts | None, limits: Limits
) -> Answers:
    """Find reads with a V; `mates` are on the same strand, one for each read."""
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
    return join_answers([answers.take(kept), *better])


def answers_by_all_v(
    target: Target, index: GermlineIndex, items: Items, numbers: NDArray[np.int64], limits: Limits
) -> Answers:
    """Find a V in the items `numbers` by aligning them with all alleles."""
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
        np.zeros(items.size * alleles, np.int64),
        np.ones(items.size * alleles, np.bool_),
    )


#: Bases left of a J in which a V and the end of one is looked for, and by which they may reach into the J.
_V_REACH, _END_REACH, _END_OVERLAP = 450, 150, 10
#: Bases of a read in which a J is looked for.
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

    Reads without such a V are answered too if chance explains not even their J. `max_evalue` is the expected
    number of chance alignments as good as the V and the J together, or a J alone, at most.
    """
    items, calls, j = _sure_j(target, index, texts)
    sure = calls.places.take(np.flatnonzero(calls.scores > 0))
    starts = items.own.starts[sure.items]
    lasts = np.minimum(starts + j.read_start + _END_OVERLAP, items.own.starts[sure.items + 1])
    found = []
    for alleles, reach, least in ((index.v, _V_REACH, _LEAST_V), (index.ends, _END_REACH, _LEAST)):
        places = replace(sure, firsts=np.maximum(starts, lasts - reach), lasts=lasts)
        scores, _, ties = best_of_set(target, index.sets, alleles, items, places)
        rows = np.flatnonzero(scores >= least)
        own = places.take(rows)
        v = _end_found(target, index, alleles, items, own, scores[rows], ties[rows])
        likely = (v.support <= _MAX_EVALUE) & (v.support * j.support[rows] <= max_evalue)
        if alleles is index.ends:
            first = v.alleles.first + alleles.offsets[own.sets]
            likely &= index.holds_cys(first, v.paths.germline_start, v.paths.germline_end)
        chosen = best_of_read(items, own.items, own.sets, scores[rows] + j.scores[rows], likely)
        mirrored = items.mirrored[own.items[chosen]]
        found.append(Answers(mirrored, own.sets[chosen], v.take(chosen), j.take(rows[chosen])))
    whole, ends = found
    beside = join_answers([whole, ends.take(~np.isin(ends.reads, whole.reads))])
    other = _better_v(target, index, items, beside, max_evalue)
    answers = join_answers([beside.take(~np.isin(beside.reads, other.reads)), other])
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
    found = found.take(found.j.scores > 0)
    first = found.v.alleles.first + index.v.offsets[found.sets]
    better = index.holds_cys(first, found.v.paths.germline_start, found.v.paths.germline_end)
    better &= found.j.read_start + _END_OVERLAP >= found.v.read_end
    better &= found.v.scores > beside.v.scores[np.searchsorted(beside.reads, found.reads)]
    return found.take(better)


def _end_found(
    target: Target,
    index: GermlineIndex,
    v: SegmentIndex,
    items: Items,
    places: Places,
    scores: NDArray[np.int64],
    ties: NDArray[np.bool_],
) -> Found:
    """How alleles, or ends of them, are aligned."""
    alleles = ties_by_row(ties)
    parts = places.parts(items)
    # Of equal ones the V that is nearest to the J.
    first = alleles.first + v.offsets[places.sets]
    paths = find_paths(target, v, parts, first, scores, last=True)
    shift = places.firsts - items.own.starts[places.items]
    if v is index.ends:
        support = index.end_support(places.sets, scores, paths.read_start + shift, parts.sizes)
    else:
        support = v.scoring.support(scores, 1.0 * parts.sizes * v.bases[places.sets])
    return Found(items.reads[places.items], scores, support, shift, paths, alleles)


class DWords(NamedTuple):
    """The D alleles of all germline sets, packed; int64.

    `places` (words, 16): bits of the bases that each mask matches; `word_starts` (sets + 1,): first word of
    each set; `allele_of`, `first_bit` (words, bits): D of its set that a bit belongs to, and the first bit of
    that D; `allowed_starts` (J alleles, words): bits from which the match of a D before a J may begin.
    """

    places: Any
    word_starts: Any
    allele_of: Any
    first_bit: Any
    allowed_starts: Any


class DCalls(NamedTuple):
    """The called D of each read, (n,): `allele`, its number in the germline set, -1 for none.

    `read_start`, `read_end` and `germline_start`: where the match lies, 0 without one; int32. `ties`, int64:
    bits of all D of the set that match as long.
    """

    allele: Any
    read_start: Any
    read_end: Any
    germline_start: Any
    ties: Any


@shared
def call_d(
    reads: Any, words: Any, masks: Any, least: int, group: int, i: int, begin: int, end: int, out: Any
) -> None:
    """Find the longest match with a D in [begin, end), the leftmost one of them, of `least` bases or more.

    `group` is the germline set; `out`, `DCalls` with a shorter D or none so far, is changed in place.
    """
    base = reads.starts[i]
    best = least
    for a in range(begin, end):
        if end - a < best:
            break
        for w in range(words.word_starts[group], words.word_starts[group + 1]):
            automaton = Occurrences(words.allowed_starts[reads.j.allele[i], w])
            alive = start(automaton)
            size = 0
            while a + size < end:
                after = keep(automaton, alive, words.places[w, masks[reads.letters[base + a + size]]], size)
                if after == 0:
                    break
                alive = after
                size += 1
            if size < best or size == 0:
                continue
            if size > best or out.read_end[i] - out.read_start[i] < best:
                best = size
                out.ties[i] = 0
                bit = lowest_bit(alive)
                out.allele[i] = words.allele_of[w, bit]
                out.germline_start[i] = bit - words.first_bit[w, bit]
                out.read_start[i] = a
                out.read_end[i] = a + size
            while alive != 0:
                out.ties[i] = out.ties[i] | (1 << words.allele_of[w, lowest_bit(alive)])
                alive = alive & (alive - 1)


def d_words(germlines: Sequence[GermlineSet]) -> DWords:
    """The D alleles of germline sets; Unsupported for one of more than 62 bases, or more than 62 in a set."""
    words = [d_allele_words(g) for g in germlines]
    starts = np.cumsum([0, *(w.places.shape[0] for w in words)], dtype=np.int64)
    j = np.cumsum([0, *(len(g.j) for g in germlines)])
    allowed = np.zeros((int(j[-1]), int(starts[-1])), np.int64)
    first_bits = [np.zeros((0, D_BITS), np.int64)]
    for k, own in enumerate(words):
        allowed[j[k] : j[k + 1], starts[k] : starts[k + 1]] = own.allowed_starts
        if own.first.size:
            first_bits.append(own.first[own.d_of])
    places = np.concatenate([own.places for own in words]).reshape(-1, 16)
    # A base that is not known says nothing for a D allele.
    places[:, MASK_SIZE != 1] = 0
    allele_of = np.concatenate([own.d_of for own in words]).reshape(-1, D_BITS)
    return DWords(places, starts, allele_of, np.concatenate(first_bits), allowed)


def d_places(germlines: Sequence[GermlineSet], d: Sequence[Sequence[Allele]]) -> NDArray[np.int64]:
    """Places at which a match can begin in the D alleles that may join each J; (J alleles, longest D + 1).

    The column is the length of the match.
    """
    longest = max((len(allele.sequence) for own in d for allele in own), default=0)
    rows = []
    for germline, own in zip(germlines, d, strict=True):
        sizes = np.array([len(allele.sequence) for allele in own], np.int64)
        places = np.maximum(sizes[:, None] - np.arange(longest + 1) + 1, 0)
        rows += [np.array(germline.allowed_d(j)[: len(own)], np.int64) @ places for j in germline.j]
    return np.array(rows, np.int64).reshape(len(rows), longest + 1)


def names_of_ties(
    first: NDArray[Any], ties: NDArray[np.int64], groups: NDArray[np.int64], names: Sequence[Sequence[str]]
) -> pa.Array:
    """Names whose bits are set in `ties`, that of number `first` before the others; null where it is -1.

    `groups` are the germline sets of the reads, `names` those of each set.
    """
    # As bytes: they are told apart much faster than as rows of numbers.
    keys = np.stack([groups.astype(np.int64), first.astype(np.int64), ties], axis=1)
    rows = pa.FixedSizeBinaryArray.from_buffers(pa.binary(24), len(keys), [None, pa.py_buffer(keys)])
    encoded = rows.dictionary_encode()
    found: list[str | None] = []
    for group, own, bits in (
        np.frombuffer(kind, np.int64).tolist() for kind in encoded.dictionary.to_pylist()
    ):
        others = [k for k in range(len(names[group])) if bits >> k & 1 and k != own]
        found.append(",".join(names[group][k] for k in (own, *others)) if own >= 0 else None)
    return pa.array(found, pa.string()).take(encoded.indices)
