"""Read tab-separated text exactly as written, with true line numbers in every error.

The text is cut into pieces at line ends here and each piece is parsed by Arrow on its own. So a line may be
of any length, the pieces do not depend on threads, and the number of every line is known.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NoReturn

import pyarrow as pa
import pyarrow.csv as arrow_csv

from plait.errors import FormatError
from plait.formats.compression import ByteSource, FileKind, foreign_content
from plait.formats.parquet import LARGEST_ROW

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
