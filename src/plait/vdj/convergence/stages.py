"""The stages of a study that go over all rows: counting, dealing out, grouping; and the folder of a study."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from plait._version import __version__
from plait.errors import FormatError
from plait.formats.atomic import AtomicFile, check_replaceable, claim_folder, output_errors
from plait.formats.checkpoints import Checkpoint
from plait.formats.compression import content_digest
from plait.run.executor import Executor, LocalExecutor
from plait.run.rows import Progress, RunningSums
from plait.settings import source_digest
from plait.stats.design_file import DesignWriter
from plait.vdj.clonotype_names import CLONOTYPE
from plait.vdj.convergence.correlations import FigureSettings
from plait.vdj.convergence.count_cache import CountedSample, PlannedSample, count_sample
from plait.vdj.convergence.figure_tables import FigureTables
from plait.vdj.convergence.partition import (
    Dealer,
    Dealt,
    RowGroups,
    Stretch,
    clonotype_schema,
    pair_schema,
    part_rows,
    row_schema,
    row_width,
    stretches,
)
from plait.vdj.convergence.pgen_tables import PGEN_FIELDS, PgenColumns
from plait.vdj.convergence.regression import PredictorSet
from plait.vdj.convergence.settings import OF_PGEN, StudySettings
from plait.vdj.count_files import CountPlan

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
        for folder in (self.parts, self.clonotypes, self.tables):
            _remove(folder)
        for folder in (self.parts, self.design, self.clonotypes, self.tables):
            with output_errors(folder):
                folder.mkdir(exist_ok=True)

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
        package = Path(__file__).parents[2]
        key = {
            "version": __version__,
            "sources": source_digest(package.rglob("*.py")),
            "settings": {
                name: value for name, value in self.settings.as_dict().items() if name not in _LATER
            },
        }
        Checkpoint(self.folder.parts / "run", key=key, resume=resume)

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
        parts = self.executor.map(work, range(dealt.parts), most=_MOST_TASKS, named=_part_name)
        with self.timed("grouping"), closing(parts) as results:
            for number, part in enumerate(results, start=1):
                found.merge(part)
                self.report(StudyProgress("grouping clonotypes", number, dealt.parts))
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


def _part_name(part: int) -> str:
    return f"part {part} of the clonotypes"


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
