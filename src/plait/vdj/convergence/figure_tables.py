"""The tables behind figures and answers, from clonotypes that come in parts.

A module of its own: `stages` with it would be too long a file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.alphabets import translate
from plait.stats.contingency import Pairs, Tally, counted_quantiles
from plait.vdj.calls import STATUS_MEANINGS
from plait.vdj.convergence.claims import write_table
from plait.vdj.convergence.pgen_tables import (
    CORRELATION_COLUMNS,
    PGEN_COLUMNS,
    PGEN_STATUS_COLUMNS,
    SWEEP_COLUMNS,
    CorrelationTables,
    FigureSettings,
    PgenTables,
    SweepCounts,
)
from plait.vdj.repertoires.diversity import Abundances, DiversitySettings, Estimated, Estimator

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
    """Sums over clonotypes of the nucleotides in their N regions. Instances can be pickled."""

    settings: FigureSettings
    _sums: Tally = field(default_factory=lambda: Tally(_SUMS))
    _by_level: Tally = field(default_factory=lambda: Tally(("at", "total")))

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes, as for `FigureTables.add_clonotypes`."""
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
        """Add what another one of the same settings holds."""
        self._sums.merge(other._sums)
        self._by_level.merge(other._by_level)

    def n2_at_share(self, subjects: int) -> float | None:
        """Share of A and T among the N2 nucleotides of clonotypes that so many subjects have."""
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


_SHARES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_QUANTILES: Final = tuple(f"q{round(100 * share):02d}" for share in _SHARES)
#: What is added up by number of subjects.
LEVEL_SUMS: Final = ("clonotypes", "rows", "counted", "without_d")
#: Columns of sharing_levels.tsv.
LEVEL_COLUMNS: Final = (
    *("subjects", "clonotypes", "rows", "counted", "zero_counts"),
    *(f"path_count_{name}" for name in (*_QUANTILES, "mean_log10")),
    *(f"n2_length_{name}" for name in (*_QUANTILES, "mean")),
    "n2_at_share",
)
#: Columns of path_count_by_sharing.tsv.
PATH_COUNT_COLUMNS: Final = ("subjects", "log10_low", "log10_high", "clonotypes")
#: Columns of n2_length_by_sharing.tsv.
N2_LENGTH_COLUMNS: Final = ("subjects", "n2_length", "clonotypes")

#: Bins of a factor of ten.
_BINS: Final = 4
#: What rounding may take off a logarithm: a power of ten is in the bin that it begins.
_SLACK: Final = 1e-9


def sharing_level_rows(
    levels: Tally, path_counts: Pairs, n2_lengths: Pairs, composition: Composition
) -> Iterator[dict[str, Any]]:
    """Rows of sharing_levels.tsv, from `LEVEL_SUMS` by number of subjects.

    `path_counts` and `n2_lengths` are counted pairs with the number of subjects as y.
    """
    for (level,), sums in levels:
        row: dict[str, Any] = {"subjects": level, **sums}
        values, counts = _of_level(path_counts, level)
        row["zero_counts"] = int(counts[values == 0].sum())
        row |= _quantiles("path_count", values, counts)
        nonzero = values > 0
        row["path_count_mean_log10"] = _mean(np.log10(values[nonzero].astype(np.float64)), counts[nonzero])
        values, counts = _of_level(n2_lengths, level)
        row |= _quantiles("n2_length", values, counts)
        row["n2_length_mean"] = _mean(values, counts)
        row["n2_at_share"] = composition.n2_at_share(level)
        yield row


def path_count_rows(path_counts: Pairs) -> Iterator[dict[str, Any]]:
    """Rows of path_count_by_sharing.tsv: bins of a quarter of a power of ten; zero has a bin of its own.

    `path_counts` are counted pairs of path count and number of subjects.
    """
    for level in np.unique(path_counts.y).tolist():
        values, counts = _of_level(path_counts, level)
        zero = values == 0
        if zero.any():
            yield {"subjects": level, "clonotypes": int(counts[zero].sum())}
        logarithms = np.log10(values[~zero].astype(np.float64))
        bins, place = np.unique(np.floor(logarithms * _BINS + _SLACK).astype(np.int64), return_inverse=True)
        found = np.zeros(len(bins), np.int64)
        np.add.at(found, place, counts[~zero])
        for at, clonotypes in zip(bins.tolist(), found.tolist(), strict=True):
            yield {
                "subjects": level,
                "log10_low": at / _BINS,
                "log10_high": (at + 1) / _BINS,
                "clonotypes": clonotypes,
            }


def n2_length_rows(levels: Tally, n2_lengths: Pairs) -> Iterator[dict[str, Any]]:
    """Rows of n2_length_by_sharing.tsv: counted clonotypes; those without a D have a row of their own.

    `levels` are `LEVEL_SUMS`, `n2_lengths` counted pairs of N2 length, by number of subjects.
    """
    for (level,), sums in levels:
        if sums["without_d"]:
            yield {"subjects": level, "clonotypes": sums["without_d"]}
        values, counts = _of_level(n2_lengths, level)
        for length, clonotypes in zip(values.tolist(), counts.tolist(), strict=True):
            yield {"subjects": level, "n2_length": int(length), "clonotypes": clonotypes}


def _of_level(pairs: Pairs, level: float) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Values of x in ascending order, and how often they occur."""
    of_level = pairs.y == level
    return pairs.x[of_level], pairs.counts[of_level]


def _quantiles(name: str, values: NDArray[Any], counts: NDArray[np.int64]) -> dict[str, float | None]:
    found = counted_quantiles(values, counts, _SHARES)
    return {f"{name}_{label}": value for label, value in zip(_QUANTILES, found, strict=True)}


def _mean(values: NDArray[Any], counts: NDArray[np.int64]) -> float | None:
    n = int(counts.sum())
    return float(np.sum(values * counts)) / n if n else None


#: Columns of top_shared.tsv.
TOP_COLUMNS: Final = (
    *("junction", "junction_aa", "v_gene", "j_gene", "subjects", "rows", "duplicate_count"),
    *("path_count", "pgen_nt", "n2_length"),
)
_NAMES: Final = ("junction", "v_gene", "j_gene")
_FALLING: Final = ("subjects", "rows")
_ROW_BITS: Final = 40


@dataclass(slots=True)
class TopShared:
    """The first clonotypes by subjects, then rows, both falling, then junction, V and J. Can be pickled."""

    settings: FigureSettings
    _top: pa.Table | None = field(default=None)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes, as for `FigureTables.add_clonotypes`."""
        names = [name for name in TOP_COLUMNS if name in table.column_names]
        wanted = table.select(names)
        most = self.settings.most_shared
        if len(wanted) > most:
            # Texts are compared only among those that could be first by their numbers.
            rows = np.minimum(np.asarray(wanted["rows"]), (1 << _ROW_BITS) - 1)
            rank = (np.asarray(wanted["subjects"]).astype(np.int64) << _ROW_BITS) + rows
            least = np.partition(rank, len(rank) - most)[len(rank) - most] if most else np.iinfo(np.int64).max
            wanted = wanted.filter(pa.array(rank >= least))
        self._take(wanted)

    def merge(self, other: TopShared) -> None:
        """Add what another one of the same settings holds."""
        if other._top is not None:
            self._take(other._top)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of top_shared.tsv."""
        for row in [] if self._top is None else self._top.to_pylist():
            yield row | {"junction_aa": translate(row["junction"])}

    def _take(self, table: pa.Table) -> None:
        held = table if self._top is None else pa.concat_tables([self._top, table])
        order = [*((name, "descending") for name in _FALLING), *((name, "ascending") for name in _NAMES)]
        # Taken, not sliced: a slice would hold on to all the rest.
        self._top = held.take(pc.sort_indices(held, order)[: self.settings.most_shared])


_SUBJECT_SUMS: Final = ("rows", "clonotypes", "shared_clonotypes", "duplicate_count")
_USAGE_SUMS: Final = ("clonotypes", "rows", "shared_clonotypes")
_LENGTH_SUMS: Final = ("clonotypes", "rows")
#: Few points and repertoires drawn anew, and no subjects with more clonotypes: seconds, not minutes.
_CURVE: Final = DiversitySettings(replicates=10, knots=12)
_MOST_DRAWN: Final = 10_000_000
#: Rows worked on at a time.
_BLOCK: Final = 1 << 17
_FROM_SHEET: Final = ("files", "rows_left_out")


class FigureTables:
    """Sums over clonotypes from which all tables of a study are written. Instances can be pickled.

    Only whole numbers are added up, so the tables are the same bytes however the clonotypes were cut into
    parts and in whatever order these were merged. Memory is bounded; see `FigureSettings.exact_pairs`.
    """

    def __init__(self, settings: FigureSettings) -> None:
        self.settings = settings
        self._correlations = CorrelationTables(settings)
        self._composition = Composition(settings)
        self._sweep = SweepCounts(settings)
        self._top = TopShared(settings)
        self._pgen = PgenTables(settings) if settings.pgen else None
        self._subjects = Tally(_SUBJECT_SUMS)
        self._statuses = Tally(("rows",))
        self._levels = Tally(LEVEL_SUMS)
        self._usage = Tally(_USAGE_SUMS)
        self._lengths = Tally(_LENGTH_SUMS)
        self._v_genes = Tally(_LENGTH_SUMS)
        self._copies = Tally(("clonotypes",))
        self._found: list[dict[str, Any]] | None = None
        self._with_duplicates = False

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes; each comes once.

        Columns junction, v_gene, j_gene, subjects, rows, path_count; and where the study has them
        duplicate_count, status, junction_length, region columns and path_count_sweep.
        """
        self._found = None
        for start in range(0, len(table), _BLOCK):
            self._add_clonotypes(table.slice(start, _BLOCK))

    def _add_clonotypes(self, table: pa.Table) -> None:
        for part in (self._correlations, self._composition, self._top):
            part.add_clonotypes(table)
        if self._pgen is not None:
            self._pgen.add_clonotypes(table)
        ones = np.ones(len(table), np.int64)
        shared = _shared(table, self.settings)
        counted = np.asarray(table["path_count"].is_valid())
        self._sweep.add_clonotypes(table.filter(pa.array(counted)))
        with_n2 = np.asarray(table["n2_length"].is_valid()) if "n2_length" in table.column_names else ~counted
        self._levels.add(
            [table["subjects"]],
            [ones, table["rows"], counted.astype(np.int64), (counted & ~with_n2).astype(np.int64)],
        )
        self._usage.add([table["v_gene"], table["j_gene"]], [ones, table["rows"], shared])
        if "status" in table.column_names:
            self._statuses.add([table["status"]], [table["rows"]])

    def add_pairs(self, table: pa.Table) -> None:
        """Add clonotypes in subjects.

        Columns subject, rows and, where there is one, duplicate_count of each clonotype in each subject, with
        the `PAIR_COLUMNS` of the clonotype.
        """
        self._found = None
        for start in range(0, len(table), _BLOCK):
            self._add_pairs(table.slice(start, _BLOCK))

    def _add_pairs(self, table: pa.Table) -> None:
        self._correlations.add_pairs(table)
        if self._pgen is not None:
            self._pgen.add_pairs(table)
        ones = np.ones(len(table), np.int64)
        self._with_duplicates |= "duplicate_count" in table.column_names
        duplicates = table["duplicate_count"] if "duplicate_count" in table.column_names else 0 * ones
        self._subjects.add(
            [table["subject"]], [table["rows"], ones, _shared(table, self.settings), duplicates]
        )
        self._v_genes.add([table["subject"], table["v_gene"]], [ones, table["rows"]])
        copies = pc.coalesce(duplicates, table["rows"]) if self._with_duplicates else table["rows"]
        self._copies.add([table["subject"], copies], [ones])
        if "junction_length" in table.column_names:
            self._lengths.add([table["subject"], table["junction_length"]], [ones, table["rows"]])

    def merge(self, other: FigureTables) -> None:
        """Add what another one of the same settings holds (else ValueError); it stays as it is."""
        if other.settings != self.settings:
            raise ValueError(f"settings {self.settings} and {other.settings}")
        self._found = None
        self._with_duplicates |= other._with_duplicates
        if self._pgen is not None and other._pgen is not None:
            self._pgen.merge(other._pgen)
        tallies = ("_subjects", "_statuses", "_levels", "_usage", "_lengths", "_v_genes", "_copies")
        for name in ("_correlations", "_composition", "_sweep", "_top", *tallies):
            getattr(self, name).merge(getattr(other, name))

    def correlations(self) -> list[dict[str, Any]]:
        """Rows of correlations.tsv; missing values are None.

        Columns stratum_kind, stratum, x, y, method, estimate, low, high, n.
        """
        if self._found is None:
            self._found = list(self._correlations.rows())
        return self._found

    def notes(self) -> list[str]:
        """What was rounded to keep the tables behind the correlations small, in words."""
        return [*self._correlations.notes(), *([] if self._pgen is None else self._pgen.notes())]

    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        subjects: Mapping[str, Mapping[str, object]] | None = None,
    ) -> dict[str, Path]:
        """Write the tables as tab-separated text to an existing folder; files by name without ``.tsv``.

        `subjects` is what the sheet says of each: ``files`` and ``rows_left_out`` (numbers) and covariates.
        FormatError if a file cannot be written.
        """
        found = {}
        for name, columns, rows in self._all(subjects or {}):
            found[name] = Path(folder) / f"{name}.tsv"
            write_table(found[name], columns, rows)
        return found

    def _all(
        self, sheet: Mapping[str, Mapping[str, object]]
    ) -> Iterator[tuple[str, Sequence[str], Iterable[Mapping[str, object]]]]:
        path_counts = self._correlations.of_sharing("path_count")
        n2_lengths = self._correlations.of_sharing("n2_length")
        given = dict.fromkeys(name for row in sheet.values() for name in row)
        covariates = [name for name in given if name not in _FROM_SHEET]
        columns = ("subject", "files", "rows", "rows_left_out", *_SUBJECT_SUMS[1:], *covariates)
        yield "subjects", columns, self._subject_rows(sheet)
        yield "statuses", ("status", "rows", "meaning"), self._status_rows()
        rows = sharing_level_rows(self._levels, path_counts, n2_lengths, self._composition)
        yield "sharing_levels", LEVEL_COLUMNS, rows
        yield "path_count_by_sharing", PATH_COUNT_COLUMNS, path_count_rows(path_counts)
        yield "n2_length_by_sharing", N2_LENGTH_COLUMNS, n2_length_rows(self._levels, n2_lengths)
        yield "sweep", SWEEP_COLUMNS, self._sweep.rows()
        yield "vj_usage", ("v_gene", "j_gene", *_USAGE_SUMS), _rows(("v_gene", "j_gene"), self._usage)
        keys = ("subject", "junction_length")
        yield "cdr3_lengths", (*keys, *_LENGTH_SUMS), _rows(keys, self._lengths)
        yield (
            "v_by_subject",
            ("subject", "v_gene", *_LENGTH_SUMS),
            _rows(("subject", "v_gene"), self._v_genes),
        )
        estimates = self._estimates()
        for name, told in (
            ("diversity", [row for row, _ in estimates]),
            ("rarefaction", [row for _, curve in estimates for row in curve]),
        ):
            yield name, tuple(told[0]) if told else ("subject",), told
        yield "n_composition", COMPOSITION_COLUMNS, self._composition.rows()
        yield "correlations", CORRELATION_COLUMNS, self.correlations()
        pgen = self._pgen
        left_out = () if pgen is not None else ("pgen_nt",)
        yield "top_shared", [name for name in TOP_COLUMNS if name not in left_out], self._top.rows()
        if pgen is not None:
            by_sharing = path_count_rows(self._correlations.of_sharing("pgen_nt"))
            yield "pgen_by_sharing", PATH_COUNT_COLUMNS, by_sharing
            yield "pgen_statuses", PGEN_STATUS_COLUMNS, pgen.status_rows()
            yield "pgen_comparison", PGEN_COLUMNS, pgen.rows()

    def _estimates(self) -> list[Estimated]:
        """Diversity of each subject, and its rarefaction."""
        held: dict[str, list[tuple[int, int]]] = {}
        for (subject, copies), sums in self._copies:
            if copies > 0:
                held.setdefault(subject, []).append((copies, sums["clonotypes"]))
        estimator = Estimator(_CURVE)
        found = {subject: Abundances(*np.array(pairs, np.int64).T) for subject, pairs in held.items()}
        return [estimator(one) for one in found.items() if one[1].observed <= _MOST_DRAWN]

    def _subject_rows(self, sheet: Mapping[str, Mapping[str, object]]) -> Iterator[dict[str, object]]:
        for subject in sorted({key[0] for key, _ in self._subjects} | set(sheet)):
            sums: dict[str, object] = dict(self._subjects.get(subject))
            if not self._with_duplicates:
                sums["duplicate_count"] = None
            yield {"subject": subject, **sums, **sheet.get(subject, {})}

    def _status_rows(self) -> Iterator[dict[str, object]]:
        for status, meaning in STATUS_MEANINGS.items():
            rows = self._statuses.get(status)["rows"]
            if rows:
                yield {"status": status, "rows": rows, "meaning": meaning}


def _rows(keys: Sequence[str], tally: Tally) -> Iterator[dict[str, object]]:
    for key, sums in tally:
        yield {**dict(zip(keys, key, strict=True)), **sums}


def _shared(table: pa.Table, settings: FigureSettings) -> np.ndarray[Any, np.dtype[np.int64]]:
    """1 for a shared clonotype, 0 for any other."""
    return (np.asarray(table["subjects"]) >= settings.shared_by).astype(np.int64)
