"""Plain streams, indexed streams and containers of blocks, as parts that are decoded on their own."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.layout import CubeLayout
from plait.formats.cubes.origin import CubeOrigin, StreamSeal, origin_path
from plait.formats.json_text import parse_json
from plait.hyperspectral.codec import Checkpoint, StreamDecoder, sample_type
from plait.hyperspectral.codewords import BodyEnd, pieces
from plait.hyperspectral.containers import MAGIC, BlockEntry, BlockIndex, Window, read_container
from plait.hyperspectral.header import HeaderEnd
from plait.hyperspectral.parameters import ImageLayout, SampleAdaptive, StreamParameters

_MAGIC: Final = b"\x89PLHSX\r\n"
_VERSION = 1
_HEAD = struct.Struct("<8sHHQ32sIII")
_PART = struct.Struct("<IIQQI")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideIndex:
    """Where decoding may begin.

    `rows` are the first rows of the parts but the first, rising; `payloads` holds a stored checkpoint for
    each. `checksums` are CRC-32 of the samples of each part, or None.
    """

    rows: tuple[int, ...]
    checksums: tuple[int, ...] | None
    payloads: tuple[bytes, ...]

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


def write_side_index(
    write: Callable[[bytes], object],
    stream: Any,
    checkpoints: Sequence[Checkpoint],
    checksums: Sequence[int] | None,
) -> None:
    """Write the side index of a stream.

    `checkpoints` are the starts of its parts but the first; `checksums` are CRC-32 of the samples of all
    parts, or None.
    """
    payloads = [_packed(checkpoint) for checkpoint in checkpoints]
    flags = int(checksums is not None)
    head = _HEAD.pack(
        _MAGIC, _VERSION, flags, len(stream), stream_digest(stream), len(payloads), (checksums or [0])[0], 0
    )
    parts, offset = [], _HEAD.size + _PART.size * len(payloads) + 4
    for k, payload in enumerate(payloads):
        samples = checksums[k + 1] if checksums is not None else 0
        parts.append(_PART.pack(checkpoints[k].row, samples, offset, len(payload), zlib.crc32(payload)))
        offset += len(payload)
    table = head + b"".join(parts)
    write(table + struct.pack("<I", zlib.crc32(table)))
    for payload in payloads:
        write(payload)


def read_side_index(data: bytes, size: int, digest: bytes, path: object, rows: int) -> SideIndex:
    """Read a side index, and check that it is that of a stream of `size` bytes with SHA-256 `digest`.

    `rows` are those of the image, `path` is for messages. FormatError if it is no side index, is damaged, or
    belongs to another stream.
    """
    if len(data) < _HEAD.size or data[: len(_MAGIC)] != _MAGIC:
        raise FormatError(path, found="other first bytes", expected="a side index")
    _, version, flags, length, known, count, first, _ = _HEAD.unpack_from(data)
    if version != _VERSION or flags > 1:
        found = f"version {version} of the side index"
        raise FormatError(path, found=found, expected="version 1", hint="a newer plait wrote it: upgrade")
    end = _HEAD.size + count * _PART.size
    if len(data) < end + 4 or zlib.crc32(data[:end]) != struct.unpack_from("<I", data, end)[0]:
        raise FormatError(path, found="a damaged table", expected="the checksum that it carries")
    if length != size or known != digest:
        raise FormatError(
            path,
            found=f"the index of another stream, or of an earlier state of it ({length:,} bytes)",
            expected=f"that of this stream ({size:,} bytes)",
            hint="make it anew",
        )
    table = [_PART.unpack_from(data, _HEAD.size + k * _PART.size) for k in range(count)]
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
    return SideIndex(rows=starts, checksums=checksums, payloads=tuple(payloads))


_ATTACHMENT = "origin.json"


def array_origin(image: ImageLayout, kind: np.dtype[Any]) -> CubeOrigin:
    """The origin of a cube in memory."""
    layout = CubeLayout(rows=image.rows, columns=image.columns, bands=image.bands, dtype=kind)
    return CubeOrigin(format="array", layout=layout)


def attachment_of(origin: CubeOrigin) -> dict[str, bytes]:
    """The attachments of a container that keep an origin."""
    return {_ATTACHMENT: json.dumps(origin.to_json(), sort_keys=True).encode("utf-8")}


def origin_in(attachments: Mapping[str, bytes], path: str | os.PathLike[str]) -> CubeOrigin | None:
    """The origin that a container keeps, or None; FormatError, which names `path`, if it is damaged."""
    if _ATTACHMENT not in attachments:
        return None
    expected = f"JSON in its attachment {_ATTACHMENT}"
    return CubeOrigin.from_json(parse_json(attachments[_ATTACHMENT], path, expected), path)


def check_origin(origin: CubeOrigin, shape: tuple[int, int, int], kind: Any, path: object) -> None:
    """FormatError if an origin is not that of a cube of this shape and signedness; `path` is for messages.

    `shape` is (rows, columns, bands). Types of samples may differ in size.
    """
    known = (origin.layout.rows, origin.layout.columns, origin.layout.bands)
    hint = "its header was damaged, or the file with the suffix .json goes with another one: move that away"
    if known != shape:
        told = "{} rows x {} columns x {} bands"
        raise FormatError(
            path,
            found=f"the description of a cube of {told.format(*known)}",
            expected=f"one of {told.format(*shape)}",
            hint=hint,
        )
    dtype = origin.layout.dtype
    if dtype.kind != kind.kind:
        found, expected = f"the description of a cube of {dtype.name}", f"one of {kind.name}"
        raise FormatError(path, found=found, expected=expected, hint=hint)


def samples_crc(samples: NDArray[Any], kind: np.dtype[Any], crc: int = 0) -> int:
    """CRC-32 of samples, (rows, columns, bands), in little-endian order, going on from `crc`.

    `kind` is the narrowest type of whole bytes that holds them.
    """
    ordered = np.ascontiguousarray(samples, kind.newbyteorder("<"))
    return zlib.crc32(ordered.view(np.uint8).data, crc)


class StreamParts:
    """A compressed cube in parts that are decoded independently; `data` is the whole file as a buffer.

    `name` is for messages; `tables` are those that the stream uses and does not carry.
    """

    kind: Literal["stream", "blocks"]
    parameters: StreamParameters
    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    attachments: Mapping[str, bytes]
    windows: tuple[Window, ...]

    def __init__(self, data: Any, name: str, **tables: Any) -> None:
        self._data = data
        self._view = memoryview(data).cast("B")
        self._name = name
        self._tables = tables
        self._index: SideIndex | None = None
        self._blocks: BlockIndex | None = None
        self._stream: StreamDecoder | None = None
        self._beside: tuple[CubeOrigin, StreamSeal] | None = None
        self._lock, self._intact = threading.Lock(), False
        self.attachments = {}
        self.compressed_bytes = len(self._view)
        if bytes(self._view[: len(MAGIC)]) == MAGIC:
            self._open_blocks()
        else:
            self._open_plain()

    def _open_plain(self) -> None:
        self.kind = "stream"
        with self._errors(None):
            self._stream = StreamDecoder(self._view, **self._tables)
        image = self._stream.parameters.image
        self.parameters = self._stream.parameters
        self.shape = (image.rows, image.columns, image.bands)
        self.dtype = sample_type(image)
        self.windows = (Window(0, image.rows, 0, image.columns),)

    def _open_blocks(self) -> None:
        self.kind = "blocks"
        self._blocks = read_container(self._view, self._name)
        image = self._blocks.image
        self.shape = (image.rows, image.columns, image.bands)
        self.dtype = sample_type(image)
        self.windows = tuple(self._blocks.grid)
        self.attachments = self._blocks.attachments
        found: FormatError | None = None
        # Any block tells the parameters; one of several columns tells them all.
        for k in sorted(range(len(self.windows)), key=lambda k: -self.windows[k].pixels)[:8]:
            try:
                self.parameters = replace(self._block(k).parameters, image=image)
            except FormatError as error:
                found = error
            else:
                return
        assert found is not None
        raise found

    def use_index(self, path: str | os.PathLike[str]) -> None:
        """Use a side index, which must be that of this stream.

        InvalidInput if this is a container, which has its own, or the file cannot be read; FormatError if it
        is no side index, is damaged, or belongs to another stream.
        """
        if self.kind != "stream":
            expected = "none: a container of blocks has its own"
            raise InvalidInput("index", found=str(path), expected=expected)
        rows, columns, _ = self.shape
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            found = f"{os.fspath(path)!r}: {error.strerror or error}"
            raise InvalidInput("index", found=found, expected="a file that can be read") from error
        self._index = read_side_index(data, len(self._view), self._digest, path, rows)
        ends = (0, *self._index.rows, rows)
        self.windows = tuple(Window(a, b, 0, columns) for a, b in itertools.pairwise(ends))

    @property
    def is_random_access(self) -> bool:
        """Whether windows are found without decoding everything before them."""
        return self.kind == "blocks" or self._index is not None

    @property
    def has_checksums(self) -> bool:
        """Whether samples are compared with checksums of the original ones."""
        return self._samples_crc(0) is not None

    @cached_property
    def _digest(self) -> bytes:
        return stream_digest(self._view)

    def use_description(self, origin: CubeOrigin, seal: StreamSeal) -> None:
        """Use the origin and seal kept beside the file; FormatError if they are those of another cube."""
        check_origin(origin, self.shape, self.dtype, self._name)
        self._beside = origin, seal

    @cached_property
    def origin(self) -> CubeOrigin | None:
        """What it came from, if known; FormatError if that is damaged or is of another cube."""
        found = origin_in(self.attachments, self._name)
        if found is None:
            return None if self._beside is None else self._beside[0]
        check_origin(found, self.shape, self.dtype, self._name)
        return found

    @property
    def unknown(self) -> str | None:
        """What `verify` cannot know, for lack of checksums; None if there is nothing."""
        if self.kind == "blocks":
            told = "its bytes are those that were written; it has no checksums of samples to compare"
            return None if self.has_checksums else told
        if self._beside is not None and self._beside[1].sha256 is not None:
            return None
        if self._index is not None:
            return "it is as it was when its index was made; nothing tells what it was before"
        name = origin_path(Path(self._name).name)
        why = (
            f"{name} is not there" if self._beside is None else f"{name} is of an earlier plait and has none"
        )
        return f"damage that still decodes is not noticed, for lack of checksums: {why}"

    def check_bytes(self) -> None:
        """Compare the SHA-256 of a plain stream with its seal, once; FormatError if it differs."""
        if self._beside is None or self._beside[1].sha256 is None:
            return
        with self._lock:
            if not self._intact and self._digest.hex() != self._beside[1].sha256:
                raise FormatError(
                    self._name,
                    found=f"bytes with the SHA-256 {self._digest.hex()}",
                    expected=f"{self._beside[1].sha256}, as {origin_path(Path(self._name).name)} says",
                    hint="it was damaged or replaced: copy it again",
                )
            self._intact = True

    def _samples_crc(self, part: int) -> int | None:
        """CRC-32 of the original samples of a part, or None."""
        if self._blocks is not None:
            return self._blocks.entries[part].samples_crc if self._blocks.checksums else None
        if self._index is not None:
            return None if self._index.checksums is None else self._index.checksums[part]
        return None if self._beside is None else self._beside[1].samples_crc32

    @contextmanager
    def _errors(self, part: int | None) -> Iterator[None]:
        """Name the file, and the part where there are several."""
        name = self._name
        if part is not None and len(self.windows) > 1:
            name = f"{name}, {'block' if self.kind == 'blocks' else 'part'} {part} ({self.windows[part]})"
        try:
            yield
        except (HeaderEnd, BodyEnd) as error:
            hint = "it was cut short or damaged: copy it again"
            raise FormatError(
                name, found=str(error), expected="a whole CCSDS 123 stream", hint=hint
            ) from error
        except InvalidInput as error:
            what = f"{error.what}: {error.found}"
            raise FormatError(name, found=what, expected=error.expected, hint=error.hint) from error

    def block_entry(self, part: int) -> BlockEntry:
        """Where a block of a container is; InvalidInput for a plain stream."""
        if self._blocks is None:
            raise InvalidInput("block", found="a plain stream", expected="a container of blocks")
        return self._blocks.entries[part]

    def _block(self, part: int) -> StreamDecoder:
        """The stream of a block, checked against the index."""
        assert self._blocks is not None
        entry, window = self._blocks.entries[part], self.windows[part]
        data = self._view[entry.offset : entry.offset + entry.length]
        with self._errors(part):
            crc = 0
            for piece in pieces(data):
                crc = zlib.crc32(piece, crc)
            if crc != entry.crc:
                raise BodyEnd("bytes that do not match their checksum")
            decoder = StreamDecoder(data, **self._tables)
        image, whole = decoder.parameters.image, self._blocks.image
        size = (window.last_row - window.first_row, window.last_column - window.first_column, whole.bands)
        if (image.rows, image.columns, image.bands) != size or decoder.dtype != self.dtype:
            found = f"a block of {image.rows} rows, {image.columns} columns and {image.bands} bands"
            raise FormatError(self._name, found=found, expected=f"block {part} of the size {size}")
        return decoder

    def part_rows(self, part: int, last: int, step: int | None = None) -> Iterator[NDArray[Any]]:
        """Samples of a part to before row `last` of the cube; a whole part is compared with its checksum."""
        window = self.windows[part]
        expected = self._samples_crc(part) if last == window.last_row else None
        with self._errors(part):
            if self._blocks is not None:
                found = self._block(part).rows(last=last - window.first_row, step=step)
            else:
                assert self._stream is not None
                self.check_bytes()
                start = None if self._index is None else self._index.checkpoint(part, self.parameters)
                found = self._stream.rows(start, last, step=step)
            row, crc = window.first_row, 0
            for rows in found:
                row += len(rows)
                if expected is not None:
                    crc = samples_crc(rows, self.dtype, crc)
                    # Before the last rows are given away, after which nobody need ask again.
                    if row == last and crc != expected:
                        raise BodyEnd(
                            f"samples with the checksum {crc:08x}, not {expected:08x} of the original"
                        )
                yield rows

    @property
    def data(self) -> memoryview:
        """The bytes of the file."""
        return self._view

    def rows_with_checkpoints(
        self, every: int, found: Callable[[Checkpoint], object]
    ) -> Iterator[NDArray[Any]]:
        """All samples of a plain stream in order, and checkpoints; see `StreamDecoder.rows`."""
        assert self._stream is not None
        with self._errors(None):
            self.check_bytes()
            yield from self._stream.rows(every=every, found=found)

    def fault(self, part: int) -> str | None:
        """What is wrong with a part."""
        try:
            for _ in self.part_rows(part, self.windows[part].last_row):
                pass
        except FormatError as error:
            return str(error)
        return None
