"""Names of records and reads: those that come again, found in bounded memory, and names of mates."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.fasta import Sequences

# A place is a line number, and above it the number of the file.
_LINE_BITS: Final = 40


@dataclass(frozen=True, slots=True)
class DuplicateName:
    """A name that an earlier record has, too.

    `path` and the 1-based `line` are those of the later header, `first_path` and `first_line` those of the
    first one.
    """

    name: str
    path: str
    line: int
    first_path: str
    first_line: int

    def error(self, hint: str | None = None) -> FormatError:
        """What to raise where names must differ, with what to do about it, if anything."""
        where = f"line {self.first_line}"
        if self.first_path != self.path:
            where = f"{self.first_path}, {where}"
        return FormatError(
            self.path,
            line=self.line,
            found=f"a second sequence named {self.name!r}, after that of {where}",
            expected="a name of its own for every sequence",
            hint=hint,
        )


class _Run(NamedTuple):
    """Hashes in rising order, equal ones in order of input, and where their headers are."""

    hashes: NDArray[np.int64]
    places: NDArray[np.int64]


class NameRegister:
    """Remembers the names of many records in 16 bytes each, to find the ones that come again.

    A name is remembered by Python's 64-bit hash of it: with a million names, the chance that two different
    ones are taken for equal is below one in ten million.
    """

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._last_line = 0
        # Each run is more than twice as long as the next, so that all together are merged in n log n.
        self._runs: list[_Run] = []

    def add(self, path: str | os.PathLike[str], sequences: Sequences) -> list[DuplicateName]:
        """Remember the names of some records; those of them whose name an earlier record has, in order."""
        first_line = int(sequences.lines[0]) if len(sequences) else self._last_line + 1
        # A file that begins again is read a second time: all its names are there already.
        if not self._paths or self._paths[-1] != str(path) or first_line <= self._last_line:
            self._paths.append(str(path))
        if len(sequences):
            self._last_line = int(sequences.lines[-1])
        places = sequences.lines | (len(self._paths) - 1) << _LINE_BITS
        hashes = np.fromiter(map(hash, sequences.names), np.int64, len(sequences))
        order = np.argsort(hashes, kind="stable")
        run = _Run(hashes[order], places[order])
        # Looked up in rising order, which is several times faster.
        firsts = np.full(len(sequences), -1, np.int64)
        for known in (*self._runs, run):
            at = np.minimum(np.searchsorted(known.hashes, run.hashes), len(known.hashes) - 1)
            found = (firsts < 0) & (known.hashes[at] == run.hashes) & (known.places[at] != run.places)
            firsts[found] = known.places[at[found]]
        firsts[order] = firsts.copy()
        self._append(run)
        return [self._duplicate(sequences, i, int(firsts[i])) for i in np.flatnonzero(firsts >= 0).tolist()]

    def _append(self, run: _Run) -> None:
        while self._runs and len(self._runs[-1].hashes) <= 2 * len(run.hashes):
            hashes, places = (np.concatenate(pair) for pair in zip(self._runs.pop(), run, strict=True))
            order = np.argsort(hashes, kind="stable")
            run = _Run(hashes[order], places[order])
        self._runs.append(run)

    def _duplicate(self, sequences: Sequences, index: int, first: int) -> DuplicateName:
        return DuplicateName(
            name=sequences.names[index],
            path=self._paths[-1],
            line=int(sequences.lines[index]),
            first_path=self._paths[first >> _LINE_BITS],
            first_line=first & ((1 << _LINE_BITS) - 1),
        )


_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
#: Hashes that are put among the others in one go.
_MOST_WAITING: Final = 1 << 17
#: Characters between the name of a pair and the number of the mate.
_SEPARATORS: Final = "/._"


def hash_names(names: Sequence[str]) -> NDArray[np.uint64]:
    """A number for each name, the same in every process; names have no line feeds.

    It is (n,): a polynomial of the bytes modulo 2^64, stirred so that every bit depends on all.
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

    Up to `room` names, of 16 bytes each, the count is exact. Beyond that only the names whose hash is a
    multiple of a power of two are kept, all of them at first and half as many each time that room runs out,
    and what is counted among them is multiplied by that power. A repeated name is kept each time or never, so
    that the estimate has no bias; it depends on nothing but the names.
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
        """Count the names of further reads."""
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
    """The names that mates have in common; the number of the first two that are no mates, where they end.

    Mates have the same name, or one that ends in 1 and one that ends in 2 after a slash, a dot or an
    underscore, which is left out. There are as many of the one as of the other; the number is None if all are
    mates.
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
