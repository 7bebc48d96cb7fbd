"""Rank correlations of path counts and N2 regions with sharing and frequency, in all strata."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.stats.contingency import ContingencyTable, Pairs, Stratum
from plait.stats.rank_correlation import kendall, spearman

_Name: TypeAlias = Callable[[Stratum], Stratum]


#: Kinds of strata, each with how its names are made of a V and a J gene; whatever else is in a name stays.
STRATA: Final[dict[str, _Name]] = {
    "all": lambda stratum: stratum[2:],
    "v_gene": lambda stratum: stratum[:1] + stratum[2:],
    "j_gene": lambda stratum: stratum[1:],
    "vj": lambda stratum: stratum,
}

_SHARES: Final = {"all": 1, "j_gene": 2, "v_gene": 4, "vj": 8}


@dataclass(slots=True)
class GeneStrata:
    """Counted pairs by V and J gene. Instances can be pickled.

    Up to `exact` distinct (V, J, x, y), one exact table holds them. Then each kind of strata has a table of
    its own, of at most `rounded` entries without strata, two, four and eight times that by J gene, V gene and
    both. What is held depends on the rows alone, not on their order or parts.
    """

    exact: int
    rounded: int
    _exact: ContingencyTable | None = field(default_factory=ContingencyTable)
    _bounded: dict[str, ContingencyTable] = field(default_factory=dict)
    _rows: int = 0

    def add(self, x: NDArray[Any], y: NDArray[Any], strata: tuple[NDArray[Any], Sequence[Stratum]]) -> None:
        """Add rows: values (n,), none NaN; strata as numbers (n,) with names by number: V, J, others."""
        if self._exact is not None:
            self._exact.add(x, y, strata=strata)
            self._taken(len(x))
            return
        numbers, names = strata
        for kind, table in self._bounded.items():
            table.add(x, y, strata=(numbers, [STRATA[kind](name) for name in names]))

    def merge(self, other: GeneStrata) -> None:
        """Add what another one of the same bounds holds; it stays as it is."""
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
        """Counted pairs in one kind of strata, of `STRATA`."""
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


_BASES: Final = ("n2_a", "n2_c", "n2_g", "n2_t")
#: Columns of the clonotypes that `FigureTables.add_pairs` reads, where the study has them, beside its own
#: ``subject``, ``rows`` and ``duplicate_count`` (those of the clonotype in this subject); and ``pgen_nt``
#: with `FigureSettings.pgen`.
PAIR_COLUMNS: Final = (
    *("v_gene", "j_gene", "subjects", "junction_length", "path_count", "n2_length"),
    *_BASES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSettings:
    """Settings of the tables.

    Shared are clonotypes of `shared_by` subjects or more. Entry ``i * len(nu) + k`` of path_count_sweep
    belongs to pi[i] and nu[k]. Strata of fewer than `fewest` rows get no correlation. For `exact_pairs` and
    `rounded_pairs` see `GeneStrata`. `most_shared` rows are in top_shared.tsv.
    """

    shared_by: int = 2
    pi: tuple[int, ...] = ()
    nu: tuple[int, ...] = ()
    confidence: float = 0.95
    fewest: int = 20
    exact_pairs: int = 1 << 20
    rounded_pairs: int = 1 << 17
    most_shared: int = 2000
    pgen: bool = False

    @property
    def models(self) -> list[tuple[int, int]]:
        """Limits (pi, nu) of the models of the sweep, in the order of path_count_sweep."""
        return [(pi, nu) for pi in self.pi for nu in self.nu]


#: Columns of correlations.tsv.
CORRELATION_COLUMNS: Final = ("stratum_kind", "stratum", "x", "y", "method", "estimate", "low", "high", "n")
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

_Values: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]
#: y and x.
_Key: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class CorrelationTables:
    """Counted pairs of every x and y, by V and J gene and by subject. Instances can be pickled."""

    settings: FigureSettings
    _by_gene: dict[_Key, GeneStrata] = field(default_factory=dict)
    _by_subject: dict[_Key, ContingencyTable] = field(default_factory=dict)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes, as for `FigureTables.add_clonotypes`: sharing by V and J gene."""
        self._add(table, SHARING, by_gene=True)

    def add_pairs(self, table: pa.Table) -> None:
        """Add pairs, as for `FigureTables.add_pairs`.

        Frequency goes by V and J gene and by subject, sharing by subject.
        """
        frequency = next(name for name in FREQUENCIES if name in table.column_names)
        self._add(table, frequency, by_gene=True)
        self._add(table, frequency, by_gene=False)
        if SHARING in table.column_names:
            self._add(table, SHARING, by_gene=False)

    def merge(self, other: CorrelationTables) -> None:
        """Add what another one of the same settings holds."""
        for key, strata in other._by_gene.items():
            self._genes(key).merge(strata)
        for key, table in other._by_subject.items():
            self._subjects(key).merge(table)

    def of_sharing(self, x: str) -> Pairs:
        """Counted pairs of x, one of `MEASURES`, and the number of subjects, over all clonotypes."""
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
        numbers, names = strata_of(table, ("v_gene", "j_gene") if by_gene else ("subject",))
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


def strata_of(
    table: pa.Table, names: Sequence[str], levels: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], list[Stratum]]:
    """Numbers of strata, and the names of those that there are: texts of columns, and the level, if any."""
    words, columns = [], []
    for name in names:
        encoded = pc.fill_null(table[name], "").combine_chunks().dictionary_encode()
        words.append(encoded.dictionary.to_pylist())
        columns.append(np.asarray(encoded.indices).astype(np.int64))
    if levels is not None:
        distinct, place = np.unique(levels, return_inverse=True)
        words.append([str(level) for level in distinct.tolist()])
        columns.append(place.astype(np.int64))
    codes = np.zeros(len(table), np.int64)
    for column, known in zip(columns, words, strict=True):
        codes = codes * len(known) + column
    used, numbers = np.unique(codes, return_inverse=True)
    parts = []
    for known in reversed(words):
        used, rest = np.divmod(used, max(len(known), 1))
        parts.append([known[k] for k in rest.tolist()])
    return numbers.astype(np.int64), list(zip(*reversed(parts), strict=True))
