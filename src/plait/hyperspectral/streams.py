"""Compressed cubes, plain streams or containers of blocks, read a few rows at a time."""

from __future__ import annotations

import itertools
import json
import mmap
import os
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda_target import CudaTarget, failed, leave
from plait.devices.target import Target, resolve
from plait.errors import DeviceFailure, DeviceMemoryError, FormatError, InvalidInput, Unsupported
from plait.formats.cubes.origin import CubeOrigin, StreamSeal, origin_path
from plait.formats.files import Closing, parse_json
from plait.hyperspectral.codec import WORTH, Checkpoint, StreamDecoder, sample_type
from plait.hyperspectral.codewords import BodyEnd, pieces
from plait.hyperspectral.containers import (
    MAGIC,
    BlockIndex,
    SideIndex,
    Window,
    read_container,
    read_side_index,
    stream_digest,
)
from plait.hyperspectral.header import HeaderEnd
from plait.hyperspectral.mapping import SampleMapping
from plait.hyperspectral.parameters import StreamParameters
from plait.settings import thread_count

#: Called with the samples done so far, and all of them.
Progress = Callable[[int, int], object]

#: Bytes of samples that are decoded ahead.
_MOST_KEPT_BYTES = 1 << 27


_ATTACHMENT = "origin.json"


def attachment_of(origin: CubeOrigin) -> dict[str, bytes]:
    """The attachments of a container that keep an origin."""
    return {_ATTACHMENT: json.dumps(origin.to_json(), sort_keys=True).encode("utf-8")}


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
    if origin.mapping:
        mapping = SampleMapping.from_json(origin.mapping, path)
        if mapping.dtype != dtype.name or kind.kind != "u":
            told = f"the description of a cube of {dtype.name}, from {mapping.dtype} as integers from 0 on"
            raise FormatError(path, found=told, expected=f"one of {kind.name}", hint=hint)
    elif dtype.kind != kind.kind:
        found, expected = f"the description of a cube of {dtype.name}", f"one of {kind.name}"
        raise FormatError(path, found=found, expected=expected, hint=hint)


def samples_crc(samples: NDArray[Any], kind: np.dtype[Any], crc: int = 0) -> int:
    """CRC-32 of samples, (rows, columns, bands), in little-endian order, going on from `crc`.

    `kind` is the narrowest type of whole bytes that holds them.
    """
    ordered = np.ascontiguousarray(samples, kind.newbyteorder("<"))
    return zlib.crc32(ordered.view(np.uint8).data, crc)


class CompressedCube(Closing):
    """A compressed cube that is open for reading; a context manager, made by `open_stream`.

    Several threads may read at once. `shape` is (rows, columns, bands). `stored_type` is the narrowest
    integer type that holds what the stream has; samples are of type `dtype`, which is that unless a `mapping`
    made integers of them. `windows` are the parts that are decoded independently, in row order. Of a
    container, `parameters` are those of its first block with the size of the whole cube. `data` is the whole
    file as a buffer, `name` is for messages; `tables` are those that the stream uses and does not carry.
    """

    kind: Literal["stream", "blocks"]
    parameters: StreamParameters
    shape: tuple[int, int, int]
    stored_type: np.dtype[Any]
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
            self.kind = "blocks"
            self._blocks = read_container(self._view, self._name)
            image, self.windows = self._blocks.image, tuple(self._blocks.grid)
            self.attachments = self._blocks.attachments
        else:
            self.kind = "stream"
            with self._errors(None):
                self._stream = StreamDecoder(self._view, **self._tables)
            self.parameters = self._stream.parameters
            image = self.parameters.image
            self.windows = (Window(0, image.rows, 0, image.columns),)
        self.shape = (image.rows, image.columns, image.bands)
        self.stored_type = sample_type(image)
        if self._blocks is not None:
            self.parameters = replace(self._parameters_of_blocks(), image=image)

    def _parameters_of_blocks(self) -> StreamParameters:
        """Parameters of a block: any of them tells them, and one of several columns tells them all."""
        found: FormatError | None = None
        for k in sorted(range(len(self.windows)), key=lambda k: -self.windows[k].pixels)[:8]:
            try:
                return self._block(k).parameters
            except FormatError as error:
                found = error
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
        with _readable("index", path):
            data = Path(path).read_bytes()
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
        check_origin(origin, self.shape, self.stored_type, self._name)
        self._beside = origin, seal

    @cached_property
    def origin(self) -> CubeOrigin | None:
        """What it came from, if known; FormatError if that is damaged or is of another cube."""
        if _ATTACHMENT not in self.attachments:
            return None if self._beside is None else self._beside[0]
        expected = f"JSON in its attachment {_ATTACHMENT}"
        content = parse_json(self.attachments[_ATTACHMENT], self._name, expected)
        found = CubeOrigin.from_json(content, self._name)
        check_origin(found, self.shape, self.stored_type, self._name)
        return found

    @cached_property
    def mapping(self) -> SampleMapping | None:
        """How samples became the integers of the stream; None if they are those."""
        origin = self.origin
        return (
            None
            if origin is None or not origin.mapping
            else SampleMapping.from_json(origin.mapping, self._name)
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the samples."""
        return self.stored_type if self.mapping is None else np.dtype(self.mapping.dtype)

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
        if (image.rows, image.columns, image.bands) != size or decoder.dtype != self.stored_type:
            found = f"a block of {image.rows} rows, {image.columns} columns and {image.bands} bands"
            raise FormatError(self._name, found=found, expected=f"block {part} of the size {size}")
        return decoder

    @property
    def decoders(self) -> int:
        """Streams in it: its blocks, or one."""
        return 1 if self._blocks is None else len(self.windows)

    def decoder(self, number: int) -> StreamDecoder:
        """The decoder of one of its streams, whose bytes are compared with their checksums first."""
        if self._blocks is not None:
            return self._block(number)
        assert self._stream is not None
        self.check_bytes()
        return self._stream

    def part_rows(
        self,
        part: int,
        last: int,
        step: int | None = None,
        errors: Callable[[NDArray[np.int64]], object] | None = None,
        threads: int = 1,
        into: NDArray[Any] | None = None,
    ) -> Iterator[NDArray[Any]]:
        """Samples of a part to before row `last` of the cube; a whole part is compared with its checksum.

        `errors`, `threads` and `into` are as in `StreamDecoder.rows`.
        """
        window = self.windows[part]
        expected = self._samples_crc(part) if last == window.last_row else None
        with self._errors(part):
            if self._blocks is not None:
                decoder, start, end = self._block(part), None, last - window.first_row
            else:
                assert self._stream is not None
                self.check_bytes()
                decoder, end = self._stream, last
                start = None if self._index is None else self._index.checkpoint(part, self.parameters)
            found = decoder.rows(start, end, step=step, errors=errors, threads=threads, into=into)
            row, crc = window.first_row, 0
            for rows in found:
                row += len(rows)
                if expected is not None:
                    crc = samples_crc(rows, self.stored_type, crc)
                    # Before the last rows are given away, after which nobody need ask again.
                    if row == last and crc != expected:
                        raise BodyEnd(
                            f"samples with the checksum {crc:08x}, not {expected:08x} of the original"
                        )
                yield rows if self.mapping is None else self.mapping.from_integers(rows)

    def rows_with_checkpoints(
        self, every: int, found: Callable[[Checkpoint], object]
    ) -> Iterator[NDArray[Any]]:
        """All integers of a plain stream in order, and checkpoints; see `StreamDecoder.rows`."""
        assert self._stream is not None
        with self._errors(None):
            self.check_bytes()
            yield from self._stream.rows(every=every, found=found)

    def fault(self, part: int, threads: int = 1) -> str | None:
        """What is wrong with a part."""
        try:
            for _ in self.part_rows(part, self.windows[part].last_row, threads=threads):
                pass
        except FormatError as error:
            return str(error)
        return None

    def _fill(self, part: int, wanted: Window, found: NDArray[Any], threads: int = 1) -> None:
        """Copy what a part has of a window."""
        window = self.windows[part]
        common = window.meets(wanted)
        if common is None:
            return
        target, (_, columns) = found[common.within(wanted)], common.within(window)
        row = window.first_row
        begins = row == common.first_row and columns == slice(0, window.last_column - window.first_column)
        into = target if begins and target.flags.c_contiguous and self.mapping is None else None
        for rows in self.part_rows(part, common.last_row, threads=threads, into=into):
            low, high = max(row, common.first_row), min(row + len(rows), common.last_row)
            if low < high and into is None:
                own = target[low - common.first_row : high - common.first_row]
                own[:] = rows[low - row : high - row, columns]
            row += len(rows)

    def read(
        self,
        first: int,
        last: int,
        first_column: int = 0,
        last_column: int | None = None,
        *,
        threads: int = 1,
    ) -> NDArray[Any]:
        """Samples of a window, shape (rows, columns, bands); ends are exclusive, None reads to the end.

        Up to `threads` parts are decoded at a time. InvalidInput if the window is not in the cube,
        FormatError if the file is truncated or damaged there.
        """
        rows, columns, bands = self.shape
        last_column = columns if last_column is None else last_column
        if not (0 <= first <= last <= rows and 0 <= first_column <= last_column <= columns):
            found = f"rows {first} to {last}, columns {first_column} to {last_column}"
            raise InvalidInput("window", found=found, expected=f"one in {rows} rows and {columns} columns")
        wanted = Window(first, last, first_column, last_column)
        found_samples = np.empty((last - first, last_column - first_column, bands), self.dtype)
        parts = [k for k, window in enumerate(self.windows) if window.meets(wanted)]
        if threads == 1 or len(parts) < 2:
            for part in parts:
                self._fill(part, wanted, found_samples, threads)
            return found_samples
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda part: self._fill(part, wanted, found_samples), parts))
        return found_samples

    def _strips(self) -> list[tuple[Window, list[int]]]:
        """Rows of parts that lie beside one another."""
        found: dict[int, list[int]] = {}
        for part, window in enumerate(self.windows):
            found.setdefault(window.first_row, []).append(part)
        columns = self.shape[1]
        return [
            (Window(row, self.windows[parts[0]].last_row, 0, columns), parts) for row, parts in found.items()
        ]

    def _unserved(self) -> str:
        """Why GPUs do not read it, or nothing."""
        if self._index is None or not self._index.light:
            return (
                f"it has no light entry points: plait hsi index writes them for streams of {WORTH:,} samples "
                "and more, and --index gives them"
            )
        from plait.hyperspectral.gpu_codec import unserved_back

        return unserved_back(self.parameters)

    def _by_gpu(self, target: Target | None) -> NDArray[Any] | None:
        """All samples, compared with their checksums; None if the CPU reads them."""
        samples = self.parameters.image.samples
        if not isinstance(target, CudaTarget) or (target.sparing and samples < WORTH):
            return None
        why = self._unserved()
        if why and not target.sparing:
            why = f"{why}; device='cpu' reads them all, and 'auto' leaves them to it"
            raise Unsupported("reading this stream on a GPU", why=why)
        if why or (target.sparing and failed(target.devices)):
            return None
        assert self._index is not None and self._stream is not None
        from plait.hyperspectral.gpu_codec import decompress_rows

        with self._errors(None):
            self.check_bytes()
            entries = self._index.entries(self.parameters)
            assert entries is not None
            try:
                found = decompress_rows(self.parameters, self._stream.body, entries, target.devices)
            except (DeviceFailure, DeviceMemoryError) as error:
                if not target.sparing:
                    raise
                leave(target.devices, error)
                return None
        for part, window in enumerate(self.windows):
            expected, rows = self._samples_crc(part), found[window.first_row : window.last_row]
            with self._errors(part):
                if expected is not None and (crc := samples_crc(rows, self.dtype)) != expected:
                    raise BodyEnd(f"samples with the checksum {crc:08x}, not {expected:08x} of the original")
        return found

    def rows(self, *, threads: int | None = None, device: str = "auto") -> Iterator[NDArray[Any]]:
        """All samples in order, some rows at a time, shape (rows, columns, bands).

        Up to `threads` parts are decoded at a time, by default one per processor; of a plain stream without a
        side index, two read codewords and recover samples. A GPU decodes all at once,
        plain streams with a side index that has light entries. FormatError if the file is truncated or
        damaged; Unsupported if a GPU is asked for that does not read such a stream.
        """
        target = resolve(device, threads)
        whole = self._by_gpu(target)
        if whole is not None:
            step = max(1, _MOST_KEPT_BYTES // max(whole[0].nbytes, 1))
            for first in range(0, len(whole), step):
                yield whole[first : first + step]
            return
        yield from self._by_cpu(thread_count() if threads is None else threads)

    def _by_cpu(self, threads: int) -> Iterator[NDArray[Any]]:
        """All samples in order."""
        bands = self.shape[2]
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            ahead: deque[tuple[NDArray[Any], list[Future[None]]]] = deque()
            held = 0
            try:
                for strip, parts in self._strips():
                    size = strip.pixels * bands * self.dtype.itemsize
                    alone = len(self.windows) == 1 or size > _MOST_KEPT_BYTES
                    while ahead and (alone or held + size > _MOST_KEPT_BYTES or len(ahead) > threads):
                        done = _finished(ahead.popleft())
                        held -= done.nbytes
                        yield done
                    if alone:
                        yield from self._in_steps(strip, parts, pool, threads)
                        continue
                    found = np.empty((strip.last_row - strip.first_row, strip.last_column, bands), self.dtype)
                    held += found.nbytes
                    ahead.append((found, [pool.submit(self._fill, k, strip, found) for k in parts]))
                while ahead:
                    yield _finished(ahead.popleft())
            finally:
                for _, futures in ahead:
                    for future in futures:
                        future.cancel()

    def _in_steps(
        self, strip: Window, parts: list[int], pool: ThreadPoolExecutor, threads: int
    ) -> Iterator[NDArray[Any]]:
        """A strip that is too large for memory, or all there is, some rows at a time."""
        if len(parts) == 1:
            yield from self.part_rows(parts[0], strip.last_row, threads=threads)
            return
        step = max(1, (1 << 22) // (strip.last_column * self.shape[2]))
        under_way = [self.part_rows(part, strip.last_row, step) for part in parts]
        for _ in range(strip.first_row, strip.last_row, step):
            yield np.concatenate(list(pool.map(next, under_way)), axis=1)

    def verify(self, *, threads: int | None = None, progress: Progress | None = None) -> tuple[str, ...]:
        """Decode everything and compare it with the checksums there are; a line for each part that is wrong.

        Up to `threads` parts are decoded at a time, by default one per processor.
        """
        threads = thread_count() if threads is None else threads
        try:
            self.check_bytes()
        except FormatError as error:
            return (str(error),)
        whole, done, wrong = self.shape[0] * self.shape[1] * self.shape[2], 0, []
        parts = range(len(self.windows))
        own = threads if len(parts) == 1 else 1
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            for part, fault in enumerate(pool.map(self.fault, parts, [own] * len(parts))):
                if fault is not None:
                    wrong.append(fault)
                done += self.windows[part].pixels * self.shape[2]
                if progress is not None:
                    progress(done, whole)
        return tuple(wrong)

    def close(self) -> None:
        """Let go of the file."""
        self._stream = None
        self._view.release()
        if isinstance(self._data, mmap.mmap):
            # Whoever still reads rows keeps it open.
            with suppress(BufferError):
                self._data.close()


def _finished(strip: tuple[NDArray[Any], list[Future[None]]]) -> NDArray[Any]:
    for future in strip[1]:
        future.result()
    return strip[0]


def open_stream(
    stream: str | os.PathLike[str] | bytes | bytearray | memoryview,
    *,
    index: str | os.PathLike[str] | None = None,
    **tables: Any,
) -> CompressedCube:
    """Open a compressed cube, a plain stream or a container of blocks.

    Of a file, what `plait.hyperspectral.files.compress_file` has kept beside it is read, too, and compared
    with its bytes and samples when they are read.

    Parameters
    ----------
    stream
        The file, or its bytes.
    index
        Its side index.
    **tables
        Tables that the stream uses and does not carry, see `plait.hyperspectral.header.parse_header`.

    Raises
    ------
    FormatError
        If it is neither, or is truncated or damaged where that shows, or what stands beside it is damaged or
        belongs to another cube.
    InvalidInput
        If there is no such file.
    """
    path = stream if isinstance(stream, str | os.PathLike) else None
    data, name = (stream, "stream") if path is None else (_mapped(path), str(path))
    cube = CompressedCube(data, name, **tables)
    try:
        beside = None if path is None else CubeOrigin.read_beside(path)
        if beside is not None:
            cube.use_description(*beside)
        if index is not None:
            cube.use_index(index)
    except BaseException:
        cube.close()
        raise
    return cube


@contextmanager
def _readable(what: str, path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        found = f"{os.fspath(path)!r}: {error.strerror or error}"
        raise InvalidInput(what, found=found, expected="a file that can be read") from error


def _mapped(path: str | os.PathLike[str]) -> Any:
    with _readable("stream", path), open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
