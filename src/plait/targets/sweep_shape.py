"""How a target likes to be given the work of a search: what at a time, and how much of it."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CPU_SHAPE", "SweepShape", "cuda_shape"]


class SweepShape(NamedTuple):
    """What is swept at a time.

    Attributes
    ----------
    tasks
        Tasks at a time; None for as many as there are threads.
    waiting
        Tasks that wait for each of them.
    queries
        Queries of a task at the most: a target that has targets sent to it wants many.
    least_cells, most_cells
        Cells of a task: enough to make its preparation small, few enough to stop soon.
    database_bytes
        Bytes of FASTA text, and of packed columns, in a piece of the database.
    alone
        Residues from which a target that is much longer than its neighbours is swept on its own.
    stretches
        Stretches of such a target that are cut up at a time.
    piece_blocks
        Blocks of pieces into which they are cut at the most.
    """

    tasks: int | None
    waiting: int
    queries: int
    least_cells: int
    most_cells: int
    database_bytes: int
    alone: int
    stretches: int
    piece_blocks: int


#: For compiled code on the processors of this machine.
CPU_SHAPE: Final = SweepShape(
    tasks=None,
    waiting=8,
    queries=1,
    least_cells=1 << 22,
    most_cells=1 << 29,
    database_bytes=1 << 23,
    alone=0,
    stretches=1,
    piece_blocks=1,
)
#: Parts of a database that a GPU holds at a time.
_PARTS: Final = 3


def cuda_shape(devices: int) -> SweepShape:
    """For so many GPUs: large pieces of the database, many queries with each.

    Parameters
    ----------
    devices
        How many.
    """
    return SweepShape(
        tasks=_PARTS * devices,
        waiting=1,
        queries=32,
        least_cells=1 << 42,
        most_cells=1 << 42,
        database_bytes=max((1 << 26) // devices, 1 << 24),
        alone=1 << 20,
        stretches=8,
        piece_blocks=64,
    )
