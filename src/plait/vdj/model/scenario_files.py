"""The most probable scenarios of the rows of files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from plait.errors import InvalidInput
from plait.executors.local import LocalExecutor
from plait.executors.protocol import Executor
from plait.settings import thread_count
from plait.vdj.model.junction_tables import GivenCalls, JunctionTable, open_junctions
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.scenario_blocks import BlockScenarios, ScenarioBlock, ScenarioSummary
from plait.vdj.progress import Progress
from plait.vdj.row_runs import RowRun, RowWork, run_key, run_rows

__all__ = ["ScenarioFiles", "scenario_files"]

#: Scenarios in a block, about, and its rows.
_BLOCK_SCENARIOS: Final = 1 << 16
_MOST_ROWS: Final = 1 << 12
_MOST_BLOCKS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFiles:
    """A finished run.

    Attributes
    ----------
    output
        The table.
    summary_path
        JSON with the totals.
    rows
        Rows of the inputs.
    summary
        What came of them.
    calls
        Which calls were used.
    blank_lines
        Blank lines in text inputs.
    resumed_blocks
        Blocks taken over from the run that was stopped.
    """

    output: Path
    summary_path: Path
    rows: int
    summary: ScenarioSummary
    calls: GivenCalls
    blank_lines: int
    resumed_blocks: int


def scenario_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    model: RecombinationModel,
    *,
    best: int = 10,
    calls: GivenCalls = "ignore",
    layout: str = "airr",
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> ScenarioFiles:
    """Write the most probable scenarios of all rows of tables, one row per scenario.

    A row without any scenario is there once, with the reason in ``status``. Beside the table stands a
    summary, ``OUTPUT.summary.json``; while the run lasts, computed blocks are kept in ``OUTPUT.checkpoint``.

    Parameters
    ----------
    inputs
        AIRR Rearrangement tables (TSV, plain or compressed, or Parquet), or of another `layout`.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    model
        The model.
    best
        Most scenarios of a row.
    calls
        Which calls are taken for what a row was made of.
    layout
        Column layout of the inputs, or ``"lines"`` for text without a header line.
    threads
        Blocks worked on at a time; the output does not depend on it.
    executor
        Where blocks are worked on; by default so many threads of this process. The output is the same.
    resume
        Take over the blocks that a stopped run of the same inputs and parameters has computed.
    progress
        Called after every block.

    Raises
    ------
    InvalidInput
        If there is no input, `best` is out of range, the output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    if not 1 <= best <= _BLOCK_SCENARIOS:
        raise InvalidInput("best", found=best, expected=f"1 to {_BLOCK_SCENARIOS:,}")
    if executor is None:
        executor = LocalExecutor(thread_count() if threads is None else threads)
    rows = max(1, min(_MOST_ROWS, _BLOCK_SCENARIOS // best))
    table = open_junctions(
        inputs, layout=layout, acids=False, calls=calls, block_rows=rows, fewest_rows=min(rows, 256)
    )
    with table.reader as reader:
        run = _Run(table, BlockScenarios(model, table.places, best))
        finished = run_rows(
            RowRun(
                reader=reader,
                inputs=inputs,
                work=run.work(),
                schema=run.schema,
                metadata={"plait.provenance": json.dumps(run.provenance, sort_keys=True)},
                key=run_key(reader, run.provenance),
                most=_MOST_BLOCKS,
            ),
            output,
            executor,
            resume=resume,
            progress=progress,
            add=lambda found: run.summary.merge(found.summary),
            facts=run.facts,
        )
    return ScenarioFiles(
        output=Path(output),
        summary_path=finished.summary_path,
        rows=finished.rows,
        summary=run.summary,
        calls=calls,
        blank_lines=finished.blank_lines,
        resumed_blocks=finished.resumed_blocks,
    )


class _Run:
    """Everything that is fixed for one run, and its totals."""

    def __init__(self, table: JunctionTable, blocks: BlockScenarios) -> None:
        self._table = table
        self._blocks = blocks
        self._names = table.reader.roles.get("sequence_id")
        self.provenance = blocks.provenance()
        self.summary = ScenarioSummary()
        own = [("record", pa.int64()), ("sequence_id", pa.string()), ("junction", pa.string())]
        self.schema = pa.schema([*own, *list(blocks.schema)[1:]])

    def work(self) -> RowWork[ScenarioBlock]:
        return RowWork(
            columns=self._table.columns,
            work=self._blocks,
            stored=lambda found: found.result,
            restored=self._blocks.restored,
            finish=self._finish,
        )

    def _finish(self, first: int, block: pa.RecordBatch, found: ScenarioBlock) -> pa.RecordBatch:
        row = found.result["row"]
        record = first + np.asarray(row, np.int64)
        names = pa.nulls(block.num_rows) if self._names is None else block[self._names]
        own = [pa.array(record), names.cast(pa.string()).take(row), self._table.nucleotides(block).take(row)]
        return pa.record_batch([*own, *found.result.columns[1:]], schema=self.schema)

    def facts(self) -> dict[str, Any]:
        """Content of the summary file."""
        rows = sum(self.summary.statuses.values())
        return {"provenance": self.provenance, "rows": rows, **self.summary.as_dict()}
