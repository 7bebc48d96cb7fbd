"""Open a cube, whatever file it stands in, and read any window of it.

Plain files are not mapped: pages of a mapped file count as memory of the process, which then seems to grow
with the cube, and a mapped file that another program shortens would end the process.
"""

from __future__ import annotations

import math
import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.compression import input_errors
from plait.formats.cubes.envi import data_of, header_of, read_envi_header
from plait.formats.cubes.layout import (
    ByteOrder,
    CubeLayout,
    as_rows,
    in_order,
    interleave_axes,
    npy_layout,
    with_byte_order,
)
from plait.formats.cubes.origin import MOST_PREFIX, CubeOrigin
from plait.types import Closing

#: Where the rows of a file do not lie together, so many bytes of them are read at a time.
_AHEAD = 1 << 26
_Window: TypeAlias = Callable[[int, int, int, int], NDArray[Any]]


class RowsAhead:
    """Reads rows in larger pieces than asked for, and keeps the last piece; several threads may read.

    Where the rows of a file do not lie together, few of them cost about as much as many. `read` gives a
    window: rows from and to, columns from and to, half-open.
    """

    def __init__(self, read: _Window, layout: CubeLayout) -> None:
        self._window = read
        self._rows, self._columns = layout.rows, layout.columns
        self._step = _AHEAD // (layout.columns * layout.bands * layout.dtype.itemsize)
        self._lock = threading.Lock()
        self._first = 0
        self._kept: NDArray[Any] | None = None

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Rows `first` to `last`, exclusive, of all columns."""
        if last - first >= self._step:
            return self._window(first, last, 0, self._columns)
        with self._lock:
            kept = self._kept
            if kept is None or not self._first <= first <= last <= self._first + len(kept):
                # Let go of the one before the next is there.
                self._kept = kept = None
                kept = self._window(first, min(first + self._step, self._rows), 0, self._columns)
                self._first, self._kept = first, kept
            return kept[first - self._first : last - self._first]


class FileCube(Closing):
    """A cube in a file, of which any window can be read, by several threads too; a context manager.

    With `ahead` more rows are read than are asked for, because they do not lie together. `notes` say what the
    file has that is not kept when it is compressed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        layout: CubeLayout,
        *,
        ahead: bool = False,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.path = os.fspath(path)
        self.layout = layout
        self.rows, self.columns, self.bands = layout.rows, layout.columns, layout.bands
        #: In the byte order of this machine.
        self.dtype = layout.dtype.newbyteorder("=")
        self.notes = notes
        self._ahead = RowsAhead(self._read, layout) if ahead else None

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        """Samples of a window as in the file, neither masked nor scaled, shape (rows, columns, bands).

        They have the byte order of this machine. Ends are exclusive, None reads to the end. FormatError if
        the file is damaged there or has become shorter; InvalidInput if the window is not within the cube.
        """
        last_column = self.columns if last_column is None else last_column
        for what, start, stop, size in (
            ("rows", first, last, self.rows),
            ("columns", first_column, last_column, self.columns),
        ):
            if not 0 <= start <= stop <= size:
                raise InvalidInput(what, found=f"{start} to {stop}", expected=f"within 0 to {size}")
        if first == last or first_column == last_column:
            return np.empty((last - first, last_column - first_column, self.bands), self.dtype)
        if self._ahead is not None and first_column == 0 and last_column == self.columns:
            return self._ahead.read(first, last)
        return self._read(first, last, first_column, last_column)

    @abstractmethod
    def _read(self, first: int, last: int, first_column: int, last_column: int) -> NDArray[Any]:
        """A window that is not empty, shape (rows, columns, bands)."""


#: A span with samples that are not asked for is read at once up to this size, and in pieces beyond.
_MOST_SPAN = 1 << 26


def check_file_size(path: str | os.PathLike[str], layout: CubeLayout, found: int | None = None) -> None:
    """FormatError, naming both sizes, if a file has more or fewer bytes than its layout needs.

    `found` is its size, if known.
    """
    size = os.stat(path).st_size if found is None else found
    if size == layout.file_bytes:
        return
    before = f" after {layout.offset:,} bytes of header" if layout.offset else ""
    more = size - layout.file_bytes
    told = f"{more:,} too many" if more > 0 else f"{-more:,} too few"
    raise FormatError(
        path,
        found=f"{size:,} bytes ({told})",
        expected=f"{layout.file_bytes:,} bytes for {layout.describe()}{before}",
        hint="the file is not complete, or its shape, type of samples or header offset is another",
    )


class CubeFile(FileCube):
    """A cube in a file of plain samples; FormatError if it cannot be read or its size does not match."""

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout) -> None:
        super().__init__(path, layout, ahead=layout.axes[0] != "y")
        with input_errors(path):
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by close()
        try:
            check_file_size(path, layout, os.fstat(self._file.fileno()).st_size)
        except BaseException:
            self._file.close()
            raise
        # A cube that is forgotten lets go of its file.
        weakref.finalize(self, self._file.close)

    def _read(self, first: int, last: int, first_column: int, last_column: int) -> NDArray[Any]:
        axes = self.layout.axes
        ranges = list(in_order(axes, range(first, last), range(first_column, last_column), range(self.bands)))
        lengths = [len(one) for one in ranges]
        if all(len(one) == size for one, size in zip(ranges[1:], self.layout.shape[1:], strict=True)):
            # All of it lies together: not copied.
            step = math.prod(lengths[1:])
            found = self._samples(ranges[0].start * step, lengths[0] * step)
            out = found.reshape(lengths).astype(self.dtype, copy=False)
        else:
            out = np.empty(lengths, self.dtype)
            self._fill(out, ranges, self.layout.shape, 0)
        return as_rows(out, axes)

    def _fill(self, out: NDArray[Any], ranges: list[range], shape: tuple[int, ...], first: int) -> None:
        """Fill an array from a sub-cube that starts `first` samples after the first one."""
        steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        start = sum(one.start * step for one, step in zip(ranges, steps, strict=True))
        last = sum((one.stop - 1) * step for one, step in zip(ranges, steps, strict=True))
        span = last + 1 - start
        exact = span == out.size
        if len(shape) == 1 or exact or (span * out.itemsize <= _MOST_SPAN and span <= 4 * out.size):
            found = self._samples(first + start, span)
            strides = [step * found.itemsize for step in steps]
            out[...] = np.lib.stride_tricks.as_strided(found, out.shape, strides, writeable=False)
            return
        for k, index in enumerate(ranges[0]):
            self._fill(out[k], ranges[1:], shape[1:], first + index * steps[0])

    def _samples(self, first: int, count: int) -> NDArray[Any]:
        kind = self.layout.dtype
        data = np.empty(count, kind)
        view = data.view(np.uint8).data
        position, done = self.layout.offset + first * kind.itemsize, 0
        while done < len(view):
            with input_errors(self.path):
                got = os.preadv(self._file.fileno(), [view[done : done + (1 << 30)]], position + done)
            if not got:
                found = f"an end after {position + done:,} bytes"
                raise FormatError(self.path, found=found, expected=f"{self.layout.file_bytes:,} bytes")
            done += got
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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
    return _with_metadata(source, path, "geotiff", source.metadata)


def _open_netcdf(path: Path, raw: RawShape, variable: str | None) -> InputCube:
    from plait.formats.cubes.netcdf import NetCdfCube

    source = NetCdfCube(path, variable, _only_interleave(raw, path, interleave=True))
    return _with_metadata(source, path, "netcdf", source.metadata)


def _with_metadata(source: FileCube, path: Path, form: str, metadata: dict[str, Any]) -> InputCube:
    origin = CubeOrigin(format=form, layout=source.layout, names={"data": path.name}, metadata=metadata)
    return InputCube(source, origin, (path,))
