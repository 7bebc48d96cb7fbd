"""Which groups of predictors predict: models with and without them, on the same held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.executors.protocol import Executor
from plait.statistics.design_file import DesignFile
from plait.statistics.held_out import PairPass, ScorePass, placement_values, roc_area, roc_table
from plait.statistics.regression_data import RegressionData, prepare_regression, running_executor
from plait.statistics.regression_settings import AdaptiveLassoSettings, FitProgress

__all__ = ["GroupComparison", "compare_groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComparison:
    """Held-out deviance and AUC of models of some predictors each.

    Attributes
    ----------
    table
        One row a model: model, predictors (number of them), cv_deviance (mean a row), auc, auc_low,
        auc_high, delta_vs_all (mean of the differences, row by row, of its deviance to that of the model
        `reference`; positive: it predicts worse), delta_low, delta_high, n.
    roc
        model, false_positive_rate, true_positive_rate; at most 200 points a model.
    warnings
        Models without a finite maximum likelihood estimate, and such things.
    paired
        One row a pair of models: model, other, deviance_less (mean of the differences, row by row, of the
        deviance of `model` to that of `other`; negative: `model` predicts better), deviance_low,
        deviance_high, auc_more (area under the curve of `model` less that of `other`), auc_low, auc_high, n.
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
) -> GroupComparison:
    """Compare models that are restricted to some predictors, by cross-validation on the same folds.

    Every model is an unpenalised logistic regression. Its held-out deviance is compared with that of the
    model `reference`, row by row.

    Parameters
    ----------
    design
        Predictors and outcomes.
    groups
        Names of the predictors of each model, by the model's name.
    settings
        Of which `folds`, `seed`, `ridge`, `tolerance` and `confidence` are used.
    reference
        The model that the others are compared with; one of `groups`.
    pairs
        Names of two models each, that are compared with each other besides.
    executor, threads, progress
        As for `fit_adaptive_lasso`.

    Returns
    -------
    GroupComparison
        One row a model, in the order of `groups`.

    Raises
    ------
    InvalidInput
        If a predictor, the reference or a model of a pair is not known, or there is nothing to fit.
    """
    _check(design, groups, reference)
    for name in (name for pair in pairs for name in pair):
        if name not in groups:
            raise InvalidInput("pairs", found=repr(name), expected=f"models among {', '.join(groups)}")
    chosen = replace(settings or AdaptiveLassoSettings(), halves=0)
    with running_executor(executor, threads) as running:
        data = prepare_regression(design, chosen, running, progress or _silent)
        return _compare(data, {name: set(group) for name, group in groups.items()}, reference, pairs)


def _silent(told: FitProgress) -> None:
    """Tell nobody."""


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
    fields = [(name, pa.string()) for name in ("model", "other")]
    for name in ("deviance_less", "deviance_low", "deviance_high", "auc_more", "auc_low", "auc_high"):
        fields.append((name, pa.float64()))
    schema = pa.schema([*fields, ("n", pa.int64())])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


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
