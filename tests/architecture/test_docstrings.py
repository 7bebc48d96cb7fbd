"""Every public name says what it is, and every parameter of it is explained.

A name is public when it is in its module's ``__all__``; it has a docstring. It belongs to the interface when
a top-level module or a package's ``__init__`` exports it; then, from two parameters on, there is a
*Parameters* section that lists exactly the parameters there are, and fields of dataclasses and named tuples
stand under *Attributes* or *Parameters*. Elsewhere, and in the machinery below the subjects, where the same
few operands run through every function, such a section may be left out, but not be wrong.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString

Function = ast.FunctionDef | ast.AsyncFunctionDef
MACHINERY = ("lang", "dp", "devices")


def exported(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
        ):
            return set(ast.literal_eval(node.value))
    return set()


def parameters(function: Function) -> list[str]:
    a = function.args
    names = [p.arg for p in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if p]
    return [n for n in names if n not in ("self", "cls") and not n.startswith("_")]


def listed(docstring: str, *sections: str) -> list[str]:
    """Names in sections of a docstring; ``a, b`` counts as two, leading stars are dropped."""
    parsed = NumpyDocString(docstring)
    return [
        part.strip().lstrip("*")
        for section in sections
        for entry in parsed[section]
        for part in entry.name.split(",")
    ]


def faults_of_function(function: Function, where: str, brief: bool) -> list[str]:
    docstring = ast.get_docstring(function)
    if not docstring:
        return [f"{where} has no docstring"]
    names = parameters(function)
    given = listed(docstring, "Parameters", "Other Parameters")
    if not given and (brief or len(names) < 2):
        return []
    faults = [f"{where}: parameter {n!r} is not explained" for n in names if n not in given]
    return faults + [f"{where}: {n!r} is explained but is no parameter" for n in given if n not in names]


def fields(node: ast.ClassDef) -> list[str]:
    """Public fields of a dataclass or named tuple."""
    bases = [ast.unparse(b) for b in node.bases]
    decorators = [ast.unparse(d) for d in node.decorator_list]
    if not any("NamedTuple" in b for b in bases) and not any("dataclass" in d for d in decorators):
        return []
    return [
        s.target.id
        for s in node.body
        if isinstance(s, ast.AnnAssign)
        and isinstance(s.target, ast.Name)
        and not s.target.id.startswith("_")
        and "ClassVar" not in ast.unparse(s.annotation)
    ]


def faults_of_class(node: ast.ClassDef, where: str, brief: bool) -> list[str]:
    docstring = ast.get_docstring(node)
    if not docstring:
        return [f"{where} has no docstring"]
    methods = {m.name: m for m in node.body if isinstance(m, Function)}
    needed = fields(node)
    if "__init__" in methods:
        needed = parameters(methods["__init__"])
    given = listed(docstring, "Attributes", "Parameters")
    if brief and not given:
        needed = []
    faults = [f"{where}: {n!r} is not explained" for n in needed if n not in given]
    # The operations of algebras and recurrences are documented once, at the stub that picks them by type.
    if any("NamedTuple" in ast.unparse(b) for b in node.bases):
        return faults
    for name, method in methods.items():
        if not name.startswith("_"):
            faults += faults_of_function(method, f"{where}.{name}", brief)
    return faults


def interface(package: Path, path: Path) -> set[str]:
    """Names that the packages around a module export."""
    names: set[str] = set()
    for folder in path.parents:
        initial = folder / "__init__.py"
        if folder == package or not initial.is_file():
            break
        names |= exported(ast.parse(initial.read_text(encoding="utf-8")))
    return names


def undocumented(package: Path) -> list[str]:
    found = []
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(package)
        if not ast.get_docstring(tree):
            found.append(f"{name} has no docstring")
        public = exported(tree)
        whole = public if path.parent == package else public & interface(package, path)
        if name.parts[0] in MACHINERY:
            whole = set()
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name in public:
                found += faults_of_class(node, f"{name}: {node.name}", node.name not in whole)
            elif isinstance(node, Function) and node.name in public:
                found += faults_of_function(node, f"{name}: {node.name}", node.name not in whole)
    return found


def test_every_public_name_is_documented(package: Path) -> None:
    found = undocumented(package)
    assert not found, "\n".join(found)


SECTION = (
    '    """Do.\n\n    Parameters\n    ----------\n    a\n        First.\n    {}\n        Second.\n    """\n'
)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def f(): pass\n", "f has no docstring"),
        ('def f(a, b):\n    """Do."""\n', "'a' is not explained"),
        ("def f(a, b, c):\n" + SECTION.format("b"), "'c' is not explained"),
        ("def f(a):\n" + SECTION.format("gone"), "'gone' is explained"),
        ('class f:\n    """Be."""\n    def go(self): pass\n', "f.go has no docstring"),
        ('class f:\n    """Be."""\n    def __init__(self, a): pass\n', "'a' is not explained"),
        ('@dataclass(frozen=True)\nclass f:\n    """Be."""\n    a: int\n', "'a' is not explained"),
    ],
    ids=["none", "no-section", "missing", "stale", "method", "init", "field"],
)
def test_a_gap_is_caught(tmp_path: Path, source: str, fault: str) -> None:
    (tmp_path / "module.py").write_text(f'"""Module."""\n\n__all__ = ["f"]\n\n{source}')
    assert any(fault in line for line in undocumented(tmp_path))


BRIEF = '"""Module."""\n\n__all__ = ["f"]\n\ndef f(a, b):\n    """Do."""\n'


def test_inner_names_may_be_brief_but_not_wrong(tmp_path: Path) -> None:
    (tmp_path / "dp").mkdir()
    path = tmp_path / "dp" / "sweep.py"
    path.write_text(BRIEF)
    assert undocumented(tmp_path) == []
    path.write_text('"""Module."""\n\n__all__ = ["f"]\n\ndef f(a):\n' + SECTION.format("gone"))
    assert len(undocumented(tmp_path)) == 1


def test_what_a_package_exports_may_not_be_brief(tmp_path: Path) -> None:
    (tmp_path / "vdj").mkdir()
    (tmp_path / "vdj" / "count.py").write_text(BRIEF)
    (tmp_path / "vdj" / "__init__.py").write_text('"""Module."""\n\n__all__ = ["g"]\n')
    assert undocumented(tmp_path) == []
    (tmp_path / "vdj" / "__init__.py").write_text('"""Module."""\n\n__all__ = ["f"]\n')
    assert len(undocumented(tmp_path)) == 2


def test_complete_docstrings_pass(tmp_path: Path) -> None:
    source = '"""Module."""\n\n__all__ = ["f", "g"]\n\ndef f(a, b):\n' + SECTION.format("b")
    (tmp_path / "module.py").write_text(source + 'def g(a):\n    """Do it to a."""\n')
    assert undocumented(tmp_path) == []
