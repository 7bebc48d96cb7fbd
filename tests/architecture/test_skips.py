"""Nothing is skipped or expected to fail without a reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CALLS = {"pytest.skip", "pytest.xfail", "pytest.importorskip"}
MARKS = {"pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"}
LAST_WORDS = {name.rpartition(".")[2] for name in CALLS | MARKS}


def has_reason(call: ast.Call, dotted: str) -> bool:
    given = [k.value for k in call.keywords if k.arg == "reason"]
    if dotted in ("pytest.skip", "pytest.xfail", "pytest.mark.skip"):
        given += call.args[:1]
    return any(not (isinstance(v, ast.Constant) and not str(v.value or "").strip()) for v in given)


def unexplained(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "skip" not in text and "xfail" not in text:
            continue
        tree = ast.parse(text)
        called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or node.attr not in LAST_WORDS:
                continue
            dotted = ast.unparse(node)
            if dotted not in CALLS | MARKS:
                continue
            call = called.get(id(node))
            if call is None and dotted in CALLS:
                continue
            if call is None or not has_reason(call, dotted):
                found.append(f"{path.relative_to(folder)}:{node.lineno}: {dotted} without a reason")
    return found


def test_every_skip_has_a_reason(repository: Path) -> None:
    found = unexplained(repository / "tests")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.skip\ndef test_x(): pass\n",
        "@pytest.mark.skip()\ndef test_x(): pass\n",
        "@pytest.mark.skipif(True)\ndef test_x(): pass\n",
        "@pytest.mark.xfail(strict=True)\ndef test_x(): pass\n",
        "def test_x():\n    pytest.skip()\n",
        "def test_x():\n    pytest.skip('')\n",
        "def test_x():\n    pytest.importorskip('thing')\n",
    ],
    ids=["bare", "empty", "skipif", "xfail", "call", "blank", "importorskip"],
)
def test_a_skip_without_reason_is_caught(tmp_path: Path, source: str) -> None:
    (tmp_path / "test_x.py").write_text(f"import pytest\n{source}")
    assert len(unexplained(tmp_path)) == 1


def test_reasons_pass(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "@pytest.mark.skipif(True, reason='no disk')\ndef test_x():\n    pytest.skip(f'{1} device')\n"
    )
    assert unexplained(tmp_path) == []
