"""The most probable scenarios are the first ones of all scenarios in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples, often
from support.recombination import drawn_junctions, probability_of, small_model, ways_of

from plait.errors import InvalidInput
from plait.vdj.model import ScenarioFinder

pytestmark = pytest.mark.interpreted


@examples(12)
@given(seed=st.integers(0, 1 << 30), d=st.booleans(), count=st.integers(1, 30))
def test_the_best_of_all(seed: int, d: bool, count: int) -> None:
    model = small_model(seed, d=d)
    finder = ScenarioFinder(model)
    for text in drawn_junctions(model, seed, 2):
        ways = sorted((way.probability for way in ways_of(model, text) if way.probability > 0), reverse=True)
        best = finder.best(text, count)
        assert [s.probability for s in best] == pytest.approx(ways[:count], rel=1e-12)
        known = {(w.v, w.d, w.j, w.cuts, w.lengths): w.probability for w in ways_of(model, text)}
        for s in best:
            low, high = (s.d_start - s.v_end, s.j_start - s.d_end)
            palindromes = model.palindromes
            deletions = (s.v_deletion, s.d5_deletion, s.d3_deletion, s.j_deletion)
            cuts = tuple(x + p for x, p in zip(deletions, palindromes, strict=True))
            lengths = (low, high) if d else (s.j_start - s.v_end, 0)
            assert known[s.v, s.d, s.j, cuts, lengths] == pytest.approx(s.probability, rel=1e-12)


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_all_of_them_add_up(d: bool) -> None:
    model = small_model(41, d=d)
    finder = ScenarioFinder(model)
    for text in drawn_junctions(model, 1, 5):
        scenarios = finder.best(text, 1 << 20)
        values = [s.probability for s in scenarios]
        assert sum(values) == pytest.approx(probability_of(model, [text]), rel=1e-12)
        assert np.all(np.diff(values) <= 0)
        ours = sum(s.probability for s in finder.best(text, 1 << 20, v=[0], j=[1]))
        assert ours == pytest.approx(probability_of(model, [text], [0], [1]), rel=1e-12)
        assert finder.best(text, 3) == scenarios[:3]


def test_wrong_requests() -> None:
    finder = ScenarioFinder(small_model(42))
    with pytest.raises(InvalidInput, match="count"):
        finder.best("ACGTAC", 0)
    with pytest.raises(InvalidInput, match="junction"):
        finder.best("ACGNAC")
    assert finder.best("ACGTAC", v=[], j=[0]) == []
