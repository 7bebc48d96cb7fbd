"""The executor that a user asks for, by name."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from plait.errors import InvalidInput
from plait.run.executor import Executor
from plait.run.local import LocalExecutor

ExecutorName: TypeAlias = Literal["local", "dask"]


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
