"""Runs the cells of a notebook as plain Python, in one namespace; needs no Jupyter.

After a change of what they print, for a good reason, the notebook is brought up to date by::

    python docs/notebook_cells.py docs/notebooks/public-clonotypes.ipynb
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def printed(path: Path) -> list[str]:
    """What each cell of code prints, and the value of its last expression, when run from the start."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                value = _run("".join(cell["source"]), f"{path.name}, cell {len(found) + 1}", names)
            found.append(shown.getvalue() + ("" if value is None else f"{value!r}\n"))
    return found


def _run(text: str, name: str, names: dict[str, Any]) -> Any:
    parsed = ast.parse(text, name)
    last = parsed.body.pop() if parsed.body and isinstance(parsed.body[-1], ast.Expr) else None
    exec(compile(parsed, name, "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), names)


def kept(path: Path) -> list[str]:
    """What the notebook says that each cell of code prints."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [
        "".join(line for output in cell["outputs"] for line in output["text"])
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def refresh(path: Path) -> None:
    """Write what the cells print into the notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    texts = iter(printed(path))
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
        if cell["cell_type"] == "code":
            lines = next(texts).splitlines(keepends=True)
            shown = {"name": "stdout", "output_type": "stream", "text": lines}
            cell |= {"execution_count": None, "metadata": {}, "outputs": [shown] if lines else []}
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name))
