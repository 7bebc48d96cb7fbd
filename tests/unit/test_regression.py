"""Adaptive LASSO: the minimum of its objective, as others find it, for odd data too."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.examples import examples

from plait.errors import InvalidInput
from plait.run.executor import LocalExecutor
from plait.stats.adaptive_lasso import AdaptiveLassoFit, fit_adaptive_lasso
from plait.stats.design_file import DesignFile, DesignWriter
from plait.stats.path_fits import AdaptiveLassoSettings, FitProgress
from plait.stats.rows import RowDraws

QUICK: dict[str, Any] = {"lambdas": 12, "folds": 2, "halves": 0}


def fit(
    folder: Path, values: NDArray[Any], outcome: NDArray[np.bool_], threads: int = 1, **options: Any
) -> AdaptiveLassoFit:
    path = folder / "rows.design"
    with DesignWriter(path, [f"x{k}" for k in range(values.shape[1])]) as writer:
        writer.write(values, outcome)
    chosen = AdaptiveLassoSettings(**(QUICK | options))
    return fit_adaptive_lasso(DesignFile(path), chosen, executor=LocalExecutor(threads))


def made_up(n: int, p: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, p))
    values[:, 1:] += 0.6 * values[:, :-1]
    slopes = np.where(np.arange(p) % 3 == 0, 0.8, 0.0)
    return values, rng.random(n) < 1 / (1 + np.exp(0.7 - values @ slopes))


def standard(found: AdaptiveLassoFit, values: NDArray[np.float64]) -> NDArray[np.float64]:
    z = np.zeros_like(values)
    varies = found.sd > 0
    z[:, varies] = (values[:, varies] - found.mean[varies]) / found.sd[varies]
    return z


def objective(z: Any, y: Any, intercept: float, beta: Any, penalty: float, weights: Any) -> float:
    """The definition, for one model."""
    eta = intercept + z @ beta
    used = beta != 0
    return float(np.mean(np.logaddexp(0, eta) - y * eta) + penalty * np.abs(beta[used]) @ weights[used])


def violation(found: AdaptiveLassoFit, values: NDArray[np.float64], y: NDArray[np.bool_], at: int) -> float:
    """How far a model of the path is from the Karush-Kuhn-Tucker conditions."""
    z, beta = standard(found, values), found.coefficients[at]
    p = 1 / (1 + np.exp(-(found.intercepts[at] + z @ beta)))
    gradient = (p - y) @ z / len(y)
    kept = np.isfinite(found.weights)
    share = found.lambdas[at] * found.weights[kept]
    own = np.where(
        beta[kept] != 0,
        np.abs(gradient[kept] + share * np.sign(beta[kept])),
        np.maximum(np.abs(gradient[kept]) - share, 0),
    )
    return float(max(own.max(initial=0), abs((p - y).mean())))


def plain_fit(z: Any, y: Any, penalties: Any) -> NDArray[np.float64]:
    """Intercept and coefficients by coordinate descent on Newton's quadratics, written plainly."""
    x = np.column_stack([np.ones(len(y)), z])
    beta, share = np.zeros(x.shape[1]), np.concatenate([[0], penalties])
    for _ in range(60):
        p = 1 / (1 + np.exp(-x @ beta))
        h = (x * (p * (1 - p))[:, None]).T @ x / len(y)
        start, slope = beta.copy(), x.T @ (p - y) / len(y)
        for _ in range(3000):
            before = beta.copy()
            for j in range(beta.size):
                u = h[j, j] * beta[j] - slope[j] - h[j] @ (beta - start)
                beta[j] = np.sign(u) * max(abs(u) - share[j], 0) / h[j, j]
            if np.abs(beta - before).max() < 1e-14:
                break
        if np.abs(beta - start).max() < 1e-11:
            break
    return beta


def test_the_path_is_that_of_scikit_learn(tmp_path: Path) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    values, y = made_up(200, 4)
    values = values * 10.0 ** np.arange(-2, 2) + 5
    found = fit(tmp_path, values, y, lambda_ratio=0.01)
    z = standard(found, values)
    with warnings.catch_warnings():
        # It may say that it could have converged further.
        warnings.simplefilter("ignore")
        plain = linear_model.LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12).fit(z, y)
        assert np.abs(plain.coef_[0] - found.mle).max() < 1e-6
        assert np.abs(1 / np.abs(plain.coef_[0]) / found.weights - 1).max() < 1e-4
        for at in range(1, found.lambdas.size, 3):
            model = linear_model.LogisticRegression(
                l1_ratio=1.0, C=1 / (len(y) * found.lambdas[at]), solver="saga", tol=1e-9, max_iter=100_000
            ).fit(z / found.weights, y)
            assert np.abs(model.coef_[0] / found.weights - found.coefficients[at]).max() < 1e-6
            assert abs(model.intercept_[0] - found.intercepts[at]) < 1e-6


def test_folds_and_halves_are_fits_of_their_rows(tmp_path: Path) -> None:
    values, y = made_up(240, 3)
    found = fit(tmp_path, values, y, lambdas=4, folds=3, halves=4, lambda_ratio=0.02, seed=7)
    z, numbers, draws = standard(found, values), np.arange(240, dtype=np.uint64), RowDraws(7, 3, 4)
    fold, none = draws.fold_of(numbers), np.zeros(3)
    deviance = np.zeros(4)
    for k in range(3):
        own = fold != k
        weights = 1 / np.abs(plain_fit(z[own], y[own], none)[1:])
        for at, penalty in enumerate(found.lambdas):
            beta = plain_fit(z[own], y[own], penalty * weights)
            deviance[at] += 2 * (~own).sum() * objective(z[~own], y[~own], beta[0], beta[1:], 0, none)
    assert found.cv_deviance == pytest.approx(deviance / 240, abs=1e-7)
    halves = draws.weights(numbers, np.array([draws.half(k) for k in range(4)]))
    assert (halves[0] ^ halves[1]).all() and (halves[2] ^ halves[3]).all()
    penalty = found.lambdas[found.chosen["cv_1se"]]
    chosen = np.zeros(3)
    for own in halves:
        weights = 1 / np.abs(plain_fit(z[own], y[own], none)[1:])
        chosen += plain_fit(z[own], y[own], penalty * weights)[1:] != 0
    assert found.stability.tolist() == (chosen / 4).tolist()


@examples(15)
@given(
    n=st.integers(30, 150),
    p=st.integers(1, 6),
    seed=st.integers(0, 1000),
    gamma=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    scale=st.sampled_from([1e-12, 1.0, 1e9]),
)
def test_every_model_meets_the_conditions_of_a_minimum(
    tmp_path_factory: pytest.TempPathFactory, n: int, p: int, seed: int, gamma: float, scale: float
) -> None:
    values, y = made_up(n, p, seed)
    values[:, 0] *= scale
    y[:2] = [False, True]
    found = fit(tmp_path_factory.mktemp("fit"), values, y, gamma=gamma, lambda_ratio=1e-3)
    assert not [text for text in found.warnings if "settle" in text]
    assert max(violation(found, values, y, at) for at in range(found.lambdas.size)) < 1e-6
    assert found.nonzero[0] == 0
    assert (found.nonzero == (found.coefficients != 0).sum(axis=1)).all()


def test_no_neighbour_is_better(tmp_path: Path) -> None:
    values, y = made_up(300, 4)
    found = fit(tmp_path, values, y)
    z, rng = standard(found, values), np.random.default_rng(1)
    for at in (3, 7, 11):
        own = (found.intercepts[at], found.coefficients[at])
        rest = (found.lambdas[at], found.weights)
        best = objective(z, y, *own, *rest)
        for _ in range(50):
            step = rng.normal(size=5) * 10.0 ** rng.uniform(-5, 0)
            assert objective(z, y, own[0] + step[0], own[1] + step[1:], *rest) > best - 1e-13


def test_figures_of_the_path_are_what_they_are_called(tmp_path: Path) -> None:
    values, y = made_up(500, 5)
    found = fit(tmp_path, values, y, folds=3)
    z, none = standard(found, values), np.zeros(5)
    null = objective(z, y, np.log(y.mean() / (1 - y.mean())), none, 0, none)
    for at in range(found.lambdas.size):
        loss = objective(z, y, found.intercepts[at], found.coefficients[at], 0, none)
        assert found.deviance_explained[at] == pytest.approx(1 - loss / null, abs=1e-12)
        expected = 2 * 500 * loss + (found.nonzero[at] + 1) * np.log(500)
        assert found.bic[at] == pytest.approx(expected, rel=1e-12)
    assert found.chosen["bic"] == np.argmin(found.bic)
    assert found.chosen["cv_min"] == np.argmin(found.cv_deviance)
    least = found.cv_deviance.min() + found.cv_se[found.chosen["cv_min"]]
    assert found.chosen["cv_1se"] == np.flatnonzero(found.cv_deviance <= least)[0]
    assert found.lambdas[-1] / found.lambdas[0] == pytest.approx(1e-4)
    assert (found.rows, found.events) == (500, y.sum())


def test_intervals_of_the_unpenalised_fit(tmp_path: Path) -> None:
    values, y = made_up(300, 3)
    found = fit(tmp_path, values, y, confidence=0.9)
    z = np.column_stack([np.ones(300), standard(found, values)])
    # Newton's method, by its definition.
    beta = np.zeros(4)
    for _ in range(30):
        p = 1 / (1 + np.exp(-z @ beta))
        information = (z * (p * (1 - p))[:, None]).T @ z
        beta += np.linalg.solve(information, z.T @ (y - p))
    half = 1.6448536269514722 * np.sqrt(np.diag(np.linalg.inv(information)))
    assert np.abs(found.mle - beta[1:]).max() < 1e-7
    assert np.abs(found.mle_high - found.mle - half[1:]).max() < 1e-7
    assert np.abs(found.mle - found.mle_low - half[1:]).max() < 1e-7


def test_collinearity_is_told(tmp_path: Path) -> None:
    values, y = made_up(400, 4)
    copy = np.column_stack([values, values[:, 1], np.full(400, 3.0), values[:, 0] - 2 * values[:, 2]])
    copy = np.column_stack([copy, values[:, 3] + 0.01 * np.random.default_rng(0).normal(size=400)])
    found = fit(tmp_path, copy, y)
    assert found.notes == {
        "x4": "dropped: a linear combination of x1",
        "x5": "dropped: the same value in all rows",
        "x6": "dropped: a linear combination of x2, x0",
    }
    kept = [0, 1, 2, 3, 7]
    correlation = np.corrcoef(copy[:, kept].T)
    assert found.vif[kept] == pytest.approx(np.diag(np.linalg.inv(correlation)), rel=1e-6)
    eigenvalues = np.linalg.eigvalsh(correlation)
    assert found.condition_number == pytest.approx(np.sqrt(eigenvalues[-1] / eigenvalues[0]), rel=1e-6)
    assert np.isnan(found.vif[[4, 5, 6]]).all() and (found.coefficients[:, [4, 5, 6]] == 0).all()
    assert any("variance inflation factors above 10" in text and "x3 (" in text for text in found.warnings)
    assert any("condition number" in text for text in found.warnings)
    # Which of two equal predictors is kept changes nothing for the others.
    alone = fit(tmp_path, copy[:, kept], y)
    assert np.abs(alone.coefficients - found.coefficients[:, kept]).max() < 1e-6


@pytest.mark.parametrize("all_rows", [True, False], ids=["perfect", "in some rows"])
def test_separation_is_told_and_does_not_diverge(tmp_path: Path, all_rows: bool) -> None:
    values, y = made_up(300, 3)
    if all_rows:
        y = values[:, 1] > 0.3
    else:
        values[:, 1] = (np.arange(300) < 20) & y
    found = fit(tmp_path, values, y)
    told = [text for text in found.warnings if "no finite maximum likelihood estimate was found" in text]
    assert len(told) == 1 and "run away: x1" in told[0]
    assert np.isnan(found.mle).all() and np.isnan(found.mle_low).all()
    assert np.isfinite(found.coefficients).all()
    assert max(violation(found, values, y, at) for at in range(found.lambdas.size)) < 1e-6


def test_fewer_rows_than_predictors(tmp_path: Path) -> None:
    values, y = made_up(15, 30)
    y[:2] = [False, True]
    found = fit(tmp_path, values, y, lambda_ratio=0.01)
    assert len(found.notes) >= 15
    assert any("events in 15 rows" in text for text in found.warnings)
    assert max(violation(found, values, y, at) for at in range(found.lambdas.size)) < 1e-6


def test_two_rows(tmp_path: Path) -> None:
    found = fit(tmp_path, np.array([[0.0], [1.0]]), np.array([False, True]), folds=5, halves=4)
    assert np.isfinite(found.coefficients).all()
    assert found.tables()["coefficients"].num_rows == 1


@pytest.mark.parametrize("y", [[True], [True, True, True], [False, False], []], ids=str)
def test_one_outcome_cannot_be_fitted(tmp_path: Path, y: list[bool]) -> None:
    with pytest.raises(InvalidInput, match="at least one row with the event and one without"):
        fit(tmp_path, np.arange(len(y), dtype=float)[:, None], np.array(y, bool))


def test_nothing_varies(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="none that has more than one value"):
        fit(tmp_path, np.ones((4, 2)), np.array([True, False, True, False]))


def test_values_that_cannot_be_summed_up(tmp_path: Path) -> None:
    for first in (1.7e308, 1e-200):
        values = np.array([[1.0, first], [2.0, 0.0], [3.0, -first], [4.0, first]])
        with pytest.raises(InvalidInput, match="predictor 'x1': found values from -1"):
            fit(tmp_path, values, np.array([True, False, True, False]))


@pytest.mark.parametrize(
    "wrong",
    [{"lambdas": 0}, {"folds": 1}, {"halves": -1}, {"gamma": -1.0}, {"stability_at": "best"}, {"seed": 1.5}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        AdaptiveLassoSettings(**wrong)


def test_halves_and_tables(tmp_path: Path) -> None:
    values, y = made_up(600, 4)
    told: list[FitProgress] = []
    with DesignWriter(tmp_path / "a.design", ["a", "b", "c", "d"]) as writer:
        writer.write(values, y)
    found = fit_adaptive_lasso(
        DesignFile(tmp_path / "a.design"),
        AdaptiveLassoSettings(lambdas=20, folds=3, halves=6),
        threads=1,
        progress=told.append,
    )
    assert found.stability[0] > 0.5
    tables = found.tables()
    assert tables["predictors"].column_names == ["predictor", "mean", "sd", "vif", "note"]
    assert tables["lambda_path"].column_names[-5:] == ["chosen", "a", "b", "c", "d"]
    chosen = ",".join(tables["lambda_path"]["chosen"].to_pylist())
    assert sorted(chosen.replace(",", " ").split()) == ["bic", "cv_1se", "cv_min"]
    assert (
        tables["coefficients"]["odds_ratio_per_sd"].to_pylist()
        == np.exp(found.coefficients[found.chosen["cv_min"]]).tolist()
    )
    assert sum(tables["calibration"]["n"].to_pylist()) == 600
    assert 0.5 < found.auc_low < found.auc < found.auc_high < 1
    assert set(found.summary()["chosen"]) == {"cv_min", "cv_1se", "bic"}
    assert told[0].stage == "means and correlations" and told[-1].done == told[-1].total == 600
