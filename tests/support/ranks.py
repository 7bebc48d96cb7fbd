"""Ranks of MPI that are threads of this process."""

from __future__ import annotations

import pickle
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from plait.run.mpi import MpiExecutor

__all__ = ["on_ranks"]


class Ranks:
    """A communicator whose ranks are threads."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.slots: list[Any] = [None] * size
        self.mail: dict[tuple[int, int], SimpleQueue[bytes]] = defaultdict(SimpleQueue)
        self.barrier = threading.Barrier(size)

    def of(self, rank: int) -> Rank:
        return Rank(self, rank)


class Rank:
    """What one rank sees of it."""

    def __init__(self, ranks: Ranks, rank: int) -> None:
        self.ranks, self.rank = ranks, rank

    def Get_rank(self) -> int:  # noqa: N802  # names of mpi4py
        return self.rank

    def Get_size(self) -> int:  # noqa: N802
        return self.ranks.size

    def allgather(self, value: Any) -> list[Any]:
        self.ranks.slots[self.rank] = value
        self.ranks.barrier.wait(timeout=300)
        found = list(self.ranks.slots)
        self.ranks.barrier.wait(timeout=300)
        return found

    def gather(self, value: Any) -> list[Any] | None:
        found = self.allgather(value)
        return found if self.rank == 0 else None

    def bcast(self, value: Any) -> Any:
        return self.allgather(value)[0]

    def scatter(self, values: Any) -> Any:
        return self.allgather(values)[0][self.rank]

    def send(self, value: Any, to: int) -> None:
        self.ranks.mail[self.rank, to].put(pickle.dumps(value))

    def iprobe(self, source: int) -> bool:
        return not self.ranks.mail[source, self.rank].empty()

    def recv(self, source: int) -> Any:
        return pickle.loads(self.ranks.mail[source, self.rank].get(timeout=300))

    def Reduce(self, part: Any, total: Any) -> None:  # noqa: N802
        found = self.allgather(part)
        if self.rank == 0:
            total[:] = sum(found)


def on_ranks(size: int, program: Callable[[MpiExecutor], Any]) -> list[Any]:
    """What a program returns on every rank, or the error that it raises."""
    ranks = Ranks(size)

    def run(rank: int) -> Any:
        try:
            return program(MpiExecutor(ranks.of(rank)))
        except Exception as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))
