"""Nucleotides of N regions: shares of the four bases, shared clonotypes against the others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pyarrow as pa

from plait.statistics.tally import Tally
from plait.vdj.convergence.figure_settings import FigureSettings

__all__ = ["COMPOSITION_COLUMNS", "Composition"]

#: Columns of n_composition.tsv.
COMPOSITION_COLUMNS: Final = ("span", "shared", "base", "nucleotides", "share", "low", "high")
_SPANS: Final = ("n1", "n2", "ndn")
_BASES: Final = "acgt"
#: Clonotypes below which there is no interval.
_FEWEST: Final = 10
_SUMS: Final = (
    "clonotypes",
    "total",
    "total_squared",
    *(f"{base}{power}" for base in _BASES for power in ("", "_squared", "_total")),
)


@dataclass(slots=True)
class Composition:
    """Sums over clonotypes of the nucleotides in their N regions. Instances can be pickled.

    Attributes
    ----------
    settings
        Of all tables.
    """

    settings: FigureSettings
    _sums: Tally = field(default_factory=lambda: Tally(_SUMS))
    _by_level: Tally = field(default_factory=lambda: Tally(("at", "total")))

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes.

        Parameters
        ----------
        table
            As for `FigureTables.add_clonotypes`.
        """
        subjects = np.asarray(table["subjects"])
        shared = subjects >= self.settings.shared_by
        for span in _SPANS:
            if not {f"{span}_{base}" for base in _BASES} <= set(table.column_names):
                continue
            counts = {
                base: np.asarray(table[f"{span}_{base}"].combine_chunks().fill_null(0)).astype(np.int64)
                for base in _BASES
            }
            total = sum(counts.values(), np.zeros(len(table), np.int64))
            amounts = [(total > 0).astype(np.int64), total, total**2]
            for count in counts.values():
                amounts += [count, count**2, count * total]
            self._sums.add([pa.array([span] * len(table), pa.string()), shared], amounts)
            if span == "n2":
                self._by_level.add([subjects], [counts["a"] + counts["t"], total])

    def merge(self, other: Composition) -> None:
        """Add what another one holds.

        Parameters
        ----------
        other
            Of the same settings.
        """
        self._sums.merge(other._sums)
        self._by_level.merge(other._by_level)

    def n2_at_share(self, subjects: int) -> float | None:
        """Share of A and T among the N2 nucleotides of clonotypes that so many subjects have.

        Parameters
        ----------
        subjects
            How many.
        """
        found = self._by_level.get(subjects)
        return found["at"] / found["total"] if found["total"] else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of n_composition.tsv."""
        held = dict(iter(self._sums))
        for span in _SPANS:
            for shared in (True, False):
                sums = held.get((span, shared))
                for base in _BASES if sums else "":
                    yield {"span": span, "shared": shared, "base": base} | self._share(sums or {}, base)

    def _share(self, sums: dict[str, int], base: str) -> dict[str, Any]:
        """Share of one base, with an interval that takes clonotypes as the independent units.

        A ratio of two sums over clonotypes; its variance is that of the sum of count - share * total, by the
        delta method, and the interval is symmetric for the logarithm of the odds.
        """
        count, total, n = sums[base], sums["total"], sums["clonotypes"]
        found: dict[str, Any] = {"nucleotides": count, "share": count / total if total else None}
        if n < _FEWEST or not 0 < count < total:
            return found
        # Whole numbers as long as it goes: the three terms nearly cancel.
        spread = (
            sums[f"{base}_squared"] * total**2
            - 2 * count * total * sums[f"{base}_total"]
            + count**2 * sums["total_squared"]
        ) / total**4
        error = math.sqrt(spread * n / (n - 1))
        if error == 0:
            return found
        share = count / total
        odds = math.log(share / (1 - share))
        reach = NormalDist().inv_cdf((1 + self.settings.confidence) / 2) * error / (share * (1 - share))
        low, high = (1 / (1 + math.exp(-value)) for value in (odds - reach, odds + reach))
        return found | {"low": low, "high": high}
