"""One GPU a worker: rows/s of `count` by Dask workers that see a GPU each; the same bytes from any number.

    python benchmarks/gpu/worker_gpus.py [--rows 20000000] [--gpus 1 2] [--threads 8] [--folder FOLDER]

A scheduler and a worker for each GPU are started, as in ``docs/clusters.md``; a first run makes them warm.
Rows are those of ``count_files.py`` (4 columns, Parquet), counted with one model and, a quarter of them,
with 55, into folders of parts. Every worker has so many threads, whatever the number of GPUs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from count_files import counted, tables

from plait.run.executor import Executor, open_executor
from plait.vdj.models import PathModel

SWEEP = PathModel(sweep_pi=(0, 1, 2, 3, 4), sweep_nu=tuple(range(11)))


@contextmanager
def workers_of(gpus: int, threads: int, folder: Path, device: str) -> Iterator[Executor]:
    """An executor of `gpus` workers, of which each sees a GPU of its own."""
    address = folder / f"scheduler-{gpus}.json"
    started: list[subprocess.Popen[bytes]] = []

    def start(module: str, *words: object, **environment: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", address, *words]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(
            subprocess.Popen([str(word) for word in command], env={**os.environ, **environment}, **quiet)
        )

    try:
        start("dask_scheduler", "--no-dashboard", "--host", "127.0.0.1", "--port", 0)
        while not address.exists():
            time.sleep(0.1)
        for gpu in range(gpus):
            seen = {"CUDA_VISIBLE_DEVICES": str(gpu)} if device == "cuda" else {}
            room = "--memory-limit", 0, "--local-directory", folder
            start("dask_worker", "--no-dashboard", "--nthreads", threads, *room, **seen)
        with open_executor("dask", scheduler_file=address) as executor:
            while executor.slots < gpus * threads:
                time.sleep(0.5)
            yield executor
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        whole = tables(folder, options.rows, wide=False)["4 columns"]
        quarter = folder / "quarter.parquet"
        pq.write_table(pq.read_table(whole).slice(0, options.rows // 4), quarter, row_group_size=1 << 16)
        works = {"one model": (whole, PathModel()), "55 models": (quarter, SWEEP)}
        before: dict[str, float] = {}
        for gpus in options.gpus:
            with workers_of(gpus, options.threads, folder, options.device) as executor:
                for told, (source, model) in works.items():
                    output = folder / f"{told[:2]}-{gpus}"
                    how = model, options.device, options.repeat + 1, None, executor
                    seconds, _ = counted(source, f"{output}/", *how)
                    first = before.setdefault(told, seconds)
                    rows = pq.read_metadata(source).num_rows
                    print(
                        f"{told}, {gpus} worker{'s' * (gpus > 1)} of a GPU and {options.threads} threads: "
                        f"{rows / seconds:,.0f} rows/s of {rows:,}, {first / seconds:.2f} x",
                        flush=True,
                    )
                    compare(folder / f"{told[:2]}-{options.gpus[0]}", output)
                    if gpus != options.gpus[0]:
                        shutil.rmtree(output)


def compare(one: Path, other: Path) -> None:
    """Check that two datasets have the same parts, byte for byte."""
    names = sorted(path.name for path in one.glob("*.parquet"))
    if names != sorted(path.name for path in other.glob("*.parquet")) or not names:
        raise SystemExit(f"WRONG: {other} has other parts than {one}")
    for name in names:
        if (one / name).read_bytes() != (other / name).read_bytes():
            raise SystemExit(f"WRONG: {other / name} differs from {one / name}")


if __name__ == "__main__":
    main()
