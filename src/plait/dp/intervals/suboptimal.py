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
from plait.dp.intervals.rows import Candidates, fill_kernel
from plait.dp.intervals.tables import Room, Strand
from plait.dp.intervals.walk import CLOSED, NONE, OPENING, OUTSIDE, PAIR, UNPAIRED, Walk, next_way, value_of
from plait.lang.compile import kernel, shared
from plait.lang.lanes import host_lanes, lanes_of

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
    """What is gone through, by the ways of `walk`.

    `nodes`, int64 (4, ...): what is to be completed, kind, first and last base, and the next one, or -1.
    `levels`, int64 (5, ...): at every step the node that is completed, the way and two bases of where it
    stands, and how many nodes there were; `before`, what is before a stem there. `reached`, float64: best
    scores of completions at every step. `depth`, int64 (1,): the step that comes next, -1 when all is done.
    """

    walk: Any
    nodes: Any
    levels: Any
    before: Any
    reached: Any
    depth: Any


@kernel
def suboptimal_kernel(search: Any, least: Any, signs: Any, structures: Any, scores: Any) -> int:
    """Find more structures of at least a score, up to as many as there is room for; how many.

    `structures`, uint8 (most, n), as brackets, and `scores`, float64 (most,), are written; `signs`, uint8
    (n,), is the structure so far. It goes on where it stopped.
    """
    walk, nodes, levels, before, reached, depth = search
    count = 0
    while depth[0] >= 0 and count < scores.size:
        level = depth[0]
        node = levels[0, level]
        if node < 0:
            if reached[level] >= least:
                for k in range(signs.size):
                    structures[count, k] = signs[k]
                scores[count] = reached[level]
                count += 1
            depth[0] = level - 1
            continue
        kind, i, j = nodes[0, node], nodes[1, node], nodes[2, node]
        if kind == PAIR:
            signs[i], signs[j] = OPENING, CLOSED
        others = reached[level] - value_of(walk, kind, i, j)
        at = levels[1, level], levels[2, level], levels[3, level], before[level]
        at, value, stem, rest = next_way(walk, kind, i, j, at, least - others)
        if at[0] != NONE:
            levels[1, level], levels[2, level], levels[3, level], before[level] = at
            go_on(search, level, others + value, stem, rest)
        else:
            if kind == PAIR:
                signs[i], signs[j] = UNPAIRED, UNPAIRED
            depth[0] = level - 1
    return count


@shared
def go_on(search: Any, level: Any, score: Any, stem: Any, rest: Any) -> None:
    """One level on: a pair and something behind it are to be completed, each if there are any bases of it."""
    walk, nodes, levels, before, reached, depth = search
    last, count = nodes[3, levels[0, level]], levels[4, level]
    for kind, i, j in (rest, (PAIR, stem[0], stem[1])):
        if 0 <= i < j:
            nodes[0, count], nodes[1, count], nodes[2, count], nodes[3, count] = kind, i, j, last
            last, count = count, count + 1
    after = level + 1
    levels[0, after], levels[1, after], levels[2, after], levels[3, after] = last, 0, 0, 0
    levels[4, after], before[after], reached[after] = count, walk.alg.one, score
    depth[0] = after


def _suboptimal(definitions: bool, batch: SuboptimalBatch, target: Target) -> list[Suboptimal]:
    alg, kernels = batch.algebra, (fill_kernel, suboptimal_kernel)
    fill, search = map(interpreted, kernels) if definitions else kernels
    lanes = lanes_of(1) if definitions else host_lanes(8 * alg.zero.itemsize)

    def run(strand: Strand) -> Suboptimal:
        sweep, n = Room().sweep(lanes, Candidates(), batch, [strand], 1), strand.codes.size
        fill(sweep)
        best = float(sweep.kept.exterior[0, 0])
        nodes, levels = np.zeros((4, 6 * n + 16), np.int64), np.zeros((5, 3 * n + 8), np.int64)
        nodes[:, 0] = OUTSIDE, 0, n, -1
        levels[:, 0] = 0 if n else -1, 0, 0, 0, 1
        reached, before = np.full(levels.shape[1], best), np.full(levels.shape[1], alg.one)
        depth, signs, least = np.zeros(1, np.int64), np.full(n, UNPAIRED, np.uint8), best - batch.below
        state = Search(Walk(*sweep.filled, 0, 0), nodes, levels, before, reached, depth)
        found = Suboptimal(np.empty(0), np.empty((0, n), np.uint8), True)
        while depth[0] >= 0:
            pieces = [found]
            # Twice as many as asked for are held, so that sorting them is worth while.
            while depth[0] >= 0 and sum(piece.scores.size for piece in pieces) < 2 * batch.most:
                structures, scores = np.empty((_ROOM, n), np.uint8), np.empty(_ROOM)
                count = search(state, least, signs, structures, scores)
                pieces.append(Suboptimal(scores[:count], structures[:count], True))
            found = _best_of(pieces, batch.most)
            if not found.complete:
                # What is worse than the last of those kept need not be found.
                least = float(found.scores[-1])
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
