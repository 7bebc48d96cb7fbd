"""Work on parts whose results are kept, so that a run that was stopped can go on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from plait.executors.protocol import Executor
from plait.formats.checkpoints import Checkpoint

__all__ = ["Kept", "kept_results"]

U = TypeVar("U")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Generic[U, R]):
    """How results are kept.

    Attributes
    ----------
    checkpoint
        Where.
    stored
        The rows to keep of a result.
    restored
        The result of a part, from the part and the rows.
    """

    checkpoint: Checkpoint
    stored: Callable[[R], pa.RecordBatch]
    restored: Callable[[U, pa.RecordBatch], R]

    def of(self, index: int, part: U) -> R | None:
        """The result of a part, if it is kept and whole.

        Parameters
        ----------
        index
            Number of the part.
        part
            The part.
        """
        rows = self.checkpoint.get(index)
        return None if rows is None else self.restored(part, rows)

    def keep(self, index: int, result: R) -> R:
        """Keep a result, and return it.

        Parameters
        ----------
        index
            Number of the part.
        result
            Its result.
        """
        self.checkpoint.put(index, self.stored(result))
        return result


def kept_results(
    executor: Executor,
    work: Callable[[U], R],
    parts: Iterable[U],
    kept: Kept[U, R],
    *,
    most: int | None = None,
    named: Callable[[int, U], str] | None = None,
) -> Generator[tuple[U, R], None, None]:
    """Parts and their results, in order; worked on are those alone whose result is not kept.

    Parameters
    ----------
    executor
        Where they are worked on.
    work
        What is done; picklable, if that is elsewhere.
    parts
        The parts; picklable, if they go elsewhere.
    kept
        How results are kept. Those from elsewhere are kept by this process, in order.
    most
        As for `plait.executors.protocol.Executor.map`.
    named
        What a part is called in an error, from its number and itself.
    """
    if executor.elsewhere:
        return _from_elsewhere(executor, work, parts, kept, named)

    def done(numbered: tuple[int, U]) -> tuple[U, R]:
        index, part = numbered
        known = kept.of(index, part)
        return part, kept.keep(index, work(part)) if known is None else known

    return executor.map(done, enumerate(parts), most=most)


@dataclass(frozen=True, slots=True)
class _IfNew:
    """The work on a part behind its number; where no part stands, its result is kept."""

    work: Callable[[Any], Any]

    def __call__(self, numbered: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(self.work, numbered[1:]))


def _from_elsewhere(
    executor: Executor,
    work: Callable[[U], R],
    parts: Iterable[U],
    kept: Kept[U, R],
    named: Callable[[int, U], str] | None,
) -> Generator[tuple[U, R], None, None]:
    held: deque[U] = deque()

    def sent() -> Iterator[tuple[Any, ...]]:
        for index, part in enumerate(parts):
            held.append(part)
            yield (index,) if kept.checkpoint.get(index) is not None else (index, part)

    def name(numbered: tuple[Any, ...]) -> str:
        return named(*numbered) if named and len(numbered) > 1 else f"part {numbered[0]}"

    with closing(executor.map(_IfNew(work), sent(), named=name)) as results:
        for index, found in enumerate(results):
            part = held.popleft()
            known = None if found else kept.of(index, part)
            if known is not None:
                yield part, known
            else:
                yield part, kept.keep(index, found[0] if found else work(part))
