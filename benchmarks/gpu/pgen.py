"""Speed of generation probabilities on a GPU, every value of it checked against the CPU in the same run.

    python benchmarks/gpu/pgen.py --model MODEL [--model MODEL ..] [--rows 400000] [--tile 4]
        [--json OUT.json]

MODEL is a file, a folder or a name that `plait.vdj.model.load_model` takes. Productive junctions are drawn
from it and repeated `--tile` times. Rates are

- resident: texts and values in the memory of the device, the median of several runs;
- arrays to arrays: encoded texts in host memory to values in host memory;
- Arrow to values: columns of strings to values and statuses, by threads.

Beside a resident rate stands how much of what the device could do in that time was done, by resource, and the
share of its arithmetic in 64 bits that went into results: ncu, if it is there, runs the kernels once more for
that.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plait._version import __version__
from plait.devices.cuda import cuda
from plait.devices.cuda_devices import Slot, device_facts, uploaded
from plait.devices.cuda_target import CudaTarget
from plait.dp.chain import gpu_weigh_launch as cuda_weighted
from plait.dp.chain.graphs import CodedJunctions
from plait.vdj.model import GenerationProbability, RecombinationModel, load_model
from plait.vdj.model.sampling import generate_file

#: Name, column, whether V and J are given, texts/s asked for with data resident on one H200 (of mouse TRB).
CASES = (
    ("nt", "junction", False, 20e6),
    ("nt with V and J", "junction", True, None),
    ("nt, one N", "with_n", False, None),
    ("aa", "junction_aa", False, None),
    ("aa with V and J", "junction_aa", True, None),
    ("motif, one of two", "motif", False, None),
)
#: What ncu measures: name of the metric, and what it is a share of.
SHARES = {
    "sm__inst_issued.avg.pct_of_peak_sustained_active": "instructions issued",
    "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active": "64-bit units",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "shared memory and L1",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "L2",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps",
}
EXECUTED = "smsp__inst_executed.sum"
#: Operations of 64-bit instructions.
OPERATIONS = {
    "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum": 2,
    "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum": 1,
    "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum": 1,
}
#: Operations of one multiprocessor of an A100, H100 or H200 in a cycle.
EACH_CYCLE = 128
BLOCK = 1 << 16
BOUND = 1e-12


def median(run: Callable[[], float], repeat: int) -> float:
    """Median of several runs, after one that does not count, or that one."""
    first = run()
    return float(np.median([run() for _ in range(repeat)] or [first]))


class Recorder(CudaTarget):
    """The GPU, and what it was last given."""

    given: tuple[Any, ...] = ()

    def launch(self, problem: Any, batch: Any) -> Any:
        """Keep what is given."""
        self.given = batch[:4]
        return super().launch(problem, batch)


def columns_of(model: RecombinationModel, rows: int) -> dict[str, pa.Array]:
    """Productive junctions, their amino acids and calls, and variants of them."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "drawn.parquet"
        generate_file(model, path, rows, seed=1)
        table = pq.read_table(path)
    found = {name: table[name].combine_chunks().cast(pa.large_string()) for name in
             ("junction", "junction_aa", "v_call", "j_call")}  # fmt: skip
    half = [len(text) // 2 for text in found["junction_aa"].to_pylist()]
    found["with_n"] = pa.array(
        [t[: 3 * k] + "N" + t[3 * k + 1 :] for t, k in zip(found["junction"].to_pylist(), half, strict=True)],
        pa.large_string(),
    )
    found["motif"] = pa.array(
        [
            f"{t[:k]}[{t[k]}S]{t[k + 1 :]}"
            for t, k in zip(found["junction_aa"].to_pylist(), half, strict=True)
        ],
        pa.large_string(),
    )
    return found


def arguments_of(case: tuple[Any, ...], columns: dict[str, pa.Array]) -> list[Any]:
    """What `compute` is given, the kind last."""
    name, column, given, _ = case
    calls = [columns["v_call"], columns["j_call"]] if given else [None, None]
    return [columns[column], *calls, {"n": "nt", "a": "aa", "m": "motif"}[name[0]]]


def rows_of(given: list[Any], first: int, count: int, times: int = 1) -> list[Any]:
    """Some rows of what `compute` is given, several times."""
    return [
        pa.concat_arrays([column.slice(first, count)] * times) if isinstance(column, pa.Array) else column
        for column in given
    ]


def compute(engine: GenerationProbability, given: list[Any], threads: int) -> Any:
    """Values, blocks of rows on threads."""

    def run(first: int) -> Any:
        *columns, kind = rows_of(given, first, BLOCK)
        return engine.compute(*columns, kind=kind).pgen

    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(run, range(0, len(given[0]), BLOCK))))


def tiled(texts: CodedJunctions, times: int) -> CodedJunctions:
    """The texts several times; their codes and lists once."""
    n, p, s = texts.start.size, texts.v_root.size, texts.j_root.size
    firsts = [np.append((edges[:-1] + size * np.arange(times)[:, None]).ravel(), size * times)
              for edges, size in ((texts.v_first, p), (texts.j_first, s))]  # fmt: skip
    assert firsts[0].size == n * times + 1
    return CodedJunctions(
        texts.codes, np.tile(texts.start, times), np.tile(texts.length, times), firsts[0],
        np.tile(texts.v_root, times), firsts[1], np.tile(texts.j_root, times),
    )  # fmt: skip


def resident(given: tuple[Any, ...], times: int, repeat: int) -> float:
    """Junctions/s with everything on the device."""
    chain, parts, texts, plain = given
    batch = cuda_weighted.batch_of(chain, parts, tiled(texts, times), plain)
    assert batch is not None
    launch, slot = cuda_weighted.WeightedLaunch(chain, 0), Slot()
    there = None if batch.parts is None else uploaded(batch.parts)
    count = batch.texts.start.size
    piece = cuda_weighted.place(slot, launch, batch, 0, count)
    out = slot.room("out", count, np.float64)
    begin, end = cuda.event(), cuda.event()

    def run() -> float:
        begin.record(slot.stream)
        for size in piece.sizes:
            launch.launch(there, piece.texts, size, out, slot.stream)
        end.record(slot.stream)
        end.synchronize()
        return float(cuda.event_elapsed_time(begin, end)) / 1e3

    return (count - piece.left.size) / median(run, repeat)


def arrays_to_arrays(given: tuple[Any, ...], times: int, repeat: int) -> float:
    """Junctions/s from host memory to host memory."""
    chain, parts, texts, plain = given
    many = tiled(texts, times)
    out = np.zeros(many.start.size)

    def run() -> float:
        begin = time.perf_counter()
        cuda_weighted.run_weighted([0], chain, parts, many, plain, out)
        return time.perf_counter() - begin

    return many.start.size / median(run, repeat)


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    begin = time.perf_counter()
    result = run()
    return time.perf_counter() - begin, result


def profile(model: str, case: int, options: argparse.Namespace) -> dict[str, float]:
    """Shares of the device's resources in percent, instructions and operations a text; empty without ncu."""
    ncu = shutil.which("ncu")
    if ncu is None or case not in options.profile:
        return {}
    metrics = ",".join((*SHARES, EXECUTED, *OPERATIONS))
    command = [ncu, "--csv", "--print-units", "base", "--clock-control", "none", "--metrics", metrics, "-k",
               "regex:weigh"]  # fmt: skip
    source = [str(Path(__file__).resolve()), "--model", model, "--profiled", str(case), "--rows", str(BLOCK)]
    said = subprocess.run([*command, sys.executable, *source], capture_output=True, text=True, check=False)
    rows = list(csv.DictReader(line for line in said.stdout.splitlines() if line.startswith('"')))
    launches: dict[str, dict[str, float]] = {}
    for row in rows:
        with contextlib.suppress(KeyError, ValueError):
            value = float(row["Metric Value"].replace(",", ""))
            launches.setdefault(row["ID"], {})[row["Metric Name"]] = value
    if not launches:
        print(f"ncu measured nothing: {(said.stderr or said.stdout)[-300:].strip()}")
        return {}
    whole = sum(launch[EXECUTED] for launch in launches.values())
    found = {
        told: sum(launch[name] * launch[EXECUTED] / whole for launch in launches.values())
        for name, told in SHARES.items()
    }
    texts = float(next(line.split()[1] for line in said.stdout.splitlines() if line.startswith("profiled")))
    found["instructions"] = whole / texts
    found["operations"] = sum(
        launch[name] * number for launch in launches.values() for name, number in OPERATIONS.items()
    ) / texts  # fmt: skip
    return found


def measure(name: str, number: int, engines: tuple[Any, Any], columns: dict[str, pa.Array], limit: float,
            options: argparse.Namespace) -> dict[str, Any]:  # fmt: skip
    """All rates of a case."""
    case, (on_gpu, on_cpu) = CASES[number], engines
    # Motifs are read one by one.
    slow = case[0].startswith("motif")
    given = rows_of(arguments_of(case, columns), 0, len(columns["junction"]) // (10 if slow else 1))
    recorder = Recorder((0,), 1)
    on_gpu._target = recorder
    values = on_gpu.compute(*given[:3], kind=given[3]).pgen
    few = max(1, len(values) // options.cpu_share)
    some = rows_of(given, 0, few)
    compute(on_cpu, rows_of(given, 0, 1000), 1)
    seconds, wanted = timed(lambda: on_cpu.compute(*some[:3], kind=some[3]).pgen)
    both = wanted > 0
    if not np.array_equal(both, values[:few] > 0):
        raise SystemExit(f"WRONG: {case[0]}: zero on one of CPU and GPU alone")
    apart = float(np.abs(values[:few][both] / wanted[both] - 1).max(initial=0))
    if apart > BOUND:
        raise SystemExit(f"WRONG: {case[0]}: {apart:.1e} from the CPU")
    rate = resident(recorder.given, options.tile, options.repeat)
    many = rows_of(given, 0, len(values), 1 if slow else 4)
    arrow = median(lambda: timed(lambda: compute(on_gpu, many, options.threads))[0], 1 if slow else 3)
    found = {
        "case": case[0], "asked": case[3], "resident_per_second": rate, "largest_difference": apart,
        "compared": int(both.sum()), "cpu_per_second": few / seconds,
        "arrays_per_second": arrays_to_arrays(recorder.given, options.tile, options.repeat),
        "arrow_per_second": len(many[0]) / arrow, "profile": profile(name, number, options),
    }  # fmt: skip
    if found["profile"]:
        found["share_of_arithmetic"] = found["profile"]["operations"] * rate / limit
    return found


def told(found: dict[str, Any], threads: int) -> str:
    """The rates of a case, in words."""
    asked = f", asked {found['asked']:,.0f} (mouse TRB)" if found["asked"] else ""
    lines = [
        f"{found['case']:18} {found['resident_per_second']:13,.0f} texts/s resident{asked}; "
        f"{found['resident_per_second'] / found['cpu_per_second']:,.0f} times the CPU's "
        f"{found['cpu_per_second']:,.0f} on {threads} threads; {found['compared']:,} values within "
        f"{found['largest_difference']:.1e} of the CPU's",
        f"{'':18} {found['arrays_per_second']:13,.0f} texts/s arrays to arrays",
        f"{'':18} {found['arrow_per_second']:13,.0f} texts/s Arrow to values, {threads} threads",
    ]
    shares = dict(found["profile"])
    if shares:
        each, operations = shares.pop("instructions"), shares.pop("operations")
        parts = ", ".join(f"{name} {share:.0f} %" for name, share in shares.items())
        of_limit = f"{found['share_of_arithmetic']:.1%} of the device's limit"
        lines.insert(1, f"{'':18} of what the device can do: {parts}; {each:,.0f} warp instructions and "
                        f"{operations:,.0f} operations in 64 bits a text, {of_limit}")  # fmt: skip
    return "\n".join(lines)


def facts_of() -> tuple[dict[str, Any], float]:
    """The machine, and operations/s of its 64-bit units."""
    device = device_facts(0)
    query = [
        "nvidia-smi",
        "--query-gpu=driver_version,clocks.max.sm,clocks.sm",
        "--format=csv,noheader,nounits",
    ]
    said = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    driver, fastest, now = (part.strip() for part in said.split(","))
    limit = device.multiprocessors * EACH_CYCLE * float(fastest) * 1e6
    return {
        "plait": __version__, "device": device.name, "driver": driver, "clock_mhz": [now, fastest],
        "python": platform.python_version(), "operations_per_second": limit,
    }, limit  # fmt: skip


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--tile", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=16, help="threads that encode, and that compare")
    parser.add_argument("--cpu-share", type=int, default=1, help="compare one row of so many")
    parser.add_argument("--cases", type=int, nargs="*", default=list(range(len(CASES))))
    parser.add_argument("--profile", type=int, nargs="*", default=[0, 3], help="cases for ncu")
    parser.add_argument("--profiled", type=int, help="only launch the kernels of this case, for ncu")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.profiled is not None:
        model = load_model(options.model[0])
        given = arguments_of(CASES[options.profiled], columns_of(model, options.rows))
        GenerationProbability(model, device="cuda").compute(*given[:3], kind=given[3])
        print("profiled", len(given[0]))
        return
    facts, limit = facts_of()
    print(json.dumps(facts), flush=True)
    results = []
    for name in options.model:
        model = load_model(name)
        columns = columns_of(model, options.rows)
        engines = (
            GenerationProbability(model, device="cuda"),
            GenerationProbability(model, threads=options.threads),
        )
        told_of = f"{len(model.v)} V, {len(model.d)} D, {len(model.j)} J"
        print(f"{model.name}: {told_of}; {options.rows:,} drawn junctions", flush=True)
        for number in options.cases:
            results.append({"model": model.name, **measure(name, number, engines, columns, limit, options)})
            print(told(results[-1], options.threads), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"facts": facts, "cases": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
