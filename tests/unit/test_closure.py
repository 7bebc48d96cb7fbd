"""The sources that a kernel is made of: all that its code names, and no more than that."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from support.examples import often

import plait

PACKAGE = Path(plait.__file__).parent

#: Prints the digest of every kernel of plait: as it is, and after each of the edits, which are undone.
DIGESTS = """
import gc, importlib, json, os, pkgutil
from pathlib import Path
import plait
from plait.lang import closure, compile as _jit

left_out = ("__main__", "cuda", "gpu", "reports", "cli")
for module in pkgutil.walk_packages(plait.__path__, "plait."):
    if not any(part.startswith(left_out) for part in module.name.split(".")):
        importlib.import_module(module.name)
kernels = [found for found in gc.get_objects() if type(found) is _jit._Kernel]
found = []
for edited in [[], *json.loads(os.environ["EDITS"])]:
    files = {Path(plait.__file__).parent / name for name in edited}
    before = {file: file.read_text() for file in files}
    for file, text in before.items():
        file.write_text(text + "\\n")
    closure._content.cache_clear()
    closures = {one.name: _jit.closure(one.py_func, ()) for one in kernels}
    found.append({name: [made.digest(), *made.files] for name, made in closures.items()})
    for file, text in before.items():
        file.write_text(text)
print(json.dumps(found))
"""

#: A kernel, and what it is made of, in several files.
FILES = {
    "entry": """
        import numpy as np
        import tables
        from classes import Rule
        from plait.lang.compile import by_type_of, closure, kernel, shared
        from steps import NUMBER, TABLE, choose, step

        NUMBERS = {"a": 1}

        pick = by_type_of({Rule: step})

        @kernel
        def entry(rule, x, more=NUMBER):
            return choose(rule, x) + pick(rule, x) + tables.LIMIT + TABLE[0]
        """,
    "steps": """
        import numpy as np
        from constants import NUMBER, TABLE
        from far import helper
        from plait.lang.compile import by_type, shared, specialise

        @by_type
        def choose(rule, x): ...

        @shared
        def step(rule, x):
            return x + 1

        def compiled_step(rule, x):
            return helper(x)

        specialise(step, lambda rule, x: compiled_step)
        """,
    "classes": """
        from typing import NamedTuple
        from inner import add

        class Base:
            pass

        class Rule(NamedTuple):
            cost: object

            @staticmethod
            def choose(rule, x):
                return add(rule.cost, x)
        """,
    "inner": """
        from plait.lang.compile import shared

        @shared
        def add(a, b):
            return a + b
        """,
    "far": """
        def helper(x):
            return x
        """,
    "constants": """
        import os
        import numpy as np
        NUMBER = int(os.environ.get("NUMBER", "3"))
        TABLE = np.array([int(os.environ.get("FIRST", "3")), 1])
        """,
    "tables": """
        LIMIT = 7
        """,
    "unrelated": """
        def other(x):
            return x
        """,
}
PROGRAM = """
import json, os, unrelated
from classes import Rule
from entry import entry
from plait.lang import compile as _jit
sources = _jit.closure(entry.py_func, (Rule(1), 2))
names = sorted(os.path.basename(file).removesuffix(".py") for file in sources.files)
print(json.dumps([names, sources.digest("facts")]))
"""


def written(folder: Path) -> Path:
    """A folder of the files."""
    for name, text in FILES.items():
        lines = [line[8:] for line in text.strip("\n").splitlines()]
        (folder / f"{name}.py").write_text("\n".join(lines) + "\n")
    return folder


def answers(program: str, folder: Path, **settings: str) -> object:
    """What a program prints that imports from a folder."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"} | settings
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def sources(folder: Path, **settings: str) -> tuple[list[str], str]:
    names, digest = answers(PROGRAM, folder, **settings)  # type: ignore[misc]  # two items
    return names, digest


def test_all_that_is_named_counts_wherever_it_stands(tmp_path: Path) -> None:
    names, _ = sources(written(tmp_path))
    # A constant counts by its value: its own file need not be read.
    assert names == ["classes", "entry", "far", "inner", "steps"]


@pytest.mark.parametrize("name", often(1, ["far", "entry", "classes", "inner", "steps"]))
def test_a_byte_more_is_another_digest(tmp_path: Path, name: str) -> None:
    _, before = sources(written(tmp_path))
    with (tmp_path / f"{name}.py").open("a") as file:
        file.write("\n")
    assert sources(tmp_path)[1] != before


@pytest.mark.slow
def test_other_values_of_constants_are_another_digest(tmp_path: Path) -> None:
    _, before = sources(written(tmp_path))
    assert sources(tmp_path, NUMBER="4")[1] != before
    assert sources(tmp_path, FIRST="4")[1] != before
    (tmp_path / "tables.py").write_text("LIMIT = 8\n")
    assert sources(tmp_path)[1] != before


def test_nothing_else_matters(tmp_path: Path) -> None:
    before = sources(written(tmp_path))
    (tmp_path / "unrelated.py").write_text("def other(x):\n    return x + 1\n")
    (tmp_path / "tables.py").write_text("# As before.\nLIMIT = 7\n")
    assert sources(tmp_path, PYTHONHASHSEED="1") == before
    assert sources(tmp_path, PYTHONHASHSEED="2") == before


#: Digests of all kernels that commands use, with the types of their arguments.
LISTED = """
import json
from plait.lang import ahead, compile as _jit

count = len(json.loads(ahead.LIST.read_text(encoding="ascii"))["kernels"])
found = [ahead.kernel_and_arguments(number) for number in range(count)]
print(json.dumps([_jit.closure(kernel.py_func, arguments).digest() for kernel, arguments in found]))
"""


@pytest.mark.slow
def test_what_else_is_imported_does_not_matter(tmp_path: Path) -> None:
    """What one process keeps another one finds: also one that has compiled, or uses a GPU."""
    modules = ("numba", "plait.lang.instructions", "plait.dp.pairs.gpu_packed", "plait.dp.pairs.gpu_stripes")
    others = "".join(f"import {name}\n" for name in modules)
    assert answers(others + LISTED, tmp_path) == answers(LISTED, tmp_path)


#: More than five kernels are made of them: the recurrences of gaps and of insertions, bits of three coders
#: and decoders, the walk back through choices, how an index and a text are read at a place, and modules of
#: small kernels: texts of columns, rows of bits, alignments of mapped reads, near neighbours, lookups that
#: nothing but tests and a page run; and lists of pairs, aligned one after the other or beside each other.
SHARED = {
    *("dp/pairs/gaps.py", "dp/chain/insertions.py", "hyperspectral/coders.py", "dp/pairs/traceback.py"),
    *("vdj/reads/columns.py", "dp/bitparallel/striped.py", "mapping/lookups.py"),
    *("mapping/alignments.py", "mapping/index.py", "mapping/verification.py"),
    *("vdj/repertoires/neighbours.py", "dp/intervals/loops.py", "dp/pairs/lists.py"),
}


@pytest.mark.slow
def test_an_edit_compiles_few_kernels_again(tmp_path: Path) -> None:
    copy = tmp_path / "plait"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    # No kernel is made of two of them.
    orders = ["dp/chain/weigh.py", "dp/pairs/traceback.py", "vdj/reads/mates.py"]
    others = ["settings.py", "formats/tables.py", "align/batches.py", "reports/doctor.py"]
    edits = [orders, others, ["lang/instructions.py"]]
    before, *after = answers(DIGESTS, tmp_path, EDITS=json.dumps(edits))  # type: ignore[misc]  # a list
    assert isinstance(before, dict) and len(before) >= 40
    counted = Counter(file.removeprefix(f"{copy}/") for _, *files in before.values() for file in files)
    inside = {name: n for name, n in counted.items() if not name.startswith(("lang/", "/"))}
    assert len(inside) >= 25
    assert {name for name, n in inside.items() if n > 5} <= SHARED
    again = [{kernel for kernel in before if found[kernel][0] != before[kernel][0]} for found in after]
    assert len(again[0]) == sum(inside[order] for order in orders)
    assert again[1] == set()
    # What says how lanes compile is part of every kernel that works on lanes, but of no other.
    assert len(before) / 4 < len(again[2]) == counted["lang/instructions.py"] < len(before) * 2 / 3
