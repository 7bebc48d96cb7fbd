"""Memory of a device for batches that are under way at the same time.

`plan` cuts work into batches of which several fit. Each batch under way has a `Slot`: a stream, and buffers
on the device and pinned buffers on the host, which later batches use again. While one slot computes, another
copies in and a third copies out.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda
from plait.errors import DeviceMemoryError

#: Threads per device, each with a piece.
SLOTS: Final = 6


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


class _Kept:
    """Slots that no piece uses, and how many there may be."""

    lock = threading.Lock()
    slots: dict[int, list[Slot]] = {}  # noqa: RUF012  # one for the process
    used: dict[int, threading.Semaphore] = {}  # noqa: RUF012


@contextlib.contextmanager
def slot_of(device: int) -> Iterator[Slot]:
    """A slot, as soon as one is free: there are so many for all batches that are under way at a time."""
    with _Kept.lock:
        used = _Kept.used.setdefault(device, threading.Semaphore(SLOTS))
        free = _Kept.slots.setdefault(device, [])
    with used:
        with _Kept.lock:
            slot = free.pop() if free else None
        slot = slot or Slot()
        yield slot
        # A slot whose piece has failed is given up.
        with _Kept.lock:
            free.append(slot)


#: Bytes of a device that are left to the driver, its stacks and other kernels: a share, and so many at least.
_SPARE_SHARE = 16
_LEAST_SPARE = 256 << 20
#: With three batches under way, copies both ways and kernels overlap.
DEFAULT_SLOTS = 3
_SMALLER = "choose a device with more memory, cut the input into smaller parts, or use device='cpu'"


class Plan(NamedTuple):
    """How work is cut: batch b is items ``edges[b]`` to ``edges[b + 1]``, int64.

    `slots` batches are under way at a time; the largest takes `batch_bytes` of device memory.
    """

    edges: NDArray[np.int64]
    slots: int
    batch_bytes: int

    @property
    def batches(self) -> list[tuple[int, int]]:
        """First item and end of each batch."""
        return [(int(a), int(b)) for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]


def plan(
    items: int,
    item_bytes: int | NDArray[np.int64],
    *,
    fixed_bytes: int = 0,
    free_bytes: int,
    most_items: int | None = None,
    least_items: int = 1,
    slots: int = DEFAULT_SLOTS,
    device: str = "cuda",
) -> Plan:
    """Cut items, in order, into batches of which several fit the free memory at a time.

    Sizes are bytes of device memory: `item_bytes` of every item, or (items,) of each, `fixed_bytes` once, and
    `free_bytes`, of which some are spared. A batch has at most `most_items`, where a larger one does not
    gain; none is cut below `least_items` for the sake of overlapping alone. At most `slots` are under way at
    a time. Raises `DeviceMemoryError`, naming `device`, if an item does not fit even on its own.
    """
    spare = max(free_bytes // _SPARE_SHARE, min(_LEAST_SPARE, free_bytes // 2))
    room = free_bytes - spare - fixed_bytes
    uniform = isinstance(item_bytes, int | np.integer)
    sizes = np.asarray(item_bytes, np.int64)
    largest = int(sizes.max(initial=0)) if items else 0
    if room < largest or room < 0:
        raise DeviceMemoryError(device, needed=fixed_bytes + largest, free=free_bytes, fix=_SMALLER)
    if not items:
        return Plan(np.zeros(1, np.int64), 1, 0)
    total = int(sizes) * items if uniform else int(sizes.sum())
    # An item may be larger than a slot's share of the room; then fewer are under way.
    slots = max(1, min(slots, room // max(largest, 1)))
    if total <= room:
        # All fits; it is cut all the same, so that copies of one part overlap with kernels of another.
        slots = max(1, min(slots, items // max(1, least_items)))
        share = -(-total // slots)
    else:
        share = room // slots
    share = max(share, largest)
    most = items if most_items is None else max(1, most_items)
    if uniform:
        step = max(1, min(share // max(largest, 1), most))
        edges = np.append(np.arange(0, items, step, dtype=np.int64), items)
        return Plan(edges, min(slots, edges.size - 1), min(step, items) * largest)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    edges = _cut(before, share, most)
    return Plan(edges, min(slots, edges.size - 1), int(np.diff(before[edges]).max()))


def _cut(before: NDArray[np.int64], share: int, most: int) -> NDArray[np.int64]:
    """Edges of batches of at most `share` bytes and `most` items, as large as can be."""
    items = before.size - 1
    edges = [0]
    while edges[-1] < items:
        first = edges[-1]
        end = int(np.searchsorted(before, before[first] + share, "right")) - 1
        edges.append(min(max(end, first + 1), first + most, items))
    return np.array(edges, np.int64)
