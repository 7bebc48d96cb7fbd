"""Row groups of a Parquet file, each encoded by itself in whatever thread, and put together as one file.

Arrow encodes a file in one thread, from front to back. Here every row group is first a file of its own, and
the footer of the whole is made of theirs; the bytes are those that Arrow would have written, but for lists of
`DIFFERENCES`, which take Arrow five times as long. Source: Apache Parquet, `parquet.thrift`, `Encodings.md`;
Apache Thrift, compact protocol.

A module of its own, because it is about bytes of pages and footers, not about tables.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.lang.compile import kernel
from plait.lang.lanes import highest_bit

#: What a file begins and ends with.
MAGIC: Final = b"PAR1"
#: Length of the footer and magic number behind it.
_TAIL_BYTES: Final = 8
#: Types of Thrift's compact protocol; those of the second line are numbers of one to ten bytes.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
NUMBERS: Final = (4, 5, 6)
#: Fields of FileMetaData, and their types.
_ROWS, _GROUPS = (3, 6), (4, LIST)
#: Fields of RowGroup and of ColumnChunk that hold further ones, and those with places in the file, of
#: RowGroup, ColumnChunk and ColumnMetaData.
_COLUMNS, _METADATA = 1, 3
_PLACES: Final = ((5,), (2, 4, 6), (9, 10, 11, 14))
#: Metadata of a field whose lists, of one size and of int64, are written as differences, DELTA_BINARY_PACKED.
DIFFERENCES: Final = {b"plait.encoding": b"differences"}
#: Metadata of a field of whole numbers, or of lists of them, that Arrow is to write so, not as a dictionary.
PACKED: Final = {b"plait.encoding": b"packed"}
#: Items of a page of such lists; and the level of zstd, with which some 3 of 10 bytes go in little time.
_PAGE_ITEMS: Final = 1 << 17
_LEVEL: Final = -7
#: Differences of a block, in four parts, and the most bytes that it takes.
_BLOCK, _BLOCK_BYTES = 128, 128 * 8 + 14


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

    def as_file(self, empty: EncodedRows) -> EncodedRows:
        """The same with a file of these rows alone; `empty` is one of all columns without rows."""
        groups = RowGroups(empty)
        return self._replace(file=b"".join([MAGIC, groups.add(self), groups.end()]))

    def with_lists(self, lists: Mapping[int, tuple[str, pa.Array]]) -> EncodedRows:
        """The same rows without the file, with further columns at these places, as `DIFFERENCES`."""
        _, _, at = _list(self.footer, _value(self.footer, *_GROUPS))
        # A group begins with the list of its columns, behind which is how many bytes they have.
        _, count, at = _list(self.footer, at + 1)
        ends = [at]
        for _ in range(count):
            ends.append(end_of(self.footer, ends[-1], STRUCT))
        chunks = [self.footer[start:end] for start, end in pairwise(ends)]
        plain, packed = number_at(self.footer, ends[-1] + 1) // 2, self.pages.size
        pieces = [self.pages]
        for place, (name, column) in lists.items():
            pages, size = _pages(column)
            sizes = len(column) * column.type.list_size, size, sum(map(len, pages))
            chunks.insert(place, _chunk(name, (*sizes, len(MAGIC) + packed), column.flatten()))
            plain, packed = plain + size, packed + sizes[2]
            pieces += pages
        told = _numbers(b"\x16\x16\x26\x16", (plain, self.rows, len(MAGIC), packed))
        group = b"".join([b"\x19", _of_structs(len(chunks)), *chunks, told, b"\x14\0\0"])
        return EncodedRows(self.rows, None, pa.py_buffer(b"".join(pieces)), b"\x49\x1c" + group + b"\0")


def _numbers(kinds: bytes, numbers: Iterable[int]) -> bytes:
    """Numbers that are not negative, each behind a byte that says which field it is, and of what type."""
    return b"".join(bytes([kind]) + _varint(2 * number) for kind, number in zip(kinds, numbers, strict=True))


def _chunk(name: str, facts: tuple[int, ...], items: pa.Array) -> bytes:
    """What a group tells of a column of `DIFFERENCES`; facts are numbers: items, bytes, its place."""
    words = [_varint(len(word)) + word for word in (name.encode(), b"list", b"element")]
    path = b"\x26\0\x1c\x15\x04\x19\x25\x0a\x06\x19\x38" + b"".join(words) + b"\x15\x0c"
    told = _numbers(b"\x36", [items.null_count])
    if items.null_count < len(items):
        least, most = pc.min_max(items).as_py().values()
        told += b"\x28\x08" + most.to_bytes(8, "little", signed=True)
        told += b"\x18\x08" + least.to_bytes(8, "little", signed=True) + b"\x11\x11"
    return b"".join([path, _numbers(b"\x16\x16\x16\x26", facts), b"\x3c", told, b"\0\0\0"])


def _pages(column: pa.Array) -> tuple[list[bytes], int]:
    """Pages of lists that are not null themselves, in pieces; and their size without compression."""
    size, codec = column.type.list_size, pa.Codec("zstd", compression_level=_LEVEL)
    row = b"\x02\0" + (_varint(2 * size - 2) + b"\x01") * (size > 1)
    steps, rows = np.empty(_BLOCK, np.int64), max(1, _PAGE_ITEMS // size)
    pieces, plain = list[bytes](), 0
    for first in range(0, len(column), rows):
        items = column.slice(first, rows).flatten()
        values, known, edges = items.drop_null().to_numpy(), [True], [0, len(items)]
        if items.null_count:
            known = items.is_valid().to_numpy(zero_copy_only=False)
            edges[1:1] = (np.flatnonzero(np.diff(known)) + 1).tolist()
        # Levels, in runs: the first item of a row is 0, another one 1; what is null is 2, what is not is 3.
        valid = b"".join(_varint(2 * (b - a)) + bytes([2 + known[a]]) for a, b in pairwise(edges))
        levels = [len(runs).to_bytes(4, "little") + runs for runs in (row * (len(items) // size), valid)]
        begin = int(values[0]) if values.size else 0
        levels += [b"\x80\x01\x04", _varint(values.size), _varint(2 * begin if begin >= 0 else ~(2 * begin))]
        packed = np.empty(_BLOCK_BYTES * (values.size // _BLOCK + 1), np.uint8)
        body = b"".join([*levels, packed[: pack_differences(values, steps, packed)].data])
        content = codec.compress(body, asbytes=True)
        check = (zlib.crc32(content) ^ 1 << 31) - (1 << 31)
        header = b"\x15\0" + _numbers(b"\x15\x15", (len(body), len(content)))
        header += b"\x15" + _varint(check << 1 ^ check >> 31)
        pieces += [header + b"\x1c" + _numbers(b"\x15\x15\x15\x15", (len(items), 5, 3, 3)) + b"\0\0", content]
        plain += len(pieces[-2]) + len(body)
    return pieces, plain


@kernel
def pack_differences(values: Any, steps: Any, packed: Any) -> int:
    """Write the blocks of differences of whole numbers, without what stands before them; returns their bytes.

    `steps` are 128 numbers to work with.
    """
    size = 0
    for start in range(1, values.size, 128):
        count = min(128, values.size - start)
        least = values[start] - values[start - 1]
        for k in range(count):
            # That a place is not negative, the compiler cannot know.
            at = start + k & (1 << 62) - 1
            steps[k] = values[at] - values[at - 1 & (1 << 62) - 1]
            least = min(least, steps[k])
        for k in range(128):
            steps[k] = steps[k] - least if k < count else 0
        number = least << 1 ^ least >> 63
        while number & ~127:
            packed[size & (1 << 62) - 1] = number & 127 | 128
            number = number >> 7 & (1 << 57) - 1
            size += 1
        packed[size & (1 << 62) - 1] = number
        widths = size + 1 & (1 << 62) - 1
        size += 5
        for part in range(4):
            bits = word = held = width = 0
            for k in range(32):
                bits |= steps[32 * part + k]
            if bits:
                width = highest_bit(bits) + 1
            packed[widths + part] = width
            for k in range(32 * (width > 0)):
                step = steps[32 * part + k]
                word |= step << held
                held += width
                if held >= 64:
                    for byte in range(8):
                        packed[size + byte & (1 << 62) - 1] = word >> 8 * byte & 255
                    size += 8
                    held -= 64
                    word = step >> (width - held & 63) & (1 << held) - 1
            for byte in range(held // 8):
                packed[size + byte & (1 << 62) - 1] = word >> 8 * byte & 255
            size += held // 8
    return size


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
        changed = [(at, number_at(text, at) // 2 + self._moved << 1) for at in places if text[at]]
        self._groups.append(_with(text, first, end, changed))
        self._moved += group.pages.size
        self._rows += group.rows
        return group.pages

    def end(self) -> bytes:
        """The bytes to write behind the last row group."""
        text, count = self._empty, len(self._groups)
        rows, groups = _value(text, *_ROWS), _value(text, *_GROUPS)
        pieces = [
            _with(text, 0, groups, [(rows, self._rows << 1)]),
            _of_structs(count),
            *self._groups,
            text[groups + 1 :],
        ]
        footer = b"".join(pieces)
        return footer + len(footer).to_bytes(4, "little") + MAGIC


def _of_structs(count: int) -> bytes:
    """What stands before so many structs."""
    return bytes([count << 4 | STRUCT]) if count < 15 else bytes([0xF0 | STRUCT]) + _varint(count)


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
        number, kind, at = field_at(text, at, number)
        if number in _PLACES[level]:
            places.append(at)
        if (level, number) == (0, _COLUMNS):
            _, count, at = _list(text, at)
            for _ in range(count):
                at = _walk(text, at, places, 1)
        elif (level, number) == (1, _METADATA):
            at = _walk(text, at, places, 2)
        else:
            at = end_of(text, at, kind)
    return at + 1


def _value(text: bytes, wanted: int, kind: int) -> int:
    """Where the value of a field stands, in the struct that the text is; ValueError if it is not there."""
    at = number = 0
    while text[at]:
        number, found, at = field_at(text, at, number)
        if number == wanted and found == kind:
            return at
        at = end_of(text, at, found)
    raise ValueError(f"a footer without field {wanted}")


def field_at(text: bytes, at: int, number: int) -> tuple[int, int, int]:
    """Number and type of a field behind another one, and where its value is."""
    head = text[at]
    if head > 15:
        return number + (head >> 4), head & 15, at + 1
    encoded = number_at(text, at + 1)
    return encoded >> 1 ^ -(encoded & 1), head, _past(text, at + 1)


def end_of(text: bytes, at: int, kind: int) -> int:
    """Where a value ends. In one loop, because footers of many columns have thousands of them."""
    depth = 0
    while True:
        if kind in NUMBERS:
            while text[at] > 127:
                at += 1
            at += 1
        elif kind == _BINARY:
            at = _past(text, at) + number_at(text, at)
        elif kind == STRUCT:
            depth += 1
        elif kind in (LIST, SET):
            inner, count, at = _list(text, at)
            for _ in range(count):
                at = at + 1 if inner in (_TRUE, _FALSE) else end_of(text, at, inner)
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
    return (kind, count, at) if count < 15 else (kind, number_at(text, at), _past(text, at))


def _past(text: bytes, at: int) -> int:
    """Where the number that stands there ends."""
    while text[at] > 127:
        at += 1
    return at + 1


def number_at(text: bytes, at: int) -> int:
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
