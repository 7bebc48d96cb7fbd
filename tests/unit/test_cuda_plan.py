"""Work is cut into batches that fit, in order, whole, and no smaller than they need be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.devices.cuda_memory import Plan, plan
from plait.errors import DeviceMemoryError

GIB = 1 << 30


def room_of(free: int, fixed: int) -> int:
    """What a plan may fill."""
    return free - max(free // 16, min(256 << 20, free // 2)) - fixed


@given(
    sizes=st.lists(st.integers(0, 5000), max_size=60),
    free=st.integers(0, 60_000),
    fixed=st.integers(0, 3000),
    most=st.none() | st.integers(1, 20),
    least=st.integers(1, 30),
    slots=st.integers(1, 4),
    uniform=st.booleans(),
)
def test_batches_are_whole_in_order_and_fit(
    sizes: list[int], free: int, fixed: int, most: int | None, least: int, slots: int, uniform: bool
) -> None:
    each = np.array(sizes, np.int64)
    if uniform:
        each[:] = each[:1].sum()
    given_sizes = int(each[:1].sum()) if uniform else each
    options = {"most_items": most, "least_items": least, "slots": slots}
    if room_of(free, fixed) < max(0, each.max(initial=0)):
        with pytest.raises(DeviceMemoryError) as caught:
            plan(each.size, given_sizes, fixed_bytes=fixed, free_bytes=free, **options)
        assert (caught.value.needed, caught.value.free) == (fixed + each.max(initial=0), free)
        return
    made = plan(each.size, given_sizes, fixed_bytes=fixed, free_bytes=free, **options)
    assert [item for a, b in made.batches for item in range(a, b)] == list(range(each.size))
    for a, b in made.batches:
        assert 0 < b - a <= (most or each.size)
        assert each[a:b].sum() <= made.batch_bytes
    assert made.slots * made.batch_bytes <= room_of(free, fixed)
    assert 1 <= made.slots <= slots


def test_a_small_batch_is_cut_for_overlap_but_not_into_crumbs() -> None:
    assert plan(900, 100, free_bytes=GIB).batches == [(0, 300), (300, 600), (600, 900)]
    assert plan(900, 100, free_bytes=GIB, least_items=400).batches == [(0, 450), (450, 900)]
    assert plan(900, 100, free_bytes=GIB, least_items=1000).batches == [(0, 900)]


def test_no_items_are_no_batches() -> None:
    made = plan(0, 10, free_bytes=GIB)
    assert (made.batches, made.slots) == ([], 1)


def test_a_large_item_leaves_fewer_under_way() -> None:
    sizes = np.array([10, 10, 400 << 20, 10], np.int64)
    made = plan(4, sizes, free_bytes=GIB)
    assert made.slots == 1
    assert isinstance(made, Plan)


def test_too_large_an_item_is_told_with_its_size() -> None:
    with pytest.raises(DeviceMemoryError, match=r"'cuda:3' has too little .*needed: 2,048 MiB, free: 1,024"):
        plan(1, 2 * GIB, free_bytes=GIB, device="cuda:3")
