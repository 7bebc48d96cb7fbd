"""What the row and state schedules answer, in the form of the oracles."""

from __future__ import annotations

import numpy as np
from support.alignment import AlignmentCase, BestAlignment

from plait.align.scoring import free_ends_of
from plait.dp.pairs.rows import RowSweep, row_sweep
from plait.dp.pairs.states import SumTask
from plait.errors import InvalidInput

__all__ = ["prepare", "sum_task", "swept"]


def prepare(case: AlignmentCase, *, interpreted: bool = False) -> RowSweep:
    """The row schedule for a case.

    Parameters
    ----------
    case
        A pair and how it is to be aligned.
    interpreted
        Whether to run plain Python.
    """
    return row_sweep(
        np.array(case.query, np.uint8),
        np.array(case.target, np.uint8),
        np.array(case.scores, np.int64),
        gap_open=case.gap_open,
        gap_extend=case.gap_extend,
        free=free_ends_of(case.mode, case.free_ends if case.mode == "semiglobal" else None),
        band=case.band,
        x_drop=case.x_drop,
        interpreted=interpreted,
    )


def swept(case: AlignmentCase, *, interpreted: bool = False) -> BestAlignment | None:
    """The alignment that the row schedule finds; None if the band holds none.

    Parameters
    ----------
    case
        A pair and how it is to be aligned.
    interpreted
        Whether to run plain Python.
    """
    try:
        found = prepare(case, interpreted=interpreted).align()
    except InvalidInput as error:
        if error.what != "band":
            raise
        return None
    columns = "".join("MDI"[operation] * length for operation, length in found.runs.tolist())
    start, end = (found.query_start, found.target_start), (found.query_end, found.target_end)
    return BestAlignment(found.score, start, end, columns)


def sum_task(case: AlignmentCase, *, interpreted: bool = False) -> SumTask:
    """What the state schedule sums for a global or local case.

    Parameters
    ----------
    case
        A pair and how it is aligned.
    interpreted
        Whether to run plain Python.
    """
    return SumTask(
        query=np.array(case.query, np.uint8),
        target=np.array(case.target, np.uint8),
        scores=np.array(case.scores, np.int64),
        gap_open=case.gap_open,
        gap_extend=case.gap_extend,
        local=case.mode == "local",
        interpreted=interpreted,
    )
