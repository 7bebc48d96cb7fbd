"""What is made of words of a generator, of each a number: integers, uniform, normal, exponential ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, interpreted, resolve
from plait.errors import InvalidInput, one_of
from plait.lang.algebras import choice, extend
from plait.lang.compile import by_type, shared
from plait.lang.lanes import minimum

Size = int | tuple[int, ...]
DType = Literal["float64", "float32"]
#: Numbers that are worth the start of a GPU which was not asked for by name.
WORTH: Final = 1 << 30
_HALF_ROOT, _ROOT_OF_TURN = math.sqrt(0.5), math.sqrt(2 * math.pi)
_BELOW_ONE: Final = {"float64": 1 - 2.0**-53, "float32": 1 - 2.0**-24}


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


Rows = Sequence[Sequence[Any]]


def product(alg: Any, a: Rows, b: Rows) -> list[list[Any]]:
    """The matrix that does what `b` does and then `a`; entries may be arrays."""
    found = []
    for row in a:
        found.append([alg.zero] * len(b[0]))
        for weight, others in zip(row, b, strict=True):
            ways = (extend(alg, weight, other) for other in others)
            found[-1] = [choice(alg, one, way) for one, way in zip(found[-1], ways, strict=True)]
    return found


def power(alg: Any, step: Rows, times: int) -> Rows:
    """The matrix that does so many steps at once."""
    found: Rows = [[alg.one if i == j else alg.zero for j in range(len(step))] for i in range(len(step))]
    while times:
        if times & 1:
            found = product(alg, step, found)
        step, times = product(alg, step, step), times >> 1
    return found


class Unit(NamedTuple):
    """The number ``(word + offset) * scale`` between 0 and 1 of a word."""

    offset: float
    scale: float


class Word(NamedTuple):
    """The word itself."""

    @staticmethod
    def sample(kind: Word, word: Any, unit: Unit) -> Any:
        return word


class Residue(NamedTuple):
    """The word, of which the largest, `modulus`, counts as 0."""

    modulus: float

    @staticmethod
    def sample(kind: Residue, word: Any, unit: Unit) -> Any:
        return word if word < kind.modulus else 0.0


class Uniform(NamedTuple):
    """Between 0 and 1, at most `most`."""

    most: float

    @staticmethod
    def sample(kind: Uniform, word: Any, unit: Unit) -> Any:
        return minimum((word + unit.offset) * unit.scale, kind.most)


class Normal(NamedTuple):
    """Of mean 0 and variance 1."""

    @staticmethod
    def sample(kind: Normal, word: Any, unit: Unit) -> Any:
        return normal_quantile((word + unit.offset) * unit.scale)


class Exponential(NamedTuple):
    """Of mean 1."""

    @staticmethod
    def sample(kind: Exponential, word: Any, unit: Unit) -> Any:
        return -math.log((word + unit.offset) * unit.scale)


@by_type
def sample(kind: Any, word: Any, unit: Any) -> Any:
    """A number of some distribution, made of one word."""


#: Coefficients of AS 241, of the highest powers first: middle and tails, above and below the line.
# fmt: off
_MIDDLE_TOP = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
)
_MIDDLE_LOW = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)
_TAIL_TOP = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
    3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
)
_TAIL_LOW = (
    1.0507500716444168432e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
)
# fmt: on


@shared
def _quotient(top: Any, low: Any, r: Any) -> Any:
    """Quotient of two polynomials."""
    above, below = 0.0, 0.0
    for k in range(8):
        above = above * r + top[k]
        below = below * r + low[k]
    return above / below


@shared
def normal_quantile(p: Any) -> Any:
    """Where the normal distribution reaches `p`, at least 2^-33 and at most 1 - 2^-33.

    Wichura 1988, *Applied Statistics* 37: 477-484, AS 241, without the tails that 32 bits do not reach, and
    a step of Newton's method: the former is up to five units of the last place off.
    """
    q = p - 0.5
    if abs(q) <= 0.425:
        found = q * _quotient(_MIDDLE_TOP, _MIDDLE_LOW, 0.180625 - q * q)
        wrong = 0.5 * math.erf(found * _HALF_ROOT) - q
    else:
        tail = p if q < 0.0 else 1.0 - p
        size = _quotient(_TAIL_TOP, _TAIL_LOW, math.sqrt(-math.log(tail)) - 1.6)
        wrong = tail - 0.5 * math.erfc(size * _HALF_ROOT)
        found, wrong = (-size, -wrong) if q < 0.0 else (size, wrong)
    return found - wrong * (_ROOT_OF_TURN * math.exp(0.5 * found * found))


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
    return Problem(
        name,
        cpu=partial(run, *kernels),
        reference=partial(run, *map(interpreted, kernels)),
        cuda=f"plait.random.gpu_streams:{cuda}",
        worth=lambda batch: batch.out.size >= WORTH,
    )


class Asked(TypedDict, total=False):
    """Where numbers are drawn, and into what."""

    out: NDArray[Any] | None
    device: str
    threads: int | None


class Generator(ABC):
    """A stream of words of 32 bits and a place in it.

    Every number is made of one word, so that places in the stream stay where they are. `size` is how many, or
    the shape of an array of them; numbers of type `dtype`, ``float64`` or ``float32``, are rounded to it at
    the end. `out` is an array of this shape and type to fill, in C order (of `Sobol` in Fortran's), and is
    returned; without one a new array is. Answers depend neither on `device` nor on the `threads` of the CPU,
    but that normal and exponential numbers of GPUs may differ by roundings. `InvalidInput` if a size is no
    whole number of 0 or more, or the type or the array another one.
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

    def raw(self, size: Size, **asked: Unpack[Asked]) -> NDArray[np.uint32]:
        """Words of the stream, as integers, uint32 of the shape `size`."""
        return self._drawn(self._word, self._unit, size, "uint32", **asked)

    def uniform(self, size: Size, *, dtype: DType = "float64", **asked: Unpack[Asked]) -> NDArray[Any]:
        """Numbers between 0 and 1, of the shape `size`; neither end, but for the points of `Sobol`."""
        one_of("dtype", dtype, _BELOW_ONE)
        return self._drawn(Uniform(_BELOW_ONE[dtype]), self._unit, size, dtype, **asked)

    def normal(self, size: Size, *, dtype: DType = "float64", **asked: Unpack[Asked]) -> NDArray[Any]:
        """Normal numbers of mean 0 and variance 1: where their distribution reaches a uniform number."""
        one_of("dtype", dtype, _BELOW_ONE)
        return self._drawn(Normal(), self._inner, size, dtype, **asked)

    def exponential(self, size: Size, *, dtype: DType = "float64", **asked: Unpack[Asked]) -> NDArray[Any]:
        """Exponential numbers of mean 1: minus the logarithm of a uniform number."""
        one_of("dtype", dtype, _BELOW_ONE)
        return self._drawn(Exponential(), self._inner, size, dtype, **asked)

    def _shape(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """Of the array of numbers, for a size."""
        return size

    def _drawn(
        self,
        kind: Any,
        unit: Unit,
        size: Size,
        dtype: str,
        out: Any = None,
        device: str = "auto",
        threads: int | None = None,
    ) -> NDArray[Any]:
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
            self._moved(flat.shape[-1], resolve(device, threads).launch(self._problem, asked))
        return found

    def _moved(self, words: int, end: Any) -> None:
        """Go on behind words that were drawn; `end` is what launching them has returned."""
        self._skip(words)


def whole(name: str, value: Any, least: int = 0, most: float = math.inf) -> int:
    """A whole number within limits; `InvalidInput` if it is not."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidInput(name, found=repr(value), expected="a whole number")
    if not least <= value <= most:
        wanted = f"at least {least}" if most == math.inf else f"{least} to {most}"
        raise InvalidInput(name, found=int(value), expected=wanted)
    return int(value)
