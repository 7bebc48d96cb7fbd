"""Speed of generation probabilities on several GPUs at a time, beside the first of them alone.

    python benchmarks/gpu/pgen_devices.py --model MODEL [--devices 0 1] [--rows 200000] [--tile 16]

MODEL and rates are those of `benchmarks/gpu/pgen.py`. Values of all devices must be those of the first one,
bit for bit.
"""

from __future__ import annotations

import argparse
import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from pgen import CASES, Recorder, arguments_of, columns_of, compute, facts_of, median, rows_of, tiled, timed

from plait.devices.cuda_devices import Slot, on_device, uploaded
from plait.devices.cuda_devices import devices as all_devices
from plait.devices.cuda_target import CudaTarget
from plait.dp.chain import gpu_weigh_launch as cuda_weighted
from plait.vdj.model import GenerationProbability, RecombinationModel, load_model

NAMES = ("resident", "arrays to arrays", "Arrow to values")


def resident(given: tuple[Any, ...], times: int, repeat: int, devices: list[int]) -> float:
    """Texts/s with everything on each of the devices, which start together."""
    chain, parts, texts, plain = given
    batch = cuda_weighted.batch_of(chain, parts, tiled(texts, times), plain)
    assert batch is not None
    count = batch.texts.start.size
    together = threading.Barrier(len(devices), timeout=300)

    def serve(number: int) -> list[tuple[float, float]]:
        with on_device(number):
            launch, slot = cuda_weighted.WeightedLaunch(chain, number), Slot()
            there = None if batch.parts is None else uploaded(batch.parts)
            piece = cuda_weighted.place(slot, launch, batch, 0, count)
            out = slot.room("out", count, np.float64)
            found = []
            for _ in range(1 + repeat):
                slot.wait()
                together.wait()
                begin = time.perf_counter()
                for size in piece.sizes:
                    launch.launch(there, piece.texts, size, out, slot.stream)
                slot.wait()
                found.append((begin, time.perf_counter()))
            return found[1:]

    with ThreadPoolExecutor(len(devices)) as pool:
        runs = list(pool.map(serve, devices))
    taken = [max(end for _, end in run) - min(begin for begin, _ in run) for run in zip(*runs, strict=True)]
    return len(devices) * count / float(np.median(taken))


def arrays_to_arrays(given: tuple[Any, ...], out: Any, devices: list[int]) -> float:
    """Seconds from host memory to host memory."""
    return timed(lambda: cuda_weighted.run_weighted(devices, *given, out))[0]


def measure(
    number: int, model: RecombinationModel, columns: dict[str, pa.Array], options: argparse.Namespace
) -> str:
    """Rates of a case on the first device and on all of them, in words."""
    given = arguments_of(CASES[number], columns)
    engine = GenerationProbability(model, device="cuda")
    recorder = engine._target = Recorder(tuple(options.devices[:1]), 1)
    engine.compute(*given[:3], kind=given[3])
    chain, parts, texts, plain = recorder.given
    many = chain, parts, tiled(texts, options.tile), plain
    more = rows_of(given, 0, len(given[0]), 4)
    values, rates = [], []
    for devices in (options.devices[:1], options.devices):
        out = np.zeros(many[2].start.size)
        engine._target = CudaTarget(devices, 1)
        arrays = median(functools.partial(arrays_to_arrays, many, out, devices), options.repeat)
        arrow = median(lambda: timed(lambda: compute(engine, more, options.threads))[0], 3)
        there = resident(recorder.given, options.tile, options.repeat, devices)
        rates.append([there, out.size / arrays, len(more[0]) / arrow])
        values.append(out)
    if not np.array_equal(*values):
        raise SystemExit(f"WRONG: {CASES[number][0]}: values of several devices are not those of one")
    lines = [f"{CASES[number][0]}: {values[0].size:,} values are the same, bit for bit"]
    for name, one, every in zip(NAMES, *rates, strict=True):
        told = f"{one:13,.0f} texts/s on one, {every:13,.0f} on {len(options.devices)}"
        lines.append(f"  {name:18} {told}: {every / one:.2f} times")
    return "\n".join(lines)


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--devices", type=int, nargs="+", default=all_devices())
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--tile", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=32, help="threads that encode, for all devices")
    parser.add_argument("--cases", type=int, nargs="*", default=[0, 1, 3])
    options = parser.parse_args()
    model = load_model(options.model)
    columns = columns_of(model, options.rows)
    print(facts_of()[0], flush=True)
    print(f"{model.name}: {options.rows:,} drawn junctions; devices {options.devices}", flush=True)
    for number in options.cases:
        print(measure(number, model, columns, options), flush=True)


if __name__ == "__main__":
    main()
