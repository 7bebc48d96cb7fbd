"""Sorted runs that workers have written, put together by workers as the parts of a dataset, in one order.

A module of its own: it knows nothing of what the rows are. Of the rows nothing passes through the process
that deals out the work: it takes keys from the runs, cuts the order there, asks how many rows of each run lie
before each cut, and so knows which rows of which runs make up every part.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.formats.datasets import Folder, PartFile, Parts, PartWriter
from plait.formats.rearrangements import reblock
from plait.formats.sorted_runs import Direction, arrow_blocks, arrow_file, row_key
from plait.run.executor import Executor

Key: TypeAlias = tuple[Any, ...]
#: Rows of a block of a run on disk.
_BLOCK_ROWS: Final = 1 << 13
#: Stretches between cuts in a part, at least about: what is sorted beyond its rows is at most two of them.
_STRETCHES: Final = 4


class Run(NamedTuple):
    """A run on disk: its file, its rows, those of a block, and the key of the first row of each block."""

    path: Path
    rows: int
    block_rows: int
    firsts: tuple[Key, ...]

    def read(self, first: int, end: int) -> Iterator[pa.RecordBatch]:
        """Rows ``[first, end)``; FormatError if they are damaged."""
        with arrow_blocks(self.path) as block:
            for number in range(first // self.block_rows, -(-end // self.block_rows)):
                start = number * self.block_rows
                rows = block(number).slice(max(first - start, 0))
                yield rows.slice(0, end - max(start, first))


def write_run(
    path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema, order: Mapping[str, Direction]
) -> Run:
    """Write rows, which come in an order as of `plait.formats.sorted_runs.SortedRuns`, as a run."""
    rows, firsts = 0, []
    with arrow_file(path, schema) as writer:
        for block in reblock(batches, _BLOCK_ROWS):
            writer.write_batch(block)
            firsts.append(row_key(block, 0, order))
            rows += block.num_rows
    return Run(path, rows, _BLOCK_ROWS, tuple(firsts))


@dataclass(frozen=True, slots=True)
class _RowsBefore:
    """How many rows of a run lie before each cut."""

    order: Mapping[str, Direction]
    cuts: tuple[Key, ...]

    def __call__(self, run: Run) -> list[int]:
        found = []
        with arrow_blocks(run.path) as block:
            for cut in self.cuts:
                number = bisect_left(run.firsts, cut) - 1
                found.append(0 if number < 0 else number * run.block_rows + self._within(block(number), cut))
        return found

    def _within(self, rows: pa.RecordBatch, cut: Key) -> int:
        return bisect_left(range(rows.num_rows), cut, key=lambda i: row_key(rows, i, self.order))


class _Pieces(NamedTuple):
    """A part: its number, rows ``[first, end)`` of some runs, and where in their order it begins."""

    number: int
    of_runs: tuple[tuple[Run, int, int], ...]
    skipped: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfRuns:
    """Writes a part from runs; can be pickled.

    `finished` makes the rows of the dataset of those of the runs, `batch_rows` are those of a row group,
    which are counted from the first row of all.
    """

    order: Mapping[str, Direction]
    finished: Callable[[pa.RecordBatch], pa.RecordBatch]
    parts: Parts
    folder: Folder
    part_rows: int
    batch_rows: int

    def __call__(self, pieces: _Pieces) -> tuple[PartFile, ...]:
        """Write a part."""
        held = [rows for run, first, end in pieces.of_runs for rows in run.read(first, end)]
        rows = pa.concat_batches(held)
        sorted_rows = rows.take(pc.sort_indices(rows, sort_keys=list(self.order.items())))
        rows = self.finished(sorted_rows.slice(pieces.skipped, pieces.rows))
        writer, first = PartWriter(pieces.number, self.parts), pieces.number * self.part_rows
        while rows.num_rows:
            room = self.batch_rows - first % self.batch_rows
            writer.write(rows.slice(0, room))
            first, rows = first + room, rows.slice(room)
        return writer.finish(self.folder)

    def written(self, runs: Sequence[Run], executor: Executor) -> list[PartFile]:
        """Write all parts of runs, in whose keys no two rows are equal, by an executor."""
        cuts = _cuts(runs, max(1, self.part_rows // _STRETCHES))
        before = executor.map(_RowsBefore(self.order, cuts), runs, named=lambda run: str(run.path))
        edges = np.array([[0, *found, run.rows] for run, found in zip(runs, before, strict=True)], np.int64)
        named = "part {} of the rows in order".format
        files = executor.map(self, self._pieces(runs, edges), named=lambda pieces: named(pieces.number))
        return [file for found in files for file in found]

    def _pieces(self, runs: Sequence[Run], edges: np.ndarray[Any, Any]) -> Iterator[_Pieces]:
        starts = edges.sum(axis=0)
        total = int(starts[-1]) if len(starts) else 0
        for number, first in enumerate(range(0, total, self.part_rows)):
            end = min(first + self.part_rows, total)
            low = int(np.searchsorted(starts, first, side="right")) - 1
            high = int(np.searchsorted(starts, end, side="left"))
            spans = zip(runs, edges[:, low].tolist(), edges[:, high].tolist(), strict=True)
            of_runs = tuple((run._replace(firsts=()), a, b) for run, a, b in spans if a < b)
            yield _Pieces(number, of_runs, first - int(starts[low]), end - first)


def _cuts(runs: Sequence[Run], rows: int) -> tuple[Key, ...]:
    """Keys between which there are about so many rows, as far as the first ones of blocks tell."""
    blocks = sorted(key for run in runs for key in run.firsts)
    step = max(1, rows // max((run.block_rows for run in runs), default=1))
    return tuple(blocks[step::step])
