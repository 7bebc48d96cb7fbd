"""Rows of clonotypes and subjects, grouped block by block, in whatever process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import FormatError
from plait.formats.rearrangements import RowRange
from plait.vdj.calls import ClonotypeKey, first_genes, named_rows, text_of, whole_numbers
from plait.vdj.model.junctions import JunctionColumns
from plait.vdj.repertoires.overlap import PATH_COUNT

if TYPE_CHECKING:
    from plait.vdj.repertoires.sharing import SharingSettings

_Rows: TypeAlias = pa.RecordBatch | RowRange

#: Types of path counts that were text: the first one that holds all of them exactly, or the last one.
KINDS: Final = (pa.int64(), pa.decimal256(76, 0), pa.float64())


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows of a block, one for each clonotype and subject, in order of first appearance.

    `subjects` counts the rows of each, `copies` its reads or molecules, `left_out` rows in no clonotype, by
    reason; `conditions` has what each subject's rows say, the first one first.
    """

    table: pa.Table
    subjects: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    conditions: dict[str, list[str]] = field(default_factory=dict)


class ClonotypeGrouper:
    """Groups the rows of blocks; picklable, so that it can be done on any machine.

    `columns` are those of the source that matter, `known` those that are the same in all rows of a clonotype
    and go with it. FormatError, which has the `name` of the source, if one of them is missing.
    """

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        roles: Mapping[str, str],
        settings: SharingSettings,
        known: Sequence[str] = (),
    ) -> None:
        self.key = ClonotypeKey.named(settings.key)
        self._roles = dict(roles)
        if settings.subject is not None:
            self._roles["subject"] = settings.subject
        if settings.condition is not None:
            self._roles["condition"] = settings.condition
        wanted = settings.subject or "subject_id"
        _check_column(
            name, schema, self._roles.get("subject"), wanted, "that tells individuals apart", "subject"
        )
        if settings.condition is not None:
            _check_column(name, schema, settings.condition, settings.condition, "of conditions", "condition")
        count = self._roles.get("count")
        if count is not None and pa.types.is_null(schema.field(count).type):
            count = None
        self._count = count
        self.sums = ("rows",) if count is None else ("rows", "duplicate_count")
        self.counted = PATH_COUNT in schema.names and not self.key.acids
        self._name = name
        junction = self._roles["junction_aa" if self.key.acids else "junction"]
        used = [
            junction,
            *(self._roles[f"{s}_call"] for s in "vj" if f"{s}_gene" in self.key.columns),
        ]
        acids = "junction_aa" if self.key.acids and "junction_aa" in schema.names else None
        nucleotides = None if junction == acids else junction
        used += [self._roles["subject"]] + [n for n in (acids, count, settings.condition) if n is not None]
        used += [PATH_COUNT] if self.counted else []
        used += known
        self.known = {name: schema.field(name).type for name in known}
        self.columns: list[str] = list(dict.fromkeys(used))
        places = [-1 if n is None else self.columns.index(n) for n in (nucleotides, acids)]
        self._places = JunctionColumns(places[0], places[1], -1, -1)

    def __call__(self, rows: _Rows) -> GroupedRows:
        """Group a block, or one that is still to be read."""
        block = rows.read() if isinstance(rows, RowRange) else rows
        found = GroupedRows(self.empty())
        named = self._named(block, found)
        return replace(found, table=self.grouped(named))

    def empty(self) -> pa.Table:
        """No rows."""
        texts = {name: pa.array([], pa.large_string()) for name in (*self.key.columns, "subject")}
        sums = {name: pa.array([], pa.int64()) for name in self.sums}
        counts = {PATH_COUNT: pa.array([], pa.large_string())} if self.counted else {}
        known = {name: pa.array([], kind) for name, kind in self.known.items()}
        return pa.table({**texts, **sums, **counts, **known})

    def grouped(self, table: pa.Table) -> pa.Table:
        """One row per clonotype and subject, in order of first appearance."""
        aggregations: list[tuple[str, str, Any]] = [(name, "sum", None) for name in self.sums]
        if self.counted:
            aggregations.append((PATH_COUNT, "first", pc.ScalarAggregateOptions(skip_nulls=True)))
        first = pc.ScalarAggregateOptions(skip_nulls=False)
        aggregations += [(name, "first", first) for name in self.known]
        grouped = table.group_by([*self.key.columns, "subject"], use_threads=False).aggregate(aggregations)
        return grouped.rename_columns(
            [name.removesuffix("_sum").removesuffix("_first") for name in grouped.column_names]
        )

    def kind_of(self, column: pa.Array) -> int:
        """Which of `KINDS` path counts that are text need, at least; FormatError if they are no numbers."""
        if not pa.types.is_large_string(column.type):
            return 0
        for place, kind in enumerate(KINDS):
            try:
                column.cast(kind)
                return place
            except pa.ArrowInvalid as error:
                reason = error
        raise FormatError(self._name, column=PATH_COUNT, found=str(reason), expected="numbers") from reason

    def _named(self, block: pa.RecordBatch, found: GroupedRows) -> pa.Table:
        """The rows of a block that have a clonotype and a subject, with one row each."""
        columns = {"subject": text_of(block[self._roles["subject"]])}
        for segment in (s for s in "vj" if f"{s}_gene" in self.key.columns):
            columns[f"{segment}_gene"] = first_genes(block[self._roles[f"{segment}_call"]])
        junction = self.key.columns[0]
        given = block.select(self.columns).columns
        texts = self._places.amino_acids(given) if self.key.acids else self._places.texts(given)
        columns[junction] = pc.utf8_upper(text_of(texts))
        columns = {name: columns[name] for name in (*self.key.columns, "subject")}
        kept = named_rows(columns, found.left_out)
        if self.key.acids:
            whole = np.asarray(pc.match_substring_regex(columns[junction], "^[ACDEFGHIKLMNPQRSTVWY]*$"))
            if (kept & ~whole).any():
                found.left_out[f"incomplete_{junction}"] += int((kept & ~whole).sum())
            kept &= whole
        columns["rows"] = pa.array(np.ones(block.num_rows, np.int64))
        if self._count is not None:
            counts = block[self._count]
            columns["duplicate_count"] = whole_numbers(counts, path=self._name, name=self._count)
        if self.counted:
            columns[PATH_COUNT] = _number_or_text(block[PATH_COUNT])
        columns |= {name: block[name] for name in self.known}
        if "condition" in self._roles:
            columns["condition"] = pc.utf8_trim_whitespace(text_of(block[self._roles["condition"]]))
        table = pa.table(columns).filter(pa.array(kept))
        copies = table.group_by("subject").aggregate([(name, "sum") for name in self.sums])
        for entry in copies.to_pylist():
            found.subjects[entry["subject"]] = entry["rows_sum"]
            found.copies[entry["subject"]] = entry.get("duplicate_count_sum", entry["rows_sum"]) or 0
        if "condition" in table.column_names:
            for entry in (
                table.group_by(["subject", "condition"], use_threads=False).aggregate([]).to_pylist()
            ):
                found.conditions.setdefault(entry["subject"], []).append(entry["condition"])
            table = table.drop_columns(["condition"])
        return table


def _check_column(
    path: str, schema: pa.Schema, found: str | None, wanted: str, what: str, option: str
) -> None:
    if found not in schema.names:
        raise FormatError(
            path,
            found=f"the columns {', '.join(map(repr, schema.names[:20]))}",
            expected=f"a column {wanted!r} {what}",
            hint=f"name the column with --{option}",
        )


def _number_or_text(column: pa.Array) -> pa.Array:
    """Path counts; decimals and the cells of text files stay text until all are known."""
    plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if plain:
        return column
    texts = text_of(column)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)
