"""Rows of tables as clonotypes of subjects: one row each with its sums, block by block."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import FormatError
from plait.formats.layouts import Layout, assign_roles
from plait.formats.row_ranges import RowRange
from plait.vdj.clonotype_names import CLONOTYPE, GeneNames, named_rows, text_of, whole_numbers

__all__ = ["PATH_COUNT", "ClonotypeGrouper", "GroupedRows"]

PATH_COUNT = "path_count"

_Rows: TypeAlias = pa.RecordBatch | RowRange


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows of a block.

    Attributes
    ----------
    table
        One row for each clonotype and subject, in order of first appearance.
    subjects
        Rows of each subject.
    left_out
        Rows that are in no clonotype, by reason.
    """

    table: pa.Table
    subjects: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


class ClonotypeGrouper:
    """Groups the rows of blocks; picklable, so that it can be done on any machine.

    Parameters
    ----------
    name
        The source, for messages.
    schema
        Its columns.
    layout
        Its column layout.
    subject
        Column that tells individuals apart; None: that of the layout.

    Attributes
    ----------
    columns : list of str
        The columns of the source that matter.

    Raises
    ------
    FormatError
        If there is no column of subjects, or another one is missing.
    """

    def __init__(self, name: str, schema: pa.Schema, layout: Layout, subject: str | None) -> None:
        self._roles = assign_roles(layout, [(name, schema.names)])
        if subject is not None:
            self._roles["subject"] = subject
        if self._roles.get("subject") not in schema.names:
            wanted = subject or " or ".join(layout.columns.get("subject", ("subject_id",)))
            raise FormatError(
                name,
                found=f"the columns {', '.join(map(repr, schema.names[:20]))}",
                expected=f"a column {wanted!r} that tells individuals apart",
                hint="name the column with --subject",
            )
        self._sums = ["rows"]
        count = self._roles.get("count")
        if count is not None and pa.types.is_null(schema.field(count).type):
            count = None
        self._count = count
        if count is not None:
            self._sums.append("duplicate_count")
        self.counted = PATH_COUNT in schema.names
        self._name = name
        self._genes = GeneNames()
        used = [self._roles[role] for role in ("junction", "v_call", "j_call", "subject")]
        used += [count] if count is not None else []
        used += [PATH_COUNT] if self.counted else []
        self.columns: list[str] = list(dict.fromkeys(used))

    @property
    def sums(self) -> tuple[str, ...]:
        """Names of the columns that are added up."""
        return tuple(self._sums)

    def __call__(self, rows: _Rows) -> GroupedRows:
        """Group a block, or one that is still to be read."""
        block = rows.read() if isinstance(rows, RowRange) else rows
        found = GroupedRows(self.empty())
        named = self._named(block, found)
        return GroupedRows(self.grouped(named), found.subjects, found.left_out)

    def empty(self) -> pa.Table:
        """No rows."""
        texts = {name: pa.array([], pa.large_string()) for name in (*CLONOTYPE, "subject")}
        sums = {name: pa.array([], pa.int64()) for name in self._sums}
        counts = {PATH_COUNT: pa.array([], pa.large_string())} if self.counted else {}
        return pa.table({**texts, **sums, **counts})

    def grouped(self, table: pa.Table) -> pa.Table:
        """One row per clonotype and subject, in order of first appearance.

        Parameters
        ----------
        table
            Rows that may be of the same clonotype and subject.
        """
        aggregations: list[tuple[str, str, Any]] = [(name, "sum", None) for name in self._sums]
        if self.counted:
            aggregations.append((PATH_COUNT, "first", pc.ScalarAggregateOptions(skip_nulls=True)))
        grouped = table.group_by([*CLONOTYPE, "subject"], use_threads=False).aggregate(aggregations)
        return grouped.rename_columns(
            [name.removesuffix("_sum").removesuffix("_first") for name in grouped.column_names]
        )

    def numbers(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Path counts that were text as the first type that holds all of them exactly, else as float64.

        Parameters
        ----------
        column
            Path counts.
        """
        if not pa.types.is_large_string(column.type):
            return column
        for kind in (pa.int64(), pa.decimal256(76, 0), pa.float64()):
            try:
                return column.cast(kind)
            except pa.ArrowInvalid as error:
                reason = error
        raise FormatError(self._name, column=PATH_COUNT, found=str(reason), expected="numbers") from reason

    def _named(self, block: pa.RecordBatch, found: GroupedRows) -> pa.Table:
        """The rows of a block that have a clonotype and a subject, with one row each."""
        columns = {
            "junction": pc.utf8_upper(text_of(block[self._roles["junction"]])),
            "v_gene": self._genes.of(block[self._roles["v_call"]]),
            "j_gene": self._genes.of(block[self._roles["j_call"]]),
            "subject": text_of(block[self._roles["subject"]]),
        }
        kept = named_rows(columns, found.left_out)
        columns["rows"] = pa.array(np.ones(block.num_rows, np.int64))
        if self._count is not None:
            counts = block[self._count]
            columns["duplicate_count"] = whole_numbers(counts, path=self._name, name=self._count)
        if self.counted:
            columns[PATH_COUNT] = _number_or_text(block[PATH_COUNT])
        table = pa.table(columns).filter(pa.array(kept))
        for entry in pc.value_counts(table["subject"]).to_pylist():
            found.subjects[entry["values"]] += entry["counts"]
        return table


def _number_or_text(column: pa.Array) -> pa.Array:
    """Path counts; decimals and the cells of text files stay text until all are known."""
    plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if plain:
        return column
    texts = text_of(column)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)
