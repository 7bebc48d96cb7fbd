"""What every executor offers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Final, Protocol, TypeVar

#: Bytes of batches that are held at a time, be one of them as large as it may.
HELD_BYTES: Final = 256 << 20

B = TypeVar("B")
R = TypeVar("R")


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
