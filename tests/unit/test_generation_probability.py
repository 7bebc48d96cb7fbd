"""What `GenerationProbability` makes of columns, calls and kinds, and why a probability is zero."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.recombination import drawn_junctions, small_model

from plait.errors import InvalidInput
from plait.vdj.model import PGEN_STATUSES, GenerationProbability, ModelGene, RecombinationModel


def fixed_model(*, d: bool = True) -> RecombinationModel:
    """Genes that are known here, with at most two N nucleotides at a junction."""
    model = small_model(1, d=d, zeros=False, most=2)
    v = (ModelGene("TRBV1*01", "TGTGCA", 0, "F"), ModelGene("TRBV2*01", "TGTAAA", 0, "F"))
    j = (ModelGene("TRBJ1*01", "GGTTTC", 3, "F"), ModelGene("TRBJ2*01", "CCTTTT", 3, "F"))
    genes_d = tuple(ModelGene(f"TRBD{k}*01", "GGG") for k in (1, 2)) if d else ()
    return replace(model, v=v, d=genes_d, j=j, p_d_deletions=even(model.p_d_deletions.shape))


def even(shape: tuple[int, ...]) -> np.ndarray:
    found = np.zeros(shape)
    if shape[0]:
        found[:] = np.add.outer(np.arange(shape[1]), np.arange(shape[2])) <= 5
        found /= found.sum(axis=(1, 2), keepdims=True)
    return found


def statuses(model: RecombinationModel, texts: list[Any], **rest: Any) -> list[str]:
    found = GenerationProbability(model, threads=1).compute(texts, **rest)
    for status, pgen in zip(found.status.tolist(), found.pgen.tolist(), strict=True):
        assert (pgen > 0) == (status == 0)
        assert (pgen == 0) == (PGEN_STATUSES[status] in PGEN_STATUSES[14:])
    return [PGEN_STATUSES[k] for k in found.status]


def test_statuses() -> None:
    model = fixed_model()
    model = replace(model, v=(*model.v[:1], replace(model.v[1], anchor=None)))
    texts = ["TGTGCGGTTTC", None, "", "TGT?CGGTTTC", "TGTTC", "TGT" + "A" * 1000, *["TGTGCGGTTTC"] * 5]
    v = ["TRBV1"] * 6 + ["TRBV9", None, "TRBV2*01", "TRBV1", "TRBV1"]
    j = ["TRBJ1"] * 9 + ["", "TRBJ7*01"]
    assert statuses(model, texts, v_call=v, j_call=j) == [
        "ok",
        "missing_junction",
        "missing_junction",
        "invalid_symbol",
        "too_short",
        "too_long",
        "unknown_v_call",
        "missing_v_call",
        "no_v_anchor",
        "missing_j_call",
        "unknown_j_call",
    ]


@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_reasons_for_zero(d: bool) -> None:
    model = fixed_model(d=d)
    texts = ["TGTGCGGTTTC", "AAAGCGGTTTC", "TGTGCGGTTAA", "TGTGCA" + "ATCAT" * 3 + "GGTTTC"]
    assert statuses(model, texts) == ["ok", "v_not_matching", "j_not_matching", "too_many_insertions"]
    never = replace(model, p_v=np.array([0.0, 1.0]))
    calls = {"v_call": ["TRBV1"], "j_call": ["TRBJ1"]}
    assert statuses(never, texts[:1], **calls) == ["v_never_chosen"]
    p_dj = model.p_dj.copy()
    p_dj[..., 0] = 0
    p_dj /= p_dj.sum(axis=(1, 2), keepdims=True)
    assert statuses(replace(model, p_dj=p_dj), texts[:1], **calls) == ["j_never_chosen"]
    if d:
        none = np.eye(3)[0]
        alone = replace(model, p_vd_length=none, p_dj_length=none)
        assert statuses(alone, ["TGTGCAACAGGTTTC"]) == ["too_many_insertions"]
        # Five N nucleotides leave one of six to V and J together.
        long = replace(model, p_vd_length=none, p_dj_length=np.eye(6)[5])
        assert statuses(long, ["TGTTTC"]) == ["no_scenario"]
    else:
        apart = replace(model, p_dj=np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))
        assert statuses(apart, texts[:1], v_call=["TRBV1"], j_call=["TRBJ2"]) == ["genes_never_together"]


def test_amino_acids_and_motifs() -> None:
    model = fixed_model()
    assert statuses(model, ["CAF", "CXF", "C*F", "C1F", "K?F"], kind="aa")[3:] == ["invalid_symbol"] * 2
    engine = GenerationProbability(model, threads=1)
    one, other, either, any_acid = engine.compute(["CAF", "CSF", "C[AS]F", "C.F"], kind="motif").pgen
    assert either == pytest.approx(one + other, rel=1e-12) and any_acid > either > one > 0
    assert engine.compute(["CAF", "caf"], kind="aa").pgen.tolist() == [one, one]
    assert statuses(model, ["C[A", "C[]F", "[C]"], kind="motif") == ["invalid_symbol"] * 2 + ["too_short"]


def test_not_functional_genes_need_a_call() -> None:
    model = fixed_model()
    model = replace(model, v=(replace(model.v[0], function="P"), model.v[1]))
    assert statuses(model, ["TGTGCGGTTTC"], v_call=["TRBV1"]) == ["ok"]
    engine = GenerationProbability(model, threads=1)
    whole = engine.compute(["TGTGCGGTTTC"]).pgen
    assert whole == engine.compute(["TGTGCGGTTTC"], v_call=["TRBV2"]).pgen


def test_empty_and_unequal_columns() -> None:
    engine = GenerationProbability(fixed_model())
    assert engine.compute([]).pgen.size == 0
    with pytest.raises(InvalidInput, match="v_call"):
        engine.compute(["TGTGCGGTTTC"], v_call=[])
    found = engine.compute(["TGTGCGGTTTC"])
    assert found.provenance.parameters["model_digest"] == engine.model.digest


def test_wrong_models_are_refused() -> None:
    model = small_model(3)
    with pytest.raises(InvalidInput, match="p_dj"):
        replace(model, p_dj=np.repeat(model.p_dj, 2, axis=0))
    with pytest.raises(InvalidInput, match=r"vd_steps.*for C"):
        replace(model, vd_steps=model.vd_steps * np.array([[1], [2], [1], [1]]))


def test_lower_case_and_arrays() -> None:
    import pyarrow as pa

    model = small_model(12)
    texts = drawn_junctions(model, 2, 6)
    engine = GenerationProbability(model, threads=1)
    column = pa.chunked_array([pa.array(texts[:2]), pa.array([text.lower() for text in texts[2:]])])
    assert np.array_equal(engine.compute(column).pgen, engine.compute(texts).pgen)


def test_columns_of_all_makes() -> None:
    """Categories, and what data frames have in the place of a missing text, are as texts and None."""
    engine = GenerationProbability(fixed_model(), threads=1)
    texts, calls = ["TGTGGGTTC", None, "TGTGGGTTC"], ["TRBV1", "TRBV1", None]
    expected = engine.compute(texts, v_call=calls)
    assert [PGEN_STATUSES[k] for k in expected.status] == ["ok", "missing_junction", "missing_v_call"]
    makes = (
        lambda column: [np.nan if text is None else text for text in column],
        lambda column: np.array(column, object),
        lambda column: pa.array(column).dictionary_encode(),
        lambda column: pa.chunked_array([column[:1], column[1:]]),
    )
    for make in makes:
        found = engine.compute(make(texts), v_call=make(calls))
        assert np.array_equal(found.status, expected.status)
        assert np.array_equal(found.pgen, expected.pgen, equal_nan=True)


@pytest.mark.parametrize(
    ("junctions", "rest", "message"),
    [
        ("TGTGGGTTC", {}, "junctions: found one text, expected a sequence of texts"),
        ([1, 2], {}, "junctions: found list"),
        (pa.array([1, 2]), {}, "junctions: found values of type int64, expected texts"),
        (["TGTGGGTTC"], {"v_call": "TRBV1"}, "v_call: found one text"),
        (["TGTGGGTTC"], {"j_call": [3]}, "j_call: found list"),
        (["TGTGGGTTC"], {"kind": "dna"}, "kind: found 'dna', expected nt, aa, motif"),
    ],
    ids=["text", "numbers", "int64", "v_call", "j_call", "kind"],
)
def test_what_is_no_column_is_refused(junctions: Any, rest: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        GenerationProbability(fixed_model(), threads=1).compute(junctions, **rest)


def test_any_number_of_sets_of_amino_acids() -> None:
    """Codes are bytes: motifs with more different sets are computed in parts."""
    engine = GenerationProbability(fixed_model(), threads=1)
    others = "ADEFGHIKLM"
    sets = ["".join(a for k, a in enumerate(others) if number >> k & 1) for number in range(300)]
    motifs = [f"C[G{found}][FL]" for found in sets]
    calls = ["TRBV1" if k % 2 else "TRBV2" for k in range(300)]
    found = engine.compute(motifs, v_call=calls, kind="motif")
    for first in (0, 100, 200):
        part = slice(first, first + 100)
        alone = engine.compute(motifs[part], v_call=calls[part], kind="motif")
        assert np.array_equal(found.pgen[part], alone.pgen) and (alone.pgen > 0).all()
    with pytest.raises(InvalidInput, match="v_call: found 299 calls"):
        engine.compute(motifs, v_call=calls[1:], kind="motif")
