"""From a column of junctions to symbol masks, with a reason for every junction that cannot be counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.alphabets import IUPAC_MASK
from plait.vdj.results import STATUSES

__all__ = ["LONGEST_JUNCTION", "SHORTEST_JUNCTION", "EncodedJunctions", "encode_junctions"]

#: A junction holds at least the two conserved codons.
SHORTEST_JUNCTION = 6
#: Far beyond any real junction; longer text is a whole read in the wrong column.
LONGEST_JUNCTION = 1000


class EncodedJunctions(NamedTuple):
    """A column of junctions.

    Attributes
    ----------
    symbols
        uint8: masks of all junctions, one after the other.
    start, length
        int64 (n,): where each junction lies in `symbols`.
    status
        uint8 (n,): index into `plait.vdj.results.STATUSES`; 0 where the junction can be counted.
    """

    symbols: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    status: NDArray[np.uint8]


def encode_junctions(junctions: pa.Array) -> EncodedJunctions:
    """Encode a string array; spaces around a junction do not occur in any known format and are invalid.

    Parameters
    ----------
    junctions
        Nucleotide sequences from the conserved Cys to the conserved Phe/Trp codon; case does not matter.
    """
    column = junctions.cast(pa.large_string())
    n = len(column)
    _, offsets_buffer, data = column.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[column.offset : column.offset + n + 1] if n else None
    status = np.zeros(n, np.uint8)
    if offsets is None:
        empty = np.zeros(0, np.int64)
        return EncodedJunctions(np.zeros(0, np.uint8), empty, empty, status)
    first, last = int(offsets[0]), int(offsets[-1])
    raw = np.frombuffer(data, np.uint8)[first:last] if data is not None else np.zeros(0, np.uint8)
    symbols = IUPAC_MASK[raw]
    start = offsets[:-1] - first
    length = np.diff(offsets)
    invalid = np.flatnonzero(symbols == 0)
    if invalid.size:
        status[np.searchsorted(start, invalid, side="right") - 1] = STATUSES.index("invalid_symbol")
    undecided = status == 0
    status[undecided & (length < SHORTEST_JUNCTION)] = STATUSES.index("too_short")
    status[undecided & (length > LONGEST_JUNCTION)] = STATUSES.index("too_long")
    missing = (length == 0) | np.asarray(column.is_null())
    status[missing] = STATUSES.index("missing_junction")
    return EncodedJunctions(symbols, start, length, status)
