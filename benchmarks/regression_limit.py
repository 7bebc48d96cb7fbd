"""How many multiplications, each with an addition, one core can do in registers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from plait.lang.compile import kernel
from plait.lang.lanes import load, store
from plait.stats.design_file import DesignFile
from plait.stats.logistic import PARTS
from plait.stats.path_fits import GradientPass
from plait.stats.rows import LANES, RowDraws, StandardRows

__all__ = ["gradient_seconds", "multiply_adds_per_second"]

_CHAINS = 8
_ROUNDS = 5_000_000


@kernel
def _issue(lanes: Any, rows: Any, rounds: int) -> None:
    factor = load(lanes, rows, 8, 0)
    a, b = load(lanes, rows, 0, 0), load(lanes, rows, 1, 0)
    c, d = load(lanes, rows, 2, 0), load(lanes, rows, 3, 0)
    e, f = load(lanes, rows, 4, 0), load(lanes, rows, 5, 0)
    g, h = load(lanes, rows, 6, 0), load(lanes, rows, 7, 0)
    for _ in range(rounds):
        a, b, c, d = a + factor * b, b + factor * c, c + factor * d, d + factor * e
        e, f, g, h = e + factor * f, f + factor * g, g + factor * h, h + factor * a
    store(lanes, rows, 0, 0, a + b + c + d + e + f + g + h)


def multiply_adds_per_second(repeat: int) -> float:
    """Products that are added to a sum, of 64-bit floating-point numbers, a second.

    Independent operations on registers, rounded twice as in our sums: the arithmetic limit, without loads.
    """
    rows = np.full((9, PARTS), 1e-3)
    _issue(LANES, rows, 10)
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        _issue(LANES, rows, _ROUNDS)
        times.append(time.process_time() - begin)
    return _ROUNDS * _CHAINS * PARTS / min(times)


def gradient_seconds(design: DesignFile, models: int, repeat: int) -> float:
    """Processor seconds of one core for a row and a model: reading, gradient and losses, no coefficient 0."""
    p = len(design.predictors)
    middle = (design.low + design.high) / 2
    rows = StandardRows(design, np.arange(p), middle, 1.0 / (design.high - middle))
    coefficients = np.zeros((models, rows.width))
    coefficients[:, : 1 + p] = np.random.default_rng(0).normal(size=(models, 1 + p)) * 0.1
    draws = RowDraws(0, 5, 0)
    kinds = np.array([[draws.outside(k % 5), draws.inside(k % 5)] for k in range(models)])
    work = GradientPass(rows, draws, coefficients, kinds)
    work(0, rows.piece_rows)
    times = []
    for k in range(repeat):
        begin = time.process_time()
        work(k * rows.piece_rows, (k + 1) * rows.piece_rows)
        times.append(time.process_time() - begin)
    return min(times) / rows.piece_rows / models
