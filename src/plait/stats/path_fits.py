"""Fits on all rows: whole paths, of all folds and halves, advance together, a pass over the data at a time.

Each model begins where a fit on the sample put it, with the sample's curvature. A pass gives the exact
gradients of all models that are not done; each takes the step that its quadratic asks for. The gradients are
exact and the curvature is not, though it learns from them (BFGS); so steps shrink by a factor and not
quadratically, but a pass serves hundreds of models. A model is done when its exact gradient asks for no step
longer than the tolerance. One whose steps do not shrink gets its exact curvature.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput, one_of, whole_fields
from plait.formats.checkpoints import KeptSteps
from plait.run.executor import Executor
from plait.stats.logistic import (
    PARTS,
    ROOM,
    SIDE,
    TERMS,
    Models,
    Observations,
    Quadratics,
    Scratch,
    StepScratch,
    Sums,
    logistic_kernel,
    minimise_kernel,
)
from plait.stats.rows import (
    ALL_ROWS,
    LANES,
    Pilot,
    RowDraws,
    RowSample,
    StandardRows,
    Values,
    folded,
    sum_pieces,
    symmetric,
)

#: Kind of weight that is 0 for every row: of models that are judged nowhere.
NO_ROWS = -1


class ModelPass(Protocol):
    """Work on a piece with some models."""

    @property
    def coefficients(self) -> NDArray[np.float64]:
        """Their coefficients."""
        ...

    def __call__(self, start: int, stop: int) -> Values:
        """What is added up of the rows ``[start, stop)``."""
        ...


@dataclass(frozen=True, slots=True)
class GradientPass:
    """Work on a piece: gradients, losses and, where `curved`, curvatures of many models. Picklable.

    `kinds`, int64 (models, 2): kind of weight with which each model is fitted, and with which it is judged.
    """

    rows: StandardRows
    draws: RowDraws
    coefficients: NDArray[np.float64]
    kinds: NDArray[np.int64]
    curved: bool = False

    def __call__(self, start: int, stop: int) -> Values:
        """Sums of gradients (models, width), losses (models, 2) and curvatures (models, width, width)."""
        data, kinds = _observations(self.rows, self.draws, self.kinds, start, stop)
        if self.curved:
            found = [curvature_of(data, *model) for model in zip(self.coefficients, kinds, strict=True)]
            return tuple(np.stack(part) for part in zip(*found, strict=True))
        models = _packed(self.coefficients, kinds)
        count, width = models.coefficients.shape
        sums = _sums(count, width, curvature=False)
        logistic_kernel(LANES, data, models, False, _scratch(width), sums)
        size = len(self.coefficients)
        gradients = folded(sums.gradients).reshape(count, width)[:size]
        return gradients, folded(sums.losses).reshape(count, 2)[:size]


def curvature_of(
    data: Observations, beta: NDArray[np.float64], kinds: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Gradient (width,), losses (2,) and curvature (width, width) of one model.

    `kinds` are the two rows of ``data.weights`` with which it is fitted and judged.
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


_MOST_STEPS: Final = 40
#: A step that moves no coefficient by more than this is the last one: the sample is no more exact than that.
_CLOSE: Final = 2e-3
#: Steps of nearly the same length, one after the other, of a fit that runs away.
_SAMPLE_AWAY: Final = 6
#: Values may grow by this much of themselves, from rounding.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class PathSpec:
    """Models with falling penalties, fitted on rows of one kind, with their loss on another. Picklable.

    `penalties` (width,) are shares of the coefficients in each of the `lambdas`: 0 for the intercept,
    infinite for what is not in the model. `ridge` penalises half the squares, of all but the intercept.
    Models begin at `start` (width,), and stay there if `fixed`.
    """

    fitted: int
    judged: int
    penalties: NDArray[np.float64]
    lambdas: NDArray[np.float64]
    ridge: float
    start: NDArray[np.float64]
    fixed: bool = False

    def scaled(self, penalty: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Penalties of the coefficients, (width,), or (lambdas, width) for a column of them."""
        return np.where(np.isfinite(self.penalties), penalty * np.minimum(self.penalties, 1e300), np.inf)


class RoughPath(NamedTuple):
    """Coefficients (models, width) that are nearly right for the sample, and the mean curvature there.

    `curvature` is a mean over the rows, (models, width, width).
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
    """Gradients (models, width), curvatures (models, width, width) with the penalty of half the squares."""
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
    """Where each model's quadratic with its penalty is smallest, see `plait.stats.logistic`.

    `curvature` is (models, width, width), the others (models, width).
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
    """Fits paths on the sample, one after the other. Picklable."""

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
            shares = spec.scaled(penalty)
            if state is not None:
                beta = _step(spec, *state, beta, shares)
            beta, state = _descend(spec, data, total, beta, shares)
            coefficients[at] = _step(spec, *state, beta, shares)
            curvatures[at] = state[1]
        return RoughPath(coefficients, curvatures)


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
        if longest <= _CLOSE or alike == _SAMPLE_AWAY:
            break
    return point, state


def pilot_of(sample: RowSample, ridge: float) -> Pilot:
    """A rough model of all rows, without a LASSO penalty, from a sample of them."""
    width = len(sample.x)
    free = np.where(sample.x.any(axis=1), 0.0, np.inf)
    spec = PathSpec(ALL_ROWS, NO_ROWS, free, np.zeros(1), ridge, np.zeros(width))
    (fit,) = SampleSolver(sample)([spec])
    pilot = Pilot(fit.coefficients[0])
    surprise = np.average(pilot.surprises(sample.x, sample.y), weights=sample.weights)
    return pilot._replace(surprise=max(float(surprise), _CLOSE))


#: Rules by which one lambda of the path is chosen.
CHOICES: Final = ("cv_min", "cv_1se", "bic")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveLassoSettings:
    """Settings of an adaptive LASSO.

    `lambdas` penalties fall in equal steps of the logarithm from the smallest one without predictors to
    `lambda_ratio` of it. Adaptive weights are ``1 / |initial estimate| ** gamma``; 0 gives the plain LASSO.
    `folds` is at least 2; `halves` (random ones, 0 for none) come in pairs that make up all rows, and have
    the penalty of the rule `stability_at`: ``"cv_min"``, ``"cv_1se"`` or ``"bic"``.

    `ridge` penalises squares where a maximum likelihood estimate does not exist and one is needed all the
    same, per row and for standardised predictors. A fit is done when its exact gradient asks for no step
    above `tolerance` of any standardised coefficient. `confidence` is that of all intervals.
    """

    lambdas: int = 100
    lambda_ratio: float = 1e-4
    gamma: float = 1.0
    folds: int = 5
    halves: int = 50
    stability_at: str = "cv_1se"
    seed: int = 0
    ridge: float = 1e-4
    tolerance: float = 1e-7
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name, low, high in (
            ("lambdas", 1, 10_000),
            ("folds", 2, 100),
            ("halves", 0, 1000),
            ("seed", 0, 2**63 - 1),
        ):
            whole_fields(self, name, least=low, most=high)
        for name, least, most in (
            ("lambda_ratio", 1e-12, 0.999),
            ("gamma", 0.0, 10.0),
            ("ridge", 1e-12, 1.0),
            ("tolerance", 1e-12, 1e-2),
            ("confidence", 0.5, 0.9999),
        ):
            number = getattr(self, name)
            if not least <= number <= most:
                raise InvalidInput(name, found=repr(number), expected=f"a number from {least:g} to {most:g}")
        one_of("stability_at", self.stability_at, CHOICES)


@dataclass(frozen=True, slots=True)
class FitProgress:
    """How far a regression is: models of this stage (or rows) that are done, and all of them."""

    stage: str
    done: int
    total: int


_MOST_PASSES: Final = 60
#: A step should be shorter than this share of the one before.
_SHRINKS: Final = 0.3
#: Steps of nearly the same length with exact curvature, one after the other, of a fit that runs away.
_AWAY: Final = 5
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
    """Fitted models of one path: `coefficients` and the `step` still asked for are (models, width).

    `losses` (models, 2) are sums of the negative log-likelihood over the rows of the fit and those it is
    judged on; `settled` models ask for no longer step.
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

    `counts`, int64 (kinds, 2), are rows and events of each kind; `tolerance` is the longest step of a model
    that is done; `progress` is told of every batch of a pass. What passes give is `kept`, if asked for.
    """

    rows: StandardRows
    draws: RowDraws
    sample: RowSample
    counts: NDArray[np.int64]
    executor: Executor
    tolerance: float
    progress: Callable[[FitProgress], None]
    kept: KeptSteps | None = None

    def fit(self, specs: Sequence[PathSpec], what: str) -> list[PathFit]:
        """Fit all models of all paths, which are equally long; `what` names them for the progress."""
        if not specs:
            return []
        models = specs[0].lambdas.size
        together = max(1, _CURVATURE_BYTES // (8 * self.rows.width**2 * len(specs)))
        found: list[list[PathFit]] = [[] for _ in specs]
        starts = [spec.start for spec in specs]
        for first in range(0, models, together):
            part = [
                replace(spec, lambdas=spec.lambdas[first : first + together], start=start)
                for spec, start in zip(specs, starts, strict=True)
            ]
            for k, fit in enumerate(self._fit_part(part, what)):
                found[k].append(fit)
                starts[k] = fit.coefficients[-1]
        return [PathFit(*(np.concatenate(arrays) for arrays in zip(*fits, strict=True))) for fits in found]

    def curvature(self, beta: NDArray[np.float64], kind: int) -> NDArray[np.float64]:
        """Curvature of the log-likelihood of a model (width,), summed over all rows of a kind."""
        work = GradientPass(self.rows, self.draws, beta[None], np.array([[kind, kind]]), curved=True)
        found: NDArray[np.float64] = self.sums(work, "curvature")[2][0]
        return found

    def sums(self, work: ModelPass, what: str) -> Values:
        """Sums of some work over all pieces; it is called with the rows ``[start, stop)`` of each."""
        total = self.rows.rows

        def told(done: int) -> None:
            self.progress(FitProgress(what, done, total))

        return self._kept(
            lambda: sum_pieces(self.executor, work, total, self.rows.piece_rows, told), work.coefficients
        )

    def _kept(self, make: Callable[[], Values], *made_from: NDArray[Any]) -> Values:
        return make() if self.kept is None else tuple(self.kept.arrays(make, *made_from))

    def _fit_part(self, specs: list[PathSpec], what: str) -> list[PathFit]:
        given = [array for spec in specs for array in (spec.penalties, spec.lambdas, spec.start)]
        arrays = iter(self._kept(lambda: self._on_sample(specs, what), *given))
        every = self._begin(specs, list(map(RoughPath, arrays, arrays)))
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

    def _on_sample(self, specs: list[PathSpec], what: str) -> Values:
        """The arrays of the rough paths, one path behind the other."""
        # Other processes are sent the sample with every batch.
        groups = min(self.executor.slots, len(specs)) if self.executor.elsewhere else len(specs)
        edges = [len(specs) * k // groups for k in range(groups + 1)]
        batches = (specs[first:last] for first, last in itertools.pairwise(edges))
        rough: list[RoughPath] = []
        with closing(self.executor.map(SampleSolver(self.sample), batches)) as results:
            for found in results:
                rough += found
                self.progress(FitProgress(f"{what}: on a sample", len(rough), len(specs)))
        return tuple(itertools.chain.from_iterable(rough))

    def _begin(self, specs: list[PathSpec], rough: Sequence[RoughPath]) -> _Models:
        sizes = [spec.lambdas.size for spec in specs]
        beta = np.concatenate([found[0] for found in rough])
        count = len(beta)
        kinds = np.array([(spec.fitted, spec.judged) for spec in specs])
        return _Models(
            kinds=np.repeat(kinds, sizes, axis=0),
            rows=np.repeat(self.counts[kinds[:, 0], 0].astype(np.float64), sizes),
            penalties=np.concatenate([spec.scaled(spec.lambdas[:, None]) for spec in specs]),
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
            work = GradientPass(self.rows, self.draws, every.beta[own], every.kinds[own], curved=True)
            curvature = self.sums(work, f"exact curvature of {models.size} models")[2]
            every.curvature[own] = curvature / np.maximum(every.rows[own], 1.0)[:, None, None]


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
