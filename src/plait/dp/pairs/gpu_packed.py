"""Local scores of one query against many targets on a GPU, two targets to a 32-bit word."""

from __future__ import annotations

import functools
import threading
from typing import Any, NamedTuple

import numpy as np

from plait.devices.cuda import SIMULATED, cuda
from plait.dp.pairs.gaps import AffineGap
from plait.dp.pairs.gpu_packed_kernels import (
    BLOCK,
    BLOCKS,
    GAP,
    LETTERS,
    PADDING_LETTER,
    ROWS,
    Costs,
    bundle,
    clear,
    flag,
    search_kernel,
    striped_kernel,
)
from plait.errors import InvalidInput, Unsupported
from plait.lang.packed import PACKED_LIMIT, IntegerStep, half_bits, pack

#: Threads per pair of targets, and rows per thread, for which kernels are made.
_THREADS = (8, 16, 32)
_ROWS = tuple(range(4, ROWS + 1, 4))
#: Instructions of a column beside those of its rows, and of the values above and below a stripe.
_PER_ROW, _PER_COLUMN, _PER_EDGE = 7, 22, 20


class Shape(NamedTuple):
    """How the query is spread: threads for a pair of targets, rows of each thread, stripes of the query."""

    threads: int
    rows: int
    stripes: int

    @property
    def pairs(self) -> int:
        """Pairs of targets that a warp works on."""
        return 32 // self.threads


def _cost(shape: Shape, columns: float) -> float:
    """Instructions that a warp issues for a pair of targets."""
    per_column = _PER_ROW * shape.rows + _PER_COLUMN + (_PER_EDGE if shape.stripes > 1 else 0)
    return shape.stripes * per_column * (columns + shape.threads) / shape.pairs


def shape_of(
    query: int, targets: int, residues: int, warps: int, longest: int = 0, span: int | None = None
) -> Shape:
    """The shape that takes the fewest instructions.

    `query` and `longest` are lengths in residues, `residues` those of all `targets`, `warps` those that run
    at a time: a few targets, or one longer than all others together take, are spread over more threads.
    `span` is the most columns over which a best alignment reaches: with a query of one stripe, targets are
    cut.
    """
    columns = residues / max(targets, 1)
    cut = longest if span is None else min(longest, 3 * span)

    def time(shape: Shape) -> float:
        units = -(-targets // (2 * shape.pairs))
        alone = _cost(shape, max(columns, cut if shape.stripes == 1 else longest))
        return shape.pairs * max(_cost(shape, columns) * units / warps, alone)

    shapes = [Shape(threads, rows, 1) for threads in _THREADS for rows in _ROWS if threads * rows >= query]
    shapes += [
        Shape(threads, rows, -(-query // (threads * rows)))
        for threads in _THREADS
        for rows in _ROWS
        if threads * rows < query
    ]
    return min(shapes, key=lambda shape: (time(shape), shape.threads))


def shared_bytes(shape: Shape) -> int:
    """Shared memory of a block: the profile of a stripe."""
    return LETTERS * -(-shape.rows // 8) * 16 * shape.threads


def warps_of(multiprocessors: int) -> int:
    """Warps that a device runs at a time."""
    return multiprocessors * BLOCKS * BLOCK // 32


def longest_span(query: int, gain: int, gap_open: int, gap_extend: int) -> int | None:
    """Most residues of a target that a best local alignment can have; None without a limit.

    Its score is positive, so gaps cost less than `gain`, the sum of the best scores of all rows. A gap of k
    residues costs at least k times the lesser of the two costs.
    """
    least = min(gap_open, gap_extend)
    return query + max(gain - 1, 0) // least if least > 0 else None


def pieces_of(lengths: Any, span: int | None, warps: int, least: int = 1024) -> tuple[Any, int]:
    """Cut long units into pieces that overlap, so that no warp works on when the others are done.

    `lengths` are columns of the units, longest first; `span` the most columns over which a best alignment
    reaches; pieces are no shorter than `least`. Returns unit, first column and columns of each piece, int32
    (n, 3), longest first, and the number of the unit from which on none is cut.
    """
    none = np.zeros((0, 3), np.int32)
    if span is None or lengths.size == 0:
        return none, 0
    share = int(lengths.sum()) // warps
    # Half of a piece at most is overlap, which is work done twice.
    piece = max(share // 4, 2 * span, least)
    whole = int(np.searchsorted(-lengths, -(piece + piece // 2), side="left"))
    rows = []
    for unit, length in enumerate(lengths[:whole].tolist()):
        count = -(-(length - span) // (piece - span))
        step = -(-(length - span) // count)
        rows += [(unit, k * step, min(step + span, length - k * step)) for k in range(count)]
    if not rows:
        return none, 0
    pieces = np.array(rows, np.int32)
    return pieces[np.argsort(-pieces[:, 2], kind="stable")], whole


#: Targets of a bundle.
_BUNDLE = 8


class PackedTargets:
    """Targets on the current device, in pairs of like length; `codes` may be on the host or on the device.

    `codes` are uint8, (total,): letters 0 to 31, others score nothing; `offsets` int64, (n + 1,), into them.
    The layout is made in `stream`; `memory` gives arrays that are used again in its order, by
    ``room(name, shape, dtype)`` and ``upload(name, values)``; then only the targets made last with it can be
    searched. `lengths` is int32, longest first, filled up with 0 to whole bundles.
    """

    def __init__(self, codes: Any, offsets: Any, stream: Any = 0, memory: Any = None) -> None:
        offsets = np.ascontiguousarray(offsets, np.int64)
        self.size = offsets.size - 1
        lengths = np.diff(offsets)
        longest = int(lengths.max(initial=0))
        if lengths.size and int(lengths.min()) < 0:
            raise InvalidInput("offsets", found="a smaller one after a larger one", expected="none decreases")
        # Keys of 16 bits are sorted by radix, ten times as fast.
        keys = longest - lengths
        order = np.arange(self.size)
        if (keys[1:] < keys[:-1]).any():
            order = np.argsort(keys.astype(np.uint16) if longest < 1 << 16 else keys, kind="stable")
        bundles = -(-self.size // _BUNDLE)
        self.lengths = np.zeros(bundles * _BUNDLE, np.int32)
        self.lengths[: self.size] = lengths[order]
        widths = self.lengths[::_BUNDLE].astype(np.int64) + GAP
        bases = np.full(bundles + 1, GAP, np.int64)
        np.cumsum(widths, out=bases[1:])
        bases[1:] += GAP
        self.bases = bases
        self.residues = int(offsets[-1] - offsets[0])
        self.columns = int(bases[-1]) + GAP
        # Places in letters and in the rows between stripes have 32 bits.
        if self.columns * 8 >= 1 << 32:
            raise InvalidInput("targets", found=f"{self.residues} residues", expected="fewer in one batch")
        self.memory = _Fresh(stream) if memory is None else memory
        self._order = self.memory.upload("packed order", order.astype(np.int32))
        self._lengths = self.memory.upload("packed lengths", self.lengths)
        self._bases = self.memory.upload("packed bases", bases)
        self._letters = self.memory.room("packed letters", self.columns * 4, np.uint16)
        on_device = codes if hasattr(codes, "__cuda_array_interface__") else _sent(_filled(codes), stream)
        places = self.memory.upload("packed offsets", offsets)
        bundle.launch(
            bundles + 1,
            128,
            on_device,
            places,
            self._order,
            self._bases,
            self._lengths,
            self._letters,
            stream=stream,
        )
        # Until the layout is made, the memory from which it is made must not be given back.
        self._sources = (on_device, places)

    @property
    def layout(self) -> tuple[Any, ...]:
        """Device arrays: letters, first columns of the bundles, lengths and order."""
        return self._letters, self._bases, self._lengths, self._order


class PackedQuery:
    """A query, its scores and its costs, as packed lanes need them.

    `codes` are uint8, (m,), 0 to 31 (else `InvalidInput`); `table` is (32, 32), letter of the query (row) and
    of a target (column); costs are of the first and each further residue of a gap. `possible`: packed lanes
    hold the costs, none is negative; `span`: see `longest_span`.
    """

    def __init__(self, codes: Any, table: Any, gap_open: int, gap_extend: int) -> None:
        self.codes = np.ascontiguousarray(codes, np.uint8)
        if self.codes.size and int(self.codes.max()) > 31:
            raise InvalidInput("query", found="a letter above 31", expected="letters from 0 to 31")
        scores = np.full((32, LETTERS), -(PACKED_LIMIT - 1), np.int32)
        scores[:, :PADDING_LETTER] = np.clip(table, -(PACKED_LIMIT - 1), PACKED_LIMIT)
        self.scores = scores
        self.gap_open, self.gap_extend = int(gap_open), int(gap_extend)
        self.possible = self.gap_open >= 0 and self.gap_extend >= 0
        gain = int(np.maximum(scores.max(axis=1), 0)[self.codes].sum()) if self.codes.size else 0
        self.span = longest_span(self.codes.size, gain, self.gap_open, self.gap_extend)
        self._profiles: dict[Any, Any] = {}
        self._lock = threading.Lock()

    @property
    def costs(self) -> Costs:
        """The costs as steps of packed lanes."""
        opening, further = (-min(cost, PACKED_LIMIT) for cost in (self.gap_open, self.gap_extend))
        gaps = AffineGap(IntegerStep(pack(opening, opening)), IntegerStep(pack(further, further)))
        return Costs(gaps, np.int32(0))

    def profile(self, shape: Shape) -> Any:
        """Scores as half-precision numbers, int32 words [stripe][letter][eight rows][thread][two rows].

        Rows after the last one of the query, which fill up the shape, have scores that nothing comes of.
        """
        chunks = -(-shape.rows // 8)
        rows = np.full((shape.stripes, shape.threads, chunks * 8), -1, np.int64)
        query = np.full(shape.stripes * shape.threads * shape.rows, -1, np.int64)
        query[: self.codes.size] = self.codes
        rows[:, :, : shape.rows] = query.reshape(shape.stripes, shape.threads, shape.rows)
        scores = np.concatenate([self.scores, np.full((1, LETTERS), -(PACKED_LIMIT - 1), np.int32)])
        halves = half_bits(scores)[rows]
        halves = halves.reshape(shape.stripes, shape.threads, chunks, 8, LETTERS)
        return np.ascontiguousarray(halves.transpose(0, 4, 2, 1, 3)).reshape(-1).view(np.int32)

    def on_device(self, shape: Shape, stream: Any) -> Any:
        """The profile on the current device, sent once."""
        key = (shape, 0 if SIMULATED else cuda.get_current_device().id)
        with self._lock:
            if key not in self._profiles:
                self._profiles[key] = _sent(self.profile(shape), stream)
                if stream:
                    # Other streams may use it next.
                    stream.synchronize()
            return self._profiles[key]


def packed_scores(query: PackedQuery, targets: PackedTargets, out: Any, stream: Any = 0) -> None:
    """Best local score of the query, which must be ``possible``, with every target.

    `out`, int32 (n,) on the device, is filled in the order in which targets were given; -1 where packed lanes
    are not exact. The kernels run in `stream` and are not waited for.
    """
    if not query.possible:
        raise Unsupported("gaps that are worth something", why="packed lanes cannot hold them; use 32 bits")
    scores_in_shape(shape_for(query, targets), query, targets, out, stream=stream)


def shape_for(query: PackedQuery, targets: PackedTargets) -> Shape:
    """How `packed_scores` spreads the query over the threads of the current device."""
    warps = warps_of(_multiprocessors())
    longest = int(targets.lengths[0]) if targets.size else 0
    return shape_of(query.codes.size, targets.size, targets.residues, warps, longest, query.span)


def scores_in_shape(
    shape: Shape, query: PackedQuery, targets: PackedTargets, out: Any, *, stream: Any = 0, block: int = BLOCK
) -> None:
    """As `packed_scores`, with the query spread over threads in a given way."""
    memory = targets.memory
    counter = memory.room("packed counter", 1, np.int32)
    blocks = min(BLOCKS * _multiprocessors(), -(-targets.size // 16) + 1)
    warps = blocks * block // 32
    striped = shape.stripes > 1
    clear.launch(
        -(-max(targets.size, 1) // 256),
        256,
        out,
        np.int32(blocks if striped else warps),
        counter,
        stream=stream,
    )
    if targets.size and query.codes.size:
        words = query.on_device(shape, stream)
        units = -(-targets.size // (2 * shape.pairs))
        if striped:
            edges = _edges(targets, warps * shape.pairs)
            kernel = striped_kernel(shape.threads, shape.rows)
            numbers = np.int32(shape.stripes), np.int32(units)
            rest: tuple[Any, ...] = (*numbers, words, query.costs, edges, counter, out)
        else:
            columns = targets.lengths[:: 2 * shape.pairs][:units]
            pieces, whole = pieces_of(columns, query.span, warps)
            sent = memory.upload("packed pieces", pieces if len(pieces) else np.zeros((1, 3), np.int32))
            counts = np.int32(len(pieces)), np.int32(whole), np.int32(len(pieces) + units - whole)
            rest = (sent, *counts, words, query.costs, counter, out)
            kernel = search_kernel(shape.threads, shape.rows)
        kernel.launch(blocks, block, *targets.layout, *rest, stream=stream, shared=shared_bytes(shape))
    flag.launch(-(-max(targets.size, 1) // 256), 256, out, np.int32(PACKED_LIMIT), stream=stream)


def packed_bytes(n: int, total: int, m: int, longest: int | None = None) -> int:
    """Device memory in bytes for `n` targets of `total` residues and a query of `m`.

    `longest` is the length of the longest target, which stands in a bundle with shorter ones; 65,536 unless
    told.
    """
    longest = min(total, 1 << 16 if longest is None else longest)
    bundles = -(-n // _BUNDLE)
    letters = total + _BUNDLE * longest + 8 * GAP * (bundles + 2)
    profile = 2 * LETTERS * (m + 32 * 48)
    edges = 4 * letters if m > 8 * ROWS else 0
    return letters + edges + profile + total + 8 * (n + 1) + 8 * (bundles + 1) + 8 * n + 8 * _BUNDLE


class _Fresh(NamedTuple):
    """New arrays whenever they are asked for."""

    stream: Any

    def room(self, name: str, shape: Any, dtype: Any) -> Any:
        return cuda.device_array(shape, dtype, stream=self.stream)

    def upload(self, name: str, values: Any) -> Any:
        return cuda.to_device(values, stream=self.stream)


def _filled(codes: Any) -> Any:
    codes = np.ascontiguousarray(codes, np.uint8)
    return codes if codes.size else np.zeros(1, np.uint8)


def _sent(values: Any, stream: Any) -> Any:
    return cuda.to_device(values, stream=stream)


def _edges(targets: PackedTargets, pairs: int) -> Any:
    """Room for the rows between stripes: each group has that of its first, its longest pair."""
    bundles = min(-(-pairs // 4), targets.bases.size - 1)
    return targets.memory.room("packed edges", 8 * int(targets.bases[bundles]), np.int32)


@functools.cache
def _multiprocessors_of(device: int) -> int:
    return 2 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def _multiprocessors() -> int:
    return _multiprocessors_of(0 if SIMULATED else cuda.get_current_device().id)
