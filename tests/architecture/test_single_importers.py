"""A module that one other module imports is part of it, unless there is a reason.

Reasons are: both together would be too long; it has compiled code, which is kept by file; a package's
``__init__`` gives its names to users; its importer is in another room; it is a command. Any other stands in
its docstring, after "A module of its own".
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from support.statements import statements

FILE_LINES = 900
REASON = "A module of its own"
COMPILED = {"plait.lang.compile", "plait.devices.cuda"}


def imported_by(package: Path) -> tuple[dict[str, Path], dict[str, set[str]]]:
    """Modules, and who imports each."""
    paths = {
        ".".join(("plait", *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in package.rglob("*.py")
    }
    importers: dict[str, set[str]] = defaultdict(set)
    for name, path in paths.items():
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for one in node.names:
                    inner = f"{node.module}.{one.name}"
                    importers[inner if inner in paths else node.module].add(name)
            elif isinstance(node, ast.Import):
                for one in node.names:
                    importers[one.name].add(name)
    return paths, importers


def without_reason(package: Path) -> list[str]:
    paths, importers = imported_by(package)
    found = []
    for name, path in sorted(paths.items()):
        if len(importers[name]) != 1:
            continue
        (importer,) = importers[name]
        text, other = path.read_text(encoding="utf-8"), paths[importer]
        long = len(text.splitlines()) + len(other.read_text(encoding="utf-8").splitlines()) > FILE_LINES
        compiled = any(name in importers[module] for module in COMPILED)
        told = REASON in (ast.get_docstring(ast.parse(text)) or "")
        elsewhere = importer.split(".")[1:2] != name.split(".")[1:2] or name.startswith("plait.cli")
        if not (long or compiled or told or elsewhere or other.name == "__init__.py"):
            found.append(f"{name} is imported by {importer} alone")
    return found


def test_single_importers_have_a_reason(package: Path) -> None:
    found = without_reason(package)
    assert not found, "\n".join(found)


def test_one_without_a_reason_is_caught(tmp_path: Path) -> None:
    package = tmp_path / "plait"
    room = package / "room"
    room.mkdir(parents=True)
    (room / "part.py").write_text('"""A part."""\n')
    (room / "whole.py").write_text("from plait.room.part import x\n")
    assert without_reason(package) == ["plait.room.part is imported by plait.room.whole alone"]
    (room / "part.py").write_text(f'"""A part.\n\n{REASON}, because.\n"""\n')
    assert without_reason(package) == []
    (room / "part.py").write_text("from plait.lang.compile import kernel\n")
    assert without_reason(package) == []
