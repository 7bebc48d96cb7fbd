"""Sizes of the pages of a Parquet file, from their headers: what the footer says of a file may be wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

__all__ = ["RowGroupWidths"]

_WINDOW: Final = 1 << 12
_LONGEST_HEADER: Final = 1 << 24
#: Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_DEEPEST: Final = 8
_DICTIONARY_PAGE: Final = 2


#: Bytes that values of a dictionary may take in a row group without a look at which of them is longest.
_SMALL: Final = 4 << 20


class RowGroupWidths:
    """How much memory rows of a row group may take, whatever its footer says.

    Parameters
    ----------
    path, file
        The file.
    number
        Which row group.
    columns
        Names of the columns that are read; None for all.

    Attributes
    ----------
    row : float
        Bytes of a row where rows are the longest; with lists, on average.
    pages : int
        Bytes of the largest pages of all columns together.

    Raises
    ------
    pyarrow.ArrowInvalid
        If there is no page where one should be.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        file: arrow_parquet.ParquetFile,
        number: int,
        columns: list[str] | None,
    ) -> None:
        self._path = path
        self._number = number
        self.row, self.pages = 0.0, 0
        group = file.metadata.row_group(number)
        with open(path, "rb") as stream:
            for place in range(group.num_columns):
                chunk, leaf = group.column(place), file.schema.column(place)
                if columns is not None and leaf.path.split(".")[0] not in columns:
                    continue
                start = min(at for at in (chunk.dictionary_page_offset, chunk.data_page_offset) if at)
                try:
                    found = list(_pages(stream, start, chunk.num_values))
                except ValueError as error:
                    raise pa.ArrowInvalid(f"column {leaf.path!r}: {error}") from error
                self._add(leaf, found, group.num_rows)

    def _add(self, leaf: Any, pages: list[_Page], rows: int) -> None:
        dictionary = next((page for page in pages if page.is_dictionary), None)
        longest = 0 if dictionary is None else self._longest(leaf, dictionary, rows)
        data = [page for page in pages if not page.is_dictionary]
        if leaf.max_repetition_level:
            self.row += sum(max(page.size, page.values * longest) for page in data) / rows
        else:
            self.row += max((max(page.size / max(page.values, 1), longest) for page in data), default=0)
        self.pages += max((page.size for page in data), default=0) + (dictionary.size if dictionary else 0)

    def _longest(self, leaf: Any, dictionary: _Page, rows: int) -> int:
        """Bytes of the longest value of a dictionary."""
        if leaf.physical_type != "BYTE_ARRAY":
            return dictionary.size // max(dictionary.values, 1)
        if rows * dictionary.size <= _SMALL:
            return dictionary.size
        with arrow_parquet.ParquetFile(self._path, read_dictionary=[leaf.path], pre_buffer=False) as file:
            values = next(file.iter_batches(1, [self._number], [leaf.path])).column(0)
        while not pa.types.is_dictionary(values.type):
            values = values.field(0) if pa.types.is_struct(values.type) else values.values
        if len(values.dictionary) < dictionary.values:
            # The first page has its values within itself, and the dictionary was not read.
            return dictionary.size
        return int(pc.max(pc.binary_length(values.dictionary)).as_py() or 0)


class _Page(NamedTuple):
    """A page: bytes when decompressed, number of values, and whether others refer to these."""

    size: int
    values: int
    is_dictionary: bool


def _pages(file: BinaryIO, start: int, values: int) -> Iterator[_Page]:
    """The pages of a column chunk with so many values, from where the first one is."""
    while values > 0:
        header, length = _header(file, start)
        kind = header.get(5) or header.get(7) or header.get(8) or {}
        numbers: list[Any] = [header.get(2), header.get(3), kind.get(1)]
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise ValueError(f"no page at byte {start:,}")
        size, packed, count = numbers
        is_dictionary = header.get(1) == _DICTIONARY_PAGE
        yield _Page(size, count, is_dictionary)
        if not is_dictionary:
            values -= count
        start += length + packed


def _header(file: BinaryIO, start: int) -> tuple[dict[int, Any], int]:
    """Fields of the header at a place, and its length."""
    window = _WINDOW
    while True:
        file.seek(start)
        text = file.read(window)
        try:
            return _struct(text, 0, 0)
        except IndexError:
            # Headers may hold statistics as long as values.
            if len(text) < window or window >= _LONGEST_HEADER:
                raise ValueError(f"no page at byte {start:,}") from None
            window *= 16


def _struct(text: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    if depth > _DEEPEST:
        raise ValueError("a page header that is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    while text[at]:
        step, kind = text[at] >> 4, text[at] & 15
        at += 1
        if step:
            number += step
        else:
            number, at = _zigzag(text, at)
        if kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        else:
            fields[number], at = _value(text, at, kind, depth)
    return fields, at + 1


def _value(text: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """A value, of those that are passed over None, and where it ends."""
    if kind == _STRUCT:
        return _struct(text, at, depth + 1)
    if kind in (_BYTE, _TRUE, _FALSE):
        return text[at], at + 1
    if kind == _DOUBLE:
        return None, at + 8
    if kind == _BINARY:
        length, at = _varint(text, at)
        return None, at + length
    if kind in (_LIST, _SET, _MAP):
        raise ValueError("a page header with a list")
    return _zigzag(text, at)


def _zigzag(text: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(text, at)
    return number >> 1 ^ -(number & 1), at


def _varint(text: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = text[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits in a page header")
