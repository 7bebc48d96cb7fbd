"""Targets on their way to a GPU: blocks of lanes are sent as they are, and there made sequences again.

The databases of `plait.align.packing` hold 64 targets side by side for the lanes of a CPU. Sending them so
costs little more than the residues, and the host has nothing to do but copy them into memory from which a
GPU reads while it computes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.targets.cuda import cuda, cuda_kernel
from plait.targets.cuda_search_plan import LANES, TILE

__all__ = ["THREADS", "untangle"]

#: Threads that work on a tile.
THREADS = 256
_WORDS = LANES // 4
#: Bytes of a row of a tile in shared memory: an odd number of words keeps the threads of a warp apart.
_ROW = LANES + 4
_SHARED = TILE * _ROW // 4


def _examples() -> list[tuple[Any, ...]]:
    tiles, starts = np.zeros((3, 2), np.int64), np.zeros(2, np.int64)
    return [(np.zeros(1, np.uint32), np.int64(0), tiles, starts, np.zeros(1, np.uint8))]


@cuda_kernel(_examples)
def untangle(words, first, tiles, starts, codes):  # type: ignore[no-untyped-def]
    """Write the residues of tiles to where each target has them; a block of 256 threads for each tile.

    Parameters
    ----------
    words
        Packed columns, four lanes a word, from that of tile `first` on.
    first
        Number of that tile.
    tiles
        Rows, blocks and columns of all of them, see `plait.targets.cuda_search_plan.Tiles`.
    starts
        Where the target of each lane of each block starts in `codes`, and the end of the last.
    codes
        Residues, all targets in one array; written to.
    """
    shared = cuda.shared.array(_SHARED, np.uint32)
    thread = np.int32(cuda.threadIdx.x)
    tile = first + cuda.blockIdx.x
    size = np.int32(tiles[0, tile + 1] - tiles[0, tile])
    row = (tiles[0, tile] - tiles[0, first]) * _WORDS
    for k in range(thread, size * _WORDS, THREADS):
        shared[k // _WORDS * (_ROW // 4) + k % _WORDS] = words[row + k]
    cuda.syncthreads()
    block = tiles[1, tile] * LANES
    column = tiles[2, tile]
    for k in range(thread, LANES * TILE, THREADS):
        lane, at = np.int32(k // TILE), np.int32(k % TILE)
        place = starts[block + lane] + column + at
        if at < size and place < starts[block + lane + 1]:
            word = shared[at * (_ROW // 4) + lane // 4]
            codes[place] = np.uint8(word >> np.uint32(8 * (lane % 4)) & np.uint32(255))
