"""What NVIDIA's monitoring library says: free memory of a device, and the release of the driver."""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

__all__ = ["driver_release", "free_bytes"]

_LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


@functools.cache
def _load() -> Any:
    """The library, started, or None."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    return library if library.nvmlInit_v2() == 0 else None


def free_bytes(uuid: str) -> int | None:
    """Free bytes of a device, by its UUID such as ``GPU-...``; None where that cannot be told."""
    library = _load()
    handle, memory = ctypes.c_void_p(), _Memory()
    if library is None or library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)):
        return None
    if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
        return None
    return int(memory.free)


def driver_release() -> str | None:
    """Release of the driver, such as 580.95.05."""
    library, text = _load(), ctypes.create_string_buffer(96)
    if library is None or library.nvmlSystemGetDriverVersion(text, len(text)):
        return None
    return text.value.decode(errors="replace")
