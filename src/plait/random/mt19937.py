"""MT19937, the Mersenne Twister of Matsumoto and Nishimura (1998, *ACM TOMACS* 8: 3-30)."""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.devices.target import Target, over_threads, stretches
from plait.errors import InvalidInput
from plait.lang.compile import kernel, shared
from plait.random.draws import Draws, Generator, problem, sample, whole
from plait.random.sobol import tables

#: Words of the state, the distance of the word that is added, and bits that steps depend on.
WORDS, MIDDLE, DEGREE = 624, 397, 19937
#: Words for which a thread is worth the jump to them.
_STRETCH: Final = 1 << 24
_UPPER, _LOWER = np.uint32(0x80000000), np.uint32(0x7FFFFFFF)
_TWIST = np.uint32(0x9908B0DF)
_ZERO, _ONE = np.uint32(0), np.uint32(1)
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
    return np.uint32(middle ^ np.uint32(joined >> _ONE) ^ (_TWIST if joined & _ONE else _ZERO))


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


def skipped(window: Window, count: int, run: Any = apply_polynomial) -> Window:
    """The window so many words later."""
    ahead = window.place + count
    if ahead <= WORDS:
        return Window(window.key, ahead)
    coefficients = polynomial(ahead - WORDS)
    words = np.zeros(coefficients.size + WORDS, np.uint32)
    run(window.key, coefficients, words)
    return Window(words[-WORDS:].copy(), WORDS)


def _run(fill: Any, jump: Any, batch: Draws, target: Target) -> Window:
    windows, size = [batch.source], batch.out.size
    pieces = stretches(target.threads, size, _STRETCH)
    for first, last in pieces[:-1]:
        windows.append(skipped(windows[-1], last - first, jump))

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

    _problem = problem("numbers of MT19937", _run, "mt_batch", fill_blocks, apply_polynomial)

    def __init__(self, seed: int = 5489, *, key: ArrayLike | None = None, pos: int = WORDS) -> None:
        if key is None:
            words = [whole("seed", seed, 0, 2**32 - 1)]
            for k in range(1, WORDS):
                words.append((1812433253 * (words[-1] ^ words[-1] >> 30) + k) % 2**32)
            key, pos = words, WORDS
        given = np.asarray(key)
        if given.shape != (WORDS,) or given.dtype.kind not in "iu":
            found = f"{given.dtype} {given.shape}"
            raise InvalidInput("key", found=found, expected=f"{WORDS} words of 32 bits")
        if given.min() < 0 or given.max() >= 2**32 or not (given[0] >> 31 or given[1:].any()):
            raise InvalidInput("key", found="another number, or 0 alone", expected="words of 32 bits")
        self._source = Window(given.astype(np.uint32), whole("pos", pos, 0, WORDS))

    @property
    def state(self) -> tuple[NDArray[np.uint32], int]:
        """Words, uint32 (624,), and how many of them are used up, as NumPy has them."""
        return self._source.key.copy(), self._source.place

    def _skip(self, count: int) -> None:
        self._source = skipped(self._source, count)

    def _moved(self, words: int, end: Any) -> None:
        self._source = end
