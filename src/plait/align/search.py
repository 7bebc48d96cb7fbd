"""Search a database: exact Smith-Waterman scores of all queries with all sequences, the best aligned.

Hits are returned, or written from file to file in bounded memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.align.batches import (
    CellProgress,
    PairBatch,
    PairSweep,
    against,
    code_list,
    complement_codes,
)
from plait.align.results import Alignment
from plait.align.scoring import (
    SAMPLE,
    SAY_KIND,
    Scoring,
    SubstitutionMatrix,
    count_letters,
    count_sample,
    decode_residues,
    kind_of,
    load_matrix,
    make_scoring,
)
from plait.align.settings import Kind, SearchSettings, SeveralBest
from plait.align.statistics import karlin_altschul
from plait.align.sweeps import (
    LOCAL,
    Database,
    Entry,
    Found,
    Ranking,
    SearchQuery,
    distinct,
    matrix_columns,
    no_tie_rule,
    open_source,
    search_query,
    sweep_all,
)
from plait.align.writers import COLUMNS, AlignedPair, AlignmentWriter, hit_columns, hit_format, open_hits
from plait.alphabets import reverse_complement
from plait.devices.target import resolve
from plait.dp.pairs.blocks import sweep_shape
from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import check_output, file_or_standard_output
from plait.formats.fasta import NameRegister, read_fasta
from plait.settings import thread_count
from plait.types import Provenance, Tabular

T = TypeVar("T")

#: What is searched for: the path of a FASTA file, or names and sequences.
Queries = str | os.PathLike[str] | Iterable[tuple[str, str | bytes]]

#: Residues of the queries that are searched for at a time.
_BATCH_RESIDUES: Final = 1 << 24
_BLOCK_BYTES: Final = 1 << 22
_WORDS: Final[dict[Kind, str]] = {"protein": "proteins", "dna": "nucleotides"}


def query_batches(
    queries: Queries,
    scoring: Scoring,
    *,
    kind: Kind,
    sure: bool,
    most: int,
    allow_duplicate_names: bool,
) -> Iterator[list[SearchQuery]]:
    """Queries, `most` at a time, of a FASTA file or names and sequences; at least one list, maybe empty.

    `sure`: they are of `kind` even if they do not look like it. `InvalidInput` or, with file and line,
    `FormatError` if a letter is not in the matrix, the queries are of the other kind, or a name comes twice
    and must not.
    """
    of_file = isinstance(queries, str | os.PathLike)
    read: Callable[..., Iterator[tuple[str, bytes, NDArray[np.uint8]]]] = _of_file if of_file else _in_memory
    columns = matrix_columns(scoring, kind)
    single = (
        search_query(*query, scoring, columns)
        for query in read(queries, scoring, kind, sure, allow_duplicate_names)
    )
    batches = _groups(single, lambda query: query.codes.size, most, _BATCH_RESIDUES)
    yield next(batches, [])
    yield from batches


def _groups(items: Iterable[T], size: Callable[[T], int], most: int, most_size: int) -> Iterator[list[T]]:
    """Items in order, up to `most` and a size of `most_size` at a time, or one."""
    group: list[T] = []
    total = 0
    for item in items:
        own = size(item)
        if group and (total + own > most_size or len(group) == most):
            yield group
            group, total = [], 0
        group.append(item)
        total += own
    if group:
        yield group


def _of_file(
    path: str | os.PathLike[str], scoring: Scoring, kind: Kind, sure: bool, duplicates: bool
) -> Iterator[tuple[str, bytes, NDArray[np.uint8]]]:
    names = None if duplicates else NameRegister()
    if not sure and _is_other(count_sample(path), kind):
        found, expected, hint = _other_kind(kind)
        raise FormatError(path, found=found, expected=expected, hint=hint)
    for sequences in read_fasta(path, block_residues=_BLOCK_BYTES):
        codes = scoring.encode_records(path, sequences)
        for duplicate in names.add(path, sequences) if names else ():
            raise duplicate.error("give it another name, or allow duplicate names")
        for k, name in enumerate(sequences.names):
            yield name, sequences.sequence(k), codes[sequences.offsets[k] : sequences.offsets[k + 1]]


def _in_memory(
    queries: Iterable[tuple[str, str | bytes]], scoring: Scoring, kind: Kind, sure: bool, duplicates: bool
) -> Iterator[tuple[str, bytes, NDArray[np.uint8]]]:
    known: set[str] = set()
    for number, (name, sequence, letters) in enumerate(_looked_at(queries, kind, sure)):
        if name in known and not duplicates:
            raise InvalidInput(
                "queries",
                found=f"a second query named {name!r}, number {number + 1}",
                expected="a name of its own for every query",
                hint="give it another name, or allow duplicate names",
            )
        known.add(name)
        yield name, letters, scoring.encode(sequence, f"query {name!r}")


def _looked_at(
    queries: Iterable[tuple[str, str | bytes]], kind: Kind, sure: bool
) -> Iterator[tuple[str, str | bytes, bytes]]:
    """Queries with their letters as bytes; the first `SAMPLE` letters are looked at before any is told."""
    ahead: list[tuple[str, str | bytes, bytes]] = []
    counts, looking = np.zeros(256, np.int64), not sure
    for name, sequence in queries:
        letters = sequence.encode("ascii", "replace") if isinstance(sequence, str) else bytes(sequence)
        ahead.append((name, sequence, letters))
        if looking:
            counts += count_letters(np.frombuffer(letters, np.uint8))
            looking = counts.sum() < SAMPLE
        if not looking:
            if not sure and _is_other(counts, kind):
                break
            yield from ahead
            ahead.clear()
            sure = True
    if not sure and _is_other(counts, kind):
        found, expected, hint = _other_kind(kind)
        raise InvalidInput("queries", found=found, expected=expected, hint=hint)
    yield from ahead


def _is_other(counts: NDArray[np.int64], kind: Kind) -> bool:
    """Whether letters say that queries are not what the database is; what is open they may be."""
    return kind_of(counts) not in (kind, None)


def _other_kind(kind: Kind) -> tuple[str, str, str]:
    """What to say of queries of another kind than the database: found, expected, hint."""
    looks: Kind = "protein" if kind == "dna" else "dna"
    return (
        f"queries that look like {_WORDS[looks]}",
        f"{_WORDS[kind]}, as in the database",
        f"if they are, {SAY_KIND}",
    )


#: Residues, and hits, that are aligned at a time.
_GROUP_RESIDUES: Final = 1 << 25
_GROUP_HITS: Final = 1 << 14
#: Hits that may be ranked at a time, over all queries.
_RANKED: Final = 1 << 22


class QueryHits(NamedTuple):
    """The hits of a query, best first; read them before those of the next."""

    query: SearchQuery
    pairs: Iterator[AlignedPair]


class _Ranked(NamedTuple):
    """The hits of a query, best first, with their statistics; None where there are none.

    `strands` are the query and, if it is searched for too, its reverse complement; `turned` says of which of
    them each hit is, 0 or 1.
    """

    strands: tuple[SearchQuery, ...]
    turned: NDArray[np.int64]
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
    several = settings.hits_per_target
    for what, value in (
        ("top", settings.top),
        ("min_score", settings.min_score),
        ("hits_per_target", several),
    ):
        if value is not None and value < 1:
            raise InvalidInput(what, found=repr(value), expected="a whole number of at least 1")
    if several > 1 and settings.score_only:
        raise InvalidInput("hits_per_target", found=f"{several} for scores alone", expected="1")
    if settings.evalue is not None and not settings.evalue >= 0:
        raise InvalidInput("evalue", found=repr(settings.evalue), expected="a number of at least 0")
    return settings


class SearchRun:
    """One search; `cells` are those of all matrices swept so far, `notes` what the user ought to know.

    `statistics` is where E-values come from, or None. `InvalidInput` or `FormatError` if the database or a
    setting is not what it should be.
    """

    def __init__(self, database: Database, settings: SearchSettings) -> None:
        self.settings = _checked(settings)
        self._threads = thread_count() if settings.threads is None else settings.threads
        target = resolve(settings.device, self._threads)
        matrix = settings.matrix
        if matrix is not None and not isinstance(matrix, SubstitutionMatrix):
            matrix = load_matrix(matrix)
        self.source = open_source(
            database,
            settings.kind,
            otherwise=None if matrix is None else matrix.kind,
            allow_duplicate_names=settings.allow_duplicate_names,
            shape=sweep_shape(target),
        )
        self.scoring = make_scoring(matrix, settings.gap_open, settings.gap_extend, kind=self.source.kind)
        # Tasks of a sweep have a thread each; alignments share all of them.
        self._pairs = PairSweep(scoring=self.scoring, free=LOCAL, target=target)
        self._task = replace(self._pairs, target=resolve(settings.device, 1))
        self.statistics, lacking = karlin_altschul(self.scoring)
        self.notes = (f"no E-values: {lacking}",) if lacking else ()
        self.cells = 0
        self._columns = matrix_columns(self.scoring, self.source.kind)
        self._complements = complement_codes(self.scoring) if settings.strand == "both" else None

    @property
    def _more(self) -> dict[str, Any]:
        """Settings that are told where they are not the usual ones."""
        return {"hits_per_target": self.settings.hits_per_target, "strand": self.settings.strand}

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
                "mode": "local",
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
        settings = self.settings
        batches = query_batches(
            queries,
            self.scoring,
            kind=self.source.kind,
            sure=settings.kind is not None,
            most=max(_RANKED // settings.top, 1),
            allow_duplicate_names=settings.allow_duplicate_names,
        )
        first = 0
        for batch in batches:
            strands = [self._strands(query) for query in batch]
            swept = list(chain.from_iterable(strands))
            rankings = [Ranking(settings.top, settings.min_score or 1, self._tie_rule(own)) for own in swept]
            told = None if report is None else _by_query(report, first, len(swept) // max(len(batch), 1))
            how = {"threads": self._threads, "swept": self.cells}
            self.cells = sweep_all(
                self._task, swept, self.source, rankings, report=told, progress=progress, **how
            )
            first += len(batch)
            best = iter([ranking.best() for ranking in rankings])
            ranked = [self._ranked(own, [next(best) for _ in own]) for own in strands]
            del rankings
            hits = self._aligned(ranked)
            for own in ranked:
                pairs = chain.from_iterable(islice(hits, len(own.found.records)))
                yield QueryHits(own.strands[0], pairs)

    def _strands(self, query: SearchQuery) -> tuple[SearchQuery, ...]:
        """The query and, if that is asked for, its reverse complement."""
        if self._complements is None:
            return (query,)
        letters = reverse_complement(query.letters.decode("latin-1")).encode()
        codes = np.ascontiguousarray(self._complements[query.codes[::-1]])
        return query, search_query(query.name, letters, codes, self.scoring, self._columns)

    def _tie_rule(self, query: SearchQuery) -> Callable[..., NDArray[np.float64]]:
        """Sorts equal scores by E-value; that of a database of one residue sorts like that of any other."""
        statistics, size = self.statistics, query.codes.size
        if statistics is None:
            return no_tie_rule
        return lambda scores, lengths: statistics.evalue(scores, size, lengths, database_residues=1)

    def _ranked(self, strands: tuple[SearchQuery, ...], best: Sequence[Found]) -> _Ranked:
        found, turned = best[0], np.zeros(len(best[0].records), np.int64)
        if len(strands) > 1:
            found, turned = self._better(strands[0], best)
        if self.statistics is None or not len(found.records):
            return _Ranked(strands, turned, found, None, None)
        evalues = self._evalues(found.scores, strands[0], found.lengths)
        if self.settings.evalue is not None:
            good = np.flatnonzero(evalues <= self.settings.evalue)
            found, evalues, turned = found.take(good), evalues[good], turned[good]
        return _Ranked(strands, turned, found, self.statistics.bit_score(found.scores), evalues)

    def _better(self, query: SearchQuery, best: Sequence[Found]) -> tuple[Found, NDArray[np.int64]]:
        """The best targets of both strands, of each the better one, and which it is."""
        both = Found(*(np.concatenate(columns) for columns in zip(*best, strict=True)))
        turned = np.repeat([0, 1], [len(own.records) for own in best])
        order = np.lexsort((turned, -both.scores, both.records))
        order = order[np.diff(both.records[order], prepend=-1) != 0]
        found = both.take(order)
        ties = self._tie_rule(query)(found.scores, found.lengths)
        first = np.lexsort((found.records, ties, -found.scores))[: self.settings.top]
        return found.take(first), turned[order][first]

    def _evalues(self, scores: Any, query: SearchQuery, lengths: Any) -> NDArray[np.float64]:
        assert self.statistics is not None
        return self.statistics.evalue(
            scores,
            query.codes.size,
            lengths,
            database_residues=self.source.residues,
            database_sequences=self.source.sequences,
        )

    def _several(self, hit: _Hit, entry: Entry) -> list[AlignedPair]:
        """The best alignments of a query with one target, on all strands that are asked for."""
        settings = self.settings
        asked = SeveralBest(most=settings.hits_per_target, apart=0, min_score=settings.min_score or 1)
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
                evalue = float(self._evalues(score, query, np.array([hit.length]))[0])
                if settings.evalue is not None and evalue > settings.evalue:
                    break
                own = own._replace(bit_score=float(self.statistics.bit_score(score)[0]), evalue=evalue)
            pairs.append(self._pair(own, entry, alignment, rank))
        return pairs

    def _aligned(self, ranked: Sequence[_Ranked]) -> Iterator[list[AlignedPair]]:
        """What is found in each target, in order, groups of them read and aligned together."""
        every = _groups(_hits(ranked), _residues, _GROUP_HITS, _GROUP_RESIDUES)
        for hits in every:
            records = distinct(np.array([hit.record for hit in hits], np.int64))
            known = {entry.record: entry for entry in self.source.entries(records)}
            entries = [known[hit.record] for hit in hits]
            if self.settings.hits_per_target > 1:
                yield from map(self._several, hits, entries)
                continue
            alignments: Sequence[Alignment | None] = [None] * len(hits)
            if not self.settings.score_only:
                batch = PairBatch(
                    code_list([hit.query.codes for hit in hits]),
                    code_list([self._columns[entry.codes] for entry in entries]),
                )
                alignments = self._pairs.alignments(batch, self._pairs.results(batch, keep=True))
            for hit, entry, alignment in zip(hits, entries, alignments, strict=True):
                yield [self._pair(hit, entry, alignment)]

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
            mode="local",
            bit_score=hit.bit_score,
            evalue=hit.evalue,
            target_description=entry.description,
            target_record=entry.record,
            rank=rank,
            strand="+" if hit.query is hit.strands[0] else "-",
        )


def _by_query(report: _Report, first: int, strands: int) -> _Report:
    """Tells what is found of one of the strands as found of the query."""
    return lambda number, found: report(first + number // strands, found)


def _residues(hit: _Hit) -> int:
    return hit.length + hit.query.codes.size


def _hits(ranked: Sequence[_Ranked]) -> Iterator[_Hit]:
    for strands, turned, found, bit_scores, evalues in ranked:
        for k in range(len(found.records)):
            yield _Hit(
                strands[turned[k]],
                strands,
                int(found.records[k]),
                int(found.scores[k]),
                int(found.lengths[k]),
                None if bit_scores is None else float(bit_scores[k]),
                None if evalues is None else float(evalues[k]),
            )


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
    settings: SearchSettings | None = None,
    *,
    scores: bool = False,
    progress: Callable[[CellProgress], None] | None = None,
) -> SearchResult:
    """Search a database for the sequences that are most similar to each query.

    Every query is scored with every sequence (Smith and Waterman, J Mol Biol 147:195, 1981; no heuristics).
    Of each sequence one alignment is reported, a best one, or as many as `hits_per_target` says. The `top`
    best are kept, those with a larger E-value than `evalue` left out, and the others aligned. Hits are the
    same for any form of the database and any number of threads.

    `queries` are the path of a FASTA file, or names and sequences; `database` is a packed database or its
    path, or the path or paths of FASTA files, which are read once. Nucleotides are searched as they are, or
    with `strand` ``"both"`` on both strands. Bit scores and E-values are those of BLAST without
    composition-based statistics; where BLAST has no parameters for the scoring there are none, and a note
    says so. `scores` returns all scores, too, for up to 2^27 pairs; `progress` is called in this thread.
    `InvalidInput` if a setting or a letter is wrong, `FormatError` if a file is not what it should be.

    >>> from plait.align.database import pack_sequences
    >>> from plait.formats.fasta import Sequences
    >>> letters = np.frombuffer(b"MKVLAWMKTAYIAKQRQISF", np.uint8)
    >>> entries = Sequences(["a", "b"], ["", ""], letters, np.array([0, 6, 20]), np.array([1, 3]))
    >>> database = pack_sequences(entries, "example", kind="protein")
    >>> result = search([("q", "KTAYIARQRQ")], database)
    >>> [(hit.target_name, hit.score, hit.alignment.cigar) for hit in result.hits[0]]
    [('b', 46, '6=1X3=')]
    """
    run = SearchRun(database, settings or SearchSettings())
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
            writer.begin(query.name, query.codes.size)
            for pair in pairs:
                writer.write(pair)
            count += 1
    hits, source = writer.pairs if writer else 0, run.source
    return SearchSummary(count, hits, source.sequences, source.residues, run.cells, run.notes, run.provenance)
