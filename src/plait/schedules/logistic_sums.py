"""Logistic regression, one pass over rows: deviance, gradient and curvature of many models at a time.

A matrix holds one predictor a row, and one observation a place; its first row is 1, for the intercept. Both
sides are padded with zeros: to multiples of `plait.schedules.row_products.SIDE` rows and of ``PARTS`` places.
Padded places weigh nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import shared
from plait.lanes import load, store
from plait.schedules.row_products import PARTS, SIDE, add_products, combine_rows

__all__ = ["BLOCK", "ROOM", "TERMS", "Models", "Observations", "Scratch", "Sums", "add_logistic"]

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
    """Rows of the data.

    Attributes
    ----------
    x
        Predictors; float64, shape (predictors, places).
    y
        Outcomes, 0 or 1; float64, shape (places,).
    weights
        Weights of the observations, one kind a row; float64, shape (kinds, places).
    """

    x: Any
    y: Any
    weights: Any


class Models(NamedTuple):
    """Models to evaluate; their number is a multiple of ``SIDE``.

    Attributes
    ----------
    coefficients
        float64, shape (models, predictors).
    used
        For every four models, the predictors of which any coefficient is not 0, rising; int64, shape
        (models / 4, predictors).
    used_number
        Number of them; int64, shape (models / 4,).
    kinds
        Kind of weight with which a model is fitted, and with which it is judged; int64, shape (models, 2).
    """

    coefficients: Any
    used: Any
    used_number: Any
    kinds: Any


class Scratch(NamedTuple):
    """Memory of one thread.

    Attributes
    ----------
    terms
        float64, shape (`TERMS`, `ROOM`).
    bits
        The last four rows of `terms` as integers; int64, shape (4, `ROOM`).
    block, scaled
        A block of the predictors, and the same times their curvature; float64, shape (predictors, `ROOM`).
    """

    terms: Any
    bits: Any
    block: Any
    scaled: Any


class Sums(NamedTuple):
    """What grows; see `plait.schedules.row_products` on parts.

    Attributes
    ----------
    gradients
        Sums of ``weight * (probability - y) * x``; float64, shape (models * predictors, PARTS).
    losses
        Sums of the negative log-likelihood, where fitted and where judged; float64, shape
        (models * 2, PARTS).
    curvature
        Sums of ``weight * probability * (1 - probability) * x * x'`` of one model; float64, shape
        (predictors * predictors, PARTS). Above the diagonal and in squares of ``SIDE`` on it.
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
        q = 1.0 / 479001600.0
        q = q * r + 1.0 / 39916800.0
        q = q * r + 1.0 / 3628800.0
        q = q * r + 1.0 / 362880.0
        q = q * r + 1.0 / 40320.0
        q = q * r + 1.0 / 5040.0
        q = q * r + 1.0 / 720.0
        q = q * r + 1.0 / 120.0
        q = q * r + 1.0 / 24.0
        q = q * r + 1.0 / 6.0
        q = q * r + 0.5
        q = q * r + 1.0
        terms[_RESIDUAL + m, k] = q * r + 1.0
        terms[_POWER + m, k] = shifted


@shared
def _log_one_plus(e: Any) -> Any:
    """log(1 + e) for e from 0 to 1, within two ulps."""
    high = 1.0 + e > _ROOT_2
    top = e - 1.0 if high else e
    s = np.divide(top, 3.0 + e if high else 2.0 + e)
    t = s * s
    q = 1.0 / 21.0
    q = q * t + 1.0 / 19.0
    q = q * t + 1.0 / 17.0
    q = q * t + 1.0 / 15.0
    q = q * t + 1.0 / 13.0
    q = q * t + 1.0 / 11.0
    q = q * t + 1.0 / 9.0
    q = q * t + 1.0 / 7.0
    q = q * t + 1.0 / 5.0
    q = q * t + 1.0 / 3.0
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
    """Add gradients and losses of all models, and if asked for the curvature of the first one.

    Parameters
    ----------
    lanes
        Groups of ``PARTS`` lanes.
    data
        `Observations`.
    models
        `Models`.
    curved
        Whether the curvature is wanted.
    scratch
        `Scratch`.
    sums
        `Sums`.
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
