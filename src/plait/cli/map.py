"""``plait map`` and ``plait index``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from plait.cli.options import (
    Bar,
    DeviceOption,
    Flag,
    OptionalOutput,
    OptionalTable,
    PartParameters,
    RunParameters,
    Several,
    Signed,
    ThreadsOption,
    WholeNumber,
    files_of,
    say,
)
from plait.errors import InvalidInput
from plait.lang.compiling import work_time
from plait.reports.plain_text import plural

if TYPE_CHECKING:
    from plait.mapping.map_files import MapSummary

# Written out here, so that help and checks of options need not load what the words mean.
FormatOption = Literal["bam", "sam", "paf", "parquet"]


def map_reads(
    *files: Path,
    output: OptionalTable = None,
    mate: Annotated[tuple[Path, ...], Several] = (),
    errors: Annotated[WholeNumber | None, Signed] = None,
    error_rate: Annotated[float | None, Signed] = None,
    substitutions_only: Flag = False,
    report: str = "all",
    max_hits: Annotated[WholeNumber | None, Signed] = None,
    format: FormatOption | None = None,
    mapq: Literal["none", "unique"] = "none",
    device: DeviceOption = "cpu",
    run: RunParameters = RunParameters(),
    parts: PartParameters = PartParameters(),
) -> None:
    """Map reads of 25 to 400 letters: every locus within so many errors, on both strands, guaranteed.

    There is no model of mapping qualities, of pairs or of splicing, and longer reads are not mapped: for
    these, and where one good place is enough, take minimap2. For short patterns with PAMs or ambiguity codes
    there is plait find, for similar sequences of any length plait search.

    Parameters
    ----------
    files
        Files of reads, FASTQ or FASTA, plain, .gz or .zst, and last the reference: a FASTA file or an index
        made by plait index. One of them may be -, standard input.
    output
        The file to write: .bam, .sam or .paf (also .gz or .zst), .parquet; or a folder of parts, whose name
        ends in a slash; otherwise, and for -, SAM on standard output.
    mate
        File of second mates, one for each file of reads. Mates are mapped as reads of their own; the tag FI
        (in Parquet the column mate) says which one it is.
    errors
        Most errors of a read, 0 to 31: substitutions, insertions and deletions. 0 finds exact matches.
    error_rate
        Instead, percent of the length of a read; 5 where neither is given.
    substitutions_only
        No insertions or deletions.
    report
        all loci; best: of each read those with fewest errors; best+N: those with up to N errors more.
    max_hits
        A read with more loci is written without them, with their number and the status too_many_hits.
    format
        What to write, where the name of the output does not say it.
    mapq
        none writes 255, not available; unique 60 for a read with one locus, 3 for two, else 0, which is no
        probability.
    device
        Where places of pieces of reads are checked: cpu; cuda, cuda:N or cuda:all for GPUs, which help where
        there are few processors; auto takes a GPU for many places; reference is plain Python.
    run
        How the work is done. Other workers than threads need an index for the reference, and parts alone can
        be resumed.
    parts
        How a folder of parts is cut.
    """
    given = locals()
    if len(files) < 2:
        found = f"{len(files)} file{'s' * (len(files) != 1)}"
        raise InvalidInput("files", found=found, expected="at least one file of reads, and the reference")
    from plait.mapping.map_files import map_files
    from plait.mapping.mapper import MapSettings

    names = ("errors", "error_rate", "substitutions_only", "report", "max_hits", "device")
    settings = MapSettings(**{name: given[name] for name in names}, threads=run.threads)
    start = work_time()
    with (
        files_of([*files, *mate]) as every,
        run.open() as executor,
        Bar("mapping", "{task.fields[done]:,} reads") as bar,
    ):
        done = map_files(
            every[: len(files) - 1],
            every[len(files) - 1],
            output,
            settings,
            mates=every[len(files) :] or None,
            format=format,
            mapq=mapq,
            progress=lambda reads: bar.show(reads, "{:,.0f} reads/s", 0, 0),
            executor=executor,
            resume=run.resume,
            parts=parts.settings,
        )
    say(_map_summary(done, work_time() - start))


def _map_summary(done: MapSummary, seconds: float) -> str:
    others = [f"{count:,} {name}" for name, count in done.statuses.items() if count and name != "mapped"]
    told = "; ".join([f"{done.statuses['mapped']:,} mapped", *others])
    return (
        f"{plural(done.reads, 'read')} against {plural(done.genome.letters, 'letter')} in {seconds:.2f} s, "
        f"{done.reads / max(seconds, 1e-9):,.0f} reads/s: {told}; "
        f"{done.loci:,} {'locus' if done.loci == 1 else 'loci'}"
    )


def index_reference(
    reference: Path,
    /,
    *,
    output: OptionalOutput = None,
    seed_length: Annotated[WholeNumber | None, Signed] = None,
    check: Path | None = None,
    threads: ThreadsOption = None,
) -> None:
    """Index a reference for plait map, which otherwise makes the index anew each time.

    Parameters
    ----------
    reference
        FASTA file: plain, .gz or .zst; - for standard input.
    output
        The index to write, for example NAME.plait-index; 9 to 10 bytes a letter.
    seed_length
        Letters of a seed, 4 to 13; otherwise as fits the size of the reference. Loci do not depend on it.
    check
        Instead of writing one, see whether this index is whole, and of this reference.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    if (output is None) == (check is None):
        found = "none" if output is None else "--check too"
        raise InvalidInput(
            "output", found=found, expected="the index to write: -o NAME.plait-index; or --check INDEX"
        )
    from plait.mapping.index import Index, check_index

    with files_of([reference]) as (path,):
        start = work_time()
        if check is not None:
            check_index(check, path)
            say(f"{check}: all checksums right, and the index of {reference}")
            return
        assert output is not None
        made = Index.build(path, seed_length=seed_length, threads=threads)
        made.save(output)
    seconds = work_time() - start
    letters = max(made.genome.letters, 1)
    say(
        f"{output}: {plural(len(made.genome.names), 'contig')}, {plural(made.genome.letters, 'letter')}, "
        f"seeds of {made.arrays.u}; {made.bytes / letters:.1f} bytes a letter, "
        f"{letters / seconds / 1e6:.1f} M letters/s"
    )
