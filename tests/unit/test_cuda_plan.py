"""Work is cut into pieces that fit, in order, whole, and no smaller than they need be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.devices.cuda_devices import plan
from plait.errors import DeviceMemoryError

GIB = 1 << 30
HOW: dict[str, Any] = {"free_bytes": GIB, "most": 1 << 20, "least": 1, "slots": 3}


def room_of(free: int) -> int:
    """What a plan may fill."""
    return free - max(free // 16, min(256 << 20, free // 2))


@given(
    items=st.integers(1, 60),
    each=st.integers(0, 5000),
    free=st.integers(0, 60_000),
    most=st.integers(1, 20),
    least=st.integers(1, 30),
    slots=st.integers(1, 4),
)
def test_pieces_are_whole_in_order_and_fit(
    items: int, each: int, free: int, most: int, least: int, slots: int
) -> None:
    how: dict[str, Any] = {"free_bytes": free, "most": most, "least": least, "slots": slots}
    if room_of(free) < each:
        with pytest.raises(DeviceMemoryError) as caught:
            plan(items, each, **how)
        assert (caught.value.needed, caught.value.free) == (each, free)
        return
    made = plan(items, each, **how)
    assert [item for a, b in made.pieces for item in range(a, b)] == list(range(items))
    for a, b in made.pieces:
        assert 0 < b - a <= most
        assert (b - a) * each <= made.piece_bytes
    assert made.slots * made.piece_bytes <= room_of(free)
    assert 1 <= made.slots <= slots


def test_a_small_batch_is_cut_for_overlap_but_not_into_crumbs() -> None:
    assert plan(900, 100, **HOW).pieces == [(0, 300), (300, 600), (600, 900)]
    assert plan(900, 100, **HOW | {"least": 400}).pieces == [(0, 450), (450, 900)]
    assert plan(900, 100, **HOW | {"least": 1000}).pieces == [(0, 900)]


def test_a_large_item_leaves_fewer_under_way() -> None:
    made = plan(4, 400 << 20, **HOW)
    assert (made.slots, made.pieces) == (1, [(0, 1), (1, 2), (2, 3), (3, 4)])


def test_too_large_an_item_is_told_with_its_size() -> None:
    with pytest.raises(DeviceMemoryError, match=r"'cuda:3' has too little .*needed: 2,048 MiB, free: 1,024"):
        plan(1, 2 * GIB, **HOW, device="cuda:3")
