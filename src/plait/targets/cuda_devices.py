"""CUDA devices: which there are, what they have, and work shared out over them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from plait.errors import PlaitError, TargetUnavailable
from plait.targets.cuda import SIMULATED, cuda
from plait.targets.cuda_driver import usable
from plait.targets.cuda_errors import translate
from plait.types import Availability

__all__ = [
    "Device",
    "cuda_available",
    "device_facts",
    "devices",
    "free_memory",
    "least_free_memory",
    "on_device",
    "over_devices",
]

#: Devices that a thread of this process has used, and what is held meanwhile.
_STARTED: set[int] = set()
_STARTING = threading.Lock()

T = TypeVar("T")
R = TypeVar("R")


class Device(NamedTuple):
    """Facts about a device.

    Attributes
    ----------
    number
        As, as in ``cuda:0``.
    name
        As the driver says it.
    capability
        Compute capability, (9, 0) for Hopper.
    multiprocessors
        How many it has.
    shared_per_block
        Bytes of shared memory that one block may ask for.
    memory
        Bytes in all.
    """

    number: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_per_block: int
    memory: int


def cuda_available() -> Availability:
    """Whether there is a device that can be used, and if not, why and what to do."""
    return Availability(True) if SIMULATED else usable()


def devices() -> list[int]:
    """Numbers of the devices of this machine."""
    return [0] if SIMULATED else list(range(len(cuda.gpus)))


def device_facts(index: int) -> Device:
    """Facts about a device."""
    if SIMULATED:
        return Device(index, "CUDA simulator", (9, 0), 2, 227 << 10, 1 << 30)
    with on_device(index):
        device = cuda.get_current_device()
        memory = cuda.current_context().get_memory_info()
        name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
        return Device(
            index,
            name,
            tuple(device.compute_capability),
            device.MULTIPROCESSOR_COUNT,
            device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            int(memory.total),
        )


def free_memory(*, tidy: bool = True) -> int:
    """Free bytes of the current device.

    Parameters
    ----------
    tidy
        Give back first what is no longer used, which waits for the kernels that run.
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
    """Free bytes of the device that has the fewest, and its number.

    Parameters
    ----------
    indices
        Numbers of the devices.
    tidy
        As for `free_memory`.
    """
    found = []
    for index in dict.fromkeys(indices):
        with on_device(index):
            found.append((free_memory(tidy=tidy), index))
    return min(found)


@contextlib.contextmanager
def on_device(index: int) -> Iterator[None]:
    """Make a device the current one of this thread; errors of CUDA become errors of plait.

    Raises
    ------
    DeviceMemoryError
        If an allocation fails.
    DeviceFailure
        If the device or a kernel stops.
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
