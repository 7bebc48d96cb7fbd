"""Regressions do not depend on how the work is split, bit for bit."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plait.run.executor import Executor, LocalExecutor
from plait.stats import rows as row_pieces
from plait.stats import rows as row_sample
from plait.stats.adaptive_lasso import AdaptiveLassoFit, compare_groups, fit_adaptive_lasso
from plait.stats.design_file import DesignFile, DesignWriter
from plait.stats.path_fits import AdaptiveLassoSettings, FitProgress, SampleSolver
from plait.stats.regression_data import EVERYWHERE, prepare_regression
from plait.stats.rows import TreeSum, Values, sum_pieces

ROWS = 5000
NAMES = [f"x{k}" for k in range(5)]
SETTINGS = AdaptiveLassoSettings(lambdas=8, folds=3, halves=4, lambda_ratio=1e-2)


class ProcessExecutor:
    """Other processes, as on a cluster: whatever goes there and back is pickled."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self.pool = pool
        self.slots = 2
        self.elsewhere = True

    def map(
        self, function: Callable[[Any], Any], batches: Iterable[Any], **options: Any
    ) -> Generator[Any, None, None]:
        waiting = [self.pool.submit(function, batch) for batch in batches]
        yield from (one.result() for one in waiting)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pieces, and a sample that is not everything."""
    monkeypatch.setattr(row_pieces, "MOST_PIECE_ROWS", 512)
    monkeypatch.setattr(row_sample, "_LEAST", 1500)
    monkeypatch.setattr(row_sample, "_PER_COEFFICIENT", 1)


def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(ROWS, 5))
    values[:, 1] = rng.poisson(3, ROWS)
    values[:, 2] = rng.random(ROWS) < 0.02
    eta = values @ [0.5, -0.2, 0.6, 0.0, 0.1] - 1
    return values, rng.random(ROWS) < 1 / (1 + np.exp(-eta))


def write(folder: Path, cuts: list[int], chunk_rows: int = 999) -> DesignFile:
    folder.mkdir()
    values, outcome = rows()
    for k, (start, stop) in enumerate(itertools.pairwise([0, *cuts, ROWS])):
        with DesignWriter(folder / f"part-{k:04}.design", NAMES, chunk_rows=chunk_rows) as writer:
            writer.write(values[start:stop], outcome[start:stop])
    return DesignFile(folder)


def same(a: AdaptiveLassoFit, b: AdaptiveLassoFit) -> None:
    for field in fields(a):
        one, other = getattr(a, field.name), getattr(b, field.name)
        if isinstance(one, np.ndarray):
            assert one.tobytes() == other.tobytes(), field.name
        elif isinstance(one, pa.Table):
            assert one.equals(other), field.name
        else:
            assert repr(one) == repr(other), field.name


@pytest.mark.slow
def test_threads_parts_and_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = write(tmp_path / "one", [])
    first = fit_adaptive_lasso(design, SETTINGS, threads=1)
    assert 0.5 < first.auc < 1
    same(first, fit_adaptive_lasso(design, SETTINGS, executor=LocalExecutor(3)))
    parts = write(tmp_path / "parts", [1, 700, 700, 3333, 4999], chunk_rows=64)
    monkeypatch.setattr(row_pieces, "_MANY_BATCHES", 3)
    same(first, fit_adaptive_lasso(parts, SETTINGS, executor=LocalExecutor(2)))


@pytest.mark.slow
def test_a_sample_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = write(tmp_path / "one", [])
    sampled = fit_adaptive_lasso(design, SETTINGS, threads=2)
    monkeypatch.setattr(row_sample, "_LEAST", ROWS)
    whole = fit_adaptive_lasso(design, SETTINGS, threads=2)
    assert np.abs(sampled.coefficients - whole.coefficients).max() < 1e-6
    assert sampled.stability.tolist() == whole.stability.tolist()
    assert sampled.chosen == whole.chosen


@pytest.mark.slow
def test_exact_curvature_where_steps_do_not_shrink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = write(tmp_path / "one", [])
    usual = fit_adaptive_lasso(design, SETTINGS, threads=2)
    # A sample so small that its curvature is no good.
    monkeypatch.setattr(row_sample, "_LEAST", 40)
    told: list[str] = []
    poor = fit_adaptive_lasso(design, SETTINGS, threads=2, progress=lambda one: told.append(one.stage))
    assert any(stage.startswith("exact curvature") for stage in told)
    assert np.abs(usual.coefficients - poor.coefficients).max() < 1e-6
    assert np.abs(usual.cv_deviance - poor.cv_deviance).max() < 1e-6


@pytest.mark.slow
def test_other_processes(tmp_path: Path) -> None:
    design = write(tmp_path / "parts", [1234])
    groups = {"few": NAMES[:2], "all": NAMES}
    here = fit_adaptive_lasso(design, SETTINGS, threads=2)
    compared = compare_groups(design, groups, SETTINGS, threads=2)
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(2, context) as pool:
        executor: Executor = ProcessExecutor(pool)  # type: ignore[assignment]
        same(here, fit_adaptive_lasso(design, SETTINGS, executor=executor))
        there = compare_groups(design, groups, SETTINGS, executor=executor)
    assert compared.table.equals(there.table) and compared.roc.equals(there.roc)


def test_stopping_in_the_middle_leaves_nothing_running(tmp_path: Path) -> None:
    design = write(tmp_path / "one", [])
    stages: list[str] = []

    def stop(told: FitProgress) -> None:
        stages.append(told.stage)
        if told.stage.startswith("the path: pass"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_adaptive_lasso(design, SETTINGS, threads=2, progress=stop)
    assert [stage for stage in stages if stage.startswith("the path: pass")] == [stages[-1]]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["part-0000.design"]


class _Numbers:
    """Work whose sum depends on the order."""

    def __call__(self, start: int, stop: int) -> Values:
        return (np.array([sum(1.0 / (k + 1) ** 1.5 for k in range(start, stop))]),)


@pytest.mark.parametrize("together", [1, 2, 7, 1000])
def test_sums_are_those_of_one_tree(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    tree = TreeSum()
    for start in range(0, 1003, 4):
        tree.add(0, _Numbers()(start, min(start + 4, 1003)))
    monkeypatch.setattr(row_pieces, "_MANY_BATCHES", together)
    told: list[int] = []
    found = sum_pieces(LocalExecutor(2), _Numbers(), 1003, 4, told.append)
    assert told[-1] == 1003 and found[0].tobytes() == tree.total()[0].tobytes()
    assert TreeSum().total() == ()


def test_a_sample_for_a_rare_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    values = rng.normal(size=(20_000, 5))
    outcome = rng.random(20_000) < 1 / (1 + np.exp(6.0 - values @ [1.5, -0.8, 0.6, 0.0, 0.1]))
    assert outcome.mean() < 0.02
    with DesignWriter(tmp_path / "rare.design", NAMES) as writer:
        writer.write(values, outcome)
    data = prepare_regression(
        DesignFile(tmp_path / "rare.design"), SETTINGS, LocalExecutor(2), lambda told: None
    )
    sample = data.fits.sample
    events, size = sample.y > 0, sample.numbers.size
    # Of the rarer outcome there are many, and together they stand for all rows.
    assert size < 3000 and events.sum() > 0.9 * min(outcome.sum(), 0.4 * size)
    assert sample.weights.sum() == pytest.approx(20_000, rel=0.1)
    assert sample.weights[events].sum() == pytest.approx(outcome.sum(), rel=0.1)
    # What is fitted on it is nearly what is fitted on all rows.
    free = np.zeros(data.kept.size)
    (exact,) = data.unpenalised([(EVERYWHERE, free)], "maximum likelihood").fits
    rough = SampleSolver(sample)([data.spec(EVERYWHERE, free)])[0].coefficients
    assert np.abs(rough[0] - exact.coefficients[0]).max() < 0.1
