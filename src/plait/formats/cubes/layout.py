"""How the samples of a cube lie in a file: size, type, order of the axes, bytes before the first sample."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from plait.errors import FormatError, InvalidInput

Interleave = Literal["bsq", "bil", "bip"]
ByteOrder = Literal["little", "big"]

#: Axes of a file, slowest first, by the name that remote sensing has for it: y rows, x columns, z bands.
AXES: Final[dict[Interleave, str]] = {"bsq": "zyx", "bil": "yzx", "bip": "yxz"}
_MOST = 65536
_MOST_BYTES = 4


def check_sample_type(kind: np.dtype[Any], what: str = "samples") -> None:
    """InvalidInput if samples are not integers of 8, 16 or 32 bits; it says what can be done.

    `what` holds the samples, for the message.
    """
    expected = "integers of 8, 16 or 32 bits"
    if kind.kind == "f":
        raise InvalidInput(
            what,
            found=f"floating-point numbers ({kind.name})",
            expected=expected,
            hint="if they were integers in the file, open it without conversion: in SPy open_memmap() in the "
            "place of load(), in xarray mask_and_scale=False, in rioxarray masked=False; otherwise scale and "
            "round them yourself, such as reflectance x 10,000 to int16",
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


def with_byte_order(kind: np.dtype[Any], order: ByteOrder) -> np.dtype[Any]:
    """A type of samples in a byte order; a single byte has none."""
    return kind.newbyteorder(order)


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeLayout:
    """How the samples of a cube lie in a file.

    `rows`, `columns` and `bands` are each from 1 to 65,536. `dtype` has the byte order of the file. `axes`
    are y (rows), x (columns) and z (bands), slowest first: ``"yxz"`` is BIP. `offset` is the bytes before the
    first sample. InvalidInput if a size is out of range, or that type cannot be coded without loss.
    """

    rows: int
    columns: int
    bands: int
    dtype: np.dtype[Any]
    axes: str = "yxz"
    offset: int = 0

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "bands"):
            if not 1 <= getattr(self, name) <= _MOST:
                found = str(getattr(self, name))
                raise InvalidInput(name, found=found, expected=f"a whole number from 1 to {_MOST:,}")
        check_sample_type(self.dtype)
        if sorted(self.axes) != ["x", "y", "z"]:
            raise InvalidInput("axes", found=repr(self.axes), expected="y, x and z in some order")
        if not 0 <= self.offset < 1 << 62:
            raise InvalidInput("offset", found=str(self.offset), expected="0 or more bytes, of a file")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Size in the order of the axes."""
        sizes = {"y": self.rows, "x": self.columns, "z": self.bands}
        return (sizes[self.axes[0]], sizes[self.axes[1]], sizes[self.axes[2]])

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
