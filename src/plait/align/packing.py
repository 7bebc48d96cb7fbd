"""Sequences packed for search: 64 of like length side by side, one lane each.

A search reads one row of a block at a time, the residues of 64 sequences at one position::

    column 0    M M M M ...  M    64 lanes
    column 1    A K S E ...  T
    ...
    column 350  L - - - ...  -    sequences are sorted by length, so that little is padding
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.align.residues import (
    ALPHABETS,
    CODES,
    ILLEGAL_CODE,
    Kind,
    decode_residues,
    encode_residues,
)
from plait.errors import InvalidInput
from plait.formats.fasta import Sequences
from plait.targets.lane_blocks import BLOCK_LANES, arrange, packed_columns

__all__ = ["SequenceDatabase", "Texts", "pack_sequences"]

# Columns of one block that are put together at a time.
_MOST_COLUMNS: Final = 1 << 16


class Texts(Protocol):
    """Texts by number; a list is one."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, index: int, /) -> str:
        """One of them."""


@dataclass(frozen=True, eq=False, repr=False)
class SequenceDatabase:
    """Packed sequences, in memory or in a memory-mapped file.

    The longest sequences come first, those of equal length in order of input, so that the first blocks are
    the most work. Codes are those of `plait.align.residues.ALPHABETS`; case is not kept. The arrays cannot
    be written to.

    Attributes
    ----------
    kind
        ``"protein"`` or ``"dna"``.
    packed
        Codes: ``packed[column, lane]``, `PAD_CODE` behind the end of a sequence and in lanes without one.
        Block b has the rows ``first_columns[b]:first_columns[b + 1]``. Rows are aligned to 64 bytes. Shape
        (columns, 64).
    first_columns
        First row of each block; all are multiples of 4. Shape (blocks + 1,).
    lengths
        Residues of the sequence in each lane of each block; 0 in lanes without one. Shape (blocks, 64).
    order
        Number of the record in each lane, counted from 0 in order of input; -1 in lanes without one; those
        are the last of the last block. Shape (blocks * 64,).
    names, descriptions
        First word and rest of the header of each record, in order of input.
    """

    kind: Kind
    packed: NDArray[np.uint8]
    first_columns: NDArray[np.int64]
    lengths: NDArray[np.int32]
    order: NDArray[np.int64]
    names: Texts
    descriptions: Texts

    def __len__(self) -> int:
        return len(self.names)

    @property
    def alphabet(self) -> str:
        """Letters in the order of their codes."""
        return ALPHABETS[self.kind]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.lengths)

    @property
    def longest(self) -> int:
        """Residues of the longest sequence."""
        return int(self.lengths[0, 0]) if self.blocks else 0

    @cached_property
    def residues(self) -> int:
        """Residues of all sequences."""
        return int(self.lengths.sum(dtype=np.int64))

    @cached_property
    def slots(self) -> NDArray[np.int64]:
        """Where each record is: slot s is lane ``s % 64`` of block ``s // 64``. Shape (n,)."""
        slots = np.empty(len(self), np.int64)
        slots[self.order[: len(self)]] = np.arange(len(self))
        return slots

    def columns(self, first: int, last: int) -> NDArray[np.uint8]:
        """Some of the packed columns.

        Parameters
        ----------
        first, last
            Number of the first, and of the one after the last.
        """
        return self.packed[first:last]

    def sequence(self, index: int) -> NDArray[np.uint8]:
        """Codes of one record, numbered in order of input. Shape (residues,)."""
        block, lane = divmod(int(self.slots[index]), BLOCK_LANES)
        first = int(self.first_columns[block])
        return self.columns(first, first + int(self.lengths[block, lane]))[:, lane].copy()

    def letters(self, index: int) -> str:
        """One record, numbered in order of input, as text in capital letters."""
        return decode_residues(self.sequence(index), self.kind)


def pack_sequences(
    sequences: Sequences,
    path: str | os.PathLike[str],
    *,
    kind: Kind,
    memory_limit: int = 1 << 32,
) -> SequenceDatabase:
    """Pack some records in memory.

    Parameters
    ----------
    sequences
        The records.
    path
        Their file, for messages.
    kind
        ``"protein"`` or ``"dna"``.
    memory_limit
        Bytes that the packed columns may take, padding included: 64 times the longest sequence, at least.

    Returns
    -------
    SequenceDatabase
        The packed records, numbered as in `sequences`.

    Raises
    ------
    FormatError
        If a letter is none of the kind's.
    InvalidInput
        If `memory_limit` is too low.
    Unsupported
        If a sequence has 2^31 residues or more.
    """
    layout = arrange(sequences.lengths)
    if layout.packed_bytes > memory_limit:
        longest = int(layout.order[0])
        raise InvalidInput(
            "memory_limit",
            found=f"{memory_limit:,} bytes",
            expected=f"at least {layout.packed_bytes:,} to pack {len(sequences):,} sequences of {path}, the "
            f"longest {sequences.names[longest]!r} with {int(layout.lengths[0, 0]):,} residues",
        )
    packed = _aligned(int(layout.first_columns[-1]))
    starts = sequences.offsets[layout.order[: len(sequences)]]
    first = 0
    blocks = range(len(layout.lengths))
    table = CODES[kind]
    for columns in packed_columns(sequences.letters.tobytes(), starts, layout, blocks, _MOST_COLUMNS, table):
        packed[first : first + len(columns)] = columns
        first += len(columns)
    if packed.size and packed.max() == ILLEGAL_CODE:
        encode_residues(path, sequences, kind)
    for array in (packed, *layout):
        array.setflags(write=False)
    return SequenceDatabase(
        kind=kind,
        packed=packed,
        first_columns=layout.first_columns,
        lengths=layout.lengths,
        order=layout.order,
        names=sequences.names,
        descriptions=sequences.descriptions,
    )


def _aligned(columns: int) -> NDArray[np.uint8]:
    room = np.empty((columns + 1) * BLOCK_LANES, np.uint8)
    first = -room.ctypes.data % BLOCK_LANES
    return room[first : first + columns * BLOCK_LANES].reshape(columns, BLOCK_LANES)
