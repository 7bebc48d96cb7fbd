"""Golomb power-of-two codewords whose parameter follows the mean of what was coded before.

CCSDS 123.0-B-1, section 5.4.3.2: the sample-adaptive coder. Every band has its own accumulator; the counter
is the same for all. Bits lie in words of 32, the first bit in the highest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.lanes import highest_bit
from plait.schedules.bit_words import filled, put, take

__all__ = ["AdaptiveCode", "code_rows", "count_at", "decode_rows", "initial_sums", "next_count"]


class AdaptiveCode(NamedTuple):
    """Constants of the coder, 64-bit integers.

    Attributes
    ----------
    depth
        D, bits of a sample.
    limit
        U_max, zeros after which a residual follows as it is.
    start
        The counter at the start, ``2**gamma_0``.
    most
        Largest value of the counter, ``2**gamma_star - 1``.
    group
        Bands whose codewords of a sample follow one another, M.
    """

    depth: Any
    limit: Any
    start: Any
    most: Any
    group: Any


def initial_sums(depth: int, exponent: int, constant: int) -> int:
    """Accumulator of a band at the start.

    Parameters
    ----------
    depth
        D.
    exponent
        gamma_0.
    constant
        K, or the entry of the table for this band.
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
def _exponent(code: Any, count: int, total: int) -> Any:
    """The parameter k of the next codeword."""
    mean = total + ((49 * count) >> 7)
    if 2 * count > mean:
        return 0
    k = highest_bit(mean) - highest_bit(count)
    if count << k > mean:
        k -= 1
    return min(k, code.depth - 2)


@shared
def _next_sum(code: Any, count: int, total: int, residual: int) -> Any:
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
def code_rows(code: Any, residuals: Any, row: int, sums: Any, cursor: Any) -> None:
    """Append the codewords of rows.

    Parameters
    ----------
    code
        `AdaptiveCode`.
    residuals
        Mapped residuals, int64, shape (stacks, rows, columns, bands); one stack after the other is coded.
    row
        Number of the first row.
    sums
        Accumulators, int64, shape (stacks, bands); changed in place.
    cursor
        Where to write; room for 64 bits a residual. Changed in place.
    """
    stacks, rows, columns, bands = residuals.shape
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    for k in range(stacks * rows):
        stack, y = k // rows, k % rows
        start = (row + y) * columns
        for first in range(0, bands, code.group):
            last = min(first + code.group, bands)
            count = count_at(code, start)
            for x in range(columns):
                if start + x == 0:
                    for z in range(first, last):
                        held, bits, at = put(words, held, bits, at, residuals[stack, y, x, z], code.depth)
                    continue
                for z in range(first, last):
                    value, total = residuals[stack, y, x, z], sums[stack, z]
                    k = _exponent(code, count, total)
                    held, bits, at = _put_codeword(words, held, bits, at, code, value, k)
                    sums[stack, z] = _next_sum(code, count, total, value)
                count = next_count(code, count)
    state[0], state[1], state[2] = held, bits, at


@shared
def decode_rows(code: Any, residuals: Any, row: int, sums: Any, cursor: Any) -> None:
    """Read the codewords of rows; the inverse of `code_rows`.

    Parameters
    ----------
    code, row, sums
        As there.
    residuals
        Changed in place.
    cursor
        Where to read; behind the end of the words all bits are 0. Changed in place: whoever calls looks
        whether the next word lies too far behind the end.
    """
    stacks, rows, columns, bands = residuals.shape
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    for k in range(stacks * rows):
        stack, y = k // rows, k % rows
        start = (row + y) * columns
        for first in range(0, bands, code.group):
            last = min(first + code.group, bands)
            count = count_at(code, start)
            for x in range(columns):
                if start + x == 0:
                    for z in range(first, last):
                        value, held, bits, at = take(words, held, bits, at, code.depth)
                        residuals[stack, y, x, z] = value
                    continue
                for z in range(first, last):
                    held, bits, at = filled(words, held, bits, at)
                    total = sums[stack, z]
                    zeros = bits - 1 - highest_bit(held) if held else bits
                    if zeros < code.limit:
                        k = _exponent(code, count, total)
                        bits -= zeros + 1
                        held = held & ((1 << bits) - 1)
                        held, bits, at = filled(words, held, bits, at)
                        bits -= k
                        low = held >> bits
                        held -= low << bits
                        value = (zeros << k) | low
                    else:
                        bits -= code.limit
                        value, held, bits, at = take(words, held, bits, at, code.depth)
                    residuals[stack, y, x, z] = value
                    sums[stack, z] = _next_sum(code, count, total, value)
                count = next_count(code, count)
    state[0], state[1], state[2] = held, bits, at
