"""Kernels of logistic regression: sums over rows of the data for many models at a time, and steps of a LASSO.

A matrix holds one predictor a row, and one observation a place; its first row is 1, for the intercept. Both
sides are padded with zeros, to multiples of `SIDE` rows and of `PARTS` places; padded places weigh nothing.
Every sum is kept as `PARTS` partial sums: part k takes the places k, k + 8, k + 16, ... in rising order. So
results are equal bit for bit on every processor, whatever its vector width; nothing is fused or reordered.
The caller cuts what is summed into spans, and adds the parts at the end.

A step minimises ``g (z - b) + (z - b) H (z - b) / 2 + sum(penalty |z|)`` over z, to rounding: coordinate
sweeps find which z are 0, a linear system gives the others, in turns until nothing changes. Neither makes the
value larger, as in feature-sign search (Lee and others, NIPS 2006).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from plait.lang.compile import kernel, shared
from plait.lang.lanes import load, splat, store

#: Partial sums of each sum; rows are padded to a multiple of it.
PARTS = 8
#: Rows that are worked on together; matrices are padded to a multiple of it.
SIDE = 4


@shared
def combine_rows(lanes: Any, x: Any, places: int, factors: Any, row: int, used: Any, out: Any) -> None:
    """Four weighted sums of rows of a matrix, place by place.

    ``out[m, i] = sum(factors[row + m, j] * x[j, i])`` over the rows j that are used, in their order, for m
    below 4. `places` is a multiple of `PARTS`, or is worked on as if it were.
    """
    zero = splat(lanes, 0.0)
    for i in range(0, places, PARTS):
        a, b, c, d = zero, zero, zero, zero
        for k in range(used.size):
            j = used[k]
            one = load(lanes, x, j, i)
            a, b = a + splat(lanes, factors[row, j]) * one, b + splat(lanes, factors[row + 1, j]) * one
            c, d = c + splat(lanes, factors[row + 2, j]) * one, d + splat(lanes, factors[row + 3, j]) * one
        store(lanes, out, 0, i, a)
        store(lanes, out, 1, i, b)
        store(lanes, out, 2, i, c)
        store(lanes, out, 3, i, d)


@shared
def _add_column(lanes: Any, a: Any, i: int, b: Any, j: int, places: int, sums: Any, place: int) -> None:
    """Sums of four rows of `a` with one row of `b`."""
    step = b.shape[0]
    p, q = load(lanes, sums, place, 0), load(lanes, sums, place + step, 0)
    r, s = load(lanes, sums, place + 2 * step, 0), load(lanes, sums, place + 3 * step, 0)
    for k in range(0, places, PARTS):
        value = load(lanes, b, j, k)
        p = p + load(lanes, a, i, k) * value
        q = q + load(lanes, a, i + 1, k) * value
        r = r + load(lanes, a, i + 2, k) * value
        s = s + load(lanes, a, i + 3, k) * value
    store(lanes, sums, place, 0, p)
    store(lanes, sums, place + step, 0, q)
    store(lanes, sums, place + 2 * step, 0, r)
    store(lanes, sums, place + 3 * step, 0, s)


@shared
def add_products(lanes: Any, a: Any, i: int, b: Any, j: int, places: int, sums: Any, row: int) -> None:
    """Add products of four rows of `a` with the rows from `j` on of `b`.

    ``sums[(row + m) * len(b) + n]`` grows by the sum of ``a[i + m, k] * b[n, k]`` over the places k, for m
    below 4 and n from `j` on. `places` is a multiple of ``PARTS``.
    """
    for n in range(j, b.shape[0]):
        _add_column(lanes, a, i, b, n, places, sums, row * b.shape[0] + n)


#: Places worked on at a time, so that they stay in the cache of the processor.
BLOCK = 256
#: Length of rows that hold a block. Rows a power of two apart would share a few sets of the cache.
ROOM = BLOCK + 8
#: Rows of `Scratch.terms`: five for each model of four.
TERMS = 5 * SIDE

_LOG2_E = 1.4426950408889634
#: ln 2 in two parts; the first has few bits, so that its small multiples are exact.
_LN_2_HIGH = 0.693147180369123816490
_LN_2_LOW = 1.90821492927058770002e-10
#: Added to a number below 2^51 it leaves the nearest whole number, plus 1023, in the low bits.
_TO_EXPONENT = 6755399441055744.0 + 1023.0
_EXPONENT_SHIFT = 52
#: exp is as good as 0 beyond, and still a normal number.
_SMALLEST = -700.0
_ROOT_2 = 1.4142135623730951


class Observations(NamedTuple):
    """Rows of the data: predictors (predictors, places), outcomes 0 or 1 (places,), weights (kinds, places).

    All are float64; each row of `weights` is one kind of weight.
    """

    x: Any
    y: Any
    weights: Any


class Models(NamedTuple):
    """Models to evaluate; their number is a multiple of ``SIDE``.

    `coefficients` are float64 (models, predictors). For every four models, `used` lists the predictors with
    any coefficient other than 0, rising, int64 (models / 4, predictors), and `used_number` counts them.
    `kinds`, int64 (models, 2): kind of weight with which a model is fitted, and with which it is judged.
    """

    coefficients: Any
    used: Any
    used_number: Any
    kinds: Any


class Scratch(NamedTuple):
    """Memory of one thread, from the caller.

    `terms` is float64 (`TERMS`, `ROOM`), `bits` its last four rows as int64; `block` is a block of the
    predictors and `scaled` the same times the curvature, float64 (predictors, `ROOM`).
    """

    terms: Any
    bits: Any
    block: Any
    scaled: Any


class Sums(NamedTuple):
    """What grows, in `PARTS` partial sums each; all float64.

    `gradients` (models * predictors, PARTS): ``weight * (probability - y) * x``. `losses` (models * 2,
    PARTS): negative log-likelihood, fitted and judged. `curvature` (predictors * predictors, PARTS), of one
    model: ``weight * probability * (1 - probability) * x * x'``, above the diagonal and in squares of
    ``SIDE`` on it.
    """

    gradients: Any
    losses: Any
    curvature: Any


# Rows of `Scratch.terms`, each four of them: one a model.
_ETA = 0
_RESIDUAL = 4
_LOSS = 8
_CURVATURE = 12
_POWER = 16


# Even and odd terms of the series are added up apart: two short chains of operations wait less than one.
_EVEN_OF_EXP = (1 / 479001600, 1 / 3628800, 1 / 40320, 1 / 720, 1 / 24, 0.5, 1.0)
_ODD_OF_EXP = (1 / 39916800, 1 / 362880, 1 / 5040, 1 / 120, 1 / 6, 1.0)
_EVEN_OF_LOG = (1 / 19, 1 / 15, 1 / 11, 1 / 7, 1 / 3)
_ODD_OF_LOG = (1 / 21, 1 / 17, 1 / 13, 1 / 9, 1 / 5)


@shared
def _polynomial(x: Any, factors: Any) -> Any:
    """Value at x, the factor of its highest power first."""
    value = factors[0]
    for k in range(1, len(factors)):
        value = value * x + factors[k]
    return value


@shared
def _powers(terms: Any, m: int, size: int) -> None:
    """exp(-|eta|) in two factors, of which the second is yet to be made a power of two."""
    for k in range(size):
        eta = terms[_ETA + m, k]
        z = -eta if eta > 0.0 else eta
        z = _SMALLEST if z < _SMALLEST else z
        shifted = z * _LOG2_E + _TO_EXPONENT
        n = shifted - _TO_EXPONENT
        r = (z - n * _LN_2_HIGH) - n * _LN_2_LOW
        t = r * r
        terms[_RESIDUAL + m, k] = _polynomial(t, _ODD_OF_EXP) * r + _polynomial(t, _EVEN_OF_EXP)
        terms[_POWER + m, k] = shifted


@shared
def _log_one_plus(e: Any) -> Any:
    """log(1 + e) for e from 0 to 1, within two ulps."""
    high = 1.0 + e > _ROOT_2
    top = e - 1.0 if high else e
    s = np.divide(top, 3.0 + e if high else 2.0 + e)
    t = s * s
    u = t * t
    q = _polynomial(u, _ODD_OF_LOG) * t + _polynomial(u, _EVEN_OF_LOG)
    small = 2.0 * s + 2.0 * s * t * q
    return small + 0.6931471805599453 if high else small


@shared
def _terms(terms: Any, bits: Any, y: Any, weights: Any, m: int) -> None:
    """Residual, loss and curvature of each place, from eta; the first and the last one times the weight."""
    size = y.size
    _powers(terms, m, size)
    for k in range(size):
        bits[m, k] = bits[m, k] << _EXPONENT_SHIFT
    for k in range(size):
        eta = terms[_ETA + m, k]
        e = terms[_RESIDUAL + m, k] * terms[_POWER + m, k]
        upper = np.divide(1.0, 1.0 + e)
        lower = e * upper
        p = upper if eta > 0.0 else lower
        terms[_RESIDUAL + m, k] = weights[k] * (p - y[k])
        terms[_CURVATURE + m, k] = weights[k] * (upper * lower)
        terms[_LOSS + m, k] = (eta if eta > 0.0 else 0.0) - y[k] * eta + _log_one_plus(e)


@shared
def _add_losses(
    lanes: Any, data: Any, models: Any, model: int, terms: Any, m: int, first: int, size: int, losses: Any
) -> None:
    """Losses of two models, each weighted in two ways."""
    row = 2 * model
    a, b = load(lanes, losses, row, 0), load(lanes, losses, row + 1, 0)
    c, d = load(lanes, losses, row + 2, 0), load(lanes, losses, row + 3, 0)
    fitted, judged = models.kinds[model, 0], models.kinds[model, 1]
    other_fitted, other_judged = models.kinds[model + 1, 0], models.kinds[model + 1, 1]
    for k in range(0, size, PARTS):
        one, two = load(lanes, terms, _LOSS + m, k), load(lanes, terms, _LOSS + m + 1, k)
        a = a + load(lanes, data.weights, fitted, first + k) * one
        b = b + load(lanes, data.weights, judged, first + k) * one
        c = c + load(lanes, data.weights, other_fitted, first + k) * two
        d = d + load(lanes, data.weights, other_judged, first + k) * two
    store(lanes, losses, row, 0, a)
    store(lanes, losses, row + 1, 0, b)
    store(lanes, losses, row + 2, 0, c)
    store(lanes, losses, row + 3, 0, d)


@shared
def _take_block(lanes: Any, x: Any, first: int, last: int, block: Any) -> None:
    for j in range(x.shape[0]):
        for k in range(0, last - first, PARTS):
            store(lanes, block, j, k, load(lanes, x, j, first + k))


@shared
def _evaluate(lanes: Any, data: Any, models: Any, quad: int, first: int, last: int, scratch: Any) -> None:
    """Terms of four models for the places of a block."""
    combine_rows(
        lanes,
        scratch.block,
        last - first,
        models.coefficients,
        SIDE * quad,
        models.used[quad, : models.used_number[quad]],
        scratch.terms,
    )
    for m in range(SIDE):
        kind = models.kinds[SIDE * quad + m, 0]
        _terms(scratch.terms, scratch.bits, data.y[first:last], data.weights[kind, first:last], m)


@shared
def _add_curvature(lanes: Any, scratch: Any, size: int, curvature: Any) -> None:
    """Products of all pairs of predictors, times the curvature of the first of four models."""
    predictors = scratch.block.shape[0]
    for k in range(0, size, PARTS):
        factor = load(lanes, scratch.terms, _CURVATURE, k)
        for j in range(predictors):
            store(lanes, scratch.scaled, j, k, factor * load(lanes, scratch.block, j, k))
    for i in range(0, predictors, SIDE):
        add_products(lanes, scratch.scaled, i, scratch.block, i, size, curvature, i)


@shared
def add_logistic(lanes: Any, data: Any, models: Any, curved: bool, scratch: Any, sums: Any) -> None:
    """Add gradients and losses of all models and, where `curved`, the curvature of the first one.

    `lanes` are groups of `PARTS` lanes; the others are `Observations`, `Models`, `Scratch` and `Sums`.
    """
    places = data.x.shape[1]
    for first in range(0, places, BLOCK):
        last = min(first + BLOCK, places)
        size = last - first
        _take_block(lanes, data.x, first, last, scratch.block)
        for quad in range(models.coefficients.shape[0] // SIDE):
            _evaluate(lanes, data, models, quad, first, last, scratch)
            add_products(lanes, scratch.terms, _RESIDUAL, scratch.block, 0, size, sums.gradients, SIDE * quad)
            for m in range(0, SIDE, 2):
                _add_losses(lanes, data, models, SIDE * quad + m, scratch.terms, m, first, size, sums.losses)
            if curved and quad == 0:
                _add_curvature(lanes, scratch, size, sums.curvature)


_MOST_ROUNDS = 200
#: A coordinate has settled when it moves by less than this, relative to 1 or to itself.
_SETTLED = 1e-12
#: A column of which less than this is left, given the others, is taken to depend on them.
_DEPENDENT = 1e-14


class Quadratics(NamedTuple):
    """One quadratic a model: H (models, n, n), symmetric; g, b and penalties (models, n); all float64.

    Penalties are not negative; a coordinate of infinite penalty is 0.
    """

    curvature: Any
    gradient: Any
    at: Any
    penalties: Any


class StepScratch(NamedTuple):
    """Memory for one model, from the caller: float64 (n,) and (n, n), `members` int64 (n,)."""

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
    """Minimise all `Quadratics`; the minima go to `out` (models, n). Returns how many did not settle."""
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


@kernel
def logistic_kernel(lanes: Any, data: Any, models: Any, curved: bool, scratch: Any, sums: Any) -> None:
    """Compiled `add_logistic`."""
    add_logistic(lanes, data, models, curved, scratch, sums)


@kernel
def products_kernel(lanes: Any, x: Any, sums: Any) -> None:
    """Products of all pairs of rows, on and above the diagonal, see `add_products`."""
    for i in range(0, x.shape[0], SIDE):
        add_products(lanes, x, i, x, i, x.shape[1], sums, i)


@kernel
def minimise_kernel(problems: Any, scratch: Any, out: Any) -> int:
    """Compiled `minimise`."""
    return minimise(problems, scratch, out)
