"""Compile the kernels of the parity matrix once, shared out over the workers of a parallel run."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plait.testing.problems import PROBLEMS, Combination, combinations, solve

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


def claimed(file: Path) -> bool:
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@pytest.fixture(scope="session")
def prepare(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], None]:
    """To be called with the name of a target before it is run.

    A kernel takes seconds to compile and is kept on disk. Workers that need kernels take them from one list,
    so that none is compiled twice at the same time, and wait for those that others compile.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    @functools.cache
    def run(target: str) -> None:
        if target == "reference":
            return
        elsewhere = []
        for number, combination in enumerate(kernels()):
            done = folder / f"kernel-{number}-done"
            if claimed(folder / f"kernel-{number}"):
                solve(combination, PROBLEMS[combination.problem].edge_cases[0])
                done.touch()
            else:
                elsewhere.append(done)
        give_up = time.monotonic() + PATIENCE
        while not all(done.exists() for done in elsewhere) and time.monotonic() < give_up:
            time.sleep(0.05)

    return run
