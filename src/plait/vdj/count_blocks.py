"""Count blocks of rows, in this process or in others."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from plait.executors.protocol import Executor
from plait.types import Provenance
from plait.vdj.columns import ResultColumns
from plait.vdj.counting import CounterSettings, PathCounter
from plait.vdj.germline.germline_set import Chain
from plait.vdj.summary import CountSummary

__all__ = ["COUNTED_ROLES", "BlockCounter", "CountPlan", "CountedBlock", "restored_block"]

#: What a count depends on: the columns of a block that is counted, in this order.
COUNTED_ROLES = ("junction", "v_call", "j_call")


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

    def __call__(self, rows: pa.RecordBatch) -> CountedBlock:
        """Count a block."""
        junction, v, j = rows.columns
        result = self._columns.batch(self.counter.count(junction, v, j))
        return CountedBlock(result, _summary(v, j, result), self.counter.provenance.device)

    @cached_property
    def _columns(self) -> ResultColumns:
        return self.plan.columns

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockCounter, (self.settings,)


def _plan_of(counter: BlockCounter) -> CountPlan:
    return counter.plan


def restored_block(rows: pa.RecordBatch, result: pa.RecordBatch) -> CountedBlock:
    """A block that another run has counted.

    Parameters
    ----------
    rows
        Its rows.
    result
        The result columns.
    """
    _, v, j = rows.columns
    return CountedBlock(result, _summary(v, j, result), None)


def _summary(v: pa.Array, j: pa.Array, result: pa.RecordBatch) -> CountSummary:
    summary = CountSummary()
    summary.add(result, {"v": v, "j": j})
    return summary
