"""How often a predictor is chosen when the fit is repeated on random halves of the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plait.statistics.initial_estimates import adaptive_weights
from plait.statistics.model_passes import NO_ROWS
from plait.statistics.regression_data import RegressionData

__all__ = ["half_stability"]


def half_stability(
    data: RegressionData, penalty: float, finite: bool
) -> tuple[NDArray[np.float64], list[str]]:
    """Share of the halves in whose model each predictor is.

    Each half makes its own weights and is fitted with the same penalty. Halves come in pairs that make up all
    rows, as in the stability selection of Shah and Samworth (J. R. Stat. Soc. B 75, 2013).

    Parameters
    ----------
    data
        The rows.
    penalty
        The penalty.
    finite
        Whether maximum likelihood estimates are tried for the weights, or squares are penalised at once.

    Returns
    -------
    numpy.ndarray
        float64, shape (kept predictors,); NaN without halves.
    list
        What the reader has to know.
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
