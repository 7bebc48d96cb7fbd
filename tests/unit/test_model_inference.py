"""Models inferred from junctions: what one iteration makes of expected numbers, and where iterations end."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support.examples import often
from support.recombination import drawn_junctions, probability_of, small_model

from plait.dp.chain.graphs import CodedJunctions, GraphParts
from plait.errors import InvalidInput
from plait.vdj.model import Iteration, JunctionSampler, RecombinationModel, infer_model, uniform_model
from plait.vdj.model.expectations import PIECE, Expectation, most_probable_steps
from plait.vdj.model.inference import observable_model
from plait.vdj.model.junctions import JunctionEncoder
from plait.vdj.model.recombination_model import stationary_distribution

TABLES = ("p_v", "p_dj", "p_v_deletions", "p_d_deletions", "p_j_deletions", "p_vd_length", "p_dj_length")


def batch(model: RecombinationModel, texts: list[str], v: Any = None, j: Any = None) -> Any:
    encoded = JunctionEncoder(model).encode(texts, v, j)
    found: tuple[GraphParts, CodedJunctions] = encoded.parts, encoded.texts
    return found


def drawn(truth: RecombinationModel, count: int, seed: int = 3) -> tuple[list[str], np.ndarray]:
    draws = JunctionSampler(truth, seed=seed).block(0, count)
    kept = draws.length >= 6
    texts = [text for text, long in zip(draws.texts(), kept, strict=True) if long]
    return texts, draws.fields[kept]


def shares(table: np.ndarray, old: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    total = table.sum(axis=axes, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1), old)


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_new_tables_are_shares_of_expected_numbers(d: bool) -> None:
    """Those are tested against all scenarios (``tests/parity/test_expectations.py``)."""
    model = small_model(31, d=d, most=2)
    seen: list[Iteration] = []
    given = batch(model, drawn_junctions(model, 1, 3))
    found = infer_model(model, lambda: [given], iterations=1, threads=1, progress=seen.append)
    axes = {"p_dj": (1, 2), "p_v_deletions": (1,), "p_j_deletions": (1,), "p_d_deletions": (1, 2)}
    for name in TABLES:
        old, counts = getattr(model, name), getattr(seen[0].evidence, name)
        assert getattr(found, name) == pytest.approx(shares(counts, old, axes.get(name, (0,)))), name
    assert seen[0].evidence.p_v.sum() == pytest.approx(3) == pytest.approx(seen[0].evidence.p_dj.sum())
    # Genes that were never seen: no probability, and deletions as before.
    never = seen[0].evidence.p_v == 0
    assert (found.p_v[never] == 0).all()
    assert np.array_equal(found.p_v_deletions[never], model.p_v_deletions[never])


def test_steps_are_where_the_likelihood_of_the_chain_is_highest() -> None:
    rng = np.random.default_rng(4)
    steps, first = rng.uniform(1, 40, (4, 4)), rng.uniform(5, 30, 4)
    uniform, plain = np.full((4, 4), 0.25), shares(steps, steps, (1,))

    def value(chain: np.ndarray) -> float:
        return float((steps * np.log(chain)).sum() + first @ np.log(stationary_distribution(chain)))

    found = most_probable_steps(plain, uniform, steps, first)
    assert found.sum(axis=1) == pytest.approx(np.ones(4))
    assert value(found) > value(plain) > value(uniform)
    # No small change of a row is better.
    for row in range(4):
        for column in range(1, 4):
            moved = np.zeros((4, 4))
            moved[row, column], moved[row, 0] = 1e-4, -1e-4
            assert abs(value(found + moved) - value(found - moved)) < 1e-6
            assert value(found + moved) < value(found)
    # Of short insertions there are more first symbols than steps: the whole of a step then leads too far.
    first *= 20
    found = most_probable_steps(plain, uniform, steps, first)
    for _ in range(50):
        moved = found * np.exp(rng.normal(0, 0.01, (4, 4)))
        assert value(moved / moved.sum(axis=1, keepdims=True)) < value(found)
    assert most_probable_steps(plain, uniform, steps, np.zeros(4)) == pytest.approx(plain)
    assert np.array_equal(most_probable_steps(plain, uniform, 0 * steps, 0 * first), uniform)


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
@pytest.mark.parametrize("calls", often(1, ["some", "none", "all"]))
def test_a_model_is_recovered(d: bool, calls: str) -> None:
    truth = small_model(33, d=d, genes=3, letters=4, zeros=False)
    # None is too short to be taken, which would make those that are taken other ones than the model says.
    few = np.array([0, 0, 0.2, 0.5, 0.3])
    truth = replace(
        truth, p_vd_length=few if d else np.append([0, 0], few), p_dj_length=few if d else np.ones(1)
    )
    texts, fields = drawn(truth, 6_000)
    named: list[Any] = [None, None]
    if calls != "none":
        named = [
            [genes[k].name if calls == "all" or row % 2 else None for row, k in enumerate(fields[:, column])]
            for genes, column in ((truth.v, 0), (truth.j, 2))
        ]
    given = batch(truth, texts, *named)
    seen: list[Iteration] = []
    # No numbers of insertions but those that occur, so that divergences are finite.
    sides = {name: getattr(truth, name) > 0 for name in ("p_vd_length", "p_dj_length")}
    start = replace(uniform_model(truth), **{name: some / some.sum() for name, some in sides.items()})
    found = infer_model(
        start, lambda: [given], iterations=80, tolerance=1e-6, threads=2, progress=seen.append
    )
    logs = [iteration.log_likelihood for iteration in seen]
    assert logs[-1] > max(logs) - 1e-6
    assert [iteration.number for iteration in seen] == list(range(1, len(seen) + 1))
    target = observable_model(truth)
    for name in ("p_v", "p_dj", "p_vd_length"):
        before, after = (np.abs(getattr(m, name) - getattr(target, name)).sum() for m in (start, found))
        assert after < 0.35 * before, name
    # Nothing explains the junctions better than the truth, but for what so few leave open: k / (2 n).
    own: list[Iteration] = []
    infer_model(target, lambda: [given], iterations=1, progress=own.append)
    free = sum((getattr(target, name) > 0).sum() for name in TABLES) + 24
    assert abs(logs[-1] - own[0].log_likelihood) < free / len(texts)
    if calls == "all":
        # With calls, genes are simply counted.
        counts = np.bincount(fields[:, 0], minlength=3) / len(texts)
        assert found.p_v == pytest.approx(counts, abs=1e-12)
        # What is hidden in a junction is known less well than if it were seen: k / (2 n) nats on average.
        # In benchmarks/results/vdj_inference_recovery.txt that is up to 5 times as much for these tables.
        for name, given_by in (
            ("p_v_deletions", target.p_v),
            ("p_j_deletions", target.p_dj.sum(axis=1)[0] if d else target.p_v @ target.p_dj[:, 0]),
            ("p_vd_length", None),
        ):
            one, true = getattr(found, name), getattr(target, name)
            logs_of = np.log(np.where(one > 0, one, 1) / np.where(one > 0, np.maximum(true, 1e-300), 1))
            rows = (one * logs_of).sum(axis=-1)
            apart = float(rows @ given_by) if given_by is not None else float(rows)
            limit = int((true > 0).sum() - rows.size) / (2 * len(texts))
            assert apart < 8 * limit, name


@pytest.mark.slow
@pytest.mark.parametrize("pseudocount", often(1, [0.3, 0.0]))
@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_longer_steps_lead_to_the_same_model_sooner(d: bool, pseudocount: float) -> None:
    truth = small_model(38, d=d, zeros=False)
    given = batch(truth, drawn_junctions(truth, 1, 400))
    start = uniform_model(truth)
    ways: list[list[Iteration]] = []
    for accelerate in (False, True):
        ways.append([])
        infer_model(
            start,
            lambda: [given],
            iterations=400,
            tolerance=1e-6,
            pseudocount=pseudocount,
            accelerate=accelerate,
            progress=ways[-1].append,
        )
    plain, longer = ways
    assert len(longer) < 0.8 * len(plain)
    if not pseudocount:
        assert all(b.log_likelihood > a.log_likelihood - 1e-12 for a, b in pairwise(plain))
        assert longer[-1].log_likelihood > plain[-1].log_likelihood - 1e-5
    for name in ("p_vd_length", "vd_steps"):
        ours, theirs = (getattr(way[-1].model, name) for way in (longer, plain))
        assert ours == pytest.approx(theirs, abs=0.02), name
    # What is impossible stays so, and distributions add up to 1.
    for name, axes in truth.distributions().items():
        table = getattr(longer[-1].model, name)
        assert np.allclose(table.sum(axis=axes), getattr(plain[-1].model, name).sum(axis=axes))
        assert not table[getattr(start, name) == 0].any()


@pytest.mark.slow
def test_the_end() -> None:
    """Iterations end with the gain that is asked for, or after as many as are allowed."""
    truth = small_model(37, zeros=False)
    given = batch(truth, drawn_junctions(truth, 1, 300))
    seen: list[Iteration] = []
    infer_model(uniform_model(truth), lambda: [given], tolerance=1e-3, progress=seen.append)
    logs = [iteration.log_likelihood for iteration in seen]
    assert len(logs) > 3 and logs[-1] - logs[-2] < 1e-3 <= logs[-2] - logs[-3]
    seen.clear()
    infer_model(uniform_model(truth), lambda: [given], iterations=2, tolerance=0, progress=seen.append)
    assert len(seen) == 2


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_threads_and_batches_change_nothing(d: bool) -> None:
    model = small_model(34, d=d)
    texts = drawn_junctions(model, 1, 50) * 200
    halves = [batch(model, texts[: 2 * PIECE]), batch(model, texts[2 * PIECE :])]
    one = infer_model(model, lambda: [batch(model, texts)], iterations=2, threads=1)
    other = infer_model(model, lambda: halves, iterations=2, threads=3)
    assert one.digest == other.digest


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_going_on_from_counts_gives_the_same_bits(d: bool) -> None:
    model = small_model(38, d=d)
    texts = drawn_junctions(model, 1, 60)
    first, second = batch(model, texts[:35]), batch(model, texts[35:])
    whole, part, rest = (Expectation(model, 1) for _ in range(3))
    for given in (first, second):
        whole.add(*given)
    part.add(*first)
    kept = {name: table.copy() for name, table in part.counts().items()}
    part.add(*second)
    # What was handed out does not change with what is added.
    rest.restore(kept)
    rest.add(*second)
    for name, table in whole.counts().items():
        assert np.array_equal(table, rest.counts()[name]), name
        assert np.array_equal(table, part.counts()[name]), name
    assert whole.model().digest == rest.model().digest
    assert (whole.junctions, whole.log_likelihood()) == (rest.junctions, rest.log_likelihood())
    with pytest.raises(InvalidInput, match="those of the model"):
        Expectation(uniform_model(model)).restore(kept)
    with pytest.raises(InvalidInput, match="counts of v"):
        rest.restore({**kept, "v": kept["v"][1:]})
    with pytest.raises(InvalidInput, match="none"):
        rest.restore({name: table for name, table in kept.items() if name != "junctions"})


def test_weights_are_repeats() -> None:
    model = small_model(39)
    texts = drawn_junctions(model, 1, 5)
    often, listed = Expectation(model, 1), Expectation(model, 1)
    often.add(*batch(model, texts), np.array([3, 1, 0, 2, 1]))
    listed.add(*batch(model, [texts[k] for k in (0, 0, 0, 1, 3, 3, 4)]))
    assert often.junctions == listed.junctions == 7
    assert often.log_likelihood() == pytest.approx(listed.log_likelihood(), rel=1e-12)
    for a, b in zip(often.evidence(), listed.evidence(), strict=True):
        assert a == pytest.approx(b, rel=1e-12)


def test_impossible_junctions_do_not_count() -> None:
    model = small_model(35)
    texts = drawn_junctions(model, 1, 4)
    seen: list[Iteration] = []
    end = next(letter for letter in "ACGT" if all(g.sequence[2] != letter for g in model.v))
    given = batch(model, [*texts, end * 12])
    found = infer_model(model, lambda: [given], iterations=1, progress=seen.append)
    assert (seen[0].junctions, seen[0].impossible) == (4, 1)
    assert found.digest == infer_model(model, lambda: [batch(model, texts)], iterations=1).digest
    with pytest.raises(InvalidInput, match="none of 1 that"):
        infer_model(model, lambda: [batch(model, [end * 12])])
    with pytest.raises(InvalidInput, match="none of 0 that"):
        infer_model(model, list)


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_hardly_possible_is_impossible(d: bool) -> None:
    """Numbers stay finite where one over the probability of a junction would not be."""
    model = small_model(44, d=d, zeros=False)
    texts, fields = drawn(model, 400)
    named = [model.v[k].name for k in fields[:, 0]]
    expected = Expectation(replace(model, p_v=np.array([1.0, 1e-307])), 1)
    expected.add(*batch(model, texts, named))
    assert expected.impossible == (fields[:, 0] == 1).sum() > 0 < expected.junctions
    assert all(np.isfinite(table).all() for table in expected.evidence())


@pytest.mark.parametrize("wrong", [{"tolerance": -1.0}, {"pseudocount": float("nan")}, {"iterations": 0}])
def test_wrong_numbers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        infer_model(small_model(35), list, **wrong)


def test_pseudocounts_keep_what_is_possible() -> None:
    model = uniform_model(small_model(40, genes=3))
    given = batch(model, drawn_junctions(small_model(40, genes=3), 1, 2))
    plain, more = (infer_model(model, lambda: [given], iterations=1, pseudocount=p) for p in (0.0, 0.5))
    for name in (*TABLES, "vd_steps", "dj_steps"):
        possible = getattr(model, name) > 0
        assert ((getattr(more, name) > 0) == possible).all(), name
    assert (plain.p_v == 0).any()
    expected = shares(2 * plain.p_v + 0.5, model.p_v, (0,))
    assert more.p_v == pytest.approx(expected)


def test_a_warm_start_goes_on_where_it_was() -> None:
    truth = small_model(41, zeros=False)
    given = batch(truth, drawn_junctions(truth, 1, 200))
    start = uniform_model(truth)
    plain: dict[str, Any] = {"tolerance": 0, "accelerate": False}
    whole = infer_model(start, lambda: [given], iterations=6, **plain)
    half = infer_model(start, lambda: [given], iterations=3, **plain)
    assert infer_model(half, lambda: [given], iterations=3, **plain).digest == whole.digest
    # What is impossible at the start stays impossible.
    never = replace(start, p_v=np.array([1.0, 0.0]))
    assert infer_model(never, lambda: [given], iterations=2).p_v.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_uniform_models(d: bool) -> None:
    model = small_model(42, d=d, genes=3)
    genes = (replace(model.v[0], function="P"), replace(model.v[1], anchor=None), model.v[2])
    model = replace(model, v=genes)
    assert uniform_model(model).p_v.tolist() == [0, 0, 1]
    anchored = uniform_model(model, genes="anchored")
    assert anchored.p_v.tolist() == [0.5, 0, 0.5]
    # Every deletion that leaves something is as probable as the others; a gene without anchor has none.
    for k, table in enumerate(anchored.p_v_deletions):
        possible = np.arange(table.size) < len(model.extended("V", k))
        assert table == pytest.approx(possible / max(possible.sum(), 1))
    assert anchored.p_dj.shape == ((1, 3, 3) if d else (3, 1, 3))
    assert np.unique(anchored.p_dj).size == 1


@pytest.mark.slow
@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_observable_models_make_the_same_junctions(d: bool) -> None:
    model = small_model(43, d=d)
    if d:
        # More is deleted than there is, of one gene more often than of the other.
        impossible = np.zeros_like(model.p_d_deletions)
        impossible[:, -1, -1] = 0.6, 0.2
        kept = 1 - impossible.sum(axis=(1, 2), keepdims=True)
        model = replace(model, p_d_deletions=kept * model.p_d_deletions + impossible)
    seen = observable_model(model)
    texts = drawn_junctions(model, 1, 6)
    before, after = ([probability_of(m, [text]) for text in texts] for m in (model, seen))
    ratio = np.array(after) / np.array(before)
    assert ratio == pytest.approx(np.full(6, ratio[0]), rel=1e-9) and ratio[0] >= 1
    draws = JunctionSampler(model, seed=1).block(0, 20_000)
    assert draws.length.size / 20_000 == pytest.approx(1 / ratio[0], abs=0.015)
