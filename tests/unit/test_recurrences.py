"""Recurrences, stepped by hand over a short text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles import alike
from support.strategies import sequences

from plait.dp.chain.insertions import Insertion, Occurrences, insert, keep, start
from plait.lang.algebras import BIG_COUNT, MAX_PRODUCT, PROBABILITY

pytestmark = pytest.mark.interpreted(alone=True)

Rows = list[list[float]]


def levels_of(alg: object, entered: Rows, weights: Sequence[float]) -> Rows:
    """Levels at every position; ``weights[i]`` is that of the nucleotide before position i + 1."""
    levels = len(entered[0])
    rows: Rows = []
    for i, row in enumerate(entered):
        before = [alg.zero, *rows[i - 1][:-1]] if i else [alg.zero] * levels
        weight = weights[i - 1] if i else alg.one
        rows.append([insert(Insertion(levels), alg, row[k], before[k], weight) for k in range(levels)])
    return rows


def product(values: Sequence[float]) -> float:
    made = 1.0
    for value in values:
        made *= value
    return made


TEXTS = st.lists(st.integers(1, 4), max_size=7)


@given(TEXTS, st.integers(1, 5))
def test_the_same_weight_at_every_level_means_at_most(weights: list[int], levels: int) -> None:
    ends = [3 * i % 5 for i in range(len(weights) + 1)]
    found = levels_of(BIG_COUNT, [[end] * levels for end in ends], weights)
    for i in range(len(ends)):
        for k in range(levels):
            wanted = sum(ends[j] * product(weights[j:i]) for j in range(max(0, i - k), i + 1))
            assert found[i][k] == wanted


@given(TEXTS, st.integers(1, 5))
def test_a_weight_at_level_0_only_means_exactly(weights: list[int], levels: int) -> None:
    ends = [1 + i % 3 for i in range(len(weights) + 1)]
    found = levels_of(BIG_COUNT, [[end] + [0] * (levels - 1) for end in ends], weights)
    for i in range(len(ends)):
        for k in range(levels):
            assert found[i][k] == (ends[i - k] * product(weights[i - k : i]) if k <= i else 0)


@given(TEXTS)
def test_falling_weights_make_a_length_distribution(weights: list[int]) -> None:
    shares = [0.5, 0.25, 0.125, 0.125]
    ends = [2.0 ** -(i % 3) for i in range(len(weights) + 1)]
    entered = [[end * share for share in reversed(shares)] for end in ends]
    total = levels_of(PROBABILITY, entered, weights)
    best = levels_of(MAX_PRODUCT, entered, weights)
    for i in range(len(ends)):
        ways = [ends[i - n] * shares[n] * product(weights[i - n : i]) for n in range(min(i, 3) + 1)]
        assert total[i][-1] == sum(ways)
        assert best[i][-1] == max(ways)


@given(sequences(1, 9, codes=True), sequences(1, 6, codes=True))
def test_occurrences(fragment: str, text: str) -> None:
    automaton = Occurrences((1 << len(fragment)) - 1)
    state = start(automaton)
    for read in range(1, len(text) + 1):
        places = sum(1 << s for s, symbol in enumerate(fragment) if alike(symbol, text[read - 1]))
        state = keep(automaton, state, places, read - 1)
        wanted = {s for s in range(len(fragment) - read + 1) if alike(fragment[s : s + read], text[:read])}
        assert {s for s in range(len(fragment)) if state >> s & 1} == wanted


def test_only_given_starts_are_followed() -> None:
    assert start(Occurrences(0b101)) == 0b101
    assert keep(Occurrences(0b101), 0b101, 0b110, 1) == 0b001


def test_the_published_table_of_occurrences() -> None:
    # GAAATCCT against AAT: how often each stretch of one, two and three symbols occurs.
    text, fragment = "GAAATCCT", "AAT"
    counts: list[list[int]] = [[], [], []]
    for a in range(len(text)):
        state = start(Occurrences(0b111))
        for read, symbol in enumerate(text[a : a + 3]):
            places = sum(1 << s for s in range(3) if fragment[s] == symbol)
            state = keep(Occurrences(0b111), state, places, read)
            counts[read].append(state.bit_count())
    assert counts == [[0, 2, 2, 2, 1, 0, 0, 1], [0, 1, 1, 1, 0, 0, 0], [0, 0, 1, 0, 0, 0]]
