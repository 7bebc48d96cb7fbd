"""Oracles of hidden Markov models and graphs: every path, by definition; random graphs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.states import Graph, HiddenMarkovModel


def random_model(
    rng: np.random.Generator, states: int, symbols: int, *, zeros: float = 0.0
) -> HiddenMarkovModel:
    """A model whose tables are random, some entries being zero."""

    def table(*shape: int) -> NDArray[np.float64]:
        found = rng.random(shape) * (rng.random(shape) >= zeros)
        found[..., 0] += 1e-3
        return np.asarray(found / found.sum(axis=-1, keepdims=True))

    return HiddenMarkovModel(table(states), table(states, states), table(states, symbols))


def all_paths(model: HiddenMarkovModel, symbols: list[int]) -> dict[tuple[int, ...], float]:
    """Probability of each path of states together with the symbols."""
    assert model.emissions is not None
    found = {}
    for path in itertools.product(range(len(model.start)), repeat=len(symbols)):
        p = model.start[path[0]] * model.emissions[path[0], symbols[0]]
        for a, b, symbol in zip(path, path[1:], symbols[1:], strict=False):
            p *= model.transitions[a, b] * model.emissions[b, symbol]
        found[path] = float(p)
    return found


def random_graph(
    rng: np.random.Generator, states: int, arcs: int, labels: int, *, empty: float = 0.1
) -> Graph:
    """A graph; arcs without label go from states to later ones. Weights are whole numbers: there are ties."""
    ends = rng.integers(states, size=(arcs, 2))
    inputs = rng.integers(1, labels + 1, arcs)
    free = (rng.random(arcs) < empty) & (ends[:, 0] < ends[:, 1])
    table = np.column_stack([ends, np.where(free, 0, inputs), rng.integers(0, 5, arcs)])
    final = {int(s): float(-rng.integers(3)) for s in rng.choice(states, max(1, states // 2), replace=False)}
    return Graph(0, table, -rng.integers(4, size=arcs).astype(float), final)


def accepted(graph: Graph, frames: NDArray[np.float64]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Score and arcs of every accepted path."""

    def onward(
        s: int, t: int, score: float, path: tuple[int, ...]
    ) -> Iterator[tuple[float, tuple[int, ...]]]:
        if t == len(frames) and graph.final.get(s, -math.inf) > -math.inf:
            yield score + graph.final[s], path
        for a in np.flatnonzero(graph.arcs[:, 0] == s).tolist():
            _, to, label, _ = graph.arcs[a].tolist()
            if label == 0:
                yield from onward(to, t, score + float(graph.weights[a]), (*path, a))
            elif t < len(frames):
                yield from onward(
                    to, t + 1, score + float(graph.weights[a] + frames[t, label - 1]), (*path, a)
                )

    return onward(graph.start, 0, 0.0, ())


def peer(model: HiddenMarkovModel) -> Any:
    """The model in hmmlearn."""
    from hmmlearn import hmm

    assert model.emissions is not None
    found = hmm.CategoricalHMM(len(model.start))
    found.startprob_, found.transmat_, found.emissionprob_ = model.start, model.transitions, model.emissions
    found.n_features = model.emissions.shape[1]
    return found
