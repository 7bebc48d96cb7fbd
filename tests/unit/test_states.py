from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.states import accepted, all_paths, random_graph, random_model

from plait.devices.target import CpuTarget, interpreted
from plait.errors import FormatError, InvalidInput
from plait.lang.lanes import lanes_of
from plait.states import (
    Graph,
    HiddenMarkovModel,
    decode,
    decode_each,
    decoding,
    fit,
    graphs,
    likelihood,
    likelihood_each,
    paths,
    posterior,
    ties,
)

seeds = st.integers(0, 2**32)


@given(seeds, st.integers(1, 3), st.integers(1, 5), st.sampled_from([0.0, 0.4]))
def test_all_answers_are_those_of_all_paths(seed: int, states: int, frames: int, zeros: float) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, states, 3, zeros=zeros)
    symbols = rng.integers(3, size=frames).tolist()
    every = all_paths(model, symbols)
    total, best = math.fsum(every.values()), max(every.values())
    found = decode(model, symbols)
    assert paths(model, symbols) == sum(p > 0 for p in every.values())
    if total == 0:
        assert found.score == likelihood(model, symbols) == -math.inf and ties(model, symbols) == 0
        assert found.path[-1] == -1 and np.isnan(posterior(model, symbols)).all()
        return
    assert found.score == pytest.approx(math.log(best), rel=1e-12)
    assert every[tuple(found.path.tolist())] == pytest.approx(best, rel=1e-12)
    assert likelihood(model, symbols) == pytest.approx(math.log(total), rel=1e-12, abs=1e-12)
    shares = np.zeros((frames, states))
    for path, p in every.items():
        shares[np.arange(frames), path] += p / total
    assert posterior(model, symbols) == pytest.approx(shares, abs=1e-12)
    assert ties(model, symbols) >= 1


def test_of_equal_paths_the_first_states_are_taken_and_all_counted() -> None:
    even = HiddenMarkovModel([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]])
    symbols = [0, 1] * 10
    assert decode(even, symbols).path.tolist() == [0] * 20
    assert ties(even, symbols) == 2**20 and ties(even, symbols * 10) == 2**200
    assert paths(even, symbols * 20) == 2**400
    assert paths(even, []) == 1 and likelihood(even, []) == 0 and decode(even, []).path.size == 0


@pytest.mark.parametrize("states", [4, 7, 8, 16, 17])
def test_of_equal_ways_the_first_is_taken_alone_and_beside_others(states: int) -> None:
    rng = np.random.default_rng(states)
    # Many sums are equal.
    model = HiddenMarkovModel(np.full(states, 1 / states), np.full((states, states), 1 / states))
    frames = -rng.integers(3, size=(50, states)).astype(float)
    start, steps, _ = model.logs
    values, ways = start + frames[0], []
    for row in frames[1:]:
        reached = values[:, None] + steps
        ways.append(reached.argmax(axis=0))
        values = reached.max(axis=0) + row
    path = [int(values.argmax())]
    for way in reversed(ways):
        path.insert(0, int(way[path[0]]))
    alone = decode(model, frames)
    assert alone.score == values.max() and alone.path.tolist() == path
    beside = decode_each(model, [frames, frames[:20], frames], device="cpu", threads=1)
    assert [beside[k].path.tolist() for k in (0, 2)] == [path, path] and beside[0].score == alone.score
    assert np.array_equal(beside[1].path, decode(model, frames[:20]).path)


@pytest.mark.slow
@pytest.mark.parametrize("states", [3, 8, 11, 17])
def test_lanes_blocks_and_definitions_agree(states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    model = random_model(rng, states, 4, zeros=0.3)
    symbols = rng.integers(4, size=60)
    found, log = decode(model, symbols), likelihood(model, symbols)
    for lanes, run in (
        (lanes_of, lambda own: own),
        (lanes_of, interpreted),
        (lambda _: lanes_of(1), interpreted),
    ):
        monkeypatch.setattr(decoding, "lanes_of", lanes)
        # Of a model with the lanes of before.
        decoding._kept.cache_clear()
        monkeypatch.setattr(decoding, "_HELD", 16 * 8 * 7)
        batch = decoding._batch(model, [symbols, symbols[:33], symbols[:1]], decoding._BEST)
        alone, shorter, first = decoding._decode_groups(run(decoding.decode_states), batch, CpuTarget(1))
        assert alone.score == found.score and np.array_equal(alone.path, found.path)
        assert np.array_equal(shorter.path, decode(model, symbols[:33]).path) and first.path.size == 1
        monkeypatch.setattr(decoding, "_HELD", 8 * 7)
        batch = decoding._batch(model, [symbols], decoding._BEST)
        (single,) = decoding._decode_groups(run(decoding.decode_states), batch, CpuTarget(1))
        assert single.score == found.score and np.array_equal(single.path, found.path)
        batch = decoding._batch(model, [symbols, symbols[:33]], decoding._SUM)
        summed = decoding._sum_groups(run(decoding.sweep_states), batch, CpuTarget(1))
        assert summed[0] == pytest.approx(log, rel=1e-14)


def test_what_is_too_improbable_for_numbers_is_told_by_logarithms() -> None:
    model = HiddenMarkovModel([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]])
    frames = np.array([[0.0, -800.0], [-900.0, 0.0], [0.0, 0.0]])
    # Either state is all but impossible in one of the frames.
    assert likelihood(model, frames) == pytest.approx(math.log(0.5) - 800, rel=1e-14)
    assert posterior(model, frames)[0] == pytest.approx([math.exp(-100), 1.0], rel=1e-9)


def test_fitting_grows_the_likelihood_and_finds_the_model() -> None:
    truth = HiddenMarkovModel([0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], [[0.8, 0.15, 0.05], [0.1, 0.2, 0.7]])
    rng = np.random.default_rng(1)
    sequences = []
    assert truth.emissions is not None
    for _ in range(20):
        states = [int(rng.integers(2))]
        for _ in range(499):
            states.append(int(rng.choice(2, p=truth.transitions[states[-1]])))
        sequences.append([int(rng.choice(3, p=truth.emissions[s])) for s in states])
    begin = HiddenMarkovModel([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]], [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    seen: list[int] = []
    found = fit(begin, sequences, iterations=60, threads=2, progress=lambda n, log: seen.append(n))
    logs = found.log_likelihoods
    assert all(b > a - 1e-6 for a, b in itertools.pairwise(logs)) and seen[-1] == len(logs)
    assert found.model.transitions == pytest.approx(truth.transitions, abs=0.02)
    assert found.model.emissions == pytest.approx(truth.emissions, abs=0.03)
    assert fit(begin, sequences[:3], iterations=3, threads=1).log_likelihoods == pytest.approx(
        fit(begin, sequences[:3], iterations=3, threads=3).log_likelihoods, rel=1e-14
    )


def test_models_go_to_files_and_come_from_hmmlearn(tmp_path: Path) -> None:
    model = HiddenMarkovModel(
        [1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0, 1]], ("in", "out"), ("a", "b")
    )
    model.write(tmp_path / "m.json")
    again = HiddenMarkovModel.read(tmp_path / "m.json")
    assert again.states == ("in", "out") and again.symbols == ("a", "b")
    assert np.array_equal(again.transitions, model.transitions)
    assert decode(again, "abb").path.tolist() == decode(model, ["a", "b", "b"]).path.tolist() == [0, 1, 1]
    taken = HiddenMarkovModel.of_hmmlearn(SimpleNamespace(startprob_=[1.0], transmat_=[[1.0]]))
    assert taken.emissions is None and likelihood(taken, [[-1.0], [-2.0]]) == -3.0


def test_hmmlearn_agrees() -> None:
    pytest.importorskip("hmmlearn", reason="hmmlearn is a peer, not a dependency")
    from support.states import peer

    rng = np.random.default_rng(2)
    for states in (2, 9, 33):
        model = random_model(rng, states, 5)
        symbols = rng.integers(5, size=400)
        theirs = peer(model)
        score, _ = theirs.decode(symbols[:, None])
        assert decode(model, symbols).score == pytest.approx(score, rel=1e-9)
        assert likelihood(model, symbols) == pytest.approx(theirs.score(symbols[:, None]), rel=1e-9)
        assert posterior(model, symbols) == pytest.approx(theirs.predict_proba(symbols[:, None]), abs=1e-9)


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        (([0.5, 0.4], [[1, 0], [0, 1]]), "start, row 0: found the sum 0.9, expected 1"),
        (([0.5, 0.5], [[1, 0], [0.5, 1]]), "transitions, row 1: found the sum 1.5"),
        (([0.5, 0.5], [[1, 0]]), "transitions: found an array (1, 2), expected 2 x 2"),
        (([0.5, 0.5], [[1, 0], [-1, 2]]), "transitions: found something else, expected probabilities"),
        (([1.0], [["x"]]), "transitions: found no table of numbers"),
        (([1.0], [[1.0]], [[1.0]], ("a", "b")), "states: found 2 different names, expected 1"),
    ],
)
def test_bad_models(tables: tuple[object, ...], text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        HiddenMarkovModel(*tables)  # type: ignore[arg-type]
    assert text in str(caught.value)
    names = ("start", "transitions", "emissions", "states")
    (tmp_path / "m.json").write_text(json.dumps(dict(zip(names, tables, strict=False))))
    with pytest.raises(FormatError) as read:
        HiddenMarkovModel.read(tmp_path / "m.json")
    assert text.split(":")[0] in str(read.value) and "m.json" in str(read.value)


@pytest.mark.parametrize(
    ("observations", "text"),
    [
        ([0, 7], "found 7, symbol 2, expected one of 0, 1"),
        ("0x", "found x, symbol 2"),
        ([[0.0, 0.0, 0.0]], "found (1, 3), expected (frames, 2) numbers below infinity"),
        ([[math.nan, 0.0]], "numbers below infinity"),
    ],
)
def test_bad_observations(observations: object, text: str) -> None:
    model = HiddenMarkovModel([1.0, 0.0], [[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InvalidInput) as caught:
        decode(model, observations)  # type: ignore[arg-type]
    assert text in str(caught.value)


@given(seeds, st.integers(1, 5), st.integers(0, 4), st.integers(1, 14))
def test_graphs_are_searched_as_by_all_paths(seed: int, states: int, frames: int, arcs: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, states, arcs, 3)
    weights = -rng.integers(3, size=(frames, 3)).astype(float)
    every = list(accepted(graph, weights))
    found = graph.best_path(weights)
    assert graph.paths(weights) == len(every)
    if not every:
        assert found.score == graph.log_sum(weights) == -math.inf and not found.arcs.size
        return
    assert found.score == max(score for score, _ in every)
    assert (found.score, tuple(found.arcs.tolist())) in every
    labels = graph.arcs[found.arcs]
    assert found.outputs.tolist() == [k for k in labels[:, 3].tolist() if k]
    assert found.frames[labels[:, 2] > 0].tolist() == list(range(frames))
    assert graph.log_sum(weights) == pytest.approx(np.logaddexp.reduce([s for s, _ in every]), rel=1e-12)
    assert graph.best_path(weights, beam=1e9, most=states).arcs.tolist() == found.arcs.tolist()


def test_a_model_is_not_changed_by_what_it_was_made_of() -> None:
    given = np.array([[0.9, 0.1], [0.1, 0.9]])
    model = HiddenMarkovModel([0.5, 0.5], given, given)
    found = decode(model, [0, 0, 1, 1, 1])
    given[:] = 0.5
    again = decode(model, [0, 0, 1, 1, 1])
    assert again.score == found.score and again.path.tolist() == found.path.tolist() == [0, 0, 1, 1, 1]
    for table in (model.transitions, *model.logs):
        with pytest.raises(ValueError, match="read-only"):
            table[0, ...] = 1.0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda own: pickle.loads(pickle.dumps(own))])
def test_copies_of_models_cannot_be_written_to_either(copied: Any) -> None:
    model = HiddenMarkovModel([0.5, 0.5], np.eye(2), np.eye(2), ("a", "b"), ("x", "y"))
    for own in (model, HiddenMarkovModel([1.0], [[1.0]])):
        assert len(own.logs) == 3
        found = copied(own)
        assert found.states == own.states and found.symbols == own.symbols
        assert "logs" not in vars(found) and not found.transitions.flags.writeable
        assert all(map(np.array_equal, found.probabilities, own.probabilities))


def test_tokens_are_dropped_and_paths_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 40, 160, 5)
    weights = rng.normal(size=(300, 5))
    found = graph.best_path(weights)
    narrow = graph.best_path(weights, beam=3.0, most=10)
    assert -math.inf < narrow.score <= found.score
    monkeypatch.setattr(graphs, "_TOKENS", 1)
    for path, again in (
        (found, graph.best_path(weights)),
        (narrow, graph.best_path(weights, beam=3.0, most=10)),
    ):
        assert again.score == path.score and np.array_equal(again.arcs, path.arcs)
    monkeypatch.setattr(graphs, "_MOST_TOKENS", 0)
    with pytest.raises(InvalidInput, match="frames: found over 160 ways, expected fewer of them, a beam"):
        graph.best_path(weights)
    for name in ("sweep_arcs", "keep_tokens"):
        monkeypatch.setattr(graphs, name, interpreted(getattr(graphs, name)))
    for name, size in (("_MOST_TOKENS", 1 << 30), ("_SEATS", 50), ("_TOGETHER", 3)):
        monkeypatch.setattr(graphs, name, size)
    again = graph.best_path(weights[:40], beam=3.0, most=10)
    monkeypatch.undo()
    assert np.array_equal(graph.best_path(weights[:40], beam=3.0, most=10).arcs, again.arcs)


def test_the_best_states_are_kept_whatever_their_order() -> None:
    """A fan of states: as many as are kept are the best, of equal ones the first."""
    scores = np.array([0.0, -1, -1, -2, -1, 0, -3, -1])
    fan = [[0, s + 1, 1, 0] for s in range(8)] + [[s + 1, 9, 2, s + 1] for s in range(8)]
    late = np.concatenate([scores, -scores * 10])
    graph = Graph(0, np.array(fan), late, {9: 0.0})
    for most, best in ((8, 7), (7, 4), (4, 2), (2, 1)):
        # What is worst at first is best in the end, unless it has been dropped.
        assert graph.best_path(np.zeros((2, 2)), most=most).outputs.tolist() == [best]


def test_of_values_as_near_as_can_be_as_many_as_asked_for_are_kept() -> None:
    arcs = [(0, k, 1, k) for k in (1, 2, 3, 4)] + [(k, 5, 1, 0) for k in (1, 2, 3, 4)]
    graph = Graph(0, arcs, [0.0, -1e-310, -2e-310, -5.0, 0.0, 0.0, 9.0, 0.0], {5: 0.0})
    found = [graph.best_path(np.zeros((2, 1)), most=most).outputs.tolist() for most in (1, 3, 4)]
    assert found == [[1], [3], [3]]


def test_graphs_from_text(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("0 1 1 3 0.5\n0 1 2 4\n\n1 2 0 0 1\n2 0.25\n1\n")
    graph = Graph.read(tmp_path / "g.txt")
    found = graph.best_path([[0.0, -9.0]])
    assert (found.score, found.outputs.tolist(), graph.states, graph.labels) == (-0.5, [3], 3, 2)
    assert graph.paths([[0.0, 0.0]]) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1 1 1 x\n1\n", "line 1: found '0 1 1 1 x'"),
        ("0 1 1\n1\n0 -1 1 1\n", "line 3"),
        ("", "an empty file"),
        ("0 1 1 1\n", "weights: none"),
        ("0 1 0 0\n1 0 0 0\n1\n", "a circle without input labels"),
        ("0 1 1 1 nan\n", "line 1"),
    ],
)
def test_bad_graphs(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text(text)
    with pytest.raises(FormatError) as caught:
        Graph.read(tmp_path / "g.txt")
    assert said in str(caught.value)


def test_bad_frames() -> None:
    graph = Graph(0, np.array([[0, 0, 3, 0]]), np.zeros(1), {0: 0.0})
    with pytest.raises(InvalidInput, match=r"found an array \(1, 2\), expected \(frames, 3 or more labels\)"):
        graph.best_path(np.zeros((1, 2)))
    with pytest.raises(InvalidInput, match="beam: found -1, expected at least 0"):
        graph.best_path(np.zeros((1, 3)), beam=-1)
    for frames in ([["x"]], [[1, 2], [3]], np.zeros((1, 3), complex)):
        with pytest.raises(InvalidInput, match="frames: found no table of numbers, expected one"):
            graph.best_path(frames)
    with pytest.raises(InvalidInput, match="arcs: found no table of whole numbers, expected one"):
        Graph(0, [[0, 0, 1.5, 0]], [0.0], {0: 0.0})
    with pytest.raises(InvalidInput, match="observations: found no table of numbers, expected one"):
        decode(HiddenMarkovModel([1.0], [[1.0]]), np.full((1, 1), "x"))


@pytest.mark.parametrize("sequences", [[], ["01", ""], [np.empty((0, 2))]])
def test_nothing_to_fit(sequences: list[object]) -> None:
    model = HiddenMarkovModel([1.0, 0.0], [[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InvalidInput, match="sequences: found none, or one without frames"):
        fit(model, sequences)  # type: ignore[arg-type]


@pytest.mark.parametrize("run", [decode_each, likelihood_each, fit])
def test_a_text_is_one_sequence_and_several_come_from_anywhere(run: Any) -> None:
    model = HiddenMarkovModel([1.0, 0.0], [[0.5, 0.5], [0, 1]], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InvalidInput, match="sequences: found a text, expected several of them"):
        run(model, "0110")
    given, told = ["0110", "01"], run(model, (text for text in ["0110", "01"]))
    assert str(told) == str(run(model, given))


def test_letters_and_names_are_found_alike() -> None:
    names = ("C", "long", "", "é", "A", "\U0001f600")
    model = HiddenMarkovModel([1.0], [[1.0]], [[1 / 6] * 6], symbols=names)
    text = "CAéA\U0001f600C"
    assert model.codes(text).tolist() == model.codes([*text]).tolist() == [0, 4, 3, 4, 5, 0]
    assert model.codes(["A", "", "C"]).tolist() == [4, 2, 0]
    assert model.codes(["A", "", "long"]).tolist() == [4, 2, 1]
    assert model.codes(np.array([*text])[::2]).tolist() == [0, 3, 5]
    for wrong in ("CB", "C\uffff", "C\ud800"):
        with pytest.raises(InvalidInput, match="symbol 2, expected one of C, long"):
            model.codes(wrong)


def test_sequences_that_cannot_be() -> None:
    model = HiddenMarkovModel([1.0, 0.0], [[1, 0], [0, 1]], [[1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(InvalidInput, match="sequences, 1: found an impossible one"):
        fit(model, ["00", "01"], threads=1)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@given(seeds, st.integers(1, 9), st.integers(1, 30), st.sampled_from([0.0, 0.5]))
def test_each_of_many_sequences_is_found_as_alone(
    device: str, seed: int, states: int, count: int, zeros: float
) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, states, 3, zeros=zeros)
    # Symbols, names and logarithms in one batch; frames of none.
    sequences: list[object] = [rng.integers(3, size=n).tolist() for n in rng.integers(0, 9, count)]
    sequences += ["0120", np.log(rng.random((4, states))), np.full((2, states), -math.inf)]
    found = decode_each(model, sequences, device=device, threads=1)  # type: ignore[arg-type]
    logs = likelihood_each(model, sequences, device=device, threads=2)  # type: ignore[arg-type]
    for one, own, log in zip(sequences, found, logs, strict=True):
        alone = decode(model, one)  # type: ignore[arg-type]
        assert own.score == alone.score and own.path.tolist() == alone.path.tolist()
        assert log == likelihood(model, one)  # type: ignore[arg-type]
