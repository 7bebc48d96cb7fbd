"""Two 16-bit values in one 32-bit word, as a GPU computes with them.

From 0 to 2047 an integer has the same bits as the IEEE half-precision number ``integer * 2**-24``: those
numbers lie 2**-24 apart, below 1024 as subnormal numbers and from there in the first binade. So the same
word can be added to as two half-precision numbers, and compared or added to as two integers. A GPU has
different units for the two kinds of arithmetic and runs both at once; which of them an operation uses is
said by the type of what is added:

- `LowScores` and `HighScores` are added as half-precision numbers. Sums of integers between -2047
  and 2047 are exact; a sum of 2048 or more is rounded to no less than 2048. A negative sum has the sign
  and magnitude of such numbers: as an integer of two's complement it is negative too, though another one.
- `IntegerStep` is added as integers of two's complement, which wrap.
- `maximum` of two `HalfPair` compares integers and gives at least 0. Negative numbers of either kind are thus
  equal: as good as 0.

The definitions here serve interpreted Python; `plait.dp.pairs.gpu_packed` has the instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

#: Values from here on are no longer exact.
PACKED_LIMIT = 2048


class HalfPair(NamedTuple):
    """Two values from 0 to 2047, the first in the low half of the word."""

    bits: Any

    def __add__(self, step: Any) -> Any:
        """The two sums, in the arithmetic of the type of `step`."""
        return step.added_to(self)

    def maximum(self, other: Any) -> Any:
        """The larger values, and at least 0."""
        return HalfPair(
            _word(np.maximum(np.maximum(_integers(self.bits), _integers(other.bits)), np.int16(0)))
        )


class AddedBefore(NamedTuple):
    """The step that has been added already: adding it changes nothing."""

    def added_to(self, pair: HalfPair) -> HalfPair:
        """The pair itself."""
        return pair


class IntegerStep(NamedTuple):
    """Two integers of two's complement."""

    bits: Any

    def added_to(self, pair: HalfPair) -> HalfPair:
        """Sums of integers, which wrap."""
        return HalfPair(_word(_integers(pair.bits) + _integers(self.bits)))


class LowScores(NamedTuple):
    """Half-precision numbers in the low halves of two words, the first word's for the first value."""

    first: Any
    second: Any

    def added_to(self, pair: HalfPair) -> HalfPair:
        """Sums of half-precision numbers."""
        steps = np.array([_halves(self.first)[0], _halves(self.second)[0]])
        return HalfPair(_word(_halves(pair.bits) + steps))


class HighScores(NamedTuple):
    """Half-precision numbers in the high halves of two words, the first word's for the first value."""

    first: Any
    second: Any

    def added_to(self, pair: HalfPair) -> HalfPair:
        """Sums of half-precision numbers."""
        steps = np.array([_halves(self.first)[1], _halves(self.second)[1]])
        return HalfPair(_word(_halves(pair.bits) + steps))


def _integers(word: Any) -> Any:
    return np.array([word], np.int32).view(np.int16)


def _halves(word: Any) -> Any:
    return np.array([word], np.int32).view(np.float16)


def _word(pair: Any) -> Any:
    return pair.view(np.int32)[0]


def half_bits(values: Any) -> Any:
    """Integers between -2048 and 2048 as the bits of ``integer * 2**-24`` in half precision, int16."""
    return (np.asarray(values, np.float64) * 2.0**-24).astype(np.float16).view(np.int16)


def pack(low: Any, high: Any) -> Any:
    """A word of two 16-bit values."""
    return np.array([low, high], np.int16).view(np.int32)[0]


def unpack(word: Any) -> tuple[int, int]:
    """The two 16-bit values of a word as integers."""
    low, high = _integers(word).tolist()
    return low, high
