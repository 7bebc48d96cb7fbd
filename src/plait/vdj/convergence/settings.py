"""What is studied, and how: the sample sheet, and everything else that results depend on.

Path counts of every file are made once, and found again by content and parameters.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from plait.errors import FormatError, InvalidInput, whole_fields
from plait.formats.checkpoints import Checkpoint
from plait.formats.files import (
    FileKind,
    check_readable,
    content_digest,
    parse_json,
    read_json,
    sniff,
    unchanged,
)
from plait.formats.layouts import AUTO, LayoutChoice
from plait.formats.parquet import PARTITION
from plait.formats.rearrangements import open_rearrangements
from plait.formats.sheets import Sample, sample_name
from plait.run.executor import Executor, Progress
from plait.vdj.count_files import CountPlan, CountSummary, count_files, plan_on
from plait.vdj.counting import PathCounter
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.germline_set import Chain
from plait.vdj.models import PathModel
from plait.vdj.repertoires.sharing import SharingSettings

#: Columns of the table of subjects, which a covariate must not be called.
TAKEN = ("files", "rows", "rows_left_out", "clonotypes", "shared_clonotypes", "duplicate_count")


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
    layout: LayoutChoice = AUTO
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
    sharing: SharingSettings = field(default_factory=SharingSettings)

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
            whole_fields(self, name, least=least, most=most)
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
        shared = own.pop("sharing")
        own |= {name: getattr(shared, name) for name in OF_SHARING}
        if not self.with_pgen:
            own = {name: own[name] for name in own if name not in OF_PGEN}
        return {**first, **self.model.as_dict(), **own}


#: What a study takes of `sharing`.
OF_SHARING = ("key", "mismatches", "edits")
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

    `roles`: role to column name; `layout`: what it was read as; `size` in bytes; `counted`: whether it is an
    output of ``plait vdj count`` with the parameters of the study.
    """

    sample: Sample
    roles: Mapping[str, str]
    layout: str
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
    plain = isinstance(settings.layout, str)
    counted = plain and stored is not None and _same_counts(stored, plan)
    with open_rearrangements([sample.path], layout=settings.layout, block_rows=1) as reader:
        names, roles, found = reader.schema.names, reader.roles, reader.recognised
    if settings.subject is not None:
        if sample.subject is None and settings.subject not in names:
            raise FormatError(
                sample.path,
                found=f"the columns {', '.join(map(repr, names[:20]))}",
                expected=f"a column {settings.subject!r} that tells individuals apart, as --subject says",
                hint=f"fill in subject_id in line {sample.line} of the sheet, or name another column",
            )
        roles["subject"] = settings.subject
    return PlannedSample(sample=sample, roles=roles, layout=found, size=size, counted=counted)


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
        counts = folder / f"{sample_name(source)}-{_key(digest, planned.layout, plan)}.parquet"
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
    if subject is None and "subject" not in roles:
        subject = sample_name(source)
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
        if PARTITION in metadata:
            # Files of a dataset that lack a column are no tables of their own.
            return None
        return {
            "provenance": parse_json(metadata[_PROVENANCE], path, expected="how it was made"),
            "layout": parse_json(metadata[_LAYOUT], path, expected="a layout"),
            "columns": schema.names,
        }
    except (pa.ArrowException, OSError, KeyError, ValueError):
        # Damaged ones are reported by the reader.
        return None


def _same_counts(stored: Mapping[str, Any], plan: CountPlan) -> bool:
    if not isinstance(stored["provenance"], dict) or stored["layout"] != "airr":
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


def _key(digest: str, layout: str, plan: CountPlan) -> str:
    facts = {"content": digest, "layout": layout, **_counted_as(plan)}
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=8).hexdigest()


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
