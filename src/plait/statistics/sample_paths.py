"""Paths of models fitted on a sample in memory: where fits on all rows begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.lasso_steps import Quadratics, StepScratch
from plait.schedules.logistic_sums import Observations
from plait.statistics.model_passes import curvature_of
from plait.statistics.row_sample import RowSample
from plait.targets.regression_kernels import minimise_kernel

__all__ = ["PathSpec", "RoughPath", "SampleSolver", "absolute_penalty", "next_coefficients", "squares_added"]

_MOST_STEPS: Final = 40
#: A step that moves no coefficient by more than this is the last one: the sample is no more exact than that.
_CLOSE: Final = 2e-3
#: Steps of nearly the same length, one after the other, of a fit that runs away.
_AWAY: Final = 6
#: Values may grow by this much of themselves, from rounding.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class PathSpec:
    """Models with falling penalties, fitted on rows of one kind. Picklable.

    Attributes
    ----------
    fitted, judged
        Kinds of weight: of the rows they are fitted on, and of those their loss is also wanted on.
    penalties
        Share of each coefficient in the penalty: 0 for the intercept, infinite for what is not in the model;
        float64, shape (width,).
    lambdas
        The penalties; float64, shape (models,).
    ridge
        Penalty of half the squares, of all coefficients but the intercept.
    start
        Coefficients to begin with; float64, shape (width,).
    fixed
        Whether to leave them so.
    """

    fitted: int
    judged: int
    penalties: NDArray[np.float64]
    lambdas: NDArray[np.float64]
    ridge: float
    start: NDArray[np.float64]
    fixed: bool = False


class RoughPath(NamedTuple):
    """Coefficients that are right for the sample, nearly, and the curvature there.

    Attributes
    ----------
    coefficients
        float64, shape (models, width).
    curvature
        Mean over the rows; float64, shape (models, width, width).
    """

    coefficients: NDArray[np.float64]
    curvature: NDArray[np.float64]


def absolute_penalty(spec: PathSpec, beta: NDArray[np.float64], penalty: NDArray[np.float64]) -> float:
    """What a model pays for its coefficients."""
    kept = np.isfinite(penalty)
    return float(np.abs(beta[kept]) @ penalty[kept] + 0.5 * spec.ridge * (beta[1:] @ beta[1:]))


def squares_added(
    ridge: NDArray[np.float64],
    gradient: NDArray[np.float64],
    curvature: NDArray[np.float64],
    beta: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gradients and curvatures with the penalty of half the squares.

    Parameters
    ----------
    ridge
        float64, shape (models,).
    gradient, beta
        float64, shape (models, width).
    curvature
        float64, shape (models, width, width).
    """
    if not ridge.any():
        return gradient, curvature
    own = np.broadcast_to(ridge[:, None], beta.shape).copy()
    own[:, 0] = 0.0
    diagonal = np.arange(beta.shape[1])
    raised = curvature.copy()
    raised[:, diagonal, diagonal] += own
    return gradient + own * beta, raised


def next_coefficients(
    curvature: NDArray[np.float64],
    gradient: NDArray[np.float64],
    beta: NDArray[np.float64],
    penalties: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Where each model's quadratic with its penalty is smallest, see `plait.schedules.lasso_steps`.

    Parameters
    ----------
    curvature
        float64, shape (models, width, width).
    gradient, beta, penalties
        float64, shape (models, width).
    """
    width = beta.shape[1]
    scratch = StepScratch(
        np.empty(width), np.empty(width), np.empty(width, np.int64), np.zeros((width, width))
    )
    out = np.empty_like(beta)
    minimise_kernel(Quadratics(curvature, gradient, beta, penalties), scratch, out)
    return out


@dataclass(frozen=True, slots=True)
class SampleSolver:
    """Fits paths on the sample, one after the other. Picklable.

    Attributes
    ----------
    sample
        The rows.
    """

    sample: RowSample

    def __call__(self, specs: Sequence[PathSpec]) -> list[RoughPath]:
        """Fit some paths, each from its first penalty to its last."""
        return [self._fit(spec) for spec in specs]

    def _fit(self, spec: PathSpec) -> RoughPath:
        models, width = spec.lambdas.size, spec.start.size
        coefficients = np.empty((models, width))
        curvatures = np.zeros((models, width, width))
        data = self.sample.observations(spec.fitted)
        total = float(data.weights[0].sum())
        if spec.fixed or total <= 0.0:
            coefficients[:] = spec.start
            return RoughPath(coefficients, curvatures)
        beta = spec.start
        state = None
        for at, penalty in enumerate(spec.lambdas.tolist()):
            shares = _shares(spec, penalty)
            if state is not None:
                beta = _step(spec, *state, beta, shares)
            beta, state = _descend(spec, data, total, beta, shares)
            coefficients[at] = _step(spec, *state, beta, shares)
            curvatures[at] = state[1]
        return RoughPath(coefficients, curvatures)


def _shares(spec: PathSpec, penalty: float) -> NDArray[np.float64]:
    return np.where(np.isfinite(spec.penalties), penalty * np.minimum(spec.penalties, 1e300), np.inf)


def _step(
    spec: PathSpec,
    gradient: NDArray[np.float64],
    curvature: NDArray[np.float64],
    beta: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    g, h = squares_added(np.array([spec.ridge]), gradient[None], curvature[None], beta[None])
    found: NDArray[np.float64] = next_coefficients(h, g, beta[None], shares[None])[0]
    return found


def _descend(
    spec: PathSpec, data: Observations, total: float, beta: NDArray[np.float64], shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Newton's method for one penalty: the last point, with its gradient and curvature."""
    kinds = np.array([0, 1])
    point, least = beta, np.inf
    state = (np.zeros_like(beta), np.zeros((beta.size, beta.size)))
    length, alike = np.inf, 0
    for _ in range(_MOST_STEPS):
        gradient, losses, curvature = curvature_of(data, beta, kinds)
        value = float(losses[0]) / total + absolute_penalty(spec, beta, shares)
        if value > least + _ROUNDING * abs(least):
            beta = 0.5 * (point + beta)
            continue
        point, least, state = beta, value, (gradient / total, curvature / total)
        beta = _step(spec, *state, point, shares)
        longest = float(np.abs(beta - point).max())
        alike = alike + 1 if longest > 0.5 * length else 0
        length = longest
        if longest <= _CLOSE or alike == _AWAY:
            break
    return point, state
