"""Amino acids made with the greatest number of insertions: as every nucleotide string there is says."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from support.examples import often
from support.recombination import small_model

from plait.alphabets import translate
from plait.vdj.model import GenerationProbability, ModelGene, RecombinationModel

STEPS = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.3, 0.2], [0.1, 0.5, 0.2, 0.2]])


def model_of(v: str, j: str, lengths: list[float]) -> RecombinationModel:
    """One V and one J that lose nothing, with so many insertions between."""
    return replace(
        small_model(1, d=False, zeros=False, most=4),
        v=(ModelGene("TRAV1*01", v, 0, "F"),),
        j=(ModelGene("TRAJ1*01", j, len(j) - 3, "F"),),
        p_v=np.ones(1),
        p_dj=np.ones((1, 1, 1)),
        p_v_deletions=np.ones((1, 1)),
        p_j_deletions=np.ones((1, 1)),
        palindromes=(0, 0, 0, 0),
        p_vd_length=np.array(lengths),
        vd_steps=STEPS,
    )


@pytest.mark.parametrize("padding", often(1, [1, 0, 4]))
@pytest.mark.parametrize("most", [4, 5, 6])
@pytest.mark.parametrize("v", often(1, ["TGT", "TGTG", "TGTGC"]))
def test_the_greatest_number_counts(v: str, most: int, padding: int) -> None:
    """Wherever in a codon insertions begin, and with or without zeros behind the greatest number."""
    j = "ACAATTC"[-(3 + -(len(v) + most) % 3) :]
    model = model_of(v, j, [0.0] * most + [1.0] + [0.0] * padding)
    first = model.vd_first
    expected: dict[str, float] = {}
    for letters in itertools.product(range(4), repeat=most):
        p = first[letters[0]] * float(np.prod([STEPS[a, b] for a, b in itertools.pairwise(letters)]))
        acids = translate(v + "".join("ACGT"[k] for k in letters) + j)
        expected[acids] = expected.get(acids, 0.0) + p
    texts = sorted(text for text in expected if "*" not in text)[::3]
    found = GenerationProbability(model, threads=1).compute(texts, kind="aa").pgen
    assert len(texts) > 3
    np.testing.assert_allclose(found, [expected[text] for text in texts], rtol=1e-13)
