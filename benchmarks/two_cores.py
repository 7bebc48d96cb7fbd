"""Seconds of whole commands with one thread on one processor and with two on two; outputs are compared.

Behind them the same of the seconds that a command tells, without its start-up, if it does.

    python benchmarks/two_cores.py [REPEATS [WORDS]]

Inputs are drawn with fixed seeds. All is compiled before anything counts; of each the least is told. With
WORDS, only command lines that contain one of them, with commas between. Commands of `ROWS` run again on
inputs of four times the rows: what these take more is told of each row, without what starting takes.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from commands import processor_name
from folding_cores import best_pair
from numpy.typing import NDArray

TOOLS = Path(__file__).parents[1] / "tools"
#: Inputs that commands make.
INPUTS = (
    "vdj generate --model human_TRB -n 400000 --seed 3 -o junctions.parquet",
    "index genome.fa -o genome.index",
)
#: Command lines, without their output.
COMMANDS = (
    "find guides.fa genome.fa --mismatches 5 --device cpu -o {0}.tsv",
    "find guides.fa genome.fa --errors 3 --edits --device cpu -o {0}.tsv",
    "find guides.fa genome.fa --mismatches 4 --pam NGG --dna-bulges 1 --rna-bulges 1 --device cpu -o {0}.tsv",
    "map reads.fastq genome.index --errors 0 -o {0}.sam",
    "map reads.fastq genome.index --errors 3 -o {0}.bam",
    "map reads.fastq genome.index --errors 5 -o {0}.bam",
    "fold short.fa --device cpu -o {0}.txt",
    "fold short.fa --probabilities --device cpu -o {0}.txt",
    "fold long.fa --device cpu -o {0}.txt",
    "vdj annotate receptors.fastq.gz --germline mouse_trb -o {0}.tsv",
    "vdj count junctions.parquet --germline human_trb --device cpu -o {0}.parquet",
    "vdj pgen junctions.parquet --model human_TRB --device cpu --of nt -o {0}.parquet",
)
#: Rows of inputs that are written four times over, too.
ROWS = {"receptors.fastq.gz": 120_000, "junctions.parquet": 400_000}


def _write_inputs(lines: list[str]) -> None:
    rng = np.random.default_rng(11)
    letters = np.frombuffer(b"ACGT", np.uint8)
    for name, count, length in (("short", 10000, 76), ("long", 24, 1200)):
        texts = (letters[rng.integers(0, 4, length)].tobytes() for _ in range(count))
        Path(f"{name}.fa").write_bytes(b"".join(b">s%d\n%s\n" % pair for pair in enumerate(texts)))
    if not any("genome" in line or "receptors" in line for line in lines):
        return
    genome = letters[rng.integers(0, 4, 80_000_000)]
    genome[51_000_000:52_000_000] = genome[1_000_000:2_000_000]
    halves = {name: genome[k : k + 40_000_000] for name, k in (("one", 0), ("two", 40_000_000))}
    Path("genome.fa").write_bytes(
        b"".join(b">%s\n%s\n" % (n.encode(), t.tobytes()) for n, t in halves.items())
    )
    places = rng.integers(0, genome.size - 200, 400_000)
    with Path("reads.fastq").open("wb") as file:
        for number, place in enumerate(places):
            read = genome[place : place + 100].copy()
            if number % 2:
                changed = rng.integers(0, 100, 2)
                read[changed] = letters[rng.integers(0, 4, 2)]
            file.write(b"@r%d\n%s\n+\n%s\n" % (number, read.tobytes(), b"I" * 100))
    guides = [genome[k : k + 20].tobytes() for k in places[:100]]
    Path("guides.fa").write_bytes(b"".join(b">g%d\n%s\n" % pair for pair in enumerate(guides)))
    simulated = ["--clones", "4000", "--reads", "120000", "--seed", "5", "-o", "receptors.fastq.gz"]
    subprocess.run([sys.executable, TOOLS / "simulate_reads.py", *simulated], check=True, capture_output=True)


def _seconds(words: list[str], processors: set[int], threads: int) -> NDArray[np.float64]:
    """Of the whole command, and those that it tells."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "plait", *words],
        env=os.environ | {"PLAIT_THREADS": str(threads)},
        check=True,
        capture_output=True,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )
    took = time.perf_counter() - start
    told = re.search(rb" in ([0-9.]+) s\b", done.stderr)
    return np.array([took, float(told[1]) if told else np.nan])


def _least(line: str, sets: list[set[int]], repeats: int) -> tuple[Any, Any, str]:
    """Least seconds with one thread on the first processor and with two on both, and whether files agree."""
    least, suffix = {1: np.full(2, np.inf), 2: np.full(2, np.inf)}, line.rpartition("{0}")[2]
    for threads in list(least) * repeats:
        took = _seconds(line.format(f"out{threads}").split(), sets[threads - 1], threads)
        least[threads] = np.fmin(least[threads], took)
    told = "same" if _same(Path(f"out1{suffix}"), Path(f"out2{suffix}")) else "DIFFERS"
    return least[1], least[2], told


def _figures(one: Any, two: Any) -> str:
    return "   ".join(f"{a:7.2f} {b:7.2f} {a / b:7.2f}" for a, b in zip(one, two, strict=True))


def _four_times(name: str) -> None:
    """Write an input four times over."""
    path = Path(name)
    if path.suffix == ".gz":
        Path(f"four-{name}").write_bytes(4 * path.read_bytes())
        return
    import pyarrow.parquet as arrow_parquet

    table = arrow_parquet.read_table(path)
    with arrow_parquet.ParquetWriter(f"four-{name}", table.schema, compression="zstd") as writer:
        for _ in range(4):
            writer.write_table(table, row_group_size=1 << 16)


def _same(one: Path, two: Path) -> bool:
    if one.suffix == ".parquet":
        import pyarrow.parquet as arrow_parquet

        return bool(arrow_parquet.read_table(one).equals(arrow_parquet.read_table(two)))
    return bool(_content(one) == _content(two))


def _content(path: Path) -> bytes:
    """The bytes of a file, without the header of BAM and the line of SAM that tell the command."""
    if path.suffix == ".bam":
        content = gzip.decompress(path.read_bytes())
        return content[8 + int.from_bytes(content[4:8], "little") :]
    return b"".join(line for line in path.read_bytes().splitlines(True) if not line.startswith(b"@PG"))


def main() -> None:
    """Print the table."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    words = sys.argv[2].split(",") if len(sys.argv) > 2 else [""]
    everything = sorted(os.sched_getaffinity(0))
    # Neighbours may be two threads of one core, which a virtual machine does not tell.
    processors = sorted(best_pair())
    os.sched_setaffinity(0, everything)
    sets = [set(processors[:1]), set(processors)]
    print(f"{processor_name()}, processors {processors} of {len(everything)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        lines = [line for line in COMMANDS if any(word in line for word in words)]
        _write_inputs(lines)
        for line in INPUTS:
            if any(line.split()[-1] in chosen for chosen in lines):
                _seconds(line.split(), set(everything), len(everything))
        print("  one s   two s   ratio    its work, if told       output")
        for line in lines:
            # What is missing is compiled before anything counts.
            _seconds(line.format("out").split(), set(everything), len(everything))
            one, two, told = _least(line, sets, repeats)
            print(f"{_figures(one, two)}  {told} plait {line}", flush=True)
            for name, rows in ROWS.items():
                if name not in line:
                    continue
                _four_times(name)
                more = _least(line.replace(name, f"four-{name}"), sets, repeats)
                each = 1e6 * (np.array(more[:2])[:, 0] - [one[0], two[0]]) / (3 * rows)
                print(
                    f"{_figures(*more[:2])}  {more[2]}, four times as long: "
                    f"{each[0]:.2f} and {each[1]:.2f} us a further row, {each[0] / each[1]:.2f} x",
                    flush=True,
                )


if __name__ == "__main__":
    main()
