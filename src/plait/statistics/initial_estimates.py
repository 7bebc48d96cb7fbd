"""Estimates without a LASSO penalty: maximum likelihood with intervals, and the weights made from them."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.statistics.path_fits import PathFit
from plait.statistics.regression_data import EVERYWHERE, RegressionData
from plait.statistics.row_draws import ALL_ROWS

__all__ = ["InitialEstimates", "adaptive_weights", "initial_estimates"]

#: Coefficients are named whose last step is at least this share of the longest one.
_RUNS_AWAY: Final = 0.01
_MOST_NAMED: Final = 6
_FEW_EVENTS: Final = 10


class InitialEstimates(NamedTuple):
    """What the path begins with. Arrays are over the kept predictors.

    Attributes
    ----------
    mle, mle_low, mle_high
        Maximum likelihood estimates with their interval (Wald); NaN if there are no finite ones.
    weights
        Adaptive weights: from all rows, and from those outside each fold that has rows.
    finite
        Whether the maximum likelihood estimate of all rows is finite.
    warnings
        What the reader has to know.
    """

    mle: NDArray[np.float64]
    mle_low: NDArray[np.float64]
    mle_high: NDArray[np.float64]
    weights: list[NDArray[np.float64]]
    finite: bool
    warnings: tuple[str, ...]


def adaptive_weights(data: RegressionData, fit: PathFit) -> NDArray[np.float64]:
    """Weights in the penalty, from coefficients without it; infinite where these are 0.

    Parameters
    ----------
    data
        Of which `gamma` and the kept predictors are used.
    fit
        One model without a LASSO penalty.
    """
    size = np.abs(fit.coefficients[0, 1 : 1 + data.kept.size])
    with np.errstate(divide="ignore", over="ignore"):
        weights: NDArray[np.float64] = size**-data.settings.gamma
    return weights


def initial_estimates(data: RegressionData) -> InitialEstimates:
    """Fit all rows, and those outside each fold, without a LASSO penalty.

    Parameters
    ----------
    data
        The rows.
    """
    size = data.kept.size
    none = np.zeros(size)
    models = [(kinds, none) for kinds in (EVERYWHERE, *data.fold_kinds)]
    fits, finite, away = data.unpenalised(models, "maximum likelihood")
    full = fits[0]
    warnings = []
    if min(data.moments.events, data.moments.rows - data.moments.events) < _FEW_EVENTS * size:
        warnings.append(
            f"{data.moments.events} events in {data.moments.rows} rows for {size} predictors: fewer than "
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
