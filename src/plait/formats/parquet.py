"""Read Parquet in bounded memory, dictionary columns decoded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from plait.errors import FormatError

__all__ = ["ParquetInput"]

_COLUMN_BUFFER_BYTES = 1 << 20
_BATCH_ROWS = 1 << 14


class ParquetInput:
    """One Parquet file.

    Columns keep their types, save that dictionary columns become plain ones: a dictionary is a way of
    storing, and it differs from file to file.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns.
    bytes_read : int
        Share of the file read in the iteration under way, by rows, in bytes.
    blank_lines : int
        Always 0; there for all kinds of file to be read alike.

    Raises
    ------
    FormatError
        If the file is damaged or has two columns of one name.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.bytes_read = 0
        self.blank_lines = 0
        with self._open() as file:
            stored = file.schema_arrow
        repeated = sorted({name for name in stored.names if stored.names.count(name) > 1})
        if repeated:
            found = f"column name {', '.join(map(repr, repeated))} more than once"
            raise FormatError(self.path, found=found, expected="every column name once")
        self.schema = pa.schema([pa.field(field.name, _plain_type(field.type)) for field in stored])

    def batches(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """Read the rows in order.

        Parameters
        ----------
        max_rows
            Greatest number of rows in a batch.

        Yields
        ------
        pyarrow.RecordBatch
            Rows with the columns of `schema`.

        Raises
        ------
        FormatError
            If the file is damaged.
        """
        size = os.stat(self.path).st_size
        self.bytes_read = 0
        with self._open() as file:
            rows_before, rows_in_all = 0, file.metadata.num_rows
            # Older Arrow releases stumble over a file without row groups.
            for batch in file.iter_batches(batch_size=max_rows) if rows_in_all else ():
                rows_before += batch.num_rows
                self.bytes_read = size * rows_before // rows_in_all
                yield batch.cast(self.schema)
            self.bytes_read = size

    @property
    def row_count(self) -> int:
        """Number of rows, as the file says it.

        Raises
        ------
        FormatError
            If the file is damaged.
        """
        with self._open() as file:
            return int(file.metadata.num_rows)

    def rows(self, first: int, end: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some rows; row groups that hold none of them are passed over.

        Parameters
        ----------
        first, end
            The first row, from 0, and the end, not included.
        columns
            Names of the columns.

        Yields
        ------
        pyarrow.RecordBatch
            Rows with these columns, in their order.

        Raises
        ------
        FormatError
            If the file is damaged.
        """
        schema = pa.schema([self.schema.field(name) for name in columns])
        with self._open() as file:
            groups, before = _row_groups(file.metadata, first, end)
            # Rows are decoded from the start of a row group; batches that end before the first are dropped.
            batches = file.iter_batches(_BATCH_ROWS, groups, list(columns)) if groups else ()
            for batch in batches:
                start, stop = max(first - before, 0), min(end - before, batch.num_rows)
                before += batch.num_rows
                if start < stop:
                    yield batch.slice(start, stop - start).select(schema.names).cast(schema)
                if before >= end:
                    break

    @contextmanager
    def _open(self) -> Iterator[arrow_parquet.ParquetFile]:
        try:
            # Without pre-buffering, and with a read buffer, a row group is not held whole in memory.
            with arrow_parquet.ParquetFile(
                self.path,
                pre_buffer=False,
                buffer_size=_COLUMN_BUFFER_BYTES,
                page_checksum_verification=True,
            ) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            raise FormatError(
                self.path,
                found=f"damaged or unreadable Parquet ({error})",
                expected="a complete Parquet file",
                hint="copy or write the file again",
            ) from error


def _row_groups(metadata: arrow_parquet.FileMetaData, first: int, end: int) -> tuple[list[int], int]:
    """Numbers of the row groups with some of the rows, and the number of rows before them."""
    groups: list[int] = []
    start = before = 0
    for number in range(metadata.num_row_groups):
        stop = start + metadata.row_group(number).num_rows
        if stop <= first:
            before = stop
        elif start < end:
            groups.append(number)
        start = stop
    return groups, before


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
