"""Primitive operations that mean the same for interpreted Python and for every compiled target.

Each operation is defined by plain Python; compiled targets replace the definition by an instruction.
"""

from plait.lanes.bits import lowest_bit, population
from plait.lanes.vectors import (
    LANES,
    PADDING,
    EightLanes,
    FourLanes,
    OneLane,
    TwoLanes,
    any_bits,
    host_lanes,
    load,
    maximum,
    padded,
    splat,
    store,
)

__all__ = [
    "LANES",
    "PADDING",
    "EightLanes",
    "FourLanes",
    "OneLane",
    "TwoLanes",
    "any_bits",
    "host_lanes",
    "load",
    "lowest_bit",
    "maximum",
    "padded",
    "population",
    "splat",
    "store",
]
