"""In how many individuals each clonotype occurs: from tables and files, to tables and files."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait._version import __version__
from plait.errors import FormatError, InvalidInput
from plait.formats.layouts import AUTO, ConvertedFile, LayoutChoice, TableInput, layout_of
from plait.formats.rearrangements import RearrangementReader, RowRange, open_rearrangements, roles_of
from plait.formats.tables import open_table
from plait.run.executor import Executor, LocalExecutor
from plait.vdj.calls import CLONOTYPE, GeneNames, named_rows, text_of, whole_numbers

PATH_COUNT = "path_count"

_Rows: TypeAlias = pa.RecordBatch | RowRange


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Rows of a block, one for each clonotype and subject, in order of first appearance.

    `subjects` counts the rows of each, `left_out` those in no clonotype, by reason.
    """

    table: pa.Table
    subjects: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


class ClonotypeGrouper:
    """Groups the rows of blocks; picklable, so that it can be done on any machine.

    `roles` are those of the columns; `subject` is the column that tells individuals apart, None: that of its
    role; `columns` are those of the source that matter. FormatError, which has the `name` of the source, if
    one of them is missing.
    """

    def __init__(self, name: str, schema: pa.Schema, roles: Mapping[str, str], subject: str | None) -> None:
        self._roles = dict(roles)
        if subject is not None:
            self._roles["subject"] = subject
        if self._roles.get("subject") not in schema.names:
            wanted = subject or "subject_id"
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
        """One row per clonotype and subject, in order of first appearance."""
        aggregations: list[tuple[str, str, Any]] = [(name, "sum", None) for name in self._sums]
        if self.counted:
            aggregations.append((PATH_COUNT, "first", pc.ScalarAggregateOptions(skip_nulls=True)))
        grouped = table.group_by([*CLONOTYPE, "subject"], use_threads=False).aggregate(aggregations)
        return grouped.rename_columns(
            [name.removesuffix("_sum").removesuffix("_first") for name in grouped.column_names]
        )

    def numbers(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Path counts that were text as the first type that holds all of them exactly, else as float64."""
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


_Source: TypeAlias = pa.Table | pa.RecordBatch | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_BLOCK_ROWS = 65536
#: Blocks grouped at a time; putting them together, which one thread does, is slower than so many.
_MOST_BLOCKS = 4
#: Blocks are merged once they hold this share of the rows merged so far, so that every row is merged a
#: bounded number of times; and not before there are this many.
_GROWTH = 0.5
_FEWEST_TO_MERGE = 1 << 18


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """Spearman's rank correlation, from -1 to 1, of n pairs; NaN where one of the two does not vary."""

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
        if PATH_COUNT in self.clonotypes.column_names:
            counts = self._path_counts()
            groups = [counts[(shared == level) & ~np.isnan(counts)] for level in levels]
            found["counted"] = pa.array([group.size for group in groups], pa.int64())
            found["zero_counts"] = pa.array([int((group == 0).sum()) for group in groups], pa.int64())
            for name, q in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
                values = [float(np.quantile(group, q)) if group.size else None for group in groups]
                found[f"{PATH_COUNT}_{name}"] = pa.array(values, pa.float64())
        return pa.table(found)

    def correlation(self) -> RankCorrelation:
        """Spearman's rank correlation of path count and number of subjects, over clonotypes with a count.

        Raises
        ------
        InvalidInput
            If the input had no path counts.
        """
        if PATH_COUNT not in self.clonotypes.column_names:
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
        column = self.clonotypes[PATH_COUNT].cast(pa.float64(), safe=False)
        values: NDArray[np.float64] = column.to_numpy()
        return values


def sharing(
    source: _Source,
    *,
    subject: str | None = None,
    layout: LayoutChoice = AUTO,
    executor: Executor | None = None,
) -> SharingTable:
    """Count in how many individuals each clonotype occurs, and how often in each.

    Junctions are compared in upper case. The V and the J gene are the first gene of the call, as it is
    written, without its allele; so tables of one naming style belong together.

    Parameters
    ----------
    source
        An Arrow table, or one or more files as for ``plait vdj count``, outputs of it included.
    subject
        Column that tells individuals apart; by default ``subject_id``, or what the layout has for it. Where a
        file has none, its name is its subject.
    layout
        Layout of the source, ``"auto"``: recognised by the header; or a mapping of AIRR fields to columns.
    executor
        Where rows of files are grouped, before they are put together here; by default in this process. The
        tables are the same.

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
    if isinstance(source, pa.Table | pa.RecordBatch):
        chosen = layout_of("the table", layout, source.schema.names)
        table = ConvertedFile(TableInput(source), chosen, {})
        grouper = ClonotypeGrouper("the table", table.schema, roles_of(table.schema), subject)
        return _Merger(grouper).run(grouper(block) for block in table.batches(_BLOCK_ROWS))
    workers = executor or LocalExecutor(1)
    named = subject is None
    with open_rearrangements(source, layout=layout, block_rows=_BLOCK_ROWS, named_subjects=named) as reader:
        name = ", ".join(path for path, _, _ in reader.identities)
        grouper = ClonotypeGrouper(name, reader.schema, reader.roles, subject)
        with closing(_grouped_blocks(reader, grouper, workers)) as parts:
            found = _Merger(grouper).run(parts)
        reader.check_unchanged()
        return found


def _grouped_blocks(
    reader: RearrangementReader, grouper: ClonotypeGrouper, executor: Executor
) -> Generator[GroupedRows, None, None]:
    """Blocks grouped one by one; workers read Parquet by themselves, text is sent to them."""
    ranges = reader.ranges(grouper.columns) if executor.elsewhere else None
    if ranges is not None:
        return executor.map(grouper, ranges, named=lambda part: part.name)
    blocks = (block.select(grouper.columns) for block in reader)
    return executor.map(grouper, blocks, most=_MOST_BLOCKS, size=lambda block: int(block.nbytes))


class _Merger:
    """Puts grouped blocks together."""

    def __init__(self, grouper: ClonotypeGrouper) -> None:
        self._grouper = grouper
        self._sums = grouper.sums
        self._left_out: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()

    def run(self, parts: Iterable[GroupedRows]) -> SharingTable:
        merged: pa.Table | None = None
        fresh: list[pa.Table] = []
        waiting = 0
        for part in parts:
            self._rows.update(part.subjects)
            self._left_out.update(part.left_out)
            fresh.append(part.table)
            waiting += part.table.num_rows
            known = 0 if merged is None else merged.num_rows
            if waiting >= max(_FEWEST_TO_MERGE, _GROWTH * known):
                merged, fresh, waiting = self._merged(merged, fresh), [], 0
        return self._finished(self._merged(merged, fresh))

    def _merged(self, merged: pa.Table | None, fresh: list[pa.Table]) -> pa.Table:
        tables = fresh if merged is None else [merged, *fresh]
        return self._grouper.grouped(pa.concat_tables(tables)) if tables else self._grouper.empty()

    def _finished(self, by_subject: pa.Table) -> SharingTable:
        aggregations: list[tuple[str, str, Any]] = [("subject", "count", None)]
        aggregations += [(name, "sum", None) for name in self._sums]
        if self._grouper.counted:
            aggregations.append((PATH_COUNT, "first", pc.ScalarAggregateOptions(skip_nulls=True)))
        grouped = by_subject.group_by(list(CLONOTYPE), use_threads=False).aggregate(aggregations)
        columns = {name: grouped[name] for name in CLONOTYPE}
        columns["subjects"] = grouped["subject_count"].cast(pa.int32())
        columns |= {name: grouped[f"{name}_sum"] for name in self._sums}
        if self._grouper.counted:
            columns[PATH_COUNT] = self._grouper.numbers(grouped[f"{PATH_COUNT}_first"])
        order = [("subjects", "descending"), *((name, "ascending") for name in CLONOTYPE)]
        clonotypes = pa.table(columns).sort_by(order)
        return SharingTable(
            clonotypes=clonotypes,
            by_subject=self._ordered(by_subject, clonotypes),
            subjects=dict(sorted(self._rows.items())),
            left_out=dict(self._left_out),
        )

    def _ordered(self, by_subject: pa.Table, clonotypes: pa.Table) -> pa.Table:
        ranked = clonotypes.select([*CLONOTYPE, "subjects"])
        joined = by_subject.select([*CLONOTYPE, "subject", *self._sums]).join(
            ranked, list(CLONOTYPE), use_threads=False
        )
        order = [("subjects", "descending"), *((name, "ascending") for name in (*CLONOTYPE, "subject"))]
        return joined.sort_by(order).drop_columns(["subjects"])


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    mean: NDArray[np.float64] = (last - (sizes - 1) / 2)[place]
    return mean


_BATCH_ROWS = 1 << 17

_Path = str | os.PathLike[str]


def share_files(
    inputs: Sequence[_Path],
    output: _Path,
    *,
    by_subject: _Path | None = None,
    subject: str | None = None,
    layout: LayoutChoice = AUTO,
    executor: Executor | None = None,
) -> SharingTable:
    """Count sharing over files, as `plait.vdj.sharing`, and write it to `output`.

    `by_subject` is the table of clonotypes and subjects, if it is wanted.
    """
    found = sharing(inputs, subject=subject, layout=layout, executor=executor)
    write_sharing(found.clonotypes, output, found, inputs=inputs)
    if by_subject is not None:
        write_sharing(found.by_subject, by_subject, found, inputs=[*inputs, output])
    return found


def write_sharing(table: pa.Table, output: _Path, found: SharingTable, *, inputs: Sequence[_Path]) -> None:
    """Write one of the two tables, with what it was made from in its metadata.

    `output`: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    """
    facts = {
        "version": __version__,
        "inputs": [os.path.realpath(path) for path in inputs],
        "rows": found.rows,
        "subjects": dict(found.subjects),
        "left_out": dict(found.left_out),
    }
    metadata = {"plait.sharing": json.dumps(facts, sort_keys=True)}
    with open_table(output, table.schema, metadata=metadata, inputs=inputs) as writer:
        for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
            writer.write(batch)
