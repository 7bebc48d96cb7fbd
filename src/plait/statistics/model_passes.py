"""Evaluating models on rows: losses, gradients and curvature, of pieces on disk and of arrays in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.schedules.logistic_sums import ROOM, TERMS, Models, Observations, Scratch, Sums
from plait.schedules.row_products import PARTS, SIDE
from plait.statistics.row_draws import RowDraws
from plait.statistics.row_pieces import Values
from plait.statistics.standard_rows import LANES, StandardRows, folded, symmetric
from plait.targets.regression_kernels import logistic_kernel

__all__ = ["NO_ROWS", "CurvaturePass", "GradientPass", "curvature_of"]

#: Kind of weight that is 0 for every row: of models that are judged nowhere.
NO_ROWS = -1


@dataclass(frozen=True, slots=True)
class GradientPass:
    """Work on a piece: losses and gradients of many models. Picklable.

    Attributes
    ----------
    rows
        The data.
    draws
        Meaning of the kinds.
    coefficients
        float64, shape (models, width).
    kinds
        Kind of weight with which each model is fitted, and with which it is judged; int64, shape (models, 2).
    """

    rows: StandardRows
    draws: RowDraws
    coefficients: NDArray[np.float64]
    kinds: NDArray[np.int64]

    def __call__(self, start: int, stop: int) -> Values:
        """Sums of the gradients, shape (models, width), and of the losses, shape (models, 2)."""
        data, kinds = _observations(self.rows, self.draws, self.kinds, start, stop)
        models = _packed(self.coefficients, kinds)
        count, width = models.coefficients.shape
        sums = _sums(count, width, curvature=False)
        logistic_kernel(LANES, data, models, False, _scratch(width), sums)
        size = len(self.coefficients)
        gradients = folded(sums.gradients).reshape(count, width)[:size]
        return gradients, folded(sums.losses).reshape(count, 2)[:size]


@dataclass(frozen=True, slots=True)
class CurvaturePass:
    """Work on a piece: losses, gradients and curvature of a few models. Picklable.

    Attributes
    ----------
    rows, draws, coefficients, kinds
        As for `GradientPass`.
    """

    rows: StandardRows
    draws: RowDraws
    coefficients: NDArray[np.float64]
    kinds: NDArray[np.int64]

    def __call__(self, start: int, stop: int) -> Values:
        """Sums of gradients, losses and curvature, the last one of shape (models, width, width)."""
        data, kinds = _observations(self.rows, self.draws, self.kinds, start, stop)
        found = [curvature_of(data, beta, own) for beta, own in zip(self.coefficients, kinds, strict=True)]
        gradients, losses, curvature = (np.stack(part) for part in zip(*found, strict=True))
        return gradients, losses, curvature


def curvature_of(
    data: Observations, beta: NDArray[np.float64], kinds: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Gradient, losses and curvature of one model.

    Parameters
    ----------
    data
        The rows.
    beta
        Coefficients; shape (width,).
    kinds
        Rows of ``data.weights`` with which it is fitted and judged; shape (2,).

    Returns
    -------
    tuple
        float64, of shapes (width,), (2,) and (width, width).
    """
    width = beta.size
    models = _packed(beta[None, :], kinds[None, :])
    sums = _sums(SIDE, width, curvature=True)
    logistic_kernel(LANES, data, models, True, _scratch(width), sums)
    gradient = folded(sums.gradients[:width])
    return gradient, folded(sums.losses[:2]), symmetric(folded(sums.curvature).reshape(width, width))


def _observations(
    rows: StandardRows, draws: RowDraws, kinds: NDArray[np.int64], start: int, stop: int
) -> tuple[Observations, NDArray[np.int64]]:
    """The piece with the weights that are needed, and the kinds as rows of these."""
    x, y = rows.read(start, stop)
    needed, places = np.unique(kinds, return_inverse=True)
    weights = np.zeros((needed.size, y.size))
    drawn = needed != NO_ROWS
    numbers = np.arange(start, stop, dtype=np.uint64)
    weights[drawn, : stop - start] = draws.weights(numbers, needed[drawn])
    return Observations(x, y, weights), places.reshape(kinds.shape).astype(np.int64)


def _packed(coefficients: NDArray[np.float64], kinds: NDArray[np.int64]) -> Models:
    """Models in fours; the last four are filled up with copies of the first one."""
    size, width = coefficients.shape
    missing = -size % SIDE
    filled = np.concatenate([coefficients, np.repeat(coefficients[:1], missing, axis=0)])
    quads = filled.reshape(-1, SIDE, width).any(axis=1)
    numbers = quads.sum(axis=1)
    used = np.argsort(~quads, axis=1, kind="stable").astype(np.int64)
    every = np.concatenate([kinds, np.repeat(kinds[:1], missing, axis=0)])
    return Models(filled, used, numbers.astype(np.int64), every)


def _scratch(width: int) -> Scratch:
    # Filled, because lanes beyond the end of a block are computed, too.
    terms = np.zeros((TERMS, ROOM))
    return Scratch(terms, terms[-SIDE:].view(np.int64), np.zeros((width, ROOM)), np.zeros((width, ROOM)))


def _sums(models: int, width: int, *, curvature: bool) -> Sums:
    return Sums(
        np.zeros((models * width, PARTS)),
        np.zeros((models * 2, PARTS)),
        np.zeros((width * width if curvature else 1, PARTS)),
    )
