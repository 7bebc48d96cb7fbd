"""Golden files are kept for ever, each with the script that made it and its digest."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest


def faults(folder: Path) -> list[str]:
    manifest = tomllib.loads((folder / "MANIFEST.toml").read_text(encoding="utf-8"))
    files = {
        p.relative_to(folder).as_posix()
        for p in folder.rglob("*")
        if p.is_file() and p.suffix not in (".py", ".pyc") and p.name != "MANIFEST.toml"
    }
    found = [f"{name} is not in MANIFEST.toml" for name in sorted(files - manifest.keys())]
    found += [f"{name} is in MANIFEST.toml and nowhere else" for name in sorted(manifest.keys() - files)]
    for name in sorted(files & manifest.keys()):
        entry = manifest[name]
        if not (folder / entry.get("generator", "")).is_file():
            found.append(f"{name}: no generator script {entry.get('generator')!r}")
        if not entry.get("about"):
            found.append(f"{name}: nothing says what it holds")
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if entry.get("sha256") != digest:
            found.append(f"{name}: sha256 is {digest}, the manifest has {entry.get('sha256')}")
    return found


def test_golden_files_are_as_listed(repository: Path) -> None:
    found = faults(repository / "tests" / "golden")
    assert not found, "\n".join(found)


def complete(folder: Path) -> str:
    (folder / "make.py").write_text("")
    (folder / "counts.json").write_text("{}")
    digest = hashlib.sha256(b"{}").hexdigest()
    return f'["counts.json"]\ngenerator = "make.py"\nsha256 = "{digest}"\nabout = "counts"\n'


def test_a_complete_manifest_passes(tmp_path: Path) -> None:
    (tmp_path / "MANIFEST.toml").write_text(complete(tmp_path))
    assert faults(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"make.py"', '"gone.py"', "no generator"),
        ('"counts"', '""', "nothing says"),
        ('sha256 = "', 'sha256 = "0', "sha256 is"),
        ("counts.json", "other.json", "nowhere else"),
        ("counts.json", "other.json", "is not in MANIFEST"),
    ],
    ids=["generator", "about", "digest", "lost", "unlisted"],
)
def test_a_fault_is_caught(tmp_path: Path, old: str, new: str, fault: str) -> None:
    (tmp_path / "MANIFEST.toml").write_text(complete(tmp_path).replace(old, new))
    assert any(fault in line for line in faults(tmp_path))
