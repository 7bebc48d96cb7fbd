"""Folding with two threads beside one, and beside two processes that have half of the sequences each.

``taskset -c 2,4 python benchmarks/folding_cores.py [TURNS]`` on two processors that nothing else uses; of
more than two those are taken on which two processes gain most, as some are threads of one core. What two
processes gain is what the processors give. Seconds of the clock, the least of some turns. "busy": how many
processors two threads kept busy; "dearer": their seconds of processor beside those of one thread, which is
what the machine takes where both work.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from commands import processor_name
from folding import sequences

from plait.folding import mfe, partition

#: Names, how many sequences of how many bases, and what is done with them by so many threads.
WORK: list[tuple[str, int, int, Callable[[list[str], int], Any]]] = [
    ("least energy", 8192, 76, lambda given, threads: mfe(given, threads=threads, device="cpu")),
    ("least energy", 96, 500, lambda given, threads: mfe(given, threads=threads, device="cpu")),
    ("least energy", 24, 1000, lambda given, threads: mfe(given, threads=threads, device="cpu")),
    ("least energy", 1, 3000, lambda given, threads: mfe(given, threads=threads, device="cpu")),
    ("least energy", 1, 8000, lambda given, threads: mfe(given, threads=threads, device="cpu")),
    ("probabilities", 2048, 76, lambda given, threads: partition(given, threads=threads, device="cpu")),
    ("probabilities", 24, 500, lambda given, threads: partition(given, threads=threads, device="cpu")),
    ("probabilities", 8, 1000, lambda given, threads: partition(given, threads=threads, device="cpu")),
]


def seconds(run: Callable[[], Any]) -> tuple[float, float]:
    """Of the clock, and of this process's threads."""
    begun, used = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - begun, time.process_time() - used


def in_processes(run: Callable[[list[str], int], Any], given: list[str]) -> None:
    """Half of the sequences in each of two processes."""
    children = []
    for half in (given[::2], given[1::2]):
        child = os.fork()
        if child == 0:
            run(half, 1)
            os._exit(0)
        children.append(child)
    for child in children:
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("a process failed")


def best_pair() -> set[int]:
    """Two processors on which two processes gain most beside one."""
    everything = sorted(os.sched_getaffinity(0))
    if len(everything) <= 2:
        return set(everything)
    (_, count, bases, run), gains = WORK[1], {}
    given = sequences(count, bases)
    run(given, 1)
    for step in (1, 2, len(everything) // 2):
        for first in range(0, len(everything) - step, max(1, len(everything) // 4)):
            pair = everything[first], everything[first + step]
            os.sched_setaffinity(0, pair)
            one, both = (
                min(seconds(work)[0] for _ in range(3))
                for work in (partial(run, given, 1), partial(in_processes, run, given))
            )
            gains[pair] = one / both
    print("two processes beside one:", ", ".join(f"{a},{b} {gain:.2f}" for (a, b), gain in gains.items()))
    return set(max(gains, key=lambda pair: gains[pair]))


def main() -> None:
    """Print a line for each kind of work."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    os.sched_setaffinity(0, best_pair())
    print(f"{processor_name()}, processors {sorted(os.sched_getaffinity(0))}")
    print(f"{'work':<26} {'one thread':>12} {'two':>12} {'processes':>12} {'gains':>9} {'busy':>6} dearer")
    for name, count, bases, run in WORK:
        given = sequences(count, bases)
        answers = [run(given, threads) for threads in (1, 2)]
        one, two = ([a.structure for a in found] if name[0] == "p" else found.structures for found in answers)
        if one != two:
            raise RuntimeError("answers differ")
        ways: dict[str, Callable[[], Any]] = {"one": partial(run, given, 1)}
        ways["two"] = partial(run, given, 2)
        if count > 1:
            ways["processes"] = partial(in_processes, run, given)
        least = dict.fromkeys(ways, (float("inf"), 0.0))
        for _ in range(turns):
            for way, call in ways.items():
                least[way] = min(least[way], seconds(call))
        told = " ".join(f"{1e3 * least[way][0]:>9.1f} ms" for way in ways)
        gains = " ".join(f"{least['one'][0] / least[way][0]:6.2f}" for way in list(ways)[1:])
        (wall, used), one = least["two"], least["one"][1]
        shares = f"{used / wall:6.2f} {used / one:6.2f}"
        print(f"{name + f' {count} x {bases}':<26} {told:<38} {gains:<13} {shares}", flush=True)


if __name__ == "__main__":
    main()
