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
from plait.formats.parquet import ParquetInput
from plait.formats.row_groups import DIFFERENCES, MAGIC, PACKED, EncodedRows, RowGroups
from plait.formats.tables import ParquetRows, open_table

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


def with_lists(items: list[int | None], size: int, *, fast: bool = True) -> pa.RecordBatch:
    kind = pa.list_(pa.field("item", pa.int64()), size)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(items, pa.int64()), type=kind)
    schema = pa.schema(
        [
            pa.field("totals", kind, metadata=DIFFERENCES if fast else None),
            pa.field("n", pa.int64()),
            pa.field("others", kind, metadata=DIFFERENCES if fast else None),
        ]
    )
    return pa.record_batch([lists, pa.array(range(len(lists))), lists[::-1]], schema=schema)


def encoded(batches: list[pa.RecordBatch], *, checksums: bool = False) -> bytes:
    sink = pa.BufferOutputStream()
    rows = ParquetRows(sink, batches[0].schema, checksums=checksums)
    for batch in batches:
        rows.write(batch)
    rows.close()
    return bytes(sink.getvalue())


WIDTHS = st.integers(0, 63).flatmap(lambda bits: st.integers(-(2**bits), 2**bits - 1))


@given(
    st.integers(1, 70).flatmap(
        lambda size: st.tuples(
            st.just(size), st.lists(st.lists(WIDTHS | st.none(), min_size=size, max_size=size), min_size=1)
        )
    ),
    st.integers(1, 200),
    st.booleans(),
)
def test_lists_as_differences_are_read_like_those_of_arrow(
    given: tuple[int, list[list[int | None]]], times: int, checksums: bool
) -> None:
    size, lists = given
    items = [item for row in lists * times for item in row]
    batches = [with_lists(items, size), with_lists(items[-size:], size)]
    content = encoded(batches, checksums=checksums)
    with pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True) as file:
        found = file.read()
        found.validate(full=True)
        assert found.equals(pa.Table.from_batches(batches))
        plain = encoded([with_lists(items, size, fast=False)])
        with pq.ParquetFile(io.BytesIO(plain)) as arrow:
            ours, theirs = (one.metadata.row_group(0) for one in (file, arrow))
            assert ours.num_rows == theirs.num_rows
            for k, column in enumerate(map(ours.column, range(3))):
                other = theirs.column(k)
                names = ("path_in_schema", "num_values", "physical_type", "compression", "statistics")
                assert all(getattr(column, name) == getattr(other, name) for name in names)
                # Arrow's page sizes, too, count the headers of pages.
                assert file.metadata.row_group(0).total_byte_size == sum(
                    ours.column(i).total_uncompressed_size for i in range(3)
                )


def test_lists_as_differences_take_several_pages_and_other_programs_read_them(tmp_path: Path) -> None:
    items = [None if k % 977 == 0 else k * k % 1_000_003 for k in range(55 * 6000)]
    batch, path = with_lists(items, 55), tmp_path / "lists.parquet"
    with open_table(path, batch.schema, metadata={"a": "b"}) as table:
        ready = table.encoded(batch)
        table.write(ready)
        # What a run that is stopped keeps.
        assert pq.read_table(io.BytesIO(ready.file)).equals(pa.Table.from_batches([batch]))
    with pq.ParquetFile(path) as file:
        assert file.schema_arrow.metadata[b"a"] == b"b"
        assert file.metadata.row_group(0).column(0).encodings == ("DELTA_BINARY_PACKED", "RLE")
    assert pa.Table.from_batches(ParquetInput(path).batches(1000)).equals(pa.Table.from_batches([batch]))
    want = batch["others"].to_pylist()
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    assert [list(row) for row in polars.read_parquet(path)["others"].to_list()] == want
    assert [list(row) for (row,) in duckdb.sql(f"select others from '{path}'").fetchall()] == want


def test_lists_that_are_null_are_left_to_arrow() -> None:
    batch = with_lists([1, 2, 3, None], 2)
    gone = pa.array([[1, 2], None], batch.schema.field(0).type)
    batch = pa.record_batch([gone, batch["n"], batch["others"]], schema=batch.schema)
    found = pq.ParquetFile(io.BytesIO(encoded([batch])))
    assert found.read().equals(pa.Table.from_batches([batch]))
    kinds = [found.metadata.row_group(0).column(k).encodings for k in (0, 2)]
    assert ["DELTA_BINARY_PACKED" in kind for kind in kinds] == [False, True]


def test_damage_to_lists_as_differences_is_found(tmp_path: Path) -> None:
    content = bytearray(encoded([with_lists(list(range(1000, 1300)), 3)], checksums=True))
    column = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    content[column.data_page_offset + column.total_compressed_size - 3] ^= 8
    (tmp_path / "damaged.parquet").write_bytes(content)
    with pytest.raises(FormatError, match="checksum"):
        list(ParquetInput(tmp_path / "damaged.parquet").batches(100))


def test_packed_numbers_have_no_dictionary_and_other_programs_read_them(tmp_path: Path) -> None:
    rows = 3000
    columns = {
        "n": pa.array([None if k % 7 == 0 else k * k * (-1) ** k for k in range(rows)], pa.int64()),
        "n.list": pa.array([str(k % 9) for k in range(rows)]),
        "few": pa.array([k % 5 for k in range(rows)], pa.int32()),
        "lists": pa.array([[k, None, 3 * k] for k in range(rows)], pa.list_(pa.int64(), 3)),
        # Marked as well, for example because another program has changed the type.
        "text": pa.array([str(k % 9) for k in range(rows)]),
        "parts": pa.array([{"few": k % 3, "texts": ["a", str(k % 4)]} for k in range(rows)]),
    }
    marked = ("n", "few", "lists", "text")
    fields = [pa.field(k, c.type, metadata=PACKED if k in marked else None) for k, c in columns.items()]
    batch, path = pa.record_batch([*columns.values()], schema=pa.schema(fields)), tmp_path / "packed.parquet"
    with open_table(path, batch.schema, metadata={}) as table:
        table.write(batch)
        table.write(batch.slice(1, 5))
    with pq.ParquetFile(path) as file:
        assert file.read().equals(pa.Table.from_batches([batch, batch.slice(1, 5)]))
        assert not any(PACKED.items() & (field.metadata or {}).items() for field in file.schema_arrow)
        group = file.metadata.row_group(0)
        own = {group.column(k).path_in_schema: group.column(k).encodings for k in range(group.num_columns)}
    packed = {name for name, kinds in own.items() if "DELTA_BINARY_PACKED" in kinds}
    assert packed == {"n", "few", "lists.list.element"}
    assert packed == {name for name, kinds in own.items() if "RLE_DICTIONARY" not in kinds}
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    want = [*columns["n"].to_pylist(), *columns["n"].to_pylist()[1:6]]
    assert polars.read_parquet(path)["n"].to_list() == want
    assert [n for (n,) in duckdb.sql(f"select n from '{path}'").fetchall()] == want
