"""The nearest-neighbour recurrence in interval rows: against every structure, and cell by cell."""

from __future__ import annotations

import functools
import math
import random
from typing import Any

import numpy as np
import pytest
from support.examples import often
from support.folding import (
    HAIRPINS,
    all_alike,
    cell_by_cell,
    codes_of,
    has_long_loop,
    structures,
    weight_of,
    weights_of,
)

from plait.devices.target import CpuTarget, ReferenceTarget, interpreted
from plait.dp.intervals import launches
from plait.dp.intervals.launches import FoldBatch, Room, Strand, filled, strands_of
from plait.dp.intervals.loops import _SPECIAL, hairpin_weight, inward, pair_type
from plait.dp.intervals.nearest_neighbor import NearestNeighbor
from plait.dp.intervals.rows import (
    Candidates,
    EveryStem,
    Intervals,
    Walk,
    fill_kernel,
)
from plait.dp.intervals.walk import fold_kernel, walk_kernel
from plait.folding.structures import partners_of
from plait.lang.algebras import (
    BIG_COUNT,
    LOG_SUM,
    MaxPlus,
    Optimal,
    Probability,
    SaturatingMaxPlus,
    choice,
)
from plait.lang.lanes import OneLane, lanes_of

BEST = SaturatingMaxPlus(np.float32(-np.inf), np.float32(0))
SUM = Probability(np.float64(0), np.float64(1))


def sequence_of(seed: int, longest: int, shortest: int = 0, letters: str = "ACGU") -> str:
    draw = random.Random(seed)
    return "".join(draw.choices(letters, k=draw.randint(shortest, longest)))


def scores(seed: int, most: int = 60) -> Any:
    drawn = np.random.default_rng(seed)
    # Of odd seeds some interior loops weigh by themselves.
    never = BEST.zero if seed % 2 else None
    return weights_of(lambda shape: drawn.integers(-30, 12, shape).astype(np.float32), most, never)


def factors(seed: int, most: int = 60) -> Any:
    drawn = np.random.default_rng(seed)
    return weights_of(drawn.random, most, 0.0 if seed % 2 else None)


def rows(
    kernel: Any, lanes: Any, sequences: list[str], group: int, choose: Any, rule: Any, alg: Any, weights: Any
) -> tuple[Any, Intervals]:
    batch = FoldBatch(rule, alg, weights, [])
    sweep = Room().sweep(lanes, choose, batch, [Strand(codes_of(one)) for one in sequences], group)
    kernel(sweep._replace(outside=Room().outside(sweep.kept, alg.zero)), False)
    return sweep.strands, sweep.kept


def plain(sequence: str, rule: Any, alg: Any, weights: Any) -> Any:
    return cell_by_cell(rule, alg, weights, strands_of([Strand(codes_of(sequence))], 1, alg.one))


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(6))
def test_every_structure_is_counted_once(seed: int) -> None:
    sequence = sequence_of(seed, 13, letters="ACCGGU")
    rule, weights = NearestNeighbor(1, 1), all_alike(1, 40)
    _, kept = rows(interpreted(fill_kernel), OneLane(), [sequence], 1, EveryStem(), rule, BIG_COUNT, weights)
    assert kept.exterior[0, 0] == sum(1 for _ in structures(sequence))
    assert plain(sequence, rule, BIG_COUNT, weights)[1][0] == kept.exterior[0, 0]


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", often(2, range(4)))
def test_the_best_and_how_many_reach_it(seed: int) -> None:
    sequence = sequence_of(seed, 12, 8, letters="ACCGGU")
    best = MaxPlus(-math.inf, 0)
    alg = Optimal((-math.inf, 0), (0, 1), best, BIG_COUNT)
    drawn = np.random.default_rng(seed)

    def draw(shape: Any) -> Any:
        found = filled(shape, None)
        for at in np.ndindex(*shape):
            found[at] = (int(drawn.integers(-2, 3)), 1)
        return found

    weights, rule = weights_of(draw, 40), NearestNeighbor((-1, 1), (0, 1))
    strands, kept = rows(interpreted(fill_kernel), OneLane(), [sequence], 1, EveryStem(), rule, alg, weights)
    expected = alg.zero
    for pairs in structures(sequence):
        expected = choice(alg, expected, weight_of(pairs, rule, alg, weights, strands))
    assert kept.exterior[0, 0] == expected


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", often(1, range(2)))
def test_long_loops_by_size_are_those_one_by_one(seed: int) -> None:
    sequence = "GCG" + sequence_of(seed, 33, 20, letters="AAAC") + "CGC"
    rule = NearestNeighbor(np.float64(0.5), np.float64(0.9))
    _, kept = rows(interpreted(fill_kernel), OneLane(), [sequence], 1, EveryStem(), rule, SUM, factors(seed))
    closed, exterior = plain(sequence, rule, SUM, factors(seed))
    for (i, j), value in closed.items():
        assert kept.closed[0, kept.starts[i] + j] == pytest.approx(value, rel=1e-12)
    assert kept.exterior[0] == pytest.approx(exterior, rel=1e-12)


@functools.cache
def best_of_prefixes(sequence: str, seed: int) -> list[Any]:
    return plain(sequence, NearestNeighbor(np.float32(-1), np.float32(0)), BEST, scores(seed, 130))[1]


#: Long, with few pairs: the recurrence cell by cell takes its time for each two of them.
LONG = [sequence_of(seed, 120, 100, "AAAAAAACG") for seed in range(2)]


def filled_only(sweep: Any, back: bool) -> None:
    """Rows by the kernel of commands, without the way back."""
    assert not back
    empty = np.full((1, 1), BEST.one), np.empty((3, 1), np.int64), np.empty((1, 1), np.uint8)
    fold_kernel(sweep._replace(outside=()), np.zeros(0, np.int64), *empty)


@pytest.mark.slow
@pytest.mark.parametrize("width", [pytest.param(1, marks=pytest.mark.slow), 16])
def test_best_scores_in_lanes(width: int) -> None:
    rule, weights = NearestNeighbor(np.float32(-1), np.float32(0)), scores(1, 130)
    found = [sequence_of(seed, 36, 24) for seed in range(4)] + [*LONG, "", "GGGAAACCC", "A" * 40]
    for sequence in found:
        _, kept = rows(filled_only, lanes_of(width), [sequence], 1, Candidates(), rule, BEST, weights)
        assert kept.exterior[0].tolist() == best_of_prefixes(sequence, 1)


@pytest.mark.slow
def test_a_sequence_in_each_lane() -> None:
    rule, weights = NearestNeighbor(np.float32(-1), np.float32(0)), scores(5, 130)
    found = [sequence_of(seed, 32) for seed in range(14)] + LONG[:1]
    _, kept = rows(filled_only, lanes_of(16), found, 16, Candidates(), rule, BEST, weights)
    for g, sequence in enumerate(found):
        assert kept.exterior[0, g] == best_of_prefixes(sequence, 5)[0]
    assert kept.exterior[0, 15] == 0


@pytest.mark.slow
def test_sums_in_lanes_and_logarithms() -> None:
    rule, weights = NearestNeighbor(np.float64(0.6), np.float64(1)), factors(3, 130)
    with np.errstate(divide="ignore"):
        logarithms = weights._replace(values=np.log(weights.values))
    found = [sequence_of(seed, 32) for seed in range(7)] + LONG[:1]
    _, kept = rows(fill_kernel, lanes_of(8), found, 8, EveryStem(), rule, SUM, weights)
    alg = LOG_SUM._replace(zero=np.float64(-np.inf), one=np.float64(0))
    for g, sequence in enumerate(found):
        expected = plain(sequence, rule, SUM, weights)[1][0]
        assert kept.exterior[0, g] == pytest.approx(expected, rel=1e-12)
        _, alone = rows(fill_kernel, lanes_of(8), [sequence], 1, EveryStem(), rule, SUM, weights)
        assert alone.exterior[0, 0] == pytest.approx(expected, rel=1e-12)
        log_rule = NearestNeighbor(np.log(rule.unpaired), np.log(rule.outside))
        _, logs = rows(
            interpreted(fill_kernel), OneLane(), [sequence[:24]], 1, EveryStem(), log_rule, alg, logarithms
        )
        expected = plain(sequence[:24], rule, SUM, weights)[1][0]
        assert logs.exterior[0, 0] == pytest.approx(math.log(expected), rel=1e-11)


def walked(
    kernel: Any, sequence: str, rule: Any, alg: Any, weights: Any, kept: Intervals, shares: Any
) -> Any:
    n = len(sequence)
    strands = strands_of([Strand(codes_of(sequence))], 1, alg.one)
    signs = np.empty((1, n), np.uint8)
    left = np.empty((3, n + 2), np.int64)
    filled = Walk(rule, alg, weights, strands, kept)
    kernel(filled, np.array([n]), shares.reshape(1, -1), left, signs)
    return [(i, int(j)) for i, j in enumerate(partners_of(signs.tobytes().decode())) if i < j]


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("seed", often(1, range(8)))
def test_the_way_back_weighs_what_was_found(seed: int) -> None:
    sequence = sequence_of(seed, 45, 30)
    rule, weights = NearestNeighbor(np.float32(-1), np.float32(0)), scores(seed)
    strands, kept = rows(
        interpreted(fill_kernel), OneLane(), [sequence], 1, Candidates(), rule, BEST, weights
    )
    shares = np.zeros(3 * len(sequence) + 8, np.float32)
    pairs = walked(interpreted(walk_kernel), sequence, rule, BEST, weights, kept, shares)
    assert not has_long_loop(pairs)
    assert weight_of(pairs, rule, BEST, weights, strands) == kept.exterior[0, 0]


@pytest.mark.slow
def test_structures_are_drawn_as_often_as_they_weigh() -> None:
    sequence, drawn = "GGCAAAGCAGGAAACC", np.random.default_rng(7)
    rule, weights = NearestNeighbor(np.float64(0.8), np.float64(0.9)), factors(5)
    strands, kept = rows(fill_kernel, lanes_of(8), [sequence], 1, EveryStem(), rule, SUM, weights)
    draws = 8_000
    seen: dict[tuple[Any, ...], int] = {}
    for _ in range(draws):
        pairs = walked(walk_kernel, sequence, rule, SUM, weights, kept, drawn.random(3 * len(sequence) + 8))
        seen[tuple(pairs)] = seen.get(tuple(pairs), 0) + 1
    chi, cells = 0.0, 0
    for pairs in structures(sequence):
        expected = draws * weight_of(pairs, rule, SUM, weights, strands) / kept.exterior[0, 0]
        if expected >= 5:
            chi += (seen.get(tuple(sorted(pairs)), 0) - expected) ** 2 / expected
            cells += 1
    # Five standard deviations of the distribution, about.
    assert cells > 20
    assert chi < cells + 5 * math.sqrt(2 * cells)


@pytest.mark.interpreted
def test_hairpins_with_a_weight_of_their_own() -> None:
    weights = scores(9)
    plain_ones = weights._replace(keys=weights.keys[:, :1])
    for number, hairpin in enumerate(HAIRPINS, 1):
        for sequence, known in ((hairpin, True), (hairpin.replace("AAA", "AUA", 1), False)):
            strands = strands_of([Strand(codes_of(sequence))], 1, BEST.one)
            last = len(sequence) - 1
            row = inward(strands, pair_type(weights, strands, 0, last, 0), 0, last, 0)
            found, other = (
                hairpin_weight(table, strands, BEST, row, 0, last, 0) for table in (weights, plain_ones)
            )
            assert (found != other) == known
            if known:
                assert found == weights.values[0, _SPECIAL + number]


def in_parts(monkeypatch: pytest.MonkeyPatch, columns: int, several: int) -> None:
    monkeypatch.setattr(launches, "_PART", columns)
    monkeypatch.setattr(launches, "_PART_ROWS", several)


@pytest.mark.slow
@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("count", often(1, [2, 3]))
def test_parts_of_a_sequence_are_the_whole(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(launches, "_PART_ROWS", 5)
    size = 40
    sequence, fold = sequence_of(4, size, size, "AAAAACG"), interpreted(fold_kernel)
    batch = FoldBatch(NearestNeighbor(np.float32(-1), np.float32(0)), BEST, scores(3, size), [])
    found = []
    for parts in (1, count):
        room = Room()
        sweep = room.sweep(lanes_of(4), Candidates(), batch, [Strand(codes_of(sequence))], 1)
        if parts > 1:
            sweep = launches._fold_in_parts(fold, room, sweep, parts, parts)
        signs, left = np.empty((1, size), np.uint8), np.empty((3, size + 2), np.int64)
        fold(sweep, np.array([size]), np.full((1, 3 * size + 8), BEST.one), left, signs)
        kept = sweep.kept
        cells = [kept.starts[i] + j for i in range(size) for j in range(i, size)]
        found.append([kept.closed[0, cells], kept.multi[0, cells], kept.exterior[0], signs[0]])
    for one, other in zip(*found, strict=True):
        assert one.tolist() == other.tolist()
    assert found[0][2][0] > 0


@pytest.mark.parametrize("threads", often(1, [2, 5]))
def test_threads_share_a_sequence(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    batch = FoldBatch(NearestNeighbor(np.float32(-1), np.float32(0)), BEST, scores(3, 400), [])
    for seed in range(4):
        one = Strand(codes_of(sequence_of(seed, 400, 300)))
        alone = CpuTarget(1).launch(launches.FOLDS, batch._replace(strands=[one]))[0]
        with monkeypatch.context() as context:
            in_parts(context, 60, 1 + 20 * seed)
            found = CpuTarget(threads).launch(launches.FOLDS, batch._replace(strands=[one]))[0]
        assert found == alone


def test_a_part_that_fails_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fold(sweep: Any, *more: Any) -> None:
        if sweep.part.at == 0 and sweep.part.top < 200:
            raise MemoryError("no more")

    in_parts(monkeypatch, 60, 20)
    batch = FoldBatch(
        NearestNeighbor(np.float32(-1), np.float32(0)), BEST, scores(3, 400), [Strand(codes_of("ACGU" * 90))]
    )
    with pytest.raises(MemoryError, match="no more"):
        launches._fold(fold, batch, CpuTarget(3))


def test_how_far_a_long_sequence_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_LONG", 5)
    table = np.full((1, 101), -np.inf, np.float32)
    with launches._followed(table, 1, BEST.zero), launches._followed(table[:, :4], 1, BEST.zero):
        assert launches.bases_done() == 0
        # The last half of the rows has a quarter of the cells, the first one three quarters.
        table[0, 51:] = 1
        assert launches.bases_done() == pytest.approx(25, abs=1)
        table[0] = np.where(np.arange(101) < 51, 1, -np.inf)
        assert launches.bases_done() == pytest.approx(76, abs=1)
    with launches._followed(table, 2, BEST.zero):
        assert launches.bases_done() == 0


def test_long_sequences_tell_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_LONG", 5)
    seen = []

    def fold(sweep: Any, *more: Any) -> None:
        interpreted(fold_kernel)(sweep, *more)
        seen.append(launches.bases_done())

    batch = FoldBatch(
        NearestNeighbor(np.float32(-1), np.float32(0)), BEST, scores(1), [Strand(codes_of("GGGAAACCC"))]
    )
    launches._fold(fold, batch, ReferenceTarget())
    assert seen == [10]
    assert launches.bases_done() == 0
