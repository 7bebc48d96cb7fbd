"""The best targets of a query, in bounded memory and in an order that nothing else can change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOTHING", "Found", "Ranking", "TieRule", "distinct", "no_tie_rule"]

#: Scores of targets that are waited for before they are sorted out.
_PENDING: Final = 1 << 12


class Found(NamedTuple):
    """Targets and their scores; arrays of one length.

    Attributes
    ----------
    records
        Numbers of the targets.
    scores
        Their scores.
    lengths
        Their residues.
    """

    records: NDArray[np.int64]
    scores: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Found:
        """Some of them, by number or by mark."""
        return Found(self.records[which], self.scores[which], self.lengths[which])


#: No targets.
NOTHING: Final = Found(*(np.zeros(0, np.int64) for _ in range(3)))

#: Gives, for scores and lengths of targets, a number of which less is better.
TieRule = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]


def no_tie_rule(scores: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Equal scores are equally good."""
    return np.zeros(len(scores))


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values that there are, rising; `numpy.unique` loads much that nothing else here needs."""
    ordered = np.sort(values)
    found: NDArray[np.int64] = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return found


class Ranking:
    """The best targets of one query: highest score first, then what `tie_rule` says, then lowest number.

    Parameters
    ----------
    most
        How many to keep.
    least
        Lowest score that counts.
    tie_rule
        Sorts equal scores.
    """

    def __init__(self, most: int, least: int, tie_rule: TieRule = no_tie_rule) -> None:
        #: Lower scores need not be offered.
        self.floor = least
        self._most = most
        self._tie_rule = tie_rule
        self._kept = [NOTHING]
        self._size = 0

    def add(self, found: Found) -> None:
        """Offer some targets; of one that is offered again, the best score counts."""
        found = found.take(found.scores >= self.floor)
        self._kept.append(found)
        self._size += len(found.records)
        if self._size > self._most + _PENDING:
            self._sort_out()

    def records(self) -> NDArray[np.int64]:
        """Numbers of the best targets so far, in no order."""
        return self._sort_out().records

    def best(self) -> Found:
        """The best targets in order."""
        found = self._sort_out()
        order = np.lexsort((found.records, self._ties(found), -found.scores))
        return found.take(order)

    def _ties(self, found: Found) -> NDArray[np.float64]:
        # Asked once for equal arguments, which so give equal numbers wherever in an array they stand.
        pairs, where = np.unique(found.scores << 32 | found.lengths, return_inverse=True)
        return self._tie_rule(pairs >> 32, pairs & (1 << 32) - 1)[where]

    def _sort_out(self) -> Found:
        """Forget what cannot be among the best any more."""
        if len(self._kept) == 1:
            return self._kept[0]
        found = Found(*(np.concatenate(columns) for columns in zip(*self._kept, strict=True)))
        order = np.lexsort((-found.scores, found.records))
        found = found.take(order[np.diff(found.records[order], prepend=-1) != 0])
        over = len(found.records) - self._most
        if over > 0:
            self.floor = int(np.partition(found.scores, over)[over])
            above = np.flatnonzero(found.scores > self.floor)
            equal = np.flatnonzero(found.scores == self.floor)
            tied = found.take(equal)
            order = np.lexsort((tied.records, self._ties(tied)))
            found = found.take(np.concatenate([above, equal[order[: self._most - above.size]]]))
        self._kept, self._size = [found], len(found.records)
        return found
