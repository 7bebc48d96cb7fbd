"""Files stay within 900 lines, functions within 60 and folders of the package within 20 modules.

Docstrings count in files and not in functions: another gate asks for complete ones.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from support.statements import statements

FILE_LINES = 900
FOLDER_MODULES = 20
FUNCTION_LINES = 60
FOLDERS = ("src", "tests", "benchmarks", "tools", "docs")


def too_long(root: Path) -> list[str]:
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            name = path.relative_to(root)
            lines = len(text.splitlines())
            if lines > FILE_LINES:
                found.append(f"{name}: {lines} lines, at most {FILE_LINES}")
            for node in statements(ast.parse(text)):
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                lines = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring_lines(node)
                if lines > FUNCTION_LINES:
                    found.append(
                        f"{name}:{node.lineno}: {node.name} has {lines} lines, at most {FUNCTION_LINES}"
                    )
    return found


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(node, clean=False) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def test_no_file_or_function_is_too_long(repository: Path) -> None:
    found = too_long(repository)
    assert not found, "\n".join(found)


def test_a_long_function_is_caught(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    body = "    x = 1\n"
    (tmp_path / "src" / "fits.py").write_text("def fits():\n" + body * (FUNCTION_LINES - 1))
    assert too_long(tmp_path) == []
    method = "    def long(self):\n" + f"    {body}" * FUNCTION_LINES
    (tmp_path / "src" / "long.py").write_text(f"class A:\n{method}")
    assert len(too_long(tmp_path)) == 1


def test_a_docstring_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    docstring = '    """One.\n' + "\n" * FUNCTION_LINES + '    """\n'
    body = "    x = 1\n"
    path = tmp_path / "src" / "told.py"
    path.write_text("def told():\n" + docstring + body * (FUNCTION_LINES - 1))
    assert too_long(tmp_path) == []
    path.write_text("def told():\n" + docstring + body * FUNCTION_LINES)
    assert len(too_long(tmp_path)) == 1


def test_a_long_file_is_caught(tmp_path: Path) -> None:
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    path = tmp_path / "tests" / "unit" / "test_x.py"
    path.write_text("x = 1\n" * FILE_LINES)
    assert too_long(tmp_path) == []
    path.write_text("x = 1\n" * (FILE_LINES + 1))
    assert len(too_long(tmp_path)) == 1


def crowded(root: Path) -> list[str]:
    folders = Counter(path.parent.relative_to(root) for path in (root / "src").rglob("*.py"))
    return [f"{folder}: {n} modules" for folder, n in sorted(folders.items()) if n > FOLDER_MODULES]


def test_no_folder_is_crowded(repository: Path) -> None:
    found = crowded(repository)
    assert not found, "\n".join(found)


def test_a_crowded_folder_is_caught(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for k in range(FOLDER_MODULES):
        (tmp_path / "src" / f"m{k}.py").write_text("")
    assert crowded(tmp_path) == []
    (tmp_path / "src" / "last.py").write_text("")
    assert crowded(tmp_path) == [f"src: {FOLDER_MODULES + 1} modules"]
