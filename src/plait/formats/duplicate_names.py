"""Find names that several records of sequence files have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.fasta import Sequences

__all__ = ["DuplicateName", "NameRegister"]

# A place is a line number, and above it the number of the file.
_LINE_BITS: Final = 40


@dataclass(frozen=True, slots=True)
class DuplicateName:
    """A name that an earlier record has, too.

    Attributes
    ----------
    name
        The name.
    path, line
        File and 1-based line of the later header.
    first_path, first_line
        The same of the first one.
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
        """Remember the names of some records.

        Parameters
        ----------
        path
            Their file.
        sequences
            The records.

        Returns
        -------
        list of DuplicateName
            Those of them whose name an earlier record has, in order.
        """
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
