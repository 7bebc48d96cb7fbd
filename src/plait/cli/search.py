"""``plait search`` and ``plait similar``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from plait.align.settings import SearchSettings
from plait.cli.options import (
    CellProgress,
    DeviceOption,
    Flag,
    KindOption,
    OptionalOutput,
    OptionalTable,
    Signed,
    ThreadsOption,
    WholeNumber,
    files_of,
    options_of,
    say,
)
from plait.errors import InvalidInput
from plait.lang.compiling import work_time
from plait.reports.plain_text import plural

if TYPE_CHECKING:
    from plait.align.hits import SearchSummary

    SearchOptions = SearchSettings
else:
    SearchOptions = options_of(
        SearchSettings,
        "Scores and hits",
        matrix=str | None,
        free_ends=str | None,
        device=DeviceOption,
        threads=ThreadsOption,
    )

app = App(name="search", help_format="markdown", version_flags=[])

# Written out here, so that help and checks of options need not load what the words mean.
FormatOption = Literal["blast", "tsv", "parquet", "jsonl", "text"]

_DEFAULT = SearchOptions()
_GIGA = 1e9


@app.default
def search(
    query: Path,
    /,
    *database: Path,
    output: OptionalTable = None,
    format: FormatOption | None = None,
    columns: str | None = None,
    settings: SearchOptions = _DEFAULT,
) -> None:
    """Search a database for sequences that are similar to those of a file.

    Of each sequence one alignment is reported, the best; with --hits-per-target K up to K.

    Parameters
    ----------
    query
        FASTA file of what to search for, a position-specific matrix of PSI-BLAST (-out_ascii_pssm) or a
        HMMER3 profile, of which the match states count: plain, .gz or .zst; - for standard input. A file
        called index is written ./index.
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
        positive, ppos, gaps, qcovs, qcovhsp, qseq, sseq, btop, cigar, sstrand, qframe, sframe, frames,
        stitle; std stands for the usual ones.
    settings
        What is searched for, and how.
    """
    if not database:
        raise InvalidInput("database", found="none", expected="a packed database, or FASTA files")
    from plait.align.hits import search_files

    start = work_time()
    with files_of([query, *database]) as files, CellProgress("searching") as progress:
        done = search_files(
            files[0],
            files[1:],
            output,
            SearchSettings(**asdict(settings)),
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
        f"{queries} against {plural(done.sequences, 'sequence')} ({plural(done.residues, 'residue')}): "
        f"{plural(done.cells, 'cell')} in {seconds:.2f} s, {done.cells / seconds / _GIGA:.1f} GCUPS; "
        f"{plural(done.hits, 'hit')}"
    )


@app.command
def index(
    *inputs: Path,
    output: OptionalOutput = None,
    kind: KindOption | None = None,
    check: Flag = False,
    allow_duplicate_names: Flag = False,
    mask_lower_case: Flag = False,
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
    mask_lower_case
        Take lower-case letters as X, those of nucleotides as N.
    """
    from plait.align.database import DatabaseFile, build_database, open_database

    databases: list[DatabaseFile]
    if output is not None:
        built = build_database(
            inputs,
            output,
            kind=kind or "auto",
            allow_duplicate_names=allow_duplicate_names,
            mask_lower_case=mask_lower_case,
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
            f"{database.path}: {plural(len(database), 'sequence')} ({database.kind}), "
            f"{plural(database.residues, 'residue')}{', all checksums right' if check else ''}"
        )


def similar(
    texts: Path,
    targets: Path | None = None,
    /,
    *,
    output: OptionalTable = None,
    q: Annotated[WholeNumber, Parameter(name=["--q", "-q"], allow_leading_hyphen=True)] = 4,
    at_least: Annotated[float | None, Signed] = None,
    nearest: Annotated[WholeNumber | None, Signed] = None,
    column: str | None = None,
    smiles: Flag = False,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Find similar texts by the q-grams that they share: junctions, SMILES, names, any sequences.

    The similarity of two texts is the number of q-grams that both have, each as often as both have it, by
    the number that either has (multiset Tanimoto). No pair is left out.

    Parameters
    ----------
    texts
        FASTA, a text a line with its name behind, or a table with --column; plain, .gz or .zst; - for
        standard input.
    targets
        The texts to compare them with; otherwise themselves.
    output
        A table of pairs (.tsv, also .gz or .zst, or .parquet), otherwise on standard output; or a .npy file
        of all similarities.
    q
        Letters of a q-gram.
    at_least
        Write pairs of this similarity or more; otherwise 0.5.
    nearest
        Write so many most similar targets of each text instead.
    column
        The texts are a column of tables.
    smiles
        The texts are SMILES: digits of rings count as 0, Cl and Br as one letter (LINGO).
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        auto, cpu, or cuda; the answers are the same.
    """
    from plait.qgrams.files import similar_file

    start = work_time()
    with files_of([texts] if targets is None else [texts, targets]) as files:
        left, right, found = similar_file(
            files[0],
            None if targets is None else files[1],
            output,
            column=column,
            smiles=smiles,
            q=q,
            at_least=at_least,
            nearest=nearest,
            threads=threads,
            device=device,
        )
    say(f"{plural(left, 'text')} by {right:,}: {plural(found, 'pair')} in {work_time() - start:.2f} s")
