"""The parity matrix of path counting on the CUDA target.

On a device all problems are tried with all edge cases and drawn ones, in the simulator a few of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import problems
from support.cases import Batch
from support.problems import PROBLEMS, Combination, TargetChoice, solve

from plait.devices.cuda_target import CudaTarget
from plait.lang.lanes import host_lanes

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "").strip() not in ("", "0")
#: Junctions of a batch that are simulated.
FEW = 2


@pytest.fixture(scope="module", autouse=True)
def cuda() -> Iterator[None]:
    """A target of that name in the matrix."""
    with pytest.MonkeyPatch.context() as patch:
        choice = TargetChoice(make=lambda: CudaTarget([0], 1), widths={})
        patch.setitem(problems.TARGETS, "cuda", choice)  # type: ignore[arg-type]
        yield


def combinations() -> list[Combination]:
    """Counts for every problem that a GPU serves, and every split of them."""
    found = []
    for problem in PROBLEMS.values():
        if problem.algebras[0] != "count" or problem.name.startswith("vddj"):
            # That would only compile code for the CPU again.
            continue
        for schedule in problem.schedules:
            for split in problems.SPLITS:
                width = 1 if schedule == "enumeration" else host_lanes().width
                found.append(Combination(problem.name, schedule, "cuda", "count", width, split))
    return found


def assert_parity(combination: Combination, batch: Batch) -> None:
    wanted = PROBLEMS[combination.problem].oracle(batch)
    found = solve(combination, batch)
    differing = {name: (found[name], wanted[name]) for name in wanted if found[name] != wanted[name]}
    assert not differing, f"{combination.id}: found, wanted: {differing}"


def shortened(batch: Batch) -> Batch:
    """A batch that a simulator is done with soon."""
    return batch if not SIMULATED else Batch(batch.germline, batch.model, batch.junctions[-FEW:])


WHOLE = [c for c in combinations() if c.split == "whole"]
SPLIT = [c for c in combinations() if c.split != "whole"]


@pytest.mark.gpu
@pytest.mark.cuda_simulator
@pytest.mark.parametrize("combination", [pytest.param(c, id=c.id) for c in WHOLE])
def test_edge_cases(combination: Combination) -> None:
    batches = PROBLEMS[combination.problem].edge_cases
    for batch in batches[2:3] if SIMULATED else batches:
        assert_parity(combination, shortened(batch))


@pytest.mark.gpu
@pytest.mark.parametrize("combination", [pytest.param(c, id=c.id) for c in SPLIT])
def test_splits(combination: Combination) -> None:
    for batch in PROBLEMS[combination.problem].edge_cases:
        assert_parity(combination, batch)


@pytest.mark.gpu
@pytest.mark.parametrize("combination", [pytest.param(c, id=c.id) for c in WHOLE])
@given(data=st.data())
@settings(max_examples=25)
def test_drawn_cases(combination: Combination, data: st.DataObject) -> None:
    assert_parity(combination, data.draw(PROBLEMS[combination.problem].inputs))
