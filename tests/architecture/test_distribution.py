"""What is built holds everything the installed package needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path


def test_the_wheel_holds_every_package_file(tmp_path: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=repository, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("plait-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    sources = repository / "src"
    needed = {
        path.relative_to(sources).as_posix()
        for path in (sources / "plait").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert needed - held == set()
    assert any(name.endswith("licenses/LICENSE") for name in held)
    assert "plait/py.typed" in held
