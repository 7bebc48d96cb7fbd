"""Messages between bits and checks of a code: algebras of what they are, and the step of one check.

A message of a check on a bit is what all its other bits say together. With `Parities` messages are pairs of
probabilities, of 0 and of 1, and decoding is sum-product; with `SignedLeast` they are whole numbers, the
logarithm of the ratio of both in some unit, and decoding is min-sum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.compile import by_type, implemented_in, shared
from plait.lang.lanes import (
    add_saturating,
    greater,
    load,
    maximum,
    minimum,
    select,
    splat,
    store,
    subtract_saturating,
)


class SignedLeast(NamedTuple):
    """Sign of the product, least magnitude: lanes of integers from -most to most; `zero` says nothing.

    A bit says at most `bound` to a check, so that sums of several messages are seldom held at `most`: what is
    held, and one of its messages taken out, is no longer what the others say. `part` is what a message is
    made smaller by: value - (value >> part).
    """

    zero: Any
    most: Any
    bound: Any
    part: Any

    @staticmethod
    def algebra_in_lanes(alg: SignedLeast, lanes: Any) -> Any:
        bound, part = splat(lanes, alg.bound), splat(lanes, alg.part)
        return SignedLeast(splat(lanes, alg.zero), splat(lanes, alg.most), bound, part)

    @staticmethod
    def fetch(alg: SignedLeast, place: Any, rows: Any, k: Any) -> Any:
        return load(place[0], rows, k, place[1])

    @staticmethod
    def put(alg: SignedLeast, place: Any, rows: Any, k: Any, value: Any) -> None:
        store(place[0], rows, k, place[1], value)

    @staticmethod
    def certain(alg: SignedLeast) -> Any:
        return alg.most

    @staticmethod
    def both(alg: SignedLeast, a: Any, b: Any) -> Any:
        least = minimum(maximum(a, alg.zero - a), maximum(b, alg.zero - b))
        return select(greater(alg.zero, a ^ b), alg.zero - least, least)

    @staticmethod
    def bounded(alg: SignedLeast, value: Any) -> Any:
        return minimum(maximum(value, alg.zero - alg.bound), alg.bound)

    @staticmethod
    def told(alg: SignedLeast, value: Any) -> Any:
        size = maximum(value, alg.zero - value)
        smaller = size - (size >> alg.part)
        return select(greater(alg.zero, value), alg.zero - smaller, smaller)

    @staticmethod
    def added(alg: SignedLeast, a: Any, b: Any) -> Any:
        return minimum(maximum(add_saturating(a, b), alg.zero - alg.most), alg.most)

    @staticmethod
    def without(alg: SignedLeast, a: Any, b: Any) -> Any:
        return minimum(maximum(subtract_saturating(a, b), alg.zero - alg.most), alg.most)

    @staticmethod
    def is_one(alg: SignedLeast, value: Any) -> Any:
        return greater(alg.zero, value)


class Parities(NamedTuple):
    """Pairs of probabilities, of 0 and of 1, whose sum is one; at least `least`: lanes of floats.

    Nothing is subtracted, so that small probabilities keep all their digits. A bit says at least `bound` of
    either to a check, for the reason of `SignedLeast`, and so that no product is too small for its type.
    """

    zero: Any
    one: Any
    least: Any
    bound: Any

    @staticmethod
    def algebra_in_lanes(alg: Parities, lanes: Any) -> Any:
        least, bound = splat(lanes, alg.least), splat(lanes, alg.bound)
        return Parities(splat(lanes, alg.zero), splat(lanes, alg.one), least, bound)

    @staticmethod
    def fetch(alg: Parities, place: Any, rows: Any, k: Any) -> Any:
        return load(place[0], rows, 2 * k, place[1]), load(place[0], rows, 2 * k + 1, place[1])

    @staticmethod
    def put(alg: Parities, place: Any, rows: Any, k: Any, value: Any) -> None:
        store(place[0], rows, 2 * k, place[1], value[0])
        store(place[0], rows, 2 * k + 1, place[1], value[1])

    @staticmethod
    def certain(alg: Parities) -> Any:
        return alg.one, alg.zero

    @staticmethod
    def both(alg: Parities, a: Any, b: Any) -> Any:
        return a[0] * b[0] + a[1] * b[1], a[0] * b[1] + a[1] * b[0]

    @staticmethod
    def bounded(alg: Parities, value: Any) -> Any:
        return maximum(value[0], alg.bound), maximum(value[1], alg.bound)

    @staticmethod
    def told(alg: Parities, value: Any) -> Any:
        return value

    @staticmethod
    def added(alg: Parities, a: Any, b: Any) -> Any:
        zero, one = maximum(a[0] * b[0], alg.least), maximum(a[1] * b[1], alg.least)
        scale = ratio(alg.one, zero + one)
        return zero * scale, one * scale

    @staticmethod
    def without(alg: Parities, a: Any, b: Any) -> Any:
        # a0 / b0 and a1 / b1, both times b0 b1.
        return added(alg, a, (b[1], b[0]))

    @staticmethod
    def is_one(alg: Parities, value: Any) -> Any:
        return greater(value[1], value[0])


@by_type
def fetch(alg: Any, place: Any, rows: Any, k: Any) -> Any:
    """Message k of each lane; `place`: the lanes, and the first of them in the rows."""


@by_type
def put(alg: Any, place: Any, rows: Any, k: Any, value: Any) -> None:
    """Write message k of each lane."""


@by_type
def certain(alg: Any) -> Any:
    """A bit that is surely 0: it changes no parity."""


@by_type
def both(alg: Any, a: Any, b: Any) -> Any:
    """The parity of two bits."""


@by_type
def bounded(alg: Any, value: Any) -> Any:
    """What a bit says to a check."""


@by_type
def told(alg: Any, value: Any) -> Any:
    """What a check tells of a parity."""


@by_type
def added(alg: Any, a: Any, b: Any) -> Any:
    """What two messages say together of one bit."""


@by_type
def without(alg: Any, a: Any, b: Any) -> Any:
    """What is left of `a`, to which `b` had been added."""


@by_type
def is_one(alg: Any, value: Any) -> Any:
    """Whether a bit is 1, where it is more probable."""


def ratio(a: Any, b: Any) -> Any:
    """``a / b``, of which b is not 0."""
    return a / b


@shared
def parity_step(
    alg: Any, place: Any, check: Any, said: Any, sums: Any, messages: Any, own: Any, later: Any, layered: Any
) -> None:
    """Renew the messages of one check, `check` its bits and number of its first message.

    `said` has what all say of each bit, with the check's own messages of before; new ones are added to
    `sums`, those of the next step. `layered`: both are the same, and old messages are taken out. `own` and
    `later` are memory. All but one: what comes before and what comes after, from either end.
    """
    bits, first, last = check
    after = certain(alg)
    for k in range(last - first - 1, -1, -1):
        value = without(alg, fetch(alg, place, said, bits[first + k]), fetch(alg, place, messages, first + k))
        put(alg, place, own, k, value)
        put(alg, place, later, k, after)
        after = both(alg, after, bounded(alg, value))
    before = certain(alg)
    for k in range(last - first):
        value = fetch(alg, place, own, k)
        message = told(alg, both(alg, before, fetch(alg, place, later, k)))
        before = both(alg, before, bounded(alg, value))
        put(alg, place, messages, first + k, message)
        bit = bits[first + k]
        rest = value if layered else fetch(alg, place, sums, bit)
        put(alg, place, sums, bit, added(alg, rest, message))


implemented_in("plait.ldpc.division")
