"""Compiled entry points for comparing spans of texts with spans of entries."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.span_differences import count_differing, list_differing

__all__ = ["count_differing_kernel", "list_differing_kernel"]


@kernel
def count_differing_kernel(spans: Any, most: int, counts: Any) -> None:
    """Counts for all texts, see `plait.schedules.span_differences.count_differing`."""
    for text in range(counts.size):
        counts[text] = count_differing(spans, text, most)


@kernel
def list_differing_kernel(spans: Any, out: Any) -> int:
    """Differing places of all texts; returns their number. `out` has room for all places."""
    at = 0
    for text in range(spans.lengths.size):
        at = list_differing(spans, text, out, at)
    return at
