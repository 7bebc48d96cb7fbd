"""The side index of a plain stream: from where its parts are decoded independently of one another.

A small file of its own, because the standard leaves no room for it in a stream. All numbers are
little-endian. docs/reference/hyperspectral-container.md has the format byte by byte.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.hyperspectral.decoder import Checkpoint
from plait.hyperspectral.mapped_bytes import pieces
from plait.hyperspectral.parameters import SampleAdaptive, StreamParameters

__all__ = ["SideIndex", "read_side_index", "stream_digest", "write_side_index"]

_MAGIC: Final = b"\x89PLHSX\r\n"
_VERSION = 1
_HEAD = struct.Struct("<8sHHQ32sIII")
_PART = struct.Struct("<IIQQI")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideIndex:
    """Where decoding may begin.

    Attributes
    ----------
    rows
        First row of each part but the first, rising.
    checksums
        CRC-32 of the samples of each part; None if there are none.
    payloads
        For each of the rows, a checkpoint as it is stored.
    """

    rows: tuple[int, ...]
    checksums: tuple[int, ...] | None
    payloads: tuple[bytes, ...]

    def checkpoint(self, part: int, parameters: StreamParameters) -> Checkpoint | None:
        """The start of a part; None for that of the stream.

        Parameters
        ----------
        part
            Its number.
        parameters
            Of the stream.
        """
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
    """SHA-256 of a stream.

    Parameters
    ----------
    stream
        The stream, as a buffer.
    """
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

    Parameters
    ----------
    write
        Called with its bytes.
    stream
        The stream, as a buffer.
    checkpoints
        Where its parts begin, but the first.
    checksums
        CRC-32 of the samples of each part, the first among them; or None.
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
    """Read a side index, and check that it is that of a stream.

    Parameters
    ----------
    data
        All of its bytes.
    size, digest
        Bytes of the stream, and SHA-256 of them.
    path
        Name of the index, for messages.
    rows
        Rows of the image.

    Raises
    ------
    FormatError
        If it is none, is damaged, or belongs to another stream.
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
