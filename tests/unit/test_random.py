"""Streams of random numbers: against the definitions, NumPy and SciPy; skips; any split of the work."""

from __future__ import annotations

import itertools
import math
import statistics
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import often

from plait.devices.target import CpuTarget, ReferenceTarget, interpreted
from plait.errors import InvalidInput
from plait.lang.algebras import choice, extend
from plait.lang.lanes import lanes_of
from plait.random import Mrg32k3a, Mt19937, Sobol, generators
from plait.random.draws import (
    Draws,
    Exponential,
    Normal,
    Uniform,
    Word,
    minus_logarithm,
    normal_quantile,
    sample,
)
from plait.random.generators import Modular, matrix_product, power

GENERATORS: dict[str, Any] = {
    "mrg32k3a": lambda: Mrg32k3a(7),
    "mt19937": lambda: Mt19937(7),
    "sobol": lambda: Sobol(3, seed=7),
}


def mrg(count: int, seed: int = 12345) -> list[int]:
    """Words as the paper defines them."""
    p, q = [seed] * 3, [seed] * 3
    for _ in range(count):
        p.append((1403580 * p[-2] - 810728 * p[-3]) % 4294967087)
        q.append((527612 * q[-1] - 1370589 * q[-3]) % 4294944443)
    return [(a - b) % 4294967087 for a, b in zip(p[3:], q[3:], strict=True)]


def numpy_words(count: int, seed: int) -> np.ndarray[Any, Any]:
    bits = np.random.MT19937()
    bits._legacy_seeding(seed)  # type: ignore[attr-defined]  # what RandomState calls
    return bits.random_raw(count).astype(np.uint32)


def in_one(words: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([np.atleast_1d(part) for part in words])


# --- what the generators are ----------------------------------------------------------------------------


def test_mrg_is_that_of_the_paper() -> None:
    expected = mrg(5000)
    assert Mrg32k3a().raw(5000, device="cpu").tolist() == expected
    # The check of RngStreams: the sum of numbers, and the first number, printed in L'Ecuyer's paper.
    first = Mrg32k3a().uniform(1, device="cpu")[0]
    assert math.isclose(first, 0.12701112204657714, rel_tol=0)
    u = Mrg32k3a().uniform(5000, device="cpu")
    assert np.array_equal(u, [(z or 4294967087) * (1 / 4294967088) for z in expected])


def test_mt_is_that_of_numpy() -> None:
    words = numpy_words(3000, 7)
    assert np.array_equal(Mt19937(7).raw((30, 100), device="cpu"), words.reshape(30, 100))
    assert Mt19937().raw(1, device="cpu")[0] == 3499211612
    # From any state that numpy is in.
    bits = np.random.MT19937(5)
    bits.random_raw(1000)
    state = bits.state["state"]
    own = Mt19937(key=state["key"], pos=state["pos"])
    assert np.array_equal(own.raw(2000, device="cpu"), bits.random_raw(2000))
    key, pos = own.state
    bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": pos}}
    assert np.array_equal(own.raw(700, device="cpu"), bits.random_raw(700))


@pytest.mark.filterwarnings("ignore:The balance properties")
def test_sobol_is_that_of_scipy() -> None:
    qmc = pytest.importorskip("scipy.stats", reason="scikit-learn brings it").qmc
    for dimensions, count in ((1, 1500), (37, 700), (4096, 40)):
        expected = qmc.Sobol(dimensions, scramble=False, bits=32).random(count)
        assert np.array_equal(Sobol(dimensions).uniform(count, device="cpu"), expected)
        assert np.array_equal(Sobol(dimensions, skip=17).uniform(20, device="cpu"), expected[17:37])


def test_shifted_points_keep_their_balance() -> None:
    points = Sobol(5, seed=3).uniform(256, device="cpu")
    assert not np.array_equal(points, Sobol(5).uniform(256, device="cpu"))
    for column in points.T:
        assert sorted((column * 256).astype(int)) == list(range(256))


# --- skips ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GENERATORS)
@given(first=st.integers(0, 1400), second=st.integers(0, 1400))
def test_skips_add_up_and_are_draws(name: str, first: int, second: int) -> None:
    make = GENERATORS[name]
    drawn = make()
    drawn.raw(first, device="cpu")
    drawn.skip(second)
    once = make().skip(first + second)
    assert np.array_equal(drawn.raw(50, device="cpu"), once.raw(50, device="cpu"))
    assert np.array_equal(
        make().raw(first + second + 5, device="cpu")[-5:], make().skip(first + second).raw(5, device="cpu")
    )


@pytest.mark.slow
def test_far_skips() -> None:
    assert np.array_equal(
        Mt19937(1).skip(2**70).skip(12345).raw(700, device="cpu"),
        Mt19937(1).skip(2**70 + 12345).raw(700, device="cpu"),
    )
    words = numpy_words(123_457 + 100, 9)
    assert np.array_equal(Mt19937(9).skip(123_457).raw(100, device="cpu"), words[-100:])
    apart = Mrg32k3a(stream=2, substream=3).raw(9, device="cpu")
    assert np.array_equal(apart, Mrg32k3a().skip(2 * 2**127 + 3 * 2**76).raw(9, device="cpu"))
    assert Mrg32k3a(Mrg32k3a().skip(99).state).raw(9, device="cpu").tolist() == mrg(108)[99:]


def test_streams_are_those_of_rngstreams() -> None:
    # The state of RngStreams' second stream, from its own jump matrices A1p127 and A2p127.
    assert Mrg32k3a(stream=1).state == (
        3692455944, 1366884236, 2968912127, 335948734, 4161675175, 475798818,
    )  # fmt: skip


# --- orders, lanes, threads, types ----------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("draw", often(2, ["raw", "normal", "uniform", "exponential"]))
def test_splits_and_the_reference(name: str, draw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "_STRETCHES", (64, 64, 64))
    make = GENERATORS[name]
    expected = getattr(make(), draw)(700, device="reference")
    for threads in (1, 3):
        found = getattr(make(), draw)(700, device="cpu", threads=threads)
        assert np.array_equal(found, expected), threads
    own = make()
    parts = [getattr(own, draw)(n, device="cpu") for n in (1, 0, 300, 2, 397)]
    assert np.array_equal(np.concatenate(parts), expected)


@pytest.mark.interpreted
@pytest.mark.parametrize("width", [1, 2, 8, 32])
def test_lanes(width: int) -> None:
    words = mrg(1000, 3)
    for size in (1, 127, 1000):
        steps = max(-(-size // width), 1)
        out, tile = np.zeros(size, np.uint32), np.empty((1, generators.TILE * width))
        states = generators.states_of([3] * 6, steps, width)
        unit = Mrg32k3a._unit
        fill = interpreted(generators.fill_lanes)
        fill(lanes_of(width), Mrg32k3a._word, unit, states, steps, tile, out)
        assert out.tolist() == words[:size]


@pytest.mark.parametrize("name", often(1, GENERATORS))
def test_single_precision(name: str) -> None:
    make = GENERATORS[name]
    double = make().uniform(999, device="cpu")
    single = make().uniform(999, device="cpu", dtype="float32")
    assert single.dtype == np.float32
    assert np.array_equal(single, double.astype(np.float32))


@pytest.mark.parametrize("name", often(1, GENERATORS))
def test_memory_of_the_caller(name: str) -> None:
    make = GENERATORS[name]
    for draw, dtype in (("raw", "uint32"), ("uniform", "float32")):
        asked: Any = {} if draw == "raw" else {"dtype": dtype}
        expected = getattr(make(), draw)(300, **asked)
        out = np.zeros(expected.shape, dtype, "F" if name == "sobol" else "C")
        own = make()
        assert getattr(own, draw)(300, out=out, **asked) is out
        assert np.array_equal(out, expected)
        assert np.array_equal(own.raw(9), make().skip(300).raw(9))
    for wrong in (np.zeros(299), out.astype("float64"), np.zeros((600, 6), "float32")[::2, ::2], [1]):
        with pytest.raises(InvalidInput, match="out: found"):
            own.normal(300, dtype="float32", out=wrong)
    out.flags.writeable = False
    with pytest.raises(InvalidInput, match="out: found one apart, or read-only, expected"):
        own.normal(300, dtype="float32", out=out)


def test_no_uniform_number_is_0_or_1() -> None:
    for dtype in ("float64", "float32"):
        out = np.empty(2, dtype)
        ends = np.array([0, 2**32 - 1], np.uint32)
        most = Uniform(1 - 2.0 ** (-24 if dtype == "float32" else -53))
        for k, word in enumerate(ends):
            out[k] = sample(most, word, Mt19937._unit)
        assert 0 < out[0] < 1e-9 and 1 - 1e-7 < out[1] < 1


def test_pieces_for_a_target() -> None:
    out = np.empty((2, 100), np.uint32)
    draws = Draws(Word(), Sobol._unit, Sobol(2)._source, out)
    for target in (CpuTarget(2), ReferenceTarget()):
        out[:] = 0
        target.launch(Sobol._problem, draws)
        assert out[:, :4].tolist() == [[0, 2**31, 3 << 30, 1 << 30], [0, 2**31, 1 << 30, 3 << 30]]


# --- distributions --------------------------------------------------------------------------------------


def quantile(p: Fraction) -> float:
    """The normal quantile by Newton's method in 60 digits."""
    from decimal import Decimal, getcontext

    getcontext().prec = 60
    target = Decimal(p.numerator) / Decimal(p.denominator) - Decimal("0.5")
    scale = 1 / (2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494")).sqrt()
    x = Decimal(statistics.NormalDist().inv_cdf(float(p)))
    for _ in range(3):
        term = total = x
        for k in range(1, 400):
            term *= -x * x / (2 * k)
            total += term / (2 * k + 1)
        x -= (total * scale - target) / (scale * (-x * x / 2).exp())
    return float(x)


def test_normal_numbers_are_within_two_ulp_of_the_quantile() -> None:
    words = [0, 1, 2, 5, 1000, 2**20, 2**30, 2**31 - 1, 2**31, 3 * 2**30, 2**32 - 3, 2**32 - 1]
    words += np.random.default_rng(2).integers(0, 2**32, 60).tolist()
    worst = 0.0
    for word in words:
        exact = quantile(Fraction(2 * word + 1, 2**33))
        found = normal_quantile((word + 0.5) * 2.0**-32)
        worst = max(worst, abs(found - exact) / math.ulp(exact))
    assert worst <= 2


def test_logarithms_are_within_a_unit_of_the_last_place() -> None:
    from decimal import Decimal, getcontext

    getcontext().prec = 40
    words = [0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, *np.random.default_rng(4).integers(0, 2**32, 500)]
    for word in map(int, words):
        exact = -(Decimal(2 * word + 1) / 2**33).ln()
        found = Decimal(minus_logarithm((word + 0.5) * 2.0**-32))
        assert abs(found - exact) <= Decimal(math.ulp(float(exact)))


@pytest.mark.parametrize("name", GENERATORS)
def test_compiled_numbers_are_the_interpreted_ones(name: str) -> None:
    for draw in ("normal", "exponential"):
        compiled, plain = (getattr(GENERATORS[name](), draw)(400, device=d) for d in ("cpu", "reference"))
        np.testing.assert_array_equal(compiled, plain)


@pytest.mark.slow
def test_normal_numbers_rise_with_their_words() -> None:
    rng = np.random.default_rng(3)
    for first in (
        0,
        2**32 - 5000,
        int(0.075 * 2**32) - 2500,
        int(0.925 * 2**32) - 2500,
        *rng.integers(0, 2**32 - 5000, 4),
    ):
        kind, unit = Normal(), Mt19937._unit
        values = [sample(kind, first + k, unit) for k in range(5000)]
        assert all(a < b for a, b in itertools.pairwise(values))


def test_moments() -> None:
    for name in ("mrg32k3a", "mt19937"):
        normal = GENERATORS[name]().normal(200_000, device="cpu")
        assert abs(normal.mean()) < 5 / math.sqrt(normal.size) and abs(normal.std() - 1) < 0.01
        exponential = GENERATORS[name]().exponential(200_000, device="cpu")
        assert abs(exponential.mean() - 1) < 5 / math.sqrt(normal.size) and exponential.min() > 0
    assert sample(Exponential(), 0, Mt19937._unit) == pytest.approx(33 * math.log(2))


# --- algebras -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alg", "most"), [(Modular(0, 1, 7), 6), (Modular(0, 1, 4294967087), 2**32)])
@given(data=st.data())
def test_algebras(alg: Any, most: int, data: st.DataObject) -> None:
    a, b, c = (data.draw(st.integers(0, most)) % getattr(alg, "modulus", most + 1) for _ in range(3))
    assert choice(alg, a, b) == choice(alg, b, a)
    assert choice(alg, a, choice(alg, b, c)) == choice(alg, choice(alg, a, b), c)
    assert extend(alg, a, extend(alg, b, c)) == extend(alg, extend(alg, a, b), c)
    assert extend(alg, a, choice(alg, b, c)) == choice(alg, extend(alg, a, b), extend(alg, a, c))
    assert choice(alg, a, alg.zero) == a == extend(alg, a, alg.one)
    assert extend(alg, a, alg.zero) == alg.zero


@given(st.integers(0, 40), st.integers(0, 40))
def test_powers_of_a_step(first: int, second: int) -> None:
    alg, step = Modular(0, 1, 1009), np.array([[0, 1, 0], [0, 0, 1], [5, 7, 0]], object)
    found = matrix_product(alg, power(alg, step, first), power(alg, step, second))
    assert np.array_equal(found, power(alg, step, first + second))


# --- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Mrg32k3a(-1), "seed: found -1, expected a whole number from 0 to 4294967086"),
        (lambda: Mrg32k3a(0), "seed: found three times 0, expected another number in either three"),
        (lambda: Mrg32k3a([1, 2]), "seed: found 2 numbers, expected one, or six"),
        (lambda: Mrg32k3a([1, 1, 1, 1, 1, 4294944443]), "a whole number from 0 to 4294944442"),
        (lambda: Mrg32k3a(stream=-1), "stream: found -1, expected a whole number of at least 0"),
        (lambda: Mrg32k3a().skip(-1), "skip: found -1, expected a whole number of at least 0"),
        (lambda: Mrg32k3a().skip(1.5), "skip: found 1.5, expected a whole number"),  # type: ignore[arg-type]
        (lambda: Mrg32k3a().raw(-1), "size: found -1, expected a whole number of at least 0"),
        (lambda: Mrg32k3a().uniform(1, dtype="int8"), "dtype: found 'int8', expected one of"),  # type: ignore[arg-type]
        (lambda: Mt19937(2**32), "seed: found 4294967296, expected a whole number from 0 to 4294967295"),
        (lambda: Mt19937(key=[1, 2]), r"key: found int64 \(2,\), expected 624 words of 32 bits"),
        (lambda: Mt19937(key=[0] * 624), r"\(624,\), expected 624 words of 32 bits, not 0 alone"),
        (lambda: Mt19937(key=[1] * 624, pos=625), "pos: found 625, expected a whole number from 0 to 624"),
        (lambda: Sobol(0), "dimensions: found 0, expected a whole number from 1 to 4096"),
        (lambda: Sobol(4097), "dimensions: found 4097, expected a whole number from 1 to 4096"),
        (lambda: Sobol(1, skip=2**32 - 2).raw(3), "size: found 3, expected a whole number from 0 to 2"),
        (lambda: Sobol(1).raw((2, 2)), r"size: found \(2, 2\), expected the number of points"),
    ],
)  # fmt: skip
def test_bad_input(call: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        call()
