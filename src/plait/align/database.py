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
``digests``              8 bytes for each block of the sections above, see `block_digest`
=======================  ========================================================================

The header is the magic bytes, the format version and the CRC-32 of the rest of the header (two unsigned
32-bit numbers), then JSON, then blanks. All numbers are little-endian. The JSON says what is in the file,
offset and size of each section, and the CRC-32 of ``digests``. Equal input gives equal bytes.

Every block is compared with its digest before anything in it is used, and only then: a search for a few
queries reads the residues once, and the names of its hits.
"""

from __future__ import annotations

import hashlib
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
    "BLOCK_BYTES",
    "DIGESTS",
    "FORMAT_VERSION",
    "HEADER_BYTES",
    "SECTIONS",
    "DatabaseFile",
    "Section",
    "block_digest",
    "digest_blocks",
    "header_bytes",
    "is_database",
    "open_database",
    "round_up",
]

FORMAT_VERSION: Final = 2
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
#: The section behind them.
DIGESTS: Final = "digests"

_MAGIC: Final = b"\x89plaitdb"
_FIXED: Final = struct.Struct("<8sII")
_ALIGNMENT: Final = 64
#: Words of 64 bits that are added up column by column. That there are not 512 tells pages that were swapped.
_DIGEST_WORDS: Final = 509
_ROW_BYTES: Final = 8 * _DIGEST_WORDS
#: Bytes of a block, about a megabyte, and of its digest.
BLOCK_BYTES: Final = 257 * _ROW_BYTES
_DIGEST_BYTES: Final = 8
# Every search uses all of them; they are a hundredth of the file.
_CHECKED_AT_ONCE: Final = ("first_columns", "lengths", "order")
_AGAIN: Final = "build it again with 'plait search index'"


class Section(NamedTuple):
    """Where a section is.

    Attributes
    ----------
    offset, bytes
        Place and size in bytes.
    """

    offset: int
    bytes: int


def round_up(offset: int) -> int:
    """The next place where a section may start."""
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def block_digest(block: NDArray[np.uint8]) -> bytes:
    """A checksum of a block that costs about as much as reading it.

    Rows of 509 little-endian words are added up, modulo 2^64; the digest is the BLAKE2b of these 509 sums and
    of the bytes behind the last whole row. One changed bit changes one sum.

    Parameters
    ----------
    block
        Contiguous bytes.
    """
    whole = block.size // _ROW_BYTES * _ROW_BYTES
    words = block[:whole].view("<u8").reshape(-1, _DIGEST_WORDS)
    sums = np.add.reduce(words, axis=0, dtype=np.uint64).astype("<u8", copy=False)
    return hashlib.blake2b(sums.tobytes() + block[whole:].tobytes(), digest_size=_DIGEST_BYTES).digest()


def digest_blocks(content: bytes | bytearray) -> bytes:
    """The digests of all blocks of some bytes, of which the first begins a block, one after the other."""
    values = np.frombuffer(content, np.uint8)
    return b"".join(
        block_digest(values[first : first + BLOCK_BYTES]) for first in range(0, values.size, BLOCK_BYTES)
    )


def header_bytes(
    kind: Kind, facts: Mapping[str, int], sections: Mapping[str, Section], digests: bytes
) -> bytes:
    """The header of a database file.

    Parameters
    ----------
    kind
        ``"protein"`` or ``"dna"``.
    facts
        Numbers to note: ``sequences``, ``residues``, ``longest``.
    sections
        All sections by name, with that of the digests.
    digests
        What `digest_blocks` gives for the sections one after the other.

    Returns
    -------
    bytes
        `HEADER_BYTES` bytes.
    """
    last = sections[DIGESTS]
    content = {
        "plait": __version__,
        "kind": kind,
        "alphabet": ALPHABETS[kind],
        "lanes": BLOCK_LANES,
        "pad": PAD_CODE,
        **facts,
        "file_bytes": last.offset + last.bytes,
        "sections": {name: sections[name]._asdict() for name in (*SECTIONS, DIGESTS)},
        "digests_crc32": zlib.crc32(digests),
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


class _Blocks:
    """The blocks of a section, each compared with its digest when something in it is first wanted."""

    def __init__(self, path: object, name: str, data: NDArray[np.uint8], digests: bytes) -> None:
        self.data = data
        self._path = path
        self._name = name
        self._digests = digests
        self._good = np.zeros(len(digests) // _DIGEST_BYTES, np.bool_)

    def check(self, first: int, last: int, *, again: bool = False) -> None:
        """Compare the blocks of bytes `first` to `last`; those that were right once only if `again`."""
        for block in range(first // BLOCK_BYTES, -(-last // BLOCK_BYTES)):
            if self._good[block] and not again:
                continue
            start = block * BLOCK_BYTES
            part = self.data[start : start + BLOCK_BYTES]
            found = block_digest(part)
            expected = self._digests[block * _DIGEST_BYTES : (block + 1) * _DIGEST_BYTES]
            if found != expected:
                where = f"bytes {start:,} to {start + part.size:,} of the section {self._name!r}"
                raise _damaged(self._path, where, found.hex(), expected.hex())
            self._good[block] = True


class _Texts:
    """Texts in a section, decoded one by one."""

    def __init__(self, path: object, what: str, offsets: _Blocks, data: _Blocks) -> None:
        self._path = path
        self._what = what
        self._offset_blocks, self._data_blocks = offsets, data
        self._offsets: NDArray[np.int64] = offsets.data.view("<i8")
        self._data = data.data

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int, /) -> str:
        number = range(len(self))[index]
        self._offset_blocks.check(8 * number, 8 * number + 16)
        first, last = self._offsets[number : number + 2].tolist()
        if 0 <= first <= last <= self._data.size:
            self._data_blocks.check(first, last)
            with suppress(UnicodeDecodeError):
                return self._data[first:last].tobytes().decode("utf-8")
        raise FormatError(
            self._path,
            found=f"number {number + 1} of its {self._what} damaged",
            expected="text",
            hint=f"copy it again or {_AGAIN}",
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
    _blocks: Mapping[str, _Blocks]

    def columns(self, first: int, last: int) -> NDArray[np.uint8]:
        """Some of the packed columns, their checksums compared."""
        self._blocks["packed"].check(first * BLOCK_LANES, last * BLOCK_LANES)
        return super().columns(first, last)

    def verify(self) -> None:
        """Compare the checksums of all blocks.

        Raises
        ------
        FormatError
            If one is not what it was when the database was built.
        """
        for blocks in self._blocks.values():
            blocks.check(0, blocks.data.size, again=True)


def open_database(path: str | os.PathLike[str], *, kind: Kind | None = None) -> DatabaseFile:
    """Map a packed database into memory.

    The header, the size of the file and the checksums of the small sections are checked at once, those of
    residues and names when they are read, or all by `DatabaseFile.verify`.

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
    blocks = _blocks_of(path, np.frombuffer(mapped, np.uint8), metadata)
    for name in _CHECKED_AT_ONCE:
        blocks[name].check(0, blocks[name].data.size)

    def array(name: str, kind: str, *shape: int) -> NDArray[Any]:
        return blocks[name].data.view(kind).reshape(shape)

    count = blocks["first_columns"].data.size // 8 - 1
    return DatabaseFile(
        kind=metadata["kind"],
        packed=array("packed", "u1", -1, BLOCK_LANES),
        first_columns=array("first_columns", "<i8", count + 1),
        lengths=array("lengths", "<i4", count, BLOCK_LANES),
        order=array("order", "<i8", count * BLOCK_LANES),
        names=_Texts(path, "names", blocks["name_offsets"], blocks["names"]),
        descriptions=_Texts(path, "descriptions", blocks["description_offsets"], blocks["descriptions"]),
        path=str(path),
        metadata=metadata,
        _blocks=blocks,
    )


def _blocks_of(path: object, content: NDArray[np.uint8], metadata: Mapping[str, Any]) -> dict[str, _Blocks]:
    """All sections with their digests, which are compared with what the header says."""
    place = _section(metadata, DIGESTS)
    digests = content[place.offset : place.offset + place.bytes].tobytes()
    if zlib.crc32(digests) != metadata["digests_crc32"]:
        found, expected = zlib.crc32(digests), metadata["digests_crc32"]
        raise _damaged(path, f"the section {DIGESTS!r}", f"{found:08x}", f"{expected:08x}")
    blocks, first = {}, 0
    for name in SECTIONS:
        offset, size = _section(metadata, name)
        last = first + -(-size // BLOCK_BYTES) * _DIGEST_BYTES
        blocks[name] = _Blocks(path, name, content[offset : offset + size], digests[first:last])
        first = last
    return blocks


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
        raise _damaged(path, "the header", f"{zlib.crc32(text):08x}", f"{checksum:08x}")
    metadata: dict[str, Any] = json.loads(text)
    return metadata


def _damaged(path: object, what: str, found: str, expected: str) -> FormatError:
    return FormatError(
        path,
        found=f"checksum {found} of {what}",
        expected=expected,
        hint=f"the file is damaged: copy it again or {_AGAIN}",
    )
