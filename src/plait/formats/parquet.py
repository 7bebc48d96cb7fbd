"""Read Parquet in bounded memory, dictionary columns decoded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from plait.errors import FormatError
from plait.formats.parquet_pages import RowGroupWidths

__all__ = ["ParquetInput"]

_COLUMN_BUFFER_BYTES = 1 << 20
_BATCH_ROWS = 1 << 14
#: Bytes of a batch, at most.
_BATCH_BYTES = 16 << 20
#: Bytes of pages, one of each column, that Arrow decompresses as a whole.
_MOST_PAGES = 384 << 20


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
        self.bytes_read = 0
        with self._open() as file:
            size, rows_in_all = os.stat(self.path).st_size, file.metadata.num_rows
            for first, batch in self._batches(file, (0, rows_in_all), None, max_rows):
                self.bytes_read = size * (first + batch.num_rows) // rows_in_all
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
            # Rows are decoded from the start of a row group; batches that end before the first are dropped.
            for before, batch in self._batches(file, (first, end), list(columns), _BATCH_ROWS):
                start, stop = max(first - before, 0), min(end - before, batch.num_rows)
                if start < stop:
                    yield batch.slice(start, stop - start).select(schema.names).cast(schema)

    def widest_row(self) -> int:
        """Bytes of a row where rows have the most, on average over a row group, as the file says it.

        Raises
        ------
        FormatError
            If the file is damaged.
        """
        with self._open() as file:
            groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
            return max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)

    def _batches(
        self,
        file: arrow_parquet.ParquetFile,
        wanted: tuple[int, int],
        columns: list[str] | None,
        most: int,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of the row groups with some of the wanted rows, each behind the number of its first row."""
        first = 0
        for number in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            if rows and first < wanted[1] and first + rows > wanted[0]:
                widths = RowGroupWidths(self.path, file, number, columns)
                if widths.pages > _MOST_PAGES:
                    raise FormatError(
                        self.path,
                        record=first,
                        found=f"a row group with pages of {widths.pages:,} bytes together",
                        expected=f"pages that take at most {_MOST_PAGES:,} bytes, one of each column",
                        hint="write it again with smaller pages or row groups",
                    )
                at, batch_rows = first, int(max(1, min(most, _BATCH_BYTES // max(widths.row, 1))))
                for batch in file.iter_batches(batch_rows, [number], columns):
                    self._check_text(at, batch)
                    yield at, batch
                    at += batch.num_rows
                    if at >= wanted[1]:
                        return
            first += rows

    def _check_text(self, first: int, batch: pa.RecordBatch) -> None:
        """Refuse text that is not UTF-8, which nothing else in Arrow looks at."""
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            for row in range(batch.num_rows):
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    try:
                        # Of a slice of lists, all that they were cut from would be looked at.
                        pa.concat_arrays([column.slice(row, 1)]).validate(full=True)
                    except pa.ArrowInvalid:
                        raise FormatError(
                            self.path,
                            record=first + row,
                            column=name,
                            found=f"a damaged value ({error})",
                            expected="valid values, and text in UTF-8",
                            hint="write the file again",
                        ) from error
            raise

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
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise FormatError(
                self.path,
                found=f"damaged or unreadable Parquet ({error})",
                expected="a complete Parquet file",
                hint="copy or write the file again",
            ) from error


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
