"""Runs whose output is a dataset: its parts are made and written where the work is done.

A part is a few blocks. The process that runs the command deals out parts, adds up their totals and writes the
manifest; rows of Parquet, and those of the output, never pass through it.

A module of its own: a table that is one file is written in order, by one process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count, islice
from os import PathLike, fspath
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from plait.errors import FormatError
from plait.formats.checkpoints import Checkpoint, digest_of, kept_if_useful
from plait.formats.datasets import SUMMARY, DatasetOutput, Folder, PartFile, Parts, PartWriter, rows_of_part
from plait.formats.files import beside, stamp_of, status_of
from plait.formats.rearrangements import RowRange
from plait.run.executor import Executor, Progress
from plait.run.rows import (
    FinishedRun,
    Kept,
    RowRun,
    RowWork,
    S,
    WrittenRows,
    facts_of,
    kept_results,
    key_of,
    metadata_of,
)

U = TypeVar("U")

#: Blocks of a part, at most, so that a part of slow work is not too long.
_MOST_BLOCKS = 16
#: The same of rows that are read here, and held or sent until somebody works on them.
_MOST_SENT = 2
#: Parts worked on at a time in this process: each is in memory, with what is made of it.
_MOST_PARTS = 16


class WorkedPart(NamedTuple):
    """A part that is written: its files, the rows that it was made from, their totals, and the devices.

    `stamps` are those of the files that it was made from, where it stands for rows of files.
    """

    files: tuple[PartFile, ...]
    rows: int
    totals: Any = None
    devices: frozenset[str] = frozenset()
    stamps: tuple[list[int], ...] = ()


class DatasetRun(NamedTuple):
    """A dataset under way: what it is written to, what all parts have in common, and the finished ones."""

    output: DatasetOutput
    parts: Parts
    checkpoint: Checkpoint

    def results(
        self,
        executor: Executor,
        work: Callable[[U], WorkedPart],
        units: Iterable[U],
        *,
        digest: Callable[[U], bytes],
        named: Callable[[int, U], str],
        totals: Any = None,
        most: int | None = None,
        size: Callable[[U], int] = lambda unit: 0,
    ) -> Generator[WorkedPart, None, None]:
        """The parts that `work` writes of units, in order; those that are whole are not made again.

        `totals` are empty ones; the rest is as for `plait.run.rows.kept_results`.
        """

        def untouched(index: int, unit: U) -> WorkedPart | None:
            asked = list(getattr(unit, "stamps", ()))
            rows = self.checkpoint.get(index) if asked else None
            told = {} if rows is None else json.loads(rows["part"][0].as_py())
            now = [asked, self._stamps(told.get("files", ()))]
            return remade(told) if told.get("stamps") == now and [] not in now[1] else None

        def restored(unit: U, rows: pa.RecordBatch) -> Any:
            found = remade(json.loads(rows["part"][0].as_py()))
            return found if all(map(self.output.whole, found.files)) else None

        def remade(told: Mapping[str, Any]) -> WorkedPart:
            files = tuple(PartFile(*file) for file in told["files"])
            found = restored_state(totals, told["totals"])
            return WorkedPart(files, told["rows"], found, frozenset(told["devices"]))

        def stored(found: WorkedPart) -> pa.RecordBatch:
            told = {
                "files": found.files,
                "rows": found.rows,
                "totals": state_of(found.totals),
                "devices": sorted(found.devices),
                "stamps": [found.stamps, self._stamps(found.files)],
            }
            return pa.record_batch({"part": [json.dumps(told)]})

        kept: Kept[U, WorkedPart] = Kept(
            checkpoint=self.checkpoint,
            digest=digest,
            stored=stored,
            restored=restored,
            named=named,
            size=size,
            untouched=untouched,
        )
        with closing(kept_results(executor, work, units, kept, most=most)) as results:
            for _, found, _ in results:
                yield found

    def _stamps(self, files: Iterable[Sequence[Any]]) -> list[list[int]]:
        return [stamp_of(self.output.folder.path(file[0])) for file in files]

    def finish(self, files: Sequence[PartFile], summary: Mapping[str, Any] | None) -> None:
        """Say which files are all, and what the run tells of itself."""
        known = files or PartWriter.empty(self.parts, self.output.folder)
        self.output.finish(known, self.parts, summary)


@contextmanager
def open_dataset(
    output: str | PathLike[str],
    parts: Parts,
    *,
    key: Mapping[str, object],
    inputs: Sequence[str | PathLike[str]] = (),
    resume: bool,
) -> Iterator[DatasetRun]:
    """A dataset to write by parts, with ``OUTPUT.checkpoint``, which is there until all is done.

    Arguments are as of `plait.run.rows.kept_table`. It appears on a clean exit, after `DatasetRun.finish`.
    """
    folder = beside(output, ".checkpoint")
    with DatasetOutput(output, inputs=inputs, resume=resume, keep=folder.exists) as written:
        known = {**key, "partition": parts.partition, "output": written.path}
        checkpoint = Checkpoint(folder, key=known, resume=resume)
        with kept_if_useful(checkpoint):
            yield DatasetRun(written, parts, checkpoint)
    checkpoint.remove()


def state_of(value: Any) -> Any:
    """Totals ready for JSON: dataclasses, mappings, arrays and what these are made of."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: state_of(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        # Keys may be no text.
        return [[key, state_of(one)] for key, one in value.items()]
    if isinstance(value, np.ndarray):
        # Of the bins of a histogram, hardly any is filled.
        at = np.flatnonzero(value)
        return [value.shape, at.tolist(), value.flat[at].tolist()]
    return value


def restored_state(empty: Any, state: Any) -> Any:
    """What `state_of` told, after a way through JSON; `empty` are totals of the same kind, of nothing."""
    if is_dataclass(empty) and not isinstance(empty, type):
        found = copy(empty)
        for name, told in state.items():
            setattr(found, name, restored_state(getattr(empty, name), told))
        return found
    if isinstance(empty, Counter):
        return Counter({_key(key): one for key, one in state})
    if isinstance(empty, Mapping):
        return type(empty)({_key(key): restored_state(empty[_key(key)], one) for key, one in state})  # type: ignore[call-arg]
    if isinstance(empty, np.ndarray):
        array = np.zeros(state[0], empty.dtype)
        array.flat[state[1]] = state[2]
        return array
    return state


def _key(key: Any) -> Any:
    return tuple(map(_key, key)) if isinstance(key, list) else key


def check_size(path: str | PathLike[str], size: int) -> None:
    """FormatError if a file has other bytes here than where the command has opened it."""
    here = status_of(path).st_size
    if here != size:
        raise FormatError(
            path,
            found=f"{here:,} bytes where a worker reads it",
            expected=f"the file of {size:,} bytes that the command has opened, on all machines",
            hint="workers need the same files under the same paths",
        )


@dataclass(frozen=True, slots=True)
class RowPart:
    """Rows of a part of a run, whose first one is number `first`: blocks, or where the rows stand in files.

    `stamps` are those of each file of these rows, see `plait.formats.files.stamp_of`.
    """

    number: int
    first: int
    rows: tuple[pa.RecordBatch, ...] | RowRange
    stamps: tuple[list[int], ...] = ()

    def read(self) -> RowPart:
        """The same with its rows; FormatError if they cannot be read, or the files are others here."""
        if not isinstance(self.rows, RowRange):
            return self
        for (path, _, _), stamp in zip(self.rows.parts, self.stamps, strict=True):
            check_size(path, stamp[0] if stamp else -1)  # a file that is gone has none
        return replace(self, rows=(self.rows.read(),))

    def blocks(self, most: int) -> Iterator[pa.RecordBatch]:
        """Its rows, once they are read, as the blocks of a run of one file."""
        assert not isinstance(self.rows, RowRange)
        for rows in self.rows:
            for start in range(0, rows.num_rows, most):
                yield rows.slice(start, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfRows(Generic[S]):
    """Works on the rows of a part and writes it, wherever it is called.

    The first five are as of `plait.run.rows.RowRun`, `block_rows` as of its reader; `folder` takes the parts.
    """

    work: RowWork[S]
    columns: Sequence[str]
    rows: WrittenRows
    summary: S
    block_rows: int
    parts: Parts
    folder: Folder

    @property
    def label(self) -> str:
        """What it is called in the pages of a cluster."""
        return type(self.work).__name__

    def __call__(self, part: RowPart) -> WorkedPart:
        """Write a part."""
        writer, totals = PartWriter(part.number, self.parts), deepcopy(self.summary)
        first, devices = part.first, set()
        for block in part.blocks(self.block_rows):
            found = self.work(block.select(self.columns))
            writer.write(self.rows.batch(first, block, found.result))
            totals.merge(found.summary)
            devices |= {found.device} if found.device else set()
            first += block.num_rows
        files = writer.finish(self.folder)
        return WorkedPart(files, first - part.first, totals, frozenset(devices), part.stamps)


def run_parts(
    run: RowRun[S], executor: Executor, *, resume: bool, progress: Callable[[Progress], None] | None
) -> FinishedRun[S]:
    """Work on all rows and write a dataset; see `plait.run.rows.run_rows`."""
    reader = run.reader
    asked = run.parts.partition
    partition = None if asked is None else reader.roles.get(asked, asked)
    told = metadata_of({"provenance": run.provenance, **run.metadata})
    parts = Parts(run.rows.schema.remove_metadata(), told, partition).check()
    reader.block_rows = min(reader.block_rows, rows_of_part(run.parts))
    blocks, units, total = _units(run)
    rows = 0
    devices: set[str] = set()
    files: list[PartFile] = []
    key = {**key_of(run), "part_blocks": blocks}
    with open_dataset(run.output, parts, key=key, inputs=run.inputs, resume=resume) as made:
        resumed = len(made.checkpoint.blocks())
        work = PartOfRows(
            work=run.work,
            columns=run.columns,
            rows=run.rows,
            summary=deepcopy(run.summary),
            block_rows=reader.block_rows,
            parts=parts,
            folder=made.output.folder,
        )
        width = reader.sampled_row_bytes()
        results = made.results(
            executor,
            work,
            units,
            digest=lambda part: digest_of(*part.blocks(reader.block_rows)),
            named=lambda _, part: _named(run, part),
            totals=deepcopy(run.summary),
            most=min(run.most, _MOST_PARTS),
            size=lambda part: 0 if isinstance(part.rows, RowRange) else width * _rows_in(part),
        )
        with closing(results):
            for found in results:
                run.summary.merge(found.totals)
                devices |= found.devices
                files += found.files
                rows += found.rows
                if progress is not None:
                    progress(_progress(run, rows, total))
        reader.check_unchanged()
        facts = facts_of(run, devices)
        made.finish(files, facts)
    folder = fspath(run.output).rstrip("/")
    return FinishedRun(
        output=f"{folder}/",
        summary_path=f"{folder}/{SUMMARY}",
        rows=rows,
        summary=run.summary,
        facts=facts,
        renamed=run.rows.renamed or {},
        blank_lines=reader.blank_lines,
        resumed_blocks=resumed,
    )


def _progress(run: RowRun[Any], rows: int, total: int | None) -> Progress:
    """How far a run is, which knows how many bytes are read, or how many rows there are."""
    size = run.reader.total_bytes
    return Progress(rows, run.reader.bytes_read() if total is None else size * rows // max(total, 1), size)


def _units(run: RowRun[Any]) -> tuple[int, Iterator[RowPart], int | None]:
    """Blocks of a part, the parts, and the rows of all, if that is known.

    They depend on the input and on what is asked for, not on who works.
    """
    reader, asked = run.reader, run.parts.part_rows is not None
    blocks = max(1, rows_of_part(run.parts) // reader.block_rows)
    blocks = blocks if asked else min(blocks, _MOST_BLOCKS)
    ranges = reader.ranges(reader.schema.names, blocks)
    if ranges is None:
        blocks = blocks if asked else min(blocks, _MOST_SENT)
        return blocks, _of_blocks(reader.numbered(), blocks), None
    stamps = {path: stamp_of(path) for path, _, _ in reader.identities}
    known = list(ranges)
    return blocks, _of_ranges(known, stamps), sum(one.rows for one in known)


def _of_blocks(numbered: Iterator[tuple[int, pa.RecordBatch]], blocks: int) -> Iterator[RowPart]:
    for number in count():
        held = list(islice(numbered, blocks))
        if not held:
            return
        yield RowPart(number, held[0][0], tuple(block for _, block in held))


def _of_ranges(ranges: Iterable[RowRange], stamps: Mapping[str, list[int]]) -> Iterator[RowPart]:
    first = 0
    for number, one in enumerate(ranges):
        yield RowPart(number, first, one, tuple(stamps[path] for path, _, _ in one.parts))
        first += one.rows


def _rows_in(part: RowPart) -> int:
    if isinstance(part.rows, RowRange):
        return part.rows.rows
    return sum(block.num_rows for block in part.rows)


def _named(run: RowRun[Any], part: RowPart) -> str:
    if isinstance(part.rows, RowRange):
        return part.rows.name
    return run.reader.named(part.first, _rows_in(part))
