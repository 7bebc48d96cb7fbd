"""What the CUDA target gives to GPUs and what to the CPU; the kernels are pretended."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import plait.targets
from plait.schedules.tile_grid import Tile
from plait.targets.cuda_target import CudaTarget

Calls = list[tuple[Any, ...]]


class Host:
    """A CPU target that says what it is asked for."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def __getattr__(self, name: str) -> Callable[..., str]:
        def call(*arguments: Any) -> str:
            self.calls.append(("cpu", name))
            return "cpu"

        return call


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Who was asked for what."""
    found: Calls = []

    def module(name: str, *functions: str, **rest: Any) -> None:
        def function(what: str) -> Callable[..., str]:
            def call(devices: Any, *arguments: Any) -> str:
                found.append((tuple(devices), what))
                return "gpu"

            return call

        made = SimpleNamespace(**{what: function(what) for what in functions}, **rest)
        monkeypatch.setattr(plait.targets, name, made, raising=False)

    module("cuda_chain", "run_chain", serves=lambda kind, alg, tables: alg == "served")
    module("cuda_enumeration", "run_enumeration")
    module("cuda_search", "run_blocks", "sweep_blocks")
    tiles = SimpleNamespace(
        serves=lambda pair, region: True, grid=lambda region, limit: "grid", finish=lambda: None
    )
    module("cuda_long", many_tiles=lambda devices: tiles)
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
        assert many is not None and many.visits == 2
        assert many.serves(pair(10**6), region)
        assert many.serves(pair(100), region) is not sparing
        assert many.grid(region, 0) == "grid"
    assert calls == []
