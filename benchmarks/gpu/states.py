"""Hidden Markov models and graphs on a GPU: answers beside the CPU, steps a second of the kernels and calls.

    python benchmarks/gpu/states.py

A step is an arc of a graph, or of the matrix of transitions, in one frame; all of them are looked at, without
a beam.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from support.states import random_model

from plait.devices.cuda import CudaKernel, cuda
from plait.states import Graph, decode_each, likelihood_each

SECONDS = [0.0]


def timed(self: Any, *given: Any, stream: Any = 0, shared: int = 0) -> None:
    """Launch a kernel, and take its time."""
    begun, ended = cuda.event(), cuda.event()
    begun.record(stream)
    LAUNCH(self, *given, stream=stream, shared=shared)
    ended.record(stream)
    ended.synchronize()
    SECONDS[0] += cuda.event_elapsed_time(begun, ended) / 1e3


LAUNCH = CudaKernel.launch
CudaKernel.launch = timed  # type: ignore[method-assign]


def rate(name: str, steps: int, call: Callable[[], Any], more: str) -> None:
    """Print the best of three calls."""
    call()
    best, wall = np.inf, np.inf
    for _ in range(3):
        SECONDS[0], begun = 0.0, time.perf_counter()
        call()
        wall, best = min(wall, time.perf_counter() - begun), min(best, SECONDS[0])
    print(f"{name:48} kernel {steps / best / 1e9:8.1f} G steps/s, calls {steps / wall / 1e9:7.2f}; {more}")


def main() -> None:
    """Compare, and print."""
    print(cuda.get_current_device().name)
    for states, frames, count in ((4, 1000, 20_000), (32, 300, 20_000), (256, 40, 8_000)):
        rng = np.random.default_rng(states)
        model = random_model(rng, states, 20)
        sequences = list(rng.integers(20, size=(count, frames)))
        found, expected = (decode_each(model, sequences[:64], device=name) for name in ("cuda", "cpu"))
        same = all(
            a.score == b.score and np.array_equal(a.path, b.path)
            for a, b in zip(found, expected, strict=True)
        )
        logs = [likelihood_each(model, sequences[:64], device=name) for name in ("cuda", "cpu")]
        near = np.abs(logs[0] / logs[1] - 1).max()
        steps = count * frames * states**2
        name = f"{count:,} sequences of {frames:,}, {states} states"
        told = f"paths equal to the CPU's: {same}"
        rate(f"Viterbi, {name}", steps, lambda m=model, s=sequences: decode_each(m, s, device="cuda"), told)
        told = f"likelihoods within {near:.1e}"
        rate(
            f"forward, {name}", steps, lambda m=model, s=sequences: likelihood_each(m, s, device="cuda"), told
        )
    rng = np.random.default_rng(1)
    for states, frames, count in ((200_000, 50, 264), (2_000, 200, 1056)):
        arcs = int(2.4 * states)
        ends = rng.integers(states, size=(arcs, 2))
        ends[:states, 0] = np.arange(states)
        table = np.column_stack([ends, rng.integers(1, 101, arcs), rng.integers(5, size=arcs)])
        graph = Graph(0, table, -rng.exponential(size=arcs), dict.fromkeys(range(states), 0.0))
        weights = list(-rng.exponential(3.0, size=(count, frames, 100)))
        for beam in (np.inf, 12.0):
            found, expected = (
                graph.best_paths(weights[:3], beam=beam, device=name) for name in ("cuda", "cpu")
            )
            same = all(
                a.score == b.score and np.array_equal(a.arcs, b.arcs)
                for a, b in zip(found, expected, strict=True)
            )
            told = f"paths equal to the CPU's: {same}"
            call: Any = lambda g=graph, w=weights, b=beam: g.best_paths(w, beam=b, device="cuda")  # noqa: E731
            name = f"{count:,} x {frames} frames, {arcs:,} arcs, beam {beam}"
            rate(name, count * frames * arcs, call, told)


if __name__ == "__main__":
    main()
