"""Very long pairs on GPUs: alignments checked against those of the CPU, then timed.

    python benchmarks/gpu/long_pairs.py [--device cuda] [--check 50000] [--all] [--scores] [--json OUT.json]
        [--sizes 1000000x1000000,4600000x4900000] [--fasta QUERY.fa TARGET.fa] [--best 200000x400000]

Pairs are drawn: a random genome, and a relative with substitutions, short insertions and deletions, a piece
moved, a piece turned round, and, where it is to be longer, a piece that the other lacks. With --fasta the
first records of two files are aligned too. Every alignment is scored again from its CIGAR. Pairs of more than
ten million million cells are aligned in local mode with affine gaps only, unless --all is given.

Seconds are those of a call, with everything: letters to codes, copies, the search for the end, and for the
CIGAR also the checkpoints and the way back. What is not yet compiled is, before the clock starts.

The limit is that of the units for integer maxima: 64 lanes a clock and multiprocessor (measured, see
shared/prototypes/dpx), of which a cell takes 4.5 with affine gaps and local alignment, 4 with affine and
global, 2.5 and 2 with linear gaps. The rest of a cell runs in other units.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
from support.alignment_batches import rescore

from plait.align import align, local_best, score
from plait.devices.target import resolve

LETTERS = np.frombuffer(b"ACGT", np.uint8)
AFFINE, LINEAR = {"gap_open": 5, "gap_extend": 2}, {"gap_open": 3, "gap_extend": 3}
OPERATIONS = {("local", True): 4.5, ("global", True): 4.0, ("local", False): 2.5, ("global", False): 2.0}


def relatives(rows: int, columns: int, seed: int) -> tuple[bytes, bytes]:
    """Two genomes of these sizes, or nearly."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 4, rows, dtype=np.uint8)
    target = query.copy()
    changed = rng.random(rows) < 0.02
    target[changed] = rng.integers(0, 4, int(changed.sum()), dtype=np.uint8)
    target = target[rng.random(rows) >= 0.002]
    places = np.flatnonzero(rng.random(target.size) < 0.002)
    target = np.insert(target, places, rng.integers(0, 4, places.size, dtype=np.uint8))
    a, b, c, d = (int(share * target.size) for share in (0.31, 0.34, 0.62, 0.66))
    target = np.concatenate([target[:a], target[b:c], target[a:b], 3 - target[c:d][::-1], target[d:]])
    more = max(columns - target.size, 0)
    target = np.insert(target, target.size // 2, rng.integers(0, 4, more, dtype=np.uint8))
    return LETTERS[query].tobytes(), LETTERS[target].tobytes()


def first_record(path: Path) -> bytes:
    """The sequence of the first record of a FASTA file."""
    text = path.read_bytes()
    if path.suffix == ".gz":
        text = gzip.decompress(text)
    return b"".join(text.split(b">")[1].split(b"\n")[1:]).upper()


def check(size: int, device: str) -> int:
    """Compare alignments with those of the CPU; returns how many differ."""
    query, target = relatives(size, size + size // 10, 1)
    different = 0
    for mode in ("local", "global", "overlap", "extension"):
        for costs in (AFFINE, LINEAR):
            how: dict[str, Any] = {"mode": mode, "kind": "dna", **costs}
            wanted = align(query, target, device="cpu", **how)
            found = align(query, target, device=device, **how)
            same = found == wanted and score(query, target, device=device, **how) == wanted.score
            different += not same
            told = "same" if same else "DIFFERENT"
            print(
                f"check {mode:9} {costs['gap_open']}/{costs['gap_extend']} {found.score:>9} {told}",
                flush=True,
            )
    return different


def facts() -> dict[str, str]:
    """Device, driver and clocks."""
    fields = "name,driver_version,clocks.sm,clocks.max.sm"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = said.strip().splitlines()
    return {"devices": str(len(lines)), **dict(zip(fields.split(","), lines[0].split(", "), strict=True))}


def limit_of(mode: str, costs: dict[str, int], device: str) -> float:
    """Cells a second that the units for maxima allow."""
    if not device.startswith("cuda"):
        return math.inf
    from plait.devices.cuda_devices import device_facts

    numbers = getattr(resolve(device), "devices", (0,))
    clock = float(facts().get("clocks.max.sm", "1980")) * 1e6
    lanes = sum(64 * device_facts(number).multiprocessors for number in numbers)
    return lanes * clock / OPERATIONS[mode, costs is AFFINE]


def timed(
    name: str, query: bytes, target: bytes, mode: str, costs: Any, options: argparse.Namespace
) -> dict[str, Any]:
    """Seconds of scores and of alignments."""
    device = options.device
    how: dict[str, Any] = {"mode": mode, "kind": "dna", "device": device, **costs}
    cells = len(query) * len(target)
    start = time.perf_counter()
    best = score(query, target, **how)
    scored = time.perf_counter() - start
    limit = limit_of(mode, costs, device)
    told: dict[str, Any] = {
        "pair": name,
        "mode": mode,
        "gaps": f"{costs['gap_open']}/{costs['gap_extend']}",
        "query": len(query),
        "target": len(target),
        "score": best,
        "score_seconds": round(scored, 3),
        "tcups": round(cells / scored / 1e12, 3),
        "share_of_limit": round(cells / scored / limit, 3),
    }
    if not options.scores:
        start = time.perf_counter()
        found = align(query, target, **how)
        told["cigar_seconds"] = round(time.perf_counter() - start, 3)
        scoring = found.scoring
        again = rescore(found, scoring.encode(query), scoring.encode(target), scoring)
        told["agree"] = bool(best == found.score == again)
        told |= {"identity": round(found.identity, 4), "columns": found.length}
    print(json.dumps(told), flush=True)
    return told


def several(options: argparse.Namespace) -> None:
    """The 200 best of pairs of which half is alike, or nothing: the CPU's, and seconds beside a score."""
    rows, columns = map(int, options.best.split("x"))
    for alike in (False, True):
        rng = np.random.default_rng(3)
        query, target = rng.integers(0, 4, rows), rng.integers(0, 4, columns)
        if alike:
            part = query[: rows // 2].copy()
            changed = rng.random(part.size) < 0.1
            part[changed] = rng.integers(0, 4, int(changed.sum()))
            target[columns // 4 :][: part.size] = part
        pair = LETTERS[query].tobytes(), LETTERS[target].tobytes()
        how: dict[str, Any] = {"kind": "dna", **AFFINE}
        found, seconds = {}, {}
        for device in (options.device, "cpu"):
            local_best(*pair, 200, device=device, **how)
            start = time.perf_counter()
            found[device] = local_best(*pair, 200, device=device, **how)
            seconds[device] = round(time.perf_counter() - start, 3)
        start = time.perf_counter()
        best = score(*pair, mode="local", device=options.device, **how)
        told = {"best": options.best, "alike": alike, "score": best, "seconds_of_200": seconds}
        told["score_seconds"] = round(time.perf_counter() - start, 3)
        told["same"] = found["cpu"] == found[options.device] and found["cpu"][0].score == best
        print(json.dumps(told), flush=True)


def pairs(options: argparse.Namespace) -> dict[str, tuple[bytes, bytes]]:
    """The pairs that are timed, by name."""
    made = {}
    for k, size in enumerate(filter(None, options.sizes.split(","))):
        rows, columns = map(int, size.split("x"))
        made[f"drawn {size}"] = relatives(rows, columns, 2 + k)
    if options.fasta:
        query, target = options.fasta
        made[f"{query.name} {target.name}"] = first_record(query), first_record(target)
    return made


def hows(cells: int, everything: bool) -> list[tuple[str, dict[str, int]]]:
    """Modes and costs for a pair."""
    if cells > 1e13 and not everything:
        return [("local", AFFINE)]
    return [(mode, costs) for mode in ("local", "global") for costs in (AFFINE, LINEAR)]


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--check", type=int, default=50_000)
    parser.add_argument("--sizes", default="1000000x1000000,4600000x4900000")
    parser.add_argument("--fasta", type=Path, nargs=2)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--scores", action="store_true", help="leave out the alignments")
    parser.add_argument("--best", help="rows x columns of pairs of which the 200 best are looked for")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(json.dumps(facts()), flush=True)
    different = check(options.check, options.device) if options.check else 0
    if options.best:
        several(options)
    small = relatives(20_000, 20_000, 1)
    for mode, costs in hows(0, everything=True):
        align(*small, device=options.device, mode=mode, kind="dna", **costs)  # type: ignore[arg-type]
        score(*small, device=options.device, mode=mode, kind="dna", **costs)  # type: ignore[arg-type]
    runs = [
        timed(name, *pair, mode, costs, options)
        for name, pair in pairs(options).items()
        for mode, costs in hows(len(pair[0]) * len(pair[1]), options.all)
    ]
    if options.json:
        options.json.write_text(
            json.dumps({"facts": facts(), "different": different, "runs": runs}, indent=1)
        )
    if different or not all(run.get("agree", True) for run in runs):
        raise SystemExit("alignments differ")


if __name__ == "__main__":
    main()
