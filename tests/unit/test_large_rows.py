"""Rows, records and pages of any size: blocks are cut by bytes, and what is too large is refused."""

from __future__ import annotations

import gzip
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait.errors import FormatError
from plait.formats import parquet
from plait.formats.fasta import read_fasta
from plait.formats.fastq import fastq_reads
from plait.formats.files import ByteSource, FileKind
from plait.formats.parquet import ParquetInput
from plait.formats.reads import open_reads
from plait.formats.rearrangements import batch_bytes, open_rearrangements, reblock
from plait.run.executor import LocalExecutor
from plait.vdj import PathCounter
from plait.vdj.count_files import count_files

HEADER = "junction\tv_call\tj_call\tnote\n"


def batch(sizes: list[int], kind: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.record_batch({"note": pa.array(["x" * size for size in sizes], kind or pa.string())})


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_blocks_are_cut_by_rows_and_bytes(kind: pa.DataType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = (10 ** rng.uniform(0, 3, 200)).astype(int).tolist()
    whole = batch(sizes, kind)
    cut = [whole.slice(a, b - a) for a, b in zip([0, 13, 13, 100], [13, 13, 100, 200], strict=True)]
    blocks = list(reblock(cut, 10, 1500))
    assert pa.concat_batches(blocks).equals(whole)
    assert all(0 < block.num_rows <= 10 for block in blocks)
    assert all(batch_bytes(block) <= 1500 or block.num_rows == 1 for block in blocks)
    # None could have had another row.
    for block, following in pairwise(blocks):
        more = pa.concat_batches([block, following.slice(0, 1)])
        assert block.num_rows == 10 or batch_bytes(more) > 1500
    assert [block.num_rows for block in reblock(cut, 30)] == [30] * 6 + [20]


def test_batches_that_are_held_are_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.run.executor.HELD_BYTES", 100)
    read: list[int] = []

    def sizes() -> Any:
        for size in [10] * 8 + [60, 60, 500, 10]:
            read.append(size)
            yield size

    most, done = 0, 0
    for size in LocalExecutor(4, waiting=4).map(lambda size: size, sizes(), size=lambda size: size):
        most = max(most, sum(read[done:]) - read[-1])
        done += 1
        assert size == read[done - 1]
    assert (most <= 100, done) == (True, 12)


@pytest.mark.parametrize("suffix", ["tsv", "parquet"])
@pytest.mark.parametrize("long", often(1, [False, True]))
def test_long_rows_change_no_result(
    tmp_path: Path, mouse_rows: Any, monkeypatch: pytest.MonkeyPatch, suffix: str, long: bool
) -> None:
    columns = mouse_rows(60)
    columns["note"] = ["x" * (3000 if 20 < k < 40 else 5) for k in range(60)]
    path = tmp_path / f"in.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        lines = ["\t".join(columns), *map("\t".join, zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
    counter = PathCounter("mouse_trb", device="cpu", threads=1)
    outs = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    count_files([path], outs[0], counter, long=long)
    monkeypatch.setattr("plait.vdj.count_files.MOST_BYTES", 1 << 14)
    count_files([path], outs[1], counter, long=long)
    assert pq.read_table(outs[0]).equals(pq.read_table(outs[1]))
    groups = [pq.ParquetFile(out).num_row_groups for out in outs]
    assert groups[0] == 1 < groups[1]


def failing(path: Path) -> FormatError:
    with pytest.raises(FormatError) as caught:
        list(open_rearrangements(path, block_rows=1000))
    assert caught.value.path == str(path)
    return caught.value


@pytest.fixture
def small_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.formats.rearrangements.LARGEST_ROW", 5000)
    monkeypatch.setattr("plait.formats.rearrangements.LARGEST_ROW", 5000)


@pytest.mark.usefixtures("small_rows")
@pytest.mark.parametrize("piece", [100, 1 << 20])
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_line_that_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, end: str
) -> None:
    monkeypatch.setattr("plait.formats.rearrangements._PIECE_BYTES", piece)
    path = tmp_path / "in.tsv.gz"
    path.write_bytes(gzip.compress((HEADER + "A\tV\tJ\tx\n" * 30 + f"A\tV\tJ\t{'x' * 6000}{end}").encode()))
    error = failing(path)
    assert (error.line, error.record) in [(32, None), (None, 30)]
    assert error.expected == "rows of at most 5,000 bytes"


@pytest.mark.usefixtures("small_rows")
def test_a_row_of_parquet_that_is_too_long(tmp_path: Path) -> None:
    notes = ["x"] * 30 + ["x" * 6000]
    pq.write_table(pa.table({**{n: ["A"] * 31 for n in HEADER.split()[:3]}, "note": notes}), tmp_path / "in")
    error = failing(tmp_path / "in")
    assert (error.record, error.found) == (30, "a row of 6,019 bytes")


def test_a_header_of_very_many_columns(tmp_path: Path) -> None:
    path = tmp_path / "in.tsv"
    path.write_text("\t".join(map(str, range(20_000))) + "\n")
    error = failing(path)
    assert (error.line, error.found) == (1, "20,000 columns")


class TestParquet:
    def batches(self, path: Path, rows: int = 65536) -> list[pa.RecordBatch]:
        return list(ParquetInput(path).batches(rows))

    @pytest.mark.parametrize("nested", [False, True])
    @pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"compression": "zstd"}], ids=str)
    def test_a_dictionary_that_grows(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nested: bool, options: dict[str, Any]
    ) -> None:
        monkeypatch.setattr(parquet, "_BATCH_BYTES", 1 << 18)
        monkeypatch.setattr("plait.formats.parquet._SMALL", 1 << 10)
        cells = [f"{k % 3}" + "x" * 9999 for k in range(2000)]
        notes: Any = [[cell] for cell in cells] if nested else cells
        pq.write_table(pa.table({"note": notes, "n": range(2000)}), tmp_path / "in", **options)
        assert (tmp_path / "in").stat().st_size < 1 << 16
        found = self.batches(tmp_path / "in")
        assert max(batch.nbytes for batch in found) <= 1 << 18
        assert [note for batch in found for note in batch["note"].to_pylist()] == notes

    def test_plain_values_that_grow(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parquet, "_BATCH_BYTES", 1 << 18)
        cells = [f"{k}" + "x" * (9999 if k > 1000 else 1) for k in range(2000)]
        table = pa.table({"note": cells})
        pq.write_table(table, tmp_path / "in", use_dictionary=False, data_page_size=1 << 14)
        found = self.batches(tmp_path / "in")
        assert max(batch.nbytes for batch in found) <= 1 << 18
        assert pa.Table.from_batches(found).equals(table)

    def test_a_huge_page(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parquet, "_MOST_PAGES", 1 << 20)
        table = pa.table({"note": ["x" * 3_000_000]})
        pq.write_table(pa.concat_tables([table.slice(0, 0), pa.table({"note": ["y"]})]), tmp_path / "in")
        with pq.ParquetWriter(
            tmp_path / "in", table.schema, compression="zstd", use_dictionary=False
        ) as writer:
            writer.write_table(pa.table({"note": ["y"] * 5}))
            writer.write_table(table)
        with pytest.raises(FormatError, match=r"record 5: found a row group with pages of 3,000,\d+ bytes"):
            self.batches(tmp_path / "in")

    @pytest.mark.parametrize("nested", [False, True])
    def test_text_that_is_not_utf8(self, tmp_path: Path, nested: bool) -> None:
        offsets = pa.array([0, 2, 3, 5], pa.int32()).buffers()[1]
        bad = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"ab\xffcd"))
        note = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), bad) if nested else bad
        table = pa.table({"id": range(7), "note": pa.concat_arrays([note.slice(0, 1)] * 4 + [note])})
        pq.write_table(table, tmp_path / "in", row_group_size=4)
        with pytest.raises(FormatError) as caught:
            self.batches(tmp_path / "in")
        assert (caught.value.record, caught.value.column) == (5, "note")
        assert "UTF-8" in caught.value.expected


@pytest.mark.parametrize("long_bytes", [1, 40, 150])
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_long_records_of_fasta(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long_bytes: int, size: int
) -> None:
    rng = np.random.default_rng(size)
    records = []
    for k in range(20):
        letters = "".join(rng.choice(list("ACGT"), rng.integers(0, 300)))
        end = "\r\n" if k % 3 else "\n"
        lines = [letters[a : a + 50] for a in range(0, len(letters), 50)]
        records.append((f"r{k}", letters, f">r{k} d{end}" + "".join(line + end for line in lines)))
    text = "".join(record for _, _, record in records).rstrip("\r\n")
    (tmp_path / "a.fasta").write_bytes(text.encode())
    whole = list(read_fasta(tmp_path / "a.fasta"))
    monkeypatch.setattr("plait.formats.fasta._LONG_BYTES", max(long_bytes, 8))
    monkeypatch.setattr("plait.formats.fasta._PIECE_BYTES", size)
    found = list(read_fasta(tmp_path / "a.fasta", block_residues=500))
    names = [name for block in found for name in block.names]
    assert names == [name for name, _, _ in records]
    sequences = [block.sequence(k).decode() for block in found for k in range(len(block))]
    assert sequences == [letters for _, letters, _ in records]
    assert np.concatenate([block.lines for block in found]).tolist() == whole[0].lines.tolist()
    assert len(found) > 3


def test_fasta_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.formats.fasta._LONG_BYTES", 1000)
    monkeypatch.setattr("plait.formats.fasta._PIECE_BYTES", 300)
    (tmp_path / "a").write_text(">a\nACGT\n>b\n" + "ACGT\n" * 1000 + ">c\nA\n")
    with pytest.raises(FormatError, match="line 3: found a record of more than 3,000 residues"):
        list(read_fasta(tmp_path / "a", longest=3000))
    (tmp_path / "b").write_text(">a\nACGT\n>" + "b" * 5000)
    with pytest.raises(FormatError, match="line 3: found a header line of more than 1,000 bytes"):
        list(read_fasta(tmp_path / "b"))
    (tmp_path / "c").write_text(">a\nACGT\n>b\n" + "ACGT\n" * 1000 + "AC\x01GT\n")
    with pytest.raises(FormatError, match="line 1004: found the byte 0x01 in a sequence"):
        list(read_fasta(tmp_path / "c"))


def test_long_mates_end_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.formats.reads._BLOCK_BASES", 1000)
    reads, mates = tmp_path / "1.fastq", tmp_path / "2.fastq"
    lengths = [400 if 10 < k < 30 else 20 for k in range(50)]
    reads.write_text("".join(f"@r{k}/1\nACGT\n+\nIIII\n" for k in range(50)))
    mates.write_text("".join(f"@r{k}/2\n{'A' * n}\n+\n{'I' * n}\n" for k, n in enumerate(lengths)))
    with open_reads(reads, mates, block_reads=40) as files:
        items = [(item.first, len(item.reads), item.mates.lengths.tolist()) for item in files if item.mates]
    assert [n for _, _, found in items for n in found] == lengths
    assert max(sum(found) for _, _, found in items) <= 1000
    assert [first for first, _, _ in items] == np.cumsum([0, *(n for _, n, _ in items)])[:-1].tolist()
    assert all(n == len(found) for _, n, found in items)
    mates.write_text(mates.read_text().rsplit("@r49/2", 1)[0])
    with (
        pytest.raises(FormatError, match="the end of the file after 49 reads"),
        open_reads(reads, mates) as files,
    ):
        list(files)


def test_a_fastq_record_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.formats.fastq._LONGEST_RECORD", 5000)
    (tmp_path / "a").write_text("@a\nACGT\n+\nIIII\n" * 100 + f"@b\n{'A' * 9000}\n+\n{'I' * 9000}\n")
    told = "line 401: found a record of more than 5,000 bytes"
    with ByteSource(tmp_path / "a", FileKind.PLAIN) as source, pytest.raises(FormatError, match=told):
        list(fastq_reads(source, source.read(300), 1, piece_bytes=300))


BOMB = """
import sys
from plait.errors import FormatError
from plait.formats.rearrangements import open_rearrangements
try:
    for block in open_rearrangements(sys.argv[1], block_rows=65536):
        pass
except FormatError as error:
    print(error.line, error.record)
# What getrusage tells is no less than what the parent had when it started this.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) >> 10)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system does not tell a peak so")
def test_a_small_file_of_one_huge_line(tmp_path: Path) -> None:
    path = tmp_path / "in.tsv.zst"
    with pa.output_stream(path, compression="zstd") as stream:
        stream.write((HEADER + "A\tV\tJ\tx\nA\tV\tJ\t").encode())
        for _ in range(64):
            stream.write(b"x" * (16 << 20))
    found = subprocess.run([sys.executable, "-c", BOMB, path], capture_output=True, text=True, check=True)
    place, mebibytes = found.stdout.splitlines()
    assert place == "3 None" and int(mebibytes) < 500
