"""The worked example and the figure of weights of the published models: oracles and package."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.cases import Junction, make_germline, run_chain, run_enumeration
from support.examples import often
from support.oracles import (
    Dp2Counts,
    count_dp1,
    count_dp2,
    end_ways,
    enumerate_paths,
    extended_d,
    fragment_ways,
)
from support.problems import ALGEBRAS, SELDOM, TARGETS, WORKED_EXAMPLE
from support.simulation import simulate_dp2

from plait.lang.lanes import LANES
from plait.vdj.models import PathModel, end_weight

READ = "ACCTGCAGTGCAGACCTGGGGAACACAGAAGTCTTC"
V, D, J = "ACCTGCAGTGCAGA", "GGGACAGGGGGC", "CAAACACAGAAGTCTTC"

DP1 = {
    "positions": [0, 0, 0, 2, 13, 47, 137, 400, 720, 1094, 1525],
    "once": [0, 0, 0, 2, 13, 47, 137, 240, 360, 494, 645],
    "none": [0, 0, 0, 2, 13, 47, 137, 232, 342, 464, 601],
}
#: By strands and pi: (full, zero-length D, no D) for nu = 0, 3, 5 and 10.
DP2 = {
    (1, 0): [(0, 0, 0), (40, 0, 0), (776, 260, 0), (12444, 7020, 10)],
    (1, 2): [(0, 0, 0), (3294, 0, 0), (65799, 22680, 0), (1070820, 612360, 90)],
    (1, 4): [(0, 0, 0), (25500, 0, 0), (527000, 187500, 0), (8729500, 5062500, 250)],
    (2, 2): [(0, 0, 0), (25500, 0, 0), (512250, 177500, 0), (8359500, 4792500, 250)],
    (2, 4): [(0, 0, 0), (268272, 0, 0), (5581224, 1997460, 0), (92749212, 53931420, 810)],
}
NUS = (0, 3, 5, 10)


def test_the_example_is_the_published_one() -> None:
    (junction,) = WORKED_EXAMPLE.junctions
    germline = WORKED_EXAMPLE.germline
    assert junction.sequence == READ
    assert [a.cdr3_end for a in germline.alleles()] == [V, D, J]


@pytest.mark.parametrize("empty_d", DP1)
def test_dp1_by_its_nested_sums(empty_d: str) -> None:
    assert count_dp1(READ, V, [D], J, empty_d=empty_d) == DP1[empty_d]


@pytest.mark.parametrize("empty_d", often(1, DP1))
def test_dp1_by_building_every_string(empty_d: str) -> None:
    assert enumerate_paths(READ, V, [D], J, most=2, empty_d=empty_d) == DP1[empty_d][:3]


@pytest.mark.parametrize("count", [simulate_dp2, count_dp2])
@pytest.mark.parametrize(("strands", "pi"), DP2)
def test_dp2_oracles(strands: int, pi: int, count: Any) -> None:
    for nu, (full, zero_d, no_d) in zip(NUS, DP2[strands, pi], strict=True):
        assert count(READ, V, [D], J, pi=pi, limits=(nu, nu), strands=strands) == Dp2Counts(full, zero_d)
        assert count(READ, V, [], J, pi=pi, limits=(nu,), strands=strands) == Dp2Counts(no_d, no_d)


def on_every_target(algebras: tuple[str, ...]) -> list[Any]:
    return [
        pytest.param(target, algebra, width, id=f"{target}-{algebra}-{width}",
                     marks=[pytest.mark.interpreted] if target == "reference"
                     else [pytest.mark.slow] * ((target, algebra, width) in SELDOM))
        for target, choice in TARGETS.items()
        for algebra in algebras
        for width in sorted({min(choice.widths[algebra, "models"]), max(choice.widths[algebra, "models"])})
    ]  # fmt: skip


@pytest.mark.parametrize(("target", "algebra", "width"), on_every_target(("count", "probability")))
def test_dp2(target: str, algebra: str, width: int) -> None:
    choice = ALGEBRAS[algebra]
    for strands in (1, 2):
        pis = tuple(pi for s, pi in DP2 if s == strands)
        model = PathModel(strands=strands, pi=4, nu=10, sweep_pi=pis, sweep_nu=NUS)
        batch = replace(WORKED_EXAMPLE, model=model)
        found = run_chain(batch, TARGETS[target].make(), choice.algebra, LANES[width], dtype=choice.dtype)
        counts = zip(found["full"][0][0], found["empty"][0][0], found["none"][0], strict=True)
        assert list(counts) == [triple for pi in pis for triple in DP2[strands, pi]]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("reference", marks=pytest.mark.interpreted),
        pytest.param("cpu", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("empty_d", DP1)
def test_dp1(target: str, empty_d: Any) -> None:
    batch = replace(WORKED_EXAMPLE, model=PathModel(name="dp1", empty_d=empty_d))
    width = max(TARGETS[target].widths["count", "insertions"])
    found = run_chain(batch, TARGETS[target].make(), ALGEBRAS["count"].algebra, LANES[width])
    assert found["full"] == [[DP1[empty_d]]]


@pytest.mark.slow
def test_dp1_by_enumeration() -> None:
    batch = replace(WORKED_EXAMPLE, model=PathModel(name="exhaustive", max_n=4))
    found = run_enumeration(batch, TARGETS["cpu"].make())
    assert found["full"] == [[DP1["positions"][:5]]]
    assert found["none"] == [[0] * 5]


@pytest.mark.interpreted
def test_the_figure_of_weights() -> None:
    one, two = ([end_weight(k - 10, 4, strands) for k in range(16)] for strands in (1, 2))
    assert one == [5] * 11 + [4, 3, 2, 1, 0]
    assert two == [9] * 11 + [8, 6, 4, 2, 0]
    # Extension alone, without erosion: the ways that one more nucleotide of extension brings.
    assert [end_weight(d, 4, 1) - end_weight(d + 1, 4, 1) for d in range(5)] == [1, 1, 1, 1, 1]
    assert [end_weight(d, 4, 2) - end_weight(d + 1, 4, 2) for d in range(5)] == [1, 2, 2, 2, 2]
    for pi in range(6):
        for strands in (1, 2):
            deltas = range(-3, pi + 3)
            assert [end_weight(d, pi, strands) for d in deltas] == [end_ways(d, pi, strands) for d in deltas]


@pytest.mark.interpreted
@pytest.mark.parametrize(("fragment", "ways"), [("A", 50), ("T", 5)])
def test_hidden_paths_of_a_fragment(fragment: str, ways: int) -> None:
    assert fragment_ways(fragment, D, pi=4, strands=1) == ways
    d_ext = extended_d(D, 4)
    starts = [s for s, symbol in enumerate(d_ext) if symbol == fragment]
    assert sum(end_weight(4 - s, 4, 1) * end_weight(s + 1 - 4 - len(D), 4, 1) for s in starts) == ways


@pytest.mark.interpreted
def test_hidden_paths_of_a_fragment_in_a_chain() -> None:
    # V and J match nowhere and are eroded away, in five ways each.
    germline = make_germline(["GGG"], [D], ["CCC"])
    batch = replace(WORKED_EXAMPLE, germline=germline, model=PathModel(nu=0), junctions=(Junction("A"),))
    found = run_chain(batch, TARGETS["reference"].make(), ALGEBRAS["count"].algebra, LANES[1])
    assert found["full"] == [[[5 * 50 * 5]]]
