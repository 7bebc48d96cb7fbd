"""What every executor offers, threads of this process, and the executor that a user asks for by name."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

from plait.errors import MOST_THREADS, InvalidInput, whole
from plait.settings import thread_count

ExecutorName: TypeAlias = Literal["local", "dask"]
#: Bytes of batches that are held at a time, be one of them as large as it may.
HELD_BYTES: Final = 256 << 20

B = TypeVar("B")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: rows, or reads, that are done, and bytes of the inputs that have been read."""

    rows: int
    bytes_read: int
    total_bytes: int


class Executor(Protocol):
    """Runs a function on batches; the caller merges the results, in order."""

    @property
    def slots(self) -> int:
        """Batches worked on at a time."""
        ...

    @property
    def elsewhere(self) -> bool:
        """Whether batches are worked on in other processes.

        Functions, batches and results must be picklable then, and files be where all machines find them under
        the same path.
        """
        ...

    def map(
        self,
        function: Callable[[B], R],
        batches: Iterable[B],
        *,
        most: int | None = None,
        named: Callable[[B], str] | None = None,
        size: Callable[[B], int] | None = None,
    ) -> Generator[R, None, None]:
        """Results in input order; only a bounded number of batches is held at a time.

        Batches are read only as fast as results are taken, and no more while those that are held have
        `HELD_BYTES` by `size`. `most` limits those worked on at a time in one process, where that is what
        limits memory. `named` is what a batch is called in an error: its file and rows, for example. Closing
        the generator drops batches that have not started.
        """
        ...


class LocalExecutor:
    """A pool of `threads` threads, each with one batch at a time; the work must release the GIL.

    `threads` are by default those of the settings. `waiting` batches are held besides, so that small ones
    keep the threads busy while the next are made.
    """

    def __init__(self, threads: int | None = None, *, waiting: int = 1) -> None:
        self.threads = thread_count() if threads is None else whole("threads", threads, 1, MOST_THREADS)
        self._waiting = waiting

    @property
    def slots(self) -> int:
        """The number of threads."""
        return self.threads

    @property
    def elsewhere(self) -> bool:
        """No: batches stay in this process."""
        return False

    def map(
        self,
        function: Callable[[B], R],
        batches: Iterable[B],
        *,
        most: int | None = None,
        named: Callable[[B], str] | None = None,
        size: Callable[[B], int] | None = None,
    ) -> Generator[R, None, None]:
        """Results in input order, whatever the order in which batches finish.

        Batches are read in the calling thread; at most ``threads + waiting`` are held, worked on by at most
        `most` threads. When the caller stops early, or an error is raised, batches that have not started are
        dropped and running ones are waited for. `named` is not used: errors are raised as they are.
        """
        threads = self.threads if most is None else min(self.threads, most)
        pool = ThreadPoolExecutor(threads, thread_name_prefix="plait")
        under_way: deque[tuple[Future[R], int]] = deque()
        held = 0
        try:
            for batch in batches:
                bytes_here = size(batch) if size else 0
                held += bytes_here
                under_way.append((pool.submit(function, batch), bytes_here))
                while len(under_way) >= threads + self._waiting or (under_way and held > HELD_BYTES):
                    done, bytes_done = under_way.popleft()
                    held -= bytes_done
                    yield done.result()
            while under_way:
                yield under_way.popleft()[0].result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def open_executor(
    name: ExecutorName = "local",
    *,
    threads: int | None = None,
    scheduler: str | None = None,
    scheduler_file: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    worker_memory: int | str | None = None,
) -> Generator[Executor, None, None]:
    """Threads of this process, or a Dask cluster.

    Parameters
    ----------
    name
        ``"local"`` or ``"dask"``.
    threads
        Local: threads, by default those of the settings. Dask, without a scheduler: threads of each worker
        that is started, 1 by default.
    scheduler
        Dask: address of a scheduler that runs, as ``tcp://host:8786``.
    scheduler_file
        Dask: file in which a scheduler that runs has written its address.
    workers
        Dask, without a scheduler: processes that are started on this machine; by default as many as its
        processors allow.
    worker_memory
        Dask, without a scheduler: memory of each worker, in bytes or as ``"4GiB"``; by default its share of
        that of this machine.

    Yields
    ------
    Executor
        Closed on exit, and with it the cluster, if it was started here.

    Raises
    ------
    InvalidInput
        If an option is wrong or does not belong to the executor.
    TargetUnavailable
        If Dask is not installed, or no scheduler answers.
    """
    options: dict[str, Any] = {
        "scheduler": scheduler,
        "scheduler_file": scheduler_file,
        "workers": workers,
        "worker_memory": worker_memory,
    }
    if name == "dask":
        from plait.run.dask import DaskExecutor

        with DaskExecutor(**options, threads=threads) as executor:
            yield executor
        return
    if name != "local":
        raise InvalidInput("executor", found=repr(name), expected="'local' or 'dask'")
    for option, value in options.items():
        if value is not None:
            raise InvalidInput(option, found=repr(str(value)), expected="the executor dask with it")
    yield LocalExecutor(threads)
