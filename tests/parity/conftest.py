"""Compile the kernels of the parity matrices once, shared out over the workers of a parallel run."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.alignment_problems import (
    ALIGNMENT_PROBLEMS,
    AlignmentCombination,
    alignment_combinations,
    solve_alignment,
)
from support.generation_problems import (
    GENERATION_PROBLEMS,
    GenerationCombination,
    generation_combinations,
    solve_generation,
)
from support.problems import PROBLEMS, Combination, combinations, solve

#: Seconds after which no other worker is waited for.
PATIENCE = 300


def kernels() -> Iterator[Combination]:
    """One combination per kernel that has to be compiled."""
    seen = set()
    for combination in combinations():
        rows = PROBLEMS[combination.problem].rows
        kernel = (combination.schedule, combination.target, combination.algebra, combination.width, rows)
        if combination.target != "reference" and kernel not in seen:
            seen.add(kernel)
            yield combination


def alignment_kernels() -> Iterator[AlignmentCombination]:
    """One combination per kernel that has to be compiled."""
    seen = set()
    for combination in alignment_combinations():
        if combination.target != "reference" and combination.kernel not in seen:
            seen.add(combination.kernel)
            yield combination


def compile_alignment(combination: AlignmentCombination) -> None:
    for batch in ALIGNMENT_PROBLEMS[combination.problem].edge_cases:
        if solve_alignment(combination, batch.only(0, 1)) is not None:
            return


def generation_kernels() -> Iterator[GenerationCombination]:
    """One combination per kernel that has to be compiled."""
    seen = set()
    for combination in generation_combinations():
        kernel = (combination.schedule, combination.algebra, combination.width, combination.graph)
        if combination.target != "reference" and kernel not in seen:
            seen.add(kernel)
            yield combination


def compile_generation(combination: GenerationCombination) -> None:
    for batch in GENERATION_PROBLEMS[combination.problem].edge_cases:
        if solve_generation(combination, batch) is not None:
            return


def claimed(file: Path) -> bool:
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def share_out(folder: Path, name: str, jobs: list[Callable[[], object]]) -> None:
    """Do jobs that no other worker does, and wait for those that others do."""
    elsewhere = []
    for number, job in enumerate(jobs):
        done = folder / f"{name}-{number}-done"
        if claimed(folder / f"{name}-{number}"):
            job()
            done.touch()
        else:
            elsewhere.append(done)
    give_up = time.monotonic() + PATIENCE
    while not all(done.exists() for done in elsewhere) and time.monotonic() < give_up:
        time.sleep(0.05)


@pytest.fixture(scope="session")
def workers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def prepare(workers_folder: Path) -> Callable[[str], None]:
    """To be called with the name of a target before it is run.

    A kernel takes seconds to compile and is kept on disk. Workers that need kernels take them from one list,
    so that none is compiled twice at the same time, and wait for those that others compile.
    """

    @functools.cache
    def run(target: str) -> None:
        if target == "reference":
            return
        jobs = [functools.partial(solve, c, PROBLEMS[c.problem].edge_cases[0]) for c in kernels()]
        share_out(workers_folder, "kernel", jobs)

    return run


@pytest.fixture(scope="session")
def prepare_alignment(workers_folder: Path) -> Callable[[str], None]:
    """The same for the matrix of alignment."""

    @functools.cache
    def run(target: str) -> None:
        if target == "reference":
            return
        jobs = [functools.partial(compile_alignment, combination) for combination in alignment_kernels()]
        share_out(workers_folder, "alignment-kernel", jobs)

    return run


@pytest.fixture(scope="session")
def prepare_generation(workers_folder: Path) -> Callable[[str], None]:
    """The same for the matrix of generation probabilities."""

    @functools.cache
    def run(target: str) -> None:
        if target == "reference":
            return
        jobs = [functools.partial(compile_generation, combination) for combination in generation_kernels()]
        share_out(workers_folder, "generation-kernel", jobs)

    return run
