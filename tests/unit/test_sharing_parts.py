"""Sharing that workers group, sort and write: the bytes that one process writes."""

from __future__ import annotations

import os
import pickle
import random
import signal
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import FormatError
from plait.formats.sorted_runs import SortedRuns, SpilledBlocks, deal_rows, dealt_rows
from plait.run.dask import DaskExecutor
from plait.run.executor import LocalExecutor
from plait.run.ordered_parts import write_run
from plait.vdj.repertoires.sharing import SharingSettings, share_files


class OtherProcesses(LocalExecutor):
    """Threads that stand for other processes: all that goes to them, and comes back, is pickled."""

    @property
    def elsewhere(self) -> bool:
        return True

    def map(self, function: Any, batches: Iterable[Any], **more: Any) -> Generator[Any, None, None]:
        def work(batch: bytes) -> bytes:
            return pickle.dumps(pickle.loads(pickle.dumps(function))(pickle.loads(batch)))

        for batch in super().map(work, map(pickle.dumps, batches), most=more.get("most")):
            yield pickle.loads(batch)


@pytest.fixture
def inputs(tmp_path: Path) -> Callable[..., list[Path]]:
    """Two tables of 700 rows of some 300 clonotypes in five subjects."""

    def write(kind: str = "parquet", counts: str = "whole", seed: int = 0) -> list[Path]:
        rng, paths = random.Random(seed), []
        kinds: dict[str, Callable[[], Any]] = {
            "whole": lambda: rng.choice([None, rng.randrange(5)]),
            "text": lambda: rng.choice(["", "7", str(10**30), "12"]),
        }
        junctions = ["TGT" + "".join(rng.choices("ACGT", k=6)) for _ in range(150)]
        known = {junction: kinds.get(counts, lambda: None)() for junction in junctions}
        for name in "ab":
            rows = []
            for _ in range(700):
                junction, subject = rng.choice(junctions), rng.choice("vwxyz")
                row = {
                    "junction": junction,
                    "v_call": rng.choice(["TRBV1*01", "TRBV2", ""]),
                    "j_call": "TRBJ1-1*01",
                    "subject_id": subject,
                    "duplicate_count": rng.choice(["", "1", "3"]),
                    "status": {"v": "ill", "w": "ill", "x": "", "y": "well", "z": "well"}[subject],
                }
                if counts != "none":
                    row["path_count"] = known[junction]
                rows.append(row)
            paths.append(tmp_path / f"{name}.{kind}")
            table = pa.Table.from_pylist(rows)
            if kind == "parquet":
                pq.write_table(table, paths[-1], row_group_size=90)
            else:
                lines = ["\t".join(table.column_names)]
                lines += ["\t".join("" if x is None else str(x) for x in row.values()) for row in rows]
                paths[-1].write_text("\n".join(lines) + "\n")
        return paths

    return write


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.formats.datasets.PART_ROWS", 60)
    monkeypatch.setattr("plait.vdj.repertoires.sharing._BLOCK_ROWS", 64)
    monkeypatch.setattr("plait.vdj.repertoires.sharing.BATCH_ROWS", 25)
    monkeypatch.setattr("plait.vdj.repertoires.sharing_parts.BATCH_ROWS", 25)
    monkeypatch.setattr("plait.vdj.repertoires.sharing_parts._BLOCKS", 2)
    monkeypatch.setattr("plait.vdj.repertoires.sharing_parts._ROWS", 200)
    monkeypatch.setattr("plait.run.ordered_parts._BLOCK_ROWS", 8)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def both(folder: Path) -> list[dict[str, bytes]]:
    return [files_in(folder / name) for name in ("out", "by")]


SETTINGS = {
    "counts": SharingSettings(),
    "acids": SharingSettings(key="cdr3aa+v", list_subjects=True),
    "conditions": SharingSettings(condition="status", key="cdr3nt"),
}


#: Every run has each kind of counts and each of the settings once, the nightly one all with all.
CASES = [
    pytest.param(kind, counts, asked, marks=[pytest.mark.slow] if (k + m) % 2 or (m + n) % 3 else [])
    for k, kind in enumerate(("parquet", "tsv"))
    for m, counts in enumerate(("whole", "text", "none"))
    for n, asked in enumerate(sorted(SETTINGS))
]


@pytest.mark.parametrize(("kind", "counts", "asked"), CASES)
def test_the_bytes_of_one_process(
    inputs: Any, tmp_path: Path, small: None, kind: str, counts: str, asked: str
) -> None:
    paths = inputs(kind, counts)
    found = []
    for executor in (None, OtherProcesses(2)):
        told = share_files(
            paths,
            f"{tmp_path}/out/",
            by_subject=f"{tmp_path}/by/",
            settings=SETTINGS[asked],
            executor=executor,
        )
        found.append((both(tmp_path), told.distribution.to_pylist(), told.subjects, told.left_out))
    assert found[0] == found[1]
    assert len(found[0][0][0]) > 3 and len(found[0][0][1]) > 10
    names = {path.name for path in tmp_path.iterdir()} - {path.name for path in paths}
    assert names == {"out", "by"}


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(tmp_path: Path, small: None, rows: int) -> None:
    path = tmp_path / "a.parquet"
    names = ("junction", "v_call", "j_call", "subject_id")
    pq.write_table(pa.table({name: pa.array(["TGT"] * rows, pa.string()) for name in names}), path)
    found = []
    for executor in (None, OtherProcesses(1)):
        share_files([path], f"{tmp_path}/out/", executor=executor)
        found.append(files_in(tmp_path / "out"))
    assert found[0] == found[1]


def test_what_workers_cannot_tell_alone_is_told_here(inputs: Any, tmp_path: Path, small: None) -> None:
    found = []
    for executor in (None, OtherProcesses(1)):
        settings = SharingSettings(mismatches=1)
        share_files(
            inputs(), f"{tmp_path}/out/", settings=settings, overlap=tmp_path / "o.tsv", executor=executor
        )
        found.append((files_in(tmp_path / "out"), (tmp_path / "o.tsv").read_bytes()))
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_worker_is_killed_and_another_one_added(
    inputs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None, dask_cluster: DaskExecutor
) -> None:
    paths = inputs()
    share_files(paths, f"{tmp_path}/out/", by_subject=f"{tmp_path}/by/")
    here = both(tmp_path)
    processes = list(dict.fromkeys(dask_cluster.map(lambda _: os.getpid(), range(8))))
    plain, calls = DaskExecutor.map, []

    def map(self: DaskExecutor, function: Any, batches: Iterable[Any], **more: Any) -> Any:
        calls.append(type(function).__name__)
        for number, found in enumerate(plain(self, function, batches, **more)):
            if number == 1 and calls[-1] in ("Dealer", "PartOfRuns") and processes:
                os.kill(processes.pop(), signal.SIGKILL)
            if calls[-1] == "PartGrouper" and number == 1:
                self._client.cluster.scale(3)
            yield found

    monkeypatch.setattr(DaskExecutor, "map", map)
    share_files(paths, f"{tmp_path}/out/", by_subject=f"{tmp_path}/by/", executor=dask_cluster)
    assert both(tmp_path) == here
    assert calls == ["Dealer", "PartGrouper", *["_RowsBefore", "PartOfRuns"] * 2] and not processes


def test_pieces_that_are_damaged(tmp_path: Path) -> None:
    rows = pa.table({"n": [3, 1, 2]})
    deal_rows(tmp_path / "piece", rows, rows["n"].to_numpy() % 2, 2)
    assert [batch["n"].to_pylist() for batch in dealt_rows([tmp_path / "piece"], 1)] == [[3, 1]]
    (tmp_path / "piece").write_bytes((tmp_path / "piece").read_bytes()[:-20])
    with pytest.raises(FormatError, match="a damaged or unreadable piece") as caught:
        list(dealt_rows([tmp_path / "piece"], 1))
    assert caught.value.path == str(tmp_path / "piece")


def test_any_rows_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.run.ordered_parts._BLOCK_ROWS", 4)
    rows = pa.record_batch({"n": list(range(11))})
    with SpilledBlocks(tmp_path / "blocks") as blocks:
        runs = SortedRuns(blocks, {"n": "ascending"}, memory_bytes=1 << 20)
        runs.add(rows)
        run = write_run(blocks.file(7), runs.drain(), rows.schema, runs.order)
        assert (run.rows, run.block_rows, run.firsts) == (11, 4, ((0,), (4,), (8,)))
        for first in range(12):
            for end in range(first, 12):
                read = [n for batch in run.read(first, end) for n in batch["n"].to_pylist()]
                assert read == list(range(first, end))
    assert not (tmp_path / "blocks").exists()
