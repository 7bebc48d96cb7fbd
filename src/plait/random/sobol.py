"""Sobol's sequence with the direction numbers of Joe and Kuo (2008, *SIAM J. Sci. Comput.* 30: 2635-2654)."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Target, over_threads, stretches
from plait.errors import InvalidInput
from plait.lang.compile import kernel
from plait.random.draws import Draws, Generator, Unit, problem, sample, whole
from plait.random.mrg32k3a import Mrg32k3a

#: Dimensions of which there are direction numbers.
MOST: Final = 4096
_BITS: Final = 32
#: Points of a block: bits of their numbers.
_BLOCK: Final = 10
#: Points for which a thread is worth its start.
_STRETCH: Final = 1 << 20


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


def _run(run: Any, batch: Draws, target: Target) -> None:
    vectors, shifts, number = batch.source
    dimensions, points = batch.out.shape

    def one(ends: tuple[int, int]) -> None:
        block = np.empty(1 << min(_BLOCK, points.bit_length()), np.uint32)
        places = np.int64(number), (np.int64(ends[0]), np.int64(ends[1]))
        run(batch.kind, batch.unit, vectors, shifts, *places, block, batch.out)

    over_threads(target.threads, stretches(target.threads, points, max(_STRETCH // dimensions, 1)), one)


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

    _problem = problem("points of Sobol's sequence", _run, "sobol_batch", fill_points)
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
