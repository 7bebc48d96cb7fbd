"""The parity matrix: every problem, schedule, algebra, target, width and split gives the right answer."""

from __future__ import annotations

import functools
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import Answer, Batch
from support.examples import FULL, examples
from support.problems import ALGEBRAS, PROBLEMS, TARGETS, Combination, combinations, solve

COMBINATIONS = list(combinations())
ON_TARGETS = {
    key: list(group) for key, group in groupby(COMBINATIONS, key=lambda c: (c.problem, c.schedule, c.target))
}
#: Compiled, they are kernels of their own that take as long as all others of counts.
INSERTIONS_APART = {"dp1", "vj-dp1", "vddj-dp1", "exhaustive"}


def marks(combinations: list[Combination]) -> list[Any]:
    if combinations[0].target == "reference":
        return [pytest.mark.interpreted(alone=True)]
    seldom = combinations[0].problem in INSERTIONS_APART or all(c.seldom for c in combinations)
    return [pytest.mark.slow] if seldom else []


def assert_parity(combination: Combination, batch: Batch, wanted: Answer) -> None:
    found = solve(combination, batch)
    differing = {name: (found[name], wanted[name]) for name in wanted if found[name] != wanted[name]}
    assert not differing, f"{combination.id}: found, wanted: {differing}"


@functools.cache
def edge_cases(problem: str) -> list[tuple[Batch, Answer]]:
    return [(batch, PROBLEMS[problem].oracle(batch)) for batch in PROBLEMS[problem].edge_cases]


@pytest.mark.parametrize(
    ("number", "combination"),
    [pytest.param(k, c, id=c.id, marks=marks([c])) for k, c in enumerate(COMBINATIONS)],
)
def test_edge_cases(number: int, combination: Combination) -> None:
    # Interpreted ones, which take longer, share them out.
    cases = edge_cases(combination.problem)
    share = min(4, len(cases)) if combination.target == "reference" and not FULL else 1
    for batch, wanted in cases[number % share :: share]:
        assert_parity(combination, batch, wanted)


@pytest.mark.parametrize(
    "key", [pytest.param(key, id="-".join(key), marks=marks(of)) for key, of in ON_TARGETS.items()]
)
@given(data=st.data())
@examples(25)
def test_drawn_cases(key: tuple[str, str, str], data: st.DataObject) -> None:
    problem = PROBLEMS[key[0]]
    batch = data.draw(problem.inputs)
    wanted = problem.oracle(batch)
    for combination in (c for c in ON_TARGETS[key] if FULL or not c.seldom):
        assert_parity(combination, batch, wanted)


@pytest.mark.interpreted(alone=True)
def test_the_matrix_has_every_part() -> None:
    parts = [set(column) for column in zip(*COMBINATIONS, strict=True)]
    assert parts[0] == set(PROBLEMS)
    assert parts[1] == {schedule for problem in PROBLEMS.values() for schedule in problem.schedules}
    assert parts[2] == set(TARGETS)
    assert parts[3] == set(ALGEBRAS)
    assert len({c.id for c in COMBINATIONS}) == len(COMBINATIONS)


@pytest.mark.interpreted(alone=True)
def test_a_wrong_answer_is_noticed() -> None:
    problem = PROBLEMS["dp2-one-strand"]
    (batch, *_) = problem.edge_cases
    wanted = problem.oracle(batch)
    wanted["full"][-1][0][0] += 1
    combination = next(c for c in COMBINATIONS if c.problem == problem.name)
    with pytest.raises(AssertionError, match="full"):
        assert_parity(combination, batch, wanted)
