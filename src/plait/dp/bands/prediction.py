"""Adaptive linear prediction of a sample from its neighbours in its own band and from bands before it.

CCSDS 123.0-B-1 and -2, section 4, with the quantiser of near-lossless streams. Sample values count from the
middle of their range (s - s_mid), of which every residual is the same; so the middle is 0. The neighbours of
a sample in its own band are called after the compass, ``wz`` is the western one in the band before.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.compile import by_type, shared
from plait.lang.lanes import (
    equal,
    greater,
    maximum,
    minimum,
    quotient,
    select,
    splat,
)


@shared
def local_sum(kind: int, near: Any, wz: Any, first_row: Any, first: Any, last: Any) -> Any:
    """The local sum; `near` is (w, nw, n, ne), the masks tell the first row and the ends of a row.

    `kind` is 0 for wide and 1 for narrow neighbour-oriented sums, 2 and 3 for column-oriented ones, as in the
    header of a stream. In the first row there is only the western neighbour: of this band or, narrow, `wz` of
    the band before.
    """
    w, nw, n, ne = near
    west = w if kind & 1 == 0 else wz
    if kind >= 2:
        one = select(first_row, west, n)
        return one + one + one + one
    if kind == 0:
        whole = select(first, n, w) + select(first, ne, nw) + n + select(last, n, ne)
    else:
        whole = select(first, ne, nw) + n + n + select(last, nw, ne)
    return select(first_row, west + west + west + west, whole)


class BandPrediction(NamedTuple):
    """Constants of the predictor (CCSDS 123.0-B), 64-bit integers.

    `least` and `largest` are limits of a sample, counted from the middle; `omega` is the weight resolution;
    `wrap` is 64 - R: what is wrapped to R bits is shifted by so much, to and fro; `columns` samples in a row;
    `interval` the binary logarithm of t_inc; `initial` and `final` are v_min and v_max; `scale` is D - Omega;
    `theta` the resolution of the sample representatives.
    """

    zero: Any
    one: Any
    least: Any
    largest: Any
    omega: Any
    wrap: Any
    columns: Any
    interval: Any
    initial: Any
    final: Any
    scale: Any
    theta: Any

    @staticmethod
    def of_fields(p: BandPrediction, fields: Any) -> Any:
        return BandPrediction(*fields)

    @staticmethod
    def in_lanes(p: BandPrediction, lanes: Any, value: Any) -> Any:
        return splat(lanes, value)

    @staticmethod
    def no_sum(p: BandPrediction) -> Any:
        return p.zero

    @staticmethod
    def plus_product(p: BandPrediction, dot: Any, difference: Any, weight: Any) -> Any:
        return dot + difference * weight

    @staticmethod
    def predicted(p: BandPrediction, dot: Any, sigma: Any) -> Any:
        whole = dot + (sigma << p.omega)
        wrapped = (whole << p.wrap) >> p.wrap
        half = (p.one + p.one) << p.omega
        low = p.least << (p.omega + p.one + p.one)
        high = (p.largest << (p.omega + p.one + p.one)) + half
        return minimum(maximum(wrapped + half, low), high)

    @staticmethod
    def doubled(p: BandPrediction, high: Any) -> Any:
        return high >> (p.omega + p.one)

    @staticmethod
    def mapped(p: BandPrediction, sample: Any, double: Any) -> Any:
        base = double >> p.one
        return folded(p, sample - base, double, minimum(base - p.least, p.largest - base))

    @staticmethod
    def folded(p: BandPrediction, rest: Any, double: Any, theta: Any) -> Any:
        size = maximum(rest, p.zero - rest)
        turned = select(equal(double & p.one, p.zero), rest, p.zero - rest)
        small = size + size - select(greater(p.zero, turned), p.one, p.zero)
        return select(greater(size, theta), size + theta, small)

    @staticmethod
    def unmapped(p: BandPrediction, residual: Any, double: Any) -> Any:
        base = double >> p.one
        theta = minimum(base - p.least, p.largest - base)
        return base + unfolded(p, residual, double, theta)

    @staticmethod
    def unfolded(p: BandPrediction, residual: Any, double: Any, theta: Any) -> Any:
        base = double >> p.one
        half = (residual + p.one) >> p.one
        small = select(equal(residual & p.one, double & p.one), half, p.zero - half)
        far = residual - theta
        large = select(greater(p.largest - base, base - p.least), far, p.zero - far)
        return select(greater(residual, theta + theta), large, small)

    @staticmethod
    def error_limit(p: BandPrediction, double: Any, limits: Any) -> Any:
        absolute, relative, least, middle = limits
        value = (double >> p.one) + middle
        size = maximum(value, p.zero - value)
        return maximum(minimum(absolute, (relative * size) >> (p.scale + p.omega)), least)

    @staticmethod
    def quantised(p: BandPrediction, sample: Any, double: Any, limit: Any) -> Any:
        rest = sample - (double >> p.one)
        steps = quotient(maximum(rest, p.zero - rest) + limit, limit + limit + p.one)
        return select(greater(p.zero, rest), p.zero - steps, steps)

    @staticmethod
    def restored(p: BandPrediction, index: Any, double: Any, limit: Any) -> Any:
        centre = (double >> p.one) + index * (limit + limit + p.one)
        return minimum(maximum(centre, p.least), p.largest)

    @staticmethod
    def steps_to_end(p: BandPrediction, double: Any, limit: Any) -> Any:
        base = double >> p.one
        return quotient(minimum(base - p.least, p.largest - base) + limit, limit + limit + p.one)

    @staticmethod
    def learning_shift(p: BandPrediction, t: Any) -> Any:
        steps = ((t - p.columns) >> p.interval) + p.initial
        return minimum(maximum(steps, p.initial), p.final) + p.scale

    @staticmethod
    def learned(p: BandPrediction, weight: Any, difference: Any, falls: Any, shift: Any) -> Any:
        signed = select(falls, p.zero - difference, difference)
        left = maximum(p.zero - shift, p.zero)
        scaled = (signed << left) >> maximum(shift, p.zero)
        bound = p.one << (p.omega + p.one + p.one)
        moved = weight + ((scaled + p.one) >> p.one)
        return minimum(maximum(moved, p.zero - bound), bound - p.one)

    @staticmethod
    def representative(p: BandPrediction, sample: Any, high: Any, phi: Any, offset: Any) -> Any:
        two = p.one + p.one
        centre = (sample << (p.omega + two)) - (offset << (p.omega + two - p.theta))
        rest = ((p.one << p.theta) - phi) * centre
        pulled = rest + phi * high - phi * (two << p.omega)
        return ((pulled >> (p.omega + p.theta + p.one)) + p.one) >> p.one


@by_type
def of_fields(p: Any, fields: Any) -> Any:
    """The same kind of constants with other values."""


@by_type
def in_lanes(p: Any, lanes: Any, value: Any) -> Any:
    """A number in every lane."""


@shared
def of_lanes(p: Any, lanes: Any) -> Any:
    """The constants in every lane."""
    fields = (
        in_lanes(p, lanes, p.zero),
        in_lanes(p, lanes, p.one),
        in_lanes(p, lanes, p.least),
        in_lanes(p, lanes, p.largest),
        in_lanes(p, lanes, p.omega),
        in_lanes(p, lanes, p.wrap),
        in_lanes(p, lanes, p.columns),
        in_lanes(p, lanes, p.interval),
        in_lanes(p, lanes, p.initial),
        in_lanes(p, lanes, p.final),
        in_lanes(p, lanes, p.scale),
        in_lanes(p, lanes, p.theta),
    )
    return of_fields(p, fields)


@by_type
def no_sum(p: Any) -> Any:
    """A weighted sum of nothing."""


@by_type
def plus_product(p: Any, dot: Any, difference: Any, weight: Any) -> Any:
    """A weighted sum with one more product."""


@by_type
def predicted(p: Any, dot: Any, sigma: Any) -> Any:
    """High-resolution prediction, from the weighted sum of the differences and the local sum."""


@by_type
def doubled(p: Any, high: Any) -> Any:
    """Double-resolution prediction of a high-resolution one."""


@by_type
def mapped(p: Any, sample: Any, double: Any) -> Any:
    """Mapped residual of a sample, from its double-resolution prediction."""


@by_type
def unmapped(p: Any, residual: Any, double: Any) -> Any:
    """Sample of a mapped residual, from its double-resolution prediction."""


@by_type
def folded(p: Any, rest: Any, double: Any, theta: Any) -> Any:
    """A residual or quantiser index as a number from 0; `theta` is how many lie on the shorter side."""


@by_type
def unfolded(p: Any, residual: Any, double: Any, theta: Any) -> Any:
    """The inverse of `folded`."""


@by_type
def error_limit(p: Any, double: Any, limits: Any) -> Any:
    """The largest error of a sample, m.

    `limits` are the absolute and the relative one; the least that both together may give, which is the
    absolute one where it stands alone; and what samples count from the middle from.
    """


@by_type
def quantised(p: Any, sample: Any, double: Any, limit: Any) -> Any:
    """The quantiser index of a sample."""


@by_type
def restored(p: Any, index: Any, double: Any, limit: Any) -> Any:
    """The sample that a quantiser index stands for: the centre of its bin, within the range."""


@by_type
def steps_to_end(p: Any, double: Any, limit: Any) -> Any:
    """Quantiser indices on the shorter side of a prediction."""


@by_type
def learning_shift(p: Any, t: Any) -> Any:
    """Exponent by which differences are scaled to change weights, at the t-th sample of a band."""


@by_type
def learned(p: Any, weight: Any, difference: Any, falls: Any, shift: Any) -> Any:
    """A weight after a sample; `falls` masks where the sample is less than predicted."""


@by_type
def representative(p: Any, sample: Any, high: Any, phi: Any, offset: Any) -> Any:
    """What stands for a sample in sums and differences, from the high-resolution prediction and phi.

    `offset` is sgn(q) m psi, 0 in lossless streams.
    """
