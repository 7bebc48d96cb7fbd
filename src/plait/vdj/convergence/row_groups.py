"""Rows grouped by text columns: where the groups are, what stands for each, and sums over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["RowGroups"]


class RowGroups:
    """Groups of equal rows, ordered by the bytes of their texts.

    Parameters
    ----------
    rows
        Rows in input order, with a column ``path_count``.
    names
        Text columns without nulls, the first one first in the order of groups.

    Attributes
    ----------
    order : ndarray of int64
        Row numbers, group by group, in a group in input order.
    starts : ndarray of int64
        Where each group begins in `order`.
    """

    def __init__(self, rows: pa.Table, names: Sequence[str]) -> None:
        self._rows = rows
        self._codes = [_ranks(rows[name].combine_chunks()) for name in names]
        self.order: NDArray[np.int64] = np.lexsort(self._codes[::-1])
        self.starts = self.coarser(len(names))

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.starts)

    def coarser(self, names: int) -> NDArray[np.int64]:
        """Where groups by only the first few columns begin in `order`.

        Parameters
        ----------
        names
            How many columns.
        """
        new = np.zeros(len(self.order), np.bool_)
        new[:1] = True
        for code in self._codes[:names]:
            ordered = code[self.order]
            new[1:] |= ordered[1:] != ordered[:-1]
        return np.flatnonzero(new)

    @property
    def first_counted(self) -> NDArray[np.int64]:
        """For each group its first row with a path count, in input order; its first row if none has one."""
        return self.representatives(self.starts)

    def representatives(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same for groups that begin elsewhere.

        Parameters
        ----------
        starts
            Where groups begin in `order`.
        """
        if not len(starts):
            return np.zeros(0, np.int64)
        known = np.asarray(self._rows["path_count"].combine_chunks().is_valid())
        rows = len(self.order)
        preferred = self.order + np.where(known[self.order], 0, rows)
        found: NDArray[np.int64] = np.minimum.reduceat(preferred, starts) % rows
        return found

    def sums(self, name: str, starts: NDArray[np.int64] | None = None) -> pa.Array:
        """Sums over groups, null where all are null.

        Parameters
        ----------
        name
            Column of whole numbers.
        starts
            Where groups begin in `order`; by default these.
        """
        begins = self.starts if starts is None else starts
        if not len(begins):
            return pa.array([], pa.int64())
        column = self._rows[name].combine_chunks()
        known = np.asarray(column.is_valid())[self.order]
        values = np.asarray(column.fill_null(0))[self.order]
        none = ~np.logical_or.reduceat(known, begins)
        return pa.array(np.add.reduceat(values, begins), pa.int64(), mask=none)


def _ranks(column: pa.Array) -> NDArray[np.int64]:
    """For each text its place among the distinct ones, in the order of their bytes."""
    encoded = column.dictionary_encode()
    place = np.empty(len(encoded.dictionary), np.int64)
    place[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(place.size)
    found: NDArray[np.int64] = place[np.asarray(encoded.indices)]
    return found
