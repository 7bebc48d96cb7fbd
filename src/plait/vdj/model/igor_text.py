"""The text of IGoR's model files: events with their realisations, tables of numbers, anchors."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.vdj.germline.files import read_text

__all__ = [
    "MODEL_FILES",
    "IgorEvent",
    "IgorTable",
    "model_paths",
    "read_anchors",
    "read_marginals",
    "read_parameters",
]

#: Names of the files in a model folder.
MODEL_FILES = (
    "model_params.txt",
    "model_marginals.txt",
    "V_gene_CDR3_anchors.csv",
    "J_gene_CDR3_anchors.csv",
)

#: Where IGoR itself has them: its spelling, and its folders.
_OF_IGOR = (
    ("model_parms.txt", "models/model_parms.txt"),
    ("models/model_marginals.txt",),
    ("ref_genome/V_gene_CDR3_anchors.csv",),
    ("ref_genome/J_gene_CDR3_anchors.csv",),
)
_INDEX = re.compile(r"[0-9]{1,9}")
#: Of a table: an event, and what it depends on.
_MOST_AXES = 8
#: Most nucleotides that are deleted or inserted.
_MOST = 10_000


@dataclass(slots=True)
class IgorEvent:
    """An event.

    Attributes
    ----------
    kind
        ``GeneChoice``, ``Deletion``, ``Insertion`` or ``DinucMarkov``.
    nickname
        What its table is called.
    line
        Where it begins.
    found
        By index, name and value of each realisation; the value of a gene is its sequence.
    lines
        By index, where each stands.
    """

    kind: str
    nickname: str
    line: int
    found: dict[int, tuple[str, str]] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class IgorTable:
    """A table of the marginals.

    Attributes
    ----------
    line
        Where it begins.
    values
        float64.
    """

    line: int
    values: NDArray[np.float64]


def model_paths(folder: Path) -> list[Path]:
    """The four files of a model folder, as OLGA names them or, if they are not there, as IGoR does.

    Parameters
    ----------
    folder
        The folder.
    """
    found = []
    for name, others in zip(MODEL_FILES, _OF_IGOR, strict=True):
        places = [folder / one for one in (name, *others)]
        found.append(next((place for place in places if place.exists()), places[0]))
    return found


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    text = read_text(path, f"a model folder with {', '.join(MODEL_FILES)}")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield number, line.strip()


def read_parameters(path: Path) -> tuple[dict[str, IgorEvent], float]:
    """Events by nickname, and the error rate, of ``model_params.txt``.

    Raises
    ------
    FormatError
        If a line is not what it should be, or indices have gaps.
    """
    events: dict[str, IgorEvent] = {}
    section, event, error_rate = "", None, 0.0
    for number, line in _lines(path):
        if line.startswith("@"):
            section = line
        elif section == "@Event_list" and line.startswith("#"):
            words = line[1:].split(";")
            if len(words) != 5 or words[4] in events:
                expected = "#type;genes;side;priority;nickname, every nickname once"
                raise FormatError(path, line=number, found=repr(line[:80]), expected=expected)
            event = events[words[4]] = IgorEvent(words[0], words[4], number)
        elif section == "@Event_list" and line.startswith("%") and event is not None:
            _add_realisation(path, number, line, event)
        elif section == "@ErrorRate" and not line.startswith("#"):
            error_rate = _numbers(path, number, line.split(",")[:1])[0]
    for event in events.values():
        if sorted(event.found) != list(range(len(event.found))) or not event.found:
            expected = f"0 to {len(event.found) - 1}" if event.found else "at least one realisation"
            found = f"indices of {event.nickname} with gaps" if event.found else f"no {event.nickname}"
            raise FormatError(path, line=event.line, found=found, expected=expected)
    return events, error_rate


def _add_realisation(path: Path, number: int, line: str, event: IgorEvent) -> None:
    words = line[1:].split(";")
    gene = event.kind == "GeneChoice"
    if len(words) != (3 if gene else 2) or not _INDEX.fullmatch(words[-1].strip()):
        expected = "%name;sequence;index" if gene else "%value;index"
        raise FormatError(path, line=number, found=repr(line[:80]), expected=expected)
    if event.kind in ("Deletion", "Insertion"):
        value = _whole(path, number, words[0])
        if abs(value) > _MOST or (value < 0 and event.kind == "Insertion"):
            expected = f"a number of nucleotides up to {_MOST:,}"
            raise FormatError(path, line=number, found=value, expected=expected)
    index = int(words[-1])
    if index in event.found:
        raise FormatError(path, line=number, found=f"index {index} twice", expected="every index once")
    name = words[0].strip()
    event.found[index] = (name, words[1].strip() if gene else name)
    event.lines[index] = number


def _whole(path: Path, number: int, word: str) -> int:
    try:
        value = int(word)
        if abs(value) < 10**18:
            return value
    except ValueError:
        pass
    raise FormatError(path, line=number, found=repr(word[:40]), expected="a whole number")


def _numbers(path: Path, line: int, words: list[str]) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError as error:
        raise FormatError(path, line=line, found=str(error), expected="numbers") from None


def read_marginals(path: Path) -> dict[str, IgorTable]:
    """Tables of ``model_marginals.txt`` by nickname.

    Raises
    ------
    FormatError
        If a line is not what it should be, or a table has more or fewer numbers than its shape says.
    """
    tables: dict[str, IgorTable] = {}
    name, start, shape, values = "", 0, _no_shape(), list[float]()
    for number, line in [*_lines(path), (0, "@")]:
        if line.startswith("@"):
            if line[1:] in (*tables, name) and name:
                raise FormatError(path, line=number, found=f"{line} twice", expected="every table once")
            if name:
                tables[name] = _table(path, name, start, shape, values)
            name, start, shape, values = line[1:], number, _no_shape(), []
        elif line.startswith("$Dim"):
            words = line[4:].strip("[]").split(",")
            shape = tuple(_whole(path, number, word) for word in words)
        elif line.startswith("%"):
            values += _numbers(path, number, line[1:].split(","))
    return tables


def _no_shape() -> tuple[int, ...]:
    return ()


def _table(path: Path, name: str, line: int, shape: tuple[int, ...], values: list[float]) -> IgorTable:
    sized = min(shape, default=-1) >= 0 and len(shape) <= _MOST_AXES
    if not sized or len(values) != math.prod(shape):
        expected = f"{math.prod(shape)}, as $Dim{list(shape)} says" if sized else "a line $Dim[...] of sizes"
        raise FormatError(path, line=line, found=f"{len(values)} numbers of {name}", expected=expected)
    return IgorTable(line, np.array(values).reshape(shape))


def read_anchors(path: Path) -> dict[str, tuple[int, str]]:
    """Anchor and functionality by gene.

    Raises
    ------
    FormatError
        If a column is missing, or an anchor is no position.
    """
    anchors: dict[str, tuple[int, str]] = {}
    lines = list(_lines(path))
    header = lines[0][1] if lines else ""
    # OLGA separates columns by commas, IGoR by semicolons.
    mark = ";" if ";" in header and "," not in header else ","
    reader = csv.DictReader((line for _, line in lines), restval="", delimiter=mark)
    try:
        missing = {"gene", "anchor_index"} - set(reader.fieldnames or ())
    except csv.Error as error:
        raise FormatError(path, line=1, found=str(error), expected="a table of anchors") from error
    if missing:
        found = f"no column {' and no column '.join(sorted(missing))}"
        expected = "columns gene, anchor_index and function"
        raise FormatError(path, line=1, found=found, expected=expected)
    for (number, _), row in zip(lines[1:], _rows(path, lines, reader), strict=False):
        index = row["anchor_index"].strip()
        if not _INDEX.fullmatch(index):
            expected = "a position from 0 on"
            raise FormatError(
                path, line=number, column="anchor_index", found=repr(index[:40]), expected=expected
            )
        found_here = (int(index), (row.get("function") or "").strip())
        if anchors.setdefault(row["gene"].strip(), found_here) != found_here:
            found = f"another row for {row['gene'][:40]!r}"
            raise FormatError(path, line=number, found=found, expected="one row for each gene")
    return anchors


def _rows(path: Path, lines: list[tuple[int, str]], reader: csv.DictReader[str]) -> Iterator[dict[str, str]]:
    try:
        yield from reader
    except csv.Error as error:
        number = lines[min(reader.line_num, len(lines)) - 1][0]
        raise FormatError(path, line=number, found=str(error), expected="a table of anchors") from error
