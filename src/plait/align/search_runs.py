"""A search from queries to aligned hits, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.align.aligner import Matrix
from plait.align.batches import align_batch, choose_target
from plait.align.codes import PairBatch, code_list
from plait.align.matrices import SubstitutionMatrix, load_matrix
from plait.align.pairs import AlignedPair
from plait.align.pieces import align_long_target
from plait.align.ranking import Found, Ranking, distinct, no_tie_rule
from plait.align.residues import Kind, decode_residues
from plait.align.results import Alignment
from plait.align.scoring import make_scoring
from plait.align.search_queries import Queries, query_batches
from plait.align.search_sources import Database, Entry, matrix_columns, open_source
from plait.align.statistics import karlin_altschul
from plait.align.sweeps import LOCAL, SearchProgress, SearchQuery, Sweep, sweep_all
from plait.errors import FormatError, InvalidInput
from plait.settings import thread_count
from plait.types import Provenance

__all__ = ["QueryHits", "SearchRun", "SearchSettings"]

#: Residues, and hits, that are aligned at a time.
_GROUP_RESIDUES: Final = 1 << 25
_GROUP_HITS: Final = 1 << 14
#: Cells from which it pays to look for the end of an alignment first.
_LONG_CELLS: Final = 1 << 24
#: Hits that may be ranked at a time, over all queries.
_RANKED: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """All settings of a search, as given.

    Attributes
    ----------
    matrix, gap_open, gap_extend
        As for `plait.align.scoring.make_scoring`. The first residue of a gap costs `gap_open`: BLAST's
        existence G and extension E are ``gap_open = G + E`` and ``gap_extend = E``.
    kind
        What queries and database are; by default what the database is or its first letters suggest.
    top
        Hits of a query at the most.
    evalue
        Largest E-value of a hit, or None for any.
    min_score
        Lowest score of a hit, or None for any above 0.
    align
        Whether hits are aligned.
    allow_duplicate_names
        Whether several queries, or several sequences of FASTA files that are searched, may have one name.
    threads
        Threads; by default those of the settings.
    device
        ``"auto"`` (the first GPU that can be used, else the CPU), ``"cpu"``, ``"cuda"``, ``"cuda:N"``,
        ``"cuda:all"`` or ``"reference"`` (plain Python).

    Raises
    ------
    InvalidInput
        If a number is too low.
    """

    matrix: Matrix | None = None
    gap_open: int | None = None
    gap_extend: int | None = None
    kind: Kind | None = None
    top: int = 500
    evalue: float | None = 10.0
    min_score: int | None = None
    align: bool = True
    allow_duplicate_names: bool = False
    threads: int | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.kind not in (None, "protein", "dna"):
            raise InvalidInput("kind", found=repr(self.kind), expected="'protein' or 'dna'")
        for what, value, least in (("top", self.top, 1), ("min_score", self.min_score, 1)):
            if value is not None and value < least:
                raise InvalidInput(what, found=repr(value), expected=f"a whole number of at least {least}")
        if self.evalue is not None and not self.evalue >= 0:
            raise InvalidInput("evalue", found=repr(self.evalue), expected="a number of at least 0")
        choose_target(self.device, self.threads)


class QueryHits(NamedTuple):
    """What a query has found.

    Attributes
    ----------
    query
        The query.
    number
        Number of its hits.
    pairs
        Its hits, best first; to be read before those of the next query.
    """

    query: SearchQuery
    number: int
    pairs: Iterator[AlignedPair]


class _Ranked(NamedTuple):
    """The hits of a query, best first, with their statistics; None where there are none."""

    query: SearchQuery
    found: Found
    bit_scores: NDArray[np.float64] | None
    evalues: NDArray[np.float64] | None


class _Hit(NamedTuple):
    query: SearchQuery
    record: int
    score: int
    length: int
    bit_score: float | None
    evalue: float | None


_Report = Callable[[int, Found], None]
_Progress = Callable[[SearchProgress], None]


def _report_after(queries: int, report: _Report) -> _Report:
    """A report whose numbers of queries go on after those of earlier sweeps."""
    return lambda query, found: report(queries + query, found)


def _progress_after(cells: int, progress: _Progress) -> _Progress:
    return lambda state: progress(SearchProgress(cells + state.cells, cells + state.total_cells))


class SearchRun:
    """One search.

    Parameters
    ----------
    database
        What is searched.
    settings
        How.

    Attributes
    ----------
    source
        The database.
    scoring
        Matrix and gap costs.
    statistics
        Where E-values come from, or None.
    notes
        What the user ought to know.
    cells
        Cells of all matrices swept so far.

    Raises
    ------
    InvalidInput, FormatError
        If the database or a setting is not what it should be.
    """

    def __init__(self, database: Database, settings: SearchSettings) -> None:
        self.settings = settings
        self._threads = thread_count() if settings.threads is None else settings.threads
        self._target = choose_target(settings.device, self._threads)
        matrix = settings.matrix
        if matrix is not None and not isinstance(matrix, SubstitutionMatrix):
            matrix = load_matrix(matrix)
        self.source = open_source(
            database,
            settings.kind,
            otherwise=None if matrix is None else matrix.kind,
            allow_duplicate_names=settings.allow_duplicate_names,
            shape=self._target.sweep_shape(),
        )
        self.scoring = make_scoring(matrix, settings.gap_open, settings.gap_extend, kind=self.source.kind)
        self.statistics, lacking = karlin_altschul(self.scoring)
        self.notes = (f"no E-values: {lacking}",) if lacking else ()
        self.cells = 0
        self._columns = matrix_columns(self.scoring, self.source.kind)

    @property
    def provenance(self) -> Provenance:
        """How results are made; complete once the database has been read."""
        settings, source = self.settings, self.source
        return Provenance(
            version=__version__,
            device=self._target.description,
            schedule="inter_sequence",
            algebra="SaturatingMaxPlus",
            parameters={
                "mode": "local",
                "kind": source.kind,
                "matrix": self.scoring.matrix.name,
                "gap_open": self.scoring.gap_open,
                "gap_extend": self.scoring.gap_extend,
                "top": settings.top,
                "evalue": settings.evalue,
                "min_score": settings.min_score,
                "database": [os.path.basename(path) for path in source.paths],
                "database_sequences": source.sequences,
                "database_residues": source.residues,
            },
        )

    def hits(
        self,
        queries: Queries,
        *,
        report: _Report | None = None,
        progress: _Progress | None = None,
    ) -> Iterator[QueryHits]:
        """Hits of each query, in order of the queries.

        Parameters
        ----------
        queries
            The queries. As many as fit into memory are searched at a time; then the database is read again.
        report, progress
            As for `plait.align.sweeps.sweep_all`.
        """
        settings = self.settings
        batches = query_batches(
            queries,
            self.scoring,
            kind=self.source.kind,
            sure=settings.kind is not None,
            most=max(_RANKED // settings.top, 1),
            allow_duplicate_names=settings.allow_duplicate_names,
        )
        how = Sweep(self.scoring, settings.top, settings.device, self._threads)
        first = 0
        for batch in batches:
            least = settings.min_score or 1
            rankings = [Ranking(settings.top, least, self._tie_rule(query)) for query in batch]
            self.cells += sweep_all(
                how,
                batch,
                self.source,
                rankings,
                report=None if report is None else _report_after(first, report),
                progress=None if progress is None else _progress_after(self.cells, progress),
            )
            first += len(batch)
            ranked = [
                self._ranked(query, ranking.best()) for query, ranking in zip(batch, rankings, strict=True)
            ]
            del rankings
            pairs = self._pairs(ranked)
            for own in ranked:
                number = len(own.found.records)
                yield QueryHits(own.query, number, islice(pairs, number))

    def _tie_rule(self, query: SearchQuery) -> Callable[..., NDArray[np.float64]]:
        """Sorts equal scores by E-value; that of a database of one residue sorts like that of any other."""
        statistics, size = self.statistics, query.codes.size
        if statistics is None:
            return no_tie_rule
        return lambda scores, lengths: statistics.evalue(scores, size, lengths, database_residues=1)

    def _ranked(self, query: SearchQuery, found: Found) -> _Ranked:
        if self.statistics is None or not len(found.records):
            return _Ranked(query, found, None, None)
        evalues = self.statistics.evalue(
            found.scores,
            query.codes.size,
            found.lengths,
            database_residues=self.source.residues,
            database_sequences=self.source.sequences,
        )
        if self.settings.evalue is not None:
            good = np.flatnonzero(evalues <= self.settings.evalue)
            found, evalues = found.take(good), evalues[good]
        return _Ranked(query, found, self.statistics.bit_score(found.scores), evalues)

    def _pairs(self, ranked: Sequence[_Ranked]) -> Iterator[AlignedPair]:
        for group in _groups(_hits(ranked)):
            records = distinct(np.array([hit.record for hit in group], np.int64))
            entries = {entry.record: entry for entry in self.source.entries(records)}
            yield from self._aligned(group, [entries[hit.record] for hit in group])

    def _aligned(self, hits: Sequence[_Hit], entries: Sequence[Entry]) -> Iterator[AlignedPair]:
        alignments: Sequence[Alignment | None] = [None] * len(hits)
        if self.settings.align:
            alignments = self._alignments(hits, entries)
        for hit, entry, alignment in zip(hits, entries, alignments, strict=True):
            if alignment is not None and alignment.score != hit.score:
                raise FormatError(
                    self.source.paths[-1] if self.source.paths else "database",
                    found=f"score {alignment.score} of {entry.name!r} when aligned, {hit.score} before",
                    expected="the same",
                    hint="the database must not change while it is searched",
                )
            yield AlignedPair(
                query_name=hit.query.name,
                target_name=entry.name,
                query=hit.query.letters,
                target=decode_residues(entry.codes, self.source.kind).encode("ascii"),
                score=hit.score,
                alignment=alignment,
                mode="local",
                bit_score=hit.bit_score,
                evalue=hit.evalue,
                target_description=entry.description,
                target_record=entry.record,
            )

    def _alignments(self, hits: Sequence[_Hit], entries: Sequence[Entry]) -> list[Alignment]:
        found: dict[int, Alignment] = {}
        for k, (hit, entry) in enumerate(zip(hits, entries, strict=True)):
            in_lanes, codes = hit.query.in_lanes, hit.query.codes
            if in_lanes is None or codes.size * entry.codes.size < _LONG_CELLS:
                continue
            alignment = align_long_target(
                (in_lanes, codes), entry.codes, self._columns, hit.score, self.scoring, LOCAL, self._target
            )
            if alignment is not None:
                found[k] = alignment
        rest = [k for k in range(len(hits)) if k not in found]
        batch = PairBatch(
            code_list([hits[k].query.codes for k in rest]),
            code_list([self._columns[entries[k].codes] for k in rest]),
        )
        found |= zip(rest, align_batch(batch, self.scoring, LOCAL, self._target), strict=True)
        return [found[k] for k in range(len(hits))]


def _hits(ranked: Sequence[_Ranked]) -> Iterator[_Hit]:
    for query, found, bit_scores, evalues in ranked:
        for k in range(len(found.records)):
            yield _Hit(
                query,
                int(found.records[k]),
                int(found.scores[k]),
                int(found.lengths[k]),
                None if bit_scores is None else float(bit_scores[k]),
                None if evalues is None else float(evalues[k]),
            )


def _groups(hits: Iterator[_Hit]) -> Iterator[list[_Hit]]:
    group: list[_Hit] = []
    size = 0
    for hit in hits:
        residues = hit.length + hit.query.codes.size
        if group and (size + residues > _GROUP_RESIDUES or len(group) == _GROUP_HITS):
            yield group
            group, size = [], 0
        group.append(hit)
        size += residues
    if group:
        yield group
