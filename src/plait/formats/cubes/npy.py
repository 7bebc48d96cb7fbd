"""Cubes in .npy files: what the header says as a layout, and headers for new files."""

from __future__ import annotations

import io
import os
import tokenize
from typing import Any, BinaryIO

import numpy as np

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.layout import CubeLayout, check_sample_type, layout_in

_DIMENSIONS = "yxz"
_MOST_BYTES = 1 << 11
#: What NumPy raises on headers that nobody wrote with it.
_WRONG = (
    ValueError, SyntaxError, TypeError, OverflowError, RecursionError, MemoryError, tokenize.TokenError,
)  # fmt: skip


def _read_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    start, width = file.tell(), 2 if version == (1, 0) else 4
    size = int.from_bytes(file.read(width), "little")
    if size > _MOST_BYTES:
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
