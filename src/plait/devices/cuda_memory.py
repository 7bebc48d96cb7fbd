"""Memory of a device for batches that are under way at the same time.

`plan` cuts work into pieces of which several fit. Each piece under way has a `Slot`: a stream, and buffers on
the device and pinned buffers on the host, which later pieces use again. While one slot computes, another
copies in and a third copies out.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import SIMULATED, cuda
from plait.devices.cuda_devices import least_free_memory
from plait.errors import DeviceMemoryError

T = TypeVar("T")

#: Threads per device, each with a piece.
SLOTS: Final = 6
#: Tables kept on devices.
_TABLES: Final = 32


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
    """Slots that no piece uses, how many there may be, and tables that later batches use again."""

    lock, making = threading.Lock(), threading.Lock()
    slots: dict[int, list[Slot]] = {}  # noqa: RUF012  # one for the process
    used: dict[int, threading.Semaphore] = {}  # noqa: RUF012
    tables: OrderedDict[tuple[Any, ...], tuple[Any, Any]] = OrderedDict()  # noqa: RUF012


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


def kept(device: int, source: Any, make: Callable[[], T], *how: Any) -> T:
    """What is made from a source for a device, in a way; the last few are kept, with their sources."""
    key = (device, id(source), *how)
    with _Kept.making:
        known = _Kept.tables.get(key)
        if known is None:
            known = _Kept.tables[key] = source, make()
            while len(_Kept.tables) > _TABLES:
                _Kept.tables.popitem(last=False)
        # Tables of texts come and go, while those of the model stay.
        _Kept.tables.move_to_end(key)
        found: T = known[1]
        return found


def uploaded(value: Any) -> Any:
    """Tables on the device, also within tuples; empty ones get an element that nobody reads."""
    if isinstance(value, tuple):
        return type(value)(*map(uploaded, value))
    if not isinstance(value, np.ndarray):
        return value
    whole = value if value.size else np.zeros([max(n, 1) for n in value.shape], value.dtype)
    return cuda.to_device(np.ascontiguousarray(whole))


#: Bytes of a device that are left to the driver, its stacks and other kernels: a share, and so many at least.
_SPARE_SHARE = 16
_LEAST_SPARE = 256 << 20
_SMALLER = "choose a device with more memory, cut the input into smaller parts, or use device='cpu'"


class Plan(NamedTuple):
    """How work is cut: first item and end of each piece, of which `slots` are under way at a time.

    The largest takes `piece_bytes` of device memory.
    """

    pieces: list[tuple[int, int]]
    slots: int
    piece_bytes: int


def plan(
    items: int, item_bytes: int, *, free_bytes: int, most: int, least: int, slots: int, device: str = "cuda"
) -> Plan:
    """Cut items, at least one, in order, into pieces of which several fit the free memory at a time.

    Of `free_bytes` some are spared. A piece has at most `most` items, where a larger one does not gain; none
    is cut below `least` for the sake of overlapping alone. At most `slots` are under way at a time. Raises
    `DeviceMemoryError`, naming `device`, if an item does not fit even on its own.
    """
    room = free_bytes - max(free_bytes // _SPARE_SHARE, min(_LEAST_SPARE, free_bytes // 2))
    if room < item_bytes:
        raise DeviceMemoryError(device, needed=item_bytes, free=free_bytes, fix=_SMALLER)
    # An item may be larger than a slot's share of the room; then fewer are under way.
    slots = max(1, min(slots, room // max(item_bytes, 1)))
    total = item_bytes * items
    if total <= room:
        # All fits; it is cut all the same, so that copies of one part overlap with kernels of another.
        slots = max(1, min(slots, items // max(1, least)))
        share = -(-total // slots)
    else:
        share = room // slots
    step = max(1, min(max(share, item_bytes) // max(item_bytes, 1), most))
    pieces = [(first, min(first + step, items)) for first in range(0, items, step)]
    return Plan(pieces, min(slots, len(pieces)), min(step, items) * item_bytes)


def plan_for(devices: Sequence[int], items: int, item_bytes: int, most: int, least: int, slots: int) -> Plan:
    """The same for the memory of the device that has the least; the simulator runs a piece at a time."""
    free, tightest = least_free_memory(devices, tidy=False)
    slots = 1 if SIMULATED else slots
    return plan(
        items, item_bytes, free_bytes=free, most=most, least=least, slots=slots, device=f"cuda:{tightest}"
    )
