"""Counts of distinct pairs of values: all that a rank correlation needs to know of any number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.statistics.counted_keys import CountedKeys, joined, least_level, narrowed, no_keys, summed
from plait.statistics.ordered_keys import keys_of, recoded, values_of

__all__ = ["ContingencyTable", "Pairs", "Stratum"]

#: Name of a stratum, in as many words as it takes.
Stratum: TypeAlias = tuple[str, ...]

#: Rows taken up before they are counted.
_WAITING: Final = 1 << 18


class Pairs(NamedTuple):
    """Distinct pairs of values, in order of x, then y.

    Attributes
    ----------
    x, y
        (m,): int64 where only whole numbers came, else float64.
    counts
        int64 (m,): rows with this pair; none is zero.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    counts: NDArray[np.int64]


@dataclass(slots=True)
class ContingencyTable:
    """How often each pair of values (x, y) occurs, in each stratum.

    What it holds depends on the rows alone, not on their order or on how they came in parts, as long as an
    axis is of one kind, whole or floating-point, in all of them. There is one entry per distinct pair. With
    a bound on their number, values are rounded towards zero to as many leading binary digits as keep the
    table within it, whole numbers included: x and y to the same number of digits, and all strata alike.
    Rounding keeps the order of values, and can only make some of them equal. Instances can be pickled.

    Attributes
    ----------
    most
        Most entries; None for no bound, and no rounding.
    exact
        Entries up to which nothing is rounded, if that is more than `most`: a table that has to be rounded
        may then hold less than one that need not be.
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
        """Add rows.

        Parameters
        ----------
        x, y
            (n,): whole or floating-point numbers, none of them NaN.
        count
            (n,): how often each row is meant; once by default. Rows meant 0 times are passed over.
        strata
            (n,) numbers of strata, and the names of these by number; one stratum named ``()`` by default.

        Raises
        ------
        ValueError
            If a value is NaN or a count negative, or the lengths differ.
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
        """Add all that another table holds.

        Parameters
        ----------
        other
            A table with the same bound. It stays as it is.

        Raises
        ------
        ValueError
            If the bounds differ.
        """
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
        """Distinct pairs of one stratum.

        Parameters
        ----------
        stratum
            Its name.

        Returns
        -------
        Pairs
            None where there is no such stratum.
        """
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
        """The same rows in fewer strata.

        Parameters
        ----------
        name
            Gives every stratum its new name.
        most
            Bound of the new table.

        Returns
        -------
        ContingencyTable
            A new table, rounded as this one is, or more.
        """
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
