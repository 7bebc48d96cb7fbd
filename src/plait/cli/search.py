"""``plait search``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from plait.cli.console import CellProgress, say
from plait.cli.options import DeviceOption, WholeNumber, files_of
from plait.errors import InvalidInput
from plait.lang.compiling import work_time

if TYPE_CHECKING:
    from plait.align.search_files import SearchSummary

app = App(name="search", help_format="markdown", version_flags=[])

# Written out here, so that help and checks of options need not load what the words mean.
FormatOption = Literal["blast", "tsv", "parquet", "jsonl", "text"]
KindOption = Literal["protein", "dna"]
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
