"""CCSDS 123 as a filter of HDF5, for h5py and what is made with it (h5netcdf, xarray through that).

h5py takes filters at run time, by the address of a structure of the HDF5 library, whose function is a Python
one here. Other programs would need the codec as a C library, which plait has not: its machine code is made
by Numba, for processes of Python.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from plait.errors import FormatError
from plait.formats.cubes.layout import load_package
from plait.hyperspectral.chunks import ChunkCoding
from plait.hyperspectral.presets import AUTO, PRESETS
from plait.hyperspectral.streams import open_stream

#: The number of the filter, of those that HDF5 leaves to private use.
FILTER_ID: Final = 33_123
_VERSION: Final = 1
_PRESETS: Final = (*PRESETS, AUTO)
_REVERSE: Final = 0x0100
_NAME: Final = b"plait.ccsds123"
_LOG: Final = logging.getLogger(__name__)
_FUNCTION: Final = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_uint,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_void_p),
)


class _Class(ctypes.Structure):
    """``H5Z_class2_t`` of the HDF5 library."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("id", ctypes.c_int),
        ("encoder_present", ctypes.c_uint),
        ("decoder_present", ctypes.c_uint),
        ("name", ctypes.c_char_p),
        ("can_apply", ctypes.c_void_p),
        ("set_local", ctypes.c_void_p),
        ("filter", _FUNCTION),
    )


def filter_options(
    chunks: Sequence[int], dtype: Any, *, axes: str = "yxz", preset: str = "default"
) -> dict[str, Any]:
    """What h5py's ``create_dataset`` has to be given so that a dataset is compressed; registers the filter.

    Parameters
    ----------
    chunks
        Shape of the chunks. Each is a cube of its own: all bands in one compress best.
    dtype
        Type of the samples: integers of 8, 16 or 32 bits, in either byte order.
    axes
        What the last dimensions are, of y (rows), x (columns) and z (bands); chunks have length one along
        those before.
    preset
        ``"fast"``, ``"default"``, ``"best"`` or ``"auto"``.

    Returns
    -------
    dict
        ``chunks``, ``compression`` and ``compression_opts``.

    Raises
    ------
    InvalidInput
        If such chunks cannot be compressed.
    TargetUnavailable
        Without h5py.
    """
    register_filter()
    kind = np.dtype(dtype)
    ChunkCoding(axes=axes, preset=preset).check(tuple(chunks), kind)
    numbers = (_VERSION, _word(kind.str), _PRESETS.index(preset), _word(axes), *map(int, chunks))
    return {"chunks": tuple(chunks), "compression": FILTER_ID, "compression_opts": numbers}


def _word(text: str) -> int:
    return int.from_bytes(text.encode("ascii"), "big")


def _text(word: int) -> str:
    return word.to_bytes(4, "big").lstrip(b"\0").decode("ascii", "replace")


@cache
def register_filter() -> None:
    """Make h5py of this process read and write datasets that are compressed so; TargetUnavailable without it.

    To read them, this is all that has to be called; `filter_options` does.
    """
    h5z = load_package("h5py.h5z", "HDF5")
    h5z.register_filter(ctypes.addressof(_CLASS))


def _filter(flags: int, count: int, values: Any, size: int, room: Any, buffer: Any) -> int:
    """The function that HDF5 calls: it puts another buffer in the place of the one it got; 0 if it cannot."""
    try:
        data = ctypes.string_at(buffer[0], size)
        found = _converted(values[:count], data, reading=bool(flags & _REVERSE))
    except Exception as error:
        # HDF5 only says that a filter failed.
        _LOG.error("chunk of an HDF5 file: %s", error)
        return 0
    new = _LIBRARY.malloc(max(len(found), 1))
    if not new:
        return 0
    ctypes.memmove(new, found, len(found))
    _LIBRARY.free(buffer[0])
    buffer[0], room[0] = new, len(found)
    return len(found)


def _converted(values: Sequence[int], data: bytes, *, reading: bool) -> bytes:
    """A chunk to its compressed bytes, or back; FormatError if the numbers of the filter are others."""
    known = len(values) > 4 and values[0] == _VERSION and values[2] < len(_PRESETS)
    if not known or _text(values[1])[:1] not in ("<", ">", "|"):
        found = f"numbers {', '.join(map(str, values[:8]))}"
        expected = f"version {_VERSION} of the filter"
        raise FormatError("HDF5", found=found, expected=expected, hint="a newer plait wrote it: upgrade")
    kind, shape = np.dtype(_text(values[1])), tuple(values[4:])
    coding = ChunkCoding(axes=_text(values[3]), preset=_PRESETS[values[2]])
    if not reading:
        return coding.encode(np.frombuffer(data, kind).reshape(shape).astype(kind.newbyteorder("=")))
    with open_stream(data) as cube:
        coding.check_stream(cube, shape, kind)
        return coding.read(cube).astype(kind).tobytes()


_LIBRARY: Final = ctypes.CDLL(None)
_LIBRARY.malloc.restype, _LIBRARY.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
_LIBRARY.free.restype, _LIBRARY.free.argtypes = None, [ctypes.c_void_p]
#: HDF5 keeps its address: it lives as long as this module.
_CLASS: Final = _Class(1, FILTER_ID, 1, 1, _NAME, None, None, _FUNCTION(_filter))
