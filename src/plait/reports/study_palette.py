"""Colours of a study report, by what they mean, for a light and a dark page.

Figures name colours by these keys with a dollar sign before them, and are painted last, so that one
definition serves both pages and the files. The hues are Okabe and Ito's, made lighter or darker until each
stands out from its background (at least 3 to 1 for marks and 4.5 to 1 for text; a test computes it).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["FILE_FONT", "GROUP_COLOURS", "LEVELS", "PAGE_FONT", "SEQUENCE", "THEMES", "paint"]

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
    """Put values in place of names such as ``$ink`` everywhere but in data.

    Parameters
    ----------
    spec
        A figure, or a part of one.
    colours
        Values by name.
    """
    if isinstance(spec, str):
        return colours.get(spec[1:], spec) if spec.startswith("$") else spec
    if isinstance(spec, dict):
        return {key: value if key == "values" else paint(value, colours) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [paint(item, colours) for item in spec]
    return spec
