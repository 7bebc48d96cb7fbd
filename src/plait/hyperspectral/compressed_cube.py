"""Compressed cubes open for reading: plain streams, streams with a side index, and containers of blocks."""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.cube_origin import CubeOrigin
from plait.hyperspectral.block_grid import Window
from plait.hyperspectral.stream_parts import StreamParts
from plait.settings import thread_count

__all__ = ["CompressedCube", "Progress", "open_stream"]

#: Called with the samples done so far, and all of them.
Progress = Callable[[int, int], object]

#: Bytes of samples that are decoded ahead.
_MOST_BYTES = 1 << 27


class CompressedCube(StreamParts):
    """A compressed cube that is open for reading; a context manager.

    Several threads may read at once. `open_stream` makes one.

    Attributes
    ----------
    kind
        ``"stream"`` or ``"blocks"``.
    parameters
        Of the stream; of a container, those of its first block with the size of the whole cube.
    shape
        Rows, columns and bands.
    dtype
        The narrowest integer type that holds the samples.
    attachments
        Named bytes kept in a container.
    origin
        What it came from, if that is known.
    has_checksums
        Whether samples are compared with checksums of the original ones.
    unknown
        What `verify` cannot know, for lack of checksums; None if there is nothing.
    windows
        Parts that are decoded independently of one another, row by row of them.
    compressed_bytes
        Size of the file.
    """

    def _fill(self, part: int, wanted: Window, found: NDArray[Any]) -> None:
        """Copy what a part has of a window."""
        window = self.windows[part]
        common = window.meets(wanted)
        if common is None:
            return
        columns = slice(common.first_column - window.first_column, common.last_column - window.first_column)
        place = slice(common.first_column - wanted.first_column, common.last_column - wanted.first_column)
        row = window.first_row
        for rows in self.part_rows(part, common.last_row):
            low, high = max(row, common.first_row), min(row + len(rows), common.last_row)
            if low < high:
                own = found[low - wanted.first_row : high - wanted.first_row, place]
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
        """Samples of a window, shape (rows, columns, bands).

        Parameters
        ----------
        first, last
            Its rows, `last` not among them.
        first_column, last_column
            Its columns, likewise; None for all that follow.
        threads
            Parts that are decoded at a time.

        Raises
        ------
        InvalidInput
            If the window is not in the cube.
        FormatError
            If the file is truncated or damaged there.
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

        Parameters
        ----------
        threads
            Parts that are decoded at a time; None for as many as there are processors.

        Yields
        ------
        NDArray
            Samples, shape (rows, columns, bands).

        Raises
        ------
        FormatError
            If the file is truncated or damaged.
        """
        threads = thread_count() if threads is None else threads
        bands = self.shape[2]
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            ahead: deque[tuple[NDArray[Any], list[Future[None]]]] = deque()
            held = 0
            try:
                for strip, parts in self._strips():
                    size = strip.pixels * bands * self.dtype.itemsize
                    alone = len(self.windows) == 1 or size > _MOST_BYTES
                    while ahead and (alone or held + size > _MOST_BYTES or len(ahead) > threads):
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
        """Decode everything, and compare it with the checksums that there are.

        Parameters
        ----------
        threads
            Parts that are decoded at a time; None for as many as there are processors.
        progress
            Called as it goes on.

        Returns
        -------
        tuple of str
            What is wrong, a line for each part; nothing if all is right.
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

    def __enter__(self) -> CompressedCube:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
    if not isinstance(stream, str | os.PathLike):
        return _indexed(CompressedCube(stream, "stream", **tables), index)
    cube = CompressedCube(_mapped(stream), str(stream), **tables)
    try:
        beside = CubeOrigin.read_beside(stream)
        if beside is not None:
            cube.use_description(*beside)
        return _indexed(cube, index)
    except BaseException:
        cube.close()
        raise


def _indexed(cube: CompressedCube, index: str | os.PathLike[str] | None) -> CompressedCube:
    if index is not None:
        cube.use_index(index)
    return cube


def _mapped(path: str | os.PathLike[str]) -> Any:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        found = f"{os.fspath(path)!r}: {error.strerror or error}"
        raise InvalidInput("stream", found=found, expected="a file that can be read") from error
