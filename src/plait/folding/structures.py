"""Structures as brackets, and what a table of pair probabilities says: most expected accuracy, centroid.

A module of its own: it knows neither energies nor files.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.lang.compile import kernel

_BRACKETS: Final = np.frombuffer(b".)(", np.uint8)


class PairTable(NamedTuple):
    """Pairs of a sequence of `bases`, int32 (pairs, 2), first base and last, and how probable each is."""

    bases: int
    pairs: NDArray[np.int32]
    probabilities: NDArray[np.float64]

    def paired(self) -> NDArray[np.float64]:
        """Probabilities that a base pairs with one behind it, and with one before it. Shape (2, n)."""
        return np.array([np.bincount(side, self.probabilities, self.bases) for side in self.pairs.T], float)


def brackets(structures: Sequence[NDArray[Any]]) -> list[str]:
    """Structures as text: a dot for an unpaired base."""
    sizes = [partners.size for partners in structures]
    partners = np.concatenate([np.empty(0, np.int32), *structures])
    places = np.concatenate([np.empty(0, np.int64), *map(np.arange, sizes)])
    return _texts(_BRACKETS[(partners >= 0) * (1 + (partners > places))], sizes)


def _texts(signs: NDArray[np.uint8], sizes: Sequence[int]) -> list[str]:
    """Signs one behind the other, as texts of so many."""
    text = signs.tobytes().decode()
    return [text[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def partners_of(structure: str, what: str = "structure") -> NDArray[np.int32]:
    """The partner of every base of a structure as text, or -1; InvalidInput if brackets do not match."""
    found = np.full(len(structure), -1, np.int32)
    opened: list[int] = []
    for place, letter in enumerate(structure):
        if letter == "(":
            opened.append(place)
        elif letter == ")":
            if not opened:
                raise InvalidInput(what, found=f"')' at base {place + 1}", expected="one '(' before it")
            other = opened.pop()
            found[place], found[other] = other, place
        elif letter != ".":
            raise InvalidInput(what, found=f"{letter!r} at base {place + 1}", expected="'(', ')' and '.'")
    if opened:
        raise InvalidInput(what, found=f"'(' at base {opened[-1] + 1}", expected="one ')' behind it")
    return found


def loops_within(partners: NDArray[np.int32]) -> dict[int, list[int]]:
    """Bases of loops by the first base of the pair around, -1 for what is in none; of a pair within, both."""
    found: dict[int, list[int]] = {-1: []}
    around = [-1]
    for place, other in enumerate(partners.tolist()):
        if 0 <= other < place:
            around.pop()
        found[around[-1]].append(place)
        if other > place:
            around.append(place)
            found[place] = []
    return found


class Described(NamedTuple):
    """What tables of pairs say of their sequences.

    What each base mostly does, by the signs of RNAfold, ``.,|{}()``; the mean number of pairs that one of two
    structures has and the other has not; partners by pairs more probable than one half, and the mean distance
    of structures from these.
    """

    marks: list[str]
    diversities: list[float]
    centroids: list[NDArray[np.int32]]
    distances: list[float]


def described(tables: Sequence[PairTable]) -> Described:
    """What some tables of pairs say."""
    sizes = [one.bases for one in tables]
    first = np.cumsum([0, *sizes], dtype=np.int64)
    ends = np.cumsum([0, *(len(one.pairs) for one in tables)], dtype=np.int64)
    pairs = np.concatenate([np.empty((0, 2), np.int32), *(one.pairs for one in tables)])
    shares = np.concatenate([np.empty(0), *(one.probabilities for one in tables)])
    paired, apart = np.zeros((2, first[-1])), np.zeros((2, len(tables)))
    partners = np.full(first[-1], -1, np.int32)
    describe_kernel(pairs, shares, first, ends, paired, partners, apart)
    centroids = np.split(partners, first[1:-1])[: len(tables)]
    return Described(_texts(_marks(*paired), sizes), apart[0].tolist(), centroids, apart[1].tolist())


@kernel
def describe_kernel(
    pairs: Any, shares: Any, first: Any, ends: Any, paired: Any, partners: Any, apart: Any
) -> None:
    """How often bases pair with one behind and one before; centroids, diversities, and distances.

    Bases of the k-th table are ``first[k]`` to ``first[k + 1]``, its pairs ``ends[k]`` to ``ends[k + 1]``.
    """
    for k in range(ends.size - 1):
        for x in range(ends[k], ends[k + 1]):
            # Rounding can make a certain pair more than that, and distances less than none.
            share = min(shares[x], 1.0)
            i, j = first[k] + pairs[x, 0], first[k] + pairs[x, 1]
            paired[0, i] += share
            paired[1, j] += share
            apart[0, k] += 2 * share * (1 - share)
            apart[1, k] += min(share, 1 - share)
            if share > 0.5:
                partners[i], partners[j] = pairs[x, 1], pairs[x, 0]


def _marks(behind: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.uint8]:
    """What bases mostly do, of probabilities to pair with one behind and with one before."""
    paired = behind + before
    share = behind / np.maximum(paired, 1e-300)
    mostly = paired > 1 - paired
    found = [1 - paired > 0.667, behind > 0.667, before > 0.667]
    found += [mostly & (share > 0.667), mostly & (1 - share > 0.667), mostly]
    marks = np.select(found, [ord(mark) for mark in ".(){}|"], ord(","))
    return marks.astype(np.uint8)


def most_expected_accuracy(table: PairTable, gamma: float = 1.0) -> tuple[NDArray[np.int32], float]:
    """The structure of which most is right, a pair counting `gamma` times both its bases; and how much."""
    n = table.bases
    # What is hardly ever there counts as unpaired, as in other programs.
    likely = table.probabilities > 1e-4 / (1 + gamma)
    table = PairTable(n, table.pairs[likely], table.probabilities[likely])
    unpaired = 1 - table.paired().sum(axis=0)
    worth = 2 * gamma * table.probabilities - unpaired[table.pairs[:, 0]] - unpaired[table.pairs[:, 1]]
    chosen = worth > 0
    pairs, gain = table.pairs[chosen], 2 * gamma * table.probabilities[chosen]
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    starts = np.searchsorted(pairs[order, 0], np.arange(n + 1)).astype(np.int64)
    best = np.zeros((n + 2, n + 2))
    partners = np.full(n, -1, np.int32)
    left = np.empty((2, n + 2), np.int64)
    last = np.ascontiguousarray(pairs[order, 1])
    accuracy_kernel(last, gain[order], starts, unpaired, best, left, partners)
    return partners, float(best[0, n])


@kernel
def accuracy_kernel(
    last: Any, gain: Any, starts: Any, unpaired: Any, best: Any, left: Any, partners: Any
) -> None:
    """Most expected accuracy: `best` of bases i to j - 1, and a structure that has it.

    Pairs from base i are ``starts[i]`` to ``starts[i + 1]``.
    """
    n = partners.size
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n + 1):
            best[i, j] = unpaired[i] + best[i + 1, j]
        for x in range(starts[i], starts[i + 1]):
            k = np.int64(last[x])
            value = gain[x] + best[i + 1, k]
            for j in range(k + 1, n + 1):
                best[i, j] = max(best[i, j], value + best[k + 1, j])
    left[0, 0], left[1, 0] = 0, n
    top = 1
    while top > 0:
        top -= 1
        i, j = left[0, top], left[1, top]
        while i < j and best[i, j] == unpaired[i] + best[i + 1, j]:
            i += 1
        if i >= j:
            continue
        for x in range(starts[i], starts[i + 1]):
            k = np.int64(last[x])
            if k < j and best[i, j] == gain[x] + best[i + 1, k] + best[k + 1, j]:
                partners[i], partners[k] = k, i
                left[0, top], left[1, top] = i + 1, k
                left[0, top + 1], left[1, top + 1] = k + 1, j
                top += 2
                break
