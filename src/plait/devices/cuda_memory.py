"""Memory of a device for batches that are under way at the same time.

`plait.dp.chain.gpu_pieces.plan` cuts work into batches of which several fit. Each batch under way has a
`Slot`: a stream, and buffers on the device and pinned buffers on the host, which later batches use
again. While one slot computes, another copies in and a third copies out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda


class Slot:
    """What one batch under way has: a stream, and buffers that later batches use again.

    Copies and kernels of a slot follow each other in its `stream`; pass that to ``launch``. In a batch each
    name is uploaded and downloaded once, and the next batch starts when `wait` has returned.
    """

    def __init__(self) -> None:
        self.stream = cuda.stream()
        self._on_device: dict[str, Any] = {}
        self._pinned: dict[str, NDArray[Any]] = {}

    def room(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """A device array with anything in it; the next one of that name may be the same memory."""
        return _part(self._on_device, name, shape, dtype, lambda n: cuda.device_array(n, dtype))

    def pinned(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Memory of the host that the device reads and writes on its own; kept like that of `room`."""
        return self._host(name, shape, dtype)

    def upload(self, name: str, values: NDArray[Any]) -> Any:
        """A device array with these values, copied while others compute; `values` may change at once."""
        pinned = self._host(name, values.shape, values.dtype)
        pinned[...] = values
        array = self.room(name, values.shape, values.dtype)
        array.copy_to_device(pinned, stream=self.stream)
        return array

    def upload_together(self, name: str, columns: Sequence[NDArray[Any]], dtype: Any) -> list[Any]:
        """Device arrays with these values, none of them empty, in one type and with one copy."""
        edges = list(accumulate((column.size for column in columns), initial=0))
        pinned, array = self.pinned(name, edges[-1], dtype), self.room(name, edges[-1], dtype)
        found = []
        for column, (first, last) in zip(columns, pairwise(edges), strict=True):
            pinned[first:last] = column
            found.append(array[first:last])
        array.copy_to_device(pinned, stream=self.stream)
        return found

    def download(self, name: str, array: Any) -> NDArray[Any]:
        """Host memory that holds the array's values when the slot is done, until its next batch starts."""
        pinned = self._host(f"{name} out", array.shape, array.dtype)
        array.copy_to_host(pinned, stream=self.stream)
        return pinned

    def wait(self) -> None:
        """Wait for all that was started."""
        self.stream.synchronize()

    def _host(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
        found: NDArray[Any] = _part(
            self._pinned, name, shape, dtype, lambda n: cuda.pinned_array(n, np.dtype(dtype))
        )
        return found


def _part(
    arrays: dict[str, Any], name: str, shape: int | tuple[int, ...], dtype: Any, make: Callable[[int], Any]
) -> Any:
    """Memory of a name, made anew only if it is too small; at least one element."""
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    size = int(np.prod(wanted, dtype=np.int64))
    found = arrays.get(name)
    if found is None or found.dtype != np.dtype(dtype) or found.size < size:
        # The old one is given back first: both may not fit.
        arrays.pop(name, None)
        del found
        found = arrays[name] = make(max(size, 1))
    return found[:size].reshape(wanted)
