"""Annotation of mutated IGH reads: V gene, junction and speed at 0 to 15 % of mutated bases.

    python benchmarks/annotate_igh.py [--germline SETS] [--reads N] [--length N] [--igblast TABLE]

SETS are germline sets (names, files or folders with commas between); reads are made of the first one, each
gene as frequent as any other. They begin in V and end 30 bases behind J. `uniform` mutations hit each base of
V to J alike, `hot spots` the middle of WRC and GYW five times and that of WA and TW three times as often as
other bases; half of them are transitions. Speeds are processor time of one thread, without files.
"""

from __future__ import annotations

import argparse
import platform
import random
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from annotation_accuracy import Row, Share, genes, table
from support.molecule_simulation import random_sequence, simulate_productive
from support.read_library import block_of

from plait.vdj.germline import GermlineSet
from plait.vdj.reads.annotator import ReadAnnotator, germlines_of
from plait.vdj.reads.rearrangements import AnnotationSettings

_TAIL = 30
_BLOCK = 6144
_RATES = (0.0, 0.02, 0.05, 0.10, 0.15)
#: Weight of a mutated base, its place in a context and this context: WRC and GYW, WA and TW.
_HOT = ((5.0, 2, "[AT][AG]C"), (5.0, 0, "G[CT][AT]"), (3.0, 1, "[AT]A"), (3.0, 0, "T[AT]"))
_TRANSITION = {"A": "G", "G": "A", "C": "T", "T": "C"}


class Truth(NamedTuple):
    """A simulated read, and what it holds."""

    sequence: str
    v_call: str
    j_call: str
    junction: str


def mutated(sequence: str, first: int, last: int, rate: float, hot: bool, rng: random.Random) -> str:
    """The sequence with so many bases of [first, last) changed, each once."""
    weights = np.ones(last - first)
    if hot:
        for weight, place, context in _HOT:
            for found in re.finditer(f"(?={context})", sequence):
                at = found.start() + place - first
                if 0 <= at < weights.size:
                    weights[at] = max(weights[at], weight)
    # Places in the order of exponential times: a draw without replacement by weight.
    times = np.array([rng.expovariate(1.0) for _ in range(weights.size)]) / weights
    letters = list(sequence)
    for at in np.argsort(times)[: round(rate * weights.size)].tolist():
        old = letters[first + at]
        others = [base for base in "ACGT" if base not in (old, _TRANSITION[old])]
        letters[first + at] = _TRANSITION[old] if rng.random() < 0.5 else rng.choice(others)
    return "".join(letters)


def simulated(germline: GermlineSet, count: int, length: int, rate: float, hot: bool) -> Iterator[Truth]:
    """Reads with their truth; of `length` bases, 0 for all of V."""
    rng = random.Random(f"{rate} {hot} {length}")
    tail = random_sequence(rng, _TAIL)
    for _ in range(count):
        molecule = simulate_productive(germline, rng, tail=tail).molecule
        first, last = molecule.v_place[0], molecule.j_place[1]
        assert molecule.junction_place is not None
        sequence = mutated(molecule.sequence, first, last, rate, hot, rng)
        start = max(len(sequence) - length, 0) if length else 0
        place = slice(*molecule.junction_place)
        yield Truth(sequence[start:], molecule.v_call, molecule.j_call, sequence[place])


def compared(annotator: ReadAnnotator, reads: Sequence[Truth], repeat: int) -> str:
    """A line: how many are right, and how fast they are annotated."""
    blocks = [
        block_of([read.sequence for read in reads[first : first + _BLOCK]])
        for first in range(0, len(reads), _BLOCK)
    ]
    seconds, rows = np.inf, []
    for _ in range(repeat + 1):
        begin = time.process_time()
        found = [annotator.annotate(block)[0] for block in blocks]
        seconds = min(seconds, time.process_time() - begin)
        rows = [row for batch in found for row in batch.select(_WANTED).to_pylist()]
    return _line(rows, reads, len(reads) / seconds)


_REGIONS = ("fwr1", "cdr1", "fwr2", "cdr2", "fwr3", "cdr3", "fwr4")
#: Percent of identity with V from which IgBLAST's call is of the species.
_ALIKE = 80.0
_WANTED = ["v_call", "j_call", "junction", "annotation_status"]


def _line(rows: Sequence[Row], reads: Sequence[Truth], speed: float) -> str:
    n = len(reads)
    first = listed = allele = j = junction = ok = 0
    for row, truth in zip(rows, reads, strict=True):
        wanted, called = genes(truth.v_call)[0], genes(row["v_call"])
        first += called[:1] == [wanted]
        listed += wanted in called
        allele += truth.v_call in (row["v_call"] or "").split(",")
        j += genes(truth.j_call)[0] in genes(row["j_call"])
        junction += row["junction"] == truth.junction
        ok += row["annotation_status"] == "ok"
    shares = (Share(own, n).found / n for own in (listed, first, allele, j, junction, ok))
    return "  ".join(f"{share:7.2%}" for share in shares) + f"  {speed:9,.0f}"


def beside_igblast(path: Path, annotator: ReadAnnotator) -> Iterator[str]:
    """A line for each locus: how many calls and regions are the same, of those that both have."""
    peers = [
        row for row in table(path) if row["productive"] == "T" and float(row["v_identity"] or 0) >= _ALIKE
    ]
    block = block_of([row["sequence"] for row in peers])
    rows = annotator.annotate(block)[0].to_pylist()
    for locus in sorted({row["locus"] for row in peers}):
        pairs = [(peer, row) for peer, row in zip(peers, rows, strict=True) if peer["locus"] == locus]
        text = [f"{locus} {len(pairs):,} rows", f"locus {sum(row['locus'] == locus for _, row in pairs):,}"]
        for name in ("v_call", "j_call", "junction", *_REGIONS):
            both = [(peer[name], row[name]) for peer, row in pairs if peer[name] and row[name]]
            same = sum(_same(name, *own) for own in both)
            text.append(f"{name} {same:,}/{len(both):,}")
        yield ", ".join(text)


def _same(name: str, theirs: str, ours: str) -> bool:
    return not set(genes(theirs)).isdisjoint(genes(ours)) if name.endswith("_call") else theirs == ours


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--germline", default="human_igh")
    parser.add_argument("--igblast", type=Path, help="AIRR table of IgBLAST's (.tsv.gz), mouse")
    parser.add_argument("--reads", type=int, default=2000)
    parser.add_argument("--length", type=int, action="append", help="bases of a read; 0: all of V to J")
    parser.add_argument("--rate", type=float, action="append", help="shares of mutated bases")
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    germlines = germlines_of(options.germline)
    germline, settings = germlines[0], AnnotationSettings(max_error_rate=0.3)
    annotator = ReadAnnotator(germlines, settings=settings)
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    if options.igblast is not None:
        print("rows that IgBLAST calls productive, V identity 80 % and more, against all sets of the mouse")
        regions = AnnotationSettings(max_error_rate=0.3, regions=True)
        for line in beside_igblast(options.igblast, ReadAnnotator(germlines_of("mouse"), settings=regions)):
            print(line, flush=True)
    print(f"{germline.name}, of {len(germlines)} sets: {len(germline.v)} V, {options.reads:,} reads a line")
    print("length  mutations           V gene   first   allele   J gene  junction  ok        reads/s")
    for length in options.length or [0, 250]:
        for hot in (False, True):
            for rate in options.rate or _RATES:
                if hot and not rate:
                    continue
                reads = list(simulated(germline, options.reads, length, rate, hot))
                kind = f"{rate:4.0%} {'hot spots' if hot else 'uniform'}"
                line = compared(annotator, reads, options.repeat)
                print(f"{length or 'all':>6}  {kind:15}  {line}", flush=True)


if __name__ == "__main__":
    main()
