"""What a search holds on a GPU at a time: pure numbers, no device."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.devices.cuda_target import CudaTarget
from plait.dp.pairs import gpu_search
from plait.dp.pairs.blocks import sweep_shape
from plait.dp.pairs.gpu_search import (
    TILE,
    SearchPlan,
    plan_search,
    shares_in_turn,
    shares_of,
    tiles_of,
    wide_warps,
)
from plait.errors import DeviceMemoryError

GIGA = 1 << 30


@pytest.mark.parametrize("free", [16 << 20, GIGA, 80 * GIGA, 140 * GIGA])
def test_slots_fit_the_free_memory(free: int) -> None:
    plan = plan_search(free)
    assert plan.slots * (plan.bytes + 2 * plan.piece) <= free
    assert 0 < plan.residues <= plan.bytes and plan.piece % 64 == 0


def test_too_little_memory() -> None:
    with pytest.raises(DeviceMemoryError, match="device='cpu'"):
        plan_search(1000)


@given(
    st.lists(st.lists(st.integers(0, 300), min_size=4, max_size=4), min_size=1, max_size=30),
    st.integers(3492, 9000),  # four targets of 300 residues fit
    st.integers(100, 5000),
)
def test_shares_hold_all_blocks_in_order(lengths: list[list[int]], room: int, residues: int) -> None:
    blocks = np.array(lengths, np.int32)
    plan = SearchPlan(3, room, 64, residues)
    shares = shares_of(blocks, plan, lambda count, total: count)
    assert [first for first, _ in shares] == [0, *(last for _, last in shares[:-1])]
    assert shares[-1][1] == len(blocks)
    for first, last in shares:
        own = blocks[first:last]
        assert 2 * own.sum() + 273 * (own > 0).sum() <= room
        assert last == first + 1 or own.sum() <= residues


@given(
    st.lists(st.lists(st.integers(1, 300), min_size=4, max_size=4), min_size=1, max_size=200),
    st.integers(300, 50_000),
    st.integers(1, 4),
)
def test_devices_get_shares_of_like_sizes(lengths: list[list[int]], residues: int, devices: int) -> None:
    blocks = np.array(lengths, np.int32)
    plan = SearchPlan(3, 1 << 30, 64, residues)
    with patch.multiple(gpu_search, _FIRST_RESIDUES=1000, _LEAST_RESIDUES=300):
        shares = shares_of(blocks, plan, lambda count, total: count, devices)
    assert [first for first, _ in shares] == [0, *(last for _, last in shares[:-1])]
    assert shares[-1][1] == len(blocks)
    sizes = blocks.sum(axis=1)
    own = [int(sizes[first:last].sum()) for first, last in shares]
    for number, (first, last) in enumerate(shares):
        assert last == first + 1 or own[number] <= min(residues, 1000 << number // devices)
        others = own[number // devices * devices]
        # All devices are done at about the same time, but the last share may be what is left.
        assert own[number] <= others + sizes.max()
        assert own[number] >= others - sizes.max() or number + 1 == len(shares)


@given(
    st.lists(st.lists(st.integers(0, 300), min_size=4, max_size=4), min_size=1, max_size=200),
    st.integers(300, 50_000),
    st.integers(1, 4),
)
def test_small_shares_of_the_middle_are_sent_first(
    lengths: list[list[int]], residues: int, devices: int
) -> None:
    blocks = np.array(lengths, np.int32)
    plan = SearchPlan(3, 1 << 30, 64, residues)
    with patch.multiple(gpu_search, _FIRST_RESIDUES=1000, _LEAST_RESIDUES=300):
        shares = shares_in_turn(blocks, plan, lambda count, total: count, devices)
    # All blocks are there, once.
    ordered = sorted(shares)
    assert [first for first, _ in ordered] == [0, *(last for _, last in ordered[:-1])]
    assert ordered[-1][1] == len(blocks)
    edges = np.append(0, np.cumsum(blocks.sum(axis=1)))
    assert (shares == ordered) == (shares[0][0] == 0)
    if edges[-1] > 2000 * devices:
        first, last = shares[0]
        assert edges[first] <= edges[-1] // 2 <= edges[last]
        assert last == first + 1 or edges[last] - edges[first] <= 1000


def test_a_block_that_does_not_fit() -> None:
    plan = SearchPlan(3, 1000, 64, 1000)
    with pytest.raises(DeviceMemoryError, match="too little memory"):
        shares_of(np.full((3, 64), 20), plan, lambda count, total: 0)


@pytest.mark.parametrize(
    ("chosen", "columns", "stripes", "most", "expected"),
    [
        (3, 100, 1, 0, 3),
        (10_000, 100, 1, 0, 132 * 24),
        (10_000, 1000, 2, 8000 * 21, 16),
        (10_000, 1000, 2, 8000 * 3, 3),
        (2, 1000, 2, 1 << 40, 2),
    ],
)
def test_warps_of_the_wide_kernel(chosen: int, columns: int, stripes: int, most: int, expected: int) -> None:
    assert wide_warps(132, chosen, columns, stripes, most) == expected


def test_a_row_that_does_not_fit() -> None:
    with pytest.raises(DeviceMemoryError, match="too little memory"):
        wide_warps(132, 1, 1000, 2, 7999)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=20), st.integers(0, 1000))
def test_tiles_cover_all_columns(widths: list[int], start: int) -> None:
    first_columns = start + np.concatenate([[0], np.cumsum(4 * np.array(widths))])
    tiles = tiles_of(first_columns)
    seen = []
    sizes = np.diff(tiles.rows)
    for row, size, block, column in zip(tiles.rows, sizes, tiles.blocks, tiles.columns, strict=False):
        assert 0 < size <= TILE and row == first_columns[block] + column
        seen += list(range(row, row + size))
    assert seen == list(range(first_columns[0], first_columns[-1]))
    assert tiles.rows[-1] == first_columns[-1]


def test_more_devices_get_more_tasks() -> None:
    few, many = (sweep_shape(CudaTarget(range(count), 1)).tasks or 0 for count in (1, 4))
    assert many == 4 * few > 4
