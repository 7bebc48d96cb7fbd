"""Read text with columns, separated by tabs, commas or semicolons, exactly as written.

Text is cut into pieces at line ends here and each piece is parsed by Arrow on its own. So a line may be of
any length, the pieces do not depend on threads, and the number of every line is known.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

import pyarrow as pa
import pyarrow.csv as arrow_csv

from plait.errors import FormatError
from plait.formats.compression import ByteSource, FileKind, foreign_content

_PIECE_BYTES = 4 << 20
_HEADER_PIECE_BYTES = 64 << 10
_HEAD_BYTES = 16
_MOST_COLUMNS = 10_000
_BOM = b"\xef\xbb\xbf"
#: Bytes that a row may have.
LARGEST_ROW: Final = 16 << 20


class DelimitedFile:
    """One file of text with columns, plain, gzip, zstd, or the table of an archive.

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
