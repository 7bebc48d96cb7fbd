"""What GPUs launch and what is left to the CPU; the kernels are pretended."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from plait.devices import cuda_target
from plait.devices.cuda_target import CudaTarget, Told
from plait.devices.target import CpuTarget, Problem, Target
from plait.dp.chain.launches import ENUMERATION, PATH_COUNTS, WEIGHTS, CountBatch, EnumerationBatch
from plait.dp.pairs.blocks import BlockBatch
from plait.dp.pairs.launches import (
    BLOCK_SCORES,
    LONG_ALIGNMENT,
    LONG_SCORE,
    PAIR_LIST,
)
from plait.errors import DeviceFailure, DeviceMemoryError, Unsupported

LARGE = 1000


class Batch(NamedTuple):
    """So much of some work."""

    size: int = LARGE


class TellingBatch(NamedTuple):
    """The same, with progress."""

    progress: Callable[[int], None]
    size: int = LARGE


class Trials:
    """What trying and using devices comes to; who was asked."""

    problem = ""
    error: Exception | None = None
    serves = True
    tried: ClassVar[list[int]] = []
    asked: ClassVar[list[Any]] = []

    def on_gpu(self, batch: Any, target: CudaTarget) -> str | None:
        """What is pretended."""
        self.asked.append(target.devices)
        if self.error is not None:
            if hasattr(batch, "progress"):
                batch.progress(30)
            raise self.error
        return "gpu" if self.serves else None

    def on_cpu(self, batch: Any, target: Target) -> str:
        """The same on the host."""
        assert isinstance(target, CpuTarget) and target.threads == 3
        self.asked.append("cpu")
        if hasattr(batch, "progress"):
            batch.progress(100)
        return "cpu"


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Trials:
    """Devices that nobody has tried yet."""
    found = Trials()
    found.tried.clear()
    found.asked.clear()

    def tried(number: int) -> str:
        found.tried.append(number)
        return found.problem

    monkeypatch.setattr(cuda_target, "_tried", tried)
    monkeypatch.setattr(cuda_target._Found, "process", -1)
    monkeypatch.setitem(sys.modules, "pretended", SimpleNamespace(on_gpu=found.on_gpu))
    return found


@pytest.fixture
def problem(trials: Trials) -> Problem[Any, str]:
    """What GPUs have kernels for."""
    return Problem(
        "pretended",
        cpu=trials.on_cpu,
        reference=trials.on_cpu,
        cuda="pretended:on_gpu",
        worth=lambda batch: batch.size >= LARGE,
    )


def target(*, sparing: bool = False) -> CudaTarget:
    return CudaTarget([0, 2], 3, sparing=sparing)


@pytest.mark.parametrize("size", [1, LARGE])
def test_what_is_asked_for_by_name_is_used(problem: Any, trials: Trials, size: int) -> None:
    assert target().launch(problem, Batch(size)) == "gpu"
    assert trials.asked == [(0, 2)] and trials.tried == []


def test_what_is_not_served_runs_on_the_cpu(problem: Any, trials: Trials) -> None:
    trials.serves = False
    assert target().launch(problem, Batch()) == "cpu"
    assert trials.asked == [(0, 2), "cpu"]


def test_what_has_no_kernel_runs_on_the_cpu(trials: Trials) -> None:
    alone: Problem[Batch, str] = Problem("alone", cpu=trials.on_cpu, reference=trials.on_cpu)
    assert target().launch(alone, Batch()) == "cpu"
    assert trials.asked == ["cpu"]


def test_small_batches_are_not_worth_a_start(problem: Any, trials: Trials) -> None:
    cuda = target(sparing=True)
    assert [cuda.launch(problem, Batch(size)) for size in (LARGE - 1, LARGE)] == ["cpu", "gpu"]
    assert trials.tried == [0, 2]


FAILURES = (
    DeviceFailure("cuda:0", reason="a kernel stopped", fix="start again"),
    DeviceMemoryError("cuda:0", needed=None, free=5, fix="buy more"),
)
CPU_INSTEAD = "; the CPU does it instead"


def test_a_device_that_stops_is_left_alone(problem: Any, trials: Trials) -> None:
    cuda, told = target(sparing=True), list[int]()
    before = cuda.description
    trials.error = FAILURES[0]
    with pytest.warns(RuntimeWarning, match=f"a kernel stopped.*{CPU_INSTEAD}") as warned:
        for _ in range(2):
            assert cuda.launch(problem, TellingBatch(told.append)) == "cpu"
    assert len(warned) == 1 and told == [30, 70, 100]
    assert trials.asked == [(0, 2), "cpu", "cpu"]
    assert cuda.description == f"{before} and cpu"
    # In the whole process.
    assert target(sparing=True).launch(problem, Batch()) == "cpu" and trials.asked[3:] == ["cpu"]


def test_a_device_with_too_little_memory_is_asked_again(problem: Any, trials: Trials) -> None:
    cuda, told = target(sparing=True), list[int]()
    trials.error = FAILURES[1]
    with pytest.warns(RuntimeWarning, match=f"too little memory.*{CPU_INSTEAD}") as warned:
        for _ in range(2):
            assert cuda.launch(problem, TellingBatch(told.append)) == "cpu"
    # What was told of the vain attempt is not told again.
    assert len(warned) == 1 and told == [30, 70, 30, 70]
    assert trials.asked == [(0, 2), "cpu", (0, 2), "cpu"]


@pytest.mark.parametrize("error", FAILURES)
def test_a_device_asked_for_by_name_fails(problem: Any, trials: Trials, error: Exception) -> None:
    trials.error = error
    with pytest.raises(type(error)):
        target().launch(problem, Batch())
    assert trials.asked == [(0, 2)] and trials.tried == []


def test_other_errors_are_told(problem: Any, trials: Trials) -> None:
    trials.error = Unsupported("that", why="no")
    with pytest.raises(Unsupported):
        target(sparing=True).launch(problem, Batch())
    assert trials.asked == [(0, 2)]


def test_a_device_is_tried_before_its_first_use(problem: Any, trials: Trials) -> None:
    cuda = target(sparing=True)
    trials.problem = "a small kernel gives wrong results"
    assert cuda.launch(problem, Batch(1)) == "cpu" and trials.tried == []
    with pytest.warns(RuntimeWarning, match=f"wrong results{CPU_INSTEAD}") as warned:
        assert [cuda.launch(problem, Batch()) for _ in range(2)] == ["cpu", "cpu"]
    assert len(warned) == 1 and trials.tried == [0]
    assert trials.asked == ["cpu"] * 3
    assert cuda.description.endswith(" and cpu")


def test_cells_are_told_once() -> None:
    told: list[int] = []
    first = Told(told.append)
    for cells in (5, 10):
        first(cells)
    again = first.again()
    for cells in (4, 9, 6):
        again(cells)
    assert told == [5, 10, 4] and again.again()._before == 19


def texts(count: int) -> Any:
    return SimpleNamespace(start=np.zeros(count, np.int64))


def pair(residues: int) -> Any:
    codes = np.zeros(residues, np.uint8)
    return SimpleNamespace(costs=SimpleNamespace(query=codes, target=codes))


def search(residues: int) -> Any:
    query: Any = SimpleNamespace(rows=np.zeros(350, np.uint8))
    blocks: Any = SimpleNamespace(lengths=np.array([[residues]], np.int32))
    return BlockBatch([query], blocks)


@pytest.mark.parametrize(
    ("problem", "few", "many"),
    [
        (PATH_COUNTS, SimpleNamespace(texts=texts(100)), SimpleNamespace(texts=texts(100_000))),
        (WEIGHTS, SimpleNamespace(texts=texts(100)), SimpleNamespace(texts=texts(100_000))),
        (ENUMERATION, *(SimpleNamespace(texts=texts(1000), most=most) for most in (4, 10))),
        (BLOCK_SCORES, search(1), search(10**8)),
        (LONG_SCORE, pair(100), pair(10**6)),
        (LONG_ALIGNMENT, pair(100), pair(10**6)),
    ],
    ids=["counts", "weights", "enumeration", "scores", "long score", "long alignment"],
)
def test_the_tables_know_their_kernels_and_what_is_worth_them(problem: Any, few: Any, many: Any) -> None:
    assert not problem.worth(few) and problem.worth(many)
    assert callable(problem.on_cuda())


def test_short_pairs_and_tracebacks_stay_on_the_cpu() -> None:
    assert not PAIR_LIST.cuda


def test_chains_that_the_kernel_does_not_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.dp.chain import gpu_count_launch

    nothing: Any = None
    monkeypatch.setattr(gpu_count_launch, "serves", lambda kind, alg, tables: alg == "served")
    found = [PATH_COUNTS.on_cuda()(CountBatch(nothing, alg, nothing, texts(0), "out"), target())  # type: ignore[arg-type]
             for alg in ("served", "other")]  # fmt: skip
    assert found == ["out", None]


@pytest.mark.parametrize("most", [10, 11])
def test_enumerations_of_too_many_insertions(most: int) -> None:
    out = np.ones((0, 1, most + 1), np.int64)
    nothing: Any = None
    found = ENUMERATION.on_cuda()(EnumerationBatch(nothing, texts(0), most, out), target())
    assert (found is out) is (most == 10)
