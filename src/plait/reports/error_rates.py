"""Rates of errors of a code as a figure.

A module of its own: figures stand above what they show, of which this one shares nothing with repertoires.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plait.formats.atomic import AtomicFile, bad_output, output_errors
from plait.ldpc.simulation import ErrorRates
from plait.reports.figure import StudyFigure, check_report_drawing, drawn, figure_files


def check_figure(path: Path) -> None:
    """Refuse, before any work, a name that is no picture's, or what nothing here can draw."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise bad_output(path, "", "a name that ends in .png or .svg")
    check_report_drawing()


def error_rate_figure(found: ErrorRates, code: str) -> StudyFigure:
    """Shares of words and of bits that are wrong, by noise, with intervals; where none is, its upper end."""
    rows: list[dict[str, Any]] = []
    for of, rates in (("words", found[6:9]), ("bits", found[9:12])):
        rows += [
            {"of": of, "ebn0": x, "words": n, "rate": rate, "low": low, "high": high}
            for x, n, rate, low, high in zip(
                *(c.tolist() for c in (found.ebn0, found.words, *rates)), strict=True
            )
        ]
    # Intervals that reach 0 end below what is drawn, and those of no error in bits are not known.
    rows = [row for row in rows if row["high"] > 0]
    least = min((row[key] for row in rows for key in ("rate", "low", "high") if row[key] > 0), default=1.0)
    for row in rows:
        row["drawn_from"] = row["low"] or least / 3
    told = "; ".join(f"{row['rate']:.3g} at {row['ebn0']:g} dB" for row in rows if row["of"] == "words")
    caption = f"{code}; intervals of 95 %, with no dot where no error was seen."
    return drawn("error_rates", caption, f"Shares of wrong words: {told}.", rows)


def write_figure(figure: StudyFigure, path: Path) -> None:
    """Write a figure as PNG or SVG, as its name says."""
    png, svg = figure_files(figure)
    with AtomicFile(path) as file, output_errors(path):
        file.stream.write(svg if path.suffix.lower() == ".svg" else png)
