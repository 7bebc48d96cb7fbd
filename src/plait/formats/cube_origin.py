"""What a compressed cube came from: enough to write it again as it was, its header byte for byte.

Streams of the standard have no room for it, so it stands beside them in a JSON file; containers carry it.
"""

from __future__ import annotations

import base64
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import write_json
from plait.formats.cube_layout import CubeLayout

__all__ = ["MOST_PREFIX", "CubeOrigin", "origin_path"]

_VERSION = 1
#: Bytes before the first sample that are kept.
MOST_PREFIX: Final = 1 << 24


def origin_path(stream: str | os.PathLike[str]) -> Path:
    """Where the origin of a plain stream stands: ``scene.c123`` has ``scene.c123.json``."""
    return Path(f"{os.fspath(stream)}.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeOrigin:
    """What a compressed cube came from.

    Attributes
    ----------
    format
        envi, npy, raw, geotiff, netcdf or array.
    layout
        How the samples lay in the file.
    names
        Names of its files, without folders: data, header.
    header
        The ENVI header, each byte one character (Latin-1), or an empty text.
    prefix
        The bytes before the first sample.
    metadata
        What else the format has, ready for JSON.
    """

    format: str
    layout: CubeLayout
    names: dict[str, str] = field(default_factory=dict)
    header: str = ""
    prefix: bytes = b""
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.prefix) > MOST_PREFIX:
            raise InvalidInput(
                "header offset",
                found=f"{len(self.prefix):,} bytes before the samples",
                expected=f"at most {MOST_PREFIX:,}, which are kept",
                hint="cut them off, and set the header offset to 0",
            )

    def to_json(self, stream_bytes: int | None = None) -> dict[str, Any]:
        """What it is as JSON.

        Parameters
        ----------
        stream_bytes
            Size of the stream that it stands beside, by which another one's is told.
        """
        layout = self.layout
        found: dict[str, Any] = {
            "plait_origin": _VERSION,
            "format": self.format,
            "rows": layout.rows,
            "columns": layout.columns,
            "bands": layout.bands,
            "dtype": layout.dtype.str,
            "axes": layout.axes,
            "offset": layout.offset,
            "names": self.names,
            "metadata": self.metadata,
        }
        if self.header:
            found["header"] = self.header
        if self.prefix:
            found["prefix"] = base64.b64encode(self.prefix).decode("ascii")
        if stream_bytes is not None:
            found["stream_bytes"] = stream_bytes
        return found

    @classmethod
    def from_json(cls, found: Any, path: str | os.PathLike[str]) -> Self:
        """Read it again.

        Parameters
        ----------
        found
            What `to_json` gave.
        path
            Where it stood, for messages.

        Raises
        ------
        FormatError
            If it is nothing of the kind.
        """
        if not isinstance(found, dict) or found.get("plait_origin") != _VERSION:
            what = found.get("plait_origin", "another") if isinstance(found, dict) else "another"
            expected = f"version {_VERSION} of the description of a cube, by plait"
            raise FormatError(path, found=f"{what} content", expected=expected)
        try:
            layout = CubeLayout(
                rows=int(found["rows"]),
                columns=int(found["columns"]),
                bands=int(found["bands"]),
                dtype=np.dtype(str(found["dtype"])),
                axes=str(found["axes"]),
                offset=int(found["offset"]),
            )
            return cls(
                format=str(found["format"]),
                layout=layout,
                names={str(key): Path(str(name)).name for key, name in found["names"].items()},
                header=str(found.get("header", "")),
                prefix=base64.b64decode(found.get("prefix", ""), validate=True),
                metadata=dict(found["metadata"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            told = f"{type(error).__name__} {error}"
            raise FormatError(path, found=told, expected="the description of a cube, by plait") from error

    def write_beside(self, stream: str | os.PathLike[str]) -> None:
        """Write it beside a stream that is complete."""
        write_json(origin_path(stream), self.to_json(os.stat(stream).st_size))

    @staticmethod
    def remove_beside(stream: str | os.PathLike[str]) -> None:
        """Remove what stands beside a stream since an earlier one of its name; no file that is another's.

        Parameters
        ----------
        stream
            The stream.
        """
        path = origin_path(stream)
        with suppress(OSError, ValueError):
            found = json.loads(path.read_bytes())
            if isinstance(found, dict) and "plait_origin" in found:
                path.unlink()

    @classmethod
    def read_beside(cls, stream: str | os.PathLike[str]) -> Self | None:
        """The origin that stands beside a stream, or None.

        Parameters
        ----------
        stream
            The stream.

        Raises
        ------
        FormatError
            If it is damaged, or that of another stream.
        """
        path = origin_path(stream)
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise FormatError(path, found=error, expected="the description of a cube, by plait") from error
        origin = cls.from_json(found, path)
        size = os.stat(stream).st_size
        if found.get("stream_bytes", size) != size:
            raise FormatError(
                path,
                found=f"the description of a stream of {found['stream_bytes']:,} bytes",
                expected=f"that of {Path(stream).name}, of {size:,} bytes",
                hint="either the stream was cut short, or this file goes with another one: move it away",
            )
        return origin
