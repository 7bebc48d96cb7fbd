"""Words of pages: answers, times and values as readers want them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from plait.reports.study_figure import number_text

__all__ = ["answer_card", "as_given", "as_read", "table_heading", "when_text"]


def when_text(created: object) -> str:
    """A time for readers.

    Parameters
    ----------
    created
        As it is written in a description.
    """
    try:
        when = datetime.fromisoformat(str(created))
    except ValueError:
        return str(created)
    return f"{when:%Y-%m-%d %H:%M}{' UTC' if when.utcoffset() == timedelta(0) else ''}"


def answer_card(answer: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """An answer as the page has it.

    Parameters
    ----------
    answer
        Headline, text and figures.
    names
        Numbers whose names are not plain words.
    """
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
    """A value for readers, numbers rounded.

    Parameters
    ----------
    value
        Of a description.
    """
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
    """Parameters as they were given: rounding one would tell another.

    Parameters
    ----------
    value
        Of a description.
    """
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return as_read(value) if isinstance(value, bool) or value is None else str(value)


def table_heading(name: str, table: Mapping[str, Any]) -> dict[str, str]:
    """What stands above a table, and where all of it is.

    Parameters
    ----------
    name
        Of its file.
    table
        As `plait.reports.study_page_tables.page_tables` gives it.
    """
    shown, total = len(table["rows"]), table["total"]
    size = f"{total:,} row{'' if total == 1 else 's'}"
    note = "" if shown == total else f"The first {shown:,} rows; all are in tables/{name}.tsv."
    return {
        "name": name,
        "title": table["title"],
        "size": size,
        "note": " ".join(filter(None, (table["note"], note))),
    }
