"""Where exactly reads end, and how they align: how far each diagonal is reached with so many errors.

A diagonal is the place of the text at which a read would begin without insertions and deletions. Distances do
not fall along it, so that for each number of errors there is one furthest letter (Ukkonen 1985, Landau and
Vishkin 1989), and a word of 64 letters says at once where the next mismatch is. The text before is free.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.lang.compile import kernel, shared
from plait.lang.lanes import highest_bit, lowest_bit, prefetch
from plait.mapping.genome import letter_at
from plait.mapping.index import keys_of, narrowed
from plait.mapping.seeds import GROUP, MOST_TOUCHED, pack_read, window_of
from plait.mapping.verification import differing, mismatches

#: Operations in BAM: a letter of the read alone, of the text alone, a match, a mismatch.
INSERTION, DELETION, MATCH, MISMATCH = 1, 2, 7, 8
#: Diagonals on which ends are looked for together.
ENDS = 64
#: Less than nothing, whatever is added: a diagonal that is not reached.
_NOWHERE = -(1 << 20)


class Diagonals(NamedTuple):
    """Memory of diagonals beside one another: at least `ENDS` and twice the errors, int64.

    `differ` (diagonals, words) are the letters in which a read and the text differ, a bit each.
    ``reach[k, d + 1]``, (errors + 1, diagonals + 2), is how many letters of the read are aligned with at most
    k errors where diagonal d is reached the furthest.
    """

    differ: Any
    reach: Any


class Loci(NamedTuple):
    """Loci that are found, int64 (room,): row of the read, last letter in the text, distance, contig."""

    rows: Any
    ends: Any
    distances: Any
    contigs: Any


@shared
def _along(differ: Any, diagonal: int, letters: int, length: int) -> int:
    """How many letters of a read are reached from so many on without an error."""
    if letters >= length:
        return length
    word, at = letters >> 6, letters
    bits = differ[diagonal, word] >> (letters & 63)
    while bits == 0:
        word += 1
        at = 64 * word
        if at >= length:
            return length
        bits = differ[diagonal, word]
    return min(at + lowest_bit(bits), length)


@shared
def _back(differ: Any, diagonal: int, letters: int) -> int:
    """How many of so many letters, one or more, stand before those that match at their end."""
    word, free = (letters - 1) >> 6, ((letters - 1) & 63) + 1
    bits = differ[diagonal, word] & (-1 if free == 64 else ~(-1 << free))
    while bits == 0 and word > 0:
        word -= 1
        bits = differ[diagonal, word]
    return 0 if bits == 0 else 64 * word + highest_bit(bits) + 1


@shared
def reach_diagonals(
    words: Any, begin: int, end: int, read: Any, length: int, first: int, count: int, errors: int, out: Any
) -> None:
    """How far so many diagonals from `first` on are reached between `begin` and `end` of the text."""
    differ, reach = out.differ, out.reach
    for k in range(errors + 1):
        reach[k, 0] = _NOWHERE
        reach[k, count + 1] = _NOWHERE
    for d in range(count):
        for word in range((length + 63) >> 6):
            differ[d, word] = differing(words, first + d, read, length, word)
        reach[0, d + 1] = _along(differ, d, 0, length) if begin <= first + d < end else _NOWHERE
    for k in range(1, errors + 1):
        for d in range(count):
            # A mismatch, a letter of the text alone, one of the read alone.
            far = max(reach[k - 1, d + 1] + 1, reach[k - 1, d], reach[k - 1, d + 2] + 1)
            far = min(far, end - first - d)
            reach[k, d + 1] = _along(differ, d, far, length) if far >= 0 else _NOWHERE


@kernel
def loci_kernel(
    words: Any, contigs: Any, reads: Any, keys: Any, found: Any, first: int, diagonals: Any, out: Any
) -> Any:
    """Loci of the diagonals `keys` from `first` on, as far as there is room; the next one, and how many loci.

    `contigs` int64 (contigs, 2) are begin and end of each; `found` uint8 are mismatches, or more, of each
    diagonal by `plait.mapping.verification.check_kernel`. Ends that are at most e + 1 letters apart are one
    locus; of it the smallest distance and, of the ends that have it, the leftmost are kept. An alignment
    within the errors stays within e of a diagonal that is given, so ends of those 3 e + 2 apart are apart.
    """
    count, item, room = 0, first, out.rows.size
    while item < keys.size:
        row, at = keys[item] >> 32, keys[item] & 0xFFFFFFFF
        length, errors = reads.lengths[row], reads.errors[row]
        contig = contig_of(contigs, at + (length >> 1))
        last, after = at, item + 1
        while after < keys.size and keys[after] >> 32 == row:
            following = keys[after] & 0xFFFFFFFF
            if following - last > 3 * errors + 1 or contig_of(contigs, following + (length >> 1)) != contig:
                break
            last = following
            after += 1
        if count + 1 + (last - at + 2 * errors) // (errors + 2) > room:
            break
        if after == item + 1 and found[item] == 0:
            count = _add(out, count, row, at + length - 1, 0, contig)
        else:
            count = _ends(words, contigs, reads, row, contig, at, last, diagonals, out, count)
        item = after
    return item, count


class ReadGroup(NamedTuple):
    """Memory for `GROUP` reads that are looked up together, in rows as of `plait.mapping.seeds.PackedReads`.

    `words` int64 (rows, words, 3); of each row, int64 (rows,), `lengths`, the window that it begins with, and
    its seeds, then their entries, from `begins` to `ends`, exclusive; `table` is `LETTER_TABLE`.
    """

    table: Any
    words: Any
    lengths: Any
    windows: Any
    begins: Any
    ends: Any


@kernel
def exact_kernel(
    octets: Any, arrays: Any, contigs: Any, letters: Any, starts: Any, lengths: Any, group: Any, out: Any
) -> Any:
    """Loci without errors of reads, as far as there is room; of how many reads, and how many loci.

    Reads are as of `plait.mapping.seeds.pack_read`. Of a group of them first all seeds are looked up, then
    their entries, then the text, so that many cache misses are under way at a time.
    """
    count = 0
    for first in range(0, lengths.size, GROUP):
        reads = min(GROUP, lengths.size - first)
        for read in range(reads):
            group.lengths[2 * read] = group.lengths[2 * read + 1] = lengths[first + read]
            pack_read(octets, letters, starts[first + read], group.table, 2 * read, group)
        _look_up_rows(arrays, group, 2 * reads)
        for row in range(2 * reads):
            if row & 1 == 0 and count + _places(group, row) + _places(group, row + 1) > out.rows.size:
                return first + (row >> 1), count
            length = group.lengths[row]
            for entry in range(group.begins[row], group.ends[row]):
                at = arrays.entries[entry] & 0xFFFFFFFF
                if mismatches(arrays.words, at, group.words[row], length, 0) == 0:
                    contig = contig_of(contigs, at)
                    begin, end = contigs[contig, 0], contigs[contig, 1]
                    if begin <= at and at + length <= end:
                        count = _add(out, count, 2 * first + row, at + length - 1, 0, contig)
    return lengths.size, count


@shared
def _places(group: Any, row: int) -> Any:
    return group.ends[row] - group.begins[row]


@shared
def _look_up_rows(arrays: Any, group: Any, rows: int) -> None:
    """Entries of the index that begin like rows of a group do."""
    for row in range(rows):
        group.windows[row] = window_of(group, row, 0)
        length = group.lengths[row]
        first, last = keys_of(arrays.u, group.windows[row], length) if length > 0 else (0, 0)
        group.begins[row], group.ends[row] = first, last
        prefetch(arrays.start, first)
    for row in range(rows):
        first, last = np.int64(arrays.start[group.begins[row]]), np.int64(arrays.start[group.ends[row]])
        group.begins[row], group.ends[row] = first, last
        for entry in range(first, min(last, first + MOST_TOUCHED), 8):
            prefetch(arrays.entries, entry)
    for row in range(rows):
        first, last = narrowed(
            arrays, group.windows[row], group.lengths[row], group.begins[row], group.ends[row]
        )
        group.begins[row], group.ends[row] = first, last
        if first < last:
            prefetch(arrays.words, (arrays.entries[first] & 0xFFFFFFFF) >> 6)


@shared
def contig_of(contigs: Any, at: int) -> int:
    """The contig that begins last, not behind a place; 0 before the first."""
    low, high = 0, contigs.shape[0]
    while high - low > 1:
        middle = (low + high) >> 1
        if contigs[middle, 0] <= at:
            low = middle
        else:
            high = middle
    return low


@shared
def _add(out: Any, count: int, row: int, end: int, distance: int, contig: int) -> int:
    out.rows[count] = row
    out.ends[count] = end
    out.distances[count] = distance
    out.contigs[count] = contig
    return count + 1


@shared
def _ends(
    words: Any,
    contigs: Any,
    reads: Any,
    row: int,
    contig: int,
    at: int,
    last: int,
    diagonals: Any,
    out: Any,
    count: int,
) -> int:
    """Loci of diagonals from `at` to `last`; returns how many there are now."""
    length, errors, read = reads.lengths[row], reads.errors[row], reads.words[row]
    begin, end = contigs[contig, 0], contigs[contig, 1]
    low, high, known = at - errors, last + errors + 1, -1
    for first in range(low, high, ENDS):
        final = min(first + ENDS, high)
        left, right = max(first - errors, low), min(final + errors, high)
        reach_diagonals(words, begin, end, read, length, left, right - left, errors, diagonals)
        for d in range(first, final):
            distance = 0
            while distance <= errors and diagonals.reach[distance, d - left + 1] < length:
                distance += 1
            if distance > errors:
                continue
            place = d + length - 1
            if known < 0 or place - known > errors + 1:
                count = _add(out, count, row, place, distance, contig)
            elif distance < out.distances[count - 1]:
                out.distances[count - 1] = distance
                out.ends[count - 1] = place
            known = place
    return count


class Paths(NamedTuple):
    """Alignments, changed in place: `starts` int64; `cigars` int64 (loci, most), runs as in BAM.

    `differences` uint8 (loci, most) are the texts of MD tags, and `sizes` int64 (2, loci) numbers of runs and
    bytes.
    """

    starts: Any
    cigars: Any
    differences: Any
    sizes: Any


@kernel
def paths_kernel(
    words: Any, contigs: Any, reads: Any, loci: Any, diagonals: Any, runs: Any, out: Any
) -> None:
    """The alignment of each locus: back from its end, letters pair up where that is best, else one is alone.

    It is a letter of the text where that is best, else of the read. `runs` int64 (2 * errors + 1,) is memory.
    """
    for item in range(loci.rows.size):
        row, end, distance = loci.rows[item], loci.ends[item], loci.distances[item]
        length = reads.lengths[row]
        begin = contigs[loci.contigs[item], 0]
        start = end - length + 1
        if distance == 0:
            # All letters match: the text need not be read.
            out.starts[item] = start
            out.cigars[item, 0] = (length << 4) | MATCH
            out.sizes[0, item] = 1
            out.sizes[1, item] = write_number(out.differences, item, 0, length)
            continue
        read = reads.words[row]
        if start >= begin and mismatches(words, start, read, length, distance) == distance:
            _write_pairs(words, start, read, length, item, out)
            continue
        first = start - distance
        reach_diagonals(words, begin, end + 1, read, length, first, 2 * distance + 1, distance, diagonals)
        count = _walk(diagonals, distance, length, first, begin, runs)
        _write_path(words, end, runs, count, item, out)


@shared
def _write_pairs(words: Any, start: int, read: Any, length: int, item: int, out: Any) -> None:
    """An alignment without gaps, from the bits in which a read, int64 (words, 3), and the text differ."""
    out.starts[item] = start
    runs = size = 0
    behind = 0
    for word in range((length + 63) >> 6):
        other = differing(words, start, read, length, word)
        while other != 0:
            place = 64 * word + lowest_bit(other)
            other &= other - 1
            if place > behind or runs == 0:
                if place > behind:
                    out.cigars[item, runs] = ((place - behind) << 4) | MATCH
                    runs += 1
                out.cigars[item, runs] = MISMATCH
                runs += 1
            out.cigars[item, runs - 1] += 16
            size = write_number(out.differences, item, size, place - behind)
            out.differences[item, size] = (65, 67, 71, 84, 78)[letter_at(words, start + place)]
            size += 1
            behind = place + 1
    if behind < length:
        out.cigars[item, runs] = ((length - behind) << 4) | MATCH
        runs += 1
    out.sizes[0, item] = runs
    out.sizes[1, item] = write_number(out.differences, item, size, length - behind)


@shared
def _walk(diagonals: Any, errors: int, length: int, first: int, begin: int, runs: Any) -> int:
    """Runs as in BAM, last one first, of the alignment on the middle one of the diagonals from `first` on."""
    letters, diagonal, count = length, errors, 0
    while letters > 0:
        left = _back(diagonals.differ, diagonal, letters)
        steps, operation = letters - left, MATCH
        if steps == 0:
            errors -= 1
            steps, operation = 1, INSERTION
            if first + diagonal + letters > begin:
                if diagonals.reach[errors, diagonal + 1] >= letters - 1:
                    operation = MISMATCH
                elif diagonals.reach[errors, diagonal] >= letters:
                    operation = DELETION
        if operation == INSERTION:
            diagonal += 1
        if operation == DELETION:
            diagonal -= 1
        else:
            letters -= steps
        if count == 0 or runs[count - 1] & 15 != operation:
            runs[count] = operation
            count += 1
        runs[count - 1] += 16 * steps
    return count


@shared
def _write_path(words: Any, end: int, runs: Any, count: int, item: int, out: Any) -> None:
    """Runs, last one first, and the text of the tag MD."""
    at = end + 1
    for run in range(count):
        at -= 0 if runs[run] & 15 == INSERTION else runs[run] >> 4
    out.starts[item] = at
    size = same = 0
    for run in range(count - 1, -1, -1):
        operation, steps = runs[run] & 15, runs[run] >> 4
        out.cigars[item, count - 1 - run] = runs[run]
        if operation == MATCH:
            same += steps
        elif operation != INSERTION:
            for step in range(steps):
                # Letters that are deleted one after the other stand behind one ^, which follows a number.
                if operation == MISMATCH or step == 0:
                    size = write_number(out.differences, item, size, same)
                    same = 0
                if operation == DELETION and step == 0:
                    out.differences[item, size] = 94
                    size += 1
                out.differences[item, size] = (65, 67, 71, 84, 78)[letter_at(words, at + step)]
                size += 1
        at += 0 if operation == INSERTION else steps
    out.sizes[0, item] = count
    out.sizes[1, item] = write_number(out.differences, item, size, same)


_ZERO, _TEN = np.uint64(48), np.uint64(10)


@shared
def write_number(out: Any, row: int, at: int, number: int) -> int:
    """Decimal digits, of which there are at most 19, into a row of bytes; where they end."""
    digits = 1
    bound = 10
    while digits < 19 and number >= bound:
        bound *= 10
        digits += 1
    # Without signs: of several in a line LLVM takes seconds to lay out places that may be negative.
    end, rest = np.uint64(at + digits - 1), np.uint64(number)
    for k in range(np.uint64(digits)):
        out[row, end - k] = _ZERO + rest % _TEN
        rest //= _TEN
    return at + digits
