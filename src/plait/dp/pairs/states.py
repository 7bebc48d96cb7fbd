"""Row order for the three states of an alignment.

Sums over all alignments of one pair (forward algorithm).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.pairs.gaps import GapStates, onward, step
from plait.lang.algebras import (
    BIG_COUNT,
    LOG_SUM,
    PROBABILITY,
    SATURATING_COUNT,
    MaxPlus,
    Optimal,
    choice,
    extend,
)
from plait.lang.compile import by_type_of, kernel, shared

#: Columns of the table of a sweep: the three states, and what is handed on to a pair.
COLUMNS = 4


class Plain(NamedTuple):
    """A table of numbers."""

    values: Any


class Paired(NamedTuple):
    """A table of pairs of numbers."""

    first: Any
    second: Any


def _get_number(table: Any, row: Any, column: Any) -> Any:
    return table.values[row, column]


def _get_pair(table: Any, row: Any, column: Any) -> Any:
    return table.first[row, column], table.second[row, column]


def _put_number(table: Any, row: Any, column: Any, value: Any) -> None:
    table.values[row, column] = value


def _put_pair(table: Any, row: Any, column: Any, value: Any) -> None:
    table.first[row, column] = value[0]
    table.second[row, column] = value[1]


#: A value of a table.
get = by_type_of({Plain: _get_number, Paired: _get_pair})

#: Write a value to a table.
put = by_type_of({Plain: _put_number, Paired: _put_pair})


class StatePair(NamedTuple):
    """Two sequences of codes, (m,) and (n,), and the weight of each pair of codes, (K, K).

    Rows of `weights` are query codes, columns target codes.
    """

    query: Any
    target: Any
    weights: Any


class Scope(NamedTuple):
    """Which alignments are summed.

    `start` is the value of starting at (0, 0): ``one`` for global alignment, else ``zero``; `begin` that of
    starting right before any pair of residues: ``one`` for local alignment, else ``zero``. `local`: an
    alignment may end after any pair of residues, and the one without columns counts once; else alignments end
    at (m, n).
    """

    start: Any
    begin: Any
    local: Any


# --- what is kept of each vertex ------------------------------------------------------------------------


class Forget(NamedTuple):
    """Keep nothing: sums only."""


class Fill(NamedTuple):
    """What each vertex hands on to the pair of residues (i, j) that follows it, shape (m, n)."""

    handed: Any


class Join(NamedTuple):
    """For a sweep over the reversed sequences: turns what `Fill` has kept into sums over whole alignments.

    ``handed[i, j]`` becomes the sum over all alignments that pair the residues i and j.
    """

    handed: Any


def _forget(keep: Any, alg: Any, i: Any, j: Any, value: Any, s: Any) -> None:
    return


def _fill(keep: Any, alg: Any, i: Any, j: Any, value: Any, s: Any) -> None:
    keep.handed[i, j] = value


def _join(keep: Any, alg: Any, i: Any, j: Any, value: Any, s: Any) -> None:
    row = keep.handed.shape[0] - 1 - i
    column = keep.handed.shape[1] - 1 - j
    keep.handed[row, column] = extend(alg, extend(alg, keep.handed[row, column], s), value)


#: Keep what vertex (i, j) hands on to the pair of residues that follows it, of weight `s`.
keep_vertex = by_type_of({Forget: _forget, Fill: _fill, Join: _join})


# --- the sweep ------------------------------------------------------------------------------------------


@shared
def clear(alg: Any, table: Any, rows: Any) -> None:
    """Set all entries of the table to zero."""
    for j in range(rows):
        for column in range(4):
            put(table, j, column, alg.zero)


@shared
def state_row(p: Any, alg: Any, keep: Any, pair: Any, scope: Any, i: Any, total: Any, table: Any) -> Any:
    """Row i; returns `total` with the local alignments that end in it."""
    m = pair.query.size
    n = pair.target.size
    left = (alg.zero, alg.zero, alg.zero)
    diag = alg.zero
    s = alg.one
    for j in range(n + 1):
        up = (get(table, j, 0), get(table, j, 1), get(table, j, 2))
        if j > 0 and i > 0:
            s = get(pair.weights, pair.query[i - 1], pair.target[j - 1])
        state = step(p, alg, diag, left, up, s)
        if i == 0 and j == 0:
            state = (scope.start, alg.zero, alg.zero)
        handed = onward(p, alg, scope.begin, state)
        if i < m and j < n:
            keep_vertex(keep, alg, i, j, handed, get(pair.weights, pair.query[i], pair.target[j]))
        if scope.local:
            total = choice(alg, total, state[0])
        diag = get(table, j, 3)
        left = state
        put(table, j, 0, state[0])
        put(table, j, 1, state[1])
        put(table, j, 2, state[2])
        put(table, j, 3, handed)
    return total


@shared
def sweep_states(p: Any, alg: Any, keep: Any, pair: Any, scope: Any, table: Any) -> Any:
    """The sum over all alignments; `table` has a row for each vertex of a row, and `COLUMNS`."""
    n = pair.target.size
    clear(alg, table, n + 1)
    total = alg.one
    for i in range(pair.query.size + 1):
        total = state_row(p, alg, keep, pair, scope, i, total, table)
    if scope.local:
        return total
    return onward(p, alg, alg.zero, (get(table, n, 0), get(table, n, 1), get(table, n, 2)))


#: Algebras of counts, by what they do where 64 bits do not suffice: hold the largest number, round, or (for
#: interpreted code) take Python integers.
COUNTERS: dict[str, Any] = {"hold": SATURATING_COUNT, "float": PROBABILITY, "wide": BIG_COUNT}
_TYPES: dict[str, Any] = {"hold": np.int64, "float": np.float64, "wide": object}


class SumTask(NamedTuple):
    """One pair, and which of its alignments are summed.

    Codes are unsigned or int64, (m,) and (n,); `scores` whole numbers (K, K), query code and target code.
    `local`: alignments begin and end with any pair of residues, and the one without columns counts once; else
    they are global. `interpreted` runs plain Python.
    """

    query: NDArray[Any]
    target: NDArray[Any]
    scores: NDArray[Any]
    gap_open: int
    gap_extend: int
    local: bool
    interpreted: bool


def count_all(task: SumTask, counter: str) -> Any:
    """Number of alignments, by one of `COUNTERS`; with ``"hold"`` 2^63 - 1 stands for that many or more."""
    alg, kind = COUNTERS[counter], _TYPES[counter]
    weights = Plain(np.full(task.scores.shape, alg.one, kind))
    memory = Plain(np.empty((task.target.size + 1, COLUMNS), kind))
    return _sweep(task, GapStates(alg.one, alg.one), alg, Forget(), weights, memory)


def count_best(task: SumTask, counter: str) -> tuple[int, Any]:
    """The best score, and the number of alignments that have it, by one of `COUNTERS`."""
    among, kind = COUNTERS[counter], _TYPES[counter]
    alg = Optimal((-math.inf, among.zero), (0.0, among.one), MaxPlus(-math.inf, 0.0), among)
    gap = GapStates((float(-task.gap_open), among.one), (float(-task.gap_extend), among.one))
    weights = Paired(task.scores.astype(np.float64), np.full(task.scores.shape, among.one, kind))
    rows = (task.target.size + 1, COLUMNS)
    memory = Paired(np.empty(rows), np.empty(rows, kind))
    best, count = _sweep(task, gap, alg, Forget(), weights, memory)
    return int(best), count


def log_sum(task: SumTask, temperature: float) -> float:
    """Logarithm of the sum of ``exp(score / temperature)`` over all alignments."""
    return _log_sum(task, temperature, Forget())


def pair_log_sums(task: SumTask, temperature: float) -> tuple[NDArray[np.float64], float]:
    """The same over the alignments that pair residues i and j, shape (m, n); and over all."""
    matrix = np.empty((task.query.size, task.target.size))
    total = _log_sum(task, temperature, Fill(matrix))
    _log_sum(task._replace(query=task.query[::-1], target=task.target[::-1]), temperature, Join(matrix))
    return matrix, total


def _log_sum(task: SumTask, temperature: float, keep: Any) -> float:
    gap = GapStates(-task.gap_open / temperature, -task.gap_extend / temperature)
    weights = Plain(task.scores / temperature)
    memory = Plain(np.empty((task.target.size + 1, COLUMNS)))
    return float(_sweep(task, gap, LOG_SUM, keep, weights, memory))


def _sweep(task: SumTask, gap: Any, alg: Any, keep: Any, weights: Any, memory: Any) -> Any:
    # Read-only and reversed arrays are types of their own, for which everything would be compiled once more.
    query, target = (np.require(codes, requirements=["C", "W"]) for codes in (task.query, task.target))
    start, begin = (alg.zero, alg.one) if task.local else (alg.one, alg.zero)
    sweep = sweep_states if task.interpreted else _sweep_states
    return sweep(gap, alg, keep, StatePair(query, target, weights), Scope(start, begin, task.local), memory)


_sweep_states = kernel(sweep_states)
