"""The simulator as the tests use it: barriers, warps, arrays, and errors of one thread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import on_device
from plait.lang.warps import (
    WARP,
    ballot,
    lane_index,
    shuffle,
    shuffle_down,
    shuffle_up,
    shuffle_xor,
    synchronize_warp,
)

THREADS = 2 * WARP


class Pair(NamedTuple):
    """Arrays that are handed over together."""

    given: Any
    out: Any


def on_both(function: Any) -> Any:
    return pytest.mark.gpu(pytest.mark.cuda_simulator(function))


@cuda_kernel(lambda: [(Pair(np.zeros(1, np.int32), np.zeros((1, 1), np.int32)),)])
def exchange(pair: Any) -> None:
    """All exchanges of a warp."""
    i = cuda.threadIdx.x
    own, lane = pair.given[i], np.int32(lane_index())
    pair.out[0, i] = shuffle(own, np.int32(31) - lane)
    pair.out[1, i] = shuffle_up(own, np.int32(3))
    pair.out[2, i] = shuffle_down(own, np.int32(5))
    pair.out[3, i] = shuffle_xor(own, np.int32(6))
    pair.out[4, i] = np.int32(ballot(own % np.int32(3) == 0) & 0xFFFF)
    synchronize_warp()
    pair.out[5, i] = lane


@cuda_kernel(lambda: [(np.zeros(1, np.int32), np.int32(1))])
def sums(out: Any, rounds: Any) -> None:
    """Sums of all threads of a block, through shared memory, again and again."""
    shared = cuda.shared.array(64, np.int32)
    i = cuda.threadIdx.x
    value = np.int32(i)
    for _ in range(rounds):
        shared[i] = value
        cuda.syncthreads()
        total = np.int32(0)
        for k in range(64):
            total = np.int32(total + shared[k])
        cuda.syncthreads()
        value = np.int32(total % np.int32(1000) + i)
    out[i] = value


@on_both
def test_exchanges() -> None:
    given = np.random.default_rng(1).integers(-1000, 1000, THREADS).astype(np.int32)
    with on_device(0):
        pair = Pair(cuda.to_device(given), cuda.to_device(np.zeros((6, THREADS), np.int32)))
        exchange.launch(1, THREADS, pair)
        found = pair.out.copy_to_host()
    lane = np.arange(WARP)
    for first in (0, WARP):
        own = given[first : first + WARP]
        part = found[:, first : first + WARP]
        np.testing.assert_array_equal(part[0], own[::-1])
        np.testing.assert_array_equal(part[1], np.where(lane < 3, own, np.roll(own, 3)))
        np.testing.assert_array_equal(part[2], np.where(lane + 5 < WARP, np.roll(own, -5), own))
        np.testing.assert_array_equal(part[3], own[lane ^ 6])
        flags = np.fmod(own, 3) == 0
        assert set(part[4].tolist()) == {sum(1 << k for k in range(16) if flags[k])}
        np.testing.assert_array_equal(part[5], lane)


@on_both
def test_barriers() -> None:
    with on_device(0):
        out = cuda.to_device(np.zeros(THREADS, np.int32))
        sums.launch(1, THREADS, out, np.int32(4))
        found = out.copy_to_host()
    values = np.arange(THREADS)
    for _ in range(4):
        values = values.sum() % 1000 + np.arange(THREADS)
    np.testing.assert_array_equal(found, values)


@pytest.mark.cuda_simulator
def test_an_error_of_one_thread_ends_the_others() -> None:
    @cuda_kernel(lambda: [])
    def fail(out: Any) -> None:
        if cuda.threadIdx.x == 5:
            raise ValueError("thread five")
        cuda.syncthreads()
        out[cuda.threadIdx.x] = 1

    out = cuda.to_device(np.zeros(THREADS, np.int32))
    with pytest.raises(ValueError, match="thread five"):
        fail.launch(1, THREADS, out)
    assert out.copy_to_host().sum() == 0


def test_one_thread_is_no_warp() -> None:
    with pytest.raises(RuntimeError, match="on a GPU or in the CUDA simulator only"):
        lane_index()
