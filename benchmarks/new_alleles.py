"""Precision and recall of the discovery of new alleles, on reads simulated with hidden ones.

    python benchmarks/new_alleles.py [--germline mouse_trb] [--seeds 20] [--depths 50 200 1000]
        [--rows annotated|truth] [--json OUT.json]

Each seed hides one to four V alleles with one to five changes each, within 90 bases before the Cys codon;
each takes a half of its gene's clonotypes, or all of them. Reads have 150 bases, end with the J gene and have
0.5 % wrong bases; half of them are of the other strand. A change counts for recall if at least 30 clonotypes
that carry it reach it. A candidate is right if, as far as it says to be known, it is one of the hidden ones.

Harder cases hide a J allele besides (with no change in its last three bases, which no local alignment holds),
give the hidden alleles a fifth of their genes' clonotypes, hide three alleles of a gene that differ in one
base from one another, or read anywhere around the junction with 1 % wrong bases. Controls have no hidden
allele: plain reads; reads of which half, or all, are mutated after recombination (5 % of the bases, and a hot
spot); reads with hybrids of two genes.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.allele_simulation import (
    Individual,
    changed_allele,
    hide_alleles,
    read_block,
    simulate_individual,
    truth_rows,
)
from support.read_simulation import Sequencing, SimulatedRead

from plait.vdj.alleles.evidence import AlleleEvidence
from plait.vdj.alleles.new_alleles import NewAlleles, new_alleles_of
from plait.vdj.germline import Allele, GermlineSet, load_germline
from plait.vdj.reads.annotator import ReadAnnotator
from plait.vdj.reads.rearrangements import AnnotationSettings

FEWEST = 30
BLOCK = 8192


@dataclass
class Tally:
    """What was found."""

    candidates: int = 0
    right: int = 0
    artefacts: Counter[str] = field(default_factory=Counter)
    sites: int = 0
    sites_found: int = 0
    alleles: int = 0
    alleles_found: int = 0
    reads: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def line(self, title: str) -> str:
        """One line of the table."""
        precision = self.right / self.candidates if self.candidates else 1.0
        recall = self.sites_found / self.sites if self.sites else 1.0
        alleles = self.alleles_found / self.alleles if self.alleles else 1.0
        rate = self.reads / self.seconds if self.seconds else 0.0
        return (
            f"{title:28} {self.candidates:6} {precision:10.4f} {self.sites:6} {recall:8.4f} "
            f"{self.alleles:8} {alleles:8.4f} {sum(self.artefacts.values()):10} {rate:10,.0f}"
        )


def rows_of(
    reads: Sequence[SimulatedRead], individual: Individual, annotator: ReadAnnotator | None
) -> Iterator[pa.RecordBatch]:
    """Annotated rows of the reads, or rows made from the truth."""
    if annotator is None:
        yield truth_rows(reads, individual.germline)
        return
    for first in range(0, len(reads), BLOCK):
        yield annotator.annotate(read_block(reads[first : first + BLOCK]))[0]


def shift_of(row: Mapping[str, Any], hidden: Allele, germline: GermlineSet) -> int:
    """What to add to a position in a candidate's parent to get one in a hidden allele."""
    parent = next(a for a in germline.v + germline.j if a.name == row["parent"])
    return (hidden.anchor or 0) - (parent.anchor or 0)


def ranges(row: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Where a candidate is known; 0-based and half-open, in its parent."""
    pairs = (text.split("-") for text in row["covered"].split(","))
    return [(int(start) - 1, int(end)) for start, end in pairs]


def same(row: Mapping[str, Any], hidden: Allele, germline: GermlineSet) -> bool:
    """Whether a candidate is a hidden allele where it is covered."""
    shift = shift_of(row, hidden, germline)
    return row["segment"] == hidden.segment and all(
        start + shift >= 0 and row["sequence"][start:end] == hidden.sequence[start + shift : end + shift]
        for start, end in ranges(row)
    )


def covers(row: Mapping[str, Any], hidden: Allele, position: int, germline: GermlineSet) -> bool:
    """Whether a candidate says what stands at a position of a hidden allele."""
    place = position - shift_of(row, hidden, germline)
    return any(start <= place < end for start, end in ranges(row))


def carriers(reads: Sequence[SimulatedRead], hidden: Allele, position: int) -> int:
    """Clonotypes of a hidden allele that reach a position of it."""
    found = set()
    for read in reads:
        molecule, part = read.molecule, read.read
        place = molecule.junction_place
        if part.junction and place is not None and hidden.name in (molecule.v_call, molecule.j_call):
            anchor = place[0] if hidden.segment == "V" else place[1] - 3
            if part.start <= anchor - (hidden.anchor or 0) + position < part.end:
                found.add(read.clone)
    return len(found)


def judge(tally: Tally, found: NewAlleles, individual: Individual, reads: Sequence[SimulatedRead]) -> None:
    """Compare what was found with what was hidden."""
    rows = found.candidates.to_pylist()
    called = [row for row in rows if row["status"] == "candidate"]
    tally.artefacts.update(row["reasons"] for row in rows if row["status"] != "candidate")
    hidden = [(name, h) for name, several in individual.hidden.items() for h in several]
    tally.candidates += len(called)
    for row in called:
        right = any(same(row, h, individual.germline) for _, h in hidden)
        tally.right += right
        if not right:
            tally.wrong.append(f"{row['allele']} {row['clonotypes']} {row['share']:.2f} {row['covered']}")
    known = {a.name: a.sequence for a in individual.germline.alleles()}
    for name, h in hidden:
        mine = [row for row in called if same(row, h, individual.germline)]
        sites = [p for p, base in enumerate(h.sequence) if base != known[name][p]]
        sites = [p for p in sites if carriers(reads, h, p) >= FEWEST]
        got = [p for p in sites if any(covers(row, h, p, individual.germline) for row in mine)]
        tally.sites += len(sites)
        tally.sites_found += len(got)
        tally.alleles += bool(sites)
        tally.alleles_found += bool(got)
        told = [f"{r['allele']}:{r['reasons']}" for r in rows if r["gene"] == h.gene]
        if len(got) < len(sites):
            tally.missed.append(f"{h.name} at {[p + 1 for p in sites if p not in got]}, found {told}")


def run(tally: Tally, individual: Individual, seed: int, annotator: ReadAnnotator | None) -> None:
    """Simulate, annotate, discover and judge."""
    reads = simulate_individual(individual, seed=seed)
    batches = list(rows_of(reads, individual, annotator))
    start = time.perf_counter()
    evidence = AlleleEvidence(individual.germline)
    for batch in batches:
        evidence.add(batch)
    found = new_alleles_of(evidence)
    tally.seconds += time.perf_counter() - start
    tally.reads += len(reads)
    judge(tally, found, individual, reads)


def with_hidden(germline: GermlineSet, depth: int, seed: int) -> dict[str, Individual]:
    """Individuals with hidden alleles."""
    rng = random.Random(f"hidden {seed}")
    hidden = hide_alleles(germline, rng, count=rng.randint(1, 4))
    shares = {name: rng.choice((0.5, 1.0)) for name in hidden}
    plain = Individual(germline=germline, hidden=hidden, shares=shares, clonotypes=depth)
    with_j = hidden | hide_alleles(germline, rng, count=1, segment="J", most_changes=2)
    three = {name: [*several, *near(several[0], rng)] for name, several in hidden.items()}
    return {
        "hidden": plain,
        "hidden, J too": replace(plain, hidden=with_j),
        "hidden, a fifth of a gene": replace(plain, shares=dict.fromkeys(hidden, 0.2)),
        "hidden, three of a gene": replace(plain, hidden=three, shares=dict.fromkeys(three, 0.75)),
        "hidden, anywhere, 1 % wrong": replace(
            plain, sequencing=Sequencing(placement="junction", substitutions=0.01)
        ),
    }


def near(allele: Allele, rng: random.Random) -> list[Allele]:
    """Two more alleles of a gene, each with the changes of the one before and one more."""
    found = []
    for _ in range(2):
        place = (allele.anchor or 0) - rng.randint(1, 80)
        other = rng.choice("ACGT".replace(allele.sequence[place], ""))
        allele = changed_allele(allele, {place: other})
        found.append(allele)
    return found


def controls(germline: GermlineSet, depth: int, seed: int) -> dict[str, Individual]:
    """Individuals without hidden alleles."""
    rng = random.Random(f"control {seed}")
    names = [a.name for a in germline.v if a.anchor is not None and a.anchor > 200]
    pairs = {tuple(rng.sample(names, 2)): 0.15 for _ in range(4)}
    near = [a for a in germline.v if a.name in names]
    family = [(a.name, b.name) for a in near for b in near if a.gene[:7] == b.gene[:7] and a is not b]
    pairs |= {pair: 0.15 for pair in rng.sample(family, min(4, len(family)))}
    hot = rng.randint(200, 260)
    plain = Individual(germline=germline, clonotypes=depth)
    return {
        "control: plain": plain,
        "control: mutated": Individual(germline=germline, clonotypes=depth, mutated=0.5, hot_spot=hot),
        "control: all mutated": Individual(germline=germline, clonotypes=depth, mutated=1, hot_spot=hot),
        "control: hybrids": Individual(germline=germline, clonotypes=depth, hybrids=pairs),
    }


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--germline", default="mouse_trb")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--depths", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--rows", choices=("annotated", "truth"), default="annotated")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    germline = load_germline(asked.germline)
    # Poor bases of simulated reads have 12.
    limits = AnnotationSettings(min_junction_quality=10)
    annotator = ReadAnnotator([germline], settings=limits) if asked.rows == "annotated" else None
    print(f"{asked.germline}, {asked.seeds} seeds, {asked.rows} rows")
    print(f"{'clonotypes a gene':28} {'called':>6} {'precision':>10} {'sites':>6} {'recall':>8} ", end="")
    print(f"{'alleles':>8} {'recall':>8} {'artefacts':>10} {'reads/s':>10}")
    results = {}
    for depth in asked.depths:
        tallies: dict[str, Tally] = {}
        for seed in range(asked.seeds):
            cases = with_hidden(germline, depth, seed)
            if seed < max(1, asked.seeds // 4):
                cases |= controls(germline, depth, seed)
            for name, individual in cases.items():
                run(tallies.setdefault(name, Tally()), individual, seed, annotator)
        for name, tally in tallies.items():
            print(tally.line(f"{depth}, {name}"), flush=True)
            for text in tally.wrong[:5]:
                print(f"    wrong: {text}")
            for text in tally.missed[:5]:
                print(f"    missed: {text}")
            if tally.artefacts:
                print(f"    artefacts: {dict(tally.artefacts)}")
            results[f"{depth}, {name}"] = vars(tally)
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
