"""The part of `plait.schedules.warp_chain` where a row is one value per model: two models for each lane.

At most k insertions that weigh one are a window over the running sum of the weights of an end: a difference
of two sums, exact because counts are whole numbers. So no level of the insertions is ever stored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import shared
from plait.algebras import choice, extend, repeat
from plait.lanes import lowest_bit, population
from plait.lanes.warps import WARP, at, ballot, in_word, lane_index, shuffle, synchronize_warp, warp_size

__all__ = [
    "Models",
    "add_found_models",
    "mirrored_starts_models",
    "models_of",
    "nothing_models",
    "prepare_models",
    "sum_empty_models",
    "sum_none_models",
    "write_fragment_models",
    "write_model",
    "write_none_models",
]


class Models(NamedTuple):
    """The two models of a lane, which have one pattern.

    Attributes
    ----------
    first, second
        Numbers of the models; not below M if there is none.
    pattern
        The pattern of both.
    left, right, single
        How far the windows of both reach back in the running sums: before the fragment, after it, and where
        there is none.
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
    """`prepare` with a row per model: arms of mirrors, and running sums of the ends."""
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
            before = min(kept, np.int32(span.m_prefix + 1))
            after = min(kept, np.int32(span.m_suffix + 1))
            memory.left[at(place)] = tables.prefix_sums[at(span.prefix), at(before), at(pattern)]
            memory.right[at(place)] = tables.suffix_sums[at(span.suffix), at(after), at(pattern)]
            i = np.int32(i + group)
    synchronize_warp()


@shared
def arm(tables: Any, span: Any, c: Any, masks: Any) -> Any:
    """How far the text before a position mirrors the text after it."""
    most = min(tables.hidden, min(c, np.int32(span.length - c)))
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
    most = min(tables.hidden, np.int32(span.length - a))
    for p in range(np.int32(1), np.int32(most + 1)):
        if memory.arms[at(a + p)] >= p:
            bits = word(bits | (word(1) << in_word(bits, np.int32(origin - p))))
    return bits


@shared
def sum_empty_models(rows: Any, alg: Any, tables: Any, span: Any, models: Any, memory: Any) -> Any:
    """`sum_empty` with a row per model."""
    first, second = np.int64(alg.zero), np.int64(alg.zero)
    for a in range(span.first, np.int32(span.last + 1)):
        left = windows(memory.left, place_of(tables, models, a), models.left)
        right = windows(memory.right, place_of(tables, models, np.int32(span.length - a)), models.right)
        first = choice(alg, first, extend(alg, np.int64(left[0]), np.int64(right[0])))
        second = choice(alg, second, extend(alg, np.int64(left[1]), np.int64(right[1])))
    return first, second


@shared
def sum_none_models(rows: Any, alg: Any, tables: Any, span: Any, models: Any, memory: Any) -> Any:
    """`sum_none` with a row per model."""
    first, second = np.int64(alg.zero), np.int64(alg.zero)
    kept = tables.patterns, tables.patterns
    for a in range(max(np.int32(0), np.int32(span.length - span.m_suffix)), np.int32(span.last + 1)):
        left = windows(memory.left, place_of(tables, models, a), models.single)
        right = windows(memory.right, place_of(tables, models, np.int32(span.length - a)), kept)
        first = choice(alg, first, extend(alg, np.int64(left[0]), np.int64(right[0])))
        second = choice(alg, second, extend(alg, np.int64(left[1]), np.int64(right[1])))
    return first, second


@shared
def place_of(tables: Any, models: Any, kept: Any) -> Any:
    """Where in the running sums of an end stands all that keeps up to so many symbols."""
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
def write_fragment_models(
    rows: Any, alg: Any, tables: Any, item: Any, models: Any,
    f: Any, allowed: bool, total: Any, empty: Any, memory: Any, out: Any,
) -> None:  # fmt: skip
    """`write_fragment` with a row per model."""
    write_model(alg, tables, item, models.first, f, allowed, total[0], empty[0], out)
    write_model(alg, tables, item, models.second, f, allowed, total[1], empty[1], out)


@shared
def write_model(
    alg: Any, tables: Any, item: Any, model: Any, f: Any, allowed: bool, total: Any, empty: Any, out: Any
) -> None:
    """The counts of one model and one fragment, or their share of the sum."""
    if model < tables.out_lane.size:
        x = at(tables.out_lane[at(model)])
        left = extend(alg, empty, tables.empty[at(f), at(model)]) if allowed else np.int64(alg.zero)
        full = choice(alg, total, left)
        if out.empty.shape[1] > 0:
            out.empty[at(item), at(f), x] = left
        if out.full.shape[1] == tables.fragments:
            out.full[at(item), at(f), x] = full
        else:
            out.full[at(item), at(0), x] = choice(alg, out.full[at(item), at(0), x], full) if f > 0 else full
