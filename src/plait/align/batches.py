"""Which schedule serves which pairs: lists of pairs, one long pair, and one query against many targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.align.codes import CodeList, PairBatch, code_list
from plait.align.matrices import NO_CODE
from plait.align.results import Alignment, make_alignment, make_alignments
from plait.align.scoring import Scoring
from plait.devices.choice import resolve
from plait.devices.target import Target
from plait.dp.pairs.blocks import BLOCK_LANES, TargetBlocks, arrange, packed_columns, trace_bytes
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.launches import (
    BLOCK_SCORES,
    BLOCK_TRACES,
    CHOICES_OF_A_TILE,
    LONG_ALIGNMENT,
    LONG_SCORE,
    PAIR_LIST,
    BlockBatch,
    ListBatch,
    LongBatch,
    TraceBatch,
)
from plait.dp.pairs.lists import FreeEnds, PairList, PairResults, choice_bytes, make_setup
from plait.dp.pairs.paths import Paths
from plait.dp.pairs.traceback import Costs

#: Cells from which a single pair is cut into tiles, so that threads share it.
_TILED_CELLS = 1 << 26
#: Cells from which one thread cuts a pair too: their choices, half a byte each, are those of a tile.
_LARGEST_WHOLE = 2 * CHOICES_OF_A_TILE


def choose_target(device: str = "auto", threads: int | None = None) -> Target:
    """The target of a name, one of `plait.devices.choice.DEVICES`; threads by default those of the settings.

    `InvalidInput` if there is no such name or number of threads, `TargetUnavailable` if CUDA is asked for and
    cannot be used.
    """
    return resolve(device, threads)


def ignore_progress(cells: int) -> None:
    """Nobody watches."""


def _gap_cost(scoring: Scoring, residues: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(residues > 0, scoring.gap_open + (residues - 1) * scoring.gap_extend, 0)


def _task(batch: PairBatch, scoring: Scoring, free: FreeEnds) -> PairList:
    return PairList(
        batch.queries.codes,
        batch.queries.starts,
        batch.targets.codes,
        batch.targets.starts,
        scoring.matrix.scores,
        scoring.gap_open,
        scoring.gap_extend,
        free,
    )


def _long_batch(
    batch: PairBatch, scoring: Scoring, free: FreeEnds, progress: Callable[[int], None]
) -> LongBatch:
    task = _task(batch, scoring, free)
    costs = Costs(task.query, task.target, task.matrix, task.gap_open, task.gap_extend, free.local)
    return LongBatch(make_setup(task, keep=False), costs, free, progress)


def _with_empty(batch: PairBatch, scoring: Scoring, free: FreeEnds, results: PairResults) -> None:
    """Fill in the pairs of which a sequence is empty: the other is a gap, or left out."""
    rows, columns = batch.queries.sizes, batch.targets.sizes
    empty = (rows == 0) | (columns == 0)
    anywhere = bool(free.anywhere)
    query_gap = 0 if anywhere or free.query_start or free.query_end else 1
    target_gap = 0 if anywhere or free.target_start or free.target_end else 1
    results.scores[empty] = -(
        query_gap * _gap_cost(scoring, rows) + target_gap * _gap_cost(scoring, columns)
    )[empty]
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


def _sweep(
    batch: PairBatch,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    keep: bool,
    progress: Callable[[int], None],
    tiled: bool = True,
) -> PairResults:
    """Scores, ends and runs of all pairs, in order."""
    pairs = len(batch)
    scores, ends = np.zeros(pairs, np.int64), np.zeros((pairs, 4), np.int64)
    counts = np.zeros(pairs, np.int64)
    cells = batch.cells
    most = _TILED_CELLS if target.threads > 1 or target.devices else _LARGEST_WHOLE
    large = cells >= (most if tiled else np.iinfo(np.int64).max)
    pieces: dict[int, NDArray[np.int64]] = {}
    small = np.flatnonzero((cells > 0) & ~large)
    if small.size:
        chosen = batch if small.size == pairs else batch.only(small)
        task = _task(chosen, scoring, free)
        found = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=keep), task))
        scores[small], ends[small], counts[small] = found.scores, found.ends, found.run_counts
        progress(int(cells[small].sum()))
        if small.size == pairs:
            return PairResults(scores, ends, found.runs, counts)
        for p, part in zip(small, np.split(found.runs, np.cumsum(found.run_counts)[:-1]), strict=True):
            pieces[int(p)] = part
    for p in np.flatnonzero(large):
        one = _long_batch(batch.only(np.array([p])), scoring, free, progress)
        if keep:
            best, start, runs = target.launch(LONG_ALIGNMENT, one)
            ends[p, ::2] = start + 1
            pieces[int(p)], counts[p] = runs, len(runs)
        else:
            best = target.launch(LONG_SCORE, one)
        scores[p] = best[0]
        ends[p, 1::2] = best[1:] + 1
    runs = np.concatenate([np.zeros((0, 2), np.int64), *(pieces[p] for p in sorted(pieces))])
    results = PairResults(scores, ends, runs, counts)
    _with_empty(batch, scoring, free, results)
    return results


def score_batch(
    batch: PairBatch,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: Callable[[int], None] = ignore_progress,
) -> NDArray[np.int64]:
    """Best scores of all pairs.

    `batch` holds codes of the matrix of `scoring`, `free` says what may be left out, and `progress` is called
    with numbers of cells that are done.
    """
    scores: NDArray[np.int64] = _sweep(batch, scoring, free, target, False, progress).scores
    return scores


def align_batch(
    batch: PairBatch,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: Callable[[int], None] = ignore_progress,
    *,
    tiled: bool = True,
) -> list[Alignment]:
    """A best alignment of every pair, large ones cut into tiles if `tiled`; the rest as for `score_batch`."""
    results = _sweep(batch, scoring, free, target, True, progress, tiled)
    runs, counts = _runs_of_empty(batch, results)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    starts = (batch.queries.starts[:-1], batch.targets.starts[:-1])
    ends = (results.ends[:, 1], results.ends[:, 3])
    codes = (batch.queries.codes, batch.targets.codes)
    paths = Paths(*codes, *starts, *ends, scoring.matrix.scores, runs, offsets)
    return make_alignments(paths, scoring, results.scores)


def align_long_pair(
    batch: PairBatch,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: Callable[[int], None] = ignore_progress,
) -> Alignment:
    """A best alignment of one pair, of which no sequence is empty, tile by tile.

    The rest as for `score_batch`.
    """
    best, _, runs = target.launch(LONG_ALIGNMENT, _long_batch(batch, scoring, free, progress))
    score, row, column = (int(value) for value in best)
    return make_alignment(batch.queries.codes, batch.targets.codes, scoring, score, row + 1, column + 1, runs)


def needs_bytes(batch: PairBatch, scoring: Scoring, free: FreeEnds) -> int:
    """Bytes of the choices (for the traceback) of the largest pair, if all were kept at once."""
    # The letters do not matter for that, and they are many.
    none = np.zeros(0, np.uint8)
    task: Any = _task(batch, scoring, free)._replace(query=none, target=none)
    rows, columns = batch.queries.sizes, batch.targets.sizes
    setup = make_setup(task, keep=True)
    return max((choice_bytes(setup, int(m), int(n)) for m, n in zip(rows, columns, strict=True)), default=0)


#: Targets from which it pays to give each a lane.
_FEWEST_TARGETS = 16
#: Bytes of choices of a group of targets.
_MOST_CHOICES = 1 << 26
#: Columns of a block that are put together at a time.
_MOST_COLUMNS = 1 << 16
#: Bytes of packed targets at a time.
_MOST_PACKED = 1 << 28

_Progress = Callable[[int], None]


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
    letters, rows = np.unique(query, return_inverse=True)
    scores = scoring.matrix.scores[letters]
    if columns is not None:
        scores = scores[:, np.where(columns == NO_CODE, 0, columns)]
    return BlockQuery(rows.astype(np.int64), scores, scoring.gap_open, scoring.gap_extend, free)


def _packed(targets: CodeList) -> tuple[TargetBlocks, NDArray[np.int64]]:
    """Targets in blocks, and the place of each."""
    layout = arrange(targets.sizes)
    order = layout.order[: len(targets)]
    packed = np.empty((int(layout.first_columns[-1]), BLOCK_LANES), np.uint8)
    first = 0
    blocks = range(len(layout.lengths))
    for columns in packed_columns(
        targets.codes.tobytes(), targets.starts[order], layout, blocks, _MOST_COLUMNS
    ):
        packed[first : first + len(columns)] = columns
        first += len(columns)
    return TargetBlocks(packed, layout.first_columns, layout.lengths), order


def _stretches(sizes: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Stretches of targets that can be packed together."""
    found, first, residues, longest = [], 0, 0, 0
    for k, size in enumerate(sizes.tolist()):
        residues, longest = residues + size, max(longest, size)
        if residues + BLOCK_LANES * longest > _MOST_PACKED and k > first:
            found.append((first, k))
            first, residues, longest = k, size, size
    return [*found, (first, sizes.size)]


def against(query: NDArray[np.uint8], targets: CodeList) -> PairBatch:
    """A query, as codes, with each of many targets."""
    return PairBatch(code_list([query] * len(targets)), targets)


def score_many_codes(
    query: NDArray[np.uint8],
    targets: CodeList,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: _Progress = ignore_progress,
) -> NDArray[np.int64]:
    """Best score of a query, uint8 codes, with each of many targets; the rest as for `score_batch`."""
    longest = int(targets.sizes.max(initial=0))
    if not query.size or len(targets) < _FEWEST_TARGETS or longest * BLOCK_LANES > _MOST_PACKED:
        return score_batch(against(query, targets), scoring, free, target, progress)
    scores = np.zeros(len(targets), np.int64)
    own = block_query(query, scoring, free)
    for first, last in _stretches(targets.sizes):
        blocks, order = _packed(targets.between(first, last))
        (found,) = target.launch(BLOCK_SCORES, BlockBatch([own], blocks, progress, target.threads))
        scores[first + order] = found.ravel()[: order.size]
    return scores


def align_many_codes(
    query: NDArray[np.uint8],
    targets: CodeList,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: _Progress = ignore_progress,
) -> list[Alignment]:
    """A best alignment of a query with each of many targets; arguments as for `score_many_codes`."""
    sizes = targets.sizes
    whole = not any(free)
    own = block_query(query, scoring, free)
    in_lanes = len(targets) >= _FEWEST_TARGETS and whole and query.size > 0 and bool(sizes.all())
    bits = trace_bytes(own, int(sizes.max(initial=0))) if in_lanes else None
    if bits is None or bits > _MOST_CHOICES:
        return align_batch(against(query, targets), scoring, free, target, progress)
    task = PairList(
        query,
        np.array([0, query.size], np.int64),
        targets.codes,
        targets.starts,
        scoring.matrix.scores,
        scoring.gap_open,
        scoring.gap_extend,
        free,
    )
    results = target.launch(BLOCK_TRACES, TraceBatch(own, task))
    progress(int(sizes.sum()) * query.size)
    starts = (np.zeros(len(targets), np.int64), targets.starts[:-1])
    ends = (results.ends[:, 1], results.ends[:, 3])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(results.run_counts)])
    paths = Paths(query, targets.codes, *starts, *ends, scoring.matrix.scores, results.runs, offsets)
    return make_alignments(paths, scoring, results.scores)


def _by_query(batch: PairBatch, many: Callable[..., Any], few: Callable[[PairBatch], Any]) -> Any:
    """Results of all pairs: queries that occur often against all their targets, the others pair by pair."""
    groups: dict[bytes, list[int]] = {}
    if len(batch) >= _FEWEST_TARGETS:
        for k in range(len(batch)):
            groups.setdefault(batch.queries[k].tobytes(), []).append(k)
    often = [np.array(pairs) for pairs in groups.values() if len(pairs) >= _FEWEST_TARGETS]
    if not often:
        return few(batch)
    results: list[Any] = [None] * len(batch)
    for pairs in often:
        found = many(batch.queries[pairs[0]], batch.targets.take(pairs))
        for k, one in zip(pairs.tolist(), found, strict=True):
            results[k] = one
    rest = np.setdiff1d(np.arange(len(batch)), np.concatenate(often))
    if rest.size:
        for k, one in zip(rest.tolist(), few(batch.only(rest)), strict=True):
            results[k] = one
    return results


def score_pair_codes(
    batch: PairBatch,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: _Progress = ignore_progress,
) -> NDArray[np.int64]:
    """Best scores of pairs; a query that occurs often is scored with all its targets at once."""
    return np.array(
        _by_query(
            batch,
            lambda query, own: score_many_codes(query, own, scoring, free, target, progress),
            lambda rest: score_batch(rest, scoring, free, target, progress),
        ),
        np.int64,
    )


def align_pair_codes(
    batch: PairBatch,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: _Progress = ignore_progress,
) -> list[Alignment]:
    """A best alignment of every pair; a query that occurs often is aligned with all its targets at once."""
    found: list[Alignment] = _by_query(
        batch,
        lambda query, own: align_many_codes(query, own, scoring, free, target, progress),
        lambda rest: align_batch(rest, scoring, free, target, progress),
    )
    return found
