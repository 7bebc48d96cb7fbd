"""Write tables as Parquet or tab-separated text, whole or not at all.

Equal batches give equal bytes: nothing in the files depends on time, place or threads.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final

import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from plait.errors import InvalidInput, Unsupported
from plait.formats.atomic import AtomicFile, check_not_input, output_errors
from plait.formats.encoders import encoder
from plait.formats.text import check_columns, header, rows_as_text

__all__ = ["TABLE_SUFFIXES", "TableWriter", "open_table"]

TABLE_SUFFIXES: Final = (".parquet", ".tsv", ".tsv.gz", ".tsv.zst")

_ZSTD_LEVEL = 1


def open_table(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    *,
    metadata: Mapping[str, str],
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> TableWriter:
    """Start writing a table.

    Parameters
    ----------
    path
        The output; its suffix, one of `TABLE_SUFFIXES`, chooses the format.
    schema
        The columns. Metadata of the schema itself is left out.
    metadata
        Facts about the table. In Parquet they are key-value metadata of the schema; beside text they stand
        in ``PATH.json``, where values that are JSON objects or arrays are written as such.
    inputs
        Files that must not be overwritten.

    Returns
    -------
    TableWriter
        The writer, a context manager. A clean exit makes the file appear under its name; an exception
        removes it and leaves an older file of that name as it was.

    Raises
    ------
    InvalidInput
        If the suffix is unknown, the path is a directory, an input or in a missing folder, or another run
        is writing it.
    Unsupported
        If a column cannot be written as text.
    FormatError
        If the folder cannot be written, or a column name does not fit into a header line.
    """
    name = Path(path).name.lower()
    suffix = next((suffix for suffix in TABLE_SUFFIXES if name.endswith(suffix)), None)
    if suffix is None:
        raise InvalidInput(
            "output", found=repr(str(path)), expected=f"a name that ends in {', '.join(TABLE_SUFFIXES)}"
        )
    check_not_input(path, inputs)
    plain = schema.remove_metadata()
    if suffix == ".parquet":
        return _ParquetTable(path, plain.with_metadata(dict(metadata)))
    return _TextTable(path, plain, metadata, compression=suffix.removeprefix(".tsv").removeprefix("."))


class TableWriter(ABC):
    """A table being written; made by `open_table`.

    Parameters
    ----------
    path
        The output.
    schema
        The columns.

    Attributes
    ----------
    path : Path
        The output.
    schema : pyarrow.Schema
        The columns.
    rows : int
        Rows written so far.
    """

    def __init__(self, path: str | os.PathLike[str], schema: pa.Schema) -> None:
        self.path = Path(path)
        self.schema = schema
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Parameters
        ----------
        batch
            The rows, with the columns of `schema`; in Parquet each batch is one row group.

        Raises
        ------
        InvalidInput
            If the batch has other columns.
        FormatError
            If the disk is full, or a cell cannot be written as text.
        Unsupported
            If Parquet cannot hold the values; Arrow before 25 refuses a null fixed-size list, for example.
        """
        if not batch.schema.equals(self.schema):
            raise InvalidInput(
                "batch", found=f"the columns {_described(batch.schema)}", expected=_described(self.schema)
            )
        if batch.num_rows:
            with output_errors(self.path):
                self._write(batch)
            self.rows += batch.num_rows

    @abstractmethod
    def close(self) -> None:
        """Finish the file and make it appear under its name."""

    @abstractmethod
    def discard(self) -> None:
        """Remove the unfinished file; an older one of the same name stays as it was."""

    @abstractmethod
    def _write(self, batch: pa.RecordBatch) -> None: ...

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.discard()
            return
        try:
            self.close()
        except BaseException:
            self.discard()
            raise


class _ParquetTable(TableWriter):
    def __init__(self, path: str | os.PathLike[str], schema: pa.Schema) -> None:
        super().__init__(path, schema)
        self._file = AtomicFile(path)
        try:
            with output_errors(path):
                self._writer = arrow_parquet.ParquetWriter(
                    self._file.stream, schema, compression="zstd", compression_level=_ZSTD_LEVEL
                )
        except BaseException:
            self._file.discard()
            raise

    def _write(self, batch: pa.RecordBatch) -> None:
        try:
            self._writer.write_batch(batch, row_group_size=batch.num_rows)
        except pa.ArrowNotImplementedError as error:
            raise Unsupported(
                f"Parquet with the columns {_described(self.schema)}",
                why=f"{error}; a newer pyarrow may write it, or write text",
            ) from error

    def close(self) -> None:
        with output_errors(self.path):
            self._writer.close()
        self._file.commit()

    def discard(self) -> None:
        # The writer wants to end the file; whether that works no longer matters.
        with suppress(Exception):
            self._writer.close()
        self._file.discard()


class _TextTable(TableWriter):
    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        metadata: Mapping[str, str],
        *,
        compression: str,
    ) -> None:
        super().__init__(path, schema)
        check_columns(schema)
        first_line = header(path, schema)
        self._metadata = metadata
        with ExitStack() as stack:
            self._file = stack.enter_context(AtomicFile(path))
            self._beside = stack.enter_context(AtomicFile(f"{path}.json"))
            self._encoder = encoder(compression)
            with output_errors(path):
                self._file.stream.write(self._encoder.compress(first_line))
            stack.pop_all()

    def _write(self, batch: pa.RecordBatch) -> None:
        for lines in rows_as_text(self.path, batch, self.rows):
            self._file.stream.write(self._encoder.compress(lines))

    def close(self) -> None:
        with output_errors(self.path):
            self._file.stream.write(self._encoder.flush())
            self._beside.stream.write(self._facts())
        self._file.commit()
        self._beside.commit()

    def discard(self) -> None:
        self._file.discard()
        self._beside.discard()

    def _facts(self) -> bytes:
        facts = {
            "table": self.path.name,
            "rows": self.rows,
            "columns": [{"name": field.name, "type": str(field.type)} for field in self.schema],
            "metadata": {key: _structured(value) for key, value in self._metadata.items()},
        }
        return (json.dumps(facts, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")


def _structured(value: str) -> object:
    if value.startswith(("{", "[")):
        with suppress(ValueError):
            return json.loads(value)
    return value


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
