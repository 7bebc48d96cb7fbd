"""Row groups that were encoded apart, beside what Arrow writes at once."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import FormatError, InvalidInput
from plait.formats.row_groups import MAGIC, EncodedRows, RowGroups
from plait.formats.tables import open_table

SCHEMA = pa.schema(
    {
        "name": pa.string(),
        "path_count_by_d": pa.list_(pa.int64(), 3),
        "share": pa.float64(),
        "wide": pa.decimal256(60, 0),
        "yes": pa.bool_(),
        "regions": pa.struct({"start": pa.int32(), "texts": pa.list_(pa.string())}),
    },
    metadata={"plait.provenance": '{"a": 1}'},
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.none() | st.text(max_size=200),
            "path_count_by_d": st.lists(st.none() | st.integers(-(2**62), 2**62), min_size=3, max_size=3),
            "share": st.none() | st.floats(allow_nan=False),
            "wide": st.none() | st.integers(0, 10**50),
            "yes": st.none() | st.booleans(),
            "regions": st.fixed_dictionaries(
                {"start": st.integers(-5, 5), "texts": st.none() | st.lists(st.text(max_size=3), max_size=3)}
            ),
        }
    ),
    min_size=1,
    max_size=6,
)


def by_arrow(batches: list[pa.RecordBatch], schema: pa.Schema = SCHEMA) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, compression="zstd", dictionary_pagesize_limit=1 << 12) as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=batch.num_rows)
    return sink.getvalue()


def apart(batches: list[pa.RecordBatch], schema: pa.Schema = SCHEMA) -> bytes:
    def encoded(some: list[pa.RecordBatch]) -> EncodedRows:
        return EncodedRows.of(pa.py_buffer(by_arrow(some, schema)), sum(batch.num_rows for batch in some))

    groups = RowGroups(encoded([]))
    pieces = [MAGIC, *(bytes(groups.add(encoded([batch]))) for batch in batches)]
    return b"".join([*pieces, groups.end()])


@given(st.lists(ROWS, max_size=4), st.sampled_from([1, 5, 20]))
def test_bytes_are_those_of_one_writer(groups: list[list[dict[str, object]]], times: int) -> None:
    batches = [pa.RecordBatch.from_pylist(rows, SCHEMA) for rows in groups] * times
    whole = apart(batches)
    assert whole == by_arrow(batches)
    assert (
        pq.read_table(io.BytesIO(whole)).to_batches() == pa.Table.from_batches(batches, SCHEMA).to_batches()
    )


@pytest.mark.slow
def test_many_columns_and_places_of_many_bytes() -> None:
    columns = {f"column {k}": [str(n * k) * 40 for n in range(3000)] for k in range(70)}
    batch = pa.record_batch(columns)
    schema = batch.schema
    assert apart([batch] * 18, schema) == by_arrow([batch] * 18, schema)


def test_rows_encoded_in_threads_are_written_in_order(tmp_path: Path) -> None:
    batches = [pa.record_batch({"n": range(100 * k, 100 * k + 1 + k)}) for k in range(9)]
    paths = [tmp_path / "apart.parquet", tmp_path / "plain.parquet"]
    with ThreadPoolExecutor(4) as pool, open_table(paths[0], batches[0].schema, metadata={}) as table:
        for rows in pool.map(table.encoded, batches):
            table.write(rows)
        assert table.rows == 45
    with open_table(paths[1], batches[0].schema, metadata={}) as table:
        for batch in batches:
            table.write(batch)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert pq.read_table(paths[0])["n"].to_pylist() == [
        n for batch in batches for n in batch["n"].to_pylist()
    ]


def test_other_columns_are_refused(tmp_path: Path) -> None:
    batch = pa.record_batch({"n": [1]})
    with (
        pytest.raises(InvalidInput, match="n int64"),
        open_table(tmp_path / "a.parquet", pa.schema({"m": pa.int64()}), metadata={}) as table,
    ):
        table.encoded(batch)
    assert not list(tmp_path.iterdir())


def test_footers_that_are_none() -> None:
    with pytest.raises(ValueError, match="without field 4"):
        RowGroups(EncodedRows(0, b"", b"", b"\0")).add(EncodedRows(0, b"", b"", b"\0"))
    # A map, type 11, stands in no footer.
    with pytest.raises(ValueError, match="type 11"):
        RowGroups(EncodedRows(0, b"", b"", b"\0")).add(EncodedRows(0, b"", b"", b"\x1b\0\0"))


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: pa.Buffer, rows: int) -> EncodedRows:
        raise OSError(28, "No space left on device")

    with (
        pytest.raises(FormatError, match="no space"),
        open_table(tmp_path / "a.parquet", pa.schema({"n": pa.int64()}), metadata={}) as table,
    ):
        monkeypatch.setattr(EncodedRows, "of", full)
        table.write(pa.record_batch({"n": [1]}))
    assert not list(tmp_path.iterdir())
