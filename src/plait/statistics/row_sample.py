"""A weighted sample of the rows, small enough for memory, on which models are fitted roughly first.

Rows far from the mean are drawn with higher probability and weigh less, so that predictors that are 0 in
nearly all rows are in the sample as well as others. What the final coefficients are does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.executors.protocol import Executor
from plait.schedules.logistic_sums import Observations
from plait.statistics.row_draws import SAMPLE_STREAM, RowDraws, random_words
from plait.statistics.row_pieces import batch_rows
from plait.statistics.standard_rows import StandardRows, padded_shape

__all__ = ["RowSample", "draw_sample", "sample_size"]

_LEAST: Final = 1 << 17
_PER_COEFFICIENT: Final = 4096
_MOST_VALUES: Final = 1 << 24


def sample_size(width: int) -> int:
    """Rows that a sample has about, for models of so many coefficients."""
    return min(max(_LEAST, _PER_COEFFICIENT * width), _MOST_VALUES // width)


@dataclass(frozen=True, slots=True)
class RowSample:
    """Rows in memory. Picklable.

    Attributes
    ----------
    x
        Predictors; float64, shape (width, places).
    y, weights
        Outcomes, and how many rows each one stands for; float64, shape (places,).
    numbers
        Numbers of the rows; uint64, shape (rows,).
    draws
        Meaning of the kinds of weight.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]
    numbers: NDArray[np.uint64]
    draws: RowDraws

    def observations(self, kind: int) -> Observations:
        """The rows with one kind of weight, and with none."""
        weights = np.zeros((2, self.weights.size))
        drawn = self.draws.weights(self.numbers, np.array([kind]))[0]
        weights[0, : drawn.size] = drawn * self.weights[: drawn.size]
        return Observations(self.x, self.y, weights)


class _Drawn(NamedTuple):
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]
    numbers: NDArray[np.uint64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Drawer:
    rows: StandardRows
    draws: RowDraws
    share: float

    def __call__(self, span: tuple[int, int]) -> _Drawn:
        size = self.rows.piece_rows
        parts = [self._draw(start, min(start + size, span[1])) for start in range(*span, size)]
        counts = np.sum([part.counts for part in parts], axis=0)
        x = np.concatenate([part.x for part in parts], axis=1)
        y, weights, numbers = (
            np.concatenate(rest) for rest in zip(*(part[1:4] for part in parts), strict=True)
        )
        return _Drawn(x, y, weights, numbers, counts)

    def _draw(self, start: int, stop: int) -> _Drawn:
        x, y = self.rows.read(start, stop)
        size = stop - start
        numbers = np.arange(start, stop, dtype=np.uint64)
        kinds = self.draws.weights(numbers, np.arange(self.draws.kinds))
        counts = np.stack([kinds.sum(axis=1), (kinds & (y[:size] > 0)).sum(axis=1)], axis=1)
        if self.share >= 1.0:
            return _Drawn(x[:, :size], y[:size], np.ones(size), numbers, counts)
        distance = np.zeros(size)
        for row in x[1 : 1 + self.rows.kept.size, :size]:
            distance += row * row
        chance = np.minimum(self.share * 0.5 * (1.0 + distance / max(self.rows.kept.size, 1)), 1.0)
        drawn = random_words(numbers, self.draws.seed, SAMPLE_STREAM) * 2.0**-64 < chance
        return _Drawn(x[:, :size][:, drawn], y[:size][drawn], 1.0 / chance[drawn], numbers[drawn], counts)


def draw_sample(
    rows: StandardRows, draws: RowDraws, executor: Executor, told: Callable[[int], None]
) -> tuple[RowSample, NDArray[np.int64]]:
    """Draw the sample, and count the rows of each kind.

    Parameters
    ----------
    rows
        The data.
    draws
        The kinds.
    executor
        Where the rows are read.
    told
        Called with the number of rows that are done.

    Returns
    -------
    RowSample
        The sample.
    numpy.ndarray
        Rows and events of each kind, among all rows; int64, shape (kinds, 2).
    """
    total = rows.rows
    size = batch_rows(total, rows.piece_rows)
    drawer = _Drawer(rows, draws, sample_size(rows.width) / total)
    spans = ((at, min(at + size, total)) for at in range(0, total, size))
    counts = np.zeros((draws.kinds, 2), np.int64)
    parts: list[_Drawn] = []
    with closing(executor.map(drawer, spans)) as results:
        for found in results:
            counts += found.counts
            parts.append(found)
            told(min(len(parts) * size, total))
    count = sum(part.numbers.size for part in parts)
    shape = padded_shape(rows.width, count)
    x, y, weights = np.zeros(shape), np.zeros(shape[1]), np.zeros(shape[1])
    at = 0
    for part in parts:
        span = slice(at, at + part.numbers.size)
        x[:, span], y[span], weights[span] = part.x, part.y, part.weights
        at = span.stop
    numbers = np.concatenate([part.numbers for part in parts])
    return RowSample(x, y, weights, numbers, draws), counts
