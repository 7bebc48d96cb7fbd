"""Where exactly reads end, and how they align: columns of edit distances in words (Myers 1999, Hyyro 2003).

Bit i of ``up`` and ``down`` says whether the distance of the first i + 1 letters of a read is one more or one
less than that of the first i, at one place of the text. The text before is free.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.compile import kernel, shared
from plait.lang.lanes import lowest_bit, population
from plait.mapping.genome import letter_at
from plait.mapping.verification import mismatches, word_at

#: Operations in BAM: a letter of the read alone, of the text alone, a match, a mismatch.
INSERTION, DELETION, MATCH, MISMATCH = 1, 2, 7, 8


class Columns(NamedTuple):
    """Columns, int64: `equal` (4, words) where a read has each letter, `up`, `down` (columns, words)."""

    equal: Any
    up: Any
    down: Any


class Loci(NamedTuple):
    """Loci that are found, int64 (room,): row of the read, last letter in the text, distance, contig."""

    rows: Any
    ends: Any
    distances: Any
    contigs: Any


@shared
def set_equal(codes: Any, row: int, length: int, equal: Any) -> None:
    """Words of where a read has each of the four letters."""
    for letter in range(4):
        for word in range(equal.shape[1]):
            equal[letter, word] = 0
    for k in range(length):
        code = codes[row, k]
        if code < 4:
            equal[code, k >> 6] |= 1 << (k & 63)


@shared
def next_column(equal: Any, code: int, length: int, before: int, after: int, columns: Any) -> int:
    """From column `before` to `after`, maybe the same, at a letter; the change of the read's distance."""
    plus = minus = change = 0
    last = (length - 1) >> 6
    for word in range(last + 1):
        up, down = columns.up[before, word], columns.down[before, word]
        same = equal[code, word] if code < 4 else 0
        vertical = same | down
        same |= minus
        across = (((same & up) + up) ^ up) | same
        more = down | ~(across | up)
        less = up & across
        if word == last:
            bit = (length - 1) & 63
            change = ((more >> bit) & 1) - ((less >> bit) & 1)
        carried, owed = (more >> 63) & 1, (less >> 63) & 1
        more = (more << 1) | plus
        less = (less << 1) | minus
        columns.up[after, word] = less | ~(vertical | more)
        columns.down[after, word] = more & vertical
        plus, minus = carried, owed
    return change


@shared
def begin_columns(length: int, columns: Any) -> None:
    """The column before the text: i letters of the read have distance i."""
    for word in range(((length - 1) >> 6) + 1):
        columns.up[0, word] = -1
        columns.down[0, word] = 0


@kernel
def loci_kernel(
    words: Any, contigs: Any, reads: Any, keys: Any, found: Any, first: int, columns: Any, out: Any
) -> Any:
    """Loci of the diagonals `keys` from `first` on, as far as there is room; the next one, and how many loci.

    `contigs` int64 (contigs, 2) are begin and end of each; `found` uint8 are mismatches, or more, of each
    diagonal by `plait.mapping.verification.check_kernel`. Ends that are at most e + 1 letters apart are one
    locus; of it the smallest distance and, of the ends that have it, the leftmost are kept.
    """
    count, item, room = 0, first, out.rows.size
    known = -1
    while item < keys.size:
        row, at = keys[item] >> 32, keys[item] & 0xFFFFFFFF
        length, errors = reads.lengths[row], reads.errors[row]
        contig = contig_of(contigs, at + (length >> 1))
        begin, end = at - errors, at + length + errors
        after = item + 1
        while after < keys.size and keys[after] >> 32 == row:
            following = keys[after] & 0xFFFFFFFF
            if following - errors > end or contig_of(contigs, following + (length >> 1)) != contig:
                break
            end = following + length + errors
            after += 1
        begin, end = max(begin, contigs[contig, 0]), min(end, contigs[contig, 1])
        if count + 1 + (end - begin) // (errors + 2) > room:
            break
        if after == item + 1 and found[item] == 0:
            count = _add(out, count, row, at + length - 1, 0, contig)
        else:
            if row != known:
                set_equal(reads.codes, row, length, columns.equal)
                known = row
            count = _ends_between(words, begin, end, length, errors, row, contig, columns, out, count)
        item = after
    return item, count


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
def _ends_between(
    words: Any,
    begin: int,
    end: int,
    length: int,
    errors: int,
    row: int,
    contig: int,
    columns: Any,
    out: Any,
    count: int,
) -> int:
    """Loci in a stretch of text; returns how many there are now."""
    begin_columns(length, columns)
    distance = length
    last = -1
    for at in range(begin, end):
        distance += next_column(columns.equal, letter_at(words, at), length, 0, 0, columns)
        if distance > errors:
            continue
        if last < 0 or at - last > errors + 1:
            count = _add(out, count, row, at, distance, contig)
        elif distance < out.distances[count - 1]:
            out.distances[count - 1] = distance
            out.ends[count - 1] = at
        last = at
    return count


class Paths(NamedTuple):
    """Alignments, changed in place: `starts` int64; `cigars` int64 (loci, most), runs as in BAM.

    `differences` uint8 (loci, most) are the texts of MD tags, and `sizes` int64 (loci, 2) numbers of runs and
    bytes.
    """

    starts: Any
    cigars: Any
    differences: Any
    sizes: Any


@kernel
def paths_kernel(words: Any, contigs: Any, reads: Any, loci: Any, columns: Any, steps: Any, out: Any) -> None:
    """The alignment of each locus: back from its end, letters pair up where that is best, else one is alone.

    It is a letter of the text where that is best, else of the read. `steps` uint8 is memory.
    """
    known = -1
    for item in range(loci.rows.size):
        row, end, distance = loci.rows[item], loci.ends[item], loci.distances[item]
        length = reads.lengths[row]
        begin = contigs[loci.contigs[item], 0]
        start = end - length + 1
        if start >= begin and mismatches(words, start, reads.words[row], length, distance) == distance:
            _write_pairs(words, start, reads.words[row], length, item, out)
            continue
        if row != known:
            set_equal(reads.codes, row, length, columns.equal)
            known = row
        count = _walk(words, max(begin, start - distance), end, reads.codes, row, length, columns, steps)
        _write_path(words, end, steps, count, item, out)


@shared
def _write_pairs(words: Any, start: int, read: Any, length: int, item: int, out: Any) -> None:
    """An alignment without gaps, from the bits in which a read, int64 (words, 3), and the text differ."""
    out.starts[item] = start
    runs = size = 0
    behind = 0
    for word in range((length + 63) >> 6):
        at = start + 64 * word
        other = (word_at(words, 0, at) ^ read[word, 0]) | (word_at(words, 1, at) ^ read[word, 1])
        other |= word_at(words, 2, at) | read[word, 2]
        if length - 64 * word < 64:
            other &= ~(-1 << (length - 64 * word))
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
    out.sizes[item, 0] = runs
    out.sizes[item, 1] = write_number(out.differences, item, size, length - behind)


@shared
def _value(columns: Any, column: int, letters: int) -> int:
    """Distance of the first letters of a read at a column."""
    found = 0
    for word in range((letters + 63) >> 6):
        free = letters - 64 * word
        mask = -1 if free >= 64 else ~(-1 << free)
        found += population(columns.up[column, word] & mask) - population(columns.down[column, word] & mask)
    return found


@shared
def _walk(
    words: Any, begin: int, end: int, codes: Any, row: int, length: int, columns: Any, steps: Any
) -> int:
    """Steps, last one first, of the alignment that ends at `end`; returns how many."""
    begin_columns(length, columns)
    for column in range(end - begin + 1):
        next_column(columns.equal, letter_at(words, begin + column), length, column, column + 1, columns)
    i, j, count = length, end - begin + 1, 0
    while i > 0:
        step = INSERTION
        if j > 0:
            code = codes[row, i - 1]
            value = _value(columns, j, i)
            if code < 4 and code == letter_at(words, begin + j - 1):
                step = MATCH
            elif _value(columns, j - 1, i - 1) + 1 == value:
                step = MISMATCH
            elif _value(columns, j - 1, i) + 1 == value:
                step = DELETION
        steps[count] = step
        count += 1
        i -= 0 if step == DELETION else 1
        j -= 0 if step == INSERTION else 1
    return count


@shared
def _write_path(words: Any, end: int, steps: Any, count: int, item: int, out: Any) -> None:
    """Runs and the text of the tag MD of steps, last one first."""
    at = end + 1
    for step in range(count):
        at -= 0 if steps[step] == INSERTION else 1
    out.starts[item] = at
    runs = size = same = 0
    before = -1
    for step in range(count - 1, -1, -1):
        operation = steps[step] + 0
        if operation != before:
            out.cigars[item, runs] = operation
            runs += 1
        out.cigars[item, runs - 1] += 16
        if operation == MATCH:
            same += 1
        elif operation != INSERTION:
            # Letters that are deleted one after the other stand behind one ^, which follows a number.
            if operation == MISMATCH or before != DELETION:
                size = write_number(out.differences, item, size, same)
                same = 0
                if operation == DELETION:
                    out.differences[item, size] = 94
                    size += 1
            out.differences[item, size] = (65, 67, 71, 84, 78)[letter_at(words, at)]
            size += 1
        before = operation
        at += 0 if operation == INSERTION else 1
    out.sizes[item, 0] = runs
    out.sizes[item, 1] = write_number(out.differences, item, size, same)


@shared
def write_number(out: Any, row: int, at: int, number: int) -> int:
    """Decimal digits, of which there are at most 19, into a row of bytes; where they end."""
    digits = 1
    bound = 10
    while digits < 19 and number >= bound:
        bound *= 10
        digits += 1
    for k in range(digits - 1, -1, -1):
        out[row, at + k] = 48 + number % 10
        number //= 10
    return at + digits
