"""The predictor in lanes of 32 bits, where no weighted sum is wrapped; only products have 64."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.dp.bands.prediction import BandPrediction, plus_product
from plait.lang.lanes import interleaved, maximum, minimum, product_even, product_odd, splat

#: Most bits of a sample whose differences, and all but sums of products, have 32 bits.
NARROW_BITS = 16


def fits(bits: int, components: int, omega: int, register: int) -> bool:
    """Whether no weighted sum of so many components is wrapped to the bits of the register."""
    # Differences are at most 2**(bits + 2), and the sum of neighbours counted from the middle 2**(bits + 1).
    return bits <= NARROW_BITS and (components * 16 + 2) << (bits + omega) < 1 << (register - 1)


class NarrowPrediction(BandPrediction):
    """The same with lanes of 32 bits where no sum is wrapped, see `fits`; only products have 64.

    A weighted sum is two groups, of the lanes 0, 2, ... and 1, 3, ...; nothing but the double-resolution
    prediction is made of it.
    """

    @staticmethod
    def of_fields(p: Any, fields: Any) -> Any:
        return NarrowPrediction(*fields)

    @staticmethod
    def in_lanes(p: Any, lanes: Any, value: Any) -> Any:
        return splat(lanes, np.int32(value))

    @staticmethod
    def no_sum(p: Any) -> Any:
        return product_even(p.zero, p.zero), product_odd(p.zero, p.zero)

    @staticmethod
    def plus_product(p: Any, dot: Any, difference: Any, weight: Any) -> Any:
        return dot[0] + product_even(difference, weight), dot[1] + product_odd(difference, weight)

    @staticmethod
    def predicted(p: Any, dot: Any, sigma: Any) -> Any:
        return plus_product(p, dot, sigma, p.one << p.omega)

    @staticmethod
    def doubled(p: Any, high: Any) -> Any:
        whole = interleaved(high[0], high[1], p.omega + p.one) + p.one
        return minimum(maximum(whole, p.least + p.least), p.largest + p.largest + p.one)
