"""Golomb power-of-two codewords whose parameter follows the mean of what was coded before.

CCSDS 123.0-B-1, section 5.4.3.2: the sample-adaptive coder. Every band has its own accumulator; the counter
is the same for all. Bits lie in words of 32, the first bit in the highest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.lanes import highest_bit
from plait.schedules.bit_words import filled, put

__all__ = ["AdaptiveCode", "code_row", "decode_row", "initial_sums", "next_count"]


class AdaptiveCode(NamedTuple):
    """Constants of the coder, 64-bit integers.

    Attributes
    ----------
    depth
        D, bits of a sample.
    limit
        U_max, zeros after which a residual follows as it is.
    most
        Largest value of the counter, ``2**gamma_star - 1``.
    group
        Bands whose codewords of a sample follow one another, M.
    """

    depth: Any
    limit: Any
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
def next_count(code: Any, count: int) -> int:
    """The counter after one more sample."""
    return count + 1 if count < code.most else (count + 1) >> 1


@shared
def _exponent(code: Any, count: int, total: int) -> int:
    """The parameter k of the next codeword."""
    mean = total + ((49 * count) >> 7)
    if 2 * count > mean:
        return 0
    k = highest_bit(mean) - highest_bit(count)
    if count << k > mean:
        k -= 1
    return min(k, code.depth - 2)


@shared
def _next_sum(code: Any, count: int, total: int, residual: int) -> int:
    return total + residual if count < code.most else (total + residual + 1) >> 1


@shared
def code_row(code: Any, residuals: Any, row: int, counts: Any, sums: Any, cursor: Any) -> None:
    """Append the codewords of a row.

    Parameters
    ----------
    code
        `AdaptiveCode`.
    residuals
        Mapped residuals, int64, shape (columns, bands).
    row
        Number of the row.
    counts
        Counter before each sample of the row, int64, shape (columns,).
    sums
        Accumulators, int64, shape (bands,); changed in place.
    cursor
        Where to write; room for 64 bits a residual. Changed in place.
    """
    columns, bands = residuals.shape
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    for first in range(0, bands, code.group):
        last = min(first + code.group, bands)
        for x in range(columns):
            count = counts[x]
            plain = row == 0 and x == 0
            for z in range(first, last):
                value = residuals[x, z]
                if plain:
                    held, bits, at = put(words, held, bits, at, value, code.depth)
                    continue
                total = sums[z]
                k = _exponent(code, count, total)
                zeros = value >> k
                low = value & ((1 << k) - 1)
                if zeros + k < 32 and zeros < code.limit:
                    held, bits, at = put(words, held, bits, at, (1 << k) | low, zeros + 1 + k)
                elif zeros < code.limit:
                    held, bits, at = put(words, held, bits, at, 1, zeros + 1)
                    held, bits, at = put(words, held, bits, at, low, k)
                else:
                    held, bits, at = put(words, held, bits, at, 0, code.limit)
                    held, bits, at = put(words, held, bits, at, value, code.depth)
                sums[z] = _next_sum(code, count, total, value)
    state[0], state[1], state[2] = held, bits, at


@shared
def decode_row(code: Any, residuals: Any, row: int, counts: Any, sums: Any, cursor: Any) -> None:
    """Read the codewords of a row; the inverse of `code_row`.

    Parameters
    ----------
    code, row, counts, sums
        As there.
    residuals
        Changed in place.
    cursor
        Where to read; behind the end of the words all bits are 0. Changed in place: whoever calls looks
        whether the next word lies too far behind the end.
    """
    columns, bands = residuals.shape
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    for first in range(0, bands, code.group):
        last = min(first + code.group, bands)
        for x in range(columns):
            count = counts[x]
            plain = row == 0 and x == 0
            for z in range(first, last):
                held, bits, at = filled(words, held, bits, at)
                zeros = code.limit
                if not plain:
                    k = _exponent(code, count, sums[z])
                    zeros = bits
                    if held:
                        zeros = bits - 1 - highest_bit(held)
                if zeros < code.limit:
                    bits -= zeros + 1
                    held = held & ((1 << bits) - 1)
                    held, bits, at = filled(words, held, bits, at)
                    bits -= k
                    value = (zeros << k) | (held >> bits)
                else:
                    if not plain:
                        bits -= code.limit
                    held, bits, at = filled(words, held, bits, at)
                    bits -= code.depth
                    value = held >> bits
                held = held & ((1 << bits) - 1)
                residuals[x, z] = value
                if not plain:
                    sums[z] = _next_sum(code, count, sums[z], value)
    state[0], state[1], state[2] = held, bits, at
