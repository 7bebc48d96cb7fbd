"""Episodes: candidates a second on one processor, and given ones beside the published algorithm, in turn.

    python benchmarks/episodes.py [--seconds 60]

The events are those of 26 neurons with two planted chains. Answers are compared first. The published
algorithm (lists of times for every beginning; GPU Computing Gems, chapter 15) is compiled, too, and times are
those of one thread's processor, the best of three turns.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from support.episodes import neurons

from plait.episodes import count, mine
from plait.lang.compile import kernel

WINDOW = (5.0, 10.0)
#: Times that are held for each beginning.
HELD = 1 << 12


@kernel
def with_queues(types: Any, times: Any, kinds: Any, queues: Any, first: Any, past: Any, found: Any) -> None:
    """Algorithm 1 with one window for all steps: count of an episode; scratch (N, HELD), int64 (N,) twice."""
    size = kinds.size
    found[0] = 0
    for k in range(size):
        first[k] = past[k] = 0
    for x in range(types.size):
        t = times[x]
        for k in range(size - 1, -1, -1):
            if kinds[k] != types[x]:
                continue
            if k:
                at = past[k - 1] - 1
                while at >= first[k - 1] and t - queues[k - 1, at % HELD] <= WINDOW[0]:
                    at -= 1
                if at < first[k - 1] or t - queues[k - 1, at % HELD] > WINDOW[1]:
                    continue
                if k == size - 1:
                    found[0] += 1
                    for j in range(size):
                        first[j] = past[j]
                    break
            queues[k, past[k] % HELD] = t
            past[k] += 1


def best(work: Callable[[], Any]) -> tuple[float, Any]:
    """Least processor seconds of three turns, and the result."""
    found, result = [], None
    for _ in range(3):
        begun = time.process_time()
        result = work()
        found.append(time.process_time() - begun)
    return min(found), result


def compared(types: Any, times: Any, size: int) -> None:
    """Print a line for 200 random episodes of a size, each counted by itself."""
    rng = np.random.default_rng(size)
    kinds = rng.integers(26, size=(200, size)).astype(np.int32)
    texts = [" -(5,10]-> ".join(map(str, row)) for row in kinds.tolist()]
    scratch = np.empty((size, HELD)), np.empty(size, np.int64), np.empty(size, np.int64)
    found = np.empty((len(kinds), 1), np.int64)

    def by_lists() -> list[int]:
        for row, counted in zip(kinds, found, strict=True):
            with_queues(types, times, row, *scratch, counted)
        return [int(n) for n in found[:, 0]]

    count(types, times, texts[:1], threads=1)
    by_lists()
    peer, theirs = best(by_lists)
    own, table = best(lambda: count(types, times, texts, threads=1).table)
    assert table["count"].to_pylist() == theirs
    rates = f"{200 / peer:>8,.0f} episodes/s by lists, {200 / own:>8,.0f} by plait"
    print(f"{size} events: {rates}, {peer / own:.1f} x")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of firing")
    options = parser.parse_args()
    types, times, chains = neurons(seconds=options.seconds)
    print(f"{platform.processor() or platform.machine()}, {types.size:,} events of 26 types")
    for size in (2, 3, 5, 8):
        compared(types, times, size)
    most = [int(options.seconds * 10 * share) for share in (0.5, 0.1)]
    for support in most:
        size = 5 if support == most[0] else 4
        seconds, found = best(
            lambda: mine(types, times, windows=[WINDOW], support=support, max_size=size, threads=1)  # noqa: B023
        )
        counted = sum(level.candidates for level in found.levels)
        longest = sum(level.frequent for level in found.levels if level.size == size)
        print(
            f"support {support}: {counted:,} candidates up to {size} events, {longest:,} frequent of these, "
            f"{seconds:.2f} s, {counted / seconds:,.0f} candidates/s"
        )
        if size == 5:
            longest = {text for text in found.table["episode"].to_pylist() if text.count("->") == 4}
            assert longest == {" -(5,10]-> ".join(map(str, chain)) for chain in chains}


if __name__ == "__main__":
    main()
