"""Devices by name, what they offer, and what a problem says of itself to be launched on one.

A device knows ``launch(problem, batch)`` and no problem by name. To add a problem, write its `Problem` into
the table of its room (`plait.dp.chain.launches`, `plait.dp.pairs.launches`): a function for the CPU, one for
the reference and, if it has kernels for GPUs, the name of one that launches these. To add a device, write a
class with what `Target` asks for, give `Problem` a field for its functions, and the device a name here:

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

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypedDict, TypeVar

from plait.devices.driver import DriverFacts, begin, device_problem, probe, usable
from plait.errors import MOST_THREADS, InvalidInput, TargetUnavailable, whole
from plait.settings import thread_count

B = TypeVar("B")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

#: Free memory where nothing is known of it.
_PERHAPS: Final = 4 << 30
_GROUP: Final = Path("/sys/fs/cgroup")


def always(batch: Any) -> bool:
    """Any batch is worth it."""
    return True


@dataclass(frozen=True, slots=True)
class Problem(Generic[B, R]):
    """What is launched for batches of a kind: named tuples, with results in them or returned.

    Functions take the batch and the device. `cuda` is ``module:function``, imported when it is first needed,
    and with it the compiler; None from it, or no such function, leaves the batch to the CPU. `worth` says
    whether a batch is worth the start of a GPU that nobody asked for by name. A batch's field ``progress``,
    if it has one, is told the cells that are done.
    """

    name: str
    cpu: Callable[[B, Target], R]
    reference: Callable[[B, Target], R]
    cuda: str = ""
    worth: Callable[[B], bool] = always

    @classmethod
    def of(cls, name: str, run: Callable[..., R], *kernels: Any, **gpu: Any) -> Problem[Any, R]:
        """What ``run(*kernels, batch, device)`` launches; the reference interprets the kernels."""
        return Problem(name, partial(run, *kernels), partial(run, *map(interpreted, kernels)), **gpu)

    def on_cuda(self) -> Callable[[B, Any], R | None]:
        """What launches it on GPUs."""
        module, _, function = self.cuda.partition(":")
        found: Callable[[B, Any], R | None] = getattr(import_module(module), function)
        return found


class Target(Protocol):
    """A device, or several of a kind."""

    @property
    def name(self) -> str:
        """Name, as given to ``device=``."""

    @property
    def description(self) -> str:
        """Name with what tells this device from others, for provenance."""

    @property
    def threads(self) -> int:
        """Threads for what runs on the CPU."""

    @property
    def devices(self) -> tuple[int, ...]:
        """Numbers of the GPUs, if there are any."""

    def launch(self, problem: Problem[B, R], batch: B) -> R:
        """Solve a batch of a problem."""


class CpuTarget:
    """Compiled CPU code; `threads` per batch, by default the processors this process may use."""

    name = description = "cpu"
    devices = ()

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count() if threads is None else threads

    def launch(self, problem: Problem[B, R], batch: B) -> R:
        """Solve a batch, parts of it in parallel."""
        return problem.cpu(batch, self)


class ReferenceTarget:
    """The schedules as plain Python: slow, and the definition of every other target.

    It also serves counts too large for 64 bits, by running the same bodies on Python integers.
    """

    name = description = "reference"
    devices = ()
    threads = 1

    def launch(self, problem: Problem[B, R], batch: B) -> R:
        """Solve a batch."""
        return problem.reference(batch, self)


def interpreted(kernel: Any) -> Any:
    """The definition of a compiled entry point."""
    return getattr(kernel, "py_func", kernel)


def over_threads(threads: int, work: Sequence[T], run: Callable[[T], R]) -> list[R]:
    """Call ``run(item)`` for every item of work; results are in its order.

    Every item has its own scratch memory and writes its own rows, so neither the number of threads nor their
    order can change a bit of the results.
    """
    if threads == 1 or len(work) <= 1:
        return list(map(run, work))
    with ThreadPoolExecutor(threads, thread_name_prefix="plait") as pool:
        return list(pool.map(run, work))


def stretches(threads: int, items: int, least: int) -> list[tuple[int, int]]:
    """Stretches (first, last) of items for so many threads, of `least` or more if there are several."""
    count = 1 if threads == 1 else max(1, min(4 * threads, items // least))
    return list(pairwise(items * k // count for k in range(count + 1)))


#: What may be given as ``device=``; N stands for a number.
DEVICES = ("auto", "cpu", "reference", "cuda", "cuda:N", "cuda:all")
_NAMED = ("auto", "cpu", "reference", "cuda", "cuda:all")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def free_bytes() -> int:
    """Bytes of memory that are free, within the limit of this process's control group if it has one."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        free = _PERHAPS
    most, taken = _number(_GROUP / "memory.max"), _number(_GROUP / "memory.current")
    if most is not None and taken is not None:
        free = min(free, most - taken)
    return max(free, 0)


def check_device(device: str) -> None:
    """Refuse what is no name of a device, whether or not it is here: `InvalidInput`."""
    if isinstance(device, str):
        number = device.removeprefix("cuda:")
        if device in _NAMED or (number != device and number.isascii() and number.isdigit()):
            return
    raise InvalidInput("device", found=repr(device), expected=f"one of {', '.join(DEVICES)}")


class On(TypedDict, total=False):
    """Where work is done: `device`, one of `DEVICES`, and `threads` of the CPU."""

    device: str
    threads: int | None


def spelled(function: F, *of: Callable[..., Any]) -> F:
    """Show in the signature, and so in help, what ``**`` stands for: keywords of `of`, by default `On`."""
    found = inspect.signature(function)
    given = [*found.parameters.values()][:-1]
    theirs = [own for one in of or (resolve,) for own in inspect.signature(one).parameters.values()]
    named = [own.replace(kind=own.KEYWORD_ONLY) for own in theirs if own.default is not own.empty]
    function.__signature__ = found.replace(parameters=[*given, *named])  # type: ignore[attr-defined]
    return function


def resolve(device: str = "auto", threads: int | None = None) -> Target:
    """The target of a name, one of `DEVICES`.

    `threads` are for what runs on the CPU, by default those of the settings. `InvalidInput` if there is no
    such name or number of threads; `TargetUnavailable` if CUDA is asked for and cannot be used: why, and what
    to do.
    """
    check_device(device)
    threads = None if threads is None else whole("threads", threads, 1, MOST_THREADS)
    if device == "reference":
        return ReferenceTarget()
    if device == "cpu" or (device == "auto" and (_simulated() or not usable().ok)):
        return CpuTarget(threads)
    numbers = _cuda_devices(device)
    if device != "auto":
        begin(numbers)
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
