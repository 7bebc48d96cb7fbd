"""Annotate blocks of reads, in this process or in others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from plait.executors.protocol import Executor
from plait.types import Provenance
from plait.vdj.annotation.annotation_settings import AnnotationSettings
from plait.vdj.annotation.annotator import ReadAnnotator
from plait.vdj.annotation.read_source import ReadUnit
from plait.vdj.annotation.read_summary import ReadSummary
from plait.vdj.germline import GermlineSet

__all__ = ["AnnotationPlan", "UnitAnnotator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationPlan:
    """What has to be known of an annotator where its rows are written.

    Attributes
    ----------
    germlines
        The loci.
    schema
        Columns of the rows.
    provenance
        What the rows depend on.
    """

    germlines: tuple[GermlineSet, ...]
    schema: pa.Schema
    provenance: Provenance


class UnitAnnotator:
    """Annotates reads on whatever machine it is called; picklable, its tables are made where they are needed.

    Parameters
    ----------
    germlines, settings, device
        As for `plait.vdj.annotation.annotator.ReadAnnotator`.
    names
        Name of the repertoire of each file.
    statuses
        Those of the rows that are wanted; None: all.
    """

    def __init__(
        self,
        germlines: Sequence[GermlineSet],
        settings: AnnotationSettings | None,
        device: str,
        names: Sequence[str],
        statuses: Sequence[str] | None,
    ) -> None:
        self._made_of = tuple(germlines), settings, device, tuple(names), statuses
        self._names = names
        self._statuses = statuses

    @cached_property
    def annotator(self) -> ReadAnnotator:
        """What annotates."""
        germlines, settings, device, _, _ = self._made_of
        return ReadAnnotator(germlines, settings=settings, device=device)

    @property
    def plan(self) -> AnnotationPlan:
        """What has to be known of it elsewhere."""
        found = self.annotator
        return AnnotationPlan(germlines=found.germlines, schema=found.schema, provenance=found.provenance)

    def plan_on(self, executor: Executor) -> AnnotationPlan:
        """The plan of a worker: what this machine has may be something else.

        Parameters
        ----------
        executor
            Where reads are to be annotated.
        """
        if not executor.elsewhere:
            return self.plan
        with closing(executor.map(_plan_of, [self])) as plans:
            return next(plans)

    def __call__(self, unit: ReadUnit) -> tuple[pa.RecordBatch, ReadSummary]:
        """The rows of a block that are wanted, and its counts."""
        rows, summary = self.annotator.annotate(
            unit.reads, unit.mates, counts=unit.counts, repertoire_id=self._names[unit.file]
        )
        summary.rows = rows.num_rows if self._statuses is None else summary.statuses["ok"]
        if self._statuses is not None:
            wanted = pa.array(self._statuses, pa.string())
            rows = rows.filter(pc.is_in(rows["annotation_status"], value_set=wanted))
        return rows, summary

    def __reduce__(self) -> tuple[object, ...]:
        return UnitAnnotator, self._made_of


def _plan_of(annotator: UnitAnnotator) -> AnnotationPlan:
    return annotator.plan
