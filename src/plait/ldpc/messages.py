"""Messages between bits and checks of a code: algebras of what they are, and what a check makes of them.

A message of a check on a bit is what all its other bits say together. With `Parities` messages are pairs of
probabilities, of 0 and of 1, and decoding is sum-product; with `SignedLeast` they are whole numbers, the
logarithm of the ratio of both in some unit, and decoding is min-sum.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import (
    add_saturating,
    equal,
    greater,
    load,
    maximum,
    minimum,
    ratio,
    select,
    splat,
    store,
    store_turned,
    subtract_saturating,
    width_of,
)


@shared
def _held(alg: Any, value: Any) -> Any:
    # Types end at `most`, but one below -most.
    return maximum(value, alg.zero - alg.most)


class SignedLeast(NamedTuple):
    """Sign of the product, least magnitude: lanes of integers up to `most`, their last; `zero` says nothing.

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


@shared
def parity(a: Any, b: Any) -> Any:
    """Probabilities of the parity of two bits."""
    return a[0] * b[0] + a[1] * b[1], a[0] * b[1] + a[1] * b[0]


@shared
def both(alg: Any, a: Any, b: Any) -> Any:
    """The parity of some bits and of another one, within what it says to a check."""
    return parity(a, (maximum(b[0], alg.bound), maximum(b[1], alg.bound)))


def _number(alg: Any, place: Any, rows: Any, k: Any) -> Any:
    return load(place[0], rows, k, place[1])


def _pair(alg: Any, place: Any, rows: Any, k: Any) -> Any:
    return load(place[0], rows, 2 * k, place[1]), load(place[0], rows, 2 * k + 1, place[1])


def _put_number(alg: Any, place: Any, rows: Any, k: Any, value: Any) -> None:
    store(place[0], rows, k, place[1], value)


def _put_pair(alg: Any, place: Any, rows: Any, k: Any, value: Any) -> None:
    store(place[0], rows, 2 * k, place[1], value[0])
    store(place[0], rows, 2 * k + 1, place[1], value[1])


def _turned(alg: Any, lanes: Any, given: Any, prior: Any) -> None:
    for n in range(0, prior.shape[0], width_of(lanes)):
        store_turned(lanes, given[0], given[1], n, prior, n, 0)


def _joined(alg: Any, a: Any, b: Any) -> Any:
    zero, one = maximum(a[0] * b[0], alg.least), maximum(a[1] * b[1], alg.least)
    scale = ratio(alg.one, zero + one)
    return zero * scale, one * scale


def _step_of_numbers(
    alg: Any, place: Any, check: Any, sums: Any, messages: Any, memory: Any, layered: Any
) -> None:
    # The others of a bit have the least magnitude, or the second where the least is its own.
    (bits, first, last), (said, sums), (own, _) = check, sums, memory
    least = alg.bound if last - first > 1 else alg.most
    second, signs = least, alg.zero
    for k in range(first, last):
        value = without(alg, fetch(alg, place, said, bits[k]), fetch(alg, place, messages, k))
        put(alg, place, own, k - first, value)
        # Compilers know that value - value is 0.
        size = maximum(value, value - value - value)
        second, least = minimum(second, maximum(least, size)), minimum(least, size)
        signs = signs ^ value
    one, two = least - (least >> alg.part), second - (second >> alg.part)
    for k in range(first, last):
        value = fetch(alg, place, own, k - first)
        nothing = value - value
        told = select(equal(maximum(value, nothing - value), least), two, one)
        message = select(greater(nothing, signs ^ value), nothing - told, told)
        put(alg, place, messages, k, message)
        rest = value if layered else fetch(alg, place, sums, bits[k])
        put(alg, place, sums, bits[k], added(alg, rest, message))


def _step_of_pairs(
    alg: Any, place: Any, check: Any, sums: Any, messages: Any, memory: Any, layered: Any
) -> None:
    # All but one: what comes before and what comes after, from either end.
    (bits, first, last), (said, sums), (own, later) = check, sums, memory
    # A bit that is surely 0 changes no parity.
    before = after = alg.one, alg.zero
    for k in range(last - 1, first - 1, -1):
        value = without(alg, fetch(alg, place, said, bits[k]), fetch(alg, place, messages, k))
        put(alg, place, own, k - first, value)
        put(alg, place, later, k - first, after)
        after = both(alg, after, value)
    for k in range(first, last):
        value = fetch(alg, place, own, k - first)
        # In this order, on which the last bit depends.
        message = parity(before, fetch(alg, place, later, k - first))
        before = both(alg, before, value)
        put(alg, place, messages, k, message)
        rest = value if layered else fetch(alg, place, sums, bits[k])
        put(alg, place, sums, bits[k], added(alg, rest, message))


#: Message k of each lane, read and written; `place`: the lanes, and the first of them in the rows.
fetch: Final[Any] = by_type_of({SignedLeast: _number, Parities: _pair})
put: Final[Any] = by_type_of({SignedLeast: _put_number, Parities: _put_pair})
#: Messages from words in rows, int8 (lanes, columns), and int64 numbers of the rows; pairs are there before.
receive: Final[Any] = by_type_of({SignedLeast: _turned, Parities: lambda alg, lanes, given, prior: None})
#: What two messages say together of one bit.
added: Final[Any] = by_type_of(
    {SignedLeast: lambda alg, a, b: _held(alg, add_saturating(a, b)), Parities: _joined}
)
#: What is left of a message to which another one had been added: a0 / b0 and a1 / b1, both times b0 b1.
without: Final[Any] = by_type_of(
    {
        SignedLeast: lambda alg, a, b: _held(alg, subtract_saturating(a, b)),
        Parities: lambda alg, a, b: added(alg, a, (b[1], b[0])),
    }
)
#: Whether a bit is 1, where it is more probable.
is_one: Final[Any] = by_type_of(
    {
        SignedLeast: lambda alg, value: greater(alg.zero, value),
        Parities: lambda alg, value: greater(value[1], value[0]),
    }
)
#: Renew the messages of one check, `check` the bits of all, its first one and the end.
#:
#: The first of `sums` has what all say of each bit, with the check's own messages of before; new ones are
#: added to the second, those of the next step. `layered`: both are the same, and old messages are taken out.
#: `memory`: two of the longest check.
parity_step: Final[Any] = by_type_of({SignedLeast: _step_of_numbers, Parities: _step_of_pairs})
