"""Generation probabilities are the sums over all scenarios that their definition says.

A probability is a sum of at most some thousand products of fewer than forty factors, all of them positive, so
it is compared within 1e-12, relative.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.algebras import LOG_SUM, MAX_PRODUCT, PROBABILITY
from plait.lanes import LANES, OneLane, host_lanes
from plait.schedules.end_trees import EndTrees
from plait.schedules.text_graphs import WeightedTexts
from plait.schedules.weighted_chain import weigh_text
from plait.schedules.weighted_pairs import weigh_pair_text
from plait.testing.cases import make_germline
from plait.testing.recombination import (
    GENETIC_CODE,
    coding_texts,
    drawn_junctions,
    probability_of,
    small_model,
    ways_of,
)
from plait.vdj import PathModel, count_paths
from plait.vdj.model import GenerationProbability, ModelGene, RecombinationModel
from plait.vdj.model.end_shapes import ModelShapes, model_shapes
from plait.vdj.model.texts import encode_texts
from plait.vdj.model.weights import make_scratch, part_weights, weighted_chain

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
@settings(max_examples=8, deadline=None)
@given(seed=seeds, d=st.booleans())
def test_nucleotides(seed: int, d: bool) -> None:
    model = small_model(seed, d=d)
    texts = changed(drawn_junctions(model, seed, 4), np.random.default_rng(seed))
    expected = [probability_of(model, spelled(text)) for text in texts]
    assert values(model, texts) == pytest.approx(expected, rel=BOUND, abs=0)


@pytest.mark.interpreted
@settings(max_examples=6, deadline=None)
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


@settings(max_examples=6, deadline=None)
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


@settings(max_examples=6, deadline=None)
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


def weigh(model: RecombinationModel, texts: list[str], lanes: Any, algebra: str) -> np.ndarray:
    """Weights of nucleotide texts by the schedule, with any lanes and algebra."""
    alg, shapes = {"sum": PROBABILITY, "log": LOG_SUM, "best": MAX_PRODUCT}[algebra], model_shapes(model)
    chain = weighted_chain(model, shapes)
    if algebra == "best":
        chain = best_parts(model, shapes, chain)
    if algebra == "log":
        chain = logarithms(chain)
    encoded = encode_texts(pa.array(texts), "nt")
    n = len(texts)
    first, roots = np.arange(n + 1), np.zeros(n, np.int32)
    v, j = roots + shapes.v.together, roots + shapes.j.together
    batch = WeightedTexts(encoded.codes, encoded.start, encoded.length, first, v, first, j)
    scratch, out = make_scratch(chain, encoded.parts, int(encoded.length.max())), np.zeros(n)
    body = weigh_text if model.d else weigh_pair_text
    for item in range(n):
        body(lanes, alg, chain, encoded.parts, batch, item, scratch, out)
    return out


def best_parts(model: RecombinationModel, shapes: ModelShapes, chain: Any) -> Any:
    """With the best part at every node in the place of the sum of parts."""
    trees = {}
    for name, shape, table in zip(
        ("prefix", "fragment", "suffix"),
        (shapes.v, shapes.d, shapes.j),
        part_weights(model, shapes),
        strict=True,
    ):
        weight = np.zeros((len(shape.child), table.shape[1]))
        np.maximum.at(weight, shape.node, table)
        trees[name] = EndTrees(shape.child, weight)
    return chain._replace(**trees)


def logarithms(value: Any) -> Any:
    """Logarithms of all weights."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        with np.errstate(divide="ignore"):
            return np.log(value)
    if isinstance(value, tuple) and hasattr(value, "_replace"):
        return type(value)(*map(logarithms, value))
    return value


# As plain Python: each algebra and width would be compiled for some seconds.
@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_other_algebras(d: bool) -> None:
    model = small_model(11, d=d, most=4)
    texts = drawn_junctions(model, 3, 5)
    expected = [[way.probability for way in ways_of(model, text)] for text in texts]
    assert weigh(model, texts, host_lanes(), "sum") == pytest.approx([sum(w) for w in expected], rel=BOUND)
    assert weigh(model, texts, host_lanes(), "best") == pytest.approx([max(w) for w in expected], rel=BOUND)
    logs = [np.log(sum(w)) for w in expected]
    assert weigh(model, texts, OneLane(), "log") == pytest.approx(logs, rel=BOUND)


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("width", sorted(LANES))
def test_lane_widths(width: int) -> None:
    for d in (True, False):
        model = small_model(7, d=d, genes=3, most=5)
        texts = drawn_junctions(model, 4, 4)
        expected = [probability_of(model, [text]) for text in texts]
        assert weigh(model, texts, LANES[width], "sum").tolist() == pytest.approx(expected, rel=BOUND, abs=0)


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
