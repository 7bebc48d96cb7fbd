"""Compiled entry points of searches for scenarios."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.scenario_search import find_chains

__all__ = ["scenario_kernel"]


@kernel
def scenario_kernel(tables: Any, queries: Any, first: int, last: int, scratch: Any, out: Any) -> None:
    """Texts `first` to `last`, see `plait.schedules.scenario_search.find_chains`."""
    for row in range(first, last):
        find_chains(tables, queries, row, scratch, out)
