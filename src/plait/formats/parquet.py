"""Read Parquet in bounded memory.

A module of its own, because it is about what files claim of themselves, whatever their tables hold.
"""

from __future__ import annotations

import io
import json
import os
from collections import deque
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import FormatError
from plait.formats.files import address_of, open_bytes, status_of
from plait.formats.row_groups import LIST, NUMBERS, SET, STRUCT, end_of, field_at, number_at
from plait.settings import thread_count

# Loaded where a file of the kind is opened: tables of text need none of it.
if TYPE_CHECKING:
    import pyarrow.parquet as arrow_parquet

_WINDOW: Final = 1 << 12
_LONGEST_HEADER: Final = 1 << 24
_DEEPEST: Final = 8
_DICTIONARY_PAGE: Final = 2


#: Bytes that values of a dictionary may take in a row group without a look at which of them is longest.
_SMALL: Final = 4 << 20


class RowGroupWidths:
    """How much memory rows of a row group may take, whatever its footer says.

    `row` is bytes of a row where rows are the longest (with lists, on average); `pages` those of the largest
    pages of all `columns` together; None stands for all of the file. pyarrow.ArrowInvalid if there is no page
    where one should be.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        file: arrow_parquet.ParquetFile,
        number: int,
        columns: list[str] | None,
    ) -> None:
        self._path = path
        self._facts = file.metadata
        self._number = number
        self.row, self.pages = 0.0, 0
        group = file.metadata.row_group(number)
        leaves = [file.schema.column(place) for place in range(group.num_columns)]
        wanted = {leaf.path.split(".")[0] for leaf in leaves} if columns is None else {*columns}
        places = [place for place, leaf in enumerate(leaves) if leaf.path.split(".")[0] in wanted]
        # Where Arrow opens columns it says what is wrong with one; where it only describes them, it aborts.
        for _ in file.reader.iter_batches(0, row_groups=[number], column_indices=places, use_threads=False):
            break
        with open_bytes(path) as stream:
            for place in places:
                chunk, leaf = group.column(place), leaves[place]
                offsets = (chunk.dictionary_page_offset, chunk.data_page_offset)
                start = min((at for at in offsets if at), default=0)
                # Headers of small columns are read at once: with every read other threads take Python.
                size, held = chunk.total_compressed_size, stream
                if 0 < size <= _SMALL:
                    stream.seek(start)
                    held = io.BytesIO(stream.read(size))
                try:
                    found = list(_pages(held, start, chunk.num_values, 0 if held is stream else start))
                except ValueError as error:
                    raise pa.ArrowInvalid(f"column {leaf.path!r}: {error}") from error
                self._add(leaf, found, group.num_rows)

    def _add(self, leaf: Any, pages: list[_Page], rows: int) -> None:
        dictionary = next((page for page in pages if page.is_dictionary), None)
        longest = 0 if dictionary is None else self._longest(leaf, dictionary, rows)
        data = [page for page in pages if not page.is_dictionary]
        if leaf.max_repetition_level:
            self.row += sum(max(page.size, page.values * longest) for page in data) / rows
        else:
            self.row += max((max(page.size / max(page.values, 1), longest) for page in data), default=0)
        self.pages += max((page.size for page in data), default=0) + (dictionary.size if dictionary else 0)

    def _longest(self, leaf: Any, dictionary: _Page, rows: int) -> int:
        """Bytes of the longest value of a dictionary."""
        if leaf.physical_type != "BYTE_ARRAY":
            return dictionary.size // max(dictionary.values, 1)
        if rows * dictionary.size <= _SMALL:
            return dictionary.size
        import pyarrow.parquet as arrow_parquet

        with (
            open_bytes(self._path) as stream,
            arrow_parquet.ParquetFile(
                stream, metadata=self._facts, read_dictionary=[leaf.path], pre_buffer=False
            ) as file,
        ):
            values = next(file.iter_batches(1, [self._number], [leaf.path])).column(0)
        while not pa.types.is_dictionary(values.type):
            values = values.field(0) if pa.types.is_struct(values.type) else values.values
        if len(values.dictionary) < dictionary.values:
            # The first page has its values within itself, and the dictionary was not read.
            return dictionary.size
        return int(pc.max(pc.binary_length(values.dictionary)).as_py() or 0)


class _Page(NamedTuple):
    """A page: bytes when decompressed, number of values, and whether others refer to these."""

    size: int
    values: int
    is_dictionary: bool


def _pages(file: BinaryIO, start: int, values: int, first: int) -> Iterator[_Page]:
    """The pages of a column chunk with so many values, from where the first one is.

    `file` are the bytes of a file from place `first` on.
    """
    while values > 0:
        header, length = _header(file, start, first)
        kind: dict[int, Any] = next((header[k] for k in (5, 7, 8) if isinstance(header.get(k), dict)), {})
        numbers: list[Any] = [header.get(2), header.get(3), kind.get(1)]
        if not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers):
            raise ValueError(f"no page at byte {start:,}")
        size, packed, count = numbers
        is_dictionary = header.get(1) == _DICTIONARY_PAGE
        yield _Page(size, count, is_dictionary)
        if not is_dictionary:
            values -= count
        start += length + packed


def _header(file: BinaryIO, start: int, first: int) -> tuple[dict[int, Any], int]:
    """Fields of the header at a place, and its length."""
    window = _WINDOW
    while True:
        file.seek(start - first)
        text = file.read(window)
        try:
            return _struct(text, 0, 0)
        except IndexError:
            # Headers may hold statistics as long as values.
            if len(text) < window or window >= _LONGEST_HEADER:
                raise ValueError(f"no page at byte {start:,}") from None
            window *= 16


def _struct(text: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """Numbers and structs that a struct holds, and where it ends."""
    if depth > _DEEPEST:
        raise ValueError("a page header that is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    while text[at]:
        number, kind, at = field_at(text, at, number)
        if kind in (LIST, SET):
            raise ValueError("a page header with a list")
        if kind == STRUCT:
            fields[number], at = _struct(text, at, depth + 1)
            continue
        if kind in NUMBERS:
            encoded = number_at(text, at)
            fields[number] = encoded >> 1 ^ -(encoded & 1)
        at = end_of(text, at, kind)
    return fields, at + 1


_COLUMN_BUFFER_BYTES = 1 << 20
_BATCH_ROWS = 1 << 14
#: Bytes of a batch, at most.
_BATCH_BYTES = 16 << 20
#: Bytes of pages, one of each column, that Arrow decompresses as a whole.
_MOST_PAGES = 384 << 20


#: Metadata of a file of a partitioned dataset.
PARTITION: Final = b"plait.partition"


class PartitionColumn(NamedTuple):
    """The column that the files of a partitioned dataset lack: its name, its place, and its only value."""

    name: str
    place: int
    value: str | None

    @classmethod
    def of(cls, metadata: Mapping[bytes, bytes] | None) -> PartitionColumn | None:
        """That of a file with such metadata; None if it lacks none."""
        try:
            told = json.loads((metadata or {})[PARTITION])
            name, place, value = told["name"], told["place"], told["value"]
        except (KeyError, ValueError, TypeError, RecursionError):
            return None
        known = isinstance(name, str) and type(place) is int and isinstance(value, str | None)
        return cls(name, place, value) if known else None

    def added(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows with the column."""
        values = pa.repeat(pa.scalar(self.value, pa.string()), batch.num_rows)
        place = max(0, min(self.place, batch.num_columns))
        return batch.add_column(place, pa.field(self.name, pa.string()), values)


#: Bytes of a row group that is read whole, ahead of its turn, and how many are at a time.
_GROUP_BYTES = 32 << 20
_MOST_GROUPS = 8


class _Group(NamedTuple):
    """A row group: its number, that of its first row, and how many rows it has."""

    number: int
    first: int
    rows: int


def _groups(facts: arrow_parquet.FileMetaData) -> Iterator[_Group]:
    """Row groups that have rows."""
    first = 0
    for number in range(facts.num_row_groups):
        rows = facts.row_group(number).num_rows
        if rows:
            yield _Group(number, first, rows)
        first += rows


class ParquetInput:
    """One Parquet file, also of a store, and also one of a partitioned dataset: it has the column, too.

    Columns keep their types, save that dictionary columns become plain ones: a dictionary is a way of
    storing, and it differs from file to file. `bytes_read` is the share of the file read in the iteration
    under way, by rows, in bytes; `blank_lines` is always 0, there for all kinds of file to be read alike.
    FormatError if the file is damaged or has two columns of one name.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.bytes_read = 0
        self.blank_lines = 0
        with self._open() as file:
            stored, facts = file.schema_arrow, file.metadata
            counts = [facts.row_group(number).num_rows for number in range(facts.num_row_groups)]
            if facts.num_rows != sum(counts) or min(counts, default=0) < 0:
                raise self._miscounted(f"{sum(counts):,} rows in its row groups", facts.num_rows)
        repeated = sorted({name for name in stored.names if stored.names.count(name) > 1})
        if repeated:
            found = f"column name {', '.join(map(repr, repeated))} more than once"
            raise FormatError(self.path, found=found, expected="every column name once")
        self.schema = pa.schema([pa.field(field.name, _plain_type(field.type)) for field in stored])
        lacking = PartitionColumn.of(stored.metadata)
        self._partition = None if lacking is None or lacking.name in stored.names else lacking
        if self._partition is not None:
            none = pa.RecordBatch.from_pylist([], self.schema)
            self.schema = self._partition.added(none).schema

    def batches(self, max_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, at most `max_rows` in a batch, with those `columns` of `schema` that are given.

        FormatError if the file is damaged.
        """
        self.bytes_read = 0
        with self._open() as file:
            size, facts = status_of(self.path).st_size, file.metadata
            stored_names = None if columns is None else self._stored(file, columns)
        with closing(self._ahead(facts, max_rows, stored_names)) as found:
            for first, stored in found:
                self.bytes_read = size * (first + stored.num_rows) // facts.num_rows
                batch = stored if self._partition is None else self._partition.added(stored)
                yield batch.cast(pa.schema([self.schema.field(name) for name in batch.schema.names]))
        self.bytes_read = size

    @staticmethod
    def _stored(file: arrow_parquet.ParquetFile, columns: Collection[str]) -> list[str]:
        """Those of the columns that stand in the file; of rows without any, there would be no number."""
        stored = file.schema_arrow.names
        return [name for name in stored if name in columns] or stored[:1]

    def _ahead(
        self, facts: arrow_parquet.FileMetaData, most: int, columns: list[str] | None
    ) -> Generator[tuple[int, pa.RecordBatch], None, None]:
        """All batches, each behind the number of its first row; threads read row groups that are small."""
        threads = min(thread_count(), _MOST_GROUPS)
        waiting: deque[tuple[_Group, Future[list[tuple[int, pa.RecordBatch]] | None]]] = deque()
        groups = _groups(facts)
        pool = ThreadPoolExecutor(threads, thread_name_prefix="plait-parquet")
        try:
            while True:
                for group in islice(groups, threads - len(waiting)):
                    waiting.append((group, pool.submit(self._whole, facts, group, most, columns)))
                if not waiting:
                    return
                group, future = waiting.popleft()
                found = future.result()
                if found is not None:
                    yield from found
                    continue
                with self._open(facts) as file:
                    widths = RowGroupWidths(self.path, file, group.number, columns)
                    yield from self._group(file, group, widths, (group.first + group.rows, columns, most))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _whole(
        self, facts: arrow_parquet.FileMetaData, group: _Group, most: int, columns: list[str] | None
    ) -> list[tuple[int, pa.RecordBatch]] | None:
        """The batches of a row group; None if it is not small."""
        with self._open(facts) as file:
            widths = RowGroupWidths(self.path, file, group.number, columns)
            if widths.row * group.rows > _GROUP_BYTES:
                return None
            return list(self._group(file, group, widths, (group.first + group.rows, columns, most)))

    @property
    def constants(self) -> dict[str, str | None]:
        """Values of columns that are the same in all rows, as the folder of the file says it."""
        return {} if self._partition is None else {self._partition.name: self._partition.value}

    @property
    def row_count(self) -> int:
        """Number of rows, as the file says it; FormatError if the file is damaged."""
        with self._open() as file:
            return int(file.metadata.num_rows)

    def rows(self, first: int, end: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Rows `first` (from 0) to `end` (not included) of these columns, in their order.

        Row groups that hold none of them are passed over. FormatError if the file is damaged.
        """
        schema = pa.schema([self.schema.field(name) for name in columns])
        with self._open() as file:
            # Rows are decoded from the start of a row group; batches that end before the first are dropped.
            for before, batch in self._batches(file, (first, end), list(columns), _BATCH_ROWS):
                start, stop = max(first - before, 0), min(end - before, batch.num_rows)
                if start < stop:
                    yield batch.slice(start, stop - start).select(schema.names).cast(schema)

    def widest_row(self, columns: Collection[str]) -> int:
        """Bytes that columns of a row take where they take the most, on average over a row group.

        As the file says it; FormatError if it is damaged.
        """
        with self._open() as file:
            widest = 0
            for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
                chunks = (
                    chunk
                    for chunk in map(group.column, range(group.num_columns))
                    if {chunk.path_in_schema, chunk.path_in_schema.split(".")[0]} & {*columns}
                )
                size = sum(chunk.total_uncompressed_size for chunk in chunks)
                widest = max(widest, size // max(group.num_rows, 1))
            return widest

    def _batches(
        self, file: arrow_parquet.ParquetFile, wanted: tuple[int, int], columns: list[str], most: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of the row groups with some of the wanted rows, each behind the number of its first row."""
        partition = self._partition
        if partition is not None:
            partition = partition if partition.name in columns else None
            columns = self._stored(file, columns)
        for group in _groups(file.metadata):
            if group.first < wanted[1] and group.first + group.rows > wanted[0]:
                widths = RowGroupWidths(self.path, file, group.number, columns)
                for at, stored in self._group(file, group, widths, (wanted[1], columns, most)):
                    yield at, stored if partition is None else partition.added(stored)

    def _group(
        self,
        file: arrow_parquet.ParquetFile,
        group: _Group,
        widths: RowGroupWidths,
        wanted: tuple[int, list[str] | None, int],
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of a row group, as `wanted`: until a row of the file, columns, and most rows of one."""
        until, columns, most = wanted
        if widths.pages > _MOST_PAGES:
            raise FormatError(
                self.path,
                record=group.first,
                found=f"a row group with pages of {widths.pages:,} bytes together",
                expected=f"pages that take at most {_MOST_PAGES:,} bytes, one of each column",
                hint="write it again with smaller pages or row groups",
            )
        at, batch_rows = group.first, int(max(1, min(most, _BATCH_BYTES // max(widths.row, 1))))
        for batch in file.iter_batches(batch_rows, [group.number], columns):
            self._check_text(at, batch)
            yield at, batch
            at += batch.num_rows
            if at >= until:
                return
        if at < group.first + group.rows:
            found = f"{at - group.first:,} rows in row group {group.number}"
            raise self._miscounted(found, group.rows)

    def _miscounted(self, found: str, said: int) -> FormatError:
        return FormatError(
            self.path,
            found=f"{found}, where its footer says {said:,}",
            expected="a complete Parquet file",
            hint="copy or write the file again",
        )

    def _check_text(self, first: int, batch: pa.RecordBatch) -> None:
        """Refuse text that is not UTF-8, which nothing else in Arrow looks at."""
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            for row in range(batch.num_rows):
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    try:
                        # Of a slice of lists, all that they were cut from would be looked at.
                        pa.concat_arrays([column.slice(row, 1)]).validate(full=True)
                    except pa.ArrowInvalid:
                        raise FormatError(
                            self.path,
                            record=first + row,
                            column=name,
                            found=f"a damaged value ({error})",
                            expected="valid values, and text in UTF-8",
                            hint="write the file again",
                        ) from error
            raise

    @contextmanager
    def _open(self, facts: arrow_parquet.FileMetaData | None = None) -> Iterator[arrow_parquet.ParquetFile]:
        """The file; `facts` are what its footer says, where that is known."""
        import pyarrow.parquet as arrow_parquet

        try:
            # Without pre-buffering, and with a read buffer, a row group is not held whole in memory.
            # Arrow opens files of this machine itself: what reads through Python takes longer.
            remote = None if address_of(self.path) is None else open_bytes(self.path)
            with arrow_parquet.ParquetFile(
                remote or self.path,
                metadata=facts,
                pre_buffer=False,
                buffer_size=_COLUMN_BUFFER_BYTES,
                page_checksum_verification=True,
            ) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise FormatError(
                self.path,
                found=f"damaged or unreadable Parquet ({error})",
                expected="a complete Parquet file",
                hint="copy or write the file again",
            ) from error


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
