"""Hidden Markov models beside hmmlearn in one process, and arcs of graphs a second, on one processor.

    python benchmarks/states.py

Answers are compared: scores and likelihoods within 1e-9. Seconds of processor, the least of each in 5 to 60
turns that alternate, after one that is not counted; of 20 for arcs, which misses of a cache slow down that
others use, too. Memory that was freed is used again: new pages would be half of the time that hmmlearn takes
with 4 states.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import Any

# One thread of BLAS: others only wait where the processors are shared.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from support.states import peer, random_model

from plait.states import Graph, decode, decode_each, likelihood, posterior


def alternating(*work: Callable[[], Any], turns: int = 5) -> tuple[list[float], list[Any]]:
    """Least processor seconds of each, and results."""
    seconds, found = [float("inf")] * len(work), [one() for one in work]
    for _ in range(turns):
        for k, one in enumerate(work):
            begun = time.process_time()
            found[k] = one()
            seconds[k] = min(seconds[k], time.process_time() - begun)
    return seconds, found


def dense(states: int, frames: int) -> None:
    """Print a line for each algorithm."""
    rng = np.random.default_rng(states)
    model = random_model(rng, states, 20)
    theirs, symbols = peer(model), rng.integers(20, size=frames)
    column = symbols[:, None]
    for name, own, other in (
        ("Viterbi", lambda: decode(model, symbols).score, lambda: theirs.decode(column)[0]),
        ("forward", lambda: likelihood(model, symbols), lambda: theirs.score(column)),
        ("posteriors", lambda: posterior(model, symbols), lambda: theirs.predict_proba(column)),
    ):
        turns = min(max(5, 80_000_000 // (frames * states**2)), 60)
        (ours, peers), (found, expected) = alternating(own, other, turns=turns)
        assert np.allclose(found, expected, rtol=1e-9, atol=1e-9)
        print(
            f"{states:>4} states, {frames:>7,} frames  {name:<11}{frames / peers / 1e3:>9,.1f} k frames/s "
            f"hmmlearn,{frames / ours / 1e3:>9,.1f} k plait, {peers / ours:5.1f} x"
        )


def many(states: int, frames: int, count: int) -> None:
    """Print a line for the best paths of many sequences, hmmlearn's one after the other in one call."""
    rng = np.random.default_rng(states)
    model = random_model(rng, states, 20)
    theirs, sequences = peer(model), list(rng.integers(20, size=(count, frames)))
    column, lengths = np.concatenate(sequences)[:, None], [frames] * count

    def own() -> float:
        return sum(one.score for one in decode_each(model, sequences, device="cpu", threads=1))

    (ours, peers), (found, expected) = alternating(own, lambda: theirs.decode(column, lengths)[0])
    assert np.isclose(found, expected, rtol=1e-9)
    print(
        f"{states:>4} states  Viterbi of {count} sequences{count * frames / peers / 1e3:>9,.1f} k frames/s "
        f"hmmlearn,{count * frames / ours / 1e3:>9,.1f} k plait, {peers / ours:5.1f} x"
    )


def sparse(states: int, frames: int, most: int | None) -> None:
    """Print arcs a second with so many states of a frame kept."""
    rng = np.random.default_rng(1)
    count = int(2.4 * states)
    ends = rng.integers(states, size=(count, 2))
    ends[:states, 0] = np.arange(states)
    table = np.column_stack([ends, rng.integers(1, 101, count), rng.integers(5, size=count)])
    graph = Graph(0, table, -rng.exponential(size=count), {s: 0.0 for s in range(states)})
    weights = -rng.exponential(3.0, size=(frames, 100))
    graph.best_path(weights[:2], most=most)
    (seconds,), (found,) = alternating(lambda: graph.best_path(weights, most=most), turns=20)
    assert len(found.frames) == frames
    kept = most or states
    print(
        f"{states:,} states, {count:,} arcs, {kept:,} kept of a frame: {frames / seconds:,.0f} frames/s, "
        f"at most {2.4 * kept * frames / seconds / 1e6:,.1f} M arcs/s"
    )


def main() -> None:
    """Print the table."""
    # Freed, it tells malloc to keep what is no larger.
    np.empty(31 << 20, np.uint8)
    print(f"{platform.processor() or platform.machine()}, load {os.getloadavg()[0]:.1f}")
    for states, frames in (
        (4, 20_000),
        (4, 200_000),
        (8, 20_000),
        (8, 200_000),
        (16, 100_000),
        (32, 20_000),
        (256, 3000),
    ):
        dense(states, frames)
    for states, frames in ((4, 20_000), (8, 20_000), (16, 10_000), (32, 5000), (256, 500)):
        many(states, frames, 16)
    sparse(20_000, 200, None)
    sparse(200_000, 200, 20_000)


if __name__ == "__main__":
    main()
