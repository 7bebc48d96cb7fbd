"""Hidden Markov models and graphs on GPUs, or in the simulator, against the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from support.states import random_graph, random_model

from plait.states import decode_each, gpu_states, likelihood_each

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]


@pytest.mark.parametrize(("states", "zeros"), [(1, 0.0), (4, 0.5), (7, 0.0)])
def test_sequences(states: int, zeros: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_states, "_SEQUENCES", 5)
    rng = np.random.default_rng(states)
    model = random_model(rng, states, 3, zeros=zeros)
    sequences = [rng.integers(3, size=n) for n in (0, 9, 1, 30, 12, 13, 2)]
    given = [*sequences, np.log(rng.random((6, states))), np.full((2, states), -np.inf), []]
    found, expected = (decode_each(model, given, device=name) for name in ("cuda", "cpu"))
    assert [one.score for one in found] == [one.score for one in expected]
    assert [one.path.tolist() for one in found] == [one.path.tolist() for one in expected]
    np.testing.assert_allclose(
        likelihood_each(model, given, device="cuda"), likelihood_each(model, given, device="cpu"), rtol=1e-12
    )
    assert decode_each(model, [[], []], device="cuda")[1].path.size == 0


@pytest.mark.parametrize("seed", range(4))
def test_graphs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_states, "_BLOCK", 32)
    monkeypatch.setattr(gpu_states, "_BYTES", 5000)
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 12, 50, 3, empty=0.3)
    given = [-rng.integers(3, size=(n, 4)).astype(float) for n in (6, 0, 3, 1, 5)]
    for beam in (np.inf, 1.0):
        found, expected = (graph.best_paths(given, beam=beam, device=name) for name in ("cuda", "cpu"))
        for one, other in zip(found, expected, strict=True):
            assert one.score == other.score
            assert all(np.array_equal(a, b) for a, b in zip(one[1:], other[1:], strict=True))
    # The CPU keeps the best few.
    assert graph.best_paths(given, most=2, device="cuda")[0].score <= found[0].score
