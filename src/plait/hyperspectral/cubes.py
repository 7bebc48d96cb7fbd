"""Cubes as sources and sinks of rows, and what their header tells of bands and place on Earth."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.envi import EnviHeader, parse_envi_header
from plait.formats.cubes.layout import check_sample_type
from plait.formats.cubes.origin import CubeOrigin
from plait.hyperspectral.parameters import ImageLayout


class CubeSource(Protocol):
    """A cube whose windows are read some rows at a time; `dtype` is of integers or floating-point numbers."""

    @property
    def rows(self) -> int:
        """Rows, or lines: NY."""

    @property
    def columns(self) -> int:
        """Columns, or samples of a line: NX."""

    @property
    def bands(self) -> int:
        """Bands: NZ."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the samples."""

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        """Samples of a window, shape (rows, columns, bands); several threads may read at once.

        Ends are exclusive; None reads to the end.
        """


def image_of(cube: CubeSource, dynamic_range: int | None = None) -> ImageLayout:
    """Size and sample type of a cube, with so many bits of a sample; None for all of its type."""
    bits = 8 * cube.dtype.itemsize if dynamic_range is None else dynamic_range
    sizes = {"columns": cube.columns, "rows": cube.rows, "bands": cube.bands}
    return ImageLayout(**sizes, dynamic_range=bits, signed=cube.dtype.kind == "i")


class ArrayCube:
    """A cube in memory or in a memory map, shape (rows, columns, bands), any strides.

    InvalidInput if samples have a type that no cube has, or there are not three dimensions of one or more.
    """

    def __init__(self, samples: NDArray[Any]) -> None:
        if samples.ndim != 3 or 0 in samples.shape:
            expected = "(rows, columns, bands), each at least 1"
            raise InvalidInput("shape of the cube", found=str(samples.shape), expected=expected)
        check_sample_type(samples.dtype, "cube")
        self._samples = samples
        self.rows, self.columns, self.bands = (int(size) for size in samples.shape)
        self.dtype = samples.dtype

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        """Samples of a window; see `CubeSource.read`."""
        return self._samples[first:last, first_column:last_column]


#: Fields of ENVI with one number for each band.
_OF_BANDS = ("wavelength", "fwhm", "bbl")
_LAYOUT = ("samples", "lines", "bands", "header offset", "file type", "data type", "interleave", "byte order")


@dataclass(frozen=True, slots=True)
class CubeFacts:
    """What is known of a cube beside its samples.

    `attributes` are single values by name, with underscores for blanks; `bands` has an array of one value for
    each band by name. `map_info` is east and north of the outer corner of the first pixel, its width and its
    height.
    """

    attributes: Mapping[str, Any] = field(default_factory=dict)
    bands: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    header: EnviHeader | None = None
    map_info: tuple[float, float, float, float] | None = None

    @classmethod
    def of(cls, origin: CubeOrigin | None) -> Self:
        """The facts that an origin has, if there is one."""
        if origin is None or not origin.header:
            return cls() if origin is None or origin.format != "geotiff" else cls._of_geotiff(origin)
        header = parse_envi_header(origin.header, origin.names.get("header", "header"))
        bands: dict[str, NDArray[Any]] = {}
        for name in _OF_BANDS:
            values = header.numbers(name)
            if values is not None and len(values) == origin.layout.bands:
                bands[name] = np.array(values)
        names = header.values("band names") or ()
        if len(names) == origin.layout.bands:
            bands["band_name"] = np.array(names)
        attributes = {
            name.replace(" ", "_"): value
            for name, value in header.fields.items()
            if name not in (*_LAYOUT, *bands, "band names")
        }
        return cls(attributes, bands, header, _map_info(header))

    @classmethod
    def _of_geotiff(cls, origin: CubeOrigin) -> Self:
        found = origin.metadata
        for name, kind in (("tags", dict), ("crs", str), ("descriptions", list), ("transform", list)):
            if not isinstance(found.get(name), kind | None):
                told = f"{name} of a GeoTIFF file: {reprlib.repr(found[name])}"
                raise FormatError(origin.names.get("data", "cube"), found=told, expected=kind.__name__)
        attributes = dict(found.get("tags") or {})
        if found.get("crs"):
            attributes["crs_wkt"] = found["crs"]
        bands = {}
        descriptions = found.get("descriptions") or []
        if any(descriptions) and len(descriptions) == origin.layout.bands:
            bands["band_name"] = np.array([str(name or "") for name in descriptions])
        place = None
        transform = found.get("transform")
        if transform and (len(transform) != 6 or not all(type(one) in (int, float) for one in transform)):
            told = f"transform of a GeoTIFF file: {reprlib.repr(transform)}"
            raise FormatError(origin.names.get("data", "cube"), found=told, expected="six numbers")
        if transform and transform[1] == transform[3] == 0:
            place = (transform[2], transform[5], transform[0], -transform[4])
        return cls(attributes, bands, None, place)

    def coordinates(self, shape: tuple[int, int, int]) -> dict[str, tuple[str, NDArray[Any]]]:
        """Coordinates by name, each with its dimension: band, y or x; `shape` is (rows, columns, bands).

        Those of x and y are of the centres of pixels.
        """
        found = {name: ("band", values) for name, values in self.bands.items()}
        if self.map_info is not None:
            east, north, width, height = self.map_info
            # Of the centres of the pixels.
            found["x"] = ("x", east + (np.arange(shape[1]) + 0.5) * width)
            found["y"] = ("y", north - (np.arange(shape[0]) + 0.5) * height)
        return found


def _map_info(header: EnviHeader) -> tuple[float, float, float, float] | None:
    """Corner and size of the pixels, from the name of a projection, a pixel, its place and the sizes."""
    values = header.values("map info")
    if values is None or len(values) < 7 or any("rotation" in value.lower() for value in values):
        return None
    try:
        column, row, east, north, width, height = (float(value) for value in values[1:7])
    except ValueError:
        return None
    # Pixel (1, 1) has its outer corner at 1, 1.
    return east - (column - 1) * width, north + (row - 1) * height, width, height
