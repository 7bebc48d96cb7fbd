"""Recurrences are arithmetic on small tuples, and nothing else: one body must serve every target.

The static methods of the named tuples of every recurrence (`RECURRENCES`) may use arithmetic, bit operations,
comparison, conditionals, tuples and named tuples of their module, fields of their parameters, entries of a
tuple by a literal index, and calls to operations of `plait.lang.algebras`, `plait.lang.lanes` or of its
module.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

IMPORTS = (
    "__future__",
    "typing",
    "plait.lang.compile",
    "plait.lang.algebras",
    "plait.lang.lanes",
)
OPERATIONS = ("plait.lang.algebras", "plait.lang.lanes")
#: The recurrence of every family.
RECURRENCES = (
    "pairs/gaps.py",
    "chain/insertions.py",
    "bands/prediction.py",
    "bitparallel/recurrences.py",
    "intervals/nearest_neighbor.py",
)
STATEMENTS = (ast.Return, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If)
EXPRESSIONS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.Name, ast.Constant,
    ast.Attribute, ast.Subscript, ast.Call, ast.Starred,
)  # fmt: skip


def below(module: str, roots: tuple[str, ...]) -> bool:
    return any(module == root or module.startswith(f"{root}.") for root in roots)


def imports(tree: ast.Module) -> list[tuple[str, list[str]]]:
    """(module, names bound by it) of every import, wherever it stands."""
    found: list[tuple[str, list[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, [alias.asname or alias.name]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found.append((module, [alias.asname or alias.name for alias in node.names]))
    return found


def named_tuples(tree: ast.Module) -> list[ast.ClassDef]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any("NamedTuple" in ast.unparse(b) for b in node.bases)
    ]


class Body:
    """Faults of one method."""

    def __init__(self, method: ast.FunctionDef, operations: set[str]) -> None:
        self.parameters = {a.arg for a in (*method.args.posonlyargs, *method.args.args)}
        self.operations = operations
        self.faults: list[str] = []
        for at, statement in enumerate(method.body):
            if at == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            self.statement(statement)

    def refuse(self, node: ast.AST, what: str) -> None:
        self.faults.append(f"{getattr(node, 'lineno', 0)}: {what}")

    def statement(self, node: ast.stmt) -> None:
        if not isinstance(node, STATEMENTS):
            self.refuse(node, f"{type(node).__name__} statement")
        elif isinstance(node, ast.If):
            self.expression(node.test)
            for inner in (*node.body, *node.orelse):
                self.statement(inner)
        elif isinstance(node, ast.Return):
            if node.value is None:
                self.refuse(node, "return without a value")
            else:
                self.expression(node.value)
        else:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                self.target(target)
            if node.value is not None:
                self.expression(node.value)

    def target(self, node: ast.expr) -> None:
        if isinstance(node, ast.Tuple):
            for inner in node.elts:
                self.target(inner)
        elif not isinstance(node, ast.Name):
            self.refuse(node, f"assignment to {ast.unparse(node)}")

    def expression(self, node: ast.expr) -> None:
        if not isinstance(node, EXPRESSIONS):
            self.refuse(node, f"{type(node).__name__}: {ast.unparse(node)}")
            return
        if isinstance(node, ast.Constant) and not isinstance(node.value, int | float):
            self.refuse(node, f"constant {node.value!r}")
        elif isinstance(node, ast.Attribute):
            if not (isinstance(node.value, ast.Name) and node.value.id in self.parameters):
                self.refuse(node, f"attribute of no parameter: {ast.unparse(node)}")
        elif isinstance(node, ast.Subscript):
            if not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)):
                self.refuse(node, f"index that is no literal: {ast.unparse(node)}")
            self.expression(node.value)
        elif isinstance(node, ast.Call):
            self.call(node)
        else:
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.expr):
                    self.expression(inner)

    def call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id in self.operations):
            self.refuse(node, f"call of {ast.unparse(node.func)}, which is no operation of algebras or lanes")
        for keyword in node.keywords:
            self.refuse(node, f"keyword argument {keyword.arg}")
        for argument in node.args:
            self.expression(argument)


def faults(*paths: Path) -> list[str]:
    found = []
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        bound = imports(tree)
        found += [f"{path.name}: imports {module}" for module, _ in bound if not below(module, IMPORTS)]
        operations = {name for module, names in bound if below(module, OPERATIONS) for name in names}
        operations |= {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
            and any("by_type" in ast.unparse(d) for d in node.decorator_list)
        }
        operations |= {node.name for node in named_tuples(tree)}
        for node in named_tuples(tree):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    found += [f"{path.name}:{fault}" for fault in Body(inner, operations).faults]
    return found


def test_recurrences_are_plain_arithmetic(package: Path) -> None:
    paths = [package / "dp" / name for name in RECURRENCES]
    assert all(named_tuples(ast.parse(path.read_text())) for path in paths)
    found = faults(*paths)
    assert not found, "\n".join(found)


MODULE = """
from typing import Any, NamedTuple
from plait.lang.compile import by_type
from plait.lang.algebras import choice, extend
{imports}

class Chain(NamedTuple):
    gap: Any

    @staticmethod
    def step(p: Chain, alg: Any, diag: Any, left: Any, same: Any) -> Any:
        {body}

@by_type
def step(p: Any, alg: Any, diag: Any, left: Any, same: Any) -> Any: ...
"""


def planted(folder: Path, body: str, extra: str = "") -> list[str]:
    (folder / "chain.py").write_text(MODULE.format(body=body, imports=extra))
    return faults(folder / "chain.py")


@pytest.mark.parametrize(
    "body",
    [
        "return choice(alg, extend(alg, diag[0], p.gap), left[1])",
        "a = diag[0] & 3; return (a << 1, -a, alg.zero if same and not a else alg.one)",
        "if same > 0:\n            return diag[0]\n        return step(p, alg, left, left, 0)",
        "return Chain(extend(alg, p.gap, same))",
    ],
    ids=["algebra", "bits", "branch", "itself"],
)
def test_arithmetic_passes(tmp_path: Path, body: str) -> None:
    assert planted(tmp_path, body) == []


@pytest.mark.parametrize(
    "body",
    [
        "for k in diag: pass\n        return k",
        "while same: same -= 1\n        return same",
        "return diag[same]",
        "return diag[0:2]",
        "diag[0] = same; return diag",
        "return max(diag[0], left[0])",
        "return diag.sum()",
        "return [diag[0]]",
        "return tuple(x for x in diag)",
        "return (lambda x: x)(same)",
        "import math; return math.exp(same)",
        "raise ValueError",
        "print(same); return same",
        "return 'text'",
        "return choice(alg, a=diag, b=left)",
        "return choice.other",
        "return Other(same)",
    ],
)
def test_anything_else_is_caught(tmp_path: Path, body: str) -> None:
    assert planted(tmp_path, body) != []


def test_other_imports_are_caught(tmp_path: Path) -> None:
    assert planted(tmp_path, "return same", "import numpy as np") == ["chain.py: imports numpy"]
    assert planted(tmp_path, "return same", "from plait.dp.pairs import rows") != []
