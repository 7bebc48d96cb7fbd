"""Row groups of a Parquet file, each encoded by itself in whatever thread, and put together as one file.

Arrow encodes a file in one thread, from front to back. Here every row group is first a file of its own, and
the footer of the whole is made of theirs; the bytes are those that Arrow would have written. Source: Apache
Parquet, `parquet.thrift`; Apache Thrift, compact protocol.

A module of its own, because it is about bytes of footers, not about tables.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pyarrow as pa

#: What a file begins and ends with.
MAGIC: Final = b"PAR1"
#: Length of the footer and magic number behind it.
_TAIL_BYTES: Final = 8
#: Types of Thrift's compact protocol; those of the second line are numbers of one to ten bytes.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS: Final = (4, 5, 6)
#: Fields of FileMetaData, and their types.
_ROWS, _GROUPS = (3, 6), (4, _LIST)
#: Fields of RowGroup and of ColumnChunk that hold further ones, and those with places in the file, of
#: RowGroup, ColumnChunk and ColumnMetaData.
_COLUMNS, _METADATA = 1, 3
_PLACES: Final = ((5,), (2, 4, 6), (9, 10, 11, 14))


class EncodedRows(NamedTuple):
    """A row group: number of rows, a file of these alone, and of that the pages and the footer."""

    rows: int
    file: Any
    pages: Any
    footer: bytes

    @classmethod
    def of(cls, file: pa.Buffer, rows: int) -> EncodedRows:
        """A file of one row group, or of none."""
        length = int.from_bytes(file[-_TAIL_BYTES:].to_pybytes()[:4], "little")
        end = file.size - _TAIL_BYTES - length
        start = len(MAGIC)
        return cls(rows, file, file.slice(start, end - start), file.slice(end, length).to_pybytes())


class RowGroups:
    """The row groups of a file in writing, like those of the `empty` file of the same columns."""

    def __init__(self, empty: EncodedRows) -> None:
        self._empty = empty.footer
        self._moved = self._rows = 0
        self._groups: list[bytes] = []

    def add(self, group: EncodedRows) -> Any:
        """The bytes to write for one more row group."""
        text = group.footer
        _, _, first = _list(text, _value(text, *_GROUPS))
        places: list[int] = []
        end = _walk(text, first, places, 0)
        # A place of 0 is none.
        changed = [(at, _number(text, at) // 2 + self._moved << 1) for at in places if text[at]]
        self._groups.append(_with(text, first, end, changed))
        self._moved += group.pages.size
        self._rows += group.rows
        return group.pages

    def end(self) -> bytes:
        """The bytes to write behind the last row group."""
        text, count = self._empty, len(self._groups)
        rows, groups = _value(text, *_ROWS), _value(text, *_GROUPS)
        header = bytes([count << 4 | _STRUCT]) if count < 15 else bytes([0xF0 | _STRUCT]) + _varint(count)
        pieces = [
            _with(text, 0, groups, [(rows, self._rows << 1)]),
            header,
            *self._groups,
            text[groups + 1 :],
        ]
        footer = b"".join(pieces)
        return footer + len(footer).to_bytes(4, "little") + MAGIC


def _with(text: bytes, start: int, end: int, changed: list[tuple[int, int]]) -> bytes:
    """A part of a text with other numbers at some places, in order."""
    pieces = []
    for at, number in changed:
        pieces += [text[start:at], _varint(number)]
        start = _past(text, at)
    return b"".join([*pieces, text[start:end]])


def _walk(text: bytes, at: int, places: list[int], level: int) -> int:
    """Add where a row group names places to `places`; returns its end.

    Level 0 is the group, 1 a column chunk, 2 what is known of it.
    """
    number = 0
    while text[at]:
        number, kind, at = _field(text, at, number)
        if number in _PLACES[level]:
            places.append(at)
        if (level, number) == (0, _COLUMNS):
            _, count, at = _list(text, at)
            for _ in range(count):
                at = _walk(text, at, places, 1)
        elif (level, number) == (1, _METADATA):
            at = _walk(text, at, places, 2)
        else:
            at = _end(text, at, kind)
    return at + 1


def _value(text: bytes, wanted: int, kind: int) -> int:
    """Where the value of a field stands, in the struct that the text is; ValueError if it is not there."""
    at = number = 0
    while text[at]:
        number, found, at = _field(text, at, number)
        if number == wanted and found == kind:
            return at
        at = _end(text, at, found)
    raise ValueError(f"a footer without field {wanted}")


def _field(text: bytes, at: int, number: int) -> tuple[int, int, int]:
    """Number and type of a field behind another one, and where its value is."""
    head = text[at]
    if head > 15:
        return number + (head >> 4), head & 15, at + 1
    encoded = _number(text, at + 1)
    return encoded >> 1 ^ -(encoded & 1), head, _past(text, at + 1)


def _end(text: bytes, at: int, kind: int) -> int:
    """Where a value ends. In one loop, because footers of many columns have thousands of them."""
    depth = 0
    while True:
        if kind in _NUMBERS:
            while text[at] > 127:
                at += 1
            at += 1
        elif kind == _BINARY:
            at = _past(text, at) + _number(text, at)
        elif kind == _STRUCT:
            depth += 1
        elif kind in (_LIST, _SET):
            inner, count, at = _list(text, at)
            for _ in range(count):
                at = at + 1 if inner in (_TRUE, _FALSE) else _end(text, at, inner)
        elif kind in (_BYTE, _DOUBLE):
            at += 1 if kind == _BYTE else 8
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(f"a value of type {kind}, which no footer has")
        while depth and not text[at]:
            depth -= 1
            at += 1
        if not depth:
            return at
        kind = text[at] & 15
        at = at + 1 if text[at] > 15 else _past(text, at + 1)


def _list(text: bytes, at: int) -> tuple[int, int, int]:
    """Type and number of the items of a list, and where the first one is."""
    count, kind = text[at] >> 4, text[at] & 15
    at += 1
    return (kind, count, at) if count < 15 else (kind, _number(text, at), _past(text, at))


def _past(text: bytes, at: int) -> int:
    """Where the number that stands there ends."""
    while text[at] > 127:
        at += 1
    return at + 1


def _number(text: bytes, at: int) -> int:
    """The number that stands there, as it is stored: twice what it means."""
    number = shift = 0
    while text[at] > 127:
        number |= (text[at] & 127) << shift
        shift += 7
        at += 1
    return number | text[at] << shift


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
