"""Random numbers on a GPU: answers beside the CPU, speed of the kernels alone and with copies.

    python benchmarks/gpu/random_numbers.py [MILLIONS]

Numbers of a launch are compared with those of the CPU, then giga-numbers a second: of kernels that write
float32, words and float64 to the device's memory, best of five, and of calls whose numbers come back.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from plait.devices.cuda import cuda
from plait.devices.cuda_devices import POOL
from plait.devices.cuda_target import CudaTarget
from plait.random import Mrg32k3a, Mt19937, Sobol
from plait.random.draws import Draws, Normal, Uniform
from plait.random.generators import states_of
from plait.random.gpu_streams import (
    _BITS,
    _ROUND,
    _SPAN,
    _STEPS,
    _THREADS,
    mrg_numbers,
    mt_numbers,
    mt_piece,
    sobol_points,
)


def launches(generator: Any, kind: Any, out: Any) -> Any:
    """A call that starts the kernel once, its tables being on the device."""
    if isinstance(generator, Sobol):
        source = generator._source
        vectors, shifts = cuda.to_device(source.vectors), cuda.to_device(source.shifts)
        given = kind, generator._unit, vectors, shifts, np.int64(source.first), out
        return lambda: sobol_points.launch(((1 << _BITS) // _THREADS, 1), _THREADS, *given)
    if isinstance(generator, Mt19937):
        window = generator._source
        with POOL.slot((0,)) as slot:
            # What it starts makes the windows, and numbers.
            windows = mt_piece(Draws(kind, generator._unit, window, out), slot, window, out)
            slot.wait()
        given = kind, generator._unit, windows, np.int64(_SPAN), np.int64(window.place), out
        return lambda: mt_numbers.launch(len(windows), _ROUND, *given)
    blocks = out.size // (_STEPS * _THREADS)
    states = cuda.to_device(states_of(generator._source, _STEPS, blocks * _THREADS))
    given = kind, generator._unit, states, np.int64(_STEPS), out
    return lambda: mrg_numbers.launch(blocks, _THREADS, *given)


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("millions", nargs="?", type=int, default=1024)
    n = parser.parse_args().millions << 20
    print(cuda.get_current_device().name)
    single = Uniform(1 - 2.0**-24)
    kinds = (
        ("raw", None, "uint32"),
        ("float32", single, "float32"),
        ("float64", Uniform(1 - 2.0**-53), "float64"),
    )
    for generator in (Mrg32k3a(), Sobol(1), Mt19937()):
        for name, kind, dtype in (*kinds, ("normal float32", Normal(), "float32")):
            kind = generator._word if kind is None else kind
            shape = (1, n) if isinstance(generator, Sobol) else (n,)
            out = cuda.device_array(shape, dtype)
            call = launches(generator, kind, out)
            call()
            best = np.inf
            for _ in range(5):
                begun, ended = cuda.event(), cuda.event()
                begun.record()
                call()
                ended.record()
                ended.synchronize()
                best = min(best, cuda.event_elapsed_time(begun, ended) / 1e3)
            few = min(n, 1 << 24)
            expected = np.empty((1, few) if len(shape) == 2 else few, dtype)
            asked = Draws(kind, generator._unit, generator._source, expected)
            generator._problem.cpu(asked, CudaTarget((0,)).host)
            found = out.copy_to_host()[..., :few]
            same = np.array_equal(found, expected)
            whole = np.empty((1, few) if len(shape) == 2 else few, dtype)
            begun_at = time.perf_counter()
            CudaTarget((0,)).launch(generator._problem, asked._replace(out=whole))
            wall = time.perf_counter() - begun_at
            print(
                f"{type(generator).__name__:10} {name:16} {n / best / 1e9:8.1f} G/s, with copies "
                f"{few / wall / 1e9:6.2f} G/s, equal {same}"
            )


if __name__ == "__main__":
    main()
