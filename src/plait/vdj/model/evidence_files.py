"""Evidence for a model, collected from tables of any size into one file that is read through a memory map.

Rows are sorted by a hash, in bounded memory, so that equal ones meet; the file has each junction with its
genes once, and how often it counts. It does not depend on the order of rows, files and threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as arrow_ipc

from plait.errors import FormatError
from plait.executors.protocol import Executor
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.blocks import reblock
from plait.formats.compression import content_digest
from plait.formats.sorted_runs import Direction, SortedRuns, SpilledBlocks, run_starts, whole_runs
from plait.vdj.model.evidence_rows import (
    EVIDENCE_KEY,
    EvidenceBlock,
    EvidenceChoice,
    EvidenceRows,
    EvidenceTally,
)
from plait.vdj.model.expectations import PIECE
from plait.vdj.model.junction_tables import open_junctions
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.progress import Progress

__all__ = ["BATCH_ROWS", "CollectedEvidence", "EvidenceFile", "check_evidence_inputs", "collect_evidence"]

#: Junctions of a batch: whole pieces of `plait.vdj.model.expectations.Expectation`.
BATCH_ROWS: Final = 16 * PIECE
_BLOCK_ROWS: Final = 1 << 16
#: Rows that wait in memory until they are sorted.
_WAITING_BYTES: Final = 96 << 20
_CALLS: Final = ("v_call", "j_call")


@dataclass(slots=True)
class CollectedEvidence:
    """What was collected.

    Attributes
    ----------
    tally
        Numbers of rows.
    inputs
        For each file its path, digest, rows, and rows that are evidence.
    repertoires
        Repertoires with evidence.
    junctions
        Different junctions with their genes, of which the evidence has all, or so many as were asked for.
    kept
        Those that the evidence has.
    weight
        How often all of these count together.
    """

    tally: EvidenceTally = field(default_factory=EvidenceTally)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    repertoires: int = 0
    junctions: int = 0
    kept: int = 0
    weight: int = 0

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        tally = self.tally
        return {
            "inputs": self.inputs,
            "rows": tally.rows,
            "rows_by_kind": dict(tally.kinds),
            "left_out": dict(tally.left_out.most_common()),
            "examples": tally.examples,
            "unknown_calls": dict(tally.unknown.most_common(50)),
            "repertoires": self.repertoires,
            "distinct_junctions": self.junctions,
            "evidence_junctions": self.kept,
            "evidence_weight": self.weight,
        }


def check_evidence_inputs(
    inputs: Sequence[str | os.PathLike[str]], choice: EvidenceChoice, layout: str
) -> tuple[list[tuple[str, int, int]], int]:
    """Check headers before long work; tells which files these are (path, size, time), and their size.

    Parameters
    ----------
    inputs
        The tables.
    choice
        What is evidence.
    layout
        Name of their column layout.

    Raises
    ------
    InvalidInput, FormatError
        If one is missing or not such a table.
    """
    identities: list[tuple[str, int, int]] = []
    for path in inputs:
        table = open_junctions([path], layout=layout, acids=False, calls=choice.calls, block_rows=1)
        with table.reader as reader:
            identities += reader.identities
    return identities, sum(size for _, size, _ in identities)


def collect_evidence(
    inputs: Sequence[str | os.PathLike[str]],
    output: Path,
    model: RecombinationModel,
    choice: EvidenceChoice,
    *,
    layout: str = "airr",
    executor: Executor,
    total_bytes: int = 0,
    progress: Callable[[Progress], object] | None = None,
) -> CollectedEvidence:
    """Collect the evidence of tables.

    Parameters
    ----------
    inputs
        The tables.
    output
        The file to write, for `EvidenceFile`.
    model
        The model; its genes are what calls mean.
    choice
        What is evidence.
    layout
        Name of their column layout.
    executor
        Threads that read rows.
    total_bytes
        Size of all tables, for `progress`.
    progress
        Called after every block.

    Raises
    ------
    InvalidInput, FormatError
        If a table is not what it should be, or the disk is full.
    """
    work = _Collector(model, choice, layout, executor, total_bytes, progress)
    with SpilledBlocks(output.with_suffix(".sorting")) as blocks:
        order: dict[str, Direction] = dict.fromkeys((*EVIDENCE_KEY, "repertoire"), "ascending")
        runs = SortedRuns(blocks, order, memory_bytes=_WAITING_BYTES, combine=_combined)
        for path in inputs:
            work.collect(path, runs)
        work.found.repertoires = len(work.names["repertoire"])
        _write(runs, output, work.found, choice, {name: sorted(work.names[name]) for name in _CALLS})
    return work.found


class _Collector:
    """Goes over the rows of tables; what was found so far, and the names in it."""

    def __init__(
        self,
        model: RecombinationModel,
        choice: EvidenceChoice,
        layout: str,
        executor: Executor,
        total_bytes: int,
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self._model = model
        self._choice = choice
        self._layout = layout
        self._executor = executor
        self._total = total_bytes
        self._done = 0
        self._progress = progress or (lambda state: None)
        self.found = CollectedEvidence()
        self.names: dict[str, set[str]] = {name: set() for name in (*_CALLS, "repertoire")}

    def collect(self, path: str | os.PathLike[str], runs: SortedRuns) -> None:
        """Put the evidence of a table among the rows to be sorted."""
        given = self._choice.calls
        table = open_junctions([path], layout=self._layout, acids=False, calls=given, block_rows=_BLOCK_ROWS)
        rows = EvidenceRows(self._model, self._choice, table, os.fspath(path))
        before, evidence = self.found.tally.rows, 0

        def take(numbered: tuple[int, pa.RecordBatch]) -> EvidenceBlock:
            return rows.take(*numbered)

        blocks = table.reader.numbered()
        with table.reader as reader, closing(self._executor.map(take, blocks, size=_bytes_of)) as results:
            for block in results:
                self.found.tally.merge(block.tally)
                evidence += block.rows.num_rows
                for name, texts in self.names.items():
                    texts.update(pc.unique(block.rows[name]).to_pylist())
                runs.add(block.rows)
                done = self._done + reader.bytes_read()
                self._progress(Progress(self.found.tally.rows, done, self._total))
            self._done += reader.total_bytes
        facts = {"file": os.fspath(path), "digest": content_digest(path)}
        reader.check_unchanged()
        rows_here = self.found.tally.rows - before
        self.found.inputs.append({**facts, "rows": rows_here, "evidence_rows": evidence})


def _bytes_of(numbered: tuple[int, pa.RecordBatch]) -> int:
    return int(numbered[1].nbytes)


def _combined(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row of equal ones, with the sum of their counts."""
    starts = run_starts(rows, (*EVIDENCE_KEY, "repertoire"))
    if starts.size == rows.num_rows:
        return rows
    sums = np.add.reduceat(np.asarray(rows["count"]), starts)
    columns = rows.take(pa.array(starts)).columns
    return pa.record_batch([*columns[:-1], pa.array(sums)], schema=rows.schema)


def _write(
    runs: SortedRuns,
    output: Path,
    found: CollectedEvidence,
    choice: EvidenceChoice,
    names: dict[str, list[str]],
) -> None:
    """The evidence as batches of equal length, in the order of the hash."""
    dictionaries = {name: pa.array(names[name], pa.large_string()) for name in _CALLS}
    kind = pa.dictionary(pa.int32(), pa.large_string())
    schema = pa.schema(
        [("junction", pa.large_string()), ("v_call", kind), ("j_call", kind), ("weight", pa.int64())]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in whole_runs(runs.drain(), EVIDENCE_KEY):
            starts = run_starts(rows, EVIDENCE_KEY)
            counts = np.asarray(rows["count"]) if choice.weights == "count" else np.ones(rows.num_rows, int)
            weight = np.add.reduceat(counts, starts)
            found.junctions += starts.size
            room = starts.size if choice.max_rows is None else max(choice.max_rows - found.kept, 0)
            kept = pa.array(starts[:room])
            if not len(kept):
                continue
            found.kept += len(kept)
            found.weight += int(weight[:room].sum())
            columns = [rows["junction"].take(kept)]
            for name in _CALLS:
                codes = pc.index_in(rows[name].take(kept), value_set=dictionaries[name])
                columns.append(pa.DictionaryArray.from_arrays(codes, dictionaries[name]))
            yield pa.record_batch([*columns, pa.array(weight[:room])], schema=schema)

    with ExitStack() as stack:
        file = stack.enter_context(AtomicFile(output, durable=False))
        stack.enter_context(output_errors(output))
        writer = stack.enter_context(arrow_ipc.new_file(file.stream, schema))
        for batch in reblock(batches(), BATCH_ROWS):
            writer.write_batch(batch)


class EvidenceFile:
    """Reads what `collect_evidence` wrote; a context manager.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    FormatError
        If it is not such a file.

    Attributes
    ----------
    batches : int
        How many batches there are.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._source = pa.memory_map(str(path))
            self._reader = arrow_ipc.open_file(self._source)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error
        self.batches: int = self._reader.num_record_batches

    def batch(self, number: int) -> pa.RecordBatch:
        """Columns junction, v_call, j_call and weight of a batch.

        Parameters
        ----------
        number
            Which one, from 0.

        Raises
        ------
        FormatError
            If it is damaged.
        """
        try:
            return self._reader.get_batch(number)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> FormatError:
        return FormatError(
            self._path,
            found=f"a damaged or unreadable file ({error})",
            expected="the evidence that this run has collected",
            hint="run again without --resume",
        )

    def close(self) -> None:
        """Close the file; no batch may be used any more."""
        self._source.close()

    def __enter__(self) -> EvidenceFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
