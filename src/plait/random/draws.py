"""What is made of words of a generator, of each a number: integers, uniform, normal, exponential ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Final, Literal, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import On, Problem, resolve, spelled
from plait.errors import InvalidInput, one_of, whole
from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import minimum, product, ratio, select

Size = int | tuple[int, ...]
DType = Literal["float64", "float32"]
Out = NDArray[Any] | None
Real = NDArray[Any]
#: Numbers that are worth the start of a GPU which was not asked for by name.
WORTH: Final = 1 << 30
_BELOW_ONE: Final = {"float64": 1 - 2.0**-53, "float32": 1 - 2.0**-24}


class Unit(NamedTuple):
    """The number ``(word + offset) * scale`` between 0 and 1 of a word."""

    offset: float
    scale: float


class Word(NamedTuple):
    """The word itself."""


class Residue(NamedTuple):
    """The word, of which the largest, `modulus`, counts as 0."""

    modulus: float


class Uniform(NamedTuple):
    """Between 0 and 1, at most `most`."""

    most: float


class Normal(NamedTuple):
    """Of mean 0 and variance 1."""


class Exponential(NamedTuple):
    """Of mean 1."""


# fmt: off
#: What numbers that are too small are multiplied by, which of them are, and the logarithms to base 2.
_DOUBLINGS: Final = (
    (2.0**17, 2.0**-16.5, 17.0), (2.0**8, 2.0**-7.5, 8.0), (2.0**4, 2.0**-3.5, 4.0), (2.0**2, 2.0**-1.5, 2.0),
    (2.0, 2.0**-0.5, 1.0), (2.0, 2.0**-0.5, 1.0),
)
#: Polynomials are two of the square, of even and odd powers, which do not wait for each other: a pair a line,
#: the highest first. Of (log((1 + s) / (1 - s)) / s - 2) / s^2, powers of s^2:
_LOGARITHM: Final = (
    (0.14616585424888622, 0.1533171061821077), (0.18182889455674946, 0.22222211130259876),
    (0.2857142862600327, 0.3999999999989944),
)
#: Of the quantile, the upper and the lower polynomial of a quotient; first of the middle, then of the tails.
_ABOVE: Final = (
    (0.0, -5.522917828826159e-09, -29.644855744439074, 0.0007829826511398389),
    (-1789.5674748129293, 0.021422675508026724, -3838.446693605073, 0.2075502714018973),
    (-2372.773969676467, 0.9480663270244832, -516.9911576885445, 2.1681938717410865),
    (-19.799567458668065, 2.2760833472210336, 5.417885181672294, 0.7149723574059272),
)
_BELOW: Final = (
    (924.6245568052743, 0.017163793689970935, 0.0, 0.0006260189818843706),
    (3000.039923632367, 0.8541060561878626, 3006.8241503831896, 0.17131025606681485),
    (269.45580710276835, 3.6633158940796013, 1294.2845382721289, 2.358915380765571),
    (1.0, 1.0, 26.62262120689922, 2.9925877824099985),
)
_LAST_LOGARITHM, _LAST_ABOVE = 0.666666666666667, (0.44259834766935513, -0.11362543961564743)
# fmt: on
#: The logarithm of 2, its first part with few digits; where the middle ends, and tails begin.
_LOG_2, _REST_OF_LOG_2 = 0.6931471805598903, 5.497923018708371e-14
_MIDDLE, _ROOT = 0.375, 1.442026886600883


@shared
def minus_logarithm(x: Any) -> Any:
    """Minus the natural logarithm of a number from 2^-33 to 1, within a unit of the last place.

    No branches: lanes take this. Nor does it depend on a library or a device.
    """
    halvings = 0.0
    for times, least, number in _DOUBLINGS:
        small = x < least
        x, halvings = select(small, product(x, times), x), select(small, halvings + number, halvings)
    f = x - 1.0
    s = ratio(f, 2.0 + f)
    z = product(s, s)
    square, even, odd = product(z, z), 0.0, 0.0
    for one, other in _LOGARITHM:
        even, odd = product(even, square) + one, product(odd, square) + other
    series = product(even, square) + product(odd, z) + _LAST_LOGARITHM
    rest = product(s, f - product(z, series)) + product(halvings, _REST_OF_LOG_2)
    return (product(halvings, _LOG_2) - f) + rest


@shared
def normal_quantile(p: Any) -> Any:
    """Where the normal distribution reaches `p`, at least 2^-33 and at most 1 - 2^-33.

    q (21/8 + R(9/64 - q^2)) of q = p - 1/2 in the middle; in tails the root of L (3/4 + R(sqrt(L) - 1.44)),
    L being minus the logarithm. No branches: lanes take this.
    """
    q = p - 0.5
    near, size = abs(q) <= _MIDDLE, minus_logarithm(minimum(p, 1.0 - p))
    z = select(near, _MIDDLE * _MIDDLE - product(q, q), math.sqrt(size) - _ROOT)
    square, above, above_odd, below, below_odd = product(z, z), 0.0, 0.0, 0.0, 0.0
    for middle, tail, middle_odd, tail_odd in _ABOVE:
        above = product(above, square) + select(near, middle, tail)
        above_odd = product(above_odd, square) + select(near, middle_odd, tail_odd)
    above = product(above, square) + product(above_odd, z) + select(near, _LAST_ABOVE[0], _LAST_ABOVE[1])
    for middle, tail, middle_odd, tail_odd in _BELOW:
        below = product(below, square) + select(near, middle, tail)
        below_odd = product(below_odd, square) + select(near, middle_odd, tail_odd)
    below = below + product(below_odd, z)
    base = select(near, q, size)
    found = product(base, select(near, 2.625, 0.75)) + product(base, ratio(above, below))
    root = math.sqrt(select(near, 1.0, found))
    return select(near, found, select(q < 0.0, -root, root))


#: A number of some distribution, made of one word.
sample: Final[Any] = by_type_of(
    {
        Word: lambda kind, word, unit: word,
        Residue: lambda kind, word, unit: word if word < kind.modulus else 0.0,
        Uniform: lambda kind, word, unit: minimum((word + unit.offset) * unit.scale, kind.most),
        Normal: lambda kind, word, unit: normal_quantile(product(word + unit.offset, unit.scale)),
        Exponential: lambda kind, word, unit: minus_logarithm(product(word + unit.offset, unit.scale)),
    }
)


class Draws(NamedTuple):
    """Numbers that a generator is asked for: `out` (n,), or (dimensions, n), is filled.

    `source` is what the generator hands its kernels.
    """

    kind: Any
    unit: Unit
    source: Any
    out: NDArray[Any]


def problem(name: str, run: Any, cuda: str, *kernels: Any) -> Problem[Draws, Any]:
    """What is launched for ``run(*kernels, batch, target)``."""
    there = f"plait.random.gpu_streams:{cuda}"
    return Problem.of(name, run, *kernels, cuda=there, worth=lambda batch: batch.out.size >= WORTH)


class Generator(ABC):
    """A stream of words of 32 bits and a place in it.

    Every number is made of one word, so that places in the stream stay where they are. `size` is how many, or
    the shape of an array of them; numbers of type `dtype`, ``float64`` or ``float32``, are rounded to it at
    the end. `out` is an array of this shape and type to fill, in C order (of `Sobol` in Fortran's), and is
    returned; without one a new array is. Answers depend neither on `device` nor on the `threads` of the CPU.
    `InvalidInput` if a size is no whole number of 0 or more, or the type or the array another one.
    """

    _problem: Problem[Draws, Any]
    #: Of words, and of those that must not give 0 or 1.
    _unit = _inner = Unit(0.5, 2.0**-32)
    _word: Any = Word()
    _order: Literal["C", "F"] = "C"
    #: Where the stream is, as the kernels need it.
    _source: Any

    @abstractmethod
    def _skip(self, count: int) -> None: ...

    def skip(self, count: int) -> Self:
        """Leave out so many words, or points; several calls are one with their sum.

        Parameters
        ----------
        count
            A whole number, of any size; of `Mt19937` 2^64 take 0.3 s, 2^128 0.7 s, of others microseconds.

        Returns
        -------
        Generator
            The generator itself, further on.

        Raises
        ------
        InvalidInput
            If it is below 0, or there are not so many points.
        """
        self._skip(whole("skip", count))
        return self

    @spelled
    def raw(self, size: Size, *, out: Out = None, **on: Unpack[On]) -> NDArray[np.uint32]:
        """Words of the stream, as integers, uint32 of the shape `size`."""
        return self._drawn(self._word, self._unit, size, "uint32", out, **on)

    @spelled
    def uniform(self, size: Size, *, dtype: DType = "float64", out: Out = None, **on: Unpack[On]) -> Real:
        """Numbers between 0 and 1, of the shape `size`; neither end, but for the points of `Sobol`."""
        return self._drawn(Uniform(_BELOW_ONE.get(dtype, 0.0)), self._unit, size, dtype, out, **on)

    @spelled
    def normal(self, size: Size, *, dtype: DType = "float64", out: Out = None, **on: Unpack[On]) -> Real:
        """Normal numbers of mean 0 and variance 1: where their distribution reaches a uniform number."""
        return self._drawn(Normal(), self._inner, size, dtype, out, **on)

    @spelled
    def exponential(self, size: Size, *, dtype: DType = "float64", out: Out = None, **on: Unpack[On]) -> Real:
        """Exponential numbers of mean 1: minus the logarithm of a uniform number."""
        return self._drawn(Exponential(), self._inner, size, dtype, out, **on)

    def _shape(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """Of the array of numbers, for a size."""
        return size

    def _drawn(
        self, kind: Any, unit: Unit, size: Size, dtype: str, out: Any, **on: Unpack[On]
    ) -> NDArray[Any]:
        one_of("dtype", dtype, _BELOW_ONE if kind is not self._word else ("uint32",))
        given = size if isinstance(size, tuple) else (size,)
        shape = self._shape(tuple(whole("size", one) for one in given))
        found: NDArray[Any] = np.empty(shape, dtype, self._order) if out is None else out
        told = f"{found.dtype} {found.shape}" if isinstance(found, np.ndarray) else repr(found)
        if told != f"{dtype} {shape}":
            raise InvalidInput("out", found=told, expected=f"{dtype} {shape}")
        if not (found.flags[self._order] and found.flags.writeable and found.flags.aligned):
            raise InvalidInput("out", found="one apart, or read-only", expected=f"{self._order} order")
        # Kernels have the dimensions of points one behind the other.
        flat = found.reshape(-1) if self._order == "C" else found.T
        if flat.size:
            asked = Draws(kind, unit, self._source, flat)
            self._moved(flat.shape[-1], resolve(**on).launch(self._problem, asked))
        return found

    def _moved(self, words: int, end: Any) -> None:
        """Go on behind words that were drawn; `end` is what launching them has returned."""
        self._skip(words)
