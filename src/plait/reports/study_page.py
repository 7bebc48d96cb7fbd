"""The page of a study report: words, figures and tables put into one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any, Final

from plait._version import __version__
from plait.reports.study_drawing import compiled_figure, drawn_with, vega_library
from plait.reports.study_figure import SECTIONS, StudyFigure, number_text
from plait.reports.study_inputs import Study
from plait.reports.study_page_tables import page_tables
from plait.reports.study_palette import PAGE_FONT, THEMES

__all__ = ["study_page"]

_LEADS: Final[Mapping[str, str]] = {
    "drivers": (
        "Convergent recombination says that what can be made in more ways is found in more subjects. Both "
        "figures have the same scale, so that path count and N2 length can be compared."
    ),
    "distributions": "Whole distributions, because medians that differ little can hide much, and the other "
    "way round.",
    "regression": (
        "Logistic regression of shared (1) on unshared (0) clonotypes, all predictors standardised, with an "
        "adaptive LASSO. What is called held out was predicted by models that had not seen it."
    ),
    "correlations": "Rank correlations take each predictor alone: what goes together with it is not held "
    "still.",
    "sweep": "The same clonotypes counted under every model of the sweep.",
    "repertoires": "What the repertoires are made of, to judge whether the comparison is fair.",
}
_MOST_INPUTS: Final = 500
#: Numbers of answers whose names are not plain words.
_NAMES: Final[Mapping[str, str]] = {
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "published_spearman": "published rho",
    "cv_deviance_all": "held-out deviance",
    "auc_counts_only": "AUC, path counts alone",
    "auc_n2_only": "AUC, N2 alone",
    "auc_counts_and_n2": "AUC, path counts and N2",
    "auc_all": "AUC, all",
    "auc_all_without_counts": "AUC, all but path counts",
    "auc_all_without_n2": "AUC, all but N2",
}


def study_page(study: Study, figures: Sequence[StudyFigure]) -> str:
    """The whole page.

    Parameters
    ----------
    study
        What it is about.
    figures
        From `plait.reports.study_report.study_figures`.

    Returns
    -------
    str
        HTML.
    """
    import jinja2
    from markupsafe import Markup

    data = files("plait.reports") / "data"
    script, library = (data / "study_report.js").read_text("utf-8"), vega_library()
    tables = page_tables(study)
    # Whatever is put in is escaped, but for what is marked as safe below.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    template = environment.from_string((data / "study_report.html").read_text("utf-8"))
    return template.render(
        **_words(study),
        plait=__version__,
        policy=_policy(script, library),
        style=Markup(_colours() + (data / "study_report.css").read_text("utf-8")),
        sections=_sections(study, figures),
        contents=_contents(figures),
        tables=[_table_heading(name, table) for name, table in tables.items()],
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


def _contents(figures: Sequence[StudyFigure]) -> list[tuple[str, str]]:
    short = {
        "answers": "Answers",
        "drivers": "Sharing",
        "distributions": "Distributions",
        "regression": "Regression",
        "correlations": "Correlations",
        "sweep": "Models",
        "repertoires": "Repertoires",
        "tables": "Tables",
        "methods": "Methods",
    }
    there = {figure.section for figure in figures} | {"answers", "tables", "methods"}
    return [(anchor, name) for anchor, name in short.items() if anchor in there]


def _sections(study: Study, figures: Sequence[StudyFigure]) -> list[dict[str, Any]]:
    sections = []
    for anchor, title in SECTIONS.items():
        mine = [figure for figure in figures if figure.section == anchor]
        if mine:
            told = study.entries("regression").get("warnings") if anchor == "regression" else None
            warnings = [str(text) for text in told] if isinstance(told, list) else []
            lead = _LEADS[anchor]
            sections.append(
                {
                    "anchor": anchor,
                    "title": title,
                    "lead": lead,
                    "figures": _merged(mine),
                    "warnings": warnings,
                }
            )
    return sections


def _merged(figures: list[StudyFigure]) -> list[StudyFigure]:
    """One card in place of all figures of a section that are missing for one reason."""
    reasons = {figure.caption for figure in figures if figure.spec is None}
    if len(figures) < 2 or len(reasons) > 1 or any(figure.spec is not None for figure in figures):
        return figures
    first, *others = figures
    title = "; ".join([first.title, *(figure.title[0].lower() + figure.title[1:] for figure in others)])
    return [replace(first, title=title, half=False)]


def _words(study: Study) -> dict[str, Any]:
    clonotypes, subjects = study.number("clonotypes"), study.number("subjects")
    rows, shared = study.number("rows"), study.number("shared_clonotypes")
    left = sum(int(n) for n in study.entries("left_out").values() if isinstance(n, int | float))
    several = f"{subjects:,} subject{'' if subjects == 1 else 's'}"
    facts = [("subjects", f"{subjects:,}"), ("rows", f"{rows:,}"), ("clonotypes", f"{clonotypes:,}")]
    if subjects > 1:
        share = f" ({shared / clonotypes:.1%})" if clonotypes else ""
        facts.append((f"in {study.shared_by} or more subjects", f"{shared:,}{share}"))
    facts.append(("rows left out", f"{left:,}"))
    created = study.description.get("created")
    return {
        "title": f"Convergent recombination in {several}",
        "under": (
            "Are clonotypes that V(D)J recombination can make in more ways found in more subjects, or do N2 "
            "length and composition tell more? A clonotype is a junction with its V and J gene."
        ),
        "created": _when(created) if created else "",
        "facts": facts,
        "answers": [_answer(answer) for answer in study.items("answers")],
        "tables_lead": (
            "They hold what the figures are drawn from; the files of the same names lie in the folder "
            "tables of the study."
        ),
        "methods": _methods(study),
        "methods_lead": "What it takes to make the study again.",
        "made_from": f"the study in the folder {study.folder.resolve().name}",
    }


def _when(created: object) -> str:
    try:
        when = datetime.fromisoformat(str(created))
    except ValueError:
        return str(created)
    return f"{when:%Y-%m-%d %H:%M}{' UTC' if when.utcoffset() == timedelta(0) else ''}"


def _answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    figures = answer.get("figures")
    text = str(answer.get("text", ""))
    # What comes after the first sentence is for those who want to know more.
    first, mark, more = text.partition(". ")
    return {
        "headline": str(answer.get("headline", "")),
        "text": first + mark.strip(),
        "more": more,
        "numbers": _numbers(figures) if isinstance(figures, dict) else [],
    }


def _numbers(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
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
        told.append((_NAMES.get(name, name.replace("_", " ")), text))
    return told


def _value(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int | float):
        return number_text(float(value))
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_value(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value)
    return str(value)


def _methods(study: Study) -> list[dict[str, Any]]:
    described = study.description
    parts: list[dict[str, Any]] = []
    for key, title in (("parameters", "Parameters"), ("provenance", "Versions and provenance")):
        rows = [[name.replace("_", " "), _plain(value)] for name, value in study.entries(key).items()]
        if key == "provenance":
            made = [["study made by plait", _plain(described.get("version", "unknown"))]]
            rows = [*made, ["report made by plait", __version__], ["figures drawn with", drawn_with()], *rows]
        parts.append({"title": title, "rows": rows})
    inputs = [
        [str(item.get("file", "")), ", ".join(f"{k}: {_plain(v)}" for k, v in item.items() if k != "file")]
        for item in study.items("inputs")
    ]
    parts.append({"title": f"Inputs ({len(inputs):,})", "rows": inputs[:_MOST_INPUTS]})
    if len(inputs) > _MOST_INPUTS:
        parts[-1]["rows"].append([f"{len(inputs) - _MOST_INPUTS:,} more", "in study.json"])
    left = [[name.replace("_", " "), f"{_plain(n)} rows"] for name, n in study.entries("left_out").items()]
    parts.append({"title": "Rows left out", "rows": left or [["none", ""]]})
    regression = [
        [k.replace("_", " "), _value(v)] for k, v in study.entries("regression").items() if k != "warnings"
    ]
    if regression:
        parts.append({"title": "Regression", "rows": regression})
    timings = [[k.replace("_", " "), f"{_value(v)} s"] for k, v in study.entries("timings").items()]
    if timings:
        parts.append({"title": "Time taken", "rows": timings})
    return parts


def _plain(value: object) -> str:
    """Parameters as they were given: rounding one would tell another."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return _value(value) if isinstance(value, bool) or value is None else str(value)


def _table_heading(name: str, table: Mapping[str, Any]) -> dict[str, str]:
    shown, total = len(table["rows"]), table["total"]
    size = f"{total:,} row{'' if total == 1 else 's'}"
    note = "" if shown == total else f"The first {shown:,} rows; all are in tables/{name}.tsv."
    return {
        "name": name,
        "title": table["title"],
        "size": size,
        "note": " ".join(filter(None, (table["note"], note))),
    }
