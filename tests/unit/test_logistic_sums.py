"""Schedules of the regression, compiled and interpreted, against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from plait.stats.logistic import (
    BLOCK,
    PARTS,
    ROOM,
    TERMS,
    Models,
    Observations,
    Scratch,
    Sums,
    logistic_kernel,
    products_kernel,
)
from plait.stats.path_fits import curvature_of, next_coefficients
from plait.stats.regression_data import find_collinearity
from plait.stats.rows import LANES, folded, symmetric

pytestmark = pytest.mark.interpreted


def observations(places: int, width: int, seed: int = 0) -> Observations:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(width, places))
    x[0] = 1.0
    weights = rng.random((3, places))
    weights[2] = 0.0
    return Observations(x, (rng.random(places) < 0.4).astype(np.float64), weights)


def evaluate(data: Observations, beta: NDArray[np.float64], kinds: NDArray[np.int64]) -> Sums:
    models, width = beta.shape
    used = np.tile(np.arange(width), (models // 4, 1))
    terms = np.zeros((TERMS, ROOM))
    block = np.zeros((2, width, ROOM))
    sums = Sums(
        np.zeros((models * width, PARTS)), np.zeros((models * 2, PARTS)), np.zeros((width * width, PARTS))
    )
    described = Models(beta, used, np.full(models // 4, width), kinds)
    scratch = Scratch(terms, terms[-4:].view(np.int64), block[0], block[1])
    logistic_kernel(LANES, data, described, False, scratch, sums)
    return sums


def expected(data: Observations, beta: Any, kinds: Any) -> tuple[Any, Any]:
    eta = beta @ data.x
    p = np.exp(-np.logaddexp(0, -eta))
    loss = np.logaddexp(0, eta) - data.y * eta
    gradient = (data.weights[kinds[:, 0]] * (p - data.y)) @ data.x.T
    return gradient, (data.weights[kinds] * loss[:, None]).sum(axis=2)


@pytest.mark.parametrize("places", [16, BLOCK + 32])
def test_gradients_and_losses(places: int) -> None:
    data = observations(places, 4)
    beta = np.random.default_rng(1).normal(size=(8, 4)) * 3
    kinds = np.array([[0, 1], [1, 2], [2, 0], [0, 0]] * 2)
    sums = evaluate(data, beta, kinds)
    gradient, losses = expected(data, beta, kinds)
    assert np.abs(folded(sums.gradients).reshape(8, 4) - gradient).max() < 1e-12 * places
    assert np.abs(folded(sums.losses).reshape(8, 2) - losses).max() < 1e-12 * places
    assert not sums.curvature.any()


@pytest.mark.parametrize(
    "eta", [0.0, -0.0, 1e-300, 1e-9, 0.3465, 0.3466, 0.88, 36.7, -36.7, 699.0, -705.0, 1e4, -1e4, 1e300]
)
def test_every_size_of_the_linear_predictor(eta: float) -> None:
    data = Observations(np.zeros((4, 16)), np.array([0.0, 1.0] * 8), np.ones((1, 16)))
    data.x[0] = 1.0
    beta = np.zeros((4, 4))
    beta[:, 0] = eta
    sums = evaluate(data, beta, np.zeros((4, 2), np.int64))
    # exp is held at exp(-700), beyond which nothing is left of it beside 1.
    p = 1 / (1 + np.exp(-min(max(eta, -700), 700)))
    assert folded(sums.gradients)[0] == pytest.approx(8 * p + 8 * (p - 1), rel=1e-15, abs=1e-15)
    loss = 8 * np.logaddexp(0, eta) + 8 * np.logaddexp(0, -eta)
    assert folded(sums.losses)[0] == pytest.approx(loss, rel=1e-15)


def test_curvature() -> None:
    data = observations(BLOCK + 16, 8)
    beta = np.random.default_rng(2).normal(size=8)
    gradient, losses, curvature = curvature_of(data, beta, np.array([0, 1]))
    wanted, loss = expected(data, beta[None], np.array([[0, 1]]))
    p = 1 / (1 + np.exp(-beta @ data.x))
    assert np.abs(gradient - wanted[0]).max() < 1e-10
    assert np.abs(losses - loss[0]).max() < 1e-10
    assert np.abs(curvature - (data.x * (data.weights[0] * p * (1 - p))) @ data.x.T).max() < 1e-10


def test_products_of_all_pairs() -> None:
    x = np.random.default_rng(3).normal(size=(8, 48))
    sums = np.zeros((64, PARTS))
    products_kernel(LANES, x, sums)
    assert np.abs(symmetric(folded(sums).reshape(8, 8)) - x @ x.T).max() < 1e-12


@pytest.mark.parametrize("size", [1, 4, 9])
def test_minima_of_quadratics_meet_their_conditions(size: int) -> None:
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(6, 40, size))
    rows[:, :, -1] += 3 * rows[:, :, 0]
    curvature = np.einsum("mki,mkj->mij", rows, rows) / 40
    gradient, at = rng.normal(size=(6, size)), rng.normal(size=(6, size))
    penalties = rng.choice([0.0, 0.3, 1.5, np.inf], (6, size))
    found = next_coefficients(curvature, gradient, at, penalties)
    slope = gradient + np.einsum("mij,mj->mi", curvature, found - at)
    excluded = np.isinf(penalties)
    assert (found[excluded] == 0).all()
    share = np.where(excluded, 0, penalties)
    wrong = np.where(found != 0, np.abs(slope + share * np.sign(found)), np.maximum(np.abs(slope) - share, 0))
    assert np.where(excluded, 0, wrong).max() < 1e-9


def test_a_quadratic_without_a_single_minimum_is_held() -> None:
    row = np.array([[1.0, 1.0, 2.0]])
    found = next_coefficients((row.T @ row)[None], -row, np.zeros((1, 3)), np.full((1, 3), 0.01))
    assert np.isfinite(found).all()
    slope = (row.T @ row) @ found[0] - row[0]
    assert (np.abs(slope) <= 0.01 + 1e-9).all()


def test_predictors_that_say_the_same() -> None:
    correlation = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 0, 1, 0], [0, 0, 0, 1]])
    found = find_collinearity(correlation, ["a", "b", "c", "d"])
    assert found.kept.tolist() == [0, 3]
    assert found.notes == {
        "b": "dropped: the same value in all rows",
        "c": "dropped: a linear combination of a",
    }
    assert found.condition_number == pytest.approx(1.0)
    assert found.warnings == ("2 of 4 predictors were dropped: b, c",)
