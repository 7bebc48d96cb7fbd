"""What NVIDIA's driver and monitoring library say about this machine, without any CUDA library for Python."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import sys
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plait.types import Availability

#: Compute capability from which kernels are built: that of A100.
LEAST_CAPABILITY = (8, 0)
#: Oldest CUDA for which numba-cuda has libraries.
_LEAST_CUDA = 12
#: What compiles kernels, in the packages for CUDA 13 and later. pip leaves them where it installs those for
#: CUDA 12, which have other names, and they are found before these.
_FOUND_FIRST = ("nvidia-nvvm", "nvidia-nvjitlink")
_INSTALL = "pip install 'plait[cuda13]'"
_ELSE_CPU = "or use device='cpu'"
_LIBRARIES = ("libcuda.so.1", "libcuda.so") if sys.platform != "win32" else ("nvcuda.dll",)
_FILES = Path("/dev/nvidiactl")

_NO_DEVICE = 100
#: Why the driver does not start, and what to do, by its error.
_NOT_USABLE = {
    3: ("CUDA was started before this process was forked", "start processes with the method 'spawn'"),
    34: (
        "the library found is CUDA's stub for linking, not the driver",
        "take the stubs folder out of LD_LIBRARY_PATH",
    ),
    100: ("the driver finds no device", "look at what nvidia-smi says"),
    803: (
        "the driver's library and its kernel module are of different versions",
        "restart the machine after an update of the driver",
    ),
}
_MULTIPROCESSORS, _MAJOR, _MINOR, _SHARED_PER_BLOCK = 16, 75, 76, 97


class DriverDevice(NamedTuple):
    """A device, as the driver describes it; `number` is as in ``cuda:0``.

    `memory` is bytes in all; `uuid` is such as ``GPU-...``; `shared_per_block` the bytes of shared memory
    that one block may ask for.
    """

    number: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int
    uuid: str = ""
    shared_per_block: int = 0


class DriverFacts(NamedTuple):
    """What `probe` has found.

    `version` is the newest CUDA that the driver serves, (13, 0), or None without a driver that starts.
    `devices` are all that this process may see, too old ones among them. `reason` and `fix` say why there is
    no device and what to do; empty if there is one.
    """

    version: tuple[int, int] | None
    devices: tuple[DriverDevice, ...]
    reason: str = ""
    fix: str = ""


def probe() -> DriverFacts:
    """Ask the driver; the answer is kept for this process, and asked again after a fork."""
    return _probe(os.getpid())


@functools.lru_cache(maxsize=1)
def _probe(process: int) -> DriverFacts:
    library = load_driver()
    if library is None:
        return _without_driver()
    status = int(library.cuInit(0))
    version = _version(library)
    if status:
        return DriverFacts(version, (), *_why_not_started(status))
    found = ctypes.c_int(0)
    status = int(library.cuDeviceGetCount(ctypes.byref(found)))
    if status or not found.value:
        return DriverFacts(version, (), *_why_not_started(status or _NO_DEVICE))
    return DriverFacts(version, tuple(_describe(library, number) for number in range(found.value)))


@functools.cache
def load_driver() -> Any:
    """The driver's library, or None."""
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def begin(devices: Sequence[int]) -> None:
    """Have devices start, side by side, while other things are made ready: each takes a third of a second.

    What goes wrong is told when they are used.
    """
    for number in devices:
        _begin(os.getpid(), number)


@functools.lru_cache(maxsize=64)
def _begin(process: int, number: int) -> None:
    library = load_driver()

    def retain() -> None:
        device, context = ctypes.c_int(number), ctypes.c_void_p()
        if not library.cuDeviceGet(ctypes.byref(device), number):
            library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)

    if library is not None:
        threading.Thread(target=retain, name="plait-begin").start()


def _version(library: Any) -> tuple[int, int] | None:
    number = ctypes.c_int(0)
    if library.cuDriverGetVersion(ctypes.byref(number)) or not number.value:
        return None
    return number.value // 1000, number.value % 1000 // 10


def _describe(library: Any, number: int) -> DriverDevice:
    device, name, memory = ctypes.c_int(number), ctypes.create_string_buffer(256), ctypes.c_size_t(0)
    library.cuDeviceGet(ctypes.byref(device), number)
    library.cuDeviceGetName(name, len(name), device)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

    def attribute(which: int) -> int:
        value = ctypes.c_int(0)
        library.cuDeviceGetAttribute(ctypes.byref(value), which, device)
        return value.value

    return DriverDevice(
        number,
        name.value.decode(errors="replace"),
        (attribute(_MAJOR), attribute(_MINOR)),
        attribute(_MULTIPROCESSORS),
        memory.value,
        _uuid(library, device),
        attribute(_SHARED_PER_BLOCK),
    )


def _uuid(library: Any, device: ctypes.c_int) -> str:
    found = (ctypes.c_ubyte * 16)()
    if library.cuDeviceGetUuid(ctypes.byref(found), device):
        return ""
    return f"GPU-{uuid.UUID(bytes=bytes(found))}"


def _without_driver() -> DriverFacts:
    if sys.platform == "darwin":
        return DriverFacts(None, (), "there is no CUDA for macOS", "use device='cpu'")
    if _FILES.exists():
        # The kernel's part of the driver is there, so this is a container without the rest.
        fix = "start the container with --gpus all (NVIDIA container toolkit), " + _ELSE_CPU
        return DriverFacts(None, (), "the CUDA driver library was not found, but device files are here", fix)
    reason = "the CUDA driver library was not found"
    return DriverFacts(None, (), reason, f"install NVIDIA's driver, {_ELSE_CPU}")


def _why_not_started(status: int) -> tuple[str, str]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if status == _NO_DEVICE and visible is not None:
        reason = f"CUDA_VISIBLE_DEVICES={visible!r} leaves no device"
        return reason, f"set it to the numbers of the devices to use, such as 0, {_ELSE_CPU}"
    if status == _NO_DEVICE and sys.platform == "linux" and not _FILES.exists():
        reason = "the driver finds no device, and there are no device files (/dev/nvidia*)"
        return reason, f"start a container with --gpus all, load the driver's kernel module, {_ELSE_CPU}"
    unknown = f"the CUDA driver does not start (error {status})", "look at what nvidia-smi says"
    reason, fix = _NOT_USABLE.get(status, unknown)
    return reason, f"{fix}, {_ELSE_CPU}"


def device_problem(device: DriverDevice) -> str:
    """Why a device cannot be used, or nothing."""
    if device.capability >= LEAST_CAPABILITY:
        return ""
    has, needs = (".".join(map(str, c)) for c in (device.capability, LEAST_CAPABILITY))
    return f"{device.name} has compute capability {has}, and {needs} is needed"


def usable() -> Availability:
    """Whether kernels can run on some device of this machine, and if not, why and what to do."""
    facts = probe()
    if facts.reason:
        return Availability(False, facts.reason, facts.fix)
    problems = [device_problem(device) for device in facts.devices]
    if all(problems):
        return Availability(False, "; ".join(problems), "use device='cpu'")
    return _libraries(facts.version)


@functools.lru_cache(maxsize=1)
def _libraries(driver: tuple[int, int] | None) -> Availability:
    """Whether what compiles kernels is installed, and fits the driver and NumPy; looked up once, in 2 ms."""
    if importlib.util.find_spec("numba_cuda") is None:
        return Availability(False, "numba-cuda is not installed", _INSTALL)
    numpy = _release("numpy")
    if numpy is not None and numpy >= (2, 5) and (_release("numba-cuda") or (0,)) < (0, 31):
        told = ".".join(map(str, numpy))
        return Availability(False, f"numba-cuda does not work with NumPy {told}", "pip install 'numpy<2.5'")
    bindings = _release("cuda-bindings")
    if bindings is None:
        return Availability(False, "cuda-bindings is not installed", _INSTALL)
    if driver is not None and driver[0] < bindings[0]:
        serves = ".".join(map(str, driver))
        older = f"or pip install 'numba-cuda[cu{driver[0]}]'" if driver[0] >= _LEAST_CUDA else _ELSE_CPU
        return Availability(
            False,
            f"the driver serves CUDA {serves}, and the installed libraries are of CUDA {bindings[0]}",
            f"update the driver, {older}",
        )
    return _leftovers(driver) if driver is not None else Availability(True)


def _leftovers(driver: tuple[int, int]) -> Availability:
    """Whether what compiles kernels suits the driver, or is left from an installation for a newer CUDA."""
    found = [(name, release[0]) for name in _FOUND_FIRST if (release := _release(name)) is not None]
    newer = [name for name, cuda in found if cuda > driver[0]]
    if not newer:
        return Availability(True)
    serves, cuda = ".".join(map(str, driver)), max(cuda for _, cuda in found)
    return Availability(
        False,
        f"the driver serves CUDA {serves}, and {', '.join(newer)} are of CUDA {cuda}",
        f"pip uninstall {' '.join(newer)} (numba-cuda[cu{driver[0]}] brings its own), {_ELSE_CPU}",
    )


def _release(distribution: str) -> tuple[int, ...] | None:
    """First two numbers of the version of what is installed."""
    import importlib.metadata

    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
    parts = version.split(".")[:2]
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in parts)


_LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


@functools.cache
def _load_monitor() -> Any:
    """The library, started, or None."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None


def free_bytes(uuid: str) -> int | None:
    """Free bytes of a device, by its UUID such as ``GPU-...``; None where that cannot be told."""
    library = _load_monitor()
    handle, memory = ctypes.c_void_p(), _Memory()
    if library is None or library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)):
        return None
    if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
        return None
    return int(memory.free)


def driver_release() -> str | None:
    """Release of the driver, such as 580.95.05."""
    library, text = _load_monitor(), ctypes.create_string_buffer(96)
    if library is None or library.nvmlSystemGetDriverVersion(text, len(text)):
        return None
    return text.value.decode(errors="replace")
