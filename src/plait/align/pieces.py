"""Long targets of local alignments, cut into pieces that overlap, one in each lane.

An alignment of positive score spans only so many residues of the target: each pair of residues takes one of
the query, and each residue in a gap costs at least `gap_extend`, which the pairs must have earned. Where
pieces overlap by that many, each such alignment lies in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import align_batch
from plait.align.codes import PairBatch, code_list
from plait.align.residues import PAD_CODE
from plait.align.results import Alignment
from plait.align.scoring import Scoring
from plait.schedules.block_setup import BlockQuery
from plait.schedules.pair_sweep import FreeEnds
from plait.targets.block_lists import TargetBlocks
from plait.targets.lane_blocks import BLOCK_LANES, COLUMN_STEP
from plait.targets.protocol import Target

__all__ = ["Pieces", "align_long_target", "reach_of", "score_pieces", "stretches"]

#: Residues that are cut up at a time.
_STRETCH: Final = 1 << 22
#: Overlaps must be this much shorter than what is cut up, or a pair of its own takes less time.
_LEAST_RATIO: Final = 5


class Pieces(NamedTuple):
    """Scores of pieces.

    Attributes
    ----------
    starts
        Where they start in the target.
    size
        Residues of each but the last, which may be shorter.
    scores
        Their scores.
    """

    starts: NDArray[np.int64]
    size: int
    scores: NDArray[np.int64]


def reach_of(query: BlockQuery, size: int) -> int | None:
    """Residues of a target that an alignment of positive score can span.

    Parameters
    ----------
    query
        The query.
    size
        Residues of the target.

    Returns
    -------
    int or None
        None if the target had better not be cut.
    """
    if query.gap_extend < 1:
        return None
    earned = int(np.maximum(query.scores.max(axis=1), 0)[query.rows].sum(dtype=np.int64))
    reach = query.rows.size + max(earned - 1, 0) // query.gap_extend
    return reach if _LEAST_RATIO * reach <= min(size, _STRETCH) else None


def stretches(size: int, reach: int, times: int = 1) -> Iterator[tuple[int, int, int]]:
    """Stretches to cut up one after the other; they overlap like pieces.

    Parameters
    ----------
    size
        Residues of the target.
    reach
        What `reach_of` says.
    times
        Residues of a stretch, in 2^22.

    Yields
    ------
    tuple of int
        Start, end, and residues that no stretch before has.
    """
    most = times * _STRETCH
    for start in range(0, size, most):
        own = min(most, size - start)
        yield start, min(start + own + reach, size), own


def score_pieces(query: BlockQuery, codes: NDArray[np.uint8], reach: int, target: Target) -> Pieces:
    """Local scores of a query with all pieces of a stretch.

    Parameters
    ----------
    query
        The query.
    codes
        The stretch, in codes that `query` has scores for.
    reach
        What `reach_of` says.
    target
        Where to compute.
    """
    # Several blocks only where the overlaps stay small beside the pieces.
    count = codes.size // max(_LEAST_RATIO * BLOCK_LANES * reach, 1)
    count = max(min(count, target.sweep_shape().piece_blocks), 1)
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
    scores = target.sweep_blocks([query], blocks)[0].ravel()
    used = lengths > 0
    return Pieces(starts[used], columns, scores[used])


def align_long_target(
    query: tuple[BlockQuery, NDArray[np.uint8]],
    codes: NDArray[np.uint8],
    columns: NDArray[np.uint8],
    score: int,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
) -> Alignment | None:
    """The local alignment of a query with a long target, found without sweeping all of it again pair-wise.

    Parameters
    ----------
    query
        The query for lanes, and as indices into the matrix.
    codes
        The target, in codes that the query for lanes has scores for.
    columns
        Index into the matrix of each code.
    score
        Their best score, above 0.
    scoring, free, target
        As for `plait.align.batches.align_batch`.

    Returns
    -------
    Alignment or None
        None if the target had better not be cut, or `score` is not reached.
    """
    in_lanes, indices = query
    reach = reach_of(in_lanes, codes.size)
    if reach is None:
        return None

    def aligned(first: int, last: int) -> Alignment:
        part = code_list([columns[codes[first:last]]])
        found = align_batch(PairBatch(code_list([indices]), part), scoring, free, target)[0]
        return replace(found, target_start=found.target_start + first, target_end=found.target_end + first)

    ends = []
    for first, last, _ in stretches(codes.size, reach, target.sweep_shape().stretches):
        pieces = score_pieces(in_lanes, codes[first:last], reach, target)
        for start in pieces.starts[pieces.scores == score].tolist():
            found = aligned(first + start, min(first + start + pieces.size, last))
            ends.append((found.query_end, found.target_end))
    if not ends:
        return None
    # A piece may hold only some of the alignments that end there; this holds all of them.
    _, end = min(ends)
    return aligned(max(end - reach, 0), end)
