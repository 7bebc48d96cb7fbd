"""Scores of many queries with all targets: what is swept at a time, and which targets are the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import PairBatch, PairSweep, against, block_query, code_list
from plait.align.results import Alignment
from plait.align.scoring import PAD_CODE, Scoring, free_ends_of
from plait.align.search_sources import LoneTarget, Source, TargetChunk, TargetPart, matrix_columns
from plait.devices.target import Target
from plait.dp.pairs.blocks import BLOCK_LANES, COLUMN_STEP, BlockBatch, SweepShape, TargetBlocks, sweep_shape
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.launches import BLOCK_SCORES
from plait.run.executor import LocalExecutor

#: Scores of targets that are waited for before they are sorted out.
_PENDING: Final = 1 << 12


class Found(NamedTuple):
    """Numbers of targets, their scores, and their lengths in residues; arrays of one length."""

    records: NDArray[np.int64]
    scores: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Found:
        """Some of them, by number or by mark."""
        return Found(self.records[which], self.scores[which], self.lengths[which])


#: No targets.
NOTHING: Final = Found(*(np.zeros(0, np.int64) for _ in range(3)))

#: Gives, for scores and lengths of targets, a number of which less is better.
TieRule = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]


def no_tie_rule(scores: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Equal scores are equally good."""
    return np.zeros(len(scores))


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values that there are, rising; `numpy.unique` loads much that nothing else here needs."""
    ordered = np.sort(values)
    found: NDArray[np.int64] = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return found


class Ranking:
    """The `most` best targets of one query, of those that score at least `least`.

    Highest score first, then what `tie_rule` says, then lowest number.
    """

    def __init__(self, most: int, least: int, tie_rule: TieRule = no_tie_rule) -> None:
        #: Lower scores need not be offered.
        self.floor = least
        self._most = most
        self._tie_rule = tie_rule
        self._kept = [NOTHING]
        self._size = 0

    def add(self, found: Found) -> None:
        """Offer some targets; of one that is offered again, the best score counts."""
        found = found.take(found.scores >= self.floor)
        self._kept.append(found)
        self._size += len(found.records)
        if self._size > self._most + _PENDING:
            self._sort_out()

    def records(self) -> NDArray[np.int64]:
        """Numbers of the best targets so far, in no order."""
        return self._sort_out().records

    def best(self) -> Found:
        """The best targets in order."""
        found = self._sort_out()
        order = np.lexsort((found.records, self._ties(found), -found.scores))
        return found.take(order)

    def _ties(self, found: Found) -> NDArray[np.float64]:
        # Asked once for equal arguments, which so give equal numbers wherever in an array they stand.
        pairs, where = np.unique(found.scores << 32 | found.lengths, return_inverse=True)
        return self._tie_rule(pairs >> 32, pairs & (1 << 32) - 1)[where]

    def _sort_out(self) -> Found:
        """Forget what cannot be among the best any more."""
        if len(self._kept) == 1:
            return self._kept[0]
        found = Found(*(np.concatenate(columns) for columns in zip(*self._kept, strict=True)))
        order = np.lexsort((-found.scores, found.records))
        found = found.take(order[np.diff(found.records[order], prepend=-1) != 0])
        over = len(found.records) - self._most
        if over > 0:
            self.floor = int(np.partition(found.scores, over)[over])
            above = np.flatnonzero(found.scores > self.floor)
            equal = np.flatnonzero(found.scores == self.floor)
            tied = found.take(equal)
            order = np.lexsort((tied.records, self._ties(tied)))
            found = found.take(np.concatenate([above, equal[order[: self._most - above.size]]]))
        self._kept, self._size = [found], len(found.records)
        return found


LOCAL: Final = free_ends_of("local")
#: Residues that are cut up at a time.
_STRETCH: Final = 1 << 22
#: Overlaps must be this much shorter than what is cut up, or a pair of its own takes less time.
_LEAST_RATIO: Final = 5


class Pieces(NamedTuple):
    """Scores of pieces, which start at `starts` in the target; all but the last have `size` residues."""

    starts: NDArray[np.int64]
    size: int
    scores: NDArray[np.int64]


def reach_of(query: BlockQuery, size: int) -> int | None:
    """Residues of a target of `size` that an alignment of positive score can span; None: better not cut."""
    if query.gap_extend < 1:
        return None
    earned = int(np.maximum(query.scores.max(axis=1), 0)[query.rows].sum(dtype=np.int64))
    reach = query.rows.size + max(earned - 1, 0) // query.gap_extend
    return reach if _LEAST_RATIO * reach <= min(size, _STRETCH) else None


def stretches(size: int, reach: int, times: int = 1) -> Iterator[tuple[int, int, int]]:
    """Stretches of ``times * 2**22`` residues to cut up one after the other; like pieces, they overlap.

    Yields start, end (exclusive), and residues that no stretch before has; `reach` is that of `reach_of`.
    """
    most = times * _STRETCH
    for start in range(0, size, most):
        own = min(most, size - start)
        yield start, min(start + own + reach, size), own


def score_pieces(query: BlockQuery, codes: NDArray[np.uint8], reach: int, target: Target) -> Pieces:
    """Local scores of a query with all pieces of a stretch; `reach` is that of `reach_of`.

    `codes` are the stretch, in codes that `query` has scores for.
    """
    # Several blocks only where the overlaps stay small beside the pieces.
    count = codes.size // max(_LEAST_RATIO * BLOCK_LANES * reach, 1)
    count = max(min(count, sweep_shape(target).piece_blocks), 1)
    step = -(-codes.size // (count * BLOCK_LANES))
    columns = -(-min(step + reach, codes.size) // COLUMN_STEP) * COLUMN_STEP
    padded = np.full(step * count * BLOCK_LANES + columns, PAD_CODE, np.uint8)
    padded[: codes.size] = codes
    starts = step * np.arange(count * BLOCK_LANES)
    shape, strides = (count, columns, BLOCK_LANES), (BLOCK_LANES * step, 1, step)
    across = np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)
    lengths = np.clip(codes.size - starts, 0, columns)
    blocks = TargetBlocks(
        np.ascontiguousarray(across).reshape(-1, BLOCK_LANES),
        columns * np.arange(count + 1),
        lengths.astype(np.int32).reshape(count, BLOCK_LANES),
    )
    scores = target.launch(BLOCK_SCORES, BlockBatch([query], blocks))[0].ravel()
    used = lengths > 0
    return Pieces(starts[used], columns, scores[used])


def align_long_target(
    pairs: PairSweep,
    in_lanes: BlockQuery,
    indices: NDArray[np.uint8],
    codes: NDArray[np.uint8],
    columns: NDArray[np.uint8],
    score: int,
) -> Alignment | None:
    """The local alignment of a query with a long target, found without sweeping all of it again pair-wise.

    `in_lanes` and `indices` are the query for lanes, and as indices into the matrix; `codes` are the target,
    in codes that the former has scores for, and `columns` the index into the matrix of each code; `score` is
    their best score, above 0. None if the target had better not be cut, or `score` is not reached.
    """
    reach = reach_of(in_lanes, codes.size)
    if reach is None:
        return None

    def aligned(first: int, last: int) -> Alignment:
        part = code_list([columns[codes[first:last]]])
        found = pairs.align_each(PairBatch(code_list([indices]), part))[0]
        return replace(found, target_start=found.target_start + first, target_end=found.target_end + first)

    ends = []
    for first, last, _ in stretches(codes.size, reach, sweep_shape(pairs.target).stretches):
        pieces = score_pieces(in_lanes, codes[first:last], reach, pairs.target)
        for start in pieces.starts[pieces.scores == score].tolist():
            found = aligned(first + start, min(first + start + pieces.size, last))
            ends.append((found.query_end, found.target_end))
    if not ends:
        return None
    # A piece may hold only some of the alignments that end there; this holds all of them.
    _, end = min(ends)
    return aligned(max(end - reach, 0), end)


#: Tasks of a piece of the database for each thread, at the least.
_TASKS: Final = 4
#: Residues of the longest query that is swept in lanes: a thread needs 128 bytes for each.
_LONGEST_IN_LANES: Final = 1 << 20


class SearchProgress(NamedTuple):
    """How far a search is; while FASTA files are read, `total_cells` is an estimate."""

    cells: int
    total_cells: int


@dataclass(frozen=True, slots=True, eq=False)
class SearchQuery:
    """A query, ready to be swept: `letters` as read, and `codes`, indices into the matrix.

    `in_lanes` is for targets in lanes; None if the query is empty, or too long for them.
    """

    name: str
    letters: bytes
    codes: NDArray[np.uint8]
    in_lanes: BlockQuery | None


def search_query(
    name: str, letters: bytes, codes: NDArray[np.uint8], scoring: Scoring, columns: NDArray[np.uint8]
) -> SearchQuery:
    """Prepare a query; `columns` are `plait.align.search_sources.matrix_columns` of the database."""
    fits = 0 < codes.size <= _LONGEST_IN_LANES
    return SearchQuery(name, letters, codes, block_query(codes, scoring, LOCAL, columns) if fits else None)


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """How to sweep: `most` targets of a query are wanted, `threads` tasks run at a time.

    `pairs` is what each of them uses, with one thread.
    """

    pairs: PairSweep
    most: int
    threads: int


class _Task(NamedTuple):
    """Some queries, and some targets of a chunk: in lanes, or one on its own; or neither."""

    queries: Sequence[int]
    part: TargetPart | None
    lone: LoneTarget | None
    #: Residues of the targets.
    residues: int
    #: Share of the database that ends with the chunk, cells of the chunk, whether it is done with this.
    share: float
    work: int
    last: bool


class _Done(NamedTuple):
    """What is worth offering of each query, and all that was found, if it is wanted."""

    task: _Task
    best: Sequence[Found]
    all: Sequence[Found]
    cells: int


def _shares(part: TargetPart, cells: int, rows: int) -> Iterator[TargetPart]:
    first_columns = part.blocks.first_columns
    step = max(cells // (BLOCK_LANES * max(rows, 1)), 1)
    first, blocks = 0, len(part.records)
    while first < blocks:
        last = int(np.searchsorted(first_columns, first_columns[first] + step, "right")) - 1
        last = min(max(last, first + 1), blocks)
        yield part.between(first, last)
        first = last


def _groups(queries: Sequence[SearchQuery], residues: int, shape: SweepShape) -> Iterator[list[int]]:
    """Numbers of the queries that are swept together; empty ones are not swept."""
    group: list[int] = []
    rows = 0
    for number, query in enumerate(queries):
        size = query.codes.size
        full = len(group) == shape.queries or (rows + size) * residues > shape.most_cells
        if group and (full or query.in_lanes is None):
            yield group
            group, rows = [], 0
        if query.in_lanes is not None:
            group.append(number)
            rows += size
        elif size:
            yield [number]
    if group:
        yield group


def _tasks(
    queries: Sequence[SearchQuery], chunks: Iterator[TargetChunk], shape: SweepShape, threads: int
) -> Iterator[_Task]:
    rows = [query.codes.size for query in queries]
    for chunk in chunks:
        columns = sum(part.columns for part in chunk.parts)
        cells = sum(rows) * BLOCK_LANES * columns // (_TASKS * threads)
        cells = min(max(cells, shape.least_cells), shape.most_cells)
        # The last task is known to be the last: it is told what to do once there is no other.
        task = _Task((), None, None, 0, chunk.share, sum(rows) * chunk.residues, False)
        for group in _groups(queries, chunk.residues, shape):
            for part in chunk.parts:
                for share in _shares(part, cells, sum(rows[number] for number in group)):
                    yield task
                    residues = int(share.blocks.lengths.sum(dtype=np.int64))
                    task = task._replace(queries=group, part=share, lone=None, residues=residues)
            for number in group:
                for lone in chunk.lone:
                    for stretch, residues in _stretches(queries[number], lone, shape.stretches):
                        yield task
                        task = task._replace(queries=[number], part=None, lone=stretch, residues=residues)
        yield task._replace(last=True)


def _stretches(query: SearchQuery, lone: LoneTarget, times: int) -> Iterator[tuple[LoneTarget, int]]:
    """A target in stretches, if it can be cut, each with the residues that no other has."""
    reach = None if query.in_lanes is None else reach_of(query.in_lanes, lone.length)
    if reach is None:
        yield lone, lone.length
        return
    for first, last, own in stretches(lone.length, reach, times):
        yield lone._replace(codes=lone.codes[first:last]), own


class _Worker:
    """Runs tasks, any number of them at a time."""

    def __init__(
        self,
        how: Sweep,
        queries: Sequence[SearchQuery],
        rankings: Sequence[Ranking],
        columns: NDArray[np.uint8],
        keep_all: bool,
    ) -> None:
        self._pairs = how.pairs
        self._most = how.most
        self._queries = queries
        self._rankings = rankings
        self._columns = columns
        self._keep_all = keep_all
        self.shape = sweep_shape(how.pairs.target)

    def run(self, task: _Task) -> _Done:
        queries = [self._queries[number] for number in task.queries]
        found: list[Found] = []
        if task.part is not None:
            found = self._in_lanes(queries, task.part)
        elif task.lone is not None:
            found = [self._lone(query, task.lone) for query in queries]
        best = [self._best(number, own) for number, own in zip(task.queries, found, strict=True)]
        rows = sum(query.codes.size for query in queries)
        return _Done(task, best, found if self._keep_all else (), task.residues * rows)

    def _best(self, query: int, found: Found) -> Found:
        # Others may raise the floor meanwhile; what is offered too much is left out later.
        least = self._rankings[query].floor
        good = found.scores[found.scores >= least]
        over = good.size - self._most
        if over > 0:
            least = np.partition(good, over)[over]
        return found.take(found.scores >= least)

    def _in_lanes(self, queries: Sequence[SearchQuery], part: TargetPart) -> list[Found]:
        packed, first_columns, lengths = part.blocks
        used = part.records >= 0
        if queries[0].in_lanes is None:
            blocks, lanes = np.nonzero(used)
            starts, sizes = first_columns[blocks], lengths[blocks, lanes]
            codes = [
                packed[start : start + size, lane]
                for start, size, lane in zip(starts.tolist(), sizes.tolist(), lanes.tolist(), strict=True)
            ]
            return [self._one_by_one(query, part.records[used], codes) for query in queries]
        in_lanes = [query.in_lanes for query in queries if query.in_lanes is not None]
        records, residues = part.records[used], lengths[used].astype(np.int64)
        return [
            Found(records, scores[used], residues)
            for scores in self._pairs.target.launch(BLOCK_SCORES, BlockBatch(in_lanes, part.blocks))
        ]

    def _lone(self, query: SearchQuery, lone: LoneTarget) -> Found:
        record = np.array([lone.record], np.int64)
        reach = None if query.in_lanes is None else reach_of(query.in_lanes, lone.length)
        if query.in_lanes is None or reach is None:
            return self._one_by_one(query, record, [lone.codes])
        pieces = score_pieces(query.in_lanes, lone.codes, reach, self._pairs.target)
        return Found(record, pieces.scores.max(keepdims=True), np.array([lone.length], np.int64))

    def _one_by_one(
        self, query: SearchQuery, records: NDArray[np.int64], codes: list[NDArray[np.uint8]]
    ) -> Found:
        targets = code_list([self._columns[own] for own in codes])
        results = self._pairs.results(against(query.codes, targets), keep=False)
        return Found(records, results.scores, targets.sizes)


def sweep_all(
    how: Sweep,
    queries: Sequence[SearchQuery],
    source: Source,
    rankings: Sequence[Ranking],
    *,
    report: Callable[[int, Found], None] | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
) -> int:
    """Sweep all queries against all targets, reading them once; returns the cells of all matrices.

    `rankings`, one of each query, are changed in place. `report` is called in this thread with the number of
    a query and the scores of some targets, until all are told; `progress`, too, in this thread.
    """
    columns = matrix_columns(how.pairs.scoring, source.kind)
    worker = _Worker(how, queries, rankings, columns, report is not None)
    shape = worker.shape
    threads = shape.tasks or how.threads
    executor = LocalExecutor(threads, waiting=shape.waiting * threads)
    cells, done, before = 0, 0, 0.0
    results = executor.map(worker.run, _tasks(queries, source.chunks(how.pairs.scoring), shape, threads))
    with closing(results):
        for task, best, found, size in results:
            for number, own in zip(task.queries, best, strict=True):
                if len(own.records):
                    rankings[number].add(own)
            if report is not None:
                for number, own in zip(task.queries, found, strict=True):
                    report(number, own)
            cells, done = cells + size, done + size
            if progress is not None:
                share = before + (task.share - before) * min(done / max(task.work, 1), 1.0)
                progress(SearchProgress(cells, max(round(cells / share), cells) if share else 0))
            if task.last:
                wanted = [NOTHING.records, *(ranking.records() for ranking in rankings)]
                source.keep(distinct(np.concatenate(wanted)))
                done, before = 0, task.share
    return cells
