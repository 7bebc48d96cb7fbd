"""Runs over the rows of files: in blocks, several at a time, resumable, written in order."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

import pyarrow as pa

from plait.devices.target import used_devices
from plait.errors import FormatError, check_choice
from plait.formats.atomic import write_json
from plait.formats.checkpoints import Checkpoint, digest_of, kept_if_useful
from plait.formats.files import beside, is_dataset, read_ahead
from plait.formats.rearrangements import RearrangementReader, RowRange
from plait.formats.row_groups import EncodedRows
from plait.formats.tables import ONE_FILE, PartSettings, ReadyRows, TableWriter, check_one_file, open_table
from plait.run.executor import Executor, Progress
from plait.settings import package_digest

U = TypeVar("U")
R = TypeVar("R")


class Totals(Protocol):
    """Sums over the blocks of a run."""

    def merge(self, other: Any, /) -> None:
        """Add those of another block, which is left unchanged."""
        ...


S = TypeVar("S", bound=Totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Generic[U, R]):
    """How results are kept: `stored` makes rows of a result, `restored` the result of a part and its rows.

    Of rows that are stored encoded, `schema` has those columns that `restored` takes.
    `digest` is `plait.formats.checkpoints.digest_of` what a part holds; a result is kept for nothing else.
    `named` is what a part is called in an error, from its number and itself; `size` its bytes, where they may
    be many. `untouched` is the result of a part with a number, if it is surely whole without a look at rows.
    """

    checkpoint: Checkpoint
    digest: Callable[[U], bytes]
    stored: Callable[[R], pa.RecordBatch | EncodedRows]
    restored: Callable[[U, pa.RecordBatch], R]
    named: Callable[[int, U], str]
    size: Callable[[U], int] = lambda part: 0
    schema: pa.Schema | None = None
    untouched: Callable[[int, U], R | None] = lambda index, part: None

    def of(self, index: int, part: U, digest: bytes, name: str) -> R | None:
        """The result of a part, if it is kept and whole."""
        rows = self.checkpoint.get(index, digest, name, self.schema)
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

    Those that are untouched have no digest.

    If the work is done elsewhere, it and the parts are picklable. Of a
    `plait.formats.rearrangements.RowRange` there, what it stands for is worked on, and its digest is that of
    the rows that the worker has read. Results from elsewhere are kept by this process, in order. `most` is as
    for `plait.run.executor.Executor.map`.
    """
    if executor.elsewhere:
        return _from_elsewhere(executor, work, parts, kept)

    def done(numbered: tuple[int, U]) -> tuple[U, R, bytes]:
        index, given = numbered
        untouched = kept.untouched(index, given)
        if untouched is not None:
            return given, untouched, b""
        part: U = _here(given)
        digest = kept.digest(part)
        known = kept.of(index, part, digest, kept.named(index, given))
        return given, kept.keep(index, work(part), digest) if known is None else known, digest

    return executor.map(done, enumerate(parts), most=most, size=lambda numbered: kept.size(numbered[1]))


@dataclass(frozen=True, slots=True)
class _IfNew:
    """The work on a part behind its number, and its digest; where no part stands, its result is kept."""

    work: Callable[[Any], Any]
    digest: Callable[[Any], bytes]

    @property
    def label(self) -> str:
        """What it is called in the pages of a cluster."""
        return getattr(self.work, "label", type(self.work).__name__)

    def __call__(self, numbered: tuple[Any, ...]) -> tuple[tuple[Any, bytes], ...]:
        parts = map(_here, numbered[1:])
        return tuple((self.work(part), self.digest(part)) for part in parts)


def _here(part: Any) -> Any:
    """A part as it is worked on: one that stands for rows of files reads them."""
    return part.read() if hasattr(part, "read") else part


def _from_elsewhere(
    executor: Executor, work: Callable[[U], R], parts: Iterable[U], kept: Kept[U, R]
) -> Generator[tuple[U, R, bytes], None, None]:
    held: deque[U] = deque()

    def sent() -> Iterator[tuple[Any, ...]]:
        for index, part in enumerate(parts):
            held.append(part)
            known = kept.checkpoint.get(index, schema=kept.schema)
            yield (index, part) if known is None else (index,)

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
            untouched = kept.untouched(index, part)
            if untouched is not None:
                yield part, untouched, b""
                continue
            here = _here(part)
            digest = kept.digest(here)
            known = kept.of(index, here, digest, kept.named(index, part))
            yield part, kept.keep(index, work(here), digest) if known is None else known, digest


class RunningSums:
    """A dataclass of numbers, lists, Counters and other such sums, added up field by field."""

    __slots__ = ()

    def merge(self, other: Self) -> None:
        """Add those of another part; `other` is left unchanged."""
        for name in (item.name for item in fields(self)):  # type: ignore[arg-type]
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            elif hasattr(mine, "merge"):
                mine.merge(theirs)
            else:
                setattr(self, name, mine + theirs)

    def state(self) -> dict[str, Any]:
        """Numbers, lists and counts, ready for JSON; `from_state` makes them anew."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in found.items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The sums that `state` gave, also after a way through JSON, which makes keys text."""
        return cls(**{name: Counter(v) if isinstance(v, Mapping) else v for name, v in state.items()})


#: How results are made, of one kind or of several, as plain dictionaries.
ProvenanceFacts: TypeAlias = dict[str, Any] | list[dict[str, Any]]
#: A block behind the number of its first row.
_Part: TypeAlias = tuple[int, pa.RecordBatch]

#: What a block takes in memory, about. Part of what makes a run's output, so it depends on the columns alone.
_BLOCK_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class WorkedBlock(Generic[S]):
    """Result columns of a block, the totals of its rows, and the device; None if another run has done it."""

    result: pa.RecordBatch
    summary: S
    device: str | None = None


class Remade:
    """A dataclass of which the fields alone are pickled: what is made of them is made where it is needed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


class RowWork(Remade, ABC, Generic[S]):
    """What is done with every block; subclasses are dataclasses."""

    @abstractmethod
    def result(self, columns: list[pa.Array]) -> tuple[pa.RecordBatch, str | None]:
        """Result columns of the columns worked on, and the device that made them, if there is a choice."""

    @abstractmethod
    def summary(self, columns: list[pa.Array], result: pa.RecordBatch) -> S:
        """The totals of a block."""

    @abstractmethod
    def facts(self, summary: S) -> dict[str, Any]:
        """What the summary file tells of the totals of a whole run."""

    def __call__(self, rows: pa.RecordBatch) -> WorkedBlock[S]:
        """Work on a block."""
        result, device = self.result(rows.columns)
        return WorkedBlock(result, self.summary(rows.columns, result), device)

    def restored(self, rows: pa.RecordBatch, result: pa.RecordBatch) -> WorkedBlock[S]:
        """A block that another run has worked on, from its rows and their result columns."""
        return WorkedBlock(result, self.summary(rows.columns, result))


def asked_where_done(executor: Executor, question: Callable[[U], R], work: U) -> R:
    """What a question to the work gives where it will be done: this machine may have other devices."""
    if not executor.elsewhere:
        return question(work)
    with closing(executor.map(question, [work])) as answers:
        return next(answers)


class WrittenRows(Protocol):
    """Makes the rows to write; called in several threads."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        ...

    @property
    def renamed(self) -> Mapping[str, str] | None:
        """Input columns that have the name of a result, with new names; None if they are not written."""
        ...

    @property
    def result(self) -> pa.Schema | None:
        """Columns of a result, if they stand among the rows as they are."""
        ...

    def batch(self, first: int, block: pa.RecordBatch, result: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a block, whose first one is number `first`, from its result."""
        ...


def chosen_columns(schema: pa.Schema, names: Sequence[str] | None) -> pa.Schema:
    """Those columns of an output that are asked for, in that order; all where nothing is."""
    if names is None:
        return schema
    check_choice("columns", names, schema.names)
    return pa.schema([schema.field(name) for name in names])


class AddedColumns:
    """The columns of an input and behind them those of a result, row for row.

    Input columns that have the name of a result are given another one; `renamed` maps old names to new.
    `inputs` are the columns of the input that the rows are made of.

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
        self.result: pa.Schema | None = added
        self.inputs: Sequence[str] = given.names

    def only(self, names: Sequence[str] | None) -> Self:
        """The same with those columns alone that are given, in that order."""
        if names is not None:
            self.schema = chosen_columns(self.schema, names)
            self.inputs = [name for name in self.inputs if self.renamed.get(name, name) in names]
            self.renamed = {name: new for name, new in self.renamed.items() if new in names}
            if self.result is not None and not {*self.result.names} <= {*names}:
                self.result = None
        return self

    def columns(self, first: int, block: pa.RecordBatch, result: pa.RecordBatch) -> dict[str, pa.Array]:
        """What columns of a block can be made of, by name."""
        given = zip(block.schema.names, block.columns, strict=True)
        found = {self.renamed.get(name, name): column for name, column in given}
        return found | dict(zip(result.schema.names, result.columns, strict=True))

    def batch(self, first: int, block: pa.RecordBatch, result: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a block, whose first one is number `first`, with their results."""
        found = self.columns(first, block, result)
        return pa.record_batch([found[name] for name in self.schema.names], schema=self.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRun(Generic[S]):
    """A run over tables: what is read, what is done with it, and what is written.

    `columns` of the blocks of `reader`, whose files are the `inputs` as given, go to `work`, and its results
    through `rows` to `output`; `summary` takes their totals. `metadata` is what the table tells beside the
    provenance, `key` what must be equal besides for a run to be resumed. At most `most` blocks are worked on
    at a time in this process. `parts` says how a folder of parts is cut.
    """

    reader: RearrangementReader
    inputs: Sequence[str | os.PathLike[str]]
    columns: Sequence[str]
    work: RowWork[S]
    provenance: ProvenanceFacts
    rows: WrittenRows
    summary: S
    output: str | os.PathLike[str]
    most: int
    metadata: Mapping[str, object] = field(default_factory=dict)
    key: Mapping[str, object] = field(default_factory=dict)
    parts: PartSettings = ONE_FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun(Generic[S]):
    """A run that has ended: the table `output` of the `rows` of its inputs, and JSON with its totals.

    Both are text where the output is a folder of parts, which has the JSON in it.

    `facts` is what stands in `summary_path`, `summary` the totals. `renamed` maps input columns that had the
    name of a result column to their new names; `blank_lines` were in text inputs; `resumed_blocks` come from
    the run that was stopped.
    """

    output: Path | str
    summary_path: Path | str
    rows: int
    summary: S
    facts: Mapping[str, Any]
    renamed: Mapping[str, str]
    blank_lines: int
    resumed_blocks: int

    @property
    def remarks(self) -> Any:
        """What is to be said of the table as a whole, as it stands in the summary."""
        return self.facts["remarks"]


def metadata_of(told: Mapping[str, object]) -> dict[str, str]:
    """What a table tells of itself, as its metadata."""
    return {f"plait.{name}": json.dumps(value, sort_keys=True) for name, value in told.items()}


@contextmanager
def kept_table(
    output: str | os.PathLike[str],
    schema: pa.Schema,
    work: Callable[[Checkpoint, TableWriter], Generator[R, None, None]],
    *,
    told: Mapping[str, object],
    key: Mapping[str, object],
    inputs: Sequence[str | os.PathLike[str]] = (),
    resume: bool,
) -> Generator[tuple[TableWriter, Generator[R, None, None], Checkpoint], None, None]:
    """A table to write, what comes of `work`, made ahead, and ``OUTPUT.checkpoint``, which keeps it.

    `told` goes into the metadata of the table; a run with another `key` cannot be resumed. The caller removes
    the checkpoint.
    """
    with open_table(output, schema, metadata=metadata_of(told), inputs=inputs) as table:
        checkpoint = Checkpoint(beside(output, ".checkpoint"), key=key, resume=resume)
        # Closed before what is read and the table are, whatever happens: other threads work on both.
        with kept_if_useful(checkpoint), closing(read_ahead(work(checkpoint, table))) as results:
            yield table, results, checkpoint


def run_rows(
    run: RowRun[S], executor: Executor, *, resume: bool, progress: Callable[[Progress], None] | None
) -> FinishedRun[S]:
    """Work on all rows and write one table, beside it ``OUTPUT.summary.json``.

    A folder of parts is written where the work is done, see `plait.run.datasets`. With `resume` it goes on
    with what ``OUTPUT.checkpoint`` holds. `progress` is called after every block or part. InvalidInput if the
    output cannot be, or a run to resume differs; FormatError if an input is not what it should be, or the
    disk is full.
    """
    if is_dataset(run.output):
        from plait.run.datasets import run_parts

        return run_parts(run, executor, resume=resume, progress=progress)
    reader, rows = run.reader, 0
    devices: set[str] = set()
    told = {"provenance": run.provenance, **run.metadata}

    def work(checkpoint: Checkpoint, table: TableWriter) -> Generator[_Done[S], None, None]:
        return _worked_blocks(run, checkpoint, executor, table)

    check_one_file(run.output, run.parts)
    with kept_table(
        run.output, run.rows.schema, work, told=told, key=key_of(run), inputs=run.inputs, resume=resume
    ) as (table, results, checkpoint):
        resumed = len(checkpoint.blocks())
        for given, ready, found in results:
            run.summary.merge(found.summary)
            devices |= {found.device} if found.device else set()
            rows += given
            table.write(ready)
            if progress is not None:
                progress(Progress(rows, reader.bytes_read(), reader.total_bytes))
    facts = facts_of(run, devices)
    summary_path = Path(f"{os.fspath(run.output)}.summary.json")
    write_json(summary_path, facts)
    checkpoint.remove()
    return FinishedRun(
        output=Path(run.output),
        summary_path=summary_path,
        rows=rows,
        summary=run.summary,
        facts=facts,
        renamed=run.rows.renamed or {},
        blank_lines=reader.blank_lines,
        resumed_blocks=resumed,
    )


def facts_of(run: RowRun[Any], devices: set[str]) -> dict[str, Any]:
    """What the summary of a run tells, in the end."""
    return {
        "inputs": [path for path, _, _ in run.reader.identities],
        "blank_lines": run.reader.blank_lines,
        "provenance": _with_devices(run.provenance, devices),
        **({} if run.rows.renamed is None else {"renamed_columns": run.rows.renamed}),
        **run.work.facts(run.summary),
    }


#: What is written and result of a block; and both behind its number of rows.
_Ready: TypeAlias = tuple[ReadyRows, WorkedBlock[S]]
_Done: TypeAlias = tuple[int, ReadyRows, WorkedBlock[S]]


def _worked_blocks(
    run: RowRun[S], checkpoint: Checkpoint, executor: Executor, table: TableWriter
) -> Generator[_Done[S], None, None]:
    """Every block, in order; in this process, several threads make what is written."""
    if executor.elsewhere:
        yield from _worked_elsewhere(run, checkpoint, executor)
        return
    reader, columns, work = run.reader, run.columns, run.work

    def written(part: _Part, found: WorkedBlock[S]) -> _Ready[S]:
        return table.encoded(run.rows.batch(*part, found.result)), found

    def stored(found: _Ready[S]) -> pa.RecordBatch | EncodedRows:
        ready, worked = found
        return ready if run.rows.result and isinstance(ready, EncodedRows) else worked.result

    kept: Kept[_Part, _Ready[S]] = Kept(
        checkpoint=checkpoint,
        digest=lambda part: digest_of(part[1].select(columns)),
        stored=stored,
        restored=lambda part, rows: written(part, work.restored(part[1].select(columns), rows)),
        named=lambda index, part: reader.named(part[0], part[1].num_rows),
        size=lambda part: part[1].nbytes,
        schema=run.rows.result,
    )

    def done(part: _Part) -> _Ready[S]:
        return written(part, work(part[1].select(columns)))

    with closing(kept_results(executor, done, reader.numbered(), kept, most=run.most)) as results:
        for (_, block), (ready, found), _ in results:
            yield block.num_rows, ready, found


def _worked_elsewhere(
    run: RowRun[S], checkpoint: Checkpoint, executor: Executor
) -> Generator[_Done[S], None, None]:
    """Workers work: they read Parquet by themselves, text is sent to them. This process reads and writes."""
    reader = run.reader
    held: deque[_Part] = deque()
    ranges = reader.ranges(run.columns)
    blocks = reader.numbered() if ranges is not None else iter(held.popleft, None)
    starts: list[int] = []

    def sent() -> Iterator[pa.RecordBatch]:
        for first, block in reader.numbered():
            held.append((first, block))
            starts.append(first)
            yield block.select(run.columns)

    def named(index: int, part: pa.RecordBatch | RowRange) -> str:
        return part.name if isinstance(part, RowRange) else reader.named(starts[index], part.num_rows)

    kept = Kept(
        checkpoint=checkpoint,
        digest=digest_of,
        stored=_result,
        restored=run.work.restored,
        named=named,
        size=lambda part: 0 if isinstance(part, RowRange) else part.nbytes,
        schema=run.rows.result,
    )
    with closing(kept_results(executor, run.work, ranges or sent(), kept)) as results:
        # The result first: by then its block of text has been read.
        for (part, found, digest), (first, block) in zip(results, blocks, strict=False):
            if isinstance(part, RowRange):
                _check_same_rows(part, block.select(run.columns), digest)
            yield block.num_rows, run.rows.batch(first, block, found.result), found


def _result(found: WorkedBlock[Any]) -> pa.RecordBatch:
    return found.result


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


def key_of(run: RowRun[Any]) -> dict[str, object]:
    """What must be equal for a run to be resumed: inputs, how results are made, what else decides them."""
    reader = run.reader
    return {
        "provenance": run.provenance,
        "sources": package_digest(),
        "layout": reader.layout.name,
        "inputs": [list(identity) for identity in reader.identities],
        "block_rows": reader.block_rows,
        "columns": run.rows.schema.names,
        **run.key,
    }


def _with_devices(provenance: ProvenanceFacts, devices: set[str]) -> ProvenanceFacts:
    """The provenance with what blocks were worked on, if any of them tells."""
    if not isinstance(provenance, dict):
        return [{**made, "device": used_devices(devices) or made["device"]} for made in provenance]
    return {**provenance, "device": used_devices(devices) or provenance["device"]}


def rows_per_block(row_bytes: int, fewest: int, most: int) -> int:
    """Rows of a block, `fewest` to `most`, so that it takes about the same memory whatever the columns.

    `row_bytes` is what a row takes with its results.
    """
    return max(fewest, min(most, _BLOCK_BYTES // max(row_bytes, 1)))
