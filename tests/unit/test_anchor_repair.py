"""Genes whose conserved codon is not where a model says: told, and mended where that is certain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.alphabets import reverse_complement
from plait.vdj.germline import Allele, GermlineSet, bundled_germlines, load_germline
from plait.vdj.germline.anchors import anchor_faults, certain_anchor, repair_germline, repaired
from plait.vdj.germline.germline_set import Segment
from plait.vdj.model import GenerationProbability, ModelGene, RecombinationModel, bundled_model
from plait.vdj.model.recombination_model import gene_faults, repair_model

MOUSE = load_germline("mouse_trb")
HUMAN = bundled_model("human_TRB")


def allele(name: str, germline: GermlineSet = MOUSE) -> Allele:
    return next(a for a in germline.alleles() if a.name == name)


def turned(gene: Allele) -> Allele:
    return replace(gene, sequence=reverse_complement(gene.sequence))


def with_gene(model: RecombinationModel, gene: ModelGene) -> RecombinationModel:
    v = tuple(gene if g.name == gene.name else g for g in model.v)
    return replace(model, v=v, j=tuple(gene if g.name == gene.name else g for g in model.j))


def test_a_gene_on_the_other_strand_is_turned() -> None:
    right = allele("TRBV31*01")
    wrong = turned(right)
    assert "not C" in anchor_faults([wrong])["TRBV31*01"]
    fixed, told = repaired(wrong) or (None, "")
    assert fixed is not None and (fixed.sequence, fixed.anchor) == (right.sequence, right.anchor)
    assert "reverse complement" in told


@pytest.mark.parametrize("shift", [-3, 3, 1, -1, -30])
def test_an_anchor_beside_the_codon_is_moved(shift: int) -> None:
    for name in ("TRBV13-1*01", "TRBJ2-1*01"):
        right = allele(name)
        assert right.anchor is not None
        wrong = replace(right, anchor=max(right.anchor + shift, 0))
        if anchor_faults([wrong]):
            fixed, _ = repaired(wrong) or (None, "")
            assert fixed is not None and (fixed.sequence, fixed.anchor) == (right.sequence, right.anchor)


def test_nothing_is_guessed() -> None:
    right = allele("TRBV13-1*01")
    assert right.anchor is not None
    # Without the codon, and with a second one that is as convincing.
    gone = replace(right, sequence=right.sequence[: right.anchor] + "TCTGCC")
    end = right.sequence[right.anchor - 30 : right.anchor + 3]
    twice = replace(right, sequence=right.sequence[: right.anchor + 3] + end, anchor=right.anchor - 3)
    for wrong in (gone, twice):
        assert anchor_faults([wrong]) and repaired(wrong) is None
    # Pseudogenes and D genes are not looked at.
    assert anchor_faults([replace(turned(right), functionality="P"), *MOUSE.d]) == {}


@pytest.mark.parametrize("name", bundled_germlines())
def test_what_is_certain_is_true(name: str) -> None:
    """Wherever a place is certain it is the one that the set has, and the other strand has none."""
    certain, functional = 0, 0
    segments: tuple[Segment, ...] = ("V", "J")
    for segment in segments:
        for one in load_germline(name).alleles(segment):
            found = certain_anchor(segment, one.sequence)
            certain += found is not None
            functional += one.functionality == "F"
            assert found in (None, one.anchor)
            assert certain_anchor(segment, reverse_complement(one.sequence)) is None
    assert certain > functional / 2


def test_a_healthy_model_and_its_repair() -> None:
    assert gene_faults(HUMAN) == {}
    assert repair_model(HUMAN) == (HUMAN, {})


@pytest.mark.parametrize("segment", ["v", "j"])
def test_a_model_with_a_turned_gene(segment: str) -> None:
    right = max(
        (g for g in getattr(HUMAN, segment) if g.functional),
        key=lambda g: float(
            HUMAN.p_v[HUMAN.v.index(g)] if segment == "v" else HUMAN.p_dj[0, :, HUMAN.j.index(g)].sum()
        ),
    )
    wrong = with_gene(HUMAN, replace(right, sequence=reverse_complement(right.sequence)))
    faults = gene_faults(wrong)
    assert list(faults) == [right.name] and "probability 0." in faults[right.name]
    mended, told = repair_model(wrong)
    assert list(told) == [right.name]
    assert mended.digest == HUMAN.digest != wrong.digest
    assert mended.identity()["repaired_anchors"] == told
    assert "repaired_anchors" not in wrong.identity()
    made = GenerationProbability(mended, threads=1).compute(["TGTGCCAGCAGCTTAGAAACAGGGGCTTTCTTT"]).provenance
    assert made.parameters["repaired_anchors"] == told


def test_a_germline_set() -> None:
    wrong = replace(MOUSE, v=tuple(turned(a) if a.name == "TRBV31*01" else a for a in MOUSE.v))
    mended, told = repair_germline(wrong)
    assert list(told) == ["TRBV31*01"] and mended.digest == MOUSE.digest
    assert any(note.startswith("repaired TRBV31*01: ") for note in mended.notes)
