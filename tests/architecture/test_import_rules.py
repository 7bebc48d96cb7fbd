"""The import contracts and ruff's banned names hold, and catch what they are there for.

``make test`` runs both tools over the sources; here planted violations show that they can fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.examples import often

LAYERS = [
    *(
        "cli",
        "vdj",
        "align",
        "episodes",
        "folding",
        "hyperspectral",
        "ldpc",
        "mapping",
        "qgrams",
        "random",
        "states",
    ),
    *("stats", "run", "formats", "dp", "devices", "lang"),
    *("types", "alphabets", "settings", "errors", "_exports", "_version"),
]

VIOLATIONS = {
    "upwards": ("formats", "import plait.vdj"),
    "sibling-subjects": ("align", "import plait.vdj"),
    "numba-in-recurrence": ("dp", "import numba"),
    "module-without-layer": ("helpers", ""),
    "files-from-a-recurrence": ("dp", "import plait.formats"),
    "cli-from-subject": ("vdj", "import plait.cli"),
    "runs-from-formats": ("formats", "import plait.run"),
    "tables-in-recurrence": ("dp", "import pyarrow"),
    "cluster-in-device": ("devices", "import distributed"),
    "numba-deep-in-subject": ("vdj", "from numba.core import types"),
    "llvmlite-in-formats": ("formats", "from llvmlite import ir"),
}


def lint_imports(config: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--config", config]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=config.parent, env=environment, capture_output=True, text=True, check=False
    )


def skeleton(root: Path, repository: Path) -> Path:
    """A package of empty modules under our own contracts, with every import that is allowed to Numba."""
    package = root / "plait"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for layer in LAYERS:
        (package / f"{layer}.py").write_text("")
    (package / "lang.py").unlink()
    (package / "lang").mkdir()
    (package / "lang" / "__init__.py").write_text("")
    (package / "lang" / "compile.py").write_text("import numba\nfrom llvmlite import ir\n")
    (package / "run.py").write_text("import distributed\n")
    text = (repository / "pyproject.toml").read_text(encoding="utf-8")
    config = root / "pyproject.toml"
    config.write_text(text[text.index("[tool.importlinter]") :], encoding="utf-8")
    return config


def test_the_skeleton_keeps_the_contracts(tmp_path: Path, repository: Path) -> None:
    result = lint_imports(skeleton(tmp_path, repository), tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("module", "line"), often(4, VIOLATIONS.values()), ids=VIOLATIONS)
def test_a_violation_is_caught(tmp_path: Path, repository: Path, module: str, line: str) -> None:
    config = skeleton(tmp_path, repository)
    (tmp_path / "plait" / f"{module}.py").write_text(line + "\n")
    result = lint_imports(config, tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert module in result.stdout


@pytest.mark.parametrize(
    ("path", "source", "caught"),
    [
        ("src/plait/dp/pairs/sweep.py", "from numba import njit\n\nnjit()\n", True),
        ("src/plait/vdj/count.py", "import numba.cuda\n\nnumba.cuda.jit()\n", True),
        ("src/plait/formats/bits.py", "from llvmlite import ir\n\nir.Constant()\n", True),
        ("benchmarks/speed.py", "import numba\n\nnumba.njit()\n", True),
        ("src/plait/lang/compile.py", "import numba\n\nnumba.njit()\n", False),
    ],
)
def test_ruff_bans_numba_outside_its_door(repository: Path, path: str, source: str, caught: bool) -> None:
    command = [Path(sys.executable).with_name("ruff"), "check", "--no-cache", "--select", "TID251"]
    result = subprocess.run(
        [*command, "--stdin-filename", path, "-"],
        cwd=repository,
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ("TID251" in result.stdout) == caught, result.stdout + result.stderr
    assert (result.returncode != 0) == caught
