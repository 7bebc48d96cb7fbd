"""``__all__`` is complete at the top level and in packages, and nowhere else."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest


def module_name(path: Path, package: Path) -> str:
    parts = (package.name, *path.relative_to(package).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(package: Path) -> list[Path]:
    """Every source file whose own name is public; a package's ``__init__.py`` bears the package's name."""
    return [
        path
        for path in sorted(package.rglob("*.py"))
        if path.name == "__init__.py" or not path.name.startswith("_")
    ]


def defined(tree: ast.Module) -> set[str]:
    """Public names that a module defines itself at its top level."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and "TypeVar(" not in ast.unparse(node.value):
            names.update(t.id for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {n for n in names if not n.startswith("_")}


def faults(package: Path) -> list[str]:
    found = []
    for path in modules(package):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(package)
        lists = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]
        ]
        interface = path.parent == package or path.name == "__init__.py"
        if not interface or not lists:
            if interface and defined(tree):
                found.append(f"{name} has no __all__")
            if not interface and lists:
                found.append(f"{name} is no interface: it needs no __all__")
            continue
        if len(lists[0]) != len(set(lists[0])):
            found.append(f"{name}: __all__ names something twice")
        left_out = sorted(defined(tree) - set(lists[0]))
        found += [f"{name}: {n} is neither in __all__ nor private" for n in left_out]
    return found


def test_all_is_complete(package: Path) -> None:
    found = faults(package)
    assert not found, "\n".join(found)


def test_all_names_what_exists(package: Path) -> None:
    missing = []
    for path in modules(package):
        module = importlib.import_module(module_name(path, package))
        missing += [
            f"{module.__name__}.{n}" for n in getattr(module, "__all__", ()) if not hasattr(module, n)
        ]
    assert not missing, "\n".join(missing)


def test_packages_list_their_public_names_and_refuse_others(package: Path) -> None:
    for path in package.rglob("__init__.py"):
        module = importlib.import_module(module_name(path, package))
        assert set(getattr(module, "__all__", ())) <= set(dir(module))
        with pytest.raises(AttributeError, match=f"module {module.__name__!r} has no attribute 'nothing'"):
            module.nothing  # noqa: B018  # looking it up is the test


def test_names_are_loaded_on_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy").mkdir()
    (tmp_path / "lazy" / "room.py").write_text("a = 1\n")
    (tmp_path / "lazy" / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from plait._exports import on_first_use\n"
        "if TYPE_CHECKING:\n"
        "    from lazy import room\n"
        "    from lazy.room import a\n"
        "__getattr__, __dir__ = on_first_use(__name__, __file__)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    lazy = importlib.import_module("lazy")
    assert {"a", "room", "TYPE_CHECKING"} <= set(dir(lazy)) and "lazy.room" not in sys.modules
    assert lazy.a == 1 and lazy.room.a == 1


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def f(): pass\n", "no __all__"),
        ('__all__ = ["f"]\ndef f(): pass\ndef g(): pass\n', "g is neither"),
        ('__all__ = ["f"]\ndef f(): pass\nLIMIT = 1\n', "LIMIT is neither"),
        ('__all__ = ["f", "f"]\ndef f(): pass\n', "twice"),
    ],
    ids=["absent", "function", "constant", "twice"],
)
def test_a_wrong_list_is_caught(tmp_path: Path, source: str, fault: str) -> None:
    (tmp_path / "module.py").write_text(source)
    assert any(fault in line for line in faults(tmp_path))


def test_a_list_in_an_inner_module_is_caught(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "module.py").write_text('__all__ = ["f"]\ndef f(): pass\n')
    assert any("no interface" in line for line in faults(tmp_path))


def test_right_lists_pass(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""Nothing public."""\n')
    (tmp_path / "module.py").write_text('__all__ = ["f"]\ndef f(): pass\ndef _g(): pass\n')
    assert faults(tmp_path) == []


def names_given_twice(tree: ast.Module) -> list[str]:
    """Names that a module assigns at its top level and then again, but for what is made of itself."""
    known: set[str] = set()
    found = []
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            given = {target.id for target in targets if isinstance(target, ast.Name)}
            used = {name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)}
            found += sorted((given & known) - used)
            known |= given
    return found


def test_no_constant_is_given_twice(package: Path) -> None:
    paths = sorted(package.rglob("*.py"))
    found = [f"{p}: {n}" for p in paths for n in names_given_twice(ast.parse(p.read_text("utf-8")))]
    assert not found, "\n".join(found)


def test_a_constant_that_is_given_twice_is_found() -> None:
    assert names_given_twice(ast.parse("A = 1\nB: int = 2\nA = A + 1\nB = 3\n")) == ["B"]
