"""The parity matrix of alignment: every mode, schedule, target, type, width and split gives one alignment."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.alignment import AlignmentCase, BestAlignment, score_columns
from support.alignment_batches import AlignmentBatch, long_batches
from support.alignment_problems import (
    ALIGNMENT_PROBLEMS,
    ALIGNMENT_TARGETS,
    NUMBERS,
    SOURCES,
    AlignmentCombination,
    alignment_combinations,
    solve_alignment,
)
from support.alignment_runs import swept
from support.alignment_solvers import as_told
from support.examples import FULL, examples

from plait.dp.pairs import tiles as tile_grid

COMBINATIONS = list(alignment_combinations())
ON_TARGETS = {
    key: list(group) for key, group in groupby(COMBINATIONS, key=lambda c: (c.problem, c.schedule, c.target))
}
#: Schedules of one query with many targets.
ONE_QUERY = ("inter_sequence",)
LONGEST = 170


@pytest.fixture(autouse=True, scope="module")
def small_tiles() -> Iterator[None]:
    """Tiles of a few stripes, so that small pairs have many of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tile_grid, "_LEAST_TILE", 1)
        patch.setattr(tile_grid, "_LARGEST_TILE", 64)
        yield


@functools.cache
def wanted(case: AlignmentCase) -> BestAlignment:
    found = ALIGNMENT_PROBLEMS[case.mode].oracle(case)
    assert found is not None
    assert score_columns(case, found.start, found.columns) == found.score
    return found


@functools.cache
def wanted_of_rows(case: AlignmentCase) -> BestAlignment:
    found = swept(case)
    assert found is not None
    return found


def assert_parity(
    combination: AlignmentCombination,
    batch: AlignmentBatch,
    oracle: Callable[[AlignmentCase], BestAlignment] = wanted,
) -> bool:
    """Compare all answers; whether the combination can answer at all."""
    found = solve_alignment(combination, batch)
    if found is None:
        return False
    for case, answer in zip(batch.cases, found, strict=True):
        right = as_told(oracle(case), answer)
        assert answer == right, f"{combination.id}: {answer}, not {right}, of {case}"
    return True


def marks(target: str) -> list[Any]:
    return [pytest.mark.interpreted(alone=True)] if target == "reference" else []


def in_every_run(combination: AlignmentCombination) -> bool:
    """Whether it is tried in every run: of the many interpreted ones a fifth, along diagonals."""
    if combination.seldom:
        return False
    if combination.target != "reference" or combination.schedule not in ("antidiagonal", "tiles"):
        return True
    alike = ON_TARGETS[combination[:3]]
    kernels = list(dict.fromkeys(c[3:6] for c in alike))
    splits = list(dict.fromkeys(c.split for c in alike))
    mode = list(ALIGNMENT_PROBLEMS).index(combination.problem)
    return (kernels.index(combination[3:6]) + splits.index(combination.split) + mode) % 5 == 0


def compiled_already(combination: AlignmentCombination, batch: AlignmentBatch) -> bool:
    """Whether only those kernels run that stand in the matrix, not for example one for wider scores too."""
    if combination.target == "reference":
        return True
    if combination.schedule == "public":
        every = combination.split in ("auto", "threads") and batch.mode != "extension"
        linear = combination.split == "many" and batch.linear
        return (every or len(batch.scores) <= 5) and not batch.wide and batch.gap_open < 100 and not linear
    if combination.schedule in ONE_QUERY:
        if batch.mode == "semiglobal" and "query_end" not in batch.free_ends:
            return False
        return not batch.wide or (combination.form == "affine" and batch.mode == "local")
    return True


def shared_out(combination: AlignmentCombination, number: int) -> Iterator[AlignmentBatch]:
    """What a combination is tried with; interpreted ones, which take longer, get some of all in turn."""
    every = ALIGNMENT_PROBLEMS[combination.problem].edge_cases
    batches = [batch for batch in every if compiled_already(combination, batch)]
    interpreted = combination.target == "reference"
    for turn in range(len(batches)):
        place = (turn + 5 * number) % len(batches)
        batch = batches[place]
        if combination.split == "many":
            batch = batch.only(*range(16)).against(place)
        elif combination.schedule in ONE_QUERY:
            batch = batch.against(place)
        if interpreted and combination.split != "many":
            pairs = 5 if combination.schedule in ONE_QUERY else 2
            batch = batch.only(*(number + 4 * k for k in range(pairs)))
        yield batch


def seldom(combination: AlignmentCombination) -> list[Any]:
    return [] if in_every_run(combination) else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("number", "combination"),
    [pytest.param(k, c, id=c.id, marks=[*marks(c.target), *seldom(c)]) for k, c in enumerate(COMBINATIONS)],
)
def test_edge_cases(number: int, combination: AlignmentCombination) -> None:
    most = 99
    if combination.target == "reference":
        most = 2 if FULL and combination.schedule not in ONE_QUERY else 1
    answered = 0
    for batch in shared_out(combination, number):
        answered += assert_parity(combination, batch)
        if answered == most:
            break
    assert answered > 0


@pytest.mark.parametrize(
    "combination",
    [
        pytest.param(c, id=c.id, marks=seldom(c))
        for c in COMBINATIONS
        if c.target == "cpu" and c.schedule in ("antidiagonal", "tiles", "public")
    ],
)
def test_several_stripes(combination: AlignmentCombination) -> None:
    answered = [
        assert_parity(combination, batch, wanted_of_rows)
        for batch in long_batches(combination.problem, LONGEST)
        if compiled_already(combination, batch)
    ]
    assert any(answered)


@pytest.mark.parametrize(
    "key", [pytest.param(key, id="-".join(key), marks=marks(key[2])) for key in ON_TARGETS]
)
@given(data=st.data())
@examples(20)
def test_drawn_cases(key: tuple[str, str, str], data: st.DataObject) -> None:
    problem = ALIGNMENT_PROBLEMS[key[0]]
    batch = data.draw(problem.inputs)
    if key[1] in ONE_QUERY:
        batch = batch.against(0)
    combinations = [c for c in ON_TARGETS[key] if FULL or c.target == "reference" or in_every_run(c)]
    if key[2] == "reference":
        combinations = [data.draw(st.sampled_from(combinations))]
    for combination in combinations:
        if compiled_already(combination, batch):
            assert_parity(combination, batch)


@pytest.mark.parametrize("mode", ALIGNMENT_PROBLEMS)
@pytest.mark.parametrize("target", [pytest.param(t, marks=marks(t)) for t in ALIGNMENT_TARGETS])
def test_empty_sequences(mode: str, target: str) -> None:
    for batch in ALIGNMENT_PROBLEMS[mode].edge_cases[: 3 if target == "reference" else 7]:
        query, one = batch.queries[3], batch.targets[3]
        queries, targets = ((), query, query, (), ()), (query, (), one, (), one)
        some = dataclasses.replace(batch, queries=queries, targets=targets)
        for combination in COMBINATIONS:
            if combination[:3] == (mode, "public", target) and combination.split != "many":
                assert assert_parity(combination, some)


@pytest.mark.interpreted(alone=True)
def test_the_matrix_has_every_part() -> None:
    parts = [set(column) for column in zip(*COMBINATIONS, strict=True)]
    assert parts[0] == set(ALIGNMENT_PROBLEMS)
    assert parts[1] == {s for problem in ALIGNMENT_PROBLEMS.values() for s in problem.schedules}
    assert parts[2] == set(ALIGNMENT_TARGETS)
    assert parts[3] == {*NUMBERS, "any"}
    assert parts[4] == {1, 2, 4, 8, 16, 32, 64}
    assert parts[5] == {*SOURCES, "affine", "linear", "any"}
    assert len({c.id for c in COMBINATIONS}) == len(COMBINATIONS)
    for schedule in parts[1]:
        kernels = {c.kernel for c in COMBINATIONS if c.schedule == schedule and c.target == "cpu"}
        assert kernels, f"{schedule} is never compiled"
    assert {problem.exactness for problem in ALIGNMENT_PROBLEMS.values()} == {"bitwise"}


@pytest.mark.interpreted(alone=True)
def test_every_run_has_every_part() -> None:
    some = [c for c in COMBINATIONS if in_every_run(c)]

    def parts(combinations: list[AlignmentCombination], *places: int) -> set[tuple[Any, ...]]:
        return {tuple(c[place] for place in (1, 2, *places)) for c in combinations}

    # In modes, numbers and splits every schedule has all but these; interpreted, all but some modes.
    wide = {(schedule, "cpu", "int32") for schedule in ("antidiagonal", "tiles")}
    for place, in_test_all in ((0, {("tiles", "cpu", "extension")}), (3, wide), (6, set())):
        assert parts(COMBINATIONS, place) - parts(some, place) == in_test_all
    interpreted = [[c for c in of if c.target == "reference"] for of in (some, COMBINATIONS)]
    assert parts(interpreted[0], 3, 4, 5, 6) == parts(interpreted[1], 3, 4, 5, 6)
    compiled = {c.form for c in some if c.target == "cpu"}
    # Of tables, that which lists of pairs are given on this processor.
    assert compiled >= {"affine", "linear", "profile8"} and len(compiled & {"table8", "table16"}) == 1


@pytest.mark.interpreted(alone=True)
def test_edge_cases_have_every_structure() -> None:
    for problem in ALIGNMENT_PROBLEMS.values():
        batches = problem.edge_cases
        assert {batch.linear for batch in batches} == {batch.wide for batch in batches} == {True, False}
        assert 0 in {batch.gap_extend for batch in batches}
        sets = {batch.free_ends for batch in batches}
        assert len(sets) == (16 if problem.name == "semiglobal" else 1)
        columns = "".join(wanted(case).columns for batch in batches for case in batch.cases)
        assert min(columns.count(column) for column in "MDI") > 50


@pytest.mark.interpreted(alone=True)
def test_a_wrong_answer_is_noticed() -> None:
    combination = next(c for c in COMBINATIONS if c.schedule == "row_sweep" and c.target == "reference")
    batch = ALIGNMENT_PROBLEMS[combination.problem].edge_cases[0].only(9)
    (right,) = (wanted(case) for case in batch.cases)
    assert assert_parity(combination, batch, lambda case: right)
    for wrong in (
        right._replace(score=right.score + 1),
        right._replace(start=(1, 0)),
        right._replace(columns=right.columns[::-1]),
    ):
        with pytest.raises(AssertionError, match="not BestAlignment"):
            assert_parity(combination, batch, lambda case, wrong=wrong: wrong)
