"""The longest occurrence of any allowed fragment in a text: the region call.

All text positions advance together, in groups of lanes: after ``read`` steps, ``alive[a]`` has a bit for
every fragment position from which ``read`` symbols match the text from position a on.
"""

from __future__ import annotations

from typing import Any

from plait._jit import shared
from plait.lanes import PADDING, any_bits, load, lowest_bit, splat, store
from plait.recurrences.occurrences import Occurrences, keep, start

__all__ = ["find_regions"]


@shared
def find_regions(
    lanes: Any, tables: Any, suffix: int, length: int, scratch: Any, regions: Any, item: int
) -> None:
    """Write the fragment columns of `plait.schedules.chain_tables.REGION_FIELDS`.

    Ties between positions and fragments are joined: leftmost start and rightmost end of all longest
    occurrences; ``fragment_choice`` has one bit per fragment that reaches the length. The extended part
    counted at an end is that of the occurrence with the fewest extended symbols there.
    """
    called = tables.called
    regions[item, 2] = 0
    regions[item, 3] = -1
    regions[item, 4] = -1
    regions[item, 5] = 0
    regions[item, 6] = 0
    regions[item, 7] = 0
    for w in range(called.places.shape[0]):
        automaton = Occurrences(called.allowed_starts[suffix, w])
        for a in range(length):
            scratch.places[0, a] = called.places[w, scratch.masks[a]]
        for x in range(length, length + called.longest + PADDING):
            scratch.places[0, x] = 0
        read = longest_read(lanes, automaton, called.longest, length, scratch)
        if read > 0 and read >= regions[item, 2]:
            if read > regions[item, 2]:
                regions[item, 2] = read
                regions[item, 3] = length
                regions[item, 4] = -1
                regions[item, 7] = 0
            for a in range(length - read + 1):
                if scratch.alive[0, a] != 0:
                    join_occurrence(tables, w, a, read, scratch.alive[0, a], regions, item)
    begin = regions[item, 0]
    end = length - regions[item, 1]
    known = regions[item, 2] > 0
    tally(scratch.masks, begin, regions[item, 3] if known else end, regions, item, 8)
    tally(scratch.masks, regions[item, 4] if known else end, end, regions, item, 12)
    tally(scratch.masks, begin, end, regions, item, 16)


@shared
def tally(masks: Any, begin: int, end: int, regions: Any, item: int, column: int) -> None:
    """Count the symbols of [begin, end) that contain each mask bit, to four columns."""
    for bit in range(4):
        regions[item, column + bit] = 0
    for i in range(begin, end):
        for bit in range(4):
            regions[item, column + bit] += (masks[i] >> bit) & 1


@shared
def longest_read(lanes: Any, automaton: Any, size: int, length: int, scratch: Any) -> int:
    """Length of the longest occurrence; ``alive[0]`` is left as it was after that many symbols."""
    places = scratch.places
    alive = scratch.alive
    read = 0
    while read < size:
        left = splat(lanes, 0)
        for x in range(0, length, lanes.width):
            before = splat(lanes, start(automaton)) if read == 0 else load(lanes, alive, 0, x)
            after = keep(automaton, before, load(lanes, places, 0, x + read), splat(lanes, read))
            left = left | after
            store(lanes, alive, 1, x, after)
        if any_bits(left) == 0:
            break
        for x in range(0, length, lanes.width):
            store(lanes, alive, 0, x, load(lanes, alive, 1, x))
        read += 1
    return read


@shared
def join_occurrence(tables: Any, w: int, a: int, read: int, starts: int, regions: Any, item: int) -> None:
    """Widen the call to the occurrences of the longest length at position a, in one word of fragments."""
    called = tables.called
    fewest_left = read
    fewest_right = read
    while starts != 0:
        bit = lowest_bit(starts)
        starts = starts & (starts - 1)
        f = called.fragment_of[w, bit]
        s = bit - called.first[f]
        fewest_left = min(fewest_left, max(0, tables.region_left[f] - s))
        fewest_right = min(fewest_right, max(0, s + read - tables.region_right[f]))
        regions[item, 7] = regions[item, 7] | (1 << f)
    if a < regions[item, 3] or (a == regions[item, 3] and fewest_left < regions[item, 5]):
        regions[item, 3] = a
        regions[item, 5] = fewest_left
    if a + read > regions[item, 4] or (a + read == regions[item, 4] and fewest_right < regions[item, 6]):
        regions[item, 4] = a + read
        regions[item, 6] = fewest_right
