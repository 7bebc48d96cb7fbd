"""The notebooks of the documentation print what they say that they print."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from support.examples import often

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def is_longest(path: Path) -> bool:
    return path.stem == "public-clonotypes"


@pytest.fixture(scope="module")
def cells() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "notebook_cells.py"))


@pytest.mark.parametrize("path", often(1, sorted(NOTEBOOKS, key=is_longest)), ids=lambda path: path.stem)
def test_cells_print_what_is_kept(path: Path, cells: dict[str, Any]) -> None:
    kept = cells["kept"](path)
    assert len(kept) >= 3 and all(kept[-1:])
    assert cells["printed"](path) == kept


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3
