"""Whole commands on a GPU and on the CPU: rows/s of `plait vdj count`, Parquet to Parquet, answers compared.

    python benchmarks/gpu/count_files.py [--rows 8000000] [--folder FOLDER] [--repeat 2] [--only WHAT]

Junctions are drawn from human_TRB, 1,000,000 of them again and again. Two tables of them: all columns that
`plait vdj generate` writes (28), and those alone that are counted, with numbers of reads. First a table of
1,000 rows as a command, the start of the program included, twice on the GPU; then `count_files` in this
process, the best of the repeats, with the time of all processors together. *threads*: one model by 1, 2, 4
... threads into one file, and by all into a folder of parts; *processes*: into a folder by processes of Dask
that share the GPU, started and warm; *columns*: those alone that are chosen, after a look at their values.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import dataset

from plait.formats.tables import ONE_FILE, PartSettings
from plait.run.executor import Executor, open_executor
from plait.vdj.count_files import count_files
from plait.vdj.counting import PathCounter
from plait.vdj.germline import load_germline
from plait.vdj.models import PathModel

GERMLINE, MODEL = "human_trb", "human_TRB"
DRAWN = 1_000_000
SWEEP = PathModel(sweep_pi=(0, 1, 2, 3, 4), sweep_nu=tuple(range(11)))


def command(*words: str) -> float:
    """Seconds of a command."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "plait", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def tables(folder: Path, rows: int, *, wide: bool) -> dict[str, Path]:
    """The tables, by what they have."""
    drawn = folder / "drawn.parquet"
    command("vdj", "generate", "--model", MODEL, "-n", str(min(rows, DRAWN)), "--seed", "1", "-o", str(drawn))
    table = pq.read_table(drawn)
    pq.write_table(table.slice(0, 1000), folder / "few.parquet")
    narrow = table.select(["junction", "v_call", "j_call"])
    narrow = narrow.append_column("duplicate_count", pa.array(np.arange(len(table)) % 9 + 1))
    found = {}
    for name, some in [("28 columns", table)] * wide + [("4 columns", narrow)]:
        found[name] = folder / f"{some.num_columns}.parquet"
        with pq.ParquetWriter(found[name], some.schema, compression="zstd", compression_level=1) as writer:
            for first in range(0, rows, len(some)):
                writer.write_table(some.slice(0, rows - first), row_group_size=1 << 16)
    return found


def counted(
    source: Path,
    output: Path | str,
    model: PathModel,
    device: str,
    repeat: int,
    threads: int | None = None,
    executor: Executor | None = None,
    columns: Sequence[str] | None = None,
    parts: PartSettings = ONE_FILE,
) -> tuple[float, float]:
    """Seconds of a run, and of all processors, but for those of other processes."""
    counter = PathCounter(load_germline(GERMLINE), model, device=device, threads=1)
    best = (float("inf"), 0.0)
    for _ in range(repeat):
        shutil.rmtree(output, ignore_errors=True)
        Path(output).unlink(missing_ok=True)
        begin, used = time.perf_counter(), time.process_time()
        options = {"threads": threads, "executor": executor, "columns": columns, "parts": parts}
        count_files([source], output, counter, **options)
        best = min(best, (time.perf_counter() - begin, time.process_time() - used))
    return best


def by_threads(source: Path, folder: Path, rows: int, device: str, repeat: int) -> None:
    """Rows/s by so many threads, into a file and a folder."""
    processors = len(os.sched_getaffinity(0))
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n < processors] + [processors]
    for name in dict.fromkeys(("cpu", device)):
        counted(folder / "few.parquet", folder / "file.parquet", PathModel(), name, 1, 1)
        for threads in counts:
            outputs = ["file.parquet"] if threads < processors else ["file.parquet", "folder/"]
            for output in outputs:
                found = counted(source, f"{folder}/{output}", PathModel(), name, repeat, threads)
                print(
                    f"{name}, {threads} threads, {output}: {rows / found[0]:,.0f} rows/s, "
                    f"{1e6 * found[1] / rows:.2f} us of processor a row, {found[1] / found[0]:.1f} busy",
                    flush=True,
                )


#: What is written, by model: everything, and less and less of it.
CHOSEN: dict[str, list[list[str] | None]] = {
    "one model": [None, ["junction", "v_call", "j_call", "status", "path_count"], ["junction", "path_count"],
                  ["status", "path_count"], ["path_count"]],
    "55 models": [["status", "path_count", "path_count_sweep"], ["path_count_sweep"], ["path_count"]],
}  # fmt: skip


def sums_of(whole: pa.Table) -> NDArray[np.int64]:
    """Sums over D alleles under each model, of a whole table."""
    by_d = whole["path_count_sweep_by_d"].combine_chunks().flatten().fill_null(0).to_numpy()
    found: NDArray[np.int64] = by_d.reshape(len(whole), -1, 55).sum(axis=1)
    return found


def totals_in(table: pa.Table) -> NDArray[np.int64]:
    """The same as a table has it."""
    found = table["path_count_sweep"].combine_chunks().flatten().fill_null(0).to_numpy()
    return np.asarray(found.reshape(len(table), -1))


def by_columns(source: Path, folder: Path, rows: int, device: str, repeat: int) -> None:
    """Rows/s of columns that are chosen, by so many threads; their values are those of the whole table."""
    processors = len(os.sched_getaffinity(0))
    models = {"one model": PathModel(), "55 models": SWEEP}
    few = folder / "checked.parquet"
    pq.write_table(pq.read_table(source).slice(0, 200_000), few, row_group_size=1 << 16)
    for told, name in product(models, dict.fromkeys(("cpu", device))):
        counted(few, folder / "whole.parquet", models[told], name, 1)
        whole = pq.read_table(folder / "whole.parquet")
        sums = sums_of(whole) if told == "55 models" else np.zeros(0, np.int64)
        for columns in CHOSEN[told]:
            counted(few, folder / "chosen.parquet", models[told], name, 1, columns=columns)
            found = pq.read_table(folder / "chosen.parquet")
            same = [one for one in found.column_names if one in whole.column_names]
            right = found.select(same).equals(whole.select(same))
            if "path_count_sweep" in found.column_names:
                right = right and np.array_equal(totals_in(found), sums)
            if not right:
                raise SystemExit(f"WRONG: {told}, {name}, {columns}")
            for threads in sorted({1, min(4, processors), processors}):
                # Such that none takes long; the last rows wait for nothing, and then threads do.
                some = min(rows, threads * rows // 16) // (1 if name == device else 4)
                some //= 4 if told == "55 models" else 1
                table = folder / f"some-{some}.parquet"
                if not table.exists():
                    pq.write_table(pq.read_table(source).slice(0, some), table, row_group_size=1 << 16)
                how = models[told], name, repeat, threads
                seconds, used = counted(table, folder / "chosen.parquet", *how, columns=columns)
                written = ",".join(columns or ["all"])
                print(
                    f"{told}, {name}, {threads} threads, {written}: {some / seconds:,.0f} rows/s, "
                    f"{1e6 * used / some:.2f} us of processor a row, {used / seconds:.1f} busy",
                    flush=True,
                )


def by_processes(source: Path, folder: Path, rows: int, device: str, repeat: int) -> None:
    """Rows/s of a few columns by so many processes with so many threads, in parts of so many rows.

    Their values are those that threads of this process write.
    """
    processors, columns = len(os.sched_getaffinity(0)), ["status", "path_count"]
    counted(source, folder / "whole.parquet", PathModel(), device, 1, columns=columns)
    whole = pq.read_table(folder / "whole.parquet").combine_chunks()
    few, some = folder / "few-models.parquet", rows // 8
    pq.write_table(pq.read_table(source).slice(0, some), few, row_group_size=1 << 16)
    counted(folder / "few.parquet", folder / "checked.parquet", SWEEP, "cpu", 1)
    sums = sums_of(pq.read_table(folder / "checked.parquet"))
    for workers in (processors // 2, processors * 3 // 4, processors):
        threads = max(1, processors // workers)
        with open_executor("dask", workers=workers, threads=threads) as executor:
            for part_rows in (1 << 18, 1 << 20):
                parts = PartSettings(None, part_rows)
                for table, n, told, model, names in (
                    (source, rows, "one model", PathModel(), columns),
                    (few, some, "55 models", SWEEP, ["path_count_sweep"]),
                    (few, some, "one model", PathModel(), None),
                ):
                    how = f"{folder}/parts/", model, device, repeat + 1, None, executor
                    seconds, used = counted(table, *how, columns=names, parts=parts)
                    if names == columns:
                        found = dataset.dataset(folder / "parts", format="parquet").to_table(columns=names)
                        if not found.combine_chunks().equals(whole):
                            raise SystemExit("WRONG: processes write other values")
                    if model is SWEEP:
                        part = pq.read_table(folder / "parts" / "part-00000000.parquet").slice(0, len(sums))
                        if not np.array_equal(totals_in(part), sums):
                            raise SystemExit("WRONG: processes write other totals")
                    written = ",".join(names or ["all"])
                    print(
                        f"{told}, {device}, {workers} processes of {threads} threads, {written}, parts of "
                        f"{part_rows:,}: {n / seconds:,.0f} rows/s; {used:.2f} s of processor here in "
                        f"{seconds:.2f}",
                        flush=True,
                    )


def compare(one: Path, other: Path) -> None:
    """Check that two tables have the same rows."""
    with pq.ParquetFile(one) as a, pq.ParquetFile(other) as b:
        if a.metadata.num_rows != b.metadata.num_rows:
            raise SystemExit(f"WRONG: {one} has other rows than {other}")
        rows = [(batch for batch in file.iter_batches(1 << 16)) for file in (a, b)]
        # Row groups may differ: cut anew.
        tables = [pa.Table.from_batches(list(part)) for part in rows]
        if not tables[0].equals(tables[1]):
            raise SystemExit(f"WRONG: {one} differs from {other}")


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--folder", type=Path, help="where tables are written; by default a temporary folder")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--device", default="cuda", help="the other device is the CPU")
    parser.add_argument("--only", choices=["threads", "processes", "columns"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        found = tables(folder, options.rows, wide=options.only is None)
        if options.only:
            how = {"threads": by_threads, "processes": by_processes, "columns": by_columns}[options.only]
            how(found["4 columns"], folder, options.rows, options.device, options.repeat)
            return
        few = ["vdj", "count", str(folder / "few.parquet"), "--germline", GERMLINE]
        for device in ("cpu", "cpu", options.device, options.device):
            seconds = command(*few, "--device", device, "-o", str(folder / "few-counted.parquet"))
            print(f"1,000 rows as a command, --device {device}: {seconds:.2f} s", flush=True)
        cases = [("one model", PathModel(), name) for name in found] + [("55 models", SWEEP, "4 columns")]
        for told, model, columns in cases:
            source, rows = found[columns], options.rows
            if model is SWEEP:
                source, rows = folder / "sweep.parquet", max(options.rows // 16, 1)
                pq.write_table(pq.read_table(found[columns]).slice(0, rows), source, row_group_size=1 << 16)
            outputs = []
            for device in ("cpu", options.device):
                outputs.append(folder / f"counted-{device}.parquet")
                seconds, used = counted(source, outputs[-1], model, device, options.repeat)
                size = os.path.getsize(outputs[-1]) / rows
                print(
                    f"{told}, {columns}, --device {device}: {rows / seconds:,.0f} rows/s of {rows:,}, "
                    f"{1e6 * used / rows:.2f} us of processor a row, {size:.0f} B",
                    flush=True,
                )
            compare(*outputs)
        print("all tables are the same on both")


if __name__ == "__main__":
    main()
