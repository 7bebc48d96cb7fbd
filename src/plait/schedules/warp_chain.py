"""The chain of one text, run by the lanes of a warp together.

Most of the work of a chain is finding out what matches, and this the lanes share by position: lane k looks
at position k, then k + 32, and so on. The occurrences of a fragment advance by one symbol at a time with the
automaton of all targets; ends that mirror what follows them are starts below the fragment's first one. What
is found then meets the models (`plait.schedules.warp_models`) or the numbers of insertions
(`plait.schedules.warp_insertions`).

Texts with symbols opposite which an insertion does not weigh one are left to the other schedule: their bound
is NaN.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import by_type_of, shared
from plait.lanes import lowest_bit
from plait.lanes.warps import at, ballot, in_word, lane_index, synchronize_warp, warp_size
from plait.recurrences.occurrences import Occurrences, keep, start
from plait.schedules import warp_insertions, warp_models
from plait.schedules.chain_rows import PerInsertions, PerModel, Span
from plait.schedules.warp_regions import join_call, no_call, write_regions

__all__ = ["WarpMemory", "chain_of_warp"]


class WarpMemory(NamedTuple):
    """Memory that the lanes of a warp share.

    Attributes
    ----------
    masks
        uint8: the text.
    arms
        uint8: for every position, how far what precedes it mirrors what follows it.
    places
        int64: for every position, the bits of a fragment's symbols that match it.
    left, right
        int32: running sums of the weights of the prefix and of the suffix, a row of patterns for each
        position from ``1 - levels`` on.
    corners
        int32: for every number of insertions, changes of the second difference of the counts.
    rising
        int64: counts by the number of insertions.
    """

    masks: Any
    arms: Any
    places: Any
    left: Any
    right: Any
    corners: Any
    rising: Any


@shared
def chain_of_warp(
    rows: Any, alg: Any, tables: Any, texts: Any, item: Any, models: Any, memory: Any, out: Any
) -> None:
    """The counts of the models that have a lane, and the region calls, of one text.

    Parameters
    ----------
    rows
        `PerModel` or `PerInsertions`.
    alg
        The algebra: counts.
    tables
        See `plait.schedules.warp_tables`.
    texts
        As in `plait.schedules.chain_tables`.
    item
        Which text.
    models
        The models of this lane: `plait.schedules.warp_models.models_of`.
    memory
        `WarpMemory`.
    out
        Arrays as in `plait.schedules.chain_tables.ChainOutput`.
    """
    lane = lane_index()
    length = np.int32(texts.length[at(item)])
    first = texts.start[at(item)]
    prefix = np.int32(texts.prefix[at(item)])
    suffix = np.int32(texts.suffix[at(item)])
    weighs = False
    i: Any = lane
    while i < length:
        mask = texts.symbols[at(first + i)]
        memory.masks[at(i)] = mask
        weighs = weighs or tables.unit[at(mask)] == 0
        i = np.int32(i + warp_size())
    synchronize_warp()
    if ballot(weighs) != 0:
        if lane == 0:
            out.bound[at(item)] = np.nan
        return
    span = span_of(tables, prefix, suffix, length, memory.masks)
    prepare(rows, tables, span, models, memory)
    empty = sum_empty(rows, alg, tables, span, models, memory)
    none = sum_none(rows, alg, tables, span, models, memory)
    write_none(rows, alg, tables, span, item, models, none, out)
    call = no_call()
    for f in range(tables.fragments):
        total = nothing(rows, alg, tables, memory)
        allowed = tables.allowed[at(suffix), at(f)] != 0
        if allowed:
            total, call = read_fragment(rows, alg, tables, span, models, f, total, call, memory)
        write_fragment(rows, alg, tables, item, models, f, allowed, total, empty, memory, out)
    if out.regions.shape[1] > 0:
        write_regions(span, call, memory.masks, out.regions, item)
    if lane == 0:
        fragments = (span.length + 1.0) * tables.bound_fragment
        ends = (span.m_prefix + 1.0) * (span.m_suffix + 1.0) * tables.bound_ends
        out.bound[at(item)] = ends * fragments
    synchronize_warp()


@shared
def span_of(tables: Any, prefix: Any, suffix: Any, length: Any, masks: Any) -> Any:
    """Where the text matches its ends."""
    most = min(length, tables.prefix_length[at(prefix)])
    m_prefix = matched(tables.prefix_symbols, prefix, most, masks, np.int32(0), np.int32(1))
    most = min(length, tables.suffix_length[at(suffix)])
    m_suffix = matched(tables.suffix_symbols, suffix, most, masks, np.int32(length - 1), np.int32(-1))
    reach = np.int32(tables.levels - 1)
    last = min(length, np.int32(m_prefix + reach))
    first = max(np.int32(0), np.int32(length - m_suffix - reach))
    return Span(prefix, suffix, m_prefix, m_suffix, length, first, last)


@shared
def matched(symbols: Any, end: Any, most: Any, masks: Any, begin: Any, step: Any) -> Any:
    """How many symbols of an end match the text, from a position on in steps of one."""
    x = np.int32(0)
    while x < most:
        i = np.int32(x + lane_index())
        differs = True
        if i < most:
            differs = (symbols[at(end), at(i)] & masks[at(begin + i * step)]) == 0
        found = ballot(differs)
        if found != 0:
            return np.int32(x + lowest_bit(found))
        x = np.int32(x + warp_size())
    return most


@shared
def read_fragment(
    rows: Any, alg: Any, tables: Any, span: Any, models: Any, f: Any, total: Any, call: Any, memory: Any
) -> Any:
    """Add all occurrences of a fragment to the total and the region call, and return both."""
    lane = lane_index()
    word = tables.starts.dtype.type
    i: Any = lane
    while i < np.int32(span.length + 1):
        matching = word(0)
        if i < span.length:
            matching = tables.places[at(f), at(memory.masks[at(i)])]
        memory.places[at(i)] = matching
        i = np.int32(i + warp_size())
    synchronize_warp()
    automaton = Occurrences(tables.starts[at(f)])
    joined = tables.joined[at(f)]
    x = np.int32(0)
    while x < span.length:
        a = np.int32(x + lane)
        alive = start(automaton) if a < span.length else word(0)
        mirrored = mirrored_starts(rows, tables, span, a, f, memory)
        # Mirrored ends of more symbols than were read wait for the fragment to begin.
        early = tables.early[at(f)]
        depth = np.int32(0)
        longest = alive
        read = np.int32(0)
        while True:
            place = word(memory.places[at(a + read)])
            distance = in_word(place, read)
            alive = word(keep(automaton, alive, place, distance))
            mirrored = word(keep(automaton, mirrored, place, distance) | (mirrored & early))
            early = word(early >> in_word(early, 1))
            read = np.int32(read + 1)
            if ballot(alive != 0) != 0:
                depth = read
                longest = alive
            elif ballot(mirrored != 0) == 0:
                break
            found = word((alive & joined) | (mirrored & ~early))
            total = add_found(rows, alg, tables, span, models, f, x, read, found, total, memory)
        if depth > 0:
            call = join_call(tables, f, x, depth, longest, call)
        x = np.int32(x + warp_size())
    synchronize_warp()
    return total, call


#: What a text needs before anything is summed up.
prepare = by_type_of(
    {PerModel: warp_models.prepare_models, PerInsertions: warp_insertions.prepare_insertions}
)

#: Ends that mirror what follows them in the text, from position a on: bit ``origin - p`` for p symbols.
mirrored_starts = by_type_of(
    {PerModel: warp_models.mirrored_starts_models, PerInsertions: warp_insertions.mirrored_starts_insertions}
)

#: Paths with nothing left of a fragment, but for its weight.
sum_empty = by_type_of(
    {PerModel: warp_models.sum_empty_models, PerInsertions: warp_insertions.sum_empty_insertions}
)

#: Paths without a fragment.
sum_none = by_type_of(
    {PerModel: warp_models.sum_none_models, PerInsertions: warp_insertions.sum_none_insertions}
)

#: Add the occurrences of `read` symbols of a fragment, found at x + lane, to the total.
add_found = by_type_of(
    {PerModel: warp_models.add_found_models, PerInsertions: warp_insertions.add_found_insertions}
)

#: A total of no paths.
nothing = by_type_of(
    {PerModel: warp_models.nothing_models, PerInsertions: warp_insertions.nothing_insertions}
)

#: Write the paths without a fragment.
write_none = by_type_of(
    {PerModel: warp_models.write_none_models, PerInsertions: warp_insertions.write_none_insertions}
)

#: Write the paths with a fragment, with the share of those with nothing left of it.
write_fragment = by_type_of(
    {PerModel: warp_models.write_fragment_models, PerInsertions: warp_insertions.write_fragment_insertions}
)
