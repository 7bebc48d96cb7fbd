"""Compiled entry points for putting texts side by side."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.lane_packing import pack_block

__all__ = ["pack_kernel"]


@kernel
def pack_kernel(letters: Any, starts: Any, lengths: Any, first_columns: Any, packed: Any) -> None:
    """All blocks, see `plait.schedules.lane_packing.pack_block`."""
    for block in range(first_columns.size - 1):
        first, last = first_columns[block], first_columns[block + 1]
        pack_block(letters, starts, lengths, block, first, last, packed)
