"""Pairs of sequences as codes, and what serves which: lists, one long pair, a query against many targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.align.letters import PAD_CODE
from plait.align.results import Alignment, Alignments, join_alignments, make_alignment, make_alignments
from plait.align.scoring import NO_CODE, Scoring
from plait.align.settings import SeveralBest
from plait.alphabets import COMPLEMENT_LETTER
from plait.devices.target import CpuTarget, Target, interpreted, over_threads
from plait.dp.bitparallel.edit_lists import EDIT_LIST
from plait.dp.bitparallel.edits import EditScale, edit_batch, edit_bytes, unit_costs
from plait.dp.pairs.blocks import (
    BLOCK_LANES,
    COLUMN_STEP,
    TOO_HIGH,
    BlockBatch,
    TargetBlocks,
    gap_cost,
    pack_kernel,
    pack_texts,
    sweep_shape,
)
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.kbest import KBest, Ranks, wide_setup
from plait.dp.pairs.launches import (
    BLOCK_SCORES,
    K_BEST,
    LONG_ALIGNMENT,
    LONG_SCORE,
    PAIR_LIST,
)
from plait.dp.pairs.lists import (
    FreeEnds,
    ListBatch,
    PairList,
    PairResults,
    choice_bytes,
    few_letters,
    looked_up,
    make_setup,
)
from plait.dp.pairs.paths import Paths
from plait.dp.pairs.tiles import CHOICES_OF_A_TILE, LongPair
from plait.dp.pairs.traceback import Costs
from plait.errors import InvalidInput
from plait.lang.lanes import host_lanes

#: Cells from which a single pair is cut into tiles, so that threads share it.
_TILED_CELLS = 1 << 26
#: Cells from which one thread cuts a pair too: their choices, half a byte each, are those of a tile.
_LARGEST_WHOLE = 2 * CHOICES_OF_A_TILE
#: Cells from which it pays to cut a long target into pieces, each of which has a lane.
_LEAST_IN_LANES = 1 << 24
#: and how much longer it has to be than an alignment can be.
_FEWEST_PIECES = 64
#: Targets from which it pays to give each a lane.
_FEWEST_TARGETS = 16
#: Bytes for one pair of unit costs; most of them are only touched where a pair has little in common.
_MOST_FOR_EDITS = 1 << 31
#: Bytes of packed targets at a time.
_MOST_PACKED = 1 << 28

_Progress = Callable[[int], None]
_Two = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class CodeList:
    """Sequences as codes: `codes` (residues,), one after the other; `starts` (n + 1,), offsets into it."""

    codes: NDArray[np.uint8]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return self.starts.size - 1

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        return self.codes[self.starts[index] : self.starts[index + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Residues of each, int64, shape (n,)."""
        return np.diff(self.starts)

    def take(self, indices: NDArray[np.int64]) -> CodeList:
        """Some of the sequences, in any order; neighbours without a copy."""
        if indices.size and np.array_equal(indices, np.arange(indices[0], indices[0] + indices.size)):
            return self.between(int(indices[0]), int(indices[-1]) + 1)
        return code_list([self[int(k)] for k in indices])

    def between(self, first: int, last: int) -> CodeList:
        """The sequences `first` to `last`, exclusive, without a copy."""
        start, end = self.starts[first], self.starts[last]
        return CodeList(self.codes[start:end], self.starts[first : last + 1] - start)


def code_list(sequences: Sequence[NDArray[np.uint8]]) -> CodeList:
    """Sequences that are codes already."""
    starts = np.zeros(len(sequences) + 1, np.int64)
    np.cumsum([sequence.size for sequence in sequences], out=starts[1:])
    return CodeList(np.concatenate([np.zeros(0, np.uint8), *sequences]), starts)


def join_codes(parts: Sequence[CodeList]) -> CodeList:
    """The sequences of all parts, one part behind the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([part.sizes for part in parts])
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return CodeList(np.concatenate([part.codes for part in parts]), starts)


@dataclass(frozen=True, slots=True, eq=False)
class PairBatch:
    """Pairs: the first query with the first target, and so on; as many of each."""

    queries: CodeList
    targets: CodeList

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
        return ((self.queries[k], self.targets[k]) for k in range(len(self)))

    @property
    def cells(self) -> NDArray[np.int64]:
        """Cells of the matrix of each pair, int64, shape (pairs,)."""
        return self.queries.sizes * self.targets.sizes

    def only(self, pairs: NDArray[np.int64]) -> PairBatch:
        """Some of the pairs."""
        return PairBatch(self.queries.take(pairs), self.targets.take(pairs))


class CellProgress(NamedTuple):
    """How far a run is: cells visited, and cells of all pairs; of FASTA files that are read, an estimate."""

    cells: int
    total_cells: int


def complement_codes(scoring: Scoring) -> NDArray[np.uint8]:
    """The code of the complement of each code of a matrix; `InvalidInput` if one has none."""
    matrix = scoring.matrix
    letters = np.frombuffer(matrix.letters.upper().encode(), np.uint8)
    codes: NDArray[np.uint8] = matrix.codes[COMPLEMENT_LETTER[letters]]
    if matrix.kind != "dna" or (codes >= letters.size).any():
        found = f"both, with {matrix.name}"
        raise InvalidInput("strand", found=found, expected="a matrix of nucleotides and their complements")
    return codes


def ignore_progress(cells: int) -> None:
    """Nobody watches."""


def _with_empty(batch: PairBatch, scoring: Scoring, free: FreeEnds, results: PairResults) -> None:
    """Fill in the pairs of which a sequence is empty: the other is a gap, or left out."""
    rows, columns = batch.queries.sizes, batch.targets.sizes
    empty = (rows == 0) | (columns == 0)
    anywhere = bool(free.anywhere)
    query_gap = 0 if anywhere or free.query_start or free.query_end else 1
    target_gap = 0 if anywhere or free.target_start or free.target_end else 1
    results.scores[empty] = -(query_gap * gap_cost(scoring, rows) + target_gap * gap_cost(scoring, columns))[
        empty
    ]
    # What is left out lies before the alignment if the start is free, else behind it.
    for residues, gap, at_start, k in (
        (rows, query_gap, free.query_start and not free.query_end, 0),
        (columns, target_gap, free.target_start and not free.target_end, 2),
    ):
        results.ends[empty, k] = (residues if at_start and not gap else 0 * residues)[empty]
        results.ends[empty, k + 1] = (residues if gap or at_start else 0 * residues)[empty]


def _runs_of_empty(batch: PairBatch, results: PairResults) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The runs of all pairs, with those that pairs with an empty sequence have."""
    rows, columns = batch.queries.sizes, batch.targets.sizes
    counts = results.run_counts.copy()
    insertions = np.where(columns == 0, results.ends[:, 1] - results.ends[:, 0], 0)
    deletions = np.where(rows == 0, results.ends[:, 3] - results.ends[:, 2], 0)
    extra = np.flatnonzero(insertions + deletions)
    if not extra.size:
        return results.runs, counts
    before = np.cumsum(counts) - counts
    own = np.stack([np.where(insertions[extra] > 0, 2, 1), (insertions + deletions)[extra]], axis=1)
    counts[extra] = 1
    return np.insert(results.runs, before[extra], own, axis=0), counts


def block_query(
    query: NDArray[np.uint8],
    scoring: Scoring,
    free: FreeEnds,
    columns: NDArray[np.uint8] | None = None,
) -> BlockQuery:
    """A query, as uint8 codes, made ready for targets in lanes.

    `columns` has the index into the matrix for each code of the targets; by default they are such indices
    themselves. Codes that the matrix lacks must not occur.
    """
    letters, place = few_letters(query)
    scores = scoring.matrix.scores[letters]
    if columns is not None:
        scores = scores[:, np.where(columns == NO_CODE, 0, columns)]
    rows = looked_up(query, place).astype(np.int64)
    return BlockQuery(rows, scores, scoring.gap_open, scoring.gap_extend, free)


def _stretches(sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Stretches of targets that can be packed together."""
    if int(sizes.sum()) + BLOCK_LANES * int(sizes.max(initial=0)) <= _MOST_PACKED:
        return [(0, sizes.size)]
    found, first, residues, longest = [], 0, 0, 0
    for k, size in enumerate(sizes.tolist()):
        residues, longest = residues + size, max(longest, size)
        if residues + BLOCK_LANES * longest > _MOST_PACKED and k > first:
            found.append((first, k))
            first, residues, longest = k, size, size
    return [*found, (first, sizes.size)]


def against(query: NDArray[np.uint8], targets: CodeList) -> PairBatch:
    """A query, as codes, with each of many targets."""
    count = len(targets)
    return PairBatch(CodeList(np.tile(query, count), query.size * np.arange(count + 1)), targets)


def _by_query(
    batch: PairBatch,
    many: Callable[..., Any],
    few: Callable[[PairBatch], Any],
    join: Callable[[list[Any], NDArray[np.int64]], Any],
    alike: bool,
) -> Any:
    """Results of all pairs: queries that occur often against all their targets, the others pair by pair.

    `join` puts the results of several batches together, and picks from them in an order. `alike`: pair by
    pair is best for all.
    """
    groups: dict[bytes, list[int]] = {}
    if len(batch) >= _FEWEST_TARGETS and not alike:
        whole = batch.queries.codes.tobytes()
        own = [whole[start:end] for start, end in pairwise(batch.queries.starts.tolist())]
        groups = {query: [] for query, count in Counter(own).items() if count >= _FEWEST_TARGETS}
        for k in (k for k, query in enumerate(own) if query in groups) if groups else ():
            groups[own[k]].append(k)
    often = [np.array(pairs) for pairs in groups.values()]
    if not often:
        return few(batch)
    rest = np.setdiff1d(np.arange(len(batch)), np.concatenate(often))
    parts = [*often, rest] if rest.size else often
    results = [
        few(batch.only(pairs)) if pairs is rest else many(batch.queries[pairs[0]], batch.only(pairs).targets)
        for pairs in parts
    ]
    return join(results, np.argsort(np.concatenate(parts)))


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
    """Residues of a target of `size` that the best alignment can span; None: it cannot be cut, or better not.

    Of local alignments that is one of positive score; of others, all of the query, with free ends of the
    target, one no worse than the query in a gap.
    """
    free = query.free
    inside = free.target_start and free.target_end and not (free.query_start or free.query_end)
    if query.gap_extend < 1 or not (free.local or inside):
        return None
    least = 1 if free.local else -int(gap_cost(query, np.array(query.rows.size)))
    earned = int(np.maximum(query.scores.max(axis=1), 0)[query.rows].sum(dtype=np.int64))
    reach = query.rows.size + max(earned - least, 0) // query.gap_extend
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
    """Scores of a query with all pieces of a stretch; `reach` is that of `reach_of`.

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
    # Pieces of which a score does not fit narrow lanes are cut again, if that makes them much shorter.
    sure = columns < 4 * reach
    scores = target.launch(BLOCK_SCORES, BlockBatch([query], blocks, sure=sure))[0].ravel()
    used = lengths > 0
    for piece in np.flatnonzero(used & (scores == TOO_HIGH)).tolist():
        first = starts[piece]
        scores[piece] = score_pieces(query, codes[first : first + columns], reach, target).scores.max()
    return Pieces(starts[used], columns, scores[used])


@dataclass(frozen=True, kw_only=True)
class PairSweep:
    """How pairs of codes of the matrix of `scoring` are swept; `free` says what may be left out.

    `progress` of its methods is called with numbers of cells that are done.
    """

    scoring: Scoring
    free: FreeEnds
    target: Target

    @property
    def interpreted(self) -> bool:
        """Whether no compiled code is to run."""
        return self.target.name == "reference"

    @cached_property
    def _scales(self) -> dict[int, EditScale | None]:
        """What `unit_costs` has found."""
        return {}

    def _task(self, queries: CodeList, targets: CodeList) -> PairList:
        scoring = self.scoring
        costs = scoring.matrix.scores, scoring.gap_open, scoring.gap_extend
        return PairList(queries.codes, queries.starts, targets.codes, targets.starts, *costs, self.free)

    def _long(self, batch: PairBatch, progress: _Progress) -> LongPair:
        task = self._task(batch.queries, batch.targets)
        costs = Costs(task.query, task.target, task.matrix, task.gap_open, task.gap_extend, self.free.local)
        return LongPair(make_setup(task, keep=False), costs, self.free, progress)

    def results(
        self, batch: PairBatch, keep: bool, progress: _Progress = ignore_progress, tiled: bool = True
    ) -> PairResults:
        """Scores and ends of all pairs, and runs if they are to be kept, in order; large pairs in tiles."""
        pairs, target = len(batch), self.target
        simple = self._edits(batch, keep)
        cells = batch.cells
        if simple is not None and simple[0].size == pairs:
            progress(int(cells.sum()))
            return simple[1]
        scores, ends = np.zeros(pairs, np.int64), np.zeros((pairs, 4), np.int64)
        counts = np.zeros(pairs, np.int64)
        most = _TILED_CELLS if target.threads > 1 or target.devices else _LARGEST_WHOLE
        large = cells >= (most if tiled else np.iinfo(np.int64).max)
        pieces: dict[int, NDArray[np.int64]] = {}

        def take(which: NDArray[np.int64], found: PairResults) -> None:
            scores[which], ends[which], counts[which] = found.scores, found.ends, found.run_counts
            for k, part in zip(which, np.split(found.runs, np.cumsum(found.run_counts)[:-1]), strict=True):
                pieces[int(k)] = part
            large[which], cells[which] = False, 0

        if simple is not None:
            progress(int(cells[simple[0]].sum()))
            take(*simple)
        in_lanes = (cells >= _LEAST_IN_LANES) & tiled
        for k in np.flatnonzero(in_lanes).tolist():
            own = self._along_text(batch.queries[k], batch.targets[k], keep, progress)
            if own is not None:
                take(np.array([k]), own)
        small = np.flatnonzero((cells > 0) & ~large)
        if small.size:
            chosen = batch if small.size == pairs else batch.only(small)
            task = self._task(chosen.queries, chosen.targets)
            found = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=keep), task, host_lanes(8)))
            progress(int(cells[small].sum()))
            if small.size == pairs:
                return found
            take(small, found)
        for k in np.flatnonzero(large).tolist():
            take(np.array([k]), self._in_tiles(batch.only(np.array([k])), keep, progress))
        runs = np.concatenate([np.zeros((0, 2), np.int64), *(pieces[k] for k in sorted(pieces))])
        results = PairResults(scores, ends, runs, counts)
        _with_empty(batch, self.scoring, self.free, results)
        return results

    def _in_tiles(self, batch: PairBatch, keep: bool, progress: _Progress) -> PairResults:
        """The alignment of one long pair."""
        long, start, runs = self._long(batch, progress), np.full(2, -1), np.zeros((0, 2), np.int64)
        if keep:
            best, start, runs = self.target.launch(LONG_ALIGNMENT, long)
        else:
            best = self.target.launch(LONG_SCORE, long)
        ends = np.stack([start + 1, best[1:] + 1], axis=1).reshape(1, 4)
        return PairResults(best[:1], ends, runs, np.array([len(runs)]))

    def _unit_costs(self, batch: PairBatch) -> bool:
        """Whether all scores are distances of unit costs, which are found faster."""
        task = self._task(batch.queries, batch.targets)
        scale = unit_costs(task, self._scales, interpreted=self.interpreted)
        return not self.target.devices and scale is not None

    def _edits(self, batch: PairBatch, keep: bool) -> tuple[NDArray[np.int64], PairResults] | None:
        """Which pairs have scores that are distances of unit costs and fit the memory, and what of them."""
        task = self._task(batch.queries, batch.targets)
        scale = unit_costs(task, self._scales, interpreted=self.interpreted)
        if scale is None:
            return None
        rows, columns = batch.queries.sizes, batch.targets.sizes
        fits = (edit_bytes(rows, columns) <= _MOST_FOR_EDITS) & (rows > 0) & (columns > 0)
        if self.target.devices:
            fits &= rows * columns < _TILED_CELLS
        which = np.flatnonzero(fits)
        if not which.size:
            return None
        if which.size < len(batch):
            batch = batch.only(which)
            task = self._task(batch.queries, batch.targets)
        edits = edit_batch(task, keep, interpreted=self.interpreted)
        found = self.target.launch(EDIT_LIST, edits)
        residues = (rows + columns)[which]
        return which, found._replace(scores=(scale.both * residues - scale.unit * found.scores) // 2)

    def _along_text(
        self, query: NDArray[np.uint8], text: NDArray[np.uint8], keep: bool, progress: _Progress
    ) -> PairResults | None:
        """The alignment with a text so long that pieces of it, in lanes, are swept much faster."""
        free = self.free
        # Pieces do not end where the text does: what is left out of the query there is looked at apart.
        own = block_query(query, self.scoring, free._replace(query_start=False, query_end=False))
        reach = reach_of(own, text.size) if text.size >= _FEWEST_PIECES * query.size else None
        if reach is None or text.size < _FEWEST_PIECES * reach:
            return None
        shape, target = sweep_shape(self.target), self.target
        single = target if target.devices or target.threads == 1 else CpuTarget(1)

        def run(stretch: tuple[int, int, int]) -> Pieces:
            first, last, residues = stretch
            found = score_pieces(own, text[first:last], reach, single)
            progress(residues * query.size)
            return found._replace(starts=found.starts + first)

        parts = list(stretches(text.size, reach, shape.stretches))
        swept = over_threads(1 if target.devices else target.threads, parts, run)
        best = max(int(pieces.scores.max()) for pieces in swept)

        def of_part(first: int, last: int, kept: bool) -> PairResults:
            batch = PairBatch(code_list([query]), code_list([text[first:last]]))
            at_start, at_end = free.query_start and not first, free.query_end and last == text.size
            ends = free._replace(query_start=at_start, query_end=at_end)
            sweep = PairSweep(scoring=self.scoring, free=ends, target=self.target)
            found = sweep.results(batch, kept, tiled=False)
            found.ends[:, 2:] += first
            return found

        places = [
            (start, min(start + pieces.size, text.size))
            for pieces in swept
            for start in pieces.starts[pieces.scores == best].tolist()
        ]
        if not free.local:
            # All end with the query, and the first piece has the first end.
            places = [*places[:1], (0, reach), (max(text.size - reach, 0), text.size)]
        elif not best:
            places = [(0, 1)]
        found = [of_part(*place, False) for place in places]
        first = min(found, key=lambda own: (-own.scores[0], *own.ends[0, [1, 3]]))
        # A piece may hold only some of the alignments that end there; this holds all of them.
        end = int(first.ends[0, 3])
        return of_part(max(end - reach, 0), max(end, 1), True) if keep else first

    def alignments(self, batch: PairBatch, results: PairResults) -> Alignments:
        """What `results` with runs say of the pairs."""
        runs, counts = _runs_of_empty(batch, results)
        starts = (batch.queries.starts[:-1], batch.targets.starts[:-1])
        return self._made((batch.queries.codes, batch.targets.codes), starts, results, runs, counts)

    def _made(
        self,
        codes: _Two,
        starts: _Two,
        results: PairResults,
        runs: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> Alignments:
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        ends, matrix = (results.ends[:, 1], results.ends[:, 3]), self.scoring.matrix.scores
        paths = Paths(*codes, *starts, *ends, matrix, runs, offsets)
        return make_alignments(paths, self.scoring, results.scores, interpreted=self.interpreted)

    def align_each(
        self, batch: PairBatch, progress: _Progress = ignore_progress, tiled: bool = True
    ) -> Alignments:
        """A best alignment of every pair, each swept by itself, large ones cut into tiles if `tiled`."""
        return self.alignments(batch, self.results(batch, True, progress, tiled))

    def align_long(self, batch: PairBatch, progress: _Progress = ignore_progress) -> Alignment:
        """A best alignment of one pair, of which no sequence is empty, tile by tile."""
        best, _, runs = self.target.launch(LONG_ALIGNMENT, self._long(batch, progress))
        score, row, column = (int(value) for value in best)
        path = (*(batch.queries.codes, batch.targets.codes), self.scoring, score, row + 1, column + 1, runs)
        return make_alignment(*path, interpreted=self.interpreted)

    def best_of_pair(
        self,
        batch: PairBatch,
        asked: SeveralBest,
        progress: _Progress = ignore_progress,
        ranks: Ranks | None = None,
    ) -> Alignments:
        """The best local alignments of one pair, best first; all `ranks` ask, and share the matrix."""
        if not batch.cells[0]:
            return Alignments()
        task = self._task(batch.queries, batch.targets)
        long = self._long(batch, progress)
        which = asked.most, asked.min_score, asked.apart
        found = self.target.launch(K_BEST, KBest(long, wide_setup(task), *which, ranks))
        none = np.zeros(len(found), np.int64)
        ends = np.array([(0, path.row + 1, 0, path.column + 1) for path in found], np.int64).reshape(-1, 4)
        runs = np.concatenate([np.zeros((0, 2), np.int64), *(path.runs for path in found)])
        counts = np.array([len(path.runs) for path in found], np.int64)
        results = PairResults(np.array([path.score for path in found], np.int64), ends, runs, counts)
        codes = batch.queries.codes, batch.targets.codes
        return self._made(codes, (none, none), results, runs, counts)

    def choice_bytes(self, batch: PairBatch) -> int:
        """Bytes of the choices (for the traceback) of the largest pair, if all were kept at once."""
        # The letters do not matter for that, and they are many.
        none = np.zeros(0, np.uint8)
        task: Any = self._task(batch.queries, batch.targets)._replace(query=none, target=none)
        setup = make_setup(task, keep=True)
        sizes = zip(batch.queries.sizes.tolist(), batch.targets.sizes.tolist(), strict=True)
        return max((choice_bytes(setup, *pair) for pair in sizes), default=0)

    def score_many(
        self, query: NDArray[np.uint8], targets: CodeList, progress: _Progress = ignore_progress
    ) -> NDArray[np.int64]:
        """Best score of one query with each of many targets, shape (targets,)."""
        longest, pairs = int(targets.sizes.max(initial=0)), against(query, targets)
        few = not query.size or len(targets) < _FEWEST_TARGETS
        if few or longest * BLOCK_LANES > _MOST_PACKED or self._unit_costs(pairs):
            return np.asarray(self.results(pairs, False, progress).scores)
        scores = np.zeros(len(targets), np.int64)
        own = block_query(query, self.scoring, self.free)
        for first, last in _stretches(targets.sizes):
            part = targets.between(first, last)
            pack = interpreted(pack_kernel) if self.interpreted else pack_kernel
            blocks, order = pack_texts(part.codes, part.starts[:-1], part.sizes, pack)
            batch = BlockBatch([own], blocks, progress, self.target.threads)
            (found,) = self.target.launch(BLOCK_SCORES, batch)
            scores[first + order] = found.ravel()[: len(part)]
        return scores

    def align_many(
        self, query: NDArray[np.uint8], targets: CodeList, progress: _Progress = ignore_progress
    ) -> Alignments:
        """A best alignment of one query with each of many targets."""
        return self.align_each(against(query, targets), progress)

    def score_codes(self, batch: PairBatch, progress: _Progress = ignore_progress) -> NDArray[np.int64]:
        """Best scores of pairs; a query that occurs often is scored with all its targets at once."""
        found = _by_query(
            batch,
            lambda query, own: self.score_many(query, own, progress),
            lambda rest: self.results(rest, False, progress).scores,
            lambda parts, order: np.concatenate(parts)[order],
            self._unit_costs(batch),
        )
        return np.asarray(found, np.int64)

    def align_codes(self, batch: PairBatch, progress: _Progress = ignore_progress) -> Alignments:
        """A best alignment of every pair; a query that occurs often meets all its targets at once."""
        found: Alignments = _by_query(
            batch,
            lambda query, own: self.align_many(query, own, progress),
            lambda rest: self.align_each(rest, progress),
            lambda parts, order: join_alignments(parts).take(order),
            self._unit_costs(batch),
        )
        return found
