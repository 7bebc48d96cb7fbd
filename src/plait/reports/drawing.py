"""Draw figures: as Vega for the page, and as PNG and SVG for files, without a browser.

vl-convert runs Vega-Lite and Vega in a JavaScript engine of its own, so that page and files are drawn by the
same library from the same definition.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from plait.errors import TargetUnavailable
from plait.reports.figure import FILE_FONT, THEMES, Spec, StudyFigure, paint

_PIXELS_PER_POINT = 2.0
_INNER_NAMES: Final = re.compile(r'id="(clip|gradient_)([0-9]+)"')
_INNER_USES: Final = re.compile(r'(id="|url\(#)(clip|gradient_)([0-9]+)(?=[")])')
_TITLE_LETTERS = 84
_CAPTION_LETTERS = 118


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
