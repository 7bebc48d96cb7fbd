"""``plait vdj annotate`` and ``alleles``: from reads to rearrangements, and alleles that they show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from plait.cli.options import (
    DeviceOption,
    Flag,
    FurtherTable,
    PartParameters,
    RowProgress,
    RunParameters,
    Several,
    Signed,
    TableOutput,
    WholeNumber,
    say,
    tables_of,
)
from plait.errors import InvalidInput
from plait.lang.compiling import work_time

if TYPE_CHECKING:
    from plait.formats.reads import BarcodePlace
    from plait.formats.sheets import SampleSheet
    from plait.vdj.reads.annotate_files import Umis
    from plait.vdj.reads.rearrangements import AnnotationSettings

Number = Annotated[WholeNumber, Signed]


@Parameter(name="*", group="What is a rearrangement")
@dataclass(frozen=True, kw_only=True)
class Limits:
    """Options that decide what is a rearrangement.

    Attributes
    ----------
    productive
        Write only productive rearrangements; the others are counted as out_of_frame and stop_codon.
    max_error_rate
        Largest share of errors in V and J outside the junction.
    min_junction_quality
        Least Phred quality of every base of the junction; 0 for any. Reads below are in the table of
        clonotypes if their other bases agree with exactly one clonotype of better reads.
    min_length
        Least number of bases of a read.
    max_length
        Largest number of bases of a read.
    alignment_parts
        Add columns with the aligned part of each gene, and translations of the alignments.
    regions
        Add columns with frameworks 1 to 3 and CDRs 1 and 2, and mutations in each.
    """

    productive: Flag = False
    max_error_rate: Annotated[float, Signed] = 0.15
    min_junction_quality: Number = 15
    min_length: Number = 20
    max_length: Number = 10_000
    alignment_parts: Flag = False
    regions: Flag = False

    def settings(self) -> AnnotationSettings:
        """The settings they ask for."""
        from plait.vdj.reads.rearrangements import AnnotationSettings

        given = asdict(self)
        return AnnotationSettings(productive_only=given.pop("productive"), **given)


_DEFAULT = Limits()


def annotate(
    *reads: Path,
    germline: str,
    output: TableOutput,
    anchors: Path | None = None,
    mate: Annotated[tuple[Path, ...], Several] = (),
    umi: str | None = None,
    cell: str | None = None,
    min_umi_reads: Number = 1,
    umi_ratio: Annotated[float | None, Signed] = None,
    clonotypes: FurtherTable = None,
    merge_satellites: Annotated[float | None, Signed] = None,
    new_alleles: FurtherTable = None,
    limits: Limits = _DEFAULT,
    keep_failed: Flag = False,
    repertoire_id: Annotated[tuple[str, ...], Several] = (),
    sheet: Path | None = None,
    device: DeviceOption = "auto",
    run: RunParameters = RunParameters(),
    parts: PartParameters = PartParameters(),
) -> None:
    """Find V, D, J and the junction of every read.

    Parameters
    ----------
    reads
        FASTQ or FASTA files: plain, .gz (bgzip too) or .zst; - is standard input.
    germline
        Names of bundled germline sets (see plait germline list), human, mouse, human_ig and so on for all of
        a species, or files or folders, with commas between; each read is called in the set that it matches
        best.
    output
        The table of rearrangements to write: .parquet, .tsv, .tsv.gz or .tsv.zst; or a folder of
        Parquet parts: NAME/. Its summary stands beside.
    anchors
        CSV table gene,anchor_index[,function] of anchors that replace those of the germline set.
    mate
        File of the second mates, once for each file of reads, in their order. Mates that overlap are merged.
    umi
        Where unique molecular identifiers stand: name (behind the last colon or underscore of the read's
        name), name:REGEX (its one group), tag:UB (a tag UB:Z:... of the header), read1:0-12 (bases of the
        read, from 0, end not included), read2:0-8, or several places with + between. Of the reads of a
        molecule a consensus is annotated.
    cell
        Where the barcodes of cells stand: tag:CB, read1:0-16, name:REGEX as for --umi, or name (before the
        UMI of CELL_UMI, or before _contig_1). Rows and clonotypes have the cell as cell_id; see plait vdj
        cells.
    min_umi_reads
        Least number of reads of a molecule.
    umi_ratio
        Take a UMI for an erroneous copy of another one that differs in one base and has so many times as many
        reads, for example 10; by default UMIs are taken as they are.
    clonotypes
        Table of clonotypes to write: junctions with the same V and J gene, counted.
    merge_satellites
        Clonotypes: merge one that differs in a single base from another that is so many times as abundant,
        for example 20, if the quality of that base is low; by default none is merged.
    new_alleles
        Table to write of alleles that the germline set seems to lack, for reads of one individual; see plait
        vdj alleles, which also makes a germline set with them.
    limits
        What is a rearrangement, and what is told of it.
    keep_failed
        Write every read, with its annotation_status, not only those that are ok.
    repertoire_id
        Name of the repertoire of a file, once for each file of reads, in their order; by default the name of
        the file without suffixes.
    sheet
        In the place of reads, samples as CSV or TSV: file, and if wanted mate, repertoire_id, subject_id and
        other columns, as the condition, which all rows of the file get.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    run
        How the work is done.
    parts
        How a folder of parts is cut.
    """
    run.ask_driver(device)
    from plait.reports.repertoire_text import annotation_text, lost_text
    from plait.vdj.reads.annotate_files import FurtherSettings, annotate_files
    from plait.vdj.reads.annotator import germlines_of

    files = reads if sheet is None else _samples(sheet, reads)
    if not files:
        raise InvalidInput("reads", found="no file", expected="FASTQ or FASTA files")
    umis = _umis(umi, min_umi_reads, umi_ratio)
    germlines = germlines_of(germline, anchors=anchors)
    for alleles in germlines:
        for note in alleles.notes:
            say(f"germline set {alleles.name}: {note}")
    further = FurtherSettings(
        clonotypes=clonotypes, satellite_ratio=merge_satellites, new_alleles=new_alleles
    )
    how: Any = {"repertoire_ids": repertoire_id or None, "keep_failed": keep_failed, "device": device}
    how |= {"further": further, "resume": run.resume, "parts": parts.settings}
    start = work_time()
    with (
        tables_of(files, run.resume) as given,
        run.open() as executor,
        RowProgress("annotating", "reads") as progress,
    ):
        found = annotate_files(
            given,
            output,
            germlines,
            mates=mate or None,
            settings=limits.settings(),
            umis=umis,
            cells=None if cell is None else _place(cell, cell=True),
            **how,
            executor=executor,
            progress=progress,
        )
    print(annotation_text(found, seconds=work_time() - start), end="")
    if (lost := lost_text(found)) is not None:
        say(lost)


def _samples(sheet: Path, reads: tuple[Path, ...]) -> SampleSheet:
    """The samples of a sheet, whose columns are none that rows have."""
    from plait.formats.sheets import read_sample_sheet
    from plait.vdj.reads.rearrangements import ALIGNMENT_PARTS, COLUMNS, REGION_COLUMNS

    if reads:
        raise InvalidInput("--sheet", found="a sheet and reads beside it", expected="one of both")
    taken = {column.name for column in (*COLUMNS, *ALIGNMENT_PARTS, *REGION_COLUMNS)}
    return read_sample_sheet(sheet, taken=(taken | {"junction_quality"}) - {"repertoire_id"})


def _place(text: str, *, cell: bool = False) -> BarcodePlace:
    from plait.formats.reads import BarcodePlace

    return BarcodePlace.parse(text, cell=cell)


def _umis(place: str | None, min_reads: int, ratio: float | None) -> Umis | None:
    if place is not None:
        from plait.vdj.reads.annotate_files import Umis

        return Umis(place=_place(place), min_reads=min_reads, ratio=ratio)
    if min_reads != 1 or ratio is not None:
        name, value = ("min_umi_reads", min_reads) if ratio is None else ("umi_ratio", ratio)
        raise InvalidInput(name, found=value, expected="the place of UMIs with it, --umi")
    return None


def alleles(
    *inputs: Path,
    germline: str,
    output: TableOutput,
    extended: Path | None = None,
    anchors: Path | None = None,
    min_clonotypes: WholeNumber = 8,
    min_share: float = 0.1,
    min_partners: WholeNumber = 3,
    max_q: float = 0.01,
    most_clonotypes: WholeNumber = 2000,
) -> None:
    """Find V and J alleles that a germline set lacks, in annotated reads of one individual.

    Parameters
    ----------
    inputs
        Tables that plait vdj annotate wrote, or other AIRR Rearrangement tables with the sequences of the
        reads: TSV (plain, .gz or .zst) or Parquet.
    germline
        The germline set that the reads were annotated with.
    output
        The table of candidates to write: .parquet, .tsv, .tsv.gz or .tsv.zst.
    extended
        Write the germline set with the new alleles, too: FILE.json, or a folder or the common start of the
        names of FASTA files. It can be given as --germline.
    anchors
        CSV table gene,anchor_index[,function] of anchors that replace those of the germline set.
    min_clonotypes
        Fewest independent clonotypes (different junctions) that carry a new allele.
    min_share
        Smallest share of the clonotypes of its gene.
    min_partners
        Fewest J genes it occurs with (V genes, for a J allele).
    max_q
        Largest expected share of errors among the changes that are called.
    most_clonotypes
        Most clonotypes of a gene that are looked at; memory grows with it.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="tables of annotated reads")
    from plait.reports.repertoire_text import alleles_text
    from plait.vdj.alleles.new_alleles import find_in_files
    from plait.vdj.alleles.sites import AlleleLimits
    from plait.vdj.germline import load_germline

    known = load_germline(germline, anchors=anchors)
    for note in known.notes:
        say(f"germline set {known.name}: {note}")
    limits = AlleleLimits(
        min_clonotypes=min_clonotypes, min_share=min_share, min_partners=min_partners, max_q=max_q
    )
    with tables_of(inputs) as files, RowProgress("reading") as progress:
        found = find_in_files(
            files,
            output,
            known,
            extended=extended,
            limits=limits,
            most_clonotypes=most_clonotypes,
            progress=progress,
        )
    print(alleles_text(found, output, extended), end="")
