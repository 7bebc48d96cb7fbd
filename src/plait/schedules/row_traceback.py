"""Walking back through the directions of the row schedule."""

from __future__ import annotations

from typing import Any

from plait._jit import shared
from plait.schedules.row_sweep import BY_DIAGONAL, BY_TARGET_GAP, QUERY_GAP_OPENED, START, TARGET_GAP_OPENED

__all__ = ["BOTH", "QUERY_ONLY", "TARGET_ONLY", "walk_back"]

#: Columns of an alignment: two residues, one of the target, one of the query.
BOTH, TARGET_ONLY, QUERY_ONLY = 0, 1, 2


@shared
def add_run(runs: Any, at: Any, operation: Any, length: Any) -> Any:
    """Put columns before the runs from `at` on; returns where they begin now."""
    if at < runs.shape[0] and runs[at, 0] == operation:
        runs[at, 1] += length
    else:
        at -= 1
        runs[at, 0] = operation
        runs[at, 1] = length
    return at


@shared
def target_gap(keep: Any, i: Any, j: Any) -> Any:
    """How many target residues the gap that ends in cell (i, j) has."""
    length = 1
    while length < j and (keep.cells[keep.offsets[i] + j - length] & TARGET_GAP_OPENED) == 0:
        length += 1
    return length


@shared
def query_gap(keep: Any, i: Any, j: Any) -> Any:
    """How many query residues the gap that ends in cell (i, j) has."""
    length = 1
    while length < i and (keep.cells[keep.offsets[i - length] + j] & QUERY_GAP_OPENED) == 0:
        length += 1
    return length


@shared
def walk_back(keep: Any, border: Any, anew: bool, i: Any, j: Any, runs: Any) -> Any:
    """The path that ends in cell (i, j): (first run, i, j) of its start.

    Parameters
    ----------
    keep
        Directions.
    border
        What happens at row 0 and column 0.
    anew
        Whether the path begins where the value is that from which an alignment may start anew.
    i, j
        End of the path.
    runs
        Shape (at least i + j, 2): filled from behind with operation and number of columns.
    """
    at = runs.shape[0]
    while i > 0 and j > 0:
        bits = keep.cells[keep.offsets[i] + j]
        if anew and (bits & START) != 0:
            break
        if (bits & BY_DIAGONAL) != 0:
            at = add_run(runs, at, BOTH, 1)
            i -= 1
            j -= 1
        elif (bits & BY_TARGET_GAP) != 0:
            length = target_gap(keep, i, j)
            at = add_run(runs, at, TARGET_ONLY, length)
            j -= length
        else:
            length = query_gap(keep, i, j)
            at = add_run(runs, at, QUERY_ONLY, length)
            i -= length
    if i == 0 and j > 0 and not border.top_free:
        at = add_run(runs, at, TARGET_ONLY, j)
        j = 0
    elif j == 0 and i > 0 and not border.left_free:
        at = add_run(runs, at, QUERY_ONLY, i)
        i = 0
    return at, i, j
