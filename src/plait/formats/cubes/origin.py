"""What a compressed cube came from: enough to write it again as it was, its header byte for byte.

Streams of the standard have no room for it, so it stands beside them in a JSON file; containers carry it.
"""

from __future__ import annotations

import base64
import json
import os
import re
import reprlib
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import bad_output, write_json
from plait.formats.cubes.layout import CubeLayout
from plait.formats.files import read_json

_VERSION = 1
#: Bytes before the first sample that are kept.
MOST_PREFIX: Final = 1 << 24
_EXPECTED: Final = "the description of a cube, by plait"
_TYPES: Final = re.compile(r"[<>=|]?([iu][1248]|f[48])")
#: No description is larger: a prefix, a header, and the variables beside a cube.
_MOST_BYTES: Final = 1 << 28


_SIZES: Final = ("rows", "columns", "bands", "offset")
#: What of a seal stands where.
_SEAL: Final = {
    "size": ("stream_bytes", int),
    "sha256": ("stream_sha256", str),
    "samples_crc32": ("samples_crc32", int),
}


def origin_path(stream: str | os.PathLike[str]) -> Path:
    """Where the origin of a plain stream stands: ``scene.c123`` has ``scene.c123.json``."""
    return Path(f"{os.fspath(stream)}.json")


@dataclass(frozen=True, slots=True)
class StreamSeal:
    """What a plain stream is recognised by; earlier versions of plait kept its size alone.

    `size` is in bytes, `sha256` in hexadecimal digits. `samples_crc32` is CRC-32 of the samples by row,
    column and band, each in the fewest whole bytes, little-endian.
    """

    size: int | None = None
    sha256: str | None = None
    samples_crc32: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeOrigin:
    """What a compressed cube came from; `layout` is that of its samples in the file.

    `format` is envi, npy, raw, geotiff, netcdf or array. `names` are those of its files, data and header,
    without folders. `header` is the ENVI header, a character for each byte (Latin-1), or empty. `prefix` is
    the bytes before the first sample. `metadata` is what else the format has, ready for JSON. `mapping` says
    how samples became the integers of the stream, see `plait.hyperspectral.mapping`; empty: they are those.
    """

    format: str
    layout: CubeLayout
    names: dict[str, str] = field(default_factory=dict)
    header: str = ""
    prefix: bytes = b""
    metadata: dict[str, Any] = field(default_factory=dict)
    mapping: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.prefix) > MOST_PREFIX:
            raise InvalidInput(
                "header offset",
                found=f"{len(self.prefix):,} bytes before the samples",
                expected=f"at most {MOST_PREFIX:,}, which are kept",
                hint="cut them off, and set the header offset to 0",
            )

    def to_json(self) -> dict[str, Any]:
        """What it is as JSON."""
        layout = self.layout
        found: dict[str, Any] = {
            "plait_origin": _VERSION,
            "format": self.format,
            **{name: getattr(layout, name) for name in (*_SIZES, "axes")},
            "dtype": layout.dtype.str,
            "names": self.names,
            "metadata": self.metadata,
        }
        if self.header:
            found["header"] = self.header
        if self.mapping:
            found["mapping"] = self.mapping
        if self.prefix:
            found["prefix"] = base64.b64encode(self.prefix).decode("ascii")
        return found

    @classmethod
    def from_json(cls, found: Any, path: str | os.PathLike[str]) -> Self:
        """Read what `to_json` gave; FormatError, which names `path`, if it is something else."""
        if not isinstance(found, dict) or found.get("plait_origin") != _VERSION:
            what = found.get("plait_origin", "other") if isinstance(found, dict) else "other"
            expected = f"version {_VERSION} of {_EXPECTED}"
            raise FormatError(path, found=f"{reprlib.repr(what)} content", expected=expected)
        dtype = _field(found, "dtype", str, path)
        if not _TYPES.fullmatch(dtype):
            raise FormatError(path, found=f"dtype {dtype!r}", expected="a type of samples")
        names = _field(found, "names", dict, path)
        if not all(isinstance(name, str) for name in names.values()):
            raise FormatError(path, found=f"names: {reprlib.repr(names)}", expected="names of files")
        try:
            layout = CubeLayout(
                dtype=np.dtype(dtype),
                axes=_field(found, "axes", str, path),
                **{name: _field(found, name, int, path) for name in _SIZES},
            )
            origin = cls(
                format=_field(found, "format", str, path),
                layout=layout,
                names=names,
                header=_field(found, "header", str, path, ""),
                prefix=base64.b64decode(_field(found, "prefix", str, path, ""), validate=True),
                metadata=_field(found, "metadata", dict, path),
                mapping=_field(found, "mapping", dict, path, {}),
            )
            # Each character is one byte.
            origin.header.encode("latin-1")
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(path, found=error, expected=_EXPECTED) from error
        if layout.offset != len(origin.prefix):
            told = f"an offset of {layout.offset:,} and {len(origin.prefix):,} bytes before the samples"
            raise FormatError(path, found=told, expected="as many as the offset says")
        return origin

    def write_beside(self, stream: str | os.PathLike[str], seal: StreamSeal) -> None:
        """Write it beside a stream that is complete, with its seal."""
        told = {name: getattr(seal, key) for key, (name, _) in _SEAL.items()}
        # As it will be read: keys are text then.
        found = json.loads(json.dumps({**self.to_json(), **told}))
        write_json(origin_path(stream), {**found, "crc32": _crc(found)})

    @staticmethod
    def remove_beside(stream: str | os.PathLike[str]) -> None:
        """Remove the origin of an earlier stream of this name, but no file that is something else."""
        path = origin_path(stream)
        if _is_origin(path):
            path.unlink(missing_ok=True)

    @classmethod
    def read_beside(cls, stream: str | os.PathLike[str]) -> tuple[Self, StreamSeal] | None:
        """The origin and the seal that stand beside a stream, or None.

        FormatError if they are damaged, or those of another stream.
        """
        path = origin_path(stream)
        if not path.is_file():
            return None
        found = read_json(path, _EXPECTED, most=_MOST_BYTES)
        if isinstance(found, dict) and "crc32" in found:
            known = found.pop("crc32")
            if known != _crc(found):
                hint = "it was damaged or changed: put the right one in its place; without its line crc32 it "
                raise FormatError(
                    path,
                    found="content with another checksum",
                    expected="the CRC-32 that it carries",
                    hint=f"{hint}is taken as it is",
                )
        origin = cls.from_json(found, path)
        fields = {key: _field(found, name, kind, path, None) for key, (name, kind) in _SEAL.items()}
        seal = StreamSeal(**fields)
        size = os.stat(stream).st_size
        if seal.size is not None and seal.size != size:
            more = size - seal.size
            told = f"{more:,} bytes were added to it" if more > 0 else f"its last {-more:,} bytes are missing"
            raise FormatError(
                path,
                found=f"the description of a stream of {seal.size:,} bytes",
                expected=f"that of {Path(stream).name}, of {size:,} bytes",
                hint=f"either {told}, or this file goes with another one: move it away",
            )
        return origin, seal


def check_beside(stream: str | os.PathLike[str]) -> None:
    """Check, before long work, that the origin of a stream will replace no other file.

    InvalidInput if a file of its name is there that is no description of a cube.
    """
    path = origin_path(stream)
    if os.path.lexists(path) and not _is_origin(path):
        hint = "move that file away, or choose another output"
        why = ", which is no description of a cube by plait"
        raise bad_output(path, why, "room for one beside the stream", hint)


def _is_origin(path: Path) -> bool:
    try:
        found = read_json(path, _EXPECTED, most=_MOST_BYTES) if path.is_file() else None
    except FormatError:
        return False
    return isinstance(found, dict) and "plait_origin" in found


def _crc(found: dict[str, Any]) -> int:
    try:
        return zlib.crc32(json.dumps(found, sort_keys=True).encode("ascii"))
    except RecursionError:
        # Nested as deeply as could just be read: nothing that plait wrote.
        return -1


_NEEDED: Final[Any] = object()
_KINDS: Final = {int: "a whole number", str: "a text", dict: "an object"}


def _field(found: dict[str, Any], name: str, kind: type, path: object, default: Any = _NEEDED) -> Any:
    """A field of a kind, whole numbers from 0 to 2**62."""
    value: Any = found.get(name, default)
    if value is default and default is not _NEEDED:
        return value
    if type(value) is not kind or (isinstance(value, int) and not 0 <= value <= 1 << 62):
        told = "nothing" if value is _NEEDED else reprlib.repr(value)
        raise FormatError(path, found=f"{name}: {told}", expected=f"{_KINDS[kind]} in {_EXPECTED}")
    return value
