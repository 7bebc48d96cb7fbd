"""A compressed cube as a page of one file: a quick look in colour, statistics and bits of each band."""

from __future__ import annotations

import base64
import html
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.formats.atomic import AtomicFile, output_errors
from plait.hyperspectral.codec import StreamDecoder
from plait.hyperspectral.codewords import BodyWriter, make_coder
from plait.hyperspectral.cubes import CubeFacts
from plait.hyperspectral.parameters import SampleAdaptive
from plait.hyperspectral.streams import CompressedCube, Progress, open_stream
from plait.hyperspectral.waves import rows_at_a_time

#: Pixels of the picture, to each side.
_LOOK: Final = 512
#: Samples of which entropy is taken.
_ENTROPY: Final = 1 << 24
#: Red, green and blue, in nanometres.
_COLOURS: Final = (650.0, 550.0, 450.0)
_NANOMETRES: Final = {"nanometers": 1.0, "nm": 1.0, "micrometers": 1000.0, "um": 1000.0, "microns": 1000.0}


class BandFacts(NamedTuple):
    """What is known of the samples of each band; arrays of one number for each.

    Of floating-point numbers only the finite ones count; with none, they are NaN. `entropy` is that of
    single samples, in bits, of those of `looked` pixels. `bits` a sample are those of the codewords, None
    where codewords are shared by bands.
    """

    least: NDArray[np.float64]
    largest: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    entropy: NDArray[np.float64]
    looked: int
    bits: NDArray[np.float64] | None


class _Gathered:
    """Sums over rows, and a picture of some of their pixels."""

    def __init__(self, shape: tuple[int, int, int], shown: Sequence[int]) -> None:
        rows, columns, bands = shape
        self.step = max(1, -(-max(rows, columns) // _LOOK))
        self._apart = max(self.step, int(np.ceil((rows * columns * bands / _ENTROPY) ** 0.5)))
        self._shown = list(shown)
        self._row = 0
        self._picture: list[NDArray[Any]] = []
        self._some: list[NDArray[Any]] = []
        self._count = np.zeros(bands)
        self._mean, self._squares = np.zeros(bands), np.zeros(bands)
        self._least, self._largest = np.full(bands, np.inf), np.full(bands, -np.inf)

    def add(self, rows: NDArray[Any]) -> None:
        """More rows."""
        self._picture.append(rows[-self._row % self.step :: self.step, :: self.step, self._shown].copy())
        self._some.append(
            # A copy, which does not keep the rest.
            rows[-self._row % self._apart :: self._apart, :: self._apart].copy().reshape(-1, rows.shape[2])
        )
        self._row += len(rows)
        values = rows.reshape(-1, rows.shape[2]).astype(np.float64)
        known = np.isfinite(values)
        self._least = np.minimum(self._least, np.where(known, values, np.inf).min(0))
        self._largest = np.maximum(self._largest, np.where(known, values, -np.inf).max(0))
        # Means and squares of both parts joined, which loses no digits to large means.
        count = known.sum(0)
        own = np.where(known, values, 0).sum(0) / np.maximum(count, 1)
        squares = np.where(known, (values - own) ** 2, 0).sum(0)
        whole = np.maximum(self._count + count, 1)
        apart = own - self._mean
        self._squares += squares + apart**2 * self._count * count / whole
        self._mean += apart * count / whole
        self._count += count

    def facts(self, bits: NDArray[np.float64] | None) -> BandFacts:
        """What was found."""
        none = self._count == 0
        some = np.concatenate(self._some)
        return BandFacts(
            np.where(none, np.nan, self._least),
            np.where(none, np.nan, self._largest),
            np.where(none, np.nan, self._mean),
            np.where(none, np.nan, np.sqrt(self._squares / np.maximum(self._count, 1))),
            np.array([_entropy(own) for own in some.T]),
            len(some),
            bits,
        )

    def picture(self) -> NDArray[np.uint8]:
        """The picture in 8 bits, each colour from its 2nd to its 98th percentile."""
        found = np.concatenate(self._picture).astype(np.float64)
        found = np.where(np.isfinite(found), found, np.nan)
        out = np.zeros(found.shape, np.uint8)
        for k in range(3):
            own = found[..., k]
            if np.isnan(own).all():
                continue
            low, high = np.nanpercentile(own, (2, 98))
            out[..., k] = np.nan_to_num(255 * np.clip((own - low) / max(high - low, 1e-300), 0, 1))
        return out


def _entropy(samples: NDArray[Any]) -> float:
    """Of single samples, in bits."""
    shares = np.unique(samples, return_counts=True, equal_nan=True)[1] / len(samples)
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def band_facts(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    **tables: Any,
) -> BandFacts:
    """Statistics of the bands of a compressed cube, which is decoded for that.

    Parameters
    ----------
    path
        The compressed cube.
    threads
        Parts that are decoded at a time; None for as many as there are processors.
    progress
        Called as it goes on.
    **tables
        Tables that the stream uses and does not carry.

    Returns
    -------
    BandFacts
        Arrays of one number for each band.

    Raises
    ------
    FormatError
        If the cube is damaged.
    """
    with open_stream(path, **tables) as cube:
        return _gathered(cube, (0, 0, 0), threads, progress).facts(_bits(cube))


def _gathered(
    cube: CompressedCube, shown: Sequence[int], threads: int | None, progress: Progress | None
) -> _Gathered:
    gathered, done = _Gathered(cube.shape, shown), 0
    for rows in cube.rows(threads=threads):
        gathered.add(rows)
        done += rows.size
        if progress is not None:
            progress(done, cube.shape[0] * cube.shape[1] * cube.shape[2])
    return gathered


def _bits(cube: CompressedCube) -> NDArray[np.float64] | None:
    """Bits a sample of the codewords of each band."""
    parameters = cube.parameters
    limits = parameters.predictor.error_limits
    if not isinstance(parameters.coder, SampleAdaptive) or (
        limits is not None and limits.update_exponent is not None
    ):
        return None
    found = np.zeros(cube.shape[2])
    for number in range(cube.decoders):
        found += _stream_bits(cube.decoder(number))
    return found / (cube.shape[0] * cube.shape[1])


def _stream_bits(decoder: StreamDecoder) -> NDArray[np.float64]:
    """Bits of the codewords of each band of a stream; its residuals are read, and each band written again."""
    parameters = decoder.parameters
    image, reader = parameters.image, decoder.reader()
    found = np.zeros(image.bands)
    coder = make_coder(parameters, reader)
    if parameters.order == "bsq":
        step = rows_at_a_time(image, bands=1)
        for band in range(image.bands):
            before = reader.position
            for row in range(0, image.rows, step):
                coder.get(np.zeros((1, min(step, image.rows - row), image.columns), np.int64), row, band)
            found[band] = reader.position - before
        return found
    out = BodyWriter()
    again = make_coder(replace(parameters, order="bsq"), out)
    step = rows_at_a_time(image)
    for row in range(0, image.rows, step):
        residuals = np.zeros((min(step, image.rows - row), image.columns, image.bands), np.int64)
        coder.get(residuals, row)
        for band in range(image.bands):
            before = out.position
            again.put(np.ascontiguousarray(residuals[np.newaxis, ..., band]), row, band)
            found[band] += out.position - before
            out.take()
    return found


def _shown_bands(facts: CubeFacts, bands: int) -> tuple[tuple[int, int, int], str]:
    """Bands for red, green and blue, and words that say which."""
    chosen = tuple(int(share * (bands - 1)) for share in (0.55, 0.35, 0.15))
    why = ""
    wave = _wavelengths(facts)
    if wave is not None and wave.min() < _COLOURS[1] < wave.max():
        chosen = tuple(int(np.argmin(np.abs(wave - colour))) for colour in _COLOURS)
        why = ", of " + ", ".join(f"{wave[band]:.0f}" for band in chosen) + " nm"
    elif facts.header is not None:
        named = facts.header.numbers("default bands") or ()
        if len(named) == 3 and all(1 <= one <= bands for one in named):
            chosen = tuple(int(one) - 1 for one in named)
    numbers = ", ".join(str(band + 1) for band in chosen)
    red, green, blue = chosen
    return (
        red,
        green,
        blue,
    ), f"Bands {numbers}{why} as red, green and blue, from their 2nd to 98th percentile."


def _wavelengths(facts: CubeFacts) -> NDArray[np.float64] | None:
    """In nanometres; None where they or their unit are not known."""
    unit = str(facts.attributes.get("wavelength_units", "")).strip().lower()
    if "wavelength" not in facts.bands or unit not in _NANOMETRES:
        return None
    return np.asarray(facts.bands["wavelength"], np.float64) * _NANOMETRES[unit]


def png(picture: NDArray[np.uint8]) -> bytes:
    """A picture, (rows, columns, 3), as a PNG file."""
    rows, columns, _ = picture.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), picture.reshape(rows, -1)], axis=1)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    found = b"\x89PNG\r\n\x1a\n"
    for name, data in ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")):
        found += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return found


_WIDTH, _HEIGHT, _LEFT, _TOP = 520, 240, 56, 10
#: Differences of larger numbers may be no numbers.
_HUGE: Final = 1e300


class _Chart:
    """A chart over bands or wavelengths: lines and areas."""

    def __init__(self, x: NDArray[np.float64], unit: str, curves: Sequence[NDArray[np.float64]]) -> None:
        known = [curve[np.isfinite(curve)] for curve in curves]
        values = np.concatenate([*known, [0.0] if not any(map(len, known)) else []]).clip(-_HUGE, _HUGE)
        self._low, self._high = float(values.min()), float(values.max())
        if self._high == self._low:
            # One of which something is left, however large the numbers are.
            self._high += max(1.0, abs(self._high) / 1024)
        self._x, self._left, self._right = x, float(x.min()), float(max(x.max(), x.min() + 1e-9))
        self._parts = [self._axes(unit)]

    def _across(self, x: Any) -> Any:
        return _LEFT + (x - self._left) / (self._right - self._left) * (_WIDTH - _LEFT - 16)

    def _up(self, y: Any) -> Any:
        return _TOP + (self._high - y) / (self._high - self._low) * (_HEIGHT - _TOP - 34)

    def _axes(self, unit: str) -> str:
        parts = []
        for y in _ticks(self._low, self._high):
            parts.append(f'<path class="axis" d="M{_LEFT} {self._up(y):.1f}H{_WIDTH - 16}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{self._up(y) + 4:.1f}" text-anchor="end">{y:,.6g}</text>')
        for x in _ticks(self._left, self._right):
            parts.append(
                f'<text x="{self._across(x):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{x:g}</text>'
            )
        parts.append(
            f'<text x="{_WIDTH - 16}" y="{_HEIGHT - 3}" text-anchor="end">{html.escape(unit)}</text>'
        )
        return "".join(parts)

    def _points(self, y: NDArray[np.float64]) -> list[str]:
        known = np.isfinite(y)
        across, up = self._across(self._x[known]), self._up(y[known])
        return [f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True)]

    def line(self, kind: str, y: NDArray[np.float64]) -> None:
        """A line; what is not finite is left out."""
        self._parts.append(f'<polyline class="{kind}" points="{" ".join(self._points(y))}"/>')

    def area(self, kind: str, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """What lies between two lines."""
        points = " ".join([*self._points(low), *self._points(high)[::-1]])
        self._parts.append(f'<polygon class="{kind}" points="{points}"/>')

    def svg(self, title: str) -> str:
        """The chart; `title` says in words what it shows."""
        told = html.escape(title)
        view = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{told}"'
        inner = f"<title>{told}</title>{''.join(self._parts)}"
        return f'<svg xmlns="http://www.w3.org/2000/svg" {view}>{inner}</svg>'


def _ticks(low: float, high: float) -> list[float]:
    """Some four round numbers between two."""
    step = 10.0 ** np.floor(np.log10((high - low) / 2))
    while (high - low) / step > 5:
        step *= 2 if (high - low) / step < 10 else 5
    return [float(k * step) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def write_cube_page(
    path: str | os.PathLike[str],
    page: str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    **tables: Any,
) -> BandFacts:
    """Write a page with a quick look at a compressed cube, statistics of its bands and their bits.

    Parameters
    ----------
    path
        The compressed cube.
    page
        The page, a file that needs no other.
    threads, progress, **tables
        As in `band_facts`.

    Returns
    -------
    BandFacts
        What the page shows.

    Raises
    ------
    FormatError
        If the cube is damaged, or the page cannot be written.
    """
    with open_stream(path, **tables) as cube:
        known = CubeFacts.of(cube.origin)
        shown, looked = _shown_bands(known, cube.shape[2])
        gathered = _gathered(cube, shown, threads, progress)
        found, picture = gathered.facts(_bits(cube)), gathered.picture()
        if gathered.step > 1:
            looked += f" It has one row and column of {gathered.step}."
        text = _page(os.fspath(path), cube, found, known, (picture, looked))
    with AtomicFile(page) as file, output_errors(page):
        file.stream.write(text.encode("utf-8"))
    return found


def _page(
    path: str, cube: CompressedCube, found: BandFacts, known: CubeFacts, look: tuple[NDArray[np.uint8], str]
) -> str:
    wave, numbers = _wavelengths(known), np.arange(1.0, cube.shape[2] + 1)
    x, unit = (numbers, "band") if wave is None else (wave, "nm")
    samples = _Chart(x, unit, (found.least, found.largest))
    samples.area("range", found.least, found.largest)
    spread = (found.mean - found.deviation, found.mean + found.deviation)
    samples.area("spread", *(np.clip(one, found.least, found.largest) for one in spread))
    samples.line("mean", found.mean)
    curves = [found.entropy] if found.bits is None else [found.entropy, found.bits]
    bits = _Chart(x, unit, [np.zeros(1), *curves])
    bits.line("other", found.entropy)
    told = f'<b class="second">Entropy</b> of single samples, of {found.looked:,} pixels'
    if found.bits is None:
        told += "; bands share codewords here, so that none has bits of its own."
    else:
        bits.line("mean", found.bits)
        told += ', and <b class="first">bits a sample</b> of the stream.'
    image = cube.parameters.image
    size = 8 * cube.compressed_bytes / image.samples
    facts = {
        "rows x columns x bands": f"{cube.shape[0]:,} x {cube.shape[1]:,} x {cube.shape[2]:,}",
        "samples": f"{cube.dtype.name}, {image.dynamic_range} bits",
        "compressed": f"{cube.compressed_bytes:,} bytes, {size:.3f} bits a sample",
        "kind": "a plain stream" if cube.kind == "stream" else f"{len(cube.windows):,} blocks",
    }
    template = Template((Path(__file__).with_name("data") / "cube_page.html").read_text("utf-8"))
    return template.substitute(
        name=html.escape(os.path.basename(path)),
        facts="".join(
            f"<div><dt>{name}</dt><dd>{html.escape(fact)}</dd></div>" for name, fact in facts.items()
        ),
        picture=base64.b64encode(png(look[0])).decode("ascii"),
        look=max(420, 2 * look[0].shape[1]),
        looked=html.escape(look[1]),
        samples=samples.svg("Mean, spread and range of the samples of each band"),
        bits=bits.svg("Entropy and bits of each band"),
        counted=told,
        made=f"plait {html.escape(__version__)}, plait hsi info --html",
        **_table(found, wave),
    )


def _table(found: BandFacts, wave: NDArray[np.float64] | None) -> dict[str, str]:
    columns: dict[str, Any] = {"band": range(1, len(found.mean) + 1)}
    if wave is not None:
        columns["nm"] = wave
    columns |= {"min": found.least, "mean": found.mean, "max": found.largest, "sd": found.deviation}
    columns["entropy"] = found.entropy
    if found.bits is not None:
        columns["bits"] = found.bits
    lines = zip(*columns.values(), strict=True)
    cells = ("".join(f"<td>{_cell(value)}</td>" for value in line) for line in lines)
    return {
        "heads": "".join(f"<th>{name}</th>" for name in columns),
        "rows": "".join(f"<tr>{line}</tr>" for line in cells),
    }


def _cell(value: float) -> str:
    if value == int(value) if np.isfinite(value) else False:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.4f}"
