"""Processor time of short commands, from start to end of the process, with pandas to be found and without.

    python benchmarks/start_up.py [ROUNDS]

Kernels are compiled, and bytecode written, in a first round that does not count. pyarrow imports pandas where
it finds it, unless it is kept from that; what stands for pandas here takes some seconds to import.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

INPUTS = Path(__file__).parents[1] / "tests" / "golden" / "commands"
COMMANDS = (
    "--help",
    "vdj --help",
    "search --help",
    "vdj count --help",
    f"vdj count {INPUTS}/rows.tsv --germline mouse_trb -o counts.tsv --device cpu",
    "vdj pgen drawn.tsv --model human_TRB -o pgen.tsv",
    f"search {INPUTS}/proteins.fasta {INPUTS}/proteins.fasta -o hits.m8 --device cpu",
    "vdj annotate ten.fastq --germline mouse_trb -o reads.tsv --device cpu",
    f"hsi compress {INPUTS}/cube.npy -o cube.c123",
)


def processor_seconds(command: str, folder: Path, path: str) -> float:
    """Those of a process that runs a command line, and of its children."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = path
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-m", "plait", *command.split()]
    subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the least and the median of some rounds."""
    rounds = int(sys.argv[1]) if sys.argv[1:] else 7
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "with" / "pandas").mkdir(parents=True)
        (folder / "with" / "pandas" / "__init__.py").write_text("sum(range(10**8))\n")
        reads = (INPUTS / "reads_1.fastq").read_text().splitlines(keepends=True)
        (folder / "ten.fastq").write_text("".join(reads[:40]))
        processor_seconds("vdj generate --model human_TRB -n 60 --seed 3 -o drawn.tsv", folder, "")
        print(f"{'least':>7}{'median':>8}{'least with pandas':>19}  command")
        for command in COMMANDS:
            found: dict[str, list[float]] = {"": [], str(folder / "with"): []}
            for turn in range(rounds + 1):
                for path, seconds in found.items():
                    taken = processor_seconds(command, folder, path)
                    seconds += [taken] if turn else []
            plain, beside = found.values()
            told = command.replace(f"{INPUTS}/", "")
            figures = f"{min(plain):7.2f}{statistics.median(plain):8.2f}{min(beside):19.2f}"
            print(f"{figures}  plait {told}", flush=True)


if __name__ == "__main__":
    main()
