"""Widths: how many neighbouring lanes a schedule works on at a time.

A width says nothing about the type of a lane; that comes from the array which the lanes are loaded from.
A group wider than a vector register of the processor is computed as several registers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import host_vector_bits, specialise

__all__ = [
    "LANES",
    "PADDING",
    "EightLanes",
    "FourLanes",
    "OneLane",
    "SixteenLanes",
    "SixtyFourLanes",
    "ThirtyTwoLanes",
    "TwoLanes",
    "host_lanes",
    "lanes_of",
    "padded",
    "width_of",
]

#: Rows of 64-bit lanes are padded to a multiple of this many.
PADDING = 8


class OneLane(NamedTuple):
    """Groups of one lane: plain numbers."""

    width: int = 1


class TwoLanes(NamedTuple):
    """Groups of two lanes."""

    width: int = 2


class FourLanes(NamedTuple):
    """Groups of four lanes."""

    width: int = 4


class EightLanes(NamedTuple):
    """Groups of eight lanes: 512 bits of 64-bit lanes."""

    width: int = 8


class SixteenLanes(NamedTuple):
    """Groups of sixteen lanes: 128 bits of 8-bit lanes, 512 bits of 32-bit lanes."""

    width: int = 16


class ThirtyTwoLanes(NamedTuple):
    """Groups of 32 lanes: 256 bits of 8-bit lanes, 512 bits of 16-bit lanes."""

    width: int = 32


class SixtyFourLanes(NamedTuple):
    """Groups of 64 lanes: 512 bits of 8-bit lanes."""

    width: int = 64


_WIDTHS: dict[int, Any] = {
    kind().width: kind()
    for kind in (OneLane, TwoLanes, FourLanes, EightLanes, SixteenLanes, ThirtyTwoLanes, SixtyFourLanes)
}

#: The widths for 64-bit lanes: up to one register of 512 bits.
LANES: dict[int, Any] = {width: kind for width, kind in _WIDTHS.items() if width <= PADDING}


def lanes_of(width: int) -> Any:
    """The groups of `width` lanes: 1, 2, 4, 8, 16, 32 or 64.

    >>> lanes_of(32)
    ThirtyTwoLanes(width=32)
    """
    return _WIDTHS[width]


def width_of(lanes: Any) -> int:
    """``lanes.width``, which compiled code takes for a constant: what divides by it does not divide.

    >>> width_of(lanes_of(8))
    8
    """
    width: int = lanes.width
    return width


_CONSTANT: dict[int, Any] = {
    1: lambda lanes: 1,
    2: lambda lanes: 2,
    4: lambda lanes: 4,
    8: lambda lanes: 8,
    16: lambda lanes: 16,
    32: lambda lanes: 32,
    64: lambda lanes: 64,
}
specialise(width_of, lambda lanes: _CONSTANT[lanes.instance_class().width])


def host_lanes(bits: int = 64) -> Any:
    """The width that fills a register of this processor with lanes of `bits` bits (8, 16, 32 or 64)."""
    return _WIDTHS[host_vector_bits() // bits]


def padded(lanes: int) -> int:
    """`lanes` rounded up to a multiple of `PADDING`.

    >>> padded(11)
    16
    """
    return -(-lanes // PADDING) * PADDING
