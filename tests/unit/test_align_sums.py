"""Sums over all alignments: the state schedule against every alignment there is, and the public calls."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.alignment import AlignmentCase, all_sums, best_by_gotoh
from support.alignment_runs import sum_task
from support.alignment_strategies import alignment_cases

from plait.align.scoring import Scoring, make_scoring, match_mismatch
from plait.align.sums import count_alignments, count_optimal, log_partition, match_posteriors
from plait.dp.pairs.gaps import GapStates
from plait.dp.pairs.states import (
    Forget,
    Plain,
    Scope,
    StatePair,
    SumTask,
    count_all,
    count_best,
    log_sum,
    pair_log_sums,
    sweep_states,
)
from plait.errors import CountOverflow, InvalidInput, Unsupported
from plait.lang.algebras import MaxPlus

SUMMED = ("global", "local")
TEMPERATURES = st.sampled_from((0.5, 1.0, 4.0))
DNA = make_scoring(kind="dna")


def delannoy(m: int, n: int) -> int:
    return sum(math.comb(m, k) * math.comb(n, k) * 2**k for k in range(min(m, n) + 1))


# --- against every alignment ----------------------------------------------------------------------------


def check_counts(case: AlignmentCase, task: SumTask, counter: str) -> None:
    wanted = all_sums(case, 1.0)
    assert count_all(task, counter) == wanted.alignments
    assert count_best(task, counter) == (wanted.best, wanted.optimal)


def check_log_sums(case: AlignmentCase, task: SumTask, temperature: float) -> None:
    wanted = all_sums(case, temperature)
    matrix, total = pair_log_sums(task, temperature)
    assert total == log_sum(task, temperature)
    assert total == pytest.approx(wanted.log_partition, rel=1e-13, abs=1e-13)
    shape = (len(case.query), len(case.target))
    assert np.exp(matrix - total) == pytest.approx(np.reshape(wanted.posteriors, shape), abs=1e-13)


@given(alignment_cases(longest=4, modes=SUMMED), st.sampled_from(("hold", "float")))
def test_compiled_counts(case: AlignmentCase, counter: str) -> None:
    check_counts(case, sum_task(case), counter)


@pytest.mark.interpreted
@given(alignment_cases(longest=4, modes=SUMMED), st.sampled_from(("hold", "float", "wide")))
def test_interpreted_counts(case: AlignmentCase, counter: str) -> None:
    check_counts(case, sum_task(case, interpreted=True), counter)


@given(alignment_cases(longest=4, modes=SUMMED), TEMPERATURES)
def test_compiled_log_sums(case: AlignmentCase, temperature: float) -> None:
    check_log_sums(case, sum_task(case), temperature)


@pytest.mark.interpreted
@given(alignment_cases(longest=4, modes=SUMMED), TEMPERATURES)
def test_interpreted_log_sums(case: AlignmentCase, temperature: float) -> None:
    check_log_sums(case, sum_task(case, interpreted=True), temperature)


@pytest.mark.interpreted
@given(alignment_cases(modes=SUMMED))
def test_the_best_of_three_states_is_the_score(case: AlignmentCase) -> None:
    wanted = best_by_gotoh(case)
    assert wanted is not None
    zero = -math.inf
    start, begin = (zero, 0) if case.mode == "local" else (0, zero)
    task = sum_task(case)
    found = sweep_states(
        GapStates(-case.gap_open, -case.gap_extend),
        MaxPlus(zero, 0),
        Forget(),
        StatePair(task.query, task.target, Plain(task.scores.astype(object))),
        Scope(start, begin, case.mode == "local"),
        Plain(np.empty((task.target.size + 1, 4), object)),
    )
    assert found == wanted.score
    assert count_best(sum_task(case, interpreted=True), "wide")[0] == wanted.score


# --- against Biopython ----------------------------------------------------------------------------------


def biopython_aligner(mode: str, scoring: Scoring) -> Any:
    align = pytest.importorskip("Bio.Align", reason="Biopython is not installed")
    scores = scoring.matrix.scores
    aligner = align.PairwiseAligner(match_score=int(scores[0, 0]), mismatch_score=int(scores[0, 1]))
    aligner.mode = mode
    aligner.open_gap_score, aligner.extend_gap_score = -scoring.gap_open, -scoring.gap_extend
    return aligner


@pytest.mark.parametrize("costs", [(1, 1), (2, 1), (7, 2), (0, 0)])
def test_optimal_global_alignments_are_those_of_biopython(costs: tuple[int, int]) -> None:
    rng = random.Random(str(costs))
    scoring = Scoring(match_mismatch(2, -3), *costs)
    aligner = biopython_aligner("global", scoring)
    for _ in range(60):
        query, target = ("".join(rng.choices("ACG", k=rng.randint(1, 10))) for _ in range(2))
        theirs = aligner.align(target, query)
        ours = count_optimal(query, target, scoring=scoring)
        assert (ours.score, ours.count) == (theirs.score, len(theirs))


def test_optimal_local_alignments_without_a_part_that_scores_0_are_those_of_biopython() -> None:
    rng = random.Random(3)
    # No few of these numbers add up to 0.
    scoring = Scoring(match_mismatch(1009, -617), 411, 219)
    aligner = biopython_aligner("local", scoring)
    compared = 0
    for _ in range(60):
        query, target = ("".join(rng.choices("ACG", k=rng.randint(1, 9))) for _ in range(2))
        theirs = aligner.align(target, query)
        ours = count_optimal(query, target, scoring=scoring, mode="local")
        if ours.score > 0:
            assert (ours.score, ours.count) == (theirs.score, len(theirs))
            compared += 1
    assert compared > 40


def test_optimal_local_alignments_that_biopython_leaves_out() -> None:
    scoring = Scoring(match_mismatch(1, -1), 2, 1)
    # AA, and the whole, of which the last two columns score 0.
    assert count_optimal("AAGA", "AACA", scoring=scoring, mode="local").count == 2
    assert len(biopython_aligner("local", scoring).align("AACA", "AAGA")) == 1


# --- the public calls -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(0, 0), (0, 4), (3, 0), (1, 1), (5, 8), (24, 24)])
def test_counts_are_the_delannoy_numbers(m: int, n: int) -> None:
    assert count_alignments("A" * m, "C" * n).count == delannoy(m, n)


def test_counts_of_any_size() -> None:
    wide = count_alignments("A" * 30, "A" * 30)
    assert wide.count == delannoy(30, 30) > 2**64
    assert isinstance(wide.count, int)
    assert wide.provenance.algebra == "Count, in Python integers"
    rounded = count_alignments("A" * 30, "A" * 30, overflow="float").count
    assert rounded == pytest.approx(delannoy(30, 30), rel=1e-13)
    with pytest.raises(CountOverflow, match=r"2\^63"):
        count_alignments("A" * 30, "A" * 30, overflow="raise")
    with pytest.raises(Unsupported, match="overflow='float'"):
        count_alignments("A" * 3000, "A" * 3000)
    assert count_alignments("A" * 3000, "A" * 3000, overflow="float").count == math.inf


def test_counts_that_just_fit() -> None:
    assert delannoy(26, 26) < 2**63 - 1 < delannoy(27, 27)
    assert count_alignments("A" * 26, "A" * 26, overflow="raise").count == delannoy(26, 26)
    with pytest.raises(CountOverflow):
        count_alignments("A" * 27, "A" * 27, overflow="raise")


def test_optimal_counts_of_any_size() -> None:
    # Gaps cost nothing and mismatches do: all 68 residues stand alone, in any order.
    scoring = Scoring(match_mismatch(1, -1), 0, 0)
    count = count_optimal("A" * 34, "C" * 34, scoring=scoring)
    assert (count.score, count.count) == (0, math.comb(68, 34))
    assert count.count > 2**64
    # One gap in one of 13 places.
    assert count_optimal("A" * 40, "A" * 12, scoring=DNA).count == 13


def test_a_pair_by_hand() -> None:
    scoring = Scoring(match_mismatch(1, -1), 1, 1)
    # M: -1. DI and ID: -2 each.
    z = log_partition("A", "C", scoring=scoring, temperature=2.0)
    assert z.value == pytest.approx(math.log(math.exp(-0.5) + 2 * math.exp(-1)), rel=1e-15)
    paired = match_posteriors("A", "C", scoring=scoring, temperature=2.0)
    assert paired.log_partition == z.value
    assert paired.probabilities.item() == pytest.approx(math.exp(-0.5 - z.value), rel=1e-14)
    assert paired.query_unpaired.item() == pytest.approx(1 - paired.probabilities.item(), rel=1e-14)
    # M, and the one without columns.
    local = log_partition("A", "C", scoring=scoring, mode="local")
    assert local.value == pytest.approx(math.log(math.exp(-1) + 1), rel=1e-15)


@pytest.mark.parametrize("mode", SUMMED)
def test_empty_sequences(mode: Any) -> None:
    for query, target, score in (("", "", 0), ("", "AC", -9), ("ACG", "", -11)):
        wanted = 0 if mode == "local" else score
        assert count_alignments(query, target, mode=mode).count == 1
        assert count_optimal(query, target, scoring=DNA, mode=mode).score == wanted
        assert log_partition(query, target, scoring=DNA, mode=mode).value == wanted
        found = match_posteriors(query, target, scoring=DNA, mode=mode)
        assert found.probabilities.shape == (len(query), len(target))
        assert found.query_unpaired.tolist() == [1.0] * len(query)


@pytest.mark.parametrize("mode", SUMMED)
def test_devices_agree(mode: Any) -> None:
    rng = random.Random(7)
    query, target = ("".join(rng.choices("ACGT", k=12)) for _ in range(2))
    how: dict[str, Any] = {"scoring": DNA, "mode": mode}
    cpu, reference = (count_optimal(query, target, device=d, **how) for d in ("cpu", "reference"))
    assert (cpu.score, cpu.count) == (reference.score, reference.count)
    assert (cpu.provenance.device, reference.provenance.device) == ("cpu", "reference")
    sums = [log_partition(query, target, device=d, **how).value for d in ("cpu", "reference")]
    assert sums[0] == pytest.approx(sums[1], rel=1e-14)
    shares = [match_posteriors(query, target, device=d, **how) for d in ("auto", "reference")]
    assert shares[0].probabilities == pytest.approx(shares[1].probabilities, abs=1e-14)


def test_results_say_how_they_were_made() -> None:
    made = log_partition("ACG", "AG", scoring=DNA, temperature=3.0).provenance
    assert (made.schedule, made.algebra, made.device) == ("state_sweep", "LogSum", "cpu")
    assert made.parameters == {
        "mode": "global", "temperature": 3.0, "matrix": DNA.matrix.name, "gap_open": 7, "gap_extend": 2
    }  # fmt: skip
    with pytest.raises(dataclasses.FrozenInstanceError):
        log_partition("A", "A", scoring=DNA).value = 0.0  # type: ignore[misc]


def test_a_matrix_that_is_too_large_is_refused_with_its_size() -> None:
    with pytest.raises(Unsupported, match=r"100000 x 100000 .* needs 80003200032 bytes"):
        match_posteriors("A" * 100_000, "A" * 100_000, scoring=DNA)
    needed = 8 * (20 * 20 + 4 * 21)
    assert match_posteriors("A" * 20, "A" * 20, scoring=DNA, memory=needed).probabilities.shape == (20, 20)
    with pytest.raises(Unsupported, match=f"{needed} bytes and memory={needed - 1}"):
        match_posteriors("A" * 20, "A" * 20, scoring=DNA, memory=needed - 1)


@pytest.mark.parametrize(
    ("call", "how", "what"),
    [
        (count_alignments, {"mode": "overlap"}, "mode"),
        (count_alignments, {"device": "abacus"}, "device"),
        (count_alignments, {"overflow": "wrap"}, "overflow"),
        (count_optimal, {"scoring": DNA, "query": "AXZ"}, "query"),
        (count_optimal, {"scoring": DNA, "target": "A-C"}, "target"),
        (log_partition, {"scoring": DNA, "temperature": 0.0}, "temperature"),
        (log_partition, {"scoring": DNA, "temperature": math.nan}, "temperature"),
        (log_partition, {"scoring": DNA, "temperature": 1e-300}, "temperature"),
        (match_posteriors, {"scoring": DNA, "temperature": math.inf}, "temperature"),
    ],
)
def test_bad_arguments(call: Any, how: dict[str, Any], what: str) -> None:
    query, target = how.pop("query", "ACG"), how.pop("target", "AG")
    with pytest.raises(InvalidInput) as caught:
        call(query, target, **how)
    assert caught.value.what == what
