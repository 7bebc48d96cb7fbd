"""CUDA devices: which there are, what they have, work shared out over them, and their errors in words."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np

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
    waiting: SimpleQueue[tuple[int, T]] = SimpleQueue()
    for place, item in enumerate(work):
        waiting.put((place, item))
    results: list[Any] = [None] * len(work)

    def take() -> tuple[int, T] | None:
        try:
            return waiting.get_nowait()
        except Empty:
            return None

    def give_up() -> None:
        while take() is not None:
            pass

    def serve(device: int) -> None:
        try:
            with on_device(device):
                while (taken := take()) is not None:
                    results[taken[0]] = run(device, taken[1])
        except BaseException:
            # The others need not do what nobody will see.
            give_up()
            raise

    if len(indices) == 1:
        serve(indices[0])
        return results
    with ThreadPoolExecutor(len(indices)) as pool:
        try:
            list(pool.map(serve, indices))
        except BaseException:
            give_up()
            raise
    return results


@cuda_kernel(lambda: [(np.zeros(WARP, np.int32),)])
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
