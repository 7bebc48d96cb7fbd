"""Blocks of targets side by side in lanes: packing, scores, traceback.

Narrow lanes first, wider ones for what did not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Target, interpreted, over_threads
from plait.dp.pairs.inter_sequence import (
    COLUMNS,
    LANE_TYPES,
    PAD,
    BlockQuery,
    BlockSetup,
    block_memory,
    block_setup,
    score_blocks_kernel,
    score_some_blocks,
)
from plait.dp.pairs.lists import read_only
from plait.errors import Unsupported
from plait.lang.compile import kernel, shared

#: Blocks for a thread at a time.
_SHARE_CELLS = 1 << 28
_Columns = TypeVar("_Columns", bound=tuple[NDArray[Any], ...])


class TargetBlocks(NamedTuple):
    """Targets side by side, see `plait.align.database.SequenceDatabase`.

    `packed` has uint8 codes, (columns, lanes of a block); `first_columns` is (blocks + 1,) int64 offsets into
    it. `lengths` is (blocks, lanes of a block), 0 in lanes without a target.
    """

    packed: NDArray[np.uint8]
    first_columns: NDArray[np.int64]
    lengths: NDArray[np.int32]

    def between(self, first: int, last: int) -> TargetBlocks:
        """The blocks `first` to `last`, exclusive, without a copy."""
        return TargetBlocks(self.packed, self.first_columns[first : last + 1], self.lengths[first:last])


def gap_cost(costs: Any, residues: NDArray[np.int64]) -> NDArray[np.int64]:
    """What gaps of so many residues cost; `costs` has ``gap_open`` and ``gap_extend``."""
    return np.where(residues > 0, costs.gap_open + (residues - 1) * costs.gap_extend, 0)


def offer_border(query: BlockQuery, lengths: NDArray[np.int32], scores: NDArray[np.int64]) -> None:
    """Offer the alignments without a pair of residues, which end at the border.

    `scores` has the best of the other alignments and is changed in place; any value where the target is
    empty.
    """
    free = query.free
    columns = lengths.astype(np.int64)
    if free.anywhere:
        np.maximum(scores, 0, out=scores)
        return
    query_gap = gap_cost(query, np.array(query.rows.size))
    target_gap = gap_cost(query, columns)
    if free.query_end:
        np.maximum(scores, 0 * target_gap if free.target_start else -target_gap, out=scores)
    if free.target_end:
        np.maximum(scores, 0 if free.query_start else -int(query_gap), out=scores)
    empty = columns == 0
    scores[empty] = 0 if free.query_start or free.query_end else -int(query_gap)


def _repacked(blocks: TargetBlocks, where: NDArray[np.int64]) -> tuple[TargetBlocks, NDArray[np.int64]]:
    """Some targets, by block and lane, in blocks of their own, and the number of the target in each lane."""
    sizes, firsts = blocks.lengths[*where.T], blocks.first_columns[where[:, 0]]
    places = zip(firsts, firsts + sizes, where[:, 1], strict=True)
    texts = [blocks.packed[first:last, lane].tobytes() for first, last, lane in places]
    layout = arrange(sizes)
    again = packed_blocks(b"".join(texts), np.cumsum(sizes) - sizes, layout)
    return again, layout.order[: len(where)]


def _score(
    call: Callable[..., Any],
    setup: BlockSetup,
    blocks: TargetBlocks,
    threads: int,
    progress: Callable[[int], None],
) -> NDArray[np.int64]:
    blocks = read_only(blocks)
    kind = setup.border.units.dtype
    lengths = np.minimum(blocks.lengths, np.iinfo(kind).max).astype(kind)
    widths = np.diff(blocks.first_columns)
    out = np.zeros(blocks.lengths.shape, kind)
    work = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)]) * (
        blocks.packed.shape[1] * setup.query.size
    )
    share = _SHARE_CELLS if threads == 1 else min(max(int(work[-1]) // (4 * threads), 1), _SHARE_CELLS)
    edges = np.append(np.searchsorted(work, np.arange(0, max(int(work[-1]), 1), share)), len(widths))
    edges = edges[np.diff(edges, prepend=-1) > 0]

    def run(share: tuple[int, int]) -> None:
        first, last = share
        chosen = np.arange(first, last)
        memory = block_memory(setup)
        call(setup, blocks.packed, blocks.first_columns, lengths, chosen, memory, out[first:last])
        progress(int(blocks.lengths[first:last].sum(dtype=np.int64)) * setup.query.size)

    over_threads(threads, list(pairwise(edges.tolist())), run)
    return out.astype(np.int64)


#: Lower than any score: of a lane that could not hold it, where that is asked for and it is one of few.
TOO_HIGH: Final = -(1 << 40)
_FEW_LANES: Final = 8


class BlockBatch(NamedTuple):
    """Queries, none empty, with the targets of blocks; on the CPU with `threads`, by default the caller's.

    Not `sure`: the score may be `TOO_HIGH` of a few lanes for which all of a block would be swept again. With
    `ranges`, int64 (queries, 2), each query is scored with those blocks alone, and all in one go: they are
    local, of scores that fit 8 bits, and differ in nothing but their `rows`.
    """

    queries: Sequence[BlockQuery]
    blocks: TargetBlocks
    progress: Callable[[int], None] = lambda cells: None
    threads: int = 1
    sure: bool = True
    ranges: NDArray[np.int64] | None = None

    @property
    def cells(self) -> int:
        """Cells of all matrices, of `ranges` those with all blocks."""
        return sum(query.rows.size for query in self.queries) * int(self.blocks.lengths.sum(dtype=np.int64))


class BestBatch(NamedTuple):
    """Queries, none empty, of which the best targets of blocks are asked for: those among the `most` best.

    `least`, one for each query, is what they score at the least.
    """

    queries: Sequence[BlockQuery]
    blocks: TargetBlocks
    least: Sequence[int]
    most: int


class BestLanes(NamedTuple):
    """Targets, in no order: numbers of their queries, of their lanes, through all blocks, and scores."""

    queries: NDArray[np.int64]
    lanes: NDArray[np.int64]
    scores: NDArray[np.int64]


def best_of_scores(scores: Sequence[NDArray[np.int64]], batch: BestBatch) -> BestLanes:
    """For each query the targets that score no less than the last of the best."""
    used = np.flatnonzero(batch.blocks.lengths)
    own = [best_lanes(number, used, own.ravel()[used], batch) for number, own in enumerate(scores)]
    return joined(own)


def joined(parts: Sequence[_Columns]) -> _Columns:
    """All of some named tuples of arrays."""
    return type(parts[0])(*map(np.concatenate, zip(*parts, strict=True)))


def best_lanes(
    number: int, lanes: NDArray[np.int64], scores: NDArray[np.int64], batch: BestBatch
) -> BestLanes:
    """Those of some lanes that score no less than the last of the best of a query, by its number."""
    least = batch.least[number]
    good = scores[scores >= least]
    if good.size > batch.most:
        least = np.partition(good, good.size - batch.most)[good.size - batch.most]
    best = np.flatnonzero(scores >= least)
    return BestLanes(np.full(best.size, number), lanes[best], scores[best])


def raised(
    queries: NDArray[np.int64], scores: NDArray[np.int64], least: NDArray[np.int64], most: int
) -> NDArray[np.int64]:
    """What each query's `most` best targets score at the least, `least` or more.

    `queries` are the numbers of those that the scores are of, each of another target of a query.
    """
    good = scores >= least[queries]
    queries, scores = queries[good], scores[good]
    if scores.size <= most:
        return least
    counts = np.bincount(queries, minlength=least.size)
    over = np.flatnonzero(counts > most)
    if not over.size:
        return least
    ordered = scores[np.lexsort((scores, queries))]
    higher = least.copy()
    higher[over] = ordered[np.cumsum(counts)[over] - most]
    return higher


def best_blocks(call: Callable[..., Any], batch: BestBatch, target: Target) -> BestLanes:
    """The best targets of each query; `call` is as for `run_blocks`."""
    return best_of_scores(score_blocks(call, BlockBatch(batch.queries, batch.blocks), target), batch)


def score_blocks(call: Callable[..., Any], batch: BlockBatch, target: Target) -> list[NDArray[np.int64]]:
    """Best scores of each query; `call` and results as for `run_blocks`."""
    queries, blocks, progress, threads, sure, ranges = batch
    if ranges is None or not queries:
        return [run_blocks(call, query, blocks, threads, progress, sure=sure) for query in queries]
    whole = queries[0]._replace(rows=np.concatenate([query.rows for query in queries]))
    setup = block_setup(whole, _widest(blocks), np.int8)
    assert setup is not None
    kept, counts = read_only(blocks), ranges[:, 1] - ranges[:, 0]
    chosen = np.concatenate([np.arange(*own) for own in ranges.tolist()])
    sizes = np.array([query.rows.size for query in queries])
    raw = np.zeros((chosen.size, blocks.lengths.shape[1]), np.int8)
    memory = block_memory(setup._replace(query=setup.query[: sizes.max()]))
    lengths = np.minimum(kept.lengths, np.iinfo(np.int8).max).astype(np.int8)
    together = score_queries_kernel if call is score_blocks_kernel else interpreted(score_queries_kernel)
    together(setup, sizes, kept.packed, kept.first_columns, lengths, chosen, counts, memory, raw)
    parts = np.split(raw, np.cumsum(counts)[:-1])
    found = [np.maximum(part.astype(np.int64) - setup.zero, 0) for part in parts]
    over = np.repeat(np.arange(sizes.size), counts)[(raw >= setup.ceiling).any(axis=1)]
    for k in np.unique(over).tolist():
        own = blocks.between(*ranges[k].tolist())
        found[k] = run_blocks(call, queries[k], own, threads, progress, LANE_TYPES[1:])
    return found


@kernel
def score_queries_kernel(
    setup: Any,
    sizes: Any,
    codes: Any,
    edges: Any,
    lengths: Any,
    blocks: Any,
    counts: Any,
    memory: Any,
    out: Any,
) -> None:
    """As `score_some_blocks`, with several queries, one behind the other in that of the setup.

    `sizes` are their residues, `counts` how many of the `blocks` are scored with each; both int64 (queries,).
    """
    lanes, gap, algebra, ends, rows, table, border, zero, ceiling = setup
    row = at = 0
    for k in range(sizes.size):
        query, own = rows[row : row + sizes[k]], slice(at, at + counts[k])
        part = BlockSetup(lanes, gap, algebra, ends, query, table, border, zero, ceiling)
        score_some_blocks(part, codes, edges, lengths, blocks[own], memory, out[own])
        row += sizes[k]
        at += counts[k]


def _widest(blocks: TargetBlocks) -> int:
    """Columns of the widest block, or residues of the longest target: the border has to be as wide."""
    return max(int(blocks.lengths.max(initial=0)), int(np.diff(blocks.first_columns).max(initial=0)))


def run_blocks(
    call: Callable[..., Any],
    query: BlockQuery,
    blocks: TargetBlocks,
    threads: int,
    progress: Callable[[int], None],
    kinds: tuple[Any, ...] = LANE_TYPES,
    sure: bool = True,
) -> NDArray[np.int64]:
    """Best score of a query, which is not empty, with every target.

    `call` is `plait.dp.pairs.inter_sequence.score_blocks_kernel` or its definition in Python; `kinds` are
    types of lanes to try, narrowest first; `progress` is told the cells of each share; `sure` as in
    `BlockBatch`. The result has the shape of ``blocks.lengths``; lanes without a target hold any value.
    """
    setups = (block_setup(query, _widest(blocks), kind) for kind in kinds)
    setup = next((setup for setup in setups if setup is not None), None)
    if setup is None:
        raise Unsupported("these scores", why="they could reach 2^31; scale scores and gap costs down")
    raw = _score(call, setup, blocks, threads, progress)
    scores = raw - setup.zero
    over = np.argwhere(raw >= setup.ceiling)
    left = not sure and len(over) <= raw.size // _FEW_LANES
    if over.size and not left:
        again, order = _repacked(blocks, over)
        wider = tuple(k for k in kinds if np.iinfo(k).max > np.iinfo(setup.border.top.dtype).max)
        found = run_blocks(call, query, again, threads, lambda cells: None, wider)
        scores[*over[order].T] = found.ravel()[: len(over)]
    offer_border(query, blocks.lengths, scores)
    if left:
        scores[*over.T] = TOO_HIGH
    return scores


@shared
def pack_block(
    letters: Any, starts: Any, lengths: Any, block: int, first: int, last: int, packed: Any
) -> None:
    """Fill the columns `first` to before `last` of `packed` with a block, up to the end of each text.

    `letters` has the uint8 codes of all texts; `starts` (int64) is where in it each text begins, `lengths`
    (int32) its letters, both (blocks, lanes). `packed` is uint8, (columns, lanes).
    """
    for lane in range(packed.shape[1]):
        start, column = starts[block, lane], packed[first:last, lane]
        own = letters[start : start + min(lengths[block, lane], last - first)]
        for k in range(own.size):
            column[k] = own[k]


@kernel
def pack_kernel(letters: Any, starts: Any, lengths: Any, first_columns: Any, packed: Any) -> None:
    """All blocks, see `plait.dp.pairs.blocks.pack_block`."""
    for block in range(first_columns.size - 1):
        first, last = first_columns[block], first_columns[block + 1]
        pack_block(letters, starts, lengths, block, first, last, packed)


#: Sequences in a block.
BLOCK_LANES: Final = 64
#: The columns of a block are a multiple of this.
COLUMN_STEP: Final = COLUMNS

_LONGEST: Final = 2**31 - COLUMN_STEP
#: Columns of one block that are put together at a time.
_MOST_COLUMNS: Final = 1 << 16
_PAD: Final = bytes([PAD])


class Layout(NamedTuple):
    """Which sequence goes where.

    `order` (blocks * 64,) is the number of the sequence in each lane, -1 in the lanes without one, the last
    of the last block. The longest come first, equal lengths in the order given. `lengths` is (blocks, 64), 0
    in lanes without one; `first_columns` (blocks + 1,) offsets of rows, multiples of `COLUMN_STEP`.
    """

    order: NDArray[np.int64]
    lengths: NDArray[np.int32]
    first_columns: NDArray[np.int64]

    @property
    def packed_bytes(self) -> int:
        """Size of the packed columns, padding included."""
        return int(self.first_columns[-1]) * BLOCK_LANES


def arrange(lengths: NDArray[np.signedinteger]) -> Layout:
    """Sort sequences by length, (n,), and deal them out to blocks; `Unsupported` from 2^31 residues on."""
    lengths = lane_lengths(lengths)
    own, left = np.argsort(-lengths, kind="stable"), -lengths.size % BLOCK_LANES
    lanes = np.append(lengths[own], np.zeros(left, np.int32)).reshape(-1, BLOCK_LANES)
    first_columns = np.zeros(len(lanes) + 1, np.int64)
    np.cumsum(-(-lanes[:, 0].astype(np.int64) // COLUMN_STEP) * COLUMN_STEP, out=first_columns[1:])
    return Layout(np.append(own, np.full(left, -1)), lanes, first_columns)


def pack_texts_by_group(
    letters: NDArray[np.uint8],
    firsts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> tuple[TargetBlocks, NDArray[np.int64], NDArray[np.int64]]:
    """Texts as for `pack_texts`, those of each group in blocks of their own.

    `groups` are numbers from 0, (n,), all of which occur. Behind the blocks: the lane of each text, counted
    from the first of the first block, and the first and end of the blocks of each group, (groups, 2).
    """
    order = np.lexsort((-lengths, groups))
    counts = np.bincount(groups)
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(-(-counts // BLOCK_LANES))])
    skipped = BLOCK_LANES * edges[:-1] - (np.cumsum(counts) - counts)
    lanes = np.empty(order.size, np.int64)
    lanes[order] = np.arange(order.size) + skipped[groups[order]]
    sizes, starts = np.zeros(BLOCK_LANES * edges[-1], np.int32), np.zeros(BLOCK_LANES * edges[-1], np.int64)
    sizes[lanes], starts[lanes] = lane_lengths(lengths), firsts
    sizes, starts = sizes.reshape(-1, BLOCK_LANES), starts.reshape(-1, BLOCK_LANES)
    widths = -(-sizes[:, 0].astype(np.int64) // COLUMN_STEP) * COLUMN_STEP
    first_columns = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
    packed = np.full((int(first_columns[-1]), BLOCK_LANES), PAD, np.uint8)
    pack_kernel(letters, starts, sizes, first_columns, packed)
    return TargetBlocks(packed, first_columns, sizes), lanes, np.stack([edges[:-1], edges[1:]], axis=1)


def lane_lengths(lengths: NDArray[np.signedinteger]) -> NDArray[np.int32]:
    """Lengths as 32-bit numbers; `Unsupported` if a sequence has 2^31 residues or more."""
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
    """Yield the packed columns of some blocks in order, uint8 (columns, 64), a block or less at a time.

    `residues` has a byte for each residue, `starts` is where the sequence of each lane starts, lanes without
    one at the end left out; `table` is the code of each byte, None if they are codes. At most `most` columns
    are given at once; they are padded and not contiguous.
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


def packed_blocks(
    residues: bytes, starts: NDArray[np.int64], layout: Layout, table: bytes | None = None
) -> TargetBlocks:
    """All blocks in memory, rows aligned to 64 bytes; `starts`, (n,), are in the order given to `arrange`."""
    columns = int(layout.first_columns[-1])
    room = np.empty((columns + 1) * BLOCK_LANES, np.uint8)
    first = -room.ctypes.data % BLOCK_LANES
    packed = room[first : first + columns * BLOCK_LANES].reshape(columns, BLOCK_LANES)
    own, at = starts[layout.order[: starts.size]], 0
    for part in packed_columns(residues, own, layout, range(len(layout.lengths)), _MOST_COLUMNS, table):
        packed[at : at + len(part)] = part
        at += len(part)
    return TargetBlocks(packed, layout.first_columns, layout.lengths)


def pack_texts(
    letters: NDArray[np.uint8],
    firsts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    call: Callable[..., None] = pack_kernel,
) -> tuple[TargetBlocks, NDArray[np.int64]]:
    """Texts in blocks, and the number of the text in each lane.

    `letters` has the codes of all texts and must be writable; `firsts` is where in it each begins; both (n,).
    `call` is `pack_kernel` or its definition in Python.
    """
    layout = arrange(lengths)
    order = layout.order[: firsts.size]
    starts = firsts[layout.order].reshape(layout.lengths.shape)
    packed = np.full((int(layout.first_columns[-1]), BLOCK_LANES), PAD, np.uint8)
    call(letters, starts, layout.lengths, layout.first_columns, packed)
    return TargetBlocks(packed, layout.first_columns, layout.lengths), order


class SweepShape(NamedTuple):
    """What is swept at a time.

    `tasks` run at a time (None: one a thread), `waiting` more wait for each. A task has at most `queries`
    queries (a target that has targets sent to it wants many), and cells enough to make its preparation small,
    few enough to stop soon. `database_bytes` are bytes of FASTA text, and of packed columns, in a piece of
    the database; what is packed is cut into a multiple of `tasks` pieces, so that all end together. From
    `alone` residues on, a target much longer than its neighbours is swept on its own: `stretches` of it are
    cut up at a time, into pieces of at most `piece_blocks` blocks.
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
_PARTS: Final = 2


def sweep_shape(target: Target) -> SweepShape:
    """What is best swept at a time: for GPUs large pieces of the database, many queries with each."""
    if not target.devices:
        return CPU_SHAPE
    return SweepShape(
        tasks=_PARTS * len(target.devices),
        waiting=1,
        queries=256,
        least_cells=1 << 42,
        most_cells=1 << 42,
        database_bytes=1 << 25,
        alone=1 << 20,
        stretches=8,
        piece_blocks=64,
    )
