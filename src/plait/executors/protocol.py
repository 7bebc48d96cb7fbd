"""What every executor offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

__all__ = ["Executor"]

B = TypeVar("B")
R = TypeVar("R")


class Executor(Protocol):
    """Runs a function on batches; the caller merges the results, in order."""

    def map(self, function: Callable[[B], R], batches: Iterable[B]) -> Iterator[R]:
        """Results in input order; only a bounded number of batches is held at a time."""
        ...
