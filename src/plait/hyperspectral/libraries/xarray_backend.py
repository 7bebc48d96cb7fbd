"""xarray reads compressed cubes, and decodes what is used: ``open_dataset("scene.c123", engine="plait")``."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from plait.hyperspectral.cubes import CubeFacts

if TYPE_CHECKING:
    from plait.hyperspectral.cube_objects import KeptParts
    from plait.hyperspectral.streams import CompressedCube

_DIMENSIONS = ("band", "y", "x")
_SUFFIX = ".c123"


class LazyCube(BackendArray):  # type: ignore[misc]  # xarray is not followed
    """A compressed cube of which only the rows and columns that are asked for are decoded.

    `shape` is (bands, rows, columns); `dtype` is that of the file it came from, if known.
    """

    def __init__(self, path: str, index: str | None = None) -> None:
        self._path, self._index = path, index
        self._lock = threading.Lock()
        self._open: CompressedCube | None = None
        self._kept: KeptParts | None = None
        cube = self.cube()
        rows, columns, bands = cube.shape
        self.shape = (bands, rows, columns)
        origin = cube.origin
        self.dtype = np.dtype(cube.dtype if origin is None else origin.layout.dtype.newbyteorder("="))

    def cube(self) -> CompressedCube:
        """The cube, opened again in another process."""
        # The codec is loaded when it is used: xarray loads all readers before it knows which it needs.
        from plait.hyperspectral.cube_objects import KeptParts
        from plait.hyperspectral.streams import open_stream

        with self._lock:
            if self._open is None:
                self._open = open_stream(self._path, index=self._index)
                self._kept = KeptParts(self._open)
            return self._open

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._open is not None and self._kept is not None:
                self._kept.close()
                self._open.close()
            self._open = self._kept = None

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in self.__dict__.items() if name not in ("_lock", "_open", "_kept")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._open, self._kept = threading.Lock(), None, None

    def __getitem__(self, key: Any) -> NDArray[Any]:
        found: NDArray[Any] = indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )
        return found

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        from plait.hyperspectral.containers import span

        bands, rows, columns = key
        first, last, row_key = span(rows, self.shape[1])
        left, right, column_key = span(columns, self.shape[2])
        if first >= last or left >= right:
            window = np.empty((last - first, right - left, self.shape[0]), self.dtype)
        else:
            self.cube()
            assert self._kept is not None
            window = self._kept.read(first, last, left, right).astype(self.dtype, copy=False)
        # One at a time, because arrays of several axes would be taken in pairs.
        found = window.transpose(2, 0, 1)[:, :, column_key][:, row_key][bands]
        # Of a single sample, `ascontiguousarray` would make a row.
        return np.asarray(found, order="C")


class CubeBackend(BackendEntrypoint):  # type: ignore[misc]
    """The engine ``plait`` of xarray.

    Samples are never masked or scaled: they are the integers of the file.
    """

    description: ClassVar[str] = "CCSDS 123 compressed hyperspectral cubes (.c123)"
    open_dataset_parameters: ClassVar[tuple[str, ...]] = ("filename_or_obj", "drop_variables", "index")

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        index: str | None = None,
    ) -> xr.Dataset:
        """Open a compressed cube, with the side index `index`, as a dataset.

        Its variable ``cube`` (band, y, x) has wavelengths and what else the header says as coordinates and
        attributes. Names in `drop_variables` are left out.
        """
        path = os.fspath(filename_or_obj)
        lazy = LazyCube(path, None if index is None else os.fspath(index))
        cube = lazy.cube()
        facts = CubeFacts.of(cube.origin)
        block, limits = cube.windows[0], cube.parameters.near_lossless
        variable = xr.Variable(
            _DIMENSIONS,
            indexing.LazilyIndexedArray(lazy),
            attrs=facts.attributes if limits is None else {**facts.attributes, "near_lossless": limits},
            encoding={
                # Those of the first part, which all but the last ones have.
                "preferred_chunks": {"band": cube.shape[2], "y": block.last_row, "x": block.last_column},
                "source": path,
            },
        )
        coordinates = {
            name: ((axis,), values) for name, (axis, values) in facts.coordinates(cube.shape).items()
        }
        found = xr.Dataset({"cube": variable}, coords=coordinates)
        dropped = [drop_variables] if isinstance(drop_variables, str) else list(drop_variables or ())
        found = found.drop_vars(dropped, errors="ignore")
        found.set_close(lazy.close)
        return found

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether this is the name of a compressed cube, which ends in ``.c123``."""
        return isinstance(filename_or_obj, str | os.PathLike) and Path(filename_or_obj).suffix == _SUFFIX
