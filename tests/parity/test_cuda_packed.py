"""Scores in packed lanes, on a device or in the simulator, against a plain search."""

from __future__ import annotations

import importlib.util
import itertools
import re
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'plait[cuda13]'", allow_module_level=True)

from support.cuda_build import ptx_of
from support.cuda_examples import examples_of

from plait.align.batches import CodeList, PairSweep
from plait.align.scoring import make_scoring
from plait.align.sweeps import LOCAL
from plait.devices.cuda import SIMULATED, cuda
from plait.devices.cuda_devices import SlotArrays
from plait.devices.target import CpuTarget
from plait.dp.pairs.gpu_packed import (
    GAP,
    PADDING_LETTER,
    PackedQuery,
    PackedTargets,
    Shape,
    cleared,
    longest_span,
    packed_bytes,
    packed_scores,
    pieces_of,
    scores_in_shape,
    search_kernel,
    shape_of,
    shared_bytes,
    striped_kernel,
)
from plait.errors import InvalidInput, Unsupported

on_either = [pytest.mark.cuda_simulator, pytest.mark.gpu]


def score(query: Any, target: Any, table: Any, gap_open: int, gap_extend: int) -> int:
    """Best local score, as the definition says it."""
    h = [0] * (len(query) + 1)
    e = [-(10**9)] * (len(query) + 1)
    best = 0
    for letter in target:
        f, diag = -(10**9), 0
        for i, own in enumerate(query, 1):
            value = max(0, diag + int(table[own, letter]), e[i], f)
            diag, h[i] = h[i], value
            e[i], f = max(e[i] - gap_extend, value - gap_open), max(f - gap_extend, value - gap_open)
            best = max(best, value)
    return best


def some_table(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    table = rng.integers(-5, 4, (32, 32))
    table[np.arange(32), np.arange(32)] = rng.integers(4, 9, 32)
    return table


def some_targets(seed: int, query: Any, lengths: list[int], letters: int = 5) -> tuple[Any, Any]:
    """Codes and offsets; every other target has a part of the query."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, letters, length).astype(np.uint8) for length in lengths]
    for target in codes[::2]:
        part = query[: target.size]
        target[: part.size] = part
        if part.size > 9:
            target[5:-2] = target[7:].copy()
    return np.concatenate([*codes, np.zeros(0, np.uint8)]), np.cumsum([0, *lengths])


def on_device(codes: Any, offsets: Any) -> PackedTargets:
    """Targets with memory of their own."""
    memory = SlotArrays()
    return PackedTargets(memory.upload("codes", codes), offsets, memory)


def check(
    shape: Shape | None, query: Any, targets: tuple[Any, Any], table: Any, costs: tuple[int, int]
) -> None:
    codes, offsets = targets
    # The query twice, and between them one of the same shape.
    queries = [query, query[::-1].copy(), query]
    out = cuda.to_device(np.full((3, max(offsets.size - 1, 1)), 7, np.int32))[:, : offsets.size - 1]
    forms, held = [PackedQuery(own, table, *costs) for own in queries], on_device(codes, offsets)
    if shape is None:
        packed_scores(forms, held, out)
    elif shape.stripes == 1:
        scores_in_shape(shape, forms, held, out, ([0, 1, 2], cleared(out, held)), block=64)
    else:
        counters = cleared(out, held)
        for number in range(3):
            scores_in_shape(shape, forms[number : number + 1], held, out, ([number], counters), block=64)
    for own, found in zip(queries, out.copy_to_host(), strict=True):
        ends = itertools.pairwise(offsets)
        want = np.array([score(own, codes[a:b], table, *costs) for a, b in ends], np.int32)
        assert np.array_equal(np.minimum(found, 2048), np.minimum(want, 2048))


class TestScores:
    pytestmark = on_either

    @pytest.mark.parametrize(
        ("shape", "length"),
        [
            (Shape(8, 4, 1), 31),
            (Shape(8, 12, 1), 90),
            (Shape(16, 4, 1), 50),
            (Shape(32, 4, 1), 101),
            (Shape(32, 4, 2), 160),
            (Shape(8, 4, 3), 90),
        ],
        ids=str,
    )
    def test_random(self, shape: Shape, length: int) -> None:
        query = np.random.default_rng(length).integers(0, 5, length).astype(np.uint8)
        lengths = [17, 1, 30, 0, 22]
        check(shape, query, some_targets(length, query, lengths), some_table(length), (5, 1))

    def test_stripes_of_several_bundles(self) -> None:
        query = np.random.default_rng(4).integers(0, 4, 40).astype(np.uint8)
        check(Shape(8, 4, 2), query, some_targets(5, query, [6, 4, 9] * 7, 4), some_table(6), (5, 1))

    @pytest.mark.parametrize(
        "costs", [(0, 0), (3, 0), (0, 3), (2, 7), (5000, 1), (1, 5000), (40_000, 40_000)], ids=str
    )
    def test_costs(self, costs: tuple[int, int]) -> None:
        query = np.random.default_rng(1).integers(0, 4, 20).astype(np.uint8)
        check(Shape(8, 4, 1), query, some_targets(2, query, [25, 8, 14], 4), some_table(3), costs)

    @pytest.mark.parametrize("most", [2047, 2048, 2049])
    def test_scores_at_the_limit(self, most: int) -> None:
        table = np.full((32, 32), -3000)
        table[0, 0], table[1, 1] = 89, most - 89 * 6
        query = np.array([0, 0, 0, 1, 0, 0, 0], np.uint8)
        codes = np.concatenate([query, query[:3], query[3:], [30, 31]]).astype(np.uint8)
        check(Shape(8, 4, 1), query, (codes, np.array([0, 7, 10, 14, 16])), table, (11, 1))

    @pytest.mark.parametrize("huge", [5000, 100_000])
    def test_huge_scores(self, huge: int) -> None:
        table = np.full((32, 32), -huge)
        table[2, 2] = huge
        query = np.array([1, 2, 3], np.uint8)
        check(
            Shape(8, 4, 1), query, (np.array([1, 2, 3, 1, 3], np.uint8), np.array([0, 3, 5])), table, (11, 1)
        )

    def test_values_beyond_the_limit_stay_there(self) -> None:
        table = np.full((32, 32), -1)
        table[0, 0] = 900
        query = np.array([0] * 6 + [1] * 6, np.uint8)
        codes = np.array([0] * 6 + [2] * 8, np.uint8)
        check(Shape(8, 4, 1), query, (codes, np.array([0, 14])), table, (11, 1))

    def test_no_targets_and_no_query(self) -> None:
        nothing = np.zeros(0, np.uint8)
        check(None, np.array([1], np.uint8), (nothing, np.array([0])), some_table(1), (11, 1))
        check(None, nothing, (np.array([1, 2], np.uint8), np.array([0, 1, 2])), some_table(1), (11, 1))

    def test_the_usual_way(self) -> None:
        query = np.random.default_rng(5).integers(0, 5, 9).astype(np.uint8)
        check(None, query, some_targets(6, query, [9, 12]), some_table(7), (11, 1))

    def test_pieces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cuts = pieces_of(np.array([60, 9]), 9, 16, least=8)
        assert len(cuts[0]) > 2
        assert cuts[1] == 1
        monkeypatch.setattr("plait.dp.pairs.gpu_packed.pieces_of", lambda *args: cuts)
        query = np.random.default_rng(8).integers(0, 4, 7).astype(np.uint8)
        targets = some_targets(9, query, [60, 58, 60, 51, 60, 33, 9, 8, 9], 4)
        check(Shape(8, 4, 1), query, targets, some_table(10), (4, 4))

    def test_layout(self) -> None:
        codes = np.arange(1, 7, dtype=np.uint8)
        held = on_device(codes, np.array([0, 1, 4, 6]))
        letters = held.layout[0].copy_to_host().reshape(-1, 4)
        pad = PADDING_LETTER
        assert letters.shape[0] == held.columns == 3 * GAP + 3
        assert (letters[:GAP] == pad | pad << 8).all()
        assert (letters[GAP + 3 :] == pad | pad << 8).all()
        assert letters[GAP : GAP + 3, 0].tolist() == [2 | 5 << 8, 3 | 6 << 8, 4 | pad << 8]
        assert letters[GAP : GAP + 3, 1].tolist() == [1 | pad << 8, pad | pad << 8, pad | pad << 8]
        assert held.layout[3].copy_to_host().tolist() == [1, 2, 0]


class TestReal:
    pytestmark = pytest.mark.gpu

    @pytest.mark.parametrize(
        ("shape", "length"),
        [
            (Shape(8, 44, 1), 352),
            (Shape(16, 40, 1), 633),
            (Shape(32, 44, 1), 1408),
            (Shape(8, 40, 4), 1250),
            (Shape(32, 40, 2), 2500),
        ],
        ids=str,
    )
    def test_lengths_like_proteins(self, shape: Shape, length: int) -> None:
        rng = np.random.default_rng(length)
        lengths = np.exp(rng.normal(5.6, 0.7, 3000)).astype(np.int64)
        lengths[7], lengths[11] = 35_213, 12_000
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        codes = rng.integers(0, 20, offsets[-1], dtype=np.uint8)
        query = rng.integers(0, 20, length, dtype=np.uint8)
        for start, end in zip(offsets[:-1:5], offsets[1::5], strict=False):
            part = query[int(rng.integers(0, length)) :][: end - start]
            codes[start : start + part.size] = part
        # What spans the cuts of a long target.
        codes[offsets[7] + 20_000 :][: query.size] = query
        scoring = make_scoring(None, 11, 1, kind="protein")
        table = np.full((32, 32), -4)
        table[: len(scoring.matrix.scores), : len(scoring.matrix.scores)] = scoring.matrix.scores
        sweep = PairSweep(scoring=scoring, free=LOCAL, target=CpuTarget())
        want = sweep.score_many(query, CodeList(codes, offsets))
        out, held = cuda.device_array((1, lengths.size), np.int32), on_device(codes, offsets)
        scores_in_shape(shape, [PackedQuery(query, table, 11, 1)], held, out, ([0], cleared(out, held)))
        assert np.array_equal(np.minimum(out.copy_to_host()[0], 2048), np.minimum(want, 2048))


class TestPlan:
    @pytest.mark.parametrize("length", [1, 31, 64, 65, 352, 353, 1408, 1409, 5000, 50_000])
    @pytest.mark.parametrize("targets", [1, 500, 500_000])
    def test_a_shape_holds_the_query(self, length: int, targets: int) -> None:
        shape = shape_of(length, targets, 350 * targets, 2112)
        assert shape.threads * shape.rows * shape.stripes >= length
        assert (shape.threads * shape.rows) * (shape.stripes - 1) < length
        assert shared_bytes(shape) <= 113 << 10

    @pytest.mark.slow
    @pytest.mark.skipif(SIMULATED, reason="nothing is compiled in the CUDA simulator")
    @pytest.mark.parametrize("make", [search_kernel, striped_kernel])
    def test_the_largest_shape_fits_a_block_of_every_device(self, make: Any) -> None:
        """99 KiB on GeForce, A10, L4 and others (8.6, 8.9, 12.0): profile and what the kernel has besides."""
        kernel = make(32, 44)
        arguments = examples_of(make(8, 40 if make is striped_kernel else 44))[0]
        ptx = ptx_of(kernel, arguments, (8, 6))
        own = sum(map(int, re.findall(r"\.shared .*\[(\d+)\];", ptx)))
        assert own + shared_bytes(Shape(32, 44, 2)) <= 99 << 10

    def test_many_targets_take_the_fewest_threads(self) -> None:
        assert shape_of(352, 500_000, 352 * 500_000, 2112) == Shape(8, 44, 1)
        assert shape_of(352, 100, 352 * 100, 2112).threads == 32

    @pytest.mark.parametrize("lengths", [[35_000, 20_000, 9_000, 400], [400] * 50, [100_000]])
    def test_pieces_overlap_and_cover(self, lengths: list[int]) -> None:
        span = 900
        pieces, whole = pieces_of(np.array(lengths), span, 64)
        for unit, length in enumerate(lengths[:whole]):
            own = sorted(pieces[pieces[:, 0] == unit, 1:].tolist())
            assert own[0][0] == 0
            assert own[-1][0] + own[-1][1] == length
            assert all(a + n >= b + span for (a, n), (b, _) in itertools.pairwise(own))
            # Whatever ends in a piece after the overlap begins in it.
            assert max(n for _, n in own) < length
        assert sorted({*pieces[:, 0].tolist()}) == list(range(whole))

    def test_spans(self) -> None:
        assert longest_span(100, 500, 11, 1) == 100 + 499
        assert longest_span(100, 500, 11, 2) == 100 + 249
        assert longest_span(100, 0, 11, 1) == 100
        assert longest_span(100, 500, 11, 0) is None

    def test_bytes_grow_with_everything(self) -> None:
        assert packed_bytes(10, 1000, 100) < packed_bytes(10, 2000, 100) < packed_bytes(10, 2000, 5000)
        assert packed_bytes(10, 2000, 100) < packed_bytes(2000, 2000, 100)


class TestQueries:
    def test_gaps_that_are_worth_something(self) -> None:
        table = some_table(1)
        assert not PackedQuery(np.zeros(3, np.uint8), table, -1, 1).possible
        assert not PackedQuery(np.zeros(3, np.uint8), table, 1, -1).possible
        assert PackedQuery(np.zeros(3, np.uint8), table, 0, 0).possible

    def test_letters_without_a_row(self) -> None:
        with pytest.raises(InvalidInput, match="query: found a letter above 31"):
            PackedQuery(np.array([32], np.uint8), some_table(1), 11, 1)

    def test_targets_that_make_no_sense(self) -> None:
        nothing: Any = None
        with pytest.raises(InvalidInput, match="offsets: found a smaller one after a larger one"):
            PackedTargets(nothing, np.array([0, 4, 2]), nothing)
        with pytest.raises(InvalidInput, match=f"targets: found {1 << 30} residues, expected fewer"):
            PackedTargets(nothing, np.array([0, 1 << 30]), nothing)

    def test_a_query_that_packed_lanes_cannot_hold(self) -> None:
        query = PackedQuery(np.zeros(3, np.uint8), some_table(1), -1, 1)
        nothing: Any = None
        with pytest.raises(Unsupported, match="gaps that are worth something"):
            packed_scores([query], nothing, nothing)
