"""The public call gives the oracles' counts, put under their names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.answers import expected
from support.cases import Answer, Batch
from support.examples import examples, often
from support.problems import PROBLEMS, WORKED_EXAMPLE

from plait.vdj import PathCounts, count_paths
from plait.vdj.models import PathModel

pytestmark = pytest.mark.interpreted(alone=True)

COUNTED = [name for name, problem in PROBLEMS.items() if problem.oracle is expected]


def count(batch: Batch) -> PathCounts:
    germline = batch.germline
    return count_paths(
        [item.sequence.lower() for item in batch.junctions],
        [germline.v[item.v].name for item in batch.junctions],
        [germline.j[item.j].name for item in batch.junctions],
        germline=germline,
        model=batch.model,
        device="reference",
    )


def assert_dp2(found: PathCounts, wanted: Answer, model: PathModel) -> None:
    lanes = len(model.pis), len(model.nus)
    grids = {name: np.array(wanted[name]) for name in ("full", "empty", "none", "pair") if name in wanted}
    grids = {name: grid.reshape(*grid.shape[:-1], *lanes) for name, grid in grids.items() if grid.size}
    axis_pi, axis_nu = model.axes
    inner = np.ix_([model.pis.index(pi) for pi in axis_pi], [model.nus.index(nu) for nu in axis_nu])
    single = model.pis.index(model.pi), model.nus.index(model.nu)
    names = {
        "full": ("by_d", "sweep_by_d"),
        "empty": ("zero_d_by_d", "zero_d_sweep_by_d"),
        "none": ("no_d", "no_d_sweep"),
        "pair": ("by_dd", "sweep_by_dd"),
    }
    for name, grid in grids.items():
        one, swept = (getattr(found, attribute) for attribute in names[name])
        assert np.array_equal(one, grid[(..., *single)])
        if model.is_sweep:
            assert np.array_equal(swept, grid[(..., *inner)])
    summed = "pair" if "pair" in grids else "full" if "full" in grids else "none"
    assert np.array_equal(found.path_count, grids[summed][(..., *single)].reshape(len(found), -1).sum(axis=1))


def assert_by_n(found: PathCounts, wanted: Answer) -> None:
    by_n = {name: np.array(wanted[name]) for name in ("full", "none", "pair") if name in wanted}
    names = {"full": ("by_n_by_d", "by_d"), "none": ("no_d_by_n", "no_d"), "pair": ("by_n_by_dd", "by_dd")}
    for name, counts in by_n.items():
        if counts.size:
            each, summed = (getattr(found, attribute) for attribute in names[name])
            assert np.array_equal(each, counts)
            assert np.array_equal(summed, counts.sum(axis=-1))
    total = "pair" if "pair" in by_n else "full" if by_n["full"].size else "none"
    assert np.array_equal(found.path_count, by_n[total].reshape(len(found), -1).sum(axis=1))


@pytest.mark.parametrize("problem", often(3, COUNTED))
@examples(20)
@given(data=st.data())
def test_counts(problem: str, data: st.DataObject) -> None:
    drawn = data.draw(PROBLEMS[problem].inputs)
    long = tuple(item for item in drawn.junctions if len(item.sequence) >= 6)
    assume(long)
    batch = replace(drawn, junctions=long)
    found, wanted = count(batch), expected(batch)
    assert found.ok.all()
    if batch.model.name == "dp2":
        assert_dp2(found, wanted, batch.model)
    else:
        assert_by_n(found, wanted)
    for k, item in enumerate(batch.junctions):
        allowed = batch.germline.allowed_d(batch.germline.j[item.j])
        assert found.allowed[k].tolist() == list(allowed)
    for k, row in enumerate(wanted.get("regions", ())):
        assert found.d_match[k] == row[7]
        assert [found.regions[f"ndn_{base}"][k] for base in "atcg"] == row[16:20]
        assert found.regions["vj_gap"][k] == len(batch.junctions[k].sequence) - row[0] - row[1]


def test_regions_of_the_worked_example() -> None:
    regions = {name: column.tolist() for name, column in count(WORKED_EXAMPLE).regions.items()}
    assert (regions["v_match_length"], regions["j_match_length"]) == ([14], [15])
    assert regions["vj_gap"] == [7]
    # CCTGGGG lies between them; the longest D matches are its GGGG and ACAG inside the J end.
    assert (regions["d_match_length"], regions["d_match_start"], regions["d_match_end"]) == ([4], [17], [28])
    assert (regions["vd_gap"], regions["dj_gap"]) == ([3], [-7])
    assert (regions["n1_length"], regions["n2_length"]) == ([3], [0])
    assert [regions[f"n1_{base}"] for base in "acgt"] == [[0], [2], [0], [1]]
    assert [regions[f"ndn_{base}"] for base in "acgt"] == [[0], [2], [4], [1]]
