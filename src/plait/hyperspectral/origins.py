"""What a compressed cube came from: in the container, or beside the stream."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from plait.errors import FormatError
from plait.formats.cube_layout import CubeLayout
from plait.formats.cube_origin import CubeOrigin
from plait.formats.json_text import parse_json
from plait.hyperspectral.image_layout import ImageLayout

__all__ = ["array_origin", "attachment_of", "check_origin", "origin_in"]

_ATTACHMENT = "origin.json"


def array_origin(image: ImageLayout, kind: np.dtype[Any]) -> CubeOrigin:
    """The origin of a cube in memory."""
    layout = CubeLayout(rows=image.rows, columns=image.columns, bands=image.bands, dtype=kind)
    return CubeOrigin(format="array", layout=layout)


def attachment_of(origin: CubeOrigin) -> dict[str, bytes]:
    """The attachments of a container that keep an origin."""
    return {_ATTACHMENT: json.dumps(origin.to_json(), sort_keys=True).encode("utf-8")}


def origin_in(attachments: Mapping[str, bytes], path: str | os.PathLike[str]) -> CubeOrigin | None:
    """The origin that a container keeps, or None.

    Parameters
    ----------
    attachments
        Of the container.
    path
        Its name, for messages.

    Raises
    ------
    FormatError
        If it is damaged.
    """
    if _ATTACHMENT not in attachments:
        return None
    expected = f"JSON in its attachment {_ATTACHMENT}"
    return CubeOrigin.from_json(parse_json(attachments[_ATTACHMENT], path, expected), path)


def check_origin(origin: CubeOrigin, shape: tuple[int, int, int], kind: Any, path: object) -> None:
    """Check that an origin is that of a cube.

    Parameters
    ----------
    origin
        The origin.
    shape, kind
        Rows, columns and bands of the cube, and the type of its samples, of any size.
    path
        Its name, for messages.

    Raises
    ------
    FormatError
        If it is that of another cube.
    """
    known = (origin.layout.rows, origin.layout.columns, origin.layout.bands)
    hint = "its header was damaged, or the file with the suffix .json goes with another one: move that away"
    if known != shape:
        told = "{} rows x {} columns x {} bands"
        raise FormatError(
            path,
            found=f"the description of a cube of {told.format(*known)}",
            expected=f"one of {told.format(*shape)}",
            hint=hint,
        )
    dtype = origin.layout.dtype
    if dtype.kind != kind.kind:
        found, expected = f"the description of a cube of {dtype.name}", f"one of {kind.name}"
        raise FormatError(path, found=found, expected=expected, hint=hint)
