"""What is studied, and how: the sample sheet, and everything else that results depend on.

Path counts of every file are made once, and found again by content and parameters.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from plait.errors import FormatError, InvalidInput
from plait.formats.checkpoints import Checkpoint
from plait.formats.compression import (
    FileKind,
    check_readable,
    content_digest,
    parse_json,
    read_json,
    sniff,
    unchanged,
)
from plait.formats.rearrangements import assign_roles, layout_named, open_rearrangements
from plait.run.executor import Executor
from plait.run.rows import Progress
from plait.vdj.count_files import CountPlan, CountSummary, count_files, plan_on
from plait.vdj.counting import PathCounter
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.files import read_text
from plait.vdj.germline.germline_set import Chain
from plait.vdj.models import PathModel

_FILE = "file"
_SUBJECT = "subject_id"
#: Columns of the table of subjects, which a covariate must not be called.
_TAKEN = (
    "subject",
    "files",
    "rows",
    "rows_left_out",
    "clonotypes",
    "shared_clonotypes",
    "duplicate_count",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One line of the sheet, numbered from 1; blank covariates are not there.

    `subject`: whose rows they are; None: the file has a column that says it.
    """

    line: int
    path: Path
    subject: str | None
    covariates: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSheet:
    """A sample sheet: its lines, and the names of all covariates, in order."""

    path: Path
    samples: tuple[Sample, ...]
    covariates: tuple[str, ...]

    def of_subjects(self, subjects: Sequence[Iterable[str]]) -> dict[str, dict[str, str]]:
        """Covariates of every subject, in alphabetical order; `subjects` are those of each sample's file.

        FormatError if a subject has two values of one covariate.
        """
        found: dict[str, dict[str, str]] = {}
        said: dict[tuple[str, str], int] = {}
        for sample, names in zip(self.samples, subjects, strict=True):
            for subject in names:
                known = found.setdefault(subject, {})
                for name, value in sample.covariates.items():
                    if known.setdefault(name, value) != value:
                        raise FormatError(
                            self.path,
                            line=sample.line,
                            column=name,
                            found=f"{value!r} for subject {subject!r}",
                            expected=f"{known[name]!r}, as in line {said[subject, name]}",
                            hint="a covariate has one value for each subject",
                        )
                    said.setdefault((subject, name), sample.line)
        return dict(sorted(found.items()))


def read_sample_sheet(path: str | os.PathLike[str]) -> SampleSheet:
    """Read a sample sheet; the files exist, and none is there twice.

    Text separated by commas or tabs, with a header: ``file``, if wanted ``subject_id``, and covariates. Files
    are relative to the folder of the sheet. FormatError, which names the line, if it is something else.
    """
    source = Path(path)
    lines = _lines(source)
    if not lines:
        raise FormatError(source, found="no text at all", expected="a header line with a column 'file'")
    number, header = lines[0]
    _check_header(source, number, header)
    samples: list[Sample] = []
    seen: dict[str, int] = {}
    for line, cells in lines[1:]:
        if len(cells) != len(header):
            raise FormatError(
                source,
                line=line,
                found=f"{len(cells)} column{'s' if len(cells) > 1 else ''}",
                expected=f"{len(header)} columns, as in the header",
            )
        sample = _sample(source, line, dict(zip(header, cells, strict=True)))
        real = os.path.realpath(sample.path)
        if real in seen:
            raise FormatError(
                source,
                line=line,
                column=_FILE,
                found=f"{str(sample.path)!r} again",
                expected="every file once",
                hint=f"it is in line {seen[real]} already",
            )
        seen[real] = line
        samples.append(sample)
    if not samples:
        raise FormatError(source, found="a header and no lines", expected="a line for each file")
    covariates = tuple(name for name in header if name not in (_FILE, _SUBJECT))
    sheet = SampleSheet(path=source, samples=tuple(samples), covariates=covariates)
    # What can be known to be wrong before any file is read.
    sheet.of_subjects([[] if sample.subject is None else [sample.subject] for sample in samples])
    return sheet


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Cells of all lines that are not blank, stripped, with line numbers."""
    text = read_text(path, "a text file: the sample sheet, not one of the samples")
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = "\t" if "\t" in first else ","
    source = io.StringIO(text, newline="")
    reader = csv.reader(source, delimiter=separator, strict=True, skipinitialspace=True)
    found = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                found.append((reader.line_num, stripped))
    except csv.Error as error:
        raise FormatError(
            path, line=reader.line_num, found=str(error), expected="cells separated by commas or tabs"
        ) from error
    return found


def _check_header(path: Path, line: int, header: Sequence[str]) -> None:
    shown = ", ".join(map(repr, header[:20]))
    if _FILE not in header:
        hint = None
        if len(header) == 1 and ";" in header[0]:
            hint = "separate the cells by commas or tabs, not semicolons"
        elif _FILE in [name.lower() for name in header]:
            hint = "column names are matched exactly, in lower case"
        elif {"junction", "v_call"} & set(header):
            hint = "this is a table of rearrangements; name it in a sheet"
        raise FormatError(
            path, line=line, found=f"the columns {shown}", expected="a column 'file'", hint=hint
        )
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated or "" in header:
        wrong = (
            f"column name {repeated[0]!r} more than once"
            if repeated[:1] > [""]
            else "a column without a name"
        )
        raise FormatError(path, line=line, found=wrong, expected="every column named, and once")
    for name in header:
        if name in _TAKEN:
            raise FormatError(
                path,
                line=line,
                found=f"a covariate called {name!r}",
                expected="another name",
                hint="the table of subjects has a column of this name"
                + (f"; the column of subjects is called {_SUBJECT!r} here" if name == "subject" else ""),
            )


def _sample(sheet: Path, line: int, cells: Mapping[str, str]) -> Sample:
    given = cells[_FILE]
    if not given:
        raise FormatError(sheet, line=line, column=_FILE, found="nothing", expected="the name of a file")
    try:
        path = sheet.parent / Path(given).expanduser()
    except RuntimeError:
        # There is no user of the name that follows the tilde.
        path = sheet.parent / given
    if not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "no such file"
        raise FormatError(
            sheet,
            line=line,
            column=_FILE,
            found=f"{given[:200]!r}, which is {kind}",
            expected="a file that exists",
            hint=f"names are relative to the folder of the sheet: {str(path)[-300:]!r} is meant",
        )
    covariates = {name: value for name, value in cells.items() if name not in (_FILE, _SUBJECT) and value}
    return Sample(line=line, path=path, subject=cells.get(_SUBJECT) or None, covariates=covariates)


#: Counted with by default: pi 4 and nu 10, and all smaller limits.
DEFAULT_MODEL = PathModel(pi=4, nu=10, sweep_pi=tuple(range(5)), sweep_nu=tuple(range(11)))
#: Models (pi, nu) whose path counts are predictors by default: all that is allowed, no P, and few N.
DEFAULT_PREDICTOR_MODELS = ((4, 10), (0, 10), (4, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """Parameters of a study, as those of `plait.vdj.study`, resolved; picklable.

    `germline` is a name, file or folder, `anchors` a CSV that replaces its anchors; without a
    `recombination_model` (a name) there are no generation probabilities. `overflow`: ``"null"``, whole
    numbers, with a status where they do not fit; ``"float"``. InvalidInput if one is out of range, or a
    predictor's model is not counted.
    """

    germline: str
    chain: Chain
    anchors: str | None = None
    model: PathModel = DEFAULT_MODEL
    ambiguous: Literal["first", "all", "fail"] = "first"
    overflow: Literal["null", "float"] = "null"
    layout: str = "airr"
    subject: str | None = None
    shared_by: int = 2
    predictor_models: tuple[tuple[int, int], ...] = DEFAULT_PREDICTOR_MODELS
    regression: bool = True
    lambdas: int = 100
    folds: int = 5
    halves: int = 50
    seed: int = 0
    recombination_model: str | None = None
    model_digest: str | None = None
    model_calls: Literal["use", "ignore"] = "use"
    model_note: str = ""

    def __post_init__(self) -> None:
        """Check every parameter."""
        if self.model.name != "dp2":
            raise InvalidInput(
                "model", found=repr(self.model.name), expected="'dp2', whose limits can be swept"
            )
        if self.overflow not in ("null", "float"):
            raise InvalidInput("overflow", found=repr(self.overflow), expected="'null' or 'float'")
        if self.model_calls not in ("use", "ignore"):
            raise InvalidInput("model_calls", found=repr(self.model_calls), expected="'use' or 'ignore'")
        for name, least, most in _RANGES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidInput(name, found=repr(value), expected=f"a whole number from {least} to {most}")
        for pi, nu in self.predictor_models:
            if (pi, nu) not in self.counted_models:
                raise InvalidInput(
                    "models",
                    found=f"pi {pi}, nu {nu}",
                    expected="models of the sweep, or the single one",
                    hint="widen --sweep-pi and --sweep-nu, or choose others with --models",
                )
        if len(set(self.predictor_models)) != len(self.predictor_models):
            raise InvalidInput("models", found="a model twice", expected="every model once")

    @property
    def with_d(self) -> bool:
        """Whether there is a D gene."""
        return self.chain != "vj"

    @property
    def sweep_models(self) -> tuple[tuple[int, int], ...]:
        """Models (pi, nu) in the order of the items of `path_count_sweep`: pi outer, nu inner."""
        if not self.model.is_sweep:
            return ()
        pis, nus = self.model.axes
        return tuple((pi, nu) for pi in pis for nu in nus)

    @property
    def counted_models(self) -> tuple[tuple[int, int], ...]:
        """The single model, then those of the sweep that differ from it."""
        base = (self.model.pi, self.model.nu)
        return (base, *(model for model in self.sweep_models if model != base))

    @property
    def with_pgen(self) -> bool:
        """Whether there are generation probabilities."""
        return self.recombination_model is not None

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        names = [item.name for item in fields(self)]
        own = {name: getattr(self, name) for name in names}
        own["predictor_models"] = [list(model) for model in self.predictor_models]
        first = {name: own.pop(name) for name in ("germline", "anchors", "chain")}
        del own["model"]
        if not self.with_pgen:
            own = {name: own[name] for name in own if name not in OF_PGEN}
        return {**first, **self.model.as_dict(), **own}


#: Parameters of generation probabilities.
OF_PGEN = ("recombination_model", "model_digest", "model_calls", "model_note")
_RANGES = (
    ("shared_by", 2, 1_000_000),
    ("lambdas", 2, 10_000),
    ("folds", 2, 100),
    ("halves", 0, 1000),
    ("seed", 0, 2**63 - 1),
)


#: Facts of a provenance that numbers do not depend on: they are equal on every device.
_WITHOUT_EFFECT = ("device", "schedule", "algebra")
_PROVENANCE = b"plait.provenance"
_LAYOUT = b"plait.layout"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSample:
    """A file whose header has been read.

    `roles`: role to column name; `size` in bytes; `counted`: whether it is an output of ``plait vdj count``
    with the parameters of the study.
    """

    sample: Sample
    roles: Mapping[str, str]
    size: int
    counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSample:
    """A file with path counts; picklable.

    `counts` is the Parquet file of a `source`, whose content has the BLAKE2b `digest`; `reused`: it was there
    already. `junction`, `v_call`, `j_call`, `duplicate_count` are column names in it. Rows are those of
    `subject`; None: the column `subject_column` tells.
    """

    source: Path
    counts: Path
    digest: str
    reused: bool
    junction: str
    v_call: str
    j_call: str
    subject: str | None
    subject_column: str | None
    duplicate_count: str | None
    rows: int


def count_plan(
    settings: StudySettings, germline: GermlineSet, *, device: str, executor: Executor
) -> CountPlan:
    """What counts paths as a study wants them."""
    wanted = PathCounter(
        germline,
        settings.model,
        chain=settings.chain,
        ambiguous=settings.ambiguous,
        overflow=settings.overflow,
        device=device,
        threads=1,
    )
    return plan_on(executor, wanted)


def plan_sample(sample: Sample, settings: StudySettings, plan: CountPlan) -> PlannedSample:
    """Check a file before long work: its header, and whether it says whose rows it has.

    FormatError if it is not a table of the layout, or nothing says whose rows it has.
    """
    size = check_readable(sample.path).st_size
    stored = _stored_facts(sample.path)
    counted = stored is not None and _same_counts(stored, plan)
    if stored is not None and counted:
        layout = layout_named(stored["layout"])
        names = stored["columns"]
    else:
        layout = layout_named(settings.layout)
        with open_rearrangements([sample.path], layout=layout.name, block_rows=1) as reader:
            names = reader.schema.names
    roles = assign_roles(layout, [(sample.path, names)])
    if settings.subject is not None:
        roles["subject"] = settings.subject
    column = roles.get("subject")
    if sample.subject is None and column not in names:
        wanted = settings.subject or " or ".join(layout.columns.get("subject", ("subject_id",)))
        raise FormatError(
            sample.path,
            found=f"the columns {', '.join(map(repr, names[:20]))}",
            expected=f"a column {wanted!r} that tells individuals apart",
            hint=f"fill in subject_id in line {sample.line} of the sheet, or name the column with --subject",
        )
    return PlannedSample(sample=sample, roles=roles, size=size, counted=counted)


def count_sample(
    planned: PlannedSample,
    settings: StudySettings,
    plan: CountPlan,
    folder: Path,
    *,
    executor: Executor,
    progress: Callable[[Progress], None] | None = None,
) -> CountedSample:
    """Path counts of a file, from the folder of counts if they are there; FormatError if it is no such file.

    What a run that was killed had counted of the file is taken over.
    """
    source = planned.sample.path
    status = check_readable(source)
    digest = content_digest(source)
    counts, reused = source.absolute(), True
    if not planned.counted:
        counts = folder / f"{_stem(source)}-{_key(digest, settings, plan)}.parquet"
        reused = _is_whole(counts)
        if reused:
            Checkpoint.remove_left_over(f"{counts}.checkpoint")
        else:
            try:
                with unchanged(source, status):
                    _count(source, counts, settings, plan, executor, progress)
            except FormatError:
                # They would be found again as those of the content that the digest is of.
                counts.unlink(missing_ok=True)
                raise
    renamed = _renamed(counts)
    roles = {role: renamed.get(name, name) for role, name in planned.roles.items()}
    subject = planned.sample.subject
    with arrow_parquet.ParquetFile(counts) as file:
        rows = file.metadata.num_rows
        null = {field.name for field in file.schema_arrow if pa.types.is_null(field.type)}
    count = roles.get("count")
    return CountedSample(
        source=source,
        counts=counts,
        digest=digest,
        reused=reused,
        junction=roles["junction"],
        v_call=roles["v_call"],
        j_call=roles["j_call"],
        subject=subject,
        subject_column=roles["subject"] if subject is None else None,
        duplicate_count=None if count in null else count,
        rows=rows,
    )


def _count(
    source: Path,
    counts: Path,
    settings: StudySettings,
    plan: CountPlan,
    executor: Executor,
    progress: Callable[[Progress], None] | None,
) -> None:
    def run(resume: bool) -> None:
        count_files(
            [source],
            counts,
            plan.counter,
            layout=settings.layout,
            executor=executor,
            resume=resume,
            progress=progress,
        )

    try:
        run(resume=True)
    except InvalidInput as error:
        # Of another version or another place of the file, though of the same content: made anew.
        if error.what != "resume":
            raise
        run(resume=False)


def _stored_facts(path: Path) -> dict[str, Any] | None:
    """What an output of ``plait vdj count`` says of itself; None of any other file."""
    if sniff(path) is not FileKind.PARQUET:
        return None
    try:
        schema = arrow_parquet.read_schema(path)
        metadata = schema.metadata or {}
        return {
            "provenance": parse_json(metadata[_PROVENANCE], path, expected="how it was made"),
            "layout": parse_json(metadata[_LAYOUT], path, expected="a layout"),
            "columns": schema.names,
        }
    except (pa.ArrowException, OSError, KeyError, ValueError):
        # Damaged ones are reported by the reader.
        return None


def _same_counts(stored: Mapping[str, Any], plan: CountPlan) -> bool:
    if not isinstance(stored["provenance"], dict) or not isinstance(stored["layout"], str):
        return False
    wanted = {"status", "path_count"} | set(plan.counter.columns.schema.names)
    return effective_facts(stored["provenance"], "germline") == _counted_as(plan) and wanted <= set(
        stored["columns"]
    )


def _counted_as(plan: CountPlan) -> dict[str, Any]:
    # As it will be read back: tuples become lists.
    found: dict[str, Any] = json.loads(json.dumps(plan.provenance.as_dict()))
    return effective_facts(found, "germline")


def effective_facts(provenance: Mapping[str, Any], named: str) -> dict[str, Any]:
    """What numbers depend on: a set or model, the parameter `named`, is told by its digest, not its name."""
    facts = {name: value for name, value in provenance.items() if name not in _WITHOUT_EFFECT}
    parameters = facts.get("parameters")
    if isinstance(parameters, dict):
        facts["parameters"] = {name: value for name, value in parameters.items() if name != named}
    return facts


def _key(digest: str, settings: StudySettings, plan: CountPlan) -> str:
    facts = {"content": digest, "layout": settings.layout, **_counted_as(plan)}
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=8).hexdigest()


def _stem(path: Path) -> str:
    name = path.name
    for suffix in (".gz", ".zst", ".tsv", ".txt", ".csv", ".parquet", ".airr"):
        name = name.removesuffix(suffix)
    return name or "counts"


def _summary(counts: Path) -> Path:
    return Path(f"{os.fspath(counts)}.summary.json")


def _is_whole(counts: Path) -> bool:
    """Whether counts are there; the summary is written last."""
    if not (counts.is_file() and _summary(counts).is_file()):
        return False
    return _stored_facts(counts) is not None


def counted_summary(sample: CountedSample) -> CountSummary | None:
    """The totals of a sample, as they stand beside its counts; None if they do not."""
    try:
        return CountSummary.from_dict(json.loads(_summary(sample.counts).read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None


def _renamed(counts: Path) -> dict[str, str]:
    """Input columns that stand in the counts under another name."""
    try:
        found = read_json(_summary(counts), expected="the summary of counts")["renamed_columns"]
        return {str(name): str(new) for name, new in found.items()}
    except (FormatError, KeyError, AttributeError, TypeError):
        return {}
