"""Sharing where workers read, group, sort and write: rows are dealt out by junction, on a shared disk.

A module of its own: `plait.vdj.repertoires.sharing` does the same in one process, and is what this rests on.
A worker groups rows and writes them as a piece with a block for each part; another one groups a part, which
has whole clonotypes, and writes it as a sorted run; the runs become parts of the datasets. What passes
through the process that deals out the work are sums, and path counts where their quantiles are told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.formats.datasets import DatasetOutput, Parts, PartWriter, rows_of_part
from plait.formats.rearrangements import RearrangementReader, RowRange
from plait.formats.sorted_runs import Direction, SpilledBlocks, deal_rows, dealt_rows, text_hash
from plait.formats.tables import ONE_FILE
from plait.run.executor import Executor, LocalExecutor
from plait.run.ordered_parts import PartOfRuns, Run, write_run
from plait.vdj.repertoires.grouped_rows import ClonotypeGrouper, GroupedRows
from plait.vdj.repertoires.overlap import PATH_COUNT, Levels
from plait.vdj.repertoires.sharing import (
    BATCH_ROWS,
    FinishedRows,
    SharedRows,
    SharingSettings,
    without_subjects,
)

_Path: TypeAlias = str | os.PathLike[str]

#: Blocks of a range that a worker reads.
_BLOCKS: Final = 8
#: Input rows for each part that is grouped, and bytes of text for each of them.
_ROWS: Final = 1 << 19
_ROW_BYTES: Final = 64
#: Numbers of files among those that are put aside: of pieces, then of three kinds of runs.
_PIECES, _RUNS = 10_000_000, 20_000_000


class _Piece(NamedTuple):
    """Rows to group and to deal out, and the file that takes them."""

    path: Path
    rows: pa.RecordBatch | RowRange

    @property
    def name(self) -> str:
        """What they are called in messages."""
        return self.rows.name if isinstance(self.rows, RowRange) else f"the rows of {self.path.name}"

    @property
    def bytes(self) -> int:
        """Bytes of what is held, or sent."""
        return 0 if isinstance(self.rows, RowRange) else int(self.rows.nbytes)


@dataclass(frozen=True, slots=True)
class Dealer:
    """Groups rows and deals them out to so many parts; can be pickled."""

    grouper: ClonotypeGrouper
    parts: int

    def __call__(self, piece: _Piece) -> tuple[GroupedRows, int]:
        """Write a piece; its sums, without rows, and the kind of its path counts."""
        found = self.grouper(piece.rows)
        kind = self.grouper.kind_of(found.table[PATH_COUNT]) if self.grouper.counted else 0
        part = text_hash(found.table[self.grouper.key.columns[0]].combine_chunks()) % np.uint64(self.parts)
        deal_rows(piece.path, found.table, part.astype(np.int64), self.parts)
        return replace(found, table=found.table.schema.empty_table()), kind


class _GroupedPart(NamedTuple):
    """A part that is grouped: sums of its clonotypes, and sorted runs of them."""

    totals: NDArray[np.int64]
    tests: NDArray[np.int64] | None
    clonotypes: Run
    pairs: Run | None
    path_counts: Run
    blanks: tuple[pa.RecordBatch, pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartGrouper:
    """Groups the rows of a part and writes them in order; can be pickled.

    `sums` are those of all rows, `kind` is that of all path counts, `runs` names three files for each part.
    """

    grouper: ClonotypeGrouper
    settings: SharingSettings
    sums: GroupedRows
    kind: int
    pieces: tuple[Path, ...]
    with_pairs: bool

    def __call__(self, task: tuple[int, tuple[Path, ...]]) -> _GroupedPart:
        """Group a part and write its runs."""
        part, paths = task
        with TemporaryDirectory(prefix="plait-") as folder, SpilledBlocks(Path(folder) / "rows") as blocks:
            rows = SharedRows(
                self.grouper,
                blocks,
                self.settings,
                None,
                with_pairs=self.with_pairs,
                overlap_depth=None,
            )
            rows.kind = self.kind
            rows.add(self.sums)
            for batch in dealt_rows(self.pieces, part):
                rows.add(GroupedRows(pa.Table.from_batches([batch])))
            rows.finish("the rows", LocalExecutor(1))
            paired = None
            blank = rows.blank_pairs.append_column("subjects", pa.array([], pa.int32()))
            if rows.paired is not None:
                paired = write_run(paths[1], rows.paired.drain(), blank.schema, rows.paired.order)
            counts = rows.levels.path_counts
            return _GroupedPart(
                rows.levels.totals(),
                None if rows.condition is None else rows.condition.tests,
                write_run(paths[0], rows.found.drain(), rows.blank.schema, rows.found.order),
                paired,
                write_run(paths[2], counts.drain(), Levels.SCHEMA, counts.order),
                (rows.blank, blank),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRuns:
    """What workers have grouped: runs of clonotypes and of pairs, and how to finish their rows."""

    clonotypes: tuple[Run, ...]
    pairs: tuple[Run, ...]
    finished: FinishedRows
    orders: tuple[dict[str, Direction], dict[str, Direction]]
    blanks: tuple[pa.RecordBatch, pa.RecordBatch]
    executor: Executor

    def write(
        self, output: _Path, metadata: Mapping[str, str], inputs: Sequence[_Path], *, pairs: bool = False
    ) -> None:
        """Write a dataset: clonotypes, or `pairs` of clonotype and subject."""
        finished: Callable[[pa.RecordBatch], pa.RecordBatch] = without_subjects if pairs else self.finished
        parts = Parts(finished(self.blanks[pairs]).schema.remove_metadata(), metadata)
        with DatasetOutput(output, inputs=inputs) as written:
            work = PartOfRuns(
                order=self.orders[pairs],
                finished=finished,
                parts=parts,
                folder=written.folder,
                part_rows=rows_of_part(ONE_FILE),
                batch_rows=BATCH_ROWS,
            )
            files = work.written(self.pairs if pairs else self.clonotypes, self.executor)
            written.finish(files or PartWriter.empty(parts, written.folder), parts, None)


def grouped_by_workers(
    found: SharedRows,
    reader: RearrangementReader,
    name: str,
    blocks: SpilledBlocks,
    executor: Executor,
    told: Callable[[], None],
) -> SharedRuns:
    """Group all rows of a reader; their sums are added to `found`, which gets no rows.

    `name` is what the rows are called in messages. Files are put aside in the folder of `blocks`, which all
    machines find. `told` is called now and then.
    """
    parts, rows = _parts_of(reader, found.grouper.columns)
    pieces: list[Path] = []
    sums = _dealt(found, parts, rows, pieces, blocks, executor, told)
    reader.check_unchanged()
    found.begin_totals(name)
    grouper = PartGrouper(
        grouper=found.grouper,
        settings=found.settings,
        sums=sums,
        kind=found.kind,
        pieces=tuple(pieces),
        with_pairs=found.paired is not None,
    )
    tasks = ((part, tuple(blocks.file(_RUNS + 3 * part + k) for k in range(3))) for part in range(parts))
    named = "part {} of the clonotypes".format
    grouped = list(executor.map(grouper, tasks, named=lambda task: named(task[0])))
    for path in pieces:
        path.unlink()
    for part in grouped:
        found.levels.merge(part.totals, part.path_counts.read(0, part.path_counts.rows))
        if found.condition is not None and part.tests is not None:
            found.condition.tests += part.tests
    return SharedRuns(
        clonotypes=tuple(part.clonotypes for part in grouped),
        pairs=tuple(part.pairs for part in grouped if part.pairs is not None),
        finished=FinishedRows(found.kind, found.condition),
        orders=(found.found.order, {} if found.paired is None else found.paired.order),
        blanks=grouped[0].blanks,
        executor=executor,
    )


def _parts_of(reader: RearrangementReader, columns: Sequence[str]) -> tuple[int, Iterator[Any]]:
    """How many parts are grouped, so that each is small, and the rows or where they stand, piece by piece."""
    ranges = reader.ranges(columns, _BLOCKS)
    if ranges is None:
        blocks = (block.select(columns) for block in reader)
        return 1 + reader.total_bytes // _ROW_BYTES // _ROWS, blocks
    known = list(ranges)
    return 1 + sum(one.rows for one in known) // _ROWS, iter(known)


def _dealt(
    found: SharedRows,
    parts: int,
    rows: Iterator[Any],
    pieces: list[Path],
    blocks: SpilledBlocks,
    executor: Executor,
    told: Callable[[], None],
) -> GroupedRows:
    """Deal out all rows, to `pieces`; their sums, without rows."""

    def named() -> Iterator[_Piece]:
        for number, some in zip(count(_PIECES), rows, strict=False):
            pieces.append(blocks.file(number))
            yield _Piece(pieces[-1], some)

    work = executor.map(
        Dealer(found.grouper, parts),
        named(),
        named=lambda piece: piece.name,
        size=lambda piece: piece.bytes,
    )
    sums = GroupedRows(found.grouper.empty())
    with closing(work) as results:
        for sums, kind in results:
            found.add(sums)
            found.kind = max(found.kind, kind)
            told()
    conditions = {subject: sorted(said) for subject, said in found.conditions.items()}
    return replace(sums, subjects=found.rows, copies=found.copies, conditions=conditions)
