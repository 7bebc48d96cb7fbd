"""What every regression on a design begins with: dropped predictors, folds, a sample, unpenalised estimates.

Unpenalised are the maximum likelihood estimates with their intervals, and the adaptive weights made from
them. Beside `adaptive_lasso`, its one importer, because both together would be too long a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.checkpoints import KeptSteps
from plait.run.executor import Executor
from plait.stats.design_file import DesignFile
from plait.stats.path_fits import (
    NO_ROWS,
    AdaptiveLassoSettings,
    FitProgress,
    LogisticFits,
    PathFit,
    PathSpec,
    pilot_of,
)
from plait.stats.rows import ALL_ROWS, Moments, RowDraws, StandardRows, draw_sample, find_moments

#: A predictor of which less than this share of the variance is left, given those before it, depends on them.
_DEPENDENT: Final = 1e-9
#: Shares in another predictor below this, in units of standard deviations, are not named.
_NAMED: Final = 1e-6
_MOST_NAMED: Final = 6
_LARGE_VIF: Final = 10.0
_LARGE_CONDITION: Final = 30.0


class Collinearity(NamedTuple):
    """Which predictors are kept (numbers, rising), why others were dropped, and how they hang together.

    `vif` (predictors,) is the variance inflation factor 1 / (1 - R^2) given the other kept ones, NaN for
    dropped ones. `condition_number` is the root of the ratio of the extreme eigenvalues of the correlation
    matrix of the kept predictors; NaN without any.
    """

    kept: NDArray[np.int64]
    notes: dict[str, str]
    vif: NDArray[np.float64]
    condition_number: float
    warnings: tuple[str, ...]


def find_collinearity(correlation: NDArray[np.float64], names: Sequence[str]) -> Collinearity:
    """Drop predictors that do not vary or depend exactly on earlier ones, and judge the rest.

    `correlation` is (predictors, predictors), with 0 on the diagonal for those that do not vary.
    """
    kept: list[int] = []
    notes: dict[str, str] = {}
    for j, name in enumerate(names):
        if correlation[j, j] == 0.0:
            notes[name] = "dropped: the same value in all rows"
            continue
        shares = np.linalg.solve(correlation[np.ix_(kept, kept)], correlation[kept, j])
        if 1.0 - shares @ correlation[kept, j] > _DEPENDENT:
            kept.append(j)
            continue
        others = [names[kept[k]] for k in np.argsort(-np.abs(shares)) if abs(shares[k]) > _NAMED]
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        notes[name] = f"dropped: a linear combination of {', '.join(others[:_MOST_NAMED])}{more}"
    vif = np.full(len(names), np.nan)
    condition = np.nan
    if kept:
        values, vectors = np.linalg.eigh(correlation[np.ix_(kept, kept)])
        values = np.maximum(values, _DEPENDENT * 1e-3)
        vif[kept] = (vectors * vectors / values).sum(axis=1)
        condition = float(np.sqrt(values[-1] / values[0]))
    return Collinearity(
        np.array(kept, np.int64), notes, vif, condition, tuple(_warnings(names, notes, vif, condition))
    )


def _warnings(
    names: Sequence[str], notes: dict[str, str], vif: NDArray[np.float64], condition: float
) -> list[str]:
    found = []
    if notes:
        found.append(f"{len(notes)} of {len(names)} predictors were dropped: {', '.join(notes)}")
    large = [f"{names[j]} ({vif[j]:.3g})" for j in np.argsort(-np.nan_to_num(vif)) if vif[j] > _LARGE_VIF]
    if large:
        more = f" and {len(large) - _MOST_NAMED} more" if len(large) > _MOST_NAMED else ""
        found.append(
            f"variance inflation factors above {_LARGE_VIF:g}: {', '.join(large[:_MOST_NAMED])}{more}; which "
            "of such predictors is chosen is partly chance"
        )
    if condition > _LARGE_CONDITION:
        found.append(
            f"condition number {condition:.3g} of the correlation matrix, above {_LARGE_CONDITION:g}: some "
            "coefficients can be told apart only poorly"
        )
    return found


#: Kinds of rows of a model that is fitted on all of them and judged on none.
EVERYWHERE = (ALL_ROWS, NO_ROWS)
_NO_PENALTY = np.zeros(1)


class Unpenalised(NamedTuple):
    """Fits without a LASSO penalty, and whether the maximum likelihood estimate of each is finite.

    Where it is not, the fit has a small penalty of the squares. `away` (width,) is the last step of the
    search.
    """

    fits: list[PathFit]
    finite: list[bool]
    away: list[NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionData:
    """A design that is ready for fits: moments of all predictors, what is dropped, folds and sample."""

    design: DesignFile
    settings: AdaptiveLassoSettings
    moments: Moments
    collinearity: Collinearity
    fits: LogisticFits

    @property
    def kept(self) -> NDArray[np.int64]:
        """Numbers of the predictors that are kept."""
        return self.collinearity.kept

    @property
    def fold_kinds(self) -> list[tuple[int, int]]:
        """Kinds of the rows of each fold's models, fitted and judged; folds without rows are left out."""
        draws, counts = self.fits.draws, self.fits.counts
        kinds = [(draws.outside(k), draws.inside(k)) for k in range(self.settings.folds)]
        return [pair for pair in kinds if counts[list(pair), 0].all()]

    def penalties(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Penalties of all coefficients of a model from those of the kept predictors."""
        found = np.full(self.fits.rows.width, np.inf)
        found[0] = 0.0
        found[1 : 1 + self.kept.size] = shares
        return found

    def spec(
        self,
        kinds: tuple[int, int],
        shares: NDArray[np.float64],
        lambdas: NDArray[np.float64] = _NO_PENALTY,
        ridge: float = 0.0,
    ) -> PathSpec:
        """A path that begins with the share of events among its rows; fixed there if all are the same."""
        rows, events = self.fits.counts[kinds[0]].tolist()
        fixed = events in (0, rows)
        if fixed:
            events, rows = events + 0.5, rows + 1
        start = np.zeros(self.fits.rows.width)
        start[0] = np.log(events / (rows - events))
        return PathSpec(kinds[0], kinds[1], self.penalties(shares), lambdas, ridge, start, fixed)

    def unpenalised(
        self, models: Sequence[tuple[tuple[int, int], NDArray[np.float64]]], what: str
    ) -> Unpenalised:
        """Maximum likelihood fits, or the next best.

        Of each model the kinds of its rows, and 0 for a predictor that is in it, infinite for another; `what`
        names them for the progress.
        """
        specs = [self.spec(kinds, shares) for kinds, shares in models]
        found = self.fits.fit(specs, what)
        finite = [bool(fit.settled.all()) and not spec.fixed for fit, spec in zip(found, specs, strict=True)]
        away = [fit.step[0] for fit in found]
        again = [k for k, fine in enumerate(finite) if not fine]
        ridge = self.settings.ridge
        others = self.fits.fit(
            [self.spec(*models[k], ridge=ridge) for k in again], f"{what}, with squares penalised"
        )
        for k, fit in zip(again, others, strict=True):
            found[k] = fit
        return Unpenalised(found, finite, away)


def prepare_regression(
    design: DesignFile,
    settings: AdaptiveLassoSettings,
    executor: Executor,
    progress: Callable[[FitProgress], None],
    kept: KeptSteps | None = None,
) -> RegressionData:
    """Read the design: for its means, its covariances, a sample and, with a pilot model, a better one.

    InvalidInput if there are no rows, all of them have the same outcome, or no predictor varies.
    """
    if not 0 < design.events < design.rows:
        raise InvalidInput(
            "outcome",
            found=f"{design.events} events in {design.rows} rows",
            expected="at least one row with the event and one without",
        )
    if not (design.high > design.low).any():
        raise InvalidInput(
            "predictors", found="none that has more than one value", expected="at least one that varies"
        )
    n = design.rows
    moments = find_moments(
        design, executor, lambda done: progress(FitProgress("means and correlations", done, 2 * n))
    )
    collinearity = find_collinearity(moments.correlation, design.predictors)
    own = collinearity.kept
    rows = StandardRows(design, own, moments.mean[own], 1.0 / moments.sd[own])
    draws = RowDraws(settings.seed, settings.folds, settings.halves)

    def told(done: int) -> None:
        progress(FitProgress("drawing a sample", done, n))

    sample, counts = draw_sample(rows, draws, executor, told)
    if sample.numbers.size < n:
        pilot = pilot_of(sample, settings.ridge)
        sample, counts = draw_sample(rows, draws, executor, told, pilot)
    fits = LogisticFits(
        rows=rows,
        draws=draws,
        sample=sample,
        counts=counts,
        executor=executor,
        tolerance=settings.tolerance,
        progress=progress,
        kept=kept,
    )
    return RegressionData(
        design=design, settings=settings, moments=moments, collinearity=collinearity, fits=fits
    )


#: Coefficients are named whose last step is at least this share of the longest one.
_RUNS_AWAY: Final = 0.01
_FEW_EVENTS: Final = 10


class InitialEstimates(NamedTuple):
    """What the path begins with; arrays are over the kept predictors.

    `mle` with Wald's interval is NaN where it is not `finite`. `weights` are the adaptive ones: from all
    rows, and from those outside each fold that has rows.
    """

    mle: NDArray[np.float64]
    mle_low: NDArray[np.float64]
    mle_high: NDArray[np.float64]
    weights: list[NDArray[np.float64]]
    finite: bool
    warnings: tuple[str, ...]


def adaptive_weights(data: RegressionData, fit: PathFit) -> NDArray[np.float64]:
    """Weights in the penalty, from coefficients without it; infinite where these are 0."""
    size = np.abs(fit.coefficients[0, 1 : 1 + data.kept.size])
    with np.errstate(divide="ignore", over="ignore"):
        weights: NDArray[np.float64] = size**-data.settings.gamma
    return weights


def initial_estimates(data: RegressionData) -> InitialEstimates:
    """Fit all rows, and those outside each fold, without a LASSO penalty."""
    size = data.kept.size
    none = np.zeros(size)
    models = [(kinds, none) for kinds in (EVERYWHERE, *data.fold_kinds)]
    fits, finite, away = data.unpenalised(models, "maximum likelihood")
    full = fits[0]
    warnings = []
    if min(data.moments.events, data.moments.rows - data.moments.events) < _FEW_EVENTS * size:
        warnings.append(
            f"{data.moments.events:,} events in {data.moments.rows:,} rows for {size} predictors: fewer than "
            f"{_FEW_EVENTS} a predictor, so that estimates and intervals are rough"
        )
    if finite[0]:
        estimate, width = full.coefficients[0, 1 : 1 + size], _half_width(data, full.coefficients[0])
    else:
        warnings.append(_separation(data, away[0]))
        estimate, width = np.full(size, np.nan), np.full(size, np.nan)
    if not all(finite[1:]):
        warnings.append(
            f"no finite maximum likelihood estimate without {finite[1:].count(False)} of the folds: their "
            "weights come from a fit that penalises squares"
        )
    return InitialEstimates(
        mle=estimate,
        mle_low=estimate - width,
        mle_high=estimate + width,
        weights=[adaptive_weights(data, fit) for fit in fits],
        finite=finite[0],
        warnings=tuple(warnings),
    )


def _half_width(data: RegressionData, beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half the width of Wald's intervals."""
    used = 1 + data.kept.size
    information = data.fits.curvature(beta, ALL_ROWS)[:used, :used]
    z = NormalDist().inv_cdf(0.5 + 0.5 * data.settings.confidence)
    try:
        variance = np.diag(np.linalg.inv(information))[1:]
    except np.linalg.LinAlgError:
        return np.full(data.kept.size, np.nan)
    return np.where(variance > 0, z * np.sqrt(np.maximum(variance, 0.0)), np.nan)


def _separation(data: RegressionData, away: NDArray[np.float64]) -> str:
    size = np.abs(away[1 : 1 + data.kept.size])
    order = np.argsort(-size, kind="stable")
    order = order[size[order] >= _RUNS_AWAY * size.max()]
    names = [data.design.predictors[data.kept[k]] for k in order[:_MOST_NAMED].tolist()]
    more = f" and {order.size - _MOST_NAMED} more" if order.size > _MOST_NAMED else ""
    return (
        "no finite maximum likelihood estimate was found: some combination of predictors separates rows with "
        f"the event from rows without, in all rows or in some; coefficients that run away: {', '.join(names)}"
        f"{more}; weights come from a fit that penalises squares"
    )
