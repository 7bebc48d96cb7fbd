"""Tiles that a target sweeps together, as a GPU does: here one by one, without places of ends."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.examples import often

from plait.align import align, aligner, local_best, score
from plait.align import batches as whole_pairs
from plait.devices import cuda_target
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import free_bytes
from plait.dp.pairs import launches
from plait.dp.pairs.launches import cpu_steps, on_long_pair
from plait.dp.pairs.tiles import (
    Grid,
    KeptTiles,
    LongPair,
    Sweep,
    Tile,
    TileSteps,
    Visit,
    Walk,
    _Ahead,
    align_long,
    cuts,
    edges_of,
    score_long,
    sweep_tile,
)
from plait.errors import DeviceFailure, DeviceMemoryError

MODES = ("global", "local", "overlap", "extension")
SIDE = 64


class OnTheCpu:
    """Visits of up to three by two tiles; `ahead`: each begins the one below at once."""

    visits = 2

    def __init__(self, steps: TileSteps, ahead: bool) -> None:
        self.steps, self.ahead = steps, ahead
        self.swept = 0
        self.copier = ThreadPoolExecutor(1, "plait-test-copy")

    def serves(self, pair: LongPair, region: Tile) -> bool:
        return region.cells > 4 * SIDE * SIDE

    def grid(self, region: Tile, checkpoint_limit: int, wanted: int) -> Grid:
        rows, columns = region.row_end - region.row, region.column_end - region.column
        side = SIDE if max(rows, columns) < 10 * SIDE else 5 * SIDE
        down, across = cuts(*region[:2], side), cuts(*region[2:], side)
        return Grid(region, down, across, cuts(0, down.size - 1, 3), cuts(0, across.size - 1, 2))

    def sweep(self, pair: LongPair, visit: Visit) -> NDArray[np.int64]:
        if self.ahead:
            if visit.below is not None:
                visit.below.begin(visit.columns)
            if visit.above is not None:
                assert np.array_equal(visit.above.edge, visit.columns)
                assert visit.above.over.wait(60)
        shape = visit.rows.size - 1, visit.columns.size - 1
        region = Tile(int(visit.rows[0]), int(visit.rows[-1]), int(visit.columns[0]), int(visit.columns[-1]))
        values = np.full(shape, -(2**31))
        corners = np.zeros((shape[0] + 1, shape[1] + 1), np.int64)
        corners[0, 0] = visit.corner
        corners[0, 1:] = visit.edges.row_h[visit.columns[1:] - 1 - region.column]
        corners[1:, 0] = visit.edges.column_h[visit.rows[1:] - 1 - region.row]
        for i, j in np.ndindex(*shape):
            tile = Tile(*map(int, (*visit.rows[i : i + 2], *visit.columns[j : j + 2])))
            edges = edges_of(visit.edges, tile, region)
            rows, columns = tile.within(region)
            if visit.kept is not None:
                visit.kept.rows[i, columns] = np.stack([edges.row_h, edges.row_f], axis=1)
                visit.kept.columns[j, rows] = np.stack([edges.column_h, edges.column_e], axis=1)
            best, _ = sweep_tile(pair, self.steps, tile, edges, int(corners[i, j]), False)
            corners[i + 1, j + 1] = edges.row_h[-1]
            values[i, j] = best[0]
        self.swept += 1
        visit.copies.append(self.copier.submit(self.copy, pair.progress))
        return values

    @staticmethod
    def copy(told: object) -> None:
        """Nothing is to be copied."""


@pytest.fixture(params=[(1, False), (3, True)])
def together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[OnTheCpu]:
    """Long pairs are swept so, and cut again; with one thread, and with some that look ahead."""
    steps = cpu_steps(request.param[0])
    many = OnTheCpu(steps, request.param[1])
    monkeypatch.setattr(launches, "cpu_steps", lambda threads: steps._replace(many=many))
    monkeypatch.setattr(whole_pairs, "_TILED_CELLS", 1)
    monkeypatch.setattr(whole_pairs, "_LARGEST_WHOLE", 1)
    monkeypatch.setattr(launches, "_CHOICES_BESIDE_MANY", 1 << 12)
    yield many
    assert many.swept
    # Nothing looks ahead any more.
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("plait-ahead")]
    many.copier.shutdown()


def pair(seed: int) -> tuple[str, str]:
    rng = random.Random(seed)
    query = "".join(rng.choices("ACGTN", k=1_300))
    target = "".join(rng.choice("ACGT") if rng.random() < 0.1 else letter for letter in query)
    unit = "ACGGTCA" * 40
    return query[:600] + unit + query[650:], unit + target[:200] + target[320:] + unit


@pytest.mark.parametrize(
    "costs", often(1, [{"gap_open": 5, "gap_extend": 2}, {"gap_open": 3, "gap_extend": 3}])
)
@pytest.mark.parametrize("mode", MODES)
def test_alignments_are_those_of_whole_pairs(mode: Any, costs: Any, together: OnTheCpu) -> None:
    query, target = pair(3)
    how: dict[str, Any] = {"mode": mode, "kind": "dna", **costs}
    wanted = align(query, target, traceback="full", device="cpu", **how)
    assert align(query, target, device="cpu", **how) == wanted
    assert score(query, target, device="cpu", **how) == wanted.score


def test_the_end_is_the_first_of_equally_good_ones(together: OnTheCpu) -> None:
    unit = "ACGGTCATTGACCA" * 8
    query, target = "T" * 150 + unit + "T" * 300, unit + "G" * 400 + unit + "G" * 70
    wanted = align(query, target, mode="local", traceback="full", device="cpu", kind="dna")
    assert align(query, target, mode="local", device="cpu", kind="dna") == wanted
    assert align(target, query, mode="local", device="cpu", kind="dna").target_end == wanted.query_end


def test_nothing_alike_has_no_end(together: OnTheCpu) -> None:
    found = align("AC" * 200, "GT" * 300, mode="local", device="cpu", kind="dna")
    assert (found.score, found.cigar) == (0, "")


def test_the_best_are_those_of_small_tiles(together: OnTheCpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many end near one another, and walks of later ones join those of earlier ones."""
    how: dict[str, Any] = {"kind": "dna", "gap_open": 5, "gap_extend": 2, "device": "cpu"}
    joined: list[bool] = []
    follow = Walk._follow

    def counted(walk: Walk, kept: KeptTiles) -> bool:
        joined.append(follow(walk, kept))
        return joined[-1]

    monkeypatch.setattr(Walk, "_follow", counted)
    found = local_best(*pair(3), 60, apart=3, **how)
    assert together.swept and sum(joined) > 30
    monkeypatch.setattr(Walk, "_follow", lambda walk, kept: False)
    together.serves = lambda pair, region: False  # type: ignore[method-assign]
    assert local_best(*pair(3), 60, apart=3, **how) == found


@pytest.mark.parametrize("from_the_corner", often(1, [False, True]))
@pytest.mark.parametrize("mode", MODES)
def test_walks_meet_those_that_were_foreseen(
    mode: Any, from_the_corner: bool, together: OnTheCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever these come into a region."""
    joined: list[bool] = []
    follow, foreseen = Walk._follow, _Ahead._foreseen

    def counted(walk: Walk, kept: KeptTiles) -> bool:
        joined.append(follow(walk, kept))
        return joined[-1]

    def elsewhere(ahead: _Ahead, sweep: Sweep, row: int, column: int) -> KeptTiles:
        region = sweep.grid.region
        return foreseen(ahead, sweep, region.row_end - 1, region.column_end - 1)

    monkeypatch.setattr(Walk, "_follow", counted)
    if from_the_corner:
        monkeypatch.setattr(_Ahead, "_foreseen", elsewhere)
    query, target = pair(5)
    how: dict[str, Any] = {"mode": mode, "kind": "dna", "gap_open": 5, "gap_extend": 2}
    found = align(query, target, device="cpu", **how)
    assert any(joined) == (together.steps.threads > 1)
    assert found == align(query, target, traceback="full", device="cpu", **how)


def test_some_memory_is_free() -> None:
    assert 0 <= free_bytes() < 1 << 50


class Stopped(Exception):
    """What stops an alignment."""


@pytest.mark.parametrize("after", often(2, [1, 4, 30]))
def test_nothing_works_on_after_a_stop(
    after: int, together: OnTheCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[int] = []
    query, target = pair(4)
    steps = launches.cpu_steps(1)

    def step(*arguments: Any) -> Any:
        walked.append(1)
        if len(walked) > after:
            raise Stopped
        return steps.walk(*arguments)

    monkeypatch.setattr(launches, "cpu_steps", lambda threads: steps._replace(walk=step, threads=3))
    with pytest.raises(Stopped):
        align(query, target, device="cpu", kind="dna")
    swept = together.swept
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("plait-ahead")]
    assert together.swept == swept


@pytest.mark.parametrize("number", [0, 3, 8])
def test_an_error_of_a_copy_ends_the_alignment(
    number: int, together: OnTheCpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever sweep it is of: with edges that were not copied, another alignment would come out."""
    copies: list[object] = []

    def copy(told: object) -> None:
        copies.append(told)
        if len(copies) > number:
            raise Stopped

    monkeypatch.setattr(together, "copy", copy)
    with pytest.raises(Stopped):
        align(*pair(3), device="cpu", kind="dna")


@pytest.mark.parametrize("error", [DeviceFailure, DeviceMemoryError])
def test_another_target_stands_in(error: Any, together: OnTheCpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the beginning, when a device fails in the middle and nobody asked for it by name."""
    query, target = pair(5)
    wanted = align(query, target, mode="local", traceback="full", device="cpu", kind="dna")
    facts: dict[str, Any] = {"reason": ""} if error is DeviceFailure else {"needed": None, "free": None}
    sweep, steps = together.sweep, launches.cpu_steps(1)

    def fail(pair: LongPair, visit: Visit) -> NDArray[np.int64]:
        if together.swept >= 3:
            raise error("cuda:0", fix="", **facts)
        return sweep(pair, visit)

    monkeypatch.setattr(together, "sweep", fail)
    with pytest.raises(error):
        score(query, target, mode="local", device="cpu", kind="dna")
    together.swept = 0
    on_gpu = SimpleNamespace(
        align_batch=lambda batch, target: on_long_pair(align_long, steps, batch),
        score_batch=lambda batch, target: on_long_pair(score_long, steps, batch),
    )
    monkeypatch.setitem(sys.modules, "plait.dp.pairs.gpu_long", on_gpu)
    monkeypatch.setattr(launches, "cpu_steps", lambda threads: steps._replace(many=None))
    monkeypatch.setattr(launches, "_LEAST_CELLS", 1)
    monkeypatch.setattr(cuda_target._Found, "process", -1)
    monkeypatch.setattr(cuda_target, "_tried", lambda number: "")
    # No aligner of another test, and none for another.
    monkeypatch.setattr(aligner, "_kept_aligner", aligner._kept_aligner.__wrapped__)
    monkeypatch.setattr(aligner, "resolve", lambda *how: CudaTarget([0], 1, sparing=True))
    with pytest.warns(RuntimeWarning, match="the CPU does it instead"):
        assert align(query, target, mode="local", kind="dna") == wanted
    if error is DeviceFailure:
        # It is not asked again.
        swept = together.swept
        assert score(query, target, mode="local", kind="dna") == wanted.score
        assert together.swept == swept
        return
    together.swept = 1
    assert score(query, target, mode="local", kind="dna") == wanted.score
    assert together.swept > 1
