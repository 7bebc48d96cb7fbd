"""Aligned pairs as tables; what needs them alone loads Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from plait.align.writers import AlignedPair, AlignmentWriter, PairColumn
from plait.formats.tables import PrintedTable, TableWriter

#: What one batch of a table holds at most, save for its last row.
_BATCH_ROWS = 1 << 16
_BATCH_LETTERS = 1 << 25
_ARROW: Final = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64()}


def table_schema(columns: Mapping[str, PairColumn]) -> pa.Schema:
    """The schema of a table with these columns."""
    return pa.schema([(name, _ARROW[column.kind]) for name, column in columns.items()])


class PairTableWriter(AlignmentWriter):
    """Pairs as rows of a table, of which the schema is that of `table_schema`."""

    def __init__(self, table: TableWriter | PrintedTable, columns: Mapping[str, PairColumn]) -> None:
        super().__init__(table)
        self._table = table
        self._schema = table_schema(columns)
        self._values = [column.value for column in columns.values()]
        self._texts = [place for place, column in enumerate(columns.values()) if column.kind == "string"]
        self._cells: list[list[object]] = [[] for _ in columns]
        self._letters = 0

    def write_columns(self, columns: Sequence[Sequence[object]]) -> None:
        """Append many pairs at once: as many cells of every column."""
        for cells, more in zip(self._cells, columns, strict=True):
            cells.extend(more)
        self.pairs += len(columns[0])
        self._pass_on_enough(len(columns[0]))

    def _write(self, pair: AlignedPair) -> None:
        for cells, value in zip(self._cells, self._values, strict=True):
            cells.append(value(pair))
        self._pass_on_enough(1)

    def _pass_on_enough(self, added: int) -> None:
        """Pass on what there is, so many rows of it new, if that is much."""
        for place in self._texts:
            cells = self._cells[place][-added:]
            self._letters += sum(len(cell) for cell in cells if isinstance(cell, str))
        if len(self._cells[0]) >= _BATCH_ROWS or self._letters >= _BATCH_LETTERS:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._cells[0]:
            columns = [
                pa.array(cells, field.type) for cells, field in zip(self._cells, self._schema, strict=True)
            ]
            self._cells, self._letters = [[] for _ in self._cells], 0
            self._table.write(pa.record_batch(columns, schema=self._schema))

    def close(self) -> None:
        """Finish the table."""
        self._pass_on()
        super().close()

    def discard(self) -> None:
        """Remove what is unfinished."""
        self._cells = [[] for _ in self._cells]
        super().discard()
