"""Primitive operations that mean the same for interpreted Python and for every compiled target.

Each operation is defined by plain Python; compiled targets replace the definition by an instruction.

A group of lanes is read and written within one row of a two-dimensional array of C order: ``lane + width``
never exceeds the length of the row, so whoever allocates the array pads its rows. The definitions raise
`IndexError` where that does not hold. Compiled code does not look at positions, so every schedule is tested
interpreted.
"""

from plait._jit import implemented_in as _implemented_in
from plait.lanes.bits import highest_bit, lowest_bit, population
from plait.lanes.groups import (
    add_saturating,
    any_bits,
    equal,
    greater,
    largest_lane,
    last_lane,
    load,
    lookup,
    lower_half,
    mask_bits,
    maximum,
    minimum,
    select,
    shift_in,
    splat,
    store,
    subtract_saturating,
    upper_half,
    widen,
)
from plait.lanes.widths import (
    LANES,
    PADDING,
    EightLanes,
    FourLanes,
    OneLane,
    SixteenLanes,
    SixtyFourLanes,
    ThirtyTwoLanes,
    TwoLanes,
    host_lanes,
    lanes_of,
    padded,
    width_of,
)

_implemented_in("plait.lanes.compiled")

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
    "add_saturating",
    "any_bits",
    "equal",
    "greater",
    "highest_bit",
    "host_lanes",
    "lanes_of",
    "largest_lane",
    "last_lane",
    "load",
    "lookup",
    "lower_half",
    "lowest_bit",
    "mask_bits",
    "maximum",
    "minimum",
    "padded",
    "population",
    "select",
    "shift_in",
    "splat",
    "store",
    "subtract_saturating",
    "upper_half",
    "widen",
    "width_of",
]
