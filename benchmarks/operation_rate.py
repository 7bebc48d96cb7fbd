"""Arithmetic operations of a schedule, and how many of them one core can issue."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from plait.lang.algebras import COUNT, choice, extend
from plait.lang.compile import kernel
from plait.lang.lanes import PADDING, host_lanes, load, store

__all__ = ["Tally", "lane_operations_per_second"]


class Tally(NamedTuple):
    """Counting, with every operation counted in turn; for interpreted runs, one lane at a time."""

    zero: Any
    one: Any

    operations = 0

    @staticmethod
    def fresh() -> Tally:
        """The algebra, with the tally at zero."""
        Tally.operations = 0
        return Tally(np.int64(0), np.int64(1))

    @staticmethod
    def choice(alg: Tally, a: Any, b: Any) -> Any:
        """Add."""
        Tally.operations += 1
        return a + b

    @staticmethod
    def extend(alg: Tally, a: Any, b: Any) -> Any:
        """Multiply."""
        Tally.operations += 1
        return a * b

    @staticmethod
    def repeat(alg: Tally, a: Any, times: Any) -> Any:
        """Multiply."""
        Tally.operations += 1
        return a * times


@kernel
def _issue(lanes: Any, alg: Any, rows: Any, rounds: int) -> None:
    a = load(lanes, rows, 0, 0)
    b = load(lanes, rows, 1, 0)
    c = load(lanes, rows, 2, 0)
    d = load(lanes, rows, 3, 0)
    e = load(lanes, rows, 4, 0)
    f = load(lanes, rows, 5, 0)
    g = load(lanes, rows, 6, 0)
    h = load(lanes, rows, 7, 0)
    weight = load(lanes, rows, 8, 0)
    for _ in range(rounds):
        a = choice(alg, weight, extend(alg, a, weight))
        b = choice(alg, weight, extend(alg, b, weight))
        c = choice(alg, weight, extend(alg, c, weight))
        d = choice(alg, weight, extend(alg, d, weight))
        e = choice(alg, weight, extend(alg, e, weight))
        f = choice(alg, weight, extend(alg, f, weight))
        g = choice(alg, weight, extend(alg, g, weight))
        h = choice(alg, weight, extend(alg, h, weight))
    store(lanes, rows, 0, 0, a + b + c + d + e + f + g + h)


def lane_operations_per_second(repeat: int) -> float:
    """Operations of one lane (64-bit additions and multiplications, half each) per second and core.

    Independent operations on registers, as wide as the processor has them: the arithmetic limit, with no
    loads, stores, branches or matching.
    """
    lanes = host_lanes()
    rows = np.arange(9 * PADDING, dtype=np.int64).reshape(9, PADDING) | 1
    rounds = 5_000_000
    _issue(lanes, COUNT, rows, 10)
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        _issue(lanes, COUNT, rows, rounds)
        times.append(time.process_time() - begin)
    return rounds * 16 * lanes.width / min(times)
