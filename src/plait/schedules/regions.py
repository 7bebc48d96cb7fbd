"""Occurrences of all fragments at all positions of a text, and the longest one: the region call.

All text positions advance together, in groups of lanes: after ``read`` steps, row ``read`` of `alive` has,
for every position, a bit for each fragment position from which ``read`` symbols match the text.
"""

from __future__ import annotations

from typing import Any

from plait._jit import shared
from plait.lanes import PADDING, any_bits, load, lowest_bit, splat, store
from plait.recurrences.occurrences import Occurrences, keep, start
from plait.schedules.chain_tables import ALIVE_ROWS

__all__ = ["find_occurrences", "find_regions"]


@shared
def find_occurrences(lanes: Any, words: Any, suffix: int, pairs: int, length: int, scratch: Any) -> None:
    """Fill `alive` and `depth`: rows ``w * ALIVE_ROWS + 1 .. + depth[w]`` belong to word w.

    Only fragments that may precede the suffix are looked for; all of them if there are pairs.
    """
    for w in range(words.places.shape[0]):
        automaton = Occurrences(words.every_start[w] if pairs > 0 else words.allowed_starts[suffix, w])
        for a in range(length):
            scratch.places[0, a] = words.places[w, scratch.masks[a]]
        for x in range(length, length + words.longest + PADDING):
            scratch.places[0, x] = 0
        for x in range(0, length, lanes.width):
            store(lanes, scratch.alive, w * ALIVE_ROWS, x, splat(lanes, start(automaton)))
        scratch.depth[w] = read_all(lanes, words.longest, w * ALIVE_ROWS, length, scratch)


@shared
def read_all(lanes: Any, longest: int, row: int, length: int, scratch: Any) -> int:
    """Read symbols until no occurrence is left; returns how many were read before that."""
    read = 0
    while read < longest:
        left = splat(lanes, 0)
        for x in range(0, length, lanes.width):
            before = load(lanes, scratch.alive, row + read, x)
            after = keep(Occurrences(0), before, load(lanes, scratch.places, 0, x + read), splat(lanes, read))
            left = left | after
            store(lanes, scratch.alive, row + read + 1, x, after)
        if any_bits(left) == 0:
            break
        read += 1
    return read


@shared
def find_regions(tables: Any, suffix: int, length: int, scratch: Any, regions: Any, item: int) -> None:
    """Write the fragment columns of `plait.schedules.chain_tables.REGION_FIELDS`.

    Ties between positions and fragments are joined: leftmost start and rightmost end of all longest
    occurrences; ``fragment_choice`` has one bit per fragment that reaches the length. The extended part
    counted at an end is that of the occurrence with the fewest extended symbols there.
    """
    words = tables.words
    regions[item, 2] = 0
    regions[item, 3] = -1
    regions[item, 4] = -1
    regions[item, 5] = 0
    regions[item, 6] = 0
    regions[item, 7] = 0
    for w in range(words.places.shape[0]):
        allowed = words.allowed_starts[suffix, w]
        read = scratch.depth[w]
        found = False
        while read > 0 and read >= regions[item, 2] and not found:
            for a in range(length - read + 1):
                starts = scratch.alive[w * ALIVE_ROWS + read, a] & allowed
                if starts != 0:
                    found = True
                    join_occurrence(tables, w, a, read, starts, length, regions, item)
            read -= 1
    begin = regions[item, 0]
    end = length - regions[item, 1]
    known = regions[item, 2] > 0
    tally(scratch.masks, begin, regions[item, 3] if known else end, regions, item, 8)
    tally(scratch.masks, regions[item, 4] if known else end, end, regions, item, 12)
    tally(scratch.masks, begin, end, regions, item, 16)


@shared
def join_occurrence(
    tables: Any, w: int, a: int, read: int, starts: int, length: int, regions: Any, item: int
) -> None:
    """Widen the call to the occurrences of `read` symbols at position a, in one word of fragments."""
    words = tables.words
    if read > regions[item, 2]:
        regions[item, 2] = read
        regions[item, 3] = length
        regions[item, 4] = -1
        regions[item, 7] = 0
    fewest_left = read
    fewest_right = read
    while starts != 0:
        bit = lowest_bit(starts)
        starts = starts & (starts - 1)
        f = words.fragment_of[w, bit]
        s = bit - words.first[f]
        fewest_left = min(fewest_left, max(0, tables.region_left[f] - s))
        fewest_right = min(fewest_right, max(0, s + read - tables.region_right[f]))
        regions[item, 7] = regions[item, 7] | (1 << f)
    if a < regions[item, 3] or (a == regions[item, 3] and fewest_left < regions[item, 5]):
        regions[item, 3] = a
        regions[item, 5] = fewest_left
    if a + read > regions[item, 4] or (a + read == regions[item, 4] and fewest_right < regions[item, 6]):
        regions[item, 4] = a + read
        regions[item, 6] = fewest_right


@shared
def tally(masks: Any, begin: int, end: int, regions: Any, item: int, column: int) -> None:
    """Count the symbols of [begin, end) that contain each mask bit, to four columns."""
    # Four counters in one word: 15 bits apart, which holds any text that can be counted.
    counters = 0
    for i in range(begin, end):
        mask = masks[i]
        counters += (mask & 1) | ((mask & 2) << 14) | ((mask & 4) << 28) | ((mask & 8) << 42)
    for bit in range(4):
        regions[item, column + bit] = (counters >> (15 * bit)) & 0x7FFF
