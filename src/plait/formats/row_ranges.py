"""Rows of Parquet files that can be read anywhere: what a worker is told in the place of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from plait.errors import FormatError
from plait.formats.parquet import ParquetInput
from plait.formats.schemas import conform

__all__ = ["RowRange", "named_records", "row_ranges"]


@dataclass(frozen=True, slots=True)
class RowRange:
    """Consecutive rows of files that follow one another.

    Attributes
    ----------
    parts
        Absolute path, first row and end (not included) of what belongs to it of each file.
    schema
        The columns to read, with the types that they are to have.
    """

    parts: tuple[tuple[str, int, int], ...]
    schema: pa.Schema

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(end - first for _, first, end in self.parts)

    @property
    def name(self) -> str:
        """What they are called in messages: records, from 0, of files."""
        return " and ".join(named_records(path, first, end) for path, first, end in self.parts)

    def read(self) -> pa.RecordBatch:
        """Read them.

        Raises
        ------
        FormatError
            If a file is damaged, or not there, or has fewer rows than another process has found in it.
        """
        found = []
        for path, first, end in self.parts:
            file = ParquetInput(path)
            names = [name for name in self.schema.names if name in file.schema.names]
            found += [conform(batch, self.schema) for batch in file.rows(first, end, names)]
        if sum(batch.num_rows for batch in found) != self.rows:
            raise FormatError(
                self.parts[0][0],
                found=f"fewer rows than {self.name}",
                expected="one file under this path on all machines, which does not change while it is read",
            )
        return pa.concat_batches(found) if found else pa.RecordBatch.from_pylist([], self.schema)


def named_records(path: object, first: int, end: int) -> str:
    """What rows of a file are called in messages.

    Parameters
    ----------
    path
        The file.
    first, end
        The first row, from 0, and the end, not included.
    """
    return f"records {first} to {end - 1} of {str(path)!r}"


def row_ranges(files: Sequence[tuple[str, int]], rows: int, schema: pa.Schema) -> Iterator[RowRange]:
    """Cut files into ranges of equal length; the same rows as the blocks of a reader of these files.

    Parameters
    ----------
    files
        Absolute path and number of rows of each file.
    rows
        Rows of a range.
    schema
        The columns to read.

    Yields
    ------
    RowRange
        Exactly `rows` rows, at the end what is left.
    """
    held: list[tuple[str, int, int]] = []
    room = rows
    for path, end in files:
        first = 0
        while first < end:
            taken = min(room, end - first)
            held.append((path, first, first + taken))
            first += taken
            room -= taken
            if not room:
                yield RowRange(tuple(held), schema)
                held, room = [], rows
    if held:
        yield RowRange(tuple(held), schema)
