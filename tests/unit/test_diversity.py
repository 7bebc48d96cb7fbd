"""Diversity: published numbers, expectations one by one, and laws."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.examples import examples, often

from plait.errors import FormatError, InvalidInput, Unsupported
from plait.run.executor import LocalExecutor
from plait.stats.contingency import q_values
from plait.vdj import DiversitySettings, RepertoireDiversity, diversity
from plait.vdj.repertoires.diversity import Abundances, _tail, drawn_copies, rank_sum_p

#: Spiders of two sites of a forest (Sackett and others 2011), the example of the R package iNEXT.
GIRDLED = [46, 22, 17, 15, 15, 9, 8, 6, 6, 4, 2, 2, 2, 2, *[1] * 12]
LOGGED = [88, 22, 16, 15, 13, 10, 8, 8, 7, 7, 7, 5, 4, 4, 4, 3, 3, 3, 3, 2, 2, 2, 2, *[1] * 14]
COPIES = st.lists(st.integers(1, 6) | st.integers(1, 40), min_size=1, max_size=14)


@pytest.mark.parametrize(
    ("copies", "hill", "estimates", "error", "coverage"),
    [
        (GIRDLED, [26, 12.059650, 7.84], [43.892857, 13.826253, 8.174825], 14.306, 0.9289),
        (LOGGED, [37, 14.421002, 6.761499], [61.402778, 16.337069, 6.920350], 18.532, 0.9446),
    ],
)
def test_published_example(
    copies: list[int], hill: list[float], estimates: list[float], error: float, coverage: float
) -> None:
    found = Abundances.of(copies)
    assert found.hill() == pytest.approx(hill, abs=1e-6)
    assert found.asymptotic() == pytest.approx(estimates, abs=1e-6)
    assert found.chao1_error() == pytest.approx(error, abs=5e-4)
    assert found.at(found.n)[3] == pytest.approx(coverage, abs=5e-5)


def test_published_intervals() -> None:
    found = of_subjects({"girdled": GIRDLED, "logged": LOGGED}).diversity
    # Those of iNEXT 2.0 for species richness.
    assert [round(x, 3) for x in found["hill_0_low"].to_pylist()] == [30.511, 43.502]
    assert [round(x, 3) for x in found["hill_0_high"].to_pylist()] == [96.971, 128.583]
    # Standard errors are drawn: 1.35 and 0.95 (girdled), 1.67 and 0.92 from 50 draws of iNEXT 3.0.
    for order, errors in ((1, (1.35, 1.67)), (2, (0.95, 0.92))):
        assert found[f"hill_{order}_se"].to_pylist() == pytest.approx(errors, rel=0.35)


@given(COPIES, st.data())
@examples(60)
def test_rarefaction_is_the_mean_of_all_samples(copies: list[int], data: st.DataObject) -> None:
    n = sum(copies)
    assume(n > 1)
    m = data.draw(st.integers(1, n - 1))

    def chance(x: int, k: int, m: int) -> float:
        return math.comb(x, k) * math.comb(n - x, m - k) / math.comb(n, m)

    expected = [(x, k, chance(x, k, m)) for x in copies for k in range(1, min(x, m) + 1)]
    ones = sum(chance(x, 1, m + 1) for x in copies)
    assert Abundances.of(copies).at(m) == pytest.approx(
        [
            sum(p for _, _, p in expected),
            math.exp(-sum(p * k / m * math.log(k / m) for _, k, p in expected)),
            1 / sum(p * (k / m) ** 2 for _, k, p in expected),
            1 - ones / (m + 1),
        ],
        rel=1e-9,
        abs=1e-9,
    )


@given(COPIES)
@examples(60)
def test_laws(copies: list[int]) -> None:
    found = Abundances.of([*copies, 0])
    n, share = sum(copies), np.array(copies) / sum(copies)
    hill = found.hill()
    assert hill == pytest.approx([len(copies), math.exp(-share @ np.log(share)), 1 / (share @ share)])
    assert found.at(n)[:3] == pytest.approx(hill)
    curve = np.array([found.at(m) for m in range(1, 2 * n + 1)])
    assert np.all(np.diff(curve[:n], axis=0) >= -1e-9), "more copies, more of everything"
    assert np.all(np.diff(curve[:, [0, 2, 3]], axis=0) >= -1e-9)
    assert np.all(np.diff(curve[:n, :3], axis=1) <= 1e-9), "the higher the order, the less"
    assert np.all((curve[:, 3] >= -1e-12) & (curve[:, 3] <= 1 + 1e-12))
    if found.unseen():
        assert found.at(10**7)[0] == pytest.approx(found.asymptotic()[0], rel=1e-3)
    differences = np.abs(np.subtract.outer(copies, copies)).sum()
    assert found.gini() == pytest.approx(differences / (2 * len(copies) * n), abs=1e-12)
    half = np.cumsum(sorted(copies, reverse=True))
    assert found.d50() == 1 + int((2 * half < n).sum())


@pytest.mark.slow
@pytest.mark.parametrize(("u", "m"), often(2, [(0.5, 3), (0.99, 10), (0.9999, 50), (0.99999, 200_000)]))
def test_sum_of_the_entropy_estimate(u: float, m: int) -> None:
    j = np.arange(1, 6_000_000)
    assert _tail(u, m) == pytest.approx(float((u**j / (m + j)).sum()), rel=1e-11)


def test_large_repertoires_lose_no_digits() -> None:
    # One copy is of one clonotype; two are of two, but for the chance that they are of one.
    found = Abundances(np.array([1, 2, 10_000_000]), np.array([900_000, 50_000, 3]))
    pairs = (50_000 * 2 + 3 * 10_000_000 * 9_999_999) / (found.n * (found.n - 1))
    assert found.at(1)[0] == pytest.approx(1, abs=1e-12)
    assert found.at(2)[0] == pytest.approx(2 - pairs, abs=1e-10)
    assert found.at(found.n - 1)[0] == pytest.approx(950_003 - 900_000 / found.n, rel=1e-12)


@given(COPIES, st.data())
@examples(30)
def test_down_sampling(copies: list[int], data: st.DataObject) -> None:
    m = data.draw(st.integers(1, sum(copies)))
    drawn = drawn_copies(np.array(copies), m, np.random.default_rng(3))
    assert drawn.sum() == m and np.all((drawn >= 0) & (drawn <= copies))


def test_down_sampling_is_rarefaction_on_average() -> None:
    rng = np.random.default_rng(4)
    found = [Abundances.of(drawn_copies(np.array(GIRDLED), 60, rng)).observed for _ in range(2000)]
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - Abundances.of(GIRDLED).at(60)[0]) < 5 * error


@given(st.lists(st.integers(0, 3), min_size=2, max_size=6), st.integers(1, 3))
@examples(30)
def test_rank_sums_by_all_ways(values: list[int], size: int) -> None:
    assume(size < len(values))
    below = {x: sum(y < x for y in values) + (values.count(x) + 1) / 2 for x in values}
    ranks = [below[x] for x in values]
    middle = size * sum(ranks) / len(ranks)
    off = [abs(sum(order[:size]) - middle) for order in permutations(ranks)]
    first = np.arange(len(values)) < size
    expected = sum(x >= off[0] - 1e-9 for x in off) / len(off)
    assert rank_sum_p(np.array(values, float), first) == pytest.approx(expected)


def test_rank_sums_of_many() -> None:
    rng = np.random.default_rng(6)
    p = [rank_sum_p(rng.normal(size=40).round(1), np.arange(40) < 15) for _ in range(800)]
    assert abs(np.mean(np.array(p) <= 0.05) - 0.05) < 0.03
    assert rank_sum_p(np.zeros(40), np.arange(40) < 15) == 1.0


def test_q_values() -> None:
    assert q_values(np.array([0.01, 0.04, 0.03, 0.5]), 4) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])


def rows_of(subjects: dict[str, list[int]]) -> pa.Table:
    rows = []
    for name, copies in subjects.items():
        for k, n in enumerate(copies):
            v = f"TRBV{1 + k % (3 if name < 'm' else 2)}"
            row = {"junction": f"TGT{'ACGT'[k % 4]}{'ACGT'[k // 4 % 4]}{'ACGT'[k // 16]}TTT"[: 9 - k % 2]}
            row |= {"v_call": f"{v}*01", "j_call": "TRBJ1-1*01", "subject_id": name}
            rows.append(row | {"duplicate_count": n, "arm": "early" if name < "m" else "late"})
    return pa.Table.from_pylist(rows)


def of_subjects(subjects: dict[str, list[int]], **settings: Any) -> RepertoireDiversity:
    return diversity(rows_of(subjects), settings=DiversitySettings(**settings))


def test_tables_are_of_one_mind() -> None:
    found = of_subjects({"girdled": GIRDLED, "logged": LOGGED}, knots=8)
    for row in found.diversity.to_pylist():
        mine = [one for one in found.rarefaction.to_pylist() if one["subject"] == row["subject"]]
        for order in range(3):
            (seen,) = (one for one in mine if one["part"] == "observed" and one["order"] == order)
            assert seen["copies"] == row["copies"] and seen["diversity"] == pytest.approx(
                row[f"hill_{order}"]
            )
            assert seen["low"] <= seen["diversity"] <= seen["high"]
        assert max(one["copies"] for one in mine) == 2 * row["copies"]
        for table in (found.spectratypes, found.usage):
            parts = [one for one in table.to_pylist() if one["subject"] == row["subject"]]
            for segment in {one.get("segment") for one in parts}:
                of = [one for one in parts if one.get("segment") == segment]
                assert sum(one["copies"] for one in of) == row["copies"]
                assert sum(one["clonotypes"] for one in of) == row["clonotypes"]


@pytest.mark.slow
def test_what_draws_depend_on() -> None:
    subjects = {"girdled": GIRDLED, "logged": LOGGED}
    wanted = DiversitySettings(downsample=100, seed=5, replicates=5, knots=4)
    table = rows_of(subjects)
    found = diversity(table, settings=wanted, executor=LocalExecutor(1))
    order = np.random.default_rng(0).permutation(table.num_rows)
    for other in (
        diversity(table.take(order), settings=wanted, executor=LocalExecutor(3)),
        diversity(table, settings=DiversitySettings(downsample=100, seed=6, replicates=5, knots=4)),
    ):
        same = all(getattr(other, n).equals(getattr(found, n)) for n in ("diversity", "rarefaction", "usage"))
        assert same == (other.diversity["d50"].to_pylist() == found.diversity["d50"].to_pylist())
    assert found.diversity["copies"].to_pylist() == [100, 100]
    alone = diversity(rows_of({"logged": LOGGED}), settings=wanted).diversity
    assert alone.to_pylist() == found.diversity.slice(1).to_pylist()
    few = of_subjects(subjects, downsample=200)
    assert few.left_out == {"girdled": 168} and few.diversity["subject"].to_pylist() == ["logged"]


def test_differences_of_usage() -> None:
    found = of_subjects({name: GIRDLED for name in "abcdwxyz"}, condition="arm", replicates=2, knots=4)
    assert found.differences is not None
    rows = {(row["segment"], row["v_gene"]): row for row in found.differences.to_pylist()}
    assert rows["V", "TRBV3"]["mean_b"] == 0 and rows["V", "TRBV3"]["mean_a"] > 0.2
    assert rows["V", "TRBV3"]["p_value"] == pytest.approx(2 / 70)
    assert rows["J", ""]["p_value"] == rows["J", ""]["q_value"] == 1


@pytest.mark.parametrize(
    ("change", "settings", "error", "message"),
    [
        ({}, {"downsample": 300}, InvalidInput, "at most 168 copies in a subject.*300"),
        ({}, {"downsample": 0}, InvalidInput, "downsample"),
        ({}, {"replicates": 1}, InvalidInput, "replicates"),
        ({}, {"condition": "sex"}, InvalidInput, "'sex'"),
        ({}, {"condition": "arm"}, InvalidInput, "two among the subjects"),
        ({"arm": ["x", "y", *["x"] * 24]}, {"condition": "arm"}, FormatError, "one condition a subject"),
        ({"junction": [""] * 26}, {}, InvalidInput, "no clonotypes"),
        ({"duplicate_count": [10**9] * 26}, {"downsample": 5}, Unsupported, "26,000,000,000 copies"),
    ],
)
def test_bad_requests(
    change: dict[str, Any], settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    table = rows_of({"girdled": GIRDLED})
    for name, values in change.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    with pytest.raises(error, match=message):
        diversity(table, settings=DiversitySettings(**settings))
