"""Counted triples of stratum and two keys: sorted, each once, and rounded to a number of entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.statistics.ordered_keys import COARSEST, recoded

__all__ = ["CountedKeys", "joined", "least_level", "narrowed", "no_keys", "summed"]

_Ints: TypeAlias = NDArray[np.int64]


class CountedKeys(NamedTuple):
    """Rows of (stratum, x, y), each with how often it is meant; of any integer types.

    Attributes
    ----------
    stratum, x, y, counts
        (n,) each.
    """

    stratum: NDArray[Any]
    x: NDArray[Any]
    y: NDArray[Any]
    counts: NDArray[Any]


def no_keys() -> CountedKeys:
    """No rows."""
    return CountedKeys(*(np.zeros(0, np.int8) for _ in range(4)))


def joined(blocks: Sequence[CountedKeys]) -> CountedKeys:
    """Rows of blocks one after the other.

    Parameters
    ----------
    blocks
        One or more.
    """
    return CountedKeys(*(np.concatenate(columns) for columns in zip(*blocks, strict=True)))


def narrowed(block: CountedKeys) -> CountedKeys:
    """The same rows in as few bytes as the numbers need.

    Parameters
    ----------
    block
        Rows.
    """
    return CountedKeys(*(column.astype(_narrowest(column), copy=False) for column in block))


def summed(block: CountedKeys) -> CountedKeys:
    """Distinct triples in order, with the sums of their counts.

    Parameters
    ----------
    block
        Rows.
    """
    if not len(block.counts):
        return block
    order = _order(block)
    stratum, x, y, counts = (column[order] for column in block)
    new = np.ones(len(counts), bool)
    new[1:] = (stratum[1:] != stratum[:-1]) | (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(counts, first, dtype=np.int64)
    return narrowed(CountedKeys(stratum[first], x[first], y[first], sums))


def least_level(block: CountedKeys, whole: Sequence[bool], level: int, most: int) -> int:
    """The least level above one that leaves few enough entries, or the coarsest of all.

    Parameters
    ----------
    block
        Distinct triples.
    whole, level
        Kinds of x and y, and their level.
    most
        Most entries.
    """

    def fits(at: int) -> bool:
        return _entries(block, whole, level, at) <= most

    # As y mostly stays what it is, the first level at which x alone would do is mostly the one.
    low, high = level + 1, _first_by_x(block, whole, level, most)
    step = 1
    while low < high:
        middle = max(high - step, low)
        if not fits(middle):
            low = middle + 1
            break
        high, step = middle, 2 * step
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _first_by_x(block: CountedKeys, whole: Sequence[bool], level: int, most: int) -> int:
    """The first level above one that leaves few enough entries even if y is not rounded; else the coarsest.

    Of neighbours in order of stratum, y and x, the highest binary digit in which they differ tells up to
    which level they stay two.
    """
    x = recoded(block.x, whole[0], level, False, level)
    order = _order(CountedKeys(block.stratum, block.y, x, block.counts))
    stratum, y, x = block.stratum[order], block.y[order], x[order]
    together = (stratum[1:] == stratum[:-1]) & (y[1:] == y[:-1])
    one, other = np.abs(x[1:]), np.abs(x[:-1])
    apart = np.where((x[1:] < 0) == (x[:-1] < 0), one ^ other, np.maximum(one, other))
    # Digits of numbers near 2^63 may come out one too many, which only makes the level higher.
    digits = np.frexp(apart[together].astype(np.float64))[1]
    differing = np.bincount(digits, minlength=COARSEST + 2)
    left = 1 + np.count_nonzero(~together) + differing.sum() - np.cumsum(differing)
    fitting = np.flatnonzero(left[1:] <= most)
    return min(level + 1 + int(fitting[0]), COARSEST) if len(fitting) else COARSEST


def _entries(block: CountedKeys, whole: Sequence[bool], level: int, at: int) -> int:
    """Distinct triples that are left at another level."""
    x, y = (
        recoded(keys, is_whole, level, is_whole, at)
        for keys, is_whole in zip((block.x, block.y), whole, strict=True)
    )
    packed = _packed(block.stratum, x, y)
    if packed is None:
        return len(summed(block._replace(x=x, y=y)).counts)
    packed.sort()
    return 1 + int(np.count_nonzero(packed[1:] != packed[:-1]))


def _packed(stratum: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> _Ints | None:
    """One number for each of one or more triples, in their order; None if it could be too large."""
    places = []
    size = 1
    for column in (stratum, x, y):
        least = int(column.min())
        size *= int(column.max()) - least + 1
        places.append((column, least, int(column.max()) - least + 1))
    if size > np.iinfo(np.int64).max:
        return None
    packed = np.zeros(len(x), np.int64)
    for column, least, values in places:
        packed *= values
        packed += column.astype(np.int64, copy=False) - least
    return packed


def _order(block: CountedKeys) -> NDArray[np.intp]:
    packed = _packed(*block[:3])
    if packed is None:
        places = [np.unique(keys, return_inverse=True)[1] for keys in (block.x, block.y)]
        packed = _packed(block.stratum, *places)
    # Mostly a few sorted runs after each other, which a stable sort merges in linear time.
    if packed is None:
        return np.lexsort((block.y, block.x, block.stratum))
    return np.argsort(packed, kind="stable")


def _narrowest(column: NDArray[Any]) -> type[np.signedinteger[Any]]:
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return kind
    return np.int64
