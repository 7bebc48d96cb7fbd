"""The region call of one text, made by the lanes of a warp together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import shared
from plait.lanes import lowest_bit, population
from plait.lanes.warps import WARP, at, ballot, lane_index, shuffle, warp_size

__all__ = ["Call", "join_call", "no_call", "write_regions"]

_WARP = np.int32(WARP)


class Call(NamedTuple):
    """The longest occurrences of a fragment so far; the same in all lanes.

    Attributes
    ----------
    length
        Symbols; 0 if there is none.
    begin, end
        Leftmost start and rightmost end.
    left, right
        Fewest extended symbols there.
    fragments
        A bit for each fragment that reaches the length.
    """

    length: Any
    begin: Any
    end: Any
    left: Any
    right: Any
    fragments: Any


@shared
def no_call() -> Any:
    """Nothing occurs."""
    none = np.int32(0)
    return Call(none, np.int32(-1), np.int32(-1), none, none, np.int64(0))


@shared
def highest_bit(word: Any) -> Any:
    """Index of the highest set bit of a word that is not zero and has few of them."""
    while word & (word - 1) != 0:
        word = word & (word - 1)
    return np.int32(lowest_bit(word))


@shared
def join_call(tables: Any, f: Any, x: Any, read: Any, starts: Any, call: Any) -> Any:
    """Widen the call to the occurrences of `read` symbols of a fragment: lane k knows those at x + k."""
    if read < call.length:
        return call
    if read > call.length:
        call = Call(read, np.int32(x + WARP), np.int32(-1), read, read, np.int64(0))
    found = ballot(starts != 0)
    low, high = np.int32(lowest_bit(found)), highest_bit(found)
    of_low: Any = np.int64(shuffle(starts, low))
    of_high: Any = np.int64(shuffle(starts, high))
    begin, end = np.int32(x + low), np.int32(x + high + read)
    left = min(read, max(np.int32(0), np.int32(tables.region_left[at(f)] - highest_bit(of_low))))
    over = np.int32(np.int32(lowest_bit(of_high)) + read - tables.region_right[at(f)])
    right = min(read, max(np.int32(0), over))
    if begin == call.begin:
        left = min(left, call.left)
    elif begin > call.begin:
        left = call.left
    if end == call.end:
        right = min(right, call.right)
    elif end < call.end:
        right = call.right
    fragments = call.fragments | (np.int64(1) << np.int64(f))
    return Call(read, min(begin, call.begin), max(end, call.end), left, right, fragments)


@shared
def write_regions(span: Any, call: Any, masks: Any, regions: Any, item: Any) -> None:
    """Write `plait.schedules.chain_tables.REGION_FIELDS`, a lane for each."""
    lane = lane_index()
    begin, end = span.m_prefix, np.int32(span.length - span.m_suffix)
    known = call.length > 0
    # Columns 8 to 11, 12 to 15 and 16 to 19 count the four mask bits before, after and between.
    low = call.end if lane < 16 and known else end if lane < 16 else begin
    low = begin if lane < 12 else low
    high = call.begin if lane < 12 and known else end
    counted = tally(lane & 3, low, high, span.length, masks)
    value = np.int64(counted)
    value = np.int64(span.m_prefix) if lane == 0 else value
    value = np.int64(span.m_suffix) if lane == 1 else value
    value = np.int64(call.length) if lane == 2 else value
    value = np.int64(call.begin) if lane == 3 else value
    value = np.int64(call.end) if lane == 4 else value
    value = np.int64(call.left) if lane == 5 else value
    value = np.int64(call.right) if lane == 6 else value
    value = call.fragments if lane == 7 else value
    if lane < 20:
        regions[at(item), at(lane)] = value


@shared
def tally(bit: Any, low: Any, high: Any, length: Any, masks: Any) -> Any:
    """Count the symbols of [low, high) that contain a mask bit; every lane says which."""
    lane = lane_index()
    counted = np.int32(0)
    x = np.int32(0)
    while x < length:
        i = np.int32(x + lane)
        mask = np.int32(masks[at(i)]) if i < length else np.int32(0)
        holds_a, holds_t = ballot(mask & 1 != 0), ballot(mask & 2 != 0)
        holds_c, holds_g = ballot(mask & 4 != 0), ballot(mask & 8 != 0)
        holds = holds_a if bit == 0 else holds_t if bit == 1 else holds_c if bit == 2 else holds_g
        first = min(max(np.int32(low - x), np.int32(0)), _WARP)
        last = min(max(np.int32(high - x), first), _WARP)
        inside = (np.int64(1) << np.int64(last)) - (np.int64(1) << np.int64(first))
        counted = np.int32(counted + population(holds & inside))
        x = np.int32(x + warp_size())
    return counted
