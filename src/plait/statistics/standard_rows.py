"""Rows as models see them: the kept predictors, standardised, with an intercept, padded for the lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.executors.protocol import Executor
from plait.lanes import EightLanes
from plait.schedules.row_products import PARTS, SIDE
from plait.statistics.design_file import DesignFile
from plait.statistics.row_pieces import Values, piece_rows, sum_pieces
from plait.targets.regression_kernels import products_kernel

__all__ = ["LANES", "Moments", "StandardRows", "find_moments", "folded", "padded_shape", "symmetric"]

#: Groups that hold the partial sums.
LANES = EightLanes()
_PLACES = 2 * PARTS
#: Largest value of a predictor.
_LARGEST = 1e150


def padded_shape(rows: int, places: int) -> tuple[int, int]:
    """Shape of the smallest matrix with room for so many rows and places that the schedules take."""
    return -(-rows // SIDE) * SIDE, -(-places // _PLACES) * _PLACES


def folded(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the `PARTS` partial sums along the last axis, always in the same order."""
    while parts.shape[-1] > 1:
        half = parts.shape[-1] // 2
        parts = parts[..., :half] + parts[..., half:]
    return parts[..., 0]


def symmetric(upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Symmetric matrices from what stands on and above their diagonals."""
    triangle = np.triu(upper)
    return triangle + np.swapaxes(np.triu(upper, 1), -1, -2)


class Moments(NamedTuple):
    """Means and covariances of all rows.

    Attributes
    ----------
    rows, events
        Number of rows, and of those in which the event happened.
    mean, sd
        Of each predictor, over all rows (not one less); float64, shape (predictors,).
    correlation
        Of the predictors; 0 for those that do not vary. float64, shape (predictors, predictors).
    slope
        Covariance of each predictor, standardised, with the outcome; float64, shape (predictors,).
    """

    rows: int
    events: int
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    correlation: NDArray[np.float64]
    slope: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Totals:
    """Sums of the predictors of a piece."""

    design: DesignFile

    def __call__(self, start: int, stop: int) -> Values:
        values, _ = self.design.read(start, stop)
        return (values.sum(axis=1),)


@dataclass(frozen=True, slots=True)
class _Products:
    """Products of all pairs of centred predictors, and of each with the outcome and with 1."""

    design: DesignFile
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __call__(self, start: int, stop: int) -> Values:
        values, outcome = self.design.read(start, stop)
        predictors, rows = values.shape
        x = np.zeros(padded_shape(predictors + 2, rows))
        x[0, :rows] = 1.0
        x[1, :rows] = outcome
        x[2 : predictors + 2, :rows] = (values - self.mean[:, None]) * self.scale[:, None]
        sums = np.zeros((x.shape[0] ** 2, PARTS))
        products_kernel(LANES, x, sums)
        return (sums,)


def find_moments(design: DesignFile, executor: Executor, told: Callable[[int], None]) -> Moments:
    """Means and covariances, in two passes.

    Parameters
    ----------
    design
        Predictors and outcomes.
    executor
        Where the passes run.
    told
        Called with the number of rows that are done, of twice as many as there are.

    Raises
    ------
    InvalidInput
        If values of a predictor are too large, or too close to each other, for sums of squares.
    """
    n, p = design.rows, len(design.predictors)
    size = piece_rows(p)
    for name, low, high in zip(design.predictors, design.low.tolist(), design.high.tolist(), strict=True):
        if max(-low, high) > _LARGEST or 0.0 < high - low < 1.0 / _LARGEST:
            raise InvalidInput(
                f"predictor {name!r}",
                found=f"values from {low:g} to {high:g}",
                expected=f"values up to {_LARGEST:g}, that differ by more than {1.0 / _LARGEST:g}",
                hint="take another unit, or the logarithm",
            )
    mean = sum_pieces(executor, _Totals(design), n, size, told)[0] / n
    reach = np.maximum(design.high - mean, mean - design.low)
    varies = design.high > design.low
    scale = np.where(varies, 1.0 / np.where(varies, reach, 1.0), 0.0)
    work = _Products(design, mean, scale)
    sums = sum_pieces(executor, work, n, size, lambda done: told(n + done))[0]
    side = padded_shape(p + 2, 1)[0]
    products = symmetric(folded(sums).reshape(side, side)[: p + 2, : p + 2]) / n
    return _moments(design, mean, scale, products)


def _moments(design: DesignFile, mean: Any, scale: Any, products: Any) -> Moments:
    rest = products[0, 2:]
    covariance = products[2:, 2:] - rest[:, None] * rest[None, :]
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = (spread > 0) & (scale > 0)
    inverse = np.where(varies, 1.0 / np.where(varies, spread, 1.0), 0.0)
    correlation = covariance * inverse[:, None] * inverse[None, :]
    np.fill_diagonal(correlation, varies.astype(np.float64))
    unscaled = np.where(varies, 1.0 / np.where(varies, scale, 1.0), 0.0)
    return Moments(
        rows=design.rows,
        events=design.events,
        mean=mean + rest * unscaled,
        sd=np.where(varies, spread * unscaled, 0.0),
        correlation=correlation,
        slope=(products[1, 2:] - rest * design.events / design.rows) * inverse,
    )


@dataclass(frozen=True, slots=True)
class StandardRows:
    """Rows with the kept predictors, standardised. Picklable.

    Attributes
    ----------
    design
        Predictors and outcomes.
    kept
        Numbers of the predictors that are kept; int64.
    mean, scale
        What is taken from a kept predictor, and what it is multiplied by then; float64.
    """

    design: DesignFile
    kept: NDArray[np.int64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.design.rows

    @property
    def width(self) -> int:
        """Coefficients of a model: the intercept and the kept predictors, padded."""
        return padded_shape(1 + self.kept.size, 1)[0]

    @property
    def piece_rows(self) -> int:
        """Rows of a piece."""
        return piece_rows(self.width)

    def read(self, start: int, stop: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows from `start` up to `stop`.

        Parameters
        ----------
        start, stop
            Numbers of rows.

        Returns
        -------
        numpy.ndarray
            1, then the predictors, then zeros; float64, shape (width, places).
        numpy.ndarray
            Outcomes as numbers; float64, shape (places,).
        """
        values, outcome = self.design.read(start, stop)
        shape = padded_shape(1 + self.kept.size, stop - start)
        x, y = np.zeros(shape), np.zeros(shape[1])
        rows = stop - start
        x[0, :rows] = 1.0
        for k, column in enumerate(self.kept.tolist()):
            np.subtract(values[column], self.mean[k], out=x[1 + k, :rows])
            x[1 + k, :rows] *= self.scale[k]
        y[:rows] = outcome
        return x, y
