"""Open a cube, whatever file it stands in."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.envi import data_of, header_of, read_envi_header
from plait.formats.cubes.layout import ByteOrder, CubeLayout, interleave_axes, with_byte_order
from plait.formats.cubes.npy import npy_layout
from plait.formats.cubes.origin import MOST_PREFIX, CubeOrigin
from plait.formats.cubes.source import CubeFile, FileCube

GEOTIFF_SUFFIXES: Final = (".tif", ".tiff")
NETCDF_SUFFIXES: Final = (".nc", ".nc4", ".cdf", ".h5", ".he5", ".hdf5")
_RAW_OPTIONS: Final = ("dtype", "byte_order", "offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawShape:
    """What has to be said of a file without a header, and may be said of others.

    `shape` is rows, columns, bands. `interleave` is bsq, bil or bip, or axes such as zyx; of arrays with
    dimensions, what these are. `offset` is the bytes before the first sample.
    """

    shape: tuple[int, int, int] | None = None
    dtype: str | None = None
    interleave: str | None = None
    byte_order: ByteOrder | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class InputCube:
    """A cube that is open for reading, with what is needed to write it again, and the files that are read."""

    source: FileCube
    origin: CubeOrigin
    files: tuple[Path, ...]


_AS_IT_IS = RawShape()


def open_cube(
    path: str | os.PathLike[str], raw: RawShape = _AS_IT_IS, *, variable: str | None = None
) -> InputCube:
    """Open a cube in a file of any format that plait reads; the caller closes its source.

    `path` is an ENVI header or data file, a .npy, GeoTIFF or NetCDF file, or any other one if `raw` has a
    shape. FormatError if the file is not what it should be, or has another size than its header says;
    InvalidInput if something has to be said, or samples cannot be coded without loss; TargetUnavailable
    if a package is missing.
    """
    name = Path(path)
    if not name.exists():
        raise FormatError(path, found="no such file", expected="a cube")
    suffix = name.suffix.lower()
    opener: Callable[[Path, RawShape], InputCube]
    if raw.shape is not None:
        opener = _open_raw
    elif suffix in NETCDF_SUFFIXES:
        return _open_netcdf(name, raw, variable)
    elif suffix in GEOTIFF_SUFFIXES:
        opener = _open_geotiff
    else:
        opener = _open_npy if suffix == ".npy" else _open_envi
    if variable is not None:
        raise InvalidInput("variable", found=repr(variable), expected="none, but for NetCDF files")
    return opener(name, raw)


def _only_interleave(raw: RawShape, path: Path, *, interleave: bool) -> str | None:
    """Refuse what a header says already."""
    for option in _RAW_OPTIONS if interleave else (*_RAW_OPTIONS, "interleave"):
        if getattr(raw, option) is not None:
            found = str(getattr(raw, option))
            hint = "or a shape, so that the header is left aside"
            raise InvalidInput(option, found=found, expected=f"nothing, since {path.name} says it", hint=hint)
    return None if raw.interleave is None else interleave_axes(raw.interleave)


def _open_raw(path: Path, raw: RawShape) -> InputCube:
    if raw.dtype is None or raw.interleave is None:
        missing = "dtype" if raw.dtype is None else "interleave"
        expected = {"dtype": "a type such as uint16", "interleave": "bsq, bil or bip"}[missing]
        raise InvalidInput(missing, found="nothing", expected=f"{expected}, beside the shape")
    try:
        kind = np.dtype(raw.dtype)
    except TypeError:
        expected = "a type such as uint16, int16 or >i4"
        raise InvalidInput("dtype", found=repr(raw.dtype), expected=expected) from None
    if kind.itemsize > 1 and kind.isnative and raw.byte_order is None and raw.dtype[:1] not in "<>":
        raise InvalidInput("byte_order", found="nothing", expected=f"little or big for {kind.name}")
    rows, columns, bands = raw.shape or (0, 0, 0)
    layout = CubeLayout(
        rows=rows,
        columns=columns,
        bands=bands,
        dtype=kind if raw.byte_order is None else with_byte_order(kind, raw.byte_order),
        axes=interleave_axes(raw.interleave),
        offset=raw.offset or 0,
    )
    return _plain(path, layout, "raw")


def _plain(
    path: Path,
    layout: CubeLayout,
    form: str,
    header: str = "",
    header_path: Path | None = None,
    **metadata: str,
) -> InputCube:
    """A cube in a file of plain samples."""
    source = CubeFile(path, layout)
    try:
        with open(path, "rb") as file:
            # One byte too many is refused.
            prefix = file.read(min(layout.offset, MOST_PREFIX + 1))
        names = {"data": path.name} | ({"header": header_path.name} if header_path else {})
        origin = CubeOrigin(
            format=form, layout=layout, names=names, header=header, prefix=prefix, metadata=metadata
        )
    except BaseException:
        source.close()
        raise
    return InputCube(source, origin, (path,) if header_path is None else (path, header_path))


def _open_npy(path: Path, raw: RawShape) -> InputCube:
    dimensions = _only_interleave(raw, path, interleave=True)
    dimensions = dimensions or "yxz"
    return _plain(path, npy_layout(path, dimensions), "npy", dimensions=dimensions)


def _open_envi(path: Path, raw: RawShape) -> InputCube:
    if path.suffix.lower() == ".hdr":
        header_path, data = path, data_of(path)
    else:
        found = header_of(path)
        if found is None:
            raise FormatError(
                path,
                found="no ENVI header beside it",
                expected=f"{path.stem}.hdr or {path.name}.hdr; or a .npy, .tif or .nc file",
                hint="or say its shape, dtype, interleave and byte_order",
            )
        header_path, data = found, path
    _only_interleave(raw, header_path, interleave=False)
    header = read_envi_header(header_path)
    return _plain(data, header.layout(), "envi", header.text, header_path)


def _open_geotiff(path: Path, raw: RawShape) -> InputCube:
    from plait.formats.cubes.geotiff import GeoTiffCube

    _only_interleave(raw, path, interleave=False)
    source = GeoTiffCube(path)
    origin = CubeOrigin(
        format="geotiff", layout=source.layout, names={"data": path.name}, metadata=source.metadata
    )
    return InputCube(source, origin, (path,))


def _open_netcdf(path: Path, raw: RawShape, variable: str | None) -> InputCube:
    from plait.formats.cubes.netcdf import NetCdfCube

    source = NetCdfCube(path, variable, _only_interleave(raw, path, interleave=True))
    origin = CubeOrigin(
        format="netcdf", layout=source.layout, names={"data": path.name}, metadata=source.metadata
    )
    return InputCube(source, origin, (path,))
