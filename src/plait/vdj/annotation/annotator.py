"""From reads to rows: mates merged, aligned with the germline, and all that follows from the alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait._version import __version__
from plait.errors import InvalidInput
from plait.formats.read_block import ReadBlock
from plait.targets.devices import resolve
from plait.types import Provenance
from plait.vdj.annotation.alignment import GermlineAligner
from plait.vdj.annotation.annotation_settings import AnnotationSettings
from plait.vdj.annotation.mates import merge_mates
from plait.vdj.annotation.read_summary import ReadSummary
from plait.vdj.annotation.rearrangements import RearrangementBuilder
from plait.vdj.germline import GermlineSet

__all__ = ["ReadAnnotator"]


class ReadAnnotator:
    """Annotates blocks of reads; the tables of the germline are made once. Blocks may run side by side.

    Parameters
    ----------
    germlines
        The loci that reads can come from.
    settings
        Limits below which a read gets a reason in the place of a junction.
    device
        As for `plait.vdj.annotate`.

    Attributes
    ----------
    germlines : tuple of GermlineSet
        The loci.
    schema : pyarrow.Schema
        Columns of the rows.
    provenance : Provenance
        What the rows depend on.
    """

    def __init__(
        self,
        germlines: Sequence[GermlineSet],
        *,
        settings: AnnotationSettings | None = None,
        device: str = "auto",
    ) -> None:
        _check_germlines(germlines)
        self.germlines = tuple(germlines)
        limits = AnnotationSettings() if settings is None else settings
        self._aligner = GermlineAligner(self.germlines, device=device, threads=1)
        self._builder = RearrangementBuilder(self.germlines, limits)
        self.schema = self._builder.schema
        self.provenance = Provenance(
            version=__version__,
            device=resolve(device, 1).description,
            schedule="word_votes, inter_sequence, row_sweep",
            algebra="MaxPlus",
            parameters={
                "germlines": [{"name": one.name, "digest": one.digest} for one in self.germlines],
                "max_evalue": self._aligner.max_evalue,
                "max_j_evalue": self._aligner.max_j_evalue,
                **asdict(limits),
            },
        )

    def annotate(
        self,
        reads: ReadBlock,
        mates: ReadBlock | None = None,
        *,
        counts: NDArray[np.int64] | None = None,
        repertoire_id: str | None = None,
    ) -> tuple[pa.RecordBatch, ReadSummary]:
        """Annotate a block.

        Parameters
        ----------
        reads
            The reads.
        mates
            The second mate of each, as sequenced.
        counts
            Where each read is the consensus of several with one UMI: how many.
        repertoire_id
            The repertoire they belong to.

        Returns
        -------
        rows : pyarrow.RecordBatch
            One row for each read, in order.
        summary : ReadSummary
            What became of them; it does not count the reads as they were sequenced.
        """
        summary = ReadSummary()
        others, merged = None, None
        if mates is not None:
            pairs = merge_mates(reads, mates)
            reads, others, merged = pairs.reads, pairs.others, pairs.merged
            summary.merged_pairs = int(merged.sum())
        rows = self._builder.build(
            self._aligner.align(reads, others),
            consensus_count=counts,
            duplicate_count=None if counts is None else np.ones(len(reads), np.int64),
            umi_count=None if counts is None else np.ones(len(reads), np.int64),
            merged=merged,
            repertoire_id=repertoire_id,
        )
        summary.add_rows(rows)
        return rows, summary


def _check_germlines(germlines: Sequence[GermlineSet]) -> None:
    if not germlines:
        raise InvalidInput("germline", found="no germline set", expected="at least one")
    for number, one in enumerate(germlines):
        if one in germlines[:number]:
            raise InvalidInput("germline", found=f"{one.name} twice", expected="different germline sets")
        for segment in ("V", "J"):
            if not one.alleles(segment):
                raise InvalidInput(
                    "germline", found=f"no {segment} alleles in {one.name}", expected="at least one"
                )
