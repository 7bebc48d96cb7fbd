"""Pieces of a database, laid out for a search: what goes into lanes, and what is too long for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.align.packing import SequenceDatabase
from plait.targets.block_lists import TargetBlocks
from plait.targets.lane_blocks import BLOCK_LANES, COLUMN_STEP

__all__ = ["LoneTarget", "TargetChunk", "TargetPart", "lone_lanes", "make_chunk"]

#: A residue swept in a pair of its own costs as much time as so many residues in lanes,
_LONE_RESIDUE: Final = 16
#: and the pair itself as much as so many more.
_LONE_PAIR: Final = 1 << 16


class TargetPart(NamedTuple):
    """Neighbouring blocks.

    Attributes
    ----------
    blocks
        The targets.
    records
        Number of the record in each lane; -1 in lanes without one. Shape (blocks, 64).
    """

    blocks: TargetBlocks
    records: NDArray[np.int64]

    @property
    def columns(self) -> int:
        """Columns of all blocks."""
        return int(self.blocks.first_columns[-1] - self.blocks.first_columns[0])

    def between(self, first: int, last: int) -> TargetPart:
        """Some of the blocks, without a copy.

        Parameters
        ----------
        first, last
            Number of the first, and of the one after the last.
        """
        packed, first_columns, lengths = self.blocks
        blocks = TargetBlocks(packed, first_columns[first : last + 1], lengths[first:last])
        return TargetPart(blocks, self.records[first:last])


class LoneTarget(NamedTuple):
    """A target that is swept on its own.

    Attributes
    ----------
    record
        Its number.
    codes
        Codes of `plait.align.residues.ALPHABETS`, of all of it or a stretch of it, shape (residues,).
    length
        Residues of all of it.
    """

    record: int
    codes: NDArray[np.uint8]
    length: int


class TargetChunk(NamedTuple):
    """A piece of a database.

    Attributes
    ----------
    parts
        What goes into lanes.
    lone
        What does not.
    share
        Share of the whole database that ends with this piece, 0 to 1, as far as it is known.
    """

    parts: tuple[TargetPart, ...]
    lone: tuple[LoneTarget, ...]
    share: float

    @property
    def residues(self) -> int:
        """Residues of all targets."""
        packed = sum(int(part.blocks.lengths.sum(dtype=np.int64)) for part in self.parts)
        return packed + sum(target.length for target in self.lone)


def lone_lanes(lengths: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many of the first targets of each block are so long that they had better be swept on their own.

    All lanes of a block wait for the longest target. Without the first k targets, the others wait for number
    k + 1.

    Parameters
    ----------
    lengths
        Residues of each target, falling within each block. Shape (blocks, 64).

    Returns
    -------
    NDArray[np.int64]
        Shape (blocks,).
    """
    width = lengths.shape[1]
    lone = np.zeros((len(lengths), width + 1), np.int64)
    np.cumsum(_LONE_RESIDUE * lengths.astype(np.int64) + _LONE_PAIR, axis=1, out=lone[:, 1:])
    rest = np.zeros_like(lone)
    rest[:, :-1] = width * lengths.astype(np.int64)
    best: NDArray[np.int64] = np.argmin(lone + rest, axis=1)
    return best


def make_chunk(
    database: SequenceDatabase,
    first: int,
    last: int,
    *,
    share: float,
    records: NDArray[np.int64] | None = None,
    lone: tuple[LoneTarget, ...] = (),
    alone: int = 0,
) -> TargetChunk:
    """A piece of packed targets.

    Parameters
    ----------
    database
        Packed targets.
    first, last
        Number of its first block, and of the one after the last.
    share
        As in `TargetChunk`.
    records
        Number of each record of `database` in all that is searched, if that is another one.
    lone
        Targets besides.
    alone
        Residues from which a target may be swept on its own.
    """
    order = database.order[first * BLOCK_LANES : last * BLOCK_LANES]
    numbers = order if records is None else np.where(order < 0, -1, records[order])
    blocks = TargetBlocks(
        database.packed, database.first_columns[first : last + 1], database.lengths[first:last]
    )
    whole = TargetPart(blocks, numbers.reshape(-1, BLOCK_LANES))
    counts = lone_lanes(blocks.lengths)
    if alone:
        counts = np.minimum(counts, (blocks.lengths >= alone).sum(axis=1))
    longest = list(lone)
    parts = []
    begin = 0
    for block in np.flatnonzero(counts).tolist():
        if block > begin:
            parts.append(whole.between(begin, block))
        begin = block + 1
        shorter, longer = _split(whole.between(block, block + 1), int(counts[block]))
        parts += shorter
        longest += longer
    if begin < len(counts):
        parts.append(whole.between(begin, len(counts)))
    return TargetChunk(tuple(parts), tuple(longest), share)


def _split(part: TargetPart, count: int) -> tuple[list[TargetPart], Iterator[LoneTarget]]:
    """A block without its first targets, and those."""
    (packed, first_columns, lengths), records = part
    start = int(first_columns[0])
    longer = (
        LoneTarget(int(records[0, lane]), packed[start : start + size, lane].copy(), size)
        for lane, size in enumerate(lengths[0, :count].tolist())
    )
    rest, numbers = lengths.copy(), records.copy()
    rest[0, :count], numbers[0, :count] = 0, -1
    columns = -(-int(rest.max()) // COLUMN_STEP) * COLUMN_STEP
    if not columns:
        # Empty targets score nothing.
        return [], longer
    blocks = TargetBlocks(packed, np.array([start, start + columns], np.int64), rest)
    return [TargetPart(blocks, numbers)], longer
