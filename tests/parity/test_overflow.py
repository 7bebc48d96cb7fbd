"""Counts near and beyond 64 bits: saturating counts stick exactly where Python's integers pass the limit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import Answer, Batch, Junction, make_germline, run_chain
from support.examples import examples
from support.problems import WORKED_EXAMPLE
from support.strategies import batches, dp1_models, dp2_models

from plait.devices.target import CpuTarget, ReferenceTarget
from plait.lang.algebras import BIG_COUNT, COUNT, SATURATING_COUNT
from plait.lang.lanes import LANES, host_lanes
from plait.vdj.models import PathModel

COUNTS = ("full", "empty", "none", "pair")
LIMIT = int(SATURATING_COUNT.limit)


def flat(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        yield from itertools.chain.from_iterable(map(flat, value))
    else:
        yield value


def big(batch: Batch) -> Answer:
    return run_chain(batch, ReferenceTarget(), BIG_COUNT, LANES[1], dtype=object)


def saturating(batch: Batch, target: Any, limit: int) -> Answer:
    algebra = SATURATING_COUNT._replace(limit=np.int64(limit))
    return run_chain(batch, target, algebra, LANES[1])


def assert_sticks(batch: Batch, target: Any, limit: int) -> None:
    true, found = big(batch), saturating(batch, target, limit)
    for name in COUNTS:
        assert list(flat(found[name])) == [min(count, limit) for count in flat(true[name])]


#: Runs of N make every count large: each N nucleotide opposite one of them has four choices.
LARGE = replace(
    WORKED_EXAMPLE,
    model=PathModel(pi=4, nu=25, sweep_pi=(0, 4), sweep_nu=(0, 12, 25)),
    junctions=tuple(Junction("ACCTGCAGTGCA" + "N" * n + "GAAGTCTTC") for n in (0, 10, 25, 26, 27, 28, 40)),
)


@pytest.mark.interpreted(alone=True)
@examples(40)
@given(
    st.one_of(
        batches("vdj", dp2_models(), codes=True),
        batches("vdj", dp1_models(), codes=True),
        batches("vddj", dp2_models(pi=1, nu=2), longest=4, most=1),
    ),
    st.integers(1, 2000),
)
def test_any_limit(batch: Batch, limit: int) -> None:
    assert_sticks(batch, ReferenceTarget(), limit)


@pytest.mark.slow
@examples(40)
@given(batch=batches("vdj", dp2_models(), codes=True), limit=st.integers(1, 2000))
def test_any_limit_compiled(batch: Batch, limit: int) -> None:
    assert_sticks(batch, CpuTarget(1), limit)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("reference", marks=pytest.mark.interpreted(alone=True)),
        pytest.param("cpu", marks=pytest.mark.slow),
    ],
)
def test_the_limit_of_64_bits(target: str) -> None:
    true = list(flat(big(LARGE)["full"]))
    assert any(0 < count < LIMIT for count in true)
    assert any(count > LIMIT for count in true)
    assert_sticks(LARGE, ReferenceTarget() if target == "reference" else CpuTarget(1), LIMIT)


@pytest.mark.slow
def test_what_the_limit_itself_means() -> None:
    # A count one below a limit is exact, one at it is not told from a larger one.
    (count,) = flat(run_chain(WORKED_EXAMPLE, CpuTarget(1), COUNT, host_lanes())["full"])
    for limit, seen in ((count + 1, count), (count, count), (count - 1, count - 1)):
        assert list(flat(saturating(WORKED_EXAMPLE, CpuTarget(1), limit)["full"])) == [seen]


@pytest.mark.interpreted(alone=True)
@given(
    st.one_of(
        batches("vdj", dp2_models(), codes=True),
        batches("vdj", dp1_models(most=6), codes=True),
        batches("vj", dp2_models(nu=6), codes=True),
        batches("vddj", dp2_models(pi=2, nu=2), codes=True, longest=4, most=1),
    )
)
def test_no_count_exceeds_its_bound(batch: Batch) -> None:
    found = big(batch)
    for k, bound in enumerate(found["bound"]):
        assert max(max(flat(found[name][k]), default=0) for name in COUNTS) <= bound


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize(("nu", "unknown"), [(10, 30), (10, 600), (200, 30)])
def test_the_bound_is_finite_where_the_count_is(nu: int, unknown: int) -> None:
    germline = make_germline(["ACC"], ["GGAC"], ["TTC"])
    batch = Batch(germline, PathModel(nu=nu, pi=0), (Junction("ACC" + "N" * unknown + "TTC"),))
    # Powers and products that overflow on the way to the bound are cut off.
    with np.errstate(over="ignore"):
        found = big(batch)
    assert max(flat(found["full"])) <= found["bound"][0] < float("inf")
