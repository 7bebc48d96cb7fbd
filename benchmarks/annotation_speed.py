"""How fast reads are annotated: the whole command in a process of its own, and its stages one by one.

Used by `vdj_annotate.py`.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from support.read_library import Library, simulate_reads, write_fastq
from support.read_simulation import Sequencing

from plait.formats.reads import ReadItem, open_reads
from plait.formats.tables import open_table
from plait.vdj.germline import load_germline
from plait.vdj.reads.annotator import GermlineAligner
from plait.vdj.reads.mates import merge_mates
from plait.vdj.reads.rearrangements import AnnotationSettings, RearrangementBuilder

#: Where each figure comes from; none of these programs can be installed here.
PUBLISHED = (
    "TRUST4 1.1.10: 640 reads/s on one core, measured earlier on reads like these (another machine)",
    "arda: 1,800-3,300 reads/s on 16 threads, IgBLAST 440 reads/s likewise (published by arda's authors)",
    "MiXCR: about 16,700 reads/s on many threads (a report of a user)",
)


#: A small process that starts the one that is measured: a fork counts what its parent had in memory.
_LAUNCHER = """
import os, resource, subprocess, sys, time
os.sched_setaffinity(0, {int(core) for core in sys.argv[1].split(",")})
begin = time.perf_counter()
run = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL)
wall = time.perf_counter() - begin
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(run.returncode)
"""


class Process(NamedTuple):
    """What a process took."""

    wall: float
    cpu: float
    peak_mb: float


def write_inputs(folder: Path, shared: Path | None, reads: int) -> tuple[Path, Path, Path]:
    """Single reads (the shared ones over and over, or simulated ones), and simulated pairs that overlap."""
    single, first, second = (folder / name for name in ("single.fastq.gz", "r1.fastq.gz", "r2.fastq.gz"))
    germline = load_germline("mouse_trb")
    distinct = min(reads, 20_000)
    if shared is not None and shared.exists():
        single.write_bytes(shared.read_bytes() * max(1, reads // 10_000))
    else:
        library = Library(reads=distinct, clones=10_000, sequencing=Sequencing(substitutions=0.005))
        write_fastq(simulate_reads([germline], library, seed=1), single)
        single.write_bytes(single.read_bytes() * max(1, reads // distinct))
    pairs = Sequencing(substitutions=0.005, insert_mean=220, insert_sd=20)
    library = Library(reads=distinct, clones=10_000, sequencing=pairs)
    write_fastq(simulate_reads([germline], library, seed=2), first, second)
    for path in (first, second):
        path.write_bytes(path.read_bytes() * max(1, reads // distinct))
    return single, first, second


def run_command(arguments: Sequence[str], cores: int) -> Process:
    """Run a command of plait on so many cores."""
    allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    command = [sys.executable, "-c", _LAUNCHER, allowed, sys.executable, "-m", "plait", *arguments]
    # Without it, every process would read Python's sources again: a second, which users do not have.
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if run.returncode:
        raise SystemExit(f"plait {' '.join(arguments)} failed: {run.stderr[-2000:]}")
    return Process(*map(float, run.stdout.split()))


def whole_command(inputs: tuple[Path, Path, Path], reads: int, repeat: int, folder: Path) -> Iterator[str]:
    """The command, from files to files, on one core and on two."""
    single, first, second = inputs
    few = folder / "few.fastq"
    with gzip.open(single, "rt") as file:
        few.write_text("".join(islice(file, 4000)))
    # Compiled before anything counts.
    for suffix in ("tsv", "parquet"):
        _best([str(few), "-o", str(folder / f"few.{suffix}")], 1, 1)
    few.write_text("@a\nACGT\n+\nIIII\n")
    start = _best([str(few), "-o", str(folder / "few.tsv")], 1, repeat)
    yield f"start-up, one read of 4 bases: {start.wall:.2f} s"
    cases = (
        ("single, TSV", [str(single)], "out.tsv"),
        ("single, Parquet", [str(single)], "out.parquet"),
        ("pairs merged, Parquet", [str(first), "--mate", str(second)], "pairs.parquet"),
    )
    for name, files, output in cases:
        rates = []
        for cores in (1, 2):
            took = _best([*files, "-o", str(folder / output)], cores, repeat)
            rates.append(reads / took.wall)
            yield (
                f"{name}, {cores} core{'s' * (cores > 1)}: {rates[-1]:,.0f} reads/s of wall time "
                f"({reads / max(took.wall - start.wall, 1e-9):,.0f} without the start-up), "
                f"{reads / took.cpu:,.0f} reads/s of processor time, peak memory {took.peak_mb:.0f} MB"
                + ("; asked 20,000 and less than 500 MB" if cores == 1 else "")
            )
        yield f"{name}: two cores are {rates[1] / rates[0]:.2f} times as fast as one"


def _best(arguments: Sequence[str], cores: int, repeat: int) -> Process:
    command = ["vdj", "annotate", *arguments, "--germline", "mouse_trb", "--threads", str(cores)]
    # Poor bases of simulated reads have 12.
    command += ["--min-junction-quality", "10"]
    return min(run_command(command, cores) for _ in range(repeat))


def stages(inputs: tuple[Path, Path, Path], repeat: int) -> Iterator[str]:
    """Processor time of each stage by itself, on one thread."""
    single, first, second = inputs
    germlines = [load_germline("mouse_trb")]
    aligner = GermlineAligner(germlines, threads=1)
    builder = RearrangementBuilder(germlines, AnnotationSettings())
    items, seconds = _timed(lambda: _items([single], None), repeat)
    reads = sum(len(item.reads) for item in items)
    yield _stage("reading, single", reads, seconds)
    matches, seconds = _timed(lambda: [aligner.align(item.reads) for item in items], repeat)
    yield _stage("alignment", reads, seconds)
    batches, seconds = _timed(lambda: [builder.build(found) for found in matches], repeat)
    yield _stage("columns", reads, seconds)
    for name in ("out.tsv", "out.tsv.gz", "out.parquet"):
        _, seconds = _timed(lambda name=name: _written(batches, name), repeat)
        yield _stage(f"writing {name[4:]}", reads, seconds)
    pairs, seconds = _timed(lambda: _items([first], [second]), repeat)
    reads = sum(len(item.reads) for item in pairs)
    yield _stage("reading, pairs", reads, seconds)
    merged, seconds = _timed(lambda: [merge_mates(item.reads, item.mates) for item in pairs], repeat)
    yield _stage("merging of pairs", reads, seconds)
    _, seconds = _timed(lambda: [aligner.align(one.reads, one.others) for one in merged], repeat)
    yield _stage("alignment of pairs", reads, seconds)


def _items(paths: list[Path], mates: list[Path] | None) -> list[ReadItem]:
    with open_reads(paths, mates) as reader:
        return list(reader)


def _written(batches: Sequence[Any], name: str) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_table(Path(folder) / name, batches[0].schema, metadata={}) as table,
    ):
        for batch in batches:
            table.write(batch)


def _timed(work: Callable[[], Any], repeat: int) -> tuple[Any, float]:
    """The result, and the least processor time it took; the first run, which compiles, does not count."""
    result = work()
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        result = work()
        times.append(time.process_time() - begin)
    return result, min(times)


def _stage(name: str, reads: int, seconds: float) -> str:
    return f"{name:20} {1e6 * seconds / reads:7.1f} us a read, {reads / seconds:11,.0f} reads/s"
