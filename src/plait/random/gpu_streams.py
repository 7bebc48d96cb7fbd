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
from plait.lang.lanes import lanes_of
from plait.lang.warps import WARP
from plait.random.draws import Draws, Exponential, Normal, Residue, Uniform, Unit, Word, sample
from plait.random.mrg32k3a import skipped, states_of, step
from plait.random.sobol import Directions

_ONE: Final = lanes_of(1)
_THREADS: Final = 128
#: Of shared memory: one more than lanes, so that columns are in other banks.
_ROW: Final = WARP + 1
#: Numbers of a thread, and of a launch, at most.
_STEPS: Final = 1 << 10
_PIECE: Final = 1 << 26
#: Threads for each dimension of points: bits of their number.
_BITS: Final = 16


def _examples(*source: Any) -> list[tuple[Any, ...]]:
    kinds = (Uniform(1.0), np.zeros(1)), (Normal(), np.zeros(1, np.float32)), (Exponential(), np.zeros(1))
    words = (Word() if len(source) > 2 else Residue(1.0)), np.zeros(1, np.uint32)
    found = [(kind, Unit(0.5, 1.0), *source, out) for kind, out in (words, *kinds)]
    return [(*row[:-1], row[-1][None]) for row in found] if len(source) > 2 else found


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


@cuda_kernel(lambda: _examples(np.zeros((1, 32), np.uint32), np.zeros(1, np.uint32), np.int64(0)))
def sobol_points(kind: Any, unit: Any, vectors: Any, shifts: Any, number: Any, out: Any) -> None:
    """Fill `out` with points from `number` on; every thread takes one and those 2^k further on.

    Gray codes of a number and of one 2^k further differ in bit k - 1 and in that of the lowest 0 from k on.
    """
    d, at = cuda.blockIdx.y, cuda.grid(1)
    here = number + at
    gray, word = here ^ here >> 1, shifts[d]
    for k in range(32):
        if gray >> k & 1:
            word ^= vectors[d, k]
    while at < out.shape[1]:
        out[d, at] = sample(kind, word, unit)
        at += 1 << _BITS
        if at < out.shape[1]:
            k = _BITS
            while here >> k & 1:
                k += 1
            word ^= vectors[d, _BITS - 1] ^ vectors[d, k]
            here += 1 << _BITS


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
        states = slot.upload("states", states_of(skipped(batch.source, first), steps, blocks * _THREADS))
        given = batch.kind, batch.unit, states, np.int64(steps), out
        mrg_numbers.launch(blocks, _THREADS, *given, stream=slot.stream)

    return _in_pieces(batch, target, fill)


def sobol_batch(batch: Draws, target: CudaTarget) -> Any:
    """Points of Sobol's sequence."""
    source: Directions = batch.source

    def fill(slot: Any, first: int, out: Any) -> None:
        vectors, shifts = slot.upload("vectors", source.vectors), slot.upload("shifts", source.shifts)
        given = batch.kind, batch.unit, vectors, shifts, np.int64(source.first + first), out
        blocks = (1 << _BITS) // _THREADS, len(source.vectors)
        sobol_points.launch(blocks, _THREADS, *given, stream=slot.stream)

    return _in_pieces(batch, target, fill)
