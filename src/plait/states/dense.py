"""Sweeps over hidden Markov models: every state of a frame from every state of the one before.

    v_t(s) = (choice of v_{t-1}(r) extended by the transition r -> s) extended by what frame t weighs in s

One body, states in lanes, in any algebra: `SaturatingMaxPlus` of logarithms is Viterbi's, `Probability`
and `LogSum` the forward pass, `SaturatingCount` the number of paths, `Optimal` how many are best. The
backward pass is the same sweep over frames in reverse with transitions turned round.
"""

from __future__ import annotations

from typing import Any, Final

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
from plait.lang.compile import by_type_of, kernel
from plait.lang.lanes import equal, load, lowest_bit, mask_bits, splat, store


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
            # Two chains of choices, each of which waits for itself alone.
            found, other = _nothing(algebra, lanes), _nothing(algebra, lanes)
            if first and t == 0:
                found = _get(alg, lanes, begin, 0, s)
            else:
                for r in range(0, matrix.shape[0], 2):
                    step = extend(alg, _all_alike(alg, lanes, values, old, r), _get(alg, lanes, matrix, r, s))
                    found = choice(alg, found, step)
                    step = extend(
                        alg, _all_alike(alg, lanes, values, old, r + 1), _get(alg, lanes, matrix, r + 1, s)
                    )
                    other = choice(alg, other, step)
            found = choice(alg, found, other)
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
        s, r = path[t + 1], 0
        value, found = splat(lanes, reached[t + 1, s]), 0
        while r < backwards.shape[1] and found == 0:
            here = extend(alg, load(lanes, reached, t, r), load(lanes, weights, t, r))
            found = mask_bits(equal(extend(alg, here, load(lanes, backwards, s, r)), value))
            r += lanes.width
        path[t] = r - lanes.width + lowest_bit(found)
