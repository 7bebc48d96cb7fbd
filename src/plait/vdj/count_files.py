"""Count whole files: streamed in blocks, several at a time, resumable, in constant memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from plait.errors import InvalidInput
from plait.executors.local import LocalExecutor
from plait.executors.protocol import Executor
from plait.formats.blocks import MOST_BYTES
from plait.formats.rearrangements import RearrangementReader, open_rearrangements
from plait.settings import thread_count
from plait.targets.devices import used_devices
from plait.vdj.columns import ResultColumns
from plait.vdj.count_blocks import COUNTED_ROLES, BlockCounter, CountedBlock, CountPlan
from plait.vdj.counting import CounterSettings, PathCounter
from plait.vdj.long_rows import items_per_row, long_batch, long_schema
from plait.vdj.progress import Progress
from plait.vdj.row_runs import (
    SAMPLED_ROWS,
    AddedColumns,
    RowRun,
    RowWork,
    rows_per_block,
    run_key,
    run_rows,
    sampled_row_bytes,
)
from plait.vdj.summary import CountSummary

__all__ = ["CountedFiles", "count_files"]

#: Rows per block: a row group of the output and the unit of work, of threads and of resuming.
_MOST_ROWS = 65536
_FEWEST_ROWS = 256
#: Blocks worked on at a time, so that many processors do not take much memory: reading and writing, which
#: one thread does each, are slower than so many.
_MOST_BLOCKS = 12
#: The same for enumeration on a GPU: while it works on one, the next one is made.
_MOST_ENUMERATED = 2
#: A guess of what one tidy row takes, beside its input columns.
_LONG_ROW_BYTES = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedFiles:
    """A finished run.

    Attributes
    ----------
    output
        The table.
    summary_path
        JSON with the totals.
    summary
        The totals.
    renamed
        Input columns that had the name of a result column, with the names they were given.
    blank_lines
        Blank lines in text inputs.
    resumed_blocks
        Blocks taken over from the run that was killed.
    remarks
        What is to be said of the table as a whole: foreign genes, and causes of zeros.
    """

    output: Path
    summary_path: Path
    summary: CountSummary
    renamed: dict[str, str]
    blank_lines: int
    resumed_blocks: int
    remarks: tuple[str, ...] = ()


def count_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    counter: PathCounter | CounterSettings,
    *,
    layout: str = "airr",
    long: bool = False,
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> CountedFiles:
    """Count the paths of all rows of files and write one table.

    Every input row is in the output, in input order, with all its columns. Beside the table stands a
    summary, ``OUTPUT.summary.json``. While the run lasts, computed blocks are kept in ``OUTPUT.checkpoint``.

    Parameters
    ----------
    inputs
        AIRR Rearrangement tables (TSV, plain or compressed, or Parquet), or of another `layout`.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    counter
        What is counted; made with ``threads=1``, since blocks are what runs in parallel. Or the settings, of
        which one is made where the work is done.
    layout
        Column layout of the inputs.
    long
        Write one row per input row, D allele and model instead of lists.
    threads
        Blocks worked on at a time, at most 12 (exhaustive: as many as asked for, and 2 on a GPU).
    executor
        Where blocks are counted; by default so many threads of this process. The output is the same.
    resume
        Take over the blocks that a killed run of the same inputs and parameters has computed.
    progress
        Called after every block.

    Raises
    ------
    InvalidInput
        If there is no input, the output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    if executor is None:
        executor = LocalExecutor(thread_count() if threads is None else threads)
    block_counter = BlockCounter(counter)
    plan = block_counter.plan_on(executor)
    slow, most = _pace(plan, executor)
    samples = (open_rearrangements(path, layout=layout, block_rows=SAMPLED_ROWS) for path in inputs)
    input_bytes = max(map(sampled_row_bytes, samples))
    block_rows = _block_rows(plan.columns, plan.settings.overflow, long, input_bytes)
    if slow:
        # A second per row is not rare: progress, resuming and threads need small blocks.
        block_rows = _FEWEST_ROWS
    size = MOST_BYTES // (items_per_row(plan.columns) if long else 1)
    with open_rearrangements(inputs, layout=layout, block_rows=block_rows, block_bytes=size) as reader:
        run = _Run(reader, plan, long)
        work = RowWork(
            columns=[reader.roles[role] for role in COUNTED_ROLES],
            work=block_counter,
            stored=_stored,
            restored=block_counter.restored,
            finish=run.rows,
        )
        finished = run_rows(
            RowRun(
                reader=reader,
                inputs=inputs,
                work=work,
                schema=run.schema,
                metadata=run.metadata(),
                key=run_key(reader, plan.provenance.as_dict()),
                most=most,
            ),
            output,
            executor,
            resume=resume,
            progress=progress,
            add=run.add,
            facts=run.facts,
        )
    return CountedFiles(
        output=Path(output),
        summary_path=finished.summary_path,
        summary=run.summary,
        renamed=run.renamed,
        blank_lines=finished.blank_lines,
        resumed_blocks=finished.resumed_blocks,
        remarks=tuple(run.summary.remarks(plan.settings.germline)),
    )


def _pace(plan: CountPlan, executor: Executor) -> tuple[bool, int]:
    """Whether a row may take long, and how many blocks to work on at a time."""
    if plan.settings.model.name != "exhaustive":
        return False, _MOST_BLOCKS
    # A GPU enumerates thousands of rows as soon as a few, and one block of them after the other.
    return not plan.on_gpu, _MOST_ENUMERATED if plan.on_gpu else executor.slots


def _stored(found: CountedBlock) -> pa.RecordBatch:
    return found.result


class _Run:
    """Everything that is fixed for one run, and its totals."""

    def __init__(self, reader: RearrangementReader, plan: CountPlan, long: bool) -> None:
        self._reader = reader
        self._provenance = plan.provenance.as_dict()
        self._columns = plan.columns
        self._germline = plan.settings.germline
        self._long = long
        self._devices: set[str] = set()
        self.summary = CountSummary()
        result = long_schema(self._columns) if long else self._columns.schema
        self._added = AddedColumns(reader.schema, result)
        self.renamed, self.schema = self._added.renamed, self._added.schema

    def metadata(self) -> dict[str, str]:
        """Provenance and axes, the same for every run with these inputs and parameters."""
        axes = {
            name: [{"axis": axis, "values": values} for axis, values in found]
            for name, found in self._columns.axes.items()
        }
        facts = {"provenance": self._provenance, "list_axes": axes, "layout": self._reader.layout.name}
        return {f"plait.{name}": json.dumps(value, sort_keys=True) for name, value in facts.items()}

    def add(self, found: CountedBlock) -> None:
        """Add a block to the totals."""
        self.summary.merge(found.summary)
        if found.device is not None:
            self._devices.add(found.device)

    def facts(self) -> dict[str, Any]:
        """Content of the summary file."""
        device = used_devices(self._devices) or self._provenance["device"]
        return {
            "provenance": {**self._provenance, "device": device},
            "renamed_columns": self.renamed,
            **self.summary.as_dict(),
            "remarks": self.summary.remarks(self._germline),
        }

    def rows(self, first: int, block: pa.RecordBatch, found: CountedBlock) -> pa.RecordBatch:
        """The output rows of a block."""
        result = found.result
        if self._long:
            return long_batch(block, result, self._columns, self.schema, first)
        return self._added.batch(block, result)


def _block_rows(columns: ResultColumns, overflow: str, long: bool, input_bytes: int) -> int:
    """Rows per block, so that a block takes about the same memory whatever the columns."""
    number = 400 if overflow == "wide" else 8
    width = input_bytes + sum(number * getattr(field.type, "list_size", 1) for field in columns.schema)
    if long:
        width += (_LONG_ROW_BYTES + input_bytes) * items_per_row(columns)
    return rows_per_block(width, _FEWEST_ROWS, _MOST_ROWS)
