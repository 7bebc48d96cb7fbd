"""Sequences as codes of a matrix, many of them one after the other, and pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.align.scoring import Scoring

__all__ = ["CodeList", "PairBatch", "code_list", "encode_list"]


@dataclass(frozen=True, slots=True, eq=False)
class CodeList:
    """Sequences as codes.

    Attributes
    ----------
    codes
        uint8, one sequence after the other, shape (residues,).
    starts
        Where each begins, and the end of the last; int64, shape (n + 1,).
    """

    codes: NDArray[np.uint8]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return self.starts.size - 1

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        return self.codes[self.starts[index] : self.starts[index + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Residues of each, int64, shape (n,)."""
        return np.diff(self.starts)

    def take(self, indices: NDArray[np.int64]) -> CodeList:
        """Some of the sequences, in any order."""
        return code_list([self[int(k)] for k in indices])

    def between(self, first: int, last: int) -> CodeList:
        """Neighbouring sequences, without a copy.

        Parameters
        ----------
        first, last
            Number of the first, and of the one after the last.
        """
        start, end = self.starts[first], self.starts[last]
        return CodeList(self.codes[start:end], self.starts[first : last + 1] - start)

    def repeated(self, times: int) -> CodeList:
        """All sequences again and again."""
        return code_list([self[k] for k in range(len(self))] * times)


def code_list(sequences: Sequence[NDArray[np.uint8]]) -> CodeList:
    """Sequences that are codes already."""
    starts = np.zeros(len(sequences) + 1, np.int64)
    np.cumsum([sequence.size for sequence in sequences], out=starts[1:])
    return CodeList(np.concatenate([np.zeros(0, np.uint8), *sequences]), starts)


def encode_list(scoring: Scoring, sequences: Sequence[str | bytes], what: str) -> CodeList:
    """Sequences as codes.

    Parameters
    ----------
    scoring
        Whose matrix says what the codes are.
    sequences
        Letters.
    what
        What they are called in errors.
    """
    return CodeList(*scoring.encode_many(sequences, what))


@dataclass(frozen=True, slots=True, eq=False)
class PairBatch:
    """Pairs: the first query with the first target, and so on.

    Attributes
    ----------
    queries, targets
        As many of each.
    """

    queries: CodeList
    targets: CodeList

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def cells(self) -> NDArray[np.int64]:
        """Cells of the matrix of each pair, int64, shape (pairs,)."""
        return self.queries.sizes * self.targets.sizes

    def only(self, pairs: NDArray[np.int64]) -> PairBatch:
        """Some of the pairs."""
        return PairBatch(self.queries.take(pairs), self.targets.take(pairs))
