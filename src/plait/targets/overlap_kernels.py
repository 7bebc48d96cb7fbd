"""Compiled entry point for pairs of overlapping sequences."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.overlaps import merge_pair

__all__ = ["merge_pairs_kernel"]


@kernel
def merge_pairs_kernel(
    lanes: Any, rules: Any, tables: Any, pairs: Any, count: int, scratch: Any, out: Any
) -> None:
    """All pairs in turn, see `plait.schedules.overlaps.merge_pair`."""
    for pair in range(count):
        merge_pair(lanes, rules, tables, pairs, pair, scratch, out)
