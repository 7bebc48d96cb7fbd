"""Read tables of rearrangements as a stream of equal blocks.

Examples
--------
>>> from plait.formats.rearrangements import open_rearrangements
>>> reader = open_rearrangements(["a.tsv.gz", "b.parquet"], block_rows=65536)  # doctest: +SKIP
>>> for block in reader:  # doctest: +SKIP
...     print(block.num_rows, block.column(reader.roles["junction"])[0])
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import pyarrow as pa
import pyarrow.types as kinds

from plait.errors import FormatError, InvalidInput
from plait.formats.compression import FileKind, identify, sniff, unchanged
from plait.formats.delimited import DelimitedFile
from plait.formats.layouts import REQUIRED_ROLES, Layout, assign_roles, layout_named
from plait.formats.parquet import LARGEST_ROW, MOST_BYTES, ParquetInput, batch_bytes, read_ahead, reblock
from plait.types import Closing


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds text, in any of Arrow's ways: string, large string and string view."""
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def union_schema(files: Sequence[tuple[str | os.PathLike[str], pa.Schema]]) -> pa.Schema:
    """Columns of all files (path and schema of each) in the order of first appearance.

    A column that is text in one file and whole numbers in another becomes text, which loses nothing. Whole
    numbers of several widths become int64, floating ones float64. Every column may be null, as a file may
    lack it. FormatError if the files hold a column in types that cannot be joined without loss.
    """
    chosen: dict[str, pa.DataType] = {}
    first: dict[str, str | os.PathLike[str]] = {}
    for path, schema in files:
        for field in schema:
            if field.name not in chosen:
                chosen[field.name], first[field.name] = field.type, path
                continue
            joined = _joined(chosen[field.name], field.type)
            if joined is None:
                raise FormatError(
                    path,
                    column=field.name,
                    found=f"values of type {field.type}",
                    expected=f"{chosen[field.name]}, as in {first[field.name]}",
                    hint="convert one of the files, or run them separately",
                )
            chosen[field.name] = joined
    return pa.schema(list(chosen.items()))


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch the columns and types of a `union_schema`; columns that it lacks become null."""
    if batch.schema.equals(schema):
        return batch
    arrays = []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(batch.column(place).cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _joined(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Type that holds every value of both unchanged, or None."""
    if a.equals(b) or kinds.is_null(b):
        return a
    if kinds.is_null(a):
        return b
    if all(is_text(kind) or kinds.is_integer(kind) for kind in (a, b)):
        if is_text(a) or is_text(b):
            return pa.string()
        return None if kinds.is_uint64(a) or kinds.is_uint64(b) else pa.int64()
    if all(kinds.is_float32(kind) or kinds.is_float64(kind) for kind in (a, b)):
        return pa.float64()
    return None


@dataclass(frozen=True, slots=True)
class RowRange:
    """Consecutive rows of files that follow one another.

    `parts` are absolute path, first row and end (not included) of what belongs to it of each file; `schema`
    has the columns to read, with the types that they are to have.
    """

    parts: tuple[tuple[str, int, int], ...]
    schema: pa.Schema

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(end - first for _, first, end in self.parts)

    @property
    def name(self) -> str:
        """What they are called in messages: records, from 0, of files."""
        return " and ".join(named_records(path, first, end) for path, first, end in self.parts)

    def read(self) -> pa.RecordBatch:
        """Read them.

        FormatError if a file is damaged, or not there, or has fewer rows than another process has found in
        it.
        """
        found = []
        for path, first, end in self.parts:
            file = ParquetInput(path)
            names = [name for name in self.schema.names if name in file.schema.names]
            found += [conform(batch, self.schema) for batch in file.rows(first, end, names)]
        if sum(batch.num_rows for batch in found) != self.rows:
            raise FormatError(
                self.parts[0][0],
                found=f"fewer rows than {self.name}",
                expected="one file under this path on all machines, which does not change while it is read",
            )
        return pa.concat_batches(found) if found else pa.RecordBatch.from_pylist([], self.schema)


def named_records(path: object, first: int, end: int) -> str:
    """What rows `first` (from 0) to `end` (not included) of a file are called in messages."""
    return f"records {first} to {end - 1} of {str(path)!r}"


def row_ranges(files: Sequence[tuple[str, int]], rows: int, schema: pa.Schema) -> Iterator[RowRange]:
    """Cut files (absolute path and number of rows) into ranges of `rows` rows, at the end what is left.

    They are the same rows as the blocks of a reader of these files; `schema` has the columns to read.
    """
    held: list[tuple[str, int, int]] = []
    room = rows
    for path, end in files:
        first = 0
        while first < end:
            taken = min(room, end - first)
            held.append((path, first, first + taken))
            first += taken
            room -= taken
            if not room:
                yield RowRange(tuple(held), schema)
                held, room = [], rows
    if held:
        yield RowRange(tuple(held), schema)


#: Rows at the start of each file from which the width of its rows is guessed.
_SAMPLED_ROWS = 1000


class _InputFile(Protocol):
    path: str | os.PathLike[str]
    schema: pa.Schema
    bytes_read: int
    blank_lines: int

    def batches(self, max_rows: int) -> Iterator[pa.RecordBatch]: ...


def open_rearrangements(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    layout: str = "airr",
    block_rows: int,
    block_bytes: int = MOST_BYTES,
) -> RearrangementReader:
    """Open one or more tables of rearrangements; their headers are read, their rows are not.

    They are tab-separated text, plain, gzip or zstd, or Parquet, told apart by content. The rows of several
    files follow one another, the columns are those of all files, null where a file has none. Cells of
    tab-separated text stay text exactly as written; an empty cell is an empty string, and nothing is taken
    for a null. Parquet columns keep their types, with dictionaries decoded. A file with a header and no rows
    is a table of no rows.

    `layout` is the name of the column layout, see `plait.formats.layouts.LAYOUTS`; a block ends after
    `block_rows` rows, and after `block_bytes` bytes, too. InvalidInput if `paths` is empty, a file is named
    twice, the layout unknown or `block_rows` less than 1; FormatError if a file is missing, empty, not a
    table, or lacks a column that the layout requires.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise InvalidInput("paths", found="no input file", expected="at least one")
    if block_rows < 1:
        raise InvalidInput("block_rows", found=block_rows, expected="at least 1")
    return RearrangementReader(
        given, layout=layout_named(layout), block_rows=block_rows, block_bytes=block_bytes
    )


class RearrangementReader(Closing):
    """Rows of one or more files as blocks; made by `open_rearrangements`.

    Each iteration starts from the first row. The blocks depend only on the files, `block_rows`, which may be
    set anew before, and `block_bytes`, never on threads or on how the files are cut. The next block is read
    in another thread while the caller works on one; leaving the loop or `close` ends it. A file that changes
    meanwhile is an error.

    `schema` has the columns of all files in the order of first appearance; the text columns among the roles
    are strings. `roles` maps roles (``junction``, ``v_call``, ``j_call``; if present ``subject``,
    ``repertoire``, ``sequence_id``, ``count``) to column names. `identities` are the absolute path, size in
    bytes and modification time in ns of each file, to recognise the input again; `total_bytes` is their size
    on disk.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        layout: Layout,
        block_rows: int,
        block_bytes: int = MOST_BYTES,
    ) -> None:
        self.layout = layout
        self.block_rows = block_rows
        self._block_bytes = block_bytes
        self._statuses, self.identities = identify(paths)
        self._files: list[_InputFile] = []
        for path in paths:
            kind = sniff(path)
            self._files.append(
                ParquetInput(path)
                if kind is FileKind.PARQUET
                else DelimitedFile(path, kind, header=layout.header)
            )
        self.total_bytes = sum(size for _, size, _ in self.identities)
        self.roles = assign_roles(layout, [(file.path, file.schema.names) for file in self._files])
        self.schema = self._role_types(union_schema([(file.path, file.schema) for file in self._files]))
        self._running: Generator[pa.RecordBatch, None, None] | None = None
        #: Number of the first row of each file that has been begun.
        self._starts = {0: 0}

    @property
    def blank_lines(self) -> int:
        """Blank lines passed over so far in this iteration; they hold no row."""
        return sum(file.blank_lines for file in self._files)

    def bytes_read(self) -> int:
        """Bytes read from disk so far in this iteration, out of `total_bytes`."""
        return sum(file.bytes_read for file in self._files)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.close()
        for file in self._files:
            file.bytes_read = file.blank_lines = 0
        self._starts = {0: 0}
        self._running = read_ahead(reblock(self._rows(), self.block_rows, self._block_bytes))
        return self._running

    def numbered(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Blocks, each behind the number of its first row in all files together."""
        first = 0
        for block in self:
            yield first, block
            first += block.num_rows

    def sampled_row_bytes(self) -> int:
        """Bytes of a row at the start of a file, the most among the files: a guess of what others take."""
        widest = 0
        for number, file in enumerate(self._files):
            schema = pa.schema([self.schema.field(name) for name in file.schema.names])
            rows = self._rows_of(number, _SAMPLED_ROWS, schema)
            with closing(reblock(rows, _SAMPLED_ROWS, MOST_BYTES)) as blocks:
                found = (int(block.nbytes) // block.num_rows for block in islice(blocks, 1))
                widest = max([widest, *found])
        return widest

    def ranges(self, columns: Sequence[str]) -> Iterator[RowRange] | None:
        """The blocks as ranges of rows that can be read in other processes, with these columns in this order.

        None if a file is not Parquet, or so many of its rows have too many bytes.
        """
        files = [file for file in self._files if isinstance(file, ParquetInput)]
        if len(files) < len(self._files) or any(
            file.widest_row() * self.block_rows > self._block_bytes for file in files
        ):
            return None
        paths = [path for path, _, _ in self.identities]
        counts = [file.row_count for file in files]
        schema = pa.schema([self.schema.field(name) for name in columns])
        return row_ranges(list(zip(paths, counts, strict=True)), self.block_rows, schema)

    def check_unchanged(self) -> None:
        """Check that the files are still those that were opened, where other processes have read them.

        FormatError if one was changed or replaced.
        """
        for file, status in zip(self._files, self._statuses, strict=True):
            with unchanged(file.path, status):
                pass

    def named(self, first: int, rows: int) -> str:
        """What rows are called in messages: records, from 0, of files.

        `first` is the number of the first row in all files together; rows that have not been read are of the
        last file.
        """
        names = []
        for number, (path, _, _) in enumerate(self.identities):
            start = self._starts.get(number)
            following = self._starts.get(number + 1, first + rows)
            if start is None or following <= first or start >= first + rows:
                continue
            names.append(named_records(path, max(first, start) - start, min(first + rows, following) - start))
        return " and ".join(names)

    def close(self) -> None:
        """End an iteration under way; its thread and files are closed on return."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def _rows(self) -> Generator[pa.RecordBatch, None, None]:
        rows = 0
        for number in range(len(self._files)):
            self._starts[number] = rows
            for batch in self._rows_of(number, self.block_rows, self.schema):
                rows += batch.num_rows
                yield batch

    def _rows_of(self, number: int, most: int, schema: pa.Schema) -> Generator[pa.RecordBatch, None, None]:
        """Rows of one file in batches of at most `most`, with the columns of a schema."""
        file, rows = self._files[number], 0
        with unchanged(file.path, self._statuses[number]):
            for batch in file.batches(most):
                found = conform(batch, schema)
                self._check_rows(file.path, rows, found)
                rows += batch.num_rows
                yield found

    def _check_rows(self, path: object, first: int, batch: pa.RecordBatch) -> None:
        """Refuse rows that alone are more than a block may be."""
        most = min(LARGEST_ROW, self._block_bytes)
        if batch_bytes(batch) <= most:
            return
        for record in range(batch.num_rows):
            size = batch_bytes(batch.slice(record, 1))
            if size > most:
                raise FormatError(
                    path,
                    record=first + record,
                    found=f"a row of {size:,} bytes",
                    expected=f"rows of at most {most:,} bytes",
                    hint="leave the row out, or columns that are not needed",
                )

    def _role_types(self, schema: pa.Schema) -> pa.Schema:
        for role, name in self.roles.items():
            place = schema.get_field_index(name)
            kind = schema.field(place).type
            if is_text(kind) or (role in REQUIRED_ROLES and pa.types.is_null(kind)):
                schema = schema.set(place, pa.field(name, pa.string()))
            elif role in REQUIRED_ROLES:
                path = next(file.path for file in self._files if file.schema.field(name).type.equals(kind))
                raise FormatError(
                    path, column=name, found=f"values of type {kind}", expected=f"text ({role})"
                )
        return schema
