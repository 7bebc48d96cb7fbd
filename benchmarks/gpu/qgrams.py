"""Similarities of q-grams on a GPU: answers beside the CPU, pairs a second of kernels and of whole calls.

    python benchmarks/gpu/qgrams.py [TEXTS]

Texts look like SMILES, see benchmarks/qgrams.py. Kernels: the table of counts, and similar pairs.
Calls begin with texts and end with pairs in the host's memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from qgrams import drawn

from plait.devices.cuda import CudaKernel, cuda
from plait.qgrams import similar


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="?", type=int, default=32768)
    n = parser.parse_args().texts
    print(cuda.get_current_device().name)
    texts, seconds = drawn(n), [0.0]
    launch = CudaKernel.launch

    def timed(self: Any, *given: Any, stream: Any = 0, shared: int = 0) -> None:
        begun, ended = cuda.event(), cuda.event()
        begun.record(stream)
        launch(self, *given, stream=stream, shared=shared)
        ended.record(stream)
        ended.synchronize()
        seconds[0] += cuda.event_elapsed_time(begun, ended) / 1e3

    CudaKernel.launch = timed  # type: ignore[method-assign]
    many = texts[: n // 2]
    for a, b in zip(similar(many, device="cuda"), similar(many, device="cpu"), strict=True):
        assert np.array_equal(a, b)
    print("equal to the CPU's: all similar pairs of half of the texts")
    for name, pairs, call in (
        ("pairs of 0.6 or more", n * n, lambda: similar(texts, texts, at_least=0.6, device="cuda")),
        ("pairs of 0.9 or more", n * n, lambda: similar(texts, texts, at_least=0.9, device="cuda")),
    ):
        call()
        best, wall = np.inf, np.inf
        for _ in range(3):
            seconds[0], begun = 0.0, time.perf_counter()
            call()
            wall, best = min(wall, time.perf_counter() - begun), min(best, seconds[0])
        print(f"{name:22} kernels {pairs / best / 1e9:7.1f} G pairs/s, calls {pairs / wall / 1e9:7.2f}")


if __name__ == "__main__":
    main()
