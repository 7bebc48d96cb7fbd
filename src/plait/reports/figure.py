"""One figure of a report: defined by ``data/figures.json``, and drawn without a browser.

What a figure looks like is data, Vega-Lite; Python finds its numbers and words. Colours are named, by what
they mean, with a dollar sign before them, and are painted last, so that one definition serves the light page,
the dark one and the files. The hues are Okabe and Ito's, made lighter or darker until each stands out from
its background (at least 3 to 1 for marks and 4.5 to 1 for text; a test computes it).

vl-convert runs Vega-Lite and Vega in a JavaScript engine of its own, so that page and files are drawn by the
same library from the same definition.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from typing import Any, Final

from plait.errors import TargetUnavailable
from plait.settings import thread_count

_DATA: Final = json.loads((Path(__file__).with_name("data") / "figures.json").read_text("utf-8"))
THEMES: Final[Mapping[str, Mapping[str, str]]] = _DATA["themes"]
#: Colours of numbers of subjects, from one to many.
LEVELS: Final = tuple(f"$level{k}" for k in range(5))
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


Spec = dict[str, Any]
#: A share of fewer clonotypes is not drawn: its interval would hide the others.
LEAST_IN_A_POINT: Final = 20
_PIXELS_PER_POINT = 2.0
_INNER_NAMES: Final = re.compile(r'id="(clip|gradient_)([0-9]+)"')
_INNER_USES: Final = re.compile(r'(id="|url\(#)(clip|gradient_)([0-9]+)(?=[")])')
_TITLE_LETTERS = 84
_CAPTION_LETTERS = 118


@dataclass(frozen=True, slots=True)
class StudyFigure:
    """A figure, or the sentence (its `caption`) that stands in its place.

    `name` is that of its files and its anchor in the page. `spec` is Vega-Lite, with colours by name; None
    where there is nothing to draw. `cell`, for small multiples: least width of one in pixels, and most
    columns; (0, 0) otherwise. `half`: two such figures fit beside each other on a wide page.
    """

    name: str
    section: str
    title: str
    caption: str
    alt: str = ""
    spec: Spec | None = None
    cell: tuple[int, int] = (0, 0)
    half: bool = False


def _defined(name: str) -> Spec:
    """What ``figures.json`` says of a figure, with what it takes over from the one that it is like."""
    own: Spec = _DATA["figures"][name]
    if "like" not in own:
        return own
    other = _defined(own["like"])
    return other | own | {"parts": other.get("parts", {}) | own.get("parts", {})}


def absent(name: str, why: str) -> StudyFigure:
    """A sentence in place of a figure."""
    defined = _defined(name)
    return StudyFigure(name, defined["section"], defined["title"], why, half=defined.get("half", False))


def drawn(
    name: str, caption: str, alt: str, values: Sequence[Mapping[str, Any]], **given: Any
) -> StudyFigure:
    """A figure from its data, one mapping a row, and what its definition leaves open."""
    defined = _defined(name)
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": alt,
        "background": "$paper",
        "data": {"values": list(values)},
        "config": _DATA["config"],
        **_filled(defined["spec"], _DATA["parts"] | defined.get("parts", {}), given),
    }
    least, most = defined.get("cell", (0, 0))
    half = defined.get("half", False)
    return StudyFigure(name, defined["section"], defined["title"], caption, alt, spec, (least, most), half)


def _filled(part: Any, parts: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """A part of a definition with what it names in place.

    ``"@name"`` stands for what is given, or else the part, of that name; the key ``"@"`` takes over all
    entries of one, and ``"@if"`` leaves out an item of a list unless what is given is true.
    """
    if isinstance(part, str) and part.startswith("@"):
        return given[part[1:]] if part[1:] in given else _filled(parts[part[1:]], parts, given)
    if isinstance(part, list):
        there = [item for item in part if not isinstance(item, dict) or given.get(item.get("@if", ""), True)]
        return [_filled(item, parts, given) for item in there]
    if not isinstance(part, dict):
        return part
    whole: Spec = {}
    for key, value in part.items():
        if key == "@":
            whole |= _filled(f"@{value}", parts, given)
        elif key != "@if":
            whole[key] = _filled(value, parts, given)
    return whole | ({"tooltip": _tooltips(whole["tooltip"])} if "tooltip" in part else {})


#: Number formats of tooltips: whole numbers, four digits, five places, per cent.
_FORMATS: Final = {"i": ",.0f", "f": ",.4~g", "5": ".5f", "p": ".1%"}


def _tooltips(titles: Mapping[str, str]) -> list[Spec]:
    """What is shown under the pointer, from titles by field; ``field:f`` is shown by that number format."""
    shown = []
    for key, title in titles.items():
        field, _, kind = key.partition(":")
        entry: Spec = {"field": field, "title": title, "type": "quantitative" if kind else "nominal"}
        shown.append(entry | ({"format": _FORMATS[kind]} if kind else {}))
    return shown


def paint(spec: Any, colours: Mapping[str, str]) -> Any:
    """Put colours in place of names such as ``$ink`` everywhere but in data."""
    if isinstance(spec, str):
        return colours.get(spec[1:], spec) if spec.startswith("$") else spec
    if isinstance(spec, dict):
        return {key: value if key == "values" else paint(value, colours) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [paint(item, colours) for item in spec]
    return spec


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


def gene_order(name: str) -> list[tuple[int, int, str]]:
    """A sort key with numbers in numeric order.

    >>> sorted(["TRBV13-1", "TRBV2", "TRBV13", "TRBV4"], key=gene_order)
    ['TRBV2', 'TRBV4', 'TRBV13', 'TRBV13-1']
    """
    return [
        (0, len(part.lstrip("0")), part.lstrip("0")) if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]+)", name)
        if part
    ]


def check_report_drawing() -> None:
    """Make sure, before any work, that a report can be made.

    TargetUnavailable if vl-convert or Jinja is not installed.
    """
    try:
        import jinja2  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise TargetUnavailable(
            "report",
            reason=f"what draws its figures cannot be imported ({error})",
            fix="install it: pip install 'plait[report]', or pip install '.[report]' in a checkout",
        ) from error


@cache
def vega_library() -> str:
    """Vega as a script that defines ``vegaEmbed`` in a page; nothing is fetched for it."""
    import vl_convert

    # An end tag inside a script would end it; Vega has none, and a later one must not break the page.
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def drawn_with() -> str:
    """Names, versions and licence of what draws, for the provenance of a page that holds it."""
    import vl_convert

    versions = f"Vega {vl_convert.get_vega_version()}, Vega-Lite {vl_convert.get_vegalite_versions()[-1]}"
    return f"{versions}, vl-convert {version('vl-convert-python')} (each under the BSD 3-Clause licence)"


def compiled_figure(figure: StudyFigure) -> Mapping[str, Any] | None:
    """A figure as Vega, colours still by name; None where there is nothing to draw."""
    if figure.spec is None:
        return None
    import vl_convert

    compiled: Mapping[str, Any] = vl_convert.vegalite_to_vega(figure.spec)
    return compiled


def figure_files(figure: StudyFigure) -> tuple[bytes, bytes]:
    """A figure with its title and caption, in light colours, as PNG and as SVG; it has a specification."""
    import vl_convert

    painted = paint(_titled(figure), {**THEMES["light"], "font": FILE_FONT})
    svg = _numbered_anew(vl_convert.vegalite_to_svg(painted))
    return vl_convert.svg_to_png(svg, scale=_PIXELS_PER_POINT), svg.encode("utf-8")


#: A figure with its files, as PNG and as SVG.
DrawnFigure = tuple[StudyFigure, tuple[bytes, bytes]]
#: Draws for another process.
_PROGRAM: Final = """import pickle, sys
from plait.reports.figure import figure_files
sys.stdout.buffer.write(pickle.dumps(list(map(figure_files, pickle.load(sys.stdin.buffer)))))"""
#: Figures for which another process is started: it takes as long as two of them.
_WORTH: Final = 8


@contextmanager
def drawing(figures: Iterable[StudyFigure]) -> Iterator[Callable[[], Iterator[DrawnFigure]]]:
    """Begin to draw those that have a specification; yields what draws the rest, and then has all of them.

    Processes draw, as vl-convert lets no thread run: each twice as many as this one, which has more to do.
    """
    shown = [figure for figure in figures if figure.spec is not None]
    count = min(thread_count() - 1, len(shown) // _WORTH)
    parts = [shown[k :: 2 * count + 1] for k in range(2 * count + 1)]
    own, shares = parts.pop(), [parts[k] + parts[k + count] for k in range(count)]
    with ExitStack() as stack:
        begun = []
        for share in shares:
            try:
                given = stack.enter_context(TemporaryFile())
                pickle.dump(share, given)
                given.seek(0)
                # -P: what lies in the folder is no module.
                command = [sys.executable or "", "-P", "-c", _PROGRAM]
                process = stack.enter_context(Popen(command, stdin=given, stdout=PIPE, stderr=DEVNULL))
            except OSError:
                # Without room for files or processes, all is drawn here.
                own += share
                continue
            begun.append((share, process))
            stack.callback(process.kill)

        def finish() -> Iterator[DrawnFigure]:
            yield from zip(own, map(figure_files, own), strict=True)
            for share, process in begun:
                drawn = process.communicate()[0]
                # What it could not do, for want of memory say, is done here.
                contents = map(figure_files, share) if process.returncode else pickle.loads(drawn)
                yield from zip(share, contents, strict=True)

        yield finish


def _titled(figure: StudyFigure) -> Spec:
    title = {
        "text": textwrap.wrap(figure.title, _TITLE_LETTERS),
        "subtitle": textwrap.wrap(figure.caption, _CAPTION_LETTERS),
    }
    return {**(figure.spec or {}), "title": title, "padding": 16}


def _numbered_anew(svg: str) -> str:
    """Names inside a figure counted from 0: Vega counts them over all that it has drawn."""
    found = dict.fromkeys(_INNER_NAMES.findall(svg))
    numbers = {name: f"{name[0]}{at}" for at, name in enumerate(found)}
    return _INNER_USES.sub(lambda use: use[1] + numbers.get((use[2], use[3]), use[2] + use[3]), svg)
