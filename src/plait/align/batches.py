"""Many pairs at once: codes in, scores and paths out; the way to the target's schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.align.codes import PairBatch
from plait.align.host_memory import free_bytes
from plait.align.results import Alignment, make_alignment, make_alignments
from plait.align.scoring import Scoring
from plait.errors import DeviceFailure, DeviceMemoryError
from plait.schedules.choice_walk import Costs
from plait.schedules.pair_setup import choice_bytes, make_setup
from plait.schedules.pair_sweep import FreeEnds, PairList, PairResults
from plait.schedules.tiles import LongPair, Tile, TileSteps, align_long, score_long
from plait.targets.devices import resolve
from plait.targets.protocol import Target
from plait.targets.told_cells import Told

__all__ = [
    "align_batch",
    "align_long_pair",
    "choose_target",
    "ignore_progress",
    "needs_bytes",
    "score_batch",
]

T = TypeVar("T")

#: Cells from which a single pair is cut into tiles, so that threads share it.
_TILED_CELLS = 1 << 26
_CHOICES_OF_A_TILE = 1 << 28
#: Cells from which one thread cuts a pair too: their choices, half a byte each, are those of a tile.
_LARGEST_WHOLE = 2 * _CHOICES_OF_A_TILE
_CHECKPOINTS = 1 << 30
#: Where many tiles are swept together: choices of a tile, most bytes of checkpoints, and the share of the
#: free memory that they may take.
_CHOICES_BESIDE_MANY = 1 << 20
_MOST_CHECKPOINTS = 1 << 34
_SHARE_OF_MEMORY = 4


def choose_target(device: str = "auto", threads: int | None = None) -> Target:
    """The target of a name.

    Parameters
    ----------
    device
        One of `plait.targets.devices.DEVICES`.
    threads
        Threads; by default those of the settings.

    Raises
    ------
    InvalidInput
        If there is no such name, or no such number of threads.
    TargetUnavailable
        If CUDA is asked for and cannot be used.
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


def _long_pair(
    batch: PairBatch, scoring: Scoring, free: FreeEnds, target: Target, progress: Callable[[int], None]
) -> LongPair:
    task = _task(batch, scoring, free)
    pair = LongPair(
        setup=make_setup(task, keep=False),
        costs=Costs(
            batch.queries.codes,
            batch.targets.codes,
            task.matrix,
            scoring.gap_open,
            scoring.gap_extend,
            free.local,
        ),
        free=free,
        choice_limit=_CHOICES_OF_A_TILE,
        checkpoint_limit=_CHECKPOINTS,
        progress=progress,
    )
    many = target.tile_steps().many
    whole = Tile(0, batch.queries.codes.size, 0, batch.targets.codes.size)
    if many is None or not many.serves(pair, whole):
        return pair
    # Sweeping again costs less there than choices here, and less of it is needed with more checkpoints.
    checkpoints = min(max(free_bytes() // _SHARE_OF_MEMORY, _CHECKPOINTS), _MOST_CHECKPOINTS)
    return replace(pair, choice_limit=_CHOICES_BESIDE_MANY, checkpoint_limit=checkpoints)


def _on_long_pair(
    run: Callable[[LongPair, TileSteps], T],
    batch: PairBatch,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: Told,
) -> T:
    """What is found of one pair: by the target, or by the one that stands in when its device fails."""
    try:
        return run(_long_pair(batch, scoring, free, target, progress), target.tile_steps())
    except (DeviceFailure, DeviceMemoryError) as error:
        other = target.successor(error)
        if other is None:
            raise
        return _on_long_pair(run, batch, scoring, free, other, progress.again())


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
    steps = target.tile_steps()
    most = _TILED_CELLS if steps.threads > 1 or steps.many is not None else _LARGEST_WHOLE
    large = cells >= (most if tiled else np.iinfo(np.int64).max)
    pieces: dict[int, NDArray[np.int64]] = {}
    small = np.flatnonzero((cells > 0) & ~large)
    if small.size:
        chosen = batch if small.size == pairs else batch.only(small)
        task = _task(chosen, scoring, free)
        found = target.run_pairs(make_setup(task, keep=keep), task)
        scores[small], ends[small], counts[small] = found.scores, found.ends, found.run_counts
        progress(int(cells[small].sum()))
        if small.size == pairs:
            return PairResults(scores, ends, found.runs, counts)
        for p, part in zip(small, np.split(found.runs, np.cumsum(found.run_counts)[:-1]), strict=True):
            pieces[int(p)] = part
    for p in np.flatnonzero(large):
        one = batch.only(np.array([p]))
        if keep:
            best, start, runs = _on_long_pair(align_long, one, scoring, free, target, Told(progress))
            ends[p, ::2] = start + 1
            pieces[int(p)], counts[p] = runs, len(runs)
        else:
            best = _on_long_pair(score_long, one, scoring, free, target, Told(progress))
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

    Parameters
    ----------
    batch
        The pairs.
    scoring
        Of which `batch` holds the codes.
    free
        What may be left out.
    target
        Where to compute.
    progress
        Called with numbers of cells that are done.
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
    """A best alignment of every pair.

    Parameters
    ----------
    batch, scoring, free, target, progress
        As for `score_batch`.
    tiled
        Whether large pairs may be cut into tiles.
    """
    results = _sweep(batch, scoring, free, target, True, progress, tiled)
    runs, counts = _runs_of_empty(batch, results)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return make_alignments(
        batch.queries.codes,
        batch.queries.starts[:-1],
        batch.targets.codes,
        batch.targets.starts[:-1],
        scoring,
        results.scores,
        results.ends[:, 1],
        results.ends[:, 3],
        runs,
        offsets,
    )


def align_long_pair(
    batch: PairBatch,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: Callable[[int], None] = ignore_progress,
) -> Alignment:
    """A best alignment of one pair, tile by tile.

    Parameters
    ----------
    batch
        One pair, of which no sequence is empty.
    scoring, free, target, progress
        As for `score_batch`.
    """
    best, _, runs = _on_long_pair(align_long, batch, scoring, free, target, Told(progress))
    score, row, column = (int(value) for value in best)
    return make_alignment(batch.queries.codes, batch.targets.codes, scoring, score, row + 1, column + 1, runs)


def needs_bytes(batch: PairBatch, scoring: Scoring, free: FreeEnds) -> int:
    """Bytes of the choices of the largest pair, if all were kept at once.

    Parameters
    ----------
    batch, scoring, free
        As for `score_batch`.
    """
    # The letters do not matter for that, and they are many.
    none = np.zeros(0, np.uint8)
    task: Any = _task(batch, scoring, free)._replace(query=none, target=none)
    rows, columns = batch.queries.sizes, batch.targets.sizes
    setup = make_setup(task, keep=True)
    return max((choice_bytes(setup, int(m), int(n)) for m, n in zip(rows, columns, strict=True)), default=0)
