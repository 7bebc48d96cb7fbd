"""Fits on all rows: whole paths, of all folds and halves, advance together, a pass over the data at a time.

Each model begins where the sample put it, with the sample's curvature. A pass gives the exact gradients of
all models that are not done; each takes the step that its quadratic asks for. The gradients are exact and the
curvature is not, though it learns from them; so steps shrink by a factor and not quadratically, but a pass
serves hundreds of models. A model is done when its exact gradient asks for no step longer than the tolerance.
One whose steps do not shrink gets its exact curvature.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.executors.protocol import Executor
from plait.statistics.model_passes import CurvaturePass, GradientPass
from plait.statistics.regression_settings import FitProgress
from plait.statistics.row_draws import RowDraws
from plait.statistics.row_pieces import PieceWork, Values, sum_pieces
from plait.statistics.row_sample import RowSample
from plait.statistics.sample_paths import PathSpec, RoughPath, SampleSolver, next_coefficients, squares_added
from plait.statistics.standard_rows import StandardRows

__all__ = ["LogisticFits", "PathFit"]

_MOST_PASSES: Final = 60
#: A step should be shorter than this share of the one before.
_SHRINKS: Final = 0.3
#: Steps of nearly the same length with exact curvature, one after the other, of a fit that runs away.
_AWAY: Final = 5
_ROUNDING: Final = 1e-12
#: The curvature learns from a step if it is wrong along it by no more than this factor.
_LEAST_CHANGE: Final = 0.05
#: Mean gradients up to here are rounding.
_FLAT: Final = 1e-12
#: Curvatures are kept of so many bytes at a time.
_CURVATURE_BYTES: Final = 192 << 20
#: Most models of which the exact curvature is found in one pass, and bytes of them.
_EXACT_AT_ONCE: Final = 64
_EXACT_BYTES: Final = 8 << 20


class PathFit(NamedTuple):
    """Fitted models of one path.

    Attributes
    ----------
    coefficients
        float64, shape (models, width).
    losses
        Sums of the negative log-likelihood, over the rows of the fit and those it is judged on; float64,
        shape (models, 2).
    settled
        Whether the exact gradient asks for no longer step; bool, shape (models,).
    step
        The step that it still asks for; float64, shape (models, width).
    """

    coefficients: NDArray[np.float64]
    losses: NDArray[np.float64]
    settled: NDArray[np.bool_]
    step: NDArray[np.float64]


@dataclass(slots=True)
class _Models:
    """Models under way; arrays of one entry a model."""

    kinds: NDArray[np.int64]
    rows: NDArray[np.float64]
    penalties: NDArray[np.float64]
    ridge: NDArray[np.float64]
    fixed: NDArray[np.bool_]
    beta: NDArray[np.float64]
    curvature: NDArray[np.float64]
    before: NDArray[np.float64]
    gradient: NDArray[np.float64]
    step: NDArray[np.float64]
    value: NDArray[np.float64]
    length: NDArray[np.float64]
    losses: NDArray[np.float64]
    settled: NDArray[np.bool_]
    alike: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticFits:
    """Fits logistic regressions on the rows of a design.

    Attributes
    ----------
    rows, draws
        The data, and the kinds of weight.
    sample
        Of the rows.
    counts
        Rows and events of each kind; int64, shape (kinds, 2).
    executor
        Where passes run.
    tolerance
        Longest step of a model that is done.
    progress
        Told of every batch of a pass.
    """

    rows: StandardRows
    draws: RowDraws
    sample: RowSample
    counts: NDArray[np.int64]
    executor: Executor
    tolerance: float
    progress: Callable[[FitProgress], None]

    def fit(self, specs: Sequence[PathSpec], what: str) -> list[PathFit]:
        """Fit all models of all paths, of which the paths are equally long.

        Parameters
        ----------
        specs
            The paths.
        what
            What they are, for the progress.
        """
        if not specs:
            return []
        models = specs[0].lambdas.size
        together = max(1, _CURVATURE_BYTES // (8 * self.rows.width**2 * len(specs)))
        found: list[list[PathFit]] = [[] for _ in specs]
        starts = [spec.start for spec in specs]
        for first in range(0, models, together):
            part = [
                _part(spec, start, slice(first, first + together))
                for spec, start in zip(specs, starts, strict=True)
            ]
            for k, fit in enumerate(self._fit_part(part, what)):
                found[k].append(fit)
                starts[k] = fit.coefficients[-1]
        return [PathFit(*(np.concatenate(arrays) for arrays in zip(*fits, strict=True))) for fits in found]

    def curvature(self, beta: NDArray[np.float64], kind: int) -> NDArray[np.float64]:
        """Curvature of the log-likelihood of a model on all rows of a kind, summed up.

        Parameters
        ----------
        beta
            Coefficients; shape (width,).
        kind
            Kind of weight.
        """
        work = CurvaturePass(self.rows, self.draws, beta[None], np.array([[kind, kind]]))
        found: NDArray[np.float64] = self.sums(work, "curvature")[2][0]
        return found

    def sums(self, work: PieceWork, what: str) -> Values:
        """Sums of some work over all pieces.

        Parameters
        ----------
        work
            Called with the first row of a piece and the row behind its last.
        what
            What it is, for the progress.
        """
        total = self.rows.rows
        return sum_pieces(
            self.executor,
            work,
            total,
            self.rows.piece_rows,
            lambda done: self.progress(FitProgress(what, done, total)),
        )

    def _fit_part(self, specs: list[PathSpec], what: str) -> list[PathFit]:
        # Other processes are sent the sample with every batch.
        groups = min(self.executor.slots, len(specs)) if self.executor.elsewhere else len(specs)
        edges = [len(specs) * k // groups for k in range(groups + 1)]
        batches = (specs[first:last] for first, last in itertools.pairwise(edges))
        rough: list[RoughPath] = []
        with closing(self.executor.map(SampleSolver(self.sample), batches)) as results:
            for found in results:
                rough += found
                self.progress(FitProgress(f"{what}: on a sample", len(rough), len(specs)))
        every = self._begin(specs, rough)
        active = np.arange(every.rows.size)
        for number in range(_MOST_PASSES):
            told = f"{what}: pass {number + 1}, {active.size} of {every.rows.size} models"
            work = GradientPass(self.rows, self.draws, every.beta[active], every.kinds[active])
            gradients, losses = self.sums(work, told)
            active = self._advance(every, active, gradients, losses)
            if not active.size:
                break
        cuts = np.cumsum([spec.lambdas.size for spec in specs])[:-1]
        parts = (np.split(a, cuts) for a in (every.beta, every.losses, every.settled, every.step))
        return [PathFit(*arrays) for arrays in zip(*parts, strict=True)]

    def _begin(self, specs: list[PathSpec], rough: Sequence[RoughPath]) -> _Models:
        sizes = [spec.lambdas.size for spec in specs]
        beta = np.concatenate([found[0] for found in rough])
        count = len(beta)
        penalties = [
            np.where(np.isfinite(s.penalties), s.lambdas[:, None] * np.minimum(s.penalties, 1e300), np.inf)
            for s in specs
        ]
        kinds = np.array([(spec.fitted, spec.judged) for spec in specs])
        return _Models(
            kinds=np.repeat(kinds, sizes, axis=0),
            rows=np.repeat(self.counts[kinds[:, 0], 0].astype(np.float64), sizes),
            penalties=np.concatenate(penalties),
            ridge=np.repeat([spec.ridge for spec in specs], sizes),
            fixed=np.repeat([spec.fixed for spec in specs], sizes),
            beta=beta,
            curvature=np.concatenate([found[1] for found in rough]),
            before=beta.copy(),
            gradient=np.zeros_like(beta),
            step=np.zeros_like(beta),
            value=np.full(count, np.inf),
            length=np.full(count, np.inf),
            losses=np.zeros((count, 2)),
            settled=np.zeros(count, np.bool_),
            alike=np.zeros(count, np.int64),
        )

    def _advance(
        self,
        every: _Models,
        active: NDArray[np.int64],
        gradients: NDArray[np.float64],
        losses: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Move the active models; returns those that are not done."""
        every.losses[active] = losses
        rows = np.maximum(every.rows[active], 1.0)
        values = losses[:, 0] / rows + _paid(every, active)
        worse = values > every.value[active] + _ROUNDING * np.abs(every.value[active])
        back = active[worse]
        every.beta[back] = 0.5 * (every.before[back] + every.beta[back])
        own, gradients = active[~worse], gradients[~worse] / rows[~worse, None]
        every.value[own] = values[~worse]
        _learn(every, own, gradients)
        moved, length = _moved(every, own, gradients)
        slow = (length > _SHRINKS * every.length[own]) & (length > self.tolerance) & ~every.fixed[own]
        if slow.any():
            self._find_curvature(every, own[slow])
            moved[slow], length[slow] = _moved(every, own[slow], gradients[slow])
        away = length > 0.5 * every.length[own]
        every.alike[own] = np.where(away, every.alike[own] + 1, 0)
        every.settled[own] = (length <= self.tolerance) | every.fixed[own]
        every.step[own] = moved - every.beta[own]
        going = ~every.settled[own] & (every.alike[own] < _AWAY)
        every.length[own] = length
        every.before[own] = every.beta[own]
        every.gradient[own] = gradients
        every.beta[own[going]] = moved[going]
        return np.sort(np.concatenate([back, own[going]]))

    def _find_curvature(self, every: _Models, models: NDArray[np.int64]) -> None:
        together = max(1, min(_EXACT_AT_ONCE, _EXACT_BYTES // (8 * self.rows.width**2)))
        for first in range(0, models.size, together):
            own = models[first : first + together]
            work = CurvaturePass(self.rows, self.draws, every.beta[own], every.kinds[own])
            curvature = self.sums(work, f"exact curvature of {models.size} models")[2]
            every.curvature[own] = curvature / np.maximum(every.rows[own], 1.0)[:, None, None]


def _part(spec: PathSpec, start: NDArray[np.float64], part: slice) -> PathSpec:
    return PathSpec(
        fitted=spec.fitted,
        judged=spec.judged,
        penalties=spec.penalties,
        lambdas=spec.lambdas[part],
        ridge=spec.ridge,
        start=start,
        fixed=spec.fixed,
    )


def _paid(every: _Models, models: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each model pays for its coefficients."""
    beta = every.beta[models]
    shares = np.where(np.isfinite(every.penalties[models]), every.penalties[models], 0.0)
    squares = (beta[:, 1:] * beta[:, 1:]).sum(axis=1)
    paid: NDArray[np.float64] = (np.abs(beta) * shares).sum(axis=1) + 0.5 * every.ridge[models] * squares
    return paid


def _learn(every: _Models, models: NDArray[np.int64], gradients: NDArray[np.float64]) -> None:
    """Let the curvature agree with how the exact gradients have changed (BFGS)."""
    moved = every.beta[models] - every.before[models]
    change = gradients - every.gradient[models]
    curvature = every.curvature[models]
    pull = np.einsum("mij,mj->mi", curvature, moved)
    along, before = (change * moved).sum(axis=1), (pull * moved).sum(axis=1)
    sure = (before > 0) & (along > _LEAST_CHANGE * before) & (before > _LEAST_CHANGE * along)
    sure &= np.isfinite(every.length[models])
    one, other = change[sure] / along[sure, None], pull[sure] / before[sure, None]
    curvature = curvature[sure]
    curvature += one[:, :, None] * change[sure][:, None, :]
    curvature -= other[:, :, None] * pull[sure][:, None, :]
    every.curvature[models[sure]] = curvature


def _moved(
    every: _Models, models: NDArray[np.int64], gradients: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where the models want to go, and how far that is."""
    beta = every.beta[models]
    gradient, curvature = squares_added(every.ridge[models], gradients, every.curvature[models], beta)
    penalties = every.penalties[models]
    moved = next_coefficients(curvature, gradient, beta, penalties)
    length = np.abs(moved - beta).max(axis=1, initial=0.0)
    # Without curvature a coefficient does not move, even if its gradient asks for it.
    flat = np.diagonal(curvature, axis1=1, axis2=2) <= 0.0
    stuck = flat & (np.abs(gradient) > np.where(np.isfinite(penalties), penalties, np.inf) + _FLAT)
    return moved, np.where(stuck.any(axis=1), np.maximum(length, 1.0), length)
