"""Ranks of MPI: one program started many times, each with its part of the work.

Start the program under ``mpirun``; every rank runs the same lines::

    from plait.run.mpi import MpiExecutor

    executor = MpiExecutor()
    counter = PathCounter("mouse_trb", model, device=f"cuda:{executor.local_rank}")
    for counts in executor.map(lambda columns: counter.count(*columns), blocks):
        ...  # on rank 0: the results of all blocks, in order; the other ranks only work

Batches go to ranks (`MpiExecutor.map`). Where it is not the batch that is split but the work on it, such as
the N strings of an exhaustive enumeration, every rank does its share and the results are added up
(`MpiExecutor.sum`)::

    def share(rank, ranks):
        out = np.empty((texts.start.size, d + 1, most + 1), np.int64)
        run_enumeration([executor.local_rank], tables, texts, most, out, share=(rank, ranks))
        return out


    total = executor.sum(share)  # on rank 0; None on the others

Where pieces depend on each other, as those of the matrix of one very long pair do, rank 0 leads
(`MpiExecutor.lead`): it hands out pieces as they become ready. `plait.align.local_best` takes an executor as
``ranks``, and returns the same alignments on every rank::

    found = local_best(query, target, 200, ranks=executor, device=f"cuda:{executor.local_rank}")

With ``mpirun -n 4 python -m mpi4py program.py`` an error of one rank outside these calls ends all of them.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from queue import SimpleQueue
from threading import Lock
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.errors import TargetUnavailable

B = TypeVar("B")
R = TypeVar("R")
T = TypeVar("T")

#: Seconds between looks for a message: to wait inside MPI would take a processor.
_PAUSE: Final = 0.0005


class MpiExecutor:
    """All ranks of a communicator of mpi4py, by default all that were started; each calls its methods.

    `rank` and `size` are the number of this rank, and of all; `local_rank` is its number among those of its
    machine: the device that it may take for itself. TargetUnavailable if mpi4py, or the MPI library that it
    needs, is not there.
    """

    def __init__(self, communicator: Any = None) -> None:
        self._ranks = _world() if communicator is None else communicator
        self.rank: int = self._ranks.Get_rank()
        self.size: int = self._ranks.Get_size()
        names = self._ranks.allgather(_machine())
        self.local_rank: int = names[: self.rank].count(names[self.rank])

    def map(self, function: Callable[[B], R], batches: Iterable[B]) -> Generator[R, None, None]:
        """Results in input order, on rank 0; the other ranks work while they iterate, and yield nothing.

        Batches are read on rank 0 alone and sent to the others: picklable, one per rank held at a time. An
        error in one rank is raised in all. When rank 0 stops early, it must close the iterator, so that the
        others stop too.
        """
        source = iter(batches) if self.rank == 0 else iter(())
        at_end = False
        try:
            while True:
                own, number = self._deal(source)
                if not number:
                    at_end = True
                    return
                results = self._together(functools.partial(self._work, function, own, number))
                if self.rank == 0:
                    yield from results[:number]
        except _FailedElsewhere as failed:
            at_end = True
            raise failed.error from failed.error.__cause__
        finally:
            if self.rank == 0 and not at_end:
                self._ranks.bcast(0)

    def sum(self, function: Callable[[int, int], NDArray[Any]]) -> NDArray[Any] | None:
        """Sum of the arrays ``function(rank, size)`` of all ranks, on rank 0; None on the others.

        The arrays have one shape and type.
        """
        parts: list[Any] = []
        try:
            self._together(lambda: parts.append(np.ascontiguousarray(function(self.rank, self.size))))
        except _FailedElsewhere as failed:
            raise failed.error from failed.error.__cause__
        total = np.empty_like(parts[0]) if self.rank == 0 else None
        self._ranks.Reduce(parts[0], total)
        return total

    def lead(self, function: Callable[[B], R], task: Callable[[Callable[[B], R]], T]) -> T:
        """The result of ``task(call)``, which runs on rank 0, on all ranks.

        ``call(batch)``, from as many threads as there are ranks, is ``function(batch)`` on a rank that has
        nothing to do. Batches, results and that of the task are picklable. An error in one rank is raised in
        all.
        """
        if self.rank:
            followed: T = self._follow(function)
            return followed
        idle: SimpleQueue[int] = SimpleQueue()
        lock, result, error = Lock(), None, None
        for rank in range(self.size):
            idle.put(rank)

        def call(batch: B) -> R:
            rank = idle.get()
            try:
                if rank == 0:
                    return function(batch)
                with lock:
                    self._ranks.send((batch, False, None), rank)
                found, failed = self._message(rank, lock)
            finally:
                idle.put(rank)
            if failed is not None:
                raise failed
            return found  # type: ignore[no-any-return]

        try:
            result = task(call)
            return result
        except BaseException as caught:
            error = caught
            raise
        finally:
            for rank in range(1, self.size):
                self._ranks.send((result, True, error), rank)

    def _follow(self, function: Callable[[B], R]) -> Any:
        """Call it for what rank 0 sends; returns the result of the task."""
        while True:
            sent, over, error = self._message(0, Lock())
            if error is not None:
                raise error
            if over:
                return sent
            found = failed = None
            try:
                found = function(sent)
            except Exception as caught:
                failed = caught
            self._ranks.send((found, failed), 0)

    def _message(self, rank: int, lock: Any) -> Any:
        """What a rank sends next."""
        while True:
            with lock:
                if self._ranks.iprobe(source=rank):
                    return self._ranks.recv(source=rank)
            time.sleep(_PAUSE)

    def _deal(self, source: Any) -> tuple[Any, int]:
        """The batch of this rank in the next round, and how many ranks have one."""
        dealt: list[Any] = list(islice(source, self.size))
        number = int(self._ranks.bcast(len(dealt)))
        if not number:
            return None, 0
        dealt += [None] * (self.size - len(dealt))
        return self._ranks.scatter(dealt if self.rank == 0 else None), number

    def _work(self, function: Callable[[B], R], own: Any, number: int) -> R | None:
        return function(own) if self.rank < number else None

    def _together(self, work: Callable[[], Any]) -> list[Any]:
        """Do work in every rank; results of all, on rank 0."""
        result, error = None, None
        try:
            result = work()
        except Exception as caught:
            error = caught
        errors = [e for e in self._ranks.allgather(error) if e is not None]
        if errors:
            raise _FailedElsewhere(error or errors[0])
        return list(self._ranks.gather(result) or ())


class _FailedElsewhere(Exception):
    """Some rank failed, and all know it: nobody waits."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _world() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise TargetUnavailable(
            "mpi", reason=str(error), fix="pip install 'plait[mpi]', and install an MPI (MPICH or Open MPI)"
        ) from error
    return MPI.COMM_WORLD


def _machine() -> str:
    import platform

    return platform.node()
