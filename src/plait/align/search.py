"""Search a database: exact Smith-Waterman scores of all queries with all sequences, the best aligned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.align.aligner import Matrix
from plait.align.pairs import AlignedPair
from plait.align.ranking import Found
from plait.align.residues import Kind
from plait.align.search_queries import Queries
from plait.align.search_runs import SearchRun, SearchSettings
from plait.align.search_sources import Database
from plait.align.sweeps import SearchProgress
from plait.errors import InvalidInput
from plait.types import Provenance

__all__ = ["SearchResult", "search"]

#: Scores that are returned at the most, if all are asked for.
_MOST_SCORES: Final = 1 << 27


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SearchResult:
    """What a search has found.

    Attributes
    ----------
    queries
        Names of the queries.
    hits
        Of each query, best first: highest score, then lowest E-value, then order of the database.
    scores
        All scores, if they were asked for; int64, shape (queries, sequences).
    sequences, residues
        Size of the database.
    cells
        Cells of all matrices.
    notes
        What there is to know besides, such as why there are no E-values.
    provenance
        How it was made.
    """

    queries: tuple[str, ...]
    hits: tuple[tuple[AlignedPair, ...], ...]
    scores: NDArray[np.int64] | None
    sequences: int
    residues: int
    cells: int
    notes: tuple[str, ...]
    provenance: Provenance

    def __repr__(self) -> str:
        hits = sum(map(len, self.hits))
        return f"SearchResult({len(self.queries)} queries, {self.sequences} sequences, {hits} hits)"


class _AllScores:
    """All scores of a search, in the order in which they come."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, Found]] = []
        self._size = 0

    def add(self, query: int, found: Found) -> None:
        self._size += len(found.records)
        if self._size > _MOST_SCORES:
            raise InvalidInput(
                "scores",
                found=f"more than {_MOST_SCORES:,} scores",
                expected=f"at most so many, {8 * _MOST_SCORES:,} bytes",
                hint="search for fewer queries at a time, or ask for the top hits alone",
            )
        self._parts.append((query, found))

    def matrix(self, queries: int, sequences: int) -> NDArray[np.int64]:
        if queries * sequences > _MOST_SCORES:
            raise InvalidInput(
                "scores", found=f"{queries * sequences:,} scores", expected=f"at most {_MOST_SCORES:,}"
            )
        # Empty queries and targets are not swept: they score 0.
        scores = np.zeros((queries, sequences), np.int64)
        for query, found in self._parts:
            row = scores[query]
            row[found.records] = np.maximum(row[found.records], found.scores)
        return scores


def search(
    queries: Queries,
    database: Database,
    *,
    matrix: Matrix | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    kind: Kind | None = None,
    top: int = 500,
    evalue: float | None = 10.0,
    min_score: int | None = None,
    align: bool = True,
    scores: bool = False,
    allow_duplicate_names: bool = False,
    threads: int | None = None,
    device: str = "auto",
    progress: Callable[[SearchProgress], None] | None = None,
) -> SearchResult:
    """Search a database for the sequences that are most similar to each query.

    Every query is scored with every sequence (Smith and Waterman, J Mol Biol 147:195, 1981; no heuristics).
    Of each sequence one alignment is reported, a best one: a domain that occurs twice is one hit. The `top`
    best are kept, those with a larger E-value than `evalue` left out, and the others aligned.

    Parameters
    ----------
    queries
        The path of a FASTA file, or names and sequences.
    database
        What is searched: a packed database or its path, or the path or paths of FASTA files, which are read
        once.
    matrix, gap_open, gap_extend
        As for `make_scoring`: the first residue of a gap costs `gap_open`, so that BLAST's existence G and
        extension E are ``gap_open = G + E`` and ``gap_extend = E``.
    kind
        What queries and database are, ``"protein"`` or ``"dna"``; by default what the database is, or its
        first letters say (`plait.align.residues.kind_of`). Nucleotides are searched as they are, on one
        strand.
    top
        Hits of a query at the most.
    evalue
        Largest E-value of a hit, None for any. Bit scores and E-values are those of BLAST without
        composition-based statistics; where BLAST has no parameters for the scoring there are none, and a
        note says so.
    min_score
        Lowest score of a hit; any above 0 by default.
    align
        Whether hits are aligned; otherwise they have scores only.
    scores
        Whether all scores are returned, too; for searches of up to 2^27 pairs.
    allow_duplicate_names
        Whether several queries, or sequences in FASTA files that are searched, may have one name.
    threads
        Threads; by default those of the settings.
    device
        ``"auto"`` (the first GPU that can be used, else the CPU), ``"cpu"``, ``"cuda"``, ``"cuda:N"``,
        ``"cuda:all"`` or ``"reference"`` (plain Python).
    progress
        Called in this thread while the search runs.

    Returns
    -------
    SearchResult
        The hits of each query, the same for any form of the database and any number of threads.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.
    FormatError
        If a file is not what it should be.

    Examples
    --------
    >>> from plait.align.packing import pack_sequences
    >>> from plait.formats.fasta import Sequences
    >>> letters = np.frombuffer(b"MKVLAWMKTAYIAKQRQISF", np.uint8)
    >>> entries = Sequences(["a", "b"], ["", ""], letters, np.array([0, 6, 20]), np.array([1, 3]))
    >>> database = pack_sequences(entries, "example", kind="protein")
    >>> result = search([("q", "KTAYIARQRQ")], database)
    >>> [(hit.target_name, hit.score, hit.alignment.cigar) for hit in result.hits[0]]
    [('b', 46, '6=1X3=')]
    """
    settings = SearchSettings(
        matrix=matrix,
        gap_open=gap_open,
        gap_extend=gap_extend,
        kind=kind,
        top=top,
        evalue=evalue,
        min_score=min_score,
        align=align,
        allow_duplicate_names=allow_duplicate_names,
        threads=threads,
        device=device,
    )
    run = SearchRun(database, settings)
    every = _AllScores() if scores else None
    names: list[str] = []
    hits: list[tuple[AlignedPair, ...]] = []
    for own in run.hits(queries, report=every.add if every else None, progress=progress):
        names.append(own.query.name)
        hits.append(tuple(own.pairs))
    source = run.source
    return SearchResult(
        tuple(names),
        tuple(hits),
        every.matrix(len(names), source.sequences) if every else None,
        source.sequences,
        source.residues,
        run.cells,
        run.notes,
        run.provenance,
    )
