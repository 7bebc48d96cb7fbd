"""Parity-check codes on a GPU: answers beside the CPU, speed of the kernel alone and with copies.

    python benchmarks/gpu/parity_codes.py [WORDS]

A regular code of 8,000 bits, 10 iterations with so much noise that no word is found early.
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
from plait.ldpc.decoding import _DECODING, DecodeBatch


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="?", type=int, default=16384)
    words = parser.parse_args().words
    print(cuda.get_current_device().name)
    code, seconds = regular(8000), [0.0]
    launch = CudaKernel.launch

    def timed(self: Any, *given: Any, stream: Any = 0, shared: int = 0) -> None:
        begun, ended = cuda.event(), cuda.event()
        begun.record(stream)
        launch(self, *given, stream=stream, shared=shared)
        ended.record(stream)
        ended.synchronize()
        seconds[0] += cuda.event_elapsed_time(begun, ended) / 1e3

    CudaKernel.launch = timed  # type: ignore[method-assign]
    ratios = np.random.default_rng(2).normal(1, 1.4, (words, code.n))
    for method, kind in (("min-sum", np.int8), ("sum-product", np.float32)):
        for layered in (False, True):
            batch: Any = DecodeBatch(code, ratios, method, layered, 10, kind)  # type: ignore[arg-type]
            few = batch._replace(ratios=ratios[:256])
            expected = CpuTarget().launch(_DECODING, few)
            best, wall = np.inf, np.inf
            for _ in range(3):
                seconds[0], begun = 0.0, time.perf_counter()
                found = CudaTarget((0,)).launch(_DECODING, batch)
                wall, best = min(wall, time.perf_counter() - begun), min(best, seconds[0])
            same = (found[0][:256] == expected[0]).mean()
            name = f"{method:12} {'layered' if layered else 'flooding':9}"
            print(
                f"{name} kernel {ratios.size / best / 1e9:7.2f} Gbit/s, "
                f"with copies {ratios.size / wall / 1e9:6.2f}; bits equal to the CPU's: {same:.6f}"
            )


if __name__ == "__main__":
    main()
