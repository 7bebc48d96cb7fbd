"""Junctions drawn from a model: as often as their probability says, and by the seed alone."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from support.examples import often
from support.recombination import GENETIC_CODE, small_model, ways_of

from plait.dp.chain.sample import next_number
from plait.errors import InvalidInput
from plait.ldpc import code_named
from plait.vdj.germline import load_germline
from plait.vdj.model import GenerationProbability, JunctionSampler


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_frequencies(d: bool) -> None:
    model = small_model(21, d=d, letters=2, most=2)
    n = 200_000
    draws = JunctionSampler(model, seed=5).block(0, n)
    found = Counter(text for text in draws.texts() if len(text) >= 6)
    texts = [text for text, _ in found.most_common(150)]
    expected = GenerationProbability(model, threads=1).compute(texts).pgen * n
    assert expected.min() > 20
    seen = np.array([found[text] for text in texts])
    statistic = float(((seen - expected) ** 2 / expected).sum())
    # Its distribution has mean 150 and deviation 17.3; the seed is fixed.
    assert 150 - 5 * 17.3 < statistic < 150 + 5 * 17.3


@pytest.mark.interpreted
@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_choices_make_the_junction(d: bool) -> None:
    model = small_model(22, d=d)
    # Numbers wrap on purpose; plain Python warns of it.
    with np.errstate(over="ignore"):
        draws = JunctionSampler(model, seed=1).block(0, 60)
    for text, row in zip(draws.texts(), draws.fields.tolist(), strict=True):
        v, gene_d, j, v_cut, d5, d3, j_cut, left, right = row
        cuts = (v_cut, d5, d3, j_cut)
        ways = [(w.v, max(w.d, 0), w.j, w.cuts, w.lengths) for w in ways_of(model, text)]
        assert (v, gene_d, j, cuts, (left, right)) in ways


def test_the_seed_alone_decides() -> None:
    model = small_model(23)
    sampler = JunctionSampler(model, seed=9)
    blocks = [list(islice(sampler.blocks(threads=threads), 3)) for threads in (1, 3)]
    for one, other in zip(*blocks, strict=True):
        assert np.array_equal(one.symbols, other.symbols) and np.array_equal(one.number, other.number)
    whole = sampler.block(0, 300)
    parts = [sampler.block(first, 100) for first in (0, 100, 200)]
    assert whole.texts() == [text for part in parts for text in part.texts()]
    assert JunctionSampler(model, seed=10).block(0, 300).texts() != whole.texts()


@pytest.mark.interpreted(alone=True)
def test_numbers_are_those_of_the_published_generator() -> None:
    state = np.uint64(0)
    with np.errstate(over="ignore"):
        for bits in (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F):
            state, number = next_number(state)
            assert number == (bits >> 11) * 2.0**-53


def test_productive() -> None:
    draws = JunctionSampler(small_model(24, letters=4), seed=2).block(0, 4000)
    for text, productive in zip(draws.texts(), draws.productive.tolist(), strict=True):
        acids = "".join(GENETIC_CODE[text[k : k + 3]] for k in range(0, len(text) // 3 * 3, 3))
        right = len(text) % 3 == 0 and len(text) >= 6 and "*" not in acids
        assert productive == (right and acids[0] == "C" and acids[-1] in "FW")


def test_numbers_that_are_none() -> None:
    model = small_model(1)
    for seed in (-1, 1 << 64):
        with pytest.raises(InvalidInput, match=f"seed: found {seed}"):
            JunctionSampler(model, seed=seed)
    sampler = JunctionSampler(model)
    for first, count, told in ((-1, 3, "first: found -1"), (0, -3, "count: found -3")):
        with pytest.raises(InvalidInput, match=told):
            sampler.block(first, count)


def test_what_is_large_is_shown_in_a_line() -> None:
    for large in (small_model(1), load_germline("human_trb"), code_named("c2")):
        assert repr(large.name) in repr(large) and len(repr(large)) < 300
