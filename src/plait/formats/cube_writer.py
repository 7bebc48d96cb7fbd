"""Plain files of samples that are written row by row, in any interleave."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.cube_layout import CubeLayout
from plait.formats.cube_sink import RowWriter

__all__ = ["CubeFileWriter"]

#: Where the rows of a file do not lie together, so many bytes of them are written at a time.
_AHEAD = 1 << 26
_FILE_AXES = "yxz"


class CubeFileWriter(RowWriter):
    """A file of plain samples that appears under its name when it is complete; rows come in order.

    A context manager: it commits on a clean exit, and discards on any exception.

    Parameters
    ----------
    path
        The file.
    layout
        How samples shall lie in it.
    prefix
        The bytes before the first sample, as many as the layout says.

    Raises
    ------
    InvalidInput, FormatError
        If the file cannot be written, see `plait.formats.atomic.AtomicFile`.
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
