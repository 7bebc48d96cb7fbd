"""Runs over the rows of files: in blocks, several at a time, resumable, written in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from plait.errors import FormatError
from plait.formats.atomic import write_json
from plait.formats.checkpoints import Checkpoint, digest_of, kept_if_useful
from plait.formats.parquet import read_ahead
from plait.formats.rearrangements import RearrangementReader, RowRange
from plait.formats.tables import open_table
from plait.run.executor import Executor
from plait.settings import source_digest

U = TypeVar("U")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Generic[U, R]):
    """How results are kept: `stored` makes rows of a result, `restored` the result of a part and its rows.

    `digest` is `plait.formats.checkpoints.digest_of` what a part holds; a result is kept for nothing else.
    `named` is what a part is called in an error, from its number and itself; `size` its bytes, where they may
    be many.
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

    If the work is done elsewhere, it and the parts are picklable. Of a
    `plait.formats.rearrangements.RowRange` there, what it stands for is worked on, and its digest is that of
    the rows that the worker has read. Results from elsewhere are kept by this process, in order. `most` is as
    for `plait.run.executor.Executor.map`.
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


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: rows, or reads, that are done, and bytes of the inputs that have been read."""

    rows: int
    bytes_read: int
    total_bytes: int


#: What a block takes in memory, about. Part of what makes a run's output, so it depends on the columns alone.
_BLOCK_BYTES = 16 * 2**20
#: Rows at the start of each input from which the width of its rows is guessed.
SAMPLED_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWork(Generic[R]):
    """What is done with every block.

    `work` makes the result of the columns named, in their order; it is picklable, if blocks go elsewhere.
    `stored` makes the rows to keep of a result, `restored` the result of a block from its columns and the
    kept rows. `finish` makes the rows to write, from the number of a block's first row, its rows and result;
    it is called in several threads.
    """

    columns: Sequence[str]
    work: Callable[[pa.RecordBatch], R]
    stored: Callable[[R], pa.RecordBatch]
    restored: Callable[[pa.RecordBatch, pa.RecordBatch], R]
    finish: Callable[[int, pa.RecordBatch, R], pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRun(Generic[R]):
    """A run over tables, opened by `reader`; `inputs` are their paths, as given.

    `schema` and `metadata` are as for `plait.formats.tables.open_table`. `key` is what must be equal for a
    run to be resumed, see `run_key`; at most `most` blocks are worked on at a time in this process.
    """

    reader: RearrangementReader
    inputs: Sequence[str | os.PathLike[str]]
    work: RowWork[R]
    schema: pa.Schema
    metadata: Mapping[str, str]
    key: Mapping[str, object]
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """What is known of a run that has ended; `summary_path` is the file with its totals.

    `rows` counts those of the inputs, `blank_lines` those in text inputs, `resumed_blocks` the blocks taken
    over from a run that was stopped.
    """

    summary_path: Path
    rows: int
    blank_lines: int
    resumed_blocks: int


def run_rows(
    run: RowRun[R],
    output: str | os.PathLike[str],
    executor: Executor,
    *,
    resume: bool,
    progress: Callable[[Progress], None] | None,
    add: Callable[[R], None],
    facts: Callable[[], Mapping[str, Any]],
) -> FinishedRun:
    """Work on all rows and write one table, beside it ``OUTPUT.summary.json``.

    With `resume` it goes on with what ``OUTPUT.checkpoint`` holds. `progress` is called after every block,
    `add` takes every result, in order, and `facts` are asked for at the end: what stands in the summary
    beside the inputs. InvalidInput if the output cannot be, or a run to resume differs; FormatError if an
    input is not what it should be, or the disk is full.
    """
    reader, rows = run.reader, 0
    with open_table(output, run.schema, metadata=run.metadata, inputs=run.inputs) as table:
        checkpoint = Checkpoint(Path(f"{os.fspath(output)}.checkpoint"), key=run.key, resume=resume)
        resumed = len(checkpoint.blocks())
        work = _worked_blocks(reader, run.work, checkpoint, executor, run.most)
        # Closed before the reader and the table are, whatever happens: other threads work on both.
        with kept_if_useful(checkpoint), closing(read_ahead(work)) as results:
            for given, batch, found in results:
                add(found)
                rows += given
                table.write(batch)
                if progress is not None:
                    progress(Progress(rows, reader.bytes_read(), reader.total_bytes))
        blank_lines = reader.blank_lines
    summary_path = Path(f"{os.fspath(output)}.summary.json")
    inputs = {"inputs": [path for path, _, _ in reader.identities], "blank_lines": blank_lines}
    write_json(summary_path, {**inputs, **facts()})
    checkpoint.remove()
    return FinishedRun(summary_path=summary_path, rows=rows, blank_lines=blank_lines, resumed_blocks=resumed)


def _worked_blocks(
    reader: RearrangementReader, work: RowWork[R], checkpoint: Checkpoint, executor: Executor, most: int
) -> Generator[tuple[int, pa.RecordBatch, R], None, None]:
    """Number of rows, what is written and result of every block, in order."""
    if executor.elsewhere:
        yield from _worked_elsewhere(reader, work, checkpoint, executor)
        return

    def done(part: tuple[int, pa.RecordBatch]) -> tuple[pa.RecordBatch, R]:
        first, block = part
        found = work.work(block.select(work.columns))
        return work.finish(first, block, found), found

    def restored(part: tuple[int, pa.RecordBatch], rows: pa.RecordBatch) -> tuple[pa.RecordBatch, R]:
        first, block = part
        found = work.restored(block.select(work.columns), rows)
        return work.finish(first, block, found), found

    kept = Kept(
        checkpoint=checkpoint,
        digest=lambda part: digest_of(part[1].select(work.columns)),
        stored=lambda found: work.stored(found[1]),
        restored=restored,
        named=lambda index, part: reader.named(part[0], part[1].num_rows),
        size=lambda part: part[1].nbytes,
    )
    with closing(kept_results(executor, done, reader.numbered(), kept, most=most)) as results:
        for (_, block), (batch, found), _ in results:
            yield block.num_rows, batch, found


def _worked_elsewhere(
    reader: RearrangementReader, work: RowWork[R], checkpoint: Checkpoint, executor: Executor
) -> Generator[tuple[int, pa.RecordBatch, R], None, None]:
    """Workers work: they read Parquet by themselves, text is sent to them. This process reads and writes."""
    held: deque[tuple[int, pa.RecordBatch]] = deque()
    ranges = reader.ranges(work.columns)
    blocks = reader.numbered() if ranges is not None else iter(held.popleft, None)
    starts: list[int] = []

    def sent() -> Iterator[pa.RecordBatch]:
        for first, block in reader.numbered():
            held.append((first, block))
            starts.append(first)
            yield block.select(work.columns)

    def named(index: int, part: pa.RecordBatch | RowRange) -> str:
        return part.name if isinstance(part, RowRange) else reader.named(starts[index], part.num_rows)

    kept = Kept(
        checkpoint=checkpoint,
        digest=digest_of,
        stored=work.stored,
        restored=work.restored,
        named=named,
        size=lambda part: 0 if isinstance(part, RowRange) else part.nbytes,
    )
    with closing(kept_results(executor, work.work, ranges or sent(), kept)) as results:
        # The result first: by then its block of text has been read.
        for (part, found, digest), (first, block) in zip(results, blocks, strict=False):
            if isinstance(part, RowRange):
                _check_same_rows(part, block.select(work.columns), digest)
            yield block.num_rows, work.finish(first, block, found), found


def _check_same_rows(part: RowRange, here: pa.RecordBatch, digest: bytes) -> None:
    """Check that this process has read what a worker has read."""
    if here.num_rows != part.rows:
        raise FormatError(
            part.parts[0][0],
            found=f"rows that take more memory than others, in {part.name}",
            expected="rows that workers can read in equal numbers",
            hint="choose --executor local, or write the rows as text",
        )
    if digest != digest_of(here):
        raise FormatError(
            part.parts[0][0],
            found=f"other rows than a worker has read, in {part.name}",
            expected="one file under this path on all machines, which does not change while it is read",
            hint="repeat the command with --resume: what has changed is noticed",
        )


def run_key(
    reader: RearrangementReader, provenance: Mapping[str, Any], **further: object
) -> dict[str, object]:
    """What must be equal for a run to be resumed: inputs, how results are made, what else decides them."""
    package = Path(__file__).parents[1]
    return {
        "provenance": provenance,
        "sources": source_digest(package.rglob("*.py")),
        "layout": reader.layout.name,
        "inputs": [list(identity) for identity in reader.identities],
        "block_rows": reader.block_rows,
        **further,
    }


class AddedColumns:
    """The columns of an input and behind them those of a result, row for row.

    Input columns that have the name of a result are given another one; `renamed` maps old names to new.

    Examples
    --------
    >>> columns = AddedColumns(pa.schema([("status", pa.string())]), pa.schema([("status", pa.string())]))
    >>> columns.renamed, columns.schema.names
    ({'status': 'input_status'}, ['input_status', 'status'])
    """

    def __init__(self, given: pa.Schema, added: pa.Schema) -> None:
        taken = {*given.names, *added.names}
        self.renamed: dict[str, str] = {}
        for name in given.names:
            if name in added.names:
                new = f"input_{name}"
                while new in taken:
                    new = f"input_{new}"
                taken.add(new)
                self.renamed[name] = new
        kept = [field.with_name(self.renamed.get(field.name, field.name)) for field in given]
        self.schema = pa.schema([*kept, *added])

    def batch(self, block: pa.RecordBatch, result: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a block with their results."""
        return pa.record_batch([*block.columns, *result.columns], schema=self.schema)


def rows_per_block(row_bytes: int, fewest: int, most: int) -> int:
    """Rows of a block, `fewest` to `most`, so that it takes about the same memory whatever the columns.

    `row_bytes` is what a row takes with its results.
    """
    return max(fewest, min(most, _BLOCK_BYTES // max(row_bytes, 1)))


def sampled_row_bytes(reader: RearrangementReader) -> int:
    """Bytes of a row at the start of an input; a guess of what the others take.

    The reader was opened with `SAMPLED_ROWS`; it is closed here.
    """
    with reader:
        block = next(iter(reader), None)
        return int(block.nbytes) // block.num_rows if block is not None else 0
