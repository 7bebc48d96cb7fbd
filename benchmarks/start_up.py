"""Seconds of short commands, from start to end of the process: the first time, and when all is compiled.

    python benchmarks/start_up.py [ROUNDS [WORD ...]]

Words choose the command lines that have one of them; those of `vdj generate` are read by others. The first
time a command has an empty cache of kernels, or that of PLAIT_CACHE_DIR where this is set. Bytecode is
written before anything counts. What Python and libraries take alone stands above. pyarrow imports pandas
where it finds it, unless it is kept from that; what stands for pandas here takes some seconds to import.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

INPUTS = Path(__file__).parents[1] / "tests" / "golden" / "commands"
#: Command lines; later ones read what earlier ones wrote.
COMMANDS = (
    "--help",
    "vdj --help",
    "search --help",
    "vdj count --help",
    "vdj generate --model human_TRB -n 60 --seed 3 -o drawn.tsv",
    "vdj count rows.tsv --germline mouse_trb -o counts.tsv --device cpu",
    "vdj pgen drawn.tsv --model human_TRB -o pgen.tsv",
    "vdj scenarios drawn.tsv --model human_TRB --best 3 -o scenarios.tsv",
    "vdj infer drawn.tsv --start human_TRB --rows all --iterations 2 --no-report --force -o model",
    "vdj sharing rows.tsv -o sharing.tsv",
    "vdj annotate ten.fastq --germline mouse_trb -o reads.tsv --device cpu",
    "align proteins.fasta --pairs all --device cpu -o pairs.tsv",
    "search proteins.fasta proteins.fasta -o hits.m8 --device cpu",
    "find guides.tsv genome.fasta --mismatches 3 --pam NGG --device cpu -o guides.out.tsv",
    "index genome.fasta -o genome.plait-index",
    "map short_1.fastq genome.fasta -o reads.sam",
    "fold rna.fasta --device cpu -o folds.txt",
    "fold rna.fasta --probabilities --device cpu -o folds.txt",
    "hsi compress cube.npy -o cube.c123",
    "hsi decompress cube.c123 -o back.npy --force",
)


#: What commands cannot do without.
LIBRARIES = ("pass", "import numpy", "import pyarrow.compute", "import cyclopts", "import llvmlite.binding")


def seconds(
    command: str, folder: Path, cache: str, path: str = "", program: tuple[str, ...] = ("-m", "plait")
) -> tuple[float, float]:
    """By the clock, and of the processor with its children, of a process that runs a command line."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": path, "PLAIT_CACHE_DIR": str(folder / cache)}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    words = [sys.executable, *program, *command.split()]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    ended, after = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"plait {command}: {done.stderr}")
    return ended - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the first time, and the least of some rounds."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 5
    chosen = [command for command in COMMANDS if any(word in command for word in sys.argv[2:] or [""])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(INPUTS, folder, dirs_exist_ok=True)
        (folder / "with" / "pandas").mkdir(parents=True)
        (folder / "with" / "pandas" / "__init__.py").write_text("sum(range(10**8))\n")
        reads = (INPUTS / "reads_1.fastq").read_text().splitlines(keepends=True)
        (folder / "ten.fastq").write_text("".join(reads[:40]))
        print(f"# {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; seconds, least of {rounds}")
        for library in LIBRARIES:
            took = [seconds("", folder, "none", program=("-c", library)) for _ in range(rounds)]
            print("#" + "".join(f"{figure:7.2f}" for figure in map(min, zip(*took, strict=True))), library)
        print("#  first: clock, processor; again: clock, processor; processor with pandas; kernels")
        for number, command in enumerate(chosen):
            cache = os.environ.get("PLAIT_CACHE_DIR", f"cache-{number}")
            seconds("vdj --help", folder, cache)
            first = seconds(command, folder, cache)
            again = [seconds(command, folder, cache) for _ in range(rounds)]
            pandas = min(seconds(command, folder, cache, str(folder / "with"))[1] for _ in range(rounds))
            kernels = len([*(folder / cache).rglob("*.o"), *(folder / cache).rglob("*.numba")])
            figures = (*first, *map(min, zip(*again, strict=True)), pandas)
            told = "".join(f"{figure:7.2f}" for figure in figures)
            print(f"{told}{kernels:4d}  plait {command}", flush=True)


if __name__ == "__main__":
    main()
