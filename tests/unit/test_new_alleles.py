"""Discovery of new alleles: sites, haplotypes, candidates, what looks like one and is none."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.allele_simulation import (
    Individual,
    changed_allele,
    hide_alleles,
    read_block,
    simulate_individual,
    truth_rows,
)
from support.examples import often
from support.read_simulation import Sequencing

from plait.errors import InvalidInput
from plait.vdj.alleles.new_alleles import NewAlleles, assign, extended_germline, find_new_alleles, haplotypes
from plait.vdj.alleles.sites import NO_BASE, AlleleLimits, BaseCounts, binomial_tail, find_sites
from plait.vdj.germline import Allele, GermlineSet, load_germline
from plait.vdj.germline.airr_json import airr_text, parse_airr_json

MOUSE = load_germline("mouse_trb")
GENES = ("TRBV1*01", "TRBV13-1*01", "TRBV13-2*01", "TRBV19*01")


def known(name: str) -> Allele:
    return next(a for a in MOUSE.v + MOUSE.j if a.name == name)


def changed(name: str, *distances: int) -> Allele:
    """An allele with changes so far before its conserved codon (V), or behind it (J)."""
    own = known(name)
    sign = -1 if own.segment == "V" else 1
    places = [(own.anchor or 0) + sign * distance for distance in distances]
    return changed_allele(own, {p: "ACGT"["CATG".index(own.sequence[p])] for p in places})


def hidden(*alleles: Allele) -> dict[str, list[Allele]]:
    found: dict[str, list[Allele]] = {}
    for new in alleles:
        found.setdefault(new.name.split("_")[0], []).append(new)
    return found


def discover(
    unknown: Mapping[str, Sequence[Allele]] | None = None, *, seed: int = 1, **settings: Any
) -> NewAlleles:
    unknown = unknown or {}
    options = {"germline": MOUSE, "clonotypes": 40, "genes": GENES} | settings
    individual = Individual(hidden=unknown, **options)
    reads = simulate_individual(individual, seed=seed)
    return find_new_alleles(truth_rows(reads, MOUSE), MOUSE)


def called(found: NewAlleles) -> list[str]:
    rows = found.candidates.to_pylist()
    return [row["allele"] for row in rows if row["status"] == "candidate"]


def reasons(found: NewAlleles) -> set[str]:
    rows = found.candidates.to_pylist()
    assert all((row["status"] == "candidate") == (row["reasons"] == "") for row in rows)
    return {reason for row in rows for reason in row["reasons"].split(",")} - {""}


# --- what is found --------------------------------------------------------------------------------------


def test_hidden_alleles_are_found_with_all_their_changes() -> None:
    new = [changed("TRBV1*01", 4, 30, 61), changed("TRBV19*01", 1), changed("TRBJ2-1*01", 5)]
    found = discover(hidden(*new), clonotypes=80)
    assert called(found) == [a.name for a in new]
    first, _, last = found.candidates.to_pylist()
    assert first["sequence"] == new[0].sequence and last["sequence"] == new[2].sequence
    assert first["parent"] == "TRBV1*01" and first["gene"] == "TRBV1" and first["segment"] == "V"
    assert "_".join([first["parent"], *first["changes"].split(",")]) == first["allele"]
    assert first["gene_clonotypes"] == pytest.approx(80, abs=5)
    assert 0.25 < first["share"] < 0.75 and not first["sampled"]
    assert first["clonotypes"] >= first["exact_clonotypes"] >= 8
    assert first["reads"] == first["forward_reads"] + first["reverse_reads"] > first["clonotypes"]
    assert first["forward_reads"] and first["reverse_reads"] and first["partner_genes"] >= 3
    assert first["q_value"] < 1e-10 and first["p_value"] <= first["q_value"]
    start, end = map(int, first["covered"].split("-"))
    assert start <= 270 - 60 and end == known("TRBV1*01").anchor
    assert found.rows > 320 and found.left_out == {} and found.clonotypes["V"] > 300
    assert 0 < found.error_rate["V"] < 0.01 and found.satellites["V"] >= 0


def test_an_allele_that_has_replaced_the_known_one() -> None:
    new = changed("TRBV13-2*01", 12, 20)
    found = discover(hidden(new), shares={"TRBV13-2*01": 1.0})
    assert called(found) == [new.name]
    assert found.candidates["share"][0].as_py() > 0.95


def test_two_new_alleles_of_one_gene() -> None:
    new = [changed("TRBV19*01", 10, 25), changed("TRBV19*01", 10, 40)]
    found = discover(hidden(*new), shares={"TRBV19*01": 0.8}, clonotypes=100)
    assert sorted(called(found)) == sorted(a.name for a in new)


def test_a_place_that_few_reads_reach_does_not_hide_the_rest() -> None:
    # Reads reach 80 to 110 bases before the codon, depending on the junction.
    new = [changed("TRBV19*01", 10), changed("TRBV19*01", 10, 88)]
    found = discover(hidden(*new), shares={"TRBV19*01": 0.8}, clonotypes=60)
    assert any(name.endswith(new[0].name.split("_")[-1]) for name in called(found))


def test_nothing_is_found_where_nothing_is_hidden() -> None:
    found = discover(clonotypes=60)
    assert found.candidates.num_rows == 0
    assert found.extended is MOUSE
    empty = find_new_alleles(pa.table({n: pa.array([], pa.string()) for n in COLUMNS}), MOUSE)
    assert empty.candidates.num_rows == 0 and empty.rows == 0


COLUMNS = ("sequence", "v_call", "j_call", "junction")


def test_limits() -> None:
    new = changed("TRBV1*01", 20)
    individual = Individual(
        germline=MOUSE, hidden=hidden(new), clonotypes=60, genes=GENES[:2], shares={"TRBV1*01": 0.3}
    )
    rows = truth_rows(simulate_individual(individual, seed=4), MOUSE)
    assert called(find_new_alleles(rows, MOUSE)) == [new.name]
    for limits in (
        AlleleLimits(min_clonotypes=50),
        AlleleLimits(min_share=0.6),
        AlleleLimits(min_partners=14),
    ):
        assert called(find_new_alleles(rows, MOUSE, limits=limits)) in (
            [],
            [new.name][: limits.min_partners > 13],
        )
    few = find_new_alleles(rows, MOUSE, most_clonotypes=20)
    assert few.clonotypes["V"] <= 40 and all(few.candidates["sampled"].to_pylist())


@pytest.mark.parametrize(
    "wrong", [{"min_clonotypes": 0}, {"min_partners": 0}, {"min_share": 0.0}, {"max_q": 1.5}]
)
def test_limits_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        AlleleLimits(**wrong)


# --- what looks like a new allele -----------------------------------------------------------------------


@pytest.mark.parametrize("mutated", [0.5, 1.0], ids=["half", "all"])
def test_mutation_after_recombination(mutated: float) -> None:
    found = discover(mutated=mutated, hot_spot=240, clonotypes=60)
    assert called(found) == [] and reasons(found) == {"hypermutation"}


def test_hybrids_of_two_genes() -> None:
    pairs = {("TRBV13-1*01", "TRBV13-2*01"): 0.3, ("TRBV13-2*01", "TRBV13-1*01"): 0.3}
    found = discover(hybrids=pairs, clonotypes=100)
    assert called(found) == []


def test_a_hybrid_of_one_breakpoint_is_named_so() -> None:
    first, second = known("TRBV13-1*01"), known("TRBV13-2*01")
    join = 40
    begin = first.sequence[: (first.anchor or 0) - join]
    made = Allele(
        name="TRBV13-2*01_hybrid",
        gene="TRBV13-2",
        segment="V",
        sequence=begin + second.sequence[(second.anchor or 0) - join :],
        anchor=first.anchor,
    )
    assert len(made.sequence) == len(second.sequence)
    found = discover(hidden(made), shares={"TRBV13-2*01": 0.2}, clonotypes=120)
    assert called(found) == [] and "hybrid" in reasons(found)


@pytest.mark.parametrize("seed", often(1, range(1, 6)))
def test_one_clone_that_has_grown(seed: int) -> None:
    # Two reads in five have an error in their junction: many look like other clonotypes, of one family.
    noisy = Sequencing(placement="primer", primer=0, substitutions=0.015)
    found = discover(expanded=1500, clonotypes=15, genes=GENES[:1], seed=seed, sequencing=noisy)
    assert called(found) == [] and "one_family" in reasons(found)


@pytest.mark.parametrize("seed", often(1, range(1, 6)))
def test_one_clone_whose_errors_are_merged_with_it(seed: int) -> None:
    found = discover(expanded=1500, clonotypes=15, genes=GENES[:2], seed=seed)
    assert called(found) == [] and found.satellites["V"] > 0
    assert all("one_family" in row["reasons"] for row in found.candidates.to_pylist())


def test_changes_on_one_strand_only() -> None:
    new = changed("TRBV1*01", 20)
    both = Individual(germline=MOUSE, clonotypes=60, genes=GENES[:2])
    one = Individual(
        germline=MOUSE,
        hidden=hidden(new),
        shares={"TRBV1*01": 1.0},
        clonotypes=30,
        genes=GENES[:1],
        sequencing=Sequencing(placement="primer", primer=0, reverse=0.0),
    )
    reads = simulate_individual(both, seed=1) + simulate_individual(one, seed=2)
    found = find_new_alleles(truth_rows(reads, MOUSE), MOUSE)
    assert called(found) == [] and reasons(found) == {"one_strand"}


def test_a_gene_that_the_set_lacks() -> None:
    distances = range(3, 70, 5)
    found = discover(hidden(changed("TRBV1*01", *distances)))
    assert called(found) == [] and reasons(found) == {"distant"}


# --- the extended set -----------------------------------------------------------------------------------


def test_the_extended_set() -> None:
    new = changed("TRBV13-1*01", 4, 30)
    found = discover(hidden(new))
    extended = found.extended
    names = [a.name for a in extended.v]
    place = extended.resolve(new.name, "V")
    assert place is not None and extended.v[place].sequence == new.sequence
    assert extended.v[place].anchor == known("TRBV13-1*01").anchor
    assert {extended.v[k].gene for k in (place - 1, place)} == {"TRBV13-1"}
    assert [n for n in names if n != new.name] == [a.name for a in MOUSE.v]
    assert extended.resolve("TRBV13-1", "V") == MOUSE.resolve("TRBV13-1", "V")
    assert extended.digest != MOUSE.digest and extended.name == "mouse_trb_extended"
    assert any(note.startswith(new.name) for note in extended.notes)
    again = parse_airr_json("x.json", airr_text(extended))
    assert again.digest == extended.digest


def test_a_new_allele_with_a_stop_codon_is_a_pseudogene() -> None:
    own = known("TRBV19*01")
    codon = (own.anchor or 0) - 12
    stop = changed_allele(own, dict(zip(range(codon, codon + 3), "TAA", strict=True)))
    row = {"allele": stop.name, "segment": "V", "parent": own.name, "sequence": stop.sequence}
    row |= {"status": "candidate", "clonotypes": 9, "covered": "1-9"}
    extended = extended_germline(MOUSE, pa.Table.from_pylist([row, row | {"status": "likely_artefact"}]))
    (added,) = set(extended.v) - set(MOUSE.v)
    assert added.functionality == "P" and own.functionality == "F"


# --- parts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "n", "rate"), [(0, 5, 0.1), (3, 10, 0.2), (9, 10, 0.01), (40, 100, 0.5), (7, 6, 0.3)]
)
def test_binomial_tail(k: int, n: int, rate: float) -> None:
    p = Fraction(rate)
    exact = sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))
    assert binomial_tail(k, n, rate) == pytest.approx(float(exact), rel=1e-9)
    assert binomial_tail(2, 5, 1.0) == 1.0 and binomial_tail(2, 5, 0.0) == 0.0


def test_sites() -> None:
    codes = np.array([[0, 1, 2]], np.int8)
    bases = np.zeros((1, 3, 4), np.int64)
    bases[0, :, :] = [[500, 2, 1, 0], [1, 440, 60, 2], [20, 0, 470, 10]]
    counts = BaseCounts(codes, bases, np.array([503]), np.array([400]))
    found = find_sites([counts, counts], AlleleLimits())
    assert (
        found.group.tolist() == [0, 1] and found.column.tolist() == [1, 1] and found.base.tolist() == [2, 2]
    )
    assert found.tests == 18
    assert found.error_rate == pytest.approx(
        (2 * (2 + 1 + 1 + 2 + 20 + 10) + 1) / (2 * (8 * 500 + 18) + 1), rel=0.01
    )
    assert find_sites([], AlleleLimits()).group.size == 0


def values(*rows: str) -> np.ndarray[Any, Any]:
    return np.array([["ACGT.".index(letter) for letter in row] for row in rows], np.int8)


def kinds(rows: list[str], plain: str) -> list[str]:
    found = haplotypes(values(*rows), values(plain)[0])
    return sorted("".join("ACGT."[code] for code in row) for row in found)


def test_changes_in_the_same_clonotypes_are_one_haplotype() -> None:
    assert kinds(["AAA"] * 9 + ["CCC"] * 7, "AAA") == ["AAA", "CCC"]
    assert kinds(["AAA"] * 9 + ["CCA"] * 7 + ["AAC"] * 8, "AAA") == ["AAA", "AAC", "CCA"]
    # Bases of too few clonotypes are errors.
    assert kinds(["AAA"] * 50 + ["CCC"] * 47 + ["CCA"] * 3, "AAA") == ["AAA", "CCC"]
    assert kinds(["CA"] * 9, "AA") == ["CA"]
    assert kinds(["A"] * 9, "A") == []


def test_haplotypes_reach_as_far_as_clonotypes_do() -> None:
    assert kinds(["..A"] * 9 + ["..C"] * 9 + [".CC"] * 5 + ["ACC"] * 2, "AAA") == ["..A", ".CC"]
    # Neither end is reached together with the other.
    assert kinds(["C.."] * 9 + ["A.."] * 9 + ["..G"] * 8 + ["..A"] * 8, "AAA") == ["..A", "..G", "A..", "C.."]


def test_assignment() -> None:
    found = values("CC", "CA", "AA")
    told = assign(values("CC", "C.", "CA", "CC", "..", "AA", ".A", "GG"), found)
    assert told.member.tolist() == [0, -1, 1, 0, -1, 2, -1, -1]
    assert told.alone.tolist() == [2, 1, 1]
    assert told.fitting.tolist() == [3, 3, 2]
    assert told.expected.tolist() == pytest.approx([2 + 2 / 3, 1 + 1 / 3 + 1 / 2, 1 + 1 / 2])
    assert assign(values("C"), values("C")[:0]).member.tolist() == [-1]
    assert NO_BASE == 4


def test_the_simulation_hides_what_it_says() -> None:
    rng = random.Random(3)
    new = hide_alleles(MOUSE, rng, count=3)
    assert sum(map(len, new.values())) == 3
    for name, several in new.items():
        for allele in several:
            own = known(name)
            differing = [
                p for p, (a, b) in enumerate(zip(own.sequence, allele.sequence, strict=True)) if a != b
            ]
            assert 1 <= len(differing) <= 5
            assert all(0 < (own.anchor or 0) - p <= 90 for p in differing)
    reads = simulate_individual(
        Individual(germline=MOUSE, hidden=new, clonotypes=3, genes=tuple(new)), seed=1
    )
    block = read_block(reads)
    assert block.sequence(2) == reads[2].read.sequence and len(block) == len(reads)
    assert {len(read.read.sequence) for read in reads} == {150}


def test_a_set_without_locus_finds_as_well() -> None:
    bare = GermlineSet(
        name="bare", species="", locus="", version="", source="", v=MOUSE.v, d=MOUSE.d, j=MOUSE.j
    )
    new = changed("TRBV1*01", 9)
    reads = simulate_individual(
        Individual(germline=bare, hidden=hidden(new), clonotypes=40, genes=GENES[:1]), seed=1
    )
    assert called(find_new_alleles(truth_rows(reads, bare), bare)) == [new.name]
