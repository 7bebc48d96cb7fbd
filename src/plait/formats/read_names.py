"""Names of reads: names that come again, counted in bounded memory, and names of mates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["RepeatedNames", "hash_names", "pair_names"]

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
#: Hashes that are put among the others in one go.
_MOST_WAITING: Final = 1 << 17
#: Characters between the name of a pair and the number of the mate.
_SEPARATORS: Final = "/._"


def hash_names(names: Sequence[str]) -> NDArray[np.uint64]:
    """A number for each name, the same in every process.

    Parameters
    ----------
    names
        Names without line feeds.

    Returns
    -------
    numpy.ndarray
        uint64, shape (n,): a polynomial of the bytes modulo 2^64, stirred so that every bit depends on all.
    """
    if not names:
        return np.zeros(0, np.uint64)
    data = np.frombuffer(("\n".join(names) + "\n").encode("utf-8", "backslashreplace"), np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    powers = np.cumprod(np.full(int(lengths.max()), _MULTIPLIER))
    places = np.arange(data.size) - np.repeat(starts, lengths)
    hashes: NDArray[np.uint64] = np.add.reduceat(data * powers[places], starts)
    for _ in range(2):
        hashes = (hashes ^ (hashes >> _HALF)) * _MIX
    stirred: NDArray[np.uint64] = hashes ^ (hashes >> _HALF)
    return stirred


class RepeatedNames:
    """Counts the names that came before, in memory that does not grow with the number of reads.

    Up to `room` names the count is exact. Beyond that only the names whose hash is a multiple of a power of
    two are kept, all of them at first and half as many each time that room runs out, and what is counted
    among them is multiplied by that power. A repeated name is kept each time or never, so that the estimate
    has no bias; it depends on nothing but the names.

    Parameters
    ----------
    room
        Different names to keep, 16 bytes each.
    """

    def __init__(self, room: int = 1 << 20) -> None:
        self._room = room
        self._shift = 0
        self._hashes = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        self._waiting: list[NDArray[np.uint64]] = []
        self._waiting_size = 0

    @property
    def exact(self) -> bool:
        """Whether all names are kept."""
        self._settle()
        return self._shift == 0

    @property
    def count(self) -> int:
        """Names that an earlier read has, too."""
        self._settle()
        return int(self._counts.sum() - self._counts.size) << self._shift

    def add(self, names: Sequence[str]) -> None:
        """Count some names.

        Parameters
        ----------
        names
            The names of further reads.
        """
        hashes = hash_names(names)
        if self._shift:
            hashes = self._kept(hashes)
        self._waiting.append(hashes)
        self._waiting_size += hashes.size
        if self._waiting_size > _MOST_WAITING:
            self._settle()

    def _kept(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        kept: NDArray[np.uint64] = hashes[hashes << np.uint64(64 - self._shift) == 0]
        return kept

    def _settle(self) -> None:
        if not self._waiting_size:
            return
        new, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        self._waiting, self._waiting_size = [], 0
        at = np.searchsorted(self._hashes, new)
        known = self._hashes[np.minimum(at, self._hashes.size - 1)] == new if self._hashes.size else at < 0
        self._counts[at[known]] += counts[known]
        self._counts = np.insert(self._counts, at[~known], counts[~known])
        self._hashes = np.insert(self._hashes, at[~known], new[~known])
        while self._hashes.size > self._room:
            self._shift += 1
            keep = self._hashes << np.uint64(64 - self._shift) == 0
            self._hashes, self._counts = self._hashes[keep], self._counts[keep]


def pair_names(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], int | None]:
    """The names that mates have in common.

    Mates have the same name, or one that ends in 1 and one that ends in 2 after a slash, a dot or an
    underscore, which is left out.

    Parameters
    ----------
    first, second
        Names of first and second mates, as many of the one as of the other.

    Returns
    -------
    names : list of str
        The common names.
    wrong : int or None
        Number of the first two that are no mates; `names` ends before them.
    """
    if first == second:
        return list(first), None
    names = []
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if one == other:
            names.append(one)
        elif one[-1:] == "1" and other[-1:] == "2" and one[:-1] == other[:-1] and one[-2:-1] in _SEPARATORS:
            names.append(one[:-2])
        else:
            return names, number
    return names, None
