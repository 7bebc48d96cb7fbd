"""The container of blocks: a small header, standard streams, and an index at the end; and side indices.

A side index, a file of its own, says where decoding of a plain stream may begin.

All numbers are little-endian. docs/reference/hyperspectral-container.md has the format byte by byte.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.hyperspectral.codec import MOST_ENTRIES, Checkpoint, Entries
from plait.hyperspectral.codewords import pieces
from plait.hyperspectral.parameters import ImageLayout, SampleAdaptive, StreamParameters


class Window(NamedTuple):
    """Rows and columns of a cube, of all bands; half-open."""

    first_row: int
    last_row: int
    first_column: int
    last_column: int

    @property
    def pixels(self) -> int:
        """Pixels in it."""
        return (self.last_row - self.first_row) * (self.last_column - self.first_column)

    def meets(self, other: Window) -> Window | None:
        """What is in both; None if nothing is."""
        found = Window(
            max(self.first_row, other.first_row),
            min(self.last_row, other.last_row),
            max(self.first_column, other.first_column),
            min(self.last_column, other.last_column),
        )
        empty = found.first_row >= found.last_row or found.first_column >= found.last_column
        return None if empty else found

    def within(self, outer: Window) -> tuple[slice, slice]:
        """Where it is in an array that has the samples of `outer`."""
        rows = slice(self.first_row - outer.first_row, self.last_row - outer.first_row)
        return rows, slice(self.first_column - outer.first_column, self.last_column - outer.first_column)

    def __str__(self) -> str:
        rows = f"rows {self.first_row} to {self.last_row - 1}"
        return f"{rows}, columns {self.first_column} to {self.last_column - 1}"


def span(key: Any, size: int) -> tuple[int, int, Any]:
    """What has to be read along an axis of some size for an index, and what of it is meant."""
    if isinstance(key, int | np.integer):
        one = int(key) + (size if key < 0 else 0)
        return one, one + 1, 0
    if isinstance(key, slice):
        wanted = range(*key.indices(size))
        if not wanted:
            return 0, 0, slice(0, 0)
        return min(wanted[0], wanted[-1]), max(wanted[0], wanted[-1]) + 1, slice(None, None, key.step)
    places = np.asarray(key)
    places = np.where(places < 0, places + size, places)
    if not places.size:
        return 0, 0, places.astype(int)
    first = int(places.min())
    return first, int(places.max()) + 1, places - first


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGrid:
    """Blocks of equal size, but for the last ones of a row or column of blocks."""

    rows: int
    columns: int
    block_rows: int
    block_columns: int

    @classmethod
    def parse(cls, text: str, image: ImageLayout) -> BlockGrid:
        """The grid of ``"rows:N"``, or of ``"tiles:YxX"`` for Y rows and X columns.

        InvalidInput for any other text.
        """
        found = re.fullmatch(r"rows:([1-9][0-9]{0,5})|tiles:([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text)
        if found is None:
            raise InvalidInput(
                "blocks", found=repr(text), expected="rows:N or tiles:YxX, such as tiles:64x64"
            )
        rows, tile_rows, tile_columns = found.groups()
        return cls(
            rows=image.rows,
            columns=image.columns,
            block_rows=min(int(rows or tile_rows), image.rows),
            block_columns=min(int(tile_columns or image.columns), image.columns),
        )

    @property
    def block_pixels(self) -> int:
        """Pixels of a block, the last ones apart."""
        return self.block_rows * self.block_columns

    def __len__(self) -> int:
        return -(-self.rows // self.block_rows) * -(-self.columns // self.block_columns)

    def __iter__(self) -> Iterator[Window]:
        """The blocks, in row-major order."""
        for row in range(0, self.rows, self.block_rows):
            for column in range(0, self.columns, self.block_columns):
                last_row = min(row + self.block_rows, self.rows)
                yield Window(row, last_row, column, min(column + self.block_columns, self.columns))


def block_parameters(parameters: StreamParameters, window: Window) -> StreamParameters:
    """Parameters of the stream of a block, from those of the whole cube.

    InvalidInput if a supplementary table has values for each column or row, which blocks do not have all of,
    or if error limits are updated within the block's first rows.
    """
    if any(table.structure > 1 for table in parameters.supplementary):
        expected = "values for the image or for each band, where there are blocks"
        raise InvalidInput("supplementary tables", found="values for each column", expected=expected)
    image = replace(
        parameters.image,
        rows=window.last_row - window.first_row,
        columns=window.last_column - window.first_column,
    )
    predictor = parameters.predictor
    if image.columns == 1 and parameters.image.columns > 1:
        # The standard allows nothing else for a single column.
        sums = "narrow-column" if predictor.local_sum.startswith("narrow") else "wide-column"
        changes: dict[str, object] = {"mode": "reduced", "local_sum": sums}
        if predictor.weight_table is not None and predictor.mode == "full":
            changes["weight_table"] = tuple(row[3:] for row in predictor.weight_table)
        predictor = replace(predictor, **changes)  # type: ignore[arg-type]
    if predictor.error_limits is not None:
        limits = predictor.error_limits.of_rows(window.first_row, window.last_row)
        predictor = replace(predictor, error_limits=limits)
    return replace(parameters, image=image, predictor=predictor)


#: First bytes of a container.
MAGIC: Final = b"\x89PLHSI\r\n"
_END: Final = b"PLHSIend"
_VERSION = 1
_CHECKSUMS = 1
_HEADER = struct.Struct("<8sHHIIIBBHII")
_CRC = struct.Struct("<I")
_COUNTS = struct.Struct("<QI")
_BLOCK = struct.Struct("<QQII")
_ATTACHMENT = struct.Struct("<QQIH")
_TRAILER = struct.Struct("<QQI8s")


class BlockEntry(NamedTuple):
    """Where a block is in the file, in bytes; `crc` is CRC-32 of its bytes.

    `samples_crc` is CRC-32 of its samples, if the container has such checksums.
    """

    offset: int
    length: int
    crc: int
    samples_crc: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockIndex:
    """Header and index of a container; `image` is of the whole cube, `entries` are in row-major order.

    `checksums` says whether there are checksums of samples.
    """

    image: ImageLayout
    grid: BlockGrid
    entries: tuple[BlockEntry, ...]
    attachments: Mapping[str, bytes]
    checksums: bool


class ContainerWriter:
    """Writes a container from its first byte to its last; `write` is called with the bytes in order."""

    def __init__(
        self, write: Callable[[bytes], object], image: ImageLayout, grid: BlockGrid, *, checksums: bool
    ) -> None:
        self._give = write
        self._position = 0
        self._entries: list[BlockEntry] = []
        head = _HEADER.pack(
            MAGIC,
            _VERSION,
            _CHECKSUMS * checksums,
            image.columns,
            image.rows,
            image.bands,
            image.dynamic_range,
            image.signed,
            0,
            grid.block_rows,
            grid.block_columns,
        )
        self._put(head + _CRC.pack(zlib.crc32(head)))

    def _put(self, data: bytes) -> None:
        self._position += len(data)
        self._give(data)

    def add(self, pieces: Iterable[bytes], samples_crc: int = 0, crc: int | None = None) -> None:
        """Append the next block: pieces of its stream, and CRC-32 of its samples if they have checksums.

        `crc` is the CRC-32 of the pieces, where it is known.
        """
        offset, found = self._position, 0
        for piece in pieces:
            found = zlib.crc32(piece, found) if crc is None else crc
            self._put(piece)
        self._entries.append(BlockEntry(offset, self._position - offset, found, samples_crc))

    def close(self, attachments: Mapping[str, bytes]) -> None:
        """Write the attachments, named bytes, then the index and the trailer."""
        index = [_COUNTS.pack(len(self._entries), len(attachments))]
        index += [_BLOCK.pack(*one) for one in self._entries]
        for name, data in attachments.items():
            label = name.encode("utf-8")
            index.append(_ATTACHMENT.pack(self._position, len(data), zlib.crc32(data), len(label)) + label)
            self._put(bytes(data))
        whole = b"".join(index)
        offset = self._position
        self._put(whole)
        self._put(_TRAILER.pack(offset, len(whole), zlib.crc32(whole), _END))


def read_container(data: Any, path: object) -> BlockIndex:
    """Read the header and the index of a whole container; `path` is for messages.

    FormatError if it is no container, or is truncated or damaged there.
    """
    view = memoryview(data).cast("B")
    image, grid, flags = _read_header(view, path)
    offset, index = _read_trailer(view, path)
    blocks, attachments = _COUNTS.unpack_from(index)
    if blocks != len(grid):
        raise FormatError(path, found=f"an index of {blocks:,} blocks", expected=f"{len(grid):,} blocks")
    if len(index) < _COUNTS.size + blocks * _BLOCK.size:
        raise FormatError(path, found="an index that ends early", expected=f"{blocks:,} blocks in it")
    entries = tuple(
        BlockEntry(*_BLOCK.unpack_from(index, _COUNTS.size + k * _BLOCK.size)) for k in range(blocks)
    )
    for k, entry in enumerate(entries):
        if entry.offset < _HEADER.size + _CRC.size or entry.offset + entry.length > offset:
            found = f"block {k} at bytes {entry.offset:,} to {entry.offset + entry.length:,}"
            raise FormatError(path, found=found, expected=f"blocks before the index at byte {offset:,}")
    _check_apart("blocks", (entry.length for entry in entries), offset, path)
    kept = _read_attachments(view, index[_COUNTS.size + blocks * _BLOCK.size :], attachments, path)
    checksums = bool(flags & _CHECKSUMS)
    return BlockIndex(image=image, grid=grid, entries=entries, attachments=kept, checksums=checksums)


def read_extent(end: bytes) -> tuple[int, int, int] | None:
    """Length of a container and of its header, and where its index begins, in bytes, from its last bytes.

    None if these are not the last bytes of a container.
    """
    if len(end) < _TRAILER.size or end[-len(_END) :] != _END:
        return None
    offset, length, _, _ = _TRAILER.unpack_from(end, len(end) - _TRAILER.size)
    whole, head = offset + length + _TRAILER.size, _HEADER.size + _CRC.size
    return (whole, head, offset) if head <= offset and len(end) <= whole < 1 << 48 else None


def _read_header(view: memoryview, path: object) -> tuple[ImageLayout, BlockGrid, int]:
    size = _HEADER.size + _CRC.size
    if bytes(view[: len(MAGIC)]) != MAGIC:
        raise FormatError(path, found="other first bytes", expected="a container of blocks")
    if len(view) < size:
        raise FormatError(path, found=f"{len(view)} bytes", expected=f"a header of {size} bytes")
    if zlib.crc32(view[: _HEADER.size]) != _CRC.unpack_from(view, _HEADER.size)[0]:
        raise FormatError(path, found="a damaged header", expected="the checksum that it carries")
    fields = _HEADER.unpack_from(view)
    version, flags, columns, rows, bands, depth, signed, _, block_rows, block_columns = fields[1:]
    if version != _VERSION or flags & ~_CHECKSUMS:
        found = f"version {version} of the container, flags {flags}"
        raise FormatError(path, found=found, expected="version 1", hint="a newer plait wrote it: upgrade")
    try:
        image = ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=depth, signed=bool(signed))
    except InvalidInput as error:
        raise FormatError(path, found=f"{error.what}: {error.found}", expected=error.expected) from error
    if not (1 <= block_rows <= rows and 1 <= block_columns <= columns):
        found = f"blocks of {block_rows} rows and {block_columns} columns"
        raise FormatError(path, found=found, expected=f"blocks in {rows} rows and {columns} columns")
    grid = BlockGrid(rows=rows, columns=columns, block_rows=block_rows, block_columns=block_columns)
    return image, grid, flags


def _read_trailer(view: memoryview, path: object) -> tuple[int, bytes]:
    """Where the index is, and the index."""
    place = len(view) - _TRAILER.size
    if place < _HEADER.size + _CRC.size or bytes(view[-len(_END) :]) != _END:
        raise FormatError(
            path,
            found=f"no index at the end of its {len(view):,} bytes",
            expected="a whole container",
            hint="it was cut short: copy it again",
        )
    offset, length, crc, _ = _TRAILER.unpack_from(view, place)
    if offset + length != place or length < _COUNTS.size:
        found = f"an index of {length:,} bytes at byte {offset:,}"
        raise FormatError(path, found=found, expected=f"one that ends at byte {place:,}")
    index = bytes(view[offset:place])
    if zlib.crc32(index) != crc:
        raise FormatError(path, found="a damaged index", expected="the checksum that it carries")
    return offset, index


def _check_apart(what: str, lengths: Iterable[int], size: int, path: object) -> None:
    """FormatError if parts of so many bytes overlap, of which a small file could have any number."""
    if (whole := sum(lengths)) > size:
        found = f"{what} of {whole:,} bytes in {size:,}"
        raise FormatError(path, found=found, expected=f"{what} that do not overlap")


def _read_attachments(view: memoryview, index: bytes, count: int, path: object) -> dict[str, bytes]:
    found, at, whole = {}, 0, 0
    for _ in range(count):
        if len(index) < at + _ATTACHMENT.size:
            raise FormatError(path, found="an index that ends early", expected=f"{count} attachments in it")
        offset, length, crc, size = _ATTACHMENT.unpack_from(index, at)
        at += _ATTACHMENT.size
        name = index[at : at + size].decode("utf-8", "replace")
        at += size
        whole += length
        _check_apart("attachments", (whole,), len(view), path)
        data = bytes(view[offset : offset + length])
        if len(data) != length or zlib.crc32(data) != crc:
            expected = "the checksum that the index has for it"
            raise FormatError(path, found=f"a damaged attachment {name!r}", expected=expected)
        found[name] = data
    return found


_SIDE_MAGIC: Final = b"\x89PLHSX\r\n"
_SIDE_VERSION: Final = 1
_SIDE_HEAD = struct.Struct("<8sHHQ32sIII")
_PART = struct.Struct("<IIQQI")
_LIGHT_MAGIC: Final = b"PLHSXlgt"
_LIGHT = struct.Struct("<8sQI")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideIndex:
    """Where decoding may begin.

    `rows` are the first rows of the parts but the first, rising; `payloads` holds a stored checkpoint for
    each. `checksums` are CRC-32 of the samples of each part, or None. `light` is what is stored of light
    entries, or nothing.
    """

    rows: tuple[int, ...]
    checksums: tuple[int, ...] | None
    payloads: tuple[bytes, ...]
    light: bytes = b""

    def entries(self, parameters: StreamParameters) -> Entries | None:
        """The light entries, if any; InvalidInput if they do not go with the parameters."""
        if not self.light:
            return None
        try:
            return _unpacked_entries(self.light, parameters.image)
        except (ValueError, zlib.error) as error:
            what, expected = "light entries of the side index", "what the parameters of the stream need"
            raise InvalidInput(what, found=error, expected=expected) from error

    def checkpoint(self, part: int, parameters: StreamParameters) -> Checkpoint | None:
        """The start of a part, None for part 0; InvalidInput if it does not go with the parameters."""
        if part == 0:
            return None
        try:
            return _unpacked(self.rows[part - 1], self.payloads[part - 1], parameters)
        except (ValueError, zlib.error) as error:
            what = f"part {part} of the side index"
            raise InvalidInput(
                what, found=error, expected="what the parameters of the stream need"
            ) from error


def stream_digest(stream: Any) -> bytes:
    """SHA-256 of a stream, given as a buffer."""
    found = hashlib.sha256()
    for piece in pieces(memoryview(stream).cast("B")):
        found.update(piece)
    return found.digest()


def _packed(checkpoint: Checkpoint) -> bytes:
    """A checkpoint as bytes; its samples as differences between bands, low bytes before high ones."""
    near = np.diff(checkpoint.near.astype(np.int32), axis=1, prepend=np.int32(0))
    planes = near.astype("<i4").reshape(-1, 1).view(np.uint8).T
    parts = [np.array(checkpoint.positions, "<i8").tobytes()]
    parts.append(np.array([len(state) for state in checkpoint.coders], "<i4").tobytes())
    parts += [state.astype("<i8").tobytes() for state in checkpoint.coders]
    parts += [planes.tobytes(), checkpoint.weights.astype("<i4").tobytes()]
    return zlib.compress(b"".join(parts), 6)


def _unpacked(row: int, payload: bytes, parameters: StreamParameters) -> Checkpoint:
    image, at = parameters.image, 0
    count = image.bands if parameters.order == "bsq" else 1
    pixels = image.columns * image.bands
    # No more than there can be, whatever the payload unfolds to.
    most = 12 * count + 8 * (66 * count + image.bands) + 4 * pixels + 72 * image.bands
    data = zlib.decompressobj().decompress(payload, most)

    def take(kind: str, count: int) -> NDArray[Any]:
        nonlocal at
        found = np.frombuffer(data, kind, count, at)
        at += found.nbytes
        return found

    positions = tuple(int(number) for number in take("<i8", count))
    adaptive = isinstance(parameters.coder, SampleAdaptive)
    own = image.bands // count
    sizes = [int(size) for size in take("<i4", count)]
    if min(positions) < 0 or not all(size == own if adaptive else 1 <= size <= 65 for size in sizes):
        raise ValueError("states of other sizes")
    coders = tuple(take("<i8", size).astype(np.int64) for size in sizes)
    planes = np.ascontiguousarray(take("u1", 4 * pixels).reshape(4, pixels).T)
    near = planes.view("<i4").reshape(image.columns, image.bands).cumsum(axis=1, dtype=np.int64)
    predictor = parameters.predictor
    components = max(predictor.prediction_bands + 3 * (predictor.mode == "full"), 1)
    weights = take("<i4", components * image.bands).reshape(components, image.bands).astype(np.int64)
    return Checkpoint(row, positions, coders, near, weights)


def _packed_entries(entries: Entries) -> bytes:
    """Light entries as bytes; accumulators as differences between entries, low bytes before high ones."""
    sums = np.diff(entries.sums, axis=0, prepend=np.int32(0)).astype("<i4").reshape(-1, 1)
    parts = entries.rows.astype("<i8"), entries.positions.astype("<i8"), sums.view(np.uint8).T
    return zlib.compress(b"".join(part.tobytes() for part in parts), 9)


def _unpacked_entries(light: bytes, image: ImageLayout) -> Entries:
    count, expanded = MOST_ENTRIES, zlib.decompressobj()
    size = 16 + 4 * image.bands
    data = expanded.decompress(light, count * size + 1)
    count = len(data) // size
    if count * size != len(data) or count == 0:
        raise ValueError(f"{len(data):,} bytes of them")
    rows, positions = (np.frombuffer(data, "<i8", count, 8 * count * k).astype(np.int64) for k in (0, 1))
    planes = np.frombuffer(data, np.uint8, offset=16 * count).reshape(4, -1)
    sums = np.ascontiguousarray(planes.T).view("<i4").reshape(count, image.bands)
    sums = sums.cumsum(axis=0, dtype=np.int64)
    rising = (np.diff(rows) > 0).all() and (np.diff(positions) > 0).all()
    if rows[0] or positions[0] or rows[-1] >= image.rows or not rising:
        raise ValueError("places that do not rise from the first row to the last")
    if sums.min() < 0 or sums.max() >= 1 << 31:
        raise ValueError("accumulators that no residuals lead to")
    return Entries(rows, positions, sums.astype(np.int32))


def write_side_index(
    write: Callable[[bytes], object],
    stream: Any,
    checkpoints: Sequence[Checkpoint],
    checksums: Sequence[int] | None,
    entries: Entries | None = None,
) -> None:
    """Write the side index of a stream.

    `checkpoints` are the starts of its parts but the first; `checksums` are CRC-32 of the samples of all
    parts, or None; `entries` are light ones.
    """
    payloads = [_packed(checkpoint) for checkpoint in checkpoints]
    first, known = (checksums or [0])[0], (len(stream), stream_digest(stream))
    flags = int(checksums is not None)
    head = _SIDE_HEAD.pack(_SIDE_MAGIC, _SIDE_VERSION, flags, *known, len(payloads), first, 0)
    parts, offset = [], _SIDE_HEAD.size + _PART.size * len(payloads) + 4
    for k, payload in enumerate(payloads):
        samples = checksums[k + 1] if checksums is not None else 0
        parts.append(_PART.pack(checkpoints[k].row, samples, offset, len(payload), zlib.crc32(payload)))
        offset += len(payload)
    table = head + b"".join(parts)
    write(table + struct.pack("<I", zlib.crc32(table)))
    for payload in payloads:
        write(payload)
    if entries is not None:
        light = _packed_entries(entries)
        write(_LIGHT.pack(_LIGHT_MAGIC, len(light), zlib.crc32(light)) + light)


def read_side_index(data: bytes, size: int, digest: bytes, path: object, rows: int) -> SideIndex:
    """Read a side index, and check that it is that of a stream of `size` bytes with SHA-256 `digest`.

    `rows` are those of the image, `path` is for messages. FormatError if it is no side index, is damaged, or
    belongs to another stream.
    """
    if len(data) < _SIDE_HEAD.size or data[: len(_SIDE_MAGIC)] != _SIDE_MAGIC:
        raise FormatError(path, found="other first bytes", expected="a side index")
    _, version, flags, length, known, count, first, _ = _SIDE_HEAD.unpack_from(data)
    if version != _SIDE_VERSION or flags > 1:
        found = f"version {version} of the side index"
        raise FormatError(path, found=found, expected="version 1", hint="a newer plait wrote it: upgrade")
    end = _SIDE_HEAD.size + count * _PART.size
    if len(data) < end + 4 or zlib.crc32(data[:end]) != struct.unpack_from("<I", data, end)[0]:
        raise FormatError(path, found="a damaged table", expected="the checksum that it carries")
    if length != size or known != digest:
        raise FormatError(
            path,
            found=f"the index of another stream, or of an earlier state of it ({length:,} bytes)",
            expected=f"that of this stream ({size:,} bytes)",
            hint="make it anew",
        )
    table = [_PART.unpack_from(data, _SIDE_HEAD.size + k * _PART.size) for k in range(count)]
    _check_apart("entries", (length for *_, length, _ in table), len(data), path)
    payloads = []
    for row, _, offset, length, crc in table:
        payload = data[offset : offset + length]
        if len(payload) != length or zlib.crc32(payload) != crc:
            found = f"a damaged entry of row {row}"
            raise FormatError(path, found=found, expected="the checksum that the table has for it")
        payloads.append(payload)
    starts = tuple(row for row, *_ in table)
    if any(a >= b for a, b in zip((0, *starts), (*starts, rows), strict=True)):
        raise FormatError(path, found="rows that do not rise", expected=f"rows from 1 to {rows - 1}")
    checksums = (first, *(crc for _, crc, *_ in table)) if flags else None
    light = _read_light(data[end + 4 + sum(map(len, payloads)) :], path)
    return SideIndex(rows=starts, checksums=checksums, payloads=tuple(payloads), light=light)


def _read_light(data: bytes, path: object) -> bytes:
    """What is stored of light entries behind the checkpoints, or nothing."""
    if data[: len(_LIGHT_MAGIC)] != _LIGHT_MAGIC or len(data) < _LIGHT.size:
        return b""
    _, size, crc = _LIGHT.unpack_from(data)
    light = data[_LIGHT.size : _LIGHT.size + size]
    if len(light) != size or zlib.crc32(light) != crc:
        raise FormatError(path, found="damaged light entries", expected="the checksum that they carry")
    return light
