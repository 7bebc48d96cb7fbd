"""Cubes that other libraries hold, and files of cubes, as one thing to compress."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.cubes.files import open_cube
from plait.formats.cubes.layout import as_rows, check_sample_type, in_order
from plait.hyperspectral.chunks import cube_of
from plait.hyperspectral.containers import Window
from plait.hyperspectral.cubes import ArrayCube, CubeSource
from plait.hyperspectral.streams import CompressedCube

#: Bytes of samples that are kept.
_MOST_BYTES = 1 << 27


class KeptParts:
    """Reads windows of a compressed cube through a cache of decoded parts; several threads may read.

    The cache holds at most `most_bytes` of samples. A larger part is decoded row by row from its start: once
    if rows are asked for in order.
    """

    def __init__(self, cube: CompressedCube, most_bytes: int = _MOST_BYTES) -> None:
        self._cube = cube
        self.rows, self.columns, self.bands = cube.shape
        self.dtype = cube.dtype
        self._most = most_bytes
        self._lock = threading.Lock()
        self._locks = [threading.Lock() for _ in cube.windows]
        self._kept: OrderedDict[int, NDArray[Any]] = OrderedDict()
        self._held = 0
        self._under_way: tuple[int, int, NDArray[Any], Iterator[NDArray[Any]]] | None = None

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        """Samples of a window that lies within the cube; see `CubeSource.read`."""
        window = Window(first, last, first_column, self.columns if last_column is None else last_column)
        found = np.empty((last - first, window.last_column - first_column, self.bands), self.dtype)
        for part, own in enumerate(self._cube.windows):
            common = own.meets(window)
            if common is None:
                continue
            target = found[common.within(window)]
            if own.pixels * found.shape[2] * found.itemsize > self._most:
                self._in_order(part, common, target)
            else:
                target[...] = self._whole(part)[common.within(own)]
        return found

    def _whole(self, part: int) -> NDArray[Any]:
        # One decodes a part, and others who want it wait for that.
        with self._locks[part]:
            with self._lock:
                if part in self._kept:
                    self._kept.move_to_end(part)
                    return self._kept[part]
            samples = self._cube.read(*self._cube.windows[part])
            with self._lock:
                self._kept[part] = samples
                self._held += samples.nbytes
                while self._held > self._most and len(self._kept) > 1:
                    self._held -= self._kept.popitem(last=False)[1].nbytes
            return samples

    def _in_order(self, part: int, common: Window, target: NDArray[Any]) -> None:
        """Fill `target` with rows of a part that is too large to be kept."""
        own = self._cube.windows[part]
        _, columns = common.within(own)
        with self._lock:
            state = self._under_way
            if state is None or state[0] != part or state[1] > common.first_row:
                rows = self._cube.part_rows(part, own.last_row)
                state = (part, own.first_row, next(rows), rows)
            _, row, samples, rows = state
            # What fails on the way cannot be gone on with.
            self._under_way = None
            while True:
                low, high = max(row, common.first_row), min(row + len(samples), common.last_row)
                if low < high:
                    to = slice(low - common.first_row, high - common.first_row)
                    target[to] = samples[low - row : high - row, columns]
                if row + len(samples) >= common.last_row:
                    break
                row, samples = row + len(samples), next(rows)
            self._under_way = (part, row, samples, rows)

    def close(self) -> None:
        """Let go of what is kept."""
        with self._lock:
            if self._under_way is not None:
                self._under_way[3].close()  # type: ignore[attr-defined]  # a generator
            self._under_way = None
            self._kept.clear()
            self._held = 0


_AXES = "yxz"
#: What dimensions of xarray are called.
_NAMES = {
    "z": ["band", "bands", "wavelength", "wavelengths", "channel", "spectral", "z", "wl"],
    "y": ["y", "lat", "latitude", "row", "rows", "line", "lines", "along_track", "northing", "downtrack"],
    "x": [
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
    ],
}


class LazyArrayCube:
    """An array that is read when it is indexed, such as one of dask or xarray, as a cube.

    `axes` names its dimensions, of y, x and z; `numpy.asarray` has to accept what indexing gives.
    """

    def __init__(self, array: Any, axes: str = _AXES) -> None:
        self._array, self._axes = array, axes
        sizes = dict(zip(axes, array.shape, strict=True))
        self.rows, self.columns, self.bands = (int(sizes[axis]) for axis in _AXES)
        self.dtype = np.dtype(array.dtype).newbyteorder("=")

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        """Samples of a window, shape (rows, columns, bands); ends are exclusive, None reads to the end."""
        window = in_order(self._axes, slice(first, last), slice(first_column, last_column))
        found = np.asarray(self._array[window])
        if found.dtype.kind != self.dtype.kind:
            check_sample_type(found.dtype, "what the array gave", standard=True)
        return as_rows(found, self._axes)


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
        If the samples are of a type that no cube has, or it is not clear what the dimensions are.
    FormatError
        If a file is not what it should be.
    """
    if isinstance(cube, str | os.PathLike):
        return open_cube(cube).source
    if isinstance(cube, CompressedCube):
        return KeptParts(cube)
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
