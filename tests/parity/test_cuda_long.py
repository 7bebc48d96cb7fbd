"""Very long pairs on a GPU: the alignment of the CPU, to the last tie, in the simulator and on a device."""

from __future__ import annotations

import importlib.util
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.alignment_batches import rescore
from support.cuda_build import ptx_of
from support.cuda_examples import examples_of
from support.ranks import on_ranks

from plait.align import SubstitutionMatrix, align, local_best, score
from plait.align import aligner as aligners
from plait.align import batches as whole_pairs
from plait.devices.driver import DriverDevice
from plait.dp.pairs import kbest
from plait.dp.pairs import launches as pair_launches
from plait.dp.pairs.gpu_long import (
    CELLS_OF_A_LAUNCH,
    LEAST_COLUMNS,
    LEAST_TILE,
    Capacity,
    GpuTiles,
    plan_grid,
)
from plait.dp.pairs.tiles import Grid, LongPair, Tile
from plait.run.mpi import MpiExecutor

EITHER = (pytest.mark.gpu, pytest.mark.cuda_simulator)
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "") not in ("", "0")
#: Residues of a pair: a simulated step takes a millisecond.
SIZE = 64 if SIMULATED else 6_000
MODES = ("global", "local", "overlap", "extension")
DNA = "ACGTN"
PROTEIN = "ARNDCQEGHILKMFPSTWYVBZX"
AFFINE = {"gap_open": 5, "gap_extend": 2}
LINEAR = {"gap_open": 3, "gap_extend": 3}


def drawn(rng: random.Random, letters: str, size: int) -> str:
    return "".join(rng.choices(letters, k=size))


def changed(rng: random.Random, letters: str, sequence: str, often: float) -> str:
    """Substitutions, and gaps of up to some letters."""
    pieces = []
    for letter in sequence:
        kind = rng.random() / often
        if kind < 0.5:
            pieces.append(rng.choice(letters))
        elif kind < 0.75:
            pieces.append(letter + drawn(rng, letters, rng.randrange(1, 6)))
        elif kind > 1.0:
            pieces.append(letter)
    return "".join(pieces)


def related(letters: str, rows: int = SIZE, *, seed: int = 5) -> tuple[str, str]:
    rng = random.Random(seed)
    query = drawn(rng, letters, rows)
    return query, changed(rng, letters, query, 0.2)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles and stripes of a few rows where kernels are simulated, and little memory, so that all is cut."""
    from plait.dp.pairs import gpu_long as cuda_long
    from plait.dp.pairs import gpu_long as cuda_long_plan
    from plait.dp.pairs import gpu_stripes as cuda_long_kernel

    memory = 1 << 12 if SIMULATED else 1 << 19
    # Nothing is so short that it needs no device.
    monkeypatch.setattr(aligners.Aligner, "_single", lambda *given: None)
    monkeypatch.setattr(whole_pairs, "_TILED_CELLS", 1)
    monkeypatch.setattr(pair_launches, "_CHOICES_BESIDE_MANY", memory)
    monkeypatch.setattr(whole_pairs, "LongPair", partial(LongPair, checkpoint_limit=memory))
    monkeypatch.setattr(pair_launches, "_MOST_CHECKPOINTS", memory)
    monkeypatch.setattr(cuda_long, "_LEAST_CELLS", 1)
    monkeypatch.setattr(cuda_long_plan, "LEAST_TILE", 64)
    monkeypatch.setattr(cuda_long_plan, "LEAST_COLUMNS", SIZE // 2)
    if SIMULATED:
        monkeypatch.setattr(cuda_long_kernel, "ROWS", 2)


def assert_same(query: str, target: str, **how: Any) -> None:
    wanted = align(query, target, device="cpu", threads=2, **how)
    found = align(query, target, device="cuda", traceback="linear", threads=2, **how)
    assert (found.score, found.cigar) == (wanted.score, wanted.cigar)
    assert found == wanted
    scoring = found.scoring
    assert rescore(found, scoring.encode(query), scoring.encode(target), scoring) == found.score
    assert score(query, target, device="cuda", threads=2, **how) == wanted.score


@pytest.mark.gpu
@pytest.mark.cuda_simulator
@pytest.mark.usefixtures("small_tiles")
class TestAsOnTheCpu:
    @pytest.mark.parametrize("costs", [AFFINE, LINEAR], ids=["affine", "linear"])
    @pytest.mark.parametrize("mode", MODES)
    def test_nucleotides(self, mode: Any, costs: Any) -> None:
        assert_same(*related(DNA), mode=mode, kind="dna", **costs)

    @pytest.mark.parametrize("mode", MODES[:2])
    def test_proteins(self, mode: Any) -> None:
        assert_same(*related(PROTEIN), mode=mode, kind="protein")

    @pytest.mark.parametrize(
        "rule", [{"apart": 5}, {"apart": 1, "min_score": 9}, {"disjoint": True}], ids=str
    )
    def test_several_alignments(self, monkeypatch: pytest.MonkeyPatch, rule: Any) -> None:
        monkeypatch.setattr(kbest, "_SEEN_CELLS", 1 << (8 if SIMULATED else 14))
        unit = "ACGGTCAA" * (SIZE // 24)
        for query, target in (related(DNA), (unit, drawn(random.Random(1), DNA, SIZE // 2) + unit)):
            wanted = local_best(query, target, 12, kind="dna", device="cpu", **rule)
            assert local_best(query, target, 12, kind="dna", device="cuda", **rule) == wanted

    def test_ranks_share_the_matrix(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kbest, "_SHARED_CELLS", 1)
        swept = []
        sweep = kbest._sweep_piece
        monkeypatch.setattr(kbest, "_sweep_piece", lambda *given: swept.append(given[1]) or sweep(*given))
        query, target = related(DNA)

        def best(ranks: MpiExecutor | None, device: str = "cuda") -> Any:
            return local_best(query, target, 12, ranks=ranks, kind="dna", device=device)

        assert on_ranks(2, best) == [best(None, "cpu")] * 2
        assert {type(many) for many in swept} == {GpuTiles} and len(swept) > 1

    @pytest.mark.parametrize("mode", MODES[:2])
    def test_large_scores(self, mode: Any) -> None:
        scores = np.where(np.eye(4), 900, -1_300).astype(np.int32)
        matrix = SubstitutionMatrix("large", "ACGT", scores, "dna")
        assert_same(*related("ACGT"), mode=mode, matrix=matrix, gap_open=2_000, gap_extend=700)

    @pytest.mark.parametrize("mode", MODES)
    def test_ends_that_are_equally_good(self, mode: Any) -> None:
        unit = "ACGGTCA" * (SIZE // 20)
        assert_same("T" * (SIZE // 8) + unit, unit[3:] + "G" * (SIZE // 8) + unit, mode=mode, kind="dna")

    def test_nothing_alike(self) -> None:
        assert_same("AC" * (SIZE // 3), "GT" * (SIZE // 4), mode="local", kind="dna")

    @pytest.mark.parametrize("ends", [("query_start", "target_end"), ("target_start", "query_end")])
    def test_semiglobal(self, ends: Any) -> None:
        query, target = related(DNA, seed=6)
        cut = SIZE // 5
        assert_same(query[cut:], target[:-cut], mode="semiglobal", free_ends=ends, kind="dna")

    @pytest.mark.parametrize(("rows", "columns"), [(1, SIZE), (SIZE, 1), (64, 65), (SIZE, SIZE // 3)])
    def test_shapes(self, rows: int, columns: int) -> None:
        query, target = related(DNA, seed=7)
        assert_same((query * 2)[:rows], (target * 2)[:columns], mode="global", kind="dna")


@pytest.mark.gpu
@pytest.mark.cuda_simulator
@pytest.mark.usefixtures("small_tiles")
def test_two_pairs_at_the_same_time() -> None:
    """They take turns on the devices, and what is copied of one is not waited for by the other."""
    pairs = [related(DNA, seed=seed) for seed in (11, 12)]

    def run(pair: tuple[str, str]) -> Any:
        return align(*pair, device="cuda", traceback="linear", threads=2, mode="local", kind="dna", **AFFINE)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, pairs))
    for pair, one in zip(pairs, found, strict=True):
        assert one == align(*pair, device="cpu", threads=2, mode="local", kind="dna", **AFFINE)


@pytest.mark.gpu
@pytest.mark.gpu
@pytest.mark.cuda_simulator
@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("mode", MODES[:3])
def test_a_score_is_found_without_what_nobody_asks_for(monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    """The last row, unless any of it may be the end, and edges of other tiles than the best."""
    from plait.dp.pairs import gpu_long as cuda_long

    bottoms, copied = set[int](), []

    class Noted(cuda_long._Memory):
        def __init__(self, coded: Any, visit: Any, *rest: Any) -> None:
            super().__init__(coded, visit, *rest)
            if visit.rows[-1] == coded.query.size:
                bottoms.add(int(self.shape.rows) % (32 * cuda_long.kernel.ROWS))

        def fetch_kept(self, *given: Any) -> None:
            kept = [values[1:] for values in self.visit.kept or ()]
            for values in kept:
                values[:] = -(10**6)
            super().fetch_kept(*given)
            copied.append(sum(int((values > -(10**6)).any(axis=2).sum()) for values in kept))
            assert copied[-1] < max(sum(values.size for values in kept) // 4, 1)

    monkeypatch.setattr(cuda_long, "_Memory", Noted)
    query, target = related(DNA, SIZE - SIZE % 64 + 5)
    how: dict[str, Any] = {"mode": mode, "kind": "dna", **AFFINE}
    assert score(query, target, device="cuda", **how) == score(query, target, device="cpu", **how)
    assert (bottoms == {0}) == (mode != "overlap") and bool(copied) == (mode == "local")


@pytest.mark.cuda_simulator
@pytest.mark.usefixtures("small_tiles")
def test_what_sweeps_on_the_way_back_is_made_ready_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large pair that is aligned; a score has no way back."""
    from plait.devices.cuda import CudaKernel
    from plait.dp.pairs import gpu_long as cuda_long

    ready: list[Any] = []
    monkeypatch.setattr(CudaKernel, "prepare", lambda kernel, *given: ready.append(type(given[2]).__name__))
    monkeypatch.setattr(cuda_long, "_FEW_FOR_ALL", 0)
    query, target = related(DNA, SIZE)
    how: dict[str, Any] = {"mode": "local", "kind": "dna", **AFFINE}
    assert score(query, target, device="cuda", threads=2, **how) > 0 and not ready
    align(query, target, device="cuda", traceback="linear", threads=2, **how)
    assert {*ready} == {"AtEdges"}


@pytest.mark.cuda_simulator
def test_what_is_still_copied_is_not_written_over() -> None:
    from plait.devices.cuda_devices import on_device
    from plait.dp.pairs import gpu_long as cuda_long

    device, go_on, order = cuda_long._Device(0), threading.Event(), list[bool]()

    class First:
        def fetch_kept(self, stream: Any, best: Any) -> None:
            assert go_on.wait(300)

    class Second:
        def fetch_kept(self, stream: Any, best: Any) -> None:
            order.append(first.done())

    with on_device(0):
        own = [cuda_long._kept(device, "rows", 2, 3)]
        first = device.keep(First(), np.zeros(0, np.int64))  # type: ignore[arg-type]
        own.append(cuda_long._kept(device, "rows", 2, 3))
        for k, array in enumerate(own):
            array.copy_to_device(np.full((2, 3), k))
        assert [np.unique(array.copy_to_host()).tolist() for array in own] == [[0], [1]]
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(device.keep, Second(), np.zeros(0, np.int64))  # type: ignore[arg-type]
            go_on.set()
            second.result(300).result(300)
    assert order == [True] and device.turn == 0


@pytest.mark.slow
@pytest.mark.skipif(
    SIMULATED or importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda compiles nothing here"
)
def test_no_loop_is_split_for_threads_that_differ() -> None:
    from plait.dp.pairs.gpu_stripes import sweep_stripes

    # Two exchanges a step, for whole stripes and for the last one. Split loops run one after the other.
    ptx = ptx_of(sweep_stripes, examples_of(sweep_stripes)[0], (9, 0))
    assert ptx.count("shfl.sync.up") == 4


@pytest.mark.gpu
@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("costs", [AFFINE, LINEAR], ids=["affine", "linear"])
def test_real_sizes(mode: Any, costs: Any) -> None:
    query, target = related("ACGT", 40_000, seed=8)
    assert_same(query[:25_000] + query, target + target[5_000:9_000], mode=mode, kind="dna", **costs)


@pytest.mark.gpu
@pytest.mark.parametrize("mode", MODES[:2])
def test_more_stripes_under_way_than_a_byte_can_number(mode: Any) -> None:
    query, target = related("ACGT", 300_000, seed=9)
    assert_same(query, target[140_000:143_000], mode=mode, kind="dna", **AFFINE)


H200 = Capacity(devices=1, multiprocessors=132, warps=132 * 12, memory=40 << 30, height=768)


def launches(grid: Grid) -> list[Tile]:
    shape = grid.visit_rows.size - 1, grid.visit_columns.size - 1
    return [grid.visit(i, j) for i in range(shape[0]) for j in range(shape[1])]


@pytest.mark.parametrize("devices", [1, 4])
@pytest.mark.parametrize("limit", [0, 1 << 28, 1 << 34])
@pytest.mark.parametrize(
    "sizes", [(4_600_000, 4_900_000), (1_000_000, 1_000_000), (30_000, 5_000_000), (700, 90_000)]
)
def test_plan_covers_all_cells_and_keeps_to_its_limits(
    sizes: tuple[int, int], limit: int, devices: int
) -> None:
    region = Tile(100, 100 + sizes[0], 7, 7 + sizes[1])
    capacity = H200._replace(devices=devices)
    grid = plan_grid(region, limit, capacity)
    found = launches(grid)
    assert sum(tile.cells for tile in found) == region.cells
    assert (grid.rows[0], grid.rows[-1]) == region[:2]
    assert (grid.columns[0], grid.columns[-1]) == region[2:]
    down, across = grid.rows.size - 1, grid.columns.size - 1
    side = int(np.diff(grid.rows).max(initial=512))
    if limit:
        assert not np.any(np.diff(grid.rows)[:-1] % capacity.height)
        assert 8 * (down * sizes[1] + across * sizes[0]) <= max(limit, 16 * region.cells // LEAST_TILE) * 1.2
        assert down == 1 or max(sizes) > side
    for tile in found:
        rows = tile.row_end - tile.row
        assert rows <= max(capacity.warps * capacity.height, side)
        assert tile.cells <= max(CELLS_OF_A_LAUNCH * 132, rows * max(LEAST_COLUMNS, side))
    # Launches follow each other column by column, so that they need not be cut for the sake of others.
    most = CELLS_OF_A_LAUNCH * 132
    assert len({tile.column for tile in found}) == 1 or found[0].cells > most // 3
    if devices > 1 and sizes[0] > 1_000_000:
        # Every device has as many of a diagonal as the others.
        assert len({tile.row for tile in found}) % devices == 0


@pytest.mark.parametrize(("devices", "launches"), [(1, 3), (2, 4), (4, 4)])
@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_launches_take_the_least_time(
    monkeypatch: pytest.MonkeyPatch, devices: int, launches: int, limit: int
) -> None:
    # Four stripes for each scheduler, or three at once where every device has as many launches then.
    from plait.dp.pairs import gpu_long

    facts = DriverDevice(0, "H200", (9, 0), 132, 140 << 30, shared_per_block=227 << 10)
    monkeypatch.setattr(gpu_long, "_Device", lambda number: SimpleNamespace(facts=facts))
    monkeypatch.setattr(gpu_long, "least_free_memory", lambda numbers, tidy: (100 << 30, 0))
    tiles = gpu_long.GpuTiles([0] * devices)
    tiles._last = SimpleNamespace(most_warps=lambda facts: 20)  # type: ignore[assignment]
    grid = tiles.grid(Tile(0, 4_600_000, 0, 4_900_000), limit, 0)
    assert grid.visit_rows.size - 1 == launches


@pytest.mark.parametrize("wanted", [1, 200])
def test_tiles_tell_how_low_the_last_of_the_best_can_be(wanted: int) -> None:
    grid = plan_grid(Tile(0, 200_000, 0, 400_000), 1 << 34, H200, wanted)
    # Those of one of four classes, between which others lie, see `plait.dp.pairs.kbest`.
    assert (grid.rows.size // 2) * (grid.columns.size // 2) >= 4 * wanted - 3


def test_plan_of_a_small_region_cuts_it() -> None:
    grid = plan_grid(Tile(0, 2_000, 0, 1_500), 1, H200)
    assert grid.rows.tolist() == [0, 1_536, 2_000]
    assert grid.columns.tolist() == [0, 1_500]


def test_plan_for_little_memory_of_a_device() -> None:
    grid = plan_grid(Tile(0, 300_000, 0, 3_000_000), 1 << 34, H200._replace(memory=1 << 28))
    side = int(np.diff(grid.rows).max())
    for tile in launches(grid):
        rows, columns = tile.row_end - tile.row, tile.column_end - tile.column
        assert columns <= LEAST_COLUMNS or 16 * rows * columns // side <= 1 << 28
