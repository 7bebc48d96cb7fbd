"""What ``plait vdj study`` left in its folder, read for a report: a description and small tables.

Only these are read, never rows or clonotypes, so that a report of any study is quick and small. Also what
clonotypes are measured by, path count, N2 length and Pgen, in bins by number of subjects.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from plait.errors import FormatError, InvalidInput
from plait.formats.compression import sniff
from plait.formats.delimited import DelimitedFile
from plait.formats.json_text import read_json

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
    """One table, its cells as they are written; a missing value is an empty one."""

    path: Path
    columns: Mapping[str, Sequence[str]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def texts(self, name: str) -> Sequence[str]:
        """Cells of a column; FormatError if there is no such column."""
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

        FormatError, with the line, if a cell is no number.
        """
        return [self._number(name, row, cell) for row, cell in enumerate(self.texts(name))]

    def integers(self, name: str) -> list[int]:
        """Cells of a column as whole numbers; missing ones are 0.

        FormatError, with the line, if a cell is no number.
        """
        return [round(number or 0) for number in self.numbers(name)]

    def rows(self, *names: str) -> Iterator[tuple[str, ...]]:
        """Rows of some columns, as written."""
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
    """A finished study: folder, content of ``study.json``, tables by name, those without rows left out."""

    folder: Path
    description: Mapping[str, Any]
    tables: Mapping[str, StudyTable] = field(default_factory=dict)

    def table(self, name: str) -> StudyTable | None:
        """A table of `COLUMNS`, or None where the study has none of the name, or an empty one."""
        return self.tables.get(name)

    def number(self, name: str) -> int:
        """A whole number of the description; 0 where it is missing."""
        return int(self.decimal(self.description, name))

    def decimal(self, entries: Mapping[str, Any], name: str) -> float:
        """A number of some entries of the description, 0 where missing; FormatError if it is no number."""
        found = entries.get(name) or 0
        if not isinstance(found, int | float) or not abs(found) < _LARGEST:
            told = f"{found!r:.40}" if not isinstance(found, int) else "a number that is too large"
            raise FormatError(self.folder, column=name, found=told, expected="a number")
        return float(found)

    def entries(self, name: str) -> Mapping[str, Any]:
        """A mapping of the description; an empty one where it is missing."""
        found = self.description.get(name)
        return found if isinstance(found, dict) else {}

    def items(self, name: str) -> Sequence[Mapping[str, Any]]:
        """A list of mappings of the description; an empty one where it is missing."""
        found = self.description.get(name)
        return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []

    @property
    def shared_by(self) -> int:
        """From how many subjects on a clonotype counts as shared."""
        return self.number("shared_by") or 2


def read_study(folder: str | os.PathLike[str]) -> Study:
    """Read the description and the tables of a study.

    InvalidInput if it is no folder of a finished study; FormatError if the description or a table is not what
    it should be.
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
    """Read a description, a JSON object, and the tables beside it, in the folder ``tables``.

    `columns` are those that each table must have. FormatError if the description or a table is not what it
    should be.
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


_NO_COUNTS = "The study has no path counts: its inputs were taken without them."
_NO_N2 = "The study has no N2 lengths: no clonotype has a D gene call."
_NO_PGEN = "No clonotype has a Pgen."
#: Labels such as 10k and 1M, or 1e-12, at powers of ten.
_POWERS: Final[dict[str, Any]] = {"labelExpr": "format(pow(10, datum.value), '~s')", "tickMinStep": 1}
_SMALL_POWERS: Final[dict[str, Any]] = {
    "labelExpr": "format(pow(10, datum.value), '.0e')",
    "tickMinStep": 1,
    "labelFlush": 12,
}


class Measure(NamedTuple):
    """Something that clonotypes have, with the table that tells its distribution."""

    table: str
    low: str
    high: str
    colour: str
    name: str
    title: str
    why_not: str
    powers: dict[str, Any]
    aside: str


COUNT = Measure(
    "path_count_by_sharing",
    "log10_low",
    "log10_high",
    "$count",
    "path count",
    "path count (recombination paths)",
    _NO_COUNTS,
    _POWERS,
    "a count of 0",
)
PGEN = Measure(
    "pgen_by_sharing",
    "log10_low",
    "log10_high",
    "$pgen",
    "Pgen",
    "generation probability (Pgen)",
    _NO_PGEN,
    _SMALL_POWERS,
    "a Pgen of 0",
)
N2 = Measure(
    "n2_length_by_sharing",
    "n2_length",
    "",
    "$n2",
    "N2 length",
    "N2 length (nt)",
    _NO_N2,
    {},
    "no D gene call",
)


class Bin(NamedTuple):
    """Clonotypes by number of subjects, of one bin of a measure; None where the measure has no place."""

    low: float | None
    high: float | None
    levels: dict[int, int]


def drawn_measures(study: Study) -> tuple[Measure, ...]:
    """What clonotypes of a study are measured by: Pgen only where it was computed."""
    return (COUNT, PGEN, N2) if study.table(PGEN.table) is not None else (COUNT, N2)


def measure_bins(table: StudyTable | None, measure: Measure) -> list[Bin]:
    """Clonotypes in bins of a measure, those without a place first."""
    if table is None:
        return []
    lows = table.numbers(measure.low)
    highs = table.numbers(measure.high) if measure.high else [None if x is None else x + 1 for x in lows]
    found: dict[tuple[float | None, float | None], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for low, high, level, n in zip(
        lows, highs, table.integers("subjects"), table.integers("clonotypes"), strict=True
    ):
        found[low, high][level] += n
    bins = [Bin(low, high, dict(levels)) for (low, high), levels in found.items()]
    return sorted(bins, key=lambda bin_: -math.inf if bin_.low is None else bin_.low)


def bin_middle(measure: Measure, bin_: Bin) -> float:
    """Where a bin, which has a place, is on the axis of its measure."""
    # An N2 length is a number of its own, a bin of path counts has a width.
    low, high = bin_.low or 0.0, bin_.high or 0.0
    return (low + high) / 2 if measure.high else low
