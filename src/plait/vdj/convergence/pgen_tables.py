"""Generation probability beside path counts, on the same clonotypes: which goes better with sharing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.statistics.contingency import ContingencyTable, Stratum
from plait.statistics.paired_ranks import PAIRED_MEASURES, Triples, paired_differences, triples_of
from plait.statistics.tally import Tally
from plait.vdj.convergence.correlations import FREQUENCIES, SHARING
from plait.vdj.convergence.figure_settings import FigureSettings
from plait.vdj.convergence.gene_strata import GeneStrata
from plait.vdj.convergence.pgen_sweep import PgenSweep
from plait.vdj.convergence.subject_jackknife import SubjectCells, subject_intervals
from plait.vdj.results import STATUS_MEANINGS

__all__ = ["PGEN_COLUMNS", "PGEN_STATUS_COLUMNS", "PgenTables"]

#: Columns of pgen_comparison.tsv.
PGEN_COLUMNS: Final = (
    "stratum_kind",
    "stratum",
    "y",
    "scope",
    "pi",
    "nu",
    "measure",
    "path_count",
    "pgen",
    "difference",
    "low",
    "high",
    "subjects_low",
    "subjects_high",
    "n",
)
#: Columns of pgen_statuses.tsv.
PGEN_STATUS_COLUMNS: Final = ("status", "clonotypes", "rows", "shared_clonotypes", "meaning")

_ZEROS: Final = {
    "ok": "above zero",
    "v_never_chosen": "zero: the model never chooses this V gene",
    "j_never_chosen": "zero: the model never chooses this J gene",
    "genes_never_together": "zero: the model never joins these genes",
    "v_not_matching": "zero: no part of the V gene that the model can leave is the beginning of the junction",
    "j_not_matching": "zero: no part of the J gene that the model can leave is the end of the junction",
    "too_many_insertions": "zero: it would take more insertions than the model makes",
    "no_scenario": "zero: no combination of genes, deletions and insertions makes it",
    "unknown_v_call": "the model has no such V gene",
    "unknown_j_call": "the model has no such J gene",
    "no_v_anchor": "the model does not know the conserved Cys of this V gene",
    "no_j_anchor": "the model does not know the conserved Phe or Trp of this J gene",
}
_SUBJECTS: Final = 4
#: Leading binary digits to which frequencies are rounded here: no more levels than that takes.
_FREQUENCY_DIGITS: Final = 6
_KINDS: Final = ("all", "subject", "v_gene", "j_gene", "vj")


@dataclass(slots=True)
class PgenTables:
    """Counted triples of path count, Pgen and sharing or frequency, in strata. Instances can be pickled.

    Clonotypes without a path count or without Pgen are in none of them; a Pgen of zero is a number like any
    other, the lowest. Strata are those of genes or subjects with the level of sharing or frequency as the
    last word of their names.

    Attributes
    ----------
    settings
        Of all tables.
    """

    settings: FigureSettings
    _sweep: PgenSweep = field(init=False)
    _by_gene: GeneStrata = field(init=False)
    _by_subject: dict[str, ContingencyTable] = field(default_factory=dict)
    _statuses: Tally = field(default_factory=lambda: Tally(("clonotypes", "rows", "shared_clonotypes")))

    def __post_init__(self) -> None:
        """Begin with empty tables."""
        self._sweep = PgenSweep(self.settings)
        self._by_gene = GeneStrata(self.settings.exact_pairs, self.settings.rounded_pairs)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes.

        Parameters
        ----------
        table
            As for `FigureTables.add_clonotypes`, with pgen_nt and pgen_status.
        """
        shared = (np.asarray(table["subjects"]) >= self.settings.shared_by).astype(np.int64)
        self._statuses.add([table["pgen_status"]], [np.ones(len(table), np.int64), table["rows"], shared])
        known = _known(table)
        self._sweep.add_clonotypes(known)
        levels = np.asarray(known[SHARING]).astype(np.int64)
        self._by_gene.add(*_values(known), _strata(known, ("v_gene", "j_gene"), levels))

    def add_pairs(self, table: pa.Table) -> None:
        """Add clonotypes in subjects.

        Parameters
        ----------
        table
            As for `FigureTables.add_pairs`, with pgen_nt.
        """
        frequency = next(name for name in FREQUENCIES if name in table.column_names)
        for y in (SHARING, frequency):
            known = _known(table.filter(pc.is_valid(table[y])))
            levels = np.asarray(known[y]).astype(np.int64)
            if y != SHARING:
                levels = _rounded(levels)
            self._subjects(y).add(*_values(known), strata=_strata(known, ("subject",), levels))

    def merge(self, other: PgenTables) -> None:
        """Add what another one holds.

        Parameters
        ----------
        other
            Of the same settings.
        """
        self._by_gene.merge(other._by_gene)
        for y, table in other._by_subject.items():
            self._subjects(y).merge(table)
        self._sweep.merge(other._sweep)
        self._statuses.merge(other._statuses)

    def status_rows(self) -> Iterator[dict[str, Any]]:
        """Rows of pgen_statuses.tsv: the most frequent first."""
        found = [(key[0], sums) for key, sums in self._statuses]
        for status, sums in sorted(found, key=lambda one: (-one[1]["clonotypes"], one[0])):
            meaning = _ZEROS.get(status, STATUS_MEANINGS.get(status, ""))
            yield {"status": status, **sums, "meaning": meaning}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of pgen_comparison.tsv: the single model in all strata, then every model of the sweep."""
        for y in (SHARING, *FREQUENCIES):
            for kind in _KINDS:
                for stratum, triples in self._strata_of(y, kind):
                    yield from self._compared(kind, stratum, y, triples)
        for place, (pi, nu) in enumerate(self._sweep.models):
            for row in self._rows("all", "", SHARING, self._sweep.triples(place)):
                yield row | {"scope": "sweep", "pi": pi, "nu": nu}

    def notes(self) -> list[str]:
        """What was rounded to keep tables small, in words."""
        digits = {f"{SHARING} by {kind}": number for kind, number in self._by_gene.digits.items()}
        digits |= {f"{y} by subject": table.digits for y, table in self._by_subject.items()}
        texts = [f"{name} {number}" for name, number in digits.items() if number is not None]
        if not texts:
            return []
        return [
            f"Comparison of path counts and Pgen: as there are more than {self.settings.exact_pairs:,} "
            f"distinct values, they were rounded; binary digits kept: {', '.join(texts)}."
        ]

    def _subjects(self, y: str) -> ContingencyTable:
        chosen = self.settings
        new = ContingencyTable(_SUBJECTS * chosen.rounded_pairs, chosen.exact_pairs)
        return self._by_subject.setdefault(y, new)

    def _strata_of(self, y: str, kind: str) -> Iterator[tuple[str, dict[str, Triples]]]:
        """Strata by name, each with its triples, all of them and those above zero."""
        by_gene = y == SHARING and kind != "subject"
        if not by_gene and (y not in self._by_subject or kind not in ("all", "subject")):
            return
        table = self._by_gene.table(kind) if by_gene else self._by_subject[y]
        if kind == "all" and not by_gene:
            table = table.grouped(lambda stratum: stratum[1:])
        names: dict[Stratum, list[Stratum]] = {}
        for name in table.strata:
            names.setdefault(name[:-1], []).append(name)
        for stratum in sorted(names):
            if "" in stratum:
                continue
            x, z, y_values, counts = _joined(table, names[stratum])
            found = {"all": triples_of(x, z, y_values, counts)}
            if kind == "all":
                above = (x > 0) & (z > 0)
                found["above_zero"] = triples_of(x[above], z[above], y_values[above], counts[above])
            yield " ".join(stratum), found

    def _compared(
        self, kind: str, stratum: str, y: str, triples: dict[str, Triples]
    ) -> Iterator[dict[str, Any]]:
        for scope, chosen in triples.items():
            over = {}
            if (kind, y, scope) == ("all", SHARING, "all"):
                over = self._over_subjects()
            for row in self._rows(kind, stratum, y, chosen, kendall=kind == "all"):
                row["scope"] = scope
                if row["measure"] in over and row["low"] is not None:
                    row["subjects_low"], row["subjects_high"] = over[row["measure"]]
                yield row

    def _rows(
        self, kind: str, stratum: str, y: str, triples: Triples, *, kendall: bool = False
    ) -> Iterator[dict[str, Any]]:
        """One row for each measure."""
        left_out = {name for name, there in (("kendall", kendall), ("auc", y == SHARING)) if not there}
        measures = [name for name in PAIRED_MEASURES if name not in left_out]
        n = int(triples.counts.sum())
        chosen = self.settings
        found = []
        if n >= chosen.fewest:
            threshold = chosen.shared_by
            found = paired_differences(measures, triples, threshold=threshold, confidence=chosen.confidence)
        for k, measure in enumerate(measures):
            row: dict[str, Any] = dict.fromkeys(PGEN_COLUMNS)
            row |= {"stratum_kind": kind, "stratum": stratum, "y": y, "measure": measure, "n": n}
            if found:
                one = found[k]
                values = {"path_count": one.x, "pgen": one.z, "difference": one.difference}
                values |= {"low": one.low, "high": one.high}
                row |= {name: None if np.isnan(value) else value for name, value in values.items()}
            yield row

    def _over_subjects(self) -> dict[str, tuple[float, float]]:
        table = self._by_subject.get(SHARING)
        if table is None:
            return {}
        names: dict[str, list[Stratum]] = {}
        for name in table.strata:
            names.setdefault(name[0], []).append(name)
        cells = [SubjectCells(*_joined(table, names[subject])) for subject in sorted(names)]
        return subject_intervals(
            cells, shared_by=self.settings.shared_by, confidence=self.settings.confidence
        )


def _known(table: pa.Table) -> pa.Table:
    """Rows with a path count and Pgen."""
    return table.filter(pc.and_(pc.is_valid(table["path_count"]), pc.is_valid(table["pgen_nt"])))


def _values(table: pa.Table) -> tuple[NDArray[Any], NDArray[np.float64]]:
    return np.asarray(table["path_count"]), np.asarray(table["pgen_nt"])


def _joined(
    table: ContingencyTable, names: Sequence[Stratum]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Values and counts of some strata, with the level of each."""
    pairs = [table.pairs(name) for name in names]
    x, z, counts = (np.concatenate([one[k] for one in pairs]) for k in range(3))
    levels = np.array([int(name[-1]) for name in names], np.int64)
    return x, z, np.repeat(levels, [len(one.counts) for one in pairs]), counts


def _strata(
    table: pa.Table, names: Sequence[str], levels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[Stratum]]:
    """Numbers of strata, and the names of those that there are: texts of columns, and the level."""
    words = []
    columns = []
    for name in names:
        encoded = pc.fill_null(table[name], "").combine_chunks().dictionary_encode()
        words.append(encoded.dictionary.to_pylist())
        columns.append(np.asarray(encoded.indices).astype(np.int64))
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


def _rounded(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers of 0 or more with a few leading binary digits; the others are made 0."""
    shift = np.maximum(np.frexp(values.astype(np.float64))[1].astype(np.int64) - _FREQUENCY_DIGITS, 0)
    return (values >> shift) << shift
