"""The algebras that sums over alignments need: logarithms of sums, and the best with what reaches it."""

from __future__ import annotations

import decimal
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.lang.algebras import BIG_COUNT, LOG_SUM, MaxPlus, Optimal, choice, extend

pytestmark = pytest.mark.interpreted(alone=True)

ULP = 2.0**-52
LOGARITHMS = st.floats(-800, 800) | st.floats(-2, 2) | st.just(-math.inf)
OPTIMAL = Optimal((-math.inf, 0), (0, 1), MaxPlus(-math.inf, 0), BIG_COUNT)
SCORED = st.tuples(st.integers(-3, 3), st.integers(0, 5)) | st.just(OPTIMAL.zero)


def exact(logarithm: float) -> decimal.Decimal:
    return decimal.Decimal(0) if logarithm == -math.inf else decimal.Decimal(logarithm).exp()


@given(LOGARITHMS, LOGARITHMS)
def test_a_choice_is_as_exact_as_it_says(a: float, b: float) -> None:
    found = choice(LOG_SUM, a, b)
    if a == b == -math.inf:
        assert found == -math.inf
        return
    with decimal.localcontext(prec=60):
        wanted = (exact(a) + exact(b)).ln()
        error = abs(decimal.Decimal(found) - wanted)
        assert error <= decimal.Decimal(2.5 * ULP) * max(decimal.Decimal(1), abs(wanted))


@given(LOGARITHMS, LOGARITHMS)
def test_order_does_not_matter(a: float, b: float) -> None:
    assert choice(LOG_SUM, a, b) == choice(LOG_SUM, b, a)
    assert choice(LOG_SUM, a, b) >= max(a, b)


@given(LOGARITHMS)
def test_neutral_elements_of_log_sum(a: float) -> None:
    assert choice(LOG_SUM, a, LOG_SUM.zero) == a
    assert extend(LOG_SUM, a, LOG_SUM.one) == a
    assert extend(LOG_SUM, a, LOG_SUM.zero) == LOG_SUM.zero


def test_nothing_overflows() -> None:
    assert choice(LOG_SUM, 1e308, 1e308) == 1e308
    assert choice(LOG_SUM, -1e308, 0.0) == 0.0
    assert choice(LOG_SUM, 5000.0, 5000.0) == pytest.approx(5000 + math.log(2), rel=1e-15)


@given(SCORED, SCORED, SCORED)
def test_laws_of_optimal(a: tuple[float, int], b: tuple[float, int], c: tuple[float, int]) -> None:
    alg = OPTIMAL
    assert choice(alg, a, b) == choice(alg, b, a)
    assert choice(alg, a, choice(alg, b, c)) == choice(alg, choice(alg, a, b), c)
    assert extend(alg, a, extend(alg, b, c)) == extend(alg, extend(alg, a, b), c)
    assert extend(alg, a, choice(alg, b, c)) == choice(alg, extend(alg, a, b), extend(alg, a, c))
    assert choice(alg, a, alg.zero) == a
    assert extend(alg, a, alg.one) == a
    assert extend(alg, a, alg.zero) == alg.zero


def test_ties_add_up_and_others_do_not() -> None:
    assert choice(OPTIMAL, (3, 2), (3, 5)) == (3, 7)
    assert choice(OPTIMAL, (3, 2), (4, 5)) == (4, 5)
    assert extend(OPTIMAL, (3, 2), (4, 5)) == (7, 10)
