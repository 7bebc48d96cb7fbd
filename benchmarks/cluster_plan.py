"""What many receptors take on a cluster: core hours, gigabytes and money, from unit costs that were measured.

    python benchmarks/cluster_plan.py [--measure TABLE|READS] [--works WORK ...] [--study STUDY.json]
        [--regression SECONDS]
        [--receptors 30000000 300000000 10000000000] [--cores 64] [--nodes N] [--price 0.05]

The tables of the documentation (``docs/clusters.md``) are what this prints. The unit costs stand below with
the commands that measured them. ``--measure`` measures anew, on the table given: what `plait vdj count` (one
model and 55 models) and `plait vdj pgen` take of a core for a row, written as a folder of parts by one worker
of Dask, in the worker and in the process that deals out the parts; wall time with two workers, and of two
processes of one thread without Dask, each on a half, beside one on all; bytes on disk; and it checks that two
workers have written what one has. Of reads (FASTQ) that is ``--works annotate``.
``--study`` takes the costs of a study from the output of ``benchmarks/vdj_study.py --json``, and
``--regression`` those of the regression, seconds of a core for a million rows, from
``benchmarks/study_regression.py``.

What a plan assumes: rows cost what they cost here, on cores like these; parts have 262,144 rows (131,072 with
55 models); a worker has a core; the process that deals out parts has one of its own and handles them one
after the other; files are read and written as fast as they are worked on. Hours are those of the work: the
start of jobs and a slower file system come on top.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

#: Of a table that is measured.
_PARTS = 16
SWEEP = ("--sweep-pi", "0:4", "--sweep-nu", "0:10")
#: Ran as a program: processor time of the process that deals out the work, and of its workers.
_PROGRAM = """
import json, resource, sys
from plait.cli import main
if __name__ == "__main__":
    status = main(sys.argv[2:])
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    open(sys.argv[1], "w").write(json.dumps([usage.ru_utime + usage.ru_stime for usage in found]))
    raise SystemExit(status)
"""


@dataclass(frozen=True)
class Work:
    """Microseconds of a core for a row in a worker, and for a part where it is dealt out; bytes a row."""

    worker: float
    dealing: float
    written: float
    part: int = 1 << 18


@dataclass(frozen=True)
class Costs:
    """Of one row: microseconds of a core, and bytes on disk."""

    #: This script, --measure, 1,200,000 and 400,000 drawn rows of human TRB: benchmarks/results/datasets.txt.
    works: dict[str, Work] = field(
        default_factory=lambda: {
            "count, one model": Work(7.03, 4_700, 53.0),
            "count, 55 models": Work(31.8, 4_700, 249.0, 1 << 17),
            "pgen": Work(7.63, 4_700, 35.0),
        }
    )
    #: benchmarks/results/annotation.txt: 25,146 reads/s of processor time, FASTQ to AIRR TSV.
    annotate: float = 1e6 / 25_146
    #: benchmarks/vdj_study.py, 3 million rows: sorting and grouping rows, and the tables.
    study: float = 17.0
    #: benchmarks/study_regression.py, 3.4 million rows: 30 predictors, 100 penalties, 5 folds, 50 halves.
    regression: float = 28.5
    #: 10,000 simulated reads of 150 bases, FASTQ with gzip to AIRR in Parquet.
    read_bytes: float = 20.0
    rearrangement_bytes: float = 133.0
    #: The 658,040 rows of eight mice in Parquet.
    input_bytes: float = 26.0
    #: benchmarks/vdj_study.py: clonotypes.
    clonotype_bytes: float = 97.0
    #: Columns of the regression; read anew in every pass.
    design_bytes: float = 59.0


COMMANDS = {
    "count, one model": ("count", "--germline", "human_trb"),
    "count, 55 models": ("count", "--germline", "human_trb", *SWEEP),
    "pgen": ("pgen", "--model", "human_TRB", "--of", "nt"),
    "annotate": ("annotate", "--germline", "human_trb"),
}
#: The works that are measured of a table, and what dealing out a part takes.
OF_TABLES = ("dealing", *(name for name in COMMANDS if name != "annotate"))


def measured(table: Path, wanted: list[str], costs: Costs) -> Costs:
    """The costs of some works on this machine; the start of the processes is taken off."""
    works = dict(costs.works)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        few, rows = _few(table, folder)
        for name, words in COMMANDS.items():
            if name not in wanted:
                continue
            # Compiled, and files in memory.
            _run(few, words, folder / "first", 1, rows)
            start = _run(few, words, folder / "few", 1, rows)
            one = _run(table, words, folder / "one", 1, -(-rows // _PARTS))
            two = _run(table, words, folder / "two", 2, -(-rows // _PARTS))
            _check_same(folder / "one", folder / "two")
            there = 1e6 * (one[2] - start[2]) / (rows - 1000)
            size = sum(path.stat().st_size for path in _files(folder / "one")) / rows
            if name == "annotate":
                costs = replace(costs, annotate=there, rearrangement_bytes=size)
            else:
                works[name] = replace(works[name], worker=there, written=size)
                if "dealing" in wanted:
                    works[name] = replace(works[name], dealing=_dealing(name, table, folder, rows))
            walls = one[0] - start[0], two[0] - start[0]
            alone = [_wall_of([one_table], words, folder) for one_table in (few, few, table)]
            halves = _wall_of(_halves(table, folder), words, folder)
            without = alone[2] - alone[1], halves - alone[1]
            print(
                f"{name}: {rows:,} rows in {_PARTS} parts: {there:.2f} us a row in the worker, "
                f"{size:.0f} bytes a row; wall time {walls[0]:.1f} s with one worker, {walls[1]:.1f} s with "
                f"two: {walls[0] / walls[1]:.2f} x; without Dask {without[0]:.1f} s by one process, "
                f"{without[1]:.1f} s by two, each on a half: {without[0] / without[1]:.2f} x "
                f"(load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores); the same bytes",
                flush=True,
            )
            for made in ("first", "few", "one", "two"):
                shutil.rmtree(folder / made)
    return replace(costs, works=works)


def _few(table: Path, folder: Path) -> tuple[Path, int]:
    """A file of the first thousand rows, or reads, and how many there are in all."""
    import pyarrow.parquet as pq

    if table.suffix == ".fastq":
        lines = table.read_bytes().splitlines(keepends=True)
        (folder / "few.fastq").write_bytes(b"".join(lines[:4000]))
        return folder / "few.fastq", len(lines) // 4
    files = _files(table)
    pq.write_table(pq.read_table(files[0], partitioning=None).slice(0, 1000), folder / "few.parquet")
    return folder / "few.parquet", sum(pq.read_metadata(path).num_rows for path in files)


def _halves(table: Path, folder: Path) -> list[Path]:
    """The table, or reads, as two files."""
    import pyarrow.parquet as pq

    names = [folder / f"half-{n}{table.suffix or '.parquet'}" for n in (1, 2)]
    if names[0].exists():
        return names
    if table.suffix == ".fastq":
        lines = table.read_bytes().splitlines(keepends=True)
        middle = len(lines) // 8 * 4
        for name, some in zip(names, (lines[:middle], lines[middle:]), strict=True):
            name.write_bytes(b"".join(some))
        return names
    whole = pq.read_table(table)
    for name, first in zip(names, (0, len(whole) // 2), strict=True):
        pq.write_table(whole.slice(first, -(-len(whole) // 2)), name, row_group_size=1 << 16)
    return names


def _wall_of(tables: list[Path], words: tuple[str, ...], folder: Path) -> float:
    """Wall time of as many processes of one thread as there are tables, all at once."""
    outputs = [folder / f"alone-{n}" for n in range(len(tables))]
    began = time.perf_counter()
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "plait", "vdj", words[0], one, *words[1:], "-o", f"{output}/"],
            env=os.environ | {"PLAIT_THREADS": "1"},
            stdout=subprocess.DEVNULL,
        )
        for one, output in zip(tables, outputs, strict=True)
    ]
    assert not any(process.wait() for process in started)
    took = time.perf_counter() - began
    for output in outputs:
        shutil.rmtree(output)
    return took


def _dealing(name: str, table: Path, folder: Path, rows: int) -> float:
    """What a part costs where parts are dealt out: how much more many take than few."""
    words, parts = COMMANDS[name], (_PARTS, 20 * _PARTS)
    found = [_run(table, words, folder / f"{n}", 1, -(-rows // n))[1] for n in parts]
    cost = 1e6 * (found[1] - found[0]) / (parts[1] - parts[0])
    print(
        f"{name}: {cost / 1000:.1f} ms a part where parts are dealt out: {parts[1]} parts and {parts[0]}",
        flush=True,
    )
    for n in parts:
        shutil.rmtree(folder / f"{n}")
    return cost


def _files(table: Path) -> list[Path]:
    return sorted(table.rglob("*.parquet")) if table.is_dir() else [table]


def _run(table: Path, words: tuple[str, ...], output: Path, workers: int, part: int) -> tuple[float, ...]:
    """Wall time of a command, processor time of its process, and of its workers."""
    told = output.with_suffix(".json")
    asked = [
        "--executor",
        "dask",
        "--workers",
        workers,
        "--part-rows",
        part,
        "-o",
        f"{output}/",
    ]
    command = [sys.executable, "-c", _PROGRAM, told, "vdj", words[0], table, *words[1:], *asked]
    began = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, *json.loads(told.read_text())


def _check_same(one: Path, other: Path) -> None:
    for path in one.rglob("*"):
        assert path.is_dir() or path.read_bytes() == (other / path.relative_to(one)).read_bytes(), path


def wall(work: Work, rows: int, workers: int) -> float:
    """Hours of a run: parts are dealt out one after the other, each to the worker that is free first."""
    parts = -(-rows // work.part)
    free, dealt = [0.0] * workers, 0.0
    for _ in range(parts):
        dealt += work.dealing
        heapq.heappush(free, max(dealt, heapq.heappop(free)) + work.worker * work.part)
    return max(free) / 3.6e9


def of_study(path: Path, costs: Costs) -> Costs:
    """The costs of the largest study of a benchmark."""
    found = max(json.loads(path.read_text()), key=lambda one: one["rows"])
    share = 1 - found["stages"]["counting"] / sum(found["stages"].values())
    rows = found["rows"]
    return replace(
        costs,
        study=1e6 * found["cpu_seconds"] * share / rows,
        clonotype_bytes=found["clonotype_bytes"] / rows,
    )


def plan(rows: int, costs: Costs, nodes: int, cores: int, price: float) -> list[tuple[str, ...]]:
    """Step, core hours, hours on the cluster, bytes read, bytes written, money."""
    all_cores = nodes * cores

    def line(name: str, core_hours: float, hours: float, read: float, written: float) -> tuple[str, ...]:
        sizes = _bytes(rows * read), _bytes(rows * written)
        return name, f"{core_hours:,.2f}", f"{hours:,.3f}", *sizes, f"{core_hours * price:,.2f}"

    def step(name: str, cost: float, read: float, written: float) -> tuple[str, ...]:
        hours = rows * cost / 3.6e9
        return line(name, hours, hours / all_cores, read, written)

    read, counts = costs.input_bytes, costs.works["count, 55 models"].written
    works = [
        line(
            name,
            rows * (one.worker + one.dealing / one.part) / 3.6e9,
            wall(one, rows, all_cores),
            read,
            one.written,
        )
        for name, one in costs.works.items()
    ]
    return [
        step("annotate reads", costs.annotate, costs.read_bytes, costs.rearrangement_bytes),
        *works,
        step("study of 55 models, without regression", costs.study, 2 * counts, 2 * costs.clonotype_bytes),
        step("regression (bytes: of one pass)", costs.regression, costs.design_bytes, 0),
    ]


def _bytes(number: float) -> str:
    for unit in ("MB", "GB", "TB"):
        number /= 1000 if unit != "MB" else 1e6
        if number < 1000 or unit == "TB":
            return f"{number:,.1f} {unit}"
    raise AssertionError(number)


def main() -> None:
    """Print the plan."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--works", nargs="+", choices=["dealing", *COMMANDS], default=list(OF_TABLES))
    parser.add_argument("--study", type=Path)
    parser.add_argument("--regression", type=float)
    parser.add_argument("--receptors", type=int, nargs="+", default=[30_000_000, 300_000_000, 10_000_000_000])
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--price", type=float, default=0.05, help="of a core hour")
    options = parser.parse_args()
    costs = Costs()
    if options.measure is not None:
        costs = measured(options.measure, options.works, costs)
    if options.study is not None:
        costs = of_study(options.study, costs)
    if options.regression is not None:
        costs = replace(costs, regression=options.regression)
    print(
        "\n| times as fast with so many workers of a core | 2 | 4 | 8 | 64 | 256 |\n|---|---|---|---|---|---|"
    )
    for name, work in costs.works.items():
        alone = wall(work, 300_000_000, 1)
        cells = (f"{alone / wall(work, 300_000_000, n):.1f}" for n in (2, 4, 8, 64, 256))
        print(f"| {name}, 300,000,000 rows | {' | '.join(cells)} |")
    for rows in options.receptors:
        nodes = options.nodes or max(1, round(rows / 2_500_000_000))
        print(f"\n{rows:,} receptors, {nodes} node{'s' * (nodes > 1)} of {options.cores} cores\n")
        print("| step | core hours | hours | read | written | money |\n|---|---|---|---|---|---|")
        for line in plan(rows, costs, nodes, options.cores, options.price):
            print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
