"""Residuals that wait for their turn, because a stream has them in another order than they are found in."""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.hyperspectral.parameters import ImageLayout

__all__ = ["ResidualStore"]

#: Bytes that wait in memory; more wait in a file.
_MOST_BYTES = 1 << 26


class ResidualStore:
    """All residuals of an image, in memory or in a file that has no name and vanishes with its user.

    Parameters
    ----------
    image
        Size of the image.
    rows
        Rows that are stored, if not all.
    most_bytes
        Bytes that may wait in memory.
    """

    def __init__(self, image: ImageLayout, rows: int | None = None, most_bytes: int = _MOST_BYTES) -> None:
        self._kind = np.dtype(np.uint16 if image.dynamic_range <= 16 else np.uint32)
        self._shape = (image.bands, image.rows if rows is None else rows, image.columns)
        self._file: Any = None
        self._memory: NDArray[Any] | None = None
        if math.prod(self._shape) * self._kind.itemsize <= most_bytes:
            self._memory = np.zeros(self._shape, self._kind)
        else:
            # Read and written by place: pages of a memory map would count as memory of this process.
            self._file = tempfile.TemporaryFile(prefix="plait-", buffering=0)  # noqa: SIM115  # see `close`

    def close(self) -> None:
        """Let go of what is stored."""
        self._memory = None
        if self._file is not None:
            self._file.close()

    def _place(self, band: int, row: int) -> int:
        _, rows, columns = self._shape
        return (band * rows + row) * columns * self._kind.itemsize

    def put_bands(self, band: int, first: int, values: NDArray[np.int64]) -> None:
        """Store rows of bands, shape (bands, rows, columns), from `band` and row `first` on."""
        if self._memory is not None:
            bands, rows, _ = values.shape
            self._memory[band : band + bands, first : first + rows] = values
            return
        for k, own in enumerate(values):
            self._write_band(band + k, first, own)

    def _write_band(self, band: int, first: int, values: NDArray[np.int64]) -> None:
        data = memoryview(np.ascontiguousarray(values, self._kind).tobytes())
        place = self._place(band, first)
        while data:
            written = os.pwrite(self._file.fileno(), data, place)
            data, place = data[written:], place + written

    def get_bands(self, band: int, end: int, first: int, last: int) -> NDArray[np.int64]:
        """Rows of bands, `last` and `end` not among them, shape (bands, rows, columns)."""
        if self._memory is not None:
            return self._memory[band:end, first:last].astype(np.int64)
        return np.stack([self._read_band(k, first, last) for k in range(band, end)])

    def _read_band(self, band: int, first: int, last: int) -> NDArray[np.int64]:
        size = (last - first) * self._shape[2] * self._kind.itemsize
        place, pieces = self._place(band, first), []
        while size:
            piece = os.pread(self._file.fileno(), size, place)
            if not piece:
                raise OSError("the temporary file of residuals is shorter than what was written to it")
            pieces.append(piece)
            size, place = size - len(piece), place + len(piece)
        found = np.frombuffer(b"".join(pieces), self._kind).astype(np.int64)
        return found.reshape(last - first, self._shape[2])

    def put(self, first: int, values: NDArray[np.int64]) -> None:
        """Store rows of all bands, shape (rows, columns, bands), from row `first` on."""
        if self._memory is not None:
            self._memory[:, first : first + len(values)] = values.transpose(2, 0, 1)
            return
        for band, own in enumerate(values.transpose(2, 0, 1)):
            self._write_band(band, first, own)

    def get(self, first: int, last: int) -> NDArray[np.int64]:
        """Rows of all bands, `last` not among them, shape (rows, columns, bands)."""
        bands, _, columns = self._shape
        found = np.empty((last - first, columns, bands), np.int64)
        if self._memory is not None:
            found[:] = self._memory[:, first:last].transpose(1, 2, 0)
            return found
        for band in range(bands):
            found[:, :, band] = self._read_band(band, first, last)
        return found
