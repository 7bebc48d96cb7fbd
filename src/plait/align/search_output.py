"""Where hits are written to, and in which format."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Final

from plait.align.blast_columns import (
    BLAST_COLUMNS,
    DEFAULT_BLAST_COLUMNS,
    SCORE_BLAST_COLUMNS,
    bit_score_text,
    blast_line,
    evalue_text,
)
from plait.align.pairs import AlignedPair, PairColumn, check_columns, needs_alignment
from plait.align.search_runs import QueryHits
from plait.align.text import alignment_lines
from plait.align.writers import AlignmentWriter, LinesWriter, json_line
from plait.errors import InvalidInput
from plait.formats.output import TextOutput, file_or_standard_output, output_format
from plait.types import Provenance

__all__ = ["HIT_FORMATS", "HitWriter", "hit_columns", "hit_format", "open_hits"]

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
    """The format of an output.

    Parameters
    ----------
    output
        A file name, or ``-`` or None for standard output.
    format
        One of `HIT_FORMATS`; if None, what the file name says, and BLAST's on standard output.

    Raises
    ------
    InvalidInput
        If the format is unknown, the file name says none or another one, or the format cannot go to standard
        output.
    """
    return output_format(output, format, HIT_FORMATS, standard="blast", by_name=("parquet",))


def hit_columns(format: str, columns: Sequence[str] | None, *, aligned: bool) -> tuple[str, ...]:
    """The columns of a table of hits.

    Parameters
    ----------
    format
        What `hit_format` says.
    columns
        Names of `BLAST_COLUMNS` in the order wanted; None for the usual ones.
    aligned
        Whether hits are aligned.

    Raises
    ------
    InvalidInput
        If one is unknown or comes twice, needs alignments that there are not, or the format has no columns.
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
    """Hits being written, query by query; a context manager made by `open_hits`.

    A clean exit makes the file appear under its name; an exception removes it and leaves an older file of
    that name as it was.

    Parameters
    ----------
    output
        Where they go.

    Attributes
    ----------
    hits : int
        Hits written so far.
    """

    def __init__(self, output: AlignmentWriter | TextOutput) -> None:
        self.hits = 0
        self._output = output

    @abstractmethod
    def write(self, own: QueryHits) -> None:
        """Append the hits of a query.

        Raises
        ------
        FormatError
            If the disk is full.
        BrokenPipeError
            If whoever reads standard output has gone.
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
    """Start writing hits.

    Parameters
    ----------
    output
        The file, or ``-`` or None for standard output.
    provenance
        How they were found. It goes into the metadata of Parquet, and beside files of TSV and JSON lines into
        ``OUTPUT.json``.
    format
        What `hit_format` says.
    columns
        What `hit_columns` says.
    notes
        Stand at the head of text.
    inputs
        Files that must not be overwritten.

    Raises
    ------
    InvalidInput, FormatError
        If the file cannot be written.
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
