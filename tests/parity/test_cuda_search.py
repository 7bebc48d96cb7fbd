"""Scores of queries with many targets: GPU or simulator against the CPU, and whole searches."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from plait.align.hits import search_files
from plait.align.scoring import free_ends_of
from plait.align.settings import SearchSettings
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.dp.pairs.blocks import BestBatch, BlockBatch, TargetBlocks, arrange, packed_columns
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.launches import BLOCK_SCORES
from plait.dp.pairs.lists import FreeEnds
from plait.errors import DeviceMemoryError, Unsupported

SMALL = [pytest.mark.gpu, pytest.mark.cuda_simulator]
LOCAL = free_ends_of("local")
OTHERS = {
    "global": free_ends_of("global"),
    "overlap": free_ends_of("overlap"),
    "extension": free_ends_of("extension"),
    "query-ends": free_ends_of("semiglobal", ["query_start", "query_end"]),
    "target-ends": free_ends_of("semiglobal", ["target_start", "target_end"]),
}
Scores = NDArray[np.int64]


def nothing(cells: int) -> None:
    """Nobody watches."""


def blocks_of(targets: list[Any]) -> TargetBlocks:
    lengths = np.array([len(target) for target in targets])
    layout = arrange(lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)])[layout.order[: lengths.size]]
    codes = np.concatenate([np.zeros(0, np.uint8), *targets]).tobytes()
    columns = packed_columns(codes, starts, layout, range(len(layout.lengths)), 1 << 16)
    packed = np.concatenate([np.zeros((0, 64), np.uint8), *columns])
    return TargetBlocks(packed, layout.first_columns, layout.lengths)


class Case:
    """A query and targets drawn from a seed."""

    def __init__(self, rows: int, sizes: list[int], *, free: FreeEnds = LOCAL, **how: Any) -> None:
        rng = np.random.default_rng(how.get("seed", 0))
        letters, scale = how.get("letters", 20), how.get("scale", 1)
        scores = np.minimum(rng.integers(-4, 6, (letters, letters)), 5) * scale
        query = rng.integers(0, letters, rows)
        opening, further = how.get("gaps", (11, 1))
        self.query = BlockQuery(query, scores, opening, further, free)
        targets = [rng.integers(0, letters, size).astype(np.uint8) for size in sizes]
        targets += [query.astype(np.uint8)[k:] for k in range(how.get("copies", 0))]
        self.blocks = blocks_of(targets)

    def assert_same(self, run: Callable[..., Any]) -> None:
        used = self.blocks.lengths > 0
        expected = on_cpu(self.query, self.blocks)
        found = run(self.query, self.blocks, nothing)
        assert found.shape == expected.shape and found.dtype == expected.dtype
        assert np.array_equal(found[used], expected[used])


def on_cpu(query: BlockQuery, blocks: TargetBlocks) -> Scores:
    return CpuTarget(1).launch(BLOCK_SCORES, BlockBatch([query], blocks))[0]


def on_gpu(
    query: BlockQuery,
    blocks: TargetBlocks,
    progress: Callable[[int], None],
    devices: Sequence[int] = (0,),
) -> Scores:
    from plait.dp.pairs import gpu_search as cuda_search

    return cuda_search.score_batch(BlockBatch([query], blocks, progress), CudaTarget(devices))[0]


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 bits for all scores."""
    from plait.dp.pairs import gpu_search as cuda_search

    monkeypatch.setattr(cuda_search, "PackedQuery", lambda *given: SimpleNamespace(possible=False))
    monkeypatch.setattr(cuda_search, "_FORMS", cuda_search._Forms())


LOCAL_CASES = {
    "short": Case(20, [5, 12, 1, 0, 20]),
    "long-target": Case(9, [70, 0, 3], letters=4, gaps=(3, 3)),
    "two-stripes": Case(300, [3, 9]),
    "one-row": Case(1, [4, 1]),
    "large-scores": Case(20, [20], scale=1000, gaps=(1100, 100), copies=1),
    "free-gaps": Case(12, [14], gaps=(0, 0)),
}


class TestSmall:
    pytestmark = SMALL

    @pytest.mark.parametrize("case", LOCAL_CASES.values(), ids=LOCAL_CASES)
    def test_local(self, case: Case) -> None:
        case.assert_same(on_gpu)

    @pytest.mark.usefixtures("wide")
    @pytest.mark.parametrize("case", LOCAL_CASES.values(), ids=LOCAL_CASES)
    def test_local_with_32_bits(self, case: Case) -> None:
        case.assert_same(on_gpu)

    @pytest.mark.parametrize("free", OTHERS.values(), ids=OTHERS)
    def test_other_modes(self, free: FreeEnds) -> None:
        Case(10, [5, 12, 1], free=free, gaps=(5, 1)).assert_same(on_gpu)

    def test_global_in_two_stripes(self) -> None:
        Case(258, [7], free=OTHERS["global"], gaps=(5, 1)).assert_same(on_gpu)

    def test_blocks_of_one_lane(self) -> None:
        case = Case(10, [33])
        codes = case.blocks.packed[:33, :1]
        lane = TargetBlocks(codes, np.array([0, 33]), np.array([[33]], np.int32))
        expected = on_cpu(case.query, case.blocks)
        assert on_gpu(case.query, lane, nothing).tolist() == [[expected[0, 0]]]

    def test_nothing_to_align(self) -> None:
        blocks = TargetBlocks(np.zeros((0, 64), np.uint8), np.zeros(2, np.int64), np.zeros((1, 64), np.int32))
        assert not on_gpu(Case(3, [1]).query, blocks, nothing).any()

    def test_scores_beyond_31_bits(self) -> None:
        case = Case(40, [40], scale=1 << 28, gaps=(1, 1))
        with pytest.raises(Unsupported, match="scale scores"):
            on_gpu(case.query, case.blocks, nothing)

    def test_more_letters_than_the_kernel_has(self) -> None:
        case = Case(40, [40, 20])
        query = case.query._replace(rows=np.arange(40), scores=np.resize(case.query.scores, (40, 20)))
        expected = on_cpu(query, case.blocks)
        assert np.array_equal(on_gpu(query, case.blocks, nothing)[:, :2], expected[:, :2])

    def test_parts_and_too_little_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Several queries, targets in several parts, and those in halves since memory is said to be short."""
        from plait.dp.pairs import gpu_search as cuda_search
        from plait.dp.pairs.gpu_search import SLOTS, SearchSlot

        case, other = Case(3, [1] * 200, letters=4), Case(2, [1], letters=4, seed=1)
        plan = SLOTS.plan([0])
        monkeypatch.setattr(SLOTS, "plan", lambda devices: plan._replace(residues=140, slots=1))
        send, refused = SearchSlot.send, []

        def short(slot: SearchSlot, part: TargetBlocks, *rest: Any) -> Any:
            if len(part.lengths) > 1:
                refused.append(len(part.lengths))
                raise DeviceMemoryError("cuda:0", needed=None, free=None, fix="")
            return send(slot, part, *rest)

        monkeypatch.setattr(SearchSlot, "send", short)
        told: list[int] = []
        batch = BlockBatch([case.query, other.query], case.blocks, told.append)
        found = cuda_search.score_batch(batch, CudaTarget([0]))
        assert refused == [2, 2] and sum(told) == 200 * (3 + 2)
        for query, scores in zip((case.query, other.query), found, strict=True):
            expected = on_cpu(query, case.blocks)
            assert np.array_equal(scores.ravel()[:200], expected.ravel()[:200])

    def test_queries_with_blocks_of_their_own(self) -> None:
        from plait.dp.pairs import gpu_search as cuda_search

        case, other = Case(3, [5] * 70, letters=4), Case(2, [1], letters=4, seed=1)
        ranges = np.array([[0, 1], [1, 2]])
        batch = BlockBatch([case.query, other.query], case.blocks, ranges=ranges)
        found = cuda_search.score_batch(batch, CudaTarget([0]))
        for query, own, scores in zip(batch.queries, ranges.tolist(), found, strict=True):
            expected = on_cpu(query, case.blocks.between(*own))
            assert np.array_equal(scores.ravel()[:6], expected.ravel()[:6])

    @pytest.mark.parametrize("least", [1, 9, 5000])
    @pytest.mark.parametrize("room", [0, 20])
    def test_the_best_are_those_of_all_scores(
        self, monkeypatch: pytest.MonkeyPatch, least: int, room: int
    ) -> None:
        """Two launches, ties of the last of the best with and without room, and scores of 32 bits."""
        from plait.dp.pairs import gpu_search as cuda_search

        steps: list[str] = []
        for name in ("_packed", "_exact"):
            own = getattr(cuda_search.SearchSlot, name)
            noted = lambda *given, name=name, own=own: (steps.append(name), own(*given))[1]  # noqa: E731
            monkeypatch.setattr(cuda_search.SearchSlot, name, noted)
        monkeypatch.setattr(cuda_search, "_TOGETHER", 2)
        monkeypatch.setattr(cuda_search, "_TIED", room)
        case = Case(7, [k % 9 for k in range(70)], letters=4, copies=3)
        queries = [Case(rows, [1], letters=4, seed=rows).query for rows in (7, 3)]
        queries.append(Case(5, [1], letters=4, scale=900).query)
        batch = BestBatch(queries, case.blocks, [least, 1, least], 4)
        found = cuda_search.best_batch(batch, CudaTarget([0]))
        for number, own in enumerate(queries):
            scores = on_cpu(own, case.blocks).ravel()
            floor = 1 if own is queries[1] else least
            floor = max(floor, int(np.sort(scores[case.blocks.lengths.ravel() > 0])[-4]))
            wanted = np.flatnonzero((scores >= floor) & (case.blocks.lengths.ravel() > 0))
            mine = found.queries == number
            order = np.argsort(found.lanes[mine])
            assert found.lanes[mine][order].tolist() == wanted.tolist()
            assert found.scores[mine][order].tolist() == scores[wanted].tolist()
        # The device has the second launch before what the first one found is taken over.
        assert steps[:2] == ["_packed"] * 2 and {*steps[2:]} == {"_exact"}

    def test_targets_stay_between_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Those of an array that nobody may write to are sent once, as long as it is there."""
        from plait.dp.pairs import gpu_search as cuda_search

        plan = cuda_search.SLOTS.plan([0])
        monkeypatch.setattr(cuda_search.SLOTS, "plan", lambda devices: plan._replace(residues=1 << 16))
        sent: list[int] = []
        stage = cuda_search.SearchSlot.stage
        monkeypatch.setattr(
            cuda_search.SearchSlot,
            "stage",
            lambda slot, values, *rest: (sent.append(values.size), stage(slot, values, *rest)),
        )
        case = Case(7, [k % 9 for k in range(130)], letters=4, copies=3)

        def found(blocks: TargetBlocks) -> int:
            """Residues that were sent."""
            sent.clear()
            scores = cuda_search.score_batch(BlockBatch([case.query], blocks), CudaTarget([0]))
            used = blocks.lengths > 0
            assert np.array_equal(scores[0][used], on_cpu(case.query, blocks)[used])
            return sum(sent)

        whole = case.blocks._replace(packed=case.blocks.packed.copy())
        every = int(whole.first_columns[-1]) * whole.packed.shape[1]
        assert found(whole) == found(whole) == every
        whole.packed.setflags(write=False)
        assert [found(whole) for _ in range(3)] == [every, 0, 0]
        part = whole.between(1, 2)
        assert 0 < found(part) < every
        assert found(part) == found(whole) == 0
        shorter = part.lengths.copy()
        shorter[0, :3] = 0
        assert found(part._replace(lengths=shorter)) > 0
        # Another array, though it has the same in it.
        assert found(whole._replace(packed=whole.packed.view())) == every

    def test_targets_that_are_gone_leave_no_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from plait.dp.pairs import gpu_search as cuda_search

        # But for small arrays.
        monkeypatch.setattr(cuda_search, "_SMALL", 2048)
        cuda_search.SLOTS.release()
        case = Case(7, [5] * 70, letters=4)
        mine, other = (case.blocks._replace(packed=case.blocks.packed.copy()) for _ in range(2))
        mine.packed.setflags(write=False)
        cuda_search.score_batch(BlockBatch([case.query], mine), CudaTarget([0]))
        (slot,) = cuda_search.SLOTS._free[0]
        assert slot.holds(mine) and slot._on_device
        del mine
        gc.collect()
        assert slot.columns() is None and {own.nbytes for own, _ in slot._on_device.values()} == {1024}
        # It is used again.
        found = cuda_search.score_batch(BlockBatch([case.query], other), CudaTarget([0]))
        assert np.array_equal(found[0].ravel()[:70], on_cpu(case.query, other).ravel()[:70])
        assert cuda_search.SLOTS._free[0] == [slot]

    def test_a_slot_that_holds_what_is_wanted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from plait.dp.pairs.gpu_search import SearchPlan, Slots

        class Known:
            """A slot of what is called so."""

            def __init__(self, name: str, there: bool = True) -> None:
                self.name, self.there = name, there

            def columns(self) -> str | None:
                return self.name if self.there else None

            def holds(self, what: Any) -> bool:
                return self.there and self.name == what

        slots: Any = Slots()
        slots._most = 3
        # Room for three that may be wanted again.
        monkeypatch.setattr(slots, "plan", lambda devices: SearchPlan(3, 12, 1, 1))
        free = {0: [Known("a"), Known("b", False), Known("c")], 1: [Known("d"), Known("e"), Known("f")]}
        slots._free.update(free)

        def choose(what: str, **used: int) -> tuple[int, str | None]:
            for name, number in used.items():
                slots._used[int(name[1:])] = number
            device, slot = slots._choose([0, 1], what)
            return device, slot and slot.name

        assert choose("f") == (1, "f")
        assert choose("c", d0=1) == (0, "c")
        # Where it is, there is more to do than there would be; elsewhere there is room.
        assert choose("a", d0=2) == (1, None)
        assert choose("a", d0=0, d1=1) == (0, "a")
        assert choose("g") == (0, "b")
        assert choose("g") == (0, None)
        slots._free[1].extend(map(Known, "hi"))
        assert choose("g", d0=9) == (1, "d")
        # One device has as much to do as it can.
        slots._used[1] = 2
        assert slots._choose([1], "h")[1].name == "h"

    def test_a_slot_is_offered_to_all_who_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One waits for another device, and must not be the only one who is told."""
        from plait.devices import cuda_devices

        monkeypatch.setattr(cuda_devices, "on_device", lambda device: contextlib.nullcontext())
        slots, served = cuda_devices.SlotPool(object, 1), []
        slots._used[0] = 1

        def take(device: int) -> None:
            with slots.slot([device]):
                served.append(device)

        waiting = [threading.Thread(target=take, args=(device,), daemon=True) for device in (0, 1)]
        with slots.slot([1]):
            for number, thread in enumerate(waiting, 1):
                thread.start()
                while len(slots._changed._waiters) < number:  # type: ignore[attr-defined]
                    time.sleep(0.001)
        waiting[1].join(300)
        assert served == [1]

    def test_what_does_not_fit_at_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from plait.dp.pairs.gpu_search import SearchSlot

        def short(slot: SearchSlot, *arguments: Any) -> Any:
            raise DeviceMemoryError("cuda:0", needed=None, free=None, fix="buy more")

        monkeypatch.setattr(SearchSlot, "send", short)
        case = Case(4, [3])
        with pytest.raises(DeviceMemoryError, match="buy more"):
            on_gpu(case.query, case.blocks, nothing)


def sequences(seed: int, count: int, letters: str, longest: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), size)) for size in rng.integers(0, longest, count)]


def write(path: Path, found: list[str]) -> Path:
    path.write_text("".join(f">s{k} about\n{s}\n" for k, s in enumerate(found)))
    return path


def tables(folder: Path, settings: dict[str, Any], devices: tuple[str, ...]) -> list[bytes]:
    """BLAST's table of a search on each device."""
    for name in devices:
        how = SearchSettings(device=name, evalue=None, threads=2, **settings)
        search_files(folder / "q.fa", folder / "t.fa", folder / f"{name[:4]}.m8", how)
    return [(folder / f"{name[:4]}.m8").read_bytes() for name in devices]


@pytest.mark.gpu
@pytest.mark.cuda_simulator
@pytest.mark.parametrize(("letters", "kind"), [("ARNDCQEGHILKMFPSTWYV", "protein"), ("ACGT", "dna")])
def test_searches_give_the_same_table(tmp_path: Path, letters: str, kind: Any) -> None:
    targets = sequences(1, 12, letters, 24)
    write(tmp_path / "t.fa", [*targets, ""])
    write(tmp_path / "q.fa", [targets[3][:9], "", targets[5][2:]])
    cpu, cuda = tables(tmp_path, {"kind": kind}, ("cpu", "cuda"))
    assert cpu == cuda and cpu.count(b"\n") > 5


LARGE = {
    "many": Case(200, [k % 400 for k in range(3000)]),
    "overflow": Case(700, [k % 900 for k in range(300)], copies=60),
    "several-stripes": Case(3000, [*range(0, 3000, 31), 40_000], copies=9),
    "dna": Case(1000, [*range(1000, 1200)], letters=4, gaps=(7, 2), copies=3),
    "free-gaps": Case(120, list(range(200)), gaps=(0, 0)),
    "large-scores": Case(300, list(range(200)), scale=1000, gaps=(1100, 100)),
}


@pytest.mark.gpu
class TestLarge:
    @pytest.mark.parametrize("case", LARGE.values(), ids=LARGE)
    def test_local(self, case: Case) -> None:
        case.assert_same(on_gpu)

    @pytest.mark.usefixtures("wide")
    @pytest.mark.parametrize("case", LARGE.values(), ids=LARGE)
    def test_local_with_32_bits(self, case: Case) -> None:
        case.assert_same(on_gpu)

    @pytest.mark.parametrize("free", OTHERS.values(), ids=OTHERS)
    def test_other_modes(self, free: FreeEnds) -> None:
        Case(600, list(range(0, 900, 7)), free=free, gaps=(5, 1)).assert_same(on_gpu)

    @pytest.mark.parametrize("residues", [1 << 14, 1 << 17])
    def test_no_part_changes_a_score(self, monkeypatch: pytest.MonkeyPatch, residues: int) -> None:
        from plait.devices.cuda_devices import devices
        from plait.dp.pairs.gpu_search import SLOTS

        plan = SLOTS.plan(devices())
        monkeypatch.setattr(SLOTS, "plan", lambda own: plan._replace(residues=residues, piece=1 << 13))
        case = LARGE["many"]
        case.assert_same(lambda *rest: on_gpu(*rest, devices()))

    def test_searches_give_the_same_table(self, tmp_path: Path) -> None:
        targets = sequences(1, 3000, "ARNDCQEGHILKMFPSTWYV", 700)
        write(tmp_path / "t.fa", [*targets, *(s * 9 for s in targets[:5])])
        write(tmp_path / "q.fa", [*targets[:40], targets[3] * 9])
        cpu, cuda = tables(tmp_path, {"kind": "protein", "top": 50}, ("cpu", "cuda:all"))
        assert cpu == cuda

    def test_a_long_target_is_cut(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(3)
        genome = "".join(rng.choice(list("ACGT"), 3_000_000))
        write(tmp_path / "t.fa", [genome, genome[100:5000]])
        write(tmp_path / "q.fa", [genome[1_000_000:1_000_400], genome[4_000:4_900]])
        cpu, cuda = tables(tmp_path, {"kind": "dna"}, ("cpu", "cuda:0"))
        assert cpu == cuda
