"""Differences of rank measures on the same rows: against single ones, by enumeration, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.examples import often

from plait.stats.contingency import ContingencyTable
from plait.stats.rank_correlation import (
    PAIRED_MEASURES,
    PairedDifference,
    Triples,
    kendall,
    paired_differences,
    spearman,
    triples_of,
)
from plait.vdj.convergence.pgen_tables import JACKKNIFE_MEASURES, SubjectCells, subject_intervals


def drawn(rng: np.random.Generator, n: int, a: float, b: float) -> Triples:
    """Path counts with ties, Pgen without, and sharing that follows either; most rows are unshared."""
    common = rng.standard_normal(n)
    x = np.round(3 * (0.7 * common + 0.7 * rng.standard_normal(n)))
    z = 0.7 * common + 0.7 * rng.standard_normal(n)
    y = 1 + rng.poisson(np.exp(-1.5 + a * x / 3 + b * z))
    return triples_of(x, z, y, np.ones(n, np.int64))


def by_measure(triples: Triples, threshold: float = 2) -> dict[str, PairedDifference]:
    found = paired_differences(PAIRED_MEASURES, triples, threshold=threshold)
    return dict(zip(PAIRED_MEASURES, found, strict=True))


def area(x: np.ndarray, event: np.ndarray) -> float:
    ones, others = x[event][:, None], x[~event][None, :]
    return float(((ones > others) + 0.5 * (ones == others)).mean())


def test_measures_are_those_of_each_alone() -> None:
    triples = drawn(np.random.default_rng(1), 400, 0.2, 0.6)
    found = by_measure(triples)
    for measure, one in (("spearman", spearman), ("kendall", kendall)):
        for values, got in ((triples.x, found[measure].x), (triples.z, found[measure].z)):
            table = ContingencyTable()
            table.add(values, triples.y)
            assert math.isclose(one(table.pairs()).estimate, got, rel_tol=1e-12)
    event = triples.y >= 2
    assert math.isclose(found["auc"].x, area(triples.x, event), rel_tol=1e-12)
    assert math.isclose(found["auc"].z, area(triples.z, event), rel_tol=1e-12)
    for one in found.values():
        assert one.difference == one.z - one.x and one.low < one.difference < one.high and one.n == 400


def test_counted_rows_are_rows() -> None:
    rng = np.random.default_rng(2)
    x, z, y = (rng.integers(0, 4, 60) for _ in range(3))
    counts = rng.integers(0, 4, 60)
    written_out = triples_of(*(np.repeat(v, counts) for v in (x, z, y)), np.ones(counts.sum(), np.int64))
    for one, other in zip(
        by_measure(triples_of(x, z, y, counts)).values(), by_measure(written_out).values(), strict=True
    ):
        for name in ("x", "z", "difference", "low", "high", "n"):
            assert math.isclose(getattr(one, name), getattr(other, name), rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("measure", often(1, PAIRED_MEASURES))
def test_errors_are_those_of_leaving_rows_out(measure: str) -> None:
    triples = drawn(np.random.default_rng(3), 150, 0.5, 0.3)
    found = by_measure(triples)[measure]
    left_out = []
    for k in range(150):
        kept = np.arange(150) != k
        left_out.append(by_measure(Triples(*(column[kept] for column in triples)))[measure].difference)
    error = math.sqrt(149 / 150 * np.sum((np.array(left_out) - np.mean(left_out)) ** 2))
    assert found.standard_error == pytest.approx(error, rel=0.05)


@pytest.mark.slow
def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(4)
    for a, b in ((0.4, 0.4), (0.1, 0.7), (0.0, 0.0)):
        truth = {m: one.difference for m, one in by_measure(drawn(rng, 200_000, a, b)).items()}
        covered = dict.fromkeys(PAIRED_MEASURES, 0)
        for _ in range(300):
            for measure, one in by_measure(drawn(rng, 150, a, b)).items():
                covered[measure] += one.low <= truth[measure] <= one.high
        # 300 draws at 95 %: 285 and less than four standard deviations (3.8) to each side.
        assert all(269 <= hits <= 300 for hits in covered.values()), covered


def test_where_there_is_nothing_to_tell() -> None:
    n = np.ones(30, np.int64)
    x, y = np.arange(30), np.arange(30) % 3
    same = by_measure(triples_of(x, 2 * x, y, n))["spearman"]
    assert same.difference == 0 and math.isnan(same.low) and same.reason == "x and z order the rows alike"
    constant = by_measure(triples_of(x, 0 * x, y, n))["kendall"]
    assert math.isnan(constant.difference) and "does not vary" in constant.reason
    few = by_measure(triples_of(x, -x, (x > 25).astype(int) * 5, n))
    assert few["auc"].difference == -1 and math.isnan(few["auc"].low) and "fewer than 10" in few["auc"].reason
    nothing = by_measure(triples_of(x, x, y, 0 * n))
    assert all(one.n == 0 and one.reason == "no rows" for one in nothing.values())
    assert "threshold" in by_measure(triples_of(x, -x, y, n), threshold=9)["auc"].reason


def present(rng: np.random.Generator, subjects: int, n: int, a: float, b: float, apart: float) -> tuple:
    """Two variables, and which subject has which row; subjects differ in what they follow."""
    x = np.round(3 * rng.standard_normal(n))
    z = 0.2 * x + 0.8 * rng.standard_normal(n)
    has = np.zeros((n, subjects), bool)
    for k in range(subjects):
        of_x, of_z = a + apart * rng.standard_normal(), b + apart * rng.standard_normal()
        has[:, k] = rng.random(n) < 1 - np.exp(-np.exp(-2.2 + of_x * x / 3 + of_z * z))
    kept = has.any(axis=1)
    return x[kept], z[kept], has[kept]


def cells_of(x: np.ndarray, z: np.ndarray, has: np.ndarray) -> list[SubjectCells]:
    y = has.sum(axis=1)
    ones = np.ones(len(x), np.int64)
    return [SubjectCells(x[m], z[m], y[m], ones[m]) for m in has.T]


def test_subjects_left_out_are_gone() -> None:
    x, z, has = present(np.random.default_rng(5), 6, 300, 0.2, 0.8, 0.2)
    found = subject_intervals(cells_of(x, z, has), shared_by=2)
    left_out = []
    for k in range(6):
        rest = np.delete(has, k, axis=1)
        y = rest.sum(axis=1)
        triples = triples_of(x[y > 0], z[y > 0], y[y > 0], np.ones((y > 0).sum(), np.int64))
        left_out.append({m: one.difference for m, one in by_measure(triples).items()})
    whole = by_measure(triples_of(x, z, has.sum(axis=1), np.ones(len(x), np.int64)))
    for measure in JACKKNIFE_MEASURES:
        values = np.array([one[measure] for one in left_out])
        half = 2.570582 * math.sqrt(5 / 6 * np.sum((values - values.mean()) ** 2))
        wanted = (whole[measure].difference - half, whole[measure].difference + half)
        assert found[measure] == pytest.approx(wanted, rel=1e-5)


def test_few_subjects_have_no_interval() -> None:
    x, z, has = present(np.random.default_rng(6), 3, 200, 0.2, 0.8, 0.0)
    assert subject_intervals(cells_of(x, z, has), shared_by=2) == {}
    assert subject_intervals([], shared_by=2) == {}
    # Nothing is shared by so many.
    x, z, has = present(np.random.default_rng(7), 4, 200, 0.2, 0.8, 0.0)
    assert set(subject_intervals(cells_of(x, z, has), shared_by=9)) == {"spearman"}


@pytest.mark.slow
def test_subjects_that_differ_are_allowed_for() -> None:
    rng = np.random.default_rng(8)
    truth = np.mean(
        [
            by_measure(triples_of(x, z, has.sum(axis=1), np.ones(len(x), np.int64)))["auc"].difference
            for x, z, has in (present(rng, 8, 4000, 0.3, 0.3, 0.3) for _ in range(40))
        ]
    )
    over_subjects = over_rows = 0
    for _ in range(120):
        x, z, has = present(rng, 8, 800, 0.3, 0.3, 0.3)
        low, high = subject_intervals(cells_of(x, z, has), shared_by=2)["auc"]
        over_subjects += low <= truth <= high
        one = by_measure(triples_of(x, z, has.sum(axis=1), np.ones(len(x), np.int64)))["auc"]
        over_rows += one.low <= truth <= one.high
    # Rows alone know nothing of how subjects differ.
    assert over_subjects >= 108 and over_rows < over_subjects
