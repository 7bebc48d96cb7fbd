"""One GPU a worker: rows/s of `count` by Dask workers that see a GPU each; the same bytes from any number.

    python benchmarks/gpu/worker_gpus.py [--rows 20000000] [--gpus 1 2] [--threads 8] [--folder FOLDER]

A scheduler and a worker for each GPU are started, as in ``docs/clusters.md``; a first run makes them warm.
Rows are those of ``count_files.py`` (4 columns, Parquet), counted with one model and, a quarter of them,
with 55, into folders of parts. Every worker has so many threads, whatever the number of GPUs.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dask
import pyarrow.parquet as pq
from count_files import counted, tables
from distributed import Nanny, Scheduler, SpecCluster

from plait.run.executor import Executor, open_executor
from plait.vdj.models import PathModel

SWEEP = PathModel(sweep_pi=(0, 1, 2, 3, 4), sweep_nu=tuple(range(11)))
#: As of workers that plait starts itself: pages are kept for the next part.
_PAGES = {"MALLOC_TRIM_THRESHOLD_": 256 << 20, "MALLOC_MMAP_THRESHOLD_": 32 << 20}
_BEGAN = time.perf_counter()


def told(what: str) -> None:
    """Print a line with the seconds since the start."""
    print(f"{time.perf_counter() - _BEGAN:6.1f} s  {what}", flush=True)


@contextmanager
def workers_of(gpus: int, threads: int, folder: Path, device: str) -> Iterator[Executor]:
    """An executor of `gpus` workers, of which each sees a GPU of its own."""
    # A host that is named: without a network, Dask would wait for names to be looked up in every process.
    here = {"host": "127.0.0.1", "port": 0, "dashboard": False}
    room = {"nthreads": threads, "memory_limit": 0, "local_directory": str(folder), "death_timeout": 60}
    seen = [{"CUDA_VISIBLE_DEVICES": str(gpu)} if device == "cuda" else {} for gpu in range(gpus)]
    workers = {
        number: {"cls": Nanny, "options": {**here, **room, "env": environment}}
        for number, environment in enumerate(seen)
    }
    scheduler = {"cls": Scheduler, "options": here}
    with (
        dask.config.set({f"distributed.nanny.pre-spawn-environ.{key}": n for key, n in _PAGES.items()}),
        SpecCluster(workers, scheduler, silence_logs=logging.WARNING) as cluster,
        open_executor("dask", scheduler=cluster.scheduler_address) as executor,
    ):
        deadline = time.monotonic() + 60
        while executor.slots < gpus * threads:
            if time.monotonic() > deadline:
                raise SystemExit(f"{executor.slots} of {gpus * threads} threads of workers after 60 s")
            time.sleep(0.1)
        yield executor


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
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = Path(temporary)
        whole = tables(folder, options.rows, wide=False)["4 columns"]
        quarter = folder / "quarter.parquet"
        pq.write_table(pq.read_table(whole).slice(0, options.rows // 4), quarter, row_group_size=1 << 16)
        works = {"one model": (whole, PathModel()), "55 models": (quarter, SWEEP)}
        told(f"{options.rows:,} rows are drawn and written")
        before: dict[str, float] = {}
        for gpus in options.gpus:
            with workers_of(gpus, options.threads, folder, options.device) as executor:
                told(f"{gpus} workers are there")
                for name, (source, model) in works.items():
                    output = folder / f"{name[:2]}-{gpus}"
                    # Kernels are compiled, and models made, by few rows.
                    counted(folder / "few.parquet", f"{output}/", model, options.device, 1, None, executor)
                    told(f"{name}: warm")
                    how = model, options.device, options.repeat, None, executor
                    seconds, _ = counted(source, f"{output}/", *how)
                    first = before.setdefault(name, seconds)
                    rows = pq.read_metadata(source).num_rows
                    told(
                        f"{name}, {gpus} worker{'s' * (gpus > 1)} of a GPU and {options.threads} threads: "
                        f"{rows / seconds:,.0f} rows/s of {rows:,}, {first / seconds:.2f} x"
                    )
                    compare(folder / f"{name[:2]}-{options.gpus[0]}", output)
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
