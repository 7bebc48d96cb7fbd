"""Which rows belong to which fold and which half: from a row's number and a seed alone.

So the draw is the same for any partition of the rows, and no list of it is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALL_ROWS", "SAMPLE_STREAM", "RowDraws", "random_words"]

#: The kind of weight that is 1 for every row.
ALL_ROWS: Final = 0
#: Streams of random words; halves have one for every 32 pairs.
SAMPLE_STREAM: Final = 0
_FOLDS: Final = 1
_HALVES: Final = 2
_PER_WORD: Final = 32


def random_words(rows: NDArray[np.uint64], seed: int, stream: int) -> NDArray[np.uint64]:
    """64 random bits a row: splitmix64 of its number (Steele, Lea and Flood, OOPSLA 2014).

    Parameters
    ----------
    rows
        Numbers of rows.
    seed, stream
        Other seeds and streams give other, unrelated bits.
    """
    start = _mixed(_mixed(np.uint64(seed)) ^ np.uint64(stream))
    with np.errstate(over="ignore"):
        return _mixed(rows * np.uint64(0x9E3779B97F4A7C15) + start)


def _mixed(z: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = np.asarray(z) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class RowDraws:
    """Kinds of weights: every row weighs 0 or 1 in each.

    Kinds are numbers: `ALL_ROWS`, and what the methods give.

    Attributes
    ----------
    seed
        Of the draws.
    folds
        Number of folds.
    halves
        Number of halves.
    """

    seed: int
    folds: int
    halves: int

    def inside(self, fold: int) -> int:
        """Kind of the rows of a fold."""
        return 1 + fold

    def outside(self, fold: int) -> int:
        """Kind of the rows of all other folds."""
        return 1 + self.folds + fold

    def half(self, half: int) -> int:
        """Kind of the rows of a half. Halves 2k and 2k + 1 make up all rows."""
        return 1 + 2 * self.folds + half

    @property
    def kinds(self) -> int:
        """Number of kinds."""
        return 1 + 2 * self.folds + self.halves

    def fold_of(self, rows: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The fold of each row."""
        drawn = random_words(rows, self.seed, _FOLDS) >> np.uint64(32)
        return ((drawn * np.uint64(self.folds)) >> np.uint64(32)).astype(np.int64)

    def weights(self, rows: NDArray[np.uint64], kinds: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether rows weigh anything.

        Parameters
        ----------
        rows
            Numbers of rows.
        kinds
            Kinds asked for.

        Returns
        -------
        numpy.ndarray
            bool, shape (kinds, rows).
        """
        found = np.empty((kinds.size, rows.size), np.bool_)
        fold = self.fold_of(rows)
        words: dict[int, NDArray[np.uint64]] = {}
        for k, kind in enumerate(kinds.tolist()):
            if kind == ALL_ROWS:
                found[k] = True
            elif kind < self.outside(0):
                found[k] = fold == kind - self.inside(0)
            elif kind < self.half(0):
                found[k] = fold != kind - self.outside(0)
            else:
                pair, second = divmod(kind - self.half(0), 2)
                word, bit = divmod(pair, _PER_WORD)
                if word not in words:
                    words[word] = random_words(rows, self.seed, _HALVES + word)
                found[k] = (words[word] >> np.uint64(bit)) & np.uint64(1) == second
        return found
