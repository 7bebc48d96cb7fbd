"""Windows of a compressed cube for those who ask for many small ones: parts that were decoded are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.hyperspectral.block_grid import Window
from plait.hyperspectral.streams import CompressedCube

__all__ = ["KeptParts"]

#: Bytes of samples that are kept.
_MOST_BYTES = 1 << 27


class KeptParts:
    """Reads windows, and keeps the parts that it had to decode for them; several threads may read.

    A part that is too large to be kept is decoded from its start on, row by row; that is done once as long as
    rows are asked for in order.

    Parameters
    ----------
    cube
        The compressed cube.
    most_bytes
        Bytes of samples that are kept.
    """

    def __init__(self, cube: CompressedCube, most_bytes: int = _MOST_BYTES) -> None:
        self._cube = cube
        self._most = most_bytes
        self._lock = threading.Lock()
        self._locks = [threading.Lock() for _ in cube.windows]
        self._kept: OrderedDict[int, NDArray[Any]] = OrderedDict()
        self._held = 0
        self._under_way: tuple[int, int, NDArray[Any], Iterator[NDArray[Any]]] | None = None

    def read(self, window: Window) -> NDArray[Any]:
        """Samples of a window, shape (rows, columns, bands).

        Parameters
        ----------
        window
            Within the cube.
        """
        first, last, left, right = window
        found = np.empty((last - first, right - left, self._cube.shape[2]), self._cube.dtype)
        for part, own in enumerate(self._cube.windows):
            common = own.meets(window)
            if common is None:
                continue
            target = found[
                common.first_row - first : common.last_row - first,
                common.first_column - left : common.last_column - left,
            ]
            if own.pixels * found.shape[2] * found.itemsize > self._most:
                self._in_order(part, common, target)
            else:
                samples = self._whole(part)
                target[...] = samples[
                    common.first_row - own.first_row : common.last_row - own.first_row,
                    common.first_column - own.first_column : common.last_column - own.first_column,
                ]
        return found

    def _whole(self, part: int) -> NDArray[Any]:
        # One decodes a part, and others who want it wait for that.
        with self._locks[part]:
            with self._lock:
                if part in self._kept:
                    self._kept.move_to_end(part)
                    return self._kept[part]
            samples = self._cube.read(*self._cube.windows[part])
            with self._lock:
                self._kept[part] = samples
                self._held += samples.nbytes
                while self._held > self._most and len(self._kept) > 1:
                    self._held -= self._kept.popitem(last=False)[1].nbytes
            return samples

    def _in_order(self, part: int, common: Window, target: NDArray[Any]) -> None:
        """Rows of a part that is too large to be kept."""
        own = self._cube.windows[part]
        columns = slice(common.first_column - own.first_column, common.last_column - own.first_column)
        with self._lock:
            state = self._under_way
            if state is None or state[0] != part or state[1] > common.first_row:
                rows = self._cube.part_rows(part, own.last_row)
                state = (part, own.first_row, next(rows), rows)
            _, row, samples, rows = state
            # What fails on the way cannot be gone on with.
            self._under_way = None
            while True:
                low, high = max(row, common.first_row), min(row + len(samples), common.last_row)
                if low < high:
                    to = slice(low - common.first_row, high - common.first_row)
                    target[to] = samples[low - row : high - row, columns]
                if row + len(samples) >= common.last_row:
                    break
                row, samples = row + len(samples), next(rows)
            self._under_way = (part, row, samples, rows)

    def close(self) -> None:
        """Let go of what is kept."""
        with self._lock:
            if self._under_way is not None:
                self._under_way[3].close()  # type: ignore[attr-defined]  # a generator
            self._under_way = None
            self._kept.clear()
            self._held = 0
