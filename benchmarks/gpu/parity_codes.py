"""Parity-check codes on a GPU: answers beside the CPU, speed of the kernel alone and with copies.

    python benchmarks/gpu/parity_codes.py [WORDS]

10 iterations with so much noise that no word is found early.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from parity_codes import regular

from plait.devices.cuda import CudaKernel, cuda
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.ldpc import code_named, gpu_decoding
from plait.ldpc.decoding import _DECODING, DecodeBatch, to_units


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="?", type=int, default=16384)
    words = parser.parse_args().words
    print(cuda.get_current_device().name)
    # Kernels of pieces are timed one after the other.
    gpu_decoding._COPYING, seconds = 1, [0.0]
    launch = CudaKernel.launch

    def timed(self: Any, *given: Any, stream: Any = 0, shared: int = 0) -> None:
        begun, ended = cuda.event(), cuda.event()
        begun.record(stream)
        launch(self, *given, stream=stream, shared=shared)
        ended.record(stream)
        ended.synchronize()
        seconds[0] += cuda.event_elapsed_time(begun, ended) / 1e3

    CudaKernel.launch = timed  # type: ignore[method-assign]
    for code in (regular(8000), regular(1024), *map(code_named, ("wimax-1248", "c2", "ar4ja-1/2-4096"))):
        noisy = np.random.default_rng(2).normal(1, 1.4, (words, code.size)).astype(np.float32)
        ratios = to_units(noisy, np.empty(noisy.shape, np.int8))
        for layered in (False, True):
            batch: Any = DecodeBatch(code, ratios, "min-sum", layered, 10, np.int8)
            expected = CpuTarget().launch(_DECODING, batch._replace(ratios=ratios[:256]))
            best, wall = np.inf, np.inf
            for _ in range(3):
                seconds[0], begun = 0.0, time.perf_counter()
                found = CudaTarget((0,)).launch(_DECODING, batch)
                wall, best = min(wall, time.perf_counter() - begun), min(best, seconds[0])
            same = (found[0][:256] == expected[0]).mean()
            name = f"{code.size:6,} columns {'layered' if layered else 'flooding':9}"
            print(
                f"{code.name:16} {name} kernel {ratios.size / best / 1e9:7.2f} Gbit/s, with copies "
                f"{ratios.size / wall / 1e9:6.2f}; bits equal to the CPU's: {same:.6f}"
            )


if __name__ == "__main__":
    main()
