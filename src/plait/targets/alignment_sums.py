"""Launching the state schedule: sums over all alignments of one pair, compiled or interpreted."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._jit import kernel
from plait.algebras import BIG_COUNT, LOG_SUM, PROBABILITY, SATURATING_COUNT, MaxPlus, Optimal
from plait.recurrences.gap_states import GapStates
from plait.schedules.state_sweep import (
    COLUMNS,
    Fill,
    Forget,
    Join,
    Paired,
    Plain,
    Scope,
    StatePair,
    sweep_states,
)

__all__ = ["COUNTERS", "SumTask", "count_all", "count_best", "log_sum", "pair_log_sums"]

#: Algebras of counts, by what they do where 64 bits do not suffice: hold the largest number, round, or (for
#: interpreted code) take Python integers.
COUNTERS: dict[str, Any] = {"hold": SATURATING_COUNT, "float": PROBABILITY, "wide": BIG_COUNT}
_TYPES: dict[str, Any] = {"hold": np.int64, "float": np.float64, "wide": object}


class SumTask(NamedTuple):
    """One pair, and which of its alignments are summed.

    Attributes
    ----------
    query, target
        Codes, unsigned or int64, shapes (m,) and (n,).
    scores
        Whole numbers (K, K): score of a query code and a target code.
    gap_open, gap_extend
        Costs of the first and of each further residue of a gap.
    local
        Whether alignments begin and end with any pair of residues, and the one without columns counts once.
        Else they are global.
    interpreted
        Whether to run plain Python instead of compiled code.
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


@kernel
def _sweep_states(p: Any, alg: Any, keep: Any, pair: Any, scope: Any, table: Any) -> Any:
    return sweep_states(p, alg, keep, pair, scope, table)
