"""Statements of Python sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["statements"]


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements, without going through expressions, of which there are many more."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, name, ())
