"""Whether a device really works: a small kernel that is tried once, and what has failed since.

``plait doctor`` tells what is found here. Targets that nobody named (``device="auto"``) ask it before their
first use of a GPU, and leave a device that fails to itself: what they were to do is done on the CPU.
"""

from __future__ import annotations

import os
import threading
import warnings

from plait.errors import DeviceFailure, PlaitError


class _Found:
    """What this process has found, and said; a fork begins anew, since CUDA does not survive one."""

    lock = threading.RLock()
    process = -1
    trials: dict[int, str] = {}  # noqa: RUF012  # one for the process
    left: set[tuple[int, ...]] = set()  # noqa: RUF012
    failures: dict[tuple[int, ...], str] = {}  # noqa: RUF012

    @classmethod
    def here(cls) -> type[_Found]:
        """The same, with the lock held, once what another process has found is forgotten."""
        if cls.process != os.getpid():
            cls.process, cls.trials, cls.left, cls.failures = os.getpid(), {}, set(), {}
        return cls


def trial(number: int) -> str:
    """Why a small kernel does not run on a device, by its number as in ``cuda:0``, or nothing; tried once."""
    with _Found.lock:
        found = _Found.here()
        if number not in found.trials:
            found.trials[number] = _tried(number)
        return found.trials[number]


def _tried(number: int) -> str:
    try:
        from plait.devices.cuda_trial import try_device

        return try_device(number)
    except PlaitError as error:
        return str(error)
    except Exception as error:
        # Libraries of unlike versions fail in many ways, of which a report must not be one.
        return f"a small kernel does not run: {type(error).__name__}: {error}".splitlines()[0]


def failed(devices: tuple[int, ...]) -> str:
    """Why devices that nobody named are not to be used any more, or nothing."""
    with _Found.lock:
        found = _Found.here()
        if devices not in found.failures:
            problem = next((problem for problem in map(trial, devices) if problem), "")
            found.failures[devices] = problem
            if problem:
                _say(devices, problem)
        return found.failures[devices]


def leave(devices: tuple[int, ...], error: PlaitError) -> None:
    """Take note that the CPU does what devices were to do, and say so once.

    After a failure they are not used again in this process; memory may be free again the next time.
    """
    with _Found.lock:
        if isinstance(error, DeviceFailure):
            _Found.here().failures[devices] = str(error)
        _say(devices, str(error))


def _say(devices: tuple[int, ...], problem: str) -> None:
    if devices not in _Found.here().left:
        _Found.left.add(devices)
        warnings.warn(f"{problem}; the CPU does it instead", RuntimeWarning, stacklevel=2)


def has_left(devices: tuple[int, ...]) -> bool:
    """Whether the CPU has done what devices were to do."""
    with _Found.lock:
        return devices in _Found.here().left
