from __future__ import annotations

import errno
import functools
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.tables import TABLE_SUFFIXES, open_table

BATCH = pa.record_batch(
    {
        "junction": pa.array(["TGT", "", None, "q\"uote,'"]),
        "status": pa.array(["ok", "ok", None, "x"], pa.large_string()),
        "path_count": pa.array([0, 2**62, None, -1], pa.int64()),
        "path_count_by_d": pa.array([[1, None], [0, -5], [None, None], [3, 4]], pa.list_(pa.int64(), 2)),
        "productive": pa.array([True, False, None, True]),
        "share": pa.array([0.1, 1e-300, None, 2.0]),
        "wide": pa.array([Decimal(10**40), Decimal(0), None, Decimal(-1)], pa.decimal256(60, 0)),
    }
)
LINES = [
    "junction\tstatus\tpath_count\tpath_count_by_d\tproductive\tshare\twide",
    "TGT\tok\t0\t1,\tT\t0.1\t1" + "0" * 40,
    "\tok\t4611686018427387904\t0,-5\tF\t1e-300\t0",
    "\t\t\t,\t\t\t",
    "q\"uote,'\tx\t-1\t3,4\tT\t2\t-1",
]
METADATA = {"plait": '{"version": "1", "pi": [1, 2]}', "note": "{no json"}


def written(path: Path, *batches: pa.RecordBatch, metadata: dict[str, str] | None = None) -> bytes:
    with open_table(path, batches[0].schema, metadata=metadata or {}) as table:
        for batch in batches:
            table.write(batch)
        assert table.rows == sum(batch.num_rows for batch in batches)
    return path.read_bytes()


def as_text(path: Path, data: bytes) -> str:
    if path.suffix == ".gz":
        return gzip.decompress(data).decode()
    if path.suffix == ".zst":
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            return bytes(stream.read()).decode()
    return data.decode()


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".tsv.zst"])
def test_text(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    data = written(path, BATCH.slice(0, 3), BATCH.slice(3))
    assert as_text(path, data).split("\n") == [*LINES, ""]


def test_parquet_keeps_types_metadata_and_blocks(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", BATCH.slice(0, 3), BATCH.slice(3), metadata=METADATA)
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert file.read().to_batches()[0].schema.equals(BATCH.schema)
    assert file.read().to_pydict() == BATCH.to_pydict()
    assert file.num_row_groups == 2
    stored = file.schema_arrow.metadata
    assert {key: stored[key.encode()].decode() for key in METADATA} == METADATA
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_facts_beside_the_text(tmp_path: Path) -> None:
    written(tmp_path / "a.tsv.gz", BATCH, metadata=METADATA)
    text = (tmp_path / "a.tsv.gz.json").read_text(encoding="utf-8")
    facts = json.loads(text)
    assert facts["table"] == "a.tsv.gz"
    assert facts["rows"] == 4
    assert facts["columns"][2] == {"name": "path_count", "type": "int64"}
    assert facts["metadata"] == {"plait": {"version": "1", "pi": [1, 2]}, "note": "{no json"}
    assert text == json.dumps(facts, indent=2, sort_keys=True) + "\n"


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
def test_equal_batches_give_equal_bytes(tmp_path: Path, suffix: str) -> None:
    one = written(tmp_path / f"a{suffix}", BATCH, BATCH, metadata=METADATA)
    parts = [BATCH.slice(0, 1), BATCH.slice(1)]
    again = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    assert written(tmp_path / f"b{suffix}", again, BATCH.slice(0), metadata=METADATA) == one


def test_gzip_holds_no_time(tmp_path: Path) -> None:
    assert written(tmp_path / "a.tsv.gz", BATCH)[4:8] == bytes(4)


def test_what_parquet_cannot_hold_is_unsupported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise pa.ArrowNotImplementedError("no such thing in Parquet")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", refuse)
    with pytest.raises(Unsupported, match="no such thing in Parquet"):
        written(tmp_path / "a.parquet", BATCH)
    assert names(tmp_path) == []


def test_no_rows(tmp_path: Path) -> None:
    for suffix in TABLE_SUFFIXES:
        with open_table(tmp_path / f"a{suffix}", BATCH.schema, metadata={}) as table:
            table.write(BATCH.slice(0, 0))
    assert (tmp_path / "a.tsv").read_text() == LINES[0] + "\n"
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([1.5, None], pa.float32()), ["1.5", ""]),
        (pa.array([0.30000000000000004, float("nan")]), ["0.30000000000000004", "nan"]),
        (pa.array([Decimal("0.00000001"), None], pa.decimal128(10, 8)), ["0.00000001", ""]),
        (pa.nulls(2), ["", ""]),
        (pa.array([[], None], pa.list_(pa.string())), ["", ""]),
        (pa.array([["a", None, "b"], ["c"]], pa.large_list(pa.large_string())), ["a,,b", "c"]),
        (pa.array([[True, False], [None]], pa.list_(pa.bool_())), ["T,F", ""]),
        (pa.array([0, None], pa.date32()), ["1970-01-01", ""]),
        (pa.array([[9, 9], [1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)).slice(2), ["", "3,4"]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_cells_of_every_type(tmp_path: Path, values: pa.Array, texts: list[str]) -> None:
    batch = pa.record_batch({"a": pa.array(["x"] * len(values)), "b": values})
    lines = written(tmp_path / "a.tsv", batch).decode().split("\n")[1:-1]
    assert lines == [f"x\t{text}" for text in texts]


def test_a_quote_changes_nothing_in_other_rows(tmp_path: Path) -> None:
    assert written(tmp_path / "a.tsv", BATCH.slice(0, 3)).decode().split("\n") == [*LINES[:-1], ""]
    assert written(tmp_path / "b.tsv", BATCH.slice(1)).decode().split("\n") == [LINES[0], *LINES[2:], ""]


def test_text_in_many_pieces_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(tmp_path / "a.tsv", BATCH)
    monkeypatch.setattr("plait.formats.tables._PIECE_BYTES", 1)
    assert written(tmp_path / "b.tsv", BATCH) == whole


@pytest.mark.parametrize("symbol", ["\t", "\n", "\r", "\0"])
@pytest.mark.parametrize("piece", [1, 8 << 20])
def test_a_cell_that_would_break_the_table_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, symbol: str, piece: int
) -> None:
    monkeypatch.setattr("plait.formats.tables._PIECE_BYTES", piece)
    good = pa.record_batch({"a": ["1", "2"], "b": ["3", "4"]})
    bad = pa.record_batch({"a": ["1", "2"], "b": ["3", f"x{symbol}y"]})
    with pytest.raises(FormatError) as caught:
        written(tmp_path / "a.tsv", good, bad)
    assert (caught.value.record, caught.value.column) == (3, "b")
    assert repr(f"x{symbol}y") in str(caught.value.found)
    assert names(tmp_path) == []


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
def test_rows_that_were_laid_out_before_are_the_same(tmp_path: Path, suffix: str) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int64())])
    batches = [pa.record_batch([[text] * 3, [k] * 3], schema=schema) for k, text in enumerate("xyz")]
    for ready in (False, True):
        with open_table(tmp_path / f"{ready}{suffix}", schema, metadata={}) as table:
            for rows in list(map(table.encoded, batches)) if ready else batches:
                assert isinstance(rows, pa.RecordBatch) != ready
                table.write(rows)
            assert table.rows == 9
    one, other = (tmp_path / f"{ready}{suffix}" for ready in (False, True))
    assert one.read_bytes() == other.read_bytes()


def test_a_cell_that_was_laid_out_before_is_named_by_its_record(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.string())])
    good, bad = (pa.record_batch([["x", text]], schema=schema) for text in ("y", "a\tb"))
    with pytest.raises(FormatError) as error, open_table(tmp_path / "t.tsv", schema, metadata={}) as table:
        for rows in list(map(table.encoded, (good, good, bad))):
            table.write(rows)
    assert error.value.record == 5


def test_a_comma_inside_a_list_item_is_named(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": ["1", "2"], "b": [["x"], ["y,z"]]})
    with pytest.raises(FormatError) as caught:
        written(tmp_path / "a.tsv", batch)
    assert (caught.value.record, caught.value.column) == (1, "b")


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([("x", pa.int8())]),
        pa.binary(),
        pa.list_(pa.list_(pa.int8())),
        pa.map_(pa.string(), pa.int8()),
    ],
    ids=str,
)
def test_types_without_a_text_form_are_refused_at_once(tmp_path: Path, kind: pa.DataType) -> None:
    with pytest.raises(Unsupported, match=r"'b'.*write Parquet instead"):
        open_table(tmp_path / "a.tsv", pa.schema([("a", pa.string()), ("b", kind)]), metadata={})
    assert names(tmp_path) == []


def test_a_column_name_with_a_tab_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="names without tab"):
        open_table(tmp_path / "a.tsv", pa.schema([("a\tb", pa.string())]), metadata={})


@pytest.mark.parametrize("name", ["a.csv", "a", "a.parquet.gz", "tsv"])
def test_other_suffixes_are_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"\.parquet, \.tsv, \.tsv\.gz, \.tsv\.zst"):
        open_table(tmp_path / name, BATCH.schema, metadata={})


@pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
class TestFailures:
    def test_directory(self, tmp_path: Path, suffix: str) -> None:
        (tmp_path / f"a{suffix}").mkdir()
        with pytest.raises(InvalidInput, match="is a directory"):
            open_table(tmp_path / f"a{suffix}", BATCH.schema, metadata={})

    def test_missing_folder(self, tmp_path: Path, suffix: str) -> None:
        with pytest.raises(InvalidInput, match="does not exist"):
            open_table(tmp_path / "b" / f"a{suffix}", BATCH.schema, metadata={})

    def test_output_is_an_input(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"a{suffix}"
        path.write_bytes(b"precious")
        (tmp_path / "link").symlink_to(path)
        with pytest.raises(InvalidInput, match="also an input"):
            open_table(path, BATCH.schema, metadata={}, inputs=["other", tmp_path / "link"])
        assert path.read_bytes() == b"precious"

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_an_exception_leaves_the_older_table(
        self, tmp_path: Path, suffix: str, error: type[BaseException]
    ) -> None:
        path = tmp_path / f"a{suffix}"
        path.write_bytes(b"old")
        with pytest.raises(error), open_table(path, BATCH.schema, metadata={}) as table:
            table.write(BATCH)
            raise error
        assert names(tmp_path) == [path.name]
        assert path.read_bytes() == b"old"

    def test_other_columns(self, tmp_path: Path, suffix: str) -> None:
        with (
            pytest.raises(InvalidInput, match="batch: found the columns x int64"),
            open_table(tmp_path / f"a{suffix}", BATCH.schema, metadata={}) as table,
        ):
            table.write(pa.record_batch({"x": [1]}))
        assert names(tmp_path) == []

    @pytest.mark.parametrize("room", often(1, [10, 50_000, 0, 400_000]))
    def test_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, room: int) -> None:
        path = tmp_path / f"a{suffix}"
        path.write_bytes(b"old")
        small_disk(monkeypatch, room)
        words = many_words()
        with pytest.raises(FormatError) as caught, open_table(path, words.schema, metadata={}) as table:
            table.write(words)
        assert caught.value.path == str(path)
        assert caught.value.found == "no space left on the device"
        assert "free some space" in str(caught.value)
        assert names(tmp_path) == [path.name]
        assert path.read_bytes() == b"old"


@functools.cache
def many_words() -> pa.RecordBatch:
    """A column of a million words that compress badly."""
    return pa.record_batch({"a": [f"{i * 7919 % 1_000_003:x}" for i in range(1_000_000)]})


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
