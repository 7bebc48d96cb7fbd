"""What a study of many receptors takes on a cluster: a plan on paper, from unit costs that were measured.

    python benchmarks/cluster_plan.py [--measure TABLE] [--study STUDY.json] [--regression SECONDS]
        [--receptors 43000000 10000000000] [--cores 64] [--nodes N]

The table of the documentation (``docs/clusters.md``) is what this prints. The unit costs stand below with the
commands that measured them. ``--measure`` measures anew, on the table given, what the process that writes and
what a worker of `plait vdj count` takes for a row; ``--study`` takes the costs of a study from the output of
``benchmarks/vdj_study.py --json``, and ``--regression`` those of the regression, seconds of a core for a
million rows, from ``benchmarks/study_regression.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

SWEEP = ("--sweep-pi", "0:4", "--sweep-nu", "0:10")
#: Ran as a program: processor time of the process that reads and writes, and of its workers.
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
class Costs:
    """Of one row: microseconds of a core, and bytes on disk."""

    #: benchmarks/results/annotation.txt: 25,146 reads/s of processor time, FASTQ to AIRR TSV.
    annotate: float = 1e6 / 25_146
    #: benchmarks/results/vdj_count.txt: 172,832 seq/s on a core, 55 models, with encoding and result columns.
    count: float = 1e6 / 172_832
    #: This script, --measure: the one process that reads the input and writes the counts of 55 models.
    write_counts: float = 19.2
    #: benchmarks/vdj_study.py, 3 million rows: sorting and grouping rows, and the tables.
    study: float = 17.0
    #: benchmarks/study_regression.py, 3.4 million rows: 30 predictors, 100 penalties, 5 folds, 50 halves.
    regression: float = 28.5
    #: 10,000 simulated reads of 150 bases, FASTQ with gzip to AIRR in Parquet.
    read_bytes: float = 20.0
    rearrangement_bytes: float = 133.0
    #: The 658,040 rows of eight mice in Parquet.
    input_bytes: float = 26.0
    #: benchmarks/vdj_study.py: counts of 55 models, clonotypes.
    count_bytes: float = 264.0
    clonotype_bytes: float = 97.0
    #: Columns of the regression; read anew in every pass.
    design_bytes: float = 59.0


def measured(table: Path, costs: Costs) -> Costs:
    """The costs of counting on this machine; the start of the processes is taken off."""
    rows, both = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in (("few", _few(table, Path(folder))), ("all", table)):
            out, told = Path(folder) / "out.parquet", Path(folder) / "told.json"
            words = ["vdj", "count", path, "--germline", "mouse_trb", "-o", out, *SWEEP]
            command = [sys.executable, "-c", _PROGRAM, told, *words, "--executor", "dask", "--workers", "1"]
            subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
            rows[name] = json.loads(Path(f"{out}.summary.json").read_text())["rows"]
            both[name] = json.loads(told.read_text())
    more = rows["all"] - rows["few"]
    here, there = (1e6 * (one - other) / more for one, other in zip(both["all"], both["few"], strict=True))
    print(f"{more:,} rows: {here:.1f} us a row in the process that writes, {there:.1f} us in the worker")
    return replace(costs, write_counts=here, count=there)


def _few(table: Path, folder: Path) -> Path:
    import pyarrow.parquet as pq

    path = folder / "few.parquet"
    pq.write_table(pq.read_table(table).slice(0, 1000), path)
    return path


def of_study(path: Path, costs: Costs) -> Costs:
    """The costs of the largest study of a benchmark."""
    found = max(json.loads(path.read_text()), key=lambda one: one["rows"])
    share = 1 - found["stages"]["counting"] / sum(found["stages"].values())
    rows = found["rows"]
    return replace(
        costs,
        study=1e6 * found["cpu_seconds"] * share / rows,
        count_bytes=found["count_bytes"] / rows,
        clonotype_bytes=found["clonotype_bytes"] / rows,
    )


def plan(rows: int, costs: Costs, nodes: int, cores: int) -> list[tuple[str, str, str, str, str]]:
    """Step, core hours, hours on the cluster, bytes read, bytes written."""
    all_cores = nodes * cores

    def step(name: str, cost: float, read: float, written: float, serial: float = 0.0) -> tuple[str, ...]:
        hours = rows * cost / 3.6e9
        # One process writes; it can be the slowest.
        on_cluster = max(hours / all_cores, rows * serial / 3.6e9)
        return name, f"{hours:,.1f}", f"{on_cluster:,.2f}", _bytes(rows * read), _bytes(rows * written)

    read = costs.input_bytes
    return [
        step("annotate reads, a command a file", costs.annotate, costs.read_bytes, costs.rearrangement_bytes),
        step("count, a worker or command a file", costs.count + costs.write_counts, read, costs.count_bytes),
        step("the same, all in one command", costs.count, read, costs.count_bytes, costs.write_counts),
        step("study without regression", costs.study, 2 * costs.count_bytes, 2 * costs.clonotype_bytes),
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
    parser.add_argument("--study", type=Path)
    parser.add_argument("--regression", type=float)
    parser.add_argument("--receptors", type=int, nargs="+", default=[43_000_000, 10_000_000_000])
    parser.add_argument("--cores", type=int, default=64)
    parser.add_argument("--nodes", type=int)
    options = parser.parse_args()
    costs = Costs()
    if options.measure is not None:
        print(f"load before: {os.getloadavg()[0]:.1f}; {resource.getpagesize()} bytes a page")
        costs = measured(options.measure, costs)
    if options.study is not None:
        costs = of_study(options.study, costs)
    if options.regression is not None:
        costs = replace(costs, regression=options.regression)
    for rows in options.receptors:
        nodes = options.nodes or max(1, round(rows / 2_500_000_000))
        print(f"\n{rows:,} receptors, {nodes} nodes of {options.cores} cores\n")
        print("| step | core hours | hours | read | written |\n|---|---|---|---|---|")
        for line in plan(rows, costs, nodes, options.cores):
            print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
