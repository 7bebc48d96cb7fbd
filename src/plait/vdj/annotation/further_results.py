"""What is made of annotated rows besides their table: clonotypes, and evidence for new alleles."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import InvalidInput
from plait.formats.tables import TableWriter, open_table
from plait.vdj.annotation.allele_evidence import AlleleEvidence
from plait.vdj.annotation.annotate_blocks import AnnotationPlan
from plait.vdj.annotation.clonotypes import ClonotypeCollector, ClonotypeCounts, ClonotypeSettings
from plait.vdj.annotation.new_alleles import CANDIDATE_SCHEMA, NewAlleles, new_alleles_of

__all__ = ["FurtherResults", "FurtherSettings"]

_Path = str | os.PathLike[str]
#: Bytes of rows that wait in memory until they are collapsed; the peak is about six times as much.
_WAITING_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherSettings:
    """What is wanted besides the table of rows.

    Attributes
    ----------
    clonotypes
        Table of clonotypes: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``; None: no such table.
    satellite_ratio
        Merge satellites, as `plait.vdj.annotation.clonotypes.ClonotypeSettings` has it.
    new_alleles
        Table of candidates for new alleles, in the same formats; None: none are looked for.

    Raises
    ------
    InvalidInput
        If the ratio is wrong, or given without a table of clonotypes.
    """

    clonotypes: _Path | None = None
    satellite_ratio: float | None = None
    new_alleles: _Path | None = None

    def __post_init__(self) -> None:
        """Check the ratio."""
        if self.collapse(0).satellite_ratio is not None and self.clonotypes is None:
            raise InvalidInput(
                "satellite_ratio", found=self.satellite_ratio, expected="a table of clonotypes with it"
            )

    def collapse(self, min_quality: int) -> ClonotypeSettings:
        """How rows are collapsed to clonotypes."""
        return ClonotypeSettings(
            satellite_ratio=self.satellite_ratio, min_quality=min_quality, memory_bytes=_WAITING_BYTES
        )


class FurtherResults:
    """Takes rows as they are written, and makes all other results of them; a context manager.

    A clean exit makes the files appear, an exception removes them.

    Parameters
    ----------
    output
        The table of rows; what does not fit memory is put aside beside it.
    plan
        What makes the rows.
    settings
        What is wanted.
    metadata
        Facts for all tables.
    inputs
        Files that must not be overwritten.

    Attributes
    ----------
    clonotypes : ClonotypeCounts or None
        What became of the rows, after `finish`.
    new_alleles : tuple of NewAlleles
        What was found for each germline set, after `finish`.
    """

    def __init__(
        self,
        output: _Path,
        plan: AnnotationPlan,
        settings: FurtherSettings,
        *,
        metadata: Mapping[str, str],
        inputs: Sequence[_Path],
    ) -> None:
        # The summary stands beside the output.
        summary = f"{os.fspath(output)}.summary.tsv"
        _check_different(output, summary, settings.clonotypes, settings.new_alleles)
        self._collector: ClonotypeCollector | None = None
        self._clonotype_table: TableWriter | None = None
        self._allele_table: TableWriter | None = None
        self._evidence: list[AlleleEvidence] = []
        self._by_repertoire: Counter[str] = Counter()
        self.clonotypes: ClonotypeCounts | None = None
        self.new_alleles: tuple[NewAlleles, ...] = ()
        with ExitStack() as stack:
            if settings.clonotypes is not None:
                folder = f"{os.fspath(output)}.clonotype-rows"
                limits = plan.provenance.parameters
                collapse = settings.collapse(limits["min_junction_quality"])
                collector = stack.enter_context(ClonotypeCollector(folder, collapse))
                # An empty batch tells it the columns.
                collector.add(pa.RecordBatch.from_pylist([], schema=plan.schema))
                self._clonotype_table = stack.enter_context(
                    open_table(settings.clonotypes, collector.schema, metadata=metadata, inputs=inputs)
                )
                self._collector = collector
            if settings.new_alleles is not None:
                self._allele_table = stack.enter_context(
                    open_table(settings.new_alleles, CANDIDATE_SCHEMA, metadata=metadata, inputs=inputs)
                )
                self._evidence = [AlleleEvidence(germline) for germline in plan.germlines]
            self._stack = stack.pop_all()

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows in the order of the table.

        Parameters
        ----------
        rows
            Rows of any status; only those with a junction count.
        """
        if self._collector is None and not self._evidence:
            return
        found = pc.equal(rows["annotation_status"], "ok")
        if self._collector is not None:
            # Where a junction of two codons lies is not told, so that its low bases are not known.
            low = pc.and_(pc.equal(rows["annotation_status"], "low_quality"), pc.is_valid(rows["cdr3_start"]))
            self._collector.add(rows.filter(pc.or_(found, low)))
        if not pc.all(found).as_py():
            rows = rows.filter(found)
        for evidence in self._evidence:
            locus = evidence.germline.locus
            apart = len(self._evidence) > 1 and locus
            evidence.add(rows.filter(pc.equal(rows["locus"], locus)) if apart else rows)

    def finish(self) -> None:
        """Write everything; after the last `add`."""
        if self._collector is not None and self._clonotype_table is not None:
            for batch in self._collector.finish():
                self._clonotype_table.write(batch)
                for entry in pc.value_counts(batch["repertoire_id"]).to_pylist():
                    self._by_repertoire[entry["values"]] += entry["counts"]
            self.clonotypes = self._collector.counts
        if self._allele_table is not None:
            self.new_alleles = tuple(new_alleles_of(evidence) for evidence in self._evidence)
            for found in self.new_alleles:
                for batch in found.candidates.to_batches():
                    self._allele_table.write(batch)

    def clonotypes_of(self, repertoire_id: str) -> int | None:
        """Clonotypes of a repertoire, after `finish`; None if there is no table of them."""
        return None if self.clonotypes is None else self._by_repertoire[repertoire_id]

    def as_dict(self) -> dict[str, Any]:
        """What was found, ready for JSON; after `finish`."""
        found: dict[str, Any] = {}
        if self.clonotypes is not None:
            found["clonotypes"] = asdict(self.clonotypes)
        if self.new_alleles:
            found["new_alleles"] = [_facts(one) for one in self.new_alleles]
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


def _facts(found: NewAlleles) -> dict[str, Any]:
    return {
        "germline": found.germline.name,
        "candidates": found.candidates.num_rows,
        "left_out": dict(found.left_out),
        "clonotypes": dict(found.clonotypes),
        "satellites": dict(found.satellites),
        "error_rate": dict(found.error_rate),
    }


def _check_different(*paths: _Path | None) -> None:
    names = [os.path.realpath(path) for path in paths if path is not None]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput("output", found=f"{name!r} for two tables", expected="a file for each")
