"""Alignments as the definitions say them: three whole matrices, or every alignment there is.

Nothing here is fast, and nothing is shared with the schedules that it is compared with. An alignment is a
start and a string of columns: ``M`` two residues, ``D`` one of the target, ``I`` one of the query. A vertex
(i, j) lies between residues: i of the query and j of the target come before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

__all__ = [
    "AlignmentCase",
    "BestAlignment",
    "Sums",
    "all_alignments",
    "all_sums",
    "best_by_enumeration",
    "best_by_gotoh",
    "k_best_apart",
    "k_best_disjoint",
    "score_columns",
]

_Vertex = tuple[int, int]
_STEPS = {"M": (1, 1), "D": (0, 1), "I": (1, 0)}


@dataclass(frozen=True, kw_only=True)
class AlignmentCase:
    """A pair and how it is to be aligned.

    Attributes
    ----------
    query, target
        Codes.
    scores
        ``scores[query code][target code]``.
    gap_open, gap_extend
        Costs of the first and of every further residue of a gap.
    mode
        ``"global"``, ``"local"``, ``"semiglobal"``, ``"overlap"`` or ``"extension"``.
    free_ends
        What may be left out at no cost where the mode is ``"semiglobal"``.
    band
        Least and largest j - i of a vertex.
    x_drop
        How far below the best of all rows before its own the ``h`` of a vertex may be.
    """

    query: tuple[int, ...]
    target: tuple[int, ...]
    scores: tuple[tuple[int, ...], ...]
    gap_open: int
    gap_extend: int
    mode: str = "global"
    free_ends: frozenset[str] = field(default_factory=frozenset)
    band: tuple[int, int] | None = None
    x_drop: int | None = None

    @property
    def end(self) -> _Vertex:
        """The last vertex."""
        return len(self.query), len(self.target)

    def free(self, end: str) -> bool:
        """Whether residues may be left out at an end."""
        return self.mode == "overlap" or (self.mode == "semiglobal" and end in self.free_ends)

    def vertices(self) -> Iterator[_Vertex]:
        """All vertices of the band, row by row."""
        for i in range(len(self.query) + 1):
            for j in range(len(self.target) + 1):
                if self.band is None or self.band[0] <= j - i <= self.band[1]:
                    yield i, j

    def may_start(self, at: _Vertex) -> bool:
        """Whether an alignment may start at a vertex."""
        return (
            self.mode == "local"
            or at == (0, 0)
            or (at[0] == 0 and self.free("target_start"))
            or (at[1] == 0 and self.free("query_start"))
        )

    def may_end(self, at: _Vertex) -> bool:
        """Whether an alignment may end at a vertex."""
        return (
            self.mode in ("local", "extension")
            or at == self.end
            or (at[0] == self.end[0] and self.free("target_end"))
            or (at[1] == self.end[1] and self.free("query_end"))
        )


class BestAlignment(NamedTuple):
    """Score, start and end of an alignment, and its columns."""

    score: int
    start: _Vertex
    end: _Vertex
    columns: str


def _empty(case: AlignmentCase) -> BestAlignment:
    """What a local alignment is where nothing has a positive score: it lies at the band's first vertex."""
    first = next(case.vertices())
    return BestAlignment(0, first, first, "")


def score_columns(case: AlignmentCase, start: _Vertex, columns: str) -> int:
    """Score of an alignment, gap by gap.

    Parameters
    ----------
    case
        Sequences, scores and costs.
    start
        Where it starts.
    columns
        Its columns.
    """
    score = 0
    i, j = start
    for column, run in groupby(columns):
        length = len(list(run))
        if column == "M":
            score += sum(case.scores[case.query[i + k]][case.target[j + k]] for k in range(length))
        else:
            score -= case.gap_open + (length - 1) * case.gap_extend
        i, j = i + length * _STEPS[column][0], j + length * _STEPS[column][1]
    return score


def _onward(allowed: set[_Vertex], at: _Vertex) -> Iterator[tuple[_Vertex, str]]:
    """Every way on from a vertex: where it ends, and its columns."""
    yield at, ""
    for column, (di, dj) in _STEPS.items():
        after = (at[0] + di, at[1] + dj)
        if after in allowed:
            for end, columns in _onward(allowed, after):
                yield end, column + columns


def all_alignments(case: AlignmentCase) -> Iterator[BestAlignment]:
    """Every alignment that the mode and the band allow, whatever its score. X-drop is not looked at."""
    allowed = set(case.vertices())
    for start in sorted(allowed):
        if case.may_start(start):
            for end, columns in _onward(allowed, start):
                if case.may_end(end):
                    yield BestAlignment(score_columns(case, start, columns), start, end, columns)


def best_by_enumeration(case: AlignmentCase) -> BestAlignment | None:
    """The best of all alignments by the tie rule, found by comparing all of them; None if there is none."""
    found = list(all_alignments(case))
    if not found:
        return None
    best = max(a.score for a in found)
    if case.mode == "local" and best == 0:
        return _empty(case)
    end = min(a.end for a in found if a.score == best)
    left = [a for a in found if a.score == best and a.end == end]
    walked = ""
    while True:
        stopped = [a for a in left if len(a.columns) == len(walked)]
        if stopped:
            return stopped[0]
        # In the main state: the diagonal, D, I. A gap of the target is closed, if that is as good, before it
        # is prolonged; where opening costs no more than prolonging, it can always be closed.
        order = "MID" if walked[-1:] == "D" and case.gap_open > case.gap_extend else "MDI"
        nexts = {a.columns[-1 - len(walked)] for a in left}
        walked += min(nexts, key=order.index)
        left = [a for a in left if a.columns.endswith(walked[::-1])]


def _gotoh(case: AlignmentCase) -> tuple[dict[_Vertex, float], dict[_Vertex, float], dict[_Vertex, float]]:
    """The three matrices of Gotoh (1982)."""
    h, e, f = (dict.fromkeys(_lattice(case), -math.inf) for _ in range(3))
    best_of_rows = best_so_far = 0.0
    row = 0
    for at in case.vertices():
        i, j = at
        if i != row:
            row, best_of_rows = i, best_so_far
        if j > 0:
            e[at] = max(h[i, j - 1] - case.gap_open, e[i, j - 1] - case.gap_extend)
        if i > 0:
            f[at] = max(h[i - 1, j] - case.gap_open, f[i - 1, j] - case.gap_extend)
        h[at] = max(0 if case.may_start(at) else -math.inf, _diagonal(case, h, at), e[at], f[at])
        if case.x_drop is not None and h[at] < best_of_rows - case.x_drop:
            h[at] = e[at] = f[at] = -math.inf
        best_so_far = max(best_so_far, h[at])
    return h, e, f


def best_by_gotoh(case: AlignmentCase) -> BestAlignment | None:
    """The best alignment by the tie rule, from the three matrices; None if there is none."""
    h, e, f = _gotoh(case)
    ends = [(-h[at], at) for at in case.vertices() if case.may_end(at) and h[at] > -math.inf]
    if not ends:
        return None
    loss, end = min(ends)
    if case.mode == "local" and loss == 0:
        return _empty(case)
    start, columns = _walk(case, (h, e, f), end)
    return BestAlignment(int(-loss), start, end, columns)


def k_best_apart(case: AlignmentCase, most: int, least: int, apart: int) -> list[BestAlignment]:
    """Local alignments with ends apart: all vertices, best first, without those near one taken before."""
    matrices = _gotoh(case)
    taken: list[_Vertex] = []
    h = matrices[0]
    for i, j in sorted((at for at in h if h[at] >= least), key=lambda at: (-h[at], at[1], at[0])):
        if len(taken) < most and all(abs(i - k) >= apart or abs(j - n) >= apart for k, n in taken):
            taken.append((i, j))
    found = ((at, *_walk(case, matrices, at)) for at in taken)
    return [BestAlignment(int(h[end]), start, end, columns) for end, start, columns in found]


def k_best_disjoint(case: AlignmentCase, most: int, least: int) -> list[BestAlignment]:
    """The best local alignment again and again, all of it anew without the pairs aligned before."""
    # Every residue is a letter of its own, so that single pairs have scores.
    scores = [[case.scores[a][b] for b in case.target] for a in case.query]
    found: list[BestAlignment] = []
    while len(found) < most:
        own = replace(
            case,
            query=tuple(range(len(case.query))),
            target=tuple(range(len(case.target))),
            scores=tuple(map(tuple, scores)),
        )
        best = best_by_gotoh(own)
        if best is None or best.score < least:
            break
        found.append(best)
        i, j = best.start
        for column in best.columns:
            if column == "M":
                scores[i][j] = -(10**6)
            i, j = i + _STEPS[column][0], j + _STEPS[column][1]
    return found


def _lattice(case: AlignmentCase) -> list[_Vertex]:
    return [(i, j) for i in range(len(case.query) + 1) for j in range(len(case.target) + 1)]


def _diagonal(case: AlignmentCase, h: dict[_Vertex, float], at: _Vertex) -> float:
    i, j = at
    if i == 0 or j == 0:
        return -math.inf
    return h[i - 1, j - 1] + case.scores[case.query[i - 1]][case.target[j - 1]]


def _walk(
    case: AlignmentCase,
    matrices: tuple[dict[_Vertex, float], dict[_Vertex, float], dict[_Vertex, float]],
    at: _Vertex,
) -> tuple[_Vertex, str]:
    h, e, f = matrices
    columns = ""
    while not (case.may_start(at) and h[at] == 0):
        i, j = at
        if h[at] == _diagonal(case, h, at):
            columns += "M"
            at = (i - 1, j - 1)
        elif h[at] == e[at]:
            while e[i, j] != h[i, j - 1] - case.gap_open:
                columns += "D"
                j -= 1
            columns += "D"
            at = (i, j - 1)
        else:
            while f[i, j] != h[i - 1, j] - case.gap_open:
                columns += "I"
                i -= 1
            columns += "I"
            at = (i - 1, j)
    return at, columns[::-1]


class Sums(NamedTuple):
    """What is summed over the alignments of a pair.

    Attributes
    ----------
    alignments
        How many there are.
    best, optimal
        The best score, and how many have it.
    log_partition
        Logarithm of the sum of ``exp(score / temperature)``.
    posteriors
        ``posteriors[i][j]``: share of that sum which pairs residues i and j.
    """

    alignments: int
    best: int
    optimal: int
    log_partition: float
    posteriors: list[list[float]]


def all_sums(case: AlignmentCase, temperature: float) -> Sums:
    """Sums over every alignment, one by one.

    Local alignments begin and end with a pair of residues; the one without columns counts once.

    Parameters
    ----------
    case
        A pair and how it is aligned, globally or locally.
    temperature
        What scores are divided by.
    """
    found = list(all_alignments(case))
    if case.mode == "local":
        found = [a for a in found if a.columns[:1] == a.columns[-1:] == "M"]
        found.append(BestAlignment(0, (0, 0), (0, 0), ""))
    best = max(a.score for a in found)
    total = math.fsum(math.exp((a.score - best) / temperature) for a in found)
    shares = [[0.0] * len(case.target) for _ in case.query]
    for a in found:
        i, j = a.start
        for column in a.columns:
            if column == "M":
                shares[i][j] += math.exp((a.score - best) / temperature) / total
            i, j = i + _STEPS[column][0], j + _STEPS[column][1]
    log_partition = best / temperature + math.log(total)
    return Sums(len(found), best, sum(a.score == best for a in found), log_partition, shares)
