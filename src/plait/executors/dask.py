"""Workers of a Dask cluster."""

from __future__ import annotations

import pickle
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from plait.errors import PlaitError, TargetUnavailable, TaskFailed
from plait.executors.dask_calls import Call, own_sources, packed
from plait.executors.dask_cluster import ClusterOptions, opened
from plait.executors.protocol import HELD_BYTES

__all__ = ["DaskExecutor"]

B = TypeVar("B")
R = TypeVar("R")

#: Batches that are sent before the first result is taken, for each thread of the cluster: while one is worked
#: on, the next is there.
_SENT = 2
#: A task that raises an error is given to another worker so many times. (One whose worker dies is given to
#: others by the scheduler, three times unless its settings say otherwise.)
_RETRIES = 1
_SECONDS_BETWEEN_LOOKS = 1.0
#: While a result does not come: until it is asked whether there are workers at all.
_SECONDS_OF_PATIENCE = 30.0
_KEPT = "finished parts are kept: repeat the command with --resume"


class DaskExecutor:
    """A Dask cluster that runs, or one of processes of this machine; a context manager.

    Parameters
    ----------
    **options
        Fields of `plait.executors.dask_cluster.ClusterOptions`.

    Raises
    ------
    InvalidInput
        If the options are wrong.
    """

    def __init__(self, **options: Any) -> None:
        self._options = ClusterOptions(**options)
        self._client: Any = None
        self._stack = ExitStack()
        self._threads = 1
        self._looked = float("-inf")

    def __enter__(self) -> Self:
        """Connect, or start workers.

        Raises
        ------
        TargetUnavailable
            If Dask is not installed, or there is no cluster.
        """
        self._client = self._stack.enter_context(opened(self._options))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def slots(self) -> int:
        """Threads of all workers, as of about a second ago: workers may come and go."""
        if time.monotonic() - self._looked > _SECONDS_BETWEEN_LOOKS:
            with self._lost():
                self._threads = max(1, sum(self._client.nthreads().values()))
            self._looked = time.monotonic()
        return self._threads

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return str(self._client.scheduler.address)

    @property
    def elsewhere(self) -> bool:
        """Yes."""
        return True

    def map(
        self,
        function: Callable[[B], R],
        batches: Iterable[B],
        *,
        most: int | None = None,
        named: Callable[[B], str] | None = None,
        size: Callable[[B], int] | None = None,
    ) -> Generator[R, None, None]:
        """Results in input order, whatever the worker and the order in which batches finish.

        About two batches for each thread of the cluster are held at a time. A batch whose worker dies, or
        whose result is lost with a worker, is worked on again by another one.

        Parameters
        ----------
        function
            Called with one batch, on some worker. It is unpickled once in a process: what it makes and keeps
            for itself is made once.
        batches
            Read in the calling thread, only as fast as results are taken; picklable.
        most
            Not used: each worker has its own memory.
        named
            What a batch is called in an error: its file and rows, for example.
        size
            Bytes of a batch; no more are sent while those that are held have `HELD_BYTES`.

        Raises
        ------
        TaskFailed
            If a batch fails wherever it is tried.
        TargetUnavailable
            If the scheduler does not answer any more.
        """
        function_bytes = packed(function)
        under_way: deque[tuple[Any, str, int]] = deque()
        held = 0
        try:
            for number, batch in enumerate(batches):
                name, bytes_here = named(batch) if named else f"batch {number}", size(batch) if size else 0
                held += bytes_here
                under_way.append((self._sent(function_bytes, batch), name, bytes_here))
                while len(under_way) >= _SENT * self.slots or (under_way and held > HELD_BYTES):
                    future, name, bytes_done = under_way.popleft()
                    held -= bytes_done
                    yield self._result(future, name)
            while under_way:
                yield self._result(*under_way.popleft()[:2])
        finally:
            if under_way:
                # Where the scheduler is gone, they are too.
                with suppress(Exception):
                    self._client.cancel([future for future, _, _ in under_way], force=True)

    def _sent(self, function: bytes, batch: Any) -> Any:
        call = Call(function, packed(batch), own_sources())
        with self._lost():
            return self._client.submit(call, key=f"plait-{uuid.uuid4().hex}", pure=False, retries=_RETRIES)

    def _result(self, future: Any, name: str) -> Any:
        with self._lost():
            error = self._error_of(future)
            if error is None:
                return pickle.loads(future.result())
        self._raise(error, name)

    def _error_of(self, future: Any) -> BaseException | None:
        """Wait for the end of a task."""
        without_worker = 0
        while True:
            try:
                found: BaseException | None = future.exception(timeout=_SECONDS_OF_PATIENCE)
                return found
            except TimeoutError:
                without_worker = 0 if self._client.nthreads() else without_worker + 1
            if without_worker == 1 and not self._options.starts_workers:
                warnings.warn("the cluster has no worker left; waiting for one", stacklevel=2)
            if without_worker == 2 and self._options.starts_workers:
                raise TargetUnavailable(
                    "dask", reason="its workers have ended and do not start any more", fix=f"see why; {_KEPT}"
                )

    def _raise(self, error: BaseException, name: str) -> NoReturn:
        from distributed.scheduler import KilledWorker

        if isinstance(error, PlaitError):
            error.add_note(f"in {name}")
            raise error
        if isinstance(error, KilledWorker):
            raise self._killed(error, name) from error
        if isinstance(error, MemoryError):
            fix = f"give each worker more memory ({self._option_of_memory}); {_KEPT}"
            raise TaskFailed(name, reason="the memory of a worker is used up", fix=fix) from error
        raise TaskFailed(
            name,
            reason=f"{type(error).__name__}: {error}",
            fix=f"see the logs of the workers; {_KEPT}",
            unexpected=True,
        ) from error

    def _killed(self, error: Any, name: str) -> TaskFailed:
        tries = error.allowed_failures + 1
        who = f"{tries} workers one after the other" if tries > 1 else "the worker"
        limit = getattr(error.last_worker, "memory_limit", 0)
        told = f" of {limit / 2**20:,.0f} MiB" if limit else ""
        events: Any = ()
        with suppress(Exception):
            events = self._client.get_events("worker-restart-memory")
        if events:
            return TaskFailed(
                name,
                reason=f"{who} reached the memory limit{told} on it, and was stopped",
                fix=f"give each worker more memory ({self._option_of_memory}); {_KEPT}",
            )
        return TaskFailed(
            name,
            reason=f"{who} died on it (memory limit{told or ': none'})",
            fix=f"see the logs of the workers and of the system, which may lack memory; {_KEPT}",
        )

    @property
    def _option_of_memory(self) -> str:
        started = self._options.starts_workers
        return "--worker-memory" if started else "dask worker --memory-limit"

    @contextmanager
    def _lost(self) -> Iterator[None]:
        """Say clearly that the scheduler has gone."""
        try:
            yield
        except (CancelledError, OSError, TimeoutError) as error:
            place = self._options.address or "this machine"
            raise TargetUnavailable(
                "dask",
                reason=f"the scheduler on {place} does not answer any more ({str(error).splitlines()[0]})",
                fix=f"start it again; {_KEPT}",
            ) from error
