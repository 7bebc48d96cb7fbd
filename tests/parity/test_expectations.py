"""Expected numbers of choices are the sums over all scenarios that their definition says.

They are sums of the same products as generation probabilities, divided by one, so the bound is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples, often, seldom_compiled
from support.recombination import GENETIC_CODE, Way, coding_texts, drawn_junctions, small_model, ways_of

from plait.dp.chain.adjoint import expect_kernel
from plait.vdj.calls import STATUSES
from plait.vdj.model import JunctionSampler, RecombinationModel, expectations, junctions, load_model
from plait.vdj.model.expectations import (
    ErrorRate,
    Evidence,
    Expectation,
    PosteriorFinder,
    Posteriors,
)
from plait.vdj.model.junctions import JunctionEncoder

BOUND = 1e-11
seeds = st.integers(0, 1 << 30)


def found_in(
    model: RecombinationModel,
    junctions: Sequence[str | None],
    v: Any = None,
    j: Any = None,
    kind: Any = "nt",
    error_rate: ErrorRate = None,
) -> tuple[Evidence, Expectation]:
    expected = Expectation(model, 1, error_rate=error_rate)
    batch = JunctionEncoder(model, shapes=expected.shapes).encode(junctions, v, j, kind=kind)
    expected.add(batch.parts, batch.texts)
    return expected.evidence(), expected


def inserted(model: RecombinationModel, way: Way, text: str) -> tuple[list[int], list[int]]:
    """Symbols inserted on both sides, each from where it begins."""
    begin = len(model.extended("V", way.v)) - way.cuts[0]
    end = len(text) - (len(model.extended("J", way.j)) - way.cuts[3])
    codes = ["ACGT".index(letter) for letter in text]
    return codes[begin : begin + way.lengths[0]], codes[end - way.lengths[1] : end][::-1]


def spelled_out(
    model: RecombinationModel,
    junctions: Iterable[Iterable[str]],
    v: Any = None,
    j: Any = None,
    read: tuple[Sequence[str], float] | None = None,
) -> tuple[Evidence, float, int]:
    """The same by listing all scenarios: of each junction, those of all texts that it stands for.

    `read` are what was read of each, and the rate of errors.
    """
    names = [name for name in Evidence._fields if name != "errors" and not name.endswith("first")]
    counts = {name: np.zeros_like(getattr(model, name)) for name in names}
    counts |= {"vd_first": np.zeros(4), "dj_first": np.zeros(4), "errors": np.zeros(1)}
    counts["vd_steps"], counts["dj_steps"] = np.zeros((4, 4)), np.zeros((4, 4))
    log, impossible = 0.0, 0
    for k, texts in enumerate(junctions):
        of_v, of_j = (None if c is None else c[k] for c in (v, j))
        ways = [(text, way) for text in texts for way in ways_of(model, text, of_v, of_j)]
        wrong = [0] * len(ways)
        if read is not None:
            seen, rate = read[0][k], read[1]
            wrong = [sum(a != b for a, b in zip(seen, text, strict=True)) for text, _ in ways]
            odds = [(1 - rate) ** (len(seen) - m) * (rate / 3) ** m for m in wrong]
            ways = [
                (text, way._replace(probability=way.probability * p))
                for (text, way), p in zip(ways, odds, strict=True)
            ]
        whole = sum(way.probability for _, way in ways)
        if whole == 0:
            impossible += 1
            continue
        log += np.log(whole)
        for (text, way), misread in zip(ways, wrong, strict=True):
            if way.probability == 0:
                continue
            share, (x, s, t, y) = way.probability / whole, way.cuts
            counts["errors"][0] += share * misread
            counts["p_v"][way.v] += share
            counts["p_dj"][way.v if len(model.p_dj) > 1 else 0, max(way.d, 0), way.j] += share
            counts["p_v_deletions"][way.v, x] += share
            counts["p_j_deletions"][way.j, y] += share
            counts["p_vd_length"][way.lengths[0]] += share
            if model.d:
                counts["p_d_deletions"][way.d, s, t] += share
                counts["p_dj_length"][way.lengths[1]] += share
            for side, codes in zip(("vd", "dj"), inserted(model, way, text), strict=True):
                if codes:
                    counts[f"{side}_first"][codes[0]] += share
                for a, b in pairwise(codes):
                    counts[f"{side}_steps"][a, b] += share
    return Evidence(**counts), log, impossible


def assert_alike(found: Evidence, expected: Evidence) -> None:
    for name, table in found._asdict().items():
        assert table == pytest.approx(getattr(expected, name), rel=BOUND, abs=1e-14), name


@seldom_compiled
@examples(6)
@given(seed=seeds, d=st.booleans())
def test_expected_numbers(seed: int, d: bool) -> None:
    model = small_model(seed, d=d, genes=2, most=3)
    texts = drawn_junctions(model, seed, 3)
    # One that is hardly possible.
    texts.append(texts[0][:-1] + "ACGT"[seed % 4])
    found, sums = found_in(model, texts)
    expected, log, impossible = spelled_out(model, [[text] for text in texts])
    assert_alike(found, expected)
    assert (sums.junctions, sums.impossible) == (len(texts) - impossible, impossible)
    assert sums.log_likelihood() * sums.junctions == pytest.approx(log, rel=BOUND)


@pytest.mark.slow
@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_long_insertions_and_many_genes(d: bool) -> None:
    """Levels and contexts in more than one group of lanes, and texts out of reach of the longest ones."""
    model = small_model(17, d=d, genes=9, letters=4, most=20 if not d else 9)
    texts = drawn_junctions(model, 5, 1 if d else 3, shortest=12)
    found, _ = found_in(model, texts)
    expected, _, _ = spelled_out(model, [[text] for text in texts])
    assert_alike(found, expected)


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_calls(d: bool) -> None:
    """Genes, lists of genes, and rows without a call, which may be made with any functional gene."""
    model = small_model(6, d=d, genes=3)
    texts = drawn_junctions(model, 6, 8)
    v = ["TRXV1", "TRXV1*01,TRXV3*01", None, ""] * 2
    j = ["TRXJ2*01", None, "TRXJ1, TRXJ3", "TRXJ3"] * 2
    of_v, of_j = ([0], [0, 2], None, None) * 2, ([1], None, [0, 2], [2]) * 2
    found, sums = found_in(model, texts, v, j)
    expected, _, impossible = spelled_out(model, [[text] for text in texts], of_v, of_j)
    assert_alike(found, expected)
    assert sums.junctions == len(texts) - impossible > 0


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels as plain Python: each kind of graph would be compiled for some seconds."""
    monkeypatch.setattr(expectations, "expect_kernel", getattr(expect_kernel, "py_func", expect_kernel))


def spelled(text: str) -> list[str]:
    return [text.replace("N", letter) for letter in "ACGT"] if "N" in text else [text]


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_texts_that_stand_for_several(d: bool) -> None:
    model = small_model(7, d=d)
    texts = drawn_junctions(model, 1, 3)
    texts[1] = f"{texts[1][:3]}N{texts[1][4:]}"
    found, _ = found_in(model, texts)
    expected, _, _ = spelled_out(model, [spelled(text) for text in texts])
    assert_alike(found, expected)
    told = PosteriorFinder(model, threads=1).compute(texts)
    assert_told(told, model, [spelled(text) for text in texts])


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_amino_acids_are_evidence_too(d: bool) -> None:
    model = small_model(8, d=d, letters=2)
    texts = [text[:6] for text in drawn_junctions(model, 2, 3)]
    acids = ["".join(GENETIC_CODE[text[k : k + 3]] for k in range(0, 6, 3)) for text in texts]
    found, _ = found_in(model, acids, kind="aa")
    expected, _, impossible = spelled_out(model, [coding_texts(list(text)) for text in acids])
    assert impossible < len(acids)
    assert_alike(found, expected)


#: All texts of the shortest length that is evidence.
ALL_TEXTS = ["".join(letters) for letters in product("ACGT", repeat=6)]


def short_reads(model: RecombinationModel, seed: int, count: int) -> list[str]:
    """Texts of 6 nucleotides, those that the model makes first."""
    return [text[:6] for text in sorted(drawn_junctions(model, seed, 40), key=len)[:count]]


@pytest.mark.slow
@pytest.mark.usefixtures("uncompiled")
@examples(3)
@given(seed=seeds, d=st.booleans(), rate=st.sampled_from([0.0, 0.004, 0.3, 0.75]))
def test_misread_nucleotides(seed: int, d: bool, rate: float) -> None:
    """What was read stands for every text of its length, by the number of errors between the two."""
    model = small_model(seed, d=d, genes=1, palindrome=0)
    reads = short_reads(model, seed, 1)
    found, sums = found_in(model, reads, error_rate=rate)
    expected, log, impossible = spelled_out(model, [ALL_TEXTS], read=(reads, rate))
    assert_alike(found, expected)
    assert sums.impossible == impossible
    assert sums.log_likelihood() * sums.junctions == pytest.approx(log, rel=BOUND)


@pytest.mark.slow
@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_misread_nucleotides_of_several_genes(d: bool) -> None:
    """The same compiled, with calls; and without errors, it is what it is without a rate."""
    model = small_model(6, d=d, genes=3, letters=4)
    # The enumeration takes longest, the more so with D.
    n = 1 if d else 2
    reads, v, j = short_reads(model, 6, n), ["TRXV1*01,TRXV3*01", None][:n], ["TRXJ2*01", None][:n]
    found, sums = found_in(model, reads, v, j, error_rate=0.1)
    given = ([0, 2], None)[:n], ([1], None)[:n]
    expected, _, _ = spelled_out(model, [ALL_TEXTS] * n, *given, (reads, 0.1))
    assert_alike(found, expected)
    assert found.errors[0] > 0 and sums.junctions == n
    whole = drawn_junctions(model, 7, 20)
    assert_alike(found_in(model, whole, error_rate=0.0)[0], found_in(model, whole)[0])


@pytest.mark.slow
def test_parts_of_d_that_are_hardly_read_so_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than 1e-7 of what is found: they are left out for the sake of time."""
    model = load_model("human_TRB")
    reads = JunctionSampler(model, seed=4).block(0, 12).texts()
    found, sums = found_in(model, reads, error_rate=0.01)
    monkeypatch.setattr(junctions, "LEAST_READ", 0.0)
    every, all_sums = found_in(model, reads, error_rate=0.01)
    assert sums.log_likelihood() == pytest.approx(all_sums.log_likelihood(), abs=1e-7)
    for name, table in found._asdict().items():
        assert table == pytest.approx(getattr(every, name), abs=1e-7), name
    assert (found.p_d_deletions != every.p_d_deletions).any()


@pytest.mark.usefixtures("uncompiled")
def test_one_p_j_for_all_v() -> None:
    """Without D, P(J) may be the same for all V: then one row is counted."""
    model = small_model(9, d=False)
    alone = RecombinationModel(**(vars(model) | {"p_dj": model.p_dj[:1]}))
    texts = drawn_junctions(alone, 2, 5)
    assert_alike(found_in(alone, texts)[0], spelled_out(alone, [[text] for text in texts])[0])


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_posteriors_are_means_over_scenarios(d: bool) -> None:
    model = small_model(12, d=d, genes=3)
    texts = [*drawn_junctions(model, 4, 4), None, "ACGTAC" * 3]
    found = PosteriorFinder(model, threads=1).compute(texts)
    assert [STATUSES[code] for code in found.status] == ["ok"] * 4 + ["missing_junction", "ok"]
    assert np.isnan(found.pgen[4]) and found.v[4:].tolist() == [-1, -1] and np.isnan(found.entropy[4:]).all()
    assert found.pgen[5] == 0
    assert_told(found, model, [[text] for text in texts[:4]])
    if not d:
        assert (found.d == -1).all() and np.isnan(found.d_probability).all()


def assert_told(found: Posteriors, model: RecombinationModel, junctions: list[list[str]]) -> None:
    """Posteriors are what a list of all scenarios says."""
    for k, texts in enumerate(junctions):
        listed = [(text, way) for text in texts for way in ways_of(model, text) if way.probability > 0]
        ways = [way for _, way in listed]
        weight = np.array([way.probability for way in ways])
        share = weight / weight.sum()
        assert found.pgen[k] == pytest.approx(weight.sum(), rel=BOUND)
        assert found.entropy[k] == pytest.approx(-(share @ np.log2(share)), rel=1e-9, abs=1e-9)
        cuts = share @ np.array([way.cuts for way in ways]) - np.array(model.palindromes)
        assert found.deletions[k] == pytest.approx(cuts, rel=BOUND, abs=1e-12)
        assert found.insertions[k] == pytest.approx(
            share @ np.array([way.lengths for way in ways]), abs=1e-12
        )
        for name in "vdj" if model.d else "vj":
            posterior = np.bincount([getattr(way, name) for way in ways], share)
            best = getattr(found, name)[k]
            assert posterior[best] == pytest.approx(posterior.max(), rel=BOUND)
            assert getattr(found, f"{name}_probability")[k] == pytest.approx(posterior[best], rel=BOUND)
        composition = np.zeros(4)
        for (text, way), part in zip(listed, share, strict=True):
            for codes in inserted(model, way, text):
                np.add.at(composition, codes, part)
        assert found.inserted[k] == pytest.approx(composition, rel=BOUND, abs=1e-13)


def test_posteriors_do_not_depend_on_threads_or_neighbours() -> None:
    model = small_model(13, genes=3)
    texts = drawn_junctions(model, 4, 40) * 10
    one, other = (
        PosteriorFinder(model, threads=1).compute(texts),
        PosteriorFinder(model, threads=3).compute(texts[::-1]),
    )
    for name in ("pgen", "v", "d", "j", "v_probability", "deletions", "insertions", "inserted", "entropy"):
        assert np.array_equal(getattr(one, name), getattr(other, name)[::-1]), name
