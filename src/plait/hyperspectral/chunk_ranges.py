"""Which bytes of a chunk are needed for a part of it, for stores that give ranges of bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import numpy as np

from plait.hyperspectral.block_container import MAGIC, read_container, read_extent
from plait.hyperspectral.block_grid import Window

__all__ = ["GetBytes", "needed_bytes"]

#: Gives bytes from and to; from a negative number on, the last ones. None if there is no such chunk.
GetBytes: TypeAlias = Callable[[int, int | None], Awaitable[bytes | None]]

#: The end of a chunk that is asked for first: the index of a thousand blocks fits.
_END = 1 << 15


async def needed_bytes(get: GetBytes, window: Window | None) -> Any:
    """The bytes of a chunk, of which those that are not needed may be left out as zeros.

    Parameters
    ----------
    get
        Gives bytes of the chunk.
    window
        What will be read of it; None for all.

    Returns
    -------
    buffer
        For `plait.hyperspectral.streams.open_stream`; None if there is no such chunk.
    """
    if window is None:
        return await get(0, None)
    end = await get(-_END, None)
    if end is None:
        return None
    # Of a chunk that is shorter than what is asked for, some stores give only a part.
    extent = read_extent(end)
    if extent is None:
        return await get(0, None)
    whole, head, index = extent
    if whole == len(end):
        return end
    found = np.zeros(whole, np.uint8)
    missing = [(0, head), (index, whole - len(end))]
    found[-len(end) :] = np.frombuffer(end, np.uint8)
    await _fetch(get, found, missing)
    if bytes(found[: len(MAGIC)]) != MAGIC:
        # A plain stream that happens to end as containers do.
        return await get(0, None)
    blocks = read_container(found.data, "chunk")
    wanted = [one for one, where in zip(blocks.entries, blocks.grid, strict=True) if where.meets(window)]
    # The first block tells the parameters.
    ranges = [(one.offset, one.offset + one.length) for one in {blocks.entries[0], *wanted}]
    await _fetch(get, found, [(low, min(high, whole - len(end))) for low, high in sorted(ranges)])
    return found.data


async def _fetch(get: GetBytes, found: np.ndarray[Any, Any], ranges: list[tuple[int, int]]) -> None:
    joined: list[list[int]] = []
    for low, high in ranges:
        if joined and low <= joined[-1][1]:
            joined[-1][1] = max(high, joined[-1][1])
        elif low < high:
            joined.append([low, high])
    for low, high in joined:
        data = await get(low, high)
        if data is not None:
            found[low : low + len(data)] = np.frombuffer(data, np.uint8)
