"""Expected sharing: against enumeration, and on simulated repertoires of which all is known."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import often

from plait.errors import InvalidInput
from plait.formats.sorted_runs import text_hash
from plait.vdj import GenerationSettings, SharingSettings, SharingTable, sharing
from plait.vdj.calls import ClonotypeKey
from plait.vdj.model import JunctionSampler, load_model
from plait.vdj.model.junctions import translations
from plait.vdj.repertoires.expected import ClonotypeGeneration, ExpectedSharing, ObservedSharing

SIZES = (6000, 9000, 12000, 9000)
DRAWS = 20_000


@pytest.fixture(scope="module")
def model() -> Any:
    return load_model("human_TRB")


@pytest.fixture(scope="module")
def of_acids(model: Any) -> ClonotypeGeneration:
    """What is expected of amino acids alone, whose draws are made once."""
    return ClonotypeGeneration(GenerationSettings(model=model, draws=DRAWS), ClonotypeKey.named("cdr3aa"))


def simulated(model: Any, selection: float, seed: int) -> pa.Table:
    """Rows of subjects, whose amino acid sequences have passed selection or not by their hash value."""
    sampler, parts, first = JunctionSampler(model, seed=seed), [], 0
    while sum(part.num_rows for part in parts) < sum(SIZES):
        draws = sampler.block(first, 1 << 15)
        first += 1 << 15
        texts = pa.array(draws.take(np.flatnonzero(draws.productive)).texts(), pa.large_string())
        acids = translations(texts).cast(pa.large_string())
        chance = (text_hash(acids) * np.uint64(2 * seed + 1)) * 2.0**-64
        parts.append(pa.table({"junction": texts, "junction_aa": acids}).filter(pa.array(chance < selection)))
    rows = pa.concat_tables(parts).slice(0, sum(SIZES))
    return rows.append_column("subject_id", [np.repeat([f"s{k}" for k in range(len(SIZES))], SIZES)])


def shared(model: Any, rows: pa.Table, selection: Any = "fit", key: str = "cdr3aa") -> SharingTable:
    chosen = GenerationSettings(model=model, selection=selection, draws=DRAWS, seed=5, device="cpu")
    return sharing(rows, settings=SharingSettings(key=key), generation=chosen)


@pytest.mark.slow
@pytest.mark.parametrize(("selection", "seed"), often(1, [(1.0, 1), (0.2, 2)]))
def test_simulated_repertoires(model: Any, selection: float, seed: int) -> None:
    """Numbers within sampling error, the selection factor found again, and nothing more than expected."""
    scipy = pytest.importorskip("scipy.stats", reason="compared with scipy, which scikit-learn brings")
    rows = simulated(model, selection, seed)
    given_factor = shared(model, rows, selection).expected
    assert given_factor is not None and given_factor.selection_interval is None
    table = given_factor.table.to_pydict()
    assert sum(table["observed"][1:]) > 50
    for observed, expected, sd in zip(
        *(table[n] for n in ("observed", "expected", "expected_sd")), strict=True
    ):
        assert abs(observed - expected) <= 4 * sd + 0.5
    found = shared(model, rows)
    assert found.expected is not None and found.expected.selection_interval is not None
    low, high = found.expected.selection_interval
    sd = np.log(high / low) / (2 * 1.96)
    assert abs(np.log(found.expected.selection / selection)) < 4 * sd or found.expected.selection == 1.0
    q = found.clonotypes["q_sharing"].to_numpy()
    assert (q < 0.05).sum() <= 2
    # A p of many values, drawn within the step of each: uniform, where sharing is not only by chance.
    pgen = found.clonotypes["pgen"].to_numpy()
    k = found.clonotypes["subjects"].to_numpy().astype(np.int64)
    expected, p = given_factor.chances(pgen, k)
    more = np.where(k < len(SIZES), given_factor.chances(pgen, np.minimum(k + 1, len(SIZES)))[1], 0.0)
    often = expected > 1.2
    drawn = more + (p - more) * np.random.default_rng(seed).random(p.size)
    assert often.sum() > 30 and scipy.kstest(drawn[often], "uniform").pvalue > 0.001


@pytest.mark.slow
def test_what_no_model_makes_is_not_tested(model: Any) -> None:
    rows = pa.table({"junction": ["TGTTTTTTT"] * 2, "v_call": ["X"] * 2, "j_call": ["Y"] * 2})
    found = shared(model, rows.append_column("subject_id", [["a", "b"]]), key="cdr3nt+v+j")
    assert found.expected is not None and not found.expected.depths.any()
    assert found.clonotypes["q_sharing"].to_pylist() == [None]


@pytest.mark.slow
def test_planted_clonotypes_are_found(model: Any) -> None:
    """Rare sequences that all subjects have are more public than generation explains, and no others are."""
    rows = simulated(model, 0.5, 3)
    alone = shared(model, rows, 0.5).clonotypes
    rare = alone.filter(pc.and_(pc.less(alone["pgen"], 1e-9), pc.equal(alone["pgen_status"], "ok"))).slice(
        0, 12
    )
    planted = rare["junction_aa"].to_pylist()
    copies = [row for row in rows.to_pylist() if row["junction_aa"] in set(planted)]
    more = [{**row, "subject_id": f"s{k}"} for row in copies for k in range(len(SIZES))]
    both = shared(model, pa.concat_tables([rows, pa.Table.from_pylist(more, schema=rows.schema)]), 0.5)
    found = both.clonotypes
    told = found.filter(pc.less_equal(found["q_sharing"], 0.05))
    assert both.expected is not None and both.expected.more_shared == told.num_rows
    assert set(planted) <= set(told["junction_aa"].to_pylist()) and told.num_rows <= len(planted) + 2
    assert told["subjects"].to_pylist()[: len(planted)] == [len(SIZES)] * len(planted)


@pytest.mark.slow
def test_q_values(model: Any) -> None:
    """Those of Benjamini and Hochberg over all clonotypes that the model can make."""
    scipy = pytest.importorskip("scipy.stats", reason="compared with scipy, which scikit-learn brings")
    found = shared(model, simulated(model, 1.0, 4).slice(0, 3000), 1.0).clonotypes
    p, q = (found[name].to_numpy() for name in ("p_sharing", "q_sharing"))
    known = ~np.isnan(p)
    assert np.allclose(q[known], scipy.false_discovery_control(p[known]), rtol=1e-12, atol=0)


@pytest.mark.slow
def test_what_cannot_be_made_is_not_tested(model: Any) -> None:
    rows = simulated(model, 1.0, 6).slice(0, 3000)
    odd = ["TGTTAATTT", "TGTGCC", "TGT" + "GGG" * 30 + "TTT"]
    both = [{"junction": text, "junction_aa": "", "subject_id": s} for text in odd for s in ("s0", "s1")]
    found = shared(
        model, pa.concat_tables([rows, pa.Table.from_pylist(both, schema=rows.schema)]), 1.0, "cdr3nt"
    )
    status = dict(zip(*(found.clonotypes[n].to_pylist() for n in ("junction", "pgen_status")), strict=True))
    assert [status[text] for text in odd] == ["nonproductive", "nonproductive", "too_many_insertions"]
    without = found.clonotypes.filter(pc.is_in(found.clonotypes["junction"], pa.array(odd)))
    assert without["p_sharing"].null_count == without["q_sharing"].null_count == 3
    assert found.expected is not None
    assert sum(found.expected.table["observed"].to_pylist()) == found.clonotypes.num_rows - 3


def expectation(
    generation: ClonotypeGeneration, distinct: list[int], selection: float, **sample: Any
) -> ExpectedSharing:
    chosen = ClonotypeGeneration(
        GenerationSettings(model=generation.settings.model, selection=selection, draws=DRAWS), generation.key
    )
    chosen.__dict__["sample"] = generation.sample._replace(**sample)
    observed = ObservedSharing(np.zeros(len(distinct) + 1, np.int64), np.array(distinct))
    return ExpectedSharing(chosen, observed)


@given(
    distinct=st.lists(st.integers(1, 50_000), min_size=1, max_size=6),
    selection=st.floats(0.05, 1.0),
    log=st.lists(st.floats(-14, -2), min_size=1, max_size=4),
)
def test_chances_against_enumeration(
    of_acids: ClonotypeGeneration, distinct: list[int], selection: float, log: list[float]
) -> None:
    found = expectation(of_acids, distinct, selection)
    total = np.sum(found.table["subjects"].to_numpy() * found.table["expected"].to_numpy())
    assert total == pytest.approx(sum(distinct), rel=1e-6)
    assert np.all(found.depths >= np.array(distinct) - 1e-9)
    pgen = 10.0 ** np.array(log)
    has = -np.expm1(-np.outer(pgen / (of_acids.sample.productive * selection), found.depths))
    for k in range(1, len(distinct) + 1):
        expected, p = found.chances(pgen, np.full(pgen.size, k))
        for row, mean, tail in zip(has, expected, p, strict=True):
            chance = np.zeros(len(distinct) + 1)
            for who in product((False, True), repeat=len(distinct)):
                chance[sum(who)] += np.prod(np.where(who, row, 1 - row))
            some = -np.expm1(np.log1p(-np.minimum(row, 1 - 1e-16)).sum())
            assert mean == pytest.approx(row.sum() / some, rel=1e-6)
            assert tail == pytest.approx(min(chance[k:].sum() / some, 1.0), rel=1e-6, abs=1e-15)


@pytest.mark.slow
def test_the_sample_is_of_the_model(of_acids: ClonotypeGeneration) -> None:
    """Shares add up to 1, and the probabilities of what is drawn are those of the sequences drawn."""
    sample = of_acids.sample
    assert sample.draws >= DRAWS and 0.2 < sample.productive < 0.4
    assert sample.share.sum() == pytest.approx(1.0, abs=1e-3)
    again = ClonotypeGeneration(of_acids.settings, of_acids.key).sample
    assert np.array_equal(again.p, sample.p) and np.array_equal(again.share, sample.share)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selection": 0.0}, "selection: found 0.0"),
        ({"selection": 1.5}, "expected fit, or a share above 0 and up to 1"),
        ({"selection": "none"}, "selection: found"),
        ({"draws": 10}, "draws"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_settings(model: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        GenerationSettings(model=model, **changes)


def test_more_clonotypes_than_the_model_makes(of_acids: ClonotypeGeneration) -> None:
    with pytest.raises(InvalidInput, match="no more than the model makes"):
        expectation(of_acids, [11], 1.0, p=np.array([0.1]), share=np.array([1.0]))
