"""What the CUDA target gives to GPUs and what to the CPU; the kernels are pretended."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import plait.dp.chain
import plait.dp.pairs
from plait.devices import trials as device_trials
from plait.devices.progress import Told
from plait.dp.cuda import CudaTarget
from plait.dp.pairs.tiles import Tile
from plait.errors import DeviceFailure, DeviceMemoryError, Unsupported

Calls = list[tuple[Any, ...]]


class Host:
    """A CPU target that says what it is asked for."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def __getattr__(self, name: str) -> Callable[..., str]:
        def call(*arguments: Any) -> str:
            self.calls.append(("cpu", name))
            if name == "run_blocks":
                arguments[-1](100)
            return "cpu"

        return call


class Trials:
    """What trying and using devices comes to."""

    problem = ""
    error: Exception | None = None
    tried: ClassVar[list[int]] = []


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Trials:
    """Devices that nobody has tried yet."""
    found = Trials()
    found.tried.clear()

    def tried(number: int) -> str:
        found.tried.append(number)
        return found.problem

    monkeypatch.setattr(device_trials, "_tried", tried)
    monkeypatch.setattr(device_trials._Found, "process", -1)
    return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, trials: Trials) -> Calls:
    """Who was asked for what."""
    found: Calls = []

    def module(room: ModuleType, name: str, *functions: str, **rest: Any) -> None:
        def function(what: str) -> Callable[..., str]:
            def call(devices: Any, *arguments: Any) -> str:
                found.append((tuple(devices), what))
                if trials.error is not None:
                    if what == "run_blocks":
                        arguments[-1](30)
                    raise trials.error
                return "gpu"

            return call

        made = SimpleNamespace(**{what: function(what) for what in functions}, **rest)
        monkeypatch.setattr(room, name, made, raising=False)

    module(plait.dp.chain, "gpu_count_launch", "run_chain", serves=lambda kind, alg, tables: alg == "served")
    module(plait.dp.chain, "gpu_enumerate_launch", "run_enumeration")
    module(plait.dp.pairs, "gpu_search", "run_blocks", "sweep_blocks")
    tiles = SimpleNamespace(visits=4, serves=lambda pair, region: True, grid=lambda region, limit: "grid")
    module(plait.dp.pairs, "gpu_long", many_tiles=lambda devices: tiles)
    return found


def target(calls: Calls, *, sparing: bool = False) -> CudaTarget:
    made = CudaTarget([0, 2], 1, sparing=sparing)
    made.host = Host(calls)  # type: ignore[assignment]
    return made


def texts(count: int) -> Any:
    return SimpleNamespace(start=np.zeros(count, np.int64))


def query(rows: int) -> Any:
    return SimpleNamespace(rows=np.zeros(rows, np.uint8))


def pair(residues: int) -> Any:
    codes = np.zeros(residues, np.uint8)
    return SimpleNamespace(costs=SimpleNamespace(query=codes, target=codes))


def blocks(residues: int) -> Any:
    return SimpleNamespace(lengths=np.array([[residues]], np.int32))


def test_chains(calls: Calls) -> None:
    cuda: Any = target(calls)
    cuda.run_chain("kind", "served", "tables", texts(1), "out")
    cuda.run_chain("kind", "other", "tables", texts(1), "out")
    assert calls == [((0, 2), "run_chain"), ("cpu", "run_chain")]


def test_few_texts_are_not_worth_a_start(calls: Calls) -> None:
    cuda: Any = target(calls, sparing=True)
    cuda.run_chain("kind", "served", "tables", texts(100), "out")
    cuda.run_chain("kind", "served", "tables", texts(100_000), "out")
    assert calls == [("cpu", "run_chain"), ((0, 2), "run_chain")]


@pytest.mark.parametrize(("most", "who"), [(10, (0, 2)), (11, "cpu")])
def test_enumeration(calls: Calls, most: int, who: Any) -> None:
    cuda: Any = target(calls)
    cuda.run_enumeration("tables", texts(1), most, "out")
    assert calls == [(who, "run_enumeration")]


@pytest.mark.parametrize(("most", "who"), [(10, (0, 2)), (4, "cpu")])
def test_a_short_enumeration_is_not_worth_a_start(calls: Calls, most: int, who: Any) -> None:
    cuda: Any = target(calls, sparing=True)
    cuda.run_enumeration("tables", texts(1000), most, "out")
    assert calls == [(who, "run_enumeration")]


@pytest.mark.parametrize(
    ("sparing", "residues", "who"), [(False, 1, (0, 2)), (True, 1, "cpu"), (True, 10**8, (0, 2))]
)
def test_searches(calls: Calls, sparing: bool, residues: int, who: Any) -> None:
    cuda: Any = target(calls, sparing=sparing)
    cuda.run_blocks(query(350), blocks(residues), lambda cells: None)
    cuda.sweep_blocks([query(350)], blocks(residues))
    assert calls == [(who, "run_blocks"), (who, "sweep_blocks")]


def test_short_pairs_and_tracebacks_stay_on_the_cpu(calls: Calls) -> None:
    cuda: Any = target(calls)
    assert cuda.run_pairs("setup", "task") == "cpu"
    assert cuda.trace_targets("query", "task") == "cpu"
    assert calls == [("cpu", "run_pairs"), ("cpu", "trace_targets")]


def test_long_pairs(calls: Calls) -> None:
    region = Tile(0, 100, 0, 100)
    for sparing in (False, True):
        many = CudaTarget([0, 2], 1, sparing=sparing).tile_steps().many
        assert many is not None and many.visits == 4
        assert many.serves(pair(10**6), region)
        assert many.serves(pair(100), region) is not sparing
        assert many.grid(region, 0) == "grid"
    assert calls == []


FAILURES = (
    DeviceFailure("cuda:0", reason="a kernel stopped", fix="start again"),
    DeviceMemoryError("cuda:0", needed=None, free=5, fix="buy more"),
)
CPU_INSTEAD = "; the CPU does it instead"


def use_everything(cuda: Any, told: list[int]) -> None:
    cuda.run_chain("kind", "served", "tables", texts(100_000), "out")
    cuda.run_enumeration("tables", texts(1000), 10, "out")
    assert cuda.run_blocks(query(350), blocks(10**8), told.append) == "cpu"
    assert cuda.sweep_blocks([query(350)], blocks(10**8)) == "cpu"


USES = ("run_chain", "run_enumeration", "run_blocks", "sweep_blocks")


def test_a_device_that_stops_is_left_alone(calls: Calls, trials: Trials) -> None:
    cuda, told = target(calls, sparing=True), []
    before = cuda.description
    trials.error = FAILURES[0]
    with pytest.warns(RuntimeWarning, match=f"a kernel stopped.*{CPU_INSTEAD}") as warned:
        use_everything(cuda, told)
    assert len(warned) == 1 and told == [100]
    assert calls == [((0, 2), "run_chain"), *(("cpu", use) for use in USES)]
    assert cuda.description == f"{before} and cpu"
    # In the whole process.
    many = CudaTarget([0, 2], 1, sparing=True).tile_steps().many
    assert many is not None and not many.serves(pair(10**6), Tile(0, 1, 0, 1))


def test_a_device_with_too_little_memory_is_asked_again(calls: Calls, trials: Trials) -> None:
    cuda, told = target(calls, sparing=True), []
    trials.error = FAILURES[1]
    with pytest.warns(RuntimeWarning, match=f"too little memory.*{CPU_INSTEAD}") as warned:
        use_everything(cuda, told)
    # What was told of the vain attempt is not told again.
    assert len(warned) == 1 and told == [30, 70]
    assert calls == [call for use in USES for call in (((0, 2), use), ("cpu", use))]


@pytest.mark.parametrize("error", FAILURES)
def test_a_device_asked_for_by_name_fails(calls: Calls, trials: Trials, error: Exception) -> None:
    cuda: Any = target(calls)
    trials.error = error
    with pytest.raises(type(error)):
        cuda.run_chain("kind", "served", "tables", texts(100_000), "out")
    assert calls == [((0, 2), "run_chain")] and trials.tried == []


def test_other_errors_are_told(calls: Calls, trials: Trials) -> None:
    cuda: Any = target(calls, sparing=True)
    trials.error = Unsupported("that", why="no")
    with pytest.raises(Unsupported):
        cuda.run_blocks(query(350), blocks(10**8), lambda cells: None)
    assert cuda.successor(trials.error) is None


def test_a_device_is_tried_before_its_first_use(calls: Calls, trials: Trials) -> None:
    cuda, told = target(calls, sparing=True), []
    trials.problem = "a small kernel gives wrong results"
    cuda.run_chain("kind", "served", "tables", texts(100), "out")
    assert trials.tried == []
    with pytest.warns(RuntimeWarning, match=f"wrong results{CPU_INSTEAD}") as warned:
        use_everything(cuda, told)
    assert len(warned) == 1 and trials.tried == [0]
    assert {who for who, _ in calls} == {"cpu"}
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
