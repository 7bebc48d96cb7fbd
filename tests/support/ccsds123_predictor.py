"""The CCSDS 123 predictor in plain Python, formula by formula: the definition that fast code is tested with.

Section numbers are those of CCSDS 123.0-B-2, which contains 123.0-B-1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plait.hyperspectral.parameters import ImageLayout, Predictor

__all__ = ["ModelPredictor", "model_residuals", "model_samples"]


def _clip(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


class ModelPredictor:
    """Prediction of one cube, sample by sample; samples are given back as they become known.

    Parameters
    ----------
    image, predictor
        Parameters that go together.

    Attributes
    ----------
    samples, representatives
        s and s'', int objects of shape (bands, rows, columns); of near-lossless streams s' in place of s.
    """

    def __init__(self, image: ImageLayout, predictor: Predictor) -> None:
        self.image = image
        self.how = predictor
        shape = (image.bands, image.rows, image.columns)
        self.samples = np.zeros(shape, object)
        self.representatives = np.zeros(shape, object)
        self._weights = [self._initial_weights(band) for band in range(image.bands)]

    def _initial_weights(self, band: int) -> list[int]:
        how, omega = self.how, self.how.weight_resolution
        bands = min(band, how.prediction_bands)
        if how.weight_table is not None and how.weight_table_resolution is not None:
            q = how.weight_table_resolution
            half = (1 << (omega + 2 - q)) - 1 if q <= omega + 2 else 0
            return [(value << (omega + 3 - q)) + half for value in how.weight_table[band]]
        weights = [] if how.mode == "reduced" else [0, 0, 0]
        value = 7 << (omega - 3)
        for _ in range(bands):
            weights.append(value)
            value >>= 3
        return weights

    def local_sum(self, z: int, y: int, x: int) -> int:
        """The local sum of a place, sigma; not for the first place of a band."""
        s, last = self.representatives[z], self.image.columns - 1
        narrow = self.how.local_sum.startswith("narrow")
        if y == 0:
            if not narrow:
                return int(4 * s[0, x - 1])
            return int(4 * self.representatives[z - 1, 0, x - 1]) if z else 4 * self.image.middle
        if self.how.local_sum.endswith("column"):
            return int(4 * s[y - 1, x])
        if x == 0:
            return int(2 * (s[y - 1, 0] + s[y - 1, 1]))
        if narrow:
            right = s[y - 1, x + 1] if x < last else s[y - 1, x]
            return (
                int(s[y - 1, x - 1] + 2 * s[y - 1, x] + right)
                if x < last
                else int(2 * (s[y - 1, x - 1] + s[y - 1, x]))
            )
        right = s[y - 1, x + 1] if x < last else s[y - 1, x]
        return int(s[y, x - 1] + s[y - 1, x - 1] + s[y - 1, x] + right)

    def differences(self, z: int, y: int, x: int) -> list[int]:
        """The local differences U of a place; not for the first place of a band."""
        s = self.representatives
        found = []
        if self.how.mode == "full":
            if y == 0:
                found = [0, 0, 0]
            else:
                sigma = self.local_sum(z, y, x)
                places = ((y - 1, x), (y, x - 1), (y - 1, x - 1)) if x else ((y - 1, 0),) * 3
                found = [int(4 * s[z][place] - sigma) for place in places]
        for before in range(1, min(z, self.how.prediction_bands) + 1):
            found.append(int(4 * s[z - before, y, x] - self.local_sum(z - before, y, x)))
        return found

    def _predict(self, z: int, y: int, x: int) -> tuple[int, int, list[int]]:
        """High- and double-resolution prediction, and the differences they come from."""
        image, omega = self.image, self.how.weight_resolution
        if y == 0 and x == 0:
            if self.how.prediction_bands and z:
                return 0, int(2 * self.samples[z - 1, 0, 0]), []
            return 0, 2 * image.middle, []
        u = self.differences(z, y, x)
        total = sum(w * d for w, d in zip(self._weights[z], u, strict=True))
        total += (self.local_sum(z, y, x) - 4 * image.middle) << omega
        half = 1 << (self.how.register_size - 1)
        wrapped = (total + half) % (2 * half) - half
        high = _clip(
            wrapped + (image.middle << (omega + 2)) + (1 << (omega + 1)),
            image.least << (omega + 2),
            (image.largest << (omega + 2)) + (1 << (omega + 1)),
        )
        return high, high >> (omega + 1), u

    def _learn(self, z: int, t: int, u: list[int], error: int) -> None:
        how, omega = self.how, self.how.weight_resolution
        step = (t - self.image.columns) // how.weight_interval
        rho = _clip(how.weight_initial + step, how.weight_initial, how.weight_final)
        rho += self.image.dynamic_range - omega
        offsets = [0] * len(u)
        if how.weight_offsets is not None:
            own = [how.weight_offsets.own[z]] * 3 if how.mode == "full" else []
            offsets = [*own, *how.weight_offsets.others[z]]
        weights = self._weights[z]
        for i, difference in enumerate(u):
            signed = difference if error >= 0 else -difference
            shift = rho + offsets[i]
            scaled = signed >> shift if shift > 0 else signed << -shift
            weights[i] = _clip(weights[i] + ((scaled + 1) >> 1), -(1 << (omega + 2)), (1 << (omega + 2)) - 1)

    def error_limit(self, z: int, y: int, x: int, predicted: int) -> int:
        """m, the largest error of a sample (4.8.2).

        Parameters
        ----------
        z, y, x
            Its place.
        predicted
            The predicted sample, an integer.
        """
        limits = self.how.error_limits
        # The first sample is not quantised (4.8.1).
        if limits is None or (y == 0 and x == 0):
            return 0
        found = []
        for values, relative in ((limits.absolute, False), (limits.relative, True)):
            if values is None:
                continue
            if limits.update_exponent is not None:
                assert isinstance(values, tuple)
                values = values[y // 2**limits.update_exponent]
            own = values if isinstance(values, int) else values[z] if len(values) > 1 else values[0]
            assert isinstance(own, int)
            found.append(own * abs(predicted) // 2**self.image.dynamic_range if relative else own)
        return min(found)

    def _representative(self, z: int, sample: int, high: int, index: int, limit: int) -> int:
        found, omega = self.how.representatives, self.how.weight_resolution
        if found is None:
            return sample
        theta, (phi, psi) = found.resolution, found.of_band(z)
        sign = (index > 0) - (index < 0)
        shifted = sample * 2**omega - sign * limit * psi * 2 ** (omega - theta)
        doubled = 4 * (2**theta - phi) * shifted + phi * high - phi * 2 ** (omega + 1)
        return (doubled // 2 ** (omega + theta + 1) + 1) // 2

    def _scaled_ends(self, predicted: int, limit: int) -> tuple[int, int]:
        """Quantiser indices between a prediction and the least and the largest sample."""
        step = 2 * limit + 1
        return (
            (predicted - self.image.least + limit) // step,
            (self.image.largest - predicted + limit) // step,
        )

    def residual(self, z: int, y: int, x: int, sample: int) -> int:
        """Mapped quantiser index of a sample, which is kept as decoders will have it.

        Parameters
        ----------
        z, y, x
            Its place: bands of a pixel in order, pixels in raster order, or bands one after the other.
        sample
            Its value.
        """
        high, double, u = self._predict(z, y, x)
        predicted = double >> 1
        limit = self.error_limit(z, y, x, predicted)
        rest = sample - predicted
        index = (abs(rest) + limit) // (2 * limit + 1) * (1 if rest >= 0 else -1)
        theta = min(self._scaled_ends(predicted, limit))
        if abs(index) > theta:
            mapped = abs(index) + theta
        else:
            mapped = 2 * abs(index) - (0 if (-index if double & 1 else index) >= 0 else 1)
        self._end(z, y, x, (high, double, u), index, limit)
        return mapped

    def sample(self, z: int, y: int, x: int, mapped: int) -> int:
        """Sample of a mapped quantiser index, which is kept.

        Parameters
        ----------
        z, y, x
            As for `residual`.
        mapped
            The mapped index.
        """
        high, double, u = self._predict(z, y, x)
        predicted = double >> 1
        limit = self.error_limit(z, y, x, predicted)
        below, above = self._scaled_ends(predicted, limit)
        theta = min(below, above)
        if mapped > 2 * theta:
            index = mapped - theta if below < above else theta - mapped
        else:
            size = (mapped + 1) >> 1
            index = size if (mapped & 1) == (double & 1) else -size
        self._end(z, y, x, (high, double, u), index, limit)
        return int(self.samples[z, y, x])

    def _end(
        self, z: int, y: int, x: int, predicted: tuple[int, int, list[int]], index: int, limit: int
    ) -> None:
        """Keep a sample, and learn from it."""
        high, double, u = predicted
        image = self.image
        sample = _clip((double >> 1) + index * (2 * limit + 1), image.least, image.largest)
        self.samples[z, y, x] = self.representatives[z, y, x] = sample
        if y or x:
            self.representatives[z, y, x] = self._representative(z, sample, high, index, limit)
        self._learn(z, y * image.columns + x, u, 2 * sample - double)


def model_residuals(cube: NDArray[np.int64], image: ImageLayout, predictor: Predictor) -> NDArray[np.int64]:
    """Mapped residuals of a cube.

    Parameters
    ----------
    cube
        Samples, shape (bands, rows, columns).
    image, predictor
        Parameters.
    """
    model = ModelPredictor(image, predictor)
    out = np.zeros(cube.shape, np.int64)
    for y, x, z in np.ndindex(image.rows, image.columns, image.bands):
        out[z, y, x] = model.residual(z, y, x, int(cube[z, y, x]))
    return out


def model_samples(
    residuals: NDArray[np.int64], image: ImageLayout, predictor: Predictor
) -> NDArray[np.int64]:
    """The cube of mapped residuals.

    Parameters
    ----------
    residuals
        Shape (bands, rows, columns).
    image, predictor
        Parameters.
    """
    model = ModelPredictor(image, predictor)
    out = np.zeros(residuals.shape, np.int64)
    for y, x, z in np.ndindex(image.rows, image.columns, image.bands):
        out[z, y, x] = model.sample(z, y, x, int(residuals[z, y, x]))
    return out
