"""Results in a folder, read for a report, and a page of figures, tables and words in one HTML file.

Only a description and small tables are read, never rows or clonotypes, so that a report of any study is quick
and small. The page needs no network.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from plait._version import __version__
from plait.errors import FormatError, InvalidInput
from plait.formats.files import read_json, sniff
from plait.formats.rearrangements import DelimitedFile
from plait.reports.figure import PAGE_FONT, THEMES, StudyFigure, compiled_figure, number_text, vega_library

#: What pages of a study and of an inference say: sections, names of numbers, tables with the columns that
#: they must have (they may have others).
PAGES: Final = json.loads((Path(__file__).with_name("data") / "pages.json").read_text("utf-8"))
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


def report_page(
    kind: str,
    study: Results,
    figures: Sequence[StudyFigure],
    *,
    title: str,
    facts: Sequence[tuple[str, str]],
    methods: Sequence[Mapping[str, Any]],
    warnings: Mapping[str, Sequence[str]],
) -> str:
    """A whole page, of a ``study`` or an ``inference``; `warnings` by section."""
    page = PAGES[kind]
    tables = _page_tables(study, page["tables"])
    created = study.description.get("created")
    answers = {str(answer.get("id", n)): answer for n, answer in enumerate(study.items("answers"))}
    # What a reader in a hurry is told: a sentence from each of three answers, and three figures.
    first = [name for name in page["opening"]["answers"] if name in answers] or list(answers)
    there = {figure.name: figure for figure in figures if figure.spec is not None}
    opening = [there[name] for name in page["opening"]["figures"] if name in there][:3]
    sections = []
    for anchor, told in page["sections"].items():
        mine = [figure for figure in figures if figure.section == anchor and figure not in opening]
        if mine:
            drawn = {"figures": _merged(mine), "warnings": warnings.get(anchor, ())}
            sections.append({"anchor": anchor, **told, **drawn})
    content = {
        **page["words"],
        "title": title,
        "created": _when_text(created) if created else "",
        "facts": facts,
        "short": [str(answers[name].get("headline", "")) for name in first[:3]],
        "opening": opening,
        "answers": [_answer_card(answer, page["names"]) for answer in answers.values()],
        "methods": methods,
        "made_from": f"the {kind} in the folder {study.folder.resolve().name}",
        "command": page["command"],
        "sections": sections,
        "contents": [
            ("short", "In short"),
            *([("answers", "Answers")] if answers else []),
            *((section["anchor"], section["short"]) for section in sections),
            *(("tables", "Tables"), ("methods", "Methods")),
        ],
        "tables": [_table_heading(name, table) for name, table in tables.items()],
    }
    return _html_page(content, figures, tables)


def _merged(figures: list[StudyFigure]) -> list[StudyFigure]:
    """One card in place of all figures of a section that are missing for one reason."""
    reasons = {figure.caption for figure in figures if figure.spec is None}
    if len(figures) < 2 or len(reasons) > 1 or any(figure.spec is not None for figure in figures):
        return figures
    first, *others = figures
    title = "; ".join([first.title, *(figure.title[0].lower() + figure.title[1:] for figure in others)])
    return [replace(first, title=title, half=False)]


def _html_page(
    content: Mapping[str, Any], figures: Sequence[StudyFigure], tables: Mapping[str, Mapping[str, Any]]
) -> str:
    """The template ``data/study_report.html`` with its names filled in."""
    import jinja2
    from markupsafe import Markup

    data = Path(__file__).with_name("data")
    script, library = (data / "study_report.js").read_text("utf-8"), vega_library()
    # Whatever is put in is escaped, but for what is marked as safe below.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    template = environment.from_string((data / "study_report.html").read_text("utf-8"))
    return template.render(
        **content,
        plait=__version__,
        policy=_policy(script, library),
        style=Markup(_colours() + (data / "study_report.css").read_text("utf-8")),
        figures_json=Markup(_json(_drawn(figures))),
        tables_json=Markup(_json(tables)),
        themes_json=Markup(_json({**THEMES, "font": PAGE_FONT})),
        library=Markup(library),
        script=Markup(script),
    )


def _json(content: object) -> str:
    """JSON that can stand in a script element: nothing in it can end the element or open another."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for symbol in "<>&\u2028\u2029":
        text = text.replace(symbol, f"\\u{ord(symbol):04x}")
    return text


def _policy(*scripts: str) -> str:
    """What the browser may do: run these two scripts, and fetch nothing."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
        for text in scripts
    )
    # Vega compiles expressions of figures, which is what unsafe-eval allows; inline styles are its, too.
    return (
        f"default-src 'none'; script-src {hashes} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: "
        "blob:; base-uri 'none'; form-action 'none'"
    )


def _colours() -> str:
    properties = {
        name: "".join(f"--{key}:{value};" for key, value in colours.items() if not key[-1].isdigit())
        for name, colours in THEMES.items()
    }
    return (
        f":root{{--font:{PAGE_FONT};{properties['light']}}}\n@media screen and "
        f"(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{properties['dark']}}}}}\n@media "
        f"screen{{:root[data-theme=dark]{{{properties['dark']}}}}}\n"
    )


def _drawn(figures: Sequence[StudyFigure]) -> dict[str, object]:
    drawn: dict[str, object] = {}
    for figure in figures:
        compiled = compiled_figure(figure)
        if compiled is not None:
            panels = _panels(figure) if figure.cell[1] else 0
            drawn[figure.name] = {"spec": compiled, "cell": figure.cell, "panels": panels}
    return drawn


def _panels(figure: StudyFigure) -> int:
    spec = figure.spec or {}
    field = spec["facet"]["field"]
    return len({value[field] for value in spec["data"]["values"]})


def _when_text(created: object) -> str:
    """A time, as it is written in a description, for readers."""
    try:
        when = datetime.fromisoformat(str(created))
    except ValueError:
        return str(created)
    return f"{when:%Y-%m-%d %H:%M}{' UTC' if when.utcoffset() == timedelta(0) else ''}"


def _answer_card(answer: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """An answer as the page has it; `names` are of numbers whose names are not plain words."""
    figures = answer.get("figures")
    text = str(answer.get("text", ""))
    # What comes after the first sentence is for those who want to know more.
    first, mark, more = text.partition(". ")
    return {
        "headline": str(answer.get("headline", "")),
        "text": first + mark.strip(),
        "more": more,
        "numbers": _numbers(figures, names) if isinstance(figures, dict) else [],
    }


def _numbers(figures: Mapping[str, Any], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Numbers by name, each with its interval."""
    told = []
    for name, value in figures.items():
        end = name.removesuffix("_low").removesuffix("_high")
        if isinstance(value, bool) or not isinstance(value, int | float) or (end != name and end in figures):
            continue
        text = number_text(float(value))
        low, high = figures.get(f"{name}_low"), figures.get(f"{name}_high")
        if isinstance(low, int | float) and isinstance(high, int | float):
            text += f" ({number_text(float(low))} to {number_text(float(high))})"
        told.append((names.get(name, name.replace("_", " ")), text))
    return told


def as_read(value: object) -> str:
    """A value for readers, numbers rounded."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int | float):
        return number_text(float(value))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {as_read(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(as_read(item) for item in value)
    return str(value)


def as_given(value: object) -> str:
    """Parameters as they were given: rounding one would tell another."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return as_read(value) if isinstance(value, bool) or value is None else str(value)


def listed(entries: Mapping[str, Any], told: Callable[[object], str] = as_given) -> list[list[str]]:
    """Names in plain words, and values."""
    return [[name.replace("_", " "), told(value)] for name, value in entries.items()]


def _table_heading(name: str, table: Mapping[str, Any]) -> dict[str, str]:
    """What stands above a table of the page, and where all of it is."""
    shown, total = len(table["rows"]), table["total"]
    size = f"{total:,} row{'' if total == 1 else 's'}"
    note = "" if shown == total else f"The first {shown:,} rows; all are in tables/{name}.tsv."
    return {
        "name": name,
        "title": table["title"],
        "size": size,
        "note": " ".join(filter(None, (table["note"], note))),
    }


#: A page must open at once whatever the study; the files have everything.
_MOST_CELLS = 60_000
_NUCLEOTIDE_COLUMNS: Final = frozenset(("junction", "junction_aa", "digest"))


def _page_tables(study: Results, titles: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    """Tables by name: title, note, columns, which of these are numbers or sequences, rows, and how many."""
    found = {}
    for name, told in titles.items():
        table = study.table(name)
        if table is not None:
            found[name] = {"title": told["title"], "note": told["note"], **_content(table)}
    return found


def _content(table: StudyTable) -> dict[str, Any]:
    names = list(table.columns)
    most = max(1, _MOST_CELLS // len(names))
    return {
        "columns": names,
        "numeric": [_is_numeric(table.columns[name]) for name in names],
        "sequence": [name in _NUCLEOTIDE_COLUMNS for name in names],
        "rows": [list(row) for row, _ in zip(table.rows(*names), range(most), strict=False)],
        "total": len(table),
    }


def _is_numeric(cells: Any) -> bool:
    some = False
    for cell in cells:
        if cell:
            some = True
            try:
                float(cell)
            except ValueError:
                return False
    return some
