"""Packed databases in files: made once, mapped into memory by every search.

A file is a header of 4096 bytes and sections, each at a multiple of 64 bytes:

=======================  ========================================================================
``packed``               uint8 (columns, 64): codes of the residues, see `SequenceDatabase`
``first_columns``        int64 (blocks + 1,)
``lengths``              int32 (blocks, 64)
``order``                int64 (blocks * 64,)
``name_offsets``         int64 (n + 1,): name i is ``names[name_offsets[i]:name_offsets[i + 1]]``
``names``                UTF-8
``description_offsets``  int64 (n + 1,), the same for descriptions
``descriptions``         UTF-8
=======================  ========================================================================

The header is the magic bytes, the format version and the CRC-32 of the rest of the header (two unsigned
32-bit numbers), then JSON, then blanks. All numbers are little-endian. The JSON says what is in the file, and
offset, size and CRC-32 of each section. Equal input gives equal bytes.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.align.packing import SequenceDatabase
from plait.align.residues import ALPHABETS, PAD_CODE, Kind
from plait.errors import FormatError
from plait.formats.compression import check_readable
from plait.targets.lane_blocks import BLOCK_LANES

__all__ = [
    "FORMAT_VERSION",
    "HEADER_BYTES",
    "SECTIONS",
    "DatabaseFile",
    "Section",
    "header_bytes",
    "is_database",
    "open_database",
    "round_up",
]

FORMAT_VERSION: Final = 1
HEADER_BYTES: Final = 4096
#: Names of the sections in order of the file.
SECTIONS: Final = (
    "packed",
    "first_columns",
    "lengths",
    "order",
    "name_offsets",
    "names",
    "description_offsets",
    "descriptions",
)

_MAGIC: Final = b"\x89plaitdb"
_FIXED: Final = struct.Struct("<8sII")
_ALIGNMENT: Final = 64
_CHECK_BYTES: Final = 1 << 24
# A search trusts these when it reads from memory; they are a hundredth of the file.
_CHECKED_AT_ONCE: Final = ("first_columns", "lengths", "order")
_AGAIN: Final = "build it again with 'plait search index'"


class Section(NamedTuple):
    """Where a section is.

    Attributes
    ----------
    offset, bytes
        Place and size in bytes.
    crc32
        Checksum.
    """

    offset: int
    bytes: int
    crc32: int


def round_up(offset: int) -> int:
    """The next place where a section may start."""
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def header_bytes(kind: Kind, facts: Mapping[str, int], sections: Mapping[str, Section]) -> bytes:
    """The header of a database file.

    Parameters
    ----------
    kind
        ``"protein"`` or ``"dna"``.
    facts
        Numbers to note: ``sequences``, ``residues``, ``longest``.
    sections
        All sections by name.

    Returns
    -------
    bytes
        `HEADER_BYTES` bytes.
    """
    last = sections[SECTIONS[-1]]
    content = {
        "plait": __version__,
        "kind": kind,
        "alphabet": ALPHABETS[kind],
        "lanes": BLOCK_LANES,
        "pad": PAD_CODE,
        **facts,
        "file_bytes": last.offset + last.bytes,
        "sections": {name: sections[name]._asdict() for name in SECTIONS},
    }
    text = json.dumps(content, separators=(",", ":")).encode("ascii").ljust(HEADER_BYTES - _FIXED.size)
    return _FIXED.pack(_MAGIC, FORMAT_VERSION, zlib.crc32(text)) + text


def is_database(path: str | os.PathLike[str]) -> bool:
    """Whether a file starts as a packed database does.

    Raises
    ------
    FormatError
        If it is no readable file.
    """
    check_readable(path)
    return _start_of(path).startswith(_MAGIC)


def _start_of(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(HEADER_BYTES)
    except OSError as error:
        raise FormatError(path, found=error.strerror or error, expected="a file to read") from error


class _Texts:
    """Texts in a section, decoded one by one; their checksums have not been compared."""

    def __init__(self, path: object, what: str, offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
        self._path = path
        self._what = what
        self._offsets = offsets
        self._data = data

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int, /) -> str:
        number = range(len(self))[index]
        first, last = self._offsets[number : number + 2].tolist()
        if 0 <= first <= last <= self._data.size:
            with suppress(UnicodeDecodeError):
                return self._data[first:last].tobytes().decode("utf-8")
        raise FormatError(
            self._path,
            found=f"number {number + 1} of its {self._what} damaged",
            expected="text",
            hint=f"copy it again or {_AGAIN}; 'plait search index --check' compares all checksums",
        )


@dataclass(frozen=True, eq=False, repr=False)
class DatabaseFile(SequenceDatabase):
    """A packed database in a file; its arrays are views of the mapped file.

    Attributes
    ----------
    kind, packed, first_columns, lengths, order, names, descriptions
        As in `SequenceDatabase`.
    path
        The file.
    metadata
        What its header says.
    """

    path: str
    metadata: Mapping[str, Any]
    _map: mmap.mmap

    def verify(self) -> None:
        """Compare the checksums of all sections.

        Raises
        ------
        FormatError
            If one is not what the header says.
        """
        for name in SECTIONS:
            _check_section(self.path, self._map, name, _section(self.metadata, name))


def open_database(path: str | os.PathLike[str], *, kind: Kind | None = None) -> DatabaseFile:
    """Map a packed database into memory.

    The header, the size of the file and the checksums of the small sections are checked at once, those of
    residues and names by `DatabaseFile.verify`.

    Parameters
    ----------
    path
        A file that `plait.align.database_build.build_database` has made.
    kind
        What it must be, or None.

    Returns
    -------
    DatabaseFile
        The database.

    Raises
    ------
    FormatError
        If the file is missing, no database, of another format version or kind, truncated or damaged.
    """
    size = check_readable(path).st_size
    metadata = _read_header(path, _start_of(path))
    if size != metadata["file_bytes"]:
        cut = size < metadata["file_bytes"]
        raise FormatError(
            path,
            found=f"{'only ' if cut else ''}{size:,} bytes",
            expected=f"{metadata['file_bytes']:,} bytes, as its header says",
            hint=f"{'the file is truncated: ' if cut else ''}copy it again or {_AGAIN}",
        )
    if kind is not None and metadata["kind"] != kind:
        raise FormatError(
            path, found=f"a database of kind {metadata['kind']!r}", expected=f"one of kind {kind!r}"
        )
    with open(path, "rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    for name in _CHECKED_AT_ONCE:
        _check_section(path, mapped, name, _section(metadata, name))

    def array(name: str, kind: str, *shape: int) -> NDArray[Any]:
        return np.ndarray(shape, kind, mapped, _section(metadata, name).offset)

    def texts(offsets: str, data: str) -> _Texts:
        count = metadata["sequences"] + 1
        places, letters = array(offsets, "<i8", count), array(data, "u1", _section(metadata, data).bytes)
        return _Texts(path, data, places, letters)

    blocks = _section(metadata, "first_columns").bytes // 8 - 1
    return DatabaseFile(
        kind=metadata["kind"],
        packed=array("packed", "u1", _section(metadata, "packed").bytes // BLOCK_LANES, BLOCK_LANES),
        first_columns=array("first_columns", "<i8", blocks + 1),
        lengths=array("lengths", "<i4", blocks, BLOCK_LANES),
        order=array("order", "<i8", blocks * BLOCK_LANES),
        names=texts("name_offsets", "names"),
        descriptions=texts("description_offsets", "descriptions"),
        path=str(path),
        metadata=metadata,
        _map=mapped,
    )


def _section(metadata: Mapping[str, Any], name: str) -> Section:
    return Section(**metadata["sections"][name])


def _read_header(path: object, start: bytes) -> dict[str, Any]:
    expected = "a packed database made by 'plait search index'"
    if not start or not start.startswith(_MAGIC[: len(start)]):
        found = "FASTA text" if start.startswith(b">") else f"a file that starts with {start[:8]!r}"
        raise FormatError(path, found=found if start else "an empty file", expected=expected)
    if len(start) < HEADER_BYTES:
        raise FormatError(
            path, found=f"only {len(start)} bytes", expected=expected, hint=f"copy it again or {_AGAIN}"
        )
    _, version, checksum = _FIXED.unpack_from(start)
    if version != FORMAT_VERSION:
        raise FormatError(
            path,
            found=f"a database of format version {version}",
            expected=f"version {FORMAT_VERSION}",
            hint=_AGAIN if version < FORMAT_VERSION else f"use a newer plait, or {_AGAIN}",
        )
    text = start[_FIXED.size :]
    if zlib.crc32(text) != checksum:
        raise _damaged(path, "the header", zlib.crc32(text), checksum)
    metadata: dict[str, Any] = json.loads(text)
    return metadata


def _check_section(path: object, mapped: mmap.mmap, name: str, section: Section) -> None:
    checksum = 0
    end = section.offset + section.bytes
    with memoryview(mapped) as view:
        for first in range(section.offset, end, _CHECK_BYTES):
            with view[first : min(first + _CHECK_BYTES, end)] as part:
                checksum = zlib.crc32(part, checksum)
    if checksum != section.crc32:
        raise _damaged(path, f"the section {name!r}", checksum, section.crc32)


def _damaged(path: object, what: str, found: int, expected: int) -> FormatError:
    return FormatError(
        path,
        found=f"checksum {found:08x} of {what}",
        expected=f"{expected:08x}",
        hint=f"the file is damaged: copy it again or {_AGAIN}",
    )
