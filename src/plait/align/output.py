"""Where aligned pairs are written to, and in which format."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from plait.align.pairs import COLUMNS, check_columns
from plait.align.sam import sam_header
from plait.align.table_writers import PairTableWriter, PrintedTable, table_schema
from plait.align.writers import AlignmentWriter, LinesWriter, SamWriter, TextWriter, json_line
from plait.errors import InvalidInput, Unsupported
from plait.formats.output import TextOutput, file_or_standard_output, output_format
from plait.formats.tables import open_table
from plait.types import Provenance

if TYPE_CHECKING:
    from plait.align.scoring import Scoring

__all__ = ["FORMATS", "alignment_format", "open_alignments"]

_Path = str | os.PathLike[str]

#: Names of the formats, and what file names they go with.
FORMATS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "text": (".txt", ".txt.gz", ".txt.zst"),
        "tsv": (".tsv", ".tsv.gz", ".tsv.zst"),
        "sam": (".sam", ".sam.gz", ".sam.zst"),
        "jsonl": (".jsonl", ".jsonl.gz", ".jsonl.zst"),
        "parquet": (".parquet",),
    }
)


def alignment_format(output: _Path | None, format: str | None = None) -> str:
    """The format of an output.

    Parameters
    ----------
    output
        A file name, or ``-`` or None for standard output.
    format
        One of `FORMATS`; if None, what the file name says, and text on standard output.

    Returns
    -------
    str
        One of `FORMATS`.

    Raises
    ------
    InvalidInput
        If the format is unknown, the file name says none or another one, or the format cannot go to standard
        output.
    """
    return output_format(output, format, FORMATS, standard="text", by_name=("tsv", "parquet"))


def open_alignments(
    output: _Path | None,
    *,
    scoring: Scoring,
    provenance: Provenance,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    targets: Iterable[tuple[str, int]] = (),
    command: str = "",
    inputs: Iterable[_Path] = (),
    md: bool = False,
) -> AlignmentWriter:
    """Start writing aligned pairs.

    Parameters
    ----------
    output
        The file, or ``-`` or None for standard output.
    scoring
        What the pairs were aligned with.
    provenance
        How they were aligned. It goes into the metadata of Parquet, and beside files of TSV and JSON lines
        into ``OUTPUT.json``.
    format
        One of `FORMATS`, if the file name does not say it.
    columns
        TSV, JSON lines and Parquet: names of `plait.align.pairs.COLUMNS`.
    targets
        SAM: name and length of every target.
    command
        The command line, for the headers of text and SAM.
    inputs
        Files that must not be overwritten.
    md
        SAM: whether to write the tag MD.

    Returns
    -------
    AlignmentWriter
        The writer, a context manager. A clean exit makes the file appear under its name; an exception removes
        it and leaves an older file of that name as it was.

    Raises
    ------
    InvalidInput
        If output, format or columns are not what they should be, or SAM cannot hold a target.
    Unsupported
        If proteins are to be written as SAM.
    FormatError
        If the file cannot be written.
    """
    chosen = alignment_format(output, format)
    path = file_or_standard_output(output)
    if columns is not None and chosen in ("text", "sam"):
        raise InvalidInput(
            "columns", found=f"columns for {chosen}", expected="columns with tsv, jsonl and parquet only"
        )
    if chosen == "sam":
        if scoring.matrix.kind == "protein":
            raise Unsupported(
                "SAM of proteins",
                why="it holds alignments of nucleotides; choose text, tsv, jsonl or parquet",
            )
        lines = sam_header(targets, version=provenance.version, command=command)
        return SamWriter(TextOutput(path, inputs=inputs), lines, md)
    if chosen == "text":
        return TextWriter(TextOutput(path, inputs=inputs), provenance.version, command)
    chosen_columns = {name: COLUMNS[name] for name in check_columns(columns)}
    if chosen == "jsonl":
        facts = None if path is None else f"{path}.json"
        return LinesWriter(TextOutput(path, inputs=inputs), json_line(chosen_columns), facts, provenance)
    schema = table_schema(chosen_columns)
    if path is None:
        return PairTableWriter(PrintedTable(TextOutput(path), schema), chosen_columns)
    metadata = {"plait.provenance": json.dumps(provenance.as_dict(), sort_keys=True)}
    return PairTableWriter(open_table(path, schema, metadata=metadata, inputs=inputs), chosen_columns)
