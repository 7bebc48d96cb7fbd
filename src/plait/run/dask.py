"""Workers of a Dask cluster: one that runs, or processes that are started on this machine.

A module of its own: it alone imports Dask, and it is loaded when it is asked for.
"""

from __future__ import annotations

import functools
import io
import json
import logging
import os
import pickle
import platform
import re
import signal
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

import pyarrow as pa
import pyarrow.ipc as arrow_ipc

from plait._version import __version__
from plait.errors import MOST_THREADS, InvalidInput, PlaitError, TargetUnavailable, TaskFailed, whole_fields
from plait.run.executor import HELD_BYTES
from plait.settings import package_digest, show_tracebacks, thread_count

_FEW = 4
_lock = threading.Lock()


def dask_setup(worker: object) -> None:
    """What a worker process that was started here does first: what it is preloaded for.

    Leave Ctrl-C, which reaches all processes of a terminal, to the one that has started this one.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@dataclass(frozen=True, slots=True)
class Call:
    """A pickled function with one pickled batch: the scheduler passes the bytes on and makes nothing of them.

    The function is unpickled once in a process, so what it makes for itself is made once. `sources` are the
    `own_sources` of the process that asks.
    """

    function: bytes
    batch: bytes
    sources: str

    def __call__(self) -> Any:
        """The result of the function, packed; TargetUnavailable if another plait is installed here."""
        here = own_sources()
        if self.sources != here:
            raise TargetUnavailable(
                "dask",
                reason=f"a worker on {platform.node()} has plait {here}, this process has {self.sources}",
                fix="install the same version everywhere, and start the workers again",
            )
        with _lock:
            function = _unpickled(self.function)
        result = packed(function(pickle.loads(self.batch)))
        pool = pa.default_memory_pool()
        # Arrow's own would keep all that a batch has ever taken; the C library is told below how much to.
        if pool.backend_name != "system":
            pool.release_unused()
        return result


def packed(thing: object) -> bytes:
    """Something as bytes for `pickle.loads`; functions that are in no module, as of a notebook, by value."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, given: Any) -> Any:
            # By themselves, slices bring along all rows that they are cut from.
            if isinstance(given, pa.RecordBatch):
                return _batch, (_bytes_of(given),)
            return super().reducer_override(given)

    sink = io.BytesIO()
    Pickler(sink).dump(thing)
    return sink.getvalue()


def _bytes_of(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    # Most of what is sent is rows, and all of it passes through one process.
    options = arrow_ipc.IpcWriteOptions(compression="lz4")
    with arrow_ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _batch(content: bytes) -> pa.RecordBatch:
    with arrow_ipc.open_stream(content) as reader:
        return reader.read_next_batch()


@functools.lru_cache(maxsize=_FEW)
def _unpickled(function: bytes) -> Any:
    return pickle.loads(function)


@functools.cache
def own_sources() -> str:
    """Version and digest of the plait of this process: equal results are promised for equal ones alone."""
    return f"{__version__} ({package_digest()})"


_SECONDS_TO_CLOSE = 10
_ADDRESS = re.compile(r"(?:(?!inproc)[a-z0-9]+://)?(?:[\w.-]+|\[[\w:.%]+\]):([0-9]{1,5})", re.ASCII)
#: While a cluster of our own runs. Workers hold no more than a few results, so it is the work that takes the
#: memory: putting results on disk would not help, and a worker that only pauses would wait for ever.
_CONFIGURATION = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.profile.enabled": False,
    # Pages, of which some take orders, for anybody on this machine.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # A worker that died is always started again: 15 s after a first death, Dask would give up one that is
    # dead again just then.
    "distributed.deploy.lost-worker-timeout": "365 days",
    # Bytes that stay for the next part, as in a command that works by itself. With Dask's 65,536 all pages
    # were given back and cleared anew.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 256 << 20,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 32 << 20,
}
#: Blocks of rows are sent with the tasks on purpose: a worker that dies takes nothing with it then.
_CLIENT = {"distributed.admin.large-graph-warning-threshold": "1TB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Where the cluster is, or what is to be started: `workers` processes of `threads` threads each.

    `scheduler` is an address, `scheduler_file` a file with one, `worker_memory` that of each worker.
    InvalidInput if options are wrong, or exclude one another.
    """

    scheduler: str | None = None
    scheduler_file: str | os.PathLike[str] | None = None
    workers: int | None = None
    threads: int | None = None
    worker_memory: int | str | None = None

    def __post_init__(self) -> None:
        """Check them."""
        if self.scheduler is not None and self.scheduler_file is not None:
            raise InvalidInput(
                "scheduler", found="an address and a scheduler_file", expected="one or the other"
            )
        for name in ("workers", "threads", "worker_memory"):
            value = getattr(self, name)
            if value is None:
                continue
            if not self.starts_workers:
                raise InvalidInput(
                    name,
                    found=repr(value),
                    expected="nothing: the workers of a scheduler that runs have been started with their own",
                )
        whole_fields(self, "workers", "threads", least=1, most=MOST_THREADS)

    @property
    def starts_workers(self) -> bool:
        """Whether workers are started, for want of a scheduler."""
        return self.scheduler is None and self.scheduler_file is None

    @property
    def address(self) -> str | None:
        """Address of the scheduler that runs."""
        found = self.scheduler if self.scheduler_file is None else _address_in(self.scheduler_file)
        # With some others, Dask would start a cluster of its own or wait for ever.
        place = None if found is None else _ADDRESS.fullmatch(found)
        if found is not None and (place is None or not 0 < int(place[1]) < 1 << 16):
            raise InvalidInput("scheduler", found=repr(found[:80]), expected="an address as tcp://host:8786")
        return found


@contextmanager
def opened(options: ClusterOptions) -> Iterator[Any]:
    """A client of the cluster, closed on exit, and with it a cluster that was started here.

    TargetUnavailable if Dask is not installed, no scheduler answers, or no worker can be started.
    """
    try:
        import dask
        import distributed
    except ImportError as error:
        raise TargetUnavailable("dask", reason=str(error), fix="pip install 'plait[cluster]'") from error
    with ExitStack() as stack:
        stack.enter_context(_quiet())
        stack.enter_context(dask.config.set(_CLIENT))
        if options.starts_workers:
            stack.enter_context(dask.config.set(_CONFIGURATION))
            # Not the one that all users share: workers import from theirs.
            folder = stack.enter_context(TemporaryDirectory(prefix="plait-dask-", ignore_cleanup_errors=True))
            place: Any = stack.enter_context(_local_cluster(distributed, options, folder))
        else:
            place = options.address
        try:
            # Results pass by the scheduler, unless the workers can surely be reached from here.
            client = distributed.Client(
                place, set_as_default=False, name="plait", direct_to_workers=options.starts_workers
            )
        except (OSError, ValueError, TypeError, OverflowError) as error:
            raise TargetUnavailable(
                "dask",
                reason=f"no scheduler answers at {place} ({error})",
                fix="check the address, that it runs, and that yours are set if it has certificates",
            ) from error
        stack.callback(client.close, timeout=_SECONDS_TO_CLOSE)
        if not client.nthreads():
            warnings.warn("the cluster has no worker yet; waiting for one", stacklevel=2)
            client.wait_for_workers(1)
        yield client


@contextmanager
def _local_cluster(distributed: Any, options: ClusterOptions, folder: str) -> Iterator[Any]:
    threads = options.threads or 1
    try:
        # Whoever may talk to a scheduler runs programs as its user, and any user of this machine reaches its
        # ports: only who has the key that is made for this run is let in.
        security = distributed.Security.temporary()
    except ImportError as error:
        raise TargetUnavailable("dask", reason=str(error), fix="pip install 'plait[cluster]'") from error
    try:
        cluster = distributed.LocalCluster(
            n_workers=options.workers or max(1, thread_count() // threads),
            threads_per_worker=threads,
            processes=True,
            memory_limit=_memory(options.worker_memory),
            # Any free port, that only this machine reaches; other clusters may have taken the usual one.
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            security=security,
            local_directory=folder,
            silence_logs=_level(),
            env={"PLAIT_THREADS": str(threads)},
            preload=["plait.run.dask"],
        )
    except (OSError, RuntimeError) as error:
        raise TargetUnavailable(
            "dask", reason=f"workers cannot be started ({error})", fix="ask for fewer --workers"
        ) from error
    try:
        yield cluster
    finally:
        cluster.close(timeout=_SECONDS_TO_CLOSE)


def _memory(limit: int | str | None) -> int | str:
    from dask.utils import parse_bytes

    if limit is None:
        return "auto"
    try:
        found = int(parse_bytes(limit))
    except (ValueError, OverflowError):
        found = 0
    if found <= 0:
        raise InvalidInput("worker_memory", found=repr(limit), expected="bytes, as 4GiB or 500MB")
    return found


def _address_in(path: str | os.PathLike[str]) -> str:
    # The client of Dask would wait for a file that is not there, for ever.
    try:
        return str(json.loads(Path(path).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(
            "scheduler_file",
            found=f"{os.fspath(path)!r} ({type(error).__name__}: {error})",
            expected="a file that dask scheduler --scheduler-file has written",
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Dask logs from standard error: what matters of it becomes an error of ours."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(_level())
    try:
        yield
    finally:
        logger.setLevel(before)


def _level() -> int:
    return logging.WARNING if show_tracebacks() else logging.CRITICAL


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


def _label(function: Any) -> str:
    """What a function is called in the pages of Dask: its own label, else its name, or that of its class."""
    named = getattr(function, "label", None) or getattr(function, "__name__", type(function).__name__)
    return re.sub(r"\W", "", str(named)) or "plait"


class DaskExecutor:
    """A Dask cluster that runs, or one of processes of this machine; a context manager.

    Options are fields of `plait.run.dask.ClusterOptions`; InvalidInput if they are wrong.
    """

    def __init__(self, **options: Any) -> None:
        self._options = ClusterOptions(**options)
        self._client: Any = None
        self._stack = ExitStack()
        self._threads = 1
        self._looked = float("-inf")

    def __enter__(self) -> Self:
        """Connect, or start workers; TargetUnavailable if Dask is not installed, or there is no cluster."""
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
        whose result is lost with a worker, is worked on again by another one. The function is unpickled once
        in a process: what it makes and keeps for itself is made once. `most` is not used: each worker has its
        own memory. TaskFailed if a batch fails wherever it is tried, TargetUnavailable if the scheduler does
        not answer any more.
        """
        function_bytes, label = packed(function), _label(function)
        under_way: deque[tuple[Any, str, int]] = deque()
        held = 0
        try:
            for number, batch in enumerate(batches):
                name, bytes_here = named(batch) if named else f"batch {number}", size(batch) if size else 0
                held += bytes_here
                key = f"{label}-{number:08d}-{uuid.uuid4().hex}"
                under_way.append((self._sent(key, function_bytes, batch), name, bytes_here))
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

    def _sent(self, key: str, function: bytes, batch: Any) -> Any:
        call = Call(function, packed(batch), own_sources())
        with self._lost():
            return self._client.submit(call, key=key, pure=False, retries=_RETRIES)

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
