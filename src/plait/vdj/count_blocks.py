"""Count blocks of rows, in this process or in others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.executors.protocol import Executor
from plait.types import Provenance
from plait.vdj.columns import ResultColumns
from plait.vdj.counting import CounterSettings, PathCounter
from plait.vdj.germline.germline_set import Chain
from plait.vdj.summary import CountSummary
from plait.vdj.zero_causes import CauseFinder, ends_of

__all__ = ["COUNTED_ROLES", "BlockCounter", "CountPlan", "CountedBlock"]

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
        return CountedBlock(result, self._summary(junction, v, j, result), self.counter.provenance.device)

    def restored(self, rows: pa.RecordBatch, result: pa.RecordBatch) -> CountedBlock:
        """A block that another run has counted.

        Parameters
        ----------
        rows
            Its rows.
        result
            The result columns.
        """
        junction, v, j = rows.columns
        return CountedBlock(result, self._summary(junction, v, j, result), None)

    def _summary(self, junction: pa.Array, v: pa.Array, j: pa.Array, result: pa.RecordBatch) -> CountSummary:
        summary = CountSummary()
        summary.add(result, {"v": v, "j": j})
        if self.settings.model.name == "exhaustive":
            # A second a row is not rare.
            return summary

        def possible(texts: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
            at = pa.array(rows)
            counts = self.counter.count(pa.array(texts, junction.type), v.take(at), j.take(at))
            return _above_zero(self._columns.batch(counts))

        counted = pc.equal(result["status"], "ok").to_numpy(zero_copy_only=False)
        summary.causes = self._causes.causes(junction, counted, counted & ~_above_zero(result), possible)
        return summary

    @cached_property
    def _causes(self) -> CauseFinder:
        germline, model = self.settings.germline, self.settings.model
        ends = ends_of([a.cdr3_end for a in germline.v], [a.cdr3_end for a in germline.j])
        longest = max((len(d.sequence) for d in germline.d), default=0) if self.plan.chain != "vj" else 0
        if model.name != "dp2":
            most = model.max_n + longest
        else:
            limits = [model.nu if one is None else one for one in (model.nu_vd, model.nu_dj)]
            most = sum(limits) + longest if longest else max(limits)
        return CauseFinder(ends, most, {a.gene for a in germline.v})

    @cached_property
    def _columns(self) -> ResultColumns:
        return self.plan.columns

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockCounter, (self.settings,)


def _plan_of(counter: BlockCounter) -> CountPlan:
    return counter.plan


def _above_zero(result: pa.RecordBatch) -> NDArray[np.bool_]:
    # Not to be exact: counts above 2^53 only have to stay different from zero.
    counts = result["path_count"].cast(pa.float64(), safe=False)
    found: NDArray[np.bool_] = pc.fill_null(pc.greater(counts, 0.0), False).to_numpy(zero_copy_only=False)
    return found
