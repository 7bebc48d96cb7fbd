"""Prediction on GPUs: bands in lanes, samples one after the other.

Without loss, the differences from the local sums are known before anything is predicted. Only the weights
depend on one another along the samples of a band, so a warp goes through the samples of 32 bands and does
nothing else: the other warps of its block bring the differences, `STEPS` samples ahead, and what comes before
and after is done by as many threads as there are samples.

With d the central difference of a sample s, the prediction is at least s where the weighted sum is at least
``d << omega``; with ``e = (sum - (d << omega)) >> (omega + 1)``, the double-resolution prediction is
``2 s + 1 + e``, held at its limits. So e is all that is kept of a sample. It has 32 bits up to 16 bits of a
sample, as have the differences. No register may be so narrow that a sum is wrapped: see `fits`.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np

from plait.devices.cuda import CudaKernel, cuda, cuda_kernel
from plait.dp.bands.prediction import BandPrediction, doubled, learned, learning_shift, local_sum, unmapped
from plait.dp.bands.wavefront import PAST, directional
from plait.lang.compile import shared
from plait.lang.lanes import equal, greater, select
from plait.lang.warps import WARP, synchronize_warp

#: Samples of a band that are brought together, and warps of a block, of which the first one predicts.
STEPS: Final = 32
WARPS: Final = 17
#: A multiple of whatever is divided by, larger than what is shifted.
_LIFT: Final = 1 << 30
_WIDE: Final = WARP + PAST
_WORD: Final = np.dtype(np.int32)


class WordPrediction(NamedTuple):
    """Constants of learning as 32-bit numbers; see `BandPrediction`, whose results these are.

    A learning shift is three numbers here, see `learned`. What is shifted is made positive before, by
    `_LIFT`: of numbers with a sign compiled code would take 64 bits.
    """

    least: Any
    largest: Any
    omega: Any
    columns: Any
    interval: Any
    initial: Any
    final: Any
    scale: Any

    @staticmethod
    def doubled(p: WordPrediction, high: Any) -> Any:
        # Held at the limits after the shift, where 32 bits do.
        whole = np.int32((high >> np.int64((p.omega + 1) & 31)) + 1)
        return min(max(whole, np.int32(2 * p.least)), np.int32(2 * p.largest + 1))

    @staticmethod
    def unmapped(p: WordPrediction, residual: Any, double: Any) -> Any:
        base = np.int32(double >> 1)
        below, above = np.int32(base - p.least), np.int32(p.largest - base)
        theta, half = min(below, above), np.int32(np.int32(residual + 1) >> 1)
        small = np.int32(-half) if np.int32(residual ^ double) & 1 else half
        far = np.int32(residual - theta)
        large = far if above > below else np.int32(-far)
        return np.int32(base + (large if residual > np.int32(2 * theta) else small))

    @staticmethod
    def learning_shift(p: WordPrediction, t: Any) -> Any:
        steps = np.int32((np.int32(t - p.columns) >> (p.interval & 31)) + p.initial)
        shift = np.int32(min(max(steps, p.initial), p.final) + p.scale)
        left, right = max(np.int32(-shift), np.int32(0)), max(shift, np.int32(0))
        one = np.int32(1)
        return np.int32(one << left + 1), np.int32((one << right + 1) + _LIFT), np.int32(right + 2)

    @staticmethod
    def learned(p: WordPrediction, weight: Any, difference: Any, falls: Any, shift: Any) -> Any:
        # ((d << left >> right) + 1) >> 1 is (2 d 2**left + 2 * 2**right) >> (right + 2).
        scale, half, places = shift
        signed = np.int32(-scale) if falls else scale
        twice = np.uint32(np.int32(difference * signed) + half)
        moved = np.int32(
            weight + np.int32(twice >> np.uint32(places & 31)) - np.int32(_LIFT >> (places & 31))
        )
        bound = np.int32(np.int32(4) << (p.omega & 31))
        return min(max(moved, np.int32(-bound)), np.int32(bound - 1))


def word_prediction(p: BandPrediction) -> WordPrediction:
    """The same constants for words."""
    return WordPrediction(*(np.int32(getattr(p, name)) for name in WordPrediction._fields))


class Stretch(NamedTuple):
    """Samples of all bands, some rows of an image.

    `raw`, uint16, holds the row before them, too: sample k of band z is ``raw[columns + k, z]``. As a number
    counted from the middle it is that ``^ flip``, less `middle`. `first` is the number of the first one in
    its band, `count` their number.
    """

    raw: Any
    flip: Any
    middle: Any
    first: Any
    count: Any


@shared
def sample_at(stretch: Any, row: Any, band: Any) -> Any:
    """A sample, counted from the middle, by its row in `raw`."""
    return np.int32((np.int32(stretch.raw[row, band]) ^ stretch.flip) - stretch.middle)


class Differences(NamedTuple):
    """Differences of a stretch, int32.

    `central` (samples, `PAST` + bands): those of each band; the first `PAST` columns are 0. `sides` (3,
    samples, bands): the directional ones; without rows of samples where there are none. The bands here are a
    multiple of `WARP`.
    """

    central: Any
    sides: Any


def _examples() -> dict[str, Any]:
    numbers = BandPrediction(*(np.int64(0),) * 12)
    table, one = np.zeros((1, 1), np.int32), np.int32(0)
    return {
        "p": numbers,
        "words": WordPrediction(*(one,) * 8),
        "stretch": Stretch(np.zeros((1, 1), np.uint16), one, one, np.int64(0), np.int64(0)),
        "differences": Differences(table, np.zeros((3, 1, 1), np.int32)),
        "table": table,
        "row": np.zeros(1, np.int32),
        "number": one,
        "given": (one, True, one),
        "wing": Wing(np.zeros((1, 1), np.uint16), np.zeros((1, 1, 1), np.int32), np.zeros(1, np.int32)),
        "flag": np.zeros(1, np.int32),
    }


@cuda_kernel(lambda: [tuple(_examples()[name] for name in ("p", "number", "stretch", "differences", "flag"))])
def find_differences(p: Any, kind: Any, stretch: Any, found: Any, wrong: Any) -> None:
    """Fill `found`, a thread for each of its elements. `kind` is that of the local sum.

    ``wrong[0]`` becomes 1 if a sample is out of its range.
    """
    width = found.central.shape[1]
    thread = cuda.grid(1)
    k, column = thread // width, thread % width
    if k >= stretch.count:
        return
    z, t = column - PAST, stretch.first + k
    directed = found.sides.shape[1] > 0
    if t == 0 or z < 0 or z >= stretch.raw.shape[1]:
        found.central[k, column] = 0
        if directed and z >= 0:
            for i in range(3):
                found.sides[i, k, z] = 0
        if t > 0 or z < 0 or z >= stretch.raw.shape[1]:
            return
    columns = p.columns
    row = columns + k
    s = sample_at(stretch, row, z)
    if s < p.least or s > p.largest:
        wrong[0] = 1
    if t == 0:
        return
    w = np.int64(sample_at(stretch, row - 1, z))
    n = np.int64(sample_at(stretch, k, z))
    # In the first column there is no north-western neighbour, nor one of the memory.
    nw = np.int64(sample_at(stretch, max(k - 1, 0), z))
    ne = np.int64(sample_at(stretch, k + 1, z))
    wz = np.int64(sample_at(stretch, row - 1, z - 1)) if z > 0 else p.zero
    near = w, nw, n, ne
    first_row, first = greater(columns, t), equal(t % columns, p.zero)
    sigma = local_sum(kind, near, wz, first_row, first, equal(t % columns, columns - p.one))
    found.central[k, PAST + z] = np.int32(4 * s - sigma)
    if directed:
        sides = directional(p, near, sigma, first_row, first)
        for i in range(3):
            found.sides[i, k, z] = np.int32(sides[i])


class _Tile(NamedTuple):
    """Differences of `STEPS` samples and a warp's bands in shared memory, and the factors of learning."""

    central: Any
    sides: Any
    rates: Any


@shared
def _bring_tile(
    p: Any, found: Differences, tile: _Tile, first: Any, start: Any, low: Any, helper: Any
) -> None:
    """Copy the differences from sample `first` on to shared memory; `helper` is (warp, warps, lane)."""
    warp, warps, lane = helper
    samples, directed = found.central.shape[0], found.sides.shape[1] > 0
    here = np.uint32(low + lane)
    there = np.uint32(min(np.int32(low + WARP + lane), np.int32(found.central.shape[1] - 1)))
    for count in range(warp, STEPS, warps):
        step, row = np.uint32(count), np.uint32(min(np.int32(first + count), np.int32(samples - 1)))
        # All are asked for before the first is needed.
        before, after = found.central[row, here], found.central[row, there]
        north = west = north_west = np.int32(0)
        if directed:
            north, west = found.sides[0, row, here], found.sides[1, row, here]
            north_west = found.sides[2, row, here]
        if first + count >= samples:
            # No weight learns from samples without differences, as those behind the last one are.
            before = after = north = west = north_west = np.int32(0)
        tile.central[step, np.uint32(lane)] = before
        if lane < PAST:
            tile.central[step, np.uint32(WARP + lane)] = after
        tile.sides[0, step, np.uint32(lane)] = north
        tile.sides[1, step, np.uint32(lane)] = west
        tile.sides[2, step, np.uint32(lane)] = north_west
    if warp == 0:
        rates = learning_shift(p, np.int32(start + first + lane))
        for i in range(3):
            tile.rates[i, np.uint32(lane)] = rates[i]


@shared
def _weighted(start: Any, u: Any, weights: Any) -> Any:
    """The weighted sum of differences and `start`, as two sums, of which neither waits for the other."""
    even, odd = start, np.int64(0)
    for i in range(0, weights.size - 1, 2):
        even += np.int64(u[i]) * np.int64(weights[i])
        odd += np.int64(u[i + 1]) * np.int64(weights[i + 1])
    if weights.size % 2:
        even += np.int64(u[weights.size - 1]) * np.int64(weights[weights.size - 1])
    return even + odd


@shared
def _take_sample(tile: _Tile, step: Any, lane: Any, u: Any) -> None:
    """The differences of a sample, then the central one of its own band, and its factors of learning."""
    last = u.size - 4
    for i in range(3):
        u[i] = tile.sides[i, step, lane]
        u[last + 1 + i] = tile.rates[i, step]
    for i in range(last - 3):
        u[3 + i] = tile.central[step, np.uint32(PAST - 1 - i) + lane]
    u[last] = tile.central[step, np.uint32(PAST) + lane]


@shared
def _learn_sample(p: Any, u: Any, weights: Any) -> Any:
    """Change the weights by what `_take_sample` has taken; e of the sample."""
    last = weights.size
    whole = _weighted(-(np.int64(u[last]) << np.int64(p.omega & 31)), u, weights)
    falls = whole >= 0
    for i in range(last):
        weights[i] = learned(p, weights[i], u[i], falls, (u[last + 1], u[last + 2], u[last + 3]))
    return np.int32(whole >> np.int64((p.omega + 1) & 31))


@shared
def _learn_tile(p: Any, tile: _Tile, memory: Any, place: Any, lane: Any) -> None:
    """Go through the samples of a tile, two at a time: one is taken while the other is learned from.

    `memory` is the weights, room for two samples, and where e of them goes, from ``place[0]`` on in steps of
    ``place[1]``.
    """
    weights, one, other, out = memory
    at, width = place
    _take_sample(tile, np.uint32(0), lane, one)
    for pair in range(STEPS // 2):
        _take_sample(tile, np.uint32(2 * pair + 1), lane, other)
        out[at] = _learn_sample(p, one, weights)
        # Behind the last sample any will do.
        _take_sample(tile, np.uint32((2 * pair + 2) & (STEPS - 1)), lane, one)
        out[np.uint32(at + width)] = _learn_sample(p, other, weights)
        at = np.uint32(at + 2 * width)


@functools.cache
def learning_kernel(before: int) -> CudaKernel:
    """The kernel for P earlier bands."""
    # And what `_take_sample` takes with the differences.
    size, more = before + 3, before + 7

    def learn(p, start, found, weights, out):  # type: ignore[no-untyped-def]
        """Find what the weights make of the differences, a lane for each band, and the weights after them.

        `start` is the number of the first sample in its band; `weights`, int32 (3 + P, bands), first of the
        directional differences, are changed. `out`, int32, has e of each sample, and room for whole tiles.
        """
        central = cuda.shared.array((2, STEPS, _WIDE), np.int32)
        sides = cuda.shared.array((2, 3, STEPS, WARP), np.int32)
        rates = cuda.shared.array((2, 3, STEPS), np.int32)
        own = cuda.local.array(size, np.int32)
        one, other = cuda.local.array(more, np.int32), cuda.local.array(more, np.int32)
        lane, warp = np.uint32(cuda.threadIdx.x & 31), np.int32(cuda.threadIdx.x >> 5)
        low, samples = np.int32(cuda.blockIdx.x * WARP), np.int32(found.central.shape[0])
        width, column = np.uint32(weights.shape[1]), np.uint32(low + lane)
        helper = warp - 1, cuda.blockDim.x // WARP - 1, np.int32(lane)
        for i in range(size):
            own[i] = weights[i, column]
        if warp > 0:
            _bring_tile(p, found, _Tile(central[0], sides[0], rates[0]), 0, start, low, helper)
        cuda.syncthreads()
        side = np.uint32(0)
        for first in range(0, samples, STEPS):
            after = np.uint32(side ^ 1)
            if warp == 0:
                tile = _Tile(central[side], sides[side], rates[side])
                place = np.uint32(first * width + column)
                _learn_tile(p, tile, (own, one, other, out), (place, width), lane)
            else:
                tile = _Tile(central[after], sides[after], rates[after])
                _bring_tile(p, found, tile, first + STEPS, start, low, helper)
            cuda.syncthreads()
            side = after
        if warp == 0:
            for i in range(size):
                weights[i, column] = own[i]

    learn.__qualname__ = learn.__name__ = f"learn_{before}"
    own = ("words", "number", "differences", "table", "row")
    return cuda_kernel(lambda: [tuple(_examples()[name] for name in own)])(learn)


#: Steps between the meetings of a warp that recovers samples and the one that brings it what it needs.
GAP: Final = 32
#: Steps for which each of the helping warps asks memory at once, and numbers that are then under way.
_BATCH, _HELD = 8, 16
#: Warps of a block that recovers: one, and those that help.
RECOVERING_WARPS: Final = 1 + GAP // _BATCH
#: Steps whose differences are kept, and numbers of each: of the warp, and of bands of the one before.
_RING, _ROW, _RING_SIZE = 128, 48, 128 * 48
#: Bands, which have a block for each warp of them: all blocks have to be under way at once.
MOST_BANDS: Final = 64 * WARP
#: Columns that are needed for samples of the row before to be back in memory when they are brought again.
LEAST_COLUMNS: Final = 3 * GAP + 1


@shared
def lag_of(band: Any) -> Any:
    """Steps by which a band is behind the first of its warp."""
    return band % WARP


def steps_of(count: int) -> int:
    """Steps for so many samples of each band, whole stretches between meetings."""
    return -(-(count + WARP - 1) // GAP) * GAP


class _Tiles(NamedTuple):
    """Shared memory of a block.

    `ring` (`_RING_SIZE`): differences, see `_ring_place`. `values` and `north` (2, `GAP`, `WARP`): residuals,
    which become samples, and the samples to the north-east.
    """

    ring: Any
    values: Any
    north: Any


class Wing(NamedTuple):
    """What blocks share: `values`, `edges` (blocks, samples, `PAST`), and how far each is, in meetings.

    `edges` are the differences of the last bands of each block.
    """

    values: Any
    edges: Any
    progress: Any


@shared
def _ring_place(step: Any, lane: Any) -> Any:
    """Where the difference of a band is that was found in a step; bands of the warp before have lanes < 0."""
    return np.uint32(np.int32((step & (_RING - 1)) * _ROW) + PAST + lane)


@shared
def _take_away(wing: Wing, tiles: _Tiles, side: Any, first: Any, helper: Any, count: Any) -> None:
    """Write samples of the steps from `first` on to memory, and the differences that others need."""
    warp, lane, _ = helper
    column = np.uint32(cuda.blockIdx.x * WARP + lane)
    shares = lane >= WARP - PAST and wing.edges.shape[0] > 1
    for i in range(_BATCH):
        step = np.int32(warp * _BATCH + i)
        wing.values[np.uint32(first + step), column] = np.uint16(tiles.values[side, np.uint32(step), lane])
        t = np.int32(first + step - lane)
        if shares and t >= 0 and t < count:
            place = np.uint32(lane - (WARP - PAST))
            wing.edges[cuda.blockIdx.x, np.uint32(t), place] = tiles.ring[_ring_place(first + step, lane)]


@shared
def _tell(wing: Wing, helper: Any, meetings: Any) -> None:
    """Let other blocks know what was taken away before the last meeting of this one."""
    if helper[0] == 0 and helper[1] == 0 and meetings > 0:
        cuda.threadfence()
        cuda.atomic.max(wing.progress, cuda.blockIdx.x, np.int32(meetings))


@shared
def _bring(p: Any, wing: Wing, tiles: _Tiles, side: Any, first: Any, helper: Any, held: Any) -> None:
    """What the steps from `first` on need: residuals, and samples of the row before.

    Residuals of bands that only fill up the warp are 0.
    """
    warp, lane, fills = helper
    column, steps = np.uint32(cuda.blockIdx.x * WARP + lane), np.int32(wing.values.shape[0])
    # All are asked for before the first is needed.
    for i in range(_BATCH):
        k = np.int32(first + warp * _BATCH + i)
        residual = np.int32(wing.values[np.uint32(min(k, np.int32(steps - 1))), column])
        held[i] = np.int32(0) if fills else residual
        row = max(np.int32(k - p.columns + 1), np.int32(0))
        held[_BATCH + i] = np.int32(np.int16(wing.values[np.uint32(row), column]))
    for i in range(_BATCH):
        step = np.uint32(warp * _BATCH + i)
        tiles.values[side, step, lane] = held[i]
        tiles.north[side, step, lane] = held[_BATCH + i]


@shared
def _bring_edges(wing: Wing, ring: Any, first: Any, lane: Any, held: Any) -> None:
    """The differences of the block before at the samples from `first` on, once they are there."""
    steps, last = np.int32(wing.values.shape[0]), np.int32(wing.edges.shape[1] - 1)
    # The last band of that block is so many steps behind its first.
    needed = min(np.int32((first + GAP + WARP - 2) // GAP + 1), np.int32(steps // GAP))
    if lane == 0:
        while cuda.atomic.add(wing.progress, cuda.blockIdx.x - 1, 0) < needed:
            pass
        cuda.threadfence()
    synchronize_warp()
    place = np.int32(lane % PAST)
    for i in range(GAP // 2):
        t = np.int32(first + 2 * i + lane // PAST)
        held[i] = wing.edges[cuda.blockIdx.x - 1, np.uint32(min(t, last)), np.uint32(place)]
    for i in range(GAP // 2):
        t = np.int32(first + 2 * i + lane // PAST)
        ring[_ring_place(t + place - PAST, place - PAST)] = held[i]


@shared
def _sum_and_sides(p: Any, kind: Any, near: Any, first_row: Any, column: Any, u: Any) -> Any:
    """The local sum of a sample t > 0; the directional differences from it become the first of `u`."""
    zero = np.int32(0)
    first, last = equal(column, zero), equal(column, np.int32(p.columns - 1))
    sigma = np.int32(local_sum(kind, near, zero, first_row, first, last))
    w, nw, n, _ = near
    u[0] = u[1] = u[2] = zero
    if not first_row:
        west, north_west = select(first, n, w), select(first, n, nw)
        u[0], u[1], u[2] = (
            np.int32(4 * n - sigma),
            np.int32(4 * west - sigma),
            np.int32(4 * north_west - sigma),
        )
    return sigma


@shared
def _recover(p: Any, residual: Any, sigma: Any, u: Any, weights: Any, rates: Any) -> Any:
    """A sample t > 0, by its differences and what they teach the weights."""
    start = np.int64(sigma) << np.int64(p.omega & 31)
    double = doubled(p, _weighted(start, u, weights))
    sample = unmapped(p, residual, double)
    falls = double > np.int32(2 * sample)
    for i in range(weights.size):
        weights[i] = learned(p, weights[i], u[i], falls, rates)
    return sample


class _Band(NamedTuple):
    """What a thread knows of its band.

    The kind of sum, whether there are directional differences, its lane, the number of its samples, and the
    sample from which on factors of learning are the same.
    """

    kind: Any
    directed: Any
    lane: Any
    count: Any
    settled: Any


@shared
def _recover_sample(
    p: Any, band: _Band, ring: Any, inside: bool, given: Any, near: Any, memory: Any, rates: Any
) -> Any:
    """A sample t > 0 and its difference; `given` is the step, t, the column and the residual."""
    k, t, column, residual = given
    weights, u = memory
    if inside or t >= p.columns:
        sigma = _sum_and_sides(p, band.kind, near, False, column, u)
    else:
        sigma = _sum_and_sides(p, band.kind, near, True, column, u)
    if not band.directed:
        u[0] = u[1] = u[2] = np.int32(0)
    for j in range(3, u.size):
        u[j] = ring[_ring_place(k - (j - 2), band.lane - (j - 2))]
    w = _recover(p, residual, sigma, u, weights, rates)
    return w, np.int32(4 * w - sigma)


@shared
def _recover_steps(
    p: Any, band: _Band, tiles: _Tiles, inside: bool, place: Any, state: Any, memory: Any
) -> Any:
    """Recover the samples of a band at `GAP` steps; `place` is the first step, and the side of the tiles.

    `inside`: all are below the first row, where the factors of learning do not change any more. `state` is
    the samples to the west, north and north-west, the column and these factors.
    """
    first, side = place
    w, n, nw, column, rates = state
    for i in range(GAP):
        k = np.int32(first + i)
        t = np.int32(k - band.lane)
        if inside or (t >= 0 and t < band.count):
            residual, ne = (
                tiles.values[side, np.uint32(i), band.lane],
                tiles.north[side, np.uint32(i), band.lane],
            )
            if not inside and t <= band.settled:
                rates = learning_shift(p, t)
            if not inside and t == 0:
                double = np.int32(0)
                if memory[1].size > 3:
                    # Twice the first sample of the band before, which stands for its difference.
                    double = tiles.ring[_ring_place(k - 1, band.lane - 1)]
                w = unmapped(p, residual, double)
                d = np.int32(2 * w)
            else:
                given = k, t, column, residual
                near = w, nw, n, ne
                w, d = _recover_sample(p, band, tiles.ring, inside, given, near, memory, rates)
            tiles.ring[_ring_place(k, band.lane)] = d
            tiles.values[side, np.uint32(i), band.lane] = w
            nw, n = n, ne
            column = np.int32(column + 1) if column + 1 < p.columns else np.int32(0)
        synchronize_warp()
    return w, n, nw, column, rates


@shared
def _settled(p: Any) -> Any:
    """The last sample at which factors of learning may change."""
    return np.int32(p.columns + (np.int32(p.final - p.initial) << (p.interval & 31)))


@functools.cache
def recovering_kernel(before: int) -> CudaKernel:
    """The kernel for P earlier bands."""
    size = before + 3

    def recover(p, given, count, wing, weights):  # type: ignore[no-untyped-def]
        """Turn residuals into samples, in place; a block has 32 bands, and a warp for them before the others.

        `given` is the kind of the local sum, whether there are directional differences, and the bands of the
        image. ``wing.values``, uint16 (steps, bands), has sample t of a band in row ``t + lag_of(band)``,
        counted from the middle, as many steps as `steps_of` says.
        """
        kind, directed, bands = given
        ring = cuda.shared.array(_RING_SIZE, np.int32)
        values = cuda.shared.array((2, GAP, WARP), np.int32)
        tiles = _Tiles(ring, values, cuda.shared.array((2, GAP, WARP), np.int32))
        own, u = cuda.local.array(size, np.int32), cuda.local.array(size, np.int32)
        held = cuda.local.array(_HELD, np.int32)
        lane, warp = np.int32(cuda.threadIdx.x & (WARP - 1)), np.int32(cuda.threadIdx.x // WARP)
        z, zero = np.uint32(cuda.blockIdx.x * WARP + lane), np.int32(0)
        helper, brings_edges = (np.int32(warp - 1), lane, z >= bands), warp == 1 and cuda.blockIdx.x > 0
        for i in range(size):
            own[i] = weights[i, z]
        for place in range(cuda.threadIdx.x, _RING_SIZE, cuda.blockDim.x):
            ring[place] = 0
        steps, samples = np.int32(wing.values.shape[0]), np.int32(count)
        band = _Band(kind, directed, lane, samples, _settled(p))
        state = zero, zero, zero, zero, learning_shift(p, np.int32(1))
        cuda.syncthreads()
        # Before the first steps, helpers bring what these need.
        for start in range(-GAP, steps, GAP):
            first = np.int32(start)
            side, other = np.uint32((first // GAP) & 1), np.uint32((first // GAP + 1) & 1)
            if warp > 0:
                _tell(wing, helper, np.int32(first // GAP - 1))
                if first > 0:
                    _take_away(wing, tiles, other, np.int32(first - GAP), helper, samples)
                _bring(p, wing, tiles, other, np.int32(first + GAP), helper, held)
                if brings_edges:
                    _bring_edges(wing, ring, np.int32(first + GAP), lane, held)
            elif first - (WARP - 1) > band.settled and first + GAP <= samples:
                state = _recover_steps(p, band, tiles, True, (first, side), state, (own, u))
            elif first >= 0:
                state = _recover_steps(p, band, tiles, False, (first, side), state, (own, u))
            cuda.syncthreads()
        if warp > 0:
            _take_away(wing, tiles, np.uint32((steps // GAP - 1) & 1), np.int32(steps - GAP), helper, samples)
        cuda.syncthreads()
        if warp > 0:
            _tell(wing, helper, np.int32(steps // GAP))

    recover.__qualname__ = recover.__name__ = f"recover_{before}"
    own = ("words", "given", "number", "wing", "table")
    return cuda_kernel(lambda: [tuple(_examples()[name] for name in own)])(recover)


#: The kernels that tests compile: those of the presets, and the largest.
_MADE: Final = [make(before) for make in (learning_kernel, recovering_kernel) for before in (1, 3, 10, 15)]
