"""``plait search``, and of reads ``plait map`` and ``plait index``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from plait.cli.console import Bar, CellProgress, say
from plait.cli.options import DeviceOption, WholeNumber, files_of
from plait.errors import InvalidInput
from plait.lang.compiling import work_time

if TYPE_CHECKING:
    from plait.align.search_files import SearchSummary
    from plait.mapping.map_files import MapSummary

app = App(name="search", help_format="markdown", version_flags=[])

# Written out here, so that help and checks of options need not load what the words mean.
FormatOption = Literal["blast", "tsv", "parquet", "jsonl", "text"]
KindOption = Literal["protein", "dna"]
MapFormatOption = Literal["bam", "sam", "paf", "parquet"]
# Values that may begin with a minus sign, so that what is wrong with them can be said.
Signed = Parameter(allow_leading_hyphen=True)

_GIGA = 1e9


@app.default
def search(
    query: Path,
    /,
    *database: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    format: FormatOption | None = None,
    columns: str | None = None,
    top: WholeNumber = 500,
    evalue: Annotated[float, Signed] = 10.0,
    min_score: Annotated[WholeNumber | None, Signed] = None,
    matrix: str | None = None,
    gap_open: Annotated[WholeNumber | None, Signed] = None,
    gap_extend: Annotated[WholeNumber | None, Signed] = None,
    kind: KindOption | None = None,
    score_only: Annotated[bool, Parameter(negative="")] = False,
    allow_duplicate_names: Annotated[bool, Parameter(negative="")] = False,
    threads: WholeNumber | None = None,
    device: DeviceOption = "auto",
) -> None:
    """Search a database for sequences that are similar to those of a file.

    Of each sequence one alignment is reported, the best; others in the same sequence are not.

    Parameters
    ----------
    query
        FASTA file of what to search for: plain, .gz or .zst; - for standard input. A file called index is
        written ./index.
    database
        A packed database (see plait search index), or FASTA files, of which one may be -.
    output
        The file to write: .tsv, .jsonl, .m8 (BLAST's table), .txt (each also .gz or .zst) or .parquet;
        otherwise, and for -, BLAST's table on standard output.
    format
        What to write, where the name of the output does not say it. blast is BLAST's table without a header
        (-outfmt 6), tsv the same with one, text a report with the alignments.
    columns
        Columns by BLAST's names, with commas between: qseqid, sseqid, pident, length, mismatch, gapopen,
        qstart, qend, sstart, send, evalue, bitscore (these are the usual ones), score, qlen, slen, nident,
        positive, ppos, gaps, qcovs, qcovhsp, qseq, sseq, btop, cigar, stitle.
    top
        Hits of each query at the most: the best of all by Smith-Waterman score, no heuristics.
    evalue
        Leave out hits with a larger E-value. They are BLAST's without composition-based statistics.
    min_score
        Leave out hits with a lower score.
    matrix
        Name of a bundled matrix (BLOSUM62, PAM30, NUC.4.4, ...) or a file in NCBI's format; otherwise
        BLOSUM62 for proteins, and 2 for a match and -3 for a mismatch of nucleotides.
    gap_open
        Cost of the first residue of a gap, as a positive number: BLAST's existence and extension together,
        so that BLAST's 11/1 is 12 and 1. Otherwise what BLAST takes for the matrix.
    gap_extend
        Cost of each further residue of a gap, as a positive number.
    kind
        protein or dna (RNA too); otherwise what the database is or its first letters look like; needed where
        they leave it open. Nucleotides are searched on the strand that is given.
    score_only
        Leave out the alignments.
    allow_duplicate_names
        Take files in which several sequences have one name.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    """
    given = locals()
    if not database:
        raise InvalidInput("database", found="none", expected="a packed database, or FASTA files")
    from plait.align.search import SearchSettings
    from plait.align.search_files import search_files

    settings = SearchSettings.among(given | {"align": not score_only})
    start = work_time()
    with files_of([query, *database]) as files, CellProgress("searching") as progress:
        done = search_files(
            files[0],
            files[1:],
            output,
            settings,
            format=format,
            columns=None if columns is None else [word.strip() for word in columns.split(",")],
            progress=progress,
        )
    for note in done.notes:
        say(note)
    say(_summary(done, work_time() - start))


def _summary(done: SearchSummary, seconds: float) -> str:
    queries = "1 query" if done.queries == 1 else f"{done.queries:,} queries"
    return (
        f"{queries} against {_number(done.sequences, 'sequence')} ({_number(done.residues, 'residue')}): "
        f"{_number(done.cells, 'cell')} in {seconds:.2f} s, {done.cells / seconds / _GIGA:.1f} GCUPS; "
        f"{_number(done.hits, 'hit')}"
    )


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


@app.command
def index(
    *inputs: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    kind: KindOption | None = None,
    check: Annotated[bool, Parameter(negative="")] = False,
    allow_duplicate_names: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Pack FASTA files into a database that a search need not read whole.

    Parameters
    ----------
    inputs
        FASTA files: plain, .gz or .zst. With --check and without an output, packed databases.
    output
        The database to write, for example NAME.plaitdb.
    kind
        protein or dna (RNA too); otherwise what the first letters of each file look like.
    check
        Compare the checksums of all parts of the database, once it is written or of those that are there.
    allow_duplicate_names
        Take files in which several sequences have one name.
    """
    from plait.align.database import DatabaseFile, build_database, open_database

    databases: list[DatabaseFile]
    if output is not None:
        built = build_database(
            inputs, output, kind=kind or "auto", allow_duplicate_names=allow_duplicate_names
        )
        databases = [built]
    elif check and inputs:
        databases = [open_database(path, kind=kind) for path in inputs]
    else:
        raise InvalidInput("output", found="none", expected="the database to write: -o NAME.plaitdb")
    for database in databases:
        if check:
            database.verify()
        say(
            f"{database.path}: {_number(len(database), 'sequence')} ({database.kind}), "
            f"{_number(database.residues, 'residue')}{', all checksums right' if check else ''}"
        )


def map_reads(
    *files: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    mate: tuple[Path, ...] = (),
    errors: Annotated[WholeNumber | None, Signed] = None,
    error_rate: Annotated[float | None, Signed] = None,
    substitutions_only: Annotated[bool, Parameter(negative="")] = False,
    report: str = "all",
    max_hits: Annotated[WholeNumber | None, Signed] = None,
    format: MapFormatOption | None = None,
    mapq: Literal["none", "unique"] = "none",
    threads: WholeNumber | None = None,
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
        The file to write: .bam, .sam or .paf (also .gz or .zst), .parquet; otherwise, and for -, SAM on
        standard output.
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
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    given = locals()
    if len(files) < 2:
        found = f"{len(files)} file{'s' * (len(files) != 1)}"
        raise InvalidInput("files", found=found, expected="at least one file of reads, and the reference")
    from plait.mapping.map_files import map_files
    from plait.mapping.mapper import MapSettings

    names = ("errors", "error_rate", "substitutions_only", "report", "max_hits", "threads")
    settings = MapSettings(**{name: given[name] for name in names})
    start = work_time()
    with files_of([*files, *mate]) as every, Bar("mapping", "{task.fields[done]:,} reads") as bar:
        done = map_files(
            every[: len(files) - 1],
            every[len(files) - 1],
            output,
            settings,
            mates=every[len(files) :] or None,
            format=format,
            mapq=mapq,
            progress=lambda reads: bar.show(reads, "{:,.0f} reads/s", 0, 0),
        )
    say(_map_summary(done, work_time() - start))


def _map_summary(done: MapSummary, seconds: float) -> str:
    others = [f"{count:,} {name}" for name, count in done.statuses.items() if count and name != "mapped"]
    told = "; ".join([f"{done.statuses['mapped']:,} mapped", *others])
    return (
        f"{_number(done.reads, 'read')} against {_number(done.genome.letters, 'letter')} in {seconds:.2f} s, "
        f"{done.reads / max(seconds, 1e-9):,.0f} reads/s: {told}; "
        f"{done.loci:,} {'locus' if done.loci == 1 else 'loci'}"
    )


def index_reference(
    reference: Path,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    seed_length: Annotated[WholeNumber | None, Signed] = None,
    check: Path | None = None,
    threads: WholeNumber | None = None,
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
        f"{output}: {_number(len(made.genome.names), 'contig')}, {_number(made.genome.letters, 'letter')}, "
        f"seeds of {made.arrays.u}; {made.bytes / letters:.1f} bytes a letter, "
        f"{letters / seconds / 1e6:.1f} M letters/s"
    )
