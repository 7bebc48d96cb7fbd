"""Where reads may be: pieces of which one has no error, and the diagonals of all places of theirs.

A read with at most e errors, cut into e + 1 pieces, has a piece without any (the pigeonhole principle), so
the places of all pieces give every locus. Where they are many, the borders of the pieces are moved to where
they are fewest. A diagonal is the place in the text at which a read would begin, were there no insertions or
deletions.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.lang.compile import kernel, shared
from plait.lang.lanes import equal, lanes_of, load, lookup, mask_bits, splat, store
from plait.mapping.genome import CODE_OF_BYTE, OTHER
from plait.mapping.index import NEIGHBOURS, entries_of, keys_of, narrowed

#: Places of a read on one strand from which on better borders of its pieces are looked for.
MANY_PLACES: Final = 1024
#: Rows of which seeds are looked up together, and entries of each that are read ahead.
GROUP: Final = 16
MOST_TOUCHED: Final = 64


class PackedReads(NamedTuple):
    """Reads on both strands: row 2 i is read i, row 2 i + 1 its reverse complement.

    `codes` uint8 (rows, 64 * words); `words` int64 (rows, words, 3) are their planes, one word more than the
    longest needs; `lengths` and `errors` int64 (rows,). A row of length 0 is not looked at.
    """

    codes: Any
    words: Any
    lengths: Any
    errors: Any


class Seeds(NamedTuple):
    """Entries of the index for each piece, int64 (rows, pieces): `first`, `last` (exclusive), `at`."""

    first: Any
    last: Any
    at: Any


class BorderScratch(NamedTuple):
    """Memory for borders: `counts` int64 (letters, lengths), `least` and `choice` int64 (pieces, letters)."""

    counts: Any
    least: Any
    choice: Any


#: Codes of letters by their lowest five bits; these, and the bits of a code, for lanes. Shape (2, 32).
LETTER_TABLE: Final = np.zeros((2, 32), np.uint8)
LETTER_TABLE[0] = CODE_OF_BYTE[64:96]
LETTER_TABLE[1, :4] = 31, 1, 2, OTHER


@kernel
def pack_reads_kernel(octets: Any, letters: Any, starts: Any, table: Any, out: Any) -> None:
    """Codes and planes of reads on both strands, 64 letters at a time.

    `octets` are groups of 64 lanes of 8 bits; `letters` uint8 (1, letters) with as many behind as there are
    columns of codes, a multiple of 64 that the planes have, too; `table` is `LETTER_TABLE`.
    """
    for read in range(starts.size - 1):
        row, length = 2 * read, out.lengths[2 * read]
        for first in range(0, length, 64):
            own = load(octets, letters, 0, starts[read] + first) & splat(octets, table[1, 0])
            store(octets, out.codes, row, first, lookup(octets, table, 0, own))
        # An index without a sign is not looked at, so that many letters are turned at a time.
        end = np.uint64(length - 1)
        for k in range(np.uint64(length)):
            code = out.codes[row, k]
            out.codes[row + 1, end - k] = code if code == OTHER else 3 - code
        for strand in range(row, row + 2):
            for word in range(out.words.shape[1]):
                codes = load(octets, out.codes, strand, 64 * word)
                free = length - 64 * word
                used = -1 if free >= 64 else ~(-1 << max(free, 0))
                for plane in range(3):
                    bit = splat(octets, table[1, 1 + plane])
                    out.words[strand, word, plane] = mask_bits(equal(codes & bit, bit)) & used


def packed_reads(
    letters: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    errors: NDArray[np.int64],
) -> PackedReads:
    """Reads of capital letters as they are looked up, with the letters and errors that count of each."""
    rows, words = 2 * lengths.size, ((int(lengths.max(initial=0)) + 63) >> 6) + 1
    padded = np.zeros((1, letters.size + 64 * words), np.uint8)
    padded[0, : letters.size] = letters
    packed = PackedReads(
        np.empty((rows, 64 * words), np.uint8),
        np.empty((rows, words, 3), np.int64),
        np.repeat(lengths, 2),
        np.repeat(errors, 2),
    )
    pack_reads_kernel(lanes_of(64), padded, starts, LETTER_TABLE, packed)
    return packed


@kernel
def seeds_kernel(arrays: Any, reads: Any, many: int, scratch: Any, seeds: Any, totals: Any) -> None:
    """Entries of the pieces of all rows, and how many they are together, `totals` int64 (rows,).

    Rows are taken in groups, and of each group first all seeds, then their places in the table, then the
    first of their entries, so that many cache misses are under way at a time.
    """
    rows = reads.lengths.size
    for first in range(0, rows, GROUP):
        last = min(first + GROUP, rows)
        for row in range(first, last):
            _cut(arrays.u, reads, row, seeds)
        for row in range(first, last):
            for piece in range(reads.errors[row] + 1):
                seeds.first[row, piece] = arrays.start[seeds.first[row, piece]]
                seeds.last[row, piece] = arrays.start[seeds.last[row, piece]]
        touched = np.int64(0)
        for row in range(first, last):
            for piece in range(reads.errors[row] + 1):
                own, end = seeds.first[row, piece], seeds.last[row, piece]
                # A line of the cache has eight.
                for entry in range(own, min(end, own + MOST_TOUCHED), 8):
                    touched ^= arrays.entries[entry]
        scratch.least[0, 0] = touched
        for row in range(first, last):
            totals[row] = _narrow(arrays, reads, row, seeds)
            if totals[row] > many and reads.errors[row] > 0:
                totals[row] = _better_pieces(arrays, reads, row, scratch, seeds)


@shared
def _cut(u: int, reads: Any, row: int, seeds: Any) -> None:
    """Pieces of about the same length, and the seeds that they begin with; none where a letter is unknown."""
    length, pieces = reads.lengths[row], reads.errors[row] + 1
    at = 0
    for piece in range(pieces):
        size = length // pieces + (1 if piece < length % pieces else 0)
        seeds.at[row, piece] = at
        low = high = 0
        if size > 0 and _is_known(reads, row, at, size):
            low, high = keys_of(u, reads.codes, row, at, size)
        seeds.first[row, piece] = low
        seeds.last[row, piece] = high
        at += size


@shared
def _is_known(reads: Any, row: int, at: int, size: int) -> bool:
    """Whether there are A, C, G and T alone."""
    last = (at + size - 1) >> 6
    other = np.int64(0)
    for word in range(at >> 6, last + 1):
        other |= reads.words[row, word, 2]
    if other == 0:
        return True
    known = True
    for k in range(at, at + size):
        known = known and reads.codes[row, k] != OTHER
    return known


@shared
def _narrow(arrays: Any, reads: Any, row: int, seeds: Any) -> int:
    """Entries of whole pieces in the place of those of their seeds; returns how many they are together."""
    total = 0
    pieces = reads.errors[row] + 1
    for piece in range(pieces):
        at = seeds.at[row, piece]
        end = seeds.at[row, piece + 1] if piece + 1 < pieces else reads.lengths[row]
        first, last = seeds.first[row, piece], seeds.last[row, piece]
        first, last = narrowed(arrays, reads.codes, row, at, end - at, first, last)
        seeds.first[row, piece] = first
        seeds.last[row, piece] = last
        total += last - first
    return total


@shared
def _better_pieces(arrays: Any, reads: Any, row: int, scratch: Any, seeds: Any) -> int:
    """Pieces that have fewer entries; returns how many these are together."""
    pieces, left = reads.errors[row] + 1, reads.lengths[row]
    _move_borders(arrays, reads, row, left, pieces, scratch)
    total = 0
    for piece in range(pieces - 1, -1, -1):
        size = scratch.choice[piece, left]
        while size == 0:
            left -= 1
            size = scratch.choice[piece, left]
        left -= size
        first = last = 0
        if _is_known(reads, row, left, size):
            first, last = entries_of(arrays, reads.codes, row, left, size)
        seeds.at[row, piece] = left
        seeds.first[row, piece] = first
        seeds.last[row, piece] = last
        total += last - first
    return total


@shared
def _move_borders(arrays: Any, reads: Any, row: int, length: int, pieces: int, scratch: Any) -> None:
    """Choose disjoint pieces with the fewest entries together, by dynamic programming over where they end.

    ``choice[p, x]`` is the length of piece p if it ends at x in the best choice of p + 1 pieces in the first
    x letters, 0 if that does not end there. Pieces are as long as the index can tell, or as little shorter as
    needed.
    """
    longest = min(arrays.u + NEIGHBOURS, length - (pieces - 1))
    shortest = max(1, min(length // pieces - 4, longest))
    counts, least, choice = scratch.counts, scratch.least, scratch.choice
    for at in range(length - shortest + 1):
        _count_from(arrays, reads, row, at, shortest, min(longest, length - at), counts)
    huge = 1 << 60
    for end in range(length + 1):
        least[0, end] = 0
    for piece in range(pieces):
        for end in range(length + 1):
            best = least[piece + 1, end - 1] if end > 0 else huge
            size = 0
            for tried in range(shortest, min(longest, end) + 1):
                value = least[piece, end - tried] + counts[end - tried, tried]
                if value < best:
                    best = value
                    size = tried
            least[piece + 1, end] = best
            choice[piece, end] = size


@shared
def _count_from(arrays: Any, reads: Any, row: int, at: int, shortest: int, longest: int, counts: Any) -> None:
    """Entries of the words at `at`, of all lengths."""
    known = -1
    for size in range(shortest, longest + 1):
        if known != 0:
            known = 0
            if _is_known(reads, row, at, size):
                first, last = entries_of(arrays, reads.codes, row, at, size)
                known = last - first
        counts[at, size] = known


@kernel
def diagonals_kernel(entries: Any, reads: Any, seeds: Any, first: int, last: int, out: Any) -> None:
    """Diagonals of the rows `first` to `last`, exclusive, int64: row in the upper half, place below."""
    count = 0
    for row in range(first, last):
        if reads.lengths[row] == 0:
            continue
        for piece in range(reads.errors[row] + 1):
            at = seeds.at[row, piece]
            for entry in range(seeds.first[row, piece], seeds.last[row, piece]):
                out[count] = (row << 32) | ((entries[entry] & 0xFFFFFFFF) - at)
                count += 1
