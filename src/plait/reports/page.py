"""A page of figures, tables and words in one HTML file that needs no network, and its words for readers."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any, Final

from plait._version import __version__
from plait.reports.drawing import compiled_figure, vega_library
from plait.reports.figure import PAGE_FONT, THEMES, StudyFigure, number_text
from plait.reports.study_inputs import Study, StudyTable


def html_page(
    content: Mapping[str, Any], figures: Sequence[StudyFigure], tables: Mapping[str, Mapping[str, Any]]
) -> str:
    """A whole page; `tables` as `page_tables` gives them.

    `content` is what stands in it besides: the names of ``data/study_report.html``.
    """
    import jinja2
    from markupsafe import Markup

    data = files("plait.reports") / "data"
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


def when_text(created: object) -> str:
    """A time, as it is written in a description, for readers."""
    try:
        when = datetime.fromisoformat(str(created))
    except ValueError:
        return str(created)
    return f"{when:%Y-%m-%d %H:%M}{' UTC' if when.utcoffset() == timedelta(0) else ''}"


def answer_card(answer: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
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


def table_heading(name: str, table: Mapping[str, Any]) -> dict[str, str]:
    """What stands above a table of `page_tables`, and where all of it is."""
    shown, total = len(table["rows"]), table["total"]
    size = f"{total:,} row{'' if total == 1 else 's'}"
    note = "" if shown == total else f"The first {shown:,} rows; all are in tables/{name}.tsv."
    return {
        "name": name,
        "title": table["title"],
        "size": size,
        "note": " ".join(filter(None, (table["note"], note))),
    }


#: Titles, in the order of the page, and what else a reader should know.
_TITLES: Final = {
    "top_shared": ("Most shared clonotypes", "Up to 2,000, ranked by number of subjects, then rows."),
    "correlations": ("Correlations by stratum", ""),
    "pgen_comparison": (
        "Pgen and path counts compared",
        "Of each measure: of path counts, of Pgen, and the difference with its intervals.",
    ),
    "pgen_groups": (
        "Models with Pgen and path counts, held out",
        "Differences of the first model to the other: negative deviance and positive area are better.",
    ),
    "coefficients": (
        "Coefficients",
        "Per standard deviation of each predictor; stability is a share of halves.",
    ),
    "predictors": ("Predictors", ""),
    "group_comparison": ("Models beside each other", ""),
    "lambda_path": ("Penalties and coefficients", ""),
    "subjects": ("Subjects", ""),
    "vj_usage": ("V and J genes", ""),
    "sharing_levels": ("Clonotypes by number of subjects", ""),
    "n_composition": ("N nucleotides", ""),
    "sweep": ("Models of the sweep", "Quartiles are taken from bins of 0.05 in the logarithm to base 10."),
    "cdr3_lengths": ("CDR3 lengths", ""),
    "path_count_by_sharing": ("Path counts by number of subjects", "A row without bounds: counts of 0."),
    "n2_length_by_sharing": ("N2 lengths by number of subjects", "A row without a length: no D gene call."),
    "calibration": ("Calibration", ""),
    "roc": ("ROC curves", ""),
    "pgen_by_sharing": ("Pgen by number of subjects", "A row without bounds: a Pgen of 0."),
    "pgen_statuses": ("Pgen by status", "Why it is 0 or not known."),
    "statuses": ("Rows by status", ""),
}
#: A page must open at once whatever the study; the files have everything.
_MOST_CELLS = 60_000
_NUCLEOTIDE_COLUMNS: Final = frozenset(("junction", "junction_aa", "digest"))


def page_tables(
    study: Study, titles: Mapping[str, tuple[str, str]] | None = None
) -> dict[str, dict[str, Any]]:
    """Tables by name: title, note, columns, which of these are numbers or sequences, rows, and how many.

    `titles` has title and note of each table, in the order of the page; by default those of a study.
    """
    found = {}
    for name, (title, note) in (titles or _TITLES).items():
        table = study.table(name)
        if table is not None:
            found[name] = {"title": title, "note": note, **_content(table)}
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
