"""Reads of an individual with alleles that the germline set lacks, and their rows in AIRR form.

Every clonotype is a rearrangement of its own; it is read once or a few times. What else makes reads differ
from the germline can be put in: sequencing errors, mutation after recombination, and hybrids of two genes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pyarrow as pa
from support.molecule_simulation import random_sequence, simulate_rearrangement
from support.read_simulation import Sequencing, SimulatedRead

from plait.formats.fastq import ReadBlock
from plait.vdj.germline.germline_set import Allele, GermlineSet

__all__ = ["Individual", "changed_allele", "hide_alleles", "read_block", "simulate_individual", "truth_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Individual:
    """What is sequenced.

    Attributes
    ----------
    germline
        The set that is known.
    hidden
        V and J alleles that it lacks, by the name of the known allele they come from.
    shares
        Share of the clonotypes of the known allele that have one of them in its place, for each.
    clonotypes
        Clonotypes of every V gene.
    genes
        V alleles that occur; all if empty.
    reads
        Reads of a clonotype, drawn from these.
    mutated
        Share of the clonotypes that are mutated after recombination.
    mutations
        Their mutations, as a share of the bases.
    hot_spot
        Position of V that mutated clonotypes have changed to another base in half of all cases.
    hybrids
        Pairs of V alleles, and the share of the clonotypes of the second that begin with the first.
    expanded
        Reads of one more clonotype of each gene, whose V has one base that no other has.
    sequencing
        How it is read.
    """

    germline: GermlineSet
    hidden: Mapping[str, Sequence[Allele]] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    clonotypes: int = 100
    genes: tuple[str, ...] = ()
    reads: tuple[int, ...] = (1, 1, 1, 2, 3)
    mutated: float = 0.0
    mutations: float = 0.05
    hot_spot: int | None = None
    hybrids: Mapping[tuple[str, str], float] = field(default_factory=dict)
    expanded: int = 0
    sequencing: Sequencing = field(
        default_factory=lambda: Sequencing(placement="primer", primer=0, substitutions=0.005)
    )


def changed_allele(allele: Allele, changes: Mapping[int, str]) -> Allele:
    """An allele with other bases at 0-based positions.

    Parameters
    ----------
    allele
        The allele.
    changes
        Bases by position.
    """
    letters = list(allele.sequence)
    for position, base in changes.items():
        letters[position] = base
    told = "_".join(f"{allele.sequence[p]}{p + 1}{base}" for p, base in sorted(changes.items()))
    return replace(allele, name=f"{allele.name}_{told}", sequence="".join(letters))


def hide_alleles(
    germline: GermlineSet,
    rng: random.Random,
    *,
    count: int,
    segment: Literal["V", "J"] = "V",
    most_changes: int = 5,
    nearest: int = 90,
) -> dict[str, list[Allele]]:
    """Alleles with one to so many changes outside the CDR3, none of them in the last three bases of J.

    Parameters
    ----------
    germline
        The known set.
    rng
        Source of randomness.
    count
        How many; two may be of one gene.
    segment
        Of which segment.
    most_changes
        Most changes of one.
    nearest
        How far from the conserved codon changes may be.
    """
    known = {a.sequence for a in germline.alleles(segment)}
    usable = [a for a in germline.alleles(segment) if a.anchor is not None]
    hidden: dict[str, list[Allele]] = {}
    while sum(map(len, hidden.values())) < count:
        allele = rng.choice(usable)
        anchor = allele.anchor or 0
        # A local alignment leaves out a change in the last bases.
        end = min(anchor + 3 + nearest, len(allele.sequence) - 3)
        places = range(max(anchor - nearest, 0), anchor) if segment == "V" else range(anchor + 3, end)
        positions = rng.sample(places, rng.randint(1, most_changes))
        new = changed_allele(
            allele, {p: rng.choice("ACGT".replace(allele.sequence[p], "")) for p in positions}
        )
        if new.sequence not in known:
            known.add(new.sequence)
            hidden.setdefault(allele.name, []).append(new)
    return hidden


def simulate_individual(individual: Individual, *, seed: int) -> list[SimulatedRead]:
    """Reads in random order; `clone` is the number of the clonotype, the truth is in the molecule.

    Parameters
    ----------
    individual
        What is sequenced.
    seed
        Of all that is random.
    """
    rng = random.Random(f"alleles {seed}")
    named = {a.name: a for a in individual.germline.v if a.anchor is not None}
    j_alleles = [a for a in individual.germline.j if a.anchor is not None]
    reads: list[SimulatedRead] = []
    clone = 0
    for name in individual.genes or tuple(named):
        for k in range(individual.clonotypes + (individual.expanded > 0)):
            v = _sequenced_v(individual, named, name, rng)
            count = rng.choice(individual.reads)
            if k == individual.clonotypes:
                at = (v.anchor or 0) - rng.randint(5, 30)
                v, count = changed_allele(v, {at: _transition(v.sequence[at])}), individual.expanded
            made = simulate_rearrangement(
                individual.germline,
                rng,
                v=v,
                j=_or_hidden(individual, rng.choice(j_alleles), rng),
                head=random_sequence(rng, 20),
                tail=random_sequence(rng, 5),
            )
            for _ in range(count):
                reads.append(individual.sequencing.read(made.molecule, rng, clone=clone))
            clone += 1
    rng.shuffle(reads)
    return [replace(read, name=f"read_{k + 1}") for k, read in enumerate(reads)]


def _or_hidden(individual: Individual, allele: Allele, rng: random.Random) -> Allele:
    """A known allele, or a hidden one in its place."""
    others = individual.hidden.get(allele.name, ())
    if others and rng.random() < individual.shares.get(allele.name, 0.5):
        return rng.choice(list(others))
    return allele


def _sequenced_v(
    individual: Individual, named: Mapping[str, Allele], name: str, rng: random.Random
) -> Allele:
    """The V of one clonotype: an allele, a hidden one, a hybrid, or a mutated one."""
    v = _or_hidden(individual, named[name], rng)
    for (first, second), rate in individual.hybrids.items():
        if second == name and rng.random() < rate:
            other = named[first]
            before = rng.randint(5, 80)
            begin, join = (other.anchor or 0) - before, (v.anchor or 0) - before
            sequence = other.sequence[:begin] + v.sequence[join:]
            v = replace(v, sequence=sequence, anchor=begin + before)
    if rng.random() < individual.mutated:
        letters = list(v.sequence)
        for p in range(v.anchor or 0):
            hot = p == individual.hot_spot
            if rng.random() < (0.5 if hot else individual.mutations):
                letters[p] = _transition(letters[p])
        v = replace(v, sequence="".join(letters))
    return v


def _transition(base: str) -> str:
    return {"A": "G", "C": "T", "G": "A", "T": "C"}[base]


def read_block(reads: Sequence[SimulatedRead]) -> ReadBlock:
    """The reads as a block, without qualities."""
    texts = [read.read.sequence.encode() for read in reads]
    starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    letters = np.frombuffer(bytearray(b"".join(texts)), np.uint8)
    return ReadBlock([read.name for read in reads], letters, starts)


def truth_rows(reads: Sequence[SimulatedRead], germline: GermlineSet) -> pa.RecordBatch:
    """AIRR rows of reads without insertions and deletions: every gene is called rightly, as its known allele.

    The known allele is what stands before the first underscore of a name.

    Parameters
    ----------
    reads
        The reads; those without a whole junction are left out.
    germline
        The known set.
    """
    v_alleles = {a.name: a for a in germline.v}
    j_alleles = {a.name: a for a in germline.j}
    rows = []
    for read in reads:
        part, molecule = read.read, read.molecule
        if not part.junction:
            continue
        v = v_alleles[molecule.v_call.partition("_")[0]]
        j = j_alleles[molecule.j_call.partition("_")[0]]
        # Where the first base of each allele would stand in the read.
        v_zero = part.junction_start - (v.anchor or 0)
        j_zero = part.junction_end - 3 - (j.anchor or 0)
        size = len(part.sequence)
        places = {
            "v": (max(0, v_zero), v_zero + (molecule.v_place[1] - molecule.v_place[0]), v_zero),
            "j": (molecule.j_place[0] - part.start, min(size, j_zero + len(j.sequence)), j_zero),
        }
        row: dict[str, object] = {
            "sequence_id": read.name,
            "sequence": part.sequence,
            "rev_comp": part.rev_comp,
            "v_call": v.name,
            "j_call": j.name,
            "junction": part.junction,
        }
        for letter, (start, end, zero) in places.items():
            row[f"{letter}_cigar"] = f"{start}S{start - zero}N{end - start}M{size - end}S"
            row[f"{letter}_sequence_start"], row[f"{letter}_sequence_end"] = start + 1, end
            row[f"{letter}_germline_start"], row[f"{letter}_germline_end"] = start - zero + 1, end - zero
        rows.append(row)
    return pa.RecordBatch.from_pylist(rows)
