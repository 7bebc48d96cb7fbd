"""Sphinx configuration. `make docs` builds the pages with warnings as errors and runs their examples."""

import gc
import os
import pkgutil
from pathlib import Path

import plait

# What has been read of all pages stays to the end: to look for cycles in it was a seventh of the time.
gc.set_threshold(50_000, 20, 100)

project = "plait"
author = "The plait maintainers"
version = release = plait.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "numpydoc",
]
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = f"plait {release}"
html_static_path = ["_static"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# `make man`.
man_pages = [("reference/commands", "plait", "immune repertoires, sequences, RNA and cubes", author, 1)]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
# The tables of attributes written by hand say more than the bare fields.
numpydoc_show_class_members = False
# A package exports names of its modules, so that a short reference may have two targets, both right.
suppress_warnings = ["ref.python"]
# Pages whose commands are run find themselves, and what runs them, here. What commands need is compiled in
# this process, where much of it is there from the pages before.
doctest_global_setup = f"""
import sys
import plait.lang.ahead
plait.lang.ahead.worth = lambda numbers: 1
DOCS = {str(Path(__file__).parent)!r}
sys.path.insert(0, DOCS)
"""
# Only the examples written for the pages; those of docstrings run in `make doctests`.
doctest_test_doctest_blocks = ""

# Users come to the commands by their own page, and `__main__` only starts them.
NOT_IN_THE_REFERENCE = {"cli"}
# Pages refer to them, though they are neither a package nor at the top level.
ALSO_IN_THE_REFERENCE = {"plait.lang.algebras"}
PAGE = """{title}
{line}

.. automodule:: plait.{name}
   :members:
"""


def public_modules() -> list[str]:
    """Names below plait of its modules and of every package, in order."""
    names = [
        module.name.removeprefix("plait.")
        for module in pkgutil.walk_packages(plait.__path__, "plait.")
        if module.ispkg or module.name.count(".") == 1 or module.name in ALSO_IN_THE_REFERENCE
    ]
    return sorted(
        name
        for name in names
        if not any(part.startswith("_") for part in name.split("."))
        and name.partition(".")[0] not in NOT_IN_THE_REFERENCE
    )


def write_reference() -> None:
    """One page for each public module and package, so that a new one cannot be forgotten."""
    folder = Path(__file__).parent / "reference" / "api"
    folder.mkdir(exist_ok=True)
    names = public_modules()
    for page in folder.glob("*.rst"):
        if page.name.removesuffix(".rst") not in names:
            page.unlink(missing_ok=True)
    for name in names:
        title = f"plait.{name}"
        text = PAGE.format(title=title, line="=" * len(title), name=name)
        page = folder / f"{name}.rst"
        # An unchanged page keeps its time, so that Sphinx need not read it again.
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            # Pages and examples are built side by side, and neither may read half a page.
            new = page.with_name(f".{page.name}.{os.getpid()}")
            new.write_text(text, encoding="utf-8")
            new.replace(page)


write_reference()
