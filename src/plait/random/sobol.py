"""Sobol's sequence with the direction numbers of Joe and Kuo (2008, *SIAM J. Sci. Comput.* 30: 2635-2654)."""

from __future__ import annotations

import functools
from functools import partial, reduce
from importlib import resources
from itertools import product as every
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted, over_threads, stretches
from plait.errors import InvalidInput
from plait.lang.algebras import choice, extend
from plait.lang.compile import kernel
from plait.random.draws import WORTH, Draws, Generator, Unit, Xor, sample, whole
from plait.random.mrg32k3a import Mrg32k3a

#: Dimensions of which there are direction numbers.
MOST: Final = 4096
_BITS: Final = 32
#: Points of a block: bits of their numbers.
_BLOCK: Final = 9
#: Points for which a thread is worth its start.
_STRETCH: Final = 1 << 17
_XOR: Final = Xor(np.uint32(0), np.uint32(2**32 - 1))


class Directions(NamedTuple):
    """Where points are: direction numbers and digital shifts, uint32 (dimensions, 32) and (dimensions,)."""

    vectors: NDArray[np.uint32]
    shifts: NDArray[np.uint32]
    first: int


@functools.cache
def tables() -> dict[str, NDArray[np.uint32]]:
    """What comes with plait: polynomials, first direction numbers, and the recurrence of MT19937."""
    with resources.files("plait.random").joinpath("data/recurrences.npz").open("rb") as file:
        return dict(np.load(file, allow_pickle=False))


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


def point(vectors: NDArray[np.uint32], number: int) -> NDArray[np.uint32]:
    """The point of a number, uint32 (dimensions,): the step of each bit of its Gray code."""
    gray = number ^ number >> 1
    ways = (extend(_XOR, vectors[:, k], _XOR.one if gray >> k & 1 else _XOR.zero) for k in range(_BITS))
    return np.asarray(reduce(partial(choice, _XOR), ways))


@kernel
def fill_points(kind: Any, unit: Any, base: Any, vectors: Any, number: int, block: Any, out: Any) -> None:
    """Fill `out` with one dimension, from the point `number` on.

    `base` is the shift, `vectors` uint32 (32,), `block` uint32 (2^k,) memory. Numbers of points of one block
    differ in their last k bits, and so do their Gray codes: a block is one word away from the first one.
    """
    size, bits = block.size, 0
    block[0] = 0
    while 1 << bits < size:
        half = 1 << bits
        for i in range(half):
            block[half + i] = block[half - 1 - i] ^ vectors[bits]
        bits += 1
    start = number & (size - 1)
    done = -start
    while done < out.size:
        here = number + done
        gray, word = here ^ here >> 1, base
        for k in range(vectors.size):
            if gray >> k & 1:
                word ^= vectors[k]
        for i in range(max(0, -done), min(size, out.size - done)):
            out[done + i] = sample(kind, block[i] ^ word, unit)
        done += size


def _run(run: Any, batch: Draws, target: Target) -> None:
    source: Directions = batch.source

    def one(work: tuple[int, tuple[int, int]]) -> None:
        d, (first, last) = work
        block = np.empty(1 << _BLOCK, np.uint32)
        shift, number = source.shifts[d], np.int64(source.first + first)
        run(batch.kind, batch.unit, shift, source.vectors[d], number, block, batch.out[d, first:last])

    points = batch.out.shape[1]
    pieces = stretches(target.threads, points, _STRETCH)
    over_threads(target.threads, list(every(range(len(source.vectors)), pieces)), one)


_DRAWS: Final = Problem(
    "points of Sobol's sequence",
    cpu=partial(_run, fill_points),
    reference=partial(_run, interpreted(fill_points)),
    cuda="plait.random.gpu_streams:sobol_batch",
    worth=lambda batch: batch.out.size >= WORTH,
)


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

    _problem = _DRAWS
    _unit = Unit(0.0, 2.0**-32)

    def __init__(self, dimensions: int, *, skip: int = 0, seed: int | None = None) -> None:
        count = whole("dimensions", dimensions, 1, MOST)
        self._directions = directions_of(count)
        self._shifts = np.zeros(count, np.uint32) if seed is None else Mrg32k3a(seed).raw(count)
        self._at = 0
        self.skip(skip)

    @property
    def dimensions(self) -> int:
        """Coordinates of a point."""
        return len(self._directions)

    @property
    def state(self) -> int:
        """Number of the next point."""
        return self._at

    def skip(self, count: int) -> Self:
        """Leave out so many points.

        Parameters
        ----------
        count
            A whole number.

        Returns
        -------
        Sobol
            The generator itself, further on.

        Raises
        ------
        InvalidInput
            If it is below 0, or there are not so many points.
        """
        self._at += whole("skip", count, 0, (1 << _BITS) - self._at)
        return self

    def _source(self) -> Directions:
        return Directions(self._directions, self._shifts, self._at)

    def _shaped(self, size: tuple[int, ...], dtype: str) -> tuple[NDArray[Any], NDArray[Any], int]:
        if len(size) != 1:
            raise InvalidInput("size", found=repr(size), expected="the number of points")
        whole("size", size[0], 0, (1 << _BITS) - self._at)
        out = np.empty((len(self._directions), size[0]), dtype)
        return out, out.T, size[0]
