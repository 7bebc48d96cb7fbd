"""Packed databases in memory and as files: format, opening by memory mapping, building in bounded memory.

To build one, the input is read once. Codes and names go to temporary files beside the output, lengths stay in
memory. Then the places are known, and the packed columns are written from front to back. Where the codes are
more than the memory limit, they are first dealt out, in one more pass, to temporary files of that size, each
with the sequences of consecutive blocks: no step reads from all over a large file.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.align.letters import (
    ALPHABETS,
    CODES,
    ILLEGAL_CODE,
    PAD_CODE,
    common_kind,
    count_sample,
    decode_residues,
    encode_residues,
    masked_records,
)
from plait.align.settings import Kind
from plait.dp.pairs.blocks import (
    BLOCK_LANES,
    COLUMN_STEP,
    Layout,
    arrange,
    lane_lengths,
    packed_blocks,
    packed_columns,
)
from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import AtomicFile, check_not_input, output_errors
from plait.formats.fasta import NameRegister, Sequences, read_fasta
from plait.formats.files import check_readable, parse_json


@dataclass(frozen=True, eq=False, repr=False)
class SequenceDatabase:
    """Packed sequences, in memory or in a memory-mapped file; the arrays cannot be written to.

    The longest sequences come first, those of equal length in order of input, so that the first blocks are
    the most work. Codes are those of `plait.align.letters.ALPHABETS`; case is not kept.

    Block b has the rows ``first_columns[b]:first_columns[b + 1]`` of `packed`, (columns, 64):
    ``packed[column, lane]`` is a code, `PAD_CODE` behind the end of a sequence and in lanes without one. Rows
    are aligned to 64 bytes; `first_columns`, (blocks + 1,), are multiples of 4. `lengths`, (blocks, 64), are
    residues, 0 in lanes without a sequence. `order`, (blocks * 64,), is the number of the record in each
    lane, from 0 in order of input; -1 in lanes without one, which are the last of the last block. `names` and
    `descriptions` are first word and rest of the header of each record, in order of input.
    """

    kind: Kind
    packed: NDArray[np.uint8]
    first_columns: NDArray[np.int64]
    lengths: NDArray[np.int32]
    order: NDArray[np.int64]
    names: list[str] | _Texts
    descriptions: list[str] | _Texts

    def __len__(self) -> int:
        return len(self.names)

    @property
    def alphabet(self) -> str:
        """Letters in the order of their codes."""
        return ALPHABETS[self.kind]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.lengths)

    @property
    def longest(self) -> int:
        """Residues of the longest sequence."""
        return int(self.lengths[0, 0]) if self.blocks else 0

    @cached_property
    def residues(self) -> int:
        """Residues of all sequences."""
        return int(self.lengths.sum(dtype=np.int64))

    @cached_property
    def highest_code(self) -> int:
        """The highest code there is."""
        return int(self.packed.max(initial=0))

    @cached_property
    def slots(self) -> NDArray[np.int64]:
        """Where each record is: slot s is lane ``s % 64`` of block ``s // 64``. Shape (n,)."""
        slots = np.empty(len(self), np.int64)
        slots[self.order[: len(self)]] = np.arange(len(self))
        return slots

    def columns(self, first: int, last: int) -> NDArray[np.uint8]:
        """The packed columns `first` to `last`, exclusive."""
        return self.packed[first:last]

    def sequence(self, index: int) -> NDArray[np.uint8]:
        """Codes of one record, numbered in order of input. Shape (residues,)."""
        block, lane = divmod(int(self.slots[index]), BLOCK_LANES)
        first = int(self.first_columns[block])
        return self.columns(first, first + int(self.lengths[block, lane]))[:, lane].copy()

    def letters(self, index: int) -> str:
        """One record, numbered in order of input, as text in capital letters."""
        return decode_residues(self.sequence(index), self.kind)


def pack_sequences(
    sequences: Sequences,
    path: str | os.PathLike[str],
    *,
    kind: Kind,
    memory_limit: int = 1 << 32,
) -> SequenceDatabase:
    """Pack some records in memory, numbered as in `sequences`; `path` is their file, for messages.

    `memory_limit` is bytes that the packed columns may take, padding included: 64 times the longest sequence,
    at least. `FormatError` if a letter is none of the kind's, `InvalidInput` if `memory_limit` is too low,
    `Unsupported` if a sequence has 2^31 residues or more.
    """
    layout = arrange(sequences.lengths)
    if layout.packed_bytes > memory_limit:
        longest = int(layout.order[0])
        raise InvalidInput(
            "memory_limit",
            found=f"{memory_limit:,} bytes",
            expected=f"at least {layout.packed_bytes:,} to pack {len(sequences):,} sequences of {path}, the "
            f"longest {sequences.names[longest]!r} with {int(layout.lengths[0, 0]):,} residues",
        )
    packed, first_columns, lengths = packed_blocks(
        sequences.letters.tobytes(), sequences.offsets[:-1], layout, CODES[kind]
    )
    if packed.size and packed.max() == ILLEGAL_CODE:
        encode_residues(path, sequences, kind)
    for array in (packed, *layout):
        array.setflags(write=False)
    return SequenceDatabase(
        kind, packed, first_columns, lengths, layout.order, sequences.names, sequences.descriptions
    )


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
_HEADER: Final = "the header of a packed database"
_AGAIN: Final = "build it again with 'plait search index'"


class Section(NamedTuple):
    """Place and size of a section in the file, in bytes."""

    offset: int
    bytes: int


def round_up(offset: int) -> int:
    """The next place where a section may start."""
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def block_digest(block: NDArray[np.uint8]) -> bytes:
    """A checksum of a block, contiguous bytes, that costs about as much as reading it.

    Rows of 509 little-endian words are added up, modulo 2^64; the digest is the BLAKE2b of these 509 sums and
    of the bytes behind the last whole row. One changed bit changes one sum.
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
    """The header of a database file, `HEADER_BYTES` bytes.

    `facts` are the numbers ``sequences``, ``residues`` and ``longest``; `sections` are all by name, with that
    of the digests; `digests` is what `digest_blocks` gives for the sections one after the other.
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
    """Whether a file starts as a packed database does; `FormatError` if it is no readable file."""
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
        # A larger code than that of the padding is no place in a table of scores.
        self._most = PAD_CODE if name == "packed" else 255
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
            if part.max() > self._most:
                told = f"the code {part.max()} in bytes {start:,} to {start + part.size:,} of {self._name!r}"
                raise FormatError(self._path, found=told, expected=f"codes up to {self._most}")
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
    """A packed database in a file: arrays are views of the mapped file, `metadata` what its header says."""

    path: str
    metadata: Mapping[str, Any]
    _blocks: Mapping[str, _Blocks]

    def columns(self, first: int, last: int) -> NDArray[np.uint8]:
        """The packed columns `first` to `last`, exclusive, their checksums compared."""
        self._blocks["packed"].check(first * BLOCK_LANES, last * BLOCK_LANES)
        return super().columns(first, last)

    def verify(self) -> None:
        """Compare the checksums of all blocks; `FormatError` if one is not what it was when built."""
        for blocks in self._blocks.values():
            blocks.check(0, blocks.data.size, again=True)


def open_database(path: str | os.PathLike[str], *, kind: Kind | None = None) -> DatabaseFile:
    """Map a packed database, which `build_database` has made, into memory.

    The header, the size of the file and the checksums of the small sections are checked at once, those of
    residues and names when they are read, or all by `DatabaseFile.verify`. `FormatError` if the file is
    missing, no database, of another format version or of another kind than `kind`, truncated or damaged.
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
    database = DatabaseFile(
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
    _check_places(database)
    return database


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
    found = metadata["sections"][name]
    return Section(found["offset"], found["bytes"])


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
    return _checked_header(path, parse_json(text, path, expected=_HEADER))


def _checked_header(path: object, metadata: Any) -> dict[str, Any]:
    """A header whose sections follow one another as `build_database` lays them out: it may be forged."""

    def number(holder: Any, *names: str) -> int:
        found = holder
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        if type(found) is not int or not 0 <= found < 1 << 62:
            told = f"{'.'.join(names)}: {found!r:.40}"
            raise FormatError(path, found=told, expected=f"a whole number in {_HEADER}")
        return found

    kind = metadata.get("kind") if isinstance(metadata, dict) else None
    if not isinstance(kind, str) or kind not in ALPHABETS:
        raise FormatError(path, found=f"kind: {kind!r:.40}", expected=f"protein or dna in {_HEADER}")
    for name, wanted in (("alphabet", ALPHABETS[kind]), ("lanes", BLOCK_LANES), ("pad", PAD_CODE)):
        if metadata.get(name) != wanted:
            told = f"{name}: {metadata.get(name)!r:.40}"
            raise FormatError(path, found=told, expected=f"{wanted} in {_HEADER}")
    count, _, _, _ = (
        number(metadata, name) for name in ("sequences", "residues", "longest", "digests_crc32")
    )
    sizes = {name: number(metadata, "sections", name, "bytes") for name in (*SECTIONS, DIGESTS)}
    blocks = -(-count // BLOCK_LANES)
    wanted_sizes = {
        "packed": sizes["packed"] // BLOCK_LANES * BLOCK_LANES,
        "first_columns": 8 * (blocks + 1),
        "lengths": 4 * BLOCK_LANES * blocks,
        "order": 8 * BLOCK_LANES * blocks,
        "name_offsets": 8 * (count + 1),
        "description_offsets": 8 * (count + 1),
        DIGESTS: _DIGEST_BYTES * sum(-(-sizes[name] // BLOCK_BYTES) for name in SECTIONS),
    }
    end = HEADER_BYTES
    for name, size in sizes.items():
        offset = number(metadata, "sections", name, "offset")
        place, size_wanted = round_up(end), wanted_sizes.get(name, size)
        if (offset, size) != (place, size_wanted):
            raise FormatError(
                path,
                found=f"the section {name!r} of {size:,} bytes from byte {offset:,}",
                expected=f"{size_wanted:,} bytes from byte {place:,}, for {count:,} sequences",
                hint=f"copy it again or {_AGAIN}",
            )
        end = offset + size
    if number(metadata, "file_bytes") != end:
        told = f"file_bytes: {metadata['file_bytes']:,}"
        raise FormatError(path, found=told, expected=f"{end:,}, where the last section ends")
    return dict(metadata)


def _check_places(database: DatabaseFile) -> None:
    """Check that order, lengths and places of columns fit one another; kernels use them as they are."""
    count, order, lengths = len(database), database.order, database.lengths
    columns = np.zeros(database.blocks + 1, np.int64)
    np.cumsum(-(-lengths[:, 0].astype(np.int64) // COLUMN_STEP) * COLUMN_STEP, out=columns[1:])
    falling = lengths.ravel()
    facts = (database.metadata["residues"], database.metadata["longest"])
    good = {
        "order": _is_permutation(order[:count]) and bool(np.all(order[count:] == -1)),
        "lengths": bool(np.all(falling[1:] <= falling[:-1]))
        and (not falling.size or int(falling[-1]) >= 0)
        and not np.any(falling[count:])
        and facts == (database.residues, database.longest),
        "first_columns": np.array_equal(columns, database.first_columns)
        and int(columns[-1]) == len(database.packed),
    }
    for name, right in good.items():
        if not right:
            raise FormatError(
                database.path,
                found=f"numbers in the section {name!r} that do not fit the others",
                expected="a packed database made by 'plait search index'",
                hint=f"copy it again or {_AGAIN}",
            )


def _is_permutation(numbers: NDArray[np.int64]) -> bool:
    if np.any((numbers < 0) | (numbers >= numbers.size)):
        return False
    present = np.zeros(numbers.size, np.bool_)
    present[numbers] = True
    return bool(present.all())


def _damaged(path: object, what: str, found: str, expected: str) -> FormatError:
    return FormatError(
        path,
        found=f"checksum {found} of {what}",
        expected=expected,
        hint=f"the file is damaged: copy it again or {_AGAIN}",
    )


_LEAST_MEMORY: Final = 1 << 24
# The working arrays of reading and packing are together about eight times their unit.
_UNITS: Final = 8
_MOST_FILES: Final = 100
_BUFFER_BYTES: Final = 1 << 16


def build_database(
    fasta_paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    kind: Literal["auto"] | Kind = "auto",
    memory_limit: int = 1 << 28,
    allow_duplicate_names: bool = False,
    mask_lower_case: bool = False,
) -> DatabaseFile:
    """Build a packed database from FASTA files, at least one; their records are numbered through.

    It appears under its name when it is complete. Kind ``"auto"`` looks at the first letters of each file.
    `memory_limit` is bytes of residues held at a time, from 16 MiB; besides, a sequence takes about 50 bytes.
    With `mask_lower_case` lower-case letters are taken for X or N.

    `InvalidInput` if there is no input, the output is one of the inputs or cannot be named so, the limit is
    too low, or letters do not say what the sequences are; `FormatError` if a file is no FASTA file, a letter
    none of the kind's, a name not unique and that is not allowed, or the disk full; `Unsupported` if a
    sequence has 2^31 residues or more.
    """
    _check_arguments(fasta_paths, out, kind, memory_limit)
    unit = memory_limit // _UNITS
    with AtomicFile(out) as file, output_errors(out), ExitStack() as stack:
        spool = _Spool(stack, file.path)
        chosen = kind
        if chosen == "auto":
            chosen = common_kind({os.fspath(path): count_sample(path) for path in fasta_paths})
        names = None if allow_duplicate_names else NameRegister()
        for path in fasta_paths:
            for sequences in read_fasta(path, block_residues=unit):
                for duplicate in names.add(path, sequences) if names else ():
                    raise duplicate.error()
                # Letters that are none of the kind's are refused even there.
                codes = encode_residues(path, sequences, chosen)
                if mask_lower_case:
                    codes = encode_residues(path, masked_records(sequences, chosen), chosen)
                spool.add(sequences, codes)
        del names
        lengths = np.concatenate(spool.lengths)
        layout = arrange(lengths)
        _check_room(file.path, layout)
        writer = _SectionWriter(file.stream)
        writer.write("packed", _packed(stack, file.path, spool.codes, lengths, layout, memory_limit))
        writer.write("first_columns", [layout.first_columns.astype("<i8", copy=False).data])
        writer.write("lengths", [layout.lengths.astype("<i4", copy=False).data])
        writer.write("order", [layout.order.astype("<i8", copy=False).data])
        for name in SECTIONS[4:]:
            writer.write(name, _content(spool.texts[name]))
        digests = bytes(writer.digests)
        writer.write(DIGESTS, [digests])
        facts = {
            "sequences": lengths.size,
            "residues": int(lengths.sum(dtype=np.int64)),
            "longest": int(lengths.max()),
        }
        file.stream.seek(0)
        file.stream.write(header_bytes(chosen, facts, writer.sections, digests))
    return open_database(out)


def _check_arguments(
    fasta_paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    kind: str,
    memory_limit: int,
) -> None:
    if not fasta_paths:
        raise InvalidInput("fasta_paths", found="no file", expected="at least one FASTA file")
    if kind not in ("auto", *ALPHABETS):
        raise InvalidInput("kind", found=repr(kind), expected=f"'auto' or one of {', '.join(ALPHABETS)}")
    if memory_limit < _LEAST_MEMORY:
        raise InvalidInput(
            "memory_limit", found=f"{memory_limit:,} bytes", expected=f"at least {_LEAST_MEMORY:,}"
        )
    check_not_input(out, fasta_paths)


def _check_room(out: Path, layout: Layout) -> None:
    free = shutil.disk_usage(os.path.dirname(os.path.realpath(out))).free
    if layout.packed_bytes > free:
        longest = int(layout.lengths[0, 0])
        raise FormatError(
            out,
            found=f"{free:,} bytes free on the device",
            expected=f"room for {layout.packed_bytes:,}",
            hint=f"{BLOCK_LANES * longest:,} of them are for the longest sequence and its block",
        )


def _temporary(stack: ExitStack, out: Path) -> IO[bytes]:
    """An unnamed file beside the output, gone when it is closed."""
    folder = os.path.dirname(os.path.realpath(out))
    return stack.enter_context(tempfile.TemporaryFile(dir=folder, buffering=_BUFFER_BYTES))


class _Spool:
    """What is known of the input before the places are: lengths in memory, all else in files."""

    def __init__(self, stack: ExitStack, out: Path) -> None:
        self.lengths: list[NDArray[np.int32]] = []
        self.codes = _temporary(stack, out)
        self.texts = {name: _temporary(stack, out) for name in SECTIONS[4:]}
        self._ends = {"name": 0, "description": 0}
        for name in self._ends:
            self.texts[f"{name}_offsets"].write(bytes(8))

    def add(self, sequences: Sequences, codes: bytes) -> None:
        self.codes.write(codes)
        self.lengths.append(lane_lengths(sequences.lengths))
        self._add_texts("name", sequences.names)
        self._add_texts("description", sequences.descriptions)

    def _add_texts(self, name: str, texts: list[str]) -> None:
        encoded = [text.encode("utf-8") for text in texts]
        offsets = np.fromiter(map(len, encoded), np.int64, len(encoded))
        offsets[0] += self._ends[name]
        np.cumsum(offsets, out=offsets)
        self._ends[name] = int(offsets[-1])
        self.texts[f"{name}_offsets"].write(offsets.astype("<i8", copy=False).data)
        self.texts[f"{name}s"].write(b"".join(encoded))


def _content(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while data := file.read(_BUFFER_BYTES):
        yield data


class _SectionWriter:
    """Writes sections one behind the other; remembers where they are, and the digests of their blocks."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.sections: dict[str, Section] = {}
        self.digests = bytearray()
        self._stream = stream
        self._end = 0

    def write(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        offset = round_up(max(self._end, HEADER_BYTES))
        self._stream.write(bytes(offset - self._end))
        self._end = offset
        held = bytearray()
        for part in parts:
            self._end += self._stream.write(part)
            held += part
            whole = len(held) // BLOCK_BYTES * BLOCK_BYTES
            self.digests += digest_blocks(held[:whole])
            del held[:whole]
        self.digests += digest_blocks(held)
        self.sections[name] = Section(offset, self._end - offset)


def _packed(
    stack: ExitStack,
    out: Path,
    codes: IO[bytes],
    lengths: NDArray[np.int32],
    layout: Layout,
    memory_limit: int,
) -> Iterator[bytes]:
    """The packed columns, from codes in order of input."""
    residues = layout.lengths.sum(axis=1, dtype=np.int64)
    total = int(residues.sum())
    # Consecutive blocks that share a file.
    share = (np.cumsum(residues) - residues) // max(memory_limit, total // _MOST_FILES, 1)
    firsts = np.flatnonzero(np.diff(share, prepend=-1))
    files = [codes] if firsts.size == 1 else [_temporary(stack, out) for _ in firsts]
    if len(files) > 1:
        _deal(codes, files, lengths, layout, firsts, memory_limit // _UNITS)
    for file, first, last in zip(files, firsts, [*firsts[1:], len(residues)], strict=True):
        records = layout.order[first * BLOCK_LANES : last * BLOCK_LANES]
        records = records[records >= 0]
        # In the file they are in order of input.
        by_input = np.argsort(records)
        ends = np.cumsum(lengths[records[by_input]], dtype=np.int64)
        starts = np.empty(records.size, np.int64)
        starts[by_input] = ends - lengths[records[by_input]]
        file.flush()
        if not ends[-1]:
            continue
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            most = memory_limit // _UNITS // BLOCK_LANES
            for columns in packed_columns(mapped, starts, layout, range(first, last), most):
                yield columns.tobytes()
        file.close()


def _deal(
    codes: IO[bytes],
    files: list[IO[bytes]],
    lengths: NDArray[np.int32],
    layout: Layout,
    firsts: NDArray[np.int64],
    size: int,
) -> None:
    """Copy the codes of each sequence, in order of input, to the file of its block."""
    slots = np.empty(lengths.size, np.int64)
    slots[layout.order[: lengths.size]] = np.arange(lengths.size)
    file_of = (np.searchsorted(firsts * BLOCK_LANES, slots, side="right") - 1).astype(np.uint8)
    del slots
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
    codes.seek(0)
    first = 0
    while first < lengths.size:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + size, side="right")) - 1)
        text = codes.read(int(starts[last] - starts[first]))
        for number in np.unique(file_of[first:last]).tolist():
            records = first + np.flatnonzero(file_of[first:last] == number)
            places = starts[records] - starts[first]
            spans = zip(places.tolist(), (places + lengths[records]).tolist(), strict=True)
            files[number].write(b"".join([text[a:b] for a, b in spans]))
        first = last
