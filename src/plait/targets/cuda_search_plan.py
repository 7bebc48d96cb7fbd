"""What a search holds in the memory of a GPU at a time. Pure: nothing here asks a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import DeviceMemoryError

__all__ = [
    "LANES",
    "TILE",
    "SearchPlan",
    "Tiles",
    "pieces_of",
    "plan_search",
    "shares_of",
    "tiles_of",
    "wide_warps",
]

#: Lanes of a block of a database, and columns of a tile.
LANES = 64
TILE = 64

_DEVICE = "cuda"
_FIX = "close other programs that use the device, or use device='cpu'"

#: Parts of a database that a device holds at a time: one is computed with, while others come and go.
_SLOTS = 3
#: Share of the free memory that is used: the rest is for kernels and what the driver needs.
_USED = 0.8
#: Bytes of a part that are sent at a time; there is room for two.
_PIECE = 1 << 24
#: Residues of a part at the most: enough to keep a device busy, and the host is done with it soon.
_RESIDUES = 1 << 26
#: Warps of a multiprocessor for which the kernel of 32-bit scores has memory.
_WIDE_WARPS = 28
_BLOCK_WARPS = 4
#: Bytes for each target besides its residues: start, length, number, score.
_TARGET_BYTES = 8 + 4 + 4 + 4
#: Bytes for each column of a warp that keeps the last row of a stripe.
_COLUMN_BYTES = 8


class SearchPlan(NamedTuple):
    """What each of several parts of a database may take of a device.

    Attributes
    ----------
    slots
        Parts at a time.
    bytes
        Bytes for one of them.
    piece
        Bytes that are sent at a time.
    residues
        Residues of one at the most.
    """

    slots: int
    bytes: int
    piece: int
    residues: int


def plan_search(free: int) -> SearchPlan:
    """Parts for a device with so many free bytes.

    Parameters
    ----------
    free
        Free bytes.

    Raises
    ------
    DeviceMemoryError
        If they are too few for anything.
    """
    piece = min(_PIECE, 1 << max(free // 64, 1).bit_length() - 1)
    own = int(free * _USED) // _SLOTS - 2 * piece
    if own < 1 << 16:
        raise DeviceMemoryError(_DEVICE, needed=None, free=free, fix=_FIX)
    return SearchPlan(_SLOTS, own, piece, min(_RESIDUES, own // 4))


def shares_of(
    lengths: NDArray[np.integer],
    plan: SearchPlan,
    needs: Callable[[int, int], int],
) -> list[tuple[int, int]]:
    """Neighbouring blocks of targets that fit into the memory of a slot together.

    Parameters
    ----------
    lengths
        Residues of each target, shape (blocks, lanes).
    plan
        The plan.
    needs
        Bytes that a kernel needs for so many targets with so many residues together, beyond the residues
        themselves.

    Returns
    -------
    list of tuple
        First block of each share, and the one after its last.

    Raises
    ------
    DeviceMemoryError
        If one block is too large on its own.
    """
    residues = np.concatenate([[0], np.cumsum(lengths.sum(axis=1, dtype=np.int64))])
    targets = np.concatenate([[0], np.cumsum((lengths > 0).sum(axis=1, dtype=np.int64))])

    def size(first: int, last: int) -> int:
        count, total = int(targets[last] - targets[first]), int(residues[last] - residues[first])
        return total + _TARGET_BYTES * count + needs(count, total)

    shares, first = [], 0
    while first < len(lengths):
        last = int(np.searchsorted(residues, residues[first] + plan.residues, "right")) - 1
        last = max(last, first + 1)
        while last > first + 1 and size(first, last) > plan.bytes:
            last = first + (last - first) // 2
        if size(first, last) > plan.bytes:
            raise DeviceMemoryError(_DEVICE, needed=size(first, last), free=plan.bytes, fix=_FIX)
        shares.append((first, last))
        first = last
    return shares


def wide_warps(multiprocessors: int, chosen: int, columns: int, stripes: int, most: int) -> int:
    """Warps for the kernel of 32-bit scores: each needs memory for a row if there are several stripes.

    Parameters
    ----------
    multiprocessors
        Of the device.
    chosen
        Targets, at least 1.
    columns
        Residues of the longest.
    stripes
        Stripes of the query.
    most
        Bytes that the rows may take.

    Raises
    ------
    DeviceMemoryError
        If there is no room for any.
    """
    warps = min(multiprocessors * _WIDE_WARPS, chosen)
    if stripes > 1:
        room = most // (_COLUMN_BYTES * columns)
        if not room:
            raise DeviceMemoryError(_DEVICE, needed=_COLUMN_BYTES * columns, free=most, fix=_FIX)
        warps = min(warps, room)
    # Whole blocks of threads, since all of their warps take targets.
    return warps if warps < _BLOCK_WARPS else warps // _BLOCK_WARPS * _BLOCK_WARPS


class Tiles(NamedTuple):
    """Stretches of up to `TILE` columns of a block, in order; int64, with one entry more for the end.

    Attributes
    ----------
    rows
        First row of each in the packed columns.
    blocks
        Its block.
    columns
        Its first column, counted from the start of the block.
    """

    rows: NDArray[np.int64]
    blocks: NDArray[np.int64]
    columns: NDArray[np.int64]


def tiles_of(first_columns: NDArray[np.int64]) -> Tiles:
    """The tiles of blocks.

    Parameters
    ----------
    first_columns
        First column of each block, and the end of the last.
    """
    widths = np.diff(first_columns)
    counts = -(-widths // TILE)
    blocks = np.repeat(np.arange(widths.size), counts)
    within = np.arange(blocks.size) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = within * TILE
    rows = np.append(first_columns[blocks] + columns, first_columns[-1])
    return Tiles(rows, np.append(blocks, widths.size), np.append(columns, 0))


def pieces_of(tiles: Tiles, most: int) -> list[tuple[int, int]]:
    """Tiles that are sent together: the first of each piece, and the one after its last.

    Parameters
    ----------
    tiles
        The tiles.
    most
        Bytes of a piece at the most; a tile at least.
    """
    rows = max(most // LANES, TILE)
    pieces, first, count = [], 0, tiles.rows.size - 1
    while first < count:
        last = int(np.searchsorted(tiles.rows, tiles.rows[first] + rows, "right")) - 1
        last = min(max(last, first + 1), count)
        pieces.append((first, last))
        first = last
    return pieces
