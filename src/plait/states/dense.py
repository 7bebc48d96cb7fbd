"""Sweeps over hidden Markov models: every state of a frame from every state of the one before.

    v_t(s) = (choice of v_{t-1}(r) extended by the transition r -> s) extended by what frame t weighs in s

One body, states in lanes, in any algebra: `SaturatingMaxPlus` of logarithms is Viterbi's, `Probability`
and `LogSum` the forward pass, `SaturatingCount` the number of paths, `Optimal` how many are best. The
backward pass is the same sweep over frames in reverse with transitions turned round.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from plait.lang.algebras import (
    Count,
    LogSum,
    Optimal,
    Probability,
    SaturatingCount,
    SaturatingMaxPlus,
    algebra_in_lanes,
    choice,
    extend,
)
from plait.lang.compile import by_type_of, kernel, shared
from plait.lang.lanes import (
    equal,
    greater,
    highest_bit,
    load,
    lowest_bit,
    mask_bits,
    splat,
    store,
    width_of,
)


def _lanes(alg: Any, lanes: Any, rows: Any, row: Any, lane: Any) -> Any:
    return load(lanes, rows, row, lane)


def _pair(alg: Any, lanes: Any, rows: Any, row: Any, lane: Any) -> Any:
    return rows[row, lane, 0], rows[row, lane, 1]


def _put_lanes(alg: Any, lanes: Any, rows: Any, row: Any, lane: Any, value: Any) -> None:
    store(lanes, rows, row, lane, value)


def _put_pair(alg: Any, lanes: Any, rows: Any, row: Any, lane: Any, value: Any) -> None:
    rows[row, lane, 0], rows[row, lane, 1] = value


def _one(alg: Any, lanes: Any, rows: Any, row: Any, lane: Any) -> Any:
    return splat(lanes, rows[row, lane])


def _zero(alg: Any, lanes: Any) -> Any:
    return splat(lanes, alg.zero)


def _no_scale(alg: Any, values: Any, row: Any) -> Any:
    return 1.0


def _scale(alg: Any, values: Any, row: Any) -> Any:
    """Make values of a frame sum to one; their sum."""
    total = alg.zero
    for s in range(values.shape[1]):
        total += values[row, s]
    if total > alg.zero:
        for s in range(values.shape[1]):
            values[row, s] /= total
    return total


_NUMBERS: Final = (SaturatingMaxPlus, Probability, LogSum, SaturatingCount, Count)
_get: Final[Any] = by_type_of({Optimal: _pair, **dict.fromkeys(_NUMBERS, _lanes)})
_put: Final[Any] = by_type_of({Optimal: _put_pair, **dict.fromkeys(_NUMBERS, _put_lanes)})
_all_alike: Final[Any] = by_type_of({Optimal: _pair, **dict.fromkeys(_NUMBERS, _one)})
_nothing: Final[Any] = by_type_of({Optimal: lambda alg, lanes: alg.zero, **dict.fromkeys(_NUMBERS, _zero)})
_in_lanes: Final[Any] = by_type_of(
    {
        **dict.fromkeys((Optimal, *_NUMBERS), lambda alg, lanes: alg),
        SaturatingMaxPlus: lambda alg, lanes: algebra_in_lanes(alg, lanes),
    }
)
_scaled: Final[Any] = by_type_of({**dict.fromkeys((Optimal, *_NUMBERS), _no_scale), Probability: _scale})


@shared
def _reaching(algebra: Any, lanes: Any, matrix: Any, values: Any, row: Any, s: Any) -> Any:
    """What reaches some states from all, whose values are in a row of `values`."""
    # Two chains of choices, each of which waits for itself alone.
    alg = _in_lanes(algebra, lanes)
    found = other = _nothing(algebra, lanes)
    for r in range(0, matrix.shape[0], 2):
        step = extend(alg, _all_alike(alg, lanes, values, row, r), _get(alg, lanes, matrix, r, s))
        found = choice(alg, found, step)
        step = extend(alg, _all_alike(alg, lanes, values, row, r + 1), _get(alg, lanes, matrix, r + 1, s))
        other = choice(alg, other, step)
    return choice(alg, found, other)


@shared
def _way_back(
    alg: Any, lanes: Any, backwards: Any, s: Any, value: Any, reached: Any, at: Any, weights: Any, row: Any
) -> Any:
    """The first state from which state `s` is reached with `value`."""
    r, found = 0, 0
    while r < backwards.shape[1] and found == 0:
        here = extend(alg, load(lanes, reached, at, r), load(lanes, weights, row, r))
        found = mask_bits(equal(extend(alg, here, load(lanes, backwards, s, r)), value))
        r += lanes.width
    return r - lanes.width + lowest_bit(found)


@kernel
def sweep_states(
    algebra: Any,
    lanes: Any,
    begin: Any,
    matrix: Any,
    weights: Any,
    first: Any,
    reached: Any,
    values: Any,
    scales: Any,
) -> None:
    """Sweep some frames, one of `weights` (frames, states) a row; all rows are padded with zeros.

    `begin` (1, states): what there is before the first frame of all, which they begin with if `first`; else
    they go on from ``values[0]``. `matrix` (states, states): from, to. `reached` (frames, states): values
    before the weights of their frame. `values` (2, states): in the end, row ``frames % 2`` has those of the
    last frame. `scales` (frames,): what probabilities were divided by.
    """
    alg = _in_lanes(algebra, lanes)
    for t in range(weights.shape[0]):
        old, new = t & 1, 1 - (t & 1)
        for s in range(0, matrix.shape[1], lanes.width):
            found = _get(alg, lanes, begin, 0, s)
            if t > 0 or not first:
                found = _reaching(algebra, lanes, matrix, values, old, s)
            _put(alg, lanes, reached, t, s, found)
            _put(alg, lanes, values, new, s, extend(alg, found, _get(alg, lanes, weights, t, s)))
        scales[t] = _scaled(algebra, values, new)


@kernel
def trace_states(algebra: Any, lanes: Any, backwards: Any, weights: Any, reached: Any, path: Any) -> None:
    """The best way into state ``path[-1]`` of the last frame; of equal ways that from the first state.

    `backwards` (states, states): to, from; rows are padded as for `sweep_states`. `reached` has one row more.
    """
    alg = _in_lanes(algebra, lanes)
    for t in range(path.size - 2, -1, -1):
        value = splat(lanes, reached[t + 1, path[t + 1]])
        path[t] = _way_back(alg, lanes, backwards, path[t + 1], value, reached, t, weights, t)


class Reached(NamedTuple):
    """Ways back by what reaches states, float64 (frames, sequences, states), of the first frame `begin`."""

    rows: Any


class Beating(NamedTuple):
    """Ways back of as many states as lanes, int64 (frames, sequences).

    Bit ``r * width + s``: the way from state r into s is better than those from all states before r.
    """

    rows: Any


def _keep(ways: Any, algebra: Any, lanes: Any, matrix: Any, values: Any, place: Any) -> Any:
    t, k, s = place
    found = _reaching(algebra, lanes, matrix, values, k, s)
    store(lanes, ways.rows[t], k, s, found)
    return found


def _note(ways: Any, algebra: Any, lanes: Any, matrix: Any, values: Any, place: Any) -> Any:
    t, k, _ = place
    alg, found, bits = _in_lanes(algebra, lanes), splat(lanes, algebra.zero), 0
    for r in range(width_of(lanes)):
        step = extend(alg, splat(lanes, values[k, r]), load(lanes, matrix, r, 0))
        bits |= mask_bits(greater(step, found)) << r * width_of(lanes)
        found = choice(alg, found, step)
    ways.rows[t, k] = bits
    return found


def _equal_way(ways: Any, algebra: Any, lanes: Any, model: Any, t: Any, k: Any, s: Any, row: Any) -> Any:
    _, _, backwards, table = model
    alg, value = _in_lanes(algebra, lanes), splat(lanes, ways.rows[t + 1, k, s])
    return _way_back(alg, lanes, backwards, s, value, ways.rows[t], k, table, row)


def _last_better(
    ways: Beating, algebra: Any, lanes: Any, model: Any, t: Any, k: Any, s: Any, row: Any
) -> Any:
    width, column = width_of(lanes), 0
    for r in range(width):
        column |= 1 << r * width
    return highest_bit(ways.rows[t + 1, k] >> s & column) // width


_reached: Final[Any] = by_type_of({Reached: _keep, Beating: _note})
_came_from: Final[Any] = by_type_of({Reached: _equal_way, Beating: _last_better})


@kernel
def decode_few(
    lanes: Any, algebra: Any, model: Any, codes: Any, counts: Any, memory: Any, path: Any, scores: Any
) -> None:
    """Best paths as of `decode_sequences`, with few states in lanes; in a frame a sequence after the other.

    What one sequence waits for is the time of the others. `codes` and `path` (sequences, frames). `model`:
    `begin` (1, states), the steps (states, states): from, to, and to, from, and `table` (rows, states); all
    padded. `memory`: values (2, sequences, states), and `Reached` or `Beating`.
    """
    begin, matrix, _, table = model
    values, ways = memory
    alg = _in_lanes(algebra, lanes)
    for t in range(codes.shape[1]):
        before, after = values[t & 1], values[1 - (t & 1)]
        for k in range(codes.shape[0]):
            for s in range(0, matrix.shape[1], lanes.width):
                found = load(lanes, begin, 0, s)
                if t > 0:
                    found = _reached(ways, algebra, lanes, matrix, before, (t, k, s))
                store(lanes, after, k, s, extend(alg, found, load(lanes, table, codes[k, t], s)))
            if t == counts[k] - 1:
                scores[k], path[k, t] = -math.inf, -1
                for s in range(matrix.shape[1]):
                    if after[k, s] > scores[k]:
                        scores[k], path[k, t] = after[k, s], s
    for t in range(codes.shape[1] - 2, -1, -1):
        for k in range(codes.shape[0]):
            if t < counts[k] - 1:
                s = path[k, t] = path[k, t + 1]
                if s >= 0:
                    path[k, t] = _came_from(ways, algebra, lanes, model, t, k, s, codes[k, t])


def _no_log(alg: Any, values: Any, new: Any, states: Any, at: Any) -> Any:
    return 0.0


def _log_of_sum(alg: Any, values: Any, new: Any, states: Any, at: Any) -> Any:
    """Make values of a frame, of one lane, sum to one; the logarithm of their sum."""
    total = alg.zero
    for s in range(states):
        total += values[new + s, at]
    if total == alg.zero:
        return -math.inf
    for s in range(states):
        values[new + s, at] /= total
    return math.log(total)


_log_of_scale: Final[Any] = by_type_of({SaturatingMaxPlus: _no_log, Probability: _log_of_sum})


@shared
def _two_choices(
    lanes: Any, alg: Any, zero: Any, backwards: Any, values: Any, s: Any, u: Any, old: Any, at: Any
) -> Any:
    """What reaches two states from all states, whose values are in rows of `values` from `old` on."""
    even = odd = even_u = odd_u = splat(lanes, zero)
    for r in range(0, backwards.shape[0] - 1, 2):
        value, after = load(lanes, values, old + r, at), load(lanes, values, old + r + 1, at)
        even = choice(alg, even, extend(alg, value, splat(lanes, backwards[s, r])))
        odd = choice(alg, odd, extend(alg, after, splat(lanes, backwards[s, r + 1])))
        even_u = choice(alg, even_u, extend(alg, value, splat(lanes, backwards[u, r])))
        odd_u = choice(alg, odd_u, extend(alg, after, splat(lanes, backwards[u, r + 1])))
    if backwards.shape[0] & 1:
        last = backwards.shape[0] - 1
        value = load(lanes, values, old + last, at)
        even = choice(alg, even, extend(alg, value, splat(lanes, backwards[s, last])))
        even_u = choice(alg, even_u, extend(alg, value, splat(lanes, backwards[u, last])))
    return choice(alg, even, odd), choice(alg, even_u, odd_u)


@shared
def sweep_sequences(place: Any, algebra: Any, model: Any, codes: Any, values: Any, reached: Any) -> Any:
    """Sweep sequences side by side, one a lane; the logarithm of what probabilities were divided by.

    `place`: lanes, and the first of them. `model`: `begin` (states,), `backwards` (states, states): to, from,
    and `table` (rows, states), what frames weigh, of which `codes` int32 (frames, width) has the rows.
    `values` (2 states, width) is memory. `reached` (frames + 1, states, width): values before the
    weights of their frame, of which the last row is not set; or one row, and they are not kept.
    """
    lanes, at = place
    begin, backwards, table = model
    alg, states, logs = _in_lanes(algebra, lanes), begin.size, 0.0
    for t in range(codes.shape[0]):
        old, new = (t & 1) * states, (1 - (t & 1)) * states
        for s in range(states):
            for k in range(width_of(lanes)):
                values[new + s, at + k] = table[codes[t, at + k], s]
        for s in range(0, states, 2):
            # Two states at a time, with two chains of choices each, which wait for themselves alone.
            u = min(s + 1, states - 1)
            found, other = splat(lanes, begin[s]), splat(lanes, begin[u])
            if t > 0:
                found, other = _two_choices(lanes, alg, algebra.zero, backwards, values, s, u, old, at)
            if reached.shape[0] > 1:
                store(lanes, reached[t], s, at, found)
                store(lanes, reached[t], u, at, other)
            found = extend(alg, found, load(lanes, values, new + s, at))
            other = extend(alg, other, load(lanes, values, new + u, at))
            store(lanes, values, new + s, at, found)
            store(lanes, values, new + u, at, other)
        logs += _log_of_scale(algebra, values, new, states, at)
    return logs


@shared
def trace_sequences(
    place: Any, model: Any, codes: Any, counts: Any, reached: Any, path: Any, scores: Any
) -> None:
    """Best paths of what `sweep_sequences` has swept, `path` int32 (frames, width), and `scores` (width,).

    `counts` int64 (width,) are frames of sequences. Lane by lane in a frame, whose values are near then.
    """
    lanes, at = place
    _, backwards, table = model
    states = backwards.shape[0]
    for t in range(path.shape[0] - 1, -1, -1):
        for lane in range(at, at + width_of(lanes)):
            if t >= counts[lane]:
                continue
            row, found = codes[t, lane], -1
            if t == counts[lane] - 1:
                scores[lane] = -math.inf
                for r in range(states):
                    if reached[t, r, lane] + table[row, r] > scores[lane]:
                        scores[lane], found = reached[t, r, lane] + table[row, r], r
            elif path[t + 1, lane] >= 0:
                last = path[t + 1, lane]
                value = reached[t + 1, last, lane]
                for r in range(states - 1, -1, -1):
                    here = reached[t, r, lane] + table[row, r] + backwards[last, r]
                    found = r if here == value else found
            path[t, lane] = found


@kernel
def decode_sequences(
    lanes: Any, algebra: Any, model: Any, codes: Any, counts: Any, memory: Any, path: Any, scores: Any
) -> None:
    """Best paths of sequences of `counts` int64 (width,) frames, side by side, and `scores` (width,).

    `memory`: values (2 states, width), and what reaches states (frames, states, width); the rest as for
    `sweep_sequences` and `trace_sequences`.
    """
    values, reached = memory
    sweep_sequences((lanes, 0), algebra, model, codes, values, reached)
    trace_sequences((lanes, 0), model, codes, counts, reached, path, scores)
