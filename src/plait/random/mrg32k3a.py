"""MRG32k3a, the combined multiple recursive generator.

L'Ecuyer 1999, *Operations Research* 47: 159-164.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Target, over_threads, stretches
from plait.errors import InvalidInput
from plait.lang.algebras import choice, extend
from plait.lang.compile import kernel, shared
from plait.lang.lanes import greater, host_lanes, lanes_of, load, select, splat, store, width_of
from plait.random.draws import Draws, Generator, Residue, Unit, problem, sample, whole


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
#: Words of a lane, at least, and those for which a thread is worth its start.
_LEAST, _STRETCH = TILE, 1 << 18
_STREAM, _SUBSTREAM = 2**127, 2**76


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


def _run(run: Any, batch: Draws, target: Target) -> None:
    lanes = lanes_of(2 * host_lanes(64).width)
    size = batch.out.size

    def one(stretch: tuple[int, int]) -> None:
        first, last = stretch
        steps = max(-(-(last - first) // lanes.width), _LEAST)
        states = states_of(skipped(batch.source, first), steps, lanes.width)
        tile = np.empty((1, TILE * lanes.width))
        run(lanes, batch.kind, batch.unit, states, steps, tile, batch.out[first:last])

    over_threads(target.threads, stretches(target.threads, size, _STRETCH), one)


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

    _problem = problem("numbers of MRG32k3a", _run, "mrg_batch", fill_lanes)
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
        self._skip(whole("stream", stream) * _STREAM + whole("substream", substream) * _SUBSTREAM)

    @property
    def state(self) -> tuple[int, ...]:
        """The three last values of either half, oldest first: six numbers that may be given as a seed."""
        return self._source

    def _skip(self, count: int) -> None:
        self._source = skipped(self._source, count)
