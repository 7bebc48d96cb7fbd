"""Rank correlations of path counts and N2 regions with sharing and frequency, in all strata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.statistics.contingency import ContingencyTable, Pairs, Stratum
from plait.statistics.rank_correlation import kendall, spearman
from plait.vdj.convergence.figure_settings import FigureSettings
from plait.vdj.convergence.gene_strata import GeneStrata

__all__ = ["CORRELATION_COLUMNS", "FREQUENCIES", "MEASURES", "SHARING", "CorrelationTables"]

#: Columns of correlations.tsv.
CORRELATION_COLUMNS: Final = (
    "stratum_kind",
    "stratum",
    "x",
    "y",
    "method",
    "estimate",
    "low",
    "high",
    "n",
)
#: What is correlated: x; Pgen only where the study has it.
MEASURES: Final = ("path_count", "pgen_nt", "n2_length", "n2_at")
#: The number of subjects that have a clonotype: a y whose unit is the clonotype.
SHARING: Final = "subjects"
#: How often a subject has a clonotype: a y whose unit is the clonotype in a subject. The first one that the
#: input has.
FREQUENCIES: Final = ("duplicate_count", "rows")

#: Entries of tables by subject, in multiples of those without strata.
_SUBJECTS: Final = 4
_METHODS: Final = (spearman, kendall)
_BASES: Final = ("n2_a", "n2_c", "n2_g", "n2_t")

_Values: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]
#: y and x.
_Key: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class CorrelationTables:
    """Counted pairs of every x and y, by V and J gene and by subject. Instances can be pickled.

    Attributes
    ----------
    settings
        Of all tables.
    """

    settings: FigureSettings
    _by_gene: dict[_Key, GeneStrata] = field(default_factory=dict)
    _by_subject: dict[_Key, ContingencyTable] = field(default_factory=dict)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes: sharing by V and J gene.

        Parameters
        ----------
        table
            As for `FigureTables.add_clonotypes`.
        """
        self._add(table, SHARING, by_gene=True)

    def add_pairs(self, table: pa.Table) -> None:
        """Add clonotypes in subjects: frequency by V and J gene and by subject, sharing by subject.

        Parameters
        ----------
        table
            As for `FigureTables.add_pairs`.
        """
        frequency = next(name for name in FREQUENCIES if name in table.column_names)
        self._add(table, frequency, by_gene=True)
        self._add(table, frequency, by_gene=False)
        if SHARING in table.column_names:
            self._add(table, SHARING, by_gene=False)

    def merge(self, other: CorrelationTables) -> None:
        """Add what another one holds.

        Parameters
        ----------
        other
            Of the same settings.
        """
        for key, strata in other._by_gene.items():
            self._genes(key).merge(strata)
        for key, table in other._by_subject.items():
            self._subjects(key).merge(table)

    def of_sharing(self, x: str) -> Pairs:
        """Counted pairs of x and the number of subjects, over all clonotypes.

        Parameters
        ----------
        x
            One of `MEASURES`.
        """
        return self._genes((SHARING, x)).table("all").pairs()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of correlations.tsv: strata in order of kind and name, then x, y and method."""
        for kind in _KINDS:
            found: dict[str, list[dict[str, Any]]] = {}
            for x in MEASURES:
                for y in (SHARING, *FREQUENCIES):
                    table = self._table(kind, (y, x))
                    if table is not None:
                        self._estimate(table, kind, x, y, found)
            for stratum in sorted(found):
                yield from found[stratum]

    def notes(self) -> list[str]:
        """What was rounded to keep tables small, in words."""
        found = []
        for x in MEASURES:
            for y in (SHARING, *FREQUENCIES):
                tables = {kind: self._table(kind, (y, x)) for kind in _KINDS}
                digits = {kind: table.digits for kind, table in tables.items() if table is not None}
                texts = [f"{kind} {number}" for kind, number in digits.items() if number is not None]
                if texts:
                    found.append(
                        f"Correlations of {x} and {y}: as there are more than {self.settings.exact_pairs:,} "
                        f"distinct pairs, values were rounded; binary digits kept: {', '.join(texts)}."
                    )
        return found

    def _table(self, kind: str, key: _Key) -> ContingencyTable | None:
        """Counted pairs in one kind of strata, where there are any."""
        if kind == "subject":
            held = self._by_subject.get(key)
            return held if held is not None and len(held) else None
        strata = self._by_gene.get(key)
        return strata.table(kind) if strata is not None and len(strata) else None

    def _estimate(
        self, table: ContingencyTable, kind: str, x: str, y: str, found: dict[str, list[dict[str, Any]]]
    ) -> None:
        for stratum in table.strata:
            if "" in stratum:
                continue
            pairs = table.pairs(stratum)
            n = int(pairs.counts.sum())
            text = " ".join(stratum)
            for method in _METHODS:
                row: dict[str, Any] = dict.fromkeys(CORRELATION_COLUMNS)
                row |= {"stratum_kind": kind, "stratum": text}
                row |= {"x": x, "y": y, "method": method.__name__, "n": n}
                if n >= self.settings.fewest:
                    got = method(pairs, confidence=self.settings.confidence)
                    values = {"estimate": got.estimate, "low": got.low, "high": got.high}
                    row |= {name: None if np.isnan(value) else value for name, value in values.items()}
                found.setdefault(text, []).append(row)

    def _genes(self, key: _Key) -> GeneStrata:
        chosen = self.settings
        return self._by_gene.setdefault(key, GeneStrata(chosen.exact_pairs, chosen.rounded_pairs))

    def _subjects(self, key: _Key) -> ContingencyTable:
        chosen = self.settings
        new = ContingencyTable(_SUBJECTS * chosen.rounded_pairs, chosen.exact_pairs)
        return self._by_subject.setdefault(key, new)

    def _add(self, table: pa.Table, y: str, *, by_gene: bool) -> None:
        levels, known_y = _numbers(table, y)
        numbers, names = _strata(table, ("v_gene", "j_gene") if by_gene else ("subject",))
        for x in MEASURES:
            if x == "pgen_nt" and not self.settings.pgen:
                continue
            values, known = _measure(table, x)
            kept = known & known_y
            rows = self._genes((y, x)) if by_gene else self._subjects((y, x))
            rows.add(values[kept], levels[kept], strata=(numbers[kept], names))


#: Kinds of strata, in the order of the table.
_KINDS: Final = ("all", "subject", "v_gene", "j_gene", "vj")


def _numbers(table: pa.Table, name: str) -> _Values:
    """A column, and where it is known."""
    column = table[name].combine_chunks()
    known = np.asarray(column.is_valid())
    return np.asarray(column.fill_null(0)), known


def _measure(table: pa.Table, x: str) -> _Values:
    """Values of x, and where there are any."""
    if x == "n2_at":
        if not set(_BASES) <= set(table.column_names):
            return np.zeros(len(table)), np.zeros(len(table), bool)
        (a, known), (c, _), (g, _), (t, _) = (_numbers(table, name) for name in _BASES)
        total = a + c + g + t
        return np.divide(a + t, total, out=np.zeros(len(table)), where=total > 0), known & (total > 0)
    if x not in table.column_names:
        return np.zeros(len(table), np.int64), np.zeros(len(table), bool)
    return _numbers(table, x)


def _strata(table: pa.Table, names: Sequence[str]) -> tuple[NDArray[np.int64], list[Stratum]]:
    """Numbers of strata, and their names by number."""
    codes = np.zeros(len(table), np.int64)
    texts: list[Stratum] = [()]
    for name in names:
        encoded = pc.fill_null(table[name], "").combine_chunks().dictionary_encode()
        words = encoded.dictionary.to_pylist()
        codes = codes * len(words) + np.asarray(encoded.indices).astype(np.int64)
        texts = [(*text, word) for text in texts for word in words]
    return codes, texts
