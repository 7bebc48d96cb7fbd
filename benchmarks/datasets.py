"""Whole commands on many rows, into folders of parts: time, memory and disk.

    python benchmarks/datasets.py [--rows 30000000] [--folder FOLDER] [--commands generate count] [--keep]

Junctions of human TRB are drawn, counted, and their probabilities computed, each into a folder of parts with
the threads of this machine. Printed are wall time, processor time, the most memory and the bytes on disk;
three parts of each are compared with the same rows worked on in memory. What a cluster makes of it:
``cluster_plan.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MODEL, GERMLINE = "human_TRB", "human_trb"
#: Run as a program: the processor time and memory of this process and of its workers.
_PROGRAM = """
import json, resource, sys
from plait.cli import main
if __name__ == "__main__":
    status = main(sys.argv[2:])
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    told = [[usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024] for usage in found]
    open(sys.argv[1], "w").write(json.dumps(told))
    raise SystemExit(status)
"""


def measured(*words: object) -> tuple[float, list[list[float]]]:
    """Wall seconds of a command; processor seconds and the most bytes of it, and of its workers."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.json"
        command = [sys.executable, "-c", _PROGRAM, told, *words]
        began = time.perf_counter()
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began, json.loads(told.read_text())


def bytes_of(folder: Path) -> int:
    """Bytes on disk of a dataset."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def checked(command: str, folder: Path, rows: int) -> str:
    """Compare some parts with the same rows in memory; what was compared."""
    manifest = json.loads((folder / "_manifest.json").read_text())
    assert manifest["rows"] == rows, (manifest["rows"], rows)
    parts = manifest["parts"]
    for part in {0, len(parts) // 2, len(parts) - 1}:
        table = pq.read_table(folder / parts[part]["path"], partitioning=None)
        given = [table[name].combine_chunks() for name in ("junction", "v_call", "j_call")]
        if command == "count":
            from plait.vdj import PathCounter

            counter = PathCounter(GERMLINE, threads=2)
            expected = counter.columns.batch(counter.count(*given))["path_count"]
            assert table["path_count"].combine_chunks().equals(expected)
        elif command == "pgen":
            from plait.vdj.model import GenerationProbability, load_model

            found = GenerationProbability(load_model(MODEL), threads=2).compute(given[0])
            assert np.allclose(found.pgen, table["pgen_nt"].to_numpy(), rtol=1e-12, atol=0)
        elif command == "generate":
            assert pa.compute.all(table["productive"]).as_py()
    return f"{len({0, len(parts) // 2, len(parts) - 1})} of {len(parts)} parts compared"


def run(rows: int, folder: Path, commands: list[str], keep: bool) -> None:
    """Run the commands one after the other."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = folder / "drawn"
    words = {
        "generate": ["vdj", "generate", "--model", MODEL, "-n", rows, "--seed", 1, "-o", f"{drawn}/"],
        "count": ["vdj", "count", drawn, "--germline", GERMLINE, "-o", f"{folder / 'counts'}/"],
        "pgen": ["vdj", "pgen", drawn, "--model", MODEL, "--of", "nt", "-o", f"{folder / 'pgen'}/"],
    }
    for command in commands:
        wall, told = measured(*words[command], "--threads", os.cpu_count() or 1)
        out = Path(str(words[command][-1]).rstrip("/"))
        seconds, most = told[0]
        line = f"{command}: {rows:,} rows, {wall:,.0f} s, {seconds:,.0f} s of processor "
        line += f"({rows / seconds:,.0f} rows a second of it), {most / 2**20:,.0f} MiB at most, "
        print(line + f"{bytes_of(out) / 1e9:.2f} GB; {checked(command, out, rows)}", flush=True)
        if not keep and command != "generate":
            shutil.rmtree(out)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--commands", nargs="+", default=["generate", "count", "pgen"])
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(options.rows, options.folder or Path(folder), options.commands, options.keep)


if __name__ == "__main__":
    main()
