"""The largest of many items: short lists in order, and a heap."""

from __future__ import annotations

from typing import Any

from plait._jit import shared

__all__ = ["list_item", "push_item", "sink_item", "swap_items"]

#: Numbers that an item of the heap holds.
_NUMBERS = 6


@shared
def list_item(count: Any, values: Any, items: Any, place: int, value: float, first: int, second: int) -> None:
    """Put an item into a list of the largest ones."""
    at = count[place]
    if at == values.shape[1]:
        at -= 1
        if value <= values[place, at]:
            return
    else:
        count[place] += 1
    while at > 0 and values[place, at - 1] < value:
        values[place, at] = values[place, at - 1]
        items[place, at, 0] = items[place, at - 1, 0]
        items[place, at, 1] = items[place, at - 1, 1]
        at -= 1
    values[place, at] = value
    items[place, at, 0] = first
    items[place, at, 1] = second


@shared
def is_worse(scratch: Any, one: int, other: int) -> bool:
    """Whether one item of the heap is to go before another."""
    a, b = scratch.heap_value[one], scratch.heap_value[other]
    return bool(a < b or (a == b and scratch.heap_order[one] > scratch.heap_order[other]))


@shared
def swap_items(scratch: Any, one: int, other: int) -> None:
    """Exchange two items of the heap."""
    value, order = scratch.heap_value[one], scratch.heap_order[one]
    scratch.heap_value[one], scratch.heap_order[one] = scratch.heap_value[other], scratch.heap_order[other]
    scratch.heap_value[other], scratch.heap_order[other] = value, order
    for k in range(_NUMBERS):
        item = scratch.heap_item[one, k]
        scratch.heap_item[one, k] = scratch.heap_item[other, k]
        scratch.heap_item[other, k] = item


@shared
def sink_item(scratch: Any, at: int, size: int) -> None:
    """Let an item of the heap go down to where it belongs."""
    while True:
        least = at
        for below in range(2 * at + 1, min(2 * at + 3, size)):
            if is_worse(scratch, below, least):
                least = below
        if least == at:
            return
        swap_items(scratch, at, least)
        at = least


@shared
def push_item(
    scratch: Any, size: int, order: int, value: float, a: int, b: int, c: int, d: int, e: int, f: int
) -> int:
    """Put an item on the heap, in the place of the least one if it is full; returns the size."""
    full = size == scratch.heap_value.size
    at = 0 if full else size
    scratch.heap_value[at], scratch.heap_order[at] = value, order
    scratch.heap_item[at, 0], scratch.heap_item[at, 1], scratch.heap_item[at, 2] = a, b, c
    scratch.heap_item[at, 3], scratch.heap_item[at, 4], scratch.heap_item[at, 5] = d, e, f
    if full:
        sink_item(scratch, 0, size)
        return size
    while at > 0 and is_worse(scratch, at, (at - 1) // 2):
        swap_items(scratch, at, (at - 1) // 2)
        at = (at - 1) // 2
    return size + 1
