"""A database laid out for a search: sequences of like length side by side, long ones in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import align_batch
from plait.align.codes import (
    ALPHABETS,
    CODES,
    ILLEGAL_CODE,
    PAD_CODE,
    Kind,
    PairBatch,
    code_list,
    decode_residues,
    encode_residues,
)
from plait.align.results import Alignment
from plait.align.scoring import Scoring
from plait.devices.target import Target
from plait.dp.pairs.blocks import (
    BLOCK_LANES,
    COLUMN_STEP,
    TargetBlocks,
    arrange,
    packed_columns,
    sweep_shape,
)
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.launches import BLOCK_SCORES, BlockBatch
from plait.dp.pairs.lists import FreeEnds
from plait.errors import InvalidInput
from plait.formats.fasta import Sequences

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
    """Packed sequences, in memory or in a memory-mapped file; the arrays cannot be written to.

    The longest sequences come first, those of equal length in order of input, so that the first blocks are
    the most work. Codes are those of `plait.align.codes.ALPHABETS`; case is not kept.

    Block b has the rows ``first_columns[b]:first_columns[b + 1]`` of `packed`, (columns, 64):
    ``packed[column, lane]`` is a code, `PAD_CODE` behind the end of a sequence and in lanes without one. Rows
    are aligned to 64 bytes; `first_columns`, (blocks + 1,), are multiples of 4. `lengths`, (blocks, 64), are
    residues, 0 in lanes without a sequence. `order`, (blocks * 64,), is the number of the record in each
    lane, from 0 in order of input; -1 in lanes without one, which are the last of the last block. `names` and
    `descriptions` are first word and rest of the header of each record, in order of input.
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
        """The packed columns `first` to `last`, exclusive."""
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
    """Pack some records in memory, numbered as in `sequences`; `path` is their file, for messages.

    `memory_limit` is bytes that the packed columns may take, padding included: 64 times the longest sequence,
    at least. `FormatError` if a letter is none of the kind's, `InvalidInput` if `memory_limit` is too low,
    `Unsupported` if a sequence has 2^31 residues or more.
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


#: A residue swept in a pair of its own costs as much time as so many residues in lanes,
_LONE_RESIDUE: Final = 16
#: and the pair itself as much as so many more.
_LONE_PAIR: Final = 1 << 16


class TargetPart(NamedTuple):
    """Neighbouring blocks; `records`, (blocks, 64), are the record in each lane, -1 in lanes without one."""

    blocks: TargetBlocks
    records: NDArray[np.int64]

    @property
    def columns(self) -> int:
        """Columns of all blocks."""
        return int(self.blocks.first_columns[-1] - self.blocks.first_columns[0])

    def between(self, first: int, last: int) -> TargetPart:
        """The blocks `first` to `last`, exclusive, without a copy."""
        packed, first_columns, lengths = self.blocks
        blocks = TargetBlocks(packed, first_columns[first : last + 1], lengths[first:last])
        return TargetPart(blocks, self.records[first:last])


class LoneTarget(NamedTuple):
    """A target that is swept on its own.

    `codes`, of `plait.align.codes.ALPHABETS`, are those of all of it or a stretch of it; `length` is always
    the residues of all of it.
    """

    record: int
    codes: NDArray[np.uint8]
    length: int


class TargetChunk(NamedTuple):
    """A piece of a database: `parts` go into lanes, `lone` targets do not.

    `share` is the share of the whole database that ends with this piece, 0 to 1, as far as it is known.
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
    k + 1. `lengths`, (blocks, 64), are residues, falling within each block; returns (blocks,).
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
    """A piece of packed targets: the blocks `first` to `last`, exclusive; `share` as in `TargetChunk`.

    `records` has the number of each record of `database` in all that is searched, if that is another one;
    `lone` are targets besides; `alone` is residues from which a target may be swept on its own.
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


#: Residues that are cut up at a time.
_STRETCH: Final = 1 << 22
#: Overlaps must be this much shorter than what is cut up, or a pair of its own takes less time.
_LEAST_RATIO: Final = 5


class Pieces(NamedTuple):
    """Scores of pieces, which start at `starts` in the target; all but the last have `size` residues."""

    starts: NDArray[np.int64]
    size: int
    scores: NDArray[np.int64]


def reach_of(query: BlockQuery, size: int) -> int | None:
    """Residues of a target of `size` that an alignment of positive score can span; None: better not cut."""
    if query.gap_extend < 1:
        return None
    earned = int(np.maximum(query.scores.max(axis=1), 0)[query.rows].sum(dtype=np.int64))
    reach = query.rows.size + max(earned - 1, 0) // query.gap_extend
    return reach if _LEAST_RATIO * reach <= min(size, _STRETCH) else None


def stretches(size: int, reach: int, times: int = 1) -> Iterator[tuple[int, int, int]]:
    """Stretches of ``times * 2**22`` residues to cut up one after the other; like pieces, they overlap.

    Yields start, end (exclusive), and residues that no stretch before has; `reach` is that of `reach_of`.
    """
    most = times * _STRETCH
    for start in range(0, size, most):
        own = min(most, size - start)
        yield start, min(start + own + reach, size), own


def score_pieces(query: BlockQuery, codes: NDArray[np.uint8], reach: int, target: Target) -> Pieces:
    """Local scores of a query with all pieces of a stretch; `reach` is that of `reach_of`.

    `codes` are the stretch, in codes that `query` has scores for.
    """
    # Several blocks only where the overlaps stay small beside the pieces.
    count = codes.size // max(_LEAST_RATIO * BLOCK_LANES * reach, 1)
    count = max(min(count, sweep_shape(target).piece_blocks), 1)
    step = -(-codes.size // (count * BLOCK_LANES))
    columns = -(-min(step + reach, codes.size) // COLUMN_STEP) * COLUMN_STEP
    padded = np.full(step * count * BLOCK_LANES + columns, PAD_CODE, np.uint8)
    padded[: codes.size] = codes
    starts = step * np.arange(count * BLOCK_LANES)
    shape, strides = (count, columns, BLOCK_LANES), (BLOCK_LANES * step, 1, step)
    across = np.lib.stride_tricks.as_strided(padded, shape, strides, writeable=False)
    lengths = np.clip(codes.size - starts, 0, columns)
    blocks = TargetBlocks(
        np.ascontiguousarray(across).reshape(-1, BLOCK_LANES),
        columns * np.arange(count + 1),
        lengths.astype(np.int32).reshape(count, BLOCK_LANES),
    )
    scores = target.launch(BLOCK_SCORES, BlockBatch([query], blocks))[0].ravel()
    used = lengths > 0
    return Pieces(starts[used], columns, scores[used])


def align_long_target(
    query: tuple[BlockQuery, NDArray[np.uint8]],
    codes: NDArray[np.uint8],
    columns: NDArray[np.uint8],
    score: int,
    scoring: Scoring,
    free: FreeEnds,
    target: Target,
) -> Alignment | None:
    """The local alignment of a query with a long target, found without sweeping all of it again pair-wise.

    `query` is the query for lanes, and as indices into the matrix; `codes` are the target, in codes that the
    former has scores for, and `columns` the index into the matrix of each code; `score` is their best score,
    above 0. None if the target had better not be cut, or `score` is not reached.
    """
    in_lanes, indices = query
    reach = reach_of(in_lanes, codes.size)
    if reach is None:
        return None

    def aligned(first: int, last: int) -> Alignment:
        part = code_list([columns[codes[first:last]]])
        found = align_batch(PairBatch(code_list([indices]), part), scoring, free, target)[0]
        return replace(found, target_start=found.target_start + first, target_end=found.target_end + first)

    ends = []
    for first, last, _ in stretches(codes.size, reach, sweep_shape(target).stretches):
        pieces = score_pieces(in_lanes, codes[first:last], reach, target)
        for start in pieces.starts[pieces.scores == score].tolist():
            found = aligned(first + start, min(first + start + pieces.size, last))
            ends.append((found.query_end, found.target_end))
    if not ends:
        return None
    # A piece may hold only some of the alignments that end there; this holds all of them.
    _, end = min(ends)
    return aligned(max(end - reach, 0), end)
