"""Random numbers on GPUs: every thread has a part of the stream of its own, or every so many points.

A module of its own: what CUDA runs, which is imported where a GPU is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import POOL
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import over_threads, stretches
from plait.lang.compile import shared, types
from plait.lang.lanes import lanes_of, lowest_bit
from plait.lang.warps import WARP
from plait.random import generators
from plait.random.draws import Draws, Exponential, Normal, Residue, Uniform, Unit, Word, sample
from plait.random.generators import DEGREE, MIDDLE, WORDS, Window, step, tempered, twisted

_ONE: Final = lanes_of(1)
_THREADS: Final = 128
#: Of shared memory: one more than lanes, so that columns are in other banks.
_ROW: Final = WARP + 1
#: Numbers of a thread, and of a launch, at most.
_STEPS: Final = 1 << 10
_PIECE: Final = 1 << 26
#: Threads for each dimension of points: bits of their number.
_BITS: Final = 18
#: Threads of a block of MT19937, whole warps of words that do not need each other, and rounds in its ring.
_ROUND: Final = 224
_RING: Final = 4 * _ROUND
_ENDLESS: Final = np.uint32(1 << 31)
_WORD: Final[Any] = types.uint32
#: Words of a block.
_SPAN: Final = _RING << 6


def _examples(*source: Any, points: bool = False) -> list[tuple[Any, ...]]:
    kinds = (Uniform(1.0), np.zeros(1)), (Normal(), np.zeros(1, np.float32)), (Exponential(), np.zeros(1))
    words = (Residue(1.0) if len(source) == 2 else Word()), np.zeros(1, np.uint32)
    found = [(kind, Unit(0.5, 1.0), *source, out) for kind, out in (words, *kinds)]
    return [(*row[:-1], row[-1][None]) for row in found] if points else found


@cuda_kernel(lambda: _examples(np.zeros((6, 1)), np.int64(1)))
def mrg_numbers(kind: Any, unit: Any, states: Any, steps: Any, out: Any) -> None:
    """Fill `out`, of which every thread has so many steps; `states` float64 (6, threads).

    The words of a warp are exchanged in shared memory, so that threads beside each other write neighbours.
    """
    tile = cuda.shared.array((_THREADS, _ROW), np.float64)
    own, thread = cuda.threadIdx.x, cuda.grid(1)
    lane = own % WARP
    p = states[0, thread], states[1, thread], states[2, thread]
    q = states[3, thread], states[4, thread], states[5, thread]
    state = p[0], p[1], p[2], q[0], q[1], q[2]
    for first in range(0, steps, WARP):
        for t in range(WARP):
            state, word = step(_ONE, state)
            tile[own, t] = word
        cuda.syncthreads()
        for row in range(WARP):
            place = (thread - lane + row) * steps + first + lane
            if first + lane < steps and place < out.size:
                out[place] = sample(kind, tile[own - lane + row, lane], unit)
        cuda.syncthreads()


@cuda_kernel(
    lambda: _examples(np.zeros((1, 32), np.uint32), np.zeros(1, np.uint32), np.int64(0), points=True)
)
def sobol_points(kind: Any, unit: Any, vectors: Any, shifts: Any, number: Any, out: Any) -> None:
    """Fill `out` with points from `number` on; every thread takes one and those 2^k further on, by fours.

    Gray codes of a number and of one 2^k further differ in bit k - 1 and in that of the lowest 0 from k on:
    of four numbers whose first is a multiple of 4 in bits from k on, in the same two.
    """
    d, at = cuda.blockIdx.y, (number >> _BITS + 2 << _BITS + 2) - number + cuda.grid(1)
    gray, word = number + at ^ number + at >> 1, shifts[d]
    for k in range(32):
        if gray >> k & 1:
            word ^= vectors[d, k]
    one, two = vectors[d, _BITS - 1] ^ vectors[d, _BITS], vectors[d, _BITS - 1] ^ vectors[d, _BITS + 1]
    while at < out.shape[1]:
        for k in range(4):
            if 0 <= at < out.shape[1]:
                out[d, at] = sample(kind, word, unit)
            word ^= two if k & 1 else one
            at += 1 << _BITS
        # Behind the last of all numbers nothing follows.
        word ^= vectors[d, _BITS + 1] ^ vectors[d, min(lowest_bit(number + at >> _BITS) + _BITS, 31)]


def _in_pieces(batch: Draws, target: CudaTarget, fill: Callable[[Any, int, Any], None]) -> Any:
    """Fill pieces of the numbers, (..., numbers), on the devices: ``fill(slot, first, out)``."""
    size, rows = batch.out.shape[-1], batch.out.size // batch.out.shape[-1]
    most = max(_PIECE // rows, 1)

    def one(stretch: tuple[int, int]) -> None:
        for first in range(*stretch, most):
            part = batch.out[..., first : min(first + most, stretch[1])]
            with POOL.slot(target.devices) as slot:
                out = slot.room("numbers", part.shape, part.dtype)
                fill(slot, first, out)
                found = slot.download("numbers", out)
                slot.wait()
                part[...] = found

    over_threads(len(target.devices), stretches(len(target.devices), size, 1 << 20), one)
    return batch.out


def mrg_batch(batch: Draws, target: CudaTarget) -> Any:
    """Numbers of MRG32k3a."""

    def fill(slot: Any, first: int, out: Any) -> None:
        steps = min(_STEPS, -(-out.size // _THREADS))
        blocks = -(-out.size // (steps * _THREADS))
        begun = generators.skipped(batch.source, first)
        states = slot.upload("states", generators.states_of(begun, steps, blocks * _THREADS))
        given = batch.kind, batch.unit, states, np.int64(steps), out
        mrg_numbers.launch(blocks, _THREADS, *given, stream=slot.stream)

    return _in_pieces(batch, target, fill)


def sobol_batch(batch: Draws, target: CudaTarget) -> Any:
    """Points of Sobol's sequence."""
    source: generators.Directions = batch.source

    def fill(slot: Any, first: int, out: Any) -> None:
        vectors, shifts = slot.upload("vectors", source.vectors), slot.upload("shifts", source.shifts)
        given = batch.kind, batch.unit, vectors, shifts, np.int64(source.first + first), out
        blocks = (1 << _BITS) // _THREADS, len(source.vectors)
        sobol_points.launch(blocks, _THREADS, *given, stream=slot.stream)

    return _in_pieces(batch, target, fill)


@shared
def _onward(place: Any, words: Any, size: Any) -> Any:
    """The place so many words further on in a ring of `size`."""
    found = np.uint32(place + np.uint32(words))
    return found if found < size else np.uint32(found - size)


@shared
def _next_word(ring: Any, place: Any, thread: Any, size: Any) -> Any:
    """Word `thread` of a round, of which the oldest word is at `place` of a ring of so many."""
    first = np.uint32(place + thread)
    onward, middle = ring[_onward(first, 1, size)], ring[_onward(first, MIDDLE, size)]
    word = twisted(ring[first], onward, middle)
    ring[_onward(first, WORDS, size)] = word
    return word


@cuda_kernel(lambda: [(np.zeros(1, np.int32), np.zeros((1, WORDS), np.uint32), np.int64(1))])
def jump_windows(exponents: Any, windows: Any, count: Any) -> None:
    """Windows `count` and on from the first ones: sums of what comes so many words later."""
    words = cuda.shared.array(0, _WORD)
    thread, block = np.uint32(cuda.threadIdx.x), cuda.blockIdx.x
    if thread < WORDS:
        words[thread] = windows[block, thread]
    cuda.syncthreads()
    for place in range(0, DEGREE, _ROUND):
        if thread < _ROUND:
            _next_word(words, np.uint32(place), thread, _ENDLESS)
        cuda.syncthreads()
    if thread < WORDS:
        found = np.uint32(0)
        for k in range(exponents.size):
            found ^= words[np.uint32(np.uint32(exponents[np.uint32(k)]) + thread)]
        windows[count + block, thread] = found


@cuda_kernel(lambda: _examples(np.zeros((1, WORDS), np.uint32), np.int64(1), np.int64(0)))
def mt_numbers(kind: Any, unit: Any, windows: Any, span: Any, used: Any, out: Any) -> None:
    """Fill `out` behind windows uint32 (blocks, 624), each `span` words behind the one before.

    Of the first one `used` words are used up; the others are the first numbers.
    """
    ring = cuda.shared.array(_RING, _WORD)
    thread, block = cuda.threadIdx.x, cuda.blockIdx.x
    for k in range(thread, WORDS, _ROUND):
        ring[k] = windows[block, k]
        if block == 0 and used <= k < used + out.size:
            out[k - used] = sample(kind, tempered(ring[k]), unit)
    cuda.syncthreads()
    at = block * span + WORDS - used + thread
    end = min(out.size, at + span)
    for _ in range(0, span, _RING):
        for place in range(0, _RING, _ROUND):
            word = _next_word(ring, np.uint32(place), np.uint32(thread), np.uint32(_RING))
            if at < end:
                out[at] = sample(kind, tempered(word), unit)
            at += _ROUND
            cuda.syncthreads()


def mt_batch(batch: Draws, target: CudaTarget) -> Window:
    """Numbers of MT19937, and the window behind them."""

    def fill(slot: Any, first: int, out: Any) -> None:
        mt_piece(batch, slot, generators.skipped_window(batch.source, first), out)

    _in_pieces(batch, target, fill)
    return generators.skipped_window(batch.source, batch.out.size)


def mt_piece(batch: Draws, slot: Any, window: Window, out: Any) -> Any:
    """Start what fills `out`, on the device, from a window on; the windows of blocks."""
    blocks = max(-(-(out.size - WORDS + window.place) // _SPAN), 1)
    windows = slot.room("windows", (blocks, WORDS), np.uint32)
    windows[:1].copy_to_device(window.key[None], stream=slot.stream)
    for k, exponents in enumerate(generators.doublings(_SPAN, (blocks - 1).bit_length())):
        count = 1 << k
        there = slot.upload(f"jump {k}", exponents)
        new, held = min(count, blocks - count), 4 * (DEGREE + WORDS + _ROUND)
        jump_windows.launch(new, 640, there, windows, np.int64(count), stream=slot.stream, shared=held)
    places = np.int64(_SPAN), np.int64(window.place)
    mt_numbers.launch(blocks, _ROUND, batch.kind, batch.unit, windows, *places, out, stream=slot.stream)
    return windows
