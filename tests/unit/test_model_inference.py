"""Expected numbers of choices, and models inferred from junctions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from plait.errors import Unsupported
from plait.schedules.text_graphs import GraphParts, WeightedTexts
from plait.testing.recombination import Way, drawn_junctions, small_model, ways_of
from plait.vdj.model import Iteration, JunctionSampler, RecombinationModel, infer_model, uniform_model
from plait.vdj.model.end_shapes import model_shapes
from plait.vdj.model.texts import encode_texts


def batch(model: RecombinationModel, texts: list[str]) -> tuple[GraphParts, WeightedTexts]:
    encoded, shapes = encode_texts(pa.array(texts), "nt"), model_shapes(model)
    n = len(texts)
    first, roots = np.arange(n + 1), np.zeros(n, np.int32)
    v, j = roots + shapes.v.together, roots + shapes.j.together
    return encoded.parts, WeightedTexts(encoded.codes, encoded.start, encoded.length, first, v, first, j)


def shares(table: np.ndarray, old: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    total = table.sum(axis=axes, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1), old)


@pytest.mark.interpreted
def test_one_iteration_is_the_mean_over_all_scenarios() -> None:
    """Expectation maximisation says: the new tables are the posterior means of the choices."""
    model = small_model(31, most=2)
    texts = drawn_junctions(model, 1, 3)
    found = infer_model(model, lambda: [batch(model, texts)], iterations=1, threads=1)
    counts = {name: np.zeros_like(getattr(model, name)) for name in vars(model) if name.startswith("p_")}
    for text in texts:
        ways = [way for way in ways_of(model, text) if way.probability > 0]
        whole = sum(way.probability for way in ways)
        for way in ways:
            share, (x, s, t, y) = way.probability / whole, way.cuts
            counts["p_v"][way.v] += share
            counts["p_dj"][0, way.d, way.j] += share
            counts["p_v_deletions"][way.v, x] += share
            counts["p_j_deletions"][way.j, y] += share
            counts["p_d_deletions"][way.d, s, t] += share
            counts["p_vd_length"][way.lengths[0]] += share
            counts["p_dj_length"][way.lengths[1]] += share
    axes = {"p_dj": (1, 2), "p_v_deletions": (1,), "p_j_deletions": (1,), "p_d_deletions": (1, 2)}
    for name, table in counts.items():
        expected = shares(table, getattr(model, name), axes.get(name, (0,)))
        assert getattr(found, name) == pytest.approx(expected, rel=1e-10, abs=1e-15), name


def test_expected_steps_are_derivatives() -> None:
    """How often a step was used is its value times the derivative of the log-likelihood by it."""
    model = small_model(32, most=3, zeros=False)
    texts = drawn_junctions(model, 2, 3)
    found = infer_model(model, lambda: [batch(model, texts)], iterations=1, threads=1)

    ways = [(text, list(ways_of(model, text))) for text in texts]

    def log_likelihood(steps: np.ndarray) -> float:
        return sum(np.log(sum(weight_of(model, way, text, steps) for way in found)) for text, found in ways)

    counts = np.zeros((4, 4))
    for a in range(4):
        for b in range(4):
            # Three points around are exact enough: the likelihood is smooth here.
            h = 1e-5 * model.vd_steps[a, b]
            up, down = model.vd_steps.copy(), model.vd_steps.copy()
            up[a, b] += h
            down[a, b] -= h
            counts[a, b] = model.vd_steps[a, b] * (log_likelihood(up) - log_likelihood(down)) / (2 * h)
    expected = shares(counts, model.vd_steps, (1,))
    seen = counts.sum(axis=1) > 1e-9
    assert found.vd_steps[seen] == pytest.approx(expected[seen], rel=1e-5, abs=1e-8)


def weight_of(model: RecombinationModel, way: Way, text: str, steps: np.ndarray) -> float:
    """A scenario's probability with other steps between V and D; the first nucleotide stays as it was."""
    begin = len(model.extended("V", way.v)) - way.cuts[0]
    codes = ["ACGT".index(letter) for letter in text[begin : begin + way.lengths[0]]]
    found = way.probability
    for a, b in pairwise(codes):
        found *= steps[a, b] / model.vd_steps[a, b]
    return found


def test_a_model_is_recovered() -> None:
    truth = small_model(33, letters=4, most=3, zeros=False)
    draws = JunctionSampler(truth, seed=3).block(0, 10_000)
    texts = [text for text in draws.texts() if len(text) >= 6]
    given = batch(truth, texts)
    seen: list[Iteration] = []
    start = uniform_model(truth)
    found = infer_model(start, lambda: [given], iterations=15, threads=2, progress=seen.append)
    logs = [iteration.log_likelihood for iteration in seen]
    assert all(b > a - 1e-12 for a, b in pairwise(logs))
    assert [iteration.number for iteration in seen] == list(range(1, 16))
    for name in ("p_v", "p_vd_length"):
        before, after = (np.abs(getattr(m, name) - getattr(truth, name)).sum() for m in (start, found))
        assert after < 0.35 * before, name
    # Nothing explains the junctions better than the truth, but for what 10,000 leave open.
    own: list[Iteration] = []
    infer_model(truth, lambda: [given], iterations=1, progress=own.append)
    assert logs[-1] > own[0].log_likelihood - 2e-3


def test_threads_and_batches_change_nothing() -> None:
    model = small_model(34)
    texts = drawn_junctions(model, 1, 50) * 200
    halves = [batch(model, texts[:8192]), batch(model, texts[8192:])]
    one = infer_model(model, lambda: [batch(model, texts)], iterations=1, threads=1)
    other = infer_model(model, lambda: halves, iterations=1, threads=3)
    assert one.digest == other.digest


def test_impossible_junctions_do_not_count() -> None:
    model = small_model(35)
    texts = drawn_junctions(model, 1, 4)
    seen: list[Iteration] = []
    end = next(letter for letter in "ACGT" if all(g.sequence[2] != letter for g in model.v))
    given = batch(model, [*texts, end * 12])
    found = infer_model(model, lambda: [given], iterations=1, progress=seen.append)
    assert (seen[0].junctions, seen[0].impossible) == (4, 1)
    assert found.digest == infer_model(model, lambda: [batch(model, texts)], iterations=1).digest


def test_chains_without_d_are_refused() -> None:
    model = replace(small_model(36, d=False))
    with pytest.raises(Unsupported, match="without D"):
        infer_model(model, list)
