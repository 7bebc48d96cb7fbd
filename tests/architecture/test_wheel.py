"""A wheel with machine code, installed into a fresh environment, compiles nothing."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from plait.lang.compile import LEVELS, host_levels

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
        reason="wheels have machine code for Linux on x86-64 and Arm",
    ),
]

INPUTS = Path(__file__).parents[1] / "golden" / "commands"
PROGRAM = """
import json, sys
import plait
from plait.cli import main
from plait.lang.compiling import compiled_kernels
status = main(sys.argv[1:])
print("found:" + json.dumps([status, plait.__file__, compiled_kernels(), "numba" in sys.modules]))
"""
COMMANDS = (
    "vdj count {inputs}/rows.tsv --germline mouse_trb -o counts.tsv --device cpu",
    "vdj generate --model human_TRB -n 60 --seed 3 -o drawn.tsv",
    "vdj pgen drawn.tsv --model human_TRB -o pgen.tsv --of nt,aa",
    "search {inputs}/proteins.fasta {inputs}/proteins.fasta -o hits.m8 --device cpu",
    "vdj annotate {inputs}/reads_1.fastq --germline mouse_trb -o reads.tsv --clonotypes clonotypes.tsv",
    "hsi compress {inputs}/cube.npy -o cube.c123",
    "find {inputs}/guides.tsv {inputs}/genome.fasta -o found.tsv --pam NGG --device cpu",
    "map {inputs}/short_1.fastq {inputs}/genome.fasta -o mapped.sam",
    "fold {inputs}/rna.fasta -o folded.txt --probabilities --device cpu",
)


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """That of a fresh environment with the wheel; what plait needs is lent by the one that runs the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    if not host_levels():
        pytest.skip(reason="wheels have no machine code for this processor")
    build = [sys.executable, "tools/build_wheel.py", "-o", str(folder)]
    subprocess.run(build, cwd=repository, check=True)
    (wheel,) = folder.glob("*.whl")
    assert not wheel.name.endswith("any.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "fresh")], check=True)
    python = folder / "fresh" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel], check=True)
    (packages,) = (folder / "fresh" / "lib").glob("python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_command_of_a_wheel_compiles_nothing(
    interpreter: Path, folder: Path, level: str, command: str
) -> None:
    if level not in host_levels():
        pytest.skip(reason=f"this processor is no {level}")
    home = folder / "home"
    home.mkdir(exist_ok=True)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PLAIT", "NUMBA", "XDG"))
    }
    kept.pop("PYTHONPATH", None)
    # A processor that has no more than the level.
    features = ",".join(f"+{name}" for name in LEVELS[level][1])
    words = command.format(inputs=INPUTS).split()
    run = subprocess.run(
        [interpreter, "-c", PROGRAM, *words],
        cwd=folder,
        env=kept | {"HOME": str(home), "NUMBA_CPU_FEATURES": features},
        capture_output=True,
        text=True,
        check=True,
    )
    status, place, compiled, numba = json.loads(run.stdout.rpartition("found:")[2])
    assert status == 0, run.stderr
    assert interpreter.parents[1] in Path(place).parents
    assert (compiled, numba) == ([], False)
    # What LLVM tells of the processor is all that is kept, see `plait.lang.native`.
    files = [path.name for path in home.rglob("*") if path.is_file()]
    assert all(name.startswith("processor-") for name in files)
