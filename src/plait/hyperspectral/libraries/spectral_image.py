"""Compressed cubes as images of Spectral Python (SPy), with its names, reading only what is asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.cubes.layout import load_package
from plait.hyperspectral.cube_objects import KeptParts
from plait.hyperspectral.cubes import CubeFacts
from plait.hyperspectral.streams import CompressedCube, open_stream

if TYPE_CHECKING:
    from spectral.io.spyfile import SpyFile

#: Integers up to 2**24 are exact in 32-bit floating-point numbers.
_EXACT_BITS = 24


def open_image(path: str | os.PathLike[str], *, index: str | os.PathLike[str] | None = None) -> SpyFile:
    """Open a compressed cube as SPy's own `open_image` opens a plain one.

    The result is a `SpyFile`: it has `shape`, `metadata` and `bands`, is indexed like an array, and goes into
    SPy's functions. Samples are the integers of the file: no scale factor divides them. `load` makes
    32-bit floating-point numbers, as SPy does; it refuses where those would not be exact, unless a type is
    asked for.

    Parameters
    ----------
    path
        The compressed cube.
    index
        Its side index.

    Raises
    ------
    FormatError
        If the file is damaged.
    TargetUnavailable
        If SPy is not installed.
    """
    cube = open_stream(path, index=index)
    try:
        return _image_class()(os.fspath(path), cube)
    except BaseException:
        cube.close()
        raise


def _image_class() -> Any:
    spy = load_package("spectral", "Spectral Python")
    spyfile = load_package("spectral.io.spyfile", "Spectral Python")
    image = load_package("spectral.image", "Spectral Python")

    class CompressedImage(_Reading, spyfile.SpyFile):  # type: ignore[misc, name-defined]
        """A compressed cube as an image of SPy."""

        interleave = spy.BIP

        def __init__(self, path: str, cube: CompressedCube) -> None:
            self._cube, self._kept = cube, KeptParts(cube)
            # SPy closes it when the image is forgotten.
            self.fid = cube
            origin = cube.origin
            facts = CubeFacts.of(origin)
            metadata: dict[str, Any] = {}
            if facts.header is not None:
                metadata = {
                    name: list(facts.header.values(name) or ()) if value.startswith("{") else value
                    for name, value in facts.header.fields.items()
                }
            kind = cube.dtype if origin is None else origin.layout.dtype.newbyteorder("=")
            self._fill(path, kind, metadata)
            self.bands = image.BandInfo() if hasattr(image, "BandInfo") else spy.BandInfo()
            for name, known in (("centers", "wavelength"), ("bandwidths", "fwhm")):
                if known in facts.bands:
                    setattr(self.bands, name, facts.bands[known].tolist())
            self.bands.band_unit = metadata.get("wavelength units", "")

        def _fill(self, path: str, kind: np.dtype[Any], metadata: dict[str, Any]) -> None:
            self.nrows, self.ncols, self.nbands = self.shape = self._cube.shape
            self.filename, self.dtype, self.metadata = path, np.dtype(kind), metadata
            self.offset, self.byte_order, self.swap = 0, spy.byte_order, 0
            self.sample_size = self.dtype.itemsize
            # As they stand in the file.
            self.scale_factor = 1.0

        def load(self, **options: Any) -> Any:
            """The whole image in memory, as SPy's `ImageArray`.

            Samples are float32 unless `dtype` is given; without it, more than 24 bits are InvalidInput.
            """
            if left := sorted(set(options) - {"dtype", "scale"}):
                raise InvalidInput("load", found=", ".join(left), expected="dtype or scale")
            kind = np.dtype(options.get("dtype", np.float32))
            bits = self._cube.parameters.image.dynamic_range
            if self._cube.mapping is not None:
                bits = 0 if self.dtype == np.float32 else 64
            if "dtype" not in options and bits > _EXACT_BITS:
                raise InvalidInput(
                    "load",
                    found=f"samples of {bits} bits, of which float32 keeps {_EXACT_BITS}",
                    expected="a type that holds them",
                    hint="ask for load(dtype='float64'), or index the image for its integers",
                )
            return image.ImageArray(self.read_subregion((0, self.nrows), (0, self.ncols)).astype(kind), self)

    return CompressedImage


class _Reading:
    """SPy's functions for reading, by windows of a compressed cube."""

    _kept: KeptParts
    dtype: np.dtype[Any]
    nrows: int
    ncols: int

    def read_subregion(
        self,
        row_bounds: tuple[int, int],
        col_bounds: tuple[int, int],
        bands: Sequence[int] | None = None,
        use_memmap: bool = True,
    ) -> NDArray[Any]:
        found: NDArray[Any] = self._kept.read(*row_bounds, *col_bounds).astype(self.dtype, copy=False)
        return found if bands is None else found[:, :, list(bands)]

    def read_subimage(
        self,
        rows: Sequence[int],
        cols: Sequence[int],
        bands: Sequence[int] | None = None,
        use_memmap: bool = False,
    ) -> NDArray[Any]:
        first, left = min(rows), min(cols)
        region = self.read_subregion((first, max(rows) + 1), (left, max(cols) + 1), bands)
        found: NDArray[Any] = region[np.ix_(np.subtract(rows, first), np.subtract(cols, left))]
        return found

    def read_band(self, band: int, use_memmap: bool = True) -> NDArray[Any]:
        found: NDArray[Any] = self.read_bands([band])[:, :, 0]
        return found

    def read_bands(self, bands: Sequence[int], use_memmap: bool = True) -> NDArray[Any]:
        return self.read_subregion((0, self.nrows), (0, self.ncols), bands)

    def read_pixel(self, row: int, col: int, use_memmap: bool = True) -> NDArray[Any]:
        found: NDArray[Any] = self.read_subregion((row, row + 1), (col, col + 1))[0, 0]
        return found

    def read_datum(self, i: int, j: int, k: int, use_memmap: bool = True) -> int:
        return int(self.read_pixel(i, j)[k])

    def open_memmap(self, **options: Any) -> NDArray[Any]:
        """All samples, as integers: a compressed cube cannot be mapped."""
        return self.read_subregion((0, self.nrows), (0, self.ncols))
