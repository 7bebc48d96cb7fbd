"""The sample-adaptive and block-adaptive entropy coders, and bits in words of 32."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.compile import shared
from plait.lang.lanes import highest_bit

_WORD = 0xFFFFFFFF


class BitCursor(NamedTuple):
    """A place in a stream of bits; `words` are uint32.

    `state`, int64, shape (3,): bits not yet in a word or not yet used up, their number, the next word.
    """

    words: Any
    state: Any


@shared
def put(words: Any, held: int, bits: int, at: int, value: int, size: int) -> Any:
    """Append up to 32 bits; returns what is held, its size, and the next word."""
    held = (held << size) | value
    bits += size
    # Without a branch: what is no whole word is written over later.
    left = bits & 31
    words[at] = (held >> left) & _WORD
    return held & ((1 << left) - 1), left, at + (bits >> 5)


@shared
def filled(words: Any, held: int, bits: int, at: int) -> Any:
    """At least 32 bits held, zeros behind the end; at most 63."""
    if bits < 32:
        word = words[at] if at < words.size else 0
        held = (held << 32) | word
        bits += 32
        at += 1
    return held, bits, at


@shared
def take(words: Any, held: int, bits: int, at: int, size: int) -> Any:
    """The number in the next bits, up to 32 of them; then what is held, its size, and the next word."""
    held, bits, at = filled(words, held, bits, at)
    bits -= size
    value = held >> bits
    return value, held - (value << bits), bits, at


@shared
def filled_backwards(words: Any, held: int, bits: int, at: int) -> Any:
    """As `filled`, where the lowest bits come first."""
    if bits < 32:
        word = words[at] if at < words.size else 0
        held |= word << bits
        bits += 32
        at += 1
    return held, bits, at


#: Bands that are too few to find something for several at a time.
_FEW = 16


class AdaptiveCode(NamedTuple):
    """Constants of the sample-adaptive coder, 64-bit integers.

    `depth` is D; `limit` is U_max, the zeros after which a residual follows as it is; `start` and `most` are
    the first and largest value of the counter, ``2**gamma_0`` and ``2**gamma_star - 1``; `group` is M, the
    bands whose codewords of a sample follow one another.
    """

    depth: Any
    limit: Any
    start: Any
    most: Any
    group: Any


def initial_sums(depth: int, exponent: int, constant: int) -> int:
    """Accumulator of a band at the start; `depth` is D, `exponent` gamma_0.

    `constant` is K, or the entry of the table for this band.
    """
    k = constant if constant <= 30 - depth else 2 * constant + depth - 30
    return ((3 * (1 << (k + 6)) - 49) << exponent) >> 7


@shared
def next_count(code: Any, count: int) -> Any:
    """The counter after one more sample."""
    return count + 1 if count < code.most else (count + 1) >> 1


@shared
def count_at(code: Any, t: int) -> Any:
    """The counter before the t-th sample of a band, of which the first, number 0, does not count."""
    steps = max(t - 1, 0)
    rise = code.most - code.start
    if steps <= rise:
        return code.start + steps
    half = (code.most + 1) >> 1
    return half + ((steps - rise - 1) & (half - 1))


@shared
def exponent(code: Any, count: Any, total: Any) -> Any:
    """The parameter k of the next codeword."""
    mean = total + ((49 * count) >> 7)
    # Without branches, and 0 where 2 * count > mean.
    k = max(highest_bit(mean | 1) - highest_bit(count), 0)
    return max(min(k - (1 if count << k > mean else 0), code.depth - 2), 0)


@shared
def _next_exponent(code: Any, count: Any, total: Any, before: Any) -> Any:
    """The same where it is mostly that of the sample before: what is foreseen so is not waited for."""
    mean = total + ((49 * count) >> 7)
    least, most = count << before, count << before + 1
    if (least <= mean or before == 0) and (mean < most or before == code.depth - 2):
        return before
    return exponent(code, count, total)


@shared
def next_sum(code: Any, count: Any, total: Any, residual: Any) -> Any:
    """The accumulator after one more sample."""
    return total + residual if count < code.most else (total + residual + 1) >> 1


@shared
def _put_codeword(words: Any, held: int, bits: int, at: int, code: Any, value: int, k: int) -> Any:
    zeros = value >> k
    low = value & ((1 << k) - 1)
    if zeros + k < 32 and zeros < code.limit:
        return put(words, held, bits, at, (1 << k) | low, zeros + 1 + k)
    if zeros < code.limit:
        held, bits, at = put(words, held, bits, at, 1, zeros + 1)
        return put(words, held, bits, at, low, k)
    held, bits, at = put(words, held, bits, at, 0, code.limit)
    return put(words, held, bits, at, value, code.depth)


@shared
def _codeword(code: Any, count: int, total: int, value: int) -> Any:
    """A codeword, and its size above bit 32; of one that is longer, k and no size."""
    k = exponent(code, count, total)
    size = (value >> k) + 1 + k
    short = value >> k < code.limit and size <= 32
    return (size << 32) | (1 << k) | (value & ((1 << k) - 1)) if short else k


@shared
def _find_codewords(code: Any, count: int, residuals: Any, sums: Any, found: Any) -> None:
    """See `_codeword`, of a sample of all bands.

    No band waits for another one here, and there are no branches, so that compilers take several at a time.
    """
    for z in range(residuals.size):
        found[z] = _codeword(code, count, sums[z], residuals[z])
        sums[z] = next_sum(code, count, sums[z], residuals[z])


@shared
def code_rows(code: Any, residuals: Any, row: int, sums: Any, cursor: Any, found: Any) -> None:
    """Append the codewords of rows from number `row` on.

    `residuals`, mapped, int64, (stacks, rows, columns, bands), are coded one stack after the other. `sums`
    are the accumulators, int64, (stacks, bands). `cursor` has room for 64 bits a residual. Both are changed
    in place. `found`, int64, (columns, bands), is scratch; of a column where all bands are in one group.
    """
    stacks, rows, columns, bands = residuals.shape
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    for k in range(stacks * rows):
        stack, y = k // rows, k % rows
        start = (row + y) * columns
        for left in range(0, columns, found.shape[0]):
            right = min(left + found.shape[0], columns)
            count = count_at(code, start + left)
            for x in range(left, right):
                if start + x == 0:
                    for z in range(bands):
                        found[0, z] = (code.depth << 32) | residuals[stack, 0, 0, z]
                    continue
                if bands == 1:
                    total, value = sums[stack, 0], residuals[stack, y, x, 0]
                    found[x - left, 0] = _codeword(code, count, total, value)
                    sums[stack, 0] = next_sum(code, count, total, value)
                else:
                    _find_codewords(code, count, residuals[stack, y, x], sums[stack], found[x - left])
                count = next_count(code, count)
            for first in range(0, bands, code.group):
                for x in range(left, right):
                    for z in range(first, min(first + code.group, bands)):
                        codeword = found[x - left, z]
                        if codeword >> 32:
                            value, size = codeword & _WORD, codeword >> 32
                            held, bits, at = put(words, held, bits, at, value, size)
                        else:
                            value = residuals[stack, y, x, z]
                            held, bits, at = _put_codeword(words, held, bits, at, code, value, codeword)
    state[0], state[1], state[2] = held, bits, at


@shared
def code_bands(code: Any, residuals: Any, row: int, sums: Any, words: Any, states: Any, found: Any) -> None:
    """Append the codewords of rows from number `row` on, those of each band to words of its own.

    `residuals` (rows, columns, bands), `sums` (bands) and `found` (bands) are as in `code_rows`. `words`,
    uint32, (bands, words), have room for 64 bits a residual; `states`, int64, (3, bands), are those of
    `BitCursor`. Here no band waits for another one.
    """
    rows, columns, bands = residuals.shape
    for y in range(rows):
        start = (row + y) * columns
        count = count_at(code, start)
        for x in range(columns):
            own = residuals[y, x]
            if start + x == 0:
                for z in range(bands):
                    found[z] = (code.depth << 32) | own[z]
            else:
                _find_codewords(code, count, own, sums, found)
                count = next_count(code, count)
            for z in range(bands):
                held, bits, at, codeword = states[0, z], states[1, z], states[2, z], found[z]
                if codeword >> 32:
                    held, bits, at = put(words[z], held, bits, at, codeword & _WORD, codeword >> 32)
                else:
                    held, bits, at = _put_codeword(words[z], held, bits, at, code, own[z], codeword)
                states[0, z], states[1, z], states[2, z] = held, bits, at


@shared
def decode_rows(code: Any, residuals: Any, row: int, sums: Any, cursor: Any, found: Any) -> Any:
    """Read the codewords of rows; the inverse of `code_rows`. Returns a number with all bits of residuals.

    `residuals`, of one band of any integers of D bits, `sums` and `cursor` are changed in place. Beyond
    the end of the words all bits are 0: the caller checks whether the next word lies too far behind the end.
    """
    stacks, rows, columns, bands = residuals.shape
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    anything = 0
    for k in range(stacks * rows):
        stack, y = k // rows, k % rows
        start = (row + y) * columns
        for first in range(0, bands, code.group):
            last = min(first + code.group, bands)
            if last - first == 1:
                cursor_now, band = (held, bits, at), residuals[stack, y, :, first]
                total, k, own_bits, held, bits, at = _take_row(
                    code, band, start, sums[stack, first], found[0, first], words, cursor_now
                )
                sums[stack, first], found[0, first] = total, k
                anything |= own_bits
                continue
            count = count_at(code, start)
            for x in range(columns):
                if start + x == 0:
                    for z in range(first, last):
                        value, held, bits, at = take(words, held, bits, at, code.depth)
                        residuals[stack, y, x, z] = value
                    continue
                if last - first < _FEW:
                    for z in range(first, last):
                        k = _next_exponent(code, count, sums[stack, z], found[0, z])
                        found[0, z] = k
                        value, held, bits, at = _take_codeword(words, held, bits, at, code, k)
                        residuals[stack, y, x, z] = value
                        anything |= value
                        sums[stack, z] = next_sum(code, count, sums[stack, z], value)
                    count = next_count(code, count)
                    continue
                own, totals = residuals[stack, y, x, first:last], sums[stack, first:last]
                # As in `_find_codewords`, several bands at a time.
                for z in range(own.size):
                    found[0, z] = exponent(code, count, totals[z])
                for z in range(own.size):
                    own[z], held, bits, at = _take_codeword(words, held, bits, at, code, found[0, z])
                for z in range(own.size):
                    anything |= own[z]
                    totals[z] = next_sum(code, count, totals[z], own[z])
                count = next_count(code, count)
    state[0], state[1], state[2] = held, bits, at
    return anything


@shared
def _take_row(code: Any, residuals: Any, start: int, total: int, k: int, words: Any, place: Any) -> Any:
    """Read the codewords of a row of one band; its accumulator, k, all bits of residuals; then as `take`."""
    held, bits, at = place
    count, anything = count_at(code, start), 0
    for x in range(residuals.size):
        if start + x == 0:
            residuals[x], held, bits, at = take(words, held, bits, at, code.depth)
            continue
        k = _next_exponent(code, count, total, k)
        value, held, bits, at = _take_codeword(words, held, bits, at, code, k)
        residuals[x] = value
        anything |= value
        total, count = next_sum(code, count, total, value), next_count(code, count)
    return total, k, anything, held, bits, at


@shared
def _take_codeword(words: Any, held: int, bits: int, at: int, code: Any, k: int) -> Any:
    """The residual of the next codeword; then as `take`."""
    held, bits, at = filled(words, held, bits, at)
    # The bits behind the first 1, and what is left of them.
    behind = highest_bit(held << 1 | 1) - 1
    zeros, left = bits - 1 - behind, behind - k
    if left >= 0 and zeros < code.limit:
        return (zeros << k) | ((held >> left) & ((1 << k) - 1)), held & ((1 << left) - 1), left, at
    if zeros < code.limit:
        low, held, bits, at = take(words, held & ((1 << behind) - 1), behind, at, k)
        return (zeros << k) | low, held, bits, at
    return take(words, held, bits - code.limit, at, code.depth)


_SEGMENT = 64
#: No pair of numbers that is shorter in the second extension than as it is has a larger sum.
_LARGEST_SUM = 1 << 12


class BlockCode(NamedTuple):
    """Constants of the block-adaptive coder, 64-bit integers.

    `depth` is D, bits of a number; `size` is J, numbers of a block, even; `label` bits name a code; `splits`
    codes write 0, 1, ... low bits as they are; `interval` is r, blocks of a reference interval; `blocks` are
    those of the whole image.
    """

    depth: Any
    size: Any
    label: Any
    splits: Any
    interval: Any
    blocks: Any


@shared
def blocks_left(code: Any, block: int) -> Any:
    """Blocks up to the end of the segment, the interval or the image, this one among them."""
    own = block % code.interval
    return min(_SEGMENT - own % _SEGMENT, code.interval - own, code.blocks - block)


@shared
def _put_unary(words: Any, held: int, bits: int, at: int, zeros: int) -> Any:
    while zeros >= 31:
        held, bits, at = put(words, held, bits, at, 0, 31)
        zeros -= 31
    return put(words, held, bits, at, 1, zeros + 1)


@shared
def _best_code(code: Any, values: Any, start: int) -> Any:
    """The shortest code of a block: low bits split off, or -1 for pairs, -2 for numbers as they are."""
    best, least = -2, code.depth * code.size
    total = 0
    for i in range(start, start + code.size, 2):
        both = values[i] + values[i + 1]
        total += (both * (both + 1)) // 2 + values[i + 1] + 1 if both < _LARGEST_SUM else least
        if total > least:
            break
    total += 1
    if total < least:
        best, least = -1, total
    for k in range(code.splits):
        total = code.size * (k + 1)
        if total >= least:
            break
        for i in range(start, start + code.size):
            total += values[i] >> k
        if total < least:
            best, least = k, total
    return best


@shared
def _put_block(code: Any, values: Any, start: int, words: Any, held: int, bits: int, at: int) -> Any:
    best = _best_code(code, values, start)
    last = start + code.size
    if best == -1:
        held, bits, at = put(words, held, bits, at, 1, code.label + 1)
        for i in range(start, last, 2):
            both = values[i] + values[i + 1]
            held, bits, at = _put_unary(words, held, bits, at, (both * (both + 1)) // 2 + values[i + 1])
    elif best == -2:
        held, bits, at = put(words, held, bits, at, (1 << code.label) - 1, code.label)
        for i in range(start, last):
            held, bits, at = put(words, held, bits, at, values[i], code.depth)
    else:
        held, bits, at = put(words, held, bits, at, best + 1, code.label)
        for i in range(start, last):
            held, bits, at = _put_unary(words, held, bits, at, values[i] >> best)
        for i in range(start, last):
            held, bits, at = put(words, held, bits, at, values[i] & ((1 << best) - 1), best)
    return held, bits, at


@shared
def _put_run(code: Any, run: int, whole: bool, words: Any, held: int, bits: int, at: int) -> Any:
    """A run of blocks of zeros; whether it reaches the end of its segment."""
    zeros = run - 1
    if run > 4:
        zeros = 4 if whole else run
    held, bits, at = put(words, held, bits, at, 0, code.label + 1)
    return _put_unary(words, held, bits, at, zeros)


@shared
def code_blocks(code: Any, values: Any, cursor: Any, progress: Any) -> None:
    """Append the codes of whole blocks; `values` are numbers in coding order, int64.

    `cursor` has room for 64 bits a number. `progress`, int64, (2,), is the number of the next block, and the
    blocks of zeros before it that are not written yet. Both are changed in place.
    """
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    block, run = progress[0], progress[1]
    for start in range(0, values.size, code.size):
        anything = 0
        for i in range(start, start + code.size):
            anything |= values[i]
        if anything == 0:
            run += 1
            if blocks_left(code, block) == 1:
                held, bits, at = _put_run(code, run, True, words, held, bits, at)
                run = 0
        else:
            if run:
                held, bits, at = _put_run(code, run, False, words, held, bits, at)
                run = 0
            held, bits, at = _put_block(code, values, start, words, held, bits, at)
        block += 1
    state[0], state[1], state[2] = held, bits, at
    progress[0], progress[1] = block, run


@shared
def _take_unary(words: Any, held: int, bits: int, at: int) -> Any:
    zeros = 0
    held, bits, at = filled(words, held, bits, at)
    while held == 0 and at <= words.size + 1:
        zeros += bits
        bits = 0
        held, bits, at = filled(words, held, bits, at)
    if held == 0:
        return 0, held, bits, at
    more = bits - 1 - highest_bit(held)
    bits -= more + 1
    return zeros + more, held & ((1 << bits) - 1), bits, at


@shared
def _take_pairs(code: Any, values: Any, start: int, words: Any, held: int, bits: int, at: int) -> Any:
    for i in range(start, start + code.size, 2):
        number, held, bits, at = _take_unary(words, held, bits, at)
        both = int((2.0 * number + 0.25) ** 0.5 - 0.5)
        while both * (both + 1) // 2 > number:
            both -= 1
        while (both + 1) * (both + 2) // 2 <= number:
            both += 1
        values[i + 1] = number - both * (both + 1) // 2
        values[i] = both - values[i + 1]
    return held, bits, at


@shared
def _take_block(
    code: Any, label: int, values: Any, start: int, words: Any, held: int, bits: int, at: int
) -> Any:
    last = start + code.size
    if label == (1 << code.label) - 1:
        for i in range(start, last):
            values[i], held, bits, at = take(words, held, bits, at, code.depth)
        return held, bits, at
    k = label - 1
    for i in range(start, last):
        number, held, bits, at = _take_unary(words, held, bits, at)
        values[i] = number << k
    for i in range(start, last):
        low, held, bits, at = take(words, held, bits, at, k)
        values[i] |= low
    return held, bits, at


@shared
def decode_blocks(code: Any, values: Any, cursor: Any, progress: Any) -> None:
    """Read the codes of whole blocks; the inverse of `code_blocks`, with `values` changed in place.

    `progress`, int64, (2,), is the number of the next block, and the blocks of zeros that are still to come
    of a run. `cursor` and it are changed in place. Beyond the end of the words all bits are 0: the caller
    checks whether the next word lies too far behind the end.
    """
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    block, run = progress[0], progress[1]
    for start in range(0, values.size, code.size):
        if run == 0:
            label, held, bits, at = take(words, held, bits, at, code.label)
            pairs = 0
            if label == 0:
                pairs, held, bits, at = take(words, held, bits, at, 1)
            if label:
                held, bits, at = _take_block(code, label, values, start, words, held, bits, at)
            elif pairs:
                held, bits, at = _take_pairs(code, values, start, words, held, bits, at)
            else:
                zeros, held, bits, at = _take_unary(words, held, bits, at)
                run = zeros + 1 if zeros < 4 else zeros
                if zeros == 4:
                    run = blocks_left(code, block)
        if run:
            for i in range(start, start + code.size):
                values[i] = 0
            run -= 1
        block += 1
    state[0], state[1], state[2] = held, bits, at
    progress[0], progress[1] = block, run


@shared
def _take_first_block(code: Any, values: Any, start: int, words: Any, held: int, bits: int, at: int) -> Any:
    """A block that may begin with a reference sample, or the zeros that a run of blocks begins with.

    Returns the blocks of the run, 0 if there is none, its reference sample, and what `take` returns.
    """
    label, held, bits, at = take(words, held, bits, at, code.label)
    pairs, run, reference, own = 0, 0, 0, 0
    if label == 0:
        pairs, held, bits, at = take(words, held, bits, at, 1)
    if start % (code.interval * code.size) == 0:
        reference, held, bits, at = take(words, held, bits, at, code.depth)
        own = 1
    if label:
        # One number fewer behind a reference.
        rest = BlockCode(code.depth, code.size - own, code.label, code.splits, code.interval, code.blocks)
        held, bits, at = _take_block(rest, label, values, start + own, words, held, bits, at)
    elif pairs:
        held, bits, at = _take_pairs(code, values, start, words, held, bits, at)
    else:
        zeros, held, bits, at = _take_unary(words, held, bits, at)
        run = zeros + 1 if zeros < 4 else zeros
        if zeros == 4:
            run = blocks_left(code, start // code.size)
    return run, reference, held, bits, at


@shared
def decode_references(code: Any, values: Any, cursor: Any, low: int, padded: bool) -> None:
    """Read whole reference intervals of CCSDS 121.0 with its unit-delay predictor into `values`.

    `values` begins with an interval, the last of which may have fewer blocks. `low` is the least sample. With
    `padded` each interval begins at a byte. What is no residual leads out of the range of samples, and stays.
    """
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    high = low + (1 << code.depth) - 1
    length = code.interval * code.size
    for first in range(0, values.size, length):
        last = min(first + length, values.size)
        run, reference = 0, 0
        for start in range(first, last, code.size):
            if run == 0:
                run, number, held, bits, at = _take_first_block(code, values, start, words, held, bits, at)
                if start == first:
                    reference = number
            if run:
                for i in range(start, start + code.size):
                    values[i] = 0
                run -= 1
        values[first] = reference if reference <= high else reference - (1 << code.depth)
        _add_residuals(values, first, last, low, high)
        if padded:
            bits -= bits % 8
            held &= (1 << bits) - 1
    state[0], state[1], state[2] = held, bits, at


@shared
def _add_residuals(values: Any, first: int, last: int, low: int, high: int) -> None:
    """Samples of mapped differences of neighbours, the first of which is one already."""
    before = values[first]
    for i in range(first + 1, last):
        mapped = values[i]
        room = min(before - low, high - before)
        if mapped > 2 * room:
            before += mapped - room if room == before - low else room - mapped
        else:
            before += -((mapped + 1) >> 1) if mapped & 1 else mapped >> 1
        values[i] = before
