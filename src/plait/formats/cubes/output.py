"""Write a cube row by row, in any format and interleave."""

from __future__ import annotations

import math
import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.atomic import (
    AtomicFile,
    HiddenOutput,
    bad_output,
    check_not_input,
    check_output,
    description_errors,
    output_errors,
)
from plait.formats.cubes.envi import DATA_SUFFIXES, header_name, new_envi_header
from plait.formats.cubes.input import GEOTIFF_SUFFIXES, NETCDF_SUFFIXES
from plait.formats.cubes.layout import (
    AXES,
    ByteOrder,
    CubeLayout,
    interleave_axes,
    npy_header,
    with_byte_order,
)
from plait.formats.cubes.origin import CubeOrigin
from plait.types import WholeOrNot


class RowWriter(WholeOrNot):
    """A file that appears under its name when complete; rows come in order, and are written `step` at a time.

    `layout` is that of samples in
    the file; `dtype` is their type in the byte order of this machine.
    """

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout, step: int = 1) -> None:
        self.path = os.fspath(path)
        self.layout = layout
        self.dtype = layout.dtype.newbyteorder("=")
        self._step = max(1, step)
        self._row = 0
        self._waiting: list[NDArray[Any]] = []

    def write_rows(self, rows: NDArray[Any]) -> None:
        """Append rows of integers, shape (rows, columns, bands); they are copied.

        InvalidInput if the shape is another, there are too many rows, or a sample does not fit the type of
        the file; FormatError if the file cannot be written.
        """
        layout = self.layout
        if rows.ndim != 3 or rows.shape[1:] != (layout.columns, layout.bands):
            expected = f"(rows, {layout.columns}, {layout.bands})"
            raise InvalidInput("shape of the rows", found=str(rows.shape), expected=expected)
        known = self._row + self._held() + len(rows)
        if known > layout.rows:
            raise InvalidInput("rows", found=f"{known}", expected=f"{layout.rows}")
        _check_range(rows, layout.dtype)
        # A copy, because who gives them may use the array again.
        self._waiting.append(rows.astype(self.dtype))
        self._put(self._held() // self._step * self._step)

    def _held(self) -> int:
        return sum(map(len, self._waiting))

    def _put(self, count: int) -> None:
        if not count:
            return
        rows = np.concatenate(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
        self._write(self._row, rows[:count])
        self._row += count
        self._waiting = [rows[count:]]

    def close(self) -> None:
        """Make the file appear under its name.

        InvalidInput if rows are missing, FormatError if it cannot be written; the file is discarded then.
        """
        try:
            self._put(self._held())
            if self._row != self.layout.rows:
                raise InvalidInput("rows", found=f"{self._row}", expected=f"{self.layout.rows}")
            self._finish()
        except BaseException:
            self.discard()
            raise

    @abstractmethod
    def _write(self, row: int, rows: NDArray[Any]) -> None:
        """Write rows from row number `row` on."""

    @abstractmethod
    def _finish(self) -> None:
        """Make the complete file appear."""


class LibraryWriter(RowWriter):
    """A file that a library writes under a hidden name; `_file` is what it has open."""

    _file: Any

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout) -> None:
        super().__init__(path, layout)
        self._output = HiddenOutput(path)

    def _begin(self, kind: str, metadata: dict[str, Any], *errors: type[Exception]) -> None:
        """Describe the cube; `kind` names the format, `errors` are what the library raises."""
        try:
            with description_errors(self.path, kind, *errors):
                self._describe(metadata)
        except BaseException:
            self.discard()
            raise

    @abstractmethod
    def _describe(self, found: dict[str, Any]) -> None:
        """Write what the metadata say, and make room for the samples."""

    def _finish(self) -> None:
        self._file.close()
        self._output.close()

    def discard(self) -> None:
        """Remove the unfinished file."""
        # Closed already, some libraries complain.
        with suppress(RuntimeError):
            self._file.close()
        self._output.discard()


def _check_range(rows: NDArray[Any], kind: np.dtype[Any]) -> None:
    """Refuse samples that a type cannot hold, which a conversion would change without a word."""
    if rows.dtype.kind not in "iu":
        raise InvalidInput("rows", found=f"samples of type {rows.dtype}", expected="integers")
    if not rows.size or np.can_cast(rows.dtype, kind):
        return
    limits = np.iinfo(kind)
    for value in (int(rows.min()), int(rows.max())):
        if not limits.min <= value <= limits.max:
            expected = f"{limits.min} to {limits.max}, as {kind.name} holds"
            raise InvalidInput("sample", found=str(value), expected=expected)


#: Where the rows of a file do not lie together, so many bytes of them are written at a time.
_AHEAD = 1 << 26
_FILE_AXES = "yxz"


class CubeFileWriter(RowWriter):
    """A file of plain samples that appears under its name when complete; rows come in order.

    `prefix` is the bytes before
    the first sample, as many as the layout says. InvalidInput or FormatError if the file cannot be written,
    see `plait.formats.atomic.AtomicFile`.
    """

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout, prefix: bytes = b"") -> None:
        if len(prefix) != layout.offset:
            expected = f"{layout.offset:,} bytes, the offset of the layout"
            raise InvalidInput("prefix", found=f"{len(prefix):,} bytes", expected=expected)
        together = layout.axes[0] == "y"
        row_bytes = layout.columns * layout.bands * layout.dtype.itemsize
        super().__init__(path, layout, 1 if together else _AHEAD // row_bytes)
        self._file = AtomicFile(path)
        self._descriptor = self._file.stream.fileno()
        try:
            with output_errors(path):
                self._file.stream.truncate(layout.file_bytes)
                self._put_bytes(prefix, 0)
        except BaseException:
            self._file.discard()
            raise

    def _put_bytes(self, data: bytes | memoryview, position: int) -> None:
        view = memoryview(data).cast("B")
        while view:
            done = os.pwrite(self._descriptor, view[: 1 << 30], position)
            view, position = view[done:], position + done

    def _write(self, row: int, rows: NDArray[Any]) -> None:
        order = [_FILE_AXES.index(axis) for axis in self.layout.axes]
        data = np.ascontiguousarray(rows.transpose(order), self.layout.dtype)
        with output_errors(self.path):
            self._put_pieces(data, self.layout.shape, row, 0)

    def _put_pieces(self, data: NDArray[Any], shape: tuple[int, ...], row: int, first: int) -> None:
        """Write what lies together in the file at once: all below the axis of the rows."""
        step = math.prod(shape[1:])
        if len(shape) + self.layout.axes.index("y") == 3:
            position = self.layout.offset + (first + row * step) * data.itemsize
            self._put_bytes(data.reshape(-1).view(np.uint8).data, position)
            return
        for k in range(shape[0]):
            self._put_pieces(data[k], shape[1:], row, first + k * step)

    def _finish(self) -> None:
        self._file.close()

    def discard(self) -> None:
        """Remove the unfinished file."""
        self._file.discard()


CubeFormat = Literal["envi", "npy", "raw", "geotiff", "netcdf"]
_SUFFIXES: Final[dict[str, CubeFormat]] = {
    ".npy": "npy",
    ".hdr": "envi",
    **dict.fromkeys(GEOTIFF_SUFFIXES, "geotiff"),
    **dict.fromkeys(NETCDF_SUFFIXES, "netcdf"),
}


#: Names that are devices in Windows, whatever their suffix.
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])\s*(\.|$)", re.IGNORECASE)


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
    inputs: Iterable[str | os.PathLike[str]] = (),
    overwrite: bool = False,
) -> RowWriter:
    """Begin to write a cube of shape (rows, columns, bands); see `plait.hyperspectral.decompress_file`.

    In the format, interleave and byte order of its `origin` it is written as it was; without an origin
    samples are of type `dtype`. `inputs` are never written over. InvalidInput for the origin of another cube
    or a bad name in it, or an output that exists or cannot be written so; FormatError if writing fails;
    TargetUnavailable if a package is missing.
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
    if form != "envi":
        _check_free([out], inputs, overwrite)
    if form == "npy":
        return _npy(out, layout, kept, changed, interleave)
    if form == "geotiff":
        from plait.formats.cubes.geotiff import GeoTiffWriter

        return GeoTiffWriter(out, layout, {} if kept is None else kept.metadata)
    if form == "netcdf":
        from plait.formats.cubes.netcdf import NetCdfWriter

        return NetCdfWriter(out, layout, {} if kept is None else kept.metadata)
    prefix = b"" if kept is None else kept.prefix
    layout = replace(layout, offset=len(prefix))
    if form == "raw":
        return CubeFileWriter(out, layout, prefix)
    if layout.axes not in AXES.values():
        raise InvalidInput("interleave", found=repr(layout.axes), expected="bsq, bil or bip for ENVI")
    data, header = _envi_names(out, {} if kept is None else kept.names)
    _check_free([data, header], inputs, overwrite)
    text = new_envi_header(layout, kept.header if kept is not None and kept.header else None)
    return _EnviWriter(data, header, layout, text, prefix)


def _check_free(paths: list[Path], inputs: Iterable[str | os.PathLike[str]], overwrite: bool) -> None:
    for path in paths:
        check_not_input(path, inputs)
        if not overwrite and os.path.lexists(path):
            hint = "with --force (overwrite=True in Python) it is replaced"
            raise bad_output(path, ", which is there already", "a name that is free", hint)


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
    names = list(origin.names.values())
    for name in names:
        if not _is_plain(name) or names.count(name) > 1:
            raise InvalidInput(
                "output",
                found=f"the folder {str(path)!r}, and {name!r} as the name of a file in it",
                expected="names that are not hidden, have no folders, are no devices, and differ",
                hint="the compressed cube asks for it: name the output yourself",
            )
    return path / origin.names["data"]


def _is_plain(name: str) -> bool:
    """Whether a name that a stranger chose is that of an ordinary file in whatever folder, on any system."""
    known = name.isprintable() and not {*'/\\:*?"<>|'} & {*name} and len(name.encode()) < 200
    return known and name[:1] not in ("", ".") and name[-1] not in " ." and not _DEVICE.match(name)


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


def _envi_names(out: Path, names: Mapping[str, str]) -> tuple[Path, Path]:
    """Data file and header for an output."""
    known = {key: name for key, name in names.items() if _is_plain(name)}
    if out.suffix.lower() == ".hdr":
        data = out.with_suffix("")
        if data.suffix.lower() not in DATA_SUFFIXES[:-1]:
            data = out.with_suffix(Path(known.get("data", "scene.img")).suffix)
        return data, out
    if out.name == known.get("data") and known.get("header", out.name) != out.name:
        return out, out.with_name(known["header"])
    return out, header_name(out)
