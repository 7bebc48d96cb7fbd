"""Sequences packed for search: 64 of like length side by side, one lane each.

A search reads one row of a block at a time, the residues of 64 sequences at one position::

    column 0    M M M M ...  M    64 lanes
    column 1    A K S E ...  T
    ...
    column 350  L - - - ...  -    sequences are sorted by length, so that little is padding
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.align.residues import (
    ALPHABETS,
    CODES,
    ILLEGAL_CODE,
    PAD_CODE,
    Kind,
    decode_residues,
    encode_residues,
)
from plait.errors import InvalidInput, Unsupported
from plait.formats.fasta import Sequences

__all__ = [
    "BLOCK_LANES",
    "COLUMN_STEP",
    "Layout",
    "SequenceDatabase",
    "Texts",
    "arrange",
    "lane_lengths",
    "pack_sequences",
    "packed_columns",
]

#: Sequences in a block.
BLOCK_LANES: Final = 64
#: The columns of a block are a multiple of this.
COLUMN_STEP: Final = 4

_LONGEST: Final = 2**31 - COLUMN_STEP
# Columns of one block that are put together at a time.
_MOST_COLUMNS: Final = 1 << 16
_PAD: Final = bytes([PAD_CODE])


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

    def sequence(self, index: int) -> NDArray[np.uint8]:
        """Codes of one record, numbered in order of input. Shape (residues,)."""
        block, lane = divmod(int(self.slots[index]), BLOCK_LANES)
        first = self.first_columns[block]
        return self.packed[first : first + self.lengths[block, lane], lane].copy()

    def letters(self, index: int) -> str:
        """One record, numbered in order of input, as text in capital letters."""
        return decode_residues(self.sequence(index), self.kind)


class Layout(NamedTuple):
    """Which sequence goes where.

    Attributes
    ----------
    order, lengths, first_columns
        As in `SequenceDatabase`.
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
