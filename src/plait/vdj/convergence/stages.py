"""The stages of a study that go over all rows: counting, dealing out, grouping; and the folder of a study.

Rows are dealt out to parts by their clonotype, so that each part fits in memory and has whole clonotypes. A
task reads a stretch of one file's counts and writes one or more pieces: Arrow files whose block i has the
rows of part i. Part i is block i of all pieces, so that it is read without the rest. The rows of one subject
that show one clonotype are a pair; tables of clonotypes and of pairs come in parts, each with whole
clonotypes only.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet
from numpy.typing import NDArray

from plait._version import __version__
from plait.errors import FormatError
from plait.formats.atomic import AtomicFile, check_replaceable, claim_folder, output_errors
from plait.formats.checkpoints import Checkpoint, KeptSteps, digest_of
from plait.formats.files import content_digest
from plait.formats.sorted_runs import deal_rows, dealt_rows, row_hash
from plait.run.executor import Executor, LocalExecutor, Progress
from plait.run.rows import RunningSums
from plait.settings import package_digest
from plait.stats.design_file import DesignWriter
from plait.vdj.calls import CLONOTYPE, first_genes, named_rows, text_of, whole_numbers
from plait.vdj.convergence.figure_tables import FigureTables
from plait.vdj.convergence.pgen_tables import PGEN_FIELDS, FigureSettings, PgenColumns
from plait.vdj.convergence.public_clonotypes import PublicClonotypes, public_clonotypes, write_pairs
from plait.vdj.convergence.regression import PredictorSet
from plait.vdj.convergence.settings import (
    OF_PGEN,
    OF_SHARING,
    CountedSample,
    PlannedSample,
    StudySettings,
    count_sample,
)
from plait.vdj.count_files import CountPlan
from plait.vdj.counting import region_names
from plait.vdj.model.recombination_model import RecombinationModel

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
    fields += [pa.field(name, pa.int32()) for name in region_names(settings.chain)]
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
        self._regions = region_names(settings.chain)
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
            "v_gene": first_genes(batch[sample.v_call]),
            "j_gene": first_genes(batch[sample.j_call]),
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
_OF_SUBJECT = np.uint64(0xA0761D6478BD642F)


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
        hashed = row_hash([rows[name].combine_chunks() for name in CLONOTYPE])
        rows, kept = _collapsed(rows, hashed)
        part = (hashed[kept] % np.uint64(self.parts)).astype(np.int64)
        deal_rows(path, rows, part, self.parts)


def part_rows(pieces: Sequence[Path], part: int, schema: pa.Schema) -> pa.Table:
    """All rows of a part, in input order, from the pieces in order; FormatError if one is damaged."""
    return pa.Table.from_batches(dealt_rows(pieces, part), schema=schema)


def _collapsed(rows: pa.Table, hashed: NDArray[np.uint64]) -> tuple[pa.Table, NDArray[np.int64]]:
    """Rows of one clonotype and subject made one, where there are many such; and what each stands for."""
    subject = np.asarray(rows["subject"].combine_chunks().dictionary_encode().indices).astype(np.uint64)
    distinct = np.unique(hashed + subject * _OF_SUBJECT).size
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


_MARKER: Final = "plait-study.json"
_KIND: Final = "plait study"


class StudyFolder:
    """A folder that belongs to one study; made if it is not there, but its parent must be.

    `counts`, by default inside, are path counts and Pgen that several studies share; `parts` rows put aside
    while the study runs, `progress` what of it is done. `study`, study.json, is there when it is finished.
    InvalidInput if the folder holds something else, or its parent is missing; FormatError if it cannot be
    written.
    """

    def __init__(self, path: Path, *, counts: Path | None = None) -> None:
        self.path = path
        self.counts = path / "counts" if counts is None else counts
        self.parts = path / "parts"
        self.progress = path / "parts" / "progress"
        self.design = path / "parts" / "design"
        self.clonotypes = path / "clonotypes"
        self.tables = path / "tables"
        self.sharing = path / "sharing.parquet"
        self.study = path / "study.json"
        claim_folder(path, marker=_MARKER, kind=_KIND, what="study")
        # Of a run that was killed while it cleaned up.
        for folder in (self.parts, self.clonotypes, self.tables):
            shutil.rmtree(_put_away(folder), ignore_errors=True)
        for folder in (self.counts, self.parts, self.design, self.clonotypes, self.tables):
            with output_errors(folder):
                folder.mkdir(exist_ok=True)

    def check_replaceable(self, *, resume: bool, force: bool) -> None:
        """Check that an earlier study may be replaced; its path counts never are."""
        check_replaceable(self.path, self.study, self.progress, what="study", resume=resume, force=force)

    def start_anew(self) -> None:
        """Remove all results but the path counts."""
        self.sharing.unlink(missing_ok=True)
        for folder in (self.parts, self.clonotypes, self.tables):
            _remove(folder)
        for folder in (self.parts, self.design, self.clonotypes, self.tables):
            with output_errors(folder):
                folder.mkdir(exist_ok=True)

    def pairs(self, part: int) -> Path:
        """Clonotypes in subjects of a part, put aside."""
        return self.parts / f"pairs-{part:05d}.parquet"

    def tidy(self) -> None:
        """Remove what a finished study no longer needs."""
        _remove(self.parts)


def _remove(folder: Path) -> None:
    """Remove a folder in one step: a run that is killed meanwhile leaves no half of it under its name."""
    away = _put_away(folder)
    with suppress(OSError):
        folder.rename(away)
        folder = away
    shutil.rmtree(folder, ignore_errors=True)


def _put_away(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.removed")


#: Rows of a row group: some 20 MB with a sweep of 55 models.
_GROUP_ROWS = 1 << 15
#: Columns whose values hardly repeat: to look for a dictionary takes longer than to write them.
_MANY_VALUES = frozenset(("junction", "path_count", "path_count_sweep", "pgen_nt"))


def group_rows(
    rows: pa.Table, settings: StudySettings, *, duplicate_count: bool, pgen: PgenColumns | None = None
) -> tuple[pa.Table, pa.Table]:
    """Clonotypes, and pairs of clonotype and subject; by junction, v_gene and j_gene, pairs then by subject.

    `rows` (`row_schema`) are in input order, all rows of every clonotype. Path count, status and regions of a
    clonotype are those of its first row that has a path count, of its first row if none has one: rows with
    different alleles of a gene can differ. With `pgen`, clonotypes have `PGEN_FIELDS` and pairs ``pgen_nt``.
    """
    pairs = RowGroups(rows, [*CLONOTYPE, "subject"])
    starts = pairs.coarser(len(CLONOTYPE))
    stand_in = pa.array(pairs.representatives(starts))
    columns: dict[str, Any] = {name: rows[name].take(stand_in) for name in rows.column_names}
    first_pair = np.searchsorted(pairs.starts, starts)
    subjects = np.diff(first_pair, append=len(pairs))
    columns["subjects"] = pa.array(subjects)
    columns["rows"] = pairs.sums("rows", starts)
    columns["duplicate_count"] = pairs.sums("duplicate_count", starts)
    columns["junction_length"] = pc.binary_length(columns["junction"])
    clonotypes = _table(columns, clonotype_schema(settings, duplicate_count=duplicate_count))
    of = pa.array(np.repeat(np.arange(len(starts)), subjects))
    schema = pair_schema(settings, duplicate_count=duplicate_count)
    if pgen is not None:
        clonotypes = pgen.added(clonotypes)
        schema = schema.append(PGEN_FIELDS[0])
    taken = {name: clonotypes[name].take(of) for name in schema.names if name in clonotypes.column_names}
    taken["subject"] = rows["subject"].take(pa.array(pairs.order[pairs.starts]))
    taken["rows"] = pairs.sums("rows")
    taken["duplicate_count"] = pairs.sums("duplicate_count")
    return clonotypes, _table(taken, schema)


def write_clonotypes(clonotypes: pa.Table, path: Path) -> None:
    """Write a part of the table of clonotypes as Parquet; FormatError if the disk is full."""
    few_values = [name for name in clonotypes.column_names if name not in _MANY_VALUES]
    with AtomicFile(path, durable=False) as file, output_errors(path):
        arrow_parquet.write_table(
            clonotypes,
            file.stream,
            row_group_size=_GROUP_ROWS,
            use_dictionary=few_values,
            compression="zstd",
            compression_level=1,
        )


def _table(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)


_CHUNK_ROWS = 1 << 16


@dataclass(slots=True, kw_only=True)
class Grouped(RunningSums):
    """What came of a part, or of all: clonotypes, shared ones, those with a path count; sums for the figures.

    `designs` are files of predictors, of parts in which a clonotype has a path count and, where the study has
    it, Pgen.
    """

    figures: FigureTables
    clonotypes: int = 0
    shared: int = 0
    counted: int = 0
    designs: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartWork:
    """Does one part; called with its number, in any process.

    `pieces` are names of the rows that were put aside, in order. Without `predictors` there is no regression.
    """

    settings: StudySettings
    folder: StudyFolder
    predictors: PredictorSet | None
    pieces: Sequence[str]
    duplicate_count: bool
    pgen: PgenColumns | None = None

    def __call__(self, part: int) -> Grouped:
        """Do a part."""
        pieces = [self.folder.parts / name for name in self.pieces]
        rows = part_rows(pieces, part, row_schema(self.settings))
        clonotypes, pairs = group_rows(
            rows, self.settings, duplicate_count=self.duplicate_count, pgen=self.pgen
        )
        del rows
        write_clonotypes(clonotypes, self.folder.clonotypes / f"part-{part:05d}.parquet")
        write_pairs(clonotypes, pairs, self.folder.pairs(part))
        figures = FigureTables(figure_settings(self.settings))
        figures.add_clonotypes(clonotypes)
        figures.add_pairs(pairs)
        del pairs
        shared = int((np.asarray(clonotypes["subjects"]) >= self.settings.shared_by).sum())
        counted = clonotypes.filter(pc.is_valid(clonotypes["path_count"]))
        found = Grouped(figures=figures, clonotypes=len(clonotypes), shared=shared, counted=len(counted))
        known = counted if self.pgen is None else counted.filter(pc.is_valid(counted["pgen_nt"]))
        if self.predictors is not None and known.num_rows:
            found.designs.append(self.folder.design / f"part-{part:05d}.design")
            self._write_design(found.designs[0], known, self.predictors)
        return found

    def _write_design(self, path: Path, counted: pa.Table, predictors: PredictorSet) -> None:
        outcome = np.asarray(counted["subjects"]) >= self.settings.shared_by
        rows = min(_CHUNK_ROWS, counted.num_rows)
        with DesignWriter(path, predictors.names, chunk_rows=rows) as writer:
            for start in range(0, counted.num_rows, rows):
                writer.write(predictors.values(counted.slice(start, rows)), outcome[start : start + rows])


def figure_settings(settings: StudySettings) -> FigureSettings:
    """Settings of the figure tables of a study."""
    pi, nu = settings.model.axes if settings.model.is_sweep else ((), ())
    return FigureSettings(shared_by=settings.shared_by, pi=pi, nu=nu, pgen=settings.with_pgen)


#: Rows of a part take about this much memory, several times over while they are grouped.
_PART_BYTES = 96 << 20
#: Tasks worked on at a time in one process, each of which takes some 300 MB.
_MOST_TASKS = 8
#: Settings that rows put aside do not depend on.
_LATER = frozenset(
    (
        *("regression", "lambdas", "folds", "halves", "seed", "shared_by", "predictor_models"),
        *OF_SHARING,
        *OF_PGEN,
    )
)
_DONE = pa.schema([("done", pa.large_string())])


@dataclass(frozen=True, slots=True)
class StudyProgress:
    """How far a study is: bytes, rows or models of a stage that are done, and all of them."""

    stage: str
    done: int
    total: int


@dataclass(slots=True, kw_only=True)
class DealtRows:
    """All rows, dealt out: totals, the subjects of each sample with their rows, and the number of parts."""

    totals: Dealt
    subjects: list[Counter[str]]
    parts: int


Report = Callable[[StudyProgress], None]


class Stages:
    """The stages of a study that go over all rows; `seconds` of each are told when it is over."""

    def __init__(
        self, settings: StudySettings, folder: StudyFolder, executor: Executor, report: Report
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.executor = executor
        self.report = report
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Take the time of a stage."""
        start = time.perf_counter()
        yield
        self.seconds[stage] = round(time.perf_counter() - start, 3)
        # What one stage has needed, the next one can have.
        pa.default_memory_pool().release_unused()

    def begin(self, *, resume: bool) -> None:
        """Check, before long work, that what a stopped run has put aside can be used.

        InvalidInput with `resume`, if it is of another study.
        """
        settings = {name: value for name, value in self.settings.as_dict().items() if name not in _LATER}
        Checkpoint(
            self.folder.parts / "run",
            key={"version": __version__, "sources": package_digest(), "settings": settings},
            resume=resume,
        )

    def steps(
        self, samples: list[CountedSample], parts: int, subjects: Mapping[str, Mapping[str, object]]
    ) -> KeptSteps:
        """What is kept of all that comes after dealing out, for no other settings than these."""
        key = {
            **_key(samples, parts),
            "settings": self.settings.as_dict(),
            "files": [str(sample.source) for sample in samples],
            "subjects": subjects,
        }
        digest = digest_of(json.dumps(key, sort_keys=True).encode())
        return KeptSteps(self.folder.parts / f"steps-{digest.hex()}", key)

    def count(self, planned: list[PlannedSample], plan: CountPlan) -> list[CountedSample]:
        """Path counts of all files, kept in the folder of counts."""
        counting = partial(count_sample, settings=self.settings, plan=plan, folder=self.folder.counts)
        total = sum(sample.size for sample in planned)
        found: list[CountedSample] = []
        done = 0

        def told(size: int) -> None:
            self.report(StudyProgress("counting paths", size, total))

        with self.timed("counting"):
            if self.executor.elsewhere and len(planned) > 1:
                return self._count_elsewhere(planned, counting, told)
            for sample in planned:
                before = done

                def of_file(state: Progress, before: int = before) -> None:
                    told(before + state.bytes_read)

                told(done)
                found.append(counting(sample, executor=self.executor, progress=of_file))
                done += sample.size
        return found

    def _count_elsewhere(
        self,
        planned: Sequence[PlannedSample],
        counting: Callable[..., CountedSample],
        told: Callable[[int], None],
    ) -> list[CountedSample]:
        """Count whole files; one process that writes all counts would be slower than two that count."""
        counting = partial(counting, executor=LocalExecutor(1))
        names = [(one.sample.path.name, one.size) for one in planned]
        # What may be the same content twice has one table of counts: one process after the other.
        places = [place for place, name in enumerate(names) if names.index(name) == place]
        sent = (_absolute(planned[place]) for place in places)
        found: dict[int, CountedSample] = {}
        done = 0
        told(done)
        with closing(
            self.executor.map(counting, sent, named=lambda one: repr(str(one.sample.path)))
        ) as results:
            for place, counted in zip(places, results, strict=True):
                found[place] = counted
                done += planned[place].size
                told(done)
        for place in sorted(set(range(len(planned))) - set(found)):
            found[place] = counting(planned[place])
        return [replace(found[place], source=one.sample.path) for place, one in enumerate(planned)]

    def deal(self, samples: list[CountedSample], *, resume: bool) -> DealtRows:
        """Deal all rows out to parts; what a run that was stopped has done is taken over.

        There are so many parts that each fits in memory. Their number decides the order of clonotypes, and
        with it the folds and halves of the regression; no other result depends on it. InvalidInput with
        `resume`, if what is there is of another study.
        """
        rows = sum(sample.rows for sample in samples)
        number = max(1, -(-rows * row_width(self.settings) // _PART_BYTES))
        checkpoint = Checkpoint(self.folder.progress, key=_key(samples, number), resume=resume)
        tasks = stretches(samples)
        known = {task.number: _stored(checkpoint, task, self.folder) for task in tasks} if resume else {}
        missing = [task for task in tasks if known.get(task.number) is None]
        dealer = Dealer(settings=self.settings, parts=number, folder=self.folder.parts)
        found = DealtRows(totals=Dealt(), subjects=[Counter() for _ in samples], parts=number)
        place = {sample.source: k for k, sample in enumerate(samples)}
        work = self.executor.map(dealer, missing, most=_MOST_TASKS, named=_stretch_name)
        with self.timed("sorting"), closing(work) as results:
            for task in tasks:
                dealt = known.get(task.number)
                if dealt is None:
                    dealt = next(results)
                    done = pa.record_batch([pa.array([json.dumps(dealt.state())])], schema=_DONE)
                    checkpoint.put(task.number, done)
                found.totals.merge(dealt)
                of_sample = found.subjects[place[task.sample.source]]
                of_sample.update(dealt.subjects)
                of_sample.update(dict.fromkeys(dealt.left_out_of, 0))
                self.report(StudyProgress("sorting rows by clonotype", found.totals.rows, rows))
            _check_same_counts(samples, checkpoint)
        return found

    def group(
        self,
        dealt: DealtRows,
        predictors: PredictorSet | None,
        *,
        duplicate_count: bool,
        pgen: PgenColumns | None,
    ) -> Grouped:
        """Group all parts to clonotypes."""
        work = PartWork(
            settings=self.settings,
            folder=self.folder,
            predictors=predictors,
            pieces=tuple(dealt.totals.pieces),
            duplicate_count=duplicate_count,
            pgen=pgen,
        )
        found = Grouped(figures=FigureTables(figure_settings(self.settings)))
        name = "part {} of the clonotypes".format
        parts = self.executor.map(work, range(dealt.parts), most=_MOST_TASKS, named=name)
        with self.timed("grouping"), closing(parts) as results:
            for number, part in enumerate(results, start=1):
                found.merge(part)
                self.report(StudyProgress("grouping clonotypes", number, dealt.parts))
        return found

    def share(
        self, samples: Sequence[CountedSample], parts: int, model: RecombinationModel | None
    ) -> PublicClonotypes:
        """Who shares what, and what more than generation explains, from the pairs that were put aside."""
        put_aside = self.folder.parts / self.folder.sharing.name
        with self.timed("sharing"):
            found = public_clonotypes(
                [self.folder.pairs(part) for part in range(parts)],
                put_aside,
                self.settings,
                model,
                sources=[sample.source for sample in samples],
                executor=self.executor,
                progress=lambda state: self.report(
                    StudyProgress("comparing subjects", state.bytes_read, state.total_bytes)
                ),
            )
            with output_errors(self.folder.sharing):
                put_aside.replace(self.folder.sharing)
        return found


def _absolute(planned: PlannedSample) -> PlannedSample:
    """The same file, for processes in other folders."""
    return replace(planned, sample=replace(planned.sample, path=planned.sample.path.absolute()))


def _check_same_counts(samples: list[CountedSample], checkpoint: Checkpoint) -> None:
    """Check that inputs that were dealt out themselves are those that were looked at before."""
    for sample in samples:
        if sample.counts == sample.source.absolute() and content_digest(sample.source) != sample.digest:
            checkpoint.remove()
            raise FormatError(
                sample.source,
                found="another content than before: it was changed while it was read",
                expected="a file that stays as it is",
                hint="run again when nothing writes to it",
            )


def _stretch_name(stretch: Stretch) -> str:
    return f"row groups {stretch.first} to {stretch.last - 1} of {str(stretch.sample.counts)!r}"


def _stored(checkpoint: Checkpoint, task: Stretch, folder: StudyFolder) -> Dealt | None:
    """What a finished task did, None if it is to be done."""
    block = checkpoint.get(task.number)
    if block is None:
        return None
    dealt = Dealt.from_state(json.loads(block["done"][0].as_py()))
    return dealt if all((folder.parts / name).is_file() for name in dealt.pieces) else None


def _key(samples: list[CountedSample], parts: int) -> dict[str, Any]:
    """What must be equal for the rows that were put aside to be used, beside the settings."""
    inputs = [
        {
            "content": sample.digest,
            "counts": sample.counts.name,
            "subject": sample.subject,
            "subject column": sample.subject_column,
            "duplicate_count": sample.duplicate_count,
        }
        for sample in samples
    ]
    return {"inputs": inputs, "parts": parts}
