"""How one very long pair is shared out over GPUs: tiles, and the rectangles of tiles that one launch sweeps.

The stripes of a launch run at the same time, each on a warp. So a launch has as many rows as there are warps
on the device, or a little less where that makes the launches even, and as many columns as fit a time limit
and the memory of the device.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.tile_grid import Grid, Tile, cuts

__all__ = ["Capacity", "plan_grid"]

#: Sides of tiles that the path is followed through, and columns of a launch, at least.
LEAST_TILE = 1024
LEAST_COLUMNS = 1 << 16
#: Bytes that the edges of tiles of that size may take; where they take more, tiles are larger by far.
_FEW_BYTES = 1 << 28
#: Side of a larger tile, by the square root of rows and columns together. Copying edges takes time in
#: proportion to the area over the side, and sweeping tiles on the way of the alignment again in proportion to
#: the lengths times the side.
_SIDE_BY_ROOT = 16
#: Cells of a launch for each multiprocessor: about two seconds, so that a run can be stopped.
CELLS_OF_A_LAUNCH = 1 << 35
#: Launches side by side for each device.
_LAUNCHES_PER_DEVICE = 3


class Capacity(NamedTuple):
    """What the devices can do; they are alike.

    Attributes
    ----------
    devices
        How many.
    multiprocessors
        Of one.
    warps
        Stripes that run at the same time on one.
    memory
        Bytes that a launch may use on each.
    height
        Rows of a stripe.
    """

    devices: int
    multiprocessors: int
    warps: int
    memory: int
    height: int


def _round_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _even_parts(tiles: int, most: int) -> NDArray[np.int64]:
    """Where parts of at most so many tiles begin that are as even as can be."""
    parts = -(-tiles // max(most, 1))
    return (np.arange(parts + 1, dtype=np.int64) * tiles) // parts


def _side_of_launches(rows: int, side: int, capacity: Capacity) -> int:
    """Rows of tiles, at least `side`, of which launches of all warps are made up without a rest."""
    most = capacity.warps * capacity.height
    if rows <= most or side > most:
        return side
    tiles = -(-rows // most) * (most // side)
    return max(side, _round_up(-(-rows // tiles), capacity.height))


def _across(rows: int, columns: int, side: int, limit: int, capacity: Capacity) -> int:
    """Columns of tiles: fewer than rows where several devices would have nothing to do."""
    if capacity.devices == 1:
        return side
    parts = _LAUNCHES_PER_DEVICE * capacity.devices
    narrow = max(_round_up(-(-columns // parts), capacity.height), LEAST_TILE)
    kept = 8 * (-(-rows // side) * columns + -(-columns // narrow) * rows)
    return narrow if narrow < side and kept <= limit else side


def _launch(rows: int, columns: int, side: int, capacity: Capacity) -> tuple[int, int]:
    """Most rows and columns of a launch."""
    height = capacity.height
    most_rows = max(capacity.warps * height // side * side, side)
    down = min(rows, most_rows)
    across = min(columns, CELLS_OF_A_LAUNCH * capacity.multiprocessors // down)
    # Edges of the launch, and 16 bytes for each row of a tile and each of its columns.
    across = min(across, max(capacity.memory - 64 * down, 0) // (16 * down // side + 64))
    # While one ends, with fewer and fewer stripes, another one begins.
    across = min(across, columns // (_LAUNCHES_PER_DEVICE * capacity.devices))
    return most_rows, max(across, LEAST_COLUMNS)


def plan_grid(region: Tile, checkpoint_limit: int, capacity: Capacity) -> Grid:
    """Cut a region into tiles, and these into launches.

    Parameters
    ----------
    region
        What to cut.
    checkpoint_limit
        Bytes that the edges of all tiles may take; 0 if they are not kept, and a launch is one tile.
    capacity
        Of the devices.
    """
    rows, columns = region.row_end - region.row, region.column_end - region.column
    height = capacity.height
    side = across = height
    if checkpoint_limit:
        side = LEAST_TILE
        if 16 * rows * columns // side > _FEW_BYTES:
            side = max(side, _SIDE_BY_ROOT * math.isqrt(rows + columns))
        side = _round_up(max(side, -(-16 * rows * columns // checkpoint_limit)), height)
        side = _side_of_launches(rows, side, capacity)
        # A region that is cut to be walked through must come out in smaller pieces.
        side = min(side, max(height, _round_up(-(-max(rows, columns) // 2), height)))
        across = _across(rows, columns, side, checkpoint_limit, capacity)
    most_rows, most_columns = _launch(rows, columns, side, capacity)
    tile_rows = cuts(region.row, region.row_end, side)
    tile_columns = cuts(region.column, region.column_end, across)
    visit_rows = _even_parts(tile_rows.size - 1, most_rows // side)
    visit_columns = _even_parts(tile_columns.size - 1, most_columns // across)
    if not checkpoint_limit:
        tile_rows, tile_columns = tile_rows[visit_rows], tile_columns[visit_columns]
        visit_rows, visit_columns = np.arange(tile_rows.size), np.arange(tile_columns.size)
    return Grid(region, tile_rows, tile_columns, visit_rows, visit_columns)
