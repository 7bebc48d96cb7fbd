"""Sharing: in how many individuals each clonotype occurs, and how often in each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.layouts import Layout, assign_roles, layout_named
from plait.formats.rearrangements import open_rearrangements
from plait.vdj.calls import first_gene

__all__ = ["CLONOTYPE", "RankCorrelation", "SharingTable", "sharing"]

_Source: TypeAlias = pa.Table | pa.RecordBatch | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

#: The columns that make a clonotype.
CLONOTYPE: Final = ("junction", "v_gene", "j_gene")
_PATH_COUNT = "path_count"
_BLOCK_ROWS = 65536
#: Blocks are merged once they hold this share of the rows merged so far, so that every row is merged a
#: bounded number of times; and not before there are this many.
_GROWTH = 0.5
_FEWEST_TO_MERGE = 1 << 18


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """Spearman's rank correlation.

    Attributes
    ----------
    rho
        From -1 to 1; NaN where one of the two does not vary.
    n
        Number of pairs.
    """

    rho: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingTable:
    """How clonotypes are shared. A clonotype is a junction with its V and J gene.

    Attributes
    ----------
    clonotypes
        One row per clonotype: junction, v_gene, j_gene, subjects (int32), rows, and duplicate_count and
        path_count where the input has them. The most shared ones first, then by junction, V and J.
    by_subject
        One row per clonotype and subject, in the same order: the three columns, subject, rows, and
        duplicate_count where the input has it.
    subjects
        Every subject with its number of rows, in alphabetical order.
    left_out
        Rows that are in no clonotype, by reason.
    """

    clonotypes: pa.Table
    by_subject: pa.Table
    subjects: Mapping[str, int]
    left_out: Mapping[str, int]

    @property
    def rows(self) -> int:
        """All input rows, those left out included."""
        return sum(self.subjects.values()) + sum(self.left_out.values())

    def distribution(self) -> pa.Table:
        """Clonotypes by the number of subjects that have them.

        Returns
        -------
        pyarrow.Table
            Columns subjects, clonotypes and rows; where there are path counts also counted (clonotypes that
            have one), zero_counts, and path_count_q25, path_count_median and path_count_q75 over the counted
            ones.
        """
        shared = self.clonotypes["subjects"].to_numpy()
        rows = self.clonotypes["rows"].to_numpy()
        levels = np.unique(shared)
        found: dict[str, Any] = {
            "subjects": pa.array(levels, pa.int32()),
            "clonotypes": pa.array([int((shared == level).sum()) for level in levels], pa.int64()),
            "rows": pa.array([int(rows[shared == level].sum()) for level in levels], pa.int64()),
        }
        if _PATH_COUNT in self.clonotypes.column_names:
            counts = self._path_counts()
            groups = [counts[(shared == level) & ~np.isnan(counts)] for level in levels]
            found["counted"] = pa.array([group.size for group in groups], pa.int64())
            found["zero_counts"] = pa.array([int((group == 0).sum()) for group in groups], pa.int64())
            for name, q in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
                values = [float(np.quantile(group, q)) if group.size else None for group in groups]
                found[f"{_PATH_COUNT}_{name}"] = pa.array(values, pa.float64())
        return pa.table(found)

    def correlation(self) -> RankCorrelation:
        """Spearman's rank correlation of path count and number of subjects, over clonotypes with a count.

        Raises
        ------
        InvalidInput
            If the input had no path counts.
        """
        if _PATH_COUNT not in self.clonotypes.column_names:
            raise InvalidInput(
                "path_count",
                found="a table without this column",
                expected="an output of plait vdj count",
            )
        counts = self._path_counts()
        known = ~np.isnan(counts)
        ranks = _ranks(counts[known]), _ranks(self.clonotypes["subjects"].to_numpy()[known])
        n = int(known.sum())
        if n == 0 or any(np.all(r == r[0]) for r in ranks):
            return RankCorrelation(float("nan"), n)
        return RankCorrelation(float(np.corrcoef(*ranks)[0, 1]), n)

    def _path_counts(self) -> NDArray[np.float64]:
        """The path counts as floating-point numbers, rounded above 2^53; NaN where there is none."""
        column = self.clonotypes[_PATH_COUNT].cast(pa.float64(), safe=False)
        values: NDArray[np.float64] = column.to_numpy()
        return values


def sharing(source: _Source, *, subject: str | None = None, layout: str = "airr") -> SharingTable:
    """Count in how many individuals each clonotype occurs, and how often in each.

    Junctions are compared in upper case. The V and the J gene are the first gene of the call, as it is
    written, without its allele; so tables of one naming style belong together.

    Parameters
    ----------
    source
        An Arrow table, or one or more files as for ``plait vdj count``, outputs of it included.
    subject
        Column that tells individuals apart; by default that of the layout, ``subject_id`` in AIRR tables.
    layout
        Column layout of the source.

    Returns
    -------
    SharingTable
        The clonotypes, whatever the order and the partition of the input.

    Raises
    ------
    InvalidInput
        If there is no source or no such layout.
    FormatError
        If a file is not what it should be, or there is no column of subjects.

    Notes
    -----
    Files are streamed. What is held in memory is one row per clonotype and subject: about 100 bytes each, and
    up to four times that while the tables are put together. A clonotype's path count is its first one in
    input order that is not null; counts of different alleles of a gene can differ.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from plait.vdj import sharing
    >>> table = pa.table(
    ...     {
    ...         "junction": ["TGTGCCTTC", "tgtgccttc", "TGTAGCTTC"],
    ...         "v_call": ["TRBV1*01", "TRBV1*01", "TRBV1*01"],
    ...         "j_call": ["TRBJ1-1*01"] * 3,
    ...         "subject_id": ["a", "b", "a"],
    ...     }
    ... )
    >>> sharing(table).clonotypes.select(["junction", "subjects"]).to_pylist()
    [{'junction': 'TGTGCCTTC', 'subjects': 2}, {'junction': 'TGTAGCTTC', 'subjects': 1}]
    """
    chosen = layout_named(layout)
    if isinstance(source, pa.Table | pa.RecordBatch):
        blocks = source.to_batches() if isinstance(source, pa.Table) else [source]
        return _Merger("the table", source.schema, chosen, subject).run(iter(blocks))
    with open_rearrangements(source, layout=layout, block_rows=_BLOCK_ROWS) as reader:
        name = ", ".join(path for path, _, _ in reader.identities)
        return _Merger(name, reader.schema, chosen, subject).run(iter(reader))


class _Merger:
    """Groups rows block by block."""

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
        self._counted = _PATH_COUNT in schema.names
        self._name = name
        self._left_out: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        self._genes: dict[str, str] = {}

    def run(self, blocks: Iterator[pa.RecordBatch]) -> SharingTable:
        merged: pa.Table | None = None
        fresh: list[pa.Table] = []
        waiting = 0
        for block in blocks:
            part = self._grouped(self._named(block))
            fresh.append(part)
            waiting += part.num_rows
            known = 0 if merged is None else merged.num_rows
            if waiting >= max(_FEWEST_TO_MERGE, _GROWTH * known):
                merged, fresh, waiting = self._merged(merged, fresh), [], 0
        return self._finished(self._merged(merged, fresh))

    def _merged(self, merged: pa.Table | None, fresh: list[pa.Table]) -> pa.Table:
        tables = fresh if merged is None else [merged, *fresh]
        return self._grouped(pa.concat_tables(tables)) if tables else self._empty()

    def _empty(self) -> pa.Table:
        texts = {name: pa.array([], pa.large_string()) for name in (*CLONOTYPE, "subject")}
        sums = {name: pa.array([], pa.int64()) for name in self._sums}
        counts = {_PATH_COUNT: pa.array([], pa.large_string())} if self._counted else {}
        return pa.table({**texts, **sums, **counts})

    def _named(self, block: pa.RecordBatch) -> pa.Table:
        """The rows of a block that have a clonotype and a subject, with one row each."""
        columns = {
            "junction": pc.utf8_upper(_text(block[self._roles["junction"]])),
            "v_gene": self._gene(block[self._roles["v_call"]]),
            "j_gene": self._gene(block[self._roles["j_call"]]),
            "subject": _text(block[self._roles["subject"]]),
        }
        kept = np.ones(block.num_rows, np.bool_)
        for name, column in columns.items():
            blank = kept & ~np.asarray(pc.fill_null(pc.not_equal(column, ""), False))
            if blank.any():
                self._left_out[f"missing_{name}"] += int(blank.sum())
            kept &= ~blank
        columns["rows"] = pa.array(np.ones(block.num_rows, np.int64))
        if self._count is not None:
            columns["duplicate_count"] = self._whole_numbers(block[self._count])
        if self._counted:
            columns[_PATH_COUNT] = _number_or_text(block[_PATH_COUNT])
        table = pa.table(columns).filter(pa.array(kept))
        for entry in pc.value_counts(table["subject"]).to_pylist():
            self._rows[entry["values"]] += entry["counts"]
        return table

    def _gene(self, calls: pa.Array) -> pa.Array:
        encoded = _text(calls).dictionary_encode()
        for call in encoded.dictionary.to_pylist():
            if call not in self._genes:
                self._genes[call] = first_gene(call)
        genes = pa.array([self._genes[call] for call in encoded.dictionary.to_pylist()], pa.large_string())
        return genes.take(encoded.indices)

    def _whole_numbers(self, column: pa.Array) -> pa.Array:
        if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
            column = _or_null(_text(column))
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise FormatError(
                self._name, column=self._count, found=str(error), expected="whole numbers"
            ) from error

    def _grouped(self, table: pa.Table) -> pa.Table:
        """One row per clonotype and subject, in order of first appearance."""
        aggregations: list[tuple[str, str, Any]] = [(name, "sum", None) for name in self._sums]
        if self._counted:
            aggregations.append((_PATH_COUNT, "first", pc.ScalarAggregateOptions(skip_nulls=True)))
        grouped = table.group_by([*CLONOTYPE, "subject"], use_threads=False).aggregate(aggregations)
        return grouped.rename_columns(
            [name.removesuffix("_sum").removesuffix("_first") for name in grouped.column_names]
        )

    def _finished(self, by_subject: pa.Table) -> SharingTable:
        aggregations: list[tuple[str, str, Any]] = [("subject", "count", None)]
        aggregations += [(name, "sum", None) for name in self._sums]
        if self._counted:
            aggregations.append((_PATH_COUNT, "first", pc.ScalarAggregateOptions(skip_nulls=True)))
        grouped = by_subject.group_by(list(CLONOTYPE), use_threads=False).aggregate(aggregations)
        columns = {name: grouped[name] for name in CLONOTYPE}
        columns["subjects"] = grouped["subject_count"].cast(pa.int32())
        columns |= {name: grouped[f"{name}_sum"] for name in self._sums}
        if self._counted:
            columns[_PATH_COUNT] = self._numbers(grouped[f"{_PATH_COUNT}_first"])
        order = [("subjects", "descending"), *((name, "ascending") for name in CLONOTYPE)]
        clonotypes = pa.table(columns).sort_by(order)
        return SharingTable(
            clonotypes=clonotypes,
            by_subject=self._ordered(by_subject, clonotypes),
            subjects=dict(sorted(self._rows.items())),
            left_out=dict(self._left_out),
        )

    def _numbers(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Path counts that were text as the first type that holds all of them exactly, else as float64."""
        if not pa.types.is_large_string(column.type):
            return column
        for kind in (pa.int64(), pa.decimal256(76, 0), pa.float64()):
            try:
                return column.cast(kind)
            except pa.ArrowInvalid as error:
                reason = error
        raise FormatError(self._name, column=_PATH_COUNT, found=str(reason), expected="numbers") from reason

    def _ordered(self, by_subject: pa.Table, clonotypes: pa.Table) -> pa.Table:
        ranked = clonotypes.select([*CLONOTYPE, "subjects"])
        joined = by_subject.select([*CLONOTYPE, "subject", *self._sums]).join(
            ranked, list(CLONOTYPE), use_threads=False
        )
        order = [("subjects", "descending"), *((name, "ascending") for name in (*CLONOTYPE, "subject"))]
        return joined.sort_by(order).drop_columns(["subjects"])


def _text(column: pa.Array) -> pa.Array:
    """A column as text, empty where it is null."""
    return pc.fill_null(column.cast(pa.large_string()), "")


def _or_null(texts: pa.Array) -> pa.Array:
    """Texts with null for the empty ones."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)


def _number_or_text(column: pa.Array) -> pa.Array:
    """Path counts; decimals and the cells of text files stay text until all are known."""
    plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return column if plain else _or_null(_text(column))


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    mean: NDArray[np.float64] = (last - (sizes - 1) / 2)[place]
    return mean
