"""Logistic regression with an adaptive LASSO penalty, over a whole path, out of core.

Here: the penalties of the path, the choice among its models, how often a predictor is chosen in random halves
of the rows, and the fit with its tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.run.executor import Executor
from plait.stats.design_file import DesignFile
from plait.stats.held_out import Area, ScorePass, calibration_table, roc_area, roc_table
from plait.stats.path_fits import CHOICES, NO_ROWS, AdaptiveLassoSettings, FitProgress, PathFit
from plait.stats.regression_data import (
    EVERYWHERE,
    RegressionData,
    adaptive_weights,
    initial_estimates,
    prepare_regression,
    running_executor,
)


def lasso_tables(fit: AdaptiveLassoFit) -> dict[str, pa.Table]:
    """The tables of `AdaptiveLassoFit.tables`."""
    names = pa.array(fit.predictors, pa.string())
    notes = pa.array([fit.notes.get(name) for name in fit.predictors], pa.string())
    rules = [",".join(rule for rule, at in fit.chosen.items() if at == k) for k in range(fit.lambdas.size)]
    dropped = ~np.isfinite(fit.vif)
    at_min = fit.coefficients[fit.chosen["cv_min"]]
    chosen = {rule: _numbers(fit.coefficients[at], dropped) for rule, at in fit.chosen.items()}
    path = {
        "index": pa.array(np.arange(fit.lambdas.size)),
        "lambda": pa.array(fit.lambdas),
        "nonzero": pa.array(fit.nonzero),
        "deviance_explained": _numbers(fit.deviance_explained),
        "bic": _numbers(fit.bic),
        "cv_deviance": _numbers(fit.cv_deviance),
        "cv_se": _numbers(fit.cv_se),
        "chosen": pa.array(rules, pa.string()),
    }
    columns = [_numbers(fit.coefficients[:, j]) for j in range(len(fit.predictors))]
    return {
        "predictors": pa.table(
            {
                "predictor": names,
                "mean": _numbers(fit.mean),
                "sd": _numbers(fit.sd),
                "vif": _numbers(fit.vif),
                "note": notes,
            }
        ),
        "lambda_path": pa.Table.from_arrays([*path.values(), *columns], [*path, *fit.predictors]),
        "coefficients": pa.table(
            {
                "predictor": names,
                "mle": _numbers(fit.mle),
                "mle_low": _numbers(fit.mle_low),
                "mle_high": _numbers(fit.mle_high),
                "cv_min": chosen["cv_min"],
                "cv_1se": chosen["cv_1se"],
                "bic": chosen["bic"],
                "stability": _numbers(fit.stability),
                "odds_ratio_per_sd": _numbers(np.exp(at_min), dropped),
            }
        ),
        "calibration": fit.calibration,
        "roc": fit.roc,
    }


def _numbers(values: NDArray[np.float64], unknown: NDArray[np.bool_] | None = None) -> pa.Array:
    """A column, null where a value is not known."""
    missing = ~np.isfinite(values) if unknown is None else unknown | ~np.isfinite(values)
    return pa.array(values, pa.float64(), mask=missing)


#: The first penalty is larger by this, so that rounding lets no predictor in.
_ABOVE: Final = 1.0 + 1e-10
#: First penalty of a path on which nothing is associated with the outcome.
_NOTHING: Final = 1e-12


class PathChoice(NamedTuple):
    """How good each model of a path is, which are chosen (place on the path by rule), and what to warn of.

    Arrays are (lambdas,), with the meaning they have in `AdaptiveLassoFit`.
    """

    explained: NDArray[np.float64]
    bic: NDArray[np.float64]
    cv_deviance: NDArray[np.float64]
    cv_se: NDArray[np.float64]
    chosen: dict[str, int]
    warnings: tuple[str, ...]


def penalty_path(data: RegressionData, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Penalties, falling from the smallest one that leaves no predictor; `weights` of the kept predictors."""
    slopes = np.abs(data.moments.slope[data.kept])
    first = max(float((slopes / weights).max()) * _ABOVE, _NOTHING)
    steps = np.arange(data.settings.lambdas) / max(data.settings.lambdas - 1, 1)
    return first * data.settings.lambda_ratio**steps


def choose(data: RegressionData, paths: Sequence[PathFit], lambdas: NDArray[np.float64]) -> PathChoice:
    """Judge all models and choose among them; `paths`: of all rows, then outside each fold that has rows."""
    rows, events = data.moments.rows, data.moments.events
    loss = paths[0].losses[:, 0]
    null = -events * math.log(events / rows) - (rows - events) * math.log1p(-events / rows)
    nonzero = (paths[0].coefficients[:, 1:] != 0).sum(axis=1)
    bic = 2.0 * loss + (nonzero + 1) * math.log(rows)
    places = {"bic": int(np.argmin(bic))}
    warnings = []
    deviance, error = np.full(lambdas.size, np.nan), np.full(lambdas.size, np.nan)
    if len(paths) > 2:
        sizes = data.fits.counts[[judged for _, judged in data.fold_kinds], 0].astype(np.float64)
        shares = (sizes / sizes.sum())[:, None]
        by_fold = np.stack([2.0 * path.losses[:, 1] for path in paths[1:]]) / sizes[:, None]
        deviance = (shares * by_fold).sum(axis=0)
        error = np.sqrt((shares * (by_fold - deviance) ** 2).sum(axis=0) / (len(sizes) - 1))
        least = int(np.argmin(deviance))
        within = deviance <= deviance[least] + error[least]
        places |= {"cv_min": least, "cv_1se": int(np.argmax(within))}
    else:
        warnings.append("fewer than two folds have rows: cross-validation is left out, and bic chooses")
        places |= {"cv_min": places["bic"], "cv_1se": places["bic"]}
    return PathChoice(1.0 - loss / null, bic, deviance, error, places, tuple(warnings))


def half_stability(
    data: RegressionData, penalty: float, finite: bool
) -> tuple[NDArray[np.float64], list[str]]:
    """Share of the random halves in whose model each kept predictor is (NaN without halves), and warnings.

    Each half makes its own weights and is fitted with the same penalty. Halves come in pairs that make up all
    rows, as in the stability selection of Shah and Samworth (J. R. Stat. Soc. B 75, 2013). With `finite`,
    maximum likelihood is tried for the weights; else squares are penalised at once.
    """
    draws, counts = data.fits.draws, data.fits.counts
    every = [(draws.half(k), NO_ROWS) for k in range(data.settings.halves)]
    mixed = [pair for pair in every if 0 < counts[pair[0], 1] < counts[pair[0], 0]]
    warnings = []
    if len(mixed) < len(every):
        warnings.append(
            f"{len(every) - len(mixed)} of {len(every)} halves have rows of one outcome only and are left out"
        )
    if not mixed:
        return np.full(data.kept.size, np.nan), warnings
    none = np.zeros(data.kept.size)
    if finite:
        fits = data.unpenalised([(kinds, none) for kinds in mixed], "maximum likelihood of halves").fits
    else:
        specs = [data.spec(kinds, none, ridge=data.settings.ridge) for kinds in mixed]
        fits = data.fits.fit(specs, "halves, with squares penalised")
    specs = [
        data.spec(kinds, adaptive_weights(data, fit), np.array([penalty]))
        for kinds, fit in zip(mixed, fits, strict=True)
    ]
    chosen = [fit.coefficients[0, 1 : 1 + data.kept.size] != 0 for fit in data.fits.fit(specs, "halves")]
    share: NDArray[np.float64] = np.mean(chosen, axis=0)
    return share, warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveLassoFit:
    """A fitted path, what was chosen on it, and how well it predicts.

    Coefficients are changes of the log odds by one standard deviation of a predictor. Arrays over predictors
    hold all of the design, in its order; a dropped one (see `notes`) is 0 on the path, NaN elsewhere.
    `coefficients` is (lambdas, predictors), `lambdas` falls; `chosen` is the place on the path by rule:
    ``cv_min``, ``cv_1se``, ``bic``.

    `condition_number` is the root of the ratio of the extreme eigenvalues of the correlation matrix of the
    kept predictors, `vif` their variance inflation factor. `deviance_explained` is a share of the null
    deviance, `cv_deviance` a mean a held-out row, `cv_se` its standard error over folds. `mle` is
    unpenalised, with Wald's interval. `stability` is NaN without halves; `auc`, `calibration` and `roc` are
    of held-out predictions at ``cv_min``.
    """

    predictors: tuple[str, ...]
    notes: Mapping[str, str]
    rows: int
    events: int
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    vif: NDArray[np.float64]
    condition_number: float
    weights: NDArray[np.float64]
    lambdas: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    nonzero: NDArray[np.int64]
    deviance_explained: NDArray[np.float64]
    bic: NDArray[np.float64]
    cv_deviance: NDArray[np.float64]
    cv_se: NDArray[np.float64]
    chosen: Mapping[str, int]
    mle: NDArray[np.float64]
    mle_low: NDArray[np.float64]
    mle_high: NDArray[np.float64]
    stability: NDArray[np.float64]
    auc: float
    auc_low: float
    auc_high: float
    calibration: pa.Table
    roc: pa.Table
    warnings: tuple[str, ...]

    def tables(self) -> dict[str, pa.Table]:
        """Tables for people: predictors, lambda_path, coefficients, calibration and roc; the unknown is null.

        ``lambda_path`` has one row a penalty and, last, one column a predictor. ``coefficients`` has one row
        a predictor: mle with its interval, the models chosen by each rule, stability, odds_ratio_per_sd.
        """
        return lasso_tables(self)

    def summary(self) -> dict[str, object]:
        """Figures for JSON: n, events, auc with its interval, condition number, chosen, dropped, warnings."""
        chosen = {
            rule: {"index": at, "lambda": float(self.lambdas[at]), "nonzero": int(self.nonzero[at])}
            for rule, at in self.chosen.items()
        }
        figures = {"auc": self.auc, "auc_low": self.auc_low, "auc_high": self.auc_high}
        figures["condition_number"] = self.condition_number
        return {
            "n": self.rows,
            "events": self.events,
            **{name: value if math.isfinite(value) else None for name, value in figures.items()},
            "chosen": chosen,
            "dropped": dict(self.notes),
            "warnings": list(self.warnings),
        }


def fit_adaptive_lasso(
    design: DesignFile,
    settings: AdaptiveLassoSettings | None = None,
    *,
    executor: Executor | None = None,
    threads: int | None = None,
    progress: Callable[[FitProgress], None] | None = None,
) -> AdaptiveLassoFit:
    """Fit a path of adaptive LASSO models, choose among them, and say how well they predict.

    No result depends on the executor or the threads. `progress` is called in this thread. InvalidInput if
    there are no rows, all of them have the same outcome, or no predictor varies.
    """
    chosen = settings or AdaptiveLassoSettings()
    with running_executor(executor, threads) as running:
        data = prepare_regression(design, chosen, running, progress or _silent)
        return _fit(data)


def _silent(told: FitProgress) -> None:
    """Tell nobody."""


def _fit(data: RegressionData) -> AdaptiveLassoFit:
    settings, fits = data.settings, data.fits
    initial = initial_estimates(data)
    lambdas = penalty_path(data, initial.weights[0])
    pairs = [EVERYWHERE, *data.fold_kinds]
    specs = [data.spec(pair, weights, lambdas) for pair, weights in zip(pairs, initial.weights, strict=True)]
    paths = fits.fit(specs, "the path")
    choice = choose(data, paths, lambdas)
    stability, unstable = half_stability(data, lambdas[choice.chosen[settings.stability_at]], initial.finite)
    area, calibration, roc = _held_out(data, paths[1:], choice)
    lost = sum(int((~path.settled).sum()) for path in paths)
    warnings = [*data.collinearity.warnings, *initial.warnings, *choice.warnings, *unstable]
    if lost:
        warnings.append(f"{lost} of {len(paths) * lambdas.size} models of the paths did not settle")
    p = len(data.design.predictors)
    own = paths[0].coefficients[:, 1 : 1 + data.kept.size]
    coefficients = np.zeros((lambdas.size, p))
    coefficients[:, data.kept] = own
    varies = data.moments.sd > 0
    return AdaptiveLassoFit(
        predictors=data.design.predictors,
        notes=data.collinearity.notes,
        rows=data.moments.rows,
        events=data.moments.events,
        mean=data.moments.mean,
        sd=np.where(varies, data.moments.sd, 0.0),
        vif=data.collinearity.vif,
        condition_number=data.collinearity.condition_number,
        weights=_spread(data, initial.weights[0]),
        lambdas=lambdas,
        intercepts=paths[0].coefficients[:, 0],
        coefficients=coefficients,
        nonzero=(own != 0).sum(axis=1),
        deviance_explained=choice.explained,
        bic=choice.bic,
        cv_deviance=choice.cv_deviance,
        cv_se=choice.cv_se,
        chosen=choice.chosen,
        mle=_spread(data, initial.mle),
        mle_low=_spread(data, initial.mle_low),
        mle_high=_spread(data, initial.mle_high),
        stability=_spread(data, stability),
        auc=area.area,
        auc_low=area.low,
        auc_high=area.high,
        calibration=calibration,
        roc=roc,
        warnings=tuple(warnings),
    )


def _spread(data: RegressionData, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of the kept predictors among all predictors; NaN for the others."""
    found = np.full(len(data.design.predictors), np.nan)
    found[data.kept] = values
    return found


def _held_out(
    data: RegressionData, folds: Sequence[PathFit], choice: PathChoice
) -> tuple[Area, pa.Table, pa.Table]:
    """Area under the ROC curve and calibration at ``cv_min``, and the ROC curve of every rule."""
    fits, confidence = data.fits, data.settings.confidence
    coefficients = np.zeros((len(CHOICES), data.settings.folds, fits.rows.width))
    numbers = [kinds[1] - fits.draws.inside(0) for kinds in data.fold_kinds]
    for model, rule in enumerate(CHOICES):
        for fold, path in zip(numbers, folds, strict=True):
            coefficients[model, fold] = path.coefficients[choice.chosen[rule]]
    counts = fits.sums(ScorePass(fits.rows, fits.draws, coefficients), "held-out predictions")[0]
    if len(folds) < 2:
        counts = np.zeros_like(counts)
    return (
        roc_area(counts[0], confidence),
        calibration_table(counts[0], confidence),
        roc_table({rule: counts[model] for model, rule in enumerate(CHOICES)}),
    )
