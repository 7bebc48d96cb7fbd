"""Time, memory and disk of ``plait vdj study`` at several sizes, and whether it is right at the smallest.

    python benchmarks/vdj_study.py [--rows 300000 3000000 10000000] [--subjects 8] [--threads 2]
        [--folder DIR] [--no-regression] [--json OUT.json]

Rows are simulated from the bundled germline set (`support.repertoires`): independent V-D-J joins of as
many subjects, so that what is shared was made again. Each size is a process of its own, whose greatest memory
is told by the operating system. At the smallest size, clonotypes, rows, subjects, reads and path counts are
compared with `plait.vdj.sharing`, which holds all of them in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from support.repertoires import simulated_repertoire

from plait.vdj import sharing

_PIECE = 500_000
_CLONOTYPE = ["junction", "v_gene", "j_gene"]
#: Ran as a program, so that memory is that of the study alone.
_PROGRAM = """
import json, resource, sys, time
from plait.cli import main
start = time.perf_counter()
status = main(sys.argv[2:])
usage = resource.getrusage(resource.RUSAGE_SELF)
facts = {"seconds": time.perf_counter() - start, "cpu_seconds": usage.ru_utime + usage.ru_stime}
facts["peak_rss_mib"] = usage.ru_maxrss / 1024
open(sys.argv[1], "w").write(json.dumps(facts))
raise SystemExit(status)
"""


def make_input(path: Path, rows: int, subjects: int) -> None:
    """Simulated rows, piece by piece."""
    names = [f"subject{k + 1}" for k in range(subjects)]
    writer = None
    for number, start in enumerate(range(0, rows, _PIECE)):
        table = simulated_repertoire(min(_PIECE, rows - start), subjects=names, seed=number)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=65536)
    if writer is not None:
        writer.close()


def run_study(folder: Path, rows: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One study, in a process of its own; counting apart from the rest."""
    source, sheet, out = folder / "rows.parquet", folder / "sheet.csv", folder / "study"
    make_input(source, rows, arguments.subjects)
    sheet.write_text("file,subject_id\nrows.parquet,\n")
    told = folder / "told.json"
    words = ["vdj", "study", str(sheet), "--germline", "mouse_trb", "-o", str(out), "--device", "cpu"]
    words += ["--threads", str(arguments.threads)]
    if arguments.no_regression:
        words.append("--no-regression")
    subprocess.run([sys.executable, "-c", _PROGRAM, str(told), *words], check=True, stdout=subprocess.DEVNULL)
    facts = json.loads(told.read_text())
    study = json.loads((out / "study.json").read_text())
    return {
        "rows": rows,
        **facts,
        "stages": study["timings"],
        "clonotypes": study["clonotypes"],
        "shared_clonotypes": study["shared_clonotypes"],
        "input_bytes": source.stat().st_size,
        "count_bytes": _bytes(out / "counts"),
        "clonotype_bytes": _bytes(out / "clonotypes"),
    }


def check(folder: Path) -> None:
    """The clonotypes of a study are those of the simple computation."""
    counts = next((folder / "study" / "counts").glob("*.parquet"))
    expected = sharing([counts]).clonotypes
    names = [*_CLONOTYPE, "subjects", "rows", "duplicate_count", "path_count"]
    order = [(name, "ascending") for name in _CLONOTYPE]
    found = ds.dataset(folder / "study" / "clonotypes").to_table(columns=names).sort_by(order)
    expected = expected.select(names).sort_by(order)
    if not found.cast(expected.schema).equals(expected):
        raise SystemExit("the study and plait.vdj.sharing differ")


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[300_000, 3_000_000, 10_000_000])
    parser.add_argument("--subjects", type=int, default=8)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--no-regression", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, Arrow {pa.__version__}"
    )
    print(f"load before: {os.getloadavg()[0]:.1f}; {arguments.threads} threads\n")
    print(f"{'rows':>12} {'s':>8} {'CPU s':>8} {'RSS MiB':>8} {'clonotypes':>12} {'shared':>10}  stages")
    found = []
    for number, rows in enumerate(sorted(arguments.rows)):
        folder = Path(tempfile.mkdtemp(prefix="plait-study-", dir=arguments.folder))
        try:
            facts = run_study(folder, rows, arguments)
            if number == 0:
                start = time.perf_counter()
                check(folder)
                facts["checked_seconds"] = time.perf_counter() - start
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        found.append(facts)
        stages = ", ".join(f"{name} {seconds:.0f}" for name, seconds in facts["stages"].items())
        seconds = f"{facts['seconds']:>8.1f} {facts['cpu_seconds']:>8.1f}"
        print(
            f"{rows:>12,} {seconds} {facts['peak_rss_mib']:>8.0f} "
            f"{facts['clonotypes']:>12,} {facts['shared_clonotypes']:>10,}  {stages}",
            flush=True,
        )
    print("\nthe smallest size agrees with plait.vdj.sharing, clonotype by clonotype")
    for facts in found:
        parts = ("input", "count", "clonotype")
        sizes = ", ".join(f"{part}s {facts[f'{part}_bytes'] / facts['rows']:.0f}" for part in parts)
        print(f"bytes a row at {facts['rows']:,}: {sizes}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
