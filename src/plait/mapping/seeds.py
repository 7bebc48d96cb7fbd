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
from plait.lang.lanes import equal, lanes_of, load, lookup, mask_bits, prefetch, splat
from plait.mapping.genome import CODE_OF_BYTE, OTHER
from plait.mapping.index import NEIGHBOURS, entries_of, keys_of, narrowed
from plait.mapping.verification import HALVES, word_at, word_from

#: Places of a read on one strand from which on better borders of its pieces are looked for.
MANY_PLACES: Final = 1024
#: Rows of which seeds are looked up together, and entries of each that are read ahead.
GROUP: Final = 16
MOST_TOUCHED: Final = 64


class PackedReads(NamedTuple):
    """Reads on both strands: row 2 i is read i, row 2 i + 1 its reverse complement.

    `words` int64 (rows, words, 3) are planes of their letters, one word more than the longest needs;
    `lengths` and `errors` int64 (rows,). A row of length 0 is not looked at.
    """

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
    """Planes of reads on both strands, as `pack_read` makes them."""
    for read in range(starts.size - 1):
        pack_read(octets, letters, starts[read], table, 2 * read, out)


@shared
def pack_read(octets: Any, letters: Any, begin: int, table: Any, row: int, out: Any) -> None:
    """Planes of a read, of the length that stands in `out`, into a row; the other strand's into the next.

    `octets` are groups of 64 lanes of 8 bits; `letters` uint8 (1, letters) with 64 behind for each word of
    the planes; `table` is `LETTER_TABLE`.
    """
    length, words = out.lengths[row], out.words.shape[1]
    last = (length + 63) >> 6
    own, other = out.words[row], out.words[row + 1]
    for word in range(words):
        chars = load(octets, letters, 0, begin + 64 * word) & splat(octets, table[1, 0])
        codes = lookup(octets, table, 0, chars)
        used = first_bits(length - 64 * word)
        for plane in range(3):
            bit = splat(octets, table[1, 1 + plane])
            own[word, plane] = mask_bits(equal(codes & bit, bit)) & used
            other[(last - 1 - word) if word < last else word, plane] = reversed_bits(own[word, plane])
    # The words are the other way round, and each word is; before the first letter there may be free places.
    for word in range(last):
        used = first_bits(length - 64 * word)
        for plane in range(3):
            bits = word_at(other, plane, 64 * (last + word) - length)
            other[word, plane] = (~bits if plane < 2 else bits) & used


@shared
def reversed_bits(word: Any) -> Any:
    """The bits of a word the other way round."""
    shift = 32
    for mask in HALVES:
        word = ((word >> shift) & mask) | ((word & mask) << shift)
        shift >>= 1
    return word


@shared
def first_bits(count: int) -> Any:
    """A word in which so many bits are set, all of them from 64 on, none below 1."""
    return -1 if count >= 64 else ~(-1 << max(count, 0))


@shared
def window_of(reads: Any, row: int, at: int) -> Any:
    """32 known letters of a row from a place on, two bits each, the first one in the highest.

    The other strand has them the other way round, from the lowest bit on.
    """
    place = reads.lengths[row] - at - 32
    other = reads.words[row ^ 1]
    return _spread(~word_from(other, 0, place)) | (_spread(~word_from(other, 1, place)) << 1)


@shared
def _spread(bits: Any) -> Any:
    """The lower 32 bits, a zero in front of each."""
    shift = 32
    for mask in HALVES:
        bits = (bits | (bits << shift)) & mask
        shift >>= 1
    return bits


def packed_reads(
    letters: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    errors: NDArray[np.int64],
) -> PackedReads:
    """Reads of capital letters as they are looked up, with the letters and errors that count of each."""
    words = words_of(lengths)
    planes = np.empty((2 * lengths.size, words, 3), np.int64)
    packed = PackedReads(planes, np.repeat(lengths, 2), np.repeat(errors, 2))
    pack_reads_kernel(lanes_of(64), padded_letters(letters, words), starts, LETTER_TABLE, packed)
    return packed


def words_of(lengths: NDArray[np.int64]) -> int:
    """Words of planes of reads: one more than the longest needs."""
    return ((int(lengths.max(initial=0)) + 63) >> 6) + 1


def padded_letters(letters: NDArray[np.uint8], words: int) -> NDArray[np.uint8]:
    """Letters uint8 (1, letters) with so many words behind."""
    padded = np.empty((1, letters.size + 64 * words), np.uint8)
    padded[0, : letters.size] = letters
    padded[0, letters.size :] = 0
    return padded


@kernel
def seeds_kernel(arrays: Any, reads: Any, many: int, scratch: Any, seeds: Any, totals: Any) -> None:
    """Entries of the pieces of all rows, and how many they are together, `totals` int64 (rows,)."""
    rows = reads.lengths.size
    for first in range(0, rows, GROUP):
        last = min(first + GROUP, rows)
        look_up(arrays, reads, first, last, seeds)
        for row in range(first, last):
            totals[row] = narrow(arrays, reads, row, seeds)
            if totals[row] > many and reads.errors[row] > 0:
                totals[row] = _better_pieces(arrays, reads, row, scratch, seeds)


@shared
def look_up(arrays: Any, reads: Any, first: int, last: int, seeds: Any) -> None:
    """Entries of the seeds that the pieces of a group of rows begin with.

    First all seeds, then their places in the table, then the first of their entries, so that many cache
    misses are under way at a time.
    """
    for row in range(first, last):
        _cut(arrays, reads, row, seeds)
    for row in range(first, last):
        for piece in range(reads.errors[row] + 1):
            own = np.int64(arrays.start[seeds.first[row, piece]])
            end = np.int64(arrays.start[seeds.last[row, piece]])
            seeds.first[row, piece] = own
            seeds.last[row, piece] = end
            # A line of the cache has eight.
            for entry in range(own, min(end, own + MOST_TOUCHED), 8):
                prefetch(arrays.entries, entry)


@shared
def _cut(arrays: Any, reads: Any, row: int, seeds: Any) -> None:
    """Pieces of about the same length, and the seeds that they begin with; none where a letter is unknown."""
    length, pieces = reads.lengths[row], reads.errors[row] + 1
    size, longer, at = length // pieces, length % pieces, 0
    for piece in range(pieces):
        after = at + size + (1 if piece < longer else 0)
        seeds.at[row, piece] = at
        low = high = np.int64(0)
        if after > at and _is_known(reads, row, at, after - at):
            low, high = keys_of(arrays.u, window_of(reads, row, at), after - at)
            prefetch(arrays.start, low)
        seeds.first[row, piece] = low
        seeds.last[row, piece] = high
        at = after


@shared
def _is_known(reads: Any, row: int, at: int, size: int) -> Any:
    """Whether there are A, C, G and T alone."""
    other = np.int64(0)
    for k in range(at, at + size, 64):
        other |= word_at(reads.words[row], 2, k) & first_bits(at + size - k)
    return other == 0


@shared
def narrow(arrays: Any, reads: Any, row: int, seeds: Any) -> int:
    """Entries of whole pieces in the place of those of their seeds; returns how many they are together."""
    total = 0
    pieces = reads.errors[row] + 1
    for piece in range(pieces):
        at = seeds.at[row, piece]
        end = seeds.at[row, piece + 1] if piece + 1 < pieces else reads.lengths[row]
        first, last = seeds.first[row, piece], seeds.last[row, piece]
        first, last = narrowed(arrays, window_of(reads, row, at), end - at, first, last)
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
            first, last = entries_of(arrays, window_of(reads, row, left), size)
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
                first, last = entries_of(arrays, window_of(reads, row, at), size)
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
