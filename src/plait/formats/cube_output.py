"""Write a cube into a file of the format that its name asks for, or of the one it came from."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from plait.errors import InvalidInput
from plait.formats.atomic import AtomicFile, check_output, output_errors
from plait.formats.cube_input import GEOTIFF_SUFFIXES, NETCDF_SUFFIXES
from plait.formats.cube_layout import AXES, ByteOrder, CubeLayout, interleave_axes, with_byte_order
from plait.formats.cube_origin import CubeOrigin
from plait.formats.cube_sink import RowWriter
from plait.formats.cube_writer import CubeFileWriter
from plait.formats.envi import new_envi_header
from plait.formats.envi_names import DATA_SUFFIXES, header_name
from plait.formats.npy_cubes import npy_header

__all__ = ["CubeFormat", "create_cube"]

CubeFormat = Literal["envi", "npy", "raw", "geotiff", "netcdf"]
_SUFFIXES: Final[dict[str, CubeFormat]] = {
    ".npy": "npy",
    ".hdr": "envi",
    **dict.fromkeys(GEOTIFF_SUFFIXES, "geotiff"),
    **dict.fromkeys(NETCDF_SUFFIXES, "netcdf"),
}


class _EnviWriter(CubeFileWriter):
    """A data file and its header, which appear together."""

    def __init__(self, data: Path, header: Path, layout: CubeLayout, text: str, prefix: bytes) -> None:
        check_output(header, ())
        self._header, self._text = header, text
        super().__init__(data, layout, prefix)

    def _finish(self) -> None:
        with AtomicFile(self._header) as file, output_errors(self._header):
            file.stream.write(self._text.encode("latin-1"))
            # The samples first: a header alone would seem to describe an older file.
            super()._finish()


def create_cube(
    path: str | os.PathLike[str],
    shape: tuple[int, int, int],
    dtype: np.dtype[Any],
    *,
    origin: CubeOrigin | None = None,
    format: CubeFormat | None = None,
    interleave: str | None = None,
    byte_order: ByteOrder | None = None,
) -> RowWriter:
    """Begin to write a cube.

    Parameters
    ----------
    path
        The output; an existing folder for the name that the cube came from. The suffix decides the format:
        .npy, .tif, .nc, .hdr (ENVI). Any other is written in the format that the cube came from, if that is
        raw, and otherwise as ENVI data with a header beside.
    shape
        Rows, columns and bands.
    dtype
        Type of the samples, where the origin says nothing else.
    origin
        What the cube came from. In the same format, interleave and byte order it is written as it was.
    format
        The format, whatever the suffix.
    interleave, byte_order
        Another order than that of the origin.

    Raises
    ------
    InvalidInput
        If the origin is that of another cube, or the output cannot be written so.
    FormatError
        If the output cannot be written.
    TargetUnavailable
        If a package is needed that is not installed.
    """
    out = _named(Path(path), origin)
    form = format or _SUFFIXES.get(out.suffix.lower()) or _usual(origin)
    kept = origin if origin is not None and origin.format == form else None
    layout = _layout(shape, dtype, origin, kept)
    changed = interleave is not None or byte_order is not None
    if form == "geotiff" and changed:
        raise InvalidInput("interleave", found="another order", expected="none for GeoTIFF")
    if interleave is not None:
        layout = replace(layout, axes=interleave_axes(interleave))
    if byte_order is not None:
        layout = replace(layout, dtype=with_byte_order(layout.dtype, byte_order))
    if form == "npy":
        return _npy(out, layout, kept, changed, interleave)
    if form == "geotiff":
        from plait.formats.geotiff_cubes import GeoTiffWriter

        return GeoTiffWriter(out, layout, {} if kept is None else kept.metadata)
    if form == "netcdf":
        from plait.formats.netcdf_cubes import NetCdfWriter

        return NetCdfWriter(out, layout, {} if kept is None else kept.metadata)
    prefix = b"" if kept is None else kept.prefix
    layout = replace(layout, offset=len(prefix))
    if form == "raw":
        return CubeFileWriter(out, layout, prefix)
    return _envi(out, layout, kept, prefix)


def _npy(
    out: Path, layout: CubeLayout, kept: CubeOrigin | None, changed: bool, interleave: str | None
) -> RowWriter:
    if kept is not None and kept.prefix and not changed:
        prefix = kept.prefix
    else:
        # Of an array in Fortran order the axes of the file are not its dimensions.
        usual = "yxz" if kept is None else kept.metadata.get("dimensions", "yxz")
        layout = replace(layout, axes=usual if interleave is None else layout.axes)
        prefix = npy_header(layout)
    return CubeFileWriter(out, replace(layout, offset=len(prefix)), prefix)


def _named(path: Path, origin: CubeOrigin | None) -> Path:
    if not path.is_dir():
        return path
    if origin is None or "data" not in origin.names:
        expected = "the name of a file, since the stream does not tell what it came from"
        raise InvalidInput("output", found=f"the folder {str(path)!r}", expected=expected)
    return path / origin.names["data"]


def _usual(origin: CubeOrigin | None) -> CubeFormat:
    return "raw" if origin is not None and origin.format == "raw" else "envi"


def _layout(
    shape: tuple[int, int, int], dtype: np.dtype[Any], origin: CubeOrigin | None, kept: CubeOrigin | None
) -> CubeLayout:
    rows, columns, bands = shape
    if origin is None:
        return CubeLayout(rows=rows, columns=columns, bands=bands, dtype=dtype.newbyteorder("<"))
    known = origin.layout
    if (known.rows, known.columns, known.bands) != shape:
        expected = f"one of {rows} rows x {columns} columns x {bands} bands, as the stream has"
        raise InvalidInput("origin", found=f"a cube of {known.describe()}", expected=expected)
    if kept is not None:
        return replace(known, offset=0)
    # The order of the axes of another format would only surprise.
    return CubeLayout(rows=rows, columns=columns, bands=bands, dtype=known.dtype.newbyteorder("<"))


def _envi(out: Path, layout: CubeLayout, kept: CubeOrigin | None, prefix: bytes) -> RowWriter:
    if layout.axes not in AXES.values():
        raise InvalidInput("interleave", found=repr(layout.axes), expected="bsq, bil or bip for ENVI")
    names = {} if kept is None else kept.names
    if out.suffix.lower() == ".hdr":
        header = out
        data = out.with_suffix("")
        if data.suffix.lower() not in DATA_SUFFIXES[:-1]:
            data = out.with_suffix(Path(names.get("data", "scene.img")).suffix)
    elif out.name == names.get("data") and "header" in names:
        data, header = out, out.with_name(names["header"])
    else:
        data, header = out, header_name(out)
    text = new_envi_header(layout, kept.header if kept is not None and kept.header else None)
    return _EnviWriter(data, header, layout, text, prefix)
