"""Cubes in NetCDF files, through netCDF4: samples as they stand there, with attributes and coordinates."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.files import FileCube, LibraryWriter
from plait.formats.cubes.layout import (
    CubeLayout,
    as_rows,
    check_sample_type,
    in_order,
    layout_in,
    load_package,
)
from plait.formats.files import input_errors

_PURPOSE = "NetCDF"
#: Names by which the dimension of bands is known.
_BAND_NAMES: Final = ("band", "channel", "lambda", "spectral", "wavelength", "wl")
#: Variables beside the cube are kept up to this size.
_MOST_KEPT = 1 << 20
_FILTERS: Final = ("zlib", "shuffle", "complevel")


class NetCdfCube(FileCube):
    """A variable of a NetCDF file as a cube; several threads may read.

    `variable` may have groups before it (``group/name``); None is the only one with three dimensions. `axes`
    names its dimensions, of y, x and z; None goes by their names. FormatError if it cannot be read or is not
    there; InvalidInput if it is unclear which variable or dimension is meant, or samples cannot be coded
    without loss; TargetUnavailable without netCDF4.
    """

    def __init__(
        self, path: str | os.PathLike[str], variable: str | None = None, axes: str | None = None
    ) -> None:
        library = load_package("netCDF4", _PURPOSE)
        self.path = os.fspath(path)
        self._lock = threading.Lock()
        with input_errors(path, "a NetCDF file"):
            self._file = library.Dataset(self.path)
        try:
            # Masking and scaling would turn integers into floating-point numbers.
            self._file.set_auto_maskandscale(False)
            name = variable or self._only_cube()
            self._variable = self._find(name)
            kind = np.dtype(self._variable.dtype)
            check_sample_type(kind, f"{self.path}, variable {name}")
            axes = axes or self._axes(name)
            sizes = dict(zip(axes, self._variable.shape, strict=True))
            layout = layout_in(
                self.path, rows=sizes["y"], columns=sizes["x"], bands=sizes["z"], dtype=kind, axes=axes
            )
            self.metadata, notes = _metadata(self._file, self._variable, name)
            super().__init__(path, layout, ahead=True, notes=notes)
        except BaseException:
            self._file.close()
            raise

    def _only_cube(self) -> str:
        found = [
            name
            for name, variable in _walk(self._file)
            if len(variable.shape) == 3 and np.dtype(variable.dtype).kind in "iuf"
        ]
        if len(found) != 1:
            told = f"variables {', '.join(found)}" if found else "no variable of three dimensions"
            raise InvalidInput(self.path, found=told, expected="one cube", hint="name it with variable=")
        return found[0]

    def _find(self, name: str) -> Any:
        found = dict(_walk(self._file)).get(name.strip("/"))
        if found is None or len(found.shape) != 3:
            cubes = [key for key, one in _walk(self._file) if len(one.shape) == 3]
            told = f"no variable {name!r}" if found is None else f"{len(found.shape)} dimensions of {name!r}"
            raise FormatError(
                self.path, found=told, expected=f"one of {', '.join(cubes) or 'three dimensions'}"
            )
        return found

    def _axes(self, name: str) -> str:
        names = [one.lower() for one in self._variable.dimensions]
        found = [k for k, one in enumerate(names) if one == "z" or any(word in one for word in _BAND_NAMES)]
        if len(found) != 1:
            raise InvalidInput(
                f"{self.path}, variable {name}",
                found=f"dimensions {', '.join(self._variable.dimensions)}",
                expected="one that is called band or wavelength",
                hint="say what they are with interleave=, such as zyx for bands, rows, columns",
            )
        left = "yx"
        if names[found[0] - 2] in ("x", "lon", "longitude", "samples", "columns", "crosstrack"):
            left = "xy"
        return left[: found[0]] + "z" + left[found[0] :]

    def _read(self, first: int, last: int, first_column: int, last_column: int) -> NDArray[Any]:
        window = in_order(self.layout.axes, slice(first, last), slice(first_column, last_column))
        try:
            with self._lock:
                found = np.asarray(self._variable[window])
        except (OSError, RuntimeError) as error:
            raise FormatError(self.path, found=error, expected=f"rows {first} to {last}") from error
        return as_rows(found.astype(self.dtype, copy=False), self.layout.axes)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _walk(group: Any, before: str = "") -> list[tuple[str, Any]]:
    found = [(f"{before}{name}", one) for name, one in group.variables.items()]
    for name, inner in group.groups.items():
        found += _walk(inner, f"{before}{name}/")
    return found


def _groups(group: Any, path: str = "") -> dict[str, Any]:
    """Dimensions and attributes of a group and those in it, by path; those of the file by an empty one."""
    sizes = {name: one.size for name, one in group.dimensions.items()}
    found = {path: {"dimensions": sizes, "attributes": _attributes(group) if path else {}}}
    for name, inner in group.groups.items():
        found |= _groups(inner, f"{path}/{name}".strip("/"))
    return found


def _metadata(file: Any, cube: Any, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    others, left_out = {}, []
    for key, variable in _walk(file):
        if key == name.strip("/"):
            continue
        kind = np.dtype(variable.dtype) if variable.dtype is not str else None
        if kind is None or kind.kind not in "iufS" or variable.size * kind.itemsize > _MOST_KEPT:
            left_out.append(key)
            continue
        others[key] = {
            "dimensions": list(variable.dimensions),
            "attributes": _attributes(variable),
            "values": _packed(np.asarray(variable[...])),
            "shape": list(variable.shape),
        }
    found = {
        "variable": name.strip("/"),
        "dimensions": list(cube.dimensions),
        "attributes": _attributes(cube),
        "global": _attributes(file),
        "groups": _groups(file),
        "filters": {key: value for key, value in (cube.filters() or {}).items() if key in _FILTERS},
        "others": others,
    }
    return found, tuple(f"its variable {key} is not kept" for key in left_out)


def _packed(values: NDArray[Any]) -> dict[str, Any]:
    plain = np.ascontiguousarray(values)
    return {"type": plain.dtype.str, "bytes": base64.b64encode(plain.tobytes()).decode("ascii")}


def _unpacked(found: dict[str, Any]) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(found["bytes"]), np.dtype(found["type"]))


def _attributes(thing: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in thing.ncattrs():
        value = thing.getncattr(name)
        if isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value)):
            found[name] = value
        else:
            found[name] = {**_packed(np.asarray(value)), "scalar": np.ndim(value) == 0}
    return found


def _attribute(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found = _unpacked(value)
    return found[0] if value["scalar"] else found


class NetCdfWriter(LibraryWriter):
    """A NetCDF file that appears under its name when complete; rows come in order.

    `metadata` is that of a `NetCdfCube`, or empty. InvalidInput or FormatError if it cannot be written,
    TargetUnavailable without netCDF4.
    """

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout, metadata: dict[str, Any]) -> None:
        library = load_package("netCDF4", _PURPOSE)
        super().__init__(path, layout)
        with input_errors(path, "a NetCDF file that can be written"):
            self._file = library.Dataset(os.fspath(self._output.hidden), "w")
        self._begin(_PURPOSE, metadata)

    def _describe(self, found: dict[str, Any]) -> None:
        file = self._file
        names = {"y": "y", "x": "x", "z": "band"}
        dimensions = found.get("dimensions", [names[axis] for axis in self.layout.axes])
        for path, told in found.get("groups", {}).items():
            group = file.createGroup(path) if path else file
            for name, size in told["dimensions"].items():
                group.createDimension(name, size)
            group.setncatts({key: _attribute(value) for key, value in told["attributes"].items()})
        variable_name = found.get("variable", "cube")
        self._make_room(variable_name, dimensions, self.layout.shape)
        file.setncatts({key: _attribute(value) for key, value in found.get("global", {}).items()})
        for name, one in found.get("others", {}).items():
            self._make_room(name, one["dimensions"], one["shape"])
            values = _unpacked(one["values"])
            variable = self._create(name, values.dtype, one["dimensions"], one["attributes"])
            variable[...] = values.reshape(one["shape"])
        self._variable = self._create(
            variable_name,
            self.dtype,
            dimensions,
            found.get("attributes", {}),
            **{name: found["filters"][name] for name in _FILTERS if name in found.get("filters", {})},
        )

    def _make_room(self, name: str, dimensions: list[str], shape: Sequence[int]) -> None:
        """Dimensions of a variable, which its group or one around it may have already."""
        group = self._file.createGroup(path) if (path := name.rpartition("/")[0]) else self._file
        for dimension, size in zip(dimensions, shape, strict=True):
            around = group
            while around is not None and dimension not in around.dimensions:
                around = around.parent
            if around is None:
                group.createDimension(dimension, size)

    def _create(
        self,
        name: str,
        kind: np.dtype[Any],
        dimensions: list[str],
        attributes: dict[str, Any],
        **options: Any,
    ) -> Any:
        plain = {key: _attribute(value) for key, value in attributes.items()}
        fill = plain.pop("_FillValue", None)
        variable = self._file.createVariable(name, kind, tuple(dimensions), fill_value=fill, **options)
        variable.set_auto_maskandscale(False)
        variable.setncatts(plain)
        return variable

    def _write(self, row: int, rows: NDArray[Any]) -> None:
        values = rows.transpose(in_order(self.layout.axes, 0, 1, 2))
        try:
            self._variable[in_order(self.layout.axes, slice(row, row + len(rows)), slice(None))] = values
        except (OSError, RuntimeError) as error:
            raise FormatError(self.path, found=error, expected="room for the output") from error
