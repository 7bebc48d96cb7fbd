"""Time of one short alignment from Python, and of columns of many, beside parasail and Biopython.

    python benchmarks/short_calls.py [--repeat 7]

Peers: ``pip install parasail biopython``. Microseconds of processor time of a call, the best of several times
some hundred calls, all programs in turns; every score is compared. Nucleotides, 2 for a match and -3 for a
mismatch, the first residue of a gap costs 7 and every further one 2, from end to end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import parasail
from Bio.Align import PairwiseAligner
from commands import processor_name

from plait.align import align, align_pairs, make_aligner, make_scoring

CALLS = 300
PAIRS = 20_000


def best(call: Callable[[], Any], calls: int, repeat: int) -> float:
    """Microseconds of a call."""
    call()
    fastest = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        for _ in range(calls):
            call()
        fastest = min(fastest, (time.process_time() - start) / calls)
    return 1e6 * fastest


def drawn(size: int, rng: np.random.Generator) -> tuple[str, str]:
    """A sequence, and the same with a tenth of its letters changed and one lost."""
    one = rng.choice(list("ACGT"), size)
    other = np.where(rng.random(size) < 0.1, rng.choice(list("ACGT"), size), one)
    return "".join(one), "".join(np.delete(other, size // 2))


def rows(query: str, target: str, repeat: int) -> list[tuple[str, float]]:
    """What a call of each program takes."""
    aligner = make_aligner(make_scoring(match=2, mismatch=-3), threads=1)
    matrix = parasail.matrix_create("ACGT", 2, -3)
    bio = PairwiseAligner(match_score=2, mismatch_score=-3, open_gap_score=-7, extend_gap_score=-2)
    found = aligner.align(query, target)
    traced = parasail.nw_trace_striped_16(query, target, 7, 2, matrix)
    scores = {found.score, aligner.score(query, target), align(query, target).score, traced.score}
    if scores != {int(bio.score(query, target))}:
        raise SystemExit(f"scores differ: {scores}")
    calls: dict[str, Callable[[], Any]] = {
        "Aligner.align, with CIGAR": lambda: aligner.align(query, target),
        "align.align, with CIGAR": lambda: align(query, target),
        "parasail trace striped 16, with CIGAR": lambda: (
            parasail.nw_trace_striped_16(query, target, 7, 2, matrix).cigar.decode
        ),
        "Biopython align, first alignment": lambda: bio.align(query, target)[0],
        "Aligner.score": lambda: aligner.score(query, target),
        "parasail striped 16, score": lambda: parasail.nw_striped_16(query, target, 7, 2, matrix).score,
        "Biopython score": lambda: bio.score(query, target),
    }
    taken = [[best(call, CALLS, 1) for call in calls.values()] for _ in range(repeat)]
    return list(zip(calls, map(min, zip(*taken, strict=True)), strict=True))


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeat", type=int, default=25)
    repeat = arguments.parse_args().repeat
    rng = np.random.default_rng(1)
    print(f"{processor_name()}; microseconds of processor time, one thread, the best of {repeat}")
    for size in (14, 50, 150):
        print(f"\n{size} by {size - 1} nucleotides")
        for name, microseconds in rows(*drawn(size, rng), repeat):
            print(f"  {name:<40} {microseconds:8.1f}")
    pairs = [drawn(100, rng) for _ in range(PAIRS)]
    queries, targets = (list(side) for side in zip(*pairs, strict=True))

    def columns() -> Any:
        return align_pairs(queries, targets, threads=1, kind="dna")

    if columns().score.tolist() != [one.score for one in columns()]:
        raise SystemExit("columns and alignments differ")
    taken = {"columns": best(columns, 1, repeat), "as objects": best(lambda: list(columns()), 1, repeat)}
    print(f"\nlists of {PAIRS:,} pairs of 100 by 99 nucleotides, a pair")
    for name, microseconds in taken.items():
        print(f"  {name:<40} {microseconds / PAIRS:8.2f}")


if __name__ == "__main__":
    main()
