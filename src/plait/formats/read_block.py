"""Sequencing reads side by side, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ReadBlock"]


@dataclass(frozen=True, slots=True, eq=False)
class ReadBlock:
    """Reads, one after the other.

    Attributes
    ----------
    names
        First word of each header.
    letters
        Upper-case IUPAC letters as bytes, U written as T; uint8, shape (bases,).
    starts
        Where each read begins, and the end of the last; int64, shape (n + 1,).
    qualities
        Phred scores, 0 to 93, in the layout of `letters`; None where the input has none.
    """

    names: Sequence[str]
    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    qualities: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bases of each read, int64, shape (n,)."""
        return np.diff(self.starts)

    def sequence(self, index: int) -> str:
        """Letters of one read."""
        return self.letters[self.starts[index] : self.starts[index + 1]].tobytes().decode("ascii")
