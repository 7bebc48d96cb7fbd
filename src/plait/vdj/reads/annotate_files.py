"""Annotate files of reads, or with UMIs a consensus of each molecule: streamed, in blocks, resumable."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import check_different
from plait.formats.checkpoints import Checkpoint, digest_of, kept_if_useful
from plait.formats.datasets import Folder, PartFile, Parts, PartWriter, rows_of_part
from plait.formats.fastq import ReadBlock
from plait.formats.files import beside, is_dataset, read_ahead
from plait.formats.reads import ReadFiles, ReadItem, open_reads
from plait.formats.sheets import SampleSheet
from plait.formats.tables import ONE_FILE, PartSettings, TableWriter, open_table
from plait.run.datasets import WorkedPart, open_dataset
from plait.run.executor import Executor, LocalExecutor, Progress
from plait.run.rows import Kept, Remade, asked_where_done, kept_results
from plait.settings import package_digest
from plait.vdj.germline import GermlineSet
from plait.vdj.reads.annotator import ReadAnnotator, ReadSummary
from plait.vdj.reads.file_reports import FileReport, total_of, write_reports
from plait.vdj.reads.rearrangements import AnnotationSettings, schema_of

#: Bytes of reads or rows that wait in memory to be sorted or collapsed; the peak is about six times that.
_WAITING_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Umis:
    """Where unique molecular identifiers stand.

    Molecules with fewer reads than `min_reads` are left out; `ratio` as in `UmiSettings`, None: take UMIs as
    they are.
    """

    place: BarcodePlace
    min_reads: int = 1
    ratio: float | None = None

    @property
    def settings(self) -> UmiSettings:
        """What makes a molecule."""
        from plait.vdj.clonotypes.umis import UmiSettings

        return UmiSettings(min_reads=self.min_reads, umi_ratio=self.ratio, memory_bytes=_WAITING_BYTES)


class ReadUnit(NamedTuple):
    """Reads that are annotated together, of file number `file`, from 0; `mates` may be None.

    Of molecules, `file` is the first one of their repertoire, `counts` the reads behind each, `first` None
    and `summary` empty, as their reads have been counted before. Otherwise `first` is the number of the first
    of these reads in their file, from 0. `cells` are named for each read, empty where unknown.
    """

    file: int
    reads: ReadBlock
    mates: ReadBlock | None
    counts: NDArray[np.int64] | None
    summary: ReadSummary
    first: int | None = None
    cells: Sequence[str] | None = None


def unit_digest(unit: ReadUnit) -> bytes:
    """Digest of what a block holds: its reads, and where they belong."""
    names, cells = (
        "\n".join(texts).encode("utf-8", "surrogatepass") for texts in (unit.reads.names, unit.cells or ())
    )
    return digest_of(str(unit.file).encode(), names, cells, *_arrays(unit))


def _arrays(unit: ReadUnit) -> list[NDArray[Any]]:
    """All arrays of a block; an empty one for those that there are not."""
    found: list[NDArray[Any] | None] = [unit.counts]
    for reads in (unit.reads, unit.mates):
        found += [None] * 3 if reads is None else [reads.letters, reads.starts, reads.qualities]
    return [np.zeros(0, np.uint8) if array is None else array for array in found]


@dataclass(frozen=True)
class UnitAnnotator(Remade):
    """Annotates reads on whatever machine it is called; picklable, its tables are made where they are needed.

    `names` has the repertoire of each file; only rows of `statuses` are wanted, None: all.
    """

    germlines: tuple[GermlineSet, ...]
    settings: AnnotationSettings
    device: str
    names: tuple[str, ...]
    statuses: tuple[str, ...] | None

    @property
    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return schema_of(self.settings)

    @cached_property
    def annotator(self) -> ReadAnnotator:
        """What annotates."""
        return ReadAnnotator(self.germlines, settings=self.settings, device=self.device)

    def __call__(self, unit: ReadUnit) -> tuple[pa.RecordBatch, ReadSummary]:
        """The rows of a block that are wanted, and its counts."""
        rows, summary = self.annotator.annotate(
            unit.reads,
            unit.mates,
            counts=unit.counts,
            repertoire_id=self.names[unit.file],
            cells=unit.cells,
        )
        summary.rows = rows.num_rows if self.statuses is None else summary.statuses["ok"]
        kept = self.statuses or tuple(summary.statuses)
        if sum(map(summary.statuses.__getitem__, kept)) < rows.num_rows:
            rows = rows.filter(pc.is_in(rows["annotation_status"], value_set=pa.array(kept, pa.string())))
        return rows, summary


def _summary(reads: ReadBlock, mates: ReadBlock | None) -> ReadSummary:
    found = ReadSummary()
    found.add_reads([reads] if mates is None else [reads, mates], reads=len(reads))
    return found


# What makes molecules and the further tables is loaded where it is asked for.
if TYPE_CHECKING:
    from plait.formats.reads import BarcodePlace
    from plait.vdj.alleles.evidence import AlleleEvidence
    from plait.vdj.alleles.new_alleles import NewAlleles
    from plait.vdj.clonotypes.clonotypes import ClonotypeCollector, ClonotypeCounts, ClonotypeSettings
    from plait.vdj.clonotypes.umis import UmiCounts, UmiSettings

_SUFFIXES: Final = re.compile(
    r"(\.(fastq|fq|fasta|fa|fna|ffn|seq|txt))?(\.(gz|bgz|bgzf|zst|bz2|xz))?$", re.IGNORECASE
)

_FIRST_MATE: Final = re.compile(r"[._-]R?1(_001)?$", re.IGNORECASE)
#: What no cell can hold: ends of one, and bytes of a file's name that are not UTF-8.
_UNWRITABLE: Final = re.compile("[\t\r\n\0\ud800-\udfff]")


def repertoire_names(
    paths: Sequence[str | os.PathLike[str]], given: Sequence[str] | None, *, paired: bool = False
) -> tuple[str, ...]:
    """A name for the repertoire of each file; files of one name are one repertoire.

    If none are `given`, the names of the files without folders and suffixes, which must differ; of `paired`
    files without ``_1``, ``_R1`` or ``_R1_001``, too. InvalidInput if there are more or fewer names than
    files, a name is empty or cannot stand in a table, or two files would get one name that nobody asked for.
    """
    if given is None:
        names = [_SUFFIXES.sub("", Path(path).name) or Path(path).name for path in paths]
        if paired:
            names = [_FIRST_MATE.sub("", name) or name for name in names]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InvalidInput(
                "repertoire_ids",
                found=f"{repeated[0]!r} as the name of several files",
                expected="files with different names",
                hint="name the repertoire of each (--repertoire-id); files of one name are one repertoire",
            )
    elif len(given) != len(paths):
        raise InvalidInput(
            "repertoire_ids",
            found=f"{len(given)} for {len(paths)} files",
            expected="one for each file",
        )
    else:
        names = list(given)
    for name in names:
        if not name.strip() or _UNWRITABLE.search(name):
            raise InvalidInput(
                "repertoire_ids",
                found=repr(name),
                expected="a name of UTF-8, without tabs",
                hint="name the repertoire of each file (--repertoire-id)",
            )
    return tuple(names)


class SampleFacts:
    """What a sheet says of each repertoire: texts that stand in all its rows, as further columns.

    Where no subject is said, it has the name of the repertoire. `sheet` may be any files; there are no facts
    then. FormatError if files of one repertoire differ.
    """

    def __init__(self, sheet: Sequence[_Path], repertoires: Sequence[str]) -> None:
        self._facts: dict[str, Mapping[str, str]] = {}
        if isinstance(sheet, SampleSheet):
            for sample, name, told in zip(sheet.samples, repertoires, sheet.facts, strict=True):
                told = {"subject_id": name, **told}
                own = {key: text for key, text in told.items() if key != _REPERTOIRE}
                if (known := self._facts.setdefault(name, own)) != own:
                    raise FormatError(
                        sheet.path,
                        line=sample.line,
                        found=f"{_told(own)} for repertoire {name!r}",
                        expected=f"{_told(known)}, as in a line before",
                        hint="files of one repertoire are of one sample",
                    )
        names = dict.fromkeys(key for own in self._facts.values() for key in own)
        self._columns = pa.schema([(name, pa.string()) for name in names])

    def schema(self, given: pa.Schema) -> pa.Schema:
        """Columns of rows with the facts behind them."""
        return pa.schema([*given, *self._columns])

    def added(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows with the facts of their repertoires."""
        if not self._columns.names:
            return rows
        encoded = rows[_REPERTOIRE].dictionary_encode()
        own = [self._facts[name] for name in encoded.dictionary.to_pylist()]
        columns = [pa.array([one.get(name) for one in own], pa.string()) for name in self._columns.names]
        further = [column.take(encoded.indices) for column in columns]
        return pa.record_batch([*rows.columns, *further], schema=self.schema(rows.schema))


_REPERTOIRE: Final = "repertoire_id"


def _told(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {text!r}" for name, text in facts.items()) or "nothing"


_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherSettings:
    """What is wanted besides the table of rows; None: not wanted.

    Tables are ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``. `satellite_ratio` is that of
    `plait.vdj.clonotypes.clonotypes.ClonotypeSettings`; InvalidInput if it is wrong or there is no table of
    clonotypes.
    """

    clonotypes: _Path | None = None
    satellite_ratio: float | None = None
    new_alleles: _Path | None = None

    def __post_init__(self) -> None:
        """Check the ratio."""
        if self.satellite_ratio is not None and self.collapse(0) and self.clonotypes is None:
            raise InvalidInput(
                "satellite_ratio", found=self.satellite_ratio, expected="a table of clonotypes with it"
            )

    def collapse(self, min_quality: int) -> ClonotypeSettings:
        """How rows are collapsed to clonotypes."""
        from plait.vdj.clonotypes.clonotypes import ClonotypeSettings

        return ClonotypeSettings(
            satellite_ratio=self.satellite_ratio, min_quality=min_quality, memory_bytes=_WAITING_BYTES
        )


class FurtherResults:
    """Takes rows as they are written, and makes all other results of them; a context manager.

    A clean exit makes the files appear, an exception removes them; `inputs` must not be overwritten. What
    does not fit memory is put aside beside `output`. `clonotypes` and `new_alleles` (one for each germline
    set) are set by `finish`.
    """

    def __init__(
        self,
        output: _Path,
        annotator: UnitAnnotator,
        settings: FurtherSettings,
        samples: SampleFacts,
        *,
        metadata: Mapping[str, str],
        inputs: Sequence[_Path],
    ) -> None:
        # The summary stands beside the output.
        summary = beside(output, ".summary.tsv")
        check_different(output, summary, settings.clonotypes, settings.new_alleles)
        self._samples = samples
        self._collector: ClonotypeCollector | None = None
        self._clonotype_table: TableWriter | None = None
        self._allele_table: TableWriter | None = None
        self._evidence: list[AlleleEvidence] = []
        self._by_repertoire: Counter[str] = Counter()
        self.clonotypes: ClonotypeCounts | None = None
        self.new_alleles: tuple[NewAlleles, ...] = ()
        with ExitStack() as stack:
            if settings.clonotypes is not None:
                from plait.vdj.clonotypes.clonotypes import ClonotypeCollector

                folder = beside(output, ".clonotype-rows")
                collapsing = settings.collapse(annotator.settings.min_junction_quality)
                collector = stack.enter_context(ClonotypeCollector(folder, collapsing))
                # An empty batch tells it the columns.
                collector.add(pa.RecordBatch.from_pylist([], schema=annotator.schema))
                columns = samples.schema(collector.schema)
                self._clonotype_table = stack.enter_context(
                    open_table(settings.clonotypes, columns, metadata=metadata, inputs=inputs)
                )
                self._collector = collector
            if settings.new_alleles is not None:
                from plait.vdj.alleles.evidence import AlleleEvidence
                from plait.vdj.alleles.new_alleles import CANDIDATE_SCHEMA

                self._allele_table = stack.enter_context(
                    open_table(settings.new_alleles, CANDIDATE_SCHEMA, metadata=metadata, inputs=inputs)
                )
                self._evidence = [AlleleEvidence(germline) for germline in annotator.germlines]
            self._stack = stack.pop_all()

    def add(self, rows: pa.RecordBatch) -> None:
        """Take rows in the order of the table; of any status, but only those with a junction count."""
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
                self._clonotype_table.write(self._samples.added(batch))
                for entry in pc.value_counts(batch["repertoire_id"]).to_pylist():
                    self._by_repertoire[entry["values"]] += entry["counts"]
            self.clonotypes = self._collector.counts
        if self._allele_table is not None:
            from plait.vdj.alleles.new_alleles import new_alleles_of

            self.new_alleles = tuple(new_alleles_of(evidence) for evidence in self._evidence)
            for found in self.new_alleles:
                self._allele_table.write(found.candidates)

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


#: Reads of a block: a row group of the output and the unit of work, of threads and of resuming.
_BLOCK_READS = 12_288
#: Blocks worked on at a time, so that many processors do not take much memory.
_MOST_BLOCKS = 12
#: Blocks of a part of a dataset, at most.
_MOST_PART_BLOCKS = 4
#: Blocks that are laid out as text or Parquet at a time: a fifth of the work.
_MOST_ENCODED = 4
_SUMMARY = b"plait.summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatedFiles:
    """A finished run.

    `summary_path` is JSON with all counts, `table_path` has those of the files as a table. `umis`,
    `clonotypes` and `new_alleles` (one for each germline set) are there if they were asked for;
    `resumed_blocks` counts the blocks taken over from the run that was killed.
    """

    output: Path | str
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
    cells: BarcodePlace | None = None,
    further: FurtherSettings | None = None,
    repertoire_ids: Sequence[str] | None = None,
    keep_failed: bool = False,
    device: str = "auto",
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    parts: PartSettings = ONE_FILE,
) -> AnnotatedFiles:
    """Annotate the reads of files and write one table of rearrangements.

    Rows come in the order of the reads. Beside the table stand its summary, ``OUTPUT.summary.json``, and what
    it tells of each file as a table, ``OUTPUT.summary.tsv``. While the run lasts, finished blocks are kept in
    ``OUTPUT.checkpoint``.

    Parameters
    ----------
    inputs
        FASTQ or FASTA, plain, gzip or zstd. Of a `plait.formats.sheets.SampleSheet`, repertoire_id and the
        files of mates are taken, and all rows get subject_id and the other columns.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``; or a folder of parts, whose name ends
        in a slash. They are written where reads are annotated, unless `further` results are made of the rows.
    germlines
        The loci that reads can come from.
    mates
        Files of the second mates, one for each of `inputs`.
    settings
        Limits; a read beyond them gets a reason in the place of a junction.
    umis
        Where unique molecular identifiers stand; of the reads with one, a consensus is annotated.
    cells
        Where the barcodes of cells stand, if rows are to have a cell_id. They are taken as they are.
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
        Called after every block or part.
    parts
        How a folder of parts is cut; `part_rows` are reads, or molecules.

    Raises
    ------
    InvalidInput
        If there is no input, an output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    executor = executor or LocalExecutor(threads)
    wanted = further or FurtherSettings()
    mates, names, samples = _samples(inputs, mates, repertoire_ids)
    # Rows of low quality are not written; they may join a clonotype.
    statuses = None if keep_failed else ("ok",) if wanted.clonotypes is None else ("ok", "low_quality")
    limits = settings or AnnotationSettings()
    annotator = UnitAnnotator(tuple(germlines), limits, device, names, statuses)
    # Asked there: what this machine has may be something else.
    provenance = asked_where_done(executor, attrgetter("annotator.provenance"), annotator).as_dict()
    headers = any(place.tagged for place in (cells, umis and umis.place) if place)
    with open_reads(inputs, mates, block_reads=_BLOCK_READS, headers=headers) as reader:
        run = _Run(reader, annotator, provenance, umis, cells, output, progress)
        facts: dict[str, Any] = {"metadata": run.metadata(), "inputs": run.inputs}
        if is_dataset(output) and wanted.clonotypes is None and wanted.new_alleles is None:
            none = FurtherResults(output, annotator, wanted, samples, **facts)
            resumed = _write_parts(run, annotator, samples, output, executor, resume, parts)
            return _annotated(run, output, none, wanted, resumed)
        with ExitStack() as tables:
            # Opened first: its lock keeps other runs from the folders beside it.
            table = tables.enter_context(
                open_table(output, samples.schema(annotator.schema), **facts, parts=parts)
            )
            others = tables.enter_context(FurtherResults(output, annotator, wanted, samples, **facts))
            checkpoint = Checkpoint(beside(output, ".checkpoint"), key=run.key(), resume=resume)
            resumed = len(checkpoint.blocks())
            work = kept_results(executor, annotator, run, run.kept(checkpoint), most=_MOST_BLOCKS)
            # Closed before the reader and the tables are, whatever happens: other threads work on them.
            with kept_if_useful(checkpoint, run.inputs), closing(read_ahead(work)) as results:
                _write_rows(map(samples.added, run.rows(results, others)), table, executor.slots)
                others.finish()
        done = _annotated(run, output, others, wanted, resumed)
        checkpoint.remove()
    return done


def _annotated(
    run: _Run, output: _Path, others: FurtherResults, wanted: FurtherSettings, resumed: int
) -> AnnotatedFiles:
    """The finished run, whose reports are written."""
    reports = run.reports(others)
    paths = write_reports(output, reports, {**run.facts(), **others.as_dict()})
    return AnnotatedFiles(
        output=os.fspath(output) if is_dataset(output) else Path(output),
        summary_path=paths[0],
        table_path=paths[1],
        files=reports,
        umis=run.umi_counts,
        further=wanted,
        clonotypes=others.clonotypes,
        new_alleles=others.new_alleles,
        resumed_blocks=resumed,
    )


@dataclass(frozen=True, slots=True)
class ReadsPart:
    """Blocks of reads that become part `number`."""

    number: int
    units: tuple[ReadUnit, ...]


@dataclass(frozen=True)
class PartOfReads(Remade):
    """Annotates the reads of a part and writes it, wherever it is called; totals are those of each file."""

    annotator: UnitAnnotator
    samples: SampleFacts
    parts: Parts
    folder: Folder

    def __call__(self, part: ReadsPart) -> WorkedPart:
        """Write a part."""
        writer, totals = PartWriter(part.number, self.parts), dict[int, ReadSummary]()
        for unit in part.units:
            rows, summary = self.annotator(unit)
            for found in (unit.summary, summary):
                totals.setdefault(unit.file, ReadSummary()).merge(found)
            writer.write(self.samples.added(rows))
        return WorkedPart(writer.finish(self.folder), sum(len(unit.reads) for unit in part.units), totals)


def _write_parts(
    run: _Run,
    annotator: UnitAnnotator,
    samples: SampleFacts,
    output: _Path,
    executor: Executor,
    resume: bool,
    settings: PartSettings,
) -> int:
    """Annotate all reads into a folder of parts; returns how many parts were taken over."""
    parts = Parts(samples.schema(annotator.schema), run.metadata(), settings.partition).check()
    blocks = max(1, min(rows_of_part(settings) // _BLOCK_READS, _MOST_PART_BLOCKS))
    units = iter(run)
    groups = iter(lambda: tuple(islice(units, blocks)), ())
    with open_dataset(
        output, parts, key={**run.key(), "part_blocks": blocks}, inputs=run.inputs, resume=resume
    ) as made:
        resumed, files = len(made.checkpoint.blocks()), list[PartFile]()
        results = made.results(
            executor,
            PartOfReads(annotator, samples, parts, made.output.folder),
            (ReadsPart(number, group) for number, group in enumerate(groups)),
            digest=lambda part: digest_of(*map(unit_digest, part.units)),
            named=lambda _, part: " and ".join(run.named(part.number, unit) for unit in part.units),
            totals={file: ReadSummary() for file in range(len(annotator.names))},
            most=_MOST_BLOCKS,
            size=lambda part: sum(array.nbytes for unit in part.units for array in _arrays(unit)),
        )
        with closing(results):
            for found in results:
                files += found.files
                run.add(found.rows, found.totals)
        made.finish(files, None)
    return resumed


def _write_rows(batches: Iterable[pa.RecordBatch], table: TableWriter, threads: int) -> None:
    with closing(LocalExecutor(min(threads, _MOST_ENCODED)).map(table.encoded, batches)) as ready:
        for rows in ready:
            table.write(rows)


def _samples(
    inputs: Sequence[_Path], mates: Sequence[_Path] | None, repertoire_ids: Sequence[str] | None
) -> tuple[Sequence[_Path] | None, tuple[str, ...], SampleFacts]:
    """Files of mates, if any, the repertoire of each file, and what else a sheet says of it."""
    if isinstance(inputs, SampleSheet):
        mates, repertoire_ids = _of_sheet(inputs, mates, repertoire_ids)
    names = repertoire_names(inputs, repertoire_ids, paired=mates is not None)
    return mates, names, SampleFacts(inputs, names)


def _of_sheet(
    sheet: SampleSheet, mates: Sequence[_Path] | None, repertoire_ids: Sequence[str] | None
) -> tuple[Sequence[_Path] | None, Sequence[str] | None]:
    for what, given in (("mates", mates), ("repertoire_ids", repertoire_ids)):
        if given is not None:
            raise InvalidInput(what, found="some beside a sheet", expected="a column of the sheet")
    lines = [(one, one.mate, one.covariates.get(_REPERTOIRE)) for one in sheet.samples]
    for place, column in ((1, "mate"), (2, _REPERTOIRE)):
        blank = next((line[0].line for line in lines if line[place] is None), None)
        if blank is not None and any(line[place] is not None for line in lines):
            expected = "one in every line, or in none"
            raise FormatError(sheet.path, line=blank, column=column, found="nothing", expected=expected)
    own = [mate for _, mate, _ in lines if mate is not None]
    names = [name for *_, name in lines if name is not None]
    return own or None, names or None


class _Run:
    """Blocks of reads, or of consensus reads of molecules, which depend on the files alone; and their totals.

    Reads with UMIs that do not fit memory are put aside beside `output`. `progress` is called as reads are
    collected and as blocks are annotated. InvalidInput if barcodes are to stand in mates that there are not.
    """

    def __init__(
        self,
        reader: ReadFiles,
        annotator: UnitAnnotator,
        provenance: Mapping[str, Any],
        umis: Umis | None,
        cells: BarcodePlace | None,
        output: _Path,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        for place in (umis and umis.place, cells):
            if place:
                place.check_mates(reader.mate_paths is not None)
        self._reader = reader
        self._names, self._statuses = annotator.names, annotator.statuses
        self._provenance = provenance
        self._umis, self._cells = umis, cells
        self._folder = beside(output, ".umi-reads")
        self._progress = progress
        self._annotated = self._collected = self._used = 0
        self._summaries = [ReadSummary() for _ in self._names]
        self.inputs = [*reader.paths, *(reader.mate_paths or ())]
        self.umi_counts: UmiCounts | None = None

    def __iter__(self) -> Iterator[ReadUnit]:
        if self._umis is not None:
            yield from self._molecules(self._umis)
            return
        for item in self._reader:
            summary = _summary(item.reads, item.mates)
            reads, mates, cells = self._of_cells(item)
            yield ReadUnit(item.file, reads, mates, None, summary, item.first, cells)

    def _of_cells(self, item: ReadItem) -> tuple[ReadBlock, ReadBlock | None, Sequence[str] | None]:
        """Reads and mates without the barcodes of cells, and these."""
        if self._cells is None:
            return item.reads, item.mates, None
        from plait.formats.reads import take_barcodes

        found = take_barcodes(item.reads, item.mates, [self._cells])
        return found.reads, found.mates, found.barcodes[0]

    def _molecules(self, umis: Umis) -> Generator[ReadUnit, None, None]:
        from plait.formats.reads import take_barcodes
        from plait.vdj.clonotypes.umis import UmiCollector

        places = [umis.place, *([] if self._cells is None else [self._cells])]
        with UmiCollector(self._folder, umis.settings) as collector:
            for item in self._reader:
                self._summaries[item.file].merge(_summary(item.reads, item.mates))
                taken = take_barcodes(item.reads, item.mates, places)
                # Barcodes of cells, if any, are the second ones.
                collector.add(
                    taken.reads, taken.mates, taken.barcodes[0], self._names[item.file], *taken.barcodes[1:]
                )
                self._collected += len(item.reads)
                if self._progress is not None:
                    read = self._reader.bytes_read()
                    self._progress(Progress(self._collected, read, 2 * self._reader.total_bytes))
            for found in collector.finish():
                file = self._names.index(found.repertoire)
                cells = None if self._cells is None else found.cells
                yield ReadUnit(file, found.reads, found.mates, found.counts, ReadSummary(), None, cells)
            self.umi_counts = collector.counts

    @property
    def _described(self) -> dict[str, object] | None:
        """The UMIs, ready for JSON; None without."""
        if self._umis is None:
            return None
        return {**_of_place(self._umis.place), **asdict(self._umis.settings)}

    @property
    def _cell_place(self) -> dict[str, object] | None:
        return None if self._cells is None else _of_place(self._cells)

    def metadata(self) -> dict[str, str]:
        """Provenance, the same for every run with these settings."""
        facts = {"provenance": self._provenance, "umis": self._described, "cells": self._cell_place}
        return {f"plait.{key}": json.dumps(fact, sort_keys=True) for key, fact in facts.items() if fact}

    def key(self) -> dict[str, object]:
        """What must be equal for a run to be resumed."""
        return {
            "provenance": self._provenance,
            "sources": package_digest(),
            "inputs": [list(identity) for identity in self._reader.identities],
            "paired": self._reader.mate_paths is not None,
            "repertoires": list(self._names),
            "umis": self._described,
            **({"cells": self._cell_place} if self._cells else {}),
            "statuses": self._statuses and list(self._statuses),
            "block_reads": self._reader.block_reads,
        }

    def kept(self, checkpoint: Checkpoint) -> Kept[ReadUnit, tuple[pa.RecordBatch, ReadSummary]]:
        """How rows and counts of blocks are kept."""
        return Kept(
            checkpoint=checkpoint,
            digest=unit_digest,
            stored=_stored,
            restored=_restored,
            named=self.named,
            size=lambda unit: sum(array.nbytes for array in _arrays(unit)),
        )

    def named(self, index: int, unit: ReadUnit) -> str:
        """What a block is called in messages."""
        path = self._reader.paths[unit.file]
        if unit.first is None:
            return f"block {index}, molecules of {str(path)!r}"
        return f"reads {unit.first} to {unit.first + len(unit.reads) - 1} of {str(path)!r}"

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
            self._tell(unit)
            if self._statuses is None or len(self._statuses) == 1:
                yield rows
            else:
                yield rows.filter(pc.equal(rows["annotation_status"], "ok"))

    def add(self, reads: int, totals: Mapping[int, ReadSummary]) -> None:
        """Count the reads of a part, and tell that they have been annotated."""
        for file, summary in totals.items():
            self._summaries[file].merge(summary)
        self._annotated += reads
        if self._progress is not None:
            self._progress(Progress(self._annotated, self._reader.bytes_read(), self._reader.total_bytes))

    def _tell(self, unit: ReadUnit) -> None:
        """Tell that a block has been annotated."""
        self._annotated += len(unit.reads)
        if self._progress is None:
            return
        read, total = self._reader.bytes_read(), self._reader.total_bytes
        if unit.counts is not None:
            # Collecting the reads was half of the way.
            self._used += int(unit.counts.sum())
            read, total = total + total * self._used // max(self._collected, 1), 2 * total
        self._progress(Progress(self._annotated, read, total))

    def facts(self) -> dict[str, object]:
        """What the summary tells beside the counts."""
        found: dict[str, object] = {"provenance": self._provenance, "keep_failed": self._statuses is None}
        if self.umi_counts is not None:
            found |= {"umis": self._described, "umi_counts": asdict(self.umi_counts)}
        return found

    def reports(self, others: FurtherResults) -> tuple[FileReport, ...]:
        """What became of the reads of each file."""
        reader = self._reader
        mates: Sequence[_Path | None] = reader.mate_paths or [None] * len(reader.paths)
        found = zip(reader.paths, mates, self._names, self._summaries, reader.counts, strict=True)
        return tuple(
            FileReport(
                path=os.fspath(path),
                mate_path=None if mate is None else os.fspath(mate),
                repertoire_id=name,
                summary=summary,
                input=asdict(counts),
                clonotypes=others.clonotypes_of(name),
            )
            for path, mate, name, summary, counts in found
        )


def _of_place(place: BarcodePlace) -> dict[str, object]:
    """A place, ready for JSON."""
    pattern = None if place.pattern is None else place.pattern.pattern
    return {"name": pattern, "parts": [list(part) for part in place.parts]}


def _stored(found: tuple[pa.RecordBatch, ReadSummary]) -> pa.RecordBatch:
    rows, summary = found
    return rows.replace_schema_metadata({_SUMMARY: json.dumps(summary.state(), sort_keys=True)})


def _restored(unit: ReadUnit, stored: pa.RecordBatch) -> tuple[pa.RecordBatch, ReadSummary]:
    summary = ReadSummary.from_state(json.loads(stored.schema.metadata[_SUMMARY]))
    return stored.replace_schema_metadata(None), summary
