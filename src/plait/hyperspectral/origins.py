"""What a compressed cube came from: in the container, or beside the stream."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from plait.errors import FormatError
from plait.formats.cube_origin import CubeOrigin

if TYPE_CHECKING:
    from plait.hyperspectral.streams import CompressedCube

__all__ = ["ATTACHMENT", "attachment_of", "origin_of"]

#: Name of the attachment of a container.
ATTACHMENT = "origin.json"


def attachment_of(origin: CubeOrigin) -> dict[str, bytes]:
    """The attachments of a container that keep an origin."""
    return {ATTACHMENT: json.dumps(origin.to_json(), sort_keys=True).encode("utf-8")}


def origin_of(path: str | os.PathLike[str], cube: CompressedCube) -> CubeOrigin | None:
    """What a compressed cube came from, if that is known.

    Parameters
    ----------
    path
        The file.
    cube
        The same, open.

    Raises
    ------
    FormatError
        If what is known is damaged, or is that of another cube.
    """
    if ATTACHMENT in cube.attachments:
        try:
            content = json.loads(bytes(cube.attachments[ATTACHMENT]))
        except ValueError as error:
            raise FormatError(path, found=error, expected=f"JSON in its attachment {ATTACHMENT}") from error
        origin: CubeOrigin | None = CubeOrigin.from_json(content, path)
    else:
        origin = CubeOrigin.read_beside(path)
    if origin is None:
        return None
    known = (origin.layout.rows, origin.layout.columns, origin.layout.bands)
    if known != tuple(cube.shape):
        told = "{} rows x {} columns x {} bands"
        raise FormatError(
            path,
            found=f"the description of a cube of {told.format(*known)}",
            expected=f"one of {told.format(*cube.shape)}",
            hint="move the file with the suffix .json away, or put the right one in its place",
        )
    return origin
