"""Exhaustive enumeration on GPUs beside the published runs, every count checked in the same run.

    python benchmarks/gpu/exhaustive.py [--table TABLE | --texts TEXTS.npz] [--sequences 101837] [--most 10]
        [--layouts 2bit,8bit] [--save TEXTS.npz] [--json OUT.json]
    mpirun -n 4 python -m mpi4py benchmarks/gpu/exhaustive.py --mpi ...

TABLE is an AIRR table of mouse TRB rearrangements, by default that in the folder PLAIT_SHARED_DATA. The
first distinct sequences (junction, V, J) that can be counted are taken. Counts of every sequence, number of
N nucleotides and D are compared with those of dp1 on the CPU. Then the run is repeated on 1, 2, 4, ..
devices, as many as there are, the better of two each time. Published figures come from other machines, and
from other sequences.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from plait.devices.cuda_devices import device_facts, devices
from plait.devices.target import CpuTarget
from plait.dp.chain.gpu_enumerate_launch import FINDING, Layout, run_enumeration
from plait.dp.chain.tables import ChainTables, Junctions
from plait.run.mpi import MpiExecutor
from plait.vdj.chain import ChainCounter, chain_tables
from plait.vdj.counting import PathCounter
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.models import PathModel

#: Minutes for n = 0, 1, .. 10.
PUBLISHED = {
    "GTX 480": (31, 38, 46, 57, 66, 77, 95, 323, 1031, 4528, 17170),
    "2 x K20Xm": (30.5, 35.2, 41.3, 48, 47.8, 53.9, 61.2, 72.5, 191.9, 551.8, 2237.8),
}
PUBLISHED_2019 = "8 GPUs, 2019: 4.4 h in all"
TABLE = "mouse_TRB_real_8mice_36samples.tsv.gz"
ALU_LANES = 64


def highest_clock() -> float:
    """Highest clock in Hz, as nvidia-smi says; that of an H200 where it says nothing."""
    command = ["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
        return 1e6 * float(said.split()[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 1.98e9


def read_table(path: Path, germline: GermlineSet, sequences: int) -> Junctions:
    """The first distinct sequences that can be counted."""
    import pyarrow as pa

    from plait.formats.rearrangements import open_rearrangements

    counter = PathCounter(germline, PathModel(name="dp1"), device="cpu")
    with open_rearrangements([path], block_rows=2 * sequences) as reader:
        names = [reader.roles[role] for role in ("junction", "v_call", "j_call")]
        table = pa.Table.from_batches([next(iter(reader))]).select(names)
    unique = table.group_by(names, use_threads=False).aggregate([])
    items = counter.items(*(unique[name].combine_chunks() for name in names))
    chosen = items.first[items.status == 0][:sequences]
    print(f"{chosen.size:,} sequences, the last of them distinct sequence {chosen[-1] + 1:,} of {path.name}")
    return Junctions(items.texts.symbols, *(field[chosen] for field in items.texts[1:]))


def save_texts(path: Path, texts: Junctions) -> None:
    """Write texts, as small as can be."""
    symbols = np.concatenate(
        [texts.symbols[a : a + n] for a, n in zip(texts.start, texts.length, strict=True)]
    )
    ends = {"length": texts.length, "prefix": texts.v, "suffix": texts.j}
    np.savez_compressed(path, symbols=symbols, **{name: x.astype(np.uint8) for name, x in ends.items()})


def load_texts(path: Path, sequences: int) -> Junctions:
    """Read what `save_texts` wrote."""
    with np.load(path) as stored:
        length, v, j = (stored[name].astype(np.int64) for name in ("length", "prefix", "suffix"))
        symbols = stored["symbols"]
    start = np.cumsum(length) - length
    return Junctions(symbols, start[:sequences], length[:sequences], v[:sequences], j[:sequences])


def by_dp1(germline: GermlineSet, most: int, texts: Junctions) -> np.ndarray:
    """Counts of the CPU's dynamic programming, as `run_enumeration` lays them out."""
    raw, _ = ChainCounter(germline, PathModel(name="dp1", max_n=most), "vdj", CpuTarget(), "null").run(texts)
    return np.concatenate([raw.full, raw.none[:, None, :]], axis=1)


class Times:
    """Seconds and comparisons, by number of N nucleotides."""

    def __init__(self, most: int) -> None:
        self.seconds = np.zeros(most + 1)
        self.compared = np.zeros(most + 1)
        self.finding = self.longest = 0.0
        self._lock = threading.Lock()

    def __call__(self, n: int, compared: int, seconds: float) -> None:
        """Add a launch."""
        with self._lock:
            self.longest = max(self.longest, seconds)
            if n == FINDING:
                self.finding += seconds
            else:
                self.seconds[n] += seconds
                self.compared[n] += compared


def timed_run(
    chosen: list[int],
    tables: ChainTables,
    texts: Junctions,
    most: int,
    layout: Layout,
    times: Times | None = None,
) -> tuple[float, np.ndarray]:
    """Seconds of a run, and its counts."""
    # Filled, because memory that was never touched may be slow to come by.
    out = np.full((texts.start.size, tables.words.length.size + 1, most + 1), -1, np.int64)
    begin = time.perf_counter()
    run_enumeration(chosen, tables, texts, most, out, layout=layout, observe=times)
    return time.perf_counter() - begin, out


def differences(found: np.ndarray, wanted: np.ndarray) -> int:
    """Print the first counts that differ; how many do."""
    places = np.argwhere(found != wanted)
    for item, d, n in places[:5]:
        print(f"  DIFFERENT: sequence {item}, D {d}, n {n}: {found[item, d, n]}, dp1 {wanted[item, d, n]}")
    return len(places)


def report(layout: str, times: Times, total: float, limit: float) -> None:
    """The table of minutes."""
    published = "".join(f"{name:>12}" for name in PUBLISHED)
    print(
        f"{layout} layout, minutes by n\n"
        f"{'n':>3} {'here':>12}{published} {'comparisons':>12} {'T/s':>6} of limit"
    )
    for n, (seconds, compared) in enumerate(zip(times.seconds, times.compared, strict=True)):
        rate = compared / max(seconds, 1e-9)
        stated = "".join(f"{minutes[n]:12.1f}" for minutes in PUBLISHED.values())
        print(f"{n:3} {seconds / 60:12.5f}{stated} {compared:12.4g} {rate / 1e12:6.2f} {rate / limit:6.0%}")
    sums = "".join(f"{sum(minutes):12.1f}" for minutes in PUBLISHED.values())
    print(
        f"all {total / 60:12.5f}{sums}   ({total:.2f} s, of which {times.finding:.2f} s find wanted strings; "
        f"longest launch {times.longest:.2f} s; {PUBLISHED_2019}, no other figure)"
    )


def one_layout(
    layout: Layout, tables: ChainTables, texts: Junctions, most: int, wanted: np.ndarray, limit: float
) -> dict[str, Any]:
    """Run, check and print one layout: launch by launch, then as fast as can be on 1, 2, 4, .. devices."""
    few = Junctions(texts.symbols, *(field[:64] for field in texts[1:]))
    for device in devices():
        timed_run([device], tables, few, min(most, 4), layout)
    times = Times(most)
    total, found = timed_run(devices()[:1], tables, texts, most, layout, times)
    wrong = differences(found, wanted)
    print(f"{layout}: {'EQUAL to dp1' if not wrong else f'{wrong} WRONG'}: {found.size:,} counts")
    report(layout, times, total, limit)
    result: dict[str, Any] = {
        "layout": layout, "equal": not wrong, "seconds": total, "seconds_by_n": times.seconds.tolist(),
        "finding": times.finding, "comparisons_by_n": times.compared.tolist(), "scaling": {},
    }  # fmt: skip
    number = 1
    while number <= len(devices()):
        runs = [timed_run(devices()[:number], tables, texts, most, layout) for _ in range(2)]
        seconds = min(seconds for seconds, _ in runs)
        wrong = sum(differences(again, wanted) for _, again in runs)
        result["scaling"][number] = seconds
        result["equal"] &= not wrong
        print(
            f"{layout}, {number} devices, not waiting for each launch: {seconds:.3f} s, "
            f"{result['scaling'][1] / seconds:.2f} times as fast as one; "
            f"{'equal' if not wrong else f'{wrong} WRONG'}"
        )
        number *= 2
    return result


def over_ranks(layout: Layout, tables: ChainTables, texts: Junctions, most: int, wanted: np.ndarray) -> bool:
    """Share the N strings out over the ranks of MPI, add up, and check on rank 0."""
    executor = MpiExecutor()
    chosen = [devices()[executor.local_rank % len(devices())]]
    few = Junctions(texts.symbols, *(field[:64] for field in texts[1:]))
    timed_run(chosen, tables, few, min(most, 4), layout)

    out = np.full_like(wanted, -1)

    def share(rank: int, ranks: int) -> np.ndarray:
        run_enumeration(chosen, tables, texts, most, out, layout=layout, share=(rank, ranks))
        return out

    executor.sum(lambda rank, ranks: np.zeros(1))
    begin = time.perf_counter()
    total = executor.sum(share)
    seconds = time.perf_counter() - begin
    if total is None:
        return True
    wrong = differences(total, wanted)
    print(
        f"{layout}, {executor.size} ranks on {min(executor.size, len(devices()))} devices: {seconds:.3f} s; "
        f"{'EQUAL to dp1' if not wrong else f'{wrong} WRONG'}"
    )
    return not wrong


def main() -> None:
    """Run everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", type=Path, default=Path(os.environ.get("PLAIT_SHARED_DATA", ".")) / TABLE)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--sequences", type=int, default=101_837)
    parser.add_argument("--most", type=int, default=10)
    parser.add_argument("--layouts", default="2bit,8bit")
    parser.add_argument("--save", type=Path, help="write the sequences to this file and stop")
    parser.add_argument("--mpi", action="store_true", help="only share out over the ranks of mpirun")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    germline = load_germline("mouse_trb")
    if options.texts:
        texts = load_texts(options.texts, options.sequences)
    else:
        texts = read_table(options.table, germline, options.sequences)
    if options.save:
        save_texts(options.save, texts)
        return
    most = options.most
    facts = device_facts(devices()[0])
    clock = highest_clock()
    limit = facts.multiprocessors * ALU_LANES * clock
    print(
        f"{len(devices())} x {facts.name}, at most {clock / 1e9:.2f} GHz: {limit / 1e12:.1f} T compared/s\n"
        f"{texts.start.size:,} sequences, {np.unique(texts.v).size} V, {len(germline.d)} D, "
        f"{np.unique(texts.j).size} J, {int((texts.length > 56).sum())} longer than a 16-byte record"
    )
    wanted = by_dp1(germline, most, texts)
    tables = chain_tables(germline, PathModel(name="exhaustive", max_n=most), "vdj")
    layouts: list[Any] = options.layouts.split(",")
    if options.mpi:
        sys.exit(0 if all(over_ranks(x, tables, texts, most, wanted) for x in layouts) else 1)
    results = [one_layout(layout, tables, texts, most, wanted, limit) for layout in layouts]
    if options.json:
        stated = {
            "device": facts.name,
            "devices": len(devices()),
            "sequences": texts.start.size,
            "most": most,
        }
        options.json.write_text(json.dumps({**stated, "layouts": results}, indent=1) + "\n")
    sys.exit(0 if all(result["equal"] for result in results) else 1)


if __name__ == "__main__":
    main()
