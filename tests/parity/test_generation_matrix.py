"""The parity matrix of generation probabilities: all combinations give the sum over all ways.

A float answer is a sum of at most some thousand products of fewer than forty factors, all of them positive:
it is compared within 1e-12, relative. Counts are equal, and so are the bits for every split of a batch.
"""

from __future__ import annotations

import functools
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import FULL, examples
from support.generation_problems import (
    GENERATION_ALGEBRAS,
    GENERATION_PROBLEMS,
    GENERATION_TARGETS,
    GenerationBatch,
    GenerationCombination,
    generation_combinations,
    solve_generation,
)
from support.problems import SPLITS

BOUND = 1e-12
COMBINATIONS = list(generation_combinations())
ON_TARGETS = {
    key: list(group) for key, group in groupby(COMBINATIONS, key=lambda c: (c.problem, c.schedule, c.target))
}


def marks(combinations: list[GenerationCombination]) -> list[Any]:
    if combinations[0].target == "reference":
        return [pytest.mark.interpreted(alone=True)]
    return [pytest.mark.slow] if all(c.seldom for c in combinations) else []


def assert_parity(combination: GenerationCombination, batch: GenerationBatch, ways: list[Any]) -> bool:
    """Compare all answers; whether the combination can answer at all."""
    found = solve_generation(combination, batch)
    if found is None:
        return False
    algebra = GENERATION_ALGEBRAS[combination.algebra]
    wanted = [algebra.answer(one) for one in ways]
    for text, one, right in zip(batch.texts, found, wanted, strict=True):
        if combination.algebra == "count":
            same = one == right
        else:
            same = one == pytest.approx(right, rel=BOUND, abs=0)
        assert same, f"{combination.id}: {one}, not {right}, for {text}"
    if combination.split != "whole":
        assert found == solve_generation(combination._replace(split="whole"), batch)
    return True


@functools.cache
def edge_cases(problem: str) -> list[tuple[GenerationBatch, list[Any]]]:
    found = GENERATION_PROBLEMS[problem]
    return [(batch, found.oracle(batch)) for batch in found.edge_cases]


@pytest.mark.parametrize(
    ("number", "combination"),
    [pytest.param(k, c, id=c.id, marks=marks([c])) for k, c in enumerate(COMBINATIONS)],
)
def test_edge_cases(number: int, combination: GenerationCombination) -> None:
    # Interpreted ones, which take longer, share them out.
    share = 2 if combination.target == "reference" and not FULL else 1
    cases = edge_cases(combination.problem)[number % share :: share]
    answered = [assert_parity(combination, *case) for case in cases]
    assert any(answered)


@pytest.mark.parametrize(
    "key", [pytest.param(key, id="-".join(key), marks=marks(of)) for key, of in ON_TARGETS.items()]
)
@given(data=st.data())
@examples(5)
def test_drawn_cases(key: tuple[str, str, str], data: st.DataObject) -> None:
    problem = GENERATION_PROBLEMS[key[0]]
    batch = data.draw(problem.inputs)
    ways = problem.oracle(batch)
    combinations = [c for c in ON_TARGETS[key] if FULL or not c.seldom]
    if key[2] == "reference":
        combinations = [data.draw(st.sampled_from(combinations)) for _ in range(3)]
    for combination in combinations:
        assert_parity(combination, batch, ways)


@pytest.mark.interpreted(alone=True)
def test_the_matrix_has_every_part() -> None:
    parts = [set(column) for column in zip(*COMBINATIONS, strict=True)]
    assert parts[0] == set(GENERATION_PROBLEMS)
    assert parts[1] == {
        schedule for problem in GENERATION_PROBLEMS.values() for schedule in problem.schedules
    }
    assert parts[2] == set(GENERATION_TARGETS)
    assert parts[3] == set(GENERATION_ALGEBRAS)
    assert parts[4] == {1, 2, 4, 8}
    assert parts[5] == {"path", "graph"}
    assert parts[6] == set(SPLITS)
    assert len({c.id for c in COMBINATIONS}) == len(COMBINATIONS)
    assert {name for name, a in GENERATION_ALGEBRAS.items() if a.exactness == "bitwise"} == {
        "count",
        "max_product",
    }


@pytest.mark.interpreted(alone=True)
def test_edge_cases_are_made_in_many_ways_and_in_none() -> None:
    for problem in GENERATION_PROBLEMS:
        numbers = [len(ways) for _, answers in edge_cases(problem) for ways in answers]
        assert max(numbers) > (10 if problem.startswith("vdj") else 3)
        if problem.endswith("nt"):
            assert min(numbers) == 0


@pytest.mark.interpreted(alone=True)
def test_a_wrong_answer_is_noticed() -> None:
    combination = next(c for c in COMBINATIONS if c.target == "reference" and c.algebra == "probability")
    batch, ways = edge_cases(combination.problem)[0]
    wrong = [[*one, (1e-9 * sum(p for p, _ in one), 0)] for one in ways]
    with pytest.raises(AssertionError, match="not"):
        assert_parity(combination, batch, wrong)
