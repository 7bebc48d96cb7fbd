"""Read text with columns, and tables of rearrangements as streams of equal blocks, read ahead.

A layout says under which column names a kind of export keeps the values plait needs. It is recognised by the
header or chosen by name; see `plait.formats.layouts`. Whatever the tables are, blocks have the columns of
AIRR.

Examples
--------
>>> from plait.formats.rearrangements import open_rearrangements
>>> reader = open_rearrangements(["a.tsv.gz", "b.parquet"], block_rows=65536)  # doctest: +SKIP
>>> for block in reader:  # doctest: +SKIP
...     print(block.num_rows, block.column(reader.roles["junction"])[0])
"""

from __future__ import annotations

import csv
import functools
import logging
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.types as kinds

from plait.errors import FormatError, InvalidInput
from plait.formats.datasets import parts_of
from plait.formats.files import (
    IMGT_TABLE,
    ByteSource,
    Closing,
    FileKind,
    check_readable,
    foreign_content,
    identify,
    read_ahead,
    sniff,
    unchanged,
)
from plait.formats.layouts import (
    AIRR,
    AUTO,
    LAYOUTS,
    REQUIRED_ROLES,
    ConvertedFile,
    InputFile,
    Layout,
    LayoutChoice,
    check_layout,
    is_text,
    layout_of,
)
from plait.formats.parquet import ParquetInput
from plait.formats.sheets import SampleSheet, file_names

_LOG: Final = logging.getLogger(__name__)
_PIECE_BYTES = 4 << 20
_HEADER_PIECE_BYTES = 64 << 10
_HEAD_BYTES = 16
_MOST_COLUMNS = 10_000
_BOM = b"\xef\xbb\xbf"
#: Bytes that a row may have.
LARGEST_ROW: Final = 16 << 20


class DelimitedFile:
    """One file of text with columns, plain, gzip, zstd, or the table of an archive.

    It is cut into pieces at line ends here, and each piece is parsed by Arrow on its own. So a line may be of
    any length, the pieces do not depend on threads, and the number of every line is known.

    Every cell is text, exactly as written: nothing is taken for a null or a number. The separator is the tab
    if the header has one, else the comma or semicolon. Quotes belong to the format where the separator is no
    tab or every name of the header is quoted; else they are ordinary characters. Lines end in LF or CRLF; a
    leading byte order mark and lines before the header that begin with ``# `` or ``##`` are dropped. Blank
    lines hold no row; they are passed over and counted.

    `header` names the columns where the text has no header line, which is separated by tabs; columns beyond
    are called ``column_5`` and so on. In `ragged` text, cells at the end of a line may be left out.
    `bytes_read`, from disk, and `blank_lines` are those of the iteration under way. FormatError if there is
    no header, it is not UTF-8 text, or a column name stands in it twice.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        kind: FileKind,
        *,
        header: Sequence[str] = (),
        ragged: bool = False,
    ) -> None:
        self.path = path
        self.kind = kind
        self.bytes_read = 0
        self.blank_lines = 0
        self._ragged = ragged
        self._has_header = not header
        self._told = 0
        self._separator, self._quoted = "\t", False
        #: The header line, or the first row, as it is written.
        self.first_line = ""
        names = self._read_header()
        if header:
            numbered = [f"column_{k}" for k in range(1, len(names) + 1)]
            names = [*header, *numbered[len(header) :]][: len(names)]
        self.schema = pa.schema([(name, pa.string()) for name in names])
        self._parsing = arrow_csv.ParseOptions(
            delimiter=self._separator,
            quote_char='"' if self._quoted else False,
            double_quote=self._quoted,
            escape_char=False,
            newlines_in_values=False,
            ignore_empty_lines=True,
        )
        self._convert = arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in self.schema.names},
            strings_can_be_null=False,
            check_utf8=True,
        )

    def batches(self, max_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, a few MiB at a time, with those `columns` that are given.

        `max_rows` is not used, as pieces are measured in bytes.
        FormatError at the first line that is not a row: wrong number of columns, not UTF-8, binary, cut off.
        """
        self.bytes_read = 0
        self.blank_lines = 0
        wanted = self.schema.names if columns is None else columns
        self._convert.include_columns = [name for name in self.schema.names if name in wanted]
        skipped = self._told + self._has_header
        with ByteSource(self.path, self.kind) as source:
            for line, piece in self._pieces(source, _PIECE_BYTES):
                self.bytes_read = source.bytes_read
                start = 0
                if line == 1:
                    for _ in range(skipped):
                        start = piece.index(b"\n", start) + 1
                    line += skipped
                yield from self._parse(line, piece[start:])
            self.bytes_read = source.bytes_read

    def _read_header(self) -> list[str]:
        with ByteSource(self.path, self.kind) as source:
            head = self._read(source, _HEAD_BYTES, 1)
        if not head:
            raise FormatError(self.path, found="no text at all", expected="a header line and rows")
        foreign = foreign_content(self.path, head)
        if foreign:
            raise foreign
        with ByteSource(self.path, self.kind) as source:
            _, piece = next(self._pieces(source, _HEADER_PIECE_BYTES))
        lines = piece.split(b"\n")
        while (
            self._has_header and lines[self._told].startswith((b"# ", b"##")) and len(lines) > self._told + 2
        ):
            self._told += 1
        number, line = self._told + 1, lines[self._told]
        if not line.strip():
            expected = "the column names" if self._has_header else "the first row"
            raise FormatError(self.path, line=number, found="a blank line", expected=expected)
        self.first_line = self._decode(number, line)
        if self._has_header:
            self._separator = next((mark for mark in "\t,;" if mark in self.first_line), "\t")
            plain = self.first_line.split(self._separator)
            self._quoted = self._separator != "\t" or all(name[:1] + name[-1:] == '""' for name in plain)
        names = self._cells(self.first_line)
        if len(names) > _MOST_COLUMNS:
            found, expected = f"{len(names):,} columns", f"at most {_MOST_COLUMNS:,}"
            raise FormatError(self.path, line=number, found=found, expected=expected)
        repeated = sorted(name for name, times in Counter(names).items() if times > 1)
        if repeated and self._has_header:
            found = f"column name {', '.join(map(repr, repeated))} more than once"
            raise FormatError(self.path, line=number, found=found, expected="every column name once")
        return names

    def _cells(self, line: str) -> list[str]:
        if not self._quoted:
            return line.split(self._separator)
        try:
            return next(csv.reader([line], delimiter=self._separator))
        except csv.Error as error:
            raise FormatError(
                self.path, found=f"a line that is no CSV ({error})", expected="cells"
            ) from error

    def _pieces(self, source: ByteSource, size: int) -> Iterator[tuple[int, bytes]]:
        """Whole lines with the number of the first, line ends made LF and the byte order mark removed."""
        line = 1
        held: list[bytes] = []
        while data := self._read(source, size, line):
            if b"\0" in data:
                raise FormatError(
                    self.path,
                    line=line + data.count(b"\n", 0, data.index(b"\0")),
                    found="a NUL byte: this is binary data",
                    expected="tab-separated text, gzip or zstd of it, or Parquet",
                )
            cut = data.rfind(b"\n") + 1
            if cut == 0:
                held.append(data)
                self._check_line(line, sum(map(len, held)))
                continue
            self._check_line(line, sum(map(len, held)) + data.index(b"\n"))
            piece = b"".join([*held, data[:cut]])
            held = [data[cut:]]
            yield line, self._plain_line_ends(line, piece)
            line += piece.count(b"\n")
        rest = b"".join(held)
        if rest:
            yield line, self._plain_line_ends(line, rest + b"\n")

    def _check_line(self, line: int, size: int) -> None:
        if size > LARGEST_ROW:
            found = f"a line of {size:,} bytes or more"
            expected = f"rows of at most {LARGEST_ROW:,} bytes"
            raise FormatError(self.path, line=line, found=found, expected=expected)

    def _read(self, source: ByteSource, size: int, line: int) -> bytes:
        try:
            return source.read(size)
        except FormatError as error:
            raise FormatError(
                self.path, line=line, found=error.found, expected=error.expected, hint=error.hint
            ) from error

    def _plain_line_ends(self, line: int, piece: bytes) -> bytes:
        if line == 1 and piece.startswith(_BOM):
            piece = piece[len(_BOM) :]
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n")
            if b"\r" in piece:
                raise FormatError(
                    self.path,
                    line=line + piece.count(b"\n", 0, piece.index(b"\r")),
                    found="a carriage return inside the line",
                    expected="lines that end in LF or CRLF",
                    hint="convert the line ends of the file",
                )
        return piece

    def _parse(self, line: int, piece: bytes) -> Iterator[pa.RecordBatch]:
        lines = piece.count(b"\n")
        if lines == 0:
            return
        # Arrow drops a byte order mark at the start of whatever it is given; here it would be cell content.
        text = b"\n" + piece if piece.startswith(_BOM) else piece
        try:
            table = self._table(text)
        except pa.ArrowInvalid as error:
            if not self._ragged:
                self._raise_bad_line(line, piece, error)
            try:
                table = self._table(self._filled(text))
            except pa.ArrowInvalid as still:
                self._raise_bad_line(line, piece, still)
        self.blank_lines += lines - table.num_rows
        yield from table.to_batches()

    def _table(self, text: bytes) -> pa.Table:
        names = self.schema.names
        read = arrow_csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False)
        return arrow_csv.read_csv(
            pa.BufferReader(text),
            read_options=read,
            parse_options=self._parsing,
            convert_options=self._convert,
        )

    def _filled(self, piece: bytes) -> bytes:
        """Lines with as many tabs as the header has: cells left out are empty, empty ones beyond left out."""
        tabs = len(self.schema) - 1
        lines = piece.split(b"\n")
        return b"\n".join(
            line.rstrip(b"\t") + b"\t" * (tabs - line.rstrip(b"\t").count(b"\t")) if line else line
            for line in lines
        )

    def _raise_bad_line(self, line: int, piece: bytes, cause: pa.ArrowInvalid) -> NoReturn:
        expected = len(self.schema)
        like = "header" if self._has_header else "first line"
        separator = {"\t": "tab", ",": "comma", ";": "semicolon"}[self._separator]
        for number, raw in enumerate(piece.split(b"\n"), start=line):
            columns = len(self._cells(self._decode(number, raw)))
            if raw and columns != expected:
                raise FormatError(
                    self.path,
                    line=number,
                    found=f"{columns} column{'s' if columns > 1 else ''}",
                    expected=f"{expected} columns, as in the {like}",
                    hint=f"the line is cut off, or a cell holds a {separator} or a line end",
                ) from cause
        raise FormatError(
            self.path, line=line, found=f"text that Arrow cannot parse ({cause})", expected="rows"
        ) from cause

    def _decode(self, line: int, text: bytes) -> str:
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(
                self.path,
                line=line,
                found=f"the byte 0x{text[error.start]:02x}, which is not UTF-8",
                expected="UTF-8 text",
                hint="convert the file (for example: iconv -f latin1 -t utf-8), or it is not text at all",
            ) from None


#: Bytes of rows after which a block ends; more than one of so many rows takes unless rows grow on the way.
MOST_BYTES: Final = 32 << 20


def reblock(
    batches: Iterable[pa.RecordBatch], rows: int, most_bytes: int | None = None
) -> Generator[pa.RecordBatch, None, None]:
    """Cut a stream of batches of one schema anew into blocks of exactly `rows` rows.

    A block has fewer where they would have more than `most_bytes` bytes (a single row may) or are the last;
    it is never empty. InvalidInput if the text of a block does not fit one Arrow array (2 GiB a column).
    """
    held: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        rest = batch
        while rest.num_rows:
            part = rest.slice(0, rows - held_rows)
            if most_bytes is not None:
                part = _fitting(part, most_bytes - held_bytes, 0 if held else 1)
                held_bytes += batch_bytes(part)
            if part.num_rows:
                held.append(part)
            held_rows += part.num_rows
            rest = rest.slice(part.num_rows)
            if rest.num_rows or held_rows == rows:
                yield _one_block(held, rows)
                held, held_rows, held_bytes = [], 0, 0
    if held:
        yield _one_block(held, rows)


def batch_bytes(batch: pa.RecordBatch) -> int:
    """Bytes of the values of a batch, whatever it was cut from."""
    total = 0
    for column in batch.columns:
        # What Arrow says of views is the size of all that they may point to.
        view = pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type)
        total += column.cast(pa.large_binary()).nbytes if view else column.nbytes
    return total


def _fitting(batch: pa.RecordBatch, room: int, fewest: int) -> pa.RecordBatch:
    """As many of the first rows as have no more than so many bytes."""
    if batch_bytes(batch) <= room:
        return batch
    rows = bisect_right(range(1, batch.num_rows + 1), room, key=lambda n: batch_bytes(batch.slice(0, n)))
    return batch.slice(0, max(rows, fewest))


def _one_block(parts: list[pa.RecordBatch], rows: int) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    joined = pa.Table.from_batches(parts).combine_chunks().to_batches()
    if len(joined) != 1:
        raise InvalidInput(
            "block_rows", found=rows, expected="blocks with less than 2 GiB of text a column", hint="lower it"
        )
    return joined[0]


def union_schema(files: Sequence[tuple[str | os.PathLike[str], pa.Schema]]) -> pa.Schema:
    """Columns of all files (path and schema of each) in the order of first appearance.

    A column that is text in one file and whole numbers or truth values in another becomes text, which loses
    nothing; truth values are T and F there, as AIRR writes them. Whole numbers of several widths become
    int64, floating ones float64. Every column may be null, as a file may lack it. FormatError if the files
    hold a column in types that cannot be joined without loss.
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
            column = batch.column(place)
            to_text = kinds.is_boolean(column.type) and is_text(field.type)
            arrays.append(pc.if_else(column, "T", "F") if to_text else column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _joined(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Type that holds every value of both unchanged, or None."""
    if a.equals(b) or kinds.is_null(b):
        return a
    if kinds.is_null(a):
        return b
    if kinds.is_boolean(a) + kinds.is_boolean(b) + is_text(a) + is_text(b) == 2:
        return pa.string()
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
_COLUMN_ROWS = 1 << 16
#: Files of which rows are looked at, about, where there are many: the parts of a dataset are alike.
_SAMPLED_FILES = 32


#: AIRR fields that plait uses, by what they are to it.
_ROLES: Final = {
    **{name: name for name in (*REQUIRED_ROLES, "sequence_id")},
    **{"subject": "subject_id", "repertoire": "repertoire_id", "count": "duplicate_count"},
}


def roles_of(schema: pa.Schema, required: Sequence[Sequence[str]] = ()) -> dict[str, str]:
    """Column name of every role that a table with AIRR fields has, and the first of the names `required`."""
    found = {role: name for role, name in _ROLES.items() if name in schema.names}
    return found | {names[0]: next(name for name in names if name in schema.names) for names in required}


def open_rearrangements(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    layout: LayoutChoice = AUTO,
    block_rows: int,
    block_bytes: int = MOST_BYTES,
    named: str | None = None,
) -> RearrangementReader:
    """Open one or more tables of rearrangements; their headers are read, their rows are not.

    They are text with tabs or commas, plain, gzip or zstd, Parquet, or archives of IMGT/HighV-QUEST, told
    apart by content. The rows of several files follow one another, the columns are those of all files, null
    where a file has none. Cells of text stay text exactly as written; an empty cell is an empty string.
    Parquet columns keep their types, with dictionaries decoded. Tables that are not AIRR's have AIRR's
    columns behind their own. A file with a header and no rows is a table of no rows.

    `layout` is the name of one, see `plait.formats.layouts.LAYOUTS`, ``"auto"``, or a mapping of AIRR fields
    to column names. `paths` may be a `SampleSheet`: its columns are added to the rows of its files. With
    `named`, as subject_id, a file without this field has its own name there. A
    block ends after `block_rows` rows, and after `block_bytes` bytes, too. InvalidInput if `paths` is empty,
    a file is named twice, the layout unknown or `block_rows` less than 1; FormatError if a file is missing,
    empty, not a table, or lacks a column that the layout requires.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not len(given):
        raise InvalidInput("paths", found="no input file", expected="at least one")
    if block_rows < 1:
        raise InvalidInput("block_rows", found=block_rows, expected="at least 1")
    return RearrangementReader(
        given, layout=layout, block_rows=block_rows, block_bytes=block_bytes, named=named
    )


class _JoinedParts:
    """The files of a dataset as one."""

    def __init__(self, path: str | os.PathLike[str], parts: Sequence[str]) -> None:
        self.path = path
        self._files = [ParquetInput(part) for part in parts]
        self.schema = union_schema([(file.path, file.schema) for file in self._files])

    def batches(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in order, with the columns of `schema`."""
        for file in self._files:
            for batch in file.batches(max_rows):
                yield conform(batch, self.schema)


def read_columns(
    path: str | os.PathLike[str], names: Sequence[str], *, archives: bool = False, hint: str | None = None
) -> pa.Table:
    """A few columns of a table of any kind; archives as for `RearrangementReader`.

    FormatError if it is missing, damaged or no table, or, with a hint, lacks a column.
    """
    parts = parts_of(path)
    if parts is not None:
        file: ParquetInput | DelimitedFile | _JoinedParts = _JoinedParts(path, [part for part, _ in parts])
    else:
        check_readable(path)
        kind = sniff(path, archives=archives)
        file = ParquetInput(path) if kind is FileKind.PARQUET else DelimitedFile(path, kind)
    for name in names:
        if name not in file.schema.names:
            found = f"the columns {', '.join(file.schema.names[:20])}"
            raise FormatError(path, found=found, expected=f"a column {name!r}", hint=hint)
    wanted = pa.schema([file.schema.field(name) for name in dict.fromkeys(names)])
    return pa.Table.from_batches((own.select(wanted.names) for own in file.batches(_COLUMN_ROWS)), wanted)


def _opened(
    path: str | os.PathLike[str], layout: LayoutChoice | Layout, required: Sequence[tuple[str, ...]]
) -> tuple[InputFile, Layout]:
    """A file and its layout."""
    kind = sniff(path, archives=True)
    if kind is FileKind.PARQUET:
        table = ParquetInput(path)
        found = (
            layout
            if isinstance(layout, Layout)
            else layout_of(path, layout, table.schema.names, "", required)
        )
        return table, found
    if isinstance(layout, Layout):
        return DelimitedFile(path, kind, header=layout.header), layout
    named = layout if isinstance(layout, str) else layout.get("layout", AUTO)
    header = LAYOUTS[named].header if named != AUTO else ()
    file = DelimitedFile(path, kind, header=header)
    found = layout_of(path, layout, file.schema.names, file.first_line, required)
    if found.ragged or found.header != header:
        file = DelimitedFile(path, kind, header=found.header, ragged=found.ragged)
    return file, found


# Once for a file, however often it is opened.
@functools.cache
def _tell(path: str, description: str) -> None:
    _LOG.info("reading %s as %s", path, description)


class _Given(NamedTuple):
    """A file to read: what the user has named, of which it may be a part, and what is known of its rows."""

    path: str | os.PathLike[str]
    named: str | os.PathLike[str]
    facts: Mapping[str, str]


def _files_of(path: str | os.PathLike[str], facts: Mapping[str, str]) -> list[_Given]:
    """The files of a dataset, or the table of an unpacked archive of IMGT/HighV-QUEST; else the path."""
    if os.path.isfile(path):
        return [_Given(path, path, facts)]
    found = sorted(Path(path).glob(f"{IMGT_TABLE}*")) if os.path.isdir(path) else []
    if found:
        return [_Given(found[0], path, facts)]
    parts = parts_of(path)
    if parts is None:
        return [_Given(path, path, facts)]
    return [_Given(part, path, {**told, **facts}) for part, told in parts]


def _with_names(
    field: str, given: Sequence[_Given], opened: Sequence[tuple[InputFile, Layout]]
) -> list[_Given]:
    """The files, with the name of the file or dataset as a field where nothing says it."""
    unsaid = {
        os.fspath(one.named): one.named
        for one, (file, layout) in zip(given, opened, strict=True)
        if field not in {*one.facts, *layout.given(file.schema.names)}
    }
    names = dict(zip(unsaid, file_names(unsaid.values(), field), strict=True))
    return [
        one._replace(facts={field: names[os.fspath(one.named)], **one.facts})
        if os.fspath(one.named) in names
        else one
        for one in given
    ]


class RearrangementReader(Closing):
    """Rows of one or more files as blocks; made by `open_rearrangements`.

    Each iteration starts from the first row. The blocks depend only on the files, `block_rows`, which may be
    set anew before, and `block_bytes`, never on threads or on how the files are cut. The next block is read
    in another thread while the caller works on one; leaving the loop or `close` ends it. A file that changes
    meanwhile is an error.

    `schema` has the columns of all files in the order of first appearance; the text columns among the roles
    are strings. `roles` maps roles (``junction``, ``v_call``, ``j_call``; if present ``subject``,
    ``repertoire``, ``sequence_id``, ``count``) to column names; every file has one of each of `required`.
    `identities` are the absolute path, size in bytes and modification time in ns of each file, to recognise
    the input again; `total_bytes` is their size on disk. `recognised` is what they were read as.
    """

    #: Blocks have AIRR's columns.
    layout: Final = AIRR

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        layout: LayoutChoice | Layout,
        block_rows: int,
        block_bytes: int = MOST_BYTES,
        required: Sequence[tuple[str, ...]] = (),
        named: str | None = None,
    ) -> None:
        if not isinstance(layout, Layout):
            check_layout(layout)
        self.block_rows = block_rows
        self._block_bytes = block_bytes
        required = required or [(name,) for name in REQUIRED_ROLES]
        facts: Sequence[Mapping[str, str]] = (
            paths.facts if isinstance(paths, SampleSheet) else [{} for _ in paths]
        )
        given = [one for path, told in zip(paths, facts, strict=True) for one in _files_of(path, told)]
        self._statuses, self.identities = identify(one.path for one in given)
        opened = [_opened(one.path, layout, required) for one in given]
        for one, (_, found) in zip(given, opened, strict=True):
            if found.names != "airr":
                _tell(os.fspath(one.named), found.description)
        if named is not None:
            given = _with_names(named, given, opened)
        own = [] if isinstance(layout, str | Layout) else [f"{k}={v}" for k, v in layout.items()]
        self.recognised = " ".join([", ".join(sorted({found.name for _, found in opened})), *own])
        converted = [ConvertedFile(*file, one.facts) for file, one in zip(opened, given, strict=True)]
        self._files: list[InputFile] = [
            one if one.added else file for one, (file, _) in zip(converted, opened, strict=True)
        ]
        self.total_bytes = sum(size for _, size, _ in self.identities)
        schema = union_schema([(file.path, file.schema) for file in self._files])
        self.roles = roles_of(schema)
        self.roles |= {names[0]: self._shared(names) for names in required}
        self.schema = self._role_types(schema)
        self._columns: list[str] | None = None
        self._running: Generator[pa.RecordBatch, None, None] | None = None
        self._sampled: int | None = None
        #: Number of the first row of each file that has been begun.
        self._starts = {0: 0}

    def _shared(self, names: Sequence[str]) -> str:
        """The first of these columns that every file has."""
        found = next((name for name in names if all(name in file.schema.names for file in self._files)), None)
        if found is not None:
            return found
        first, *others = ((file, next(n for n in names if n in file.schema.names)) for file in self._files)
        file, other = next(one for one in others if first[1] not in one[0].schema.names)
        raise FormatError(
            file.path, found=f"column {other!r}", expected=f"column {first[1]!r}, as in {first[0].path}"
        )

    def read_only(self, columns: Collection[str]) -> None:
        """Read those columns alone from now on; `schema` has no others."""
        self.schema = pa.schema([field for field in self.schema if field.name in columns])
        self._columns, self._sampled = self.schema.names, None

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
        """Bytes of a row at the start of a file, the most among files: a guess of what others take."""
        if self._sampled is not None:
            return self._sampled
        widest, step = 0, max(1, len(self._files) // _SAMPLED_FILES)
        for number, file in list(enumerate(self._files))[::step]:
            schema = pa.schema([field for field in self.schema if field.name in file.schema.names])
            rows = self._rows_of(number, _SAMPLED_ROWS, schema)
            with closing(reblock(rows, _SAMPLED_ROWS, MOST_BYTES)) as blocks:
                found = (int(block.nbytes) // block.num_rows for block in islice(blocks, 1))
                widest = max([widest, *found])
        self._sampled = widest
        return widest

    def ranges(self, columns: Sequence[str], blocks: int = 1) -> Iterator[RowRange] | None:
        """So many blocks each as ranges of rows that other processes can read, with these columns.

        None if a file is not Parquet, or so many of its rows have too many bytes.
        """
        files = [file for file in self._files if isinstance(file, ParquetInput)]
        if len(files) < len(self._files) or any(
            file.widest_row(self.schema.names) * self.block_rows > self._block_bytes for file in files
        ):
            return None
        paths = [path for path, _, _ in self.identities]
        counts = [file.row_count for file in files]
        schema = pa.schema([self.schema.field(name) for name in columns])
        return row_ranges(list(zip(paths, counts, strict=True)), self.block_rows * blocks, schema)

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
            for batch in file.batches(most, self._columns):
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
