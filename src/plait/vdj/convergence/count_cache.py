"""Path counts of every file of a study: made once, and found again by content and parameters."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from plait.errors import FormatError, InvalidInput
from plait.formats.checkpoints import Checkpoint
from plait.formats.compression import FileKind, check_readable, content_digest, sniff, unchanged
from plait.formats.json_text import parse_json, read_json
from plait.formats.layouts import assign_roles, layout_named
from plait.formats.rearrangements import open_rearrangements
from plait.run.executor import Executor
from plait.run.rows import Progress
from plait.vdj.convergence.settings import Sample, StudySettings
from plait.vdj.count_files import CountPlan, CountSummary, count_files, plan_on
from plait.vdj.counting import PathCounter
from plait.vdj.germline import GermlineSet

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
