"""Wavefront over bands and samples: at step k, band z works on its sample k - z.

A sample needs earlier samples of its band, and the same sample of the bands before it. So all bands of a step
are independent of one another, and neighbouring bands lie in neighbouring lanes, for predicting residuals and
for finding samples from residuals alike. A wave runs over a stretch of samples of all its bands, and nothing
is left under way at its end.

Memory is laid out by steps: ``values[k % rows, z]`` belongs to sample ``k - z`` of band z. Samples go into
that layout, and out of it, by `skew` and `unskew`. Bands that are too many for one wave go into several, one
after the other, each of which hands what is needed of its last bands over to the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.bands.prediction import (
    doubled,
    error_limit,
    folded,
    in_lanes,
    learned,
    learning_shift,
    local_sum,
    mapped,
    no_sum,
    of_lanes,
    plus_product,
    predicted,
    quantised,
    representative,
    restored,
    steps_to_end,
    unfolded,
    unmapped,
)
from plait.lang.compile import by_type, shared
from plait.lang.lanes import OneLane, equal, greater, load, select, store

#: Steps whose differences are kept, and lanes before the first band: more than the 15 bands before a band.
PAST = 16


class BandMemory(NamedTuple):
    """Arrays of a wave, integers as wide as the lanes, rows of C order.

    The number of bands here is a multiple of the lanes of every group; there may be more than the image has.

    `values` (rows, bands): samples in, residuals out, or the other way round; as many rows as the samples of
    a stretch and the bands together. `near` (rows, `PAST` + bands): what stands for the samples in sums and
    differences, with more rows than those and the columns together; the first `PAST` lanes are of the bands
    before, or 0. `past` (`PAST`, `PAST` + bands): differences from the local sums, of the last steps;
    likewise.

    `weights` (components, bands); the first three are of the directional differences, if there are any.
    `offsets`: of the exponents of learning, in that shape, or one row if there are none. `bands` (7, bands):
    0, 1, 2, ..., then of each band phi and psi, and the limits of `plait.dp.bands.prediction.error_limit`.
    `places` (1, columns + lanes of a group): column of a sample counted
    backwards, ``-k`` modulo the columns for k = 0, 1, ...

    `before` and `after` (samples of a stretch, 1 + bands that are predicted from, at least 2): what the wave
    before hands over, and what this one does; in place m the difference of the m-th last band, in place 0
    what stands for the sample of the last one. No rows where there is no other wave. They may be one array.
    """

    values: Any
    near: Any
    past: Any
    weights: Any
    offsets: Any
    bands: Any
    places: Any
    before: Any
    after: Any


class ToResiduals(NamedTuple):
    """Values are samples, and become residuals."""

    @staticmethod
    def exchange(way: ToResiduals, p: Any, value: Any, double: Any, limits: Any) -> Any:
        return value, p.zero, mapped(p, value, double)


class ToSamples(NamedTuple):
    """Values are residuals, and become samples."""

    @staticmethod
    def exchange(way: ToSamples, p: Any, value: Any, double: Any, limits: Any) -> Any:
        sample = unmapped(p, value, double)
        return sample, p.zero, sample


@shared
def _signed(p: Any, index: Any, size: Any) -> Any:
    """A size with the sign of an index."""
    return select(greater(p.zero, index), p.zero - size, select(greater(index, p.zero), size, p.zero))


@shared
def _pair(p: Any, high: Any, low: Any) -> Any:
    """Two numbers in one: 32 bits of each, the lower one without a sign."""
    two = p.one + p.one
    half = p.one << ((two + two) << (two + p.one))
    return high * half + low


class ToIndices(NamedTuple):
    """Values are samples, and become quantiser indices, mapped, with the restored samples above bit 32."""

    @staticmethod
    def exchange(way: ToIndices, p: Any, value: Any, double: Any, limits: Any) -> Any:
        limit = error_limit(p, double, limits)
        index = quantised(p, value, double, limit)
        sample = restored(p, index, double, limit)
        other = folded(p, index, double, steps_to_end(p, double, limit))
        return sample, _signed(p, index, limit), _pair(p, sample, other)


class FromIndices(NamedTuple):
    """Values are quantiser indices, mapped, and become restored samples, with their limits above bit 32.

    Unlike others these samples count from the least one.
    """

    @staticmethod
    def exchange(way: FromIndices, p: Any, value: Any, double: Any, limits: Any) -> Any:
        limit = error_limit(p, double, limits)
        index = unfolded(p, value, double, steps_to_end(p, double, limit))
        sample = restored(p, index, double, limit)
        return sample, _signed(p, index, limit), _pair(p, limit, sample - p.least)


class Exact(NamedTuple):
    """Samples stand for themselves."""

    @staticmethod
    def kept(stand: Exact, p: Any, sample: Any, high: Any, phi: Any, offset: Any) -> Any:
        return sample


class Damped(NamedTuple):
    """Sample representatives."""

    @staticmethod
    def kept(stand: Damped, p: Any, sample: Any, high: Any, phi: Any, offset: Any) -> Any:
        return representative(p, sample, high, phi, p.zero)


class Offset(NamedTuple):
    """Sample representatives that lie off the centres of bins; of quantised samples."""

    @staticmethod
    def kept(stand: Offset, p: Any, sample: Any, high: Any, phi: Any, offset: Any) -> Any:
        return representative(p, sample, high, phi, offset)


@by_type
def exchange(way: Any, p: Any, value: Any, double: Any, limits: Any) -> Any:
    """The sample as decoders have it; its limit with the sign of its index; and what the value becomes."""


@by_type
def kept(stand: Any, p: Any, sample: Any, high: Any, phi: Any, offset: Any) -> Any:
    """What stands for a sample from now on; see `representative`."""


class Way(NamedTuple):
    """What a wave does.

    `exchange` is `ToResiduals` or `ToSamples` with `stand` `Exact` or `Damped`, or `ToIndices` or
    `FromIndices` with `Offset`. Values, for which no code is compiled anew: `sums`, the kind of
    `plait.dp.bands.prediction.local_sum`; `own_rates`: every weight has an offset of its own; `full`: there
    are directional differences; `before` is P, the bands before a band that it is predicted from.
    """

    sums: Any
    exchange: Any
    stand: Any
    own_rates: Any
    full: Any
    before: Any


@shared
def directional(p: Any, near: Any, sigma: Any, first_row: Any, first: Any) -> Any:
    """Differences of the northern, western and north-western neighbour from the local sum."""
    w, nw, n, _ = near
    two = p.one + p.one
    north = select(first_row, p.zero, (n << two) - sigma)
    west = select(first_row, p.zero, (select(first, n, w) << two) - sigma)
    north_west = select(first_row, p.zero, (select(first, n, nw) << two) - sigma)
    return north, west, north_west


@shared
def learn_one(
    lanes: Any, p: Any, way: Any, memory: Any, i: int, lane: int, u: Any, falls: Any, shift: Any
) -> None:
    """Change a weight of a group of bands."""
    own = shift
    if way.own_rates:
        own = shift + load(lanes, memory.offsets, i, lane)
    store(lanes, memory.weights, i, lane, learned(p, load(lanes, memory.weights, i, lane), u, falls, own))


@shared
def _turned(lanes: Any, p: Any, way: Any, memory: Any, here: int, lane: int, high: Any, double: Any) -> Any:
    """Change a value into what it becomes; the sample, and what stands for it."""
    limits = (
        load(lanes, memory.bands, 3, lane),
        load(lanes, memory.bands, 4, lane),
        load(lanes, memory.bands, 5, lane),
        load(lanes, memory.bands, 6, lane),
    )
    value = load(lanes, memory.values, here, lane)
    sample, pull, other = exchange(way.exchange, p, value, double, limits)
    store(lanes, memory.values, here, lane, other)
    offset = pull * load(lanes, memory.bands, 2, lane)
    return sample, kept(way.stand, p, sample, high, load(lanes, memory.bands, 1, lane), offset)


@shared
def _group(lanes: Any, p: Any, way: Any, memory: Any, rows: Any, step: Any, lane: int, place: int) -> None:
    """One step of the bands of a group of lanes."""
    here, kept_here, west, two_west, north, north_east, north_west, now = rows
    near, weights = memory.near, memory.weights
    at = lane + 16
    w = load(lanes, near, west, at)
    n = load(lanes, near, north, at)
    nw = load(lanes, near, north_west, at)
    ne = load(lanes, near, north_east, at)
    wz = load(lanes, near, two_west, at - 1)
    column = load(lanes, memory.places, 0, place)
    t = step - load(lanes, memory.bands, 0, lane)
    first_row = greater(p.columns, t)
    first = equal(column, p.zero)
    last = equal(column, p.columns - p.one)
    sigma = local_sum(way.sums, (w, nw, n, ne), wz, first_row, first, last)
    d_n, d_w, d_nw = directional(p, (w, nw, n, ne), sigma, first_row, first)
    dot = no_sum(p)
    base = 0
    if way.full:
        base = 3
        dot = plus_product(p, dot, d_n, load(lanes, weights, 0, lane))
        dot = plus_product(p, dot, d_w, load(lanes, weights, 1, lane))
        dot = plus_product(p, dot, d_nw, load(lanes, weights, 2, lane))
    for i in range(way.before):
        u = load(lanes, memory.past, (now - 1 - i) & 15, at - 1 - i)
        dot = plus_product(p, dot, u, load(lanes, weights, base + i, lane))
    high = predicted(p, dot, sigma)
    double = doubled(p, high)
    sample, stands = _turned(lanes, p, way, memory, here, lane, high, double)
    store(lanes, near, kept_here, at, stands)
    store(lanes, memory.past, now & 15, at, (stands << (p.one + p.one)) - sigma)
    falls = greater(double, sample + sample)
    shift = learning_shift(p, t)
    if way.full:
        learn_one(lanes, p, way, memory, 0, lane, d_n, falls, shift)
        learn_one(lanes, p, way, memory, 1, lane, d_w, falls, shift)
        learn_one(lanes, p, way, memory, 2, lane, d_nw, falls, shift)
    for i in range(way.before):
        u = load(lanes, memory.past, (now - 1 - i) & 15, at - 1 - i)
        learn_one(lanes, p, way, memory, base + i, lane, u, falls, shift)


@shared
def _first_sample(p: Any, way: Any, memory: Any, rows: Any, band: int, has_before: bool) -> None:
    """The first sample of a band, which has no neighbours."""
    double = p.zero
    if way.before and has_before:
        double = memory.near[rows[2], band + 15] << 1
    lossless = (p.zero, p.zero, p.zero, p.zero)
    sample, _, other = exchange(way.exchange, p, memory.values[rows[0], band], double, lossless)
    memory.values[rows[0], band] = other
    memory.near[rows[1], band + 16] = sample


@shared
def _receive(most: int, memory: Any, step: int, first: int, last: int) -> None:
    """What so many bands before have for one step, into the lanes before the first."""
    for m in range(1, most + 1):
        t = step + m
        if first <= t < last:
            memory.past[step & 15, 16 - m] = memory.before[t - first, m]
    if first <= step + 1 < last:
        memory.near[step % memory.near.shape[0], 15] = memory.before[step + 1 - first, 0]


@shared
def _hand_over(most: int, memory: Any, step: int, first: int, last: int) -> None:
    """What so many of the last bands have after one step."""
    bands = memory.values.shape[1]
    for m in range(1, most + 1):
        t = step - (bands - m)
        if first <= t < last:
            memory.after[t - first, m] = memory.past[step & 15, 16 + bands - m]
            if m == 1:
                memory.after[t - first, 0] = memory.near[step % memory.near.shape[0], 15 + bands]


@shared
def _back(at: int, by: int, rows: int) -> int:
    """A row so far back, where the last one comes before the first; without the division of a remainder."""
    return at - by if at >= by else at - by + rows


@shared
def _run_step(lanes: Any, p: Any, numbers: Any, way: Any, memory: Any, step: int, low: int, high: int) -> Any:
    """One step of the bands from `low` to before `high`; returns the rows of the step."""
    columns = numbers.columns
    rows = memory.near.shape[0]
    at = step % rows
    ring = (
        step % memory.values.shape[0],
        at,
        _back(at, 1, rows),
        _back(at, 2, rows),
        _back(at, columns, rows),
        _back(at, columns - 1, rows),
        _back(at, columns + 1, rows),
        step,
    )
    group = low // lanes.width * lanes.width
    place = (group - step) % columns
    turn = lanes.width % columns
    own = numbers.zero + step
    every = in_lanes(p, lanes, own)
    while group < high:
        if group >= low and group + lanes.width <= high:
            _group(lanes, p, way, memory, ring, every, group, place)
        else:
            for lane in range(max(group, low), min(group + lanes.width, high)):
                _group(OneLane(1), numbers, way, memory, ring, own, lane, (lane - step) % columns)
        group += lanes.width
        place += turn
        if place >= columns:
            place -= columns
    return ring


@shared
def run_samples(lanes: Any, numbers: Any, way: Any, memory: Any, first: int, last: int) -> None:
    """Run a wave over the samples `first` to before `last`.

    `lanes` is the width of a group; `numbers` is `BandPrediction` of plain 64-bit numbers; `memory` is
    changed in place.
    """
    p = of_lanes(numbers, lanes)
    bands = memory.values.shape[1]
    receives, most = memory.before.shape[0] > 0, max(way.before, 1)
    if receives:
        for step in range(first - 15, first):
            _receive(most, memory, step, first, last)
    for step in range(first, last + bands - 1):
        if receives:
            _receive(most, memory, step, first, last)
        low = max(0, step - last + 1)
        high = min(bands, step - max(first, 1) + 1)
        rows = _run_step(lanes, p, numbers, way, memory, step, low, high)
        if first == 0 and step < bands:
            _first_sample(numbers, way, memory, rows, step, step > 0 or receives)
        if memory.after.shape[0]:
            _hand_over(most, memory, step, first, last)


@shared
def skew(samples: Any, first: int, low: int, high: int, values: Any) -> None:
    """Lay the bands `low` to before `high` of samples out by steps in `values`, see `BandMemory`.

    `samples` are int64, (samples, bands); `first` is the number of the first of them in their bands.
    """
    for k in range(samples.shape[0]):
        row = (first + k) % values.shape[0]
        # Where the memory begins again.
        turn = min(values.shape[0] - row, high - low)
        for z in range(turn):
            store(OneLane(1), values, row + z, z, load(OneLane(1), samples, k, low + z))
        row -= values.shape[0]
        for z in range(turn, high - low):
            store(OneLane(1), values, row + z, z, load(OneLane(1), samples, k, low + z))


@shared
def skew_bands(residuals: Any, first: int, last: int, values: Any) -> None:
    """As `skew`, of the samples `first` to before `last` of all bands, (bands, samples)."""
    bands = residuals.shape[0]
    for step in range(first, last + bands - 1):
        row = step % values.shape[0]
        for z in range(max(0, step - last + 1), min(bands, step - first + 1)):
            store(OneLane(1), values, row, z, load(OneLane(1), residuals, z, step - z))


@shared
def unskew(values: Any, first: int, low: int, high: int, samples: Any, middle: int) -> None:
    """The inverse of `skew`, with `middle` added: bands of `samples`, integers, are written."""
    for k in range(samples.shape[0]):
        row = (first + k) % values.shape[0]
        turn = min(values.shape[0] - row, high - low)
        for z in range(turn):
            store(OneLane(1), samples, k, low + z, load(OneLane(1), values, row + z, z) + middle)
        row -= values.shape[0]
        for z in range(turn, high - low):
            store(OneLane(1), samples, k, low + z, load(OneLane(1), values, row + z, z) + middle)
