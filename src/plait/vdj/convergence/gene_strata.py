"""Counted pairs of values by V and J gene: in all, by V, by J, and by both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from plait.statistics.contingency import ContingencyTable, Stratum

__all__ = ["STRATA", "GeneStrata"]

_Name: TypeAlias = Callable[[Stratum], Stratum]


def _all(stratum: Stratum) -> Stratum:
    return stratum[2:]


def _v_gene(stratum: Stratum) -> Stratum:
    return stratum[:1] + stratum[2:]


def _j_gene(stratum: Stratum) -> Stratum:
    return stratum[1:]


def _both(stratum: Stratum) -> Stratum:
    return stratum


#: Kinds of strata, each with how its names are made of a V and a J gene; whatever else is in a name stays.
STRATA: Final[dict[str, _Name]] = {"all": _all, "v_gene": _v_gene, "j_gene": _j_gene, "vj": _both}

_SHARES: Final = {"all": 1, "j_gene": 2, "v_gene": 4, "vj": 8}


@dataclass(slots=True)
class GeneStrata:
    """Counted pairs by V and J gene. Instances can be pickled.

    As long as there are few enough distinct (V, J, x, y), one exact table of them is all that is held. Then
    each kind of strata gets a table of its own, bounded by itself: the fewer the strata, the finer the
    rounding. What is held depends on the rows alone, not on their order or parts.

    Attributes
    ----------
    exact
        Most entries of the exact table.
    rounded
        Most entries of the table of all rows without strata; those by J gene, by V gene and by both may have
        two, four and eight times as many.
    """

    exact: int
    rounded: int
    _exact: ContingencyTable | None = field(default_factory=ContingencyTable)
    _bounded: dict[str, ContingencyTable] = field(default_factory=dict)
    _rows: int = 0

    def add(self, x: NDArray[Any], y: NDArray[Any], strata: tuple[NDArray[Any], Sequence[Stratum]]) -> None:
        """Add rows.

        Parameters
        ----------
        x, y
            (n,): values, none of them NaN.
        strata
            (n,) numbers of strata, and their names by number: V and J gene, and others if wanted.
        """
        if self._exact is not None:
            self._exact.add(x, y, strata=strata)
            self._taken(len(x))
            return
        numbers, names = strata
        for kind, table in self._bounded.items():
            table.add(x, y, strata=(numbers, [STRATA[kind](name) for name in names]))

    def merge(self, other: GeneStrata) -> None:
        """Add what another one holds.

        Parameters
        ----------
        other
            Of the same bounds. It stays as it is.
        """
        if self._exact is not None and other._exact is not None:
            self._exact.merge(other._exact)
            self._taken(len(other._exact))
            return
        self._part()
        for kind, table in self._bounded.items():
            if other._exact is not None:
                table.merge(other._exact.grouped(STRATA[kind], most=self._most(kind)))
            else:
                table.merge(other._bounded[kind])

    def table(self, kind: str) -> ContingencyTable:
        """Counted pairs in one kind of strata.

        Parameters
        ----------
        kind
            One of `STRATA`.
        """
        self._settle()
        return self._bounded[kind] if self._exact is None else self._exact.grouped(STRATA[kind])

    @property
    def digits(self) -> dict[str, int | None]:
        """Leading binary digits to which values were rounded, by kind of strata; empty if all are exact."""
        self._settle()
        return {kind: table.digits for kind, table in self._bounded.items()}

    def __len__(self) -> int:
        """Entries of the finest table."""
        self._settle()
        return len(self._bounded["vj"] if self._exact is None else self._exact)

    def __getstate__(self) -> tuple[Any, ...]:
        self._settle()
        return self.exact, self.rounded, self._exact, self._bounded, self._rows

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.exact, self.rounded, self._exact, self._bounded, self._rows = state

    def _taken(self, rows: int) -> None:
        """Look at the bound once so many rows have come that it could be passed."""
        self._rows += rows
        if self._rows > 2 * self.exact:
            self._settle()

    def _settle(self) -> None:
        if self._exact is not None:
            self._rows = len(self._exact)
            if self._rows > self.exact:
                self._part()

    def _part(self) -> None:
        if self._exact is not None:
            exact = self._exact
            self._bounded = {
                kind: exact.grouped(name, most=self._most(kind)) for kind, name in STRATA.items()
            }
            self._exact = None

    def _most(self, kind: str) -> int:
        return self.rounded * _SHARES[kind]
