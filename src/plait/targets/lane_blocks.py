"""Sequences side by side in lanes: 64 of like length in a block, and the bytes of a block.

A block is read row by row, the residues of 64 sequences at one position: see
`plait.schedules.inter_sequence`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.errors import Unsupported
from plait.schedules.inter_sequence import COLUMNS, PAD
from plait.targets.block_lists import TargetBlocks
from plait.targets.packing_kernels import pack_kernel

__all__ = [
    "BLOCK_LANES",
    "COLUMN_STEP",
    "Layout",
    "arrange",
    "lane_lengths",
    "pack_texts",
    "packed_columns",
]

#: Sequences in a block.
BLOCK_LANES: Final = 64
#: The columns of a block are a multiple of this.
COLUMN_STEP: Final = COLUMNS

_LONGEST: Final = 2**31 - COLUMN_STEP
_PAD: Final = bytes([PAD])


class Layout(NamedTuple):
    """Which sequence goes where.

    Attributes
    ----------
    order
        Number of the sequence in each lane; -1 in lanes without one, which are the last of the last block.
        The longest come first, those of equal length in the order given. Shape (blocks * 64,).
    lengths
        Residues of the sequence in each lane of each block; 0 in lanes without one. Shape (blocks, 64).
    first_columns
        First row of each block, and the end of the last; multiples of `COLUMN_STEP`. Shape (blocks + 1,).
    """

    order: NDArray[np.int64]
    lengths: NDArray[np.int32]
    first_columns: NDArray[np.int64]

    @property
    def packed_bytes(self) -> int:
        """Size of the packed columns, padding included."""
        return int(self.first_columns[-1]) * BLOCK_LANES


def arrange(lengths: NDArray[np.signedinteger]) -> Layout:
    """Sort sequences by length and deal them out to blocks.

    Parameters
    ----------
    lengths
        Residues of each sequence. Shape (n,).

    Returns
    -------
    Layout
        The places.

    Raises
    ------
    Unsupported
        If a sequence has 2^31 residues or more.
    """
    lengths = lane_lengths(lengths)
    blocks = -(-lengths.size // BLOCK_LANES)
    order = np.full(blocks * BLOCK_LANES, -1, np.int64)
    order[: lengths.size] = np.argsort(-lengths, kind="stable")
    sorted_lengths = np.zeros(blocks * BLOCK_LANES, np.int32)
    sorted_lengths[: lengths.size] = lengths[order[: lengths.size]]
    lanes = sorted_lengths.reshape(blocks, BLOCK_LANES)
    first_columns = np.zeros(blocks + 1, np.int64)
    np.cumsum(-(-lanes[:, 0].astype(np.int64) // COLUMN_STEP) * COLUMN_STEP, out=first_columns[1:])
    return Layout(order, lanes, first_columns)


def lane_lengths(lengths: NDArray[np.signedinteger]) -> NDArray[np.int32]:
    """Lengths as 32-bit numbers.

    Raises
    ------
    Unsupported
        If a sequence has 2^31 residues or more.
    """
    if lengths.size and int(lengths.max()) > _LONGEST:
        raise Unsupported(f"a sequence of {int(lengths.max()):,} residues", why=f"the most is {_LONGEST:,}")
    return lengths.astype(np.int32, copy=False)


class _Bytes(Protocol):
    """What gives bytes for a slice: bytes, or a memory-mapped file."""

    def __getitem__(self, where: slice, /) -> bytes: ...


def packed_columns(
    residues: _Bytes,
    starts: NDArray[np.int64],
    layout: Layout,
    blocks: range,
    most: int,
    table: bytes | None = None,
) -> Iterator[NDArray[np.uint8]]:
    """The packed columns of some blocks in order, a block or less at a time.

    Parameters
    ----------
    residues
        Sequences, one behind the other, a byte for each residue.
    starts
        Where in it the sequence of each lane of these blocks starts; lanes without one at the end left out.
    layout
        The places.
    blocks
        Numbers of the blocks.
    most
        Columns that may be given at once.
    table
        Code of each byte of `residues`, or None if they are codes.

    Yields
    ------
    ndarray of uint8
        Codes by column and lane, padded; not contiguous. Shape (columns, 64).
    """
    for block in blocks:
        lanes = slice((block - blocks.start) * BLOCK_LANES, (block - blocks.start + 1) * BLOCK_LANES)
        places = starts[lanes].tolist()
        lengths = layout.lengths[block, : len(places)].tolist()
        columns = int(layout.first_columns[block + 1] - layout.first_columns[block])
        for first in range(0, columns, most):
            last = min(first + most, columns)
            # Cut, padded and translated as bytes: twice as fast as with slices of arrays.
            rows = [
                residues[place + first : place + min(length, last)].ljust(last - first, _PAD)
                for place, length in zip(places, lengths, strict=True)
            ]
            codes = b"".join(rows).ljust(BLOCK_LANES * (last - first), _PAD).translate(table)
            yield np.frombuffer(codes, np.uint8).reshape(BLOCK_LANES, last - first).T


def pack_texts(
    letters: NDArray[np.uint8], firsts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[TargetBlocks, NDArray[np.int64]]:
    """Texts in blocks, and the number of the text in each lane.

    Parameters
    ----------
    letters
        Codes of all texts, writable.
    firsts
        Where in it each text begins, int64, shape (n,).
    lengths
        Letters of each, int64, shape (n,).
    """
    layout = arrange(lengths)
    order = layout.order[: firsts.size]
    starts = np.zeros(layout.lengths.shape, np.int64)
    starts.ravel()[: firsts.size] = firsts[order]
    packed = np.full((int(layout.first_columns[-1]), BLOCK_LANES), PAD, np.uint8)
    pack_kernel(letters, starts, layout.lengths, layout.first_columns, packed)
    return TargetBlocks(packed, layout.first_columns, layout.lengths), order
