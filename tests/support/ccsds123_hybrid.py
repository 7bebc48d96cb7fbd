"""The hybrid entropy coder of CCSDS 123.0-B-2 in plain Python: the definition for tests of fast code."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from support.ccsds123_coders import coding_order, limits_before

from plait.hyperspectral.hybrid import HIGH_ENTROPY_THRESHOLD, hybrid_codes
from plait.hyperspectral.parameters import HybridCoder, StreamParameters

__all__ = ["decode_hybrid", "encode_hybrid"]


def _field(value: int, bits: int) -> str:
    return format(value, f"0{bits}b") if bits else ""


def _exponent(total: int, count: int, depth: int) -> int:
    return max(
        (k for k in range(max(depth - 2, 2) + 1) if count << (k + 2) <= total + (49 * count >> 5)), default=0
    )


def _code(total: int, count: int) -> int:
    """Number of the low-entropy code, -1 for high entropy."""
    if total << 14 >= HIGH_ENTROPY_THRESHOLD * count:
        return -1
    return max(i for i, code in enumerate(hybrid_codes()) if total << 14 < count * code.threshold)


def _symbol(value: int) -> str:
    return format(value, "X") if value < 10 else chr(ord("A") + value - 10)


def encode_hybrid(residuals: NDArray[np.int64], parameters: StreamParameters) -> str:
    """The body of a stream, without the zeros that fill its last word.

    Parameters
    ----------
    residuals
        Mapped residuals, shape (bands, rows, columns).
    parameters
        With a hybrid coder.
    """
    coder, image, out = parameters.coder, parameters.image, []
    assert isinstance(coder, HybridCoder)
    depth, limit, star = image.dynamic_range, coder.unary_length_limit, coder.rescaling_counter_size

    def reversed_gpo2(value: int, k: int) -> str:
        if value >> k < limit:
            return _field(value & ((1 << k) - 1), k) + "1" + "0" * (value >> k)
        return _field(value, depth) + "0" * limit

    counts = [1 << coder.initial_count_exponent] * image.bands
    totals = [4 << coder.initial_count_exponent] * image.bands
    prefixes = [""] * 16
    for z, y, x in coding_order(parameters):
        value = int(residuals[z, y, x])
        out += [_field(limit, bits) for limit, bits in limits_before(parameters, (z, y, x))]
        if y == 0 and x == 0:
            out.append(_field(value, depth))
            continue
        if counts[z] == (1 << star) - 1:
            out.append(str(totals[z] & 1))
            totals[z], counts[z] = (totals[z] + 4 * value + 1) >> 1, (counts[z] + 1) >> 1
        else:
            totals[z], counts[z] = totals[z] + 4 * value, counts[z] + 1
        i = _code(totals[z], counts[z])
        if i < 0:
            out.append(reversed_gpo2(value, _exponent(totals[z], counts[z], depth)))
            continue
        code = hybrid_codes()[i]
        if value > code.limit:
            out.append(reversed_gpo2(value - code.limit - 1, 0))
        prefixes[i] += _symbol(value) if value <= code.limit else "X"
        if prefixes[i] in code.words:
            out.append(code.words[prefixes[i]])
            prefixes[i] = ""
    out += [code.flush[prefix] for code, prefix in zip(hybrid_codes(), prefixes, strict=True)]
    out += [_field(total, 2 + depth + star) for total in totals]
    return "".join(out) + "1"


def decode_hybrid(bits: str, parameters: StreamParameters) -> NDArray[np.int64]:
    """Mapped residuals of a body.

    Parameters
    ----------
    bits
        The body, with the zeros that fill its last word.
    parameters
        With a hybrid coder.
    """
    coder, image = parameters.coder, parameters.image
    assert isinstance(coder, HybridCoder)
    depth, limit, star = image.dynamic_range, coder.unary_length_limit, coder.rescaling_counter_size
    reader = _FromEnd(bits, limit, depth)
    take, take_word, take_gpo2 = reader.take, reader.take_word, reader.take_gpo2
    totals = [take(2 + depth + star) for _ in range(image.bands)][::-1]
    pending = [take_word(code.flush) for code in reversed(hybrid_codes())][::-1]
    counts = _counts(coder, image.columns * image.rows)
    out = np.zeros((image.bands, image.rows, image.columns), np.int64)

    def take_sample(z: int, t: int) -> int:
        i = _code(totals[z], counts[t])
        if i < 0:
            value = take_gpo2(_exponent(totals[z], counts[t], depth))
        else:
            code = hybrid_codes()[i]
            pending[i] = pending[i] or take_word(code.words)
            symbol, pending[i] = pending[i][-1], pending[i][:-1]
            value = code.limit + 1 + take_gpo2(0) if symbol == "X" else int(symbol, 36)
        totals[z] -= 4 * value
        if counts[t - 1] == (1 << star) - 1:
            # S = (S' + 4 value + 1) >> 1, so S' is one of two numbers of which the bit tells.
            doubled = 2 * (totals[z] + 4 * value) - 4 * value - 1
            totals[z] = doubled + ((doubled & 1) ^ take(1))
        return value

    for z, y, x in reversed(list(coding_order(parameters))):
        t = y * image.columns + x
        out[z, y, x] = take_sample(z, t) if t else take(depth)
        limits = limits_before(parameters, (z, y, x))
        assert limits == [(take(size), size) for _, size in reversed(limits)][::-1]
    return out


class _FromEnd:
    """Reads bits from the last 1 on, backwards."""

    def __init__(self, bits: str, limit: int, depth: int) -> None:
        self._bits, self._limit, self._depth = bits, limit, depth
        self._at = bits.rindex("1")

    def take(self, size: int) -> int:
        self._at -= size
        return int("0" + self._bits[self._at : self._at + size], 2)

    def take_word(self, words: dict[str, str]) -> str:
        found = next(word for word, code in words.items() if self._bits.endswith(code, 0, self._at))
        self._at -= len(words[found])
        return found

    def take_gpo2(self, k: int) -> int:
        zeros = 0
        while zeros < self._limit and self._bits[self._at - 1 - zeros] == "0":
            zeros += 1
        self.take(zeros)
        if zeros == self._limit:
            return self.take(self._depth)
        self.take(1)
        return (zeros << k) + self.take(k)


def _counts(coder: HybridCoder, samples: int) -> list[int]:
    """The counter after each sample of a band."""
    found, count = [1 << coder.initial_count_exponent], 1 << coder.initial_count_exponent
    for _ in range(samples - 1):
        count = (count + 1) >> 1 if count == (1 << coder.rescaling_counter_size) - 1 else count + 1
        found.append(count)
    return found
