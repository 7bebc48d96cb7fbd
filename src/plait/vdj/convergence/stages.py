"""The stages of a study that go over all rows: counting, dealing out, grouping; and the folder of a study."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
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
from plait.run.rows import Progress
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
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.count_files import CountPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFiles:
    """Counts whole files; one process that writes all counts would be slower than two that count."""

    settings: StudySettings
    plan: CountPlan
    folder: Path

    def __call__(self, planned: PlannedSample) -> CountedSample:
        """Count one file here."""
        return count_sample(planned, self.settings, self.plan, self.folder, executor=LocalExecutor(1))

    def count(
        self, planned: Sequence[PlannedSample], executor: Executor, told: Callable[[int], None]
    ) -> list[CountedSample]:
        """Count all files; `told` gets the bytes of the files that are finished."""
        names = [(one.sample.path.name, one.size) for one in planned]
        # What may be the same content twice has one table of counts: one process after the other.
        alone = [names.index(name) == place for place, name in enumerate(names)]
        sent = [_absolute(one) for one, first in zip(planned, alone, strict=True) if first]
        found: dict[int, CountedSample] = {}
        done = 0
        told(done)
        places = [place for place, first in enumerate(alone) if first]
        with closing(executor.map(self, sent, named=lambda one: repr(str(one.sample.path)))) as results:
            for place, counted in zip(places, results, strict=True):
                found[place] = counted
                done += planned[place].size
                told(done)
        for place in sorted(set(range(len(planned))) - set(found)):
            found[place] = self(planned[place])
        return [replace(found[place], source=one.sample.path) for place, one in enumerate(planned)]


def _absolute(planned: PlannedSample) -> PlannedSample:
    """The same file, for processes in other folders."""
    return replace(planned, sample=replace(planned.sample, path=planned.sample.path.absolute()))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartDone:
    """What came of a part: clonotypes, shared ones, those with a path count; its share of the figure tables.

    `design`, the predictors, is there if a clonotype has a path count and, where the study has it, Pgen.
    """

    clonotypes: int
    shared: int
    counted: int
    design: Path | None
    figures: FigureTables


@dataclass(frozen=True, slots=True, kw_only=True)
class PartWork:
    """Does one part; called with its number, in any process.

    `pieces` are names in the folder `rows`, in order. Without `predictors` there is no regression;
    `clonotypes` and `design` are where clonotypes and predictors go.
    """

    settings: StudySettings
    predictors: PredictorSet | None
    rows: Path
    pieces: Sequence[str]
    clonotypes: Path
    design: Path
    duplicate_count: bool
    pgen: PgenColumns | None = None

    def __call__(self, part: int) -> PartDone:
        """Do a part."""
        pieces = [self.rows / name for name in self.pieces]
        rows = part_rows(pieces, part, row_schema(self.settings))
        clonotypes, pairs = group_rows(
            rows, self.settings, duplicate_count=self.duplicate_count, pgen=self.pgen
        )
        del rows
        write_clonotypes(clonotypes, self.clonotypes / f"part-{part:05d}.parquet")
        figures = FigureTables(figure_settings(self.settings))
        figures.add_clonotypes(clonotypes)
        figures.add_pairs(pairs)
        del pairs
        shared = np.asarray(clonotypes["subjects"]) >= self.settings.shared_by
        counted = clonotypes.filter(pc.is_valid(clonotypes["path_count"]))
        design = None
        known = counted if self.pgen is None else counted.filter(pc.is_valid(counted["pgen_nt"]))
        if self.predictors is not None and known.num_rows:
            design = self.design / f"part-{part:05d}.design"
            self._write_design(design, known, self.predictors)
        return PartDone(
            clonotypes=clonotypes.num_rows,
            shared=int(shared.sum()),
            counted=counted.num_rows,
            design=design,
            figures=figures,
        )

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
        *("recombination_model", "model_digest", "model_calls", "model_note"),
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


@dataclass(slots=True, kw_only=True)
class Grouped:
    """All clonotypes: how many there are, are shared, have a path count; files of predictors in order."""

    figures: FigureTables
    clonotypes: int = 0
    shared: int = 0
    counted: int = 0
    designs: list[Path] = field(default_factory=list)


Report = Callable[[StudyProgress], None]


def count_stage(
    planned: list[PlannedSample],
    settings: StudySettings,
    plan: CountPlan,
    folder: Path,
    *,
    executor: Executor,
    report: Report,
) -> list[CountedSample]:
    """Path counts of all files, kept in `folder`."""
    total = sum(sample.size for sample in planned)
    if executor.elsewhere and len(planned) > 1:
        whole = WholeFiles(settings=settings, plan=plan, folder=folder)
        return whole.count(
            planned, executor, lambda size: report(StudyProgress("counting paths", size, total))
        )
    done = 0
    found = []
    for sample in planned:
        before = done

        def of_file(state: Progress, before: int = before) -> None:
            report(StudyProgress("counting paths", before + state.bytes_read, total))

        report(StudyProgress("counting paths", done, total))
        found.append(count_sample(sample, settings, plan, folder, executor=executor, progress=of_file))
        done += sample.size
    return found


def deal_stage(
    samples: list[CountedSample],
    settings: StudySettings,
    folder: StudyFolder,
    *,
    executor: Executor,
    resume: bool,
    report: Report,
    parts: int | None = None,
) -> DealtRows:
    """Deal all rows out to parts; what a run that was stopped has done is taken over.

    `parts` is by default so many that each fits in memory. It decides the order of clonotypes, and with it
    the folds and halves of the regression; no other result depends on it. InvalidInput with `resume`, if what
    is there is of another study.
    """
    rows = sum(sample.rows for sample in samples)
    number = parts or max(1, -(-rows * row_width(settings) // _PART_BYTES))
    checkpoint = Checkpoint(folder.progress, key=_key(samples, number), resume=resume)
    tasks = stretches(samples)
    known = {task.number: _stored(checkpoint, task, folder) for task in tasks} if resume else {}
    missing = [task for task in tasks if known.get(task.number) is None]
    dealer = Dealer(settings=settings, parts=number, folder=folder.parts)
    found = DealtRows(totals=Dealt(), subjects=[Counter() for _ in samples], parts=number)
    place = {sample.source: k for k, sample in enumerate(samples)}
    with closing(executor.map(dealer, missing, most=_MOST_TASKS, named=_stretch_name)) as results:
        for task in tasks:
            dealt = known.get(task.number)
            if dealt is None:
                dealt = next(results)
                checkpoint.put(task.number, pa.record_batch([pa.array([dealt.to_json()])], schema=_DONE))
            found.totals.merge(dealt)
            of_sample = found.subjects[place[task.sample.source]]
            of_sample.update(dealt.subjects)
            of_sample.update(dict.fromkeys(dealt.left_out_of, 0))
            report(StudyProgress("sorting rows by clonotype", found.totals.rows, rows))
    _check_same_counts(samples, checkpoint)
    return found


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


def group_stage(
    dealt: DealtRows,
    settings: StudySettings,
    folder: StudyFolder,
    predictors: PredictorSet | None,
    *,
    duplicate_count: bool,
    executor: Executor,
    report: Report,
    pgen: PgenColumns | None = None,
) -> Grouped:
    """Group all parts to clonotypes."""
    work = PartWork(
        settings=settings,
        predictors=predictors,
        rows=folder.parts,
        pieces=tuple(dealt.totals.pieces),
        clonotypes=folder.clonotypes,
        design=folder.design,
        duplicate_count=duplicate_count,
        pgen=pgen,
    )
    found = Grouped(figures=FigureTables(figure_settings(settings)))
    with closing(executor.map(work, range(dealt.parts), most=_MOST_TASKS, named=_part_name)) as results:
        for part, done in enumerate(results, start=1):
            found.clonotypes += done.clonotypes
            found.shared += done.shared
            found.counted += done.counted
            if done.design is not None:
                found.designs.append(done.design)
            found.figures.merge(done.figures)
            report(StudyProgress("grouping clonotypes", part, dealt.parts))
    return found


def _stretch_name(stretch: Stretch) -> str:
    return f"row groups {stretch.first} to {stretch.last - 1} of {str(stretch.sample.counts)!r}"


def _part_name(part: int) -> str:
    return f"part {part} of the clonotypes"


def _stored(checkpoint: Checkpoint, task: Stretch, folder: StudyFolder) -> Dealt | None:
    """What a finished task did, None if it is to be done."""
    block = checkpoint.get(task.number)
    if block is None:
        return None
    dealt = Dealt.from_json(block["done"][0].as_py())
    return dealt if all((folder.parts / name).is_file() for name in dealt.pieces) else None


def begin(settings: StudySettings, folder: StudyFolder, *, resume: bool) -> None:
    """Check, before long work, that what a stopped run has put aside can be used.

    InvalidInput with `resume`, if it is of another study.
    """
    package = Path(__file__).parents[2]
    key = {
        "version": __version__,
        "sources": source_digest(package.rglob("*.py")),
        "settings": {name: value for name, value in settings.as_dict().items() if name not in _LATER},
    }
    Checkpoint(folder.parts / "run", key=key, resume=resume)


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
