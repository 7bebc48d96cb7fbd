from __future__ import annotations

import random
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.sorted_runs import SortedRuns, SpilledBlocks, run_starts, whole_runs

ORDER = {"count": "descending", "text": "ascending"}


def rows(pairs: list[tuple[int, str]]) -> pa.RecordBatch:
    return pa.record_batch(
        {"count": pa.array([a for a, _ in pairs], pa.int64()), "text": pa.array([b for _, b in pairs])}
    )


def pairs_of(batch: pa.RecordBatch) -> list[tuple[int, str]]:
    return list(zip(batch["count"].to_pylist(), batch["text"].to_pylist(), strict=True))


@pytest.mark.parametrize("memory_bytes", [1, 100, 3000, 1 << 20])
def test_rows_come_out_in_order(tmp_path: Path, memory_bytes: int) -> None:
    rng = random.Random(memory_bytes)
    given = [(rng.randrange(5), rng.choice(["", "a", "ab", "b", "\u00e9", "\U0001d7d8"])) for _ in range(150)]
    with SpilledBlocks(tmp_path / "rows") as blocks:
        runs = SortedRuns(blocks, ORDER, memory_bytes=memory_bytes)
        for start in range(0, len(given), 7):
            runs.add(rows(given[start : start + 7]))
        batches = [pairs_of(batch) for batch in runs.drain()]
        assert list(chain(*batches)) == sorted(given, key=lambda pair: (-pair[0], pair[1]))
        assert all(batches)
        # Equal rows are in one batch.
        assert sum(len(set(batch)) for batch in batches) == len(set(given))
        assert list(runs.drain()) == []
        assert [entry.name for entry in (tmp_path / "rows").iterdir()] == ["run.json"]
    assert not (tmp_path / "rows").exists()


def test_equal_rows_are_combined_before_they_are_put_aside(tmp_path: Path) -> None:
    def distinct(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.take(pa.array(run_starts(batch, ORDER)))

    with SpilledBlocks(tmp_path / "rows") as blocks:
        runs = SortedRuns(blocks, ORDER, memory_bytes=2000, combine=distinct)
        for _ in range(100):
            runs.add(rows([(1, "a"), (2, "b"), (1, "a")] * 10))
        assert [entry.name for entry in (tmp_path / "rows").iterdir()] == ["run.json"]
        assert [pairs_of(batch) for batch in runs.drain()] == [[(2, "b"), (1, "a")]]


def test_no_rows_give_none(tmp_path: Path) -> None:
    with SpilledBlocks(tmp_path / "rows") as blocks:
        runs = SortedRuns(blocks, ORDER, memory_bytes=1)
        runs.add(rows([]))
        assert list(runs.drain()) == []
    assert list(whole_runs([], ["text"])) == []


def test_a_folder_left_by_a_killed_run_is_replaced(tmp_path: Path) -> None:
    SpilledBlocks(tmp_path / "rows").put(rows([(1, "a")]))
    with SpilledBlocks(tmp_path / "rows") as blocks:
        assert [entry.name for entry in (tmp_path / "rows").iterdir()] == ["run.json"]
        assert pairs_of(blocks.take(blocks.put(rows([(2, "b")])))) == [(2, "b")]


def test_a_folder_with_other_content_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="not a checkpoint"):
        SpilledBlocks(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_damage_on_disk_is_found(tmp_path: Path) -> None:
    with SpilledBlocks(tmp_path / "rows") as blocks:
        runs = SortedRuns(blocks, ORDER, memory_bytes=1)
        runs.add(rows([(1, "a"), (2, "b")]))
        path = tmp_path / "rows" / "block-00000000.arrows"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        with pytest.raises(FormatError, match="block 0 missing or damaged"):
            list(runs.drain())
    assert not (tmp_path / "rows").exists()


def test_the_folder_goes_when_something_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stop"), SpilledBlocks(tmp_path / "rows") as blocks:
        blocks.put(rows([(1, "a")]))
        raise RuntimeError("stop")
    assert not (tmp_path / "rows").exists()


def test_the_first_error_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stop"), SpilledBlocks(tmp_path / "rows"):
        (tmp_path / "rows" / "notes.txt").write_text("mine")
        raise RuntimeError("stop")
    assert (tmp_path / "rows" / "notes.txt").exists()


def test_memory_of_nothing_is_refused(tmp_path: Path) -> None:
    with SpilledBlocks(tmp_path / "rows") as blocks, pytest.raises(InvalidInput, match="memory_bytes"):
        SortedRuns(blocks, ORDER, memory_bytes=0)


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_runs_are_not_cut(size: int) -> None:
    texts = "aaaaabccdddddddddeeef"
    batches = [rows([(1, t) for t in texts[i : i + size]]) for i in range(0, len(texts), size)]
    whole = [batch["text"].to_pylist() for batch in whole_runs(batches, ["text"])]
    assert "".join(chain(*whole)) == texts
    assert sum(len(set(part)) for part in whole) == len(set(texts))


def test_runs_that_no_array_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    monkeypatch.setattr(pa, "concat_batches", overflow)
    with pytest.raises(Unsupported, match="2 GiB of rows with the same count, text"):
        list(whole_runs([rows([(1, "a")])] * 2, ["count", "text"]))
