"""Compiled entry points for texts that join a prefix and a suffix."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.joined_cuts import cut_overlaps
from plait.schedules.joined_layout import lay_out
from plait.schedules.joined_texts import join_slices, read_triplets, write_columns, write_runs

__all__ = [
    "cut_overlaps_kernel",
    "join_slices_kernel",
    "lay_out_kernel",
    "read_triplets_kernel",
    "write_columns_kernel",
    "write_runs_kernel",
]


@kernel
def cut_overlaps_kernel(texts: Any, marks: Any, prefix: Any, suffix: Any, order: Any) -> None:
    """See `plait.schedules.joined_cuts.cut_overlaps`."""
    cut_overlaps(texts, marks, prefix, suffix, order)


@kernel
def lay_out_kernel(
    texts: Any, qualities: Any, groups: Any, order: Any, tables: Any, out: Any, choice: Any
) -> None:
    """See `plait.schedules.joined_layout.lay_out`."""
    lay_out(texts, qualities, groups, order, tables, out, choice)


@kernel
def join_slices_kernel(letters: Any, first: Any, length: Any, list_starts: Any, out: Any) -> None:
    """See `plait.schedules.joined_texts.join_slices`."""
    join_slices(letters, first, length, list_starts, out)


@kernel
def read_triplets_kernel(letters: Any, first: Any, length: Any, tables: Any, out: Any) -> None:
    """See `plait.schedules.joined_texts.read_triplets`."""
    read_triplets(letters, first, length, tables, out)


@kernel
def write_runs_kernel(letters: Any, starts: Any, entries: Any, matches: Any, out: Any) -> None:
    """See `plait.schedules.joined_texts.write_runs`."""
    write_runs(letters, starts, entries, matches, out)


@kernel
def write_columns_kernel(texts: Any, order: Any, layout: Any, fragments: Any, number: Any, out: Any) -> None:
    """See `plait.schedules.joined_texts.write_columns`."""
    write_columns(texts, order, layout, fragments, number, out)
