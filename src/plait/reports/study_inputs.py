"""What ``plait vdj study`` left in its folder, read for a report: a description and small tables.

Only these are read, never rows or clonotypes, so that a report of any study is quick and small.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from plait.errors import FormatError, InvalidInput
from plait.formats.compression import sniff
from plait.formats.delimited import DelimitedFile
from plait.formats.json_text import read_json

#: What pages of a study and of an inference say: sections, names of numbers, tables with the columns that
#: they must have (they may have others).
PAGES: Final = json.loads((files("plait.reports") / "data" / "pages.json").read_text("utf-8"))
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

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Rows of some columns: numbers where a name ends in ``:f``, whole ones in ``:i``, texts else."""
        read = {"": self.texts, "f": self.numbers, "i": self.integers}
        parts = [name.partition(":") for name in names]
        yield from zip(*(read[kind](name) for name, _, kind in parts), strict=True)

    def records(self, *names: str) -> list[dict[str, Any]]:
        """Rows as `rows` gives them, by name of column."""
        plain = [name.partition(":")[0] for name in names]
        return [dict(zip(plain, cells, strict=True)) for cells in self.rows(*names)]

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
class Results:
    """A finished study: folder, content of ``study.json``, tables by name, those without rows left out."""

    folder: Path
    description: Mapping[str, Any]
    tables: Mapping[str, StudyTable] = field(default_factory=dict)

    def table(self, name: str) -> StudyTable | None:
        """A table, or None where the study has none of the name, or an empty one."""
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


def read_study(folder: str | os.PathLike[str]) -> Results:
    """Read the description and the tables of a study.

    InvalidInput if it is no folder of a finished study; FormatError if the description or a table is not what
    it should be.
    """
    columns = {name: told["columns"] for name, told in PAGES["study"]["tables"].items()}
    return read_results("study", folder, columns)


def read_results(kind: str, folder: str | os.PathLike[str], columns: Mapping[str, Sequence[str]]) -> Results:
    """Read a description, a JSON object, and the tables beside it, in the folder ``tables``.

    `columns` are those that each table must have. InvalidInput if there is no description; FormatError if it
    or a table is not what it should be.
    """
    path = Path(folder)
    described = path / PAGES[kind]["file"]
    if not described.is_file():
        there = f"{str(path)!r} without a file {described.name}"
        raise InvalidInput(
            kind,
            found=there if path.is_dir() else f"no folder {str(path)!r}",
            expected=f"the output folder of a finished {PAGES[kind]['command']}",
            hint="if that run was stopped, repeat its command with --resume",
        )
    tables = {}
    for name, needed in columns.items():
        file = path / "tables" / f"{name}.tsv"
        if file.is_file():
            table = _read_table(file)
            for column in needed:
                table.texts(column)
            if len(table):
                tables[name] = table
    return Results(path, _read_description(described), tables)


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
