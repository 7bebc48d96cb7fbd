"""What ``plait vdj study`` left in its folder, read for a report: a description and small tables.

Only these are read, never rows or clonotypes, so that a report of any study is quick and small.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from plait.errors import FormatError, InvalidInput
from plait.formats.compression import sniff
from plait.formats.delimited import DelimitedFile
from plait.formats.json_text import read_json

__all__ = ["COLUMNS", "Study", "StudyTable", "read_results", "read_study"]

#: Columns that a table must have; it may have others.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "subjects": ("subject", "rows", "clonotypes", "shared_clonotypes"),
    "statuses": ("status", "rows", "meaning"),
    "sharing_levels": ("subjects", "clonotypes"),
    "path_count_by_sharing": ("subjects", "log10_low", "log10_high", "clonotypes"),
    "n2_length_by_sharing": ("subjects", "n2_length", "clonotypes"),
    "sweep": ("pi", "nu", "subjects", "counted", "zero_counts", "path_count_q50"),
    "vj_usage": ("v_gene", "j_gene", "clonotypes", "rows", "shared_clonotypes"),
    "cdr3_lengths": ("subject", "junction_length", "clonotypes"),
    "n_composition": ("span", "shared", "base", "nucleotides", "share", "low", "high"),
    "correlations": ("stratum_kind", "stratum", "x", "y", "method", "estimate", "low", "high", "n"),
    "top_shared": ("junction", "v_gene", "j_gene", "subjects"),
    "predictors": ("predictor", "group"),
    "lambda_path": ("index", "lambda", "nonzero", "cv_deviance", "chosen"),
    "coefficients": ("predictor", "mle", "stability"),
    "calibration": ("predicted", "observed", "n"),
    "roc": ("model", "false_positive_rate", "true_positive_rate"),
    "group_comparison": ("model", "delta_vs_all"),
    "pgen_by_sharing": ("subjects", "log10_low", "log10_high", "clonotypes"),
    "pgen_statuses": ("status", "clonotypes"),
    "pgen_comparison": ("stratum_kind", "stratum", "y", "scope", "measure", "difference", "low", "high", "n"),
    "pgen_groups": ("model", "other", "deviance_less"),
}
_BATCH_ROWS = 1 << 16
#: No number of a description is anywhere near.
_LARGEST = 1e18


@dataclass(frozen=True, slots=True)
class StudyTable:
    """One table, its cells as they are written.

    Attributes
    ----------
    path : Path
        Where it was read.
    columns : Mapping[str, Sequence[str]]
        Cells by column; a missing value is an empty one.
    """

    path: Path
    columns: Mapping[str, Sequence[str]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def texts(self, name: str) -> Sequence[str]:
        """Cells of a column.

        Parameters
        ----------
        name
            The column.

        Raises
        ------
        FormatError
            If there is no such column.
        """
        if name not in self.columns:
            raise FormatError(
                self.path,
                found=f"the columns {', '.join(self.columns)}",
                expected=f"a column {name!r} among them",
                hint="make the study again with this version of plait",
            )
        return self.columns[name]

    def numbers(self, name: str) -> list[float | None]:
        """Cells of a column as numbers; None where missing or not finite.

        Parameters
        ----------
        name
            The column.

        Raises
        ------
        FormatError
            If a cell is no number, with its line.
        """
        return [self._number(name, row, cell) for row, cell in enumerate(self.texts(name))]

    def integers(self, name: str) -> list[int]:
        """Cells of a column as whole numbers; missing ones are 0.

        Parameters
        ----------
        name
            The column.

        Raises
        ------
        FormatError
            If a cell is no number, with its line.
        """
        return [round(number or 0) for number in self.numbers(name)]

    def rows(self, *names: str) -> Iterator[tuple[str, ...]]:
        """Rows of some columns, as written.

        Parameters
        ----------
        *names
            The columns.

        Yields
        ------
        tuple of str
            One row.
        """
        yield from zip(*(self.texts(name) for name in names), strict=True)

    def _number(self, name: str, row: int, cell: str) -> float | None:
        if not cell:
            return None
        try:
            number = float(cell)
        except ValueError:
            # The header is line 1.
            raise FormatError(
                self.path, line=row + 2, column=name, found=repr(cell), expected="a number or an empty cell"
            ) from None
        return number if math.isfinite(number) else None


@dataclass(frozen=True, slots=True)
class Study:
    """A finished study.

    Attributes
    ----------
    folder : Path
        Where it is.
    description : Mapping
        The content of ``study.json``.
    tables : Mapping[str, StudyTable]
        Tables by name, those without rows left out.
    """

    folder: Path
    description: Mapping[str, Any]
    tables: Mapping[str, StudyTable] = field(default_factory=dict)

    def table(self, name: str) -> StudyTable | None:
        """A table, or None where the study has none of the name, or an empty one.

        Parameters
        ----------
        name
            Of `COLUMNS`.
        """
        return self.tables.get(name)

    def number(self, name: str) -> int:
        """A whole number of the description; 0 where it is missing.

        Parameters
        ----------
        name
            The key.
        """
        return int(self.decimal(self.description, name))

    def decimal(self, entries: Mapping[str, Any], name: str) -> float:
        """A number of some entries of the description; 0 where it is missing.

        Parameters
        ----------
        entries
            From `entries`, or the description.
        name
            The key.

        Raises
        ------
        FormatError
            If it is no number.
        """
        found = entries.get(name) or 0
        if not isinstance(found, int | float) or not abs(found) < _LARGEST:
            told = f"{found!r:.40}" if not isinstance(found, int) else "a number that is too large"
            raise FormatError(self.folder, column=name, found=told, expected="a number")
        return float(found)

    def entries(self, name: str) -> Mapping[str, Any]:
        """A mapping of the description; an empty one where it is missing.

        Parameters
        ----------
        name
            The key.
        """
        found = self.description.get(name)
        return found if isinstance(found, dict) else {}

    def items(self, name: str) -> Sequence[Mapping[str, Any]]:
        """A list of mappings of the description; an empty one where it is missing.

        Parameters
        ----------
        name
            The key.
        """
        found = self.description.get(name)
        return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []

    @property
    def shared_by(self) -> int:
        """From how many subjects on a clonotype counts as shared."""
        return self.number("shared_by") or 2


def read_study(folder: str | os.PathLike[str]) -> Study:
    """Read the description and the tables of a study.

    Parameters
    ----------
    folder
        What ``plait vdj study`` was told to write.

    Raises
    ------
    InvalidInput
        If it is no folder of a finished study.
    FormatError
        If the description or a table is not what it should be.
    """
    path = Path(folder)
    described = path / "study.json"
    if not described.is_file():
        raise InvalidInput(
            "study",
            found=f"{str(path)!r} without a file study.json" if path.is_dir() else f"no folder {str(path)!r}",
            expected="the output folder of a finished plait vdj study",
            hint="if that run was stopped, repeat its command with --resume",
        )
    return read_results(path, described, COLUMNS)


def read_results(folder: Path, described: Path, columns: Mapping[str, Sequence[str]]) -> Study:
    """Read a description and the tables beside it, in the folder ``tables``.

    Parameters
    ----------
    folder
        The folder.
    described
        Its description, a file with a JSON object.
    columns
        Columns that each table must have.

    Raises
    ------
    FormatError
        If the description or a table is not what it should be.
    """
    tables = {}
    for name, needed in columns.items():
        file = folder / "tables" / f"{name}.tsv"
        if file.is_file():
            table = _read_table(file)
            for column in needed:
                table.texts(column)
            if len(table):
                tables[name] = table
    return Study(folder, _read_description(described), tables)


def _read_description(path: Path) -> Mapping[str, Any]:
    found = read_json(path, expected="the description of a run, as JSON")
    if not isinstance(found, dict):
        raise FormatError(path, found=type(found).__name__, expected="a JSON object")
    return found


def _read_table(path: Path) -> StudyTable:
    reader = DelimitedFile(path, sniff(path))
    columns: dict[str, list[str]] = {name: [] for name in reader.schema.names}
    for batch in reader.batches(_BATCH_ROWS):
        for name, cells in zip(batch.schema.names, batch.columns, strict=True):
            columns[name] += cells.to_pylist()
    return StudyTable(path, columns)
