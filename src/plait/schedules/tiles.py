"""One long pair, tile by tile, in memory that grows with the sum of the lengths.

The matrix is cut into tiles that hand their edges on. A tile can run when the tiles above and left of it are
done, so tiles of one anti-diagonal run side by side. For the alignment itself the edges of all tiles are kept
(`Checkpoints`); then only the tiles that the alignment passes through are swept again, with their choices,
and a tile whose choices would not fit is cut in the same way. The path is that of the whole matrix, to the
last tie.

The steps that cost time are given by the target, as `TileSteps`. A target may sweep many tiles together, and
then finds only the best value of each: which of them has the end of the alignment, and where, is looked for
in the tiles with the best value, from the kept edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plait.schedules.antidiagonal import Edges
from plait.schedules.tile_grid import LongPair, Tile, TileSteps
from plait.schedules.tile_sweep import Sweep, bytes_to_seek
from plait.schedules.tile_walk import Walk

__all__ = ["LongPair", "Tile", "TileSteps", "align_long", "score_long"]


def _whole(pair: LongPair, steps: TileSteps) -> tuple[Tile, Edges]:
    rows, columns = pair.costs.query.size, pair.costs.target.size
    edges = Edges(*(np.zeros(size, np.int32) for size in (columns, columns, rows, rows)))
    steps.border(pair.free, pair.costs.gap_open, pair.costs.gap_extend, edges)
    return Tile(0, rows, 0, columns), edges


def _first_pass(pair: LongPair, steps: TileSteps, checkpoint_limit: int) -> Sweep:
    region, edges = _whole(pair, steps)
    sweep = Sweep(pair, steps, region, edges, 0, checkpoint_limit, bool(pair.free.anywhere))
    sweep.run()
    steps.end(pair.free, pair.costs.gap_open, pair.costs.gap_extend, edges, sweep.best)
    return sweep


def score_long(pair: LongPair, steps: TileSteps) -> NDArray[np.int64]:
    """Value, row and column of the end of a best alignment.

    Parameters
    ----------
    pair
        Two sequences that are not empty.
    steps
        Of the target.
    """
    limit = 0
    if steps.many is not None and pair.free.anywhere:
        whole = Tile(0, pair.costs.query.size, 0, pair.costs.target.size)
        if steps.many.serves(pair, whole):
            # Where many tiles are swept together, the end in any cell is found from their edges.
            limit = bytes_to_seek(whole.cells, pair.checkpoint_limit)
    return _first_pass(pair, steps, limit).best


def align_long(
    pair: LongPair, steps: TileSteps
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """A best alignment.

    Parameters
    ----------
    pair
        Two sequences that are not empty.
    steps
        Of the target.

    Returns
    -------
    tuple
        Value, row and column of the end; row and column before the start; runs (operation, length) from the
        first to the last, shape (runs, 2).
    """
    sweep = _first_pass(pair, steps, pair.checkpoint_limit)
    walk = Walk(pair, steps, sweep.best)
    if walk.cursor[0] >= 0 and walk.cursor[1] >= 0:
        walk.back(sweep)
    walk.finish()
    return sweep.best, walk.cursor[:2], walk.runs[: walk.cursor[4]][::-1]
