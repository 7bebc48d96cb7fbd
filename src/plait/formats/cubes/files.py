"""Open a cube, whatever file it stands in, and read any window of it; write one row by row, in any format.

Plain files are not mapped: pages of a mapped file count as memory of the process, which then seems to grow
with the cube, and a mapped file that another program shortens would end the process.
"""

from __future__ import annotations

import math
import os
import re
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import (
    AtomicFile,
    HiddenOutput,
    WholeOrNot,
    bad_output,
    check_not_input,
    check_output,
    description_errors,
    output_errors,
)
from plait.formats.cubes.envi import (
    DATA_SUFFIXES,
    data_of,
    header_name,
    header_of,
    new_envi_header,
    read_envi_header,
)
from plait.formats.cubes.layout import (
    AXES,
    ByteOrder,
    CubeLayout,
    as_rows,
    in_order,
    interleave_axes,
    npy_header,
    npy_layout,
    with_byte_order,
)
from plait.formats.cubes.origin import MOST_PREFIX, CubeOrigin
from plait.formats.files import Closing, input_errors

#: Where the rows of a file do not lie together, so many bytes of them are read or written at a time.
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
    """A cube in a file of plain samples; FormatError if it cannot be read or its size does not match.

    With `longer` there may be more bytes behind the samples, of which a note tells.
    """

    def __init__(self, path: str | os.PathLike[str], layout: CubeLayout, *, longer: bool = False) -> None:
        super().__init__(path, layout, ahead=layout.axes[0] != "y")
        with input_errors(path):
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by close()
        try:
            size = os.fstat(self._file.fileno()).st_size
            if longer and size > layout.file_bytes:
                more = f"{size - layout.file_bytes:,} bytes behind the samples that its header tells of"
                self.notes = (f"{more} are not kept: it may be of more lines or bands",)
            else:
                check_file_size(path, layout, size)
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
    source = CubeFile(path, layout, longer=form == "envi")
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
        """Append rows, shape (rows, columns, bands); they are copied.

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
    if not rows.size or np.can_cast(rows.dtype, kind):
        return
    if {rows.dtype.kind, kind.kind} - {*"iu"}:
        raise InvalidInput("rows", found=f"samples of type {rows.dtype}", expected=f"those of {kind.name}")
    limits = np.iinfo(kind)
    for value in (int(rows.min()), int(rows.max())):
        if not limits.min <= value <= limits.max:
            expected = f"{limits.min} to {limits.max}, as {kind.name} holds"
            raise InvalidInput("sample", found=str(value), expected=expected)


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
        """Write what lies together in the file at once: all below the axis of the rows, or all there is."""
        step = math.prod(shape[1:])
        if len(shape) + self.layout.axes.index("y") == 3 or data.shape == self.layout.shape:
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
    out = _named(os.fspath(path), origin)
    usual: CubeFormat = "raw" if origin is not None and origin.format == "raw" else "envi"
    form = format or _SUFFIXES.get(out.suffix.lower()) or usual
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


def _named(given: str, origin: CubeOrigin | None) -> Path:
    path = Path(given)
    if not path.is_dir() and not given.endswith("/"):
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
    with output_errors(path):
        path.mkdir(exist_ok=True)
    return path / origin.names["data"]


def _is_plain(name: str) -> bool:
    """Whether a name that a stranger chose is that of an ordinary file in whatever folder, on any system."""
    known = name.isprintable() and not {*'/\\:*?"<>|'} & {*name} and len(name.encode()) < 200
    return known and name[:1] not in ("", ".") and name[-1] not in " ." and not _DEVICE.match(name)


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
