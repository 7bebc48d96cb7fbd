"""``import plait`` is cheap: it loads few modules, and no compiler, table, cluster or device library.

What it loads stands for the time, which depends on the machine and on what else runs there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MOST_MODULES = 10
HEAVY = (
    "numba",
    "llvmlite",
    "pyarrow",
    "polars",
    "pandas",
    "dask",
    "distributed",
    "cupy",
    "rich",
    "cyclopts",
)
PROGRAM = """
import json, sys
import numpy
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded(module: str, path: Path | None = None) -> list[str]:
    """Modules that an import loads beside numpy's."""
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    command = [sys.executable, "-c", PROGRAM.format(module=module)]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found: list[str] = json.loads(output)
    return found


def packages(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_import_loads_little_and_nothing_heavy() -> None:
    modules = loaded("plait")
    assert len(modules) <= MOST_MODULES, modules
    assert packages(modules).isdisjoint(HEAVY)


@pytest.mark.parametrize("heavy", ["numba", "pyarrow"])
def test_a_heavy_import_is_caught(tmp_path: Path, heavy: str) -> None:
    (tmp_path / "planted.py").write_text(f"import {heavy}\n")
    assert heavy in packages(loaded("planted", tmp_path))


def test_many_small_imports_are_caught(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("import http.server\n")
    assert len(loaded("planted", tmp_path)) > MOST_MODULES
