"""Arrays of a search on a device, used again and again: allocation would make the device wait."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.targets.cuda import cuda
from plait.targets.cuda_memory import Slot

__all__ = ["SlotArrays"]

_LEAST = 1024


def _rounded(size: int) -> int:
    """Somewhat more, up to an eighth: parts are of about the same size, and seldom of the very same."""
    size = max(size, _LEAST)
    step = 1 << size.bit_length() - 4
    return -(-size // step) * step


class SlotArrays:
    """Arrays by name, written and read in the order of one stream."""

    def __init__(self) -> None:
        self.memory = Slot()
        self.stream = self.memory.stream
        self._turns = [cuda.event(), cuda.event()]

    def room(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """A device array with anything in it."""
        size = int(np.prod(shape, dtype=np.int64))
        found = self.memory.room(name, _rounded(size), dtype)[:size]
        return found if isinstance(shape, int) else found.reshape(shape)

    def upload(self, name: str, values: NDArray[Any]) -> Any:
        """A device array with these values, which may change at once."""
        to = self.room(name, values.shape, values.dtype)
        # From ordinary memory the driver has taken a copy when this returns.
        to.copy_to_device(np.ascontiguousarray(values), stream=self.stream)
        return to

    def stage(self, values: NDArray[np.uint8], number: int) -> Any:
        """A device array with many values, which the device reads on its own from a copy in pinned memory.

        Parameters
        ----------
        values
            The values; they may change at once.
        number
            Of the turn: there are two copies, the second of which is written while the first is read.
        """
        half = number % 2
        self._turns[half].synchronize()
        copy = self.memory.pinned(f"staged {half}", _rounded(values.size), np.uint8)[: values.size]
        np.copyto(copy, values)
        to = self.room(f"staged {half}", values.size, np.uint8)
        to.copy_to_device(copy, stream=self.stream)
        self._turns[half].record(self.stream)
        return to

    def download(self, name: str, array: Any) -> tuple[NDArray[Any], Any]:
        """Host memory that will hold the array's values, and an event that says when."""
        found = self.memory.download(name, array)
        done = cuda.event()
        done.record(self.stream)
        return found, done
