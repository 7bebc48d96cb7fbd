"""Rows put aside on disk, brought into order in bounded memory and combined, and hash values of texts.

Hash values are equal on every machine and in every process.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as arrow_ipc
from numpy.typing import NDArray

from plait.errors import FormatError, PlaitError, Unsupported, whole
from plait.formats.atomic import AtomicFile, WholeOrNot, output_errors
from plait.formats.checkpoints import Checkpoint, letters_of

Direction = Literal["ascending", "descending"]

#: Runs that are merged at a time; one block of each is in memory then.
_FAN: Final = 16
#: Rows of a block on disk, be they as large as they may.
_FEWEST_ROWS: Final = 8
#: Rows that shrink to this share when they are combined stay in memory.
_KEPT_SHARE: Final = 0.5


class SpilledBlocks(WholeOrNot):
    """Blocks of rows on disk, each read back once.

    The folder is its own, made here; as a context manager it removes the folder in the end, whatever
    happened. What a run that was killed has left there is replaced. InvalidInput if it holds something else,
    FormatError if it cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._checkpoint = Checkpoint(folder, key={"content": "rows put aside"}, resume=False)
        self._next = 0

    def put(self, block: pa.RecordBatch) -> int:
        """Put a block aside; returns its number."""
        number = self._next
        self._checkpoint.put(number, block)
        self._next += 1
        return number

    def take(self, number: int) -> pa.RecordBatch:
        """Read back, and remove, the block that `put` gave this number.

        FormatError if it has been damaged on disk.
        """
        block = self._checkpoint.get(number)
        if block is None:
            raise FormatError(
                self._checkpoint.directory,
                found=f"block {number} missing or damaged",
                expected="the rows that this run has put aside",
                hint="something else changed the folder, or the disk is failing; run again",
            )
        self._checkpoint.drop(number)
        return block

    def file(self, number: int) -> Path:
        """Where another process may write block `number`, in its own way; it is removed with the folder."""
        return self._checkpoint.path_of(number).absolute()

    def close(self) -> None:
        """Remove the folder."""
        self._checkpoint.remove()

    def discard(self) -> None:
        """Remove the folder, if that is possible: what went wrong first is what the user has to know."""
        with suppress(PlaitError, OSError):
            self.close()


class Spilling(WholeOrNot):
    """Something that puts rows aside; as a context manager it removes them in the end.

    The folder is as for `SpilledBlocks`.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._blocks = SpilledBlocks(folder)

    def close(self) -> None:
        """Remove the folder."""
        self._blocks.close()

    def discard(self) -> None:
        """Remove the folder, if that is possible."""
        self._blocks.discard()


class SortedRuns:
    """Brings rows into order in bounded memory, and combines equal ones if asked to.

    Rows wait in memory until they take `memory_bytes` (while they are sorted, about four times as much); then
    they are sorted, combined and put aside as a run. Sixteen runs become one as soon as there are so many, so
    that memory grows with the logarithm of the rows.

    `order`, also an attribute, has the columns to sort by, most important first, none with nulls; only
    numbers can be descending. `combine` takes rows in order and makes one of those equal in these columns,
    leaving the order and the columns as they are; it must not matter in which portions rows are combined.
    InvalidInput if `memory_bytes` is less than 1.
    """

    def __init__(
        self,
        blocks: SpilledBlocks,
        order: Mapping[str, Direction],
        *,
        memory_bytes: int,
        combine: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
    ) -> None:
        whole("memory_bytes", memory_bytes, 1)
        self._blocks = blocks
        self.order = dict(order)
        self._memory_bytes = memory_bytes
        self._combine = combine or (lambda rows: rows)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        # Runs of each level hold about 16 times as many rows as those of the level before.
        self._levels: list[list[list[int]]] = [[]]

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows; all must have the same columns.

        FormatError if they cannot be put aside, for example on a full disk.
        """
        if rows.num_rows == 0:
            return
        self._waiting.append(rows)
        self._waiting_bytes += rows.nbytes
        if self._waiting_bytes < self._memory_bytes:
            return
        block = self._collected()
        if block.nbytes < _KEPT_SHARE * self._memory_bytes:
            self._waiting, self._waiting_bytes = [block], block.nbytes
        else:
            self._store(block)

    def drain(self) -> Iterator[pa.RecordBatch]:
        """All rows in order, equal ones in one batch, no batch empty; afterwards there are none left.

        FormatError if what was put aside has been damaged, or the disk is full.
        """
        if not any(self._levels):
            if self._waiting:
                yield self._collected()
            return
        if self._waiting:
            self._store(self._collected())
        runs = [run for level in self._levels for run in level]
        self._levels = [[]]
        while len(runs) > _FAN:
            runs = [*runs[_FAN:], self._written(self._merged(runs[:_FAN]))]
        yield from self._merged(runs)

    def _collected(self) -> pa.RecordBatch:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return self._ordered(waiting)

    def _ordered(self, parts: list[pa.RecordBatch]) -> pa.RecordBatch:
        rows = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
        keys = [(name, direction) for name, direction in self.order.items()]
        return self._combine(rows.take(pc.sort_indices(rows, sort_keys=keys)))

    def _store(self, block: pa.RecordBatch) -> None:
        """Put a run aside, and merge runs where there are sixteen of a level."""
        self._levels[0].append(self._written(iter([block])))
        level = 0
        while len(self._levels[level]) >= _FAN:
            if level + 1 == len(self._levels):
                self._levels.append([])
            runs, self._levels[level] = self._levels[level], []
            self._levels[level + 1].append(self._written(self._merged(runs)))
            level += 1

    def _written(self, rows: Iterator[pa.RecordBatch]) -> list[int]:
        numbers = []
        for batch in rows:
            fitting = max(_FEWEST_ROWS, self._memory_bytes // _FAN * batch.num_rows // batch.nbytes)
            for start in range(0, batch.num_rows, fitting):
                numbers.append(self._blocks.put(batch.slice(start, fitting)))
        return numbers

    def _merged(self, runs: list[list[int]]) -> Iterator[pa.RecordBatch]:
        """Rows of several runs in order."""
        readers = [_RunReader(self._blocks, run, self.order) for run in runs]
        while readers:
            # What comes after the last row at hand of a run is not known: only rows up to there can go.
            known = [reader.last for reader in readers if reader.more]
            until = min(known) if known else None
            parts = [part for reader in readers for part in reader.take(until)]
            yield self._ordered(parts)
            readers = [reader for reader in readers if reader.rows is not None]


def run_starts(rows: pa.RecordBatch, names: Iterable[str]) -> NDArray[np.int64]:
    """Index of the first row of each run of rows that are equal in some columns, which have no nulls.

    The rows are in order, equal ones together.
    """
    new = np.ones(rows.num_rows, np.bool_)
    if rows.num_rows > 1:
        new[1:] = False
        for name in names:
            column = rows[name]
            new[1:] |= np.asarray(pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)))
    return np.flatnonzero(new)


def whole_runs(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Cut a stream of rows anew so that each batch has one or more whole runs of rows equal in some columns.

    Rows are in order, equal ones together, no batch is empty, and the columns have no nulls. Unsupported if
    the rows of a run have 2 GiB of text in one column.
    """
    held: list[pa.RecordBatch] = []
    for batch in batches:
        starts = run_starts(batch, names)
        last = int(starts[-1])
        if last == 0 and held and all(held[-1][name][-1].equals(batch[name][0]) for name in names):
            held.append(batch)
            continue
        done = [*held, batch.slice(0, last)] if last else held
        if done:
            yield _joined(done, names)
        held = [batch.slice(last)]
    if held:
        yield _joined(held, names)


def _joined(parts: list[pa.RecordBatch], names: Sequence[str]) -> pa.RecordBatch:
    try:
        return pa.concat_batches(parts)
    except pa.ArrowInvalid as error:
        raise Unsupported(
            f"2 GiB of rows with the same {', '.join(names)}", why="they must fit one Arrow array"
        ) from error


class _RunReader:
    """The rows of a run, one block of it in memory."""

    def __init__(self, blocks: SpilledBlocks, run: list[int], order: Mapping[str, Direction]) -> None:
        self._blocks = blocks
        self._numbers = iter(run)
        self._left = len(run)
        self._order = order
        self.rows: pa.RecordBatch | None = None
        self._advance()

    @property
    def more(self) -> bool:
        """Whether there are blocks after the one in memory."""
        return self._left > 0

    @property
    def last(self) -> tuple[Any, ...]:
        """Key of the last row in memory."""
        assert self.rows is not None
        return row_key(self.rows, self.rows.num_rows - 1, self._order)

    def take(self, until: tuple[Any, ...] | None) -> Iterator[pa.RecordBatch]:
        """Rows whose keys are not above `until`; all that are in memory where it is None."""
        while self.rows is not None:
            rows = self.rows
            end = rows.num_rows
            if until is not None:
                end = bisect_right(range(end), until, key=lambda i: row_key(rows, i, self._order))
            if end == rows.num_rows:
                yield rows
                self._advance()
                continue
            if end:
                yield rows.slice(0, end)
                self.rows = rows.slice(end)
            return

    def _advance(self) -> None:
        number = next(self._numbers, None)
        self.rows = None if number is None else self._blocks.take(number)
        self._left -= number is not None


def row_key(rows: pa.RecordBatch, i: int, order: Mapping[str, Direction]) -> tuple[Any, ...]:
    """What compares as row `i` does in an `order` as of `SortedRuns`."""
    values = ((rows[name][i].as_py(), direction) for name, direction in order.items())
    return tuple(value if direction == "ascending" else -value for value, direction in values)


def deal_rows(path: Path, rows: pa.Table, part: NDArray[np.int64], parts: int) -> None:
    """Write rows to a piece: an Arrow file whose block i has the rows of part i, in their order.

    `part` is that of each row. FormatError if it cannot be written.
    """
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=parts))
    table = rows.take(pa.array(order)).combine_chunks()
    with arrow_file(path, rows.schema) as writer:
        start = 0
        for end in ends.tolist():
            batches = table.slice(start, end - start).to_batches()
            writer.write_batch(batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema))
            start = end


@contextmanager
def arrow_file(path: Path, schema: pa.Schema) -> Iterator[Any]:
    """Write an Arrow file that is put aside, whole or not at all."""
    options = arrow_ipc.IpcWriteOptions(compression="lz4")
    with (
        AtomicFile(path, durable=False) as file,
        output_errors(path),
        arrow_ipc.new_file(file.stream, schema, options=options) as writer,
    ):
        yield writer


def dealt_rows(pieces: Iterable[Path], part: int) -> Iterator[pa.RecordBatch]:
    """All rows of a part, from the pieces in order; FormatError if one is damaged."""
    for path in pieces:
        with arrow_blocks(path) as block:
            yield block(part)


@contextmanager
def arrow_blocks(path: Path) -> Iterator[Callable[[int], pa.RecordBatch]]:
    """Read blocks of an Arrow file that was put aside, by their numbers; FormatError if it is damaged."""
    try:
        with pa.OSFile(str(path)) as source, arrow_ipc.open_file(source) as reader:
            yield reader.get_batch
    except (pa.ArrowException, OSError) as error:
        raise FormatError(
            path,
            found=f"a damaged or unreadable piece ({error})",
            expected="the rows that this run has put aside",
            hint="something else changed the folder, or the disk is failing; run again without --resume",
        ) from error


#: Texts hashed at a time: some ten bytes are needed for every letter of them.
_SLICE = 1 << 15
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def text_hash(column: pa.Array) -> NDArray[np.uint64]:
    """Hash values of texts, to deal them out evenly; not against those who want them to collide.

    A polynomial of the bytes modulo 2^64, its bits mixed, (n,); null is the same as empty. The column is
    large_string.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from plait.formats.sorted_runs import text_hash
    >>> values = text_hash(pa.array(["TGT", "", "TGT"], pa.large_string()))
    >>> bool(values[0] == values[2]), bool(values[0] == values[1])
    (True, False)
    """
    parts = [_hashed(column.slice(start, _SLICE)) for start in range(0, len(column), _SLICE)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


#: Of the columns beside the first one.
_FACTORS: Final = (np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F))


def row_hash(columns: Sequence[pa.Array], seed: int = 0) -> NDArray[np.uint64]:
    """Hash values of rows of three texts, by `seed`, in an order that has nothing to do with what they are.

    The first column is large_string; the others, with few distinct texts, are so, too.
    """
    found = text_hash(columns[0]) + np.uint64(seed) * _FACTORS[1]
    for column, factor in zip(columns[1:], _FACTORS, strict=True):
        encoded = column.dictionary_encode()
        found += factor * text_hash(encoded.dictionary)[np.asarray(encoded.indices)]
    found ^= found >> np.uint64(29)
    found *= _FACTORS[0]
    found ^= found >> np.uint64(32)
    return found


def _hashed(texts: pa.Array) -> NDArray[np.uint64]:
    letters, starts = letters_of(texts)
    lengths = np.diff(starts)
    found = np.zeros(len(texts), np.uint64)
    if letters.size:
        place = np.arange(letters.size) - np.repeat(starts[:-1], lengths)
        powers = np.cumprod(np.full(int(lengths.max()) + 1, _FACTOR))
        terms = (letters.astype(np.uint64) + np.uint64(1)) * powers[place]
        filled = lengths > 0
        found[filled] = np.add.reduceat(terms, starts[:-1][filled])
    found ^= found >> np.uint64(30)
    found *= _MIX[0]
    found ^= found >> np.uint64(27)
    found *= _MIX[1]
    found ^= found >> np.uint64(31)
    return found
