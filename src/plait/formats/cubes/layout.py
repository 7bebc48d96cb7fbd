"""How the samples of a cube lie in a file, and what the header of a .npy file says of it.

Packages that only some formats need are loaded here, when they are.
"""

from __future__ import annotations

import importlib
import io
import os
import tokenize
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput, TargetUnavailable, whole_fields

Interleave = Literal["bsq", "bil", "bip"]
ByteOrder = Literal["little", "big"]

#: Axes of a file, slowest first, by the name that remote sensing has for it: y rows, x columns, z bands.
AXES: Final[dict[Interleave, str]] = {"bsq": "zyx", "bil": "yzx", "bip": "yxz"}
_MOST = 65536
_MOST_BYTES = 4


#: What to do where a library has made floating-point numbers of integers.
UNCONVERTED: Final = (
    "if they were integers in the file, open it without conversion: in SPy open_memmap() in the place of "
    "load(), in xarray mask_and_scale=False, in rioxarray masked=False"
)


def check_sample_type(kind: np.dtype[Any], what: str = "samples", *, standard: bool = False) -> None:
    """InvalidInput if samples can be no cube; it says what can be done.

    `what` holds the samples, for the message. With `standard` they have to be integers of 8, 16 or 32 bits,
    otherwise also those of 64 bits and floating-point numbers of 32 and 64.
    """
    expected = "integers of 8, 16 or 32 bits"
    if not standard:
        if kind.kind not in "iuf" or (kind.kind == "f" and kind.itemsize not in (4, 8)):
            expected = "integers, or floating-point numbers of 32 or 64 bits"
            raise InvalidInput(what, found=f"values of type {kind.name}", expected=expected)
        return
    if kind.kind == "f":
        raise InvalidInput(
            what,
            found=f"floating-point numbers ({kind.name})",
            expected=expected,
            hint=f"{UNCONVERTED}; otherwise scale and round them yourself, such as reflectance x 10,000",
        )
    if kind.kind in "iu" and kind.itemsize > _MOST_BYTES:
        hint = "if the values fit, convert them, such as with astype('int32')"
        raise InvalidInput(what, found=f"integers of {8 * kind.itemsize} bits", expected=expected, hint=hint)
    if kind.kind not in "iu":
        raise InvalidInput(what, found=f"values of type {kind.name}", expected=expected)


def interleave_axes(name: str) -> str:
    """The axes of an interleave: bsq, bil, bip, or the axes themselves, such as zxy; otherwise InvalidInput.

    >>> interleave_axes("BIL"), interleave_axes("zxy")
    ('yzx', 'zxy')
    """
    found = name.strip().lower()
    if found in AXES:
        return AXES[found]
    if sorted(found) == ["x", "y", "z"]:
        return found
    expected = "bsq, bil, bip, or y, x and z in the order of the axes, such as zxy"
    raise InvalidInput("interleave", found=repr(name), expected=expected)


def in_order(axes: str, y: Any, x: Any, z: Any = slice(None)) -> tuple[Any, ...]:
    """What belongs to rows, columns and bands, in the order of some axes."""
    of_axis = {"y": y, "x": x, "z": z}
    return tuple(of_axis[axis] for axis in axes)


def as_rows(samples: NDArray[Any], axes: str) -> NDArray[Any]:
    """Samples with some axes as (rows, columns, bands), not copied."""
    return samples.transpose([axes.index(axis) for axis in "yxz"])


def with_byte_order(kind: np.dtype[Any], order: ByteOrder) -> np.dtype[Any]:
    """A type of samples in a byte order; a single byte has none."""
    return kind.newbyteorder(order)


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeLayout:
    """How the samples of a cube lie in a file.

    `rows`, `columns` and `bands` are each from 1 to 65,536. `dtype` has the byte order of the file. `axes`
    are y (rows), x (columns) and z (bands), slowest first: ``"yxz"`` is BIP. `offset` is the bytes before the
    first sample. InvalidInput if a size is out of range, or there are no such samples.
    """

    rows: int
    columns: int
    bands: int
    dtype: np.dtype[Any]
    axes: str = "yxz"
    offset: int = 0

    def __post_init__(self) -> None:
        whole_fields(self, "rows", "columns", "bands", least=1, most=_MOST)
        check_sample_type(self.dtype)
        if sorted(self.axes) != ["x", "y", "z"]:
            raise InvalidInput("axes", found=repr(self.axes), expected="y, x and z in some order")
        whole_fields(self, "offset", most=(1 << 62) - 1)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Size in the order of the axes."""
        first, second, third = in_order(self.axes, self.rows, self.columns, self.bands)
        return first, second, third

    @property
    def samples(self) -> int:
        """Samples of the cube."""
        return self.rows * self.columns * self.bands

    @property
    def file_bytes(self) -> int:
        """Bytes of a file of this layout."""
        return self.offset + self.samples * self.dtype.itemsize

    @property
    def interleave(self) -> Interleave | None:
        """The name of the order of the axes, if it has one."""
        return next((name for name, axes in AXES.items() if axes == self.axes), None)

    @property
    def byte_order(self) -> ByteOrder:
        """Byte order of the samples."""
        return "big" if self.dtype.str.startswith(">") else "little"

    def describe(self) -> str:
        """The layout in words, for messages."""
        order = "" if self.dtype.itemsize == 1 else f"{self.byte_order}-endian "
        text = f"{self.rows} rows x {self.columns} columns x {self.bands} bands of {order}{self.dtype.name}"
        return f"{text}, {self.interleave or self.axes}"


def layout_in(path: str | os.PathLike[str], **fields: Any) -> CubeLayout:
    """The layout that a file states; FormatError, which names it, if there is no such layout."""
    try:
        return CubeLayout(**fields)
    except InvalidInput as error:
        raise FormatError(path, found=f"{error.what} {error.found}", expected=error.expected) from error


_DIMENSIONS = "yxz"
_MOST_NPY_BYTES = 1 << 11
#: What NumPy raises on headers that nobody wrote with it.
_WRONG = (
    ValueError, SyntaxError, TypeError, OverflowError, RecursionError, MemoryError, SystemError,
    tokenize.TokenError,
)  # fmt: skip


def _read_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    start, width = file.tell(), 2 if version == (1, 0) else 4
    size = int.from_bytes(file.read(width), "little")
    if size > _MOST_NPY_BYTES:
        raise ValueError(f"a header of {size:,} bytes")
    file.seek(start)
    # Versions 2 and 3 differ in the encoding of names of fields, of which samples have none.
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read(file)
    return shape, bool(fortran), kind


def npy_layout(path: str | os.PathLike[str], dimensions: str = _DIMENSIONS) -> CubeLayout:
    """How samples lie in a .npy file; an array of two dimensions is an image of one band.

    `dimensions` are those of the array in order: y rows, x columns, z bands. FormatError if it is no .npy
    file; InvalidInput for another number of dimensions, or samples that cannot be coded without loss.
    """
    try:
        with open(path, "rb") as file:
            shape, fortran, kind = _read_header(file)
            offset = file.tell()
    except OSError as error:
        raise FormatError(path, found=error.strerror or error, expected="a .npy file") from error
    except _WRONG as error:
        told = [line[:100] for line in str(error).splitlines()] or [type(error).__name__]
        raise FormatError(path, found=told[0], expected="the header of a .npy file") from error
    check_sample_type(kind, os.fspath(path))
    if len(shape) == 2 and len(dimensions) == 3:
        dimensions = dimensions.replace("z", "") + "z"
        # A last dimension of length one lies first in Fortran order, which is the same.
        shape = (*shape, 1)
    if len(shape) != len(dimensions):
        expected = "three dimensions: rows, columns and bands"
        raise InvalidInput(os.fspath(path), found=f"an array of shape {shape}", expected=expected)
    sizes = dict(zip(dimensions, shape, strict=True))
    return layout_in(
        path,
        rows=sizes["y"],
        columns=sizes["x"],
        bands=sizes["z"],
        dtype=kind,
        axes=dimensions[::-1] if fortran else dimensions,
        offset=offset,
    )


def npy_header(layout: CubeLayout) -> bytes:
    """The header of a .npy file with an array whose dimensions are the axes of a layout.

    The offset of the layout is ignored.
    """
    content = io.BytesIO()
    described = np.lib.format.dtype_to_descr(layout.dtype)
    facts = {"descr": described, "fortran_order": False, "shape": layout.shape}
    np.lib.format.write_array_header_1_0(content, facts)
    return content.getvalue()


def load_package(name: str, purpose: str, extra: str = "hsi") -> Any:
    """Import a package that an extra of plait brings; `purpose` is what needs it, for the message.

    TargetUnavailable if it cannot be imported; the message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise TargetUnavailable(
            name,
            reason=f"{purpose} needs it, and it cannot be imported ({error})",
            fix=f"install it: pip install 'plait[{extra}]'",
        ) from error
