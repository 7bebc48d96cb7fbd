"""Counts of distinct pairs of values: all that a rank correlation needs to know of any number of rows.

Values are held as keys: whole numbers in the same order. At level 0 the key of a whole number is the number
itself, and that of a floating-point number its bits, as a negative number for values below zero. At level k >
0 both are the bits of the floating-point number without the lowest k: values rounded towards zero. A key of
one level tells that of every higher one, and all keep the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_Ints: TypeAlias = NDArray[np.int64]

#: Level at which all values are one.
COARSEST: Final = 63
_SIGN: Final = np.int64(np.iinfo(np.int64).min)
_REST: Final = np.int64(np.iinfo(np.int64).max)


def keys_of(values: NDArray[Any], whole: bool, level: int) -> _Ints:
    """Keys of numbers at a level; ValueError if one is NaN.

    With `whole`, all values are whole, and keys of level 0 are the numbers themselves.
    """
    numbers = np.asarray(values)
    if numbers.dtype.kind in "iub":
        return recoded(numbers.astype(np.int64), True, 0, whole, level)
    if np.isnan(numbers).any():
        raise ValueError("NaN has no rank")
    return recoded(_float_keys(numbers.astype(np.float64)), False, 0, whole, level)


def recoded(keys: NDArray[Any], whole: bool, level: int, to_whole: bool, to_level: int) -> _Ints:
    """Keys of one kind and level as those of another kind or of a higher level."""
    wide = keys.astype(np.int64, copy=False)
    if whole and level == 0:
        if to_whole and to_level == 0:
            return wide
        wide = _float_keys(wide.astype(np.float64))
    shift = to_level - level
    return wide if shift == 0 else np.sign(wide) * (np.abs(wide) >> shift)


def values_of(keys: NDArray[Any], whole: bool, level: int) -> NDArray[Any]:
    """Values that keys stand for."""
    wide = keys.astype(np.int64)
    if whole and level == 0:
        return wide
    bits = np.abs(wide) << level
    return np.where(wide < 0, bits | _SIGN, bits).view(np.float64)


def _float_keys(values: NDArray[np.float64]) -> _Ints:
    bits = values.view(np.int64)
    return np.where(bits < 0, -(bits & _REST), bits)


class CountedKeys(NamedTuple):
    """Rows of (stratum, x, y), each with how often it is meant; columns (n,) of any integer types."""

    stratum: NDArray[Any]
    x: NDArray[Any]
    y: NDArray[Any]
    counts: NDArray[Any]


def no_keys() -> CountedKeys:
    """No rows."""
    return CountedKeys(*(np.zeros(0, np.int8) for _ in range(4)))


def joined(blocks: Sequence[CountedKeys]) -> CountedKeys:
    """Rows of one or more blocks, one block after the other."""
    return CountedKeys(*(np.concatenate(columns) for columns in zip(*blocks, strict=True)))


def narrowed(block: CountedKeys) -> CountedKeys:
    """The same rows, each column in the narrowest integer type that holds it."""
    return CountedKeys(*(column.astype(_narrowest(column), copy=False) for column in block))


def summed(block: CountedKeys) -> CountedKeys:
    """Distinct triples in order, with the sums of their counts."""
    if not len(block.counts):
        return block
    order = _order(block)
    stratum, x, y, counts = (column[order] for column in block)
    new = np.ones(len(counts), bool)
    new[1:] = (stratum[1:] != stratum[:-1]) | (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(counts, first, dtype=np.int64)
    return narrowed(CountedKeys(stratum[first], x[first], y[first], sums))


def least_level(block: CountedKeys, whole: Sequence[bool], level: int, most: int) -> int:
    """The least level above `level` that leaves at most `most` distinct triples, or the coarsest of all."""

    def fits(at: int) -> bool:
        return _entries(block, whole, level, at) <= most

    # As y mostly stays what it is, the first level at which x alone would do is mostly the one.
    low, high = level + 1, _first_by_x(block, whole, level, most)
    step = 1
    while low < high:
        middle = max(high - step, low)
        if not fits(middle):
            low = middle + 1
            break
        high, step = middle, 2 * step
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _first_by_x(block: CountedKeys, whole: Sequence[bool], level: int, most: int) -> int:
    """The first level above one that leaves few enough entries even if y is not rounded; else the coarsest.

    Of neighbours in order of stratum, y and x, the highest binary digit in which they differ tells up to
    which level they stay two.
    """
    x = recoded(block.x, whole[0], level, False, level)
    order = _order(CountedKeys(block.stratum, block.y, x, block.counts))
    stratum, y, x = block.stratum[order], block.y[order], x[order]
    together = (stratum[1:] == stratum[:-1]) & (y[1:] == y[:-1])
    one, other = np.abs(x[1:]), np.abs(x[:-1])
    apart = np.where((x[1:] < 0) == (x[:-1] < 0), one ^ other, np.maximum(one, other))
    # Digits of numbers near 2^63 may come out one too many, which only makes the level higher.
    digits = np.frexp(apart[together].astype(np.float64))[1]
    differing = np.bincount(digits, minlength=COARSEST + 2)
    left = 1 + np.count_nonzero(~together) + differing.sum() - np.cumsum(differing)
    fitting = np.flatnonzero(left[1:] <= most)
    return min(level + 1 + int(fitting[0]), COARSEST) if len(fitting) else COARSEST


def _entries(block: CountedKeys, whole: Sequence[bool], level: int, at: int) -> int:
    """Distinct triples that are left at another level."""
    x, y = (
        recoded(keys, is_whole, level, is_whole, at)
        for keys, is_whole in zip((block.x, block.y), whole, strict=True)
    )
    packed = _packed(block.stratum, x, y)
    if packed is None:
        return len(summed(block._replace(x=x, y=y)).counts)
    packed.sort()
    return 1 + int(np.count_nonzero(packed[1:] != packed[:-1]))


def _packed(stratum: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> _Ints | None:
    """One number for each of one or more triples, in their order; None if it could be too large."""
    places = []
    size = 1
    for column in (stratum, x, y):
        least = int(column.min())
        size *= int(column.max()) - least + 1
        places.append((column, least, int(column.max()) - least + 1))
    if size > np.iinfo(np.int64).max:
        return None
    packed = np.zeros(len(x), np.int64)
    for column, least, values in places:
        packed *= values
        packed += column.astype(np.int64, copy=False) - least
    return packed


def _order(block: CountedKeys) -> NDArray[np.intp]:
    packed = _packed(*block[:3])
    if packed is None:
        places = [np.unique(keys, return_inverse=True)[1] for keys in (block.x, block.y)]
        packed = _packed(block.stratum, *places)
    # Mostly a few sorted runs after each other, which a stable sort merges in linear time.
    if packed is None:
        return np.lexsort((block.y, block.x, block.stratum))
    return np.argsort(packed, kind="stable")


def _narrowest(column: NDArray[Any]) -> np.dtype[Any]:
    """The narrowest signed type of whole numbers; of a sign that has one value more."""
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    return np.min_scalar_type(min(low, -1 - high))


#: Name of a stratum, in as many words as it takes.
Stratum: TypeAlias = tuple[str, ...]

#: Rows taken up before they are counted.
_WAITING: Final = 1 << 18


class Pairs(NamedTuple):
    """Distinct pairs of values, in order of x, then y; columns are (m,), and no count is zero.

    Values are int64 where only whole numbers came, else float64.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    counts: NDArray[np.int64]


@dataclass(slots=True)
class ContingencyTable:
    """How often each pair of values (x, y) occurs, in each stratum: one entry per distinct pair. Picklable.

    To keep within `most` entries (None: no bound), values, whole ones too, are rounded towards zero to some
    leading binary digits, as many for x, y and all strata; their order stays. Up to `exact` entries nothing
    is. What is held depends on the rows alone, not their order or parts, if an axis is all whole or all
    floating-point.
    """

    most: int | None = None
    exact: int = 0
    _level: int = 0
    _whole: list[bool] = field(default_factory=lambda: [True, True])
    _names: dict[Stratum, int] = field(default_factory=dict)
    _counted: CountedKeys = field(default_factory=no_keys)
    _waiting: list[CountedKeys] = field(default_factory=list)

    def add(
        self,
        x: NDArray[Any],
        y: NDArray[Any],
        count: NDArray[Any] | None = None,
        *,
        strata: tuple[NDArray[Any], Sequence[Stratum]] | None = None,
    ) -> None:
        """Add rows (n,), each meant `count` times (once by default); those meant 0 times are passed over.

        `strata` are (n,) numbers and the names by number; by default one stratum named ``()``. ValueError if
        a value is NaN, a count negative, or lengths differ.
        """
        n = len(x)
        counts = np.ones(n, np.int64) if count is None else np.asarray(count).astype(np.int64)
        numbers, names = (np.zeros(n, np.int64), [()]) if strata is None else strata
        if not n == len(y) == len(counts) == len(numbers):
            raise ValueError(f"{n} x, {len(y)} y, {len(counts)} counts and {len(numbers)} strata")
        if np.any(counts < 0):
            raise ValueError("a negative count")
        places = np.array([self._names.setdefault(name, len(self._names)) for name in names], np.int64)
        whole = [np.asarray(values).dtype.kind in "iub" for values in (x, y)]
        self._accept(whole, self._level)
        keys = [
            keys_of(values, is_whole, self._level)
            for values, is_whole in zip((x, y), self._whole, strict=True)
        ]
        block = CountedKeys(places[np.asarray(numbers, np.int64)], keys[0], keys[1], counts)
        kept = counts > 0
        self._wait(block if kept.all() else CountedKeys(*(column[kept] for column in block)))

    def merge(self, other: ContingencyTable) -> None:
        """Add all that another table holds, which stays as it is; ValueError if the bounds differ."""
        if (other.most, other.exact) != (self.most, self.exact):
            raise ValueError(f"bounds {self.most}, {self.exact} and {other.most}, {other.exact}")
        places = np.array([self._names.setdefault(name, len(self._names)) for name in other._names], np.int64)
        self._accept(other._whole, other._level)
        for block in (other._counted, *other._waiting):
            x, y = (
                recoded(keys, from_whole, other._level, to_whole, self._level)
                for keys, from_whole, to_whole in zip(
                    (block.x, block.y), other._whole, self._whole, strict=True
                )
            )
            self._wait(CountedKeys(places[block.stratum], x, y, block.counts))

    @property
    def digits(self) -> int | None:
        """Leading binary digits to which values were rounded; None if all are exact."""
        self._compact()
        return None if self._level == 0 else max(53 - self._level, 0)

    def __len__(self) -> int:
        self._compact()
        return len(self._counted.counts)

    @property
    def strata(self) -> list[Stratum]:
        """Names of the strata that have rows, sorted."""
        self._compact()
        used = set(np.unique(self._counted.stratum).tolist())
        return sorted(name for name, number in self._names.items() if number in used)

    def pairs(self, stratum: Stratum = ()) -> Pairs:
        """Distinct pairs of one stratum; no pairs where there is no such stratum."""
        self._compact()
        number = self._names.get(stratum, -1)
        first, last = np.searchsorted(self._counted.stratum, [number, number + 1])
        _, x, y, count = (column[first:last] for column in self._counted)
        return Pairs(
            values_of(x, self._whole[0], self._level),
            values_of(y, self._whole[1], self._level),
            count.astype(np.int64),
        )

    def grouped(self, name: Callable[[Stratum], Stratum], *, most: int | None = None) -> ContingencyTable:
        """A new table of the same rows in strata named by `name`; rounded as this one, or more."""
        self._compact()
        found = ContingencyTable(most, 0, self._level, list(self._whole))
        new = [found._names.setdefault(name(old), len(found._names)) for old in self._names]
        places = np.array(new, np.int64)
        block = self._counted
        found._counted = summed(block._replace(stratum=places[block.stratum]))
        found._round()
        return found

    def __getstate__(self) -> tuple[Any, ...]:
        self._compact()
        return self.most, self.exact, self._level, self._whole, self._names, self._counted

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.most, self.exact, self._level, self._whole, self._names, self._counted = state
        self._waiting = []

    def _wait(self, block: CountedKeys) -> None:
        self._waiting.append(narrowed(block))
        waiting = sum(len(entry.counts) for entry in self._waiting)
        if waiting >= max(_WAITING, len(self._counted.counts) // 2):
            self._compact()

    def _accept(self, whole: Sequence[bool], level: int) -> None:
        """Make what is held agree with keys of this kind and level."""
        to_whole = [old and new for old, new in zip(self._whole, whole, strict=True)]
        to_level = max(self._level, level)
        if to_whole == self._whole and to_level == self._level:
            return
        recoded_blocks = []
        for block in (self._counted, *self._waiting):
            x, y = (
                recoded(keys, old, self._level, new, to_level)
                for keys, old, new in zip((block.x, block.y), self._whole, to_whole, strict=True)
            )
            recoded_blocks.append(narrowed(block._replace(x=x, y=y)))
        self._waiting = recoded_blocks
        self._counted = no_keys()
        self._whole, self._level = to_whole, to_level

    def _compact(self) -> None:
        """Count what waits, and round where there are too many pairs."""
        if self._waiting:
            self._counted = summed(joined([self._counted, *self._waiting]))
            self._waiting = []
            self._round()

    def _round(self) -> None:
        entries = len(self._counted.counts)
        if self.most is None or entries <= (self.most if self._level else max(self.most, self.exact)):
            return
        self._accept(self._whole, least_level(self._counted, self._whole, self._level, self.most))
        self._counted = summed(self._waiting[0])
        self._waiting = []


_Column: TypeAlias = Any


@dataclass(slots=True)
class Tally:
    """Sums by key. Python's integers hold them, so they do not overflow; instances can be pickled."""

    sums: tuple[str, ...]
    _held: dict[tuple[Any, ...], list[int]] = field(default_factory=dict)

    def add(self, keys: Sequence[_Column], amounts: Sequence[_Column]) -> None:
        """Add rows: columns (n,) that make the key, and one of whole numbers for each sum; nulls count 0."""
        names = [f"key{i}" for i in range(len(keys))]
        sums = [f"sum{i}" for i in range(len(amounts))]
        table = pa.table([*keys, *amounts], names=[*names, *sums])
        grouped = table.group_by(names, use_threads=False).aggregate([(name, "sum") for name in sums])
        found = [grouped[name].to_pylist() for name in names]
        totals = [grouped[f"{name}_sum"].to_pylist() for name in sums]
        for key, total in zip(zip(*found, strict=True), zip(*totals, strict=True), strict=True):
            self._take(key, total)

    def merge(self, other: Tally) -> None:
        """Add all that another tally of the same sums holds (else ValueError); it stays as it is."""
        if other.sums != self.sums:
            raise ValueError(f"sums {self.sums} and {other.sums}")
        for key, total in other._held.items():
            self._take(key, total)

    def _take(self, key: tuple[Any, ...], total: Sequence[int | None]) -> None:
        held = self._held.setdefault(key, [0] * len(self.sums))
        for place, amount in enumerate(total):
            held[place] += amount or 0

    def get(self, *key: object) -> dict[str, int]:
        """Sums of one key by name; zeros for a key that never came."""
        return dict(zip(self.sums, self._held.get(key, [0] * len(self.sums)), strict=True))

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], dict[str, int]]]:
        """Keys in ascending order, with their sums."""
        for key in sorted(self._held):
            yield key, self.get(*key)

    def __len__(self) -> int:
        return len(self._held)


#: From here on Student's t is normal to eight digits.
_MANY: Final = 1e8
_NODES: Final = 64


def counted_quantiles(
    values: NDArray[Any], counts: NDArray[np.int64], shares: Sequence[float]
) -> list[float | None]:
    """Quantiles (shares from 0 to 1) of ascending values (m,) that occur `counts` (m,) times each.

    As `numpy.quantile` of all values written out: linear between neighbours. None where there are none.
    """
    ends = np.cumsum(counts)
    n = int(ends[-1]) if len(ends) else 0
    if n == 0:
        return [None] * len(shares)
    found: list[float | None] = []
    for share in shares:
        place = share * (n - 1)
        whole = min(math.floor(place), n - 1)
        low, high = (
            float(values[np.searchsorted(ends, at, side="right")]) for at in (whole, min(whole + 1, n - 1))
        )
        found.append(low + (high - low) * (place - whole))
    return found


def student_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t distribution, for a probability above 0.5 and below 1.

    Degrees of freedom are 1 or more and need not be whole. Right to six digits or more, from 2 degrees of
    freedom on to seven: with t = sqrt(f) tan(a), the density of the angle a is proportional to cos(a)^(f -
    1). Its integral from 0 is taken by Gauss-Legendre quadrature, and the angle found by Newton's method,
    which comes from below as this integral is concave.

    >>> round(student_quantile(0.975, 10), 6)
    2.228139
    """
    normal = NormalDist().inv_cdf(probability)
    if freedom >= _MANY:
        return normal
    nodes, weights = _legendre()
    whole = math.sqrt(math.pi) / _gamma_ratio(freedom)
    angle = math.atan(normal / math.sqrt(freedom))
    for _ in range(100):
        integral = float(np.sum(weights * np.cos(angle * nodes) ** (freedom - 1))) * angle
        step = ((probability - 0.5) * whole - integral) / math.cos(angle) ** (freedom - 1)
        angle += step
        if abs(step) < 1e-13 * angle:
            break
    return math.sqrt(freedom) * math.tan(angle)


def _gamma_ratio(freedom: float) -> float:
    """Gamma((f + 1) / 2) / Gamma(f / 2); by its series for large f, where logarithms cancel."""
    if freedom < 1000:
        return math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    return math.sqrt(freedom / 2) * math.exp(-1 / (4 * freedom) + 1 / (24 * freedom**3))


@lru_cache(maxsize=1)
def _legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


def wilson_interval(successes: int, n: int, z: float) -> tuple[float, float]:
    """Wilson's interval of a share, `z` standard errors wide; n is at least 1.

    >>> low, high = wilson_interval(10, 40, 1.959964)
    >>> round(low, 4), round(high, 4)
    (0.1419, 0.4019)
    """
    centre = (successes + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * (successes * (n - successes) / n + z * z / 4) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def q_values(p: NDArray[np.float64], tests: int) -> NDArray[np.float64]:
    """q-values (Benjamini and Hochberg) of the smallest p-values of so many tests, (n,)."""
    order = np.argsort(p, kind="stable")
    scaled = p[order] * tests / np.arange(1, p.size + 1)
    values = np.empty_like(p)
    values[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.minimum(values, 1.0)
