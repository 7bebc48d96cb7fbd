"""Write tables as Parquet or tab-separated text, whole or not at all.

Equal batches give equal bytes: nothing in the files depends on time, place or threads.
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from plait._version import __version__
from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.atomic import (
    AtomicFile,
    TextOutput,
    WholeOrNot,
    bad_output,
    check_different,
    check_not_input,
    check_output,
    encoder,
    output_errors,
)
from plait.formats.files import address_of
from plait.formats.layouts import is_text
from plait.formats.row_groups import DIFFERENCES, MAGIC, PACKED, EncodedRows, RowGroups

_PIECE_BYTES = 8 << 20
_TEXT = pa.large_string()
# Not by `pa.scalar`, which imports pandas where it is installed.
_EMPTY, _TAB, _LINE_END, _COMMA = pa.LargeStringArray.from_buffers(
    4, pa.py_buffer(np.array([0, 0, 1, 2, 3])), pa.py_buffer(b"\t\n,")
)


def check_columns(schema: pa.Schema) -> None:
    """Check that every column can be written as text.

    Unsupported if one is of a type that has no form in a cell (struct, map, binary, list of lists).
    """
    for field in schema:
        kind = field.type
        if _is_list(kind):
            kind = kind.value_type
        castable = not kinds.is_nested(kind) and not any(is_binary(kind) for is_binary in _BINARY)
        with suppress(pa.ArrowNotImplementedError):
            if castable and _text(pa.nulls(1, kind)):
                continue
        raise Unsupported(
            f"column {field.name!r} of type {field.type} in tab-separated text",
            why="it has no form as a cell; write Parquet instead",
        )


def header(path: object, schema: pa.Schema) -> bytes:
    """Header line, tab-separated, with its line end; FormatError if a name holds a tab or a line end."""
    for name in schema.names:
        if any(symbol in name for symbol in "\t\n\r\0"):
            raise FormatError(
                path, found=f"the column name {name!r}", expected="names without tab or line end"
            )
    return ("\t".join(schema.names) + "\n").encode("utf-8")


def rows_as_text(path: object, batch: pa.RecordBatch, first_record: int) -> Iterator[bytes]:
    """Rows as lines, some at a time, in order; `check_columns` has accepted their schema.

    Lists are joined by commas with nothing for a null item; a null cell and an empty list are empty; booleans
    are ``T`` and ``F``; floating numbers are the shortest text that reads back the same. Nothing is quoted.
    FormatError if a cell holds a tab or a line end, or an item of a list a comma; it names the record,
    counted from `first_record`.
    """
    step = max(1, _PIECE_BYTES * batch.num_rows // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, step):
        part = batch.slice(start, step)
        cells = [column if _is_plain(column.type) else _cells(column) for column in part.columns]
        lines = _unquoted(cells)
        if lines is None or b"\0" in lines:
            cells = [_cells(column) for column in part.columns]
            lines = _lines(cells)
            if not _is_clean(lines, part.num_rows, part.num_columns):
                raise _unclean_cell(path, part.schema.names, cells, first_record + start)
        for name, column, text in zip(part.schema.names, part.columns, cells, strict=True):
            if _is_list(column.type) and is_text(column.type.value_type):
                _check_list_items(path, name, column, text, first_record + start)
        yield lines


def _is_plain(kind: pa.DataType) -> bool:
    """Whether Arrow writes values of a type as `_text` does."""
    return bool(is_text(kind) or kinds.is_integer(kind) or kinds.is_float32(kind) or kinds.is_float64(kind))


def _unquoted(cells: list[pa.Array]) -> bytes | None:
    """Lines as Arrow writes them; None where a cell has something that it would have to quote."""
    import pyarrow.csv as arrow_csv

    rows, sink = pa.record_batch(cells, [str(k) for k in range(len(cells))]), pa.BufferOutputStream()
    options = arrow_csv.WriteOptions(
        include_header=False, delimiter="\t", quoting_style="none", batch_size=max(rows.num_rows, 1)
    )
    try:
        with arrow_csv.CSVWriter(sink, rows.schema, write_options=options) as writer:
            writer.write_batch(rows)
    except pa.ArrowInvalid:
        return None
    lines: bytes = sink.getvalue().to_pybytes()
    return lines


def _lines(cells: list[pa.Array]) -> bytes:
    ended = pc.binary_join_element_wise(cells[-1], _LINE_END, _EMPTY)
    rows = pc.binary_join_element_wise(*cells[:-1], ended, _TAB)
    # The values of a string array lie one behind the other: with the line ends in them they are the file.
    offsets = np.frombuffer(rows.buffers()[1], dtype=np.int64)
    first, last = int(offsets[rows.offset]), int(offsets[rows.offset + len(rows)])
    lines: bytes = rows.buffers()[2].slice(first, last - first).to_pybytes()
    return lines


def _is_clean(text: bytes, rows: int, columns: int) -> bool:
    """Whether all tabs and line ends are separators; counting them is cheaper than looking into cells."""
    return (
        text.count(b"\n") == rows
        and text.count(b"\t") == rows * (columns - 1)
        and b"\r" not in text
        and b"\0" not in text
    )


def _unclean_cell(path: object, names: list[str], cells: list[pa.Array], first_record: int) -> FormatError:
    found = [
        (pc.index(pc.match_substring_regex(column, "[\t\n\r\\x00]"), True).as_py(), name, column)
        for name, column in zip(names, cells, strict=True)
    ]
    row, name, column = min((item for item in found if item[0] >= 0), key=lambda item: item[0])
    return FormatError(
        path,
        record=first_record + row,
        column=name,
        found=f"the text {column[row].as_py()!r}",
        expected="cells without tab, line end or NUL",
        hint="write Parquet, or clean the column",
    )


def _check_list_items(path: object, name: str, column: pa.Array, cells: pa.Array, first_record: int) -> None:
    commas = pc.count_substring(cells, ",").to_numpy()
    items = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    bad = np.flatnonzero(commas > np.maximum(items - 1, 0))
    if len(bad):
        row = int(bad[0])
        raise FormatError(
            path,
            record=first_record + row,
            column=name,
            found=f"the list {column[row].as_py()!r}",
            expected="items without a comma",
            hint="write Parquet",
        )


def _cells(column: pa.Array) -> pa.Array:
    """Text of each value, of type large string, never null."""
    if not _is_list(column.type):
        return _text(column)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(column) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    # flatten() leaves out what lies under null lists, which have length 0 here.
    items = pa.ListArray.from_arrays(pa.array(offsets), _text(column.flatten()))
    return pc.binary_join(items, _COMMA)


def _text(values: pa.Array) -> pa.Array:
    kind = values.type
    if kinds.is_boolean(kind):
        texts = pc.if_else(values, pa.scalar("T", _TEXT), pa.scalar("F", _TEXT))
    elif kinds.is_null(kind):
        texts = pa.nulls(len(values), _TEXT)
    else:
        texts = values.cast(_TEXT)
        if kinds.is_decimal(kind) and pc.any(pc.match_substring(texts, "E")).as_py():
            plain = (None if value is None else format(value, "f") for value in values.to_pylist())
            texts = pa.array(plain, _TEXT)
    return pc.fill_null(texts, _EMPTY) if texts.null_count else texts


def _is_list(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


_BINARY: Final = (kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view, kinds.is_fixed_size_binary)
TABLE_SUFFIXES: Final = (".parquet", ".tsv", ".tsv.gz", ".tsv.zst")

_ZSTD_LEVEL = 1
#: Bytes of the dictionary of a column, which has none if it would take more: that costs time and room.
_DICTIONARY_BYTES = 1 << 15


class PartSettings(NamedTuple):
    """How the rows of a folder of parts are cut: by the values of a column, and after so many rows."""

    partition: str | None = None
    part_rows: int | None = None


#: Nothing is asked of parts.
ONE_FILE: Final = PartSettings()


def open_table(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    *,
    metadata: Mapping[str, str],
    inputs: Iterable[str | os.PathLike[str]] = (),
    parts: PartSettings = ONE_FILE,
) -> TableWriter:
    """Start writing a table, in the format that the suffix of `path`, one of `TABLE_SUFFIXES`, says.

    A `path` that ends in a slash is a folder of Parquet files, see `plait.formats.datasets`; `parts` says
    how they are cut.

    A clean exit of the writer, a context manager, makes the file appear under its name; an exception removes
    it and leaves an older file of that name as it was. `metadata` are facts about the table, in Parquet as
    key-value metadata of the schema, beside text in ``PATH.json``, where values that are JSON objects or
    arrays are written as such; metadata of the schema itself is left out. `inputs` must not be overwritten.

    InvalidInput if the suffix is unknown, the path is a directory, an input or in a missing folder, or
    another run is writing it; Unsupported if a column cannot be written as text; FormatError if the folder
    cannot be written, or a column name does not fit into a header line.
    """
    plain = schema.remove_metadata()
    if os.fspath(path).endswith("/"):
        from plait.formats.datasets import DatasetTable

        return DatasetTable(path, plain, metadata=metadata, inputs=inputs, settings=parts)
    check_one_file(path, parts)
    suffix = table_suffix(path)
    check_not_input(path, inputs)
    if suffix == ".parquet":
        return _ParquetTable(path, plain.with_metadata(dict(metadata)))
    return _TextTable(path, plain, metadata, compression=suffix.removeprefix(".tsv").removeprefix("."))


def check_one_file(path: str | os.PathLike[str], parts: PartSettings) -> None:
    """Check that nothing is asked of a single file that folders of parts have alone."""
    for option, value in parts._asdict().items():
        if value is not None:
            hint = f"write a folder: {os.fspath(path)}/"
            raise InvalidInput(option, found=repr(value), expected="a folder of parts with it", hint=hint)
    if address_of(path) is not None:
        hint = f"write a folder: {os.fspath(path)}/"
        raise bad_output(path, ", a file in a store", "a file of this machine, or a folder of parts", hint)


def facts_of(kind: str, inputs: Iterable[object], **facts: object) -> dict[str, str]:
    """Metadata of a table: which version of plait made it of which inputs, and other facts."""
    own = {"version": __version__, "inputs": [os.path.realpath(str(path)) for path in inputs], **facts}
    return {f"plait.{kind}": json.dumps(own, sort_keys=True, default=str)}


def check_tables(inputs: Iterable[str | os.PathLike[str]], *paths: str | os.PathLike[str] | None) -> None:
    """Check, before long work, that tables can be written; those that are not wanted are None."""
    check_different(*paths)
    for path in paths:
        if path is not None:
            table_suffix(path)
            check_output(path, inputs)


def table_suffix(path: str | os.PathLike[str]) -> str:
    """Which of `TABLE_SUFFIXES` a name ends in, in lower case, or a slash; InvalidInput if it is none."""
    if os.fspath(path).endswith("/"):
        return "/"
    name = Path(path).name.lower()
    suffix = next((suffix for suffix in TABLE_SUFFIXES if name.endswith(suffix)), None)
    if suffix is None:
        expected = f"a name that ends in {', '.join(TABLE_SUFFIXES)}, or in / for a folder of parts"
        raise bad_output(path, "", expected)
    return suffix


class EncodedText(NamedTuple):
    """So many rows as lines, in pieces."""

    rows: int
    lines: tuple[bytes, ...]


ReadyRows: TypeAlias = pa.RecordBatch | EncodedRows | EncodedText


class TableWriter(WholeOrNot):
    """A table being written; made by `open_table`.

    `rows` counts those written so far.
    """

    def __init__(self, path: str | os.PathLike[str], schema: pa.Schema) -> None:
        self.path = Path(path)
        self.schema = schema
        self.rows = 0

    def encoded(self, batch: pa.RecordBatch) -> ReadyRows:
        """What `write` takes as well as a batch, and is faster with; may be made in several threads.

        Errors are as of `write`, but for those of text, which `write` finds.
        """
        self._check(batch)
        return batch

    def write(self, rows: ReadyRows | pa.Table) -> None:
        """Append rows with the columns of `schema`; in Parquet each batch is one row group.

        InvalidInput if the batch has other columns; FormatError if the disk is full, or a cell cannot be
        written as text; Unsupported if Parquet cannot hold the values; Arrow before 25 refuses a null
        fixed-size list, for example.
        """
        if isinstance(rows, pa.Table):
            for batch in rows.to_batches():
                self.write(batch)
            return
        if isinstance(rows, pa.RecordBatch):
            self._check(rows)
        count = rows.num_rows if isinstance(rows, pa.RecordBatch) else rows.rows
        if count:
            with output_errors(self.path):
                self._write(rows)
            self.rows += count

    def _check(self, batch: pa.RecordBatch) -> None:
        if not batch.schema.equals(self.schema):
            raise InvalidInput(
                "batch", found=f"the columns {_described(batch.schema)}", expected=_described(self.schema)
            )

    @abstractmethod
    def _write(self, rows: Any) -> None: ...


class ParquetRows:
    """Encodes rows as Parquet, each batch as a row group; `checksums` show damage where it is read."""

    def __init__(self, sink: Any, schema: pa.Schema, *, checksums: bool = False) -> None:
        # How a field was written is not told by it.
        told = [one.remove_metadata() if one.metadata == PACKED else one for one in schema]
        self._sink, self._schema, self._checksums = sink, pa.schema(told, schema.metadata), checksums
        self._lists = {k: one.name for k, one in enumerate(schema) if one.metadata == DIFFERENCES}
        self._how: dict[str, Any] = {}
        self.empty = self.encoded(None)
        packed = [one.name for one in schema if one.metadata == PACKED and _of_numbers(one.type)]
        self._how = _packed(self.empty.file, [*packed, *map("{}.list.element".format, packed)])
        self._groups = RowGroups(self.empty)
        sink.write(MAGIC)

    def encoded(self, batch: pa.RecordBatch | None) -> EncodedRows:
        """Rows as a file of their own; Unsupported if Parquet cannot hold them."""
        import pyarrow.parquet as arrow_parquet

        sink, schema, rows, lists = pa.BufferOutputStream(), self._schema, 0, {}
        if batch is not None:
            rows = batch.num_rows
            # Lists that are null themselves are left to Arrow.
            lists = {k: (n, batch[n]) for k, n in self._lists.items() if not batch[n].null_count}
            if lists:
                batch = batch.drop_columns([name for name, _ in lists.values()])
                schema = batch.schema
        writer = arrow_parquet.ParquetWriter(
            sink,
            schema,
            compression="zstd",
            compression_level=_ZSTD_LEVEL,
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            write_page_checksum=self._checksums,
            **self._how,
        )
        try:
            if rows:
                writer.write_batch(batch, row_group_size=rows)
        except pa.ArrowNotImplementedError as error:
            raise Unsupported(
                f"Parquet with the columns {_described(self._schema)}",
                why=f"{error}; a newer pyarrow may write it, or write text",
            ) from error
        writer.close()
        found = EncodedRows.of(sink.getvalue(), rows)
        return found.with_lists(lists) if lists else found

    def write(self, rows: pa.RecordBatch | EncodedRows) -> None:
        """Append rows."""
        group = rows if isinstance(rows, EncodedRows) else self.encoded(rows)
        self._sink.write(self._groups.add(group))

    def close(self) -> None:
        """Write the footer."""
        self._sink.write(self._groups.end())


def _of_numbers(kind: pa.DataType) -> bool:
    return bool(kinds.is_integer(kind.value_type if _is_list(kind) else kind))


def _packed(empty: pa.Buffer, paths: Sequence[str]) -> dict[str, Any]:
    """How Arrow is to write files like an empty one, those columns, if there are any, as `PACKED`."""
    if not paths:
        return {}
    import pyarrow.parquet as arrow_parquet

    stored = arrow_parquet.ParquetFile(pa.BufferReader(empty)).schema
    others = {stored.column(k).path for k in range(len(stored))}.difference(paths)
    # Arrow packs only what has no dictionary.
    return {"use_dictionary": [*others], "column_encoding": dict.fromkeys(paths, "DELTA_BINARY_PACKED")}


class _ParquetTable(TableWriter):
    def __init__(self, path: str | os.PathLike[str], schema: pa.Schema) -> None:
        super().__init__(path, schema)
        self._file = AtomicFile(path)
        try:
            with output_errors(path):
                self._rows = ParquetRows(self._file.stream, schema)
        except BaseException:
            self._file.discard()
            raise

    def encoded(self, batch: pa.RecordBatch) -> EncodedRows:
        self._check(batch)
        with output_errors(self.path):
            found = self._rows.encoded(batch)
        # What a run that is resumed takes over.
        return found if found.file is not None else found.as_file(self._rows.empty)

    def _write(self, rows: pa.RecordBatch | EncodedRows) -> None:
        self._rows.write(rows)

    def close(self) -> None:
        with output_errors(self.path):
            self._rows.close()
        self._file.close()

    def discard(self) -> None:
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

    def encoded(self, batch: pa.RecordBatch) -> pa.RecordBatch | EncodedText:
        self._check(batch)
        # Which record an error is of is known where rows are written.
        with suppress(FormatError):
            return EncodedText(batch.num_rows, tuple(rows_as_text(self.path, batch, 0)))
        return batch

    def _write(self, rows: pa.RecordBatch | EncodedText) -> None:
        found = rows.lines if isinstance(rows, EncodedText) else rows_as_text(self.path, rows, self.rows)
        for lines in found:
            self._file.stream.write(self._encoder.compress(lines))

    def close(self) -> None:
        with output_errors(self.path):
            self._file.stream.write(self._encoder.flush())
            self._beside.stream.write(self._facts())
        self._file.close()
        self._beside.close()

    def discard(self) -> None:
        self._file.discard()
        self._beside.discard()

    def _facts(self) -> bytes:
        facts = {
            "table": self.path.name,
            "rows": self.rows,
            "columns": [{"name": field.name, "type": str(field.type)} for field in self.schema],
            "metadata": {key: structured(value) for key, value in self._metadata.items()},
        }
        return (json.dumps(facts, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")


def structured(value: str) -> object:
    """Metadata as it stands in JSON: objects and arrays as such, the rest as text."""
    if value.startswith(("{", "[")):
        with suppress(ValueError):
            return json.loads(value)
    return value


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def table_or_lines(
    path: str | os.PathLike[str] | None,
    schema: pa.Schema,
    *,
    metadata: Mapping[str, str],
    inputs: Iterable[str | os.PathLike[str]],
) -> TableWriter | PrintedTable:
    """`open_table`, or text on standard output where there is no path."""
    if path is None:
        return PrintedTable(TextOutput(None), schema)
    return open_table(path, schema, metadata=metadata, inputs=inputs)


class PrintedTable(WholeOrNot):
    """Tab-separated text on standard output, laid out as in a file."""

    def __init__(self, output: TextOutput, schema: pa.Schema) -> None:
        self._output = output
        self._records = 0
        output.write(header(output.path, schema))

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        for lines in rows_as_text(self._output.path, batch, self._records):
            self._output.write(lines)
        self._records += batch.num_rows

    def close(self) -> None:
        """Write what is left."""
        self._output.close()

    def discard(self) -> None:
        """Forget what is not written yet."""
        self._output.discard()
