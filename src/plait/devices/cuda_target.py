"""GPUs as a device: what they launch, and what is left to the CPU.

What a problem has no kernel for, or its kernels do not serve, runs on the CPU. Results are those of the CPU,
bit for bit, or as near as their algebra states, so nobody needs to know where something ran.

Where a GPU was not asked for by name (``device="auto"``), a small kernel is tried before its first use, and
if it fails, or lacks memory, the CPU does what it was to do.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from plait.devices.driver import probe
from plait.devices.target import CpuTarget, Problem
from plait.errors import DeviceFailure, DeviceMemoryError, PlaitError

B = TypeVar("B")
R = TypeVar("R")


class CudaTarget:
    """NVIDIA GPUs of this machine, by number.

    Batches are shared out over them, and results do not depend on how. `threads` are for what runs on the
    CPU. `sparing` leaves to the CPU small batches, which it has done before a GPU has started, and those with
    which a GPU fails: nobody asked for it by name.
    """

    def __init__(
        self, devices: Sequence[int] = (0,), threads: int | None = None, *, sparing: bool = False
    ) -> None:
        self.devices = tuple(devices)
        self.host = CpuTarget(threads)
        self.threads = self.host.threads
        self.sparing = sparing

    @property
    def name(self) -> str:
        """Such as ``cuda:0``, or ``cuda:0,1``."""
        return "cuda:" + ",".join(map(str, self.devices))

    @property
    def description(self) -> str:
        """The name with those of the devices, for provenance."""
        names = {device.number: device.name for device in probe().devices}
        found = [names[number] for number in self.devices if number in names]
        told = f"{self.name} ({', '.join(dict.fromkeys(found))})" if found else self.name
        return f"{told} and cpu" if self.sparing and has_left(self.devices) else told

    def launch(self, problem: Problem[B, R], batch: B) -> R:
        """Solve a batch on the GPUs, or on the CPU if that is faster or all that works."""
        own, again = _retold(batch)
        if problem.cuda and not (self.sparing and (not problem.worth(batch) or failed(self.devices))):
            try:
                found = problem.on_cuda()(own, self)
                if found is not None:
                    return found
            except (DeviceFailure, DeviceMemoryError) as error:
                if not self.sparing:
                    raise
                leave(self.devices, error)
        return self.host.launch(problem, again())


def _retold(batch: Any) -> tuple[Any, Callable[[], Any]]:
    """A batch, and what gives it anew: cells that were told in vain are then not told again."""
    if not hasattr(batch, "progress"):
        return batch, lambda: batch
    told = Told(batch.progress)
    return batch._replace(progress=told), lambda: batch._replace(progress=told.again())


class Told:
    """Passes numbers of cells on, and knows how many were told.

    The first `before` cells were told in vain and are not told again.
    """

    def __init__(self, progress: Callable[[int], None], before: int = 0) -> None:
        self._progress = progress
        self._before = before
        self._cells = 0
        self._lock = threading.Lock()

    def __call__(self, cells: int) -> None:
        """Tell so many more."""
        with self._lock:
            known = max(self._before - self._cells, 0)
            self._cells += cells
            new = cells - known
        if new > 0:
            self._progress(new)

    def again(self) -> Told:
        """For the same work from its beginning."""
        return Told(self._progress, max(self._cells, self._before))


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
        from plait.devices.cuda_devices import try_device

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
