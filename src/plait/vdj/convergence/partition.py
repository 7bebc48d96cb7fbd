"""Rows dealt out to parts by their clonotype, so that each part fits in memory and has whole clonotypes.

A task reads a stretch of one file's counts and writes one or more pieces: Arrow files whose block i has the
rows of part i. Part i is block i of all pieces, so that it is read without the rest. Also the columns of a
study's tables: the rows of one subject that show one clonotype are a pair; tables of clonotypes and of pairs
come in parts, each with whole clonotypes only.

A module of its own: `stages` with it and `figure_tables` would be too long a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as arrow_ipc
import pyarrow.parquet as arrow_parquet
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.sorted_runs import text_hash
from plait.run.rows import RunningSums
from plait.vdj.clonotype_names import CLONOTYPE, GeneNames, named_rows, text_of, whole_numbers
from plait.vdj.convergence.count_cache import CountedSample
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.counting import D_REGION_COLUMNS, REGION_COLUMNS

#: Rows of a task, about.
_STRETCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Row groups ``[first, last)`` of one file's counts: one task; `number` is its place among all rows."""

    number: int
    sample: CountedSample
    first: int
    last: int


@dataclass(slots=True, kw_only=True)
class Dealt(RunningSums):
    """What a task did: its totals.

    `left_out` are rows in no clonotype, by reason, `left_out_of` by subject, where known. `statuses` are
    those of path counts; `subjects` are rows by subject without those left out. `pieces` are names, in order.
    """

    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    subjects: Counter[str] = field(default_factory=Counter)
    left_out_of: Counter[str] = field(default_factory=Counter)
    v_genes: Counter[str] = field(default_factory=Counter)
    j_genes: Counter[str] = field(default_factory=Counter)
    pieces: list[str] = field(default_factory=list)


def stretches(samples: Sequence[CountedSample]) -> list[Stretch]:
    """The tasks of the files, in order."""
    found: list[Stretch] = []
    for sample in samples:
        with arrow_parquet.ParquetFile(sample.counts) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        first = rows = 0
        for group, size in enumerate(sizes, start=1):
            rows += size
            if rows >= _STRETCH_ROWS or group == len(sizes):
                found.append(Stretch(number=len(found), sample=sample, first=first, last=group))
                first, rows = group, 0
    return found


class RowGroups:
    """Groups of equal rows, ordered by the bytes of their texts.

    `rows` come in input order and have a column ``path_count``; `names` are text columns without nulls, the
    first one first in the order of groups. `order` is the row numbers group by group, in a group in input
    order; `starts` is where each group begins in it.
    """

    def __init__(self, rows: pa.Table, names: Sequence[str]) -> None:
        self._rows = rows
        self._codes = [_ranks(rows[name].combine_chunks()) for name in names]
        self.order: NDArray[np.int64] = np.lexsort(self._codes[::-1])
        self.starts = self.coarser(len(names))

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.starts)

    def coarser(self, names: int) -> NDArray[np.int64]:
        """Where groups by only the first few columns begin in `order`."""
        new = np.zeros(len(self.order), np.bool_)
        new[:1] = True
        for code in self._codes[:names]:
            ordered = code[self.order]
            new[1:] |= ordered[1:] != ordered[:-1]
        return np.flatnonzero(new)

    @property
    def first_counted(self) -> NDArray[np.int64]:
        """For each group its first row with a path count, in input order; its first row if none has one."""
        return self.representatives(self.starts)

    def representatives(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same for groups that begin at `starts` in `order`."""
        if not len(starts):
            return np.zeros(0, np.int64)
        known = np.asarray(self._rows["path_count"].combine_chunks().is_valid())
        rows = len(self.order)
        preferred = self.order + np.where(known[self.order], 0, rows)
        found: NDArray[np.int64] = np.minimum.reduceat(preferred, starts) % rows
        return found

    def sums(self, name: str, starts: NDArray[np.int64] | None = None) -> pa.Array:
        """Sums of a column of whole numbers over groups (by default these), null where all are null."""
        begins = self.starts if starts is None else starts
        if not len(begins):
            return pa.array([], pa.int64())
        column = self._rows[name].combine_chunks()
        known = np.asarray(column.is_valid())[self.order]
        values = np.asarray(column.fill_null(0))[self.order]
        none = ~np.logical_or.reduceat(known, begins)
        return pa.array(np.add.reduceat(values, begins), pa.int64(), mask=none)


def _ranks(column: pa.Array) -> NDArray[np.int64]:
    """For each text its place among the distinct ones, in the order of their bytes."""
    encoded = column.dictionary_encode()
    place = np.empty(len(encoded.dictionary), np.int64)
    place[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(place.size)
    found: NDArray[np.int64] = place[np.asarray(encoded.indices)]
    return found


def region_names(settings: StudySettings) -> list[str]:
    """Names of the region columns that there are."""
    if settings.with_d:
        return list(REGION_COLUMNS)
    left_out = {*D_REGION_COLUMNS, "d_match_length"}
    return [name for name in REGION_COLUMNS if name not in left_out]


def clonotype_schema(settings: StudySettings, *, duplicate_count: bool = True) -> pa.Schema:
    """Columns of the table of clonotypes.

    junction, v_gene and j_gene are never null; path_count and the region columns are null unless status is
    ok, those of D also where no D nucleotide is found; path_count_sweep is a fixed-size list over
    `settings.sweep_models`, with items null unless status is ok.
    """
    fields = [pa.field(name, pa.large_string()) for name in CLONOTYPE]
    fields += [pa.field("subjects", pa.int32()), pa.field("rows", pa.int64())]
    if duplicate_count:
        fields.append(pa.field("duplicate_count", pa.int64()))
    counted = _counted_fields(settings)
    return pa.schema([*fields, *counted[:2], pa.field("junction_length", pa.int32()), *counted[2:]])


def _counted_fields(settings: StudySettings) -> list[pa.Field]:
    """Status, path count, regions and sweep."""
    number = pa.float64() if settings.overflow == "float" else pa.int64()
    fields = [pa.field("status", pa.string()), pa.field("path_count", number)]
    fields += [pa.field(name, pa.int32()) for name in region_names(settings)]
    models = len(settings.sweep_models)
    if models:
        fields.append(pa.field("path_count_sweep", pa.list_(pa.field("item", number), models)))
    return fields


def pair_schema(settings: StudySettings, *, duplicate_count: bool = True) -> pa.Schema:
    """Columns of the table of clonotypes and subjects.

    subject; rows and duplicate_count of the clonotype in this subject; then, of the clonotype: v_gene,
    j_gene, subjects, status, path_count, junction_length and the region columns.
    """
    fields = [pa.field("subject", pa.large_string()), pa.field("rows", pa.int64())]
    if duplicate_count:
        fields.append(pa.field("duplicate_count", pa.int64()))
    of_clonotype = clonotype_schema(settings, duplicate_count=duplicate_count)
    taken = {"junction", "rows", "duplicate_count", "path_count_sweep"}
    return pa.schema([*fields, *(field for field in of_clonotype if field.name not in taken)])


_READ_BYTES = 32 << 20


class StretchRows:
    """Reads a stretch and names its rows; `dealt` has the totals of the rows read so far."""

    def __init__(self, settings: StudySettings, stretch: Stretch) -> None:
        self._settings = settings
        self._stretch = stretch
        self._sample = stretch.sample
        self._genes = GeneNames()
        self._regions = region_names(settings)
        self._sweep = _sweep_column(settings)
        self.dealt = Dealt()

    def tables(self) -> Iterator[pa.Table]:
        """Rows that have a clonotype and a subject, with the columns of `row_schema`.

        FormatError if the counts are damaged, or a column holds something else than numbers.
        """
        sample = self._sample
        optional = [sample.subject_column, sample.duplicate_count, self._sweep]
        columns = [sample.junction, sample.v_call, sample.j_call, "status", "path_count", *self._regions]
        columns += [name for name in optional if name is not None]
        try:
            with arrow_parquet.ParquetFile(sample.counts, pre_buffer=False, buffer_size=1 << 20) as file:
                width = 8 * _items(file.schema_arrow, self._sweep) + 400
                groups = list(range(self._stretch.first, self._stretch.last))
                rows = max(256, _READ_BYTES // width)
                for batch in file.iter_batches(rows, row_groups=groups, columns=list(dict.fromkeys(columns))):
                    yield self._named(batch)
        except (pa.ArrowException, OSError) as error:
            raise FormatError(
                sample.counts,
                found=f"damaged or unreadable Parquet ({error})",
                expected="path counts as this study wrote them",
                hint="remove the file and run again",
            ) from error

    def _named(self, batch: pa.RecordBatch) -> pa.Table:
        sample = self._sample
        columns = {
            "junction": pc.utf8_upper(text_of(batch[sample.junction])),
            "v_gene": self._genes.of(batch[sample.v_call]),
            "j_gene": self._genes.of(batch[sample.j_call]),
            "subject": self._subject(batch),
        }
        dealt = self.dealt
        dealt.rows += batch.num_rows
        dealt.statuses.update(_value_counts(text_of(batch["status"])))
        kept = named_rows(columns, dealt.left_out)
        keep = pa.array(kept)
        unnamed = columns["subject"].filter(pa.array(~kept))
        dealt.left_out_of.update({name: n for name, n in _value_counts(unnamed).items() if name})
        columns["rows"] = pa.array(np.ones(batch.num_rows, np.int64))
        columns["duplicate_count"] = self._duplicate_count(batch)
        for name in ("status", "path_count", *self._regions):
            columns[name] = batch[name]
        if self._sweep is not None:
            columns["path_count_sweep"] = _summed(batch[self._sweep], len(self._settings.sweep_models))
        table = pa.table(columns).filter(keep)
        for names, column in (
            (dealt.subjects, "subject"),
            (dealt.v_genes, "v_gene"),
            (dealt.j_genes, "j_gene"),
        ):
            names.update(_value_counts(table[column]))
        return table

    def _subject(self, batch: pa.RecordBatch) -> pa.Array:
        if self._sample.subject_column is None:
            name = pa.scalar(self._sample.subject, pa.large_string())
            return pa.repeat(name, batch.num_rows)
        return text_of(batch[self._sample.subject_column])

    def _duplicate_count(self, batch: pa.RecordBatch) -> pa.Array:
        name = self._sample.duplicate_count
        if name is None:
            return pa.nulls(batch.num_rows, pa.int64())
        return whole_numbers(batch[name], path=str(self._sample.source), name=name)


def _sweep_column(settings: StudySettings) -> str | None:
    if not settings.sweep_models:
        return None
    names = {"vj": "no_d_sweep", "vdj": "sweep_by_d", "vddj": "sweep_by_dd"}
    return f"path_count_{names[settings.chain]}"


def _items(schema: pa.Schema, column: str | None) -> int:
    return 0 if column is None else int(schema.field(column).type.list_size)


def _summed(lists: pa.Array, models: int) -> pa.Array:
    """Lists over D alleles and models as lists over models, null where no D allele has a count."""
    flat = lists.flatten()
    known = np.asarray(flat.is_valid()).reshape(len(lists), -1, models)
    if known.shape[1] == 1:
        return pa.FixedSizeListArray.from_arrays(flat, models)
    values = np.asarray(flat.fill_null(0)).reshape(known.shape)
    total = values.sum(axis=1)
    none = ~known.any(axis=1)
    if values.dtype.kind == "i":
        # A sum that does not fit is not known; whether it fits is told by its halves.
        none |= (values >> 32).sum(axis=1) + ((values & 0xFFFFFFFF).sum(axis=1) >> 32) >= 1 << 31
    return pa.FixedSizeListArray.from_arrays(pa.array(total.ravel(), mask=none.ravel()), models)


def _value_counts(column: pa.Array | pa.ChunkedArray) -> dict[str, int]:
    counts = pc.value_counts(column)
    return dict(zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True))


#: Most bytes of a piece, whose rows are all in memory when it is written.
_PIECE_BYTES = 96 << 20
#: Bytes of a row in memory beside its sweep: junction, genes, subject, counts and regions.
_PLAIN_BYTES = 240
#: Share of distinct (clonotype, subject) among rows up to which the others are not kept.
_WORTH_COLLAPSING = 0.9
_GENE_HASHES = (np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F))


def row_width(settings: StudySettings) -> int:
    """Bytes that a row takes in memory, about."""
    return _PLAIN_BYTES + 8 * len(settings.sweep_models)


def row_schema(settings: StudySettings) -> pa.Schema:
    """Columns of the rows in a piece."""
    fields = [pa.field(name, pa.large_string()) for name in (*CLONOTYPE, "subject")]
    fields += [pa.field("rows", pa.int64()), pa.field("duplicate_count", pa.int64())]
    return pa.schema([*fields, *_counted_fields(settings)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealer:
    """Deals out the rows of a stretch to parts, as pieces in a folder; called with one, in any process."""

    settings: StudySettings
    parts: int
    folder: Path

    def __call__(self, stretch: Stretch) -> Dealt:
        """Write the pieces of a stretch."""
        work = StretchRows(self.settings, stretch)
        schema = row_schema(self.settings)
        width = row_width(self.settings)
        held: list[pa.Table] = []
        held_rows = 0
        names = work.dealt.pieces
        for table in work.tables():
            held.append(table)
            held_rows += table.num_rows
            if held_rows * width >= _PIECE_BYTES:
                names.append(f"rows-{stretch.number:06d}-{len(names):03d}.arrow")
                self._write(self.folder / names[-1], pa.concat_tables(held).cast(schema))
                held, held_rows = [], 0
        if held_rows:
            names.append(f"rows-{stretch.number:06d}-{len(names):03d}.arrow")
            self._write(self.folder / names[-1], pa.concat_tables(held).cast(schema))
        return work.dealt

    def _write(self, path: Path, rows: pa.Table) -> None:
        hashed = _clonotype_hash(rows)
        rows, kept = _collapsed(rows, hashed)
        part = (hashed[kept] % np.uint64(self.parts)).astype(np.int64)
        order = np.argsort(part, kind="stable")
        ends = np.cumsum(np.bincount(part, minlength=self.parts))
        table = rows.take(pa.array(order)).combine_chunks()
        options = arrow_ipc.IpcWriteOptions(compression="lz4")
        with (
            AtomicFile(path, durable=False) as file,
            output_errors(path),
            arrow_ipc.new_file(file.stream, rows.schema, options=options) as writer,
        ):
            start = 0
            for end in ends.tolist():
                writer.write_batch(_one_batch(table.slice(start, end - start)))
                start = end


def part_rows(pieces: Sequence[Path], part: int, schema: pa.Schema) -> pa.Table:
    """All rows of a part, in input order, from the pieces in order; FormatError if one is damaged."""
    found = []
    for path in pieces:
        try:
            with pa.OSFile(str(path)) as source, arrow_ipc.open_file(source) as reader:
                found.append(reader.get_batch(part))
        except (pa.ArrowException, OSError) as error:
            raise FormatError(
                path,
                found=f"a damaged or unreadable piece ({error})",
                expected="the rows that this study has put aside",
                hint="something else changed the folder, or the disk is failing; run again without --resume",
            ) from error
    return pa.Table.from_batches(found, schema=schema)


def _clonotype_hash(rows: pa.Table) -> NDArray[np.uint64]:
    found = text_hash(rows["junction"].combine_chunks())
    for factor, name in zip(_GENE_HASHES, CLONOTYPE[1:], strict=True):
        encoded = rows[name].combine_chunks().dictionary_encode()
        found += factor * text_hash(encoded.dictionary)[np.asarray(encoded.indices)]
    found ^= found >> np.uint64(29)
    found *= _GENE_HASHES[0]
    found ^= found >> np.uint64(32)
    return found


def _collapsed(rows: pa.Table, hashed: NDArray[np.uint64]) -> tuple[pa.Table, NDArray[np.int64]]:
    """Rows of one clonotype and subject made one, where there are many such; and what each stands for."""
    subject = np.asarray(rows["subject"].combine_chunks().dictionary_encode().indices).astype(np.uint64)
    distinct = np.unique(hashed + subject * _GENE_HASHES[1]).size
    if distinct > _WORTH_COLLAPSING * len(hashed):
        return rows, np.arange(len(hashed))
    groups = RowGroups(rows, [*CLONOTYPE, "subject"])
    kept = groups.first_counted
    # In input order, so that the first one of a clonotype stays the first.
    order = np.argsort(kept)
    table = rows.take(pa.array(kept[order]))
    for name in ("rows", "duplicate_count"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), groups.sums(name).take(pa.array(order)))
    return table, kept[order]


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
