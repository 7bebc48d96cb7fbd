"""Logistic regression with an adaptive LASSO penalty, over a whole path, out of core.

Here: how well models predict rows that they have not seen, and what is lost without groups of predictors; the
penalties of the path, the choice among its models, how often a predictor is chosen in random halves of the
rows, and the fit with its tables. Beside the study's regression, its one importer, because it knows nothing
of clonotypes.

The linear predictor (score) of each held-out row, by the model of its own fold, is rounded to 1/512 and
counted in bins. ROC curves, areas and calibration are exact for these rounded scores, and take the same
memory for any number of rows. Score counts are (2, bins): rows without, then with the event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.checkpoints import KeptSteps
from plait.run.executor import Executor, LocalExecutor
from plait.stats.contingency import wilson_interval
from plait.stats.design_file import DesignFile
from plait.stats.path_fits import CHOICES, NO_ROWS, AdaptiveLassoSettings, FitProgress, PathFit
from plait.stats.regression_data import (
    EVERYWHERE,
    RegressionData,
    adaptive_weights,
    initial_estimates,
    prepare_regression,
)
from plait.stats.rows import RowDraws, StandardRows, Values

_PER_UNIT: Final = 512
_REACH: Final = 32
_BINS: Final = 2 * _REACH * _PER_UNIT
_GROUPS: Final = 20
_MOST_POINTS: Final = 200


@dataclass(frozen=True, slots=True)
class ScorePass:
    """Work on a piece: scores of held-out rows under several models. Picklable.

    `coefficients` are (models, folds, width), each fitted without its fold; `reference` is the number of the
    model that the others are compared with.
    """

    rows: StandardRows
    draws: RowDraws
    coefficients: NDArray[np.float64]
    reference: int = 0

    def __call__(self, start: int, stop: int) -> Values:
        """Rows by score, int64 (models, 2, bins), and sums (models, 3).

        Sums are of the deviance, of its difference to that of the reference, and of the square of that.
        """
        deviance, places, event = _scored(self.rows, self.draws, self.coefficients, start, stop)
        counts = np.zeros((len(places), 2, _BINS), np.int64)
        for model, place in enumerate(places):
            counts[model] = np.bincount(place + _BINS * event, minlength=2 * _BINS).reshape(2, _BINS)
        more = deviance - deviance[self.reference]
        return counts, np.stack([deviance.sum(axis=1), more.sum(axis=1), (more * more).sum(axis=1)], axis=1)


@dataclass(frozen=True, slots=True)
class PairPass:
    """Work on a piece: differences of two models each, row by row. Picklable.

    `coefficients` as for `ScorePass`; `pairs` are numbers of models; `placements` (models, 2, bins) are from
    `placement_values`.
    """

    rows: StandardRows
    draws: RowDraws
    coefficients: NDArray[np.float64]
    pairs: tuple[tuple[int, int], ...]
    placements: NDArray[np.float64]

    def __call__(self, start: int, stop: int) -> Values:
        """Sums of differences, first model of a pair less the second; float64 (pairs, 6).

        These are of the deviance and its square; of the placement and its square among rows without the
        event, and among those with it.
        """
        deviance, places, event = _scored(self.rows, self.draws, self.coefficients, start, stop)
        kind = event.astype(np.int64)
        values = [table[kind, place] for table, place in zip(self.placements, places, strict=True)]
        found = np.empty((len(self.pairs), 6))
        for row, (one, other) in zip(found, self.pairs, strict=True):
            more = deviance[one] - deviance[other]
            higher = values[one] - values[other]
            row[:2] = more.sum(), (more * more).sum()
            for place, of_kind in ((2, higher[~event]), (4, higher[event])):
                row[place : place + 2] = of_kind.sum(), (of_kind * of_kind).sum()
        return (found,)


def _scored(
    rows: StandardRows, draws: RowDraws, coefficients: NDArray[np.float64], start: int, stop: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """Of held-out rows: deviance and rounded score under each model, and whether they have the event."""
    x, y = rows.read(start, stop)
    size = stop - start
    fold = draws.fold_of(np.arange(start, stop, dtype=np.uint64))
    deviance = np.empty((len(coefficients), size))
    places = np.empty((len(coefficients), size), np.int64)
    for model, beta in enumerate(coefficients):
        eta = np.zeros(size)
        for j in np.flatnonzero(beta.any(axis=0)).tolist():
            eta += beta[fold, j] * x[j, :size]
        deviance[model] = 2.0 * (np.logaddexp(0.0, eta) - y[:size] * eta)
        places[model] = np.clip(np.floor((eta + _REACH) * _PER_UNIT), 0, _BINS - 1)
    return deviance, places, y[:size] > 0


def placement_values(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of the rows of the other kind that a row with each score is on the right side of; ties half.

    Counts and shares are (2, bins), without and with the event. Either mean is the area under the curve.
    """
    without, having = (row.astype(np.float64) for row in counts)
    below = (np.cumsum(without) - 0.5 * without) / max(without.sum(), 1.0)
    above = 1.0 - (np.cumsum(having) - 0.5 * having) / max(having.sum(), 1.0)
    return np.stack([above, below])


class Area(NamedTuple):
    """Area under a ROC curve (0 to 1) with its interval; NaN where it cannot be known."""

    area: float
    low: float
    high: float


def roc_area(counts: NDArray[np.int64], confidence: float) -> Area:
    """Area under the ROC curve from score counts (2, bins), with its interval on the logit scale.

    The variance is that of DeLong and others, Biometrics 44, 1988.
    """
    without, having = (row.astype(np.float64) for row in counts)
    negatives, positives = without.sum(), having.sum()
    if not (negatives and positives):
        return Area(math.nan, math.nan, math.nan)
    above, below = placement_values(counts)
    area = float((having * below).sum() / positives)
    if min(negatives, positives) < 2:
        return Area(area, math.nan, math.nan)
    spread = (having * (below - area) ** 2).sum() / (positives - 1) / positives
    spread += (without * (above - area) ** 2).sum() / (negatives - 1) / negatives
    if not 0.0 < area < 1.0:
        # Where no pair is misplaced, nothing is left to judge the spread by.
        return Area(area, math.nan, math.nan)
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    width = z * math.sqrt(spread) / (area * (1.0 - area))
    middle = math.log(area / (1.0 - area))
    low, high = (1.0 / (1.0 + math.exp(-min(max(middle + side, -700), 700))) for side in (-width, width))
    return Area(area, low, high)


def roc_points(counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """False and true positive rates along the ROC curve, at most 200 points; score counts are (2, bins)."""
    falling = counts[:, ::-1]
    filled = falling.any(axis=0)
    rates = np.cumsum(falling[:, filled], axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rates = np.concatenate([np.zeros((2, 1)), rates], axis=1)
    along = rates.sum(axis=0)
    wanted = np.searchsorted(along, np.linspace(0.0, along[-1], _MOST_POINTS))
    chosen = np.unique(np.minimum(wanted, along.size - 1))
    return rates[0, chosen], rates[1, chosen]


def roc_table(counts: Mapping[str, NDArray[np.int64]]) -> pa.Table:
    """ROC curves by model: model, false_positive_rate, true_positive_rate; score counts are (2, bins)."""
    curves = {model: roc_points(found) for model, found in counts.items()}
    names = [model for model, (rates, _) in curves.items() for _ in rates]
    columns = [np.concatenate([curve[way] for curve in curves.values()]) for way in range(2)]
    return pa.table(
        {
            "model": pa.array(names, pa.string()),
            "false_positive_rate": pa.array(columns[0]),
            "true_positive_rate": pa.array(columns[1]),
        }
    )


def calibration_table(counts: NDArray[np.int64], confidence: float) -> pa.Table:
    """Predicted and observed shares of events, in groups of rising prediction and nearly equal size.

    Columns bin, predicted, observed, low, high (Wilson), n; score counts are (2, bins).
    """
    rows = counts.sum(axis=0)
    filled = np.flatnonzero(rows)
    total = int(rows.sum())
    middle = np.cumsum(rows[filled]) - 0.5 * rows[filled]
    groups = np.minimum(np.floor(middle / max(total, 1) * _GROUPS), _GROUPS - 1).astype(np.int64)
    score = (filled + 0.5) / _PER_UNIT - _REACH
    probability = 1.0 / (1.0 + np.exp(-score))
    found: list[tuple[float, ...]] = []
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    for group in np.unique(groups).tolist():
        own = filled[groups == group]
        n, events = int(rows[own].sum()), int(counts[1, own].sum())
        low, high = wilson_interval(events, n, z)
        predicted = float((probability[groups == group] * rows[own]).sum()) / n
        found.append((len(found) + 1, predicted, events / n, low, high, n))
    kinds = {
        "bin": "int64",
        **dict.fromkeys(("predicted", "observed", "low", "high"), "float64"),
        "n": "int64",
    }
    return _table_of(found, kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComparison:
    """Held-out deviance and AUC of models of some predictors each, with intervals.

    `table`, one row a model: cv_deviance (mean a row), auc, and delta_vs_all, the mean difference by row of
    its deviance to the reference's (positive: it predicts worse). `paired`, one row a pair: deviance_less
    (negative: `model` predicts better than `other`), auc_more. `roc` has at most 200 points a model.
    """

    table: pa.Table
    roc: pa.Table
    warnings: tuple[str, ...]
    paired: pa.Table


def compare_groups(
    design: DesignFile,
    groups: Mapping[str, Sequence[str]],
    settings: AdaptiveLassoSettings | None = None,
    *,
    reference: str = "all",
    pairs: Sequence[tuple[str, str]] = (),
    executor: Executor | None = None,
    threads: int | None = None,
    progress: Callable[[FitProgress], None] | None = None,
    kept: KeptSteps | None = None,
) -> GroupComparison:
    """Compare unpenalised models of some predictors each, by cross-validation on the same folds.

    Of the settings `folds`, `seed`, `ridge`, `tolerance` and `confidence` are used; `pairs` of models are
    compared with each other besides. InvalidInput if a predictor, the reference or a model of a pair is not
    known, or there is nothing to fit.
    """
    _check(design, groups, reference)
    for name in (name for pair in pairs for name in pair):
        if name not in groups:
            raise InvalidInput("pairs", found=repr(name), expected=f"models among {', '.join(groups)}")
    chosen = replace(settings or AdaptiveLassoSettings(), halves=0)
    data = prepare_regression(design, chosen, executor or LocalExecutor(threads), progress or _silent, kept)
    return _compare(data, {name: set(group) for name, group in groups.items()}, reference, pairs)


def _check(design: DesignFile, groups: Mapping[str, Sequence[str]], reference: str) -> None:
    if reference not in groups:
        raise InvalidInput(
            "reference", found=repr(reference), expected=f"one of {', '.join(groups) or 'none'}"
        )
    known = set(design.predictors)
    for name, group in groups.items():
        for predictor in group:
            if predictor not in known:
                raise InvalidInput(
                    f"group {name!r}",
                    found=repr(predictor),
                    expected=f"predictors of the design: {', '.join(design.predictors)}",
                )


def _compare(
    data: RegressionData,
    groups: Mapping[str, set[str]],
    reference: str,
    pairs: Sequence[tuple[str, str]],
) -> GroupComparison:
    kept = [data.design.predictors[j] for j in data.kept.tolist()]
    folds = data.fold_kinds
    if len(folds) < 2:
        raise InvalidInput(
            "folds",
            found=f"{data.moments.rows} rows in fewer than two folds",
            expected="more rows, or another seed",
        )
    shares = [np.where([name in group for name in kept], 0.0, np.inf) for group in groups.values()]
    models = [(kinds, share) for share in shares for kinds in folds]
    fits, finite, _ = data.unpenalised(models, "models of groups")
    names = list(groups)
    at = names.index(reference)
    coefficients = np.zeros((len(names), data.settings.folds, data.fits.rows.width))
    for k, fit in enumerate(fits):
        model, fold = divmod(k, len(folds))
        coefficients[model, folds[fold][1] - data.fits.draws.inside(0)] = fit.coefficients[0]
    work = ScorePass(data.fits.rows, data.fits.draws, coefficients, at)
    counts, deviance = data.fits.sums(work, "held-out predictions")
    warnings = list(data.collinearity.warnings)
    odd = {names[k // len(folds)] for k, fine in enumerate(finite) if not fine}
    if odd:
        warnings.append(
            "no finite maximum likelihood estimate in some fold of "
            f"{', '.join(name for name in names if name in odd)}: squares are penalised there"
        )
    sizes = [int(np.isfinite(share).sum()) for share in shares]
    table = _table(names, sizes, counts, deviance, data.settings.confidence)
    return GroupComparison(
        table=table,
        roc=roc_table(dict(zip(names, counts, strict=True))),
        warnings=tuple(warnings),
        paired=_paired(data, names, coefficients, counts, pairs),
    )


def _paired(
    data: RegressionData,
    names: Sequence[str],
    coefficients: NDArray[np.float64],
    counts: NDArray[np.int64],
    pairs: Sequence[tuple[str, str]],
) -> pa.Table:
    """Pairs of models on the same rows: for areas with the error of DeLong and others (1988)."""
    used = sorted({names.index(name) for pair in pairs for name in pair})
    numbers = tuple((used.index(names.index(one)), used.index(names.index(other))) for one, other in pairs)
    rows = []
    if pairs:
        placements = np.stack([placement_values(counts[k]) for k in used])
        work = PairPass(data.fits.rows, data.fits.draws, coefficients[used], numbers, placements)
        (sums,) = data.fits.sums(work, "held-out differences")
        without, having = (int(size) for size in counts[0].sum(axis=1))
        z = NormalDist().inv_cdf(0.5 + 0.5 * data.settings.confidence)
        for pair, found in zip(pairs, sums.tolist(), strict=True):
            n = without + having
            less, spread = _mean_and_error(found[0], found[1], n)
            _, of_without = _mean_and_error(found[2], found[3], without)
            more, of_having = _mean_and_error(found[4], found[5], having)
            error = math.hypot(of_without, of_having)
            ends = [
                value + side * z * one for value, one in ((less, spread), (more, error)) for side in (-1, 1)
            ]
            rows.append((*pair, less, *ends[:2], more, *ends[2:], n))
    names = ("deviance_less", "deviance_low", "deviance_high", "auc_more", "auc_low", "auc_high")
    kinds = {"model": "string", "other": "string", **dict.fromkeys(names, "float64"), "n": "int64"}
    return _table_of(rows, kinds)


def _table_of(rows: Sequence[Sequence[object]], kinds: Mapping[str, str]) -> pa.Table:
    """A table from its rows, and types of its columns by name."""
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in kinds.items()])
    return pa.Table.from_pylist([dict(zip(kinds, row, strict=True)) for row in rows], schema=schema)


def _mean_and_error(total: float, squares: float, n: int) -> tuple[float, float]:
    """Mean of n values and its standard error; NaN where one value has none."""
    if n < 2:
        return (total / n if n else math.nan), math.nan
    mean = total / n
    return mean, math.sqrt(max(squares / n - mean * mean, 0.0) / (n - 1))


def _table(
    names: Sequence[str],
    sizes: Sequence[int],
    counts: NDArray[np.int64],
    deviance: NDArray[np.float64],
    confidence: float,
) -> pa.Table:
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    rows = []
    for name, size, count, (own, more, squares) in zip(names, sizes, counts, deviance.tolist(), strict=True):
        n = int(count.sum())
        area = roc_area(count, confidence)
        delta = more / n
        spread = max(squares / n - delta * delta, 0.0) / max(n - 1, 1)
        half = z * math.sqrt(spread)
        rows.append((name, size, own / n, *area, delta, delta - half, delta + half, n))
    fields = ("model", "predictors", "cv_deviance", "auc", "auc_low", "auc_high", "delta_vs_all")
    columns = zip((*fields, "delta_low", "delta_high", "n"), zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns})


def lasso_tables(fit: AdaptiveLassoFit) -> dict[str, pa.Table]:
    """The tables of `AdaptiveLassoFit.tables`."""
    names = pa.array(fit.predictors, pa.string())
    notes = pa.array([fit.notes.get(name) for name in fit.predictors], pa.string())
    rules = [",".join(rule for rule, at in fit.chosen.items() if at == k) for k in range(fit.lambdas.size)]
    dropped = ~np.isfinite(fit.vif)
    at_min = fit.coefficients[fit.chosen["cv_min"]]

    def columns(*names: str) -> dict[str, pa.Array]:
        return {name: _numbers(getattr(fit, name)) for name in names}

    path = {
        "index": pa.array(np.arange(fit.lambdas.size)),
        "lambda": pa.array(fit.lambdas),
        "nonzero": pa.array(fit.nonzero),
        **columns("deviance_explained", "bic", "cv_deviance", "cv_se"),
        "chosen": pa.array(rules, pa.string()),
    }
    coefficients = {
        "predictor": names,
        **columns("mle", "mle_low", "mle_high"),
        **{rule: _numbers(fit.coefficients[fit.chosen[rule]], dropped) for rule in CHOICES},
        **columns("stability"),
        "odds_ratio_per_sd": _numbers(np.exp(at_min), dropped),
    }
    along = [_numbers(fit.coefficients[:, j]) for j in range(len(fit.predictors))]
    return {
        "predictors": pa.table({"predictor": names, **columns("mean", "sd", "vif"), "note": notes}),
        "lambda_path": pa.Table.from_arrays([*path.values(), *along], [*path, *fit.predictors]),
        "coefficients": pa.table(coefficients),
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

    deviance_explained: NDArray[np.float64]
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
    kept: KeptSteps | None = None,
) -> AdaptiveLassoFit:
    """Fit a path of adaptive LASSO models, choose among them, and say how well they predict.

    No result depends on the executor or the threads. `progress` is called in this thread. Passes over the
    data that are `kept` are not made again. InvalidInput if
    there are no rows, all of them have the same outcome, or no predictor varies.
    """
    chosen = settings or AdaptiveLassoSettings()
    data = prepare_regression(design, chosen, executor or LocalExecutor(threads), progress or _silent, kept)
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
    told: dict[str, Any] = choice._asdict() | {"warnings": tuple(warnings)}
    told |= {name: _spread(data, getattr(initial, name)) for name in ("mle", "mle_low", "mle_high")}
    told |= zip(("auc", "auc_low", "auc_high"), area, strict=True)
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
        **told,
        stability=_spread(data, stability),
        calibration=calibration,
        roc=roc,
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
