"""Hash values of text columns that are equal on every machine and in every process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["text_hash"]

#: Texts hashed at a time: some ten bytes are needed for every letter of them.
_SLICE = 1 << 15
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def text_hash(column: pa.Array) -> NDArray[np.uint64]:
    """Hash values of texts, to deal them out evenly; not against those who want them to collide.

    Parameters
    ----------
    column
        large_string (n,), null the same as empty.

    Returns
    -------
    ndarray of uint64 (n,)
        Equal for equal texts: a polynomial of the bytes modulo 2^64, its bits mixed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from plait.formats.text_hash import text_hash
    >>> values = text_hash(pa.array(["TGT", "", "TGT"], pa.large_string()))
    >>> bool(values[0] == values[2]), bool(values[0] == values[1])
    (True, False)
    """
    parts = [_hashed(column.slice(start, _SLICE)) for start in range(0, len(column), _SLICE)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _hashed(texts: pa.Array) -> NDArray[np.uint64]:
    filled = texts.fill_null("") if texts.null_count else texts
    _, offset_buffer, data = filled.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    lengths = np.diff(offsets)
    found = np.zeros(len(filled), np.uint64)
    if lengths.any():
        letters = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
        place = np.arange(letters.size) - np.repeat(offsets[:-1] - offsets[0], lengths)
        powers = np.cumprod(np.full(int(lengths.max()) + 1, _FACTOR))
        terms = (letters + np.uint64(1)) * powers[place]
        filled_ones = lengths > 0
        found[filled_ones] = np.add.reduceat(terms, (offsets[:-1] - offsets[0])[filled_ones])
    found ^= found >> np.uint64(30)
    found *= _MIX[0]
    found ^= found >> np.uint64(27)
    found *= _MIX[1]
    found ^= found >> np.uint64(31)
    return found
