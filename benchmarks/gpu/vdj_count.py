"""Speed of path counting on a GPU, every count of it checked against the CPU in the same run.

    python benchmarks/gpu/vdj_count.py [--rearrangements TABLE | --texts TEXTS.npz] [--tile 4]
        [--json OUT.json]

TABLE is an AIRR table of mouse TRB rearrangements; without one, junctions are simulated. TEXTS.npz holds
encoded ones (symbols, start, length, prefix, suffix), for machines without Arrow. They are repeated `--tile`
times. Rates are

- resident: texts and counts in the memory of the device, the median of several runs;
- arrays to arrays: encoded texts in host memory to counts in host memory;
- Parquet to columns: a Parquet file in host memory, read, encoded, counted and assembled by threads; beside
  it what their time goes to, and the same for sums over D genes.

Arrays of results are the same in every run, so that their memory is there when time is taken.

Beside a resident rate stands how much of what the device could do in that time was done, by resource: ncu,
if it is there, runs the kernel once more for that. The largest share names the limit. The limit of the two
others is the bus: their bytes by its measured speed.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from plait.devices.cuda import cuda
from plait.devices.cuda_devices import device_facts
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.dp.chain.gpu_count_launch import ChainLaunch, DeviceCounts, DeviceJunctions, count_batch
from plait.dp.chain.launches import PATH_COUNTS, CountBatch
from plait.dp.chain.tables import REGION_FIELDS, ChainOutput, ChainTables, Junctions
from plait.lang.algebras import COUNT
from plait.lang.lanes import host_lanes
from plait.vdj.chain import chain_kind, chain_tables
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.models import PathModel

SWEEP = PathModel(sweep_pi=(0, 1, 2, 3, 4), sweep_nu=tuple(range(11)))
#: Name, model, sequences/s asked for with data resident on one H200.
CASES = (
    ("dp1, n <= 10, 2 D", PathModel(name="dp1"), 150e6),
    ("dp2, one model, 2 D", PathModel(), None),
    ("dp2, 55 models, 2 D, 3 counts", SWEEP, 20e6),
)
#: What ncu measures: name of the metric, and what it is a share of (or a number).
METRICS = {
    "sm__inst_issued.avg.pct_of_peak_sustained_active": "instructions issued",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "shared memory and L1",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "L2",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "device memory",
}
EXECUTED = "smsp__inst_executed.sum"


def median(run: Callable[[], float], repeat: int) -> float:
    """Median of several runs, after one that does not count, or that one."""
    first = run()
    return float(np.median([run() for _ in range(repeat)] or [first]))


def room(tables: ChainTables, count: int, *, totals: bool = False) -> ChainOutput:
    """Host memory for the counts, or for sums over D genes alone."""
    m, d = tables.out_lane.size, tables.words.length.size
    out = ChainOutput(
        full=np.empty((count, 1 if totals else d, m), np.int64),
        empty=np.empty((count, 0 if totals else d, m), np.int64),
        none=np.empty((count, 0 if totals else m), np.int64),
        pair=np.empty((count, 0, m), np.int64),
        regions=np.empty((count, 0 if totals else len(REGION_FIELDS)), np.int64),
        bound=np.empty(count),
    )
    for values in out:
        values.fill(0)
    return out


def tiled(texts: Junctions, times: int) -> Junctions:
    """The texts several times; their symbols once."""
    return Junctions(texts.symbols, *(np.tile(field, times) for field in texts[1:]))


def bus_speed(repeat: int) -> float:
    """Bytes/s from the device to pinned memory."""
    size = 1 << 28
    there, here = cuda.device_array(size, np.uint8), cuda.pinned_array(size, np.uint8)

    def run() -> float:
        begin = time.perf_counter()
        there.copy_to_host(here)
        return time.perf_counter() - begin

    here.fill(0)
    return size / median(run, repeat)


def resident(launch: ChainLaunch, tables: ChainTables, texts: Junctions, repeat: int) -> float:
    """Junctions/s with everything on the device."""
    there = DeviceJunctions(
        cuda.to_device(texts.symbols),
        cuda.to_device(texts.start.astype(np.int32)),
        *(cuda.to_device(field.astype(np.uint16)) for field in texts[2:]),
    )
    shapes = room(tables, 1)
    count = texts.start.size
    out = DeviceCounts(**{
        name: cuda.device_array((count, *getattr(shapes, name).shape[1:]), getattr(shapes, name).dtype)
        for name in DeviceCounts._fields
    })  # fmt: skip
    begin, end = cuda.event(), cuda.event()
    longest = int(texts.length.max())

    def run() -> float:
        begin.record()
        launch.launch(there, out, longest)
        end.record()
        end.synchronize()
        return float(cuda.event_elapsed_time(begin, end)) / 1e3

    return count / median(run, repeat)


def profile(case: int, options: argparse.Namespace) -> dict[str, float]:
    """Shares of the device's resources in percent, and warp instructions per text; empty without ncu."""
    ncu = shutil.which("ncu")
    if ncu is None:
        return {}
    source = [str(Path(__file__).resolve()), "--profiled", str(case)]
    for name in ("texts", "rearrangements"):
        if getattr(options, name):
            source += [f"--{name}", str(getattr(options, name))]
    wanted = ",".join((*METRICS, EXECUTED))
    command = [
        ncu,
        "--csv",
        "--print-units",
        "base",
        "--metrics",
        wanted,
        "-k",
        "regex:count_texts",
        "--launch-count",
        "1",
    ]
    said = subprocess.run([*command, sys.executable, *source], capture_output=True, text=True, check=False)
    lines = [line for line in said.stdout.splitlines() if line.startswith('"')]
    found = {}
    for row in csv.DictReader(lines):
        with contextlib.suppress(KeyError, ValueError):
            found[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    if not found:
        print(f"ncu measured nothing: {(said.stderr or said.stdout)[-300:].strip()}")
        return {}
    shares = {told: found[name] for name, told in METRICS.items() if name in found}
    texts = float(
        next((line.split()[1] for line in said.stdout.splitlines() if line.startswith("profiled")), 0)
    )
    if EXECUTED in found and texts:
        shares["instructions per text"] = found[EXECUTED] / texts
    return shares


def check(kind: Any, tables: ChainTables, texts: Junctions) -> float:
    """Compare every count of the GPU with the CPU's; returns texts/s of the CPU, on all its threads."""
    wanted, found = room(tables, texts.start.size), room(tables, texts.start.size)
    few = Junctions(texts.symbols, *(field[:1000] for field in texts[1:]))
    CpuTarget().launch(PATH_COUNTS, CountBatch(kind, COUNT, tables, few, room(tables, 1000)))
    begin = time.perf_counter()
    CpuTarget().launch(PATH_COUNTS, CountBatch(kind, COUNT, tables, texts, wanted))
    seconds = time.perf_counter() - begin
    count_batch(CountBatch(kind, COUNT, tables, texts, found), CudaTarget())
    for name, values in wanted._asdict().items():
        if not np.array_equal(getattr(found, name), values):
            raise SystemExit(f"WRONG: {name} differs from the CPU")
    return texts.start.size / seconds


def arrays_to_arrays(
    kind: Any, tables: ChainTables, texts: Junctions, repeat: int, *, totals: bool = False
) -> float:
    """Junctions/s from host memory to host memory."""
    out = room(tables, texts.start.size, totals=totals)

    def run() -> float:
        begin = time.perf_counter()
        count_batch(CountBatch(kind, COUNT, tables, texts, out), CudaTarget())
        return time.perf_counter() - begin

    return texts.start.size / median(run, repeat)


class Stages:
    """Seconds of threads, by what they do."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, watched."""

        def watched(*arguments: Any) -> Any:
            begin = time.perf_counter()
            result = call(*arguments)
            with self._lock:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin
            return result

        return watched

    def shares(self) -> dict[str, float]:
        """Percent of each."""
        return {name: 100 * own / sum(self.seconds.values()) for name, own in self.seconds.items()}


def parquet_to_columns(
    germline: GermlineSet, model: PathModel, columns: Any, options: argparse.Namespace, *, totals: bool
) -> tuple[float, dict[str, float]]:
    """Rows/s from a Parquet file in host memory to the columns of the result, and what time goes to."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from plait.vdj.counting import PathCounter

    file = io.BytesIO()
    pq.write_table(
        pa.concat_tables([pa.table(columns._asdict())] * options.tile), file, row_group_size=1 << 16
    )
    content = pa.py_buffer(file.getvalue())
    counter: Any = PathCounter(germline, model, device="cuda:0")
    stages = Stages()

    def read(group: int) -> list[Any]:
        rows = pq.ParquetFile(pa.BufferReader(content)).read_row_group(group, use_threads=False)
        return [rows[name].cast(pa.large_string()).combine_chunks() for name in columns._fields]

    read = stages.timed("reading", read)
    counter.items = stages.timed("encoding", counter.items)
    raw = counter._counter
    raw.run = stages.timed("device and copies", raw.run)
    raw.totals = stages.timed("device and copies", raw.totals)
    counter._assemble = stages.timed("assembling", counter._assemble)
    call = counter.totals if totals else counter.count
    groups = range(pq.ParquetFile(pa.BufferReader(content)).num_row_groups)
    rows = options.tile * len(columns.junction)

    def run() -> float:
        stages.seconds.clear()
        begin = time.perf_counter()
        with ThreadPoolExecutor(options.threads) as pool:
            assert (
                sum(len(part.status) for part in pool.map(lambda group: call(*read(group)), groups)) == rows
            )
        return time.perf_counter() - begin

    return rows / median(run, options.repeat), stages.shares()


def read(options: argparse.Namespace, germline: GermlineSet) -> tuple[Junctions, Any]:
    """Distinct texts, and the columns they come from, if there are any."""
    if options.texts:
        with np.load(options.texts) as stored:
            fields = (stored[name].astype(np.int64) for name in Junctions._fields[1:])
            return Junctions(stored["symbols"], *fields), None
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from vdj_count import real_columns, simulated_columns

    from plait.vdj.counting import PathCounter

    if options.rearrangements:
        columns = real_columns(options.rearrangements)
    else:
        columns = simulated_columns(germline, 100_000)
    items = PathCounter(germline, SWEEP, device="cpu").items(*columns)
    return Junctions(items.texts.symbols, *(field[items.status == 0] for field in items.texts[1:])), columns


def chain_of(germline: GermlineSet, model: PathModel) -> tuple[Any, ChainTables]:
    """What a model runs as."""
    return chain_kind(model, host_lanes()), chain_tables(germline, model, "vdj")


def measure(case: tuple[Any, ...], germline: GermlineSet, texts: Junctions, columns: Any,
            options: argparse.Namespace, bus: float) -> dict[str, Any]:  # fmt: skip
    """All rates of a case."""
    name, model, asked = case
    kind, tables = chain_of(germline, model)
    cpu = check(kind, tables, texts)
    print(f"{name}: all counts of {texts.start.size:,} texts are those of the CPU", flush=True)
    many = tiled(texts, options.tile)
    rate = resident(ChainLaunch(kind, COUNT, tables), tables, many, options.repeat)
    text_bytes = sum(getattr(room(tables, 1), field).nbytes for field in DeviceCounts._fields)
    arrays = arrays_to_arrays(kind, tables, many, options.repeat)
    found = {
        "case": name, "texts": many.start.size, "resident_per_second": rate, "asked": asked,
        "arrays_per_second": arrays, "share_of_bus": arrays * text_bytes / bus, "bytes_per_text": text_bytes,
        "totals_per_second": arrays_to_arrays(kind, tables, many, options.repeat, totals=True),
        "cpu_per_second": cpu, "times_cpu": rate / cpu,
    }  # fmt: skip
    found["shares"] = profile(CASES.index(case), options)
    if columns is not None:
        whole, stages = parquet_to_columns(germline, model, columns, options, totals=False)
        found |= {"parquet_per_second": whole, "parquet_share_of_bus": whole * text_bytes / bus}
        found |= {"parquet_stages": stages}
        sums = parquet_to_columns(germline, model, columns, options, totals=True)
        found |= {"parquet_totals_per_second": sums[0], "parquet_totals_stages": sums[1]}
    return found


def told(found: dict[str, Any]) -> str:
    """The rates of a case, in words."""
    asked = f", asked {found['asked']:,.0f}" if found["asked"] else ""
    lines = [
        f"{found['case']:32} {found['resident_per_second']:13,.0f} seq/s resident{asked}; "
        f"{found['times_cpu']:,.0f} times the CPU's {found['cpu_per_second']:,.0f}",
        f"{'':32} {found['arrays_per_second']:13,.0f} seq/s arrays to arrays, {found['bytes_per_text']:,} "
        f"bytes each: {found['share_of_bus']:.0%} of the bus",
        f"{'':32} {found['totals_per_second']:13,.0f} seq/s arrays to sums over D genes",
    ]
    if found["shares"]:
        each = found["shares"].get("instructions per text", 0)
        parts = ", ".join(
            f"{name} {share:.0f} %"
            for name, share in found["shares"].items()
            if not name.startswith("instructions per")
        )
        lines.insert(1, f"{'':32} of what the device can do: {parts}; {each:,.0f} warp instructions/seq")
    if "parquet_per_second" in found:
        share = found["parquet_share_of_bus"]
        for name, told, of_bus in (
            ("parquet", "Parquet to columns", f": {share:.0%} of the bus"),
            ("parquet_totals", "Parquet to sums over D genes", ""),
        ):
            stages = ", ".join(f"{stage} {part:.0f} %" for stage, part in found[f"{name}_stages"].items())
            lines.append(
                f"{'':32} {found[f'{name}_per_second']:13,.0f} seq/s {told}{of_bus}; threads: {stages}"
            )
    return "\n".join(lines)


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rearrangements", type=Path)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--tile", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=16, help="threads that read, encode and assemble")
    parser.add_argument("--profiled", type=int, help="only launch the kernel of this case, for ncu")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    germline = load_germline("mouse_trb")
    texts, columns = read(options, germline)
    if options.profiled is not None:
        kind, tables = chain_of(germline, CASES[options.profiled][1])
        resident(ChainLaunch(kind, COUNT, tables), tables, texts, 0)
        print("profiled", texts.start.size)
        return
    bus = bus_speed(options.repeat)
    facts = {
        "device": device_facts(0).name,
        "bus_gb_per_second": bus / 1e9,
        "distinct_texts": texts.start.size,
    }
    print(json.dumps(facts), flush=True)
    results = []
    for case in CASES:
        results.append(measure(case, germline, texts, columns, options, bus))
        print(told(results[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"facts": facts, "cases": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
