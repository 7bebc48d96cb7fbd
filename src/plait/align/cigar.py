"""CIGAR strings as arrays of runs, and the columns of an alignment they describe.

The target is the reference: ``=`` is a match, ``X`` a mismatch, ``I`` a residue of the query alone, ``D`` one
of the target alone (SAM specification, section 1.4.6).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput

if TYPE_CHECKING:
    from plait.align.results import Alignment

__all__ = [
    "DELETION",
    "INSERTION",
    "MATCH",
    "MISMATCH",
    "ColumnBlock",
    "aligned_regions",
    "column_blocks",
    "parse_cigar",
]

_Bytes = NDArray[np.uint8]
_Runs = tuple[NDArray[np.uint8], NDArray[np.int64]]

MATCH, MISMATCH, INSERTION, DELETION = (ord(letter) for letter in "=XID")

_BLOCK_COLUMNS = 1 << 20
#: Longer numbers do not fit into 63 bits.
_MOST_DIGITS = 18
# Possessive: a long CIGAR leaves nothing to go back to.
_RUNS = re.compile(rf"(?:[1-9][0-9]{{0,{_MOST_DIGITS - 1}}}[=XID])*")
_NUMBERS = str.maketrans("=XID", "    ")
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


class ColumnBlock(NamedTuple):
    """Columns of an alignment, one behind the other; uint8 arrays of one length.

    Attributes
    ----------
    operations
        `MATCH`, `MISMATCH`, `INSERTION` or `DELETION`.
    query, target
        What each sequence has there; the gap symbol where it has nothing.
    """

    operations: NDArray[np.uint8]
    query: NDArray[np.uint8]
    target: NDArray[np.uint8]


def parse_cigar(cigar: str) -> _Runs:
    """Runs of a CIGAR string.

    Parameters
    ----------
    cigar
        Numbers and the letters ``=``, ``X``, ``I`` and ``D``; ``""`` has no runs.

    Returns
    -------
    operations : numpy.ndarray
        uint8 (r,): the letters in ASCII.
    lengths : numpy.ndarray
        int64 (r,): the numbers.

    Raises
    ------
    InvalidInput
        If there is anything else, a letter without a number, or a number that is 0, begins with 0 or does not
        fit.

    Examples
    --------
    >>> operations, lengths = parse_cigar("12=1X3D")
    >>> operations.tobytes(), lengths.tolist()
    (b'=XD', [12, 1, 3])
    """
    good = _RUNS.match(cigar)
    place = good.end() if good else 0
    if place < len(cigar):
        raise InvalidInput(
            "cigar",
            found=f"{cigar[place : place + 20]!r} at character {place + 1}",
            expected="runs of =, X, I and D such as 12=1X3D, none of them empty",
        )
    operations = np.frombuffer(cigar.translate(_WITHOUT_DIGITS).encode("ascii"), np.uint8)
    return operations, np.array([int(number) for number in cigar.translate(_NUMBERS).split()], np.int64)


def column_blocks(
    runs: _Runs,
    query: _Bytes,
    target: _Bytes,
    *,
    gap: int,
    columns: int = _BLOCK_COLUMNS,
) -> Iterator[ColumnBlock]:
    """Columns of an alignment in bounded pieces.

    Parameters
    ----------
    runs
        What `parse_cigar` gives.
    query, target
        uint8: letters or codes of the aligned regions, exactly as long as the runs say.
    gap
        Stands where a sequence has no residue.
    columns
        Columns of each piece but the last.

    Yields
    ------
    ColumnBlock
        The pieces in order.
    """
    operations, lengths = runs
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    query_at = target_at = 0
    for start in range(0, total, columns):
        stop = min(start + columns, total)
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, stop, side="left")) + 1
        here = ends[first:last]
        inside = np.minimum(here, stop) - np.maximum(here - lengths[first:last], start)
        row = np.repeat(operations[first:last], inside)
        query_row, target_row = np.full((2, stop - start), gap, np.uint8)
        # The residues of a sequence lie in the columns in order, so a slice of it fills them.
        filled = row != DELETION
        used = int(np.count_nonzero(filled))
        query_row[filled] = query[query_at : query_at + used]
        query_at += used
        filled = row != INSERTION
        used = int(np.count_nonzero(filled))
        target_row[filled] = target[target_at : target_at + used]
        target_at += used
        yield ColumnBlock(row, query_row, target_row)


def aligned_regions(alignment: Alignment, query: _Bytes, target: _Bytes) -> tuple[_Runs, _Bytes, _Bytes]:
    """Runs of an alignment and the parts of the sequences that they cover.

    Parameters
    ----------
    alignment
        The alignment.
    query, target
        uint8: letters or codes of the whole sequences.

    Returns
    -------
    tuple
        What `parse_cigar` gives, and two slices.

    Raises
    ------
    InvalidInput
        If a sequence ends before the coordinates do, or the CIGAR covers another number of residues.
    """
    runs = parse_cigar(alignment.cigar)
    regions = []
    for name, sequence, start, end, skipped in (
        ("query", query, alignment.query_start, alignment.query_end, DELETION),
        ("target", target, alignment.target_start, alignment.target_end, INSERTION),
    ):
        if not 0 <= start <= end <= len(sequence):
            raise InvalidInput(
                name,
                found=f"a sequence of {len(sequence)} residues",
                expected=f"the one that was aligned, from {start} to {end}",
            )
        used = int(runs[1][runs[0] != skipped].sum())
        if used != end - start:
            raise InvalidInput(
                "cigar",
                found=f"{used} residues of the {name}",
                expected=f"{end - start} as its coordinates say",
            )
        regions.append(sequence[start:end])
    return runs, regions[0], regions[1]
