from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.checkpoints import Checkpoint, KeptSteps
from plait.formats.tables import open_table

KEY = {
    "version": "1.0",
    "parameters": {"pi": [0, 4], "model": "dp2"},
    "inputs": [("/a.tsv", 10, 20), ("/b.tsv", 30, 40)],
}
BATCH = pa.record_batch(
    {
        "path_count": pa.array([1, None, 3], pa.int64()),
        "by_d": pa.array([[1, None], None, [3, 4]], pa.list_(pa.int64(), 2)),
        "status": ["ok", "ok", None],
    }
)


def changed(**entries: object) -> dict[str, Any]:
    return {**KEY, **entries}


def test_blocks_come_back_as_they_were(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "c", key=KEY, resume=False)
    assert checkpoint.get(0) is None
    checkpoint.put(3, BATCH)
    checkpoint.put(100_000_000, BATCH.slice(1))
    checkpoint.put(0, BATCH.slice(0, 0))
    assert checkpoint.blocks() == [0, 3, 100_000_000]
    again = Checkpoint(tmp_path / "c", key=KEY, resume=True)
    for index, batch in ((3, BATCH), (100_000_000, BATCH.slice(1)), (0, BATCH.slice(0, 0))):
        stored = again.get(index)
        assert stored is not None
        assert stored.equals(batch)
        assert stored.schema.equals(batch.schema)


def test_encoded_rows_come_back_with_the_columns_asked_for(tmp_path: Path) -> None:
    schema = BATCH.schema.remove(1)
    checkpoint = Checkpoint(tmp_path / "c", key=KEY, resume=False)
    with open_table(tmp_path / "rows.parquet", BATCH.schema, metadata={}) as table:
        for index, rows in enumerate((BATCH, BATCH.slice(0, 0))):
            checkpoint.put(index, table.encoded(rows))
            stored = checkpoint.get(index, schema=schema)
            assert stored is not None
            assert stored.equals(rows.select(schema.names))


def test_steps_are_made_once(tmp_path: Path) -> None:
    made: list[int] = []

    def step(number: int) -> Sequence[NDArray[Any]]:
        made.append(number)
        return [np.full((2, number), number), np.array([True])]

    for changed, again in ((0, [1, 2, 3]), (0, []), (7, [3])):
        made.clear()
        steps = KeptSteps(tmp_path / "s", KEY)
        for number in (1, 2, 3):
            given = np.array([number + changed * (number == 3)])
            found = steps.arrays(partial(step, number), given)
            assert [array.tolist() for array in found] == [[[number] * number] * 2, [True]]
            assert found[1].dtype == np.bool_
        assert steps.facts(lambda: {"a": (1, None, 0.1)}) == {"a": [1, None, 0.1]}
        assert made == again


def test_a_step_that_left_too_little_is_made_again(tmp_path: Path) -> None:
    for whole, expected in ((True, 1), (True, 1), (False, 2)):
        steps = KeptSteps(tmp_path / "s", KEY)
        told = 2 if not whole else 1
        assert steps.facts(lambda told=told: told, lambda found, whole=whole: whole) == expected  # type: ignore[misc]
        assert steps.facts(lambda: "next") == "next"


def test_any_arrow_program_can_read_a_block(tmp_path: Path) -> None:
    Checkpoint(tmp_path, key=KEY, resume=False).put(0, BATCH)
    with pa.ipc.open_stream(tmp_path / "block-00000000.arrows") as reader:
        assert reader.read_next_batch().equals(BATCH)


def test_starting_anew_removes_the_older_blocks(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "c", key=changed(version="0.9"), resume=False).put(0, BATCH)
    assert Checkpoint(tmp_path / "c", key=KEY, resume=False).blocks() == []
    assert Checkpoint(tmp_path / "c", key=KEY, resume=True).blocks() == []


def test_resuming_without_a_checkpoint_starts_anew(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "a" / "b", key=KEY, resume=True).blocks() == []


@pytest.mark.parametrize(
    ("key", "differences"),
    [
        (changed(version="1.1"), ['version (stored "1.0", now "1.1")']),
        (changed(parameters={"pi": [0, 5], "model": "dp2"}), ["parameters.pi.1 (stored 4, now 5)"]),
        (
            changed(parameters={"pi": [0], "nu": 1}),
            [
                'parameters.model (stored "dp2", now nothing)',
                "parameters.nu (stored nothing, now 1)",
                "parameters.pi.1 (stored 4, now nothing)",
            ],
        ),
        (changed(inputs=[("/a.tsv", 10, 20), ("/b.tsv", 31, 40)]), ["inputs.1.1 (stored 30, now 31)"]),
        (
            changed(parameters={}),
            ["parameters (stored nothing, now {})", "parameters.pi.0 (stored 0, now nothing)"],
        ),
    ],
)
def test_another_run_is_refused_with_what_differs(
    tmp_path: Path, key: dict[str, Any], differences: list[str]
) -> None:
    Checkpoint(tmp_path, key=KEY, resume=False).put(0, BATCH)
    with pytest.raises(InvalidInput) as caught:
        Checkpoint(tmp_path, key=key, resume=True)
    for difference in differences:
        assert difference in str(caught.value.found)
    if len(differences) == 1:
        assert str(caught.value.found).count("(stored") == 1
    assert Checkpoint(tmp_path, key=KEY, resume=True).blocks() == [0]


def test_order_of_the_key_does_not_matter(tmp_path: Path) -> None:
    Checkpoint(tmp_path, key=KEY, resume=False).put(0, BATCH)
    assert Checkpoint(tmp_path, key=dict(reversed(KEY.items())), resume=True).blocks() == [0]


def test_a_damaged_block_counts_as_absent(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, key=KEY, resume=False)
    checkpoint.put(0, BATCH)
    path = tmp_path / "block-00000000.arrows"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert checkpoint.get(0) is None
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert checkpoint.get(0) is None
    path.write_bytes(whole)
    assert checkpoint.get(0) is not None
    checkpoint.put(0, BATCH.slice(1))
    assert checkpoint.get(0) == BATCH.slice(1)


def test_what_a_killed_run_was_writing_is_no_block(tmp_path: Path) -> None:
    Checkpoint(tmp_path / "c", key=KEY, resume=False)
    (tmp_path / "c" / ".block-00000007.arrows.partial").write_bytes(b"half")
    checkpoint = Checkpoint(tmp_path / "c", key=KEY, resume=True)
    assert checkpoint.blocks() == []
    checkpoint.remove()
    assert not (tmp_path / "c").exists()


def test_killed_before_the_first_block(tmp_path: Path) -> None:
    (tmp_path / ".run.json.partial").write_bytes(b"{")
    assert Checkpoint(tmp_path, key=KEY, resume=True).blocks() == []


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("thesis.doc", "precious"),
        ("run.json", "{}"),
        ("run.json", "not json"),
        ("run.json", '["kind"]'),
        ("run.json", json.dumps({"kind": "other program", "key": {}, "version": 1})),
        ("block-00000000.arrows", "precious"),
    ],
)
def test_a_folder_that_is_not_ours_is_left_alone(
    tmp_path: Path, name: str, content: str, resume: bool
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput, match="not a checkpoint of plait"):
        Checkpoint(tmp_path, key=KEY, resume=resume)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == content


def test_a_link_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="not a checkpoint"):
        Checkpoint(tmp_path / "c", key=KEY, resume=False)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("precious")
    with pytest.raises(InvalidInput, match="not a checkpoint"):
        Checkpoint(tmp_path / "c", key=KEY, resume=False)


def test_foreign_files_in_a_checkpoint_are_left(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, key=KEY, resume=False)
    checkpoint.put(0, BATCH)
    (tmp_path / "notes.txt").write_text("precious")
    for remove in (checkpoint.remove, lambda: Checkpoint(tmp_path, key=KEY, resume=False)):
        with pytest.raises(InvalidInput, match=r"other files.*notes\.txt"):
            remove()
    assert sorted(os.listdir(tmp_path)) == ["block-00000000.arrows", "notes.txt", "run.json"]


def test_remove(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "c", key=KEY, resume=False)
    checkpoint.put(0, BATCH)
    checkpoint.remove()
    assert not (tmp_path / "c").exists()
    checkpoint.remove()


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Checkpoint(tmp_path, key=KEY, resume=False)
    checkpoint.put(0, BATCH)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("plait.formats.atomic.os.replace", full)
    with pytest.raises(FormatError, match="no space left"):
        checkpoint.put(1, BATCH)
    assert sorted(os.listdir(tmp_path)) == ["block-00000000.arrows", "run.json"]
