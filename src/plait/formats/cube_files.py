"""Cubes in plain files: any window is read, without mapping the file.

Nothing is mapped into memory: pages of a mapped file count as memory of the process, which then seems to grow
with the cube, and a file that another program shortens would end the process.
"""

from __future__ import annotations

import math
import os
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.cube_layout import CubeLayout
from plait.formats.cube_source import FileCube

__all__ = ["CubeFile", "check_file_size"]

#: A span with samples that are not asked for is read at once up to this size, and in pieces beyond.
_MOST_SPAN = 1 << 26
_FILE_AXES = "yxz"


def check_file_size(path: str | os.PathLike[str], layout: CubeLayout, found: int | None = None) -> None:
    """Check that a file has as many bytes as its layout needs.

    Parameters
    ----------
    path
        The file.
    layout
        How samples lie in it.
    found
        Its size, if known.

    Raises
    ------
    FormatError
        If it has more or fewer; the message names both.
    """
    size = os.stat(path).st_size if found is None else found
    if size == layout.file_bytes:
        return
    before = f" after {layout.offset:,} bytes of header" if layout.offset else ""
    more = size - layout.file_bytes
    told = f"{more:,} too many" if more > 0 else f"{-more:,} too few"
    raise FormatError(
        path,
        found=f"{size:,} bytes ({told})",
        expected=f"{layout.file_bytes:,} bytes for {layout.describe()}{before}",
        hint="the file is not complete, or its shape, type of samples or header offset is another",
    )


class CubeFile(FileCube):
    """A cube in a file of plain samples, of which any window can be read; several threads may.

    Parameters
    ----------
    path
        The file.
    layout
        How samples lie in it.

    Raises
    ------
    FormatError
        If the file cannot be read, or its size is not that of the layout.
    """

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout) -> None:
        super().__init__(path, layout, ahead=layout.axes[0] != "y")
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by close()
        except OSError as error:
            raise FormatError(path, found=error.strerror or error, expected="a file to read") from error
        try:
            check_file_size(path, layout, os.fstat(self._file.fileno()).st_size)
        except BaseException:
            self._file.close()
            raise
        # A cube that is forgotten lets go of its file.
        weakref.finalize(self, self._file.close)

    def _read(self, first: int, last: int, first_column: int, last_column: int) -> NDArray[Any]:
        window = {
            "y": range(first, last),
            "x": range(first_column, last_column),
            "z": range(self.bands),
        }
        ranges = [window[axis] for axis in self.layout.axes]
        lengths = [len(one) for one in ranges]
        if all(len(one) == size for one, size in zip(ranges[1:], self.layout.shape[1:], strict=True)):
            # All of it lies together: not copied.
            step = math.prod(lengths[1:])
            found = self._samples(ranges[0].start * step, lengths[0] * step)
            out = found.reshape(lengths).astype(self.dtype, copy=False)
        else:
            out = np.empty(lengths, self.dtype)
            self._fill(out, ranges, self.layout.shape, 0)
        return out.transpose([self.layout.axes.index(axis) for axis in _FILE_AXES])

    def _fill(self, out: NDArray[Any], ranges: list[range], shape: tuple[int, ...], first: int) -> None:
        """Fill an array from a sub-cube that starts `first` samples after the first one."""
        steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        start = sum(one.start * step for one, step in zip(ranges, steps, strict=True))
        last = sum((one.stop - 1) * step for one, step in zip(ranges, steps, strict=True))
        span = last + 1 - start
        exact = span == out.size
        if len(shape) == 1 or exact or (span * out.itemsize <= _MOST_SPAN and span <= 4 * out.size):
            found = self._samples(first + start, span)
            strides = [step * found.itemsize for step in steps]
            out[...] = np.lib.stride_tricks.as_strided(found, out.shape, strides, writeable=False)
            return
        for k, index in enumerate(ranges[0]):
            self._fill(out[k], ranges[1:], shape[1:], first + index * steps[0])

    def _samples(self, first: int, count: int) -> NDArray[Any]:
        kind = self.layout.dtype
        data = np.empty(count, kind)
        view = data.view(np.uint8).data
        position, done = self.layout.offset + first * kind.itemsize, 0
        while done < len(view):
            try:
                got = os.preadv(self._file.fileno(), [view[done : done + (1 << 30)]], position + done)
            except OSError as error:
                raise FormatError(
                    self.path, found=error.strerror or error, expected="a file to read"
                ) from error
            if not got:
                found = f"an end after {position + done:,} bytes"
                raise FormatError(self.path, found=found, expected=f"{self.layout.file_bytes:,} bytes")
            done += got
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()
