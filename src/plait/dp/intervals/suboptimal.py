"""All structures whose score is at most so far below the best one, through what interval rows have kept.

The ways in which every value came about are gone through depth first; only those are followed whose best
completion is good enough, so none is in vain, and what is held is one structure and the way to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted, over_threads
from plait.dp.intervals.loops import (
    CLOSING,
    EXTERIOR,
    LARGEST_LOOP,
    SMALLEST_HAIRPIN,
    STEM,
    hairpin_weight,
    inward,
    inward_row,
    loop_weight,
    pair_type,
    times_paired,
)
from plait.dp.intervals.rows import Candidates, fill_kernel
from plait.dp.intervals.tables import Room, Strand
from plait.dp.intervals.walk import CLOSED, OPENING, UNPAIRED, around, closed_at, multi_at
from plait.lang.compile import kernel, shared
from plait.lang.lanes import host_lanes, lanes_of

#: What is to be completed: pairs, one stem or more of a multiloop, and from a base on what is in no loop.
_CLOSED, _MULTI, _EXTERIOR = 0, 1, 2
#: Ways for a pair: a hairpin, a loop with one pair within, a multiloop.
_HAIRPIN, _LOOP, _STEMS = 0, 1, 2
#: Structures that are found in one go.
_ROOM: Final = 1 << 12


class SuboptimalBatch(NamedTuple):
    """Sequences, what their structures weigh in scores, how much below the best they may be, and how many."""

    rule: Any
    algebra: Any
    loops: Any
    strands: Sequence[Strand]
    below: float
    most: int


class Suboptimal(NamedTuple):
    """Scores, float64 (found,), best first, structures in brackets, uint8 (found, n), and whether all fit."""

    scores: NDArray[np.float64]
    structures: NDArray[np.uint8]
    complete: bool


class Search(NamedTuple):
    """What is gone through, for the g-th sequence.

    `nodes`, int64 (4, ...): what is to be completed, kind, first and last base, and the next one, or -1.
    `levels`, int64 (5, ...): at every step the node that is completed, the way and the two bases that come
    next, and how many nodes there were. `reached`, float64: best scores of completions at every step.
    `depth`, int64 (1,): the step that comes next, -1 when all is done. `least`, (1,): what is good enough.
    """

    rule: Any
    alg: Any
    weights: Any
    strands: Any
    kept: Any
    nodes: Any
    levels: Any
    reached: Any
    depth: Any
    least: Any
    g: Any
    lane: Any


@kernel
def suboptimal_kernel(search: Any, signs: Any, structures: Any, scores: Any) -> int:
    """Find more structures, up to as many as there is room for; how many.

    `structures`, uint8 (most, n), as brackets, and `scores`, float64 (most,), are written; `signs`, uint8
    (n,), is the structure so far. It goes on where it stopped.
    """
    nodes, levels, reached, depth = search.nodes, search.levels, search.reached, search.depth
    count = 0
    while depth[0] >= 0 and count < scores.size:
        at = depth[0]
        node = levels[0, at]
        if node < 0:
            if reached[at] >= search.least[0]:
                for k in range(signs.size):
                    structures[count, k] = signs[k]
                scores[count] = reached[at]
                count += 1
            depth[0] = at - 1
        else:
            kind, i, j = nodes[0, node], nodes[1, node], nodes[2, node]
            if kind == _CLOSED:
                signs[i], signs[j] = OPENING, CLOSED
                more = complete_pair(search, at, i, j)
            elif kind == _MULTI:
                more = complete_multi(search, at, i, j)
            else:
                more = complete_exterior(search, at, i, j)
            if not more:
                if kind == _CLOSED:
                    signs[i], signs[j] = UNPAIRED, UNPAIRED
                depth[0] = at - 1
    return count


@shared
def complete(search: Any, at: Any, score: Any, stem: Any, rest: Any) -> bool:
    """One step on: a pair and something behind it are to be completed, each unless its first base is -1."""
    nodes, levels = search.nodes, search.levels
    last = nodes[3, levels[0, at]]
    count = levels[4, at]
    if rest[1] >= 0:
        nodes[0, count], nodes[1, count], nodes[2, count], nodes[3, count] = rest[0], rest[1], rest[2], last
        last = count
        count += 1
    if stem[0] >= 0:
        nodes[0, count], nodes[1, count], nodes[2, count], nodes[3, count] = _CLOSED, stem[0], stem[1], last
        last = count
        count += 1
    after = at + 1
    levels[0, after], levels[1, after], levels[2, after], levels[3, after] = last, 0, -1, -1
    levels[4, after] = count
    search.reached[after] = score
    search.depth[0] = after
    return True


@shared
def complete_exterior(search: Any, at: Any, i: Any, n: Any) -> bool:
    """The next way for bases from i on, outside of all loops: i unpaired, or a stem from it."""
    levels, rows = search.levels, search.kept.exterior[0]
    group, g = search.strands.group, search.g
    others = search.reached[at] - rows[i * group + g]
    first = levels[2, at]
    if first < 0:
        levels[2, at] = i + SMALLEST_HAIRPIN + 1
        score = others + search.rule.outside + rows[(i + 1) * group + g]
        if score >= search.least[0]:
            return complete(search, at, score, (-1, -1), (_EXTERIOR, i + 1 if i + 1 < n else -1, n))
        first = levels[2, at]
    for k in range(first, n):
        value = closed_at(search, i, k)
        if value != search.alg.zero:
            score = others + value + around(search, i, k, EXTERIOR) + rows[(k + 1) * group + g]
            if score >= search.least[0]:
                levels[2, at] = k + 1
                return complete(search, at, score, (i, k), (_EXTERIOR, k + 1 if k + 1 < n else -1, n))
    return False


@shared
def complete_multi(search: Any, at: Any, i: Any, j: Any) -> bool:
    """The next way for bases of one stem or more: i unpaired, or a stem from it, alone or followed."""
    levels, rule, least = search.levels, search.rule, search.least[0]
    others = search.reached[at] - multi_at(search, i, j)
    if levels[1, at] == 0:
        levels[1, at], levels[2, at] = 1, i + SMALLEST_HAIRPIN + 1
        score = others + rule.unpaired + multi_at(search, i + 1, j)
        if score >= least:
            return complete(search, at, score, (-1, -1), (_MULTI, i + 1, j))
    for k in range(levels[2, at], j + 1):
        value = closed_at(search, i, k)
        if value != search.alg.zero:
            stem = others + value + around(search, i, k, STEM)
            if levels[1, at] == 1:
                levels[1, at], levels[2, at] = 2, k
                score = stem + (j - k) * rule.unpaired
                if score >= least:
                    return complete(search, at, score, (i, k), (_MULTI, -1, -1))
            levels[1, at], levels[2, at] = 1, k + 1
            score = stem + multi_at(search, k + 1, j)
            if score >= least:
                return complete(search, at, score, (i, k), (_MULTI, k + 1, j))
    return False


@shared
def complete_pair(search: Any, at: Any, i: Any, j: Any) -> bool:
    """The next way for what a pair closes."""
    levels, strands, alg, g = search.levels, search.strands, search.alg, search.g
    others = search.reached[at] - times_paired(strands, alg, 1, closed_at(search, i, j), i, j, g)
    row = inward_row(strands, pair_type(search.weights, strands, i, j, g), i, j, g)
    if levels[1, at] == _HAIRPIN:
        levels[1, at], levels[2, at], levels[3, at] = _LOOP, i + 1, j - 1
        score = others + hairpin_weight(search.weights, strands, alg, row, i, j, g)
        if score >= search.least[0]:
            return complete(search, at, score, (-1, -1), (_MULTI, -1, -1))
    if levels[1, at] == _LOOP:
        if complete_loop(search, at, i, j, others):
            return True
        # A multiloop has stems of at least one more, and what M holds is the best of these.
        levels[1, at], levels[2, at], levels[3, at] = _STEMS, i + 1, -1
    return complete_stems(search, at, i, j, others + inward(search.weights, row, CLOSING))


@shared
def complete_loop(search: Any, at: Any, i: Any, j: Any, others: Any) -> bool:
    """The next pair within the loop that a pair closes."""
    levels, zero = search.levels, search.alg.zero
    last = levels[3, at]
    for p in range(levels[2, at], min(i + LARGEST_LOOP + 2, j - SMALLEST_HAIRPIN - 1)):
        for q in range(last, max(p + SMALLEST_HAIRPIN, j - LARGEST_LOOP - 2 + p - i - 1), -1):
            value = closed_at(search, p, q)
            if value != zero:
                loop = loop_weight(search.weights, search.strands, search.alg, i, j, p, q, search.g)
                score = others + value + loop
                if score >= search.least[0]:
                    levels[2, at], levels[3, at] = p, q - 1
                    return complete(search, at, score, (p, q), (_MULTI, -1, -1))
        last = j - 1
    return False


@shared
def complete_stems(search: Any, at: Any, i: Any, j: Any, others: Any) -> bool:
    """The next leftmost stem, and the stems behind it, within a pair; `others` has what this adds."""
    levels, rule, zero, least = search.levels, search.rule, search.alg.zero, search.least[0]
    behind = levels[3, at]
    for p in range(levels[2, at], j - 2 * SMALLEST_HAIRPIN - 2):
        before = others + (p - i - 1) * rule.unpaired
        if before + multi_at(search, p, j - 1) < least:
            return False
        for k in range(max(behind, p + SMALLEST_HAIRPIN + 1), j - SMALLEST_HAIRPIN - 1):
            value = closed_at(search, p, k)
            if value != zero:
                score = before + value + around(search, p, k, STEM) + multi_at(search, k + 1, j - 1)
                if score >= least:
                    levels[2, at], levels[3, at] = p, k + 1
                    return complete(search, at, score, (p, k), (_MULTI, k + 1, j - 1))
        behind = -1
    return False


def _suboptimal(definitions: bool, batch: SuboptimalBatch, target: Target) -> list[Suboptimal]:
    alg = batch.algebra
    fill, search = fill_kernel, suboptimal_kernel
    lanes = lanes_of(1) if definitions else host_lanes(8 * alg.zero.itemsize)
    if definitions:
        fill, search = interpreted(fill), interpreted(search)

    def run(strand: Strand) -> Suboptimal:
        sweep, n = Room().sweep(lanes, Candidates(), batch, [strand], 1), strand.codes.size
        fill(sweep)
        best = float(sweep.kept.exterior[0, 0])
        nodes, levels = np.zeros((4, 6 * n + 16), np.int64), np.zeros((5, 3 * n + 8), np.int64)
        nodes[:, 0] = _EXTERIOR, 0, n, -1
        levels[:, 0] = 0 if n else -1, 0, -1, -1, 1
        reached, least = np.full(levels.shape[1], best), np.array([best - batch.below])
        depth, signs = np.zeros(1, np.int64), np.full(n, UNPAIRED, np.uint8)
        state = Search(*sweep.filled, nodes, levels, reached, depth, least, 0, 0)
        found = Suboptimal(np.empty(0), np.empty((0, n), np.uint8), True)
        while depth[0] >= 0:
            pieces = [found]
            # Twice as many as asked for are held, so that sorting them is worth while.
            while depth[0] >= 0 and sum(piece.scores.size for piece in pieces) < 2 * batch.most:
                structures, scores = np.empty((_ROOM, n), np.uint8), np.empty(_ROOM)
                count = search(state, signs, structures, scores)
                pieces.append(Suboptimal(scores[:count], structures[:count], True))
            found = _best_of(pieces, batch.most)
            if not found.complete:
                # What is worse than the last of those kept need not be found.
                least[0] = found.scores[-1]
        return found

    return over_threads(target.threads, batch.strands, run)


def _best_of(pieces: Sequence[Suboptimal], most: int) -> Suboptimal:
    """The best structures, in order of their scores and their signs."""
    scores, structures = (np.concatenate([piece[k] for piece in pieces]) for k in range(2))
    count, n = structures.shape
    texts = structures.reshape(-1).view(f"S{n}") if n else np.zeros(count)
    order = np.lexsort((texts, -scores))[:most]
    complete = scores.size <= most and all(piece.complete for piece in pieces)
    return Suboptimal(scores[order], structures[order], complete)


#: Structures that are nearly as good as the best ones.
SUBOPTIMALS: Final[Problem[SuboptimalBatch, list[Suboptimal]]] = Problem(
    "suboptimal structures", cpu=partial(_suboptimal, False), reference=partial(_suboptimal, True)
)
