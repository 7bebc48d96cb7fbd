"""One query against many targets, and lists of pairs: which schedule serves which pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import align_batch, ignore_progress, score_batch
from plait.align.codes import CodeList, PairBatch, code_list
from plait.align.matrices import NO_CODE
from plait.align.results import Alignment, make_alignments
from plait.align.scoring import Scoring
from plait.schedules.block_setup import BlockQuery
from plait.schedules.pair_sweep import FreeEnds, PairList
from plait.targets.block_lists import TargetBlocks
from plait.targets.lane_blocks import BLOCK_LANES, arrange, packed_columns
from plait.targets.protocol import Target
from plait.targets.trace_lists import trace_bytes

__all__ = ["align_many_codes", "align_pair_codes", "block_query", "score_many_codes", "score_pair_codes"]

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
    """A query for targets in lanes.

    Parameters
    ----------
    query
        uint8 codes.
    scoring
        Matrix and costs.
    free
        What may be left out.
    columns
        Index into the matrix for each code of the targets; by default they are such indices themselves. Codes
        that the matrix lacks must not occur.
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


def _against(query: NDArray[np.uint8], targets: CodeList) -> PairBatch:
    return PairBatch(code_list([query] * len(targets)), targets)


def score_many_codes(
    query: NDArray[np.uint8],
    targets: CodeList,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
    progress: _Progress = ignore_progress,
) -> NDArray[np.int64]:
    """Best score of a query with each of many targets.

    Parameters
    ----------
    query
        uint8 codes.
    targets
        Sequences.
    scoring, free, target, progress
        As for `plait.align.batches.score_batch`.
    """
    longest = int(targets.sizes.max(initial=0))
    if not query.size or len(targets) < _FEWEST_TARGETS or longest * BLOCK_LANES > _MOST_PACKED:
        return score_batch(_against(query, targets), scoring, free, target, progress)
    scores = np.zeros(len(targets), np.int64)
    own = block_query(query, scoring, free)
    for first, last in _stretches(targets.sizes):
        blocks, order = _packed(targets.between(first, last))
        found = target.run_blocks(own, blocks, progress)
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
    """A best alignment of a query with each of many targets.

    Parameters
    ----------
    query, targets, scoring, free, target, progress
        As for `score_many_codes`.
    """
    sizes = targets.sizes
    whole = not any(free)
    own = block_query(query, scoring, free)
    in_lanes = len(targets) >= _FEWEST_TARGETS and whole and query.size > 0 and bool(sizes.all())
    bits = trace_bytes(own, int(sizes.max(initial=0))) if in_lanes else None
    if bits is None or bits > _MOST_CHOICES:
        return align_batch(_against(query, targets), scoring, free, target, progress)
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
    results = target.trace_targets(own, task)
    progress(int(sizes.sum()) * query.size)
    return make_alignments(
        query,
        np.zeros(len(targets), np.int64),
        targets.codes,
        targets.starts[:-1],
        scoring,
        results.scores,
        results.ends[:, 1],
        results.ends[:, 3],
        results.runs,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(results.run_counts)]),
    )


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
    """Best scores of pairs.

    Parameters
    ----------
    batch
        The pairs.
    scoring, free, target, progress
        As for `score_many_codes`.
    """
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
    """A best alignment of every pair.

    Parameters
    ----------
    batch, scoring, free, target, progress
        As for `score_pair_codes`.
    """
    found: list[Alignment] = _by_query(
        batch,
        lambda query, own: align_many_codes(query, own, scoring, free, target, progress),
        lambda rest: align_batch(rest, scoring, free, target, progress),
    )
    return found
