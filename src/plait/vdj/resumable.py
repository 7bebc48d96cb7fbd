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
from plait.formats.row_ranges import RowRange

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
    digest
        `plait.formats.checkpoints.digest_of` what a part holds; a result is kept for nothing else.
    stored
        The rows to keep of a result.
    restored
        The result of a part, from the part and the rows.
    named
        What a part is called in an error, from its number and itself.
    size
        Bytes of a part, where they may be many.
    """

    checkpoint: Checkpoint
    digest: Callable[[U], bytes]
    stored: Callable[[R], pa.RecordBatch]
    restored: Callable[[U, pa.RecordBatch], R]
    named: Callable[[int, U], str]
    size: Callable[[U], int] = lambda part: 0

    def of(self, index: int, part: U, digest: bytes, name: str) -> R | None:
        """The result of a part, if it is kept and whole."""
        rows = self.checkpoint.get(index, digest, name)
        return None if rows is None else self.restored(part, rows)

    def keep(self, index: int, result: R, digest: bytes) -> R:
        """Keep a result, and return it."""
        self.checkpoint.put(index, self.stored(result), digest)
        return result


def kept_results(
    executor: Executor,
    work: Callable[[U], R],
    parts: Iterable[U],
    kept: Kept[U, R],
    *,
    most: int | None = None,
) -> Generator[tuple[U, R, bytes], None, None]:
    """Parts, their results and digests, in order; worked on are those alone whose result is not kept.

    Parameters
    ----------
    executor
        Where they are worked on.
    work
        What is done; picklable, if that is elsewhere.
    parts
        The parts; picklable, if they go elsewhere. Of a `plait.formats.row_ranges.RowRange` there, what it
        stands for is worked on, and its digest is that of the rows that the worker has read.
    kept
        How results are kept. Those from elsewhere are kept by this process, in order.
    most
        As for `plait.executors.protocol.Executor.map`.
    """
    if executor.elsewhere:
        return _from_elsewhere(executor, work, parts, kept)

    def done(numbered: tuple[int, U]) -> tuple[U, R, bytes]:
        index, part = numbered
        digest = kept.digest(part)
        known = kept.of(index, part, digest, kept.named(index, part))
        return part, kept.keep(index, work(part), digest) if known is None else known, digest

    return executor.map(done, enumerate(parts), most=most, size=lambda numbered: kept.size(numbered[1]))


@dataclass(frozen=True, slots=True)
class _IfNew:
    """The work on a part behind its number, and its digest; where no part stands, its result is kept."""

    work: Callable[[Any], Any]
    digest: Callable[[Any], bytes]

    def __call__(self, numbered: tuple[Any, ...]) -> tuple[tuple[Any, bytes], ...]:
        parts = map(_here, numbered[1:])
        return tuple((self.work(part), self.digest(part)) for part in parts)


def _here(part: Any) -> Any:
    """A part as it is worked on."""
    return part.read() if isinstance(part, RowRange) else part


def _from_elsewhere(
    executor: Executor, work: Callable[[U], R], parts: Iterable[U], kept: Kept[U, R]
) -> Generator[tuple[U, R, bytes], None, None]:
    held: deque[U] = deque()

    def sent() -> Iterator[tuple[Any, ...]]:
        for index, part in enumerate(parts):
            held.append(part)
            yield (index,) if kept.checkpoint.get(index) is not None else (index, part)

    def name(numbered: tuple[Any, ...]) -> str:
        return kept.named(*numbered) if len(numbered) > 1 else f"part {numbered[0]}"

    def size(numbered: tuple[Any, ...]) -> int:
        return sum(map(kept.size, numbered[1:]))

    with closing(executor.map(_IfNew(work, kept.digest), sent(), named=name, size=size)) as results:
        for index, found in enumerate(results):
            part = held.popleft()
            if found:
                result, digest = found[0]
                yield part, kept.keep(index, result, digest), digest
                continue
            here = _here(part)
            digest = kept.digest(here)
            known = kept.of(index, here, digest, kept.named(index, part))
            yield part, kept.keep(index, work(here), digest) if known is None else known, digest
