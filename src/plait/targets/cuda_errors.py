"""Errors of CUDA in the words of plait: what happened, and what to do.

CUDA's libraries raise several classes of error, all of which name the driver's code, such as
``CUDA_ERROR_OUT_OF_MEMORY``, in their text; `translate` goes by that.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from plait.errors import DeviceFailure, DeviceMemoryError

__all__ = ["translate"]

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

    Parameters
    ----------
    error
        What was raised.
    device
        Name of the device.
    free
        Asked for free bytes when memory was short.
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
