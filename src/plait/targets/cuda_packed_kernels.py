"""Kernels for local scores of one query against many targets in packed lanes.

A group of 8, 16 or 32 neighbouring threads works on two targets at once, one in each half of a word
(`plait.targets.cuda_packed_sweep`). The groups of a warp have targets of like length.

Targets lie in bundles of eight, four pairs, sorted by length: ``letters[column * 4 + pair]`` has the letter
of the first target of a pair in its low byte and that of the second in its high byte. ``GAP`` columns of
padding lie before every bundle and after the last one, with a letter whose scores are so low that nothing
comes of it.

Warps take items, the longest first, until there are none; a unit is as many pairs as a warp has groups.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from plait._jit import shared
from plait.algebras import SaturatingMaxPlus, choice
from plait.lanes.packed import HalfPair, IntegerStep
from plait.lanes.warps import lane_index, shuffle, shuffle_xor
from plait.recurrences.gaps import AffineGap
from plait.targets.cuda import CudaKernel, cuda, cuda_kernel
from plait.targets.cuda_packed_instructions import WORD_TYPE
from plait.targets.cuda_packed_sweep import (
    LETTERS,
    PADDING_LETTER,
    Costs,
    Edge,
    NoEdge,
    sweep,
)

__all__ = ["BLOCK", "BLOCKS", "GAP", "bundle", "clear", "flag", "search_kernel", "striped_kernel"]

#: Columns of padding between bundles: as many as the last thread of a warp lags behind the first.
GAP = 32
#: Threads of a block, and blocks that a multiprocessor runs at a time.
BLOCK, BLOCKS = 256, 2


def _layout_examples() -> tuple[Any, ...]:
    words = np.zeros(4, np.int32)
    return np.zeros(4, np.uint16), np.zeros(4, np.int64), words, words


def _costs_examples() -> Costs:
    return Costs(AffineGap(IntegerStep(np.int32(0)), IntegerStep(np.int32(0))), np.int32(0))


def _examples() -> list[tuple[Any, ...]]:
    words, pieces = np.zeros(4, np.int32), np.zeros((1, 3), np.int32)
    numbers = np.int32(0), np.int32(0), np.int32(1)
    return [(*_layout_examples(), pieces, *numbers, words, _costs_examples(), words, words)]


def _striped_examples() -> list[tuple[Any, ...]]:
    words = np.zeros(4, np.int32)
    numbers = np.int32(2), np.int32(1)
    return [(*_layout_examples(), *numbers, words, _costs_examples(), words, words, words)]


@shared
def settle(best: Any, threads: Any, thread: Any, target: Any, order: Any, out: Any) -> None:
    """Bring the best values of a group together, and to the two targets from `target` on."""
    zero = HalfPair(np.int32(0))
    alg = SaturatingMaxPlus(zero, zero)
    distance = 1
    while distance < threads:
        best = choice(alg, best, HalfPair(shuffle_xor(best.bits, distance)))
        distance *= 2
    if thread == 0:
        if target < order.size:
            cuda.atomic.max(out, order[target], np.int32(best.bits & 0xFFFF))
        if target + 1 < order.size:
            cuda.atomic.max(out, order[target + 1], np.int32((best.bits >> 16) & 0xFFFF))


@shared
def fill_profile(profile: Any, words: Any, first: Any, count: Any) -> None:
    """Copy words to shared memory, all threads of the block together."""
    place = cuda.threadIdx.x
    while place < count:
        profile[place] = words[first + place]
        place += cuda.blockDim.x
    cuda.syncthreads()


@functools.cache
def search_kernel(threads: int, rows: int) -> CudaKernel:
    """The kernel for queries of up to ``threads * rows`` residues."""
    pairs = 32 // threads

    def search(  # type: ignore[no-untyped-def]
        letters, bases, lengths, order, pieces, cut, whole, items, words, costs, counter, out
    ):
        """Items are pieces first, then units that are not cut."""
        profile = cuda.shared.array(0, WORD_TYPE)
        fill_profile(profile, words, 0, words.size)
        states = cuda.local.array(rows, WORD_TYPE), cuda.local.array(rows, WORD_TYPE)
        lane = lane_index()
        # Written with bits, so that the compiler sees that it is small.
        thread = np.int32(lane & (threads - 1))
        item = np.int32((cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // 32)
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
            settle(best, threads, thread, 2 * pair, order, out)
            if lane == 0:
                item = cuda.atomic.add(counter, 0, 1)
            item = np.int32(shuffle(item, 0))

    search.__qualname__ = search.__name__ = f"search_{threads}_{rows}"
    return cuda_kernel(_examples, launch_bounds=(BLOCK, BLOCKS))(search)


@functools.cache
def striped_kernel(threads: int, rows: int) -> CudaKernel:
    """The kernel for longer queries, in stripes of ``threads * rows`` residues."""
    pairs = 32 // threads
    per_stripe = LETTERS * ((rows + 7) // 8) * 4 * threads

    def search(  # type: ignore[no-untyped-def]
        letters, bases, lengths, order, stripes, items, words, costs, edges, counter, out
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
                settle(best, threads, thread, 2 * pair, order, out)
            # All are done with the profile, and on some devices the largest one leaves no room beside it.
            if cuda.threadIdx.x == 0:
                profile[0] = cuda.atomic.add(counter, 0, 1)
            cuda.syncthreads()
            batch = np.int32(profile[0])
            cuda.syncthreads()

    search.__qualname__ = search.__name__ = f"striped_{threads}_{rows}"
    return cuda_kernel(_striped_examples, launch_bounds=(BLOCK, BLOCKS))(search)


#: Some of them, which are compiled in the tests.
EXAMPLES = search_kernel(8, 44), search_kernel(16, 24), search_kernel(32, 8), striped_kernel(8, 40)


def _bundle_examples() -> list[tuple[Any, ...]]:
    words, places = np.zeros(4, np.int32), np.zeros(4, np.int64)
    return [(np.zeros(4, np.uint8), places, words, places, words, np.zeros(4, np.uint16))]


@cuda_kernel(_bundle_examples)
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


@cuda_kernel(lambda: [(np.zeros(4, np.int32), np.int32(0), np.zeros(4, np.int32))])
def clear(out, taken, counter):  # type: ignore[no-untyped-def]
    """Set the scores to 0, and the number of items that are taken."""
    place = cuda.grid(1)
    if place < out.size:
        out[place] = 0
    if place == 0:
        counter[0] = taken


@cuda_kernel(lambda: [(np.zeros(4, np.int32), np.int32(0))])
def flag(out, limit):  # type: ignore[no-untyped-def]
    """Say of scores that reached the limit that they are not exact."""
    place = cuda.grid(1)
    if place < out.size and out[place] >= limit:
        out[place] = -1
