"""All near pairs among generated CDR3: seconds of plait, answers against brute force, beside pyrepseq.

    python benchmarks/neighbours.py [MILLIONS] [--peer PYTHON]

Junctions (amino acids) are drawn from human_TRB. Pairs of 2,000 of them are compared with those of all pairs
one by one. PYTHON is an interpreter with pyrepseq, which runs on 100,000 in a process of its
own, in turn with plait; its pairs within one edit are compared, too. Seconds are by the clock and of the
processor.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.run.executor import LocalExecutor
from plait.vdj.model import load_model
from plait.vdj.model.sampling import BlockDraws
from plait.vdj.repertoires.neighbours import clusters, pairs

PEER = """
import sys, time
from pyrepseq.nn import symdel
junctions = open(sys.argv[1]).read().split()
begun = time.perf_counter(), time.process_time()
found = symdel(junctions, max_edits=1)
print(time.perf_counter() - begun[0], time.process_time() - begun[1])
for i, j, _ in found:
    if i < j:
        print(i, j)
"""


def drawn(n: int) -> pa.Table:
    """So many productive junctions with their genes."""
    parts, rows = [], 0
    work = BlockDraws(load_model("human_TRB"), 1, True, 1 << 16)
    for block in LocalExecutor().map(work, itertools.count()):
        parts.append(block.select(["junction_aa", "v_call", "j_call"]))
        rows += block.num_rows
        if rows >= n:
            return pa.Table.from_batches(parts).slice(0, n).combine_chunks()
    raise AssertionError


def genes_of(table: pa.Table) -> np.ndarray[Any, Any]:
    """A number for each V and J allele."""
    codes = [pc.dictionary_encode(table[name].combine_chunks()).indices for name in ("v_call", "j_call")]
    return np.asarray(codes[0]).astype(np.int64) * 1000 + np.asarray(codes[1])


def timed(work: Any) -> tuple[Any, float, float]:
    """What work gives, and seconds by the clock and of the processor."""
    begun = time.perf_counter(), time.process_time()
    found = work()
    return found, time.perf_counter() - begun[0], time.process_time() - begun[1]


def plainly(texts: list[str], genes: list[int], limit: int, edits: bool) -> list[tuple[int, int]]:
    """All pairs, one by one."""
    found = []
    for (i, a), (j, b) in itertools.combinations(enumerate(texts), 2):
        if genes[i] != genes[j] or abs(len(a) - len(b)) > (limit if edits else 0):
            continue
        if (distance(a, b) if edits else sum(x != y for x, y in zip(a, b, strict=True))) <= limit:
            found.append((i, j))
    return found


def distance(a: str, b: str) -> int:
    """Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
    return row[-1]


def check(table: pa.Table) -> None:
    """Pairs of 2,000 against all pairs one by one."""
    some = table.slice(0, 2000)
    texts, genes = some["junction_aa"].to_pylist(), genes_of(some)
    # Edits one by one take long: within genes alone.
    for kind, limits, grouped in (("mismatches", (0, 1, 2), (genes * 0, genes)), ("edits", (1, 2), (genes,))):
        for limit, groups in itertools.product(limits, grouped):
            near: Any = {kind: limit}
            i, j = pairs(texts, groups, **near)
            mine = list(zip(i.tolist(), j.tolist(), strict=True))
            assert mine == plainly(texts, groups.tolist(), limit, kind == "edits"), (kind, limit)
    print("2,000 junctions: all pairs within 0 to 2 mismatches and 1 to 2 edits are those of brute force")


def beside(table: pa.Table, python: str) -> None:
    """The peer and plait in turn, within one edit of 100,000 junctions."""
    some = table.slice(0, 100_000)["junction_aa"]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "junctions"
        path.write_text("\n".join(some.to_pylist()))
        for _ in range(3):
            (i, j), wall, used = timed(lambda: pairs(some, edits=1))
            told = subprocess.run(
                [python, "-c", PEER, path], capture_output=True, text=True, check=True
            ).stdout
            head, *lines = told.splitlines()
            other = [float(seconds) for seconds in head.split()]
            assert {tuple(map(int, line.split())) for line in lines} == set(
                zip(i.tolist(), j.tolist(), strict=True)
            )
            ratios.append(other[1] / used)
            print(
                f"100,000 within 1 edit, {i.size:,} pairs: plait {wall:.2f} s ({used:.2f} of the processor), "
                f"pyrepseq {other[0]:.2f} s ({other[1]:.2f}), {ratios[-1]:.0f} times"
            )
    print(f"median {np.median(ratios):.0f} times as much of the processor; the same pairs")


def main() -> None:
    """Print the speeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("millions", nargs="?", type=float, default=10)
    parser.add_argument("--peer")
    words = parser.parse_args()
    print(
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} processors, Python {platform.python_version()}"
    )
    table = drawn(int(words.millions * 1e6))
    check(table)
    if words.peer:
        beside(table, words.peer)
    genes, texts = genes_of(table), table["junction_aa"]
    for what, groups, near in (
        ("within V and J, 1 mismatch", genes, {"mismatches": 1}),
        ("within V and J, 1 edit", genes, {"edits": 1}),
    ):
        (i, _), wall, used = timed(lambda groups=groups, near=near: pairs(texts, groups, **near))
        print(
            f"{len(texts):,} junctions, {what}: {i.size:,} pairs, {wall:.1f} s ({used:.1f} of the processor)"
        )
    labels, wall, used = timed(lambda: clusters(texts, mismatches=1))
    print(
        f"{len(texts):,} junctions, any genes, 1 mismatch: {labels.max() + 1:,} clusters, "
        f"{wall:.1f} s ({used:.1f} of the processor)"
    )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")


if __name__ == "__main__":
    main()
