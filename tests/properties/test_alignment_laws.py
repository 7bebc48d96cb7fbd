"""Laws that alignments obey, whatever the scores: found without any oracle."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.alignment import AlignmentCase, BestAlignment, score_columns
from support.alignment_runs import prepare, sum_task, swept
from support.alignment_strategies import alignment_cases, bands

from plait.dp.pairs.states import count_all, count_best, log_sum, pair_log_sums

pytestmark = pytest.mark.interpreted

SUMMED = ("global", "local")
LONGEST = 10
OTHER_SEQUENCE = {"query": "target", "target": "query"}
OTHER_END = {"start": "end", "end": "start"}


def best(case: AlignmentCase) -> BestAlignment:
    found = swept(case)
    assert found is not None
    return found


def score(case: AlignmentCase) -> int | None:
    found = swept(case)
    return None if found is None else found.score


def swapped(case: AlignmentCase) -> AlignmentCase:
    """The query as the target and the other way round."""
    free = (end.partition("_") for end in case.free_ends)
    return dataclasses.replace(
        case,
        query=case.target,
        target=case.query,
        scores=tuple(zip(*case.scores, strict=True)),
        free_ends=frozenset(f"{OTHER_SEQUENCE[sequence]}_{end}" for sequence, _, end in free),
        band=None if case.band is None else (-case.band[1], -case.band[0]),
    )


def turned(case: AlignmentCase) -> AlignmentCase:
    """Both sequences read backwards."""
    free = (end.partition("_") for end in case.free_ends)
    shift = len(case.target) - len(case.query)
    return dataclasses.replace(
        case,
        query=case.query[::-1],
        target=case.target[::-1],
        free_ends=frozenset(f"{sequence}_{OTHER_END[end]}" for sequence, _, end in free),
        band=None if case.band is None else (shift - case.band[1], shift - case.band[0]),
    )


def in_mode(case: AlignmentCase, mode: str, *free: str) -> AlignmentCase:
    return dataclasses.replace(case, mode=mode, free_ends=frozenset(free))


def cases(**how: Any) -> st.SearchStrategy[AlignmentCase]:
    return alignment_cases(longest=LONGEST, **how)


BOTH_WAYS = ("global", "local", "semiglobal", "overlap")


# --- the best alignment ---------------------------------------------------------------------------------


@given(cases(banded=True))
def test_query_and_target_may_be_swapped(case: AlignmentCase) -> None:
    assert score(swapped(case)) == score(case)


@given(cases(banded=True, modes=BOTH_WAYS))
def test_sequences_may_be_read_backwards(case: AlignmentCase) -> None:
    assert score(turned(case)) == score(case)


@given(cases(modes=("global",)), cases(modes=("global",)))
def test_joined_sequences_score_at_least_as_much(case: AlignmentCase, other: AlignmentCase) -> None:
    letters = len(case.scores)
    assume(letters >= len(other.scores))
    second = dataclasses.replace(case, query=other.query, target=other.target)
    joined = dataclasses.replace(case, query=case.query + other.query, target=case.target + other.target)
    # One gap that is cut in two costs more, never less.
    assert best(joined).score >= best(case).score + best(second).score


@given(cases(modes=("local",)), st.data())
def test_a_local_alignment_is_the_best_of_all_pieces(case: AlignmentCase, data: st.DataObject) -> None:
    found = best(case)
    piece = dataclasses.replace(
        in_mode(case, "global"),
        query=case.query[found.start[0] : found.end[0]],
        target=case.target[found.start[1] : found.end[1]],
    )
    assert best(piece).score == found.score
    cut = [sorted(data.draw(st.tuples(*[st.integers(0, length)] * 2))) for length in case.end]
    query, target = case.query[slice(*cut[0])], case.target[slice(*cut[1])]
    assert best(dataclasses.replace(piece, query=query, target=target)).score <= found.score


@given(
    cases(modes=("semiglobal",)), st.sampled_from(("query_start", "query_end", "target_start", "target_end"))
)
def test_more_freedom_never_lowers_a_score(case: AlignmentCase, end: str) -> None:
    freer = in_mode(case, "semiglobal", *case.free_ends, end)
    overlap, local = in_mode(case, "overlap"), in_mode(case, "local")
    ladder = [best(c).score for c in (in_mode(case, "global"), case, freer, overlap, local)]
    assert ladder == sorted(ladder)
    assert best(in_mode(case, "global")).score <= best(in_mode(case, "extension")).score <= ladder[-1]


@given(cases())
def test_four_free_ends_are_an_overlap_and_none_is_global(case: AlignmentCase) -> None:
    every = ("query_start", "query_end", "target_start", "target_end")
    assert best(in_mode(case, "semiglobal", *every)) == best(in_mode(case, "overlap"))
    assert best(in_mode(case, "semiglobal")) == best(in_mode(case, "global"))


@given(cases())
def test_columns_add_up_to_the_score(case: AlignmentCase) -> None:
    found = best(case)
    assert score_columns(case, found.start, found.columns) == found.score
    assert found.end[0] - found.start[0] == len(found.columns) - found.columns.count("D")
    assert found.end[1] - found.start[1] == len(found.columns) - found.columns.count("I")


# --- bands and X-drop -----------------------------------------------------------------------------------


@given(cases(), st.integers(0, 3))
def test_a_band_that_is_wide_enough_changes_nothing(case: AlignmentCase, more: int) -> None:
    m, n = case.end
    assert swept(dataclasses.replace(case, band=(-m - more, n + more))) == best(case)


@given(cases(modes=BOTH_WAYS))
def test_a_band_around_the_path_keeps_its_score(case: AlignmentCase) -> None:
    found = best(case)
    i, j = found.start
    offsets = [j - i]
    for column in found.columns:
        offsets.append(offsets[-1] + {"M": 0, "D": 1, "I": -1}[column])
    banded = dataclasses.replace(case, band=(min(offsets), max(offsets)))
    assert score(banded) == found.score


@given(cases(), bands(LONGEST), st.integers(0, 3), st.integers(0, 3))
def test_a_wider_band_never_lowers_a_score(
    case: AlignmentCase, band: tuple[int, int], below: int, above: int
) -> None:
    narrow = score(dataclasses.replace(case, band=band))
    if narrow is not None:
        wide = score(dataclasses.replace(case, band=(band[0] - below, band[1] + above)))
        assert wide is not None
        assert narrow <= wide <= best(case).score


@pytest.mark.slow
@given(cases(modes=("extension",), banded=True))
def test_an_x_drop_that_is_never_reached_changes_nothing(case: AlignmentCase) -> None:
    assert swept(dataclasses.replace(case, x_drop=10**6)) == swept(case)


@given(cases(modes=("extension",), banded=True), st.integers(0, 20))
def test_x_drop_finds_an_alignment_that_there_is(case: AlignmentCase, most: int) -> None:
    found = swept(dataclasses.replace(case, x_drop=most))
    plain = swept(case)
    assert (found is None) == (plain is None)
    if found is not None and plain is not None:
        assert 0 <= found.score <= plain.score
        assert score_columns(case, found.start, found.columns) == found.score


@given(cases(banded=True))
def test_memory_is_what_the_band_holds(case: AlignmentCase) -> None:
    cells = sum(i > 0 and j > 0 for i, j in case.vertices())
    if swept(case) is not None:
        assert prepare(case).direction_bytes() == cells


# --- sums -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(cases(modes=SUMMED))
def test_sums_do_not_change_when_swapped_or_turned(case: AlignmentCase) -> None:
    for other in (swapped(case), turned(case)):
        assert count_all(sum_task(other), "hold") == count_all(sum_task(case), "hold")
        assert count_best(sum_task(other), "hold") == count_best(sum_task(case), "hold")
        assert log_sum(sum_task(other), 2.0) == pytest.approx(
            log_sum(sum_task(case), 2.0), rel=1e-13, abs=1e-13
        )


@pytest.mark.slow
@given(cases(modes=SUMMED))
def test_posteriors_are_turned_and_swapped_along(case: AlignmentCase) -> None:
    matrix, total = pair_log_sums(sum_task(case), 1.0)
    for other, view in ((swapped(case), matrix.T), (turned(case), matrix[::-1, ::-1])):
        found, again = pair_log_sums(sum_task(other), 1.0)
        assert np.exp(found - again) == pytest.approx(np.exp(view - total), abs=1e-13)


@given(cases(modes=SUMMED), st.sampled_from((0.5, 1.0, 8.0)))
def test_the_partition_function_lies_between_the_best_and_as_many(
    case: AlignmentCase, temperature: float
) -> None:
    task = sum_task(case)
    most, optimal = count_best(task, "hold")
    total = log_sum(task, temperature)
    assert most == best(case).score
    assert 1 <= optimal <= count_all(task, "hold")
    assert total >= most / temperature + math.log(optimal) - 1e-12 * max(1, abs(total))
    assert total <= most / temperature + math.log(count_all(task, "hold")) + 1e-12 * max(1, abs(total))


@given(cases(modes=SUMMED))
def test_posteriors_are_probabilities(case: AlignmentCase) -> None:
    matrix, total = pair_log_sums(sum_task(case), 1.0)
    shares = np.exp(matrix - total)
    assert (shares >= 0).all()
    assert (shares.sum(axis=0) <= 1 + 1e-12).all()
    assert (shares.sum(axis=1) <= 1 + 1e-12).all()


@given(cases(modes=("global",)))
def test_the_expected_number_of_pairs_is_a_derivative(case: AlignmentCase) -> None:
    # Scores that all rise by x weigh an alignment of k pairs exp(k x) times as much.
    matrix, total = pair_log_sums(sum_task(case), 1.0)
    x = 1e-4
    scores = np.array(case.scores, np.float64)
    task = sum_task(case)
    up, down = (log_sum(task._replace(scores=scores + shift), 1.0) for shift in (x, -x))
    assert (up - down) / (2 * x) == pytest.approx(np.exp(matrix - total).sum(), abs=1e-5)


@given(cases(modes=("global",)), cases(modes=("global",)))
def test_joined_sequences_have_every_pair_of_alignments(case: AlignmentCase, other: AlignmentCase) -> None:
    second = dataclasses.replace(case, query=(0,) * len(other.query), target=(0,) * len(other.target))
    joined = dataclasses.replace(case, query=case.query + second.query, target=case.target + second.target)
    counts = [count_all(sum_task(c), "hold") for c in (case, second, joined)]
    assert counts[2] >= counts[0] * counts[1]
