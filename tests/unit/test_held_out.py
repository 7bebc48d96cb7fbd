"""Held-out predictions: ROC curves, areas, calibration, and the comparison of groups of predictors."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.stats.adaptive_lasso import calibration_table, compare_groups, roc_area, roc_points
from plait.stats.contingency import wilson_interval
from plait.stats.design_file import DesignFile, DesignWriter
from plait.stats.path_fits import AdaptiveLassoSettings
from plait.stats.rows import RowDraws, random_words

GOLDEN = 0x9E3779B97F4A7C15
NAMES = ["count", "n2", "n2_at", "other"]


def counted(scores: NDArray[np.int64], events: NDArray[np.bool_], bins: int = 64) -> NDArray[np.int64]:
    return np.stack([np.bincount(scores[events == kind], minlength=bins) for kind in (False, True)])


@given(seed=st.integers(0, 1000), n=st.integers(4, 60), levels=st.integers(1, 40))
def test_area_by_its_definition(seed: int, n: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    scores, events = rng.integers(0, levels, n), rng.random(n) < 0.5
    events[:4] = [True, True, False, False]
    ours = roc_area(counted(scores, events), 0.95)
    higher = scores[events][:, None] - scores[~events][None, :]
    placed = (higher > 0) + 0.5 * (higher == 0)
    assert ours.area == pytest.approx(placed.mean(), abs=1e-12)
    if 0 < ours.area < 1:
        # The variance of DeLong and others, by its definition.
        spread = (
            placed.mean(axis=1).var(ddof=1) / len(placed) + placed.mean(axis=0).var(ddof=1) / placed.shape[1]
        )
        middle = math.log(ours.area / (1 - ours.area))
        half = 1.959963984540054 * math.sqrt(spread) / (ours.area * (1 - ours.area))
        assert math.log(ours.high / (1 - ours.high)) == pytest.approx(min(middle + half, 700), abs=1e-6)
        assert ours.low == pytest.approx(1 / (1 + math.exp(min(half - middle, 700))), abs=1e-9)


def test_areas_that_cannot_be_known() -> None:
    assert all(map(math.isnan, roc_area(np.array([[0, 0], [3, 4]]), 0.95)))
    area, low, _ = roc_area(np.array([[5, 0], [0, 1]]), 0.95)
    assert area == 1 and math.isnan(low)
    for counts, expected in (([[5, 0], [0, 5]], 1), ([[0, 5], [5, 0]], 0)):
        area, low, high = roc_area(np.array(counts), 0.95)
        assert area == expected and math.isnan(low) and math.isnan(high)


def test_points_of_the_curve() -> None:
    rng = np.random.default_rng(0)
    counts = np.stack([rng.integers(0, 9, 2000), rng.integers(0, 3, 2000) * (np.arange(2000) > 700)])
    false_positive, true_positive = roc_points(counts)
    assert false_positive.size <= 200
    assert (false_positive[0], true_positive[0], false_positive[-1], true_positive[-1]) == (0, 0, 1, 1)
    assert (np.diff(false_positive) >= 0).all() and (np.diff(true_positive) >= 0).all()
    cut = 1300
    rates = counts[:, cut:].sum(axis=1) / counts.sum(axis=1)
    assert np.interp(rates[0], false_positive, true_positive) == pytest.approx(rates[1], abs=0.01)


def test_calibration_adds_up() -> None:
    rng = np.random.default_rng(0)
    eta = rng.normal(-1.0, 1.0, 20_000)
    events = rng.random(eta.size) < 1 / (1 + np.exp(-eta))
    place = np.floor((eta + 32) * 512).astype(np.int64)
    table = calibration_table(counted(place, events, 32768), 0.95).to_pydict()
    assert sum(table["n"]) == 20_000 and table["bin"] == list(range(1, 21))
    assert max(table["n"]) - min(table["n"]) < 40
    inside = [
        low <= p <= high for low, p, high in zip(table["low"], table["predicted"], table["high"], strict=True)
    ]
    assert sum(inside) >= 17
    assert sum(o * n for o, n in zip(table["observed"], table["n"], strict=True)) == pytest.approx(
        events.sum()
    )


def test_interval_of_a_share() -> None:
    z = NormalDist().inv_cdf(0.975)
    assert wilson_interval(0, 10, z) == pytest.approx((0.0, 0.2775327998628892), abs=1e-12)
    assert wilson_interval(10, 10, z)[1] == pytest.approx(1.0)
    assert wilson_interval(50, 100, z) == pytest.approx((0.40383, 0.59617), abs=1e-5)


def splitmix(state: int) -> int:
    z = (state + GOLDEN) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_words_are_spread_and_fixed() -> None:
    rows = np.arange(20_000, dtype=np.uint64)
    state = splitmix(splitmix(9) ^ 2)
    assert random_words(rows[:3], 9, 2).tolist() == [splitmix(state + k * GOLDEN) for k in range(3)]
    assert splitmix(0) == 0xE220A8397B1DCDAF  # the first word of the published generator from state 0
    fold = RowDraws(3, 7, 0).fold_of(rows)
    assert np.abs(np.bincount(fold, minlength=7) - 20_000 / 7).max() < 250
    # Folds, halves and samples are drawn independently.
    words = np.stack([random_words(rows, 3, stream) >> np.uint64(63) for stream in range(5)])
    assert np.abs(np.corrcoef(words.astype(float)) - np.eye(5)).max() < 0.05


def test_more_than_32_pairs_of_halves_differ() -> None:
    draws = RowDraws(0, 2, 80)
    halves = draws.weights(np.arange(4000, dtype=np.uint64), np.array([draws.half(k) for k in range(80)]))
    correlation = np.corrcoef(halves.astype(float))
    pairs = np.arange(80) // 2
    assert np.abs(correlation[pairs[:, None] != pairs[None, :]]).max() < 0.1
    assert np.abs(halves.mean(axis=1) - 0.5).max() < 0.05


@pytest.fixture
def design(tmp_path: Path) -> DesignFile:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(4000, 4))
    values[:, 2] += values[:, 1]
    eta = 0.2 * values[:, 0] - 0.8 * values[:, 1] - 1
    with DesignWriter(tmp_path / "a.design", NAMES) as writer:
        writer.write(values, rng.random(4000) < 1 / (1 + np.exp(-eta)))
    return DesignFile(tmp_path / "a.design")


def test_groups_are_compared_on_the_same_rows(design: DesignFile) -> None:
    groups = {"counts_only": ["count"], "n2_only": ["n2", "n2_at"], "none": [], "all": NAMES}
    settings = AdaptiveLassoSettings(folds=4)
    found = compare_groups(design, groups, settings, threads=2)
    table = {row["model"]: row for row in found.table.to_pylist()}
    assert list(table) == list(groups)
    assert [row["predictors"] for row in table.values()] == [1, 2, 0, 4]
    assert all(row["n"] == 4000 for row in table.values())
    assert table["all"]["delta_vs_all"] == table["all"]["delta_low"] == table["all"]["delta_high"] == 0
    assert table["counts_only"]["delta_low"] > table["n2_only"]["delta_high"] > 0
    for row in table.values():
        assert row["cv_deviance"] - table["all"]["cv_deviance"] == pytest.approx(
            row["delta_vs_all"], abs=1e-12
        )
    assert table["none"]["auc"] == pytest.approx(0.5, abs=0.03)
    assert table["all"]["auc"] > table["n2_only"]["auc"] > table["counts_only"]["auc"]
    assert set(found.roc["model"].to_pylist()) == set(groups)
    assert found.warnings == ()


def held_out_scores(design: DesignFile, columns: list[int], folds: int, seed: int) -> NDArray[np.float64]:
    """Linear predictors by the definition: Newton's method without each fold."""
    values, y = design.read(0, design.rows)
    fold = RowDraws(seed, folds, 0).fold_of(np.arange(design.rows, dtype=np.uint64))
    found = np.zeros(design.rows)
    x = np.vstack([np.ones(design.rows), values[columns]])
    for k in range(folds):
        beta, own = np.zeros(len(x)), fold != k
        for _ in range(20):
            p = 1 / (1 + np.exp(-beta @ x[:, own]))
            hessian = (x[:, own] * (p * (1 - p))) @ x[:, own].T
            beta -= np.linalg.solve(hessian, x[:, own] @ (p - y[own]))
        found[~own] = beta @ x[:, ~own]
    return found


def test_deviances_by_their_definition(design: DesignFile) -> None:
    settings = AdaptiveLassoSettings(folds=3, seed=5)
    found = compare_groups(design, {"one": ["n2"], "all": NAMES}, settings, threads=1).table.to_pylist()
    _, y = design.read(0, design.rows)
    deviance = np.zeros((2, design.rows))
    for model, columns in enumerate(([1], [0, 1, 2, 3])):
        eta = held_out_scores(design, columns, 3, 5)
        deviance[model] = 2 * (np.logaddexp(0, eta) - y * eta)
    more = deviance[0] - deviance[1]
    assert found[0]["cv_deviance"] == pytest.approx(deviance[0].mean(), abs=1e-9)
    half = 1.959963984540054 * more.std(ddof=1) / math.sqrt(more.size)
    assert found[0]["delta_vs_all"] == pytest.approx(more.mean(), abs=1e-9)
    assert found[0]["delta_high"] - found[0]["delta_low"] == pytest.approx(2 * half, abs=1e-9)


def test_pairs_of_models_by_their_definition(design: DesignFile) -> None:
    groups = {"counts": ["count"], "n2": ["n2"], "all": NAMES}
    settings = AdaptiveLassoSettings(folds=3, seed=5)
    pairs = [("counts", "n2"), ("n2", "all")]
    found = compare_groups(design, groups, settings, pairs=pairs, threads=2)
    assert compare_groups(design, groups, settings, threads=1).table == found.table
    table = {row["model"]: row for row in found.table.to_pylist()}
    rows = found.paired.to_pylist()
    assert [(row["model"], row["other"], row["n"]) for row in rows] == [(*pair, 4000) for pair in pairs]
    for less, delta in (("less", "vs_all"), ("low", "low"), ("high", "high")):
        assert rows[1][f"deviance_{less}"] == pytest.approx(table["n2"][f"delta_{delta}"], rel=1e-9)
    # DeLong and others (1988), for scores rounded as they are here.
    _, y = design.read(0, design.rows)
    parts: list[list[NDArray[np.float64]]] = []
    for columns in ([0], [1]):
        score = np.floor(held_out_scores(design, columns, 3, 5) * 512)
        ones, others = score[y > 0][:, None], score[y == 0][None, :]
        right = (ones > others) + 0.5 * (ones == others)
        parts.append([right.mean(axis=1), right.mean(axis=0)])
    of_ones, of_others = (one - other for one, other in zip(*parts, strict=True))
    error = math.sqrt(of_ones.var(ddof=1) / of_ones.size + of_others.var(ddof=1) / of_others.size)
    assert rows[0]["auc_more"] == pytest.approx(of_ones.mean(), abs=1e-6)
    assert rows[0]["auc_more"] == pytest.approx(table["counts"]["auc"] - table["n2"]["auc"], abs=1e-12)
    assert rows[0]["auc_high"] - rows[0]["auc_low"] == pytest.approx(2 * 1.959964 * error, rel=1e-4)
    with pytest.raises(InvalidInput, match="pairs: found 'none'"):
        compare_groups(design, groups, settings, pairs=[("counts", "none")])


def test_unknown_names_are_told(design: DesignFile) -> None:
    with pytest.raises(InvalidInput, match="group 'all': found 'length'"):
        compare_groups(design, {"all": ["length"]})
    with pytest.raises(InvalidInput, match="reference: found 'all'"):
        compare_groups(design, {"some": ["n2"]})


def test_too_few_rows_for_folds(tmp_path: Path) -> None:
    with DesignWriter(tmp_path / "a.design", ["x"]) as writer:
        writer.write(np.array([[0.0], [1.0]]), np.array([0, 1]))
    design = DesignFile(tmp_path / "a.design")
    seeds = []
    for seed in range(8):
        try:
            compare_groups(design, {"all": ["x"]}, AdaptiveLassoSettings(folds=2, seed=seed), threads=1)
        except InvalidInput as error:
            seeds.append(seed)
            assert "fewer than two folds" in str(error)
    assert seeds
