"""Ways to a Dask cluster: one that runs, or worker processes that are started on this machine."""

from __future__ import annotations

import json
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from plait.errors import InvalidInput, TargetUnavailable
from plait.settings import show_tracebacks, thread_count

__all__ = ["ClusterOptions", "opened"]

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
}
#: Blocks of rows are sent with the tasks on purpose: a worker that dies takes nothing with it then.
_CLIENT = {"distributed.admin.large-graph-warning-threshold": "1TB"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Where the cluster is, or what is to be started; checked.

    Attributes
    ----------
    scheduler
        Address of a scheduler.
    scheduler_file
        File with the address of a scheduler.
    workers
        Processes to start.
    threads
        Threads of each.
    worker_memory
        Memory of each.

    Raises
    ------
    InvalidInput
        If options are wrong, or exclude one another.
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
            if name != "worker_memory" and value < 1:
                raise InvalidInput(name, found=repr(value), expected="a whole number of at least 1")

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
    """A client of the cluster.

    Parameters
    ----------
    options
        Which cluster.

    Yields
    ------
    distributed.Client
        Closed on exit, and with it a cluster that was started here.

    Raises
    ------
    TargetUnavailable
        If Dask is not installed, no scheduler answers, or no worker can be started.
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
            preload=["plait.executors.dask_worker"],
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
