"""What every executor offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

__all__ = ["Executor", "merge"]

B = TypeVar("B")
R = TypeVar("R")


class Executor(Protocol):
    """Runs a function on batches."""

    def map(self, function: Callable[[B], R], batches: Iterable[B]) -> Iterator[R]:
        """Results in input order; only a bounded number of batches is held at a time."""
        ...


def merge(results: Iterable[R], combine: Callable[[R, R], R], identity: R) -> R:
    """Combine results; `combine` must be associative with the given identity."""
    merged = identity
    for result in results:
        merged = combine(merged, result)
    return merged
