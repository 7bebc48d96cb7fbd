"""Compress cubes into plain streams or containers of blocks, and read them, a few rows at a time."""

from __future__ import annotations

import hashlib
import itertools
import json
import mmap
import os
import tempfile
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.compression import parse_json
from plait.formats.cubes.layout import CubeLayout
from plait.formats.cubes.origin import CubeOrigin, StreamSeal, check_beside, origin_path
from plait.hyperspectral.codec import Checkpoint, Compressor, StreamDecoder, sample_type
from plait.hyperspectral.codewords import BodyEnd, pieces
from plait.hyperspectral.containers import (
    MAGIC,
    BlockGrid,
    BlockIndex,
    ContainerWriter,
    SideIndex,
    Window,
    block_parameters,
    read_container,
    read_side_index,
    stream_digest,
    write_side_index,
)
from plait.hyperspectral.cubes import CubeSource, image_of
from plait.hyperspectral.header import HeaderEnd
from plait.hyperspectral.parameters import HybridCoder, ImageLayout, StreamParameters
from plait.hyperspectral.presets import outside_tables, preset_parameters
from plait.hyperspectral.waves import rows_at_a_time
from plait.settings import thread_count
from plait.types import Closing

#: Called with the samples done so far, and all of them.
Progress = Callable[[int, int], object]

#: Bytes of samples that are decoded ahead.
_MOST_KEPT_BYTES = 1 << 27


def add_to_part(crcs: list[int], begins: bool, rows: NDArray[Any], kind: np.dtype[Any]) -> None:
    """Go on with the checksum of the last part of a stream, or begin that of the next."""
    if begins:
        crcs.append(0)
    crcs[-1] = samples_crc(rows, kind, crcs[-1])


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
    if dtype.kind != kind.kind:
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

    Several threads may read at once. `shape` is (rows, columns, bands), `dtype` the narrowest integer type
    that holds the samples, `windows` the parts that are decoded independently, in row order. Of a container,
    `parameters` are those of its first block with the size of the whole cube. `data` is the whole file as a
    buffer, `name` is for messages; `tables` are those that the stream uses and does not carry.
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
        self.dtype = sample_type(image)
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
        check_origin(origin, self.shape, self.dtype, self._name)
        self._beside = origin, seal

    @cached_property
    def origin(self) -> CubeOrigin | None:
        """What it came from, if known; FormatError if that is damaged or is of another cube."""
        if _ATTACHMENT not in self.attachments:
            return None if self._beside is None else self._beside[0]
        expected = f"JSON in its attachment {_ATTACHMENT}"
        content = parse_json(self.attachments[_ATTACHMENT], self._name, expected)
        found = CubeOrigin.from_json(content, self._name)
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

    def _fill(self, part: int, wanted: Window, found: NDArray[Any]) -> None:
        """Copy what a part has of a window."""
        window = self.windows[part]
        common = window.meets(wanted)
        if common is None:
            return
        target, (_, columns) = found[common.within(wanted)], common.within(window)
        row = window.first_row
        for rows in self.part_rows(part, common.last_row):
            low, high = max(row, common.first_row), min(row + len(rows), common.last_row)
            if low < high:
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
                self._fill(part, wanted, found_samples)
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

    def rows(self, *, threads: int | None = None) -> Iterator[NDArray[Any]]:
        """All samples in order, some rows at a time, shape (rows, columns, bands).

        Up to `threads` parts are decoded at a time, by default one per processor. FormatError if the file is
        truncated or damaged.
        """
        threads = thread_count() if threads is None else threads
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
                        yield from self._in_steps(strip, parts, pool)
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

    def _in_steps(self, strip: Window, parts: list[int], pool: ThreadPoolExecutor) -> Iterator[NDArray[Any]]:
        """A strip that is too large for memory, some rows at a time."""
        if len(parts) == 1:
            yield from self.part_rows(parts[0], strip.last_row)
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
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            for part, fault in enumerate(pool.map(self.fault, range(len(self.windows)))):
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


_Write = Callable[[bytes], object]

#: Compressed bytes of a block that are kept in memory; more wait in a file.
_MOST_BYTES = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSummary:
    """What was written: `shape` is (rows, columns, bands) of the cube, a plain stream is 1 block."""

    kind: Literal["stream", "blocks"]
    parameters: StreamParameters
    shape: tuple[int, int, int]
    blocks: int
    samples: int
    compressed_bytes: int

    @property
    def bits_per_sample(self) -> float:
        """Compressed bits for each sample."""
        return 8 * self.compressed_bytes / self.samples


class _Compression:
    """A cube on its way into a stream: bytes written and samples done, from whatever thread.

    With `digest`, SHA-256 of the bytes.
    """

    def __init__(
        self,
        source: CubeSource,
        parameters: StreamParameters,
        write: _Write,
        progress: Progress | None,
        *,
        digest: bool,
    ) -> None:
        self._source, self._parameters, self._write = source, parameters, write
        self.digest = hashlib.sha256() if digest else None
        self._lock = threading.Lock()
        self._progress = progress
        self._done = self.size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.digest is not None:
            self.digest.update(data)
        self._write(data)

    def _rows(
        self, parameters: StreamParameters, window: Window, write: _Write, every: int
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Compress a window some rows at a time, up to multiples of `every`; the rows, once written."""
        compressor = Compressor(parameters, write)
        row, step = window.first_row, rows_at_a_time(parameters.image)
        while row < window.last_row:
            end = min(row + step, row - row % every + every, window.last_row)
            rows = self._source.read(row, end, window.first_column, window.last_column)
            compressor.write(rows)
            yield row, rows
            with self._lock:
                self._done += rows.size
                if self._progress is not None:
                    self._progress(self._done, self._parameters.image.samples)
            row = end
        compressor.close()

    def plain(self, crcs: list[int] | None) -> int:
        """Write a plain stream; CRC-32 of its samples if there is a digest, and of parts if asked for."""
        image, samples = self._parameters.image, 0
        kind, every = sample_type(image), index_rows(image)
        window = Window(0, image.rows, 0, image.columns)
        for row, rows in self._rows(self._parameters, window, self.write, every):
            if self.digest is not None:
                samples = samples_crc(rows, kind, samples)
            if crcs is not None:
                add_to_part(crcs, row % every == 0, rows, kind)
        return samples

    def _block(self, window: Window, checksum: bool) -> tuple[IO[bytes], int]:
        """The stream of a block and the checksum of its samples."""
        own = block_parameters(self._parameters, window)
        kind, crc = sample_type(own.image), 0
        file = tempfile.SpooledTemporaryFile(max_size=_MOST_BYTES, prefix="plait-")  # noqa: SIM115  # given away
        for _, rows in self._rows(own, window, file.write, window.last_row):
            if checksum:
                crc = samples_crc(rows, kind, crc)
        file.seek(0)
        return file, crc

    def blocks(self, grid: BlockGrid, container: ContainerWriter, checksum: bool, threads: int) -> None:
        """Write the blocks of a container, so many of them compressed at a time."""
        under_way: deque[Future[tuple[IO[bytes], int]]] = deque()

        def write_first() -> None:
            file, crc = under_way.popleft().result()
            with file:
                container.add(iter(lambda: file.read(1 << 20), b""), crc)

        with ThreadPoolExecutor(threads) as pool:
            try:
                for window in grid:
                    if len(under_way) > threads:
                        write_first()
                    under_way.append(pool.submit(self._block, window, checksum))
                while under_way:
                    write_first()
            finally:
                for future in under_way:
                    future.cancel()


def compress_cube(
    source: CubeSource,
    target: str | os.PathLike[str] | _Write,
    *,
    parameters: StreamParameters | None = None,
    preset: str = "default",
    blocks: str | None = None,
    index: str | os.PathLike[str] | None = None,
    checksum: bool = False,
    attachments: Mapping[str, bytes] | None = None,
    origin: CubeOrigin | None = None,
    bare: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> StreamSummary:
    """Compress a cube.

    Beside the file of a plain stream, a file of its name with ``.json`` added keeps checksums of the stream
    and of the samples, with which they are compared when they are read.

    Parameters
    ----------
    source
        The cube.
    target
        The file, which appears when it is whole, or a function that is called with the bytes in order.
    parameters
        What the header says; None for a preset.
    preset
        ``"fast"``, ``"default"`` or ``"best"``, see `plait.hyperspectral.presets`.
    blocks
        ``"rows:N"`` or ``"tiles:YxX"`` for a container of independent blocks; None for a plain stream.
    index
        Where to write the side index of a plain stream; see `make_index`.
    checksum
        Whether to keep checksums of the samples: in the container, or in the side index.
    attachments
        Named bytes to keep in a container, such as the ENVI header.
    origin
        What the cube came from, to be kept beside a plain stream.
    bare
        Keep nothing beside the stream, and no checksums.
    threads
        Blocks that are compressed at a time; None for as many as there are processors.
    progress
        Called as it goes on.

    Returns
    -------
    StreamSummary
        What was written.

    Raises
    ------
    InvalidInput
        If the parameters do not go with the cube or with one another.
    FormatError
        If the file cannot be written.
    """
    image = image_of(source) if parameters is None else parameters.image
    grid = None if blocks is None else BlockGrid.parse(blocks, image)
    if parameters is None:
        parameters = preset_parameters(image, preset, None if grid is None else grid.block_pixels)
    _check_options(source, parameters, target, blocks, index, checksum, attachments)
    crcs: list[int] | None = [] if checksum and index is not None else None
    seal: StreamSeal | None = None
    sealed = grid is None and not bare and not callable(target)
    if sealed:
        check_beside(target)  # type: ignore[arg-type]  # it is the name of a file

    def run(write: _Write) -> int:
        nonlocal seal
        made = _Compression(source, parameters, write, progress, digest=sealed)
        if grid is None:
            samples = made.plain(crcs)
            if made.digest is not None:
                seal = StreamSeal(made.size, made.digest.hexdigest(), samples)
        else:
            workers = thread_count() if threads is None else max(threads, 1)
            container = ContainerWriter(made.write, image, grid, checksums=checksum)
            made.blocks(grid, container, checksum, workers)
            container.close(attachments or {})
        return made.size

    if callable(target):
        size = run(target)
    else:
        with AtomicFile(target) as file, output_errors(target):
            size = run(file.stream.write)
        if seal is None:
            CubeOrigin.remove_beside(target)
        else:
            (origin or _array_origin(image)).write_beside(target, seal)
        if index is not None:
            make_index(target, index, checksums=crcs, tables=outside_tables(parameters))
    return StreamSummary(
        kind="stream" if grid is None else "blocks",
        parameters=parameters,
        shape=(image.rows, image.columns, image.bands),
        blocks=1 if grid is None else len(grid),
        samples=image.samples,
        compressed_bytes=size,
    )


def _array_origin(image: ImageLayout) -> CubeOrigin:
    kind = sample_type(image)
    layout = CubeLayout(rows=image.rows, columns=image.columns, bands=image.bands, dtype=kind)
    return CubeOrigin(format="array", layout=layout)


def _check_options(
    source: CubeSource,
    parameters: StreamParameters,
    target: object,
    blocks: str | None,
    index: object,
    checksum: bool,
    attachments: Mapping[str, bytes] | None,
) -> None:
    image = parameters.image
    if (source.rows, source.columns, source.bands) != (image.rows, image.columns, image.bands):
        raise InvalidInput(
            "cube",
            found=f"{source.rows} rows, {source.columns} columns, {source.bands} bands",
            expected=f"{image.rows}, {image.columns} and {image.bands}, as the parameters say",
        )
    if index is not None and (blocks is not None or callable(target)):
        found = "one for a container" if blocks is not None else "one for a stream without a file"
        raise InvalidInput(
            "index", found=found, expected="none: a side index goes with a plain stream's file"
        )
    if index is not None and isinstance(parameters.coder, HybridCoder):
        hint = "use blocks"
        raise InvalidInput("index", found="one for the hybrid coder", expected="another coder", hint=hint)
    if checksum and blocks is None and index is None:
        hint = "ask for blocks, or for a side index"
        raise InvalidInput("checksum", found="a plain stream", expected="room for it", hint=hint)
    if attachments and blocks is None:
        hint = "keep them in a file beside it, or ask for blocks"
        raise InvalidInput("attachments", found="a plain stream", expected="room for them", hint=hint)


def index_rows(image: ImageLayout) -> int:
    """Rows between the entries of a side index: an entry takes about as much room as two or three rows."""
    return max(64, -(-image.rows // 64))


def make_index(
    stream: str | os.PathLike[str],
    index: str | os.PathLike[str],
    *,
    every: int | None = None,
    checksums: list[int] | None = None,
    tables: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> None:
    """Decode a plain stream once, and write its side index, with an entry every `every` rows.

    `checksums` are expected CRC-32s of the samples between entries; None takes those of what is decoded.
    FormatError if the stream is damaged or the index cannot be written, InvalidInput if the samples do not
    match or the file is a container, Unsupported for the hybrid coder.
    """
    with open_stream(stream, **(tables or {})) as cube:
        if cube.kind != "stream":
            raise InvalidInput("stream", found="a container of blocks", expected="a plain stream")
        every = index_rows(cube.parameters.image) if every is None else every
        found: list[Checkpoint] = []
        crcs: list[int] = []
        row, whole = 0, cube.parameters.image.samples
        for rows in cube.rows_with_checkpoints(every, found.append):
            add_to_part(crcs, row % every == 0, rows, cube.dtype)
            row += len(rows)
            if progress is not None:
                progress(row * cube.shape[1] * cube.shape[2], whole)
        if checksums is not None and checksums != crcs:
            part = next(k for k, pair in enumerate(zip(checksums, crcs, strict=True)) if pair[0] != pair[1])
            where = f"part {part} of {os.fspath(stream)!r}"
            raise InvalidInput(where, found="other samples than were compressed", expected="the same")
        with AtomicFile(index) as file, output_errors(index):
            write_side_index(file.stream.write, cube._view, found, crcs)
