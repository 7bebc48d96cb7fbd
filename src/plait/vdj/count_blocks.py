"""Count blocks of rows, in this process or in others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from plait.executors.protocol import Executor
from plait.formats.checkpoints import Checkpoint
from plait.formats.rearrangements import RearrangementReader
from plait.formats.row_ranges import RowRange
from plait.types import Provenance
from plait.vdj.columns import ResultColumns
from plait.vdj.counting import CounterSettings, PathCounter
from plait.vdj.germline.germline_set import Chain
from plait.vdj.resumable import Kept, kept_results
from plait.vdj.summary import CountSummary

__all__ = ["BlockCounter", "CountPlan", "CountedBlock", "counted_blocks"]

#: What a count depends on.
_ROLES = ("junction", "v_call", "j_call")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPlan:
    """What a counter has made of its settings.

    Attributes
    ----------
    settings
        The settings.
    chain
        What is joined.
    provenance
        How counts are made.
    on_gpu
        Whether large batches run on GPUs.
    """

    settings: CounterSettings
    chain: Chain
    provenance: Provenance
    on_gpu: bool

    @property
    def columns(self) -> ResultColumns:
        """The columns of a result."""
        settings = self.settings
        return ResultColumns(settings.germline, settings.model, self.chain, settings.overflow)


@dataclass(frozen=True, slots=True)
class CountedBlock:
    """Result of a block.

    Attributes
    ----------
    result
        The result columns.
    summary
        Its share of the summary.
    device
        What counted it; None where that was another run.
    """

    result: pa.RecordBatch
    summary: CountSummary
    device: str | None


#: The columns junction, V call and J call of a block, in this order; or where they stand.
_Rows: TypeAlias = pa.RecordBatch | RowRange


class BlockCounter:
    """Counts rows on whatever machine it is called; picklable, the counter is made where it is needed.

    Parameters
    ----------
    counter
        A counter, for this process alone, or the settings of one.
    """

    def __init__(self, counter: PathCounter | CounterSettings) -> None:
        self.settings = counter if isinstance(counter, CounterSettings) else counter.settings
        if isinstance(counter, PathCounter):
            self.counter = counter

    @cached_property
    def counter(self) -> PathCounter:
        """The counter, of one thread: blocks are what runs in parallel."""
        return self.settings.counter(threads=1)

    @cached_property
    def plan(self) -> CountPlan:
        """What has to be known of it elsewhere."""
        counter = self.counter
        return CountPlan(
            settings=self.settings,
            chain=counter.chain,
            provenance=counter.provenance,
            on_gpu=counter.on_gpu,
        )

    def plan_on(self, executor: Executor) -> CountPlan:
        """The plan of a worker: what this machine has may be something else.

        Parameters
        ----------
        executor
            Where rows are to be counted.
        """
        if not executor.elsewhere:
            return self.plan
        with closing(executor.map(_plan_of, [self])) as plans:
            return next(plans)

    def __call__(self, rows: _Rows) -> CountedBlock:
        """Count a block."""
        junction, v, j = _columns_of(rows)
        result = self._columns.batch(self.counter.count(junction, v, j))
        return CountedBlock(result, _summary(v, j, result), self.counter.provenance.device)

    @cached_property
    def _columns(self) -> ResultColumns:
        return self.plan.columns

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockCounter, (self.settings,)


def _plan_of(counter: BlockCounter) -> CountPlan:
    return counter.plan


def counted_blocks(
    reader: RearrangementReader,
    counter: BlockCounter,
    checkpoint: Checkpoint,
    finish: Callable[[int, pa.RecordBatch, pa.RecordBatch], pa.RecordBatch],
    executor: Executor,
    *,
    most: int,
) -> Generator[tuple[pa.RecordBatch, CountedBlock], None, None]:
    """Count all blocks of a reader that a checkpoint does not have, in order.

    Parameters
    ----------
    reader
        The rows.
    counter
        What counts them.
    checkpoint
        Keeps the results.
    finish
        Makes what is written of number, rows and result of each block; called in several threads.
    executor
        Where blocks are counted.
    most
        Most blocks to work on at a time in this process.
    """
    if executor.elsewhere:
        yield from _counted_elsewhere(reader, counter, checkpoint, finish, executor)
        return
    names = [reader.roles[role] for role in _ROLES]

    def work(numbered: tuple[int, pa.RecordBatch]) -> tuple[pa.RecordBatch, CountedBlock]:
        index, block = numbered
        found = counter(block.select(names))
        return finish(index, block, found.result), found

    def restored(
        numbered: tuple[int, pa.RecordBatch], result: pa.RecordBatch
    ) -> tuple[pa.RecordBatch, CountedBlock]:
        index, block = numbered
        return finish(index, block, result), _restored(block.select(names), result)

    kept = Kept(checkpoint=checkpoint, stored=lambda found: found[1].result, restored=restored)
    with closing(kept_results(executor, work, enumerate(reader), kept, most=most)) as results:
        for _, found in results:
            yield found


def _counted_elsewhere(
    reader: RearrangementReader,
    counter: BlockCounter,
    checkpoint: Checkpoint,
    finish: Callable[[int, pa.RecordBatch, pa.RecordBatch], pa.RecordBatch],
    executor: Executor,
) -> Generator[tuple[pa.RecordBatch, CountedBlock], None, None]:
    """Workers count: they read Parquet by themselves, text is sent to them. This process reads and writes."""
    held: deque[pa.RecordBatch] = deque()
    ranges = reader.ranges([reader.roles[role] for role in _ROLES])
    blocks = iter(reader) if ranges is not None else iter(held.popleft, None)
    rows: Iterator[_Rows] = ranges if ranges is not None else _sent(reader, held)

    def named(index: int, part: _Rows) -> str:
        if isinstance(part, RowRange):
            return part.name
        return reader.named(index * reader.block_rows, part.num_rows)

    kept = Kept(checkpoint=checkpoint, stored=lambda found: found.result, restored=_restored)
    with closing(kept_results(executor, counter, rows, kept, named=named)) as results:
        # The result first: by then its block of text has been read.
        for index, ((_, found), block) in enumerate(zip(results, blocks, strict=False)):
            yield finish(index, block, found.result), found


def _sent(reader: RearrangementReader, held: deque[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What is counted of each block of text, while the whole of it is held."""
    for block in reader:
        held.append(block)
        yield block.select([reader.roles[role] for role in _ROLES])


def _columns_of(rows: _Rows) -> Sequence[pa.Array]:
    columns: Sequence[pa.Array] = (rows.read() if isinstance(rows, RowRange) else rows).columns
    return columns


def _restored(rows: _Rows, result: pa.RecordBatch) -> CountedBlock:
    _, v, j = _columns_of(rows)
    return CountedBlock(result, _summary(v, j, result), None)


def _summary(v: pa.Array, j: pa.Array, result: pa.RecordBatch) -> CountSummary:
    summary = CountSummary()
    summary.add(result, {"v": v, "j": j})
    return summary
