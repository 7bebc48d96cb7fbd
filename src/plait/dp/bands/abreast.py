"""All bands of a sample abreast, for residuals without loss: sample after sample, bands in lanes.

Where samples stand for themselves, all differences from the local sums are known before anything is
predicted, so bands wait for one another no more than they do in `plait.dp.bands.wavefront`, and memory stays
in the order of the samples. All bands are at the same place of the image, too.

A module of its own: what is compiled, for one order of visiting.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.bands.prediction import (
    doubled,
    in_lanes,
    learning_shift,
    local_sum,
    mapped,
    no_sum,
    of_lanes,
    plus_product,
    predicted,
)
from plait.dp.bands.wavefront import directional, learn_one
from plait.lang.compile import shared
from plait.lang.lanes import equal, greater, load, store


class Abreast(NamedTuple):
    """Arrays of a run, integers as wide as the lanes, rows of C order.

    `samples` (columns + 1 + samples, 16 + bands): those of the row before and one more, then those of the
    run; the first 16 columns are 0. `residuals` (samples, bands). `past` (2, 16 + bands): differences and
    sums of a sample, 0 before the bands. `weights` (components, bands), and `offsets`, as in
    `plait.dp.bands.wavefront.BandMemory`. There may be more bands here than the image has.
    """

    samples: Any
    residuals: Any
    past: Any
    weights: Any
    offsets: Any


class AbreastWay(NamedTuple):
    """What a run does; see `plait.dp.bands.wavefront.Way`."""

    sums: Any
    own_rates: Any
    full: Any
    before: Any


class _Place(NamedTuple):
    """Where all bands are: the row in `Abreast.samples`, and masks."""

    row: Any
    first_row: Any
    first: Any
    last: Any


@shared
def _near(lanes: Any, columns: int, samples: Any, row: int, lane: int) -> Any:
    at, north = lane + 16, row - columns
    w, n = load(lanes, samples, row - 1, at), load(lanes, samples, north, at)
    return w, load(lanes, samples, north - 1, at), n, load(lanes, samples, north + 1, at)


@shared
def _find(lanes: Any, p: Any, columns: int, way: Any, memory: Any, place: Any, lane: int) -> None:
    """Differences and sums of a group of bands."""
    at = lane + 16
    near = _near(lanes, columns, memory.samples, place.row, lane)
    wz = load(lanes, memory.samples, place.row - 1, at - 1)
    sigma = local_sum(way.sums, near, wz, place.first_row, place.first, place.last)
    s = load(lanes, memory.samples, place.row, at)
    store(lanes, memory.past, 0, at, (s << (p.one + p.one)) - sigma)
    store(lanes, memory.past, 1, at, sigma)


@shared
def _code(
    lanes: Any, p: Any, columns: int, way: Any, memory: Any, place: Any, step: int, lane: int, shift: Any
) -> None:
    """Residuals of a group of bands, and what they teach."""
    at, weights = lane + 16, memory.weights
    sigma, s = load(lanes, memory.past, 1, at), load(lanes, memory.samples, place.row, at)
    dot, base = no_sum(p), 0
    d_n = d_w = d_nw = p.zero
    if way.full:
        near = _near(lanes, columns, memory.samples, place.row, lane)
        d_n, d_w, d_nw = directional(p, near, sigma, place.first_row, place.first)
        dot = plus_product(p, dot, d_n, load(lanes, weights, 0, lane))
        dot = plus_product(p, dot, d_w, load(lanes, weights, 1, lane))
        dot, base = plus_product(p, dot, d_nw, load(lanes, weights, 2, lane)), 3
    for i in range(way.before):
        u = load(lanes, memory.past, 0, at - 1 - i)
        dot = plus_product(p, dot, u, load(lanes, weights, base + i, lane))
    double = doubled(p, predicted(p, dot, sigma))
    store(lanes, memory.residuals, step, lane, mapped(p, s, double))
    falls = greater(double, s + s)
    if way.full:
        learn_one(lanes, p, way, memory, 0, lane, d_n, falls, shift)
        learn_one(lanes, p, way, memory, 1, lane, d_w, falls, shift)
        learn_one(lanes, p, way, memory, 2, lane, d_nw, falls, shift)
    for i in range(way.before):
        u = load(lanes, memory.past, 0, at - 1 - i)
        learn_one(lanes, p, way, memory, base + i, lane, u, falls, shift)


@shared
def _place_of(lanes: Any, p: Any, t: Any, column: Any, row: int) -> Any:
    many, at = in_lanes(p, lanes, t), in_lanes(p, lanes, column)
    first_row = greater(p.columns, many)
    return _Place(row, first_row, equal(at, p.zero), equal(at, p.columns - p.one))


@shared
def run_abreast(lanes: Any, numbers: Any, way: Any, memory: Any, first: int, count: int) -> None:
    """Find the residuals of samples, of which `first` is the first in its band; `memory` is changed.

    `lanes` is the width of a group, of which the bands are a multiple; `numbers` is `BandPrediction` of plain
    64-bit numbers.
    """
    p = of_lanes(numbers, lanes)
    columns, bands = numbers.columns, memory.residuals.shape[1]
    for step in range(count):
        t, row = numbers.zero + first + step, columns + 1 + step
        if t == 0:
            for band in range(bands):
                double = numbers.zero
                if way.before and band > 0:
                    double = memory.samples[row, band + 15] << 1
                memory.residuals[step, band] = mapped(numbers, memory.samples[row, band + 16], double)
            continue
        place, shift = _place_of(lanes, p, t, t % columns, row), learning_shift(p, in_lanes(p, lanes, t))
        for lane in range(0, bands, lanes.width):
            _find(lanes, p, columns, way, memory, place, lane)
        for lane in range(0, bands, lanes.width):
            _code(lanes, p, columns, way, memory, place, step, lane, shift)
