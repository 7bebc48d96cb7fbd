"""What a compressed cube says of itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from plait.hyperspectral.choices import named_parameters
from plait.hyperspectral.streams import open_stream

__all__ = ["describe"]


def describe(path: str | os.PathLike[str], *, tables: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a compressed cube says of itself, ready for JSON.

    Parameters
    ----------
    path
        The compressed cube.
    tables
        Tables that the stream uses and does not carry.

    Raises
    ------
    FormatError, InvalidInput
        If it is none, or its header is damaged.
    """
    with open_stream(path, **(tables or {})) as cube:
        image = cube.parameters.image
        size = os.path.getsize(path)
        samples = cube.shape[0] * cube.shape[1] * cube.shape[2]
        found: dict[str, Any] = {
            "path": os.fspath(path),
            "kind": cube.kind,
            "bytes": size,
            "rows": cube.shape[0],
            "columns": cube.shape[1],
            "bands": cube.shape[2],
            "dynamic_range": image.dynamic_range,
            "signed": image.signed,
            "bits_per_sample": 8 * size / samples,
            "blocks": len(cube.windows),
            "checksums": cube.has_checksums,
            "parameters": named_parameters(cube.parameters),
        }
        origin = cube.origin
        if origin is not None:
            found["origin"] = {
                "format": origin.format,
                "dtype": origin.layout.dtype.str,
                "interleave": origin.layout.interleave or origin.layout.axes,
                "byte_order": origin.layout.byte_order,
                "offset": origin.layout.offset,
                "names": dict(origin.names),
                "header": origin.header,
            }
        return found
