"""Local scores of one query against many targets on a GPU, two 16-bit targets to a word.

With DPX instructions where there are any. First what a thread does, then how targets and query are laid out.
"""

from __future__ import annotations

import functools
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import SIMULATED, CudaKernel, cuda, cuda_kernel
from plait.devices.cuda_devices import SlotArrays, current_device, device_facts
from plait.devices.ptx import instruction
from plait.dp.pairs.gaps import AffineGap, cell, gaps
from plait.errors import InvalidInput, Unsupported
from plait.lang import compile as _jit
from plait.lang.algebras import SaturatingMaxPlus, choice, extend
from plait.lang.compile import by_type, shared, specialise
from plait.lang.lanes import add_saturating, maximum
from plait.lang.packed import (
    PACKED_LIMIT,
    AddedBefore,
    HalfPair,
    HighScores,
    IntegerStep,
    LowScores,
    half_bits,
    pack,
)
from plait.lang.warps import lane_index, shuffle, shuffle_up, shuffle_xor

intrinsic: Callable[[Callable[..., Any]], Any] = _jit.intrinsic
ir: Any = _jit.ir
types: Any = _jit.types
#: Numba's type of a word.
WORD_TYPE: Any = types.int32

#: How far apart the places of neighbouring words in shared memory are.
WORD = 1 if SIMULATED else 4


def shared_place(words: Any) -> Any:
    """The place of the first word of an array in shared memory: its address, if compiled."""
    return np.uint32(0)


def four_words(words: Any, place: Any) -> Any:
    """Four words of an array in shared memory, from a place on that is a multiple of four words away."""
    if place % 4:
        raise IndexError(f"words from {place} on are not read together")
    return words[place], words[place + 1], words[place + 2], words[place + 3]


def two_letters(letters: Any, place: Any) -> Any:
    """The number of 16 bits at `place`, of an array that nobody writes to while the kernel runs."""
    return np.int32(letters[place])


def _score(half: str, one: str) -> str:
    """Add one half of the first word to the half of the second word in which `one` has a one."""
    return (
        f"{{.reg .b16 l,h; .reg .b32 both,one; mov.b32 {{l,h}},$1; mov.b32 both,{{{half},{half}}}; "
        f"mov.b32 one,{one}; fma.rn.f16x2 $0,both,one,$2;}}"
    )


_ONE_LOW, _ONE_HIGH = "0x00003c00", "0x3c000000"
_low_to_low = instruction(_score("l", _ONE_LOW))
_low_to_high = instruction(_score("l", _ONE_HIGH))
_high_to_low = instruction(_score("h", _ONE_LOW))
_high_to_high = instruction(_score("h", _ONE_HIGH))
_add_integers = instruction(
    "add.s16x2 $0,$1,$2;",
    "{.reg .b16 a,b,c,d; mov.b32 {a,b},$1; mov.b32 {c,d},$2; "
    "add.s16 a,a,c; add.s16 b,b,d; mov.b32 $0,{a,b};}",
)
_maximum_and_0 = instruction(
    "max.s16x2.relu $0,$1,$2;",
    "{.reg .b32 m,zero; mov.b32 zero,0; max.f16x2 m,$1,$2; max.f16x2 $0,m,zero;}",
)


_SHARED = 3


@intrinsic
def _address(typing_context: Any, words: Any) -> Any:
    """Where an array in shared memory begins, among the bytes of shared memory."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        inside = builder.addrspacecast(view.data, ir.IntType(32).as_pointer(_SHARED))
        return builder.ptrtoint(inside, ir.IntType(32))

    return types.uint32(words), generate


@intrinsic
def _load_four_words(typing_context: Any, address: Any) -> Any:
    """One load of 16 bytes."""
    four = types.UniTuple(types.int32, 4)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), 4)
        value = builder.load(builder.inttoptr(args[0], vector.as_pointer(_SHARED)))
        value.align = 16
        parts = [builder.extract_element(value, ir.Constant(ir.IntType(32), k)) for k in range(4)]
        return context.make_tuple(builder, four, parts)

    return four(types.uint32), generate


@intrinsic
def _load_two_letters(typing_context: Any, letters: Any, place: Any) -> Any:
    """One load into a word; seen as 16 bits, the compiler would go on with 16-bit arithmetic."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(view.data, [builder.zext(args[1], ir.IntType(64))])
        kind = ir.FunctionType(ir.IntType(32), [pointer.type])
        return builder.asm(kind, _LETTERS, "=r,l", [pointer], False)

    return types.int32(letters, types.uint32), generate


_LETTERS = "{.reg .b16 h; ld.global.nc.u16 h,[$1]; cvt.u32.u16 $0,h;}"


def _two_letters(letters, place):  # type: ignore[no-untyped-def]
    return _load_two_letters(letters, place)


def _four_words(words, place):  # type: ignore[no-untyped-def]
    return _load_four_words(place)


def _shared_place(words):  # type: ignore[no-untyped-def]
    return _address(words)


def _add_nothing(a, b):  # type: ignore[no-untyped-def]
    return a


def _add_integer_step(a, b):  # type: ignore[no-untyped-def]
    return HalfPair(_add_integers(a.bits, b.bits))


def _add_low_scores(a, b):  # type: ignore[no-untyped-def]
    return HalfPair(_low_to_high(b.second, _low_to_low(b.first, a.bits)))


def _add_high_scores(a, b):  # type: ignore[no-untyped-def]
    return HalfPair(_high_to_high(b.second, _high_to_low(b.first, a.bits)))


def _maximum(a, b):  # type: ignore[no-untyped-def]
    return HalfPair(_maximum_and_0(a.bits, b.bits))


_SUMS: dict[type, Callable[..., Any]] = {
    AddedBefore: _add_nothing,
    IntegerStep: _add_integer_step,
    LowScores: _add_low_scores,
    HighScores: _add_high_scores,
}


def _sum_of(a: Any, b: Any) -> Callable[..., Any] | None:
    is_pair = getattr(a, "instance_class", None) is HalfPair
    return _SUMS.get(getattr(b, "instance_class", None)) if is_pair else None  # type: ignore[arg-type]


def _maximum_of(a: Any, b: Any) -> Callable[..., Any] | None:
    return _maximum if getattr(a, "instance_class", None) is HalfPair else None


if not SIMULATED:
    specialise(shared_place, lambda words: _shared_place, target="cuda")
    specialise(four_words, lambda words, place: _four_words, target="cuda")
    specialise(two_letters, lambda letters, place: _two_letters, target="cuda")
    specialise(add_saturating, _sum_of, target="cuda")
    specialise(maximum, _maximum_of, target="cuda")


#: The letter of padding, the one after those of sequences.
PADDING_LETTER = 32
#: Letters of the profile, padding included.
LETTERS = 33
#: Most rows of a thread, for which there are registers.
ROWS = 44


class Costs(NamedTuple):
    """The recurrence, and a zero of which the compiler does not know that it is one."""

    gaps: Any
    nothing: Any


class NoEdge(NamedTuple):
    """Nothing lies above the first row and below the last."""

    @staticmethod
    def above(edge: NoEdge, thread: Any, column: Any) -> Any:
        """Values of no alignment."""
        return np.int32(0), np.int32(0)

    @staticmethod
    def hand_down(edge: NoEdge, thread: Any, column: Any, h: Any, f: Any) -> None:
        """Nobody wants them."""
        return None


class Edge(NamedTuple):
    """Values of the row above a stripe of the query, which those of its last row replace.

    ``words`` has h and f of every column, those of four pairs side by side, from ``first`` on; the stripe
    before wrote ``columns`` of them.
    """

    words: Any
    first: Any
    columns: Any
    last_thread: Any

    @staticmethod
    def above(edge: Edge, thread: Any, column: Any) -> Any:
        """Read what the stripe before has left."""
        h, f = np.int32(0), np.int32(0)
        if thread == 0 and column < edge.columns:
            place = np.uint32(edge.first + np.uint32(8 * column))
            h, f = edge.words[place], edge.words[np.uint32(place + np.uint32(1))]
        return h, f

    @staticmethod
    def hand_down(edge: Edge, thread: Any, column: Any, h: Any, f: Any) -> None:
        """Leave them to the next stripe."""
        if thread == edge.last_thread and column >= 0:
            place = np.uint32(edge.first + np.uint32(8 * column))
            edge.words[place] = h
            edge.words[np.uint32(place + np.uint32(1))] = f


@by_type
def above(edge: Any, thread: Any, column: Any) -> Any:
    """What the first row of all needs, h and f of the row above, as far as this thread has that row."""


@by_type
def hand_down(edge: Any, thread: Any, column: Any, h: Any, f: Any) -> Any:
    """Keep h and f of the last row, where this thread has that row."""


@shared
def costs_after(costs: Any, done: Any) -> Any:
    """The costs of gaps, known once `done` is."""
    prolong = np.int32(costs.gaps.prolong.bits + done * costs.nothing)
    return AffineGap(costs.gaps.open, IntegerStep(prolong))


@shared
def two_rows(p: Any, alg: Any, states: Any, row: Any, words: Any, diag: Any, f: Any, best: Any) -> Any:
    """Two rows of a column: h and f for the row below, and the best value."""
    next_u, next_e = states
    e = HalfPair(next_e[row])
    h = cell(p, alg, HalfPair(next_u[row]), e, f, AddedBefore())
    next_u[row] = extend(alg, diag, LowScores(words[0], words[1])).bits
    e, f = gaps(p, alg, h, e, f)
    next_e[row] = e.bits
    e = HalfPair(next_e[row + 1])
    last = cell(p, alg, HalfPair(next_u[row + 1]), e, f, AddedBefore())
    next_u[row + 1] = extend(alg, h, HighScores(words[0], words[1])).bits
    e, f = gaps(p, alg, last, e, f)
    next_e[row + 1] = e.bits
    return last, f, choice(alg, choice(alg, best, h), last)


@shared
def eight_rows(costs: Any, alg: Any, profile: Any, places: Any, states: Any, rows: Any, handed: Any) -> Any:
    """Eight rows of a column, or the four that are left: h and f for the row below, and the best value."""
    first, last_row, chunk = rows
    diag, f, best = handed
    a = four_words(profile, np.uint32(places[0] + chunk))
    b = four_words(profile, np.uint32(places[1] + chunk))
    p = costs.gaps if first == 0 else costs_after(costs, states[0][first - 1])
    diag, f, best = two_rows(p, alg, states, first, (a[0], b[0]), diag, f, best)
    diag, f, best = two_rows(p, alg, states, first + 2, (a[1], b[1]), diag, f, best)
    if first + 4 < last_row:
        p = costs_after(costs, states[0][first + 3])
        diag, f, best = two_rows(p, alg, states, first + 4, (a[2], b[2]), diag, f, best)
        diag, f, best = two_rows(p, alg, states, first + 6, (a[3], b[3]), diag, f, best)
    return diag, f, best


@shared
def column(costs: Any, alg: Any, profile: Any, places: Any, states: Any, shape: Any, handed: Any) -> Any:
    """All rows of a column that a thread has.

    One call for every eight rows, because a loop over them would not be unrolled.
    """
    threads, rows = shape
    chunk = np.uint32(4 * threads * WORD)
    handed = eight_rows(costs, alg, profile, places, states, (0, rows, np.uint32(0)), handed)
    if rows > 8:
        handed = eight_rows(costs, alg, profile, places, states, (8, rows, chunk), handed)
    if rows > 16:
        handed = eight_rows(costs, alg, profile, places, states, (16, rows, np.uint32(2 * chunk)), handed)
    if rows > 24:
        handed = eight_rows(costs, alg, profile, places, states, (24, rows, np.uint32(3 * chunk)), handed)
    if rows > 32:
        handed = eight_rows(costs, alg, profile, places, states, (32, rows, np.uint32(4 * chunk)), handed)
    if rows > 40:
        handed = eight_rows(costs, alg, profile, places, states, (40, rows, np.uint32(5 * chunk)), handed)
    return handed


@shared
def sweep(
    costs: Any, targets: Any, profile: Any, states: Any, shape: Any, thread: Any, edge: Any, best: Any
) -> Any:
    """All columns of one piece of the targets; the best value so far.

    `targets` are letters, the place of this thread's first one, and the number of columns; `profile` the
    scores, in shared memory; `states` int32 arrays with, for every row, the diagonal value with score and the
    gap value of the next column; `shape` threads of the group and rows of each, `thread` the place in it;
    `best` that of the stripes before.
    """
    threads, rows = shape
    letters, place, columns = targets
    zero = HalfPair(np.int32(0))
    alg = SaturatingMaxPlus(zero, zero)
    for row in range(rows):
        states[0][row] = 0
        states[1][row] = 0
    stride = np.uint32((rows + 7) // 8 * 4 * threads * WORD)
    own = np.uint32(shared_place(profile) + np.uint32(4 * WORD) * np.uint32(thread))
    last, f = zero, zero
    ahead = np.int32(0), np.int32(0)
    letter = two_letters(letters, place)
    steps = np.int32(columns + threads)
    step = np.int32(-steps)
    while step < 0:
        place = np.uint32(place + np.uint32(4))
        next_letter = two_letters(letters, place)
        places = np.uint32((letter & 255) * stride + own), np.uint32((letter >> 8) * stride + own)
        letter = next_letter
        last, f = HalfPair(shuffle_up(last.bits, 1)), HalfPair(shuffle_up(f.bits, 1))
        if thread == 0:
            last, f = HalfPair(ahead[0]), HalfPair(ahead[1])
        ahead = above(edge, thread, np.int32(steps + step))
        last, f, best = column(costs, alg, profile, places, states, shape, (last, f, best))
        hand_down(edge, thread, np.int32(columns + step), last.bits, f.bits)
        step = np.int32(step + 1)
    return best


#: Columns of padding between bundles: as many as the last thread of a warp lags behind the first.
GAP = 32
#: Threads of a block, and blocks that a multiprocessor runs at a time.
BLOCK, BLOCKS = 256, 2


@shared
def settle(best: Any, threads: Any, thread: Any, target: Any, order: Any, out: Any, row: Any) -> None:
    """Bring the best values of a group together, and to the two targets from `target` on, in a row."""
    zero = HalfPair(np.int32(0))
    alg = SaturatingMaxPlus(zero, zero)
    distance = 1
    while distance < threads:
        best = choice(alg, best, HalfPair(shuffle_xor(best.bits, distance)))
        distance *= 2
    if thread == 0:
        if target < order.size:
            cuda.atomic.max(out, (row, order[target]), np.int32(best.bits & 0xFFFF))
        if target + 1 < order.size:
            cuda.atomic.max(out, (row, order[target + 1]), np.int32((best.bits >> 16) & 0xFFFF))


@shared
def fill_profile(profile: Any, words: Any, first: Any, count: Any) -> None:
    """Copy words to shared memory, all threads of the block together."""
    place = cuda.threadIdx.x
    while place < count:
        profile[place] = words[first + place]
        place += cuda.blockDim.x
    cuda.syncthreads()


@shared
def take(counters: Any, row: Any, lane: Any) -> Any:
    """The next item of a row, for all lanes of a warp."""
    item = np.int32(0)
    if lane == 0:
        item = np.int32(cuda.atomic.add(counters, (0, row), 1))
    return np.int32(shuffle(item, 0))


@functools.cache
def search_kernel(threads: int, rows: int) -> CudaKernel:
    """The kernel for queries of up to ``threads * rows`` residues."""
    pairs = 32 // threads
    per_query = LETTERS * ((rows + 7) // 8) * 4 * threads

    def search(  # type: ignore[no-untyped-def]
        letters, bases, lengths, order, pieces, cut, whole, items, words, costs, numbers, counters, out
    ):
        """Queries of which `words` are the profiles, and `numbers` the rows of `out`, one after the other.

        Items are pieces first, then units that are not cut. A block goes on to the next query while others
        are still busy with the one before.
        """
        profile = cuda.shared.array(0, WORD_TYPE)
        states = cuda.local.array(rows, WORD_TYPE), cuda.local.array(rows, WORD_TYPE)
        lane = lane_index()
        # Written with bits, so that the compiler sees that it is small.
        thread = np.int32(lane & (threads - 1))
        for query in range(numbers.size):
            # All warps are done with the profile of the query before.
            cuda.syncthreads()
            fill_profile(profile, words, query * per_query, per_query)
            item = take(counters, numbers[query], lane)
            while item < items:
                if item < cut:
                    unit, start, columns = pieces[item, 0], pieces[item, 1], pieces[item, 2]
                else:
                    unit, start = np.int32(whole + item - cut), np.int32(0)
                    columns = lengths[unit * (2 * pairs)]
                pair = unit * pairs + lane // threads
                place = np.uint32((bases[pair >> 2] + start - thread) * 4 + (pair & 3))
                targets = letters, place, columns
                best = HalfPair(np.int32(0))
                best = sweep(costs, targets, profile, states, (threads, rows), thread, NoEdge(), best)
                settle(best, threads, thread, 2 * pair, order, out, numbers[query])
                item = take(counters, numbers[query], lane)

    search.__qualname__ = search.__name__ = f"search_{threads}_{rows}"
    return cuda_kernel(launch_bounds=(BLOCK, BLOCKS))(search)


@functools.cache
def striped_kernel(threads: int, rows: int) -> CudaKernel:
    """The kernel for longer queries, in stripes of ``threads * rows`` residues."""
    pairs = 32 // threads
    per_stripe = LETTERS * ((rows + 7) // 8) * 4 * threads

    def search(  # type: ignore[no-untyped-def]
        letters, bases, lengths, order, stripes, items, words, costs, edges, number, counters, out
    ):
        """Blocks take as many units as they have warps, and go through the stripes of the query together."""
        profile = cuda.shared.array(0, WORD_TYPE)
        states = cuda.local.array(rows, WORD_TYPE), cuda.local.array(rows, WORD_TYPE)
        lane = lane_index()
        thread = np.int32(lane & (threads - 1))
        warp = np.int32(cuda.threadIdx.x // 32)
        warps = np.int32(cuda.blockDim.x // 32)
        # Later units are shorter, so the room of the first one serves all.
        pair = np.int32((cuda.blockIdx.x * warps + warp) * pairs + lane // threads)
        room = np.uint32(0)
        if 2 * pair < lengths.size:
            room = np.uint32(8 * bases[pair >> 2] + 2 * (pair & 3))
        batch = np.int32(cuda.blockIdx.x)
        while batch * warps < items:
            unit = np.int32(batch * warps + warp)
            pair = np.int32(unit * pairs + lane // threads)
            best = HalfPair(np.int32(0))
            for stripe in range(stripes):
                fill_profile(profile, words, stripe * per_stripe, per_stripe)
                if unit < items:
                    columns = lengths[unit * (2 * pairs)]
                    place = np.uint32((bases[pair >> 2] - thread) * 4 + (pair & 3))
                    targets = letters, place, columns
                    edge = Edge(edges, room, columns if stripe > 0 else np.int32(0), np.int32(threads - 1))
                    best = sweep(costs, targets, profile, states, (threads, rows), thread, edge, best)
                cuda.syncthreads()
            if unit < items:
                settle(best, threads, thread, 2 * pair, order, out, number)
            # All are done with the profile, and on some devices the largest one leaves no room beside it.
            if cuda.threadIdx.x == 0:
                profile[0] = cuda.gridDim.x + cuda.atomic.add(counters, (0, number), 1)
            cuda.syncthreads()
            batch = np.int32(profile[0])
            cuda.syncthreads()

    search.__qualname__ = search.__name__ = f"striped_{threads}_{rows}"
    return cuda_kernel(launch_bounds=(BLOCK, BLOCKS))(search)


@cuda_kernel()
def bundle(codes, offsets, order, bases, lengths, letters):  # type: ignore[no-untyped-def]
    """Lay the targets out, one block for each bundle; the block after them writes the last padding."""
    own = cuda.blockIdx.x
    pair = cuda.threadIdx.x % 4
    column = np.int64(cuda.threadIdx.x // 4) - GAP
    width = np.int64(0)
    starts = (np.int64(0), np.int64(0))
    ends = (np.int32(0), np.int32(0))
    target = 8 * own + 2 * pair
    base = np.int64(bases[own])
    if 8 * own < order.size:
        width = np.int64(lengths[8 * own])
        ends = (lengths[target], lengths[target + 1])
        first = offsets[order[target]] if target < order.size else np.int64(0)
        starts = (first, offsets[order[target + 1]] if target + 1 < order.size else np.int64(0))
    else:
        width = np.int64(GAP)
    while column < width:
        low = np.int64(PADDING_LETTER)
        high = np.int64(PADDING_LETTER)
        if column >= 0:
            if column < ends[0]:
                low = np.int64(min(codes[starts[0] + column], PADDING_LETTER))
            if column < ends[1]:
                high = np.int64(min(codes[starts[1] + column], PADDING_LETTER))
        letters[(base + column) * 4 + pair] = low | (high << 8)
        column += cuda.blockDim.x // 4


@cuda_kernel()
def clear(out, counters):  # type: ignore[no-untyped-def]
    """Set the scores to 0, and the numbers of items that are taken; a row of blocks for each query."""
    place, row = cuda.grid(2)
    if place < out.shape[1]:
        out[row, place] = 0
    if place < counters.shape[0]:
        counters[place, row] = 0


#: Threads per pair of targets, and rows per thread, for which kernels are made.
_THREADS = (8, 16, 32)
_ROWS = tuple(range(4, ROWS + 1, 4))
#: Instructions of a column beside those of its rows, and of the values above and below a stripe.
_PER_ROW, _PER_COLUMN, _PER_EDGE = 7, 22, 20


#: Spans that are taken as the same.
_SPANS = 256


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


@functools.lru_cache(1 << 12)
def shape_of(
    query: int,
    targets: int,
    residues: int,
    warps: int,
    longest: int = 0,
    span: int | None = None,
    together: int = 1,
) -> Shape:
    """The shape that takes the fewest instructions.

    `query` and `longest` are lengths in residues, `residues` those of all `targets`, `warps` those that run
    at a time: a few targets, or one longer than all others together take, are spread over more threads.
    `span` is the most columns over which a best alignment reaches: with a query of one stripe, targets are
    cut. With so many queries `together` others go on meanwhile.
    """
    columns = residues / max(targets, 1)
    cut = longest if span is None else min(longest, 3 * span)

    def time(shape: Shape) -> float:
        units = -(-targets // (2 * shape.pairs))
        alone = _cost(shape, max(columns, cut if shape.stripes == 1 else longest))
        several = together if shape.stripes == 1 else 1
        return shape.pairs * max(_cost(shape, columns) * units / warps, alone / several)

    shapes = [
        Shape(threads, rows, max(-(-query // (threads * rows)), 1)) for threads in _THREADS for rows in _ROWS
    ]
    return min(shapes, key=lambda shape: (time(shape), shape.threads, shape.stripes > 1))


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
    """Targets on the current device, in pairs of like length.

    `codes` are uint8 on the device, (total,): letters 0 to 31, others score nothing; `offsets` are int64,
    (n + 1,). The layout is made in the stream of `memory`, which serves the targets made with it last.
    `lengths` is int32, longest first, filled up with 0 to whole bundles.
    """

    def __init__(self, codes: Any, offsets: Any, memory: SlotArrays) -> None:
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
        self.warps = warps_of(multiprocessors())
        self.memory = memory
        self._order = memory.upload("packed order", order.astype(np.int32))
        self._lengths = memory.upload("packed lengths", self.lengths)
        self._bases = memory.upload("packed bases", bases)
        self._letters = memory.room("packed letters", self.columns * 4, np.uint16)
        places = memory.upload("packed offsets", offsets)
        arguments = (codes, places, self._order, self._bases, self._lengths, self._letters)
        bundle.launch(bundles + 1, 128, *arguments, stream=memory.stream)
        # Until the layout is made, the memory from which it is made must not be given back.
        self._sources = (codes, places)

    @property
    def layout(self) -> tuple[Any, ...]:
        """Device arrays: letters, first columns of the bundles, lengths and order."""
        return self._letters, self._bases, self._lengths, self._order


@functools.lru_cache(64)
def _table_of(scores: bytes, letters: int) -> tuple[NDArray[np.int32], NDArray[np.int16]]:
    """The best score of each letter of a query, (32,), and all in half precision, (letters of targets, 33).

    `scores` are int32, a row for each of so many `letters`; what they lack scores as the worst there is, the
    last column, for rows behind a query, and padding so little that nothing comes of it.
    """
    own = np.frombuffer(scores, np.int32).reshape(letters, -1)
    table = np.full((33, LETTERS), -(PACKED_LIMIT - 1), np.int32)
    table[:32, :PADDING_LETTER] = max(int(own.min(initial=0)), -(PACKED_LIMIT - 1))
    table[:letters, : own.shape[1]] = np.clip(own, -(PACKED_LIMIT - 1), PACKED_LIMIT)
    return np.maximum(table[:32].max(axis=1), 0), np.ascontiguousarray(half_bits(table).T)


class PackedQuery:
    """A query, its scores and its costs, as packed lanes need them.

    `codes` are uint8, (m,), 0 to 31 (else `InvalidInput`); `table`, up to (32, 32), has a row for each letter
    of the query and a column for each of the targets; costs are of the first and each further residue of a
    gap. `possible`: packed lanes hold the costs, none is negative; `span`: see `longest_span`.
    """

    def __init__(self, codes: Any, table: Any, gap_open: int, gap_extend: int) -> None:
        self.codes = np.ascontiguousarray(codes, np.uint8)
        if self.codes.size and int(self.codes.max()) > 31:
            raise InvalidInput("query", found="a letter above 31", expected="letters from 0 to 31")
        # Most queries have the same letters.
        gains, self._halves = _table_of(np.asarray(table, np.int32).tobytes(), len(table))
        self.gap_open, self.gap_extend = int(gap_open), int(gap_extend)
        self.possible = self.gap_open >= 0 and self.gap_extend >= 0
        self.span = longest_span(
            self.codes.size, int(gains[self.codes].sum()), self.gap_open, self.gap_extend
        )
        self._profiles: dict[Shape, NDArray[np.int32]] = {}

    @property
    def costs(self) -> Costs:
        """The costs as steps of packed lanes."""
        opening, further = (-min(cost, PACKED_LIMIT) for cost in (self.gap_open, self.gap_extend))
        gaps = AffineGap(IntegerStep(pack(opening, opening)), IntegerStep(pack(further, further)))
        return Costs(gaps, np.int32(0))

    def profile(self, shape: Shape) -> NDArray[np.int32]:
        """Scores as half-precision numbers, int32 words [stripe][letter][eight rows][thread][two rows].

        Rows after the last one of the query, which fill up the shape, have scores that nothing comes of. Made
        once for a shape: it serves all parts of a database.
        """
        if shape not in self._profiles:
            self._profiles[shape] = self._made_profile(shape)
        return self._profiles[shape]

    def _made_profile(self, shape: Shape) -> NDArray[np.int32]:
        chunks = -(-shape.rows // 8)
        rows = np.full((shape.stripes, shape.threads, chunks * 8), 32)
        query = np.full(shape.stripes * shape.threads * shape.rows, 32)
        query[: self.codes.size] = self.codes
        rows[:, :, : shape.rows] = query.reshape(shape.stripes, shape.threads, shape.rows)
        eights = rows.reshape(shape.stripes, shape.threads, chunks, 8).transpose(0, 2, 1, 3)
        words = self._halves.take(eights.reshape(shape.stripes, -1), axis=1)
        return np.ascontiguousarray(words.transpose(1, 0, 2)).reshape(-1).view(np.int32)


_PROFILES = threading.Lock()


def packed_scores(queries: Sequence[PackedQuery], targets: PackedTargets, out: Any) -> Any:
    """Best local score of each query, which must be ``possible``, with every target.

    `out`, int32 (queries, n) on the device, is filled in the order in which targets were given; from
    `PACKED_LIMIT` on scores are not exact. The kernels run in the stream of the targets' memory and are not
    waited for. Returns what `cleared` does.
    """
    if not all(query.possible for query in queries):
        raise Unsupported("gaps that are worth something", why="packed lanes cannot hold them; use 32 bits")
    alike = defaultdict(list)
    for number, query in enumerate(queries):
        if query.codes.size and targets.size:
            alike[shape_for(query, targets, len(queries)), query.gap_open, query.gap_extend].append(number)
    counters = cleared(out, targets)
    for (shape, *_), numbers in alike.items():
        for some in [numbers] if shape.stripes == 1 else [[number] for number in numbers]:
            scores_in_shape(shape, [queries[number] for number in some], targets, out, (some, counters))
    return counters


def cleared(out: Any, targets: PackedTargets) -> Any:
    """Set scores to 0; returns as many counters, of items that are taken, and as many more, (2, queries)."""
    rows, columns = out.shape
    counters = targets.memory.room("packed counters", (2, rows), np.int32)
    if out.size:
        blocks = max(-(-columns // 256), 1), rows
        clear.launch(blocks, 256, out, counters, stream=targets.memory.stream)
    return counters


def shape_for(query: PackedQuery, targets: PackedTargets, together: int = 1) -> Shape:
    """How `packed_scores` spreads one of some queries over the threads of the device."""
    longest = int(targets.lengths[0]) if targets.size else 0
    # Queries of one length seldom have the same span; to choose takes as long as a launch.
    span = None if query.span is None else -(-query.span // _SPANS) * _SPANS
    return shape_of(query.codes.size, targets.size, targets.residues, targets.warps, longest, span, together)


def scores_in_shape(
    shape: Shape,
    queries: Sequence[PackedQuery],
    targets: PackedTargets,
    out: Any,
    rows: tuple[list[int], Any],
    *,
    block: int = BLOCK,
) -> None:
    """As `packed_scores`, with queries of like costs spread over threads in a given way.

    `rows` are the numbers of the queries in `out`, of several only without stripes, and what `cleared` gave.
    """
    memory, stream = targets.memory, targets.memory.stream
    numbers, counters = rows
    blocks = min(BLOCKS * multiprocessors(), -(-targets.size // 16) + 1)
    warps = blocks * block // 32
    # Threads of all parts ask at the same time; to meet at each profile takes longer than to make it.
    with _PROFILES:
        profiles = [query.profile(shape) for query in queries]
    words = memory.upload("packed words", np.concatenate(profiles))
    units = -(-targets.size // (2 * shape.pairs))
    if shape.stripes > 1:
        edges = _edges(targets, warps * shape.pairs)
        kernel = striped_kernel(shape.threads, shape.rows)
        rest: tuple[Any, ...] = (np.int32(shape.stripes), np.int32(units), words, queries[0].costs, edges)
        rest += np.int32(numbers[0]), counters, out
    else:
        spans = [query.span for query in queries]
        span = None if None in spans else max(filter(None, spans))
        pieces, whole = pieces_of(targets.lengths[:: 2 * shape.pairs][:units], span, warps)
        sent = memory.upload("packed pieces", pieces if len(pieces) else np.zeros((1, 3), np.int32))
        counts = np.int32(len(pieces)), np.int32(whole), np.int32(len(pieces) + units - whole)
        which = memory.upload("packed numbers", np.array(numbers, np.int32))
        rest = (sent, *counts, words, queries[0].costs, which, counters, out)
        kernel = search_kernel(shape.threads, shape.rows)
    kernel.launch(blocks, block, *targets.layout, *rest, stream=stream, shared=shared_bytes(shape))


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


def _edges(targets: PackedTargets, pairs: int) -> Any:
    """Room for the rows between stripes: each group has that of its first, its longest pair."""
    bundles = min(-(-pairs // 4), targets.bases.size - 1)
    return targets.memory.room("packed edges", 8 * int(targets.bases[bundles]), np.int32)


def multiprocessors() -> int:
    """Of the current device."""
    return device_facts(current_device()).multiprocessors
