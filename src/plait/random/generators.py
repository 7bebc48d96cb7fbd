"""Generators of which any place can be reached at once.

MRG32k3a: L'Ecuyer 1999, *Operations Research* 47: 159-164. MT19937, the Mersenne Twister: Matsumoto and
Nishimura 1998, *ACM TOMACS* 8: 3-30. Sobol's sequence, with direction numbers of Joe and Kuo 2008, *SIAM
J. Sci. Comput.* 30: 2635-2654.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.devices.target import Target, over_threads, stretches
from plait.errors import InvalidInput, whole
from plait.lang.algebras import choice, extend
from plait.lang.compile import kernel, shared
from plait.lang.lanes import greater, host_lanes, lanes_of, load, select, splat, store, width_of
from plait.random.draws import Draws, Generator, Residue, Unit, problem, sample

#: Numbers for which a thread is worth its start: of MRG32k3a, of MT19937, which jumps to them, of Sobol's.
_STRETCHES: Final = 1 << 18, 1 << 24, 1 << 20


@functools.cache
def tables() -> dict[str, NDArray[np.uint32]]:
    """What comes with plait: polynomials, first direction numbers, and the recurrence of MT19937."""
    with Path(__file__).with_name("data").joinpath("recurrences.npz").open("rb") as file:
        return dict(np.load(file, allow_pickle=False))


class Modular(NamedTuple):
    """Residues: sums and products modulo a number. Exact on Python integers, and below 2^32 on uint64."""

    zero: Any
    one: Any
    modulus: Any

    @staticmethod
    def choice(alg: Modular, a: Any, b: Any) -> Any:
        return (a + b) % alg.modulus

    @staticmethod
    def extend(alg: Modular, a: Any, b: Any) -> Any:
        return a * b % alg.modulus


def matrix_product(alg: Any, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """The matrix that does what `b` does and then `a`, of numbers that hold the products."""
    return functools.reduce(partial(choice, alg), (extend(alg, a[:, k, None], b[k]) for k in range(len(b))))


def power(alg: Any, step: NDArray[Any], times: int) -> NDArray[Any]:
    """The matrix that does so many steps at once."""
    found: NDArray[Any] = np.where(np.eye(len(step), dtype=bool), alg.one, alg.zero).astype(step.dtype)
    for bit in f"{times:b}":
        found = matrix_product(alg, found, found)
        found = matrix_product(alg, step, found) if bit == "1" else found
    return found


FIRST, SECOND = 4294967087, 4294944443
_FIRST, _SECOND, _WHOLE = float(FIRST), float(SECOND), 1.5 * 2**52
_RINGS: Final = Modular(0, 1, FIRST), Modular(0, 1, SECOND)
#: One step of either half, on the three last values, oldest first.
_STEPS: Final = (
    np.array([[0, 1, 0], [0, 0, 1], [FIRST - 810728, 1403580, 0]], object),
    np.array([[0, 1, 0], [0, 0, 1], [SECOND - 1370589, 0, 527612]], object),
)
#: Words of a lane that are made before they are written one behind the other.
TILE: Final = 64


@shared
def _remainder(lanes: Any, value: Any, modulus: Any, inverse: Any) -> Any:
    """A residue of a whole number below 2^53, no further from 0 than half the modulus and 1.

    All products are whole numbers below 2^53, so that floats hold them; which of two quotients is found
    does not matter. Adding 1.5 * 2^52 and taking it away again rounds to a whole number.
    """
    whole = splat(lanes, _WHOLE)
    quotient = value * splat(lanes, inverse) + whole - whole
    return value - quotient * splat(lanes, modulus)


@shared
def step(lanes: Any, state: Any) -> Any:
    """The next state, and the word of it: 1 to m1, which stands for 0."""
    p0, p1, p2, q0, q1, q2 = state
    zero, first, second = splat(lanes, 0.0), splat(lanes, _FIRST), splat(lanes, _SECOND)
    p = splat(lanes, 1403580.0) * p1 - splat(lanes, 810728.0) * p0
    p = _remainder(lanes, p, _FIRST, 1 / _FIRST)
    q = splat(lanes, 527612.0) * q2 - splat(lanes, 1370589.0) * q0
    q = _remainder(lanes, q, _SECOND, 1 / _SECOND)
    word = select(greater(zero, p), p + first, p) - select(greater(zero, q), q + second, q)
    return (p1, p2, p, q1, q2, q), select(greater(word, zero), word, word + first)


@kernel
def fill_lanes(lanes: Any, kind: Any, unit: Any, states: Any, steps: int, tile: Any, out: Any) -> None:
    """Fill `out`, of which every lane has so many steps one behind the other.

    `states` float64 (6, lanes) are those before each; `tile` float64 (1, TILE * lanes) is memory.
    """
    p = load(lanes, states, 0, 0), load(lanes, states, 1, 0), load(lanes, states, 2, 0)
    q = load(lanes, states, 3, 0), load(lanes, states, 4, 0), load(lanes, states, 5, 0)
    state = (p[0], p[1], p[2], q[0], q[1], q[2])
    for first in range(0, steps, TILE):
        for t in range(TILE):
            state, word = step(lanes, state)
            store(lanes, tile, 0, t * width_of(lanes), word)
        for lane in range(width_of(lanes)):
            start = lane * steps + first
            # Slices: their places are seen to be no negative ones; and words a known distance apart.
            words, part = tile[0][lane:], out[start : start + min(TILE, steps - first)]
            for t in range(part.size):
                part[t] = sample(kind, words[t * width_of(lanes)], unit)


@functools.lru_cache(64)
def _jump(half: int, count: int) -> NDArray[Any]:
    """So many steps of one half."""
    return power(_RINGS[half], _STEPS[half], count)


def states_of(state: Sequence[int], stride: int, count: int) -> NDArray[np.float64]:
    """States so many steps apart, float64 (6, count), from `state` on."""
    halves = []
    for half, ring in enumerate(_RINGS):
        found = np.array(state[3 * half :][:3], np.uint64)[:, None]
        while found.shape[1] < count:
            jump = _jump(half, stride * found.shape[1]).astype(np.uint64)
            found = np.hstack([found, matrix_product(ring, jump, found)])
        halves.append(found[:, :count])
    return np.concatenate(halves).astype(np.float64)


def skipped(state: Sequence[int], count: int) -> tuple[int, ...]:
    """The state so many steps later."""
    halves = np.array(state, object).reshape(2, 3, 1)
    found = [matrix_product(ring, _jump(k, count), halves[k]) for k, ring in enumerate(_RINGS)]
    return tuple(np.concatenate(found)[:, 0].tolist())


def _run_lanes(run: Any, batch: Draws, target: Target) -> None:
    lanes = lanes_of(2 * host_lanes(64).width)
    size = batch.out.size

    def one(stretch: tuple[int, int]) -> None:
        first, last = stretch
        steps = max(-(-(last - first) // lanes.width), TILE)
        states = states_of(skipped(batch.source, first), steps, lanes.width)
        tile = np.empty((1, TILE * lanes.width))
        run(lanes, batch.kind, batch.unit, states, steps, tile, batch.out[first:last])

    over_threads(target.threads, stretches(target.threads, size, _STRETCHES[0]), one)


class Mrg32k3a(Generator):
    """MRG32k3a: words 0 to 4294967086 with a period of 2^191, in streams as those of L'Ecuyer's RngStreams.

    Uniform numbers are those of RngStreams to the last bit.

    Parameters
    ----------
    seed
        A whole number for all six, or six: three below 4294967087, three below 4294944443; neither three
        may all be 0.
    stream
        Streams are 2^127 words apart.
    substream
        Those within a stream are 2^76 apart.

    Raises
    ------
    InvalidInput
        If a seed or the number of a stream is not as said.

    Examples
    --------
    >>> from plait.random import Mrg32k3a
    >>> Mrg32k3a().uniform(3).round(6).tolist()
    [0.127011, 0.318528, 0.309186]
    >>> Mrg32k3a().skip(10**30).uniform(1).round(6).tolist()
    [0.067687]
    """

    _problem = problem("numbers of MRG32k3a", _run_lanes, "mrg_batch", fill_lanes)
    _unit = _inner = Unit(0.0, 1 / (FIRST + 1))
    _word = Residue(float(FIRST))
    _source: tuple[int, ...]

    def __init__(self, seed: int | Sequence[int] = 12345, *, stream: int = 0, substream: int = 0) -> None:
        six = [seed] * 6 if isinstance(seed, (int, np.integer)) else list(seed)
        if len(six) != 6:
            raise InvalidInput("seed", found=f"{len(six)} numbers", expected="one, or six")
        self._source = tuple(whole("seed", one, 0, (FIRST, SECOND)[k // 3] - 1) for k, one in enumerate(six))
        if not any(self._source[:3]) or not any(self._source[3:]):
            raise InvalidInput("seed", found="three times 0", expected="another number in either three")
        self._skip(whole("stream", stream) * 2**127 + whole("substream", substream) * 2**76)

    @property
    def state(self) -> tuple[int, ...]:
        """The three last values of either half, oldest first: six numbers that may be given as a seed."""
        return self._source

    def _skip(self, count: int) -> None:
        self._source = skipped(self._source, count)


#: Words of the state, the distance of the word that is added, and bits that steps depend on.
WORDS, MIDDLE, DEGREE = 624, 397, 19937
_UPPER, _LOWER = np.uint32(0x80000000), np.uint32(0x7FFFFFFF)
_TWIST = np.uint32(0x9908B0DF)
_T = np.uint32(11), np.uint32(7), np.uint32(15), np.uint32(18)
_MASKS = np.uint32(0x9D2C5680), np.uint32(0xEFC60000)


class Window(NamedTuple):
    """The newest words, uint32 (624,), in the order of numpy's key, of which `place` are used up."""

    key: NDArray[np.uint32]
    place: int


@shared
def twisted(oldest: Any, next_oldest: Any, middle: Any) -> Any:
    """The word that comes 624 words behind the oldest one."""
    joined = np.uint32((oldest & _UPPER) | (next_oldest & _LOWER))
    return np.uint32(
        middle ^ np.uint32(joined >> np.uint32(1)) ^ (_TWIST if joined & np.uint32(1) else np.uint32(0))
    )


@shared
def tempered(word: Any) -> Any:
    """What is told of a word; shifts of compiled code have 64 bits unless they are cut at once."""
    word = np.uint32(word ^ np.uint32(word >> _T[0]))
    word = np.uint32(word ^ np.uint32(np.uint32(word << _T[1]) & _MASKS[0]))
    word = np.uint32(word ^ np.uint32(np.uint32(word << _T[2]) & _MASKS[1]))
    return np.uint32(word ^ np.uint32(word >> _T[3]))


@shared
def _renew(key: Any) -> None:
    """The next 624 words; no loop reads what it writes but at a distance of more than any vector."""
    for i in range(WORDS - MIDDLE):
        key[i] = twisted(key[i], key[i + 1], key[i + MIDDLE])
    for i in range(WORDS - MIDDLE):
        key[WORDS - MIDDLE + i] = twisted(key[WORDS - MIDDLE + i], key[WORDS - MIDDLE + 1 + i], key[i])
    for i in range(2 * (WORDS - MIDDLE), WORDS - 1):
        key[i] = twisted(key[i], key[i + 1], key[i - (WORDS - MIDDLE)])
    key[WORDS - 1] = twisted(key[WORDS - 1], key[0], key[MIDDLE - 1])


@kernel
def fill_blocks(kind: Any, unit: Any, key: Any, place: int, out: Any) -> int:
    """Fill `out` from the place on; `key` is renewed, and the new place in it returned."""
    done = 0
    while done < out.size:
        if place == WORDS:
            _renew(key)
            place = 0
        count = min(WORDS - place, out.size - done)
        # Slices: places in them are seen to be no negative ones, which would be gathered one by one.
        words, part = key[place : place + count], out[done : done + count]
        for i in range(count):
            part[i] = sample(kind, tempered(words[i]), unit)
        done += count
        place += count
    return place


def _squared(found: int, bit: int) -> int:
    """A polynomial's square, times x for a bit.

    Squaring puts zeros between the coefficients; what is too high is folded down by the sparse polynomial.
    """
    exponents = tables()["mt19937"].tolist()[:-1]
    found = int(f"{found:b}", 4) << bit
    while high := found >> DEGREE:
        found ^= high << DEGREE
        for exponent in exponents:
            found ^= high << exponent
    return found


@functools.lru_cache(32)
def polynomial(count: int) -> NDArray[np.uint8]:
    """x^count modulo the minimal polynomial of a step, coefficients uint8 from the highest on."""
    found = 1
    for bit in f"{count:b}":
        found = _squared(found, int(bit))
    return np.frombuffer(f"{found:b}".encode(), np.uint8) - np.uint8(ord("0"))


@functools.lru_cache(4)
def doublings(span: int, count: int) -> list[NDArray[np.int32]]:
    """Exponents of x^span, x^(2 span), x^(4 span) and so on."""
    found, every = int("".join(map(str, polynomial(span))), 2), []
    for _ in range(count):
        bits = np.frombuffer(f"{found:b}"[::-1].encode(), np.uint8)
        every.append(np.flatnonzero(bits == ord("1")).astype(np.int32))
        found = _squared(found, 0)
    return every


@kernel
def apply_polynomial(key: Any, coefficients: Any, words: Any) -> None:
    """What a polynomial of the step makes of a window, by Horner's rule.

    `words`, uint32 (coefficients + 624,), are 0 before; the last 624 of them are the new window.
    """
    for i in range(coefficients.size):
        words[i + WORDS] = twisted(words[i], words[i + 1], words[i + MIDDLE])
        if coefficients[i]:
            part = words[i + 1 : i + 1 + WORDS]
            for k in range(WORDS):
                part[k] ^= key[k]


def skipped_window(window: Window, count: int, run: Any = apply_polynomial) -> Window:
    """The window so many words later."""
    ahead = window.place + count
    if ahead <= WORDS:
        return Window(window.key, ahead)
    coefficients = polynomial(ahead - WORDS)
    words = np.zeros(coefficients.size + WORDS, np.uint32)
    run(window.key, coefficients, words)
    return Window(words[-WORDS:].copy(), WORDS)


def _run_blocks(fill: Any, jump: Any, batch: Draws, target: Target) -> Window:
    windows, size = [batch.source], batch.out.size
    pieces = stretches(target.threads, size, _STRETCHES[1])
    for first, last in pieces[:-1]:
        windows.append(skipped_window(windows[-1], last - first, jump))

    def one(work: tuple[Window, tuple[int, int]]) -> Window:
        window, (first, last) = work
        key = window.key.copy()
        return Window(key, int(fill(batch.kind, batch.unit, key, window.place, batch.out[first:last])))

    return over_threads(target.threads, list(zip(windows, pieces, strict=True)), one)[-1]


class Mt19937(Generator):
    """MT19937, the generator of Python and of NumPy's ``RandomState``: words of 32 bits, period 2^19937 - 1.

    One uniform number is made of each word w, ``(w + 1/2) / 2^32``; NumPy and Python take two words for 53
    bits. Skipping is exact: it gives what as many draws would, which `numpy.random.MT19937.jumped` does not.

    Parameters
    ----------
    seed
        A whole number below 2^32, as the authors' ``init_genrand`` and ``RandomState`` take it.
    key
        Instead: 624 words, as in the states of NumPy and Python.
    pos
        How many of them are used up.

    Raises
    ------
    InvalidInput
        If a seed or state is not as said.

    Examples
    --------
    >>> from plait.random import Mt19937
    >>> Mt19937(5489).raw(2).tolist()
    [3499211612, 581869302]
    >>> Mt19937(5489).skip(10**12).raw(1).tolist()
    [2948162034]
    """

    _problem = problem("numbers of MT19937", _run_blocks, "mt_batch", fill_blocks, apply_polynomial)

    def __init__(self, seed: int = 5489, *, key: ArrayLike | None = None, pos: int = WORDS) -> None:
        if key is None:
            words = [whole("seed", seed, 0, 2**32 - 1)]
            for k in range(1, WORDS):
                words.append((1812433253 * (words[-1] ^ words[-1] >> 30) + k) % 2**32)
            key, pos = words, WORDS
        given = np.asarray(key)
        whole_words = given.shape == (WORDS,) and given.dtype.kind in "iu" and given.min() >= 0
        if not whole_words or given.max() >= 2**32 or not (given[0] >> 31 or given[1:].any()):
            expected = f"{WORDS} words of 32 bits, not 0 alone"
            raise InvalidInput("key", found=f"{given.dtype} {given.shape}", expected=expected)
        self._source = Window(given.astype(np.uint32), whole("pos", pos, 0, WORDS))

    @property
    def state(self) -> tuple[NDArray[np.uint32], int]:
        """Words, uint32 (624,), and how many of them are used up, as NumPy has them."""
        return self._source.key.copy(), self._source.place

    def _skip(self, count: int) -> None:
        self._source = skipped_window(self._source, count)

    def _moved(self, words: int, end: Any) -> None:
        self._source = end


#: Dimensions of which there are direction numbers.
MOST: Final = 4096
_BITS: Final = 32
#: Points of a block: bits of their numbers.
_BLOCK: Final = 10


class Directions(NamedTuple):
    """Where points are: direction numbers and digital shifts, uint32 (dimensions, 32) and (dimensions,)."""

    vectors: NDArray[np.uint32]
    shifts: NDArray[np.uint32]
    first: int


def directions_of(dimensions: int) -> NDArray[np.uint32]:
    """Direction numbers, uint32 (dimensions, 32), the first of which has the highest bit."""
    polynomials, initial = tables()["polynomials"], tables()["initial"]
    found = np.zeros((dimensions, _BITS), np.uint32)
    found[0] = 1 << np.arange(_BITS - 1, -1, -1, dtype=np.uint64)
    for d in range(1, dimensions):
        polynomial, row = int(polynomials[d]), [int(one) for one in initial[:, d]]
        degree = polynomial.bit_length() - 1
        row = row[:degree]
        for j in range(degree, _BITS):
            new = row[j - degree] ^ row[j - degree] << degree
            for k in range(1, degree):
                if polynomial >> (degree - k) & 1:
                    new ^= row[j - k] << k
            row.append(new)
        found[d] = [value << (_BITS - 1 - j) for j, value in enumerate(row)]
    return found


@kernel
def fill_points(
    kind: Any, unit: Any, vectors: Any, shifts: Any, number: int, ends: Any, block: Any, out: Any
) -> None:
    """Fill columns ``ends`` of `out`, (dimensions, points), whose first one has the point `number`.

    A point is the sum without carry of `vectors` for the bits of its number's Gray code, which is a sum for
    the bits of the number itself: of bit k, vectors k and k - 1. `block` uint32 (2^k,) is memory: a block of
    points differs in the last k bits of numbers, and is one word away from the first one.
    """
    first, last = ends
    for d in range(out.shape[0]):
        steps, block[0], bits = vectors[d], np.uint32(0), 0
        while 1 << bits < block.size:
            half, step = 1 << bits, steps[bits] ^ (steps[bits - 1] if bits else np.uint32(0))
            low, high = block[:half], block[half : 2 * half]
            for i in range(half):
                high[i] = np.uint32(low[i] ^ step)
            bits += 1
        at = first - ((number + first) & (block.size - 1))
        while at < last:
            here, word = number + at, shifts[d]
            gray = here ^ here >> 1
            for k in range(_BITS):
                if gray >> k & 1:
                    word ^= steps[k]
            begin, end = max(at, first), min(at + block.size, last)
            # Slices: their places are seen to be no negative ones, which would be gathered one by one.
            words, part = block[begin - at : end - at], out[d, begin:end]
            for i in range(part.size):
                part[i] = sample(kind, np.uint32(words[i] ^ word), unit)
            at += block.size


def _run_points(run: Any, batch: Draws, target: Target) -> None:
    vectors, shifts, number = batch.source
    dimensions, points = batch.out.shape

    def one(ends: tuple[int, int]) -> None:
        block = np.empty(1 << min(_BLOCK, points.bit_length()), np.uint32)
        places = np.int64(number), (np.int64(ends[0]), np.int64(ends[1]))
        run(batch.kind, batch.unit, vectors, shifts, *places, block, batch.out)

    over_threads(target.threads, stretches(target.threads, points, max(_STRETCHES[2] // dimensions, 1)), one)


class Sobol(Generator):
    """Points of Sobol's sequence, 2^32 of them, of 32 bits in up to 4,096 dimensions.

    Without a seed they are those of SciPy with ``scramble=False`` and ``bits=32``. Normal and exponential
    numbers are made of the middles of the intervals that the points begin.

    Parameters
    ----------
    dimensions
        Coordinates of a point.
    skip
        Points to leave out.
    seed
        Shifts all points by one random vector of bits, taken from `Mrg32k3a`: a digital shift. Owen's
        scrambling is not there.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> from plait.random import Sobol
    >>> Sobol(2).uniform(4).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """

    _problem = problem("points of Sobol's sequence", _run_points, "sobol_batch", fill_points)
    _order = "F"
    _unit = Unit(0.0, 2.0**-32)

    def __init__(self, dimensions: int, *, skip: int = 0, seed: int | None = None) -> None:
        count = whole("dimensions", dimensions, 1, MOST)
        shifts = np.zeros(count, np.uint32) if seed is None else Mrg32k3a(seed).raw(count)
        self._source = Directions(directions_of(count), shifts, 0)
        self.skip(skip)

    @property
    def dimensions(self) -> int:
        """Coordinates of a point."""
        return len(self._source.shifts)

    @property
    def state(self) -> int:
        """Number of the next point."""
        return int(self._source.first)

    def _skip(self, count: int) -> None:
        whole("skip", count, 0, self.left)
        self._source = self._source._replace(first=self.state + count)

    @property
    def left(self) -> int:
        """Points that are left."""
        return (1 << _BITS) - self.state

    def _shape(self, size: tuple[int, ...]) -> tuple[int, ...]:
        if len(size) != 1:
            raise InvalidInput("size", found=repr(size), expected="the number of points")
        return whole("size", size[0], 0, self.left), self.dimensions
