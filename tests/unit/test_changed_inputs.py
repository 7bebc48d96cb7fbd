"""Inputs that are replaced or changed: a run ends with a message, and never mixes what it was made from."""

from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import often
from support.read_library import Library, simulate_reads, write_fastq
from support.recombination import small_model

from plait.errors import FormatError, InvalidInput
from plait.formats.checkpoints import Checkpoint, digest_of
from plait.formats.fasta import read_fasta
from plait.formats.files import check_readable, unchanged
from plait.formats.reads import open_reads
from plait.vdj import PathCounter
from plait.vdj.count_files import count_files
from plait.vdj.germline import load_germline
from plait.vdj.model import ModelGene, infer_files
from plait.vdj.model.pgen import pgen_files
from plait.vdj.model.scenarios import scenario_files
from plait.vdj.reads.annotate_files import annotate_files
from plait.vdj.repertoires.sharing import sharing

BLOCK = 16


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.vdj.count_files._MOST_ROWS", BLOCK)
    monkeypatch.setattr("plait.vdj.count_files._FEWEST_ROWS", BLOCK)
    monkeypatch.setattr("plait.formats.rearrangements._PIECE_BYTES", 512)


@pytest.fixture(scope="module")
def counter() -> PathCounter:
    return PathCounter("mouse_trb", device="cpu", threads=1)


def write(path: Path, rows: dict[str, list[str]]) -> Path:
    """A table that has one size for all orders of its rows."""
    if path.suffix == ".parquet":
        plain: dict[str, Any] = {"use_dictionary": False, "write_statistics": False, "compression": "none"}
        pq.write_table(pa.table(rows), path, **plain)
        return path
    lines = ["\t".join(rows), *map("\t".join, zip(*rows.values(), strict=True))]
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text, 0, mtime=0) if path.suffix == ".gz" else text)
    return path


def replaced(path: Path, rows: dict[str, list[str]], first: int) -> None:
    """Other rows from `first` on, in a file of the same name, size and time."""
    before = path.stat()
    write(path, {name: cells[:first] + cells[first:][::-1] for name, cells in rows.items()})
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size and path.stat().st_mtime_ns == before.st_mtime_ns


def stop(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("suffix", ["tsv", "tsv.gz", "parquet"])
@pytest.mark.parametrize("first", often(1, [0, 5]))
def test_other_rows_of_the_same_size_and_time(
    tmp_path: Path, mouse_rows: Any, counter: PathCounter, suffix: str, first: int
) -> None:
    rows = mouse_rows(40)
    path, out = write(tmp_path / f"in.{suffix}", rows), tmp_path / "out.tsv"
    with pytest.raises(KeyboardInterrupt):
        count_files([path], out, counter, progress=stop, threads=1)
    replaced(path, rows, first)
    with pytest.raises(InvalidInput, match=f"another content of records 0 to 15 of '{path}'") as caught:
        count_files([path], out, counter, resume=True)
    assert caught.value.what == "resume" and not out.exists()
    # What does not matter for results may differ: these are the rows of now.
    assert count_files([path], out, counter).resumed_blocks == 0


@pytest.mark.parametrize("command", often(1, [pgen_files, scenario_files, infer_files]))
def test_junctions_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    monkeypatch.setattr("plait.vdj.model.pgen._BLOCK_ROWS", BLOCK)
    monkeypatch.setattr("plait.vdj.model.pgen._FEWEST_ROWS", BLOCK)
    monkeypatch.setattr("plait.vdj.model.scenarios._MOST_ROWS", BLOCK)
    monkeypatch.setattr("plait.vdj.model.inference._SECONDS", 0.0)
    v, j = ModelGene("TRBV1*01", "TGTGCA", 0, "F"), ModelGene("TRBJ1*01", "GCTTTC", 3, "F")
    two = small_model(1, zeros=False, most=4)
    model = replace(two, v=(v, replace(v, name="TRBV2*01")), j=(j, replace(j, name="TRBJ2*01")))
    junctions = [f"TGTGCA{'ACGT'[k % 4]}{'T' * (k % 5)}GCTTTC" for k in range(90)]
    columns = {"junction": junctions, "v_call": ["TRBV1*01"] * 90, "j_call": ["TRBJ1*01"] * 90}
    path, out = write(tmp_path / "in.tsv", columns), tmp_path / "out.tsv"

    def late(state: Any) -> None:
        if getattr(state, "stage", "expectation") != "collecting evidence":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        command([path], out, model, progress=late, threads=1)
    replaced(path, columns, 0)
    with pytest.raises(InvalidInput, match=f"resume: found another content of .*'{path}' than the stopped"):
        command([path], out, model, resume=True)
    # A folder that holds an earlier run has to be said to be replaced.
    command([path], out, model, **({"force": True} if command is infer_files else {}))


def test_a_second_input_was_replaced(tmp_path: Path, mouse_rows: Any, counter: PathCounter) -> None:
    rows = mouse_rows(40)
    paths = [write(tmp_path / name, rows) for name in ("a.tsv", "b.tsv")]

    def stop_late(state: Any) -> None:
        if state.rows > 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_files(paths, tmp_path / "out.tsv", counter, progress=stop_late, threads=1)
    replaced(paths[1], rows, 0)
    with pytest.raises(InvalidInput, match=r"records 32 to 39 of '.*a.tsv' and records 0 to 7 of '.*b.tsv'"):
        count_files(paths, tmp_path / "out.tsv", counter, resume=True)


@pytest.mark.slow
def test_rows_that_did_not_change_are_taken_over(
    tmp_path: Path, mouse_rows: Any, counter: PathCounter
) -> None:
    rows = mouse_rows(200)
    path = write(tmp_path / "in.tsv", rows)
    with pytest.raises(KeyboardInterrupt):
        count_files([path], tmp_path / "out.tsv", counter, progress=stop, threads=1)
    replaced(path, rows, 150)
    counted = count_files([path], tmp_path / "out.tsv", counter, resume=True)
    assert counted.resumed_blocks > 0
    count_files([path], tmp_path / "whole.tsv", counter)
    assert (tmp_path / "out.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()


def appended(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"\n")


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwritten(path: Path) -> None:
    """Other bytes, and the time set back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"\n\n\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def renamed_over(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "appended": (appended, "another size than when it was opened: it was changed while it was read"),
    "truncated": (truncated, "another size than"),
    # The reader may look before the time is set back.
    "overwritten": (overwritten, "another time of "),
    "replaced": (renamed_over, "another file than"),
    "deleted": (Path.unlink, "No such file or directory: it was removed while it was read"),
}


@pytest.mark.parametrize("change", often(2, CHANGES))
@pytest.mark.parametrize("suffix", often(1, ["tsv", "parquet"]))
def test_changed_while_it_is_counted(
    tmp_path: Path, mouse_rows: Any, counter: PathCounter, suffix: str, change: str
) -> None:
    path = write(tmp_path / f"in.{suffix}", mouse_rows(300))
    changing, told = CHANGES[change]

    def once(state: Any) -> None:
        if state.rows == BLOCK:
            changing(path)

    with pytest.raises(FormatError) as caught:
        count_files([path], tmp_path / "out.tsv", counter, progress=once, threads=1)
    assert (caught.value.path, told in str(caught.value.found)) == (str(path), True)
    assert not (tmp_path / "out.tsv").exists()


def test_a_file_that_stays_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "in.tsv", {"a": ["b"]})
    with unchanged(path, check_readable(path)):
        path.read_bytes()
    with pytest.raises(KeyError), unchanged(path, check_readable(path)):
        raise KeyError


def test_reads_and_sequences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.formats.fastq._PIECE_BYTES", 1 << 16)
    fastq, fasta = tmp_path / "a.fastq", tmp_path / "a.fasta"
    for path, record in ((fastq, f"@a\n{'A' * 99}\n+\n{'I' * 99}\n"), (fasta, f">a\n{'A' * 99}\n")):
        path.write_text(record * 20_000)
    with pytest.raises(FormatError, match="changed while it was read"), open_reads(fastq, fasta) as files:
        for _ in files:
            appended(fasta)
    with pytest.raises(FormatError, match="changed while it was read"):
        for _ in read_fasta(fasta, block_residues=1000):
            appended(fasta)


def test_reads_that_were_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.vdj.reads.annotate_files._BLOCK_READS", 40)
    germlines = [load_germline("mouse_trb")]
    path, out = tmp_path / "a.fastq", tmp_path / "out.tsv"
    write_fastq(simulate_reads(germlines, Library(reads=120, clones=20, noise=0.1), seed=1), path)
    with pytest.raises(KeyboardInterrupt):
        annotate_files([path], out, germlines, progress=stop, threads=1)
    before = path.stat()
    lines = path.read_text().splitlines()
    lines[1] = lines[1][::-1]
    path.write_text("\n".join(lines) + "\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(InvalidInput, match="another content of reads 0 to 39 of"):
        annotate_files([path], out, germlines, resume=True)


class Elsewhere:
    """Another machine: what goes there and back is pickled; `before` is done to files first."""

    elsewhere, slots = True, 1

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before

    def map(
        self, function: Callable[[Any], Any], batches: Iterable[Any], **options: Any
    ) -> Generator[Any, None, None]:
        there = pickle.loads(pickle.dumps(function))
        for number, batch in enumerate(batches):
            if number:
                self._before()
            yield pickle.loads(pickle.dumps(there(pickle.loads(pickle.dumps(batch)))))


def test_a_worker_that_reads_another_file(tmp_path: Path, mouse_rows: Any, counter: PathCounter) -> None:
    rows = mouse_rows(100)
    path = write(tmp_path / "in.parquet", rows)
    count_files([path], tmp_path / "here.tsv", counter)
    count_files([path], tmp_path / "there.tsv", counter, executor=Elsewhere(lambda: None))
    assert (tmp_path / "here.tsv").read_bytes() == (tmp_path / "there.tsv").read_bytes()
    other = {name: cells[::-1] for name, cells in rows.items()}

    def change() -> None:
        replaced(path, other, 0)

    with pytest.raises(FormatError, match=r"other rows than a worker has read|changed while it was read"):
        count_files([path], tmp_path / "out.tsv", counter, executor=Elsewhere(change))
    assert not (tmp_path / "out.tsv").exists()


def test_sharing_on_workers(tmp_path: Path, mouse_rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.vdj.repertoires.sharing._BLOCK_ROWS", BLOCK)
    rows = mouse_rows(100)
    path = write(tmp_path / "in.parquet", rows)
    with pytest.raises(FormatError, match="changed while it was read"):
        sharing([path], executor=Elsewhere(lambda: replaced(path, rows, 0)))
    short = {name: cells[:20] for name, cells in rows.items()}
    with pytest.raises(FormatError, match="fewer rows than records 16 to 31"):
        sharing([write(path, rows)], executor=Elsewhere(lambda: write(path, short) and None))


def test_digests() -> None:
    rows = {
        "a": ["x", "yz", None, ""],
        "b": pa.array([1, None, 2, 3]),
        "c": pa.array(["q"] * 4, pa.large_string()),
    }
    batch = pa.record_batch(rows)
    joined = pa.concat_batches([batch, batch])
    assert digest_of(batch) == digest_of(joined.slice(4)) == digest_of(joined.slice(0, 4))
    assert len({digest_of(batch.slice(0, n)) for n in range(5)}) == 5
    assert digest_of(pa.record_batch({"a": ["", None]})) != digest_of(pa.record_batch({"a": [None, ""]}))
    assert digest_of(pa.record_batch({"a": ["ab", "c"]})) != digest_of(pa.record_batch({"a": ["a", "bc"]}))
    assert digest_of(b"ab", b"c") != digest_of(b"a", b"bc")


def test_a_block_of_something_else(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, key={}, resume=False)
    batch = pa.record_batch({"a": [1]})
    checkpoint.put(0, batch, digest_of(b"x"))
    assert checkpoint.get(0) == checkpoint.get(0, digest_of(b"x")) == batch
    with pytest.raises(InvalidInput, match="resume: found another content of rows 7 than"):
        checkpoint.get(0, digest_of(b"y"), "rows 7")
