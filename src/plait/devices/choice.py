"""Names of devices, and the target that each means.

=================== =================================================================================
name                meaning
=================== =================================================================================
``auto``            the first CUDA device that can be used, else ``cpu``
``cpu``             compiled code on the processors of this machine
``reference``       plain Python, slow
``cuda``            the first CUDA device
``cuda:N``          CUDA device N, as the driver numbers them
``cuda:all``        all CUDA devices of this machine that are of the generation of the first one
=================== =================================================================================

Importing this module loads no CUDA library, and neither does ``auto`` on a machine without a driver.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from plait.devices.driver import DriverFacts, device_problem, probe, usable
from plait.devices.target import CpuTarget, ReferenceTarget, Target
from plait.errors import InvalidInput, TargetUnavailable

#: What may be given as ``device=``; N stands for a number.
DEVICES = ("auto", "cpu", "reference", "cuda", "cuda:N", "cuda:all")
_NAMED = ("auto", "cpu", "reference", "cuda", "cuda:all")


def check_device(device: str) -> None:
    """Refuse what is no name of a device, whether or not it is here: `InvalidInput`."""
    if isinstance(device, str):
        number = device.removeprefix("cuda:")
        if device in _NAMED or (number != device and number.isascii() and number.isdigit()):
            return
    raise InvalidInput("device", found=repr(device), expected=f"one of {', '.join(DEVICES)}")


def resolve(device: str, threads: int | None = None) -> Target:
    """The target of a name, one of `DEVICES`.

    `threads` are for what runs on the CPU, by default those of the settings. `InvalidInput` if there is no
    such name or number of threads; `TargetUnavailable` if CUDA is asked for and cannot be used: why, and what
    to do.
    """
    check_device(device)
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise InvalidInput("threads", found=repr(threads), expected="a whole number of at least 1")
    if device == "reference":
        return ReferenceTarget()
    if device == "cpu" or (device == "auto" and (_simulated() or not usable().ok)):
        return CpuTarget(threads)
    numbers = _cuda_devices(device)
    from plait.devices.cuda_target import CudaTarget

    return CudaTarget(numbers, threads, sparing=device == "auto")


def _cuda_devices(device: str) -> list[int]:
    if _simulated():
        return [int(device.removeprefix("cuda:"))] if device[-1].isdigit() else [0]
    able = usable()
    if not able.ok:
        raise TargetUnavailable(device, reason=able.reason, fix=able.fix)
    return devices_of(device, probe())


def devices_of(device: str, facts: DriverFacts) -> list[int]:
    """Numbers of the CUDA devices that a name, ``auto`` or one with ``cuda``, means.

    `facts` has some device that can be used; `TargetUnavailable` if the one that is named cannot.
    """
    fit = [found.number for found in facts.devices if not device_problem(found)]
    if device == "cuda:all":
        # Numba compiles what kernels call once in a process, so it must do for all devices.
        first = facts.devices[fit[0]].capability
        return [number for number in fit if facts.devices[number].capability == first]
    if not device[-1].isdigit():
        return fit[:1]
    number = int(device.removeprefix("cuda:"))
    names = ", ".join(f"cuda:{n}" for n in fit)
    if number >= len(facts.devices):
        raise TargetUnavailable(device, reason="there is no such device", fix=f"there are: {names}")
    problem = device_problem(facts.devices[number])
    if problem:
        raise TargetUnavailable(device, reason=problem, fix=f"use one of: {names}")
    return [number]


def used_devices(names: Iterable[str]) -> str:
    """What parts of some work were done on, in one name, GPUs first; empty if there was no part.

    `names` describe targets, and may name several: ``"cuda:0 (NVIDIA H200) and cpu"``.
    """
    found = {part for name in names for part in name.split(" and ")}
    return " and ".join(sorted(found, key=lambda part: (part == "cpu", part)))


def _simulated() -> bool:
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "").strip() not in ("", "0")
