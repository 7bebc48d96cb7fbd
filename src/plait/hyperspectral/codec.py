"""Compress and decompress cubes, a few rows at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput, Unsupported
from plait.hyperspectral.codewords import BodyEnd, BodyReader, BodyWriter, make_coder
from plait.hyperspectral.header import HeaderEnd, parse_header, write_header
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    HybridCoder,
    ImageLayout,
    StreamParameters,
)
from plait.hyperspectral.waves import BandWaves

__all__ = ["BodyEnd", "Compressor", "HeaderEnd", "compress", "decompress", "decompress_rows", "sample_type"]

#: Bytes of residuals that wait in memory for their turn in a band-sequential stream; more wait in a file.
_MOST_WAITING = 1 << 28
#: Samples that are worked on at a time.
_SAMPLES = 1 << 20


def sample_type(image: ImageLayout) -> np.dtype[Any]:
    """The narrowest type of whole bytes that holds the samples of an image."""
    bits = next(size for size in (8, 16, 32) if size >= image.dynamic_range)
    return np.dtype(f"{'i' if image.signed else 'u'}{bits // 8}")


def _waiting(image: ImageLayout) -> NDArray[Any]:
    """Room for all residuals, shape (bands, rows, columns)."""
    kind = np.dtype(np.uint16 if image.dynamic_range <= 16 else np.uint32)
    shape = (image.bands, image.rows, image.columns)
    if image.samples * kind.itemsize <= _MOST_WAITING:
        return np.empty(shape, kind)
    # Unlinked already, so that nothing is left whatever happens.
    with tempfile.TemporaryFile(prefix="plait-") as file:
        file.truncate(image.samples * kind.itemsize)
        return np.memmap(file, kind, "r+", shape=shape)


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
        if isinstance(parameters.coder, HybridCoder):
            raise Unsupported("the hybrid coder", why="only the sample- and the block-adaptive one are there")
        self.parameters = parameters
        self._image = parameters.image
        self._give = write
        self._written = 0
        self._row = 0
        self._waves = BandWaves(parameters.image, parameters.predictor)
        self._bits = BodyWriter()
        self._coder = make_coder(parameters, self._bits)
        self._waiting = _waiting(parameters.image) if parameters.order == "bsq" else None
        self._put(write_header(parameters))

    def _put(self, data: bytes) -> None:
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
        step = max(1, _SAMPLES // (image.columns * image.bands))
        for first in range(0, len(rows), step):
            self._compress(rows[first : first + step])

    def _compress(self, rows: NDArray[Any]) -> None:
        image = self._image
        if rows.size and (int(rows.min()) < image.least or int(rows.max()) > image.largest):
            worst = int(rows.min()) if int(rows.min()) < image.least else int(rows.max())
            y, x, z = (int(k[0]) for k in np.nonzero(rows == worst))
            what = f"sample at row {self._row + y}, column {x}, band {z}"
            expected = f"{image.least} to {image.largest}, as {image.dynamic_range} bits hold"
            raise InvalidInput(what, found=str(worst), expected=expected)
        values = rows.astype(np.int64)
        values -= image.middle
        self._waves.run(values.reshape(-1, image.bands))
        if self._waiting is not None:
            self._waiting[:, self._row : self._row + len(rows)] = values.transpose(2, 0, 1)
            self._row += len(rows)
            return
        for own in values:
            self._coder.put(own, self._row)
            self._row += 1
            self._put(self._bits.take())

    def close(self) -> None:
        """Write the end.

        Raises
        ------
        InvalidInput
            If rows are missing.
        """
        if self._row != self._image.rows:
            expected = f"{self._image.rows}, as the parameters say"
            raise InvalidInput("rows", found=f"{self._row} of them", expected=expected)
        if self._waiting is not None:
            for band, residuals in enumerate(self._waiting):
                self._coder.put_band(residuals.astype(np.int64), band)
                self._put(self._bits.take())
        self._coder.finish()
        self._put(self._bits.take())
        self._put(self._bits.close(self._written, self.parameters.output_word_size))


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


def _least_bytes(parameters: StreamParameters) -> int:
    """Bytes that the body of a complete stream has at least."""
    image = parameters.image
    if isinstance(parameters.coder, BlockAdaptive):
        # A run of 64 blocks takes a label, a bit and a count of five bits.
        return image.samples // (64 * parameters.coder.block_size)
    return image.samples // 8


def decompress_rows(stream: Any, **tables: Any) -> Iterator[NDArray[Any]]:
    """Decompress an image, some rows at a time.

    Parameters
    ----------
    stream
        The stream, as bytes or another buffer.
    **tables
        Tables that the stream uses and does not carry, see `plait.hyperspectral.header.parse_header`.

    Yields
    ------
    NDArray
        Samples, shape (rows, columns, bands).

    Raises
    ------
    HeaderEnd, BodyEnd
        If the stream is truncated or damaged.
    InvalidInput
        If the header holds what the standard does not allow.
    """
    view = memoryview(stream).cast("B")
    parameters, size = parse_header(view, **tables)
    image = parameters.image
    if isinstance(parameters.coder, HybridCoder):
        raise Unsupported("the hybrid coder", why="only the sample- and the block-adaptive one are there")
    if len(view) - size < _least_bytes(parameters):
        raise BodyEnd(f"the body has {len(view) - size:,} bytes, too few for {image.samples:,} samples")
    bits = BodyReader(view[size:])
    coder = make_coder(parameters, bits)
    waves = BandWaves(image, parameters.predictor, backwards=True)
    waiting = None
    if parameters.order == "bsq":
        waiting = _waiting(image)
        for band in range(image.bands):
            residuals = np.zeros((image.rows, image.columns), np.int64)
            coder.get_band(residuals, band)
            _check_residuals(residuals, image)
            waiting[band] = residuals
    kind = sample_type(image)
    step = max(1, _SAMPLES // (image.columns * image.bands))
    for first in range(0, image.rows, step):
        last = min(first + step, image.rows)
        values = np.zeros((last - first, image.columns, image.bands), np.int64)
        if waiting is None:
            for row, own in enumerate(values, first):
                coder.get(own, row)
            _check_residuals(values, image)
        else:
            values[:] = waiting[:, first:last].transpose(1, 2, 0)
        waves.run(values.reshape(-1, image.bands))
        values += image.middle
        yield values.astype(kind)


def _check_residuals(residuals: NDArray[np.int64], image: ImageLayout) -> None:
    if residuals.size and int(residuals.max()) >> image.dynamic_range:
        raise BodyEnd(f"the body holds a residual of more than {image.dynamic_range} bits: it is damaged")


def decompress(stream: Any, **tables: Any) -> tuple[NDArray[Any], StreamParameters]:
    """Decompress a whole image.

    Parameters
    ----------
    stream, **tables
        As for `decompress_rows`.

    Returns
    -------
    NDArray
        Samples, shape (rows, columns, bands).
    StreamParameters
        What the header says.
    """
    rows = list(decompress_rows(stream, **tables))
    parameters, _ = parse_header(memoryview(stream).cast("B"), **tables)
    return np.concatenate(rows), parameters
