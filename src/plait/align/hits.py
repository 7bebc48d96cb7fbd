"""Search a database: exact Smith-Waterman scores of all queries with all sequences, the best aligned.

Hits are returned, or written from file to file in bounded memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, repeat
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.align.batches import CellProgress, PairBatch, PairSweep, against, code_list
from plait.align.database import SequenceDatabase, pack_sequences
from plait.align.letters import common_kind, count_letters, decode_residues, masked_records
from plait.align.queries import NamedSequences, Queries, QueryReader, check_letters, groups, named_sequences
from plait.align.results import Alignment, make_alignment
from plait.align.scoring import free_ends_of, make_scoring, to_matrix
from plait.align.settings import Kind, SearchSettings, SeveralBest
from plait.align.statistics import (
    COMPOSITION_SCALE,
    TRANSLATED_SHARE,
    KarlinAltschul,
    composition_scores,
    has_ratios,
    karlin_altschul,
)
from plait.align.sweeps import (
    DatabaseFiles,
    Entry,
    Found,
    Marks,
    PackedSource,
    Rankings,
    SearchQuery,
    Source,
    TieRule,
    distinct,
    matrix_columns,
    no_tie_rule,
    open_source,
    sweep_all,
)
from plait.align.writers import COLUMNS, AlignedPair, AlignmentWriter, hit_columns, hit_format, open_hits
from plait.devices.target import resolve, spelled
from plait.dp.pairs.blocks import SweepShape, sweep_shape
from plait.dp.pairs.rows import RowSweep, row_sweep
from plait.errors import FormatError, InvalidInput, whole
from plait.formats.atomic import check_output, file_or_standard_output
from plait.formats.fasta import Sequences
from plait.settings import thread_count
from plait.types import Provenance, Tabular

#: What can be searched: files, or sequences with names.
Database = DatabaseFiles | NamedSequences


def _opened(
    database: Database, settings: SearchSettings, otherwise: Kind | None, shape: SweepShape
) -> Source:
    """What is searched; sequences in memory are packed."""
    listed: Any = database
    if not isinstance(database, SequenceDatabase | str | os.PathLike | Mapping):
        listed = list(database)
    if not isinstance(listed, Mapping | list) or (
        not isinstance(listed, Mapping) and all(isinstance(item, str | os.PathLike) for item in listed)
    ):
        for path in listed if isinstance(listed, list) else ():
            if isinstance(path, str) and path.isalpha() and not os.path.exists(path):
                expected = "paths of files, or sequences with names: {name: letters}"
                raise InvalidInput("database", found=f"{path[:20]!r}, which is no file", expected=expected)
        return open_source(
            listed,
            settings.kind,
            otherwise=otherwise,
            allow_duplicate_names=settings.allow_duplicate_names,
            mask_lower_case=settings.mask_lower_case,
            shape=shape,
        )
    named = [
        (name, letters.encode("ascii", "replace") if isinstance(letters, str) else letters)
        for name, letters in named_sequences(listed, "targets")
    ]
    known: set[str] = set()
    for number, (name, _) in enumerate(named, 1):
        if name in known and not settings.allow_duplicate_names:
            found, hint = f"a second one named {name!r}, number {number}", "or allow duplicate names"
            raise InvalidInput("targets", found=found, expected="a name of its own for each", hint=hint)
        known.add(name)
    letters = np.frombuffer(b"".join(own for _, own in named), np.uint8)
    kind = settings.kind or common_kind({"the targets": count_letters(letters)}, otherwise)
    for name, own in named:
        check_letters(own, kind, f"target {name!r}")
    offsets = np.concatenate(
        [np.zeros(1, np.int64), np.cumsum([len(own) for _, own in named], dtype=np.int64)]
    )
    numbers = np.arange(1, len(named) + 1)
    records = Sequences([name for name, _ in named], [""] * len(named), letters, offsets, numbers)
    if settings.mask_lower_case:
        records = masked_records(records, kind)
    return open_source(pack_sequences(records, "targets in memory", kind=kind), shape=shape)


#: Residues, and hits, that are aligned at a time.
_GROUP_RESIDUES: Final = 1 << 25
_GROUP_HITS: Final = 1 << 14
#: Hits that are scored again at a time.
_RESCORED: Final = 1 << 10
#: Lower than any score.
_FAR: Final = 1 << 60
#: Residues that no target has.
_LONGEST: Final = 1 << 31
#: Hits that may be ranked at a time, over all queries.
_RANKED: Final = 1 << 22


class QueryHits(NamedTuple):
    """The hits of a query, best first; read them before those of the next."""

    query: SearchQuery
    pairs: Iterator[AlignedPair]


class _Ranked(NamedTuple):
    """The hits of a query, best first, with their statistics; None where there are none.

    `strands` are all forms of the query, see `plait.align.queries`, which have neighbouring numbers.
    """

    strands: tuple[SearchQuery, ...]
    found: Found
    bit_scores: NDArray[np.float64] | None
    evalues: NDArray[np.float64] | None


class _Hit(NamedTuple):
    """The best of a query in one target; `query` is of that strand."""

    query: SearchQuery
    strands: tuple[SearchQuery, ...]
    record: int
    score: int
    length: int
    bit_score: float | None
    evalue: float | None


_Report = Callable[[int, Found], None]
_Progress = Callable[[CellProgress], None]


def _checked(settings: SearchSettings) -> SearchSettings:
    if settings.kind not in (None, "protein", "dna"):
        raise InvalidInput("kind", found=repr(settings.kind), expected="'protein' or 'dna'")
    if settings.strand not in ("given", "both"):
        raise InvalidInput("strand", found=repr(settings.strand), expected="'given' or 'both'")
    expected = "local, global, semiglobal or overlap"
    if settings.mode not in expected:
        raise InvalidInput("mode", found=repr(settings.mode), expected=expected)
    several, local = settings.hits_per_target, settings.mode == "local"
    for what, value in (
        ("top", settings.top),
        ("min_score", settings.min_score if local else None),
        ("hits_per_target", several),
    ):
        if value is not None:
            whole(what, value, 1)
    if several > 1 and (settings.score_only or not local):
        found = f"{several} {'for scores alone' if local else f'in mode {settings.mode!r}'}"
        raise InvalidInput("hits_per_target", found=found, expected="1")
    if settings.translate and settings.strand == "both":
        raise InvalidInput("strand", found="'both' of translations", expected="'given': they are of both")
    if settings.translate and settings.kind == "dna":
        raise InvalidInput("kind", found="'dna' for translations", expected="'protein', as in the database")
    if settings.composition and (not local or settings.kind == "dna" or several > 1):
        found = f"mode {settings.mode!r}" if not local else "nucleotides" if several == 1 else "several hits"
        raise InvalidInput("composition", found=found, expected="one local alignment of proteins")
    if settings.evalue is not None and not settings.evalue >= 0:
        raise InvalidInput("evalue", found=repr(settings.evalue), expected="a number of at least 0")
    return settings


def _free_ends(settings: SearchSettings) -> Any:
    named = settings.free_ends
    return tuple(word.strip() for word in named.split(",")) if isinstance(named, str) else named


class SearchRun:
    """One search; `cells` are those of all matrices swept so far, `notes` what the user ought to know.

    `statistics` is where E-values come from, or None. `InvalidInput` or `FormatError` if the database or a
    setting is not what it should be.
    """

    def __init__(self, database: Database, settings: SearchSettings) -> None:
        self.settings = _checked(settings)
        free = free_ends_of(settings.mode, _free_ends(settings))
        self._threads = thread_count() if settings.threads is None else settings.threads
        target = resolve(settings.device, self._threads)
        matrix = None if settings.matrix is None else to_matrix(settings.matrix)
        otherwise: Kind | None = None if matrix is None else matrix.kind
        if settings.translate or settings.composition:
            otherwise = "protein"
        self.source = _opened(database, settings, otherwise, sweep_shape(target))
        if self.source.kind != "protein" and (settings.translate or settings.composition):
            what = "translate" if settings.translate else "composition"
            raise InvalidInput(what, found="a database of nucleotides", expected="one of proteins")
        self.scoring = make_scoring(matrix, settings.gap_open, settings.gap_extend, kind=self.source.kind)
        # Tasks of a sweep have a thread each; alignments share all of them.
        self._pairs = PairSweep(scoring=self.scoring, free=free, target=target)
        self._task = replace(self._pairs, target=resolve(settings.device, 1))
        self.statistics: KarlinAltschul | None = None
        lacking = f"scores of mode {settings.mode!r} have none"
        if settings.mode == "local":
            self.statistics, lacking = karlin_altschul(self.scoring)
        if settings.composition and (self.statistics is None or not has_ratios(self.scoring)):
            found = f"{self.scoring.matrix.name} {self.scoring.gap_open}/{self.scoring.gap_extend}"
            expected = "BLOSUM62, with costs of gaps that have statistics"
            raise InvalidInput("composition", found=found, expected=expected)
        self.notes = () if self.statistics else (f"no E-values: {lacking}",)
        #: The limit of E-values, if these are known before all is read, or grow with what is read.
        known = isinstance(self.source, PackedSource) and self.source.residues > 0
        known = known or (self.statistics is not None and self.statistics.gapped.alpha_v is not None)
        self._limit = settings.evalue if known and not (settings.translate or settings.composition) else None
        self.cells = 0
        self._columns = matrix_columns(self.scoring, self.source.kind)
        #: What queries score at the least, and in how many residues, by their size and K.
        self._floors: dict[tuple[int, float | None], tuple[int, int]] = {}
        #: What every hit scores, at the least.
        self._least = settings.min_score if settings.min_score is not None else 1 if free.local else -_FAR

    @property
    def _more(self) -> dict[str, Any]:
        """Settings that are told where they are not the usual ones."""
        names = ("hits_per_target", "strand", "free_ends", "translate", "composition", "mask_lower_case")
        return {name: getattr(self.settings, name) for name in names}

    @property
    def provenance(self) -> Provenance:
        """How results are made; complete once the database has been read."""
        settings, source = self.settings, self.source
        return Provenance(
            version=__version__,
            device=self._pairs.target.description,
            schedule="inter_sequence",
            algebra="SaturatingMaxPlus",
            parameters={
                "mode": settings.mode,
                "kind": source.kind,
                "matrix": self.scoring.matrix.name,
                "gap_open": self.scoring.gap_open,
                "gap_extend": self.scoring.gap_extend,
                "top": settings.top,
                "evalue": settings.evalue,
                "min_score": settings.min_score,
                **{
                    name: value
                    for name, value in self._more.items()
                    if value != getattr(SearchSettings, name)
                },
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

        As many queries as fit into memory are searched at a time; then the database is read again. `report`
        and `progress` are as for `plait.align.sweeps.sweep_all`.
        """
        settings, free = self.settings, self._pairs.free
        reader = QueryReader(scoring=self.scoring, kind=self.source.kind, free=free, settings=settings)
        first = 0
        forms = 6 if settings.translate else 2 if settings.strand == "both" else 1
        for strands in reader.batches(queries, max(_RANKED // (forms * settings.top), 1)):
            swept = list(chain.from_iterable(strands))
            forms = len(swept) // len(strands) if strands else 1
            floors = partial(lambda every: [self._floor(own[0]) for own in every], strands)
            rankings = Rankings(settings.top, floors, *self._rules(swept), forms)
            told = None if report is None else _by_query(report, first, forms)
            how = {"threads": self._threads, "swept": self.cells}
            self.cells = sweep_all(
                self._task, swept, self.source, rankings, report=told, progress=progress, **how
            )
            first += len(strands)
            ranked = self._ranked(strands, rankings.best(), forms)
            del rankings
            hits = self._aligned(ranked)
            for own in ranked:
                pairs = chain.from_iterable(islice(hits, len(own.found.records)))
                yield QueryHits(own.strands[0], pairs)

    def _floor(self, query: SearchQuery) -> int:
        """What every hit of a query scores, at the least, as far as that is known before all is read."""
        source, statistics, key = self.source, self._statistics_of(query), (query.codes.size, query.k)
        if self._limit is None or statistics is None or not query.codes.size or not source.residues:
            return self._least
        floor, residues = self._floors.get(key, (self._least, 0))
        # It takes a millisecond each time.
        if source.residues >= 2 * residues:
            longest = getattr(source, "longest", _LONGEST)
            found = statistics.least_score(self._limit, query.codes.size, longest, **self._sizes)
            floor, _ = self._floors[key] = max(found, self._least), source.residues
        return floor

    @property
    def _sizes(self) -> dict[str, int]:
        """What E-values depend on of the database."""
        return {"database_residues": self.source.residues, "database_sequences": self.source.sequences}

    def _statistics_of(self, query: SearchQuery) -> KarlinAltschul | None:
        if self.statistics is None or query.k is None:
            return self.statistics
        return replace(self.statistics, gapped=replace(self.statistics.gapped, k=query.k))

    def _rules(self, swept: Sequence[SearchQuery]) -> tuple[TieRule, Marks | None]:
        """What sorts equal scores, and marks what is within the limit, if that is known before all is read.

        They are sorted by E-value; that of a database of one residue sorts like that of any other.
        """
        sizes = np.array([query.codes.size for query in swept])
        statistics = self._statistics_of(swept[0]) if swept else None
        if statistics is None:
            return no_tie_rule, None

        def evalues(queries: Any, scores: Any, lengths: Any, **database: int) -> NDArray[np.float64]:
            return statistics.evalue(scores, sizes[queries], lengths, **database)

        ties = partial(evalues, database_residues=1)
        if self._limit is None:
            return ties, None
        # The last digits of an E-value may depend on where it stands in an array.
        most = self._limit * (1 + 1e-9)
        return ties, lambda *found: evalues(*found, **self._sizes) <= most

    def _ranked(self, queries: Sequence[tuple[SearchQuery, ...]], found: Found, forms: int) -> list[_Ranked]:
        """What was found of each query, best first."""
        statistics = self._statistics_of(queries[0][0]) if queries else None
        evalues = bits = None
        if statistics is not None and found.records.size and not self.settings.composition:
            sizes = np.array([own.codes.size for strands in queries for own in strands])[found.queries]
            evalues = self._evalues(found.scores, sizes, found.lengths, statistics)
            if self.settings.evalue is not None:
                good = np.flatnonzero(evalues <= self.settings.evalue)
                found, evalues = found.take(good), evalues[good]
            bits = statistics.bit_score(found.scores)
        edges = np.searchsorted(found.queries // forms, np.arange(len(queries) + 1))
        ranked = []
        for strands, first, last in zip(queries, edges.tolist(), edges[1:].tolist(), strict=False):
            own = slice(first, last)
            told = (None if column is None else column[own] for column in (bits, evalues))
            ranked.append(_Ranked(strands, found.take(own), *told))
            if self.settings.composition and last > first:
                ranked[-1] = self._adjusted(strands, ranked[-1].found)
        return ranked

    def _adjusted(self, strands: tuple[SearchQuery, ...], found: Found) -> _Ranked:
        """Scored again for the composition of each pair, and ordered by that."""
        assert self.statistics is not None
        turned = found.queries % len(strands)
        raw = np.zeros(len(found.records))
        for first in range(0, raw.size, _RESCORED):
            some = slice(first, first + _RESCORED)
            entries = self.source.entries(np.sort(found.records[some]))
            known = {entry.record: self._columns[entry.codes] for entry in entries}
            targets = [known[record] for record in found.records[some].tolist()]
            for k, (form, target) in enumerate(zip(turned[some].tolist(), targets, strict=True), first):
                raw[k] = self._scaled_rows(strands[form].codes, target).score().score
        sizes = np.array([query.codes.size for query in strands])[turned]
        evalues = self._evalues(raw / COMPOSITION_SCALE, sizes, found.lengths, self.statistics)
        # BLAST's E-values are of unrounded scores, its bits of rounded ones.
        scores = np.floor(raw / COMPOSITION_SCALE + 0.5).astype(np.int64)
        order = np.lexsort((found.records, -raw, evalues))
        limit = np.inf if self.settings.evalue is None else self.settings.evalue
        order = order[(evalues[order] <= limit) & (scores[order] >= self._least)]
        found = found._replace(scores=scores).take(order)
        return _Ranked(strands, found, self.statistics.bit_score(found.scores), evalues[order])

    def _scaled_rows(self, query: NDArray[np.uint8], target: NDArray[np.uint8]) -> RowSweep:
        """A pair with the scores for its composition."""
        assert self.statistics is not None
        costs = (COMPOSITION_SCALE * self.scoring.gap_open, COMPOSITION_SCALE * self.scoring.gap_extend)
        scores = composition_scores(self.statistics, query, target)
        free = self._pairs.free
        return row_sweep(
            query,
            target,
            scores,
            gap_open=costs[0],
            gap_extend=costs[1],
            free=free,
            interpreted=self._pairs.interpreted,
        )

    def _evalues(
        self, scores: Any, sizes: Any, lengths: Any, statistics: KarlinAltschul
    ) -> NDArray[np.float64]:
        found = statistics.evalue(scores, sizes, lengths, **self._sizes)
        return found / TRANSLATED_SHARE if self.settings.translate else found

    def _several(self, hit: _Hit, entry: Entry) -> list[AlignedPair]:
        """The best alignments of a query with one target, on all strands that are asked for."""
        settings = self.settings
        asked = SeveralBest(most=settings.hits_per_target, apart=0, min_score=max(self._least, 1))
        target = self._columns[entry.codes]
        found = [
            (query, alignment)
            for query in hit.strands
            for alignment in self._pairs.best_of_pair(against(query.codes, code_list([target])), asked)
        ]
        found.sort(key=lambda own: -own[1].score)
        pairs = []
        for rank, (query, alignment) in enumerate(found[: settings.hits_per_target], 1):
            own = hit._replace(query=query, score=alignment.score)
            if self.statistics is not None:
                score = np.array([alignment.score])
                evalue = float(
                    self._evalues(score, query.codes.size, np.array([hit.length]), self.statistics)[0]
                )
                if settings.evalue is not None and evalue > settings.evalue:
                    break
                own = own._replace(bit_score=float(self.statistics.bit_score(score)[0]), evalue=evalue)
            pairs.append(self._pair(own, entry, alignment, rank))
        return pairs

    def _aligned(self, ranked: Sequence[_Ranked]) -> Iterator[list[AlignedPair]]:
        """What is found in each target, in order, groups of them read and aligned together."""
        every = groups(_hits(ranked), _residues, _GROUP_HITS, _GROUP_RESIDUES)
        for hits in every:
            records = distinct(np.array([hit.record for hit in hits], np.int64))
            known = {entry.record: entry for entry in self.source.entries(records)}
            entries = [known[hit.record] for hit in hits]
            if self.settings.hits_per_target > 1:
                yield from map(self._several, hits, entries)
                continue
            alignments: Sequence[Alignment | None] = [None] * len(hits)
            by_rows = hits[0].query.profile is not None or self.settings.composition
            if by_rows and not self.settings.score_only:
                alignments = [self._by_rows(*own) for own in zip(hits, entries, strict=True)]
            elif not self.settings.score_only:
                batch = PairBatch(
                    code_list([hit.query.codes for hit in hits]),
                    code_list([self._columns[entry.codes] for entry in entries]),
                )
                alignments = self._pairs.alignments(batch, self._pairs.results(batch, keep=True))
            for hit, entry, alignment in zip(hits, entries, alignments, strict=True):
                yield [self._pair(hit, entry, alignment)]

    def _by_rows(self, hit: _Hit, entry: Entry) -> Alignment:
        """The alignment with scores of its own."""
        query, target = hit.query, self._columns[entry.codes]
        if query.profile is not None:
            path = query.rows(target, self._pairs).align()
            score = path.score
        else:
            path = self._scaled_rows(query.codes, target).align()
            score = (path.score + COMPOSITION_SCALE // 2) // COMPOSITION_SCALE
        told = (score, path.query_end, path.target_end, path.runs)
        interpreted = self._pairs.interpreted
        found = make_alignment(query.codes, target, self.scoring, *told, interpreted=interpreted)
        if query.profile is None:
            return found
        # What is similar is what scores.
        similar, row, column = 0, path.query_start, path.target_start
        for operation, length in path.runs.tolist():
            if operation == 0:
                steps = np.arange(length)
                similar += int((query.profile[row + steps, target[column + steps]] > 0).sum())
            row += length if operation != 1 else 0
            column += length if operation != 2 else 0
        return replace(found, similar=similar)

    def _pair(self, hit: _Hit, entry: Entry, alignment: Alignment | None, rank: int = 1) -> AlignedPair:
        if alignment is not None and alignment.score != hit.score:
            raise FormatError(
                self.source.paths[-1] if self.source.paths else "database",
                found=f"score {alignment.score} of {entry.name!r} when aligned, {hit.score} before",
                expected="the same",
                hint="the database must not change while it is searched",
            )
        return AlignedPair(
            query_name=hit.query.name,
            target_name=entry.name,
            query=hit.query.letters,
            target=decode_residues(entry.codes, self.source.kind).encode("ascii"),
            score=hit.score,
            alignment=alignment,
            mode=self.settings.mode,
            bit_score=hit.bit_score,
            evalue=hit.evalue,
            target_description=entry.description,
            target_record=entry.record,
            rank=rank,
            strand="+" if hit.query is hit.strands[0] or hit.query.frame else "-",
            frame=hit.query.frame,
            query_residues=hit.query.residues,
        )


def _by_query(report: _Report, first: int, strands: int) -> _Report:
    """Tells what is found of one of the strands as found of the query."""
    return lambda number, found: report(first + number // strands, found)


def _residues(hit: _Hit) -> int:
    return hit.length + hit.query.codes.size


def _hits(ranked: Sequence[_Ranked]) -> Iterator[_Hit]:
    for strands, found, bit_scores, evalues in ranked:
        forms = (found.queries % len(strands)).tolist()
        told = (repeat(None) if column is None else column.tolist() for column in (bit_scores, evalues))
        columns = (column.tolist() for column in (found.records, found.scores, found.lengths))
        for form, *facts in zip(forms, *columns, *told, strict=False):
            yield _Hit(strands[form], strands, *facts)


#: Columns of pairs that tables of results have not.
_LEFT_OUT: Final = ("mode", "query_aligned", "target_aligned", "rank", "strand")
#: Scores that are returned at the most, if all are asked for.
_MOST_SCORES: Final = 1 << 27


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SearchResult(Tabular):
    """What a search has found.

    `hits` of each query are best first: highest score, then lowest E-value, then order of the database.
    `scores`, (queries, sequences), are there if they were asked for; `sequences` and `residues` are the size
    of the database, `cells` those of all matrices; `notes` are, for example, why there are no E-values.
    `to_arrow` has a row for each hit, with the columns of ``plait search`` but mode and the aligned letters.
    """

    queries: tuple[str, ...]
    hits: tuple[tuple[AlignedPair, ...], ...]
    scores: NDArray[np.int64] | None
    sequences: int
    residues: int
    cells: int
    notes: tuple[str, ...]
    provenance: Provenance

    def __len__(self) -> int:
        return sum(map(len, self.hits))

    def _table(self, rows: int | None) -> Any:
        import pyarrow as pa

        from plait.align.table_writers import table_schema

        columns = {name: own for name, own in COLUMNS.items() if name not in _LEFT_OUT}
        found = list(islice(chain.from_iterable(self.hits), rows))
        schema = table_schema(columns)
        values = [[own.value(hit) for hit in found] for own in columns.values()]
        return pa.table(values, schema=schema)


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

    def matrix(self, queries: int, sequences: int, *, local: bool) -> NDArray[np.int64]:
        if queries * sequences > _MOST_SCORES:
            raise InvalidInput(
                "scores", found=f"{queries * sequences:,} scores", expected=f"at most {_MOST_SCORES:,}"
            )
        # Empty queries and targets are not swept: they score 0 in local mode.
        scores = np.full((queries, sequences), 0 if local else -_FAR, np.int64)
        for query, found in self._parts:
            row = scores[query]
            row[found.records] = np.maximum(row[found.records], found.scores)
        if scores.min(initial=0) == -_FAR:
            expected = "sequences with residues, or mode 'local'"
            raise InvalidInput("scores", found="an empty sequence", expected=expected)
        return scores


def search(
    queries: Queries,
    database: Database,
    settings: SearchSettings | None = None,
    *,
    scores: bool = False,
    progress: Callable[[CellProgress], None] | None = None,
    **named: Any,
) -> SearchResult:
    """Search a database for the sequences that are most similar to each query.

    Every query is scored with every sequence (Smith and Waterman, J Mol Biol 147:195, 1981; no heuristics).
    Of each sequence one alignment is reported, a best one, or as many as `hits_per_target` says. The `top`
    best are kept, those with a larger E-value than `evalue` left out, and the others aligned. Hits are the
    same for any form of the database and any number of threads. Bit scores and E-values are those of BLAST;
    where BLAST has no parameters for the scoring there are none, and a note says so. Empty sequences are
    never hits.

    Parameters
    ----------
    queries
        The path of a FASTA file, of a PSI-BLAST matrix in ASCII or of a HMMER3 profile; or sequences with
        names: pairs, a mapping of names to sequences, or Biopython's records, of which one may be by itself.
    database
        A packed database or its path, the path or paths of FASTA files, which are read once, or sequences
        with names, as for `queries`.
    settings
        All settings, see `plait.align.settings.SearchSettings`; some may be given by name.
    scores
        Whether all scores are returned, too, for up to 2^27 pairs.
    progress
        Called in this thread with the cells that are done.
    **named
        Settings by name, such as ``top=10``.

    Returns
    -------
    SearchResult
        The hits of each query, best first.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.
    FormatError
        If a file is not what it should be.

    Examples
    --------
    >>> result = search({"q": "KTAYIARQRQ"}, {"a": "MKVLAW", "b": "MKTAYIAKQRQISF"}, kind="protein", top=1)
    >>> [(hit.target_name, hit.score, hit.alignment.cigar) for hit in result.hits[0]]
    [('b', 46, '6=1X3=')]
    """
    settings = replace(settings or SearchSettings(), **named)
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
        every.matrix(len(names), source.sequences, local=settings.mode == "local") if every else None,
        source.sequences,
        source.residues,
        run.cells,
        run.notes,
        run.provenance,
    )


spelled(search, SearchSettings)


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
    progress: Callable[[CellProgress], None] | None = None,
) -> SearchSummary:
    """Search a database for the queries of a FASTA file, and write the hits.

    `output` None or ``-`` is standard output. `database` is as for `search`, `format` one of
    `HIT_FORMATS`, if the file name does not say it; `columns` are names of `BLAST_COLUMNS`, but for text.
    `progress` is called in this thread. `InvalidInput` if a setting is wrong; `FormatError` if a file is not
    what it should be, or the output cannot be written.
    """
    how = settings or SearchSettings()
    chosen = hit_format(output, format)
    names = hit_columns(chosen, columns, aligned=not how.score_only)
    run = SearchRun(database, how)
    inputs = (queries, *run.source.paths)
    path = file_or_standard_output(output)
    if path is not None:
        check_output(path, inputs)
    count = 0
    writer: AlignmentWriter | None = None
    with ExitStack() as stack:
        for query, pairs in run.hits(queries, progress=progress):
            if writer is None:
                # Not before, because only now the size of the database is known.
                writer = open_hits(
                    output,
                    provenance=run.provenance,
                    format=chosen,
                    columns=names,
                    notes=run.notes,
                    inputs=inputs,
                )
                stack.enter_context(writer)
            writer.begin(query.name, query.residues)
            for pair in pairs:
                writer.write(pair)
            count += 1
    hits, source = writer.pairs if writer else 0, run.source
    return SearchSummary(count, hits, source.sequences, source.residues, run.cells, run.notes, run.provenance)
