"""Speed of the packed search kernel alone, with the targets in device memory and the scores checked.

    python benchmarks/gpu/search_kernel.py [--targets 500000] [--repeat 5] [--seed 1] [--quick]

First scores of random and related targets, short and long, are compared with those of the CPU. Then the
kernel is timed with CUDA events, calls queued one behind the other: with targets as long as the query
(compute-bound), and with lengths as in Swiss-Prot (log-normal, up to 35,213 residues). TCUPS are million
million cells a second, a cell being a residue of a query against one of a target; padding does not count. The
limit is that of the integer units, which compute 64 lanes a clock on every multiprocessor, 3.5 operations for
two cells.
CUDASW++4.0 reports 5.71 TCUPS on an H100. What limits the kernel is shown by

    ncu --clock-control none -k regex:search -s 1 -c 1 --section SpeedOfLight --section WarpStateStats \
        --section ComputeWorkloadAnalysis python benchmarks/gpu/search_kernel.py --profile
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from plait.align.batches import CodeList, PairSweep
from plait.align.scoring import Scoring, make_scoring
from plait.align.sweeps import LOCAL
from plait.devices.cuda import cuda
from plait.devices.cuda_devices import SlotArrays
from plait.devices.target import CpuTarget
from plait.dp.pairs.gpu_packed import (
    PackedQuery,
    PackedTargets,
    cleared,
    packed_scores,
    scores_in_shape,
    shape_for,
)
from plait.lang.packed import PACKED_LIMIT

LONGEST = 35_213
#: Integer operations of two cells.
OPERATIONS = 3.5
#: Lengths of queries; each makes a kernel, which takes some seconds to compile the first time.
LENGTHS = (5000, 128, 1408, 64, 768)
#: Queries of a launch.
TOGETHER = 4


def lengths_like_proteins(rng: np.random.Generator, count: int) -> Any:
    """Log-normal with a mean of 360, the longest as in Swiss-Prot."""
    sigma = 0.66
    drawn = np.exp(rng.normal(np.log(360) - sigma**2 / 2, sigma, count)).astype(np.int64)
    drawn[:3] = LONGEST, 34_350, 18_562
    return drawn.clip(10, LONGEST)


def table_of(scoring: Scoring) -> Any:
    """Scores of codes as the kernel takes them."""
    table = np.full((32, 32), -100)
    scores = scoring.matrix.scores
    table[: len(scores), : len(scores)] = scores
    return table


def offsets_of(lengths: Any) -> Any:
    """Where targets begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def related(rng: np.random.Generator, query: Any, codes: Any, offsets: Any, letters: int) -> None:
    """Put a part of the query, with changes and a gap, into every third target."""
    for start, end in zip(offsets[:-1:3], offsets[1::3], strict=False):
        part = query[int(rng.integers(0, query.size)) :][: end - start].copy()
        changed = rng.random(part.size) < rng.uniform(0.05, 0.6)
        part[changed] = rng.integers(0, letters, int(changed.sum()))
        if part.size > 20:
            part = np.delete(part, slice(8, 11))
        codes[start : start + part.size] = part


def check(
    rng: np.random.Generator,
    scoring: Scoring,
    letters: int,
    length: int,
    lengths: Any,
    many: PackedTargets | None = None,
) -> None:
    """Compare scores with those of the CPU, with the kernel for these targets or for `many`."""
    offsets = offsets_of(lengths)
    codes = rng.integers(0, letters, offsets[-1], dtype=np.uint8)
    query = rng.integers(0, letters, length, dtype=np.uint8)
    related(rng, query, codes, offsets, letters)
    sweep = PairSweep(scoring=scoring, free=LOCAL, target=CpuTarget())
    want = sweep.score_many(query, CodeList(codes, offsets))
    out = cuda.device_array((1, lengths.size), np.int32)
    form = PackedQuery(query, table_of(scoring), scoring.gap_open, scoring.gap_extend)
    memory = SlotArrays()
    targets = PackedTargets(memory.upload("codes", codes), offsets, memory)
    shape = shape_for(form, targets if many is None else many)
    scores_in_shape(shape, [form], targets, out, ([0], cleared(out, targets)))
    found = out.copy_to_host()[0]
    wrong = np.flatnonzero(np.minimum(found, PACKED_LIMIT) != np.minimum(want, PACKED_LIMIT))
    if wrong.size:
        raise SystemExit(
            f"query of {length}: target {wrong[0]} scores {found[wrong[0]]}, not {want[wrong[0]]}"
        )
    redone = int((found >= PACKED_LIMIT).sum())
    print(f"query of {length:5d}, {lengths.size} targets: OK, best {want.max()}, {redone} not exact")


def seconds_of(call: Callable[[], None], repeat: int, stream: Any = 0) -> float:
    """Time of a call that is queued behind others, as in a search; the median of three rounds."""
    call()
    times = []
    for _ in range(3):
        start, end = cuda.event(), cuda.event()
        start.record(stream)
        for _ in range(repeat):
            call()
        end.record(stream)
        end.synchronize()
        times.append(cuda.event_elapsed_time(start, end) / 1e3 / repeat)
    return statistics.median(times)


class Timing:
    """Targets on the device, and the times of queries."""

    def __init__(
        self, rng: np.random.Generator, scoring: Scoring, letters: int, lengths: Any, repeat: int
    ) -> None:
        self.rng, self.scoring, self.letters, self.repeat = rng, scoring, letters, repeat
        offsets = offsets_of(lengths)
        codes = rng.integers(0, letters, offsets[-1], dtype=np.uint8)
        self.memory = SlotArrays()
        self.stream = self.memory.stream
        for _ in range(2):
            start = time.perf_counter()
            self.targets = PackedTargets(self.memory.upload("codes", codes), offsets, self.memory)
            cuda.synchronize()
            taken = time.perf_counter() - start
        rate = codes.size / taken / 1e9
        print(f"layout of {codes.size / 1e6:.0f} million residues: {taken:.4f} s, {rate:.1f} GB/s")
        self.out = cuda.device_array((TOGETHER, lengths.size), np.int32)
        device = cuda.get_current_device()
        self.multiprocessors = device.MULTIPROCESSOR_COUNT

    def run(self, what: str, length: int, count: int = TOGETHER) -> None:
        """Time queries that are launched together, and print a line."""
        queries = self.rng.integers(0, self.letters, (count, length), dtype=np.uint8)
        scoring = self.scoring
        forms = [
            PackedQuery(query, table_of(scoring), scoring.gap_open, scoring.gap_extend) for query in queries
        ]
        call = lambda: packed_scores(forms, self.targets, self.out[:count])  # noqa: E731
        seconds = seconds_of(call, self.repeat, self.stream) / count
        rate = length * self.targets.residues / seconds / 1e12
        # The clock is that under load.
        for _ in range(int(0.4 / seconds / count) + 1):
            call()
        limit = self.multiprocessors * 64 * clock() * 2 / OPERATIONS / 1e12
        cuda.synchronize()
        shape = shape_for(forms[0], self.targets)
        spread = f"{shape.threads} x {shape.rows} x {shape.stripes}"
        print(
            f"{what:26s} {count} x {length:6d} {spread:12s} {seconds:8.4f} s {rate:7.3f} TCUPS "
            f"{rate / limit:6.1%}",
            flush=True,
        )


def asked(facts: str) -> str:
    """What nvidia-smi says about the device."""
    command = ["nvidia-smi", f"--query-gpu={facts}", "--format=csv,noheader,nounits"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def clock() -> float:
    """Clock of the multiprocessors in Hz, as it is now."""
    return 1e6 * float(asked("clocks.sm").split()[0])


def main() -> None:
    """Check, then time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="fewer lengths of queries")
    parser.add_argument("--profile", action="store_true", help="two searches and nothing else")
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    protein, dna = make_scoring(None, 11, 1, kind="protein"), make_scoring(None, 5, 2, kind="dna")
    if given.profile:
        Timing(rng, protein, 20, np.full(100_000, 352), 1).run("profile", 352)
        return
    print(asked("name,driver_version,clocks.sm,clocks.max.sm,power.draw"))
    some = np.concatenate([lengths_like_proteins(rng, 2000), [1, 2, 7]])
    equal = Timing(rng, protein, 20, np.full(given.targets, 352), given.repeat)
    check(rng, protein, 20, 352, some, equal.targets)
    equal.run("equal lengths of 352", 352)
    proteins = Timing(rng, protein, 20, lengths_like_proteins(rng, given.targets), given.repeat)
    proteins.run("lengths like proteins", 352)
    reads = Timing(rng, dna, 4, np.full(given.targets, 150), given.repeat)
    check(rng, dna, 4, 352, np.full(2001, 150), reads.targets)
    reads.run("DNA, reads of 150", 352)
    for length in LENGTHS[:2] if given.quick else LENGTHS:
        check(rng, protein, 20, length, some, proteins.targets)
        proteins.run("lengths like proteins", length)
    check(rng, protein, 20, 352, some)


if __name__ == "__main__":
    main()
