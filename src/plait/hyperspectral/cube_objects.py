"""Cubes that other libraries hold, and files of cubes, as one thing to compress."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.cube_input import open_cube
from plait.formats.cube_layout import check_sample_type
from plait.hyperspectral.block_grid import Window
from plait.hyperspectral.chunks import cube_of
from plait.hyperspectral.cubes import ArrayCube, CubeSource
from plait.hyperspectral.kept_parts import KeptParts
from plait.hyperspectral.streams import CompressedCube

__all__ = ["LazyArrayCube", "as_cube"]

_AXES = "yxz"
#: What dimensions of xarray are called.
_NAMES = {
    "z": ("band", "bands", "wavelength", "wavelengths", "channel", "spectral", "z", "wl"),
    "y": ("y", "lat", "latitude", "row", "rows", "line", "lines", "along_track", "northing", "downtrack"),
    "x": (
        "x",
        "lon",
        "longitude",
        "column",
        "columns",
        "sample",
        "samples",
        "across_track",
        "easting",
        "crosstrack",
    ),
}


class LazyArrayCube:
    """An array that is read when it is indexed, such as one of dask or xarray, as a cube.

    Parameters
    ----------
    array
        Indexed like a NumPy array; `numpy.asarray` makes what it gives an array.
    axes
        What its dimensions are, of y, x and z.

    Attributes
    ----------
    rows, columns, bands
        Size.
    dtype
        Type of the samples.
    """

    def __init__(self, array: Any, axes: str = _AXES) -> None:
        self._array, self._axes = array, axes
        sizes = dict(zip(axes, array.shape, strict=True))
        self.rows, self.columns, self.bands = (int(sizes[axis]) for axis in _AXES)
        self.dtype = np.dtype(array.dtype).newbyteorder("=")

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        """Samples of a window, shape (rows, columns, bands).

        Parameters
        ----------
        first, last
            Its rows, `last` not among them.
        first_column, last_column
            Its columns, likewise; None for all that follow.
        """
        window = {"y": slice(first, last), "x": slice(first_column, last_column), "z": slice(None)}
        found = np.asarray(self._array[tuple(window[axis] for axis in self._axes)])
        if found.dtype.kind not in "iu":
            check_sample_type(found.dtype, "what the array gave")
        return found.transpose([self._axes.index(axis) for axis in _AXES])


class _Compressed:
    """A compressed cube as one to compress otherwise."""

    def __init__(self, cube: CompressedCube) -> None:
        self._kept = KeptParts(cube)
        self.rows, self.columns, self.bands = cube.shape
        self.dtype = cube.dtype

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        columns = self.columns if last_column is None else last_column
        return self._kept.read(Window(first, last, first_column, columns))


def as_cube(cube: Any, axes: str | None = None) -> CubeSource:
    """Whatever holds a cube, as what `compress_cube` reads.

    Parameters
    ----------
    cube
        An array of NumPy, dask or zarr; an xarray `DataArray`, or a `Dataset` with one cube; an image that
        SPy has opened and not loaded; a compressed cube that is open; the name of a file; or a source as it
        is.
    axes
        What the dimensions are, of y (rows), x (columns) and z (bands); otherwise by the names of the
        dimensions, and ``"yxz"`` where they have none.

    Raises
    ------
    InvalidInput
        If the samples are not integers, as after a conversion that was not asked for, or it is not clear what
        the dimensions are.
    FormatError
        If a file is not what it should be.
    """
    if isinstance(cube, str | os.PathLike):
        return open_cube(cube).source
    if isinstance(cube, CompressedCube):
        return _Compressed(cube)
    if hasattr(cube, "data_vars"):
        cube = _only_variable(cube)
    if axes is None and hasattr(cube, "dims"):
        axes = _axes_of(cube)
    if callable(getattr(cube, "open_memmap", None)):
        # An image of SPy: its own functions would divide by a scale factor.
        check_sample_type(np.dtype(cube.dtype), "image")
        mapped = cube.open_memmap(interleave="bip")
        if mapped is None:
            hint = "give the name of the file"
            raise InvalidInput("image", found="one that SPy cannot map", expected="a plain file", hint=hint)
        return ArrayCube(mapped)
    if isinstance(cube, np.ndarray):
        check_sample_type(cube.dtype, "cube")
        dimensions = axes or (_AXES if cube.ndim != 2 else "yx")
        if cube.ndim != len(dimensions):
            found = f"an array of shape {cube.shape}"
            raise InvalidInput("cube", found=found, expected="three dimensions: rows, columns, bands")
        return ArrayCube(cube_of(np.asarray(cube), dimensions))
    if hasattr(cube, "read") and hasattr(cube, "bands"):
        return cube  # type: ignore[no-any-return]
    if hasattr(cube, "shape") and hasattr(cube, "dtype"):
        check_sample_type(np.dtype(cube.dtype), "cube")
        if len(cube.shape) != len(axes or _AXES):
            found = f"an array of shape {tuple(cube.shape)}"
            raise InvalidInput("cube", found=found, expected="three dimensions: rows, columns, bands")
        return LazyArrayCube(cube, axes or _AXES)
    raise InvalidInput("cube", found=type(cube).__name__, expected="an array, an image or the name of a file")


def _only_variable(dataset: Any) -> Any:
    found = [name for name, one in dataset.data_vars.items() if one.ndim == 3]
    if len(found) != 1:
        told = f"variables {', '.join(map(str, found))}" if found else "no variable of three dimensions"
        hint = "choose one, such as dataset['cube']"
        raise InvalidInput("cube", found=told, expected="one cube", hint=hint)
    return dataset[found[0]]


def _axes_of(array: Any) -> str:
    found = ""
    for name in array.dims:
        found += next((axis for axis, names in _NAMES.items() if str(name).lower() in names), "?")
    if sorted(found) not in (["x", "y", "z"], ["x", "y"]):
        raise InvalidInput(
            "dimensions",
            found=", ".join(map(str, array.dims)),
            expected="names such as band, y and x",
            hint="say what they are with axes=, such as 'zyx'",
        )
    return found
