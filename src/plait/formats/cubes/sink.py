"""Plain files of samples that are written row by row, in any interleave."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.cubes.layout import CubeLayout


class RowWriter(ABC):
    """A file that appears under its name when complete; rows come in order, and are written `step` at a time.

    A context manager: it closes on a clean exit, and aborts on any exception. `layout` is that of samples in
    the file; `dtype` is their type in the byte order of this machine.
    """

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout, step: int = 1) -> None:
        self.path = os.fspath(path)
        self.layout = layout
        self.dtype = layout.dtype.newbyteorder("=")
        self._step = max(1, step)
        self._row = 0
        self._waiting: list[NDArray[Any]] = []

    def write_rows(self, rows: NDArray[Any]) -> None:
        """Append rows of integers, shape (rows, columns, bands); they are copied.

        InvalidInput if the shape is another, there are too many rows, or a sample does not fit the type of
        the file; FormatError if the file cannot be written.
        """
        layout = self.layout
        if rows.ndim != 3 or rows.shape[1:] != (layout.columns, layout.bands):
            expected = f"(rows, {layout.columns}, {layout.bands})"
            raise InvalidInput("shape of the rows", found=str(rows.shape), expected=expected)
        known = self._row + self._held() + len(rows)
        if known > layout.rows:
            raise InvalidInput("rows", found=f"{known}", expected=f"{layout.rows}")
        _check_range(rows, layout.dtype)
        # A copy, because who gives them may use the array again.
        self._waiting.append(rows.astype(self.dtype))
        self._put(self._held() // self._step * self._step)

    def _held(self) -> int:
        return sum(map(len, self._waiting))

    def _put(self, count: int) -> None:
        if not count:
            return
        rows = np.concatenate(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
        self._write(self._row, rows[:count])
        self._row += count
        self._waiting = [rows[count:]]

    def close(self) -> None:
        """Make the file appear under its name.

        InvalidInput if rows are missing, FormatError if it cannot be written; the file is discarded then.
        """
        try:
            self._put(self._held())
            if self._row != self.layout.rows:
                raise InvalidInput("rows", found=f"{self._row}", expected=f"{self.layout.rows}")
            self._finish()
        except BaseException:
            self.abort()
            raise

    @abstractmethod
    def _write(self, row: int, rows: NDArray[Any]) -> None:
        """Write rows from row number `row` on."""

    @abstractmethod
    def _finish(self) -> None:
        """Make the complete file appear."""

    @abstractmethod
    def abort(self) -> None:
        """Remove the unfinished file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abort()


def _check_range(rows: NDArray[Any], kind: np.dtype[Any]) -> None:
    """Refuse samples that a type cannot hold, which a conversion would change without a word."""
    if rows.dtype.kind not in "iu":
        raise InvalidInput("rows", found=f"samples of type {rows.dtype}", expected="integers")
    if not rows.size or np.can_cast(rows.dtype, kind):
        return
    limits = np.iinfo(kind)
    for value in (int(rows.min()), int(rows.max())):
        if not limits.min <= value <= limits.max:
            expected = f"{limits.min} to {limits.max}, as {kind.name} holds"
            raise InvalidInput("sample", found=str(value), expected=expected)


#: Where the rows of a file do not lie together, so many bytes of them are written at a time.
_AHEAD = 1 << 26
_FILE_AXES = "yxz"


class CubeFileWriter(RowWriter):
    """A file of plain samples that appears under its name when complete; rows come in order.

    A context manager: it commits on a clean exit, and discards on any exception. `prefix` is the bytes before
    the first sample, as many as the layout says. InvalidInput or FormatError if the file cannot be written,
    see `plait.formats.atomic.AtomicFile`.
    """

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout, prefix: bytes = b"") -> None:
        if len(prefix) != layout.offset:
            expected = f"{layout.offset:,} bytes, the offset of the layout"
            raise InvalidInput("prefix", found=f"{len(prefix):,} bytes", expected=expected)
        together = layout.axes[0] == "y"
        row_bytes = layout.columns * layout.bands * layout.dtype.itemsize
        super().__init__(path, layout, 1 if together else _AHEAD // row_bytes)
        self._file = AtomicFile(path)
        self._descriptor = self._file.stream.fileno()
        try:
            with output_errors(path):
                self._file.stream.truncate(layout.file_bytes)
                self._put_bytes(prefix, 0)
        except BaseException:
            self._file.discard()
            raise

    def _put_bytes(self, data: bytes | memoryview, position: int) -> None:
        view = memoryview(data).cast("B")
        while view:
            done = os.pwrite(self._descriptor, view[: 1 << 30], position)
            view, position = view[done:], position + done

    def _write(self, row: int, rows: NDArray[Any]) -> None:
        order = [_FILE_AXES.index(axis) for axis in self.layout.axes]
        data = np.ascontiguousarray(rows.transpose(order), self.layout.dtype)
        with output_errors(self.path):
            self._put_pieces(data, self.layout.shape, row, 0)

    def _put_pieces(self, data: NDArray[Any], shape: tuple[int, ...], row: int, first: int) -> None:
        """Write what lies together in the file at once: all below the axis of the rows."""
        step = math.prod(shape[1:])
        if len(shape) + self.layout.axes.index("y") == 3:
            position = self.layout.offset + (first + row * step) * data.itemsize
            self._put_bytes(data.reshape(-1).view(np.uint8).data, position)
            return
        for k in range(shape[0]):
            self._put_pieces(data[k], shape[1:], row, first + k * step)

    def _finish(self) -> None:
        self._file.commit()

    def abort(self) -> None:
        """Remove the unfinished file."""
        self._file.discard()
