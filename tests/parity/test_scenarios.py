"""The chain with probabilities: the same bodies sum over recombination scenarios, and find the best one.

Probability is compared within 1000 roundings: a sum has at most a few hundred terms in a row here (numbers of
insertions, matches from one position, positions), and a product fewer than twenty factors. With weights that
are powers of two, the products of MaxProduct round nowhere, and it is compared exactly.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import Answer, Batch, Junction, ends_of, run_chain
from support.examples import examples
from support.oracles import LETTERS, choices
from support.problems import WORKED_EXAMPLE
from support.scenarios import ScenarioModel, natural_model, scenario_weights, weighted_tables
from support.strategies import CODES, germline_sets, junctions

from plait.devices.target import CpuTarget, ReferenceTarget
from plait.lang.algebras import MAX_PRODUCT, PROBABILITY
from plait.lang.lanes import LANES, host_lanes
from plait.vdj.models import PathModel

BOUND = 1000 * 2.0**-53
#: Probability that an N nucleotide is what a symbol stands for, and of the likeliest such nucleotide.
ANY_LETTER = {symbol: choices(symbol) / 4 for symbol in LETTERS + CODES}
ONE_LETTER = dict.fromkeys(LETTERS + CODES, 0.25)
LENGTHS = ((0.4, 0.3, 0.2, 0.1), (0.5, 0.125, 0.25, 0.125))


@st.composite
def cases(draw: st.DrawFn) -> Batch:
    germline = draw(germline_sets("vdj", codes=draw(st.booleans()), alleles=1, longest=5))
    germline = replace(germline, d=germline.d[:1], d_j_order={})
    model = PathModel(pi=draw(st.integers(0, 2)), nu=3)
    items = st.lists(junctions(germline, model, codes=True), min_size=1, max_size=2)
    return Batch(germline, model, tuple(draw(items)))


def natural(batch: Batch, letter: dict[str, float]) -> ScenarioModel:
    v, j = ends_of(batch, batch.junctions[0])
    (d,) = (a.sequence for a in batch.germline.d)
    return natural_model(v, d, j, pi=batch.model.pi, n1=LENGTHS[0], n2=LENGTHS[1], letter=letter)


def dyadic(model: ScenarioModel) -> ScenarioModel:
    """Every probability rounded to a power of two, so that products are exact."""

    def near(x: float) -> float:
        return 2.0 ** round(math.log2(x)) if x else 0.0

    return replace(
        model,
        v=[near(x) for x in model.v],
        j=[near(x) for x in model.j],
        n1=[near(x) for x in model.n1],
        n2=[near(x) for x in model.n2],
        d={piece: near(x) for piece, x in model.d.items()},
        hidden={piece: near(x) for piece, x in model.hidden.items()},
        no_d_left=near(model.no_d_left),
    )


def run(batch: Batch, scenarios: ScenarioModel, target: Any, algebra: Any, lanes: Any) -> Answer:
    tables = weighted_tables(batch.germline, batch.model, scenarios)
    return run_chain(batch, target, algebra, lanes, dtype=np.float64, tables=tables)


def scenario_lists(batch: Batch, scenarios: ScenarioModel) -> list[tuple[list[float], list[float]]]:
    """For every junction: weights of all scenarios with the D gene, and of all without one."""
    (d,) = (a.sequence for a in batch.germline.d)
    return [
        tuple(list(scenario_weights(item.sequence, v, gene, j, scenarios)) for gene in (d, None))
        for item in batch.junctions
        for v, j in [ends_of(batch, item)]
    ]  # type: ignore[misc]


def assert_sums(batch: Batch, target: Any, lanes: Any) -> None:
    scenarios = natural(batch, ANY_LETTER)
    found = run(batch, scenarios, target, PROBABILITY, lanes)
    for k, (with_d, without) in enumerate(scenario_lists(batch, scenarios)):
        assert found["full"][k][0][0] == pytest.approx(math.fsum(with_d), rel=BOUND, abs=0)
        assert found["none"][k][0] == pytest.approx(math.fsum(without), rel=BOUND, abs=0)


def assert_best(batch: Batch, target: Any, lanes: Any) -> None:
    scenarios = dyadic(natural(batch, ONE_LETTER))
    found = run(batch, scenarios, target, MAX_PRODUCT, lanes)
    for k, (with_d, without) in enumerate(scenario_lists(batch, scenarios)):
        assert found["full"][k][0][0] == max(with_d, default=0.0)
        assert found["none"][k][0] == max(without, default=0.0)


@pytest.mark.interpreted(alone=True)
@given(cases(), st.sampled_from((1, 8)))
def test_sum_and_best_scenario(batch: Batch, width: int) -> None:
    assert_sums(batch, ReferenceTarget(), LANES[width])
    assert_best(batch, ReferenceTarget(), LANES[width])


# The package calls no compiled chain of counts in these algebras, which take half a minute to compile.
@pytest.mark.slow
@examples(30)
@given(batch=cases())
def test_sum_and_best_scenario_compiled(batch: Batch) -> None:
    assert_sums(batch, CpuTarget(1), host_lanes())
    assert_best(batch, CpuTarget(1), host_lanes())


@pytest.mark.interpreted(alone=True)
def test_best_scenario_with_any_weights() -> None:
    # Products of other weights are rounded, in another order than the oracle's.
    batch = replace(WORKED_EXAMPLE, model=PathModel(pi=4, nu=3))
    scenarios = natural(batch, ONE_LETTER)
    found = run(batch, scenarios, ReferenceTarget(), MAX_PRODUCT, LANES[1])
    ((with_d, without),) = scenario_lists(batch, scenarios)
    assert found["full"][0][0][0] == pytest.approx(max(with_d), rel=20 * 2.0**-53, abs=0)
    assert found["none"][0][0] == max(without, default=0.0)


@pytest.mark.slow
@pytest.mark.interpreted(alone=True)
def test_the_worked_example() -> None:
    batch = replace(WORKED_EXAMPLE, model=PathModel(pi=4, nu=3))
    assert_sums(batch, ReferenceTarget(), LANES[8])
    assert_best(batch, ReferenceTarget(), LANES[8])


@pytest.mark.slow  # As above.
def test_the_probabilities_of_all_reads_add_up_to_one() -> None:
    # No palindromes: with them, some scenarios would have nothing to mirror.
    germline = WORKED_EXAMPLE.germline
    small = [
        replace(allele, sequence=sequence, anchor=anchor)
        for allele, sequence, anchor in zip(germline.alleles(), ("A", "GC", "TAC"), (0, None, 0), strict=True)
    ]
    germline = replace(germline, v=(small[0],), d=(small[1],), j=(small[2],))
    reads = ["".join(letters) for n in range(9) for letters in itertools.product(LETTERS, repeat=n)]
    batch = Batch(germline, PathModel(pi=0, nu=1), tuple(map(Junction, reads)))
    scenarios = natural_model("A", "GC", "TAC", pi=0, n1=(0.75, 0.25), n2=(0.5, 0.5), letter=ANY_LETTER)
    found = run(batch, scenarios, CpuTarget(1), PROBABILITY, host_lanes())
    assert math.fsum(rows[0][0] for rows in found["full"]) == pytest.approx(1, rel=1e-12)
    assert math.fsum(lanes[0] for lanes in found["none"]) == pytest.approx(1, rel=1e-12)
    with_paths = sum(rows[0][0] > 0 for rows in found["full"])
    assert 0 < with_paths < len(reads)


@examples(10)
@given(cases())
def test_the_distributions_are_distributions(batch: Batch) -> None:
    model = natural(batch, ANY_LETTER)
    d = [*model.d.values(), *model.hidden.values(), model.no_d_left]
    for shares in (model.v, model.j, model.n1, model.n2, d):
        assert math.fsum(shares) == pytest.approx(1)
