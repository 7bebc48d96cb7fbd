"""Compress cubes into standard streams, a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.hyperspectral.bodies import BodyEnd, BodyWriter
from plait.hyperspectral.codewords import make_coder
from plait.hyperspectral.decoder import StreamDecoder
from plait.hyperspectral.header import HeaderEnd, write_header
from plait.hyperspectral.image_layout import ImageLayout
from plait.hyperspectral.parameters import StreamParameters
from plait.hyperspectral.residual_store import ResidualStore
from plait.hyperspectral.waves import BandWaves, bands_at_a_time, rows_at_a_time

__all__ = ["BodyEnd", "Compressor", "HeaderEnd", "compress", "decompress"]


class Compressor:
    """Compresses an image, of which rows come in order.

    Parameters
    ----------
    parameters
        Everything that the header says.
    write
        Called with pieces of the stream, in order.
    """

    def __init__(self, parameters: StreamParameters, write: Callable[[bytes], object]) -> None:
        self.parameters = parameters
        self._image = parameters.image
        self._give = write
        self._written = 0
        self._row = 0
        self._waves = BandWaves(parameters.image, parameters.predictor)
        self._bits = BodyWriter()
        self._coder = make_coder(parameters, self._bits)
        self._waiting = ResidualStore(parameters.image) if parameters.order == "bsq" else None
        self._put(write_header(parameters))

    def _put(self, data: bytes) -> None:
        if data:
            self._written += len(data)
            self._give(data)

    def write(self, rows: NDArray[Any]) -> None:
        """Append rows.

        Parameters
        ----------
        rows
            Integers, shape (rows, columns, bands).

        Raises
        ------
        InvalidInput
            If the shape or a sample does not go with the parameters, or there are too many rows.
        """
        image = self._image
        rows = np.asarray(rows)
        if rows.ndim != 3 or rows.shape[1:] != (image.columns, image.bands):
            expected = f"(rows, {image.columns}, {image.bands})"
            raise InvalidInput("shape of the rows", found=str(rows.shape), expected=expected)
        if self._row + len(rows) > image.rows:
            found = f"{self._row + len(rows)} of them"
            raise InvalidInput("rows", found=found, expected=f"{image.rows}, as the parameters say")
        if rows.dtype.kind not in "iu":
            found = f"samples of type {rows.dtype}"
            raise InvalidInput("rows", found=found, expected="integers, which are kept without loss")
        step = rows_at_a_time(image)
        for first in range(0, len(rows), step):
            self._compress(rows[first : first + step])

    def _compress(self, rows: NDArray[Any]) -> None:
        image = self._image
        _check_samples(rows, image, self._row)
        values = np.empty(rows.shape, np.int64)
        np.subtract(rows, image.middle, out=values, dtype=np.int64, casting="unsafe")
        self._waves.run(values.reshape(-1, image.bands))
        if self._waiting is not None:
            self._waiting.put(self._row, values)
        else:
            self._coder.put(values, self._row)
            self._put(self._bits.take())
        self._row += len(rows)

    def close(self) -> None:
        """Write the end.

        Raises
        ------
        InvalidInput
            If rows are missing.
        """
        image = self._image
        if self._row != image.rows:
            expected = f"{image.rows}, as the parameters say"
            raise InvalidInput("rows", found=f"{self._row} of them", expected=expected)
        if self._waiting is not None:
            step, bands = rows_at_a_time(image, bands=1), bands_at_a_time(image)
            for band in range(0, image.bands, bands):
                for row in range(0, image.rows, step):
                    residuals = self._waiting.get_bands(
                        band, min(band + bands, image.bands), row, min(row + step, image.rows)
                    )
                    self._coder.put_bands(residuals, row, band)
                    self._put(self._bits.take())
            self._waiting.close()
        self._coder.finish()
        self._put(self._bits.take())
        self._put(self._bits.close(self._written, self.parameters.output_word_size))


def _check_samples(rows: NDArray[Any], image: ImageLayout, first: int) -> None:
    """Check that samples are in their range."""
    bounds = np.iinfo(rows.dtype)
    if not rows.size or (image.least <= bounds.min and bounds.max <= image.largest):
        return
    least, largest = int(rows.min()), int(rows.max())
    if least >= image.least and largest <= image.largest:
        return
    worst = least if least < image.least else largest
    y, x, z = (int(k[0]) for k in np.nonzero(rows == worst))
    what = f"sample at row {first + y}, column {x}, band {z}"
    expected = f"{image.least} to {image.largest}, as {image.dynamic_range} bits hold"
    raise InvalidInput(what, found=str(worst), expected=expected)


def compress(cube: NDArray[Any], parameters: StreamParameters) -> bytes:
    """Compress a whole image.

    Parameters
    ----------
    cube
        Integers, shape (rows, columns, bands).
    parameters
        Everything that the header says.

    Returns
    -------
    bytes
        The stream.

    Raises
    ------
    InvalidInput
        If the image does not go with the parameters.
    """
    pieces: list[bytes] = []
    compressor = Compressor(parameters, pieces.append)
    compressor.write(cube)
    compressor.close()
    return b"".join(pieces)


def decompress(stream: Any, **tables: Any) -> tuple[NDArray[Any], StreamParameters]:
    """Decompress a whole image.

    Parameters
    ----------
    stream
        The stream, as bytes or another buffer.
    **tables
        Tables that the stream uses and does not carry, see `plait.hyperspectral.header.parse_header`.

    Returns
    -------
    NDArray
        Samples, shape (rows, columns, bands).
    StreamParameters
        What the header says.

    Raises
    ------
    HeaderEnd, BodyEnd
        If the stream is truncated or damaged.
    InvalidInput
        If the header holds what the standard does not allow.
    """
    decoder = StreamDecoder(stream, **tables)
    image = decoder.parameters.image
    found = np.empty((image.rows, image.columns, image.bands), decoder.dtype)
    row = 0
    for rows in decoder.rows():
        found[row : row + len(rows)] = rows
        row += len(rows)
    return found, decoder.parameters
