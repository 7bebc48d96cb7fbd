"""Decoding: one word of a code in each lane, all checks one after the other.

A message of a check on a bit is what all its other bits say together. With `Parities` messages are pairs of
probabilities, of 0 and of 1, and decoding is sum-product; with `SignedLeast` they are whole numbers, the
logarithm of the ratio of both in some unit, and decoding is min-sum.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.devices.target import Problem, Target, over_threads, resolve
from plait.errors import InvalidInput, one_of, whole
from plait.lang.algebras import algebra_in_lanes
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import (
    add_saturating,
    equal,
    greater,
    host_lanes,
    lanes_of,
    load,
    mask_bits,
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
from plait.ldpc.codes import Code

Method = Literal["sum-product", "min-sum"]
#: Logarithms of the least probability of sums, and of what a bit says, by the type of numbers.
_LIMITS: Final[dict[Any, tuple[float, float]]] = {np.float32: (64.0, 20.0), np.float64: (600.0, 40.0)}
#: Bits that are worth the start of a GPU which was not asked for by name.
WORTH: Final = 1 << 26
#: Steps of min-sum in a unit of the logarithm, most of them, and most that a bit says.
UNITS, MOST, BOUND = 4, 127, 63


class Decoded(NamedTuple):
    """Words that were decoded.

    Attributes
    ----------
    bits
        Bits as they were sent, uint8, shape (words, n); where no word of the code was found, the last guess.
    information
        Bits of information, uint8, shape (words, k).
    found
        Whether all checks hold, bool, shape (words,).
    iterations
        After how many, int64, shape (words,).
    """

    bits: NDArray[np.uint8]
    information: NDArray[np.uint8]
    found: NDArray[np.bool_]
    iterations: NDArray[np.int64]


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
    {SignedLeast: lambda alg, a: greater(alg.zero, a), Parities: lambda alg, a: greater(a[1], a[0])}
)
#: Renew the messages of one check, `check` the bits of all, its first one and the end.
#:
#: The first of `sums` has what all say of each bit, with the check's own messages of before; new ones are
#: added to the second, those of the next step. `layered`: both are the same, and old messages are taken out.
#: `memory`: two of the longest check.
parity_step: Final[Any] = by_type_of({SignedLeast: _step_of_numbers, Parities: _step_of_pairs})


@shared
def _wrong(word: Any, bits: Any, starts: Any, done: Any) -> Any:
    """Lanes in which some check fails, but for those that are done; it looks until all are."""
    wrong = np.int64(0)
    for m in range(starts.size - 1):
        parity = np.int64(0)
        for k in range(starts[m], starts[m + 1]):
            parity ^= word[bits[k]]
        wrong |= parity
        if wrong | done == -1:
            break
    return wrong


@shared
def _settle(words: Any, counts: Any, new: Any, count: Any) -> None:
    """Keep the bits of lanes, and after how many iterations they were found."""
    for n in range(words.shape[1] if new != 0 else 0):
        words[1, n] |= words[0, n] & new
    for lane in range(counts.size):
        if new >> lane & 1:
            counts[lane] = count


@kernel
def decode_group(
    place: Any, algebra: Any, code: Any, given: Any, memory: Any, limits: Any, words: Any, found: Any
) -> Any:
    """Decode words side by side: `words` int64 (2, bits), their bits by lanes. Returns which are of the code.

    `code`: bits and starts of its checks. `memory`: the message of each bit that was received, which `given`
    has before (`receive`), sums, sums of before, messages of the checks, and two of the longest one.
    `limits`: iterations, whether checks use what others have said in the same one, and the lanes in use. A
    lane that has a word of the code stays as it is. `found`: iterations of each lane, int64, and bits to
    fill, uint8 (words, bits).
    """
    (bits, starts), (counts, out) = code, found
    prior, sums, said, messages, own, later = memory
    iterations, layered, used = limits
    alg = algebra_in_lanes(algebra, place[0])
    size, done, count = words.shape[1], ~used, 0
    receive(alg, place[0], given, prior)
    for n in range(size):
        put(alg, place, sums, n, fetch(alg, place, prior, n))
    while True:
        for n in range(size):
            words[0, n] = mask_bits(is_one(alg, fetch(alg, place, sums, n)))
        wrong = _wrong(words[0], bits, starts, done)
        # Lanes that are done keep what they had.
        new = ~done if count == iterations else ~(wrong | done)
        _settle(words, counts, new, count)
        if done | new == -1:
            break
        done, count = done | new, count + 1
        if not layered:
            said, sums = sums, said
            for n in range(size):
                put(alg, place, sums, n, fetch(alg, place, prior, n))
        for m in range(starts.size - 1):
            check, both = (bits, starts[m], starts[m + 1]), (sums if layered else said, sums)
            parity_step(alg, place, check, both, messages, (own, later), layered)
    for word in range(out.shape[0]):
        for n in range(size):
            out[word, n] = np.uint8(words[1, n] >> word & 1)
    return ~(wrong & ~done)


class DecodeBatch(NamedTuple):
    """Logarithms of ratios, (words, columns), and how to decode them; `lanes` 0: those of this processor."""

    code: Code
    ratios: NDArray[Any]
    method: Method
    layered: bool
    iterations: int
    kind: Any
    lanes: int = 0


@kernel
def round_to_units(ratios: Any, units: Any) -> None:
    """Logarithms of ratios (words, columns) as min-sum has them, int8; there may be more rows and columns."""
    for word in range(ratios.shape[0]):
        for n in range(ratios.shape[1]):
            value = np.rint(np.float32(ratios[word, n]) * np.float32(UNITS))
            units[word, n] = np.int8(min(max(value, np.float32(-MOST)), np.float32(MOST)))


def to_units(ratios: NDArray[Any], units: NDArray[np.int8]) -> NDArray[np.int8]:
    """`units` with logarithms of ratios as min-sum has them; int8 are in its units already."""
    if ratios.dtype == np.int8:
        np.maximum(ratios, np.int8(-MOST), out=units[: len(ratios), : ratios.shape[1]])
    else:
        good = ratios.dtype in (np.float32, np.float64) and ratios.flags.carray
        round_to_units(ratios if good else np.array(ratios, np.float64, order="C"), units)
    return units


def messages_of(batch: DecodeBatch, ratios: NDArray[Any], prior: NDArray[Any], room: NDArray[Any]) -> Any:
    """The algebra, and the messages of logarithms of ratios for `receive`, which has them in `prior`."""
    (words, columns), width, kind = ratios.shape, prior.shape[1], batch.kind
    if batch.method == "min-sum":
        units = to_units(ratios, room.reshape(width, -1))
        return SignedLeast(*map(kind, (0, MOST, BOUND, 2))), (units, np.arange(width))
    sums, said = _LIMITS[kind]
    pairs = prior.reshape(-1, 2, width)
    pairs[:] = 0.5
    odds = np.clip(ratios.astype(np.float64), -said, said)
    np.exp(np.negative(odds, out=odds), out=odds)
    zero = 1 / (1 + odds)
    pairs[:columns, 0, :words], pairs[:columns, 1, :words] = zero.T, (odds * zero).T
    return Parities(*map(kind, (0, 1, math.exp(-sums), math.exp(-said)))), ()


#: Bits, iterations, and whether they are words of the code.
Found = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]


def _run(run: Any, batch: DecodeBatch, target: Target) -> Found:
    code, count, kind = batch.code, len(batch.ratios), np.dtype(batch.kind)
    width = batch.lanes or host_lanes(8 * kind.itemsize).width
    if batch.method == "min-sum" and not batch.lanes and count > width == 32:
        # Rows that fill lines of caches.
        width = 64
    bits, iterations = np.empty((count, code.size), np.uint8), np.empty(count, np.int64)
    found, longest = np.empty(count, bool), int(np.diff(code.starts).max(initial=1))
    graph, place = (code.bits, code.starts), (lanes_of(width), np.int64(0))
    rows, nothing = (1, 0) if batch.method == "min-sum" else (2, 0.5)
    sizes = [code.size + -code.size % width] * 3 + [code.bits.size, longest, longest]
    ends = [rows * size for size in itertools.accumulate(sizes, initial=0)]
    # Memory is used again: new pages take as long as what is written to them.
    spare: list[tuple[NDArray[Any], NDArray[np.int64]]] = [
        (np.empty(ends[-1] * width * kind.itemsize + 64, np.uint8), np.empty((2, code.size), np.int64))
        for _ in range(min(target.threads, -(-count // width)))
    ]

    def one(first: int) -> None:
        last, (room, words) = min(first + width, count), spare.pop()
        # Rows that begin where lines of caches do: others cost two of them each.
        begin = -room.ctypes.data % 64
        lanes = room[begin : begin + len(room) - 64].view(kind).reshape(-1, width)
        memory = tuple(lanes[begin:end] for begin, end in itertools.pairwise(ends))
        algebra, given = messages_of(batch, batch.ratios[first:last], memory[0], memory[2])
        memory[3][:], words[1] = nothing, 0
        used = np.int64(2 ** (last - first) - 1 if last - first < 64 else -1)
        limits = np.int64(batch.iterations), batch.layered, used
        counts = np.zeros(width, np.int64)
        good = run(place, algebra, graph, given, memory, limits, words, (counts, bits[first:last]))
        iterations[first:last] = counts[: last - first]
        found[first:last] = np.int64(good) >> np.arange(last - first) & 1
        spare.append((room, words))

    over_threads(target.threads, range(0, count, width), one)
    return bits, iterations, found


_DECODING: Final = Problem.of(
    "words of a parity-check code",
    _run,
    decode_group,
    cuda="plait.ldpc.gpu_decoding:decode_batch",
    worth=lambda batch: batch.ratios.size >= WORTH,
)


def decode(
    ratios: ArrayLike,
    code: Code,
    *,
    iterations: int = 50,
    method: Method = "sum-product",
    schedule: Literal["flooding", "layered"] = "layered",
    dtype: Literal["float32", "float64"] = "float32",
    device: str = "auto",
    threads: int | None = None,
) -> Decoded:
    """Find words of a code that were sent.

    Parameters
    ----------
    ratios
        For each bit as sent, the natural logarithm of how much more probable 0 is than 1, shape (words, n);
        for min-sum also int8, in quarters.
    code
        The code.
    iterations
        Most iterations; a word is done as soon as all its checks hold.
    method
        ``sum-product``, or ``min-sum``: 8 bits, in quarters, messages of checks times 3/4.
    schedule
        ``flooding``: checks use what was said in the iteration before; ``layered``: what was said last,
        which takes about half the iterations.
    dtype
        Numbers of sum-product.
    device
        ``auto``, ``cpu``, ``cuda``, ...; answers are the same on all. GPUs do min-sum, the CPU the rest.
    threads
        Threads of the CPU; answers depend neither on them nor on other words.

    Returns
    -------
    Decoded
        Bits, whether they are a word of the code, and iterations.

    Raises
    ------
    InvalidInput
        If the shape is another one, a ratio is no number, or a parameter is none of those said.
    """
    one_of("method", method, ("sum-product", "min-sum"))
    one_of("schedule", schedule, ("flooding", "layered"))
    one_of("dtype", dtype, ("float32", "float64"))
    iterations = whole("iterations", iterations, 0, 1 << 20)
    given = np.asarray(ratios)
    if given.dtype.kind not in "fiu":
        raise InvalidInput("ratios", found=f"an array of {given.dtype}", expected="numbers")
    if given.ndim != 2 or given.shape[1] != code.n:
        raise InvalidInput("ratios", found=given.shape, expected=f"(words, {code.n:,}), for {code.name}")
    if given.dtype.kind == "f" and (where := np.argwhere(np.isnan(given))).size:
        told = "no number in word {}, bit {}".format(*where[0])
        raise InvalidInput("ratios", found=told, expected="numbers")
    columns = given
    if code.n != code.size:
        columns = np.zeros((len(given), code.size + 1), given.dtype)
        columns[:, code.sent] = given
        columns[:, code.known] = 127
        columns = columns[:, :-1]
    kind: Any = np.int8 if method == "min-sum" else np.dtype(dtype).type
    batch = DecodeBatch(code, columns, method, schedule == "layered", iterations, kind)
    bits, counts, found = resolve(device, threads).launch(_DECODING, batch)
    information = bits[:, code.information]
    if code.n != code.size:
        bits = np.hstack([bits, np.zeros((len(bits), 1), np.uint8)])[:, code.sent]
    return Decoded(bits, information, found, counts)
