"""The MPI executor: order, sums, errors and early ends, with ranks that are threads, and with real ones."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import often
from support.ranks import on_ranks

from plait.align import local_best
from plait.dp.pairs import kbest
from plait.errors import TargetUnavailable
from plait.run import mpi
from plait.run.mpi import MpiExecutor

PROGRAM = """
from pathlib import Path

import numpy as np
from plait.align import local_best
from plait.dp.pairs import kbest
from plait.run.mpi import MpiExecutor

executor = MpiExecutor()
results = list(executor.map(lambda x: (x, executor.rank), range(5)))
total = executor.sum(lambda rank, ranks: np.arange(3) * 10**rank)
Path(f"{executor.rank}.txt").write_text(f"{results} {total}")
rng = np.random.default_rng(2)
query, target = ("".join(rng.choice(list("ACGT"), size)) for size in (20_000, 30_000))
assert 20_000 * 30_000 > 2 * kbest._SHARED_CELLS
best = local_best(query, target, 20, ranks=executor, threads=1, device="cpu")
assert best == local_best(query, target, 20, threads=1, device="cpu")
"""


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("batches", [0, 1, 2, 3, 7])
def test_results_are_in_order_on_rank_0(size: int, batches: int) -> None:
    found = on_ranks(size, lambda e: list(e.map(lambda x: (x, e.rank), range(batches))))
    assert found[0] == [(k, k % size) for k in range(batches)]
    assert found[1:] == [[]] * (size - 1)


def test_batches_are_read_on_rank_0_alone_and_only_as_needed() -> None:
    read = []

    def program(executor: MpiExecutor) -> Any:
        def batches() -> Any:
            for k in range(6):
                read.append((executor.rank, k))
                yield k

        seen = []
        for result in executor.map(lambda x: -x, batches()):
            seen.append((result, len(read)))
        return seen

    assert on_ranks(2, program)[0] == [(0, 2), (-1, 2), (-2, 4), (-3, 4), (-4, 6), (-5, 6)]
    assert {rank for rank, _ in read} == {0}


@pytest.mark.parametrize("bad", [0, 1, 4])
def test_an_error_in_one_rank_is_raised_in_all(bad: int) -> None:
    def work(x: int) -> int:
        if x == bad:
            raise ValueError(f"batch {x}")
        return x

    found = on_ranks(3, lambda e: list(e.map(work, range(6))))
    assert [str(error) for error in found] == [f"batch {bad}"] * 3
    assert all(isinstance(error, ValueError) for error in found)


def test_an_error_in_reading_stops_all() -> None:
    def batches() -> Any:
        yield 1
        yield 2
        raise OSError("the file ends")

    found = on_ranks(2, lambda e: list(e.map(lambda x: x, batches())))
    assert isinstance(found[0], OSError)
    assert found[1] == []


def test_closing_early_stops_all() -> None:
    def program(executor: MpiExecutor) -> Any:
        results = executor.map(lambda x: x, range(100))
        taken = []
        for result in results:
            taken.append(result)
            if len(taken) == 3:
                results.close()
        return taken

    assert on_ranks(2, program) == [[0, 1, 2], []]


def test_sum() -> None:
    found = on_ranks(3, lambda e: e.sum(lambda rank, ranks: np.array([1, rank, ranks])))
    assert found[0].tolist() == [3, 3, 9]
    assert found[1:] == [None, None]


def test_an_error_in_a_share_is_raised_in_all() -> None:
    def share(rank: int, ranks: int) -> Any:
        if rank == 1:
            raise MemoryError("no room")
        return np.zeros(1)

    found = on_ranks(2, lambda e: e.sum(share))
    assert [type(error) for error in found] == [MemoryError, MemoryError]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_rank_0_leads(size: int) -> None:
    def task(call: Callable[[int], Any]) -> Any:
        with ThreadPoolExecutor(size) as pool:
            return sum(pool.map(call, range(20)))

    assert on_ranks(size, lambda e: e.lead(lambda x: x * x, task)) == [2470] * size


def test_those_that_have_nothing_to_do_are_asked() -> None:
    together = threading.Barrier(3)

    def task(call: Callable[[int], Any]) -> Any:
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(call, range(3)))

    # None of the three goes on before the others have begun.
    found = on_ranks(3, lambda e: e.lead(lambda x: (together.wait(timeout=300) >= 0, x), task))
    assert found == [[(True, 0), (True, 1), (True, 2)]] * 3


@pytest.mark.parametrize("bad", ["batch 1", "the task"])
def test_an_error_behind_rank_0_is_raised_in_all(bad: str) -> None:
    def work(x: int) -> int:
        if bad == f"batch {x}":
            raise ValueError(bad)
        return x

    def task(call: Callable[[int], Any]) -> Any:
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(call, range(4)))
        if bad == "the task":
            raise ValueError(bad)
        return found

    found = on_ranks(3, lambda e: e.lead(work, task))
    assert [(type(error), str(error)) for error in found] == [(ValueError, bad)] * 3


@pytest.mark.parametrize("disjoint", often(1, [False, True]))
def test_the_best_alignments_of_a_pair(monkeypatch: pytest.MonkeyPatch, disjoint: bool) -> None:
    for name, value in (("_TILE_ROWS", 16), ("_TILE_COLUMNS", 64), ("_VISITED_SIDE", 64)):
        monkeypatch.setattr(kbest, name, value)
    monkeypatch.setattr(kbest, "_SHARED_CELLS", 1 << 12)
    swept = []
    sweep = kbest._sweep_piece
    monkeypatch.setattr(kbest, "_sweep_piece", lambda *given: swept.append(given[2]) or sweep(*given))
    rng = np.random.default_rng(11)
    query, target = ("".join(rng.choice(list("ACGT"), size)) for size in (300, 900))

    def best(ranks: MpiExecutor | None) -> Any:
        how: Any = {"disjoint": disjoint, "device": "cpu", "threads": 1}
        return local_best(query, target, 12, min_score=8, ranks=ranks, **how)

    alone = best(None)
    assert not swept and len(alone) == 12
    for size in (1, 2, 3):
        swept.clear()
        assert on_ranks(size, best) == [alone] * size
        assert len(swept) >= 3 * size


def test_local_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_ranks(3, lambda e: e.local_rank) == [0, 1, 2]
    monkeypatch.setattr(mpi, "_machine", lambda: f"node{threading.get_ident()}")
    assert on_ranks(3, lambda e: e.local_rank) == [0, 0, 0]


def test_without_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(TargetUnavailable, match=r"pip install 'plait\[mpi\]'"):
        MpiExecutor()


def test_real_ranks(tmp_path: Path, repository: Path) -> None:
    launcher = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if launcher is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip(reason="no mpirun, or no mpi4py: pip install 'plait[mpi]' mpich")
    (tmp_path / "program.py").write_text(PROGRAM)
    paths = [str(repository / "src"), os.environ.get("PYTHONPATH", "")]
    run = subprocess.run(
        [launcher, "-n", "2", sys.executable, "-m", "mpi4py", str(tmp_path / "program.py")],
        capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "0.txt").read_text() == "[(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)] [ 0 11 22]"
    assert (tmp_path / "1.txt").read_text() == "[] None"
