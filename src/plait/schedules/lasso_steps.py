"""Quadratics with absolute values: the next coefficients of a penalised fit.

For each model, the z that minimises ``g (z - b) + (z - b) H (z - b) / 2 + sum(penalty |z|)``, to rounding:
sweeps over single coordinates find which are 0, a linear system gives the others, and both take turns until
nothing changes. Neither step makes the value larger, as in feature-sign search (Lee and others, NIPS 2006).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from plait._jit import shared

__all__ = ["Quadratics", "StepScratch", "minimise"]

_MOST_ROUNDS = 200
#: A coordinate has settled when it moves by less than this, relative to 1 or to itself.
_SETTLED = 1e-12
#: A column of which less than this is left, given the others, is taken to depend on them.
_DEPENDENT = 1e-14


class Quadratics(NamedTuple):
    """One quadratic a model.

    Attributes
    ----------
    curvature
        H, symmetric; float64, shape (models, n, n).
    gradient, at
        g and b; float64, shape (models, n).
    penalties
        Not negative; a coordinate of infinite penalty is 0. float64, shape (models, n).
    """

    curvature: Any
    gradient: Any
    at: Any
    penalties: Any


class StepScratch(NamedTuple):
    """Memory for one model.

    Attributes
    ----------
    slopes, target
        float64, shape (n,).
    members
        int64, shape (n,).
    factor
        float64, shape (n, n).
    """

    slopes: Any
    target: Any
    members: Any
    factor: Any


@shared
def _sweep(h: Any, penalties: Any, z: Any, slopes: Any) -> float:
    """Minimise over one coordinate after the other; returns the largest move, see `_SETTLED`."""
    largest = 0.0
    for j in range(z.size):
        if h[j, j] <= 0.0 or penalties[j] == np.inf:
            continue
        best = h[j, j] * z[j] - slopes[j]
        if best > penalties[j]:
            best = np.divide(best - penalties[j], h[j, j])
        elif best < -penalties[j]:
            best = np.divide(best + penalties[j], h[j, j])
        else:
            best = 0.0
        move = best - z[j]
        if move != 0.0:
            z[j] = best
            for k in range(z.size):
                slopes[k] += move * h[j, k]
            largest = max(largest, np.divide(abs(move), 1.0 + abs(best)))
    return largest


@shared
def _factorise(h: Any, members: Any, size: int, factor: Any) -> None:
    """Cholesky factor of the members' part; the rows of those that depend on others become 0."""
    for i in range(size):
        own = h[members[i], members[i]]
        for j in range(i + 1):
            total = h[members[i], members[j]]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i > j:
                factor[i, j] = np.divide(total, factor[j, j]) if factor[j, j] > 0.0 else 0.0
            else:
                factor[i, i] = math.sqrt(total) if total > _DEPENDENT * own else 0.0


@shared
def _solve(factor: Any, size: int, right: Any) -> None:
    """Solve in place; what depends on others is 0."""
    for i in range(size):
        total = right[i]
        for k in range(i):
            total -= factor[i, k] * right[k]
        right[i] = np.divide(total, factor[i, i]) if factor[i, i] > 0.0 else 0.0
    for m in range(size):
        i = size - 1 - m
        total = right[i]
        for k in range(i + 1, size):
            total -= factor[k, i] * right[k]
        right[i] = np.divide(total, factor[i, i]) if factor[i, i] > 0.0 else 0.0


@shared
def _together(h: Any, penalties: Any, z: Any, scratch: Any) -> None:
    """Move all coordinates that are not 0 to the minimum of their signs, or until the first becomes 0."""
    size = 0
    for j in range(z.size):
        if h[j, j] > 0.0 and (z[j] != 0.0 or penalties[j] == 0.0):
            scratch.members[size] = j
            size += 1
    for m in range(size):
        j = scratch.members[m]
        sign = 1.0 if z[j] > 0.0 else -1.0
        scratch.target[m] = -(scratch.slopes[j] + sign * penalties[j])
    _factorise(h, scratch.members, size, scratch.factor)
    _solve(scratch.factor, size, scratch.target)
    share = 1.0
    first = -1
    for m in range(size):
        j = scratch.members[m]
        if penalties[j] > 0.0 and z[j] * (z[j] + scratch.target[m]) < 0.0:
            limit = np.divide(-z[j], scratch.target[m])
            if limit < share:
                share = limit
                first = j
    for m in range(size):
        j = scratch.members[m]
        move = share * scratch.target[m] if j != first else -z[j]
        z[j] = z[j] + move if j != first else 0.0
        for k in range(z.size):
            scratch.slopes[k] += move * h[j, k]


@shared
def _find_slopes(problems: Any, model: int, z: Any, slopes: Any) -> None:
    for j in range(z.size):
        total = problems.gradient[model, j]
        for k in range(z.size):
            total += problems.curvature[model, j, k] * (z[k] - problems.at[model, k])
        slopes[j] = total


@shared
def minimise(problems: Any, scratch: Any, out: Any) -> int:
    """Minimise all quadratics; returns how many did not settle.

    Parameters
    ----------
    problems
        `Quadratics`.
    scratch
        `StepScratch`.
    out
        The places of the minima; float64, shape (models, n).
    """
    failed = 0
    for model in range(out.shape[0]):
        h, b, penalties = problems.curvature[model], problems.at[model], problems.penalties[model]
        z = out[model]
        for j in range(z.size):
            z[j] = 0.0 if penalties[j] == np.inf else b[j]
        rounds = 0
        _find_slopes(problems, model, z, scratch.slopes)
        while rounds < _MOST_ROUNDS and _sweep(h, penalties, z, scratch.slopes) > _SETTLED:
            _together(h, penalties, z, scratch)
            _find_slopes(problems, model, z, scratch.slopes)
            rounds += 1
        failed += 1 if rounds == _MOST_ROUNDS else 0
    return failed
