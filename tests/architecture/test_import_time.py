"""``import plait`` is cheap, without compiler, table, cluster or device; commands load what they use."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from support.examples import often

MOST_MODULES = 10
HEAVY = (
    "numba",
    "llvmlite",
    "pyarrow",
    "polars",
    "pandas",
    "dask",
    "distributed",
    "cupy",
    "rich",
    "cyclopts",
)
PROGRAM = """
import json, sys
import numpy
before = set(sys.modules)
import {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded(module: str, path: Path | None = None) -> list[str]:
    """Modules that an import loads beside numpy's."""
    environment = os.environ | ({"PYTHONPATH": str(path)} if path else {})
    command = [sys.executable, "-c", PROGRAM.format(module=module)]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found: list[str] = json.loads(output)
    return found


def packages(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_import_loads_little_and_nothing_heavy() -> None:
    modules = loaded("plait")
    assert len(modules) <= MOST_MODULES, modules
    assert packages(modules).isdisjoint(HEAVY)


@pytest.mark.parametrize("heavy", often(1, ["numba", "pyarrow"]))
def test_a_heavy_import_is_caught(tmp_path: Path, heavy: str) -> None:
    (tmp_path / "planted.py").write_text(f"import {heavy}\n")
    assert heavy in packages(loaded("planted", tmp_path))


def test_many_small_imports_are_caught(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("import http.server\n")
    assert len(loaded("planted", tmp_path)) > MOST_MODULES


INPUTS = Path(__file__).parents[1] / "golden" / "commands"
RUN = """
import sys
from plait.cli import main
from plait.lang.compiling import compiled_kernels
status = main(sys.argv[1:])
print("modules:", status, len(compiled_kernels()), *sorted(sys.modules))
"""
#: What no command needs once its kernels are compiled, on a CPU and with rows in text.
NEVER = ["numba", "pandas", "dask", "distributed", "rich.progress", "cupy", "mpi4py", "jinja2"]
if sys.platform == "linux" and platform.machine() == "x86_64":
    NEVER.append("llvmlite.binding")
FOR_TABLES = ("pyarrow",)
FOR_HELP = ("rich.markdown", "markdown_it", "pygments", "numpy")


def loaded_by(command: str, folder: Path) -> set[str]:
    """Modules that are loaded after a command line that had nothing to compile."""
    words = command.format(inputs=INPUTS).split()
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", RUN, *words], cwd=folder, capture_output=True, text=True, check=True
        )
        status, compiled, *modules = run.stdout.rpartition("modules:")[2].split()
        assert status == "0", run.stderr
        if compiled == "0":
            return set(modules)
    raise AssertionError(f"compiled again: {run.stderr}")


@pytest.mark.parametrize(
    ("command", "unused"),
    often(
        2,
        [
            ("--help", (*NEVER, *FOR_TABLES, *FOR_HELP)),
            ("vdj --help", (*NEVER, *FOR_TABLES, *FOR_HELP)),
            ("vdj count --help", (*NEVER, *FOR_TABLES, "numpy")),
            (
                "search {inputs}/proteins.fasta {inputs}/proteins.fasta -o hits.m8 --device cpu",
                (*NEVER, *FOR_TABLES, "rich", "plait.vdj", "plait.hyperspectral"),
            ),
            (
                "vdj annotate {inputs}/reads_1.fastq --germline mouse_trb -o reads.tsv --device cpu",
                (*NEVER, "pyarrow.parquet", "rich", "plait.align", "plait.vdj.alleles", "numpy.random"),
            ),
            (
                "vdj count {inputs}/rows.tsv --germline mouse_trb -o counts.tsv --device cpu",
                (*NEVER, "rich", "plait.vdj.reads", "plait.vdj.model", "plait.stats"),
            ),
            (
                "hsi compress {inputs}/cube.npy -o cube.c123",
                (*NEVER, *FOR_TABLES, "rich", "plait.vdj", "plait.align", "xarray", "zarr"),
            ),
        ],
    ),
)
def test_a_command_loads_what_it_uses(tmp_path: Path, command: str, unused: tuple[str, ...]) -> None:
    assert not loaded_by(command, tmp_path).intersection(unused)
