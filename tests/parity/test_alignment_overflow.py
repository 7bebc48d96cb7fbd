"""Scores at the limits of 8, 16 and 32 bits: found again in wider lanes, or swept in lanes that hold them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.alignment import best_by_gotoh
from support.alignment_batches import AlignmentBatch, edge_batches
from support.alignment_runs import swept
from support.alignment_solvers import SweepForm, pair_list, solve_pairs
from support.examples import often

from plait.align import score, score_many
from plait.align.batches import block_query
from plait.devices.target import CpuTarget
from plait.dp.pairs.blocks import TargetBlocks, run_blocks
from plait.dp.pairs.inter_sequence import LANE_TYPES, block_setup, score_blocks_kernel, score_some_blocks
from plait.dp.pairs.lists import PairList, make_setup, stretch_limits
from plait.errors import Unsupported
from plait.lang.lanes import host_lanes

INTERPRETED = pytest.param(score_some_blocks, id="reference", marks=pytest.mark.interpreted(alone=True))
CALLS = [INTERPRETED, pytest.param(score_blocks_kernel, id="cpu")]


def matches(
    score: int, *lengths: int, mode: str = "local", costs: tuple[int, int] = (9, 2)
) -> AlignmentBatch:
    """A query of one letter against targets of it; a match is worth `score`."""
    return AlignmentBatch(
        queries=((0,) * max(lengths),) * len(lengths),
        targets=tuple((0,) * length for length in lengths),
        scores=((score, -1), (-1, score)),
        gap_open=costs[0],
        gap_extend=costs[1],
        mode=mode,
    )


def searched(
    batch: AlignmentBatch, call: Callable[..., Any], kinds: tuple[Any, ...] = LANE_TYPES, lanes: int = 64
) -> tuple[list[int], list[tuple[Any, int]]]:
    """Scores of the first query with all targets; the types of lanes that ran, each with its targets."""
    pairs = batch.pairs
    targets = [pairs.targets[k] for k in range(len(pairs))]
    blocks = -(-len(targets) // lanes)
    columns = -(-int(pairs.targets.sizes.max()) // 4) * 4
    packed = np.full((blocks * columns, lanes), 31, np.uint8)
    lengths = np.zeros((blocks, lanes), np.int32)
    for k, codes in enumerate(targets):
        place = k // lanes * columns
        packed[place : place + codes.size, k % lanes] = codes
        lengths[k // lanes, k % lanes] = codes.size
    first = np.arange(blocks + 1, dtype=np.int64) * columns
    ran: list[tuple[Any, int]] = []

    def recorded(setup: Any, packed: Any, columns: Any, lengths: Any, *arguments: Any) -> Any:
        ran.append((setup.border.top.dtype.type, int((lengths > 0).sum())))
        return call(setup, packed, columns, lengths, *arguments)

    query = block_query(pairs.queries[0], batch.scoring, batch.free)
    found = run_blocks(recorded, query, TargetBlocks(packed, first, lengths), 1, lambda cells: None, kinds)
    return found.ravel()[: len(targets)].tolist(), ran


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("score", "lengths", "ran"),
    [
        # Eight bits hold local scores up to 254, sixteen up to 65534; scores of more bits have 32 at once.
        (127, (1, 2), [(np.int8, 2)]),
        (51, (4, 5, 1), [(np.int8, 3), (np.int16, 1)]),
        (50, (5, 6, 2), [(np.int8, 3), (np.int16, 1)]),
        (127, (3, 1, 2, 4), [(np.int8, 4), (np.int16, 2)]),
        (128, (1, 2, 3), [(np.int32, 3)]),
        (32767, (1, 3, 2), [(np.int32, 3)]),
        (5, (50, 51, 49, 52), [(np.int8, 4), (np.int16, 2)]),
    ],
)
def test_local_overflow_is_found_again(
    call: Callable[..., Any],
    score: int,
    lengths: tuple[int, ...],
    ran: list[tuple[Any, int]],
) -> None:
    batch = matches(score, *lengths)
    scores, types = searched(batch, call)
    assert scores == [score * length for length in lengths]
    assert types == ran


def test_two_overflows_of_one_target() -> None:
    # 520 matches of 127 do not fit 16 bits either; of 64 targets and more, some in each block are redone.
    rng = random.Random(1)
    lengths = tuple(rng.choice((1, 2, 3, 200, 516, 517, 520)) for _ in range(150))
    scores, types = searched(matches(127, *lengths), score_blocks_kernel)
    assert scores == [127 * length for length in lengths]
    over = [sum(127 * length >= limit for length in lengths) for limit in (255, 65535)]
    assert types == [(np.int8, 150), (np.int16, over[0]), (np.int32, over[1])]
    assert min(over) > 20


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("mode", often(2, ["local", "global", "semiglobal", "overlap", "extension"]))
def test_every_type_by_itself_is_right_or_refuses(mode: str) -> None:
    answered = set()
    for batch in edge_batches(mode)[::5]:
        one = batch.against(9)
        wanted = [best.score for best in map(best_by_gotoh, one.cases) if best is not None]
        for kind in LANE_TYPES:
            try:
                scores, _ = searched(one, score_some_blocks, (kind,), lanes=host_lanes(8).width)
            except Unsupported:
                continue
            answered.add(kind)
            assert scores == wanted, (kind, batch)
    # Only where alignments end in the last row does the value of one cell tell all.
    none = set() if mode in ("global", "semiglobal") else {np.uint8}
    assert answered == set(LANE_TYPES) - none


@pytest.mark.parametrize("call", CALLS)
def test_what_overflows_the_widest_type_is_refused(call: Callable[..., Any]) -> None:
    batch = matches(127, 1, 3)
    with pytest.raises(Unsupported, match="could reach"):
        searched(batch, call, (np.int8,))
    assert searched(batch.only(0), call, (np.int8,))[0] == [127]


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize(
    ("mode", "score", "costs", "longest", "fits"),
    [
        # A score of every cell must fit: from three gaps down to one match for each residue.
        ("global", 1, (1, 0), 122, np.int8),
        ("global", 1, (1, 0), 123, np.uint8),
        ("global", 2, (9, 2), 24, np.int8),
        ("global", 2, (9, 2), 25, np.uint8),
        # Differences need three gaps and a match in eight bits.
        ("global", 2, (84, 2), 25, np.uint8),
        ("global", 4, (84, 2), 25, np.int16),
        ("global", 127, (9, 2), 60_000, np.uint8),
        ("semiglobal", 2, (9, 2), 25, np.uint8),
        ("extension", 2, (9, 2), 24, np.int8),
        ("overlap", 2, (127, 0), 24, np.int16),
        ("global", 2, (10000, 2), 24, np.int16),
        ("global", 2, (10923, 2), 24, np.int32),
        # Local scores are held at 0, and found again if they do not fit.
        ("local", 1, (1, 0), 70_000, np.int8),
        ("local", 1, (127, 0), 70_000, np.int8),
        ("local", 1, (128, 0), 70_000, np.int16),
        ("local", 32767, (32767, 32767), 65_538, np.int32),
        ("global", 32767, (32767, 32767), 70, np.int32),
    ],
)
def test_the_narrowest_type_that_holds_all(
    mode: str, score: int, costs: tuple[int, int], longest: int, fits: Any
) -> None:
    batch = matches(score, longest, mode=mode, costs=costs)
    query = block_query(batch.pairs.queries[0], batch.scoring, batch.free)
    usable = [kind for kind in LANE_TYPES if block_setup(query, longest, kind) is not None]
    assert usable[0] is fits
    # What fits a type fits wider ones, but for octets of differences, which ask for other things.
    signed, wider = ([kind for kind in kinds if kind is not np.uint8] for kinds in (usable, LANE_TYPES))
    assert signed == wider[-len(signed) :]


@pytest.mark.interpreted(alone=True)
def test_scores_beyond_32_bits_are_refused() -> None:
    # Nothing is computed: what might be reached is known beforehand.
    batch = matches(32767, 3)
    query = block_query(batch.pairs.queries[0], batch.scoring, batch.free)
    query = query._replace(rows=np.zeros(70_000, np.int64))
    assert block_setup(query, 65_538, np.int32) is not None
    assert block_setup(query, 65_539, np.int32) is None

    def setup(residues: int, **how: Any) -> Any:
        codes, starts = np.zeros(residues, np.uint8), np.array([0, residues], np.int64)
        return make_setup(PairList(codes, starts, codes, starts, **({**costs, **how})), keep=False)

    matrix = batch.scoring.matrix.scores
    costs = {"matrix": matrix, "gap_open": 9, "gap_extend": 2, "free": batch.free}
    assert setup(65_000).gap.open == -9
    with pytest.raises(Unsupported, match="2\\^31"):
        setup(65_539)
    # Two gaps are never too dear for a global alignment of pairs that cost more.
    assert setup(65_539, matrix=-matrix).gap.open == -9
    with pytest.raises(Unsupported, match="2\\^31"):
        setup(40_000, gap_open=32767, gap_extend=32767)


def dearest(width: int, score: int, gap_extend: int, columns: int) -> int:
    """The dearest gap with which 16 bits still do."""
    low, high = gap_extend, 32767
    while low < high:
        middle = (low + high + 1) // 2
        fits = stretch_limits(np.int16, width, score, middle, gap_extend, columns) is not None
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def at_the_limits(score: int, gap_extend: int, columns: int, width: int) -> list[AlignmentBatch]:
    """What leads to the largest and the smallest values where 16 bits just do."""
    rng = random.Random(f"{score} {gap_extend}")
    gap_open = dearest(width, score, gap_extend, columns)
    rows = columns + 4 * width
    drawn = tuple(rng.randrange(3) for _ in range(rows))
    zeros, ones = (0,) * rows, (1,) * columns
    moved = drawn[columns // 2 :] + drawn[: columns // 2]
    mismatch = rng.choice((-1, -score - 2 * gap_extend, -32767))
    scores = tuple(tuple(score if a == b else mismatch for b in range(3)) for a in range(3))
    batch = AlignmentBatch(
        queries=(zeros, zeros, drawn, drawn, zeros[:3]),
        targets=(zeros[:columns], ones, drawn[:columns], moved[:columns], ones),
        scores=scores,
        gap_open=gap_open,
        gap_extend=gap_extend,
    )
    free = frozenset(("query_start", "target_end"))
    return [
        batch,
        replace(batch, mode="local"),
        replace(batch, mode="extension"),
        replace(batch, mode="semiglobal", free_ends=free),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("score", "gap_extend"),
    [(1, 0), (1, 160), (5, 1), (120, 20), (300, 0), (330, 2), (200, 60), (0, 165), (340, 0)],
)
def test_anti_diagonals_where_16_bits_just_do(score: int, gap_extend: int) -> None:
    lanes = host_lanes(16)
    form = SweepForm(np.int16, lanes.width, "table16")
    for batch in at_the_limits(score, gap_extend, 64, lanes.width):
        assert batch.gap_open >= gap_extend
        found = solve_pairs(batch, CpuTarget(1), form)
        assert found == [swept(case) for case in batch.cases]
        # Where 16 bits do not, 32 are taken unasked.
        if batch.gap_open < 32767:
            dearer = replace(batch, gap_open=batch.gap_open + 1)
            assert solve_pairs(dearer, CpuTarget(1), form) is None
            assert make_setup(pair_list(dearer), keep=True).gap.open.dtype == np.int32


@pytest.mark.parametrize("mode", ["global", "semiglobal", "overlap", "local"])
def test_targets_of_which_all_are_empty(mode: str) -> None:
    # Of a query so long that eight bits do not hold its score; enough targets for lanes.
    found = score_many("ACGT" * 40, [""] * 20, mode=mode, kind="dna")
    assert set(found) == {score("ACGT" * 40, "", mode=mode, kind="dna")}
