"""Counting files: blocks, threads, stopping and resuming do not show in what is written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait.errors import FormatError, InvalidInput
from plait.formats.rearrangements import RearrangementReader
from plait.formats.sheets import read_sample_sheet
from plait.run.executor import Progress
from plait.run.rows import FinishedRun
from plait.vdj import PathCounter, PathModel
from plait.vdj.count_files import CountSummary, count_files

BLOCK = 16


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.vdj.count_files._MOST_ROWS", BLOCK)
    monkeypatch.setattr("plait.vdj.count_files._FEWEST_ROWS", BLOCK)


@pytest.fixture(scope="module")
def counter() -> PathCounter:
    return PathCounter("mouse_trb", device="cpu", threads=1)


@pytest.fixture
def table(tmp_path: Path, mouse_rows: Any) -> Path:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(mouse_rows(100)), path)
    return path


def count(
    table: Path, counter: PathCounter, name: str = "out.parquet", **options: Any
) -> FinishedRun[CountSummary]:
    return count_files([table], table.with_name(name), counter, **options)


def names(table: Path) -> list[str]:
    return sorted(path.name for path in table.parent.iterdir() if path != table)


def test_a_run(table: Path, counter: PathCounter) -> None:
    seen: list[Progress] = []
    counted = count(table, counter, progress=seen.append)
    assert [state.rows for state in seen] == [16, 32, 48, 64, 80, 96, 100]
    assert all(0 < state.bytes_read <= state.total_bytes == table.stat().st_size for state in seen)
    assert (counted.summary.rows, counted.resumed_blocks, counted.renamed) == (100, 0, {})
    assert pq.ParquetFile(counted.output).num_row_groups == 7
    assert names(table) == ["out.parquet", "out.parquet.summary.json"]
    facts = json.loads(counted.summary_path.read_text())
    assert facts["rows"] == 100 and facts["inputs"] == [str(table)]


@pytest.mark.parametrize(
    ("suffix", "after"),
    often(3, [("parquet", 1), ("tsv", 1), ("tsv.gz", 4), ("parquet", 0), ("parquet", 4), ("tsv.zst", 0)]),
)
@pytest.mark.parametrize("long", often(1, [False, True]))
def test_stopped_and_resumed(table: Path, counter: PathCounter, suffix: str, long: bool, after: int) -> None:
    count(table, counter, f"whole.{suffix}", long=long)

    def stop(state: Progress) -> None:
        if state.rows > after * BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count(table, counter, f"out.{suffix}", long=long, progress=stop, threads=2)
    assert not table.with_name(f"out.{suffix}").exists()
    # Resumed with another number of threads.
    counted = count(table, counter, f"out.{suffix}", long=long, resume=True, threads=1)
    assert counted.resumed_blocks > after
    for end in ("", ".summary.json"):
        whole = table.with_name(f"whole.{suffix}{end}").read_bytes()
        assert table.with_name(f"out.{suffix}{end}").read_bytes() == whole
    assert not table.with_name(f"out.{suffix}.checkpoint").exists()


def test_stopped_while_another_thread_reads(
    table: Path, counter: PathCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, stopping, before = RearrangementReader._rows, threading.Event(), set(threading.enumerate())

    def slowly(self: RearrangementReader) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(rows(self)):
            if number > 1:
                stopping.wait()
            yield batch

    def stop(state: Progress) -> None:
        stopping.set()
        raise ArithmeticError("mine")

    monkeypatch.setattr(RearrangementReader, "_rows", slowly)
    with pytest.raises(ArithmeticError, match="mine"):
        count(table, counter, progress=stop, threads=1)
    # Nothing works on after the failure.
    assert set(threading.enumerate()) <= before


def test_a_damaged_block_is_counted_again(table: Path, counter: PathCounter) -> None:
    whole = count(table, counter, "whole.parquet").output.read_bytes()

    def stop(state: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count(table, counter, progress=stop)
    block = table.with_name("out.parquet.checkpoint") / "block-00000000.arrows"
    block.write_bytes(block.read_bytes()[:-7])
    assert count(table, counter, resume=True).output.read_bytes() == whole


def test_a_run_of_another_model_is_not_resumed(table: Path, counter: PathCounter) -> None:
    def stop(state: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count(table, counter, progress=stop)
    other = PathCounter("mouse_trb", PathModel(pi=3), device="cpu", threads=1)
    with pytest.raises(InvalidInput, match=r"parameters\.pi \(stored 4, now 3\)"):
        count(table, other, resume=True)
    # Without resuming, what is there is dropped.
    assert count(table, other).resumed_blocks == 0


def test_nothing_to_resume(table: Path, counter: PathCounter) -> None:
    assert count(table, counter, resume=True).resumed_blocks == 0


@pytest.mark.parametrize("threads", often(1, [1, 2, 5]))
def test_threads(table: Path, counter: PathCounter, threads: int) -> None:
    one = count(table, counter, "one.parquet", threads=1).output.read_bytes()
    assert count(table, counter, threads=threads).output.read_bytes() == one


def test_columns_named_like_results(tmp_path: Path, mouse_rows: Any, counter: PathCounter) -> None:
    rows = mouse_rows(3)
    extra = {"status": [1, 2, 3], "input_status": ["a", "b", "c"], "path_count": [7, 8, 9]}
    pq.write_table(pa.table({**rows, **extra}), tmp_path / "in.parquet")
    counted = count(tmp_path / "in.parquet", counter)
    assert counted.renamed == {"status": "input_input_status", "path_count": "input_path_count"}
    found = pq.read_table(counted.output)
    assert found["input_input_status"].to_pylist() == [1, 2, 3]
    assert found["input_status"].to_pylist() == ["a", "b", "c"]
    assert found["status"].to_pylist() == ["ok"] * 3


def test_a_result_can_be_counted_again(table: Path, counter: PathCounter) -> None:
    first = count(table, counter).output
    again = count(first, counter, "again.parquet")
    assert set(again.renamed) >= {"status", "path_count", "path_count_by_d", "n1_length"}
    found = pq.read_table(again.output)
    assert found["input_path_count"].to_pylist() == found["path_count"].to_pylist()


def test_an_error_in_the_first_block_leaves_nothing(tmp_path: Path, counter: PathCounter) -> None:
    path = tmp_path / "in.tsv"
    path.write_text("junction\tv_call\tj_call\nTGTTTC\tTRBV1\n")
    with pytest.raises(FormatError, match="line 2"):
        count(path, counter)
    assert names(path) == []


def test_an_error_later_keeps_the_blocks(tmp_path: Path, mouse_rows: Any, counter: PathCounter) -> None:
    rows = mouse_rows(90)
    lines = ["\t".join(rows), *map("\t".join, zip(*rows.values(), strict=True)), "ragged"]
    path = tmp_path / "in.tsv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(FormatError, match="line 92"):
        count(path, counter, threads=1)
    assert names(path) in ([], ["out.parquet.checkpoint"])


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_must_be_some(table: Path, counter: PathCounter, threads: int) -> None:
    with pytest.raises(InvalidInput, match=f"threads: found {threads}"):
        count(table, counter, threads=threads)
    assert names(table) == []


def test_no_inputs(tmp_path: Path, counter: PathCounter) -> None:
    with pytest.raises(InvalidInput, match="inputs: found no file"):
        count_files([], tmp_path / "out.parquet", counter)


def test_blank_lines_are_told(tmp_path: Path, counter: PathCounter) -> None:
    path = tmp_path / "in.tsv"
    path.write_text("junction\tv_call\tj_call\n\nTGTTTC\tTRBV1\tTRBJ1-1\n\n")
    counted = count(path, counter)
    assert (counted.blank_lines, counted.summary.rows) == (2, 1)


@pytest.mark.slow
def test_wide_counts_are_written(tmp_path: Path) -> None:
    counter = PathCounter("mouse_trb", PathModel(nu=40), overflow="wide", device="reference")
    path = tmp_path / "in.tsv"
    junction = "TGTGCCAGCAGT" + "N" * 40 + "ATGAACAGTACTTC"
    path.write_text(f"junction\tv_call\tj_call\n{junction}\tTRBV13-1\tTRBJ2-7\n")
    wide = pq.read_table(count(path, counter).output)["path_count"].to_pylist()[0]
    assert wide > 2**63
    text = count(path, counter, "out.tsv").output.read_text()
    cells = dict(zip(*(line.split("\t") for line in text.splitlines()), strict=True))
    assert int(cells["path_count"]) == wide == sum(map(int, cells["path_count_by_d"].split(",")))


def test_a_file_of_a_sheet_is_a_subject_where_nothing_else_says(
    tmp_path: Path, mouse_rows: Any, counter: PathCounter
) -> None:
    rows = mouse_rows(5)
    pq.write_table(pa.table(rows), tmp_path / "said.parquet")
    del rows["subject_id"]
    for name in ("one", "two"):
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("file,subject_id\nsaid.parquet,\none.parquet,\ntwo.parquet,named\n")
    counted = count_files(read_sample_sheet(sheet), tmp_path / "out.parquet", counter)
    subjects = pq.read_table(counted.output)["subject_id"].to_pylist()
    assert subjects[:5] == pq.read_table(tmp_path / "said.parquet")["subject_id"].to_pylist()
    assert subjects[5:] == ["one"] * 5 + ["named"] * 5
