"""Search from file to file, in bounded memory, and the tables and reports of hits, BLAST's among them."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, Final

from plait.align.results import Alignment, aligned_strings, alignment_lines
from plait.align.search import QueryHits, SearchRun, SearchSettings
from plait.align.search_sources import Database
from plait.align.sweeps import SearchProgress
from plait.align.writers import (
    AlignedPair,
    AlignmentWriter,
    LinesWriter,
    PairColumn,
    check_columns,
    json_line,
    needs_alignment,
)
from plait.errors import InvalidInput
from plait.formats.atomic import check_output
from plait.formats.output import TextOutput, file_or_standard_output, output_format
from plait.types import Provenance

#: Stands where there is no value.
_NOTHING: Final = "N/A"


@dataclass(frozen=True, slots=True)
class BlastColumn(PairColumn):
    """One column of a table of hits; `text` writes a value that is not None as BLAST's tables do."""

    text: Callable[[Any], str] = str


def evalue_text(evalue: float) -> str:
    """An E-value as blastp writes it in tables.

    >>> [evalue_text(value) for value in (0.0, 2.724e-68, 0.00362, 0.0362, 0.362, 3.62, 36.2)]
    ['0.0', '2.72e-68', '0.004', '0.036', '0.36', '3.6', '36']
    """
    if evalue < 1e-180:
        return "0.0"
    if evalue < 0.0009:
        return f"{evalue:.2e}"
    digits = 3 if evalue < 0.1 else 2 if evalue < 1 else 1 if evalue < 10 else 0
    return f"{evalue:.{digits}f}"


def bit_score_text(bit_score: float) -> str:
    """A bit score as blastp writes it.

    >>> [bit_score_text(value) for value in (26.94, 99.87, 217.96, 123456.0)]
    ['26.9', '99.9', '217', '1.235e+05']
    """
    if bit_score > 99999:
        return f"{bit_score:.3e}"
    return str(int(bit_score)) if bit_score > 99.9 else f"{bit_score:.1f}"


def _coverage(pair: AlignedPair, alignment: Alignment) -> int:
    covered, size = alignment.query_end - alignment.query_start, len(pair.query)
    # 100 stands for all of it.
    return 100 if covered == size else min(99, int(0.5 + 100 * covered / size))


def _trace(pair: AlignedPair, alignment: Alignment) -> str:
    """BLAST's trace-back operations: numbers of matches, and the two letters of every other column."""
    letters = pair.query.upper()
    if alignment.scoring.matrix.kind == "dna":
        letters = letters.replace(b"U", b"T")
    query, target = aligned_strings(alignment, letters, pair.target)
    parts: list[str] = []
    same = 0
    for one, other in zip(query, target, strict=True):
        if one == other:
            same += 1
            continue
        if same:
            parts.append(str(same))
        parts.append(one + other)
        same = 0
    return "".join(parts) + (str(same) if same else "")


def _strings(pair: AlignedPair, alignment: Alignment) -> tuple[str, str]:
    return aligned_strings(alignment, pair.query.upper(), pair.target)


def _aligned(
    kind: Any, value: Callable[[AlignedPair, Alignment], Any], text: Callable[[Any], str] = str
) -> BlastColumn:
    def of_pair(pair: AlignedPair) -> Any:
        return None if pair.alignment is None else value(pair, pair.alignment)

    return BlastColumn(kind, of_pair, True, text)


def _title(pair: AlignedPair) -> str:
    return f"{pair.target_name} {pair.target_description}".rstrip()


#: Every column, by BLAST's name; ``cigar`` is ours, of the query against the sequence found.
BLAST_COLUMNS: Final[Mapping[str, BlastColumn]] = MappingProxyType(
    {
        "qseqid": BlastColumn("string", lambda pair: pair.query_name),
        "sseqid": BlastColumn("string", lambda pair: pair.target_name),
        "pident": _aligned("number", lambda _, found: 100 * found.identity, "{:.3f}".format),
        "length": _aligned("integer", lambda _, found: found.length),
        "mismatch": _aligned("integer", lambda _, found: found.mismatches),
        "gapopen": _aligned("integer", lambda _, found: found.gap_openings),
        "qstart": _aligned("integer", lambda _, found: found.query_start + 1),
        "qend": _aligned("integer", lambda _, found: found.query_end),
        "sstart": _aligned("integer", lambda _, found: found.target_start + 1),
        "send": _aligned("integer", lambda _, found: found.target_end),
        "evalue": BlastColumn("number", lambda pair: pair.evalue, text=evalue_text),
        "bitscore": BlastColumn("number", lambda pair: pair.bit_score, text=bit_score_text),
        "score": BlastColumn("integer", lambda pair: pair.score),
        "qlen": BlastColumn("integer", lambda pair: len(pair.query)),
        "slen": BlastColumn("integer", lambda pair: len(pair.target)),
        "nident": _aligned("integer", lambda _, found: found.matches),
        "positive": _aligned("integer", lambda _, found: found.similar),
        "ppos": _aligned("number", lambda _, found: 100 * found.similarity, "{:.2f}".format),
        "gaps": _aligned("integer", lambda _, found: found.gaps),
        "qcovs": _aligned("integer", _coverage),
        "qcovhsp": _aligned("integer", _coverage),
        "qseq": _aligned("string", lambda pair, found: _strings(pair, found)[0]),
        "sseq": _aligned("string", lambda pair, found: _strings(pair, found)[1]),
        "btop": _aligned("string", _trace),
        "cigar": _aligned("string", lambda _, found: found.cigar),
        "stitle": BlastColumn("string", _title, text=lambda title: title.replace("\t", " ")),
    }
)

#: Columns of a table for which none are chosen: BLAST's,
DEFAULT_BLAST_COLUMNS: Final = tuple(BLAST_COLUMNS)[:12]
#: and those of them, and of the most useful others, that need no alignment.
SCORE_BLAST_COLUMNS: Final = ("qseqid", "sseqid", "evalue", "bitscore", "score", "qlen", "slen")


def blast_line(names: Sequence[str]) -> Callable[[AlignedPair], str]:
    """How a hit is written as a line with these columns, tabs between."""
    columns = [BLAST_COLUMNS[name] for name in names]

    def line(pair: AlignedPair) -> str:
        values = [(column.value(pair), column.text) for column in columns]
        return "\t".join([_NOTHING if value is None else text(value) for value, text in values])

    return line


_Path = str | os.PathLike[str]

#: Names of the formats, and what file names they go with.
HIT_FORMATS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "blast": (".m8", ".m8.gz", ".m8.zst", ".b6", ".b6.gz", ".b6.zst"),
        "tsv": (".tsv", ".tsv.gz", ".tsv.zst"),
        "parquet": (".parquet",),
        "jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"),
        "text": (".txt", ".txt.gz", ".txt.zst"),
    }
)


def hit_format(output: _Path | None, format: str | None = None) -> str:
    """The format of an output, one of `HIT_FORMATS`; None or ``-`` is standard output.

    Without `format` it is what the file name says, and BLAST's on standard output. `InvalidInput` if the
    format is unknown, the file name says none or another one, or the format cannot go to standard output.
    """
    return output_format(output, format, HIT_FORMATS, standard="blast", by_name=("parquet",))


def hit_columns(format: str, columns: Sequence[str] | None, *, aligned: bool) -> tuple[str, ...]:
    """The columns of a table of hits, names of `BLAST_COLUMNS` in the order wanted; None for the usual ones.

    `InvalidInput` if one is unknown or comes twice, needs alignments that there are not, or the format has no
    columns.
    """
    if format == "text":
        if columns is not None:
            raise InvalidInput(
                "columns", found="columns for text", expected="columns with the other formats only"
            )
        return ()
    names = check_columns(columns, BLAST_COLUMNS, DEFAULT_BLAST_COLUMNS if aligned else SCORE_BLAST_COLUMNS)
    if not aligned and needs_alignment(names, BLAST_COLUMNS):
        lacking = [name for name in names if BLAST_COLUMNS[name].needs_alignment]
        raise InvalidInput(
            "columns",
            found=f"{', '.join(lacking)} of hits that are not aligned",
            expected="columns that need no alignment",
        )
    return names


class HitWriter(ABC):
    """Hits being written, query by query (`hits` so far); a context manager made by `open_hits`.

    A clean exit makes the file appear under its name; an exception removes it and leaves an older file of
    that name as it was.
    """

    def __init__(self, output: AlignmentWriter | TextOutput) -> None:
        self.hits = 0
        self._output = output

    @abstractmethod
    def write(self, own: QueryHits) -> None:
        """Append the hits of a query.

        `FormatError` if the disk is full, `BrokenPipeError` if whoever reads standard output has gone.
        """

    def __enter__(self) -> HitWriter:
        self._output.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._output.__exit__(kind, error, trace)


class _Table(HitWriter):
    def __init__(self, writer: AlignmentWriter) -> None:
        super().__init__(writer)
        self._writer = writer

    def write(self, own: QueryHits) -> None:
        for pair in own.pairs:
            self._writer.write(pair)
            self.hits += 1


class _Report(HitWriter):
    """A list of the hits of each query, and behind it their alignments."""

    def __init__(self, output: TextOutput, head: str) -> None:
        super().__init__(output)
        self._text = output
        output.write(head.encode())

    def write(self, own: QueryHits) -> None:
        rows: list[tuple[str, ...]] = []
        lines: list[str] = []
        for pair in own.pairs:
            rows.append(_report_row(len(rows) + 1, pair))
            if pair.alignment is not None:
                names = (pair.query_name, pair.target_name)
                lines += alignment_lines(pair.alignment, pair.query, pair.target, names=names)
        self.hits += len(rows)
        table = _layout(rows) if rows else ["No hits.\n"]
        title = f"Query: {own.query.name} ({own.query.codes.size:,} residues)\n\n"
        self._text.write("".join([title, *table, "\n", *lines]).encode())


_REPORT_HEAD: Final = ("", "Sequence", "Length", "Score", "Bits", "E-value", "Identity", "Description")
_TO_THE_LEFT: Final = ("Sequence", "Description")
_MOST_DESCRIPTION: Final = 60


def _report_row(number: int, pair: AlignedPair) -> tuple[str, ...]:
    return (
        str(number),
        pair.target_name,
        f"{len(pair.target):,}",
        str(pair.score),
        "" if pair.bit_score is None else bit_score_text(pair.bit_score),
        "" if pair.evalue is None else evalue_text(pair.evalue),
        "" if pair.alignment is None else f"{100 * pair.alignment.identity:.1f}%",
        pair.target_description[:_MOST_DESCRIPTION],
    )


def _layout(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table, columns one below the other."""
    columns = []
    for cells in zip(_REPORT_HEAD, *rows, strict=True):
        width = max(map(len, cells))
        left = cells[0] in _TO_THE_LEFT
        columns.append([cell.ljust(width) if left else cell.rjust(width) for cell in cells])
    return ["  ".join(cells).rstrip() + "\n" for cells in zip(*columns, strict=True)]


def open_hits(
    output: _Path | None,
    *,
    provenance: Provenance,
    format: str,
    columns: Sequence[str],
    notes: Sequence[str] = (),
    inputs: Iterable[_Path] = (),
) -> HitWriter:
    """Start writing hits to a file; None or ``-`` is standard output.

    `provenance` goes into the metadata of Parquet, and beside files of TSV and JSON lines into
    ``OUTPUT.json``. `format` and `columns` are those of `hit_format` and `hit_columns`, `notes` stand at the
    head of text, `inputs` are files that must not be overwritten. `InvalidInput` or `FormatError` if the file
    cannot be written.
    """
    path = file_or_standard_output(output)
    chosen = {name: BLAST_COLUMNS[name] for name in columns}
    if format == "parquet":
        assert path is not None
        return _Table(_parquet(path, chosen, provenance, inputs))
    text = TextOutput(path, inputs=inputs)
    if format == "text":
        return _Report(text, _report_head(provenance, notes))
    facts = None if path is None or format == "blast" else f"{path}.json"
    if format == "jsonl":
        return _Table(LinesWriter(text, json_line(chosen), facts, provenance))
    header = "\t".join(columns) + "\n" if format == "tsv" else ""
    return _Table(LinesWriter(text, blast_line(columns), facts, provenance, header=header))


def _parquet(
    path: str, columns: Mapping[str, PairColumn], provenance: Provenance, inputs: Iterable[_Path]
) -> AlignmentWriter:
    # Loaded here, because that takes longer than a small search.
    from plait.align.table_writers import PairTableWriter, table_schema
    from plait.formats.tables import open_table

    metadata = {"plait.provenance": json.dumps(provenance.as_dict(), sort_keys=True)}
    table = open_table(path, table_schema(columns), metadata=metadata, inputs=inputs)
    return PairTableWriter(table, columns)


def _report_head(provenance: Provenance, notes: Sequence[str]) -> str:
    used = provenance.parameters
    names = ", ".join(used["database"]) or "in memory"
    size = f"{used['database_sequences']:,} sequences, {used['database_residues']:,} residues"
    lines = [
        f"plait {provenance.version}: Smith-Waterman search",
        f"Database: {names} ({size})",
        f"Scoring: {used['matrix']}, the first residue of a gap costs {used['gap_open']}, every further one "
        f"{used['gap_extend']}",
        *(f"Note: {note}" for note in notes),
    ]
    return "\n".join(lines) + "\n\n"


@dataclass(frozen=True, slots=True)
class SearchSummary:
    """What a search has done: sizes of queries and database, hits written, and cells of all matrices.

    `notes` are what there is to know besides, such as why there are no E-values.
    """

    queries: int
    hits: int
    sequences: int
    residues: int
    cells: int
    notes: tuple[str, ...]
    provenance: Provenance


def search_files(
    queries: str | os.PathLike[str],
    database: Database,
    output: str | os.PathLike[str] | None = None,
    settings: SearchSettings | None = None,
    *,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
) -> SearchSummary:
    """Search a database for the queries of a FASTA file, and write the hits.

    `output` None or ``-`` is standard output. `database` is as for `plait.align.search.search`, `format` one
    of `HIT_FORMATS`, if the file name does not say it; `columns` are names of `BLAST_COLUMNS`, but for text.
    `progress` is called in this thread. `InvalidInput` if a setting is wrong; `FormatError` if a file is not
    what it should be, or the output cannot be written.
    """
    how = SearchSettings() if settings is None else settings
    chosen = hit_format(output, format)
    names = hit_columns(chosen, columns, aligned=how.align)
    run = SearchRun(database, how)
    inputs = (queries, *run.source.paths)
    path = file_or_standard_output(output)
    if path is not None:
        check_output(path, inputs)
    count = 0
    writer: HitWriter | None = None
    with ExitStack() as stack:
        for own in run.hits(queries, progress=progress):
            if writer is None:
                # Not before, because only now the size of the database is known.
                writer = stack.enter_context(
                    open_hits(
                        output,
                        provenance=run.provenance,
                        format=chosen,
                        columns=names,
                        notes=run.notes,
                        inputs=inputs,
                    )
                )
            writer.write(own)
            count += 1
    hits = writer.hits if writer else 0
    source = run.source
    return SearchSummary(count, hits, source.sequences, source.residues, run.cells, run.notes, run.provenance)
