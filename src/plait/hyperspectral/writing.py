"""Compress cubes into plain streams or containers of blocks, a few rows at a time."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Target, resolve
from plait.errors import InvalidInput
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.cubes.layout import CubeLayout
from plait.formats.cubes.origin import CubeOrigin, StreamSeal, check_beside
from plait.hyperspectral.choosing import fallback_of, parameters_for
from plait.hyperspectral.codec import (
    WORTH,
    Checkpoint,
    Compressor,
    NewBytes,
    find_entries,
    sample_type,
    update_rows,
)
from plait.hyperspectral.containers import (
    BlockGrid,
    ContainerWriter,
    Window,
    block_parameters,
    write_side_index,
)
from plait.hyperspectral.cubes import CubeSource, image_of
from plait.hyperspectral.mapping import MappedCube, is_mapped, mapped
from plait.hyperspectral.parameters import HybridCoder, ImageLayout, StreamParameters
from plait.hyperspectral.presets import outside_tables
from plait.hyperspectral.streams import Progress, attachment_of, open_stream, samples_crc
from plait.settings import thread_count


def add_to_part(crcs: list[int], begins: bool, rows: NDArray[Any], kind: np.dtype[Any]) -> None:
    """Go on with the checksum of the last part of a stream, or begin that of the next."""
    if begins:
        crcs.append(0)
    crcs[-1] = samples_crc(rows, kind, crcs[-1])


_Write = Callable[[bytes], object]

#: Bytes of a block, before it is compressed, whose stream is kept in memory; others wait in a file.
_MOST_BYTES = 1 << 25


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


def _pieces_of(file: IO[bytes]) -> Iterator[bytes]:
    """What was written to a file, which is closed behind it."""
    with file:
        file.seek(0)
        yield from iter(lambda: file.read(1 << 20), b"")


class _Compression:
    """A cube on its way into a stream: bytes written and samples done, from whatever thread.

    With `digest`, SHA-256 of the bytes and CRC-32 of the samples of a plain stream, `samples_crc`; with
    `checksum`, those of blocks or, in `crcs`, of the parts between entries of an index.
    """

    def __init__(
        self,
        source: CubeSource,
        parameters: StreamParameters,
        write: _Write,
        progress: Progress | None,
        *,
        digest: bool,
        checksum: bool,
        keeps: bool,
        target: Target | None = None,
    ) -> None:
        self._target, self._checksum, self._keeps = target, checksum, keeps
        self.crcs: list[int] = []
        self.samples_crc = 0
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
        self, parameters: StreamParameters, window: Window, write: _Write, every: int, threads: int = 1
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Compress a window some rows at a time, up to multiples of `every`; the rows as they are read."""
        # Only what was given as a function may keep what it is called with.
        keeps = write == self.write and self._keeps
        compressor = Compressor(parameters, write, self._target, keeps=keeps, threads=threads)
        row, step = window.first_row, compressor.step
        while row < window.last_row:
            end = min(row + step, row - row % every + every, window.last_row)
            rows = self._source.read(row, end, window.first_column, window.last_column)
            yield row, compressor.write(rows)
            with self._lock:
                self._done += rows.size
                if self._progress is not None:
                    self._progress(self._done, self._parameters.image.samples)
            row = end
        compressor.close()

    def all(self, grid: BlockGrid | None, attachments: Mapping[str, bytes], threads: int) -> None:
        """Write everything: a plain stream, or a container of the blocks of a grid."""
        if grid is None:
            self._plain(threads)
        else:
            self._blocks(grid, attachments, threads)

    def _plain(self, threads: int) -> None:
        """Write a plain stream."""
        image = self._parameters.image
        kind, every = sample_type(image), index_rows(self._parameters)
        window = Window(0, image.rows, 0, image.columns)
        for row, rows in self._rows(self._parameters, window, self.write, every, threads):
            if self.digest is not None:
                self.samples_crc = samples_crc(rows, kind, self.samples_crc)
            if self._checksum:
                add_to_part(self.crcs, row % every == 0, rows, kind)

    def _block(self, window: Window) -> tuple[Iterable[bytes], int, int | None]:
        """The stream of a block, the checksum of its samples and, if it is known, that of the stream."""
        own = block_parameters(self._parameters, window)
        kind, crc = sample_type(own.image), 0
        small = own.image.samples * own.image.dynamic_range >> 3 <= _MOST_BYTES
        stream = NewBytes.of(own.image) if small else tempfile.TemporaryFile(prefix="plait-")  # noqa: SIM115  # closed behind its pieces
        for _, rows in self._rows(own, window, stream.write, window.last_row):
            if self._checksum:
                crc = samples_crc(rows, kind, crc)
        if isinstance(stream, NewBytes):
            data = stream.take()
            return [data], crc, zlib.crc32(data)
        return _pieces_of(stream), crc, None

    def _blocks(self, grid: BlockGrid, attachments: Mapping[str, bytes], threads: int) -> None:
        """Write a container, so many blocks of it compressed at a time."""
        container = ContainerWriter(self.write, self._parameters.image, grid, checksums=self._checksum)
        under_way: deque[Future[tuple[Iterable[bytes], int, int | None]]] = deque()

        def write_first() -> None:
            container.add(*under_way.popleft().result())

        with ThreadPoolExecutor(threads) as pool:
            try:
                for window in grid:
                    if len(under_way) > threads:
                        write_first()
                    under_way.append(pool.submit(self._block, window))
                while under_way:
                    write_first()
            finally:
                for future in under_way:
                    future.cancel()
        container.close(attachments)


def compress_cube(
    source: CubeSource,
    target: str | os.PathLike[str] | _Write,
    *,
    parameters: StreamParameters | None = None,
    preset: str = "default",
    fallback: StreamParameters | None = None,
    blocks: str | None = None,
    index: str | os.PathLike[str] | None = None,
    checksum: bool = False,
    attachments: Mapping[str, bytes] | None = None,
    origin: CubeOrigin | None = None,
    bare: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    device: str = "auto",
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
        ``"fast"``, ``"default"``, ``"best"`` or ``"auto"``, see `plait.hyperspectral.presets`.
    fallback
        Parameters of the same image that are taken instead where they make a smaller stream: the cube is
        compressed with them as well. With the preset ``"auto"``, those of ``"fast"``, unless it is known.
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
        Blocks that are compressed at a time; None for as many as there are processors. Two or more code
        some rows of a plain stream while the next ones are predicted.
    progress
        Called as it goes on.
    device
        Name of a device, see `plait.devices.target`.

    Returns
    -------
    StreamSummary
        What was written; the bytes are the same from all devices.

    Raises
    ------
    InvalidInput
        If the parameters do not go with the cube or with one another.
    Unsupported
        If a GPU is asked for that does not make such streams.
    FormatError
        If the file cannot be written.
    """
    target_device = resolve(device)
    source = mapped(source) if is_mapped(source.dtype) else source
    origin, attachments = _with_mapping(source, origin, attachments, target, blocks, bare)
    image = _image(source) if parameters is None else parameters.image
    grid = None if blocks is None else BlockGrid.parse(blocks, image)
    if parameters is None:
        parameters = parameters_for(source, image, preset, grid)
        fallback = fallback_of(image, preset, grid)
    fallback = None if fallback == parameters else fallback
    for one in (parameters, fallback):
        if one is not None:
            _check_options(source, one, target, grid, index, checksum, attachments)
    sealed = grid is None and not bare and not callable(target)
    if sealed:
        check_beside(target)  # type: ignore[arg-type]  # it is the name of a file

    def run(own: StreamParameters, write: _Write, told: Progress | None = progress) -> _Compression:
        how = {"digest": sealed, "checksum": checksum, "keeps": callable(target)}
        made = _Compression(source, own, write, told, **how, target=target_device)
        made.all(grid, attachments or {}, thread_count() if threads is None else max(threads, 1))
        return made

    def size(own: StreamParameters) -> int:
        return run(own, lambda data: None, None).size

    if callable(target):
        if fallback is not None:
            parameters = min((parameters, fallback), key=size)
        return _summary(parameters, grid, run(parameters, target).size)
    with AtomicFile(target) as file, output_errors(target):
        made = run(parameters, file.stream.write)
        if fallback is not None and size(fallback) < made.size:
            file.stream.seek(0)
            file.stream.truncate()
            parameters, made = fallback, run(fallback, file.stream.write)
    if made.digest is None:
        CubeOrigin.remove_beside(target)
    else:
        seal = StreamSeal(made.size, made.digest.hexdigest(), made.samples_crc)
        (origin or _array_origin(image, sample_type(image))).write_beside(target, seal)
    if index is not None:
        make_index(target, index, checksums=made.crcs or None, tables=outside_tables(parameters))
    return _summary(parameters, grid, made.size)


def _summary(parameters: StreamParameters, grid: BlockGrid | None, size: int) -> StreamSummary:
    image = parameters.image
    return StreamSummary(
        kind="stream" if grid is None else "blocks",
        parameters=parameters,
        shape=(image.rows, image.columns, image.bands),
        blocks=1 if grid is None else len(grid),
        samples=image.samples,
        compressed_bytes=size,
    )


def _image(source: CubeSource) -> ImageLayout:
    return image_of(source, source.bits if isinstance(source, MappedCube) else None)


def _with_mapping(
    source: CubeSource,
    origin: CubeOrigin | None,
    attachments: Mapping[str, bytes] | None,
    target: object,
    blocks: str | None,
    bare: bool,
) -> tuple[CubeOrigin | None, Mapping[str, bytes] | None]:
    """The origin with what makes samples of integers again; InvalidInput if there is no room for it."""
    if not isinstance(source, MappedCube):
        return origin, attachments
    dtype = source.mapping.dtype
    if bare or (blocks is None and callable(target)):
        found = f"samples of type {dtype}, and nothing kept of what they were"
        expected = "a description of them beside the stream, or in a container of blocks"
        raise InvalidInput("cube", found=found, expected=expected)
    if origin is None:
        origin = _array_origin(image_of(source), np.dtype(dtype))
    origin = replace(origin, mapping=source.mapping.to_json())
    return origin, attachments if blocks is None else {**(attachments or {}), **attachment_of(origin)}


def _array_origin(image: ImageLayout, kind: np.dtype[Any]) -> CubeOrigin:
    layout = CubeLayout(rows=image.rows, columns=image.columns, bands=image.bands, dtype=kind)
    return CubeOrigin(format="array", layout=layout)


def _check_limits(source: CubeSource, parameters: StreamParameters, grid: BlockGrid | None) -> None:
    """InvalidInput, before anything is written, if error limits do not go with the cube or its blocks."""
    limits = parameters.predictor.error_limits
    if limits is None:
        return
    if isinstance(source, MappedCube):
        found = f"a near-lossless stream of samples of type {source.mapping.dtype}"
        expected = "a lossless one: others than integers of up to 32 bits are kept bit for bit"
        raise InvalidInput("error_limits", found=found, expected=expected)
    limits.of_period(0)
    if grid is not None and grid.block_rows < parameters.image.rows:
        limits.of_rows(grid.block_rows, parameters.image.rows)


def _check_options(
    source: CubeSource,
    parameters: StreamParameters,
    target: object,
    grid: BlockGrid | None,
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
    _check_limits(source, parameters, grid)
    if index is not None and (grid is not None or callable(target)):
        found = "one for a container" if grid is not None else "one for a stream without a file"
        raise InvalidInput(
            "index", found=found, expected="none: a side index goes with a plain stream's file"
        )
    if index is not None and isinstance(parameters.coder, HybridCoder):
        hint = "use blocks"
        raise InvalidInput("index", found="one for the hybrid coder", expected="another coder", hint=hint)
    if checksum and grid is None and index is None:
        hint = "ask for blocks, or for a side index"
        raise InvalidInput("checksum", found="a plain stream", expected="room for it", hint=hint)
    if attachments and grid is None:
        hint = "keep them in a file beside it, or ask for blocks"
        raise InvalidInput("attachments", found="a plain stream", expected="room for them", hint=hint)


def index_rows(parameters: StreamParameters) -> int:
    """Rows between the entries of a side index: an entry takes about as much room as two or three rows."""
    period = update_rows(parameters.predictor.error_limits) or 1
    return -(-max(64, -(-parameters.image.rows // 64)) // period) * period


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
        parameters = cube.parameters
        period = update_rows(parameters.predictor.error_limits) or 1
        every = index_rows(parameters) if every is None else every
        if every % period:
            expected = f"a multiple of {period}, for error limits are updated so often"
            raise InvalidInput("every", found=str(every), expected=expected)
        found: list[Checkpoint] = []
        crcs: list[int] = []
        row, whole = 0, parameters.image.samples
        for rows in cube.rows_with_checkpoints(every, found.append):
            add_to_part(crcs, row % every == 0, rows, cube.stored_type)
            row += len(rows)
            if progress is not None:
                progress(row * cube.shape[1] * cube.shape[2], whole)
        if checksums is not None and checksums != crcs:
            part = next(k for k, pair in enumerate(zip(checksums, crcs, strict=True)) if pair[0] != pair[1])
            where = f"part {part} of {os.fspath(stream)!r}"
            raise InvalidInput(where, found="other samples than were compressed", expected="the same")
        with AtomicFile(index) as file, output_errors(index):
            assert cube._stream is not None
            # Few samples are read before a GPU has started.
            light = find_entries(cube._stream) if whole >= WORTH else None
            write_side_index(file.stream.write, cube._view, found, crcs, light)
