"""Cubes in GeoTIFF files, through rasterio: samples as they stand in the file, and their place on Earth."""

from __future__ import annotations

import math
import os
import reprlib
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.cubes.files import FileCube, LibraryWriter
from plait.formats.cubes.layout import CubeLayout, check_sample_type, layout_in, load_package

_PURPOSE = "GeoTIFF"
#: What of the layout of a file is kept.
_BLOCK_SIZES = ("blockxsize", "blockysize")
_MOST_TILE = 1 << 24
_PROFILE = ("tiled", "blockxsize", "blockysize", "compress", "interleave", "photometric")


class GeoTiffCube(FileCube):
    """A GeoTIFF file as a cube; several threads may read.

    `metadata` has its place on Earth, tags and names of bands, ready for JSON. FormatError if it cannot be
    read or its bands differ in type, InvalidInput if samples cannot be coded without loss, TargetUnavailable
    without rasterio.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._rasterio = load_package("rasterio", _PURPOSE)
        self._lock = threading.Lock()
        try:
            with _without_place(self._rasterio):
                self._file = self._rasterio.open(path)
        except self._rasterio.errors.RasterioError as error:
            raise FormatError(path, found=error, expected="a GeoTIFF file") from error
        try:
            kinds = sorted(set(self._file.dtypes))
            if len(kinds) > 1:
                raise FormatError(path, found=f"bands of types {kinds}", expected="bands of one type")
            check_sample_type(np.dtype(kinds[0]), os.fspath(path))
            layout = layout_in(
                path,
                rows=self._file.height,
                columns=self._file.width,
                bands=self._file.count,
                dtype=np.dtype(kinds[0]),
                axes="zyx",
            )
            self.metadata = self._metadata()
            super().__init__(path, layout, notes=self._notes())
        except BaseException:
            self._file.close()
            raise

    def _metadata(self) -> dict[str, Any]:
        file = self._file
        numbers = range(1, file.count + 1)
        found: dict[str, Any] = {
            "profile": {name: file.profile[name] for name in _PROFILE if name in file.profile},
            "crs": file.crs.to_wkt() if file.crs else None,
            "transform": list(file.transform)[:6],
            # A number that JSON has not, such as NaN, becomes a text.
            "nodata": None if file.nodata is None else repr(file.nodata),
            "tags": file.tags(),
            "band_tags": [file.tags(number) for number in numbers],
            "descriptions": list(file.descriptions),
            "units": list(file.units),
            "scales": list(file.scales),
            "offsets": list(file.offsets),
            "color": [one.value for one in file.colorinterp],
        }
        if file.rpcs is not None:
            found["rpcs"] = file.rpcs.to_gdal()
        points, crs = file.gcps
        if points:
            found["gcps"] = [[p.row, p.col, p.x, p.y, p.z, p.id, p.info] for p in points]
            found["gcps_crs"] = crs.to_wkt() if crs else None
        return found

    def _notes(self) -> tuple[str, ...]:
        found = []
        flags = self._rasterio.enums.MaskFlags
        if any(flags.per_dataset in band for band in self._file.mask_flag_enums):
            found.append("its mask is not kept")
        if self._file.overviews(1):
            found.append("its overviews are not kept")
        if self._file.subdatasets:
            found.append("its further datasets are not kept")
        return tuple(found)

    def _read(self, first: int, last: int, first_column: int, last_column: int) -> NDArray[Any]:
        rows, columns = last - first, last_column - first_column
        window = self._rasterio.windows.Window(first_column, first, columns, rows)
        try:
            with self._lock:
                found: NDArray[Any] = self._file.read(window=window)
        except self._rasterio.errors.RasterioError as error:
            expected = f"rows {first} to {last} of a GeoTIFF file"
            raise FormatError(self.path, found=error, expected=expected) from error
        return found.transpose(1, 2, 0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class GeoTiffWriter(LibraryWriter):
    """A GeoTIFF file that appears under its name when complete; rows come in order.

    `metadata` is that of a `GeoTiffCube`, or empty. InvalidInput or FormatError if it cannot be written,
    TargetUnavailable without rasterio.
    """

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout, metadata: dict[str, Any]) -> None:
        self._rasterio = load_package("rasterio", _PURPOSE)
        super().__init__(path, layout)
        profile = _profile(path, metadata.get("profile", {}))
        # A file of strips has no width of tiles that could be asked for.
        if not profile.get("tiled"):
            profile.pop("blockxsize", None)
        nodata = metadata.get("nodata")
        try:
            with _without_place(self._rasterio):
                self._file = self._rasterio.open(
                    self._output.hidden,
                    "w",
                    driver="GTiff",
                    width=layout.columns,
                    height=layout.rows,
                    count=layout.bands,
                    dtype=self.dtype.name,
                    nodata=None if nodata is None else _number(nodata),
                    BIGTIFF="IF_SAFER",
                    **profile,
                )
        except (self._rasterio.errors.RasterioError, ValueError) as error:
            self._output.discard()
            raise FormatError(path, found=error, expected="a GeoTIFF file that can be written") from error
        self._begin(_PURPOSE, metadata, self._rasterio.errors.RasterioError)

    def _describe(self, found: dict[str, Any]) -> None:
        file, rasterio = self._file, self._rasterio
        if found.get("crs"):
            file.crs = rasterio.crs.CRS.from_wkt(found["crs"])
        if found.get("transform") and found["transform"] != [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]:
            file.transform = rasterio.Affine(*found["transform"])
        if found.get("tags"):
            file.update_tags(**found["tags"])
        for number, tags in enumerate(found.get("band_tags", ()), 1):
            if tags:
                file.update_tags(number, **tags)
        for name in ("descriptions", "units", "scales", "offsets"):
            if any(value not in (None, "") for value in found.get(name, ())):
                setattr(file, name, tuple(found[name]))
        if "color" in found:
            file.colorinterp = [rasterio.enums.ColorInterp(value) for value in found["color"]]
        if "rpcs" in found:
            file.rpcs = rasterio.rpc.RPC.from_gdal(found["rpcs"])
        if "gcps" in found:
            names = ("row", "col", "x", "y", "z", "id", "info")
            make = rasterio.control.GroundControlPoint
            points = [make(**dict(zip(names, point, strict=True))) for point in found["gcps"]]
            wkt = found.get("gcps_crs")
            file.gcps = (points, rasterio.crs.CRS.from_wkt(wkt) if wkt else None)
        # Whole blocks of the file, because one that is written again takes its place twice.
        self._step = max(1, int(file.block_shapes[0][0]))

    def _write(self, row: int, rows: NDArray[Any]) -> None:
        window = self._rasterio.windows.Window(0, row, self.layout.columns, len(rows))
        try:
            self._file.write(np.ascontiguousarray(rows.transpose(2, 0, 1)), window=window)
        except self._rasterio.errors.RasterioError as error:
            raise FormatError(self.path, found=error, expected="room for the output") from error


def _profile(path: object, found: Any) -> dict[str, Any]:
    """The layout that a description asks for; blocks of it are held in memory."""
    known = {name: found[name] for name in _PROFILE if name in found} if isinstance(found, dict) else None
    sizes = [] if known is None else [known[name] for name in _BLOCK_SIZES if name in known]
    if known is None or not all(type(size) is int and 1 <= size <= 1 << 16 for size in sizes):
        told = reprlib.repr(found)
        raise FormatError(path, found=f"the profile {told}", expected="that of a GeoTIFF file")
    if known.get("tiled") and math.prod(sizes) > _MOST_TILE:
        told = " x ".join(map(str, sizes))
        raise FormatError(path, found=f"tiles of {told}", expected=f"at most {_MOST_TILE:,} pixels in a tile")
    return known


@contextmanager
def _without_place(rasterio: Any) -> Iterator[None]:
    """A cube need not have a place on Earth: rasterio warns of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        yield


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() else value
