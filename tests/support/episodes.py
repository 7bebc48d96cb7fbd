"""Oracles of serial episodes: all occurrences, the published algorithms; streams with planted chains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

#: An episode: types, and an interval (lo, hi] for each step.
Episode = tuple[Sequence[int], Sequence[tuple[float, float]]]


def occurrences(types: Sequence[int], times: Sequence[float], episode: Episode) -> list[tuple[float, float]]:
    """First and last time of every choice of events that is an occurrence."""
    kinds, windows = episode
    found = [(t, t) for kind, t in zip(types, times, strict=True) if kind == kinds[0]]
    for kind, (low, high) in zip(kinds[1:], windows, strict=True):
        found = [
            (first, t)
            for first, last in found
            for other, t in zip(types, times, strict=True)
            if other == kind and low < t - last <= high
        ]
    return found


def most_without_overlap(found: Sequence[tuple[float, float]]) -> int:
    """The most occurrences each of which begins after the one before has ended, by trying all."""

    @cache
    def after(end: float) -> int:
        return max((1 + after(last) for first, last in set(found) if first > end), default=0)

    return after(-math.inf)


def with_lists(types: NDArray[np.int32], times: NDArray[np.float64], episode: Episode) -> int:
    """Algorithm 1 of Patnaik and others (GPU Computing Gems, chapter 15): lists of times of every beginning.

    Where several events have one time, theirs may take an event that an occurrence has ended with.
    """
    kinds, windows = episode
    lists: list[list[float]] = [[] for _ in kinds]
    count = 0
    for kind, t in zip(types.tolist(), times.tolist(), strict=True):
        for k in range(len(kinds) - 1, -1, -1):
            if kinds[k] != kind:
                continue
            if k == 0:
                lists[0].append(t)
                continue
            low, high = windows[k - 1]
            if any(low < t - before <= high for before in reversed(lists[k - 1])):
                if k == len(kinds) - 1:
                    count += 1
                    lists = [[] for _ in kinds]
                    break
                lists[k].append(t)
    return count


def at_most(types: NDArray[np.int32], times: NDArray[np.float64], episode: Episode) -> int:
    """Their first pass: the last time of each beginning, and no lower ends of intervals: never too few."""
    kinds, windows = episode
    last = [-math.inf] * len(kinds)
    count = 0
    for kind, t in zip(types.tolist(), times.tolist(), strict=True):
        for k in range(len(kinds) - 1, -1, -1):
            if kinds[k] != kind:
                continue
            if k == 0:
                last[0] = t
            elif t - last[k - 1] <= windows[k - 1][1]:
                if k == len(kinds) - 1:
                    count += 1
                    last = [-math.inf] * len(kinds)
                    break
                last[k] = t
    return count


def neurons(
    seed: int = 1, seconds: float = 60.0
) -> tuple[NDArray[np.int32], NDArray[np.float64], list[list[int]]]:
    """26 neurons that fire 20 times a second at random, times in ms, and two chains planted among them.

    Now and then, a chain of neurons fires one after the other, 5 to 10 ms apart. Types, times, the chains.
    """
    rng = np.random.default_rng(seed)
    chains = [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]]
    noise = rng.poisson(20 * seconds, 26)
    types = [np.repeat(np.arange(26), noise)]
    times = [rng.random(noise.sum()) * seconds * 1000]
    for chain in chains:
        starts = np.arange(0, seconds * 1000 - 100, 100.0)
        starts += rng.uniform(0, 60, starts.size)
        delays = np.cumsum(rng.uniform(5.01, 9.99, (starts.size, len(chain) - 1)), axis=1)
        times += [starts, *(starts + delays.T)]
        types += [np.full(starts.size, neuron) for neuron in chain]
    t, k = np.concatenate(times), np.concatenate(types)
    order = np.argsort(t, kind="stable")
    return k[order].astype(np.int32), t[order], chains
