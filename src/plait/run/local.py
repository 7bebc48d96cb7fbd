"""Threads of this process. The work must release the GIL to gain from them, as compiled kernels do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from plait.errors import InvalidInput
from plait.run.executor import HELD_BYTES
from plait.settings import thread_count

B = TypeVar("B")
R = TypeVar("R")


class LocalExecutor:
    """A pool of `threads` threads, each with one batch at a time.

    `threads` are by default those of the settings. `waiting` batches are held besides, so that small ones
    keep the threads busy while the next are made.
    """

    def __init__(self, threads: int | None = None, *, waiting: int = 1) -> None:
        if threads is None:
            threads = thread_count()
        if threads < 1:
            raise InvalidInput("threads", found=repr(threads), expected="a whole number of at least 1")
        self.threads = threads
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
