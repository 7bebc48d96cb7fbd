"""Aligned pairs in every format: content, as other programs read it, and when writing fails."""

from __future__ import annotations

import errno
import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait.align.results import make_alignment
from plait.align.scoring import Scoring, match_mismatch
from plait.align.writers import (
    COLUMNS,
    DEFAULT_COLUMNS,
    FORMATS,
    AlignedPair,
    AlignmentWriter,
    alignment_format,
    check_columns,
    needs_alignment,
    open_alignments,
)
from plait.errors import FormatError, InvalidInput, PlaitError
from plait.formats.atomic import TextOutput
from plait.types import Provenance

DNA = Scoring(match_mismatch(2, -3), 7, 2)
MADE = Provenance(
    version="9.9", device="cpu", schedule="tiled", algebra="MaxPlus", parameters={"gap_open": 7}
)
SUFFIX = {name: suffixes[0] for name, suffixes in FORMATS.items()}


def pair(
    query: bytes,
    target: bytes,
    runs: list[tuple[int, int]],
    ends: tuple[int, int] | None = None,
    *,
    names: tuple[str, str] = ("q", "t"),
    score: int = 5,
    **facts: Any,
) -> AlignedPair:
    codes = DNA.encode(query), DNA.encode(target, "target")
    path = np.array(runs, np.int64).reshape(-1, 2)
    alignment = make_alignment(*codes, DNA, score, *(ends or (len(query), len(target))), path)
    return AlignedPair(
        query_name=names[0], target_name=names[1], query=query, target=target, score=score, mode="local",
        alignment=alignment, **facts,
    )  # fmt: skip


#: Clipped at both ends, with a mismatch, an insertion, and two letters of the target that the query lacks.
CLIPPED = pair(b"ttACGTAGGACtt", b"GACGAGGCTACGG", [(0, 4), (2, 1), (0, 2), (1, 2), (0, 2)], (11, 11))
WHOLE = pair(b"ACGT", b"ACGT", [(0, 4)], names=("q2", "t2"), score=8, bit_score=12.5, evalue=1e-300)
NOTHING = pair(b"AAAA", b"CCCC", [], (0, 0), names=("q3", "t"), score=0)
SCORE_ONLY = AlignedPair(
    query_name="q", target_name="t", query=b"ACG", target=b"AC", score=4, alignment=None, mode="global"
)


def opened(path: Path | str | None, **options: Any) -> AlignmentWriter:
    return open_alignments(path, scoring=DNA, provenance=MADE, command="plait align a.fa b.fa", **options)


def written(path: Path, *pairs: AlignedPair, **options: Any) -> bytes:
    with opened(path, **options) as writer:
        for item in pairs:
            writer.write(item)
        assert writer.pairs == len(pairs)
    return path.read_bytes()


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize(
    ("output", "format", "chosen"),
    [
        (None, None, "text"), ("-", None, "text"), ("-", "sam", "sam"), (None, "tsv", "tsv"),
        ("a.txt", None, "text"), ("a.TXT.gz", None, "text"), ("a.tsv.zst", None, "tsv"),
        ("a.sam", None, "sam"), ("a.jsonl.gz", None, "jsonl"), (Path("a.parquet"), None, "parquet"),
        ("a.parquet", "parquet", "parquet"), ("a.pair", "text", "text"), ("a", "sam", "sam"),
        ("a.json", "jsonl", "jsonl"),
    ],
)  # fmt: skip
def test_the_format_is_chosen_by_name(output: Any, format: str | None, chosen: str) -> None:
    assert alignment_format(output, format) == chosen


@pytest.mark.parametrize(
    ("output", "format", "message"),
    [
        (
            "a.bam",
            None,
            "found 'a.bam', expected a name that ends in .txt, .tsv, .sam, .paf, .jsonl, .parquet",
        ),
        ("a.txt", "bam", "found 'bam', expected one of text, tsv, sam, paf, jsonl, parquet"),
        ("a.txt", "sam", "a name that ends in .sam or .sam.gz or .sam.zst for the format sam"),
        ("a.out", "tsv", "a name that ends in .tsv"),
        ("a.out", "parquet", "a name that ends in .parquet for"),
        (None, "parquet", "found standard output, expected the name of a file"),
    ],
)
def test_formats_that_cannot_be(output: str | None, format: str | None, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        alignment_format(output, format)
    assert message in str(caught.value)


def test_text(tmp_path: Path) -> None:
    text = written(tmp_path / "a.txt", CLIPPED, NOTHING).decode()
    rule = "#" * 40
    facts = "# Program: plait 9.9\n# Commandline: plait align a.fa b.fa\n# Align_format: srspair\n"
    assert text.startswith(f"{rule}\n{facts}{rule}\n\n#==")
    assert CLIPPED.alignment is not None
    middle = CLIPPED.alignment.text(CLIPPED.query, CLIPPED.target, query_name="q", target_name="t")
    assert middle in text
    assert "q                  3 ACGTAGG--AC     11\n                     |||. ||  ||\n" in text
    assert text.endswith(
        "\n\n\n#---------------------------------------\n#---------------------------------------\n"
    )
    assert text.count("# Aligned_sequences: 2") == 2


def test_biopython_reads_the_text(tmp_path: Path) -> None:
    align_io = pytest.importorskip("Bio.AlignIO", reason="Biopython is not installed")
    written(tmp_path / "a.txt", CLIPPED, NOTHING, WHOLE)
    read = list(align_io.parse(tmp_path / "a.txt", "emboss"))
    assert [[str(record.seq) for record in item] for item in read] == [
        ["ACGTAGG--AC", "ACGA-GGCTAC"], ["", ""], ["ACGT", "ACGT"],
    ]  # fmt: skip


def test_default_columns_as_tsv(tmp_path: Path) -> None:
    lines = written(tmp_path / "a.tsv", CLIPPED, NOTHING, SCORE_ONLY).decode().split("\n")
    assert lines[0].split("\t") == list(DEFAULT_COLUMNS)
    assert lines[1:] == [
        "q\tt\t5\t2\t11\t13\t1\t11\t13\t0.6363636363636364\t0.6363636363636364\t11\t7\t1\t3\t2\t3=1X1I2=2D2=",
        "q3\tt\t0\t0\t0\t4\t0\t0\t4\t0\t0\t0\t0\t0\t0\t0\t",
        "q\tt\t4\t\t\t3\t\t\t2\t\t\t\t\t\t\t\t",
        "",
    ]
    facts = json.loads((tmp_path / "a.tsv.json").read_text())
    assert facts["metadata"]["plait.provenance"] == MADE.as_dict()


def test_all_columns_as_json_lines(tmp_path: Path) -> None:
    lines = written(tmp_path / "a.jsonl", CLIPPED, WHOLE, columns=list(COLUMNS)).decode().splitlines()
    first, second = map(json.loads, lines)
    assert list(first) == list(COLUMNS)
    assert first | {"identity": 0, "similarity": 0} == {
        "query": "q", "target": "t", "score": 5, "bit_score": None, "evalue": None,
        "query_start": 2, "query_end": 11, "query_length": 13,
        "target_start": 1, "target_end": 11, "target_length": 13,
        "identity": 0, "similarity": 0, "length": 11, "matches": 7, "mismatches": 1, "gaps": 3,
        "gap_openings": 2, "mode": "local", "cigar": "3=1X1I2=2D2=",
        "query_aligned": "ACGTAGG--AC", "target_aligned": "ACGA-GGCTAC",
        "rank": 1, "strand": "+",
    }  # fmt: skip
    assert (second["bit_score"], second["evalue"], second["identity"]) == (12.5, 1e-300, 1.0)
    facts = json.loads((tmp_path / "a.jsonl.json").read_text())
    assert facts == {"pairs": 2, "provenance": MADE.as_dict()}


def test_parquet(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", CLIPPED, WHOLE, SCORE_ONLY, columns=list(COLUMNS))
    table = pq.read_table(tmp_path / "a.parquet")
    types = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64()}
    assert table.schema.types == [types[column.kind] for column in COLUMNS.values()]
    expected = [{n: c.value(p) for n, c in COLUMNS.items()} for p in (CLIPPED, WHOLE, SCORE_ONLY)]
    assert table.to_pylist() == expected
    assert json.loads(table.schema.metadata[b"plait.provenance"]) == MADE.as_dict()


@pytest.mark.parametrize("limit", ["_BATCH_ROWS", "_BATCH_LETTERS"])
def test_tables_are_written_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(f"plait.align.table_writers.{limit}", 3)
    written(tmp_path / "a.parquet", *[WHOLE] * 7, columns=["query", "score"])
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert file.num_row_groups == (3 if limit == "_BATCH_ROWS" else 4)
    assert file.read().to_pydict() == {"query": ["q2"] * 7, "score": [8] * 7}


def test_chosen_columns(tmp_path: Path) -> None:
    text = written(tmp_path / "a.tsv", CLIPPED, columns=["score", "query", "query_aligned"]).decode()
    assert text == "score\tquery\tquery_aligned\n5\tq\tACGTAGG--AC\n"
    assert not needs_alignment(["query", "target", "score", "query_length", "evalue", "mode"])
    assert all(needs_alignment([name]) for name in ("cigar", "identity", "query_start", "target_aligned"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["query", "cigra"], "found 'cigra', expected names out of query, target"),
        (["cigra"], "did you mean cigar?"),
        (["query", "score", "query"], "'query' more than once"),
        ([], "no name"),
    ],
)
def test_wrong_columns(tmp_path: Path, columns: list[str], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_columns(columns)
    assert message in str(caught.value)
    with pytest.raises(InvalidInput):
        opened(tmp_path / "a.tsv", columns=columns)
    with pytest.raises(InvalidInput, match="columns with tsv, jsonl and parquet only"):
        opened(tmp_path / "a.sam", columns=["query"])
    assert names(tmp_path) == []


@pytest.mark.parametrize("format", ["text", "sam"])
def test_a_command_line_of_any_bytes(tmp_path: Path, format: str) -> None:
    command = "plait align \udcff.fa\té.fa"
    with open_alignments(tmp_path / "a", scoring=DNA, provenance=MADE, format=format, command=command):
        pass
    assert "plait align \\udcff.fa é.fa\n" in (tmp_path / "a").read_text(encoding="utf-8")


@pytest.mark.parametrize("format", ["text", "sam"])
def test_a_score_alone_has_no_text(tmp_path: Path, format: str) -> None:
    with pytest.raises(InvalidInput, match="a score alone"):
        written(tmp_path / "a", SCORE_ONLY, format=format)
    assert names(tmp_path) == []


@pytest.mark.parametrize("format", ["text", "tsv", "sam", "jsonl"])
def test_standard_output_and_compression_hold_the_same(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], format: str
) -> None:
    whole = written(tmp_path / f"a{SUFFIX[format]}", CLIPPED, WHOLE)
    packed = [written(tmp_path / f"{name}{SUFFIX[format]}.gz", CLIPPED, WHOLE) for name in "ab"]
    assert packed[0] == packed[1]
    assert gzip.decompress(packed[0]) == whole
    frames = written(tmp_path / f"a{SUFFIX[format]}.zst", CLIPPED, WHOLE)
    with pa.CompressedInputStream(pa.BufferReader(frames), "zstd") as stream:
        assert stream.read() == whole
    for output in (None, "-"):
        print("before")
        with opened(output, format=format) as writer:
            writer.write(CLIPPED)
            writer.write(WHOLE)
        assert capfdbinary.readouterr().out == b"before\n" + whole


class Failing(io.RawIOBase):
    """A standard output that takes a few bytes at a time, and then none."""

    def __init__(self, room: int, code: int) -> None:
        self.room = room
        self.code = code

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        taken = min(len(data), 7, self.room)
        self.room -= taken
        if not taken:
            raise OSError(self.code, "no more")
        return taken


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EPIPE])
def test_standard_output_that_is_full_or_closed(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    raw = Failing(100, code)
    stream = io.TextIOWrapper(io.BufferedWriter(raw))
    monkeypatch.setattr(sys, "stdout", stream)
    with (
        pytest.raises(BrokenPipeError if code == errno.EPIPE else FormatError) as caught,
        opened(None) as out,
    ):
        out.write(WHOLE)
    assert code == errno.EPIPE or "standard output: found no more" in str(caught.value)
    assert raw.room == 0
    # Nothing is left that would be tried again at the end of the process.
    stream.close()


@pytest.mark.parametrize("format", FORMATS)
class TestFailures:
    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_an_exception_leaves_the_older_file(
        self, tmp_path: Path, format: str, error: type[BaseException]
    ) -> None:
        path = tmp_path / f"a{SUFFIX[format]}"
        path.write_bytes(b"old")
        with pytest.raises(error), opened(path) as writer:
            writer.write(WHOLE)
            raise error
        assert names(tmp_path) == [path.name]
        assert path.read_bytes() == b"old"

    @pytest.mark.parametrize("room", often(4, [0, 300, 3000]))
    def test_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, room: int) -> None:
        path = tmp_path / f"a{SUFFIX[format]}"
        path.write_bytes(b"old")
        monkeypatch.setattr("plait.formats.atomic._PIECE_BYTES", 1000)
        monkeypatch.setattr("plait.align.table_writers._BATCH_ROWS", 10)
        small_disk(monkeypatch, room)
        many = [pair(b"ACGT" * n, b"ACGT" * n, [(0, 4 * n)], names=(f"q{n}", f"t{n}")) for n in range(1, 200)]
        with pytest.raises(FormatError) as caught:
            written(path, *many)
        assert (caught.value.path, caught.value.found) == (str(path), "no space left on the device")
        assert names(tmp_path) == [path.name]
        assert path.read_bytes() == b"old"

    def test_an_input_is_not_overwritten(self, tmp_path: Path, format: str) -> None:
        path = tmp_path / f"a{SUFFIX[format]}"
        path.write_bytes(b"precious")
        with pytest.raises(InvalidInput, match="also an input"):
            opened(path, inputs=["other", path])
        assert path.read_bytes() == b"precious"

    def test_impossible_targets(self, tmp_path: Path, format: str) -> None:
        (tmp_path / f"a{SUFFIX[format]}").mkdir()
        with pytest.raises(PlaitError, match="is a directory"):
            opened(tmp_path / f"a{SUFFIX[format]}")
        with pytest.raises(PlaitError, match="does not exist"):
            opened(tmp_path / "none" / f"a{SUFFIX[format]}")

    def test_no_pairs(self, tmp_path: Path, format: str) -> None:
        path = tmp_path / f"a{SUFFIX[format]}"
        assert written(path) or format in ("jsonl", "paf")
        assert path.exists()


def small_disk(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Let writes fail, as on a full disk, once `room` bytes are written."""
    import plait.formats.atomic as atomic

    real = atomic._open_locked
    left = [room]

    class Limited:
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def write(self, data: bytes) -> int:
            left[0] -= len(data)
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(self._stream.write(data))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._stream, name)

    monkeypatch.setattr(atomic, "_open_locked", lambda *paths: Limited(real(*paths)))


def test_text_output_is_a_context_manager(tmp_path: Path) -> None:
    with TextOutput(tmp_path / "a.out") as output:
        output.write(b"one")
    with pytest.raises(ValueError), TextOutput(tmp_path / "a.out") as output:
        output.write(b"two")
        raise ValueError
    assert (tmp_path / "a.out").read_bytes() == b"one"
    assert names(tmp_path) == ["a.out"]
