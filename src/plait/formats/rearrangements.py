"""Read tables of rearrangements, and any tab-separated text, as streams of equal blocks, read ahead.

Text is read exactly as written, with true line numbers in every error. It is cut into pieces at line ends
here and each piece is parsed by Arrow on its own. So a line may be of any length, the pieces do not depend on
threads, and the number of every line is known.

A layout says under which column names a kind of export keeps the values plait needs. It is always chosen by
name and never guessed, because a guess can be silently wrong. When the chosen layout does not fit a header,
the error says which other one would.

Examples
--------
>>> from plait.formats.rearrangements import open_rearrangements
>>> reader = open_rearrangements(["a.tsv.gz", "b.parquet"], block_rows=65536)  # doctest: +SKIP
>>> for block in reader:  # doctest: +SKIP
...     print(block.num_rows, block.column(reader.roles["junction"])[0])
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from os import PathLike
from typing import Final, NoReturn, Protocol

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.types as kinds

from plait.errors import FormatError, InvalidInput
from plait.formats.compression import (
    ByteSource,
    FileKind,
    foreign_content,
    identify,
    read_ahead,
    sniff,
    unchanged,
)
from plait.formats.parquet import ParquetInput
from plait.types import Closing

_PIECE_BYTES = 4 << 20
_HEADER_PIECE_BYTES = 64 << 10
_HEAD_BYTES = 16
_MOST_COLUMNS = 10_000
_BOM = b"\xef\xbb\xbf"

_PARSE = arrow_csv.ParseOptions(
    delimiter="\t",
    quote_char=False,
    double_quote=False,
    escape_char=False,
    newlines_in_values=False,
    ignore_empty_lines=True,
)


class DelimitedFile:
    """One tab-separated file, plain, gzip or zstd.

    Every cell is text, exactly as written: nothing is taken for a null or a number, and quotes are ordinary
    characters. Lines end in LF or CRLF; a leading byte order mark is dropped. Blank lines hold no row; they
    are passed over and counted.

    `header` names the columns where the text has no header line; columns beyond are called ``column_5`` and
    so on. `bytes_read`, from disk, and `blank_lines` are those of the iteration under way. FormatError if
    there is no header, it is not UTF-8 text, or a column name stands in it twice.
    """

    def __init__(self, path: str | os.PathLike[str], kind: FileKind, *, header: Sequence[str] = ()) -> None:
        self.path = path
        self.kind = kind
        self.bytes_read = 0
        self.blank_lines = 0
        self._has_header = not header
        names = self._read_header()
        if header:
            numbered = [f"column_{k}" for k in range(1, len(names) + 1)]
            names = [*header, *numbered[len(header) :]][: len(names)]
        self.schema = pa.schema([(name, pa.string()) for name in names])
        self._convert = arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in self.schema.names},
            strings_can_be_null=False,
            check_utf8=True,
        )

    def batches(self, max_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows in order, a few MiB at a time; `max_rows` is not used, as pieces are measured in bytes.

        FormatError at the first line that is not a row: wrong number of columns, not UTF-8, binary, cut off.
        """
        self.bytes_read = 0
        self.blank_lines = 0
        with ByteSource(self.path, self.kind) as source:
            for line, piece in self._pieces(source, _PIECE_BYTES):
                self.bytes_read = source.bytes_read
                if line == 1 and self._has_header:
                    start = piece.index(b"\n") + 1
                    yield from self._parse(2, piece[start:])
                else:
                    yield from self._parse(line, piece)
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
        line = piece[: piece.index(b"\n")]
        if not line.strip():
            expected = "the column names" if self._has_header else "the first row"
            raise FormatError(self.path, line=1, found="a blank line", expected=expected)
        columns = line.count(b"\t") + 1
        if columns > _MOST_COLUMNS:
            found, expected = f"{columns:,} columns", f"at most {_MOST_COLUMNS:,}"
            raise FormatError(self.path, line=1, found=found, expected=expected)
        names = self._decode(1, line).split("\t")
        repeated = sorted(name for name, number in Counter(names).items() if number > 1)
        if repeated and self._has_header:
            found = f"column name {', '.join(map(repr, repeated))} more than once"
            raise FormatError(self.path, line=1, found=found, expected="every column name once")
        return names

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
        read = arrow_csv.ReadOptions(
            column_names=self.schema.names, block_size=len(text) + 1, use_threads=False
        )
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(text), read_options=read, parse_options=_PARSE, convert_options=self._convert
            )
        except pa.ArrowInvalid as error:
            self._raise_bad_line(line, piece, error)
        self.blank_lines += lines - table.num_rows
        yield from table.to_batches()

    def _raise_bad_line(self, line: int, piece: bytes, cause: pa.ArrowInvalid) -> NoReturn:
        expected = len(self.schema)
        like = "header" if self._has_header else "first line"
        for number, text in enumerate(piece.split(b"\n"), start=line):
            columns = text.count(b"\t") + 1
            if text and columns != expected:
                raise FormatError(
                    self.path,
                    line=number,
                    found=f"{columns} column{'s' if columns > 1 else ''}",
                    expected=f"{expected} columns, as in the {like}",
                    hint="the line is cut off, or a cell holds a tab or a line end",
                ) from cause
            self._decode(number, text)
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
#: Bytes that a row may have.
LARGEST_ROW: Final = 16 << 20


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


REQUIRED_ROLES: Final = ("junction", "v_call", "j_call")

_SHOWN_COLUMNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where one kind of table keeps each role.

    `name` is as given to ``--layout``, `description` one line for help texts. `columns` has for each role the
    column names accepted for it, case sensitive, the preferred one first; every table must have the roles
    `required`. `header` names the columns of text without a header line, as far as they go; empty where there
    is one. `amino_acids` are names of a column of junctions as amino acids.
    """

    name: str
    description: str
    columns: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...] = REQUIRED_ROLES
    header: tuple[str, ...] = ()
    amino_acids: tuple[str, ...] = ("junction_aa",)

    def fits(self, columns: Sequence[str]) -> bool:
        """Whether every required role has a column."""
        return not self.missing(columns)

    def missing(self, columns: Sequence[str]) -> list[str]:
        """Required roles without a column."""
        present = set(columns)
        return [role for role in self.required if not present.intersection(self.columns[role])]

    def required_text(self) -> str:
        """Required columns worded for a message, alternatives joined by ``or``."""
        return ", ".join(" or ".join(self.columns[role]) for role in self.required)


def _layouts() -> Iterator[Layout]:
    """The layouts of ``data/layouts.json``."""
    told = json.loads((resources.files("plait.formats") / "data" / "layouts.json").read_text("utf-8"))
    for name, one in told.items():
        columns = {role: tuple(names) for role, names in one.pop("columns").items()}
        yield Layout(name=name, columns=columns, amino_acids=tuple(one.pop("amino_acids")), **one)


LAYOUTS: Final[Mapping[str, Layout]] = {layout.name: layout for layout in _layouts()}


def layout_named(name: str) -> Layout:
    """The layout of that name, one of `LAYOUTS`; InvalidInput if there is none."""
    if name not in LAYOUTS:
        raise InvalidInput("layout", found=repr(name), expected=f"one of {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


def assign_roles(
    layout: Layout, headers: Sequence[tuple[str | PathLike[str], Sequence[str]]]
) -> dict[str, str]:
    """Column name of every role, from the path and column names (`headers`) of each input file.

    Required roles are always there, and in every file under this name; optional ones only if at least one
    file has them. FormatError if a file lacks a required column, or the files keep a role under different
    names.
    """
    for path, columns in headers:
        if not layout.fits(columns):
            raise _missing_columns(layout, path, columns)
    roles: dict[str, str] = {}
    for role, accepted in layout.columns.items():
        if role in layout.required:
            roles[role] = _shared_name(role, accepted, headers)
        else:
            found = [name for name in accepted if any(name in columns for _, columns in headers)]
            if found:
                roles[role] = found[0]
    return roles


def _shared_name(
    role: str, accepted: Sequence[str], headers: Sequence[tuple[str | PathLike[str], Sequence[str]]]
) -> str:
    for name in accepted:
        if all(name in columns for _, columns in headers):
            return name
    first_path, first_columns = headers[0]
    first = next(name for name in accepted if name in first_columns)
    path, columns = next((path, columns) for path, columns in headers if first not in columns)
    other = next(name for name in accepted if name in columns)
    raise FormatError(
        path,
        found=f"column {other!r} for {role}",
        expected=f"column {first!r}, as in {first_path}",
        hint="give files of one export style in one run, or rename the column",
    )


def _missing_columns(layout: Layout, path: str | PathLike[str], columns: Sequence[str]) -> FormatError:
    lacking = ", ".join(" or ".join(layout.columns[role]) for role in layout.missing(columns))
    shown = ", ".join(repr(name) for name in columns[:_SHOWN_COLUMNS])
    if len(columns) > _SHOWN_COLUMNS:
        shown += f" and {len(columns) - _SHOWN_COLUMNS} more"
    return FormatError(
        path,
        found=f"the columns {shown}",
        expected=f"layout {layout.name!r} with the columns {layout.required_text()} (missing: {lacking})",
        hint=_header_hint(layout, columns),
    )


def _header_hint(layout: Layout, columns: Sequence[str]) -> str | None:
    fitting = [other.name for other in LAYOUTS.values() if other.fits(columns)]
    if fitting:
        return f"the header fits layout {fitting[0]!r}: choose it with --layout {fitting[0]}"
    for separator, name in ((",", "commas"), (";", "semicolons")):
        if len(columns) == 1 and separator in columns[0]:
            return f"the header looks separated by {name}: convert the file to tab-separated values"
    unquoted = [name.strip('"') for name in columns]
    if any(other.fits(unquoted) for other in LAYOUTS.values()):
        return "the header is quoted: write the file without quotes (in R: quote = FALSE)"
    lowered = {name.strip().lower() for name in columns}
    wanted = [name for role in layout.missing(columns) for name in layout.columns[role]]
    if any(name.lower() in lowered for name in wanted):
        return "column names are matched exactly, including upper and lower case and blanks"
    return None


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

    `layout` is the name of the column layout, see `plait.formats.rearrangements.LAYOUTS`; a block ends after
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
