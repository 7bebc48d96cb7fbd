"""Tables of a fitted path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from plait.statistics.adaptive_lasso import AdaptiveLassoFit

__all__ = ["lasso_tables"]


def lasso_tables(fit: AdaptiveLassoFit) -> dict[str, pa.Table]:
    """See `plait.statistics.adaptive_lasso.AdaptiveLassoFit.tables`.

    Parameters
    ----------
    fit
        The path.
    """
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
