"""Quantiles: of counted values, and of Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: From here on Student's t is normal to eight digits.
_MANY: Final = 1e8
_NODES: Final = 64


def counted_quantiles(
    values: NDArray[Any], counts: NDArray[np.int64], shares: Sequence[float]
) -> list[float | None]:
    """Quantiles (shares from 0 to 1) of ascending values (m,) that occur `counts` (m,) times each.

    As `numpy.quantile` of all values written out: linear between neighbours. None where there are none.
    """
    ends = np.cumsum(counts)
    n = int(ends[-1]) if len(ends) else 0
    if n == 0:
        return [None] * len(shares)
    found: list[float | None] = []
    for share in shares:
        place = share * (n - 1)
        whole = min(math.floor(place), n - 1)
        low, high = (
            float(values[np.searchsorted(ends, at, side="right")]) for at in (whole, min(whole + 1, n - 1))
        )
        found.append(low + (high - low) * (place - whole))
    return found


def student_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t distribution, for a probability above 0.5 and below 1.

    Degrees of freedom are 1 or more and need not be whole. Right to six digits or more, from 2 degrees of
    freedom on to seven: with t = sqrt(f) tan(a), the density of the angle a is proportional to cos(a)^(f -
    1). Its integral from 0 is taken by Gauss-Legendre quadrature, and the angle found by Newton's method,
    which comes from below as this integral is concave.

    >>> round(student_quantile(0.975, 10), 6)
    2.228139
    """
    normal = NormalDist().inv_cdf(probability)
    if freedom >= _MANY:
        return normal
    nodes, weights = _legendre()
    whole = math.sqrt(math.pi) / _gamma_ratio(freedom)
    angle = math.atan(normal / math.sqrt(freedom))
    for _ in range(100):
        integral = float(np.sum(weights * np.cos(angle * nodes) ** (freedom - 1))) * angle
        step = ((probability - 0.5) * whole - integral) / math.cos(angle) ** (freedom - 1)
        angle += step
        if abs(step) < 1e-13 * angle:
            break
    return math.sqrt(freedom) * math.tan(angle)


def _gamma_ratio(freedom: float) -> float:
    """Gamma((f + 1) / 2) / Gamma(f / 2); by its series for large f, where logarithms cancel."""
    if freedom < 1000:
        return math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    return math.sqrt(freedom / 2) * math.exp(-1 / (4 * freedom) + 1 / (24 * freedom**3))


@lru_cache(maxsize=1)
def _legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


def wilson(events: int, n: int, z: float) -> tuple[float, float]:
    """Wilson's interval of the share `events` / `n`, n above 0; `z` is the normal quantile of its confidence.

    >>> low, high = wilson(10, 40, 1.959964)
    >>> round(low, 4), round(high, 4)
    (0.1419, 0.4019)
    """
    centre = (events + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * (events * (n - events) / n + z * z / 4) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)
