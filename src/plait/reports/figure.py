"""One figure of a study report: what it is defined by, and the parts that figures share.

Figures name colours, by what they mean, with a dollar sign before them, and are painted last, so that one
definition serves the light page, the dark one and the files. The hues are Okabe and Ito's, made lighter or
darker until each stands out from its background (at least 3 to 1 for marks and 4.5 to 1 for text; a test
computes it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

THEMES: Final[Mapping[str, Mapping[str, str]]] = {
    "light": {
        "page": "#f6f7f8",
        "paper": "#ffffff",
        "ink": "#16191d",
        "quiet": "#535b65",
        "line": "#b4bbc3",
        "grid": "#e6e9ec",
        "alone": "#6b7885",
        "shared": "#cf5a00",
        "count": "#0072b2",
        "pgen": "#a8323e",
        "n2": "#00866a",
        "n1": "#b0508a",
        "ndn": "#7355a8",
        "region": "#8a6a00",
        "v_family": "#5d6873",
        "j_family": "#7c8792",
        "link": "#005b8f",
        "level0": "#7b8794",
        "level1": "#db7a33",
        "level2": "#cf5a00",
        "level3": "#9a4000",
        "level4": "#5f2600",
        "sequence0": "#e9f1f8",
        "sequence1": "#c5dbee",
        "sequence2": "#94bfe0",
        "sequence3": "#5c9bcb",
        "sequence4": "#2f77b0",
        "sequence5": "#14558b",
        "sequence6": "#082f58",
    },
    "dark": {
        "page": "#0f1215",
        "paper": "#171b20",
        "ink": "#eef1f4",
        "quiet": "#abb4be",
        "line": "#505a65",
        "grid": "#2a3037",
        "alone": "#98a5b2",
        "shared": "#ff8f45",
        "count": "#5bb8ee",
        "pgen": "#ff8088",
        "n2": "#2dc99c",
        "n1": "#e79bc7",
        "ndn": "#bba1ea",
        "region": "#d8b848",
        "v_family": "#939ea9",
        "j_family": "#c5ccd3",
        "link": "#7cc4f2",
        "level0": "#8b97a3",
        "level1": "#bf641f",
        "level2": "#f38331",
        "level3": "#ffab6d",
        "level4": "#ffd8b8",
        "sequence0": "#2b3a4a",
        "sequence1": "#274a68",
        "sequence2": "#245d88",
        "sequence3": "#307db2",
        "sequence4": "#52a1d3",
        "sequence5": "#8ac5e8",
        "sequence6": "#cde8f8",
    },
}
#: Colours of numbers of subjects, from one to many.
LEVELS: Final = tuple(f"$level{k}" for k in range(5))
#: Colours of an amount, from little to much.
SEQUENCE: Final = tuple(f"$sequence{k}" for k in range(7))
#: Groups of predictors.
GROUP_COLOURS: Final[Mapping[str, str]] = {
    "path_count": "$count",
    "pgen": "$pgen",
    "n2": "$n2",
    "n1": "$n1",
    "ndn": "$ndn",
    "region": "$region",
    "v_family": "$v_family",
    "j_family": "$j_family",
}
PAGE_FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
#: The converter to PNG brings this one.
FILE_FONT: Final = "Liberation Sans, Arial, Helvetica, sans-serif"


def paint(spec: Any, colours: Mapping[str, str]) -> Any:
    """Put colours in place of names such as ``$ink`` everywhere but in data."""
    if isinstance(spec, str):
        return colours.get(spec[1:], spec) if spec.startswith("$") else spec
    if isinstance(spec, dict):
        return {key: value if key == "values" else paint(value, colours) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [paint(item, colours) for item in spec]
    return spec


Spec = dict[str, Any]
#: Width of a figure in a file, in pixels; in the page it is as wide as its place.
FILE_WIDTH: Final = 760
#: A share of fewer clonotypes is not drawn: its interval would hide the others.
LEAST_IN_A_POINT: Final = 20
#: Models of predictor groups, as tables name them and as people do.
MODELS: Final = {
    "counts_only": "path counts only",
    "n2_only": "N2 only",
    "counts_and_n2": "path counts and N2",
    "all": "all predictors",
    "all_without_counts": "all but path counts",
    "all_without_n2": "all but N2",
    "pgen_only": "Pgen only",
    "counts_and_pgen": "path counts and Pgen",
    "all_without_pgen": "all but Pgen",
}
#: Sections of the page, in order.
SECTIONS: Final[Mapping[str, str]] = {
    "drivers": "What goes with sharing",
    "distributions": "Path count and N2 length by number of subjects",
    "regression": "Regression of shared on unshared",
    "correlations": "Correlations",
    "sweep": "Path counts under other models",
    "repertoires": "Repertoires",
}


@dataclass(frozen=True, slots=True)
class StudyFigure:
    """A figure, or the sentence (its `caption`) that stands in its place.

    `name` is that of its files and its anchor in the page, `section` of `SECTIONS`. `spec` is Vega-Lite, with
    colours by name; None where there is nothing to draw. `cell`, for small multiples: least width of one in
    pixels, and most columns; (0, 0) otherwise. `half`: two such figures fit beside each other on a wide page.
    """

    name: str
    section: str
    title: str
    caption: str
    alt: str = ""
    spec: Spec | None = None
    cell: tuple[int, int] = (0, 0)
    half: bool = False


def absent(name: str, section: str, title: str, why: str, *, half: bool = False) -> StudyFigure:
    """A sentence in place of a figure."""
    return StudyFigure(name, section, title, why, half=half)


def spec_of(values: Sequence[Mapping[str, Any]], body: Spec, alt: str) -> Spec:
    """A whole figure from its data, one mapping a row, and its marks and encodings, layers or facets."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": alt,
        "background": "$paper",
        "data": {"values": list(values)},
        "config": _CONFIG,
        **body,
    }


def axis(title: str, **others: Any) -> Spec:
    """An axis; its title is what it measures, with the unit."""
    return {"title": title, **others}


def tooltips(**fields: str) -> list[Spec]:
    """What is shown under the pointer: titles by field.

    A field that ends in ``__N`` is shown by the number format named ``N``: ``i`` whole numbers, ``f`` four
    digits, ``p`` per cent.
    """
    formats = {"i": ",.0f", "f": ",.4~g", "p": ".1%"}
    shown = []
    for key, title in fields.items():
        name, _, kind = key.partition("__")
        entry: Spec = {"field": name, "title": title, "type": "quantitative" if kind else "nominal"}
        shown.append(entry | ({"format": formats[kind]} if kind else {}))
    return shown


def number_text(value: float | None) -> str:
    """A number for a caption: whole ones with commas, others with three digits.

    >>> number_text(1234567), number_text(0.05612), number_text(2.5e13), number_text(None)
    ('1,234,567', '0.0561', '2.5e+13', 'unknown')
    """
    if value is None:
        return "unknown"
    if abs(value) >= 1e12:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"


def short_names(names: Sequence[str], most: int = 12) -> dict[str, str]:
    """Names of at most `most` letters that fit above a small figure, each its own.

    >>> short_names(["mouse41", "a patient with a long name 1", "a patient with a long name 2"])["mouse41"]
    'mouse41'
    >>> list(short_names(["a patient with a long name 1", "a patient with a long name 2"]).values())
    ['a pat…name 1', 'a pat…name 2']
    """
    found: dict[str, str] = {}
    for name in names:
        short = name or "no name"
        if len(short) > most:
            short = f"{short[: most - 7]}\u2026{short[-6:]}"
        taken = sum(other == short or other.startswith(f"{short} #") for other in found.values())
        found[name] = f"{short} #{taken + 1}" if taken else short
    return found


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; n is at least 1.

    >>> low, high = wilson_interval(10, 40)
    >>> round(low, 4), round(high, 4)
    (0.1419, 0.4019)
    """
    z = 1.959964
    centre = (successes + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * (successes * (n - successes) / n + z * z / 4) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def grouped_levels(levels: Mapping[int, int], most: int) -> list[tuple[str, range]]:
    """Numbers of subjects as at most so many groups, low ones alone and high ones together.

    >>> grouped_levels({1: 90, 2: 9, 3: 1}, 4)
    [('1', range(1, 2)), ('2', range(2, 3)), ('3', range(3, 4))]
    >>> [label for label, _ in grouped_levels({k: 1 for k in range(1, 41)}, 5)]
    ['1', '2', '3', '4-13', '14-40']
    """
    present = sorted(level for level, n in levels.items() if n)
    if len(present) <= most:
        return [(str(level), range(level, level + 1)) for level in present]
    alone = present[: most - 2]
    rest = present[most - 2 :]
    middle = round((rest[0] * rest[-1]) ** 0.5)
    groups = [(str(level), range(level, level + 1)) for level in alone]
    for first, last in ((rest[0], middle), (middle + 1, rest[-1])):
        groups.append((f"{first}-{last}" if last > first else str(first), range(first, last + 1)))
    return groups


_TEXT: Spec = {"labelColor": "$quiet", "titleColor": "$ink", "labelFontSize": 12, "titleFontSize": 12.5}
_CONFIG: Final[Spec] = {
    "font": "$font",
    "aria": False,
    "view": {"stroke": None},
    "axis": _TEXT
    | {
        "titleFontWeight": 600,
        "titlePadding": 8,
        "labelPadding": 5,
        "gridColor": "$grid",
        "domainColor": "$line",
        "tickColor": "$line",
        "tickSize": 4,
        "labelLimit": 210,
        # On a narrow screen, labels of numbers that just do not overlap read as one.
        "labelSeparation": 8,
    },
    "axisY": {"domain": False, "ticks": False},
    "axisX": {"grid": False},
    "legend": _TEXT
    | {"orient": "top", "titleFontWeight": 600, "symbolStrokeWidth": 2.5, "labelLimit": 240, "offset": 10},
    "header": _TEXT | {"labelColor": "$ink", "titleFontWeight": 600, "labelFontWeight": 600},
    "title": {
        "anchor": "start",
        "color": "$ink",
        "fontSize": 17,
        "fontWeight": 600,
        "subtitleColor": "$quiet",
        "subtitleFontSize": 12.5,
        "subtitlePadding": 6,
        "subtitleLineHeight": 16,
        "offset": 14,
        "frame": "bounds",
    },
    "text": {"color": "$ink", "fontSize": 12},
    "range": {"heatmap": list(SEQUENCE), "ramp": list(SEQUENCE)},
}
