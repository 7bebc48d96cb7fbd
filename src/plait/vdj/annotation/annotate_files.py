"""Annotate whole files of reads: streamed in blocks, several at a time, resumable, in constant memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from plait.executors.local import LocalExecutor
from plait.executors.protocol import Executor
from plait.formats.blocks import read_ahead
from plait.formats.checkpoints import Checkpoint, kept_if_useful
from plait.formats.reads import ReadFiles, open_reads
from plait.formats.tables import open_table
from plait.settings import source_digest, thread_count
from plait.vdj.annotation.annotate_blocks import AnnotationPlan, UnitAnnotator
from plait.vdj.annotation.annotation_settings import AnnotationSettings
from plait.vdj.annotation.clonotypes import ClonotypeCounts
from plait.vdj.annotation.further_results import FurtherResults, FurtherSettings
from plait.vdj.annotation.new_alleles import NewAlleles
from plait.vdj.annotation.quality_table import FileReport, total_of, write_reports
from plait.vdj.annotation.read_source import ReadSource, ReadUnit, Umis, unit_bytes, unit_digest
from plait.vdj.annotation.read_summary import ReadSummary
from plait.vdj.annotation.repertoires import repertoire_names
from plait.vdj.annotation.umi_consensus import UmiCounts
from plait.vdj.germline import GermlineSet
from plait.vdj.progress import Progress
from plait.vdj.resumable import Kept, kept_results

__all__ = ["AnnotatedFiles", "annotate_files"]

_Path = str | os.PathLike[str]

#: Reads of a block: a row group of the output and the unit of work, of threads and of resuming.
_BLOCK_READS = 6144
#: Blocks worked on at a time, so that many processors do not take much memory.
_MOST_BLOCKS = 12
_SUMMARY = b"plait.summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedFiles:
    """A finished run.

    Attributes
    ----------
    output
        The table of rearrangements.
    summary_path
        JSON with all counts.
    table_path
        Those of the files as a table.
    files
        What became of the reads of each file.
    umis
        What became of reads with UMIs, if they have them.
    further
        What else was asked for.
    clonotypes
        What became of the rows in the table of clonotypes, if there is one.
    new_alleles
        What was found for each germline set, if new alleles were looked for.
    resumed_blocks
        Blocks taken over from the run that was killed.
    """

    output: Path
    summary_path: Path
    table_path: Path
    files: tuple[FileReport, ...]
    umis: UmiCounts | None
    further: FurtherSettings
    clonotypes: ClonotypeCounts | None
    new_alleles: tuple[NewAlleles, ...]
    resumed_blocks: int

    @property
    def total(self) -> ReadSummary:
        """Counts of all files together."""
        return total_of(self.files)


def annotate_files(
    inputs: Sequence[_Path],
    output: _Path,
    germlines: Sequence[GermlineSet],
    *,
    mates: Sequence[_Path] | None = None,
    settings: AnnotationSettings | None = None,
    umis: Umis | None = None,
    further: FurtherSettings | None = None,
    repertoire_ids: Sequence[str] | None = None,
    keep_failed: bool = False,
    device: str = "auto",
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> AnnotatedFiles:
    """Annotate the reads of files and write one table of rearrangements.

    Rows come in the order of the reads. Beside the table stand its summary, ``OUTPUT.summary.json``, and what
    it tells of each file as a table, ``OUTPUT.summary.tsv``. While the run lasts, finished blocks are kept in
    ``OUTPUT.checkpoint``.

    Parameters
    ----------
    inputs
        FASTQ or FASTA, plain, gzip or zstd.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    germlines
        The loci that reads can come from.
    mates
        Files of the second mates, one for each of `inputs`.
    settings
        Limits; a read beyond them gets a reason in the place of a junction.
    umis
        Where unique molecular identifiers stand, if reads have them; of the reads with one, a consensus is
        annotated.
    further
        Results that are wanted besides.
    repertoire_ids
        Name of the repertoire of each file; by default the name of the file without suffixes.
    keep_failed
        Write every read, whatever its status, not only those with a junction.
    device
        As for `plait.vdj.annotate`.
    threads
        Blocks worked on at a time, at most 12.
    executor
        Where blocks are annotated; by default so many threads of this process. The output is the same.
    resume
        Take over the blocks that a killed run of the same inputs and settings has finished.
    progress
        Called after every block.

    Raises
    ------
    InvalidInput
        If there is no input, an output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    if executor is None:
        executor = LocalExecutor(thread_count() if threads is None else threads)
    wanted = further or FurtherSettings()
    names = repertoire_names(inputs, repertoire_ids, paired=mates is not None)
    # Rows of low quality are not written; they may join a clonotype.
    statuses = None if keep_failed else ("ok",) if wanted.clonotypes is None else ("ok", "low_quality")
    annotator = UnitAnnotator(germlines, settings, device, names, statuses)
    plan = annotator.plan_on(executor)
    with open_reads(inputs, mates, block_reads=_BLOCK_READS) as reader:
        source = ReadSource(reader, names, umis, output, progress)
        run = _Run(reader, source, plan, statuses)
        facts: dict[str, Any] = {"metadata": run.metadata(), "inputs": run.inputs}
        with ExitStack() as tables:
            # Opened first: its lock keeps other runs from the folders beside it.
            table = tables.enter_context(open_table(output, plan.schema, **facts))
            others = tables.enter_context(FurtherResults(output, plan, wanted, **facts))
            checkpoint = Checkpoint(Path(f"{os.fspath(output)}.checkpoint"), key=run.key(), resume=resume)
            resumed = len(checkpoint.blocks())
            work = kept_results(executor, annotator, source, _kept(checkpoint, source), most=_MOST_BLOCKS)
            # Closed before the reader and the tables are, whatever happens: other threads work on them.
            with kept_if_useful(checkpoint, run.inputs), closing(read_ahead(work)) as results:
                for rows in run.rows(results, others):
                    table.write(rows)
                    # Arrow would keep all that a block has ever taken.
                    pa.default_memory_pool().release_unused()
                others.finish()
        reports = run.reports(others)
        paths = write_reports(output, reports, {**run.facts(), **others.as_dict()})
        checkpoint.remove()
    return AnnotatedFiles(
        output=Path(output),
        summary_path=paths[0],
        table_path=paths[1],
        files=reports,
        umis=source.umi_counts,
        further=wanted,
        clonotypes=others.clonotypes,
        new_alleles=others.new_alleles,
        resumed_blocks=resumed,
    )


class _Run:
    """Everything that is fixed for one run, and its totals."""

    def __init__(
        self,
        reader: ReadFiles,
        source: ReadSource,
        plan: AnnotationPlan,
        statuses: Sequence[str] | None,
    ) -> None:
        self._reader = reader
        self._source = source
        self._plan = plan
        self._statuses = statuses
        self._summaries = [ReadSummary() for _ in source.names]
        self.inputs = [*reader.paths, *(reader.mate_paths or ())]

    def metadata(self) -> dict[str, str]:
        """Provenance, the same for every run with these settings."""
        facts = {"provenance": self._plan.provenance.as_dict(), "umis": self._source.described}
        return {f"plait.{key}": json.dumps(fact, sort_keys=True) for key, fact in facts.items() if fact}

    def key(self) -> dict[str, object]:
        """What must be equal for a run to be resumed."""
        package = Path(__file__).parents[2]
        return {
            "provenance": self._plan.provenance.as_dict(),
            "sources": source_digest(package.rglob("*.py")),
            "inputs": [list(identity) for identity in self._reader.identities],
            "paired": self._reader.mate_paths is not None,
            "repertoires": list(self._source.names),
            "umis": self._source.described,
            "statuses": self._statuses and list(self._statuses),
            "block_reads": self._reader.block_reads,
        }

    def facts(self) -> dict[str, object]:
        """What the summary tells beside the counts."""
        found: dict[str, object] = {
            "provenance": self._plan.provenance.as_dict(),
            "keep_failed": self._statuses is None,
        }
        if self._source.umi_counts is not None:
            found |= {"umis": self._source.described, "umi_counts": asdict(self._source.umi_counts)}
        return found

    def reports(self, others: FurtherResults) -> tuple[FileReport, ...]:
        """What became of the reads of each file."""
        reader = self._reader
        mates: list[str | None] = [os.fspath(path) for path in reader.mate_paths or ()]
        mates += [None] * (len(reader.paths) - len(mates))
        for summary, collected in zip(self._summaries, self._source.collected, strict=True):
            summary.merge(collected)
        found = zip(reader.paths, mates, self._source.names, self._summaries, reader.counts, strict=True)
        return tuple(
            FileReport(
                path=os.fspath(path),
                mate_path=mate,
                repertoire_id=name,
                summary=summary,
                input=asdict(counts),
                clonotypes=others.clonotypes_of(name),
            )
            for path, mate, name, summary, counts in found
        )

    def rows(
        self,
        results: Iterable[tuple[ReadUnit, tuple[pa.RecordBatch, ReadSummary], bytes]],
        others: FurtherResults,
    ) -> Iterator[pa.RecordBatch]:
        """Rows block by block; on their way they are counted, and passed on to all other results."""
        for unit, (rows, summary), _ in results:
            for part in (unit.summary, summary):
                self._summaries[unit.file].merge(part)
            others.add(rows)
            self._source.done(unit)
            if self._statuses is None or len(self._statuses) == 1:
                yield rows
            else:
                yield rows.filter(pc.equal(rows["annotation_status"], "ok"))


def _kept(checkpoint: Checkpoint, source: ReadSource) -> Kept[ReadUnit, tuple[pa.RecordBatch, ReadSummary]]:
    return Kept(
        checkpoint=checkpoint,
        digest=unit_digest,
        stored=_stored,
        restored=_restored,
        named=source.named,
        size=unit_bytes,
    )


def _stored(found: tuple[pa.RecordBatch, ReadSummary]) -> pa.RecordBatch:
    rows, summary = found
    return rows.replace_schema_metadata({_SUMMARY: json.dumps(summary.state(), sort_keys=True)})


def _restored(unit: ReadUnit, stored: pa.RecordBatch) -> tuple[pa.RecordBatch, ReadSummary]:
    summary = ReadSummary.from_state(json.loads(stored.schema.metadata[_SUMMARY]))
    return stored.replace_schema_metadata(None), summary
