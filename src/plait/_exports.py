"""Names of a package that are loaded when they are first used: what they need takes time to import."""

from __future__ import annotations

import ast
import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def on_first_use(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package: for the names that it imports ``if TYPE_CHECKING``."""

    @functools.cache
    def homes() -> dict[str, str]:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        blocks = [node for node in tree.body if isinstance(node, ast.If)]
        imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    def attribute(name: str) -> Any:
        if name.startswith("__") or (home := homes().get(name)) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home == package:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(home), name)

    return attribute, lambda: sorted({*vars(sys.modules[package]), *homes()})
