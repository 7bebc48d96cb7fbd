"""Search from file to file, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from plait.align.search_output import HitWriter, hit_columns, hit_format, open_hits
from plait.align.search_runs import SearchRun, SearchSettings
from plait.align.search_sources import Database
from plait.align.sweeps import SearchProgress
from plait.formats.atomic import check_output
from plait.formats.output import file_or_standard_output
from plait.types import Provenance

__all__ = ["SearchSummary", "search_files"]


@dataclass(frozen=True, slots=True)
class SearchSummary:
    """What a search has done.

    Attributes
    ----------
    queries
        Number of queries.
    hits
        Hits written.
    sequences, residues
        Size of the database.
    cells
        Cells of all matrices.
    notes
        What there is to know besides, such as why there are no E-values.
    provenance
        How it was done.
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
    """Search a database for the queries of a file, and write the hits.

    Parameters
    ----------
    queries
        FASTA file.
    database
        As for `plait.align.search`.
    output
        The file, or ``-`` or None for standard output.
    settings
        How to search.
    format
        One of `plait.align.search_output.HIT_FORMATS`, if the file name does not say it.
    columns
        Names of `plait.align.blast_columns.BLAST_COLUMNS`, but for text.
    progress
        Called in this thread while the search runs.

    Returns
    -------
    SearchSummary
        What was done.

    Raises
    ------
    InvalidInput
        If a setting is wrong.
    FormatError
        If a file is not what it should be, or the output cannot be written.
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
