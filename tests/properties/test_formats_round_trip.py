"""What is written is read back the same, however the rows come in pieces."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from plait.formats.rearrangements import open_rearrangements, reblock
from plait.formats.tables import TABLE_SUFFIXES, open_table

NAMES = ("note", "junction", "v_call", "j_call")

cells = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r\0"), max_size=8)
rows = st.lists(st.tuples(*[cells | st.just("") | st.just("\ufeff")] * len(NAMES)), max_size=20)
cuts = st.lists(st.integers(0, 20), max_size=5)


def batch_of(table: Sequence[tuple[str, ...]]) -> pa.RecordBatch:
    columns = [[row[i] for row in table] for i in range(len(NAMES))]
    return pa.record_batch([pa.array(column, pa.string()) for column in columns], names=NAMES)


def pieces(batch: pa.RecordBatch, places: Sequence[int]) -> list[pa.RecordBatch]:
    bounds = [0, *sorted(min(place, batch.num_rows) for place in places), batch.num_rows]
    return [batch.slice(start, end - start) for start, end in pairwise(bounds)]


def write(path: Path, batches: Sequence[pa.RecordBatch]) -> bytes:
    with open_table(path, batches[0].schema, metadata={"a": "b"}) as table:
        for batch in batches:
            table.write(batch)
    return path.read_bytes()


@given(table=rows, suffix=st.sampled_from(TABLE_SUFFIXES), places=cuts, block_rows=st.integers(1, 25))
def test_a_written_table_is_read_back(
    table: list[tuple[str, ...]], suffix: str, places: list[int], block_rows: int
) -> None:
    batch = batch_of(table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        write(path, pieces(batch, places))
        blocks = list(open_rearrangements(path, block_rows=block_rows))
    assert [block.num_rows for block in blocks[:-1]] == [block_rows] * (len(blocks) - 1)
    assert pa.Table.from_batches(blocks, batch.schema).to_pydict() == batch.to_pydict()


@given(table=rows, crlf=st.booleans(), mark=st.booleans(), packed=st.booleans(), last=st.booleans())
def test_text_from_elsewhere_is_read_as_written(
    table: list[tuple[str, ...]], crlf: bool, mark: bool, packed: bool, last: bool
) -> None:
    end = "\r\n" if crlf else "\n"
    text = end.join("\t".join(row) for row in [NAMES, *table]) + end * last
    data = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(gzip.compress(data) if packed else data)
        reader = open_rearrangements(path, block_rows=7)
        found = pa.Table.from_batches(list(reader), reader.schema)
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == table


@given(table=rows, block_rows=st.integers(1, 25), one=cuts, other=cuts)
def test_blocks_do_not_depend_on_how_the_rows_came(
    table: list[tuple[str, ...]], block_rows: int, one: list[int], other: list[int]
) -> None:
    batch = batch_of(table)
    first = list(reblock(pieces(batch, one), block_rows))
    second = list(reblock(pieces(batch, other), block_rows))
    assert len(first) == len(second) == -(-len(table) // block_rows)
    assert all(a.equals(b) for a, b in zip(first, second, strict=True))
    assert pa.Table.from_batches(first, batch.schema).to_pydict() == batch.to_pydict()


@given(
    table=rows,
    numbers=st.lists(st.none() | st.integers(-9, 9), min_size=40, max_size=40),
    suffix=st.sampled_from(TABLE_SUFFIXES),
    block_rows=st.integers(1, 25),
    one=cuts,
    other=cuts,
)
def test_reblocked_rows_give_equal_files(
    table: list[tuple[str, ...]],
    numbers: list[int | None],
    suffix: str,
    block_rows: int,
    one: list[int],
    other: list[int],
) -> None:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(numbers[: 2 * len(table)], pa.int64()), 2)
    batch = batch_of(table).append_column("by_d", lists)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, places in (("a", one), ("b", other)):
            blocks = list(reblock(pieces(batch, places), block_rows)) or [batch]
            files.append(write(Path(folder) / f"{name}{suffix}", blocks))
    assert files[0] == files[1]


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=10))
def test_floating_numbers_are_written_so_that_they_read_back(values: list[float]) -> None:
    batch = pa.record_batch({"a": pa.array(values, pa.float64())})
    with tempfile.TemporaryDirectory() as folder:
        text = write(Path(folder) / "a.tsv", [batch]).decode()
    assert [float(line) for line in text.splitlines()[1:]] == values
