"""The oracles are independent of each other and agree: simulation, matrices, nested sums, every string."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cases import Batch, ends_of
from support.oracles import (
    LETTERS,
    alike,
    choices,
    count_dp1,
    count_dp2,
    enumerate_paths,
    extended_d,
    fragment_ways,
    letter_counts,
    palindrome_after,
    palindrome_before,
    reverse_complement,
)
from support.problems import PROBLEMS
from support.simulation import simulate_dp2
from support.strategies import CODES, batches, dp1_models, dp2_models, sequences

pytestmark = pytest.mark.interpreted(alone=True)

ANY_CHAIN = st.sampled_from(("vj", "vdj", "vddj"))


@given(ANY_CHAIN.flatmap(lambda chain: batches(chain, dp2_models(), longest=5, most=1)), st.data())
def test_the_simulation_is_the_product_of_matrices(batch: Batch, data: st.DataObject) -> None:
    (junction,) = batch.junctions
    v, j = ends_of(batch, junction)
    ds = [d.sequence for d in batch.germline.d][:2]
    limits = data.draw(st.tuples(*[st.integers(0, 3)] * (len(ds) + 1)))
    how = {"pi": max(batch.model.pis), "limits": limits, "strands": batch.model.strands}
    assert simulate_dp2(junction.sequence, v, ds, j, **how) == count_dp2(junction.sequence, v, ds, j, **how)


@given(
    ANY_CHAIN.flatmap(lambda chain: batches(chain, dp1_models(pi=2, most=2), codes=True, longest=4, most=1))
)
def test_dp1_is_what_building_every_string_finds(batch: Batch) -> None:
    (junction,) = batch.junctions
    v, j = ends_of(batch, junction)
    ds = [d.sequence for d in batch.germline.d][:2]
    model = batch.model
    how = {"pi": model.pi, "most": min(model.max_n, 1 if len(ds) > 1 else 2), "empty_d": model.empty_d}
    assert count_dp1(junction.sequence, v, ds, j, **how) == enumerate_paths(
        junction.sequence, v, ds, j, **how
    )


# It tests what inputs the other tests draw, which changes only with their strategies.
@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_most_drawn_junctions_have_paths(problem: str) -> None:
    """Inputs without any path would prove nothing."""
    with_paths = []

    @settings(max_examples=50, derandomize=True)
    @given(PROBLEMS[problem].inputs)
    def draw(batch: Batch) -> None:
        answer = PROBLEMS[problem].oracle(batch)
        counts = answer["none"] if batch.germline.chain == "vj" else answer["full"]
        with_paths.append(any(char in "123456789" for char in str(counts)))

    draw()
    assert sum(with_paths) > len(with_paths) // 5


@given(sequences(0, 8, codes=True))
def test_the_other_strand(sequence: str) -> None:
    other = reverse_complement(sequence)
    assert reverse_complement(other) == sequence
    assert [choices(symbol) for symbol in other] == [choices(symbol) for symbol in reversed(sequence)]


@given(sequences(0, 6), st.integers(0, 8))
def test_palindromes_mirror_each_other(end: str, pi: int) -> None:
    after = palindrome_after(end, pi)
    assert len(after) == pi
    assert after == reverse_complement(palindrome_before(reverse_complement(end), pi))
    made = end + after
    for p in range(1, min(pi, len(end)) + 1):
        assert made[len(end) : len(end) + p] == reverse_complement(made[len(end) - p : len(end)])
    assert extended_d(end, pi)[pi : pi + len(end)] == end


def test_published_extensions() -> None:
    assert palindrome_after("ACCTG", 3) == "CAG"
    assert palindrome_before("CAAACAC", 2) == "TG"
    assert palindrome_after("AC", 4) == "GT??"


@given(sequences(1, 1, codes=True), sequences(1, 1, codes=True))
def test_symbols_match_if_they_share_a_nucleotide(a: str, b: str) -> None:
    assert alike(a, b) == any(alike(a, letter) and alike(b, letter) for letter in LETTERS)


@pytest.mark.parametrize("symbol", LETTERS + CODES)
def test_a_symbol_matches_each_nucleotide_it_stands_for(symbol: str) -> None:
    assert choices(symbol) == sum(alike(symbol, letter) for letter in LETTERS)
    assert choices(symbol) == sum(letter_counts(symbol, 0, 1).values())
    assert not alike(symbol, "?")


def cuts_of_both_ends(d: str, pi: int, strands: int) -> Counter[str]:
    """Every extension and erosion of both ends of a D gene, one by one; what is left of it."""
    made: Counter[str] = Counter()
    for left, right in itertools.product(range(pi + 1), repeat=2):
        times = (strands if left else 1) * (strands if right else 1)
        extended = palindrome_before(d, left) + d + palindrome_after(d, right)
        for s, t in itertools.combinations(range(len(extended) + 1), 2):
            made[extended[s:t]] += times
    return made


@given(sequences(1, 5), st.integers(0, 3), st.sampled_from((1, 2)))
def test_weights_of_fragments(d: str, pi: int, strands: int) -> None:
    for fragment, ways in cuts_of_both_ends(d, pi, strands).items():
        if "?" not in fragment:
            assert fragment_ways(fragment, d, pi=pi, strands=strands) == ways
