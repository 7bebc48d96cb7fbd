"""The stages of a study that go over all rows: counting, dealing out, grouping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from plait._version import __version__
from plait.errors import FormatError
from plait.executors.protocol import Executor
from plait.formats.checkpoints import Checkpoint
from plait.formats.compression import content_digest
from plait.settings import source_digest
from plait.vdj.convergence.count_cache import CountedSample, PlannedSample, count_sample
from plait.vdj.convergence.figure_tables import FigureTables
from plait.vdj.convergence.part_work import PartWork, figure_settings
from plait.vdj.convergence.partition import Dealer, row_width
from plait.vdj.convergence.pgen_columns import PgenColumns
from plait.vdj.convergence.predictors import PredictorSet
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.convergence.stretches import Dealt, Stretch, stretches
from plait.vdj.convergence.study_folder import StudyFolder
from plait.vdj.convergence.whole_files import WholeFiles
from plait.vdj.count_blocks import CountPlan
from plait.vdj.progress import Progress

__all__ = [
    "DealtRows",
    "Grouped",
    "Report",
    "StudyProgress",
    "begin",
    "count_stage",
    "deal_stage",
    "group_stage",
]

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
    """How far a study is.

    Attributes
    ----------
    stage
        What is being done, in a few words.
    done, total
        Of this stage: bytes, rows or models.
    """

    stage: str
    done: int
    total: int


@dataclass(slots=True, kw_only=True)
class DealtRows:
    """All rows, dealt out.

    Attributes
    ----------
    totals
        Totals of all rows.
    subjects
        For each sample its subjects with their rows.
    parts
        Number of parts.
    """

    totals: Dealt
    subjects: list[Counter[str]]
    parts: int


@dataclass(slots=True, kw_only=True)
class Grouped:
    """All clonotypes.

    Attributes
    ----------
    clonotypes, shared, counted
        How many there are, are shared, and have a path count.
    designs
        Files of predictors, in order.
    figures
        The figure tables.
    """

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
    """Path counts of all files.

    Parameters
    ----------
    planned
        The files.
    settings, plan
        What is counted.
    folder
        Where counts are kept.
    executor
        Where the work is done.
    report
        Told how far it is.
    """
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

    Parameters
    ----------
    samples
        The files with their counts.
    settings
        What is studied.
    folder
        Where the rows go.
    executor
        Where the work is done.
    resume
        Whether to go on with what is there.
    report
        Told how far it is.
    parts
        Number of parts; by default so many that each fits in memory. It decides the order of clonotypes,
        and with it the folds and halves of the regression; no other result depends on it.

    Raises
    ------
    InvalidInput
        With `resume`, if what is there is of another study.
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
    """Group all parts to clonotypes.

    Parameters
    ----------
    dealt
        The rows.
    settings
        What is studied.
    folder
        Where the rows are, and the clonotypes go.
    predictors
        Those of the regression, if there is one.
    duplicate_count
        Whether any input has this column.
    executor
        Where the work is done.
    report
        Told how far it is.
    pgen
        What computes generation probabilities, if there are any.
    """
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

    Parameters
    ----------
    settings
        What is studied.
    folder
        Where rows are put aside.
    resume
        Whether to go on with what is there.

    Raises
    ------
    InvalidInput
        With `resume`, if it is of another study.
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
