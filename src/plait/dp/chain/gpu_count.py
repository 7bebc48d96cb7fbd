"""Path counts of one junction by the lanes of a warp together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.dp.chain.insertions import Occurrences, keep, start
from plait.dp.chain.rows import PerInsertions, PerModel, Span
from plait.lang.algebras import choice, extend, repeat
from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import highest_bit, lowest_bit, population
from plait.lang.warps import (
    WARP,
    add_to,
    at,
    ballot,
    in_word,
    lane_index,
    shuffle,
    shuffle_up,
    synchronize_warp,
    warp_size,
)


class Models(NamedTuple):
    """The two models of a lane, which have one pattern.

    `first` and `second` are numbers of models, not below M if there is none. `left`, `right` and `single` say
    how far the windows of both reach back in the running sums: before the D, after it, and without
    one.
    """

    first: Any
    second: Any
    pattern: Any
    left: Any
    right: Any
    single: Any


@shared
def models_of(tables: Any, model: Any, lane: Any) -> Any:
    """The models of a lane: as many whole rows of patterns as there are lanes for, twice."""
    patterns = tables.patterns
    count = tables.out_lane.size
    group = WARP // patterns * patterns
    first = model + lane if lane < group else count
    second = min(first + group, count)
    x, y = min(first, count - 1), min(second, count - 1)
    return Models(
        np.int32(first),
        np.int32(second),
        np.int32(lane % patterns),
        (tables.left_reach[at(x)], tables.left_reach[at(y)]),
        (tables.right_reach[at(x)], tables.right_reach[at(y)]),
        (tables.single_reach[at(x)], tables.single_reach[at(y)]),
    )


@shared
def prepare_models(rows: Any, tables: Any, span: Any, models: Any, memory: Any) -> None:
    """`prepare` with a row per model: palindrome arms, and running sums of the ends."""
    lane = lane_index()
    c: Any = lane
    while c < np.int32(span.length + 1):
        memory.arms[at(c)] = arm(tables, span, c, memory.masks)
        c = np.int32(c + warp_size())
    pattern = models.pattern
    group = np.int32(WARP // tables.patterns)
    x = np.int32(lane // tables.patterns)
    rises = np.int32(tables.levels - 1)
    if x < group:
        i = x
        while i < np.int32(tables.levels + span.length + 1):
            kept = max(np.int32(0), np.int32(i - rises))
            place = np.int32(i * tables.patterns + pattern)
            before = min(kept, np.int32(span.m_v + 1))
            after = min(kept, np.int32(span.m_j + 1))
            memory.left[at(place)] = tables.v_sums[at(span.v), at(before), at(pattern)]
            memory.right[at(place)] = tables.j_sums[at(span.j), at(after), at(pattern)]
            i = np.int32(i + group)
    synchronize_warp()


@shared
def arm(tables: Any, span: Any, c: Any, masks: Any) -> Any:
    """How many bases before a position are the reverse complement of those after it."""
    most = min(tables.palindrome, min(c, np.int32(span.length - c)))
    p = np.int32(0)
    while p < most:
        if (masks[at(c - 1 - p)] & tables.mirror[at(masks[at(c + p)])]) == 0:
            break
        p = np.int32(p + 1)
    return p


@shared
def mirrored_starts_models(rows: Any, tables: Any, span: Any, a: Any, f: Any, memory: Any) -> Any:
    """`mirrored_starts` with a row per model."""
    word = tables.starts.dtype.type
    bits = word(0)
    origin = tables.origin[at(f)]
    most = min(tables.palindrome, np.int32(span.length - a))
    for p in range(np.int32(1), np.int32(most + 1)):
        if memory.arms[at(a + p)] >= p:
            bits = word(bits | (word(1) << in_word(bits, np.int32(origin - p))))
    return bits


@shared
def sum_empty_models(rows: Any, alg: Any, tables: Any, span: Any, models: Any, memory: Any) -> Any:
    """`sum_empty` with a row per model."""
    return sum_ends(alg, tables, span, models, span.first, models.left, models.right, memory)


@shared
def sum_none_models(rows: Any, alg: Any, tables: Any, span: Any, models: Any, memory: Any) -> Any:
    """`sum_none` with a row per model."""
    kept = tables.patterns, tables.patterns
    first = max(np.int32(0), np.int32(span.length - span.m_j))
    return sum_ends(alg, tables, span, models, first, models.single, kept, memory)


@shared
def sum_ends(
    alg: Any, tables: Any, span: Any, models: Any, begin: Any, before: Any, after: Any, memory: Any
) -> Any:
    """Paths that go from left to right at one position, from `begin` on, with windows that reach so far."""
    first, second = np.int64(alg.zero), np.int64(alg.zero)
    for a in range(begin, np.int32(span.last + 1)):
        left = windows(memory.left, place_of(tables, models, a), before)
        right = windows(memory.right, place_of(tables, models, np.int32(span.length - a)), after)
        first = choice(alg, first, extend(alg, np.int64(left[0]), np.int64(right[0])))
        second = choice(alg, second, extend(alg, np.int64(left[1]), np.int64(right[1])))
    return first, second


@shared
def place_of(tables: Any, models: Any, kept: Any) -> Any:
    """Where in the running sums of an end stands all that keeps up to so many bases."""
    return np.int32(np.int32(np.int32(kept + tables.levels) * tables.patterns) + models.pattern)


@shared
def windows(sums: Any, place: Any, reaches: Any) -> Any:
    """Weights of an end with insertions, for both models: the sum up to a place, less what is not reached."""
    whole = sums[at(place)]
    return np.int32(whole - sums[at(place - reaches[0])]), np.int32(whole - sums[at(place - reaches[1])])


@shared
def add_found_models(
    rows: Any, alg: Any, tables: Any, span: Any, models: Any,
    f: Any, x: Any, read: Any, found: Any, total: Any, memory: Any,
) -> Any:  # fmt: skip
    """`add_found` with a row per model: one position after the other, all models at once."""
    first, second = total
    a = np.int32(x + lane_index())
    active: Any = np.uint32(ballot(found != 0 and a <= span.last and np.int32(a + read) >= span.first))
    if active == 0:
        return first, second
    word = tables.starts.dtype.type
    patterns = tables.patterns
    weights = np.int32(np.int32(np.int32(f * tables.width + read) * tables.width) * patterns + models.pattern)
    alike = tables.alike[at(f), at(read)]
    single = tables.weight[at(weights + tables.origin[at(f)] * patterns)]
    before = place_of(tables, models, x)
    after = place_of(tables, models, np.int32(span.length - x - read))
    while active != 0:
        k = np.int32(lowest_bit(active))
        active = np.uint32(active & (active - 1))
        bits = shuffle(found, k)
        weight = np.int32(repeat(alg, single, np.int32(population(word(bits & alike)))))
        rest = word(bits & ~alike)
        while rest != 0:
            other = tables.weight[at(weights + np.int32(lowest_bit(rest)) * patterns)]
            weight = np.int32(choice(alg, weight, other))
            rest = word(rest & (rest - 1))
        away = np.int32(k * patterns)
        left = windows(memory.left, np.int32(before + away), models.left)
        right = windows(memory.right, np.int32(after - away), models.right)
        ends = np.int32(left[0] * right[0]), np.int32(left[1] * right[1])
        first = choice(alg, first, extend(alg, np.int64(weight), np.int64(ends[0])))
        second = choice(alg, second, extend(alg, np.int64(weight), np.int64(ends[1])))
    return first, second


@shared
def nothing_models(rows: Any, alg: Any, tables: Any, memory: Any) -> Any:
    """`nothing` with a row per model."""
    return np.int64(alg.zero), np.int64(alg.zero)


@shared
def write_none_models(
    rows: Any, alg: Any, tables: Any, span: Any, item: Any, models: Any, none: Any, out: Any
) -> None:
    """`write_none` with a row per model."""
    if out.none.shape[1] == 0:
        return
    if models.first < tables.out_lane.size:
        out.none[at(item), at(tables.out_lane[at(models.first)])] = none[0]
    if models.second < tables.out_lane.size:
        out.none[at(item), at(tables.out_lane[at(models.second)])] = none[1]


@shared
def write_d_models(
    rows: Any, alg: Any, tables: Any, item: Any, models: Any,
    f: Any, allowed: bool, total: Any, empty: Any, memory: Any, out: Any,
) -> None:  # fmt: skip
    """`write_d` with a row per model."""
    write_model(alg, tables, item, models.first, f, allowed, total[0], empty[0], out)
    write_model(alg, tables, item, models.second, f, allowed, total[1], empty[1], out)


@shared
def write_model(
    alg: Any, tables: Any, item: Any, model: Any, f: Any, allowed: bool, total: Any, empty: Any, out: Any
) -> None:
    """The counts of one model and one D, or their share of the sum."""
    if model < tables.out_lane.size:
        x = at(tables.out_lane[at(model)])
        left = extend(alg, empty, tables.empty[at(f), at(model)]) if allowed else np.int64(alg.zero)
        full = choice(alg, total, left)
        if out.empty.shape[1] > 0:
            out.empty[at(item), at(f), x] = left
        if out.full.shape[1] == tables.genes:
            out.full[at(item), at(f), x] = full
        else:
            out.full[at(item), at(0), x] = choice(alg, out.full[at(item), at(0), x], full) if f > 0 else full


@shared
def prepare_insertions(rows: Any, tables: Any, span: Any, models: Any, memory: Any) -> None:
    """`prepare` where lanes count insertions: nothing."""


@shared
def mirrored_starts_insertions(rows: Any, tables: Any, span: Any, a: Any, f: Any, memory: Any) -> Any:
    """`mirrored_starts` where lanes count insertions: palindromes extend their own gene only."""
    return tables.starts.dtype.type(0)


@shared
def sum_empty_insertions(rows: Any, alg: Any, tables: Any, span: Any, models: Any, memory: Any) -> Any:
    """`sum_empty` where lanes count insertions: into ``memory.rising``."""
    lane = lane_index()
    clear_corners(tables, memory)
    a: Any = lane
    while a < np.int32(span.length + 1):
        turn_corners(tables, span, a, a, np.int32(1), memory)
        a = np.int32(a + warp_size())
    synchronize_warp()
    carried = alg.zero, alg.zero
    n: Any = lane
    while n < whole_warps(tables.levels):
        carried = rise(alg, tables, n, carried, memory)
        if n < tables.levels:
            memory.rising[at(n)] = carried[1]
        n = np.int32(n + warp_size())
    synchronize_warp()
    return np.int64(alg.zero), np.int64(alg.zero)


@shared
def sum_none_insertions(rows: Any, alg: Any, tables: Any, span: Any, models: Any, memory: Any) -> Any:
    """`sum_none` where lanes count insertions: found when it is written."""
    return np.int64(alg.zero), np.int64(alg.zero)


@shared
def add_found_insertions(
    rows: Any, alg: Any, tables: Any, span: Any, models: Any,
    f: Any, x: Any, read: Any, found: Any, total: Any, memory: Any,
) -> Any:  # fmt: skip
    """`add_found` where lanes count insertions: every lane adds its own position."""
    if found != 0:
        a = np.int32(x + lane_index())
        turn_corners(tables, span, a, np.int32(a + read), np.int32(population(found)), memory)
    return total


@shared
def clear_corners(tables: Any, memory: Any) -> None:
    """Begin a sum of occurrences."""
    n: Any = lane_index()
    while n < tables.levels:
        memory.corners[at(n)] = 0
        n = np.int32(n + warp_size())
    synchronize_warp()


@shared
def turn_corners(tables: Any, span: Any, a: Any, b: Any, times: Any, memory: Any) -> None:
    """Add a D from a to b: the ways to share n insertions rise from the fewest that reach it on.

    They stop rising where the shortest V or J is reached, and fall where both are.
    """
    levels = tables.levels
    kept_before = min(a, span.m_v)
    kept_after = min(np.int32(span.length - b), span.m_j)
    least = np.int32(np.int32(a - kept_before) + np.int32(span.length - b) - kept_after)
    if least < levels:
        add_to(memory.corners, at(least), times)
        before = np.int32(least + kept_before + 1)
        after = np.int32(least + kept_after + 1)
        if min(before, after) < levels:
            if before < levels:
                add_to(memory.corners, at(before), np.int32(-times))
            if after < levels:
                add_to(memory.corners, at(after), np.int32(-times))
            both = np.int32(before + kept_after + 1)
            if both < levels:
                add_to(memory.corners, at(both), times)


@shared
def whole_warps(levels: Any) -> Any:
    """A number of levels, rounded up to what a whole number of warps has lanes for."""
    return np.int32((levels + WARP - 1) // WARP * WARP)


@shared
def rise(alg: Any, tables: Any, n: Any, carried: Any, memory: Any) -> Any:
    """Two running sums over the corners, a warp at a time: the slope and the counts at n insertions."""
    slope = np.int64(memory.corners[at(n)]) if n < tables.levels else np.int64(alg.zero)
    last = WARP - 1
    slope = choice(alg, running_sum(alg, slope), shuffle(carried[0], last))
    counts = choice(alg, running_sum(alg, slope), shuffle(carried[1], last))
    return slope, counts


@shared
def running_sum(alg: Any, value: Any) -> Any:
    """Sum of the values of all lanes up to this one."""
    lane = lane_index()
    for k in range(5):
        below = shuffle_up(value, 1 << k)
        value = choice(alg, value, below if lane >= 1 << k else alg.zero)
    return value


@shared
def nothing_insertions(rows: Any, alg: Any, tables: Any, memory: Any) -> Any:
    """`nothing` where lanes count insertions."""
    clear_corners(tables, memory)
    return np.int64(alg.zero), np.int64(alg.zero)


@shared
def write_none_insertions(
    rows: Any, alg: Any, tables: Any, span: Any, item: Any, models: Any, none: Any, out: Any
) -> None:
    """`write_none` where lanes count insertions: between the ends, what is not kept is inserted."""
    if out.none.shape[1] == 0:
        return
    n: Any = lane_index()
    while n < tables.levels:
        most = min(span.m_v, span.length - n)
        least = max(0, span.length - span.m_j - n)
        out.none[at(item), at(n)] = max(0, most - least + 1)
        n = np.int32(n + warp_size())


@shared
def write_d_insertions(
    rows: Any, alg: Any, tables: Any, item: Any, models: Any,
    f: Any, allowed: bool, total: Any, empty: Any, memory: Any, out: Any,
) -> None:  # fmt: skip
    """`write_d` where lanes count insertions."""
    synchronize_warp()
    carried = alg.zero, alg.zero
    n: Any = lane_index()
    while n < whole_warps(tables.levels):
        carried = rise(alg, tables, n, carried, memory)
        if n < tables.levels:
            write_model(alg, tables, item, n, f, allowed, carried[1], memory.rising[at(n)], out)
        n = np.int32(n + warp_size())
    synchronize_warp()


_WARP = np.int32(WARP)


class Call(NamedTuple):
    """The longest occurrences of a D so far; the same in all lanes.

    `length` is in bases, 0 if there is none; `begin` and `end` are the leftmost start and rightmost end,
    `left` and `right` the fewest extended bases there; `genes` has a bit for each D that reaches
    the length.
    """

    length: Any
    begin: Any
    end: Any
    left: Any
    right: Any
    genes: Any


@shared
def no_call() -> Any:
    """Nothing occurs."""
    none = np.int32(0)
    return Call(none, np.int32(-1), np.int32(-1), none, none, np.int64(0))


@shared
def join_call(tables: Any, f: Any, x: Any, read: Any, starts: Any, call: Any) -> Any:
    """Widen the call to the occurrences of `read` bases of a D: lane k knows those at x + k."""
    if read < call.length:
        return call
    if read > call.length:
        call = Call(read, np.int32(x + WARP), np.int32(-1), read, read, np.int64(0))
    found = ballot(starts != 0)
    low, high = np.int32(lowest_bit(found)), np.int32(highest_bit(found))
    of_low: Any = np.int64(shuffle(starts, low))
    of_high: Any = np.int64(shuffle(starts, high))
    begin, end = np.int32(x + low), np.int32(x + high + read)
    left = min(read, max(np.int32(0), np.int32(tables.region_left[at(f)] - np.int32(highest_bit(of_low)))))
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
    genes = call.genes | (np.int64(1) << np.int64(f))
    return Call(read, min(begin, call.begin), max(end, call.end), left, right, genes)


@shared
def write_regions(span: Any, call: Any, masks: Any, regions: Any, item: Any) -> None:
    """Write `plait.dp.chain.tables.REGION_FIELDS`, a lane for each."""
    lane = lane_index()
    begin, end = span.m_v, np.int32(span.length - span.m_j)
    known = call.length > 0
    # Columns 8 to 11, 12 to 15 and 16 to 19 count the four mask bits before, after and between.
    low = call.end if lane < 16 and known else end if lane < 16 else begin
    low = begin if lane < 12 else low
    high = call.begin if lane < 12 and known else end
    counted = tally(lane & 3, low, high, span.length, masks)
    value = np.int64(counted)
    value = np.int64(span.m_v) if lane == 0 else value
    value = np.int64(span.m_j) if lane == 1 else value
    value = np.int64(call.length) if lane == 2 else value
    value = np.int64(call.begin) if lane == 3 else value
    value = np.int64(call.end) if lane == 4 else value
    value = np.int64(call.left) if lane == 5 else value
    value = np.int64(call.right) if lane == 6 else value
    value = call.genes if lane == 7 else value
    if lane < 20:
        regions[at(item), at(lane)] = value


@shared
def tally(bit: Any, low: Any, high: Any, length: Any, masks: Any) -> Any:
    """Count the bases of [low, high) that contain a base; every lane says which."""
    lane = lane_index()
    counted = np.int32(0)
    x = np.int32(0)
    while x < length:
        i = np.int32(x + lane)
        bits = np.int32(masks[at(i)]) if i < length else np.int32(0)
        holds_a, holds_t = ballot(bits & 1 != 0), ballot(bits & 2 != 0)
        holds_c, holds_g = ballot(bits & 4 != 0), ballot(bits & 8 != 0)
        holds = holds_a if bit == 0 else holds_t if bit == 1 else holds_c if bit == 2 else holds_g
        first = min(max(np.int32(low - x), np.int32(0)), _WARP)
        last = min(max(np.int32(high - x), first), _WARP)
        inside = (np.int64(1) << np.int64(last)) - (np.int64(1) << np.int64(first))
        counted = np.int32(counted + population(holds & inside))
        x = np.int32(x + warp_size())
    return counted


class WarpMemory(NamedTuple):
    """Memory that the lanes of a warp share.

    By position: `masks` uint8, the junction; `arms` uint8, how many bases before it are the reverse
    complement of those after it; `places` int64, bits of a D's bases that match. `left` and `right`, int32:
    running sums of the weights of V and J, a row of patterns for each position from ``1 - levels`` on. By
    number of insertions: `corners` int32, changes of the second difference of the counts; `rising` int64,
    counts.
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
    """The counts of the models that have a lane, and the region calls, of one junction.

    `tables` is a `plait.dp.chain.gpu_tables.WarpTables`, `models` comes from `models_of`, `out` has arrays as
    in `plait.dp.chain.tables.ChainOutput`; the algebra counts.
    """
    lane = lane_index()
    length = np.int32(texts.length[at(item)])
    first = texts.start[at(item)]
    v = np.int32(texts.v[at(item)])
    j = np.int32(texts.j[at(item)])
    weighs = False
    i: Any = lane
    while i < length:
        bits = texts.symbols[at(first + i)]
        memory.masks[at(i)] = bits
        weighs = weighs or tables.unit[at(bits)] == 0
        i = np.int32(i + warp_size())
    synchronize_warp()
    if ballot(weighs) != 0:
        if lane == 0:
            out.bound[at(item)] = np.nan
        return
    span = span_of(tables, v, j, length, memory.masks)
    prepare(rows, tables, span, models, memory)
    empty = sum_empty(rows, alg, tables, span, models, memory)
    none = sum_none(rows, alg, tables, span, models, memory)
    write_none(rows, alg, tables, span, item, models, none, out)
    call = no_call()
    for f in range(tables.genes):
        total = nothing(rows, alg, tables, memory)
        allowed = tables.allowed[at(j), at(f)] != 0
        if allowed:
            total, call = read_d(rows, alg, tables, span, models, f, total, call, memory)
        write_d(rows, alg, tables, item, models, f, allowed, total, empty, memory, out)
    if out.regions.shape[1] > 0:
        write_regions(span, call, memory.masks, out.regions, item)
    if lane == 0:
        of_d = (span.length + 1.0) * tables.bound_d
        ends = (span.m_v + 1.0) * (span.m_j + 1.0) * tables.bound_ends
        out.bound[at(item)] = ends * of_d
    synchronize_warp()


@shared
def span_of(tables: Any, v: Any, j: Any, length: Any, masks: Any) -> Any:
    """Where the junction matches its ends."""
    most = min(length, tables.v_length[at(v)])
    m_v = matched(tables.v_bases, v, most, masks, np.int32(0), np.int32(1))
    most = min(length, tables.j_length[at(j)])
    m_j = matched(tables.j_bases, j, most, masks, np.int32(length - 1), np.int32(-1))
    reach = np.int32(tables.levels - 1)
    last = min(length, np.int32(m_v + reach))
    first = max(np.int32(0), np.int32(length - m_j - reach))
    return Span(v, j, m_v, m_j, length, first, last)


@shared
def matched(symbols: Any, end: Any, most: Any, masks: Any, begin: Any, step: Any) -> Any:
    """How many bases of an end match the junction, from a position on in steps of one."""
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
def read_d(
    rows: Any, alg: Any, tables: Any, span: Any, models: Any, f: Any, total: Any, call: Any, memory: Any
) -> Any:
    """Add all occurrences of a D to the total and the region call, and return both."""
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
        # Mirrored ends of more bases than were read wait for the D to begin.
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


#: What a junction needs before anything is summed up.
prepare = by_type_of({PerModel: prepare_models, PerInsertions: prepare_insertions})

#: Ends that mirror what follows them in the junction, from position a on: bit ``origin - p`` for p bases.
mirrored_starts = by_type_of({PerModel: mirrored_starts_models, PerInsertions: mirrored_starts_insertions})

#: Paths with nothing left of a D, but for its weight.
sum_empty = by_type_of({PerModel: sum_empty_models, PerInsertions: sum_empty_insertions})

#: Paths without a D.
sum_none = by_type_of({PerModel: sum_none_models, PerInsertions: sum_none_insertions})

#: Add the occurrences of `read` bases of a D, found at x + lane, to the total.
add_found = by_type_of({PerModel: add_found_models, PerInsertions: add_found_insertions})

#: A total of no paths.
nothing = by_type_of({PerModel: nothing_models, PerInsertions: nothing_insertions})

#: Write the paths without a D.
write_none = by_type_of({PerModel: write_none_models, PerInsertions: write_none_insertions})

#: Write the paths with a D, with the share of those with nothing left of it.
write_d = by_type_of({PerModel: write_d_models, PerInsertions: write_d_insertions})
