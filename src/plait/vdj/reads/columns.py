"""Tables as arrays: the base of all that has an array a column, and Arrow columns as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import FormatError, Unsupported


def letters_of(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of all rows of a column without nulls, not to be changed, and their (n + 1,) offsets."""
    if len(column) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    letters = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    return letters[ends[0] : ends[-1]], ends - ends[0]


#: Offsets of a column are 32-bit.
_MOST_LETTERS = 2**31 - 1


def check_letters(count: int) -> None:
    """Unsupported if a column of so many letters cannot be."""
    if count > _MOST_LETTERS:
        why = f"a column of a block holds {_MOST_LETTERS:,} at most"
        raise Unsupported(f"a block of {count:,} letters", why=why)


def text_array(
    letters: NDArray[np.uint8],
    starts: NDArray[Any],
    known: NDArray[np.bool_] | None = None,
    *,
    kind: pa.DataType | None = None,
) -> pa.Array:
    """A column over ASCII letters, which it keeps alive; null where not `known`. `starts` are (n + 1,).

    `kind` is ``pyarrow.string()``, the default, or ``pyarrow.binary()``.
    """
    check_letters(int(starts[-1] - starts[0]))
    flat = np.ascontiguousarray(letters[starts[0] : starts[-1]])
    offsets = np.ascontiguousarray(starts - starts[0], np.int32)
    nulls = None if known is None or known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    buffers = [nulls, pa.py_buffer(offsets), pa.py_buffer(flat)]
    return pa.Array.from_buffers(kind or pa.string(), starts.size - 1, buffers)


def owners(starts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Which run each of n rows belongs to.

    >>> owners(np.array([0, 2]), 5).tolist()
    [0, 0, 1, 1, 1]
    """
    return np.repeat(np.arange(starts.size), np.diff(np.append(starts, n)))


def edges_of(sizes: NDArray[Any]) -> NDArray[np.int64]:
    """Where groups of so many entries begin, and the end of the last."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def take_groups(
    edges: NDArray[np.int64], which: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which entries the groups `which` have, and where those of each begin; `edges` are (groups + 1,)."""
    sizes = edges[which + 1] - edges[which]
    taken = edges_of(sizes)
    return np.repeat(edges[which] - taken[:-1], sizes) + np.arange(taken[-1]), taken


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A table of n rows; a field is an array, (n, ...), of NumPy or Arrow, a `Groups` of n, or a table."""

    def columns(self) -> list[Any]:
        """The fields in order."""
        return [getattr(self, field.name) for field in fields(self)]

    def __len__(self) -> int:
        return len(self.columns()[0])

    def take(self, which: NDArray[Any]) -> Self:
        """Some of the rows: by number, int64 (m,), or where true, bool (n,)."""
        rows = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return type(self)(*(_taken(own, rows) for own in self.columns()))

    @classmethod
    def join(cls, tables: Sequence[Self]) -> Self:
        """Tables, at least one, one behind the other."""
        columns = zip(*(table.columns() for table in tables), strict=True)
        return cls(*map(_joined, columns))

    def replaced(self, rows: NDArray[np.int64], other: Self) -> Self:
        """The table with others in the place of some rows, by number."""
        both, kept = self.join([self, other]), np.arange(len(self))
        kept[rows] = kept.size + np.arange(rows.size)
        return both.take(kept)


def _taken(column: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(column, pa.Array):
        return column.take(pa.array(rows))
    return column.take(rows) if isinstance(column, Rows) else column[rows]


def _joined(columns: Sequence[Any]) -> Any:
    if isinstance(columns[0], pa.Array):
        return pa.concat_arrays(columns)
    return columns[0].join(columns) if isinstance(columns[0], Rows) else np.concatenate(columns)


@dataclass(frozen=True, slots=True, eq=False)
class Groups(Rows):
    """A list of `values`, (m, ...), in each of n rows, with int64 (n + 1,) offsets `starts`."""

    values: NDArray[Any]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Values of each row."""
        return np.diff(self.starts)

    @property
    def first(self) -> NDArray[Any]:
        """The first value of each row; none is empty."""
        return self.values[self.starts[:-1]]

    def take(self, which: NDArray[np.int64]) -> Self:
        """The lists of some rows, by number."""
        entries, starts = take_groups(self.starts, which)
        return type(self)(self.values[entries], starts)

    @classmethod
    def join(cls, tables: Sequence[Self]) -> Self:
        """Lists of rows, one behind the other."""
        sizes = np.concatenate([own.sizes for own in tables])
        return cls(np.concatenate([own.values for own in tables]), edges_of(sizes))


_TRUE = ("T", "TRUE", "1")
_SKIPPED, _MISSING, _PAIRS, _GAPS = range(1, 5)


def _kinds() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for letters, kind in (("S", _SKIPPED), ("N", _MISSING), ("M=X", _PAIRS), ("ID", _GAPS)):
        for letter in letters:
            table[ord(letter)] = kind
    return table


_KIND = _kinds()


class TextBytes(NamedTuple):
    """A column of texts as bytes; `starts`, int64 (n + 1,), are offsets into `data`."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]


class Cigars(NamedTuple):
    """What the cigars of AIRR rows say, in bases; int64, shape (n,) each.

    `skipped` bases of the read and `missing` ones of the germline lie before the alignment; `gaps` are the
    bases of the one that the other lacks, within it.
    """

    skipped: NDArray[np.int64]
    missing: NDArray[np.int64]
    pairs: NDArray[np.int64]
    gaps: NDArray[np.int64]


def texts(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column as large strings, null where it is empty; all null where the batch does not have it."""
    place = batch.schema.get_field_index(name)
    if place < 0:
        return pa.nulls(batch.num_rows, pa.large_string())
    column = batch.column(place).cast(pa.large_string())
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.large_string()), column)


def text_bytes(column: pa.Array) -> TextBytes:
    """A column of large strings as bytes; a null is an empty text."""
    filled = pc.fill_null(column, "")
    n = len(filled)
    if n == 0:
        return TextBytes(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    _, offsets, data = filled.buffers()
    starts = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + n + 1]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return TextBytes(raw[starts[0] : starts[-1]], starts - starts[0])


def integers(batch: pa.RecordBatch, name: str, *, source: str = "the table") -> NDArray[np.int64]:
    """A column of whole numbers that are not negative, -1 where there is none or no such column.

    FormatError, which names `source`, if a cell is something else.
    """
    place = batch.schema.get_field_index(name)
    if place < 0:
        return np.full(batch.num_rows, -1, np.int64)
    column = batch.column(place)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = texts(batch, name)
    try:
        # Some programs write whole numbers as 12.0.
        whole = column.cast(pa.float64()).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FormatError(source, column=name, found=str(error), expected="whole numbers") from error
    values: NDArray[np.int64] = pc.fill_null(whole, -1).to_numpy(zero_copy_only=False)
    return values


def booleans(batch: pa.RecordBatch, name: str) -> NDArray[np.bool_]:
    """A column of truth values, text (``T``, ``true``, ``1``) or not; False where there is none."""
    place = batch.schema.get_field_index(name)
    if place < 0:
        return np.zeros(batch.num_rows, np.bool_)
    column = batch.column(place)
    if not pa.types.is_boolean(column.type):
        column = pc.is_in(pc.utf8_upper(texts(batch, name)), value_set=pa.array(_TRUE, pa.large_string()))
    return np.array(pc.fill_null(column, False), np.bool_)


def cigars(column: pa.Array) -> Cigars:
    """Read a column of cigars, whether or not they begin with what lies before the alignment."""
    data, starts = text_bytes(column)
    n = starts.size - 1
    digit = (data >= ord("0")) & (data <= ord("9"))
    ends = np.flatnonzero(~digit)
    first = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64) if ends.size else ends
    # A length that is too long for a number is no cigar; the nonsense it gives is refused later.
    length = np.zeros(ends.size, np.int64)
    for place in range(int((ends - first).max(initial=0))):
        inside = first + place < ends
        values = data[np.minimum(first + place, data.size - 1)].astype(np.int64) - ord("0")
        length = np.where(inside, length * 10 + values, length)
    row = np.searchsorted(starts, ends, side="right") - 1
    kind = _KIND[data[ends]]
    aligned = (kind == _PAIRS) | (kind == _GAPS)
    before = np.cumsum(aligned)
    runs_before = np.concatenate([[0], before])[np.searchsorted(ends, starts[:-1])] if n else before[:0]
    leading = before == runs_before[row] if ends.size else aligned

    def total(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(row[chosen], length[chosen], n).astype(np.int64)

    return Cigars(
        total(leading & (kind == _SKIPPED)),
        total(leading & (kind == _MISSING)),
        total(kind == _PAIRS),
        total(kind == _GAPS),
    )
