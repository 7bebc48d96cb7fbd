"""Small tables of results as tab-separated text."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from plait.errors import FormatError
from plait.formats.atomic import AtomicFile, output_errors

_MISSING = frozenset(("", "nan", "NaN"))


def write_table(
    path: str | os.PathLike[str], columns: Sequence[str], rows: Iterable[Mapping[str, object]]
) -> None:
    """Write a table: a header, then a line for each row; the file appears when it is complete.

    Numbers that are not whole are rounded to ten digits, so that they are the same text on all machines. What
    is missing, None or NaN, is an empty cell. Tabs and line ends within a text become blanks. FormatError if
    it cannot be written.
    """
    with AtomicFile(path, durable=False) as file, output_errors(path):
        file.stream.write(_line(columns))
        for row in rows:
            file.stream.write(_line([_cell(row.get(name)) for name in columns]))


def read_table(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Rows of a table that `write_table` wrote, every cell as text by column.

    FormatError if a line has more or fewer cells than the header.
    """
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    header = lines[0].split("\t")
    rows = []
    for place, line in enumerate(lines[1:-1], 2):
        cells = line.split("\t")
        if len(cells) != len(header):
            raise FormatError(
                path, line=place, found=f"{len(cells)} cells", expected=f"{len(header)}, as in the header"
            )
        rows.append(dict(zip(header, cells, strict=True)))
    return rows


def number(value: object) -> float | None:
    """A number from a cell or value; None for None, NaN or an empty text, ValueError for other text."""
    if value is None or (isinstance(value, str) and value in _MISSING):
        return None
    found = float(value)  # type: ignore[arg-type]
    return None if math.isnan(found) else found


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return _float_text(float(value))
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, Decimal):
        return str(value)
    return " ".join(str(value).split()) if isinstance(value, str) else str(value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ""
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return f"{value:.10g}"


def _line(cells: Sequence[str]) -> bytes:
    return ("\t".join(cells) + "\n").encode("utf-8")
