"""What a device offers, what a problem says of itself to be launched on it, and the devices that need no GPU.

A device knows ``launch(problem, batch)`` and no problem by name. To add a problem, write its `Problem` into
the table of its room (`plait.dp.chain.launches`, `plait.dp.pairs.launches`): a function for the CPU, one for
the reference and, if it has kernels for GPUs, the name of one that launches these. To add a device, write a
class with what `Target` asks for, give `Problem` a field for its functions, and the device a name in
`plait.devices.choice`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

from plait.settings import thread_count

B = TypeVar("B")
R = TypeVar("R")
T = TypeVar("T")


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
        return [run(item) for item in work]
    with ThreadPoolExecutor(threads, thread_name_prefix="plait") as pool:
        return list(pool.map(run, work))


def over_stretches(threads: int, items: int, least: int, run: Callable[[int, int], None]) -> None:
    """Call ``run(first, last)`` for stretches of items, of `least` or more if there are several."""
    count = 1 if threads == 1 else max(1, min(4 * threads, items // least))
    edges = [items * k // count for k in range(count + 1)]
    over_threads(threads, list(pairwise(edges)), lambda stretch: run(*stretch))
