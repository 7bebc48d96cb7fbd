"""The CCSDS 123 entropy coders in plain Python, bit by bit: the definition that fast code is tested with.

Bits are characters, ``"0"`` and ``"1"``, in lists of strings and in strings.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from plait.hyperspectral.parameters import BlockAdaptive, SampleAdaptive, StreamParameters

__all__ = [
    "coding_order",
    "decode_block_adaptive",
    "decode_sample_adaptive",
    "encode_block_adaptive",
    "encode_sample_adaptive",
    "limits_before",
]

_SEGMENT = 64


def _field(value: int, bits: int) -> str:
    return format(value, f"0{bits}b") if bits else ""


def coding_order(parameters: StreamParameters) -> Iterator[tuple[int, int, int]]:
    """Places (band, row, column) of a cube in the order in which they are coded."""
    image, m = parameters.image, parameters.interleaving_depth
    if parameters.order == "bsq":
        yield from np.ndindex(image.bands, image.rows, image.columns)
        return
    for y in range(image.rows):
        for first in range(0, image.bands, m):
            for x in range(image.columns):
                for z in range(first, min(first + m, image.bands)):
                    yield z, y, x


def limits_before(parameters: StreamParameters, place: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Error limits that the body carries before a place, with their bits (4.8.2.4, 5.4.2).

    Parameters
    ----------
    parameters
        The parameters.
    place
        Band, row and column, in coding order.
    """
    limits, (z, y, x) = parameters.predictor.error_limits, place
    if limits is None or limits.update_exponent is None or z or x or y % 2**limits.update_exponent:
        return []
    found: list[tuple[int, int]] = []
    for values, bits in (
        (limits.absolute, limits.absolute_bits),
        (limits.relative, limits.relative_bits),
    ):
        if bits is not None:
            assert isinstance(values, tuple)
            row = values[y // 2**limits.update_exponent]
            assert isinstance(row, tuple)
            found += [(value, bits) for value in row]
    return found


class _Statistics:
    """Counter and accumulators of the sample-adaptive coder."""

    def __init__(self, coder: SampleAdaptive, parameters: StreamParameters) -> None:
        depth = parameters.image.dynamic_range
        self.depth, self.star = depth, coder.rescaling_counter_size
        self.limit = coder.unary_length_limit
        self.count = [1 << coder.initial_count_exponent] * parameters.image.bands
        self.sums = []
        for z in range(parameters.image.bands):
            k = coder.exponent(z)
            k = k if k <= 30 - depth else 2 * k + depth - 30
            self.sums.append((3 * (1 << (k + 6)) - 49) * self.count[z] >> 7)

    def exponent(self, z: int) -> int:
        count, total = self.count[z], self.sums[z] + (49 * self.count[z] >> 7)
        if 2 * count > total:
            return 0
        return max((k for k in range(1, self.depth - 1) if count << k <= total), default=0)

    def update(self, z: int, residual: int) -> None:
        if self.count[z] < (1 << self.star) - 1:
            self.sums[z] += residual
            self.count[z] += 1
        else:
            self.sums[z] = (self.sums[z] + residual + 1) >> 1
            self.count[z] = (self.count[z] + 1) >> 1


def encode_sample_adaptive(residuals: NDArray[np.int64], parameters: StreamParameters) -> str:
    """Codewords of mapped residuals.

    Parameters
    ----------
    residuals
        Shape (bands, rows, columns).
    parameters
        With a sample-adaptive coder.
    """
    coder = parameters.coder
    assert isinstance(coder, SampleAdaptive)
    depth, statistics, out = parameters.image.dynamic_range, _Statistics(coder, parameters), []
    for z, y, x in coding_order(parameters):
        value = int(residuals[z, y, x])
        out += [_field(limit, bits) for limit, bits in limits_before(parameters, (z, y, x))]
        if y == 0 and x == 0:
            out.append(_field(value, depth))
            continue
        k = statistics.exponent(z)
        if value >> k < coder.unary_length_limit:
            out.append("0" * (value >> k) + "1" + _field(value & ((1 << k) - 1), k))
        else:
            out.append("0" * coder.unary_length_limit + _field(value, depth))
        statistics.update(z, value)
    return "".join(out)


def decode_sample_adaptive(bits: str, parameters: StreamParameters) -> NDArray[np.int64]:
    """Mapped residuals of codewords.

    Parameters
    ----------
    bits
        The codewords, and what follows them.
    parameters
        With a sample-adaptive coder.
    """
    coder, image = parameters.coder, parameters.image
    assert isinstance(coder, SampleAdaptive)
    statistics, at = _Statistics(coder, parameters), 0
    out = np.zeros((image.bands, image.rows, image.columns), np.int64)
    for z, y, x in coding_order(parameters):
        for limit, size in limits_before(parameters, (z, y, x)):
            assert int(bits[at : at + size], 2) == limit
            at += size
        if y == 0 and x == 0:
            value, at = int(bits[at : at + image.dynamic_range], 2), at + image.dynamic_range
        else:
            k, zeros = statistics.exponent(z), 0
            while zeros < coder.unary_length_limit and bits[at + zeros] == "0":
                zeros += 1
            at += zeros
            if zeros < coder.unary_length_limit:
                value = (zeros << k) + int("0" + bits[at + 1 : at + 1 + k], 2)
                at += 1 + k
            else:
                value, at = int(bits[at : at + image.dynamic_range], 2), at + image.dynamic_range
            statistics.update(z, value)
        out[z, y, x] = value
    return out


def _identifier_bits(depth: int, restricted: bool) -> int:
    if restricted and depth <= 4:
        return 1 if depth <= 2 else 2
    return 3 if depth <= 8 else 4 if depth <= 16 else 5


def _splits(size: int) -> int:
    """Number of split-sample options, k = 0, 1, ..., for an identifier of this size."""
    return {1: 0, 2: 2, 3: 6, 4: 14, 5: 30}[size]


def _unary(value: int) -> str:
    return "0" * value + "1"


def _coded_block(values: list[int], depth: int, size: int) -> str:
    """The shortest of the options of a block that is not all zero."""
    best = "1" * size + "".join(_field(value, depth) for value in values)
    pairs = zip(values[::2], values[1::2], strict=True)
    others = [
        "0" * size + "1" + "".join(_unary((a + b) * (a + b + 1) // 2 + b) for a, b in pairs)
        if max(values) < 1 << 12
        else best
    ]
    for k in range(_splits(size)):
        if max(values) >> k > 1 << 16:
            continue
        low = "".join(_field(value & ((1 << k) - 1), k) for value in values)
        others.append(_field(k + 1, size) + "".join(_unary(value >> k) for value in values) + low)
    for other in others:
        best = other if len(other) < len(best) else best
    return best


def encode_block_adaptive(residuals: NDArray[np.int64], parameters: StreamParameters) -> str:
    """Coded data sets of mapped residuals.

    Parameters
    ----------
    residuals
        Shape (bands, rows, columns).
    parameters
        With a block-adaptive coder.
    """
    coder, depth = parameters.coder, parameters.image.dynamic_range
    assert isinstance(coder, BlockAdaptive)
    size = _identifier_bits(depth, coder.restricted)
    values: list[int] = []
    for place in coding_order(parameters):
        values += [limit for limit, _ in limits_before(parameters, place)]
        values.append(int(residuals[place]))
    values += [0] * (-len(values) % coder.block_size)
    blocks = [values[k : k + coder.block_size] for k in range(0, len(values), coder.block_size)]
    out, at = [], 0
    while at < len(blocks):
        if any(blocks[at]):
            out.append(_coded_block(blocks[at], depth, size))
            at += 1
            continue
        end = _segment_end(at, len(blocks), coder.reference_interval)
        run = next((k for k in range(at, end) if any(blocks[k])), end) - at
        count = run - 1 if run <= 4 else 4 if at + run == end else run
        out.append("0" * (size + 1) + _unary(count))
        at += run
    return "".join(out)


def _segment_end(at: int, blocks: int, interval: int) -> int:
    start = at - at % interval
    return min(at + _SEGMENT - (at - start) % _SEGMENT, start + interval, blocks)


def decode_block_adaptive(bits: str, parameters: StreamParameters) -> NDArray[np.int64]:
    """Mapped residuals of coded data sets.

    Parameters
    ----------
    bits
        The coded data sets, and what follows them.
    parameters
        With a block-adaptive coder.
    """
    coder, image = parameters.coder, parameters.image
    assert isinstance(coder, BlockAdaptive)
    size, j = _identifier_bits(image.dynamic_range, coder.restricted), coder.block_size
    limits = [limit for place in coding_order(parameters) for limit in limits_before(parameters, place)]
    blocks = -(-(image.samples + len(limits)) // j)
    values: list[int] = []
    reader = _Bits(bits)
    while len(values) < blocks * j:
        identifier = reader.field(size)
        if identifier == 0 and reader.field(1) == 0:
            count, at = reader.unary(), len(values) // j
            run = count + 1 if count < 4 else count
            if count == 4:
                run = _segment_end(at, blocks, coder.reference_interval) - at
            values += [0] * (run * j)
        elif identifier == 0:
            for _ in range(j // 2):
                m = reader.unary()
                q = next(q for q in range(m + 1) if (q + 1) * (q + 2) // 2 > m)
                second = m - q * (q + 1) // 2
                values += [q - second, second]
        elif identifier == (1 << size) - 1:
            values += [reader.field(image.dynamic_range) for _ in range(j)]
        else:
            high = [reader.unary() for _ in range(j)]
            values += [(h << (identifier - 1)) + reader.field(identifier - 1) for h in high]
    out = np.zeros((image.bands, image.rows, image.columns), np.int64)
    at = 0
    for place in coding_order(parameters):
        own = [limit for limit, _ in limits_before(parameters, place)]
        assert values[at : at + len(own)] == own
        at += len(own)
        out[place] = values[at]
        at += 1
    return out


class _Bits:
    def __init__(self, bits: str) -> None:
        self._bits, self._at = bits, 0

    def field(self, size: int) -> int:
        self._at += size
        return int("0" + self._bits[self._at - size : self._at], 2)

    def unary(self) -> int:
        end = self._bits.index("1", self._at)
        zeros, self._at = end - self._at, end + 1
        return zeros
