"""The tables behind figures and answers, from clonotypes that come in parts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from plait.statistics.tally import Tally
from plait.vdj.convergence.composition import COMPOSITION_COLUMNS, Composition
from plait.vdj.convergence.correlations import CORRELATION_COLUMNS, CorrelationTables
from plait.vdj.convergence.figure_settings import FigureSettings
from plait.vdj.convergence.pgen_tables import PGEN_COLUMNS, PGEN_STATUS_COLUMNS, PgenTables
from plait.vdj.convergence.sharing_levels import (
    LEVEL_COLUMNS,
    LEVEL_SUMS,
    N2_LENGTH_COLUMNS,
    PATH_COUNT_COLUMNS,
    n2_length_rows,
    path_count_rows,
    sharing_level_rows,
)
from plait.vdj.convergence.sweep_counts import SWEEP_COLUMNS, SweepCounts
from plait.vdj.convergence.table_text import write_table
from plait.vdj.convergence.top_shared import TOP_COLUMNS, TopShared
from plait.vdj.results import STATUS_MEANINGS

__all__ = ["FigureTables"]

_SUBJECT_SUMS: Final = ("rows", "clonotypes", "shared_clonotypes", "duplicate_count")
_USAGE_SUMS: Final = ("clonotypes", "rows", "shared_clonotypes")
_LENGTH_SUMS: Final = ("clonotypes", "rows")
#: Rows worked on at a time.
_BLOCK: Final = 1 << 17
_FROM_SHEET: Final = ("files", "rows_left_out")


class FigureTables:
    """Sums over clonotypes from which all tables of a study are written.

    Only whole numbers are added up, so the tables are the same bytes however the clonotypes were cut into
    parts and in whatever order these were merged. Memory is bounded; see `FigureSettings.exact_pairs`.
    Instances can be pickled.

    Parameters
    ----------
    settings
        Settings of the tables; the same ones in all parts.

    Attributes
    ----------
    settings : FigureSettings
        As given.
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
        self._found: list[dict[str, Any]] | None = None
        self._with_duplicates = False

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes.

        Parameters
        ----------
        table
            Columns junction, v_gene, j_gene, subjects, rows, path_count; and where the study has them
            duplicate_count, status, junction_length, region columns and path_count_sweep. A clonotype comes
            once.
        """
        self._found = None
        for start in range(0, len(table), _BLOCK):
            self._add_clonotypes(table.slice(start, _BLOCK))

    def _add_clonotypes(self, table: pa.Table) -> None:
        for part in (self._correlations, self._composition, self._sweep, self._top):
            part.add_clonotypes(table)
        if self._pgen is not None:
            self._pgen.add_clonotypes(table)
        ones = np.ones(len(table), np.int64)
        shared = _shared(table, self.settings)
        counted = np.asarray(table["path_count"].is_valid())
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

        Parameters
        ----------
        table
            Columns subject, rows and, where there is one, duplicate_count of each clonotype in each subject,
            with the `PAIR_COLUMNS` of the clonotype.
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
        if "junction_length" in table.column_names:
            self._lengths.add([table["subject"], table["junction_length"]], [ones, table["rows"]])

    def merge(self, other: FigureTables) -> None:
        """Add what another one holds.

        Parameters
        ----------
        other
            Of the same settings. It stays as it is.

        Raises
        ------
        ValueError
            If its settings are others.
        """
        if other.settings != self.settings:
            raise ValueError(f"settings {self.settings} and {other.settings}")
        self._found = None
        self._with_duplicates |= other._with_duplicates
        self._correlations.merge(other._correlations)
        self._composition.merge(other._composition)
        self._sweep.merge(other._sweep)
        self._top.merge(other._top)
        if self._pgen is not None and other._pgen is not None:
            self._pgen.merge(other._pgen)
        for name in ("_subjects", "_statuses", "_levels", "_usage", "_lengths"):
            getattr(self, name).merge(getattr(other, name))

    def correlations(self) -> list[dict[str, Any]]:
        """Rows of correlations.tsv; missing values are None.

        Returns
        -------
        list of dict
            stratum_kind, stratum, x, y, method, estimate, low, high, n.
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
        """Write the tables as tab-separated text.

        Parameters
        ----------
        folder
            An existing folder.
        subjects
            What the sheet says of each subject: ``files`` and ``rows_left_out`` (numbers) and covariates.

        Returns
        -------
        dict
            File of each table, by its name without ``.tsv``.

        Raises
        ------
        FormatError
            If one cannot be written.
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
