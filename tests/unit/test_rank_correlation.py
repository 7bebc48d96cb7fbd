"""`plait.stats.rank_correlation` and `quantiles`: against plain definitions, SciPy, and simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from plait.stats.contingency import ContingencyTable, Pairs, counted_quantiles, student_quantile
from plait.stats.rank_correlation import Correlation, kendall, spearman

Method = Callable[..., Correlation]
#: Rows with many ties on both sides, or few.
ROWS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 3), st.integers(0, 3)), st.tuples(st.integers(-50, 50), st.integers(0, 1000))
    ),
    max_size=40,
)


def pairs_of(x: Any, y: Any, counts: Any = None) -> Pairs:
    table = ContingencyTable()
    table.add(np.asarray(x), np.asarray(y), counts)
    return table.pairs()


def of_rows(rows: list[tuple[int, int]]) -> Pairs:
    array = np.array(rows, np.int64).reshape(-1, 2)
    return pairs_of(array[:, 0], array[:, 1])


def of_table(counts: NDArray[np.int64]) -> Pairs:
    x, y = np.nonzero(counts)
    return Pairs(x, y, counts[x, y])


def sign(value: float) -> int:
    return (value > 0) - (value < 0)


def plain_spearman(rows: list[tuple[int, int]]) -> float:
    """Product-moment correlation of mid-ranks, one row after the other."""

    def ranks(values: list[int]) -> list[float]:
        return [sum(1.0 if w < v else 0.5 if w == v else 0.0 for w in values) + 0.5 for v in values]

    one, other = (ranks([row[axis] for row in rows]) for axis in (0, 1))
    middle = (len(rows) + 1) / 2
    top = sum((a - middle) * (b - middle) for a, b in zip(one, other, strict=True))
    below = sum((a - middle) ** 2 for a in one) * sum((b - middle) ** 2 for b in other)
    return top / math.sqrt(below) if below else math.nan


def plain_kendall(rows: list[tuple[int, int]]) -> float:
    """Over all pairs of rows."""
    signs = [(sign(a[0] - b[0]), sign(a[1] - b[1])) for a, b in product(rows, rows)]
    below = sum(abs(x) for x, _ in signs) * sum(abs(y) for _, y in signs)
    return sum(x * y for x, y in signs) / math.sqrt(below) if below else math.nan


PLAIN = [
    pytest.param(spearman, plain_spearman, id="spearman"),
    pytest.param(kendall, plain_kendall, id="kendall"),
]
METHODS = [pytest.param(spearman, id="spearman"), pytest.param(kendall, id="kendall")]


@pytest.mark.parametrize(("method", "plain"), PLAIN)
@given(rows=ROWS)
def test_the_definition(method: Method, plain: Callable[..., float], rows: list[tuple[int, int]]) -> None:
    found = method(of_rows(rows))
    assert found.n == len(rows)
    assert found.estimate == pytest.approx(plain(rows), abs=1e-12, nan_ok=True)
    assert math.isnan(found.estimate) == bool(
        found.reason in ("no rows", "x does not vary", "y does not vary")
    )


@pytest.mark.parametrize("method", METHODS)
@given(rows=ROWS)
def test_symmetry_and_reversal(method: Method, rows: list[tuple[int, int]]) -> None:
    found = method(of_rows(rows))
    turned = method(of_rows([(y, x) for x, y in rows]))
    reverse = method(of_rows([(-x, y) for x, y in rows]))
    assert turned.estimate == pytest.approx(found.estimate, abs=1e-12, nan_ok=True)
    assert reverse.estimate == pytest.approx(-found.estimate, abs=1e-12, nan_ok=True)
    for other, ends in ((turned, (found.low, found.high)), (reverse, (-found.high, -found.low))):
        assert (other.low, other.high) == pytest.approx(ends, abs=1e-9, nan_ok=True)
        assert other.standard_error == pytest.approx(found.standard_error, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("method", METHODS)
@given(rows=ROWS)
def test_only_the_order_of_values_matters(method: Method, rows: list[tuple[int, int]]) -> None:
    x, y = np.array(rows, float).reshape(-1, 2).T
    assert method(pairs_of(np.exp(x / 10), y**3)) == method(pairs_of(x, y))


@pytest.mark.parametrize("method", METHODS)
@given(rows=ROWS, times=st.integers(2, 5))
def test_counted_rows_are_rows(method: Method, rows: list[tuple[int, int]], times: int) -> None:
    array = np.array(rows, np.int64).reshape(-1, 2)
    counted = pairs_of(array[:, 0], array[:, 1], np.full(len(rows), times))
    assert method(counted) == method(of_rows(rows * times))


@pytest.mark.parametrize("method", METHODS)
@given(rows=ROWS)
def test_intervals_hold_the_estimate(method: Method, rows: list[tuple[int, int]]) -> None:
    found = method(of_rows(rows), confidence=0.9)
    assert found.confidence == 0.9
    assert (
        math.isnan(found.low)
        == math.isnan(found.high)
        == math.isnan(found.standard_error)
        == bool(found.reason)
    )
    if not found.reason:
        assert -1 <= found.low < found.estimate < found.high <= 1
        wider = method(of_rows(rows), confidence=0.99)
        assert wider.low < found.low < found.high < wider.high


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "no rows"),
        ([(1, 1)] * 30, "x does not vary"),
        ([(k, 1) for k in range(30)], "y does not vary"),
        ([(k, k) for k in range(30)], "the rows leave no spread to judge it by"),
        ([(0, 0), (1, 1), (1, 0)] * 4, "fewer than 10 rows differ from the most common value"),
        ([(k, int(k < 9)) for k in range(1000)], "fewer than 10 rows differ from the most common value"),
    ],
    ids=["none", "x", "y", "perfect", "few", "few-of-one-kind"],
)
@pytest.mark.parametrize("method", METHODS)
def test_where_there_is_no_interval(method: Method, rows: list[tuple[int, int]], reason: str) -> None:
    found = method(of_rows(rows))
    assert found.reason == reason
    assert math.isnan(found.low) and math.isnan(found.high)
    if "vary" not in reason and reason != "no rows":
        assert -1 <= found.estimate <= 1


def brown_benedetti(counts: NDArray[np.int64]) -> float:
    """Standard error of tau-b of a table, from the published sum over its cells (counts, not shares)."""
    n, rows, columns = counts.sum(), counts.sum(1), counts.sum(0)
    w_r, w_c = n**2 - (rows**2).sum(), n**2 - (columns**2).sum()
    w = math.sqrt(w_r * w_c)
    total, p = 0.0, 0
    for i, j in np.ndindex(*counts.shape):
        a = counts[:i, :j].sum() + counts[i + 1 :, j + 1 :].sum()
        d = counts[:i, j + 1 :].sum() + counts[i + 1 :, :j].sum()
        p += counts[i, j] * (a - d)
    tau = p / w
    for i, j in np.ndindex(*counts.shape):
        a = counts[:i, :j].sum() + counts[i + 1 :, j + 1 :].sum()
        d = counts[:i, j + 1 :].sum() + counts[i + 1 :, :j].sum()
        v = rows[i] * w_c + columns[j] * w_r
        total += counts[i, j] * (2 * w * (a - d) + tau * v) ** 2
    return math.sqrt((total - n**3 * tau**2 * (w_r + w_c) ** 2) / w**4)


def test_standard_error_of_tau_b_is_that_of_tables() -> None:
    counts = np.array([[26, 26, 23, 18, 9], [6, 7, 9, 14, 23], [3, 2, 8, 0, 11]])
    assert kendall(of_table(counts)).standard_error == pytest.approx(brown_benedetti(counts), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_standard_error_of_four_cells_is_that_of_phi(method: Method) -> None:
    """In a table of two by two, both are the product-moment correlation, whose error is known."""
    (a, b), (c, d) = counts = np.array([[40, 11], [17, 52]])
    n, p, q = counts.sum(), (c + d) / counts.sum(), (b + d) / counts.sum()
    phi = (a * d - b * c) / math.sqrt((a + b) * (c + d) * (a + c) * (b + d))
    influence = 0.0
    for (i, j), count in np.ndenumerate(counts):
        x, y = (i - p) / math.sqrt(p * (1 - p)), (j - q) / math.sqrt(q * (1 - q))
        influence += count * (x * y - phi * (x * x + y * y) / 2) ** 2
    found = method(of_table(counts))
    assert found.estimate == pytest.approx(phi, abs=1e-12)
    assert found.standard_error == pytest.approx(math.sqrt(influence) / n, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@given(rows=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=25, max_size=60))
def test_standard_error_is_nearly_that_of_the_jackknife(method: Method, rows: list[tuple[int, int]]) -> None:
    """Leaving rows out one at a time estimates the same spread, up to terms of the order of 1 / n."""
    found = method(of_rows(rows))
    if found.reason:
        return
    without = np.array([method(of_rows(rows[:k] + rows[k + 1 :])).estimate for k in range(len(rows))])
    n = len(rows)
    spread = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    assert found.standard_error == pytest.approx(spread, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_standard_error_is_that_of_the_bootstrap(method: Method) -> None:
    rng = np.random.default_rng(11)
    n = 400
    x = rng.integers(0, 200, n)
    y = np.minimum(rng.geometric(0.8 - 0.002 * x), 4)
    found = method(pairs_of(x, y))
    drawn = []
    for _ in range(400):
        chosen = rng.integers(0, n, n)
        drawn.append(method(pairs_of(x[chosen], y[chosen])).estimate)
    # The standard deviation of 400 draws has itself an error of 3.5 %.
    assert found.standard_error == pytest.approx(np.std(drawn), rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "n"),
    [
        (np.outer(np.ones(8), [0.9, 0.08, 0.02]), 500),
        (np.array([[57, 1], [40, 2]]), 1000),
        (np.exp(-np.abs(np.subtract.outer(range(6), range(6)))), 60),
    ],
    ids=["nearly-all-tied", "rare", "related"],
)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover_the_truth(method: Method, cells: NDArray[np.float64], n: int) -> None:
    shares = cells / cells.sum()
    truth = method(of_table(np.round(shares * 1e9).astype(np.int64))).estimate
    rng = np.random.default_rng(5)
    draws = rng.multinomial(n, shares.ravel(), size=600).reshape(600, *shares.shape)
    found = [method(of_table(counts)) for counts in draws]
    known = [one for one in found if not one.reason]
    covered = sum(one.low <= truth <= one.high for one in known) / len(known)
    assert len(known) > 550
    # Six hundred draws of a true 95 % lie within 2.7 % with a probability of 99.8 %.
    assert 0.92 <= covered <= 0.985


@pytest.mark.slow
def test_scipy() -> None:
    stats = pytest.importorskip(
        "scipy.stats", reason="SciPy is not installed: the definition above is tested"
    )
    rng = np.random.default_rng(2)
    for kinds, n in (((3, 4), 60), ((500, 6), 3000), ((6, 500), 3000), ((4000, 4000), 3000)):
        x, y = rng.integers(0, kinds[0], n), rng.integers(0, kinds[1], n)
        y = y + x * kinds[1] // kinds[0]
        pairs = pairs_of(x, y)
        assert spearman(pairs).estimate == pytest.approx(float(stats.spearmanr(x, y)[0]), abs=1e-13)
        assert kendall(pairs).estimate == pytest.approx(float(stats.kendalltau(x, y)[0]), abs=1e-13)
    for probability, freedom in product((0.6, 0.9, 0.975, 0.9995), (2, 2.5, 7, 30.25, 999, 1001, 1e6, 1e9)):
        expected = float(stats.t.ppf(probability, freedom))
        assert student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-7)


def test_quantiles_of_student_t() -> None:
    # With one degree of freedom tan(pi (p - 1/2)); with two, a root.
    for p in (0.6, 0.9, 0.975):
        assert student_quantile(p, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-9)
        root = (2 * p - 1) / math.sqrt(2 * p * (1 - p))
        assert student_quantile(p, 2) == pytest.approx(root, rel=1e-9)


@given(
    st.dictionaries(st.integers(-20, 20), st.integers(1, 4), max_size=12),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
)
def test_quantiles_of_counted_values(held: dict[int, int], shares: list[float]) -> None:
    values, counts = np.array(sorted(held), int), np.array([held[v] for v in sorted(held)], np.int64)
    found = counted_quantiles(values, counts, shares)
    if not held:
        assert found == [None] * len(shares)
        return
    expected = np.quantile(np.repeat(values, counts).astype(float), shares)
    assert found == pytest.approx(expected.tolist(), abs=1e-9)
