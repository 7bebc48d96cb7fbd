"""Columns of text or bytes as flat arrays, and back, without a copy where that can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["column_of", "letters_of", "owners"]


def letters_of(column: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of all rows.

    Parameters
    ----------
    column
        Text or bytes, none of them null.

    Returns
    -------
    letters : ndarray of uint8
        One row after the other; not to be changed.
    starts : ndarray of int64 (n + 1,)
        Where the bytes of each row begin, and the end of the last.
    """
    if len(column) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset :][: len(column) + 1].astype(np.int64)
    letters = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    return letters[ends[0] : ends[-1]], ends - ends[0]


def column_of(letters: NDArray[np.uint8], starts: NDArray[np.int64], kind: Any) -> pa.Array:
    """A column of text or bytes.

    Parameters
    ----------
    letters
        The bytes of all rows, one after the other; text must be ASCII.
    starts
        Where those of each row begin, and the end of the last.
    kind
        ``pyarrow.string()`` or ``pyarrow.binary()``.

    Returns
    -------
    pyarrow.Array
        One row for each start but the last.
    """
    flat = np.ascontiguousarray(letters[starts[0] : starts[-1]])
    offsets = (starts - starts[0]).astype(np.int32)
    return pa.Array.from_buffers(kind, starts.size - 1, [None, pa.py_buffer(offsets), pa.py_buffer(flat)])


def owners(starts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Which run each of n rows belongs to.

    >>> owners(np.array([0, 2]), 5).tolist()
    [0, 0, 1, 1, 1]
    """
    return np.repeat(np.arange(starts.size), np.diff(np.append(starts, n)))
