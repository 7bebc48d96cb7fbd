"""Cubes for the benchmarks of CCSDS 123: one that an instrument took, and five that are simulated.

Indian Pines (AVIRIS, airborne, calibrated) is that of the PyPI package ``tensorly``. The others follow a
sensor from the ground to its numbers: mixtures of smooth spectra over a fractal landscape, in sunlight with
the bands of water and oxygen, through a responsivity for each band, into electrons with the noise of their
number and of the electronics, and numbers. A whiskbroom has one detector for each band; a pushbroom one for
each band and column, whose gains and dark levels differ, which is what stripes raw data and is mostly gone
after calibration.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def default_cube() -> Path:
    """The file of Indian Pines in the package ``tensorly``."""
    found = importlib.util.find_spec("tensorly")
    if found is None or found.origin is None:
        sys.exit("give a cube, or: pip install --no-deps tensorly")
    return Path(found.origin).parent / "datasets" / "data" / "Indian_pines_corrected.npy"


def landscape(rng: np.random.Generator, rows: int, columns: int, power: float) -> NDArray[np.float64]:
    """A fractal landscape of mean 0 and standard deviation 1."""
    frequency = np.hypot(np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)[None])
    frequency[0, 0] = 1
    waves = frequency**-power * np.exp(2j * np.pi * rng.random(frequency.shape))
    found = np.fft.irfft2(waves, (rows, columns))
    return (found - found.mean()) / found.std()


#: Places (micrometres), widths and depths of absorption bands of the air.
_AIR = (
    (0.76, 0.004, 0.5), (0.94, 0.02, 0.5), (1.13, 0.03, 0.7), (1.38, 0.05, 0.99), (1.88, 0.06, 0.99),
    (2.01, 0.02, 0.4),
)  # fmt: skip


def radiance(rng: np.random.Generator, rows: int, columns: int, bands: int) -> NDArray[np.float64]:
    """What comes to the sensor from 0.4 to 2.5 micrometres, relative; shape (rows, columns, bands)."""
    wave = np.linspace(0.4, 2.5, bands)
    shares = np.exp(3 * np.stack([landscape(rng, rows, columns, 1.6) for _ in range(6)]))
    shares /= shares.sum(0)
    spectra = []
    for _ in shares:
        bumps = zip(
            rng.uniform(0.05, 0.6, 6), rng.uniform(0.4, 2.5, 6), rng.uniform(0.1, 0.9, 6), strict=True
        )
        spectra.append(0.05 + sum(a * np.exp(-(((wave - c) / w) ** 2)) for a, c, w in bumps))
    sun = wave**-1.4 / (1 + np.exp((0.42 - wave) / 0.02))
    for place, width, depth in _AIR:
        sun *= 1 - depth * np.exp(-(((wave - place) / width) ** 2))
    ground = np.einsum("kyx,kz->yxz", shares, np.stack(spectra))
    light = np.exp(0.15 * landscape(rng, rows, columns, 1.8))[..., None]
    haze = 0.03 * wave**-3.5
    found = ground * sun * light + haze
    return found / found.max()


def sensed(
    rng: np.random.Generator,
    light: NDArray[np.float64],
    *,
    well: float,
    stripes: float,
    noise: float,
    bits: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Numbers of a sensor, and the gain and the dark level of each detector, (columns or 1, bands).

    `well` is the electrons of the brightest sample, `noise` those of the electronics, `stripes` the standard
    deviation of the gains of the detectors of a band; 0: there is one.
    """
    _, columns, bands = light.shape
    detectors = columns if stripes else 1
    # The grating and the detectors see the middle of the range best.
    response = 0.25 + 0.75 * np.exp(-(((np.linspace(0, 1, bands) - 0.4) / 0.35) ** 2))
    electrons = light * response * well
    electrons = rng.poisson(np.minimum(electrons, 1e9)) + noise * rng.standard_normal(light.shape)
    step = well / (0.8 * 2**bits)
    gain = (1 + stripes * rng.standard_normal((detectors, bands))) / step
    dark = 0.03 * 2**bits * (1 + 0.1 * rng.standard_normal((1, bands)))
    dark = dark + stripes * 0.01 * 2**bits * rng.standard_normal((detectors, bands))
    return np.clip(np.rint(electrons * gain + dark), 0, 2**bits - 1), gain, dark


def airborne_raw(rows: int = 160, columns: int = 192, bands: int = 224) -> NDArray[np.uint16]:
    """Raw numbers of a whiskbroom on an aircraft, 14 bits."""
    rng = np.random.default_rng(11)
    found, _, _ = sensed(rng, radiance(rng, rows, columns, bands), well=2e6, stripes=0, noise=120, bits=14)
    return found.astype(np.uint16)


def airborne_calibrated(rows: int = 160, columns: int = 192, bands: int = 224) -> NDArray[np.int16]:
    """Radiance of the same kind of sensor, scaled to 16 bits with a sign, band by band."""
    rng = np.random.default_rng(12)
    found, gain, dark = sensed(
        rng, radiance(rng, rows, columns, bands), well=2e6, stripes=0, noise=120, bits=14
    )
    return np.rint((found - dark) / gain * 6e-3 * rng.uniform(0.7, 1.4, bands)).astype(np.int16)


def orbital_raw(rows: int = 192, columns: int = 160, bands: int = 220) -> NDArray[np.uint16]:
    """Raw numbers of a pushbroom in orbit, 12 bits, with stripes and dead detectors."""
    rng = np.random.default_rng(13)
    found, _, _ = sensed(
        rng, radiance(rng, rows, columns, bands), well=1.5e5, stripes=0.03, noise=60, bits=12
    )
    dead = rng.random((columns, bands)) < 0.0005
    found[:, dead] = 0
    return found.astype(np.uint16)


def orbital_calibrated(rows: int = 192, columns: int = 160, bands: int = 242) -> NDArray[np.int16]:
    """Radiance of a pushbroom in orbit, two ranges of bands with scales of their own, and bands of zeros.

    What is known of the gains is right to 0.3 %, so faint stripes are left.
    """
    rng = np.random.default_rng(14)
    found, gain, dark = sensed(
        rng, radiance(rng, rows, columns, bands), well=3e5, stripes=0.03, noise=60, bits=12
    )
    known = gain * (1 + 0.003 * rng.standard_normal(gain.shape))
    scale = np.where(np.arange(bands) < 70, 0.02, 0.04)
    found = np.rint((found - np.rint(dark)) / known * scale)
    found[..., [*range(7), *range(57, 76), *range(224, bands)]] = 0
    return found.astype(np.int16)


def reflectance(rows: int = 160, columns: int = 160, bands: int = 200) -> NDArray[np.float32]:
    """Reflectance as 32-bit floating-point numbers: radiance of 14 bits through gains and offsets."""
    rng = np.random.default_rng(15)
    light = radiance(rng, rows, columns, bands)
    found, gain, dark = sensed(rng, light, well=2e6, stripes=0, noise=120, bits=14)
    sun = light.mean((0, 1)) / rng.uniform(0.2, 0.4, bands)
    path = 0.02 * np.linspace(1, 0, bands) ** 3
    radiant = ((found - dark) / gain / 2e6).astype(np.float32)
    return ((radiant / sun.astype(np.float32)) - path.astype(np.float32)) / np.float32(0.97)


def indian_pines() -> NDArray[np.uint16]:
    """The cube of the package ``tensorly``."""
    return np.ascontiguousarray(np.load(default_cube()))


#: Cubes by name; the first was taken by an instrument, the others are simulated.
CUBES: dict[str, Callable[[], NDArray[Any]]] = {
    "Indian Pines (real), airborne, calibrated": indian_pines,
    "airborne, raw": airborne_raw,
    "airborne, calibrated": airborne_calibrated,
    "orbital, raw": orbital_raw,
    "orbital, calibrated": orbital_calibrated,
}
