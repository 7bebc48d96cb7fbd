"""Generation probabilities are the sums over all scenarios that their definition says.

A probability is a sum of at most some thousand products of fewer than forty factors, all of them positive, so
it is compared within 1e-12, relative.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import make_germline
from support.examples import examples, often
from support.generation_problems import GenerationBatch, insertion_amounts, weigh_batch
from support.recombination import (
    GENETIC_CODE,
    coding_texts,
    drawn_junctions,
    probability_of,
    small_model,
    ways_of,
)

from plait.lang.algebras import COUNT, LOG_SUM, MAX_PRODUCT, PROBABILITY, WEIGHTED_SUM
from plait.lang.lanes import OneLane, host_lanes
from plait.vdj import PathModel, count_paths
from plait.vdj.model import GenerationProbability, ModelGene, RecombinationModel
from plait.vdj.model.expectations import PosteriorFinder
from plait.vdj.model.scenarios import ScenarioFinder

BOUND = 1e-12
ACIDS = "ACDEFGHIKLMNPQRSTVWY*"
seeds = st.integers(0, 1 << 30)


def values(model: RecombinationModel, texts: list[str], kind: Any = "nt", **calls: Any) -> list[float]:
    found = GenerationProbability(model, threads=1).compute(texts, **calls, kind=kind)
    return found.pgen.tolist()


def changed(texts: list[str], rng: np.random.Generator) -> list[str]:
    """Every second text with a letter replaced, so that some cannot be made."""
    for k in range(0, len(texts), 2):
        at = rng.integers(len(texts[k]))
        texts[k] = texts[k][:at] + str(rng.choice(list("ACGTN"))) + texts[k][at + 1 :]
    return texts


def spelled(text: str) -> list[str]:
    """All texts that one with N stands for."""
    found = [""]
    for letter in text:
        found = [start + one for start in found for one in ("ACGT" if letter == "N" else letter)]
    return found


@pytest.mark.interpreted
@examples(8)
@given(seed=seeds, d=st.booleans())
def test_nucleotides(seed: int, d: bool) -> None:
    model = small_model(seed, d=d)
    texts = changed(drawn_junctions(model, seed, 4), np.random.default_rng(seed))
    expected = [probability_of(model, spelled(text)) for text in texts]
    assert values(model, texts) == pytest.approx(expected, rel=BOUND, abs=0)


@pytest.mark.interpreted
@examples(6)
@given(seed=seeds, d=st.booleans(), data=st.data())
def test_amino_acids_and_motifs_are_sums_over_codings(seed: int, d: bool, data: st.DataObject) -> None:
    model = small_model(seed, d=d, letters=2)
    text = drawn_junctions(model, seed, 1, shortest=6)[0]
    acids = "".join(GENETIC_CODE[text[k : k + 3]] for k in range(0, min(len(text) // 3, 2) * 3, 3))
    expected = probability_of(model, coding_texts(list(acids)))
    assert values(model, [acids], "aa") == pytest.approx([expected], rel=BOUND, abs=0)
    other = data.draw(st.sampled_from(ACIDS))
    sets = [acids[0] + other, *acids[1:]]
    expected = probability_of(model, coding_texts([*map("".join, map(set, sets))]))
    assert values(model, [f"[{sets[0]}]{acids[1:]}"], "motif") == pytest.approx([expected], rel=BOUND, abs=0)


@examples(6)
@given(seed=seeds, d=st.booleans())
def test_codings_one_by_one(seed: int, d: bool) -> None:
    model = small_model(seed, d=d, genes=3, letters=4, most=6)
    texts = drawn_junctions(model, seed, 30, shortest=9)
    text = next((text for text in texts if len(text) % 3 == 0), texts[0][:9])[:12]
    acids = "".join(GENETIC_CODE[text[k : k + 3]] for k in range(0, len(text), 3))
    total = sum(values(model, coding_texts(list(acids))))
    assert values(model, [acids], "aa") == pytest.approx([total], rel=BOUND, abs=0)
    anything = "." * len(acids)
    every = values(model, [anything], "motif")[0]
    assert every >= total * (1 - BOUND)


@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_calls_restrict_the_sum(d: bool) -> None:
    model = small_model(5, d=d, genes=3)
    texts = drawn_junctions(model, 5, 12)
    v = ["TRXV1", "TRXV2*01", "TRXV1,TRXV3", None] * 3
    j = ["TRXJ2*01", "TRXJ1, TRXJ3"] * 6
    chosen = {"TRXV1": [0], "TRXV2*01": [1], "TRXV1,TRXV3": [0, 2], "TRXJ2*01": [1], "TRXJ1, TRXJ3": [0, 2]}
    found = values(model, texts, v_call=v, j_call=j)
    expected = [
        np.nan if a is None else probability_of(model, [text], chosen[a], chosen[b])
        for text, a, b in zip(texts, v, j, strict=True)
    ]
    assert found == pytest.approx(expected, rel=BOUND, abs=0, nan_ok=True)
    # Over all single V genes they add up to the whole.
    single = [values(model, texts, v_call=[gene.name] * len(texts)) for gene in model.v]
    assert np.sum(single, axis=0) == pytest.approx(values(model, texts), rel=BOUND, abs=0)


@examples(6)
@given(seed=seeds, d=st.booleans())
def test_uniform_weights_are_path_counts(seed: int, d: bool) -> None:
    rng = np.random.default_rng(seed)
    pi = int(rng.integers(0, 3))
    v, gene_d, j = ("".join(rng.choice(list("ACG"), rng.integers(3, 7))) for _ in range(3))
    most = len(v + gene_d + j) + 6
    # The second allele of each kind keeps nothing of a text without T: junctions need a nucleotide of both.
    germline = make_germline([v, "T" * 4], [gene_d] if d else [], [j, "T" * 4], locus="TRB" if d else "TRA")
    text = v[: rng.integers(1, 7)] + "".join(rng.choice(list("ACG"), 4)) + j[-int(rng.integers(1, 7)) :]
    text = text.ljust(6, "G")
    counts = np.zeros(most + 1)
    for sign, a, b in ((1, 0, 0), (-1, 1, 0), (-1, 0, 1), (1, 1, 1)):
        model = PathModel(name="dp1", pi=pi, max_n=most)
        found = count_paths(
            [text],
            [germline.v[a].name],
            [germline.j[b].name],
            germline=germline,
            model=model,
            device="reference",
        )
        counts += sign * (found.by_n_by_d[0].sum(axis=0) if d else found.no_d_by_n[0])
    uniform = uniform_weights(germline, pi, most, d)
    e = len(gene_d) + 2 * pi
    single = ((0,),)
    batch = GenerationBatch(uniform, "nt", (text,), single, single)
    assert weigh_batch(batch, COUNT, OneLane(), interpreted=True, plain=True) == [int(counts.sum())]
    constant = 1 / ((len(v) + pi + 1) * (len(j) + pi + 1) * (most + 1))
    constant /= ((e + 1) * (e + 2) // 2) * (most + 1) if d else 1
    expected = constant * float((counts * 0.25 ** np.arange(most + 1)).sum())
    calls = {"v_call": [germline.v[0].name], "j_call": [germline.j[0].name]}
    assert values(uniform, [text], **calls) == pytest.approx([expected], rel=BOUND, abs=0)


def uniform_weights(germline: Any, pi: int, most: int, d: bool) -> RecombinationModel:
    """Every cut as probable as any other, for the first V and J allele."""

    def genes(alleles: Any) -> tuple[ModelGene, ...]:
        return tuple(ModelGene(a.name, a.sequence, a.anchor, "F") for a in alleles[:1])

    v, j = genes(germline.v), genes(germline.j)
    cuts_v, cuts_j = len(v[0].sequence) - 3 + pi + 1, len(j[0].sequence) - 3 + pi + 1
    whole = len(germline.d[0].sequence) + 2 * pi if d else 0
    cuts_d = np.add.outer(np.arange(whole + 1), np.arange(whole + 1)) <= whole
    return RecombinationModel(
        name="uniform",
        v=v,
        d=genes(germline.d),
        j=j,
        p_v=np.ones(1),
        p_dj=np.ones((1, 1, 1)),
        p_v_deletions=np.full((1, cuts_v), 1 / cuts_v),
        p_d_deletions=cuts_d[None] / cuts_d.sum(),
        p_j_deletions=np.full((1, cuts_j), 1 / cuts_j),
        palindromes=(pi, pi, pi, pi),
        p_vd_length=np.full(most + 1, 1 / (most + 1)),
        vd_steps=np.full((4, 4), 0.25),
        p_dj_length=np.full(most + 1, 1 / (most + 1)) if d else np.ones(1),
        dj_steps=np.full((4, 4), 0.25),
    )


def weigh(model: RecombinationModel, texts: list[str], algebra: Any, amounts: Any = None) -> list[Any]:
    """Weights of nucleotide texts by the schedule as Python, one lane at a time."""
    anything = (None,) * len(texts)
    batch = GenerationBatch(model, "nt", tuple(texts), anything, anything)
    return weigh_batch(batch, algebra, OneLane(), interpreted=True, plain=True, amounts=amounts)


@pytest.mark.interpreted
@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_best_scenario(d: bool) -> None:
    model = small_model(11, d=d, most=4)
    texts = drawn_junctions(model, 3, 5)
    best = [ScenarioFinder(model).best(text)[0].probability for text in texts]
    assert weigh(model, texts, MAX_PRODUCT) == pytest.approx(best, rel=BOUND, abs=0)
    logs = [math.log(value) for value in values(model, texts)]
    assert weigh(model, texts, LOG_SUM) == pytest.approx(logs, rel=BOUND, abs=0)


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_posterior_means(d: bool) -> None:
    """Sums over all scenarios of what they add up: numbers of N nucleotides, and logarithms."""
    model = small_model(12, d=d, most=3)
    texts = drawn_junctions(model, 4, 4)
    ways = [[way for way in ways_of(model, text) if way.probability > 0] for text in texts]
    found = weigh(model, texts, WEIGHTED_SUM, insertion_amounts)
    for (whole, amount), some in zip(found, ways, strict=True):
        total = sum(way.probability for way in some)
        expected = sum(way.probability * sum(way.lengths) for way in some) / total
        assert (whole, amount / whole) == pytest.approx((total, expected), rel=BOUND, abs=0)
    # The entropy of what made a junction: log Z - (sum of w log w) / Z. The difference loses digits.
    for (whole, amount), some in zip(weigh(model, texts, WEIGHTED_SUM, logarithms), ways, strict=True):
        shares = np.array([way.probability for way in some]) / sum(way.probability for way in some)
        entropy = -float((shares * np.log(shares)).sum())
        assert math.log(whole) - amount / whole == pytest.approx(entropy, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_means_forwards_and_backwards(d: bool) -> None:
    """A pass forwards with pairs as values, and the pass backwards for all expected numbers."""
    model = small_model(13, d=d, most=3)
    texts = drawn_junctions(model, 5, 4)
    found = PosteriorFinder(model, threads=1).compute(texts)
    insertions = [b / a for a, b in weigh(model, texts, WEIGHTED_SUM, insertion_amounts)]
    assert found.insertions.sum(axis=1).tolist() == pytest.approx(insertions, rel=BOUND, abs=BOUND)
    pairs = weigh(model, texts, WEIGHTED_SUM, logarithms)
    bits = [(math.log(a) - b / a) / math.log(2) for a, b in pairs]
    assert found.entropy.tolist() == pytest.approx(bits, rel=1e-9, abs=1e-9)


def logarithms(table: str, p: np.ndarray) -> np.ndarray:
    """Amounts that add up to the logarithm of the probability of a way."""
    with np.errstate(divide="ignore"):
        return np.log(p)


@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_plain_texts_are_graphs_too(d: bool) -> None:
    """A junction has the same bits whether it stands among plain ones, as a path, or is read as a graph."""
    model = small_model(14, d=d, genes=3)
    texts = drawn_junctions(model, 6, 20)
    anything = (None,) * len(texts)
    batch = GenerationBatch(model, "nt", tuple(texts), anything, anything)
    found = [
        weigh_batch(batch, PROBABILITY, host_lanes(), interpreted=False, plain=plain)
        for plain in (True, False)
    ]
    assert found[0] == found[1] == values(model, texts)
    mixed = values(model, [text for one in texts for text in (one, "N" + one[1:])])
    assert mixed[::2] == found[0]


def test_threads_and_order() -> None:
    model = small_model(2, genes=3)
    texts = drawn_junctions(model, 1, 300) * 8
    one = GenerationProbability(model, threads=1).compute(texts).pgen
    many = GenerationProbability(model, threads=3).compute(texts).pgen
    assert np.array_equal(one, many)
    assert np.array_equal(GenerationProbability(model, threads=2).compute(texts[::-1]).pgen[::-1], one)


def test_no_insertions_at_all() -> None:
    model = small_model(9, most=0)
    texts = drawn_junctions(model, 9, 4)
    assert values(model, texts) == pytest.approx([probability_of(model, [t]) for t in texts], rel=BOUND)
    alone = replace(model, d=(), p_dj=model.p_dj.sum(axis=1, keepdims=True), p_dj_length=np.ones(1))
    texts = drawn_junctions(alone, 9, 4)
    assert values(alone, texts) == pytest.approx([probability_of(alone, [t]) for t in texts], rel=BOUND)
