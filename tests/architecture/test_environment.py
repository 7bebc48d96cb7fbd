"""The set-up script says clearly what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.examples import often


@pytest.fixture
def checkout(tmp_path: Path, repository: Path) -> Path:
    """What the script needs of the repository, in a folder whose name holds a space."""
    root = tmp_path / "a checkout"
    (root / "tools").mkdir(parents=True)
    shutil.copy(repository / "tools" / "environment.sh", root / "tools")
    shutil.copy(repository / "pyproject.toml", root)
    return root


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def set_up(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = os.environ | {"UV": "", "PATH": f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        [checkout / "tools" / "environment.sh", "demo", "test"],
        env=settings | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_old_python_is_refused(checkout: Path) -> None:
    for name in ("python3", "python3.13", "python3.12", "python3.11", "python"):
        program(checkout / "bin", name, 'case "$1" in --version) echo Python 3.9.2;; esac; exit 1')
    result = set_up(checkout)
    assert result.returncode == 1
    assert "no Python >= 3.11 was found (found: Python 3.9.2" in result.stderr
    assert not (checkout / ".venv").exists()


def test_a_named_python_that_does_not_work_is_refused(checkout: Path) -> None:
    result = set_up(checkout, PYTHON="/no/such/python")
    assert result.returncode == 1
    assert "PYTHON=/no/such/python is not a working Python" in result.stderr


def installer(checkout: Path, install: str) -> None:
    """A stand-in for uv that makes an environment and then runs ``install``."""
    make = 'mkdir -p .venv/bin; ln -sf "$(command -v python3)" .venv/bin/python'
    program(checkout / "bin", "uv", f'echo "$@" >>calls; case "$1" in venv) {make};; pip) {install};; esac')


def test_a_failed_installation_is_explained_and_tried_again(checkout: Path) -> None:
    installer(checkout, "exit 2")
    for _ in range(2):
        result = set_up(checkout, UV=str(checkout / "bin" / "uv"))
        assert result.returncode == 1
        assert "does not reach the Python package index" in result.stderr
    calls = (checkout / "calls").read_text()
    assert calls.count("venv --quiet") == 1
    assert calls.count("--editable .[demo,test]") == 2


def test_it_installs_once_and_again_when_the_requirements_change(checkout: Path) -> None:
    installer(checkout, "exit 0")
    uv = str(checkout / "bin" / "uv")
    for _ in range(2):
        assert set_up(checkout, UV=uv).returncode == 0
    assert (checkout / "calls").read_text().count("--editable") == 1
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert set_up(checkout, UV=uv).returncode == 0
    assert (checkout / "calls").read_text().count("--editable") == 2


def test_a_moved_environment_is_made_anew(checkout: Path) -> None:
    installer(checkout, "exit 0")
    assert set_up(checkout, UV=str(checkout / "bin" / "uv")).returncode == 0
    moved = checkout.rename(checkout.with_name("moved"))
    assert set_up(moved, UV=str(moved / "bin" / "uv")).returncode == 0
    assert (moved / "calls").read_text().count("venv --quiet") == 2


#: A stand-in for Python and pip, which can fetch a uv.
PYTHON = """
case "$1 $2" in
"-m venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python;;
"-m pip")
    case "$*" in *--version) exit 0;; *"config get"*) exit 1;; esac
    echo "pip $*" >>calls
    case "$*" in *" uv") {uv};; esac;;
*) exec {python} "$@";;
esac
"""
UV = """echo '#!/bin/sh
echo "uv $*" >>calls; {install}' >.venv/bin/uv; chmod +x .venv/bin/uv"""


@pytest.mark.parametrize(
    ("uv", "others"),
    often(
        1,
        [
            (UV.format(install="exit 0"), ["uv"]),
            (UV.format(install="exit 2"), ["uv", "pip"]),
            ("exit 1", ["pip"]),
            (None, ["pip"]),
        ],
    ),
    ids=["fetched", "uv fails", "none to fetch", "unwanted"],
)
def test_without_uv_pip_fetches_it(checkout: Path, uv: str | None, others: list[str]) -> None:
    program(checkout / "bin", "python", PYTHON.format(uv=uv or "exit 1", python=sys.executable))
    wanted = {"UV": "" if uv is None else "own", "PYTHON": str(checkout / "bin" / "python")}
    result = set_up(checkout, **wanted)
    assert result.returncode == 0, result.stderr
    calls = (checkout / "calls").read_text().splitlines()
    if uv is not None:
        assert calls.pop(0).endswith(" uv")
    assert [call.split()[0] for call in calls] == others
    assert all("--editable .[demo,test]" in call for call in calls)
