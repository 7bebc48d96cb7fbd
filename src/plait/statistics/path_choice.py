"""The penalties of a path, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.statistics.path_fits import PathFit
from plait.statistics.regression_data import RegressionData

__all__ = ["PathChoice", "choose", "penalty_path"]

#: The first penalty is larger by this, so that rounding lets no predictor in.
_ABOVE: Final = 1.0 + 1e-10
#: First penalty of a path on which nothing is associated with the outcome.
_NOTHING: Final = 1e-12


class PathChoice(NamedTuple):
    """How good each model of a path is, and which are chosen.

    Attributes
    ----------
    explained, bic, cv_deviance, cv_se
        float64, shape (lambdas,), see `plait.statistics.adaptive_lasso.AdaptiveLassoFit`.
    chosen
        Place on the path by rule.
    warnings
        What the reader has to know.
    """

    explained: NDArray[np.float64]
    bic: NDArray[np.float64]
    cv_deviance: NDArray[np.float64]
    cv_se: NDArray[np.float64]
    chosen: dict[str, int]
    warnings: tuple[str, ...]


def penalty_path(data: RegressionData, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Penalties from the smallest one without predictors downwards.

    Parameters
    ----------
    data
        Of which the covariances with the outcome and the settings are used.
    weights
        Adaptive weights of the kept predictors.
    """
    slopes = np.abs(data.moments.slope[data.kept])
    first = max(float((slopes / weights).max()) * _ABOVE, _NOTHING)
    steps = np.arange(data.settings.lambdas) / max(data.settings.lambdas - 1, 1)
    return first * data.settings.lambda_ratio**steps


def choose(data: RegressionData, paths: Sequence[PathFit], lambdas: NDArray[np.float64]) -> PathChoice:
    """Judge all models and choose among them.

    Parameters
    ----------
    data
        The rows.
    paths
        Of all rows, and of those outside each fold that has rows.
    lambdas
        The penalties.
    """
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
