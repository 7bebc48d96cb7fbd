"""Plain streams, indexed streams and containers of blocks, as parts that are decoded on their own."""

from __future__ import annotations

import itertools
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.cube_origin import CubeOrigin, StreamSeal, origin_path
from plait.hyperspectral.block_container import MAGIC, BlockEntry, BlockIndex, read_container
from plait.hyperspectral.block_grid import Window
from plait.hyperspectral.bodies import BodyEnd
from plait.hyperspectral.decoder import Checkpoint, StreamDecoder, sample_type
from plait.hyperspectral.header_bits import HeaderEnd
from plait.hyperspectral.mapped_bytes import pieces
from plait.hyperspectral.origins import check_origin, origin_in
from plait.hyperspectral.parameters import StreamParameters
from plait.hyperspectral.side_index import SideIndex, read_side_index, stream_digest

__all__ = ["StreamParts", "samples_crc"]


def samples_crc(samples: NDArray[Any], kind: np.dtype[Any], crc: int = 0) -> int:
    """CRC-32 of samples in little-endian order.

    Parameters
    ----------
    samples
        Shape (rows, columns, bands).
    kind
        The narrowest type that holds them.
    crc
        That of the samples before.
    """
    ordered = np.ascontiguousarray(samples, kind.newbyteorder("<"))
    return zlib.crc32(ordered.view(np.uint8).data, crc)


class StreamParts:
    """A compressed cube in parts that are decoded independently of one another.

    Parameters
    ----------
    data
        The bytes of the file, as a buffer.
    name
        Its name, for messages.
    **tables
        Tables that the stream uses and does not carry.
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

        Parameters
        ----------
        path
            The index.

        Raises
        ------
        InvalidInput
            If this is a container, which has an index of its own, or the file cannot be read.
        FormatError
            If it is no side index, is damaged, or belongs to another stream.
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
        """Use what stands beside the file: what the cube came from, and what its stream is known by.

        Parameters
        ----------
        origin, seal
            As they were read.

        Raises
        ------
        FormatError
            If they are those of another cube.
        """
        check_origin(origin, self.shape, self.dtype, self._name)
        self._beside = origin, seal

    @cached_property
    def origin(self) -> CubeOrigin | None:
        """What it came from, if that is known.

        Raises
        ------
        FormatError
            If what is known is damaged, or is that of another cube.
        """
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
        """Compare the bytes of a plain stream with what is known of them, once.

        Raises
        ------
        FormatError
            If they are others than were written.
        """
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
        """CRC-32 of the original samples of a part, if known."""
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
        """Where a block of a container is.

        Parameters
        ----------
        part
            Its number.

        Raises
        ------
        InvalidInput
            If this is a plain stream.
        """
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
        """Samples of a part up to a row of the cube; those of a whole part are compared with its checksum."""
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
