"""CUDA devices: which there are, their memory, work shared out over them, and their errors in words.

`plan` cuts work into pieces of which several fit. Each piece under way has a `Slot`: a stream, and buffers on
the device and pinned buffers on the host, which later pieces use again. While one slot computes, another
copies in and a third copies out.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import weakref
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import SIMULATED, cuda, cuda_kernel
from plait.devices.driver import DriverDevice, probe
from plait.errors import DeviceFailure, DeviceMemoryError, PlaitError, TargetUnavailable
from plait.lang.warps import WARP, lane_index, shuffle_xor

_SMALLER_HOST = "close other programs, raise the limit of locked memory (ulimit -l), or use device='cpu'"
_SMALLER = "close other programs that use the device, choose another one, or use device='cpu'"
_AGAIN = "start plait again: after this error the process cannot use the device any more"
_BUG = f"{_AGAIN}; if it comes back, it is an error of plait: please report it with the command"
_HARDWARE = "look at nvidia-smi -q and the system's log; the device may need a reset or repair"
#: Calls that ask for memory of the host.
_OF_THE_HOST = re.compile("cu(Mem(Host|AllocHost)|Host)")
_REASONS = {
    "ILLEGAL_ADDRESS": ("a kernel used memory that is not its own", _BUG),
    "MISALIGNED_ADDRESS": ("a kernel used memory at a wrong address", _BUG),
    "INVALID_ADDRESS_SPACE": ("a kernel used memory of a wrong kind", _BUG),
    "INVALID_PC": ("a kernel jumped to a wrong place", _BUG),
    "ILLEGAL_INSTRUCTION": ("a kernel holds an instruction that the device does not know", _BUG),
    "HARDWARE_STACK_ERROR": ("the stack of a kernel overflowed", _BUG),
    "ASSERT": ("a kernel found a condition that must not be", _BUG),
    "LAUNCH_FAILED": ("a kernel stopped", _BUG),
    "LAUNCH_TIMEOUT": (
        "a kernel took longer than the system allows for a device that drives a display",
        "use a device without a display, or device='cpu'",
    ),
    "LAUNCH_OUT_OF_RESOURCES": ("a kernel needs more registers or shared memory than there are", _BUG),
    "COOPERATIVE_LAUNCH_TOO_LARGE": ("a kernel needs more blocks at a time than fit", _BUG),
    "NO_BINARY_FOR_GPU": ("there is no code for this device", "update numba-cuda and the driver"),
    "UNSUPPORTED_PTX_VERSION": ("the driver is too old for the compiled code", "update the driver"),
    "INVALID_PTX": ("the driver does not take the compiled code", "update the driver"),
    "ECC_UNCORRECTABLE": ("the device's memory has an error that could not be corrected", _HARDWARE),
    "NVLINK_UNCORRECTABLE": ("a link between devices has an error that could not be corrected", _HARDWARE),
    "DEVICE_UNAVAILABLE": (
        "the device is busy or not allowed to this process",
        "see nvidia-smi for its compute mode and processes, or choose another one",
    ),
    "SYSTEM_NOT_READY": ("the system's services for devices are not ready", "start nvidia-fabricmanager"),
    "NOT_PERMITTED": ("the driver does not permit it", "see nvidia-smi for the device's settings"),
    "UNKNOWN": ("the driver reports an unknown error", f"{_AGAIN}; {_HARDWARE}"),
}


def translate(
    error: BaseException, device: str, free: Callable[[], int | None] = lambda: None
) -> DeviceMemoryError | DeviceFailure | None:
    """The error of plait that says the same, or None if the error is not of CUDA's driver.

    `device` is its name; `free` is asked for free bytes when memory was short.
    """
    found = re.search(r"CUDA_ERROR_([A-Z_]+)", str(error))
    if found is None:
        return None
    code = found[1]
    if code == "OUT_OF_MEMORY":
        if _OF_THE_HOST.search(str(error)):
            return DeviceMemoryError(device, needed=None, free=None, fix=_SMALLER_HOST, of_host=True)
        return DeviceMemoryError(device, needed=None, free=free(), fix=_SMALLER)
    reason, fix = _REASONS.get(code, ("the driver reports an error", _AGAIN))
    return DeviceFailure(device, reason=f"{reason} (CUDA_ERROR_{code})", fix=fix)


#: Devices that a thread of this process has used, and what is held meanwhile.
_STARTED: set[int] = set()
_STARTING = threading.Lock()

T = TypeVar("T")
R = TypeVar("R")


def devices() -> list[int]:
    """Numbers of the devices of this machine."""
    return [0] if SIMULATED else list(range(len(probe().devices)))


def device_facts(index: int) -> DriverDevice:
    """Facts about a device."""
    if SIMULATED:
        return DriverDevice(index, "CUDA simulator", (9, 0), 2, 1 << 30, shared_per_block=227 << 10)
    return probe().devices[index]


def current_device() -> int:
    """Number of the device that is current on this thread."""
    return 0 if SIMULATED else int(cuda.get_current_device().id)


def free_memory(*, tidy: bool = True) -> int:
    """Free bytes of the current device.

    `tidy` gives back first what is no longer used, which waits for the kernels that run.
    """
    if SIMULATED:
        return 1 << 30
    context = cuda.current_context()
    if tidy:
        # Another thread of this device may take the last one first.
        with contextlib.suppress(IndexError):
            context.memory_manager.deallocations.clear()
    return int(context.get_memory_info().free)


def least_free_memory(indices: Sequence[int], *, tidy: bool = True) -> tuple[int, int]:
    """Free bytes of the device that has the fewest, and its number; `tidy` as for `free_memory`."""
    found = []
    for index in dict.fromkeys(indices):
        with on_device(index):
            found.append((free_memory(tidy=tidy), index))
    return min(found)


@contextlib.contextmanager
def on_device(index: int) -> Iterator[None]:
    """Make a device the current one of this thread; errors of CUDA become errors of plait.

    `DeviceMemoryError` if an allocation fails, `DeviceFailure` if the device or a kernel stops.
    """
    if SIMULATED:
        yield
        return
    try:
        _start(index)
        with cuda.gpus[index]:
            yield
    except PlaitError:
        raise
    except Exception as error:
        told = translate(error, f"cuda:{index}", lambda: _free_on(index))
        if told is None:
            raise
        raise told from error


def _start(index: int) -> None:
    """Make a device known to numba-cuda, which fails where two threads meet for the first time."""
    if index in _STARTED:
        return
    with _STARTING, cuda.gpus[index]:
        _STARTED.add(index)


def _free_on(index: int) -> int | None:
    """Free bytes of a device, if it still answers."""
    try:
        with cuda.gpus[index]:
            return free_memory()
    except Exception:
        return None


def over_devices(indices: Sequence[int], work: Sequence[T], run: Callable[[int, T], R]) -> list[R]:
    """Call ``run(device, item)`` for every item of work, each device taking the next one when it is free.

    Every device has one thread, on which it is current. Results are in the order of `work`, whatever device
    they come from.
    """
    if not indices:
        raise TargetUnavailable("cuda", reason="no device was named", fix="name one, such as cuda:0")
    # To take from an iterator of a list is one step of the interpreter: threads share it.
    waiting = iter(list(enumerate(work)))
    results: list[Any] = [None] * len(work)

    def serve(device: int) -> None:
        try:
            with on_device(device):
                for place, item in waiting:
                    results[place] = run(device, item)
        except BaseException:
            # The others need not do what nobody will see.
            list(waiting)
            raise

    if len(indices) == 1:
        serve(indices[0])
        return results
    with ThreadPoolExecutor(len(indices)) as pool:
        try:
            list(pool.map(serve, indices))
        except BaseException:
            list(waiting)
            raise
    return results


@cuda_kernel()
def neighbours(out: Any) -> None:
    """Write the number of the other lane of each pair."""
    lane = np.int32(lane_index())
    out[lane] = shuffle_xor(lane, np.int32(1))


def try_device(number: int) -> str:
    """Run the kernel on a device; what is wrong with the result, or nothing.

    `DeviceFailure` or `DeviceMemoryError` if the device does not run it.
    """
    with on_device(number):
        out = cuda.to_device(np.zeros(WARP, np.int32))
        neighbours.launch(1, WARP, out)
        found = out.copy_to_host()
    return (
        "" if found.tolist() == [lane ^ 1 for lane in range(WARP)] else "a small kernel gives wrong results"
    )


#: Threads per device, each with a piece.
SLOTS: Final = 6
#: Elements at least of an array of which the sizes differ.
_LEAST_ELEMENTS: Final = 1024
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
        return _part(
            self._on_device, name, shape, dtype, lambda n: cuda.device_array(self.elements(n), dtype)
        )

    def pinned(self, name: str, shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Memory of the host that the device reads and writes on its own; kept like that of `room`."""
        kind = np.dtype(dtype)
        found: NDArray[Any] = _part(
            self._pinned, name, shape, kind, lambda n: cuda.pinned_array(self.elements(n), kind)
        )
        return found

    def elements(self, wanted: int) -> int:
        """Elements of new memory."""
        return wanted

    def upload(self, name: str, values: Any) -> Any:
        """A device array with these values, copied while others compute; `values` may change at once.

        Of a tuple, one of such arrays.
        """
        if isinstance(values, tuple):
            there = (self.upload(f"{name} {k}", one) for k, one in enumerate(values))
            return tuple.__new__(type(values), there)
        pinned = self.pinned(name, values.shape, values.dtype)
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
        pinned = self.pinned(f"{name} out", array.shape, array.dtype)
        array.copy_to_host(pinned, stream=self.stream)
        return pinned

    def wait(self) -> None:
        """Wait for all that was started."""
        self.stream.synchronize()


def _part(
    arrays: dict[str, Any], name: str, shape: int | tuple[int, ...], dtype: Any, make: Callable[[int], Any]
) -> Any:
    """Memory of a name, made anew only if it is too small; at least one element."""
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    whole, part = arrays.get(name, (None, None))
    # To cut and shape an array on a device takes as long as to launch several kernels.
    if part is not None and part.shape == wanted and part.dtype == np.dtype(dtype):
        return part
    size = int(np.prod(wanted, dtype=np.int64))
    if whole is None or whole.dtype != np.dtype(dtype) or whole.size < size:
        # The old one is given back first: both may not fit.
        arrays.pop(name, None)
        del whole, part
        whole = make(max(size, 1))
    part = whole[:size].reshape(wanted)
    arrays[name] = whole, part
    return part


#: Bytes of an array, at most, that is uploaded from pinned memory of its own.
_PINNED_BYTES: Final = 1 << 22


class SlotArrays(Slot):
    """The same for many uploads of a name on their way at once, and for what is read back by and by."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = [cuda.event(), cuda.event()]
        #: Of each name, when the copies in pinned memory may be written over.
        self._sent: defaultdict[str, list[Any]] = defaultdict(list)

    def elements(self, wanted: int) -> int:
        """Somewhat more, up to an eighth: parts are of about the same size, and seldom of the very same."""
        size = max(wanted, _LEAST_ELEMENTS)
        step = 1 << size.bit_length() - 4
        return -(-size // step) * step

    def upload(self, name: str, values: NDArray[Any]) -> Any:
        """A device array with these values, which may change at once."""
        to = self.room(name, values.shape, values.dtype)
        if not values.size:
            return to
        if values.nbytes > _PINNED_BYTES or SIMULATED:
            # From ordinary memory the driver has taken a copy when this returns.
            to.copy_to_device(np.ascontiguousarray(values), stream=self.stream)
            return to
        # Of ordinary memory the driver might wait for all that was started before.
        turns = self._sent[name]
        turn = next((k for k, done in enumerate(turns) if done.query()), len(turns))
        if turn == len(turns):
            turns.append(cuda.event())
        copy = self.pinned(f"{name} sent {turn}", values.shape, values.dtype)
        np.copyto(copy, values)
        to.copy_to_device(copy, stream=self.stream)
        turns[turn].record(self.stream)
        return to

    def all_ones(self, name: str, size: int) -> Any:
        """A device array of int64 of which all bits are set."""
        to = self.room(name, size, np.int64)
        if SIMULATED:
            to[:] = -1
        else:
            cuda.cudadrv.driver.device_memset(to, 255, to.nbytes, stream=self.stream)
        return to

    def stage(self, values: NDArray[np.uint8], to: Any, number: int) -> None:
        """Copy many values to a device array, which the device reads on its own from pinned memory.

        Two of them are under way at a time, so `number` counts up; the one before the last is written over.
        """
        half = number % 2
        self._turns[half].synchronize()
        copy = self.pinned(f"staged {half}", values.size, np.uint8)
        np.copyto(copy, values)
        to.copy_to_device(copy, stream=self.stream)
        self._turns[half].record(self.stream)

    def fetch(self, name: str, array: Any) -> tuple[NDArray[Any], Any]:
        """Host memory that will hold the array's values, and an event that says when."""
        found = self.download(name, array)
        done = cuda.event()
        done.record(self.stream)
        return found, done


class SlotPool(Generic[T]):
    """Slots of devices, each made by `make` and used again; `most` of a device for all that is under way."""

    def __init__(self, make: Callable[[], T], most: int) -> None:
        self._make, self._most = make, most
        self._used: Counter[int] = Counter()
        self._free: defaultdict[int, list[T]] = defaultdict(list)
        self._changed = threading.Condition()

    def _choose(self, devices: Sequence[int], what: Any) -> tuple[int, T | None]:
        """That of these devices which has the fewest in use, and one of its slots, if any is free."""
        device = min(devices, key=lambda number: self._used[number])
        return device, self._free[device].pop() if self._free[device] else None

    @contextlib.contextmanager
    def slot(self, devices: Sequence[int], what: Any = None) -> Iterator[T]:
        """A slot of one of these devices, for `what`; the device is current meanwhile.

        Waits for one. A slot whose work has failed is given up.
        """
        with self._changed:
            self._changed.wait_for(lambda: min(self._used[device] for device in devices) < self._most)
            device, kept = self._choose(devices, what)
            self._used[device] += 1
        try:
            with on_device(device):
                slot = self._make() if kept is None else kept
                yield slot
            with self._changed:
                self._free[device].append(slot)
        finally:
            with self._changed:
                self._used[device] -= 1
                # Of those who wait, some wait for other devices.
                self._changed.notify_all()

    def release(self) -> None:
        """Give back the memory of slots that are free."""
        with self._changed:
            for device, slots in self._free.items():
                with on_device(device):
                    slots.clear()


#: What counts and weighs junctions.
POOL: Final = SlotPool(Slot, SLOTS)


class _Kept:
    """Tables that later batches use again."""

    making = threading.Lock()
    tables: OrderedDict[tuple[Any, ...], tuple[Any, Any]] = OrderedDict()  # noqa: RUF012  # one for the process


def kept(device: int, source: Any, make: Callable[[], T], *how: Any) -> T:
    """What is made from a source for a device, in a way; the last few are kept, with their sources.

    An array is not kept: what was made from it goes with it.
    """
    key = (device, id(source), *how)

    def gone(_: object) -> None:
        if not sys.is_finalizing():
            with on_device(device):
                _Kept.tables.pop(key, None)

    with _Kept.making:
        known = _Kept.tables.get(key)
        if known is None:
            held = weakref.ref(source, gone) if isinstance(source, np.ndarray) else source
            known = _Kept.tables[key] = held, make()
            while len(_Kept.tables) > _TABLES:
                _Kept.tables.popitem(last=False)
        # Tables of texts come and go, while those of the model stay.
        _Kept.tables.move_to_end(key)
        found: T = known[1]
        return found


def uploaded(value: Any, stream: Any = 0) -> Any:
    """Tables on the device, also within tuples; empty ones get an element that nobody reads."""
    if isinstance(value, tuple):
        return type(value)(*(uploaded(one, stream) for one in value))
    if not isinstance(value, np.ndarray):
        return value
    whole = value if value.size else np.zeros([max(n, 1) for n in value.shape], value.dtype)
    return cuda.to_device(np.ascontiguousarray(whole), stream=stream)


#: Bytes of a device that are left to the driver, its stacks and other kernels: a share, and so many at least.
_SPARE_SHARE = 16
_LEAST_SPARE = 256 << 20
_LESS = "choose a device with more memory, cut the input into smaller parts, or use device='cpu'"


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
        raise DeviceMemoryError(device, needed=item_bytes, free=free_bytes, fix=_LESS)
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
