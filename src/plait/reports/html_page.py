"""A page of figures, tables and words in one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from plait._version import __version__
from plait.reports.study_drawing import compiled_figure, vega_library
from plait.reports.study_figure import StudyFigure
from plait.reports.study_palette import PAGE_FONT, THEMES

__all__ = ["html_page"]


def html_page(
    content: Mapping[str, Any], figures: Sequence[StudyFigure], tables: Mapping[str, Mapping[str, Any]]
) -> str:
    """A whole page.

    Parameters
    ----------
    content
        What stands in the page besides: the names of ``data/study_report.html``.
    figures
        All figures of its sections.
    tables
        Its tables by name, as `plait.reports.study_page_tables.page_tables` gives them.
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
