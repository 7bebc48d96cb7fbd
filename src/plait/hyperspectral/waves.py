"""The predictor over runs of whole rows: its constants and memory, and the kernels of CCSDS 123."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.dp.bands.abreast import Abreast, AbreastWay, run_abreast
from plait.dp.bands.narrow import NarrowPrediction, fits
from plait.dp.bands.prediction import BandPrediction
from plait.dp.bands.wavefront import (
    PAST,
    BandMemory,
    Damped,
    Exact,
    FromIndices,
    Offset,
    ToIndices,
    ToResiduals,
    ToSamples,
    Way,
    run_samples,
    skew,
    skew_bands,
    unskew,
)
from plait.hyperspectral.coders import code_bands, code_blocks, code_rows, decode_blocks, decode_rows
from plait.hyperspectral.header import SUMS
from plait.hyperspectral.hybrid import code_small_rows, decode_small_rows
from plait.hyperspectral.parameters import ImageLayout, Predictor
from plait.lang.compile import kernel, kernel_optimised_twice
from plait.lang.lanes import host_lanes

run_samples_kernel = kernel_optimised_twice(run_samples)
run_abreast_kernel = kernel(run_abreast)
skew_kernel = kernel(skew)
skew_bands_kernel = kernel(skew_bands)
unskew_kernel = kernel(unskew)
code_rows_kernel = kernel(code_rows)
code_bands_kernel = kernel(code_bands)
decode_rows_kernel = kernel(decode_rows)
code_blocks_kernel = kernel(code_blocks)
decode_blocks_kernel = kernel(decode_blocks)
code_small_rows_kernel = kernel(code_small_rows)
decode_small_rows_kernel = kernel(decode_small_rows)
#: Bands are filled up to a multiple of this: no group has more lanes.
_LANES = 16
#: Bands of a wave, and samples of a stretch: a wave takes their sum in steps, so that few are wasted.
_MOST_BANDS = 256
_STRETCH = 4096
#: Samples of all bands in a stretch, where the bands are many.
_STRETCH_SAMPLES = 1 << 20


#: Samples that are worked on at a time, few enough to stay in the processor's cache.
_SAMPLES = 1 << 18


def rows_at_a_time(image: ImageLayout, bands: int | None = None) -> int:
    """Rows of so many bands, by default all, that are worked on at a time."""
    return max(1, _SAMPLES // (image.columns * (image.bands if bands is None else bands)))


def bands_at_a_time(image: ImageLayout) -> int:
    """Whole bands that are worked on at a time."""
    return min(max(1, _SAMPLES // (image.columns * image.rows)), image.bands)


def initial_weights(predictor: Predictor, band: int) -> list[int]:
    """Weights of a band at its second sample."""
    omega, q = predictor.weight_resolution, predictor.weight_table_resolution
    if q is not None and predictor.weight_table is not None:
        half = (1 << (omega + 2 - q)) - 1 if q <= omega + 2 else 0
        return [(value << (omega + 3 - q)) + half for value in predictor.weight_table[band]]
    bands = min(band, predictor.prediction_bands)
    return [0] * (3 * (predictor.mode == "full")) + [(7 << (omega - 3)) >> (3 * k) for k in range(bands)]


def is_narrow(image: ImageLayout, predictor: Predictor) -> bool:
    """Whether all numbers but sums of products have 32 bits, and samples stand for themselves."""
    bits, omega, offsets = image.dynamic_range, predictor.weight_resolution, predictor.weight_offsets
    components = predictor.prediction_bands + 3
    exact = predictor.representatives is None and predictor.error_limits is None
    least = 0 if offsets is None else min(map(min, (offsets.own, *filter(None, offsets.others))))
    # Differences are shifted to the left by so much to change weights.
    left = omega - bits - predictor.weight_initial - least
    return exact and bits + 2 + left < 31 and fits(bits, components, omega, predictor.register_size)


def prediction_of(image: ImageLayout, predictor: Predictor, *, narrow: bool = False) -> BandPrediction:
    """Constants of the predictor."""
    half = 1 << (image.dynamic_range - 1)
    theta = 0 if predictor.representatives is None else predictor.representatives.resolution
    values = (
        0,
        1,
        -half,
        half - 1,
        predictor.weight_resolution,
        64 - predictor.register_size,
        image.columns,
        predictor.weight_interval.bit_length() - 1,
        predictor.weight_initial,
        predictor.weight_final,
        image.dynamic_range - predictor.weight_resolution,
        theta,
    )
    return (NarrowPrediction if narrow else BandPrediction)(*(np.int64(value) for value in values))


def apart(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The upper 32 bits of what `BandWaves` gives with error limits; the lower ones stay in `values`."""
    upper = values >> 32
    values &= 0xFFFFFFFF
    return upper


def _lanes_of(narrow: bool) -> Any:
    return host_lanes(32 if narrow else 64)


def _padded(bands: int) -> int:
    return -(-bands // _LANES) * _LANES


def _weights_of(
    predictor: Predictor, first: int, last: int, bands: int, kind: type[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weights of bands at their second sample, and offsets of exponents, with room for so many bands."""
    components = max(predictor.prediction_bands + 3 * (predictor.mode == "full"), 1)
    weights = np.zeros((components, bands), kind)
    offsets = np.zeros((1 if predictor.weight_offsets is None else components, bands), kind)
    for k in range(last - first):
        own = initial_weights(predictor, first + k)
        weights[: len(own), k] = own
        if predictor.weight_offsets is not None:
            directional = [predictor.weight_offsets.own[first + k]] * (3 * (predictor.mode == "full"))
            shifts = [*directional, *predictor.weight_offsets.others[first + k]]
            offsets[: len(shifts), k] = shifts
    return weights, offsets


class BandsAbreast:
    """Residuals of an image whose samples stand for themselves, some whole rows at a time."""

    def __init__(self, image: ImageLayout, predictor: Predictor) -> None:
        self._image, self._done = image, 0
        narrow = is_narrow(image, predictor)
        self._kind = np.int32 if narrow else np.int64
        self._lanes, self._numbers = _lanes_of(narrow), prediction_of(image, predictor, narrow=narrow)
        self._way = AbreastWay(
            SUMS.index(predictor.local_sum),
            int(predictor.weight_offsets is not None),
            int(predictor.mode == "full"),
            predictor.prediction_bands,
        )
        self._bands = -(-image.bands // self._lanes.width) * self._lanes.width
        #: Residuals of a run, and those of the one before, which may still be coded.
        self._rooms = np.zeros((2, 0, self._bands), self._kind)
        past = np.zeros((2, PAST + self._bands), self._kind)
        samples = np.zeros((image.columns + 1, PAST + self._bands), self._kind)
        weights = _weights_of(predictor, 0, image.bands, self._bands, self._kind)
        self._memory = Abreast(samples, self._rooms[0], past, *weights)

    def run(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Residuals of the next rows, shape (rows, columns, bands), until the run after the next one."""
        image, before = self._image, self._image.columns + 1
        count = len(rows) * image.columns
        if self._rooms.shape[1] < count:
            kept = self._memory.samples[:before]
            samples = np.zeros((before + count, kept.shape[1]), self._kind)
            samples[:before] = kept
            self._memory = self._memory._replace(samples=samples)
            self._rooms = np.empty((2, count, self._bands), self._kind)
        self._rooms = self._rooms[::-1]
        samples, residuals = self._memory.samples, self._rooms[0]
        own = samples[before : before + count, PAST : PAST + image.bands]
        np.subtract(rows.reshape(count, -1), image.middle, out=own, dtype=self._kind, casting="unsafe")
        memory = self._memory._replace(residuals=residuals)
        run_abreast_kernel(self._lanes, self._numbers, self._way, memory, self._done, count)
        self._done += count
        # The rows before those of the next run; they may overlap.
        samples[:before] = samples[count : count + before].copy()
        found: NDArray[Any] = residuals[:count, : image.bands]
        return found.reshape(len(rows), image.columns, image.bands)

    def resume(self, row: int, near: NDArray[np.int64], weights: NDArray[np.int64]) -> None:
        """Go on at row `row`; see `BandWaves.state`."""
        self._done = row * self._image.columns
        self._memory.samples[1 : self._image.columns + 1, PAST : PAST + self._image.bands] = near
        self._memory.weights[:, : self._image.bands] = weights


def _steps(predictor: Predictor, backwards: bool) -> tuple[Any, Any]:
    """What becomes of values, and what stands for samples."""
    if predictor.error_limits is not None:
        return FromIndices() if backwards else ToIndices(), Offset()
    stand = Exact() if predictor.representatives is None else Damped()
    return ToSamples() if backwards else ToResiduals(), stand


class BandWaves:
    """Residuals of samples, or `backwards` samples of residuals, one run of whole rows after the other.

    With error limits, the lower 32 bits of what comes out are the residuals or samples, and the upper ones
    samples as decoders have them, or backwards the largest errors; see `apart`. Limits that are updated have
    to be set before the first run.

    `stretch` samples of a band are worked on at a time (None for what suits the image), in waves of up to
    `most_bands` bands.
    """

    def __init__(
        self,
        image: ImageLayout,
        predictor: Predictor,
        *,
        backwards: bool = False,
        stretch: int | None = None,
        most_bands: int = _MOST_BANDS,
    ) -> None:
        self._image = image
        if stretch is None:
            stretch = min(max(_STRETCH_SAMPLES // image.bands, 64), _STRETCH)
            # No longer than what comes at a time, or more memory is passed through than the caches hold.
            stretch = min(stretch, rows_at_a_time(image) * image.columns)
        self._stretch = min(stretch, image.columns * image.rows)
        self._done = 0
        narrow = is_narrow(image, predictor)
        kind = self._kind = np.int32 if narrow else np.int64
        self._lanes, self._numbers = _lanes_of(narrow), prediction_of(image, predictor, narrow=narrow)
        self._way = Way(
            SUMS.index(predictor.local_sum),
            *_steps(predictor, backwards),
            int(predictor.weight_offsets is not None),
            int(predictor.mode == "full"),
            predictor.prediction_bands,
        )
        self._waves: list[tuple[int, int, BandMemory]] = []
        #: What is handed over to a wave: it was taken when the wave hands its own over.
        self._handed = np.zeros((self._stretch, 1 + max(predictor.prediction_bands, 1)), kind)
        widest = _padded(min(most_bands, image.bands))
        # Nothing is left under way at the end of a run, so all waves share it.
        values = np.zeros((self._stretch + widest) * widest, kind)
        for first in range(0, image.bands, most_bands):
            last = min(first + most_bands, image.bands)
            memory = self._memory(predictor, first, last, values)
            self._waves.append((first, last, memory))
        limits = predictor.error_limits
        if limits is not None and limits.update_exponent is None:
            self.set_limits(limits.of_period(0))

    def _memory(self, predictor: Predictor, first: int, last: int, values: NDArray[Any]) -> BandMemory:
        bands, columns, kind = _padded(last - first), self._image.columns, self._kind
        weights, offsets = _weights_of(predictor, first, last, bands, kind)
        numbers = np.zeros((7, bands), kind)
        numbers[0] = np.arange(bands)
        if predictor.representatives is not None:
            for k in range(last - first):
                numbers[1:3, k] = predictor.representatives.of_band(first + k)
        # What samples count from the middle from.
        numbers[6] = self._image.middle
        nothing = np.zeros((0, PAST), kind)
        return BandMemory(
            values[: (self._stretch + bands) * bands].reshape(-1, bands),
            # A band needs its samples back to the north-western one, and its neighbour is a step ahead.
            np.zeros((columns + 4, PAST + bands), kind),
            np.zeros((PAST, PAST + bands), kind),
            weights,
            offsets,
            numbers,
            np.arange(0, -columns - _LANES, -1, dtype=kind)[np.newaxis] % columns,
            nothing,
            nothing,
        )

    def set_limits(self, limits: Mapping[str, Sequence[int]]) -> None:
        """Error limits from now on, of the kinds that there are: of all bands, or of each."""
        # No relative limit is larger than that.
        most = np.broadcast_to(limits.get("absolute", 1 << 16), self._image.bands)
        share = np.broadcast_to(limits.get("relative", 0), self._image.bands)
        for low, high, memory in self._waves:
            own = slice(0, high - low)
            memory.bands[3, own] = most[low:high]
            memory.bands[4, own] = share[low:high]
            memory.bands[5, own] = 0 if "relative" in limits else most[low:high]

    def run(self, values: NDArray[np.int64], out: NDArray[Any] | None = None, middle: int = 0) -> None:
        """Turn the next samples into residuals, or the other way round, in place, or in `out`.

        `values` are int64, (samples, bands), C order; samples count from the middle of their range. `out` has
        their shape and any type of integers; `middle` is added to what comes there.
        """
        out = values if out is None else out
        for start in range(0, len(values), self._stretch):
            part, to = values[start : start + self._stretch], out[start : start + self._stretch]
            for wave in self._waves:
                skew_kernel(part, self._done, *wave[:2], wave[2].values)
                self._run(wave, self._done, self._handed, to, middle)
            self._done += len(part)

    @property
    def bands(self) -> list[tuple[int, int]]:
        """The bands of each wave, from the first to before the last."""
        return [(low, high) for low, high, _ in self._waves]

    def run_bands(self, number: int, values: NDArray[Any], out: NDArray[Any], middle: int) -> None:
        """Turn all values of a wave, (bands, samples), into its bands of `out`, (samples, bands).

        Waves come one after the other; what they hand over is kept of all samples.
        """
        if number == 0:
            self._handed = np.zeros((len(out), self._handed.shape[1]), self._kind)
        wave = self._waves[number]
        for first in range(0, len(out), self._stretch):
            last = min(first + self._stretch, len(out))
            skew_bands_kernel(values, first, last, wave[2].values)
            self._run(wave, first, self._handed[first:last], out[first:last], middle)

    def _run(
        self,
        wave: tuple[int, int, BandMemory],
        first: int,
        handed: NDArray[Any],
        out: NDArray[Any],
        middle: int,
    ) -> None:
        """Run a wave over a stretch, from sample `first` on, whose values are laid out."""
        low, high, memory = wave
        # Numbers that another wave or run has left are no samples.
        memory.values[:, high - low :] = 0
        before, after = handed if low else handed[:0], handed if high < self._image.bands else handed[:0]
        memory = memory._replace(before=before, after=after)
        run_samples_kernel(self._lanes, self._numbers, self._way, memory, first, first + len(out))
        unskew_kernel(memory.values, first, low, high, out, middle)

    def _places(self, low: int, high: int, memory: BandMemory) -> tuple[NDArray[Any], NDArray[Any]]:
        """Where the last row of samples is kept, for indexing; shape (columns, bands)."""
        samples = np.arange(self._done - self._image.columns, self._done)[:, np.newaxis]
        bands = np.arange(high - low)
        return (samples + bands) % memory.near.shape[0], np.broadcast_to(
            PAST + bands, (len(samples), len(bands))
        )

    def state(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What prediction resumes from after whole rows.

        The representatives of the last row, counted from the middle, (columns, bands); weights, (components,
        bands).
        """
        near = [memory.near[self._places(low, high, memory)] for low, high, memory in self._waves]
        weights = [memory.weights[:, : high - low] for low, high, memory in self._waves]
        return np.concatenate(near, axis=1), np.concatenate(weights, axis=1)

    def resume(self, row: int, near: NDArray[np.int64], weights: NDArray[np.int64]) -> None:
        """Go on at row `row` from a `state`."""
        self._done = row * self._image.columns
        for low, high, memory in self._waves:
            memory.near[self._places(low, high, memory)] = near[:, low:high]
            memory.weights[:, : high - low] = weights[:, low:high]
